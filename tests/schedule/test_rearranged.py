"""Rewrites that mathematicians would make, and other ways through memory: each against the plain form, on random sizes.

With checks on, every pass and every kernel is compared with the interpreter besides; here NumPy says what is right, and
the plan what was made of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import TABLE, dtypes
from eshkol.schedule.kernels import parts
from eshkol.schedule.kernels.space import common
from eshkol.schedule.rewrite import arrange, turned
from eshkol.schedule.rewrite.arrange import arrange as arranged
from eshkol.schedule.rewrite.decompose import decompose
from eshkol.schedule.rewrite.turned import turn_reductions
from eshkol.schedule.rewrite.windows import greatest_of_windows

RNG = np.random.default_rng(80)
few = settings(max_examples=6, deadline=None)
sizes = st.integers(1, 9)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def node(array: Any) -> Node:
    return buffer(array, dtypes.of(array.dtype))


def names(*outs: Node) -> list[str]:
    return [n.op.name for n in topological(outs)]


def computed(function: Any, *arrays: Any) -> Any:
    return ek.jit(function)(*map(ek.tensor, arrays)).numpy()


# --- products -------------------------------------------------------------------------------------


@few
@given(st.integers(16, 40), sizes)
def test_many_rows_times_columns_are_sums(n, k):
    a, b = floats(n, k), floats(k, n)
    wanted = (a * b.T).sum(1)
    np.testing.assert_allclose(computed(lambda a, b: ek.einsum("ij,ij->i", a, b), a, b.T), wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(computed(lambda a, b: ek.einsum("ij,ji->i", a, b), a, b), wanted, rtol=1e-5, atol=1e-5)
    rows, columns = node(a[:, None]), node(np.ascontiguousarray(b.T[..., None]))
    (found,) = arranged([TABLE["matmul"](rows, columns)], CORES)
    assert "matrix_product" not in names(found)
    assert found.shape == (n, 1, 1)
    (few_of_them,) = arranged([TABLE["matmul"](node(a[:3, None]), node(floats(3, k, 1)))], CORES)
    assert "matrix_product" in names(few_of_them)


@few
@given(sizes, sizes)
def test_a_diagonal_matrix_scales_rows_or_columns(n, m):
    a, b = floats(n), floats(n, m)
    np.testing.assert_allclose(computed(lambda a, b: ek.diag(a) @ b, a, b), np.diag(a) @ b, rtol=1e-6)
    np.testing.assert_allclose(computed(lambda a, b: b.T @ ek.diag(a), a, b), b.T @ np.diag(a), rtol=1e-6)
    (found,) = arranged([TABLE["matmul"](TABLE["diag"](node(a)), node(b))], CORES)
    assert "matrix_product" not in names(found)


def test_what_is_not_finite_beside_a_diagonal_matrix_spoils_what_it_is_summed_with():
    a, b = floats(3), floats(3, 4)
    b[1, 2], b[0, 0] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(computed(lambda a, b: ek.diag(a) @ b, a, b), np.diag(a) @ b, rtol=1e-6)
        np.testing.assert_allclose(computed(lambda a, b: b.T @ ek.diag(a), a, b), b.T @ np.diag(a), rtol=1e-6)


def test_other_diagonals_are_multiplied():
    a, b = floats(3), floats(4, 4)
    for k in (1, -1):
        found = computed(lambda a, b, k=k: ek.diag(a, k) @ b, a, b)
        np.testing.assert_allclose(found, np.diag(a, k) @ b, rtol=1e-6)


@few
@given(sizes, sizes)
def test_the_diagonal_of_a_product_needs_no_matrix(n, m):
    a, b = floats(n, m), floats(m, n)
    np.testing.assert_allclose(
        computed(lambda a, b: ek.diagonal(a @ b), a, b), np.diagonal(a @ b), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(computed(lambda a, b: ek.trace(a @ b), a, b), np.trace(a @ b), rtol=1e-4, atol=1e-4)


def test_a_product_that_is_needed_whole_is_not_computed_twice():
    product = TABLE["matmul"](node(floats(5, 6)), node(floats(6, 5)))
    found = arranged([TABLE["trace"](product), product], CORES)
    assert names(*found).count("matrix_product") == 1
    assert "permute" not in names(*found)


@few
@given(st.lists(sizes, min_size=4, max_size=5), st.randoms(use_true_random=False))
def test_chains_go_in_a_good_order(extents, draw):
    extents = [n * draw.choice([1, 16]) for n in extents]
    matrices = [floats(n, m) for n, m in pairwise(extents)]
    want = np.linalg.multi_dot([m.astype(np.float64) for m in matrices])
    for function in (_from_left, _from_right):
        found = computed(function, *matrices)
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def _from_left(*matrices: Any) -> Any:
    found = matrices[0]
    for m in matrices[1:]:
        found = found @ m
    return found


def _from_right(*matrices: Any) -> Any:
    found = matrices[-1]
    for m in matrices[-2::-1]:
        found = m @ found
    return found


def test_a_vector_at_the_end_of_a_chain_comes_first():
    a, b, c = floats(64, 64), floats(64, 64), floats(64, 1)
    product = TABLE["matmul"]
    (found,) = arranged([product(product(node(a), node(b)), node(c))], CORES)
    assert [n.shape for n in topological([found]) if n.op.name == "matrix_product"] == [(64, 1), (64, 1)]


@few
@given(sizes, sizes, st.sampled_from([512, 800, 600]), st.booleans(), st.booleans())
def test_long_sums_are_cut_in_pieces(m, n, terms, left, right):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrange, "LONG", 512)
        a, b = floats(m + 1, terms), floats(terms, n + 1)
        given = (a.T.copy() if left else a), (b.T.copy() if right else b)
        found = computed(lambda a, b: (a.T if left else a) @ (b.T if right else b), *given)
        np.testing.assert_allclose(found, a @ b, rtol=1e-3, atol=1e-4)
        (cut,) = arranged([TABLE["matmul"](node(a), node(b))], CORES)
        assert ("sum" in names(cut)) is (16 * (max(m, n) + 1) <= terms)


# --- reductions and scans -------------------------------------------------------------------------


@few
@given(st.integers(1, 6), st.integers(1, 24), st.integers(2, 9), st.sampled_from(["sum", "max", "min", "prod"]))
def test_short_rows_are_reduced_side_by_side(n, m, d, how):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turned, "LEAST", 1)
        patch.setattr(turned, "NARROWEST", 2)
        x, y, z = floats(n, d), floats(m, d), floats(m)

        def away(lib, x, y, z):
            return getattr(lib, how)(lib.abs(x[:, None] - y) * 2 + z[:, None], axis=-1)

        np.testing.assert_allclose(computed(lambda *g: away(ek, *g), x, y, z), away(np, x, y, z), rtol=1e-5)
        squares = TABLE["reshape"](node(x), (n, 1, d)) - node(y)
        found = turn_reductions([TABLE[how](squares * squares, -1)], CORES)
        assert ("turned" in names(*found)) is (m >= 2 and n * d * m >= 2 * max(m, n) * d)


def test_distances_of_points_close_together_are_exact():
    x = (1000 + floats(40, 32) * 1e-3).astype(np.float32)
    found = computed(ek.cdist, x, x)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(found, np.sqrt(((exact[:, None] - exact) ** 2).sum(-1)), rtol=1e-4)


@pytest.mark.parametrize(("rows", "terms", "columns"), [(66, 3, 70), (67, 13, 65), (17, 20, 64)])
def test_distances_are_computed_in_tiles(rows, terms, columns):
    """In one kernel: rows that are left over too, whatever follows from them, and what is no number."""
    x, y, z = floats(rows, terms), floats(columns, terms), floats(rows, columns)
    x[1, 0], y[3, 1], x[2, 2] = np.nan, np.inf, -0.0
    ways = {
        "squares": lambda lib, x, y, z: lib.sum((x[:, None] - y) ** 2, axis=-1) * z + x[:, :1],
        "greatest": lambda lib, x, y, z: lib.max(lib.abs(x[:, None] - y), axis=-1),
        "several": lambda lib, x, y, z: lib.sum(x[:, None] * y, axis=-1) - lib.min(x[:, None] * y, axis=-1),
    }
    for name, way in ways.items():
        with np.errstate(invalid="ignore"):
            want = way(np, x.astype(np.float64), y.astype(np.float64), z.astype(np.float64))
        found = ek.jit(lambda *g, way=way: way(ek, *g))
        np.testing.assert_allclose(found(*map(ek.tensor, (x, y, z))).numpy(), want, rtol=1e-4, atol=1e-5, err_msg=name)
        launches = [step.kernel.program.name for step in found.plan(*map(ek.tensor, (x, y, z))).steps]
        assert sum("sum" in name or "max" in name for name in launches) == 1, launches
    x, y = x[5:], y[5:]
    away = x[:, None].astype(np.float64) - y
    both = [x, np.stack([y, y + 1])]
    found = computed(ek.vmap(lambda x, y: ek.cdist(x, y), (None, 0)), *both)
    np.testing.assert_allclose(found[0], np.sqrt((away**2).sum(-1)), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.sqrt(((away - 1) ** 2).sum(-1)), rtol=1e-5)


@few
@given(st.integers(2, 40), st.integers(1, 5), st.integers(16, 40), st.booleans())
def test_sums_over_leading_axes_of_what_broadcasts(n, a, b, cut):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "UNROLLED", 1 if cut else 8)
        x, y = floats(n, a), floats(n, b)
        found = computed(lambda x, y: (x[:, :, None] * y[:, None]).sum(0), x, y)
        np.testing.assert_allclose(found, np.einsum("na,nb->ab", x, y), rtol=1e-4, atol=1e-4)


def test_runs_and_axes_of_as_many_elements():
    assert common((32, 64, 28, 28), (256, 8, 784)) == [([0, 1], [0, 1]), ([2], [2, 3])]
    assert common((6, 1, 4), (24,)) == [([0], [0, 2])]
    assert common((), ()) == []


@few
@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from([17, 40]), st.booleans())
def test_norms_over_groups_of_channels(batch, groups, side, even):
    channels = groups * (2 if even else 3)
    x, w, b = floats(batch, channels, side), floats(channels), floats(channels)
    found = computed(lambda x, w, b: ek.group_norm(x, groups, w, b), x, w, b)
    rows = x.reshape(batch, groups, -1).astype(np.float64)
    want = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, want.reshape(x.shape) * w[:, None] + b[:, None], rtol=1e-3, atol=1e-4)


@few
@given(st.integers(1, 3), st.integers(1, 7), st.sampled_from([64, 256, 257, 600]), st.booleans())
def test_scans_side_by_side(outer, n, columns, reverse):
    x = (RNG.random((outer, n, columns)) + 0.5).astype(np.float32)
    for name in ("cumsum", "cumprod"):
        plain = getattr(np, name)
        want = plain(x[:, ::-1], 1)[:, ::-1] if reverse else plain(x, 1)
        found = computed(lambda x, name=name: getattr(ek, name)(x, 1, reverse), x)
        np.testing.assert_allclose(found, want, rtol=1e-5)
    flat = x.reshape(-1, n)[: outer * columns // 4 * 4].astype(np.float16)
    running = computed(lambda x: ek.cumsum(x, 1, reverse), flat)
    wide = flat.astype(np.float64)
    want = wide[:, ::-1].cumsum(1)[:, ::-1] if reverse else wide.cumsum(1)
    np.testing.assert_allclose(running, want, rtol=1e-3)
    gains = (RNG.random(x.shape) - 0.5).astype(np.float32)
    want, order = x.astype(np.float64), range(n)[::-1] if reverse else range(n)
    for k, before in zip([*order][1:], order, strict=False):
        want[:, k] += gains[:, k] * want[:, before]
    found = computed(lambda g, x: ek.linear_recurrence(g, x, axis=1, reverse=reverse), gains, x)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    turned = [np.ascontiguousarray(y.swapaxes(1, 2)) for y in (gains, x)]
    found = computed(lambda g, x: ek.linear_recurrence(g, x, axis=2, reverse=reverse), *turned)
    np.testing.assert_allclose(found.swapaxes(1, 2), want, rtol=1e-5, atol=1e-5)


# --- elements -------------------------------------------------------------------------------------


@few
@given(st.integers(1, 12), st.integers(1, 40), st.integers(-50, 50), st.integers(-50, 50))
def test_rolls(n, m, i, j):
    x = floats(n, m)
    np.testing.assert_array_equal(computed(lambda x: ek.roll(x, (i, j), (0, 1)), x), np.roll(x, (i, j), (0, 1)))
    np.testing.assert_array_equal(computed(lambda x: ek.roll(x, i), x), np.roll(x, i))
    back = ek.grad(lambda x: (ek.roll(x, (i, j), (0, 1)) * x.detach()).sum())(ek.tensor(x))
    np.testing.assert_array_equal(back.numpy(), np.roll(x, (-i, -j), (0, 1)))


_NUMPYS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@st.composite
def _borders(draw):
    """A mode, a shape, and widths that suit both: of axes of no element, none."""
    mode = draw(st.sampled_from(sorted(_NUMPYS)))
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5, 12, 33]), min_size=1, max_size=3))
    most = {"reflect": lambda n: n - 1, "replicate": lambda n: 9, "circular": lambda n: n}[mode]
    widths = [draw(st.tuples(*(st.sampled_from(sorted({0, min(1, most(n)), most(n)})),) * 2)) for n in shape]
    if draw(st.integers(0, 9)) == 0:
        shape[0], widths[0] = 0, (0, 0)
    return mode, tuple(shape), tuple(widths)


@settings(max_examples=40, deadline=None)
@given(_borders(), st.sampled_from(["f4", "f8", "f2", "i1", "i8", "?", "c8"]))
def test_borders(drawn, kind):
    mode, shape, widths = drawn
    x = (RNG.standard_normal(shape) * 9).astype(kind)
    wanted = np.pad(x, widths, _NUMPYS[mode])
    found = computed(lambda x: ek.pad(x, widths, mode=mode), x)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == x.dtype
    many = np.stack([x, x[::-1]])
    np.testing.assert_array_equal(
        ek.vmap(lambda x: ek.pad(x, widths, mode=mode))(ek.tensor(many)).numpy(),
        np.pad(many, ((0, 0), *widths), _NUMPYS[mode]),
    )


@settings(max_examples=20, deadline=None)
@given(_borders())
def test_gradients_of_borders(drawn):
    """Each element has what all its copies have."""
    mode, shape, widths = drawn
    x, v = RNG.standard_normal(shape), RNG.standard_normal(shape)
    origin = np.pad(np.arange(x.size).reshape(shape), widths, _NUMPYS[mode])
    w = RNG.standard_normal(origin.shape)

    def back(y):
        return np.bincount(origin.ravel(), y.ravel(), x.size).reshape(shape)

    def function(x):
        return (ek.pad(x, widths, mode=mode) ** 3 * ek.tensor(w)).sum()

    first = ek.grad(function)
    wide = x.ravel()[origin]
    np.testing.assert_allclose(first(ek.tensor(x)).numpy(), back(3 * w * wide**2), atol=1e-12)
    second = ek.grad(lambda x: (first(x) * ek.tensor(v)).sum())(ek.tensor(x))
    np.testing.assert_allclose(second.numpy(), back(6 * w * wide * v.ravel()[origin]), atol=1e-12)
    rows = ek.vmap(first)(ek.tensor(np.stack([x, v])))
    wanted = [back(3 * w * one.ravel()[origin] ** 2) for one in (x, v)]
    np.testing.assert_allclose(rows.numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint32])
def test_integers_divided_by_known_numbers(dtype):
    limits = np.iinfo(dtype)
    x = RNG.integers(limits.min, limits.max, 50, dtype, endpoint=True)
    x[:2] = limits.min, limits.max
    for divisor in (1, 2, 7, 100, -1, -2, -7):
        if divisor < limits.min:
            continue
        for name in ("remainder", "fmod", "floor_divide"):
            with np.errstate(over="ignore"):
                want = getattr(np, name)(x, dtype(divisor))
            found = computed(lambda x, name=name, by=divisor: getattr(ek, name)(x, by), x)
            np.testing.assert_array_equal(found, want, f"{name} by {divisor}")
            assert found.dtype == want.dtype
    on_cores = names(*decompose([TABLE["remainder"](node(x), 7)]))
    assert ("remainder_by_halves" if dtype is np.int64 else "remainder_by") in on_cores


def test_what_known_divisors_leave_of_long_integers():
    """Around multiples, around 2³², and at the ends: where a float that is off by a little would tell."""
    near = np.arange(-40, 40)
    x = np.r_[
        RNG.integers(-(2**63), 2**63, 500),
        near,
        near + 2**32,
        near - 2**32,
        -(2**63) + near[40:],
        2**63 - 1 - near[40:],
    ]
    for divisor in (3, 7, 768, 99_991, 2**19 - 1, 2**19 + 1, 64):
        whole = RNG.integers(-(2**62), 2**62, 500) // divisor * divisor
        y = np.r_[x, whole, whole - 1, whole + 1]
        np.testing.assert_array_equal(computed(lambda x, by=divisor: x % by, y), y % divisor, f"by {divisor}")
        fits = divisor < 2**19 and divisor != 64
        assert ("remainder_by_halves" in names(*decompose([TABLE["remainder"](node(x), divisor)]))) == fits


def test_small_multiples_of_long_integers_are_known_to_kernels():
    x = np.array([[3, -5, np.iinfo(np.int64).max], [0, 7, np.iinfo(np.int64).min]])
    for number in (2, 3, 7, 10, 11, -3, 0):
        np.testing.assert_array_equal(computed(lambda x, n=number: x * n + 1, x), x * number + 1)
        np.testing.assert_array_equal(computed(lambda x, n=number: n * x + 1, x), x * number + 1)
    assert "mul_by" in names(*decompose([TABLE["mul"](node(x), 3)]))
    assert "mul_by" not in names(*decompose([TABLE["mul"](node(x), 11)]))
    assert "mul_by" not in names(*decompose([TABLE["mul"](node(x.astype(np.int32)), 3)]))


@pytest.mark.parametrize("index", [np.s_[1:3, 2:5], np.s_[::2, 1::3], np.s_[:, 29], np.s_[4], np.s_[::-1, 4:9]])
def test_slices_that_are_set(index):
    x = floats(7, 30)
    y, want = floats(*x[index].shape), x.copy()
    want[index] = y
    np.testing.assert_array_equal(computed(lambda x, y: x.at[index].set(y), x, y), want)
    np.testing.assert_allclose(computed(lambda x, y: x.at[index].set(y) * 2 + 1, x, y), want * 2 + 1, rtol=1e-6)
    found = decompose([TABLE["setitem"](node(x), index, node(y))])
    assert "placed" in names(*found)
    assert "where" not in names(*found)
    many = floats(2, 7, 30)  # one value for several tensors: it is in the last axes that it is placed
    all_of = np.stack([np.where(want == x, each, want) for each in many])
    found = ek.vmap(lambda each: each.at[index].set(y))(ek.tensor(many))
    np.testing.assert_array_equal(found.numpy(), all_of)
    assert "placed" in names(*decompose([ek.vmap(lambda each: each.at[index].set(y))(ek.tensor(many))._node]))


@few
@given(st.integers(1, 3), st.integers(1, 2), st.booleans(), st.booleans(), st.booleans())
def test_the_greatest_of_windows(kernel, stride, padded, ceil, special):
    x = floats(2, 3, 9, 8)
    if special:
        x[0, 0, :5] = -np.inf
        x[1, 1, 2, 2] = np.nan
    how = {"stride": stride, "padding": kernel // 2 if padded else 0, "ceil_mode": ceil}
    found = computed(lambda x: ek.max_pool2d(x, kernel, **how), x)
    want, places = ek.max_pool2d(ek.tensor(x), kernel, return_indices=True, **how)
    np.testing.assert_array_equal(found, want.numpy())
    planes, flat = x.reshape(2, 3, -1), places.numpy().reshape(2, 3, -1)
    np.testing.assert_array_equal(found, np.take_along_axis(planes, flat, 2).reshape(found.shape))
    by_value = greatest_of_windows([TABLE["max_pool2d"](node(x), kernel, **how)], CORES)
    assert "window_argmax" not in names(*by_value)
    both = greatest_of_windows(list(TABLE["max_pool2d"](node(x), kernel, return_indices=True, **how)), CORES)
    assert "window_argmax" in names(*both)


def test_softmax_of_short_rows_is_taken_side_by_side():
    """Where there are many, and a vector's loop over a row would leave most of it over."""
    for shape, axis, dtype, beside in (
        ((3000, 10), -1, np.float32, True), ((50, 60, 7), 2, np.float32, True), ((9000, 2), 1, np.float64, True),
        ((3000, 9), -1, np.float64, True), ((3000, 12), -1, np.float32, False), ((3000, 10), -1, np.float64, False),
        ((300, 10), -1, np.float32, False), ((10, 3000), 0, np.float32, False), ((1000, 17), -1, np.float32, False),
    ):  # fmt: skip
        x = 3 * RNG.standard_normal(shape).astype(dtype)
        x[0], x[1, ..., 0], x[2, ..., 1] = 1e30, np.inf, -np.inf
        steps = ek.jit(lambda x, a=axis: ek.softmax(x, a)).plan(ek.tensor(x)).steps
        assert (len(steps) == 1 and bool(steps[0].kernel.scratch)) is beside
        with np.errstate(invalid="ignore"):
            e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True).astype(np.float64))
        want = e / e.sum(axis, keepdims=True)
        rtol = 1e-5 if dtype is np.float32 else 1e-13
        np.testing.assert_allclose(computed(lambda x, a=axis: ek.softmax(x, a), x), want, rtol=rtol)
        seed = RNG.standard_normal(shape).astype(dtype)
        x = RNG.standard_normal(shape).astype(dtype)
        found = computed(lambda x, s, a=axis: ek.grad(lambda x: (ek.softmax(x, a) * s).sum())(x), x, seed)
        y = np.exp(x.astype(np.float64))
        y /= y.sum(axis, keepdims=True)
        slope = y * (seed - (y * seed).sum(axis, keepdims=True))
        np.testing.assert_allclose(found, slope, rtol=rtol, atol=10 * rtol)


