"""Products of matrices and Einstein sums: random subscripts against NumPy, special values, errors."""

from __future__ import annotations

import numpy as np
import pytest
from calls import called, gradient, value
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol.errors import EshkolError, ShapeError, TensorError

EXTENTS = {"a": 2, "b": 3, "c": 1, "d": 2, "e": 4}


@st.composite
def einsums(draw):
    """Subscripts that NumPy accepts, with the shapes of their operands."""
    parts, shapes = [], []
    dots = [draw(st.integers(0, 2)) for _ in range(draw(st.integers(1, 4)))]
    for covered in dots:
        labels = draw(st.lists(st.sampled_from(sorted(EXTENTS)), max_size=3))
        place = draw(st.integers(0, len(labels)))
        hidden = (2, 3)[2 - covered :]
        # A lone axis of a label may broadcast; of a diagonal, both must have its extent.
        extents = [
            1 if labels.count(n) == 1 and draw(st.integers(0, 5)) == 0 else EXTENTS[n] for n in labels
        ]  # fmt: skip
        parts.append("".join(labels[:place]) + "..." + "".join(labels[place:]))
        shapes.append((*extents[:place], *hidden, *extents[place:]))
    text = ",".join(parts)
    if draw(st.booleans()):
        used = sorted({n for n in text if n.isalpha()})
        kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        place = draw(st.integers(0, len(kept)))
        text += "->" + "".join(kept[:place]) + "..." + "".join(kept[place:])
    return text, shapes


@settings(max_examples=150, deadline=None)
@given(einsums(), st.sampled_from([True, False, "greedy"]))
def test_random_einsums_are_numpys(case, optimize):
    text, shapes = case
    rng = np.random.default_rng(len(text))
    operands = [rng.integers(-3, 4, shape) for shape in shapes]
    np.testing.assert_array_equal(value("einsum", text, *operands, optimize=optimize), np.einsum(text, *operands))


@pytest.mark.parametrize("text", ["i,j->i", "i,j->", "i,j,k->ki", "ij,k->k", "i,ij,k->ik"])
def test_einsum_over_an_empty_axis_is_zero_whatever_the_others_hold(text):
    extents = {"i": 3, "j": 0, "k": 2}
    operands = [np.resize([1.0, np.nan, np.inf], [extents[n] for n in part]) for part in text.split("->")[0].split(",")]
    wanted = np.einsum(text, *operands)
    assert (wanted == 0).all()
    for optimize in (True, False):
        np.testing.assert_array_equal(value("einsum", text, *operands, optimize=optimize), wanted)


@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (2, 1), (3, 0)])
def test_axes_of_one_operand_with_one_letter_are_as_long(shape):
    x = np.ones(shape)
    for text, operands in (("ii->", [x]), ("ii,i->", [x, np.ones(1)]), ("ii->i", [x])):
        with pytest.raises(ShapeError, match=f"the axes 'i' of one operand are {shape[0]} and {shape[1]}"):
            value("einsum", text, *operands)


def test_einsum_follows_the_order_it_is_given():
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=s) for s in ((2, 3), (3, 4), (4, 2), (2, 5))]
    text = "ij,jk,kl,lm->im"
    path = np.einsum_path(text, *operands, optimize="optimal")[0]
    np.testing.assert_allclose(value("einsum", text, *operands, optimize=path), np.einsum(text, *operands))
    np.testing.assert_allclose(value("einsum", text, *operands, optimize=[(0, 1, 2, 3)]), np.einsum(text, *operands))


def test_einsum_sums_small_integers_in_their_own_dtype():
    x = np.full((3, 100), 100, np.int8)
    got = value("einsum", "ij->i", x)
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, np.einsum("ij->i", x))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij,jk", [(2, 3)]),
        ("ij", [(2, 3, 4)]),
        ("ijk", [(2, 3)]),
        ("ij,jk->ik", [(2, 3), (4, 2)]),
        ("ii->i", [(2, 3)]),
        ("ij->ijj", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("i1->i", [(2, 3)]),
        ("...i->i", [(2, 3)]),
        ("....i->i", [(2, 3)]),
        ("i->i->i", [(2,)]),
        ("é", [(2,)]),
    ],
)
def test_einsum_refuses(text, shapes):
    with pytest.raises(ShapeError):
        value("einsum", text, *(np.ones(s) for s in shapes))


