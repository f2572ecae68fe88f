"""`Run`: where a training stands: what callbacks look at, what a checkpoint holds, and what `fit(resume=...)` takes.

`Callback`, the base of what else happens meanwhile, is here too, as each is told of a run; those there are stand in
callbacks.py.

The state is complete: parameters and buffers, the optimizer and its schedule, averages of weights, gradients that are
summed, the generator of random numbers, the history, and what callbacks remember. Within an epoch it has the number
of batches that were used, so that the epoch goes on with the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from eshkol.errors import TensorError
from eshkol.io.architecture import ARCHITECTURE, architecture_of
from eshkol.metrics.collection import MetricCollection
from eshkol.nn.module import Module
from eshkol.optim.averaging import EMA
from eshkol.optim.base import Optimizer
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.holding import bare, put
from eshkol.train.applying import Loss
from eshkol.train.history import VALIDATION, History
from eshkol.train.measures import LOSS, Measures
from eshkol.train.step import Step, StepResult

INTERRUPTED = "interrupted"
_WANTED = {
    *("model", "loss", "optimizer", "schedule", "ema", "step_state", "rng", "epoch_rng", "measures"),
    *("epoch", "batch", "step", "history", "callbacks"),
}


class Callback:
    """Base of callbacks: each method is called at its moment, with the run; here they do nothing."""

    provides: tuple[str, ...] = ()  # names of its own numbers in the history, for those who watch them
    late: ClassVar[bool] = False  # whether it comes after all others: what keeps their states

    def on_fit_begin(self, run: Run) -> None:
        """Before the first epoch."""

    def on_epoch_begin(self, run: Run) -> None:
        """Before each epoch."""

    def on_step_end(self, run: Run) -> None:
        """After each batch: `run.result` has its loss and outputs."""

    def values(self, run: Run) -> Mapping[str, float]:
        """Numbers of its own for the epoch's row, besides `run.values`."""
        return {}

    def on_epoch_end(self, run: Run) -> None:
        """After each epoch and its validation: `run.values` are its numbers."""

    def on_fit_end(self, run: Run) -> None:
        """At the end, also of a run that is interrupted or fails."""

    def state_dict(self) -> dict[str, Any]:
        """What it has to remember when the run goes on from a checkpoint."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""


class Run:
    """A training that goes on: its model, its numbers so far, and how far it is.

    `epoch` counts from 1, as `batch` does within it (0: none yet); `step` is how many updates were made; `values` are
    the numbers of the epoch that ended last, `result` is what the last step gave.
    """

    def __init__(
        self,
        step: Step,
        epochs: int,
        *,
        schedule: Any = None,
        metrics: MetricCollection,
        callbacks: Sequence[Callback],
        validated: bool,
        monitor: str | None,
        quiet: bool,
        validates_averages: bool = False,
    ) -> None:
        self._step = step
        self._validates_averages = validates_averages
        self.epochs, self.schedule, self.metrics, self.quiet = epochs, schedule, metrics, quiet
        self.callbacks = sorted(callbacks, key=lambda callback: callback.late)
        self.validated = validated
        self.history = History()
        self.epoch = self.batch = self.step = 0
        self.batches: int | None = None  # of an epoch, if that is known
        self.data: Any = None  # where the data stands, after the batch that is at work; None if it does not know
        self.result: StepResult | None = None
        self.values: dict[str, float] = {}
        self.measures = Measures(metrics)
        self.failure: BaseException | None = None
        self.resumed = False
        self.ended = True  # the epoch, with its row: nothing of another one has been done
        self._epoch_rng = keys.default.state
        self.monitor = self._checked(monitor) if monitor is not None else f"{VALIDATION if validated else ''}{LOSS}"

    @property
    def model(self) -> Any:
        """What is trained."""
        return self._step.model

    @property
    def loss(self) -> Loss:
        """What is to become small."""
        return self._step.loss

    @property
    def optimizer(self) -> Optimizer:
        """What updates the parameters."""
        return self._step.optimizer

    @property
    def ema(self) -> EMA | None:
        """The average of the weights, if there is one."""
        return self._step.ema

    @property
    def stopped(self) -> str | None:
        """Why the run ends before its last epoch, if it does."""
        return self.history.stopped

    def stop(self, reason: str) -> None:
        """End the run when the callbacks of this moment are through; the history says why."""
        if self.history.stopped is None:
            self.history.stopped = reason

    @property
    def unfinished(self) -> bool:
        """Whether it was interrupted or has failed, and may go on from its state."""
        return self.failure is not None or self.stopped == INTERRUPTED

    def say(self, text: str) -> None:
        """Tell the user, unless the run is quiet."""
        if not self.quiet:
            print(text, flush=True)

    # --- what is measured ---------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The quantities that each epoch's row has, as far as they are known before the first."""
        own = [LOSS, *self.metrics]
        found = [*own, *(VALIDATION + name for name in own)] if self.validated else own
        return [*found, *(name for callback in self.callbacks for name in callback.provides)]

    def _checked(self, monitor: str) -> str:
        if monitor not in self.names:
            raise TensorError(
                f"fit: '{monitor}' is not measured in this run",
                span=ek.here(),
                hint=f"there are {', '.join(self.names)}",
            )
        return monitor

    def higher_is_better(self, name: str) -> bool | None:
        """Whether a quantity is the better the higher it is; None where no one says."""
        plain = name.removeprefix(VALIDATION)
        return False if plain == LOSS else self.metrics[plain].higher_is_better if plain in self.metrics else None

    def as_measured(self, name: str) -> AbstractContextManager[None]:
        """Within it the model has the parameters that a quantity is measured with: the averages, or its own."""
        averages = self._validates_averages and name.startswith(VALIDATION)
        return self.ema.applied() if averages and self.ema is not None else nullcontext()

    # --- its state ----------------------------------------------------------------------------------

    @property
    def position(self) -> tuple[int, int]:
        """The epochs that have ended, and the batches that were used of the next."""
        return (self.epoch, 0) if self.ended else (self.epoch - 1, self.batch)

    def begin_epoch(self) -> None:
        """Begin the next epoch; all that is drawn in it comes after what is remembered here."""
        self.epoch, self.batch, self.ended = self.epoch + 1, 0, False
        self.measures = Measures(self.metrics)
        self._epoch_rng = keys.default.state

    def state_dict(self) -> dict[str, Any]:
        """All that a run needs to go on bit for bit: `fit(resume=state)`; later steps do not change it."""
        epoch, batch = self.position
        return {
            "model": self.model.state_dict() if isinstance(self.model, Module) else _values(self.optimizer),
            ARCHITECTURE: architecture_of(self.model, self.optimizer),
            "loss": self.loss.state_dict() if isinstance(self.loss, Module) else None,
            "optimizer": self.optimizer.state_dict(),
            "schedule": None if self.schedule is None else self.schedule.state_dict(),
            "ema": None if self.ema is None else self.ema.state_dict(),
            "step_state": self._step.state_dict(),
            "rng": keys.default.state,
            "epoch_rng": keys.default.state if self.ended else self._epoch_rng,
            "epoch": epoch,
            "batch": batch,
            "data": self.data,
            "step": self.step,
            "measures": None if self.ended else self.measures.state_dict(),
            "history": self.history.state_dict(),
            "callbacks": [[type(c).__name__, c.state_dict()] for c in self.callbacks],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Take the state of a run; gives how many batches of the next epoch were used already."""
        if not isinstance(state, Mapping) or not set(state) >= _WANTED:
            raise TensorError(
                "fit: resume takes the state of a run, as a Checkpoint saves it", span=ek.here(),
                hint="run.state_dict() in a callback gives one, and history.state of a run that was interrupted",
            )  # fmt: skip
        kinds = [type(c).__name__ for c in self.callbacks]
        if kinds != [kind for kind, _ in state["callbacks"]]:
            raise TensorError(
                f"fit: the state was saved with the callbacks {', '.join(k for k, _ in state['callbacks']) or 'none'}, "
                f"and this run has {', '.join(kinds) or 'none'}", span=ek.here(), hint="give fit the same ones",
            )  # fmt: skip
        for name, mine in (("schedule", self.schedule), ("ema", self.ema)):
            if (state[name] is None) != (mine is None):
                raise TensorError(
                    f"fit: the state was saved {'without' if state[name] is None else 'with'} {name}=", span=ek.here()
                )
        before = self.model.state_dict() if isinstance(self.model, Module) else _values(self.optimizer)
        try:
            self._load_values(state["model"])
            if isinstance(self.loss, Module):
                self.loss.load_state_dict(state["loss"])
            self.optimizer.load_state_dict(state["optimizer"])
        except BaseException:
            self._load_values(before)
            raise
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        if self.ema is not None:
            self.ema.load_state_dict(state["ema"])
        self._step.load_state_dict(state["step_state"])
        self.history.load_state_dict(state["history"])
        for callback, (_, held) in zip(self.callbacks, state["callbacks"], strict=True):
            callback.load_state_dict(held)
        self.epoch, self.step, self.resumed = int(state["epoch"]), int(state["step"]), True
        keys.default.state = state["epoch_rng"]
        return int(state["batch"])

    def resume_epoch(self, state: Mapping[str, Any]) -> None:
        """Go on within an epoch whose first batches were passed over."""
        self.batch = int(state["batch"])
        self.measures.load_state_dict(state["measures"])
        keys.default.state = state["rng"]

    def _load_values(self, values: Mapping[str, Any]) -> None:
        if isinstance(self.model, Module):
            self.model.load_state_dict(values)
            return
        if len(values) != len(self.optimizer.tensors):
            raise TensorError(
                f"fit: the state has {len(values)} parameters, and the optimizer {len(self.optimizer.tensors)}",
                span=ek.here(),
            )
        for tensor, value in zip(self.optimizer.tensors, values.values(), strict=True):
            put(tensor, ek.asarray(value))


def _values(optimizer: Optimizer) -> dict[str, Any]:
    """The parameters of a model that is a function, by their places in the optimizer."""
    return {str(k): bare(tensor) for k, tensor in enumerate(optimizer.tensors)}
