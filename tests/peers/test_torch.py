"""Forward and backward against PyTorch, where it is installed: one case is a pair of calls on the same inputs.

Inputs are float64; both sides are reduced with the same random cotangent, and every gradient is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import eshkol as ek


@dataclass(frozen=True)
class In:
    """An input: its shape, between which numbers; integers below `classes` if that is given."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    classes: int | None = None
    spread: bool = False  # all elements different, well apart: for extremes and sorting
    definite: bool = False  # a symmetric positive definite matrix


@dataclass(frozen=True)
class Case:
    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    inputs: tuple[In, ...]
    tolerance: float = 1e-9


def draw(spec: In, rng: np.random.Generator) -> np.ndarray:
    if spec.classes is not None:
        return rng.integers(0, spec.classes, spec.shape)
    if spec.spread:
        return (rng.permutation(int(np.prod(spec.shape))).reshape(spec.shape) * 0.37 - 3.0).astype(np.float64)
    values = rng.uniform(spec.low, spec.high, spec.shape)
    if spec.definite:
        return values @ np.swapaxes(values, -1, -2) + np.eye(spec.shape[-1]) * spec.shape[-1]
    return values


def flat(value: Any) -> list[Any]:
    return [y for x in value for y in flat(x)] if isinstance(value, tuple | list) else [value]


CASES: list[Case] = []


def case(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *inputs: Any, tolerance: float = 1e-9
) -> None:
    found = tuple(x if isinstance(x, In) else In(x) for x in inputs)
    CASES.append(Case(f"{name}-{len(CASES)}", ours, theirs, found, tolerance))


# --- elementwise ----------------------------------------------------------------------------------

for _name in (
    "exp",
    "expm1",
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "erf",
    "sinh",
    "cosh",
    "asinh",
    "atan",
    "square",
    "erfc",
    "sinc",
):
    case(_name, getattr(ek, _name), getattr(torch, _name), (3, 4))
for _name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma"):
    case(_name, getattr(ek, _name), getattr(torch, _name), In((3, 4), 0.3, 4.0))
for _name in ("asin", "acos", "atanh", "erfinv"):
    case(_name, getattr(ek, _name), getattr(torch, _name), In((3, 4), -0.8, 0.8))
case("acosh", ek.acosh, torch.acosh, In((3,), 1.2, 3.0))
case("tan", ek.tan, torch.tan, In((3, 4), -1.2, 1.2))
for _name in ("add", "sub", "mul", "hypot", "atan2", "logaddexp", "maximum", "minimum"):
    for _shapes in (((3, 4), (3, 4)), ((2, 1, 4), (3, 1)), ((), (3,))):
        case(_name, getattr(ek, _name), getattr(torch, _name), *_shapes)
case("div", ek.div, torch.div, (3, 4), In((4,), 0.5, 2.0))
case("pow", ek.pow, torch.pow, In((3, 4), 0.5, 2.0), (4,))
case("remainder", ek.remainder, torch.remainder, (3, 4), In((4,), 0.7, 2.0))
case("xlogy", ek.xlogy, torch.xlogy, (3,), In((3,), 0.5, 2.0))
case("lerp", ek.lerp, torch.lerp, (3, 4), (3, 4), (3, 4))
case("clamp", lambda x: ek.clamp(x, -0.5, 1.0), lambda x: torch.clamp(x, -0.5, 1.0), (3, 4))
case("where", lambda x, y: ek.where(x > 0, x * y, y), lambda x, y: torch.where(x > 0, x * y, y), (3, 4), (4,))

# --- activations ----------------------------------------------------------------------------------

for _name in ("relu", "elu", "selu", "celu", "gelu", "silu", "softplus", "softsign", "mish", "relu6", "leaky_relu"):
    case(_name, getattr(ek, _name), getattr(F, _name), (3, 4))
