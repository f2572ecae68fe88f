"""The validator: what must hold of a program before any backend sees it.

Labels exist and loops match (`flow.py`); handles are declared and used as declared; static addresses lie in
range; operand types agree wherever that can be seen. Types are found by a forward dataflow in which a
register holds a set of possible types (and perhaps "not written"); an instruction is rejected when no
combination of them is legal. What remains open is checked at run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import product
from typing import Any

from eshkol.atlas.classes import CLASS_BYTES, CLASSES
from eshkol.atlas.flow import Callee, Flow, Slot, located, slots_read
from eshkol.atlas.isa import (
    MEMORY_KINDS,
    Arrays,
    Control,
    Field,
    Instruction,
    Kind,
    element_type,
)
from eshkol.atlas.operands import (
    SPECIAL_TYPES,
    Address,
    BufferOffset,
    ClassOffset,
    Indexed,
    PoolOffset,
    Register,
    Shared,
    address_base,
    address_register,
)
from eshkol.atlas.program import LaunchConfig, ParamKind, Program, is_name
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.errors import IsaError

UNWRITTEN = None
Possible = frozenset[Type | None]  # None: perhaps not written. Predicates hold {None} or {WRITTEN} or both.
WRITTEN = Type.U8
State = dict[Slot, Possible]
_NOTHING: Possible = frozenset({UNWRITTEN})
_ONLY: dict[Type, Possible] = {ty: frozenset({ty}) for ty in Type}  # one object for each: most states hold these
_SPECIAL: State = {Register(index): _ONLY[ty] for index, ty in SPECIAL_TYPES.items()}
_COMBINATIONS_LIMIT = 512


@dataclass(frozen=True)
class Analysis:
    """What validation found out: the control flow, and the state before each reachable instruction."""

    flow: Flow
    states: dict[int, State]

    def reachable(self, index: int) -> bool:
        return index in self.states

    def possible(self, index: int, slot: Slot) -> Possible:
        """The types that a register may hold before an instruction."""
        if isinstance(slot, Register) and slot.is_special:
            return _SPECIAL[slot]
        return self.states[index].get(slot, _NOTHING)

    def type_before(self, index: int, register: Register) -> Type | None:
        """The one type a register holds whenever this instruction runs; None if that is not certain."""
        possible = self.possible(index, register)
        return next(iter(possible)) if len(possible) == 1 else None

    def only_forward(self, index: int, address: Indexed) -> bool:
        """Whether an address surely lies at its offset or beyond, because its index has no sign."""
        if not self.reachable(index):
            return False
        return all(ty is not UNWRITTEN and ty.is_unsigned for ty in self.possible(index, address.index) - {UNWRITTEN})

    def certain(self, index: int) -> bool:
        """Whether every register and predicate it reads is surely written, with one known type."""
        return index in self.certain_types

    @cached_property
    def shared_operands(self) -> list[tuple[int, Field, Address]]:
        """Operands in shared memory, by the places of their instructions: few programs have any."""
        return [
            (index, f, address)
            for index, instruction in enumerate(self.flow.program.instructions)
            for f, address in memory_operands(instruction)
            if isinstance(address_base(address), Shared)
        ]

    @cached_property
    def certain_types(self) -> dict[int, tuple[Type, ...]]:
        """The types of the registers that an instruction reads, for every one that is reached and certain."""
        found: dict[int, tuple[Type, ...]] = {}
        for index, state in self.states.items():
            types: list[Type] = []
            for slot in self.flow.program.instructions[index].touched.slots_read:
                possible = state.get(slot, _NOTHING)
                ty = next(iter(possible)) if len(possible) == 1 else UNWRITTEN
                if ty is UNWRITTEN:
                    break
                if isinstance(slot, Register):
                    types.append(ty)
            else:
                found[index] = tuple(types)
        return found


def validate(program: Program, launch: LaunchConfig | None = None) -> Analysis:
    """The analysis of a legal program; an IsaError that names the instruction otherwise.

    With a launch, static shared-memory addresses are checked against its size too.
    """
    analysis: Analysis | None = program.__dict__.get("_analysis")
    if analysis is None:
        for name in (*program.labels, *(p.name for p in program.params)):
            if not is_name(name):
                raise IsaError(f"'{name}' cannot be a name", hint="use letters, digits and _; not r1 or p1")
        if len(program.param) != len(program.params):
            raise IsaError("two parameters have the same name")
        flow = Flow.of(program)
        _check_operands(program)
        analysis = Analysis(flow, _infer(flow))
        _check_returns(analysis)
        _check_offsets(analysis)
        program.__dict__["_analysis"] = analysis  # programs never change, so it stays true
    if launch is not None:
        _check_shared(analysis, launch)
    return analysis


def _check_returns(analysis: Analysis) -> None:
    """A RET that can be reached needs a CALL; in code that cannot be reached it does no harm."""
    program = analysis.flow.program
    for index, instruction in enumerate(program.instructions):
        returns = instruction.op.control is Control.RETURN
        if returns and analysis.reachable(index) and not analysis.flow.return_points:
            raise located(program, index, "there is no CALL to return from", "use EXIT to end a lane")


# --- handles and addresses ------------------------------------------------------------------------


def extent(instruction: Instruction, f: Field) -> tuple[int, int]:
    """First byte and byte count of a memory operand, beyond its address."""
    size = element_type(instruction, f).size_bytes
    start = f.start(instruction) if f.start is not None else 0
    return start * size, size * (math.prod(f.shape(instruction)) if f.shape is not None else 1)


def memory_operands(instruction: Instruction) -> Iterable[tuple[Field, Address]]:
    """The memory operands that are there: an address that may be left out is None where it is."""
    if not instruction.op.memory:
        return ()
    pairs = zip(instruction.op.fields, instruction.operands, strict=True)
    return [(f, v) for f, v in pairs if f.kind in MEMORY_KINDS and v is not None]


def _check_operands(program: Program) -> None:
    pools = {p.name for p in program.params if p.kind is ParamKind.POOL}
    made = {i.pool for i in program.instructions if i.op.name == "PoolAlloc"}
    for index, instruction in enumerate(program.instructions):
        op = instruction.op
        if op.check is None and not op.memory and not op.places[Kind.POOL]:
            continue

        def fail(message: str, hint: str | None = None, index: int = index) -> IsaError:
            return located(program, index, message, hint)

        try:
            if op.check is not None:
                op.check(instruction)
        except IsaError as error:
            raise fail(error.message, error.hint) from None
        for name in instruction.of_kind(Kind.POOL):
            _check_pool(name, pools, made, instruction, fail)
        for f, address in memory_operands(instruction):
            base = address_base(address)
            if isinstance(base, PoolOffset):
                _check_pool(base.handle, pools, made, instruction, fail)
            _check_address(program, instruction, f, address, fail)
        _check_overlap(instruction, fail)
        _check_exchange(instruction, fail)


def _check_pool(name: str, params: set[str], made: set[str], instruction: Instruction, fail: Any) -> None:
    if not is_name(name):
        raise fail(f"'{name}' cannot name a pool")
    if instruction.op.name in ("PoolAlloc", "PoolFree") and name in params:
        raise fail(f"the pool '{name}' is a parameter: the host makes and frees it")
    if name not in params and name not in made:
        raise fail(f"the pool '{name}' is not declared", f"add '.pool {name}', or PoolAlloc it")


def _check_address(program: Program, i: Instruction, f: Field, address: Address, fail: Any) -> None:
    ty, (start, size), base = element_type(i, f), extent(i, f), address_base(address)
    if base is None:
        return
    if isinstance(base, ClassOffset) and not 0 <= base.class_id < CLASSES:
        raise fail(f"class {base.class_id} does not exist", f"classes are 0 to {CLASSES - 1}")
    if isinstance(base, BufferOffset):
        _check_buffer(program, f, address, base, ty, fail)
    if isinstance(address, Indexed):
        return
    _check_end(program, f, address, base.offset + start + size, fail)
    if isinstance(base, BufferOffset | Shared) and base.offset % ty.alignment:
        raise fail(f"{f.name} {address} is not aligned: {ty} needs a multiple of {ty.alignment} bytes")


def _check_buffer(program: Program, f: Field, address: Address, base: BufferOffset, ty: Type, fail: Any) -> None:
    param = program.param.get(base.handle)
    if param is None or param.kind is ParamKind.POOL:
        what = "a pool, not a buffer" if param else "not declared"
        fix = f"write [pool {base.handle}]" if param else f"add '.buffer {base.handle} {ty}'"
        raise fail(f"'{base.handle}' is {what}", fix)
    if param.ty is not ty:
        raise fail(f"{f.name} is of type {ty}, but '{param.name}' holds {param.ty}", f"use {param.ty}, and CVT after")
    plain_read = f.kind is Kind.READ and address == BufferOffset(param.name) and f.shape is None
    if param.kind is ParamKind.SCALAR and not plain_read:
        raise fail(f"'{param.name}' is a scalar: it can only be read, by LDG.{param.ty} from [{param.name}]")


def _check_end(program: Program, f: Field, address: Address, end: int, fail: Any) -> None:
    """Refuse an operand that ends beyond the end of its class, or of a buffer whose size is declared."""
    base = address_base(address)
    if isinstance(base, ClassOffset) and end > CLASS_BYTES:
        raise fail(f"{f.name} {address} ends at byte {end} of a class of {CLASS_BYTES} bytes")
    param = program.param.get(base.handle) if isinstance(base, BufferOffset) else None
    if param is not None and param.ty is not None and param.count is not None:
        size = param.count * param.ty.size_bytes
        if end > size:
            raise fail(f"{f.name} {address} ends at byte {end} of '{param.name}', which has {size}")


def _check_offsets(analysis: Analysis) -> None:
    """An offset beyond the end is a mistake with an index that is never negative; any other may reach back from it."""
    program = analysis.flow.program
    for index, instruction in enumerate(program.instructions):
        for f, address in memory_operands(instruction):
            if isinstance(address, Indexed) and analysis.only_forward(index, address):
                _check_end(program, f, address, address.base.offset, partial(located, program, index))


def _check_overlap(i: Instruction, fail: Any) -> None:
    """Array outputs must not overlap inputs, unless the row allows the very same place."""
    operands = [(f, address) for f, address in memory_operands(i) if f.shape is not None]
    for out_field, out_address in operands:
        if out_field.kind is Kind.READ:
            continue
        for f, address in operands:
            if f.name != out_field.name and overlaps(i, (out_field, out_address), (f, address)):
                allowed = "it may only be the very same place" if i.op.in_place else "they must be apart"
                raise fail(f"{out_field.name} {out_address} overlaps {f.name} {address}: {allowed}")


def _check_exchange(i: Instruction, fail: Any) -> None:
    """What devices exchange is one array per device: every lane must mean the same memory."""
    if isinstance(i.op.meaning, Arrays) or all(f.shape is None for f in i.op.memory):
        return
    for f, address in memory_operands(i):
        if address_register(address) is not None or isinstance(address_base(address), Shared):
            raise fail(f"{f.name} {address} is not the same memory for every lane", "use a buffer, pool or class")


def overlaps(i: Instruction, left: tuple[Field, Address], right: tuple[Field, Address]) -> bool:
    """Whether two static operands share bytes in a way the row does not allow."""
    ranges = []
    for f, address in (left, right):
        base = address_base(address)
        if base is None or isinstance(address, Indexed):
            return False  # seen at run time
        start, size = extent(i, f)
        space = (type(base), getattr(base, "handle", getattr(base, "class_id", None)))
        ranges.append((space, base.offset + start, base.offset + start + size))
    (space_a, low_a, high_a), (space_b, low_b, high_b) = ranges
    if space_a != space_b or max(low_a, low_b) >= min(high_a, high_b):  # apart, or one of them empty
        return False
    return not (i.op.in_place and (low_a, high_a) == (low_b, high_b))


def _check_shared(analysis: Analysis, launch: LaunchConfig) -> None:
    program = analysis.flow.program
    for index, f, address in analysis.shared_operands:
        base = address_base(address)
        assert isinstance(base, Shared)
        if isinstance(address, Indexed) and not analysis.only_forward(index, address):
            continue
        start, size = extent(program.instructions[index], f)
        end = base.offset + (start + size if address is base else 0)
        if end > launch.shared_memory:
            raise located(
                program, index,
                f"{f.name} {address} ends at byte {end} of {launch.shared_memory} bytes of shared memory",
                f"launch with LaunchConfig(..., shared_memory={end})",
            )  # fmt: skip


# --- types ----------------------------------------------------------------------------------------


def _infer(flow: Flow) -> dict[int, State]:
    """The state before each reachable instruction, by iteration to a fixed point.

    An instruction is judged by the final state before it, once all paths to it are known: one that no path
    makes legal is an error, whichever path was followed first. Blocks are gone through in the order of the program, so
    that what leads to one is mostly known when its turn comes.
    """
    program, starts = flow.program, flow.block_starts
    states: dict[int, State] = {program.start: _SPECIAL}
    pending = [program.start]
    counter_types: dict[int, Possible] = {}
    problems: dict[int, IsaError] = {}
    while pending:
        index = heappop(pending)
        while index < len(program):
            try:
                after = _transfer(flow, index, states[index])
            except IsaError as error:
                problems[index] = error
                break
            problems.pop(index, None)
            if index + 1 not in starts:
                index += 1
                states[index] = after
                continue
            if index in flow.loop_end:
                counter_types[index] = after[program.instructions[index].counter]
            for successor, state in _edges(flow, index, after, states, counter_types):
                if _join(states, successor, state) and successor not in pending:
                    heappush(pending, successor)
            break
    if problems:
        raise problems[min(problems)]
    states.pop(len(program), None)
    return states


def _edges(
    flow: Flow, index: int, after: State, states: dict[int, State], counter_types: dict[int, Possible]
) -> Iterable[tuple[int, State]]:
    """Where an instruction can go, and the state it brings there."""
    control = flow.program.instructions[index].op.control
    if control is Control.CALL:
        callee = flow.callees[flow.targets[index]]
        yield flow.targets[index], after
        for ret in callee.returns & states.keys():
            yield index + 1, _returned(after, states[ret], callee)
    elif control is Control.RETURN:
        for call, target in flow.calls.items():
            callee = flow.callees[target]
            if call in states and index in callee.returns:
                yield call + 1, _returned(states[call], after, callee)
    else:
        for successor in flow.successors(index):
            counter = flow.counter_of(index)
            if counter is not None and successor != index + 1:  # ENDLOOP going round sets its counter again
                yield successor, {**after, counter: counter_types[flow.loop_start[index]]}
            else:
                yield successor, after


def _returned(before: State, at_return: State, callee: Callee) -> State:
    """The state after a call: what the callee never writes is as it was."""
    kept = {slot: possible for slot, possible in before.items() if slot not in callee.writes}
    return kept | {slot: possible for slot, possible in at_return.items() if slot in callee.writes}


def _join(states: dict[int, State], index: int, new: State) -> bool:
    """Merge a state into the one before an instruction; whether that changed it."""
    old = states.get(index)
    if old is None:
        states[index] = new
        return True
    if old is new or old == new:  # which is told faster than merging them
        return False
    merged = dict(old)
    changed = False
    for slot, possible in new.items():
        before = old.get(slot, _NOTHING)
        if possible is not before and not possible <= before:
            merged[slot] = before | possible
            changed = True
    for slot in old.keys() - new.keys():
        if UNWRITTEN not in old[slot]:
            merged[slot] = old[slot] | _NOTHING
            changed = True
    if changed:
        states[index] = merged
    return changed


def _transfer(flow: Flow, index: int, state: State) -> State:
    """The state after an instruction; IsaError when it cannot be right whatever path led here."""
    instruction = flow.program.instructions[index]
    results = _certain_outcome(instruction, state) or _possible_outcomes(flow, index, state)
    after = state
    for k, register in enumerate(instruction.writes()):
        types = {outputs[k] for outputs in results}
        possible = _ONLY[types.pop()] if len(types) == 1 else frozenset(types)
        if state.get(register) is not possible:
            after = dict(state) if after is state else after
            after[register] = possible
    for predicate in instruction.touched.slots_written[len(instruction.writes()) :]:
        if state.get(predicate) is not _ONLY[WRITTEN]:
            after = dict(state) if after is state else after
            after[predicate] = _ONLY[WRITTEN]
    return after


def _certain_outcome(i: Instruction, state: State) -> list[tuple[Type, ...]] | None:
    """The output types, if every register read has one type and they are legal; None if this needs a closer look."""
    inputs: list[Type] = []
    for slot in i.touched.slots_read:
        possible = state.get(slot, _NOTHING)
        ty = next(iter(possible)) if len(possible) == 1 else UNWRITTEN
        if ty is UNWRITTEN:
            return None
        if isinstance(slot, Register):
            inputs.append(ty)
    try:
        return [resolve_types(i, inputs)]
    except IsaError:
        return None


def _possible_outcomes(flow: Flow, index: int, state: State) -> list[tuple[Type, ...]]:
    """The output types for whatever the registers read may hold; an error when none of it is legal."""
    instruction = flow.program.instructions[index]
    choices: list[list[Type]] = []
    for slot in slots_read(instruction):
        possible = state.get(slot, _NOTHING) - {UNWRITTEN}
        if not possible:
            raise located(flow.program, index, f"{slot} is read before it is written")
        if isinstance(slot, Register):
            choices.append([t for t in Type if t in possible])
    return _outcomes(flow, index, instruction, choices)


def _outcomes(flow: Flow, index: int, i: Instruction, choices: list[list[Type]]) -> list[tuple[Type, ...]]:
    """The output types for every legal combination of input types; an error when there is none."""
    if math.prod(map(len, choices)) > _COMBINATIONS_LIMIT:
        raise located(flow.program, index, "its operands may hold too many different types here")
    results: list[tuple[Type, ...]] = []
    problem: IsaError | None = None
    for combination in product(*choices):
        try:
            results.append(resolve_types(i, combination))
        except IsaError as error:
            problem = problem or error
    if not results:
        assert problem is not None
        raise located(flow.program, index, problem.message, problem.hint)
    return results
