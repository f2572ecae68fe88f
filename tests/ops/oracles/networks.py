"""Oracles of attention, normalization, positions and images: their formulas, one number after another."""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from eshkol.ops.random import KEY
from eshkol.ops.row import Draw, sample
from oracles.contraction import _each, _links, _pairs, _windows
from oracles.random import _threefry as threefry
from oracles.registry import EPSILON, agree, every, first, given, meeting, name_of, nth, oracle

# --- attention --------------------------------------------------------------------------------------


def _attended(query: Any, keys: Any, scale: float, added: Sequence[float]) -> list[float]:
    """How much one query attends to each key."""
    scores = [
        sum(q * k for q, k in zip(query, key, strict=True)) * scale + a for key, a in zip(keys, added, strict=True)
    ]
    most = max((s for s in scores), default=-math.inf)
    if most == -math.inf:
        return [0.0] * len(scores)
    powers = [math.exp(s - most) for s in scores]
    return [p / math.fsum(powers) for p in powers]


def _heads_of(query: Any, key: Any) -> int:
    """How many query heads share a key head."""
    if query.ndim > 2 and key.ndim > 2 and query.shape[-3] > key.shape[-3] > 1:
        return query.shape[-3] // key.shape[-3]
    return 1


@oracle("attention_weights", dtype=first, tolerance=2.0, more=[
    sample((2, 4, 3), (2, 4, 3), causal=c, scale=s) for c in (False, True) for s in (None, 0.3)
])  # fmt: skip
def _attention_weights(
    query: Any, key: Any, mask: Any = None, causal: bool = False, scale: float | None = None, window: int | None = None
) -> Any:
    shared = _heads_of(query, key)
    key = key[..., [h // shared for h in range(query.shape[-3])], :, :] if shared > 1 else key
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], () if mask is None else mask.shape[:-2])
    rows, columns = query.shape[-2], key.shape[-2]
    query, key = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (query, key))
    added = np.zeros((*lead, rows, columns))
    if mask is not None:
        added = np.broadcast_to(np.where(mask, 0.0, -math.inf) if mask.dtype == np.bool_ else mask, added.shape).copy()
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    found = np.zeros(added.shape)
    for at in np.ndindex(*lead, rows):
        row = added[at].copy()
        if causal:
            row[at[-1] + 1 :] = -math.inf
        if window is not None:
            row[: max(at[-1] - window + 1, 0)] = row[at[-1] + window :] = -math.inf
        found[at] = _attended(query[at].tolist(), key[at[:-1]].tolist(), factor, row.tolist())
    return found


