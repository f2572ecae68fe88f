"""Attention of several heads as a layer: to itself or to another sequence, with masks, and with what was seen kept.

Parameters have PyTorch's names and layout (`in_proj_weight`, `out_proj.weight`). Masks mean what PyTorch's mean in this
layer: a bool says where NOT to attend, a float is added to the scores. A query that may attend to nothing gives zeros.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.nn import init, precision
from eshkol.nn.layers import Linear, not_wider
from eshkol.nn.module import Module, Parameter
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key


class Cache(NamedTuple):
    """Keys and values of what was seen: batch × heads × places × size each."""

    key: Any
    value: Any


class MultiheadAttention(Module):
    """Attention of heads between projections: `output, weights = attention(query, key, value)`.

    Inputs are length × batch × embedding (batch × length with `batch_first`), or length × embedding. The weights, mean
    over the heads and before dropout, are only computed if they are looked at. Dropout is in 256ths, as attention's is.

    >>> out, _ = nn.MultiheadAttention(64, 4, batch_first=True)(x, x, x, is_causal=True)
    """

    in_proj_weight: Any
    in_proj_bias: Any
    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, kdim: int | None = None,
        vdim: int | None = None, batch_first: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"MultiheadAttention: {embed_dim} elements do not part into {num_heads} heads", span=ek.here(),
                hint="embed_dim is a multiple of num_heads",
            )  # fmt: skip
        if not 0 <= dropout <= 1:
            raise TensorError(
                f"MultiheadAttention: dropout is a probability from 0 to 1, not {dropout!r}", span=ek.here()
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.together = self.kdim == self.vdim == embed_dim  # one weight for the three projections
        if self.together:
            self.in_proj_weight = Parameter(ek.zeros((3 * embed_dim, embed_dim), dtype=dtype))
        else:
            self.q_proj_weight = Parameter(ek.zeros((embed_dim, embed_dim), dtype=dtype))
            self.k_proj_weight = Parameter(ek.zeros((embed_dim, self.kdim), dtype=dtype))
            self.v_proj_weight = Parameter(ek.zeros((embed_dim, self.vdim), dtype=dtype))
        self.register_parameter("in_proj_bias", Parameter(ek.zeros((3 * embed_dim,), dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        self._reset()

    def _reset(self) -> None:
        """Begin as PyTorch's does."""
        for name, weight in self._parameters.items():
            if weight is not None and name.endswith("weight"):
                init.xavier_uniform_(weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}" + (f", dropout={self.dropout}" if self.dropout else "")

    # --- projections --------------------------------------------------------------------------------------------------

    def _parts(self, first: int, count: int) -> tuple[Any, Any]:
        """The weight and bias of projections that lie one after another: 0 query, 1 key, 2 value."""
        span = slice(first * self.embed_dim, (first + count) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[span]
        if self.together:
            return (self.in_proj_weight if count == 3 else self.in_proj_weight[span]), bias
        return (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[first], bias

    def _heads(self, x: Any, first: int, count: int = 1) -> list[Any]:
        """Projections of batch × length × features, each as batch × heads × length × size."""
        weight, bias = self._parts(first, count)
        not_wider("MultiheadAttention", x, weight)
        x, weight = precision.lowered(x, weight)
        found = ek.linear(x, weight, None if bias is None else ek.cast(bias, weight.dtype))
        parted = ek.reshape(found, (*x.shape[:2], count, self.num_heads, self.head_dim))
        return [ek.swapaxes(parted[:, :, n], 1, 2) for n in range(count)]

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        if self.together and key is query and value is query:
            return self._heads(query, 0, 3)
        if self.together and value is key:
            return [*self._heads(query, 0), *self._heads(key, 1, 2)]
        return [*self._heads(query, 0), *self._heads(key, 1), *self._heads(value, 2)]

    def _joined(self, found: Any) -> Any:
        """What the heads gave, projected: batch × length × embedding."""
        turned = ek.swapaxes(found, 1, 2)
        return self.out_proj(ek.reshape(turned, (*turned.shape[:2], self.embed_dim)))

    # --- calls --------------------------------------------------------------------------------------------------------

    def forward(
        self, query: Any, key: Any = None, value: Any = None, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """The output, and (unless `need_weights` is False) how much each query attended to each key.

        Without `key` the query attends to itself, and without `value` the keys are the values. `key_padding_mask`
        (batch × keys) and `attn_mask` (queries × keys, or that for each batch · head) are True where NOT to attend, or
        floats to be added. With `is_causal`, query t attends to keys 0 … t.
        """
        key = query if key is None else key
        value = key if value is None else value
        batched = self._fits(query, key, value)
        inputs: dict[int, Any] = {}
        for x in (query, key, value):  # equal ones stay equal: they are projected together
            inputs[id(x)] = x if batched and self.batch_first else ek.swapaxes(x, 0, 1) if batched else x[None]
        q, k, v = self._projected(inputs[id(query)], inputs[id(key)], inputs[id(value)])
        mask = self._mask(attn_mask, key_padding_mask, q, k, batched)
        how = {}
        if self.dropout and self.training:
            how = {"dropout": self.dropout, "dropout_key": next_key("MultiheadAttention")}
        output = self._joined(ek.attention(q, k, v, mask, causal=is_causal, **how))
        weights = None
        if need_weights:
            weights = ek.attention_weights(q, k, mask, causal=is_causal)
            weights = ek.mean(weights, 1) if average_attn_weights else weights
        if not batched:
            return output[0], None if weights is None else weights[0]
        return output if self.batch_first else ek.swapaxes(output, 0, 1), weights

    def empty_cache(self, batch: int, places: int) -> Cache:
        """Room for keys and values of sequences of at most so many places."""
        shape = (batch, self.num_heads, places, self.head_dim)
        weight = self.in_proj_weight if self.together else self.q_proj_weight
        (lowered,) = precision.lowered(weight)
        return Cache(ek.zeros(shape, dtype=lowered.dtype), ek.zeros(shape, dtype=lowered.dtype))

    def extend(self, x: Any, cache: Cache, position: Any) -> tuple[Any, Cache]:
        """Attention of further places (batch × length × embedding, the first at `position`) to themselves and to all
        that the cache holds before them; and the cache with them."""
        q, k, v = self._heads(x, 0, 3)
        own = ek.arange(x.shape[1]) + position
        seen = Cache(ek.scatter(cache.key, own, k, axis=2), ek.scatter(cache.value, own, v, axis=2))
        allowed = ek.arange(seen.key.shape[2]) <= own[:, None]
        return self._joined(ek.attention(q, seen.key, seen.value, allowed)), seen

    # --- what comes in ------------------------------------------------------------------------------------------------

    def _fits(self, query: Any, key: Any, value: Any) -> bool:
        """Whether the inputs are batches; refuses those that do not fit."""
        shown = f"query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ShapeError(f"MultiheadAttention takes three sequences, or three batches, not {shown}", span=ek.here())
        for what, x, size in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            if x.shape[-1] != size:
                raise ShapeError(
                    f"MultiheadAttention: the {what} has {x.shape[-1]} features instead of {size} ({shown})",
                    span=ek.here(),
                )
        axis = 1 if query.ndim == 3 and self.batch_first else 0
        batch = 1 - axis
        if key.shape[axis] != value.shape[axis] or (
            query.ndim == 3 and not query.shape[batch] == key.shape[batch] == value.shape[batch]
        ):
            layout = "batch × length" if self.batch_first else "length × batch"
            raise ShapeError(
                f"MultiheadAttention: {shown} do not fit", span=ek.here(), hint=f"inputs are {layout} × embedding"
            )
        return bool(query.ndim == 3)

    def _mask(self, given: Any, padding: Any, q: Any, k: Any, batched: bool) -> Any:
        """The two masks as one of ek.attention: True where to attend, or floats to be added."""
        (batch, heads, rows), columns = q.shape[:3], k.shape[2]
        masks = []
        if given is not None:
            mask = ek.asarray(given)
            shapes = {(rows, columns): (rows, columns), (batch * heads, rows, columns): (batch, heads, rows, columns)}
            masks.append(_reshaped(mask, shapes, "attn_mask"))
        if padding is not None:
            mask = ek.asarray(padding)
            shapes = {(batch, columns): (batch, 1, 1, columns)} if batched else {(columns,): (1, 1, 1, columns)}
            masks.append(_reshaped(mask, shapes, "key_padding_mask"))
        if not masks:
            return None
        if all(mask.dtype.is_bool for mask in masks):
            allowed = [ek.logical_not(mask) for mask in masks]
            return allowed[0] if len(allowed) == 1 else ek.logical_and(*allowed)
        added = [ek.where(mask, -math.inf, 0.0) if mask.dtype.is_bool else mask for mask in masks]
        return added[0] if len(added) == 1 else added[0] + added[1]


def _reshaped(mask: Any, shapes: dict[tuple[int, ...], tuple[int, ...]], what: str) -> Any:
    if not (mask.dtype.is_bool or mask.dtype.is_float):
        raise DTypeError(
            f"MultiheadAttention: {what} is of bools (True: do not attend) or of floats to be added, not {mask.dtype}",
            span=ek.here(),
        )
    shape = shapes.get(tuple(mask.shape))
    if shape is None:
        wanted = " or ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"MultiheadAttention: {what} has shape {list(mask.shape)}, not {wanted}", span=ek.here())
    return ek.reshape(mask, shape)


class SelfAttention(Module):
    """Attention of a sequence to itself, by heads: what the layer gives, without the weights.

    >>> nn.SelfAttention(64, 4, causal=True)(x)
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, causal: bool = False,
        batch_first: bool = True, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.attention = MultiheadAttention(embed_dim, num_heads, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.causal = causal

    def forward(self, x: Any, mask: Any = None) -> Any:
        return self.attention(x, x, x, attn_mask=mask, is_causal=self.causal, need_weights=False)[0]
