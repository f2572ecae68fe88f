"""What a user is told: the operation, its operands, the line of the program with a caret, and what to do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import (
    BackendError,
    DTypeError,
    EshkolError,
    IndexOutOfRange,
    NotANumberError,
    ShapeError,
    TensorError,
)


def told(call, *args):
    """The error of a call whose body is one line: it must name that line, with a caret under the call."""
    with pytest.raises(EshkolError) as caught:
        ek.tree_map(lambda x: x.numpy(), call(*args))
    error = caught.value
    lines, first = inspect.getsourcelines(call)
    assert error.span is not None, f"the error names no line: {error}"
    assert error.span.file == __file__
    assert first <= error.span.line < first + len(lines)
    text = str(error)
    assert f"{__file__}:{error.span.line}:{error.span.column}" in text
    shown, caret = text.splitlines()[-3 if error.hint else -2 :][:2]
    assert error.span.text.strip() in shown
    assert set(caret.strip()) <= {"^", "~"}
    assert caret.index("^") == shown.index(error.span.text.strip()[:1], 8) + error.span.column - 1 - (
        len(error.span.text) - len(error.span.text.lstrip())
    )
    return error


A, B = np.zeros((2, 3), np.float32), np.zeros((4,), np.float32)


def add_operator():
    return ek.tensor(A) + ek.tensor(B)


def add_function():
    return ek.add(ek.tensor(A), ek.tensor(B))


def add_array():
    return A + ek.tensor(B)


def numpys_add():
    return np.add(ek.tensor(A), B)


def add_in_place():
    x = ek.tensor(A)
    x += ek.tensor(B)
    return x


@pytest.mark.parametrize("call", [add_operator, add_function, add_array, numpys_add, add_in_place])
def test_shapes_that_do_not_broadcast(call):
    error = told(call)
    assert isinstance(error, ShapeError)
    assert isinstance(error, ValueError)
    assert "add" in error.message
    assert "[2, 3]" in error.message
    assert "[4]" in error.message
    assert error.hint


def product():
    return ek.tensor(A) @ ek.tensor(A)


def reshaped():
    return ek.tensor(A).reshape((7,))


def joined():
    return ek.concatenate([ek.tensor(A), ek.tensor(B)])


def stacked():
    return ek.stack([ek.tensor(A), ek.tensor(B)])


def assigned():
    x = ek.tensor(A)
    x[0] = ek.tensor(B)
    return x


def expanded():
    return ek.expand(ek.tensor(B), (4, 3))


@pytest.mark.parametrize(
    ("call", "named"),
    [(product, "matmul"), (reshaped, "reshape"), (joined, "concatenate"), (stacked, "stack"), (assigned, "setitem"),
     (expanded, "expand")],
)  # fmt: skip
def test_shapes_that_do_not_fit_an_op(call, named):
    error = told(call)
    assert isinstance(error, ShapeError)
    assert named in error.message
    assert any(shape in error.message for shape in ("[2, 3]", "[4]", "[1, 2, 3]"))


def mixed_signs():
    return ek.tensor([1]) + ek.tensor([1], dtype="uint64")


def too_large():
    return ek.tensor([1], dtype="uint8") + 300


def bits_of_floats():
    return ek.tensor([1.5]) & 1


def order_of_complex():
    return ek.max(ek.tensor([1j, 2j]))


def float_into_integers():
    x = ek.tensor([1, 2])
    x[0] = 1.5
    return x


def imaginary_lost():
    return ek.tensor([1j]).astype("float32")


@pytest.mark.parametrize(
    ("call", "named"),
    [(mixed_signs, "uint64"), (too_large, "300"), (bits_of_floats, "float32"), (order_of_complex, "complex64"),
     (float_into_integers, "int64"), (imaginary_lost, "imaginary")],
)  # fmt: skip
def test_dtypes_that_do_not_fit(call, named):
    error = told(call)
    assert isinstance(error, DTypeError)
    assert isinstance(error, TypeError)
    assert named in error.message
    assert error.hint


def no_such_axis():
    return ek.tensor(A).sum(axis=5)


def no_such_place():
    return ek.tensor(A)[7]


def too_many_places():
    return ek.tensor(A)[0, 0, 0]


def known_at_run_time():
    return ek.tensor(B)[ek.tensor([0, 9])]


def taken_at_run_time():
    return ek.take(ek.tensor(B), ek.tensor([0, -5]))


def inside_vmap():
    return ek.vmap(lambda i: ek.tensor(B)[i])(ek.tensor([0, 9]))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(
    "call", [no_such_axis, no_such_place, too_many_places, known_at_run_time, taken_at_run_time, inside_vmap]
)
def test_indices_out_of_range(call, backend):
    with ek.use_backend(backend):
        error = told(call)
    assert isinstance(error, IndexOutOfRange)
    assert isinstance(error, IndexError)
    assert "(" in error.message


def inside_scan():
    return ek.scan(
        lambda c, i: (c + ek.tensor(B)[i], None),  # the element
        ek.tensor(0.0),
        ek.tensor([0, 9]),
    )


def test_an_error_inside_a_loop_names_the_line_of_its_body():
    error = told(inside_scan)
    assert "# the element" in error.span.text


def test_an_error_inside_a_transformed_function_names_its_line():
    def body(x):
        return x + ek.tensor(B)  # here

    def vmapped():
        return ek.vmap(body)(ek.zeros((5, 3)))

    with pytest.raises(ShapeError, match="# here") as caught:
        vmapped()
    assert "[3]" in caught.value.message
    with pytest.raises(ShapeError, match="# here"):
        ek.grad(body)(ek.zeros(3))


def singular():
    return ek.inv(ek.zeros((2, 2)))


def not_positive():
    return ek.cholesky(-ek.eye(2))


def divided_by_zero():
    return ek.tensor([1, 2]) // ek.tensor([1, 0])


@pytest.mark.parametrize(
    ("call", "named"), [(singular, "singular"), (not_positive, "positive definite"), (divided_by_zero, "zero")]
)
def test_what_fails_at_run_time(call, named):
    error = told(call)
    assert isinstance(error, TensorError)
    assert named in str(error)
    assert error.hint


# --- NaN ------------------------------------------------------------------------------------------


def log_of_negative():
    x = ek.tensor([-1.0, 2.0])
    y = ek.log(x)
    return y + 1


def division_by_zero():
    return ek.tensor([1.0]) / ek.tensor([0.0])


def in_the_derivative():
    return ek.grad(lambda x: ek.sqrt(x))(ek.tensor(0.0))


def overflow():
    return ek.exp(ek.tensor([1000.0]))


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(
    ("call", "named", "what"),
    [(log_of_negative, "log", "NaN"), (division_by_zero, "div", "infinity"), (in_the_derivative, "div", "infinity"),
     (overflow, "exp", "infinity")],
)  # fmt: skip
def test_check_nan_names_the_op_that_gave_it_first(call, named, what, backend):
    with ek.use_backend(backend), ek.check_nan():
        error = told(call)
    assert isinstance(error, NotANumberError)
    assert error.message.startswith(named)
    assert what in error.message
    with ek.use_backend(backend):
        call().numpy()


def test_check_nan_lets_pass_what_was_not_finite_before():
    with ek.check_nan():
        assert np.isnan((ek.tensor([np.nan]) + 1).item())
        assert (ek.tensor([np.inf]) * 2).item() == np.inf
        assert not ek.isfinite(ek.tensor([np.inf])).item()
        with ek.check_nan(False):
            assert np.isnan(ek.log(ek.tensor([-1.0])).item())


def test_check_nan_can_be_turned_on_for_good():
    ek.set_check_nan(True)
    try:
        assert isinstance(told(log_of_negative), NotANumberError)
    finally:
        ek.set_check_nan(False)
    assert np.isnan(log_of_negative().numpy()[0])


# --- names and arguments --------------------------------------------------------------------------


def test_unknown_names_suggest_near_ones():
    for name, near in (
        ("sinn", "sin"),
        ("reshap", "reshape"),
        ("tenso", "tensor"),
        ("valu_and_grad", "value_and_grad"),
    ):
        with pytest.raises(AttributeError, match=f"did you mean '{near}'"):
            getattr(ek, name)
    with pytest.raises(AttributeError, match=r"no 'qqqqqq'$"):
        _ = ek.qqqqqq
    with pytest.raises(AttributeError, match="a tensor has no 'sinn'; did you mean 'sin'") as caught:
        _ = ek.tensor(1.0).sinn
    assert caught.value.name is None, "so that Python adds no guess of its own"
    assert not hasattr(ek, "__wrapped__")


def test_every_name_is_listed():
    names = dir(ek)
    for name in ("sin", "tensor", "grad", "float32", "Tensor", "no_grad", "scan"):
        assert name in names
    assert all(hasattr(ek, name) for name in names if not name.startswith("_"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ek.sin(), r"sin\(x\)"),
        (lambda: ek.sin(1.0, 2.0), r"sin\(x\)"),
        (lambda: ek.reshape(ek.zeros(2)), r"reshape\(x, shape\).*'shape'"),
        (lambda: ek.sum(ek.zeros(2), axes=1), r"sum\(x, axis=None, keepdims=False\).*'axes'"),
        (lambda: ek.zeros(2).sum(0, True, 5), r"sum\(x, axis=None"),
    ],
)
def test_wrong_arguments_show_the_right_ones(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_a_single_tensor_where_several_are_wanted_is_refused():
    with pytest.raises(TensorError, match=r"(?s)sequence.*\[x, y\]"):
        ek.concatenate(ek.zeros((2, 2)))


def test_what_is_no_tensor_is_refused():
    for call in (lambda: ek.sin("a"), lambda: ek.where(True, ek.zeros(2), None), lambda: ek.add(ek.zeros(2), {})):
        with pytest.raises((TensorError, TypeError)):
            call()


def test_an_unknown_backend_is_refused_and_the_default_stays():
    with pytest.raises(BackendError, match="cpu"), ek.use_backend("abacus"):
        pass
    with pytest.raises(BackendError, match="cpu"):
        ek.set_backend("abacus")
    assert ek.tensor(1.0).device == "reference"


def test_functions_carry_their_documentation():
    assert ek.sin.__name__ == "sin"
    assert ek.sin.__doc__
    assert list(inspect.signature(ek.sum).parameters) == ["x", "axis", "keepdims"]
    assert ek.Tensor.sum.__doc__ == ek.sum.__doc__
