"""Products of matrices as one array instruction, on machines of blocks that do it faster than in fragments.

Comes in: a product, and how its operands lie (`matrix_operands.py`). Goes out: a kernel whose program is one
instruction, which the machine's own code does as a whole (`backends/cuda/warpgroups`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset
from eshkol.graph.node import Node
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.kernel import ONE_LANE, Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK, Layout, copied
from eshkol.schedule.kernels.scalars import TYPES

BATCH_AXES = 3  # of a batch, which the machine's copies know beside rows and columns


def is_whole(node: Node, target: MachineDescription) -> bool:
    """Whether a product of 16-bit floats is one array instruction."""
    assert target.matrices is not None
    axes = sum(extent > 1 for extent in node.shape[:-2])
    return target.matrices.whole and TYPES[node.dtype] in target.matrices.types and axes <= BATCH_AXES


def whole_product_kernel(node: Node, layouts: Sequence[Layout], terms: int) -> Kernel:
    """The kernel: operands that are copied for it lie in memory that kernels before it have filled."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    names = [copied(k) if layout.copied else f"x{k}" for k, layout in enumerate(layouts)]
    for name in ("out", *names):
        b.buffer(name, ty)
    rows, columns = node.shape[-2:]
    places = [BufferOffset(n, layout.offset * CHUNK * ty.size_bytes) for n, layout in zip(names, layouts, strict=True)]
    strides = [tuple(CHUNK * step for step in (*layout.steps, layout.stride)) for layout in layouts]
    extents = node.shape[:-2]
    if not extents:
        extents, strides = (1,), [(0, *line) for line in strides]
    b.batched_gemm(
        ty, BufferOffset("out"), *places, batch=count(extents), batches=extents, m=rows, n=columns, k=terms,
        transpose_a=not layouts[0].deep, transpose_b=layouts[1].deep, a_strides=strides[0], b_strides=strides[1],
    )  # fmt: skip
    buffers = tuple((name, k) for k, (name, layout) in enumerate(zip(names, layouts, strict=True)) if not layout.copied)
    scratch = tuple((name, x.dtype, x.size) for name, x in zip(names, layouts, strict=True) if x.copied)
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), buffers, (), scratch)
