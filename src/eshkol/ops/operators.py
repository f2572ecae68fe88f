"""Python's operators on values, each one op of the table.

`Operators` stands under both the nodes that rules compute with and the tensors that users hold, so `x * y + 1` means
the same in a derivative rule and in a program. Equality is not here: nodes are compared by identity, and only tensors
give `==` a meaning of its own.
"""

from __future__ import annotations

from typing import Any

TABLE: dict[str, Any] = {}  # the op table, which `row.py` fills; it is here because operators look ops up by name


class Operators:
    """Arithmetic, order and bit operations."""

    __slots__ = ()

    def _operate(self, name: str, *inputs: Any) -> Any:
        """Carry out the op of the table with this name."""
        return TABLE[name](*inputs)

    def __add__(self, other: Any) -> Any:
        return self._operate("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._operate("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._operate("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._operate("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._operate("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._operate("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._operate("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._operate("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._operate("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._operate("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._operate("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._operate("remainder", other, self)

    def __pow__(self, other: Any) -> Any:
        return self._operate("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._operate("pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return self._operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._operate("matmul", other, self)

    def __and__(self, other: Any) -> Any:
        return self._operate("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._operate("bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._operate("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._operate("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._operate("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._operate("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._operate("shift_left", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._operate("shift_left", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._operate("shift_right", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._operate("shift_right", other, self)

    def __lt__(self, other: Any) -> Any:
        return self._operate("less", self, other)

    def __le__(self, other: Any) -> Any:
        return self._operate("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._operate("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._operate("greater_equal", self, other)

    def __neg__(self) -> Any:
        return self._operate("neg", self)

    def __abs__(self) -> Any:
        return self._operate("absolute", self)

    def __invert__(self) -> Any:
        return self._operate("bitwise_not", self)
