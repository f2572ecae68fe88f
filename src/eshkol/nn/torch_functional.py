"""`ek.nn.functional`, PyTorch's F: what is no row of its own name, or takes its arguments in another order there.

Comes in: tensors, in PyTorch's order. Goes out: tensors. `functional.py` finds names here first, and then among the
rows; `RENAMED` are rows that PyTorch writes in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.ctc import ctc_loss
from eshkol.nn.linear_loss import linear_cross_entropy
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key

RENAMED = {
    "hardtanh": "hard_tanh", "hardswish": "hard_swish", "hardsigmoid": "hard_sigmoid", "hardshrink": "hard_shrink",
    "softshrink": "soft_shrink", "tanhshrink": "tanh_shrink", "logsigmoid": "log_sigmoid", "upsample": "interpolate",
}  # fmt: skip


def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """The rows of a weight that indices choose."""
    return ek.embedding(weight, input, padding_idx)


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """In training, each element set to 0 with probability p and the others divided by 1 - p."""
    made = ek.dropout(x, next_key("dropout"), p) if training and p else x
    return x.copy_(made) if inplace else made


def _channels(axes: int) -> Callable[..., Any]:
    def drop(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or not p:
            return x
        shape = (*x.shape[: x.ndim - axes], *(1,) * axes)
        made = x * ek.dropout(ek.ones(shape, dtype=x.dtype), next_key("dropout"), p)
        return x.copy_(made) if inplace else made

    drop.__doc__ = f"In training, whole channels over the last {axes} axes set to 0."
    return drop


dropout1d, dropout2d, dropout3d = (_channels(axes) for axes in (1, 2, 3))


def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """x with elements added: two numbers for before and after the last axis, two for the one in front of it, ..."""
    numbers = [*pad]
    if len(numbers) % 2 or len(numbers) > 2 * x.ndim:
        raise ShapeError(f"pad takes two numbers for each of the last axes of {list(x.shape)}, not {numbers}")
    pairs = [(numbers[k], numbers[k + 1]) for k in range(0, len(numbers), 2)]
    widths = ((0, 0),) * (x.ndim - len(pairs)) + tuple(reversed(pairs))
    chosen = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return ek.pad(x, widths, 0 if value is None else value, chosen)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale) · value; a mask of bools says where to attend, one of floats is added.

    A multiple of query heads shares each key and value head, with `enable_gqa` and without.
    """
    how = {"dropout": dropout_p, "dropout_key": next_key("attention")} if dropout_p else {}
    return ek.scaled_dot_product_attention(query, key, value, attn_mask, is_causal, scale, **how)


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, dim: int = -1) -> Any:
    """Draws from the softmax of logits that can be differentiated; hard ones are one-hot on the way there."""
    noise = ek.gumbel(next_key("gumbel_softmax"), logits.shape, dtype=logits.dtype)
    soft = ek.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    most = ek.max(soft, axis=dim, keepdims=True)
    return ek.stop_gradient(ek.cast(soft == most, soft.dtype) - soft) + soft


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of x1 - x2 along the last axis."""
    return ek.norm(x1 - x2 + eps, p, -1, keepdim)


def reduced(loss: Any, reduction: str) -> Any:
    """The mean or the sum of losses, or all of them."""
    if reduction not in ("mean", "sum", "none"):
        raise TensorError(f"there is no reduction '{reduction}'", hint="reductions: mean, sum, none", span=ek.here())
    return loss if reduction == "none" else getattr(loss, reduction)()


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0, reduction: str = "mean") -> Any:
    """How far input1 is from being above input2 (target 1) or below it (target -1) by a margin."""
    return reduced(ek.relu(-target * (input1 - input2) + margin), reduction)


def hinge_embedding_loss(x: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """x where the target is 1, and how far x is below a margin where it is -1."""
    return reduced(ek.where(target == 1, x, ek.relu(margin - x)), reduction)


def soft_margin_loss(x: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + e^(-target · x))."""
    return reduced(ek.softplus(-target * x), reduction)


def multilabel_soft_margin_loss(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """The binary cross entropy of logits with several labels, mean over the classes."""
    loss = ek.binary_cross_entropy_with_logits(x, target, reduction="none")
    return reduced((loss if weight is None else loss * weight).mean(-1), reduction)


def multi_margin_loss(
    x: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """How far the label's score is from being a margin above each other one, to a power; over the number of classes."""
    if p not in (1, 2):
        raise TensorError(f"the power is 1 or 2, not {p!r}", span=ek.here())
    own = ek.take_along_dim(x, target[..., None], -1)
    loss = ek.relu(margin - own + x) ** p
    if weight is not None:
        loss = loss * weight[target][..., None]
    others = ek.arange(x.shape[-1]) != target[..., None]
    return reduced(ek.where(others, loss, 0).sum(-1) / x.shape[-1], reduction)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e^(beta·x))/beta; x itself where beta·x is above a threshold."""
    return ek.softplus(x, beta, threshold)


def instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel of each example with mean 0 and variance 1; with running statistics, by those."""
    if use_input_stats:
        return ek.instance_norm(x, weight, bias, eps)
    return ek.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)


def multi_head_attention_forward(*_: Any, **__: Any) -> Any:
    """It is a layer here."""
    raise TensorError("use nn.MultiheadAttention, or ek.multi_head_attention", span=ek.here())


OWN: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        embedding, dropout, pad, scaled_dot_product_attention, gumbel_softmax, pairwise_distance, margin_ranking_loss,
        hinge_embedding_loss, soft_margin_loss, multilabel_soft_margin_loss, softplus, instance_norm,
        multi_head_attention_forward, linear_cross_entropy, multi_margin_loss, ctc_loss,
    )
} | {"dropout1d": dropout1d, "dropout2d": dropout2d, "dropout3d": dropout3d}  # fmt: skip
