"""`Tensor` as a Python object: how it is made, what its operators give, how it is changed, copied and shown."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import re

import ml_dtypes
import numpy as np
import pytest

import eshkol as ek
from batches import of_each
from eshkol.errors import DerivativeError, DTypeError, IndexOutOfRange, ShapeError, TensorError, TraceError
from eshkol.ops import dtypes

NAMES = {d.name: d for d in dtypes.ALL}


def same(tensor, wanted, dtype=None):
    """Values, shape and dtype of a tensor are an array's."""
    wanted = np.asarray(wanted)
    assert isinstance(tensor, ek.Tensor)
    assert tensor.shape == wanted.shape
    assert tensor.dtype is dtypes.of(dtype or wanted.dtype), tensor.dtype
    np.testing.assert_array_equal(tensor.numpy(), wanted.astype(tensor.dtype.numpy))


# --- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (3, "int64"), (-3, "int64"), (2.5, "float32"), (True, "bool"), (1 + 2j, "complex64"),
        ([1, 2], "int64"), ([1, 2.5], "float32"), ([1, True], "int64"), ([True, False], "bool"), ([1, 2j], "complex64"),
        ([[1, 2], [3, 4]], "int64"), (((1.0,), (2.0,)), "float32"), (range(4), "int64"),
        ([], "float32"), ([[], []], "float32"), (np.float64(3), "float64"), (np.int8(3), "int8"),
        (np.float16(1.5), "float16"), ([np.float64(1.0)], "float32"), (2**63, "uint64"), (math.inf, "float32"),
        ([math.nan, -math.inf], "float32"),
    ],
)  # fmt: skip
def test_python_numbers_and_lists_give_the_default_dtype_of_their_kind(data, dtype):
    same(ek.tensor(data), np.array(data), dtype)


@pytest.mark.parametrize("data", [[[1, 2], [3]], [1, [2]], [[[1], [2]], [[3], [4, 5]]], [np.zeros(2), np.zeros(3)]])
def test_ragged_lists_are_refused(data):
    with pytest.raises(ShapeError, match="different lengths"):
        ek.tensor(data)


@pytest.mark.parametrize("data", ["a", ["a", "b"], None, [None], {1: 2}, {1, 2}, object(), [object()], b"ab", [1, "a"]])
def test_what_is_no_number_is_refused(data):
    with pytest.raises((DTypeError, ShapeError), match=r"cannot be a tensor"):
        ek.tensor(data)


@pytest.mark.parametrize("kind", ["object", "U1", "S1", "M8[s]", "m8[s]", "V3"])
def test_numpy_arrays_of_other_things_than_numbers_are_refused(kind):
    with pytest.raises(DTypeError, match="cannot be a tensor"):
        ek.tensor(np.zeros(2, kind))
    with pytest.raises(DTypeError, match="cannot be a tensor"):
        ek.from_numpy(np.zeros(2, kind))


def test_masked_arrays_are_refused_as_tensors_have_no_mask():
    with pytest.raises(DTypeError, match="filled"):
        ek.tensor(np.ma.array([1.0, 2.0], mask=[False, True]))


