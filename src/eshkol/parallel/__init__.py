"""Several machines for one model: a batch that is split over them, or its layers.

    model = ek.parallel.DataParallel(model, ["cuda:0", "cuda:1"])
    model = ek.parallel.Pipeline([(encoder, "cuda:0"), (decoder, "cuda:1")], microbatches=8)

Both are modules, and what trains modules trains them: `train.Step`, `train_step`, `fit`, `validate`, or a loop of one's
own. `data` has the first and `pipeline` the second; `workers` are the threads, one for each machine, and `splitting`
cuts batches and puts results together. Names are found when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eshkol.parallel.data import DataParallel, DataParallelStep
    from eshkol.parallel.pipeline import Pipeline, PipelineStep

_MODULE_OF = {
    "DataParallel": "data", "DataParallelStep": "data", "Pipeline": "pipeline", "PipelineStep": "pipeline",
}  # fmt: skip

__all__ = ["DataParallel", "DataParallelStep", "Pipeline", "PipelineStep"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"eshkol.parallel has no '{name}'")
    return globals().setdefault(name, getattr(import_module(f"eshkol.parallel.{_MODULE_OF[name]}"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
