"""`Pipeline`: a model whose layers lie on several machines, which work on parts of a batch at the same time.

Comes in: stages, each a module with its device. A batch goes through them as microbatches: while the second stage is
given the first of these, the first stage does the second. Goes out: results and gradients of the whole batch. In a step
(`PipelineStep`, which is what `train.Step` makes of such a model) a stage keeps what it was given, and computes again
what its derivatives need (as GPipe does). Losses and gradients are added up in the order of the microbatches, whoever
is done first; each stage's parameters are updated where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite, sqrt
from queue import SimpleQueue
from typing import Any, NamedTuple

from eshkol.errors import NotANumberError, TensorError
from eshkol.nn.gradients import SMALL, clipped_by_value
from eshkol.nn.module import Module
from eshkol.optim.scaling import finite as all_finite
from eshkol.parallel.splitting import Weigh, Weighing, checked_count, count_rows, cut, joined, sizes_of, summed
from eshkol.parallel.workers import TRACING, GivenUp, Work, Workers, still_wanted
from eshkol.support.interrupts import uninterrupted
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.computing import realize
from eshkol.tensors.devices import device, open_backend
from eshkol.tensors.drawing import drawing_with, tracing
from eshkol.tensors.holding import Taken, bare, standing_for
from eshkol.tensors.jit import jit as compiled
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor
from eshkol.train.applying import Loss, apply_model, loss_of
from eshkol.train.step import Handles, Step, StepInputs, brought

SCHEDULES = ("gpipe", "1f1b")
FORWARD, BACKWARD = "forward", "backward"
_STOP = object()  # what goes through channels where a stage has failed


class Pipeline(Module):
    """Stages one after another, each on a device; a batch goes through them in `microbatches` parts.

    Parameters are those of the stages, each on its own device. Train them with `train.Step(model, loss, optimizer)`,
    `fit` or whatever trains modules; a call of the model itself goes through the stages with the whole batch, and
    gradients flow back from device to device. What a stage gives is what the next is called with; a tuple is several
    arguments. The loss is computed on the last device: one that is a module is moved there.

    With `schedule="1f1b"` a stage goes back as soon as it can, and keeps no more of the microbatches than there are
    stages after it; results are the same. `weigh` and `reduction` are as for `DataParallel`.

    >>> model = ek.parallel.Pipeline([(encoder, "cuda:0"), (decoder, "cuda:1")], microbatches=8)
    """

    def __init__(
        self, stages: Sequence[tuple[Module, str]], microbatches: int = 4, *, schedule: str = "gpipe",
        weigh: Weigh | None = None, reduction: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        who = type(self).__name__
        pairs = [pair for pair in stages if isinstance(pair, tuple | list) and len(pair) == 2]
        if not stages or len(pairs) != len(stages) or not all(isinstance(stage, Module) for stage, _ in pairs):
            raise TensorError(
                f"{who} takes a list of stages, each a module and its device", span=ek.here(),
                hint='Pipeline([(first, "cuda:0"), (second, "cuda:1")])',
            )  # fmt: skip
        if schedule not in SCHEDULES:
            raise TensorError(f"{who}: the schedule is {' or '.join(SCHEDULES)}, not {schedule!r}", span=ek.here())
        self.devices = [open_backend(name).name for _, name in pairs]
        self.microbatches, self.schedule = checked_count(microbatches, who), schedule
        self.weighing = Weighing(reduction, weigh)
        owner: dict[int, int] = {}
        for number, (stage, _) in enumerate(pairs):
            for name, tensor in [*stage.named_parameters(), *stage.named_buffers()]:
                if owner.setdefault(id(tensor), number) != number:
                    raise TensorError(
                        f"{who}: '{name}' belongs to stages {owner[id(tensor)]} and {number}: a tensor is in one place",
                        span=ek.here(),
                    )
        for number, ((stage, _), where) in enumerate(zip(pairs, self.devices, strict=True)):
            self.add_module(str(number), stage.to(where))

    @property
    def stages(self) -> list[Module]:
        """The modules, in order."""
        return list(self.children())

    @staticmethod
    def __step__() -> type[Step]:
        return PipelineStep

    def forward(self, *args: Any, **given: Any) -> Any:
        """What the last stage gives, on its device."""
        if tracing() and len(set(self.devices)) > 1:
            raise TensorError(
                f"a {type(self).__name__} over {', '.join(self.devices)} cannot be part of a function that is compiled "
                "for one machine", span=ek.here(), hint="call it outside of jit: ek.train.Step compiles its stages",
            )  # fmt: skip
        first, *others = self.stages
        result = first(*brought(args, self.devices[0]), **brought(given, self.devices[0]))
        for stage, where in zip(others, self.devices[1:], strict=True):
            result = apply_model(stage, brought(result, where))
        return result


def order_of(schedule: str, stage: int, stages: int, microbatches: int) -> Iterator[tuple[str, int]]:
    """What a stage does, one after another: which microbatch it takes forward, or back."""
    ahead = microbatches if schedule == "gpipe" else min(microbatches, stages - stage)
    yield from ((FORWARD, k) for k in range(ahead))
    for k in range(microbatches):
        yield BACKWARD, k
        if ahead + k < microbatches:
            yield FORWARD, ahead + k


class Functions(NamedTuple):
    """What a stage computes with: pure functions of values."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    last: Callable[..., Any]
    check: Callable[..., Any]
    update: Callable[..., Any]