def test_extended_precision_is_refused():
    if np.longdouble(1).dtype == np.float64:
        pytest.skip("long double is a double here")
    with pytest.raises(DTypeError, match="dtype"):
        ek.tensor(np.zeros(2, np.longdouble))


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (300, "uint8"), (-1, "uint8"), (128, "int8"), ([1, 2.5], "int32"), (math.nan, "int32"), (math.inf, "int64"),
        ([2], "bool"), (0.5, "bool"), (1 + 2j, "float32"), (1j, "int8"), (1e300, "float32"), (1e300, None),
        (70000.0, "float16"), (-1e39, "bfloat16"), (2**31, "int32"), (2**64 - 1, "int64"), (1e300 + 0j, "complex64"),
        (np.array([1.5, 2.0]), "int8"), (np.array([300]), "uint8"), (np.array([-1], np.int8), "uint64"),
        (2**70, None), ([2**64, 1], None), (-(2**63) - 1, None), ([2**63, -1], None), (2**70, "int64"),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit_its_dtype_is_refused(data, dtype):
    with pytest.raises(DTypeError, match=r"fit|holds"):
        ek.tensor(data, dtype=dtype)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1.0, 2.0], "int32"), ([0, 1], "bool"), ([1 + 0j], "float64"), (2**70, "float64"), ([2**63, -1], "float64"),
        (0.1, "float16"), (16777217, "float32"), (True, "int8"), ([True], "complex64"), (1e300, "float64"),
        (1e-300, "float32"), (65504.0, "float16"), (255, "uint8"), (2**64 - 1, "uint64"), (-(2**63), "int64"),
    ],
)  # fmt: skip
def test_a_number_that_fits_is_taken_and_floats_are_rounded(data, dtype):
    with np.errstate(all="ignore"):
        wanted = np.array(data, complex if dtype == "float64" and "j" in str(data) else dtype)
    same(
        ek.tensor(data, dtype=dtype), wanted.real if wanted.dtype.kind == "c" and dtype == "float64" else wanted, dtype
    )


def test_no_warning_comes_of_converting(recwarn):
    ek.tensor([1 + 0j], dtype="float32")
    ek.tensor([1e-300], dtype="float16")
    with pytest.raises(DTypeError):
        ek.tensor([1e300], dtype="float16")
    with pytest.raises(DTypeError):
        ek.tensor([1j], dtype="float32")
    assert not recwarn.list


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_numpy_arrays_of_every_dtype_keep_it(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype.numpy)
    for made in (ek.tensor(array), ek.asarray(array), ek.from_numpy(array)):
        same(made, array)
        assert made.dtype is dtype
        assert made.nbytes == 6 * dtype.size


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_every_layout_of_an_array_gives_its_values(dtype):
    base = np.arange(24).reshape(4, 6).astype(dtype.numpy)
    views = [base[::2], base[:, ::-3], base.T, base[1:1], np.broadcast_to(base[:1], (3, 6)), np.asfortranarray(base)]
    views += [np.broadcast_to(base[0, 0], (2, 2)), base[..., None, 1], np.array(base[1, 1])]
    locked = base.copy()
    locked.flags.writeable = False
    for view in [*views, locked]:
        same(ek.tensor(view), view)
        same(ek.asarray(view), view)


@pytest.mark.parametrize("kind", [">f8", ">i4", ">u2", ">c16", ">f2"])
def test_arrays_of_the_other_byte_order_give_the_same_numbers(kind):
    array = np.array([1, 2, 300]).astype(kind)
    same(ek.tensor(array), array.astype(array.dtype.newbyteorder("=")))


def test_unaligned_arrays_give_the_same_numbers():
    raw = np.zeros(25, np.uint8)
    view = raw[1:].view(np.float64)
    view[:] = [1, 2, 3]
    same(ek.tensor(view) + 1.0, [2.0, 3.0, 4.0], "float64")
    same(ek.from_numpy(view) + 1.0, [2.0, 3.0, 4.0], "float64")


def test_what_is_made_of_an_array_does_not_change_with_it():
    array = np.ones(3)
    made, added = ek.tensor(array), ek.tensor([1.0, 2.0, 3.0]) + array
    joined = array + ek.tensor([1.0, 2.0, 3.0])
    mapped = ek.vmap(lambda x, y: x * y)(array, ek.tensor([1.0, 2.0, 3.0]))
    chosen_by = np.array([0, 2])
    chosen = ek.tensor([1.0, 2.0, 3.0])[chosen_by]
    array[:], chosen_by[:] = 100, 1
    same(made, np.ones(3))
    same(added, [2.0, 3.0, 4.0], "float64")
    same(joined, [2.0, 3.0, 4.0], "float64")
    same(mapped, [1.0, 2.0, 3.0], "float64")
    same(chosen, [1.0, 3.0], "float32")


