"""Whether two ways to compute a graph agree: interpretations, values to try, and how large a difference may be.

Floats that are computed in another order differ by rounding, and cancellation, a comparison or a floor makes rounding
as large as one likes. So a difference that is more than a few units in the last place is weighed: the graph is
interpreted again, each value changed by about as much as rounding would, and what moves a result as far as the
difference is rounding too. A mistake of a compiler moves results much farther. Integers and bools are equal, or they
hang on such a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eshkol.errors import EshkolError
from eshkol.graph.function import Function
from eshkol.graph.interpret import computed
from eshkol.graph.node import Node, host_array, topological
from eshkol.ops import dtypes
from eshkol.ops.row import STRUCTURE, Macro, Nested
from eshkol.schedule.check.switch import CHECKS

Array = npt.NDArray[Any]
Given = Mapping[Node, Any]

REFUSED = (EshkolError, ArithmeticError, ValueError, IndexError, TypeError, AssertionError, np.linalg.LinAlgError)
"""What the interpreter stops with where values do not fit a graph."""

NOISY_RUNS = 4
WIDE = 32  # bits from which on a float is no half


class TooLong(EshkolError):
    """A loop goes on for much longer than it did on the values at hand."""


@dataclass(frozen=True)
class Difference:
    """Where two results differ most."""

    result: int  # which of them
    index: tuple[int, ...]
    expected: Any
    found: Any

    def __str__(self) -> str:
        at = f" at {list(self.index)}" if self.index else ""
        return f"result {self.result}{at} is {self.found}, the interpreter says {self.expected}"


class Interpretation:
    """Graphs computed node by node, as their rows' references say. Values that were met stay to be looked at."""

    def __init__(self, noise: np.random.Generator | None = None, most: int | None = None) -> None:
        """With `noise`, every float is changed a little; `most` bounds the rounds of loops."""
        self.values: dict[Node, Any] = {}  # of what stands in a body, in the last round
        self.rounds = 0
        self._noise, self._most = noise, most
        self._orders: dict[Function, list[Node]] = {}

    def __call__(self, outputs: Sequence[Node], given: Given) -> list[Array]:
        return self._evaluate(outputs, given, _order(outputs, given))

    def _evaluate(self, outputs: Sequence[Node], given: Given, order: Sequence[Node]) -> list[Array]:
        found = dict(given)
        for node in order:
            if node not in found:
                found[node] = host_array(node) if node.data is not None else self._computed(node, found)
        self.values.update(found)
        return [found[node] for node in outputs]

    def _computed(self, node: Node, found: Given) -> Any:
        arrays = [found[x] for x in node.inputs]
        op = node.op
        # With several inputs, or as an array instruction, something is computed: a product, a transform.
        passed_on = op.group == STRUCTURE and len(arrays) < 2 and not isinstance(op.lower, Macro)
        moves = op.moves and not _narrows(node)
        exact = self._noise is None or passed_on or moves or isinstance(op.lower, Nested)
        if not exact and not op.elementwise:  # a sum rounds in proportion to what it adds up
            arrays = [_shaken(a, self._noise) for a in arrays]
        value = computed(node, arrays, self._run)
        if exact:
            return value
        return _shaken(value, self._noise) if node.outs is None else tuple(_shaken(v, self._noise) for v in value)

    def _run(self, function: Any, arrays: Sequence[Any]) -> list[Any]:
        self.rounds += 1
        if self._most is not None and self.rounds > self._most:
            raise TooLong("a loop takes longer than on the values at hand")
        given = dict(zip(function.params, arrays, strict=True))
        order = self._orders.get(function)
        if order is None:
            order = self._orders[function] = _order(function.results, given)
        return self._evaluate(function.results, given, order)


def _order(outputs: Sequence[Node], given: Given) -> list[Node]:
    return topological(outputs, through=lambda x: () if x in given or x.data is not None else x.inputs)


def _narrows(node: Node) -> bool:
    """Whether a node rounds floats to 16 bits: what was rounded before, however little, may be on the other side."""
    return node.outs is None and node.dtype.is_float and node.dtype.bits < WIDE <= node.inputs[0].dtype.bits


def _units(dtype: np.dtype[Any]) -> float:
    """The gap between 1 and the next number of a dtype; 0 of those that are exact."""
    given = dtypes.of(dtype)
    return given.epsilon if given.differentiable else 0.0


