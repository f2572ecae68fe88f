"""Bodies of loops and branches are compiled as graphs elsewhere are: nothing in them is left to the host."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.schedule.plan.steps import OnHost, walk
from eshkol.schedule.run.native import Joined, NativePlan

ROWS = np.random.default_rng(3).normal(size=(6, 40)).astype(np.float32)


def host_steps(function, *args, monkeypatch) -> list[str]:
    """The ops of a function that plans leave to NumPy, in bodies too; the function has run as it does for anyone."""
    made: list[NativePlan] = []
    real = NativePlan.__init__

    def noted(self, *given, **named):
        real(self, *given, **named)
        made.append(self)

    with monkeypatch.context() as patched:
        patched.setattr(NativePlan, "__init__", noted)
        ek.jit(function)(*map(ek.tensor, args))
    (plan,) = made
    left = [s.node.op.name for s in walk(plan.plan.steps) if isinstance(s, OnHost) and plan.codes[id(s)] is None]
    assert bool(left) != (plan.whole is not None and isinstance(plan.whole, Joined))
    return left


def in_scan(carry, rows):
    def step(c, row):
        ordered = ek.sort(c + row, stable=True)
        best = ek.topk(ordered.values * row, 3)
        at = ek.searchsorted(ordered.values, row)
        return ordered.values, (ordered.indices, best.values, best.indices, at, ek.median(row))

    return ek.scan(step, carry, rows)


def in_while(carry, rows):
    def step(state):
        k, c = state
        return k + 1, ek.sort(c * 1.5 + rows[0], descending=True).values

    return ek.while_loop(lambda state: state[0] < 4, step, (ek.tensor(0), carry))


def in_branches(carry, rows):
    return ek.cond(rows[0, 0] > carry[0], lambda x: ek.argsort(x), lambda x: ek.argsort(x, descending=True), rows[1])


def nested(carry, rows):
    def step(c, row):
        return ek.cond(row[0] > 0, lambda x: ek.sort(x).values, lambda x: ek.flip(ek.sort(x).values, 0), c + row), row[
            0
        ]

    return ek.scan(step, carry, rows)


@pytest.mark.parametrize("function", [in_scan, in_while, in_branches, nested])
def test_orders_in_bodies_are_native(function, monkeypatch):
    assert host_steps(function, ROWS[0], ROWS, monkeypatch=monkeypatch) == []


def test_orders_in_scans_are_numpys():
    rows = ROWS.copy()
    rows[2, 5:9] = np.nan, np.inf, -np.inf, np.nan
    rows[:, 11] = rows[:, 12]
    last, (places, values, where, found, middle) = ek.jit(in_scan)(ek.tensor(ROWS[0]), ek.tensor(rows))
    c = ROWS[0]
    for k, row in enumerate(rows):
        order = np.argsort(c + row, stable=True)
        np.testing.assert_array_equal(places[k].numpy(), order)
        c = (c + row)[order]
        greatest, at = np.array(ek.topk(ek.tensor(c * row), 3).values), ek.topk(ek.tensor(c * row), 3).indices
        np.testing.assert_array_equal(values[k].numpy(), greatest)
        np.testing.assert_array_equal(where[k].numpy(), at.numpy())
        np.testing.assert_array_equal(found[k].numpy(), np.searchsorted(c, row))
        np.testing.assert_array_equal(middle[k].numpy(), ek.median(ek.tensor(row)).numpy())
    np.testing.assert_array_equal(last.numpy(), c)


def test_gradients_and_batches_of_orders_in_scans():
    def weighted(carry, rows):
        last, stacked = ek.scan(lambda c, row: (ek.sort(c * row).values, ek.topk(c, 2).values), carry, rows)
        return (last * ek.arange(40)).sum() + (stacked**2).sum()

    def unrolled(carry, rows):
        total = 0.0
        for k in range(3):
            total = total + (ek.topk(carry, 2).values ** 2).sum()
            carry = ek.sort(carry * rows[k]).values
        return total + (carry * ek.arange(40)).sum()

    carry, rows = ek.tensor(ROWS[0].astype(np.float64)), ek.tensor(ROWS[:3].astype(np.float64))
    for ours, plain in zip(
        ek.jit(ek.grad(weighted, (0, 1)))(carry, rows), ek.grad(unrolled, (0, 1))(carry, rows), strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), plain.numpy(), rtol=1e-12)
    many = ek.tensor(ROWS.astype(np.float64))
    np.testing.assert_allclose(
        ek.jit(ek.vmap(weighted, (0, None)))(many, rows).numpy(),
        [unrolled(row, rows).item() for row in many],
        rtol=1e-12,
    )


def native_codes(monkeypatch) -> list[str]:
    """The ops that plans ask the runtime's own code for, from now on."""
    seen: list[str] = []
    real = NativePlan._code

    def noted(self, one):
        seen.append(one.node.op.name)
        return real(self, one)

    monkeypatch.setattr(NativePlan, "_code", noted)
    return seen


