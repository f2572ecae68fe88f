"""Complex numbers as pairs of floats: native on machines that have the instructions, as NumPy's."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import amount, examples
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.atlas.table.linear import LONGEST_FFT
from eshkol.graph.node import Node, buffer, make, placeholder, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import OnHost, walk
from eshkol.schedule.rewrite import signals
from eshkol.schedule.rewrite.pairs import DOUBLED, Doubling, as_pairs
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

LENGTHS = [*range(1, 71), 97, 101, 127, 128, 1000, 1009, 1024, 2048, 4096]
EPSILON = {np.complex64: 2.0**-23, np.complex128: 2.0**-52}


def signal(*shape: int, dtype: type = np.complex128, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def exactly(x: np.ndarray, inverse: bool, axis: int = -1) -> np.ndarray:
    """The transform in long doubles, without a factor."""
    wide = x.astype(np.clongdouble)
    return np.fft.ifft(wide, axis=axis, norm="forward") if inverse else np.fft.fft(wide, axis=axis)


def host_steps(outs: list[Node], params: list[Node]) -> list[str]:
    return [s.node.op.name for s in walk(compiled(outs, params, CORES).steps) if isinstance(s, OnHost)]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_every_length_is_accurate(dtype):
    for n in LENGTHS[:: amount(1, 5)]:
        for inverse in (False, True):
            x = signal(3, n, dtype=dtype, seed=n)
            found = ek.dft(ek.tensor(x), -1, inverse).numpy()
            wanted = exactly(x, inverse)
            assert found.dtype == dtype
            norm = np.sqrt(np.mean(np.abs(wanted) ** 2))
            assert np.sqrt(np.mean(np.abs(found - wanted) ** 2)) < 2 * (1 + math.log2(n)) * EPSILON[dtype] * norm, n


@examples(40, 12)
@given(
    st.sampled_from(["fft", "ifft", "rfft", "irfft"]), st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(0, 2), st.one_of(st.none(), st.integers(2, 70)), st.sampled_from([None, "ortho", "forward"]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_transforms_are_numpys_wherever_elements_lie(name, shape, axis, n, norm, turned, single):
    """Along any axis, of tensors that are read in another order than they lie in, in both precisions."""
    axis %= len(shape)
    x = signal(*shape, dtype=np.complex64 if single else np.complex128)
    x = x.real.copy() if name == "rfft" else x
    n = 8 if name == "irfft" and n is None else n
    given = ek.tensor(x.T.copy()).T if turned else ek.tensor(x)
    found = ek.jit(lambda v: getattr(ek.fft, name)(v * 2, n, axis, norm))(given).numpy()
    wanted = getattr(np.fft, name)(x * 2, n, axis, norm)
    assert found.dtype == wanted.dtype
    size = max(np.abs(wanted).max(), 1e-3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=size * (2e-6 if single else 4e-15))


def test_nothing_of_a_chain_is_left_to_the_host():
    """Forward, filtered and back, real and complex: every step is a launch, and the factor is the instruction's."""
    x = placeholder(Aval((6, 20), dtypes.float32), None)
    z = placeholder(Aval((5, 12), dtypes.complex64), None)
    turned = TABLE["fft2"](z) * TABLE["conj"](z) - TABLE["permute"](TABLE["ifft"](TABLE["permute"](z, (1, 0))), (1, 0))
    outs = [TABLE["irfft"](TABLE["rfft"](x, norm="ortho"), norm="ortho"), TABLE["imag"](turned), TABLE["flip"](turned)]
    assert host_steps(outs, [x, z]) == []
    factors = [node.attrs.factor for node in topological(as_pairs(outs, CORES)) if node.op.name == "fourier"]
    assert sorted(factors) == pytest.approx([1 / 5, 20**-0.5, 20**-0.5, 1, 1])


def test_what_has_no_instruction_stays_as_it_is():
    z = placeholder(Aval((4, 8), dtypes.complex64), None)
    assert as_pairs([z * z], CORES) == [z * z]
    outs = [TABLE["dft"](placeholder(Aval((signals.LONGEST + 1,), dtypes.complex64), None))]
    assert as_pairs(outs, BLOCKS) == outs
    long = placeholder(Aval((LONGEST_FFT + 1,), dtypes.complex64), None)
    assert host_steps([TABLE["dft"](long)], [long]) == ["dft"]


