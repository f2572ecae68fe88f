"""The names of eshkol.jax.lax. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.convolutions import ConvDimensionNumbers as ConvDimensionNumbers
from eshkol._names import abs as abs
from eshkol._names import acos as acos
from eshkol._names import acosh as acosh
from eshkol._names import add as add
from eshkol.jax.functions.lax import argmax as argmax
from eshkol.jax.functions.lax import argmin as argmin
from eshkol._names import asin as asin
from eshkol._names import asinh as asinh
from eshkol.tensors.ways import associative_scan as associative_scan
from eshkol._names import atan as atan
from eshkol._names import atan2 as atan2
from eshkol._names import atanh as atanh
from eshkol._names import matmul as batch_matmul
from eshkol._names import bitwise_and as bitwise_and
from eshkol._names import bitwise_not as bitwise_not
from eshkol._names import bitwise_or as bitwise_or
from eshkol._names import bitwise_xor as bitwise_xor
from eshkol.jax.functions.lax import broadcast as broadcast
from eshkol.jax.functions.lax import broadcast_in_dim as broadcast_in_dim
from eshkol.jax.functions.lax import broadcasted_iota as broadcasted_iota
from eshkol.jax.functions.lax import cbrt as cbrt
from eshkol._names import ceil as ceil
from eshkol.jax.functions.lax import clamp as clamp
from eshkol.jax.functions.lax import collapse as collapse
from eshkol._names import complex as complex
from eshkol.jax.functions.lax import concatenate as concatenate
from eshkol.jax.functions.lax import cond as cond
from eshkol._names import conj as conj
from eshkol.jax.functions.convolutions import conv as conv
from eshkol.jax.functions.convolutions import conv_dimension_numbers as conv_dimension_numbers
from eshkol.jax.functions.convolutions import conv_general_dilated as conv_general_dilated
from eshkol.jax.functions.convolutions import conv_with_general_padding as conv_with_general_padding
from eshkol.jax.functions.lax import convert_element_type as convert_element_type
from eshkol._names import cos as cos
from eshkol._names import cosh as cosh
from eshkol.jax.functions.lax import cumlogsumexp as cumlogsumexp
from eshkol.jax.functions.lax import cummax as cummax
from eshkol.jax.functions.lax import cummin as cummin
from eshkol.jax.functions.lax import cumprod as cumprod
from eshkol.jax.functions.lax import cumsum as cumsum
from eshkol._names import digamma as digamma
from eshkol._names import div as div
from eshkol.jax.functions.lax import dot as dot
from eshkol.jax.functions.lax import dot_general as dot_general
from eshkol.jax.functions.lax import dynamic_index_in_dim as dynamic_index_in_dim
from eshkol.jax.functions.lax import dynamic_slice as dynamic_slice
from eshkol.jax.functions.lax import dynamic_slice_in_dim as dynamic_slice_in_dim
from eshkol.jax.functions.lax import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from eshkol.jax.functions.lax import dynamic_update_slice as dynamic_update_slice
from eshkol.jax.functions.lax import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from eshkol._names import equal as eq
from eshkol._names import erf as erf
from eshkol._names import erfinv as erf_inv
from eshkol._names import erfc as erfc
from eshkol._names import exp as exp
from eshkol._names import exp2 as exp2
from eshkol._names import expand_dims as expand_dims
from eshkol._names import expm1 as expm1
from eshkol._names import floor as floor
from eshkol.jax.functions.lax import fori_loop as fori_loop
from eshkol._names import full as full
from eshkol._names import full_like as full_like
from eshkol._names import greater_equal as ge
from eshkol._names import greater as gt
from eshkol._names import imag as imag
from eshkol.jax.functions.lax import index_in_dim as index_in_dim
from eshkol.jax.functions.lax import integer_pow as integer_pow
from eshkol.jax.functions.lax import iota as iota
from eshkol._names import isfinite as is_finite
from eshkol._names import less_equal as le
from eshkol._names import lgamma as lgamma
from eshkol._names import log as log
from eshkol._names import log1p as log1p
from eshkol._names import sigmoid as logistic
from eshkol._names import less as lt
from eshkol.jax.functions.lax import map as map
from eshkol._names import maximum as max
from eshkol._names import minimum as min
from eshkol._names import mul as mul
from eshkol._names import not_equal as ne
from eshkol._names import neg as neg
from eshkol.jax.functions.lax import pad as pad
from eshkol._names import polygamma as polygamma
from eshkol._names import pow as pow
from eshkol._names import real as real
from eshkol._names import reciprocal as reciprocal
from eshkol.jax.functions.lax import reduce_and as reduce_and
from eshkol.jax.functions.lax import reduce_max as reduce_max
from eshkol.jax.functions.lax import reduce_min as reduce_min
from eshkol.jax.functions.lax import reduce_or as reduce_or
from eshkol._names import prod as reduce_prod
from eshkol._names import sum as reduce_sum
from eshkol._names import fmod as rem
from eshkol.jax.functions.lax import reshape as reshape
from eshkol._names import flip as rev
from eshkol._names import round as round
from eshkol._names import rsqrt as rsqrt
from eshkol.jax.functions.lax import scan as scan
from eshkol.jax.functions.lax import select as select
from eshkol.jax.functions.lax import select_n as select_n
from eshkol._names import shift_left as shift_left
from eshkol._names import shift_right as shift_right_arithmetic
from eshkol._names import sign as sign
from eshkol._names import sin as sin
from eshkol._names import sinh as sinh
from eshkol.jax.functions.lax import slice as slice
from eshkol.jax.functions.lax import slice_in_dim as slice_in_dim
from eshkol.jax.functions.lax import sort as sort
from eshkol.jax.functions.lax import sort_key_val as sort_key_val
from eshkol._names import sqrt as sqrt
from eshkol._names import square as square
from eshkol._names import squeeze as squeeze
from eshkol.tensors.transforms import stop_gradient as stop_gradient
from eshkol._names import sub as sub
from eshkol.tensors.ways import switch as switch
from eshkol._names import tan as tan
from eshkol._names import tanh as tanh
from eshkol.jax.functions.lax import top_k as top_k
from eshkol._names import permute as transpose
from eshkol.jax.functions.lax import while_loop as while_loop

__all__ = [
    "ConvDimensionNumbers",
    "abs",
    "acos",
    "acosh",
    "add",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "associative_scan",
    "atan",
    "atan2",
    "atanh",
    "batch_matmul",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "collapse",
    "complex",
    "concatenate",
    "cond",
    "conj",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_with_general_padding",
    "convert_element_type",
    "cos",
    "cosh",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "digamma",
    "div",
    "dot",
    "dot_general",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "floor",
    "fori_loop",
    "full",
    "full_like",
    "ge",
    "gt",
    "imag",
    "index_in_dim",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "lt",
    "map",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "pad",
    "polygamma",
    "pow",
    "real",
    "reciprocal",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "rem",
    "reshape",
    "rev",
    "round",
    "rsqrt",
    "scan",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sort_key_val",
    "sqrt",
    "square",
    "squeeze",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "top_k",
    "transpose",
    "while_loop",
]

