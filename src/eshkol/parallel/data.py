"""`DataParallel`: a model on several machines, each of which does a part of every batch at the same time as the others.

Comes in: a model and devices. Its parameters are on the first of them; the others have copies, which are made anew when
a parameter has another value. Goes out: results and gradients of the whole batch. A step (`DataParallelStep`, which is
what `train.Step` makes of such a model) computes loss and gradients of each part where it is, adds them up on the first
device in the order of the devices, and updates the parameters there, once; so all machines have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan, nan
from typing import Any, NamedTuple

from eshkol.errors import TensorError
from eshkol.nn.module import Module
from eshkol.parallel.splitting import (
    Weigh,
    Weighing,
    averaged,
    checked_shares,
    count_rows,
    cut,
    joined,
    sizes_of,
    summed,
)
from eshkol.parallel.workers import TRACING, Work, Workers, said_where, still_wanted
from eshkol.support.interrupts import uninterrupted
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.autograd import is_grad_enabled
from eshkol.tensors.computing import realize
from eshkol.tensors.devices import device, open_backend
from eshkol.tensors.drawing import tracing
from eshkol.tensors.holding import Taken, bare, differentiated, put, standing_for
from eshkol.tensors.jit import jit as compiled
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor
from eshkol.train.applying import Loss
from eshkol.train.step import Changing, Handles, Step, StepInputs, brought

Run = Callable[..., Any]


def named_devices(devices: Sequence[str], who: str) -> list[str]:
    """Devices by the names that their backends have; each must be there, and stand once."""
    if isinstance(devices, str) or not devices:
        raise TensorError(
            f"{who} takes a list of devices, not {devices!r}", span=ek.here(), hint='devices=["cuda:0", "cuda:1"]'
        )
    found = [open_backend(name).name for name in devices]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise TensorError(f"{who} was given {twice[0]} twice", span=ek.here(), hint="each device does one part")
    return found


class DataParallel(Module):
    """A model whose batches are split over devices, which work at the same time.

    The parameters are those of `module`, on the first device; train them with `train.Step(model, loss, optimizer)`,
    `fit` or whatever trains modules. `shares` says how much of a batch each device does, where they are not equally
    fast: [3, 1]. Losses of parts are averaged by how many examples they have; `weigh(inputs, targets)` says how much a
    part counts where that is not it, and `reduction="sum"` that a loss of one's own is a sum.

    Norms of batches see the examples of their part alone, and dropout draws other numbers in each part.

    >>> model = ek.parallel.DataParallel(model, ["cuda:0", "cuda:1"])
    >>> step = ek.train.Step(model, ek.cross_entropy, ek.optim.Adam(model.parameters(), lr=1e-3))
    """

    def __init__(
        self, module: Module, devices: Sequence[str], *, shares: Sequence[float] | None = None,
        weigh: Weigh | None = None, reduction: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        who = type(self).__name__
        if not isinstance(module, Module):
            raise TensorError(f"{who} takes a module, not a {type(module).__name__}", span=ek.here())
        self.devices = named_devices(devices, who)
        self.shares = checked_shares(shares, len(self.devices), who)
        self.weighing = Weighing(reduction, weigh)
        self.module = module.to(self.devices[0])

    @staticmethod
    def __step__() -> type[Step]:
        return DataParallelStep

    def forward(self, *args: Any, **given: Any) -> Any:
        """What the model gives for all rows, on the first device.

        Without gradients the devices compute at the same time; with them the graph of all parts is one, and is computed
        when somebody looks. Inside a function that is traced all of it is computed where that is.
        """
        if tracing():
            return self.module(*args, **given)
        used, sizes = self.split(count_rows((args, given), type(self).__name__))
        parts = cut((args, given), sizes)
        if len(used) == 1:
            return self.module(*brought(args, self.devices[0]), **brought(given, self.devices[0]))
        if is_grad_enabled() or self.module.training:
            results = self._in_graph(used, parts, sizes)
        else:
            results = _applier(self).results(used, parts)
        return joined(results, sizes, type(self).__name__)

    def split(self, rows: int) -> tuple[list[str], list[int]]:
        """The devices that do something of so many rows, and how many each."""
        sizes = sizes_of(rows, self.shares)
        return [d for d, size in zip(self.devices, sizes, strict=True) if size], [size for size in sizes if size]

    def _in_graph(self, used: Sequence[str], parts: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """Results of the parts as values that gradients flow through; buffers become the mean of the parts'."""
        tensors, buffers = [*self.module.parameters(), *self.module.buffers()], [*self.module.buffers()]
        home, results, after = self.devices[0], [], []
        for where, (args, given) in zip(used, parts, strict=True):
            there = [t.to(where) for t in tensors]
            with standing_for(tensors, there):
                found = self.module(*brought(args, where), **brought(given, where))
                after.append([Tensor(b._node).detach().to(home) for b in buffers])
            results.append(brought(found, home))
        if self.module.training:
            for buffer, value in zip(buffers, averaged(after, sizes), strict=True):
                put(buffer, value.realize())
        return results