for _ours, _theirs in (
    ("hard_sigmoid", "hardsigmoid"),
    ("hard_swish", "hardswish"),
    ("hard_tanh", "hardtanh"),
    ("log_sigmoid", "logsigmoid"),
    ("tanh_shrink", "tanhshrink"),
    ("soft_shrink", "softshrink"),
    ("hard_shrink", "hardshrink"),
):
    case(_ours, getattr(ek, _ours), getattr(F, _theirs), In((3, 5), -4.0, 4.0))
case("gelu tanh", lambda x: ek.gelu(x, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh"), (3, 4))
case("softplus beta", lambda x: ek.softplus(x, beta=2.0), lambda x: F.softplus(x, beta=2.0), (3, 4))
case("leaky slope", lambda x: ek.leaky_relu(x, 0.3), lambda x: F.leaky_relu(x, 0.3), (3, 4))
case("glu", lambda x: ek.glu(x, -1), lambda x: F.glu(x, -1), (3, 4))
case("prelu", ek.prelu, F.prelu, (2, 3, 2), (3,))
for _axis in (0, 1, -1):
    case("softmax", lambda x, a=_axis: ek.softmax(x, a), lambda x, a=_axis: F.softmax(x, a), (3, 4, 2))
    case("log_softmax", lambda x, a=_axis: ek.log_softmax(x, a), lambda x, a=_axis: F.log_softmax(x, a), (3, 4, 2))
    case("logsumexp", lambda x, a=_axis: ek.logsumexp(x, a), lambda x, a=_axis: torch.logsumexp(x, a), (3, 4, 2))

# --- reductions and scans -------------------------------------------------------------------------

for _axis in (None, 0, 1, (0, 2)):
    for _keep in (False, True):
        _them = {} if _axis is None else {"dim": _axis, "keepdim": _keep}
        _us = {} if _axis is None else {"axis": _axis, "keepdims": _keep}
        if _axis is None and _keep:
            continue
        for _name in ("sum", "mean"):
            case(
                _name,
                lambda x, n=_name, a=_us: getattr(ek, n)(x, **a),
                lambda x, n=_name, a=_them: getattr(torch, n)(x, **a),
                (2, 3, 4),
            )
        for _correction in (0, 1):
            for _name in ("var", "std"):
                case(
                    _name,
                    lambda x, n=_name, a=_us, c=_correction: getattr(ek, n)(x, correction=c, **a),
                    lambda x, n=_name, a=_them, c=_correction: getattr(torch, n)(
                        x, **({"dim": None} | a), correction=c
                    ),
                    (2, 3, 4),
                )
        for _ours, _theirs in (("max", "amax"), ("min", "amin")):
            case(
                _ours,
                lambda x, n=_ours, a=_us: getattr(ek, n)(x, **a),
                lambda x, n=_theirs, a=_them: getattr(torch, n)(x, **a),
                In((2, 3, 4), spread=True),
            )
for _axis in (0, 1):
    case("prod", lambda x, a=_axis: ek.prod(x, a), lambda x, a=_axis: torch.prod(x, a), (3, 4))
    case("cumsum", lambda x, a=_axis: ek.cumsum(x, a), lambda x, a=_axis: torch.cumsum(x, a), (3, 4))
    case("cumprod", lambda x, a=_axis: ek.cumprod(x, a), lambda x, a=_axis: torch.cumprod(x, a), (3, 4))
    case(
        "cummax",
        lambda x, a=_axis: ek.cummax(x, a)[0],
        lambda x, a=_axis: torch.cummax(x, a)[0],
        In((3, 4), spread=True),
    )
for _p in (1, 2, 3, float("inf")):
    case(
        "norm",
        lambda x, p=_p: ek.norm(x, p, axis=-1),
        lambda x, p=_p: torch.linalg.vector_norm(x, p, dim=-1),
        In((3, 4), spread=True),
    )

# --- shape and indexing ---------------------------------------------------------------------------

case("permute", lambda x: ek.permute(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1), (2, 3, 4))
case("flip", lambda x: ek.flip(x, (0, 2)), lambda x: torch.flip(x, (0, 2)), (2, 3, 4))
case("roll", lambda x: ek.roll(x, 2, 1), lambda x: torch.roll(x, 2, 1), (2, 5))
case("tile", lambda x: ek.tile(x, (2, 3)), lambda x: torch.tile(x, (2, 3)), (2, 3))
case("repeat", lambda x: ek.repeat(x, 3, 1), lambda x: torch.repeat_interleave(x, 3, 1), (2, 3))
case("concatenate", lambda x, y: ek.concatenate([x, y], 1), lambda x, y: torch.cat([x, y], 1), (2, 3), (2, 2))
case("stack", lambda x, y: ek.stack([x, y], 1), lambda x, y: torch.stack([x, y], 1), (2, 3), (2, 3))
case("split", lambda x: ek.split(x, [1, 3], 1), lambda x: torch.split(x, [1, 3], 1), (2, 4))
case("chunk", lambda x: ek.chunk(x, 3, 0), lambda x: torch.chunk(x, 3, 0), (7, 2))
case("tril", lambda x: ek.tril(x, -1), lambda x: torch.tril(x, -1), (3, 4))
case("triu", lambda x: ek.triu(x, 1), lambda x: torch.triu(x, 1), (3, 4))
case("diag", ek.diag, torch.diag, (4, 4))
case("pad", lambda x: ek.pad(x, ((1, 2), (0, 3))), lambda x: F.pad(x, (0, 3, 1, 2)), (2, 3))
case(
    "pad reflect",
    lambda x: ek.pad(x, ((0, 0), (2, 1)), mode="reflect"),
    lambda x: F.pad(x, (2, 1), mode="reflect"),
    (2, 4),
)
case("slice", lambda x: x[1:, ::2], lambda x: x[1:, ::2], (3, 5))
case("advanced", lambda x: x[[0, 2, 0], :, [1, 1, 3]], lambda x: x[[0, 2, 0], :, [1, 1, 3]], (3, 2, 4))
case("index tensor", lambda x, i: x[i], lambda x, i: x[i], (5, 3), In((2, 4), classes=5))
case(
    "index_select",
    lambda x, i: ek.index_select(x, 1, i),
    lambda x, i: torch.index_select(x, 1, i),
    (3, 5),
    In((4,), classes=5),
)
case("gather", lambda x, i: ek.gather(x, 1, i), lambda x, i: torch.gather(x, 1, i), (3, 5), In((3, 4), classes=5))
case(
    "scatter_add",
    lambda x, i, s: ek.scatter_add(x, 1, i, s),
    lambda x, i, s: torch.scatter_add(x, 1, i, s),
    (3, 5),
    In((3, 4), classes=5),
    (3, 4),
)
case("masked_fill", lambda x: ek.masked_fill(x, x > 0.5, -1.0), lambda x: torch.masked_fill(x, x > 0.5, -1.0), (3, 4))
case("masked_select", lambda x: ek.masked_select(x, x > 0), lambda x: torch.masked_select(x, x > 0), (3, 4))
case("sort", lambda x: ek.sort(x, 1)[0], lambda x: torch.sort(x, 1)[0], In((3, 4), spread=True))
case(
    "sort descending",
    lambda x: ek.sort(x, 0, descending=True)[0],
    lambda x: torch.sort(x, 0, descending=True)[0],
    In((5, 2), spread=True),
)
case("topk", lambda x: ek.topk(x, 2)[0], lambda x: torch.topk(x, 2)[0], In((3, 4), spread=True))
case(
    "topk least",
    lambda x: ek.topk(x, 2, largest=False)[0],
    lambda x: torch.topk(x, 2, largest=False)[0],
    In((3, 4), spread=True),
)
case("embedding", lambda w, i: ek.embedding(w, i), lambda w, i: F.embedding(i, w), (6, 3), In((2, 4), classes=6))

# --- products -------------------------------------------------------------------------------------

for _shapes in (
    ((3, 4), (4, 2)),
    ((2, 3, 4), (4, 2)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((4,), (4,)),
):
    case("matmul", ek.matmul, torch.matmul, *_shapes)
for _spec, _shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 4))),
    ("ij->ji", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("i,j->ij", ((2,), (3,))),
    ("...ij,...j->...i", ((2, 3, 4), (2, 4))),
    ("ii->i", ((3, 3),)),
    ("abc,cd,de->abe", ((2, 2, 3), (3, 2), (2, 4))),
):
    case(f"einsum {_spec}", lambda *x, s=_spec: ek.einsum(s, *x), lambda *x, s=_spec: torch.einsum(s, *x), *_shapes)
