"""What programs show in a notebook, besides what they write: `(display-image "plot.png")`.

Comes in: pictures, HTML, Markdown, from Scheme (lib/eshkol/notebook.esk) or from Python. Goes out: a message to the
notebook that runs, be it the Eshkol kernel's or one of Python; an error where there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from eshkol.bindings.guest import in_session
from eshkol.bindings.notebook.rich import Bundle, figure_bytes, picture
from eshkol.errors import EshkolError

publisher: Callable[[Bundle], None] | None = None  # of the kernel of this process, if it is one


def publish(data: Bundle, who: str) -> None:
    """Show something, after what was written so far."""
    send = publisher or _of_python()
    if send is None:
        raise EshkolError(f"{who}: there is no notebook to show it in", hint="write it to a file")
    in_session(lambda session: session.flush())
    send(data)


def _of_python() -> Callable[[Bundle], None] | None:
    """How a notebook of Python shows something, if this is one."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    if get_ipython() is None:
        return None
    from IPython.display import publish_display_data

    return lambda data: publish_display_data(data)


def display_image(what: Any) -> None:
    """Show a picture: its bytes, its path, the text of an SVG, or a figure of matplotlib."""
    publish({"text/plain": "<picture>", **picture(what)}, "display-image")


def display_html(text: str) -> None:
    """Show HTML."""
    publish({"text/plain": text, "text/html": text}, "display-html")


def display_markdown(text: str) -> None:
    """Show Markdown."""
    publish({"text/plain": text, "text/markdown": text}, "display-markdown")


def open_figures() -> list[bytes]:
    """The figures that pyplot still has open, as PNG; they are closed."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    found = [figure_bytes(pyplot.figure(number)) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return found
