"""What the places where people type ask of a session: what a name is, whether a text is whole, which name they mean.

Comes in: a session, a name, a text with a cursor in it. Goes out: lines for people, and ranges of the text. The prompt
(repl.py) and the notebook (bindings/notebook) stand on it.
"""

from __future__ import annotations

from pathlib import Path

from eshkol.errors import EshkolError, UnfinishedInput
from eshkol.lang.docs import Definition, find_definition
from eshkol.lang.files import shown
from eshkol.lang.meanings import CellBinding
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.runtime.scheme import Root, Value
from eshkol.session import Session

DELIMITERS = frozenset("()[]{}\"';`,| \t\r\n")


def about_name(session: Session, name: str) -> list[str] | None:
    """What is known of a name at the prompt; None where no one defines it."""
    binding = session.world.prompt.namespace.lookup(name)
    if binding is None:
        return None
    if isinstance(binding, CellBinding):
        lines = about_value(session, value := session.evaluate(name))
        documented = value.tag == session.machine.tags["PROCEDURE"] and len(lines) > 1 + lines[-1].startswith("  at ")
        standard = binding.cell.library in session.world.labels and session.world.labels[binding.cell.library].standard
        found = find_definition(name) if standard and not documented else None
        return lines if found is None or not found.doc else [*lines[:1], found.doc, *lines[1:]]
    definition = find_definition(name) or Definition(name, (name,), "A form that the expander knows.")
    return [*definition.calls, *filter(None, [definition.doc])]


def about_value(session: Session, value: Value) -> list[str]:
    """What is known of a value: of a procedure, how it is called, what it does and where it stands."""
    machine, root = session.machine, Root(session.machine, value)
    lines = session.written(value)
    if value.tag != machine.tags["PROCEDURE"]:
        return lines

    def told(primitive: str) -> str | None:
        found = machine.call(primitive, root.get())
        return machine.text(found) if found.tag == machine.tags["STRING"] else None

    lines = [told("procedure-signature") or lines[0]]
    doc, place = told("procedure-doc"), told("%procedure-place")
    if doc:
        lines.append(doc)
    if place:
        file, line, column = place.rsplit(":", 2)
        lines.append(f"  at {shown(Path(file))}:{line}:{column}")
    return lines


def is_unfinished(text: str) -> bool:
    """Whether more text may make it whole: a parenthesis is open, or a string."""
    try:
        read(Source("<input>", text))
    except UnfinishedInput:
        return True
    except EshkolError:  # will be told when it is evaluated
        return False
    return False


def completions(session: Session, word: str) -> list[str]:
    """The names at the prompt that begin so; not those that the library keeps to itself."""
    return sorted(name for name in session.visible_names() if name.startswith(word) and not name.startswith("%"))


def name_at(text: str, cursor: int) -> tuple[int, int]:
    """Where the name begins and ends that the cursor touches; an empty range at the cursor where there is none."""
    start = end = min(cursor, len(text))
    while start > 0 and text[start - 1] not in DELIMITERS:
        start -= 1
    while end < len(text) and text[end] not in DELIMITERS:
        end += 1
    return start, end


def operator_at(text: str, cursor: int) -> str:
    """The first name in the innermost form that is open at the cursor."""
    depth = 0
    for place in range(min(cursor, len(text)) - 1, -1, -1):
        if text[place] in ")]":
            depth += 1
        elif text[place] in "([":
            if depth == 0:
                start, end = name_at(text, place + 1)
                return text[start:end]
            depth -= 1
    return ""
