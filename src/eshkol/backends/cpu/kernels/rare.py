"""Stretches of code that few lanes come to, as functions that vectors of lanes call only where one of theirs does.

Comes in: a program that branches around long straight-line code which computes one register, such as the sine of a huge
angle. Goes out: those stretches, and functions for each: of one lane, and of vectors of lanes. LLVM's vectorizer would
compute such code for all lanes and then choose; but it takes a function of vectors instead of one that it calls for
each lane. That function asks whether any lane needs the code, and is inlined after the vectorizer (`llvm/passes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from eshkol.atlas.flow import Slot, slots_read, slots_written
from eshkol.atlas.isa import Control, Instruction, Values
from eshkol.atlas.operands import Register
from eshkol.atlas.types import Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.atlas.validate import Analysis
from eshkol.backends.lanes.emitter import Emitter, llvm_type
from eshkol.backends.lanes.scalars import lower
from eshkol.llvm.targets import Target
from eshkol.llvm.text import vector

PREFIX = "rare"
LEAST = 32  # instructions that make it worth a question
MIGHT_FAIL = frozenset({"DIV", "REM", "MIRROR", "BoundMap"})  # DIV and REM only of integers
ATTRIBUTES = "memory(none) nounwind willreturn"


@dataclass(frozen=True)
class Rare:
    """Instructions that lanes run where a predicate holds, and that give one register."""

    branch: int  # to the first of them; after it comes the branch to where all lanes go on
    end: int  # where they go on
    result: Register
    ty: Type
    reads: tuple[tuple[Register, Type], ...]
    widths: tuple[int, ...]  # of the vectors for which there are functions

    @property
    def skipped(self) -> range:
        """What stands between the branch and where all lanes go on."""
        return range(self.branch + 1, self.end)

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.branch}"


def rare_stretches(analysis: Analysis, vector_bits: int) -> dict[int, Rare]:
    """The stretches of a program, by the branches to them, for a machine with vectors of so many bits."""
    flow = analysis.flow
    program, targets = flow.program, flow.targets
    found: dict[int, Rare] = {}
    for index, inside in targets.items():
        around = index + 1
        if inside != index + 2 or around not in targets or not analysis.reachable(index):
            continue
        branches = program.instructions[index], program.instructions[around]
        if any(i.op.control is not Control.BRANCH for i in branches) or branches[0].pred is None or branches[1].pred:
            continue
        end = targets[around]
        entered = [place for k, place in targets.items() if around <= place < end and k != index]
        if end - inside < LEAST or entered or around <= program.start < end:
            continue
        one = _one_result(analysis, index, range(inside, end), vector_bits)
        if one is not None:
            found[index] = one
    return found


def _one_result(analysis: Analysis, branch: int, body: range, vector_bits: int) -> Rare | None:
    """The stretch, if all it does is to compute one register from others, whose types are certain."""
    flow = analysis.flow
    instructions = [flow.program.instructions[k] for k in body]
    if not all(isinstance(i.op.meaning, Values) for i in instructions):
        return None
    written = {slot for i in instructions for slot in slots_written(i)}
    results = sorted(written & flow.live_after(body[-1]), key=str)
    reads = list(dict.fromkeys(_read_first(instructions)))
    if len(results) != 1 or any(_may_fail(analysis, k) for k in body):
        return None
    before = [found for slot in (*results, *reads) if (found := _certain(analysis, branch, slot)) is not None]
    if len(before) <= len(reads) or before[0] != _certain(analysis, body[-1] + 1, results[0]):
        return None
    (result, ty), *given = before
    whole = vector_bits // ty.bits
    widths = tuple(lanes for lanes in (whole, whole // 2) if lanes > 1)  # half as many lanes where others are wider
    return Rare(branch, body[-1] + 1, result, ty, tuple(given), widths)


def _certain(analysis: Analysis, index: int, slot: Slot) -> tuple[Register, Type] | None:
    """A register and the type of what it surely holds, if that fits into a machine's word; None of anything else."""
    ty = analysis.type_before(index, slot) if isinstance(slot, Register) else None
    return (slot, ty) if isinstance(slot, Register) and ty is not None and ty.bits <= 64 else None


def _read_first(instructions: Iterable[Instruction]) -> list[Slot]:
    """What instructions read before they write it."""
    found: list[Slot] = []
    written: set[Slot] = set()
    for i in instructions:
        found += [slot for slot in slots_read(i) if slot not in written]
        written.update(slots_written(i))
    return found


def _may_fail(analysis: Analysis, index: int) -> bool:
    i = analysis.flow.program.instructions[index]
    if i.op.name not in MIGHT_FAIL:
        return False
    types = [analysis.type_before(index, r) for r in i.reads()]
    return i.op.name not in ("DIV", "REM") or any(ty is None or not ty.is_float for ty in types)


# --- functions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seldom:
    """A function that is hardly ever needed: of what a register holds, and of values; and its versions for vectors."""

    name: str
    types: tuple[str, ...]  # of what the register holds and will hold, and of the values
    widths: tuple[int, ...]

    def parameters(self, lanes: int) -> str:
        names = ["wanted", "held", *(f"x{k}" for k in range(len(self.types) - 1))]
        types = [vector(t, lanes) for t in ("i1", *self.types)]
        return ", ".join(f"{t} %{name}" for t, name in zip(types, names, strict=True))

    def of_a_lane(self, code: Sequence[str], found: str) -> str:
        """The function of one lane: straight-line code behind a branch."""
        t = self.types[0]
        head = f"define internal {t} @{self.name}({self.parameters(1)}) {ATTRIBUTES} noinline {{"
        start = ["entry:", "  br i1 %wanted, label %code, label %done, !prof !1", "code:"]
        end = [f"  ret {t} {found}", "done:", f"  ret {t} %held", "}"]
        return "\n".join([head, *start, *code, *end])