def test_eigenvalues_in_bodies_are_computed_without_vectors(monkeypatch):
    """As elsewhere; what is read of the decomposition inside a loop is what is computed."""
    x = ROWS[:, :6] + ROWS[:, :6].T

    def step(c, k):
        return c * 0.5 + ek.eigh(c)[0].sum(), k

    seen = native_codes(monkeypatch)
    ek.jit(lambda c: ek.scan(step, c, ek.arange(3)))(ek.tensor(x))
    assert seen == ["eigvalsh"]


def test_the_triangle_of_qr_is_computed_without_the_other_factor(monkeypatch):
    x = ek.tensor(ROWS.astype(np.float64).T)
    q, r = (factor.numpy() for factor in ek.qr(x))
    seen = native_codes(monkeypatch)
    np.testing.assert_array_equal(ek.jit(lambda x: ek.qr(x)[1] + 0)(x).numpy(), r)
    assert seen == ["triangle_of_qr"]
    both = ek.jit(lambda x: (ek.qr(x)[1] + 0, ek.qr(x)[0] + 0))(x)
    np.testing.assert_array_equal(both[0].numpy(), r)
    np.testing.assert_array_equal(both[1].numpy(), q)
    assert seen == ["triangle_of_qr", "tall_qr"]


def test_exponentials_of_matrices_are_native_and_so_are_their_gradients(monkeypatch):
    def in_loop(x):
        return ek.scan(lambda c, k: (ek.expm(c * 0.5), ek.grad(lambda y: ek.expm(y).sum())(c)), x, ek.arange(3))

    for function in (ek.expm, ek.grad(lambda x: ek.expm(x).sum()), in_loop):
        assert host_steps(function, ROWS[:, :6], monkeypatch=monkeypatch) == []


# --- patterns --------------------------------------------------------------------------------------


def layered(x, weights, bias):
    """A body with a product that is followed, attention, and a mean along axis 0."""

    def layer(x, wb):
        w, b = wb
        y = ek.relu(x @ w + b)
        mixed = ek.attention(y[None, None], y[None, None], y[None, None], causal=True)[0, 0]
        return x + mixed @ w, mixed.mean(0)

    return ek.scan(layer, x, (weights, bias))


def test_patterns_are_found_in_bodies():
    rng = np.random.default_rng(1)
    x, weights, bias = (ek.tensor(rng.normal(size=s).astype(np.float32) * 0.3) for s in ((8, 16), (3, 16, 16), (3, 16)))
    shown = ek.jit(layered)
    found = shown(x, weights, bias)
    wanted, means = x, []
    for k in range(3):
        y = ek.relu(wanted @ weights[k] + bias[k])
        mixed = ek.attention(y[None, None], y[None, None], y[None, None], causal=True)[0, 0]
        wanted = wanted + mixed @ weights[k]
        means.append(mixed.mean(0).numpy())
    np.testing.assert_allclose(found[0].numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), np.stack(means), rtol=1e-4, atol=1e-5)
    told = str(ek.memory_report(layered, x, weights, bias))
    assert told.count("followed_product") == 2
    assert "attended" in told


def test_weights_are_not_turned_in_every_round():
    rng = np.random.default_rng(1)
    rows, start, w = (ek.tensor(rng.normal(size=s)) for s in ((5, 4, 6), (4, 6), (6, 6)))

    def loss(w):
        return (ek.scan(lambda h, x: (ek.tanh(x + h @ w.T), None), start, rows)[0] ** 2).sum()

    slope = ek.jit(ek.grad(loss))(w)
    moved = rng.normal(size=(6, 6))
    away = [float(loss(ek.tensor(w.numpy() + h * moved))) for h in (1e-5, -1e-5)]
    assert (slope.numpy() * moved).sum() == pytest.approx((away[0] - away[1]) / 2e-5, rel=1e-6)
    steps = str(ek.memory_report(ek.grad(loss), w)).splitlines()
    assert sum("permute" in line for line in steps) == 1, "once before the loops"
