"""Workloads of single layers: softmax, layer norm, MLP block, attention, convolution, LSTM, embedding, cross entropy.

NumPy competes where its derivative is short enough that a person would write it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import eshkol as ek
from bench import libraries, peers
from bench.models import Code, attention_flops, self_attention
from bench.workloads.contest import (
    TORCH,
    Contestant,
    Workload,
    functions,
    pullbacks,
    torch_pullback,
)

ROWS, COLUMNS = 4096, 1024
BATCH, LENGTH, DIM, HEADS, WIDER = 8, 128, 256, 4, 4
TOKENS = BATCH * LENGTH
IMAGES, CHANNELS, SIZE = 16, 32, 32
STEPS, SEQUENCES, HIDDEN = 64, 32, 128
VOCABULARY, WIDTH, IDS = 50_000, 128, 4096
CLASSES, EXAMPLES = 50_000, 128


def _floats(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def _weights(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    return _floats(rng, inputs, outputs, scale=1 / math.sqrt(inputs))


def _each(function: Any) -> dict[str, Any]:
    """A function over the words of a library, for every library."""
    return {who: partial(function, words) for who, words in libraries.installed().items()}


# --- rows -----------------------------------------------------------------------------------------


def _softmax(rng: np.random.Generator) -> dict[str, Contestant]:
    softmax = lambda words, x: words.softmax(x)
    return functions((_floats(rng, ROWS, COLUMNS),), **_each(softmax), numpy=libraries.Numpy().softmax)


def _numpy_norm(primals: Any, cotangent: Any, constants: Any) -> Any:
    x, weight, bias = primals
    centred = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    normal = centred * scale
    inner = cotangent * weight
    slope = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
    return normal * weight + bias, (slope * scale, (cotangent * normal).sum(0), cotangent.sum(0))


def _layer_norm(rng: np.random.Generator) -> dict[str, Contestant]:
    primals = _floats(rng, ROWS, COLUMNS), _floats(rng, COLUMNS), _floats(rng, COLUMNS)
    norm = lambda words, x, weight, bias: words.layer_norm(x, weight, bias)
    return pullbacks(primals, _floats(rng, ROWS, COLUMNS), **_each(norm), numpy=_numpy_norm)


# --- blocks ---------------------------------------------------------------------------------------


def _mlp(words: Any, x: Any, up: Any, up_bias: Any, down: Any, down_bias: Any) -> Any:
    return words.linear(words.gelu(words.linear(x, up, up_bias)), down, down_bias)


def _numpy_mlp(primals: Any, cotangent: Any, constants: Any) -> Any:
    x, up, up_bias, down, down_bias = primals
    inner = x @ up + up_bias
    slope = np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))
    active = 0.5 * inner * (1 + slope)
    steep = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * inner * inner)
    back = cotangent @ down.T * (0.5 * (1 + slope) + 0.5 * inner * (1 - slope * slope) * steep)
    gradients = (back @ up.T, x.T @ back, back.sum(0), active.T @ cotangent, cotangent.sum(0))
    return active @ down + down_bias, gradients


def _mlp_block(rng: np.random.Generator) -> dict[str, Contestant]:
    wide = WIDER * DIM
    primals = (_floats(rng, TOKENS, DIM), _weights(rng, DIM, wide), _floats(rng, wide, scale=0.1),
               _weights(rng, wide, DIM), _floats(rng, DIM, scale=0.1))  # fmt: skip
    return pullbacks(primals, _floats(rng, TOKENS, DIM), **_each(_mlp), numpy=_numpy_mlp)


def _attention_inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return (_floats(rng, BATCH, LENGTH, DIM), _weights(rng, DIM, 3 * DIM), _floats(rng, 3 * DIM, scale=0.1),
            _weights(rng, DIM, DIM), _floats(rng, DIM, scale=0.1))  # fmt: skip


def _block(words: Any, *inputs: Any) -> Any:
    return self_attention(words, HEADS, *inputs)


def _attention_forward(rng: np.random.Generator) -> dict[str, Contestant]:
    return functions(_attention_inputs(rng), **_each(_block), numpy=partial(_block, libraries.Numpy()))


def _attention_backward(rng: np.random.Generator) -> dict[str, Contestant]:
    return pullbacks(_attention_inputs(rng), _floats(rng, BATCH, LENGTH, DIM), **_each(_block))


# --- convolution ----------------------------------------------------------------------------------


def _conv_inputs(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    kernel = _floats(rng, CHANNELS, CHANNELS, 3, 3, scale=1 / math.sqrt(9 * CHANNELS))
    return (
        _floats(rng, IMAGES, CHANNELS, SIZE, SIZE),
        kernel,
        1 + _floats(rng, CHANNELS, scale=0.1),
        _floats(rng, CHANNELS),
    )


def _conv(words: Any, x: Any, kernel: Any, weight: Any, bias: Any, *statistics: Any) -> Any:
    """By the statistics of the batch, or by given ones."""
    return words.relu(words.batch_norm(words.conv(x, kernel), weight, bias, *statistics))


def _conv_forward(rng: np.random.Generator) -> dict[str, Contestant]:
    statistics = _floats(rng, CHANNELS, scale=0.1), rng.uniform(0.5, 1.5, CHANNELS).astype(np.float32)
    return functions((*_conv_inputs(rng), *statistics), **_each(_conv), numpy=partial(_conv, libraries.Numpy()))


def _conv_backward(rng: np.random.Generator) -> dict[str, Contestant]:
    cotangent = _floats(rng, IMAGES, CHANNELS, SIZE, SIZE)
    return pullbacks(_conv_inputs(rng), cotangent, **_each(_conv))


CONV_FLOPS = 2.0 * IMAGES * SIZE * SIZE * CHANNELS * CHANNELS * 9


# --- LSTM -----------------------------------------------------------------------------------------


def _cell(sigmoid: Any, tanh: Any, cell: Any, gates: Any) -> Any:
    """Gates stand in PyTorch's order: input, forget, cell, output."""
    enter, forget, new, leave = (gates[:, n * HIDDEN : (n + 1) * HIDDEN] for n in range(4))
    cell = sigmoid(forget) * cell + sigmoid(enter) * tanh(new)
    return sigmoid(leave) * tanh(cell), cell


