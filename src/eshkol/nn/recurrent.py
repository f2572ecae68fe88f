"""Recurrent layers: RNN, LSTM and GRU over sequences, and their cells for one step.

A kind of recurrence is a row of `KINDS`: how many gates and states it has, and its step from the products of input and
state. A layer multiplies the inputs of all times at once, before the loop; `ek.scan` goes through the times with the
product of the state alone. Parameters have PyTorch's names and layout (`weight_ih_l0`, gates × features), so that
states carry over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.nn import init, precision
from eshkol.nn.layers import features, not_wider, positive
from eshkol.nn.losses import known
from eshkol.nn.module import Module, Parameter
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key
from eshkol.tensors.value import Tensor

States = tuple[Tensor, ...]


@dataclass(frozen=True)
class RecurrenceKind:
    """A recurrence: `step(input's product, state's product, states)` gives the states after, the output first."""

    gates: int
    states: int
    step: Callable[[Any, Any, Any], States]
    summed: bool  # the two products count by their sum alone: both biases may be added before the loop


def _lstm(inward: Any, recurrent: Any, states: Any) -> States:
    enter, forget, new, leave = ek.chunk(inward + recurrent, 4, -1)
    cell = ek.sigmoid(forget) * states[1] + ek.sigmoid(enter) * ek.tanh(new)
    return ek.sigmoid(leave) * ek.tanh(cell), cell


def _gru(inward: Any, recurrent: Any, states: Any) -> States:
    width = 2 * states[0].shape[-1]
    reset, keep = ek.chunk(ek.sigmoid(inward[..., :width] + recurrent[..., :width]), 2, -1)
    new = ek.tanh(inward[..., width:] + reset * recurrent[..., width:])
    return (new + keep * (states[0] - new),)


KINDS = {
    "tanh": RecurrenceKind(1, 1, lambda inward, recurrent, states: (ek.tanh(inward + recurrent),), True),
    "relu": RecurrenceKind(1, 1, lambda inward, recurrent, states: (ek.relu(inward + recurrent),), True),
    "lstm": RecurrenceKind(4, 2, _lstm, True),
    "gru": RecurrenceKind(3, 1, _gru, False),
}


def _kind(name: str, who: str) -> RecurrenceKind:
    if name not in ("tanh", "relu"):
        raise TensorError(f"{who}: the nonlinearity is 'tanh' or 'relu', not {name!r}", span=ek.here())
    return KINDS[name]


class _Recurrence(Module):
    """What cells and layers have in common: parameters, and the states they begin with."""

    kind: RecurrenceKind

    def __init__(self, kind: RecurrenceKind, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.kind, self.bias = kind, bias
        self.input_size, self.hidden_size = input_size, hidden_size

    def _make(self, features: int, suffix: str, dtype: Any) -> None:
        """The parameters of one direction of one layer, drawn as PyTorch's are."""
        rows, bound = self.kind.gates * self.hidden_size, 1 / math.sqrt(self.hidden_size)
        made: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, self.hidden_size)}
        if self.bias:
            made |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in made.items():
            self.register_parameter(name + suffix, Parameter(init.uniform(shape, -bound, bound, dtype=dtype)))

    def _inward(self, x: Any, suffix: str) -> Any:
        """The product of inputs, with whatever biases need not wait for the state's product."""
        weight = getattr(self, f"weight_ih{suffix}")
        not_wider(type(self).__name__, x, weight)
        x, weight = precision.lowered(x, weight)
        product = ek.linear(x, weight)
        if not self.bias:
            return product
        bias = getattr(self, f"bias_ih{suffix}")
        if self.kind.summed:
            bias = bias + getattr(self, f"bias_hh{suffix}")
        return ek.cast(product, bias.dtype) + bias

    def _stepper(self, suffix: str) -> Callable[[Any, Any], States]:
        """The step from an input's product and states to the states after."""
        (weight,) = precision.lowered(getattr(self, f"weight_hh{suffix}"))
        bias = None if self.kind.summed or not self.bias else getattr(self, f"bias_hh{suffix}")

        def step(inward: Any, states: Any) -> States:
            recurrent = ek.cast(ek.linear(ek.cast(states[0], weight.dtype), weight), states[0].dtype)
            if bias is not None:
                recurrent = recurrent + bias
            return self.kind.step(ek.cast(inward, states[0].dtype), recurrent, states)

        return step

    def _states(self, given: Any, shape: Sequence[int], dtype: Any) -> States:
        """The states that were given, each of a shape, or zeros."""
        names = ("h", "c")[: self.kind.states]
        if given is None:
            return tuple(ek.zeros(tuple(shape), dtype=dtype) for _ in names)
        who = type(self).__name__
        states = tuple(given) if isinstance(given, tuple | list) else (given,)
        if len(states) != len(names):
            said = f"a pair ({', '.join(names)})" if len(names) > 1 else "one tensor"
            raise TensorError(f"{who} takes {said} as its state, not {len(states)}", span=ek.here())
        for name, state in zip(names, states, strict=True):
            if tuple(state.shape) != tuple(shape):
                raise ShapeError(
                    f"{who}: the state {name} has shape {list(state.shape)} instead of {list(shape)}", span=ek.here()
                )
        return tuple(ek.cast(state, dtype) for state in states)

    def _given(self, states: Sequence[Any]) -> Any:
        return tuple(states) if self.kind.states > 1 else states[0]

    @property
    def _dtype(self) -> Any:
        return next(self.parameters()).dtype

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


