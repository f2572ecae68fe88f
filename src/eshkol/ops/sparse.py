"""Sparse matrices in compressed rows (CSR): the values, their columns, and where each row begins among them.

A matrix of m rows is three tensors: `values` and `indices` (the columns, int64) with one entry per stored element, row
by row, and `pointers` (int64, m + 1 of them), between two of which a row lies. Several elements in one place add up.
Ops whose result has as many elements as the pattern wants need that pattern's values at once (`concrete`); all are
linear in the values. A malformed pattern is an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import wide
from eshkol.ops.creation import full
from eshkol.ops.indexing import at, position, scatter_into, take, together, wrapped
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import reshape
from eshkol.ops.row import HOST, Aval, Draw, HasAval, NoDerivative, Shape, Value, composite, primitive, sample

GROUP = "sparse matrices"
_NUMBERS = ("int", "float", "complex")
_PATTERN = NoDerivative("a pattern does not vary smoothly")


# --- patterns -------------------------------------------------------------------------------------


def strange_pointers(count: int) -> tuple[str, str]:
    """What is said of pointers that are not those of so many elements, and the hint."""
    message = f"the pointers of a sparse matrix must rise from 0 to its {count} elements"
    return message, "pointers[r] says where row r begins among the values"


def _rows(pointers: Any, count: int) -> Any:
    """The row of each stored element of one matrix."""
    if pointers[0] != 0 or pointers[-1] != count or (np.diff(pointers) < 0).any():
        message, hint = strange_pointers(count)
        raise TensorError(f"{message}, not as {pointers.tolist()[:9]}", hint=hint)
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))


class Count(NamedTuple):
    stored: int


def _whole(what: str, x: HasAval) -> None:
    if not x.dtype.is_integer:
        raise DTypeError(f"the {what} of a sparse matrix are {x.dtype}, not integers", hint=f"cast them: {what}.long()")


def _infer_rows(a: Count, pointers: HasAval) -> Aval:
    _whole("pointers", pointers)
    if not pointers.shape or not pointers.shape[-1]:
        raise ShapeError(f"pointers of shape {list(pointers.shape)} are not those of a matrix")
    return Aval((*pointers.shape[:-1], a.stored), dtypes.int64)


def _all_rows(a: Count, pointers: Any) -> Any:
    result = np.empty((*pointers.shape[:-1], a.stored), np.int64)
    for k in np.ndindex(pointers.shape[:-1]):
        result[k] = _rows(pointers[k], a.stored)
    return result


def _batch_rows(a: Count, inputs: Any, batched: Any) -> Any:
    return csr_rows(inputs[0], a.stored)


def _pointers(*given: int) -> Draw:
    return Draw((len(given),), kind="int", make=lambda rng: np.array(given))


@primitive(
    group=GROUP, infer=_infer_rows, reference=_all_rows, derivative=_PATTERN, batch=_batch_rows, lower=HOST,
    method=False, dtypes=("int",), samples=(sample(_pointers(0, 2, 2, 3), count=3), sample(_pointers(0), count=0)),
)  # fmt: skip
def csr_rows(pointers: Value, count: int) -> Count:
    """The row of each of the stored elements of a sparse matrix."""
    (found,) = shapes.extents(count)
    return Count(found)


class Columns(NamedTuple):
    columns: int


def _infer_turned(a: Columns, indices: HasAval, pointers: HasAval) -> tuple[Aval, ...]:
    _whole("indices", indices)
    _whole("pointers", pointers)
    if not indices.shape or indices.shape[:-1] != pointers.shape[:-1]:
        raise ShapeError(
            f"indices of shape {list(indices.shape)} and pointers of shape {list(pointers.shape)} are not one matrix's",
            hint="both have one axis, and the same axes of a batch before it",
        )
    if not pointers.shape or not pointers.shape[-1]:
        raise ShapeError(f"pointers of shape {list(pointers.shape)}: a matrix has one more than it has rows")
    same = Aval(indices.shape, dtypes.int64)
    return same, same, Aval((*indices.shape[:-1], a.columns + 1), dtypes.int64)


def _turned(a: Columns, indices: Any, pointers: Any) -> Any:
    batch, count = indices.shape[:-1], indices.shape[-1]
    results = tuple(np.empty((*batch, n), np.int64) for n in (count, count, a.columns + 1))
    for k in np.ndindex(batch):
        for result, found in zip(results, _turn(a, indices[k], pointers[k]), strict=True):
            result[k] = found
    return results


def _turn(a: Columns, indices: Any, pointers: Any) -> tuple[Any, Any, Any]:
    rows = _rows(pointers, len(indices))
    indices = wrapped(indices, a.columns, wrap=False)
    order = np.argsort(indices, kind="stable")
    return order, rows[order], np.searchsorted(indices[order], np.arange(a.columns + 1))


def _batch_turned(a: Columns, inputs: Any, batched: Any) -> Any:
    return csr_turned(*together(inputs, batched), a.columns)


@primitive(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, infer=_infer_turned, reference=_turned, derivative=_PATTERN, batch=_batch_turned, lower=HOST,
    dtypes=("int",), method=False,
    samples=(sample(at(3, low=0, high=3), _pointers(0, 2, 2, 3), columns=4),),
)  # fmt: skip
def csr_turned(indices: Value, pointers: Value, columns: int) -> Columns:
    """The pattern of the transpose: which stored element comes at each place, its column, and the pointers."""
    (found,) = shapes.extents(columns)
    return Columns(found)


def _checked(values: Any, indices: Any, pointers: Any, shape: Any) -> tuple[int, int]:
    """The rows and columns of a sparse matrix, whose parts must fit together."""
    found: Shape = shapes.extents(shape)
    if len(found) != 2:
        raise ShapeError(f"a sparse matrix has two axes, not the shape {list(found)}")
    if values.ndim != 1 or indices.shape != values.shape or pointers.shape != (found[0] + 1,):
        raise ShapeError(
            f"values {list(values.shape)}, indices {list(indices.shape)} and pointers {list(pointers.shape)} are not "
            f"those of a sparse matrix of shape {list(found)}",
            hint="there are as many indices as values, and one pointer more than rows",
        )
    _whole("indices", indices)
    _whole("pointers", pointers)
    return found[0], found[1]


def _dense(values: Any, indices: Any, pointers: Any, shape: Any) -> Any:
    """The matrix, one element after another."""
    found = np.zeros(shape, wide(values).dtype)
    for row in range(shape[0]):
        for k in range(pointers[row], pointers[row + 1]):
            found[row, indices[k]] += values[k]
    return found


_matrix = ((3,), at(3, low=0, high=3), _pointers(0, 2, 2, 3))  # 3 × 4, with an empty row
_empty = ((0,), at(0, low=0, high=0), _pointers(0, 0))


# --- between dense and sparse ---------------------------------------------------------------------


def _to_sparse(x: Any) -> Any:
    rows, columns = np.nonzero(x)
    return x[rows, columns], columns, np.searchsorted(rows, np.arange(x.shape[0] + 1))


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, reference=_to_sparse, dtypes=_NUMBERS, concrete=(0,), scheme=("to-sparse",),
    samples=(sample(Draw((2, 3), 0.5, 2.0)), sample((0, 2)), sample((2, 0))),
)  # fmt: skip
def to_sparse(x: Value) -> Any:
    """(values, indices, pointers) of the elements of a matrix that are not 0; it is differentiable in these."""
    if x.ndim != 2:
        raise ShapeError(f"shape {list(x.shape)} is not a matrix")
    rows, columns = np.nonzero(x.concrete())
    values = take(reshape(x, (x.size,)), x.literal(rows * x.shape[1] + columns))
    return values, *_pattern(x, rows, columns, x.shape[0])


def _pattern(like: Any, rows: Any, columns: Any, count: int) -> tuple[Any, Any]:
    """The indices and pointers of elements that are in the order of rows."""
    pointers = np.searchsorted(rows, np.arange(count + 1))
    return like.literal(columns.astype(np.int64)), like.literal(pointers.astype(np.int64))


@composite(
    group=GROUP, reference=_dense, dtypes=_NUMBERS, scheme=("to-dense",), method=False,
    samples=(
        sample(*_matrix, shape=(3, 4)), sample(*_empty, shape=(1, 2)), sample(*_empty[:2], _pointers(0), shape=(0, 2)),
    ),
)  # fmt: skip
def to_dense(values: Value, indices: Value, pointers: Value, shape: Shape) -> Any:
    """The matrix of a shape that three tensors of a sparse one say."""
    rows, columns = _checked(values, indices, pointers, shape)
    if not values.size:
        return full(values, (rows, columns), 0)
    places = csr_rows(pointers, values.size) * columns + position(indices, columns, wrap=False)
    return reshape(scatter_into(full(values, (rows * columns,), 0), places, values, add=True), (rows, columns))


def _coo(values: Any, rows: Any, columns: Any, shape: Any) -> Any:
    found: dict[tuple[int, int], Any] = {}
    for value, row, column in zip(wide(values), rows, columns, strict=True):
        found[int(row), int(column)] = found.get((int(row), int(column)), wide(values).dtype.type(0)) + value
    order = sorted(found)
    counts = [sum(row < k for row, _ in order) for k in range(shape[0] + 1)]
    return (
        np.array([found[k] for k in order], wide(values).dtype),
        np.array([k[1] for k in order], int),
        np.array(counts),
    )


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, reference=_coo, dtypes=_NUMBERS, concrete=(1, 2), method=False,
    samples=(sample((5,), at(5, low=0, high=2), at(5, low=0, high=1), shape=(3, 2)),),
)  # fmt: skip
def coo_to_csr(values: Value, rows: Value, columns: Value, shape: Shape) -> Any:
    """(values, indices, pointers) of elements given by their rows and columns in any order; equal places add up."""
    found = shapes.extents(shape)
    if len(found) != 2 or values.ndim != 1 or rows.shape != values.shape or columns.shape != values.shape:
        raise ShapeError(
            f"values {list(values.shape)}, rows {list(rows.shape)} and columns {list(columns.shape)} are not those of "
            f"a sparse matrix of shape {list(found)}"
        )
    _whole("rows", rows)
    _whole("columns", columns)
    places = [wrapped(given.concrete(), n, wrap=False) for given, n in zip((rows, columns), found, strict=True)]
    return _united(values, places[0] * found[1] + places[1], found)


def _united(values: Any, places: Any, shape: Shape) -> Any:
    """CSR of values at places of the matrix in any order, equal places added up."""
    distinct, own = np.unique(places, return_inverse=True)
    total = scatter_into(full(values, distinct.shape, 0), values.literal(own.astype(np.int64)), values, add=True)
    rows, columns = np.divmod(distinct, max(shape[1], 1))
    return total, *_pattern(values, rows, columns, shape[0])


# --- computing ------------------------------------------------------------------------------------


@composite(
    group=GROUP, dtypes=_NUMBERS, scheme=("sparse-mm",), method=False, tolerance=2.0,
    reference=lambda values, indices, pointers, shape, dense: _dense(values, indices, pointers, shape) @ wide(dense),
    samples=(
        sample(*_matrix, [3, 4], (4, 2)), sample(*_matrix, [3, 4], (4,)), sample(*_empty, [1, 2], (2, 3)),
    ),
)  # fmt: skip
def sparse_mm(values: Value, indices: Value, pointers: Value, shape: Shape, dense: Value) -> Any:
    """A sparse matrix of a shape times a dense matrix or vector."""
    rows, columns = _checked(values, indices, pointers, shape)
    if dense.ndim not in (1, 2) or dense.shape[0] != columns:
        raise ShapeError(f"a sparse matrix of shape {[rows, columns]} does not fit {list(dense.shape)}")
    if dense.ndim == 1:
        return reshape(sparse_mm(values, indices, pointers, shape, reshape(dense, (columns, 1))), (rows,))
    if not values.size:
        dtype = dtypes.promote(values.dtype, dense.dtype)
        return full(values, (rows, dense.shape[1]), 0, dtype)
    terms = reshape(values, (values.size, 1)) * take(dense, position(indices, columns, wrap=False))
    return scatter_into(full(terms, (rows, dense.shape[1]), 0), csr_rows(pointers, values.size), terms, add=True)


def _sparse_add(one: Any, i: Any, p: Any, other: Any, j: Any, q: Any, shape: Any) -> Any:
    rows, others = (np.repeat(np.arange(shape[0]), np.diff(x)) for x in (p, q))
    return _coo(np.concatenate([one, other]), np.concatenate([rows, others]), np.concatenate([i, j]), shape)


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, reference=_sparse_add, dtypes=_NUMBERS, concrete=(1, 2, 4, 5), scheme=("sparse-add",), method=False,
    samples=(
        sample(*_matrix, (4,), at(4, low=0, high=3), _pointers(0, 1, 2, 4), shape=(3, 4)),
        sample(*_empty, (2,), at(2, low=0, high=1), _pointers(0, 2), shape=(1, 2)),
    ),
)  # fmt: skip
def sparse_add(
    values: Value, indices: Value, pointers: Value, other_values: Value, other_indices: Value, other_pointers: Value,
    shape: Shape,
) -> Any:  # fmt: skip
    """(values, indices, pointers) of the sum of two sparse matrices of one shape: all places that either has."""
    found = _checked(values, indices, pointers, shape)
    _checked(other_values, other_indices, other_pointers, shape)
    places = [_places(i, p, found[1]) for i, p in ((indices, pointers), (other_indices, other_pointers))]
    return _united(concatenate([values, other_values]), np.concatenate(places), found)


def _places(indices: Any, pointers: Any, columns: int) -> Any:
    """The places of stored elements, counted row by row."""
    own = wrapped(indices.concrete(), columns, wrap=False)
    return _rows(np.asarray(pointers.concrete()), own.size) * columns + own


def _sparse_transpose(values: Any, indices: Any, pointers: Any, shape: Any) -> Any:
    order = np.lexsort((np.repeat(np.arange(shape[0]), np.diff(pointers)), indices))
    rows = np.repeat(np.arange(shape[0]), np.diff(pointers))[order]
    return values[order], rows, np.searchsorted(indices[order], np.arange(shape[1] + 1))


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, reference=_sparse_transpose, dtypes=_NUMBERS, method=False,
    samples=(sample(*_matrix, shape=(3, 4)), sample(*_empty, shape=(1, 2))),
)  # fmt: skip
def sparse_transpose(values: Value, indices: Value, pointers: Value, shape: Shape) -> Any:
    """(values, indices, pointers) of the transpose of a sparse matrix of a shape."""
    _, columns = _checked(values, indices, pointers, shape)
    order, turned, starts = csr_turned(indices, pointers, columns)
    return take(values, order), turned, starts
