"""Functions for the machines that do products, attention and convolutions as whole array instructions.

`planned_functions.py` says with which inputs they are planned. A product is followed by what its kernel takes, and by
what it leaves; convolutions have copies that several read, or none; attention sees keys in every way that an
instruction has a name for.
"""

from __future__ import annotations

from typing import Any

import eshkol as ek


def followed(x: Any, w: Any, b: Any, r: Any) -> Any:
    """What a product's kernel computes behind its sums; each product is one of its own."""
    y = (x @ (w * (k + 2.0)) for k in range(14))
    both, again = next(y), next(y)
    return (
        ek.relu(next(y) + b), ek.gelu(next(y) + b, approximate="tanh"), -next(y) / r, ek.exp(ek.tanh(next(y)) - b),
        ek.sigmoid(next(y) * 0.5 + b) + r, ek.erf(next(y)) * r, (next(y) + b).astype(ek.float32),
        (next(y) + b).astype(ek.float32) + r.astype(ek.float32), both, ek.tanh(both + b),
        (again + b).reshape(4, 8, -1), (again + b) * r,
    )  # fmt: skip


def followed_apart(x: Any, w: Any, b: Any, r: Any) -> Any:
    """What stays behind a product: a number for each row, other ops, parts, other places, and too many matrices."""
    y = (x @ (w * (k + 2.0)) for k in range(14))
    many, sums, cut, squares = next(y), next(y), next(y), next(y) + r
    return (
        next(y) + r[:, :1], ek.where(next(y) > 0, r, 0), next(y)[:, :8] + b[:8], next(y).reshape(24, 32) + x[:24, :1],
        next(y) + r + r * 2 + r * r + ek.sin(r), (many + b, many * 2, many - r, ek.tanh(many)), next(y).sum(1),
        sums + r, (sums + r).sum(0), (cut + b)[:, 1:], cut * r, ek.sin(next(y)), next(y) @ w.T + x,
        squares, (squares * squares).sum(0),
    )  # fmt: skip


def products_beside(x: Any, w: Any, v: Any) -> Any:
    """Batches, factors that lie turned or must be copied first, squares, and rows that are no whole chunks."""
    turned = x.swapaxes(-1, -2)
    return (
        ek.relu(x @ w + 1), turned @ x + 1, x @ turned * 2, ek.tanh(x @ v), x[:, ::2] @ w - 1, x[..., 4:] @ w[4:] + 2,
        x[..., 1:] @ w[1:] + 3, turned[:, :16] @ x[:, :, :8] * 3, (x[0] @ w)[None] + x[0, 0, 0],
    )  # fmt: skip


def read_again(x: Any, w: Any, b: Any) -> Any:
    """Two layers with a residual and a normalization: what follows a product is read by several."""
    y = x @ w + b
    centred = y - y.mean(-1, keepdims=True)
    z = centred / ek.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return ek.relu(z @ w.T) + y, ek.softmax((y * 2) @ w, -1), (y * y).sum(0)


def computed_again(x: Any, w: Any, b: Any, r: Any) -> Any:
    """What follows a product and is read by others, which read what it was computed from, or do not."""
    y, z, u = x @ w, x @ (w * 2), x @ (w * 3)
    long, beside, short = ek.tanh((y + b) * 2), ek.tanh((z + r) * 2), ek.sigmoid(u * 3)
    return (
        ek.softmax(long * y, -1), ek.softmax(beside * z + r, -1), ek.softmax(short * u, -1), short @ w,
        beside @ w, long @ w,
    )  # fmt: skip


def images(x: Any, w: Any, p: Any) -> Any:
    """Convolutions that share what they read, before and behind each other, with steps, gaps and edges."""
    y = ek.relu(ek.conv2d(x, w, padding=1))
    return (
        ek.conv2d(y, w, padding=1) + x, ek.conv2d(x, w, padding=2, dilation=2), ek.conv2d(x, w, stride=2),
        ek.conv2d(x, w, stride=(2, 1), padding=(1, 0)), ek.conv2d(x, p), ek.conv2d(x, p, stride=2),
        ek.conv2d(y, p * 2)[:, ::2],
    )  # fmt: skip


def of_few_channels(x: Any, w: Any, v: Any) -> Any:
    """Images of three colours, whose windows become channels."""
    return ek.conv2d(x, w, stride=2, padding=(2, 1)), ek.conv2d(x, v, padding=1), ek.conv2d(x, v, stride=(1, 3))


def left_to_lanes(x: Any, w: Any, v: Any, s: Any, u: Any) -> Any:
    """Convolutions that are no array instruction: groups, odd channels, three axes, far steps, wide edges."""
    return (
        ek.conv2d(x, w, groups=2), ek.conv2d(x[:, :5], v), ek.conv3d(s, u),
        ek.conv2d(x[:, :16], w, stride=9), ek.conv2d(x[:, :16], w, padding=130), ek.conv2d(x[:, 16:], w, dilation=8),
    )  # fmt: skip


def attended(q: Any, k: Any, v: Any, m: Any, b: Any) -> Any:
    """Attention with everything that says which keys are seen."""
    given = ek.scaled_dot_product_attention
    return (
        given(q, k, v), given(q * 2, k, v, causal=True), given(q * 3, k, v, window=3), given(q * 4, k, v, m),
        given(q * 5, k, v, b), given(q * 6, k, v, causal=True, window=4, scale=0.5), given(q[..., :1, :], k, v),
        given(q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2)), given(q * 7, k[:, :, :, :], v, b[..., :1]),
    )  # fmt: skip