# --- one step -----------------------------------------------------------------------------------------------------


class _Cell(_Recurrence):
    def __init__(self, kind: RecurrenceKind, input_size: int, hidden_size: int, bias: bool, dtype: Any) -> None:
        super().__init__(kind, input_size, hidden_size, bias)
        self._make(self.input_size, "", dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        features(type(self).__name__, input, self.input_size, "input_size")
        if input.ndim not in (1, 2):
            raise ShapeError(
                f"{type(self).__name__} takes (batch ×) features, not {list(input.shape)}", span=ek.here(),
                hint=f"for sequences use nn.{type(self).__name__.removesuffix('Cell')}",
            )  # fmt: skip
        states = self._states(hx, (*input.shape[:-1], self.hidden_size), self._dtype)
        return self._given(self._stepper("")(self._inward(input, ""), states))

    def along(self, inputs: Any, hx: Any = None) -> tuple[Any, Any]:
        """The cell at all times of a sequence, time × (batch ×) features: its outputs, and the states at the end."""
        features(type(self).__name__, inputs, self.input_size, "input_size")
        states = self._states(hx, (*inputs.shape[1:-1], self.hidden_size), self._dtype)
        step = self._stepper("")

        def body(states: Any, inward: Any) -> tuple[States, Any]:
            after = step(inward, states)
            return after, after[0]

        end, outputs = ek.scan(body, states, self._inward(inputs, ""))
        return outputs, self._given(end)


class RNNCell(_Cell):
    """tanh (or relu) of x · weight_ihᵀ + h · weight_hhᵀ and biases: the state after one step.

    >>> h = nn.RNNCell(10, 20)(x, h)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = None
    ) -> None:
        super().__init__(_kind(nonlinearity, type(self).__name__), input_size, hidden_size, bias, dtype)


class LSTMCell(_Cell):
    """A step of an LSTM from states (h, c) to those after; gates in the order input, forget, cell, output.

    >>> h, c = nn.LSTMCell(10, 20)(x, (h, c))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__(KINDS["lstm"], input_size, hidden_size, bias, dtype)


class GRUCell(_Cell):
    """A step of a GRU; gates in the order reset, update, new.

    >>> h = nn.GRUCell(10, 20)(x, h)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__(KINDS["gru"], input_size, hidden_size, bias, dtype)


# --- sequences ----------------------------------------------------------------------------------------------------


class _Layers(_Recurrence):
    """Layers of a recurrence over sequences, in one direction or in both."""

    def __init__(
        self, kind: RecurrenceKind, input_size: int, hidden_size: int, num_layers: int, bias: bool, batch_first: bool,
        dropout: float, bidirectional: bool, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__(kind, input_size, hidden_size, bias)
        who = type(self).__name__
        positive(who, num_layers=num_layers)
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise TensorError(f"{who}: dropout is a probability from 0 to 1, not {dropout!r}", span=ek.here())
        self.num_layers, self.batch_first, self.bidirectional = num_layers, batch_first, bidirectional
        self.dropout = float(dropout)
        self._directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * len(self._directions)
            for direction in self._directions:
                self._make(features, f"_l{layer}{direction}", dtype)

    def forward(self, input: Any, hx: Any = None, lengths: Any = None) -> Any:
        """The outputs of the last layer at all times, and the states at the end: `output, h = rnn(x, h)`.

        The input is time × batch × features (batch × time with `batch_first`), or time × features. States are
        (layers · directions) × batch × hidden. With `lengths`, one for each example of the batch, states stop there,
        outputs behind are zero, and the way back begins there.
        """
        features(type(self).__name__, input, self.input_size, "input_size")
        if input.ndim not in (2, 3):
            shown = "batch × time" if self.batch_first else "time × batch"
            raise ShapeError(
                f"{type(self).__name__} takes {shown} × features or time × features, not {list(input.shape)}",
                span=ek.here(),
            )
        batched = input.ndim == 3
        x = ek.swapaxes(input, 0, 1) if batched and self.batch_first else input
        shape = (self.num_layers * len(self._directions), *x.shape[1:-1], self.hidden_size)
        states = self._states(hx, shape, self._dtype)
        within = None if lengths is None else self._within(lengths, x)
        ends: list[States] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = ek.dropout(x, next_key(type(self).__name__), self.dropout, training=True)
            found = []
            for direction in self._directions:
                first = tuple(state[len(ends)] for state in states)
                outputs, end = self._along(x, first, f"_l{layer}{direction}", within)
                found.append(outputs)
                ends.append(end)
            x = found[0] if len(found) == 1 else ek.concat(found, -1)
        last = [ek.stack([end[n] for end in ends]) for n in range(self.kind.states)]
        return ek.swapaxes(x, 0, 1) if batched and self.batch_first else x, self._given(last)

    def _along(self, x: Any, first: States, suffix: str, within: Any) -> tuple[Any, States]:
        """The outputs of one direction of a layer at all times, and its states at the end."""
        step = self._stepper(suffix)

        def body(states: Any, element: Any) -> tuple[States, Any]:
            inward, inside = element
            after = step(inward, states)
            if inside is None:
                return after, after[0]
            kept = tuple(ek.where(inside, new, old) for new, old in zip(after, states, strict=True))
            return kept, ek.where(inside, after[0], 0)

        end, outputs = ek.scan(body, first, (self._inward(x, suffix), within), reverse=suffix.endswith("_reverse"))
        return outputs, end

    def _within(self, lengths: Any, x: Any) -> Any:
        """Which times of which examples are before their lengths: time × batch × 1."""
        who = type(self).__name__
        if x.ndim != 3:
            raise ShapeError(f"{who}: lengths are of a batch, and the input is one sequence", span=ek.here())
        lengths = ek.asarray(lengths)
        if not lengths.dtype.is_integer:
            raise DTypeError(f"{who}: lengths are integers, not {lengths.dtype}", span=ek.here())
        if tuple(lengths.shape) != (x.shape[1],):
            raise ShapeError(
                f"{who}: lengths have shape {list(lengths.shape)} instead of [{x.shape[1]}]", span=ek.here()
            )
        values = known(lengths)
        if values is not None and not ((values >= 0) & (values <= x.shape[0])).all():
            raise ShapeError(
                f"{who}: lengths are from 0 to {x.shape[0]}, the time of the input; these are {values.tolist()}",
                span=ek.here(),
            )
        return (ek.arange(x.shape[0])[:, None] < lengths)[:, :, None]

    def extra_repr(self) -> str:
        said = super().extra_repr()
        for name, usual in (("num_layers", 1), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                said += f", {name}={getattr(self, name)}"
        return said


class RNN(_Layers):
    """Layers of `RNNCell` over sequences: `output, h = rnn(x, h0)`.

    >>> output, h = nn.RNN(10, 20, num_layers=2)(x)
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        kind = _kind(nonlinearity, type(self).__name__)
        super().__init__(
            kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )  # fmt: skip


class LSTM(_Layers):
    """Layers of `LSTMCell` over sequences: `output, (h, c) = lstm(x, (h0, c0))`.

    >>> output, (h, c) = nn.LSTM(10, 20, batch_first=True)(x, lengths=[5, 3])
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            KINDS["lstm"], input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )


class GRU(_Layers):
    """Layers of `GRUCell` over sequences: `output, h = gru(x, h0)`.

    >>> output, h = nn.GRU(10, 20, bidirectional=True)(x)
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            KINDS["gru"], input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )
