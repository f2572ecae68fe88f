"""Networks for images: residual networks, modules of Inception, and a network like AlexNet.

Images are batch × channels × height × width. Parts are named as in torchvision, so that states carry over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.errors import ShapeError
from eshkol.nn import init
from eshkol.nn.activations import ReLU
from eshkol.nn.containers import Sequential
from eshkol.nn.convolution import Conv2d
from eshkol.nn.layers import Dropout, Linear, positive
from eshkol.nn.module import Module
from eshkol.nn.norms import BatchNorm2d
from eshkol.nn.pooling import MaxPool2d
from eshkol.tensors import api as ek


def _images(x: Any, channels: int, who: str) -> None:
    if x.ndim != 4 or x.shape[1] != channels:
        raise ShapeError(
            f"{who} takes batch × {channels} channels × height × width, not {list(x.shape)}", span=ek.here()
        )


def _around(in_channels: int, out_channels: int, stride: int, dtype: Any) -> Sequential | None:
    """The path around a block: nothing where shapes stay, else a convolution with a norm."""
    if stride == 1 and in_channels == out_channels:
        return None
    conv = Conv2d(in_channels, out_channels, 1, stride=stride, bias=False, dtype=dtype)
    return Sequential(conv, BatchNorm2d(out_channels, dtype=dtype))


class BasicBlock(Module):
    """relu(x + two convolutions of it), with norms; the path around converts x where its shape changes.

    >>> nn.BasicBlock(16, 32, stride=2)(ek.zeros((1, 16, 8, 8))).shape
    (1, 32, 4, 4)
    """

    expansion = 1

    def __init__(self, in_channels: int, channels: int, stride: int = 1, dtype: Any = None) -> None:
        super().__init__()
        self.conv1 = Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False, dtype=dtype)
        self.bn1 = BatchNorm2d(channels, dtype=dtype)
        self.conv2 = Conv2d(channels, channels, 3, padding=1, bias=False, dtype=dtype)
        self.bn2 = BatchNorm2d(channels, dtype=dtype)
        self.downsample = _around(in_channels, channels, stride, dtype)

    def forward(self, x: Any) -> Any:
        around = x if self.downsample is None else self.downsample(x)
        inner = ek.relu(self.bn1(self.conv1(x)))
        return ek.relu(self.bn2(self.conv2(inner)) + around)


ResidualBlock = BasicBlock


class Bottleneck(Module):
    """relu(x + convolutions of it through fewer channels): 1×1, 3×3 (with the stride), 1×1 to four times as many.

    >>> nn.Bottleneck(64, 16)(ek.zeros((1, 64, 8, 8))).shape
    (1, 64, 8, 8)
    """

    expansion = 4

    def __init__(self, in_channels: int, channels: int, stride: int = 1, dtype: Any = None) -> None:
        super().__init__()
        wide = channels * self.expansion
        self.conv1 = Conv2d(in_channels, channels, 1, bias=False, dtype=dtype)
        self.bn1 = BatchNorm2d(channels, dtype=dtype)
        self.conv2 = Conv2d(channels, channels, 3, stride=stride, padding=1, bias=False, dtype=dtype)
        self.bn2 = BatchNorm2d(channels, dtype=dtype)
        self.conv3 = Conv2d(channels, wide, 1, bias=False, dtype=dtype)
        self.bn3 = BatchNorm2d(wide, dtype=dtype)
        self.downsample = _around(in_channels, wide, stride, dtype)

    def forward(self, x: Any) -> Any:
        around = x if self.downsample is None else self.downsample(x)
        inner = ek.relu(self.bn1(self.conv1(x)))
        inner = ek.relu(self.bn2(self.conv2(inner)))
        return ek.relu(self.bn3(self.conv3(inner)) + around)


class ResNet(Module):
    """A residual network: stages of blocks, each stage at half the size and with twice the channels of the one before.

    `layers` says how many blocks each stage has. With `small`, for images like CIFAR's, the first convolution is 3×3
    and nothing is pooled before the stages.

    >>> nn.ResNet(nn.BasicBlock, [1, 1], num_classes=10, width=16, small=True)(ek.zeros((1, 3, 32, 32))).shape
    (1, 10)
    """

    def __init__(
        self, block: type[BasicBlock] | type[Bottleneck], layers: Sequence[int], num_classes: int = 1000, *,
        in_channels: int = 3, width: int = 64, small: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        positive("ResNet", num_classes=num_classes, in_channels=in_channels, width=width)
        positive("ResNet", **{f"layers[{n}]": count for n, count in enumerate(layers)})
        self.in_channels, self.small, self.stages = in_channels, small, len(layers)
        size, stride, padding = (3, 1, 1) if small else (7, 2, 3)
        self.conv1 = Conv2d(in_channels, width, size, stride=stride, padding=padding, bias=False, dtype=dtype)
        self.bn1 = BatchNorm2d(width, dtype=dtype)
        channels = width
        for stage, count in enumerate(layers):
            blocks = []
            for n in range(count):
                halved = 2 if stage > 0 and n == 0 else 1
                blocks.append(block(channels, width << stage, stride=halved, dtype=dtype))
                channels = (width << stage) * block.expansion
            self.add_module(f"layer{stage + 1}", Sequential(*blocks))
        self.fc = Linear(channels, num_classes, dtype=dtype)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        _images(x, self.in_channels, "ResNet")
        x = ek.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = ek.max_pool2d(x, 3, stride=2, padding=1)
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(ek.mean(x, (2, 3)))


def resnet18(num_classes: int = 1000, **how: Any) -> ResNet:
    """The residual network of 18 layers; further arguments are those of `ResNet`."""
    return ResNet(BasicBlock, [2, 2, 2, 2], num_classes, **how)


def resnet34(num_classes: int = 1000, **how: Any) -> ResNet:
    """The residual network of 34 layers."""
    return ResNet(BasicBlock, [3, 4, 6, 3], num_classes, **how)


def resnet50(num_classes: int = 1000, **how: Any) -> ResNet:
    """The residual network of 50 layers, with bottlenecks."""
    return ResNet(Bottleneck, [3, 4, 6, 3], num_classes, **how)


def resnet20(num_classes: int = 10, **how: Any) -> ResNet:
    """The residual network of 20 layers for images of 32 × 32, such as CIFAR's."""
    return ResNet(BasicBlock, [3, 3, 3], num_classes, **{"width": 16, "small": True} | how)


