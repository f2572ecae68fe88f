"""Every row of the op table against NumPy: values, derivatives of first and second order, vmap.

Everything is derived from the rows: a new op is tested because it is in the table. Values are computed by the rows'
NumPy references (`graph.interpret`); what the backends make of them is tested in tests/schedule.
"""

from __future__ import annotations

import numpy as np
import pytest
from op_harness import (
    arguments,
    arrays_in,
    as_buffer,
    cases,
    close,
    computed,
    expected,
    flat,
    refilled,
    rng_of,
    rows,
)

import eshkol as ek
from effort import FULL
from eshkol.graph import derive, interpret
from eshkol.graph.batch import batch
from eshkol.graph.node import Node, Scope, mark, placeholder
from eshkol.ops import dtypes
from eshkol.ops.row import Aval, NoDerivative, Op
from eshkol.tensors.functions import FUNCTIONS

OPS = {op.name: op for op in rows()}
STEP = 1e-3


@pytest.mark.parametrize("name", OPS)
def test_a_row_is_complete(name):
    op = OPS[name]
    assert op.doc.strip().endswith("."), "the documentation is a sentence"
    assert op.group
    assert op.samples, "there is a sample"
    assert op.composite or op.derivative is not None, "there is a derivative, or the statement that it has none"
    assert op.composite or (op.infer is not None and op.lower is not None)
    assert op.composite or op.elementwise or op.batch is not None, "there is a vmap rule"


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if not op.random])
def test_values_are_numpys(name):
    op = OPS[name]
    for number, sample, dtype in cases(op):
        args = arguments(sample, dtype, rng_of(name, number, dtype))
        got = computed(op, args, sample.attrs)
        wanted = expected(op, args, sample.attrs)
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            close(g, w, op.tolerance)


def smooth(op: Op) -> bool:
    return op.composite or not isinstance(op.derivative, NoDerivative)


def varying(args: list) -> list[int]:
    """The places of the arrays that have tangents."""
    return [k for k, x in enumerate(arrays_in(args)) if x.dtype.kind in "fc"]


class Along:
    """An op along a line through its arguments: a function of one number, with its derivative by the rules."""

    def __init__(self, op: Op, args: list, attrs: dict, rng: np.random.Generator) -> None:
        self.op, self.args, self.attrs = op, args, attrs
        self.arrays = arrays_in(args)
        self.places = varying(args)
        self.directions = {k: direction(self.arrays[k], rng) for k in self.places}

    def nodes(self, at: float = 0.0, scope: Scope | None = None) -> tuple[list[Node], list[Node]]:
        """(results, the inputs that vary) at a point of the line."""
        moved = [x + at * self.directions[k] if k in self.directions else x for k, x in enumerate(self.arrays)]
        inputs = [as_buffer(np.asarray(x)) for x in moved]
        if scope is not None:
            inputs = [mark(x, scope) if k in self.directions else x for k, x in enumerate(inputs)]
        return flat(self.op(*refilled(self.args, inputs), **self.attrs)), [inputs[k] for k in self.places]

    def value(self, at: float) -> list[np.ndarray]:
        return interpret.evaluate(self.nodes(at)[0])

    def slope(self, at: float = 0.0) -> list[np.ndarray]:
        """The derivative along the line, by the rules."""
        scope = Scope("grad", "test")
        outputs, inputs = self.nodes(at, scope)
        tangents = {x: as_buffer(self.directions[k]) for x, k in zip(inputs, self.places, strict=True)}
        found = derive.jvp(outputs, tangents, scope)
        return interpret.evaluate([derive.zeros(o) if t is None else t for t, o in zip(found, outputs, strict=True)])

    def pulled(self, at: float, cotangents: list[np.ndarray]) -> list[np.ndarray]:
        """The cotangents of the inputs, by the rules."""
        scope = Scope("grad", "test")
        outputs, inputs = self.nodes(at, scope)
        found = derive.vjp(outputs, inputs, scope)([as_buffer(c) if c is not None else None for c in cotangents])
        return interpret.evaluate([derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)])


def direction(like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    real = np.asarray(rng.uniform(-1, 1, like.shape))
    return (real + 1j * rng.uniform(-1, 1, like.shape) if like.dtype.kind == "c" else real).astype(like.dtype)


def difference(function) -> list[np.ndarray]:
    """The derivative at 0 of a list-valued function of one number, of fourth order."""
    near = [(a - b) / (2 * STEP) for a, b in zip(function(STEP), function(-STEP), strict=True)]
    far = [(a - b) / (4 * STEP) for a, b in zip(function(2 * STEP), function(-2 * STEP), strict=True)]
    return [(4 * n - f) / 3 for n, f in zip(near, far, strict=True)]


def agree(got: list, wanted: list, limit: float) -> None:
    for g, w in zip(got, wanted, strict=True):
        scale = max(1.0, float(np.max(np.abs(w), initial=0.0)))
        assert np.all(np.isfinite(g)), "a derivative is not finite"
        assert float(np.max(np.abs(g - w), initial=0.0)) < limit * scale


def smooth_cases(op: Op) -> list:
    kinds = [k for k in ("float", "complex") if k in op.dtypes]
    wide = (dtypes.float64, dtypes.complex128)
    return [(n, s, d) for n, s, d in cases(op, tuple(kinds)) if d in wide] if kinds else []


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if smooth(op) and not op.random])
def test_derivatives(name):
    """The JVP against finite differences; the VJP against the JVP; both again for the second derivative."""
    op = OPS[name]
    for number, sample, dtype in smooth_cases(op):
        rng = rng_of(name, number, dtype)
        args = arguments(sample, dtype, rng)
        line = Along(op, args, sample.attrs, rng)
        if not line.places:
            continue
        outputs = line.value(0.0)
        live = [k for k, x in enumerate(outputs) if x.dtype in (np.float64, np.complex128)]
        if not live:
            continue
        slope = line.slope()
        differences = difference(line.value)
        agree([slope[k] for k in live], [differences[k] for k in live], 1e-6)
        cotangents = [direction(x, rng) if k in live else None for k, x in enumerate(outputs)]
        pulled = line.pulled(0.0, cotangents)
        one = sum(float(np.real(np.sum(p * line.directions[k]))) for p, k in zip(pulled, line.places, strict=True))
        other = sum(float(np.real(np.sum(cotangents[k] * slope[k]))) for k in live)
        assert abs(one - other) < 1e-8 * max(1.0, abs(one)), "the transpose of the derivative is not its JVP's"
        if FULL or number < 2:  # it is made of the same rules, which every sample has been through
            agree_second(line, cotangents)


