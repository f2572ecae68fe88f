"""The table of oracles: for each op that a user can call, what it means, said a second time and by another route.

An oracle takes the user's own arguments (arrays where tensors stand, widened to 64 bits) and gives an array, or a
tuple of them, in any dtype that holds the answer. Where the answer is not unique, or is a draw, it is marked
`judges`: the oracle is given the results first and asserts what must hold of them. The dtype of the results is said
apart, by one of the rules below, which are docs/tensors.md ("Dtypes") written down once more, without
`eshkol.ops.dtypes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from eshkol.ops.row import Sample

DtypeRule = Callable[["Call"], str]


@dataclass(frozen=True)
class Call:
    """One call of an op: the arrays among its arguments, as the user gave them, and all arguments by name."""

    arrays: tuple[np.ndarray, ...]
    given: dict[str, Any]


@dataclass(frozen=True)
class Oracle:
    """What an op gives (`function`), in which dtypes (one rule for all results, or one for each), tried on what."""

    function: Callable[..., Any]
    dtypes: tuple[DtypeRule, ...] | DtypeRule
    more: tuple[Sample, ...] = ()  # cases besides the row's own and those that its signature suggests
    fixed: frozenset[str] = frozenset()  # parameters that cannot be varied while the others stay
    judges: bool = False
    tolerance: float = 1.0
    floor: float = 0.0  # the size of what cancels on the way to a result near 0, where it is not that of the result


ORACLES: dict[str, Oracle] = {}


def oracle(
    *names: str, dtype: Any = None, more: Iterable[Sample] = (), fixed: Sequence[str] = (), judges: bool = False,
    tolerance: float = 1.0, floor: float = 0.0,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Enter a function as the oracle of ops."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            assert name not in ORACLES, f"two oracles for {name}"
            ORACLES[name] = Oracle(function, dtype or meet, tuple(more), frozenset(fixed), judges, tolerance, floor)
        return function

    return enter


# --- in which dtype two meet ------------------------------------------------------------------------

_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def name_of(dtype: Any) -> str:
    return "bfloat16" if dtype == ml_dtypes.bfloat16 else "bool" if dtype == np.bool_ else np.dtype(dtype).name


def _kind(name: str) -> int:
    return 2 if name == "bfloat16" else _KIND[np.dtype(name).kind]


def _bits(name: str) -> int:
    return 16 if name == "bfloat16" else 8 * np.dtype(name).itemsize


def met(one: str, other: str) -> str:
    """bool < integer < float < complex; of one kind the wider, signed where signs differ."""
    if one == other:
        return one
    if _kind(one) != _kind(other):
        low, high = sorted((one, other), key=_kind)
        return "complex128" if (low, high) == ("float64", "complex64") else high
    if {one, other} == {"float16", "bfloat16"}:
        return "float32"
    if one.startswith("uint") != other.startswith("uint"):
        unsigned, signed = (one, other) if one.startswith("uint") else (other, one)
        assert unsigned != "uint64", "uint64 meets no signed integer"
        return signed if _bits(signed) > _bits(unsigned) else f"int{2 * _bits(unsigned)}"
    return max(one, other, key=_bits)


def meeting(arrays: Iterable[np.ndarray]) -> str:
    return reduce(met, (name_of(x.dtype) for x in arrays))


# --- rules ------------------------------------------------------------------------------------------


def meet(call: Call) -> str:
    return meeting(call.arrays)


def number(call: Call) -> str:
    """Arithmetic on bools counts in int64."""
    return "int64" if meet(call) == "bool" else meet(call)


def floating(call: Call) -> str:
    """Functions make floats of integers and bools: float32."""
    return meet(call) if _kind(meet(call)) > 1 else "float32"


def first(call: Call) -> str:
    return name_of(call.arrays[0].dtype)


def last(call: Call) -> str:
    return name_of(call.arrays[-1].dtype)


def nth(k: int) -> DtypeRule:
    """The dtype of one input."""
    return lambda call: name_of(call.arrays[k].dtype)


def second(call: Call) -> str:
    return name_of(call.arrays[1].dtype)


def truth(call: Call) -> str:
    return "bool"


def place(call: Call) -> str:
    """Positions and counts."""
    return "int64"


def summed(call: Call) -> str:
    """Sums of integers and bools are 64 bits wide."""
    found = first(call)
    return "uint64" if found.startswith("uint") else found if _kind(found) > 1 else "int64"


def real_of(rule: DtypeRule) -> DtypeRule:
    """The dtype of parts and moduli of complex numbers."""
    return lambda call: {"complex64": "float32", "complex128": "float64"}.get(rule(call), rule(call))


def complex_of(rule: DtypeRule) -> DtypeRule:
    """The complex dtype whose parts hold the numbers."""
    return lambda call: "complex128" if rule(call) in ("float64", "complex128") else "complex64"


def given(default: DtypeRule | str) -> DtypeRule:
    """What the argument `dtype` says."""

    def rule(call: Call) -> str:
        asked = call.given.get("dtype")
        if asked is not None:
            return {"float": "float32", "int": "int64"}.get(asked, asked)
        return default if isinstance(default, str) else default(call)

    return rule


# --- what oracles are written with ------------------------------------------------------------------


def every(shape: Sequence[int], element: Callable[[tuple[int, ...]], Any]) -> np.ndarray:
    """The array whose element at each index is that of a function."""
    found = np.empty(tuple(shape), object)
    for index in np.ndindex(*found.shape):
        found[index] = element(index)
    return found


def normal_axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def normal_axes(axis: Any, rank: int) -> list[int]:
    """Axes as numbers from 0 on; None is all of them."""
    if axis is None:
        return list(range(rank))
    return sorted(normal_axis(k, rank) for k in ([axis] if isinstance(axis, int) else axis))


def lines(x: np.ndarray, axis: Any, keepdims: bool, of_line: Callable[[list[Any]], Any]) -> np.ndarray:
    """For each place outside some axes, what a function makes of the elements along them, in order."""
    gone = normal_axes(axis, x.ndim)
    shape = [1 if k in gone else n for k, n in enumerate(x.shape)]
    inside = [x.shape[k] for k in gone]

    def element(index: tuple[int, ...]) -> Any:
        elements = []
        for within in np.ndindex(*inside):
            at = list(index)
            for k, i in zip(gone, within, strict=True):
                at[k] = i
            elements.append(x[tuple(at)].item())
        return of_line(elements)

    found = every(shape, element)
    return found if keepdims else found.reshape([n for k, n in enumerate(x.shape) if k not in gone])


def along(x: np.ndarray, axis: int, of_line: Callable[[list[Any]], Sequence[Any]]) -> np.ndarray:
    """The array in which every line along an axis is replaced by what a function makes of it (of any length)."""
    axis = normal_axis(axis, x.ndim)
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    made = {}
    length = len(of_line([0] * x.shape[axis])) if x.size == 0 else None
    for index in np.ndindex(*before, *behind):
        at = (*index[:axis], slice(None), *index[axis:])
        made[index] = list(of_line([v.item() for v in x[at]]))
        length = len(made[index])
    return every((*before, length or 0, *behind), lambda i: made[(*i[:axis], *i[axis + 1 :])][i[axis]])


# --- comparing --------------------------------------------------------------------------------------

EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON |= {"complex64": EPSILON["float32"], "complex128": EPSILON["float64"]}


def wide(x: Any) -> Any:
    """An argument as oracles take it: numbers in 64 bits, so that they are exact."""
    if isinstance(x, list):
        return [wide(y) for y in x]
    if not isinstance(x, np.ndarray) or x.dtype == np.bool_:
        return x
    if x.dtype.kind in "iu":
        return x.astype(np.int64)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def settled(wanted: Any, name: str) -> np.ndarray:
    """An oracle's answer as an array: exact integers modulo what the dtype holds, floats in 64 bits."""
    array = np.asarray(wanted)
    numbers = [v.item() if isinstance(v, np.generic) else v for v in array.ravel()]
    if name == "bool":
        found = np.array([bool(v) for v in numbers], np.bool_)
    elif _kind(name) == 1:
        size = 1 << _bits(name)
        wrapped = [int(v) % size for v in numbers]
        signed = not name.startswith("uint")
        found = np.array([v - size if signed and v >= size // 2 else v for v in wrapped], name)
    elif _kind(name) == 2:
        found = np.array([float(v) for v in numbers], np.float64)
    else:
        found = np.array([complex(v) for v in numbers], np.complex128)
    return found.reshape(array.shape)


def agree(got: np.ndarray, wanted: Any, tolerance: float = 1.0, floor: float = 0.0, epsilon: float = 0.0) -> None:
    """Equal, or within a few units of the last place of the result's own dtype (or of a wider one); NaN equals NaN."""
    name = name_of(got.dtype)
    answer = settled(wanted, name)
    assert got.shape == answer.shape, f"shape {got.shape}, not {answer.shape}"
    if _kind(name) < 2:
        np.testing.assert_array_equal(got, answer)
        return
    finite = answer[np.isfinite(answer)]
    scale = float(np.max(np.abs(finite), initial=floor))
    unit = max(EPSILON[name], epsilon) * tolerance
    np.testing.assert_allclose(got.astype(answer.dtype), answer, rtol=16 * unit, atol=8 * unit * scale)
