"""Rows for networks that Scheme calls in a way of its own: attention, its projections, linear maps and losses.

Comes in: the arguments as Scheme gives them (`rows.py`). Goes out: what the row gives. The order of arguments and what
they mean is the language's: a mask's 1 hides, weights of projections stand at the right of what they multiply, and the
focal loss is of probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.bindings.forms import wanted
from eshkol.bindings.rows import Function, called, operand, shown
from eshkol.errors import DTypeError, TensorError
from eshkol.ops import TABLE
from eshkol.tensors.value import Tensor

HIDING = -1e4  # a mask of floats that are added hides where it is as low as this

# ---- attention -------------------------------------------------------------------------------------------------------


def _hidden(mask: Any, bias: Any) -> Any:
    """A mask and numbers to be added to the scores, as the row takes them: True where to attend, or what is added."""
    mask, bias = _given(mask), _given(bias)
    if mask is None:
        return bias
    if not isinstance(mask, Tensor):
        raise DTypeError(f"a mask is a tensor whose 1 hides, not {shown(mask)}")
    _refuse_weights(mask)
    attends = called(TABLE["equal"], (mask, 0), {})
    return attends if bias is None else called(TABLE["where"], (attends, bias, float("-inf")), {})


def _given(argument: Any) -> Any:
    return None if argument is None or argument is False else operand(argument)


def _refuse_weights(mask: Tensor) -> None:
    """Floats that are meant to be added to the scores are no mask; where they are known, that is seen."""
    values = mask._node.known() if mask.dtype.is_float else None
    if values is None:
        return
    found = np.asarray(values)
    strange = found[(found != 0) & (found != 1) & ~(found <= HIDING)]
    if strange.size:
        raise TensorError(
            f"a mask's 1 hides and its 0 does not, and here stands {strange.flat[0]:g}",
            hint="what is to be added to the scores is given by :bias",
        )


def _said(**numbers: Any) -> dict[str, Any]:
    """Arguments that were given."""
    return {name: number for name, number in numbers.items() if _given(number) is not None}


def attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: Any = False, scale: Any = None, *, bias: Any = None,
    window: Any = None,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale) · value over … × length × dim; scale is 1/√dim unless said. It takes no dropout.

    A mask hides the keys at which it is 1, of whatever dtype; `:bias` is added to the scores. `:causal #t`: query t
    attends to keys 0 … t; `:window n`: to keys fewer than n places away. Axes in front broadcast; a multiple of query
    heads (third axis from the end) shares each key and value head. A query that may attend to nothing gets zeros.
    """
    how = {"mask": _hidden(mask, bias), "causal": causal, **_said(scale=scale, window=window)}
    return called(TABLE["scaled_dot_product_attention"], (query, key, value), how)


def attention_weights(
    query: Any, key: Any, mask: Any = None, causal: Any = False, scale: Any = None, *, bias: Any = None,
    window: Any = None,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale): how much each query attends to each key; arguments as of attention."""
    how = {"mask": _hidden(mask, bias), "causal": causal, **_said(scale=scale, window=window)}
    return called(TABLE["attention_weights"], (query, key), how)


def multi_head_attention(
    query: Any, key: Any, value: Any, num_heads: Any, query_weight: Any, key_weight: Any, value_weight: Any,
    out_weight: Any, mask: Any = None, causal: Any = False, *, query_bias: Any = None, key_bias: Any = None,
    value_bias: Any = None, out_bias: Any = None,
) -> Any:  # fmt: skip
    """Attention of heads between projections, (batch ×) length × embedding: query · query-weight, and so on.

    Weights are in × out (the weight of a linear layer is out × in: transpose it). A mask hides the keys at which it is
    1; it broadcasts to (batch ×) heads × queries × keys.
    """
    weights = [_turned(w) for w in (query_weight, key_weight, value_weight, out_weight)]
    biases = [_given(b) for b in (query_bias, key_bias, value_bias, out_bias)]
    how = {"mask": _hidden(mask, None), "causal": causal}
    return called(TABLE["multi_head_attention"], (query, key, value, num_heads, *weights, *biases), how)


def multi_head_self_attention(
    x: Any, num_heads: Any, query_weight: Any, key_weight: Any, value_weight: Any, out_weight: Any, mask: Any = None,
    causal: Any = False, *, query_bias: Any = None, key_bias: Any = None, value_bias: Any = None, out_bias: Any = None,
) -> Any:  # fmt: skip
    """multi-head-attention of a sequence to itself."""
    return multi_head_attention(
        x, x, x, num_heads, query_weight, key_weight, value_weight, out_weight, mask, causal,
        query_bias=query_bias, key_bias=key_bias, value_bias=value_bias, out_bias=out_bias,
    )  # fmt: skip


def _turned(weight: Any) -> Any:
    """in × out as the row takes it, out × in."""
    weight = wanted(weight, 5)
    return weight if weight.ndim < 2 else called(TABLE["swapaxes"], (weight, -1, -2), {})


# ---- linear maps and repetitions -------------------------------------------------------------------------------------


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """(linear weights bias input): weights · input + bias; (linear x weight [bias]): x · weightᵀ + bias.

    A vector in the second place is a bias. The weights are out × in either way.
    """
    second, last = operand(weight), _given(bias)
    if isinstance(second, Tensor) and second.ndim == 1 and last is not None:
        return called(TABLE["add"], (called(TABLE["matmul"], (x, last), {}), second), {})
    return called(TABLE["linear"], (x, second, last), {})


def repeat(x: Any, *times: Any, axis: Any = None) -> Any:
    """(repeat t 2): the whole, twice along its last axis; (repeat t 2 3): so often along each, as tensor-tile.

    With :axis each element stands several times in succession along it: (repeat t 2 :axis 0). A list gives a list.
    """
    if not times:
        raise TensorError("how often is missing; it is called with (repeat t times ...)")
    reps: Any = times[0] if len(times) == 1 else list(times)
    if type(x) is list and type(reps) is int and axis is None:
        return x * reps
    if axis is None or axis is False:
        return called(TABLE["tile"], (x, reps), {})
    if len(times) > 1:
        raise TensorError(f"along one axis it is repeated so often, not {shown(list(times))}")
    return called(TABLE["repeat"], (x, reps), {"axis": axis})


# ---- losses ----------------------------------------------------------------------------------------------------------


def focal_loss(
    x: Any, target: Any, gamma: Any = 2.0, alpha: Any = 0.25, *, reduction: Any = "mean", logits: Any = False
) -> Any:
    """The binary cross entropy times (1 - p)^gamma, p the probability of the right answer.

    x are probabilities or, with `:logits #t`, scores without bounds. alpha weighs positive targets and
    1 - alpha negative ones, unless it is #f.
    """
    how = {"gamma": gamma, "alpha": None if alpha is False else alpha, "reduction": reduction, "logits": logits}
    return called(TABLE["focal_loss"], (x, target), how)


FORMS: dict[str, Function] = {
    "scaled_dot_product_attention": attention,
    "attention_weights": attention_weights,
    "multi_head_attention": multi_head_attention,
    "multi_head_self_attention": multi_head_self_attention,
    "linear": linear,
    "repeat": repeat,
    "focal_loss": focal_loss,
}
"""By the names of rows."""
