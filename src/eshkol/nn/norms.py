"""Normalizations as layers. Running statistics are buffers: in training the batch's are used and go into them.

Within `autocast` what they are given is normalized in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.layers import features, positive
from eshkol.nn.module import Buffer, Module, Parameter
from eshkol.nn.precision import raised
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


class _Affine(Module):
    """A weight and a bias per channel, or none."""

    weight: Tensor | None
    bias: Tensor | None

    def _scales(self, shape: tuple[int, ...], affine: bool, bias: bool, dtype: Any) -> None:
        self.register_parameter("weight", Parameter(ek.ones(shape, dtype=dtype)) if affine else None)
        self.register_parameter("bias", Parameter(ek.zeros(shape, dtype=dtype)) if affine and bias else None)


# --- by the batch -----------------------------------------------------------------------------------------------------


class _Running(_Affine):
    """Statistics per channel that are kept: means and variances, and how many batches went into them."""

    ndims: ClassVar[tuple[int, ...]]  # that an input may have
    what: ClassVar[str]  # such an input is
    counts: ClassVar[bool] = True  # whether batches are counted also where no one asks for it, as PyTorch does
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        who = type(self).__name__
        positive(who, num_features=num_features)
        if momentum is not None and not 0 <= momentum <= 1:
            raise TensorError(f"{who}: momentum is from 0 to 1, or None, not {momentum!r}", span=ek.here())
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._scales((num_features,), affine, True, dtype)
        kept = track_running_stats
        self.register_buffer("running_mean", Buffer(ek.zeros((num_features,), dtype=dtype)) if kept else None)
        self.register_buffer("running_var", Buffer(ek.ones((num_features,), dtype=dtype)) if kept else None)
        self.register_buffer("num_batches_tracked", Buffer(ek.zeros((), dtype="int64")) if kept else None)

    def reset_running_stats(self) -> None:
        """Forget the statistics: mean 0, variance 1."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean = ek.zeros_like(self.running_mean).realize()
            self.running_var = ek.ones_like(self.running_var).realize()
            self.num_batches_tracked = ek.zeros((), dtype="int64").realize()

    def _checked(self, x: Any) -> Any:
        who = type(self).__name__
        if getattr(x, "ndim", None) not in self.ndims:
            raise ShapeError(
                f"{who} takes {self.what}, and was given shape {list(getattr(x, 'shape', ()))}", span=ek.here()
            )
        features(who, x, self.num_features, "num_features", axis=self._channel_axis(x))
        return raised(x)[0]

    def _channel_axis(self, x: Any) -> int:
        return 1

    def _remember(self, mean: Any, var: Any) -> None:
        """Mix the statistics of a batch into those that are kept."""
        old_mean, old_var, count = self.running_mean, self.running_var, self.num_batches_tracked
        assert old_mean is not None
        assert old_var is not None
        assert count is not None
        part: Any = self.momentum
        if self.counts or part is None:
            self.num_batches_tracked = seen = count + 1
            part = ek.cast(1.0 / ek.cast(seen, "float64"), old_mean.dtype) if part is None else part
        self.running_mean = old_mean + (ek.cast(mean, old_mean.dtype) - old_mean) * part
        self.running_var = old_var + (ek.cast(var, old_var.dtype) - old_var) * part

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def forward(self, x: Any) -> Any:
        x = self._checked(x)
        mean, var, weight, bias = self.running_mean, self.running_var, self.weight, self.bias
        if not self.training and mean is not None:
            return ek.batch_norm(x, mean, var, weight, bias, eps=self.eps)
        if x.size == self.num_features:
            raise ShapeError(
                f"{type(self).__name__} in training was given shape {list(x.shape)}: one value per channel has no "
                "variance", span=ek.here(),
                hint="give it more than one example (drop the last batch if it has one), or call model.eval()",
            )  # fmt: skip
        if mean is None:
            return ek.batch_norm(x, None, None, weight, bias, training=True, eps=self.eps)
        # a momentum of 1 gives the statistics of the batch themselves
        result, *found = ek.batch_norm(x, mean, var, weight, bias, training=True, momentum=1.0, eps=self.eps)
        self._remember(*found)
        return result


