"""What `import eshkol as ek` offers. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.errors import EshkolError as EshkolError
from eshkol.tensors.keys import Generator as Generator
from eshkol.tensors.ways import ShapeDtypeStruct as ShapeDtypeStruct
from eshkol.tensors.value import Tensor as Tensor
from eshkol.tensors.torch_methods import adjoint as adjoint
from eshkol.jax.functions.numpy import append as append
from eshkol.jax.functions.numpy import array as array
from eshkol.jax.functions.numpy import array_equal as array_equal
from eshkol.jax.functions.numpy import array_split as array_split
from eshkol.tensors.torch_names import as_tensor as as_tensor
from eshkol.tensors.make import asarray as asarray
from eshkol.tensors.ways import associative_scan as associative_scan
from eshkol import atlas as atlas
from eshkol.nn.torch_layers import autocast as autocast
from eshkol.tensors.devices import autotune as autotune
from eshkol.jax.functions.numpy_more import average as average
from eshkol.tensors.torch_random import bernoulli_ as bernoulli_
from eshkol.jax.functions.numpy_more import block as block
from eshkol.jax.functions.devices import block_until_ready as block_until_ready
from eshkol.jax.functions.numpy_more import cbrt as cbrt
from eshkol.schedule.check.switch import check as check
from eshkol.schedule.run.execute import check_nan as check_nan
from eshkol.bindings.sizes import check_shapes as check_shapes
from eshkol.tensors.custom import checkpoint as checkpoint
from eshkol.jax.functions.numpy import choose as choose
from eshkol.tensors.torch_names import compiled as compile
from eshkol.jax.functions.numpy_more import compress as compress
from eshkol.tensors.control import cond as cond
from eshkol.tensors.torch_methods import contiguous as contiguous
from eshkol.jax.functions.numpy_more import convolve as convolve
from eshkol.tensors.torch_methods import copy_ as copy_
from eshkol.jax.functions.numpy_more import correlate as correlate
from eshkol.tensors.custom import custom_jvp as custom_jvp
from eshkol.tensors.custom import custom_vjp as custom_vjp
from eshkol import data as data
from eshkol.tensors.precision import default_dtype as default_dtype
from eshkol.jax.functions.numpy_more import delete as delete
from eshkol.tensors.torch_methods import detach_ as detach_
from eshkol.tensors.devices import device as device
from eshkol.jax.functions.devices import device_get as device_get
from eshkol.tensors.make import device_put as device_put
from eshkol.jax.functions.numpy_more import diag_indices as diag_indices
from eshkol.jax.functions.numpy import divmod as divmod
from eshkol.jax.functions.numpy_more import ediff1d as ediff1d
from eshkol.tensors.autograd import enable_grad as enable_grad
from eshkol.bindings.evaluate import evaluate as eval
from eshkol.tensors.ways import eval_shape as eval_shape
from eshkol.tensors.torch_random import exponential_ as exponential_
from eshkol.tensors.export import export_native as export_native
from eshkol.tensors.export_pages import export_wasm as export_wasm
from eshkol.tensors.export_pages import export_webgpu as export_webgpu
from eshkol import fft as fft
from eshkol.tensors.torch_methods import fill_ as fill_
from eshkol.tensors.torch_methods import fill_diagonal_ as fill_diagonal_
from eshkol.jax.functions.numpy import flatnonzero as flatnonzero
from eshkol.tensors.control import fori_loop as fori_loop
from eshkol.tensors.make import from_dlpack as from_dlpack
from eshkol.tensors.make import from_numpy as from_numpy
from eshkol.nn.functional import functional_call as functional_call
from eshkol.jax.functions.numpy import geomspace as geomspace
from eshkol.tensors.torch_names import get_default_device as get_default_device
from eshkol.tensors.precision import get_default_dtype as get_default_dtype
from eshkol.tensors.torch_names import get_float32_matmul_precision as get_float32_matmul_precision
from eshkol.runtime.scheduler import expected_workers as get_num_threads
from eshkol.tensors.transforms import grad as grad
from eshkol.tensors.transforms import hessian as hessian
from eshkol.tensors.torch_names import inference_mode as inference_mode
from eshkol.jax.functions.numpy_more import insert as insert
from eshkol.jax.functions.numpy_more import interp as interp
from eshkol.jax.functions.numpy_more import intersect1d as intersect1d
from eshkol import io as io
from eshkol.tensors.transforms import jacfwd as jacfwd
from eshkol.tensors.transforms import jacobian as jacobian
from eshkol.tensors.transforms import jacrev as jacrev
from eshkol import jax as jax
from eshkol.tensors.jit import jit as jit
from eshkol.jax import numpy as jnp
from eshkol.tensors.transforms import jvp as jvp
from eshkol import kernels as kernels
from eshkol.tensors.draws import key as key
from eshkol import lang as lang
from eshkol.jax import lax as lax
from eshkol import linalg as linalg
from eshkol.tensors.transforms import linearize as linearize
from eshkol.bindings.loading import load as load
from eshkol.io.checkpoint import load_checkpoint as load_checkpoint
from eshkol.bindings.notebook.magics import load_ipython_extension as load_ipython_extension
from eshkol.tensors.usage import memory_report as memory_report
from eshkol.tensors.usage import memory_usage as memory_usage
from eshkol import metrics as metrics
from eshkol.tensors.torch_names import msort as msort
from eshkol.jax.functions.numpy_more import nanmax as nanmax
from eshkol.jax.functions.numpy_more import nanmin as nanmin
from eshkol.jax.functions.numpy_more import nanprod as nanprod
from eshkol.jax.functions.numpy_more import nanstd as nanstd
from eshkol.jax.functions.numpy_more import nanvar as nanvar
from eshkol.tensors.value import Tensor as ndarray
from eshkol.jax.functions.numpy import ndim as ndim
from eshkol import nn as nn
from eshkol.tensors.autograd import no_grad as no_grad
from eshkol.tensors.torch_methods import nonzero as nonzero
from eshkol.tensors.torch_random import normal_ as normal_
from eshkol.tensors.torch_methods import numel as numel
from eshkol import optim as optim
from eshkol import parallel as parallel
from eshkol.bindings.parallel import parallel_map as parallel_map
from eshkol.tensors.usage import peak_memory_allocated as peak_memory_allocated
from eshkol.jax.functions.numpy_more import percentile as percentile
from eshkol.jax.functions.numpy_more import polyadd as polyadd
from eshkol.jax.functions.numpy_more import polymul as polymul
from eshkol.jax.functions.numpy_more import polyval as polyval
from eshkol.profiling.context import profile as profile
from eshkol.jax.functions.numpy_more import ptp as ptp
from eshkol.tensors import random as random
from eshkol.tensors.torch_random import random_ as random_
from eshkol.jax.functions.numpy_more import ravel_multi_index as ravel_multi_index
from eshkol.tensors.pytree import register as register_pytree
from eshkol.tensors.custom import checkpoint as remat
from eshkol.tensors.usage import reset_peak_memory as reset_peak_memory
from eshkol.jax.functions.numpy import rollaxis as rollaxis
from eshkol.io.kinds import save as save
from eshkol.io.checkpoint import save_checkpoint as save_checkpoint
from eshkol.tensors.torch_names import scalar_tensor as scalar_tensor
from eshkol.tensors.control import scan as scan
from eshkol.tensors.torch_methods import scatter as scatter
from eshkol.tensors.keys import seed as seed
from eshkol.tensors.devices import set_device as set_backend
from eshkol.schedule.run.execute import set_check_nan as set_check_nan
from eshkol.tensors.torch_names import set_default_device as set_default_device
from eshkol.tensors.precision import set_default_dtype as set_default_dtype
from eshkol.tensors.devices import set_device as set_device
from eshkol.tensors.torch_names import set_float32_matmul_precision as set_float32_matmul_precision
from eshkol.runtime.scheduler import set_default_workers as set_num_threads
from eshkol.tensors.torch_names import set_printoptions as set_printoptions
from eshkol.jax.functions.numpy_more import setdiff1d as setdiff1d
from eshkol.jax.functions.numpy import shape as shape
from eshkol.bindings.sizes import shaped as shaped
from eshkol.jax.functions.numpy import size as size
from eshkol.tensors.transforms import stop_gradient as stop_gradient
from eshkol.tensors.ways import switch as switch
from eshkol.tensors.torch_methods import t as t
from eshkol.tensors.make import tensor as tensor
from eshkol import train as train
from eshkol.schedule.run.resident import transfers as transfers
from eshkol.jax import tree as tree
from eshkol.tensors.pytree import flatten as tree_flatten
from eshkol.tensors.pytree import leaves as tree_leaves
from eshkol.tensors.pytree import tree_map as tree_map
from eshkol.jax import tree_util as tree_util
from eshkol.tensors.torch_names import typename as typename
from eshkol.tensors.torch_random import uniform_ as uniform_
from eshkol.jax.functions.numpy_more import union1d as union1d
from eshkol.bindings.notebook.magics import unload_ipython_extension as unload_ipython_extension
from eshkol.tensors.devices import device as use_backend
from eshkol.tensors.torch_names import use_deterministic_algorithms as use_deterministic_algorithms
from eshkol.tensors.transforms import value_and_grad as value_and_grad
from eshkol.tensors.transforms import vjp as vjp
from eshkol.tensors.torch_names import vmapped as vmap
from eshkol.tensors.torch_methods import where_any as where
from eshkol.tensors.control import while_loop as while_loop
from eshkol.tensors.torch_methods import zero_ as zero_
from eshkol.tensors.methods import TensorLike

__all__ = [
    "BFloat16",
    "Bool",
    "BoolTensor",
    "ByteTensor",
    "Complex128",
    "Complex64",
    "DoubleTensor",
    "EshkolError",
    "Float16",
    "Float32",
    "Float64",
    "FloatTensor",
    "Generator",
    "HalfTensor",
    "Int16",
    "Int32",
    "Int64",
    "Int8",
    "IntTensor",
    "LongTensor",
    "ShapeDtypeStruct",
    "ShortTensor",
    "Tensor",
    "UInt8",
    "abs",
    "abs_",
    "absolute",
    "absolute_",
    "acos",
    "acos_",
    "acosh",
    "acosh_",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "add",
    "add_",
    "addbmm",
    "addcdiv",
    "addcdiv_",
    "addcmul",
    "addcmul_",
    "addmm",
    "addmm_",
    "addmv",
    "addmv_",
    "addr",
    "adjoint",
    "all",
    "allclose",
    "allclose_",
    "amax",
    "amin",
    "aminmax",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccos_",
    "arccosh",
    "arccosh_",
    "arcsin",
    "arcsin_",
    "arcsinh",
    "arcsinh_",
    "arctan",
    "arctan2",
    "arctan2_",
    "arctan_",
    "arctanh",
    "arctanh_",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "array",
    "array_equal",
    "array_split",
    "as_tensor",
    "asarray",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "associative_scan",
    "astype",
    "astype_",
    "atan",
    "atan2",
    "atan2_",
    "atan_",
    "atanh",
    "atanh_",
    "atlas",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "attention",
    "attention_weights",
    "autocast",
    "autotune",
    "average",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "baddbmm",
    "baddbmm_",
    "batch_norm",
    "bernoulli",
    "bernoulli_",
    "beta",
    "bfloat16",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
    "bitwise_and",
    "bitwise_and_",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_not_",
    "bitwise_or",
    "bitwise_or_",
    "bitwise_right_shift",
    "bitwise_xor",
    "bitwise_xor_",
    "blackman_window",
    "block",
    "block_diag",
    "block_until_ready",
    "bmm",
    "bool",
    "bool_",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cast",
    "cast_",
    "cat",
    "categorical",
    "categorical_cross_entropy",
    "cbrt",
    "cdist",
    "cdouble",
    "ceil",
    "ceil_",
    "celu",
    "celu_",
    "cfloat",
    "chain_matmul",
    "check",
    "check_nan",
    "check_shapes",
    "checkpoint",
    "cholesky",
    "cholesky_solve",
    "choose",
    "chunk",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clip",
    "clip_",
    "clone",
    "cofactor",
    "col2im",
    "column_stack",
    "combinations",
    "compile",
    "complex",
    "complex128",
    "complex64",
    "compress",
    "concat",
    "concatenate",
    "cond",
    "condition_number",
    "conj",
    "conj_physical",
    "conjugate",
    "contiguous",
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_input",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_weight",
    "convolve",
    "coo_to_csr",
    "copy_",
    "copysign",
    "copysign_",
    "corrcoef",
    "correlate",
    "cos",
    "cos_",
    "cosh",
    "cosh_",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "csr_rows",
    "csr_turned",
    "cumargmax",
    "cumargmin",
    "cummax",
    "cummax_",
    "cummin",
    "cummin_",
    "cumprod",
    "cumprod_",
    "cumsum",
    "cumsum_",
    "cumulative_trapezoid",
    "custom_jvp",
    "custom_vjp",
    "data",
    "default_dtype",
    "deg2rad",
    "deg2rad_",
    "degrees",
    "degrees_",
    "delete",
    "depthwise_conv2d",
    "det",
    "detach",
    "detach_",
    "device",
    "device_get",
    "device_put",
    "dft",
    "diag",
    "diag_embed",
    "diag_indices",
    "diagflat",
    "diagonal",
    "diff",
    "digamma",
    "digamma_",
    "dirichlet",
    "dist",
    "div",
    "div_",
    "divide",
    "divide_",
    "divmod",
    "dot",
    "double",
    "dropout",
    "dsplit",
    "dstack",
    "e",
    "ediff1d",
    "eig",
    "eig_with_pivots",
    "eigh",
    "eigh_with_pivots",
    "eigvals",
    "eigvalsh",
    "einsum",
    "elu",
    "elu_",
    "embedding",
    "empty",
    "empty_like",
    "enable_grad",
    "eq",
    "eq_",
    "equal",
    "equal_",
    "erf",
    "erf_",
    "erfc",
    "erfc_",
    "erfinv",
    "erfinv_",
    "euler_gamma",
    "eval",
    "eval_shape",
    "exp",
    "exp2",
    "exp2_",
    "exp_",
    "expand",
    "expand_dims",
    "expm",
    "expm1",
    "expm1_",
    "expm_frechet",
    "exponential",
    "exponential_",
    "export_native",
    "export_wasm",
    "export_webgpu",
    "eye",
    "fabs",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "fill_",
    "fill_diagonal_",
    "finfo",
    "fix",
    "flash_attention",
    "flatnonzero",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "float8_matmul",
    "float_",
    "float_power",
    "float_power_",
    "floor",
    "floor_",
    "floor_divide",
    "floor_divide_",
    "fmax",
    "fmin",
    "fmod",
    "fmod_",
    "focal_loss",
    "fold",
    "fold_in",
    "fori_loop",
    "frac",
    "frac_",
    "frobenius_norm",
    "from_dlpack",
    "from_float8",
    "from_numpy",
    "full",
    "full_like",
    "functional_call",
    "gamma",
    "gather",
    "gaussian_nll_loss",
    "ge",
    "ge_",
    "gelu",
    "gelu_",
    "geomspace",
    "ger",
    "get_default_device",
    "get_default_dtype",
    "get_float32_matmul_precision",
    "get_num_threads",
    "get_rng_state",
    "getitem",
    "global_avg_pool2d",
    "global_max_pool2d",
    "glu",
    "glu_",
    "grad",
    "greater",
    "greater_",
    "greater_equal",
    "greater_equal_",
    "grid_sample",
    "group_norm",
    "gt",
    "gt_",
    "gumbel",
    "half",
    "hamming_window",
    "hann_window",
    "hard_shrink",
    "hard_shrink_",
    "hard_sigmoid",
    "hard_sigmoid_",
    "hard_swish",
    "hard_swish_",
    "hard_tanh",
    "hard_tanh_",
    "heaviside",
    "heaviside_",
    "hessian",
    "hinge_loss",
    "histc",
    "histogram",
    "hsplit",
    "hstack",
    "huber_loss",
    "hypot",
    "hypot_",
    "identity",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "iinfo",
    "im2col",
    "imag",
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill",
    "index_fill_",
    "index_put",
    "index_put_",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "insert",
    "instance_norm",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "interp",
    "interpolate",
    "intersect1d",
    "inv",
    "inverse",
    "invert",
    "io",
    "iota",
    "irfft",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_nonzero",
    "is_signed",
    "is_tensor",
    "isclose",
    "isclose_",
    "isfinite",
    "isfinite_",
    "isin",
    "isinf",
    "isinf_",
    "isnan",
    "isnan_",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax",
    "jit",
    "jnp",
    "jvp",
    "kernels",
    "key",
    "kl_div",
    "kl_div_normal",
    "kron",
    "kthvalue",
    "l1_loss",
    "lang",
    "laplace",
    "lax",
    "layer_norm",
    "ldexp",
    "le",
    "le_",
    "leaky_relu",
    "leaky_relu_",
    "left_shift",
    "lerp",
    "lerp_",
    "less",
    "less_",
    "less_equal",
    "less_equal_",
    "lgamma",
    "lgamma_",
    "linalg",
    "linear",
    "linear_recurrence",
    "linearize",
    "linspace",
    "load",
    "load_checkpoint",
    "load_ipython_extension",
    "local_response_norm",
    "log",
    "log10",
    "log10_",
    "log1p",
    "log1p_",
    "log2",
    "log2_",
    "log_",
    "log_sigmoid",
    "log_sigmoid_",
    "log_softmax",
    "log_softmax_",
    "logaddexp",
    "logaddexp2",
    "logaddexp_",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_and_",
    "logical_not",
    "logical_not_",
    "logical_or",
    "logical_or_",
    "logical_xor",
    "logical_xor_",
    "logit",
    "logit_",
    "logspace",
    "logsumexp",
    "long",
    "lstsq",
    "lt",
    "lt_",
    "lu",
    "lu_factor",
    "lu_rows",
    "lu_solve",
    "mae_loss",
    "manual_seed",
    "masked_fill",
    "masked_fill_",
    "masked_scatter",
    "masked_scatter_",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_lstsq",
    "matrix_norm",
    "matrix_power",
    "matrix_product",
    "matrix_rank",
    "matrix_solve",
    "matvec",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool2d",
    "maximum",
    "maximum_",
    "mean",
    "median",
    "memory_report",
    "memory_usage",
    "meshgrid",
    "metrics",
    "min",
    "minimum",
    "minimum_",
    "mish",
    "mish_",
    "mm",
    "mod",
    "mod_",
    "mode",
    "moveaxis",
    "movedim",
    "mse_loss",
    "msort",
    "mul",
    "mul_",
    "multi_head_attention",
    "multi_head_self_attention",
    "multinomial",
    "multiply",
    "multiply_",
    "mv",
    "nan",
    "nan_to_num",
    "nan_to_num_",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "narrow",
    "ndarray",
    "ndim",
    "ndtr",
    "ndtr_",
    "ndtri",
    "ndtri_",
    "ne",
    "ne_",
    "neg",
    "neg_",
    "negative",
    "negative_",
    "newaxis",
    "nll_loss",
    "nn",
    "no_grad",
    "nonzero",
    "norm",
    "normal",
    "normal_",
    "normal_density",
    "normal_density_",
    "normalize",
    "not_equal",
    "not_equal_",
    "numel",
    "one_hot",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "pad",
    "pad_constant",
    "paged_attention",
    "parallel",
    "parallel_map",
    "pdist",
    "peak_memory_allocated",
    "percentile",
    "permute",
    "permute_dims",
    "pi",
    "pinv",
    "pinverse",
    "pivoted_rows",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson",
    "poisson_nll_loss",
    "polar",
    "polyadd",
    "polygamma",
    "polymul",
    "polyval",
    "position",
    "positional_encoding",
    "positive",
    "pow",
    "pow_",
    "power",
    "power_",
    "prelu",
    "prelu_",
    "prod",
    "profile",
    "promote_types",
    "ptp",
    "put",
    "put_along",
    "qr",
    "quantile",
    "rad2deg",
    "rad2deg_",
    "radians",
    "radians_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "random_",
    "random_bits",
    "randperm",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "reciprocal_",
    "recurrence",
    "register_pytree",
    "relu",
    "relu6",
    "relu6_",
    "relu_",
    "remainder",
    "remainder_",
    "remat",
    "repeat",
    "repeat_interleave",
    "requires_grad_",
    "reset_peak_memory",
    "reshape",
    "result_type",
    "rfft",
    "rfftfreq",
    "right_shift",
    "rms_norm",
    "roll",
    "rollaxis",
    "rope",
    "rot90",
    "rotary_angles",
    "rotary_embedding",
    "round",
    "round_",
    "row_stack",
    "rsqrt",
    "rsqrt_",
    "rsub",
    "save",
    "save_checkpoint",
    "scalar_tensor",
    "scaled_dot_product_attention",
    "scan",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_along",
    "scatter_combine",
    "scatter_into",
    "scatter_max",
    "scatter_reduce",
    "scatter_reduce_",
    "searchsorted",
    "seed",
    "select",
    "select_scatter",
    "selu",
    "selu_",
    "set_backend",
    "set_check_nan",
    "set_default_device",
    "set_default_dtype",
    "set_device",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "setdiff1d",
    "setitem",
    "sgn",
    "shape",
    "shaped",
    "shift_left",
    "shift_left_",
    "shift_right",
    "shift_right_",
    "short",
    "sigmoid",
    "sigmoid_",
    "sign",
    "sign_",
    "signbit",
    "silu",
    "silu_",
    "sin",
    "sin_",
    "sinc",
    "sinc_",
    "sinh",
    "sinh_",
    "size",
    "slice",
    "slice_scatter",
    "sliding_window",
    "slogdet",
    "smooth_l1_loss",
    "soft_shrink",
    "soft_shrink_",
    "softmax",
    "softmax_",
    "softmin",
    "softmin_",
    "softplus",
    "softplus_",
    "softsign",
    "softsign_",
    "solve",
    "solve_triangular",
    "sort",
    "sparse_add",
    "sparse_mm",
    "sparse_transpose",
    "split",
    "split_key",
    "split_with_sizes",
    "sqrt",
    "sqrt_",
    "square",
    "square_",
    "squeeze",
    "squeeze_",
    "stack",
    "std",
    "std_mean",
    "stft",
    "stop_gradient",
    "student_t",
    "sub",
    "sub_",
    "subtract",
    "subtract_",
    "sum",
    "sum_to",
    "sum_to_size",
    "svd",
    "svd_with_pivots",
    "svdvals",
    "swapaxes",
    "swapdims",
    "swish",
    "swish_",
    "switch",
    "t",
    "t_",
    "take",
    "take_along",
    "take_along_axis",
    "take_along_dim",
    "tall_qr",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "tanh_shrink",
    "tanh_shrink_",
    "tensor",
    "tensor_split",
    "tensordot",
    "threshold",
    "threshold_",
    "tile",
    "to_dense",
    "to_float8",
    "to_sparse",
    "topk",
    "trace",
    "train",
    "transfers",
    "transpose",
    "transpose_",
    "trapezoid",
    "trapz",
    "tree",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_util",
    "tri",
    "triangular_matrix_solve",
    "triangular_solve",
    "tril",
    "tril_",
    "tril_indices",
    "triplet_margin_loss",
    "triu",
    "triu_",
    "triu_indices",
    "true_divide",
    "true_divide_",
    "trunc",
    "trunc_",
    "truncated_normal",
    "typename",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unbind",
    "unflatten",
    "unfold",
    "uniform",
    "uniform_",
    "union1d",
    "unique",
    "unload_ipython_extension",
    "unravel_index",
    "unsqueeze",
    "unsqueeze_",
    "unstack",
    "use_backend",
    "use_deterministic_algorithms",
    "value_and_grad",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vecdot",
    "view_as_complex",
    "view_as_real",
    "vjp",
    "vmap",
    "vsplit",
    "vstack",
    "where",
    "where_",
    "while_loop",
    "window_argmax",
    "windows_along",
    "xlogy",
    "xlogy_",
    "zero_",
    "zeros",
    "zeros_like",
]

BFloat16: Any
Bool: Any
def BoolTensor(*data: Any) -> Tensor:
    """A tensor of bool_.
    """
    ...
def ByteTensor(*data: Any) -> Tensor:
    """A tensor of uint8.
    """
    ...
Complex128: Any
Complex64: Any
def DoubleTensor(*data: Any) -> Tensor:
    """A tensor of float64.
    """
    ...
Float16: Any
Float32: Any
Float64: Any
def FloatTensor(*data: Any) -> Tensor:
    """A tensor of float32.
    """
    ...
def HalfTensor(*data: Any) -> Tensor:
    """A tensor of float16.
    """
    ...
Int16: Any
Int32: Any
Int64: Any
Int8: Any
def IntTensor(*data: Any) -> Tensor:
    """A tensor of int32.
    """
    ...
def LongTensor(*data: Any) -> Tensor:
    """A tensor of int64.
    """
    ...
def ShortTensor(*data: Any) -> Tensor:
    """A tensor of int16.
    """
    ...
UInt8: Any
def abs(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def abs_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """abs in place; gives itself.
    """
    ...
def absolute(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def absolute_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """absolute in place; gives itself.
    """
    ...
def acos(x: TensorLike) -> Tensor:
    """The angle in radians whose cosine is x.

    Arguments:
        x: a tensor
    """
    ...
def acos_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """acos in place; gives itself.
    """
    ...
def acosh(x: TensorLike) -> Tensor:
    """The number, not negative, whose cosh is x.

    Arguments:
        x: a tensor
    """
    ...
def acosh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """acosh in place; gives itself.
    """
    ...
def adaptive_avg_pool1d(x: TensorLike, output_size: builtins.int | None) -> Tensor:
    """Means along the last axis of as many windows as are wanted; window i is from ⌊i·n/count⌋ to ⌈(i+1)·n/count⌉.

    Arguments:
        x: a tensor
        output_size: the extents of the result
    """
    ...
def adaptive_avg_pool2d(x: TensorLike, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means of as many windows over the last two axes as are wanted; None keeps an extent.

    Arguments:
        x: a tensor
        output_size: the extents of the result
    """
    ...
