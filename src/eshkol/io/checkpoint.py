"""Checkpoints of training: everything that a run needs to go on as if it had never stopped, in one file.

`save_checkpoint` asks a model, an optimizer, a schedule and a loader for their states, and adds the state of
everybody's random numbers and how model and optimizer are made; `load_checkpoint` opens the file, and `restore` gives
the states back. `save_state` and `load_state` do the same with a state that one has already, such as that of
`ek.train.fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from eshkol.errors import CheckpointError
from eshkol.io.architecture import ARCHITECTURE, architecture_of, made_model, made_optimizer
from eshkol.io.eskpt import Compress, TensorFile, as_array, write
from eshkol.io.files import Path
from eshkol.io.state import MODEL, StatesTogether, Taken
from eshkol.nn.module import Loaded, Module
from eshkol.nn.recipes import NoRecipe
from eshkol.nn.remaking import Strange
from eshkol.optim.base import Optimizer
from eshkol.tensors import api as ek
from eshkol.tensors import keys

OPTIMIZER, SCHEDULE, LOADER, RNG, STEP, EPOCH, METADATA = (
    "optimizer", "schedule", "loader", "rng", "step", "epoch", "metadata",
)  # fmt: skip


class Stateful(Protocol):
    """What has a state: models, optimizers, schedules, loaders."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any) -> Any: ...


def state_of(
    model: Any = None,
    optimizer: Any = None,
    schedule: Any = None,
    loader: Any = None,
    *,
    rng: bool = True,
    step: int | None = None,
    epoch: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    who: str = "state_of",
) -> dict[str, Any]:
    """The states of all that is given, as one state; later training does not change it."""
    given = {MODEL: model, OPTIMIZER: optimizer, SCHEDULE: schedule, LOADER: loader}
    state = {name: _state(thing, name, who) for name, thing in given.items() if thing is not None}
    if isinstance(model, Module):
        state[ARCHITECTURE] = architecture_of(model, optimizer)
    if rng:
        state[RNG] = keys.default.state
    for name, count in ((STEP, step), (EPOCH, epoch)):
        if count is not None:
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise CheckpointError(f"{who}: {name} is a count, not {count!r}", span=ek.here())
            state[name] = count
    if metadata is not None:
        if not isinstance(metadata, Mapping):
            raise CheckpointError(f"{who}: metadata is a dict, not a {type(metadata).__name__}", span=ek.here())
        state[METADATA] = dict(metadata)
    return state


def _state(thing: Any, name: str, who: str) -> Any:
    if isinstance(thing, Mapping):
        return thing  # a state already
    if not callable(getattr(thing, "state_dict", None)):
        raise CheckpointError(
            f"{who}: {name}= takes what has a state_dict(), or such a state, not a {type(thing).__name__}",
            span=ek.here(),
        )
    return thing.state_dict()


def save_checkpoint(
    path: Path,
    model: Any = None,
    optimizer: Any = None,
    schedule: Any = None,
    loader: Any = None,
    *,
    rng: bool = True,
    step: int | None = None,
    epoch: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    compress: Compress = None,
) -> None:
    """Save the states of what is given, and of everybody's random numbers, to a file: all of it or, on an error, none.

    `compress` is True or a level of zstd from 1 to 19.

    >>> ek.io.save_checkpoint("run.eskpt", model, optimizer, step=1000, metadata={"lr": 1e-3})
    """
    who = "save_checkpoint"
    if isinstance(path, Module):
        raise CheckpointError(f"{who} takes the path first", span=ek.here(), hint="save_checkpoint('x.eskpt', model)")
    state = state_of(model, optimizer, schedule, loader, rng=rng, step=step, epoch=epoch, metadata=metadata, who=who)
    save_state(state, path, compress=compress, who=who)


def save_state(state: Mapping[str, Any], path: Path, *, compress: Compress = None, who: str = "save_state") -> None:
    """Save a state (dicts, lists and tuples of tensors, arrays, numbers and strings) to a file.

    It is what `ek.train.Checkpoint(save=ek.io.save_state)` calls; tensors under "model" keep their names in the file.
    """
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{who}: a state is a dict, not a {type(state).__name__}", span=ek.here())
    taken = Taken(state, who)
    write(path, taken.arrays, taken.tree, compress=compress, who=who)


def save_tensors(
    path: Path, tensors: Mapping[str, Any], *, metadata: Mapping[str, Any] | None = None, compress: Compress = None
) -> None:
    """Save tensors by name to a file.

    >>> ek.io.save_tensors("params.eskpt", {"weights": w, "biases": b})
    """
    who = "save_tensors"
    if not isinstance(tensors, Mapping):
        raise CheckpointError(f"{who} takes a dict of tensors, not a {type(tensors).__name__}", span=ek.here())
    strange = [name for name in tensors if not isinstance(name, str)]
    if strange:
        raise CheckpointError(f"{who}: the name of a tensor is a string, not {strange[0]!r}", span=ek.here())
    arrays = {name: as_array(value, name, who) for name, value in tensors.items()}
    tree = {} if metadata is None else {METADATA: Taken(metadata, who)}
    if tree and tree[METADATA].arrays:
        raise CheckpointError(f"{who}: metadata holds plain values, and has a tensor", hint="save it by name")
    write(path, arrays, {key: taken.tree for key, taken in tree.items()}, compress=compress, who=who)


