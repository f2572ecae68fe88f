"""Convolutions as layers, over one, two or three axes, and transposed ones.

Weights are out × in/groups × kernel (transposed: in × out/groups × kernel), and begin as PyTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from eshkol.errors import ShapeError, TensorError
from eshkol.nn import init
from eshkol.nn.layers import features, positive
from eshkol.nn.module import Module, Parameter
from eshkol.nn.precision import lowered
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

Numbers = int | Sequence[int]

MODES = {"zeros": None, "reflect": "reflect", "replicate": "replicate", "circular": "circular"}  # ours → that of pad


def each(who: str, what: str, given: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """A number for each axis: one for all, or as many as there are axes."""
    found = (given,) * count if is_whole(given) else tuple(given)
    if len(found) != count or not all(is_whole(n, least) for n in found):
        raise ShapeError(
            f"{who}: {what} is one integer from {least} on, or {count} of them, not {given!r}", span=ek.here()
        )
    return tuple(int(n) for n in found)


class _Convolution(Module):
    """What all convolutions share: how channels and kernels are given, checked and shown."""

    axes: ClassVar[int]
    row: ClassVar[str]
    transposed: ClassVar[bool] = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Numbers, stride: Numbers, dilation: Numbers,
        groups: int, bias: bool, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        who = type(self).__name__
        positive(who, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{who}: {in_channels} input and {out_channels} output channels do not make {groups} groups",
                span=ek.here(),
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = each(who, "kernel_size", kernel_size, self.axes)
        self.stride = each(who, "stride", stride, self.axes)
        self.dilation = each(who, "dilation", dilation, self.axes)
        one, other = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (one, other // groups, *self.kernel_size)
        self.weight = Parameter(init.default_weight(shape, dtype))
        start = Parameter(init.default_bias(shape, out_channels, dtype)) if bias else None
        self.register_parameter("bias", start)

    def extra_repr(self) -> str:
        said = [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}"]
        usual = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
        for name, value in usual.items():
            found = getattr(self, name, value)
            if found not in (value, (value,) * self.axes):
                said.append(f"{name}={found!r}")
        return ", ".join(said) + ("" if self.bias is not None else ", bias=False")


class _Conv(_Convolution):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Numbers, stride: Numbers = 1,
        padding: Numbers | str = 0, dilation: Numbers = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, dtype)
        who = type(self).__name__
        if padding_mode not in MODES:
            raise TensorError(
                f"{who}: there is no padding_mode {padding_mode!r}", span=ek.here(), hint=f"modes: {', '.join(MODES)}"
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise TensorError(f'{who}: padding is numbers, "same" or "valid", not {padding!r}', span=ek.here())
        if padding == "same" and any(n != 1 for n in self.stride):
            raise TensorError(f'{who}: padding "same" needs stride 1, not {self.stride}', span=ek.here())
        self.padding = padding if isinstance(padding, str) else each(who, "padding", padding, self.axes, 0)
        self.padding_mode = padding_mode

    def _widths(self) -> tuple[tuple[int, int], ...]:
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return tuple((n // 2, n - n // 2) for n in totals)
        return ((0, 0),) * self.axes if self.padding == "valid" else tuple((int(n), int(n)) for n in self.padding)

    def forward(self, x: Any) -> Any:
        features(type(self).__name__, x, self.in_channels, "in_channels", -self.axes - 1, self.weight)
        x, weight, bias = lowered(x, self.weight, self.bias)
        padding: Any = self.padding
        mode = MODES[self.padding_mode]
        if mode is not None:
            x = ek.pad(x, (*((0, 0),) * (x.ndim - self.axes), *self._widths()), mode=mode)
            padding = 0
        return getattr(ek, self.row)(x, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Cross-correlation of (batch ×) channels × length with learned kernels."""

    axes, row = 1, "conv1d"


class Conv2d(_Conv):
    """Cross-correlation of (batch ×) channels × height × width with learned kernels.

    >>> nn.Conv2d(3, 8, 3, padding=1)(ek.ones((1, 3, 32, 32))).shape
    (1, 8, 32, 32)
    """

    axes, row = 2, "conv2d"


class Conv3d(_Conv):
    """Cross-correlation of (batch ×) channels × depth × height × width with learned kernels."""

    axes, row = 3, "conv3d"


class DepthwiseConv2d(Conv2d):
    """A convolution of images with `multiplier` kernels of its own for each channel."""

    def __init__(
        self, channels: int, kernel_size: Numbers, stride: Numbers = 1, padding: Numbers | str = 0,
        dilation: Numbers = 1, multiplier: int = 1, bias: bool = True, padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:  # fmt: skip
        positive("DepthwiseConv2d", channels=channels, multiplier=multiplier)
        super().__init__(
            channels, channels * multiplier, kernel_size, stride, padding, dilation, channels, bias, padding_mode, dtype
        )


class _ConvTranspose(_Convolution):
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Numbers, stride: Numbers = 1, padding: Numbers = 0,
        output_padding: Numbers = 0, groups: int = 1, bias: bool = True, dilation: Numbers = 1, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, dilation, groups, bias, dtype)
        who = type(self).__name__
        self.padding = each(who, "padding", padding, self.axes, 0)
        self.output_padding = each(who, "output_padding", output_padding, self.axes, 0)

    def forward(self, x: Any) -> Any:
        features(type(self).__name__, x, self.in_channels, "in_channels", -self.axes - 1, self.weight)
        x, weight, bias = lowered(x, self.weight, self.bias)
        how = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return getattr(ek, self.row)(x, weight, bias, *how)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of Conv1d: each element of what it is given adds a kernel to the result."""

    axes, row = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """The transpose of Conv2d: each element of what it is given adds a kernel to the result."""

    axes, row = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """The transpose of Conv3d: each element of what it is given adds a kernel to the result."""

    axes, row = 3, "conv_transpose3d"
