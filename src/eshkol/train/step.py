"""`Step`: one step of training as one compiled program; `Evaluation`: a model and its loss without training.

Comes in: a model, a loss `loss(outputs, targets)`, an optimizer, and batches. The whole step (the model, its loss, the
derivatives, clipping, the optimizer's update, averages of the weights) is a pure function of parameters, buffers, the
optimizer's state, a key and the batch; it is traced once for each shape of batch and overwrites its parameters in
place. With `jit=False` the same is done operation by operation, with values that may be looked at in the model.

A step whose loss or gradients are not finite changes nothing and says where that began (blame.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import isfinite, isnan, nan
from typing import Any, ClassVar, NamedTuple, Self

from eshkol.errors import EshkolError, IndexOutOfRange, NotANumberError, TensorError, TraceError
from eshkol.nn.gradients import clipped, clipped_by_value
from eshkol.nn.module import Module
from eshkol.nn.precision import autocast
from eshkol.optim.averaging import EMA
from eshkol.optim.base import Optimizer
from eshkol.optim.scaling import LossScale, chosen
from eshkol.optim.scaling import finite as all_finite
from eshkol.support.interrupts import uninterrupted
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.computing import realize
from eshkol.tensors.devices import HOST
from eshkol.tensors.drawing import drawing_with
from eshkol.tensors.holding import Taken, bare, differentiated, put, standing_for
from eshkol.tensors.jit import jit as compiled
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor
from eshkol.train.applying import HeldTensors, Loss, apply_model, evaluating, loss_of
from eshkol.train.blame import blame, refuse_targets
from eshkol.train.standing import Standing, made_key, one_more

OWN_STEP = "__step__"  # what a class of models calls the function that gives the class of its steps


@dataclass(frozen=True)
class StepResult:
    """What a step gives: the loss of the batch and what the model computed for it, before the update."""

    loss: Tensor
    outputs: Any
    _applied: bool
    _settle: Callable[[], None] | None = None  # of a step that was not waited for

    @property
    def applied(self) -> bool:
        """Whether parameters changed: not while gradients are summed, nor when a loss scale was too large."""
        if self._settle is not None:
            self._settle()
        return self._applied


class Handles:
    """The tensors that a step is about. Not a structure of values but one object, to which a trace belongs."""

    def __init__(
        self, trained: list[Tensor], untrained: list[Tensor], buffers: list[Tensor], used: tuple[bool, ...] = (),
        names: tuple[tuple[str, ...], ...] = (),
    ) -> None:  # fmt: skip
        self.trained, self.untrained, self.buffers = trained, untrained, buffers
        self.used = used  # which of the optimizer's parameters are trained
        self.names = names  # of what the optimizer remembers of each that is

    def remembering(self, slots: Sequence[Mapping[str, Tensor]]) -> Handles:
        """The same with these slots; the same object where they have the names that they had."""
        names = tuple([tuple(held) for held in slots])
        if names == self.names:
            return self
        return Handles(self.trained, self.untrained, self.buffers, self.used, names)

    def same(self, other: Handles) -> bool:
        """Whether these are the same tensors."""
        mine, theirs = ((h.trained, h.untrained, h.buffers) for h in (self, other))
        return self.used == other.used and _ids(*mine) == _ids(*theirs)

    def spread(self, values: Sequence[Any]) -> list[Any]:
        """What belongs to parameters that are trained, in the optimizer's order, with None for the others."""
        feed = iter(values)
        return [next(feed) if use else None for use in self.used]

    def gathered(self, values: Sequence[Any]) -> list[Any]:
        """The way back."""
        return [value for value, use in zip(values, self.used, strict=True) if use]


def _ids(*lists: Sequence[Tensor]) -> list[list[int]]:
    return [list(map(id, tensors)) for tensors in lists]


class Changing(NamedTuple):
    """What a step reads and writes: its memory is used again."""

    params: list[Tensor]
    buffers: list[Tensor]
    slots: list[dict[str, Tensor]]  # of the optimizer
    scale: Any  # of the loss
    sums: list[Tensor]  # of gradients, where several batches make a step

    @classmethod
    def of(cls, handles: Handles, values: Sequence[Tensor], scale: Any, sums: list[Tensor]) -> Changing:
        """What values are of, that come one after another as `flat` gives them."""
        feed = iter(values)
        params, buffers = ([next(feed) for _ in x] for x in (handles.trained, handles.buffers))
        slots = [{name: next(feed) for name in names} for names in handles.names]
        return cls(params, buffers, slots, scale, sums)

    def flat(self, handles: Handles) -> list[Tensor]:
        """Parameters, buffers and slots, one after another: as one list they cost a call less than as many."""
        slots = zip(self.slots, handles.names, strict=True)
        return [*self.params, *self.buffers, *[held[name] for held, names in slots for name in names]]


