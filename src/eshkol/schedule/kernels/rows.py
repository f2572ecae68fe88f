"""Groups with reductions as kernels that compute row by row.

A lane computes a row. It goes over the row's elements once for each reduction that depends on another: softmax
takes the greatest element, then the sum of the exponentials above it, then divides. Reduced values stay in registers;
what a later loop needs of an earlier one is computed again, unless that is dear and an output can hold it meanwhile.

Sums and products of floats are taken in blocks, so that rounding errors do not grow with the length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from types import MappingProxyType
from typing import Any

from eshkol.atlas.operands import ReduceOperation
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import common, count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.costs import dear
from eshkol.schedule.kernels.emit import NOTHING, Emitter
from eshkol.schedule.kernels.kernel import Kernel, bound, core_block, shown
from eshkol.schedule.kernels.reads import Number, Read, Write
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Pattern, Point, aligned, columns, padded, pattern, rows, spread
from eshkol.schedule.kernels.values import GroupValues, read_key, straight

SHORT = 16  # elements that are too few to be walked by themselves
BLOCK = 512  # terms of a sum or product of floats that are combined one after another
COUNTED = 2**31 - 1  # truths that are counted in 32 bits

PICK = "take"  # one element of each row
NO_NODES: Mapping[Node, Node] = MappingProxyType({})


def working(node: Node) -> DType:
    """The dtype in which a reduction's result grows."""
    dtype, given = node.dtype, node.inputs[0]
    if given.dtype.is_bool and dtype is dtypes.int64 and count(given.shape) <= COUNTED:
        return dtypes.int32  # of which a vector holds twice as many
    return dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype


def neutral(node: Node) -> Any:
    """The number that a reduction begins with."""
    assert node.op.reduces is not None
    return node.op.reduces.first(node.dtype)


def operation(node: Node) -> str:
    """How a reduction combines: an operation of `Emitter.accumulate`."""
    assert node.op.reduces is not None
    return node.op.reduces.operation


def floats_summed(nodes: Sequence[Node]) -> bool:
    """Whether rounding errors grow with the number of terms."""
    return any(working(n).differentiable and operation(n) in ("Sum", "Product") for n in nodes)


def merge(e: Emitter, node: Node, total: Scalar, term: Scalar) -> Scalar:
    """Two partial results of a reduction as one; NaN is never passed over."""
    how = ReduceOperation[operation(node)]
    if how in (ReduceOperation.Min, ReduceOperation.Max) and total.dtype.is_float:
        return e.emit("ACC", total.dtype, (e.register(total), e.register(term)), (how,))
    return e.op(how.value, total, term)


# --- what belongs to which loop -------------------------------------------------------------------


class Phases:
    """In which loop over the elements of its row, or before which, each node of a group is computed.

    Reductions that are `online` are computed in the same loop as another, though they depend on it.
    """

    def __init__(
        self, nodes: Sequence[Node], outs: Sequence[Node], runs: Pattern, online: Mapping[Node, Node] = NO_NODES
    ) -> None:
        self.online = online
        self.runs, self.lanes, self.whole = runs, rows(runs), rows(runs) * columns(runs)
        self.inside = set(nodes)
        self.level: dict[Node, int] = {}
        for node in nodes:
            found = max((self.level[x] for x in self.edges(node)), default=0)
            self.level[node] = self.level[online[node]] if node in online else found + (node.op.reduces is not None)
        self.reductions = [n for n in nodes if n.op.reduces is not None]
        reached = self._reached([*outs, *self.reductions])
        self.full = [n for n in nodes if n in reached and self.is_full(n)]
        self.row = [n for n in nodes if n in reached and not self.is_full(n)]
        self.full_outs = [n for n in outs if self.is_full(n)]
        ends = [self.level[n] - 1 for n in self.reductions] + [self.level[n] for n in self.full_outs]
        self.loops = max(ends, default=-1) + 1

    def is_full(self, node: Node) -> bool:
        return count(node.shape) == self.whole

    def edges(self, node: Node) -> list[Node]:
        """The nodes of the group that a node reads at its own element or row; not those that are bent."""
        size = count(node.shape)

        def seen(x: Node) -> bool:
            return count(x.shape) in (size, self.whole) or (
                size == self.whole and spread(x.shape, node.shape) == self.runs
            )

        return [x for x in straight(node) if x in self.inside and seen(x)]

    def _reached(self, roots: Sequence[Node]) -> set[Node]:
        found: set[Node] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(self.edges(node))
        return found

    def roots(self, loop: int) -> list[Node]:
        """The full nodes that a loop must compute."""
        ends = [n.inputs[0] for n in self.reductions if self.level[n] == loop + 1 and n not in self.online]
        return [*ends, *(n for n in self.full_outs if self.level[n] == loop)]

    def hosts(self) -> dict[Node, tuple[Node, int]]:
        """Dear nodes that several loops need, the outputs in which they are kept, and the first of the loops."""
        full = set(self.full)
        uses: dict[Node, list[int]] = {}
        for loop in range(self.loops):
            for node in self._reached([x for x in self.roots(loop) if x in self.inside]):
                if node in full:
                    uses.setdefault(node, []).append(loop)
        found: dict[Node, tuple[Node, int]] = {}
        taken: set[Node] = set()
        for node in self.full:
            loops = uses.get(node, [])
            if len(loops) < 2 or not dear(node):
                continue
            if node in self.full_outs:
                found[node] = node, self.level[node]
                continue
            host = next((o for o in self.full_outs if self._can_hold(o, node, loops) and o not in taken), None)
            if host is not None:
                taken.add(host)
                found[node] = host, loops[0]
        return found

    def _can_hold(self, out: Node, node: Node, loops: Sequence[int]) -> bool:
        return out.dtype is node.dtype and loops[0] < self.level[out] and self.level[out] >= loops[-1]


