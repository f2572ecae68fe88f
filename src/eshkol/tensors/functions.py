"""One Python function per row of the op table, one method of `Tensor` for those that have it, and those in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from eshkol.errors import TensorError
from eshkol.graph.node import explained
from eshkol.ops import TABLE, calls
from eshkol.ops.einsum import interleaved
from eshkol.ops.row import Op
from eshkol.runtime import front
from eshkol.tensors import windows
from eshkol.tensors.arguments import INTEGERS
from eshkol.tensors.pairs import PAIRED, RESULTS, is_paired, named, paired
from eshkol.tensors.value import Tensor, operate_anew
from eshkol.tensors.words import worded

STARRED = ("broadcast_tensors", "meshgrid")  # whose tensors may also come one by one


def _gathering(op: Op, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a row that takes one by one what it takes together: zeros(2, 3), meshgrid(x, y)."""
    kind: Any = INTEGERS if [*op.signature.parameters][:2] == ["shape", "dtype"] else Tensor
    if kind is Tensor and op.name not in STARRED:
        return plain

    def gathering(*args: Any, **given: Any) -> Any:
        together = len(args) > 1 and all(isinstance(a, kind) for a in args)
        return plain(args, **given) if together else plain(*args, **given)

    return gathering


def _labelled(op: Op, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function of `einsum`, whose labels may stand behind each operand."""

    def labelled(*args: Any, **given: Any) -> Any:
        if args and not isinstance(args[0], str) and "subscripts" not in given:
            try:
                args = interleaved(args)
            except TensorError as error:
                raise explained(op, (), error) from None
        return plain(*args, **given)

    return labelled


def _pairing(op: Op, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function of `max` and its like, which gives values and places where it is called as PyTorch's."""

    def pairing(*args: Any, **given: Any) -> Any:
        if len(args) == 1 and not given:
            found = front.again(op, args, given)
            return operate_anew(op, args, given) if found is NotImplemented else found
        return paired(op, args, given) if is_paired(op, args, given) else plain(*args, **given)

    return pairing


def _naming(op: Op, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a row with several results, under their names."""

    def naming(*args: Any, **given: Any) -> Any:
        result = plain(*args, **given)
        return named(op.name, result) if type(result) is tuple else result

    return naming


def frontend(op: Op, name: str) -> Callable[..., Any]:
    """The Python function of a row; it also understands PyTorch's words for its parameters."""
    known = frozenset(op.signature.parameters)

    def plain(*args: Any, **given: Any) -> Any:
        if given and not given.keys() <= known:
            return worded(op, args, given)
        found = front.again(op, args, given)  # what `operate` does, with a step of Python's less
        return operate_anew(op, args, given) if found is NotImplemented else found

    def simple(*args: Any, **given: Any) -> Any:
        if not given and (found := front.quick(op, *args)) is not NotImplemented:
            return found
        return plain(*args, **given)

    function = _gathering(op, simple if op.elementwise and op.function is None else plain)
    if op.name == "einsum":
        function = _labelled(op, plain)
    if op.pairs and name == op.name:
        function = _pairing(op, plain)
    elif op.name in RESULTS:
        function = _naming(op, plain)
    function.__name__ = function.__qualname__ = name
    told = calls.help_text(op)
    function.__doc__ = f"{told}{PAIRED.format(op.name)}" if op.pairs and name == op.name else told
    vars(function).update(__signature__=calls.signature(op), row=op)
    function.__module__ = "eshkol"
    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: frontend(op, name) for op in TABLE.values() if op.public for name in (op.name, *op.aliases)
}

PLAIN = {int}
SPREAD = ("reshape", "expand", "permute", "tile", "flip", "broadcast_to")  # whose numbers methods take one by one, too


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that takes numbers one by one where its function takes them together: x.reshape(2, 3)."""

    op = vars(function)["row"]

    @wraps(function)
    def method(self: Tensor, *args: Any, **given: Any) -> Any:
        if args and not given and set(map(type, args)) == PLAIN:
            found = front.again(op, (self, args), given)
            return operate_anew(op, (self, args), given) if found is NotImplemented else found
        together = args and all(isinstance(a, INTEGERS) for a in args)
        return function(self, args, **given) if together else function(self, *args, **given)

    first, together, *_ = signature(function).parameters.values()
    numbers = together.replace(kind=together.VAR_POSITIONAL, annotation=calls.Type("int"), default=together.empty)
    vars(method)["ways"] = signature(function), signature(function).replace(parameters=[first, numbers])
    return method


for _op in TABLE.values():
    if _op.method and _op.inputs and not _op.inputs[0].many and _op.public:
        for _name in (_op.name, *_op.aliases):
            if not hasattr(Tensor, _name):
                setattr(Tensor, _name, spread(FUNCTIONS[_name]) if _op.name in SPREAD else FUNCTIONS[_name])


IN_PLACE = frozenset(
    ("activations", "arithmetic", "bits", "comparison", "functions", "logic", "special functions", "scans")
)  # the groups whose results have the shape of what they are computed from
IN_PLACE_TOO = ("masked_fill", "scatter_add", "index_add", "index_put", "tril", "triu", "bitwise_not")


def in_place(name: str, function: Callable[..., Any], operator: bool = False) -> Callable[..., Tensor]:
    """A method that puts what a function gives for a tensor in its place."""

    def assign(self: Tensor, *args: Any, **given: Any) -> Tensor:
        result: Tensor = function(self, *args, **given)
        if operator and windows.sources(self) and windows.is_assigned_back():
            return result
        if result.dtype.is_bool and result.dtype is not self.dtype:
            result = result.to(self.dtype)  # x.eq_(1)
        return self._replace(result, name)

    assign.__name__ = assign.__qualname__ = f"{name}_"
    assign.__doc__ = f"{name} in place; gives itself."
    return assign


for _op in TABLE.values():
    if _op.name in IN_PLACE_TOO or (_op.group in IN_PLACE and _op.public):
        for _name in (_op.name, *_op.aliases):
            if hasattr(Tensor, _name):
                setattr(Tensor, f"{_name}_", in_place(_name, FUNCTIONS[_name]))

for _operator, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("pow", "pow"),
                         ("floordiv", "floor_divide"), ("mod", "remainder"), ("and", "bitwise_and"),
                         ("or", "bitwise_or"), ("xor", "bitwise_xor")):  # fmt: skip
    setattr(Tensor, f"__i{_operator}__", in_place(_name, FUNCTIONS[_name], operator=True))
