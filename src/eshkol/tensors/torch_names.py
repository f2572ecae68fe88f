"""PyTorch's names: which are another name of a row here, which are methods too, and what stands in for the rest.

The one table of names for those who come from PyTorch. Comes in: the functions of the rows. Goes out: `NAMES`, which
`ek.` offers beside the rows; methods of `Tensor`; `NAMESPACES` (`ek.linalg`, `ek.fft`, `ek.special`), and `REMEDIES`,
of which unknown names speak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from eshkol.atlas.machines import Precision, Wanted
from eshkol.ops import dtypes
from eshkol.runtime import front
from eshkol.tensors import autograd, sizes, torch_methods, torch_random, torch_signals
from eshkol.tensors import torch_functions as made
from eshkol.tensors.arguments import understanding
from eshkol.tensors.devices import current_name, set_device
from eshkol.tensors.functions import FUNCTIONS, in_place, spread
from eshkol.tensors.jit import jit
from eshkol.tensors.make import asarray, tensor
from eshkol.tensors.transforms import vmap
from eshkol.tensors.value import Tensor

ALIASES: dict[str, str] = {  # PyTorch's name → the row
    "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right", "fix": "trunc", "ger": "outer",
    "inverse": "inv", "pinverse": "pinv", "sum_to_size": "sum_to", "conj_physical": "conj",
    "frobenius_norm": "norm", "sgn": "sign", "row_stack": "vstack", "split_with_sizes": "split",
}  # fmt: skip

WRITTEN: tuple[Callable[..., Any], ...] = (  # functions of torch_functions.py that are methods too
    made.addcmul, made.addcdiv, made.float_power, made.logit, made.clamp_min, made.clamp_max, made.frac, made.positive,
    made.fmax, made.fmin, made.angle, made.unflatten, made.narrow, made.select, made.tensor_split, made.fliplr,
    made.flipud, made.index_fill, made.index_copy, made.masked_scatter, made.scatter_reduce, made.aminmax, made.mode,
    made.nansum, made.nanmean, made.logcumsumexp, made.diff, made.dist, made.mm, made.addmv, made.addr, made.baddbmm,
    made.logdet, made.cov, made.corrcoef, made.is_floating_point, made.is_complex, made.histc, made.isin,
    torch_signals.stft, torch_signals.istft,
    made.isposinf, made.isneginf, made.isreal, made.signbit, made.logaddexp2, made.ldexp, made.hsplit, made.vsplit,
    made.dsplit, made.diagflat, made.select_scatter, made.slice_scatter, made.addbmm, made.is_signed,
)  # fmt: skip
ALONE: tuple[Callable[..., Any], ...] = (  # and those that are not
    made.rsub, made.polar, made.view_as_real, made.view_as_complex, made.atleast_1d, made.atleast_2d, made.atleast_3d,
    made.dstack, made.column_stack, made.broadcast_shapes, made.tril_indices, made.triu_indices, made.block_diag,
    made.cartesian_prod, made.combinations, made.var_mean, made.std_mean, made.trapezoid, made.chain_matmul,
    made.cdist, made.vander, made.unravel_index, made.pdist, made.cumulative_trapezoid, made.is_tensor,
    made.is_nonzero, made.finfo, made.iinfo, made.promote_types,
    made.result_type, made.can_cast, torch_random.manual_seed, torch_random.initial_seed, torch_random.get_rng_state,
    torch_random.set_rng_state, torch_random.rand_like, torch_random.randn_like, torch_random.randint_like,
    torch_random.rand, torch_random.randn, autograd.set_grad_enabled, autograd.is_grad_enabled,
)  # fmt: skip
IN_PLACE = ("addcmul", "addcdiv", "clamp_min", "clamp_max", "index_fill", "index_copy", "masked_scatter", "scatter",
            "scatter_reduce", "addmm", "addmv", "baddbmm", "frac", "logit", "float_power")  # fmt: skip
AS_FUNCTIONS = ("clone", "detach", "numel", "t", "adjoint", "zero_", "fill_", "contiguous")  # methods that are both


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of whatever is given; itself where it is one of that dtype on that device."""
    found = asarray(data, dtype)
    return found if device is None else found.to(device)


