"""What the places where people type ask of a session: what a name or a value is, and whether a text is whole.

Comes in: a session, a name, a value, a text. Goes out: lines for people. The prompt (prompt/) and the notebook
(bindings/notebook) stand on it; what may be typed next is completing.py's business.
"""

from __future__ import annotations

import re
from pathlib import Path

from eshkol.errors import EshkolError, LanguageError, UnfinishedInput
from eshkol.lang.core import Cell
from eshkol.lang.docs import Definition, find_definition
from eshkol.lang.files import shown
from eshkol.lang.meanings import CellBinding
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.runtime.scheme import Root, Value
from eshkol.session import Session

SENTENCE = re.compile(r"\.(?=\s)")  # where the first of a documentation ends


def about_name(session: Session, name: str) -> list[str] | None:
    """What is known of a name at the prompt; None where no one defines it."""
    binding = session.world.prompt.namespace.lookup(name)
    if binding is None:
        return None
    if isinstance(binding, CellBinding):
        lines = about_value(session, value := value_of(session, binding.cell))
        documented = value.tag == session.machine.tags["PROCEDURE"] and len(lines) > 1 + lines[-1].startswith("  at ")
        standard = binding.cell.library in session.world.labels and session.world.labels[binding.cell.library].standard
        found = find_definition(name) if standard and not documented else None
        return lines if found is None or not found.doc else [*lines[:1], found.doc, *lines[1:]]
    definition = find_definition(name) or Definition(name, (name,), "A form that the expander knows.")
    return [*definition.calls, *filter(None, [definition.doc])]


def value_of(session: Session, cell: Cell) -> Value:
    """The value of a variable, also where a prompt watches its calls; an error where it has none."""
    if cell in session.watched:
        return session.watched[cell].get()
    session.world.ensure_cell(cell)
    value = session.engine.cell(cell.library, cell.name).get()
    nothing = session.machine.special("UNDEFINED")
    if (value.tag, value.bits) == (nothing.tag, nothing.bits):
        raise LanguageError(f"this variable has no definition yet: {cell.name}")
    return value


def signature(session: Session, name: str) -> str | None:
    """How a procedure or form is called, and the first sentence of what it does; None of anything else.

    It is for people who type, and who do not wait for a library that has not been compiled yet.
    """
    binding = session.world.prompt.namespace.lookup(name)
    try:
        if isinstance(binding, CellBinding) and not session.is_at_hand(binding.cell):
            found = find_definition(binding.cell.name)
            lines = None if found is None else [*found.calls[:1], found.doc or ""]
        else:
            lines = about_name(session, name)
    except EshkolError:  # without a value yet
        return None
    if not lines or not lines[0].startswith("("):
        return None
    doc = next((line for line in lines[1:] if line and line[0] not in "( "), "").partition("\n")[0]
    end = SENTENCE.search(doc)
    return f"{lines[0]}  {doc[: end.end()] if end else doc}".rstrip()


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


def formals(session: Session, value: Value) -> list[str] | None:
    """The names of a procedure's parameters, if it has so many and no others."""
    try:
        (call,) = read(Source("<signature>", about_value(session, value)[0]))
    except (EshkolError, ValueError):  # several ways to be called
        return None
    items = call.items
    if items is None or not all(item.is_identifier and item.name != "..." for item in items):
        return None
    return [item.name for item in items[1:]]


# What `,type` calls the values of a tag; a value of another kind has its tag in small letters.
KINDS = {
    "FIXNUM": "an exact integer", "BIGNUM": "an exact integer, a large one", "FLONUM": "a float, 64 bits",
    "RATIONAL": "an exact fraction", "COMPLEX": "a complex number", "DUAL": "a differentiated number",
    "AD_NODE": "a differentiated number", "CHAR": "a character", "SYMBOL": "a symbol", "BOOLEAN": "a boolean",
    "KEYWORD": "a keyword", "NULL": "the empty list", "BOX": "a box", "PORT": "a port", "PROMISE": "a promise",
    "CONTINUATION": "a continuation", "ENVIRONMENT": "an environment", "SYNTAX": "a syntax object",
    "RECORD_TYPE": "a type of records",
}  # fmt: skip
MOST_PAIRS = 1_000_000  # that are counted
LONGEST = 200  # characters of an object's text


def kind_of_value(session: Session, value: Value) -> str:
    """What is known of the kind of a value, as a phrase."""
    machine = session.machine
    root = Root(machine, value)
    tag = next(name for name, number in machine.tags.items() if number == value.tag)

    def count(primitive: str, of: str) -> str:
        found = machine.written(machine.call(primitive, root.get()))
        return f"{found} {of}{'' if found == '1' else 's'}"

    if tag == "PAIR":
        return _kind_of_list(session, root)
    if tag == "STRING":
        return f"a string of {count('string-length', 'character')}"
    if tag == "VECTOR":
        return f"a vector of {count('vector-length', 'element')}"
    if tag == "BYTEVECTOR":
        return f"a bytevector of {count('bytevector-length', 'byte')}"
    if tag == "TABLE":
        return f"a hash table of {count('%table-count', 'entry').replace('entrys', 'entries')}"
    if tag == "VALUES":
        return "; ".join(kind_of_value(session, item) for item in machine.several(root.get())) or "no values"
    if tag == "RECORD":
        kind = Root(machine, machine.call("record-type-descriptor", root.get()))
        fields = machine.written(machine.call("record-type-fields", kind.get()), 0).strip("#()")
        return f"a record of type {machine.written(machine.call('record-type-name', kind.get()), 0)}: {fields}"
    if tag == "PROCEDURE":
        return f"a procedure: {about_value(session, root.get())[0]}"
    if tag == "SPECIAL":
        return "no value" if machine.is_unspecified(root.get()) else machine.written(root.get())
    if tag in ("FOREIGN", "TENSOR"):
        text = machine.written(root.get())
        found = re.match(r"#<tensor (\S+) (\([\d ]*\))", text)
        return f"a tensor of {found[1]}, shape {found[2]}" if found else f"an object of Python: {text[:LONGEST]}"
    return KINDS.get(tag, f"a value of kind {tag.lower()}")


def _kind_of_list(session: Session, root: Root) -> str:
    machine = session.machine
    seen, rest = 0, root.get()
    slow = rest
    while rest.tag == machine.tags["PAIR"] and seen < MOST_PAIRS:
        rest, seen = machine.pair(rest)[1], seen + 1
        if seen % 2 == 0:
            slow = machine.pair(slow)[1]
            if rest.tag == slow.tag and rest.bits == slow.bits and rest.tag == machine.tags["PAIR"]:
                return "a list without an end: it goes round in a circle"
    if seen == MOST_PAIRS:
        return f"a list of {MOST_PAIRS} elements or more"
    if rest.tag == machine.tags["NULL"]:
        return f"a list of {seen} element{'' if seen == 1 else 's'}"
    return "a pair" if seen == 1 else f"{seen} pairs that end in {kind_of_value(session, rest)}: no proper list"


def is_unfinished(text: str) -> bool:
    """Whether more text may make it whole: a parenthesis is open, or a string."""
    try:
        read(Source("<input>", text))
    except UnfinishedInput:
        return True
    except EshkolError:  # will be told when it is evaluated
        return False
    return False
