"""Random numbers: known answers, keys that do not meet, the same bits everywhere, and the distributions they claim."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from op_harness import arguments, arrays_in, as_buffer, cases, flat, refilled, rng_of, rows
from scipy import stats

from effort import amount
from eshkol.backends import open_backend
from eshkol.errors import DerivativeError, DTypeError, EshkolError, ShapeError, TensorError
from eshkol.graph import derive, interpret
from eshkol.graph.batch import batch
from eshkol.graph.node import Scope, mark, placeholder
from eshkol.ops import dtypes
from eshkol.ops.distributions import (
    bernoulli,
    beta,
    categorical,
    dirichlet,
    dropout,
    exponential,
    gamma,
    gumbel,
    laplace,
    multinomial,
    normal,
    randint,
    randperm,
    student_t,
    truncated_normal,
    uniform,
)
from eshkol.ops.random import Bits, _bits, fold_in, host_fold_in, host_split, random_bits, split_key
from eshkol.ops.row import Aval
from eshkol.schedule.run.execute import realize
from eshkol.tensors.keys import Generator, key_of

COUNT = 20_000
KEY = key_of(20_250_117)
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def drawn(op, *args, key=KEY, **attrs) -> np.ndarray:
    """A draw, computed by the references."""
    made = [as_buffer(x) if isinstance(x, np.ndarray) else x for x in args]
    attrs = {k: as_buffer(x) if isinstance(x, np.ndarray) else x for k, x in attrs.items()}
    return interpret.evaluate([op(as_buffer(key), *made, **attrs)])[0]


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [  # of Random123: kat_vectors, threefry2x32 with 20 rounds
        ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(counter, key, block):
    from eshkol.support.threefry import ARRAYS, threefry

    words = [np.array([x], np.uint32) for x in (*key, *counter)]
    with np.errstate(over="ignore"):
        got = threefry(ARRAYS, tuple(words[:2]), tuple(words[2:]))
    assert tuple(int(x[0]) for x in got) == block


def test_the_first_draw_is_the_first_known_answer():
    zero = np.zeros(2, np.uint32)
    np.testing.assert_array_equal(drawn(random_bits, 2, key=zero), [0x6B200159, 0x99BA4EFE])
    assert int(drawn(random_bits, (), "uint64", key=zero)) == 0x6B20015999BA4EFE


def test_a_number_depends_on_its_place_alone():
    long = drawn(random_bits, 60)
    np.testing.assert_array_equal(drawn(random_bits, 7), long[:7])
    np.testing.assert_array_equal(drawn(random_bits, (5, 12)).reshape(-1), long)
    pairs = drawn(random_bits, 30, "uint64")
    np.testing.assert_array_equal(pairs, long[0::2].astype(np.uint64) << np.uint64(32) | long[1::2])


def test_every_bit_is_set_half_of_the_time():
    bits = drawn(random_bits, COUNT)
    set_ = ((bits[:, None] >> np.arange(32, dtype=np.uint32)) & 1).sum(0)
    assert stats.chi2.sf(np.sum((set_ - COUNT / 2) ** 2 / (COUNT / 4)), 32) > 1e-3


def test_keys_and_draws_never_meet():
    """Words of draws, of split keys and of folded keys come of different blocks, so they are all different."""
    draws = drawn(random_bits, 500, "uint64")
    keys = np.concatenate([host_split(KEY, 500), [host_fold_in(KEY, n) for n in range(500)]]).astype(np.uint64)
    seen = np.concatenate([draws, keys[:, 0] << np.uint64(32) | keys[:, 1]])
    assert len(np.unique(seen)) == 1500


def test_split_keys_are_independent():
    keys = interpret.evaluate([split_key(as_buffer(KEY), 8)])[0]
    samples = np.stack([drawn(normal, COUNT, key=k, dtype="float64") for k in (KEY, *keys)])
    correlation = np.corrcoef(samples) - np.eye(9)
    assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(COUNT)


def test_neighbouring_seeds_are_independent():
    samples = np.stack([drawn(normal, COUNT, key=key_of(n), dtype="float64") for n in range(6)])
    assert np.max(np.abs(np.corrcoef(samples) - np.eye(6))) < 4.5 / np.sqrt(COUNT)


def test_vmap_over_keys_gives_what_each_key_gives():
    keys = host_split(KEY, 3)
    scope = Scope("trace", "vmap")
    inner = placeholder(Aval((2,), dtypes.uint32), scope)
    drawing = [
        normal(inner, (4,)),
        split_key(inner, 2),
        fold_in(inner, 5),
        randint(inner, 0, 99, (3,)),
        randperm(inner, 6),
    ]
    wide = interpret.evaluate(batch(drawing, {inner: as_buffer(keys)}, scope))
    for k, key in enumerate(keys):
        alone = interpret.evaluate([
            normal(as_buffer(key), (4,)), split_key(as_buffer(key), 2), fold_in(as_buffer(key), 5),
            randint(as_buffer(key), 0, 99, (3,)), randperm(as_buffer(key), 6),
        ])  # fmt: skip
        for got, wanted in zip(wide, alone, strict=True):
            np.testing.assert_array_equal(got[k], wanted)


# --- backends -------------------------------------------------------------------------------------

DRAWN = [op for op in rows() if op.group == "random"]
# A beta is two gammas, which take long to compile once already: `make test` draws gammas.
LONG = {"gamma", "beta", "categorical", "dirichlet", "student_t"}  # to compile, for each of their samples
EXACT = {"random_bits", "split_key", "fold_in", "uniform", "bernoulli", "randint", "randperm", "dropout"}


@pytest.mark.parametrize(
    "op", [pytest.param(op, marks=[pytest.mark.slow] if op.name == "beta" else []) for op in DRAWN],
    ids=[op.name for op in DRAWN],
)  # fmt: skip
def test_backends_draw_the_same(op):
    """By scalar code as by NumPy: to the bit, or within a few units of what functions of floats are rounded to."""
    machine = open_backend("cpu")
    suitable = [case for case in cases(op) if case[2] in (dtypes.float32, dtypes.int64)]
    if op.name in LONG:
        suitable = suitable[: amount(len(suitable), 1)]
    for number, sample, dtype in suitable:
        args = arguments(sample, dtype, rng_of(op.name, number))
        nodes = refilled(args, [as_buffer(x) for x in arrays_in(args)])
        outputs = flat(op(*nodes, **sample.attrs))
        for wanted, got in zip(interpret.evaluate(outputs), realize(outputs, machine), strict=True):
            assert got.dtype == wanted.dtype
            if op.name in EXACT or got.dtype.kind in "biu":
                np.testing.assert_array_equal(got, wanted)
            else:
                got, wanted = got.astype(np.float64), wanted.astype(np.float64)
                np.testing.assert_allclose(got, wanted, rtol=2e-3 if "dtype" in sample.attrs else 4e-6, atol=1e-6)


def test_two_machines_draw_the_same_long_sequence():
    key = as_buffer(KEY)
    for make in (lambda: random_bits(key, (3, 4001)), lambda: randint(key, -(2**63), 2**63 - 9, 4001)):
        wanted = interpret.evaluate([make()])[0]
        np.testing.assert_array_equal(realize([make()], open_backend("cpu"))[0], wanted)


# --- distributions --------------------------------------------------------------------------------

RIGHT = 1e-3  # the probability below which a distribution is called wrong; the seeds are fixed


def fits(values: np.ndarray, distribution) -> None:
    assert np.all(np.isfinite(values))
    assert stats.kstest(values.astype(np.float64), distribution.cdf).pvalue > RIGHT


CONTINUOUS = {
    "uniform": (lambda **a: drawn(uniform, COUNT, -3.0, 5.0, **a), stats.uniform(-3, 8)),
    "normal": (lambda **a: drawn(normal, COUNT, 1.0, 2.0, **a), stats.norm(1, 2)),
    "gumbel": (lambda **a: drawn(gumbel, COUNT, 1.0, 2.0, **a), stats.gumbel_r(1, 2)),
    "laplace": (lambda **a: drawn(laplace, COUNT, 1.0, 2.0, **a), stats.laplace(1, 2)),
    "exponential": (lambda **a: drawn(exponential, COUNT, 2.0, **a), stats.expon(0, 2)),
    "truncated": (lambda **a: drawn(truncated_normal, COUNT, -1.0, 2.0, **a), stats.truncnorm(-1, 2)),
    "upper tail": (lambda **a: drawn(truncated_normal, COUNT, 4.0, np.inf, **a), stats.truncnorm(4, np.inf)),
    "lower tail": (lambda **a: drawn(truncated_normal, COUNT, -9.0, -6.0, **a), stats.truncnorm(-9, -6)),
    "gamma 0.1": (lambda **a: drawn(gamma, 0.1, COUNT, **a), stats.gamma(0.1)),
    "gamma 1": (lambda **a: drawn(gamma, 1.0, COUNT, 3.0, **a), stats.gamma(1, scale=3)),
    "gamma 7.5": (lambda **a: drawn(gamma, 7.5, COUNT, **a), stats.gamma(7.5)),
    "gamma 1e4": (lambda **a: drawn(gamma, 1e4, COUNT, **a), stats.gamma(1e4)),
    "beta": (lambda **a: drawn(beta, 2.0, 0.5, COUNT, **a), stats.beta(2, 0.5)),
    "student": (lambda **a: drawn(student_t, 3.0, COUNT, 1.0, 2.0, **a), stats.t(3, 1, 2)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name, dtype):
    draw, distribution = CONTINUOUS[name]
    values = draw(dtype=dtype)
    assert values.dtype == np.dtype(dtype)
    fits(values, distribution)


def test_each_element_has_its_own_parameters():
    scale = np.array([0.5, 1.0, 4.0], np.float64)
    values = drawn(normal, (COUNT, 3), np.array([-1.0, 0.0, 2.0]), scale)
    for k in range(3):
        fits(values[:, k], stats.norm([-1, 0, 2][k], scale[k]))
    alpha = np.array([0.4, 3.0])
    values = drawn(gamma, alpha, (COUNT, 2))
    for k in range(2):
        fits(values[:, k], stats.gamma(alpha[k]))


def test_dirichlet():
    alpha = np.array([0.5, 2.0, 3.5])
    values = drawn(dirichlet, alpha, COUNT)
    np.testing.assert_allclose(values.sum(-1), 1, rtol=1e-12)
    for k in range(3):
        fits(values[:, k], stats.beta(alpha[k], alpha.sum() - alpha[k]))
    tiny = drawn(dirichlet, np.full(4, 1e-3, np.float32), 1000)
    assert np.all(np.isfinite(tiny))
    np.testing.assert_allclose(tiny.sum(-1), 1, rtol=1e-6)


def counted(values: np.ndarray, probabilities) -> None:
    """Chi-square of how often each of the first integers came."""
    found = np.bincount(values.reshape(-1), minlength=len(probabilities))
    expected = np.asarray(probabilities, np.float64)
    expected = expected / expected.sum() * values.size
    assert len(found) == len(probabilities)
    assert np.all(found[expected == 0] == 0)
    kept = expected > 0
    assert stats.chisquare(found[kept], expected[kept]).pvalue > RIGHT


def test_choices():
    p = np.array([0.1, 0.0, 0.2, 0.65, 0.05], np.float32)
    with np.errstate(divide="ignore"):
        counted(drawn(categorical, np.log(p), shape=(COUNT,)), p)
    counted(drawn(multinomial, p, COUNT, replacement=True), p)
    counted(drawn(randint, 0, 10, COUNT), np.ones(10))
    counted(drawn(randint, -3, 4, COUNT, dtype="int8").astype(np.int64) + 3, np.ones(7))
    counted(drawn(bernoulli, 0.3, COUNT).astype(np.int64), [0.7, 0.3])
    counted(drawn(bernoulli, np.full(COUNT, 0.3, np.float32)).astype(np.int64), [0.7, 0.3])


def test_choices_along_an_axis():
    logits = np.log(np.array([[0.2, 0.9], [0.8, 0.1]]))
    values = drawn(categorical, logits, axis=0, shape=(COUNT,))
    assert values.shape == (COUNT, 2)
    counted(values[:, 0], [0.2, 0.8])
    counted(values[:, 1], [0.9, 0.1])


def test_draws_without_replacement():
    p = np.array([0.5, 0.3, 0.2, 0.0])
    rows = drawn(multinomial, np.broadcast_to(p, (COUNT, 4)).copy(), 3)
    assert np.all(np.sort(rows, -1) == [0, 1, 2]), "no place twice, and none of probability 0"
    counted(rows[:, 0], p)
    counted(rows[rows[:, 0] == 0, 1], [0, 0.6, 0.4, 0])


def test_wide_integers():
    span = 3 * 2**61
    values = drawn(randint, -(2**62), -(2**62) + span, COUNT)
    fits((values.astype(np.float64) + 2**62) / span, stats.uniform())
    everything = drawn(randint, 0, 2**64, COUNT, dtype="uint64")
    fits(everything / 2.0**64, stats.uniform())
    assert drawn(randint, 5, 6, 100).tolist() == [5] * 100
    top = 2**64 - 1
    assert set(drawn(randint, top - 1, top + 1, 100, dtype="uint64").tolist()) == {top - 1, top}


def test_permutations():
    rows = np.stack([drawn(randperm, 3, key=host_fold_in(KEY, n)) for n in range(1500)])
    assert np.all(np.sort(rows, -1) == [0, 1, 2])
    orders = np.unique(rows @ np.array([9, 3, 1]), return_inverse=True)[1]
    counted(orders, np.ones(6))
    assert sorted(drawn(randperm, 1000).tolist()) == list(range(1000))


# --- bounds, shapes, dtypes -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 2.0), (-2.0, -1.0), (-1.0, 0.0), (0.0, 3.7), (2.0, 2.0)])
def test_high_is_never_reached(dtype, low, high, monkeypatch):
    """Not even by the greatest random bits, whether the bounds are numbers or tensors."""
    kind = dtypes.of(dtype).numpy

    def extreme(a: Bits, key: np.ndarray) -> np.ndarray:
        bits = _bits(a, key).reshape(-1)
        most = np.iinfo(bits.dtype).max
        bits[: len(bits) // 2] = most - np.arange(len(bits) // 2, dtype=bits.dtype)
        return bits.reshape(a.shape)

    monkeypatch.setitem(random_bits.__dict__, "reference", extreme)
    for bounds in ((low, high), tuple(np.asarray(x).astype(kind) for x in (low, high))):
        values = drawn(uniform, 2000, *bounds, dtype=dtype)
        assert values.dtype == kind
        assert np.all(values >= np.asarray(low).astype(kind))
        assert np.all(values < np.asarray(high).astype(kind)) or low == high


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_and_their_means(dtype):
    for op, mean in ((uniform, 0.5), (normal, 0.0), (exponential, 1.0), (laplace, 0.0)):
        values = drawn(op, COUNT, dtype=dtype)
        assert values.dtype == dtypes.of(dtype).numpy
        assert abs(float(values.astype(np.float64).mean()) - mean) < 0.03


def test_uniform_uses_every_bit_of_the_mantissa():
    values = drawn(uniform, COUNT)
    assert np.all(values * 2.0**24 == np.floor(values * 2.0**24))
    assert np.any(values * 2.0**23 != np.floor(values * 2.0**23))
    wide = drawn(uniform, COUNT, dtype="float64")
    assert np.any(wide * 2.0**52 != np.floor(wide * 2.0**52))


def test_tails_are_long_and_finite(monkeypatch):
    def extreme(a: Bits, key: np.ndarray) -> np.ndarray:
        most = np.iinfo(a.dtype.numpy).max
        return np.array([0, most, most // 2, most // 2 + 1], a.dtype.numpy)

    monkeypatch.setitem(random_bits.__dict__, "reference", extreme)
    for dtype, reach in (("float32", 6.3), ("float64", 9.2)):
        values = drawn(normal, 4, dtype=dtype)
        np.testing.assert_allclose(values, [-reach, reach, 0, 0], atol=0.1)
        for op in (exponential, gumbel, laplace):
            assert np.all(np.isfinite(drawn(op, 4, dtype=dtype)))
        assert np.all(drawn(exponential, 4, dtype=dtype) > 0)


def test_empty_and_scalar_draws():
    for op in (uniform, normal, gumbel, laplace, exponential, truncated_normal):
        assert drawn(op, 0).shape == (0,)
        assert drawn(op, (3, 0)).shape == (3, 0)
        assert drawn(op).shape == ()
    assert drawn(gamma, 2.0, 0).shape == (0,)
    assert drawn(randperm, 0).shape == (0,)
    assert drawn(multinomial, np.ones(3), 0).shape == (0,)


def test_certain_events():
    assert not drawn(bernoulli, 0.0, 1000).any()
    assert drawn(bernoulli, 1.0, 1000).all()
    sure = np.repeat([0.0, 1.0], 500).astype(np.float32)
    np.testing.assert_array_equal(drawn(bernoulli, sure), sure == 1)
    assert drawn(bernoulli, 0.5, 3, dtype="float32").dtype == np.float32


# --- derivatives ----------------------------------------------------------------------------------


def slope(op, *args, **attrs) -> np.ndarray:
    """The derivative of a draw in all its float tensors at once."""
    scope = Scope("grad", "test")
    marks = {k: mark(as_buffer(x), scope) for k, x in enumerate(args) if isinstance(x, np.ndarray)}
    output = op(as_buffer(KEY), *(marks.get(k, x) for k, x in enumerate(args)), **attrs)
    tangents = {m: as_buffer(np.ones(m.shape, m.dtype.numpy)) for m in marks.values()}
    (found,) = derive.jvp([output], tangents, scope)
    return interpret.evaluate([derive.zeros(output) if found is None else found])[0]


def test_draws_follow_location_and_scale():
    one, two = np.ones(5), np.full(5, 2.0)
    for op in (normal, gumbel, laplace):
        np.testing.assert_allclose(slope(op, 5, one, two), 1 + drawn(op, 5, dtype="float64"))
    np.testing.assert_allclose(slope(uniform, 5, one, two), 1)
    np.testing.assert_allclose(slope(exponential, 5, two), drawn(exponential, 5, dtype="float64"))
    np.testing.assert_allclose(slope(gamma, 2.0, 5, two), drawn(gamma, 2.0, 5, dtype="float64"))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: slope(gamma, np.full(3, 2.0)), lambda: slope(beta, np.full(3, 2.0), np.ones(3)),
        lambda: slope(dirichlet, np.full(3, 2.0)), lambda: slope(student_t, np.full(3, 2.0)),
    ],
)  # fmt: skip
def test_rejection_has_no_silent_derivative(draw):
    with pytest.raises(DerivativeError, match="rejection"):
        draw()


def test_dropout():
    x = np.linspace(1, 2, COUNT).astype(np.float32)
    scope = Scope("grad", "test")
    node = mark(as_buffer(x), scope)
    out = dropout(node, as_buffer(KEY), 0.3)
    (pulled,) = derive.vjp([out], [node], scope)([as_buffer(np.ones_like(x))])
    values, gradient = interpret.evaluate([out, pulled])
    counted((values == 0).astype(np.int64), [0.7, 0.3])
    np.testing.assert_allclose(values[values != 0], x[values != 0] / 0.7, rtol=1e-6)
    np.testing.assert_allclose(gradient, (values != 0) / 0.7, rtol=1e-6)
    assert dropout(node, None, 0.3, training=False) is node
    assert dropout(node, None, 0.0) is node
    assert not np.any(interpret.evaluate([dropout(as_buffer(np.array([np.inf, 1.0])), as_buffer(KEY), 1.0)])[0])


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: drawn(uniform, 3, key=np.zeros(3, np.uint32)), TensorError),
        (lambda: drawn(uniform, 3, key=np.zeros(2, np.int64)), TensorError),
        (lambda: drawn(normal, 3, key=np.zeros((4, 2), np.uint32)), TensorError),
        (lambda: drawn(random_bits, 3, "int32"), DTypeError),
        (lambda: drawn(random_bits, (-1,)), ShapeError),
        (lambda: drawn(random_bits, (1 << 40, 1 << 40)), ShapeError),
        (lambda: drawn(fold_in, -1), TensorError),
        (lambda: drawn(fold_in, np.array(0.5)), DTypeError),
        (lambda: drawn(uniform, 3, 2.0, 1.0), TensorError),
        (lambda: drawn(uniform, 3, 0.0, float("nan")), TensorError),
        (lambda: drawn(uniform, 3, 0.0, 1e6, dtype="float16"), TensorError),
        (lambda: drawn(uniform, 3, dtype="int32"), DTypeError),
        (lambda: drawn(normal, (2,), np.zeros(3)), ShapeError),
        (lambda: drawn(normal, 2, 0.0, -1.0), TensorError),
        (lambda: drawn(randint, 3, 3, 2), TensorError),
        (lambda: drawn(randint, 0, 300, 2, dtype="uint8"), DTypeError),
        (lambda: drawn(randint, 0, 3.5, 2), TensorError),
        (lambda: drawn(randperm, -1), ShapeError),
        (lambda: drawn(randperm, 300, dtype="int8"), DTypeError),
        (lambda: drawn(bernoulli, 1.5, 3), TensorError),
        (lambda: drawn(categorical, np.zeros((2, 0))), ShapeError),
        (lambda: drawn(multinomial, np.ones(2), 3), ShapeError),
        (lambda: drawn(multinomial, np.array([1.0, -0.5]), 1), TensorError),
        (lambda: drawn(multinomial, np.array([1.0, float("nan")]), 1), TensorError),
        (lambda: drawn(truncated_normal, 3, 2.0, 1.0), TensorError),
        (lambda: drawn(truncated_normal, 3, 30.0, 31.0), TensorError),
        (lambda: drawn(gamma, -1.0, 3), TensorError),
        (lambda: drawn(dirichlet, np.array(1.0)), ShapeError),
        (lambda: dropout(as_buffer(np.ones(2)), as_buffer(KEY), 1.5), TensorError),
        (lambda: dropout(as_buffer(np.ones(2)), None), TensorError),
        (lambda: dropout(as_buffer(np.ones(2, np.int32)), as_buffer(KEY)), DTypeError),
        (lambda: Generator(-1), TensorError),
        (lambda: Generator(1 << 64), TensorError),
        (lambda: Generator(True), TensorError),
        (lambda: setattr(Generator(0), "state", 3), TensorError),
        (lambda: setattr(Generator(0), "state", ((1, 2), -1)), TensorError),
    ],
)
def test_refusals(wrong, error):
    with pytest.raises(error) as caught:
        wrong()
    assert isinstance(caught.value, EshkolError)


# --- generators -----------------------------------------------------------------------------------


def test_a_generator_counts():
    one, other = Generator(7), Generator(7)
    keys = [one.next_key() for _ in range(5)]
    np.testing.assert_array_equal(keys, [other.next_key() for _ in range(5)])
    assert len({tuple(k) for k in keys}) == 5
    on_device = interpret.evaluate([fold_in(as_buffer(key_of(7)), 3)])[0]
    np.testing.assert_array_equal(keys[3], on_device)


def test_a_generator_can_be_stored():
    generator = Generator(2**64 - 1)
    generator.next_key()
    state, copy = generator.state, pickle.loads(pickle.dumps(generator))
    expected = generator.next_key()
    np.testing.assert_array_equal(copy.next_key(), expected)
    generator.state = state
    np.testing.assert_array_equal(generator.next_key(), expected)
    generator.seed(3)
    np.testing.assert_array_equal(generator.next_key(), Generator(3).next_key())


def test_generators_split():
    parts = Generator(1).split(3)
    keys = {tuple(g.next_key()) for g in parts for _ in range(100)}
    whole = Generator(1)
    keys |= {tuple(whole.next_key()) for _ in range(100)}
    assert len(keys) == 400


def test_threads_share_a_generator():
    generator, found = Generator(0), []
    threads = [
        threading.Thread(target=lambda: found.extend(tuple(generator.next_key()) for _ in range(50))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200
