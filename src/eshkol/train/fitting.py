"""`fit`: a whole training: epochs over batches, validation, metrics, schedules, callbacks, progress, interruption.

Comes in: a model, data, a loss and an optimizer. Goes out: a `History`; the model is trained in place. Each step is one
compiled program (step.py); where the run stands, and its state, is in run.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eshkol.errors import NotANumberError, TensorError
from eshkol.io.checkpoint import Checkpoint as OpenFile
from eshkol.io.checkpoint import load_state
from eshkol.io.saving import CheckpointManager
from eshkol.nn.module import Module
from eshkol.optim.averaging import EMA
from eshkol.optim.base import Optimizer
from eshkol.optim.schedules import ReduceLROnPlateau
from eshkol.support.interrupts import Noted
from eshkol.support.warning import warn
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.train.applying import Loss
from eshkol.train.batches import Batches, batches_of
from eshkol.train.history import VALIDATION, History
from eshkol.train.kept import evaluation_for, step_for
from eshkol.train.loop import checked, evaluated, measured, told
from eshkol.train.measures import Measures, Metrics, metrics_of
from eshkol.train.progress import ProgressBar
from eshkol.train.run import INTERRUPTED, Callback, Run
from eshkol.train.step import Evaluation, Step

Resumed = Mapping[str, Any] | str | os.PathLike[str] | OpenFile | CheckpointManager | None
MOST_SKIPPED = 100  # steps in a row that a loss scale may leave out: a scale that is too large is halved each time


def fit(
    model: Any,
    batches: Any,
    *,
    loss: Loss,
    optimizer: Optimizer,
    epochs: int = 1,
    validation: Any = None,
    metrics: Metrics = (),
    callbacks: Sequence[Callback] = (),
    schedule: Any = None,
    schedule_every: str | None = None,
    batch_size: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    resume: Resumed = None,
    monitor: str | None = None,
    jit: bool = True,
    accumulate: int = 1,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    precision: Any = None,
    loss_scale: Any = None,
    ema: EMA | float | None = None,
    validate_ema: bool = False,
    quiet: bool = False,
    progress: bool = True,
) -> History:
    """Train a model, in place; gives the history of the loss and the metrics.

    `batches` are pairs (inputs, targets) that can be walked for each epoch (a list, a data loader, a function that
    gives an iterator), or whole arrays `(x, y)`, which are cut by `batch_size` and shuffled. `validation` is the same.

    - `schedule` is stepped after each epoch or each update, as it says (`schedule_every` says otherwise).
    - `seed` makes the run reproducible bit for bit; `resume` goes on from what a Checkpoint saved: the path of a file,
      a state, or an `ek.io.CheckpointManager`, whose latest it is (from the start where there is none).
    - `monitor` is what a plateau schedule, early stopping and the best checkpoint look at, where they do not say.
    - `ema` averages the weights: an `optim.EMA`, or its decay (callbacks find it as `run.ema`). `validate_ema`
      validates the averages in place of the weights.
    - `jit=False` computes eagerly, for debugging; the rest is as for `Step`.

    Ctrl-C ends it after the step in progress: `history.stopped` says so, and `history.state` is to go on from.

    >>> history = ek.train.fit(model, (x, y), loss=ek.mse_loss, optimizer=ek.optim.Adam(model.parameters()), epochs=9)
    """
    checked("fit", model, optimizer, loss)
    if not is_whole(epochs, 1):
        raise TensorError(f"fit: epochs is a number, 1 or more, not {epochs!r}", span=ek.here())
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TensorError(
                f"fit: a callback is wanted, not {type(callback).__name__}", span=ek.here(),
                hint="make a subclass of ek.train.Callback, or ek.train.LambdaCallback(on_epoch_end=...)",
            )  # fmt: skip
    data = batches_of(batches, "fit", batch_size=batch_size, shuffle=shuffle)
    held = None
    if validation is not None:
        whole = isinstance(validation, tuple) and len(validation) == 2
        held = batches_of(validation, "fit: validation", batch_size=batch_size if whole else None, shuffle=False)
    if seed is not None:
        keys.seed(seed)
    if ema is not None and not isinstance(ema, EMA):
        ema = EMA(model, float(ema))
    if validate_ema and (ema is None or held is None):
        missing = "ema" if ema is None else "validation"
        raise TensorError(f"fit: validate_ema goes with {missing}=, which is not given", span=ek.here())
    step = step_for(
        model, loss, optimizer, jit=jit, accumulate=accumulate, clip_norm=clip_norm, clip_value=clip_value,
        precision=precision, loss_scale=loss_scale, ema=ema,
    )  # fmt: skip
    step.forget()
    run = Run(
        step, epochs, schedule=schedule, metrics=metrics_of(metrics, "fit"), callbacks=callbacks,
        validated=held is not None, monitor=monitor, quiet=quiet, validates_averages=validate_ema,
    )  # fmt: skip
    if isinstance(schedule, ReduceLROnPlateau) and run.higher_is_better(run.monitor) is (schedule.mode == "min"):
        raise TensorError(
            f"fit: ReduceLROnPlateau has mode='{schedule.mode}', and {run.monitor} is to become "
            f"{'high' if schedule.mode == 'min' else 'low'}", span=ek.here(),
            hint=f"ReduceLROnPlateau(optimizer, mode='{'max' if schedule.mode == 'min' else 'min'}')",
        )  # fmt: skip
    evaluation = evaluation_for(model, loss, jit=jit) if held is not None else None
    every = _every(schedule, schedule_every, optimizer)
    return _Fitting(run, step, data, held, evaluation, every, progress).run_all(_state_of(resume))


def _state_of(resume: Resumed) -> Mapping[str, Any] | None:
    """What a run goes on from: a state, also of a file of that path, or the latest of a manager if it has one."""
    if isinstance(resume, CheckpointManager):
        resume = resume.load()
    if isinstance(resume, OpenFile):
        return resume.state()
    return load_state(resume) if isinstance(resume, str | os.PathLike) else resume


def _every(schedule: Any, wanted: str | None, optimizer: Optimizer) -> str:
    """When a schedule is stepped: "epoch" or "step"."""
    if wanted not in (None, "epoch", "step"):
        raise TensorError(f"fit: schedule_every is 'epoch' or 'step', not {wanted!r}", span=ek.here())
    if schedule is not None and not callable(getattr(schedule, "step", None)):
        raise TensorError(
            f"fit: a schedule is wanted, not {type(schedule).__name__}", span=ek.here(),
            hint="make one of the optimizer: ek.optim.CosineAnnealingLR(optimizer, T_max=epochs)",
        )  # fmt: skip
    if getattr(schedule, "optimizer", optimizer) is not optimizer:
        raise TensorError(
            f"fit: the {type(schedule).__name__} is of another optimizer, and would change nothing", span=ek.here(),
            hint="make it of the optimizer that fit is given",
        )  # fmt: skip
    return wanted or str(getattr(schedule, "every", "epoch"))


class _Fitting:
    """A run and what it works on."""

    def __init__(
        self, run: Run, step: Step, data: Batches, validation: Batches | None, evaluation: Evaluation | None,
        every: str, progress: bool,
    ) -> None:  # fmt: skip
        self.run, self.step, self.data, self.validation, self.evaluation = run, step, data, validation, evaluation
        self.every, self.progress = every, progress
        self.interrupts = Noted()
        self.skipped = 0  # steps in a row
        self.watching = [c for c in run.callbacks if _watches_steps(c)]

    def run_all(self, resume: Mapping[str, Any] | None) -> History:
        run = self.run
        run.batches = self.data.count
        used = run.load_state_dict(resume) if resume is not None else 0
        known = resume is not None and self.data.load_state_dict(resume.get("data"))
        run.data = self.data.state_dict()
        with self.interrupts, _training(run.model):
            try:
                for callback in run.callbacks:
                    callback.on_fit_begin(run)
                while run.epoch < run.epochs and run.stopped is None:
                    self._epoch(used, resume, known)
                    used = 0
                    if self.interrupts.asked:
                        run.stop(INTERRUPTED)
            except BaseException as error:
                run.failure = error
                self._ends(failed=True)
                raise
            self._ends()
        return run.history

    def _ends(self, failed: bool = False) -> None:
        run = self.run
        if run.stopped == INTERRUPTED and not failed:
            run.history.state = run.state_dict()
        fault: Exception | None = None
        for callback in reversed(run.callbacks):  # what saves states comes first now
            try:
                callback.on_fit_end(run)
            except Exception as error:
                fault = fault or error
        if failed:
            return
        if fault is not None:
            raise fault
        epochs, batches = run.position
        if run.stopped == INTERRUPTED:
            where = f"after batch {batches} of epoch {epochs + 1}" if batches else f"after epoch {epochs}"
            run.say(f"interrupted {where}; fit(..., resume=history.state) goes on from there")
        elif run.stopped is not None:
            run.say(f"stopped after epoch {epochs}: {run.stopped}")
        if self.step.waiting and run.stopped != INTERRUPTED:
            warn(
                f"fit: the last {self.step.waiting} batches did not fill a step of {self.step.accumulate} "
                "(accumulate), and their gradients were not used"
            )

    # --- an epoch -----------------------------------------------------------------------------------

    def _epoch(self, used: int, resume: Mapping[str, Any] | None, known: bool) -> None:
        run = self.run
        run.begin_epoch()
        for callback in run.callbacks:
            callback.on_epoch_begin(run)
        walk = self.data.epoch(used if known else 0)
        if used:
            if not known:
                self._pass_over(walk, used)
            run.resume_epoch(resume or {})
        with ProgressBar(self.data.count, f"epoch {run.epoch}/{run.epochs}", quiet=not self._shown) as bar:
            for batch in walk:
                run.batch, run.data = batch.number, self.data.state_dict()
                with told(f"fit: epoch {run.epoch}, batch {batch.number}"):
                    run.result = measured(self.step, batch, run.measures)
                self._stepped()
                bar.update(batch.number, run.measures)
                if self.interrupts.asked or run.stopped is not None:
                    break
            else:
                self._finish(bar)

    @property
    def _shown(self) -> bool:
        return self.progress and not self.run.quiet

    def _pass_over(self, walk: Iterator[Any], used: int) -> None:
        for k in range(used):
            if next(walk, None) is None:
                raise TensorError(
                    f"fit: the state was saved after batch {used} of an epoch, and there are {k} batches",
                    span=ek.here(), hint="resume with the same data",
                )  # fmt: skip

    def _stepped(self) -> None:
        """What follows a step: counts, the schedule, callbacks."""
        run, result = self.run, self.run.result
        assert result is not None
        if result.applied:
            run.step += 1
            self.skipped = 0
            if self.every == "step" and run.schedule is not None:
                _advance(run, run.measures)
        elif not self.step.waiting:
            self.skipped += 1
            if self.skipped >= MOST_SKIPPED:
                raise NotANumberError(
                    f"fit: epoch {run.epoch}, batch {run.batch}: the gradients of the last {self.skipped} batches were "
                    "not finite, and nothing was learned from them", span=ek.here(),
                    hint='lower the loss_scale (or say "dynamic"), or look at the data',
                )  # fmt: skip
        if run.step <= 1 and run.batch == 1:
            _warn_unreached(self.step)
        for callback in self.watching:
            callback.on_step_end(run)

    def _finish(self, bar: ProgressBar) -> None:
        """The end of an epoch: validation, the row of the history, the schedule, callbacks."""
        run = self.run
        values = run.measures.now()
        if self.validation is not None:
            found = self._validated()
            if found is None:
                return
            values |= {VALIDATION + name: value for name, value in found.items()}
        run.values = values
        for callback in run.callbacks:
            values.update(callback.values(run))
        run.history.append(run.epoch, run.step, values)
        run.ended, run.data = True, self.data.state_dict()
        bar.finish(values)
        if self.every == "epoch" and run.schedule is not None:
            _advance(run, values)
        for callback in run.callbacks:
            callback.on_epoch_end(run)

    def _validated(self) -> dict[str, float] | None:
        """What is measured with the validation data; None if it was interrupted."""
        assert self.validation is not None
        assert self.evaluation is not None
        measures = Measures(self.run.metrics)
        with self.run.as_measured(VALIDATION):
            for batch in self.validation.epoch():
                where = f"fit: epoch {self.run.epoch}, batch {batch.number} of the validation"
                evaluated(self.evaluation, batch, measures, where)
                if self.interrupts.asked:
                    return None
        return measures.now()


def _advance(run: Run, values: Mapping[str, float]) -> None:
    """Let the schedule go on by a step; one that looks at a measure is given it."""
    if isinstance(run.schedule, ReduceLROnPlateau):
        run.schedule.step(values[run.monitor])
    else:
        run.schedule.step()


def _warn_unreached(step: Step) -> None:
    """Name the parameters that get no gradient."""
    if not step.unreached:
        return
    roots = [root for root in (step.model, step.loss) if isinstance(root, Module)]
    names = {id(p): name for root in roots for name, p in root.named_parameters()}
    others = {id(p): name for p, name in zip(step.optimizer.tensors, step.optimizer.names, strict=True)}
    unused = [names.get(id(p), others[id(p)]) for k, p in enumerate(step.trained) if k in step.unreached]
    more = f" and {len(unused) - 5} more" if len(unused) > 5 else ""
    warn(f"fit: the loss does not depend on {', '.join(unused[:5])}{more}: they get no gradient and learn nothing")


def _watches_steps(callback: Callback) -> bool:
    return "on_step_end" in vars(callback) or type(callback).on_step_end is not Callback.on_step_end


@contextmanager
def _training(model: Any) -> Iterator[None]:
    """Within it a model that was set to evaluation trains; one that trains keeps the modes of its parts."""
    modules = list(model.modules()) if isinstance(model, Module) else []
    modes = [module.training for module in modules]
    if modules and not model.training:
        model.train()
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
