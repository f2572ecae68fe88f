"""The graph of a function's blocks: dominators and loops, and the rewriting that brings functions into a plain shape.

Comes in: a `TypedProgram`. Goes out: a copy of it in which calls of small functions are replaced by their bodies
(`prepared`), and, by `shape`, every function has one block that returns, every block with several predecessors is
jumped to (not branched to), and every loop is entered from one block, repeated from one block, and left to blocks of
its own. The reverse sweep of a derivative walks that graph backwards, so it has to be plain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eshkol.calculus.abstract import NotFast
from eshkol.calculus.ir import (
    Block,
    Branch,
    Fail,
    Instruction,
    Jump,
    Return,
    Type,
    TypedFunction,
    TypedProgram,
    TypedValue,
    predecessors,
)

INLINED = 400  # instructions: a function that is called from several places is copied there up to this size
LARGEST = 4000  # instructions: of a function that others are copied into, and of a whole program
# What may be left out when nothing uses its result: it cannot fail.
SAFE = frozenset({"constant", "compare", "icompare", "not", "itof", "vector_length", "array_length", "is_null"})


# ---- copies ----------------------------------------------------------------------------------------------------------


def copied(program: TypedProgram) -> TypedProgram:
    """The same program, made of new parts."""
    functions = {f: TypedFunction(f.name, [], list(f.results)) for f in program.functions}
    for old, new in functions.items():
        new.blocks = copied_blocks(old, functions)[0]
    return TypedProgram(list(functions.values()), list(program.active))


def copied_blocks(
    function: TypedFunction, functions: dict[TypedFunction, TypedFunction]
) -> tuple[list[Block], dict[TypedValue, TypedValue]]:
    """New blocks like those of a function, whose calls go to other functions; and which value became which."""
    values: dict[TypedValue, TypedValue] = {}

    def made(value: TypedValue) -> TypedValue:
        values[value] = TypedValue(value.type, value.name)
        return values[value]

    blocks = {block: Block(block.name, [made(p) for p in block.params]) for block in function.blocks}
    for block in function.blocks:
        for item in block.body:
            for result in item.results:
                made(result)

    def jump(to: Jump) -> Jump:
        return Jump(blocks[to.target], [values[v] for v in to.args])

    for old, new in blocks.items():
        for item in old.body:
            target = functions.get(item.function, item.function) if item.function is not None else None
            operands, results = [values[v] for v in item.operands], [values[v] for v in item.results]
            new.body.append(Instruction(item.operation, operands, results, item.name, item.literal, target))
        match old.end:
            case Jump() as to:
                new.end = jump(to)
            case Branch(condition=condition, yes=yes, no=no):
                new.end = Branch(values[condition], jump(yes), jump(no))
            case Return(values=found):
                new.end = Return([values[v] for v in found])
            case Fail():
                new.end = Fail()
    return list(blocks.values()), values


def replace(function: TypedFunction, meanings: dict[TypedValue, TypedValue]) -> None:
    """Put values in the place of others, everywhere."""
    if not meanings:
        return

    def now(value: TypedValue) -> TypedValue:
        while value in meanings:
            value = meanings[value]
        return value

    for block in function.blocks:
        for item in block.body:
            item.operands = [now(v) for v in item.operands]
        for jump in block.jumps():
            jump.args = [now(v) for v in jump.args]
        match block.end:
            case Branch() as branch:
                branch.condition = now(branch.condition)
            case Return() as leave:
                leave.values = [now(v) for v in leave.values]


# ---- inlining --------------------------------------------------------------------------------------------------------


def _size(function: TypedFunction) -> int:
    return sum(len(block.body) + 1 for block in function.blocks)


def _recursive(program: TypedProgram) -> set[TypedFunction]:
    """The functions that call themselves, through whatever."""
    callees = {f: {i.function for i in f.instructions() if i.function is not None} for f in program.functions}
    reach = {f: set(direct) for f, direct in callees.items()}
    changed = True
    while changed:
        changed = False
        for found in reach.values():
            more = set[TypedFunction]().union(*(reach[g] for g in found))
            if not more <= found:
                found |= more
                changed = True
    return {f for f, found in reach.items() if f in found}


def inline(program: TypedProgram) -> None:
    """Replace calls of functions that are not recursive by what they do; drop functions that nothing calls any more."""
    recursive = _recursive(program)
    done: set[TypedFunction] = set()

    def visit(function: TypedFunction) -> None:
        if function in done:
            return
        done.add(function)
        for item in list(function.instructions()):
            if item.function is not None:
                visit(item.function)
        counts: dict[TypedFunction, int] = {}
        for other in program.functions:
            for item in other.instructions():
                if item.function is not None:
                    counts[item.function] = counts.get(item.function, 0) + 1
        index = 0
        while index < len(function.blocks):
            block = function.blocks[index]
            for place, item in enumerate(block.body):
                callee = item.function
                if callee is None or callee in recursive or _size(function) > LARGEST:
                    continue
                if counts[callee] == 1 or _size(callee) <= INLINED:
                    _inline_at(function, index, place)
                    break
            index += 1

    for function in list(program.functions):
        visit(function)
    used, pending = {program.main}, [program.main]
    while pending:
        for item in pending.pop().instructions():
            if item.function is not None and item.function not in used:
                used.add(item.function)
                pending.append(item.function)
    program.functions = [f for f in program.functions if f in used]


def _inline_at(function: TypedFunction, index: int, place: int) -> None:
    block = function.blocks[index]
    item = block.body[place]
    assert item.function is not None
    inner, _ = copied_blocks(item.function, {})
    rest = Block(f"{block.name}.after", item.results, block.body[place + 1 :], block.end)
    for each in inner:
        if isinstance(each.end, Return):
            each.end = Jump(rest, each.end.values)
    block.body = block.body[:place]
    first = inner[0]
    replaced = dict(zip(first.params, item.operands, strict=True))
    first.params = []
    block.end = Jump(first, [])
    carrier = TypedFunction("", inner)
    replace(carrier, replaced)
    function.blocks[index + 1 : index + 1] = [*inner, rest]


# ---- simplifying -----------------------------------------------------------------------------------------------------


def simplify(function: TypedFunction) -> None:
    """Drop what is not reached or not used, parameters that are always the same value, and jumps to the next thing."""
    _drop_unreached(function)
    while _drop_same_params(function) | _merge(function):
        pass
    _drop_unused(function)


def _drop_unreached(function: TypedFunction) -> None:
    reached, pending = {function.blocks[0]}, [function.blocks[0]]
    while pending:
        for jump in pending.pop().jumps():
            if jump.target not in reached:
                reached.add(jump.target)
                pending.append(jump.target)
    function.blocks = [block for block in function.blocks if block in reached]


def _drop_same_params(function: TypedFunction) -> bool:
    into = predecessors(function)
    meanings: dict[TypedValue, TypedValue] = {}
    for block in function.blocks[1:]:
        for index in range(len(block.params) - 1, -1, -1):
            param = block.params[index]
            given = {jump.args[index] for _, jump in into[block]} - {param}
            if len(given) != 1 or next(iter(given)).type != param.type:
                continue
            (meanings[param],) = given
            del block.params[index]
            for _, jump in into[block]:
                del jump.args[index]
    replace(function, meanings)
    return bool(meanings)


def _merge(function: TypedFunction) -> bool:
    into = predecessors(function)
    changed = False
    gone: set[Block] = set()
    meanings: dict[TypedValue, TypedValue] = {}
    for block in function.blocks:
        if block in gone:
            continue
        while isinstance(block.end, Jump):
            target = block.end.target
            if len(into[target]) != 1:
                break
            meanings.update(zip(target.params, block.end.args, strict=True))
            block.body = block.body + target.body
            block.end = target.end
            gone.add(target)
            changed = True
    if changed:
        function.blocks = [block for block in function.blocks if block not in gone]
        replace(function, meanings)
    return changed


# What gives the same for the same operands, always. Lists and constant data are never changed, arrays may be.
PURE = SAFE | frozenset(
    {
        *("math", "iadd", "isub", "imul", "quotient", "remainder", "modulo", "ftoi"),
        *("vector_get", "pairs_car", "pairs_cdr", "cell_value", "cell_next"),
    }
)


def share(function: TypedFunction, written: set[Type]) -> None:
    """Compute once what is computed several times, where the first time surely comes before the others."""
    flow = Flow(function)
    tables: dict[Block, dict[tuple[object, ...], TypedValue]] = {}
    meanings: dict[TypedValue, TypedValue] = {}
    for block in flow.order:
        above = flow.dominator[block]
        table = tables[block] = {} if above is None else dict(tables[above])
        kept = []
        for item in block.body:
            item.operands = [meanings.get(v, v) for v in item.operands]
            if item.operation in PURE or (item.operation == "array_get" and item.operands[0].type not in written):
                literal = repr(item.literal)  # 0.0 is not -0.0
                key = (item.operation, item.name, literal, item.results[0].type, *map(id, item.operands))
                before = table.setdefault(key, item.result)
                if before is not item.result:
                    meanings[item.result] = before
                    continue
            kept.append(item)
        block.body = kept
    replace(function, meanings)


def _drop_unused(function: TypedFunction) -> None:
    """Results that nothing needs, of operations that cannot fail; parameters that feed only themselves, too."""
    needed: set[TypedValue] = set()
    pending: list[TypedValue] = []
    makers: dict[TypedValue, Instruction] = {r: i for i in function.instructions() for r in i.results}
    into = predecessors(function)
    place = {p: (block, k) for block in function.blocks for k, p in enumerate(block.params)}

    def need(values: list[TypedValue]) -> None:
        for value in values:
            if value not in needed:
                needed.add(value)
                pending.append(value)

    def is_safe(item: Instruction) -> bool:
        return item.operation in SAFE or (
            item.operation == "math" and item.name in ("+", "-", "*", "/", "square", "abs")
        )

    for block in function.blocks:
        for item in block.body:
            if not is_safe(item):
                need(item.operands)
        match block.end:
            case Branch(condition=condition):
                need([condition])
            case Return(values=values):
                need(values)
    need(function.params)
    while pending:
        value = pending.pop()
        if value in makers:
            need(makers[value].operands)
        else:
            block, k = place[value]
            need([jump.args[k] for _, jump in into[block]])
    for block in function.blocks:
        block.body = [i for i in block.body if not is_safe(i) or i.result in needed]
        keep = [k for k, p in enumerate(block.params) if p in needed]
        for _, jump in into[block]:
            jump.args = [jump.args[k] for k in keep]
        block.params = [block.params[k] for k in keep]


# ---- the plain shape -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Loop:
    header: Block
    blocks: set[Block]
    parent: Loop | None = None
    before: Block | None = None  # where it is entered from
    latch: Block | None = None  # where it is repeated from
    exits: list[Block] = field(default_factory=list)  # outside, each with one predecessor, which is inside

    def around(self) -> list[Loop]:
        """This loop and those that it lies in, from the inside."""
        found: list[Loop] = []
        loop: Loop | None = self
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return found


class Flow:
    """Order, dominators and loops of a function's blocks."""

    def __init__(self, function: TypedFunction) -> None:
        self.function = function
        self.into = predecessors(function)
        self.order = _order(function)  # reverse postorder
        self.position = {block: k for k, block in enumerate(self.order)}
        self.dominator = self._dominators()
        self.loops = self._loops()  # from the inside out
        self.loop_of: dict[Block, Loop | None] = dict.fromkeys(self.order)
        for loop in reversed(self.loops):
            for block in loop.blocks:
                self.loop_of[block] = loop
        self.block_of: dict[TypedValue, Block] = {}
        self.maker: dict[TypedValue, Instruction] = {}
        for block in self.order:
            for param in block.params:
                self.block_of[param] = block
            for item in block.body:
                for result in item.results:
                    self.block_of[result] = block
                    self.maker[result] = item

    def loops_around(self, block: Block) -> list[Loop]:
        loop = self.loop_of[block]
        return [] if loop is None else loop.around()

    def dominates(self, one: Block, other: Block) -> bool:
        found: Block | None = other
        while found is not None and self.position[found] > self.position[one]:
            found = self.dominator[found]
        return found is one

    def _dominators(self) -> dict[Block, Block | None]:
        first = self.order[0]
        found: dict[Block, Block | None] = {first: None}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                best: Block | None = None
                for before, _ in self.into[block]:
                    if before in found:
                        best = before if best is None else self._meet(found, before, best)
                if found.get(block, block) is not best:
                    found[block] = best
                    changed = True
        return found

    def _meet(self, found: dict[Block, Block | None], one: Block, other: Block) -> Block:
        while one is not other:
            if self.position[one] < self.position[other]:
                one, other = other, one
            above = found[one]
            assert above is not None
            one = above
        return one

    def _loops(self) -> list[Loop]:
        loops: list[Loop] = []
        for header in self.order:
            behind = [b for b, _ in self.into[header] if self.position[b] >= self.position[header]]
            if not behind:
                continue
            if not all(self.dominates(header, b) for b in behind):
                raise NotFast(f"{self.function.name}: a loop with several entries")
            blocks, pending = {header}, list(behind)
            while pending:
                block = pending.pop()
                if block not in blocks:
                    blocks.add(block)
                    pending.extend(b for b, _ in self.into[block])
            loops.append(Loop(header, blocks))
        loops.sort(key=lambda loop: len(loop.blocks))
        for k, loop in enumerate(loops):
            loop.parent = next((o for o in loops[k + 1 :] if loop.header in o.blocks), None)
            entries = [b for b, _ in self.into[loop.header] if b not in loop.blocks]
            latches = [b for b, _ in self.into[loop.header] if b in loop.blocks]
            loop.before = entries[0] if len(entries) == 1 else None
            loop.latch = latches[0] if len(latches) == 1 else None
            for block in self.order:
                if block in loop.blocks:
                    loop.exits.extend(j.target for j in block.jumps() if j.target not in loop.blocks)
        return loops