def test_what_is_made_of_an_object_with_an_array_does_not_change_with_it():
    class Holder:
        def __init__(self):
            self.array = np.ones(2)

        def __array__(self, dtype=None, copy=None):
            return self.array

    held = Holder()
    made = ek.tensor(held)
    held.array[:] = 5
    assert made.tolist() == [1.0, 1.0]


def test_tensors_of_tensors_are_stacked_with_their_derivative():
    x = ek.tensor(2.0)
    same(ek.tensor([x, x * 3]), [2.0, 6.0], "float32")
    same(ek.tensor([[x, 1], [2, x]]), [[2.0, 1.0], [2.0, 2.0]], "float32")
    same(ek.tensor(x, dtype="float64"), 2.0)
    assert ek.grad(lambda x: (ek.tensor([x, x * x]) * ek.tensor([1.0, 10.0])).sum())(x).item() == 41.0


def test_scalars_have_no_axes_and_empty_tensors_no_elements():
    assert ek.tensor(1.0).shape == ()
    assert ek.tensor(1.0).ndim == 0
    assert ek.tensor(1.0).size == 1
    empty = ek.tensor(np.zeros((2, 0, 3), np.float32))
    assert (empty.shape, empty.size, empty.nbytes, empty.tolist()) == ((2, 0, 3), 0, 0, [[], []])
    same(empty + 1.0, np.zeros((2, 0, 3), np.float32))
    assert empty.sum().item() == 0.0


@pytest.mark.parametrize("given", ["float32", np.float32, np.dtype("f4"), ek.float32, "f32", float])
def test_a_dtype_may_be_named_in_many_ways(given):
    assert ek.tensor([1], dtype=given).dtype is ek.float32


@pytest.mark.parametrize("given", ["float31", "object", str, 7, np.dtype("M8[s]")])
def test_an_unknown_dtype_is_refused_with_the_list_of_those_there_are(given):
    with pytest.raises(DTypeError, match="bfloat16"):
        ek.tensor([1], dtype=given)


# --- promotion ------------------------------------------------------------------------------------


def meeting(a, b):
    """What the documentation of promotion says, written independently of it."""
    if a is b:
        return a
    kinds = ["bool", "int", "float", "complex"]
    low, high = sorted((a, b), key=lambda d: kinds.index(d.kind))
    if low.kind != high.kind:
        if high.kind == "complex" and low.name == "float64":
            return NAMES["complex128"]
        return high
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return NAMES["float32"]
    if a.signed == b.signed:
        return max(a, b, key=lambda d: d.bits)
    signed, unsigned = (a, b) if a.signed else (b, a)
    return next(
        (d for n in (8, 16, 32, 64) if (d := NAMES[f"int{n}"]).bits >= max(signed.bits, 2 * unsigned.bits)), None
    )


@pytest.mark.parametrize("a", dtypes.ALL, ids=repr)
@of_each("b", dtypes.ALL)
def test_two_dtypes_meet_as_documented(a, b):
    x, y = ek.tensor([1], dtype=a), ek.tensor([1], dtype=b)
    wanted = meeting(a, b)
    if wanted is None:
        with pytest.raises(DTypeError, match=r"uint64") as error:
            x + y
        assert "int64" in str(error.value)
        return
    assert (x == y).dtype is ek.bool_
    assert ek.where(ek.tensor([True]), x, y).dtype is wanted
    total = x + y
    assert total.dtype is (ek.int64 if wanted is ek.bool_ else wanted)
    assert complex(total.item()) == 2


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_a_python_number_takes_the_tensors_dtype_if_its_kind_allows(dtype):
    x = ek.tensor([1], dtype=dtype)
    kinds = ["bool", "int", "float", "complex"]
    defaults = {"bool": ek.bool_, "int": ek.int64, "float": ek.float32, "complex": ek.complex64}
    for number, kind in ((True, "bool"), (1, "int"), (1.0, "float"), (1j, "complex")):
        if kinds.index(kind) <= kinds.index(dtype.kind):
            wanted = dtype
        elif kind == "complex" and dtype is ek.float64:
            wanted = ek.complex128
        else:
            wanted = defaults[kind]
        if wanted is ek.bool_:
            wanted = ek.int64  # arithmetic counts bools
        assert (x + number).dtype is wanted
        assert (number + x).dtype is wanted
        assert (x * number).dtype is wanted