def _eshkol_lstm(x: Any, inward: Any, recurrent: Any, bias: Any) -> Any:
    def step(carry: Any, projected: Any) -> Any:
        hidden, cell = _cell(ek.sigmoid, ek.tanh, carry[1], projected + carry[0] @ recurrent)
        return (hidden, cell), hidden

    zeros = ek.zeros((SEQUENCES, HIDDEN))
    return ek.scan(step, (zeros, zeros), x @ inward + bias)[1]


def _jax_lstm(x: Any, inward: Any, recurrent: Any, bias: Any) -> Any:
    jax = peers.jax()

    def step(carry: Any, projected: Any) -> Any:
        hidden, cell = _cell(jax.nn.sigmoid, jax.numpy.tanh, carry[1], projected + carry[0] @ recurrent)
        return (hidden, cell), hidden

    zeros = jax.numpy.zeros((SEQUENCES, HIDDEN))
    return jax.lax.scan(step, (zeros, zeros), x @ inward + bias)[1]


def _torch_loop(torch: Any, x: Any, inward: Any, recurrent: Any, bias: Any) -> Any:
    hidden = cell = torch.zeros(SEQUENCES, HIDDEN)
    found = []
    for projected in (x @ inward + bias).unbind():
        hidden, cell = _cell(torch.sigmoid, torch.tanh, cell, projected + hidden @ recurrent)
        found.append(hidden)
    return torch.stack(found)


def _torch_lstm(torch: Any, x: Any, inward: Any, recurrent: Any, bias: Any) -> Any:
    """PyTorch's own layer; what nn.LSTM calls."""
    zeros = torch.zeros(1, SEQUENCES, HIDDEN)
    flat = [inward.T.contiguous(), recurrent.T.contiguous(), bias, torch.zeros_like(bias)]
    return torch._VF.lstm(x, (zeros, zeros), flat, True, 1, 0.0, True, False, False)[0]


def _numpy_lstm(primals: Any, cotangent: Any, constants: Any) -> Any:
    x, inward, recurrent, bias = primals
    sigmoid: Code = lambda a: 1 / (1 + np.exp(-a))
    projected = x @ inward + bias
    hidden = cell = np.zeros((SEQUENCES, HIDDEN), np.float32)
    past, outputs = [], np.empty_like(cotangent)
    for t in range(STEPS):
        gates = projected[t] + hidden @ recurrent
        enter, forget, new, leave = np.split(gates, 4, 1)
        enter, forget, new, leave = sigmoid(enter), sigmoid(forget), np.tanh(new), sigmoid(leave)
        after = forget * cell + enter * new
        past.append((hidden, cell, enter, forget, new, leave, np.tanh(after)))
        cell = after
        hidden = outputs[t] = leave * past[-1][-1]
    slopes, back_hidden, back_cell = np.empty_like(projected), np.zeros_like(hidden), np.zeros_like(cell)
    back_recurrent = np.zeros_like(recurrent)
    for t in reversed(range(STEPS)):
        hidden, cell, enter, forget, new, leave, bent = past[t]
        back_hidden = back_hidden + cotangent[t]
        back_cell = back_cell + back_hidden * leave * (1 - bent * bent)
        back_gates = (back_cell * new * enter * (1 - enter), back_cell * cell * forget * (1 - forget),
                      back_cell * enter * (1 - new * new), back_hidden * bent * leave * (1 - leave))  # fmt: skip
        slopes[t] = np.concatenate(back_gates, 1)
        back_recurrent += hidden.T @ slopes[t]
        back_hidden, back_cell = slopes[t] @ recurrent.T, back_cell * forget
    flat = slopes.reshape(-1, 4 * HIDDEN)
    return outputs, (slopes @ inward.T, x.reshape(-1, HIDDEN).T @ flat, back_recurrent, flat.sum(0))


