"""The validator: what it refuses, what it lets through to the run-time checks, and what it finds out."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, instructions_of, programs, runnable_programs
from strategies import run as run_case

from batches import of_each
from effort import examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import REQUIRED, Arrays, Field, Kind, Opcode
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis, validate
from eshkol.atlas.writing import format_instruction
from eshkol.backends.reference import ReferenceBackend, machine
from eshkol.errors import ExecutionFailed, IsaError

SHARED_64 = LaunchConfig(shared_memory=64)


def check(source: str, launch: LaunchConfig | None = None) -> Analysis:
    return validate(assemble(source, "v.atlas"), launch)


def refused(source: str, message: str, index: int | None, launch: LaunchConfig | None = None) -> IsaError:
    """The error for a source, which must name the instruction at this index (if any) in number and text."""
    program = assemble(source, "v.atlas")
    with pytest.raises(IsaError) as caught:
        validate(program, launch)
    error = caught.value
    assert message in error.message
    if index is not None:
        instruction = program.instructions[index]
        assert error.message.startswith(f"instruction {index}, {format_instruction(instruction)}: ")
        assert error.span == instruction.span
    return error


def run(source: str, launch: LaunchConfig | None = None, **buffers: object) -> dict[str, np.ndarray]:
    """Execute a source on the reference; buffers are given by name."""
    backend, program = ReferenceBackend(), assemble(source)
    given = {p.name: backend.array(buffers[p.name], p.ty) for p in program.params if p.kind is ParamKind.BUFFER}
    backend.execute(program, launch or LaunchConfig(), given)
    return {name: buffer.read() for name, buffer in given.items()}


# --- structure ------------------------------------------------------------------------------------

BROKEN_STRUCTURE = [
    ("BRA nowhere", "there is no label 'nowhere'", 0),
    ("EXIT\nCALL nowhere", "there is no label 'nowhere'", 1),
    ("ENDLOOP", "there is no LOOP to end", 0),
    ("LOOP r0, 1", "this loop has no ENDLOOP", 0),
    ("LOOP r0, 1\nLOOP r1, 1\nENDLOOP", "this loop has no ENDLOOP", 0),
    ("LOOP r0, 1\nENDLOOP\nENDLOOP", "there is no LOOP to end", 2),
    ("BRA a\nLOOP r0, 1\na: EXIT\nENDLOOP", "is inside a loop that this instruction is outside of", 0),
    ("LOOP r0, 1\na: ENDLOOP\nBRA a", "is inside a loop that this instruction is outside of", 2),
    ("LOOP r0, 1\na: EXIT\nENDLOOP\nLOOP r1, 1\nBRA a\nENDLOOP", "is inside a loop that this", 4),
    ("LOOP r0, 1\nBRA a\nLOOP r1, 1\na: EXIT\nENDLOOP\nENDLOOP", "is inside a loop that this", 1),
    ("LOOP r0, 1\na: RET\nENDLOOP\nCALL a", "is inside a loop that this instruction is outside of", 3),
    ("LOOP r0, 1\nCALL a\na: RET\nENDLOOP", "is inside a loop that this instruction is outside of", 1),
    ("RET", "there is no CALL to return from", 0),
    (".entry nowhere\nEXIT", "the entry label 'nowhere' is not in the program", None),
    (".entry a\nLOOP r0, 1\na: ENDLOOP", "the entry label 'a' is inside a loop", None),
]


@pytest.mark.parametrize(("source", "message", "index"), BROKEN_STRUCTURE)
def test_broken_structure(source: str, message: str, index: int | None) -> None:
    refused(source, message, index)


SOUND_STRUCTURE = [
    "",
    "a:",
    "BRA end\nend:",
    "a: b: c: EXIT",
    "LOOP r0, 0\nENDLOOP",
    "LOOP r0, 1\nLOOP r0, 1\nLOOP r1, 1\nENDLOOP\nENDLOOP\nENDLOOP",
    "LOOP r0, 1\nBRA out\nENDLOOP\nout:",  # out of a loop
    "LOOP r0, 1\nLOOP r1, 1\nBRA out\nENDLOOP\nENDLOOP\nout:",  # out of two
    "LOOP r0, 1\nLOOP r1, 1\nBRA mid\nENDLOOP\nmid: ENDLOOP",  # out of the inner one
    "LOOP r0, 1\nBRA next\nEXIT\nnext: ENDLOOP",  # on to the next round
    "again: LOOP r0, 1\nBRA again\nENDLOOP",  # from the body to its own LOOP
    "BRA a\na: LOOP r0, 1\nENDLOOP",  # to a LOOP, not into it
    "LOOP r0, 1\na: BRA b\nb: BRA a\nENDLOOP",
    "LOOP r0, 2\nCALL f\nENDLOOP\nEXIT\nf: RET",
    "CALL f\nEXIT\nf: LOOP r0, 2\nRET\nENDLOOP\nRET",
    "CALL f\nEXIT\nf: CALL f\nRET",
    ".entry end\nEXIT\nend:",
    ".entry b\na: EXIT\nb: BRA a",
]


@pytest.mark.parametrize("source", SOUND_STRUCTURE)
def test_sound_structure(source: str) -> None:
    assert isinstance(check(source), Analysis)


def test_unknown_labels_are_answered_with_the_known_ones() -> None:
    assert "the labels are a, b" in (refused("a: b: BRA c", "no label 'c'", 0).hint or "")
    assert "no labels" in (refused("BRA c", "no label 'c'", 0).hint or "")


def test_a_label_outside_the_program_is_refused() -> None:
    """The forms cannot write this, but a program can be put together by hand."""
    program = assemble("BRA a\na: EXIT")
    for place in (-1, 3):
        with pytest.raises(IsaError, match=f"label 'a' stands before instruction {place} of 2"):
            validate(replace(program, labels={"a": place}))


@pytest.mark.parametrize("name", ["r1", "p0", "shared", "a b", "", "é", "x" * 129])
def test_impossible_names_are_refused(name: str) -> None:
    with pytest.raises(IsaError, match="cannot be a name"):
        validate(Program(labels={name: 0}))


def test_two_parameters_of_one_name_are_refused() -> None:
    x = assemble(".buffer x F32").params
    with pytest.raises(IsaError, match="two parameters have the same name"):
        validate(Program(params=x + x))


# --- types ----------------------------------------------------------------------------------------

HEAD = "MOV_IMM.I32 r0, 1\nMOV_IMM.F32 r1, 1\nMOV_IMM.U32 r2, 1\nMOV_IMM.U8 r3, 1\nMOV_IMM.I128 r4, 1\n"
WRONG_TYPES = [
    ("ADD r9, r0, r1", "ADD needs operands of one type: lhs r0 is I32, rhs r1 is F32"),
    ("FMA r9, r0, r0, r1", "FMA needs operands of one type: a r0 is I32, c r1 is F32"),
    ("ADD r9, r255, r252", "ADD needs operands of one type: lhs r255 is U64, rhs r252 is U32"),
    ("SHL r9, r0, r2", "SHL needs operands of one type"),
    ("AND r9, r1, r1", "AND: lhs r1 is F32, but must be an integer"),
    ("EXP r9, r0", "EXP: src r0 is I32, but must be F16 BF16 F32 F64"),
    ("RELU r9, r2", "RELU: src r2 is U32, but must be"),
    ("SETcc.EQ p0, r0, r1", "SETcc needs operands of one type"),
    ("CVT.F32.I32 r9, r0", "CVT: src r0 is I32, but must be F32"),
    ("STG.F32 [class 0], r0", "STG: src r0 is I32, but must be F32"),
    ("LDG.F32 r9, [class 0+r1*4]", "LDG: the index r1 is F32, but must be I32 I64 U32 U64"),
    ("LDG.F32 r9, [class 0+r3*4]", "LDG: the index r3 is U8, but must be I32 I64 U32 U64"),
    ("LDG.F32 r9, [r1]", "LDG: the index r1 is F32"),
    ("LOOP r9, r3\nENDLOOP", "LOOP: iterations r3 is U8, but must be I32 I64 U32 U64"),
    ("LOOP r9, r1\nENDLOOP", "LOOP: iterations r1 is F32"),
    ("ClsGet r9, r4", "ClsGet: src r4 is I128, but must be an integer of at most 64 bits"),
    ("MIRROR r9, r1", "MIRROR: src r1 is F32"),
    ("BoundMap r9, r0", "BoundMap: src r0 is I32, but must be U32 U64"),
    ("NBRLoad.F32 r9, r1, k=0", "NBRLoad: src r1 is F32"),
    ("NBRStore.F32 r0, r0, k=0", "NBRStore: src r0 is I32, but must be F32"),
    ("PhaseWrite r1, class_id=0", "PhaseWrite: src r1 is F32"),
    ("ATOM.U32.Add r9, [class 0], r0", "ATOM: src r0 is I32, but must be U32"),
    ("ATOM.F32.Xor r9, [class 0], r1", "bits of a float cannot be combined"),
]


@of_each("source, message", WRONG_TYPES)
def test_operands_of_the_wrong_type(source: str, message: str) -> None:
    error = refused(HEAD + source, message, HEAD.count("\n"))
    if "bits of a float" not in message:
        assert "CVT" in (error.hint or ""), "the way out is shown"


UNWRITTEN = [
    ("ADD r0, r1, r2", "r1 is read before it is written", 0),
    ("MOV_IMM.I32 r1, 1\nADD r0, r1, r2", "r2 is read before it is written", 1),
    ("MOV r0, r0", "r0 is read before it is written", 0),
    ("LDG.F32 r1, [class 0+r0*4]", "r0 is read before it is written", 0),
    ("LDG.F32 r1, [r0]", "r0 is read before it is written", 0),
    ("LOOP r1, r0\nENDLOOP", "r0 is read before it is written", 0),
    ("BRA a, p0\na:", "p0 is read before it is written", 0),
    ("MOV_IMM.I32 r0, 1\nSEL r1, p3, r0, r0", "p3 is read before it is written", 1),
    ("BRA a\nMOV_IMM.I32 r0, 1\na: MOV r1, r0", "r0 is read before it is written", 2),
    ("CALL f\nMOV r1, r0\nEXIT\nf: RET", "r0 is read before it is written", 1),
    (".entry b\nMOV_IMM.I32 r0, 1\nb: MOV r1, r0", "r0 is read before it is written", 1),
]


@pytest.mark.parametrize(("source", "message", "index"), UNWRITTEN)
def test_slots_that_are_surely_unwritten(source: str, message: str, index: int) -> None:
    refused(source, message, index)


def test_code_that_cannot_be_reached_has_no_types_to_check() -> None:
    analysis = check("EXIT\nADD r0, r1, r2")
    assert analysis.reachable(0)
    assert not analysis.reachable(1)


SPECIALS = {252: Type.U32, 253: Type.U32, 254: Type.U32, 255: Type.U64}


@pytest.mark.parametrize(("index", "ty"), SPECIALS.items())
def test_special_registers_are_written_and_typed_from_the_start(index: int, ty: Type) -> None:
    analysis = check(f"MOV r0, r{index}\nMOV r1, r0")
    assert analysis.type_before(0, Register(index)) is ty
    assert analysis.type_before(1, Register(0)) is ty


@settings(max_examples=100)
@given(st.sampled_from([op for op in ROWS.values() if any(f.kind is Kind.DEF for f in op.fields)]), st.data())
def test_special_registers_cannot_be_written(op: Opcode, data: st.DataObject) -> None:
    operands = list(data.draw(instructions_of(op)).operands)
    written = next(k for k, f in enumerate(op.fields) if f.kind is Kind.DEF)
    operands[written] = Register(data.draw(st.sampled_from(sorted(SPECIALS))))
    with pytest.raises(IsaError, match=f"{op.name} cannot write the special register {operands[written]}"):
        op(*operands)


def test_a_write_changes_the_type_of_a_register() -> None:
    analysis = check("MOV_IMM.I32 r0, 1\nMOV_IMM.F32 r0, 1\nEXP r0, r0")
    assert analysis.type_before(1, Register(0)) is Type.I32
    assert analysis.type_before(2, Register(0)) is Type.F32


TWO_PATHS = """
    .buffer out I32
    MOV_IMM.I32 r3, {limit}
    CVT.U64.I32 r4, r255
    SETcc.LT p0, r4, r3
    BRA left, p0
    MOV_IMM.{right} r1, 1
    BRA join
