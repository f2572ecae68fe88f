"""Contestants of a row: its ways on tensors of their libraries, checked against each other, and timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import eshkol as ek
from bench import harness, peers
from bench.every.row import JAX, LIBRARIES, NUMPY, OURS, TORCH, OverModule, Row
from bench.models import leaves

TURNS = 5
HOPELESS = 2.5  # peers that take so many times as long as the best one are not timed further
PAUSES = {NUMPY: 0.01, TORCH: 0.05}  # seconds that a library's threads go on waiting busily after a call
FLOATS = {"f32": np.float32, "f64": np.float64, "c64": np.float32, "i64": np.float32}

Call = Callable[[], Any]


@cache
def module(who: str) -> Any:
    """Where a library has its functions; None where it is not installed."""
    if who == OURS:
        return ek
    if who == NUMPY:
        return np
    if who == TORCH:
        return peers.torch()
    found = peers.jax()
    if found:
        found.config.update("jax_enable_x64", True)
        found.config.update("jax_default_matmul_precision", "float32")
    return found and found.numpy


def contestants(row: Row) -> dict[str, Call]:
    """A call for each library that has a way and is installed; it gives results that are computed."""
    arrays = [_typed(a, row.dtype) for a in row.arrays()]
    return {who: _call(who, row, arrays) for who in LIBRARIES if who in row.ways and module(who) and _has(who, row)}


def way(row: Row, who: str) -> Callable[..., Any]:
    """How a library computes a row: a function of its tensors, without a step of ours in a call."""
    found = row.ways[who]
    return partial(found.function, module(who)) if isinstance(found, OverModule) else found


def _has(who: str, row: Row) -> bool:
    return who != NUMPY or (row.dtype != "bf16" and not row.gradient)


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    """Floats in the row's dtype; those of bf16 rows are what bf16 holds, as f32."""
    if dtype == "bf16" and array.dtype.kind == "f":
        bits = array.astype(np.float32).view(np.uint32)
        return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    if array.dtype.kind == "f":
        return array.astype(FLOATS[dtype])
    return array.astype(np.complex64) if array.dtype.kind == "c" else array


def _given(who: str, array: np.ndarray, dtype: str) -> Any:
    """An array as the library's own."""
    half = dtype == "bf16" and array.dtype.kind == "f"
    if who == OURS:
        made = ek.tensor(array)
        return (made.to(ek.bfloat16) if half else made).realize()
    if who == TORCH:
        tensor = module(who).from_numpy(array.copy())
        return tensor.bfloat16() if half else tensor
    if who == JAX:
        return module(who).asarray(array, dtype="bfloat16" if half else array.dtype)
    return array


def _call(who: str, row: Row, arrays: Sequence[np.ndarray]) -> Call:
    given, code = [_given(who, a, row.dtype) for a in arrays], way(row, who)
    if row.gradient:
        return _pullback(who, row, given, [a.dtype.kind in "fc" for a in arrays])
    if who == OURS:
        if not row.compiles:
            return lambda: [x.realize() for x in leaves(code(*given))]
        ours = ek.jit(code)
        return lambda: ours(*given)
    if who == JAX:
        theirs, wait = (peers.jax().jit(code) if row.compiles else code), peers.jax().block_until_ready
        return lambda: wait(theirs(*given))
    if who == TORCH:
        torch = module(who)

        def without_tape() -> Any:
            with torch.no_grad():
                return code(*given)

        return without_tape
    return lambda: code(*given)


def _pullback(who: str, row: Row, given: list[Any], floats: list[bool]) -> Call:
    """The row's result, and the cotangents of its floats."""
    wanted = [k for k, real in enumerate(floats) if real and k not in row.static]
    code, seed = way(row, who), _seed(row, who)
    if who == TORCH:
        torch = module(who)
        leaves_of = [given[k].requires_grad_() for k in wanted]

        def pulled() -> Any:
            value = code(*given)
            return value.detach(), torch.autograd.grad(value, leaves_of, seed)

        return pulled
    library = ek if who == OURS else peers.jax()

    def step(every: list[Any], seed: Any) -> Any:
        def of(*chosen: Any) -> Any:
            found = dict(zip(wanted, chosen, strict=True))
            return code(*(found.get(k, x) for k, x in enumerate(every)))

        value, pull = library.vjp(of, *(every[k] for k in wanted))
        return value, pull(seed)

    compiled = library.jit(step)
    if who == OURS:
        return lambda: compiled(given, seed)
    return lambda: library.block_until_ready(compiled(given, seed))