def _order(function: TypedFunction) -> list[Block]:
    seen = {function.blocks[0]}
    found: list[Block] = []
    stack = [(function.blocks[0], iter(function.blocks[0].jumps()))]
    while stack:
        block, rest = stack[-1]
        for jump in rest:
            if jump.target not in seen:
                seen.add(jump.target)
                stack.append((jump.target, iter(jump.target.jumps())))
                break
        else:
            stack.pop()
            found.append(block)
    return found[::-1]


def _between(name: str, target: Block, jumps: list[Jump]) -> Block:
    """A block that these jumps now go to, and that goes on where they went."""
    params = [TypedValue(p.type, p.name) for p in target.params]
    made = Block(name, params, [], Jump(target, list(params)))
    for jump in jumps:
        jump.target = made
    return made


def shape(function: TypedFunction) -> Flow:
    """Bring a function into the plain shape."""
    returns = [block for block in function.blocks if isinstance(block.end, Return)]
    if not returns:
        raise NotFast(f"{function.name} never returns")
    if len(returns) > 1:
        params = [TypedValue(kind) for kind in function.results]
        last = Block("return", params, [], Return(list(params)))
        for block in returns:
            assert isinstance(block.end, Return)
            block.end = Jump(last, block.end.values)
        function.blocks.append(last)
    into = predecessors(function)
    for block in list(function.blocks):
        if isinstance(block.end, Branch):
            for side, jump in (("yes", block.end.yes), ("no", block.end.no)):
                if len(into[jump.target]) > 1:
                    edge = Block(f"{block.name}.{side}", [], [], Jump(jump.target, jump.args))
                    jump.target, jump.args = edge, []
                    function.blocks.append(edge)
    flow = Flow(function)
    changed = False
    for loop in flow.loops:
        for inside in (False, True):
            jumps = [j for b, j in predecessors(function)[loop.header] if (b in loop.blocks) == inside]
            if len(jumps) > 1:
                function.blocks.append(
                    _between(f"{loop.header.name}.{'again' if inside else 'in'}", loop.header, jumps)
                )
                changed = True
    return Flow(function) if changed else flow


def _wrap(program: TypedProgram) -> None:
    """Give a recursive program a main function that nothing calls."""
    inner = program.main
    params = [TypedValue(p.type, p.name) for p in inner.params]
    results = [TypedValue(kind) for kind in inner.results]
    call = Instruction("call", list(params), results, function=inner)
    program.functions.insert(
        0, TypedFunction("main", [Block("main", params, [call], Return(list(results)))], list(inner.results))
    )


def prepared(program: TypedProgram) -> TypedProgram:
    """A copy that is ready for deriving: inlined and simplified."""
    program = copied(program)
    if any(item.function is program.main for f in program.functions for item in f.instructions()):
        _wrap(program)
    inline(program)
    written = written_arrays(program)
    for function in program.functions:
        simplify(function)
        share(function, written)
        simplify(function)
    if sum(map(_size, program.functions)) > LARGEST:
        raise NotFast("it is so long that compiling takes longer than running")
    return program


def written_arrays(program: TypedProgram) -> set[Type]:
    """The types of arrays that are changed."""
    return {i.operands[0].type for f in program.functions for i in f.instructions() if i.operation == "array_set"}
