"""Rows that were drawn up before anyone had looked at how fast they are: what learning does, and whole programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import eshkol as ek
from bench.every.row import Make, Row, both, definite, integers, normal, positive, truths
from bench.every.rows.others import gradient_of, row_of

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    for part in (_norms, _convolution, _pooling, _attention, _losses, _distances, _recurrent, _programs):
        yield from part()


def _norms() -> Iterator[Row]:
    family = "softmax and norms"
    yield row_of("softmax, f64", family, "f64", normal(1000, 1000), lambda L, F, x: L.softmax(x, -1))
    yield from both(
        row_of("log softmax of rows of 100", family, "f32", normal(10_000, 100), lambda L, F, x: L.log_softmax(x, -1))
    )
    yield from both(
        row_of("softmax along channels", family, "f32", normal(8, 21, 64, 64), lambda L, F, x: L.softmax(x, 1))
    )
    yield from both(row_of("instance norm", family, "f32", normal(16, 32, 32, 32), lambda L, F, x: F.instance_norm(x)))
    images = (normal(16, 64, 28, 28), normal(64), positive(64), normal(64), normal(64))
    yield row_of(
        "batch norm, not in training", family, "f32", images, lambda L, F, x, m, v, w, b: F.batch_norm(x, m, v, w, b)
    )
    yield gradient_of(
        row_of(
            "RMS norm of rows of 768",
            family,
            "f32",
            (normal(1024, 768), normal(768)),
            lambda L, F, x, w: F.rms_norm(x, (768,), w, 1e-5),
        )
    )
    yield gradient_of(
        row_of(
            "group norm, 4 groups",
            family,
            "f32",
            (normal(16, 32, 28, 28), normal(32), normal(32)),
            lambda L, F, x, w, b: F.group_norm(x, 4, w, b),
        )
    )
    yield row_of(
        "layer norm, bf16",
        family,
        "bf16",
        (normal(2048, 512), normal(512), normal(512)),
        lambda L, F, x, w, b: F.layer_norm(x, (512,), w, b),
    )
    yield row_of(
        "layer norm of 10⁴ rows of 32", family, "f32", normal(10_000, 32), lambda L, F, x: F.layer_norm(x, (32,))
    )
    yield from both(
        row_of(
            "masked softmax",
            family,
            "f32",
            (normal(64, 8, 64, 64), truths(64, 1, 1, 64)),
            lambda L, F, x, m: L.softmax(x.masked_fill(m, -1e9), -1),
        )
    )
    yield row_of("normalize columns", family, "f32", normal(1000, 1000), lambda L, F, x: F.normalize(x, dim=0))


def _convolution() -> Iterator[Row]:
    family = "convolution"

    def of(name: str, image: tuple[int, ...], kernel: tuple[int, ...], dtype: str = "f32", **how: Any) -> Row:
        rank = len(image) - 2
        return row_of(
            name,
            family,
            dtype,
            (normal(*image), normal(*kernel)),
            lambda L, F, x, k: getattr(F, f"conv{rank}d")(x, k, **how),
        )

    yield from both(of("conv2d 5 × 5, 1 to 32 channels", (64, 1, 28, 28), (32, 1, 5, 5)))
    yield from both(of("conv2d 3 × 3, 3 to 64 channels", (16, 3, 64, 64), (64, 3, 3, 3), padding=1))
    yield of("conv2d 5 × 5, 32 to 64 channels", (32, 32, 14, 14), (64, 32, 5, 5), padding=2)
    yield from both(of("depthwise conv2d 7 × 7", (8, 96, 28, 28), (96, 1, 7, 7), padding=3, groups=96))
    yield of("conv2d of 512 channels, 7 × 7, one image", (1, 512, 7, 7), (512, 512, 3, 3), padding=1)
    yield of("conv1d, causal, dilation 8", (16, 32, 1000), (32, 32, 3), dilation=8, padding=16)
    yield gradient_of(of("conv2d 3 × 3, stride 2", (16, 64, 28, 28), (128, 64, 3, 3), stride=2, padding=1))
    yield gradient_of(of("conv2d 1 × 1", (16, 64, 28, 28), (128, 64, 1, 1)))
    yield gradient_of(of("conv2d 3 × 3, bf16", (8, 32, 28, 28), (32, 32, 3, 3), "bf16", padding=1))
    yield of("conv2d 11 × 11 of 3 channels, stride 4", (8, 3, 224, 224), (64, 3, 11, 11), stride=4, padding=2)
    yield of("Sobel's filter", (1, 1, 1024, 1024), (2, 1, 3, 3), padding=1)
    yield of("separable blur, 1 × 9", (3, 1, 512, 512), (1, 1, 1, 9), padding=(0, 4))


def _pooling() -> Iterator[Row]:
    family, images = "pooling", normal(16, 64, 28, 28)
    yield from both(
        row_of("mean pool 3 × 3, stride 1", family, "f32", images, lambda L, F, x: F.avg_pool2d(x, 3, 1, 1))
    )
    yield from both(row_of("global mean pool", family, "f32", images, lambda L, F, x: F.adaptive_avg_pool2d(x, 1)))
    yield from both(
        row_of("adaptive max pool to 4 × 4", family, "f32", images, lambda L, F, x: F.adaptive_max_pool2d(x, 4))
    )
    yield row_of("max pool 3-D", family, "f32", normal(2, 16, 32, 32, 32), lambda L, F, x: F.max_pool3d(x, 2))
    yield gradient_of(
        row_of("max pool of sequences", family, "f32", normal(16, 64, 1000), lambda L, F, x: F.max_pool1d(x, 4))
    )
    yield row_of("max pool 2 × 2, bf16", family, "bf16", images, lambda L, F, x: F.max_pool2d(x, 2))


def _attention() -> Iterator[Row]:
    family = "attention"

    def of(name: str, queries: tuple[int, ...], keys: tuple[int, ...], dtype: str = "f32", **how: Any) -> Row:
        return row_of(
            name,
            family,
            dtype,
            (normal(*queries), normal(*keys), normal(*keys)),
            lambda L, F, q, k, v: F.scaled_dot_product_attention(q, k, v, **how),
        )

    yield of("one query, 1024 keys", (8, 8, 1, 64), (8, 8, 1024, 64))
    yield of("attention of 1024 positions", (1, 8, 1024, 64), (1, 8, 1024, 64))
    yield of("attention of heads of 128", (1, 8, 256, 128), (1, 8, 256, 128))
    yield of("attention across, 64 to 512", (4, 8, 64, 32), (4, 8, 512, 32))
    yield of("attention, bf16", (2, 8, 256, 64), (2, 8, 256, 64), "bf16")
    yield from both(
        row_of(
            "attention with a mask",
            family,
            "f32",
            (*(normal(4, 8, 128, 32),) * 3, truths(128, 128)),
            lambda L, F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m | L.eye(128, dtype=L.bool)),
        )
    )
    yield from both(
        row_of(
            "attention by its parts",
            family,
            "f32",
            (normal(4, 8, 128, 32),) * 3,
            lambda L, F, q, k, v: L.softmax(q @ k.transpose(-2, -1) / 32**0.5, -1) @ v,
        )
    )


def _losses() -> Iterator[Row]:
    family = "losses"

    def of(name: str, makes: tuple[Make, ...], code: Any) -> Iterator[Row]:
        return both(row_of(name, family, "f32", makes, code))

    classes = (normal(1000, 100), integers(100, 1000))
    yield from of("absolute error", (normal(MILLION),) * 2, lambda L, F, x, y: F.l1_loss(x, y))
    yield from of("smooth absolute error", (normal(MILLION),) * 2, lambda L, F, x, y: F.smooth_l1_loss(x, y))
    yield from of(
        "cross entropy, smoothed labels", classes, lambda L, F, x, t: F.cross_entropy(x, t, label_smoothing=0.1)
    )
    yield from of(
        "cross entropy of pictures",
        (normal(4, 21, 64, 64), integers(21, 4, 64, 64)),
        lambda L, F, x, t: F.cross_entropy(x, t),
    )
    yield from of("triplets", (normal(1000, 128),) * 3, lambda L, F, a, p, n: F.triplet_margin_loss(a, p, n))
    yield from of(
        "cosine similarity, mean", (normal(10_000, 64),) * 2, lambda L, F, x, y: F.cosine_similarity(x, y).mean()
    )
    yield from of("focal loss", (normal(MILLION), lambda rng: (rng.random(MILLION) < 0.3) * 1.0), _focal)
    yield from of("hinge", (normal(10_000, 10), integers(10, 10_000)), lambda L, F, x, t: F.multi_margin_loss(x, t))
    yield from of(
        "contrast of 256 pairs",
        (normal(256, 128), normal(256, 128)),
        lambda L, F, x, y: F.cross_entropy(F.normalize(x) @ F.normalize(y).t() / 0.1, L.arange(256)),
    )
    yield row_of(
        "connectionist temporal",
        family,
        "f32",
        (normal(100, 16, 20), lambda rng: rng.integers(1, 20, (16, 15))),
        lambda L, F, x, t: F.ctc_loss(
            L.log_softmax(x, -1), t, L.full((16,), 100, dtype=L.int64), L.full((16,), 15, dtype=L.int64)
        ),
    )


def _focal(L: Any, F: Any, x: Any, t: Any) -> Any:
    p = L.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    near = p * t + (1 - p) * (1 - t)
    return (loss * (1 - near) ** 2).mean()


def _distances() -> Iterator[Row]:
    points = (normal(500, 16), normal(800, 16))
    yield row_of(
        "Gaussian kernel of 500 and 800",
        "distances",
        "f32",
        points,
        lambda L, F, x, y: L.exp(-0.1 * L.cdist(x, y) ** 2),
    )
    yield row_of("cdist, f64", "distances", "f64", points, lambda L, F, x, y: L.cdist(x, y))
    yield row_of(
        "5 nearest of 800", "distances", "f32", points, lambda L, F, x, y: L.topk(L.cdist(x, y), 5, largest=False)[0]
    )
    yield row_of(
        "largest differences of 300 and 300",
        "distances",
        "f32",
        (normal(300, 16),) * 2,
        lambda L, F, x, y: (x[:, None] - y).abs().amax(-1),
    )
    yield from both(
        row_of(
            "pairwise distance of rows",
            "distances",
            "f32",
            (normal(10_000, 64),) * 2,
            lambda L, F, x, y: F.pairwise_distance(x, y),
        )
    )


def _recurrent() -> Iterator[Row]:
    yield row_of("exponential mean over 1000 steps", "recurrent", "f32", normal(1000, 64), _smoothed)


def _smoothed(L: Any, F: Any, x: Any) -> Any:
    if L is ek:
        return ek.scan(lambda s, row: (s * 0.9 + row * 0.1,) * 2, x[0], x)[1]
    state, found = x[0], []
    for row in x:
        state = state * 0.9 + row * 0.1
        found.append(state)
    return L.stack(found)


# --- whole programs -------------------------------------------------------------------------------


def _programs() -> Iterator[Row]:
    family = "small networks"
    yield row_of("heat, 50 steps of 256²", "elementwise", "f32", normal(256, 256), _heat)
    yield row_of(
        "game of life, 20 steps", "elementwise", "f32", lambda rng: (rng.random((256, 256)) < 0.4) * 1.0, _life
    )
    yield row_of("k-means, a step", "distances", "f32", (normal(5000, 16), normal(20, 16)), _k_means)
    yield from both(
        row_of(
            "logistic regression, a step",
            family,
            "f32",
            (normal(1000, 50), normal(50), truths(1000)),
            lambda L, F, x, w, t: F.binary_cross_entropy_with_logits(x @ w, t.to(x.dtype)),
        )
    )
    yield row_of("power iteration, 20 steps", "products", "f32", (definite(300, 300), normal(300)), _power)
    yield row_of("10 bodies, accelerations", "small networks", "f64", normal(10, 3), _bodies)
    yield row_of("1000 bodies, accelerations", "distances", "f32", normal(1000, 3), _bodies)
    yield row_of("rolling means of 20", "cumulative", "f64", normal(100_000), _rolling)
    yield row_of(
        "Kalman filter, a step",
        family,
        "f64",
        (normal(4), definite(4, 4), normal(4, 4), normal(2, 4), normal(2)),
        _kalman,
    )
    yield row_of(
        "Gaussian log densities",
        "reductions",
        "f32",
        (normal(10_000, 32), normal(32), positive(32)),
        lambda L, F, x, m, s: (-0.5 * ((x - m) / s) ** 2 - L.log(s) - 0.9189385).sum(-1),
    )
    yield row_of(
        "mixture of 8 Gaussians",
        "softmax and norms",
        "f32",
        (normal(10_000, 1, 4), normal(8, 4), positive(8)),
        lambda L, F, x, m, w: L.logsumexp(-0.5 * ((x - m) ** 2).sum(-1) + L.log(w), -1),
    )
    yield row_of(
        "SwiGLU",
        "products",
        "f32",
        (normal(128, 256), normal(688, 256), normal(688, 256), normal(256, 688)),
        lambda L, F, x, a, b, c: F.linear(F.silu(F.linear(x, a)) * F.linear(x, b), c),
    )
    yield row_of(
        "rotary embedding",
        "movement",
        "f32",
        (normal(4, 8, 256, 64), normal(256, 64), normal(256, 64)),
        lambda L, F, x, c, s: x * c + L.cat([-x[..., 32:], x[..., :32]], -1) * s,
    )
    yield row_of(
        "image normalized, channels first",
        "movement",
        "i64",
        lambda rng: rng.integers(0, 255, (8, 224, 224, 3)).astype(np.uint8),
        lambda L, F, x: (x.permute(0, 3, 1, 2).float() / 255 - 0.45) / 0.22,
    )


def _heat(L: Any, F: Any, x: Any) -> Any:
    for _ in range(50):
        x = x + 0.1 * (L.roll(x, 1, 0) + L.roll(x, -1, 0) + L.roll(x, 1, 1) + L.roll(x, -1, 1) - 4 * x)
    return x


def _life(L: Any, F: Any, x: Any) -> Any:
    for _ in range(20):
        rows = x + L.roll(x, 1, 0) + L.roll(x, -1, 0)
        near = rows + L.roll(rows, 1, 1) + L.roll(rows, -1, 1) - x
        x = ((near == 3) | ((x > 0) & (near == 2))).to(x.dtype)
    return x


def _k_means(L: Any, F: Any, x: Any, centres: Any) -> Any:
    nearest = L.cdist(x, centres).argmin(1)
    one = F.one_hot(nearest, 20).to(x.dtype)
    return (one.t() @ x) / one.sum(0)[:, None].clamp(min=1.0)


def _power(L: Any, F: Any, a: Any, v: Any) -> Any:
    for _ in range(20):
        v = a @ v
        v = v / L.linalg.norm(v)
    return v @ (a @ v)


def _bodies(L: Any, F: Any, x: Any) -> Any:
    d = x[None] - x[:, None]
    r = (d * d).sum(-1) + 0.01
    return (d * (r**-1.5)[..., None]).sum(1)


def _rolling(L: Any, F: Any, x: Any) -> Any:
    total = L.cumsum(x, 0)
    return (total[20:] - total[:-20]) / 20


def _kalman(L: Any, F: Any, x: Any, p: Any, f: Any, h: Any, z: Any) -> Any:
    x, p = f @ x, f @ p @ f.t() + 0.1 * L.eye(4, dtype=x.dtype)
    s = h @ p @ h.t() + L.eye(2, dtype=x.dtype)
    k = L.linalg.solve(s, h @ p).t()
    return x + k @ (z - h @ x), p - k @ h @ p
