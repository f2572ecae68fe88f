"""Kinds of steps with programs inside: loops, branches, vmap, derivatives, checkpoints, jit within whatever is around.

What is inside is a body: a few functions from a shape to the same shape, some of which use a value from outside (which
is then captured). Each function is said with tensors and in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import eshkol as ek
from random_programs.choosing import Chooser, chance, some
from random_programs.program import Known, Step, kind
from random_programs.steps import place

Body = tuple[str, ...]


def _last(x: Any) -> Any:
    return x.mean(axis=-1, keepdims=True) if x.ndim else x


INSIDE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sin": (lambda x, w: ek.sin(x), lambda x, w: np.sin(x)),
    "tanh": (lambda x, w: ek.tanh(x), lambda x, w: np.tanh(x)),
    "half": (lambda x, w: x * 0.5 + 0.25, lambda x, w: x * 0.5 + 0.25),
    "captured": (lambda x, w: x * 0.5 + w, lambda x, w: x * 0.5 + w),
    "times captured": (lambda x, w: ek.sin(x) * ek.cos(w), lambda x, w: np.sin(x) * np.cos(w)),
    "less the mean": (lambda x, w: x - _last(x), lambda x, w: x - _last(x)),
    "flip": (lambda x, w: ek.flip(x, (0,)) if x.ndim else x, lambda x, w: np.flip(x, 0) if x.ndim else x),
    "sum of captured": (lambda x, w: ek.tanh(x + w.sum()), lambda x, w: np.tanh(x + w.sum())),
    "share": (
        lambda x, w: ek.softmax(ek.tanh(x), -1) if x.ndim else ek.tanh(x),
        lambda x, w: _share(np.tanh(x)) if x.ndim else np.tanh(x),
    ),
}  # fmt: skip


def _share(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def ours(body: Body, x: Any, w: Any) -> Any:
    for name in body:
        x = INSIDE[name][0](x, w)
    return x


def numpys(body: Body, x: Any, w: Any) -> Any:
    for name in body:
        x = INSIDE[name][1](x, w)
    return x


def _body(c: Chooser) -> Body:
    return tuple(some(c, list(INSIDE), 1, 3))


def _two(c: Chooser, values: Sequence[Known], test: Callable[[Known], bool]) -> tuple[int, int] | None:
    """A value, and one of its shape (possibly itself)."""
    k = place(c, values, lambda v: v.array.dtype == np.float64 and v.size > 0 and v.ndim < 4 and test(v))
    if k is None:
        return None
    j = place(c, values, lambda v: v.shape == values[k].shape and v.array.dtype == np.float64)
    assert j is not None
    return k, j


# --- loops ----------------------------------------------------------------------------------------


def _scan(a: tuple[Body, bool], xs: Any, w: Any) -> Any:
    body, reverse = a
    row = w[0]

    def turn(carry: Any, x: Any) -> Any:
        following = ek.tanh(carry + ours(body, x, row))
        return following, following * x

    carry, ys = ek.scan(turn, ek.zeros_like(row), xs, reverse=reverse)
    return ys + carry


def _scan_numpy(a: tuple[Body, bool], xs: Any, w: Any) -> Any:
    body, reverse = a
    carry, ys = np.zeros_like(w[0]), [None] * len(xs)
    for k in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry = np.tanh(carry + numpys(body, xs[k], w[0]))
        ys[k] = carry * xs[k]
    return np.stack(ys) + carry


@kind("scan", _scan, numpys=_scan_numpy, weight=2)
def _scanned(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: v.ndim > 0)
    return None if two is None else Step("scan", two, (_body(c), chance(c, 40)))


@kind(
    "rounds", lambda a, x, w: ek.fori_loop(0, a[1], lambda k, x: ek.tanh(ours(a[0], x, w) + k), x),
    numpys=lambda a, x, w: _rounds(a, x, w),
)  # fmt: skip
def _fori(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    return None if two is None else Step("rounds", two, (_body(c), c.integer(0, 3)))


def _rounds(a: tuple[Body, int], x: Any, w: Any) -> Any:
    for k in range(a[1]):
        x = np.tanh(numpys(a[0], x, w) + k)
    return x


def _while(a: tuple[Body, int], x: Any, w: Any) -> Any:
    body, most = a
    _, found = ek.while_loop(
        lambda s: s[0] < most, lambda s: (s[0] + 1, ek.sin(ours(body, s[1], w))), (ek.tensor(0), x)
    )
    return found


def _while_numpy(a: tuple[Body, int], x: Any, w: Any) -> Any:
    for _ in range(a[1]):
        x = np.sin(numpys(a[0], x, w))
    return x


@kind("while", _while, numpys=_while_numpy)
def _whiled(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    return None if two is None else Step("while", two, (_body(c), c.integer(0, 3)))


def _branch(a: tuple[Body, Body], flag: Any, x: Any, w: Any) -> Any:
    one, other = a
    test = flag.reshape((-1,))[0] > 0
    return ek.cond(test, lambda y: ours(one, y, w), lambda y: ours(other, y, w), x)


@kind("branch", _branch, numpys=lambda a, f, x, w: numpys(a[0 if f.reshape(-1)[0] > 0 else 1], x, w), weight=2)
def _branched(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    flag = place(c, values, lambda v: v.exact and v.size > 0 and v.is_real)
    return None if two is None or flag is None else Step("branch", (flag, *two), (_body(c), _body(c)))


# --- transformations inside -----------------------------------------------------------------------


@kind(
    "mapped", lambda a, x, w: ek.vmap(lambda row: ours(a, row, w[0]))(x),
    numpys=lambda a, x, w: np.stack([numpys(a, row, w[0]) for row in x]), weight=3,
)  # fmt: skip
def _mapped(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: v.ndim > 0)
    return None if two is None else Step("mapped", two, _body(c))


@kind(
    "mapped pairs", lambda a, x, w: ek.vmap(lambda row, other: ours(a, row, other), in_axes=(1, 1), out_axes=1)(x, w),
    numpys=lambda a, x, w: np.stack([numpys(a, x[:, k], w[:, k]) for k in range(x.shape[1])], 1),
)  # fmt: skip
def _mapped_pairs(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: v.ndim > 1)
    return None if two is None else Step("mapped pairs", two, _body(c))


@kind("slope", lambda a, x, w: ek.grad(lambda y: (ours(a, y, w) * ek.cos(w)).sum())(x), weight=2)
def _slope(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    return None if two is None else Step("slope", two, _body(c))


@kind("slopes", lambda a, x, w: ek.vmap(ek.grad(lambda row, v: (ours(a, row, v) ** 2).sum()))(x, w))
def _slopes(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: v.ndim > 0)
    return None if two is None else Step("slopes", two, _body(c))


@kind("checkpoint", lambda a, x, w: ek.checkpoint(lambda y, v: ours(a, y, v))(x, w), numpys=numpys)
def _checkpoint(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    return None if two is None else Step("checkpoint", two, _body(c))


@kind("jit inside", lambda a, x, w: ek.jit(lambda y, v: ours(a, y, v))(x, w), numpys=numpys, plain=ours, weight=2)
def _jit_inside(c: Chooser, values: Sequence[Known]) -> Step | None:
    two = _two(c, values, lambda v: True)
    return None if two is None else Step("jit inside", two, _body(c))
