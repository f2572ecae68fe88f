"""Factors of matrices are computed once, and vectors only where they are read.

Comes in: nodes whose derivatives have been taken. Goes out: the same, where systems of one matrix and of its transpose
(a solution and its gradient) share the factors of `lu_rows`, and eigenvalues or singular values of which no vector is
read are computed without them, R of a QR without Q; beside a node that has the vectors too, they are taken from that.
Bodies of loops and branches are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make, picks
from eshkol.ops import shapes
from eshkol.ops.decompositions import (
    eig_with_pivots,
    eigh_with_pivots,
    eigvals,
    eigvalsh,
    svd_with_pivots,
    svdvals,
    tall_qr,
)
from eshkol.ops.linalg import matrix_solve
from eshkol.ops.lu import lu_rows
from eshkol.ops.matrices import refusing
from eshkol.ops.movement import permute
from eshkol.ops.row import NATIVE, Aval, HasAval, KernelOp, Op, row
from eshkol.ops.structural import PICK
from eshkol.schedule.rewrite.walk import New, again, in_order, visible, walked

TRIANGLE_OF_QR: Op = row(KernelOp(
    name="triangle_of_qr", doc="R of tall_qr, without Q.", names=("x",),
    infer=lambda a, x: Aval((*x.shape[:-2], x.shape[-1], x.shape[-1]), x.dtype),
    reference=lambda a, x: np.linalg.qr(x, "r"), lower=NATIVE, tolerance=4.0,
))  # fmt: skip
# What gives values with vectors: at which place the values are, and what gives them alone.
VALUES = {
    svd_with_pivots: (1, svdvals), eigh_with_pivots: (0, eigvalsh), eig_with_pivots: (0, eigvals),
    tall_qr: (1, TRIANGLE_OF_QR),
}  # fmt: skip
VECTORS = {alone: whole for whole, (_, alone) in VALUES.items()}


# --- systems whose factors are known ----------------------------------------------------------------


class Turned(NamedTuple):
    """Whether the transpose is meant."""

    transpose: bool


def _infer(a: Turned, factors: HasAval, b: HasAval, order: HasAval) -> Aval:
    return Aval((*shapes.broadcast(factors.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)


def _reference(a: Turned, factors: Any, b: Any, order: Any) -> Any:
    product = (np.tril(factors, -1) + np.eye(factors.shape[-1], dtype=factors.dtype)) @ np.triu(factors)
    x = np.empty_like(product)
    np.put_along_axis(x, order[..., None], product, -2)
    with refusing("a matrix is singular: its system has no one solution", "lstsq gives the nearest solution"):
        return np.linalg.solve(np.swapaxes(x, -1, -2) if a.transpose else x, b)


FACTORED_SOLVE: Op = row(KernelOp(
    name="factored_solve", doc="matrix_solve of a matrix or its transpose, by what lu_rows gives.",
    names=("factors", "b", "order"), infer=_infer, reference=_reference, lower=NATIVE, tolerance=16.0,
))  # fmt: skip


def _matrix(node: Node) -> tuple[Node, bool]:
    """The matrix of a system, as it is before it is turned, and whether it is."""
    x = node.inputs[0]
    if x.op is permute and x.data is None:
        axes, last = x.attrs.axes, len(x.shape) - 1
        if axes == (*range(last - 1), last, last - 1):
            return x.inputs[0], True
    return x, False


# --- the pass -----------------------------------------------------------------------------------------


def share_factors(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with factors that are computed once and no vectors that are not read."""
    order = in_order(results)
    systems: dict[Node, list[Node]] = {}
    spectra: set[Node] = set()
    for node in order:
        if node.data is None:
            if node.op is matrix_solve and target.native:
                systems.setdefault(_matrix(node)[0], []).append(node)
            elif (node.op in VALUES or node.op in VECTORS) and (node.op is not tall_qr or target.native):
                spectra.add(node)
    shared = {node for nodes in systems.values() if len(nodes) > 1 for node in nodes}
    if not shared and not spectra:
        return list(results)
    whole = _with_vectors(order, set(results))

    def once(node: Node, new: New) -> Node | None:
        if node in shared:
            x, turned = _matrix(node)
            factors, _, places = picks(make(lu_rows, (new[x],), None))
            return make(FACTORED_SOLVE, (factors, new[node.inputs[1]], places), Turned(turned))
        if node.op is PICK and node.data is None and node.inputs[0] in spectra and node.inputs[0] not in whole:
            return make(VALUES[node.inputs[0].op][1], new[node.inputs[0]].inputs, None)
        if node in spectra and node.op in VECTORS and (full := whole.get((VECTORS[node.op], node.inputs))):
            return picks(new.get(full) or again(full, new))[VALUES[full.op][0]]
        return None

    return walked(results, order, once)


def _with_vectors(order: Sequence[Node], results: set[Node]) -> dict[Any, Node]:
    """Nodes whose vectors are read, by themselves and by what they are made of."""
    found: dict[Any, Node] = {node: node for node in results if node.op in VALUES}
    for node in order:
        for x in visible(node):
            if x.op in VALUES and (node.op is not PICK or node.attrs.place != VALUES[x.op][0]):
                found[x] = x
    return found | {(node.op, node.inputs): node for node in found.values()}