def within(phases: Phases) -> Pattern:
    """The runs, the last cut in two where something broadcasts along one part of it alone.

    What stands still along the elements that are walked together is read once and not found by division for each of
    them: in the sum of a[:, :, None] * b[:, None] over the first axis the last run is that of b's columns, and that of
    a norm over groups of channels is a channel.
    """
    last, keep = phases.runs[-1]
    length = last
    for node in phases.full:
        runs = common(node.shape, [n for n, _ in phases.runs])
        axes = runs[-1][1] if runs else []
        for x in straight(node):
            own = padded(x.shape, len(node.shape))
            kinds = pattern(tuple(node.shape[k] for k in axes), [own[k] != 1 for k in axes])
            if len(kinds) > 1 and length % kinds[-1][0] == 0:
                length = kinds[-1][0]
    if length == last or length < SHORT:
        return phases.runs
    return (*phases.runs[:-1], (last // length, keep), (length, keep))


# --- kernels --------------------------------------------------------------------------------------


class Writer:
    """A kernel of a group under construction."""

    def __init__(self, group: Any, phases: Phases, lanes: int, runs: Pattern | None = None) -> None:
        self.group, self.phases, self.lanes = group, phases, lanes
        self.runs = phases.runs if runs is None else runs  # the phases', or shorter ones within them
        self.e = e = Emitter((lanes,))
        self.inputs: list[Read | Number] = [
            Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
            for k, x in enumerate(group.inputs)
        ]
        self.values = GroupValues(e, group.nodes, dict(zip(group.inputs, self.inputs, strict=True)))
        self.names = tuple(f"out{k}" for k in range(len(group.outs)))
        self.writes = {
            n: Write(e, name, n.shape, n.dtype) for name, n in zip(self.names, group.outs, strict=True)
        }  # fmt: skip
        self.written: set[str] = set()
        self.extents = tuple(n for n, _ in self.runs)
        self.scratch: dict[str, tuple[Write, int]] = {}
        self.kept: list[Scalar] = []

    def part(self, name: str, dtype: DType, size: int) -> Write:
        """Memory between kernels."""
        if name not in self.scratch:
            self.scratch[name] = Write(self.e, name, (size,), dtype), size
        return self.scratch[name][0]

    def store(self, node: Node, position: Scalar, value: Scalar) -> None:
        self.written.add(self.writes[node].name)
        self.writes[node].store(position, value)

    def point(self, kept: Sequence[Scalar], reduced: Sequence[Scalar]) -> Point:
        """The point at places along the kept and the reduced runs."""
        outer, inner = iter(kept), iter(reduced)
        return Point(self.e, self.extents, [next(outer) if keep else next(inner) for _, keep in self.runs])

    def kept_places(self, row: Scalar) -> list[Scalar]:
        """The places of a row along the kept runs."""
        kept = [n for n, keep in self.runs if keep]
        return [self.e.digit(row, count(tuple(kept[k + 1 :])), n) for k, n in enumerate(kept)]

    def preload(self, kept: Sequence[Scalar]) -> None:
        """Read what is the same for all elements of a row."""
        zeros = [self.e.number(0)] * sum(not keep for _, keep in self.runs)
        here = self.point(kept, zeros)
        for node in self.phases.full:
            for x in straight(node):
                read = self.values.reads.get(x)
                if isinstance(read, Read) and self._constant(x.shape, node.shape):
                    key = read_key(x, node.shape)
                    if key not in self.values.row_reads:
                        self.values.row_reads[key] = read.load(here.position(x.shape, node.shape))
        self.values.settle(self.phases.full, here, [not keep for _, keep in self.runs])

    def _constant(self, shape: Shape, whole: Shape) -> bool:
        """Whether what broadcasts from a shape is the same for all elements of a row."""
        if count(shape) == 1:
            return True
        if count(shape) == count(whole):  # under whatever shape: each element is read where it lies
            return False
        axes = aligned(whole, self.extents)
        if axes is None:
            return False
        own = padded(shape, len(whole))
        return all(keep or all(own[k] == 1 for k in mine) for mine, (_, keep) in zip(axes, self.runs, strict=True))

    def terms(self, point: Point, loop: int) -> dict[Node, Scalar]:
        """What the reductions of a loop take in at a point."""
        return {
            n: self.e.convert(self.values.seen(n.inputs[0], n.inputs[0].shape, point), working(n))
            for n in self.phases.reductions
            if self.phases.level[n] == loop + 1 and n not in self.phases.online
        }

    def write_full(
        self,
        points: Sequence[Point],
        loop: int,
        hosts: dict[Node, tuple[Node, int]],
        inside: Scalar | None = None,
    ) -> None:
        """Store what a loop gives for each element, if it is inside, and what is kept for later loops."""
        self.store_full(points, [self.full_values(point, loop, hosts) for point in points], inside)

    def full_values(self, point: Point, loop: int, hosts: dict[Node, tuple[Node, int]]) -> dict[Node, Scalar]:
        """What a loop gives for an element, by where it is stored."""
        outs = [n for n in self.phases.full_outs if self.phases.level[n] == loop]
        held = [(host, node) for node, (host, first) in hosts.items() if first == loop]
        return {node: self.values.at(n, point) for node, n in (dict(held) | {n: n for n in outs}).items()}

    def store_full(
        self, points: Sequence[Point], found: Sequence[dict[Node, Scalar]], inside: Scalar | None = None
    ) -> None:
        """Store it, of several elements: all is computed before that, since an output may lie where an input was."""
        with self.e.only_if(inside) if any(found) and inside is not None else nullcontext():
            for node in found[0] if found else ():
                for point, values in zip(points, found, strict=True):
                    self.store(node, point.flat, values[node])

    def note_kept(self, loop: int, hosts: dict[Node, tuple[Node, int]]) -> None:
        """After a loop: what lies in an output from now on, until that is overwritten by its own value."""
        for node, (host, first) in hosts.items():
            if first == loop:
                self.values.kept[node] = self.writes[host]
            if host is not node and self.phases.level[host] == loop:
                self.values.kept.pop(node, None)

    def finished(self, row: Node) -> None:
        """A row's value, computed from others."""
        e = self.e
        if row.op.name == PICK:
            x, places = row.inputs
            place = self.values.seen(places, places.shape, self.row_point)
            inside = e.sure_index(place, columns(self.phases.runs))
            self.values.rows[row] = self.values.seen(x, x.shape, self.point(self.kept, [inside]))
        else:
            self.values.rows[row] = self.values.at(row, self.row_point)

    def finish_rows(self) -> None:
        """Compute the rows' values that are missing, and store those that are wanted."""
        self.compute_rows()
        self.store_rows()

    def compute_rows(self) -> None:
        for node in self.phases.row:
            if node not in self.values.rows:
                self.finished(node)

    def store_rows(self) -> None:
        for node in self.group.outs:
            if not self.phases.is_full(node):
                self.store(node, self.row, self.values.rows[node])

    def begin(self, row: Scalar) -> None:
        """Say which row the code to come is about."""
        self.row = row
        self.kept = self.kept_places(row)
        self.row_point = Point(self.e, (self.phases.lanes,), (row,))
        self.preload(self.kept)

    def kernel(self, launch: LaunchConfig, *, fixed: bool, told: Mapping[str, str] = NOTHING) -> Kernel:
        """The kernel; not fixed, its program serves any number of rows. What is told is the program's metadata."""
        e, group = self.e, self.group
        # A program has the outputs that it writes; the kernels of a group write them all.
        writes = [w for w in self.writes.values() if w.name in self.written]
        writes += [write for write, _ in self.scratch.values()]
        fixed = fixed and not e.extents
        program = shown(e.finish(group_name(group), self.inputs, writes, self.lanes if fixed else None, told))
        buffers, numbers = bound(program, group.inputs)
        scratch = tuple((name, write.dtype, size) for name, (write, size) in self.scratch.items())
        lanes, extents = None if fixed else self.lanes, tuple(e.extents.items())
        return Kernel(program, launch, lanes, self.names, buffers, numbers, scratch, extents)


def group_name(group: Any) -> str:
    """The ops of a group, as far as a name goes."""
    return "_".join(dict.fromkeys(n.op.name for n in group.nodes))[:100]


def rows_kernel(group: Any) -> Kernel:
    """One lane for each row."""
    phases = Phases(group.nodes, group.outs, group.runs)
    whole = phases.runs[-1][1] or any(n.op.name == PICK for n in phases.row)  # a place in all of a row is picked
    w = Writer(group, phases, phases.lanes, phases.runs if whole else within(phases))
    e, hosts = w.e, phases.hosts()
    w.begin(e.lane)
    inner = [n for n, keep in w.runs if not keep]
    for loop in range(phases.loops):
        for node in phases.row:
            if phases.level[node] == loop and node not in w.values.rows:
                w.finished(node)
        _loop(w, loop, inner, hosts)
        w.note_kept(loop, hosts)
    w.finish_rows()
    block = core_block(group.target, columns(phases.runs))
    # Where rows come first in all shapes, nothing depends on their number.
    return w.kernel(LaunchConfig.linear(phases.lanes, block), fixed=not phases.runs[0][1])


def _loop(w: Writer, loop: int, inner: Sequence[int], hosts: dict[Node, tuple[Node, int]]) -> None:
    """One loop over the elements of a row."""
    e, phases = w.e, w.phases
    mine = [n for n in phases.reductions if phases.level[n] == loop + 1]
    totals = {n: e.variable(e.constant(neutral(n), working(n))) for n in mine}

    def body(places: Sequence[Scalar], totals: dict[Node, Scalar]) -> None:
        point = w.point(w.kept, places)
        for node, term in w.terms(point, loop).items():
            e.accumulate(totals[node], operation(node), term)
        w.write_full([point], loop, hosts)

    nest(e, inner, totals, body, blocked=floats_summed(mine), told=not phases.runs[0][1])
    for node, total in totals.items():
        w.values.rows[node] = e.convert(total, node.dtype)


def nest(
    e: Emitter,
    extents: Sequence[int],
    totals: dict[Node, Scalar],
    body: Callable[[Sequence[Scalar], dict[Node, Scalar]], None],
    *,
    blocked: bool,
    told: bool,
) -> None:
    """Loops around a body that accumulates; the innermost in blocks, whose results are combined.

    The first extent may be one that the program is told: it may be that of a batch.
    """
    with ExitStack() as stack:
        ways = [e.extent if told and k == 0 else e.number for k in range(len(extents))]
        outer = [stack.enter_context(e.counted(way(n))) for way, n in zip(ways, extents[:-1], strict=False)]
        last, way = extents[-1], ways[-1]
        if not blocked or (last <= 2 * BLOCK and way == e.number):
            with e.counted(way(last)) as j:
                body([*outer, j], totals)
            return
        whole, rest = divmod(last, BLOCK)
        with e.counted(way(whole)) as q:
            parts = {n: e.variable(e.constant(neutral(n), total.dtype)) for n, total in totals.items()}
            with e.counted(BLOCK) as j:
                body([*outer, q * BLOCK + j], parts)
            for node, part in parts.items():
                e.accumulate(totals[node], operation(node), part)
        if rest or way == e.extent:
            with e.counted(way(rest)) as j:
                body([*outer, j + way(whole * BLOCK)], totals)
