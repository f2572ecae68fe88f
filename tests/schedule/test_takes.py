"""Elements taken and scattered by kernels: rows of all lengths and dtypes, with their neighbours; errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan import CPU, check, floats, function_of

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.errors import IndexOutOfRange
from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.ops.indexing import Axis
from eshkol.ops.row import Aval
from eshkol.runtime.scheduler import default_scheduler
from eshkol.schedule.kernels import takes
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import Launch, walk
from eshkol.schedule.run.native import NativePlan
from eshkol.tensors.devices import open_backend

RNG = np.random.default_rng(3)


def launched(code, *arrays):
    plan = check(*function_of(code, *arrays))
    return [s.kernel.program.name for s in walk(plan.steps) if isinstance(s, Launch)]


def places(low, high, *shape):
    return RNG.integers(low, high, shape)


def test_rows_are_taken_with_what_follows():
    names = launched(lambda x, i, b: ek.tanh(ek.take(x, i) * 2 + b), floats(50, 24), places(-50, 50, 40), floats(24))
    assert len(names) == 2
    assert names[0] == "places"


def test_rows_are_taken_for_a_reduction_and_what_follows_it():
    names = launched(lambda x, i: ek.softmax(ek.take(x, i)), floats(50, 24), places(-50, 50, 40))
    assert len(names) == 2
    assert launched(lambda x, i: ek.take(x, i).sum(0), floats(50, 24), places(-50, 50, 40))  # in parts


def test_what_is_known_to_be_in_range_is_not_checked_again():
    def code(x, i):
        j = ek.argmax(i, 1)
        return ek.take(ek.take(x, j), j) * 2 + ek.take(x, j)

    assert launched(code, floats(50, 24), floats(50, 50)).count("places") == 1


def test_taken_elements_are_moved_on():
    launched(lambda x, i: ek.take(x, i).T + 1, floats(50, 24), places(-50, 50, 40))
    launched(lambda x, i: ek.take(x.T * 2, i).reshape(8, 100), floats(20, 50), places(-50, 50, 40))
    launched(lambda x, i, y: ek.take(x, i)[:, None] + y, floats(50, 24), places(-50, 50, 40), floats(40, 3, 24))


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_take_and_scatter_are_numpys(data):
    extents = st.integers(1, 5)
    batch, before = data.draw(st.lists(extents, max_size=1)), data.draw(st.lists(extents, max_size=1))
    behind = data.draw(st.sampled_from([[], [1], [7], [16], [48], [127], [128], [3, 40]]))
    rest, extent = data.draw(st.lists(extents, max_size=2)), data.draw(st.integers(1, 9))
    mode = data.draw(st.sampled_from(["set", "add", "max", "mul"]))
    x = floats(*batch, *before, extent, *behind)
    i = places(-extent, extent, *batch, *rest).astype(data.draw(st.sampled_from([np.int64, np.int32, np.int8])))
    whole = (*batch, *before, *rest, *behind)
    kept = data.draw(st.integers(0, len(whole)))
    updates = floats(*(n if data.draw(st.booleans()) else 1 for n in whole[len(whole) - kept :]))
    axis, size = len(batch) + len(before), len(batch)

    def code(x, i, u):
        taken = ek.take(x, i, axis=axis, batch=size)
        return taken * 0.5, ek.scatter(x * 2, i, u + 1, axis=axis, mode=mode, batch=size)

    check(*function_of(code, x, i, updates))


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if not d.is_complex], ids=str)
def test_all_dtypes(dtype):
    x = np.abs(floats(60, 33) * 4).astype(dtype.numpy)
    u, i = np.abs(floats(70, 33) * 4).astype(dtype.numpy), places(-60, 60, 70)
    function, arrays = function_of(lambda x, i, u: (ek.take(x, i), ek.scatter(x, i, u)), x, i, u)
    wanted = interpret.evaluate(function.results, dict(zip(function.params, arrays, strict=True)))
    got = NativePlan(compiled(function.results, function.params, CORES), open_backend(CPU)).run(arrays)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_what_meets_in_one_place_are_the_same_each_time():
    i, u = places(0, 3, 5000), floats(5000, 64)
    f = ek.jit(lambda u: ek.index_add(ek.zeros((3, 64)), 0, i, u))
    first = f(u).numpy()
    assert all((f(u).numpy() == first).all() for _ in range(5))
    np.testing.assert_allclose(first, [u[i == k].sum(0) for k in range(3)], rtol=1e-3, atol=1e-3)


def test_gradients_of_long_rows_are_added_without_a_check_before_each():
    def code(x, i, u):
        return ek.vjp(lambda x: ek.take(x, i), x)[1](u)

    for extent, number, row in ((50, 70, 24), (1, 9, 128), (300, 3, 33), (40, 0, 16), (50, 70, 3)):
        names = launched(code, floats(extent, row), places(-extent, extent, number), floats(number, row))
        assert ("scattered" in names) == (row >= 16 and number > 0)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if not d.is_complex], ids=str)
def test_zeros_of_all_dtypes(dtype):
    f, ones = ek.jit(lambda: ek.zeros((512, 600), dtype=dtype)), ek.jit(lambda: ek.ones((512, 600), dtype=dtype))
    assert [s.kernel.program.name for s in f.plan().steps] == ["zeros"]
    ones()  # its memory is used again
    found = f().numpy()
    assert found.dtype == dtype.numpy
    assert not found.any()


def test_negative_zeros_stay_negative():
    assert np.signbit(ek.jit(lambda: ek.full((3, 70), -0.0))().numpy()).all()


@pytest.mark.parametrize("number", [1, 70, 1024, 5000])
def test_a_position_out_of_range_is_found_wherever_it_stands(number):
    x = floats(9, 70)
    take, put = ek.jit(lambda x, i: ek.take(x, i) + 1), ek.jit(lambda x, i: ek.scatter(x, i, x[:1]))
    for wrong in (9, -10, 1 << 40, -(1 << 62)):
        for at in (0, number // 2, number - 1):
            i = places(-9, 9, number)
            i[at] = wrong
            with pytest.raises(IndexOutOfRange, match=r"take\(float32\[9, 70\], int64.*extent 9") as found:
                take(x, i)
            assert "ek.take(x, i) + 1" in str(found.value)
            with pytest.raises(IndexOutOfRange, match=r"scatter_into.*extent 9"):
                put(x, i)
    i = places(-9, 9, number)
    np.testing.assert_array_equal(take(x, i).numpy(), x[i] + 1)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64])
def test_a_take_of_single_elements_alone_is_one_loop(dtype):
    low = 0 if np.dtype(dtype).kind == "u" else -50
    i = places(low, 50, 2100).astype(dtype)
    assert launched(lambda x, i: ek.take(x, i), floats(50), i) == ["taken_alone"]
    assert launched(lambda x, i: ek.take(x, i), floats(50), abs(i).astype(dtype) % 50) == ["taken_alone"]
    own = i.reshape(30, 70)
    assert launched(lambda x, i: ek.gather(x, 1, i), floats(30, 50), own) == ["taken_alone"]
    assert "taken_alone" not in launched(lambda x, i: ek.take(x, i) * 2, floats(50), i)


def test_a_position_that_a_take_alone_finds_out_of_range_is_named():
    take = ek.jit(lambda x, i: ek.take(x, i))
    for wrong in (10, -11, 1 << 40, -(1 << 40)):
        i = places(-10, 10, 3000)
        i[2900] = wrong
        with pytest.raises(IndexOutOfRange, match=r"take\(float32\[10\], int64\[3000\]\): an index is out of range"):
            take(ek.tensor(floats(10)), ek.tensor(i))


@pytest.mark.parametrize(("number", "dtype"), [(1 << 14, np.float32), ((1 << 14) + 5, np.int8)])
def test_many_numbers_for_few_places_are_added_in_parts(number, dtype):
    x = RNG.integers(-9, 9, 40).astype(dtype)
    u = RNG.integers(-9, 9, number).astype(dtype)
    i = places(-40, 40, number)
    names = launched(lambda x, i, u: ek.scatter(x, i, u, mode="add"), x, i, u)
    assert "tallied" in names
    assert "tallied" in launched(lambda x, i, u: ek.scatter(x, i, u[:1], mode="add"), x, i, u)
    assert "tallied" not in launched(lambda x, i, u: ek.scatter(x, i, u, mode="max"), x, i, u)


def test_what_nothing_is_added_to_stays_as_it_is():
    x, i = np.full(40, -0.0, np.float32), places(0, 20, 1 << 14)
    found = ek.scatter_add(ek.tensor(x), 0, ek.tensor(i), ek.tensor(floats(1 << 14))).numpy()
    assert np.signbit(found[20:]).all()


def test_sums_of_parts_do_not_depend_on_threads():
    scheduler = default_scheduler()
    x, i, u = (ek.tensor(y) for y in (floats(40), places(0, 40, 50_003), floats(50_003)))
    before, found = scheduler.workers, []
    try:
        for workers in (1, 3):
            scheduler.resize(workers)
            found.append(ek.scatter_add(x, 0, i, u).numpy().tobytes())
    finally:
        scheduler.resize(before)
    assert found[0] == found[1]


def test_a_position_that_parts_find_out_of_range_is_named():
    i = places(0, 40, 1 << 14)
    i[77] = -1
    with pytest.raises(IndexOutOfRange, match=r"position\(int64\[16384\]\): an index is out of range") as caught:
        ek.jit(lambda i: ek.bincount(i, length=40))(ek.tensor(i))
    assert caught.value.hint == "class labels and indices are 0 to 39"
    i[77] = -41
    with pytest.raises(
        IndexOutOfRange, match=r"scatter_into\(float32\[40\], int64\[16384\], float32\[16384\]\): an index"
    ):
        ek.jit(lambda x, i, u: ek.scatter_add(x, 0, i, u))(*(ek.tensor(y) for y in (floats(40), i, floats(1 << 14))))


@pytest.mark.parametrize(("row", "wanted"), [(64, 1), (128, 2), (768, 12)])
def test_rows_are_cut_for_cores_to_share(row, wanted):
    code = function_of(
        lambda x, i, u: ek.scatter(x, i, u, mode="add"), floats(50, row), places(0, 50, 40), floats(40, row)
    )
    lanes = [
        s.kernel.lanes for s in walk(check(*code).steps) if isinstance(s, Launch) and "scatter" in s.kernel.program.name
    ]
    assert lanes == [wanted]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(2, 9), min_size=2, max_size=4), st.sampled_from([1, 63, 64, 70, 1500]),
    st.sampled_from(["int64", "int32", "uint8"]), st.booleans(), st.integers(0, 999),
)  # fmt: skip
def test_indices_of_several_axes(shape, number, dtype, negative, seed):
    """Alone, followed by arithmetic, and their gradient; one that is out of range is an error in each."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    least = -1 if negative and dtype != "uint8" else 0
    indices = [rng.integers(least * n, n, number).astype(dtype) for n in shape]
    want = x[tuple(i.astype(np.int64) for i in indices)]
    gradient = np.zeros_like(x)
    np.add.at(gradient, tuple(i.astype(np.int64) for i in indices), 2 * want)
    ways = (lambda x, *i: x[i]), (lambda x, *i: x[i] * 2 + 1), ek.grad(lambda x, *i: (x[i] ** 2).sum())
    wrong = [i.copy() for i in indices]
    wrong[seed % len(shape)][number // 2] = shape[seed % len(shape)]
    for way, found in zip(ways, (want, want * 2 + 1, gradient), strict=True):
        np.testing.assert_allclose(ek.jit(way)(x, *indices).numpy(), found, rtol=1e-5, atol=1e-6)
        with pytest.raises(IndexOutOfRange):
            ek.jit(way)(x, *wrong).numpy()


def test_places_are_as_wide_as_the_greatest_asks_for():
    widest, wider = takes.Places((Axis(1 << 32),), "take"), takes.Places((Axis(1 << 32), Axis(2, 1 << 32)), "take")
    assert takes.PLACES.infer(widest, Aval((3,), dtypes.int64)) == Aval((3,), dtypes.uint32)
    assert takes.PLACES.infer(wider, Aval((3,), dtypes.int64)).dtype is dtypes.uint64