@pytest.mark.parametrize(("rows", "length"), [(2000, 3), (1999, 5)])
def test_short_rows_with_numbers_of_their_own(rows, length):
    """One for each row, one for each place, and several results, of rows and of elements."""
    x, of_row, of_place = floats(rows, length), floats(rows), floats(length)
    x[7, 1], x[8, 0] = np.nan, -np.inf

    def both(lib, x, of_row, of_place):
        powers = lib.exp(x * of_place + of_row[:, None])
        total = powers.sum(-1)
        return powers / total[:, None], total + of_row, powers.max(axis=-1)

    with np.errstate(invalid="ignore"):
        want = both(np, *(array.astype(np.float64) for array in (x, of_row, of_place)))
    function = ek.jit(lambda *given: both(ek, *given))
    for found, wanted in zip(function(*map(ek.tensor, (x, of_row, of_place))), want, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    assert function.plan(*map(ek.tensor, (x, of_row, of_place))).steps[0].kernel.scratch
    halves = ek.tensor(x).to(ek.bfloat16)
    found = ek.jit(lambda x: ek.softmax(x, -1))(halves[10:]).to(ek.float32).numpy()
    powers = np.exp(halves[10:].to(ek.float32).numpy())
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_of_extremes_in_long_rows(dtype):
    """The first of equal ones, and the first NaN before all numbers, wherever vectors and glances begin and end."""
    for length in (256, 257, 271, 384, 399, 1000, 2**18 + 5):
        x = RNG.integers(-3, 4, (8, length)).astype(dtype)  # with equal elements
        x[1] = RNG.standard_normal(length)
        x[2] = -np.inf
        x[3] = RNG.choice([0.0, -0.0], length)
        for row, places in ((4, (length - 1,)), (5, (130, 131, length - 3)), (6, (0,)), (7, range(length))):
            x[row, list(places)] = RNG.choice([np.nan, -np.nan], len(places))
        x[4, 3] = np.inf
        for name in ("argmax", "argmin"):
            for sign in (1, -1):
                want = getattr(np, name)(sign * x, 1)
                np.testing.assert_array_equal(computed(lambda x, n=name: getattr(ek, n)(x, 1), sign * x), want)
    for place in range(1, 300, 7):
        one = np.zeros(300, dtype)
        one[place], one[place // 2] = 1, -1
        assert computed(lambda x: ek.argmax(x), one) == place
        assert computed(lambda x: ek.argmin(x), one) == place // 2


def test_windows_that_share_elements_are_looked_at_axis_by_axis():
    """As many slices as the window has places along each axis; windows apart, and machines of blocks, take them all."""
    for kernel, how, cores, blocks in (
        (3, {"stride": 2}, 6, 9), ((3, 2), {"stride": 1, "padding": 1}, 5, 6), (2, {}, 4, 4),
        (5, {"stride": 1, "padding": 2}, 10, None), ((1, 3), {"stride": 1}, 3, 3),
        (3, {"stride": 1, "dilation": 2, "ceil_mode": True}, 6, 9),
    ):  # fmt: skip
        x = floats(2, 3, 11, 9)
        for machine, slices in ((CORES, cores), (BLOCKS, blocks)):
            found = names(*greatest_of_windows([TABLE["max_pool2d"](node(x), kernel, **how)], machine))
            assert ("window_argmax" in found) is (slices is None)
            assert slices is None or found.count("slice") == slices
        want, _ = ek.max_pool2d(ek.tensor(x), kernel, return_indices=True, **how)
        np.testing.assert_array_equal(computed(lambda x, k=kernel, h=how: ek.max_pool2d(x, k, **h), x), want.numpy())


def test_numbers_for_the_greatest_of_windows():
    """The derivative of max-pooling on machines of blocks: where few windows share an element, nothing is scattered."""
    for shape, kernel, how, pulled in (
        ((2, 3, 8, 6), 2, {}, True), ((2, 9, 7), (2, 3), {}, True), ((3, 5, 5), 5, {}, True),
        ((2, 3, 8, 6), 2, {"stride": 1}, True), ((2, 3, 8, 6), 2, {"padding": 1}, True),
        ((2, 9, 7), 2, {"ceil_mode": True}, True), ((2, 3, 9, 8), 3, {"stride": 2, "padding": 1}, True),
        ((1, 2, 11, 10), (3, 2), {"stride": (2, 1), "padding": (1, 0), "ceil_mode": True}, True),
        ((1, 1, 11, 8), 2, {"stride": 3}, True), ((1, 9, 9), 4, {"stride": 1, "padding": 2}, True),
        ((1, 9, 9), 5, {"stride": 1}, False), ((1, 9, 9), 2, {"dilation": 2}, False),
    ):  # fmt: skip
        x = RNG.integers(0, 4, shape).astype(np.float32)  # with equal elements

        def slope(x, kernel=kernel, how=how):
            return ek.grad(lambda x: (ek.max_pool2d(x, kernel, **how) ** 2).sum())(x)

        traced = ek.jit(slope).traced(ek.tensor(x)).compiled
        assert ("scatter_into" in names(*greatest_of_windows(traced.results, BLOCKS))) is not pulled
        want = ek.jit(slope)(ek.tensor(x)).numpy()
        with ek.device("blocks"):
            np.testing.assert_array_equal(ek.jit(slope)(ek.tensor(x)).numpy(), want)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_extremes_up_to_each_without_their_places(dtype):
    x = RNG.integers(0, 9, (3, 20)).astype(dtype)
    if dtype is np.float32:
        x[1, 7] = np.nan
    for name, plain in (("cummax", np.maximum), ("cummin", np.minimum)):
        found = computed(lambda x, name=name: getattr(ek, name)(x, 1)[0], x)
        np.testing.assert_array_equal(found, plain.accumulate(x, 1))
        values, places = TABLE[name](node(x), 1)
        assert f"{name}_value" in names(*greatest_of_windows([values], CORES))
        assert f"{name}_value" not in names(*greatest_of_windows([values, places], CORES))


@few
@given(st.integers(1, 4), st.integers(1, 40))
def test_single_elements_joined(number, n):
    arrays = [floats(n) for _ in range(number)]
    np.testing.assert_array_equal(computed(lambda *x: ek.stack(x, -1), *arrays), np.stack(arrays, -1))


@few
@given(st.integers(0, 70), st.sampled_from(["left", "right"]))
def test_searches_in_steps(n, side):
    boundaries = np.sort(RNG.integers(0, 20, n)).astype(np.float32)
    if n > 3:
        boundaries[-1] = np.nan
    values = np.array([*RNG.integers(-2, 22, 30), np.nan, np.inf, -np.inf], np.float32)
    found = computed(lambda b, v: ek.searchsorted(b, v, side=side), boundaries, values)
    np.testing.assert_array_equal(found, np.searchsorted(boundaries, values, side))
