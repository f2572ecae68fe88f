"""Steps of the networks in Eshkol: `ek.train.Step`, as a user calls it."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import eshkol as ek
from bench.models import DECAY, DECAY_SQUARES, EPSILON, RATE
from bench.steps.models import Arrays, Batch
from bench.steps.networks import networks
from eshkol.tensors.devices import current_backend
from eshkol.train.step import Step


class OurSteps:
    """Steps of a network with Adam: compiled as a whole, unless `jit` is False."""

    def __init__(self, name: str, params: Arrays, batch: Batch, jit: bool = True) -> None:
        current_backend()  # imported with the library, not in the first step
        attention = partial(ek.attention, causal=True)
        words = SimpleNamespace(relu=ek.relu, gelu=ek.gelu, max_pool2d=ek.max_pool2d, attention=attention)
        self.module = networks(ek.nn, words)[name]()
        self.module.load_state_dict(params)
        self.optimizer = ek.optim.Adam(self.module.parameters(), RATE, (DECAY, DECAY_SQUARES), EPSILON)
        self.run = Step(self.module, ek.cross_entropy, self.optimizer, jit=jit)
        self.batch = [ek.tensor(a) for a in batch]
        self.names = list(params)

    def step(self) -> Any:
        """The loss before a step."""
        return self.run(*self.batch).loss

    def means(self) -> list[np.ndarray]:
        """Of the gradients, as Adam keeps them."""
        named = dict(self.module.named_parameters())
        return [self.optimizer.state[named[key]]["exp_avg"].numpy() for key in self.names]