def _is_half(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize * 8 < WIDE


def _shaken(array: Any, noise: Any) -> Any:
    """Floats, each changed by a few units in the last place."""
    unit = _units(array.dtype)
    if not unit:
        return array
    far = unit * (1 if _is_half(array.dtype) else 4)
    factor = 1 + far * noise.uniform(-1, 1, array.shape)
    with np.errstate(all="ignore"):
        return np.asarray(array * factor).astype(array.dtype)  # whatever it was, times float64 is as wide


# --- differences ----------------------------------------------------------------------------------


def difference(
    outputs: Sequence[Node], given: Given, expected: Sequence[Any], found: Sequence[Any]
) -> Difference | None:
    """Where results that were found differ from those of the interpreter by more than rounding; None if nowhere."""
    far = [_apart(e, f) for e, f in zip(expected, found, strict=True)]
    if not any(bad.any() for bad in far):
        return None
    noisy = _noisy(outputs, given)
    if noisy is None:  # so little changes whether there is a result at all
        CHECKS.counts.sensitive += 1
        return None
    worst: Difference | None = None
    for k, (bad, e, f) in enumerate(zip(far, expected, found, strict=True)):
        if bad.any():
            bad &= ~_rounding(e, f, [run[k] for run in noisy])
        if bad.any() and worst is None:
            off = np.where(bad, np.abs(_wide(e) - _wide(f)), -1.0)
            off = np.where(bad & ~np.isfinite(off), np.inf, off)
            index = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
            worst = Difference(k, index, e[index], f[index])
    CHECKS.counts.sensitive += worst is None
    return worst


def _wide(array: Any) -> Any:
    """Numbers in which differences can be told."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _apart(expected: Any, found: Any) -> Any:
    """Where results differ by more than a few units in the last place."""
    assert expected.shape == found.shape, f"{found.shape} instead of {expected.shape}"
    assert expected.dtype == found.dtype, f"{found.dtype} instead of {expected.dtype}"
    unit = _units(expected.dtype)
    if not unit:
        return np.asarray(expected != found)
    with np.errstate(all="ignore"):
        e, f = _wide(expected), _wide(found)
        size = np.abs(e)
        largest = np.max(size, where=np.isfinite(size), initial=0.0)
        allowed = unit * ((8 if _is_half(expected.dtype) else 64) * size + 2 * largest) + _least(expected.dtype)
        same = (e == f) | (np.isnan(e) & np.isnan(f)) | (np.abs(e - f) <= allowed)
    return np.asarray(~same)


def _least(dtype: np.dtype[Any]) -> float:
    """What is lost of numbers too small for a dtype."""
    return 1e-300 if dtype.itemsize >= 8 and dtype != np.complex64 else 1e-36 if not _is_half(dtype) else 1e-7


def _noisy(outputs: Sequence[Node], given: Given) -> list[list[Any]] | None:
    """Results where all on the way is changed a little; None where there are none then."""
    rounds = Interpretation()
    rounds(outputs, given)
    found = []
    for seed in range(NOISY_RUNS):
        try:
            found.append(Interpretation(np.random.default_rng(seed), 4 * rounds.rounds + 64)(outputs, given))
        except REFUSED:
            return None
    return found


def _rounding(expected: Any, found: Any, noisy: Sequence[Any]) -> Any:
    """Where a difference is what rounding makes of a result."""
    if not _units(expected.dtype):
        return np.any([n != expected for n in noisy], axis=0)
    with np.errstate(all="ignore"):
        e, f, shaken = _wide(expected), _wide(found), [_wide(n) for n in noisy]
        moved = np.max([np.abs(n - e) for n in shaken], axis=0)
        finite = np.isfinite(moved)
        usual = np.mean(moved, where=finite) if finite.any() else 0.0
        near = np.abs(e - f) <= (8 if _is_half(expected.dtype) else 32) * (moved + usual)
        firm = np.all([(n == e) | (np.isnan(n) & np.isnan(e)) for n in shaken], axis=0)  # NaN or infinity at any rate
        return np.where(finite, near, ~firm)


# --- values to try --------------------------------------------------------------------------------


def drawn(array: Any, rng: np.random.Generator) -> Any:
    """Random values like those at hand: floats of their sizes and signs, integers that are among them.

    What is in order stays so, and integers that are (offsets, the starts of rows) stay as they are: who takes them may
    count on it.
    """
    if not array.size:
        return array
    flat = array.reshape(-1)
    in_order = array.ndim > 0 and array.shape[-1] > 1 and _in_order(array)
    if array.dtype.kind == "b":
        return (rng.permutation(flat) ^ (rng.random(flat.shape) < 0.2)).reshape(array.shape)
    unit = _units(array.dtype)
    if not unit:
        return array if in_order else rng.permutation(flat).reshape(array.shape)
    with np.errstate(all="ignore"):
        wide = _wide(rng.permutation(flat))
        size = np.abs(wide)
        usual = np.mean(size, where=np.isfinite(size)) if np.isfinite(size).any() else 1.0
        there = wide * rng.uniform(0.5, 1.5, wide.shape)
        instead = (usual or 1.0) * rng.random(wide.shape) * (rng.random(wide.shape) < 0.5)
        made = np.where(wide == 0, instead, there).astype(array.dtype).reshape(array.shape)
        return np.sort(made, axis=-1) if in_order else made


def _in_order(array: Any) -> bool:
    """Whether rows are as sorting leaves them: NaN comes last."""
    earlier, later = array[..., :-1], array[..., 1:]
    return bool(((later >= earlier) | (later != later)).all())


def finite(results: Sequence[Any]) -> bool:
    """Whether results are numbers."""
    return all(np.isfinite(_wide(r)).all() for r in results if _units(r.dtype))


Differs = Callable[[Sequence[Node], Sequence[Node], Sequence[Array]], Difference | None]
"""Whether a way to compute results of parameters differs from the interpreter on some values."""