left: MOV_IMM.{left} r1, 2
join: MOV_IMM.I32 r2, 5
    {use}
    STG.I32 [out+r255*4], r2
"""


@pytest.mark.parametrize(("left", "right"), list(itertools.permutations(["I32", "F32"])))
def test_two_types_on_two_paths(left: str, right: str) -> None:
    """Allowed if not read; an error if no path is right; at run time an IsaError in the lanes that are wrong.

    The order in which the paths stand in the program must not matter.
    """
    launch = LaunchConfig((1, 1, 1), (4, 1, 1))

    def source(use: str, limit: int = 2) -> str:
        return TWO_PATHS.format(left=left, right=right, use=use, limit=limit)

    assert run(source(""), launch, out=[0] * 4)["out"].tolist() == [5] * 4
    analysis = check(source("ADD r2, r1, r3"))
    assert analysis.possible(8, Register(1)) == {Type.I32, Type.F32}
    assert analysis.type_before(8, Register(1)) is None
    assert not analysis.certain(8)
    refused(source("AND r2, r1, r0"), "r0 is read before it is written", 8)
    refused(source("ADD r2, r1, r255"), "ADD needs operands of one type", 8)
    wrong_lane = 2 if right == "F32" else 0
    with pytest.raises(IsaError, match=rf"instruction 8, ADD r2, r1, r3: .*\(lane {wrong_lane}\)"):
        run(source("ADD r2, r1, r3"), launch, out=[0] * 4)
    all_right = 4 if left == "I32" else 0  # every lane takes the path that fits
    assert run(source("ADD r2, r1, r3", all_right), launch, out=[0] * 4)["out"][0] == all_right + (
        2 if all_right else 1
    )


@pytest.mark.parametrize("swap", [False, True])
def test_a_register_written_on_one_path_only(swap: bool) -> None:
    """Which path comes first in the program must not matter either."""
    skip, write = "BRA join", "MOV_IMM.I32 r1, 2"
    first, second = (write + "\nBRA join", "") if swap else (skip, write)
    source = f"""
        .buffer out I32
        MOV_IMM.U64 r0, {{limit}}
        SETcc.LT p0, r255, r0
        BRA left, p0
        {first}
    left: {second}
    join: MOV r2, r1
        STG.I32 [out+r255*4], r2
    """
    analysis = check(source.format(limit=1))
    index = len(assemble(source.format(limit=1))) - 2
    assert analysis.possible(index, Register(1)) == {Type.I32, None}
    good, bad = (0, 1) if swap else (1, 0)  # how many of one lane go left
    assert run(source.format(limit=good), out=[0])["out"].tolist() == [2]
    with pytest.raises(Exception, match="r1 is read before it is written"):
        run(source.format(limit=bad), out=[0])


def test_types_through_loops() -> None:
    """What the body leaves comes back to its start; zero rounds leave what was before."""
    source = "MOV_IMM.I32 r0, 1\nLOOP r1, 3\nMOV r2, r0\nMOV_IMM.F32 r0, 1\nENDLOOP\nMOV r3, r0"
    analysis = check(source)
    assert analysis.possible(2, Register(0)) == {Type.I32, Type.F32}
    assert analysis.possible(5, Register(0)) == {Type.I32, Type.F32}
    assert analysis.possible(5, Register(2)) == {Type.I32, Type.F32, None}
    assert analysis.type_before(2, Register(1)) is Type.U32


@pytest.mark.parametrize("ty", ["I32", "I64", "U32", "U64"])
def test_a_counter_has_the_type_of_its_count_whatever_the_body_does(ty: str) -> None:
    analysis = check(f"MOV_IMM.{ty} r0, 2\nLOOP r1, r0\nMOV r2, r1\nMOV_IMM.F64 r1, 0\nENDLOOP\nMOV r3, r1")
    assert analysis.type_before(2, Register(1)) is Type[ty]
    assert analysis.possible(5, Register(1)) == {Type[ty], Type.F64}


def test_types_through_calls() -> None:
    """A call gives what its function writes, and leaves alone what the function does not touch."""
    source = """
        MOV_IMM.I32 r0, 1
        MOV_IMM.F32 r1, 1
        CALL f
        EXP r2, r1
        MOV_IMM.F64 r0, 1
        CALL f
        EXP r3, r1
        EXP r4, r0
        EXIT
    f:  CVT.F32.F64 r9, r1
        RET
    """
    analysis = check(source)
    f = 9
    assert analysis.possible(f, Register(0)) == {Type.I32, Type.F64}
    assert analysis.type_before(7, Register(0)) is Type.F64, "not what it was at the other call"
    assert analysis.type_before(3, Register(9)) is Type.F64
    assert analysis.type_before(3, Register(1)) is Type.F32


def test_what_a_nested_function_writes_is_seen_by_the_outer_caller() -> None:
    source = "MOV_IMM.F32 r0, 1\nCALL f\nEXP r1, r0\nEXIT\nf: CALL g\nRET\ng: MOV_IMM.I32 r0, 1\nRET"
    refused(source, "EXP: src r0 is I32", 2)


def test_a_function_called_before_and_inside_a_loop() -> None:
    """Its RET comes back into the loop: that must not be taken for a jump into it."""
    source = """
        .buffer out I32
        MOV_IMM.I32 r0, 1
        CALL f
        LOOP r1, 3
        CALL f
        ENDLOOP
        STG.I32 [out], r0
        EXIT
    f:  ADD r0, r0, r0
        RET
    """
    assert run(source, out=[0])["out"].tolist() == [16]


def test_a_function_that_never_returns_makes_what_follows_unreachable() -> None:
    analysis = check("CALL f\nADD r0, r1, r2\nf: EXIT\nRET")
    assert not analysis.reachable(1)
    assert not analysis.reachable(3)


def test_recursion_reaches_a_fixed_point() -> None:
    source = "MOV_IMM.I32 r0, 3\nMOV_IMM.I32 r1, 1\nCALL f\nMOV r5, r3\nEXIT\nf: SUB r0, r0, r1\nMOV_IMM.I32 r2, 0\n"
    source += "SETcc.LE p0, r0, r2\nBRA done, p0\nCALL f\ndone: MOV r3, r0\nRET"
    analysis = check(source)
    assert analysis.type_before(3, Register(3)) is Type.I32
    assert analysis.possible(6, Register(2)) == {Type.I32, None}


def test_analysis_of_predicates() -> None:
    analysis = check("MOV_IMM.I32 r0, 1\nSETcc.EQ p0, r0, r0\nBRA a, p0\na: EXIT")
    assert analysis.certain(2)
    assert None in analysis.possible(1, Predicate(0))


@examples(60, 25)
@given(runnable_programs())
def test_run_time_types_are_among_those_that_were_found(case: Case) -> None:
    """Whatever a register holds when an instruction runs, the analysis said it might."""
    analysis = validate(case.program, case.launch)
    seen = []
    original = machine.LockstepMachine._step

    def watch(self: machine.LockstepMachine, decoded: machine.Decoded) -> bool:
        for register in decoded.reads:
            for types, _ in self.registers.signatures([register], self.lanes):
                seen.append(types[0] in analysis.possible(self.pc, register))
        return original(self, decoded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine.LockstepMachine, "_step", watch)
        run_case(case, ReferenceBackend())
    assert seen
    assert all(seen)


# --- handles and addresses ------------------------------------------------------------------------

PARAMS = (
    ".buffer x F32 4\n.buffer y F32\n.buffer w I128 2\n.scalar a F32\n.pool q\nMOV_IMM.F32 r0, 1\nMOV_IMM.U32 r1, 0\n"
)
BAD_ADDRESSES = [
    # undeclared, or declared as something else
    ("LDG.F32 r2, [z]", "'z' is not declared"),
    ("LDG.F32 r2, [z+r1*4]", "'z' is not declared"),
    ("LDG.F32 r2, [q]", "'q' is a pool, not a buffer"),
    ("LDG.F64 r2, [x]", "src is of type F64, but 'x' holds F32"),
    ("STG.F32 [w], r0", "dst is of type F32, but 'w' holds I128"),
    ("LDG.F32 r2, [pool z]", "the pool 'z' is not declared"),
    ("LDG.F32 r2, [pool x]", "the pool 'x' is not declared"),
    # scalars
    ("STG.F32 [a], r0", "'a' is a scalar: it can only be read"),
    ("LDG.F32 r2, [a+4]", "'a' is a scalar: it can only be read"),
    ("LDG.F32 r2, [a+r1*4]", "'a' is a scalar: it can only be read"),
    ("ATOM.F32.Add r2, [a], r0", "'a' is a scalar: it can only be read"),
    ("LDG.F64 r2, [a]", "src is of type F64, but 'a' holds F32"),
    ("ReduceAdd.F32 r2, [a], count=1", "'a' is a scalar: it can only be read"),
    # ranges
    ("LDG.F32 r2, [x+16]", "src [x+16] ends at byte 20 of 'x', which has 16"),
    ("LDG.I128 r2, [w+24]", "ends at byte 40 of 'w', which has 32"),
    ("LDG.F32 r2, [x+20+r1*4]", "ends at byte 20 of 'x', which has 16"),
    ("ReduceAdd.F32 r2, [x], count=5", "src_array [x] ends at byte 20 of 'x', which has 16"),
    ("ReduceAdd.F32 r2, [x+8], count=3", "ends at byte 20 of 'x', which has 16"),
    ("KVCacheUpdate.F32 [x], [y], position=2, batch=1, heads=1, head_dim=2", "ends at byte 24 of 'x', which has 16"),
    ("LDG.F32 r2, [class 96]", "class 96 does not exist"),
    ("LDG.F32 r2, [class -1]", "class -1 does not exist"),
    ("LDG.F32 r2, [class 0+12285]", "ends at byte 12289 of a class of 12288 bytes"),
    ("LDG.F32 r2, [class 0+12289+r1*4]", "ends at byte 12289 of a class of 12288 bytes"),
    ("ReduceAdd.F32 r2, [class 95+12284], count=2", "ends at byte 12292 of a class of 12288 bytes"),
    # alignment
    ("LDG.F32 r2, [x+2]", "src [x+2] is not aligned: F32 needs a multiple of 4 bytes"),
    ("LDG.I128 r2, [w+4]", "is not aligned: I128 needs a multiple of 8 bytes"),
    ("ReduceAdd.F32 r2, [x+2], count=1", "is not aligned"),
    ("LDS.F64 r2, [shared+4]", "src [shared+4] is not aligned: F64 needs a multiple of 8 bytes"),
    # the kind of memory
    ("LDG.F32 r2, [shared]", "LDG reaches everything but shared memory"),
    ("STG.F32 [shared+r1*4], r0", "STG reaches everything but shared memory"),
    ("LDS.F32 r2, [x]", "LDS reaches only shared memory"),
    ("STS.F32 [class 0], r0", "STS reaches only shared memory"),
    ("LDS.F32 r2, [r1]", "LDS reaches only shared memory"),
    # pools
    ("PoolLoad.F32 r2, z, offset=0", "the pool 'z' is not declared"),
    ("PoolStore.F32 z, r0, offset=0", "the pool 'z' is not declared"),
    ("PoolFree z", "the pool 'z' is not declared"),
    ("PoolAlloc q, size=4", "the pool 'q' is a parameter: the host makes and frees it"),
    ("PoolFree q", "the pool 'q' is a parameter: the host makes and frees it"),
]


@of_each("source, message", BAD_ADDRESSES)
def test_bad_addresses(source: str, message: str) -> None:
    refused(PARAMS + source, message, 2)


GOOD_ADDRESSES = [
    "LDG.F32 r2, [x+12]",
    "LDG.I128 r2, [w+16]",
    "LDG.I128 r2, [w+8]",  # aligned to 8 is aligned enough
    "LDG.F32 r2, [x+16+r1*4]",  # an index may be negative: seen at run time
    "LDG.F32 r2, [y+4000000]",  # a buffer of any size: seen at run time
    "LDG.F32 r2, [a]",
    "LDG.F32 r2, [pool q+1]",
    "LDG.F32 r2, [class 95+12284]",
    "LDG.F32 r2, [class 5+255]",  # class memory needs no alignment, and crosses pages
    "LDG.F32 r2, [r1]",
    "ReduceAdd.F32 r2, [x], count=4",
    "ReduceAdd.F32 r2, [x+16], count=0",
    "KVCacheUpdate.F32 [x], [y], position=1, batch=1, heads=1, head_dim=2",
    "PoolAlloc made, size=4\nPoolStore.F32 made, r0, offset=0\nPoolFree made",
]


@pytest.mark.parametrize("ty", ["I32", "I64"])
@pytest.mark.parametrize("place", ["[x+20+r3*4]", "[class 0+12292+r3*4]", f"[x+{1 << 48}+r3*1048576]"])
def test_a_signed_index_may_reach_back_from_beyond_the_end(place: str, ty: str) -> None:
    assert check(f"{PARAMS}MOV_IMM.{ty} r3, -2\nLDG.F32 r2, {place}").reachable(3)
    refused(f"{PARAMS}MOV_IMM.{ty.replace('I', 'U')} r3, 2\nLDG.F32 r2, {place}", "ends at byte", 3)


def test_an_index_that_may_be_signed_on_one_path_may_reach_back() -> None:
    head = f"{PARAMS}SETcc.EQ p0, r252, r254\nMOV_IMM.U32 r3, 1\nBRA a, p0\nMOV_IMM.{{}} r3, 1\na:"
    assert check(head.format("I32") + "\nLDG.F32 r2, [x+20+r3*4]").reachable(6)
    refused(head.format("U64") + "\nLDG.F32 r2, [x+20+r3*4]", "ends at byte 20 of 'x', which has 16", 6)


def test_what_is_reached_from_beyond_the_end() -> None:
    source = ".buffer x F32 4\nMOV_IMM.I64 r0, {}\nLDG.F32 r1, [x+20+r0*4]\nSTG.F32 [x], r1"
    assert list(run(source.format(-2), x=np.array([1, 2, 3, 4]))["x"]) == [4, 2, 3, 4]
    assert list(run(source.format(-5), x=np.array([1, 2, 3, 4]))["x"]) == [1, 2, 3, 4]
    for outside in (-1, -6, 0):
        with pytest.raises(ExecutionFailed, match="out of range"):
            run(source.format(outside), x=np.array([1, 2, 3, 4]))


@pytest.mark.parametrize("source", GOOD_ADDRESSES)
def test_good_addresses(source: str) -> None:
    assert check(PARAMS + source).reachable(2)


SHARED = [
    ("LDS.F32 r0, [shared+60]", None),
    ("LDS.F32 r0, [shared+64]", "src [shared+64] ends at byte 68 of 64 bytes of shared memory"),
    ("LDS.I128 r0, [shared+56]", "ends at byte 72 of 64 bytes"),
    ("ReduceAdd.F32 r0, [shared], count=16", None),
    ("ReduceAdd.F32 r0, [shared], count=17", "ends at byte 68 of 64 bytes"),
    ("LDS.F32 r0, [shared+64+r255*4]", None),
    ("LDS.F32 r0, [shared+68+r255*4]", "ends at byte 68 of 64 bytes"),
    ("CVT.U64.I64 r1, r255\nLDS.F32 r0, [shared+68+r1*4]", None),
]


@pytest.mark.parametrize(("source", "message"), SHARED)
def test_shared_addresses_are_checked_against_the_launch(source: str, message: str | None) -> None:
    check(source)  # without a launch nothing is known of its size
    if message is None:
        assert check(source, SHARED_64).reachable(0)
        return
    error = refused(source, message, 0, SHARED_64)
    assert f"shared_memory={message.split('byte ')[1].split()[0]}" in (error.hint or "")


OVERLAPS = [
    # rows that may work in place do so in the very same place only
    ("ParallelMap.F32.Abs [y], [y], count=4", None),
    ("ParallelMap.F32.Abs [y+4], [y], count=4", "dst_array [y+4] overlaps src_array [y]"),
    ("ParallelMap.F32.Abs [y+16], [y], count=4", None),
    ("ParallelMapBinary.F32.Add [y], [y], [y], count=4", None),
    ("ParallelMapBinary.F32.Add [y+4], [y+4], [y], count=4", "dst_array [y+4] overlaps src_b [y]"),
    ("Softmax.F32 [y], [y], n=4", None),
    # others never overlap
    ("GEMM.F32 [y], [y], [x], m=2, n=2, k=2", "c [y] overlaps a [y]: they must be apart"),
    ("GEMM.F32 [y], [x], [y+12], m=2, n=2, k=2", "c [y] overlaps b [y+12]: they must be apart"),
    ("GEMM.F32 [y], [x], [y+16], m=2, n=2, k=2", None),
    ("GEMM.F32 [y], [x], [x], m=2, n=2, k=2", None),  # inputs may be one
    ("GEMM.F32 [y], [y+4], [x], m=2, n=2, k=0", None),  # an empty array overlaps nothing
    ("AllGather.F32 [y], [y], n=2", "output [y] overlaps input [y]: they must be apart"),
    ("AllGather.F32 [y+4], [y], n=2", "output [y+4] overlaps input [y]: they must be apart"),
    ("AllReduce.F32.Sum [y], n=2", None),
    # the same offset in different memory is another place
    ("GEMM.F32 [y], [x], [class 0], m=2, n=2, k=2", None),
    ("GEMM.F32 [class 1], [class 0], [x], m=2, n=2, k=2", None),
    ("GEMM.F32 [class 0], [class 0], [x], m=2, n=2, k=2", "c [class 0] overlaps a [class 0]"),
    ("GEMM.F32 [shared], [shared+8], [x], m=2, n=2, k=2", "c [shared] overlaps a [shared+8]"),
    ("GEMM.F32 [pool q], [pool q+8], [x], m=2, n=2, k=2", "c [pool q] overlaps a [pool q+8]"),
]


@pytest.mark.parametrize(("source", "message"), OVERLAPS)
def test_overlap_of_array_operands(source: str, message: str | None) -> None:
    if message is None:
        assert check(PARAMS + source).reachable(2)
    else:
        refused(PARAMS + source, message, 2)


ARRAY_PAIRS = [
    (op, out, source)
    for op in ROWS.values()
    for k, out in enumerate(op.memory)
    for n, source in enumerate(op.memory)
    if isinstance(op.meaning, Arrays) and out.kind is not Kind.READ and out is not source and out.ty == source.ty
    if source.kind is not Kind.WRITE or k < n  # of two outputs the first is told first
]


@of_each("op, out, source", ARRAY_PAIRS)
def test_every_array_row_refuses_a_partial_overlap(op: Opcode, out: Field, source: Field) -> None:
    """The output one element behind each input, whatever the row."""
    b, ty = ProgramBuilder(), next((t for t in Type if t in op.types), Type.I8)
    sizes = {Kind.TYPE: ty, Kind.COUNT: 4, Kind.REAL: 1.0, Kind.PAIRS: ((0, 0),)}
    given = {f.name: sizes[f.kind] for f in op.fields if f.kind in sizes}
    given |= {f.name: (4, 4) for f in op.fields if f.kind is Kind.COUNTS and f.default is REQUIRED}
    given |= {f.name: next(iter(f.choices)) for f in op.fields if f.kind is Kind.CHOICE}
    given |= {f.name: (4,) for f in op.fields if f.name == "batches" and f.name in given}  # as many as there are heads
    given |= {f.name: 0 for f in op.fields if f.name == "position"}  # or it would write behind its input
    for f in op.memory:
        element = f.ty if isinstance(f.ty, Type) else ty
        if f not in (out, source):
            given[f.name] = b.buffer(f.name, element).at(0)
    both = b.buffer("both", out.ty if isinstance(out.ty, Type) else ty)
    program = replace(b.build(), instructions=(op(**given, **{source.name: both.at(0), out.name: both.at(1)}),))
    with pytest.raises(IsaError, match=rf"{out.name} \[both.*\] overlaps {source.name} \[both\]"):
        validate(program)


EXTENSION_RULES = [
    ("QuantizedGEMM [c], [b], [b], a_scale=0, b_scale=1, c_scale=1, m=1, n=1, k=1", "scales must be positive"),
    ("QuantizedGEMM [c], [b], [b], a_scale=nan, b_scale=1, c_scale=1, m=1, n=1, k=1", "scales must be positive"),
    ("QuantizedGEMM [c], [b], [b], a_scale=1, b_scale=1, c_scale=inf, m=1, n=1, k=1", "scales must be positive"),
    ("QuantizedGEMM [c], [b], [b], a_scale=1, b_scale=1, c_scale=1, m=1, n=1, k=65537", "the limit is 65536"),
    ("TensorContract.F32 [y], [x], [x], shape_a=(2), shape_b=(3), contract_dims=((0, 0))", "differ in length"),
    ("TensorContract.F32 [y], [x], [x], shape_a=(2), shape_b=(2), contract_dims=((1, 0))", "axes (1, 0)"),
    ("TensorContract.F32 [y], [x], [x], shape_a=(2, 2), shape_b=(2, 2), contract_dims=((0, 0), (0, 1))", "twice"),
    ("Conv2D.F32 [y], [x], [x], batch=1, in_channels=1, out_channels=1, height=1, width=1, kernel_h=2, kernel_w=1",
     "does not fit"),
    ("Conv2D.F32 [y], [x], [x], batch=1, in_channels=1, out_channels=1, height=1, width=1, kernel_h=1, kernel_w=1, "
     "stride=(0, 1)", "stride at least 1"),
    ("Conv2D.F32 [y], [x], [x], batch=1, in_channels=1, out_channels=1, height=1, width=1, kernel_h=1, kernel_w=1, "
     "padding=(1)", "must be pairs"),
    ("GroupNorm.F32 [y], [x], [x], [x], batch=1, channels=3, groups=2, spatial=1", "do not divide"),
    ("RoPE.F32 [y], [x], [x], batch=1, seq_len=1, heads=1, head_dim=3", "must be even"),
    ("ParallelMap.U32.Exp [u], [u], count=1", "Exp is not defined on U32"),
    ("ParallelMapBinary.U32.Pow [u], [u], [u], count=1", "Pow is not defined on U32"),
    ("AllReduce.F32.Sum [y], n=1, devices=()", "devices must be distinct and at least one"),
    ("AllReduce.F32.Sum [y], n=1, devices=(0, 0)", "devices must be distinct and at least one"),
    ("AllReduce.F32.Sum [y+r255*4], n=1", "is not the same memory for every lane"),
    ("AllReduce.F32.Sum [shared], n=1", "is not the same memory for every lane"),
    ("AllGather.F32 [y], [x+r255*4], n=1", "is not the same memory for every lane"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message"), EXTENSION_RULES)
def test_rules_of_extensions(source: str, message: str) -> None:
    params = ".buffer x F32\n.buffer y F32\n.buffer u U32\n.buffer c I8\n.buffer b I8\n"
    refused(params + source, message, 0)


@examples(150, 60)
@given(programs())
def test_any_program_is_judged(program: Program) -> None:
    """An analysis or an IsaError, never anything else, and the same answer every time."""

    def verdict() -> str:
        try:
            return str(sorted(validate(program, SHARED_64).states))
        except IsaError as error:
            return str(error)

    assert verdict() == verdict()


# --- launches ---------------------------------------------------------------------------------------


def test_launches_take_integers_of_any_kind() -> None:
    launch = LaunchConfig([np.int64(2), 1, 1], (np.uint8(200), 1, 1), np.int32(64))  # type: ignore[arg-type]
    assert launch == LaunchConfig((2, 1, 1), (200, 1, 1), 64)
    assert hash(launch) == hash(LaunchConfig((2, 1, 1), (200, 1, 1), 64))
    assert launch.total_threads == 400  # no wrapping to 8 bits
    assert LaunchConfig.linear(np.int64(300)) == LaunchConfig.linear(300)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaunchConfig(4),
        lambda: LaunchConfig("abc"),
        lambda: LaunchConfig((1, 1)),
        lambda: LaunchConfig((1 << 32, 1, 1)),
        lambda: LaunchConfig((1, 1, 1), (1.0, 1, 1)),
        lambda: LaunchConfig(shared_memory=1.5),
        lambda: LaunchConfig(shared_memory=None),
        lambda: LaunchConfig.linear("a"),
        lambda: LaunchConfig.linear(5, 0),
        lambda: LaunchConfig.linear(5, 2.5),
        lambda: LaunchConfig.grid_2d(4, 0),
        lambda: LaunchConfig.grid_2d(4, 4, (0, 4)),
    ],
)
def test_launches_that_make_no_sense_are_refused(make: Callable[[], LaunchConfig]) -> None:
    with pytest.raises(IsaError, match=r"from 1 to 2\^32 - 1|at least one lane|between 0 and 2\^30"):
        make()