PROGRAMS = {
    "products": lambda m, z, f: m.fft(z) * z + f(z * z) - z * (2 - 1j) + 0.5,
    "quotients": lambda m, z, f: (m.fft(z) / 4 + m.fft(z) / (z + 9)) * 1j,
    "parts": lambda m, z, f: m.fft(z).real * m.fft(z).imag + abs(m.fft(z)),
    "sums": lambda m, z, f: m.fft(z).sum(0) - m.ifft(z).sum(),
    "conjugates": lambda m, z, f: (m.fft(z.conj()) - (-m.fft(z)).conj())[1:, ::2],
}


@pytest.mark.parametrize("device", ["cpu", "discrete", "reference"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_stands_around_transforms(device, name):
    z, program = signal(3, 10), PROGRAMS[name]
    wanted = program(np.fft, z, lambda x: x)
    with ek.device(device):
        found = ek.jit(lambda x: program(ek.fft, x, lambda y: y))(ek.tensor(z))
        assert found.device == device
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-13)


def test_values_stay_on_their_machine():
    with ek.device("discrete"):
        x = ek.tensor(signal(8, 16, dtype=np.complex64))
        step = ek.jit(lambda v: ek.fft.ifft(ek.fft.fft(v) * v))
        x = step(x)
        with ek.transfers() as seen:
            for _ in range(3):
                x = step(x)
        assert (seen.uploads, seen.reads) == (0, 0)
        with ek.transfers() as seen:
            assert x.numpy().dtype == np.complex64
        assert (seen.uploads, seen.read) == (0, 8 * 16 * 8)


@pytest.mark.parametrize("device", ["cpu", "discrete", "reference"])
def test_bodies_of_loops_and_branches(device):
    z, steps = signal(6), signal(4, 6, seed=1)
    carried, outs = z, []
    for s in steps:
        carried = np.fft.fft(carried) / 6 + s
        outs.append(carried.real)

    def body(c, s):
        c = ek.fft.fft(c, norm="forward") + s
        return c, c.real

    with ek.device(device):
        final, stacked = ek.scan(body, ek.tensor(z), ek.tensor(steps))
        chosen = ek.cond(ek.tensor(True), lambda x: ek.fft.ifft(x), lambda x: x * 2, ek.tensor(z))
    np.testing.assert_allclose(final.numpy(), carried, atol=1e-13)
    np.testing.assert_allclose(stacked.numpy(), np.stack(outs), atol=1e-13)
    np.testing.assert_allclose(chosen.numpy(), np.fft.ifft(z), atol=1e-13)


def test_gradients_and_batches():
    """The energy of a filtered signal: its gradient is the filter's, forward and back; a batch is each by itself."""
    x, weights = signal(5, 12).real, np.linspace(0, 1, 7)

    def energy(v):
        return (ek.fft.irfft(ek.fft.rfft(v) * ek.tensor(weights), 12) ** 2).sum()

    rows = ek.jit(ek.vmap(ek.grad(energy)))(ek.tensor(x)).numpy()
    wanted = 2 * np.fft.irfft(np.fft.rfft(x) * weights**2, 12)
    np.testing.assert_allclose(rows, wanted, atol=1e-13)
    mapped = ek.jit(ek.vmap(lambda v: ek.fft.fft(v), in_axes=1))(ek.tensor(signal(8, 3))).numpy()
    np.testing.assert_allclose(mapped, np.fft.fft(signal(8, 3), axis=0).T, atol=1e-13)


def test_numbers_that_are_computed_already_are_read_where_they_lie():
    z = signal(4, 4)
    node = TABLE["dft"](buffer(z, dtypes.complex128), 0) + buffer(z, dtypes.complex128)
    assert {n.op.name for n in topological(as_pairs([node], CORES))} == {"buffer", "pairs", "fourier", "add", "numbers"}
    np.testing.assert_allclose((ek.dft(ek.tensor(z), 0) + ek.tensor(z)).numpy(), np.fft.fft(z, axis=0) + z)


# --- real numbers -----------------------------------------------------------------------------------


def planned_ops(function, *given):
    """The ops of the plan of a function on the CPU."""
    outs = [function(*given)]
    return [node.op.name for node in topological(as_pairs(outs, replace(CORES, native=True))) if node.inputs]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_transforms_of_every_length_are_accurate(dtype):
    epsilon = 2.0**-23 if dtype is np.float32 else 2.0**-52
    for n in [*range(14, 40), 1000, 1018, 4096, 65536][:: amount(1, 3)]:
        x = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
        for norm in (None, "ortho"):
            bound = (1 + math.log2(n)) * epsilon
            found, wanted = (
                ek.fft.rfft(ek.tensor(x), norm=norm).numpy(),
                np.fft.rfft(x.astype(np.longdouble), norm=norm),
            )
            assert found.dtype == (np.complex64 if dtype is np.float32 else np.complex128)
            assert np.linalg.norm(found - wanted) < bound * np.linalg.norm(wanted.astype(complex)), n
            for m in (n, n + 6, n - 3, n // 2 + 2):  # with zeros behind, and cut off
                half = wanted.astype(found.dtype)
                back = ek.fft.irfft(ek.tensor(half), m, norm=norm).numpy()
                exact = np.fft.irfft(half.astype(np.clongdouble), m, norm=norm)
                assert back.dtype == dtype
                assert np.linalg.norm(back - exact) < bound * np.linalg.norm(exact.astype(float)), (n, m)


def test_real_transforms_are_transforms_of_half_the_length():
    x = placeholder(Aval((3, 32), dtypes.float32), None)
    z = placeholder(Aval((3, 17), dtypes.complex64), None)
    odd = placeholder(Aval((3, 33), dtypes.float32), None)
    long = placeholder(Aval((1 << 17,), dtypes.float32), None)
    assert planned_ops(TABLE["rfft"], x).count("split_signals") == 1
    assert planned_ops(TABLE["irfft"], z).count("joined_signals") == 1
    assert {"fourier", "halves_split"} < set(planned_ops(TABLE["rfft"], long))  # which the threads share
    assert {"fourier", "halves_joined"} < set(planned_ops(lambda x: TABLE["irfft"](TABLE["rfft"](x)), long))
    assert "split_signals" not in planned_ops(TABLE["rfft"], odd)
    assert "split_signals" not in planned_ops(lambda x: TABLE["rfft"](x, axis=0), x)
    assert "split_signals" not in planned_ops(TABLE["fft"], x)  # all of it is read
    assert host_steps([TABLE["rfft"](x), TABLE["irfft"](z)], [x, z]) == []  # a machine without code of its own


REAL_PROGRAMS = {
    "spectrum": lambda x: (ek.abs(ek.fft.rfft(x)) ** 2).sum(),
    "filter": lambda x: (ek.fft.irfft(ek.fft.rfft(x) * (1 + 2j), n=x.shape[-1]) ** 3).sum(),
    "longer": lambda x: (ek.real(ek.fft.rfft(x, n=32, norm="ortho")) ** 2 * 0.5).sum(),
    "columns": lambda x: (ek.imag(ek.fft.rfft(x, axis=0) * 3) ** 2).sum(),
    "both": lambda x: ek.real(ek.fft.fft(ek.fft.rfft(x), axis=0)).sum() + ek.imag(ek.fft.fft(x) ** 2).sum(),
}


@pytest.mark.parametrize("name", REAL_PROGRAMS)
def test_derivatives_and_batches_of_real_transforms(name):
    """As the reference machine computes them, which takes transforms of complex numbers."""
    program = REAL_PROGRAMS[name]
    x = np.random.default_rng(0).normal(size=(16, 18))
    v = np.random.default_rng(1).normal(size=(16, 18))

    def seen():
        given, way = ek.tensor(x), ek.tensor(v)
        gradient = ek.grad(program)
        second = ek.grad(lambda y: (gradient(y) * way).sum())
        several = ek.vmap(gradient)(ek.stack([given, way]))
        return [np.asarray(r.numpy()) for r in (ek.jit(program)(given), gradient(given), second(given), several)]

    found = seen()
    with ek.device("reference"):
        wanted = seen()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * max(1, np.abs(other).max()))


# --- products of matrices, and sums -----------------------------------------------------------------


PRODUCTS = [
    ((3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
    ((7,), (7, 30)), ((2, 7), (7, 65)), ((2, 1, 1, 7), (3, 7, 5)), ((40, 600), (600,)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", PRODUCTS)
def test_products_of_complex_matrices_are_those_of_their_parts(shapes):
    x, y = (signal(*shape, seed=k) for k, shape in enumerate(shapes))
    found = ek.jit(lambda a, b: a @ b)(ek.tensor(x), ek.tensor(y))
    np.testing.assert_allclose(found.numpy(), x @ y, atol=1e-14)
    if found.size:
        leaves = [placeholder(Aval(shape, dtypes.complex64), None) for shape in shapes]
        assert host_steps([TABLE["matmul"](*leaves)], leaves) == []

    def loss(a):
        return ek.real((a @ ek.tensor(y)) * (1 - 1j)).sum()

    with ek.device("reference"):
        wanted = ek.grad(loss)(ek.tensor(x)).numpy()
    np.testing.assert_allclose(ek.grad(loss)(ek.tensor(x)).numpy(), wanted, atol=1e-13)


@pytest.mark.parametrize(("shape", "axis"), [((4096 * 3,), None), ((2, 64, 128), (1, 2)), ((3, 70), 1), ((5, 4), 0)])
def test_sums_of_complex_numbers(shape, axis):
    x = signal(*shape)
    np.testing.assert_allclose(ek.tensor(x).sum(axis=axis).numpy(), x.sum(axis=axis), atol=1e-11)
    z = placeholder(Aval(shape, dtypes.complex64), None)
    assert host_steps([TABLE["sum"](z, axis)], [z]) == []


def test_quotients_and_moduli_are_numpys_at_the_ends_of_the_range():
    numbers = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e300, 1e-300]
    z = np.array([complex(a, b) for a in numbers for b in numbers])
    with np.errstate(all="ignore"):
        for x, y in [(z, np.roll(z, k)) for k in range(0, len(z), 7)]:
            found = ek.jit(lambda a, b: (a / b, ek.abs(a)))(ek.tensor(x), ek.tensor(y))
            for one, other in zip(found, (x / y, np.abs(x)), strict=True):
                for part in ("real", "imag"):
                    np.testing.assert_allclose(getattr(one.numpy(), part), getattr(other, part), rtol=1e-14)


def test_parts_of_a_small_left_factor_are_rows_and_a_large_right_one_is_not_copied():
    x, y = (buffer(signal(*shape, dtype=np.complex64), dtypes.complex64) for shape in ((2, 9), (9, 40)))
    nodes = topological(as_pairs([TABLE["matmul"](x, y)], CORES))
    assert {n.op.name for n in nodes if n.inputs} == {
        "combined", "matrix_product", "numbers", "pairs", "permute", "reshape"
    }  # fmt: skip
    (product,) = (n for n in nodes if n.op.name == "matrix_product")
    assert [x.shape for x in product.inputs] == [(4, 9), (9, 80)]


@pytest.mark.parametrize("device", ["cpu", "blocks"])
def test_matrices_for_products_are_doubled_in_one_step(device):
    """A row is followed by i times it, to the bit: infinities and signs of zeros stay what they are."""
    x, y = (buffer(signal(2, 3, 3, dtype=np.complex64, seed=s), dtypes.complex64) for s in (1, 2))
    target = CORES if device == "cpu" else BLOCKS
    names = [n.op.name for n in topological(as_pairs([TABLE["matmul"](x, y)], target)) if n.inputs]
    assert sorted(set(names)) == ["doubled", "matrix_product", "numbers", "pairs", "reshape"]
    values = np.array([[[1, -2], [np.inf, 0.0], [-0.0, 3]]], np.float32)
    node = make(DOUBLED, (buffer(values, dtypes.float32),), Doubling(device == "cpu"))
    (found,) = realize([node], open_backend(device))
    wanted = np.array([[values[0], [[2, 1], [-0.0, np.inf], [-3, -0.0]]]], np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