case("outer", ek.outer, torch.outer, (3,), (4,))
case("tensordot", lambda x, y: ek.tensordot(x, y, 2), lambda x, y: torch.tensordot(x, y, 2), (2, 3, 4), (3, 4, 2))
case("linear", ek.linear, F.linear, (5, 3), (4, 3), (4,))
case("kron", ek.kron, torch.kron, (2, 2), (3, 2))

# --- linear algebra -------------------------------------------------------------------------------

case("solve", ek.solve, torch.linalg.solve, In((2, 3, 3), definite=True), (2, 3, 2), tolerance=1e-8)
case("inv", ek.inv, torch.linalg.inv, In((2, 3, 3), definite=True), tolerance=1e-8)
case("det", ek.det, torch.linalg.det, (2, 3, 3), tolerance=1e-8)
case(
    "slogdet",
    lambda x: ek.slogdet(x)[1],
    lambda x: torch.linalg.slogdet(x)[1],
    In((2, 3, 3), definite=True),
    tolerance=1e-8,
)
case("cholesky", ek.cholesky, torch.linalg.cholesky, In((2, 3, 3), definite=True), tolerance=1e-8)
case("qr", lambda x: abs(ek.qr(x)[1]), lambda x: torch.linalg.qr(x)[1].abs(), (4, 3), tolerance=1e-8)
case("svdvals", ek.svdvals, torch.linalg.svdvals, (4, 3), tolerance=1e-8)
case("eigvalsh", ek.eigvalsh, torch.linalg.eigvalsh, In((3, 3), definite=True), tolerance=1e-8)
case("pinv", ek.pinv, torch.linalg.pinv, (4, 3), tolerance=1e-7)
case("matrix_power", lambda x: ek.matrix_power(x, 3), lambda x: torch.linalg.matrix_power(x, 3), (3, 3), tolerance=1e-8)
case(
    "triangular_solve",
    lambda a, b: ek.triangular_solve(a, b),
    lambda a, b: torch.linalg.solve_triangular(a.tril(), b, upper=False),
    In((3, 3), definite=True),
    (3, 2),
    tolerance=1e-8,
)
case("rfft", lambda x: abs(ek.rfft(x)), lambda x: torch.fft.rfft(x).abs(), (2, 8))
case("fft2", lambda x: abs(ek.fft2(x)), lambda x: torch.fft.fft2(x).abs(), (4, 6))
case("irfft", lambda x: ek.irfft(ek.rfft(x) * 2.0), lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2.0), (2, 8))

