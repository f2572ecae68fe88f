"""Averages of weights over the course of training: exponential (EMA), or of all steps alike (SWA)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.module import Module
from eshkol.support.interrupts import uninterrupted
from eshkol.tensors import api as ek
from eshkol.tensors.holding import bare, put
from eshkol.tensors.updating import Update
from eshkol.tensors.value import Tensor


class EMA:
    """An exponential moving average of a model's parameters: `ema.update()` after each step.

    With `warmup` the decay grows from (1 + n) / (10 + n) at update n, so that the first weights are soon forgotten.

    >>> ema = ek.optim.EMA(model, decay=0.999)
    >>> with ema.applied(): validate(model)
    """

    def __init__(self, model: Module | Iterable[Tensor], decay: float = 0.999, warmup: bool = False) -> None:
        if not 0 <= decay <= 1:
            raise TensorError(f"{type(self).__name__}: decay lies in [0, 1], and is {decay}", span=ek.here())
        self.tensors = list(model.parameters() if isinstance(model, Module) else model)
        if not self.tensors:
            raise TensorError(f"{type(self).__name__} was given no parameters", span=ek.here())
        self.decay, self.warmup, self.count = decay, warmup, 0
        self.shadow = [bare(tensor).clone().realize() for tensor in self.tensors]
        self._run = Update(self.averaged, "an average of weights")

    def next_decay(self) -> float:
        """How much of the average the next update keeps."""
        return min(self.decay, (1 + self.count) / (10 + self.count)) if self.warmup else self.decay

    @staticmethod
    def averaged(shadow: Sequence[Any], values: Sequence[Any], decay: Any) -> list[Any]:
        """The averages one step on: pure, to be part of a compiled step."""
        return [s + (v - s) * (1 - decay) for s, v in zip(shadow, values, strict=True)]

    def update(self) -> None:
        """Take the parameters as they are now into the average."""
        values = [bare(tensor) for tensor in self.tensors]
        with uninterrupted():
            self._run(self.shadow, values, self.next_decay())
            self.count += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within it the parameters are the averages; afterwards they are again what they were."""
        own = [bare(tensor) for tensor in self.tensors]
        try:
            for tensor, average in zip(self.tensors, self.shadow, strict=True):
                put(tensor, bare(average))
            yield
        finally:
            with uninterrupted():
                for tensor, value in zip(self.tensors, own, strict=True):
                    put(tensor, value)

    def copy_to(self) -> None:
        """Make the averages the parameters, for good."""
        for tensor, average in zip(self.tensors, self.shadow, strict=True):
            put(tensor, bare(average))

    def state_dict(self) -> dict[str, Any]:
        """The averages and how many updates they are of."""
        return {"decay": self.decay, "count": self.count, "shadow": [bare(average) for average in self.shadow]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: all of it or, on an error, none."""
        values = [x if isinstance(x, Tensor) else ek.tensor(x) for x in state["shadow"]]
        if [v.shape for v in values] != [s.shape for s in self.shadow]:
            raise ShapeError(f"the state of {type(self).__name__} is of other parameters", span=ek.here())
        for average, value in zip(self.shadow, values, strict=True):
            put(average, ek.cast(bare(value), average.dtype).realize())
        self.decay, self.count = float(state["decay"]), int(state["count"])


class SWA(EMA):
    """The mean of a model's parameters over all updates alike (stochastic weight averaging)."""

    def __init__(self, model: Module | Iterable[Tensor]) -> None:
        super().__init__(model, decay=1.0)

    def next_decay(self) -> float:
        return self.count / (self.count + 1)
