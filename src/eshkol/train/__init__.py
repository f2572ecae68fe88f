"""Training: the loop over batches and epochs, and what it writes down.

    history = ek.train.fit(model, batches, loss=ek.cross_entropy, optimizer=optimizer, epochs=10)

`fitting` is the whole run and `loop` its parts; `step` compiles a step, `applying` is a model on a batch, and `blame`
says where a number that is none began; `batches` are walked, `measures` are counted, `callbacks` happen besides,
`run` is where it stands. `transfer` goes on with models that were trained before, `visualize` draws them. `history`,
`events` (with `records` and `wire`) and `progress` write it down. Names are found when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eshkol.train.callbacks import (
        Checkpoint,
        CSVLog,
        EarlyStopping,
        LambdaCallback,
        LearningRateLog,
        TensorBoardLog,
        check_should_stop,
        early_stopping,
    )
    from eshkol.train.events import EventWriter, read_events, read_scalars
    from eshkol.train.fitting import fit
    from eshkol.train.history import History
    from eshkol.train.loop import train_epoch, train_on_batch, train_step, validate
    from eshkol.train.progress import ProgressBar
    from eshkol.train.run import Callback, Run
    from eshkol.train.step import Evaluation, Step, StepResult
    from eshkol.train.transfer import fine_tune, freeze_layers, load_pretrained

_PLACES = {
    "callbacks": (
        "CSVLog", "Checkpoint", "EarlyStopping", "LambdaCallback", "LearningRateLog", "TensorBoardLog",
        "check_should_stop", "early_stopping",
    ),
    "events": ("EventWriter", "read_events", "read_scalars"),
    "fitting": ("fit",),
    "history": ("History",),
    "loop": ("train_epoch", "train_on_batch", "train_step", "validate"),
    "progress": ("ProgressBar",),
    "run": ("Callback", "Run"),
    "step": ("Evaluation", "Step", "StepResult"),
    "transfer": ("fine_tune", "freeze_layers", "load_pretrained"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "CSVLog", "Callback", "Checkpoint", "EarlyStopping", "Evaluation", "EventWriter", "History", "LambdaCallback",
    "LearningRateLog", "ProgressBar", "Run", "Step", "StepResult", "TensorBoardLog", "check_should_stop",
    "early_stopping", "fine_tune", "fit", "freeze_layers", "load_pretrained", "read_events", "read_scalars",
    "train_epoch", "train_on_batch", "train_step", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"eshkol.train has no '{name}'")
    return globals().setdefault(name, getattr(import_module(f"eshkol.train.{_MODULE_OF[name]}"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