@pytest.mark.parametrize(
    ("dtype", "number"), [("uint8", 256), ("uint8", -1), ("int8", 200), ("int64", 2**63), ("uint64", 2**64)]
)
def test_a_python_integer_that_the_tensors_dtype_cannot_hold_is_refused(dtype, number):
    x = ek.tensor([1], dtype=dtype)
    for call in (operator.add, operator.mul, operator.lt, operator.eq):
        with pytest.raises(DTypeError, match=re.escape(str(number))):
            call(x, number)
        with pytest.raises(DTypeError, match=re.escape(str(number))):
            call(number, x)


def test_a_number_beyond_the_dtype_is_refused_and_not_infinity():
    for dtype, number in (("float32", 2**2000), ("float32", 1e39), ("float16", 1e5), ("float64", 2**1024)):
        with pytest.raises(DTypeError, match=dtype):
            ek.tensor([1.0], dtype=dtype) + number
        with pytest.raises(DTypeError, match=dtype):
            number * ek.tensor([1.0], dtype=dtype)
    assert (ek.tensor([1.0]) + 2**70).item() == 2.0**70
    assert (ek.tensor([1.0]) + math.inf).item() == math.inf


def test_lists_of_tensors_as_operands_keep_their_derivative():
    w = ek.tensor(2.0, requires_grad=True)
    ek.sum([w, w * w]).backward()
    assert w.grad.item() == 5.0
    assert ek.grad(lambda x: ek.sum(ek.mul([x, 3.0], [[x, x]])))(ek.tensor(2.0)).item() == 7.0
    x = ek.zeros(2)
    x[:] = [w, w * 2]
    assert x.requires_grad
    assert x.tolist() == [2.0, 4.0]


# --- operators ------------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv, operator.mod]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor]
OTHERS = [2.5, 2, np.float64(2.5), np.float32(2.5), np.int64(2), np.array([1.5, 2.0, 3.0]), np.array([[2.0], [1.0]])]


@pytest.mark.parametrize("call", [*ARITHMETIC, *ORDER], ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", OTHERS, ids=lambda o: f"{type(o).__name__}{np.shape(o)}")
def test_operators_take_numbers_and_arrays_on_both_sides(call, other):
    values = np.array([1.0, 2.0, 4.0])
    x = ek.tensor(values)
    for got, wanted in ((call(x, other), call(values, other)), (call(other, x), call(other, values))):
        assert isinstance(got, ek.Tensor)
        assert got.dtype is (ek.bool_ if call in ORDER else ek.float64)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-14)


@pytest.mark.parametrize("call", [*BITS, operator.lshift, operator.rshift], ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [3, np.int64(3), np.array([1, 2, 3])], ids=lambda o: type(o).__name__)
def test_bit_operators_take_numbers_and_arrays_on_both_sides(call, other):
    values = np.array([4, 5, 6])
    x = ek.tensor(values)
    same(call(x, other), call(values, other))
    same(call(other, x), call(other, values))


def test_operators_of_one_operand():
    x = np.array([-1.5, 2.0])
    same(-ek.tensor(x), -x)
    same(+ek.tensor(x), x)
    same(abs(ek.tensor(x)), abs(x))
    same(~ek.tensor([True, False]), [False, True])
    same(~ek.tensor([1, -1]), [-2, 0])


