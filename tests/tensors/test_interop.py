"""Tensors beside other libraries' arrays: `__array__`, NumPy's functions, memory that is shared, DLPack."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import DTypeError, ShapeError, TensorError, TraceError
from eshkol.ops import TABLE, dtypes
from eshkol.tensors.interop import RENAMED


def address(array):
    return array.__array_interface__["data"][0]


# --- as an array ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_an_array_of_a_tensor_has_its_dtype_and_values(dtype):
    x = ek.tensor([[1, 0], [1, 1]], dtype=dtype)
    for array in (np.asarray(x), x.numpy(), x.__array__()):
        assert array.dtype == dtype.numpy
        assert array.tolist() == [[1, 0], [1, 1]]


def test_asarray_shares_memory_and_array_copies():
    x = ek.tensor([1.0, 2.0])
    assert address(np.asarray(x)) == address(x.numpy())
    assert address(np.array(x)) != address(x.numpy())
    assert address(np.array(x, copy=None)) == address(x.numpy())
    assert address(np.asarray(x, copy=True)) != address(x.numpy())
    assert address(np.asarray(x, copy=False)) == address(x.numpy())


def test_asarray_converts_to_a_dtype_and_refuses_to_without_a_copy():
    x = ek.tensor([1.5, 2.0])
    assert np.asarray(x, dtype=np.float64).tolist() == [1.5, 2.0]
    assert np.asarray(x, dtype="int32").tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_a_shared_array_cannot_be_written_to_and_a_copy_can():
    x = ek.tensor([1.0, 2.0])
    for array in (x.numpy(), np.asarray(x)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
    copied = np.array(x)
    copied[0] = 5
    assert x.tolist() == [1.0, 2.0]


def test_an_array_given_out_keeps_its_values_when_the_tensor_changes():
    x = ek.tensor([1.0, 2.0])
    array = x.numpy()
    x += 1
    assert array.tolist() == [1.0, 2.0]
    assert x.tolist() == [2.0, 3.0]


def test_tensors_that_require_grad_are_not_given_out():
    w = ek.tensor([1.0], requires_grad=True)
    for leave in (np.asarray, lambda x: x.numpy(), lambda x: (x * 2).numpy(), np.from_dlpack):
        with pytest.raises(TraceError, match="detach"):
            leave(w)
    assert w.detach().numpy().tolist() == [1.0]
    assert (w > 0).numpy().tolist() == [True]


def test_nested_lists_of_tensors_become_arrays():
    assert np.array([ek.tensor([1.0, 2.0]), ek.tensor([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]
    assert np.array([ek.tensor(1.0), 2.0]).tolist() == [1.0, 2.0]


# --- NumPy's functions ----------------------------------------------------------------------------

UFUNCS = {name: f for name in dir(np) if isinstance(f := getattr(np, name), np.ufunc) and f.nout == 1}
OURS = {n: f for n, f in UFUNCS.items() if RENAMED.get(f.__name__, f.__name__) in TABLE}


def test_most_ufuncs_are_ops():
    for name in ("sin", "exp", "add", "subtract", "multiply", "divide", "maximum", "arctan2", "less", "logical_and",
                 "sqrt", "floor", "negative", "absolute", "power", "bitwise_and", "invert", "left_shift"):  # fmt: skip
        assert name in OURS


@pytest.mark.parametrize("name", OURS)
def test_a_ufunc_on_tensors_is_the_op(name):
    ufunc = OURS[name]
    if ufunc.signature:
        arrays = [np.arange(1.0, 5.0).reshape(2, 2)] * ufunc.nin
        if ufunc.signature == "(n),(n)->()":
            arrays = [np.array([1.0, 2.0])] * 2
        elif ufunc.nin == 2 and ufunc.signature != "(n?,k),(k,m?)->(n?,m?)":
            arrays = (
                [arrays[0], np.array([1.0, 2.0])]
                if ufunc.signature == "(m,n),(n)->(m)"
                else [np.array([1.0, 2.0]), arrays[0]]
            )
    elif "dd->d" in ufunc.types or "d->d" in ufunc.types or "dd->?" in ufunc.types or "d->?" in ufunc.types:
        arrays = [np.array([0.25, 0.5, 0.75]), np.array([0.5, 0.5, 2.0])][: ufunc.nin]
        if name in ("arccosh", "acosh"):
            arrays = [np.array([1.5, 2.0, 3.0])]
        if name == "ldexp":
            arrays[1] = np.array([1, 2, 3])
    else:
        arrays = [np.array([6, 5, 3]), np.array([1, 2, 3])][: ufunc.nin]
    wanted = ufunc(*arrays)
    tensors = [ek.tensor(a) for a in arrays]
    calls = [ufunc(*tensors)]
    if ufunc.nin == 2:
        calls += [ufunc(tensors[0], arrays[1]), ufunc(arrays[0], tensors[1])]
    for got in calls:
        assert isinstance(got, ek.Tensor)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12)


def test_ufuncs_have_derivatives():
    x = ek.tensor(0.5, dtype="float64")
    assert abs(ek.grad(lambda x: np.sin(x) * 2)(x).item() - 2 * np.cos(0.5)) < 1e-12
    assert abs(ek.vmap(ek.grad(np.exp))(ek.tensor([0.5], dtype="float64"))[0].item() - np.exp(0.5)) < 1e-12


def test_out_is_a_tensor_that_is_changed_in_place():
    x, target = ek.tensor([1.0, 2.0]), ek.zeros(2)
    result = np.add(x, 1.0, out=target)
    assert result is target
    assert target.tolist() == [2.0, 3.0]
    with pytest.raises(TensorError, match="ndarray"):
        np.add(x, 1.0, out=np.zeros(2, np.float32))
    with pytest.raises(ShapeError):
        np.add(x, 1.0, out=ek.zeros(3))
    with pytest.raises(DTypeError):
        np.add(x, 1.0, out=ek.zeros(2, dtype="int64"))
    array = np.zeros(2, np.float32)
    with pytest.raises(TensorError):
        array += x


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add.reduce(x), lambda x: np.add.accumulate(x), lambda x: np.add.outer(x, x),
        lambda x: np.add.at(x, [0], 1.0), lambda x: np.frexp(x), lambda x: np.add(x, 1.0, where=np.array([True])),
        lambda x: np.add(x, 1.0, dtype=np.float64), lambda x: np.multiply.reduceat(x, [0]),
    ],
)  # fmt: skip
def test_what_ufuncs_do_otherwise_is_refused_with_the_call_named(call):
    with pytest.raises(TensorError, match=r"np\.\w+"):
        call(ek.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin"]
)
def test_reductions_of_numpy_on_tensors_are_ops(name):
    array = np.array([[1.0, 5.0, 2.0], [0.5, 0.0, 7.0]])
    function, x = getattr(np, name), ek.tensor(array)
    for given in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
        found = function(x, **given)
        assert isinstance(found, ek.Tensor)
        np.testing.assert_allclose(found.numpy(), function(array, **given))
    assert ek.grad(lambda x: np.sum(x * x))(ek.tensor(3.0)).item() == 6.0
    assert np.where(x > 1, x, 0.0).tolist() == np.where(array > 1, array, 0.0).tolist()


def test_other_functions_of_numpy_work_on_the_values():
    x, y = ek.tensor([3.0, 1.0]), np.array([2.0, 4.0])
    assert np.concatenate([x, y]).tolist() == [3.0, 1.0, 2.0, 4.0]
    assert np.sort(x).tolist() == [1.0, 3.0]
    assert np.allclose(x, np.array([3.0, 1.0]))
    assert np.array_equal(x, x)
    assert np.sum(x, dtype=np.float64) == 4.0
    np.testing.assert_allclose(x, [3.0, 1.0])
    assert np.shape(x) == (2,)
    with pytest.raises(TraceError):
        ek.grad(lambda x: x.sum() * np.sort(x)[0])(x)
    with pytest.raises(TraceError):
        ek.vmap(lambda x: np.stack([x, x]))(x)


# --- shared memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_from_numpy_shares_the_memory_of_what_nobody_can_write_to(dtype, backend):
    with ek.use_backend(backend):
        array = np.array([[0, 1], [1, 1]]).astype(dtype.numpy)
        for made in (ek.from_numpy(array), ek.asarray(array), ek.tensor(array)):
            assert address(made.numpy()) != address(array)
        array.flags.writeable = False
        for made in (ek.from_numpy(array), ek.asarray(array)):
            assert address(made.numpy()) == address(array)
        assert address(ek.tensor(array).numpy()) != address(array)


def test_from_numpy_takes_what_is_not_contiguous_by_a_copy_and_refuses_what_is_no_array():
    array = np.arange(6.0).reshape(2, 3)
    assert ek.from_numpy(array.T).tolist() == array.T.tolist()
    assert ek.from_numpy(np.broadcast_to(1.0, (2, 2))).tolist() == [[1, 1], [1, 1]]
    assert ek.from_numpy(np.array(3.0)).shape == ()
    for other in ([1.0], 1.0, None, ek.tensor(1.0)):
        with pytest.raises(DTypeError, match="from_numpy"):
            ek.from_numpy(other)


def test_asarray_gives_a_tensor_itself():
    x = ek.tensor([1.0])
    assert ek.asarray(x) is x
    assert ek.asarray(x, dtype="float64").dtype is ek.float64
    assert ek.asarray([1, 2]).dtype is ek.int64


# --- DLPack ---------------------------------------------------------------------------------------

EXCHANGED = [d for d in dtypes.ALL if d is not dtypes.bfloat16]


@pytest.mark.parametrize("dtype", EXCHANGED, ids=repr)
def test_numpy_and_tensors_exchange_values_by_dlpack(dtype):
    array = np.array([[0, 1], [1, 1]]).astype(dtype.numpy)
    x = ek.from_dlpack(array)
    assert x.dtype is dtype
    back = np.from_dlpack(x)
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    array[...] = 0
    back[...] = 0
    assert x.tolist() == [[0, 1], [1, 1]]
    assert address(np.from_dlpack(x, copy=False)) == address(x.numpy())


def test_what_is_given_by_dlpack_is_a_copy_or_cannot_be_written_to():
    x = ek.tensor([1.0, 2.0])
    np.from_dlpack(x)[0] = 5
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        np.from_dlpack(x, copy=False)[0] = 5
    with pytest.raises(BufferError, match="take a copy"):
        x.__dlpack__(copy=False)
    assert ek.from_dlpack(ek.tensor([1.0, 2.0]) * 2).tolist() == [2.0, 4.0]
    assert x.__dlpack_device__()[0] == 1  # the CPU


def test_an_old_consumer_of_dlpack_gets_an_array_that_can_be_written_to():
    locked = np.array([1.0, 2.0])
    locked.flags.writeable = False
    for x in (ek.tensor([1.0, 2.0]), ek.from_numpy(locked)):
        assert x.__dlpack__() is not None


def test_bfloat16_by_dlpack_is_refused_with_a_way_out():
    with pytest.raises(DTypeError, match="float32"):
        np.from_dlpack(ek.tensor([1.0], dtype="bfloat16"))


def test_dlpack_inside_a_transformation_is_refused():
    with pytest.raises(TraceError):
        ek.grad(lambda x: ek.from_dlpack(x))(ek.tensor(1.0))
    with pytest.raises(TraceError):
        ek.vmap(lambda x: ek.from_dlpack(x))(ek.tensor([1.0]))


def test_torch_and_tensors_exchange_values_by_dlpack():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    x = ek.from_dlpack(theirs)
    assert x.tolist() == theirs.tolist()
    ours = ek.tensor([[1.0, 2.0]])
    back = torch.from_dlpack(ours)
    assert back.tolist() == [[1.0, 2.0]]
    back[0, 0] = 100
    assert ours.tolist() == [[1.0, 2.0]]
    copied = ek.tensor(theirs)
    theirs[0, 0] = 100
    assert copied.tolist()[0][0] == x.tolist()[0][0] == 0