class StepInputs(NamedTuple):
    """What a step only reads."""

    untrained: list[Tensor]
    hyper: Any
    counts: Any  # of steps, this one included
    key: Any  # a tensor, or what it is made of where it stands on another machine
    inputs: Any
    targets: Any


def brought(batch: Any, device: str) -> Any:
    """A batch where the parameters are; loaders give arrays of the host, which need no copy to be read there."""
    if all(x.device == device if isinstance(x, Tensor) else device == HOST for x in ek.tree_leaves(batch)):
        return batch
    return ek.device_put(batch, device)


class Step:
    """A step of training: `step(inputs, targets)` changes the model's parameters and gives the loss.

    - `jit=False` computes operation by operation, for debugging.
    - `accumulate=k` sums the gradients of k calls and updates in the last of them.
    - `clip_norm`, `clip_value` limit the gradients: all together by their norm, or each number.
    - `precision="bfloat16"` computes products in that dtype; parameters stay as they are. `loss_scale` is a number, or
      "dynamic": steps whose gradients overflow are skipped and the scale is lowered.
    - `ema` averages the weights after each update.
    - With `ahead=True` a call does not wait for the machine, which has the next step to do as soon as this one is done:
      a loss or gradient that is not finite is told by the next call, by `result.applied`, or by `settle()`.

    >>> step = ek.train.Step(model, ek.cross_entropy, ek.optim.Adam(model.parameters(), lr=1e-3))
    >>> loss = step(images, labels).loss
    """

    __signature__: ClassVar[inspect.Signature]  # that of `__init__`

    def __new__(cls, *given: Any, **how: Any) -> Self:
        """A model on several machines (`ek.parallel`) has steps of its own."""
        model = given[0] if given else how.get("model")
        kind = getattr(type(model), OWN_STEP, None) if cls is Step else None
        found: Self = super().__new__(cls if kind is None else kind())
        return found

    def __init__(
        self,
        model: Any,
        loss: Loss,
        optimizer: Optimizer,
        *,
        jit: bool = True,
        accumulate: int = 1,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        precision: Any = None,
        loss_scale: float | str | LossScale | None = None,
        ema: EMA | None = None,
        ahead: bool = False,
    ) -> None:
        if ahead and (not jit or accumulate != 1 or loss_scale is not None or ema is not None):
            raise TensorError(
                "ahead=True goes with no jit=False, accumulate, loss_scale or ema: what comes next depends there on "
                "whether it was finite", span=ek.here(), hint="leave ahead out: each step is waited for then",
            )  # fmt: skip
        if not is_whole(accumulate, 1):
            raise TensorError(f"accumulate is a number of batches, not {accumulate!r}", span=ek.here())
        for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if limit is not None and not limit > 0:
                raise TensorError(f"{name} is a number above zero, not {limit!r}", span=ek.here())
        self.model, self.loss, self.optimizer, self.jit = model, loss, optimizer, jit
        self.accumulate, self.clip_norm, self.clip_value = accumulate, clip_norm, clip_value
        self.precision, self.ema, self.ahead = precision, ema, ahead
        self._open: tuple[Tensor, StepInputs, Handles] | None = None  # a step that was not waited for, by its loss
        self.scale = _scale_of(loss_scale)
        self._held = HeldTensors(model, loss)
        self._sums: list[Tensor] = []  # gradients of the batches since the last update
        self._summed = 0
        self._handles = Handles([], [], [])
        self.unreached: tuple[int, ...] | None = (
            None  # parameters that the loss does not depend on: places in `trained`
        )
        self._standing = Standing()
        self._run = compiled(self._step, donate=3, floats=True, name="a training step")

    def __call__(self, inputs: Any, targets: Any = None) -> StepResult:
        if isinstance(self.model, Module) and not self.model.training:
            raise TensorError(
                "the model is in evaluation mode: dropout and batch norm would not train", span=ek.here(),
                hint="call model.train() first",
            )  # fmt: skip
        handles = self._current()
        last = self._summed + 1 >= self.accumulate
        given = self._given(handles, inputs, targets)
        try:
            loss, outputs, finite = (self._compiled if self.jit else self._eagerly)(handles, last, given)
        except IndexOutOfRange as error:
            refuse_targets(self.model, self.loss, given.inputs, given.targets)
            if self.jit:
                _say_call(error)
            raise
        except TraceError as error:
            if self.jit:
                error.hint = f"{error.hint + '; ' if error.hint else ''}jit=False makes steps whose values are known"
            raise
        if self.ahead:
            before, self._open = self._open, (loss, given, handles)
            self._look_at(before)  # while the machine has this one to do already
            return StepResult(loss, outputs, True, partial(self._settled, loss))
        if not finite and (self.scale is None or not isfinite(loss.item())):  # no scale makes a loss finite
            raise self._not_finite(loss, given)
        return StepResult(loss, outputs, finite and last)

    def _given(self, handles: Handles, inputs: Any, targets: Any) -> StepInputs:
        """What a step only reads, where the parameters are."""
        others = [bare(p) for p in handles.untrained]
        hyper, counts = self.optimizer.hyper(), self.optimizer.next_steps(handles.used)
        key: Any
        device = handles.trained[0].device
        inputs, targets = brought((inputs, targets), device)
        if self.jit and device != HOST:
            self._standing.begin(device)
            (hyper, counts), key = self._standing.numbers((hyper, counts)), self._standing.key()
        else:
            key = adopted(keys.next_key(), device)
        return StepInputs(others, hyper, counts, key, inputs, targets)

    def settle(self) -> None:
        """Wait for the last step; where its loss or a gradient was not finite, say so."""
        last, self._open = self._open, None
        self._look_at(last)

    def _settled(self, loss: Tensor) -> None:
        if self._open is not None and self._open[0] is loss:
            self.settle()

    def _look_at(self, step: tuple[Tensor, StepInputs, Handles] | None) -> None:
        """Wait for a step that was not waited for; one that was not finite has changed nothing, and is not counted."""
        if step is None:
            return
        loss, given, handles = step
        if isnan(loss.item()):
            self.optimizer.unstepped(handles.trained)
            error = self._not_finite(loss, given)
            error.hint = f"{error.hint}; it is told late, as ahead=True says: the batch after it was used"
            raise error

    def _current(self) -> Handles:
        """The tensors that the step is about now; the same object for as long as they are the same."""
        used = tuple([p.requires_grad for p in self.optimizer.tensors])
        trained = [p for p, use in zip(self.optimizer.tensors, used, strict=True) if use]
        if not trained:
            raise TensorError("no parameter of the optimizer requires grad", span=ek.here(), hint="model.unfreeze()")
        ids = {id(p) for p in trained}
        untrained = [p for p in self._held.parameters if id(p) not in ids]
        found = Handles(trained, untrained, self._held.buffers, used)
        if not found.same(self._handles):
            if self._sums:
                raise TensorError("parameters were frozen or added while gradients are summed", span=ek.here())
            self._handles = found
        return self._handles

    @property
    def trained(self) -> list[Tensor]:
        """The parameters of the last step."""
        return self._handles.trained

    @property
    def waiting(self) -> int:
        """How many batches have their gradients summed, and wait for others to make a step."""
        return self._summed

    def forget(self) -> None:
        """Begin anew with a batch: gradients that were summed are left out."""
        self._sums, self._summed = [], 0

    def state_dict(self) -> dict[str, Any]:
        """What it holds between calls, besides the model's and the optimizer's: summed gradients, the loss's scale."""
        self.settle()
        sums = [bare(g) for g in self._sums]
        return {"sums": sums, "summed": self._summed, "scale": self.scale and self.scale.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        if (state["scale"] is None) != (self.scale is None):
            raise TensorError("the state was saved with another loss_scale than this step has", span=ek.here())
        if self.scale is not None:
            self.scale.load_state_dict(state["scale"])
        self._handles, self._open = Handles([], [], []), None
        self._sums = []
        self._current()
        self._sums, self._summed = [ek.asarray(g).clone().realize() for g in state["sums"]], int(state["summed"])

    # --- the step as a pure function ----------------------------------------------------------------------------------

    def _step(
        self, handles: Handles, kinds: tuple[Any, ...], last: bool, changing: tuple[Any, ...], fixed: tuple[Any, ...]
    ) -> Any:
        """Loss, outputs, the loss if all is finite (else NaN), the next values of what a step changes, and next counts.

        What changes comes and goes as `flat` values, a scale and sums. What tells whether all is finite is a loss, so
        that one number is read of a step. It takes and gives plain tuples, which cost a call less than others do.
        """
        now, given = Changing.of(handles, *changing), StepInputs(*fixed)

        def objective(values: list[Tensor]) -> tuple[Tensor, Any]:
            tensors = [*handles.trained, *handles.untrained, *handles.buffers]
            with standing_for(tensors, [*values, *given.untrained, *now.buffers]):
                loss, outputs = self._forward(given)
                after = [Tensor(b._node) for b in handles.buffers]
            if self.unreached is None:
                self.unreached = tuple(k for k, used in enumerate(differentiated(loss, values)) if not used)
            return self._scaled(loss, now.scale), (loss, outputs, ek.stop_gradient(after))

        (_, (loss, outputs, after)), grads = ek.value_and_grad(objective, has_aux=True)(now.params)
        finite, following = self._next(handles, last, now, given, loss, grads, after)
        there = not isinstance(given.key, Tensor)
        counts = one_more((given.counts, given.key[1])) if there else None
        after_it = (following.flat(handles), following.scale, following.sums)
        return loss, outputs, ek.where(finite, loss, nan), after_it, counts

    def _forward(self, given: StepInputs) -> tuple[Tensor, Any]:
        lower: AbstractContextManager[Any] = nullcontext() if self.precision is None else autocast(self.precision)
        with drawing_with(made_key(given.key)):
            with lower:
                outputs = apply_model(self.model, given.inputs)
            return loss_of(self.loss, outputs, given.targets), outputs

    def _scaled(self, loss: Tensor, scale: Any) -> Tensor:
        return loss if self.scale is None else self.scale.scaled(loss, scale)

    def _next(
        self, handles: Handles, last: bool, now: Changing, given: StepInputs, loss: Tensor, grads: list[Tensor],
        buffers: list[Tensor],
    ) -> tuple[Tensor, Changing]:  # fmt: skip
        """Whether loss and gradients are finite, and the next values; where they are not, the old ones."""
        if self.scale is not None:
            grads = self.scale.unscaled(grads, now.scale)
        if self.accumulate > 1:
            grads = [g / self.accumulate for g in grads]
        grads = [a + g for a, g in zip(now.sums, grads, strict=True)] if now.sums else grads
        finite = all_finite([loss, *grads])
        scale = now.scale if self.scale is None else self.scale.updated(now.scale, finite)
        buffers = chosen(finite, buffers, now.buffers)
        if not last:
            sums = chosen(finite, grads, now.sums or [ek.zeros_like(g) for g in grads])
            return finite, now._replace(buffers=buffers, scale=scale, sums=sums)
        if self.clip_norm is not None:
            grads = clipped(grads, self.clip_norm)
        if self.clip_value is not None:
            grads = clipped_by_value(grads, self.clip_value)
        values, sloped, held = (handles.spread(x) for x in (now.params, grads, now.slots))
        found = self.optimizer.updated(values, sloped, held, given.hyper, given.counts)
        params, slots = chosen(finite, [handles.gathered(x) for x in found], [now.params, now.slots])
        return finite, Changing(params, buffers, slots, scale, [])

    # --- values in and out --------------------------------------------------------------------------------------------

    def _compiled(self, handles: Handles, last: bool, given: StepInputs) -> tuple[Tensor, Any, bool]:
        handles, tensors = self._remembered(handles)
        with uninterrupted():
            taken = Taken(tensors)
            try:
                now = taken.values(), self._scale_now(), self._sums
                loss, outputs, told, found, counts = self._run(handles, self._held.kinds, last, now, tuple(given))
            except BaseException:
                taken.put_back()
                raise
            values, scale, sums = found
            taken.put(values)
            if counts is not None:
                self._standing.counted(self.optimizer.next_steps(handles.used), *counts)
            finite = self.ahead or not isnan(told.item())  # the last thing: it waits for the machine
            self._keep(handles, last, finite, scale, sums)
        return told if finite else loss, outputs, finite

    def _remembered(self, handles: Handles) -> tuple[Handles, list[Tensor]]:
        """The step's tensors with what the optimizer remembers, and all of them whose values it changes."""
        slots = handles.gathered(self.optimizer.slots())
        handles = self._handles = handles.remembering(slots)
        return handles, [*handles.trained, *handles.buffers, *[x for held in slots for x in held.values()]]

    def _scale_now(self) -> Any:
        return None if self.scale is None else self.scale.state

    def _eagerly(self, handles: Handles, last: bool, given: StepInputs) -> tuple[Tensor, Any, bool]:
        handles, tensors = self._remembered(handles)
        earlier = [p.grad for p in handles.trained]
        before = [bare(tensor) for tensor in tensors]
        first = len(handles.trained)
        try:
            for p in handles.trained:
                p.grad = None
            now = Changing.of(handles, before, self._scale_now(), self._sums)
            loss, outputs = self._forward(given)
            self._scaled(loss, now.scale).backward()
            if self.unreached is None:
                self.unreached = tuple(k for k, p in enumerate(handles.trained) if p.grad is None)
            with no_grad():
                grads = [ek.zeros_like(p) if p.grad is None else p.grad for p in handles.trained]
                buffers = [bare(b) for b in handles.buffers]
                loss = loss.detach()
                finite, after = self._next(handles, last, now, given, loss, grads, buffers)
                realize(loss, finite, *ek.tree_leaves(after))
        except BaseException:
            for b, value in zip(handles.buffers, before[first : first + len(handles.buffers)], strict=True):
                put(b, value)
            raise
        finally:
            for p, g in zip(handles.trained, earlier, strict=True):
                p.grad = g
        with uninterrupted():
            for tensor, value in zip(tensors, after.flat(handles), strict=True):
                put(tensor, value)
            self._keep(handles, last, bool(finite), after.scale, after.sums)
        return loss, ek.tree_map(_plain, outputs), bool(finite)

    def _keep(self, handles: Handles, last: bool, finite: bool, scale: Any, sums: list[Tensor]) -> None:
        """What is counted and held besides the tensors, after a step."""
        self._sums = sums
        if self.scale is not None:
            self.scale.state = scale
        if finite:
            self._summed = 0 if last else self._summed + 1
        if finite and last:
            self.optimizer.stepped(handles.trained)
            if self.ema is not None:
                self.ema.update()

    def _not_finite(self, loss: Tensor, given: StepInputs) -> NotANumberError:
        with drawing_with(made_key(given.key)):
            # Compiled, a batch may be of arrays; here it is computed layer by layer, which takes tensors.
            inputs, targets = ek.device_put((given.inputs, given.targets), self.trained[0].device)
            where = blame(self.model, self.loss, inputs, targets)
        found = loss.item()
        return NotANumberError(
            f"{'a gradient is not finite' if isfinite(found) else f'the loss is {found:g}'}: {where}",
            span=ek.here(), hint="nothing was changed; lower the learning rate, clip gradients, or look at the data",
        )  # fmt: skip


_told = inspect.signature(Step.__init__)
Step.__signature__ = _told.replace(parameters=[*_told.parameters.values()][1:])


def _scale_of(given: float | str | LossScale | None) -> LossScale | None:
    if given is None or isinstance(given, LossScale):
        return given
    if given == "dynamic":
        return LossScale()
    if isinstance(given, str):
        raise TensorError(f'loss_scale is a number, "dynamic" or an optim.LossScale, not {given!r}', span=ek.here())
    return LossScale(float(given), dynamic=False)


def _say_call(error: EshkolError) -> None:
    """Add the line of this call where the error tells of the line that was traced."""
    now = ek.here()
    if now is not None and error.span is not None and error.span != now:
        error.hint = f"{error.hint + '; ' if error.hint else ''}in the call at {now.file}:{now.line}"


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


class Evaluation:
    """A model in evaluation mode and its loss, without training: `evaluation(inputs, targets)` gives (loss, outputs).

    The model's mode is put back afterwards; buffers stay as they are.
    """

    def __init__(self, model: Any, loss: Loss | None = None, *, jit: bool = True) -> None:
        self.model, self.loss = model, loss
        self._held = HeldTensors(model, loss)
        self._tensors = Handles([], [], [])
        self._spread = hasattr(type(model), OWN_STEP)  # over machines: it compiles what is done on each by itself
        self._run = compiled(self._evaluated, name="an evaluation") if jit and not self._spread else self._evaluated

    def _evaluated(
        self, tensors: Handles, kinds: tuple[Any, ...], values: list[Tensor], inputs: Any, targets: Any
    ) -> tuple[Any, Any]:
        with standing_for(tensors.untrained, values):
            outputs = apply_model(self.model, inputs)
            if self.loss is None:
                return None, outputs
            if self._spread:
                targets = brought(targets, next(x.device for x in ek.tree_leaves(outputs) if isinstance(x, Tensor)))
            return loss_of(self.loss, outputs, targets), outputs

    def __call__(self, inputs: Any, targets: Any = None) -> tuple[Tensor | None, Any]:
        tensors = [*self._held.parameters, *self._held.buffers]
        if _ids(self._tensors.untrained) != _ids(tensors):
            self._tensors = Handles([], tensors, [])
        if tensors:
            inputs, targets = brought((inputs, targets), tensors[0].device)
        try:
            with no_grad(), evaluating(self.model):
                loss, outputs = self._run(self._tensors, self._held.kinds, [bare(t) for t in tensors], inputs, targets)
                realize(*(x for x in ek.tree_leaves((loss, outputs)) if isinstance(x, Tensor)))
        except IndexOutOfRange as error:
            if self.loss is not None:
                refuse_targets(self.model, self.loss, inputs, targets)
            _say_call(error)
            raise
        return loss, outputs