@dataclass
class Stage:
    """A stage in a step: its tensors, what it is given, and what came of it."""

    number: int
    device: str
    module: Module
    handles: Handles  # of its own tensors; those that are trained in the optimizer's order
    places: list[int]  # of these among all that are trained
    does: Functions
    values: list[Tensor] = field(default_factory=list)
    buffers: list[Tensor] = field(default_factory=list)
    grads: list[Tensor] | None = None


class Passed(NamedTuple):
    """What the last stage knows of a microbatch: its loss, as it counts in that of the whole, and the outputs."""

    loss: Tensor
    outputs: Any


class PipelineStep(Step):
    """A step of training through the stages of a `Pipeline`: gradients are those of the whole batch.

    Gradients are summed over microbatches, so there is no `accumulate`; loss scales and averages of weights (`ema`) are
    of one machine. With `jit=False` stages are not compiled, and work at the same time all the same.
    """

    def __init__(self, model: Pipeline, loss: Loss, optimizer: Any, **how: Any) -> None:
        if not isinstance(model, Pipeline):
            raise TensorError(f"a PipelineStep is of a Pipeline, not of a {type(model).__name__}", span=ek.here())
        for name, plain in (("accumulate", 1), ("loss_scale", None), ("ema", None), ("ahead", False)):
            if how.get(name, plain) != plain:
                hint = "more microbatches do the same" if name == "accumulate" else "a model on one machine has it"
                raise TensorError(f"a Pipeline is trained without {name}", span=ek.here(), hint=hint)
        if isinstance(loss, Module):
            loss.to(model.devices[-1])
        super().__init__(model, loss, optimizer, **how)
        self.pipeline = model
        self._workers = Workers()
        self._stages: list[Stage] = []
        self._of: Handles | None = None

    def _given(self, handles: Handles, inputs: Any, targets: Any) -> StepInputs:
        hyper, counts = self.optimizer.hyper(), self.optimizer.next_steps(handles.used)
        return StepInputs([], hyper, counts, keys.next_key(), inputs, targets)

    def _compiled(self, handles: Handles, last: bool, given: StepInputs) -> tuple[Tensor, Any, bool]:
        model, stages = self.pipeline, self._parted(handles)
        rows = count_rows((given.inputs, given.targets), type(self).__name__)
        sizes = [size for size in sizes_of(rows, (1.0,) * model.microbatches) if size]
        inputs, targets = cut(given.inputs, sizes), cut(given.targets, sizes)
        fractions = model.weighing.fractions(self.loss, list(zip(inputs, targets, strict=True)), sizes)
        for stage in stages:
            stage.values = [bare(t) for t in (*stage.handles.trained, *stage.handles.untrained)]
            stage.buffers, stage.grads = [bare(b) for b in stage.handles.buffers], None
        kinds = self._held.kinds
        passage = _Passage(self, stages, kinds, given.key, inputs, targets, fractions)
        works: list[Work] = [(f"{s.device}, stage {s.number}", partial(passage.run, s)) for s in stages]
        passed: list[Passed] = self._workers.at_once(works, passage.stop)[-1]
        loss = summed([one.loss for one in passed])
        outputs = joined([one.outputs for one in passed], sizes, type(self).__name__)
        return self._ended(handles, stages, given, loss, outputs)

    _eagerly = _compiled

    def _parted(self, handles: Handles) -> list[Stage]:
        """The stages with their own tensors; the same objects for as long as the tensors are the same."""
        if self._of is handles:
            return self._stages
        places = {id(t): k for k, t in enumerate(handles.trained)}
        model = self.pipeline
        stages: list[Stage] = []
        for number, (module, where) in enumerate(zip(model.stages, model.devices, strict=True)):
            roots = [module]
            if number == len(model.devices) - 1 and isinstance(self.loss, Module):
                roots.append(self.loss)
            held = [p for root in roots for p in root.parameters()]
            trained = sorted((t for t in held if id(t) in places), key=lambda t: places[id(t)])
            untrained = [t for t in held if id(t) not in places]
            buffers = [b for root in roots for b in root.buffers()]
            own = Handles(trained, untrained, buffers)
            stages.append(Stage(number, where, module, own, [places[id(t)] for t in trained], self._functions(number)))
        missing = set(places) - {id(t) for stage in stages for t in stage.handles.trained}
        if missing:
            raise TensorError(
                f"the optimizer has {len(missing)} parameters that belong to no stage of the Pipeline", span=ek.here()
            )
        self._stages, self._of, self.unreached = stages, handles, ()
        return stages

    def _functions(self, number: int) -> Functions:
        """What a stage computes with, compiled."""
        plain = Functions(*(
            partial(function, number)
            for function in (self._forward_of, self._backward_of, self._last_of, self._check, self._update)
        ))  # fmt: skip
        if not self.jit:
            return plain
        return Functions(*(
            compiled(function, floats=True, donate=(0, 1) if name == "update" else (), name=f"{name} of stage {number}")
            for name, function in zip(Functions._fields, plain, strict=True)
        ))  # fmt: skip

    # --- what a stage computes: pure functions ------------------------------------------------------------------------

    def _through(
        self, number: int, handles: Handles, values: list[Tensor], buffers: list[Tensor], key: Any, given: Any,
        then: Callable[[Any], Any],
    ) -> tuple[Any, list[Tensor]]:  # fmt: skip
        """What is made of a stage's outputs, and its next buffers."""
        tensors = [*handles.trained, *handles.untrained, *handles.buffers]
        with TRACING:
            still_wanted()
            with standing_for(tensors, [*values, *buffers]), drawing_with(key), self._lower():
                result = then(apply_model(self.pipeline.stages[number], given))
                return result, [Tensor(b._node) for b in handles.buffers]

    def _forward_of(
        self, number: int, handles: Handles, kinds: Any, values: Any, buffers: Any, key: Any, given: Any
    ) -> Any:
        return self._through(number, handles, values, buffers, key, given, lambda outputs: outputs)

    def _backward_of(
        self, number: int, handles: Handles, kinds: Any, values: Any, buffers: Any, key: Any, given: Any, wanted: Any,
        sums: Any,
    ) -> Any:  # fmt: skip
        """Gradients of the parameters with those of earlier microbatches, and of what the stage was given."""
        count = len(handles.trained)
        floats, rebuilt = _floats_of(given)

        def outputs_of(trained: list[Tensor], inputs: list[Tensor]) -> Any:
            result, _ = self._through(
                number, handles, [*trained, *values[count:]], buffers, key, rebuilt(inputs), lambda outputs: outputs
            )
            return _floats_of(result)[0]

        _, pull = ek.vjp(outputs_of, values[:count], floats)
        grads, back = pull(wanted)
        return _added(sums, grads), back

    def _last_of(
        self, number: int, handles: Handles, kinds: Any, values: Any, buffers: Any, key: Any, given: Any, targets: Any,
        fraction: Any, sums: Any,
    ) -> Any:  # fmt: skip
        """The same of the last stage, with loss and outputs."""
        count = len(handles.trained)
        floats, rebuilt = _floats_of(given)

        def objective(both: tuple[list[Tensor], list[Tensor]]) -> Any:
            trained, inputs = both

            def ended(outputs: Any) -> Any:
                loss = loss_of(self.loss, outputs, targets)
                return ek.cast(loss * fraction, loss.dtype), outputs

            (loss, outputs), after = self._through(
                number, handles, [*trained, *values[count:]], buffers, key, rebuilt(inputs), ended
            )
            return loss, ek.stop_gradient((loss, outputs, after))

        (_, (loss, outputs, after)), (grads, back) = ek.value_and_grad(objective, has_aux=True)(
            (values[:count], floats)
        )
        return loss, outputs, after, _added(sums, grads), back

    def _lower(self) -> Any:
        from contextlib import nullcontext

        from eshkol.nn.precision import autocast

        return nullcontext() if self.precision is None else autocast(self.precision)

    def _check(self, number: int, grads: list[Tensor]) -> Any:
        """Whether all gradients of a stage are finite, and the square of their norm."""
        squares = [ek.cast(ek.abs(g), ek.float32 if g.dtype.size <= 4 else ek.float64) for g in grads]
        return all_finite(grads), summed([(s * s).sum() for s in squares])

    def _update(
        self, number: int, params: list[Tensor], slots: list[dict[str, Tensor]], grads: list[Tensor], hyper: Any,
        counts: Any, factor: Any, places: tuple[int, ...], layout: tuple[bool, ...],
    ) -> Any:  # fmt: skip
        """The next values and slots of a stage's parameters."""
        if self.clip_norm is not None:
            grads = [ek.cast(g * factor, g.dtype) for g in grads]
        if self.clip_value is not None:
            grads = clipped_by_value(grads, self.clip_value)

        def spread(found: Sequence[Any]) -> list[Any]:
            """In the optimizer's order, with nothing for parameters that are elsewhere."""
            mine = dict(zip(places, found, strict=True))
            trained = iter(range(sum(layout)))
            return [mine.get(next(trained)) if used else None for used in layout]

        values, after = self.optimizer.updated(spread(params), spread(grads), spread(slots), hyper, counts)
        mine = spread([True] * len(places))
        return [v for v, own in zip(values, mine, strict=True) if own], [
            s for s, own in zip(after, mine, strict=True) if own
        ]

    # --- the end of a step --------------------------------------------------------------------------------------------

    def _ended(
        self, handles: Handles, stages: Sequence[Stage], given: StepInputs, loss: Tensor, outputs: Any
    ) -> tuple[Tensor, Any, bool]:
        training = [stage for stage in stages if stage.places]
        checks = []
        for stage in training:
            with device(stage.device):
                checks.append(stage.does.check(stage.grads))
        finite = isfinite(loss.item()) and all(bool(good) for good, _ in checks)
        if not finite:
            return loss, ek.tree_map(_plain, outputs), False
        factor = 1.0
        if self.clip_norm is not None:
            factor = min(self.clip_norm / (sqrt(sum(float(square.item()) for _, square in checks)) + SMALL), 1.0)
        slots = handles.gathered(self.optimizer.slots())
        with uninterrupted():
            for stage in training:
                with device(stage.device):
                    self._updated(stage, [slots[k] for k in stage.places], given, factor, handles.used)
            for stage in stages:
                for handle, value in zip(stage.handles.buffers, stage.buffers, strict=True):
                    handle._become(value._node)
            self.optimizer.stepped(handles.trained)
        return loss, ek.tree_map(_plain, outputs), True

    def _updated(
        self, stage: Stage, slots: list[dict[str, Tensor]], given: StepInputs, factor: float, layout: tuple[bool, ...]
    ) -> None:
        count = len(stage.places)
        tensors = [*stage.handles.trained, *(slot for held in slots for slot in held.values())]
        stage.values = []
        taken = Taken(tensors)
        try:
            feed = iter(taken.values())
            params = [next(feed) for _ in range(count)]
            held = [{name: next(feed) for name in names} for names in slots]
            places = tuple(stage.places)
            values, after = stage.does.update(
                params, held, stage.grads, given.hyper, given.counts, factor, places, layout
            )
            found = [*values, *(slot for names in after for slot in names.values())]
            if not self.jit:
                realize(*found)
        except BaseException:
            taken.put_back()
            raise
        taken.put(found)

    def _not_finite(self, loss: Tensor, given: StepInputs) -> NotANumberError:
        for stage in self._stages:
            names = {id(p): name for name, p in stage.module.named_parameters()}
            for tensor, grad in zip(stage.handles.trained, stage.grads or [], strict=True):
                if not bool(ek.all(ek.isfinite(grad))):
                    where = f"the gradient of '{names.get(id(tensor), '?')}' in stage {stage.number} on {stage.device}"
                    break
            else:
                continue
            break
        else:
            where = "gradients are finite"
        found = loss.item()
        return NotANumberError(
            f"{'a gradient is not finite' if isfinite(found) else f'the loss is {found:g}'}: {where}",
            span=ek.here(), hint="nothing was changed; lower the learning rate, clip gradients, or look at the data",
        )  # fmt: skip


