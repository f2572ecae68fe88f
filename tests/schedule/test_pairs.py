"""Complex numbers as pairs around Fourier transforms: native on machines that have the instruction, as NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import amount, examples
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.atlas.table.linear import LONGEST_FFT
from eshkol.graph.node import Node, buffer, placeholder, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import OnHost, walk
from eshkol.schedule.rewrite.pairs import as_pairs

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
    outs = [TABLE["dft"](z)]
    assert as_pairs(outs, BLOCKS) == outs
    assert as_pairs([z * z], CORES) == [z * z]
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