def agree_second(line: Along, cotangents: list) -> None:
    """The derivative of the VJP along the line, against differences of the VJP."""
    scope = Scope("grad", "outer")
    outputs, inputs = line.nodes(0.0, scope)
    inner = Scope("grad", "inner")
    marked = [mark(x, inner) for x in inputs]
    feed = dict(zip(line.places, marked, strict=True))
    arrays = [feed.get(k, as_buffer(x)) for k, x in enumerate(line.arrays)]
    outputs = flat(line.op(*refilled(line.args, arrays), **line.attrs))
    found = derive.vjp(outputs, marked, inner)([as_buffer(c) if c is not None else None for c in cotangents])
    grads = [derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)]
    tangents = {x: as_buffer(line.directions[k]) for x, k in zip(inputs, line.places, strict=True)}
    second = derive.jvp(grads, tangents, scope)
    got = interpret.evaluate([derive.zeros(g) if t is None else t for t, g in zip(second, grads, strict=True)])
    agree(got, difference(lambda at: line.pulled(at, cotangents)), 1e-6)


# --- how the numbers lie in memory ------------------------------------------------------------------


def strided(array: np.ndarray) -> np.ndarray:
    """The same numbers, every second one of a larger array, its axes stored in reverse order."""
    found = np.repeat(array.T[..., None], 2, axis=-1)[..., 0].T
    assert found.size <= 1 or not found.flags.c_contiguous
    return found


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.inputs and not op.random])
def test_memory_layout_does_not_matter(name):
    """What a user sees, on the reference backend, of arrays that are not contiguous; elementwise, of stride 0 too."""
    op, (sample, *_) = OPS[name], OPS[name].samples
    dtype = next(d for _, s, d in cases(op) if s is sample)
    rng = rng_of(name, "layout")
    args = arguments(sample, dtype, rng)
    layouts = [[strided(x) for x in arrays_in(args)]]
    if op.elementwise:
        args = [np.broadcast_to(x[:1], x.shape) if isinstance(x, np.ndarray) and x.ndim else x for x in args]
        layouts.append(arrays_in(args))
    with ek.use_backend("reference"):
        for arrays in layouts:
            got = flat(FUNCTIONS[name](*refilled(args, [ek.from_numpy(x) for x in arrays]), **sample.attrs))
            wanted = computed(
                op, refilled(args, [np.ascontiguousarray(x).reshape(x.shape) for x in arrays]), sample.attrs
            )
            for g, w in zip(got, wanted, strict=True):
                close(g.numpy(), w, op.tolerance)


BATCH = 3


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.inputs and not (op.random or op.concrete)])
def test_vmap_is_a_loop(name):
    op = OPS[name]
    for number, sample, dtype in cases(op, op.dtypes[-1:]):
        if dtype not in (dtypes.float64, dtypes.complex128, dtypes.int64, dtypes.bool_):
            continue
        rng = rng_of(name, number, "vmap")
        batches = [arguments(sample, dtype, rng) for _ in range(BATCH)]
        count = len(arrays_in(batches[0]))
        for chosen in {tuple(range(count)), (0,), (count - 1,)}:
            check_vmap(op, sample.attrs, batches, [k in chosen for k in range(count)])


def check_vmap(op: Op, attrs: dict, batches: list, batched: list[bool]) -> None:
    rows_of = [arrays_in(args) for args in batches]
    scope = Scope("trace", "vmap")
    wide: dict[Node, Node] = {}
    inputs = []
    for k, is_batched in enumerate(batched):
        first = rows_of[0][k]
        if is_batched:
            inputs.append(placeholder(Aval(first.shape, dtypes.of(first.dtype)), scope))
            wide[inputs[-1]] = as_buffer(np.stack([row[k] for row in rows_of]))
        else:
            inputs.append(as_buffer(first))
    outputs = flat(op(*refilled(batches[0], inputs), **attrs))
    found = batch(outputs, wide, scope)
    got = interpret.evaluate([o if f is None else f for f, o in zip(found, outputs, strict=True)])
    for example in range(BATCH):
        mixed = [rows_of[example if b else 0][k] for k, b in enumerate(batched)]
        wanted = computed(op, refilled(batches[0], mixed), attrs)
        for g, w, f in zip(got, wanted, found, strict=True):
            close(g[example] if f is not None else g, w, op.tolerance)
