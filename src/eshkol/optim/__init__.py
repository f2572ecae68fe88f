"""Training's arithmetic: optimizers, schedules, clipping, averages of weights, loss scaling; on tensors alone.

optimizer = ek.optim.AdamW(model.parameters(), lr=3e-4)
loss.backward(); optimizer.step(); optimizer.zero_grad()
"""

from __future__ import annotations

from typing import Any

from eshkol.nn.gradients import (
    clip_grad_norm_,
    clip_grad_value_,
    clipped,
    clipped_by_value,
    global_norm,
    l1_penalty,
    l2_penalty,
)
from eshkol.optim import functional, lr_scheduler
from eshkol.optim.averaging import EMA, SWA
from eshkol.optim.base import (
    LAMB,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    Lion,
    NAdam,
    Optimizer,
    RAdam,
    RMSprop,
)
from eshkol.optim.rules import RULES
from eshkol.optim.scaling import LossScale
from eshkol.optim.schedules import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
    WarmupLR,
)
from eshkol.tensors.sizes import no_attribute

__all__ = [
    "EMA", "LAMB", "RULES", "SGD", "SWA", "Adadelta", "Adagrad", "Adam", "AdamW", "ChainedScheduler", "ConstantLR",
    "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "Lion",
    "LossScale", "MultiStepLR", "NAdam", "OneCycleLR", "Optimizer", "PolynomialLR", "RAdam", "RMSprop",
    "ReduceLROnPlateau", "SequentialLR", "StepLR", "WarmupLR", "clip_grad_norm_", "clip_grad_value_", "clipped",
    "clipped_by_value", "functional", "global_norm", "l1_penalty", "l2_penalty", "lr_scheduler",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise no_attribute(name, dict.fromkeys(__all__), "eshkol.optim")
