"""What Scheme does with layers in ways of its own: cells over sequences, gradients of layers.

Comes in: what `lib/eshkol/learning/layers.esk` gives, converted. Goes out: modules and tensors. Sequences
are batch × time × features, as the rows of attention have them, or time × features.
"""

from __future__ import annotations

from typing import Any

from eshkol import nn
from eshkol.bindings.forms import wanted as tensor_wanted
from eshkol.bindings.layers import in_words
from eshkol.bindings.models import layer_first
from eshkol.bindings.rows import data, shown
from eshkol.bindings.values import Values
from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

# ---- layers ----------------------------------------------------------------------------------------------------------


def dropout(p: float = 0.5, training: bool = True) -> nn.Module:
    """The layer that sets elements to 0 while it trains."""
    return nn.Dropout(p).train(training)


def positions(max_len: int, embed_dim: int, dropout: float = 0.0, learned: bool = False) -> nn.Module:
    """The layer that adds positions to a sequence."""
    return nn.PositionalEncoding(embed_dim, max_len, dropout, learned)


def resnet_block(channels: int, out_channels: int | None = None, stride: int = 1) -> nn.Module:
    """Two convolutions with a path around them."""
    return nn.BasicBlock(channels, out_channels or channels, stride)


def inception_module(
    in_channels: int = 192, ch1x1: int = 64, ch3x3red: int = 96, ch3x3: int = 128, ch5x5red: int = 16, ch5x5: int = 32,
    pool_proj: int = 32,
) -> nn.Module:  # fmt: skip
    """Convolutions of several sizes side by side; the sizes are those of GoogLeNet's first unless given."""
    return nn.InceptionModule(in_channels, ch1x1, ch3x3red, ch3x3, ch5x5red, ch5x5, pool_proj)


# ---- sequences -------------------------------------------------------------------------------------------------------


def _sequence(given: Any) -> Tensor:
    """The inputs of all times; a list of tensors is one for each time."""
    if isinstance(given, list) and given and all(isinstance(x, Tensor) for x in given):
        stacked: Tensor = ek.stack(given, -2)
        return stacked
    return tensor_wanted(given, 2)


def _state(given: Any) -> Any:
    return None if given is False or given is None else data(given) if isinstance(given, list) else given


def _along(cell: Any, inputs: Any, states: Any) -> tuple[Any, Any]:
    """What a cell gives at all times of a sequence, and its states at the end."""
    x = _sequence(inputs)
    if x.ndim not in (2, 3):
        raise ShapeError(f"a sequence is batch × time × features or time × features, not {list(x.shape)}")
    outputs, end = cell.along(ek.swapaxes(x, 0, 1) if x.ndim == 3 else x, states)
    return ek.swapaxes(outputs, 0, 1) if x.ndim == 3 else outputs, end


def rnn_forward(*args: Any) -> Values:
    """A cell, or a recurrent layer, over a sequence: outputs and the last state."""
    cell, inputs, hidden = _parts(args, 1, "(rnn-forward cell inputs [hidden-state])")
    state = _state(hidden[0]) if hidden else None
    try:
        if isinstance(cell, nn.RNNCell | nn.GRUCell):
            return Values(_along(cell, inputs, state))
        if isinstance(cell, nn.RNN | nn.GRU):
            return Values(cell(_sequence(inputs), state))
    except EshkolError as error:
        raise in_words(error) from None
    raise _no_cell(cell, "rnn-cell and gru-cell")


def lstm_forward(*args: Any) -> Values:
    """An LSTM over a sequence: outputs, the last cell state and the last hidden state."""
    cell, inputs, given = _parts(args, 2, "(lstm-forward cell inputs [cell-state hidden-state])")
    found = [_state(x) for x in given]
    if len(found) == 1 or (len(found) == 2 and (found[0] is None) != (found[1] is None)):
        raise TensorError("an LSTM has two states, the cell state and the hidden state: give both, or none")
    states = None if not found or found[0] is None else (found[1], found[0])
    try:
        if isinstance(cell, nn.LSTMCell):
            outputs, (hidden, memory) = _along(cell, inputs, states)
            return Values((outputs, memory, hidden))
        if isinstance(cell, nn.LSTM):
            outputs, (hidden, memory) = cell(_sequence(inputs), states)
            return Values((outputs, memory, hidden))
    except EshkolError as error:
        raise in_words(error) from None
    raise _no_cell(cell, "lstm-cell")


