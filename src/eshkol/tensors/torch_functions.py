"""Functions that PyTorch has and the op table says with other rows: `addcmul`, `narrow`, `cdist`, `index_fill`, ...

Comes in: tensors. Goes out: tensors, computed by rows of the table, so that derivatives, vmap and devices follow. What
is only another name of a row stands in `torch_names.py`, which also says which of these are methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.graph.node import here
from eshkol.ops import dtypes, shapes
from eshkol.ops.dtypes import DType
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.make import asarray
from eshkol.tensors.pairs import named
from eshkol.tensors.value import Tensor

_ek = SimpleNamespace(**FUNCTIONS)
SOUGHT = 32  # elements among which others are looked for in order, rather than compared with each


def _axis(x: Any, dim: int) -> int:
    return shapes.axis(dim, x.ndim)


# --- element by element -----------------------------------------------------------------------------


def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """x + value · tensor1 · tensor2."""
    return x + value * tensor1 * tensor2


def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """x + value · tensor1 / tensor2."""
    return x + value * tensor1 / tensor2


def rsub(x: Any, other: Any, *, alpha: float = 1) -> Any:
    """other - alpha · x."""
    return other - alpha * x


def float_power(x: Any, exponent: Any) -> Any:
    """x to a power, in float64."""
    return asarray(x).to(dtypes.float64) ** exponent


def logit(x: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x)), of x brought between eps and 1 - eps if that is given."""
    inside = x if eps is None else _ek.clamp(x, eps, 1 - eps)
    return _ek.log(inside) - _ek.log1p(-inside)


def clamp_min(x: Any, min: Any) -> Any:
    """x, and min where x is below it."""
    return _ek.clamp(x, min=min)


def clamp_max(x: Any, max: Any) -> Any:
    """x, and max where x is above it."""
    return _ek.clamp(x, max=max)


def frac(x: Any) -> Any:
    """What is left of x without its whole part, with the sign of x."""
    return x - _ek.trunc(x)


def positive(x: Any) -> Any:
    """x itself."""
    return +asarray(x)


def fmax(x: Any, y: Any) -> Any:
    """The greater of x and y; where one is NaN, the other."""
    return _ek.where(_ek.isnan(x), y, _ek.where(_ek.isnan(y), x, _ek.maximum(x, y)))


def fmin(x: Any, y: Any) -> Any:
    """The lesser of x and y; where one is NaN, the other."""
    return _ek.where(_ek.isnan(x), y, _ek.where(_ek.isnan(y), x, _ek.minimum(x, y)))


def isposinf(x: Any) -> Any:
    """Whether x is +inf."""
    return asarray(x) == float("inf")


def isneginf(x: Any) -> Any:
    """Whether x is -inf."""
    return asarray(x) == float("-inf")


def isreal(x: Any) -> Any:
    """Whether the imaginary part is 0."""
    return _ek.imag(x) == 0


def signbit(x: Any) -> Any:
    """Whether x has a minus sign, also of -0.0."""
    given = asarray(x)
    return _ek.copysign(_ek.ones_like(given), given) < 0 if given.dtype.is_float else given < 0


def logaddexp2(x: Any, y: Any) -> Any:
    """log2(2^x + 2^y), without overflow."""
    scale = float(np.log(2.0))
    return _ek.logaddexp(x * scale, y * scale) / scale


def ldexp(x: Any, y: Any) -> Any:
    """x · 2^y."""
    return x * 2.0**y


def isin(elements: Any, test_elements: Any) -> Any:
    """Which elements are among others; NaN is among none."""
    x, others = asarray(elements), _ek.flatten(asarray(test_elements))
    if others.size < SOUGHT or any(y.dtype.is_bool or y.dtype.is_complex for y in (x, others)):
        return _ek.any(_ek.unsqueeze(x, -1) == others, -1)
    in_order = _ek.sort(others)[0]
    return in_order[_ek.minimum(_ek.searchsorted(in_order, x), others.size - 1)] == x


