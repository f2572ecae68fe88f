"""What LLVM is told about loops: which have rounds that touch nothing of each other, and how to interleave them.

Lanes of a launch do not touch what others write (without a barrier that would be a race), so the loop over lanes may be
run in any order by what Atlas says. Still lanes keep their order where one buffer is stored to at places that other
lanes touch, as far as can be seen: LLVM finds out what it can do then.

The rounds of a LOOP run one after another. They are independent where each store goes to a place of its own that moves
with the counter, and whatever else touches that buffer in the loop does so at the same place of the same round, or
beyond what all rounds reach: in another row. Other buffers may be the same memory: an output is often put where an
input was. So for each pair of which one is stored to, the kernel looks before it runs whether they are apart, or begin
at the same address where both are touched at the same places; lanes run without these promises if they do not hold.

LLVM needs no list of what may overlap then: accesses of a parallel loop are in its access group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from eshkol.atlas.isa import Control, Instruction, Values
from eshkol.atlas.operands import Register
from eshkol.atlas.program import ParamKind, Program
from eshkol.atlas.validate import Analysis
from eshkol.backends.cpu.kernels.rare import Rare
from eshkol.backends.lanes.module import UNROLLED_NEVER, VECTORIZED_NEVER
from eshkol.backends.lanes.ranges import LANE_ATOM, Access, Ranges

FIRST_NODE = 100  # of the metadata written here
MANY_ROUNDS = 16
LANES = -1  # the loop over lanes, among loops by their LOOP
SHORT = 32  # rounds of a LOOP of which LLVM would make as many copies
PAIR = 2  # rounds of a LOOP whose counter becomes a truth value in LLVM, in which its vectorizer finds no counter
VECTORS = '!{!"llvm.loop.vectorize.enable", i1 true}'


@dataclass
class Loops:
    """The parallel loops of a program, and what must hold for them to be."""

    parallel: set[int] = field(default_factory=set)
    innermost: set[int] = field(default_factory=set)
    # Those of few rounds that store places one after another, and whether they may be vectors: LLVM tells the user of
    # each that it was told to make and cannot.
    short_rows: dict[int, bool] = field(default_factory=dict)
    copies: set[int] = field(default_factory=set)  # parallel ones that put many elements after each other
    apart: dict[tuple[str, str], bool] = field(default_factory=dict)  # buffers → whether the very same place is fine


def parallel_loops(analysis: Analysis, ranges: Ranges, rare: Mapping[int, Rare] | None = None) -> Loops:
    """The innermost loops whose rounds are independent; stretches in `rare` are calls of functions."""
    found, program, flow = Loops(), analysis.flow.program, analysis.flow
    called = {k for branch, one in (rare or {}).items() for k in (branch, *one.skipped)}
    for start, end in flow.loop_end.items():
        body = [k for k in range(start + 1, end) if k not in called]
        branches = any(program.instructions[k].op.control is not Control.NEXT for k in body)
        if branches or not analysis.reachable(start):
            continue
        found.innermost.add(start)
        if _stores_short_row(start, end, ranges):
            found.short_rows[start] = ranges.rounds[ranges.counters[start]] > PAIR and not _carries(program, start, end)
        if not all(_is_plain(program, k, ranges) for k in body):
            continue
        pairs = _pairs(start, [a for a in ranges.accesses if start < a.index < end], ranges)
        if pairs is None:
            continue
        found.parallel.add(start)
        if _copies(start, [program.instructions[k] for k in body], ranges):
            found.copies.add(start)
        for pair, same in pairs.items():
            found.apart[pair] = found.apart.get(pair, True) and same
    if _lanes_are_apart(ranges):
        found.parallel.add(LANES)
    return found


def _stores_short_row(start: int, end: int, ranges: Ranges) -> bool:
    """Whether the rounds of a LOOP are few and store to places one after another."""
    counter = ranges.counters[start]
    inside = (a for a in ranges.accesses if a.stores and start < a.index < end)
    return ranges.rounds.get(counter, inf) <= SHORT and any(abs(a.place.factor(counter)) == a.size for a in inside)


def _carries(program: Program, start: int, end: int) -> bool:
    """Whether rounds hand a register on, to the next round or to what follows the LOOP."""
    written: set[Register] = set()
    early: set[Register] = set()  # read before this round has written to them
    for instruction in program.instructions[start + 1 : end]:
        early.update(r for r in instruction.reads() if r not in written)
        written.update(instruction.writes())
    behind = {r for instruction in program.instructions[end + 1 :] for r in instruction.reads()}
    return bool(written & (early | behind))


def _copies(loop: int, body: list[Instruction], ranges: Ranges) -> bool:
    """Whether rounds store side by side what they load, and there are enough of them for vectors.

    LLVM would write out all rounds of such a loop where it knows how many, before it makes vectors, and then copy
    single elements of several lanes in turn: slow code, and slow to compile.
    """
    computed = {getattr(i, "dst", None) for i in body if isinstance(i.op.meaning, Values)}
    loaded = {i.dst for i in body if i.op.name == "LDG"} - computed
    if any(i.op.name == "STG" and i.src not in loaded for i in body):
        return False
    counter = ranges.counters[loop]
    stores = [a for a in ranges.accesses if a.stores and a.loops and a.loops[-1] == loop]
    rounds = ranges.rounds.get(counter, 0)
    return rounds >= MANY_ROUNDS and bool(stores) and all(a.place.factor(counter) == a.size for a in stores)


def _lanes_are_apart(ranges: Ranges) -> bool:
    """Whether lanes touch different places of every buffer that is stored to."""
    for handle in {a.handle for a in ranges.accesses if a.stores}:
        places = [_by_lane(a, ranges) for a in ranges.accesses if a.handle == handle]
        steps, starts, ends = zip(*places, strict=True)
        if len(set(steps)) != 1 or max(ends) - min(starts) > steps[0]:
            return False
    return True


def _by_lane(access: Access, ranges: Ranges) -> tuple[int, float, float]:
    """The step from lane to lane of an access, and where it starts and ends in lane 0 at the earliest and latest."""
    step, first, last = 0, float(access.place.constant), float(access.place.constant + access.size)
    for atom, factor in access.place.terms:
        if atom == LANE_ATOM:
            step = factor
        else:
            way = factor * (ranges.rounds.get(atom, inf) - 1)
            first, last = first + min(way, 0), last + max(way, 0)
    return step, first, last


def _is_plain(program: Program, index: int, ranges: Ranges) -> bool:
    """Whether an instruction only computes, loads a scalar parameter, or touches a buffer surely in range."""
    i = program.instructions[index]
    if isinstance(i.op.meaning, Values) or index in ranges.trusted:
        return True
    param = program.param.get(getattr(i.src, "handle", "")) if i.op.name == "LDG" else None
    return param is not None and param.kind is ParamKind.SCALAR


def _pairs(loop: int, accesses: list[Access], ranges: Ranges) -> dict[tuple[str, str], bool] | None:
    """Buffers that must be apart for the rounds to be independent, with whether the very same place is fine too."""
    counter = ranges.counters[loop]
    needed: dict[tuple[str, str], bool] = {}
    for store in (a for a in accesses if a.stores):
        step = abs(store.place.factor(counter))
        if step < store.size or any(loop in ranges.varies[a] for a, _ in store.place.terms if a != counter):
            return None
        for other in accesses:
            distance = other.place.plus(store.place, -1)
            reach = distance.constant + other.size if distance.constant >= 0 else store.size - distance.constant
            same = not distance.terms and reach <= step
            if other.handle == store.handle:
                beyond = not distance.terms and abs(distance.constant) >= step * ranges.rounds.get(counter, inf)
                if not same and not beyond:
                    return None
            else:
                pair = min(store.handle, other.handle), max(store.handle, other.handle)
                needed[pair] = needed.get(pair, True) and same
    return needed


class LoopMetadata:
    """What is written after loads, stores and branches for LLVM, and the nodes it refers to."""

    def __init__(self, loops: Loops, ranges: Ranges, interleave: int) -> None:
        self.nodes: list[str] = []
        self.accesses: dict[int, str] = {}  # by instruction
        self.loops: dict[int, str] = {}  # by LOOP: what its branch back carries
        groups = {loop: self._node("distinct !{}") for loop in sorted(loops.parallel)}
        for access in ranges.accesses:
            around = [loop for loop in (*access.loops, LANES) if loop in groups]
            if around:
                names = [groups[loop] for loop in around]
                group = names[0] if len(names) == 1 else self._node(f"!{{{', '.join(names)}}}")
                self.accesses[access.index] = f", !llvm.access.group {group}"
        for loop in (*sorted(loops.innermost), LANES):
            parts = [self._node(f'!{{!"llvm.loop.parallel_accesses", {groups[loop]}}}')] if loop in groups else []
            if loop in loops.short_rows:  # copies of its rounds would take LLVM seconds, as vectors of lanes
                parts += [UNROLLED_NEVER, *([self._node(VECTORS)] if loops.short_rows[loop] else [])]
            elif loop == LANES and loops.short_rows:  # lanes that each store a row lie apart: they are no vector
                parts += [UNROLLED_NEVER, VECTORIZED_NEVER]
            else:
                parts += [UNROLLED_NEVER] if loop in loops.copies else []
                parts += [self._node(f'!{{!"llvm.loop.interleave.count", i32 {interleave}}}')] if interleave else []
            self.loops[loop] = f", !llvm.loop {self._loop(parts)}"

    def _node(self, text: str) -> str:
        name = f"!{FIRST_NODE + len(self.nodes)}"
        self.nodes.append(f"{name} = {text}")
        return name

    def _loop(self, parts: list[str]) -> str:
        name = f"!{FIRST_NODE + len(self.nodes)}"
        return self._node(f"distinct !{{{', '.join([name, *parts])}}}")

    @property
    def text(self) -> str:
        return "\n".join(self.nodes)
