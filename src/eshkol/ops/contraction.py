"""Products that sum over axes: matrices, vectors and what is said with them. Everything ends in `matrix_product`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.creation import full
from eshkol.ops.elementwise import conj
from eshkol.ops.joining import stack, unstack
from eshkol.ops.movement import align, permute, reshape
from eshkol.ops.row import Aval, Choice, HasAval, Linear, Macro, Pull, Shape, Value, composite, primitive, sample

GROUP = "contraction"
_NUMBERS = ("int", "float", "complex")
COUNTED = 1 << 32  # the array instructions count elements in 32 bits
BATCH_AXES = 2  # along which they multiply at full speed, where operands are shared along some


# --- the one primitive ----------------------------------------------------------------------------


def wide(array: Any) -> Any:
    """An array in a dtype that NumPy computes in: 16-bit floats as float32."""
    return array.astype(np.float32) if dtypes.of(array.dtype) in (dtypes.float16, dtypes.bfloat16) else array


def _infer_product(a: None, x: HasAval, y: HasAval) -> Aval:
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ShapeError(f"{list(x.shape)} and {list(y.shape)} are not both matrices", hint="use matmul for vectors")
    if x.shape[-1] != y.shape[-2]:
        raise _misfit(x.shape, y.shape)
    return Aval((*shapes.broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), x.dtype)


def _misfit(x: Shape, y: Shape) -> ShapeError:
    inner = y[-2] if len(y) > 1 else y[0]
    return ShapeError(
        f"shapes {list(x)} and {list(y)} do not fit: rows of {x[-1]} against columns of {inner}",
        hint="the last axis of x must be as long as the last but one of y: transpose one of them?",
    )


def _transpose_product(a: None, ct: Any, k: int, x: Any, y: Any) -> Any:
    return matmul(ct, turned(y)) if k == 0 else matmul(turned(x), ct)


def turned(x: Any) -> Any:
    """The matrices of the last two axes, transposed."""
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _batch_product(a: None, inputs: Any, batched: Any) -> Any:
    return matmul(*align(inputs, batched))


def _pull_product(e: Any, a: None, i: Any, x: Any, y: Any) -> Any:
    dtype = x.dtype
    exact = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    *batch, row, column = i

    def within(read: Any) -> list[Any]:
        extents = read.shape[:-2]
        return [0 if n == 1 else k for n, k in zip(extents, batch[len(batch) - len(extents) :], strict=True)]

    def body(j: Any) -> Any:
        one, other = x([*within(x), row, j[0]]), y([*within(y), j[0], column])
        return e.op("MUL", e.convert(one, exact), e.convert(other, exact))

    return e.convert(e.reduce("ADD", [x.shape[-1]], body, 0), dtype)


def _macro_product(b: Any, a: None, out: Any, x: Any, y: Any) -> None:
    sizes = {"m": x.shape[-2], "n": y.shape[-1], "k": x.shape[-1]}
    batch = out.shape[:-2]
    if shapes.count(batch) == 1:
        b.gemm(out.ty, out.address, x.address, y.address, **sizes)
        return
    shared = {} if x.shape[:-2] == y.shape[:-2] else {"a_strides": _steps(x, batch), "b_strides": _steps(y, batch)}
    b.batched_gemm(
        out.ty, out.address, x.address, y.address, batch=shapes.count(batch), batches=batch, **sizes, **shared
    )


def _steps(x: HasAval, batch: Shape) -> Shape:
    """How far apart an operand's matrices lie along each axis of the batch (0: it is one for all), and its rows."""
    lead = (1,) * (len(batch) + 2 - len(x.shape)) + tuple(x.shape)
    return (*(0 if n == 1 else shapes.count(lead[k + 1 :]) for k, n in enumerate(lead[:-2])), lead[-1])


