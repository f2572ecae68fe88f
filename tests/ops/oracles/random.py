"""Oracles of random numbers: Threefry-2x32 in Python's integers, and judges of draws by their distribution.

Draws of a thousand numbers and more are compared with the distribution of scipy.stats by Kolmogorov and Smirnov, or by
chi-squared; keys are fixed, so that a test that passes once passes always.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from eshkol.ops.row import Draw, Sample, sample
from oracles.registry import Call, every, first, floating, given, oracle, place, second

KEY = Draw((2,), 0, 2**32 - 1, kind="key")
_MANY, _LEAST_CHANCE = 2000, 1e-3
_WORD = 2**32
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def _threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Salmon et al. 2011, 20 rounds: rotate and add; every fourth round a word of the key, and its number."""
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    x, y = (counter[0] + keys[0]) % _WORD, (counter[1] + keys[1]) % _WORD
    for turn in range(20):
        x = (x + y) % _WORD
        by = _ROTATIONS[turn % 8]
        y = ((y << by | y >> (32 - by)) % _WORD) ^ x
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = (x + keys[group % 3]) % _WORD
            y = (y + keys[(group + 1) % 3] + group) % _WORD
    return x, y


def _words(key: Any, count: int, high: int) -> list[int]:
    found: list[int] = []
    for block in range(-(-count // 2)):
        found.extend(_threefry((int(key[0]), int(key[1])), (high, block)))
    return found[:count]


@oracle(
    "random_bits",
    dtype=given("uint32"),
    more=[sample(KEY, shape=n, dtype=d) for n in (1, 7) for d in ("uint32", "uint64")],
)
def _random_bits(key: Any, shape: Any, dtype: Any = "uint32") -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(shape)
    found = np.zeros((*key.shape[:-1], count), object)
    for k in np.ndindex(*key.shape[:-1]):
        words = _words(key[k], count * (2 if dtype == "uint64" else 1), 0)
        found[k] = [a << 32 | b for a, b in zip(words[::2], words[1::2], strict=True)] if dtype == "uint64" else words
    return found.reshape((*key.shape[:-1], *shape))


@oracle("split_key", dtype=first)
def _split_key(key: Any, count: int = 2) -> Any:
    return np.array(_words(key, 2 * count, 1 << 31), object).reshape(count, 2)


@oracle("fold_in", dtype=first)
def _fold_in(key: Any, number: Any) -> Any:
    lead = np.broadcast_shapes(key.shape[:-1], number.shape)
    keys, numbers = np.broadcast_to(key, (*lead, 2)), np.broadcast_to(number, lead)

    def word(i: tuple[int, ...]) -> int:
        high, low = divmod(int(numbers[i[:-1]]) % 2**62, _WORD)
        return _threefry((int(keys[i[:-1]][0]), int(keys[i[:-1]][1])), (high | 0xC0000000, low))[i[-1]]

    return every((*lead, 2), word)


# --- distributions ----------------------------------------------------------------------------------


def _shape_of(shape: Any, *parameters: Any) -> tuple[int, ...]:
    if shape is not None:
        return (shape,) if isinstance(shape, int) else tuple(shape)
    return np.broadcast_shapes(*(np.shape(p) for p in parameters))


def _parameter_dtype(call: Call) -> str:
    """That of the parameters that are tensors, made floats; float32 where there are none."""
    others = call.arrays[1:]
    return floating(Call(others, call.given)) if others else "float32"


def _follows(draws: Any, distribution: Any) -> None:
    if draws.size >= 1000:
        assert stats.kstest(draws.astype(np.float64).ravel(), distribution.cdf).pvalue > _LEAST_CHANCE
        one, other = draws.ravel()[:-1], draws.ravel()[1:]
        tied = stats.spearmanr(one.astype(np.float64), other.astype(np.float64))
        assert abs(tied.statistic) < 4 / math.sqrt(draws.size), "neighbouring draws are not independent"


def _continuous(name: str, cases: list[dict[str, Any]], support: Any, distribution: Any) -> None:
    """distribution(**parameters) is of scipy.stats; support(**parameters) gives bounds that no draw may leave."""

    def judge(results: Any, key: Any, *args: Any, shape: Any = None, dtype: Any = None, **parameters: Any) -> None:
        (draws,) = results
        names = _PARAMETERS[name]
        bound = dict(zip(names, args, strict=False)) | parameters
        if "shape" in bound:
            shape = bound.pop("shape")
        numbers = {k: v for k, v in bound.items() if v is not None and k != "dtype"}
        assert draws.shape == _shape_of(shape, *numbers.values())
        low, high = support(**numbers)
        assert np.all(draws >= low)
        assert np.all(draws <= high)
        assert np.all(np.isfinite(draws.astype(np.float64)))
        if all(np.ndim(v) == 0 for v in numbers.values()):
            _follows(draws, distribution(**numbers))

    oracle(name, judges=True, dtype=given(_parameter_dtype), more=[
        sample(KEY, shape=_MANY, **case, **extra) for case in cases for extra in ({}, {"dtype": "float64"})
    ])(judge)  # fmt: skip


_PARAMETERS = {
    "uniform": ("shape", "low", "high", "dtype"), "normal": ("shape", "loc", "scale", "dtype"),
    "gumbel": ("shape", "loc", "scale", "dtype"), "laplace": ("shape", "loc", "scale", "dtype"),
    "exponential": ("shape", "scale", "dtype"), "truncated_normal": ("shape", "low", "high", "loc", "scale", "dtype"),
    "gamma": ("alpha", "shape", "scale", "dtype"), "beta": ("a", "b", "shape", "dtype"),
    "student_t": ("df", "shape", "loc", "scale", "dtype"),
}  # fmt: skip
_LINE = (-math.inf, math.inf)
_PLACED: list[dict[str, Any]] = [{}, {"loc": -3.0, "scale": 0.5}]

_continuous("uniform", [{}, {"low": -1.0, "high": 4.0}], lambda low=0.0, high=1.0: (low, high),
            lambda low=0.0, high=1.0: stats.uniform(low, high - low))  # fmt: skip
_continuous("normal", _PLACED, lambda **p: _LINE, lambda loc=0.0, scale=1.0: stats.norm(loc, scale))
_continuous("gumbel", _PLACED, lambda **p: _LINE, lambda loc=0.0, scale=1.0: stats.gumbel_r(loc, scale))
_continuous("laplace", _PLACED, lambda **p: _LINE, lambda loc=0.0, scale=1.0: stats.laplace(loc, scale))
_continuous(
    "exponential", [{}, {"scale": 3.0}], lambda scale=1.0: (0, math.inf), lambda scale=1.0: stats.expon(0, scale)
)
_continuous(
    "truncated_normal", [{}, {"low": 0.5, "high": math.inf, "loc": 1.0, "scale": 2.0}],
    lambda low=-2.0, high=2.0, loc=0.0, scale=1.0: (loc + scale * low - 1e-5, loc + scale * high + 1e-5),
    lambda low=-2.0, high=2.0, loc=0.0, scale=1.0: stats.truncnorm(low, high, loc, scale),
)  # fmt: skip
_continuous("gamma", [{"alpha": 0.3}, {"alpha": 1.0}, {"alpha": 4.5, "scale": 2.0}], lambda **p: (0, math.inf),
            lambda alpha, scale=1.0: stats.gamma(alpha, 0, scale))  # fmt: skip
_continuous("beta", [{"a": 0.5, "b": 0.5}, {"a": 2.0, "b": 5.0}], lambda **p: (0, 1), lambda a, b: stats.beta(a, b))
_continuous("student_t", [{"df": 2.5}, {"df": 8.0, "loc": 1.0, "scale": 0.5}], lambda **p: _LINE,
            lambda df, loc=0.0, scale=1.0: stats.t(df, loc, scale))  # fmt: skip


def _even(counts: Any, chances: Any) -> None:
    """Chi-squared."""
    if sum(counts) >= 1000:
        assert stats.chisquare(counts, np.asarray(chances) * sum(counts)).pvalue > _LEAST_CHANCE


@oracle(
    "bernoulli",
    judges=True,
    dtype=given("bool"),
    more=[
        *(sample(KEY, p=p, shape=_MANY) for p in (0.1, 0.5, 0.95)),
        sample(KEY, p=0.0, shape=9),
        sample(KEY, p=1.0, shape=9),
        sample(KEY, p=0.25, shape=_MANY, dtype="float32"),
    ],
)
def _bernoulli(results: Any, key: Any, p: Any = 0.5, shape: Any = None, dtype: Any = "bool") -> None:
    (draws,) = results
    assert draws.shape == _shape_of(shape, p)
    assert np.all((draws == 0) | (draws == 1))
    if np.ndim(p) == 0 and 0 < p < 1:
        _even([np.sum(draws == 0), np.sum(draws == 1)], [1 - p, p])
    elif np.ndim(p) == 0:
        assert np.all(draws == p)


@oracle("randint", judges=True, dtype=given("int64"), more=[
    sample(KEY, low=-3, high=4, shape=_MANY, dtype=d) for d in ("int8", "int32", "int64")
])  # fmt: skip
def _randint(results: Any, key: Any, low: int, high: int, shape: Any = (), dtype: Any = "int64") -> None:
    (draws,) = results
    assert draws.shape == _shape_of(shape)
    assert all(low <= int(v) < high for v in draws.ravel())
    if draws.size >= 1000:
        _even([np.sum(draws == k) for k in range(low, high)], [1 / (high - low)] * (high - low))


@oracle("poisson", judges=True, dtype=given("int64"), more=[
    sample(KEY, rate=rate, shape=_MANY, **how) for rate in (0.4, 7.0, 60.0) for how in ({}, {"dtype": "float64"})
])  # fmt: skip
def _poisson(results: Any, key: Any, rate: Any, shape: Any = None, dtype: Any = "int64") -> None:
    (draws,) = results
    assert draws.shape == _shape_of(shape, rate)
    assert np.all((draws >= 0) & (draws == np.floor(draws)))
    if draws.size >= 1000:
        bounds = np.unique(stats.poisson(rate).ppf([0.1, 0.3, 0.5, 0.7, 0.9]))
        found = np.bincount(np.searchsorted(bounds, draws), minlength=len(bounds) + 1)
        _even(found, np.diff([0, *stats.poisson(rate).cdf(bounds), 1]))


@oracle("randperm", judges=True, dtype=given("int64"), more=[sample(KEY, n=200), sample(KEY, n=7, dtype="int8")])
def _randperm(results: Any, key: Any, n: int, dtype: Any = "int64") -> None:
    (order,) = results
    assert sorted(order.tolist()) == list(range(n))
    if n >= 100:
        assert abs(stats.spearmanr(order, np.arange(n)).statistic) < 4 / math.sqrt(n)


@oracle("dropout", judges=True, dtype=first, more=[
    sample(Draw((_MANY,), 1.0, 2.0), KEY, p=p) for p in (0.0, 0.25, 0.8, 1.0)
])  # fmt: skip
def _dropout(results: Any, x: Any, key: Any, p: float = 0.5, training: bool = True) -> None:
    (found,) = results
    if not training or p == 0:
        assert np.array_equal(found, x)
        return
    gone = found == 0
    assert np.all(gone) if p == 1 else True
    if p < 1:
        epsilon = 2.0**-6 if found.dtype.itemsize == 2 else 1e-5
        np.testing.assert_allclose(found.astype(np.float64)[~gone], (x / (1 - p))[~gone], rtol=epsilon)
        _even([np.sum(gone), np.sum(~gone)], [p, 1 - p])


@oracle(
    "categorical",
    judges=True,
    dtype=place,
    fixed=("axis",),
    more=[
        Sample((KEY, Draw((3,), kind="float", make=lambda rng: [0.0, 1.0, -1.0])), {"shape": (_MANY,)}),
        Sample(
            (KEY, Draw((3, 2), kind="float", make=lambda rng: [[0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]])),
            {"axis": 0, "shape": (_MANY,)},
        ),
    ],
)
def _categorical(results: Any, key: Any, logits: Any, axis: int = -1, shape: Any = None) -> None:
    (draws,) = results
    rows = np.moveaxis(logits, axis, -1)
    front = _shape_of(shape) if shape is not None else ()
    assert draws.shape == (*front, *rows.shape[:-1])
    assert np.all((draws >= 0) & (draws < rows.shape[-1]))
    for at in np.ndindex(*rows.shape[:-1]):
        powers = [math.exp(v) for v in rows[at]]
        chosen = draws[(..., *at)]
        _even([np.sum(chosen == k) for k in range(len(powers))], [v / sum(powers) for v in powers])


@oracle(
    "multinomial",
    judges=True,
    dtype=place,
    more=[
        Sample(
            (KEY, Draw((4,), kind="float", make=lambda rng: [1.0, 2.0, 0.0, 5.0])),
            {"count": _MANY, "replacement": True},
        ),
        Sample((KEY, Draw((2, 4), kind="float", make=lambda rng: [[1.0, 2.0, 3.0, 5.0]] * 2)), {"count": 4}),
    ],
    fixed=("replacement",),
)
def _multinomial(results: Any, key: Any, probabilities: Any, count: int, replacement: bool = False) -> None:
    (draws,) = results
    assert draws.shape == (*probabilities.shape[:-1], count)
    for at in np.ndindex(*probabilities.shape[:-1]):
        chosen = draws[at].tolist()
        assert all(probabilities[(*at, k)] > 0 for k in chosen)
        assert replacement or len(set(chosen)) == count
        shares = probabilities[at] / probabilities[at].sum()
        if replacement:
            kept = [k for k in range(len(shares)) if shares[k]]
            _even([chosen.count(k) for k in kept], [shares[k] for k in kept])


@oracle("dirichlet", judges=True, dtype=given(second), more=[
    Sample((KEY, Draw((3,), kind="float", make=lambda rng: [0.5, 1.0, 3.0])), {"shape": (_MANY,)})
])  # fmt: skip
def _dirichlet(results: Any, key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> None:
    (draws,) = results
    front = alpha.shape[:-1] if shape is None else _shape_of(shape)
    assert draws.shape == (*front, alpha.shape[-1])
    assert np.all(draws >= 0)
    epsilon = 2.0**-6 if draws.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(draws.astype(np.float64).sum(-1), np.ones(front), rtol=epsilon)
    if alpha.ndim == 1:
        for k, a in enumerate(alpha):
            _follows(np.ascontiguousarray(draws[..., k]), stats.beta(a, alpha.sum() - a))
