"""A convolution with what often follows it: a scale and a bias per channel, and relu. A pass makes it; no user does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.operands import Activation
from eshkol.ops.contraction import wide
from eshkol.ops.correlation import Geometry, conv, instruction_fits, operands
from eshkol.ops.row import STRUCTURE, Aval, HasAval, Macro, NoDerivative, Op, row


class Following(NamedTuple):
    """A convolution's geometry, and what follows: which of scale and bias there are, in this order, and relu."""

    geometry: Geometry
    scale: bool
    bias: bool
    relu: bool

    def extras(self, given: tuple[Any, ...]) -> dict[str, Any]:
        """The inputs behind x and the weight, by name."""
        return dict(zip([n for n in ("scale", "bias") if getattr(self, n)], given, strict=True))


def _infer(a: Following, x: HasAval, weight: HasAval, *others: HasAval) -> Aval:
    assert conv.infer is not None
    assert instruction_fits(a.geometry, x, weight)
    assert all(v.shape == (weight.shape[0] * weight.shape[1],) and v.dtype is x.dtype for v in others)
    found = conv.infer(a.geometry, x, weight)
    assert isinstance(found, Aval)
    return found


def _fused(a: Following, x: Any, weight: Any, *others: Any) -> Any:
    result = conv.reference(a.geometry, x, weight)
    groups, outs = weight.shape[:2]
    extras = {name: wide(v).reshape(groups, outs, *(1,) * (x.ndim - 3)) for name, v in a.extras(others).items()}
    result = result * extras.get("scale", 1) + extras.get("bias", 0)
    return np.where(result < 0, 0, result) if a.relu else result


def _macro(b: Any, a: Following, out: Any, x: Any, weight: Any, *others: Any) -> None:
    extras = {name: v.address for name, v in a.extras(others).items()}
    b.fused_conv2d(
        out.ty, Activation.Relu if a.relu else Activation.Identity, out.address, x.address, weight.address,
        **extras, **operands(a.geometry, x.shape, weight.shape),
    )  # fmt: skip


FUSED_CONVOLUTION: Op = row(Op(
    name="fused_convolution", doc="conv, scaled and shifted per channel, and relu.", function=None, group=STRUCTURE,
    method=False, infer=_infer, reference=_fused, lower=Macro(_macro),
    derivative=NoDerivative("it is made behind all derivatives", zero=False),
))  # fmt: skip