# --- networks -------------------------------------------------------------------------------------

for _options in ({}, {"stride": 2}, {"padding": 1}, {"dilation": 2}, {"stride": 2, "padding": 2, "dilation": 2}):
    case(
        "conv1d",
        lambda x, w, b, o=_options: ek.conv1d(x, w, b, **o),
        lambda x, w, b, o=_options: F.conv1d(x, w, b, **o),
        (2, 4, 9),
        (3, 4, 3),
        (3,),
    )
    case(
        "conv2d",
        lambda x, w, b, o=_options: ek.conv2d(x, w, b, **o),
        lambda x, w, b, o=_options: F.conv2d(x, w, b, **o),
        (2, 4, 7, 8),
        (3, 4, 3, 2),
        (3,),
    )
    case(
        "conv2d groups",
        lambda x, w, o=_options: ek.conv2d(x, w, groups=2, **o),
        lambda x, w, o=_options: F.conv2d(x, w, groups=2, **o),
        (1, 4, 7, 7),
        (6, 2, 3, 3),
    )
for _options in (
    {},
    {"stride": 2},
    {"stride": 2, "padding": 1, "output_padding": 1},
    {"dilation": 2},
    {"groups": 2, "stride": 2},
):
    _out = 3 if "groups" not in _options else 2
    case(
        "conv_transpose1d",
        lambda x, w, o=_options: ek.conv_transpose1d(x, w, **o),
        lambda x, w, o=_options: F.conv_transpose1d(x, w, **o),
        (2, 4, 5),
        (4, _out, 3),
    )
    case(
        "conv_transpose2d",
        lambda x, w, b, o=_options: ek.conv_transpose2d(x, w, b, **o),
        lambda x, w, b, o=_options: F.conv_transpose2d(x, w, b, **o),
        (2, 4, 4, 5),
        (4, _out, 3, 2),
        (_out * _options.get("groups", 1),),
    )