@oracle("scaled_dot_product_attention", dtype=first, tolerance=2.0, more=[
    *(sample((4, 2, 3), (2, 5, 3), (2, 5, 1), causal=c) for c in (False, True)),
    sample((2, 1, 3, 2), (1, 2, 3, 2), (3, 2), Draw((2, 1, 3, 3), kind="bool"), scale=1.0),
    sample((1, 1), (1, 1), (1, 1)), sample((3, 2), (4, 2), (4, 2), (3, 4), scale=2.0),
    *(sample((5, 2), (6, 2), (6, 2), (5, 6), causal=c, window=2) for c in (False, True)),
    sample((2, 19, 2), (2, 21, 2), (2, 21, 2), None, False, None, None, 0.25, KEY),
    sample((2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 2), None, True, None, None, 0.5, KEY, Draw((2,), 0, 5, kind="int")),
    sample((7, 2), (7, 2), (7, 2), (7, 7), True, None, 3, 0.0, None, None,
           Draw((4,), kind="int", make=lambda rng: [1, 1, 4, 6])),
])  # fmt: skip
def _attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: float | None = None,
    window: int | None = None, dropout: float = 0.0, dropout_key: Any = None, key_lengths: Any = None,
    offsets: Any = None,
) -> Any:  # fmt: skip
    if key_lengths is not None or offsets is not None:
        seen = np.zeros((*query.shape[:-1], key.shape[-2]))
        for at in np.ndindex(seen.shape):
            last = key.shape[-2] if key_lengths is None else np.broadcast_to(key_lengths, query.shape[:-3])[at[:-3]]
            spans = [(0, 99)] if offsets is None else itertools.pairwise(offsets)
            together = any(begin <= min(at[-2:]) and max(at[-2:]) < end for begin, end in spans)
            seen[at] = 0 if at[-1] < last and together else -math.inf
        mask = seen if mask is None else seen + (np.where(mask, 0, -math.inf) if mask.dtype == np.bool_ else mask)
    shared = _heads_of(query, key)
    if shared == 1 and query.ndim > 2 and value.ndim > 2 and query.shape[-3] > value.shape[-3] > 1:
        shared = query.shape[-3] // value.shape[-3]
    weights = _attention_weights(query, key, mask, causal, scale, window)
    if dropout:
        rows, columns, below = -(-query.shape[-2] // 16) * 8, -(-key.shape[-2] // 16) * 4, round(dropout * 256)
        for number, at in enumerate(np.ndindex(weights.shape[:-2])):
            for t, u in np.ndindex(weights.shape[-2:]):
                block = (number * rows + t // 16 * 8 + t % 8) * columns + u // 16 * 4 + u % 8 // 2
                word = threefry((int(dropout_key[0]), int(dropout_key[1])), (0, block))[u % 2]
                byte = word >> 16 * (t % 16 // 8) + 8 * (u % 16 // 8) & 255
                weights[at][t, u] *= 0 if byte < below else 256 / (256 - below)
    if shared > 1:
        value = value[..., [h // shared for h in range(query.shape[-3])], :, :]
    return np.einsum("...qk,...kd->...qd", weights, value)


@oracle("paged_attention", dtype=first, tolerance=2.0)
def _paged_attention(query: Any, keys: Any, values: Any, table: Any, lengths: Any, scale: float | None = None) -> Any:
    found = np.zeros((*query.shape[:-1], values.shape[-1]))
    shared, size = query.shape[1] // keys.shape[2], keys.shape[1]
    for n, h, t in np.ndindex(query.shape[:3]):
        there = [(int(table[n, u // size]), u % size, h // shared) for u in range(int(lengths[n]))]
        factor = query.shape[-1] ** -0.5 if scale is None else scale
        weights = _attended(query[n, h, t].tolist(), [keys[at].tolist() for at in there], factor, [0.0] * len(there))
        for at, weight in zip(there, weights, strict=True):
            found[n, h, t] += weight * values[at]
    return found


def _projected(x: Any, weight: Any, bias: Any) -> Any:
    found = np.tensordot(x, weight, axes=([-1], [1]))
    return found if bias is None else found + bias


def _headed(
    query: Any, key: Any, value: Any, num_heads: int, query_weight: Any, key_weight: Any, value_weight: Any,
    out_weight: Any, query_bias: Any = None, key_bias: Any = None, value_bias: Any = None, out_bias: Any = None,
    mask: Any = None, causal: bool = False,
) -> Any:  # fmt: skip
    """Head by head, each with its own columns."""
    q = _projected(query, query_weight, query_bias)
    k, v = _projected(key, key_weight, key_bias), _projected(value, value_weight, value_bias)
    size = q.shape[-1] // num_heads
    keyed = k.shape[-1] // size
    parts = []
    for head in range(num_heads):
        own = head * keyed // num_heads
        columns, others = slice(head * size, (head + 1) * size), slice(own * size, (own + 1) * size)
        allowed = (
            None
            if mask is None
            else mask[..., head if mask.ndim > 2 and mask.shape[-3] > 1 else 0, :, :]
            if mask.ndim > 2
            else mask
        )
        parts.append(_attention(q[..., columns], k[..., others], v[..., others], allowed, causal))
    return _projected(np.concatenate(parts, axis=-1), out_weight, out_bias)


def meet_of_floats(call: Any) -> str:
    """Of all but the mask."""
    return meeting(x for x in call.arrays if x.dtype != np.bool_)


_WEIGHTS = ((4, 4), (4, 4), (4, 4), (4, 4))
oracle(
    "multi_head_attention",
    dtype=meet_of_floats,
    tolerance=64.0,
    more=[sample((2, 3, 4), (2, 5, 4), (2, 5, 4), h, *_WEIGHTS, causal=c) for h in (1, 2, 4) for c in (False, True)]
    + [sample((3, 4), (3, 4), (3, 4), 2, *_WEIGHTS, (4,), None, (4,), (4,), Draw((2, 3, 3), kind="bool"))],
)(_headed)
oracle("multi_head_self_attention", dtype=meet_of_floats, tolerance=64.0, more=[
    sample((2, 3, 4), h, *_WEIGHTS) for h in (1, 4)
])(lambda x, *rest, **how: _headed(x, x, x, *rest, **how))  # fmt: skip


# --- normalization ----------------------------------------------------------------------------------


def _standard(x: Any, groups: Any, eps: float) -> Any:
    """Every element less the mean of its group, over the root of its variance plus eps."""
    members: dict[Any, list[float]] = {}
    for i in np.ndindex(*x.shape):
        members.setdefault(groups(i), []).append(float(x[i]))
    middle = {g: math.fsum(v) / len(v) for g, v in members.items()}
    spread = {g: math.fsum((e - middle[g]) ** 2 for e in v) / len(v) for g, v in members.items()}
    return every(x.shape, lambda i: (x[i] - middle[groups(i)]) / math.sqrt(spread[groups(i)] + eps))


def _scaled(found: Any, weight: Any, bias: Any, place: Any) -> Any:
    return every(
        found.shape,
        lambda i: found[i] * (1 if weight is None else weight[place(i)]) + (0 if bias is None else bias[place(i)]),
    )


@oracle("layer_norm", dtype=first, tolerance=16.0, more=[sample((2, 1, 3), [1, 3], eps=e) for e in (1e-5, 0.5)])
def _layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    kept = x.ndim - (1 if isinstance(normalized_shape, int) else len(normalized_shape))
    return _scaled(_standard(x, lambda i: i[:kept], eps), weight, bias, lambda i: i[kept:])


@oracle("group_norm", dtype=first, tolerance=16.0, more=[sample((2, 4, 3), n) for n in (1, 2, 4)])
def _group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    size = x.shape[1] // num_groups
    return _scaled(_standard(x, lambda i: (i[0], i[1] // size), eps), weight, bias, lambda i: i[1])


@oracle("instance_norm", dtype=first, tolerance=16.0)
def _instance_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return _scaled(_standard(x, lambda i: i[:2], eps), weight, bias, lambda i: i[1])


@oracle(
    "batch_norm",
    dtype=(first, nth(1), nth(2)),
    tolerance=16.0,
    fixed=("training",),
    more=[
        sample((3, 2, 2), None, None, None, (2,), training=True, eps=0.1),
        sample((5, 2), (2,), Draw((2,), 0.5, 1), training=True),
    ],
)
def _batch_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5, unbiased: bool = True,
) -> Any:  # fmt: skip
    if not training:
        found = every(x.shape, lambda i: (x[i] - running_mean[i[1]]) / math.sqrt(running_var[i[1]] + eps))
        return _scaled(found, weight, bias, lambda i: i[1])
    found = _scaled(_standard(x, lambda i: i[1], eps), weight, bias, lambda i: i[1])
    if running_mean is None:
        return found
    lines = [[float(x[i]) for i in np.ndindex(*x.shape) if i[1] == c] for c in range(x.shape[1])]
    middles = np.array([math.fsum(v) / len(v) for v in lines])
    spreads = np.array(
        [math.fsum((e - m) ** 2 for e in v) / (len(v) - unbiased) for v, m in zip(lines, middles, strict=True)]
    )
    return (
        found, running_mean + momentum * (middles - running_mean), running_var + momentum * (spreads - running_var),
    )  # fmt: skip


@oracle("rms_norm", dtype=first, judges=True, more=[sample((2, 3), 3, eps=e) for e in (1e-8, 0.5)])
def _rms_norm(results: Any, x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> None:
    (got,) = results
    kept = x.ndim - (1 if isinstance(normalized_shape, int) else len(normalized_shape))
    added = EPSILON[name_of(got.dtype)] if eps is None else eps
    squares = {i: np.mean(x[i] ** 2) for i in np.ndindex(*x.shape[:kept])}
    found = every(x.shape, lambda i: x[i] / math.sqrt(squares[i[:kept]] + added))
    agree(got, _scaled(found, weight, None, lambda i: i[kept:]), 8.0)


@oracle("normalize", dtype=first, tolerance=4.0, fixed=("axis",), more=[
    sample((2, 3, 2), p=p, axis=a) for p in (1, 2, 3) for a in (0, 1, 2, -1)
] + [sample((2, 3), eps=50.0)])  # fmt: skip
def _normalize(x: Any, p: float = 2, axis: int = 1, eps: float = 1e-12) -> Any:
    axis = axis % x.ndim

    def length(i: tuple[int, ...]) -> float:
        line = x[(*i[:axis], slice(None), *i[axis + 1 :])]
        return max(math.fsum(abs(float(v)) ** p for v in line) ** (1 / p), eps)

    return every(x.shape, lambda i: x[i] / length(i))


@oracle("local_response_norm", dtype=first, tolerance=4.0, more=[sample((1, 5), n, alpha=1.0) for n in (1, 2, 3, 4, 7)])
def _local_response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    def element(i: tuple[int, ...]) -> Any:
        near = [i[1] - size // 2 + j for j in range(size)]
        total = math.fsum(float(x[(i[0], c, *i[2:])]) ** 2 for c in near if 0 <= c < x.shape[1])
        return x[i] / (k + alpha * total / size) ** beta

    return every(x.shape, element)


# --- positions --------------------------------------------------------------------------------------


@oracle(
    "positional_encoding",
    dtype=given("float32"),
    more=[sample(length=6, dim=d, base=b) for d in (1, 4) for b in (10.0, 1e4)],
)
def _positional_encoding(length: int, dim: int, base: float = 10000.0, dtype: Any = "float32") -> Any:
    def element(i: tuple[int, ...]) -> float:
        turn = cmath.exp(1j * i[0] * math.exp(-math.log(base) * (2 * (i[1] // 2)) / dim))
        return turn.real if i[1] % 2 else turn.imag

    return every((length, dim), element)


@oracle("rotary_angles", dtype=given("float32"), more=[sample(length=3, dim=4, offset=o) for o in (0, 5, 2.5)])
def _rotary_angles(length: int, dim: int, base: float = 10000.0, offset: float = 0, dtype: Any = "float32") -> Any:
    return every((length, dim // 2), lambda i: (i[0] + offset) * math.exp(-math.log(base) * 2 * i[1] / dim))


@oracle("rotary_embedding", dtype=first)
def _rotary_embedding(x: Any, angles: Any, interleaved: bool = True) -> Any:
    half = x.shape[-1] // 2
    wide = np.broadcast_to(angles, (*x.shape[:-1], half))

    def element(i: tuple[int, ...]) -> Any:
        pair, part = divmod(i[-1], 2) if interleaved else (i[-1] % half, i[-1] // half)
        one, other = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + half)
        angle = float(wide[(*i[:-1], pair)])
        a, b = float(x[(*i[:-1], one)]), float(x[(*i[:-1], other)])
        return a * math.sin(angle) + b * math.cos(angle) if part else a * math.cos(angle) - b * math.sin(angle)

    return every(x.shape, element)


# --- images -----------------------------------------------------------------------------------------


def _cubic(distance: Fraction) -> Fraction:
    """Keys' kernel with the slope -3/4."""
    a, d = Fraction(-3, 4), abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else Fraction(0)


def _shares(new: int, old: int, scale: Fraction, mode: str, align_corners: bool) -> list[dict[int, Fraction]]:
    """For each new place, how much of which old ones it is made of; in exact numbers."""
    found = []
    for i in range(new):
        parts: dict[int, Fraction] = {}
        if mode.startswith("nearest"):
            at = (i + (Fraction(1, 2) if mode == "nearest-exact" else 0)) / scale
            parts[min(math.floor(at), old - 1)] = Fraction(1)
        elif mode == "area":  # all places that the new one's stretch touches, with equal shares
            places = [k for k in range(old) if k * new < (i + 1) * old and (k + 1) * new > i * old]
            parts = dict.fromkeys(places, Fraction(1, len(places)))
        else:
            at = (
                Fraction(i * (old - 1), max(new - 1, 1))
                if align_corners
                else (i + Fraction(1, 2)) / scale - Fraction(1, 2)
            )
            kernel: Any = _cubic
            if mode != "bicubic":
                at = min(max(at, Fraction(0)), Fraction(old - 1))
                kernel = lambda d: max(Fraction(0), 1 - abs(d))
            for k in range(math.floor(at) - 1, math.floor(at) + 3):
                place = min(max(k, 0), old - 1)
                parts[place] = parts.get(place, Fraction(0)) + kernel(at - k)
        found.append(parts)
    return found


_SMOOTH = {1: "linear", 2: "bilinear", 3: "trilinear"}
_RESIZED = [
    *(
        sample((1, 1, n), size=m, mode=mode)
        for n in (1, 3, 6, 14)
        for m in (1, 2, 5, 9, 18)
        for mode in ("nearest", "nearest-exact", "linear", "area")
    ),
    *(
        sample((1, 1, 4, 3), size=(3, 5), mode=mode, align_corners=c)
        for mode in ("bilinear", "bicubic")
        for c in (False, True)
    ),
    *(
        sample((1, 1, 3, 4), scale_factor=f, mode=mode)
        for f in (0.5, 2, (1.5, 2.0))
        for mode in ("nearest", "bilinear", "bicubic")
    ),
    sample((1, 1, 2, 3, 2), size=(3, 2, 4), mode="trilinear", align_corners=True),
]


@oracle("interpolate", dtype=first, tolerance=2.0, fixed=("align_corners",), more=_RESIZED)
def _interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False
) -> Any:
    space = x.shape[2:]
    if size is not None:
        wanted = _each(size, len(space))
        scales = [Fraction(n, m) for n, m in zip(wanted, space, strict=True)]
    else:
        factors = [scale_factor] * len(space) if isinstance(scale_factor, int | float) else scale_factor
        scales = [Fraction(f).limit_denominator(1000) for f in factors]  # 0.1 is meant, not the double next to it
        wanted = [math.floor(n * f) for n, f in zip(space, scales, strict=True)]
    shares = [_shares(n, m, s, mode, align_corners) for n, m, s in zip(wanted, space, scales, strict=True)]

    def element(i: tuple[int, ...]) -> Any:
        total = 0.0
        for chosen in itertools.product(*(axis[j].items() for axis, j in zip(shares, i[2:], strict=True))):
            weight = math.prod((w for _, w in chosen), start=Fraction(1))
            total += float(weight) * x[(*i[:2], *(k for k, _ in chosen))]
        return total

    return every((*x.shape[:2], *wanted), element)


_POINTS = Draw((2, 3, 2, 2), -1.4, 1.4, kind="float")


@oracle("grid_sample", dtype=first, tolerance=4.0, more=[
    sample((2, 1, 3, 4), _POINTS, mode=m, padding_mode=p, align_corners=c)
    for m in ("bilinear", "nearest") for p in ("zeros", "border") for c in (False, True)
])  # fmt: skip
def _grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Any:
    def place(g: float, n: int) -> float:
        at = (g + 1) * (n - 1) / 2 if align_corners else ((g + 1) * n - 1) / 2
        return min(max(at, 0.0), n - 1.0) if padding_mode == "border" else at

    def element(i: tuple[int, ...]) -> Any:
        b, c, row, column = i
        across, down = (place(float(g), n) for g, n in zip(grid[b, row, column], x.shape[:1:-1], strict=True))
        if mode == "nearest":
            corners = [(round(down), round(across), 1.0)]
        else:
            top, left = math.floor(down), math.floor(across)
            corners = [
                (top + p, left + q, (down - top if p else top + 1 - down) * (across - left if q else left + 1 - across))
                for p, q in np.ndindex(2, 2)
            ]
        return sum(
            share * x[b, c, p, q] for p, q, share in corners if 0 <= p < x.shape[2] and 0 <= q < x.shape[3]
        )  # fmt: skip

    return every((*x.shape[:2], *grid.shape[1:3]), element)


@oracle("pixel_shuffle", dtype=first)
def _pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    r = upscale_factor
    *lead, channels, height, width = x.shape

    def element(i: tuple[int, ...]) -> Any:
        *front, c, h, w = i
        return x[(*front, c * r * r + (h % r) * r + w % r, h // r, w // r)]

    return every((*lead, channels // r**2, height * r, width * r), element)


@oracle("pixel_unshuffle", dtype=first)
def _pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    r = downscale_factor
    *lead, channels, height, width = x.shape

    def element(i: tuple[int, ...]) -> Any:
        *front, c, h, w = i
        return x[(*front, c // (r * r), h * r + c // r % r, w * r + c % r)]

    return every((*lead, channels * r**2, height // r, width // r), element)


def _patches(
    space: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[list[int], list[int], list[Any]]:
    """The kernel, how many patches there are along each axis, and which element each place of each patch is."""
    kernel, how = _each(kernel_size, 2), (_each(stride, 2), _pairs(padding, 2), _each(dilation, 2), [1, 1])
    counts = _windows(space, kernel, *how)
    return kernel, counts, list(_links(space, kernel, counts, *how))


_FOLDED = [{"stride": 2}, {"padding": 1}, {"dilation": 2, "padding": (1, 0)}, {"stride": (1, 2), "padding": 1}]


@oracle("unfold", dtype=first, more=[sample((1, 2, 4, 5), kernel_size=(2, 3), **how) for how in _FOLDED])
def _unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    kernel, counts, links = _patches(x.shape[-2:], kernel_size, dilation, padding, stride)
    found = np.zeros((*x.shape[:-2], *kernel, *counts), x.dtype)
    for at, tap, window in links:
        found[(..., *tap, *window)] = x[(..., *at)]
    return found.reshape(*x.shape[:-3], x.shape[-3] * kernel[0] * kernel[1], counts[0] * counts[1])


@oracle("fold", dtype=first)
def _fold(x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    kernel, counts, links = _patches(output_size, kernel_size, dilation, padding, stride)
    channels = x.shape[-2] // (kernel[0] * kernel[1])
    parted = x.reshape(*x.shape[:-2], channels, *kernel, *counts)
    found = np.zeros((*x.shape[:-2], channels, *output_size), x.dtype)
    for at, tap, window in links:
        found[(..., *at)] += parted[(..., *tap, *window)]
    return found
