"""What would be silently wrong, or other than those who know NumPy, PyTorch or JAX expect: it works or is an error."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.graph.node import of_data

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def matrix():
    return ek.tensor(X)


# --- arguments of draws ---------------------------------------------------------------------------


def test_a_key_in_the_first_place_is_drawn_with():
    key = ek.random.key(3)
    assert ek.random.normal(key, (2, 3)).tolist() == ek.normal(key, (2, 3)).tolist()
    assert ek.random.normal(key.numpy(), (2, 3)).tolist() == ek.normal(key, (2, 3)).tolist()
    assert ek.random.bernoulli(key, 0.5, (4,)).tolist() == ek.bernoulli(key, 0.5, (4,)).tolist()
    assert ek.random.randperm(key, 5).tolist() == ek.randperm(key, 5).tolist()
    with pytest.raises(TensorError, match="not with both"):
        ek.random.normal(key, (2,), generator=ek.random.Generator(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ek.random.normal(0, 1, (3,)),
        lambda: ek.random.normal(2, 3),
        lambda: ek.random.uniform(3, 4),
        lambda: ek.random.uniform(-1.0, 1.0, (3,)),
        lambda: ek.random.exponential(2.0, (3,)),
    ],
)
def test_numbers_before_a_shape_are_refused(call):
    with pytest.raises(TensorError, match="the shape comes first"):
        call()


def test_a_shape_is_not_taken_for_a_parameter():
    key = ek.random.key(0)
    with pytest.raises(TensorError, match="from 0 to 1"):
        ek.bernoulli(key, (3,))
    with pytest.raises(TensorError, match="shape="):
        ek.random.gamma((3,))
    with pytest.raises(TensorError, match="from 0 to inf"):
        ek.normal(key, (2,), 0.0, ek.tensor([1.0, -1.0]))
    assert ek.random.rand((2, 3)).shape == ek.random.rand(2, 3).shape == ek.random.randn([2, 3]).shape == (2, 3)


# --- values and places ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_an_extreme_along_an_axis_does_not_unpack_into_values_and_places(name):
    with pytest.raises(TensorError, match="values alone"):
        _, _ = getattr(matrix(), name)(axis=1)
    found = getattr(matrix(), name)(axis=1).realize()
    with pytest.raises(TensorError, match="values alone"):
        _, _ = found
    with pytest.raises(ValueError, match="too many values"):
        _, _ = getattr(matrix(), name)(axis=0)
    one, other = list(found)
    assert [one.item(), other.item()] == found.tolist() == [row.item() for row in found]


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_an_extreme_in_the_words_of_pytorch_is_values_and_places_and_no_tensor(name):
    values, places = getattr(matrix(), name)(1)
    assert values.tolist() == getattr(matrix(), name)(axis=1).tolist()
    assert places.tolist() == {"max": [2, 2], "min": [0, 0], "median": [1, 1]}[name]
    with pytest.raises(TypeError, match="axis="):
        getattr(matrix(), name)(1) * 2
    with pytest.raises(TypeError, match="axis="):
        _ = getattr(matrix(), name)(1).shape


def test_other_tensors_unpack_into_rows():
    top, bottom = matrix()
    assert (top.tolist(), bottom.tolist()) == (X[0], X[1])
    first, second = matrix().sum(1)
    assert (first.item(), second.item()) == (6.0, 15.0)
    values, places = matrix().topk(1, 1)
    assert values.tolist() == [[3.0], [6.0]]
    assert places.tolist() == [[2], [2]]


# --- changes in place of what others give as windows ----------------------------------------------

WINDOWS = {
    "index": lambda x: x[0],
    "slice": lambda x: x[:, 1:],
    "indices of indices": lambda x: x[0][1],
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "reshape": lambda x: x.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "permute": lambda x: x.permute(1, 0),
    "transpose": lambda x: x.transpose(),
    "expand": lambda x: x.expand(4, 2, 3),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "chunk": lambda x: ek.chunk(x, 2)[0],
    "split": lambda x: ek.split(x, 1)[1],
    "unstack": lambda x: ek.unstack(x)[0],
    "row": lambda x: next(iter(x)),
    "detach": lambda x: x.detach(),
    "diagonal": lambda x: ek.diagonal(x),
    "flip": lambda x: ek.flip(x, 0),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_change_of_what_would_be_a_window_is_refused(name):
    x = matrix()
    z = WINDOWS[name](x)
    with pytest.raises(TensorError, match="alone"):
        z.add_(1)
    with pytest.raises(TensorError, match="alone"):
        z *= 2
    z.realize()
    with pytest.raises(TensorError, match="alone"):
        np.add(z, 1.0, out=z)
    assert x.tolist() == X
    own = z.clone()
    own += 1
    assert own.tolist() == (np.array(z.tolist()) + 1).tolist()


def test_an_assignment_to_a_row_of_a_row_is_refused():
    x = matrix()
    with pytest.raises(TensorError, match="alone"):
        x[0][1] = 5
    with pytest.raises(TensorError, match="alone"):
        x[0][1] += 5
    assert x.tolist() == X


def test_assignments_to_elements_change_the_tensor():
    x = matrix()
    x[0] += 1
    x[1, 2] *= 10
    x[:, 0] -= 1
    x[ek.tensor([1])] /= 2
    x[x > 20] = 0.0
    assert x.tolist() == [[1.0, 3.0, 4.0], [1.5, 2.5, 0.0]]


def test_a_window_into_what_nobody_holds_may_be_changed():
    x = matrix()
    x = x.reshape(-1)
    x += 1
    assert x.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    y = (x * 2)[0]
    y += 1
    assert y.item() == 5.0
    chosen = x[x > 5]  # a copy everywhere
    chosen += 1
    assert chosen.tolist() == [7.0, 8.0]
    w = ek.tensor([1.0], requires_grad=True)
    w = (w * 2).detach()
    w += 1
    assert w.tolist() == [3.0]


# --- errors of the statement that made them -------------------------------------------------------

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ek.solve(ek.tensor(SINGULAR), ek.tensor([1.0, 2.0])),
        lambda: ek.inv(ek.tensor(SINGULAR)),
        lambda: ek.cholesky(ek.tensor([[1.0, 2.0], [2.0, -4.0]])),
        lambda: ek.eigh(ek.tensor([[1.0, np.nan], [2.0, 1.0]])),
        lambda: ek.svd(ek.tensor([[1.0, np.inf], [2.0, 1.0]])),
        lambda: ek.solve(ek.tensor([[2.0, 1.0], [1.0, 1.0]]) * 0, ek.tensor([1.0, 2.0])),
        lambda: ek.tensor([1, 2]) // ek.tensor([1, 0]),
        lambda: ek.tensor([1, 2]) // 0,
        lambda: ek.tensor([1, 2]) % 0,
        lambda: ek.tensor([1, 2]) ** -1,
        lambda: matrix()[ek.tensor([1, 5])],
        lambda: matrix()[[0, -3]],
        lambda: ek.take(matrix(), ek.tensor([2]), 0),
        lambda: ek.one_hot(ek.tensor([5]), 3),
        lambda: ek.embedding(matrix(), ek.tensor([2])),
        lambda: ek.scatter(matrix(), ek.tensor([2]), ek.tensor([[0.0, 0.0, 0.0]])),
        lambda: ek.cross_entropy(matrix(), ek.tensor([0, 9])),
    ],
)
def test_values_that_cannot_be_are_refused_by_the_statement(call):
    with pytest.raises(TensorError) as caught:
        call()  # nobody looks at the value
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


@pytest.mark.parametrize(
    "call",
    [
        lambda: matrix()[ek.tensor([0, 1]) + 3],
        lambda: ek.embedding(matrix(), ek.tensor([0, 1]) + 3),
        lambda: ek.cross_entropy(matrix(), ek.tensor([0, 1]) + 3),
        lambda: ek.tensor([1, 2]) // (ek.tensor([1, 2]) - 1),
    ],
)
def test_values_that_are_not_computed_yet_are_refused_by_the_statement_too(call):
    with pytest.raises(TensorError) as caught:
        call()  # nobody looks at the value
    assert caught.value.span.file == __file__


def test_positions_that_follow_from_numbers_alone_are_told_from_data():
    assert not of_data((ek.arange(2) - 1)._node)
    assert of_data((ek.tensor([0, 1]) + 1)._node)


def test_linear_algebra_within_transformations():
    def f(a):
        return ek.solve(a, ek.tensor([1.0, 2.0])).sum()

    a = ek.tensor([[1.0, 2.0], [2.0, 5.0]])
    assert ek.jit(f)(a).item() == ek.vmap(f)(a[None]).tolist()[0] == f(a).item() == 1.0
    assert ek.grad(f)(a).shape == (2, 2)
    with pytest.raises(TensorError, match="singular"):
        ek.grad(f)(ek.tensor(SINGULAR))


# --- memory of others -----------------------------------------------------------------------------

MAKERS = {
    "tensor": ek.tensor,
    "from_numpy": ek.from_numpy,
    "asarray": ek.asarray,
    "from_dlpack": ek.from_dlpack,
    "operand": lambda a: ek.ones((3,)) * a,
    "op": lambda a: ek.relu(a),
    "stack": lambda a: ek.stack([a])[0],
    "where": lambda a: ek.where(ek.tensor([True] * 3), a, 0.0),
    "identity under jit": lambda a: ek.jit(lambda x: x)(a),
    "view": lambda a: ek.from_numpy(a[:]),
    "read-only view": lambda a: ek.from_numpy(np.broadcast_to(a, (3,))),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_array_that_is_written_to_does_not_change_a_tensor(name):
    array = np.ones(3, np.float32)
    made = MAKERS[name](array)
    later = made * 2
    array[0] = 5
    assert made.tolist() == [1, 1, 1]
    assert later.tolist() == [2, 2, 2]


def test_arrays_in_indices_and_assignments_are_copied():
    places = np.array([0, 1])
    taken = ek.tensor([1.0, 2.0, 3.0])[places]
    places[0] = 2
    assert taken.tolist() == [1.0, 2.0]
    values = np.ones(3, np.float32)
    x = ek.zeros((3,))
    x[:] = values
    values[0] = 5
    assert x.tolist() == [1, 1, 1]


def test_what_is_given_out_cannot_change_a_tensor():
    x = ek.tensor([1.0, 2.0])
    for array in (x.numpy(), np.asarray(x)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    np.array(x)[0] = 5
    x.tolist()[0] = 5
    np.from_dlpack(x)[0] = 5
    assert x.tolist() == [1.0, 2.0]
    seen = x.numpy()
    x += 1
    assert seen.tolist() == [1.0, 2.0]


# --- what jit reads beside its arguments ----------------------------------------------------------


class Model:
    """Something with attributes that a method reads."""

    def __init__(self):
        self.scale, self.weight = 2.0, ek.tensor([2.0, 2.0, 2.0])

    def scaled(self, x):
        return x * self.scale

    def through(self, x):
        return self.scaled(x)

    def weighed(self, x):
        return x * self.weight

    @property
    def twice_half(self):
        return self.scale

    def by_property(self, x):
        return x * self.twice_half

    __call__ = scaled


RATE = 2.0
TRACES = []


def by_rate(x):
    return x * RATE


def of_default(x, held=[2.0]):  # noqa: B006 - that it can change is the point
    return x * held[0]


def _cases():
    """(name, a function for jit, what changes the factor from 2 to 3)."""
    model, config, module = Model(), types.SimpleNamespace(rate=2.0), types.ModuleType("settings")
    module.rate = 2.0
    numbers, table, array = [2.0], {"rate": 2.0, "other": (1, [2])}, np.full(3, 2.0, np.float32)
    large, weight, constant, part = (
        np.full(20000, 2.0, np.float32), ek.tensor([2.0, 2.0, 2.0]), ek.zeros((3,)) + 2, ek.tensor([1.0, 1.0, 1.0]),
    )  # fmt: skip
    inner = ek.jit(lambda x: x * numbers[0])

    def rate_of(x):
        return by_rate(x)

    def to(place, name):
        return lambda: setattr(place, name, 3.0)

    yield "global", lambda x: x * RATE, lambda: globals().update(RATE=3.0)
    yield "global of a function", rate_of, lambda: globals().update(RATE=3.0)
    yield "generator expression", lambda x: sum(x * RATE / 2 for _ in range(2)), lambda: globals().update(RATE=3.0)
    yield "gradient", lambda x: ek.grad(lambda y: (y * y).sum() * RATE / 2)(x), lambda: globals().update(RATE=3.0)
    yield "branch", lambda x: x * 3 if RATE == 3 else x * 2, lambda: globals().update(RATE=3.0)
    yield "list", lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 3.0)
    yield "jit in jit", lambda x: inner(x), lambda: numbers.__setitem__(0, 3.0)
    yield "dict", lambda x: x * table["rate"], lambda: table.update(rate=3.0)
    yield "array", lambda x: x * array, lambda: array.fill(3.0)
    yield "large array", lambda x: x * large[-1], lambda: large.fill(3.0)
    yield "attribute", lambda x: x * config.rate, to(config, "rate")
    yield "module", lambda x: x * module.rate, to(module, "rate")
    yield "method", model.scaled, to(model, "scale")
    yield "method of a method", model.through, to(model, "scale")
    yield "property", model.by_property, to(model, "scale")
    yield "object", model, to(model, "scale")
    yield "method of what is captured", lambda x: model.scaled(x), to(model, "scale")
    yield "tensor of an object", model.weighed, lambda: model.weight.add_(1)
    yield "another tensor of an object", model.weighed, lambda: setattr(model, "weight", ek.tensor([3.0, 3.0, 3.0]))
    yield "tensor", lambda x: x * weight, lambda: weight.add_(1)
    yield "tensor by value", lambda x: x * weight[0].item(), lambda: weight.add_(1)
    yield "tensor that was constant", lambda x: x * constant, lambda: constant.add_(1)
    yield "tensor that is computed with", lambda x: x * (part + 1), lambda: part.add_(1)
    yield "default", of_default, lambda: of_default.__defaults__[0].__setitem__(0, 3.0)
    yield "partial", functools.partial(lambda held, x: x * held[0], numbers), lambda: numbers.__setitem__(0, 3.0)
    named = functools.partial(lambda x, rate: x * rate, rate=2.0)
    yield "keyword of a partial", named, lambda: named.keywords.update(rate=3.0)
    yield "function in a partial", functools.partial(lambda f, x: f(x), rate_of), lambda: globals().update(RATE=3.0)


@pytest.mark.parametrize("name", [name for name, *_ in _cases()])
def test_jit_sees_what_it_captures_change(name):
    globals().update(RATE=2.0)
    of_default.__defaults__[0][0] = 2.0
    function, change = next((f, c) for n, f, c in _cases() if n == name)
    x = ek.tensor([1.0, 2.0, 3.0])
    jitted = ek.jit(function)
    assert jitted(x).tolist() == jitted(x).tolist() == [2.0, 4.0, 6.0]
    change()
    assert jitted(x).tolist() == jitted(x).tolist() == [3.0, 6.0, 9.0]


def test_jit_sees_a_variable_around_it_and_an_object_among_its_arguments_change():
    factor = 2.0
    jitted = ek.jit(lambda x: x * factor)
    assert jitted(ek.tensor([1.0])).tolist() == [2.0]
    factor = 3.0
    assert jitted(ek.tensor([1.0])).tolist() == [3.0]
    config = Model()
    told = ek.jit(lambda x, c: x * c.scale)
    assert told(ek.tensor([1.0]), config).tolist() == [2.0]
    config.scale = 3.0
    assert told(ek.tensor([1.0]), config).tolist() == told(ek.tensor([1.0]), c=config).tolist() == [3.0]


def test_jit_does_not_trace_again_for_nothing():
    calls, weight, settings = [], ek.tensor([1.0, 1.0]), {"rate": 2.0}

    @ek.jit
    def step(x):
        calls.append(settings["rate"])
        return x * weight * settings["rate"]

    x = ek.tensor([1.0, 2.0])
    for _ in range(5):
        weight.add_(1)  # an input: another value is no other program
        step(x)
    assert calls == [2.0]
    assert step(x).tolist() == [12.0, 24.0]
    settings["rate"] = 3.0
    assert step(x).tolist() == [18.0, 36.0]
    settings["rate"] = 2.0
    assert step(x).tolist() == [12.0, 24.0]
    assert calls == [2.0, 3.0]


def test_jit_tells_zeros_apart_by_their_sign():
    scaled = ek.jit(lambda x, s: x * s)
    assert not np.signbit(scaled(ek.tensor([1.0]), 0.0).numpy())[0]
    assert np.signbit(scaled(ek.tensor([1.0]), -0.0).numpy())[0]


# --- loops that do not end ------------------------------------------------------------------------


def doubling(x, most=3):
    return ek.while_loop(lambda c: c < 100, lambda c: c * 2, x, max_iterations=most)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_loop_that_is_cut_short_is_an_error(backend):
    with ek.use_backend(backend):
        assert doubling(ek.tensor(50.0)).item() == 100.0
        assert ek.vmap(doubling)(ek.tensor([50.0, 20.0])).tolist() == [100.0, 160.0]
        assert ek.grad(doubling)(ek.tensor(50.0)).item() == 2.0
        for call in (doubling, ek.jit(doubling), ek.grad(doubling)):
            with pytest.raises(TensorError, match=r"has not ended.*max_iterations=3"):
                call(ek.tensor(1.0))
        with pytest.raises(TensorError, match="has not ended"):
            ek.vmap(doubling)(ek.tensor([50.0, 1.0])).tolist()
        assert doubling(ek.tensor(100.0), 0).item() == 100.0
        for wrong in (-1, 2.5, True):
            with pytest.raises(TensorError, match="number of steps"):
                doubling(ek.tensor(1.0), wrong)


# --- numbers and truth ----------------------------------------------------------------------------


def test_numbers_that_do_not_fit_are_refused():
    for call in (
        lambda: ek.tensor(300, dtype=ek.uint8),
        lambda: ek.tensor(1e39),
        lambda: ek.tensor([1], dtype=ek.int8) + 300,
        lambda: ek.tensor([1.0]) + 1e300,
        lambda: ek.tensor([1, 2]).add_(0.5),
        lambda: ek.tensor([1, 2], requires_grad=True),
        lambda: ek.grad(lambda a: a.sum())(ek.tensor([1, 2])),
    ):
        with pytest.raises(DTypeError):
            call()
    x = ek.tensor([1, 2])
    with pytest.raises(DTypeError):
        x[0] = 7.5


def test_axes_and_labels_that_are_wrong_are_refused():
    for call in (
        lambda: matrix().sum(axis=(0, 0)),
        lambda: ek.einsum("ij->iz", matrix()),
        lambda: ek.einsum("ij->ii", matrix()),
        lambda: ek.einsum("ij,jk", matrix()),
        lambda: bool(matrix() > 2),
        lambda: bool(ek.zeros((0,))),
    ):
        with pytest.raises(ShapeError):
            call()


def test_a_tensor_and_a_list_are_not_silently_unequal():
    for call in (lambda: matrix() == [1.0, 2.0, 3.0], lambda: matrix() != (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError, match=r"ek\.tensor"):
            call()
    assert (matrix() == None) is False  # noqa: E711 - as Python has it of anything
    assert (matrix() != "text") is True


def test_the_gradient_of_what_is_no_leaf_is_not_silently_none():
    leaf = ek.tensor([1.0], requires_grad=True)
    inner = leaf * 2
    inner.sum().backward()
    assert leaf.grad.tolist() == [2.0]
    with pytest.warns(UserWarning, match="no leaf"):
        assert inner.grad is None


def test_jit_sees_a_model_that_it_captures_change():
    class Scaled(ek.nn.Module):
        """A layer and a number."""

        def __init__(self):
            super().__init__()
            self.scale, self.layer = 2.0, ek.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x) * self.scale

    model, x = Scaled(), ek.tensor([[1.0, 2.0]])
    model.requires_grad_(False)
    whole, part = ek.jit(lambda x: model(x)), ek.jit(lambda x: model.layer(x))
    for change in (lambda: None, lambda: setattr(model, "scale", 5.0), lambda: model.layer.weight.mul_(0.5)):
        change()
        np.testing.assert_allclose(whole(x).numpy(), model(x).numpy(), rtol=1e-6)
        np.testing.assert_allclose(part(x).numpy(), model.layer(x).numpy(), rtol=1e-6)


def test_jit_refuses_changes_of_arguments_that_the_caller_would_not_see():
    def changed(x, y):
        x.add_(1.0)
        return x + y

    t = ek.tensor([1.0, 2.0])
    with pytest.raises(ek.EshkolError, match="tensor 0 of its arguments in place"):
        ek.jit(changed)(t, t)
    assert t.numpy().tolist() == [1.0, 2.0]
    assert ek.jit(lambda x: changed(x.clone(), x))(t).numpy().tolist() == [3.0, 5.0]
