"""Every row of the op table on the backends, against the NumPy references (`graph.interpret`)."""

from __future__ import annotations

import functools

import pytest
from op_harness import arguments, cases, close, on_nodes, rng_of, rows

from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.ops.row import Op
from eshkol.schedule.execute import realize
from eshkol.tensors.devices import open_backend

OPS = {op.name: op for op in rows()}
PRIMITIVES = [name for name, op in OPS.items() if not op.composite]
ON_CPU = (dtypes.float32, dtypes.int32, dtypes.bool_)  # each program takes 40 ms to compile there


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
def first_dtype(op: Op, number: int):
    return next((dtype for n, _, dtype in cases(op) if n == number and not dtype.is_complex), None)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_on_the_reference_backend(name):
    check(OPS[name], "reference")


@pytest.mark.parametrize("name", PRIMITIVES)
def test_on_the_cpu(name):
    """One sample per dtype of a few, the others in one dtype."""
    check(
        OPS[name],
        "cpu",
        lambda number, dtype: dtype in ON_CPU if number == 0 else dtype is first_dtype(OPS[name], number),
    )