case(
    "conv2d same",
    lambda x, w: ek.conv2d(x, w, padding="same"),
    lambda x, w: F.conv2d(x, w, padding="same"),
    (1, 2, 5, 5),
    (3, 2, 4, 3),
)
case(
    "depthwise",
    lambda x, w: ek.depthwise_conv2d(x, w),
    lambda x, w: F.conv2d(x, w, groups=3),
    (2, 3, 5, 5),
    (3, 1, 3, 3),
)
for _options in ({}, {"stride": 1}, {"stride": 2, "padding": 1}, {"stride": 2, "ceil_mode": True}):
    case(
        "max_pool2d",
        lambda x, o=_options: ek.max_pool2d(x, 3, **o),
        lambda x, o=_options: F.max_pool2d(x, 3, **o),
        In((2, 2, 7, 8), spread=True),
    )
    case(
        "avg_pool2d",
        lambda x, o=_options: ek.avg_pool2d(x, 3, **o),
        lambda x, o=_options: F.avg_pool2d(x, 3, **o),
        (2, 2, 7, 8),
    )
    case(
        "max_pool1d",
        lambda x, o=_options: ek.max_pool1d(x, 3, **o),
        lambda x, o=_options: F.max_pool1d(x, 3, **o),
        In((2, 2, 8), spread=True),
    )
case(
    "avg_pool2d exclude",
    lambda x: ek.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    (2, 2, 7, 7),
)
case(
    "adaptive_avg_pool2d",
    lambda x: ek.adaptive_avg_pool2d(x, (3, 2)),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    (2, 2, 7, 5),
)
case(
    "adaptive_max_pool2d",
    lambda x: ek.adaptive_max_pool2d(x, (3, 2)),
    lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    In((2, 2, 7, 5), spread=True),
)
for _name in ("max_pool3d", "avg_pool3d"):
    for _options in ({}, {"stride": 1, "padding": 1}, {"stride": (2, 1, 3), "ceil_mode": True}):
        case(
            _name,
            lambda x, n=_name, o=_options: getattr(ek, n)(x, (2, 3, 2), **o),
            lambda x, n=_name, o=_options: getattr(F, n)(x, (2, 3, 2), **o),
            In((1, 2, 4, 5, 4), spread=True),
        )
for _name in ("adaptive_avg_pool3d", "adaptive_max_pool3d"):
    case(
        _name,
        lambda x, n=_name: getattr(ek, n)(x, (3, 2, None)),
        lambda x, n=_name: getattr(F, n)(x, (3, 2, None)),
        In((2, 5, 4, 3), spread=True),
    )
