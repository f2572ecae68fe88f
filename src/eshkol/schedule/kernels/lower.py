"""Nodes into kernels: for each op with its attributes, shapes and dtypes, what computes it.

Comes in: a node. Goes out: a `Kernel` (an Atlas program, its launch, and how buffers are bound to its parameters), or
the statement that the host computes it, or that it is its input under another shape. Kernels
are made for machines of one description and kept in a bounded cache; one that depends on no extent serves all sizes
with one program.

One kernel computes one node. `Pull` code is written against `reads`, so that what is read may later be the pull code
of another node instead of a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.errors import TensorError
from eshkol.graph.node import Node
from eshkol.ops.movement import expand
from eshkol.ops.row import Aval, Host, Macro, Nested, Parts, Pull, Push, Update
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.cache import Cache
from eshkol.schedule.kernels.block_attention import attention_kernels, is_attention
from eshkol.schedule.kernels.block_attention_gradients import gradient_kernels, is_gradients
from eshkol.schedule.kernels.block_fourier import BLOCK_FOURIER, block_fourier_kernel
from eshkol.schedule.kernels.block_products import block_product_kernels, is_product
from eshkol.schedule.kernels.block_scans import block_scan_kernels, is_scan
from eshkol.schedule.kernels.block_sort import block_sort_kernels, is_sort
from eshkol.schedule.kernels.channels_last import CHANNELS_LAST, copying_kernel
from eshkol.schedule.kernels.elements import elements_kernel, is_wide, suits
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import (
    ALIAS,
    ALIASES,
    HOST,
    ONE_LANE,
    Kernel,
    Lowered,
    View,
    bound,
    core_block,
    lowering,
    shown,
)
from eshkol.schedule.kernels.matrix_products import is_matrix_product, matrix_product_kernels
from eshkol.schedule.kernels.matrix_windows import is_matrix_convolution, matrix_convolution_kernels
from eshkol.schedule.kernels.patches import PATCHES, patches_kernel
from eshkol.schedule.kernels.reads import Number, Read, Write, lies
from eshkol.schedule.kernels.scalars import TYPES
from eshkol.schedule.kernels.settled import is_settled, settled_kernel
from eshkol.schedule.kernels.whole_convolutions import WHOLE_CONVOLUTION, whole_convolution_kernels

_kernels = Cache()
_sizeless = Cache()  # programs that serve all sizes


def lowered(node: Node, target: MachineDescription) -> Lowered:
    """What computes a node on such a machine."""
    if type(node.op.lower) is Nested:
        return node.op.lower  # not kept: its attributes are whole functions
    if node.op is expand and _is_zero(node.inputs[0]):
        return zeros_kernel(node)
    key = (target, node.op, node.attrs, operands(node.inputs))
    found: Lowered | None = _kernels.get(key)
    if found is None:
        found = _lower(node, target)
        _kernels.keep(key, found)
    return found


def operands(inputs: Sequence[Node]) -> tuple[Any, ...]:
    """What a kernel may know of the inputs of a node: what each is like, and which of them are the same.

    An input that stands in several places is read as one, so a kernel for it is none for different ones.
    """
    first: dict[Node, int] = {}
    return tuple([
        place if (place := first.setdefault(x, k)) != k else (None if x.op is CONST else x.shape, x.dtype)
        for k, x in enumerate(inputs)
    ])  # fmt: skip


def _lower(node: Node, target: MachineDescription) -> Lowered:
    if node.op in ALIASES:
        return ALIAS
    outs = node.outs or (Aval(node.shape, node.dtype),)
    if target.blocks and is_scan(node, target):
        return block_scan_kernels(node, target)
    if target.blocks and is_settled(node, target):
        return settled_kernel(node, target)
    if target.blocks and is_sort(node):
        return block_sort_kernels(node, target)
    if is_attention(node):
        return attention_kernels(node, target)
    if is_gradients(node):
        return gradient_kernels(node, target)
    if node.op is CHANNELS_LAST:
        return copying_kernel(node, 0, "out", node.attrs, target)
    if node.op is PATCHES:
        return patches_kernel(node, target)
    if node.op is WHOLE_CONVOLUTION:
        return whole_convolution_kernels(node, target)
    if node.op is BLOCK_FOURIER and count(node.shape):
        return block_fourier_kernel(node, target)
    how = lowering(node, arrays=target.arrays)
    if isinstance(how, Nested):
        raise TensorError("control flow cannot be one of several lowerings")
    if isinstance(how, Host):
        return HOST
    names = ("out",) if node.outs is None else tuple(f"out{k}" for k in range(len(outs)))
    if all(count(out.shape) == 0 for out in outs):
        return Kernel(Program(), None, None, names, (), ())
    if target.blocks and is_matrix_product(node, target):
        return matrix_product_kernels(node, target)
    if target.blocks and is_matrix_convolution(node, target):
        return matrix_convolution_kernels(node, target)
    if isinstance(how, Macro):
        return _macro(how, node)
    if target.blocks and is_product(node):
        return block_product_kernels(node, target)
    assert not isinstance(how, Parts)  # plans are made of what such a node is composed of
    return _scalar_code(how, node, outs, names, target)


def _macro(how: Macro, node: Node) -> Kernel:
    b = ProgramBuilder(node.op.name)
    out = _view(b, "out", node)
    inputs = [_view(b, f"x{k}", x) for k, x in enumerate(node.inputs)]
    how.code(b, node.attrs, out, *inputs)
    buffers = tuple((view.name, k) for k, view in enumerate(inputs))
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), buffers, ())


def _view(b: ProgramBuilder, name: str, aval: Any) -> View:
    ty = TYPES[aval.dtype]
    b.buffer(name, ty)
    return View(name, aval.shape, aval.dtype, ty)


def _scalar_code(
    how: Pull | Push, node: Node, outs: Sequence[Aval], names: Sequence[str], target: MachineDescription
) -> Kernel:
    if isinstance(how, Push) and target.blocks and how.side_by_side is not None:
        how = how.side_by_side
    spread = outs[0].shape if isinstance(how, Pull) else how.rows(node.attrs, *node.inputs)
    lanes = count(spread)
    if is_wide(target, lanes) and isinstance(how, Pull) and suits(node):
        return elements_kernel(node.op.name, (node,), (node,), names, node.inputs, node.shape, target)
    sizeless = (node.op, node.attrs, *_kinds(node, outs)) if isinstance(how, Pull) else None
    program: Program | None = _sizeless.get(sizeless)
    extents: tuple[tuple[str, int], ...] = ()
    if program is None:
        e = Emitter(spread)
        reads = [_read(e, f"x{k}", x) for k, x in enumerate(node.inputs)]
        writes = [Write(e, name, out.shape, out.dtype) for name, out in zip(names, outs, strict=True)]
        _write(how, e, node, reads, writes)
        if e.needs_shape and isinstance(how, Pull) and suits(node):
            return elements_kernel(node.op.name, (node,), (node,), names, node.inputs, node.shape, target)
        program, extents = shown(e.finish(node.op.name, reads, writes)), tuple(e.extents.items())
        if sizeless is not None and not e.needs_shape and not extents:
            _sizeless.keep(sizeless, program)
    launch = LaunchConfig.linear(lanes) if lanes else None
    buffers, numbers = bound(program, node.inputs)
    if isinstance(how, Push) and lanes:
        size = max(x.size for x in node.inputs) // lanes
        each = how.work(node.attrs, *node.inputs) if isinstance(how, Update) else size
        launch = LaunchConfig.linear(lanes, target.block if target.blocks else core_block(target, max(1, each)))
    onto = isinstance(how, Update)
    return Kernel(program, launch, lanes, tuple(names), buffers, numbers, extents=extents, onto=onto)


def copy_kernel(x: Aval | Node) -> Kernel:
    """The kernel that copies a tensor."""
    return _of_elements("copy", x, copies=True)


def zeros_kernel(x: Aval | Node) -> Kernel:
    """The kernel that gives a tensor of zeros. Its program says that they are: machines are fast at clearing memory."""
    return _of_elements("zeros", x, copies=False)


def _of_elements(name: str, x: Aval | Node, copies: bool) -> Kernel:
    lanes = count(x.shape)
    program: Program | None = _sizeless.get((name, x.dtype))
    if program is None:
        e = Emitter((lanes,))
        read, write = Read(e, "x0", (lanes,), x.dtype), Write(e, "out", (lanes,), x.dtype)
        write.store(e.lane, read.load(e.lane) if copies else 0)
        program = shown(e.finish(name, [read], [write]))
        _sizeless.keep((name, x.dtype), program)
    launch = LaunchConfig.linear(lanes) if lanes else None
    return Kernel(program, launch, lanes, ("out",), (("x0", 0),) if copies else (), (), copies=copies)


def _is_zero(x: Node) -> bool:
    """Whether an input is a number all of whose bits are zero, unlike those of -0.0."""
    return x.op is CONST and not x.dtype.is_complex and not any(x.attrs.raw)


def _write(how: Pull | Push, e: Emitter, node: Node, reads: Sequence[Any], writes: Sequence[Write]) -> None:
    if isinstance(how, Push):
        how.code(e, node.attrs, e.here, writes[0] if node.outs is None else tuple(writes), *reads)
        return
    results = how.code(e, node.attrs, e.here, *reads)
    for write, result in zip(writes, (results,) if node.outs is None else results, strict=True):
        write(e.here, result)


def _read(e: Emitter, name: str, x: Node) -> Read | Number:
    return Number(e, name, x.dtype) if x.op is CONST else Read(e, name, x.shape, x.dtype)


def _kinds(node: Node, outs: Sequence[Aval]) -> list[Any]:
    """How each input lies to the result."""
    return [(lies(None if x.op is CONST else x.shape, outs[0].shape), x.dtype) for x in node.inputs]
