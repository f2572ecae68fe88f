"""The derivative of every row of the op table: of first and second order, in every input, against finite differences.

Derived from the rows, as test_table.py is. What is differentiated is the values of the rows' references, which
test_oracles.py compares with independent definitions; so the differences are independent of the derivative's rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from op_harness import arguments, arrays_in, as_buffer, cases, direction, flat, refilled, rng_of, rows, smooth
from oracles.registry import EPSILON, name_of

from batches import in_batches
from effort import FULL
from eshkol.graph import derive, interpret
from eshkol.graph.node import Node, Scope, mark
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import NoDerivative, Op, Sample

OPS = {op.name: op for op in rows()}
STEP = 1e-3


class Along:
    """An op along a line through its arguments: a function of one number, with its derivative by the rules."""

    def __init__(self, op: Op, args: list, attrs: dict, rng: np.random.Generator) -> None:
        self.op, self.args, self.attrs = op, args, attrs
        self.arrays = arrays_in(args)
        self.places = [k for k, x in enumerate(self.arrays) if dtypes.of(x.dtype).differentiable]
        self.directions = {k: direction(self.arrays[k], rng) for k in self.places}

    def only(self, place: int) -> Along:
        """The same line, but in one input alone."""
        found = Along.__new__(Along)
        found.op, found.args, found.attrs, found.arrays = self.op, self.args, self.attrs, self.arrays
        found.places, found.directions = [place], {place: self.directions[place]}
        return found

    def nodes(self, at: float = 0.0, scope: Scope | None = None) -> tuple[list[Node], list[Node]]:
        """(results, the inputs that vary) at a point of the line."""
        moved = [
            (x + at * self.directions[k]).astype(x.dtype) if k in self.directions else x
            for k, x in enumerate(self.arrays)
        ]
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

    def pulled(self, at: float, cotangents: list[np.ndarray | None]) -> list[np.ndarray]:
        """The cotangents of the inputs, by the rules."""
        scope = Scope("grad", "test")
        outputs, inputs = self.nodes(at, scope)
        found = derive.vjp(outputs, inputs, scope)([as_buffer(c) if c is not None else None for c in cotangents])
        return interpret.evaluate([derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)])

    def bent(self, cotangents: list[np.ndarray | None]) -> list[np.ndarray]:
        """The derivative of the VJP along the line, by the rules: one derivative within another."""
        scope, inner = Scope("grad", "outer"), Scope("grad", "inner")
        _, inputs = self.nodes(0.0, scope)
        marked = [mark(x, inner) for x in inputs]
        feed = dict(zip(self.places, marked, strict=True))
        arrays = [feed.get(k, as_buffer(x)) for k, x in enumerate(self.arrays)]
        outputs = flat(self.op(*refilled(self.args, arrays), **self.attrs))
        found = derive.vjp(outputs, marked, inner)([as_buffer(c) if c is not None else None for c in cotangents])
        grads = [derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)]
        tangents = {x: as_buffer(self.directions[k]) for x, k in zip(inputs, self.places, strict=True)}
        second = derive.jvp(grads, tangents, scope)
        return interpret.evaluate([derive.zeros(g) if t is None else t for t, g in zip(second, grads, strict=True)])


def difference(function: Any) -> list[np.ndarray]:
    """The derivative at 0 of a list-valued function of one number, of sixth order in the step."""
    slopes = [
        [(a - b) / (2 * k * STEP) for a, b in zip(function(k * STEP), function(-k * STEP), strict=True)]
        for k in (1, 2, 3)
    ]
    return [1.5 * one - 0.6 * two + 0.1 * three for one, two, three in zip(*slopes, strict=True)]


def agree(got: list, wanted: list, values: list, limit: float) -> None:
    """Element by element: relative to it, or to what rounding of the values does to a difference."""
    greatest = max((float(np.max(np.abs(v), initial=0.0)) for v in values), default=0.0)
    for g, w, v in zip(got, wanted, values, strict=True):
        assert g.shape == w.shape == v.shape
        assert np.all(np.isfinite(g)), "a derivative is not finite"
        rounding = 1e-11 * max(greatest, float(np.max(np.abs(w), initial=0.0)), 0.1)
        error = np.abs(g - w) - limit * np.abs(w) - rounding
        assert np.all(error <= 0), f"off by {np.max(np.abs(g - w))}: {g.ravel()[:8]}, not {w.ravel()[:8]}"


def smooth_cases(op: Op) -> list[tuple[int, Sample, DType]]:
    kinds = [k for k in ("float", "complex") if k in op.dtypes]
    wide = (dtypes.float64, dtypes.complex128)
    return [(n, s, d) for n, s, d in cases(op, tuple(kinds)) if d in wide] if kinds else []


def inner_product(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Re Σ x·y, and how large its terms are."""
    terms = np.real(one * other)
    return float(np.sum(terms)), float(np.sum(np.abs(one) * np.abs(other)))


