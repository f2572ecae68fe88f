"""Every row of the op table: that it is complete, that composites are what they say, that memory layout is nothing.

Everything is derived from the rows: a new op is tested because it is in the table. Values are computed by the rows'
NumPy references (`graph.interpret`), which test_oracles.py compares with independent definitions; derivatives are in
test_derivatives.py, batches in test_vmap.py. What the backends make of them is tested in tests/schedule.
"""

from __future__ import annotations

import numpy as np
from op_harness import (
    arguments,
    arrays_in,
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
from batches import in_batches, of_each
from effort import FULL
from eshkol.ops import TABLE, dtypes
from eshkol.tensors.functions import FUNCTIONS

OPS = {op.name: op for op in rows()}
NARROW = {d for d in dtypes.ALL if d.bits < 32 and not d.is_bool} | {dtypes.uint32, dtypes.uint64, dtypes.complex64}


@of_each("name", OPS)
def test_a_row_is_complete(name):
    op = OPS[name]
    assert op.doc.strip().endswith("."), "the documentation is a sentence"
    assert op.group
    assert op.samples, "there is a sample"
    assert op.composite or op.derivative is not None, "there is a derivative, or the statement that it has none"
    assert op.composite or (op.infer is not None and op.lower is not None)
    assert op.composite or op.elementwise or op.batch is not None, "there is a vmap rule"


@in_batches("name", [n for n, op in OPS.items() if op.composite and not op.random])
def test_composites_are_their_references(name):
    """What the ops give that a composite is made of, against its reference; primitives are in test_oracles.py alone."""
    op = OPS[name]
    for number, sample, dtype in cases(op):
        if not FULL and dtype in NARROW and number:
            continue  # which the first sample has been through
        args = arguments(sample, dtype, rng_of(name, number, dtype))
        got = computed(op, args, sample.attrs)
        wanted = expected(op, args, sample.attrs)
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            close(g, w, op.tolerance)


# --- when it is computed ------------------------------------------------------------------------------


def test_only_linear_algebra_is_computed_by_the_statement_that_says_it():
    assert {op.group for op in TABLE.values() if op.at_once} == {"linear algebra"}
    x = ek.tensor([[2.0, 1.0], [1.0, 4.0]])
    assert (x + 1)._node.data is None
    assert ek.cholesky(x)._node.data is not None


# --- how the numbers lie in memory ------------------------------------------------------------------


def strided(array: np.ndarray) -> np.ndarray:
    """The same numbers, every second one of a larger array, its axes stored in reverse order."""
    found = np.repeat(array.T[..., None], 2, axis=-1)[..., 0].T
    assert found.size <= 1 or not found.flags.c_contiguous
    return found


@in_batches("name", [n for n, op in OPS.items() if op.inputs and not op.random])
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