def _lstm(rng: np.random.Generator) -> dict[str, Contestant]:
    primals = (_floats(rng, STEPS, SEQUENCES, HIDDEN), _weights(rng, HIDDEN, 4 * HIDDEN),
               _weights(rng, HIDDEN, 4 * HIDDEN), _floats(rng, 4 * HIDDEN, scale=0.1))  # fmt: skip
    cotangent = _floats(rng, STEPS, SEQUENCES, HIDDEN)
    loop, layer = (partial(function, peers.torch()) for function in (_torch_loop, _torch_lstm))
    found = pullbacks(primals, cotangent, eshkol=_eshkol_lstm, numpy=_numpy_lstm, torch=loop, jax=_jax_lstm)
    if peers.torch():
        found[f"{TORCH}, nn.LSTM"] = torch_pullback(layer, primals, cotangent, ())
    return found


# --- embedding and cross entropy ------------------------------------------------------------------


def _numpy_embedding(primals: Any, cotangent: Any, constants: Any) -> Any:
    (table,), (ids,) = primals, constants
    gradient = np.zeros_like(table)
    np.add.at(gradient, ids, cotangent)
    return table[ids], (gradient,)


def _embedding(rng: np.random.Generator) -> dict[str, Contestant]:
    ids = rng.integers(0, VOCABULARY, IDS)
    look = lambda words, table, ids: words.embedding(table, ids)
    table, cotangent = _floats(rng, VOCABULARY, WIDTH), _floats(rng, IDS, WIDTH)
    return pullbacks((table,), cotangent, (ids,), **_each(look), numpy=_numpy_embedding)


def _numpy_cross_entropy(primals: Any, cotangent: Any, constants: Any) -> Any:
    (logits,), (targets,) = primals, constants
    rows = np.arange(len(targets))
    shifted = logits - logits.max(1, keepdims=True)
    weights = np.exp(shifted)
    sums = weights.sum(1, keepdims=True)
    loss = (np.log(sums[:, 0]) - shifted[rows, targets]).mean()
    weights /= sums
    weights[rows, targets] -= 1
    return loss, (weights * (cotangent / len(targets)),)


def _cross_entropy(rng: np.random.Generator) -> dict[str, Contestant]:
    logits, targets = _floats(rng, EXAMPLES, CLASSES), rng.integers(0, CLASSES, EXAMPLES)
    entropy = lambda words, logits, targets: words.cross_entropy(logits, targets)
    return pullbacks((logits,), np.ones((), np.float32), (targets,), **_each(entropy), numpy=_numpy_cross_entropy)


_projections, _products = attention_flops(BATCH, LENGTH, DIM)
_shape = f"{BATCH}×{LENGTH}×{DIM}"
_images = f"{IMAGES}×{CHANNELS}×{SIZE}×{SIZE}"
WORKLOADS = (
    Workload("softmax of rows, 4096×1024", _softmax, bytes=8.0 * ROWS * COLUMNS),
    Workload("layer norm and gradients, 4096×1024", _layer_norm, bytes=16.0 * ROWS * COLUMNS),
    Workload(f"GELU MLP block and gradients, {_shape}", _mlp_block, flops=12.0 * TOKENS * DIM * DIM * WIDER),
    Workload(f"attention block, {_shape}", _attention_forward, flops=_projections + _products),
    Workload(
        f"attention block and gradients, {_shape}", _attention_backward, flops=3 * _projections + 3.5 * _products
    ),
    Workload(f"conv-bn-relu, {_images}", _conv_forward, flops=CONV_FLOPS),
    Workload(f"conv-bn-relu and gradients, {_images}", _conv_backward, flops=3 * CONV_FLOPS),
    Workload(
        f"LSTM and gradients, {STEPS}×{SEQUENCES}×{HIDDEN}", _lstm,
        flops=3 * 2.0 * STEPS * SEQUENCES * 2 * HIDDEN * 4 * HIDDEN,
    ),
    Workload("embedding and gradient, 50,000×128", _embedding, bytes=4.0 * WIDTH * (VOCABULARY + 3 * IDS)),
    Workload("cross entropy and gradient, 128×50,000", _cross_entropy, bytes=8.0 * EXAMPLES * CLASSES),
)  # fmt: skip
