"""One Python function per row of the op table, one method of `Tensor` for those that have it, and those in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from eshkol.ops import TABLE, calls
from eshkol.ops.row import Op
from eshkol.tensors import windows
from eshkol.tensors.value import Tensor, operate


def frontend(op: Op, name: str) -> Callable[..., Any]:
    """The Python function of a row."""

    def function(*args: Any, **given: Any) -> Any:
        return operate(op, args, given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = calls.help_text(op)
    vars(function).update(__signature__=calls.signature(op), row=op)
    function.__module__ = "eshkol"
    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: frontend(op, name) for op in TABLE.values() if op.public for name in (op.name, *op.aliases)
}

SPREAD = ("reshape", "expand", "permute")  # whose numbers methods also take one by one: x.reshape(2, 3)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def method(self: Tensor, *args: Any, **given: Any) -> Any:
        together = args and all(type(a) is int for a in args)
        return function(self, args, **given) if together else function(self, *args, **given)

    first, together, *_ = signature(function).parameters.values()
    numbers = together.replace(kind=together.VAR_POSITIONAL, annotation=calls.Type("int"), default=together.empty)
    vars(method)["ways"] = signature(function), signature(function).replace(parameters=[first, numbers])
    return method


for _op in TABLE.values():
    if _op.method and _op.inputs and not _op.inputs[0].many and _op.public:
        for _name in (_op.name, *_op.aliases):
            if not hasattr(Tensor, _name):
                setattr(Tensor, _name, _spread(FUNCTIONS[_name]) if _op.name in SPREAD else FUNCTIONS[_name])


def _in_place(name: str, operator: bool) -> Callable[[Tensor, Any], Tensor]:
    def assign(self: Tensor, other: Any) -> Tensor:
        result: Tensor = operate(TABLE[name], (self, other), {})
        if operator and windows.sources(self) and windows.is_assigned_back():
            return result
        return self._replace(result, name)

    assign.__doc__ = f"{name} in place; gives itself."
    return assign


for _operator, _name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("pow", "pow"),
                         ("floordiv", "floor_divide"), ("mod", "remainder"), ("and", "bitwise_and"),
                         ("or", "bitwise_or"), ("xor", "bitwise_xor")):  # fmt: skip
    setattr(Tensor, f"__i{_operator}__", _in_place(_name, True))
    setattr(Tensor, f"{_name}_", _in_place(_name, False))