def polar(abs: Any, angle: Any) -> Any:
    """The complex numbers of absolute values and angles."""
    return _ek.complex(abs * _ek.cos(angle), abs * _ek.sin(angle))


def angle(x: Any) -> Any:
    """The angles of complex numbers; of real ones 0, or π where they are negative."""
    return _ek.atan2(_ek.imag(x), _ek.real(x))


def view_as_real(x: Any) -> Any:
    """Complex numbers as pairs of real ones, along a new last axis."""
    return _ek.stack([_ek.real(x), _ek.imag(x)], axis=-1)


def view_as_complex(x: Any) -> Any:
    """Pairs of real numbers along the last axis as complex ones."""
    return _ek.complex(x[..., 0], x[..., 1])


# --- shapes -----------------------------------------------------------------------------------------


def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Any:
    """One axis as several."""
    place = _axis(x, dim)
    return _ek.reshape(x, (*x.shape[:place], *sizes, *x.shape[place + 1 :]))


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """`length` elements along an axis, from `start` on."""
    place = _axis(x, dim)
    begin = start + x.shape[place] if start < 0 else start
    if not 0 <= begin <= begin + length <= x.shape[place]:
        raise ShapeError(
            f"narrow: {length} elements from {start} on go beyond axis {dim} of shape {list(x.shape)}", span=here()
        )
    return x[(slice(None),) * place + (slice(begin, begin + length),)]


def select(x: Any, dim: int, index: int) -> Any:
    """The elements at one position of an axis, without that axis."""
    return x[(slice(None),) * _axis(x, dim) + (index,)]


