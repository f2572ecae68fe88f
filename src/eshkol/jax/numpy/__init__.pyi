"""The names of eshkol.jax.numpy.__init__. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol._names import abs as abs
from eshkol._names import absolute as absolute
from eshkol._names import acos as acos
from eshkol._names import acosh as acosh
from eshkol._names import add as add
from eshkol._names import all as all
from eshkol._names import allclose as allclose
from eshkol.jax.functions.numpy import max as amax
from eshkol.jax.functions.numpy import min as amin
from eshkol.jax.functions.numpy import angle as angle
from eshkol._names import any as any
from eshkol.jax.functions.numpy import append as append
from eshkol.jax.functions.numpy import arange as arange
from eshkol._names import arccos as arccos
from eshkol._names import arccosh as arccosh
from eshkol._names import arcsin as arcsin
from eshkol._names import arcsinh as arcsinh
from eshkol._names import arctan as arctan
from eshkol._names import arctan2 as arctan2
from eshkol._names import arctanh as arctanh
from eshkol._names import argmax as argmax
from eshkol._names import argmin as argmin
from eshkol.jax.functions.numpy import argsort as argsort
from eshkol._names import argwhere as argwhere
from eshkol.jax.functions.numpy import array as array
from eshkol.jax.functions.numpy import array_equal as array_equal
from eshkol.jax.functions.numpy import array_split as array_split
from eshkol.jax.functions.numpy import asarray as asarray
from eshkol._names import asin as asin
from eshkol._names import asinh as asinh
from eshkol.jax.functions.numpy import astype as astype
from eshkol._names import atan as atan
from eshkol._names import atan2 as atan2
from eshkol._names import atanh as atanh
from eshkol.jax.functions.numpy import atleast_1d as atleast_1d
from eshkol.jax.functions.numpy import atleast_2d as atleast_2d
from eshkol.jax.functions.numpy import atleast_3d as atleast_3d
from eshkol.jax.functions.numpy_more import average as average
from eshkol._names import bincount as bincount
from eshkol._names import bitwise_and as bitwise_and
from eshkol._names import bitwise_not as bitwise_invert
from eshkol._names import bitwise_not as bitwise_not
from eshkol._names import bitwise_or as bitwise_or
from eshkol._names import bitwise_xor as bitwise_xor
from eshkol.jax.functions.numpy_more import block as block
from eshkol._names import broadcast_arrays as broadcast_arrays
from eshkol._names import broadcast_to as broadcast_to
from eshkol.jax.functions.numpy_more import cbrt as cbrt
from eshkol._names import ceil as ceil
from eshkol.jax.functions.numpy import choose as choose
from eshkol.jax.functions.numpy import clip as clip
from eshkol.jax.functions.numpy import column_stack as column_stack
from eshkol.jax.functions.numpy_more import compress as compress
from eshkol._names import concatenate as concat
from eshkol._names import concatenate as concatenate
from eshkol._names import conj as conj
from eshkol._names import conj as conjugate
from eshkol.jax.functions.numpy_more import convolve as convolve
from eshkol._names import copysign as copysign
from eshkol.jax.functions.numpy_more import corrcoef as corrcoef
from eshkol.jax.functions.numpy_more import correlate as correlate
from eshkol._names import cos as cos
from eshkol._names import cosh as cosh
from eshkol._names import count_nonzero as count_nonzero
from eshkol.jax.functions.numpy_more import cov as cov
from eshkol._names import cross as cross
from eshkol.jax.functions.numpy import cumprod as cumprod
from eshkol.jax.functions.numpy import cumsum as cumsum
from eshkol._names import deg2rad as deg2rad
from eshkol._names import degrees as degrees
from eshkol.jax.functions.numpy_more import delete as delete
from eshkol._names import diag as diag
from eshkol.jax.functions.numpy_more import diag_indices as diag_indices
from eshkol.jax.functions.numpy import diagflat as diagflat
from eshkol._names import diagonal as diagonal
from eshkol.jax.functions.numpy_more import diff as diff
from eshkol._names import divide as divide
from eshkol.jax.functions.numpy import divmod as divmod
from eshkol._names import dot as dot
from eshkol.jax.functions.numpy import dstack as dstack
from eshkol.jax.functions.numpy_more import ediff1d as ediff1d
from eshkol.jax.functions.numpy import einsum as einsum
from eshkol._names import zeros as empty
from eshkol._names import empty_like as empty_like
from eshkol._names import equal as equal
from eshkol._names import exp as exp
from eshkol._names import exp2 as exp2
from eshkol._names import expand_dims as expand_dims
from eshkol._names import expm1 as expm1
from eshkol.jax.functions.numpy import eye as eye
from eshkol._names import absolute as fabs
from eshkol.jax.numpy import fft as fft
from eshkol._names import trunc as fix
from eshkol.jax.functions.numpy import flatnonzero as flatnonzero
from eshkol._names import flip as flip
from eshkol.jax.functions.numpy import fliplr as fliplr
from eshkol.jax.functions.numpy import flipud as flipud
from eshkol.jax.functions.numpy_more import float_power as float_power
from eshkol._names import floor as floor
from eshkol._names import floor_divide as floor_divide
from eshkol._names import fmod as fmod
from eshkol.jax.functions.numpy import full as full
from eshkol._names import full_like as full_like
from eshkol.jax.functions.numpy import geomspace as geomspace
from eshkol.jax.functions.numpy_more import gradient as gradient
from eshkol._names import greater as greater
from eshkol._names import greater_equal as greater_equal
from eshkol._names import heaviside as heaviside
from eshkol._names import histogram as histogram
from eshkol.jax.functions.numpy import hsplit as hsplit
from eshkol._names import hstack as hstack
from eshkol._names import hypot as hypot
from eshkol._names import identity as identity
from eshkol._names import imag as imag
from eshkol._names import inner as inner
from eshkol.jax.functions.numpy_more import insert as insert
from eshkol.jax.functions.numpy_more import interp as interp
from eshkol.jax.functions.numpy_more import intersect1d as intersect1d
from eshkol._names import bitwise_not as invert
from eshkol._names import isclose as isclose
from eshkol._names import isfinite as isfinite
from eshkol.jax.functions.numpy_more import isin as isin
from eshkol._names import isinf as isinf
from eshkol._names import isnan as isnan
from eshkol.jax.functions.numpy_more import isneginf as isneginf
from eshkol.jax.functions.numpy_more import isposinf as isposinf
from eshkol._names import kron as kron
from eshkol._names import shift_left as left_shift
from eshkol._names import less as less
from eshkol._names import less_equal as less_equal
from eshkol.jax.numpy import linalg as linalg
from eshkol.jax.functions.numpy import linspace as linspace
from eshkol._names import log as log
from eshkol._names import log10 as log10
from eshkol._names import log1p as log1p
from eshkol._names import log2 as log2
from eshkol._names import logaddexp as logaddexp
from eshkol.jax.functions.numpy_more import logaddexp2 as logaddexp2
from eshkol._names import logical_and as logical_and
from eshkol._names import logical_not as logical_not
from eshkol._names import logical_or as logical_or
from eshkol._names import logical_xor as logical_xor
from eshkol.jax.functions.numpy import logspace as logspace
from eshkol._names import matmul as matmul
from eshkol._names import matvec as matvec
from eshkol.jax.functions.numpy import max as max
from eshkol._names import maximum as maximum
from eshkol.jax.functions.numpy import mean as mean
from eshkol.jax.functions.numpy import median as median
from eshkol.jax.functions.numpy import meshgrid as meshgrid
from eshkol.jax.functions.numpy import min as min
from eshkol._names import minimum as minimum
from eshkol._names import mod as mod
from eshkol._names import moveaxis as moveaxis
from eshkol._names import multiply as multiply
from eshkol._names import nan_to_num as nan_to_num
from eshkol.jax.functions.numpy_more import nanmax as nanmax
from eshkol.jax.functions.numpy_more import nanmean as nanmean
from eshkol.jax.functions.numpy_more import nanmin as nanmin
from eshkol.jax.functions.numpy_more import nanprod as nanprod
from eshkol.jax.functions.numpy_more import nanstd as nanstd
from eshkol.jax.functions.numpy_more import nansum as nansum
from eshkol.jax.functions.numpy_more import nanvar as nanvar
from eshkol.tensors.value import Tensor as ndarray
from eshkol.jax.functions.numpy import ndim as ndim
from eshkol._names import negative as negative
from eshkol.tensors.torch_methods import nonzero as nonzero
from eshkol._names import not_equal as not_equal
from eshkol.jax.functions.numpy import ones as ones
from eshkol._names import ones_like as ones_like
from eshkol._names import outer as outer
from eshkol.jax.functions.numpy import pad as pad
from eshkol.jax.functions.numpy_more import percentile as percentile
from eshkol._names import permute as permute_dims
from eshkol.jax.functions.numpy_more import polyadd as polyadd
from eshkol.jax.functions.numpy_more import polymul as polymul
from eshkol.jax.functions.numpy_more import polyval as polyval
from eshkol.jax.functions.numpy_more import positive as positive
from eshkol._names import pow as pow
from eshkol._names import power as power
from eshkol.jax.functions.numpy import prod as prod
from eshkol.jax.functions.numpy_more import ptp as ptp
from eshkol._names import quantile as quantile
from eshkol._names import rad2deg as rad2deg
from eshkol._names import radians as radians
from eshkol._names import ravel as ravel
from eshkol.jax.functions.numpy_more import ravel_multi_index as ravel_multi_index
from eshkol._names import real as real
from eshkol._names import reciprocal as reciprocal
from eshkol._names import remainder as remainder
from eshkol.jax.functions.numpy import repeat as repeat
from eshkol.jax.functions.numpy import reshape as reshape
from eshkol._names import shift_right as right_shift
from eshkol._names import roll as roll
from eshkol.jax.functions.numpy import rollaxis as rollaxis
from eshkol._names import rot90 as rot90
from eshkol.jax.functions.numpy import round as round
from eshkol._names import vstack as row_stack
from eshkol.jax.functions.numpy import searchsorted as searchsorted
from eshkol.jax.functions.numpy import select as select
from eshkol.jax.functions.numpy_more import setdiff1d as setdiff1d
from eshkol.jax.functions.numpy import shape as shape
from eshkol._names import sign as sign
from eshkol.jax.functions.numpy_more import signbit as signbit
from eshkol._names import sin as sin
from eshkol._names import sinc as sinc
from eshkol._names import sinh as sinh
from eshkol.jax.functions.numpy import size as size
from eshkol.jax.functions.numpy import sort as sort
from eshkol.jax.functions.numpy import split as split
from eshkol._names import sqrt as sqrt
from eshkol._names import square as square
from eshkol._names import squeeze as squeeze
from eshkol._names import stack as stack
from eshkol.jax.functions.numpy import std as std
from eshkol._names import subtract as subtract
from eshkol.jax.functions.numpy import sum as sum
from eshkol._names import swapaxes as swapaxes
from eshkol.jax.functions.numpy import take as take
from eshkol._names import take_along_axis as take_along_axis
from eshkol._names import tan as tan
from eshkol._names import tanh as tanh
from eshkol.jax.functions.numpy import tensordot as tensordot
from eshkol._names import tile as tile
from eshkol._names import trace as trace
from eshkol.jax.functions.numpy import transpose as transpose
from eshkol.jax.functions.numpy_more import trapezoid as trapezoid
from eshkol.jax.functions.numpy import tri as tri
from eshkol._names import tril as tril
from eshkol.jax.functions.numpy_more import tril_indices as tril_indices
from eshkol._names import triu as triu
from eshkol.jax.functions.numpy_more import triu_indices as triu_indices
from eshkol._names import true_divide as true_divide
from eshkol._names import trunc as trunc
from eshkol.jax.functions.numpy_more import union1d as union1d
from eshkol._names import unique as unique
from eshkol.jax.functions.numpy_more import unravel_index as unravel_index
from eshkol._names import unstack as unstack
from eshkol.jax.functions.numpy import vander as vander
from eshkol.jax.functions.numpy import var as var
from eshkol._names import vdot as vdot
from eshkol._names import vecdot as vecdot
from eshkol.jax.functions.numpy import vsplit as vsplit
from eshkol._names import vstack as vstack
from eshkol.jax.functions.numpy import where as where
from eshkol.jax.functions.numpy import zeros as zeros
from eshkol._names import zeros_like as zeros_like

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "array",
    "array_equal",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "block",
    "bool_",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "choose",
    "clip",
    "column_stack",
    "complex128",
    "complex64",
    "compress",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "convolve",
    "copysign",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "cumprod",
    "cumsum",
    "deg2rad",
    "degrees",
    "delete",
    "diag",
    "diag_indices",
    "diagflat",
    "diagonal",
    "diff",
    "divide",
    "divmod",
    "dot",
    "dstack",
    "e",
    "ediff1d",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "euler_gamma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "fabs",
    "fft",
    "fix",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_divide",
    "fmod",
    "full",
    "full_like",
    "geomspace",
    "gradient",
    "greater",
    "greater_equal",
    "heaviside",
    "histogram",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "imag",
    "inf",
    "inner",
    "insert",
    "int16",
    "int32",
    "int64",
    "int8",
    "interp",
    "intersect1d",
    "invert",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kron",
    "left_shift",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "matmul",
    "matvec",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "ndarray",
    "ndim",
    "negative",
    "newaxis",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "polyadd",
    "polymul",
    "polyval",
    "positive",
    "pow",
    "power",
    "prod",
    "ptp",
    "quantile",
    "rad2deg",
    "radians",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "right_shift",
    "roll",
    "rollaxis",
    "rot90",
    "round",
    "row_stack",
    "searchsorted",
    "select",
    "setdiff1d",
    "shape",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "size",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union1d",
    "unique",
    "unravel_index",
    "unstack",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]

bfloat16: DType
bool_: DType
complex128: DType
complex64: DType
e: builtins.float
euler_gamma: builtins.float
float16: DType
float32: DType
float64: DType
inf: builtins.float
int16: DType
int32: DType
int64: DType
int8: DType
nan: builtins.float
newaxis: Any
pi: builtins.float
uint16: DType
uint32: DType
uint64: DType
uint8: DType