def adaptive_avg_pool3d(x: TensorLike, output_size: builtins.int | Sequence[builtins.int | None] | None) -> Tensor:
    """Means of as many windows over the last three axes as are wanted; None keeps an extent.

    Arguments:
        x: a tensor
        output_size: the extents of the result
    """
    ...
@overload
def adaptive_max_pool1d(
    x: TensorLike,
    output_size: builtins.int | None,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def adaptive_max_pool1d(
    x: TensorLike,
    output_size: builtins.int | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest elements along the last axis of as many windows as are wanted; see adaptive_avg_pool1d.

    Arguments:
        x: a tensor
        output_size: the extents of the result
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def adaptive_max_pool1d(
    x: TensorLike,
    output_size: builtins.int | None,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
@overload
def adaptive_max_pool2d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def adaptive_max_pool2d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest elements of as many windows over the last two axes as are wanted; indices as of max_pool2d.

    Arguments:
        x: a tensor
        output_size: the extents of the result
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def adaptive_max_pool2d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
@overload
def adaptive_max_pool3d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def adaptive_max_pool3d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest elements of as many windows over the last three axes as are wanted; indices as of max_pool3d.

    Arguments:
        x: a tensor
        output_size: the extents of the result
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def adaptive_max_pool3d(
    x: TensorLike,
    output_size: builtins.int | Sequence[builtins.int | None] | None,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
def add(x: TensorLike, y: TensorLike) -> Tensor:
    """x + y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def add_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """add in place; gives itself.
    """
    ...
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
    """beta · x + alpha · the sum of batch1 · batch2 over the stack.
    """
    ...
def addcdiv(x: Any, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Any:
    """x + value · tensor1 / tensor2.
    """
    ...
def addcdiv_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """addcdiv in place; gives itself.
    """
    ...
def addcmul(x: Any, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Any:
    """x + value · tensor1 · tensor2.
    """
    ...
def addcmul_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """addcmul in place; gives itself.
    """
    ...
def addmm(
    input: TensorLike,
    x: TensorLike,
    y: TensorLike,
    beta: builtins.float = 1,
    alpha: builtins.float = 1,
) -> Tensor:
    """beta · input + alpha · (x · y), for matrices x and y.

    Arguments:
        input: what is added to the product
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        beta: a number to multiply with
        alpha: a number to multiply with
    """
    ...
def addmm_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """addmm in place; gives itself.
    """
    ...
def addmv(x: Any, mat: Any, vec: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
    """beta · x + alpha · mat · vec.
    """
    ...
def addmv_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """addmv in place; gives itself.
    """
    ...
def addr(x: Any, vec1: Any, vec2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
    """beta · x + alpha · vec1 · vec2ᵀ.
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
def allclose_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """allclose in place; gives itself.
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
def aminmax(x: Any, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Any:
    """The least and the greatest element.
    """
    ...
def angle(x: Any) -> Any:
    """The angles of complex numbers; of real ones 0, or π where they are negative.
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
def arange(
    start: builtins.float,
    stop: builtins.float | None = None,
    step: builtins.float = 1,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """start + step · i, from start (0 if only stop is given) to before stop: int64 of integers, else floats.

    Arguments:
        start: where it begins
        stop: where it ends; the end itself is left out
        step: how far elements are apart
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def arccos(x: TensorLike) -> Tensor:
    """The angle in radians whose cosine is x.

    Arguments:
        x: a tensor
    """
    ...
def arccos_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arccos in place; gives itself.
    """
    ...
def arccosh(x: TensorLike) -> Tensor:
    """The number, not negative, whose cosh is x.

    Arguments:
        x: a tensor
    """
    ...
def arccosh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arccosh in place; gives itself.
    """
    ...
def arcsin(x: TensorLike) -> Tensor:
    """The angle in radians whose sine is x.

    Arguments:
        x: a tensor
    """
    ...
def arcsin_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arcsin in place; gives itself.
    """
    ...
def arcsinh(x: TensorLike) -> Tensor:
    """The number whose sinh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def arcsinh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arcsinh in place; gives itself.
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
def arctan2_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arctan2 in place; gives itself.
    """
    ...
def arctan_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arctan in place; gives itself.
    """
    ...
def arctanh(x: TensorLike) -> Tensor:
    """The number whose tanh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def arctanh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """arctanh in place; gives itself.
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
def argsort(
    x: TensorLike,
    axis: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> Tensor:
    """The positions along an axis that would put its elements in order; equal ones keep theirs.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        descending: whether the greatest comes first
        stable: whether equal elements keep their order; they always do
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
def asin_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """asin in place; gives itself.
    """
    ...
def asinh(x: TensorLike) -> Tensor:
    """The number whose sinh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def asinh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """asinh in place; gives itself.
    """
    ...
def astype(x: TensorLike, dtype: DType | builtins.str | None) -> Tensor:
    """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def astype_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """astype in place; gives itself.
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
def atan2_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """atan2 in place; gives itself.
    """
    ...
def atan_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """atan in place; gives itself.
    """
    ...
def atanh(x: TensorLike) -> Tensor:
    """The number whose tanh is x, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def atanh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """atanh in place; gives itself.
    """
    ...
def atleast_1d(x: Any) -> Any:
    """x with an axis at least.
    """
    ...
def atleast_2d(x: Any) -> Any:
    """x with two axes at least; new ones come first.
    """
    ...
def atleast_3d(x: Any) -> Any:
    """x with three axes at least; the third comes last.
    """
    ...
def attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
    scale: builtins.float | None = None,
    window: builtins.int | None = None,
    dropout: builtins.float = 0.0,
    dropout_key: TensorLike | None = None,
    key_lengths: TensorLike | None = None,
    offsets: TensorLike | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale) · value over … × length × dim; scale is 1/√dim unless said.

    Axes in front broadcast; a multiple of query heads (third axis from the end) shares each key and value head. A mask
    of bools says where to attend, one of floats is added. Causal: query t attends to keys 0 … t. Window: to keys that
    are fewer than so many places away, with causal to the last so many. A query that may attend to nothing gets zeros.
    Dropout leaves out weights with that probability, in 256ths, as its key says, and makes the rest greater by as much.
    Lengths are of samples, the axes in front of heads: what comes later is no key. Offsets say where sequences begin
    that lie one after another, and where the last ends: nothing attends to another sequence than its own.

    Arguments:
        query: what attends: … × length × dim
        key: what is attended to: … × length × dim
        value: what is taken in proportion to the attention
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
        scale: what products of queries and keys are multiplied with; 1/√dim unless given
        window: within how many places keys are attended to; all unless given
        dropout: the probability with which a weight is left out
        dropout_key: the key of random numbers that says which weights are left out
        key_lengths: how many keys each sample has: integers, of the axes in front of heads
        offsets: where sequences begin that lie one after another, and where the last ends
    """
    ...
def attention_weights(
    query: TensorLike,
    key: TensorLike,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
    scale: builtins.float | None = None,
    window: builtins.int | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale): how much each query attends to each key in scaled_dot_product_attention.

    Arguments:
        query: what attends: … × length × dim
        key: what is attended to: … × length × dim
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
        scale: what products of queries and keys are multiplied with; 1/√dim unless given
        window: within how many places keys are attended to; all unless given
    """
    ...
def avg_pool1d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> Tensor:
    """The mean of each window along the last axis; otherwise as avg_pool2d.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        ceil_mode: whether windows that reach over the end count
        count_include_pad: whether zeros of the padding count in the mean
        divisor_override: what sums are divided by, instead of the number of elements
    """
    ...
def avg_pool2d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> Tensor:
    """The mean of each window over the last two axes; zeros of the padding count unless `count_include_pad` is false.

    The stride is the kernel's size unless said; `divisor_override` divides the sums instead of the windows' sizes.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        ceil_mode: whether windows that reach over the end count
        count_include_pad: whether zeros of the padding count in the mean
        divisor_override: what sums are divided by, instead of the number of elements
    """
    ...
def avg_pool3d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    ceil_mode: builtins.bool = False,
    count_include_pad: builtins.bool = True,
    divisor_override: builtins.int | None = None,
) -> Tensor:
    """The mean of each window over the last three axes; otherwise as avg_pool2d.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        ceil_mode: whether windows that reach over the end count
        count_include_pad: whether zeros of the padding count in the mean
        divisor_override: what sums are divided by, instead of the number of elements
    """
    ...
def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
    """beta · x + alpha · batch1 · batch2, for stacks of matrices.
    """
    ...
def baddbmm_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """baddbmm in place; gives itself.
    """
    ...
@overload
def batch_norm(
    x: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    *,
    training: Literal[True],
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
    unbiased: builtins.bool = True,
) -> Tensor | builtins.tuple[Tensor, Tensor, Tensor]:
    ...
@overload
def batch_norm(
    x: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: Literal[False] = False,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
    unbiased: builtins.bool = True,
) -> Tensor:
    """x normalized per channel (axis 1) by running statistics or, in training, by those of the batch.

    In training, if running statistics are given, the result comes with new ones: (y, mean, var), where momentum is
    the part of the new. The new variance is unbiased or, with unbiased=False, the one that x is divided by.

    Arguments:
        x: a tensor
        running_mean: the means of the channels so far
        running_var: the variances of the channels so far
        weight: what normalized channels are multiplied with
        bias: what is added, one number for each output; None adds nothing
        training: whether it is done as in training
        momentum: which part of the running statistics each batch replaces
        eps: a small number that keeps divisors away from 0
        unbiased: whether the new running variance is divided by n - 1 instead of n
    """
    ...
@overload
def batch_norm(
    x: TensorLike,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    training: builtins.bool = False,
    momentum: builtins.float = 0.1,
    eps: builtins.float = 1e-05,
    unbiased: builtins.bool = True,
) -> Tensor | builtins.tuple[Tensor, Tensor, Tensor]:
    ...
def bernoulli(
    key: TensorLike,
    p: TensorLike | builtins.float = 0.5,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'bool',
) -> Tensor:
    """Whether an event of probability p happens: never for 0, always for 1; in another dtype, 1 or 0.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        p: the probability
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name

    Without a key, as in PyTorch: bernoulli(x): 1 with the probability that each element of x says, else 0.
    """
    ...
def beta(
    key: TensorLike,
    a: TensorLike | builtins.float,
    b: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the beta distribution of a and b, without derivatives in them.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        a: the first parameter of the distribution
        b: the second parameter of the distribution
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
bfloat16: DType
def bilinear(x: TensorLike, y: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """xᵀ · weight[o] · y + bias for every o, along the last axes; the weight has the shape (out, in of x, in of y).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
    """
    ...
def binary_cross_entropy(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """-(target·log(x) + (1 - target)·log(1 - x)) for probabilities x; log(0) counts as -100, with derivative 0.

    Numbers outside 0 to 1 are an error where they are known already; computed within a graph they give NaN.

    Arguments:
        x: a tensor
        target: what x should be
        weight: what each element counts
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def binary_cross_entropy_with_logits(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """binary_cross_entropy of sigmoid(x), without overflow; pos_weight scales the part of positive targets.

    Arguments:
        x: a tensor
        target: what x should be
        weight: what each element counts
        pos_weight: what positive targets count
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
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
def bitwise_and_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """bitwise_and in place; gives itself.
    """
    ...
def bitwise_invert(x: TensorLike) -> Tensor:
    """Every bit turned over; of bools, whether x does not hold.

    Arguments:
        x: a tensor
    """
    ...
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved up by y places, zeros following.

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
def bitwise_not_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """bitwise_not in place; gives itself.
    """
    ...
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits set in either; of bools, whether either holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def bitwise_or_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """bitwise_or in place; gives itself.
    """
    ...
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved down by y places; signs are kept.

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
def bitwise_xor_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """bitwise_xor in place; gives itself.
    """
    ...
def blackman_window(
    n: builtins.int,
    periodic: builtins.bool = True,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """The Blackman window of n points; periodic ones are cut from n + 1 points, for spectra.

    Arguments:
        n: how many elements
        periodic: whether the window is one period of a longer one
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one, with zeros around them.
    """
    ...
def bmm(x: TensorLike, y: TensorLike) -> Tensor:
    """The product of two stacks of as many matrices.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
bool: DType
bool_: DType
def broadcast_arrays(tensors: Sequence[TensorLike]) -> builtins.tuple[Tensor, ...]:
    """Tensors, each expanded to the shape in which they all meet.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def broadcast_shapes(*given: Sequence[builtins.int] | builtins.int) -> builtins.tuple[builtins.int, ...]:
    """The shape in which shapes meet.
    """
    ...
def broadcast_tensors(tensors: Sequence[TensorLike]) -> builtins.tuple[Tensor, ...]:
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
def bucketize(x: TensorLike, boundaries: TensorLike, right: builtins.bool = False) -> Tensor:
    """Between which sorted boundaries each element lies: how many are below it (with right: or equal to it).

    Arguments:
        x: a tensor
        boundaries: numbers in rising order
        right: whether equal elements count as below
    """
    ...
def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Whether numbers of a dtype are of a kind that another holds: no floats in integers.
    """
    ...
def cartesian_prod(*tensors: Any) -> Any:
    """Every choice of one element of each vector, as rows.
    """
    ...
def cast(x: TensorLike, dtype: DType | builtins.str | None) -> Tensor:
    """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def cast_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cast in place; gives itself.
    """
    ...
def cat(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors after one another along an axis that they have.

    Arguments:
        tensors: a sequence of tensors
        axis: the axis; negative numbers count from the last one
    """
    ...
def categorical(
    key: TensorLike,
    logits: TensorLike,
    axis: builtins.int = -1,
    shape: builtins.int | Sequence[builtins.int] | None = None,
) -> Tensor:
    """Which place along an axis is drawn, in proportion to e^logits; a shape stands for as many draws, in front.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        logits: logarithms of what the probabilities are in proportion to
        axis: the axis; negative numbers count from the last one
        shape: the extents of the result
    """
    ...
def categorical_cross_entropy(
    x: TensorLike,
    target: TensorLike,
    axis: builtins.int = -1,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """-Σ target·log(x) along the axis of classes, x being probabilities; log(0) counts as -100, with derivative 0.

    Arguments:
        x: a tensor
        target: what x should be
        axis: the axis; negative numbers count from the last one
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def cdist(x1: Any, x2: Any, p: builtins.float = 2.0) -> Any:
    """The distance of every row of x1 from every row of x2.
    """
    ...
cdouble: DType
def ceil(x: TensorLike) -> Tensor:
    """The least integer not below x.

    Arguments:
        x: a tensor
    """
    ...
def ceil_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """ceil in place; gives itself.
    """
    ...
def celu(x: TensorLike, alpha: builtins.float = 1.0) -> Tensor:
    """x where it is positive, else alpha·(e^(x/alpha) - 1).

    Arguments:
        x: a tensor
        alpha: the value that is approached far below 0, with its sign turned
    """
    ...
def celu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """celu in place; gives itself.
    """
    ...
cfloat: DType
def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices.
    """
    ...
def cholesky(x: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The lower triangular matrix (or the upper one) whose product with its adjoint is x, read as (x + xᴴ)/2.

    Arguments:
        x: a tensor
        upper: whether the upper triangle is meant
    """
    ...
def cholesky_solve(b: TensorLike, factor: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The solution of the system whose matrix has this Cholesky factor (lower by default), for the right side b.

    Arguments:
        b: the right side
        factor: a Cholesky factor
        upper: whether the upper triangle is meant
    """
    ...
def chunk(x: TensorLike, count: builtins.int, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """x in at most `count` parts along an axis, all of one extent but for the last, as PyTorch's chunk.

    Arguments:
        x: a tensor
        count: into how many parts at most
        axis: the axis; negative numbers count from the last one
    """
    ...
def clamp(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """x brought between min and max, numbers or tensors, of which one may be left out; NaN stays, and of a bound too.

    The derivative passes to x inside and at the bounds, to a bound outside of it; where min > max, max counts.

    Arguments:
        x: a tensor
        min: the least value, a number or a tensor, or None
        max: the greatest value, a number or a tensor, or None
    """
    ...
def clamp_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """clamp in place; gives itself.
    """
    ...
def clamp_max(x: Any, max: Any) -> Any:
    """x, and max where x is above it.
    """
    ...
def clamp_max_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """clamp_max in place; gives itself.
    """
    ...
def clamp_min(x: Any, min: Any) -> Any:
    """x, and min where x is below it.
    """
    ...
def clamp_min_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """clamp_min in place; gives itself.
    """
    ...
def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """x brought between min and max, numbers or tensors, of which one may be left out; NaN stays, and of a bound too.

    The derivative passes to x inside and at the bounds, to a bound outside of it; where min > max, max counts.

    Arguments:
        x: a tensor
        min: the least value, a number or a tensor, or None
        max: the greatest value, a number or a tensor, or None
    """
    ...
def clip_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """clip in place; gives itself.
    """
    ...
def clone(self: Any) -> Tensor:
    """The same value under another handle.
    """
    ...
def cofactor(x: TensorLike) -> Tensor:
    """The matrix of cofactors, det(x) · x⁻ᵀ: the derivative of det. It has a derivative where x is not singular.

    Arguments:
        x: a tensor
    """
    ...
def col2im(
    x: TensorLike,
    output_size: Sequence[builtins.int],
    kernel_size: builtins.int | Sequence[builtins.int],
    dilation: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    stride: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """Columns added together where unfold takes them from: its transpose, not its inverse, where patches overlap.

    Arguments:
        x: a tensor
        output_size: the extents of the result
        kernel_size: the extents of a window: one number, or one for each axis
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        stride: how far windows are apart: one number, or one for each axis
    """
    ...
def column_stack(tensors: Sequence[Any]) -> Any:
    """Vectors as columns, and matrices, side by side.
    """
    ...
def combinations(x: Any, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Any:
    """Every choice of r elements of a vector, in order, as rows.
    """
    ...
def complex(re: TensorLike, im: TensorLike) -> Tensor:
    """The complex number of a real and an imaginary part.

    Arguments:
        re: the real part
        im: the imaginary part
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
def condition_number(x: TensorLike) -> Tensor:
    """The condition number: the greatest singular value over the least.

    Arguments:
        x: a tensor
    """
    ...
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate.

    Arguments:
        x: a tensor
    """
    ...
def conj_physical(x: TensorLike) -> Tensor:
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
def conv(
    x: TensorLike,
    weight: TensorLike,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    input_dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """Cross-correlation of x (batch × groups × channels × space) with groups × out × channels × kernel.

    Padding is before and after each axis, negative to cut off; `input_dilation` puts zeros between the elements of x.

    Arguments:
        x: a tensor
        weight: the weights
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        input_dilation: how far the elements of x are moved apart, with zeros between
    """
    ...
def conv1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | builtins.str | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation along the last axis; weight is out × channels/groups × kernel, padding zeros.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
    """
    ...
def conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | builtins.str | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation of images, (batch ×) channels × height × width; weight is out × channels/groups × kernel.

    Padding is of zeros: a number, one per axis, pairs of before and after, "valid" (none), or "same" (stride 1 only).

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
    """
    ...
def conv3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | builtins.str | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    groups: builtins.int = 1,
) -> Tensor:
    """Cross-correlation along the last three axes; otherwise as conv2d.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
    """
    ...
def conv_input(
    ct: TensorLike,
    weight: TensorLike,
    space: Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    input_dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The transpose of conv in x: what a cotangent of the result gives x, whose extents are `space`.

    Arguments:
        ct: a cotangent of the result
        weight: the weights
        space: the extents of x
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        input_dilation: how far the elements of x are moved apart, with zeros between
    """
    ...
def conv_transpose1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    output_padding: builtins.int | Sequence[builtins.int] = 0,
    groups: builtins.int = 1,
    dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The transpose of conv1d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        output_padding: how much is added at the far end: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
    """
    ...
def conv_transpose2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    output_padding: builtins.int | Sequence[builtins.int] = 0,
    groups: builtins.int = 1,
    dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The transpose of conv2d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        output_padding: how much is added at the far end: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
    """
    ...
def conv_transpose3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    output_padding: builtins.int | Sequence[builtins.int] = 0,
    groups: builtins.int = 1,
    dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The transpose of conv3d: each element of x adds a kernel to the result; weight is channels × out/groups × kernel.

    Padding is cut off at both ends, output padding added at the far one.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        output_padding: how much is added at the far end: one number, or one for each axis
        groups: into how many groups the channels are divided, which do not see each other
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
    """
    ...
def conv_weight(
    x: TensorLike,
    ct: TensorLike,
    kernel: Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    input_dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The transpose of conv in its weight: what a cotangent of the result gives the weight, of extents `kernel`.

    Arguments:
        x: a tensor
        ct: a cotangent of the result
        kernel: the extents of the kernel
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        input_dilation: how far the elements of x are moved apart, with zeros between
    """
    ...
def coo_to_csr(
    values: TensorLike,
    rows: TensorLike,
    columns: TensorLike,
    shape: Sequence[builtins.int],
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(values, indices, pointers) of elements given by their rows and columns in any order; equal places add up.

    Arguments:
        values: the elements
        rows: the row of each element
        columns: the column of each element
        shape: the extents of the matrix
    """
    ...
def copysign(x: TensorLike, y: TensorLike) -> Tensor:
    """|x| with the sign of y, also of -0.0 (NaN counts as positive); the derivative where x is 0 is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def copysign_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """copysign in place; gives itself.
    """
    ...
def corrcoef(x: Any) -> Any:
    """The correlations of the rows of a matrix.
    """
    ...
def cos(x: TensorLike) -> Tensor:
    """Cosine of radians.

    Arguments:
        x: a tensor
    """
    ...
def cos_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cos in place; gives itself.
    """
    ...
def cosh(x: TensorLike) -> Tensor:
    """Hyperbolic cosine.

    Arguments:
        x: a tensor
    """
    ...
def cosh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cosh in place; gives itself.
    """
    ...
def cosine_embedding_loss(
    x: TensorLike,
    y: TensorLike,
    target: TensorLike,
    margin: builtins.float = 0.0,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """1 - cosine where the target is 1, and what the cosine is above the margin where it is -1 (last axis).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        target: what x should be
        margin: the distance that is wanted
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def cosine_similarity(x: TensorLike, y: TensorLike, axis: builtins.int = 1, eps: builtins.float = 1e-08) -> Tensor:
    """The cosine of the angle between vectors along an axis; lengths below eps count as eps.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        axis: the axis; negative numbers count from the last one
        eps: a small number that keeps divisors away from 0
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
def cov(x: Any, *, correction: builtins.int = 1) -> Any:
    """The covariances of the rows of a matrix.
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
def cross_entropy(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    ignore_index: builtins.int | None = -100,
    reduction: builtins.str = 'mean',
    label_smoothing: builtins.float = 0.0,
) -> Tensor:
    """The cross entropy of logits x, whose classes are on axis 1 (axis 0 of a vector), with targets.

    Targets are class indices, or probabilities of the shape of x. A weight per class scales losses, of which the mean
    over class indices is the weighted one; those at ignore_index do not count. An index out of range is an error.

    Arguments:
        x: a tensor
        target: what x should be
        weight: what each class counts
        ignore_index: a label that counts nothing
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
        label_smoothing: which part of each target is spread over all classes
    """
    ...
def csr_rows(pointers: TensorLike, count: builtins.int) -> Tensor:
    """The row of each of the stored elements of a sparse matrix.

    Arguments:
        pointers: where each row begins among the stored elements, and where the last ends
        count: how many elements are stored
    """
    ...
def csr_turned(
    indices: TensorLike,
    pointers: TensorLike,
    columns: builtins.int,
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """The pattern of the transpose: which stored element comes at each place, its column, and the pointers.

    Arguments:
        indices: the column of each stored element
        pointers: where each row begins among the stored elements, and where the last ends
        columns: how many columns the matrix has
    """
    ...
def cumargmax(x: TensorLike, axis: builtins.int | None = None) -> Tensor:
    """Where the greatest of all elements up to each along an axis is: the last of equal ones, or of NaNs.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def cumargmin(x: TensorLike, axis: builtins.int | None = None) -> Tensor:
    """Where the least of all elements up to each along an axis is: the last of equal ones, or of NaNs.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def cummax(x: TensorLike, axis: builtins.int | None = None) -> builtins.tuple[Tensor, Tensor]:
    """The greatest of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

    The tangent is that of the element at that place.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def cummax_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cummax in place; gives itself.
    """
    ...
def cummin(x: TensorLike, axis: builtins.int | None = None) -> builtins.tuple[Tensor, Tensor]:
    """The least of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

    The tangent is that of the element at that place.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def cummin_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cummin in place; gives itself.
    """
    ...
def cumprod(x: TensorLike, axis: builtins.int | None = None, reverse: builtins.bool = False) -> Tensor:
    """The product of all elements up to each along an axis; the derivative is right at zeros too.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        reverse: whether it begins at the end
    """
    ...
def cumprod_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cumprod in place; gives itself.
    """
    ...
def cumsum(x: TensorLike, axis: builtins.int | None = None, reverse: builtins.bool = False) -> Tensor:
    """The sum of all elements up to each along an axis (from the end on, if reverse).

    Bools and integers are summed in 64 bits. The axis may be left out if there is only one.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        reverse: whether it begins at the end
    """
    ...
def cumsum_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """cumsum in place; gives itself.
    """
    ...
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Any:
    """The integral up to each point, by the trapezoidal rule.
    """
    ...
def deg2rad(x: TensorLike) -> Tensor:
    """Degrees as radians.

    Arguments:
        x: a tensor
    """
    ...
def deg2rad_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """deg2rad in place; gives itself.
    """
    ...
def degrees(x: TensorLike) -> Tensor:
    """Radians as degrees.

    Arguments:
        x: a tensor
    """
    ...
def degrees_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """degrees in place; gives itself.
    """
    ...
def depthwise_conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | builtins.str | Sequence[builtins.int | builtins.tuple[builtins.int, builtins.int]] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """conv2d with one group per channel; weight is (channels · multiplier) × 1 × kernel.

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
    """
    ...
def det(x: TensorLike) -> Tensor:
    """The determinant of square matrices; its derivative is there for singular ones too.

    Arguments:
        x: a tensor
    """
    ...
def detach(self: Any) -> Tensor:
    """The same value, without its history.
    """
    ...
def dft(x: TensorLike, axis: builtins.int = -1, inverse: builtins.bool = False) -> Tensor:
    """The sum of x[j] · exp(-2πi·jk/n) over j along an axis (+2πi if inverse), without any factor; x is complex.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        inverse: whether the sign of the exponent is turned
    """
    ...
def diag(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The k-th diagonal of a matrix, or a matrix of zeros with a vector on it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def diag_embed(x: TensorLike, offset: builtins.int = 0, axis1: builtins.int = -2, axis2: builtins.int = -1) -> Tensor:
    """Matrices of zeros with the last axis of x on a diagonal, in two axes of the result.

    Arguments:
        x: a tensor
        offset: which diagonal: 0 is the main one, positive numbers are above it
        axis1: the first axis
        axis2: the second axis
    """
    ...
def diagflat(x: Any, offset: builtins.int = 0) -> Any:
    """A matrix of zeros with all elements of x on a diagonal.
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
def diff(x: Any, n: builtins.int = 1, dim: builtins.int = -1) -> Any:
    """The differences between neighbours along an axis, n times over.
    """
    ...
def digamma(x: TensorLike) -> Tensor:
    """The derivative of log Γ(x); NaN at the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def digamma_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """digamma in place; gives itself.
    """
    ...
def dirichlet(
    key: TensorLike,
    alpha: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the Dirichlet distribution: along the last axis of alpha, positive numbers whose sum is 1.

    A shape is that of the other axes. There is no derivative in alpha.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        alpha: the concentrations, along the last axis
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def dist(x: Any, y: Any, p: builtins.float = 2) -> Any:
    """The p-norm of x - y.
    """
    ...
def div(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def div_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """div in place; gives itself.
    """
    ...
def divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def divide_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """divide in place; gives itself.
    """
    ...
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum over the last axis of x and the last but one of y (the only one of a vector); scalars multiply.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
double: DType
def dropout(x: TensorLike, key: TensorLike | None, p: builtins.float = 0.5, training: builtins.bool = True) -> Tensor:
    """x with each element set to 0 with probability p, the others divided by 1 - p; x itself when not training.

    Arguments:
        x: a tensor
        key: a key of random numbers: ek.random.key(seed), or one that was split
        p: the probability with which an element becomes 0
        training: whether it is done as in training
    """
    ...
def dsplit(x: Any, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
    """x in parts along the third axis.
    """
    ...
def dstack(tensors: Sequence[Any]) -> Any:
    """Tensors joined along the third axis.
    """
    ...
e: builtins.float
def eig(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The eigenvalues of square matrices, in LAPACK's order, and eigenvectors of length 1 in columns; always complex.

    The first component of at least half the greatest modulus in each vector is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eig_with_pivots(x: TensorLike) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """`eig`, and for each eigenvalue the component of its vector that is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eigh(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors in columns; x is read as (x + xᴴ)/2.

    The first component of at least half the greatest modulus in each vector is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eigh_with_pivots(x: TensorLike) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """`eigh`, and for each eigenvalue the component of its vector that is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eigvals(x: TensorLike) -> Tensor:
    """The eigenvalues of square matrices, in LAPACK's order; always complex.

    Arguments:
        x: a tensor
    """
    ...
def eigvalsh(x: TensorLike) -> Tensor:
    """The eigenvalues of a Hermitian matrix, rising; x is read as (x + xᴴ)/2.

    Arguments:
        x: a tensor
    """
    ...
def einsum(subscripts: builtins.str, *operands: TensorLike, optimize: Any = True) -> Tensor:
    """The sum of products that the subscripts say, in NumPy's notation, with ellipsis and diagonals.

    Instead of a string, labels may stand behind each operand: einsum(x, [0, 1], y, [1, 2], [0, 2]).
    `optimize` orders the products: True or "greedy" finds a cheap order, False goes from left to right, and a list of
    pairs as of numpy.einsum_path is followed.

    Arguments:
        subscripts: the axes of each operand and of the result, as "ij,jk->ik"
        operands: the tensors, one for each group of letters
        optimize: whether the order of products is chosen by cost
    """
    ...
def elu(x: TensorLike, alpha: builtins.float = 1.0) -> Tensor:
    """x where it is positive, else alpha·(e^x - 1).

    Arguments:
        x: a tensor
        alpha: the value that is approached far below 0, with its sign turned
    """
    ...
def elu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """elu in place; gives itself.
    """
    ...
def embedding(weight: TensorLike, indices: TensorLike, padding_idx: builtins.int | None = None) -> Tensor:
    """The rows of a weight at indices; the row padding_idx is treated as a constant: it has no derivative.

    Arguments:
        weight: the rows that are looked up
        indices: integers: the positions
        padding_idx: a row that is a constant
    """
    ...
def empty(shape: builtins.int | Sequence[builtins.int], dtype: DType | builtins.str | None = None) -> Tensor:
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
def eq(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x = y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def eq_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """eq in place; gives itself.
    """
    ...
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x = y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def equal_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """equal in place; gives itself.
    """
    ...
def erf(x: TensorLike) -> Tensor:
    """The error function.

    Arguments:
        x: a tensor
    """
    ...
def erf_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """erf in place; gives itself.
    """
    ...
def erfc(x: TensorLike) -> Tensor:
    """1 - erf(x), accurate for large x.

    Arguments:
        x: a tensor
    """
    ...
def erfc_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """erfc in place; gives itself.
    """
    ...
def erfinv(x: TensorLike) -> Tensor:
    """The number whose erf is x; ±inf at ±1, NaN beyond.

    Arguments:
        x: a tensor
    """
    ...
def erfinv_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """erfinv in place; gives itself.
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
def exp2_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """exp2 in place; gives itself.
    """
    ...
def exp_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """exp in place; gives itself.
    """
    ...
def expand(x: TensorLike, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent.

    Arguments:
        x: a tensor
        shape: the shape wanted; -1 keeps an extent
    """
    ...
def expand_dims(x: TensorLike, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x with new axes of extent 1, at these places of the result.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def expm(x: TensorLike) -> Tensor:
    """The exponential of square matrices: the sum of their powers over factorials.

    Arguments:
        x: a tensor
    """
    ...
def expm1(x: TensorLike) -> Tensor:
    """e^x - 1, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def expm1_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """expm1 in place; gives itself.
    """
    ...
def expm_frechet(x: TensorLike, direction: TensorLike) -> Tensor:
    """The derivative of `expm` at x along a direction, in which it is linear.

    Arguments:
        x: a tensor
        direction: a tensor of the shape of x: along what it is differentiated
    """
    ...
def exponential(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the exponential distribution of mean scale, never 0 before rounding.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        scale: the mean of the draws
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def eye(
    n: builtins.int,
    m: builtins.int | None = None,
    k: builtins.int = 0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Ones on the diagonal number k of an n × m matrix (square unless m is given), zeros elsewhere.

    Arguments:
        n: how many rows
        m: how many columns; as many as rows unless given
        k: which diagonal: 0 is the main one, positive numbers are above it
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def fabs(x: TensorLike) -> Tensor:
    """|x|; of a complex number its modulus. The derivative at 0 is 0.

    Arguments:
        x: a tensor
    """
    ...
def fft2(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] = ...,
    norm: builtins.str | None = None,
) -> Tensor:
    """The discrete Fourier transform along two axes, with lengths s.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def fftfreq(n: builtins.int, d: builtins.float = 1.0, dtype: DType | builtins.str | None = None) -> Tensor:
    """The frequencies of the n elements of `fft`, in cycles per unit, for samples at distance d.

    Arguments:
        n: how many elements
        d: the distance of samples
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def fftn(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] | None = None,
    norm: builtins.str | None = None,
) -> Tensor:
    """The discrete Fourier transform along axes: all, or as many of the last as s has lengths.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def fftshift(x: TensorLike, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle along axes (all of them by default).

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def finfo(dtype: Any = 'float32') -> Any:
    """The limits of a float dtype: eps, min, max, tiny, bits.
    """
    ...
def fix(x: TensorLike) -> Tensor:
    """x without its fraction.

    Arguments:
        x: a tensor
    """
    ...
def flash_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
    scale: builtins.float | None = None,
    window: builtins.int | None = None,
    dropout: builtins.float = 0.0,
    dropout_key: TensorLike | None = None,
    key_lengths: TensorLike | None = None,
    offsets: TensorLike | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale) · value over … × length × dim; scale is 1/√dim unless said.

    Axes in front broadcast; a multiple of query heads (third axis from the end) shares each key and value head. A mask
    of bools says where to attend, one of floats is added. Causal: query t attends to keys 0 … t. Window: to keys that
    are fewer than so many places away, with causal to the last so many. A query that may attend to nothing gets zeros.
    Dropout leaves out weights with that probability, in 256ths, as its key says, and makes the rest greater by as much.
    Lengths are of samples, the axes in front of heads: what comes later is no key. Offsets say where sequences begin
    that lie one after another, and where the last ends: nothing attends to another sequence than its own.

    Arguments:
        query: what attends: … × length × dim
        key: what is attended to: … × length × dim
        value: what is taken in proportion to the attention
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
        scale: what products of queries and keys are multiplied with; 1/√dim unless given
        window: within how many places keys are attended to; all unless given
        dropout: the probability with which a weight is left out
        dropout_key: the key of random numbers that says which weights are left out
        key_lengths: how many keys each sample has: integers, of the axes in front of heads
        offsets: where sequences begin that lie one after another, and where the last ends
    """
    ...
def flatten(x: TensorLike, start_axis: builtins.int = 0, end_axis: builtins.int = -1) -> Tensor:
    """x with a run of axes made one, by default all; a scalar gets an axis.

    Arguments:
        x: a tensor
        start_axis: the first axis of those that become one
        end_axis: the last axis of those that become one
    """
    ...
def flip(x: TensorLike, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The elements in reverse order along axes (all of them by default).

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def fliplr(x: Any) -> Any:
    """Rows from right to left.
    """
    ...
def flipud(x: Any) -> Any:
    """Rows from the last to the first.
    """
    ...
float: DType
float16: DType
float32: DType
float64: DType
def float8_matmul(
    x: TensorLike,
    y: TensorLike,
    scale: TensorLike | builtins.float = 1.0,
    formats: builtins.tuple[builtins.str, builtins.str] = ...,
    dtype: DType | builtins.str | None = 'float32',
) -> Tensor:
    """x · yᵀ · scale of floats of 8 bits, kept as bytes: … × terms and outputs × terms, summed in float32.

    The scale, one number, is what makes up for those with which factors were multiplied before they were rounded. The
    dtype is float32 or one of 16 bits.

    Arguments:
        x: bytes: … × terms
        y: bytes: outputs × terms
        scale: what products are multiplied with
        formats: those of x and of y
        dtype: of the result: float32, bfloat16 or float16
    """
    ...
float_: DType
def float_power(x: Any, exponent: Any) -> Any:
    """x to a power, in float64.
    """
    ...
def float_power_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """float_power in place; gives itself.
    """
    ...
def floor(x: TensorLike) -> Tensor:
    """The greatest integer not above x.

    Arguments:
        x: a tensor
    """
    ...
def floor_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """floor in place; gives itself.
    """
    ...
def floor_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """The greatest integer not above x / y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def floor_divide_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """floor_divide in place; gives itself.
    """
    ...
def fmax(x: Any, y: Any) -> Any:
    """The greater of x and y; where one is NaN, the other.
    """
    ...
def fmin(x: Any, y: Any) -> Any:
    """The lesser of x and y; where one is NaN, the other.
    """
    ...
def fmod(x: TensorLike, y: TensorLike) -> Tensor:
    """What truncating division leaves, with the sign of x.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def fmod_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """fmod in place; gives itself.
    """
    ...
def focal_loss(
    x: TensorLike,
    target: TensorLike,
    gamma: builtins.float = 2.0,
    alpha: builtins.float | None = 0.25,
    reduction: builtins.str = 'mean',
    logits: builtins.bool = True,
) -> Tensor:
    """The binary cross entropy times (1 - p)^gamma, p the probability of the right answer.

    x are logits or, with logits=False, probabilities. alpha weighs positive targets and 1 - alpha negative ones, unless
    it is None.

    Arguments:
        x: a tensor
        target: what x should be
        gamma: how much easy examples count less
        alpha: what positive targets count
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
        logits: logarithms of what the probabilities are in proportion to
    """
    ...
def fold(
    x: TensorLike,
    output_size: Sequence[builtins.int],
    kernel_size: builtins.int | Sequence[builtins.int],
    dilation: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    stride: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """Columns added together where unfold takes them from: its transpose, not its inverse, where patches overlap.

    Arguments:
        x: a tensor
        output_size: the extents of the result
        kernel_size: the extents of a window: one number, or one for each axis
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        stride: how far windows are apart: one number, or one for each axis
    """
    ...
def fold_in(key: TensorLike, number: TensorLike) -> Tensor:
    """The key that belongs to a key and a number (modulo 2^62): a different one for each, independent of the rest.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        number: an integer to fold in
    """
    ...
def frac(x: Any) -> Any:
    """What is left of x without its whole part, with the sign of x.
    """
    ...
def frac_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """frac in place; gives itself.
    """
    ...
def frobenius_norm(
    x: TensorLike,
    p: builtins.float | builtins.str = 2,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The p-norm of the elements along axes (all of them by default; of a matrix, "fro" is 2).

    p is any number: 0 counts what is not 0, inf and -inf take the greatest and least modulus. Where the norm is 0, so
    is its derivative.

    Arguments:
        x: a tensor
        p: the order of the norm
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def from_float8(x: TensorLike, format: builtins.str = 'e4m3') -> Tensor:
    """What bytes stand for, as float32.

    Arguments:
        x: the bytes
        format: "e4m3" or "e5m2"
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
def gamma(
    key: TensorLike,
    alpha: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the gamma distribution of shape alpha; smooth in scale, without derivative in alpha.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        alpha: the shape of the distribution
        shape: the extents of the result
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def gather(x: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """The elements of x at positions along an axis, one for each element of the index, which may be the smaller one.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
    """
    ...
def gaussian_nll_loss(
    x: TensorLike,
    target: TensorLike,
    var: TensorLike,
    full: builtins.bool = False,
    eps: builtins.float = 1e-06,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """½·(log(var) + (x - target)²/var), var not below eps; `full` adds ½·log(2π).

    Arguments:
        x: a tensor
        target: what x should be
        var: the variances
        full: whether constant terms are added
        eps: a small number that keeps divisors away from 0
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def ge(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≥ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def ge_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """ge in place; gives itself.
    """
    ...
def gelu(x: TensorLike, approximate: builtins.str = 'none') -> Tensor:
    """x·Φ(x), Φ the normal distribution, rounded once; approximate="tanh" takes a common approximation.

    Arguments:
        x: a tensor
        approximate: "none" or "tanh"
    """
    ...
def gelu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """gelu in place; gives itself.
    """
    ...
def ger(x: TensorLike, y: TensorLike) -> Tensor:
    """Every element of x times every element of y: a matrix.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def get_rng_state() -> Any:
    """Where everybody's generator stands, for `set_rng_state`.
    """
    ...
def getitem(x: TensorLike, index: Any) -> Tensor:
    """x[index] as NumPy has it: integers, slices, Ellipsis, None, masks and arrays of integers in any mixture.

    Arguments:
        x: a tensor
        index: integers, slices, Ellipsis, None, masks, tensors of integers, or a tuple of these
    """
    ...
def global_avg_pool2d(x: TensorLike) -> Tensor:
    """The mean of the last two axes, which stay with extent 1.

    Arguments:
        x: a tensor
    """
    ...
def global_max_pool2d(x: TensorLike) -> Tensor:
    """The greatest element of the last two axes, which stay with extent 1; the first of equal ones counts.

    Arguments:
        x: a tensor
    """
    ...
def glu(x: TensorLike, axis: builtins.int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def glu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """glu in place; gives itself.
    """
    ...
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x > y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def greater_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """greater in place; gives itself.
    """
    ...
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≥ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def greater_equal_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """greater_equal in place; gives itself.
    """
    ...
def grid_sample(
    x: TensorLike,
    grid: TensorLike,
    mode: builtins.str = 'bilinear',
    padding_mode: builtins.str = 'zeros',
    align_corners: builtins.bool = False,
) -> Tensor:
    """x (batch × channels × height × width) at points (x, y) from -1 to 1, given as batch × height × width × 2.

    Outside of x are zeros, or with padding_mode "border" the nearest element of it; mode is bilinear or nearest.

    Arguments:
        x: a tensor
        grid: points (x, y) from -1 to 1
        mode: which way it is done; see above
        padding_mode: "zeros", "border" or "reflection": what lies outside of x
        align_corners: whether the outermost elements, not their edges, keep their places
    """
    ...
def group_norm(
    x: TensorLike,
    num_groups: builtins.int,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> Tensor:
    """x with mean 0 and variance 1 over each of num_groups groups of its channels (axis 1) and all that follows.

    Arguments:
        x: a tensor
        num_groups: into how many groups the channels are divided
        weight: what normalized channels are multiplied with
        bias: what is added, one number for each output; None adds nothing
        eps: a small number that keeps divisors away from 0
    """
    ...
def gt(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x > y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def gt_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """gt in place; gives itself.
    """
    ...
def gumbel(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the Gumbel distribution, loc + scale·g.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
half: DType
def hamming_window(
    n: builtins.int,
    periodic: builtins.bool = True,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """The Hamming window of n points; periodic ones are cut from n + 1 points, for spectra.

    Arguments:
        n: how many elements
        periodic: whether the window is one period of a longer one
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def hann_window(n: builtins.int, periodic: builtins.bool = True, dtype: DType | builtins.str | None = None) -> Tensor:
    """The Hann window of n points; periodic ones are cut from n + 1 points, for spectra.

    Arguments:
        n: how many elements
        periodic: whether the window is one period of a longer one
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def hard_shrink(x: TensorLike, lambd: builtins.float = 0.5) -> Tensor:
    """x, and 0 within lambd of 0.

    Arguments:
        x: a tensor
        lambd: how wide the part around 0 is
    """
    ...
def hard_shrink_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """hard_shrink in place; gives itself.
    """
    ...
def hard_sigmoid(x: TensorLike) -> Tensor:
    """x/6 + 1/2 brought between 0 and 1, where the derivative is 0.

    Arguments:
        x: a tensor
    """
    ...
def hard_sigmoid_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """hard_sigmoid in place; gives itself.
    """
    ...
def hard_swish(x: TensorLike) -> Tensor:
    """x·hard_sigmoid(x): 0 up to -3, x from 3 on.

    Arguments:
        x: a tensor
    """
    ...
def hard_swish_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """hard_swish in place; gives itself.
    """
    ...
def hard_tanh(x: TensorLike, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
    """x brought between min_val and max_val, where the derivative is 0.

    Arguments:
        x: a tensor
        min_val: the least value
        max_val: the greatest value
    """
    ...
def hard_tanh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """hard_tanh in place; gives itself.
    """
    ...
def heaviside(x: TensorLike, values: TensorLike) -> Tensor:
    """0 where x is negative, 1 where it is positive, and `values` where it is 0; NaN stays.

    Arguments:
        x: a tensor
        values: what stands where x is 0
    """
    ...
def heaviside_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """heaviside in place; gives itself.
    """
    ...
def hinge_loss(
    x: TensorLike,
    target: TensorLike,
    margin: builtins.float = 1.0,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """margin - target·x where that is positive, else 0, for targets -1 and 1.

    Arguments:
        x: a tensor
        target: what x should be
        margin: the distance that is wanted
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def histc(x: Any, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Any:
    """How many elements are in each of equal bins, from the least to the greatest element unless bounds are given.
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
def hsplit(x: Any, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
    """x in parts along the second axis, of a vector along its only one.
    """
    ...
def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the second axis, vectors along their only one.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def huber_loss(
    x: TensorLike,
    target: TensorLike,
    delta: builtins.float = 1.0,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """Half the square of the distance up to delta, from there on a straight line of slope delta.

    Arguments:
        x: a tensor
        target: what x should be
        delta: up to which distance the loss is a square
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def hypot(x: TensorLike, y: TensorLike) -> Tensor:
    """√(x² + y²) without overflow; the derivative at 0 is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def hypot_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """hypot in place; gives itself.
    """
    ...
def identity(
    n: builtins.int,
    m: builtins.int | None = None,
    k: builtins.int = 0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Ones on the diagonal number k of an n × m matrix (square unless m is given), zeros elsewhere.

    Arguments:
        n: how many rows
        m: how many columns; as many as rows unless given
        k: which diagonal: 0 is the main one, positive numbers are above it
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def ifft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fft`.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifft2(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] = ...,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fft2`.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifftn(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] | None = None,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fftn`.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifftshift(x: TensorLike, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype: min, max, bits.
    """
    ...
def im2col(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    dilation: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    stride: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The patches of (batch ×) channels × height × width as columns: (batch ×) channels·kernel × patches.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        stride: how far windows are apart: one number, or one for each axis
    """
    ...
def imag(x: TensorLike) -> Tensor:
    """The imaginary part; 0 of a real number.

    Arguments:
        x: a tensor
    """
    ...
def index_add(x: TensorLike, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: Any = 1) -> Tensor:
    """x with slices of a source, times alpha, added at the positions of a vector along an axis.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
        source: the slices that are added
        alpha: a number to multiply with
    """
    ...
def index_add_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """index_add in place; gives itself.
    """
    ...
def index_copy(x: Any, dim: builtins.int, index: Any, source: Any) -> Any:
    """x with the slices of a source at positions of an axis.
    """
    ...
def index_copy_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """index_copy in place; gives itself.
    """
    ...
def index_fill(x: Any, dim: builtins.int, index: Any, value: Any) -> Any:
    """x with one value at positions of an axis.
    """
    ...
def index_fill_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """index_fill in place; gives itself.
    """
    ...
def index_put(x: TensorLike, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
    """x with values at x[indices], or with accumulate added there once for each time that a place is named.

    Arguments:
        x: a tensor
        indices: a tuple of indices, one for each of the first axes
        values: a tensor of values
        accumulate: whether values are added to what is there
    """
    ...
def index_put_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """index_put in place; gives itself.
    """
    ...
def index_select(x: TensorLike, axis: builtins.int, index: TensorLike) -> Tensor:
    """The slices of x at the positions of a vector along an axis.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
    """
    ...
inf: builtins.float
def initial_seed() -> builtins.int:
    """The seed of everybody's generator.
    """
    ...
def inner(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum over the last axes of x and y; scalars multiply.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def instance_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> Tensor:
    """x with mean 0 and variance 1 over all that follows each of its channels (axis 1).

    Arguments:
        x: a tensor
        weight: what normalized channels are multiplied with
        bias: what is added, one number for each output; None adds nothing
        eps: a small number that keeps divisors away from 0
    """
    ...
int: DType
int16: DType
int32: DType
int64: DType
int8: DType
def interpolate(
    x: TensorLike,
    size: builtins.int | Sequence[builtins.int] | None = None,
    scale_factor: builtins.float | Sequence[builtins.float] | None = None,
    mode: builtins.str = 'nearest',
    align_corners: builtins.bool = False,
) -> Tensor:
    """x (batch × channels × space) in another size, or scaled; mode nearest, nearest-exact, bilinear, bicubic, area ….

    Elements are areas, whose outer edges are kept; with `align_corners` they are points, of which the outermost are.

    Arguments:
        x: a tensor
        size: how many elements
        scale_factor: by what the extents are multiplied
        mode: which way it is done; see above
        align_corners: whether the outermost elements, not their edges, keep their places
    """
    ...
def inv(x: TensorLike) -> Tensor:
    """The inverse of square matrices; a singular one is an error.

    Arguments:
        x: a tensor
    """
    ...
def inverse(x: TensorLike) -> Tensor:
    """The inverse of square matrices; a singular one is an error.

    Arguments:
        x: a tensor
    """
    ...
def invert(x: TensorLike) -> Tensor:
    """Every bit turned over; of bools, whether x does not hold.

    Arguments:
        x: a tensor
    """
    ...
def iota(
    shape: builtins.int | Sequence[builtins.int],
    axis: builtins.int = 0,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    """0, 1, 2 … along an axis, the same along the others.

    Arguments:
        shape: the extents of the result
        axis: the axis; negative numbers count from the last one
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def irfft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `rfft`: n real numbers, 2·(m - 1) unless given for m elements.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def is_complex(x: Any) -> builtins.bool:
    """Whether its elements are complex numbers.
    """
    ...
def is_floating_point(x: Any) -> builtins.bool:
    """Whether its elements are floats.
    """
    ...
def is_grad_enabled() -> builtins.bool:
    """Whether operations are remembered for `backward` here.
    """
    ...
def is_nonzero(x: Any) -> builtins.bool:
    """Whether the one element is not 0.
    """
    ...
def is_signed(x: Any) -> builtins.bool:
    """Whether its dtype has negative numbers.
    """
    ...
def is_tensor(given: Any) -> builtins.bool:
    """Whether it is a tensor.
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
def isclose_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """isclose in place; gives itself.
    """
    ...
def isfinite(x: TensorLike) -> Tensor:
    """Whether x is neither infinite nor NaN.

    Arguments:
        x: a tensor
    """
    ...
def isfinite_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """isfinite in place; gives itself.
    """
    ...
def isin(elements: Any, test_elements: Any) -> Any:
    """Which elements are among others; NaN is among none.
    """
    ...
def isinf(x: TensorLike) -> Tensor:
    """Whether x is infinite.

    Arguments:
        x: a tensor
    """
    ...
def isinf_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """isinf in place; gives itself.
    """
    ...
def isnan(x: TensorLike) -> Tensor:
    """Whether x is NaN.

    Arguments:
        x: a tensor
    """
    ...
def isnan_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """isnan in place; gives itself.
    """
    ...
def isneginf(x: Any) -> Any:
    """Whether x is -inf.
    """
    ...
def isposinf(x: Any) -> Any:
    """Whether x is +inf.
    """
    ...
def isreal(x: Any) -> Any:
    """Whether the imaginary part is 0.
    """
    ...
def istft(
    input: Any,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Any = None,
    center: builtins.bool = True,
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    length: builtins.int | None = None,
    return_complex: builtins.bool = False,
) -> Any:
    """The signal whose `stft` is given, as near as can be: windows are added up, and divided by what there is of them.

    An element that no window reaches is NaN.
    """
    ...
def kl_div(
    x: TensorLike,
    target: TensorLike,
    reduction: builtins.str = 'mean',
    log_target: builtins.bool = False,
) -> Tensor:
    """target·(log(target) - x) for log-probabilities x; with log_target the targets are logarithms too.

    The mean is over all elements, as everywhere; "batchmean" divides their sum by the extent of axis 0.

    Arguments:
        x: a tensor
        target: what x should be
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
        log_target: whether targets are logarithms
    """
    ...
def kl_div_normal(mu: TensorLike, logvar: TensorLike, reduction: builtins.str = 'mean') -> Tensor:
    """(mu² + e^logvar - 1 - logvar)/2: how far normal distributions are from the standard one, as a VAE's loss has it.

    They are given by means and logarithms of variances. The mean is over all elements, as everywhere; "sum" is the
    divergence itself, and "batchmean" divides it by the extent of axis 0, as the loss of a VAE usually does.

    Arguments:
        mu: the means
        logvar: logarithms of the variances
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def kron(x: TensorLike, y: TensorLike) -> Tensor:
    """The Kronecker product: every element of x times all of y, as blocks.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def kthvalue(
    x: TensorLike,
    k: builtins.int,
    axis: builtins.int = -1,
    keepdims: builtins.bool = False,
) -> builtins.tuple[Tensor, Tensor]:
    """The k-th least element along an axis (k counts from 1), and its position.

    Arguments:
        x: a tensor
        k: which one, from 1 on
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def l1_loss(x: TensorLike, target: TensorLike, reduction: builtins.str = 'mean') -> Tensor:
    """|x - target|; the derivative where they are equal is 0.

    Arguments:
        x: a tensor
        target: what x should be
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def laplace(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws from the Laplace distribution, loc + scale·l.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def layer_norm(
    x: TensorLike,
    normalized_shape: builtins.int | Sequence[builtins.int],
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: builtins.float = 1e-05,
) -> Tensor:
    """x with mean 0 and variance 1 over its last axes, of a given shape, then times a weight and plus a bias.

    Arguments:
        x: a tensor
        normalized_shape: the extents of the last axes, over which it is normalized
        weight: what normalized elements are multiplied with
        bias: what is added, one number for each output; None adds nothing
        eps: a small number that keeps divisors away from 0
    """
    ...
def ldexp(x: Any, y: Any) -> Any:
    """x · 2^y.
    """
    ...
def le(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≤ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def le_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """le in place; gives itself.
    """
    ...
def leaky_relu(x: TensorLike, negative_slope: builtins.float = 0.01) -> Tensor:
    """x where it is positive, else x times a small slope (as at 0).

    Arguments:
        x: a tensor
        negative_slope: the slope where x is negative
    """
    ...
def leaky_relu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """leaky_relu in place; gives itself.
    """
    ...
def left_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved up by y places, zeros following.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def lerp(x: TensorLike, y: TensorLike, weight: TensorLike) -> Tensor:
    """From x (weight 0) to y (weight 1) in a straight line; exact at both ends.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        weight: how far from x to y: 0 is x, 1 is y
    """
    ...
def lerp_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """lerp in place; gives itself.
    """
    ...
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x < y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def less_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """less in place; gives itself.
    """
    ...
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≤ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def less_equal_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """less_equal in place; gives itself.
    """
    ...
def lgamma(x: TensorLike) -> Tensor:
    """log |Γ(x)|; infinite at 0 and the negative integers.

    Arguments:
        x: a tensor
    """
    ...
def lgamma_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """lgamma in place; gives itself.
    """
    ...
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """x · weightᵀ + bias along the last axis; the weight has the shape (out, in).

    Arguments:
        x: a tensor
        weight: the weights
        bias: what is added, one number for each output; None adds nothing
    """
    ...
def linear_recurrence(
    gains: TensorLike,
    x: TensorLike,
    initial: TensorLike | None = None,
    axis: builtins.int = 0,
    reverse: builtins.bool = False,
) -> Tensor:
    """y of y[k] = gains[k] · y[k - 1] + x[k] along an axis (from its end on, if reverse), from `initial` or 0 on.

    Running means (one gain for all), filters of first order, and states of linear networks are such. Gains and x
    broadcast; the derivative takes as long as the recurrence.

    Arguments:
        gains: what each element before is multiplied with: of x's shape, or one that broadcasts with it
        x: a tensor
        initial: what is before the first element; 0 if not given
        axis: the axis; negative numbers count from the last one
        reverse: whether it begins at the end
    """
    ...
def linspace(
    start: builtins.float,
    stop: builtins.float,
    num: builtins.int = 50,
    endpoint: builtins.bool = True,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """num numbers at equal distances from start to stop, both of them exact (without endpoint: to before stop).

    Arguments:
        start: where it begins
        stop: where it ends; the end itself is left out
        num: how many numbers
        endpoint: whether stop is the last of them
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def local_response_norm(
    x: TensorLike,
    size: builtins.int,
    alpha: builtins.float = 0.0001,
    beta: builtins.float = 0.75,
    k: builtins.float = 1.0,
) -> Tensor:
    """x divided by (k + alpha·(mean square of the `size` channels around it, axis 1))^beta.

    Arguments:
        x: a tensor
        size: how many elements
        alpha: what the mean square is multiplied with
        beta: the power that is divided by
        k: what is added to the mean square
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
def log10_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log10 in place; gives itself.
    """
    ...
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def log1p_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log1p in place; gives itself.
    """
    ...
def log2(x: TensorLike) -> Tensor:
    """Logarithm to the base 2.

    Arguments:
        x: a tensor
    """
    ...
def log2_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log2 in place; gives itself.
    """
    ...
def log_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log in place; gives itself.
    """
    ...
def log_sigmoid(x: TensorLike) -> Tensor:
    """log(sigmoid(x)), without overflow.

    Arguments:
        x: a tensor
    """
    ...
def log_sigmoid_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log_sigmoid in place; gives itself.
    """
    ...
def log_softmax(x: TensorLike, axis: builtins.int = -1) -> Tensor:
    """The logarithm of softmax, without overflow and without losing small ones.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def log_softmax_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """log_softmax in place; gives itself.
    """
    ...
def logaddexp(x: TensorLike, y: TensorLike) -> Tensor:
    """log(e^x + e^y) without overflow; where both are -inf the derivative is 0.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logaddexp2(x: Any, y: Any) -> Any:
    """log2(2^x + 2^y), without overflow.
    """
    ...
def logaddexp_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logaddexp in place; gives itself.
    """
    ...
def logcumsumexp(x: Any, dim: builtins.int) -> Any:
    """The logarithm of the sum of e^x up to each element along an axis, without overflow.
    """
    ...
def logdet(x: Any) -> Any:
    """The logarithm of the determinant; NaN where it is negative.
    """
    ...
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x and y both hold (are not 0).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_and_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logical_and in place; gives itself.
    """
    ...
def logical_not(x: TensorLike) -> Tensor:
    """Whether x does not hold (is 0).

    Arguments:
        x: a tensor
    """
    ...
def logical_not_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logical_not in place; gives itself.
    """
    ...
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x or y holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_or_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logical_or in place; gives itself.
    """
    ...
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether exactly one of x and y holds.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def logical_xor_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logical_xor in place; gives itself.
    """
    ...
def logit(x: Any, eps: builtins.float | None = None) -> Any:
    """log(x / (1 - x)), of x brought between eps and 1 - eps if that is given.
    """
    ...
def logit_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """logit in place; gives itself.
    """
    ...
def logspace(
    start: builtins.float,
    stop: builtins.float,
    num: builtins.int = 50,
    endpoint: builtins.bool = True,
    base: builtins.float = 10.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """base to the powers linspace(start, stop, num): numbers at equal ratios.

    Arguments:
        start: where it begins
        stop: where it ends; the end itself is left out
        num: how many numbers
        endpoint: whether stop is the last of them
        base: the number whose powers are taken
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def logsumexp(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """log of the sum of e^x along axes, without overflow; of none and of -inf alone it is -inf, with derivative 0.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
long: DType
def lstsq(x: TensorLike, b: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The shortest solution that brings x · solution nearest to b in the sense of least squares; rtol as in `pinv`.

    Arguments:
        x: a tensor
        b: the right side
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def lt(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x < y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def lt_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """lt in place; gives itself.
    """
    ...
def lu(x: TensorLike) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(P, L, U) with P · L · U = x: an exchange of rows, a lower triangle with ones on its diagonal, an upper one.

    Arguments:
        x: a tensor
    """
    ...
def lu_factor(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """(LU, pivots) for `lu_solve`: both triangles of `lu` in one matrix, and the exchanges of rows as in LAPACK.

    Arguments:
        x: a tensor
    """
    ...
def lu_rows(x: TensorLike) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """Both triangles of `lu` in one matrix, the exchanges of rows as in LAPACK, and which row of x stands where.

    Arguments:
        x: a tensor
    """
    ...
def lu_solve(
    factors: TensorLike,
    pivots: TensorLike,
    b: TensorLike,
    left: builtins.bool = True,
    adjoint: builtins.bool = False,
) -> Tensor:
    """What the matrix with these factors (of `lu_factor`) must be multiplied with to give b, from the left or right.

    With `adjoint` its conjugate transpose is meant.

    Arguments:
        factors: both triangles in one matrix, as lu_factor gives them
        pivots: the exchanges of rows, from 1 on, as lu_factor gives them
        b: the right side
        left: whether the matrix stands to the left of what is looked for
        adjoint: whether the conjugate transpose of the matrix is meant
    """
    ...
def mae_loss(x: TensorLike, target: TensorLike, reduction: builtins.str = 'mean') -> Tensor:
    """|x - target|; the derivative where they are equal is 0.

    Arguments:
        x: a tensor
        target: what x should be
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def manual_seed(seed: builtins.int) -> Any:
    """Let everybody's generator begin again from a seed; gives that generator.
    """
    ...
def masked_fill(x: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """x with one value wherever the mask holds, which broadcasts to x.

    Arguments:
        x: a tensor
        mask: truth values: where it holds; it broadcasts
        value: the value to put in
    """
    ...
def masked_fill_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """masked_fill in place; gives itself.
    """
    ...
def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """x with the elements of a source, in order, where a mask holds.
    """
    ...
def masked_scatter_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """masked_scatter in place; gives itself.
    """
    ...
def masked_select(x: TensorLike, mask: TensorLike) -> Tensor:
    """The elements of x where the mask holds, in a row; the two broadcast. The mask must be known.

    Arguments:
        x: a tensor
        mask: truth values: where it holds; it broadcasts
    """
    ...
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def matrix_exp(x: TensorLike) -> Tensor:
    """The exponential of square matrices: the sum of their powers over factorials.

    Arguments:
        x: a tensor
    """
    ...
def matrix_lstsq(x: TensorLike, b: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The shortest matrix that brings x · it nearest to the matrix b; `lstsq` takes vectors too.

    Arguments:
        x: a tensor
        b: the right side
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def matrix_norm(
    x: TensorLike,
    ord: builtins.int | builtins.float | builtins.str = 'fro',
    axis: builtins.tuple[builtins.int, builtins.int] = ...,
    keepdims: builtins.bool = False,
) -> Tensor:
    """A norm of matrices: "fro", "nuc" (sum of singular values), ±1 (columns), ±2 (singular values), ±inf (rows).

    Arguments:
        x: a tensor
        ord: which norm; see above
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def matrix_power(x: TensorLike, n: builtins.int) -> Tensor:
    """The product of n equal square matrices; negative powers are those of the inverse.

    Arguments:
        x: a tensor
        n: how many factors
    """
    ...
def matrix_product(x: TensorLike, y: TensorLike) -> Tensor:
    """The product of the matrices in the last two axes, batches in front broadcasting; `matmul` takes vectors too.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def matrix_rank(x: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """How many singular values are above rtol times the greatest; rtol as in `pinv`.

    Arguments:
        x: a tensor
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def matrix_solve(x: TensorLike, b: TensorLike) -> Tensor:
    """The matrix that x must be multiplied with to give the matrix b; `solve` takes vectors too.

    Arguments:
        x: a tensor
        b: the right side
    """
    ...
def matvec(x: TensorLike, y: TensorLike) -> Tensor:
    """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def max(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The greatest element along axes; NaN if one is; equal greatest ones share the tangent.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1

    Called as in PyTorch, max(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
    """
    ...
@overload
def max_pool1d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def max_pool1d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest element of each window along the last axis; otherwise as max_pool2d.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        ceil_mode: whether windows that reach over the end count
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def max_pool1d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
@overload
def max_pool2d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def max_pool2d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest element of each window over the last two axes, NaN if there is one; padding is never chosen.

    The stride is the kernel's size unless said. The first of equal elements has the derivative; indices are flat within
    the two axes.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        ceil_mode: whether windows that reach over the end count
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def max_pool2d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
@overload
def max_pool3d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    *,
    return_indices: Literal[True],
) -> builtins.tuple[Tensor, Tensor]:
    ...
@overload
def max_pool3d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The greatest element of each window over the last three axes; otherwise as max_pool2d.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        ceil_mode: whether windows that reach over the end count
        return_indices: whether the positions of what was chosen are given too
    """
    ...
@overload
def max_pool3d(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
    return_indices: builtins.bool = False,
) -> Tensor | builtins.tuple[Tensor, Tensor]:
    ...
def max_unpool2d(
    x: TensorLike,
    indices: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    output_size: Sequence[builtins.int] | None = None,
) -> Tensor:
    """The elements back at the indices that max_pool2d gave, zeros elsewhere.

    Arguments:
        x: a tensor
        indices: integers: the positions
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        output_size: the extents of the result
    """
    ...
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The greater of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def maximum_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """maximum in place; gives itself.
    """
    ...
def mean(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The mean along axes; integers become floats first, and the mean of nothing is NaN.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def median(x: TensorLike, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The middle element along an axis, or the mean of the middle two as NumPy has it; NaN if one of them is.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1

    Called as in PyTorch, median(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
    """
    ...
def meshgrid(tensors: Sequence[TensorLike], indexing: builtins.str = 'xy') -> builtins.tuple[Tensor, ...]:
    """Vectors as coordinates of a grid: one tensor of the grid's shape for each ("xy": the first runs along axis 1).

    Arguments:
        tensors: a sequence of tensors
        indexing: "xy" or "ij": along which axis the first vector runs
    """
    ...
def min(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The least element along axes; NaN if one is; equal least ones share the tangent.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1

    Called as in PyTorch, min(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
    """
    ...
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The lesser of x and y; NaN if either is; equal operands share the tangent.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def minimum_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """minimum in place; gives itself.
    """
    ...
def mish(x: TensorLike) -> Tensor:
    """x·tanh(softplus(x)).

    Arguments:
        x: a tensor
    """
    ...
def mish_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """mish in place; gives itself.
    """
    ...
def mm(x: Any, y: Any) -> Any:
    """The product of two matrices.
    """
    ...
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """What floor division leaves, with the sign of y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def mod_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """mod in place; gives itself.
    """
    ...
def mode(x: Any, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Any:
    """The value that comes most often along an axis (the least of several), and the last place where it is.
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
def movedim(
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
def mse_loss(x: TensorLike, target: TensorLike, reduction: builtins.str = 'mean') -> Tensor:
    """(x - target)².

    Arguments:
        x: a tensor
        target: what x should be
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def mul(x: TensorLike, y: TensorLike) -> Tensor:
    """x · y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def mul_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """mul in place; gives itself.
    """
    ...
def multi_head_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    num_heads: builtins.int,
    query_weight: TensorLike,
    key_weight: TensorLike,
    value_weight: TensorLike,
    out_weight: TensorLike,
    query_bias: TensorLike | None = None,
    key_bias: TensorLike | None = None,
    value_bias: TensorLike | None = None,
    out_bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
) -> Tensor:
    """Attention of heads between projections: (batch ×) length × embedding in, weights out × in as of linear layers.

    A head is 1/num_heads of what query_weight gives; fewer key and value heads are shared by groups of query heads. The
    mask broadcasts to (batch ×) heads × queries × keys.

    Arguments:
        query: what attends: … × length × dim
        key: what keys are made of
        value: what values are made of
        num_heads: how many heads there are
        query_weight: weights that make queries, out × in
        key_weight: weights that make keys, out × in
        value_weight: weights that make values, out × in
        out_weight: weights that are applied to the heads together, out × in
        query_bias: what is added to queries
        key_bias: what is added to keys
        value_bias: what is added to values
        out_bias: what is added in the end
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
    """
    ...
def multi_head_self_attention(
    x: TensorLike,
    num_heads: builtins.int,
    query_weight: TensorLike,
    key_weight: TensorLike,
    value_weight: TensorLike,
    out_weight: TensorLike,
    query_bias: TensorLike | None = None,
    key_bias: TensorLike | None = None,
    value_bias: TensorLike | None = None,
    out_bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
) -> Tensor:
    """multi_head_attention of a sequence to itself.

    Arguments:
        x: a tensor
        num_heads: how many heads there are
        query_weight: weights that make queries, out × in
        key_weight: weights that make keys, out × in
        value_weight: weights that make values, out × in
        out_weight: weights that are applied to the heads together, out × in
        query_bias: what is added to queries
        key_bias: what is added to keys
        value_bias: what is added to values
        out_bias: what is added in the end
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
    """
    ...
def multinomial(
    key: TensorLike,
    probabilities: TensorLike,
    count: builtins.int,
    replacement: builtins.bool = False,
) -> Tensor:
    """count places of the last axis, drawn in proportion to probabilities (which need not sum to 1).

    Without replacement no place is drawn twice, and those of probability 0 come last. With it, a number is drawn for
    every place and draw. Negative probabilities are an error where they are known already; computed within a graph
    they count as 0.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        probabilities: what is drawn in proportion to
        count: how many draws
        replacement: whether one place may be drawn more than once

    Without a key, as in PyTorch: multinomial(probabilities, num_samples, replacement=False).
    """
    ...
def multiply(x: TensorLike, y: TensorLike) -> Tensor:
    """x · y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def multiply_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """multiply in place; gives itself.
    """
    ...
def mv(x: TensorLike, y: TensorLike) -> Tensor:
    """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting.

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
def nan_to_num_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """nan_to_num in place; gives itself.
    """
    ...
def nanmean(x: Any, dim: Any = None, keepdim: builtins.bool = False) -> Any:
    """The mean of the elements that are not NaN.
    """
    ...
def nansum(x: Any, dim: Any = None, keepdim: builtins.bool = False) -> Any:
    """The sum of the elements that are not NaN.
    """
    ...
def narrow(x: Any, dim: builtins.int, start: builtins.int, length: builtins.int) -> Any:
    """`length` elements along an axis, from `start` on.
    """
    ...
def ndtr(x: TensorLike) -> Tensor:
    """Φ(x): how much of the normal distribution lies below x, accurate also where it is small.

    Arguments:
        x: a tensor
    """
    ...
def ndtr_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """ndtr in place; gives itself.
    """
    ...
def ndtri(x: TensorLike) -> Tensor:
    """The number below which x of the normal distribution lies, accurate for small x; ±inf at 0 and 1, NaN beyond.

    Arguments:
        x: a tensor
    """
    ...
def ndtri_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """ndtri in place; gives itself.
    """
    ...
def ne(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≠ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def ne_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """ne in place; gives itself.
    """
    ...
def neg(x: TensorLike) -> Tensor:
    """-x.

    Arguments:
        x: a tensor
    """
    ...
def neg_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """neg in place; gives itself.
    """
    ...
def negative(x: TensorLike) -> Tensor:
    """-x.

    Arguments:
        x: a tensor
    """
    ...
def negative_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """negative in place; gives itself.
    """
    ...
newaxis: Any
def nll_loss(
    x: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    ignore_index: builtins.int | None = -100,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """The negative log-probability, of those given, of the target class; as cross_entropy without log_softmax.

    Arguments:
        x: a tensor
        target: what x should be
        weight: what each class counts
        ignore_index: a label that counts nothing
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def norm(
    x: TensorLike,
    p: builtins.float | builtins.str = 2,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The p-norm of the elements along axes (all of them by default; of a matrix, "fro" is 2).

    p is any number: 0 counts what is not 0, inf and -inf take the greatest and least modulus. Where the norm is 0, so
    is its derivative.

    Arguments:
        x: a tensor
        p: the order of the norm
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def normal(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Normal draws loc + scale·z; z is the quantile of a uniform number and reaches 6.3 (9.2 in float64).

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name

    Without a key, as in PyTorch: normal(mean, std, size), or of the shape of the tensors mean and std.
    """
    ...
def normal_density(x: TensorLike) -> Tensor:
    """The density of the normal distribution, e^(-x²/2)/√(2π).

    Arguments:
        x: a tensor
    """
    ...
def normal_density_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """normal_density in place; gives itself.
    """
    ...
def normalize(x: TensorLike, p: builtins.float = 2, axis: builtins.int = 1, eps: builtins.float = 1e-12) -> Tensor:
    """x divided by its p-norm along an axis, or by eps if that is greater: vectors of length 1.

    Arguments:
        x: a tensor
        p: the order of the norm
        axis: the axis; negative numbers count from the last one
        eps: a small number that keeps divisors away from 0
    """
    ...
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x ≠ y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def not_equal_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """not_equal in place; gives itself.
    """
    ...
def one_hot(
    indices: TensorLike,
    num_classes: builtins.int | None = None,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    """For each class label a vector with 1 at its place and 0 elsewhere, as the last axis.

    Without a number of classes the labels must be known; one that is negative or too great is an error.

    Arguments:
        indices: class labels: integers from 0
        num_classes: how many classes there are
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def ones(shape: builtins.int | Sequence[builtins.int], dtype: DType | builtins.str | None = None) -> Tensor:
    """Ones.

    Arguments:
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
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
def pad(x: TensorLike, widths: Any, value: Any = 0, mode: builtins.str = 'constant', interior: Any = 0) -> Tensor:
    """x with elements before and after along each axis: `widths` is ((before, after), …), one pair, or one integer.

    Mode "constant" fills with a value, also between elements (interior), and negative widths cut off; "reflect",
    "replicate" ("edge") and "circular" ("wrap") fill with what stands at the ends.

    Arguments:
        x: a tensor
        widths: ((before, after), ...) for each axis, one pair for all, or one integer
        value: the value to put in
        mode: which way it is done; see above
        interior: how many elements are put between neighbours
    """
    ...
def pad_constant(
    x: TensorLike,
    value: TensorLike,
    low: Sequence[builtins.int],
    high: Sequence[builtins.int],
    interior: Sequence[builtins.int] | None = None,
) -> Tensor:
    """x with one value before, behind and (interior) between its elements along each axis; negative widths cut off.

    Arguments:
        x: a tensor
        value: the value to put in
        low: the least number
        high: the greatest number; integers stay below it
        interior: how many elements are put between neighbours
    """
    ...
def paged_attention(
    query: TensorLike,
    key_pages: TensorLike,
    value_pages: TensorLike,
    table: TensorLike,
    lengths: TensorLike,
    scale: builtins.float | None = None,
) -> Tensor:
    """Attention of batch × heads × queries × dim to the keys of each sample, which lie in pages.

    Pages are pages × places × heads × dim; a row of the table says which ones a sample has, and lengths of how many
    places there are keys: entries for what is beyond them are not looked at, the others are checked. A multiple of
    query heads shares keys.

    Arguments:
        query: who attends: batch × heads × queries × dim
        key_pages: pages of keys: pages × places × heads × dim
        value_pages: pages of values: pages × places × heads × dim
        table: which pages each sample has: batch × pages
        lengths: how many keys each sample has
        scale: what products of queries and keys are multiplied with; 1/√dim unless given
    """
    ...
def pdist(x: Any, p: builtins.float = 2) -> Any:
    """The distances between all pairs of rows, each once.
    """
    ...
def permute(x: TensorLike, axes: Sequence[builtins.int]) -> Tensor:
    """The axes in another order.

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
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
def pinv(x: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

    By default rtol is the greater extent of the matrix times the epsilon of its dtype.

    Arguments:
        x: a tensor
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def pinverse(x: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

    By default rtol is the greater extent of the matrix times the epsilon of its dtype.

    Arguments:
        x: a tensor
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def pivoted_rows(pivots: TensorLike, rows: builtins.int) -> Tensor:
    """Which of so many rows stands where, after the exchanges that pivots tell.

    Arguments:
        pivots: the exchanges of rows, from 1 on, as lu_factor gives them
        rows: how many rows there are
    """
    ...
def pixel_shuffle(x: TensorLike, upscale_factor: builtins.int) -> Tensor:
    """Channels as finer pixels: … × C·r² × H × W becomes … × C × H·r × W·r.

    Arguments:
        x: a tensor
        upscale_factor: how many pixels one becomes along each axis
    """
    ...
def pixel_unshuffle(x: TensorLike, downscale_factor: builtins.int) -> Tensor:
    """Pixels as channels, the inverse of pixel_shuffle: … × C × H·r × W·r becomes … × C·r² × H × W.

    Arguments:
        x: a tensor
        downscale_factor: how many pixels become one along each axis
    """
    ...
def poisson(
    key: TensorLike,
    rate: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    """Draws from the Poisson distribution: how often an event happens that happens so often on average, up to 10^15.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        rate: how often the event happens on average
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name

    Without a key, as in PyTorch: poisson(rate): counts in the dtype of the rate, a float.
    """
    ...
def poisson_nll_loss(
    x: TensorLike,
    target: TensorLike,
    log_input: builtins.bool = True,
    full: builtins.bool = False,
    eps: builtins.float = 1e-08,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """e^x - target·x, or for a rate x itself x - target·log(x + eps); `full` adds Stirling's log(target!).

    Arguments:
        x: a tensor
        target: what x should be
        log_input: whether x is the logarithm of the rate
        full: whether constant terms are added
        eps: a small number that keeps divisors away from 0
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def polar(abs: Any, angle: Any) -> Any:
    """The complex numbers of absolute values and angles.
    """
    ...
def polygamma(n: builtins.int, x: TensorLike) -> Tensor:
    """The n-th derivative of digamma, for n from 0 to 30.

    Arguments:
        n: which derivative
        x: a tensor
    """
    ...
def position(indices: TensorLike, extent: builtins.int, wrap: builtins.bool = True) -> Tensor:
    """Indices as positions from 0 on: negative ones count from the end (unless wrap is False); range is checked.

    Arguments:
        indices: integers: the positions
        extent: the extent of the axis that is indexed
        wrap: whether negative positions count from the end
    """
    ...
def positional_encoding(
    length: builtins.int,
    dim: builtins.int,
    base: builtins.float = 10000.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """length × dim sinusoids: sin(t / base^(2k/dim)) in column 2k, the cosine of the same in column 2k + 1.

    Arguments:
        length: how many positions
        dim: the extent of the last axis
        base: the number whose powers are taken
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def positive(x: Any) -> Any:
    """x itself.
    """
    ...
def pow(x: TensorLike, y: TensorLike | builtins.float) -> Tensor:
    """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def pow_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """pow in place; gives itself.
    """
    ...
def power(x: TensorLike, y: TensorLike) -> Tensor:
    """x to the power y, element by element; of integers, a negative power is an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def power_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """power in place; gives itself.
    """
    ...
def prelu(x: TensorLike, weight: TensorLike) -> Tensor:
    """x where it is positive, else x times a learned weight: one, or one per channel (axis 1).

    Arguments:
        x: a tensor
        weight: the slope where x is negative: one, or one per channel
    """
    ...
def prelu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """prelu in place; gives itself.
    """
    ...
def prod(
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
def promote_types(type1: Any, type2: Any) -> DType:
    """The dtype in which two dtypes meet.
    """
    ...
def put(x: TensorLike, indices: TensorLike, values: TensorLike) -> Tensor:
    """x with values at positions among all its elements in a row; values are repeated if there are too few.

    Arguments:
        x: a tensor
        indices: integers: the positions
        values: a tensor of values
    """
    ...
def put_along(
    x: TensorLike,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike,
    mode: builtins.str = 'set',
) -> Tensor:
    """x with an element of src at the position along an axis that the index has for it; the inverse of `gather`.

    Mode is "set", "add", "max", "min" or "mul", as in `scatter`; src may be larger than the index, or a number.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
        src: the values that go to these positions
        mode: which way it is done; see above
    """
    ...
@overload
def qr(x: TensorLike, mode: Literal['r']) -> Tensor:  # type: ignore[overload-overlap]
    ...
@overload
def qr(x: TensorLike, mode: builtins.str = 'reduced') -> builtins.tuple[Tensor, Tensor]:
    """(Q, R) with orthonormal columns in Q and an upper triangular R, with LAPACK's signs; only R in the mode "r".

    Arguments:
        x: a tensor
        mode: which way it is done; see above
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
def rad2deg_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """rad2deg in place; gives itself.
    """
    ...
def radians(x: TensorLike) -> Tensor:
    """Degrees as radians.

    Arguments:
        x: a tensor
    """
    ...
def radians_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """radians in place; gives itself.
    """
    ...
def rand(
    *size: Any,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Uniform numbers from 0 to below 1; the shape as integers, or as one tuple.
    """
    ...
def rand_like(x: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Uniform numbers from 0 to below 1, of the shape of x.
    """
    ...
def randint(
    key: TensorLike,
    low: builtins.int,
    high: builtins.int,
    shape: builtins.int | Sequence[builtins.int] | None = ...,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    """Integers from low to before high; no number is more likely than another by more than one part in 2^32.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        low: the least number
        high: the greatest number; integers stay below it
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name

    Without a key, as in PyTorch: randint(low=0, high, size).
    """
    ...
def randint_like(x: Any, low: builtins.int, high: builtins.int | None = None, *, dtype: Any = None) -> Tensor:
    """Integers from low (or 0) to before high, of the shape of x.
    """
    ...
def randn(
    *size: Any,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and variance 1; the shape as integers, or as one tuple.
    """
    ...
def randn_like(x: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Normal numbers of mean 0 and variance 1, of the shape of x.
    """
    ...
def random_bits(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int],
    dtype: DType | builtins.str | None = 'uint32',
) -> Tensor:
    """Random uint32 or uint64, a function of the key and the place in the shape alone.

    Keys of shape (..., 2) give each what it gives alone.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def randperm(key: TensorLike, n: builtins.int, dtype: DType | builtins.str | None = 'int64') -> Tensor:
    """The integers from 0 to n - 1 in random order, every order equally likely (but for equal 64-bit numbers).

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        n: how many elements
        dtype: the dtype of the result, as ek.float32 or by name

    Without a key, as in PyTorch: randperm(n).
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
def reciprocal_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """reciprocal in place; gives itself.
    """
    ...
def recurrence(
    gains: TensorLike,
    x: TensorLike,
    axis: builtins.int | None = None,
    reverse: builtins.bool = False,
) -> Tensor:
    """y of y[k] = gains[k] · y[k - 1] + x[k] along an axis; the first is x's. `linear_recurrence` broadcasts.

    Arguments:
        gains: what each element before is multiplied with: of x's shape, or one that broadcasts with it
        x: a tensor
        axis: the axis; negative numbers count from the last one
        reverse: whether it begins at the end
    """
    ...
def relu(x: TensorLike) -> Tensor:
    """x where it is positive, else 0; the derivative at 0 is 0. NaN stays.

    Arguments:
        x: a tensor
    """
    ...
def relu6(x: TensorLike) -> Tensor:
    """relu that stops at 6; the derivative at 0 and 6 is 0.

    Arguments:
        x: a tensor
    """
    ...
def relu6_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """relu6 in place; gives itself.
    """
    ...
def relu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """relu in place; gives itself.
    """
    ...
def remainder(x: TensorLike, y: TensorLike) -> Tensor:
    """What floor division leaves, with the sign of y; integers by zero are an error.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def remainder_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """remainder in place; gives itself.
    """
    ...
def repeat(x: TensorLike, repeats: builtins.int, axis: builtins.int | None = None) -> Tensor:
    """Every element several times in succession along an axis (None: of all elements in a row); see also `tile`.

    Arguments:
        x: a tensor
        repeats: how often
        axis: the axis; negative numbers count from the last one
    """
    ...
def repeat_interleave(x: TensorLike, repeats: builtins.int, axis: builtins.int | None = None) -> Tensor:
    """Every element several times in succession along an axis (None: of all elements in a row); see also `tile`.

    Arguments:
        x: a tensor
        repeats: how often
        axis: the axis; negative numbers count from the last one
    """
    ...
def requires_grad_(self: Any, wanted: builtins.bool = True) -> Any:
    """Ask that `backward` leaves this tensor's gradient in `grad`; gives itself.
    """
    ...
def reshape(x: TensorLike, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
    """The elements in the same order, under another shape; one extent may be -1.

    Arguments:
        x: a tensor
        shape: the shape wanted; one extent may be -1
    """
    ...
def result_type(x: Any, y: Any) -> DType:
    """The dtype of what is computed from two tensors or numbers.
    """
    ...
def rfft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The first n//2 + 1 elements of the `fft` of real numbers; the others are their conjugates.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def rfftfreq(n: builtins.int, d: builtins.float = 1.0, dtype: DType | builtins.str | None = None) -> Tensor:
    """The frequencies of the elements of `rfft`, in cycles per unit, for n samples at distance d.

    Arguments:
        n: how many elements
        d: the distance of samples
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def right_shift(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved down by y places; signs are kept.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def rms_norm(
    x: TensorLike,
    normalized_shape: builtins.int | Sequence[builtins.int],
    weight: TensorLike | None = None,
    eps: builtins.float | None = None,
) -> Tensor:
    """x divided by the root of its mean square over its last axes (eps: that of the dtype), then times a weight.

    Arguments:
        x: a tensor
        normalized_shape: the extents of the last axes, over which it is normalized
        weight: what normalized elements are multiplied with
        eps: a small number that keeps divisors away from 0
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
def rope(x: TensorLike, angles: TensorLike, interleaved: builtins.bool = True) -> Tensor:
    """x with its last axis turned, pair by pair, by the angles (… × positions × pairs, broadcast over x).

    A pair is two neighbours (2k, 2k + 1), or without `interleaved` the same places of both halves (k, k + dim/2).

    Arguments:
        x: a tensor
        angles: by what pairs are turned
        interleaved: whether pairs are neighbours
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
def rotary_angles(
    length: builtins.int,
    dim: builtins.int,
    base: builtins.float = 10000.0,
    offset: builtins.float = 0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """The angles by which rotary_embedding turns: (t + offset) / base^(2k/dim) for position t and pair k.

    Arguments:
        length: how many positions
        dim: the extent of the last axis
        base: the number whose powers are taken
        offset: the first position
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def rotary_embedding(x: TensorLike, angles: TensorLike, interleaved: builtins.bool = True) -> Tensor:
    """x with its last axis turned, pair by pair, by the angles (… × positions × pairs, broadcast over x).

    A pair is two neighbours (2k, 2k + 1), or without `interleaved` the same places of both halves (k, k + dim/2).

    Arguments:
        x: a tensor
        angles: by what pairs are turned
        interleaved: whether pairs are neighbours
    """
    ...
def round(x: TensorLike) -> Tensor:
    """The nearest integer, ties to even.

    Arguments:
        x: a tensor
    """
    ...
def round_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """round in place; gives itself.
    """
    ...
def row_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the first axis, vectors as rows.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def rsqrt(x: TensorLike) -> Tensor:
    """1 / √x.

    Arguments:
        x: a tensor
    """
    ...
def rsqrt_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """rsqrt in place; gives itself.
    """
    ...
def rsub(x: Any, other: Any, *, alpha: builtins.float = 1) -> Any:
    """other - alpha · x.
    """
    ...
def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    causal: builtins.bool = False,
    scale: builtins.float | None = None,
    window: builtins.int | None = None,
    dropout: builtins.float = 0.0,
    dropout_key: TensorLike | None = None,
    key_lengths: TensorLike | None = None,
    offsets: TensorLike | None = None,
) -> Tensor:
    """softmax(query · keyᵀ · scale) · value over … × length × dim; scale is 1/√dim unless said.

    Axes in front broadcast; a multiple of query heads (third axis from the end) shares each key and value head. A mask
    of bools says where to attend, one of floats is added. Causal: query t attends to keys 0 … t. Window: to keys that
    are fewer than so many places away, with causal to the last so many. A query that may attend to nothing gets zeros.
    Dropout leaves out weights with that probability, in 256ths, as its key says, and makes the rest greater by as much.
    Lengths are of samples, the axes in front of heads: what comes later is no key. Offsets say where sequences begin
    that lie one after another, and where the last ends: nothing attends to another sequence than its own.

    Arguments:
        query: what attends: … × length × dim
        key: what is attended to: … × length × dim
        value: what is taken in proportion to the attention
        mask: truth values: who may attend to what; or numbers that are added
        causal: whether a position attends only to itself and to what is before it
        scale: what products of queries and keys are multiplied with; 1/√dim unless given
        window: within how many places keys are attended to; all unless given
        dropout: the probability with which a weight is left out
        dropout_key: the key of random numbers that says which weights are left out
        key_lengths: how many keys each sample has: integers, of the axes in front of heads
        offsets: where sequences begin that lie one after another, and where the last ends
    """
    ...
def scatter_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """scatter in place; gives itself.
    """
    ...
def scatter_add(x: TensorLike, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """x with elements of src added at positions along an axis, as PyTorch's scatter_add; see `scatter_along`.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
        src: the values that go to these positions
    """
    ...
def scatter_add_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """scatter_add in place; gives itself.
    """
    ...
def scatter_along(
    x: TensorLike,
    axis: builtins.int,
    index: TensorLike,
    src: TensorLike,
    mode: builtins.str = 'set',
) -> Tensor:
    """x with an element of src at the position along an axis that the index has for it; the inverse of `gather`.

    Mode is "set", "add", "max", "min" or "mul", as in `scatter`; src may be larger than the index, or a number.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
        src: the values that go to these positions
        mode: which way it is done; see above
    """
    ...
def scatter_combine(
    x: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    axis: builtins.int = 0,
    mode: builtins.str = 'max',
    batch: builtins.int = 0,
) -> Tensor:
    """x with updates combined into positions along an axis: mode "max", "min" or "mul" (which has no derivative).

    All elements that equal an extreme share its tangent.

    Arguments:
        x: a tensor
        indices: integers: the positions
        updates: the values that go to these positions
        axis: the axis; negative numbers count from the last one
        mode: which way it is done; see above
        batch: how many axes in front count examples, each of which has its own indices
    """
    ...
def scatter_into(
    x: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    axis: builtins.int = 0,
    add: builtins.bool = False,
    batch: builtins.int = 0,
) -> Tensor:
    """x with updates put, or added, at positions along an axis; the inverse of `take`, whose result they are shaped as.

    Of several that are put into one place the last stays, and only it has a derivative.

    Arguments:
        x: a tensor
        indices: integers: the positions
        updates: the values that go to these positions
        axis: the axis; negative numbers count from the last one
        add: whether updates are added to what is there
        batch: how many axes in front count examples, each of which has its own indices
    """
    ...
def scatter_max(x: TensorLike, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
    """The greatest of x and the elements of src at positions along an axis; equal ones share the tangent.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        index: integers: the positions, one for each element of the result
        src: the values that go to these positions
    """
    ...
def scatter_reduce(
    x: Any,
    dim: builtins.int,
    index: Any,
    src: Any,
    reduce: builtins.str,
    *,
    include_self: builtins.bool = True,
) -> Any:
    """x with the elements of src combined into the places that an index says.
    """
    ...
def scatter_reduce_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """scatter_reduce in place; gives itself.
    """
    ...
def searchsorted(
    boundaries: TensorLike,
    values: TensorLike,
    right: builtins.bool = False,
    side: builtins.str | None = None,
) -> Tensor:
    """Where values would have to be put in to keep sorted boundaries sorted: before equal ones, or (right) behind.

    Boundaries are a vector, or one for each of the leading axes of the values. NaN counts as the greatest.

    Arguments:
        boundaries: numbers in rising order
        values: what is looked for
        right: whether equal elements count as below
        side: "left" or "right": before equal elements, or after them
    """
    ...
def select(x: Any, dim: builtins.int, index: builtins.int) -> Any:
    """The elements at one position of an axis, without that axis.
    """
    ...
def select_scatter(x: Any, src: Any, dim: builtins.int, index: builtins.int) -> Any:
    """x with a slice at one position of an axis.
    """
    ...
def selu(x: TensorLike) -> Tensor:
    """elu scaled so that a normal distribution keeps mean 0 and variance 1.

    Arguments:
        x: a tensor
    """
    ...
def selu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """selu in place; gives itself.
    """
    ...
def set_grad_enabled(mode: builtins.bool) -> None:
    """Remember operations for `backward` from here on, or do not; within `with`, only there.
    """
    ...
def set_rng_state(state: Any) -> None:
    """Let everybody's generator go on from where it stood.
    """
    ...
def setitem(x: TensorLike, index: Any, value: TensorLike) -> Tensor:
    """x with a value at an index, as x[index] = value would leave it; x itself stays.

    Where an index names a place several times the last value stays, and only it has a derivative. The value becomes
    of x's dtype; one of a higher kind (a float for integers) is an error.

    Arguments:
        x: a tensor
        index: integers, slices, Ellipsis, None, masks, tensors of integers, or a tuple of these
        value: the value to put in
    """
    ...
def sgn(x: TensorLike) -> Tensor:
    """-1, 0 or 1.

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
def shift_left_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """shift_left in place; gives itself.
    """
    ...
def shift_right(x: TensorLike, y: TensorLike) -> Tensor:
    """Bits moved down by y places; signs are kept.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def shift_right_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """shift_right in place; gives itself.
    """
    ...
short: DType
def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + e^-x), stable for large |x|.

    Arguments:
        x: a tensor
    """
    ...
def sigmoid_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sigmoid in place; gives itself.
    """
    ...
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1.

    Arguments:
        x: a tensor
    """
    ...
def sign_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sign in place; gives itself.
    """
    ...
def signbit(x: Any) -> Any:
    """Whether x has a minus sign, also of -0.0.
    """
    ...
def silu(x: TensorLike) -> Tensor:
    """x·sigmoid(x).

    Arguments:
        x: a tensor
    """
    ...
def silu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """silu in place; gives itself.
    """
    ...
def sin(x: TensorLike) -> Tensor:
    """Sine of radians.

    Arguments:
        x: a tensor
    """
    ...
def sin_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sin in place; gives itself.
    """
    ...
def sinc(x: TensorLike) -> Tensor:
    """sin(πx) / (πx), and 1 at 0, with its derivatives.

    Arguments:
        x: a tensor
    """
    ...
def sinc_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sinc in place; gives itself.
    """
    ...
def sinh(x: TensorLike) -> Tensor:
    """Hyperbolic sine, accurate near 0.

    Arguments:
        x: a tensor
    """
    ...
def sinh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sinh in place; gives itself.
    """
    ...
def slice(x: TensorLike, start: Any = None, stop: Any = None, step: Any = None) -> Tensor:
    """The elements from start on and before stop, every step-th, along each axis; clipped as Python's slices are.

    Arguments:
        x: a tensor
        start: where it begins
        stop: where it ends; the end itself is left out
        step: how far elements are apart
    """
    ...
def slice_scatter(
    x: Any,
    src: Any,
    dim: builtins.int = 0,
    start: builtins.int | None = None,
    end: builtins.int | None = None,
    step: builtins.int = 1,
) -> Any:
    """x with the elements of src at a slice of an axis.
    """
    ...
def sliding_window(x: TensorLike, size: builtins.int, axis: builtins.int = -1, step: builtins.int = 1) -> Tensor:
    """Every run of `size` elements along an axis, `step` apart, as a new last axis (PyTorch's Tensor.unfold).

    Arguments:
        x: a tensor
        size: how many elements
        axis: the axis; negative numbers count from the last one
        step: how far elements are apart
    """
    ...
def slogdet(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The sign (of complex numbers, the phase) of the determinant and the logarithm of its modulus: 0 and -∞ for 0.

    Arguments:
        x: a tensor
    """
    ...
def smooth_l1_loss(
    x: TensorLike,
    target: TensorLike,
    beta: builtins.float = 1.0,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """The Huber loss with delta = beta, divided by it: of slope 1 far out; with beta = 0, the L1 loss.

    Arguments:
        x: a tensor
        target: what x should be
        beta: up to which distance the loss is a square
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def soft_shrink(x: TensorLike, lambd: builtins.float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 within lambd of it.

    Arguments:
        x: a tensor
        lambd: how wide the part around 0 is
    """
    ...
def soft_shrink_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """soft_shrink in place; gives itself.
    """
    ...
def softmax(x: TensorLike, axis: builtins.int = -1) -> Tensor:
    """e^x divided by its sum along an axis, without overflow; where all is -inf, NaN.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def softmax_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """softmax in place; gives itself.
    """
    ...
def softmin(x: TensorLike, axis: builtins.int = -1) -> Tensor:
    """softmax of -x.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def softmin_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """softmin in place; gives itself.
    """
    ...
def softplus(x: TensorLike, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Tensor:
    """log(1 + e^(beta·x))/beta, without overflow; above a threshold of beta·x, if one is given, x itself.

    Arguments:
        x: a tensor
        beta: how sharp the bend is
        threshold: where the one rule ends and the other begins
    """
    ...
def softplus_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """softplus in place; gives itself.
    """
    ...
def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|).

    Arguments:
        x: a tensor
    """
    ...
def softsign_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """softsign in place; gives itself.
    """
    ...
def solve(x: TensorLike, b: TensorLike) -> Tensor:
    """What x must be multiplied with to give b: a vector if b has one axis, else matrices; batches broadcast.

    Arguments:
        x: a tensor
        b: the right side
    """
    ...
def solve_triangular(
    x: TensorLike,
    b: TensorLike,
    lower: builtins.bool = True,
    transpose: builtins.bool = False,
    unit_diagonal: builtins.bool = False,
) -> Tensor:
    """`solve` with one triangle of x, transposed (not conjugated) if asked; its diagonal may be taken for ones.

    Arguments:
        x: a tensor
        b: the right side
        lower: whether the lower triangle is meant
        transpose: whether the matrix is transposed
        unit_diagonal: whether the diagonal is taken for ones
    """
    ...
def sort(
    x: TensorLike,
    axis: builtins.int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> builtins.tuple[Tensor, Tensor]:
    """The elements in order along an axis, and the positions they come from; NaN counts as the greatest.

    The order of equal elements is kept always, so `stable` says nothing new.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        descending: whether the greatest comes first
        stable: whether equal elements keep their order; they always do
    """
    ...
def sparse_add(
    values: TensorLike,
    indices: TensorLike,
    pointers: TensorLike,
    other_values: TensorLike,
    other_indices: TensorLike,
    other_pointers: TensorLike,
    shape: Sequence[builtins.int],
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(values, indices, pointers) of the sum of two sparse matrices of one shape: all places that either has.

    Arguments:
        values: the stored elements
        indices: the column of each stored element
        pointers: where each row begins among the stored elements, and where the last ends
        other_values: the stored elements of the other matrix
        other_indices: their columns
        other_pointers: where each row of the other matrix begins
        shape: the extents of the matrices
    """
    ...
def sparse_mm(
    values: TensorLike,
    indices: TensorLike,
    pointers: TensorLike,
    shape: Sequence[builtins.int],
    dense: TensorLike,
) -> Tensor:
    """A sparse matrix of a shape times a dense matrix or vector.

    Arguments:
        values: the stored elements
        indices: the column of each stored element
        pointers: where each row begins among the stored elements, and where the last ends
        shape: the extents of the sparse matrix
        dense: a matrix or a vector
    """
    ...
def sparse_transpose(
    values: TensorLike,
    indices: TensorLike,
    pointers: TensorLike,
    shape: Sequence[builtins.int],
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(values, indices, pointers) of the transpose of a sparse matrix of a shape.

    Arguments:
        values: the stored elements
        indices: the column of each stored element
        pointers: where each row begins among the stored elements, and where the last ends
        shape: the extents of the matrix
    """
    ...
def split(
    x: TensorLike,
    sizes: builtins.int | Sequence[builtins.int],
    axis: builtins.int = 0,
) -> builtins.tuple[Tensor, ...]:
    """x in parts along an axis: of given extents, or all of one (the last may be less); `chunk` takes a count.

    Arguments:
        x: a tensor
        sizes: the extents of the parts, or one extent for all
        axis: the axis; negative numbers count from the last one
    """
    ...
def split_key(key: TensorLike, count: builtins.int = 2) -> Tensor:
    """count new keys (count, 2), whose numbers are independent of each other's and of those of the key itself.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        count: how many keys
    """
    ...
def split_with_sizes(
    x: TensorLike,
    sizes: builtins.int | Sequence[builtins.int],
    axis: builtins.int = 0,
) -> builtins.tuple[Tensor, ...]:
    """x in parts along an axis: of given extents, or all of one (the last may be less); `chunk` takes a count.

    Arguments:
        x: a tensor
        sizes: the extents of the parts, or one extent for all
        axis: the axis; negative numbers count from the last one
    """
    ...
def sqrt(x: TensorLike) -> Tensor:
    """Square root.

    Arguments:
        x: a tensor
    """
    ...
def sqrt_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sqrt in place; gives itself.
    """
    ...
def square(x: TensorLike) -> Tensor:
    """x².

    Arguments:
        x: a tensor
    """
    ...
def square_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """square in place; gives itself.
    """
    ...
def squeeze(x: TensorLike, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """x without axes of extent 1: those given (which must have it), or all.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def squeeze_(x: Tensor, *args: Any, **given: Any) -> Tensor:
    """squeeze in place: it has another shape from now on; gives itself.
    """
    ...
def stack(tensors: Sequence[TensorLike], axis: builtins.int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis.

    Arguments:
        tensors: a sequence of tensors
        axis: the axis; negative numbers count from the last one
    """
    ...
def std(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    correction: builtins.float = 0,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The square root of var, divided by n - correction (0 as in NumPy); where it is 0, so is the derivative.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        correction: what is subtracted from the number of elements: 0 or 1
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def std_mean(
    x: Any,
    dim: Any = None,
    *,
    correction: builtins.int = 0,
    keepdim: builtins.bool = False,
) -> builtins.tuple[Any, Any]:
    """The standard deviation, of a variance divided by n - correction, and the mean.
    """
    ...
def stft(
    input: Any,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Any = None,
    center: builtins.bool = True,
    pad_mode: builtins.str = 'reflect',
    normalized: builtins.bool = False,
    onesided: builtins.bool | None = None,
    return_complex: builtins.bool = True,
) -> Any:
    """The Fourier transforms of windows along the last axis: (…, frequencies, windows).

    With `center` the signal is continued by half a window at both ends, so that window t is about element t · hop.
    Of real signals there are the frequencies up to the half, unless `onesided` is False.
    """
    ...
def student_t(
    key: TensorLike,
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Draws loc + scale·t from Student's distribution of df degrees of freedom, without derivative in df.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        df: the degrees of freedom
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def sub(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def sub_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """sub in place; gives itself.
    """
    ...
def subtract(x: TensorLike, y: TensorLike) -> Tensor:
    """x - y.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def subtract_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """subtract in place; gives itself.
    """
    ...
def sum(
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
def sum_to(x: TensorLike, shape: Sequence[builtins.int]) -> Tensor:
    """The sum over what broadcasting from a shape would repeat.

    Arguments:
        x: a tensor
        shape: the shape to sum to
    """
    ...
def sum_to_size(x: TensorLike, shape: Sequence[builtins.int]) -> Tensor:
    """The sum over what broadcasting from a shape would repeat.

    Arguments:
        x: a tensor
        shape: the shape to sum to
    """
    ...
@overload
def svd(x: TensorLike, full_matrices: builtins.bool = False, *, compute_uv: Literal[False]) -> Tensor:
    ...
@overload
def svd(
    x: TensorLike,
    full_matrices: builtins.bool = False,
    compute_uv: Literal[True] = True,
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(U, s, Vᴴ) with x = U · diag(s) · Vᴴ, s falling; only s if compute_uv is False. Full matrices have no derivative.

    The first component of at least half the greatest modulus in each vector of U is real and positive.

    Arguments:
        x: a tensor
        full_matrices: whether U and V are square
        compute_uv: whether U and V are computed too
    """
    ...
@overload
def svd(
    x: TensorLike,
    full_matrices: builtins.bool = False,
    compute_uv: builtins.bool = True,
) -> builtins.tuple[Tensor, Tensor, Tensor] | Tensor:
    ...
def svd_with_pivots(
    x: TensorLike,
    full_matrices: builtins.bool = False,
) -> builtins.tuple[Tensor, Tensor, Tensor, Tensor]:
    """`svd`, and for each singular value the component of the vector in U that is real and positive.

    Arguments:
        x: a tensor
        full_matrices: whether U and V are square
    """
    ...
def svdvals(x: TensorLike) -> Tensor:
    """The singular values, falling.

    Arguments:
        x: a tensor
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
def swapdims(x: TensorLike, axis0: builtins.int, axis1: builtins.int) -> Tensor:
    """Two axes exchanged.

    Arguments:
        x: a tensor
        axis0: the first axis
        axis1: the first axis
    """
    ...
def swish(x: TensorLike) -> Tensor:
    """x·sigmoid(x).

    Arguments:
        x: a tensor
    """
    ...
def swish_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """swish in place; gives itself.
    """
    ...
def t_(x: Tensor, *args: Any, **given: Any) -> Tensor:
    """t in place: it has another shape from now on; gives itself.
    """
    ...
def take(x: TensorLike, indices: TensorLike, axis: builtins.int = 0, batch: builtins.int = 0) -> Tensor:
    """The elements of x at integer positions along an axis, which the axes of the indices replace.

    The first `batch` axes of x and of the indices are the same: each example has its own indices.

    Arguments:
        x: a tensor
        indices: integers: the positions
        axis: the axis; negative numbers count from the last one
        batch: how many axes in front count examples, each of which has its own indices
    """
    ...
def take_along(x: TensorLike, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
    """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

    Arguments:
        x: a tensor
        indices: integers: the positions
        axis: the axis; negative numbers count from the last one
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
def take_along_dim(x: TensorLike, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
    """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

    Arguments:
        x: a tensor
        indices: integers: the positions
        axis: the axis; negative numbers count from the last one
    """
    ...
def tall_qr(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """`qr` of matrices that are not wider than high.

    Arguments:
        x: a tensor
    """
    ...
def tan(x: TensorLike) -> Tensor:
    """Tangent of radians.

    Arguments:
        x: a tensor
    """
    ...
def tan_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """tan in place; gives itself.
    """
    ...
def tanh(x: TensorLike) -> Tensor:
    """Hyperbolic tangent.

    Arguments:
        x: a tensor
    """
    ...
def tanh_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """tanh in place; gives itself.
    """
    ...
def tanh_shrink(x: TensorLike) -> Tensor:
    """x - tanh(x).

    Arguments:
        x: a tensor
    """
    ...
def tanh_shrink_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """tanh_shrink in place; gives itself.
    """
    ...
def tensor_split(
    x: Any,
    indices_or_sections: builtins.int | Sequence[builtins.int],
    dim: builtins.int = 0,
) -> builtins.tuple[Any, ...]:
    """x in parts along an axis: so many, as equal as can be, or divided before these positions.
    """
    ...
def tensordot(
    x: TensorLike,
    y: TensorLike,
    axes: builtins.int | builtins.tuple[builtins.int | Sequence[builtins.int], builtins.int | Sequence[builtins.int]] = 2,
) -> Tensor:
    """The sum of products over axes: the last `axes` of x with the first of y, or the axes paired by two lists.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def threshold(x: TensorLike, threshold: builtins.float, value: builtins.float) -> Tensor:
    """x where it is above a threshold, else a value (as at the threshold).

    Arguments:
        x: a tensor
        threshold: where the one rule ends and the other begins
        value: what stands where x is not above the threshold
    """
    ...
def threshold_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """threshold in place; gives itself.
    """
    ...
def tile(x: TensorLike, reps: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x several times along each axis, the last of which `reps` ends with.

    Arguments:
        x: a tensor
        reps: how often along each axis
    """
    ...
def to_dense(values: TensorLike, indices: TensorLike, pointers: TensorLike, shape: Sequence[builtins.int]) -> Tensor:
    """The matrix of a shape that three tensors of a sparse one say.

    Arguments:
        values: the stored elements
        indices: the column of each stored element
        pointers: where each row begins among the stored elements, and where the last ends
        shape: the extents of the matrix
    """
    ...
def to_float8(x: TensorLike, format: builtins.str = 'e4m3') -> Tensor:
    """The bytes of the nearest floats of 8 bits, ties to even; what is greater than the greatest becomes that.

    Arguments:
        x: the numbers to round
        format: "e4m3" or "e5m2"
    """
    ...
def to_sparse(x: TensorLike) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(values, indices, pointers) of the elements of a matrix that are not 0; it is differentiable in these.

    Arguments:
        x: a tensor
    """
    ...
def topk(
    x: TensorLike,
    k: builtins.int,
    axis: builtins.int = -1,
    largest: builtins.bool = True,
    sorted: builtins.bool = True,
) -> builtins.tuple[Tensor, Tensor]:
    """The k greatest (or least) elements along an axis, in order, and their positions; the first of equal ones.

    They are sorted always, so `sorted` says nothing new.

    Arguments:
        x: a tensor
        k: how many
        axis: the axis; negative numbers count from the last one
        largest: whether the greatest are meant, not the least
        sorted: whether they come in order; they always do
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
def transpose(x: TensorLike, axis0: Any = None, axis1: builtins.int | None = None) -> Tensor:
    """Two axes exchanged; with no axes given all in reverse order, with a sequence of axes in that order.

    Arguments:
        x: a tensor
        axis0: the first axis
        axis1: the first axis
    """
    ...
def transpose_(x: Tensor, *args: Any, **given: Any) -> Tensor:
    """transpose in place: it has another shape from now on; gives itself.
    """
    ...
def trapezoid(y: Any, x: Any = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Any:
    """The integral of a function that is y at x (or at steps of dx), by the trapezoidal rule.
    """
    ...
def trapz(y: Any, x: Any = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> Any:
    """The integral of a function that is y at x (or at steps of dx), by the trapezoidal rule.
    """
    ...
def tri(
    n: builtins.int,
    m: builtins.int | None = None,
    k: builtins.int = 0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Ones on and below the diagonal number k of an n × m matrix, zeros above.

    Arguments:
        n: how many rows
        m: how many columns; as many as rows unless given
        k: which diagonal: 0 is the main one, positive numbers are above it
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def triangular_matrix_solve(
    x: TensorLike,
    b: TensorLike,
    lower: builtins.bool = True,
    transpose: builtins.bool = False,
    unit_diagonal: builtins.bool = False,
) -> Tensor:
    """The matrix that a triangle of x must be multiplied with to give b; `triangular_solve` takes vectors too.

    Arguments:
        x: a tensor
        b: the right side
        lower: whether the lower triangle is meant
        transpose: whether the matrix is transposed
        unit_diagonal: whether the diagonal is taken for ones
    """
    ...
def triangular_solve(
    x: TensorLike,
    b: TensorLike,
    lower: builtins.bool = True,
    transpose: builtins.bool = False,
    unit_diagonal: builtins.bool = False,
) -> Tensor:
    """`solve` with one triangle of x, transposed (not conjugated) if asked; its diagonal may be taken for ones.

    Arguments:
        x: a tensor
        b: the right side
        lower: whether the lower triangle is meant
        transpose: whether the matrix is transposed
        unit_diagonal: whether the diagonal is taken for ones
    """
    ...
def tril(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The elements of matrices on and below the k-th diagonal, zeros above it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def tril_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """tril in place; gives itself.
    """
    ...
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0) -> Any:
    """The rows and columns of the places on and below a diagonal, as a 2 × n tensor.
    """
    ...
def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: builtins.float = 1.0,
    p: builtins.float = 2.0,
    eps: builtins.float = 1e-06,
    swap: builtins.bool = False,
    reduction: builtins.str = 'mean',
) -> Tensor:
    """margin + |anchor - positive| - |anchor - negative| where positive, else 0; p-norms along the last axis.

    With swap the negative's distance is from the positive, if that is nearer. eps is added to differences.

    Arguments:
        anchor: the vectors that are compared with
        positive: vectors that should be near
        negative: vectors that should be far
        margin: the distance that is wanted
        p: the order of the norm
        eps: a small number that keeps divisors away from 0
        swap: whether the nearer of anchor and positive counts
        reduction: "mean", "sum" or "none": what is made of the losses of all elements
    """
    ...
def triu(x: TensorLike, k: builtins.int = 0) -> Tensor:
    """The elements of matrices on and above the k-th diagonal, zeros below it.

    Arguments:
        x: a tensor
        k: which diagonal: 0 is the main one, positive numbers are above it
    """
    ...
def triu_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """triu in place; gives itself.
    """
    ...
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0) -> Any:
    """The rows and columns of the places on and above a diagonal, as a 2 × n tensor.
    """
    ...
def true_divide(x: TensorLike, y: TensorLike) -> Tensor:
    """x / y; integers become floats first.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def true_divide_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """true_divide in place; gives itself.
    """
    ...
def trunc(x: TensorLike) -> Tensor:
    """x without its fraction.

    Arguments:
        x: a tensor
    """
    ...
def trunc_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """trunc in place; gives itself.
    """
    ...
def truncated_normal(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: builtins.float = -2.0,
    high: builtins.float = 2.0,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """loc + scale·z, for z normal given that it lies from low to high (in standard deviations, infinite ones too).

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        low: the least number
        high: the greatest number; integers stay below it
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
uint16: DType
uint32: DType
uint64: DType
uint8: DType
def unbind(x: TensorLike, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """The slices of x along an axis, without it.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def unflatten(x: Any, dim: builtins.int, sizes: Sequence[builtins.int]) -> Any:
    """One axis as several.
    """
    ...
def unfold(
    x: TensorLike,
    kernel_size: builtins.int | Sequence[builtins.int],
    dilation: builtins.int | Sequence[builtins.int] = 1,
    padding: builtins.int | Sequence[builtins.int] = 0,
    stride: builtins.int | Sequence[builtins.int] = 1,
) -> Tensor:
    """The patches of (batch ×) channels × height × width as columns: (batch ×) channels·kernel × patches.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        stride: how far windows are apart: one number, or one for each axis
    """
    ...
def uniform(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: TensorLike | builtins.float = 0.0,
    high: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    """Uniform floats from low to before high, from 24 random bits (53 in float64): low + (high - low)·u.

    Where rounding would give high, the number below it is given.

    Arguments:
        key: a key of random numbers: ek.random.key(seed), or one that was split
        shape: the extents of the result
        low: the least number
        high: the greatest number; integers stay below it
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: Literal[True],
    return_counts: builtins.bool = False,
    axis: builtins.int | None = None,
) -> builtins.tuple[Tensor, ...]:
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: builtins.bool = False,
    *,
    return_counts: Literal[True],
    axis: builtins.int | None = None,
) -> builtins.tuple[Tensor, ...]:
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: builtins.int | None = None,
) -> Tensor:
    """The distinct elements in order; also where each element of x is among them, and how often each occurs.

    With an axis they are the distinct slices along it, by their first elements, then their second and so on. x must be
    known. All NaNs count as one element, but no slice with one is another's like. The tangent is that of the first of
    equal elements.

    Arguments:
        x: a tensor
        return_inverse: whether the place of each element of x is given too
        return_counts: whether it is given how often each occurs
        axis: the axis; negative numbers count from the last one
    """
    ...
@overload
def unique(
    x: TensorLike,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    axis: builtins.int | None = None,
) -> Tensor | builtins.tuple[Tensor, ...]:
    ...
def unravel_index(indices: Any, shape: Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
    """The positions along each axis of a shape that flat ones stand for.
    """
    ...
def unsqueeze(x: TensorLike, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
    """x with new axes of extent 1, at these places of the result.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
    """
    ...
def unsqueeze_(x: Tensor, *args: Any, **given: Any) -> Tensor:
    """unsqueeze in place: it has another shape from now on; gives itself.
    """
    ...
def unstack(x: TensorLike, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
    """The slices of x along an axis, without it.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
    """
    ...
def vander(x: Any, N: builtins.int | None = None, increasing: builtins.bool = False) -> Any:
    """The powers of each element of a vector, as rows.
    """
    ...
def var(
    x: TensorLike,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    correction: builtins.float = 0,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The mean squared distance from the mean, divided by n - correction: 0 as in NumPy, 1 for an unbiased estimate.

    Arguments:
        x: a tensor
        axis: the axis or axes; negative numbers count from the last one
        correction: what is subtracted from the number of elements: 0 or 1
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def var_mean(
    x: Any,
    dim: Any = None,
    *,
    correction: builtins.int = 0,
    keepdim: builtins.bool = False,
) -> builtins.tuple[Any, Any]:
    """The variance, divided by n - correction, and the mean.
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
def view_as_complex(x: Any) -> Any:
    """Pairs of real numbers along the last axis as complex ones.
    """
    ...
def view_as_real(x: Any) -> Any:
    """Complex numbers as pairs of real ones, along a new last axis.
    """
    ...
def vsplit(x: Any, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
    """x in parts along the first axis.
    """
    ...
def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Tensors joined along the first axis, vectors as rows.

    Arguments:
        tensors: a sequence of tensors
    """
    ...
def where_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """where in place; gives itself.
    """
    ...
def window_argmax(
    x: TensorLike,
    kernel_size: Sequence[builtins.int],
    stride: builtins.int | Sequence[builtins.int] | None = None,
    padding: builtins.int | Sequence[builtins.int] = 0,
    dilation: builtins.int | Sequence[builtins.int] = 1,
    ceil_mode: builtins.bool = False,
) -> Tensor:
    """Where each window over the last axes has its greatest element, as a flat index into these axes.

    Of equal elements the first counts, and NaN counts as greater than all numbers.

    Arguments:
        x: a tensor
        kernel_size: the extents of a window: one number, or one for each axis
        stride: how far windows are apart: one number, or one for each axis
        padding: how many zeros are added at both ends: one number, one for each axis, or pairs of
            before and after
        dilation: how far the elements of a kernel are apart: one number, or one for each axis
        ceil_mode: whether windows that reach over the end count
    """
    ...
def windows_along(x: TensorLike, axis: builtins.int, size: builtins.int, step: builtins.int = 1) -> Tensor:
    """Every run of `size` elements along an axis, `step` apart: two axes, windows and their elements, in its place.

    Arguments:
        x: a tensor
        axis: the axis; negative numbers count from the last one
        size: how many elements
        step: how far elements are apart
    """
    ...
def xlogy(x: TensorLike, y: TensorLike) -> Tensor:
    """x·log(y), which is 0 where x is 0, whatever y is (unless NaN).

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def xlogy_(self: Tensor, *args: Any, **given: Any) -> Tensor:
    """xlogy in place; gives itself.
    """
    ...
def zeros(shape: builtins.int | Sequence[builtins.int], dtype: DType | builtins.str | None = None) -> Tensor:
    """Zeros; `empty` is the same, for nothing is ever left unset.

    Arguments:
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def zeros_like(x: TensorLike, dtype: DType | builtins.str | None = None) -> Tensor:
    """Zeros of the shape of x, and of its dtype unless another is given.

    Arguments:
        x: a tensor
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