class ConvNorm(Module):
    """relu of a norm of a convolution without bias."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, padding: int = 0, dtype: Any = None
    ) -> None:
        super().__init__()
        self.conv = Conv2d(in_channels, out_channels, kernel_size, padding=padding, bias=False, dtype=dtype)
        self.bn = BatchNorm2d(out_channels, eps=0.001, dtype=dtype)

    def forward(self, x: Any) -> Any:
        return ek.relu(self.bn(self.conv(x)))


class InceptionModule(Module):
    """Four ways side by side, joined along the channels: 1×1; 1×1 then 3×3; 1×1 then 5×5; pooling then 1×1.

    >>> nn.InceptionModule(192, 64, 96, 128, 16, 32, 32)(ek.zeros((1, 192, 28, 28))).shape
    (1, 256, 28, 28)
    """

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int, pool_proj: int,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channels, self.out_channels = in_channels, ch1x1 + ch3x3 + ch5x5 + pool_proj
        self.branch1 = ConvNorm(in_channels, ch1x1, 1, dtype=dtype)
        self.branch2 = Sequential(
            ConvNorm(in_channels, ch3x3red, 1, dtype=dtype), ConvNorm(ch3x3red, ch3x3, 3, padding=1, dtype=dtype)
        )
        self.branch3 = Sequential(
            ConvNorm(in_channels, ch5x5red, 1, dtype=dtype), ConvNorm(ch5x5red, ch5x5, 5, padding=2, dtype=dtype)
        )
        self.branch4 = Sequential(MaxPool2d(3, stride=1, padding=1), ConvNorm(in_channels, pool_proj, 1, dtype=dtype))

    def forward(self, x: Any) -> Any:
        _images(x, self.in_channels, "InceptionModule")
        return ek.concat([branch(x) for branch in (self.branch1, self.branch2, self.branch3, self.branch4)], 1)


class AlexNet(Module):
    """Five convolutions and three linear layers, as AlexNet's; `width` and `hidden` make it smaller.

    With `small`, for images of about 32 × 32, the first convolution is 3×3 without stride; what the convolutions give
    is pooled to `pooled` × `pooled` (6, or 4 of small images) before the linear layers.

    >>> nn.AlexNet(10, width=16, hidden=64, small=True)(ek.zeros((1, 3, 32, 32))).shape
    (1, 10)
    """

    def __init__(
        self, num_classes: int = 1000, dropout: float = 0.5, *, in_channels: int = 3, width: int = 64,
        hidden: int = 4096, small: bool = False, pooled: int | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        pooled = (4 if small else 6) if pooled is None else pooled
        positive("AlexNet", num_classes=num_classes, in_channels=in_channels, width=width, hidden=hidden, pooled=pooled)
        self.in_channels, self.pooled = in_channels, pooled
        pool = (2, 2) if small else (3, 2)
        size, stride, padding = (3, 1, 1) if small else (11, 4, 2)
        self.features = Sequential(
            Conv2d(in_channels, width, size, stride=stride, padding=padding, dtype=dtype), ReLU(), MaxPool2d(*pool),
            Conv2d(width, 3 * width, 5, padding=2, dtype=dtype), ReLU(), MaxPool2d(*pool),
            Conv2d(3 * width, 6 * width, 3, padding=1, dtype=dtype), ReLU(),
            Conv2d(6 * width, 4 * width, 3, padding=1, dtype=dtype), ReLU(),
            Conv2d(4 * width, 4 * width, 3, padding=1, dtype=dtype), ReLU(), MaxPool2d(*pool),
        )  # fmt: skip
        self.classifier = Sequential(
            Dropout(dropout), Linear(4 * width * pooled * pooled, hidden, dtype=dtype), ReLU(),
            Dropout(dropout), Linear(hidden, hidden, dtype=dtype), ReLU(),
            Linear(hidden, num_classes, dtype=dtype),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        _images(x, self.in_channels, "AlexNet")
        x = self.features(x)
        if x.shape[2:] != (self.pooled, self.pooled):
            x = ek.adaptive_avg_pool2d(x, (self.pooled, self.pooled))
        return self.classifier(ek.reshape(x, (x.shape[0], -1)))
