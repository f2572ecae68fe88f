"""Products of matrices, attention and its gradients as array instructions, where that is faster.

Comes in: a product, and how its operands lie (`matrix_operands.py`), attention, or its gradients. Goes out: a kernel
whose program is one instruction, which the machine's own code does as a whole (`backends/cuda/warpgroups`); or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import MachineDescription, Precision
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import ROUNDED
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.attention import AttentionGradients, PagedAttention, SeenAttention
from eshkol.schedule.kernels.kernel import ONE_LANE, Kernel, shown
from eshkol.schedule.kernels.matrix_operands import Layout, copied, rounds
from eshkol.schedule.kernels.products import SEEN_PRODUCT, View
from eshkol.schedule.kernels.scalars import TYPES

SUMS = "sums"  # memory of sums that nobody reads
BATCH_AXES = 3  # of a batch, which the machine's copies know beside rows and columns
NARROWEST = 64  # rows, columns and terms of a product of float32 that is worth an array instruction
FILLS = 64 * 64 * 7 // 8  # its results for each processor


def is_whole(node: Node, target: MachineDescription) -> bool:
    """Whether a product is one array instruction: of 16-bit floats, and of float32 that may be rounded or is large."""
    assert target.matrices is not None
    axes = sum(extent > 1 for extent in node.shape[:-2])
    if not target.matrices.whole or axes > BATCH_AXES:
        return False
    if node.dtype is dtypes.float32:
        return rounds(node.dtype, target) or _is_large(node, target)
    return TYPES.get(node.dtype) in target.matrices.types  # complex numbers have no type of Atlas


def _is_large(node: Node, target: MachineDescription) -> bool:
    """Whether an exact product of float32 has results enough to keep the machine at work without cutting its sums."""
    narrow = min(*node.shape[-2:], node.attrs.x.shape[-1] if node.op is SEEN_PRODUCT else node.inputs[0].shape[-1])
    filled = count(node.shape) >= target.processors * FILLS
    return target.float32_products is Precision.HIGHEST and narrow >= NARROWEST and filled


def whole_product_kernel(node: Node, layouts: Sequence[Layout], terms: int, target: MachineDescription) -> Kernel:
    """The kernel: operands that are copied for it lie in memory that kernels before it have filled."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    names = [copied(k) if layout.copied else f"x{k}" for k, layout in enumerate(layouts)]
    for name in ("out", *names):
        b.buffer(name, ty)
    b.emit(ROWS["BatchedGEMM"](*multiplied(node, BufferOffset("out"), names, layouts, terms)))
    buffers = tuple((name, k) for k, (name, layout) in enumerate(zip(names, layouts, strict=True)) if not layout.copied)
    scratch = tuple((name, x.dtype, x.size) for name, x in zip(names, layouts, strict=True) if x.copied)
    if rounds(node.dtype, target):
        b.metadata[ROUNDED] = "1"
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), buffers, (), scratch)


def multiplied(
    node: Node, out: BufferOffset, names: Sequence[str], layouts: Sequence[Layout], terms: int
) -> tuple[Any, ...]:
    """The operands of the array instruction that multiplies the factors which lie in buffers of these names."""
    ty, (rows, columns) = TYPES[node.dtype], node.shape[-2:]
    places = [BufferOffset(n, x.offset * x.chunk * ty.size_bytes) for n, x in zip(names, layouts, strict=True)]
    strides = [tuple(layout.chunk * step for step in (*layout.steps, layout.stride)) for layout in layouts]
    extents = node.shape[:-2]
    if not extents:
        extents, strides = (1,), [(0, *line) for line in strides]
    turned = not layouts[0].deep, layouts[1].deep
    return ty, out, *places, count(extents), rows, columns, terms, 1.0, *turned, extents, *strides, ()


PAGED_ROWS = 64  # query heads that share keys, times queries, that are done together
SMALLEST_PAGE = 16  # places, of which pages have a power of two


def is_whole_attention(a: SeenAttention, target: MachineDescription, *more: View) -> bool:
    """Whether attention is one array instruction, and its gradients, of one more view, are two."""
    assert target.matrices is not None
    apart = all(_line(view) > 0 for view in (a.q, a.k, a.v, *more))  # machines copy no row that is many
    if a.mask is not None and a.mask.strides[-1] != 1:
        return False
    return apart and target.matrices.whole and sum(extent > 1 for extent in a.batch) <= BATCH_AXES


def _line(view: View) -> int:
    """The distance of neighbouring rows, which may be any of a single one."""
    return view.strides[-2] if view.shape[-2] > 1 else view.shape[-1]


