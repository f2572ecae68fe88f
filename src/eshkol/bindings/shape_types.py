"""The types of tensors that rows of the op table give, for the checker of the language.

Comes in: calls of rows, with the types of their arguments. Goes out: the type of the result, found by the row's own
rule for shapes (`sizes.py`); or an error of the checker with the shapes, and where each of them came from. Where
something is not known before the program runs, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.bindings.names import names
from eshkol.bindings.procedures import row
from eshkol.bindings.sizes import Shaped, Sizes, in_both_runs
from eshkol.errors import BadType, EshkolError, ShapeError
from eshkol.lang.core import Call, Cell, Const, Global, Node
from eshkol.lang.datum import Keyword, List, Symbol, Vector
from eshkol.lang.report import bad
from eshkol.ops import dtypes
from eshkol.tensors import api as ek
from eshkol.types.fitting import fits
from eshkol.types.kinds import FLOAT, TensorOf, Type, shown, tensor_of
from eshkol.types.sizes import UNKNOWN, names_in
from eshkol.types.wording import origin_of

OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "expt": "pow", "=": "eq", "<": "lt", ">": "gt", "<=": "le",
    ">=": "ge", "max": "maximum", "min": "minimum", "sqrt": "sqrt", "exp": "exp", "log": "log", "sin": "sin",
    "cos": "cos", "tan": "tan", "tanh": "tanh", "abs": "abs", "square": "square",
}  # fmt: skip


class _Unknown(Exception):
    """An argument of which too little is known."""


class Shapes:
    """What the checker asks about tensors."""

    def knows(self, cell: Cell) -> bool:
        """Whether a variable of the library is a row of the op table."""
        return cell.name in names()

    def operator(self, name: str, kinds: Sequence[Type], node: Call, checker: Any) -> Type | None:
        """The type that arithmetic gives for tensors."""
        found = OPERATORS.get(name)
        return None if found is None or len(kinds) > 2 else self._result(found, kinds, node, checker)

    def call(self, name: str, kinds: Sequence[Type], node: Call, checker: Any) -> Type | None:
        """The type that a row gives, by its Scheme name."""
        return self._result(names()[name].removeprefix("op:"), kinds, node, checker)

    def _result(self, name: str, kinds: Sequence[Type], node: Call, checker: Any) -> Type | None:
        try:
            args, given = _arguments(kinds, node.args)
        except _Unknown:
            return None
        tensors = [a for a in (*args, *given.values()) if isinstance(a, Shaped)]
        if not tensors:
            return None
        function = row(name)

        def run(sizes: Sizes) -> Any:
            def made(arg: Any) -> Any:
                if not isinstance(arg, Shaped):
                    return arg
                dtype = dtypes.float32 if arg.dtype is None else getattr(dtypes, arg.dtype)
                return ek.ShapeDtypeStruct(tuple(map(sizes.number, arg.dims)), dtype)

            return ek.eval_shape(function, *map(made, args), **{k: made(v) for k, v in given.items()})

        try:
            found = in_both_runs({n for t in tensors for size in t.dims for n in names_in(size)}, run)
        except EshkolError as error:
            checker.refuse(_refused(error, kinds, node), isinstance(error, ShapeError))
            return None
        if not isinstance(found, Shaped):
            return None
        known = all(t.dtype is not None for t in tensors)
        return tensor_of(found.dtype if known else None, found.dims)


def _arguments(kinds: Sequence[Type], nodes: Sequence[Node]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as the row's function takes them: constants, and shapes for tensors."""
    args: list[Any] = []
    given: dict[str, Any] = {}
    waiting: str | None = None
    for kind, node in zip(kinds, nodes, strict=True):
        if type(node) is Const and isinstance(node.datum, Keyword):
            waiting = node.datum.name.replace("-", "_")
            continue
        value = _value(kind, node)
        if waiting is None:
            args.append(value)
        else:
            given[waiting], waiting = value, None
    return args, given


def _value(kind: Type, node: Node) -> Any:
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
    if isinstance(part, TensorOf):
        if part.dims is None or UNKNOWN in part.dims:
            raise _Unknown
        return Shaped(part.dtype, part.dims)
    if type(node) is Const:
        return _constant(node.datum)
    if type(node) is Call and type(node.procedure) is Global and node.procedure.cell.name in ("list", "vector"):
        return [_value(Type(0), arg) for arg in node.args]
    if kind.mask and not kind.parts and fits(kind, FLOAT):
        return 1.0  # some float: rules for shapes do not ask which
    raise _Unknown


def _constant(datum: Any) -> Any:
    if isinstance(datum, bool | int | float | str):
        return datum
    if isinstance(datum, Symbol):
        return datum.name
    if isinstance(datum, Vector) or (isinstance(datum, List) and datum.tail is None):
        return [_constant(item) for item in datum.items]
    raise _Unknown


def _refused(error: EshkolError, kinds: Sequence[Type], node: Call) -> Any:
    """The row's error at the call, with the types of the tensors and where they came from."""
    notes = []
    for kind, arg in zip(kinds, node.args, strict=True):
        if any(isinstance(part, TensorOf) for part in kind.parts):
            origin = origin_of(arg)
            text, place = ("this is ", arg.place) if origin is None or origin[1] is None else origin
            notes.append((f"{text}{shown(kind)}:", place))
    return bad(error.message, node.place, error.hint, kind=BadType, notes=tuple(notes))


SHAPES = Shapes()
