"""Checkpoints of a run that goes on: saved beside the training, in a folder that keeps the last few and the best.

`AsyncSaver` takes the values at once (tensors do not change: a step gives them others) and writes them on a thread of
its own. `CheckpointManager` names the files, and removes those that are not kept when another is safe on the disk.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from eshkol.errors import CheckpointError, EshkolError
from eshkol.io.checkpoint import Checkpoint, load_checkpoint, state_of
from eshkol.io.eskpt import Compress, write
from eshkol.io.files import Path, reason, sweep
from eshkol.io.state import Taken
from eshkol.support.warning import warn
from eshkol.tensors import api as ek


class DamagedCheckpoint(UserWarning):
    """A checkpoint of a folder cannot be read, and another takes its place."""


class AsyncSaver:
    """Saves states on a thread of its own, one after the other; what went wrong is told at the next call.

    A save waits for the one before it, so that there are never more than two states in memory: the run's own and the
    one that is written. `wait` returns when all is on the disk; leaving a `with` does too. The thread is no daemon: a
    program that ends waits for its last checkpoint.

    >>> with ek.io.AsyncSaver() as saver:
    ...     history = ek.train.fit(..., callbacks=[ek.train.Checkpoint(save=saver)])
    """

    def __init__(self, *, compress: Compress = None) -> None:
        self.compress = compress
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None

    def __call__(self, state: Mapping[str, Any], path: Path) -> None:
        self.save(state, path)

    def save(self, state: Mapping[str, Any], path: Path, then: Any = None) -> None:
        """Begin to save a state, as `save_state` does; `then` is called when it is on the disk."""
        who = "AsyncSaver"
        if not isinstance(state, Mapping):
            raise CheckpointError(f"{who}: a state is a dict, not a {type(state).__name__}", span=ek.here())
        self.wait()
        taken = Taken(state, who)

        def work() -> None:
            try:
                write(path, taken.arrays, taken.tree, compress=self.compress, who=who)
                if then is not None:
                    then()
            except BaseException as error:
                self._fault = error

        self._thread = threading.Thread(target=work, name="eshkol checkpoint")
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether something is being written."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Return when what was saved is on the disk; an error of that is raised here."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        fault, self._fault = self._fault, None
        if isinstance(fault, EshkolError):
            raise CheckpointError(f"the checkpoint before was not saved: {fault.message}", hint=fault.hint) from fault
        if fault is not None:
            raise fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.wait()
        elif self._thread is not None:  # that error is the one to be told
            self._thread.join()


@dataclass(frozen=True)
class Kept:
    """A checkpoint in the folder of a manager."""

    path: str
    step: int
    value: float | None = None  # of what is to be best


class CheckpointManager:
    """Checkpoints in a folder: the last `keep` and the best one stay.

    `best` names the value, among those given to `save`, by which one is the best: the lowest, or with `mode="max"` the
    highest. Files are named by their step, so that another process finds them: `latest`, `restore`. With `background`
    they are written on a thread, and training goes on.

    >>> manager = ek.io.CheckpointManager("runs/1", keep=3, best="val_loss")
    >>> manager.save(step, model, optimizer, values={"val_loss": 0.31})
    >>> manager.restore(model, optimizer)
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep: int = 3,
        best: str | None = None,
        mode: str = "min",
        prefix: str = "checkpoint",
        background: bool = False,
        compress: Compress = None,
    ) -> None:
        who = "CheckpointManager"
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise CheckpointError(f"{who}: keep is a number of checkpoints, 1 or more, not {keep!r}", span=ek.here())
        if mode not in ("min", "max"):
            raise CheckpointError(f"{who}: mode is 'min' or 'max', not {mode!r}", span=ek.here())
        if not re.fullmatch(r"[\w.+-]+", prefix) or prefix.startswith("."):
            raise CheckpointError(f"{who}: prefix begins the names of files, and {prefix!r} cannot", span=ek.here())
        self.folder, self.keep, self.best_by, self.mode, self.prefix = os.fspath(folder), keep, best, mode, prefix
        self._name = re.compile(re.escape(prefix) + r"-(\d{8,})\.eskpt")
        self._background = background
        self._saver = AsyncSaver(compress=compress)
        try:
            os.makedirs(self.folder, exist_ok=True)
            sweep(self.folder)
        except OSError as error:
            raise CheckpointError(f"{who}: cannot use the folder {self.folder!r}: {reason(error)}") from None
        self._values: dict[int, float] = {}
        if best is not None:
            self._values = {step: value for step in self.steps() if (value := self._value_in(step)) is not None}

    def _path(self, step: int) -> str:
        return os.path.join(self.folder, f"{self.prefix}-{step:08}.eskpt")

    def steps(self) -> list[int]:
        """The steps of the checkpoints that are there, the first first."""
        return sorted(int(m[1]) for name in os.listdir(self.folder) if (m := self._name.fullmatch(name)))

    def _value_in(self, step: int) -> float | None:
        """What a file says that it was best by; None where it does not, or with a warning where it cannot be read."""
        try:
            with Checkpoint(self._path(step), check=False) as file:
                values = file.raw_metadata.get("values")
        except CheckpointError as error:
            warn(f"{error.message}; it is not counted among the best", DamagedCheckpoint)
            return None
        value = values.get(self.best_by) if isinstance(values, dict) else None
        return float(value) if isinstance(value, float | int) and not math.isnan(value) else None

    @property
    def latest(self) -> str | None:
        """The path of the last checkpoint, None where there is none."""
        steps = self.steps()
        return self._path(steps[-1]) if steps else None

    @property
    def best(self) -> str | None:
        """The path of the best checkpoint, None where there is none."""
        step = self._best_step(self.steps())
        return None if step is None else self._path(step)

    def _best_step(self, steps: list[int]) -> int | None:
        sign = -1.0 if self.mode == "max" else 1.0
        known = [(sign * self._values[step], step) for step in steps if step in self._values]
        return min(known)[1] if known else None

    def kept(self) -> list[Kept]:
        """The checkpoints that are there, the first first."""
        return [Kept(self._path(step), step, self._values.get(step)) for step in self.steps()]

    def save(
        self,
        step: int,
        model: Any = None,
        optimizer: Any = None,
        schedule: Any = None,
        loader: Any = None,
        *,
        values: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> str:
        """Save a checkpoint of a step, then remove those that are not kept; its path.

        `values` are the numbers of this step, one of which is `best`; `state` is a whole state instead of a model and
        so on. Others are as of `save_checkpoint`.
        """
        who = "CheckpointManager.save"
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise CheckpointError(f"{who}: step is a count, not {step!r}", span=ek.here())
        numbers = {name: float(value) for name, value in (values or {}).items()}
        if self.best_by is not None and self.best_by not in numbers:
            raise CheckpointError(
                f"{who}: the best is chosen by {self.best_by!r}, which values= does not have", span=ek.here()
            )
        found = dict(state) if state is not None else state_of(
            model, optimizer, schedule, loader, step=step, who=who, **others
        )  # fmt: skip
        found["values"] = numbers
        path = self._path(step)
        value = numbers.get(self.best_by) if self.best_by is not None else None

        def then() -> None:
            if value is not None and not math.isnan(value):
                self._values[step] = value
            self._prune()

        self._saver.save(found, path, then)
        if not self._background:
            self._saver.wait()
        return path

    def _prune(self) -> None:
        """Remove what is neither among the last nor the best."""
        steps = self.steps()
        stays = {*steps[-self.keep :], self._best_step(steps)}
        for step in steps:
            if step not in stays:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(step))
                self._values.pop(step, None)

    def wait(self) -> None:
        """Return when what was saved is on the disk; an error of that is raised here."""
        self._saver.wait()

    def load(self, which: str = "latest") -> Checkpoint | None:
        """The "latest" or "best" checkpoint, open; None where there is none.

        A latest that is damaged, as after a fault of the disk, is passed over for the one before it, with a warning.
        """
        if which not in ("latest", "best"):
            raise CheckpointError(f"CheckpointManager.load: 'latest' or 'best', not {which!r}", span=ek.here())
        self.wait()
        if which == "best":
            return None if self.best is None else load_checkpoint(self.best)
        fault: CheckpointError | None = None
        for step in reversed(self.steps()):
            try:
                found = load_checkpoint(self._path(step))
                found.verify()
            except CheckpointError as error:
                fault = fault or error
                continue
            if fault is not None:
                warn(f"{fault.message}; {found.path!r} is taken instead", DamagedCheckpoint)
            return found
        if fault is not None:
            raise fault
        return None

    def restore(self, *things: Any, which: str = "latest", **named: Any) -> Checkpoint | None:
        """Give a model, an optimizer and so on the states of a checkpoint; None where there is none yet."""
        found = self.load(which)
        if found is not None:
            found.restore(*things, **named)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._saver.__exit__(*error)