def test_einsum_refuses_what_is_no_order():
    x = np.ones((2, 2))
    for optimize in ("fast", 3, [(0, 5)], [(0, 0)], [(0, 1), (0, 1)]):
        with pytest.raises(TensorError):
            value("einsum", "ij,jk", x, x, optimize=optimize)


def test_halves_are_summed_in_single_precision():
    x = np.full((1, 4096), 0.1, np.float16)
    assert abs(float(value("matmul", x, x.T)[0, 0]) - float(np.sum(x.astype(np.float64) ** 2))) < 0.05


def test_integers_wrap_and_bools_count():
    x = np.array([[100, 100]], np.int8)
    np.testing.assert_array_equal(value("matmul", x, x.T), x @ x.T)
    holds = np.array([[True, True], [False, True]])
    np.testing.assert_array_equal(value("matmul", holds, holds), holds.astype(np.int64) @ holds)


def test_infinities_and_nan_are_numpys():
    x, y = np.array([[np.inf, 1.0], [np.nan, 2.0]]), np.array([[1.0, 0.0], [2.0, 1.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(value("matmul", x, y), x @ y)
    vectors = np.array([np.inf, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(value("cross", *vectors), np.cross(*vectors))


def test_python_numbers_are_scalars():
    x = np.arange(3.0)
    np.testing.assert_array_equal(value("outer", x, 2), np.outer(x, 2))
    np.testing.assert_array_equal(value("kron", x, 2.0), np.kron(x, 2.0))
    np.testing.assert_array_equal(value("dot", x, 2), np.dot(x, 2))


def test_one_matrix_for_a_batch_is_one_product():
    """What a batch shares is not repeated: the gradient of a weight is one product of all examples."""
    x, weight = np.ones((5, 2, 3)), np.ones((3, 4))
    (node,) = called("matmul", (x, weight), {})
    assert node.inputs[0].shape == (10, 4)
    np.testing.assert_allclose(gradient("matmul", x, weight)[1], np.full((3, 4), 10.0))


@pytest.mark.parametrize(
    ("name", "args", "attrs"),
    [
        ("matmul", (np.ones((2, 3)), np.ones((2, 3))), {}),
        ("matmul", (np.ones(3), np.ones(2)), {}),
        ("matmul", (np.ones((2, 2)), 3.0), {}),
        ("matmul", (np.ones((2, 2, 3)), np.ones((3, 3, 2))), {}),
        ("bmm", (np.ones((2, 2, 3)), np.ones((1, 3, 2))), {}),
        ("bmm", (np.ones((2, 3)), np.ones((3, 2))), {}),
        ("linear", (np.ones((2, 3)), np.ones((3, 4))), {}),
        ("bilinear", (np.ones((2, 3)), np.ones((2, 3)), np.ones((4, 3, 2))), {}),
        ("matvec", (np.ones(3), np.ones(3)), {}),
        ("vecdot", (np.ones(3), np.ones(2)), {}),
        ("vdot", (np.ones(3), np.ones(2)), {}),
        ("inner", (np.ones(3), np.ones((3, 2))), {}),
        ("dot", (np.ones((2, 3)), np.ones((2, 3))), {}),
        ("cross", (np.ones(2), np.ones(2)), {}),
        ("tensordot", (np.ones((2, 3)), np.ones((3, 2))), {}),
        ("tensordot", (np.ones((2, 3)), np.ones((2, 3))), {"axes": 3}),
        ("tensordot", (np.ones((2, 3)), np.ones((2, 3))), {"axes": ([0, 0], [0, 0])}),
        ("tensordot", (np.ones((2, 3)), np.ones((2, 3))), {"axes": ([0, 1], [0])}),
        ("tensordot", (np.ones((2, 3)), np.ones((2, 3))), {"axes": (0, 5)}),
        ("addmm", (np.ones((2, 2)), np.ones((1, 2, 3)), np.ones((1, 3, 2))), {}),
    ],
)
def test_misfits_are_refused(name, args, attrs):
    with pytest.raises(EshkolError, match=r"\d"):
        value(name, *args, **attrs)
