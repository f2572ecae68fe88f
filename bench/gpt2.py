"""Training steps of a GPT of GPT-2 small's shape on an NVIDIA GPU, beside PyTorch's as it is and compiled.

`python -m bench gpt2`. Mixed precision in bfloat16, AdamW, 8 texts of 1,024 tokens; with GPT-2's vocabulary of 50,257,
and with 50,304, which is a multiple of 64. A call is a burst of steps with one wait at the end; the device's own time
is shown beside it, as in `bench/gpu.py`. Needs a GPU, and compares with PyTorch where that is installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.gpu import with_events
from bench.harness import Result, race
from eshkol import nn, optim, train
from eshkol.tensors.devices import open_backend

TITLE = "GPT-2 small on the GPU"
VOCABULARIES = (50257, 50304)
TEXTS, CONTEXT, LAYERS, HEADS, WIDTH = 8, 1024, 12, 12, 768
STEPS = 5  # of a burst


def run() -> list[Result]:
    machine: Any = open_backend("cuda")
    torch = peers.torch()
    with ek.device("cuda"):
        return [_raced(machine, torch, vocabulary) for vocabulary in VOCABULARIES]


def _raced(machine: Any, torch: Any, vocabulary: int) -> Result:
    rng = np.random.default_rng(0)
    ids, following = (rng.integers(0, vocabulary, (TEXTS, CONTEXT)) for _ in range(2))
    contestants: dict[str, Callable[[], object]] = {
        "eshkol": _ours(machine, vocabulary, ids, following, ahead=False),
        "eshkol, ahead": _ours(machine, vocabulary, ids, following, ahead=True),
    }
    if torch:
        for name, compiled in (("PyTorch", False), ("torch.compile", True)):
            contestants[name] = _theirs(torch, vocabulary, ids, following, compiled)
    result = race(f"vocabulary of {vocabulary}", contestants, work=STEPS, unit="steps", budget=2.0)
    return with_events(machine, torch, result, contestants)


def _ours(machine: Any, vocabulary: int, ids: Any, following: Any, ahead: bool) -> Callable[[], object]:
    model = nn.GPT(nn.GPTConfig(vocabulary, CONTEXT, LAYERS, HEADS, WIDTH)).to("cuda")
    adam = optim.AdamW(model.parameters(), lr=6e-4)
    step = train.Step(model, _loss_of(vocabulary), adam, precision=ek.bfloat16, ahead=ahead)
    batch = ek.tensor(ids), ek.tensor(following)

    def burst() -> None:
        for _ in range(STEPS):
            step(*batch)
        machine.synchronize()

    return burst


def _loss_of(vocabulary: int) -> Callable[[Any, Any], Any]:
    return lambda logits, following: ek.cross_entropy(logits.reshape(-1, vocabulary), following.reshape(-1))


def _theirs(torch: Any, vocabulary: int, ids: Any, following: Any, compiled: bool) -> Callable[[], object]:
    warnings.filterwarnings("ignore")  # its compiler's remarks on its own choices
    torch.set_float32_matmul_precision("high")
    network = _network(torch, vocabulary).cuda()
    adam = torch.optim.AdamW(network.parameters(), lr=6e-4, fused=True)
    run = torch.compile(network) if compiled else network
    inputs, targets = torch.from_numpy(ids).cuda(), torch.from_numpy(following).cuda().reshape(-1)

    def burst() -> None:
        for _ in range(STEPS):
            adam.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                torch.nn.functional.cross_entropy(run(inputs).reshape(-1, vocabulary), targets).backward()
            adam.step()
        torch.cuda.synchronize()

    return burst


def _network(torch: Any, vocabulary: int) -> Any:
    """The same network in PyTorch's modules, the embedding of tokens being its last layer, too."""
    tn, f = torch.nn, torch.nn.functional
    module: Any = tn.Module

    class Block(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = tn.LayerNorm(WIDTH), tn.LayerNorm(WIDTH)
            self.inward, self.outward = tn.Linear(WIDTH, 3 * WIDTH), tn.Linear(WIDTH, WIDTH)
            self.up, self.down = tn.Linear(WIDTH, 4 * WIDTH), tn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            heads = self.inward(self.norm1(x)).view(TEXTS, CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            seen = f.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
            x = x + self.outward(seen.transpose(1, 2).reshape(TEXTS, CONTEXT, WIDTH))
            return x + self.down(partial(f.gelu, approximate="tanh")(self.up(self.norm2(x))))

    class Network(module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = tn.Embedding(vocabulary, WIDTH), tn.Embedding(CONTEXT, WIDTH)
            self.blocks = tn.ModuleList([Block() for _ in range(LAYERS)])
            self.norm = tn.LayerNorm(WIDTH)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.positions.weight
            for block in self.blocks:
                x = block(x)
            return f.linear(self.norm(x), self.tokens.weight)

    return Network()
