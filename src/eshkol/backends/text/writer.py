"""The kernel of a program in C-like text: its lane's control flow, and all that stands around it.

Comes in: a program's analysis, what is known of its registers, a dialect. Goes out: a `TextKernel`. Control flow is
written as `if`, `for`, `break` and `return` where the program's jumps allow it, as those of the tensor compiler do;
other programs (jumps back, calls) become one loop around a switch over their basic blocks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.atlas.isa import Control, Instruction, Values
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.program import Param, ParamKind, Program
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.atlas.validate import Analysis, validate
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.ranges import Ranges
from eshkol.backends.text import wide
from eshkol.backends.text.dialect import Dialect
from eshkol.backends.text.lane import TAGS
from eshkol.backends.text.memory import TextMemory
from eshkol.errors import BackendUnavailable, IsaError

CALL_DEPTH = 256


class Unstructured(Exception):
    """The jumps of a program are not those of `if`, `for` and `return`."""


@dataclass(frozen=True)
class TextKernel:
    """A kernel's text, and what it is given: names in order, as `TextLane.ask` and parameters have them."""

    text: str
    layout: Layout
    asked: tuple[str, ...]
    structured: bool


class Writer(TextMemory):
    """Writes the kernel."""

    def __init__(self, analysis: Analysis, dialect: Dialect, known: Ranges | None, never: int | None) -> None:
        super().__init__(analysis, Layout.of(analysis.flow.program), dialect)
        self.trusted = frozenset() if known is None else frozenset(known.trusted)
        self.counted = frozenset() if known is None else frozenset(known.counted)
        self.access = {} if known is None else {a.index: a for a in known.accesses if a.index in known.trusted}
        self.atoms = {} if known is None else {atom: loop for loop, atom in known.counters.items()}
        rounds = {} if known is None else {loop: known.rounds.get(atom) for loop, atom in known.counters.items()}
        # Loops of one round at most are what conditions without jumps are: but those that something breaks out of.
        self.single = {
            loop for loop, most in rounds.items()
            if most == 1 and not any(loop < i <= self.flow.loop_end[loop] for i in self.flow.targets)
        }  # fmt: skip
        self.never = never
        self.loops: list[int] = []
        self._targets = frozenset(self.flow.targets.values())

    # --- the whole ----------------------------------------------------------------------------------

    def structured(self) -> TextKernel:
        """The kernel with the control flow of C."""
        if self.flow.return_points or self.program.start != 0:
            raise Unstructured
        self._region(0, len(self.program))
        return self._kernel(structured=True)

    def _kernel(self, *, structured: bool) -> TextKernel:
        # A lane's number is asked for by all: lanes of a launch may be counted from one that is not the first.
        asked = ("first", *(name for name in self.asked if name != "first"))
        body = [f"  {text}" for text in self.variables.values()] + self.lines
        return TextKernel("\n\n".join(self._parts(asked, body)) + "\n", self.layout, asked, structured)

    def _parts(self, asked: Sequence[str], body: list[str]) -> list[str]:
        """The parts of the text, the kernel's own function last."""
        d, scalars = self.d, self.scalars
        parameters = [(d.pointer("global", d.types[Type.U32]), "status")]
        for name in asked:
            kind = d.types[Type.U32]
            if name == "first":
                kind = d.types[Type.U64]
            elif name in ("shared", "classes"):
                kind = d.pointer("shared" if name == "shared" else "global", d.types[Type.U8])
            parameters.append((kind, name))
        for param in self.program.params:
            if param.kind is ParamKind.SCALAR:
                assert param.ty is not None
                self._refuse_wide(param)
                parameters.append((d.type(param.ty), f"s_{param.name}"))
            else:
                parameters.append((d.pointer("global", d.types[Type.U8]), f"b_{param.name}"))
                parameters.append((d.types[Type.U64], f"n_{param.name}"))
        wides = wide.texts(list(scalars.wide))
        structures = [t for bits in scalars.wide_types if (t := wide.structure(bits)) not in wides]
        sites = max(1, len(self.layout.sites))
        fault = [d.fault(sites)] if self.layout.sites else []
        return [d.prelude, *structures, *self._helpers(), *wides, *fault, d.kernel(parameters, body)]

    def _helpers(self) -> list[str]:
        return [self.d.helpers[name] for name in _with_needed(self.scalars.used, self.d)]

    def _refuse_wide(self, param: Param) -> None:
        if param.ty is not None and param.ty.is_wide:
            raise BackendUnavailable(f"{self.d.name} has no scalar parameters of type {param.ty}: '{param.name}'")

    # --- structured control flow --------------------------------------------------------------------

    def _region(self, low: int, high: int) -> None:
        """The instructions from one on up to another, between which jumps go forward only."""
        index = low
        while index < high:
            if not self.analysis.reachable(index):
                index += 1
                continue
            self.index = index
            i = self.program.instructions[index]
            control = i.op.control
            if control is Control.BRANCH:
                index = self._branch(index, i, high)
            elif control is Control.LOOP:
                index = self._loop(index, i)
            elif control is Control.EXIT:
                self.do("return;")
                index += 1
            elif control in (Control.CALL, Control.RETURN, Control.ENDLOOP):
                raise Unstructured
            else:
                self._instruction(i)
                index += 1

    def _branch(self, index: int, i: Instruction, high: int) -> int:
        """A branch and all that it decides; the instruction behind that."""
        if index == self.never:
            return index + 1
        target = self.flow.targets[index]
        if i.pred is None:
            self._leave(index, target, high)
            return index + 1
        taken = self.read_predicate(i.pred)
        self.close()
        after = self.program.instructions[index + 1] if index + 1 < len(self.program) else None
        skips = after is not None and after.op.control is Control.BRANCH and after.pred is None
        if skips and target == index + 2 and index + 1 not in self._targets and index + 1 < high:
            end = self.flow.targets[index + 1]
            condition, start = taken, index + 2
        else:
            end, condition, start = target, f"!{taken}", index + 1
        if index < end <= high and not (end == len(self.program) and end == high):
            last = self.program.instructions[end - 1] if end - 1 >= start else None
            if last is not None and last.op.control is Control.BRANCH and last.pred is None and end - 1 != self.never:
                further = self.flow.targets[end - 1]
                if end < further <= high and further != len(self.program):
                    self._scope(f"if ({condition})", start, end - 1)
                    self._scope("else", end, further)
                    return further
            self._scope(f"if ({condition})", start, end)
            return end
        # A way out of what stands around it: of the innermost loop, or of the kernel.
        self.begin(f"if ({taken if end == target else '!' + taken})")
        self._leave(index, end, -1)
        self.end()
        return start

    def _scope(self, head: str, low: int, high: int) -> None:
        before = dict(self.constants)
        self.begin(head)
        self._region(low, high)
        self.end()
        self.constants = before
        self._forget(low, high)

    def _forget(self, low: int, high: int) -> None:
        """What is written between two instructions is not known."""
        for i in self.program.instructions[low:high]:
            for register in i.writes():
                self.constants.pop(register, None)

    def _leave(self, index: int, target: int, high: int) -> None:
        """A jump that is always taken, out of the region that it stands in."""
        if target == len(self.program) or self.program.instructions[target].op.control is Control.EXIT:
            self.do("return;")
        elif target == high:
            if index + 1 != high and any(self.analysis.reachable(k) for k in range(index + 1, high)):
                raise Unstructured
        elif self.loops and target == self.flow.loop_end[self.loops[-1]] + 1:
            self.do("break;")
        elif self.loops and target == self.flow.loop_end[self.loops[-1]]:
            self.do("continue;")
        else:
            raise Unstructured

    def _loop(self, index: int, i: Instruction) -> int:
        ty, count = self._rounds(i)
        d, name = self.d, f"k{index}"
        self.put(i.counter, ty, d.zero(ty))
        if index in self.single:
            self.begin(f"if ({d.is_positive(ty, count)})")
            self.do(d.constantly(ty, name, d.zero(ty)))
        else:
            self.begin(d.counting(ty, name, count))
        end = self.flow.loop_end[index]
        self._forget(index, end)
        self.put(i.counter, ty, name)
        self.loops.append(index)
        self._region(index + 1, end)
        self.loops.pop()
        self.end()
        self._forget(index, end)
        return end + 1

    def _rounds(self, i: Instruction) -> tuple[Type, str]:
        """The type and number of a loop's rounds; read once, so that the body may change the register."""
        if not isinstance(i.iterations, Register):
            return Type.U32, self.d.constant(Type.U32, i.iterations)
        types = self.types_of(self.index, i.iterations)
        if len(types) > 1:
            raise BackendUnavailable(f"{self.d.name} has no loops whose counter has several types", span=i.span)
        count = self.read(i.iterations)
        if types[0].is_signed and self.index not in self.counted:
            self.fail_if(self.d.is_negative(types[0], count), "a loop cannot run a negative number of times")
        name = self.variable(self.d.types[types[0]], f"n{self.index}")
        self.do(f"{name} = {count};")
        self.close()
        return types[0], name

    # --- other control flow -------------------------------------------------------------------------

    def switched(self) -> TextKernel:
        """The kernel as a loop around a switch over basic blocks."""
        ends = len(self.program)
        word = self.d.types[Type.U32]
        self.variable(word, "pc", str(self.program.start))
        if self.flow.return_points:
            self.variable(word, "depth")
            self.variables["stack"] = self.d.array(word, "stack", CALL_DEPTH)
        self.begin("for (;;)")
        self.begin("switch (pc)")
        starts = sorted(s for s in {*self.flow.block_starts, self.program.start} if s < ends)
        for start, end in itertools.pairwise([*starts, ends]):
            if not self.analysis.reachable(start):
                continue
            self.begin(f"case {start}:")
            self.constants.clear()
            goes_on = True
            for index in range(start, end):
                self.index = index
                goes_on = self._switched_instruction(index, self.program.instructions[index])
            if goes_on:
                self.do(f"pc = {end};")
            self.do("break;")
            self.end()
        self.do(self.d.default)
        self.end()
        self.end()
        return self._kernel(structured=False)

    def _switched_instruction(self, index: int, i: Instruction) -> bool:
        """An instruction in the switch; whether the next one follows."""
        control = i.op.control
        if control is Control.BRANCH:
            if i.pred is None:
                self.do(f"pc = {self.flow.targets[index]};")
            else:
                taken = self.read_predicate(i.pred)
                self.close()
                self.do(f"pc = {self.d.chosen(taken, str(self.flow.targets[index]), str(index + 1))};")
        elif control is Control.EXIT:
            self.do("return;")
        elif control is Control.CALL:
            self.fail_if(
                f"depth >= {CALL_DEPTH}", f"calls are nested more than {CALL_DEPTH} deep", None, IsaError, ends=True
            )
            for line in self.d.pushed("stack", "depth", index + 1):
                self.do(line)
            self.do(f"pc = {self.flow.targets[index]};")
            self.close()
        elif control is Control.RETURN:
            self.fail_if("depth == 0", "there is no CALL to return from", "use EXIT to end a lane", IsaError, ends=True)
            for line in self.d.popped("pc", "stack", "depth"):
                self.do(line)
            self.close()
        elif control is Control.LOOP:
            self._switched_loop(index, i)
        elif control is Control.ENDLOOP:
            start = self.flow.loop_start[index]
            loop = self.program.instructions[start]
            ty = self.types_of(start, loop.iterations)[0] if isinstance(loop.iterations, Register) else Type.U32
            done, wanted = self._counters(start, ty)
            before, more = self.d.next_round(ty, done, wanted)
            for line in before:
                self.do(line)
            self.begin(f"if ({more})")
            self.put(loop.counter, ty, done)
            self.do(f"pc = {start + 1};")
            self.end(f" else {{ pc = {index + 1}; }}")
        else:
            self._instruction(i)
            return True
        return False

    def _switched_loop(self, index: int, i: Instruction) -> None:
        ty, count = self._rounds(i)
        done, wanted = self._counters(index, ty)
        self.do(f"{done} = {self.d.zero(ty)};")
        self.do(f"{wanted} = {count};")
        self.put(i.counter, ty, self.d.zero(ty))
        some = self.d.is_positive(ty, wanted)
        self.do(f"pc = {self.d.chosen(some, str(index + 1), str(self.flow.loop_end[index] + 1))};")

    def _counters(self, loop: int, ty: Type) -> tuple[str, str]:
        """Rounds done and wanted: one of each per depth of calls, if there are any."""
        calls, kind = bool(self.flow.return_points), self.d.types[ty]
        for name in (f"done{loop}", f"wanted{loop}"):
            self.variables[name] = (
                self.d.array(kind, name, CALL_DEPTH + 1) if calls else self.d.variable(kind, name, "0")
            )
        at = "[depth]" * calls
        return f"done{loop}{at}", f"wanted{loop}{at}"

    # --- instructions -------------------------------------------------------------------------------

    def _instruction(self, i: Instruction) -> None:
        """The instruction; once per type that its registers may hold, where that depends on the path."""
        if self.index in self.analysis.certain_types:
            self._one_typing(i)
            self.close()
            return
        mixed = [r for r in dict.fromkeys(i.reads()) if len(self.types_of(self.index, r)) > 1]
        for register in mixed:
            self.check_written(register)
        outer, self.open = self.open, 0
        for types in itertools.product(*(self.types_of(self.index, r) for r in mixed)):
            self.assumed = dict(zip(mixed, types, strict=True))
            if mixed:
                self.begin(f"if ({' && '.join(f'{self.tags[r]} == {TAGS[ty]}' for r, ty in self.assumed.items())})")
            try:
                resolve_types(i, [self.type_of(r) for r in i.reads()])
            except IsaError as error:
                self.fail_if(self.d.true, error.message, error.hint, IsaError)
            else:
                self._one_typing(i)
            self.close()
            if mixed:
                self.end()
        self.open, self.assumed = outer, {}
        self.close()

    def _one_typing(self, i: Instruction) -> None:
        if isinstance(i.op.meaning, Values):
            self._compute(i)
            return
        handler = getattr(self, f"_do_{i.op.name}", None)
        if handler is None:
            raise BackendUnavailable(f"{self.d.name} has no {i.op.name} yet", span=i.span)
        handler(i)

    def _compute(self, i: Instruction) -> None:
        types = [self.type_of(r) for r in i.reads()]
        values = [
            self.read_predicate(operand) if isinstance(operand, Predicate) else self.read(operand)
            for operand in (i.operands[k] for k in i.op.inputs)
        ]
        outputs = resolve_types(i, types)
        divides = i.op.zero_trap is not None and bool(self.constants.get(getattr(i, i.op.zero_trap)))
        fail = (lambda condition, message: None) if divides else self.fail_if
        result = self.scalars.write(i, types[0] if types else outputs[0], values, fail)
        for predicate in i.touched.slots_written[len(outputs) :]:
            assert isinstance(predicate, Predicate)
            self.do(f"{self.predicate(predicate)} = {result};")
            self.mark_written(predicate)
        summed = i.op.name == "ACC" and outputs[0].is_float and not outputs[0].is_half and bool(self.d.any_order)
        if summed:
            self.begin("")
            self.lines.append(self.d.any_order)
        for register, ty in zip(i.writes(), outputs, strict=True):
            self.put(register, ty, result)
        if summed:
            self.end()
        if i.op.name == "MOV_IMM":
            self.constants[i.dst] = i.value.value

    def _do_SREG(self, i: Instruction) -> None:
        name = i.which.name
        self.put(i.dst, Type.U32, self.special(name[:-1], "XYZ".index(name[-1])))

    def _do_BarSync(self, i: Instruction) -> None:
        self.do(self.d.barrier)

    # A launch of one block waits for all its lanes at the block's barrier; others are refused before they run.
    _do_GridSync = _do_BarSync

    def _do_MemFence(self, i: Instruction) -> None:
        self.do(self.d.fence)


def _with_needed(names: dict[str, None], dialect: Dialect) -> list[str]:
    """Helper functions, each after those that it calls."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        for other in dialect.helpers:
            if other != name and other not in found and re.search(rf"\b{other}\(", dialect.helpers[name]):
                add(other)
        found[name] = None

    for name in names:
        if name not in found:
            add(name)
    return list(found)


def write_kernel(
    program: Program, dialect: Dialect, known: Ranges | None = None, never: int | None = None,
    writer: type[Writer] = Writer,
) -> TextKernel:  # fmt: skip
    """The kernel of a program in base instructions. The branch `never` is known not to be taken."""
    analysis = validate(program)
    try:
        return writer(analysis, dialect, known, never).structured()
    except Unstructured:
        return writer(analysis, dialect, known, never).switched()
