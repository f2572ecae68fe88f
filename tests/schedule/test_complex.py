"""Complex numbers in kernels: what elements are, at the ends of the range too; on every machine; none by the host."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.graph.node import placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import Launch, OnHost, walk

FUNCTIONS = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
DTYPES = {np.complex64: 2.0**-23, np.complex128: 2.0**-52}


def drawn(*shape: int, dtype: type = np.complex128, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_are_within_a_few_units_of_the_truth(dtype):
    """Of numbers of all sizes, and near the places where something cancels."""
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.uniform(-30, 5, 60)
    turns = np.exp(1j * rng.uniform(-np.pi, np.pi, 60))
    near = np.exp(1j * rng.uniform(-np.pi, np.pi, 20)) * (1 + 1e-4 * rng.normal(size=20))
    z = np.concatenate([sizes * turns, near, [2, -2, 3j, -3j, 1e-20 + 5j]]).astype(dtype)
    for name in FUNCTIONS:
        found = getattr(ek, name)(ek.tensor(z)).numpy()
        assert found.dtype == dtype
        exact = np.array([complex(getattr(mpmath, name)(mpmath.mpc(x))) for x in z.astype(complex)])
        error = np.abs(found - exact) / np.maximum(np.abs(exact), np.finfo(dtype).tiny)
        assert error.max() < 6 * DTYPES[dtype], (name, z[error.argmax()])


def parts_agree(found: np.ndarray, wanted: np.ndarray, rtol: float, name: str) -> None:
    """Part by part: NaN where there is NaN, and what is infinite beside NaN with any sign."""
    beside = np.isnan(wanted.real) | np.isnan(wanted.imag)
    for part in ("real", "imag"):
        one, other = getattr(found, part).copy(), getattr(wanted, part).copy()
        one[beside], other[beside] = np.abs(one[beside]), np.abs(other[beside])
        np.testing.assert_allclose(one, other, rtol=rtol, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ends_of_the_range_are_as_numpys(dtype):
    wide = dtype is np.complex128
    most, least, beyond = (1e300, 1e-300, 709.9) if wide else (1e38, 1e-38, 89.0)
    numbers = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, most, least, beyond, -800.0]
    z = np.array([complex(a, b) for a in numbers for b in numbers]).astype(dtype)
    z.imag = np.tile(numbers, len(numbers))  # complex(a, b) keeps the signs of zeros; a product would not
    rtol = 1e-13 if wide else 1e-5
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "sqrt"):
            parts_agree(getattr(ek, name)(ek.tensor(z)).numpy(), getattr(np, name)(z), rtol, name)
        for name in ("real", "imag", "conj", "abs"):
            np.testing.assert_allclose(getattr(ek, name)(ek.tensor(z)).numpy(), getattr(np, name)(z), rtol=rtol)
        roots, wanted = ek.sqrt(ek.tensor(z)).numpy(), np.sqrt(z)
        np.testing.assert_array_equal(
            np.signbit(roots.imag[~np.isnan(wanted)]), np.signbit(wanted.imag[~np.isnan(wanted)])
        )
        finite = np.isfinite(z)
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
            small = finite & (np.abs(z.real) < 80) & (np.abs(z.imag) < 80)
            parts_agree(getattr(ek, name)(ek.tensor(z[small])).numpy(), getattr(np, name)(z[small]), rtol, name)
    one, half = np.array([1, 1j, -2], dtype), np.array([0, 0.5, 1 - 1j], dtype)
    np.testing.assert_allclose((ek.tensor(one) ** ek.tensor(half)).numpy(), one**half, rtol=1e-5)
    zero = ek.tensor(np.zeros(3, dtype)) ** ek.tensor(np.array([0, 2, 1j], dtype))
    np.testing.assert_array_equal(zero.numpy(), np.array([1, 0, complex(np.nan, np.nan)], dtype))


CHAIN = {
    "arithmetic": lambda x, y: x * y - (x / y + 2.5j) * 0.5,
    "functions": lambda x, y: TABLE["exp"](x * 0.25) * TABLE["tanh"](y) - TABLE["log"](TABLE["sqrt"](x)),
    "powers": lambda x, y: TABLE["power"](x, y * 0.5),
    "parts": lambda x, y: TABLE["real"](x) * TABLE["absolute"](y) + TABLE["imag"](TABLE["conj"](x)),
    "moved": lambda x, y: TABLE["permute"](TABLE["flip"](x, 0), (1, 0)) + TABLE["permute"](y, (1, 0)),
    "chosen": lambda x, y: TABLE["where"](TABLE["equal"](x, y), x, TABLE["cast"](TABLE["real"](y), x.dtype)),
    "sums": lambda x, y: TABLE["sum"](x * y, 1) + TABLE["mean"](x),
    "columns": lambda x, y: TABLE["sum"](TABLE["conj"](x) * y, 0),
    "products": lambda x, y: TABLE["prod"](x, 1, True) + TABLE["cumsum"](y, 0),
    "matrices": lambda x, y: TABLE["matmul"](x, TABLE["permute"](y, (1, 0))),
}


@pytest.mark.parametrize("target", [CORES, BLOCKS], ids=["cores", "blocks"])
def test_nothing_is_left_to_the_host(target):
    for name, program in CHAIN.items():
        leaves = [placeholder(Aval((6, 70), dtypes.complex64), None) for _ in range(2)]
        steps = [*walk(compiled([program(*leaves)], leaves, target).steps)]
        assert not any(isinstance(s, OnHost) for s in steps), name
        if name in ("arithmetic", "parts", "chosen"):
            assert sum(isinstance(s, Launch) for s in steps) == 1, name


@pytest.mark.parametrize("device", ["discrete", "blocks", "reference"])
def test_machines_agree(device):
    x, y = drawn(6, 70), drawn(6, 70, seed=1)

    def seen():
        given = [ek.tensor(v) for v in (x, y)]
        values = [
            ek.jit(lambda a, b: a * b - (a / b + 2.5j) * 0.5), ek.jit(lambda a, b: ek.exp(a * 0.25) * ek.tanh(b)),
            ek.jit(lambda a, b: (a * b).sum(1) + a.mean()), ek.jit(lambda a, b: a.prod(1) + b.sum()),
            ek.jit(lambda a, b: a @ b.T), ek.jit(lambda a, b: ek.vmap(lambda u, v: (u / v).sum())(a, b)),
            ek.jit(lambda a, b: ek.grad(lambda u: ek.real((ek.exp(u) * b).sum()))(a)),
            ek.jit(lambda a, b: ek.where(ek.abs(a) > 1, a[:, ::-1], b.conj())),
        ]  # fmt: skip
        return [np.asarray(f(*given).numpy()) for f in values]

    wanted = seen()
    with ek.device(device):
        for one, other in zip(seen(), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())


STEPS = [
    lambda m, x, y: x + y, lambda m, x, y: x * y, lambda m, x, y: x / (2 + m.abs(y)), lambda m, x, y: m.conj(x) - 1j,
    lambda m, x, y: m.exp(x / (1 + m.abs(x))), lambda m, x, y: m.sqrt(x) * y, lambda m, x, y: m.sin(y / (1 + m.abs(y))),
    lambda m, x, y: m.where(m.real(x) > 0, x, y), lambda m, x, y: x - x.mean(),
    lambda m, x, y: y * x.sum(-1, keepdims=True),
    lambda m, x, y: x.real + 1j * y.imag, lambda m, x, y: x[..., ::-1],
]  # fmt: skip


@examples(60, 12)
@given(
    st.lists(st.tuples(st.sampled_from(range(len(STEPS))), st.booleans()), min_size=2, max_size=6), st.integers(1, 40)
)
def test_random_programs_are_numpys(steps, width):
    def run(m, x, y):
        for which, turned in steps:
            x, y = (y, x) if turned else (x, y)
            x = STEPS[which](m, x, y)
            x = x / (1 + m.abs(x).max())
        return x + y

    x, y = drawn(3, width), drawn(3, width, seed=1)
    found = ek.jit(lambda a, b: run(ek, a, b))(ek.tensor(x), ek.tensor(y)).numpy()
    np.testing.assert_allclose(found, run(np, x, y), rtol=1e-10, atol=1e-11)