case(
    "conv_transpose3d",
    lambda x, w, b: ek.conv_transpose3d(x, w, b, (2, 1, 3), (0, 1, 0), (1, 0, 2), 2),
    lambda x, w, b: F.conv_transpose3d(x, w, b, (2, 1, 3), (0, 1, 0), (1, 0, 2), 2),
    (2, 4, 2, 3, 2),
    (4, 2, 2, 2, 3),
    (4,),
)
case(
    "einsum of labels",
    lambda x, y: ek.einsum(x, [0, 1], y, [1, 2], [2, 0]),
    lambda x, y: torch.einsum(x, [0, 1], y, [1, 2], [2, 0]),
    (3, 4),
    (4, 2),
)
for _causal in (False, True):
    case(
        "attention",
        lambda q, k, v, c=_causal: ek.scaled_dot_product_attention(q, k, v, causal=c),
        lambda q, k, v, c=_causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
        (2, 3, 5, 4),
        (2, 3, 5, 4),
        (2, 3, 5, 4),
    )
case(
    "attention mask",
    lambda q, k, v, m: ek.scaled_dot_product_attention(q, k, v, mask=m),
    lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    (2, 3, 5, 4),
    (2, 3, 6, 4),
    (2, 3, 6, 4),
    (5, 6),
)
case(
    "attention grouped",
    ek.scaled_dot_product_attention,
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
    (2, 4, 5, 4),
    (2, 2, 5, 4),
    (2, 2, 5, 4),
)
case(
    "layer_norm",
    lambda x, w, b: ek.layer_norm(x, (4,), w, b),
    lambda x, w, b: F.layer_norm(x, (4,), w, b),
    (2, 3, 4),
    (4,),
    (4,),
)
case("layer_norm two axes", lambda x: ek.layer_norm(x, (3, 4)), lambda x: F.layer_norm(x, (3, 4)), (2, 3, 4))
case(
    "rms_norm",
    lambda x, w: ek.rms_norm(x, (4,), w, eps=1e-5),
    lambda x, w: F.rms_norm(x, (4,), w, eps=1e-5),
    (2, 3, 4),
    (4,),
)
case(
    "group_norm",
    lambda x, w, b: ek.group_norm(x, 2, w, b),
    lambda x, w, b: F.group_norm(x, 2, w, b),
    (2, 4, 3),
    (4,),
    (4,),
)
case("instance_norm", ek.instance_norm, F.instance_norm, (2, 3, 5))
case("normalize", lambda x: ek.normalize(x, axis=1), lambda x: F.normalize(x, dim=1), (3, 4))
case(
    "interpolate",
    lambda x: ek.interpolate(x, scale_factor=2, mode="bilinear"),
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    (1, 2, 3, 4),
)

# --- losses ---------------------------------------------------------------------------------------

