"""Layers and losses that PyTorch has under the same name with the same arguments: one line is one comparison.

The same lines serve the comparison with PyTorch itself (tests/peers/test_layers.py), the script that stores what it
gives (make_references.py) and the comparison with what is stored (test_references.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, Any]


@dataclass(frozen=True)
class In:
    """An input: its shape, between which numbers; integers below `classes`, or one of `choice`, if that is given."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    classes: int | None = None
    choice: tuple[float, ...] | None = None
    spread: bool = False  # all elements different, well apart: for extremes
    shares: bool = False  # positive, of sum 1 along axis 1
    ignored: int | None = None  # the first element

    def __str__(self) -> str:
        said = "x".join(map(str, self.shape))
        if self.classes is not None:
            return f"{said} classes" + ("" if self.ignored is None else f" but {self.ignored}")
        kind = "shares" if self.shares else f"to {self.high:g}" if self.high != 2 else ""
        return f"{said} {kind}".rstrip()

    def drawn(self, rng: np.random.Generator) -> Any:
        if self.classes is not None:
            found = rng.integers(0, self.classes, self.shape)
            if self.ignored is not None:
                found.flat[0] = self.ignored
            return found
        if self.choice is not None:
            return rng.choice(np.array(self.choice), self.shape)
        if self.spread:
            return rng.permutation(int(np.prod(self.shape))).reshape(self.shape) * 0.37 - 3.0
        values = rng.uniform(self.low, self.high, self.shape)
        if self.shares:
            values = np.exp(values)
            return values / values.sum(1, keepdims=True)
        return values


@dataclass(frozen=True)
class Case:
    """A layer, how it is made, and what it is given; `calls` times, in training unless `training` is false."""

    kind: str
    args: tuple[Any, ...]
    inputs: tuple[In, ...]
    given: dict[str, Any] = field(default_factory=dict)
    training: bool = True
    calls: int = 1
    bound: float = 0.0  # of the comparison, if PyTorch is not so exact itself

    @property
    def name(self) -> str:
        shown = [repr(a) for a in self.args] + [f"{k}={_shown(v)}" for k, v in self.given.items()]
        mode = "" if self.training else " eval"
        return f"{self.kind}({', '.join(shown)}){mode} of {', '.join(map(str, self.inputs))}"


def _shown(value: Any) -> str:
    return "…" if isinstance(value, np.ndarray) else repr(value)


def case(
    kind: str, *args: Any, inputs: Any, training: bool = True, calls: int = 1, bound: float = 0.0, **given: Any
) -> Case:
    found = tuple(x if isinstance(x, In) else In(x) for x in (inputs if isinstance(inputs, list) else [inputs]))
    return Case(kind, args, found, given, training, calls, bound)


IMAGE, SIGNAL, VOLUME = (2, 4, 5, 4), (2, 4, 7), (1, 2, 3, 4, 5)
PER_CLASS = np.array([0.5, 1.0, 2.0])
LOGITS, LABELS = (5, 3), In((5,), classes=3)
CHANCES, TARGETS = In((3, 4), 0.05, 0.95), In((3, 4), 0.0, 1.0)

