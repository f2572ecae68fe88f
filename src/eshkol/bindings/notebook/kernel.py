"""The Jupyter kernel: `python -m eshkol.bindings.notebook.kernel -f FILE`, which Jupyter itself starts.

Comes in: the requests of a notebook. Goes out: what cells write, while they run; the value of their last form; errors
with the line and a caret; completions, what is known of a name, whether a text is whole. Cells are evaluated in the one
session of the process; the main thread waits for it, and passes on the interrupts of the notebook.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from eshkol.bindings.guest import in_session
from eshkol.bindings.notebook import display
from eshkol.bindings.notebook.cells import run_cell, start
from eshkol.bindings.notebook.rich import Bundle
from eshkol.errors import EshkolError
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.session.colouring import coloured
from eshkol.session.completing import completions_at, name_at, operator_at
from eshkol.session.describing import about_name, is_unfinished
from eshkol.support.warning import show_at_scheme
from eshkol.version import __version__

INDENT = "  "


class EshkolKernel(Kernel):
    """One notebook."""

    implementation = "eshkol"
    implementation_version = __version__
    banner = f"Eshkol {__version__}"
    language_info = {  # noqa: RUF012  traitlets has it so
        "name": "eshkol",
        "version": __version__,
        "mimetype": "text/x-scheme",
        "file_extension": ".esk",
        "pygments_lexer": "scheme",
        "codemirror_mode": "scheme",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        display.publisher = self._publish
        show_at_scheme()
        self._parent: dict[str, Any] = {}  # the request that is answered
        in_session(start)

    # ---- running ----------------------------------------------------------------------------------------------------

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, Any] | None = None,
        allow_stdin: bool = False,
        *,
        cell_meta: dict[str, Any] | None = None,
        cell_id: str | None = None,
    ) -> dict[str, Any]:
        """Evaluate a cell."""
        self._parent = self.get_parent("shell")
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "set_parent"):
                stream.set_parent(self._parent)
        reply = {"execution_count": self.execution_count, "payload": [], "user_expressions": {}}
        try:
            found = run_cell(code, f"<cell {self.execution_count}>")
            for data in display.open_figures():
                display.display_image(data)
        except SystemExit:
            return {**reply, "status": "ok", "payload": [{"source": "ask_exit", "keepkernel": False}]}
        except (KeyboardInterrupt, Exception) as error:
            return {**reply, **self._failed(error, silent)}
        if found and not silent:
            self._send("execute_result", {"execution_count": self.execution_count, "data": found, "metadata": {}})
        return {**reply, "status": "ok"}

    def _failed(self, error: BaseException, silent: bool) -> dict[str, Any]:
        message = error.message if isinstance(error, EshkolError) else str(error).partition("\n")[0]
        told = {"ename": type(error).__name__, "evalue": message, "traceback": coloured(error)}
        if not silent:
            self._send("error", told)
        return {"status": "error", **told}

    def _publish(self, data: Bundle) -> None:
        self._send("display_data", {"data": data, "metadata": {}, "transient": {}})

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        """Tell the notebook something, after what was written so far."""
        sys.stdout.flush()
        sys.stderr.flush()
        assert self.session is not None
        self.session.send(self.iopub_socket, kind, content, parent=self._parent, ident=self._topic(kind))

    # ---- what the notebook asks while someone types -----------------------------------------------------------------

    async def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        """The names that begin as the one at the cursor does; libraries in an import, files in a string."""
        start_, found = in_session(partial(completions_at, text=code, cursor=cursor_pos))
        end = max(cursor_pos, name_at(code, cursor_pos)[1])
        matches = [one.text for one in found]
        return {"status": "ok", "matches": matches, "cursor_start": start_, "cursor_end": end, "metadata": {}}

    async def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> dict[str, Any]:
        """What is known of the name at the cursor, or of the procedure that is being called there."""
        start_, end = name_at(code, cursor_pos)
        for name in filter(None, (code[start_:end], operator_at(code, cursor_pos))):
            lines = in_session(partial(about_name, name=name))
            if lines is not None:
                return {"status": "ok", "found": True, "data": {"text/plain": "\n".join(lines)}, "metadata": {}}
        return {"status": "ok", "found": False, "data": {}, "metadata": {}}

    async def do_is_complete(self, code: str) -> dict[str, Any]:
        """Whether a text is whole."""
        if is_unfinished(code):
            return {"status": "incomplete", "indent": INDENT}
        try:
            read(Source("<cell>", code))
        except EshkolError:
            return {"status": "invalid"}
        return {"status": "complete"}


def main(arguments: list[str] | None = None) -> None:
    """Serve a notebook until it ends."""
    IPKernelApp.launch_instance(argv=arguments, kernel_class=EshkolKernel)


if __name__ == "__main__":
    main()
