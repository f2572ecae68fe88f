"""The names of eshkol.jax.lax. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.convolutions import ConvDimensionNumbers as ConvDimensionNumbers
from eshkol.jax.functions.lax import argmax as argmax
from eshkol.jax.functions.lax import argmin as argmin
from eshkol.tensors.ways import associative_scan as associative_scan
from eshkol.jax.functions.lax import broadcast as broadcast
from eshkol.jax.functions.lax import broadcast_in_dim as broadcast_in_dim
from eshkol.jax.functions.lax import broadcasted_iota as broadcasted_iota
from eshkol.jax.functions.lax import cbrt as cbrt
from eshkol.jax.functions.lax import clamp as clamp
from eshkol.jax.functions.lax import collapse as collapse
from eshkol.jax.functions.lax import concatenate as concatenate
from eshkol.jax.functions.lax import cond as cond
from eshkol.jax.functions.convolutions import conv as conv
from eshkol.jax.functions.convolutions import conv_dimension_numbers as conv_dimension_numbers
from eshkol.jax.functions.convolutions import conv_general_dilated as conv_general_dilated
from eshkol.jax.functions.convolutions import conv_with_general_padding as conv_with_general_padding
from eshkol.jax.functions.lax import convert_element_type as convert_element_type
from eshkol.jax.functions.lax import cumlogsumexp as cumlogsumexp
from eshkol.jax.functions.lax import cummax as cummax
from eshkol.jax.functions.lax import cummin as cummin
from eshkol.jax.functions.lax import cumprod as cumprod
from eshkol.jax.functions.lax import cumsum as cumsum
from eshkol.jax.functions.lax import dot as dot
from eshkol.jax.functions.lax import dot_general as dot_general
from eshkol.jax.functions.lax import dynamic_index_in_dim as dynamic_index_in_dim
from eshkol.jax.functions.lax import dynamic_slice as dynamic_slice
from eshkol.jax.functions.lax import dynamic_slice_in_dim as dynamic_slice_in_dim
from eshkol.jax.functions.lax import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from eshkol.jax.functions.lax import dynamic_update_slice as dynamic_update_slice
from eshkol.jax.functions.lax import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from eshkol.jax.functions.lax import fori_loop as fori_loop
from eshkol.jax.functions.lax import index_in_dim as index_in_dim
from eshkol.jax.functions.lax import integer_pow as integer_pow
from eshkol.jax.functions.lax import iota as iota
from eshkol.jax.functions.lax import map as map
from eshkol.jax.functions.lax import pad as pad
from eshkol.jax.functions.lax import reduce_and as reduce_and
from eshkol.jax.functions.lax import reduce_or as reduce_or
from eshkol.jax.functions.lax import reshape as reshape
from eshkol.jax.functions.lax import scan as scan
from eshkol.jax.functions.lax import select as select
from eshkol.jax.functions.lax import select_n as select_n
from eshkol.jax.functions.lax import slice as slice
from eshkol.jax.functions.lax import slice_in_dim as slice_in_dim
from eshkol.jax.functions.lax import sort as sort
from eshkol.jax.functions.lax import sort_key_val as sort_key_val
from eshkol.tensors.transforms import stop_gradient as stop_gradient
from eshkol.tensors.ways import switch as switch
from eshkol.jax.functions.lax import top_k as top_k
from eshkol.jax.functions.lax import while_loop as while_loop
from eshkol.tensors.methods import TensorLike

__all__ = ["ConvDimensionNumbers", "abs", "acos", "acosh", "add", "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh", "batch_matmul", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim", "broadcasted_iota", "cbrt", "ceil", "clamp", "collapse", "complex", "concatenate", "cond", "conj", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_with_general_padding", "convert_element_type", "cos", "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "digamma", "div", "dot", "dot_general", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims", "expm1", "floor", "fori_loop", "full", "full_like", "ge", "gt", "imag", "index_in_dim", "integer_pow", "iota", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "map", "max", "min", "mul", "ne", "neg", "pad", "polygamma", "pow", "real", "reciprocal", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "rem", "reshape", "rev", "round", "rsqrt", "scan", "select", "select_n", "shift_left", "shift_right_arithmetic", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val", "sqrt", "square", "squeeze", "stop_gradient", "sub", "switch", "tan", "tanh", "top_k", "transpose", "while_loop"]

def abs(x: TensorLike) -> Tensor:
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
def batch_matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits set in both; of bools, whether both hold.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
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
def ceil(x: TensorLike) -> Tensor:
    """The least integer not below x.

    Arguments:
        x: a tensor
    """
    ...
def complex(re: TensorLike, im: TensorLike) -> Tensor:
    """The complex number of a real and an imaginary part.

    Arguments:
        re: the real part
        im: the imaginary part
    """
    ...
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate.

    Arguments:
        x: a tensor
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
def digamma(x: TensorLike) -> Tensor:
    """The derivative of log Γ(x); NaN at the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def div(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def eq(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x = y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def erf(x: TensorLike) -> Tensor:
    """The error function.

    Arguments:
        x: a tensor
    """
    ...
def erf_inv(x: TensorLike) -> Tensor:
    """The number whose erf is x; ±inf at ±1, NaN beyond.

    Arguments:
        x: a tensor
    """
    ...
def erfc(x: TensorLike) -> Tensor:
    """1 - erf(x), accurate for large x.

    Arguments:
        x: a tensor
    """
    ...
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
def floor(x: TensorLike) -> Tensor:
    """The greatest integer not above x.

    Arguments:
        x: a tensor
    """
    ...
def full(
    shape: builtins.int | Sequence[builtins.int],
    fill_value: builtins.complex,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """A tensor of one number everywhere, of the number's own dtype unless another is given; it must hold the number.

    Arguments:
        shape: the extents of the result
        fill_value: the number that is everywhere
        dtype: the dtype of the result, as ek.float32 or by name
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
def ge(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≥ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def gt(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x > y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def imag(x: TensorLike) -> Tensor:
    """The imaginary part; 0 of a real number.

    Arguments:
        x: a tensor
    """
    ...
def is_finite(x: TensorLike) -> Tensor:
    """Whether x is neither infinite nor NaN.

    Arguments:
        x: a tensor
    """
    ...
def le(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≤ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def lgamma(x: TensorLike) -> Tensor:
    """log |Γ(x)|; infinite at 0 and the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def log(x: TensorLike) -> Tensor:
    """Natural logarithm.

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
def logistic(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x), stable for large |x|.

    Arguments:
        x: a tensor
    """
    ...
def lt(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x < y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def max(x: TensorLike, y: TensorLike) -> Tensor:
    """The greater of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def min(x: TensorLike, y: TensorLike) -> Tensor:
    """The lesser of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def mul(x: TensorLike, y: TensorLike) -> Tensor:
    """x · y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def ne(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≠ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def neg(x: TensorLike) -> Tensor:
    """-x.

    Arguments:
        x: a tensor
    """
    ...
def polygamma(n: builtins.int, x: TensorLike) -> Tensor:
    """The n-th derivative of digamma, for n from 0 to 30.

    Arguments:
        n: which derivative
        x: a tensor
    """
    ...
def pow(x: TensorLike, y: TensorLike | builtins.float) -> Tensor:
    """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
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
def reduce_max(
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
def reduce_min(
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
def reduce_prod(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The product along axes; bools and integers are multiplied in 64 bits. Derivatives are right at zeros too.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def reduce_sum(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The sum along axes (all of them by default); bools and integers are summed in 64 bits.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def rem(x: TensorLike, y: TensorLike) -> Tensor:
    """What truncating division leaves, with the sign of x.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def rev(x: TensorLike, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The elements in reverse order along axes (all of them by default).

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def round(x: TensorLike) -> Tensor:
    """The nearest integer, ties to even.

    Arguments:
        x: a tensor
    """
    ...
def rsqrt(x: TensorLike) -> Tensor:
    """1 / √x.

    Arguments:
        x: a tensor
    """
    ...
def shift_left(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved up by y places, zeros following.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def shift_right_arithmetic(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved down by y places; signs are kept.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
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
def sub(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
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
def transpose(x: TensorLike, axes: Sequence[builtins.int]) -> Tensor:
    """The axes in another order.

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