class _Applier:
    """The compiled model on each device, for results without gradients. Beside the module: a copy has its own."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.workers = Workers()
        self.copies = Copies()
        self.runs: dict[str, Run] = {}

    def __deepcopy__(self, memo: Any) -> None:
        """A copy of the model begins without it."""

    def __reduce__(self) -> Any:
        return _nothing, ()

    def results(self, used: Sequence[str], parts: Sequence[Any]) -> list[Any]:
        """What the model gives for each part, on the first device."""
        tensors = [*self.module.parameters(), *self.module.buffers()]
        values = [bare(t) for t in tensors]
        kinds = tuple((m._traced_as(), m.training) for m in self.module.modules())
        handles = Handles([], tensors, [])

        def work(where: str, part: Any) -> Any:
            run = self.runs.setdefault(where, compiled(self._applied, name="a part of a batch"))
            args, given = brought(part, where)
            return brought(run(handles, kinds, self.copies.on(where, tensors, values), args, given), used[0])

        works: list[Work] = [(where, partial(work, where, part)) for where, part in zip(used, parts, strict=True)]
        return self.workers.at_once(works)

    def _applied(self, handles: Handles, kinds: Any, values: list[Tensor], args: Any, given: Any) -> Any:
        with TRACING:
            still_wanted()
            with standing_for(handles.untrained, values):
                return self.module(*args, **given)


def _nothing() -> None:
    """What a model that is read from a file has in the place of what was compiled."""


_APPLIER = "_applier"


def _applier(model: DataParallel) -> _Applier:
    found = model.__dict__.get(_APPLIER)
    if found is None or found.module is not model.module:  # of the module that this one is a copy of
        found = model.__dict__[_APPLIER] = _Applier(model.module)
    return found


class Copies:
    """Values of tensors in the memory of other devices: those that are the same are not copied again.

    Whoever overwrites the memory of values lets their copies go first (`forget`): values are told apart by their nodes,
    which are held here.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[int, tuple[Any, Tensor]]] = {}

    def on(self, where: str, tensors: Sequence[Tensor], values: Sequence[Tensor]) -> list[Tensor]:
        """The values of tensors on a device."""
        held = self._held.setdefault(where, {})
        found = []
        for tensor, value in zip(tensors, values, strict=True):
            node, copy = held.get(id(tensor), (None, value))
            if node is not value._node:
                copy = value if value.device == where else value.to(where)
                if copy is not value:
                    held[id(tensor)] = value._node, copy
            found.append(copy)
        return found

    def forget(self, tensors: Sequence[Tensor]) -> list[tuple[str, Tensor, Tensor]]:
        """Hold nothing of these tensors' values any more; gives the copies, each with its device and tensor."""
        gone = [(where, t, held.pop(id(t), (None, None))[1]) for where, held in self._held.items() for t in tensors]
        return [(where, tensor, copy) for where, tensor, copy in gone if copy is not None]

    def again(self, copies: Sequence[tuple[str, Tensor, Tensor]]) -> None:
        """These copies are those of the tensors as they are now."""
        for where, tensor, copy in copies:
            self._held[where][id(tensor)] = bare(tensor)._node, copy


class Part(NamedTuple):
    """What was computed of a part, on the first device: the loss and gradients as they count in those of the whole."""

    loss: Tensor
    outputs: Any
    grads: list[Tensor]
    buffers: list[Tensor]


