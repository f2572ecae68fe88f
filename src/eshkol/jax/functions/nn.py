"""What `jax.nn` has beside rows of the op table: other defaults (gelu, one_hot), further arguments, and a few more.

Comes in: tensors. Goes out: tensors.
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """x·Φ(x); in JAX the common approximation of Φ by tanh is the default."""
    return ek.gelu(x, approximate="tanh" if approximate else "none")


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """For each label a vector with 1 at its place, along an axis; labels out of range give zeros."""
    labels = ek.asarray(x)
    made = ek.equal(ek.unsqueeze(labels, -1), ek.arange(num_classes))
    return ek.cast(made if axis == -1 else ek.moveaxis(made, -1, axis), dtype or ek.get_default_dtype())


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """e^x divided by its sum along axes; elements where `where` does not hold count nothing and become 0."""
    if where is not None:
        low = ek.where(where, x, float("-inf"))
        return ek.where(where, softmax(low, axis), 0.0)
    if isinstance(axis, tuple | list) or axis is None:
        return ek.exp(x - ek.logsumexp(x, axis, keepdims=True))
    return ek.softmax(x, axis)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """The logarithm of softmax along axes."""
    if where is not None:
        return ek.where(where, log_softmax(ek.where(where, x, float("-inf")), axis), float("-inf"))
    if isinstance(axis, tuple | list) or axis is None:
        return x - ek.logsumexp(x, axis, keepdims=True)
    return ek.log_softmax(x, axis)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Tensor:
    """log of the sum of b·e^a along axes, without overflow."""
    if return_sign:
        raise TensorError("logsumexp takes no return_sign", span=ek.here())
    return ek.logsumexp(a if b is None else a + ek.log(b), axis, keepdims=keepdims)


def logmeanexp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log of the mean of e^a along axes, without overflow."""
    x = ek.asarray(a)
    return ek.logsumexp(x, axis, keepdims=keepdims) - ek.log(ek.sum(ek.ones_like(x), axis, keepdims=keepdims))


def standardize(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: float = 1e-5) -> Tensor:
    """x with mean 0 and variance 1 along axes."""
    middle = ek.mean(x, axis, keepdims=True) if mean is None else mean
    spread = ek.var(x, axis, keepdims=True) if variance is None else variance
    return (x - middle) * ek.rsqrt(spread + epsilon)


def squareplus(x: Any, b: float = 4.0) -> Tensor:
    """(x + √(x² + b)) / 2: a smooth relu."""
    return (x + ek.sqrt(ek.square(x) + b)) / 2


def sparse_plus(x: Any) -> Tensor:
    """0 up to -1, x from 1 on, and (x + 1)²/4 between."""
    return ek.where(x <= -1.0, 0.0, ek.where(x >= 1.0, x, ek.square(x + 1.0) / 4))


def sparse_sigmoid(x: Any) -> Tensor:
    """(x + 1)/2 brought between 0 and 1."""
    return ek.clamp((x + 1.0) / 2, 0.0, 1.0)


def identity(x: Any) -> Tensor:
    """x itself."""
    return ek.asarray(x)


def log1mexp(x: Any) -> Tensor:
    """log(1 - e^-x) for positive x, without losing small ones."""
    x = ek.asarray(x)
    return ek.where(x < 0.6931471805599453, ek.log(-ek.expm1(-x)), ek.log1p(-ek.exp(-x)))


def dot_product_attention(
    query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: float | None = None,
    is_causal: bool = False, local_window_size: Any = None, key_value_seq_lengths: Any = None, **how: Any,
) -> Tensor:  # fmt: skip
    """Attention over (batch ×) length × heads × dim, as JAX orders axes.

    A local window says how many keys before a query, and how many after it, it attends to; lengths how many keys each
    example has.
    """
    if how and any(v is not None for v in how.values()):
        raise TensorError(f"dot_product_attention takes no {', '.join(how)}", span=ek.here())
    if bias is not None and mask is not None:
        bias = ek.where(mask, bias, float("-inf"))
    given = bias if bias is not None else mask
    window = None
    if local_window_size is not None:
        sizes = local_window_size if isinstance(local_window_size, tuple) else (local_window_size,) * 2
        before, after = (int(size) for size in sizes)
        if before != after and not is_causal:
            raise TensorError(
                f"dot_product_attention takes a window of as many keys before as after, not {sizes}", span=ek.here()
            )
        window = before + 1
    turned = [ek.swapaxes(ek.asarray(x), -3, -2) for x in (query, key, value)]
    lengths = None if key_value_seq_lengths is None else ek.asarray(key_value_seq_lengths)
    found = ek.scaled_dot_product_attention(*turned, given, is_causal, scale, window, key_lengths=lengths)
    return ek.swapaxes(found, -3, -2)
