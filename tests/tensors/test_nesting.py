"""Transformations around and inside control flow, custom derivatives and checkpoints.

Each program is a scalar function of one array. All of its derivatives are compared: the first by differences of the
value, the second by differences of the gradient, in reverse over reverse and forward over reverse; and each of them
under vmap with a loop.
"""

from __future__ import annotations

import numpy as np
import pytest
from numerics import close, gradient, second, t64, values

import eshkol as ek

XS = np.array([0.5, -1.0, 2.0])


@ek.custom_vjp
def backward_given(x):
    return ek.sin(x)


backward_given.defvjp(lambda x: (ek.sin(x), x), lambda x, ct: ct * ek.cos(x))


@ek.custom_jvp
def forward_given(x):
    return ek.sin(x)


forward_given.defjvp(lambda p, t: (forward_given(*p), t[0] * ek.cos(p[0])))


def walk(body, init):
    return ek.scan(body, init, t64(XS))


def descent(w):
    """Three steps of gradient descent, and what comes of the parameters."""

    def loss(p):
        return (ek.sin(p * w) ** 2).sum()

    p, _ = ek.scan(lambda p, _: (p - 0.1 * ek.grad(loss)(p), None), t64([0.3, 0.4]), length=3)
    return (p * w).sum()


def changed(x, place, value):
    x = x.clone()
    x[place] = value
    return x


def written(x):
    """A buffer that a loop fills, each element from those before."""

    def body(b, i):
        return changed(b, i, ek.sin(x * i) + b.sum()), None

    return (ek.scan(body, ek.zeros(4, dtype="float64"), ek.arange(4))[0] ** 2).sum()


def rotated(x):
    last = walk(lambda c, y: (c * ek.exp(x * 1j) * y, None), x + 0j)[0]
    return abs(last) ** 2 + last.real


def mixed_carry(x):
    return walk(lambda c, y: ((c[0] * x, c[1] + 1), c[0] * c[1]), (x, ek.tensor(0)))[1].sum()


def stopped(x):
    return walk(lambda c, y: (ek.sin(c * y) * x + ek.stop_gradient(t64(1.0)), None), x)[0]


def pushed(x):
    return ek.vmap(ek.linearize(lambda z: z * z * x, x)[1])(t64([1.0, 2.0])).sum()


def bounded(x):
    start = x, ek.tensor(0)
    return ek.while_loop(
        lambda s: (s[0] < 2) & (s[1] < 6), lambda s: (s[0] * 1.5 + x, s[1] + 1), start, max_iterations=6
    )[0]


def system(x):
    matrix = ek.stack([x, x**2]) + 2 * ek.eye(2, dtype="float64")
    return ek.solve(matrix, ek.cos(x)).sum()


def shifted(x):
    return ek.vmap(lambda s: walk(lambda c, y: (ek.sin(c * y + s), c), x)[1].sum())(t64(XS)).sum()


def kept(x):
    return walk(lambda c, y: (ek.checkpoint(lambda c: ek.sin(c * y) * x)(c), None), x)[0]


def indexed(x):
    return ek.fori_loop(0, 3, lambda i, c: c + ek.sin(x[i] * c), t64(1.0))


PROGRAMS = {
    "gradient descent in scan": (descent, [0.5, 0.6]),
    "scan in vmap": (shifted, 0.4),
    "scan in checkpoint": (ek.checkpoint(lambda x: walk(lambda c, y: (ek.sin(c * y) + x, None), x)[0]), 0.4),
    "checkpoint in scan": (kept, 0.4),
    "results of scan that are constant": (lambda x: walk(lambda c, y: (c + x, t64(2.0)), t64(1.0))[1].sum() * x, 0.4),
    "integers carried beside floats": (mixed_carry, 0.4),
    "bounded while": (bounded, 0.4),
    "bounded while in scan": (lambda x: walk(lambda c, y: (bounded(c * y + x) * 0.3, c), x)[0], 0.4),
    "stop_gradient in scan": (stopped, 0.4),
    "complex numbers in scan": (rotated, 0.4),
    "a derivative's map in vmap": (pushed, 0.4),
    "cond in cond": (lambda x: ek.cond(x > 0, lambda: ek.cond(x > 1, lambda: x, lambda: x**3), lambda: -x), 0.4),
    "indices in fori_loop": (indexed, [0.3, 0.4, 0.5]),
    "assignments in scan": (written, 0.4),
    "linear algebra": (system, [0.3, 0.4]),
    "sorting and softmax": (lambda x: (ek.softmax(ek.sort(x)) * t64(XS)).sum(), [0.3, -0.4, 0.5]),
}

GIVEN = {
    "in cond": lambda g: lambda x: ek.cond(x > 0, lambda: g(x * x), lambda: x),
    "in scan": lambda g: lambda x: walk(lambda c, y: (g(c * y + x), c), x)[0],
    "in checkpoint": lambda g: ek.checkpoint(lambda x: g(g(x))),
    "in vmap": lambda g: lambda x: ek.vmap(lambda y: g(y * x))(t64(XS)).sum(),
}


def check(f, at, forward=True):
    at = np.asarray(at, np.float64)
    slope, curve = ek.grad(f), ek.jacobian(ek.grad(f), mode="reverse")
    close(slope(t64(at)), gradient(f, at), 1e-7)
    close(curve(t64(at)), second(f, at), 1e-7)
    batch = np.stack([at, at * 0.7])
    tested = [f, slope, curve]
    if forward:
        close(ek.jacobian(f, mode="forward")(t64(at)), gradient(f, at), 1e-7)
        close(ek.hessian(f)(t64(at)), second(f, at), 1e-7)
        tested.append(ek.hessian(f))
    for function in tested:
        close(ek.vmap(function)(t64(batch)), np.stack([values(function(t64(v))) for v in batch]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_derivative_of_a_program_and_its_vmap(name):
    check(*PROGRAMS[name])


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("given", [forward_given, backward_given], ids=["custom_jvp", "custom_vjp"])
def test_given_derivatives_inside_everything(name, given):
    check(GIVEN[name](given), 0.4, forward=given is forward_given)