class _Passage:
    """A batch on its way through the stages: channels between them, and what each stage does."""

    def __init__(
        self, step: PipelineStep, stages: Sequence[Stage], kinds: Any, key: Any, inputs: list[Any], targets: list[Any],
        fractions: list[float],
    ) -> None:  # fmt: skip
        self.step, self.stages, self.kinds, self.key = step, stages, kinds, key
        self.inputs, self.targets, self.fractions = inputs, targets, fractions
        self.onward: list[SimpleQueue[Any]] = [SimpleQueue() for _ in stages]  # to each stage from the one before it
        self.back: list[SimpleQueue[Any]] = [SimpleQueue() for _ in stages]  # to each stage from the one after it

    def stop(self) -> None:
        """Let go whoever waits for another stage."""
        for channel in (*self.onward, *self.back):
            channel.put(_STOP)

    def run(self, stage: Stage) -> list[Passed]:
        """All that a stage does in a step, on its thread; the last one gives losses and outputs."""
        with device(stage.device):
            return self._last(stage) if stage.number == len(self.stages) - 1 else self._inner(stage)

    def _taken(self, channel: SimpleQueue[Any]) -> Any:
        found = channel.get()
        if found is _STOP:
            raise GivenUp
        still_wanted()
        return found

    def _input(self, stage: Stage, k: int) -> Any:
        """A microbatch as a stage is given it, in the stage's memory."""
        found = self.inputs[k] if stage.number == 0 else self._taken(self.onward[stage.number])
        still_wanted()
        return (brought if self.step.jit else ek.device_put)(found, stage.device)

    def _key(self, stage: Stage, k: int) -> Tensor:
        number = k * len(self.stages) + stage.number
        return adopted(keys.folded(self.key, number) if number else self.key, stage.device)

    def _inner(self, stage: Stage) -> list[Passed]:
        """A stage before others: forward keeps what it was given, back computes the rest of it again."""
        kept: dict[int, tuple[Any, ...]] = {}
        schedule = self.step.pipeline.schedule
        for what, k in order_of(schedule, stage.number, len(self.stages), len(self.inputs)):
            if what == FORWARD:
                given, key, before = self._input(stage, k), self._key(stage, k), stage.buffers
                outputs, stage.buffers = stage.does.forward(stage.handles, self.kinds, stage.values, before, key, given)
                kept[k] = before, key, given
                self._realized(outputs, stage.buffers)
                self.onward[stage.number + 1].put(outputs)
            else:
                wanted = brought(self._taken(self.back[stage.number]), stage.device)
                before, key, given = kept.pop(k)
                stage.grads, back = stage.does.backward(
                    stage.handles, self.kinds, stage.values, before, key, given, wanted, stage.grads
                )
                self._sent_back(stage, back)
        return []

    def _last(self, stage: Stage) -> list[Passed]:
        """The last stage knows the loss, and goes back at once."""
        passed = []
        for k in range(len(self.inputs)):
            given, key = self._input(stage, k), self._key(stage, k)
            targets = (brought if self.step.jit else ek.device_put)(self.targets[k], stage.device)
            loss, outputs, stage.buffers, stage.grads, back = stage.does.last(
                stage.handles,
                self.kinds,
                stage.values,
                stage.buffers,
                key,
                given,
                targets,
                self.fractions[k],
                stage.grads,
            )
            self._realized(loss, outputs, stage.buffers)
            passed.append(Passed(loss, outputs))
            self._sent_back(stage, back)
        return passed

    def _sent_back(self, stage: Stage, back: list[Tensor]) -> None:
        self._realized(back, stage.grads)
        if stage.number:
            self.back[stage.number - 1].put(back)

    def _realized(self, *values: Any) -> None:
        """Compute now what was not compiled: on this thread, while other stages compute theirs."""
        if not self.step.jit:
            realize(*(x for x in ek.tree_leaves(values) if isinstance(x, Tensor)))


def _floats_of(given: Any) -> tuple[list[Tensor], Callable[[Sequence[Tensor]], Any]]:
    """The tensors of a structure that have derivatives, and the structure with others in their places."""
    leaves = ek.tree_leaves(given)
    which = [isinstance(x, Tensor) and x.dtype.differentiable for x in leaves]

    def rebuilt(values: Sequence[Tensor]) -> Any:
        feed, chosen = iter(values), iter(which)
        return ek.tree_map(lambda x: next(feed) if next(chosen) else x, given)

    return [x for x, floats in zip(leaves, which, strict=True) if floats], rebuilt


def _added(sums: list[Tensor] | None, grads: list[Tensor]) -> list[Tensor]:
    return grads if sums is None else [a + g for a, g in zip(sums, grads, strict=True)]


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value
