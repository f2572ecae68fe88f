"""Calls that were learnt give the nodes that the general way gives, and what is at hand is read as it is computed."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from op_harness import arguments, arrays_in, cases, flat, refilled, rng_of, rows

import eshkol as ek
from eshkol.errors import DerivativeError, IndexOutOfRange, TensorError
from eshkol.graph import node as graph
from eshkol.ops import TABLE, dtypes
from eshkol.runtime import front
from eshkol.schedule.run import execute
from eshkol.tensors import learning, value
from eshkol.tensors.arrays import array_of, of_numbers
from eshkol.tensors.tape import TAPE
from references import moved


@pytest.fixture(autouse=True)
def on_the_reference_backend():
    """In place of the folder's own: what is fast is so on the CPU."""
    with ek.device("cpu"):
        yield


def general(op, args, given):
    """What the way gives that takes everything."""
    return value.operate_at(op, args, given, graph.user_site())


def alike(one, other, seen):
    """Whether two nodes say the same: mostly they are the same, but for arrays that every call makes anew."""
    if one is other or (one, other) in seen:
        return True
    seen.add((one, other))
    facts = [(n.op, n.shape, n.dtype, n.outs, n.scopes, n.device, n.depth, len(n.inputs)) for n in (one, other)]
    if facts[0] != facts[1]:
        return False
    if one.op is TABLE["buffer"]:
        return one.data.tobytes() == other.data.tobytes()
    return one.attrs == other.attrs and all(alike(x, y, seen) for x, y in zip(one.inputs, other.inputs, strict=True))


def same(found, wanted):
    assert type(found) is type(wanted)
    for x, y in zip(flat(found), flat(wanted), strict=True):
        if x._node.op is y._node.op:
            assert alike(x._node, y._node, set())
        else:  # the nodes of the first were found again by the second, and computed, as an earlier statement's
            np.testing.assert_array_equal(x.detach().numpy(), y.detach().numpy())
        assert (x._window is None) == (y._window is None)
        assert x._pair is y._pair


def tensors_of(op, sample, dtype, *salt, requires=False):
    args = arguments(sample, dtype, rng_of(op.name, dtype.name, *salt))
    made = [ek.Tensor(graph.buffer(a, dtypes.of(a.dtype))) for a in arrays_in(args)]
    if requires:
        made = [x.requires_grad_() if x.dtype.differentiable else x for x in made]
    return tuple(refilled(args, made))


def test_what_was_learnt_is_what_the_general_way_gives():
    """For every sample of every row: learnt from one call, carried out for other values, and for a history."""
    learnt = set()
    for op in rows():
        for number, sample, dtype in cases(op, ("float",) if "float" in op.dtypes else op.dtypes):
            if dtype not in (dtypes.bool_, dtypes.int64, dtypes.float32):
                continue
            try:
                general(op, tensors_of(op, sample, dtype, number), sample.attrs)
            except (TensorError, TypeError):
                continue
            for k in range(3):
                args = tensors_of(op, sample, dtype, number, k, requires=k == 2)
                try:
                    wanted = general(op, args, sample.attrs)
                except TensorError as error:
                    with pytest.raises(type(error)):
                        value.operate(op, args, sample.attrs)
                    continue
                found = front.again(op, args, sample.attrs)
                if found is not NotImplemented:
                    learnt.add(op.name)
                    same(found, wanted)
    assert len(learnt) > 280
    assert {"getitem", "reshape", "sum", "softmax", "linear", "cross_entropy", "take", "stack", "zeros"} <= learnt
    assert {"normal", "randperm"} <= learnt


def often(call, *args, **given):
    """The results of a call that is met, learnt and carried out."""
    return [call(*args, **given) for _ in range(4)]


def test_an_input_is_not_taken_for_what_the_call_computes():
    """`lerp(x, y, w)` computes y - x, which is w itself here, and is not elsewhere."""
    x, y, w = (ek.tensor(np.array([a, b], np.float32)) for a, b in ((1, 2), (5, 7), (0.5, 0.25)))
    often(ek.lerp, x, y, y - x)
    np.testing.assert_array_equal(ek.lerp(x, y, w).numpy(), [3.0, 3.25])
    often(ek.lerp, x, x, x)
    np.testing.assert_array_equal(ek.lerp(x, y, w).numpy(), [3.0, 3.25])


def test_arguments_that_are_equal_are_not_the_same():
    x = ek.tensor([[1.5, -2.0], [0.25, 4.0]])
    assert {t.dtype for t in often(ek.full, (2,), 1)} == {ek.int64}
    assert {t.dtype for t in often(ek.full, (2,), 1.0)} == {ek.float32}
    assert {t.dtype for t in often(ek.full, (2,), True)} == {ek.bool}
    signs = [[np.signbit(t.numpy()[0]) for t in often(ek.full, (2,), zero)] for zero in (0.0, -0.0)]
    assert signs == [[False] * 4, [True] * 4]
    assert [t.shape for t in often(lambda: x[0:1])] == [(1, 2)] * 4
    assert [t.shape for t in often(lambda: x[0])] == [(2,)] * 4
    assert [t.shape for t in often(lambda: x[[0, 1]])] == [(2, 2)] * 4
    assert [t.tolist() for t in often(lambda: x[[True, False]])] == [[[1.5, -2.0]]] * 4


