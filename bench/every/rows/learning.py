"""Rows of learning: norms, convolution, pooling, attention, losses, updates, recurrences, small networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import eshkol as ek
from bench.every.row import Code, Row, both, integers, normal, truths
from bench.every.row import ways as _ways
from bench.peers import functional as _f
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    for part in (_norms, _convolution, _pooling, _attention, _losses, _updates, _recurrent, _small):
        yield from part()


# --- softmax and norms ----------------------------------------------------------------------------


def _norms() -> Iterator[Row]:
    family = "softmax and norms"

    def softmax(name: str, shape: tuple[int, ...], axis: int, dtype: str = "f32") -> Row:
        return Row(
            name,
            family,
            dtype,
            int(np.prod(shape)),
            (normal(*shape),),
            _ways(
                lambda x: ek.softmax(x, axis), lambda x: _torch().softmax(x, axis), lambda x: _jax().nn.softmax(x, axis)
            ),
        )

    yield softmax("softmax of 100", (100,), 0)
    yield from both(softmax("softmax of rows of 1000", (1000, 1000), 1))
    yield softmax("softmax along axis 0", (1000, 1000), 0)
    yield softmax("softmax of rows of 1000, bf16", (1000, 1000), 1, "bf16")
    yield softmax("softmax of rows of 10", (100_000, 10), 1)
    yield from both(Row("logsumexp of rows of 1000", family, "f32", MILLION, (normal(1000, 1000),), _ways(
        lambda x: ek.logsumexp(x, 1), lambda x: _torch().logsumexp(x, 1),
        lambda x: _jax().scipy.special.logsumexp(x, 1))))  # fmt: skip
    yield Row("log(sum(exp)) of rows of 1000", family, "f32", MILLION, (normal(1000, 1000),), _ways(
        lambda x: ek.log(ek.sum(ek.exp(x), 1)), lambda x: _torch().log(_torch().sum(_torch().exp(x), 1)),
        lambda x: _jax().numpy.log(_jax().numpy.sum(_jax().numpy.exp(x), 1))))  # fmt: skip

    def over(x: Any, axes: Any) -> Any:
        mean = x.mean(axes, keepdims=True)
        return (x - mean) / _jax().numpy.sqrt(x.var(axes, keepdims=True) + 1e-5)

    yield from both(Row("layer norm of rows of 512", family, "f32", 2048 * 512,
                        (normal(2048, 512), normal(512), normal(512)), _ways(
        lambda x, w, b: ek.layer_norm(x, (512,), w, b), lambda x, w, b: _f().layer_norm(x, (512,), w, b),
        lambda x, w, b: over(x, -1) * w + b)))  # fmt: skip
    yield Row("RMS norm of rows of 512", family, "f32", 2048 * 512, (normal(2048, 512), normal(512)), _ways(
        lambda x, w: ek.rms_norm(x, (512,), w, 1e-5), lambda x, w: _f().rms_norm(x, (512,), w, 1e-5),
        lambda x, w: x * _jax().lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w))  # fmt: skip
    channels = (normal(32, 64, 28, 28), normal(64), normal(64))
    yield from both(Row("batch norm in training", family, "f32", 32 * 64 * 784, channels, _ways(
        lambda x, w, b: ek.batch_norm(x, None, None, w, b, True),
        lambda x, w, b: _f().batch_norm(x, None, None, w, b, True),
        lambda x, w, b: over(x, (0, 2, 3)) * w[:, None, None] + b[:, None, None])))  # fmt: skip
    yield Row(
        "group norm, 8 groups",
        family,
        "f32",
        32 * 64 * 784,
        channels,
        _ways(
            lambda x, w, b: ek.group_norm(x, 8, w, b),
            lambda x, w, b: _f().group_norm(x, 8, w, b),
            lambda x, w, b: over(x.reshape(32, 8, -1), -1).reshape(x.shape) * w[:, None, None] + b[:, None, None],
        ),
    )
    yield Row("normalize rows of 64", family, "f32", 100_000 * 64, (normal(100_000, 64),), _ways(
        lambda x: ek.normalize(x), lambda x: _f().normalize(x),
        lambda x: x / _jax().numpy.maximum(_jax().numpy.linalg.norm(x, axis=1, keepdims=True), 1e-12)))  # fmt: skip


# --- convolution ----------------------------------------------------------------------------------


def _convolution() -> Iterator[Row]:
    family = "convolution"

    def conv(name: str, x: tuple[int, ...], w: tuple[int, ...], dtype: str = "f32", stride: int = 1, padding: int = 0,
             dilation: int = 1, groups: int = 1) -> Row:  # fmt: skip
        d = len(x) - 2
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        space = "HWD"[:d]

        def jax(x: Any, w: Any) -> Any:
            return _jax().lax.conv_general_dilated(
                x, w, (stride,) * d, ((padding, padding),) * d, None, (dilation,) * d,
                (f"NC{space}", f"OI{space}", f"NC{space}"), groups)  # fmt: skip

        return Row(name, family, dtype, int(np.prod(x)), (normal(*x), normal(*w)), _ways(
            lambda x, w: getattr(ek, f"conv{d}d")(x, w, **how), lambda x, w: getattr(_f(), f"conv{d}d")(x, w, **how),
            jax))  # fmt: skip

    yield from both(conv("conv1d of 9", (16, 32, 1000), (32, 32, 9), padding=4))
    yield from both(conv("conv2d 3 × 3", (8, 32, 56, 56), (64, 32, 3, 3), padding=1))
    yield conv("conv2d 3 × 3, stride 2", (8, 32, 56, 56), (64, 32, 3, 3), stride=2, padding=1)
    yield conv("conv2d 1 × 1", (8, 64, 56, 56), (64, 64, 1, 1))
    yield conv("conv2d 7 × 7 of 3 channels, stride 2", (4, 3, 112, 112), (64, 3, 7, 7), stride=2, padding=3)
    yield conv("conv2d of one image", (1, 16, 28, 28), (32, 16, 3, 3), padding=1)
    yield conv("conv2d, dilation 2", (8, 32, 56, 56), (32, 32, 3, 3), padding=2, dilation=2)
    yield from both(conv("conv2d, 4 groups", (8, 32, 56, 56), (64, 8, 3, 3), padding=1, groups=4))
    yield from both(conv("depthwise conv2d", (8, 64, 56, 56), (64, 1, 3, 3), padding=1, groups=64))
    yield conv("conv2d 3 × 3, f64", (4, 16, 28, 28), (32, 16, 3, 3), "f64", padding=1)
    yield conv("conv2d 3 × 3, bf16", (4, 32, 28, 28), (32, 32, 3, 3), "bf16", padding=1)
    yield from both(conv("conv3d 3 × 3 × 3", (2, 8, 16, 32, 32), (16, 8, 3, 3, 3), padding=1))

    def transposed(name: str, x: tuple[int, ...], w: tuple[int, ...], stride: int, padding: int) -> Row:
        d = len(x) - 2
        return Row(
            name,
            family,
            "f32",
            int(np.prod(x)),
            (normal(*x), normal(*w)),
            _ways(
                lambda x, w: getattr(ek, f"conv_transpose{d}d")(x, w, stride=stride, padding=padding),
                lambda x, w: getattr(_f(), f"conv_transpose{d}d")(x, w, stride=stride, padding=padding),
                lambda x, w: _jax().lax.conv_transpose(
                    x,
                    w,
                    (stride,) * d,
                    ((w.shape[2] - 1 - padding,) * 2,) * d,
                    dimension_numbers=(f"NC{'HW'[:d]}", f"OI{'HW'[:d]}", f"NC{'HW'[:d]}"),
                    transpose_kernel=True,
                ),
            ),
        )

    yield from both(transposed("transposed conv2d, stride 2", (8, 32, 28, 28), (32, 16, 4, 4), 2, 1))
    yield transposed("transposed conv1d, stride 4", (8, 32, 250), (32, 16, 8), 4, 2)


def _pooling() -> Iterator[Row]:
    family = "pooling"
    images = (32, 32, 56, 56)

    def reduced(kind: str, size: int, stride: int) -> Code:
        def jax(x: Any) -> Any:
            lax, window, steps = _jax().lax, (1, 1, size, size), (1, 1, stride, stride)
            if kind == "max":
                return lax.reduce_window(x, -np.inf, lax.max, window, steps, "VALID")
            return lax.reduce_window(x, 0.0, lax.add, window, steps, "VALID") / size**2

        return jax

    for name, kind, size, stride in (("max pool 2 × 2", "max", 2, 2), ("max pool 3 × 3, stride 2", "max", 3, 2),
                                     ("mean pool 2 × 2", "avg", 2, 2)):  # fmt: skip
        yield from both(
            Row(
                name,
                family,
                "f32",
                int(np.prod(images)),
                (normal(*images),),
                _ways(
                    lambda x, k=kind, a=size, b=stride: getattr(ek, f"{k}_pool2d")(x, a, b),
                    lambda x, k=kind, a=size, b=stride: getattr(_f(), f"{k}_pool2d")(x, a, b),
                    reduced(kind, size, stride),
                ),
            )
        )
    yield Row("adaptive mean pool to 7 × 7", family, "f32", int(np.prod(images)), (normal(*images),), _ways(
        lambda x: ek.adaptive_avg_pool2d(x, 7), lambda x: _f().adaptive_avg_pool2d(x, 7)))  # fmt: skip
    yield Row("max pool of sequences", family, "f32", 32 * 64 * 500, (normal(32, 64, 500),), _ways(
        lambda x: ek.max_pool1d(x, 2), lambda x: _f().max_pool1d(x, 2)))  # fmt: skip


# --- attention ------------------------------------------------------------------------------------


def _attention() -> Iterator[Row]:
    family = "attention"

    def of(name: str, shape: tuple[int, ...], causal: bool, dtype: str = "f32") -> Row:
        return Row(name, family, dtype, int(np.prod(shape)), (normal(*shape),) * 3, _ways(
            lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, is_causal=causal),
            lambda q, k, v: _f().scaled_dot_product_attention(q, k, v, is_causal=causal),
            lambda q, k, v: _jax().nn.dot_product_attention(
                *(x.transpose(0, 2, 1, 3) for x in (q, k, v)), is_causal=causal).transpose(0, 2, 1, 3)))  # fmt: skip

    yield of("attention of 16 positions", (1, 4, 16, 32), False)
    yield from both(of("attention of 256 positions", (4, 8, 256, 64), False))
    yield from both(of("causal attention of 512 positions", (2, 8, 512, 64), True))
    yield of("causal attention, bf16", (2, 4, 256, 64), True, "bf16")


# --- losses ---------------------------------------------------------------------------------------


def _losses() -> Iterator[Row]:
    family = "losses"
    x = normal(1000, 1000)
    pick = lambda z, i: _jax().numpy.take_along_axis(z, i[:, None], 1)
    yield from both(Row("cross entropy of 1000 classes", family, "f32", MILLION, (x, integers(1000, 1000)), _ways(
        lambda z, i: ek.cross_entropy(z, i), lambda z, i: _f().cross_entropy(z, i),
        lambda z, i: -pick(_jax().nn.log_softmax(z), i).mean())))  # fmt: skip
    yield Row("cross entropy of 10 classes", family, "f32", 1280, (normal(128, 10), integers(10, 128)), _ways(
        lambda z, i: ek.cross_entropy(z, i), lambda z, i: _f().cross_entropy(z, i),
        lambda z, i: -pick(_jax().nn.log_softmax(z), i).mean()))  # fmt: skip
    yield from both(
        Row(
            "mean squared error",
            family,
            "f32",
            MILLION,
            (x, x),
            _ways(lambda a, b: ek.mse_loss(a, b), lambda a, b: _f().mse_loss(a, b), lambda a, b: ((a - b) ** 2).mean()),
        )
    )
    yield Row("Huber loss", family, "f32", MILLION, (x, normal(1000, 1000)), _ways(
        lambda a, b: ek.huber_loss(a, b), lambda a, b: _f().huber_loss(a, b)))  # fmt: skip
    yield from both(Row("binary cross entropy with logits", family, "f32", MILLION, (x, truths(1000, 1000)), _ways(
        lambda z, t: ek.binary_cross_entropy_with_logits(z, t.to(ek.float32)),
        lambda z, t: _f().binary_cross_entropy_with_logits(z, t.float()),
        lambda z, t: (_jax().nn.softplus(z) - z * t).mean())))  # fmt: skip
    yield Row(
        "divergence of Kullback and Leibler",
        family,
        "f32",
        MILLION,
        (x, normal(1000, 1000)),
        _ways(
            lambda a, b: ek.kl_div(ek.log_softmax(a), ek.softmax(b), reduction="batchmean"),
            lambda a, b: _f().kl_div(_torch().log_softmax(a, -1), _torch().softmax(b, -1), reduction="batchmean"),
            lambda a, b: (_jax().nn.softmax(b) * (_jax().nn.log_softmax(b) - _jax().nn.log_softmax(a))).sum() / 1000,
        ),
    )


# --- updates --------------------------------------------------------------------------------------


def _updates() -> Iterator[Row]:
    """As functions: new values of parameters and state. `bench optimizers` has those that change them in place."""
    family = "optimizers"

    def adam(lib: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * (g * g)
        return p - 1e-3 * m / (lib.sqrt(v) + 1e-8), m, v

    def sgd(p: Any, g: Any, b: Any) -> Any:
        b = 0.9 * b + g
        return p - 0.01 * b, b

    for n in (10_000, MILLION):
        inputs = (normal(n), normal(n), normal(n), lambda rng, n=n: rng.random(n))
        yield Row(f"Adam, {n:,} numbers", family, "f32", n, inputs, _ways(
            lambda *s: adam(ek, *s), lambda *s: adam(_torch(), *s), lambda *s: adam(_jax().numpy, *s)))  # fmt: skip
    yield Row("SGD with momentum, 10⁶", family, "f32", MILLION, (normal(MILLION),) * 3, _ways(sgd, sgd, sgd))
    yield Row("clipping by the norm, 10⁶", family, "f32", MILLION, (normal(MILLION),), _ways(
        lambda g: g * ek.clip(1.0 / (ek.sqrt((g * g).sum()) + 1e-6), None, 1.0),
        lambda g: g * (1.0 / (_torch().sqrt((g * g).sum()) + 1e-6)).clip(None, 1.0),
        lambda g: g * _jax().numpy.clip(1.0 / (_jax().numpy.sqrt((g * g).sum()) + 1e-6), None, 1.0)))  # fmt: skip


# --- recurrent ------------------------------------------------------------------------------------


def _recurrent() -> Iterator[Row]:
    family = "recurrent"
    length, batch, width, hidden = 32, 16, 32, 64

    def scanned(cell: Code) -> Code:
        def jax(x: Any, *weights: Any) -> Any:
            zeros = _jax().numpy.zeros((x.shape[0], hidden), x.dtype)
            first = (zeros, zeros) if cell is _lstm_cell else zeros
            step = lambda state, one: cell(state, one, *weights)
            return _jax().lax.scan(step, first, x.transpose(1, 0, 2))[1].transpose(1, 0, 2)

        return jax

    def torch(kind: str) -> Code:
        def call(x: Any, *weights: Any) -> Any:
            zeros = x.new_zeros((1, x.shape[0], hidden))
            first = (zeros, zeros) if kind == "lstm" else zeros
            return getattr(_torch(), kind)(x, first, weights, True, 1, 0.0, False, False, True)[0]

        return call

    def ours(kind: str) -> Code:
        layer = getattr(ek.nn, kind.upper())(width, hidden, batch_first=True)
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        return lambda x, *w: ek.functional_call(layer, dict(zip(names, w, strict=True)), x)[0]

    for kind, gates, cell in (("lstm", 4, _lstm_cell), ("gru", 3, _gru_cell)):
        weights = [lambda rng, s=s: rng.standard_normal(s) / 8 for s in (
            (gates * hidden, width), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))]  # fmt: skip
        yield from both(Row(f"{kind.upper()} over {length} steps", family, "f32", batch * length * width,
                            (normal(batch, length, width), *weights),
                            _ways(ours(kind), torch(kind), scanned(cell))))  # fmt: skip


def _lstm_cell(state: Any, x: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
    nn, np_ = _jax().nn, _jax().numpy
    i, f, g, o = np_.split(x @ w.T + state[0] @ u.T + b + c, 4, -1)
    cell = nn.sigmoid(f) * state[1] + nn.sigmoid(i) * np_.tanh(g)
    new = nn.sigmoid(o) * np_.tanh(cell)
    return (new, cell), new


def _gru_cell(state: Any, x: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
    nn, np_ = _jax().nn, _jax().numpy
    (ra, za, na), (rb, zb, nb) = np_.split(x @ w.T + b, 3, -1), np_.split(state @ u.T + c, 3, -1)
    r, z = nn.sigmoid(ra + rb), nn.sigmoid(za + zb)
    new = (1 - z) * np_.tanh(na + r * nb) + z * state
    return new, new


# --- small networks on one sample -----------------------------------------------------------------


def _small() -> Iterator[Row]:
    family = "small networks"

    def dense(relu: Code, x: Any, *weights: Any) -> Any:
        for k, w in enumerate(weights):
            x = x @ w if k == len(weights) - 1 else relu(x @ w)
        return x

    for name, rows_of in (("MLP 64-128-10, one sample", 1), ("MLP 64-128-10, 64 samples", 64)):
        yield from both(
            Row(
                name,
                family,
                "f32",
                64 * 128,
                (normal(rows_of, 64), normal(64, 128), normal(128, 10)),
                _ways(
                    lambda *s: dense(ek.relu, *s),
                    lambda *s: dense(_torch().relu, *s),
                    lambda *s: dense(_jax().nn.relu, *s),
                ),
            )
        )

    def images(conv: Code, pool: Code, relu: Code, x: Any, a: Any, b: Any, w: Any) -> Any:
        x = pool(relu(conv(x, a)))
        return pool(relu(conv(x, b))).reshape(1, -1) @ w

    def jax_conv(x: Any, w: Any) -> Any:
        return _jax().lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)))

    def jax_pool(x: Any) -> Any:
        return _jax().lax.reduce_window(x, -np.inf, _jax().lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    yield Row(
        "CNN of 8 and 16 channels, one image",
        family,
        "f32",
        784 * 10,
        (normal(1, 1, 28, 28), normal(8, 1, 3, 3), normal(16, 8, 3, 3), normal(784, 10)),
        _ways(
            lambda *s: images(lambda x, w: ek.conv2d(x, w, padding=1), lambda x: ek.max_pool2d(x, 2), ek.relu, *s),
            lambda *s: images(
                lambda x, w: _f().conv2d(x, w, padding=1), lambda x: _f().max_pool2d(x, 2), _torch().relu, *s
            ),
            lambda *s: images(jax_conv, jax_pool, _jax().nn.relu, *s),
        ),
    )
