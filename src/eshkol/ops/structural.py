"""Rows that hold a graph together: leaves, marks, and the results of ops that have several.

They have no Python name of their own: constants come of numbers, buffers of data, the others of transformations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType, Number
from eshkol.ops.row import HOST, STRUCTURE, Aval, HasAval, Linear, NoDerivative, Op, Pull, Shape, row


class Constant(NamedTuple):
    """A number of a dtype, by its bytes: 0.0 and -0.0 are two constants, NaN is one."""

    raw: bytes
    dtype: DType

    @staticmethod
    def of(number: Number, dtype: DType) -> Constant:
        with np.errstate(over="ignore"):
            return Constant(np.asarray(number).astype(dtype.numpy).tobytes(), dtype)

    @property
    def array(self) -> Any:
        return np.frombuffer(self.raw, self.dtype.numpy).reshape(())


class Leaf(NamedTuple):
    """A leaf that is like no other: a buffer, or a placeholder."""

    number: int
    shape: Shape
    dtype: DType


class Mark(NamedTuple):
    """A value that a transformation works with respect to: one of one scope."""

    scope: Any
    number: int


class Pick(NamedTuple):
    """Which result."""

    place: int


def _leaf(a: Leaf) -> Aval:
    return Aval(a.shape, a.dtype)


def _unbound(a: Any, *arrays: Any) -> Any:
    raise AssertionError("a leaf is not computed")


_NOTHING = NoDerivative("it depends on nothing")

CONST: Op = row(Op(
    name="const", doc="A number.", function=None, group=STRUCTURE, method=False,
    infer=lambda a: Aval((), a.dtype), reference=lambda a: a.array, derivative=_NOTHING,
    lower=Pull(lambda e, a, i: e.constant(a.array.item(), a.dtype)),
))  # fmt: skip
BUFFER: Op = row(Op(
    name="buffer", doc="Data that is there.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_leaf, reference=_unbound, derivative=_NOTHING, lower=HOST,
))  # fmt: skip
PLACEHOLDER: Op = row(Op(
    name="placeholder", doc="A value to come.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_leaf, reference=_unbound, derivative=_NOTHING, lower=HOST,
))  # fmt: skip


def _same(a: Any, x: HasAval) -> Aval:
    return Aval(x.shape, x.dtype)


MARK: Op = row(Op(
    name="mark", doc="The value itself, marked for a transformation.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_same, reference=lambda a, x: x, derivative=Linear(lambda a, ct, k, x: ct),
    batch=lambda a, inputs, batched: inputs[0], lower=HOST,
))  # fmt: skip
PICK: Op = row(Op(
    name="pick", doc="One of the results of an op that has several.", function=None, group=STRUCTURE, method=False,
    infer=lambda a, x: x.outs[a.place], reference=lambda a, x: x[a.place],
    derivative=NoDerivative("the op it picks from has it", zero=False), lower=HOST,
))  # fmt: skip
STOP: Op = row(Op(
    name="stop_gradient", doc="x, as if it were constant.", function=None, names=("x",), group=STRUCTURE, method=False,
    elementwise=True, infer=_same, reference=lambda a, x: x,
    severs=True, derivative=NoDerivative("it was asked to have none"), lower=Pull(lambda e, a, i, x: x(i)),
))  # fmt: skip


# --- machines -------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A machine by its name, and where the value comes from; None stands for any."""

    device: str
    source: str | None


def _back(a: Place, ct: Any, k: int, x: HasAval) -> Any:
    return ct if a.source is None else ct.apply(TO, (ct,), Place(a.source, a.device))


TO: Op = row(Op(
    name="to", doc="x in the memory of another machine.", function=None, names=("x",), group=STRUCTURE, method=False,
    infer=_same, reference=lambda a, x: x, derivative=Linear(_back),
    batch=lambda a, inputs, batched: inputs[0].apply(TO, inputs, a), lower=HOST,
))  # fmt: skip


# --- what a loop promises -------------------------------------------------------------------------


class Limit(NamedTuple):
    """Of a loop: after how many steps at most it must have ended."""

    steps: int


def _still_going(a: Limit) -> TensorError:
    return TensorError(
        f"while_loop has not ended: its test still holds after max_iterations={a.steps} steps",
        hint="allow more steps; to stop after a number of steps, count them in what the loop carries and test that too",
    )


def _ended(a: Limit, x: Any, going: Any) -> Any:
    if np.any(going):
        raise _still_going(a)
    return x


def _pull_ended(e: Any, a: Limit, i: Any, x: Any, going: Any) -> Any:
    _, fine = e.located(e.convert(going([i[k] for k in range(len(going.shape))]), dtypes.int64), 1, wrap=False)
    e.stop_unless(fine, 1)
    return x(i)


def _batch_ended(a: Limit, inputs: Any, batched: Any) -> Any:
    x, going = inputs
    if batched[1] and not batched[0]:
        from eshkol.ops.movement import expand

        x = expand(x, (going.shape[0], *x.shape))
    return x.apply(ENDED, (x, going), a)


ENDED: Op = row(Op(
    name="ended", doc="x, of a loop that has ended; an error where it is still going (over the leading axes of x).",
    function=None, names=("x", "going"), group=STRUCTURE, method=False,
    infer=lambda a, x, going: Aval(x.shape, x.dtype),
    reference=_ended, derivative=Linear(lambda a, ct, k, x, going: ct, args=(0,)), batch=_batch_ended,
    lower=Pull(_pull_ended), stops=_still_going,
))  # fmt: skip
