"""The product along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.ops import shapes
from eshkol.ops.movement import permute, reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import (
    GROUP,
    OF_EMPTY,
    SAMPLES,
    Along,
    batched_along,
    infer_sum,
    pull_along,
    reduced,
    summed_in,
    wide_array,
)
from eshkol.ops.row import Draw, Jvp, Reducing, Value, each_read, primitive, sample
from eshkol.ops.shapes import Axes
from eshkol.ops.slicing import slice_

_ANY = ("bool", "int", "float", "complex")


def _prod(a: Along, x: Any) -> Any:
    return np.prod(wide_array(x), axis=a.axes, keepdims=a.keepdims, dtype=summed_in(x))


def _jvp_prod(a: Along, r: Any, inputs: Any, tangents: Any) -> Any:
    """Halves are multiplied with each other until one element is left: no division, so zeros are no exception."""
    rest = [k for k in range(inputs[0].ndim) if k not in a.axes]
    shape = (*(inputs[0].shape[k] for k in rest), reduced(inputs[0], a.axes))
    product, change = (reshape(permute(x, (*rest, *a.axes)), shape) for x in (inputs[0], tangents[0]))
    while product.shape[-1] > 1:
        if product.shape[-1] % 2:
            one_more = ((0, 0),) * len(rest) + ((0, 1),)
            product, change = pad(product, one_more, value=1), pad(change, one_more)
        half = product.shape[-1] // 2
        (x, y), (dx, dy) = ([_last(z, 0, half), _last(z, half, 2 * half)] for z in (product, change))
        product, change = x * y, dx * y + x * dy
    return reshape(change, r.shape) if shape[-1] else None


def _last(x: Value, start: int, stop: int) -> Any:
    return slice_(x, (0,) * (x.ndim - 1) + (start,), (*x.shape[:-1], stop))


@primitive(
    group=GROUP, infer=infer_sum, reference=_prod, derivative=Jvp(_jvp_prod), batch=batched_along("prod"),
    dtypes=_ANY, lower=pull_along("MUL", 1), of_complex=True, scheme=("tensor-prod",),
    reduces=Reducing("Product", lambda dtype: 1), work=each_read,
    samples=(*SAMPLES, *OF_EMPTY, sample(Draw((5,), make=lambda rng: [1.5, 0.0, 2.0, 0.5, 3.0]))),
)  # fmt: skip
def prod(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """The product along axes; bools and integers are multiplied in 64 bits. Derivatives are right at zeros too."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))
