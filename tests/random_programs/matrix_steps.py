"""Kinds of steps that bring values together over axes with parameters that are drawn, too.

Sums of products by einsum's letters, linear algebra of matrices that any values are made into well-conditioned ones of,
windows (pooling, convolutions, sliding) of any size, step and edge, orders of exact values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import eshkol as ek
from random_programs.choosing import Chooser, chance, order, some
from random_programs.program import Known, Step, kind
from random_programs.steps import place

LETTERS = "ijklmno"


def _double(v: Known) -> bool:
    return bool(v.array.dtype == np.float64)


def _matrices(v: Known) -> bool:
    return _double(v) and 1 < v.ndim < 4 and v.size > 0 and bool(np.isfinite(v.array).all())


# --- einsum ---------------------------------------------------------------------------------------


def _numpys_einsum(text: str, *arrays: Any) -> Any:
    """A sum over nothing is 0: NumPy has 0 or NaN where something else is infinite, as its loops happen to go."""
    terms, result = text.split("->")
    extents = {
        n: m for term, x in zip(terms.split(","), arrays, strict=True) for n, m in zip(term, x.shape, strict=True)
    }
    if any(m == 0 for n, m in extents.items() if n not in result):
        return np.zeros([extents[n] for n in result])
    return np.einsum(text, np.sin(arrays[0]), *arrays[1:])


@kind("einsum", lambda a, *xs: ek.einsum(a, ek.sin(xs[0]), *xs[1:]), numpys=_numpys_einsum, weight=5, folds=True)
def _einsum(c: Chooser, values: Sequence[Known]) -> Step | None:
    """Each axis has a letter of its extent, one that was there already or a new one; any of them are kept."""
    args: list[int] = []
    terms: list[str] = []
    extents: dict[str, int] = {}
    for _ in range(c.integer(1, 3)):
        k = place(c, values, lambda v: _double(v) and v.ndim < 4)
        if k is None:
            return None
        term = ""
        for n in values[k].shape:
            known = [x for x, m in extents.items() if m == n]
            fresh = next(x for x in LETTERS + "pqrstuvw" if x not in extents)
            letter = c.pick(known) if known and chance(c, 65) else fresh
            extents[letter] = n
            term += letter
        args.append(k)
        terms.append(term)
    kept = [x for x in extents if chance(c, 45)]
    result = "".join(kept[k] for k in order(c, len(kept)))
    return Step("einsum", tuple(args), f"{','.join(terms)}->{result}")


# --- linear algebra -------------------------------------------------------------------------------


def _definite(m: Any, x: Any) -> Any:
    """A symmetric matrix whose eigenvalues are 1 or more, for each of whatever matrices."""
    s = m.sin(x)
    return s @ m.swapaxes(s, -1, -2) + m.eye(x.shape[-2])


def _apart(m: Any, x: Any) -> Any:
    """A definite one whose eigenvalues differ: where they coincide, they have no second derivatives."""
    n = x.shape[-2]
    return _definite(m, x) + m.eye(n) * m.arange(n)


def _signed(m: Any, x: Any) -> Any:
    """One with a determinant that is not zero, not symmetric; square."""
    n = x.shape[-1]
    return m.sin(x) / n + 1.5 * m.eye(n)


OF_MATRICES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "inverse": (lambda x: ek.inv(_definite(ek, x)), lambda x: np.linalg.inv(_definite(np, x))),
    "factor": (lambda x: ek.cholesky(_definite(ek, x)), lambda x: np.linalg.cholesky(_definite(np, x))),
    "determinant": (lambda x: ek.det(_definite(ek, x) * 0.5), lambda x: np.linalg.det(_definite(np, x) * 0.5)),
    "log of it": (lambda x: ek.slogdet(_definite(ek, x))[1], lambda x: np.linalg.slogdet(_definite(np, x))[1]),
    "trace": (lambda x: ek.eigvalsh(_apart(ek, x)).sum(-1), lambda x: np.trace(_apart(np, x), 0, -2, -1)),
    "power": (
        lambda x: ek.matrix_power(_definite(ek, x) * 0.3, 3),
        lambda x: np.linalg.matrix_power(_definite(np, x) * 0.3, 3),
    ),
    "norm": (lambda x: (ek.svdvals(_apart(ek, x)) ** 2).sum(-1), lambda x: (_apart(np, x) ** 2).sum((-1, -2))),
}  # fmt: skip
OF_SQUARE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "inverse": (lambda x: ek.inv(_signed(ek, x)), lambda x: np.linalg.inv(_signed(np, x))),
    "determinant": (lambda x: ek.det(_signed(ek, x)), lambda x: np.linalg.det(_signed(np, x))),
    "by LU": (lambda x: _by_lu(_signed(ek, x)), lambda x: np.linalg.inv(_signed(np, x))),
    "qr": (lambda x: ek.matmul(*ek.qr(_signed(ek, x))), lambda x: _signed(np, x)),
}  # fmt: skip


def _by_lu(x: Any) -> Any:
    factors, pivots = ek.lu_factor(x)[:2]
    return ek.lu_solve(factors, pivots, ek.eye(x.shape[-1], dtype=x.dtype))


@kind("of matrices", lambda a, x: OF_MATRICES[a][0](x), numpys=lambda a, x: OF_MATRICES[a][1](x), weight=3)
def _of_matrices(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, _matrices)
    return None if k is None else Step("of matrices", (k,), c.pick(list(OF_MATRICES)))


@kind("of square", lambda a, x: OF_SQUARE[a][0](x), numpys=lambda a, x: OF_SQUARE[a][1](x), weight=2)
def _of_square(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _matrices(v) and v.shape[-1] == v.shape[-2])
    return None if k is None else Step("of square", (k,), c.pick(list(OF_SQUARE)))


@kind(
    "solve", lambda a, x, b: ek.solve(_definite(ek, x), b), numpys=lambda a, x, b: np.linalg.solve(_definite(np, x), b)
)
def _solve(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, _matrices)
    if k is None:
        return None
    x = values[k]
    j = place(c, values, lambda v: _matrices(v) and v.ndim == x.ndim and v.shape[:-1] == x.shape[:-1])
    return None if j is None else Step("solve", (k, j))


# --- windows --------------------------------------------------------------------------------------


@kind("sliding", lambda a, x: ek.sliding_window(x, *a), numpys=lambda a, x: _sliding(x, *a))
def _slid(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and v.size > 0)
    if k is None:
        return None
    axis = c.integer(0, values[k].ndim - 1)
    size = c.integer(1, values[k].shape[axis])
    return Step("sliding", (k,), (size, axis, c.integer(1, 3)), exact=values[k].exact)


def _sliding(x: Any, size: int, axis: int, step: int) -> Any:
    found = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return found[(slice(None),) * axis + (slice(None, None, step),)]


def _line(x: Any) -> Any:
    """Any values as one channel of lines."""
    return x.reshape((-1, 1, x.shape[-1]))


def _pooled(a: tuple[str, int, int, int], x: Any) -> Any:
    name, size, step, edge = a
    return getattr(ek, name)(_line(x), size, step, edge)


def _pooled_numpy(a: tuple[str, int, int, int], x: Any) -> Any:
    name, size, step, edge = a
    fill = -np.inf if name == "max_pool1d" else 0.0
    line = np.pad(_line(x), ((0, 0), (0, 0), (edge, edge)), constant_values=fill)
    found = _sliding(line, size, 2, step)
    return found.max(-1) if name == "max_pool1d" else found.mean(-1)


@kind("pool", _pooled, numpys=_pooled_numpy, weight=3)
def _pool(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _double(v) and v.ndim > 0 and v.size > 0)
    if k is None:
        return None
    name = c.pick(["max_pool1d", "avg_pool1d"])
    size = c.integer(1, min(4, values[k].shape[-1]))
    exact = values[k].exact and name == "max_pool1d"
    return Step("pool", (k,), (name, size, c.integer(1, 3), c.integer(0, size // 2)), exact)


def _convolved(a: tuple[int, int, int], x: Any, w: Any) -> Any:
    step, edge, apart = a
    return ek.conv1d(_line(x), _line(ek.sin(w)), stride=step, padding=edge, dilation=apart)


def _convolved_numpy(a: tuple[int, int, int], x: Any, w: Any) -> Any:
    step, edge, apart = a
    line, weight = np.pad(_line(x), ((0, 0), (0, 0), (edge, edge))), _line(np.sin(w))
    found = np.lib.stride_tricks.sliding_window_view(line, apart * (weight.shape[-1] - 1) + 1, 2)[:, :, ::step, ::apart]
    return np.einsum("bcnk,ock->bon", found, weight)


@kind("convolve", _convolved, numpys=_convolved_numpy, weight=3)
def _convolve(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _double(v) and v.ndim > 0 and v.size > 0)
    if k is None:
        return None
    step, edge, apart = c.integer(1, 2), c.integer(0, 2), c.integer(1, 2)
    most = (values[k].shape[-1] + 2 * edge - 1) // apart + 1
    j = place(c, values, lambda v: _double(v) and v.ndim > 0 and 0 < v.size < 40 and v.shape[-1] <= most)
    return None if j is None else Step("convolve", (k, j), (step, edge, apart))


def _of_shape(m: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """The values of an array, again and again until a shape is full."""
    flat = x.reshape((-1,))
    return m.take(flat, np.arange(math.prod(shape)) % flat.shape[0], 0).reshape(shape)


Planes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int], tuple[int, int], tuple[int, int]]


def _convolved_planes(a: Planes, x: Any, w: Any) -> Any:
    shape, kernel, step, edge, apart = a
    planes, weight = _of_shape(ek, x, shape), _of_shape(ek, ek.sin(w), kernel)
    return ek.conv2d(planes, weight, stride=step, padding=edge, dilation=apart)


def _convolved_planes_numpy(a: Planes, x: Any, w: Any) -> Any:
    shape, kernel, step, edge, apart = a
    planes = np.pad(_of_shape(np, x, shape), ((0, 0), (0, 0), *((n, n) for n in edge)))
    reach = [d * (k - 1) + 1 for d, k in zip(apart, kernel[2:], strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(planes, reach, (2, 3))[:, :, :: step[0], :: step[1]]
    return np.einsum("bcijkl,ockl->boij", seen[..., :: apart[0], :: apart[1]], _of_shape(np, np.sin(w), kernel))


@kind("convolve planes", _convolved_planes, numpys=_convolved_planes_numpy, weight=3)
def _convolve_planes(c: Chooser, values: Sequence[Known]) -> Step | None:
    """Of several channels, and of sizes, steps and edges that differ along both axes, as those of the values do not."""
    k, j = (place(c, values, lambda v: _double(v) and v.size > 0) for _ in range(2))
    if k is None or j is None:
        return None
    channels = c.integer(1, 6)
    sizes = [(c.integer(1, 4), c.integer(1, 3), c.integer(1, 3), c.integer(0, 1), c.integer(1, 2)) for _ in range(2)]
    if any(apart * (taps - 1) >= size + 2 * edge for size, taps, _, edge, apart in sizes):
        return None
    extents, kernel, step, edge, apart = zip(*sizes, strict=True)
    shape, taps = (c.integer(1, 2), channels, *extents), (c.integer(1, 3), channels, *kernel)
    return Step("convolve planes", (k, j), (shape, taps, step, edge, apart))


def _plane(x: Any) -> Any:
    return x.reshape((-1, 1, *x.shape[-2:]))


@kind("pool planes", lambda a, x: getattr(ek, a[0])(_plane(x), a[1], a[2]), numpys=lambda a, x: _planes_numpy(a, x))
def _pool_planes(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _double(v) and v.ndim > 1 and v.size > 0)
    if k is None:
        return None
    name = c.pick(["max_pool2d", "avg_pool2d"])
    size = tuple(c.integer(1, min(3, n)) for n in values[k].shape[-2:])
    exact = values[k].exact and name == "max_pool2d"
    return Step("pool planes", (k,), (name, size, (c.integer(1, 2), c.integer(1, 2))), exact)


def _planes_numpy(a: tuple[str, Any, Any], x: Any) -> Any:
    name, size, (down, right) = a
    found = np.lib.stride_tricks.sliding_window_view(_plane(x), size, (2, 3))[:, :, ::down, ::right]
    return found.max((-1, -2)) if name == "max_pool2d" else found.mean((-1, -2))


# --- orders ---------------------------------------------------------------------------------------


ORDERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "first": (lambda x, k, axis: ek.topk(x, k, axis)[0], lambda x, k, axis: _at(_falling(x, axis), axis, slice(k))),
    "last": (
        lambda x, k, axis: ek.topk(x, k, axis, largest=False)[0],
        lambda x, k, axis: _at(np.sort(x, axis), axis, slice(k)),
    ),
    "falling": (lambda x, k, axis: ek.sort(x, axis, descending=True)[0], lambda x, k, axis: _falling(x, axis)),
    "some": (
        lambda x, k, axis: _at(ek.sort(x, axis)[0], axis, slice(k)),
        lambda x, k, axis: _at(np.sort(x, axis), axis, slice(k)),
    ),
    "k-th": (lambda x, k, axis: ek.kthvalue(x, k, axis)[0], lambda x, k, axis: _at(np.sort(x, axis), axis, k - 1)),
    "middle": (lambda x, k, axis: ek.quantile(x, 0.5, axis), lambda x, k, axis: np.median(x, axis)),
    "greatest so far": (lambda x, k, axis: ek.cummax(x, axis)[0], lambda x, k, axis: np.maximum.accumulate(x, axis)),
    "least so far": (lambda x, k, axis: ek.cummin(x, axis)[0], lambda x, k, axis: np.minimum.accumulate(x, axis)),
    "spread": (
        lambda x, k, axis: ek.take_along(x, ek.argsort(x, axis), axis), lambda x, k, axis: np.sort(x, axis),
    ),
}  # fmt: skip


def _falling(x: Any, axis: int) -> Any:
    """Greatest first; NaN counts as the greatest, which -sort(-x) would put last."""
    return np.flip(np.sort(x, axis), axis)


def _at(x: Any, axis: int, what: Any) -> Any:
    return x[(slice(None),) * axis + (what,)]


@kind("order", lambda a, x: ORDERS[a[0]][0](x, *a[1:]), numpys=lambda a, x: ORDERS[a[0]][1](x, *a[1:]), weight=4)
def _ordered(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.exact and _double(v) and v.ndim > 0 and v.size > 0)
    if k is None:
        return None
    axis, name = c.integer(0, values[k].ndim - 1), c.pick(list(ORDERS))
    return Step("order", (k,), (name, c.integer(1, values[k].shape[axis]), axis), exact=name != "middle")


@kind("running", lambda a, x: ek.associative_scan(RUNNING[a[0]][0], x, reverse=a[2], axis=a[1]),
      numpys=lambda a, x: _running_numpy(a, x))  # fmt: skip
def _running(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _double(v) and 0 < v.ndim < 4 and v.size > 0)
    if k is None:
        return None
    name = c.pick([x for x in RUNNING if x != "greatest" or values[k].exact])
    exact = values[k].exact and name == "greatest"
    return Step("running", (k,), (name, c.integer(0, values[k].ndim - 1), chance(c, 40)), exact)


RUNNING: dict[str, tuple[Callable[..., Any], Any]] = {
    "sum": (lambda a, b: a + b, np.add), "greatest": (lambda a, b: ek.maximum(a, b), np.maximum),
    "mild": (lambda a, b: ek.hypot(a, b), np.hypot),
}  # fmt: skip


def _running_numpy(a: tuple[str, int, bool], x: Any) -> Any:
    name, axis, reverse = a
    line = np.flip(x, axis) if reverse else x
    found = RUNNING[name][1].accumulate(line, axis)
    return np.flip(found, axis) if reverse else found


@kind("choice", lambda a, i, x: ek.switch(i.reshape((-1,))[0] % 3, [lambda y, n=n: SWITCHED[n](ek, y) for n in a], x),
      numpys=lambda a, i, x: SWITCHED[a[int(i.reshape(-1)[0]) % 3]](np, x))  # fmt: skip
def _choice(c: Chooser, values: Sequence[Known]) -> Step | None:
    i = place(c, values, lambda v: v.exact and v.array.dtype == np.int64 and v.size > 0 and bool((v.array >= 0).all()))
    k = place(c, values, lambda v: _double(v) and v.size > 0)
    return None if i is None or k is None else Step("choice", (i, k), tuple(some(c, list(SWITCHED), 3, 3)))


SWITCHED: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda m, x: m.sin(x), "same": lambda m, x: x, "none": lambda m, x: x * 0.0 + 1.0,
    "less": lambda m, x: x - x.sum() * 0.1,
}  # fmt: skip
