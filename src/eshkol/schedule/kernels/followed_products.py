"""Products of matrices with what follows them element by element, in one kernel.

Comes in: the steps of a plan. Goes out: steps in which a product that is one array instruction, and the elementwise
group that reads it first, are one group of the kind "product": sums go through bias, activation, residual and casts
before anything is written. What others read of the product itself is written too.

Its kernel is a program for a lane for each element. All lanes multiply together, and then each computes what follows
from its element of the product. Machines with groups of warps see what it comes to, and have it computed while sums are
in registers (`backends/cuda/warpgroups/epilogues.py`); there a product is not rounded before what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import MEANWHILE, LaunchConfig
from eshkol.atlas.table import ROWS
from eshkol.graph.node import Node
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import cast
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.array_products import is_whole, multiplied
from eshkol.schedule.kernels.block_products import needed
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.fuse import MOST_NODES, Group
from eshkol.schedule.kernels.kernel import ALIASES, Kernel, bound, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK, copied, copying_kernel
from eshkol.schedule.kernels.matrix_products import is_matrix_product, laid_out
from eshkol.schedule.kernels.reads import Number, Read, Write
from eshkol.schedule.kernels.space import Point
from eshkol.schedule.kernels.values import SAME, GroupValues

FOLLOWING = frozenset({
    cast, *(TABLE[name] for name in ("add", "sub", "mul", "div", "neg", "relu", "tanh", "sigmoid", "exp", "erf")),
})  # fmt: skip
FLOATS = frozenset({dtypes.bfloat16, dtypes.float16, dtypes.float32})
MOST_WRITTEN = 3  # matrices: those that wait to be copied take memory from the factors
MOST_READ = 3  # matrices besides the factors
PRODUCT = "product"  # the memory of a product that nobody else has memory for


def with_products(steps: Sequence[Node | Group], kept: set[Node], target: MachineDescription) -> list[Node | Group]:
    """The steps with products and what follows them as one, where the machine multiplies matrices as a whole."""
    if target.matrices is None or not target.matrices.whole:
        return list(steps)
    readers: dict[Node, list[int]] = {}
    for place, step in enumerate(steps):
        if isinstance(step, Group) or step.op not in ALIASES:
            for x in dict.fromkeys(_root(x) for x in step.inputs):
                readers.setdefault(x, []).append(place)
    found: list[Node | Group | None] = list(steps)
    behind: dict[int, Group] = {}
    for place, product in enumerate(steps):
        if not isinstance(product, Node) or product not in readers:
            continue
        first = readers[product][0]
        group, after = _divided(_as_group(found[first], target))
        if group is not None and _follows(group, product, target):
            for out in group.outs if len(readers[product]) > 1 else ():
                if out not in kept:
                    group = _computed_again(out, product, group, found, readers.get(out, ()))
            alone = len(readers[product]) == 1 and product not in kept
            found[place], found[first] = None, _joined(product, group, alone)
            if after is not None:
                behind[first] = after
    return [step for k, both in enumerate(found) for step in (both, behind.get(k)) if step is not None]


def _divided(group: Group | None) -> tuple[Group | None, Group | None]:
    """A group that sums up matrices which it writes, as one that computes them and one that then sums them up.

    The latter reads what otherwise the product would have written, and the former have read.
    """
    if group is None or group.kind != "parts":
        return group, None
    size = count(group.shape)
    full = tuple(n for n in group.outs if count(n.shape) == size)
    sums = [n for n in group.outs if n not in full]
    if not full or not sums:
        return group, None
    own = {n for one in full for n in _behind(one, group)}
    later = {n for one in sums for n in _behind(one, group, stop=full)}
    first, second = ([n for n in group.nodes if n in some] for some in (own, later))
    reads = [tuple(dict.fromkeys(x for n in some for x in n.inputs if x not in some)) for some in (first, second)]
    if any(count(x.shape) == size and x not in full for x in reads[1]):
        return group, None
    shape = full[0].shape
    return (
        Group(tuple(first), full, reads[0], shape, group.target),
        replace(group, nodes=tuple(second), outs=tuple(sums), inputs=reads[1]),
    )


def _computed_again(
    out: Node, product: Node, group: Group, steps: list[Node | Group | None], readers: Sequence[int]
) -> Group:
    """A group without one of its results, where all who read it read the product too, and rather compute it.

    What follows a product is computed while other results are on their way to memory, and takes a machine of blocks
    less time than what it is computed from takes to be read, which here is read anyway.
    """
    needed = _behind(out, group)
    given = {x for n in needed for x in n.inputs if x not in needed and x.op is not CONST}
    found: dict[int, Group] = {}
    for place in readers:
        reader = steps[place]
        if not isinstance(reader, Group) or reader.kind == "product" or len(reader.nodes) + len(needed) > MOST_NODES:
            return group
        read = {_root(x) for x in reader.inputs}
        if product not in read or not all(_root(x) in read for x in given):
            return group
        nodes = dict.fromkeys((*needed, *reader.nodes))
        inputs = dict.fromkeys(x for n in nodes for x in n.inputs if x not in nodes)
        found[place] = replace(reader, nodes=tuple(nodes), inputs=tuple(inputs))
    outs = tuple(n for n in group.outs if n is not out)
    if not outs or not found or out in (_root(n) for n in outs):
        return group
    for place, reader in found.items():
        steps[place] = reader
    wanted = {n for one in outs for n in _behind(one, group)}
    left = tuple(n for n in group.nodes if n in wanted)
    inputs = dict.fromkeys(x for n in left for x in n.inputs if x not in wanted)
    return replace(group, nodes=left, outs=outs, inputs=tuple(inputs))


def _behind(node: Node, group: Group, stop: Sequence[Node] = ()) -> list[Node]:
    """A node of a group, and those that it is computed from, in order; not those before some that are there."""
    wanted = {node}
    for n in reversed(group.nodes):
        if n in wanted and n not in stop:
            wanted.update(n.inputs)
    return [n for n in group.nodes if n in wanted and n not in stop]


def _as_group(step: Node | Group | None, target: MachineDescription) -> Group | None:
    """A step that computes elements from elements; a node by itself is a group of one."""
    if not isinstance(step, Node):
        return step
    inputs = tuple(dict.fromkeys(step.inputs))
    return Group((step,), (step,), inputs, step.shape, target) if step.op in FOLLOWING else None


def _root(node: Node) -> Node:
    while node.op in ALIASES:
        node = node.inputs[0]
    return node


def _follows(group: Group, product: Node, target: MachineDescription) -> bool:
    """Whether a group can be computed from the sums of a product."""
    if group.kind != "elementwise" or not _multiplies(product, target):
        return False
    size, columns = count(product.shape), product.shape[-1]

    def lies(x: Node, *, read: bool = True) -> bool:
        """Whether a node has an element for each of the product's, or for each column."""
        if x.dtype not in FLOATS:
            return False
        if count(x.shape) == size:
            return read or x.op in SAME or x.shape[-1:] == (columns,)
        return count(x.shape) == columns and x.shape[-1:] == (columns,)

    if any(n.outs is not None or n.op not in FOLLOWING | SAME or not lies(n, read=False) for n in group.nodes):
        return False
    others = [x for x in group.inputs if x.op is not CONST and _root(x) is not product]
    matrices = [x for x in others if count(x.shape) == size]
    return (
        all(map(lies, others)) and all(x.dtype in FLOATS for x in group.inputs)
        and all(count(n.shape) == size for n in group.outs)
        and len(group.outs) < MOST_WRITTEN and len(matrices) <= MOST_READ
    )  # fmt: skip


