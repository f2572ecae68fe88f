"""A matrix product together with what usually follows it: bias, activation, residual and conversion in one pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Activation
from eshkol.atlas.table import emit
from eshkol.atlas.table.linear import TRANSPOSED, factors, product, stored
from eshkol.atlas.table.rows import ROWS, TY, choice, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError

ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    Activation.Identity: lambda x: x,
    Activation.Relu: lambda x: np.where(x < 0, 0.0, x),
    Activation.Gelu: lambda x: x * 0.5 * (1 + nx.erf(x * np.sqrt(0.5))),
    Activation.Silu: lambda x: x * nx.sigmoid(x),
    Activation.Sigmoid: nx.sigmoid,
    Activation.Tanh: np.tanh,
}


def fused_compute_type(i: Instruction) -> Type:
    """F64 where an operand is, else F32."""
    return Type.F64 if Type.F64 in (i.ty, i.out_ty) else Type.F32


def _fused(i: Instruction, a: Array, b: Array, *others: Array) -> tuple[Array]:
    remaining = list(others)
    a, b = factors(i, a, b)
    total = i.alpha * (a @ b)
    if i.bias is not None:
        total = total + remaining.pop(0)
    result = ACTIVATIONS[i.activation](total)
    return (result + remaining.pop(0) if i.residual is not None else result,)


def _expand_fused(b: CodeBuilder, i: Instruction) -> None:
    compute = fused_compute_type(i)
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total = product(b, i, i.ty, compute, r, c)
        b.mul(total, total, b.constant(compute, i.alpha))
        if i.bias is not None:
            b.add(total, total, emit.fetch(b, i.bias, c, i.out_ty, compute))
        if i.activation.value:
            b.emit(ROWS[i.activation.value](total, total))
        place = emit.flat(b, (i.m, i.n), (r, c))
        if i.residual is not None:
            b.add(total, total, emit.fetch(b, i.residual, place, i.out_ty, compute))
        emit.put(b, i.c, place, i.out_ty, total, compute)


def _check_fused(i: Instruction) -> None:
    if i.out_ty not in FLOATS:
        raise IsaError(f"FusedGEMM: the type of C must be a float, not {i.out_ty}", span=i.span)


_mn = lambda i: (i.m, i.n)
row("FusedGEMM", Group.ADVANCED,
    "C = activation(alpha·A·B + bias) + residual in out_ty; bias of n elements and residual of m×n may be left out",
    (TY, Field("out_ty", Kind.TYPE), choice("activation", Activation),
     write("c", _mn, "out_ty"), read("a", lambda i: stored(i, "a")), read("b", lambda i: stored(i, "b")),
     Field("bias", Kind.READ, "out_ty", None, shape=lambda i: (i.n,)),
     Field("residual", Kind.READ, "out_ty", None, shape=_mn),
     count("m"), count("n"), count("k"), real("alpha", 1.0), *TRANSPOSED),
    Arrays(_fused), FLOATS, expand=_expand_fused, check=_check_fused, traps=True)  # fmt: skip
