"""Every row of the op table on machines with memory of their own: values and gradients, and where they are.

The discrete backend runs what the CPU does, in memory that only explicit copies reach; a value that were read
or written without one would be wrong or an error. The blocks backend has kernels for blocks of lanes.
"""

from __future__ import annotations

import numpy as np
import pytest
from op_harness import arguments, arrays_in, cases, close, computed, flat, refilled, rng_of, rows

import eshkol as ek
from batches import in_batches
from effort import FULL
from eshkol.errors import DerivativeError
from eshkol.tensors.value import operate

OPS = {op.name: op for op in rows()}
CASES = 100 if FULL else 1  # samples of each row
DEVICES = ("discrete", "blocks", "reference") if FULL else ("discrete", "blocks")


@pytest.mark.parametrize("device", DEVICES)
@in_batches("name", OPS)
def test_values(name, device):
    op = OPS[name]
    for number, sample, dtype in list(cases(op))[:CASES]:
        args = arguments(sample, dtype, rng_of(name, number, dtype))
        with ek.device(device):
            tensors = [ek.tensor(a) for a in arrays_in(args)]
            found = flat(operate(op, tuple(refilled(args, tensors)), dict(sample.attrs)))
        assert {x.device for x in found if isinstance(x, ek.Tensor)} <= {device}
        if op.random:
            continue
        for got, wanted in zip(found, computed(op, args, sample.attrs), strict=True):  # by the interpreter
            close(np.asarray(got), wanted, op.tolerance)


@in_batches("name", [n for n, op in OPS.items() if "float" in op.dtypes and op.inputs and not op.random])
def test_gradients(name):
    """Of the sum of all results, against the same on the CPU."""
    op = OPS[name]
    number, sample, dtype = next((c for c in cases(op, ("float",)) if c[2] is ek.float64), (0, None, None))
    if sample is None:
        pytest.skip("it has no sample of this dtype")
    args = arguments(sample, dtype, rng_of(name, number, dtype))
    found = {}
    for device in ("cpu", "discrete"):
        with ek.device(device):
            leaves = [ek.tensor(a, requires_grad=a.dtype == np.float64) for a in arrays_in(args)]
            results = flat(operate(op, tuple(refilled(args, leaves)), dict(sample.attrs)))
            varying = [r for r in results if isinstance(r, ek.Tensor) and r.requires_grad]
            if not varying:
                return
            try:
                sum((r * r).sum() if not r.dtype.is_complex else ek.abs(r).sum() for r in varying).backward()
            except DerivativeError:  # of what is constant between steps
                found[device] = []
                continue
        gradients = [x.grad for x in leaves if x.grad is not None]
        assert {g.device for g in gradients} <= {device}
        found[device] = [g.numpy() for g in gradients]
    for got, wanted in zip(found["discrete"], found["cpu"], strict=True):
        close(got, wanted, op.tolerance)
