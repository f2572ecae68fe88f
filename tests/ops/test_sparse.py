"""Sparse matrices against SciPy: random patterns, derivatives in the values, malformed patterns."""

from __future__ import annotations

import numpy as np
import pytest
from calls import called, gradient, value
from op_harness import as_buffer
from scipy import sparse

from eshkol.errors import IndexOutOfRange, ShapeError, TensorError, TraceError
from eshkol.graph import derive, interpret
from eshkol.graph.node import Scope, mark, placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval


def csr(rows, columns, seed, density=0.4):
    return sparse.random(rows, columns, density, "csr", random_state=seed).astype(np.float64)


def parts(matrix):
    return matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)


def same(got, matrix):
    for g, w in zip(got, parts(matrix), strict=True):
        np.testing.assert_allclose(g, w)


SHAPES = [(4, 5), (1, 3), (6, 2), (3, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_conversions_and_products_are_scipys(shape):
    one, other = csr(*shape, 1), csr(*shape, 2)
    dense = one.toarray()
    same(value("to_sparse", dense), one)
    np.testing.assert_array_equal(value("to_dense", *parts(one), shape), dense)
    right = np.random.default_rng(0).normal(size=(shape[1], 2))
    np.testing.assert_allclose(value("sparse_mm", *parts(one), shape, right), one @ right)
    np.testing.assert_allclose(value("sparse_mm", *parts(one), shape, right[:, 0]), one @ right[:, 0])
    turned = one.T.tocsr()
    turned.sort_indices()
    same(value("sparse_transpose", *parts(one), shape), turned)
    total = value("sparse_add", *parts(one), *parts(other), shape)
    np.testing.assert_allclose(value("to_dense", *total, shape), (one + other).toarray())
    coo = one.tocoo()
    order = np.random.default_rng(1).permutation(coo.nnz)
    places = coo.row[order].astype(np.int64), coo.col[order].astype(np.int64)
    same(value("coo_to_csr", coo.data[order], *places, shape), one)


def test_a_sum_keeps_places_where_it_is_zero():
    one = np.array([1.0]), np.array([1]), np.array([0, 1])
    other = np.array([-1.0]), np.array([1]), np.array([0, 1])
    values, indices, pointers = value("sparse_add", *one, *other, (1, 2))
    assert (values.tolist(), indices.tolist(), pointers.tolist()) == ([0.0], [1], [0, 1])


def test_columns_may_come_in_any_order_and_twice():
    matrix = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])
    np.testing.assert_array_equal(value("to_dense", *matrix, (1, 3)), [[2, 0, 4]])
    np.testing.assert_array_equal(value("sparse_mm", *matrix, (1, 3), np.arange(3.0)), [8])


def test_gradients_are_those_of_the_dense_product():
    matrix, right = csr(4, 5, 3), np.random.default_rng(3).normal(size=(5, 2))
    values, dense = gradient("sparse_mm", *parts(matrix), (4, 5), right)
    rows = np.repeat(np.arange(4), np.diff(matrix.indptr))
    np.testing.assert_allclose(values, (np.ones((4, 2)) @ right.T)[rows, matrix.indices])
    np.testing.assert_allclose(dense, matrix.toarray().T @ np.ones((4, 2)))


def test_stored_elements_of_a_dense_matrix_have_its_derivative():
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    np.testing.assert_array_equal(gradient("to_sparse", x), [[0, 1], [1, 0]])


def test_a_pattern_must_be_known_where_it_decides_a_shape():
    scope = Scope("trace", "vmap")
    with pytest.raises(TraceError, match="vmap"):
        TABLE["to_sparse"](placeholder(Aval((2, 2), dtypes.float64), scope))


def test_a_pattern_may_be_unknown_where_it_does_not():
    """A product is made before the pattern is there."""
    scope = Scope("trace", "loop")
    matrix = csr(3, 4, 4)
    given = parts(matrix)
    inputs = [placeholder(Aval(x.shape, dtypes.of(x.dtype)), scope) for x in given]
    product = TABLE["sparse_mm"](*inputs, (3, 4), as_buffer(np.eye(4)))
    (found,) = interpret.evaluate([product], dict(zip(inputs, given, strict=True)))
    np.testing.assert_allclose(found, matrix.toarray())


def test_sums_of_sparse_matrices_are_differentiable():
    scope = Scope("grad", "test")
    one, other = parts(csr(3, 4, 5)), parts(csr(3, 4, 6))
    values = [mark(as_buffer(x[0]), scope) for x in (one, other)]
    pattern = [[as_buffer(x) for x in matrix[1:]] for matrix in (one, other)]
    total, *_ = TABLE["sparse_add"](values[0], *pattern[0], values[1], *pattern[1], (3, 4))
    found = derive.vjp([total], values, scope)([as_buffer(np.ones(total.shape))])
    for got, x in zip(interpret.evaluate(found), (one, other), strict=True):
        np.testing.assert_array_equal(got, np.ones_like(x[0]))


@pytest.mark.parametrize(
    "pointers", [[1, 2, 3], [0, 3, 2], [0, 1, 2], [0, 1, 4], [0, 5, 3]], ids=["start", "falls", "short", "long", "over"]
)
def test_malformed_pointers_are_refused(pointers):
    matrix = np.ones(3), np.array([0, 1, 2]), np.array(pointers)
    for name, rest in (("to_dense", ()), ("sparse_mm", (np.ones((3, 1)),)), ("sparse_transpose", ())):
        with pytest.raises(TensorError, match="pointers"):
            value(name, *matrix, (2, 3), *rest)
    good = np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 3])
    for one, other in ((matrix, matrix), (matrix, good), (good, matrix)):
        with pytest.raises(TensorError, match="pointers"):
            called("sparse_add", (*one, *other, (2, 3)), {})


@pytest.mark.parametrize("column", [-1, 3, 1 << 40])
def test_columns_out_of_range_are_refused(column):
    matrix = np.ones(1), np.array([column]), np.array([0, 1])
    for name, rest in (("to_dense", ()), ("sparse_mm", (np.ones((3, 1)),)), ("sparse_transpose", ())):
        with pytest.raises(IndexOutOfRange):
            value(name, *matrix, (1, 3), *rest)
    with pytest.raises(IndexOutOfRange):
        called("coo_to_csr", (np.ones(1), np.array([0]), np.array([column]), (1, 3)), {})


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("to_sparse", (np.ones(3),)),
        ("to_dense", (np.ones(2), np.array([0]), np.array([0, 2]), (1, 3))),
        ("to_dense", (np.ones(1), np.array([0]), np.array([0, 1]), (2, 3))),
        ("to_dense", (np.ones(1), np.array([0]), np.array([0, 1]), (3,))),
        ("sparse_mm", (np.ones(1), np.array([0]), np.array([0, 1]), (1, 3), np.ones((2, 2)))),
        ("coo_to_csr", (np.ones(2), np.array([0]), np.array([0]), (1, 3))),
    ],
)
def test_misfits_are_refused(name, args):
    with pytest.raises(ShapeError):
        value(name, *args)


@pytest.mark.parametrize("which", [0, 1])
def test_each_operand_of_a_sum_is_checked(which):
    good = np.ones(3), np.array([0, 1, 2]), np.array([0, 1, 3])
    bad = np.ones(2), np.array([0, 1, 2]), np.array([0, 1, 3])  # an element too few
    one, other = (bad, good) if which == 0 else (good, bad)
    with pytest.raises(TensorError):
        called("sparse_add", (*one, *other, (2, 3)), {})
