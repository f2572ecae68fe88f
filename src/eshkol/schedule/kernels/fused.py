"""A group of nodes as a kernel: the pull code of each, reading that of the others instead of memory.

`lowered_group` gives the kernels of a group, which are run one after another: one for elementwise groups, two where
partial results are combined. `kernel.outs` has a name for each of `group.outs`, of which a kernel binds those that are
parameters of its program; `Kernel.scratch` names memory that is needed from the first to the last kernel of the group
and is shared among them by name.
"""

from __future__ import annotations

from typing import Any

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.cache import Cache
from eshkol.schedule.kernels.block_rows import block_rows_kernel
from eshkol.schedule.kernels.blocks import block_parts_kernels
from eshkol.schedule.kernels.elements import elements_kernel, is_wide
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.followed_products import followed_product_kernels
from eshkol.schedule.kernels.fuse import Group
from eshkol.schedule.kernels.kernel import Kernel, bound, shown
from eshkol.schedule.kernels.parts import parts_kernels
from eshkol.schedule.kernels.reads import Number, Read, Write, lies
from eshkol.schedule.kernels.rows import group_name, rows_kernel
from eshkol.schedule.kernels.short_rows import short_rows_kernel
from eshkol.schedule.kernels.space import Point
from eshkol.schedule.kernels.values import GroupValues

_kernels = Cache()
_sizeless = Cache()  # programs that serve all sizes


def lowered_group(group: Group) -> tuple[Kernel, ...]:
    """What computes a group: kernels to be run in order."""
    names = {x: ("x", k) for k, x in enumerate(group.inputs)} | {n: ("n", k) for k, n in enumerate(group.nodes)}
    structure = tuple((n.op, n.attrs, *(names[x] for x in n.inputs)) for n in group.nodes)
    outs = tuple(names[n] for n in group.outs)
    shapes = tuple(None if x.op is CONST else x.shape for x in group.inputs)
    dtypes = tuple((x.op is CONST, x.dtype) for x in group.inputs)
    key = (group.target, structure, outs, dtypes, shapes, group.shape, group.runs)
    found: tuple[Kernel, ...] | None = _kernels.get(key)
    if found is None:
        blocks = group.target.blocks
        if group.kind == "rows":
            found = (block_rows_kernel(group) if blocks else short_rows_kernel(group) or rows_kernel(group),)
        elif group.kind == "parts":
            found = block_parts_kernels(group) if blocks else parts_kernels(group)
        elif group.kind == "product":
            found = followed_product_kernels(group)
        else:
            kinds = tuple(lies(s, group.shape) for s in shapes)
            alike = all(n.shape == group.shape for n in group.nodes)
            found = (_kernel(group, (structure, outs, dtypes, kinds) if alike else None),)
        _kernels.keep(key, found)
    return found


def _kernel(group: Group, sizeless: Any) -> Kernel:
    lanes = count(group.shape)
    outs = tuple(f"out{k}" for k in range(len(group.outs)))
    if is_wide(group.target, lanes):
        return elements_kernel(
            group_name(group), group.nodes, group.outs, outs, group.inputs, group.shape, group.target
        )
    program: Program | None = _sizeless.get(sizeless)
    if program is None:
        e = Emitter(group.shape)
        reads = [
            Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
            for k, x in enumerate(group.inputs)
        ]
        writes = [Write(e, name, n.shape, n.dtype) for name, n in zip(outs, group.outs, strict=True)]
        values = GroupValues(e, group.nodes, dict(zip(group.inputs, reads, strict=True)))
        point = Point(e, (lanes,), (e.lane,))
        # All is computed before anything is written: an output may lie where an input of the same lane was.
        results = [values.at(n, point) for n in group.outs]
        for write, result in zip(writes, results, strict=True):
            write.store(e.lane, result)
        if e.needs_shape:
            return elements_kernel(
                group_name(group), group.nodes, group.outs, outs, group.inputs, group.shape, group.target
            )
        program = shown(e.finish(group_name(group), reads, writes))
        if sizeless is not None:
            _sizeless.keep(sizeless, program)
    buffers, numbers = bound(program, group.inputs)
    return Kernel(program, LaunchConfig.linear(lanes), lanes, outs, buffers, numbers)
