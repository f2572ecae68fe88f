"""Callbacks: what else happens while `fit` trains: early stopping, checkpoints, logs.

Comes in: a `Run`, which says where training stands, at each moment that a callback asks for (both are in run.py). A
callback may stop the run, and may have numbers of its own for the epoch's row of the history. Those with a state keep
it in checkpoints, so that a run that goes on decides as if it had never ended.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from eshkol.errors import CheckpointError, EshkolError
from eshkol.io.checkpoint import save_state
from eshkol.io.files import reason
from eshkol.io.saving import AsyncSaver, CheckpointManager
from eshkol.nn.module import Module
from eshkol.nn.module_like import State
from eshkol.support.whole import is_whole
from eshkol.train.run import Callback, Run

if TYPE_CHECKING:
    from eshkol.train.events import EventWriter

MODES = ("auto", "min", "max")


class Watch:
    """The best value of a quantity so far: lowest (`min`), highest (`max`), or as the quantity has it (`auto`)."""

    def __init__(self, who: str, monitor: str | None, mode: str, min_delta: float = 0.0) -> None:
        if mode not in MODES:
            raise EshkolError(f"{who}: there is no mode {mode!r}", hint=f"modes: {', '.join(MODES)}")
        if not min_delta >= 0:
            raise EshkolError(f"{who}: min_delta is how much better is better, 0 or more, not {min_delta!r}")
        self.who, self.monitor, self.mode, self.min_delta = who, monitor, mode, float(min_delta)
        self.best = math.nan

    def begin(self, run: Run) -> None:
        """Find the quantity among those of a run, and what is better for it."""
        if self.monitor is None:
            self.monitor = run.monitor
        known = run.names
        if self.monitor not in known:
            near = difflib.get_close_matches(self.monitor, known, 1)
            raise EshkolError(
                f"{self.who}: '{self.monitor}' is not measured in this run",
                hint=f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}",
            )
        if self.mode == "auto":
            highest = run.higher_is_better(self.monitor)
            if highest is None:
                raise EshkolError(
                    f"{self.who}: nobody says whether a high '{self.monitor}' is good", hint="give mode='min' or 'max'"
                )
            self.mode = "max" if highest else "min"

    def of(self, run: Run) -> float | None:
        """The value in the epoch that ended, if it has one."""
        return run.values.get(str(self.monitor))

    def better(self, value: float) -> bool:
        """Whether a value is better than the best so far, which it is then; NaN never is."""
        sign = -1.0 if self.mode == "max" else 1.0
        if math.isnan(value) or (not math.isnan(self.best) and not sign * value < sign * self.best - self.min_delta):
            return False
        self.best = value
        return True


class EarlyStopping(Callback):
    """Stop when a quantity has not become better, by `min_delta`, for `patience` epochs.

    `monitor` is "val_loss" if it is not given, or "loss" where nothing is validated. With `restore_best` the model has
    the parameters of the best epoch at the end: those that were measured, which are the averages where `fit` validates
    these (`validate_ema`).
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 3,
        min_delta: float = 0.0,
        mode: str = "auto",
        restore_best: bool = False,
    ) -> None:
        if not is_whole(patience, 0):
            raise EshkolError(f"EarlyStopping: patience is a number of epochs, not {patience!r}")
        self.watch = Watch("EarlyStopping", monitor, mode, min_delta)
        self.patience, self.restore_best = patience, restore_best
        self.waited = 0
        self.best_epoch = 0
        self._state: State | None = None

    @property
    def best(self) -> float:
        """The best value so far; NaN before the first."""
        return self.watch.best

    def check(self, value: Any) -> bool:
        """Take in the value of another epoch; whether it is time to stop."""
        if self.watch.mode == "auto":  # used by itself: what is called a loss or an error is to be low
            name = (self.watch.monitor or "loss").replace("-", "_")
            low = any(word in name for word in ("loss", "error", "mse", "mae", "perplexity"))
            self.watch.mode = "min" if low else "max"
        if self.watch.better(float(value)):
            self.waited = 0
            return False
        self.waited += 1
        return self.waited >= max(self.patience, 1)

    def on_fit_begin(self, run: Run) -> None:
        self.watch.begin(run)
        if self.restore_best and not isinstance(run.model, Module):
            raise EshkolError("EarlyStopping: restore_best needs a model that is an nn.Module")
        if not run.resumed:
            self.waited, self.best_epoch, self.watch.best, self._state = 0, 0, math.nan, None

    def on_epoch_end(self, run: Run) -> None:
        value = self.watch.of(run)
        if value is None:
            return
        stop = self.check(value)
        if self.waited == 0:
            self.best_epoch = run.epoch
            if self.restore_best:
                with run.as_measured(str(self.watch.monitor)):
                    self._state = run.model.state_dict()
        if stop:
            run.stop(
                f"early stopping: {self.watch.monitor} was best in epoch {self.best_epoch} ({self.best:.6g}), "
                f"{self.waited} epochs ago"
            )

    def on_fit_end(self, run: Run) -> None:
        if self._state is not None and not run.unfinished:
            run.model.load_state_dict(self._state)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited, "best_epoch": self.best_epoch, "model": self._state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.watch.best, self.waited = float(state["best"]), int(state["waited"])
        self.best_epoch, self._state = int(state["best_epoch"]), state["model"]