def _seed(row: Row, who: str) -> Any:
    """The cotangent of a row's result, as the library's own."""
    given = [_given(OURS, _typed(a, row.dtype), row.dtype) for a in row.arrays()]
    shape = ek.eval_shape(way(row, OURS), *given).shape
    return _given(who, _typed(np.random.default_rng(1).standard_normal(shape), row.dtype), row.dtype)


# --- agreement ------------------------------------------------------------------------------------


def agreeing(row: Row, calls: Mapping[str, Call], failed: dict[str, str]) -> dict[str, Call]:
    """Those that give what we give; the others go to `failed`, and all do if we fail."""
    results: dict[str, list[np.ndarray]] = {}
    for who, call in calls.items():
        try:
            found = [_array(x) for x in leaves(call())]
            results[who] = found if row.agrees is None else [np.asarray(row.agrees(found))]
        except Exception as error:
            failed[who] = f"{type(error).__name__}: {error}".splitlines()[0]
    if OURS not in results:
        return {}
    for who, found in results.items():
        if why := _difference(results[OURS], found, row.tolerance):
            failed[who] = why
    return {who: calls[who] for who in results if who not in failed}


def _array(result: Any) -> np.ndarray:
    if hasattr(result, "detach"):
        result = result.detach()
    if "bfloat16" in str(getattr(result, "dtype", "")):
        result = result.astype("float32") if hasattr(result, "astype") else result.float()
    return np.asarray(result)


def _difference(ours: list[np.ndarray], theirs: list[np.ndarray], tolerance: float) -> str:
    """In words; nothing if there is none."""
    shapes = [[list(a.shape) for a in found] for found in (ours, theirs)]
    if shapes[0] != shapes[1]:
        return f"its results have shapes {shapes[1]}, ours {shapes[0]}"
    for a, b in zip(ours, theirs, strict=True):
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        largest = float(np.abs(y).max(initial=0)) or 1.0
        away = float(np.abs(x - y).max(initial=0)) / largest
        if not away <= tolerance:
            return f"its result is {away:.2g} of the largest element away from ours, {tolerance:g} allowed"
    return ""


# --- time -----------------------------------------------------------------------------------------


def timed(calls: Mapping[str, Call], budget: float) -> dict[str, float]:
    """Seconds of a call of each, taking turns: the median of the turns' medians.

    A turn is a burst of calls, the first of which is not counted, after a pause in which the threads of whoever was
    before fall asleep. Peers that are far behind the best one have no turns.
    """
    clock = harness.clock
    first: dict[str, float] = {}
    for who, call in calls.items():
        first[who] = min(_once(call, clock) for _ in range(2))
        time.sleep(PAUSES.get(who, 0.0))
    best = min((s for who, s in first.items() if who != OURS), default=0.0)
    racing = [who for who in calls if who == OURS or first[who] <= HOPELESS * best]
    medians: dict[str, list[float]] = {who: [] for who in racing}
    spent, last = dict.fromkeys(racing, 0.0), ""
    for _ in range(TURNS):
        for who in racing:
            if len(medians[who]) >= 2 and spent[who] > budget:
                continue
            time.sleep(PAUSES.get(last, 0.0))
            burst = _burst(calls[who], clock, budget / TURNS)
            medians[who].append(statistics.median(burst))
            spent[who] += sum(burst)
            last = who
    return {who: statistics.median(medians[who]) if who in medians else first[who] for who in calls}


def _once(call: Call, clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def _burst(call: Call, clock: Callable[[], float], least: float) -> list[float]:
    call()
    times, until = [], clock() + least
    while True:
        start = clock()
        call()
        end = clock()
        times.append(end - start)
        if end > until:
            return times
