"""Every row of the op table on the backends, against the NumPy references (`graph.interpret`)."""

from __future__ import annotations

import functools

import pytest
from op_harness import arguments, cases, close, on_nodes, rng_of, rows

from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Op
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

OPS = {op.name: op for op in rows()}
PRIMITIVES = [name for name, op in OPS.items() if not op.composite]
ON_CPU = (dtypes.float32, dtypes.int32)  # each program takes 40 ms to compile there


def check(op: Op, backend: str, chosen=lambda number, dtype: True) -> None:
    machine = open_backend(backend)
    for number, sample, dtype in cases(op):
        if not chosen(number, dtype):
            continue
        args = arguments(sample, dtype, rng_of(op.name, number, dtype))
        nodes = on_nodes(op, args, sample.attrs)
        wanted = interpret.evaluate(nodes)
        try:
            got = realize(nodes, machine)
            for g, w, node in zip(got, wanted, nodes, strict=True):
                assert g.dtype == node.dtype.numpy
                assert g.flags.c_contiguous
                close(g, w, op.tolerance)
        except Exception as error:
            error.add_note(f"sample {number} of {op.name} in {dtype} on {backend}")
            raise


@functools.cache
def taken(op: Op, number: int, dtype: DType) -> bool:
    """Whether a dtype is the one of its kind whose turn it is at a sample; at the first sample it is all's."""
    alike = [d for n, _, d in cases(op) if n == number and d.kind == dtype.kind]
    return number == 0 or alike[number % len(alike)] is dtype


@pytest.mark.unchecked  # `check` compares with the interpreter, which is what validation would do a second time
@pytest.mark.parametrize("name", PRIMITIVES)
def test_on_the_reference_backend(name):
    """The first sample in all dtypes, the others in one of each kind."""
    check(OPS[name], "reference", lambda number, dtype: taken(OPS[name], number, dtype))


@pytest.mark.unchecked  # likewise
@pytest.mark.slow
@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_sample_in_every_dtype(name):
    check(OPS[name], "reference")


@functools.cache
def first_dtype(op: Op, number: int) -> DType | None:
    return next((dtype for n, _, dtype in cases(op) if n == number and not dtype.is_complex), None)


@pytest.mark.optimized
@pytest.mark.parametrize("name", PRIMITIVES)
def test_on_the_cpu(name):
    """The first sample in two dtypes, the others in one (of elementwise ops none: they share a program)."""
    op = OPS[name]
    check(op, "cpu", lambda n, dtype: dtype in ON_CPU if n == 0 else not op.elementwise and dtype is first_dtype(op, n))
