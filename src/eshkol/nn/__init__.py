"""Neural networks: modules, layers, models, initialisers and losses, on tensors alone.

import eshkol as ek
from eshkol import nn

model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
"""

from __future__ import annotations

from typing import Any

from eshkol.nn import functional, init, utils
from eshkol.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Swish,
    Tanh,
    Tanhshrink,
    Threshold,
)
from eshkol.nn.attention import MultiheadAttention, SelfAttention
from eshkol.nn.containers import Lambda, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from eshkol.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    DepthwiseConv2d,
)
from eshkol.nn.functional import functional_call, parameters_of
from eshkol.nn.gpt import GPT, GPTBlock, GPTConfig
from eshkol.nn.layers import (
    AlphaDropout,
    Bilinear,
    CosineSimilarity,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    Embedding,
    Flatten,
    Identity,
    Linear,
    PixelShuffle,
    Unflatten,
    Upsample,
)
from eshkol.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CategoricalCrossEntropyLoss,
    CombinedLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    FocalLoss,
    GaussianNLLLoss,
    HingeLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    Loss,
    MSELoss,
    NLLLoss,
    PoissonNLLLoss,
    SmoothL1Loss,
    TripletMarginLoss,
    WeightedLoss,
)
from eshkol.nn.module import Module, Parameter
from eshkol.nn.norms import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from eshkol.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    GlobalAvgPool2d,
    GlobalMaxPool2d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from eshkol.nn.positions import PositionalEncoding, RotaryEmbedding
from eshkol.nn.precision import autocast
from eshkol.nn.recipes import LAYERS as _LAYERS
from eshkol.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from eshkol.nn.torch_layers import (
    ConstantPad1d,
    ConstantPad2d,
    CTCLoss,
    Fold,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    PairwiseDistance,
    PixelUnshuffle,
    ReflectionPad1d,
    ReflectionPad2d,
    ReplicationPad1d,
    ReplicationPad2d,
    SoftMarginLoss,
    Unfold,
    ZeroPad1d,
    ZeroPad2d,
)
from eshkol.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from eshkol.nn.vision import (
    AlexNet,
    BasicBlock,
    Bottleneck,
    InceptionModule,
    ResidualBlock,
    ResNet,
    resnet18,
    resnet20,
    resnet34,
    resnet50,
)
from eshkol.tensors.sizes import no_attribute

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "Bilinear", "CategoricalCrossEntropyLoss", "CombinedLoss", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss",
    "DepthwiseConv2d", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "Flatten", "FocalLoss",
    "GaussianNLLLoss", "GlobalAvgPool2d", "GlobalMaxPool2d", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish",
    "Hardtanh", "HingeLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss",
    "L1Loss", "Lambda", "LayerNorm", "LeakyReLU", "Linear", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "Loss",
    "MSELoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Mish", "Module", "ModuleDict", "ModuleList", "NLLLoss", "PReLU",
    "Parameter", "ParameterDict", "ParameterList", "PixelShuffle", "PoissonNLLLoss", "PositionalEncoding", "RMSNorm",
    "ReLU", "ReLU6", "RotaryEmbedding", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink", "Threshold", "TripletMarginLoss",
    "Unflatten", "Upsample", "WeightedLoss", "autocast", "functional", "functional_call", "init", "parameters_of",
    "utils",
]  # fmt: skip
__all__ += [
    "GPT",
    "GRU",
    "LSTM",
    "RNN",
    "AlexNet",
    "BasicBlock",
    "Bottleneck",
    "CTCLoss",
    "ConstantPad1d",
    "ConstantPad2d",
    "Fold",
    "GPTBlock",
    "GPTConfig",
    "GRUCell",
    "HingeEmbeddingLoss",
    "InceptionModule",
    "LSTMCell",
    "MarginRankingLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "PairwiseDistance",
    "PixelUnshuffle",
    "RNNCell",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ResNet",
    "ResidualBlock",
    "SelfAttention",
    "SoftMarginLoss",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unfold",
    "ZeroPad1d",
    "ZeroPad2d",
    "resnet18",
    "resnet20",
    "resnet34",
    "resnet50",
]  # fmt: skip

_LOSSES = (
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    CTCLoss,
    SoftMarginLoss,
)  # beside those that are rows
_WITHOUT_RECIPE = (Module, Lambda, WeightedLoss, CombinedLoss, *_LOSSES)  # a base, and what holds functions
_LAYERS.update(
    {
        found.__name__: found
        for found in map(globals().__getitem__, __all__)
        if isinstance(found, type)
        and issubclass(found, Module)
        and not issubclass(found, Loss)
        and found not in _WITHOUT_RECIPE
    }
)


def __getattr__(name: str) -> Any:
    raise no_attribute(name, dict.fromkeys(__all__), "eshkol.nn")