def _multiplies(node: Node, target: MachineDescription) -> bool:
    """Whether a node is a product of two different matrices as a whole: of 16-bit floats, its rows of whole chunks."""
    if node.outs is not None or node.data is not None or not node.shape or count(node.shape) == 0:
        return False
    return (
        is_matrix_product(node, target) and is_whole(node, target) and node.shape[-1] % CHUNK == 0
        and node.dtype.size == 2 and node.inputs[0] is not node.inputs[1]
    )  # fmt: skip


def _joined(product: Node, group: Group, alone: bool) -> Group:
    inside = {product, *group.nodes}
    inputs = dict.fromkeys((*product.inputs, *(x for n in group.nodes for x in n.inputs if _root(x) not in inside)))
    outs = group.outs if alone else (product, *group.outs)
    return Group((product, *group.nodes), outs, tuple(inputs), group.shape, group.target, "product")


def followed_product_kernels(group: Group) -> tuple[Kernel, ...]:
    """The kernels of a product with what follows it: those that copy its factors, where they must be, and one."""
    product, target = group.nodes[0], group.target
    layouts, terms = laid_out(product, target)
    before = [copying_kernel(product, k, layout, target) for k, layout in enumerate(layouts) if layout.copied]
    lanes = count(product.shape)
    e = Emitter((lanes,))
    names = tuple(f"out{k}" for k in range(len(group.outs)))
    writes = [Write(e, name, n.shape, n.dtype) for name, n in zip(names, group.outs, strict=True)]
    reads = [
        Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
        for k, x in enumerate(group.inputs)
    ]
    scratch = [Write(e, copied(k), (x.size,), x.dtype) for k, x in enumerate(layouts) if x.copied]
    # The product lies where it is wanted, or something else of its dtype will: each lane reads its own element first.
    fitting = sorted((n is not product, k) for k, n in enumerate(group.outs) if n.dtype is product.dtype)
    memory = writes[fitting[0][1]] if fitting else Write(e, PRODUCT, product.shape, product.dtype)
    if not fitting:
        scratch.append(memory)
    factors = [copied(k) if layout.copied else f"x{k}" for k, layout in enumerate(layouts)]
    for name in factors:
        e.use(name)
    given: dict[Node, Read | Number] = dict(zip(group.inputs, reads, strict=True))
    given[product] = Read(e, memory.name, product.shape, product.dtype)
    nodes = [n for n in group.nodes if n is not product]
    for n in nodes:  # what is the product under another shape, and stands outside of the group
        given |= {x: given[product] for x in n.inputs if x not in given and _root(x) is product and x not in nodes}
    values, point = GroupValues(e, nodes, given), Point(e, (lanes,), (e.lane,))
    results = [(write, values.at(n, point)) for n, write in zip(group.outs, writes, strict=True) if n is not product]
    for write, result in results:
        write.store(e.lane, result)
    name = "_".join(dict.fromkeys(n.op.name for n in group.nodes))
    program = e.finish(name, reads, [*writes, *scratch], lanes)
    multiply = ROWS["BatchedGEMM"](*multiplied(product, BufferOffset(memory.name), factors, layouts, terms))
    program = program.with_changes({0: (multiply, program.instructions[0])})
    if not fitting:
        program = replace(program, metadata={**program.metadata, MEANWHILE: PRODUCT})
    program = shown(program)
    buffers, numbers = bound(program, group.inputs)
    launch = LaunchConfig.linear(lanes, target.block)
    kernel = Kernel(program, launch, None, names, buffers, numbers, tuple(needed(memory) for memory in scratch))
    return *before, kernel
