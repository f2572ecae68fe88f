"""Layers that are products and lookups, and those that only arrange: linear, embedding, dropout, flatten and others.

Weights lie as PyTorch's do (out × in), so that states carry over, and begin with the same distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.nn import init
from eshkol.nn.module import Module, Parameter
from eshkol.nn.precision import current, lowered
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key
from eshkol.tensors.holding import put
from eshkol.tensors.value import Tensor


def positive(who: str, **given: Any) -> None:
    """Refuse counts of a layer that are no positive integers, by their names."""
    for name, value in given.items():
        if not is_whole(value, 1):
            raise ShapeError(f"{who}: {name} must be a positive integer, not {value!r}", span=ek.here())


def features(
    who: str, x: Any, wanted: int, what: str = "in_features", axis: int = -1, weight: Tensor | None = None
) -> None:
    """Refuse an input without floats, whose axis of features has another extent, or of wider floats than the weight."""
    if not isinstance(x, Tensor):
        raise DTypeError(f"{who} takes a tensor, not a {type(x).__name__}", span=ek.here(), hint="ek.tensor(...)")
    if not x.dtype.differentiable:
        raise DTypeError(
            f"{who} computes with floats, and was given {x.dtype}", span=ek.here(), hint="x.astype(ek.float32)"
        )
    if x.ndim < (-axis if axis < 0 else axis + 1) or x.shape[axis] != wanted:
        raise ShapeError(
            f"{who} has {what}={wanted}, and was given shape {list(x.shape)}", span=ek.here(),
            hint=f"axis {axis} of what it is given must have extent {wanted}",
        )  # fmt: skip
    if weight is not None and x.dtype is not weight.dtype:
        not_wider(who, x, weight)


def not_wider(who: str, x: Any, weight: Tensor) -> None:
    """Refuse floats that are wider than a weight: the product, and all that follows, would silently be as wide."""
    if x.dtype.is_float and weight.dtype.is_float and x.dtype.size > weight.dtype.size and current() is None:
        raise DTypeError(
            f"{who} has {weight.dtype} weights, and was given {x.dtype}", span=ek.here(),
            hint=f"x.astype(ek.{weight.dtype}) (NumPy's arrays are float64), or model.to(ek.{x.dtype})",
        )  # fmt: skip


class Identity(Module):
    """Gives what it is given; takes any arguments, so that it can stand in for another layer."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return x