def test_the_default_dtype_is_asked_for_again():
    assert {t.dtype for t in often(ek.linspace, 0.0, 1.0, 3)} == {ek.float32}
    with ek.default_dtype("float64"):
        assert {t.dtype for t in often(ek.linspace, 0.0, 1.0, 3)} == {ek.float64}
    assert {t.dtype for t in often(ek.linspace, 0.0, 1.0, 3)} == {ek.float32}


def test_the_default_device_is_asked_for_again():
    assert {t.device for t in often(ek.zeros, (2, 7))} == {"cpu"}
    with ek.device("discrete"):
        assert {t.device for t in often(ek.zeros, (2, 7))} == {"discrete"}
        assert {t.sum().item() for t in often(ek.zeros, (2, 7))} == {0.0}


def test_values_are_refused_as_ever():
    scores = ek.zeros((2, 3)).realize()
    for target in ([0, 1], [2, 2], [1, 0], [0, 2]):
        assert ek.cross_entropy(scores, ek.tensor(target)).item() == pytest.approx(np.log(3), rel=1e-6)
    with pytest.raises(IndexOutOfRange, match="a target is class 3, and there are 3 classes") as caught:
        ek.cross_entropy(scores, ek.tensor([0, 3]))
    assert "ek.cross_entropy(scores" in caught.value.span.text
    x = ek.tensor([1.0, 2.0, 3.0])
    for place in (0, 1, 2):
        assert ek.take(x, ek.tensor([place])).item() == place + 1
    with pytest.raises(IndexOutOfRange, match="index 3 is out of range") as caught:
        ek.take(x, ek.tensor([3]))
    assert "ek.take(x" in caught.value.span.text
    late = ek.tensor([1]) + ek.tensor([4])  # which is not computed yet
    with pytest.raises(IndexOutOfRange) as caught:
        ek.take(x, late)
    assert "ek.take(x, late)" in caught.value.span.text


def test_histories_transformations_and_lines():
    w = ek.tensor([1.0, 2.0]).requires_grad_()
    for _ in range(4):
        made = ek.softmax(w, -1)
        assert made.requires_grad
        assert made._node.site[0].co_name == "test_histories_transformations_and_lines"
        with ek.no_grad():
            assert not ek.softmax(w, -1).requires_grad
    x = ek.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    wanted = ek.softmax(x, -1).numpy()
    for _ in range(3):
        np.testing.assert_allclose(ek.vmap(lambda row: ek.softmax(row, -1))(x).numpy(), wanted, rtol=1e-6)
        np.testing.assert_allclose(ek.jit(lambda m: ek.softmax(m, -1))(x).numpy(), wanted, rtol=1e-6)
        slope = ek.grad(lambda m: (ek.softmax(m, -1) * x).sum())(x)
        centre = (wanted * x.numpy()).sum(1, keepdims=True)
        np.testing.assert_allclose(slope.numpy(), wanted * (x.numpy() - centre), rtol=1e-5, atol=1e-6)


def test_windows_are_remembered():
    x = ek.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).realize()
    for _ in range(4):
        for part in (x.T, x.reshape(3, 2), x[0], x[0:1], x[:, 1], x.detach(), x.T[0], x[0][1:]):
            with pytest.raises(TensorError, match="in place would change"):
                part.add_(1)
        with pytest.raises(TensorError, match="gives the values alone"):
            _, _ = x.max(axis=1)
        x[[0, 1]].add_(1)  # which others copy, too
        x.clone().add_(1)
    x[0] += 1
    assert x.tolist() == [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]


def test_threads_learn_and_carry_out_together():
    x = ek.tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(150):
            axis, width = int(rng.integers(2)), int(rng.integers(1, 4))
            found = ek.cumsum(x[:width] * 2.0, axis=axis).numpy()
            if not np.array_equal(found, np.cumsum(x.numpy()[:width] * 2, axis=axis)):
                wrong.append((axis, width))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- what is read --------------------------------------------------------------------------------

EXTENTS = st.integers(-6, 6)
PARTS = st.one_of(
    EXTENTS, st.none(), st.just(...), st.builds(slice, st.none() | EXTENTS, st.none() | EXTENTS),
    st.builds(slice, st.none() | EXTENTS, st.none() | EXTENTS, st.sampled_from([None, 1, 2, -1, -3])),
)  # fmt: skip
INDEXES = st.one_of(PARTS, st.lists(PARTS, max_size=4).map(tuple))


