"""What tests of fusion share: leaves, and graphs computed together or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.schedule.plan.steps import planned
from eshkol.schedule.run import stepwise


def leaf(*shape: int, dtype: dtypes.DType = dtypes.float32) -> Node:
    rng = np.random.default_rng(sum(shape) + len(shape))
    return buffer(np.asarray(rng.uniform(0.5, 2.0, shape)).astype(dtype.numpy), dtype)


def run(
    outputs: Sequence[Node], machine: Any, fused: bool = True, target: MachineDescription = CORES
) -> list[np.ndarray]:
    """The arrays of nodes, computed together or one by one."""
    leaves = [n for n in topological(outputs) if n.op.name == "buffer"]
    return stepwise.run(planned(list(outputs), leaves, target, fused=fused), [n.data for n in leaves], machine)
