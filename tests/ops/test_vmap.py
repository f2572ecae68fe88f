"""The batch rule of every row of the op table, against a Python loop over the examples.

For every choice of which inputs are batched, in batches of one too (where a batch could be taken for an extent that
broadcasts), for every kind of dtype; in batches of batches; and of derivatives: gradients of each example.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from op_harness import (
    arguments,
    arrays_in,
    as_buffer,
    cases,
    close,
    computed,
    direction,
    flat,
    refilled,
    rng_of,
    rows,
    smooth,
)

import eshkol as ek
from batches import in_batches
from effort import FULL
from eshkol.graph import derive, interpret
from eshkol.graph.batch import batch
from eshkol.graph.node import Node, Scope, mark, placeholder
from eshkol.ops import dtypes
from eshkol.ops.row import Aval, Op
from eshkol.tensors.functions import FUNCTIONS

OPS = {op.name: op for op in rows()}
BATCHED = [n for n, op in OPS.items() if op.inputs and not (op.random or op.concrete)]
WIDE = (dtypes.float64, dtypes.complex128, dtypes.int64, dtypes.bool_)
MOST = 3  # inputs of which every choice is tried; of more, each alone, all, and all but each


def choices(count: int, few: bool = False) -> list[tuple[bool, ...]]:
    """Which inputs are batched; of few, only all, the first, and the last."""
    if few:
        chosen = {tuple(range(count)), (0,), (count - 1,)}
        return [tuple(k in which for k in range(count)) for which in sorted(chosen)]
    if count <= MOST:
        return [c for c in itertools.product((False, True), repeat=count) if any(c)]
    single = [tuple(k == j for k in range(count)) for j in range(count)]
    return [*single, *(tuple(not b for b in c) for c in single), (True,) * count]


def wide_cases(op: Op) -> list[tuple[int, Any, dtypes.DType]]:
    """Every sample in every kind of dtype; in `make test` each sample in its kind, the first in all."""
    found = [(n, s, d) for n, s, d in cases(op) if d in WIDE]
    if FULL:
        return found
    last = {n: d for n, _, d in found}
    return [(n, s, d) for n, s, d in found if n == 0 or d is last[n]]


def traced(op: Op, args: list, attrs: dict, rows_of: list, batched: tuple[bool, ...]) -> tuple[list[Node], dict, Scope]:
    """(results for one example, what stands for its inputs and their batches, the scope of both)."""
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
    return flat(op(*refilled(args, inputs), **attrs)), wide, scope


def check(op: Op, attrs: dict, batches: list, batched: tuple[bool, ...]) -> None:
    rows_of = [arrays_in(args) for args in batches]
    outputs, wide, scope = traced(op, batches[0], attrs, rows_of, batched)
    found = batch(outputs, wide, scope)
    got = interpret.evaluate([o if f is None else f for f, o in zip(found, outputs, strict=True)])
    for example in range(len(batches)):
        mixed = [rows_of[example if b else 0][k] for k, b in enumerate(batched)]
        wanted = computed(op, refilled(batches[0], mixed), attrs)
        for g, w, f in zip(got, wanted, found, strict=True):
            assert g.dtype == w.dtype
            assert f is None or g.shape == (len(batches), *w.shape)
            close(g[example] if f is not None else g, w, op.tolerance)


@in_batches("name", BATCHED)
def test_vmap_is_a_loop(name):
    op = OPS[name]
    for number, sample, dtype in wide_cases(op):
        rng = rng_of(name, number, "vmap")
        batches = [arguments(sample, dtype, rng) for _ in range(3)]
        whole = FULL or number == 0
        for batched in choices(len(arrays_in(batches[0])), few=not whole):
            for size in (3, 1) if whole else (3,):
                try:
                    check(op, sample.attrs, batches[:size], batched)
                except Exception as error:
                    error.add_note(f"{name}: sample {number} {sample.attrs}, {dtype}, {batched} of {size}")
                    raise


@in_batches("name", BATCHED)
def test_batches_of_batches(name):
    """One vmap within another: inner over each second input, outer over the others, then over the same ones."""
    op = OPS[name]
    for number, sample, dtype in wide_cases(op)[: None if FULL else 1]:
        rng = rng_of(name, number, "nested")
        grid = [[arguments(sample, dtype, rng) for _ in range(2)] for _ in range(3)]
        count = len(arrays_in(grid[0][0]))
        even = tuple(k % 2 == 0 for k in range(count))
        pairs = [(even, (True,) * count)]
        if count > 1:
            pairs.append((even, tuple(not e for e in even)))
        for inner, outer in pairs:
            nested(op, sample.attrs, grid, inner, outer)


def nested(op: Op, attrs: dict, grid: list, inner: tuple[bool, ...], outer: tuple[bool, ...]) -> None:
    def own(i: int, j: int) -> list[np.ndarray]:
        """The arrays of an example: one that is not batched on a level is the same all over it."""
        return [
            arrays_in(grid[i if o else 0][j if n else 0])[k] for k, (n, o) in enumerate(zip(inner, outer, strict=True))
        ]

    first = own(0, 0)
    within, without = Scope("trace", "inner"), Scope("trace", "outer")
    ones, middles, feed = [], {}, {}
    for k, x in enumerate(first):
        rows_of = [np.stack([own(i, j)[k] for j in range(2)]) if inner[k] else own(i, 0)[k] for i in range(3)]
        middle: Node = as_buffer(rows_of[0])
        if outer[k]:
            middle = placeholder(Aval(rows_of[0].shape, dtypes.of(x.dtype)), without)
            feed[middle] = as_buffer(np.stack(rows_of))
        if inner[k]:
            ones.append(placeholder(Aval(x.shape, dtypes.of(x.dtype)), within))
            middles[ones[-1]] = middle
        else:
            ones.append(middle)
    outputs = flat(op(*refilled(grid[0][0], ones), **attrs))
    halfway = batch(outputs, middles, within)
    known = [o if h is None else h for h, o in zip(halfway, outputs, strict=True)]
    found = batch(known, feed, without)
    got = interpret.evaluate([k if f is None else f for f, k in zip(found, known, strict=True)])
    for i, j in np.ndindex(3, 2):
        wanted = computed(op, refilled(grid[0][0], own(i, j)), attrs)
        for g, w, h, f in zip(got, wanted, halfway, found, strict=True):
            at = (*([i] if f is not None else []), *([j] if h is not None else []))
            close(g[at], w, 8 * op.tolerance)  # sums of batches are in another order


@in_batches("name", [n for n in BATCHED if smooth(OPS[n])])
def test_gradients_of_each_example(name):
    """The VJP within vmap, against the VJP of each example: the batch rules of what derivatives are made of."""
    op = OPS[name]
    for number, sample, dtype in [(n, s, d) for n, s, d in wide_cases(op) if d.differentiable][: None if FULL else 1]:
        rng = rng_of(name, number, "per example")
        batches = [arguments(sample, dtype, rng) for _ in range(2)]
        count = len(arrays_in(batches[0]))
        for batched in {(True,) * count, (True, *[False] * (count - 1)), (*[False] * (count - 1), True)}:
            per_example(op, sample.attrs, batches, batched, rng)


def pulled(op: Op, args: list, attrs: dict, inputs: list[Node], cotangents: list[Node | None]) -> list[Node]:
    scope = Scope("grad", "test")
    marked = [mark(x, scope) if x.dtype.differentiable else x for x in inputs]
    varying = [x for x in marked if x.dtype.differentiable]
    outputs = flat(op(*refilled(args, marked), **attrs))
    found = derive.vjp(outputs, varying, scope)(cotangents)
    return [derive.zeros(x) if f is None else f for f, x in zip(found, varying, strict=True)]


def per_example(op: Op, attrs: dict, batches: list, batched: tuple[bool, ...], rng: np.random.Generator) -> None:
    rows_of = [arrays_in(args) for args in batches]
    results = computed(op, batches[0], attrs)
    if not any(x.dtype.kind in "fc" for x in results) or not any(x.dtype.kind in "fc" for x in rows_of[0]):
        return
    pulls = [direction(x, rng) if x.dtype.kind in "fc" else None for x in results]
    cotangents = [None if c is None else as_buffer(c) for c in pulls]
    scope = Scope("trace", "vmap")
    wide: dict[Node, Node] = {}
    inputs = []
    for k, is_batched in enumerate(batched):
        first = rows_of[0][k]
        inputs.append(placeholder(Aval(first.shape, dtypes.of(first.dtype)), scope) if is_batched else as_buffer(first))
        if is_batched:
            wide[inputs[-1]] = as_buffer(np.stack([row[k] for row in rows_of]))
    single = pulled(op, batches[0], attrs, inputs, cotangents)
    found = batch(single, wide, scope)
    got = interpret.evaluate([s if f is None else f for f, s in zip(found, single, strict=True)])
    for example in range(len(batches)):
        mixed = [as_buffer(rows_of[example if b else 0][k]) for k, b in enumerate(batched)]
        wanted = interpret.evaluate(pulled(op, batches[0], attrs, mixed, cotangents))
        for g, w, f in zip(got, wanted, found, strict=True):
            close(g[example] if f is not None else g, w, 64 * op.tolerance)


SOME = BATCHED if FULL else BATCHED[::4]  # the rows' rules have been tried: here it is what moves axes around them


@pytest.mark.parametrize("name", SOME)
def test_examples_along_any_axis(name):
    """What a user writes: ek.vmap with the examples along other axes of the arguments and of the results."""
    op, (sample, *_) = OPS[name], OPS[name].samples
    dtype = next(d for _, s, d in cases(op) if s is sample and d in WIDE)
    rng = rng_of(name, "axes")
    batches = [arguments(sample, dtype, rng) for _ in range(2)]
    rows_of = [arrays_in(args) for args in batches]
    axes = [int(rng.integers(-x.ndim - 1, x.ndim + 1)) for x in rows_of[0]]
    stacked = [ek.from_numpy(np.stack([row[k] for row in rows_of], axis)) for k, axis in enumerate(axes)]
    with ek.use_backend("reference"):

        def function(*tensors: Any) -> Any:
            return tuple(flat(FUNCTIONS[name](*refilled(batches[0], list(tensors)), **sample.attrs)))

        got = ek.vmap(function, in_axes=tuple(axes), out_axes=-1)(*stacked)
        for example in range(2):
            wanted = computed(op, refilled(batches[0], rows_of[example]), sample.attrs)
            for g, w in zip(got, wanted, strict=True):
                close(g.numpy()[..., example], w, op.tolerance)