def _plain(a: None, x: HasAval, y: HasAval) -> bool:
    """Whether an array instruction says it: floats, and batches that are shared along few groups of axes."""
    batch = shapes.broadcast(x.shape[:-2], y.shape[:-2])
    sizes = (x.shape, y.shape, (*batch, x.shape[-2], y.shape[-1]))
    if not x.dtype.is_float or any(shapes.count(s) >= COUNTED for s in sizes):
        return False
    found = [(p > 0, q > 0) for n, p, q in zip(batch, _steps(x, batch), _steps(y, batch), strict=False) if n > 1]
    return sum(k == 0 or kind != found[k - 1] for k, kind in enumerate(found)) <= BATCH_AXES


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_product, method=False,
    reference=lambda a, x, y: np.matmul(wide(x), wide(y)),
    derivative=Linear(_transpose_product), batch=_batch_product,
    lower=Choice(_plain, Macro(_macro_product), Pull(_pull_product)),
    work=lambda node, of: 2 * node.size * node.inputs[0].shape[-1],
    samples=(
        sample((2, 3), (3, 4)), sample((2, 2, 3), (2, 3, 2)), sample((2, 1, 2, 3), (3, 3, 2)), sample((2, 0), (0, 3)),
        sample((0, 2), (2, 3)), sample((2, 3), (2, 3, 1)),
    ),
)  # fmt: skip
def matrix_product(x: Value, y: Value) -> None:
    """The product of the matrices in the last two axes, batches in front broadcasting; `matmul` takes vectors too."""


# --- products of matrices and vectors -------------------------------------------------------------


def _shape(x: Any) -> Shape:
    """The shape of a tensor, or of a Python number."""
    return tuple(x.shape) if isinstance(x, Value) else ()


def tensor(given: Any, like: Any) -> Any:
    """A value; a Python number as one without axes, in the dtype in which it meets another value."""
    return given if isinstance(given, Value) else full(like, (), given, dtypes.promote_number(like.dtype, given))


