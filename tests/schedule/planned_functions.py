"""The functions whose plans are kept in `plan_sizes.txt`: what each is, its inputs, and for which machines.

They are chosen so that planning them goes through all lines of the compiler that make plans: what a line decides shows
in one of them. `plan_sizes.py` plans them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import planned_arrays as arrays
import planned_edges as edges
import planned_nearly
import planned_numerics as numerics
import planned_random
import planned_ways as ways
import planned_whole as whole

import eshkol as ek

Function = Callable[..., Any]
SINGLE, HALF, COMPLEX, WHOLE, TRUTH = "float32", "bfloat16", "complex64", "int64", "bool_"
EVERYWHERE = ("cpu", "small blocks", "blocks")
CPU, CORES, SMALL, ALONE = ("cpu",), ("cpu", "small cores"), ("small blocks",), ("each alone",)
BLOCKS, CUT = ("small blocks", "blocks"), ("small cores", "small blocks")
ARRAYS = ("small whole",)


class Case(NamedTuple):
    """A function, its inputs (shapes of float32, or dtypes and shapes), machines, and whether its derivative, too."""

    function: Function
    inputs: tuple[Any, ...]
    machines: tuple[str, ...] = EVERYWHERE
    derivative: bool = True
    told: Any = None  # axes whose lengths programs are told, as `jit` has them in `dynamic=`


def normalized(x: Any, axis: int = -1) -> Any:
    centred = x - x.mean(axis, keepdims=True)
    return centred / ek.sqrt((centred**2).mean(axis, keepdims=True) + 1e-5)


def perceptron(x: Any, w: Any, b: Any, v: Any) -> Any:
    return ek.log_softmax(ek.relu(x @ w + b) @ v, -1)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = ek.einsum("bqd,bkd->bqk", q, k) * 0.25
    return ek.softmax(scores, -1) @ v


def recurrent(x: Any, w: Any) -> Any:
    return ek.scan(lambda h, row: (ek.tanh(h @ w + row), h.sum()), ek.zeros((4,)), x)[0]


def block(x: Any, w: Any, g: Any) -> Any:
    y = ek.conv2d(x, w, padding=1)
    return ek.relu(normalized(y, 1) * g) + x


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.01 * m / (ek.sqrt(v) + 1e-8), m, v


def _of_integers(x: Any, y: Any) -> Any:
    return x.astype(ek.int32) @ y.astype(ek.int32).T


ELEMENTARY = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log1p log2 log10 exp2 sqrt rsqrt cbrt "
    "erf erfc sigmoid floor ceil round trunc sign abs relu isnan isfinite"
)
WITHOUT = (  # a derivative
    "one hot", "places", "integers", "complex", "spectra", "until", "complex of floats", "magnitudes",
)  # fmt: skip
ORDINARY: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "chain": (lambda x: ek.tanh(ek.sin(x) * 2 + x) - x, ((3, 5),)),
    "long chain": (lambda x: ek.exp(-(x**2)) * ek.cos(x) / (1 + x * x), ((70, 40),)),
    "broadcast": (lambda x, y: x * y + ek.sin(y), ((6, 1, 5), (4, 1))),
    "turned": (lambda x: x.T @ x + x.T.sum(1), ((6, 5),)),
    "sum of rows": (lambda x: (x * 2).sum(1) * 3, ((64, 100),)),
    "sum of columns": (lambda x: (x * x).sum(0), ((200, 30),)),
    "sum of all": (lambda x: ek.sin(x).sum(), ((90, 70),)),
    "two sums": (lambda x: (x.sum(1), (x * x).sum(0)), ((20, 30),)),
    "middle": (lambda x: x.sum(1) + x.max(axis=1), ((5, 6, 7),)),
    "mean of few": (lambda x: x.mean((0, 2)), ((2, 9, 3),)),
    "softmax": (lambda x: ek.softmax(x * 0.5, -1), ((8, 33),)),
    "softmax of columns": (lambda x: ek.softmax(x, 0), ((33, 8),)),
    "long softmax": (lambda x: ek.softmax(x, -1), ((2, 3000),)),
    "norm": (lambda x, g: normalized(x) * g, ((10, 24), (24,))),
    "norm of columns": (lambda x: normalized(x, 0), ((24, 10),)),
    "running": (lambda x: ek.cumsum(ek.sin(x), 1), ((4, 30),)),
    "running down": (lambda x: ek.cumsum(x, 0) * x, ((30, 4),)),
    "running product": (lambda x: ek.cumprod(x * 0.5, -1), ((3, 9),)),
    "greatest": (lambda x: (x.max(axis=1), ek.argmax(x, 1)), ((7, 20),)),
    "greatest of all": (lambda x: x - x.max(), ((7, 20),)),
    "sorted": (lambda x: ek.sort(x, 1)[0][:, :2], ((3, 40),)),
    "order": (lambda x: ek.topk(x, 3)[0].sum(), ((5, 30),)),
    "places": (lambda x: ek.argsort(x, -1), ((4, 9),)),
    "slices": (lambda x: x[1:] * x[:-1] + x[::-1][1:], ((9, 5),)),
    "steps": (lambda x: x[:, ::2] - x[:, 1::2], ((5, 8),)),
    "joined": (lambda x, y: ek.concatenate((x, ek.sin(y), x), 0) * 2, ((4, 5), (3, 5))),
    "joined along rows": (
        lambda x, c, s: ek.concatenate((x[:, :16] * c - x[:, 16:] * s, x[:, :16] * s + x[:, 16:] * c), 1),
        ((40, 32), (40, 16), (40, 16)),
    ),
    "joined rows and sums": (lambda x, y: ek.softmax(ek.concatenate((x * 2, y), 1), 1), ((40, 30), (40, 9))),
    "a recurrent cell": (
        lambda xs, w, h: ek.scan(lambda h, x: (ek.tanh(x + h @ w.T) * ek.sigmoid(x), h), h, xs)[0],
        ((6, 8, 24), (24, 24), (8, 24)),
    ),
    "attention in a loop": (
        lambda x, w: ek.fori_loop(0, 3, lambda k, x: ek.relu(ek.attention(x, x, x, causal=True) @ w), x),
        ((1, 2, 8, 16), (16, 16)),
    ),
    "stacked": (lambda x, y: ek.stack((x, y, x + y), 1).sum(1), ((4, 5), (4, 5))),
    "padded": (lambda x: ek.pad(x * 2, ((1, 2), (0, 1))) + 1, ((4, 5),)),
    "rolled": (lambda x: ek.roll(x, 2, 0) + ek.flip(x, (1,)), ((6, 4),)),
    "tiled": (lambda x: ek.tile(x, (2, 3)).sum(0), ((3, 4),)),
    "repeated": (lambda x: ek.repeat(x, 3, 0) * 2, ((4, 3),)),
    "reshaped": (lambda x: ek.sin(x).reshape(6, 4).T.reshape(-1) * 2, ((4, 6),)),
    "triangle": (lambda x: ek.tril(x) @ x, ((6, 6),)),
    "diagonal": (lambda x: ek.diagonal(x @ x) * 2, ((6, 6),)),
    "taken": (lambda x, i: ek.take(x, i, 0) * 2, ((10, 4), (WHOLE, (7,)))),
    "gathered": (lambda x, i: ek.take_along(x, i, 1), ((5, 6), (WHOLE, (5, 2)))),
    "added at": (lambda x, i, y: ek.index_add(x, 0, i, y), ((10, 4), (WHOLE, (7,)), (7, 4))),
    "embedded": (lambda e, i: ek.embedding(e, i).sum(1), ((10, 4), (WHOLE, (3, 5)))),
    "one hot": (lambda i: ek.one_hot(i, 5).sum(0), ((WHOLE, (7,)),)),
    "chosen": (lambda x: ek.where(x > 1, x, -x) * ek.sign(x), ((6, 7),)),
    "clipped": (lambda x: ek.clip(x, -1.0, 1.0) + ek.relu(x), ((6, 7),)),
    "product": (lambda x, w: x @ w, ((33, 65), (65, 40))),
    "large product": (lambda x, w: ek.relu(x @ w + 1), ((130, 70), (70, 150))),
    "half product": (lambda x, w: x @ w, ((HALF, (64, 64)), (HALF, (64, 48)))),
    "product of turned": (lambda x, w: x.T @ w.T, ((40, 20), (30, 40))),
    "batched product": (lambda x, w: x @ w, ((3, 8, 10), (3, 10, 6))),
    "vector product": (lambda x, w: x @ w, ((50, 60), (60,))),
    "three products": (lambda a, b, c: a @ b @ c, ((4, 50), (50, 60), (60, 2))),
    "scaled product": (lambda x, d, w: (x * d) @ w, ((9, 8), (8,), (8, 7))),
    "outer": (lambda x, y: x[:, None] * y, ((9,), (8,))),
    "einsum": (lambda x, y: ek.einsum("abc,cbd->ad", x, y), ((3, 4, 5), (5, 4, 2))),
    "perceptron": (perceptron, ((16, 12), (12, 20), (20,), (20, 5))),
    "attention": (attention, ((2, 9, 8), (2, 9, 8), (2, 9, 8))),
    "recurrent": (recurrent, ((6, 4), (4, 4))),
    "loss": (lambda x, i: ek.cross_entropy(x, i), ((8, 3), (WHOLE, (8,)))),
    "convolved": (lambda x, w: ek.relu(ek.conv2d(x, w)), ((2, 3, 8, 8), (4, 3, 3, 3))),
    "strided": (lambda x, w: ek.conv2d(x, w, stride=2, padding=1), ((1, 2, 9, 9), (4, 2, 3, 3))),
    "grouped": (lambda x, w: ek.conv2d(x, w, groups=2), ((1, 4, 6, 6), (4, 2, 3, 3))),
    "line": (lambda x, w: ek.conv1d(x, w, padding=1), ((2, 3, 20), (5, 3, 3))),
    "solid": (lambda x, w: ek.conv3d(x, w), ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2))),
    "residual": (block, ((1, 4, 6, 6), (4, 4, 3, 3), (4, 1, 1))),
    "pooled": (lambda x: ek.max_pool2d(x, 2), ((1, 2, 8, 8),)),
    "averaged": (lambda x: ek.avg_pool2d(x, 3, 2, 1), ((1, 2, 9, 9),)),
    "gate": (lambda x, y: ek.sigmoid(x) * ek.tanh(y) + ek.silu(x), ((9, 9), (9, 9))),
    "gelu": (lambda x: ek.gelu(x) * 2, ((40, 30),)),
    "variance": (lambda x: (ek.var(x, 1), ek.std(x, 0)), ((9, 12),)),
    "log of sums": (lambda x: ek.logsumexp(x, 1), ((9, 40),)),
    "casts": (lambda x: (x.astype(ek.float16) * 2).astype(ek.float32) + x, ((6, 7),)),
    "integers": (lambda i: (i * 3 + 1) // 2 % 5, ((WHOLE, (40,)),)),
    "complex": (lambda z: (z * z.conj()).sum(0) * (1 + 2j), ((COMPLEX, (8, 6)),)),
    "spectrum": (lambda x: ek.real(ek.ifft(ek.fft(x) * 2)), ((4, 8),)),
    "spectra": (lambda z: ek.fft2(z) * z, ((COMPLEX, (4, 8)),)),
    "filter": (lambda x, w: ek.irfft(ek.rfft(x) * ek.rfft(w)), ((4, 8), (8,))),
    "affine": (lambda x, w, b: ek.sigmoid(x @ w + b), ((6, 5), (5, 4), (4,))),
    "affine twice": (lambda x, w, b: (lambda y: (ek.sigmoid(y), ek.tanh(y) / y))(x @ w + b), ((6, 5), (5, 4), (4,))),
    "attention by columns": (lambda q, k, v: ek.softmax(q @ k.swapaxes(1, 2), 1) @ v, ((2, 5, 4),) * 3),
    "scaled image": (
        lambda x, w, m, s: ek.relu((ek.conv2d(x, w) - m) / s), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1), (3, 1, 1)),
    ),
    "units": (lambda x, y: x.reshape(1, 4, 1, 5).sum(0) + y[None, :, None], ((4, 5), (4,))),
    "unit rows": (lambda x: (x - x.mean(1, keepdims=True)) * x[:, :1], ((6, 1),)),
    "joined parts": (lambda x, y: ek.concatenate((x[:, :2], y[:, 1:], x), 1).sum(0), ((5, 4), (5, 3))),
    "short rows": (lambda x: ek.softmax(x, -1) * x.sum(-1, keepdims=True), ((300, 3),)),
    "sorted both": (lambda x: (lambda v, i: (v, i, v[:, :1]))(*ek.sort(x, 1)), ((3, 60),)),
    "joined times": (lambda x, y, z: ek.concatenate((x, y), 0) * z @ z.T, ((4, 5), (3, 5), (7, 5))),
    "growing": (lambda x, u, v: (s := x @ x.T, (s @ u).sum() + (s @ v).sum(), s.sum()), ((6, 5), (6, 4), (6, 90))),
    "gate twice": (lambda x, w: (lambda y: (y * ek.sigmoid(y), ek.sigmoid(y)))(x @ w), ((6, 5), (5, 4))),
    "bias first": (lambda x, w, b: ek.relu(b + ek.conv2d(x, w)), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1))),
    "two images": (lambda x, w, v: ek.relu(ek.conv2d(x, w) + ek.conv2d(x, v)), ((1, 2, 6, 6),) + ((3, 2, 3, 3),) * 2),
    "divided": (lambda x, w, b: b / (ek.conv2d(x, w) + 3), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1))),
    "changed late": (lambda x, i, y: (x.index_add(0, i, y), x.sum(0)), ((10, 4), (WHOLE, (7,)), (7, 4))),
    "periods": (lambda x, y: ek.softmax((x.reshape(4, 6, 8) + y).reshape(4, 48), -1), ((4, 48), (6, 1))),
    "columns and rows": (lambda x, r, c: ((x - r) * c).sum(1) / r[:, 0], ((20, 30), (20, 1), (30,))),
    "unit axes": (lambda x: (x.sum((1, 2)) * 2, x.mean((0, 1))), ((6, 1, 5),)),
    "moved twice": (lambda x: (lambda y: y[1:] + y[:-1] + y[::-1][1:])(ek.exp(ek.sin(x))), ((9, 5),)),
    "complex of floats": (lambda x: (x.astype(ek.complex64) @ ek.complex(x, x).T).sum(0), ((4, 4),)),
    "magnitudes": (lambda z: abs(z @ z), ((COMPLEX, (4, 4)),)),
    "zeros": (lambda x: x * 0 + x.sum() * 1 + (x + 0) ** 1, ((4, 5),)),
    "same twice": (lambda x: (ek.sin(x) + ek.sin(x)) @ ek.sin(x).T, ((4, 5),)),
    "solved": (lambda a, b: ek.solve(a @ a.T * 4, b), ((4, 4), (4, 2))),
    "branch": (lambda x: ek.cond(x.sum() > 0, lambda y: y * 2, lambda y: ek.sin(y), x), ((5, 6),)),
    "rounds": (lambda x: ek.fori_loop(0, 4, lambda k, y: ek.tanh(y) + k, x), ((5, 6),)),
    "until": (lambda x: ek.while_loop(lambda s: s.sum() < 99, lambda s: s * 2 + 1, x), ((5, 6),)),
    "each": (lambda x, w: ek.vmap(lambda row: ek.softmax(row @ w, -1))(x), ((7, 5), (5, 4))),
    "shared": (lambda x: (lambda y: (y.sum(1), y @ y.T, y * 2))(ek.sin(x)), ((12, 10),)),
    "many results": (lambda x: [x * k + k for k in range(6)], ((5, 4),)),
    "many inputs": (lambda *xs: sum(ek.sin(x) for x in xs), ((6,),) * 9),
    "many sums": (lambda *xs: sum((x * k).sum() for k, x in enumerate(xs)), ((6, 5),) * 5),
    "step of a rule": (lambda w, g, m: ((v := m * 0.9 + g), w - 0.1 * v), ((30, 20), (30, 20), (30, 20))),
    "adam": (adam, ((30, 20),) * 4),
    "of one": (lambda x, y: x.sum() * y + x[0, 0], ((1, 1), (1, 5))),
    "of none": (lambda x: x.sum(1) + 1, ((3, 0),)),
}  # fmt: skip

OTHERWISE = {  # machines of some of those above
    **dict.fromkeys(
        ("sorted", "order", "places", "spectrum", "spectra", "filter", "sorted both", "solved"),
        (*EVERYWHERE, "small cores"),
    ),
    **dict.fromkeys(
        (
            "two images",
            "strided",
            "scaled image",
            "divided",
            "bias first",
            "line",
            "solid",
            "three products",
            "growing",
        ),
        ("cpu", "small blocks"),
    ),
}
FURTHER: dict[str, Case] = {
    "signs": Case(ways.signs, ((3, 4), (3, 4)), CPU, False),
    "powers": Case(ways.powers, ((3, 4), ("float16", (3, 4))), CPU, False),
    "extremes": Case(ways.extremes, ((3, 4), (3, 4), (WHOLE, (3, 4))), CPU, False),
    "nothing left": Case(ways.nothing_left, ((3, 4), (WHOLE, (3, 4)), (TRUTH, (3, 4))), CPU, False),
    "of one operand": Case(
        ways.of_one_operand, ((3, 4), (WHOLE, (3, 4)), ("uint8", (3, 4)), (COMPLEX, (3, 4))), CPU, False,
    ),
    "logic": Case(ways.logic, ((3, 4), (3, 4), (WHOLE, (3, 4)), (WHOLE, (3, 4))), CPU, False),
    "choices": Case(ways.choices, ((3, 4), (3, 4), (WHOLE, (3, 4))), CPU, False),
    "dtypes between": Case(ways.dtypes_between, ((WHOLE, (3, 4)), (3, 4), (TRUTH, (3, 4))), CPU, False),
    "moved": Case(ways.moved, ((3, 4, 5), (4, 5)), CPU, False),
    "reduced": Case(ways.reduced, ((3, 4, 5), (4, 5), (WHOLE, (3, 4))), CORES + SMALL + ALONE, False),
    "cuts": Case(lambda x: (ek.sin(x[:2]), x[2:5] * 3, x[6:] ** 2, x[7:8]), ((9, 4),), CPU),
    "halves": Case(ways.halves, ((HALF, (40, 70)),), CORES + SMALL + ALONE, False),
    "large": Case(ways.large, ((1, 40000), (COMPLEX, (3000,)), (WHOLE, (1, 40000))), CORES + ALONE, False),
    "diagonals": Case(lambda v, x: (ek.diag(v) @ x, x.T @ ek.diag(v), ek.diagonal(x @ x.T)), ((6,), (6, 8)), CPU),
    "long terms": Case(lambda x, y: (x @ y, y.T @ x.T, (x * 2) @ (y + 1)), ((4, 8192), (8192, 6)), CPU + SMALL, False),
    "narrow chain": Case(
        lambda a, b, c: (a @ b @ c, a @ (b @ c), c.T @ (a @ b).T), ((64, 3), (3, 64), (64, 2)), CPU, False,
    ),
    "fragments of attention": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, causal=True), ((HALF, (1, 2, 40, 16)),) * 3, BLOCKS,
    ),
    "wide heads": Case(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v), (
        (HALF, (1, 2, 70, 128)), (HALF, (1, 1, 48, 128)), (HALF, (1, 1, 48, 128))), SMALL),
    "wide gradients": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v), ((HALF, (1, 2, 40, 128)),) * 3, SMALL,
    ),
    "seen parts": Case(ways.seen_parts, ((HALF, (2, 33, 3, 2, 24)),), SMALL),
    "heads": Case(ways.heads, ((2, 9, 8),) * 3, CPU + ALONE),
    "causal": Case(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, causal=True), ((2, 2, 9, 8),) * 3, CPU),
    "fragments of images": Case(
        lambda x, w: ek.conv2d(x, w, padding=1), ((HALF, (2, 16, 7, 6)), (HALF, (24, 16, 3, 3))), SMALL,
    ),
    "fragments of lines": Case(
        lambda x, w: ek.conv1d(x, w, stride=2, padding=2, dilation=2), ((HALF, (2, 22, 30)), (HALF, (16, 22, 5))),
        SMALL,
    ),
    "fragments of groups": Case(
        lambda x, w: ek.conv2d(x, w, groups=2), ((HALF, (1, 32, 6, 5)), (HALF, (34, 16, 2, 3))), SMALL,
    ),
    "half products": Case(
        lambda x, w, b: (ek.relu(x @ w + b), x.T @ (x * 2)), ((HALF, (48, 40)), (HALF, (40, 33)), (HALF, (33,))),
        SMALL, False,
    ),
    "columns as fragments": Case(lambda x, w: (x @ w, x.T @ x), ((48, 40), (40, 36)), ("high",), False),
    "pooled apart": Case(
        lambda x, y: (ek.max_pool2d(x, (2, 3)), ek.max_pool1d(y, 3, 2, 1)), ((1, 2, 9, 7), (2, 20)), CPU + SMALL,
    ),
    "pooled with gaps": Case(lambda x: ek.max_pool2d(x, 5), ((1, 2, 15, 11),), CPU + SMALL),
    "running beside": Case(lambda x: (ek.cumsum(x, 0), ek.cumprod(x, 1), ek.cummax(x, 2)[0]), ((3, 4, 300),), CPU),
    "running extremes": Case(
        lambda x, i: (ek.cummax(x, 1)[0], ek.cummin(i, 1)[0], *ek.cummin(x, 1)), ((4, 9), (WHOLE, (4, 9))), CORES,
        False,
    ),
    "another's extremes": Case(
        lambda x, y: (ek.take_along(x, ek.cummax(y, 1)[1], 1), ek.take_along(x, ek.cummin(x, 1)[1], 1)),
        ((4, 9), (4, 9)), CORES + SMALL, False,
    ),
    "taken in batches": Case(
        lambda x, i: (ek.vmap(lambda y, k: ek.take(y, k, 0))(x, i), ek.vmap(lambda y, k: y.at[k].add(2.0))(x, i)),
        ((3, 5, 4), (WHOLE, (3, 2))), CPU + SMALL, False,
    ),
    "elementary": Case(
        lambda x: [getattr(ek, name)(x) for name in ELEMENTARY.split()], ((4, 3),), CUT, False,
    ),
    "many batches": Case(
        lambda x, w: (x @ w, x[:, :, :, ::2] @ w[:, :, :, 1:], x.sum(0) @ w[0]),
        ((2, 3, 2, 2, 5, 6), (2, 3, 2, 2, 6, 4)), CPU, False,
    ),
    "many batches of halves": Case(
        lambda x, w: (x @ w, x[0] @ w[0], x[:1] @ w[:1]), ((HALF, (2, 2, 2, 2, 24, 32)), (HALF, (2, 2, 2, 2, 32, 16))),
        ARRAYS, False,
    ),
    "transforms of nothing": Case(
        lambda z, x: (ek.fft(z[:0]), ek.ifft(z[:, :0].sum(1)[None]), ek.rfft(x[:0]), ek.fft(x[:, :1])),
        ((COMPLEX, (4, 8)), (4, 8)), CPU + SMALL, False,
    ),
    "places of extremes": Case(
        lambda x: (ek.argmax(x, 1, keepdims=True), ek.argmin(x), ek.argmax(x, 0), ek.argmin(x[:, :7], 1)),
        ((3, 600),), CORES + SMALL, False,
    ),
    "beginnings": Case(
        lambda x: (x[:, :40].sum(1), x[:, :40].max(axis=1), x[:5].sum(0), x[:, :1].sum(1)), ((6, 64),), CPU + CUT,
        False,
    ),
    "short integers": Case(
        lambda i: (i.max(axis=1), i.min(axis=0), (i * 3).max(), i.sum(1)), (("int16", (6, 90)),), CPU + CUT, False,
    ),
    "factored in batches": Case(
        lambda x, b: (ek.solve(x, b), ek.solve(x.swapaxes(1, 2), b), ek.solve(x * 2, b[:1])),
        ((3, 4, 4), (3, 4, 2)), CPU + SMALL, False,
    ),
    "exchanged in batches": Case(
        lambda x: (*ek.lu(x), *ek.lu_factor(x)), ((2, 3, 5, 4),), CPU + SMALL, False,
    ),
    "distances": Case(
        lambda a, b: (((a[:, None] - b) ** 2).sum(-1), abs(a[:, None] - b).max(axis=-1)), ((64, 8), (64, 8)), CPU,
    ),
    "strips": Case(lambda x: (x.T + 1, x.reshape(2, 35, 40).permute(1, 2, 0) * 2), ((70, 40),), CORES, False),
    "few long rows": Case(lambda x, y: ek.sin(x) * y, ((2, 20000), (20000,)), CORES, False),
    "interleaved": Case(lambda x, y: ek.stack((x, y, x * 2), -1), ((5, 6), (5, 6)), CORES + SMALL + ALONE),
    "parts of rows": Case(
        lambda x: (x.sum((1, 2)), ek.softmax(x.reshape(2, 600), -1), (x * 2).sum(2)), ((2, 30, 20),), CUT,
    ),
    "parts of columns": Case(
        lambda x: (x.sum(0), (x - x.mean(0)).sum((0, 1)), x.max(axis=(0, 2))), ((50, 7, 12),), CUT,
    ),
    "sums of halves": Case(lambda x: (x.sum(0), x.sum(1), (x * x).mean()), ((HALF, (50, 70)),), CUT),
    "taken rows": Case(
        lambda x, i: (ek.take(x, i, 0), ek.take(x, i % 5, 1), x.index_add(0, i, x[:7])), ((10, 20), (WHOLE, (7,))),
    ),
    "taken along": Case(
        lambda x, i: (ek.take_along(x, i, 1) * 2, ek.take_along(x, i[:, :1], 1)), ((50, 20), (WHOLE, (50, 3))),
        CPU + SMALL,
    ),
    "updates": Case(ways.updates, ((10, 20), (3, 20), (WHOLE, (2,))), CPU + SMALL),
    "in rounds": Case(ways.in_rounds, ((10, 4), (7, 4), (WHOLE, (7,))), CPU, False),
    "cells": Case(ways.cells, ((6, 2, 4), (5, 5), (4, 5), (2, 5)), CPU + SMALL),
    "loops": Case(ways.loops, ((6, 4), (4, 4)), CPU),
    "branches": Case(ways.branches, ((5, 6), (5, 6)), CPU, False),
    "linear algebra": Case(ways.linear_algebra, ((2, 3, 3), (2, 3, 2)), CPU + SMALL, False),
    "triangles": Case(ways.triangles, ((3, 3), (3, 2)), SMALL, False),
    "empty algebra": Case(ways.empty_algebra, ((0, 0), (0, 2)), SMALL, False),
    "loop of systems": Case(
        lambda a, b: ek.scan(lambda s, r: (ek.solve(a, s) + r, None), b[0], b)[0], ((3, 3), (4, 3, 2)), CPU + SMALL,
        False,
    ),
    "values and vectors": Case(ways.spectra_of, ((4, 4), (4, 4)), CPU, False),
    "systems": Case(ways.systems, ((4, 4), (4, 2)), CPU, False),
    "ranks": Case(ways.ranks, ((8, 30), (WHOLE, (4, 6))), CPU, False),
    "searched": Case(ways.searched, ((30,), (4, 300)), CPU, False),
    "signals": Case(ways.signals, ((4, 70), (COMPLEX, (4, 70))), CPU, False),
    "signals side by side": Case(
        lambda z: (ek.fft(z, axis=0), ek.fft(z[:, :1], axis=0)), ((COMPLEX, (1200, 9)),), CORES, False,
    ),
    "long way": Case(ways.long_way, ((6, 20),), CPU + SMALL, False),
    "bent": Case(ways.bent, ((24,),), CPU, False),
    "complex comparisons": Case(
        lambda z, w: (z == w, z != 1, ek.where(z == w, z, w), z / w, ek.prod(z, 0), -z, z.mean(0), ek.exp(z)),
        ((COMPLEX, (3, 4)), (COMPLEX, (3, 4))), CORES, False,
    ),
    "long sums of tiles": Case(lambda x, w: x @ w, ((8, 3000), (3000, 8)), BLOCKS, False),
    "huge": Case(
        lambda x, y: (ek.sin(x.T) * 2, x[1:, ::2] + 1, (x * y).sum(1), (x + 1).sum(0)),
        ((1 << 17, (1 << 15) + 1), ((1 << 15) + 1,)), (*CORES, "blocks"), False,
    ),
    "symmetric matrices": Case(numerics.symmetric, ((2, 4, 4), (5, 5), (2, 0, 0)), SMALL, False),
    "singular values": Case(numerics.singular, ((2, 4, 4), (5, 3), (0, 3)), SMALL, False),
    "inverses": Case(numerics.inverses, ((2, 3, 2),), SMALL, False),
    "factored": Case(numerics.factored, ((2, 3, 3), (2, 0, 0)), CPU + SMALL, False),
    "exponentials": Case(numerics.exponentials, ((2, 3, 3), (COMPLEX, (2, 2)), (0, 0)), CPU + SMALL, False),
    "random bits": Case(numerics.draws, (("uint32", (2,)), (40, 50)), CPU + SMALL, False),
    "spectra on blocks": Case(
        numerics.spectra, ((2, 70), (COMPLEX, (2, 70)), (WHOLE, (2, 6))), SMALL, False,
    ),
    "spectra across": Case(numerics.spectra_across, ((COMPLEX, (3, 12, 5)), (COMPLEX, (6000,))), CPU + BLOCKS, False),
    "spectra in rounds": Case(numerics.spectra_in_rounds, ((2, 12), (COMPLEX, (2, 12))), CPU + SMALL, False),
    "told batch": Case(
        lambda x, w, b: ek.log_softmax(ek.relu(x @ w + b), -1).mean(0), ((7, 12), (12, 5), (5,)), CORES, told={0: 0},
    ),
    "told rows": Case(ways.told_rows, ((40, 30),), CORES, told={0: 0}),
    "told columns": Case(ways.told_rows, ((30, 40),), CORES, told={0: 1}),
    "told middle": Case(ways.told_middle, ((3, 50, 4), (50,)), CORES, told={0: 1, 1: 0}),
    "told moved": Case(ways.told_moved, ((9, 4), (9, 4)), CORES, told={0: 0, 1: 0}),
    "told long": Case(lambda x, y: ((x * y).sum(), x.max(), y.argmax()), ((70000,),) * 2, CPU, told={0: 0, 1: 0}),
    "told taken": Case(
        lambda e, i, x: (ek.embedding(e, i), ek.take(x, i % 3, 1), ek.cross_entropy(x, i)),
        ((10, 4), (WHOLE, (6,)), (6, 5)), CORES, told={1: 0, 2: 0},
    ),
    "told images": Case(
        lambda x, w: ek.avg_pool2d(ek.relu(ek.conv2d(x, w, padding=1)), 2), ((4, 3, 6, 6), (4, 3, 3, 3)), CORES,
        told={0: 0},
    ),
    "told attention": Case(attention, ((2, 9, 8),) * 3, CPU, told=dict.fromkeys(range(3), 1)),
    "told causal": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, causal=True), ((2, 2, 9, 8),) * 3, CPU,
        told=dict.fromkeys(range(3), 2),
    ),
    "told norm": Case(lambda x, g: normalized(x) * g, ((10, 24), (24,)), CORES, told={0: 0}),
    "told halves": Case(ways.told_rows, ((HALF, (40, 30)),), CORES, False, told={0: 0}),
    "known loops": Case(ways.known_loops, ((6, 4), (4, 4), (WHOLE, (4,))), CPU, False),
    "behind loops": Case(ways.behind_loops, ((12, 4), (4, 4)), CPU + SMALL),
    "turned reductions": Case(ways.turned_reductions, ((60, 8), (50, 8), (70, 40, 8)), CPU, False),
    "columns beside": Case(ways.columns_beside, ((2, 5, 600),), CORES, False),
    "masked": Case(ways.masked, ((2, 9, 8),) * 3 + ((TRUTH, (9, 9)),), CPU),
    "masked halves": Case(ways.masked, ((HALF, (2, 9, 16)),) * 3 + ((TRUTH, (9, 9)),), SMALL),
    "behind images": Case(ways.images, ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1), (3, 1, 1)), CPU + SMALL, False),
    "pooled over": Case(ways.pooled_over, ((1, 2, 9, 8),), CPU + SMALL),
    "chains": Case(ways.chains, ((6, 5), (5, 7), (7, 2), (WHOLE, (5,))), CPU + SMALL, False),
    "halves in order": Case(ways.halves_in_order, (("float16", (3, 20)),), CPU + SMALL, False),
    "few of many": Case(ways.few_of_many, ((4, 200), (WHOLE, (90, 2))), CORES + SMALL, False),
    "complex ways": Case(ways.complex_ways, ((COMPLEX, (3, 4)), (3, 4), (TRUTH, (3, 4))), CPU + SMALL, False),
    "long halves": Case(
        lambda x, w: (x @ w, x[:, :4000] @ w[:4000]), ((HALF, (16, 4096)), (HALF, (4096, 16))), BLOCKS, False,
    ),
    "half images": Case(
        lambda x, w, v: (ek.conv2d(x, w), ek.conv2d(x, v, stride=2)),
        ((HALF, (2, 16, 6, 5)), (HALF, (16, 16, 1, 1)), (HALF, (8, 16, 3, 2))), SMALL,
    ),
    "rows on blocks": Case(
        lambda x: (ek.softmax(x, -1), x.sum(1), x.sum(0), x.max(), ek.logsumexp(x, 0)), ((3, 5000),), BLOCKS,
    ),
    "crowded": Case(ways.crowded, ((6, 5),) * 30, CPU + SMALL),
    "of many numbers": Case(ways.of_many_numbers, ((6, 5),), CPU + SMALL, False),
    "one after another": Case(ways.one_after_another, ((6, 70),), CPU + SMALL, False),
    "stretched": Case(ways.stretched, ((6, 5), (6, 3)), CORES + SMALL, False),
    "seen batches": Case(ways.seen_batches, ((2, 3, 4, 5), (2, 3, 5, 6)), CPU + SMALL),
    "deep loops": Case(ways.deep_loops, ((6, 4),), CPU),
    "of orders": Case(ways.of_orders, ((4, 40), (4, 300)), CPU + SMALL, False),
    "lengths of signals": Case(ways.lengths_of_signals, ((COMPLEX, (9, 1100)),), CPU, False),
    "bounds": Case(ways.bounds, ((3, 4), (3, 4)), CPU, False),
    "of nothing": Case(ways.of_nothing, ((0, 4), (WHOLE, (2,))), CPU + SMALL),
    "sliced apart": Case(ways.sliced_apart, ((6, 8), (6, 8)), CPU),
    "few terms": Case(ways.few_terms, ((2, 9, 3, 2), (WHOLE, (2, 5, 3)), (4, 2, 3, 3, 5)), CORES + SMALL),
    "large attention": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v),
        ((HALF, (1, 1, 1 << 21, 128)), (HALF, (1, 1, 64, 128)), (HALF, (1, 1, 64, 128))), ("blocks",), False,
    ),
    "less attention": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v),
        ((HALF, (1, 1, (1 << 21) - 1, 128)), (HALF, (1, 1, 64, 128)), (HALF, (1, 1, 64, 128))), ("blocks",), False,
    ),
    "complex matrices": Case(edges.complex_matrices, ((COMPLEX, (2, 3, 3)), (COMPLEX, (2, 3, 2))), SMALL, False),
    "pivots": Case(edges.pivots, ((2, 3, 3), (2, 3, 2), ("int32", (2, 3))), CPU + SMALL, False),
    "complex parts": Case(
        edges.complex_parts, ((COMPLEX, (4, 6)), (WHOLE, (2,)), (COMPLEX, (3, 4, 2))), CPU + SMALL, False,
    ),
    "sparse": Case(edges.sparse, ((5,), (WHOLE, (5,)), (WHOLE, (4,)), (4, 2)), CPU + SMALL),
    "tallied": Case(
        edges.tallied,
        ((5,), (WHOLE, (20003,)), (20003,), (WHOLE, (6,)), ("float16", (5,))), CPU, False,
    ),
    "taken alone": Case(
        edges.taken_alone,
        ((50,), (WHOLE, (9000,)), (WHOLE, (3, 70)), (3, 40), ("uint8", (100,))), CPU, False,
    ),
    "odd lengths": Case(edges.odd_lengths, ((2, 1009), (53, 2, 19)), (*CUT, "blocks", "single lanes"), False),
    "odd rows": Case(lambda x: (x.sum(), x.max(), (x * x).sum(1)), ((1, 10007),), (*BLOCKS, "single lanes"), False),
    "beside each other": Case(edges.beside_each_other, ((9, 4),), CPU, False),
    "behind one image": Case(
        edges.behind_one_image, ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1), (3, 1, 1)), CPU + SMALL, False,
    ),
    "to the power": Case(edges.to_the_power, ((3, 4), (COMPLEX, (3, 4)), (WHOLE, (3, 4))), CPU, False),
    "scaled keys": Case(edges.scaled_keys, ((2, 9, 8),) * 3, CPU, False),
    "nearly attention": Case(edges.nearly_attention, ((2, 9, 8),) * 3 + ((TRUTH, (9, 9)),), CPU, False),
    "fragments in batches": Case(
        edges.fragments_in_batches, ((HALF, (3, 16, 24)), (HALF, (3, 24, 16))), SMALL, False,
    ),
    "later parts": Case(edges.later_parts, ((HALF, (2, 4, 20, 16)),), SMALL),
    "little of orders": Case(edges.little_of_orders, ((4, 90),), CPU + SMALL, False),
    "handed on": Case(edges.handed_on, ((4, 4), (4, 4), (WHOLE, (4,))), CPU, False),
    "gates": Case(edges.gates, ((6, 5), (5, 4), (4,), (6, 4)), CPU + SMALL, False),
    "halves of spectra": Case(edges.halves_of_spectra, ((2, 64),), CPU + SMALL, False),
    "in periods": Case(edges.in_periods, ((4, 192), (64,), (3, 1)), CORES + SMALL, False),
    "endless": Case(lambda x: (x.max(), x.sum()), (((1 << 33) + 1,),), ALONE + CPU, False),
    "endless rows": Case(lambda x, i: (ek.take(x, i, 0),), (((1 << 32) + 1,), (WHOLE, (70,))), CPU + SMALL, False),
    "gradients by hand": Case(edges.gradients_by_hand, ((HALF, (2, 32, 16)),) * 4, SMALL, False),
    "other products": Case(
        edges.other_products,
        (("float64", (32, 48)), ("float64", (48, 32)), ("int32", (32, 32)), ("float16", (32, 32))), SMALL, False,
    ),
    "larger loss": Case(lambda x, i: ek.cross_entropy(x, i), ((100, 3), (WHOLE, (100,))), CPU + SMALL),
    "columns left over": Case(lambda x: (ek.cumsum(x, 0), ek.cumprod(x[:, :300], 0)), ((4, 601),), CPU, False),
    "long signals": Case(
        edges.long_signals, ((COMPLEX, (2, 6000)), (COMPLEX, (4096, 3)), (2, 64)),
        (*CPU, *BLOCKS, "single lanes"), False,
    ),
    "set in rows": Case(edges.set_in_rows, ((80, 5), (WHOLE, (80,)), (80,)), CPU + SMALL, False),
    "many updates": Case(
        edges.many_updates, ((5, 4), (5,), (WHOLE, (70,)), (70, 4), (HALF, (5, 40))), CPU + SMALL, False,
    ),
    "values before vectors": Case(edges.values_before_vectors, ((4, 4), (4, 4)), CPU + SMALL, False),
    "diagonals alone": Case(
        edges.diagonals_alone, ((5, 7), (WHOLE, (5, 7)), (COMPLEX, (5, 7)), (HALF, (5, 7))), CPU, False,
    ),
    "picked in rows": Case(edges.picked_in_rows, ((80, 3), (80, 32), (WHOLE, (80,))), (*CORES, *SMALL), False),
    "places in planes": Case(edges.places_in_planes, ((4, 1, 5), (1, 1, 3)), CPU + SMALL, False),
    "taken at computed": Case(
        edges.taken_at_computed, ((50, 64), (WHOLE, (20,)), (WHOLE, (1,))), (*CORES, *SMALL), False,
    ),
    "scaled distances": Case(edges.scaled_distances, ((300, 2), (30, 2), (2,), (1,)), CPU, False),
    "complex arithmetic": Case(edges.complex_arithmetic, ((COMPLEX, (3, 4)),) * 2, CPU, False),
    "divided by": Case(ways.divided_by, ((WHOLE, (40,)), (40,), ("uint8", (40,))), CPU, False),
    "told short rows": Case(lambda x: ek.softmax(x, -1), ((3000, 6),), CPU, False, told={0: 0}),
    "left over": Case(
        lambda x, y: (x.sum(0), x.sum(1), x.sum(), y.sum(0), y.max(1)), ((31, 5000), (5000, 31)), CPU + BLOCKS, False,
    ),
    "short rows of two": Case(
        lambda z, x: (ek.exp(z).sum(-1), ek.exp(x).max(axis=1), ek.max(ek.exp(x * 2), axis=1, keepdims=True)),
        ((COMPLEX, (1500, 6)), (1500, 6)), CPU, False,
    ),
    "two taps": Case(
        lambda x, w: (ek.conv2d(x, w), ek.conv2d(x, w[..., :1])), ((2, 8, 40, 40), (64, 8, 1, 2)), BLOCKS, False,
    ),
    "long signals alone": Case(lambda z: ek.fft(z), ((COMPLEX, (8, 1024)),), BLOCKS, False),
    "gaps within": Case(
        lambda x: (y := ek.pad(x, 0, interior=(1, 0)))[:3, 1:] * 2 + y[2:, 1:], ((3, 4),), CPU, False,
    ),
    "followed": Case(whole.followed, ((HALF, (32, 16)), (HALF, (16, 24)), (HALF, (24,)), (HALF, (32, 24))), ARRAYS),
    "followed apart": Case(
        whole.followed_apart, ((HALF, (32, 16)), (HALF, (16, 24)), (HALF, (24,)), (HALF, (32, 24))), ARRAYS, False,
    ),
    "products beside": Case(
        whole.products_beside, ((HALF, (3, 32, 16)), (HALF, (16, 24)), (HALF, (16, 20))), ARRAYS,
    ),
    "products of singles": Case(
        whole.products_beside, ((3, 32, 16), (16, 24), (16, 20)), ("small whole", "whole high"), False,
    ),
    "large singles": Case(
        lambda x, w, v: (x @ w, x @ v, x[:, :63] @ w[:63], x[:63] @ w, x @ w[:, :60]),
        ((704, 704), (704, 704), (704, 64)), ("whole",), False,
    ),
    "read again": Case(whole.read_again, ((HALF, (32, 24)), (HALF, (24, 24)), (HALF, (24,))), ARRAYS),
    "computed again": Case(
        whole.computed_again, ((HALF, (32, 24)), (HALF, (24, 24)), (HALF, (24,)), (HALF, (32, 24))), ARRAYS, False,
    ),
    "integers multiplied": Case(
        lambda x, y: (
            _of_integers(x, y), _of_integers(x[:0], y), _of_integers(x, y[:, ::-1]), _of_integers(x[:, 1:], y[:, 1:]),
        ), (("int8", (8, 64)), ("int8", (24, 64))), ARRAYS, False,
    ),
    "whole images": Case(
        whole.images, ((HALF, (2, 80, 8, 6)), (HALF, (80, 80, 3, 3)), (HALF, (80, 80, 1, 1))), ARRAYS,
    ),
    "whole lines": Case(
        lambda x, w: (ek.conv1d(x, w, padding=2, stride=2), ek.conv1d(x, w[:, :, :3], dilation=3)),
        ((HALF, (2, 22, 80)), (HALF, (16, 22, 5))), ("whole",),
    ),
    "wide images": Case(
        lambda x, w: ek.conv2d(x, w, padding=1), ((HALF, (3, 136, 33, 30)), (HALF, (64, 136, 3, 3))), ("whole",),
    ),
    "colours": Case(
        whole.of_few_channels, ((HALF, (2, 3, 12, 11)), (HALF, (16, 3, 5, 3)), (HALF, (24, 3, 3, 4))), ARRAYS,
    ),
    "left to lanes": Case(
        whole.left_to_lanes,
        ((HALF, (2, 32, 10, 9)), (HALF, (32, 16, 2, 2)), (HALF, (24, 5, 2, 2)), (HALF, (1, 16, 3, 4, 5)),
         (HALF, (16, 16, 2, 2, 2))), ARRAYS, False,
    ),
    "integers as arrays": Case(
        arrays.of_integers, (("int32", (4, 3)), ("uint8", (4, 3)), (TRUTH, (4, 3))), CPU, False,
    ),
    "floats as arrays": Case(arrays.of_floats, (("float64", (4, 3)), (HALF, (4, 3))), CPU, False),
    "places as arrays": Case(
        arrays.of_places, ((4, 3), (WHOLE, (2, 3)), ("uint64", (2,)), (TRUTH, (4, 3))), CPU, False,
    ),
    "attended": Case(
        whole.attended, ((HALF, (2, 4, 9, 16)),) * 3 + ((TRUTH, (9, 9)), (HALF, (4, 9, 9))), ARRAYS,
    ),
    "attended alone": Case(
        lambda q, k, v, m: (
            ek.scaled_dot_product_attention(q, k, v), ek.scaled_dot_product_attention(q * 2, k, v, causal=True),
            ek.softmax(ek.where(m, -ek.inf, (q * 3 @ k.T).astype(ek.float32) * 0.25), -1).astype(q.dtype) @ v,
            ek.softmax(ek.where(m, (q * 5 @ k.T).astype(ek.float32) * 0.25, -ek.inf), -1).astype(q.dtype) @ v,
        ),
        ((HALF, (9, 16)),) * 3 + ((TRUTH, (9, 9)),), (*ARRAYS, "blocks"), False,
    ),
    "attended in groups": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, causal=True),
        ((HALF, (2, 4, 9, 32)), (HALF, (2, 2, 9, 32)), (HALF, (2, 2, 9, 32))), ARRAYS,
    ),
    "attended by one": Case(
        lambda q, k, v: ek.scaled_dot_product_attention(q, k, v),
        ((HALF, (2, 8, 1, 64)), (HALF, (2, 2, 300, 64)), (HALF, (2, 2, 300, 64))), ("whole",), False,
    ),
}  # fmt: skip
FUNCTIONS = FURTHER | {
    name: Case(function, inputs, OTHERWISE.get(name, EVERYWHERE), name not in WITHOUT)
    for name, (function, inputs) in ORDINARY.items()
}
FUNCTIONS |= {
    name: Case(nearly.function, nearly.inputs, CPU + SMALL + ARRAYS, nearly.derivative)
    for name, nearly in planned_nearly.drawn()
}
FUNCTIONS |= {name: Case(*drawn, (*CUT, *ARRAYS), derivative=False) for name, drawn in planned_random.drawn()}


def total(function: Function) -> Function:
    """What its derivative is taken of: not so simple that nothing is left to compute."""

    def of(*xs: Any) -> Any:
        found = function(*xs)
        parts = found if isinstance(found, tuple | list) else (found,)
        return sum(ek.sin(y.astype(ek.float32)).sum() for y in parts if y.dtype.is_float)

    return of


# Those whose texts for machines that take whole graphs are kept, too: three for each line that writes them, if any.
AS_GRAPHS = frozenset({
    "floats as arrays", "integers as arrays", "places as arrays",
    "branches", "chains", "chosen", "columns left over", "complex comparisons", "complex parts", "complex ways",
    "convolved", "diagonal", "diagonals", "distances", "dtypes between", "empty algebra", "exponentials",
    "factored", "followed", "followed apart", "gathered", "gelu", "grouped", "half products", "halves",
    "halves in order", "handed on", "in rounds", "integers", "inverses", "large", "larger loss", "left over",
    "left to lanes", "line", "logic", "long signals alone", "magnitudes", "many updates", "nothing left", "of none",
    "of nothing", "of one operand", "of orders", "one hot", "picked in rows", "places", "places in planes",
    "pooled apart", "pooled over", "powers", "products beside", "random bits", "ranks", "reduced", "rolled",
    "rounds", "searched", "softmax", "solid", "sorted", "spectra", "spectra across", "spectra in rounds",
    "spectrum", "symmetric matrices", "taken in batches", "elementary", "tallied", "to the power",
})  # fmt: skip
