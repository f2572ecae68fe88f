"""Steps of the networks in PyTorch: its modules and its own Adam."""

from __future__ import annotations

import logging
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench import peers
from bench.models import DECAY, DECAY_SQUARES, EPSILON, RATE, Code
from bench.steps.models import Arrays, Batch
from bench.steps.networks import networks


class TorchSteps:
    """Steps of a network as it is, or of model and loss compiled; Adam is `fused`, the fastest that PyTorch has."""

    def __init__(self, name: str, params: Arrays, batch: Batch, compiled: bool) -> None:
        torch = peers.torch()
        f = torch.nn.functional
        attention = partial(f.scaled_dot_product_attention, is_causal=True)
        words = SimpleNamespace(relu=f.relu, gelu=f.gelu, max_pool2d=f.max_pool2d, attention=attention)
        self.module = networks(torch.nn, words)[name]()
        self.module.load_state_dict({key: torch.from_numpy(np.array(a)) for key, a in params.items()})
        self.names = list(params)
        self.batch = [torch.from_numpy(a) for a in batch]
        self.optimizer = torch.optim.Adam(self.module.parameters(), RATE, (DECAY, DECAY_SQUARES), EPSILON, fused=True)
        self.loss: Code = lambda inputs, targets: f.cross_entropy(self.module(inputs), targets)
        if compiled:
            torch._dynamo.reset()
            torch._logging.set_logs(dynamo=logging.ERROR)
            self.loss = torch.compile(self.loss, dynamic=False)

    def step(self) -> Any:
        """The loss before a step."""
        self.optimizer.zero_grad()
        loss = self.loss(*self.batch)
        loss.backward()
        self.optimizer.step()
        return loss

    def means(self) -> list[np.ndarray]:
        """Of the gradients, as Adam keeps them."""
        state, named = self.optimizer.state, dict(self.module.named_parameters())
        return [state[named[key]]["exp_avg"].numpy() for key in self.names]