def test_matrix_products_take_arrays_on_both_sides():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    same(ek.tensor(a) @ ek.tensor(b), a @ b)
    same(ek.tensor(a) @ b, a @ b)
    same(a @ ek.tensor(b), a @ b)
    same(ek.tensor(a) @ b[:, 0], a @ b[:, 0])
    with pytest.raises(ShapeError, match="matmul"):
        ek.tensor(a) @ ek.tensor(a)


def test_divmod_is_quotient_and_remainder_on_both_sides():
    for got, wanted in (
        (divmod(ek.tensor([7, -7]), 2), divmod(np.array([7, -7]), 2)),
        (divmod(7, ek.tensor([2, -2])), divmod(7, np.array([2, -2]))),
    ):
        same(got[0], wanted[0])
        same(got[1], wanted[1])


@pytest.mark.parametrize("other", ["a", [1, 2], None, object(), {}], ids=lambda x: type(x).__name__)
def test_operators_refuse_what_is_no_number(other):
    x = ek.tensor([1.0, 2.0])
    for call in (operator.add, operator.sub, operator.lt, operator.matmul):
        with pytest.raises(TypeError):
            call(x, other)
        with pytest.raises(TypeError):
            call(other, x)


def test_a_tensor_is_not_equal_to_what_is_no_number():
    x = ek.tensor([1.0])
    assert (x == "a") is False
    assert (x != "a") is True
    assert (x == None) is False  # noqa: E711
    assert "a" not in x
    assert None not in x


def test_integers_divided_by_zero_are_refused_and_floats_give_infinity():
    with pytest.raises(TensorError, match="zero"):
        (ek.tensor([1, 2]) % 0).numpy()
    same(ek.tensor([1.0]) / 0, [math.inf], "float32")


# --- as a Python number or container --------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_item_and_tolist_give_python_numbers(dtype):
    kind = {"bool": bool, "int": int, "float": float, "complex": complex}[dtype.kind]
    x = ek.tensor([[1]], dtype=dtype)
    assert type(x.item()) is kind
    assert x.item() == 1
    assert type(x.tolist()[0][0]) is kind
    assert x.tolist() == [[1]]
    assert type(ek.tensor(1, dtype=dtype).tolist()) is kind


def test_item_needs_one_element():
    for shape in ((2,), (0,), (1, 3)):
        with pytest.raises(ShapeError, match="item"):
            ek.zeros(shape).item()
    assert ek.zeros((1, 1)).item() == 0.0


def test_conversions_to_python_numbers():
    assert float(ek.tensor([2.5])) == 2.5
    assert int(ek.tensor(2.5)) == 2
    assert complex(ek.tensor(1.5)) == 1.5
    assert math.sqrt(ek.tensor(4.0)) == 2.0
    with pytest.raises(ShapeError):
        float(ek.tensor([1.0, 2.0]))
    with pytest.raises(TypeError):
        float(ek.tensor(1j))


def test_integers_and_bools_are_indices_and_floats_are_not():
    assert [10, 20, 30][ek.tensor(1)] == 20
    assert list(range(ek.tensor(3, dtype="uint8"))) == [0, 1, 2]
    assert "abc"[ek.tensor(True)] == "b"
    with pytest.raises(DTypeError, match="int"):
        [10, 20][ek.tensor(1.0)]


def test_truth_is_that_of_one_element():
    assert ek.tensor([[1.5]])
    assert not ek.tensor(0)
    assert ek.tensor(math.nan)
    for shape in ((2,), (0,)):
        with pytest.raises(ShapeError, match="any"):
            bool(ek.zeros(shape))


