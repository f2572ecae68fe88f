"""Loss scaling: losses are multiplied before `backward`, so that gradients of 16 bits do not vanish, and gradients
divided afterwards; a step whose gradients overflowed is left out, and the scale lowered.

The pure part is for compiled steps: a state of tensors, `scaled`, `unscaled`, `finite`, `updated`, and `chosen`, which
leaves a step out. `scale`, `step` and `update` are the same for eager ones, as PyTorch's GradScaler has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eshkol.errors import TensorError
from eshkol.optim.base import Optimizer
from eshkol.tensors import api as ek
from eshkol.tensors.jit import jit
from eshkol.tensors.pytree import leaves, tree_map

State = dict[str, Any]


def finite(grads: Any) -> Any:
    """Whether all numbers of a structure are finite: a tensor of one bool."""
    found = ek.asarray(True)
    for g in leaves(grads):
        if g.dtype.is_complex:  # of which a size may overflow
            found = found & ek.isfinite(g).all()
        elif g.size:
            found = found & ek.isfinite(ek.abs(g).max())  # NaN is the greatest; a third of the time of many truths
    return found


def chosen(good: Any, new: Any, old: Any) -> Any:
    """The new structure where `good`, else the old one: how a compiled step is left out."""
    return tree_map(lambda a, b: ek.where(good, a, b), new, old)


class LossScale:
    """The number that losses are scaled by: fixed, or as great as gradients stay finite with (`dynamic`).

    After `growth_interval` good steps in a row it is multiplied by `growth_factor`; after a bad one, by
    `backoff_factor`.
    """

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, dynamic: bool = True,
    ) -> None:  # fmt: skip
        if not init_scale > 0:
            raise TensorError(f"LossScale: init_scale is above 0, not {init_scale}", span=ek.here())
        if dynamic and not (growth_factor > 1 and 0 < backoff_factor < 1 and growth_interval >= 1):
            raise TensorError(
                "LossScale: growth_factor is above 1, backoff_factor between 0 and 1, growth_interval at least 1",
                span=ek.here(),
            )
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval
        self.dynamic = dynamic
        self.state: State = {"scale": ek.tensor(init_scale, dtype=ek.float32), "good": ek.tensor(0, dtype=ek.int32)}
        self._finite: bool | None = None  # whether gradients were, since the last update
        self._unscaled: set[int] = set()  # optimizers whose gradients are divided already
        self._divide = jit(lambda grads, state: (self.unscaled(grads, state), finite(grads)))

    # --- pure ---------------------------------------------------------------------------------------------------------

    def scaled(self, loss: Any, state: State) -> Any:
        """The loss, multiplied."""
        return loss * ek.cast(state["scale"], loss.dtype if loss.dtype.size >= 4 else ek.float32)

    def unscaled(self, grads: Any, state: State) -> Any:
        """The gradients, divided."""
        inverse = 1 / state["scale"]
        return tree_map(lambda g: g * ek.cast(inverse, g.dtype) if g.dtype.size >= 4 else _through(g, inverse), grads)

    def updated(self, state: State, good: Any) -> State:
        """The state after a step whose gradients were all finite, or not."""
        if not self.dynamic:
            return state
        count = ek.where(good, state["good"] + 1, 0)
        grown = ek.where(count >= self.growth_interval, state["scale"] * self.growth_factor, state["scale"])
        scale = ek.where(
            good, ek.where(ek.isfinite(grown), grown, state["scale"]), state["scale"] * self.backoff_factor
        )
        return {"scale": scale, "good": ek.cast(ek.where(count >= self.growth_interval, 0, count), ek.int32)}

    # --- for eager steps ----------------------------------------------------------------------------------------------

    def scale(self, loss: Any) -> Any:
        """The loss to call `backward` of."""
        return self.scaled(loss, self.state)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients now, to clip them before `step`."""
        if id(optimizer) in self._unscaled:
            raise TensorError(
                "unscale_() was called already since the last update()", span=ek.here(), hint="call update() after step"
            )
        held = [tensor for tensor in optimizer.tensors if tensor.grad is not None]
        values, good = self._divide([tensor.grad for tensor in held], self.state)
        for tensor, value in zip(held, values, strict=True):
            tensor.grad = value
        self._unscaled.add(id(optimizer))
        self._finite = bool(good) and self._finite is not False

    def step(self, optimizer: Optimizer) -> bool:
        """Step the optimizer, unless gradients overflowed; gives whether it was stepped."""
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        if self._finite:
            optimizer.step()
        return bool(self._finite)

    def update(self) -> None:
        """Let the scale grow or shrink, after the step."""
        if self._finite is None:
            raise TensorError("LossScale.update() before any step", span=ek.here(), hint="call step(optimizer) first")
        self.state = {name: x.realize() for name, x in self.updated(self.state, ek.asarray(self._finite)).items()}
        self._finite = None
        self._unscaled.clear()

    def get_scale(self) -> float:
        """The scale now."""
        return float(self.state["scale"])

    def state_dict(self) -> dict[str, Any]:
        """The scale and how many good steps there were in a row."""
        return {"scale": self.get_scale(), "good": int(self.state["good"])}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.state = {
            "scale": ek.tensor(float(state["scale"]), dtype=ek.float32),
            "good": ek.tensor(int(state["good"]), dtype=ek.int32),
        }


def _through(g: Any, inverse: Any) -> Any:
    """A gradient of 16 bits, divided in float32: what the scale is one over is no number of 16 bits."""
    return ek.cast(ek.cast(g, ek.float32) * inverse, g.dtype)