class BatchNorm1d(_BatchNorm):
    """Each channel with mean 0 and variance 1 over the batch (× length), then scaled and moved."""

    ndims, what = (2, 3), "batch × channels (× length)"


class BatchNorm2d(_BatchNorm):
    """Each channel with mean 0 and variance 1 over batch, height and width, then scaled and moved."""

    ndims, what = (4,), "batch × channels × height × width"


class BatchNorm3d(_BatchNorm):
    """Each channel with mean 0 and variance 1 over batch, depth, height and width, then scaled and moved."""

    ndims, what = (5,), "batch × channels × depth × height × width"


class BatchNorm(_BatchNorm):
    """Each channel (axis 1) with mean 0 and variance 1 over all other axes, however many there are."""

    ndims, what = (2, 3, 4, 5), "batch × channels (× …)"


# --- by the instance --------------------------------------------------------------------------------------------------


class _InstanceNorm(_Running):
    counts = False

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def _channel_axis(self, x: Any) -> int:
        return 0 if x.ndim == self.ndims[0] else 1

    def forward(self, x: Any) -> Any:
        x = self._checked(x)
        if x.ndim == self.ndims[0]:
            return ek.squeeze(self._batched(ek.unsqueeze(x, 0)), 0)
        return self._batched(x)

    def _batched(self, x: Any) -> Any:
        mean, var = self.running_mean, self.running_var
        if not self.training and mean is not None:
            return ek.batch_norm(x, mean, var, self.weight, self.bias, eps=self.eps)
        count = x.size // max(x.shape[0] * x.shape[1], 1)
        if self.training and count == 1:
            raise ShapeError(
                f"{type(self).__name__} in training was given shape {list(x.shape)}: one value per channel has no "
                "variance", span=ek.here(),
            )  # fmt: skip
        if mean is not None:
            inner = tuple(range(2, x.ndim))
            centre = ek.mean(x, (0, *inner))
            spread = ek.mean(ek.var(x, inner, correction=1), 0)
            self._remember(centre, spread)
        return ek.instance_norm(x, self.weight, self.bias, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each example with mean 0 and variance 1 over the length."""

    ndims, what = (2, 3), "(batch ×) channels × length"


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each example with mean 0 and variance 1 over height and width."""

    ndims, what = (3, 4), "(batch ×) channels × height × width"


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each example with mean 0 and variance 1 over depth, height and width."""

    ndims, what = (4, 5), "(batch ×) channels × depth × height × width"


# --- by the example ---------------------------------------------------------------------------------------------------


def _shape(who: str, given: int | Sequence[int]) -> tuple[int, ...]:
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    positive(who, **{f"normalized_shape[{k}]": n for k, n in enumerate(found)})
    return tuple(int(n) for n in found)


class LayerNorm(_Affine):
    """Mean 0 and variance 1 over the last axes, of a given shape, then scaled and moved."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.eps = _shape("LayerNorm", normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._scales(self.normalized_shape, elementwise_affine, bias, dtype)

    def forward(self, x: Any) -> Any:
        (x,) = raised(x)
        return ek.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Affine):
    """Root mean square 1 over the last axes, of a given shape, then scaled."""

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.eps = _shape("RMSNorm", normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._scales(self.normalized_shape, elementwise_affine, False, dtype)

    def forward(self, x: Any) -> Any:
        (x,) = raised(x)
        return ek.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Mean 0 and variance 1 over each group of channels (axis 1) and all that follows, then scaled and moved."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: Any = None
    ) -> None:
        super().__init__()
        positive("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ShapeError(f"GroupNorm: {num_channels} channels do not make {num_groups} groups", span=ek.here())
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._scales((num_channels,), affine, True, dtype)

    def forward(self, x: Any) -> Any:
        features("GroupNorm", x, self.num_channels, "num_channels", axis=1)
        (x,) = raised(x)
        return ek.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Each element divided by a power of the mean square of the channels around it (AlexNet's)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        positive("LocalResponseNorm", size=size)
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Any) -> Any:
        (x,) = raised(x)
        return ek.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