@composite(
    group=GROUP, reference=lambda x, y: np.matmul(wide(x), wide(y)), dtypes=_NUMBERS,
    scheme=("matmul", "tensor-matmul", "parallel-tensor-matmul"),
    samples=(
        sample((2, 3), (3, 4)), sample((3,), (3,)), sample((3,), (3, 2)), sample((2, 3), (3,)),
        sample((2, 2, 3), (3, 2)), sample((3,), (2, 3, 2)), sample((2, 1, 2, 3), (3, 1)), sample((2, 2, 3), (3,)),
        sample((2, 0), (0, 3)), sample((0, 2, 3), (3, 1)),
    ),
)  # fmt: skip
def matmul(x: Value, y: Value) -> Any:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype."""
    left, right = _shape(x), _shape(y)
    if not left or not right:
        raise ShapeError(f"shapes {list(left)} and {list(right)}: a scalar is no matrix", hint="use * for scalars")
    if left[-1] != right[-2 if len(right) > 1 else 0]:
        raise _misfit(left, right)
    if len(right) == 1:
        return _dropped(matmul(x, reshape(y, (right[0], 1))), -1)
    if len(left) == 1:
        return _dropped(matmul(reshape(x, (1, left[0])), y), -2)
    if len(right) == 2 and len(left) > 2:  # one matrix for all: one long product
        rows = shapes.count(left[:-1])
        return reshape(matrix_product(reshape(x, (rows, left[-1])), y), (*left[:-1], right[-1]))
    return matrix_product(x, y)


def _dropped(x: Any, *axes: int) -> Any:
    """Without axes of extent 1."""
    return reshape(x, shapes.without(x.shape, [k % x.ndim for k in axes]))


def _exact(rank: int, *given: Any) -> None:
    """Refuse what has another number of axes, where no batch is meant."""
    for x in given:
        if len(_shape(x)) != rank:
            raise ShapeError(f"shape {list(_shape(x))} has not {rank} axes", hint="matmul takes vectors and batches")


@composite(
    group=GROUP, reference=lambda x, y: np.matmul(wide(x), wide(y)), dtypes=_NUMBERS,
    samples=(sample((2, 2, 3), (2, 3, 4)), sample((0, 2, 3), (0, 3, 2))),
)  # fmt: skip
def bmm(x: Value, y: Value) -> Any:
    """The product of two stacks of as many matrices."""
    _exact(3, x, y)
    if x.shape[0] != y.shape[0]:
        raise ShapeError(f"stacks {list(x.shape)} and {list(y.shape)} have {x.shape[0]} and {y.shape[0]} matrices")
    return matmul(x, y)


@composite(
    group=GROUP, reference=lambda x, y: np.matmul(wide(x), wide(y)[..., None])[..., 0], dtypes=_NUMBERS,
    aliases=("mv",), samples=(sample((2, 3), (3,)), sample((2, 2, 3), (3,)), sample((2, 3), (4, 3))),
)  # fmt: skip
def matvec(x: Value, y: Value) -> Any:
    """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting."""
    left, right = _shape(x), _shape(y)
    if len(left) < 2 or not right:
        raise ShapeError(f"shapes {list(left)} and {list(right)} are not a matrix and a vector")
    return _dropped(matmul(x, reshape(y, (*right, 1))), -1)


@composite(
    group=GROUP, reference=lambda x, y: np.sum(np.conj(wide(x)) * wide(y), axis=-1, dtype=wide(x).dtype),
    dtypes=_NUMBERS, samples=(sample((3,), (3,)), sample((2, 3), (3,)), sample((2, 1, 3), (2, 3)), sample((0,), (0,))),
)  # fmt: skip
def vecdot(x: Value, y: Value) -> Any:
    """The sum of conj(x) · y along the last axis, batches in front broadcasting."""
    left, right = _shape(x), _shape(y)
    if not left or not right or left[-1] != right[-1]:
        raise ShapeError(f"shapes {list(left)} and {list(right)} have not vectors of one length")
    return _dropped(matmul(reshape(_conj(x), (*left[:-1], 1, left[-1])), reshape(y, (*right, 1))), -1, -2)


def _conj(x: Any) -> Any:
    return conj(x) if x.dtype.is_complex else x


@composite(
    group=GROUP, reference=lambda x, y: np.vdot(wide(x), wide(y)), dtypes=_NUMBERS,
    samples=(sample((3,), (3,)), sample((2, 3), (6,)), sample((), ()), sample((0,), (0,))),
)  # fmt: skip
def vdot(x: Value, y: Value) -> Any:
    """The sum of conj(x) · y over all elements, as two long vectors."""
    y = tensor(y, x)
    return matmul(reshape(_conj(x), (x.size,)), reshape(y, (y.size,)))


@composite(
    group=GROUP, reference=lambda x, y: np.outer(wide(x), wide(y)), dtypes=_NUMBERS,
    samples=(sample((2,), (3,)), sample((2, 2), ()), sample((0,), (2,))),
)  # fmt: skip
def outer(x: Value, y: Value) -> Any:
    """Every element of x times every element of y: a matrix."""
    y = tensor(y, x)
    return reshape(x, (x.size, 1)) * reshape(y, (y.size,))


@composite(
    group=GROUP, reference=lambda x, weight, bias=None: _linear(x, weight, bias),
    samples=(
        sample((2, 3), (4, 3), (4,)), sample((3,), (4, 3)), sample((2, 2, 3), (4, 3), (4,)), sample((0, 3), (2, 3)),
    ),
)  # fmt: skip
def linear(x: Value, weight: Value, bias: Value | None = None) -> Any:
    """x · weightᵀ + bias along the last axis; the weight has the shape (out, in)."""
    _exact(2, weight)
    if not _shape(x) or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"x of shape {list(_shape(x))} has not the {weight.shape[1]} features of the weight {list(weight.shape)}",
            hint="the weight has the shape (out, in)",
        )
    product = matmul(x, turned(weight))
    return product if bias is None else product + bias


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    product = np.einsum("...i,oi->...o", wide(x), wide(weight))
    return product if bias is None else product + wide(bias)


@composite(
    group=GROUP, reference=lambda x, y, weight, bias=None: _bilinear(x, y, weight, bias), tolerance=2.0,
    samples=(sample((2, 3), (2, 2), (4, 3, 2), (4,)), sample((3,), (2,), (1, 3, 2))),
)  # fmt: skip
def bilinear(x: Value, y: Value, weight: Value, bias: Value | None = None) -> Any:
    """xᵀ · weight[o] · y + bias for every o, along the last axes; the weight has the shape (out, in of x, in of y)."""
    _exact(3, weight)
    out, first, second = weight.shape
    if _shape(x)[-1:] != (first,) or _shape(y)[-1:] != (second,):
        raise ShapeError(f"x {list(_shape(x))} and y {list(_shape(y))} have not the features of {list(weight.shape)}")
    half = reshape(matmul(x, reshape(permute(weight, (1, 0, 2)), (first, out * second))), (*x.shape[:-1], out, second))
    product = matvec(half, y)
    return product if bias is None else product + bias


def _bilinear(x: Any, y: Any, weight: Any, bias: Any) -> Any:
    product = np.einsum("...i,oij,...j->...o", wide(x), wide(weight), wide(y))
    return product if bias is None else product + wide(bias)


@composite(
    group=GROUP, reference=lambda input, x, y, beta=1, alpha=1: beta * wide(input) + alpha * (wide(x) @ wide(y)),
    method=False, tolerance=2.0,
    samples=(sample((2, 4), (2, 3), (3, 4)), sample((4,), (2, 3), (3, 4), beta=0.5, alpha=2)),
)  # fmt: skip
def addmm(input: Value, x: Value, y: Value, beta: float = 1, alpha: float = 1) -> Any:
    """beta · input + alpha · (x · y), for matrices x and y."""
    _exact(2, x, y)
    product = matmul(x, y)
    return (input if beta == 1 else beta * input) + (product if alpha == 1 else alpha * product)


# --- products over chosen axes --------------------------------------------------------------------

Labels = tuple[Any, ...]  # one for each axis; axes of one label belong together


def contract(x: Any, x_labels: Labels, y: Any, y_labels: Labels, kept: Collection[Any]) -> tuple[Any, Labels]:
    """The product of two tensors with labelled axes, summed over the labels both have that are not kept.

    No label stands twice in one tensor, labels of one tensor alone are kept, and equal labels have equal extents.
    The axes of the result: those both keep, then the rest of x, then the rest of y.
    """
    both = [n for n in x_labels if n in y_labels and n in kept]
    summed = [n for n in x_labels if n in y_labels and n not in kept]
    only_x = [n for n in x_labels if n not in y_labels]
    only_y = [n for n in y_labels if n not in x_labels]
    extents = dict(zip((*x_labels, *y_labels), (*x.shape, *y.shape), strict=True))

    def shape(*groups: list[Any]) -> Shape:
        return tuple(extents[n] for group in groups for n in group)

    x, y = arranged(x, x_labels, both + only_x + summed), arranged(y, y_labels, both + summed + only_y)
    if summed:
        inner = shapes.count(shape(summed))
        x = reshape(x, (*shape(both), shapes.count(shape(only_x)), inner))
        y = reshape(y, (*shape(both), inner, shapes.count(shape(only_y))))
        product = reshape(matmul(x, y), shape(both, only_x, only_y))
    else:
        product = reshape(x, (*x.shape, *(1,) * len(only_y))) * reshape(
            y, (*shape(both), *(1,) * len(only_x), *shape(only_y))
        )
    return product, (*both, *only_x, *only_y)


def arranged(x: Any, labels: Labels, wanted: Sequence[Any]) -> Any:
    """The axes in the order of the labels wanted."""
    order = tuple(labels.index(n) for n in wanted)
    return x if order == tuple(range(x.ndim)) else permute(x, order)


def _paired(x: Any, y: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """The sum over pairs of axes; what is left of x, then of y."""
    x_labels = list(range(x.ndim))
    y_labels = [x.ndim + k for k in range(y.ndim)]
    for one, other in pairs:
        if x.shape[one] != y.shape[other]:
            raise ShapeError(
                f"axis {one} of {list(x.shape)} and axis {other} of {list(y.shape)} are not equally long",
                hint="the axes that are summed over must match",
            )
        y_labels[other] = one
    kept = {*x_labels, *y_labels} - {one for one, _ in pairs}
    return contract(x, tuple(x_labels), y, tuple(y_labels), kept)[0]


AxisPairs = int | tuple[int | Sequence[int], int | Sequence[int]]


@composite(
    group=GROUP, reference=lambda x, y, axes=2: np.tensordot(wide(x), wide(y), axes), dtypes=_NUMBERS,
    scheme=("tensordot",),
    samples=(
        sample((2, 3, 4), (3, 4, 2)), sample((2, 3), (3, 2), axes=1), sample((2,), (3,), axes=0),
        sample((2, 3, 4), (4, 2), axes=([0, 2], [1, 0])), sample((2, 3), (2,), axes=(0, -1)),
        sample((0, 2), (2,), axes=1),
    ),
)  # fmt: skip
def tensordot(x: Value, y: Value, axes: AxisPairs = 2) -> Any:
    """The sum of products over axes: the last `axes` of x with the first of y, or the axes paired by two lists."""
    y = tensor(y, x)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x.ndim, y.ndim):
            raise ShapeError(f"axes={axes}: {list(x.shape)} and {list(y.shape)} have not as many axes")
        return _paired(x, y, [(x.ndim - axes + k, k) for k in range(axes)])
    one, other = ([given] if isinstance(given, int) else list(given) for given in axes)
    if len(one) != len(other):
        raise ShapeError(f"axes {one} and {other} do not pair: {len(one)} against {len(other)}")
    pairs = [(shapes.axis(k, x.ndim), shapes.axis(n, y.ndim)) for k, n in zip(one, other, strict=True)]
    if any(len({pair[side] for pair in pairs}) < len(pairs) for side in (0, 1)):
        raise ShapeError(f"an axis stands twice in {one} or {other}")
    return _paired(x, y, pairs)


@composite(
    group=GROUP, reference=lambda x, y: np.dot(wide(x), wide(y)), dtypes=_NUMBERS, scheme=("tensor-dot", "vector-dot"),
    samples=(
        sample((3,), (3,)), sample((2, 3), (3, 2)), sample((2, 3), (3,)), sample((), (2,)), sample((2, 3), (2, 3, 2)),
        sample((0,), (0,)),
    ),
)  # fmt: skip
def dot(x: Value, y: Value) -> Any:
    """The sum over the last axis of x and the last but one of y (the only one of a vector); scalars multiply."""
    if not _shape(x) or not _shape(y):
        return x * y
    return _paired(x, y, [(x.ndim - 1, max(y.ndim - 2, 0))])


@composite(
    group=GROUP, reference=lambda x, y: np.inner(wide(x), wide(y)), dtypes=_NUMBERS,
    samples=(sample((3,), (3,)), sample((2, 3), (4, 3)), sample((2, 2, 3), (3,)), sample((), (2,)), sample((0,), (0,))),
)  # fmt: skip
def inner(x: Value, y: Value) -> Any:
    """The sum over the last axes of x and y; scalars multiply."""
    if not _shape(x) or not _shape(y):
        return x * y
    return _paired(x, y, [(x.ndim - 1, y.ndim - 1)])


@composite(
    group=GROUP, reference=lambda x, y: np.kron(wide(x), wide(y)), dtypes=_NUMBERS,
    samples=(sample((2, 3), (2, 2)), sample((2,), (2, 3)), sample((), (2,)), sample((2,), (3,))),
)  # fmt: skip
def kron(x: Value, y: Value) -> Any:
    """The Kronecker product: every element of x times all of y, as blocks."""
    y = tensor(y, x)
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - len(s)) + tuple(s) for s in (x.shape, y.shape))
    blocks = reshape(x, [n for extent in left for n in (extent, 1)]) * reshape(
        y, [n for extent in right for n in (1, extent)]
    )
    return reshape(blocks, tuple(n * m for n, m in zip(left, right, strict=True)))


@composite(
    group=GROUP, reference=lambda x, y, axis=-1: np.cross(wide(x), wide(y), axis=axis), dtypes=_NUMBERS, tolerance=2.0,
    samples=(sample((3,), (3,)), sample((2, 3), (2, 3)), sample((2, 1, 3), (2, 3)), sample((3, 2), (3, 2), axis=0)),
)  # fmt: skip
def cross(x: Value, y: Value, axis: int = -1) -> Any:
    """The cross product of vectors of three along an axis, the others broadcasting."""
    y = tensor(y, x)
    one, other = shapes.axis(axis, x.ndim), shapes.axis(axis, y.ndim)
    if x.shape[one] != 3 or y.shape[other] != 3:
        raise ShapeError(f"vectors of {x.shape[one]} and {y.shape[other]} along axis {axis}: both must have 3 elements")
    (x0, x1, x2), (y0, y1, y2) = unstack(x, one), unstack(y, other)
    turned = (x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0)
    return stack(turned, shapes.axis(axis, max(x.ndim, y.ndim)))