def _parts(args: tuple[Any, ...], states: int, use: str) -> tuple[Any, Any, tuple[Any, ...]]:
    cell, *rest = layer_first(*args)
    if not 1 <= len(rest) <= 1 + states:
        raise TensorError(f"{len(args)} arguments; it is called with {use}")
    return cell, rest[0], tuple(rest[1:])


def _no_cell(given: Any, makers: str) -> DTypeError:
    what = type(given).__name__ if isinstance(given, nn.Module) else shown(given)
    return DTypeError(f"a cell is wanted, and not {what}", hint=f"{makers} make such cells")


# ---- gradients of layers ---------------------------------------------------------------------------------------------


def conv2d_backward(
    grad_output: Any, input: Any, weights: Any, stride: Any = None, padding: Any = None, dilation: Any = 1,
    groups: Any = 1,
) -> Values:  # fmt: skip
    """The gradients of input, weights and bias of a convolution, given that of its result.

    A stride and a padding that are not given are those that lead to the shape of the result, if only one pair does.
    """
    cotangent, x, w = tensor_wanted(grad_output), tensor_wanted(input, 2), tensor_wanted(weights, 3)
    if stride is None and padding is None and type(dilation) is int:
        stride, padding = _steps_between(x.shape, w.shape, cotangent.shape, dilation)
    sizes = [tuple(n) if isinstance(n, list) else n for n in (stride or 1, padding or 0, dilation)]

    def convolved(x: Any, w: Any, b: Any) -> Any:
        return ek.conv2d(x, w, b, stride=sizes[0], padding=sizes[1], dilation=sizes[2], groups=groups)

    try:
        out, pulled = ek.vjp(convolved, x, w, ek.zeros((w.shape[0],), dtype=w.dtype))
        if cotangent.shape != out.shape:
            raise ShapeError(
                f"the gradient of the result has shape {list(cotangent.shape)}, and the result {list(out.shape)}"
            )
        return Values(pulled(cotangent))
    except EshkolError as error:
        raise in_words(error) from None


def _steps_between(given: Any, kernel: Any, wanted: Any, dilation: int) -> tuple[int, int]:
    """The stride and the padding of a convolution that makes one shape of another; 1 and 0 where they do."""
    reach = [dilation * (n - 1) + 1 for n in kernel[-2:]]

    def fits(stride: int, padding: int) -> bool:
        return all(
            n + 2 * padding >= k and (n + 2 * padding - k) // stride + 1 == m
            for n, k, m in zip(given[-2:], reach, wanted[-2:], strict=True)
        )

    if min(len(given), len(kernel), len(wanted)) < 2 or fits(1, 0):
        return 1, 0
    found = [(s, p) for s in range(1, max(given[-2:]) + 1) for p in range(max(reach)) if fits(s, p)]
    if len(found) > 1:
        pairs = " or ".join(f"{s} and {p}" for s, p in found[:4])
        raise ShapeError(
            f"several convolutions lead to a result of shape {list(wanted)}: with stride and padding {pairs}",
            hint="give them behind the weights",
        )
    return found[0] if found else (1, 0)


def maxpool2d_backward(grad_output: Any, input: Any, indices: Any, stride: Any = None, padding: Any = 0) -> Any:
    """The gradient of the input of max-pool2d, given that of its result: by indices, or by the window's size."""
    cotangent, x = tensor_wanted(grad_output), tensor_wanted(input, 2)
    try:
        if isinstance(indices, Tensor):
            return _spread(cotangent, x, indices)
        kernel = tuple(indices) if isinstance(indices, list) else indices
        step = tuple(stride) if isinstance(stride, list) else None if stride is False else stride
        pad = tuple(padding) if isinstance(padding, list) else padding
        _, pulled = ek.vjp(lambda t: ek.max_pool2d(t, kernel, step, pad), x)
        (found,) = pulled(cotangent)
        return found
    except EshkolError as error:
        raise in_words(error) from None


def _spread(cotangent: Tensor, x: Tensor, indices: Tensor) -> Any:
    """Each element of the gradient at the place that its index says, in the map of its channel; doubles add up."""
    if cotangent.shape != indices.shape:
        raise ShapeError(
            f"the gradient of the result has shape {list(cotangent.shape)}, and the indices {list(indices.shape)}"
        )
    planes = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    flat = (*x.shape[:-2], -1)
    places, given = ek.reshape(indices, flat), ek.reshape(cotangent, flat)
    return ek.reshape(ek.scatter_add(ek.zeros(planes, dtype=cotangent.dtype), -1, places, given), x.shape)
