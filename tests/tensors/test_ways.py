"""Control flow made of other control flow, shapes without values, and what transformations take besides."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import TraceError

BRANCHES = [lambda x: x + 1, lambda x: x * 10, lambda x: -x]


@pytest.fixture
def three() -> ek.Tensor:
    return ek.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(("index", "taken"), [(-3, 0), (0, 0), (1, 1), (2, 2), (7, 2)])
def test_switch_takes_one_branch(three, index, taken):
    np.testing.assert_array_equal(ek.switch(index, BRANCHES, three).numpy(), BRANCHES[taken](three.numpy()))


def test_switch_is_traced_mapped_and_differentiated(three):
    found = ek.jit(lambda i, x: ek.switch(i, BRANCHES, x))(ek.tensor(1), three)
    assert found.tolist() == [10.0, 20.0, 30.0]
    rows = ek.vmap(lambda i: ek.switch(i, BRANCHES, three))(ek.tensor([2, 0]))
    assert rows.tolist() == [[-1.0, -2.0, -3.0], [2.0, 3.0, 4.0]]
    assert ek.grad(lambda x: ek.switch(1, BRANCHES, x).sum())(three).tolist() == [10.0, 10.0, 10.0]
    with pytest.raises(ek.EshkolError, match="an integer, not float32"):
        ek.switch(ek.tensor(1.0), BRANCHES, three)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scans_of_what_does_not_commute(count, reverse):
    matrices = np.random.default_rng(count).normal(size=(count, 2, 2)).astype(np.float32)
    found = ek.associative_scan(ek.matmul, ek.tensor(matrices), reverse=reverse).numpy()
    expected, now = [], np.eye(2, dtype=np.float32)
    for matrix in matrices[::-1] if reverse else matrices:
        now = now @ matrix
        expected.append(now)
    expected = np.array(expected[::-1] if reverse else expected).reshape(count, 2, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_associative_scans_say_what_is_wrong():
    with pytest.raises(ek.EshkolError, match="one extent"):
        ek.associative_scan(lambda a, b: a, (ek.ones((3,)), ek.ones((4,))))
    with pytest.raises(ek.EshkolError, match="the function gives"):
        ek.associative_scan(lambda a, b: (a, b), ek.ones((3,)))


def test_shapes_are_known_without_values():
    struct = ek.ShapeDtypeStruct((1_000_000, 1_000_000), ek.float32)  # more than there is memory for
    found = ek.eval_shape(lambda a, n: {"y": (a @ a.T)[:n]}, struct, 5)
    assert found["y"] == ek.ShapeDtypeStruct((5, 1_000_000), "float32")
    with pytest.raises(ek.EshkolError, match="2 and 3"):
        ek.eval_shape(ek.add, ek.ShapeDtypeStruct((2,), ek.float32), ek.ones((3,)))


def test_static_arguments_are_no_tensors(three):
    power = ek.jit(lambda x, n, flag=True: x**n if flag else x, static_argnums=1, static_argnames=("flag",))
    assert power(three, 2).tolist() == [1.0, 4.0, 9.0]
    assert power(three, 2, flag=False).tolist() == [1.0, 2.0, 3.0]
    for wrong in (
        lambda: power(three, three),
        lambda: power(three, 2, flag=ek.tensor(True)),
        lambda: power(three, 2, ek.tensor(True)),
    ):
        with pytest.raises(TraceError, match="static"):
            wrong()


def test_donated_arguments_by_either_name():
    for how in ({"donate": 0}, {"donate_argnums": (0,)}):
        given = ek.tensor([1.0, 2.0]) * 1
        assert ek.jit(lambda x: x + 1, **how)(given).tolist() == [2.0, 3.0]


def test_jit_may_be_a_decorator_with_arguments(three):
    @ek.jit(static_argnames="n")
    def scaled(x, n):
        return x * n

    assert scaled(three, n=2).tolist() == [2.0, 4.0, 6.0]


def test_what_comes_besides_is_passed_on(three):
    def both(x):
        return (x * x).sum(), {"x": x, "text": "as it is"}

    along = (three,)
    for given in (
        ek.grad(both, has_aux=True)(three)[1], ek.jacrev(both, has_aux=True)(three)[1],
        ek.hessian(both, has_aux=True)(three)[1], ek.vjp(both, three, has_aux=True)[2],
        ek.jvp(both, along, along, has_aux=True)[2], ek.linearize(both, three, has_aux=True)[2],
    ):  # fmt: skip
        assert given["text"] == "as it is"
        assert given["x"].tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ek.EshkolError, match="a pair"):
        ek.jacfwd(lambda x: x, has_aux=True)(three)


def test_rules_are_given_what_is_not_differentiated(three):
    @partial(ek.custom_vjp, nondiff_argnums=(1, 2))
    def clipped(x, low, high):
        return ek.clamp(x, low, high)

    clipped.defvjp(lambda x, low, high: (clipped(x, low, high), x), lambda low, high, x, ct: (ct * (high - low),))
    assert ek.grad(lambda x: clipped(x, 0.0, 7.0).sum())(three).tolist() == [7.0, 7.0, 7.0]
    assert ek.grad(lambda x: clipped(x, high=7.0, low=0.0).sum())(three).tolist() == [7.0, 7.0, 7.0]

    @ek.custom_vjp
    def first(x, y):
        return x * y

    first.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    by_x, by_y = ek.grad(lambda x, y: first(x, y).sum(), argnums=(0, 1))(three, three)
    assert by_x.tolist() == [1.0, 2.0, 3.0]
    assert by_y.tolist() == [0.0, 0.0, 0.0]


def test_checkpoints_take_what_is_no_tensor(three):
    folded = ek.checkpoint(lambda x, how, scale=1.0: x.sum() * scale if how == "sum" else x.max())
    assert ek.grad(folded)(three, "sum", scale=2.0).tolist() == [2.0, 2.0, 2.0]
    assert ek.checkpoint(prevent_cse=False)(lambda x: x * 2)(three).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ek.EshkolError, match="policy"):
        ek.checkpoint(lambda x: x, policy="everything")


def test_structures_are_looked_into_as_far_as_is_said():
    assert ek.tree.leaves([(1, 2), {"a": (3,)}], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), (3,)]
    assert ek.tree.map(lambda a, b: (a, b), {"k": 1}, {"k": [2, 3]}) == {"k": (1, [2, 3])}
    with pytest.raises(ek.EshkolError, match="structures differ"):
        ek.tree.map(lambda a, b: a, (1, 2), (1, 2, 3))
    paths = [ek.tree.keystr(path) for path, _ in ek.tree.leaves_with_path({"b": [1, None], "a": (2,)})]
    assert paths == ["['a'][0]", "['b'][0]"]