@in_batches("name", [n for n, op in OPS.items() if smooth(op) and op.inputs])
def test_derivatives(name):
    """In each input alone and in all: JVP against differences, VJP against JVP, the second derivative again."""
    op = OPS[name]
    for number, sample, dtype in smooth_cases(op):
        rng = rng_of(name, number, dtype)
        line = Along(op, arguments(sample, dtype, rng), sample.attrs, rng)
        if not line.places:
            continue
        outputs = line.value(0.0)
        live = [k for k, x in enumerate(outputs) if x.dtype in (np.float64, np.complex128)]
        if not live:
            continue
        cotangents = [direction(x, rng) if k in live else None for k, x in enumerate(outputs)]
        lines = [line]
        if len(line.places) > 1 and (FULL or number == 0):  # along the first line every input moves too
            lines += [line.only(k) for k in line.places]
        try:
            for one in lines:
                check_first(one, outputs, live, cotangents)
            if FULL or number < 2:  # it is made of the same rules, which every sample goes through
                grads = line.pulled(0.0, cotangents)
                agree(line.bent(cotangents), difference(lambda at, c=cotangents, x=line: x.pulled(at, c)), grads, 1e-8)
        except Exception as error:
            error.add_note(f"{name}: sample {number} {sample.attrs}, {dtype}")
            raise


def check_first(line: Along, outputs: list, live: list[int], cotangents: list) -> None:
    slope, differences = line.slope(), difference(line.value)
    agree(*([part[k] for k in live] for part in (slope, differences, outputs)), 1e-9)
    for k in live:  # each result alone, so that one cannot make up for another
        alone = [c if j == k else None for j, c in enumerate(cotangents)]
        pulled = line.pulled(0.0, alone)
        pairs = [inner_product(p, line.directions[j]) for p, j in zip(pulled, line.places, strict=True)]
        forward, size = inner_product(cotangents[k], slope[k])
        backward = sum(value for value, _ in pairs)
        scale = max(size, sum(s for _, s in pairs), 1e-3)
        assert abs(forward - backward) <= 1e-12 * scale, "the transpose of the derivative is not its JVP's"


@in_batches("name", [n for n, op in OPS.items() if smooth(op) and op.inputs and "float" in op.dtypes])
def test_derivatives_keep_the_dtype(name):
    """Tangents are of the results' dtypes, cotangents of the inputs'; values are those of float64, rounded."""
    op = OPS[name]
    for number, sample in enumerate(op.samples if FULL else op.samples[:1]):
        rng = rng_of(name, number, "narrow")
        args = arguments(sample, dtypes.float16, rng)
        for dtype in (dtypes.float32, dtypes.float16, dtypes.bfloat16):
            narrow = [x.astype(dtype.numpy) if x.dtype == np.float16 else x for x in arrays_in(args)]
            line = Along(op, refilled(args, narrow), sample.attrs, rng_of(name, number))
            if not line.places:
                continue
            outputs = line.value(0.0)
            slope = line.slope()
            for result, tangent in zip(outputs, slope, strict=True):
                assert tangent.dtype == result.dtype
                assert tangent.shape == result.shape
            live = [k for k, x in enumerate(outputs) if dtypes.of(x.dtype).differentiable]
            cotangents = [direction(x, rng) if k in live else None for k, x in enumerate(outputs)]
            pulled = line.pulled(0.0, cotangents)
            for k, found in zip(line.places, pulled, strict=True):
                assert found.dtype == line.arrays[k].dtype
                assert found.shape == line.arrays[k].shape
            if dtype is dtypes.float32 and live and not op.random:  # other draws in float64, of more bits
                compare_wide(line, slope, pulled, cotangents, live)


WIDER = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def compare_wide(line: Along, slope: list, pulled: list, cotangents: list, live: list[int]) -> None:
    """The same derivatives in float64."""
    wide = Along.__new__(Along)
    wide.op, wide.attrs, wide.places = line.op, line.attrs, line.places
    wide.arrays = [x.astype(WIDER.get(x.dtype, x.dtype)) for x in line.arrays]
    wide.args = refilled(line.args, wide.arrays)
    wide.directions = {k: d.astype(WIDER[d.dtype]) for k, d in line.directions.items()}
    outputs = wide.value(0.0)
    fits = [c is None or outputs[k].dtype in (np.float64, np.complex128) for k, c in enumerate(cotangents)]
    if not all(fits):
        return  # the row says the dtype of its result, so there is no wide one
    lifted = [None if c is None else c.astype(outputs[k].dtype) for k, c in enumerate(cotangents)]
    both = [*zip((slope[k] for k in live), (wide.slope()[k] for k in live), strict=True)]
    both += [*zip(pulled, wide.pulled(0.0, lifted), strict=True)]
    for got, wanted in both:
        scale = max(0.1, float(np.max(np.abs(wanted), initial=0.0)))
        epsilon = EPSILON[name_of(got.dtype)] * max(line.op.tolerance, 4.0)
        assert np.max(np.abs(got - wanted), initial=0.0) <= 256 * epsilon * scale


# --- rows that say that they have none --------------------------------------------------------------


def without_derivative() -> list[str]:
    return [n for n, op in OPS.items() if isinstance(op.derivative, NoDerivative) and op.derivative.zero and op.inputs]


def differentiable_cases(op: Op) -> list[tuple[Along, int]]:
    found = []
    for number, sample, dtype in smooth_cases(op):
        rng = rng_of(op.name, number, "none")
        line = Along(op, arguments(sample, dtype, rng), sample.attrs, rng)
        if line.places:
            found.append((line, number))
    return found


@in_batches("name", without_derivative())
def test_rows_without_derivative_are_constant_between_their_steps(name):
    """Where a row says that its derivative is zero, its values do not move, and the tangent is zero."""
    for line, _ in differentiable_cases(OPS[name]):
        here = line.value(0.0)
        for at in (1e-9, -1e-9, 1e-7):
            for one, other in zip(here, line.value(at), strict=True):
                np.testing.assert_array_equal(one, other)
        for tangent in line.slope():
            assert not np.any(tangent)