class Checkpoint(TensorFile):
    """An open checkpoint: its tensors by name (`load`), the states in it, and `restore`.

    >>> checkpoint = ek.io.load_checkpoint("run.eskpt")
    >>> checkpoint.restore(model=model, optimizer=optimizer)
    >>> step = checkpoint.get("step")

    `model` and `optimizer` are made from the file alone, where the model consists of Eshkol's own layers.
    """

    _model: Module | None = None
    _optimizer: Optimizer | None = None

    def _part(self, key: str) -> Any:
        return self._together().put(self.raw_metadata[key])

    def _together(self) -> StatesTogether:
        return StatesTogether(self._tensor, self._source.refused)

    def _tensor(self, name: str) -> Any:
        if name not in self.tensors:
            raise KeyError(name)
        return self[name]

    def state(self, part: str | None = None) -> dict[str, Any]:
        """All that was saved, as one state: what `save_state` was given; or the state of a part, such as "model"."""
        if part is not None:
            found: dict[str, Any] = self._wanted(part)
            return found
        whole: dict[str, Any] = self._together().put(self.raw_metadata)
        return whole

    @property
    def parts(self) -> list[str]:
        """What is in it: model, optimizer, step, ..."""
        return list(self.raw_metadata)

    def get(self, key: str, default: Any = None) -> Any:
        """A part of it ("step", "epoch", "rng", ...) or of the metadata; the default where there is none."""
        if key in self.raw_metadata:
            return self._part(key)
        return self.metadata.get(key, default)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the saver wrote beside: the `metadata` of `save_checkpoint`."""
        found = self._part(METADATA) if METADATA in self.raw_metadata else {}
        return found if isinstance(found, dict) else {}

    @property
    def step(self) -> int | None:
        found: int | None = self.get(STEP)
        return found

    @property
    def epoch(self) -> int | None:
        found: int | None = self.get(EPOCH)
        return found

    def _wanted(self, key: str) -> Any:
        if self.raw_metadata.get(key) is None:
            there = ", ".join(k for k, v in self.raw_metadata.items() if v is not None) or "nothing but tensors"
            raise CheckpointError(f"{self.path!r} has no state of the {key}", span=ek.here(), hint=f"it has: {there}")
        return self._part(key)

    @property
    def model(self) -> Module:
        """The model, made from the file alone, in the mode it was saved in; always the same one.

        The file says how if it was saved from a module, all of Eshkol's own layers; others are made by their owner, and
        `restore` gives them their state.
        """
        if self._model is None:
            state = self.state(MODEL)
            self._model = self._made(MODEL, lambda said: made_model(said, state))
        return self._model

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer of `model`, made from the file alone; always the same one."""
        if self._optimizer is None:
            state, model = self.state(OPTIMIZER), self.model
            self._optimizer = self._made(OPTIMIZER, lambda said: made_optimizer(said, state, model))
        return self._optimizer

    def _made(self, part: str, make: Callable[[Any], Any]) -> Any:
        try:
            return make(self._part(ARCHITECTURE) if ARCHITECTURE in self.raw_metadata else None)
        except NoRecipe as reason:
            raise CheckpointError(
                f"{self.path!r} has the state of the {part}, and not how it is made: {reason}",
                span=ek.here(), hint=f"make the {part} yourself, and restore what was saved into it",
            ) from None  # fmt: skip
        except Strange as reason:
            raise self._source.refused(f"what it says of how its {part} is made cannot be followed: {reason}") from None

    def restore(
        self,
        model: Module | None = None,
        optimizer: Stateful | None = None,
        schedule: Stateful | None = None,
        loader: Stateful | None = None,
        *,
        rng: bool | None = None,
        strict: bool = True,
        names: str | Iterable[str] | None = None,
    ) -> Loaded | None:
        """Give what is given its state back: all or, on an error, nothing.

        Everybody's random numbers go on where they were too, if more than a model is given; `rng` says otherwise.
        `names` chooses tensors of the model by patterns, and the others stay as they are. With `strict=False` the
        result says which names did not fit.
        """
        given = {OPTIMIZER: optimizer, SCHEDULE: schedule, LOADER: loader}
        things = {key: thing for key, thing in given.items() if thing is not None}
        states = {key: self._wanted(key) for key in things}  # before any is changed
        goes_on = rng or (rng is None and bool(states) and RNG in self.raw_metadata)
        random = self._wanted(RNG) if goes_on else keys.default.state
        changed: list[tuple[Stateful, Any]] = []
        try:
            loaded = None
            if model is not None:
                changed.append((model, model.state_dict()))
                loaded = self._restore_model(model, strict, names)
            for key, thing in things.items():
                changed.append((thing, thing.state_dict()))
                thing.load_state_dict(states[key])
            keys.default.state = random
        except BaseException:
            for thing, before in changed:
                thing.load_state_dict(before)
            raise
        return loaded

    def _restore_model(self, model: Module, strict: bool, names: str | Iterable[str] | None) -> Loaded:
        if names is None and MODEL in self.raw_metadata:
            return model.load_state_dict(self.state(MODEL), strict=strict)
        patterns = () if names is None else (names,) if isinstance(names, str) else tuple(names)
        return model.load_state_dict(self.load(*patterns), strict=strict and names is None)


def load_checkpoint(path: Path, *, mmap: bool = False, check: bool = True) -> Checkpoint:
    """An open checkpoint; nothing of its tensors is read yet.

    With `mmap` tensors lie in the file, mapped into memory: a large one is there at once, and only what is used is
    read. `check=False` leaves out the checksums of tensors, for which all their bytes are read.
    """
    return Checkpoint(path, mmap=mmap, check=check)


def load_state(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    """What `save_state` was given, such as the state for `ek.train.fit(resume=state)`."""
    with Checkpoint(path, mmap=mmap) as checkpoint:
        return checkpoint.state()


def load_tensors(path: Path, *patterns: str, mmap: bool = False) -> dict[str, Any]:
    """The tensors of a file by name: all, or those that names or patterns such as "encoder.*" choose."""
    with TensorFile(path, mmap=mmap) as file:
        return file.load(*patterns)
