"""Random programs: what the backend and the interpreter compute is NumPy's; derivatives and vmap agree with loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from programs import SMOOTH, WHOLE, programs

import eshkol as ek
from eshkol.graph import interpret
from eshkol.ops import dtypes

WIDE = (dtypes.float64,)
ANY = (dtypes.float64, dtypes.float64, dtypes.float32)
quiet = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}


def agree(got, wanted, epsilon, text=""):
    assert got.shape == wanted.shape, text
    assert got.dtype == wanted.dtype, f"{text}: {got.dtype} instead of {wanted.dtype}"
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted, text)
        return
    scale = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=epsilon * scale, err_msg=text)


def tolerance(program):
    return 1e-11 if program.float_ is dtypes.float64 else 1e-3


def test_the_table_gives_many_ops():
    assert len(SMOOTH) > 20
    assert len(WHOLE) > 10


@settings(max_examples=80, **quiet)
@given(programs(ANY))
def test_results_are_numpys(drawn):
    program, arrays = drawn
    wanted = program.arrays(arrays)
    tensors = program.tensors([ek.tensor(a) for a in arrays])
    interpreted = interpret.evaluate([t._node for t in tensors])
    for k, (tensor, expected) in enumerate(zip(tensors, wanted, strict=True)):
        text = f"value {k} of {[s.text for s in program.steps]}"
        single = tensor.dtype is dtypes.float32
        agree(interpreted[k], expected, 1e-3 if single else tolerance(program), text)
    tensors[-1].realize()
    for k, (tensor, expected) in enumerate(zip(tensors, interpreted, strict=True)):
        single = tensor.dtype is dtypes.float32
        agree(tensor.numpy(), expected, 1e-3 if single else tolerance(program), f"value {k} of {program.steps}")


@settings(max_examples=80, **quiet)
@given(programs(WIDE, only_floats=True))
def test_gradients_are_the_numerical_ones(drawn):
    program, arrays = drawn

    def loss(*inputs):
        return program.scalar(program.tensors(inputs), ek.sin)

    slopes = ek.grad(loss, argnums=tuple(range(len(arrays))))(*(ek.tensor(a) for a in arrays))
    found = interpret.evaluate([s._node for s in slopes])
    rng = np.random.default_rng(0)
    directions = [np.asarray(rng.normal(size=a.shape)) for a in arrays]

    def difference(step):
        def at(by):
            moved = [a + by * d for a, d in zip(arrays, directions, strict=True)]
            return float(program.scalar(program.arrays(moved), np.sin))

        return (4 * (at(step) - at(-step)) / 2 - (at(2 * step) - at(-2 * step)) / 4) / (3 * step)

    one, other = difference(1e-3), difference(5e-4)
    assume(abs(one - other) < 1e-7 * max(1.0, abs(one)))  # no kink lies between
    got = sum(float((f * d).sum()) for f, d in zip(found, directions, strict=True))
    assert abs(got - other) < 1e-6 * max(1.0, abs(other)), [s.text for s in program.steps]
    pushed = ek.jvp(loss, [ek.tensor(a) for a in arrays], [ek.tensor(d) for d in directions])[1]
    forward = float(interpret.evaluate([pushed._node])[0])
    assert abs(forward - got) < 1e-9 * max(1.0, abs(got)), [s.text for s in program.steps]


@settings(max_examples=80, **quiet)
@given(programs(WIDE))
def test_vmap_is_a_loop(drawn):
    program, arrays = drawn
    rng = np.random.default_rng(0)
    count = 3
    batches = [
        np.stack([x, *(rng.permutation(x.reshape(-1)).reshape(x.shape) for _ in range(count - 1))]) for x in arrays
    ]
    axes = tuple(0 if k == 0 or k % 2 == 0 else None for k in range(len(arrays)))
    inputs = [ek.tensor(b if a == 0 else x) for b, x, a in zip(batches, arrays, axes, strict=True)]
    mapped = ek.vmap(lambda *xs: tuple(program.tensors(xs)), in_axes=axes)(*inputs)
    got = interpret.evaluate([t._node for t in mapped])
    for k in range(count):
        wanted = program.arrays([b[k] if a == 0 else x for b, x, a in zip(batches, arrays, axes, strict=True)])
        for g, w, t in zip(got, wanted, mapped, strict=True):
            agree(g[k], w, 1e-3 if t.dtype is dtypes.float32 else 1e-11, str(program.steps))


@settings(max_examples=80, **quiet)
@given(programs(WIDE, only_floats=True))
def test_vmap_and_grad_commute(drawn):
    program, arrays = drawn

    def loss(x):
        return program.scalar(program.tensors([x, *(ek.tensor(a) for a in arrays[1:])]), ek.sin)

    batch = np.stack([arrays[0], arrays[0] * 0.5 - 0.25])
    inside = ek.vmap(ek.grad(loss))(ek.tensor(batch))
    outside = ek.grad(lambda x: ek.vmap(loss)(x).sum())(ek.tensor(batch))
    one, other = interpret.evaluate([inside._node, outside._node])
    agree(one, other, 1e-10, str([s.text for s in program.steps]))
    for k in range(2):
        (single,) = interpret.evaluate([ek.grad(loss)(ek.tensor(batch[k]))._node])
        agree(one[k], single, 1e-10, str([s.text for s in program.steps]))


@pytest.mark.slow
@settings(max_examples=30, **quiet)
@given(programs(ANY))
def test_the_cpu_backend_agrees_with_numpy(drawn):
    program, arrays = drawn
    wanted = program.arrays(arrays)
    with ek.use_backend("cpu"):
        tensors = program.tensors([ek.tensor(a) for a in arrays])
        for tensor, expected in zip(tensors, wanted, strict=True):
            single = tensor.dtype is dtypes.float32
            agree(tensor.numpy(), expected, 1e-3 if single else tolerance(program))
