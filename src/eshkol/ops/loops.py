"""What a loop promises: that it has ended after so many steps.

Like the rows of `structural.py` it has no Python name of its own: loops with a limit are made with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops import dtypes
from eshkol.ops.movement import expand
from eshkol.ops.row import STRUCTURE, Aval, Linear, Op, Pull, row


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
        x = expand(x, (going.shape[0], *x.shape))
    return x.apply(ENDED, (x, going), a)


ENDED: Op = row(Op(
    name="ended", doc="x, of a loop that has ended; an error where it is still going (over the leading axes of x).",
    function=None, names=("x", "going"), group=STRUCTURE, method=False,
    infer=lambda a, x, going: Aval(x.shape, x.dtype),
    reference=_ended, derivative=Linear(lambda a, ct, k, x, going: ct, args=(0,)), batch=_batch_ended,
    lower=Pull(_pull_ended), stops=_still_going,
))  # fmt: skip
