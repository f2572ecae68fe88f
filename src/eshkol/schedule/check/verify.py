"""What a legal graph is, said as a check: run before a graph is computed where ESHKOL_CHECK=1.

It stands here and not in graph/, because the graph's own constructor keeps these rules already; what this checks is
what arrives for lowering, after transformations have rewritten it.
"""

from __future__ import annotations

from eshkol.errors import TensorError
from eshkol.graph.node import Node
from eshkol.schedule.kernels.kernel import described


def verify(node: Node) -> None:
    """Refuse a node whose shape, dtype or inputs are not as its row says."""
    op = node.op
    assert op.infer is not None
    if op.composite or op.lower is None:
        raise TensorError(f"{op.name} is no primitive with a lowering, and cannot be a node")
    aval = op.infer(node.attrs, *node.inputs)
    expected = tuple(aval) if type(aval) in (tuple, list) else None
    if expected != node.outs:
        raise TensorError(f"{described(node)} has results {node.outs}, its rule says {expected}")
    if expected is None and (node.shape, node.dtype) != (aval.shape, aval.dtype):
        raise TensorError(
            f"{described(node)} is {node.dtype}{list(node.shape)}, its rule says {aval.dtype}{list(aval.shape)}"
        )
    if op.promote is not None:
        _verify_dtypes(node)


def _verify_dtypes(node: Node) -> None:
    """Inputs that are promoted have met in one dtype, of a kind that the row takes."""
    op = node.op
    taken = node.inputs if op.promoted is None else [node.inputs[k] for k in op.promoted]
    dtypes = {x.dtype for x in taken}
    if len(dtypes) != 1:
        raise TensorError(f"{described(node)}: its operands should have met in one dtype")
    (dtype,) = dtypes
    if (op.promote == "float" and not dtype.differentiable) or (op.promote == "number" and dtype.is_bool):
        raise TensorError(f"{described(node)}: {dtype} should have been promoted")