class DataParallelStep(Step):
    """A step of training whose batch is split over devices; everything else is as for `Step`.

    With `jit=False` the devices work one after another.
    """

    def __init__(self, model: DataParallel, loss: Loss, optimizer: Any, **how: Any) -> None:
        if not isinstance(model, DataParallel):
            raise TensorError(f"a DataParallelStep is of a DataParallel, not of a {type(model).__name__}")
        if how.get("ahead"):
            raise TensorError("a DataParallel is trained without ahead: devices meet in each step", span=ek.here())
        super().__init__(model.module, loss, optimizer, **how)
        self.parallel = model
        self._workers, self._copies = Workers(), Copies()
        self._parts: dict[str, Run] = {}
        self._finish = self._finished
        if self.jit:
            self._finish = compiled(self._finished, donate=3, floats=True, name="the end of a training step")

    def _given(self, handles: Handles, inputs: Any, targets: Any) -> StepInputs:
        others = [bare(p) for p in handles.untrained]
        hyper, counts = self.optimizer.hyper(), self.optimizer.next_steps(handles.used)
        return StepInputs(others, hyper, counts, keys.next_key(), inputs, targets)

    def _compiled(self, handles: Handles, last: bool, given: StepInputs) -> tuple[Tensor, Any, bool]:
        model, home = self.parallel, self.parallel.devices[0]
        used, sizes = model.split(count_rows((given.inputs, given.targets), type(self).__name__))
        batches = cut((given.inputs, given.targets), sizes)
        fractions = model.weighing.fractions(self.loss, batches, sizes)
        tensors = [*handles.trained, *handles.untrained, *handles.buffers]
        values = [bare(t) for t in tensors]
        scale = None if self.scale is None else self.scale.state
        kinds = self._held.kinds

        def work(number: int) -> Part:
            where = used[number]
            with device(where):
                return part_on(number, where)

        def part_on(number: int, where: str) -> Part:
            there = self._copies.on(where, tensors, values)
            inputs, targets = (brought if self.jit else ek.device_put)(batches[number], where)
            key = adopted(keys.folded(given.key, number) if number else given.key, where)
            held = brought(scale, where)
            found = self._part_on(where)(handles, kinds, fractions[number], held, there, key, inputs, targets)
            return Part(*brought(found, home))

        works: list[Work] = [(where, partial(work, number)) for number, where in enumerate(used)]
        parts = self._workers.at_once(works) if self.jit else _one_after_another(works)
        return self._ended(handles, last, given, parts, sizes)

    _eagerly = _compiled

    def _part_on(self, where: str) -> Run:
        """What computes a part on a device: a function of its own for each, called by one thread."""
        if not self.jit:
            return self._part
        return self._parts.setdefault(where, compiled(self._part, floats=True, name="a part of a training step"))

    def _part(
        self, handles: Handles, kinds: Any, fraction: Any, scale: Any, values: list[Tensor], key: Tensor, inputs: Any,
        targets: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Loss, outputs, gradients and the next buffers of a part."""
        count = len(handles.trained)
        given = StepInputs([], None, None, key, inputs, targets)

        def objective(trained: list[Tensor]) -> tuple[Tensor, Any]:
            tensors = [*handles.trained, *handles.untrained, *handles.buffers]
            with TRACING:
                still_wanted()
                with standing_for(tensors, [*trained, *values[count:]]):
                    loss, outputs = self._forward(given)
                    after = [Tensor(b._node) for b in handles.buffers]
            if self.unreached is None:
                self.unreached = tuple(k for k, reached in enumerate(differentiated(loss, trained)) if not reached)
            loss = ek.cast(loss * fraction, loss.dtype)
            return self._scaled(loss, scale), (loss, outputs, ek.stop_gradient(after))

        (_, (loss, outputs, after)), grads = ek.value_and_grad(objective, has_aux=True)(values[:count])
        return loss, outputs, grads, after

    def _finished(
        self, handles: Handles, last: bool, sizes: tuple[int, ...], changing: tuple[Any, ...], fixed: tuple[Any, ...],
        losses: list[Tensor], grads: list[list[Tensor]], buffers: list[list[Tensor]],
    ) -> Any:  # fmt: skip
        """The loss of the whole, the same or NaN if not all is finite, and the next values of what a step changes."""
        now, given = Changing.of(handles, *changing), StepInputs(*fixed)
        loss = summed(losses)
        whole = [summed(found) for found in zip(*grads, strict=True)]
        finite, following = self._next(handles, last, now, given, loss, whole, averaged(buffers, sizes))
        return loss, ek.where(finite, loss, nan), (following.flat(handles), following.scale, following.sums)

    def _ended(
        self, handles: Handles, last: bool, given: StepInputs, parts: Sequence[Part], sizes: Sequence[int]
    ) -> tuple[Tensor, Any, bool]:
        """The step itself, on the first device."""
        outputs = joined([part.outputs for part in parts], sizes, type(self).__name__)
        fixed = tuple(given._replace(key=None, inputs=None, targets=None))
        losses, grads, buffers = [p.loss for p in parts], [p.grads for p in parts], [p.buffers for p in parts]
        handles, tensors = self._remembered(handles)
        copies = self._copies.forget([*handles.trained, *handles.buffers])
        with uninterrupted():
            taken = Taken(tensors)
            try:
                now = taken.values(), self._scale_now(), self._sums
                loss, told, following = self._finish(handles, last, tuple(sizes), now, fixed, losses, grads, buffers)
                if not self.jit:
                    realize(*(x for x in ek.tree_leaves((loss, told, following)) if isinstance(x, Tensor)))
            except BaseException:
                taken.put_back()
                raise
            changed, after_scale, sums = following
            taken.put(changed)
            finite = not isnan(told.item())
            self._keep(handles, last, finite, after_scale, sums)
        if not (finite and last):  # the parameters have the values that were copied
            trained = set(map(id, handles.trained))
            self._copies.again([found for found in copies if id(found[1]) in trained])
        return told if finite else loss, ek.tree_map(_plain, outputs), finite

    def _not_finite(self, loss: Tensor, given: StepInputs) -> Any:
        return super()._not_finite(loss, given._replace(key=adopted(given.key, self.parallel.devices[0])))


def _one_after_another(works: Sequence[Work]) -> list[Any]:
    found = []
    for name, work in works:
        try:
            found.append(work())
        except BaseException as error:
            raise said_where(error, name) from None
    return found


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value