def early_stopping(monitor: str = "val_loss", patience: int = 3, min_delta: float = 0.0, **how: Any) -> EarlyStopping:
    """A stopper for `fit(callbacks=[...])`, or to be asked by oneself: `check_should_stop(stopper, value)`."""
    return EarlyStopping(monitor, patience, min_delta, **how)


def check_should_stop(stopper: EarlyStopping, metric: Any) -> bool:
    """Give a stopper the value of another epoch; whether it is time to stop."""
    if not isinstance(stopper, EarlyStopping):
        raise EshkolError(f"check_should_stop: a stopper is wanted, not a {type(stopper).__name__}")
    return stopper.check(metric)


class Checkpoint(Callback):
    """Save the complete state of the run to a file: after each epoch ("last"), and the best one ("best").

    `path` may name {kind}, {epoch} and {step}. `fit(resume=path)` goes on from such a file, bit for bit. With
    `every_steps` it is saved within epochs too, and always when a run is interrupted.

    `save(state, path)` is what saves: `ek.io.save_state` unless it is given, an `ek.io.AsyncSaver()` to write beside
    the training, or a function of one's own; the state holds values that later steps do not change. Something that
    still writes when the run ends is waited for, and what went wrong with it is told then at the latest. With an
    `ek.io.CheckpointManager` the names, how many there are, and which is the best are its own affair.

    >>> ek.train.fit(..., callbacks=[ek.train.Checkpoint("runs/{kind}.eskpt")])
    >>> ek.train.fit(..., callbacks=[ek.train.Checkpoint("runs/{kind}.eskpt")], resume="runs/last.eskpt")
    """

    late: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str] = "checkpoint-{kind}.eskpt",
        save: Callable[[dict[str, Any], str], object] | CheckpointManager = save_state,
        *,
        monitor: str | None = None,
        mode: str = "auto",
        best: bool = True,
        last: bool = True,
        every: int = 1,
        every_steps: int | None = None,
    ) -> None:
        if callable(path):
            raise EshkolError("Checkpoint: the path comes first", hint='Checkpoint("runs/{kind}.eskpt", save=...)')
        managed = isinstance(save, CheckpointManager)
        if not callable(save) and not managed:
            raise EshkolError(f"Checkpoint: save is a function of a state and a path, not a {type(save).__name__}")
        for name, count in (("every", every), ("every_steps", every_steps)):
            if count is not None and not is_whole(count, 1):
                raise EshkolError(f"Checkpoint: {name} is a number, 1 or more, not {count!r}")
        self.save, self.path, self.keep_best, self.keep_last = save, os.fspath(path), best and not managed, last
        self.every, self.every_steps = every, every_steps
        self.watch = Watch("Checkpoint", monitor, mode)
        self._saved, self._saved_step = (0, 0), 0  # where the run stood at the last state
        try:
            self._named("last", 1, 1)
        except (KeyError, IndexError, ValueError) as error:
            raise EshkolError(
                f"Checkpoint: the path {self.path!r} cannot be filled in: {error}", hint="{kind}, {epoch}, {step}"
            ) from None
        if best and last and self._named("best", 1, 1) == self._named("last", 1, 1):
            raise EshkolError(
                f"Checkpoint: the best and the last state would be saved as the same file, {self.path}",
                hint="have {kind} in the path, or say best=False or last=False",
            )

    def _named(self, kind: str, epoch: int, step: int) -> str:
        return self.path.format(kind=kind, epoch=epoch, step=step)

    def on_fit_begin(self, run: Run) -> None:
        if self.keep_best:
            self.watch.begin(run)
            if not run.resumed:
                self.watch.best = math.nan
        self._saved, self._saved_step = run.position, run.step
        self._make_folder(self._named("last", run.epoch, run.step))  # not after hours of training

    def _make_folder(self, path: str) -> None:
        """Make the folder of a file that is to be saved; what saves elsewhere needs none."""
        folder = os.path.dirname(path)
        if folder and (self.save is save_state or isinstance(self.save, AsyncSaver)):
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError as error:
                raise CheckpointError(f"Checkpoint: cannot make the folder {folder!r}: {reason(error)}") from None

    def on_step_end(self, run: Run) -> None:
        if self.every_steps is not None and run.step % self.every_steps == 0 and run.step != self._saved_step:
            self._keep(run, "last")

    def on_epoch_end(self, run: Run) -> None:
        value = self.watch.of(run) if self.keep_best else None
        if value is not None and self.watch.better(value):
            self._keep(run, "best")
        if self.keep_last and (run.epoch % self.every == 0 or run.epoch == run.epochs):
            self._keep(run, "last")

    def on_fit_end(self, run: Run) -> None:
        try:
            if self.keep_last and run.failure is None and self._saved != run.position:
                self._keep(run, "last")
        finally:
            if callable(wait := getattr(self.save, "wait", None)):
                wait()

    def _keep(self, run: Run, kind: str) -> None:
        if kind == "last":
            self._saved, self._saved_step = run.position, run.step
        if isinstance(self.save, CheckpointManager):
            unknown = {} if self.save.best_by is None else {self.save.best_by: math.nan}  # within an epoch
            self.save.save(run.step, state=run.state_dict(), values=run.values if run.ended else unknown)
            return
        path = self._named(kind, run.epoch, run.step)
        self._make_folder(path)
        self.save(run.state_dict(), path)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.watch.best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.watch.best = float(state["best"])


