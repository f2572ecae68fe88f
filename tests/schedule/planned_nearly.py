"""Random programs that are nearly what the compiler has patterns for, planned for `plan_sizes.txt`.

Comes in: a seed for each. Goes out: functions with their inputs, which `planned_functions.py` enters. Attention, what
follows a product or a convolution, normalizations, transforms, places, and bodies of loops are made of parts that are
there or not, in one order or another, of one shape or another, and now and then read by something else as well: a
condition of a pattern that is dropped, or always holds, makes another plan of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import eshkol as ek

Function = Callable[..., Any]
EACH = 12  # programs of a family
HALF, SINGLE = "bfloat16", "float32"


class Nearly(NamedTuple):
    """A function, its inputs, and whether its derivative is planned too."""

    function: Function
    inputs: tuple[Any, ...]
    derivative: bool


def _besides(r: Random, seen: list[Any]) -> tuple[int, ...]:
    """Which of the values in between are results too: mostly none."""
    return tuple(k for k in range(len(seen)) if r.random() < 0.15)


def _chained(steps: list[Function], kept: tuple[int, ...]) -> Function:
    """One step after another, each on what the one before gives and the inputs; some in between are given too."""

    def function(first: Any, *others: Any) -> Any:
        value, found = first, []
        for place, step in enumerate(steps):
            value = step(value, *others)
            if place in kept:
                found.append(value)
        return (value, *found)

    return function


def attention(r: Random) -> Nearly:
    """Scores, scaled before or after, masked in one way or another, by rows or by columns, times values or others."""
    lead = r.choice(((), (2,), (2, 4)))
    rows, keys, size = r.choice((9, 16)), r.choice((9, 16, 20)), r.choice((16, 32))
    dtype = r.choice((HALF, HALF, SINGLE))
    shared = (*lead[:-1], 1) if lead and r.random() < 0.3 else lead
    scale, before, widened = r.choice((1.0, size**-0.5, 0.3)), r.random() < 0.5, r.random() < 0.7
    steps: list[Function] = [
        lambda q, k, v, m, b: (q * scale if before else q) @ k.swapaxes(-1, -2),
        lambda s, *_: (s.astype(ek.float32) if widened else s) * (1.0 if before else scale),
    ]
    least = r.choice((-float("inf"), -1e30, 0.0))
    ways: list[Function] = [
        lambda s, k, v, m, b: ek.where(m, s, least), lambda s, k, v, m, b: ek.where(m, least, s),
        lambda s, k, v, m, b: s + b.astype(s.dtype), lambda s, k, v, m, b: s - b.astype(s.dtype),
        lambda s, k, v, m, b: ek.where(m, s + b.astype(s.dtype), least), lambda s, *_: ek.tanh(s),
    ]  # fmt: skip
    steps += r.sample(ways, r.choice((0, 1, 1, 1, 2)))
    axis = r.choice((-1, -1, -1, -2))
    steps.append(lambda s, *_: ek.softmax(s, axis))
    if r.random() < 0.2:
        steps.append(lambda s, k, v, m, b: ek.where(m, s, 0.0))
    steps.append(lambda s, k, v, m, b: s.astype(v.dtype) @ v)
    mask = r.choice(((rows, keys), (*lead, rows, keys), (1, keys)))
    inputs = ((dtype, (*lead, rows, size)), (dtype, (*shared, keys, size)), (dtype, (*shared, keys, size)),
              ("bool_", mask), (SINGLE, r.choice(((rows, keys), (keys,), (*lead, 1, keys)))))  # fmt: skip
    return Nearly(_chained(steps, _besides(r, steps)), inputs, r.random() < 0.4)


def followed(r: Random) -> Nearly:
    """A product of matrices seen in some way, and what follows it."""
    rows, terms, columns = r.choice((24, 32, 40)), r.choice((16, 24, 32)), r.choice((16, 24, 32))
    lead, dtype = r.choice(((), (), (3,), (2, 2))), r.choice((HALF, HALF, SINGLE))
    turned, batched = r.random() < 0.3, r.random() < 0.5
    cut = r.choice((None, None, slice(0, terms // 2), slice(None, None, 2)))

    def product(x: Any, w: Any, *_: Any) -> Any:
        x = x.swapaxes(-1, -2) if turned else x
        return x @ w if cut is None else x[..., cut] @ w[..., cut, :]

    further: list[Function] = [
        lambda y, w, b, s, z: y + b.astype(y.dtype), lambda y, w, b, s, z: y * s.astype(y.dtype),
        lambda y, w, b, s, z: y + z.astype(y.dtype), lambda y, w, b, s, z: z.astype(y.dtype) - y,
        lambda y, *_: ek.relu(y), lambda y, *_: ek.gelu(y), lambda y, *_: y * ek.sigmoid(y), lambda y, *_: ek.tanh(y),
        lambda y, *_: y * 0.5, lambda y, *_: y.astype(ek.float32), lambda y, *_: ek.sin(y), lambda y, *_: y.sum(-1),
        lambda y, *_: y.reshape(-1), lambda y, *_: y.swapaxes(-1, -2), lambda y, *_: y[..., ::2, :],
        lambda y, *_: ek.softmax(y, -1),
    ]  # fmt: skip
    last = r.choice((9, 9, 11, len(further)))
    chosen = sorted(r.sample(range(last), r.randint(1, 3)), key=lambda k: (k > 9, r.random()))
    steps = [product, *(further[k] for k in chosen if k <= 9), *[further[k] for k in chosen if k > 9][:1]]
    held = (*lead, terms, rows) if turned else (*lead, rows, terms)
    inputs = ((dtype, held), (dtype, (*lead, terms, columns) if batched else (terms, columns)),
              (dtype, r.choice(((columns,), (rows, 1), (1,), (*lead, 1, columns)))), (dtype, ()),
              (dtype, (*lead, rows, columns)))  # fmt: skip
    return Nearly(_chained(steps, _besides(r, steps)), inputs, r.random() < 0.4)


def convolved(r: Random) -> Nearly:
    """A convolution of one kind or another, with what networks put behind it."""
    into, out, groups = r.choice((3, 16, 32)), r.choice((16, 24)), 1
    if into == 16 and r.random() < 0.4:
        groups, out = r.choice((2, 16)), 16
    size, kernel, dtype = r.choice((7, 8)), r.choice((1, 2, 3)), r.choice((HALF, SINGLE, SINGLE))
    how = {
        "stride": r.choice((1, 1, 2)),
        "padding": r.choice((0, 1)),
        "dilation": r.choice((1, 1, 2)),
        "groups": groups,
    }
    further: list[Function] = [
        lambda y, w, m, s: (y - m) * s, lambda y, w, m, s: y * s + m, lambda y, w, m, s: y / (s + 2) + m,
        lambda y, *_: ek.relu(y), lambda y, *_: ek.silu(y), lambda y, *_: ek.max_pool2d(y, 2),
        lambda y, *_: ek.avg_pool2d(y, 2), lambda y, *_: y + ek.relu(y), lambda y, *_: y.mean((2, 3)),
        lambda y, *_: (y - y.mean((0, 2, 3), keepdims=True)) * 2, lambda y, *_: y[:, ::2],
        lambda y, *_: y.permute(0, 2, 3, 1),
    ]  # fmt: skip
    chosen = sorted(r.sample(range(len(further)), r.randint(1, 3)))
    steps = [lambda x, w, *_: ek.conv2d(x, w, **how), *(further[k] for k in chosen if k < 8 or k == max(chosen))]
    inputs = ((dtype, (2, into, size, size)), (dtype, (out, into // groups, kernel, kernel)), (dtype, (out, 1, 1)),
              (dtype, r.choice(((out, 1, 1), (1,)))))  # fmt: skip
    return Nearly(_chained(steps, _besides(r, steps)), inputs, r.random() < 0.4)


def normalized(r: Random) -> Nearly:
    """Means and deviations along some axes, and what is made of them."""
    shape = r.choice(((6, 40), (4, 5, 30), (3, 300), (70, 8)))
    axis = r.choice((-1, -1, 0, tuple(range(len(shape)))))
    keep = r.random() < 0.8 or axis == -1
    steps: list[Function] = [
        lambda x, g, *_: x - x.mean(axis, keepdims=keep),
        lambda x, g, *_: x / ek.sqrt((x * x).mean(axis, keepdims=keep) + 1e-5),
        lambda x, g, *_: x * g, lambda x, g, *_: ek.exp(x - x.max(axis=axis, keepdims=keep)),
        lambda x, g, *_: x / x.sum(axis, keepdims=keep), lambda x, g, *_: ek.log(ek.abs(x) + 1),
        lambda x, g, *_: x + g * 2,
        lambda x, g, *_: x * ek.var(x, axis, keepdims=keep), lambda x, g, *_: ek.log_softmax(x, -1),
        lambda x, g, *_: ek.cumsum(x, -1), lambda x, g, *_: x.sum(0), lambda x, g, *_: (x * x).sum(),
    ]  # fmt: skip
    chosen = sorted(r.sample(range(len(steps)), r.randint(2, 4)))
    taken = [steps[k] for k in chosen if k < 10] + [steps[k] for k in chosen if k >= 10][:1]
    return Nearly(_chained(taken, _besides(r, taken)), (shape, (shape[-1],)), r.random() < 0.5)


def transformed(r: Random) -> Nearly:
    """Transforms of real and complex numbers after each other, with factors, zeros and pieces in between."""
    real, n = r.random() < 0.6, r.choice((8, 12, 13, 16, 64))
    first: Function = (
        r.choice((lambda x, h: ek.rfft(x), lambda x, h: ek.fft(x), lambda x, h: ek.fft(x, 2 * n),
        lambda x, h: ek.fft2(x)))
        if real else r.choice((lambda x, h: ek.fft(x), lambda x, h: ek.ifft(x, axis=0),
        lambda x, h: ek.fft(x[..., : n - 2])))
    )  # fmt: skip
    further: list[Function] = [
        lambda z, h: z * 2.0, lambda z, h: z / n, lambda z, h: z * h[: z.shape[-1]], lambda z, h: z * z.conj(),
        lambda z, h: z * (1 + 2j), lambda z, h: -z, lambda z, h: z[..., : z.shape[-1] // 2],
        lambda z, h: ek.roll(z, 1, -1),
        lambda z, h: ek.ifft(z), lambda z, h: ek.fft(z, axis=0), lambda z, h: ek.real(z), lambda z, h: ek.abs(z),
        lambda z, h: ek.irfft(z), lambda z, h: ek.irfft(z, 2 * n),
    ]  # fmt: skip
    steps = [first, *r.sample(further[:10], r.randint(1, 3)), *r.sample(further[8:], 1)]
    inputs = ((SINGLE if real else "complex64", (4, n)), (r.choice((SINGLE, "complex64")), (2 * n,)))
    return Nearly(_chained(steps, _besides(r, steps)), inputs, False)


def placed(r: Random) -> Nearly:
    """Elements that are taken, put and ordered, at places that are given or computed."""
    rows, length, last = r.choice((5, 40)), r.choice((6, 30, 70)), r.random() < 0.5
    steps: list[Function] = [
        lambda x, y, i, k: ek.take(x, i, 0), lambda x, y, i, k: ek.take(x, i % x.shape[-1], -1),
        lambda x, y, i, k: ek.take_along(x, k % x.shape[1], 1),
        lambda x, y, i, k: ek.take_along(x, ek.argsort(y, 1), 1),
        lambda x, y, i, k: ek.take_along(x, ek.argsort(x, 1), 1), lambda x, y, i, k: x.at[i].add(y[: i.shape[0]]),
        lambda x, y, i, k: x.at[i].set(2.0), lambda x, y, i, k: ek.index_add(x, 0, i, y[: i.shape[0]] * 2),
        lambda x, y, i, k: ek.take_along(y, ek.cummax(x, 1)[1], 1), lambda x, y, i, k: ek.cummin(x, 1)[0] + y,
        lambda x, y, i, k: ek.topk(x, 3)[0], lambda x, y, i, k: ek.sort(x, -1 if last else 0)[0],
        lambda x, y, i, k: ek.where(x > x.mean(), x, y), lambda x, y, i, k: ek.flip(x, (1,)) * y,
        lambda x, y, i, k: ek.argmax(x, 1, keepdims=last), lambda x, y, i, k: ek.searchsorted(ek.sort(x, 1)[0][0], y),
    ]  # fmt: skip
    full = (4, 5, 6, 7, 8, 9, 12, 13)  # which give what has the shape of x
    chosen = [*r.sample(full, r.randint(0, 2)), r.randrange(len(steps))]
    inputs = ((rows, length), (rows, length), ("int64", (4,)), ("int64", (rows, 3)))
    taken = [steps[k] for k in chosen]
    return Nearly(_chained(taken, _besides(r, taken)), inputs, r.random() < 0.3 and max(chosen) < 10)


def repeated(r: Random) -> Nearly:
    """Loops whose bodies have what is the same in every round, what only adds up, and products with what comes in."""
    n = r.choice((4, 8))
    terms: list[Function] = [
        lambda h, x, w, b: h @ w, lambda h, x, w, b: x @ w, lambda h, x, w, b: x, lambda h, x, w, b: ek.tanh(b @ w),
        lambda h, x, w, b: b, lambda h, x, w, b: h * 0.5, lambda h, x, w, b: ek.sin(x) * b, lambda h, x, w, b: w.sum(0),
        lambda h, x, w, b: (x * h).sum(), lambda h, x, w, b: x @ w.T, lambda h, x, w, b: ek.softmax(h, -1),
    ]  # fmt: skip
    chosen = r.sample(range(len(terms)), r.randint(2, 4))
    around = r.choice((ek.tanh, ek.relu, lambda v: v, ek.sigmoid))
    given = r.choice((0, 1, 2))
    backwards = r.random() < 0.2

    def function(xs: Any, w: Any, b: Any, h: Any) -> Any:
        def body(carried: Any, x: Any) -> Any:
            state, total = carried
            new = around(sum((terms[k](state, x, w, b) for k in chosen), start=state * 0))
            return (new, total + (new * b if given else x)), (new.sum(), new, state)[given]

        return ek.scan(body, (h, h * 0), xs[::-1] if backwards else xs)

    return Nearly(lambda *xs: ek.tree_leaves(function(*xs)), ((6, 3, n), (n, n), (n,), (3, n)), r.random() < 0.6)


FAMILIES = (attention, followed, convolved, normalized, transformed, placed, repeated)


def drawn() -> Iterator[tuple[str, Nearly]]:
    """The programs by their names."""
    for family in FAMILIES:
        for seed in range(EACH):
            yield f"nearly {family.__name__} {seed}", family(Random(f"{family.__name__} {seed}"))