LAYERS = [
    case("Linear", 3, 5, inputs=(4, 3)), case("Linear", 3, 5, bias=False, inputs=(2, 4, 3)),
    case("Bilinear", 3, 4, 2, inputs=[(5, 3), (5, 4)]), case("Identity", inputs=(2, 3)),
    case("Embedding", 7, 3, inputs=In((2, 4), classes=7)),
    case("Embedding", 7, 3, padding_idx=2, inputs=In((3, 5), classes=7)),
    case("Flatten", inputs=(2, 3, 4)), case("Flatten", 0, 1, inputs=(2, 3, 4)),
    case("Unflatten", 1, (2, 3), inputs=(4, 6)), case("CosineSimilarity", inputs=[(3, 4), (3, 4)]),
    case("PixelShuffle", 2, inputs=(1, 8, 2, 3)), case("Upsample", scale_factor=2, inputs=(1, 2, 3, 4)),
    case("Upsample", size=(5, 7), mode="bilinear", inputs=(1, 2, 3, 4)),
    case("Dropout", 0.5, training=False, inputs=(3, 4)), case("Dropout2d", 0.5, training=False, inputs=IMAGE),
    case("AlphaDropout", 0.5, training=False, inputs=(3, 4)),
    # convolutions
    case("Conv1d", 4, 6, 3, inputs=SIGNAL), case("Conv1d", 4, 6, 3, stride=2, padding=2, dilation=2, inputs=SIGNAL),
    case("Conv1d", 4, 6, 4, padding="same", groups=2, inputs=SIGNAL), case("Conv1d", 4, 2, 3, inputs=(4, 7)),
    case("Conv2d", 4, 3, 3, inputs=IMAGE), case("Conv2d", 4, 6, (3, 2), stride=(2, 1), padding=(1, 2), inputs=IMAGE),
    case("Conv2d", 4, 8, 3, padding=1, groups=4, bias=False, inputs=IMAGE),
    case("Conv2d", 4, 2, 3, padding=1, padding_mode="reflect", inputs=IMAGE),
    case("Conv2d", 4, 2, 3, padding="same", padding_mode="circular", dilation=2, inputs=IMAGE),
    case("Conv2d", 4, 2, 3, padding=(1, 2), padding_mode="replicate", inputs=IMAGE),
    case("Conv3d", 2, 3, 2, stride=2, padding=1, inputs=(1, 2, 3, 4, 4)),
    case("ConvTranspose1d", 4, 3, 3, stride=2, padding=1, output_padding=1, inputs=SIGNAL),
    case("ConvTranspose2d", 4, 6, 3, stride=2, groups=2, dilation=(1, 2), inputs=(1, 4, 3, 4)),
    case("ConvTranspose3d", 4, 2, 2, stride=(1, 2, 1), output_padding=(0, 1, 0), groups=2, inputs=(1, 4, 2, 2, 3)),
    # pooling
    case("MaxPool1d", 3, inputs=In(SIGNAL, spread=True)),
    case("MaxPool2d", 2, inputs=In(IMAGE, spread=True)),
    case("MaxPool2d", 3, 2, padding=1, ceil_mode=True, inputs=In(IMAGE, spread=True)),
    case("AvgPool1d", 3, 2, 1, inputs=SIGNAL), case("AvgPool2d", 2, inputs=IMAGE),
    case("AvgPool2d", 3, 2, 1, count_include_pad=False, inputs=IMAGE),
    case("AdaptiveAvgPool1d", 4, inputs=SIGNAL), case("AdaptiveAvgPool2d", (3, 2), inputs=IMAGE),
    case("AdaptiveMaxPool1d", 4, inputs=In(SIGNAL, spread=True)),
    case("AdaptiveMaxPool2d", (2, 3), inputs=In(IMAGE, spread=True)),
    case("MaxPool3d", 2, 1, padding=1, dilation=(1, 2, 1), inputs=In(VOLUME, spread=True)),
    case("AvgPool3d", (2, 3, 2), 2, (1, 0, 1), ceil_mode=True, count_include_pad=False, inputs=VOLUME),
    case("AdaptiveAvgPool3d", (2, None, 3), inputs=VOLUME),
    case("AdaptiveMaxPool3d", 2, inputs=In(VOLUME, spread=True)),
    # normalizations
    case("BatchNorm1d", 4, inputs=(5, 4), calls=2), case("BatchNorm1d", 4, momentum=None, inputs=SIGNAL, calls=3),
    case("BatchNorm1d", 4, training=False, inputs=(5, 4)),
    case("BatchNorm1d", 4, track_running_stats=False, training=False, inputs=(5, 4)),
    case("BatchNorm2d", 4, inputs=IMAGE, calls=2), case("BatchNorm2d", 4, affine=False, eps=1e-3, inputs=IMAGE),
    case("BatchNorm3d", 2, momentum=0.5, inputs=(2, 2, 2, 3, 2)), case("LayerNorm", 5, inputs=(3, 5)),
    case("LayerNorm", (4, 5), eps=1e-3, bias=False, inputs=(2, 4, 5)),
    case("LayerNorm", 5, elementwise_affine=False, inputs=(3, 5)), case("RMSNorm", 5, inputs=(3, 5)),
    case("RMSNorm", (4, 5), eps=1e-3, inputs=(2, 4, 5)), case("GroupNorm", 2, 4, inputs=IMAGE),
    case("GroupNorm", 4, 4, affine=False, inputs=SIGNAL), case("InstanceNorm1d", 4, inputs=SIGNAL),
    case("InstanceNorm1d", 4, inputs=(4, 7)), case("InstanceNorm2d", 4, affine=True, inputs=IMAGE),
    case("InstanceNorm2d", 4, track_running_stats=True, inputs=IMAGE, calls=2),
    case("InstanceNorm2d", 4, track_running_stats=True, training=False, inputs=IMAGE),
    case("LocalResponseNorm", 3, alpha=0.5, inputs=IMAGE),
]  # fmt: skip

