"""Transformations of functions, alone and in every nesting, against closed forms and differences in float64."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest
from numerics import close, gradient, second, t64, values

import eshkol as ek
from batches import of_each
from eshkol.errors import DerivativeError, DTypeError, ShapeError, TensorError, TraceError


def cubic(x):
    """A scalar of a vector whose derivatives are neither symmetric by chance nor zero."""
    n = x.shape[0]
    weights = t64(np.arange(1.0, n + 1))
    return (ek.sin(x * weights) * x * x).sum() + x[0] * x[n - 1] ** 3


POINT = np.array([0.3, -0.7, 1.1])


# --- one transformation ---------------------------------------------------------------------------


def test_grad_is_the_numerical_gradient():
    close(ek.grad(cubic)(t64(POINT)), gradient(cubic, POINT))


def test_value_and_grad_gives_both():
    value, slope = ek.value_and_grad(cubic)(t64(POINT))
    close(value, cubic(t64(POINT)))
    close(slope, gradient(cubic, POINT))


def test_jvp_vjp_and_linearize_are_one_derivative():
    def f(x):
        return ek.exp(x) * x.sum()

    x, v, w = t64(POINT), t64([0.5, 1.0, -2.0]), t64([1.0, 0.25, 3.0])
    value, forward = ek.jvp(f, (x,), (v,))
    _, pull = ek.vjp(f, x)
    result, push = ek.linearize(f, x)
    close(value, f(x))
    close(result, f(x))
    close(push(v), forward)
    close(push(v * 2), forward * 2)
    close((pull(w)[0] * v).sum(), (w * forward).sum())
    whole = ek.jacobian(f)(x)
    close(whole @ v, forward)
    close(w @ whole, pull(w)[0])


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
@pytest.mark.parametrize(("shape", "out"), [((3,), (2, 2)), ((2, 2), ()), ((), (3,)), ((0,), (2,)), ((2,), (0,))])
def test_jacobian_has_the_shape_of_the_result_and_then_of_the_argument(mode, shape, out):
    rng = np.random.default_rng(0)
    map_ = rng.normal(size=(math.prod(out), math.prod(shape)))
    x = rng.normal(size=shape)

    def f(x):
        return ek.sin(t64(map_) @ x.reshape((math.prod(shape),))).reshape(out)

    wanted = np.cos(map_ @ x.reshape(-1))[:, None] * map_
    close(ek.jacobian(f, mode=mode)(t64(x)), wanted.reshape(out + shape))


def test_an_unknown_mode_of_jacobian_is_refused():
    with pytest.raises(TensorError, match="sideways"):
        ek.jacobian(cubic, mode="sideways")


def test_hessian_is_the_numerical_one_and_symmetric():
    found = values(ek.hessian(cubic)(t64(POINT)))
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    close(found, second(cubic, POINT), 1e-6)


def test_second_derivatives_are_the_same_in_every_order_of_modes():
    wanted = values(ek.hessian(cubic)(t64(POINT)))
    for inner, outer in itertools.product(("forward", "reverse"), repeat=2):
        close(ek.jacobian(ek.jacobian(cubic, mode=inner), mode=outer)(t64(POINT)), wanted)
    close(ek.jacobian(ek.grad(cubic), mode="forward")(t64(POINT)), wanted)
    close(ek.jacobian(ek.grad(cubic), mode="reverse")(t64(POINT)), wanted)
    v = t64([1.0, -2.0, 0.5])
    product = wanted @ values(v)
    close(ek.jvp(ek.grad(cubic), (t64(POINT),), (v,))[1], product)
    close(ek.grad(lambda x: (ek.grad(cubic)(x) * v).sum())(t64(POINT)), product)
    close(ek.grad(lambda x: ek.jvp(cubic, (x,), (v,))[1])(t64(POINT)), product)
    close(ek.vjp(ek.grad(cubic), t64(POINT))[1](v)[0], product)


def test_derivatives_of_any_order_of_one_number():
    f, x = ek.sin, t64(0.7)
    wanted = [math.sin, math.cos, lambda v: -math.sin(v), lambda v: -math.cos(v), math.sin, math.cos]
    for k, exact in enumerate(wanted):
        close(f(x), exact(0.7))
        inner = f
        f = ek.grad(f) if k % 2 else (lambda g: lambda x: ek.jvp(g, (x,), (t64(1.0),))[1])(inner)


def test_gradients_of_scalars_that_broadcast_and_are_used_often():
    def f(a, b):
        return ((a + b) * a * b / (1 + b * b) - a).sum()

    a, b = np.array(0.5), np.array([[1.0, 2.0], [3.0, 4.0]])
    ga, gb = ek.grad(f, argnums=(0, 1))(t64(a), t64(b))
    close(ga, gradient(lambda a: f(a, t64(b)), a))
    close(gb, gradient(lambda b: f(t64(a), b), b))


# --- arguments ------------------------------------------------------------------------------------


def test_argnums_choose_arguments_also_from_the_end():
    def f(a, b, c):
        return a * b * b * c

    args = t64(2.0), t64(3.0), t64(5.0)
    close(ek.grad(f)(*args), 45.0)
    close(ek.grad(f, argnums=1)(*args), 60.0)
    close(ek.grad(f, argnums=-1)(*args), 18.0)
    for got, wanted in zip(ek.grad(f, argnums=(2, 0))(*args), (18.0, 45.0), strict=True):
        close(got, wanted)
    with pytest.raises(TensorError, match="argument 3"):
        ek.grad(f, argnums=3)(*args)
    close(ek.jacobian(f, argnums=2)(*args), 18.0)
    close(ek.hessian(f, argnums=1)(*args), 20.0)


def test_hessian_of_several_arguments_has_all_blocks():
    def f(a, b):
        return a * a * b + b * b

    blocks = ek.hessian(f, argnums=(0, 1))(t64(2.0), t64(3.0))
    close(np.array([[values(x) for x in row] for row in blocks]), [[6.0, 4.0], [4.0, 2.0]])


def test_other_arguments_may_be_anything():
    def f(x, name, scale=1.0, *, power):
        assert name == "this"
        return (x * scale) ** power

    close(ek.grad(f)(t64(3.0), "this", 2.0, power=2), 24.0)


def test_aux_is_passed_on_whatever_it_is():
    def f(x):
        return (x * x).sum(), {"seen": x * 2, "note": "text"}

    (value, aux), slope = ek.value_and_grad(f, has_aux=True)(t64(POINT))
    close(value, (POINT**2).sum())
    close(slope, 2 * POINT)
    close(aux["seen"], 2 * POINT)
    assert aux["note"] == "text"
    slope, aux = ek.grad(f, has_aux=True)(t64(POINT))
    close(slope, 2 * POINT)
    assert aux["note"] == "text"
    with pytest.raises(TensorError, match="pair"):
        ek.grad(lambda x: x.sum(), has_aux=True)(t64(POINT))


@dataclass
class Layer:
    weight: object
    bias: object
    extra: object = field(default=None)


@dataclass(frozen=True)
class Frozen:
    x: object


Pair = namedtuple("Pair", "left right")


STRUCTURES = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, [b]],
    "dict": lambda a, b: {"z": a, "a": b},
    "dataclass": lambda a, b: Layer(a, b),
    "frozen dataclass": lambda a, b: (Frozen(a), Frozen(b)),
    "namedtuple": lambda a, b: Pair(a, b),
    "nested": lambda a, b: {"l": [Layer(a, (b, None))], "n": None, "e": ()},
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_go_in_and_come_out(name):
    made = STRUCTURES[name](t64(POINT), t64(2.0))
    leaves, tree = ek.tree_flatten(made)

    def f(structure):
        assert ek.tree_flatten(structure)[1] == tree
        return sum(((k + 2) * x * x).sum() for k, x in enumerate(ek.tree_leaves(structure)))

    slopes = ek.grad(f)(made)
    assert ek.tree_flatten(slopes)[1] == tree
    assert type(slopes) is type(made)
    for k, (slope, x) in enumerate(zip(ek.tree_leaves(slopes), leaves, strict=True)):
        close(slope, 2 * (k + 2) * values(x))

    def squares(structure):
        return ek.tree_map(lambda x: x * x, structure)

    out, push = ek.jvp(squares, (made,), (ek.tree_map(ek.ones_like, made),))
    assert ek.tree_flatten(out)[1] == ek.tree_flatten(push)[1] == tree
    for p, x in zip(ek.tree_leaves(push), leaves, strict=True):
        close(p, 2 * values(x))
    _, pull = ek.vjp(squares, made)
    (back,) = pull(ek.tree_map(ek.ones_like, made))
    for p, x in zip(ek.tree_leaves(back), leaves, strict=True):
        close(p, 2 * values(x))
    stacked = ek.tree_map(lambda x: ek.stack([x, x + 1]), made)
    both = ek.vmap(squares)(stacked)
    for p, x in zip(ek.tree_leaves(both), leaves, strict=True):
        close(p, np.stack([values(x) ** 2, (values(x) + 1) ** 2]))


def test_the_order_of_a_dicts_keys_does_not_matter():
    close(ek.tree_leaves(ek.grad(lambda d: d["a"] * d["b"])({"b": t64(2.0), "a": t64(3.0)}))[0], 2.0)
    mapped = ek.vmap(lambda d: d, in_axes=({"a": 0, "b": None},))({"b": t64(2.0), "a": t64([3.0, 4.0])})
    close(mapped["b"], [2.0, 2.0])


def test_dicts_of_other_kinds_come_back_as_they_were():
    for made in (OrderedDict(b=t64(2.0), a=t64(3.0)), defaultdict(list, b=t64(2.0), a=t64(3.0))):
        slope = ek.grad(lambda d: d["a"] * d["b"])(made)
        assert type(slope) is type(made)
        assert list(slope) == ["b", "a"]
        close(slope["b"], 3.0)


def test_assignments_inside_transformed_functions():
    def f(x):
        y = x * 2
        y[0] = x[1] * x[1]
        y += x
        x[1] = 0.0
        return (y * x).sum()

    at = np.array([1.0, 2.0, 3.0])
    close(ek.grad(f)(t64(at)), gradient(f, at), 1e-8)
    batch = np.stack([at, at * 2])
    close(ek.vmap(lambda x: f(x))(t64(batch)), [values(f(t64(b))) for b in batch])
    close(ek.vmap(ek.grad(f))(t64(batch)), [values(ek.grad(f)(t64(b))) for b in batch])
    given = t64(at)
    ek.grad(f)(given)
    close(given, at)


def test_registered_classes_are_structures():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    ek.register_pytree(Point, lambda p: ((p.x, p.y), None), lambda data, children: Point(*children))
    slope = ek.grad(lambda p: p.x * p.y)(Point(t64(2.0), t64(3.0)))
    assert isinstance(slope, Point)
    close(slope.x, 3.0)
    close(slope.y, 2.0)


def test_tree_map_of_different_structures_is_refused():
    with pytest.raises(TensorError, match="structures differ"):
        ek.tree_map(lambda a, b: a + b, (1, 2), [1, 2])


def test_structures_that_do_not_match_are_refused():
    _, pull = ek.vjp(lambda x: (x, x), t64(1.0))
    with pytest.raises(TensorError, match="structure"):
        pull([t64(1.0), t64(1.0)])
    with pytest.raises(ShapeError, match="cotangents"):
        pull((t64([1.0, 2.0]), t64(1.0)))
    with pytest.raises(TensorError, match="tangents"):
        ek.jvp(lambda x: x, (t64(1.0),), ())
    with pytest.raises(TensorError, match="tuple of primals"):
        ek.jvp(lambda x: x, t64([1.0]), t64([1.0]))
    with pytest.raises(ShapeError, match="tangents"):
        ek.jvp(lambda x: x, (t64(1.0),), (t64([1.0]),))
    with pytest.raises(TensorError, match="str"):
        ek.vjp(lambda x: "a", t64(1.0))


@pytest.mark.parametrize("transform", [ek.grad, ek.value_and_grad, ek.jacobian, ek.hessian])
@pytest.mark.parametrize("argument", [3, True, [1, 2]], ids=repr)
def test_integers_and_bools_are_refused_as_arguments(transform, argument):
    with pytest.raises(DTypeError, match="float"):
        transform(lambda x: x * 1.0)(ek.tensor(argument))


def test_numbers_and_arrays_are_arguments_too():
    close(ek.grad(lambda x: x * x)(3.0), 6.0)
    close(ek.grad(lambda x: (x * x).sum())(POINT), 2 * POINT)


def test_grad_needs_a_real_scalar():
    for f in (
        lambda x: x,
        lambda x: (x > 0).sum(),
        lambda x: x.sum() * 1j,
        lambda x: 3.0,
        lambda x: None,
        lambda x: (x,),
    ):
        with pytest.raises((DerivativeError, TensorError)):
            ek.grad(f)(t64(POINT))
    with pytest.raises(DTypeError):
        ek.jacobian(lambda x: x > 0)(t64(POINT))


# --- what is independent, stopped, or not smooth --------------------------------------------------


def test_what_does_not_depend_on_the_argument_has_derivative_zero():
    constant = t64(POINT)
    close(ek.grad(lambda x: (constant * 2).sum())(t64(POINT)), np.zeros(3))
    close(ek.jvp(lambda x: constant, (t64(1.0),), (t64(1.0),))[1], np.zeros(3))
    close(ek.vjp(lambda x: constant, t64(1.0))[1](constant)[0], 0.0)
    close(ek.jacobian(lambda x: constant)(t64([1.0, 2.0])), np.zeros((3, 2)))
    close(ek.hessian(lambda x: x.sum())(t64([1.0, 2.0])), np.zeros((2, 2)))
    close(ek.grad(lambda x: ek.floor(x) + (x > 0).astype("float64") + x)(t64(2.5)), 1.0)


def test_stop_gradient_stops_every_order_and_takes_structures():
    close(ek.grad(lambda x: x * ek.stop_gradient(x))(t64(3.0)), 3.0)
    close(ek.grad(ek.grad(lambda x: x * x * ek.stop_gradient(x)))(t64(3.0)), 6.0)
    close(ek.jvp(lambda x: ek.stop_gradient((x, {"a": x}))[1]["a"], (t64(3.0),), (t64(1.0),))[1], 0.0)
    close(ek.vmap(ek.grad(lambda x: x * ek.stop_gradient(x)))(t64([3.0, 4.0])), [3.0, 4.0])
    close(ek.grad(lambda x: ek.vmap(lambda y: y * ek.stop_gradient(x))(t64([1.0, 2.0])).sum())(t64(2.0)), 0.0)
    assert float(ek.grad(lambda x: x * float(ek.stop_gradient(x)))(t64(3.0))) == 3.0


# --- perturbation confusion -----------------------------------------------------------------------


def d_forward(f):
    return lambda x: ek.jvp(f, (x,), (t64(1.0),))[1]


def d_pull(f):
    return lambda x: ek.vjp(f, x)[1](t64(1.0))[0]


def d_linear(f):
    return lambda x: ek.linearize(f, x)[1](t64(1.0))


DERIVATIVES = {"grad": ek.grad, "jvp": d_forward, "vjp": d_pull, "linearize": d_linear, "jacobian": ek.jacobian}
PAIRS = list(itertools.product(DERIVATIVES, repeat=2))
TRIPLES = list(itertools.product(["grad", "jvp", "linearize"], repeat=3))


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_nested_derivatives_do_not_confuse_their_variables(outer, inner):
    d, e = DERIVATIVES[outer], DERIVATIVES[inner]
    close(d(lambda x: x * e(lambda y: x + y)(t64(1.0)))(t64(1.0)), 1.0)
    close(d(lambda x: x * e(lambda y: x * y)(t64(2.0)))(t64(3.0)), 6.0)
    close(d(lambda x: e(lambda y: x * y * y)(x))(t64(3.0)), 12.0)
    close(d(lambda x: e(lambda y: x)(x))(t64(3.0)), 0.0)
    close(d(lambda x: e(lambda x: x * x)(x * 2))(t64(3.0)), 4.0)
    close(d(lambda x: e(lambda y: ek.sin(x * y))(x))(t64(0.5)), math.cos(0.25) - 2 * 0.25 * math.sin(0.25))


@pytest.mark.parametrize("names", TRIPLES)
def test_three_nested_derivatives_with_captured_variables(names):
    a, b, c = (DERIVATIVES[n] for n in names)

    # d/dx [x · d/dy (y · d/dz (x·y·z²) at z=y) at y=x] = d/dx [x · d/dy (2x·y³)] = d/dx 6x⁴ = 24x³
    def f(x):
        return x * b(lambda y: y * c(lambda z: x * y * z * z)(y))(x)

    close(a(f)(t64(1.5)), 24 * 1.5**3)
    close(a(b(c(lambda x: x**5)))(t64(2.0)), 60 * 4.0)


def test_a_derivative_kept_as_a_function_uses_what_it_captured():
    def outer(x):
        _, pull = ek.vjp(lambda y: x * y * y, t64(3.0))
        _, push = ek.linearize(lambda y: x * x * y, t64(3.0))
        return pull(x)[0] + push(x)  # 6x² + x³

    close(ek.grad(outer)(t64(2.0)), 12 * 2 + 3 * 4)
    close(d_forward(outer)(t64(2.0)), 36.0)


# --- vmap -----------------------------------------------------------------------------------------


def test_vmap_over_axes_from_both_ends_and_none():
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(3.0)

    def f(a, b):
        return ek.sin(a) @ ek.ones(4, dtype="float64") * b

    wanted = np.stack([np.sin(a[:, k]).sum(-1) * b[k] for k in range(3)])
    close(ek.vmap(f, in_axes=(1, 0))(t64(a), t64(b)), wanted)
    close(ek.vmap(f, in_axes=(-2, -1))(t64(a), t64(b)), wanted)
    close(ek.vmap(f, in_axes=(1, None))(t64(a), t64(2.0)), np.stack([np.sin(a[:, k]).sum(-1) * 2 for k in range(3)]))
    close(ek.vmap(f, in_axes=(1, 0), out_axes=1)(t64(a), t64(b)), wanted.T)
    close(ek.vmap(f, in_axes=(1, 0), out_axes=-1)(t64(a), t64(b)), wanted.T)
    close(ek.vmap(f, in_axes=(1, 0), out_axes=-2)(t64(a), t64(b)), wanted)


def test_vmap_of_structures_with_an_axis_for_each_part():
    args = {"a": t64([[1.0, 2.0], [3.0, 4.0]]), "b": [t64([5.0, 6.0]), t64(7.0)]}

    def f(d, c):
        return {"s": d["a"] * d["b"][0] + d["b"][1] * c, "c": c}

    found = ek.vmap(f, in_axes=({"a": 1, "b": [0, None]}, None), out_axes={"s": 1, "c": None})(args, t64(2.0))
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    close(found["s"], np.stack([a[:, 0] * 5 + 14, a[:, 1] * 6 + 14], 1))
    close(found["c"], 2.0)


def test_vmap_repeats_results_that_do_not_vary():
    close(ek.vmap(lambda x: t64(3.0))(t64([1.0, 2.0])), [3.0, 3.0])
    close(ek.vmap(lambda x: (x, t64([1.0])), out_axes=(0, 1))(t64([1.0, 2.0]))[1], [[1.0, 1.0]])


def test_nested_vmap_is_an_outer_product():
    a, b = np.arange(3.0), np.arange(4.0)
    close(ek.vmap(lambda x: ek.vmap(lambda y: x * y + x)(t64(b)))(t64(a)), a[:, None] * b + a[:, None])
    both = ek.vmap(ek.vmap(lambda x, y: x - y, in_axes=(None, 0)), in_axes=(0, None))
    close(both(t64(a), t64(b)), a[:, None] - b)
    close(
        ek.vmap(ek.vmap(ek.sin, in_axes=1, out_axes=1), in_axes=-1)(t64(np.ones((2, 3, 4)))), np.sin(np.ones((4, 2, 3)))
    )


def test_vmap_of_no_and_of_one_example():
    close(ek.vmap(ek.sin)(t64(np.zeros((0, 2)))), np.zeros((0, 2)))
    close(ek.vmap(lambda x: x.sum())(t64([[1.0, 2.0]])), [3.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ek.vmap(ek.sin, in_axes=1)(t64([1.0])),
        lambda: ek.vmap(ek.sin, in_axes=-2)(t64([1.0])),
        lambda: ek.vmap(ek.sin, out_axes=1)(t64([1.0])),
        lambda: ek.vmap(ek.sin, out_axes=-2)(t64([1.0])),
        lambda: ek.vmap(ek.add)(t64([1.0]), t64([1.0, 2.0])),
        lambda: ek.vmap(ek.sin)(t64(1.0)),
        lambda: ek.vmap(ek.sin, in_axes=None)(t64([1.0])),
        lambda: ek.vmap(ek.sin, in_axes=(0, 0))(t64([1.0])),
        lambda: ek.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": t64([1.0])}),
        lambda: ek.vmap(ek.sin, in_axes=("a",))(t64([1.0])),
        lambda: ek.vmap(lambda x: x, out_axes=None)(t64([1.0])),
        lambda: ek.vmap(lambda x: (x, x), out_axes=(0,))(t64([1.0])),
        lambda: ek.vmap(lambda x: "a")(t64([1.0])),
    ],
)
def test_axes_that_do_not_fit_are_refused(call):
    with pytest.raises(TensorError):
        call()


def test_vmap_of_grad_and_grad_of_vmap():
    batch = np.stack([POINT, POINT * 2, -POINT, POINT + 1])
    wanted = np.stack([gradient(cubic, p) for p in batch])
    close(ek.vmap(ek.grad(cubic))(t64(batch)), wanted)
    close(ek.grad(lambda x: ek.vmap(cubic)(x).sum())(t64(batch)), wanted)
    shift = t64(0.5)
    total = ek.grad(lambda s: ek.vmap(lambda x: cubic(x * s))(t64(batch)).sum())(shift)
    close(total, gradient(lambda s: ek.vmap(lambda x: cubic(x * s))(t64(batch)).sum(), np.array(0.5)))


def test_vmap_of_jacobian_and_hessian():
    batch = np.stack([POINT, POINT * 2, -POINT])
    close(ek.vmap(ek.hessian(cubic))(t64(batch)), np.stack([values(ek.hessian(cubic)(t64(p))) for p in batch]))
    for mode in ("forward", "reverse"):
        jac = ek.jacobian(lambda x: ek.exp(x) * x.sum(), mode=mode)
        close(ek.vmap(jac)(t64(batch)), np.stack([values(jac(t64(p))) for p in batch]))
    close(ek.jacobian(ek.vmap(cubic))(t64(batch[:2]))[0, 0], gradient(cubic, batch[0]))
    push = ek.vmap(lambda v: ek.jvp(cubic, (t64(POINT),), (v,))[1])(t64(np.eye(3)))
    close(push, gradient(cubic, POINT))
    _, pull = ek.vjp(lambda x: x * x, t64(POINT))
    close(ek.vmap(pull)(t64(np.eye(3)))[0], np.diag(2 * POINT))


def random_nestings():
    """Three transformations of a function of one number, in every order, with their value worked out beside."""
    return list(itertools.product(["grad", "jvp", "vmap", "checkpoint", "linearize"], repeat=3))


@of_each("names", random_nestings())
def test_any_nesting_of_three_transformations(names):
    derivatives = [
        lambda v: np.exp(v) * np.sin(2 * v),
        lambda v: np.exp(v) * (np.sin(2 * v) + 2 * np.cos(2 * v)),
        lambda v: np.exp(v) * (-3 * np.sin(2 * v) + 4 * np.cos(2 * v)),
        lambda v: np.exp(v) * (-11 * np.sin(2 * v) - 2 * np.cos(2 * v)),
    ]
    order, axes = 0, 0

    def f(x):
        return ek.exp(x) * ek.sin(2 * x)

    for name in names:
        if name == "vmap":
            f, axes = ek.vmap(f), axes + 1
        elif name == "checkpoint":
            f = ek.checkpoint(f)
        else:
            f, order = along(f, name), order + 1
    x = np.linspace(0.1, 0.9, 2**axes).reshape((2,) * axes)
    close(f(t64(x)), derivatives[order](x))


def along(f, name):
    """The derivative of an elementwise function of a tensor of any shape."""
    if name == "grad":
        return lambda x: ek.grad(lambda x: f(x).sum())(x)
    if name == "jvp":
        return lambda x: ek.jvp(f, (x,), (ek.ones_like(x),))[1]
    return lambda x: ek.linearize(f, x)[1](ek.ones_like(x))


# --- control flow of Python, and ways out of the traced world -------------------------------------


def test_python_control_flow_on_values_is_part_of_the_program():
    def f(x):
        total = x
        while total < 10:
            total = total * x if total > 4 else total + x
        return total if x > 0 else -x

    close(ek.grad(f)(t64(3.0)), gradient(f, np.array(3.0)))
    close(ek.grad(f)(t64(20.0)), 1.0)
    close(ek.grad(lambda x: sum(x[k] ** (k + 1) for k in range(len(x))))(t64(POINT)), [1.0, 2 * -0.7, 3 * 1.1**2])


LEAVING = {
    "float": float,
    "int": int,
    "complex": complex,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "math": math.sin,
    "np.array": np.array,
    "np.asarray": np.asarray,
    "format": lambda x: f"{x:.3f}",
    "dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("name", LEAVING)
def test_leaving_the_traced_world_is_refused(name):
    leave = LEAVING[name]
    for transformed in (ek.grad, d_forward, d_pull, ek.hessian, ek.checkpoint):
        with pytest.raises(TraceError, match=r"test_transforms\.py"):
            transformed(lambda x: x * leave(x) if name != "format" else leave(x))(t64(2.0))
    with pytest.raises(TraceError, match="vmap"):
        ek.vmap(lambda x: leave(x) * 1.0)(t64([2.0]))
    with pytest.raises(TraceError):
        ek.vmap(ek.grad(lambda x: x * leave(x * 2)))(t64([2.0]))
    assert leave(t64(2.0)) is not None


@pytest.mark.parametrize("leave", [bool, lambda x: [1, 2][x], lambda x: range(x), lambda x: x in t64([1.0])])
def test_truth_and_indices_are_unknown_inside_vmap_and_known_inside_grad(leave):
    with pytest.raises(TraceError, match="vmap"):
        ek.vmap(lambda x: leave((x > 0).astype("int64")) and x)(t64([2.0]))
    ek.grad(lambda x: (x, leave((x > 0).astype("int64"))), has_aux=True)(t64(2.0))


def test_a_shape_that_depends_on_values_is_refused_inside_vmap():
    with pytest.raises(TraceError, match="vmap"):
        ek.vmap(lambda x: x[x > 0].sum())(t64([[1.0, -1.0]]))
    close(ek.grad(lambda x: x[x > 0].sum())(t64([1.0, -1.0, 2.0])), [1.0, 0.0, 1.0])


def test_after_an_error_inside_a_transformation_everything_works_again():
    for transform in (ek.grad, ek.vmap, ek.hessian, ek.checkpoint):
        with pytest.raises(ZeroDivisionError):
            transform(lambda x: 1 / 0)(t64([2.0]))
    close(ek.grad(lambda x: x.sum())(t64([2.0])), [1.0])
    assert t64([2.0]).numpy().tolist() == [2.0]


# --- complex --------------------------------------------------------------------------------------


def test_complex_gradients_point_uphill():
    z = np.array([1 + 2j, -0.5 + 0.25j])
    x = ek.tensor(z)
    close(ek.grad(lambda z: (z * z.conj()).real.sum())(x), 2 * z)
    close(ek.grad(lambda z: abs(z).sum())(x), z / abs(z))
    close(ek.grad(lambda z: z.real.sum())(x), np.ones(2, complex))
    close(ek.grad(lambda z: z.imag.sum())(x), 1j * np.ones(2))

    def f(z):
        return ek.exp(z * (1 + 2j)).real.sum() + (ek.sin(z) * z.conj()).imag.sum()

    step = 1e-6
    wanted = np.zeros(2, complex)
    for k in range(2):
        for unit in (1, 1j):
            moved = np.eye(2)[k] * step * unit
            wanted[k] += unit * (values(f(ek.tensor(z + moved))) - values(f(ek.tensor(z - moved)))) / (2 * step)
    close(ek.grad(f)(x), wanted, 1e-8)


def test_complex_tangents_are_linear_where_the_function_is_holomorphic():
    z, v = ek.tensor(np.array([1 + 2j])), np.array([0.5 - 1j])
    close(ek.jvp(lambda z: z**3, (z,), (ek.tensor(v),))[1], 3 * (1 + 2j) ** 2 * v)
    close(ek.vjp(lambda z: z**3, z)[1](ek.tensor(v))[0], 3 * (1 + 2j) ** 2 * v)


def test_gradients_through_complex_numbers_of_real_arguments_are_real():
    found = ek.grad(lambda x: abs(ek.exp(x * 1j) + x) ** 2)(t64(0.7))
    assert found.dtype is ek.float64
    close(found, 2 * 0.7 + 2 * math.cos(0.7) - 2 * 0.7 * math.sin(0.7))


# --- derivatives that users give ------------------------------------------------------------------


def doubled_jvp():
    """log1p whose derivative is given; it counts how often."""
    seen = []

    @ek.custom_jvp
    def f(x):
        return ek.log1p(x)

    @f.defjvp
    def rule(primals, tangents):
        seen.append(1)
        (x,), (t,) = primals, tangents
        return f(x), t / (1 + x)

    return f, seen


def doubled_vjp():
    seen = []

    @ek.custom_vjp
    def f(x):
        return ek.log1p(x)

    f.defvjp(lambda x: (ek.log1p(x), x), lambda x, ct: seen.append(1) or (ct / (1 + x),))
    return f, seen


@pytest.mark.parametrize("made", [doubled_jvp, doubled_vjp])
def test_a_given_derivative_is_used_in_every_order_and_under_vmap(made):
    f, seen = made()
    x = np.array([0.5, 1.0, 2.0])
    close(f(t64(0.5)), math.log1p(0.5))
    assert not seen
    close(ek.grad(f)(t64(0.5)), 1 / 1.5)
    assert seen
    close(ek.grad(ek.grad(f))(t64(0.5)), -1 / 1.5**2)
    close(ek.grad(ek.grad(ek.grad(f)))(t64(0.5)), 2 / 1.5**3)
    close(ek.vmap(f)(t64(x)), np.log1p(x))
    close(ek.vmap(ek.grad(f))(t64(x)), 1 / (1 + x))
    close(ek.grad(lambda x: ek.vmap(f)(x).sum())(t64(x)), 1 / (1 + x))
    close(ek.vmap(ek.grad(ek.grad(f)))(t64(x)), -1 / (1 + x) ** 2)
    close(ek.grad(lambda x: ek.grad(lambda x: ek.vmap(f)(x).sum())(x).sum())(t64(x)), -1 / (1 + x) ** 2)
    close(ek.grad(lambda x: ek.grad(lambda y: f(x * y))(t64(2.0)))(t64(0.5)), 1 / (1 + 1.0) ** 2)
    close(ek.jacobian(lambda x: f(x * x), mode="reverse")(t64(x)), np.diag(2 * x / (1 + x * x)))


def test_custom_jvp_serves_both_directions_and_custom_vjp_only_one():
    f, _ = doubled_jvp()
    close(ek.jvp(f, (t64(0.5),), (t64(2.0),))[1], 2 / 1.5)
    close(ek.jacobian(f, mode="forward")(t64([0.5, 1.0])), np.diag([1 / 1.5, 0.5]))
    close(ek.jvp(ek.grad(f), (t64(0.5),), (t64(1.0),))[1], -1 / 1.5**2)
    g, _ = doubled_vjp()
    with pytest.raises(DerivativeError, match="custom_jvp"):
        ek.jvp(g, (t64(0.5),), (t64(2.0),))[1].numpy()


def test_a_given_derivative_may_be_another_function_than_the_derivative():
    @ek.custom_vjp
    def rounded(x):
        return ek.round(x)

    rounded.defvjp(lambda x: (ek.round(x), None), lambda _, ct: ct)
    close(ek.grad(lambda x: (rounded(x) * t64(POINT)).sum())(t64(POINT * 3)), POINT)

    @ek.custom_jvp
    def clipped(x):
        return ek.floor(x)

    clipped.defjvp(lambda p, t: (clipped(*p), 10 * t[0]))
    close(ek.grad(clipped)(t64(2.5)), 10.0)


def test_given_derivatives_take_and_give_structures():
    @ek.custom_jvp
    def f(d, s):
        return {"p": d["a"] * d["b"], "q": [s * 2]}

    @f.defjvp
    def rule(primals, tangents):
        (d, s), (t, u) = primals, tangents
        return f(d, s), {"p": t["a"] * d["b"] + d["a"] * t["b"], "q": [u * 2]}

    def loss(d, s):
        out = f(d, s)
        return out["p"] * 3 + out["q"][0]

    slopes = ek.grad(loss, argnums=(0, 1))({"a": t64(2.0), "b": t64(5.0)}, t64(1.0))
    close(slopes[0]["a"], 15.0)
    close(slopes[0]["b"], 6.0)
    close(slopes[1], 2.0)

    @ek.custom_vjp
    def g(d, s):
        return d["a"] * s, d["b"]

    g.defvjp(lambda d, s: (g(d, s), (d, s)), lambda r, ct: ({"a": ct[0] * r[1], "b": ct[1]}, ct[0] * r[0]["a"]))
    slopes = ek.grad(lambda d, s: g(d, s)[0] + 2 * g(d, s)[1], argnums=(0, 1))({"a": t64(2.0), "b": t64(5.0)}, t64(4.0))
    close(slopes[0]["a"], 4.0)
    close(slopes[0]["b"], 2.0)
    close(slopes[1], 2.0)


def test_given_derivatives_with_arguments_that_are_batched_and_that_are_not():
    @ek.custom_vjp
    def f(x, w):
        return (x * w).sum()

    f.defvjp(lambda x, w: ((x * w).sum(), (x, w)), lambda r, ct: (ct * r[1], ct * r[0]))
    x, w = np.arange(6.0).reshape(3, 2), np.array([2.0, 5.0])
    close(ek.vmap(f, in_axes=(0, None))(t64(x), t64(w)), (x * w).sum(1))
    close(ek.vmap(ek.grad(f, argnums=1), in_axes=(0, None))(t64(x), t64(w)), x)
    close(ek.grad(lambda w: ek.vmap(f, in_axes=(0, None))(t64(x), w).sum())(t64(w)), x.sum(0))

    @ek.custom_jvp
    def g(x, w):
        return (x * w).sum()

    g.defjvp(lambda p, t: (g(*p), (t[0] * p[1]).sum() + (p[0] * t[1]).sum()))
    close(ek.grad(lambda w: ek.vmap(g, in_axes=(0, None))(t64(x), w).sum())(t64(w)), x.sum(0))
    close(ek.vmap(ek.grad(g), in_axes=(None, 0))(t64(w), t64(x)), x)


def test_rules_of_the_wrong_structure_are_refused():
    @ek.custom_jvp
    def f(x):
        return x, x

    with pytest.raises(DerivativeError, match="defjvp"):
        f(t64(1.0))
    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(TensorError, match="structure"):
        ek.grad(lambda x: f(x)[0])(t64(1.0))
    f.defjvp(lambda p, t: t[0])
    with pytest.raises(TensorError, match="pair"):
        ek.grad(lambda x: f(x)[0])(t64(1.0))

    @ek.custom_vjp
    def g(x, y):
        return x * y

    with pytest.raises(DerivativeError, match="defvjp"):
        g(t64(1.0), t64(1.0))
    g.defvjp(lambda x, y: (x * y, None), lambda r, ct: (ct,))
    with pytest.raises(TensorError, match="structure"):
        ek.grad(g)(t64(1.0), t64(1.0))
    g.defvjp(lambda x, y: x * y, lambda r, ct: (ct, ct))
    with pytest.raises(TensorError, match="pair"):
        ek.grad(g)(t64(1.0), t64(1.0))


def test_rules_that_give_the_wrong_shape_are_refused():
    @ek.custom_jvp
    def f(x):
        return x.sum()

    f.defjvp(lambda p, t: (f(*p), t[0]))
    with pytest.raises(ShapeError):
        values(ek.grad(f)(t64(POINT)))

    @ek.custom_vjp
    def g(x):
        return x.sum()

    g.defvjp(lambda x: (x.sum(), None), lambda r, ct: ct)
    with pytest.raises(ShapeError):
        values(ek.grad(g)(t64(POINT)))


# --- checkpoint -----------------------------------------------------------------------------------


def test_checkpoint_changes_no_derivative_of_any_order():
    def f(x):
        return (ek.sin(ek.sin(ek.sin(x))) * x).sum()

    kept = ek.checkpoint(f)
    close(kept(t64(POINT)), f(t64(POINT)))
    close(ek.grad(kept)(t64(POINT)), ek.grad(f)(t64(POINT)))
    close(ek.hessian(kept)(t64(POINT)), ek.hessian(f)(t64(POINT)))
    batch = t64(np.stack([POINT, POINT + 1]))
    close(ek.vmap(kept)(batch), ek.vmap(f)(batch))
    close(ek.vmap(ek.grad(kept))(batch), ek.vmap(ek.grad(f))(batch))
    close(ek.grad(lambda x: ek.vmap(kept)(x).sum())(batch), ek.vmap(ek.grad(f))(batch))
    close(ek.checkpoint(ek.grad(ek.checkpoint(f)))(t64(POINT)), ek.grad(f)(t64(POINT)))


def test_checkpoint_captures_what_is_differentiated_and_takes_structures():
    def outer(w):
        inner = ek.checkpoint(lambda d: {"y": ek.sin(d["x"] * w), "n": None})
        return inner({"x": w * 2})["y"]

    close(ek.grad(outer)(t64(0.3)), 4 * 0.3 * math.cos(2 * 0.09))
    close(ek.grad(ek.grad(outer))(t64(0.3)), second(outer, np.array(0.3)), 1e-6)


def test_checkpoint_within_scan():
    def run(x, body):
        return ek.scan(lambda c, w: (body(c, w), None), x, t64([1.0, 2.0, 3.0]))[0]

    def plain(c, w):
        return ek.sin(c * w) + c

    wanted = ek.grad(lambda x: run(x, plain))(t64(0.3))
    close(ek.grad(lambda x: run(x, ek.checkpoint(plain)))(t64(0.3)), wanted)
    close(
        ek.grad(ek.grad(lambda x: run(x, ek.checkpoint(plain))))(t64(0.3)),
        ek.grad(ek.grad(lambda x: run(x, plain)))(t64(0.3)),
    )


# --- on the CPU -----------------------------------------------------------------------------------


def test_transformations_on_the_cpu_backend():
    with ek.use_backend("cpu"):
        close(ek.grad(lambda x: (x * x).sum())(t64(POINT)), 2 * POINT)
        close(ek.vmap(ek.grad(lambda x: x * x))(t64(POINT)), 2 * POINT)
