"""Owners in core forms: which calls are those of ownership, and which variables may have owners.

Comes in: core forms, and the types that a checker found. Goes out: names of forms, keys of variables, what a value's
type says of its owner. `owning.py` follows owners through a program, `scopes.py` ends them, `regions.py` looks who has
the memory of a region.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eshkol.lang.core import OWNERS, Call, Cell, Global, If, Lambda, Let, Letrec, Local, Node, Seq, Variable
from eshkol.types.kinds import FALSE_BIT, HandleOf, Type

if TYPE_CHECKING:
    from eshkol.types.checking import Checker

Key = Variable | Cell

BORROWS = {"borrow": False, "borrow-mut": True}  # and whether what is lent may be changed
ENDS = {"move": "moved", "drop": "dropped"}
REGION = "%with-region"

# Procedures of the library that change their first argument.
CHANGING = frozenset({
    "vector-set!", "vector-fill!", "vector-copy!", "set-car!", "set-cdr!", "list-set!", "string-set!", "string-fill!",
    "string-copy!", "bytevector-u8-set!", "bytevector-s8-set!", "bytevector-fill!", "bytevector-copy!",
    "bytevector-ieee-double-native-set!", "set-box!", "hash-table-set!", "hash-table-delete!", "hash-table-update!",
    "hash-table-update!/default", "hash-table-clear!", "vector-swap!", "vector-reverse!", "vector-map!", "reverse!",
    "sort!", "vector-sort!", "tensor-set!",
})  # fmt: skip


def form_of(node: Node) -> str | None:
    """The name of the form of ownership that a call is."""
    if type(node) is not Call or type(node.procedure) is not Global:
        return None
    cell = node.procedure.cell
    if cell.library == OWNERS:
        return cell.name
    return "drop" if cell.name == "drop" and cell.library == "(srfi 1)" and len(node.args) == 1 else None


def key_of(node: Node) -> Key | None:
    """The variable that a form is, if nothing assigns it."""
    if type(node) is Local:
        return None if node.variable.assigned else node.variable
    if type(node) is Global and node.cell.sealed and not node.cell.assigned and not node.cell.primitive:
        return node.cell
    return None


def borrowed(node: Node) -> tuple[Key, bool] | None:
    """The owner of a borrow that is written here, and whether what is lent may be changed."""
    name = form_of(node)
    if name not in BORROWS or type(node) is not Call or len(node.args) != 1:
        return None
    key = key_of(node.args[0])
    return None if key is None else (key, BORROWS[name])


def handle_in(kind: Type) -> HandleOf | None:
    """What a type says of owning, where it says nothing else but that there may be nothing (#f)."""
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask & ~FALSE_BIT else None
    return part if type(part) is HandleOf else None


def handle_of_key(checker: Checker, key: Key | None) -> HandleOf | None:
    if key is None:
        return None
    kind = checker.kinds.get(key) if type(key) is Variable else checker.cells.get(key) if type(key) is Cell else None
    return None if kind is None else handle_in(kind)


def owns(checker: Checker, key: Key | None) -> bool:
    """Whether a variable has an owner, which ends with it; a shared reference is one of several."""
    handle = handle_of_key(checker, key)
    return handle is not None and handle.kind in ("Owned", "Linear")


def ends(checker: Checker, key: Key | None) -> bool:
    """Whether something ends with the scope of a variable."""
    handle = handle_of_key(checker, key)
    return handle is not None and handle.kind != "Weak"


def region_of(node: Node) -> Lambda | None:
    """The body of a region."""
    if form_of(node) == REGION and type(node) is Call and len(node.args) == 3 and type(node.args[2]) is Lambda:
        return node.args[2]
    return None


def loop_of(node: Letrec) -> Call | None:
    """The first call of a named loop."""
    body = node.body
    if len(node.variables) != 1 or type(node.values[0]) is not Lambda or len(node.values[0].clauses) != 1:
        return None
    is_call = type(body) is Call and type(body.procedure) is Local and body.procedure.variable is node.variables[0]
    return body if is_call and type(body) is Call and not node.variables[0].assigned else None


def tails(node: Node) -> list[Node]:
    """The forms of which one gives the value."""
    found, todo = [], [node]
    while todo:
        node = todo.pop()
        region = region_of(node)
        if type(node) is If:
            todo += [node.otherwise, node.then]
        elif type(node) is Seq:
            todo.append(node.items[-1])
        elif type(node) is Let or type(node) is Letrec:
            todo.append(node.body)
        elif region is not None:
            todo.append(region.clauses[0].body)
        else:
            found.append(node)
    return found