ACTIVATIONS = [
    *(case(kind, inputs=(3, 4)) for kind in (
        "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh", "Softplus",
        "Softsign", "LogSigmoid", "Hardtanh", "Hardswish", "Hardshrink", "Softshrink", "Tanhshrink",
        "PReLU", "GLU",
    )),
    case("Hardsigmoid", inputs=(3, 4), bound=1e-7),  # its sixth is a float32
    case("LeakyReLU", 0.2, inputs=(3, 4)), case("ELU", 0.5, inputs=(3, 4)), case("GELU", "tanh", inputs=(3, 4)),
    case("Softplus", 2.0, 1.0, inputs=(3, 4)), case("Hardtanh", -0.5, 0.25, inputs=(3, 4)),
    case("Threshold", 0.1, 2.0, inputs=(3, 4)), case("PReLU", 4, inputs=(3, 4)), case("GLU", 0, inputs=(4, 3)),
    *(case(kind, dim=dim, inputs=(3, 4)) for kind in ("Softmax", "LogSoftmax", "Softmin") for dim in (0, 1)),
    case("Softmax2d", inputs=(2, 3, 2, 2)),
]  # fmt: skip

LOSSES = [
    *(case(kind, reduction=how, inputs=[(3, 4), (3, 4)])
      for kind in ("MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss") for how in ("mean", "sum", "none")),
    case("HuberLoss", delta=0.5, inputs=[(3, 4), (3, 4)]), case("SmoothL1Loss", beta=0.5, inputs=[(3, 4), (3, 4)]),
    *(case("CrossEntropyLoss", reduction=how, inputs=[LOGITS, LABELS]) for how in ("mean", "sum", "none")),
    case("CrossEntropyLoss", weight=PER_CLASS, label_smoothing=0.1, inputs=[LOGITS, LABELS]),
    case("CrossEntropyLoss", weight=PER_CLASS, inputs=[(2, 3, 4), In((2, 4), classes=3)]),
    case("CrossEntropyLoss", ignore_index=1, inputs=[LOGITS, In((5,), classes=3, ignored=1)]),
    case("CrossEntropyLoss", inputs=[LOGITS, In((5,), classes=3, ignored=-100)]),
    case("CrossEntropyLoss", label_smoothing=0.2, inputs=[LOGITS, In(LOGITS, shares=True)]),
    case("CrossEntropyLoss", inputs=[In(LOGITS, -800.0, 800.0), LABELS]),
    case("NLLLoss", weight=PER_CLASS, inputs=[LOGITS, LABELS]),
    case("NLLLoss", reduction="none", inputs=[LOGITS, LABELS]),
    case("BCELoss", inputs=[CHANCES, TARGETS]), case("BCELoss", weight=np.arange(4.0), inputs=[CHANCES, TARGETS]),
    case("BCEWithLogitsLoss", inputs=[In((3, 4), -300.0, 300.0), TARGETS]),
    case("BCEWithLogitsLoss", pos_weight=np.arange(4.0), reduction="sum", inputs=[(3, 4), TARGETS]),
    case("KLDivLoss", reduction="batchmean", inputs=[(3, 4), In((3, 4), shares=True)]),
    case("KLDivLoss", reduction="sum", log_target=True, inputs=[(3, 4), (3, 4)]),
    case("PoissonNLLLoss", full=True, inputs=[(3, 4), In((3, 4), 1.5, 4.0)]),
    case("PoissonNLLLoss", log_input=False, inputs=[CHANCES, TARGETS]),
    case("GaussianNLLLoss", full=True, inputs=[(3, 4), (3, 4), In((3, 4), 0.5, 2.0)]),
    case("CosineEmbeddingLoss", margin=0.1, inputs=[(5, 4), (5, 4), In((5,), choice=(-1.0, 1.0))]),
    case("TripletMarginLoss", margin=2.0, swap=True, inputs=[(3, 4), (3, 4), (3, 4)]),
]  # fmt: skip

CASES = [*LAYERS, *ACTIVATIONS, *LOSSES]


def drawn(case: Case) -> list[Any]:
    """The inputs of a case, always the same."""
    rng = np.random.default_rng(sum(case.name.encode()))
    return [spec.drawn(rng) for spec in case.inputs]


def compared(found: dict[str, Any], expected: dict[str, Any], bound: float) -> None:
    """Compare what a layer gives; a gradient that PyTorch does not have is zero."""
    for name in found.keys() - expected.keys():
        assert name.startswith("input.")
        assert not found[name].any(), name
    for name, value in expected.items():
        scale = max(1.0, float(np.abs(value).max(initial=0)))
        np.testing.assert_allclose(found[name], value, rtol=bound, atol=bound * scale, err_msg=name)


def as_dtype(array: Any, dtype: str) -> Any:
    """Floats in a dtype, everything else as it is."""
    return array.astype(dtype) if array.dtype.kind == "f" else array
