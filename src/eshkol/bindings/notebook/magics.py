"""IPython: `%load_ext eshkol`, then `%eshkol FORM` and cells that begin with `%%eshkol`.

    %%eshkol -i data,learning_rate -o weights
    (define weights (train data :rate learning-rate))

Comes in: what stands in the line and the cell, with the names of Python variables that Scheme shall have (-i) and of
Scheme definitions that Python shall have (-o); `_` in Python is `-` in Scheme (bindings/spelling.py). Goes out: the
value of the last form, which IPython shows; an error as Eshkol tells it, without the traceback of Python's own frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from eshkol.bindings.evaluate import evaluate
from eshkol.bindings.guest import in_session
from eshkol.bindings.notebook.cells import start
from eshkol.bindings.prompt import define, value_at_prompt
from eshkol.errors import EshkolError
from eshkol.session.colouring import coloured
from eshkol.session.completing import completions, name_at
from eshkol.support.tracebacks import show_in_ipython

MAGIC, MATCHER = "eshkol", "eshkol.names"
OPTION = re.compile(r"\s*(-i|-o|--in|--out)[ =]\s*(\S+)")
USAGE = f"%{MAGIC} [-i NAME,…] [-o NAME,…] FORM, or %%{MAGIC} [-i NAME,…] [-o NAME,…] with forms below"


class Shell(Protocol):
    """What is used of IPython's shell."""

    user_ns: dict[str, Any]
    execution_count: int
    magics_manager: Any
    Completer: Any

    def register_magic_function(self, func: Callable[..., Any], magic_kind: str, magic_name: str) -> None: ...


@dataclass
class _Line:
    """What stands after the magic's name."""

    rest: str
    given: list[str] = field(default_factory=list)  # Python variables for Scheme
    wanted: list[str] = field(default_factory=list)  # Scheme definitions for Python


def parse_line(line: str) -> _Line:
    """The options in front, and what follows them."""
    found = _Line(line)
    while option := OPTION.match(found.rest):
        names = [name for name in option[2].split(",") if name]
        (found.given if option[1] in ("-i", "--in") else found.wanted).extend(names)
        found.rest = found.rest[option.end() :]
    if re.match(r"\s*-[io]?\s*$", found.rest) or re.match(r"\s*--?[a-z]", found.rest):
        raise EshkolError(f"%{MAGIC}: {found.rest.strip()} is no option, or lacks its names", hint=USAGE)
    return found


class EshkolMagic:
    """The magic of one shell."""

    _ipython_magic_no_var_expand = True  # braces and $ mean something else in Scheme

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """Evaluate Eshkol: %eshkol FORM, or a cell of forms below %%eshkol [-i NAME,…] [-o NAME,…]."""
        try:
            return self._run(parse_line(line), cell)
        except EshkolError as error:
            lines = coloured(error)
            vars(error)["_render_traceback_"] = lambda: lines  # IPython asks for this before it makes a traceback
            raise

    def _number(self) -> int:
        """The number of the cell that runs: IPython counts on before, or after it."""
        inputs = self.shell.user_ns.get("In")
        return len(inputs) - 1 if isinstance(inputs, list) else self.shell.execution_count

    def _run(self, line: _Line, cell: str | None) -> Any:
        user = self.shell.user_ns
        for name in line.given:
            if name not in user:
                raise EshkolError(f"%{MAGIC} -i {name}: Python has no variable of that name")
            define(name.replace("_", "-"), user[name])
        value = evaluate(line.rest if cell is None else f"{line.rest}\n{cell}", f"<cell {self._number()}>")
        for name in line.wanted:
            try:
                user[name] = value_at_prompt(name)
            except AttributeError as error:
                raise EshkolError(f"%{MAGIC} -o {name}: {error}") from None
        return value


def _matcher() -> Callable[[Any], Any]:
    """What completes names in cells of Eshkol, and leaves others alone."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    def complete(context: Any) -> dict[str, Any]:
        if not re.match(rf"\s*%%?{MAGIC}\b", context.full_text):
            return {"completions": []}
        line, cursor = context.line_with_cursor, context.cursor_position
        word = line[name_at(line, cursor)[0] : cursor]
        found = [SimpleCompletion(text=name) for name in in_session(partial(completions, word=word))]
        return {"completions": found, "matched_fragment": word, "suppress": True}

    made: Callable[[Any], Any] = context_matcher(identifier=MATCHER)(complete)
    return made


def load_ipython_extension(shell: Shell) -> None:
    """`%load_ext eshkol`."""
    in_session(start)
    show_in_ipython(shell)
    shell.register_magic_function(EshkolMagic(shell), "line_cell", MAGIC)
    shell.Completer.custom_matchers.append(_matcher())


def unload_ipython_extension(shell: Shell) -> None:
    """`%unload_ext eshkol`; the session stays, and what was defined in it."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(MAGIC, None)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [matcher for matcher in matchers if getattr(matcher, "matcher_identifier", "") != MATCHER]
