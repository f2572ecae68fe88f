"""Control flow that stays in the graph: values against Python's loops, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from numerics import close, gradient, second, t64, values

import eshkol as ek
from eshkol.errors import DerivativeError, DTypeError, ShapeError, TensorError, TraceError
from eshkol.graph.node import topological

XS = np.array([0.5, -1.0, 2.0, 0.25])


def both_derivatives(f, at, tolerance=1e-6):
    """First and second derivatives of a scalar function of one array: by both modes, and numerically."""
    at = np.asarray(at, np.float64)
    x = t64(at)
    slope = gradient(f, at)
    close(ek.grad(f)(x), slope, tolerance)
    close(ek.jacobian(f, mode="forward")(x), slope, tolerance)
    curve = second(f, at)
    close(ek.jacobian(ek.grad(f), mode="forward")(x), curve, tolerance)
    close(ek.jacobian(ek.grad(f), mode="reverse")(x), curve, tolerance)
    close(ek.jacobian(ek.jacobian(f, mode="forward"), mode="forward")(x), curve, tolerance)
    close(ek.jacobian(ek.jacobian(f, mode="forward"), mode="reverse")(x), curve, tolerance)


# --- scan -----------------------------------------------------------------------------------------


def looped(body, carry, xs, reverse=False):
    """What scan is, in Python."""
    order = range(len(xs))
    ys = {}
    for k in reversed(order) if reverse else order:
        carry, ys[k] = body(carry, xs[k])
    return carry, np.stack([ys[k] for k in order]) if ys else None


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop(reverse):
    def body(c, x):
        return c * x + 1.0, c - x

    carry, ys = ek.scan(body, t64(2.0), t64(XS), reverse=reverse)
    wanted, stacked = looped(body, 2.0, XS, reverse)
    close(carry, wanted)
    close(ys, stacked)


def test_scan_carries_and_walks_structures_of_several_dtypes():
    xs = {"f": t64(XS), "i": ek.tensor([1, 2, 3, 4])}
    init = {"sum": t64(0.0), "count": ek.tensor(0), "any": ek.tensor(False), "none": None}

    def body(c, x):
        new = {"sum": c["sum"] + x["f"], "count": c["count"] + x["i"], "any": c["any"] | (x["f"] > 1), "none": None}
        return new, (x["f"] * 2, {"n": x["i"]})

    last, (doubled, counts) = ek.scan(body, init, xs)
    close(last["sum"], XS.sum())
    assert last["count"].item() == 10
    assert last["count"].dtype is ek.int64
    assert last["any"].item() is True
    assert last["none"] is None
    close(doubled, 2 * XS)
    assert counts["n"].tolist() == [1, 2, 3, 4]


def test_scan_of_a_length_without_elements():
    last, ys = ek.scan(lambda c, x: (c * 2, c), t64(1.0), length=5)
    close(last, 32.0)
    close(ys, [1.0, 2.0, 4.0, 8.0, 16.0])
    last, nothing = ek.scan(lambda c, x: (c + 1, None), ek.tensor(0), None, length=3)
    assert last.item() == 3
    assert nothing is None


def test_scan_of_no_elements_gives_the_carry_and_empty_results():
    last, ys = ek.scan(lambda c, x: (c + x.sum(), x * c), t64(3.0), t64(np.zeros((0, 2))))
    close(last, 3.0)
    assert ys.shape == (0, 2)
    close(ek.grad(lambda c: ek.scan(lambda c, x: (c * x, None), c, t64(np.zeros(0)))[0])(t64(2.0)), 1.0)
    close(ek.grad(lambda x: ek.scan(lambda c, y: (c * y, None), t64(1.0), x)[0])(t64(np.zeros(0))), np.zeros(0))


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_scan_by_its_carry_its_elements_and_what_it_captures(reverse):
    def run(init, xs, w):
        def body(c, x):
            return ek.sin(c * w) + x, c * x * w

        last, ys = ek.scan(body, init, xs, reverse=reverse)
        return last * 2 + (ys * t64(np.arange(1.0, len(ys) + 1))).sum()

    xs = XS[:3]
    both_derivatives(lambda v: run(v, t64(xs), t64(0.7)), 0.3)
    both_derivatives(lambda v: run(t64(0.3), v, t64(0.7)), xs)
    both_derivatives(lambda v: run(t64(0.3), t64(xs), v), 0.7)
    both_derivatives(lambda v: run(v[0], v[1:], v.sum()), [0.1, 0.5, -0.4])


def test_a_carry_that_varies_only_through_another():
    def run(x):
        def body(c, _):
            a, b, n = c
            return (a * 1.5, b + a * a, n + 1), b

        (_, b, n), ys = ek.scan(body, (x, t64(0.0), ek.tensor(0)), length=3)
        return b * ys.sum() + n

    both_derivatives(run, 0.8)
    close(
        ek.grad(lambda x: ek.scan(lambda c, _: ((c[1], x), None), (t64(0.0), t64(0.0)), length=3)[0][0])(t64(2.0)), 1.0
    )


def test_a_scan_of_nothing_but_what_it_captures_has_derivatives():
    def total(w):
        return ek.scan(lambda nothing, _: ((), ek.sin(w)), (), length=3)[1].sum()

    close(ek.grad(total)(t64(0.7)), 3 * np.cos(0.7))
    close(ek.jvp(total, (t64(0.7),), (t64(2.0),))[1], 6 * np.cos(0.7))


def test_derivatives_of_a_scan_stack_nothing_that_is_there():
    """What is walked through and what is captured are read again: no second scan has to keep them for each step."""
    xs, w = t64([0.5, 1.5, 3.0]), t64(0.5)
    _, slope = ek.jvp(lambda c: ek.scan(lambda c, x: (c * x * w, None), c, xs)[0], (t64(2.0),), (t64(1.0),))
    (only,) = [n for n in topological([slope._node]) if n.op.name == "scan"]
    assert [aval.shape for aval in only.outs] == [()]
    close(slope, 2.25 / 8)


def test_a_scan_that_captures_a_scan():
    def run(x):
        def inner(c, y):
            return c * y + x, c

        def outer(c, y):
            last, ys = ek.scan(inner, c, t64([0.5, 1.5]) * y)
            return ek.sin(last), ys.sum()

        last, ys = ek.scan(outer, x, t64(XS))
        return last + (ys * ys).sum()

    c, total = 0.4, 0.0
    for y in XS:
        inner, ys = c, 0.0
        for z in (0.5 * y, 1.5 * y):
            ys += inner
            inner = inner * z + 0.4
        c, total = np.sin(inner), total + ys**2
    close(run(t64(0.4)), c + total)
    both_derivatives(run, 0.4)


def test_a_linear_recurrence_against_matrix_powers():
    a = np.array([[0.9, 0.2], [-0.3, 0.7]])

    def run(a):
        return ek.scan(lambda c, _: (a @ c, None), t64([1.0, 2.0]), length=5)[0].sum()

    close(run(t64(a)), (np.linalg.matrix_power(a, 5) @ [1.0, 2.0]).sum())
    both_derivatives(run, a)


def test_vmap_of_scan_over_each_of_its_inputs():
    def run(c, xs, w):
        return ek.scan(lambda c, x: (c * x + w, c * w), c, xs)

    rng = np.random.default_rng(0)
    c, xs, w = rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=3)
    for axes in ((0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0), (0, 0, None)):
        given = [t64(v if a == 0 else v[0]) for v, a in zip((c, xs, w), axes, strict=True)]
        last, ys = ek.vmap(run, in_axes=axes)(*given)
        for k in range(3):
            one = run(*(t64(v[k] if a == 0 else v[0]) for v, a in zip((c, xs, w), axes, strict=True)))
            close(values(last)[k], one[0])
            close(values(ys)[k], one[1])
    close(
        ek.vmap(ek.grad(lambda c, x: run(c, x, t64(0.5))[0]))(t64(c), t64(xs)), np.prod(xs, axis=1)
    )  # fmt: skip
    total = ek.grad(lambda w: ek.vmap(run, in_axes=(0, 0, None))(t64(c), t64(xs), w)[1].sum())(t64(0.5))
    close(total, gradient(lambda w: ek.vmap(run, in_axes=(0, 0, None))(t64(c), t64(xs), w)[1].sum(), 0.5), 1e-7)


def test_derivatives_that_users_give_go_through_scan():
    @ek.custom_vjp
    def f(x):
        return ek.sin(x)

    f.defvjp(lambda x: (ek.sin(x), x), lambda x, ct: ct * ek.cos(x) * 10)

    @ek.custom_jvp
    def g(x):
        return ek.sin(x)

    g.defjvp(lambda p, t: (g(*p), t[0] * ek.cos(p[0]) * 10))
    for h in (f, g):
        found = ek.grad(lambda x, h=h: ek.scan(lambda c, _: (h(c), None), x, length=2)[0])(t64(0.4))
        close(found, 100 * np.cos(0.4) * np.cos(np.sin(0.4)))


def test_a_tensor_that_requires_grad_is_captured_by_loops():
    w = ek.tensor(0.5, dtype="float64", requires_grad=True)
    ek.scan(lambda c, x: (c * w + x, None), t64(1.0), t64(XS))[0].backward()
    close(w.grad, gradient(lambda w: ek.scan(lambda c, x: (c * w + x, None), t64(1.0), t64(XS))[0], 0.5), 1e-8)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: ek.scan(lambda c, x: (ek.stack([c, c]), None), t64(0.0), t64(XS)), ShapeError, r"\[2\].*\[\]"),
        (lambda: ek.scan(lambda c, x: (c.astype("float32"), None), t64(0.0), t64(XS)), DTypeError, "float32.*float64"),
        (lambda: ek.scan(lambda c, x: ((c, c), None), t64(0.0), t64(XS)), TensorError, "structure"),
        (lambda: ek.scan(lambda c, x: c, t64(0.0), t64(XS)), TensorError, "pair"),
        (lambda: ek.scan(lambda c, x: (c, "a"), t64(0.0), t64(XS)), TensorError, "str"),
        (lambda: ek.scan(lambda c, x: (c, x), t64(0.0), (t64(XS), t64([1.0]))), ShapeError, "1, 4"),
        (lambda: ek.scan(lambda c, x: (c, x), t64(0.0), t64(XS), length=3), ShapeError, "3, 4"),
        (lambda: ek.scan(lambda c, x: (c, x), t64(0.0)), ShapeError, "length"),
        (lambda: ek.scan(lambda c, x: (c, x), t64(0.0), t64(1.0)), ShapeError, "axes"),
        (lambda: ek.scan(lambda c, x: (c * float(x), None), t64(0.0), t64(XS)), TraceError, "scan"),
        (lambda: ek.scan(lambda c, x: (c if c > 0 else x, None), t64(0.0), t64(XS)), TraceError, "scan"),
        (lambda: ek.scan(lambda c, x: (c, None), t64(0.0), length=-1), ShapeError, "-1"),
    ],
)
def test_a_scan_that_cannot_be_is_refused(call, kind, said):
    with pytest.raises(kind, match=rf"(?s){said}.*test_control\.py"):
        call()


# --- cond -----------------------------------------------------------------------------------------


def test_cond_runs_one_branch():
    for x, wanted in ((2.0, 4.0), (-2.0, 6.0)):
        close(ek.cond(t64(x) > 0, lambda x: x * x, lambda x: 2.0 - x * 2, t64(x)), wanted)
    assert ek.cond(True, lambda: ek.tensor(1), lambda: ek.tensor(2)).item() == 1
    assert ek.cond(ek.tensor(0), lambda: ek.tensor(1), lambda: ek.tensor(2)).item() == 2
    assert ek.cond(ek.tensor(0.5), lambda: ek.tensor(1), lambda: ek.tensor(2)).item() == 1


def test_cond_takes_and_gives_structures_and_captures():
    outer, other = t64(10.0), t64(20.0)

    def pick(flag):
        return ek.cond(
            ek.tensor(flag),
            lambda d, s: {"r": d["a"] * outer, "n": None, "i": s},
            lambda d, s: {"r": d["b"] * other * outer, "n": None, "i": s + 1},
            {"a": t64(1.0), "b": t64(2.0)},
            ek.tensor(5),
        )

    assert (pick(True)["r"].item(), pick(True)["i"].item()) == (10.0, 5)
    assert (pick(False)["r"].item(), pick(False)["i"].item()) == (400.0, 6)
    assert pick(True)["n"] is None


@pytest.mark.parametrize("at", [0.7, -0.7])
def test_derivatives_of_cond_by_operands_and_captures(at):
    def run(x):
        y = x * x
        return ek.cond(x > 0, lambda z: ek.sin(z) * y, lambda z: ek.exp(z * y) + x, x * 2)

    both_derivatives(run, at)
    both_derivatives(lambda x: ek.cond(x > 0, lambda: ek.exp(x), lambda: t64(1.0)), at)
    both_derivatives(lambda x: ek.cond(x > 0, lambda: t64(1.0), lambda: x * x * x), at)


def test_cond_under_vmap_with_a_predicate_for_all_and_for_each():
    xs = t64([1.0, -2.0, 3.0])

    def each(x):
        return ek.cond(x > 0, lambda x: (x * x, t64(1.0)), lambda x: (-x, t64(2.0)), x)

    one, two = ek.vmap(each)(xs)
    close(one, [1.0, 2.0, 9.0])
    close(two, [1.0, 2.0, 1.0])
    close(ek.vmap(ek.grad(lambda x: each(x)[0]))(xs), [2.0, -1.0, 6.0])
    close(ek.grad(lambda x: ek.vmap(each)(x)[0].sum())(xs), [2.0, -1.0, 6.0])
    close(ek.vmap(lambda x: ek.cond(ek.tensor(True), lambda: x * 2, lambda: x))(xs), [2.0, -4.0, 6.0])
    close(ek.vmap(lambda p: ek.cond(p, lambda: t64(1.0), lambda: t64(2.0)))(ek.tensor([True, False])), [1.0, 2.0])
    matrix = t64([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    close(
        ek.vmap(lambda x, m: ek.cond(x > 0, lambda: m, lambda: -m))(xs, matrix), [[1.0, 2.0], [-3.0, -4.0], [5.0, 6.0]]
    )


def test_cond_in_scan_and_scan_in_cond():
    def cond_in_scan(x):
        def body(c, y):
            return ek.cond(y > 0, lambda c: ek.sin(c * y) + x, lambda c: c * c * y, c), c

        last, ys = ek.scan(body, x, t64(XS))
        return last + ys.sum()

    c, total = 0.6, 0.0
    for y in XS:
        total += c
        c = np.sin(c * y) + 0.6 if y > 0 else c * c * y
    close(cond_in_scan(t64(0.6)), c + total)
    both_derivatives(cond_in_scan, 0.6)

    def scan_in_cond(x):
        def many(c):
            return ek.scan(lambda c, y: (c * y + x, None), c, t64(XS))[0]

        return ek.cond(x > 0, many, lambda c: c * c * x, x * 2)

    both_derivatives(scan_in_cond, 0.6)
    both_derivatives(scan_in_cond, -0.6)
    close(ek.vmap(scan_in_cond)(t64([0.6, -0.6])), [values(scan_in_cond(t64(v))) for v in (0.6, -0.6)])
    close(ek.vmap(cond_in_scan)(t64([0.6, -0.6])), [values(cond_in_scan(t64(v))) for v in (0.6, -0.6)])


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda x: ek.cond(x > 0, lambda: x, lambda: x), ShapeError, r"predicate.*\[4\]"),
        (lambda x: ek.cond(True, lambda: x, lambda: x[0]), ShapeError, r"\[\].*\[4\]"),
        (lambda x: ek.cond(True, lambda: x, lambda: x > 0), DTypeError, "bool_.*float64"),
        (lambda x: ek.cond(True, lambda: x, lambda: (x,)), TensorError, "structure"),
        (lambda x: ek.cond(True, lambda: x, lambda: "a"), TensorError, "str"),
        (lambda x: ek.cond(True, lambda y: x if y > 0 else -x, lambda y: x, x[0]), TraceError, "true branch"),
    ],
)
def test_a_cond_that_cannot_be_is_refused(call, kind, said):
    with pytest.raises(kind, match=rf"(?s){said}.*test_control\.py"):
        call(t64(XS))


# --- loops of unknown length ----------------------------------------------------------------------


def doubling(x):
    """x doubled until it is 100 or more."""
    return ek.while_loop(lambda c: c < 100, lambda c: c * 2, x)


def test_while_loop_is_pythons():
    close(doubling(t64(3.0)), 192.0)
    close(doubling(t64(300.0)), 300.0)
    limit, step = t64(7.0), t64([1.0, 2.0])
    n, v = ek.while_loop(
        lambda s: s[1].sum() < limit, lambda s: (s[0] + 1, s[1] + step), (ek.tensor(0), t64([0.0, 0.0]))
    )
    assert n.item() == 3
    close(v, [3.0, 6.0])


def test_forward_derivatives_of_while_loop():
    def run(x):
        return ek.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, ek.sin(s[1]) * x + s[1]), (ek.tensor(0), x))[1]

    slope = ek.jacobian(run, mode="forward")
    close(slope(t64(0.6)), gradient(run, 0.6), 1e-8)
    close(ek.jacobian(slope, mode="forward")(t64(0.6)), gradient(slope, 0.6), 1e-8)
    close(ek.jvp(doubling, (t64(3.0),), (t64(1.0),))[1], 64.0)


def test_reverse_derivatives_of_an_unbounded_while_loop_are_refused_with_a_remedy_and_the_line():
    with pytest.raises(DerivativeError) as error:
        ek.grad(doubling)(t64(3.0))
    text = str(error.value)
    assert "max_iterations" in text
    assert "test_control.py" in text
    assert "ek.while_loop(lambda c: c < 100" in text
    w = ek.tensor(3.0, requires_grad=True)
    with pytest.raises(DerivativeError, match="max_iterations"):
        doubling(w).backward()


def test_a_bounded_while_loop_has_both_derivatives():
    def run(x):
        def body(s):
            return s[0] + 1, ek.sin(s[1] * x) + s[1]

        return ek.while_loop(lambda s: s[1] < 2, body, (ek.tensor(0), x), max_iterations=6)[1]

    plain = 0.6
    while plain < 2:
        plain = np.sin(plain * 0.6) + plain
    close(run(t64(0.6)), plain)
    both_derivatives(run, 0.6)
    close(ek.while_loop(lambda c: c < 100, lambda c: c * 2, t64(1.0), max_iterations=7), 128.0)
    close(
        ek.vmap(ek.grad(lambda x: ek.while_loop(lambda c: c < 9, lambda c: c * 2, x, max_iterations=8)))(
            t64([1.0, 5.0])
        ),
        [16.0, 2.0],
    )


def test_while_under_vmap_stops_each_example_at_its_own_time():
    xs = np.array([1.0, 60.0, 3.0, 500.0])
    close(ek.vmap(doubling)(t64(xs)), [values(doubling(t64(x))) for x in xs])

    def collatz(n):
        def body(s):
            n, k = s
            return ek.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

        return ek.while_loop(lambda s: s[0] != 1, body, (n, ek.tensor(0)))[1]

    assert ek.vmap(collatz)(ek.tensor([1, 2, 3, 7])).tolist() == [0, 1, 7, 16]
    limits = t64([5.0, 50.0])
    close(ek.vmap(lambda m: ek.while_loop(lambda c: c < m, lambda c: c * 2, t64(1.0)))(limits), [8.0, 64.0])
    close(ek.vmap(lambda w: ek.while_loop(lambda c: c < 10, lambda c: c * w, t64(1.0)))(t64([2.0, 3.0])), [16.0, 27.0])
    push = ek.vmap(lambda x: ek.jvp(doubling, (x,), (t64(1.0),))[1])(t64(xs))
    close(push, [128.0, 2.0, 64.0, 1.0])


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda x: ek.while_loop(lambda c: c < 1, lambda c: c, x), TensorError, "truth"),
        (lambda x: ek.while_loop(lambda c: c.sum(), lambda c: c, x), TensorError, "truth"),
        (lambda x: ek.while_loop(lambda c: c.sum() < 1, lambda c: c.sum(), x), ShapeError, r"\[\].*\[4\]"),
        (
            lambda x: ek.while_loop(lambda c: c.sum() < 1, lambda c: c.astype("float32"), x),
            DTypeError,
            "float32.*float64",
        ),
        (lambda x: ek.while_loop(lambda c: c.sum() < 1, lambda c: (c, c), x), TensorError, "structure"),
        (lambda x: ek.while_loop(lambda c: bool(c.sum() < 1), lambda c: c, x), TraceError, "test of while_loop"),
    ],
)
def test_a_while_loop_that_cannot_be_is_refused(call, kind, said):
    with pytest.raises(kind, match=rf"(?s){said}.*test_control\.py"):
        call(t64(XS))


# --- fori_loop ------------------------------------------------------------------------------------


def test_fori_loop_counts():
    assert ek.fori_loop(2, 6, lambda i, c: c + i, ek.tensor(0)).item() == 14
    assert ek.fori_loop(6, 2, lambda i, c: c + i, ek.tensor(7)).item() == 7
    assert ek.fori_loop(-3, 0, lambda i, c: c * 10 - i, ek.tensor(0)).item() == 321
    close(ek.fori_loop(0, 4, lambda i, c: c + t64(XS)[i], t64(0.0)), XS.sum())


def test_derivatives_of_fori_loop():
    both_derivatives(lambda x: ek.fori_loop(1, 4, lambda i, c: ek.sin(c * x) * i + c, x), 0.4)


def test_fori_loop_with_bounds_that_are_tensors():
    def power(x, n):
        return ek.fori_loop(0, n, lambda i, c: c * x, t64(1.0))

    close(power(t64(2.0), ek.tensor(5)), 32.0)
    close(ek.vmap(power, in_axes=(None, 0))(t64(2.0), ek.tensor([0, 3, 5])), [1.0, 8.0, 32.0])
    close(ek.vmap(power)(t64([2.0, 3.0]), ek.tensor([3, 2])), [8.0, 9.0])
    close(ek.jvp(lambda x: power(x, ek.tensor(3)), (t64(2.0),), (t64(1.0),))[1], 12.0)
    assert ek.fori_loop(ek.tensor(2), 5, lambda i, c: c + i, ek.tensor(0)).item() == 9
    assert ek.fori_loop(ek.tensor(2, dtype="int32"), 5, lambda i, c: c + 1, ek.tensor(0)).item() == 3
    with pytest.raises(DerivativeError, match=r"max_iterations|fori_loop"):
        ek.grad(lambda x: power(x, ek.tensor(3)))(t64(2.0))


def test_fori_loop_takes_integers_of_numpy_and_refuses_other_bounds():
    close(ek.grad(lambda x: ek.fori_loop(np.int64(0), np.int32(3), lambda i, c: c * x, t64(1.0)))(t64(2.0)), 12.0)
    for bound in (2.5, ek.tensor(2.5), True, ek.tensor([1, 2])):
        with pytest.raises(DTypeError, match="integers"):
            ek.fori_loop(0, bound, lambda i, c: c, t64(1.0))


def test_control_flow_on_the_cpu_backend():
    with ek.use_backend("cpu"):
        run = lambda x: ek.scan(lambda c, y: (ek.cond(y > 0, lambda c: c * y, lambda c: c - y, c), c), x, t64(XS))
        last, ys = run(t64(2.0))
        close(last, ((2.0 * 0.5) + 1.0) * 2.0 * 0.25)
        close(ys, [2.0, 1.0, 2.0, 4.0])
        close(ek.grad(lambda x: run(x)[0])(t64(2.0)), 0.25)
        close(doubling(t64(3.0)), 192.0)