def tensor_split(x: Any, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """x in parts along an axis: so many, as equal as can be, or divided before these positions."""
    length = x.shape[_axis(x, dim)]
    if not isinstance(indices_or_sections, Iterable):
        size, longer = divmod(length, indices_or_sections)
        sizes = [size + (k < longer) for k in range(indices_or_sections)]
        ends = [*itertools.accumulate(sizes)]
    else:
        ends = [*indices_or_sections, length]
    return tuple(narrow(x, dim, begin, end - begin) for begin, end in itertools.pairwise([0, *ends]))


def _at_least(x: Any, ndim: int) -> Any:
    found = asarray(x)
    while found.ndim < ndim:
        found = _ek.unsqueeze(found, 0 if found.ndim < 2 else -1)
    return found


def atleast_1d(x: Any) -> Any:
    """x with an axis at least."""
    return _at_least(x, 1)


def atleast_2d(x: Any) -> Any:
    """x with two axes at least; new ones come first."""
    return _at_least(x, 2)


def atleast_3d(x: Any) -> Any:
    """x with three axes at least; the third comes last."""
    return _at_least(x, 3)


def dstack(tensors: Sequence[Any]) -> Any:
    """Tensors joined along the third axis."""
    return _ek.concatenate([_at_least(x, 3) for x in tensors], axis=2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Vectors as columns, and matrices, side by side."""
    return _ek.concatenate([x if x.ndim > 1 else _ek.reshape(x, (-1, 1)) for x in map(asarray, tensors)], axis=1)


def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> tuple[Any, ...]:
    """x in parts along the second axis, of a vector along its only one."""
    return tensor_split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> tuple[Any, ...]:
    """x in parts along the first axis."""
    return tensor_split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> tuple[Any, ...]:
    """x in parts along the third axis."""
    return tensor_split(x, indices_or_sections, 2)


def diagflat(x: Any, offset: int = 0) -> Any:
    """A matrix of zeros with all elements of x on a diagonal."""
    return _ek.diag(_ek.flatten(x), offset)


def fliplr(x: Any) -> Any:
    """Rows from right to left."""
    return _ek.flip(x, 1)


def flipud(x: Any) -> Any:
    """Rows from the last to the first."""
    return _ek.flip(x, 0)


def broadcast_shapes(*given: Sequence[int] | int) -> tuple[int, ...]:
    """The shape in which shapes meet."""
    return shapes.broadcast(*(shapes.extents(shape) for shape in given))


def tril_indices(row: int, col: int, offset: int = 0) -> Any:
    """The rows and columns of the places on and below a diagonal, as a 2 × n tensor."""
    return asarray(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0) -> Any:
    """The rows and columns of the places on and above a diagonal, as a 2 × n tensor."""
    return asarray(np.stack(np.triu_indices(row, offset, col)))


def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one, with zeros around them."""
    blocks = [_at_least(x, 2) for x in tensors]
    width = sum(x.shape[1] for x in blocks)
    left = itertools.accumulate((x.shape[1] for x in blocks), initial=0)
    return _ek.concatenate(
        [_ek.pad(x, ((0, 0), (k, width - k - x.shape[1]))) for x, k in zip(blocks, left, strict=False)]
    )


def cartesian_prod(*tensors: Any) -> Any:
    """Every choice of one element of each vector, as rows."""
    if len(tensors) == 1:
        return asarray(tensors[0])
    return _ek.stack([_ek.flatten(x) for x in _ek.meshgrid(*tensors, indexing="ij")], axis=1)


def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Every choice of r elements of a vector, in order, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array([*choose(range(x.shape[0]), r)], np.int64).reshape(-1, r)
    return x[asarray(places)]


# --- positions --------------------------------------------------------------------------------------


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    """x with one value at positions of an axis."""
    copy = asarray(x).clone()
    copy[(slice(None),) * _axis(x, dim) + (index,)] = value
    return copy


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """x with the slices of a source at positions of an axis."""
    return index_fill(x, dim, index, source)


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """x with the elements of a source, in order, where a mask holds."""
    chosen = _ek.broadcast_to(asarray(mask), x.shape)
    places = _ek.clamp(_ek.cumsum(_ek.cast(_ek.flatten(chosen), "int64"), 0) - 1, 0, max(source.size - 1, 0))
    return _ek.where(chosen, _ek.reshape(_ek.flatten(source)[places], x.shape), x)


def select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    """x with a slice at one position of an axis."""
    return _assigned(x, (slice(None),) * _axis(x, dim) + (index,), src)


def slice_scatter(
    x: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """x with the elements of src at a slice of an axis."""
    return _assigned(x, (slice(None),) * _axis(x, dim) + (slice(start, end, step),), src)


def _assigned(x: Any, index: Any, value: Any) -> Any:
    copy = asarray(x).clone()
    copy[index] = value
    return copy


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """The positions along each axis of a shape that flat ones stand for."""
    found, rest = [], asarray(indices)
    for extent in reversed(shapes.extents(shape)):
        found.append(rest % extent)
        rest = rest // extent
    return tuple(reversed(found))


_REDUCED = {"sum": "add", "amax": "max", "amin": "min", "prod": "mul"}


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """x with the elements of src combined into the places that an index says."""
    if reduce not in _REDUCED or not include_self:
        raise TensorError(
            f"scatter_reduce knows {', '.join(map(repr, _REDUCED))} with include_self=True, not {reduce!r}",
            span=here(), hint="use ek.scatter_add, or start from a tensor that holds the first values",
        )  # fmt: skip
    return _ek.scatter_along(x, dim, index, src, mode=_REDUCED[reduce])


# --- reductions -------------------------------------------------------------------------------------


def aminmax(x: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The least and the greatest element."""
    how = {"axis": dim, "keepdims": keepdim}
    return named("aminmax", (_ek.min(x, **how), _ek.max(x, **how)))


def var_mean(x: Any, dim: Any = None, *, correction: int = 0, keepdim: bool = False) -> tuple[Any, Any]:
    """The variance, divided by n - correction, and the mean."""
    return _ek.var(x, dim, correction, keepdim), _ek.mean(x, dim, keepdim)


def std_mean(x: Any, dim: Any = None, *, correction: int = 0, keepdim: bool = False) -> tuple[Any, Any]:
    """The standard deviation, of a variance divided by n - correction, and the mean."""
    return _ek.std(x, dim, correction, keepdim), _ek.mean(x, dim, keepdim)


def mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The value that comes most often along an axis (the least of several), and the last place where it is."""
    line = _ek.moveaxis(x, dim, -1)
    counts = _ek.sum(_ek.unsqueeze(line, -1) == _ek.unsqueeze(line, -2), -1)
    often = counts == _ek.max(counts, axis=-1, keepdims=True)
    sentinel = _ek.max(line, axis=-1, keepdims=True)
    values = _ek.min(_ek.where(often, line, sentinel), axis=-1, keepdims=True)
    places = _ek.max(_ek.where(line == values, _ek.arange(line.shape[-1]), -1), axis=-1, keepdims=True)
    both = (_ek.moveaxis(values, -1, dim), _ek.moveaxis(places, -1, dim))
    return named("mode", both if keepdim else tuple(_ek.squeeze(y, dim) for y in both))


def nansum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum of the elements that are not NaN."""
    return _ek.sum(_ek.where(_ek.isnan(x), 0.0, x), dim, keepdim)


def nanmean(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The mean of the elements that are not NaN."""
    return nansum(x, dim, keepdim) / _ek.sum(~_ek.isnan(x), dim, keepdim)


def logcumsumexp(x: Any, dim: int) -> Any:
    """The logarithm of the sum of e^x up to each element along an axis, without overflow."""
    most = _ek.max(x, axis=dim, keepdims=True)
    return _ek.log(_ek.cumsum(_ek.exp(x - most), dim)) + most


def diff(x: Any, n: int = 1, dim: int = -1) -> Any:
    """The differences between neighbours along an axis, n times over."""
    for _ in range(n):
        length = x.shape[_axis(x, dim)]
        x = narrow(x, dim, 1, length - 1) - narrow(x, dim, 0, length - 1)
    return x


def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral of a function that is y at x (or at steps of dx), by the trapezoidal rule."""
    length = y.shape[_axis(y, dim)]
    middle = (narrow(y, dim, 1, length - 1) + narrow(y, dim, 0, length - 1)) / 2
    return _ek.sum(middle * (dx if x is None else diff(x, 1, dim if x.ndim > 1 else 0)), dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral up to each point, by the trapezoidal rule."""
    length = y.shape[_axis(y, dim)]
    middle = (narrow(y, dim, 1, length - 1) + narrow(y, dim, 0, length - 1)) / 2
    return _ek.cumsum(middle * (dx if x is None else diff(x, 1, dim if x.ndim > 1 else 0)), dim)


def pdist(x: Any, p: float = 2) -> Any:
    """The distances between all pairs of rows, each once."""
    count = asarray(x).shape[0]
    first, second = np.triu_indices(count, 1)
    # Both ways and from itself is more than is asked for, but rows beside each other are read as they lie.
    return _ek.take(_ek.reshape(cdist(x, x, p), (-1,)), asarray(first * count + second))


def dist(x: Any, y: Any, p: float = 2) -> Any:
    """The p-norm of x - y."""
    return _ek.norm(x - y, p)


def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements are in each of equal bins, from the least to the greatest element unless bounds are given."""
    bounds = None if min == max else (float(min), float(max))
    counts, _ = _ek.histogram(x, bins, bounds)
    return _ek.cast(counts, asarray(x).dtype)


# --- linear algebra ---------------------------------------------------------------------------------


def mm(x: Any, y: Any) -> Any:
    """The product of two matrices."""
    x, y = asarray(x), asarray(y)
    if x.ndim != 2 or y.ndim != 2:
        raise ShapeError(
            f"mm takes two matrices, not shapes {list(x.shape)} and {list(y.shape)}", span=here(), hint="use ek.matmul"
        )
    return _ek.matmul(x, y)


def addmv(x: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta · x + alpha · mat · vec."""
    return beta * x + alpha * _ek.matmul(mat, vec)


def addr(x: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta · x + alpha · vec1 · vec2ᵀ."""
    return beta * x + alpha * _ek.outer(vec1, vec2)


def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta · x + alpha · batch1 · batch2, for stacks of matrices."""
    return beta * x + alpha * _ek.bmm(batch1, batch2)


def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta · x + alpha · the sum of batch1 · batch2 over the stack."""
    return beta * x + alpha * _ek.sum(_ek.bmm(batch1, batch2), 0)


def multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    letters = [chr(ord("a") + k) for k in range(len(tensors) + 1)]
    terms = ",".join(a + b for a, b in itertools.pairwise(letters))
    return _ek.einsum(f"{terms}->{letters[0]}{letters[-1]}", *tensors)


def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""
    return multi_dot(matrices)


def cdist(x1: Any, x2: Any, p: float = 2.0) -> Any:
    """The distance of every row of x1 from every row of x2."""
    return _ek.norm(_ek.unsqueeze(x1, -2) - _ek.unsqueeze(x2, -3), p, -1)


def logdet(x: Any) -> Any:
    """The logarithm of the determinant; NaN where it is negative."""
    sign, logarithm = _ek.slogdet(x)
    return _ek.where(sign < 0, float("nan"), logarithm)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element of a vector, as rows."""
    powers = _ek.arange(x.shape[0] if N is None else N)
    return _ek.unsqueeze(x, -1) ** (powers if increasing else _ek.flip(powers, 0))


def cov(x: Any, *, correction: int = 1) -> Any:
    """The covariances of the rows of a matrix."""
    moved = x - _ek.mean(x, -1, True)
    return _ek.matmul(moved, moved.T if moved.ndim == 2 else moved) / (x.shape[-1] - correction)


def corrcoef(x: Any) -> Any:
    """The correlations of the rows of a matrix."""
    found = cov(x)
    spread = _ek.sqrt(_ek.diagonal(found))
    return found / _ek.outer(spread, spread)


# --- dtypes -----------------------------------------------------------------------------------------


def is_tensor(given: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(given, Tensor)


def is_floating_point(x: Any) -> bool:
    """Whether its elements are floats."""
    return bool(asarray(x).dtype.is_float)


def is_complex(x: Any) -> bool:
    """Whether its elements are complex numbers."""
    return bool(asarray(x).dtype.is_complex)


def is_signed(x: Any) -> bool:
    """Whether its dtype has negative numbers."""
    return bool(asarray(x).dtype.signed and not asarray(x).dtype.is_bool)


def is_nonzero(x: Any) -> bool:
    """Whether the one element is not 0."""
    return bool(x)


def finfo(dtype: Any = "float32") -> Any:
    """The limits of a float dtype: eps, min, max, tiny, bits."""
    found = dtypes.of(dtype)
    if found is dtypes.bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(found.numpy)  # type: ignore[no-untyped-call]
    return np.finfo(found.numpy)


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype: min, max, bits."""
    return np.iinfo(dtypes.of(dtype).numpy)


def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype in which two dtypes meet."""
    return dtypes.promote(dtypes.of(type1), dtypes.of(type2))


def result_type(x: Any, y: Any) -> DType:
    """The dtype of what is computed from two tensors or numbers."""
    if isinstance(y, Tensor):
        return promote_types(x.dtype, y.dtype) if isinstance(x, Tensor) else result_type(y, x)
    return dtypes.promote_number(x.dtype, y) if isinstance(x, Tensor) else promote_types(type(x), type(y))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether numbers of a dtype are of a kind that another holds: no floats in integers."""
    return dtypes.of(from_).rank <= dtypes.of(to).rank
