"""Layers that PyTorch has and that are a function of the library: padding, some losses; and `autocast` in its words.

Comes in: tensors. Goes out: tensors: padded at the last axes, or what the function gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from eshkol.nn import precision
from eshkol.nn.module import Module
from eshkol.nn.rows import layer_of
from eshkol.nn.torch_functional import OWN, pad


class _Padding(Module):
    """Elements added around the last axes: as many on all sides, or (left, right, top, bottom)."""

    axes: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | Sequence[int], value: float = 0.0) -> None:
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, Iterable) else (padding,) * (2 * self.axes)
        self.value = value

    def forward(self, x: Any) -> Any:
        return pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}" + (f", value={self.value}" if self.mode == "constant" else "")


def _layer(name: str, axes: int, mode: str) -> Any:
    told = {"constant": "One value", "reflect": "The reflection", "replicate": "The outermost elements"}[mode]
    doc = f"{told} around the last {axes} axes." if axes > 1 else f"{told} around the last axis."
    return type(name, (_Padding,), {"axes": axes, "mode": mode, "__doc__": doc, "__module__": __name__})


ZeroPad1d, ZeroPad2d = (_layer(f"ZeroPad{n}d", n, "constant") for n in (1, 2))
ConstantPad1d, ConstantPad2d = (_layer(f"ConstantPad{n}d", n, "constant") for n in (1, 2))
ReflectionPad1d, ReflectionPad2d = (_layer(f"ReflectionPad{n}d", n, "reflect") for n in (1, 2))
ReplicationPad1d, ReplicationPad2d = (_layer(f"ReplicationPad{n}d", n, "replicate") for n in (1, 2))


class _FunctionLayer(Module):
    """A function with all but its first arguments fixed."""

    function: ClassVar[str]  # of torch_functional.py
    inputs: ClassVar[int] = 2

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__()
        parameters = [*inspect.signature(OWN[self.function]).parameters.values()][self.inputs :]
        self.given = inspect.Signature(parameters).bind(*args, **given).arguments

    def forward(self, *values: Any) -> Any:
        return OWN[self.function](*values, **self.given)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.given.items())


def _of(name: str, function: str, inputs: int = 2) -> Any:
    told = {"function": function, "inputs": inputs, "__doc__": OWN[function].__doc__, "__module__": __name__}
    return type(name, (_FunctionLayer,), told)


MarginRankingLoss = _of("MarginRankingLoss", "margin_ranking_loss", 3)
HingeEmbeddingLoss = _of("HingeEmbeddingLoss", "hinge_embedding_loss")
SoftMarginLoss = _of("SoftMarginLoss", "soft_margin_loss")
MultiLabelSoftMarginLoss = _of("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss")
MultiMarginLoss = _of("MultiMarginLoss", "multi_margin_loss")
CTCLoss = _of("CTCLoss", "ctc_loss", 4)
PairwiseDistance = _of("PairwiseDistance", "pairwise_distance")
Unfold = layer_of("Unfold", "unfold")
Fold = layer_of("Fold", "fold")
PixelUnshuffle = layer_of("PixelUnshuffle", "pixel_unshuffle")


class autocast(precision.autocast):
    """`nn.autocast` in PyTorch's words: a device first, and whether it is on."""

    def __init__(self, device_type: str = "cpu", dtype: Any = "bfloat16", enabled: bool = True) -> None:
        super().__init__(dtype if enabled else None)