class Linear(Module):
    """x · weightᵀ + bias along the last axis; the weight is out_features × in_features.

    >>> nn.Linear(3, 2)(ek.ones((5, 3))).shape
    (5, 2)
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        shape = (out_features, in_features)
        self.weight = Parameter(init.default_weight(shape, dtype))
        self.register_parameter("bias", Parameter(init.default_bias(shape, out_features, dtype)) if bias else None)

    def forward(self, x: Any) -> Any:
        features("Linear", x, self.in_features, weight=self.weight)
        return ek.linear(*lowered(x, self.weight, self.bias))

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """xᵀ · weight[o] · y + bias for every output o; the weight is out × in1 × in2."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        positive("Bilinear", in1_features=in1_features, in2_features=in2_features, out_features=out_features)
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = 1 / math.sqrt(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.uniform(shape, -bound, bound, dtype=dtype))
        start = Parameter(init.uniform((out_features,), -bound, bound, dtype=dtype)) if bias else None
        self.register_parameter("bias", start)

    def forward(self, x: Any, y: Any) -> Any:
        features("Bilinear", x, self.in1_features, "in1_features", weight=self.weight)
        features("Bilinear", y, self.in2_features, "in2_features", weight=self.weight)
        return ek.bilinear(*lowered(x, y, self.weight, self.bias))

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    """The rows of a table of weights at integer ids; the row `padding_idx` is 0 and is not trained."""

    weight: Tensor

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        positive("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise TensorError(f"Embedding: padding_idx {padding_idx} is not among {num_embeddings}", span=ek.here())
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(init.normal((num_embeddings, embedding_dim), dtype=dtype))
        if self.padding_idx is not None:
            kept = ek.arange(num_embeddings) != self.padding_idx
            put(self.weight, ek.where(ek.reshape(kept, (-1, 1)), self.weight.detach(), 0.0).realize())

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """An embedding whose weights are given, and stay as they are unless `freeze` is False."""
        table = ek.asarray(embeddings)
        if table.ndim != 2:
            raise ShapeError(f"a table of embeddings has two axes, not shape {list(table.shape)}", span=ek.here())
        made = cls(table.shape[0], table.shape[1], padding_idx, table.dtype)
        put(made.weight, table)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, ids: Any) -> Any:
        if not isinstance(ids, Tensor) or not ids.dtype.is_integer:
            kind = ids.dtype if isinstance(ids, Tensor) else type(ids).__name__
            raise DTypeError(f"Embedding takes integer ids, not {kind}", span=ek.here(), hint="ids: x.astype(ek.int64)")
        return ek.embedding(self.weight, ids, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class _Dropping(Module):
    """What dropouts share: the probability, and that they draw in training alone."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise TensorError(f"{type(self).__name__}: p is a probability from 0 to 1, not {p!r}", span=ek.here())
        self.p = float(p)

    def forward(self, x: Any) -> Any:
        if not self.training or self.p == 0:
            return x
        return self.dropped(x)

    def dropped(self, x: Any) -> Any:
        """What it gives in training."""
        return ek.dropout(x, next_key(type(self).__name__), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout(_Dropping):
    """In training, sets each element to 0 with probability p and divides the others by 1 - p."""


class _ChannelDropout(_Dropping):
    """In training, sets whole channels to 0: all that stands after one element of axes 0 and 1."""

    axes: int  # after the channels

    def dropped(self, x: Any) -> Any:
        name, ndim = type(self).__name__, self.axes + 2
        if x.ndim not in (ndim - 1, ndim):
            raise ShapeError(
                f"{name} takes (batch ×) channels × {self.axes} axes, not shape {list(x.shape)}", span=ek.here()
            )
        shape = (*x.shape[: x.ndim - self.axes], *(1,) * self.axes)
        return x * ek.dropout(ek.ones(shape, dtype=x.dtype), next_key(name), self.p)


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels of (batch ×) channels × length."""

    axes = 1


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels of (batch ×) channels × height × width."""

    axes = 2


class Dropout3d(_ChannelDropout):
    """Dropout of whole channels of (batch ×) channels × depth × height × width."""

    axes = 3


class AlphaDropout(_Dropping):
    """Dropout for SELU: keeps mean 0 and variance 1, with SELU's lower bound in place of what is dropped."""

    def dropped(self, x: Any) -> Any:
        bound = -1.7580993408473766  # -scale·alpha of SELU
        if self.p == 1:
            return x * 0.0
        kept = ek.dropout(ek.ones(x.shape, dtype=x.dtype), next_key("AlphaDropout"), self.p) * (1 - self.p)
        scale = 1 / math.sqrt((1 - self.p) * (1 + self.p * bound**2))
        return (x * kept + bound * (1 - kept)) * scale - scale * self.p * bound


class Flatten(Module):
    """The axes from start_dim to end_dim as one; by default all but that of the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Any:
        first, last = (d + x.ndim if d < 0 else d for d in (self.start_dim, self.end_dim))
        if not 0 <= first <= last < max(x.ndim, 1):
            raise ShapeError(
                f"Flatten({self.start_dim}, {self.end_dim}) does not suit shape {list(x.shape)}", span=ek.here()
            )
        return ek.reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Any) -> Any:
        if not -x.ndim <= self.dim < x.ndim:
            raise ShapeError(f"Unflatten: shape {list(x.shape)} has no axis {self.dim}", span=ek.here())
        at = self.dim % x.ndim
        known = math.prod(n for n in self.unflattened_size if n != -1)
        whole = -1 in self.unflattened_size
        if (x.shape[at] % known if whole and known else x.shape[at] - known) or self.unflattened_size.count(-1) > 1:
            raise ShapeError(
                f"Unflatten: {x.shape[at]} elements of axis {self.dim} do not make {list(self.unflattened_size)}",
                span=ek.here(),
            )
        sizes = tuple(x.shape[at] // known if n == -1 else n for n in self.unflattened_size)
        return ek.reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along an axis."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x: Any, y: Any) -> Any:
        return ek.cosine_similarity(x, y, axis=self.dim, eps=self.eps)


class Upsample(Module):
    """Images in another size, or scaled: mode nearest, linear, bilinear, bicubic."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise TensorError("Upsample takes a size or a scale_factor, and not both", span=ek.here())
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, bool(align_corners)

    def forward(self, x: Any) -> Any:
        return ek.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        how = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{how}, mode='{self.mode}'"


class PixelShuffle(Module):
    """Channels as finer pixels: channels·r² × height × width become channels × height·r × width·r."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        positive("PixelShuffle", upscale_factor=upscale_factor)
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        return ek.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"