@given(INDEXES, st.sampled_from([(), (3,), (4, 5), (2, 0, 3)]))
def test_parts_at_hand_are_what_the_general_way_gives(index, shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    x = ek.Tensor(graph.buffer(array, dtypes.float32))
    found = front.part(x, index)
    try:
        wanted = general(TABLE["getitem"], (x, value.indices(index)), {})
    except Exception:
        assert found is NotImplemented
        return
    if found is not NotImplemented:
        assert found._node.data.tobytes() == wanted.numpy().tobytes()
        assert (found.shape, found.dtype, found.device) == (wanted.shape, wanted.dtype, wanted.device)
        assert not np.shares_memory(found._node.data, array)
        assert found._node.data.flags.c_contiguous


def test_arrays_are_given_out_read_only():
    x = ek.tensor([1.0, 2.0])
    for read in (lambda: (x + x).numpy(), lambda: np.asarray(x + x), x.numpy, lambda: np.asarray(x)):
        for _ in range(3):
            array = read()
            assert not array.flags.writeable
            assert array.dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x).flags.writeable
    assert not hasattr(x, "__array_interface__")
    assert not hasattr(x, "__array_struct__")
    with pytest.raises(AttributeError, match="did you mean 'reshape'"):
        _ = x.reshap


def test_numbers_are_read_as_they_are():
    for number in (3, 2.5, True, -0.0, float("nan"), 1 + 2j):
        found = ek.tensor(number).item()
        assert type(found) is type(number)
        assert repr(found) == repr(number)
    assert float(ek.tensor([[7]])) == 7.0
    assert bool(ek.tensor([0.0])) is False
    assert type(ek.tensor(1.5).to(ek.bfloat16).item()) is float
    with pytest.raises(ek.errors.ShapeError, match="item"):
        ek.tensor([1.0, 2.0]).item()
    with pytest.raises(ek.errors.ShapeError, match="ambiguous"):
        bool(ek.tensor([1.0, 2.0]))
    w = ek.tensor([1.0]).requires_grad_()
    assert w.item() == 1.0
    with pytest.raises(ek.errors.TraceError, match="lose its derivative"):
        w.numpy()
    with pytest.raises(ek.errors.TraceError, match="not known inside"):
        ek.jit(lambda x: x.item())(ek.ones(()))


NUMBERS = st.one_of(st.booleans(), st.integers(-(2**70), 2**70), st.floats())


@given(
    st.recursive(NUMBERS, lambda x: st.lists(x, max_size=3), max_leaves=6),
    st.sampled_from([None, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32]),
)
def test_tensors_of_numbers_are_what_the_general_way_makes(data, dtype):
    found = of_numbers(data, dtype)
    if found is not None:
        wanted = array_of(data, dtype)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        assert found.tobytes() == wanted.tobytes()


def test_a_clone_is_a_value_of_its_own():
    x = ek.tensor([1.0, 2.0]).realize()
    for _ in range(3):
        y = x.clone()
        y += 1
        assert x.tolist() == [1.0, 2.0]
        assert y.tolist() == [2.0, 3.0]
    before, donated = x.clone(), ek.jit(lambda z: z + 1, donate=0)
    assert donated(x).tolist() == [2.0, 3.0]
    assert before.tolist() == [1.0, 2.0]
    w = ek.tensor([1.0]).requires_grad_()
    held = w.detach().clone()
    (w.clone() * 3).sum().backward()
    assert w.grad.tolist() == [3.0]
    ek.optim.SGD([w], lr=1.0).step()
    assert (w.item(), held.item()) == (-2.0, 1.0)
    with pytest.raises(DerivativeError):
        w.add_(1)


@pytest.mark.unchecked
def test_nothing_is_lost():
    """References to what lives for ever do not grow with what was read, learnt and stepped."""
    x, m = ek.ones((4,)).realize(), ek.ones((3, 4)).realize()
    scores, target = ek.zeros((2, 3)).realize(), ek.tensor([0, 1])
    weights = [ek.ones((4,)).requires_grad_() for _ in range(3)]
    adam = ek.optim.Adam(weights, lr=1e-3)

    def work():
        (x + x).numpy()
        np.asarray(x * 2.0)
        assert (x[1].item(), m[1, 2].item(), float(x[-1])) == (1.0, 1.0, 1.0)
        m[1:, ::2].tolist()
        m[m > 0].numpy()
        m[[0, 1]].numpy()
        m.reshape(4, 3).T.numpy()
        ek.softmax(m, -1).numpy()
        ek.split(m, 2, axis=1)[0].numpy()
        m.max(axis=1)
        bool((x > 0).any())
        ek.cross_entropy(scores, target).item()
        m @ x
        x.detach().clone()
        for weight in weights:
            weight.grad = x.detach()
        adam.step()
        with pytest.raises(IndexOutOfRange):
            ek.take(x, ek.tensor([9]))
        with pytest.raises(ek.errors.ShapeError):
            ek.softmax(m, -1) + ek.ones((7,))
        with pytest.raises(IndexOutOfRange):
            x[17]
        with pytest.raises(ek.errors.ShapeError):
            x.item()

    lasting = [None, NotImplemented, True, False, ..., dtypes.float32, TABLE["add"], TABLE["reshape"], TABLE["getitem"],
               TABLE["softmax"], TABLE["buffer"], graph.Node, ek.Tensor, graph.HOST, x._node, x._node.shape,
               x._node.data, m._node, m._node.data, target._node, graph.NO_SCOPES, execute, learning, TAPE]  # fmt: skip
    assert not moved(work, lasting)
