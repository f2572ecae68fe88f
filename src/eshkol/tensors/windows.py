"""What NumPy and PyTorch would give as a window into a tensor (`x[0]`, `x.T`, `x.reshape(...)`), changed in place.

Here every result is a value of its own, so `z = x[0]; z.add_(1)` would leave x as it is, where those who know the
others expect it to change. So each such result remembers, weakly, the tensors that it would be a window into (`note`),
and a change in place is refused while one of them is still there for someone to see (`refuse`). `x[0] += 1` is an
assignment to elements of x, and goes on. And `v, i = x.max(axis=1)`, which gives values alone, in NumPy's words, is not
to unpack two rows; nor is a tensor equal to no list, or the gradient of what keeps none None, without a word.
"""

from __future__ import annotations

import dis
import sys
import weakref
from typing import Any

from eshkol.errors import TensorError
from eshkol.graph.node import PACKAGE, Node, here
from eshkol.ops.operators import Operators
from eshkol.ops.row import Op
from eshkol.support.warning import warn
from eshkol.tensors.handle import Handle

_STORED = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}  # the latter since 3.12
_UNPACKED = dis.opmap["UNPACK_SEQUENCE"]
_BETWEEN = {dis.opmap[name] for name in ("CACHE", "SWAP", "ROT_TWO", "ROT_THREE", "NOP") if name in dis.opmap}


def note(op: Op, result: Any, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Let results remember what they would be windows into, or which op gives the places that belong to them."""
    if op.pairs:
        if result.shape[:1] == (2,):
            result._pair = op
        return
    source: Any = args[0] if args else next(iter(given.values()))
    if not isinstance(source, Operators):  # an array: nothing but the result has the tensor of it
        return
    if op.name == "getitem":
        index = args[1] if len(args) > 1 else given["index"]
        if type(index) is not int and type(index) is not slice and is_chosen(index):
            return
    for made in result if type(result) is tuple or type(result) is list else (result,):
        look_through(made, source)


def look_through(result: Any, source: Any) -> None:
    """Let a result remember a tensor that it would be a window into."""
    earlier = getattr(source, "_window", None) or ()
    result._window = (weakref.ref(source), *[ref for ref in earlier if ref() is not None])


def sources(tensor: Handle) -> tuple[weakref.ref[Handle], ...]:
    found: tuple[weakref.ref[Handle], ...] = getattr(tensor, "_window", None) or ()
    return found


def is_chosen(index: Any) -> bool:
    """Whether an index takes elements by arrays or masks: then NumPy and PyTorch copy too."""
    return any(isinstance(x, Node | bool) for x in (index if isinstance(index, tuple) else (index,)))


def refuse(tensor: Handle, what: str) -> None:
    """Refuse a change in place that others would see, were the tensor a window."""
    if any(ref() is not None for ref in sources(tensor)):
        raise TensorError(
            f"{what} in place would change this {tensor.dtype}{list(tensor.shape)} alone, and not the tensor that it "
            "was taken from: a slice, a transpose or another shape of a tensor is a value of its own", span=here(),
            hint="assign to the elements of the tensor itself (x[0] += 1), or say z = z + 1, or z = x[0].clone() first",
        )  # fmt: skip


def is_assigned_back() -> bool:
    """Whether the operator in place that asks is that of `x[i] += y`, whose result goes into x right away."""
    frame: Any = sys._getframe(2)
    code = frame.f_code.co_code
    place = frame.f_lasti + 2
    while place < len(code) and code[place] in _BETWEEN:
        place += 2
    return bool(place < len(code) and code[place] in _STORED)


def refuse_unpacking(tensor: Handle) -> None:
    """Refuse `v, i = x.max(axis=1)`: two rows are not values and places."""
    op = getattr(tensor, "_pair", None)
    if op is None:
        return
    frame: Any = sys._getframe(2)
    code, place = frame.f_code.co_code, frame.f_lasti
    if code[place] == _UNPACKED and code[place + 1] == 2 and not frame.f_code.co_filename.startswith(PACKAGE):
        raise TensorError(
            f"{op.name} gives the values alone, {tensor.dtype}{list(tensor.shape)}: this would unpack its two rows, "
            "not values and places", span=here(),
            hint=f"values and places: v, i = x.{op.name}(dim=1); the rows: a, b = list(m)",
        )  # fmt: skip


def comparable(result: Any, other: object) -> Any:
    """The result of == or !=; Python would call a tensor and a list unequal, whatever they hold."""
    if result is NotImplemented and isinstance(other, list | tuple):
        if sys._getframe(2).f_code.co_filename.startswith(PACKAGE):  # of ours, which mean Python's equality
            return result
        kind = type(other).__name__
        raise TypeError(f"a tensor and a {kind} are not compared: make a tensor of the {kind}, with ek.tensor(...)")
    return result


def warn_of_no_leaf() -> None:
    """Say that a gradient is None because nothing keeps it."""
    warn("the gradient of a tensor that is no leaf is not kept: look at a leaf's, or use ek.grad with respect to it")
