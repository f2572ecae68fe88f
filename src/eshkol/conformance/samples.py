"""Samples of the op table's rows: drawn as arrays, computed by the interpreter of the graph, and compared.

Comes in: a row with its samples. Goes out: arguments, results and the comparison within the row's tolerance. The same
samples give the same numbers in every run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Draw, Op, Sample

Array = np.ndarray[Any, Any]

TESTED = {
    "bool": [dtypes.bool_],
    "int": [*dtypes.INTEGERS],
    "float": [*dtypes.FLOATS],
    "complex": [*dtypes.COMPLEX],
}


def rows() -> list[Op]:
    """Every op that a user can call."""
    return [op for op in TABLE.values() if op.public]


def rng_of(*parts: Any) -> np.random.Generator:
    """The same numbers in every run, others for every test."""
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


def draw(spec: Draw, dtype: DType, rng: np.random.Generator) -> Array:
    """An array as the sample wants it, in the dtype under test where the sample leaves that open."""
    wanted = {
        "any": dtype,
        "int": dtypes.int64,
        "bool": dtypes.bool_,
        "float": dtype.real if dtype.differentiable else dtypes.float32,
        "complex": dtype.complex,
        "key": dtypes.uint32,
    }[spec.kind]
    if spec.make is not None:
        made = np.asarray(spec.make(rng))
        if wanted.is_complex or not np.iscomplexobj(made):
            return made.astype(wanted.numpy)
        return made.real.astype(wanted.numpy)
    if wanted.is_bool:
        return np.asarray(rng.random(spec.shape) < 0.5)
    if wanted.is_integer:
        low = max(int(np.ceil(spec.low)), 0 if not wanted.signed else -(2**31))
        return rng.integers(low, max(int(spec.high), low) + 1, spec.shape).astype(wanted.numpy)
    values = rng.uniform(spec.low, spec.high, spec.shape)
    if wanted.is_complex:
        values = values + 1j * rng.uniform(-1.0, 1.0, spec.shape)
    return np.asarray(values).astype(wanted.numpy)


def arguments(sample: Sample, dtype: DType, rng: np.random.Generator) -> list[Any]:
    """The sample's tensors as arrays; sequences of draws as lists of arrays; anything else as it is."""

    def one(arg: Any) -> Any:
        if isinstance(arg, Draw):
            return draw(arg, dtype, rng)
        if isinstance(arg, list):
            return [one(x) for x in arg]
        return arg

    return [one(arg) for arg in sample.args]


def arrays_in(args: list[Any]) -> list[Array]:
    """The arrays among arguments, flat."""
    found: list[Array] = []
    for arg in args:
        if isinstance(arg, np.ndarray):
            found.append(arg)
        elif isinstance(arg, list):
            found.extend(arrays_in(arg))
    return found


def refilled(args: list[Any], values: list[Any]) -> list[Any]:
    """The arguments with other things where the arrays were."""
    feed = iter(values)

    def one(arg: Any) -> Any:
        if isinstance(arg, np.ndarray):
            return next(feed)
        return [one(x) for x in arg] if isinstance(arg, list) else arg

    return [one(arg) for arg in args]


def as_buffer(array: Array) -> Node:
    return buffer(array, dtypes.of(array.dtype))


def flat(result: Any) -> list[Any]:
    """The results of an op as a list."""
    return [y for x in result for y in flat(x)] if isinstance(result, tuple | list) else [result]


def on_nodes(op: Op, args: list[Any], attrs: dict[str, Any]) -> list[Node]:
    """The op applied to nodes (or to arguments with arrays, which become buffers)."""
    nodes = refilled(args, [as_buffer(x) for x in arrays_in(args)])
    if not op.inputs:
        return flat(op.on(as_buffer(np.zeros(())), *args, **attrs))
    return flat(op(*nodes, **attrs))


def computed(op: Op, args: list[Any], attrs: dict[str, Any]) -> list[Array]:
    """What the row's rules give, every primitive by its reference."""
    return interpret.evaluate(on_nodes(op, args, attrs))


def cases(op: Op, kinds: tuple[str, ...] = ("bool", "int", "float", "complex")) -> Iterator[tuple[int, Sample, DType]]:
    """Every sample in every dtype of the kinds that the row takes."""
    for number, sample in enumerate(op.samples):
        for kind in op.dtypes:
            if kind in kinds:
                for dtype in TESTED[kind]:
                    if dtype.signed or not has_negative(sample):
                        yield number, sample, dtype


def has_negative(sample: Sample) -> bool:
    return any(isinstance(a, Draw) and a.high < 0 for a in sample.args)


def close(got: Any, wanted: Any, tolerance: float = 1.0, beside: float = 0.0) -> None:
    """Equal within a few units of the dtype that was computed in; NaN equals NaN.

    Rounding is that of the largest number, also of one that was computed beside them.
    """
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"shape {got.shape}, not {wanted.shape}"
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    # NumPy computes functions of small integers in float16, we in float32.
    epsilon = max(dtypes.of(x.dtype).epsilon for x in (got, wanted) if x.dtype.kind not in "biu")
    kind = np.complex128 if got.dtype.kind == "c" else np.float64
    got, wanted = got.astype(kind), wanted.astype(kind)
    finite = wanted[np.isfinite(wanted)]
    scale = float(np.max(np.abs(finite), initial=beside))
    np.testing.assert_allclose(got, wanted, rtol=16 * epsilon * tolerance, atol=8 * epsilon * tolerance * scale)
