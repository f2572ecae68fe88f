"""A lane's call of a macro: operands checked, the record filled on the lane's stack, all phases one after another."""

from __future__ import annotations

from eshkol.atlas.isa import Field, Instruction, Kind, element_type
from eshkol.atlas.validate import extent
from eshkol.backends.cpu.kernels.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH, Macro, record_operands
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.layout import BEYOND
from eshkol.backends.lanes.writer import LaneWriter


def write_call(lane: LaneWriter, i: Instruction, macro: Macro) -> None:
    """The call, in the function that `lane` writes."""
    e, operands = lane.e, record_operands(i)
    size = FIRST_OPERAND + len(operands) + len(macro.words)
    record = e.slot(f"[{size} x i64], align 64", "record")
    pointers: list[str] = []
    spans: list[tuple[Field, str, int]] = []
    for f, operand in operands:
        ty = element_type(i, f)
        if f.kind is Kind.DEF:
            pointers.append(e.slot(llvm_type(ty), "out"))
            continue
        start, count = extent(i, f)
        pointer, _ = lane.pointer(operand, ty, start, count)
        pointers.append(pointer)
        start, count = min(start, BEYOND), min(count, BEYOND)
        spans.append((f, e.offset(pointer, start), count))
    _check_apart(lane, i, spans)

    def store(number: int, llvm: str, value: int | str) -> None:
        e.store(llvm, value, e.offset(record, number, "i64"))

    store(FAULT, "i64", NO_FAULT)
    for number, pointer in enumerate(pointers):
        store(FIRST_OPERAND + number, "ptr", pointer)
    for number, word in enumerate(macro.words):
        store(FIRST_OPERAND + len(operands) + number, "i64", word)
    scratch = "null"
    if macro.scratch:
        scratch = e.call("ptr", "malloc", ("i64", str(min(macro.scratch, BEYOND) + 64)))
        lane.fail_if(e.op(f"icmp eq ptr {scratch}, null"), f"no memory for the {macro.scratch} bytes it works in")
        aligned = e.call("ptr", "llvm.ptrmask.p0.i64", ("ptr", e.offset(scratch, 63)),
                         ("i64", "-64"))  # fmt: skip
        store(SCRATCH, "ptr", aligned)
    for phase in macro.phases:
        e.do(f"call void @{phase.function}(ptr {record}, i64 0, i64 {phase.tasks})")
    if macro.scratch:
        e.call("void", "free", ("ptr", scratch))
    if macro.faults:
        found = e.load("i64", record)
        for number, message in enumerate(macro.faults):
            lane.fail_if(e.op(f"icmp eq i64 {found}, {number}"), message)
    for (f, operand), pointer in zip(operands, pointers, strict=True):
        if f.kind is Kind.DEF:
            ty = element_type(i, f)
            lane.write_register(operand, ty, e.load(llvm_type(ty), pointer))


def _check_apart(lane: LaneWriter, i: Instruction, spans: list[tuple[Field, str, int]]) -> None:
    """Outputs may not overlap inputs, except in the very same place where the row allows it."""
    e = lane.e
    for out, begin, size in spans:
        for f, other, length in spans:
            if out.kind is Kind.READ or f is out or not size or not length:
                continue
            first, second = (e.op(f"ptrtoint ptr {p} to i64") for p in (begin, other))
            low = e.op(f"icmp ult i64 {first}, {e.op(f'add i64 {second}, {length}')}")
            high = e.op(f"icmp ult i64 {second}, {e.op(f'add i64 {first}, {size}')}")
            meets = e.op(f"and i1 {low}, {high}")
            if i.op.in_place and size == length:
                meets = e.op(f"and i1 {meets}, {e.op(f'icmp ne i64 {first}, {second}')}")
            lane.fail_if(meets, f"{out.name} overlaps {f.name} in memory")
