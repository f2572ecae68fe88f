"""What the forward sweep must remember for the reverse sweep, and where the reverse sweep finds each value it needs.

Comes in: a function in its plain shape and what is active in it. Goes out, for each block, the values that its record
on the tape holds. The reverse of a block needs some values: operands of products, pointers and indices, which way was
taken to get there. It has them

- for nothing: constants; in the main function whatever was computed outside of loops, or is needed outside of loops (it
  is still in a register or on the stack, for both sweeps are one function); integers that a loop counts up or down,
  which are counted back; values that blocks that are reversed before it have taken from their records;
- by computing them again, where that is cheap, from others that it has;
- from the record of the block, which is written when the block ends.

What is recorded is a smallest cut between what cannot be computed again and what is needed. Values that a loop's blocks
need and that do not change in the loop are recorded once, where the loop is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

from eshkol.calculus.activity import Activity
from eshkol.calculus.cfg import Flow, Loop
from eshkol.calculus.factors import factors, variables
from eshkol.calculus.ir import F64, I64, Block, Branch, Instruction, Jump, Return, Type, TypedValue

# Computed again rather than recorded: everything that costs little and cannot have changed.
CHEAP_MATH = frozenset((
    "+", "-", "*", "square", "abs", "magnitude", "sign", "max", "min", "1+", "-1+", "inexact", "exact->inexact",
    "floor", "ceiling", "round", "truncate",
))  # fmt: skip
CHEAP = frozenset((
    "constant", "compare", "icompare", "not", "iadd", "isub", "imul", "itof", "vector_length", "vector_get",
    "pairs_car", "pairs_cdr", "cell_value", "cell_next", "array_length", "is_null",
))  # fmt: skip

LARGEST_CUT = 4000  # vertices of a graph that a smallest cut is looked for in


class Counter:
    """An integer that a loop counts up or down: a parameter of its header, which goes back by `step`."""

    def __init__(self, param: TypedValue, start: TypedValue, step: TypedValue, back: str) -> None:
        self.param, self.start, self.step, self.back = param, start, step, back


class TapePlan:
    """The records of a function."""

    def __init__(self, flow: Flow, activity: Activity, is_main: bool, written: set[Type]) -> None:
        self.flow, self.activity, self.is_main = flow, activity, is_main
        self.written = written  # kinds of arrays that are changed: what they held cannot be read again
        self.live = self._live()
        self.counters: dict[Loop, list[Counter]] = {loop: self._counters(loop) for loop in flow.loops}
        self.counted = {c.param: loop for loop, found in self.counters.items() for c in found}
        self.test: dict[Loop, Counter] = {}
        for loop in flow.loops:
            steady = (counter for counter in self.counters[loop] if self._is_never_zero(counter.step))
            self.test[loop] = next(steady, None) or self._count(loop)
        self.which: dict[Block, TypedValue] = {}  # which way a block was come to, where several jump to it
        self.ways: dict[Block, list[Block]] = {}  # in the order of the numbers of `which`
        self.direct = {block: self._direct(block) for block in flow.order if block in self.live}
        self.held: dict[Loop, dict[TypedValue, None]] = {
            loop: {} for loop in flow.loops
        }  # known in all of a loop's reverse
        self.saved: dict[Block, list[TypedValue]] = {}
        self.known: dict[Block, frozenset[TypedValue]] = {}  # taken from records before a block is reversed
        self._first_pass()
        self._second_pass()

    # ---- the graph ----------------------------------------------------------------------------------------------

    def _live(self) -> set[Block]:
        """The blocks from which the function may return."""
        found: set[Block] = set()
        pending = [b for b in self.flow.order if isinstance(b.end, Return)]
        while pending:
            block = pending.pop()
            if block not in found:
                found.add(block)
                pending.extend(before for before, _ in self.flow.into[block])
        return found

    def _is_literal(self, value: TypedValue) -> bool:
        item = self.flow.maker.get(value)
        return item is not None and item.operation == "constant"

    def _is_never_zero(self, value: TypedValue) -> bool:
        item = self.flow.maker.get(value)
        return item is not None and bool(item.literal)

    def _counters(self, loop: Loop) -> list[Counter]:
        found = []
        assert loop.before is not None
        assert loop.latch is not None
        start, again = loop.before.end, loop.latch.end
        assert isinstance(start, Jump)
        assert isinstance(again, Jump)
        for k, param in enumerate(loop.header.params):
            item = self.flow.maker.get(again.args[k])
            if param.type != I64 or item is None or item.operation not in ("iadd", "isub"):
                continue
            one, other = item.operands
            if item.operation == "iadd" and other is param:
                one, other = other, one
            if one is param and (self._is_literal(other) or self.flow.block_of[other] not in loop.blocks):
                found.append(Counter(param, start.args[k], other, "sub" if item.operation == "iadd" else "add"))
        return found

    def _count(self, loop: Loop) -> Counter:
        """A counter for a loop that has none."""
        flow = self.flow
        param, zero, one, more = TypedValue(I64, "count"), TypedValue(I64), TypedValue(I64), TypedValue(I64)
        assert loop.before is not None
        assert loop.latch is not None
        first = flow.order[0]
        constants = [Instruction("constant", [], [zero], literal=0), Instruction("constant", [], [one], literal=1)]
        first.body[:0] = constants
        add = Instruction("iadd", [param, one], [more])
        loop.latch.body.append(add)
        loop.header.params.append(param)
        for block, value in ((loop.before, zero), (loop.latch, more)):
            assert isinstance(block.end, Jump)
            block.end.args.append(value)
        for item, block in ((constants[0], first), (constants[1], first), (add, loop.latch)):
            flow.maker[item.result], flow.block_of[item.result] = item, block
        flow.block_of[param] = loop.header
        counter = Counter(param, zero, one, "sub")
        self.counters[loop].append(counter)
        self.counted[param] = loop
        return counter

    # ---- what a block's reverse looks at --------------------------------------------------------------------------

    def _direct(self, block: Block) -> list[TypedValue]:
        found: dict[TypedValue, None] = {}
        for item in block.body:
            if self.activity.is_active(item):
                found.update(dict.fromkeys(self._looks_at(item)))
        header = next((loop for loop in self.flow.loops if loop.header is block), None)
        if header is None and len(self.flow.into[block]) > 1:
            found[self._way(block)] = None
        return list(found)

    def _looks_at(self, item: Instruction) -> Iterable[TypedValue]:
        match item.operation:
            case "math":
                rule = factors(item.name, len(item.operands))
                assert rule is not None
                names = {"r": item.result} | dict(zip("xy", item.operands, strict=False))
                for operand, factor in zip(item.operands, rule, strict=True):
                    if operand in self.activity.values:
                        yield from (names[name] for name in sorted(variables(factor)))
            case "array_get" | "array_set":
                yield from item.operands[:2]
            case "cell_value":
                yield item.operands[0]
            case "array_new" | "cell_new":
                yield item.result

    def _way(self, block: Block) -> TypedValue:
        """The value that tells which predecessor came: a branch's condition where there is one, else a number."""
        flow = self.flow
        ways = [before for before, _ in flow.into[block]]
        above = flow.dominator[block]
        if len(ways) == 2 and above is not None and isinstance(above.end, Branch) and self._same_turn(above, block):
            yes, no = above.end.yes.target, above.end.no.target
            for one, other in (ways, ways[::-1]):
                if flow.dominates(yes, one) and flow.dominates(no, other):
                    self.which[block], self.ways[block] = above.end.condition, [other, one]
                    return above.end.condition
        self.which[block], self.ways[block] = TypedValue(I64, "way"), ways
        flow.block_of[self.which[block]] = block
        return self.which[block]

    def _same_turn(self, above: Block, block: Block) -> bool:
        return self.flow.loop_of[above] is self.flow.loop_of[block]

    # ---- where values come from -------------------------------------------------------------------------------------

    def _free(self, value: TypedValue, block: Block, hold: Callable[[Loop, TypedValue], bool]) -> bool:
        flow = self.flow
        around = flow.loops_around(block)
        if self.is_main and (not around or flow.block_of[value] not in around[-1].blocks):
            return True
        if self.counted.get(value) in around:
            return hold(self.counted[value], value)
        home = flow.block_of[value]
        outside = [loop for loop in around if home not in loop.blocks]
        return bool(outside) and hold(outside[-1], value)

    def _lies_there(
        self, known: frozenset[TypedValue], block: Block, hold: Callable[[Loop, TypedValue], bool], value: TypedValue
    ) -> bool:
        return value in known or self._free(value, block, hold)

    def is_cheap(self, value: TypedValue) -> bool:
        """Whether a value may be computed again from its operands."""
        item = self.flow.maker.get(value)
        if item is None:
            return False
        match item.operation:
            case "math":
                return item.name in CHEAP_MATH
            case "array_get":
                return item.operands[0].type not in self.written
        return item.operation in CHEAP

    def _cut(
        self, needs: Iterable[TypedValue], free: Callable[[TypedValue], bool]
    ) -> tuple[list[TypedValue], list[TypedValue]]:
        """The fewest values from which all that is needed can be computed; and the free ones that this takes."""
        sources: list[TypedValue] = []
        users: dict[TypedValue, list[TypedValue]] = {}
        touched: dict[TypedValue, None] = {}
        wanted = list(dict.fromkeys(needs))
        seen: set[TypedValue] = set()
        pending = list(wanted)
        inner: set[TypedValue] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            item = self.flow.maker.get(value)
            if item is not None and item.operation == "constant":
                continue
            if free(value):
                touched[value] = None
                continue
            inner.add(value)
            users.setdefault(value, [])
            if not self.is_cheap(value):
                sources.append(value)
                continue
            assert item is not None
            for operand in item.operands:
                users.setdefault(operand, []).append(value)
                pending.append(operand)
        saved = self._smallest(sources, users, [v for v in wanted if v in inner], inner)
        # what is looked at when everything is computed from the cut
        used: dict[TypedValue, None] = {}
        seen, pending = set(saved), [v for v in wanted if v not in saved]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in touched:
                used[value] = None
            else:
                pending.extend(self.flow.maker[value].operands)
        return saved, list(used)

    def _smallest(
        self,
        sources: list[TypedValue],
        users: dict[TypedValue, list[TypedValue]],
        wanted: list[TypedValue],
        inner: set[TypedValue],
    ) -> list[TypedValue]:
        both = set(sources).intersection(wanted)  # nothing can stand for these
        rest = {v: [u for u in found if u in inner] for v, found in users.items() if v in inner and v not in both}
        sources, wanted = [v for v in sources if v not in both], [v for v in wanted if v not in both]
        if len(rest) > LARGEST_CUT:
            return [v for v in users if v in both] + min(sources, wanted, key=len)
        return [v for v in users if v in both] + _smallest_cut(sources, rest, set(wanted))

    def _first_pass(self) -> None:
        """What each loop's reverse needs to know all the time: `held`."""
        flow = self.flow
        waiting = {block: dict.fromkeys(needs) for block, needs in self.direct.items()}
        asked: list[tuple[Loop, TypedValue]] = []

        def hold(loop: Loop, value: TypedValue) -> bool:
            asked.append((loop, value))
            return True

        def visit(block: Block) -> None:
            asked.clear()
            _, used = self._cut(waiting[block], lambda v: self._free(v, block, hold))
            for loop, value in list(asked):
                if value in used:
                    self.held[loop][value] = None

        for loop in flow.loops:
            for block in flow.order:
                if flow.loop_of[block] is loop and block in self.live:
                    visit(block)
            self.held[loop][self.test[loop].param] = None
            for counter in self.counters[loop]:
                if counter.param in self.held[loop]:
                    for value in (counter.step, *([counter.start] if counter is self.test[loop] else [])):
                        if not self._is_literal(value):
                            self.held[loop][value] = None
            if self.is_main and loop.parent is None:
                continue
            for out in loop.exits:
                if out in self.live:
                    waiting[out].update(self.held[loop])
        self.needs = {block: list(found) for block, found in waiting.items()}

    def _second_pass(self) -> None:
        flow = self.flow

        def hold(loop: Loop, value: TypedValue) -> bool:
            return value in self.held[loop]

        after: dict[Block, frozenset[TypedValue]] = {}
        for block in reversed(flow.order):
            if block not in self.live:
                continue
            known: frozenset[TypedValue] | None = None
            for jump in block.jumps():
                target = jump.target
                if target not in self.live:
                    continue
                back = flow.position[target] <= flow.position[block]
                arriving = (
                    frozenset[TypedValue]()
                    if back
                    else frozenset(v for v in after[target] if flow.block_of[v] is not target)
                )
                known = arriving if known is None else known & arriving
            self.known[block] = known = known or frozenset()
            saved, _ = self._cut(self.needs[block], partial(self._lies_there, known, block, hold))
            self.saved[block] = saved
            after[block] = known | frozenset(saved)

    def has_slot(self, value: TypedValue, block: Block) -> bool:
        """Whether, while a block is reversed, a value lies in its slot."""
        held = self.known[block].union(self.saved[block])
        return self._lies_there(held, block, lambda loop, v: v in self.held[loop], value)