class LearningRateLog(Callback):
    """Write down the learning rate that each epoch ended with: `lr`, or `lr_0`, `lr_1` for groups of parameters."""

    provides = ("lr",)

    def values(self, run: Run) -> Mapping[str, float]:
        rates = [float(group["lr"]) for group in run.optimizer.param_groups]
        return {"lr": rates[0]} if len(rates) == 1 else {f"lr_{k}": rate for k, rate in enumerate(rates)}


class CSVLog(Callback):
    """Write the history as a CSV file after each epoch; the file is always whole."""

    late: ClassVar[bool] = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def on_epoch_end(self, run: Run) -> None:
        run.history.to_csv(self.path)


class TensorBoardLog(Callback):
    """Write event files for TensorBoard: the numbers of each epoch, over the count of steps.

    `every_steps` adds the loss of a batch as `step_loss`, `histograms` the parameters at the end of each epoch.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, every_steps: int | None = None, histograms: bool = False
    ) -> None:
        if every_steps is not None and (isinstance(every_steps, bool) or every_steps < 1):
            raise EshkolError(f"TensorBoardLog: every_steps is a number, 1 or more, not {every_steps!r}")
        self.folder, self.every_steps, self.histograms = folder, every_steps, histograms
        self._writer: EventWriter | None = None

    def on_fit_begin(self, run: Run) -> None:
        from eshkol.train.events import EventWriter

        self._writer = EventWriter(self.folder, purge_step=run.step + 1 if run.resumed else None)

    def on_step_end(self, run: Run) -> None:
        if self._writer and self.every_steps and run.result and run.result.applied and run.step % self.every_steps == 0:
            self._writer.add_scalar("step_loss", run.result.loss.item(), run.step)

    def on_epoch_end(self, run: Run) -> None:
        if self._writer is None:
            return
        for name, value in run.values.items():
            self._writer.add_scalar(name, value, run.step)
        if self.histograms and isinstance(run.model, Module):
            for name, tensor in run.model.named_parameters():
                self._writer.add_histogram(name, tensor.detach().numpy(), run.step)
        self._writer.flush()

    def on_fit_end(self, run: Run) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class LambdaCallback(Callback):
    """Functions of the run in place of a class: `LambdaCallback(on_epoch_end=lambda run: print(run.values))`."""

    moments = ("on_fit_begin", "on_epoch_begin", "on_step_end", "on_epoch_end", "on_fit_end")

    def __init__(self, **functions: Callable[[Run], object]) -> None:
        for name, function in functions.items():
            if name not in self.moments:
                near = difflib.get_close_matches(name, self.moments, 1)
                raise EshkolError(
                    f"LambdaCallback: there is no moment '{name}'",
                    hint=f"did you mean '{near[0]}'?" if near else f"moments: {', '.join(self.moments)}",
                )
            if not callable(function):
                raise EshkolError(f"LambdaCallback: {name} is a function of the run, not a {type(function).__name__}")
            setattr(self, name, function)