for _reduction in ("mean", "sum", "none"):
    _r = {"reduction": _reduction}
    for _name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        case(
            _name,
            lambda x, y, n=_name, r=_r: getattr(ek, n)(x, y, **r),
            lambda x, y, n=_name, r=_r: getattr(F, n)(x, y, **r),
            (3, 4),
            (3, 4),
        )
    case(
        "cross_entropy",
        lambda x, y, r=_r: ek.cross_entropy(x, y, **r),
        lambda x, y, r=_r: F.cross_entropy(x, y, **r),
        (5, 4),
        In((5,), classes=4),
    )
    case(
        "cross_entropy images",
        lambda x, y, r=_r: ek.cross_entropy(x, y, **r),
        lambda x, y, r=_r: F.cross_entropy(x, y, **r),
        (2, 4, 3, 3),
        In((2, 3, 3), classes=4),
    )
    case(
        "cross_entropy weight",
        lambda x, y, w, r=_r: ek.cross_entropy(x, y, weight=w, **r),
        lambda x, y, w, r=_r: F.cross_entropy(x, y, weight=w.detach(), **r),
        (5, 4),
        In((5,), classes=4),
        In((4,), 0.5, 1.5, classes=None),
    )
    case(
        "cross_entropy smooth",
        lambda x, y, r=_r: ek.cross_entropy(x, y, label_smoothing=0.1, **r),
        lambda x, y, r=_r: F.cross_entropy(x, y, label_smoothing=0.1, **r),
        (5, 4),
        In((5,), classes=4),
    )
    case(
        "bce",
        lambda x, y, r=_r: ek.binary_cross_entropy(x, y, **r),
        lambda x, y, r=_r: F.binary_cross_entropy(x, y, **r),
        In((3, 4), 0.1, 0.9),
        In((3, 4), 0.0, 1.0),
    )
    case(
        "bce logits",
        lambda x, y, r=_r: ek.binary_cross_entropy_with_logits(x, y, **r),
        lambda x, y, r=_r: F.binary_cross_entropy_with_logits(x, y, **r),
        (3, 4),
        In((3, 4), 0.0, 1.0),
    )
    case(
        "nll_loss",
        lambda x, y, r=_r: ek.nll_loss(x, y, **r),
        lambda x, y, r=_r: F.nll_loss(x, y, **r),
        (5, 4),
        In((5,), classes=4),
    )
    case(
        "kl_div",
        lambda x, y, r=_r: ek.kl_div(x, y, **r),
        lambda x, y, r=_r: F.kl_div(x, y, **r),
        (3, 4),
        In((3, 4), 0.1, 1.0),
    )
case(
    "cross_entropy ignore",
    lambda x, y: ek.cross_entropy(x, y, ignore_index=2),
    lambda x, y: F.cross_entropy(x, y, ignore_index=2),
    (6, 4),
    In((6,), classes=4),
)
case("cosine_similarity", ek.cosine_similarity, F.cosine_similarity, (3, 4), (3, 4))
case("triplet", ek.triplet_margin_loss, F.triplet_margin_loss, (3, 4), (3, 4), (3, 4))


@pytest.fixture(autouse=True)
def _on_the_reference():
    with ek.use_backend("reference"):
        yield


def test_there_are_over_two_hundred_comparisons():
    assert len(CASES) > 200


@pytest.mark.parametrize("one", CASES, ids=lambda c: c.name)
def test_forward_and_backward(one: Case) -> None:
    rng = np.random.default_rng(len(one.name))
    arrays = [draw(spec, rng) for spec in one.inputs]
    smooth = [k for k, a in enumerate(arrays) if a.dtype == np.float64]
    theirs = [torch.tensor(a, requires_grad=k in smooth) for k, a in enumerate(arrays)]
    wanted = flat(one.theirs(*theirs))
    cotangents = [rng.normal(size=tuple(w.shape)) for w in wanted]
    total = sum((w * torch.tensor(c)).sum() for w, c in zip(wanted, cotangents, strict=True))
    gradients = torch.autograd.grad(total, [theirs[k] for k in smooth], allow_unused=True)

    def scalar(*given):
        got = flat(one.ours(*given))
        for g, w in zip(got, wanted, strict=True):
            found = ek.stop_gradient(g).numpy()
            assert found.shape == tuple(w.shape)
            np.testing.assert_allclose(found, w.detach().numpy(), rtol=one.tolerance, atol=one.tolerance)
        return sum((g * c).sum() for g, c in zip(got, cotangents, strict=True))

    ours = ek.grad(scalar, argnums=smooth)(*(ek.tensor(a) for a in arrays))
    for g, w in zip(ours, gradients, strict=True):
        if w is None:  # PyTorch does not differentiate with respect to it
            continue
        scale = max(1.0, float(w.abs().max()))
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e2 * one.tolerance, atol=10 * one.tolerance * scale)
