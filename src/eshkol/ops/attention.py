"""Attention: softmax(Q·Kᵀ·scale)·V with masks and grouped heads, and whole layers of it with their projections.

A query that may attend to nothing gets zeros (and zero gradients), not NaN: neither a mask that forbids all nor a
sequence of no keys is an error. Everything is computed in float32 at least.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import shapes
from eshkol.ops.activations import softmax
from eshkol.ops.attention_dropout import dropped, threshold
from eshkol.ops.attention_spans import packed, within
from eshkol.ops.contraction import matmul, turned
from eshkol.ops.creation import full, iota
from eshkol.ops.elementwise import greater_equal, less, logical_and, not_equal, where
from eshkol.ops.movement import permute, reshape
from eshkol.ops.random import KEY
from eshkol.ops.reductions import narrow, wide, wide_array
from eshkol.ops.row import Draw, Value, composite, sample
from eshkol.support import threefry

GROUP = "attention"
_ROUNDED = 8.0  # of layers: 16-bit floats are rounded after each projection, the reference only at the end


def _fitting(query: Any, key: Any, value: Any) -> None:
    def shown() -> str:  # only of what is refused: a length that is written out would be the only one that fits
        return f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}"

    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"{shown()} do not all have two axes", hint="… × length × dim")
    if any(x.dtype.is_complex for x in (query, key, value)):
        raise DTypeError("attention is of real numbers, not of complex ones")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"{shown()} do not fit: queries of {query.shape[-1]} and keys of {key.shape[-1]} elements")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{shown()} do not fit: {key.shape[-2]} keys and {value.shape[-2]} values")


def _sharing(query: Any, key: Any, value: Any) -> int:
    """How many query heads share each key and value head, beyond what broadcasting says."""
    heads = [x.shape[-3] if x.ndim > 2 else 1 for x in (query, key, value)]
    if heads[1:] == [1, 1] and min(key.ndim, value.ndim) > 2 and heads[0] > 0:
        return int(heads[0])
    if heads[0] == heads[1] or 1 in heads[:2]:
        return 1
    if heads[1] != heads[2] or 0 in heads or heads[0] % heads[1]:
        raise ShapeError(
            f"{heads[0]} query heads do not share {heads[1]} key heads and {heads[2]} value heads",
            hint="as many key as value heads, and a multiple of them as query heads",
        )
    return heads[0] // heads[1]


def _fitting_mask(mask: Any, scores: Any) -> None:
    if mask is None:
        return
    if shapes.broadcast(mask.shape, scores.shape) != scores.shape:
        raise ShapeError(f"a mask of shape {list(mask.shape)} does not broadcast to scores {list(scores.shape)}")
    if not (mask.dtype.is_bool or mask.dtype.is_float):
        raise DTypeError(f"a mask is of bools (True: attend) or of floats to be added, not of {mask.dtype}")


def _near(scores: Any, causal: bool, window: int | None) -> Any:
    """Which keys queries see for where they are: None if all."""
    if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < 1):
        raise ShapeError(f"a window is of at least one place, not {window!r}", hint="None: of all")
    if not causal and window is None:
        return None
    rows, columns = (
        iota.on(scores, shape, axis) for axis, shape in enumerate(((scores.shape[-2], 1), (1, scores.shape[-1])))
    )
    allowed = greater_equal(rows, columns) if causal else None
    if window is not None:
        apart = less(rows - columns, window)
        allowed = logical_and(less(columns - rows, window) if allowed is None else allowed, apart)
    return allowed


def _weights(
    scores: Any, mask: Any, causal: bool, window: int | None, key_lengths: Any = None, offsets: Any = None
) -> Any:
    """The softmax of the scores where attention is allowed, zero elsewhere."""
    _fitting_mask(mask, scores)
    allowed = _near(scores, causal, window)
    for given, of in ((key_lengths, within), (offsets, packed)):
        if given is not None:
            there = of(given, scores)
            allowed = there if allowed is None else logical_and(allowed, there)
    if mask is not None:
        chosen = mask if mask.dtype.is_bool else not_equal(mask, -math.inf)
        if mask.dtype.is_float:
            scores = scores + where(chosen, wide(mask), 0)
        allowed = chosen if allowed is None else logical_and(allowed, chosen)
    if allowed is None:
        return softmax(scores, axis=-1)
    least = float(np.finfo(scores.dtype.numpy).min)  # a row of nothing else is even, not NaN, until it is zeroed
    return where(allowed, softmax(where(allowed, scores, least), axis=-1), 0)


def _scores(query: Any, key: Any, shared: int) -> Any:
    """query · keyᵀ, each key head for `shared` query heads, which are more queries of one head."""
    if shared == 1:
        return matmul(query, turned(key))
    *lead, heads, rows, size = query.shape
    found = matmul(reshape(query, (*lead, heads // shared, shared * rows, size)), turned(key))
    return reshape(found, (*found.shape[:-3], heads, rows, key.shape[-2]))


def _one_by_one(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: float | None = None,
    window: int | None = None, dropout: float = 0.0, dropout_key: Any = None, key_lengths: Any = None,
    offsets: Any = None,
) -> Any:  # fmt: skip
    """One query after another."""
    query, key, value = (wide_array(x).astype(np.float64) for x in (query, key, value))
    if query.ndim > 2 and key.ndim > 2 and query.shape[-3] > key.shape[-3] > 1:
        shared = query.shape[-3] // key.shape[-3]
        key, value = (np.repeat(x, shared, axis=-3) for x in (key, value))
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    rows, columns = query.shape[-2], key.shape[-2]
    full_shape = (*lead, rows, columns)
    added = np.zeros(full_shape)
    if mask is not None:
        added = added + (np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else wide_array(mask))
    query, key, value = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (query, key, value))
    result = np.zeros((*lead, rows, value.shape[-1]))
    below = threefry.threshold(dropout)
    share = np.ones(full_shape)
    if below:
        left_out = threefry.dropped(dropout_key, math.prod(lead), rows, columns, below).reshape(full_shape)
        share = np.where(left_out, 0, threefry.kept(below))
    for at in np.ndindex(*lead, rows):
        factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
        scores = key[at[:-1]] @ query[at] * factor + added[at]
        attended = [u for u in range(columns) if scores[u] > -np.inf and not (causal and u > at[-1])]
        attended = [u for u in attended if window is None or abs(u - at[-1]) < window]
        if key_lengths is not None:
            own = np.broadcast_to(key_lengths, lead[:-1])[at[: len(lead[:-1])]]
            attended = [u for u in attended if u < own]
        if offsets is not None:
            sequence = {t: n for n, (a, b) in enumerate(pairwise(offsets)) for t in range(a, b)}
            attended = [u for u in attended if at[-1] in sequence and sequence.get(u) == sequence[at[-1]]]
        total = sum(math.exp(scores[u] - max(scores[attended])) for u in attended)
        for u in attended:
            weight = math.exp(scores[u] - max(scores[attended])) / total
            result[at] += weight * share[at][u] * value[at[:-1]][u]
    return result


_SQUARE = (sample((3, 2), (3, 2), (3, 2)), sample((2, 3, 2), (2, 3, 2), (2, 3, 2), causal=True))


@composite(
    group=GROUP, reference=_one_by_one, method=False, aliases=("attention", "flash_attention"),
    scheme=("scaled-dot-product-attention", "attention", "flash-attention", "nn-attention"),
    samples=(
        *_SQUARE, sample((1, 4, 2, 2), (1, 2, 3, 2), (1, 2, 3, 1), scale=0.5),
        sample((4, 2, 2), (2, 0, 2), (3, 2, 0, 1)),
        sample((2, 2, 2), (3, 2), (2, 3, 2), Draw((2, 3), kind="bool", make=lambda rng: [[1, 0, 1], [0, 0, 0]])),
        sample((2, 3), (3, 3), (3, 2), (2, 3), causal=True),
        sample((1, 2), (2, 2), (2, 2), Draw((1, 2), make=lambda rng: [[0.5, -np.inf]])),
        sample((2, 2), (0, 2), (0, 3)), sample((0, 2), (2, 2), (2, 1)),
        sample((4, 2), (4, 2), (4, 2), causal=True, window=2), sample((4, 2), (2, 2), (2, 2), window=1),
        sample((2, 3, 2), (2, 3, 2), (2, 3, 2), None, True, None, None, 0.5, KEY),
        sample((3, 1, 2, 2), (3, 1, 3, 2), (3, 1, 3, 2), None, False, None, None, 0.0, None,
               Draw((3,), 0, 4, kind="int")),
        sample((1, 5, 2), (1, 5, 2), (1, 5, 2), None, True, None, None, 0.0, None, None,
               Draw((3,), kind="int", make=lambda rng: [0, 2, 4])),
    ),
)  # fmt: skip
def scaled_dot_product_attention(
    query: Value, key: Value, value: Value, mask: Value | None = None, causal: bool = False, scale: float | None = None,
    window: int | None = None, dropout: float = 0.0, dropout_key: Value | None = None,
    key_lengths: Value | None = None, offsets: Value | None = None,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale) · value over … × length × dim; scale is 1/√dim unless said.

    Axes in front broadcast; a multiple of query heads (third axis from the end) shares each key and value head. A mask
    of bools says where to attend, one of floats is added. Causal: query t attends to keys 0 … t. Window: to keys that
    are fewer than so many places away, with causal to the last so many. A query that may attend to nothing gets zeros.
    Dropout leaves out weights with that probability, in 256ths, as its key says, and makes the rest greater by as much.
    Lengths are of samples, the axes in front of heads: what comes later is no key. Offsets say where sequences begin
    that lie one after another, and where the last ends: nothing attends to another sequence than its own.
    """
    _fitting(query, key, value)
    below = _dropping(dropout, dropout_key)
    q, k, v = wide(query), wide(key), wide(value)
    factor = scale if scale is not None else 1 / math.sqrt(max(query.shape[-1], 1))
    shared = _sharing(query, key, value)
    scores = _scores(q * factor, k, shared)
    if key.shape[-2] == 0:
        _fitting_mask(mask, scores)
        kept = 2 if shared == 1 else 3  # axes after those that broadcast
        lead = shapes.broadcast(scores.shape[:-kept], value.shape[:-kept])
        found = full(q, (*lead, *scores.shape[-kept:-1], value.shape[-1]), 0)
        return narrow(found, query.dtype)
    weights = _weights(scores, mask, causal, window, key_lengths, offsets)
    if below:
        lead = scores.shape[:-2] if shared > 1 else shapes.broadcast(scores.shape[:-2], value.shape[:-2])
        weights = where(dropped(dropout_key, (*lead, *scores.shape[-2:]), below), 0, weights)
        v = v * threefry.kept(below)
    if shared > 1:
        *lead, heads, rows, columns = scores.shape
        found = matmul(reshape(weights, (*lead, heads // shared, shared * rows, columns)), v)
        found = reshape(found, (*found.shape[:-3], heads, rows, value.shape[-1]))
    else:
        found = matmul(weights, v)
    return narrow(found, query.dtype)


def _dropping(dropout: Any, key: Any) -> int:
    """Below which number a byte drops a weight."""
    below = threshold(dropout)
    if below and key is None:
        raise TensorError(
            f"attention with dropout of {dropout} takes a key of random numbers",
            hint="dropout_key=ek.random.key(seed); layers of nn draw one by themselves",
        )
    return below


def _weights_one_by_one(
    query: Any, key: Any, mask: Any = None, causal: bool = False, scale: float | None = None, window: int | None = None
) -> Any:
    """What attention gives for values that each say which one it is."""
    keys = key.shape[-2]
    values = np.broadcast_to(np.eye(keys), (*key.shape[:-2], keys, keys))
    return _one_by_one(query, key, values, mask, causal, scale, window)


@composite(
    group=GROUP, reference=_weights_one_by_one, method=False,
    samples=(
        sample((3, 2), (4, 2)), sample((2, 3, 2), (2, 3, 2), causal=True),
        sample((1, 4, 2, 2), (1, 2, 3, 2), scale=0.5),
        sample((2, 2), (3, 2), Draw((2, 3), kind="bool", make=lambda rng: [[1, 0, 1], [0, 0, 0]])),
        sample((2, 3), (3, 3), (2, 3), causal=True), sample((2, 2), (0, 2)), sample((3, 2), (4, 2), window=2),
    ),
)  # fmt: skip
def attention_weights(
    query: Value, key: Value, mask: Value | None = None, causal: bool = False, scale: float | None = None,
    window: int | None = None,
) -> Any:  # fmt: skip
    """softmax(query · keyᵀ · scale): how much each query attends to each key in scaled_dot_product_attention."""
    _fitting(query, key, key)
    factor = scale if scale is not None else 1 / math.sqrt(max(query.shape[-1], 1))
    scores = _scores(wide(query) * factor, wide(key), _sharing(query, key, key))
    if scores.shape[-1] == 0:
        _fitting_mask(mask, scores)
        return narrow(scores, query.dtype)
    return narrow(_weights(scores, mask, causal, window), query.dtype)


def _projected(x: Any, weight: Any, bias: Any, what: str) -> Any:
    if weight.ndim != 2 or x.ndim < 2 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(f"a {what} weight of shape {list(weight.shape)} does not fit an input of {list(x.shape)}",
                         hint="weights are out × in, inputs … × length × in")  # fmt: skip
    result = matmul(x, turned(weight))
    return result if bias is None else result + bias


def _heads(x: Any, size: int, what: str) -> Any:
    """… × length × embedding as … × heads × length × size."""
    if size == 0 or x.shape[-1] % size:
        raise ShapeError(f"{x.shape[-1]} {what} elements are not heads of {size}")
    parted = reshape(x, (*x.shape[:-1], x.shape[-1] // size, size))
    n = x.ndim - 2
    return permute(parted, (*range(n), n + 1, n, n + 2))


def _layer(
    query: Any, key: Any, value: Any, num_heads: int, query_weight: Any, key_weight: Any, value_weight: Any,
    out_weight: Any, query_bias: Any = None, key_bias: Any = None, value_bias: Any = None, out_bias: Any = None,
    mask: Any = None, causal: bool = False,
) -> Any:  # fmt: skip
    def linear(x: Any, weight: Any, bias: Any) -> Any:
        return np.einsum("...i,oi->...o", wide_array(x), wide_array(weight)) + (0 if bias is None else wide_array(bias))

    size = len(query_weight) // num_heads
    parts = (query, query_weight, query_bias), (key, key_weight, key_bias), (value, value_weight, value_bias)
    q, k, v = (np.moveaxis(y.reshape(*y.shape[:-1], -1, size), -2, -3) for y in (linear(*part) for part in parts))
    found = np.moveaxis(_one_by_one(q, k, v, mask, causal), -3, -2)
    return linear(found.reshape(*found.shape[:-2], -1), out_weight, out_bias)


@composite(
    group=GROUP, reference=_layer, method=False, scheme=("multi-head-attention", "nn-multi-head-attention"),
    tolerance=_ROUNDED,
    samples=(
        sample((2, 3, 4), (2, 2, 3), (2, 2, 2), 2, (4, 4), (4, 3), (4, 2), (3, 4), (4,), (4,), (4,), (3,)),
        sample((3, 4), (3, 4), (3, 4), 4, (8, 4), (4, 4), (4, 4), (4, 8), causal=True),
    ),
)  # fmt: skip
def multi_head_attention(
    query: Value, key: Value, value: Value, num_heads: int, query_weight: Value, key_weight: Value,
    value_weight: Value, out_weight: Value, query_bias: Value | None = None, key_bias: Value | None = None,
    value_bias: Value | None = None, out_bias: Value | None = None, mask: Value | None = None, causal: bool = False,
) -> Any:  # fmt: skip
    """Attention of heads between projections: (batch ×) length × embedding in, weights out × in as of linear layers.

    A head is 1/num_heads of what query_weight gives; fewer key and value heads are shared by groups of query heads. The
    mask broadcasts to (batch ×) heads × queries × keys.
    """
    if isinstance(num_heads, bool) or not isinstance(num_heads, int) or num_heads < 1:
        raise ShapeError(f"the number of heads must be a positive integer, not {num_heads!r}")
    q = _projected(query, query_weight, query_bias, "query")
    if q.shape[-1] % num_heads:
        raise ShapeError(f"{q.shape[-1]} query elements are not {num_heads} heads")
    size = q.shape[-1] // num_heads
    k = _heads(_projected(key, key_weight, key_bias, "key"), size, "key")
    v = _heads(_projected(value, value_weight, value_bias, "value"), size, "value")
    found = scaled_dot_product_attention(_heads(q, size, "query"), k, v, mask, causal)
    n = found.ndim - 3
    joined = permute(found, (*range(n), n + 1, n, n + 2))
    return _projected(reshape(joined, (*joined.shape[:-2], num_heads * size)), out_weight, out_bias, "output")


@composite(
    group=GROUP, method=False, scheme=("multi-head-self-attention",), tolerance=_ROUNDED,
    reference=lambda x, *rest, **how: _layer(x, x, x, *rest, **how),
    samples=(sample((2, 3, 4), 2, (4, 4), (4, 4), (4, 4), (4, 4), (4,), None, (4,), causal=True),),
)  # fmt: skip
def multi_head_self_attention(
    x: Value, num_heads: int, query_weight: Value, key_weight: Value, value_weight: Value, out_weight: Value,
    query_bias: Value | None = None, key_bias: Value | None = None, value_bias: Value | None = None,
    out_bias: Value | None = None, mask: Value | None = None, causal: bool = False,
) -> Any:  # fmt: skip
    """multi_head_attention of a sequence to itself."""
    return multi_head_attention(
        x, x, x, num_heads, query_weight, key_weight, value_weight, out_weight,
        query_bias, key_bias, value_bias, out_bias, mask, causal,
    )  # fmt: skip