def _smallest_cut(
    sources: list[TypedValue], users: dict[TypedValue, list[TypedValue]], wanted: set[TypedValue]
) -> list[TypedValue]:
    """The fewest vertices on all paths from sources to what is wanted, as near to the latter as can be.

    Flows of one unit: a vertex is taken by at most one. `flows` has where the flow through a vertex comes from.
    """
    operands: dict[TypedValue, list[TypedValue]] = {v: [] for v in users}
    for value, found in users.items():
        for user in found:
            operands[user].append(value)
    flow_from: dict[TypedValue, TypedValue | None] = {}  # vertices with flow: the vertex before
    flow_to: dict[TypedValue, TypedValue] = {}  # the vertex after, if any: a flow ends at what is wanted

    def augment() -> bool:
        # states: (vertex, side): 0 before its unit of capacity, 1 after it
        start = [(s, 0) for s in sources]
        parent: dict[tuple[TypedValue, int], tuple[TypedValue, int] | None] = dict.fromkeys(start)
        queue = deque(start)
        end: tuple[TypedValue, int] | None = None
        while queue:
            state = queue.popleft()
            vertex, side = state
            following: list[tuple[TypedValue, int]] = []
            if side == 0:
                if vertex not in flow_from:
                    following.append((vertex, 1))
                else:
                    before = flow_from[vertex]
                    if before is not None:
                        following.append((before, 1))
            else:
                if vertex in wanted:
                    end = state
                    break
                following.extend((u, 0) for u in users[vertex])
                if vertex in flow_from:
                    following.append((vertex, 0))
            for each in following:
                if each not in parent:
                    parent[each] = state
                    queue.append(each)
        if end is None:
            return False
        path: list[tuple[TypedValue, int]] = []
        at: tuple[TypedValue, int] | None = end
        while at is not None:
            path.append(at)
            at = parent[at]
        path.reverse()
        _apply(path, flow_from, flow_to)
        return True

    while augment():
        pass
    # the states from which what is wanted can still be reached: walk the residual graph backwards
    reaching: set[tuple[TypedValue, int]] = set()
    pending: list[tuple[TypedValue, int]] = [(v, 1) for v in wanted]
    while pending:
        state = pending.pop()
        if state in reaching:
            continue
        reaching.add(state)
        vertex, side = state
        if side == 1:
            if vertex not in flow_from:
                pending.append((vertex, 0))
            following = flow_to.get(vertex)
            if following is not None:
                pending.append((following, 0))
        else:
            pending.extend((o, 1) for o in operands[vertex])
            if vertex in flow_from:
                pending.append((vertex, 1))
    return [v for v in users if (v, 1) in reaching and (v, 0) not in reaching]


def _apply(
    path: list[tuple[TypedValue, int]],
    flow_from: dict[TypedValue, TypedValue | None],
    flow_to: dict[TypedValue, TypedValue],
) -> None:
    """Send a unit along a path of the residual graph."""
    added: list[tuple[TypedValue, TypedValue]] = []
    for (one, side), (other, _) in pairwise(path):
        if one is other:
            continue
        if side == 1:
            added.append((one, other))
        else:  # back along an edge that has flow
            del flow_to[other], flow_from[one]
    flow_from[path[0][0]] = None
    for one, other in added:
        flow_to[one], flow_from[other] = other, one


__all__ = ["CHEAP", "F64", "Counter", "TapePlan"]
