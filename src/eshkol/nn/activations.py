"""Activations as layers: one line each, made of the row of the op table that computes it (rows.py)."""

from __future__ import annotations

from typing import Any

from eshkol.nn.layers import positive
from eshkol.nn.module import Module, Parameter
from eshkol.nn.precision import raised
from eshkol.nn.rows import layer_of
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

ReLU = layer_of("ReLU", "relu")
ReLU6 = layer_of("ReLU6", "relu6")
LeakyReLU = layer_of("LeakyReLU", "leaky_relu")
ELU = layer_of("ELU", "elu")
SELU = layer_of("SELU", "selu")
CELU = layer_of("CELU", "celu")
GELU = layer_of("GELU", "gelu")
SiLU = Swish = layer_of("SiLU", "silu")
Mish = layer_of("Mish", "mish")
Sigmoid = layer_of("Sigmoid", "sigmoid")
Tanh = layer_of("Tanh", "tanh")
Softplus = layer_of("Softplus", "softplus", defaults={"threshold": 20.0})
Softsign = layer_of("Softsign", "softsign")
LogSigmoid = layer_of("LogSigmoid", "log_sigmoid")
Hardtanh = layer_of("Hardtanh", "hard_tanh")
Hardsigmoid = layer_of("Hardsigmoid", "hard_sigmoid")
Hardswish = layer_of("Hardswish", "hard_swish")
Hardshrink = layer_of("Hardshrink", "hard_shrink")
Softshrink = layer_of("Softshrink", "soft_shrink")
Tanhshrink = layer_of("Tanhshrink", "tanh_shrink")
Threshold = layer_of("Threshold", "threshold")
GLU = layer_of("GLU", "glu")
Softmax = layer_of("Softmax", "softmax", wide=True)
LogSoftmax = layer_of("LogSoftmax", "log_softmax", wide=True)
Softmin = layer_of("Softmin", "softmin", wide=True)


class Softmax2d(Module):
    """Softmax over the channels of (batch ×) channels × height × width."""

    def forward(self, x: Any) -> Any:
        (x,) = raised(x)
        return ek.softmax(x, axis=-3)


class PReLU(Module):
    """x where it is positive, else x times a weight that is learned: one, or one per channel (axis 1)."""

    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        positive("PReLU", num_parameters=num_parameters)
        self.num_parameters = num_parameters
        self.weight = Parameter(ek.full((num_parameters,), init, dtype=dtype))

    def forward(self, x: Any) -> Any:
        return ek.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