def test_length_iteration_and_membership():
    x = ek.tensor([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]
    assert list(reversed([v.item() for v in x[0]])) == [2, 1]
    assert 4 in x
    assert 7 not in x
    first, *rest = x
    assert first.tolist() == [1, 2]
    assert len(rest) == 2
    assert list(ek.zeros((0, 2))) == []
    with pytest.raises((ShapeError, TypeError)):
        len(ek.tensor(1))
    with pytest.raises((ShapeError, TypeError)):
        list(ek.tensor(1))


def test_formats():
    assert f"{ek.tensor(1.5):.3f}" == "1.500"
    assert f"{ek.tensor([7]):04d}" == "0007"
    assert f"{ek.tensor([1.5, 2.0])}" == repr(ek.tensor([1.5, 2.0]))
    assert str(ek.tensor(1.5)) == repr(ek.tensor(1.5))
    with pytest.raises(ShapeError):
        f"{ek.tensor([1.5, 2.0]):.3f}"


def test_hash_and_identity_are_the_objects():
    x, y = ek.tensor(1.0), ek.tensor(1.0)
    assert len({x, y, x}) == 2
    assert {x: "x"}[x] == "x"
    before = hash(x)
    x += 1
    assert hash(x) == before


def test_methods_take_extents_and_axes_one_by_one():
    a = np.arange(6.0).reshape(2, 3)
    x = ek.tensor(a)
    same(x.reshape(3, 2), a.reshape(3, 2))
    same(x.reshape(-1), a.reshape(-1))
    same(x.reshape((3, 2)), a.reshape(3, 2))
    same(x.reshape(shape=(3, 2)), a.reshape(3, 2))
    same(x.permute(1, 0), a.T)
    same(x.permute((1, 0)), a.T)
    same(x.expand(4, 2, 3), np.broadcast_to(a, (4, 2, 3)))


def test_transposed_views_and_parts():
    a = np.arange(24.0).reshape(2, 3, 4)
    same(ek.tensor(a).T, a.T)
    same(ek.tensor(a).mT, a.swapaxes(-1, -2))
    z = np.array([1 + 2j, 3 - 1j])
    same(ek.tensor(z).real, z.real)
    same(ek.tensor(z).imag, z.imag)
    with pytest.raises(ShapeError):
        _ = ek.tensor([1.0]).mT
    assert ek.tensor(1.0).device == "reference"


# --- repr -----------------------------------------------------------------------------------------


def test_repr_shows_values_and_unusual_dtypes():
    assert repr(ek.tensor([1.0, 2.5])) == "tensor([1. , 2.5])"
    assert repr(ek.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(ek.tensor(True)) == "tensor(True)"
    assert repr(ek.tensor([1.0], dtype="float64")) == "tensor([1.], dtype=float64)"
    assert repr(ek.tensor([1.5], dtype="bfloat16")) == "tensor([1.5], dtype=bfloat16)"
    assert repr(ek.tensor([1], dtype="uint8")) == "tensor([1], dtype=uint8)"
    assert "complex64" in repr(ek.tensor(1j))
    assert repr(ek.tensor([[1, 2], [3, 4]])) == "tensor([[1, 2],\n        [3, 4]])"


def test_repr_of_nothing_shows_the_shape():
    assert repr(ek.zeros((2, 0))) == "tensor([], shape=(2, 0), dtype=float32)"


def test_repr_of_much_is_short():
    text = repr(ek.tensor(np.zeros((1000, 1000))))
    assert "..." in text
    assert len(text) < 1000
    assert max(map(len, text.splitlines())) <= 110


def test_repr_shows_requires_grad_and_what_is_computed():
    w = ek.tensor([1.0], requires_grad=True)
    assert repr(w) == "tensor([1.], requires_grad=True)"
    assert repr(w * 2) == "tensor([2.], requires_grad=True)"
    assert repr(w.detach()) == "tensor([1.])"


def test_repr_inside_grad_shows_the_value_and_inside_vmap_what_is_known():
    seen = []
    ek.grad(lambda x: seen.append(repr(x)) or x)(ek.tensor(2.0))
    ek.vmap(lambda x: seen.append(repr(x)) or x)(ek.zeros((3, 2)))
    assert seen[0].startswith("tensor(2.")
    assert "float32[2]" in seen[1]
    assert "vmap" in seen[1]


def test_a_tensor_carried_out_of_vmap_can_be_shown_but_not_computed():
    kept = []
    ek.vmap(lambda x: kept.append(x * 2) or x)(ek.zeros((3, 2)))
    assert "float32[2]" in repr(kept[0])
    with pytest.raises(TraceError):
        kept[0].numpy()


# --- in place -------------------------------------------------------------------------------------


def test_values_computed_before_an_assignment_keep_theirs():
    x = ek.tensor([1.0, 2.0, 3.0])
    before, view, copied = x * 2, x[:2], x.clone()
    x[0] = 10.0
    x += 1
    same(x, [11.0, 3.0, 4.0], "float32")
    same(before, [2.0, 4.0, 6.0], "float32")
    same(view, [1.0, 2.0], "float32")
    same(copied, [1.0, 2.0, 3.0], "float32")


def test_the_array_behind_a_tensor_is_not_changed_by_an_assignment():
    array = np.zeros(3)
    x = ek.from_numpy(array)
    x[1] = 5.0
    same(x, [0.0, 5.0, 0.0], "float64")
    assert array.tolist() == [0, 0, 0]


INDICES = [
    0, -1, (1, 2), slice(1, None), (slice(None), 1), (slice(None, None, -1), slice(0, 3, 2)), ..., (..., 0), [0, 2],
    ([0, 1], [1, 2]), np.array([2, 0]), (slice(None), [2, 0]), (), (0, ..., slice(1, 2)),
    np.arange(12).reshape(3, 4) % 3 == 0, [True, False, True],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_and_assignment_are_numpys(index):
    array = np.arange(12.0).reshape(3, 4)
    x = ek.tensor(array)
    same(x[index], array[index])
    x[index] = 7
    array[index] = 7
    same(x, array)
    value = np.arange(np.asarray(array[index]).size, dtype=float).reshape(np.shape(array[index]))
    x[index] = ek.tensor(value)
    array[index] = value
    same(x, array)
    x[index] += 1
    array[index] += 1
    same(x, array)


def test_tensors_are_indices():
    array = np.arange(12.0).reshape(3, 4)
    x, i = ek.tensor(array), ek.tensor([2, 0])
    same(x[i], array[[2, 0]])
    same(x[i, i], array[[2, 0], [2, 0]])
    same(x[x > 4], array[array > 4])
    same(x[ek.tensor(1)], array[1])
    x[x > 4] = 0
    same(x, np.where(array > 4, 0, array))


@pytest.mark.parametrize(
    "index", [3, -4, (0, 4), [0, 3], (0, 0, 0), 1.5, "a", (slice(0, 1, 0),), np.array([0.5])], ids=repr
)
def test_an_index_that_does_not_fit_is_refused(index):
    x = ek.zeros((3, 4))
    with pytest.raises((IndexOutOfRange, ShapeError, DTypeError)):
        x[index].numpy()
    with pytest.raises((IndexOutOfRange, ShapeError, DTypeError)):
        assigned(x, index).numpy()


def assigned(x, index):
    x[index] = 1.0
    return x


def test_an_assignment_that_does_not_fit_is_refused_and_changes_nothing():
    x = ek.tensor([[1, 2], [3, 4]])
    with pytest.raises(ShapeError):
        x[0] = ek.tensor([1, 2, 3])
    with pytest.raises(DTypeError):
        x[0] = 1.5
    with pytest.raises(DTypeError):
        x[0] = ek.tensor([1.0, 2.0])
    with pytest.raises(DTypeError):
        ek.zeros(2, dtype="uint8")[0] = 300
    same(x, [[1, 2], [3, 4]])


def test_in_place_operators_keep_the_handle():
    x = ek.tensor([8.0, 4.0])
    handle = x
    x += 1
    x -= ek.tensor(1.0)
    x *= 2
    x /= np.float32(4)
    x **= 2
    x //= 3
    x %= 4
    assert handle is x
    same(x, ((np.array([8.0, 4.0]) / 2) ** 2 // 3) % 4, "float32")
    bits = ek.tensor([6, 5])
    bits &= 4
    bits |= 1
    bits ^= 2
    same(bits, ((np.array([6, 5]) & 4) | 1) ^ 2)


def test_in_place_operators_refuse_another_shape_or_dtype():
    x = ek.tensor([1, 2])
    with pytest.raises(ShapeError, match="in place"):
        x += ek.tensor([[1, 2], [3, 4]])
    with pytest.raises(DTypeError, match="in place"):
        x += 1.5
    with pytest.raises(DTypeError, match="in place"):
        x /= 2
    same(x, [1, 2])


def test_a_leaf_that_requires_grad_is_not_overwritten_outside_no_grad():
    w = ek.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(DerivativeError, match="no_grad"):
        w += 1
    with pytest.raises(DerivativeError, match="no_grad"):
        w[0] = 5.0
    with ek.no_grad():
        w += 1
        w[0] = 5.0
    same(w.detach(), [5.0, 3.0], "float32")
    assert w.requires_grad
    assert w.is_leaf
    (w * w).sum().backward()
    same(w.grad, [10.0, 6.0], "float32")


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_the_same_values_and_a_life_of_their_own(dtype, how):
    x = ek.tensor([[1, 0], [1, 1]], dtype=dtype)
    twin = how(x)
    same(twin, x.numpy())
    twin[0, 0] = False
    assert x.tolist() == [[1, 0], [1, 1]]
    assert twin.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copied_leaf_is_a_leaf_with_a_gradient_of_its_own(how):
    w = ek.tensor([1.0, 2.0], dtype="bfloat16", requires_grad=True)
    twin = how(w)
    assert twin.requires_grad
    assert twin.is_leaf
    (twin * 3).sum().backward()
    assert w.grad is None
    assert twin.grad.tolist() == [3.0, 3.0]


def test_deep_copies_and_pickles_refuse_a_history():
    y = ek.tensor([1.0], requires_grad=True) * 2
    for how in (copy.deepcopy, pickle.dumps):
        with pytest.raises(DerivativeError, match="detach"):
            how(y)
    assert pickle.loads(pickle.dumps(y.detach())).tolist() == [2.0]


def test_a_copy_within_grad_keeps_its_derivative_and_a_pickle_is_refused():
    assert ek.grad(lambda x: copy.deepcopy(x) * copy.copy(x))(ek.tensor(3.0)).item() == 6.0
    with pytest.raises(TraceError):
        ek.grad(lambda x: pickle.loads(pickle.dumps(x)))(ek.tensor(3.0))
    assert ek.vmap(lambda x: copy.deepcopy(x) * 2)(ek.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_dtypes_pickle_to_themselves():
    for dtype in dtypes.ALL:
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype


def test_a_structure_keeps_what_it_shares_when_deep_copied():
    x = ek.tensor([1.0])
    twins = copy.deepcopy([x, x])
    assert twins[0] is twins[1]
    assert twins[0] is not x


# --- the same on the CPU --------------------------------------------------------------------------


def test_tensors_on_the_cpu_backend():
    with ek.use_backend("cpu"):
        x = ek.tensor([[1.0, 2.0], [3.0, 4.0]])
        assert x.device == "cpu"
        y = (x @ x + 1) * 2
        x[0, 0] = 9.0
        assert y.tolist() == [[16.0, 22.0], [32.0, 46.0]]
        assert x.tolist() == [[9.0, 2.0], [3.0, 4.0]]
        assert x.astype(ml_dtypes.bfloat16).dtype is ek.bfloat16
        assert repr(ek.zeros((0,)) + 1.0) == "tensor([], shape=(0,), dtype=float32)"