def scalar_tensor(number: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor without axes."""
    return tensor(float(number) if dtype is None else number, dtype, requires_grad, device)


def msort(x: Any) -> Any:
    """The elements in order along the first axis."""
    return FUNCTIONS["sort"](x, 0)[0]


def typename(given: Any) -> str:
    """The name of a type, as users know it."""
    return "ek.Tensor" if type(given) is Tensor else f"{type(given).__module__}.{type(given).__qualname__}"


def set_default_device(device: str) -> None:
    """Make tensors on another device from here on."""
    set_device(device)


def get_default_device() -> str:
    """The device on which tensors are made."""
    return current_name()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing to do: every operation here gives the same result each time it is run on one machine."""


def set_float32_matmul_precision(precision: str) -> None:
    """How precise products of float32 are on machines that are faster at less: GPUs with tensor cores.

    "highest" is float32. With the others Hopper rounds each number to 11 bits beside its exponent (tf32). On other GPUs
    it is the sum of two of bfloat16 with "high", which leaves out about 2⁻¹⁸ of each product, and rounded to bfloat16
    with "medium". Sums are of float32 always.
    """
    if precision not in [one.value for one in Precision]:
        raise ValueError(f"the precision is 'highest', 'high' or 'medium', not {precision!r}")
    Wanted.float32_products = Precision(precision)


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was told last; "highest" otherwise."""
    return Wanted.float32_products.value


class inference_mode(autograd.no_grad):
    """`no_grad`, under PyTorch's other name; `inference_mode(False)` changes nothing."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._wanted = not mode and autograd.is_grad_enabled()


def _typed(dtype: Any) -> Callable[..., Tensor]:
    def make(*data: Any) -> Tensor:
        return torch_methods.tensor_of(*data, dtype=dtype)

    make.__doc__ = f"A tensor of {dtype}."
    return make


TYPED = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "LongTensor": dtypes.int64, "IntTensor": dtypes.int32, "ShortTensor": dtypes.int16, "ByteTensor": dtypes.uint8,
    "BoolTensor": dtypes.bool_,
}  # fmt: skip


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """How tensors are shown: they are shown as NumPy's arrays are, and so are its options."""
    import numpy as np

    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    np.set_printoptions(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def compiled(model: Any = None, **how: Any) -> Any:
    """The function or model, compiled: `ek.jit`. PyTorch's options (mode, dynamic, backend) are not needed."""
    if model is None:
        return jit
    return jit(model)


def vmapped(function: Any, in_axes: Any = 0, out_axes: Any = 0, **given: Any) -> Any:
    """`ek.vmap` with PyTorch's words `in_dims` and `out_dims`, too."""
    given.pop("randomness", None)
    return vmap(function, given.pop("in_dims", in_axes), given.pop("out_dims", out_axes), **given)


vmapped.__doc__ = vmap.__doc__
setattr(jit, "script", staticmethod(compiled))  # noqa: B010  # names of PyTorch's that a class of ours does not have
setattr(jit, "trace", staticmethod(lambda function, *examples, **how: jit(function)))  # noqa: B010

NAMES: dict[str, Any] = {
    **{name: FUNCTIONS[row] for name, row in ALIASES.items()},
    **{function.__name__: understanding(function) for function in (*WRITTEN, *ALONE)},
    **torch_random.DRAWS,
    **{name: _typed(dtype) for name, dtype in TYPED.items()},
    **{name: getattr(Tensor, name) for name in AS_FUNCTIONS if hasattr(Tensor, name)},
    **{name: torch_methods.METHODS[name] for name in AS_FUNCTIONS if name in torch_methods.METHODS},
    **{d.__name__: d for d in (as_tensor, scalar_tensor, msort, typename, set_default_device, get_default_device,
                               use_deterministic_algorithms, inference_mode, set_float32_matmul_precision,
                               get_float32_matmul_precision, set_printoptions)},
    "compile": compiled, "vmap": vmapped, "scatter": torch_methods.scatter, "nonzero": torch_methods.nonzero,
    "where": torch_methods.where_any, "trapz": understanding(made.trapezoid), "pi": math.pi, "e": math.e,
    "inf": math.inf, "nan": math.nan, "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
}  # fmt: skip


def _give_methods() -> None:
    methods: Mapping[str, Callable[..., Any]] = {
        **{function.__name__: NAMES[function.__name__] for function in WRITTEN},
        **{name: FUNCTIONS[row] for name, row in ALIASES.items() if hasattr(Tensor, row)},
        "sum_to_size": spread(FUNCTIONS["sum_to"]),
        **torch_methods.METHODS,
        **{f.__name__: f for f in torch_random.IN_PLACE},
        "scatter": torch_methods.scatter, "nonzero": torch_methods.nonzero, "addmm": FUNCTIONS["addmm"],
        "msort": msort, "is_nonzero": made.is_nonzero, "resolve_conj": made.positive, "resolve_neg": made.positive,
        "bernoulli": torch_random.DRAWS["bernoulli"], "multinomial": torch_random.DRAWS["multinomial"],
    }  # fmt: skip
    for name, function in methods.items():
        setattr(Tensor, name, function)
    for name in IN_PLACE:
        setattr(Tensor, f"{name}_", in_place(name, methods.get(name, FUNCTIONS.get(name))))  # type: ignore[arg-type]
    for name, found in torch_methods.PROPERTIES.items():
        setattr(Tensor, name, found)


def _lacking(self: Tensor, name: str) -> Any:
    raise AttributeError(name, name=name, obj=self) if name.startswith("_") else sizes.no_attribute(name, Tensor)


_give_methods()
front.give("lacking", _lacking)
NAMES |= {name: getattr(Tensor, name) for name in dir(Tensor) if name.endswith("_") and not name.startswith("_")}


# --- namespaces -------------------------------------------------------------------------------------


def _vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of the elements along axes (all of them by default)."""
    return FUNCTIONS["norm"](x, ord, dim, keepdim)


def _linalg_norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of a vector or, of an order for matrices, of matrices."""
    pair = isinstance(dim, tuple | list) and len(dim) == 2
    if ord is None or not (pair or (dim is None and x.ndim == 2)):
        return FUNCTIONS["norm"](x, 2 if ord is None else ord, dim, keepdim)
    return FUNCTIONS["matrix_norm"](x, ord, tuple(dim) if pair else (-2, -1), keepdim)


def _svd(x: Any, full_matrices: bool = True) -> Any:
    """(U, S, Vh) with x = U · diag(S) · Vh; full matrices unless told otherwise."""
    return FUNCTIONS["svd"](x, full_matrices)


def _solve_triangular(x: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The solution of x · y = b for a triangular matrix x."""
    if not left:
        return _solve_triangular(x.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    return FUNCTIONS["triangular_solve"](x, b, lower=not upper, unit_diagonal=unitriangular)


class _LeastSquares(tuple[Any, ...]):
    """What `ek.linalg.lstsq` gives: its solution."""

    @property
    def solution(self) -> Any:
        return self[0]


def _lstsq(x: Any, b: Any, rcond: float | None = None) -> Any:
    """The solution of least squares, as `.solution`."""
    return _LeastSquares((FUNCTIONS["lstsq"](x, b, rcond),))


def _rfft2(x: Any, s: Any = None, dim: tuple[int, int] = (-2, -1), norm: str | None = None) -> Any:
    """The `fft2` of real numbers, without what follows by symmetry along the last of the axes."""
    first, last = dim
    lengths = (None, None) if s is None else tuple(s)
    return FUNCTIONS["fft"](FUNCTIONS["rfft"](x, lengths[1], last, norm), lengths[0], first, norm)


def _irfft2(x: Any, s: Any = None, dim: tuple[int, int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `rfft2`."""
    first, last = dim
    lengths = (None, None) if s is None else tuple(s)
    return FUNCTIONS["irfft"](FUNCTIONS["ifft"](x, lengths[0], first, norm), lengths[1], last, norm)


def _rfftn(x: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The `fftn` of real numbers, without what follows by symmetry along the last of the axes."""
    axes = tuple(dim) if dim is not None else tuple(range(-(x.ndim if s is None else len(s)), 0))
    lengths = (None,) * len(axes) if s is None else tuple(s)
    found = FUNCTIONS["rfft"](x, lengths[-1], axes[-1], norm)
    for axis, length in zip(axes[:-1], lengths[:-1], strict=True):
        found = FUNCTIONS["fft"](found, length, axis, norm)
    return found


def _entr(x: Any) -> Any:
    """-x · log(x); 0 at 0, and -inf below."""
    return FUNCTIONS["where"](asarray(x) < 0, -math.inf, -FUNCTIONS["xlogy"](x, x))


def _xlog1py(x: Any, y: Any) -> Any:
    """x · log(1 + y), 0 where x is 0."""
    return FUNCTIONS["where"](asarray(x) == 0, 0.0, x * FUNCTIONS["log1p"](y))


def _rows(*names: str, **others: str) -> dict[str, Callable[..., Any]]:
    return {name: FUNCTIONS[name] for name in names} | {name: FUNCTIONS[row] for name, row in others.items()}


NAMESPACES: dict[str, dict[str, Callable[..., Any]]] = {
    "linalg": _rows(
        "det", "slogdet", "inv", "pinv", "solve", "cholesky", "eigh", "eigvalsh", "eig", "eigvals", "svdvals", "qr",
        "lu", "lu_factor", "lu_solve",
        "matrix_rank", "matrix_power", "matrix_norm", "cross", "matrix_exp", "matmul", "vecdot", "diagonal",
        cond="condition_number",
    ) | {
        "norm": understanding(_linalg_norm), "vector_norm": understanding(_vector_norm), "svd": _svd,
        "solve_triangular": _solve_triangular, "lstsq": _lstsq, "multi_dot": made.multi_dot, "vander": made.vander,
    },
    "fft": _rows(
        "fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftn", "ifftn", "fftfreq", "rfftfreq", "fftshift",
        "ifftshift",
    ) | {name: understanding(f) for name, f in (("rfft2", _rfft2), ("irfft2", _irfft2), ("rfftn", _rfftn))},
    "special": _rows(
        "erf", "erfc", "erfinv", "expm1", "exp2", "log1p", "digamma", "polygamma", "sinc", "xlogy", "ndtr", "ndtri",
        "logsumexp", "softmax", "log_softmax", "round", expit="sigmoid", gammaln="lgamma", psi="digamma",
    ) | {"logit": made.logit, "entr": _entr, "xlog1py": _xlog1py},
}  # fmt: skip


# --- what is not there ------------------------------------------------------------------------------

_NO_MEMORY = "tensors here are values without a memory of their own to speak of; take x.numpy()"
REMEDIES: dict[str, str] = {
    "layout": "every tensor is dense; ek.to_sparse(x) gives the three tensors of a sparse matrix",
    **dict.fromkeys(("data_ptr", "storage", "untyped_storage", "storage_offset", "set_", "as_strided"), _NO_MEMORY),
    "resize_": "a tensor keeps its number of elements; make another with x.reshape or ek.zeros",
    "share_memory_": "processes of a DataLoader share memory by themselves",
    "pin_memory": "batches of a DataLoader with pin_memory=True are in pinned memory",
    "onnx": "ek.export_native writes a function as a shared library; ONNX files are not written yet",
    "distributed": "training on several machines is not there yet",
    "multiprocessing": "a DataLoader has num_workers=; for more, use Python's multiprocessing",
    "sparse_coo_tensor": "use ek.coo_to_csr(values, rows, columns, shape), or ek.to_sparse(x) of a dense matrix",
    "sparse_csr_tensor": "sparse matrices are three tensors: ek.to_sparse(x), ek.sparse_mm(...)",
    "to_sparse_csr": "use ek.to_sparse(x)",
    **dict.fromkeys(("quantize_per_tensor", "quantize_per_channel", "quantization"), "numbers are not quantized yet"),
    "DataParallel": "a model runs on one device; the CPU uses all its cores by itself",
    "LBFGS": "the optimizers are those of ek.optim.RULES; ek.grad gives gradients to SciPy's minimizers",
    "CyclicLR": "use OneCycleLR, or LambdaLR with a function of your own",
    "rrelu": "use leaky_relu, or draw slopes with ek.rand",
    "embedding_bag": "take F.embedding(...) and its sum or mean",
    **dict.fromkeys(("LazyLinear", "LazyConv1d", "LazyConv2d", "LazyConv3d"), "say how many features come in"),
    "EmbeddingBag": "take nn.Embedding and the sum or mean of its rows",
    "SyncBatchNorm": "a model runs on one device; use nn.BatchNorm2d",
    "RReLU": "use nn.LeakyReLU",
    **dict.fromkeys(("Adamax", "ASGD", "Rprop", "SparseAdam", "Adafactor", "Muon"), "use Adam, AdamW, LAMB or Lion"),
    "MultiplicativeLR": "use LambdaLR with the product of the factors",
    **dict.fromkeys(("ChainDataset", "StackDataset"), "use ConcatDataset or TensorDataset"),
    **dict.fromkeys(
        ("lu_unpack", "ldl_factor", "geqrf", "ormqr", "orgqr", "householder_product"),
        "solve with ek.linalg.solve, or factor with ek.linalg.lu, qr or cholesky",
    ),
    **dict.fromkeys(("inv_ex", "cholesky_ex", "solve_ex"), "errors are raised by the statement that makes them"),
    "cholesky_inverse": "use ek.cholesky_solve(ek.eye(n), factor)",
    "symeig": "use ek.linalg.eigh(x)",
    "LinAlgError": "it is an EshkolError here",
    "set_default_tensor_type": "use ek.set_default_dtype and ek.set_default_device",
    "frexp": "use ek.floor(ek.log2(ek.abs(x)))",
    **dict.fromkeys(("gcd", "lcm", "nextafter", "i0", "igamma", "igammac", "mvlgamma"), "compute it in NumPy or SciPy"),
    **dict.fromkeys(("nanmedian", "nanquantile"), "take ek.median or ek.quantile of x[~ek.isnan(x)]"),
    "unique_consecutive": "use ek.unique(x), or x[1:] != x[:-1]",
    "renorm": "scale with x / ek.norm(x, dim=...)",
    **dict.fromkeys(("is_sparse", "is_quantized", "is_mkldnn", "coalesce", "sparse_mask"), "every tensor is dense"),
    "get_device": "the name of its device is x.device",
    "range": "use ek.arange, which leaves out the end",
    "gradient": "use ek.diff, or ek.grad for derivatives of functions",
    "frombuffer": "use ek.from_numpy(numpy.frombuffer(...))",
    "to_dlpack": "other libraries take tensors by DLPack themselves: torch.from_dlpack(x)",
    "VonMises": "the distributions are listed by dir(ek.distributions)",
    "ColorJitter": "write it with ek.data.Transform, or as a function for T.Lambda",
    "hub": "load files of weights with ek.load('weights.pt')",
    "fx": "ek.jit traces and compiles functions",
    "package": "save weights with ek.save(model.state_dict(), path)",
    "mps": "the devices are listed by ek.tensors.devices.names()",
    "svd_lowrank": "use ek.linalg.svd(x, full_matrices=False)",
    "pca_lowrank": "use ek.linalg.svd of x - x.mean(0)",
    "lobpcg": "use ek.linalg.eigh(x)",
    "apply_": "compute with tensor operations, or in NumPy",
    "map_": "compute with tensor operations, or in NumPy",
    "names": "axes have no names here",
    "nested": "pad to one length: ek.nn.utils.rnn.pad_sequence",
}
sizes.REMEDIES.update(REMEDIES)