def whole_attention_kernel(node: Node) -> Kernel:
    """The kernel of attention; sums that nobody reads are written all the same."""
    a: SeenAttention = node.attrs
    b, ty = ProgramBuilder(node.op.name), TYPES[node.inputs[0].dtype]
    outs: tuple[str, ...] = ("out",) if node.outs is None else ("out0", "out1")
    names = {"out": outs[0], "sums": SUMS if node.outs is None else outs[1]}
    b.buffer(names["out"], ty)
    b.buffer(names["sums"], Type.F32)
    places = [BufferOffset(f"x{k}", view.offset * ty.size_bytes) for k, view in enumerate(a[:3])]
    for k, x in enumerate(node.inputs):
        b.buffer(f"x{k}", TYPES[x.dtype])
    strides = [(*a.steps(view), _line(view)) for view in (a.q, a.k, a.v)]
    b.batched_attention(
        ty, BufferOffset(names["out"]), BufferOffset(names["sums"]), *places, batch=count(a.batch),
        queries=a.q.shape[-2], keys=a.k.shape[-2], head_dim=a.q.shape[-1], scale=a.scale, causal=a.causal,
        batches=a.batch, query_strides=strides[0], key_strides=strides[1], value_strides=strides[2],
        **_seen(a, node),
    )  # fmt: skip
    scratch = ((SUMS, dtypes.float32, count(a.shape[:-1])),) if node.outs is None else ()
    return Kernel(
        shown(b.build()), ONE_LANE, None, outs, tuple((f"x{k}", k) for k in range(len(node.inputs))), (), scratch
    )


def reads_pages(queries: Shape, page: int) -> bool:
    """Whether attention of batch × heads × members × queries × dim reads pages of so many places where they lie."""
    return prod(queries[2:4]) <= PAGED_ROWS and page % SMALLEST_PAGE == 0 and page & (page - 1) == 0


def paged_attention_kernel(node: Node) -> Kernel:
    """The kernel of attention to pages."""
    a: PagedAttention = node.attrs
    b, ty = ProgramBuilder(node.op.name), TYPES[node.inputs[0].dtype]
    batch, heads, members, queries, width = a.queries
    names = tuple(f"x{k}" for k in range(len(node.inputs)))
    b.buffer("out", ty)
    b.buffer(SUMS, Type.F32)
    for name, x in zip(names, node.inputs, strict=True):
        b.buffer(name, TYPES[x.dtype])
    pages, page = node.inputs[1].shape[:2]
    b.paged_attention(
        ty, *(BufferOffset(name) for name in ("out", SUMS, *names)), batch=batch, heads=heads, members=members,
        queries=queries, pages=pages, page=page, most=node.inputs[3].shape[1], head_dim=width, scale=a.scale,
    )  # fmt: skip
    scratch = ((SUMS, dtypes.float32, count(a.queries[:-1])),)
    buffers = tuple((name, k) for k, name in enumerate(names))
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), buffers, (), scratch)


def _seen(a: SeenAttention, node: Node) -> dict[str, Any]:
    """Which keys are seen, and which weights dropped, in the words of the instructions: what is read last."""
    found: dict[str, Any] = {"window": a.window} if a.window else {}
    if a.dropout:
        found["dropout"] = a.dropout
    if a.lengths is not None:
        found["lengths_strides"] = a.lengths
    for n, name in enumerate(a.last, len(node.inputs) - len(a.last)):
        if name != "mask":
            found[name] = BufferOffset(f"x{n}")
        elif a.mask is not None:
            x = node.inputs[n]
            place = BufferOffset(f"x{n}", a.mask.offset * TYPES[x.dtype].size_bytes)
            steps = (*a.steps(a.mask), a.mask.strides[-2])
            found |= {"mask" if x.dtype.is_bool else "bias": place, "mask_strides": steps}
    return found


def whole_gradient_kernels(node: Node, outs: Sequence[str]) -> tuple[Kernel, ...]:
    """The kernels of attention's gradients: that of q, then those of k and v."""
    g: AttentionGradients = node.attrs
    a, ty = g.attention, TYPES[node.inputs[0].dtype]
    views = (*a[:3], g.cotangent)
    strides = zip(("query", "key", "value", "cotangent"), views, strict=True)
    how = {f"{name}_strides": (*a.steps(view), _line(view)) for name, view in strides}
    names = [f"x{k}" for k in range(len(node.inputs))]
    places = [BufferOffset(name, view.offset * ty.size_bytes) for name, view in zip(names, views, strict=False)]
    places += [BufferOffset(name) for name in names[len(views) :][:2]]
    found = []
    for method, written in (("batched_attention_grad_query", outs[:1]), ("batched_attention_grad_key_value", outs[1:])):
        b = ProgramBuilder(node.op.name)
        for name in written:
            b.buffer(name, ty)
        for name, x in zip(names, node.inputs, strict=True):
            b.buffer(name, TYPES[x.dtype])
        more = _seen(a, node) | ({"grouped": True} if a.grouped and len(written) > 1 else {})
        getattr(b, method)(
            ty, *map(BufferOffset, written), *places, batch=count(a.batch), queries=a.q.shape[-2],
            keys=a.k.shape[-2], head_dim=a.q.shape[-1], scale=a.scale, causal=a.causal, batches=a.batch, **how,
            **more,
        )  # fmt: skip
        buffers = tuple((name, k) for k, name in enumerate(names))
        found.append(Kernel(shown(b.build()), ONE_LANE, None, tuple(outs), buffers, ()))
    return tuple(found)
