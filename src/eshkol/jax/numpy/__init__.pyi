"""The names of eshkol.jax.numpy.__init__. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.numpy import angle as angle
from eshkol.jax.functions.numpy import append as append
from eshkol.jax.functions.numpy import arange as arange
from eshkol.jax.functions.numpy import argsort as argsort
from eshkol.jax.functions.numpy import array as array
from eshkol.jax.functions.numpy import array_equal as array_equal
from eshkol.jax.functions.numpy import array_split as array_split
from eshkol.jax.functions.numpy import asarray as asarray
from eshkol.jax.functions.numpy import astype as astype
from eshkol.jax.functions.numpy import atleast_1d as atleast_1d
from eshkol.jax.functions.numpy import atleast_2d as atleast_2d
from eshkol.jax.functions.numpy import atleast_3d as atleast_3d
from eshkol.jax.functions.numpy_more import average as average
from eshkol.jax.functions.numpy_more import block as block
from eshkol.jax.functions.numpy_more import cbrt as cbrt
from eshkol.jax.functions.numpy import choose as choose
from eshkol.jax.functions.numpy import clip as clip
from eshkol.jax.functions.numpy import column_stack as column_stack
from eshkol.jax.functions.numpy_more import compress as compress
from eshkol.jax.functions.numpy_more import convolve as convolve
from eshkol.jax.functions.numpy_more import corrcoef as corrcoef
from eshkol.jax.functions.numpy_more import correlate as correlate
from eshkol.jax.functions.numpy_more import cov as cov
from eshkol.jax.functions.numpy import cumprod as cumprod
from eshkol.jax.functions.numpy import cumsum as cumsum
from eshkol.jax.functions.numpy_more import delete as delete
from eshkol.jax.functions.numpy_more import diag_indices as diag_indices
from eshkol.jax.functions.numpy import diagflat as diagflat
from eshkol.jax.functions.numpy_more import diff as diff
from eshkol.jax.functions.numpy import divmod as divmod
from eshkol.jax.functions.numpy import dstack as dstack
from eshkol.jax.functions.numpy_more import ediff1d as ediff1d
from eshkol.jax.functions.numpy import einsum as einsum
from eshkol.jax.functions.numpy import eye as eye
from eshkol.jax.numpy import fft as fft
from eshkol.jax.functions.numpy import flatnonzero as flatnonzero
from eshkol.jax.functions.numpy import fliplr as fliplr
from eshkol.jax.functions.numpy import flipud as flipud
from eshkol.jax.functions.numpy_more import float_power as float_power
from eshkol.jax.functions.numpy import full as full
from eshkol.jax.functions.numpy import geomspace as geomspace
from eshkol.jax.functions.numpy_more import gradient as gradient
from eshkol.jax.functions.numpy import hsplit as hsplit
from eshkol.jax.functions.numpy_more import insert as insert
from eshkol.jax.functions.numpy_more import interp as interp
from eshkol.jax.functions.numpy_more import intersect1d as intersect1d
from eshkol.jax.functions.numpy_more import isin as isin
from eshkol.jax.functions.numpy_more import isneginf as isneginf
from eshkol.jax.functions.numpy_more import isposinf as isposinf
from eshkol.jax.numpy import linalg as linalg
from eshkol.jax.functions.numpy import linspace as linspace
from eshkol.jax.functions.numpy_more import logaddexp2 as logaddexp2
from eshkol.jax.functions.numpy import logspace as logspace
from eshkol.jax.functions.numpy import max as max
from eshkol.jax.functions.numpy import mean as mean
from eshkol.jax.functions.numpy import meshgrid as meshgrid
from eshkol.jax.functions.numpy import min as min
from eshkol.jax.functions.numpy_more import nanmax as nanmax
from eshkol.jax.functions.numpy_more import nanmean as nanmean
from eshkol.jax.functions.numpy_more import nanmin as nanmin
from eshkol.jax.functions.numpy_more import nanprod as nanprod
from eshkol.jax.functions.numpy_more import nanstd as nanstd
from eshkol.jax.functions.numpy_more import nansum as nansum
from eshkol.jax.functions.numpy_more import nanvar as nanvar
from eshkol.tensors.value import Tensor as ndarray
from eshkol.jax.functions.numpy import ndim as ndim
from eshkol.jax.functions.numpy import ones as ones
from eshkol.jax.functions.numpy import pad as pad
from eshkol.jax.functions.numpy_more import percentile as percentile
from eshkol.jax.functions.numpy_more import polyadd as polyadd
from eshkol.jax.functions.numpy_more import polymul as polymul
from eshkol.jax.functions.numpy_more import polyval as polyval
from eshkol.jax.functions.numpy_more import positive as positive
from eshkol.jax.functions.numpy import prod as prod
from eshkol.jax.functions.numpy_more import ptp as ptp
from eshkol.jax.functions.numpy_more import ravel_multi_index as ravel_multi_index
from eshkol.jax.functions.numpy import repeat as repeat
from eshkol.jax.functions.numpy import reshape as reshape
from eshkol.jax.functions.numpy import rollaxis as rollaxis
from eshkol.jax.functions.numpy import round as round
from eshkol.jax.functions.numpy import searchsorted as searchsorted
from eshkol.jax.functions.numpy import select as select
from eshkol.jax.functions.numpy_more import setdiff1d as setdiff1d
from eshkol.jax.functions.numpy import shape as shape
from eshkol.jax.functions.numpy_more import signbit as signbit
from eshkol.jax.functions.numpy import size as size
from eshkol.jax.functions.numpy import sort as sort
from eshkol.jax.functions.numpy import split as split
from eshkol.jax.functions.numpy import std as std
from eshkol.jax.functions.numpy import sum as sum
from eshkol.jax.functions.numpy import take as take
from eshkol.jax.functions.numpy import tensordot as tensordot
from eshkol.jax.functions.numpy import transpose as transpose
from eshkol.jax.functions.numpy_more import trapezoid as trapezoid
from eshkol.jax.functions.numpy import tri as tri
from eshkol.jax.functions.numpy_more import tril_indices as tril_indices
from eshkol.jax.functions.numpy_more import triu_indices as triu_indices
from eshkol.jax.functions.numpy_more import union1d as union1d
from eshkol.jax.functions.numpy_more import unravel_index as unravel_index
from eshkol.jax.functions.numpy import vander as vander
from eshkol.jax.functions.numpy import var as var
from eshkol.jax.functions.numpy import vsplit as vsplit
from eshkol.jax.functions.numpy import where as where
from eshkol.jax.functions.numpy import zeros as zeros
from eshkol.tensors.methods import TensorLike

__all__ = ["abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "append", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "array", "array_equal", "array_split", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bfloat16", "bincount", "bitwise_and", "bitwise_invert", "bitwise_not", "bitwise_or", "bitwise_xor", "block", "bool_", "broadcast_arrays", "broadcast_to", "cbrt", "ceil", "choose", "clip", "column_stack", "complex128", "complex64", "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "deg2rad", "degrees", "delete", "diag", "diag_indices", "diagflat", "diagonal", "diff", "divide", "divmod", "dot", "dstack", "e", "ediff1d", "einsum", "empty", "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "fft", "fix", "flatnonzero", "flip", "fliplr", "flipud", "float16", "float32", "float64", "float_power", "floor", "floor_divide", "fmod", "full", "full_like", "geomspace", "gradient", "greater", "greater_equal", "heaviside", "histogram", "hsplit", "hstack", "hypot", "identity", "imag", "inf", "inner", "insert", "int16", "int32", "int64", "int8", "interp", "intersect1d", "invert", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "kron", "left_shift", "less", "less_equal", "linalg", "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "matmul", "matvec", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mod", "moveaxis", "multiply", "nan", "nan_to_num", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "ndarray", "ndim", "negative", "newaxis", "nonzero", "not_equal", "ones", "ones_like", "outer", "pad", "percentile", "permute_dims", "pi", "polyadd", "polymul", "polyval", "positive", "pow", "power", "prod", "ptp", "quantile", "rad2deg", "radians", "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "right_shift", "roll", "rollaxis", "rot90", "round", "row_stack", "searchsorted", "select", "setdiff1d", "shape", "sign", "signbit", "sin", "sinc", "sinh", "size", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8", "union1d", "unique", "unravel_index", "unstack", "vander", "var", "vdot", "vecdot", "vsplit", "vstack", "where", "zeros", "zeros_like"]

def abs(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def absolute(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def acos(x: TensorLike) -> Tensor:
    """The angle in radians whose cosine is x.

    Arguments:
        x: a tensor
    """
    ...
def acosh(x: TensorLike) -> Tensor:
    """The number, not negative, whose cosh is x.

    Arguments:
        x: a tensor
    """
    ...
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """x + y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def all(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """Whether every element along axes holds (is not 0); of none, it is true.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def allclose(
    x: TensorLike,
    y: TensorLike,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Whether all elements are close, in the sense of isclose.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        rtol: how large a difference is allowed, relative to the size of the numbers
        atol: how large a difference is allowed at least
        equal_nan: whether NaN counts as equal to NaN
    """
    ...
def amax(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The greatest element along axes; NaN if one is; equal greatest ones share the tangent.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def amin(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The least element along axes; NaN if one is; equal least ones share the tangent.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def any(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """Whether an element along axes holds (is not 0); of none, it is false.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def arccos(x: TensorLike) -> Tensor:
    """The angle in radians whose cosine is x.

    Arguments:
        x: a tensor
    """
    ...
def arccosh(x: TensorLike) -> Tensor:
    """The number, not negative, whose cosh is x.

    Arguments:
        x: a tensor
    """
    ...
def arcsin(x: TensorLike) -> Tensor:
    """The angle in radians whose sine is x.

    Arguments:
        x: a tensor
    """
    ...
def arcsinh(x: TensorLike) -> Tensor:
    """The number whose sinh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def arctan(x: TensorLike) -> Tensor:
    """The angle in radians whose tangent is x.

    Arguments:
        x: a tensor
    """
    ...
def arctan2(x: TensorLike, y: TensorLike) -> Tensor:
    """The angle of the point (y, x) in radians: atan2(y, x) of other systems, first operand upward.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def arctanh(x: TensorLike) -> Tensor:
    """The number whose tanh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def argmax(x: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the greatest element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def argmin(x: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the least element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def argwhere(x: TensorLike) -> Tensor:
    """The positions of the elements that are not 0, one row of int64 each. x must be known.

    Arguments:
        x: a tensor
    """
    ...
def asin(x: TensorLike) -> Tensor:
    """The angle in radians whose sine is x.

    Arguments:
        x: a tensor
    """
    ...
def asinh(x: TensorLike) -> Tensor:
    """The number whose sinh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def atan(x: TensorLike) -> Tensor:
    """The angle in radians whose tangent is x.

    Arguments:
        x: a tensor
    """
    ...
def atan2(x: TensorLike, y: TensorLike) -> Tensor:
    """The angle of the point (y, x) in radians: atan2(y, x) of other systems, first operand upward.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def atanh(x: TensorLike) -> Tensor:
    """The number whose tanh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
bfloat16: DType
def bincount(
    x: TensorLike,
    weights: TensorLike | None = None,
    minlength: builtins.int = 0,
    length: builtins.int | None = None,
) -> Tensor:
    """How often each integer from 0 on occurs in a vector, or the sum of the weights where it does.

    The result has `length` elements; without it x must be known, and there are at least `minlength`.

    Arguments:
        x: a tensor
        weights: what each element counts; 1 unless given
        minlength: how many elements the result has at least
        length: how many positions
    """
    ...
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits set in both; of bools, whether both hold.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def bitwise_invert(x: TensorLike) -> Tensor:
    """Every bit turned over; of bools, whether x does not hold.

    Arguments:
        x: a tensor
    """
    ...
def bitwise_not(x: TensorLike) -> Tensor:
    """Every bit turned over; of bools, whether x does not hold.

    Arguments:
        x: a tensor
    """
    ...
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits set in either; of bools, whether either holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits set in one of the two.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
bool_: DType
def broadcast_arrays(tensors: Sequence[TensorLike]) -> builtins.tuple[Tensor, ...]:
    """Tensors, each expanded to the shape in which they all meet.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def broadcast_to(x: TensorLike, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent.

    Arguments:
        x: a tensor
        shape: the shape wanted; -1 keeps an extent
    """
    ...
def ceil(x: TensorLike) -> Tensor:
    """The least integer not below x.

    Arguments:
        x: a tensor
    """
    ...
complex128: DType
complex64: DType
def concat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors after one another along an axis that they have.

    Arguments:
        tensors: a sequence of tensors
        axis: the axis; negative numbers count from the last one
    """
    ...
def concatenate(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors after one another along an axis that they have.

    Arguments:
        tensors: a sequence of tensors
        axis: the axis; negative numbers count from the last one
    """
    ...
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate.

    Arguments:
        x: a tensor
    """
    ...
def conjugate(x: TensorLike) -> Tensor:
    """The complex conjugate.

    Arguments:
        x: a tensor
    """
    ...
def copysign(x: TensorLike, y: TensorLike) -> Tensor:
    """|x| with the sign of y, also of -0.0 (NaN counts as positive); the derivative where x is 0 is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def cos(x: TensorLike) -> Tensor:
    """Cosine of radians.

    Arguments:
        x: a tensor
    """
    ...
def cosh(x: TensorLike) -> Tensor:
    """Hyperbolic cosine.

    Arguments:
        x: a tensor
    """
    ...
def count_nonzero(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """How many elements along axes are not 0; NaN counts.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def cross(x: TensorLike, y: TensorLike, axis: builtins.int = -1) -> Tensor:
    """The cross product of vectors of three along an axis, the others broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        axis: the axis; negative numbers count from the last one
    """
    ...
def deg2rad(x: TensorLike) -> Tensor:
    """Degrees as radians.

    Arguments:
        x: a tensor
    """
    ...
def degrees(x: TensorLike) -> Tensor:
    """Radians as degrees.

    Arguments:
        x: a tensor
    """
    ...
def diag(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix of zeros with a vector on it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def diagonal(x: TensorLike, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
    """The diagonal of the matrices in two axes, as the last axis of the result; offset > 0 is above the main one.

    Arguments:
        x: a tensor
        offset: which diagonal: 0 is the main one, positive numbers are above it
        axis1: the first axis
        axis2: the second axis
    """
    ...
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum over the last axis of x and the last but one of y (the only one of a vector); scalars multiply.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
e: builtins.float
def empty(shape: builtins.int | Sequence[builtins.int], dtype: DType | builtins.str | None = 'float32') -> Tensor:
    """Zeros; `empty` is the same, for nothing is ever left unset.

    Arguments:
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def empty_like(x: TensorLike, dtype: DType | builtins.str | None = None) -> Tensor:
    """Zeros of the shape of x, and of its dtype unless another is given.

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x = y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
euler_gamma: builtins.float
def exp(x: TensorLike) -> Tensor:
    """e to the power x.

    Arguments:
        x: a tensor
    """
    ...
def exp2(x: TensorLike) -> Tensor:
    """2 to the power x.

    Arguments:
        x: a tensor
    """
    ...
def expand_dims(x: TensorLike, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x with new axes of extent 1, at these places of the result.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def expm1(x: TensorLike) -> Tensor:
    """e^x - 1, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def fabs(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def fix(x: TensorLike) -> Tensor:
    """x without its fraction.

    Arguments:
        x: a tensor
    """
    ...
def flip(x: TensorLike, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The elements in reverse order along axes (all of them by default).

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
float16: DType
float32: DType
float64: DType
def floor(x: TensorLike) -> Tensor:
    """The greatest integer not above x.

    Arguments:
        x: a tensor
    """
    ...
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """The greatest integer not above x / y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def fmod(x: TensorLike, y: TensorLike) -> Tensor:
    """What truncating division leaves, with the sign of x.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def full_like(x: TensorLike, fill_value: builtins.complex, dtype: DType | builtins.str | None = None) -> Tensor:
    """One number everywhere, of the shape of x, and of its dtype unless another is given; it must hold the number.

    Arguments:
        x: a tensor
        fill_value: the number that is everywhere
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x > y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≥ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def heaviside(x: TensorLike, values: TensorLike) -> Tensor:
    """0 where x is negative, 1 where it is positive, and `values` where it is 0; NaN stays.

    Arguments:
        x: a tensor
        values: what stands where x is 0
    """
    ...
def histogram(x: TensorLike, bins: builtins.int = 10, range: Any = None) -> builtins.tuple[Tensor, Tensor]:
    """How many elements lie in each of several bins of one width, and the edges of the bins.

    Edges belong to the bin above them, the last one to the last bin; what is outside the range does not count. Without
    a range it is from the least to the greatest element, which must be known.

    Arguments:
        x: a tensor
        bins: how many bins
        range: (least, greatest): what the bins cover
    """
    ...
def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the second axis, vectors along their only one.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def hypot(x: TensorLike, y: TensorLike) -> Tensor:
    """√(x² + y²) without overflow; the derivative at 0 is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def identity(
    n: builtins.int,
    m: builtins.int | None = None,
    k: builtins.int = 0,
    dtype: DType | builtins.str | None = 'float32',
) -> Tensor:
    """Ones on the diagonal number k of an n × m matrix (square unless m is given), zeros elsewhere.

    Arguments:
        n: how many rows
        m: how many columns; as many as rows unless given
        k: which diagonal: 0 is the main one, positive numbers are above it
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def imag(x: TensorLike) -> Tensor:
    """The imaginary part; 0 of a real number.

    Arguments:
        x: a tensor
    """
    ...
inf: builtins.float
def inner(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum over the last axes of x and y; scalars multiply.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
int16: DType
int32: DType
int64: DType
int8: DType
def invert(x: TensorLike) -> Tensor:
    """Every bit turned over; of bools, whether x does not hold.

    Arguments:
        x: a tensor
    """
    ...
def isclose(
    x: TensorLike,
    y: TensorLike,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Whether |x - y| ≤ atol + rtol·|y|; equal infinities are close, NaNs only with equal_nan.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        rtol: how large a difference is allowed, relative to the size of the numbers
        atol: how large a difference is allowed at least
        equal_nan: whether NaN counts as equal to NaN
    """
    ...
def isfinite(x: TensorLike) -> Tensor:
    """Whether x is neither infinite nor NaN.

    Arguments:
        x: a tensor
    """
    ...
def isinf(x: TensorLike) -> Tensor:
    """Whether x is infinite.

    Arguments:
        x: a tensor
    """
    ...
def isnan(x: TensorLike) -> Tensor:
    """Whether x is NaN.

    Arguments:
        x: a tensor
    """
    ...
def kron(x: TensorLike, y: TensorLike) -> Tensor:
    """The Kronecker product: every element of x times all of y, as blocks.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved up by y places, zeros following.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x < y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≤ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def log(x: TensorLike) -> Tensor:
    """Natural logarithm.

    Arguments:
        x: a tensor
    """
    ...
def log10(x: TensorLike) -> Tensor:
    """Logarithm to the base 10.

    Arguments:
        x: a tensor
    """
    ...
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def log2(x: TensorLike) -> Tensor:
    """Logarithm to the base 2.

    Arguments:
        x: a tensor
    """
    ...
def logaddexp(x: TensorLike, y: TensorLike) -> Tensor:
    """log(e^x + e^y) without overflow; where both are -inf the derivative is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x and y both hold (are not 0).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_not(x: TensorLike) -> Tensor:
    """Whether x does not hold (is 0).

    Arguments:
        x: a tensor
    """
    ...
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x or y holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether exactly one of x and y holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def matvec(x: TensorLike, y: TensorLike) -> Tensor:
    """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The greater of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def median(x: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The middle element along an axis, or the mean of the middle two as NumPy has it; NaN if one of them is.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The lesser of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """What floor division leaves, with the sign of y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def moveaxis(
    x: TensorLike,
    source: builtins.int | Sequence[builtins.int],
    destination: builtins.int | Sequence[builtins.int],
) -> Tensor:
    """Axes moved to other places; the rest keeps its order.

    Arguments:
        x: a tensor
        source: where axes are now
        destination: where the axes go
    """
    ...
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """x · y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
nan: builtins.float
def nan_to_num(
    x: TensorLike,
    nan: builtins.float = 0.0,
    posinf: builtins.float | None = None,
    neginf: builtins.float | None = None,
) -> Tensor:
    """x with numbers for NaN and the infinities (by default 0 and the greatest and least finite ones).

    Arguments:
        x: a tensor
        nan: what stands for NaN
        posinf: what stands for infinity; the greatest number of the dtype unless given
        neginf: what stands for minus infinity; the least number of the dtype unless given
    """
    ...
def negative(x: TensorLike) -> Tensor:
    """-x.

    Arguments:
        x: a tensor
    """
    ...
newaxis: Any
def nonzero(x: TensorLike) -> builtins.tuple[Tensor, ...]:
    """The positions of the elements that are not 0: one vector of int64 per axis. x must be known.

    Arguments:
        x: a tensor
    """
    ...
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≠ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def ones_like(x: TensorLike, dtype: DType | builtins.str | None = None) -> Tensor:
    """Ones of the shape of x, and of its dtype unless another is given.

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """Every element of x times every element of y: a matrix.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def permute_dims(x: TensorLike, axes: Sequence[builtins.int]) -> Tensor:
    """The axes in another order.

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
pi: builtins.float
def pow(x: TensorLike, y: TensorLike | builtins.float) -> Tensor:
    """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def power(x: TensorLike, y: TensorLike) -> Tensor:
    """x to the power y, element by element; of integers, a negative power is an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def quantile(
    x: TensorLike,
    q: builtins.float,
    axis: builtins.int | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The number below which a part q of the elements lies, between two of them if need be; NaN if one of them is.

    Arguments:
        x: a tensor
        q: which part, from 0 to 1
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def rad2deg(x: TensorLike) -> Tensor:
    """Radians as degrees.

    Arguments:
        x: a tensor
    """
    ...
def radians(x: TensorLike) -> Tensor:
    """Degrees as radians.

    Arguments:
        x: a tensor
    """
    ...
def ravel(x: TensorLike, start_axis: builtins.int = 0, end_axis: builtins.int = -1) -> Tensor:
    """x with a run of axes made one, by default all; a scalar gets an axis.

    Arguments:
        x: a tensor
        start_axis: the first axis of those that become one
        end_axis: the last axis of those that become one
    """
    ...
def real(x: TensorLike) -> Tensor:
    """The real part.

    Arguments:
        x: a tensor
    """
    ...
def reciprocal(x: TensorLike) -> Tensor:
    """1 / x; integers become floats first.

    Arguments:
        x: a tensor
    """
    ...
def remainder(x: TensorLike, y: TensorLike) -> Tensor:
    """What floor division leaves, with the sign of y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved down by y places; signs are kept.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def roll(
    x: TensorLike,
    shift: builtins.int | Sequence[builtins.int],
    axis: builtins.int | Sequence[builtins.int] | None = None,
) -> Tensor:
    """x shifted along axes, where what leaves at one end comes in at the other (None: all elements in a row).

    Arguments:
        x: a tensor
        shift: by how many places
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def rot90(x: TensorLike, k: builtins.int = 1, axes: Sequence[builtins.int] = ...) -> Tensor:
    """x turned by k quarters in the plane of two axes, from the first towards the second.

    Arguments:
        x: a tensor
        k: how many quarters
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def row_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the first axis, vectors as rows.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1.

    Arguments:
        x: a tensor
    """
    ...
def sin(x: TensorLike) -> Tensor:
    """Sine of radians.

    Arguments:
        x: a tensor
    """
    ...
def sinc(x: TensorLike) -> Tensor:
    """sin(πx) / (πx), and 1 at 0, with its derivatives.

    Arguments:
        x: a tensor
    """
    ...
def sinh(x: TensorLike) -> Tensor:
    """Hyperbolic sine, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def sqrt(x: TensorLike) -> Tensor:
    """Square root.

    Arguments:
        x: a tensor
    """
    ...
def square(x: TensorLike) -> Tensor:
    """x².

    Arguments:
        x: a tensor
    """
    ...
def squeeze(x: TensorLike, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """x without axes of extent 1: those given (which must have it), or all.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def stack(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis.

    Arguments:
        tensors: a sequence of tensors
        axis: the axis; negative numbers count from the last one
    """
    ...
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def swapaxes(x: TensorLike, axis0: builtins.int, axis1: builtins.int) -> Tensor:
    """Two axes exchanged.

    Arguments:
        x: a tensor
        axis0: the first axis
        axis1: the first axis
    """
    ...
def take_along_axis(x: TensorLike, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
    """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

    Arguments:
        x: a tensor
        indices: integers: the positions
        axis: the axis; negative numbers count from the last one
    """
    ...
def tan(x: TensorLike) -> Tensor:
    """Tangent of radians.

    Arguments:
        x: a tensor
    """
    ...
def tanh(x: TensorLike) -> Tensor:
    """Hyperbolic tangent.

    Arguments:
        x: a tensor
    """
    ...
def tile(x: TensorLike, reps: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x several times along each axis, the last of which `reps` ends with.

    Arguments:
        x: a tensor
        reps: how often along each axis
    """
    ...
def trace(x: TensorLike, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
    """The sum of a diagonal of the matrices in two axes.

    Arguments:
        x: a tensor
        offset: which diagonal: 0 is the main one, positive numbers are above it
        axis1: the first axis
        axis2: the second axis
    """
    ...
def tril(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The elements of matrices on and below the k-th diagonal, zeros above it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def triu(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The elements of matrices on and above the k-th diagonal, zeros below it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def true_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def trunc(x: TensorLike) -> Tensor:
    """x without its fraction.

    Arguments:
        x: a tensor
    """
    ...
uint16: DType
uint32: DType
uint64: DType
uint8: DType
@overload
def unique(
    x: TensorLike,
    return_inverse: Literal[True],
    return_counts: builtins.bool = False,
) -> builtins.tuple[Tensor, ...]:
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: builtins.bool = False,
    *,
    return_counts: Literal[True],
) -> builtins.tuple[Tensor, ...]:
    ...
@overload
def unique(x: TensorLike, return_inverse: Literal[False] = False, return_counts: Literal[False] = False) -> Tensor:
    """The distinct elements in order; also where each element of x is among them, and how often each occurs.

    x must be known. All NaNs count as one element. The tangent is that of the first of equal elements.

    Arguments:
        x: a tensor
        return_inverse: whether the place of each element of x is given too
        return_counts: whether it is given how often each occurs
    """
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, ...]:
    ...
def unstack(x: TensorLike, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """The slices of x along an axis, without it.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def vdot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of conj(x) · y over all elements, as two long vectors.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def vecdot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of conj(x) · y along the last axis, batches in front broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the first axis, vectors as rows.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def zeros_like(x: TensorLike, dtype: DType | builtins.str | None = None) -> Tensor:
    """Zeros of the shape of x, and of its dtype unless another is given.

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