def seldom(rare: Rare) -> Seldom:
    """The function of a stretch."""
    return Seldom(rare.name, tuple(llvm_type(ty) for ty in (rare.ty, *(ty for _, ty in rare.reads))), rare.widths)


def call(e: Emitter, rare: Seldom, wanted: str, values: Sequence[str]) -> str:
    """The result of a function where it is wanted, else what the register holds: the first of the values."""
    given = ", ".join(f"{t} {v}" for t, v in zip(rare.types, values, strict=True))
    variants = ",".join(
        f"_ZGV_LLVM_N{lanes}{'v' * (len(rare.types) + 1)}_{rare.name}({rare.name}.{lanes})" for lanes in rare.widths
    )
    kind = f' "vector-function-abi-variant"="{variants}"' if variants else ""  # without vectors there are none
    return e.op(f"call {rare.types[0]} @{rare.name}(i1 {wanted}, {given}){kind}")


def functions(analysis: Analysis, stretches: Collection[Rare], target: Target) -> tuple[list[str], dict[str, str]]:
    """The functions of stretches, and what they declare."""
    found: list[str] = []
    declared: dict[str, str] = {}
    for rare in stretches:
        e = Emitter(shifts_bf16=target.shifts_bf16)
        found.append(_of_a_lane(e, analysis, rare))
        written, more = vector_functions(seldom(rare))
        found += written
        declared |= e.declared | more
    return found, declared


def vector_functions(rare: Seldom) -> tuple[list[str], dict[str, str]]:
    """A function's versions for vectors, and what they declare."""
    found: list[str] = []
    declared: dict[str, str] = {}
    for lanes in rare.widths:
        e = Emitter()
        found += _of_vectors(e, rare, lanes)
        declared |= e.declared
    return found, declared


def kept(text: str) -> str:
    """What keeps the versions for vectors until they are called."""
    names = re.findall(r"^define internal [^@\n]*(@rare[\w.]*\.\d+)\([^\n]* alwaysinline \{", text, re.MULTILINE)
    if not names:
        return ""
    pointers = ", ".join(f"ptr {name}" for name in names)
    return f'@llvm.used = appending global [{len(names)} x ptr] [{pointers}], section "llvm.metadata"'


def _of_a_lane(e: Emitter, analysis: Analysis, rare: Rare) -> str:
    registers: dict[Register, tuple[str, Type]] = {r: (f"%x{k}", ty) for k, (r, ty) in enumerate(rare.reads)}
    predicates: dict[Slot, str] = {}

    def never(condition: str, message: str) -> None:
        raise AssertionError(message)

    for index in range(rare.branch + 2, rare.end):
        i = analysis.flow.program.instructions[index]
        values, types = [], []
        for k in i.op.inputs:
            operand = i.operands[k]
            if isinstance(operand, Register):
                value, ty = registers[operand]
                values.append(value)
                types.append(ty)
            else:
                values.append(predicates[operand])
        outputs = resolve_types(i, types)
        result = lower(e, i, types[0] if types else outputs[0], values, never)
        for predicate in slots_written(i)[len(outputs) :]:
            predicates[predicate] = result
        for register, ty in zip(i.writes(), outputs, strict=True):
            registers[register] = result, ty
    return seldom(rare).of_a_lane(e.lines, registers[rare.result][0])


def _of_vectors(e: Emitter, rare: Seldom, lanes: int) -> list[str]:
    """A function that asks whether any lane wants the code, and one that computes it lane by lane."""
    t, parameters = vector(rare.types[0], lanes), rare.parameters(lanes)
    some = e.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (vector("i1", lanes), "%wanted"))
    ask = [
        f"define internal {t} @{rare.name}.{lanes}({parameters}) {ATTRIBUTES} alwaysinline {{",
        "entry:",
        *e.lines,
        f"  br i1 {some}, label %code, label %done, !prof !1",
        "code:",
        f"  %found = call preserve_allcc {t} @{rare.name}.slow.{lanes}({parameters})",
        "  br label %done",
        "done:",
        f"  %all = phi {t} [ %held, %entry ], [ %found, %code ]",
        f"  ret {t} %all",
        "}",
    ]
    e.lines = []
    found = "poison"
    for k in range(lanes):
        given = []
        for one in parameters.split(", "):
            whole, name = one.rsplit(" ", 1)
            single = whole.split(" x ")[1][:-1]
            given.append(f"{single} {e.op(f'extractelement {whole} {name}, i64 {k}')}")
        value = e.op(f"call {rare.types[0]} @{rare.name}({', '.join(given)})")
        found = e.op(f"insertelement {t} {found}, {rare.types[0]} {value}, i64 {k}")
    head = f"define internal preserve_allcc {t} @{rare.name}.slow.{lanes}({parameters}) {ATTRIBUTES} noinline cold {{"
    return ["\n".join(ask), "\n".join([head, *e.lines, f"  ret {t} {found}", "}"])]
