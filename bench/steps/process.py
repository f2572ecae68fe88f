"""A fresh process that takes steps of one network in one library and says, as a line of JSON, what it came to.

`python -m bench.steps '{"who": "eshkol", "model": "gpt", …}'`; the keys are the fields of `Order`. Memory and
the first step can only be told in a process that does nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.child import forget_peak, resident
from bench.steps.models import MODELS

STEPS = 12
SETTLED = 3  # steps before memory is looked at: by then all that is kept is there
LIMIT = 600  # seconds for a process


@dataclass(frozen=True)
class Order:
    """What a process is to do."""

    who: str  # eshkol, torch (as it is) or compiled (torch.compile)
    model: str
    busy: bool = False  # the time is CPU time


@dataclass(frozen=True)
class Report:
    """Seconds of the first step, and bytes that later ones hold at most: in all, and beyond what was there before."""

    first: float
    peak: int
    beyond: int


def steps_of(who: str, name: str) -> Any:
    """Steps of a network in a library, which is imported now: `step()` takes one, `means()` are those of gradients."""
    model = next(m for m in MODELS if m.name == name)
    rng = np.random.default_rng(0)
    params, batch = model.params(rng), model.batch(rng)
    if who == "eshkol":
        from bench.steps.our_side import OurSteps

        return OurSteps(name, params, batch)
    from bench.steps.torch_side import TorchSteps

    return TorchSteps(name, params, batch, who == "compiled")


def ask(order: Order, cache: str) -> Report:
    """What a fresh process reports, whose compiled programs, of whatever library, are in a folder."""
    folders = {"ESHKOL_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
    command = [sys.executable, "-m", "bench.steps", json.dumps(asdict(order))]
    done = subprocess.run(command, env=os.environ | folders, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return Report(**json.loads(done.stdout.splitlines()[-1]))


def main(order: Order) -> Report:
    """Do it."""
    steps = steps_of(order.who, order.model)
    before = resident()
    clock = time.process_time if order.busy else time.perf_counter
    begun = clock()
    steps.step().item()
    first = clock() - begun
    for n in range(STEPS):
        if n == SETTLED:
            forget_peak()
        steps.step()
    peak = resident("VmHWM")
    return Report(first, peak, peak - before)
