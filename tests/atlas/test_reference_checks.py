"""The reference machine: what it must notice that real hardware would get wrong, and what it must get right.

Random programs are compared with a lane-by-lane interpreter written here, which knows nothing of groups of
lanes; then every check has its own table of programs that break one rule, and of their neighbours that do not.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import Case, assert_same, bit_patterns, is_exact, runnable_programs, ulp_distance, values_of
from strategies import run as run_case

from batches import of_each
from effort import examples
from eshkol.atlas import classes
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Kind, Values
from eshkol.atlas.jsonform import dumps, loads
from eshkol.atlas.numerics import evaluate
from eshkol.atlas.operands import AtomicOperation, Indexed, Register, Shared, SpecialRegister, to_float
from eshkol.atlas.program import LaunchConfig, ParamKind, Program, disassemble
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Array, Type, decode, encode
from eshkol.atlas.writing import format_instruction
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import AllocationFailed, BackendUnavailable, ExecutionFailed, InvalidBuffer, IsaError

ONE = LaunchConfig()
TWO = LaunchConfig((1, 1, 1), (2, 1, 1), shared_memory=64)
FOUR = LaunchConfig((1, 1, 1), (4, 1, 1), shared_memory=64)
BLOCKS = LaunchConfig((2, 1, 1), (2, 1, 1), shared_memory=64)


class Unwritten(int):
    """A buffer of so many elements that nothing has been written to."""


def run(
    source: str, launch: LaunchConfig = ONE, backend: ReferenceBackend | None = None, **values: Any
) -> dict[str, list]:
    """What the buffers hold after a source has run.

    Buffers are given as lists (or counts of `Unwritten` elements), scalars and pools as they are.
    """
    backend, program = backend or ReferenceBackend(step_limit=100_000), assemble(source)
    params: dict[str, Any] = {}
    for p in program.params:
        value = values[p.name]
        if p.kind is not ParamKind.BUFFER:
            params[p.name] = value
        elif isinstance(value, Unwritten):
            params[p.name] = backend.allocate_typed(p.ty, int(value))
        else:
            params[p.name] = backend.array(to_array(value, p.ty), p.ty)
    backend.execute(program, launch, params)
    return {p.name: params[p.name].read().tolist() for p in program.params if p.kind is ParamKind.BUFFER}


def fails(
    source: str, message: str, index: int, lane: int, launch: LaunchConfig = ONE,
    error: type[Exception] = ExecutionFailed, **values: Any,
) -> Exception:  # fmt: skip
    """The source stops at this instruction for this lane; the backend is as good as before."""
    backend = ReferenceBackend(step_limit=10_000)
    with pytest.raises(error) as caught:
        run(source, launch, backend, **values)
    said = caught.value.message
    assert message in said
    assert said.startswith(f"instruction {index}, {format_instruction(assemble(source).instructions[index])}: ")
    assert said.endswith(f" (lane {lane})")
    alive = run(".buffer y U64\nSTG.U64 [y+r255*8], r255", TWO, backend, y=Unwritten(2))
    assert alive["y"] == [0, 1], "the backend still works"
    return caught.value


# --- against an interpreter of single lanes -------------------------------------------------------


def lane_by_lane(case: Case) -> dict[str, Array]:
    """The outputs of a case, from lanes that run alone, the last one first, from barrier to barrier."""
    memory: dict[str, bytearray] = {}
    for p in case.program.params:
        values = case.inputs.get(p.name, [0] * (p.count or 1))
        memory[p.name] = bytearray(encode(to_array(values, p.ty), p.ty).tobytes())
    for block in reversed(range(case.launch.blocks)):
        shared = bytearray(case.launch.shared_memory)
        size = case.launch.block_size
        lanes = [one_lane(case, memory, shared, block * size + k) for k in reversed(range(size))]
        while lanes:
            lanes = [lane for lane in lanes if next(lane, "ended") != "ended"]
    result = {}
    for p in case.outputs:
        raw = np.frombuffer(bytes(memory[p.name]), np.uint8).reshape(p.count, p.ty.size_bytes)
        result[p.name] = bit_patterns(decode(raw, p.ty), p.ty)
    return result


def one_lane(case: Case, memory: dict[str, bytearray], shared: bytearray, lane: int) -> Iterator[str]:
    """Run one lane; stops at each barrier."""
    program, launch = case.program, case.launch
    x, y, z = launch.block
    gx, gy, _ = launch.grid
    block, within = divmod(lane, x * y * z)
    special = {
        "LaneX": within % x, "LaneY": within // x % y, "LaneZ": within // x // y,
        "BlockX": block % gx, "BlockY": block // gx % gy, "BlockZ": block // gx // gy,
    }  # fmt: skip
    slots: dict[int, tuple[Type, Array]] = {}
    for index, ty, value in ((252, Type.U32, special["LaneX"]), (253, Type.U32, special["BlockX"]),
                             (254, Type.U32, x), (255, Type.U64, lane)):  # fmt: skip
        slots[index] = ty, np.array([value], ty.dtype)
    flags: dict[int, Array] = {}
    calls: list[int] = []
    rounds: dict[tuple[int, int], list[int]] = {}
    ends, starts = matching_loops(program)
    pc = 0

    def place(address: Any) -> tuple[bytearray, int]:
        base = address.base if isinstance(address, Indexed) else address
        offset = base.offset
        if isinstance(address, Indexed):
            offset += int(slots[address.index.index][1][0]) * address.scale
        return (shared if isinstance(base, Shared) else memory[base.handle]), offset

    def load(address: Any, ty: Type) -> Array:
        data, offset = place(address)
        return decode(np.frombuffer(bytes(data[offset : offset + ty.size_bytes]), np.uint8)[None, :], ty)

    def store(address: Any, ty: Type, value: Array) -> None:
        data, offset = place(address)
        data[offset : offset + ty.size_bytes] = encode(value, ty).tobytes()

    while pc < len(program):
        i = program.instructions[pc]
        name = i.op.name
        pc += 1
        if isinstance(i.op.meaning, Values):
            inputs, ty = [], None
            for f, operand in zip(i.op.fields, i.operands, strict=True):
                if f.kind is Kind.USE:
                    own, value = slots[operand.index]
                    ty = ty or own
                    inputs.append(value.copy())
                elif f.kind is Kind.PUSE:
                    inputs.append(flags[operand.index])
            result = evaluate(i, inputs, ty or i.value.ty)
            for p in i.of_kind(Kind.PDEF):
                flags[p.index] = result
            for register in i.writes():
                fixed = next(f.ty for f in i.op.fields if f.kind is Kind.DEF)
                out = {"T": ty, "value": getattr(i, "value", None) and i.value.ty, "dst_ty": getattr(i, "dst_ty", None)}
                own = fixed if isinstance(fixed, Type) else out[fixed]
                held = np.empty(1, own.dtype)
                held[:] = result
                slots[register.index] = own, held
        elif name in ("LDG", "LDS"):
            slots[i.dst.index] = i.ty, load(i.src, i.ty)
        elif name in ("STG", "STS"):
            store(i.dst, i.ty, slots[i.src.index][1])
        elif name == "ATOM":
            step = ROWS[i.operation.value](Register(0), Register(1), Register(2))
            before = load(i.address, i.ty)
            store(i.address, i.ty, evaluate(step, [before, slots[i.src.index][1]], i.ty))
            slots[i.dst.index] = i.ty, before
        elif name == "SREG":
            slots[i.dst.index] = Type.U32, np.array([special[i.which.name]], np.uint32)
        elif name == "BRA":
            if i.pred is None or flags[i.pred.index][0]:
                pc = program.labels[i.target.name]
        elif name == "CALL":
            calls.append(pc)
            pc = program.labels[i.target.name]
        elif name == "RET":
            pc = calls.pop()
        elif name == "EXIT":
            return
        elif name == "LOOP":
            ty, count = Type.U32, i.iterations
            if isinstance(count, Register):
                ty, count = slots[count.index][0], int(slots[count.index][1][0])
            rounds[len(calls), pc - 1] = [0, count]
            slots[i.counter.index] = ty, np.zeros(1, ty.dtype)
            if not count:
                pc = ends[pc - 1] + 1
        elif name == "ENDLOOP":
            start = starts[pc - 1]
            state = rounds[len(calls), start]
            state[0] += 1
            if state[0] < state[1]:
                count = program.instructions[start].iterations
                counter = program.instructions[start].counter
                ty = slots[counter.index][0] if isinstance(count, Register) else Type.U32
                slots[counter.index] = ty, np.array([state[0]], ty.dtype)
                pc = start + 1
        elif name == "BarSync":
            yield "barrier"
        else:
            raise AssertionError(f"random programs have {name} now: teach it to this interpreter")


def matching_loops(program: Program) -> tuple[dict[int, int], dict[int, int]]:
    ends, starts, open_loops = {}, {}, []
    for k, i in enumerate(program.instructions):
        if i.op.name == "LOOP":
            open_loops.append(k)
        elif i.op.name == "ENDLOOP":
            starts[k] = open_loops.pop()
            ends[starts[k]] = k
    return ends, starts


@examples(150, 30)
@given(runnable_programs())
def test_groups_of_lanes_compute_what_single_lanes_do(case: Case) -> None:
    assert_same(run_case(case, ReferenceBackend()), lane_by_lane(case))


@examples(80, 18)
@given(runnable_programs(wanted=is_exact))
def test_extensions_and_their_expansions_give_the_same_bits(case: Case) -> None:
    assert_same(run_case(case, ReferenceBackend()), run_case(case, ReferenceBackend(expanded=True)))


@examples(30, 12)
@given(runnable_programs())
def test_a_program_that_went_through_text_and_json_runs_the_same(case: Case) -> None:
    once = run_case(case, ReferenceBackend())
    assert_same(once, run_case(case, ReferenceBackend(), assemble(disassemble(case.program))))
    assert_same(once, run_case(case, ReferenceBackend(), loads(dumps(case.program))))


@examples(60, 18)
@given(runnable_programs(wanted=is_exact, traps=True))
def test_both_forms_of_a_program_fail_alike(case: Case) -> None:
    outcomes = []
    for expanded in (False, True):
        try:
            outcomes.append(run_case(case, ReferenceBackend(expanded=expanded)))
        except ExecutionFailed as error:
            outcomes.append(re.sub(r"^instruction \d+", "", error.message))
    assert type(outcomes[0]) is type(outcomes[1])
    if isinstance(outcomes[0], dict):
        assert_same(*outcomes)
    else:
        assert outcomes[0] == outcomes[1], "the same instruction, lane and reason"


@pytest.mark.slow  # it judges the drawing, which changes rarely
def test_random_programs_are_worth_running() -> None:
    """The strategy reaches nearly every row with a value, every control instruction and every family of types."""
    rows: Counter[str] = Counter()
    types: set[Type] = set()
    several_lanes = []

    # Hypothesis also draws constants it finds in modules that other tests have loaded: this is not always the same.
    @settings(max_examples=300, derandomize=True, database=None)
    @given(runnable_programs())
    def collect(case: Case) -> None:
        rows.update({i.op.name for i in case.program.instructions})
        types.update(p.ty for p in case.program.params)
        several_lanes.append(case.launch.total_threads > 1)

    collect()
    values = [op.name for op in ROWS.values() if isinstance(op.meaning, Values)]
    assert len([name for name in values if rows[name]]) > 0.9 * len(values)
    assert all(
        rows[name] > 5 for name in ("LOOP", "BRA", "CALL", "RET", "EXIT", "BarSync", "STS", "LDS", "ATOM", "CVT")
    )
    assert len(types) > 16
    assert sum(several_lanes) > len(several_lanes) / 2


@pytest.mark.parametrize("ty", [Type.F16, Type.BF16, Type.F32, Type.F64])
def test_the_distance_between_floats(ty: Type) -> None:
    """The measure that comparisons within a tolerance use counts steps between neighbouring floats."""
    start = bit_patterns(to_array([1.0, -3.5, 0.0, 1000.0], ty), ty)
    for steps in (0, 1, 3):
        assert ulp_distance(start, start + np.asarray(steps, start.dtype), ty) == steps
    zeros = bit_patterns(to_array([0.0, -0.0], ty), ty)
    assert ulp_distance(zeros[:1], zeros[1:], ty) == 0
    assert ulp_distance(zeros[:1], zeros[1:] + np.asarray(1, zeros.dtype), ty) == 1
    special = bit_patterns(to_array([np.nan, np.inf, 1.0], ty), ty)
    assert ulp_distance(special, special, ty) == 0
    assert ulp_distance(special, special[[1, 1, 2]], ty) == np.inf
    assert values_of(special, ty)[1:].tolist() == [np.inf, 1.0]


def test_an_extension_that_cannot_be_reached_is_no_obstacle_to_expansion() -> None:
    """Nothing is known of its types, so there is nothing to expand it into."""
    source = ".buffer y F32\nMOV_IMM.F32 r0, 4\nRCP r1, r0\nSTG.F32 [y], r1\nEXIT\nRCP r2, r3\nRSQRT r0, r2"
    assert run(source, backend=ReferenceBackend(expanded=True), y=Unwritten(1))["y"] == [0.25]


# --- barriers that not all lanes reach ------------------------------------------------------------

LANE_0 = "MOV_IMM.U32 r0, 0\nSETcc.EQ p0, r252, r0\n"  # p0 holds in the first lane of each block
BLOCK_0 = "MOV_IMM.U32 r0, 0\nSETcc.EQ p0, r253, r0\n"

DIVERGENT = [
    # source, what the error says, instruction and lane
    (LANE_0 + "BRA out, p0\nBarSync\nout:", "1 of 2 lanes of block 0 are here, but lane 0 has ended", 3, 1, TWO),
    (LANE_0 + "BRA go, p0\nEXIT\ngo: BarSync", "1 of 2 lanes of block 0 are here, but lane 1 has ended", 4, 0, TWO),
    (LANE_0 + "BRA a, p0\nBarSync\nEXIT\na: BarSync", "lane 0 waits at another barrier", 3, 1, TWO),
    (LANE_0 + "BRA a, p0\nBarSync id=1\nEXIT\na: BarSync id=1", "lane 0 waits at another barrier", 3, 1, TWO),
    (LANE_0 + "BRA a, p0\nGridSync\nEXIT\na: BarSync", "lane 0 waits at another barrier", 3, 1, TWO),
    # lane 0 goes round once, lane 1 twice
    ("MOV_IMM.U32 r0, 1\nADD r1, r252, r0\nLOOP r2, r1\nBarSync\nENDLOOP", "lane 0 has ended", 3, 1, TWO),
    ("MOV_IMM.U32 r0, 1\nADD r1, r252, r0\nLOOP r2, r1\nBarSync\nENDLOOP\nBarSync", "waits at another", 3, 1, TWO),
    (LANE_0 + "BRA a, p0\nCALL f\nEXIT\na: EXIT\nf: BarSync\nRET", "lane 0 has ended", 6, 1, TWO),
    # the launch as a whole
    (LANE_0 + "BRA out, p0\nGridSync\nout:", "1 of 2 lanes of the launch are here, but lane 0 has ended", 3, 1, TWO),
    (BLOCK_0 + "BRA out, p0\nGridSync\nout:", "2 of 4 lanes of the launch are here, but lane 0", 3, 2, BLOCKS),
    (LANE_0 + "BRA out, p0\nPoolAlloc q, size=4\nout:", "divergent barrier", 3, 1, TWO),
    (LANE_0 + "PoolAlloc q, size=4\nBRA out, p0\nPoolFree q\nout:", "divergent barrier", 4, 1, TWO),
    # instructions that all lanes carry out together
    (LANE_0 + "BRA out, p0\nParallelMap.F32.Abs [class 0], [class 1], count=1\nout:", "of the launch", 3, 1, TWO),
    (BLOCK_0 + "BRA out, p0\nParallelMap.F32.Abs [class 0], [class 1], count=1\nout:", "of the launch", 3, 2, BLOCKS),
    (LANE_0 + "BRA out, p0\nParallelMap.F32.Abs [shared], [class 1], count=1\nout:", "of block 0", 3, 1, TWO),
    (LANE_0 + "BRA out, p0\nAllReduce.F32.Sum [class 0], n=1\nout:", "of the launch", 3, 1, TWO),
]


@pytest.mark.parametrize(("source", "message", "index", "lane", "launch"), DIVERGENT)
def test_divergent_barriers(source: str, message: str, index: int, lane: int, launch: LaunchConfig) -> None:
    error = fails(source, message, index, lane, launch)
    assert "divergent barrier" in error.message


@pytest.mark.parametrize("ty", [t for t in Type if not t.is_wide], ids=str)
def test_lanes_of_a_subgroup_exchange_registers(ty: Type) -> None:
    """Lane by lane within each block, whose lanes are counted in x before y; the width is the machine's."""
    launch = LaunchConfig((2, 1, 1), (4, 2, 1))
    source = f".buffer x {ty}\nLDG.{ty} r0, [x + r255*{ty.size_bytes}]\nSubGroupXor.{ty} r0, r0, mask=%d\n"
    source += f"STG.{ty} [x + r255*{ty.size_bytes}], r0"
    given = to_array(np.arange(16), ty)
    for mask in (1, 2, 4, 5):
        found = run(source % mask, launch, x=given)["x"]
        assert np.asarray(found, np.float64).tolist() == [float(lane ^ mask) for lane in range(16)]


@pytest.mark.parametrize(
    ("source", "message", "index", "lane"),
    [
        ("SubGroupXor.U32 r1, r252, mask=32", "mask 32 leaves the sub-group, which has 32 lanes", 0, 0),
        ("SubGroupXor.U32 r1, r252, mask=2", "lane 2, with which it exchanges, is not here", 0, 0),
        (LANE_0 + "BRA out, p0\nSubGroupXor.U32 r1, r252, mask=1\nout:", "lane 0, with which it exchanges", 3, 1),
    ],
)
def test_lanes_that_do_not_exchange(source: str, message: str, index: int, lane: int) -> None:
    fails(source, message, index, lane, TWO)


def test_the_cpu_refuses_exchanges_by_name() -> None:
    with pytest.raises(BackendUnavailable, match="native code has no SubGroupXor"):
        CpuBackend().execute(assemble("SubGroupXor.U32 r1, r252, mask=1"), TWO)


CONVERGENT = [
    (BLOCK_0 + "BRA out, p0\nBarSync\nout:", BLOCKS),  # a whole block may leave out a barrier of blocks
    (BLOCK_0 + "BRA out, p0\nParallelMap.F32.Abs [shared], [class 1], count=1\nout:", BLOCKS),
    (LANE_0 + "BRA a, p0\nCALL f\nBRA b\na: CALL f\nBRA b\nf: BarSync\nRET\nb:", TWO),  # one barrier, two callers
    (LANE_0 + "BRA a, p0\nBRA a\na: BarSync", TWO),
    ("LOOP r0, 3\nBarSync\nENDLOOP", TWO),
    ("BarSync", ONE),
    ("GridSync", BLOCKS),
]


@pytest.mark.parametrize(("source", "launch"), CONVERGENT)
def test_barriers_that_all_reach(source: str, launch: LaunchConfig) -> None:
    lanes = launch.total_threads
    out = run(f".buffer y U64\n{source}\nSTG.U64 [y+r255*8], r255", launch, y=Unwritten(lanes))
    assert out["y"] == list(range(lanes))


# --- races ----------------------------------------------------------------------------------------

# r1 = the lane, r2 = the other lane of the block, as U32; every lane has written its own word, behind a barrier.
OWN = """
    MOV r1, r252
    MOV_IMM.U32 r9, 1
    XOR r2, r1, r9
    STS.U32 [shared+r1*4], r1
    BarSync
"""
RACES = [
    # what two lanes do without a barrier between
    ("STS.U32 [shared], r1", "written here, written by lane 1", 5, 0),
    ("STS.U32 [shared], r9", "written here, written by lane 1", 5, 0),  # even the same value
    ("STS.U32 [shared+r1*4], r1\nLDS.U32 r3, [shared+r2*4]", "read here, written by lane 1", 6, 0),
    ("LDS.U32 r3, [shared+r2*4]\nSTS.U32 [shared+r1*4], r1", "written here, read by lane 1", 6, 0),
    ("LDS.U32 r3, [shared]\nSTS.U32 [shared], r1", "written here, read by several lanes", 6, 0),
    ("LDS.U32 r3, [shared]\nSTS.U32 [shared+r1*4], r1", "written here, read by several lanes", 6, 0),
    ("STS.U32 [shared+r1*4], r1\nMemFence.Block\nLDS.U32 r3, [shared+r2*4]", "read here, written", 7, 0),
    # lanes apart in the program
    ("SETcc.EQ p0, r1, r9\nBRA b, p0\nSTS.U32 [shared], r1\nBRA c\nb: STS.U32 [shared], r1\nc: BarSync",
     "written here, written by lane 0", 9, 1),
    ("SETcc.EQ p0, r1, r9\nBRA b, p0\nSTS.U32 [shared], r1\nBRA c\nb: LDS.U32 r3, [shared]\nc: BarSync",
     "read here, written by lane 0", 9, 1),
    # one byte is enough
    ("SETcc.EQ p0, r1, r9\nBRA b, p0\nSTS.U32 [shared], r1\nBRA c\nb: CVT.U32.U8 r4, r1\nSTS.U8 [shared+3], r4\n"
     "c: BarSync", "written here, written by lane 0", 10, 1),
    # atomics only meet atomics
    ("ATOM.U32.Add r3, [shared], r9\nLDS.U32 r4, [shared]", "read here, written by several lanes", 6, 0),
    ("ATOM.U32.Add r3, [shared+r1*4], r9\nLDS.U32 r4, [shared+r2*4]", "read here, written by lane 1", 6, 0),
    ("ATOM.U32.Add r3, [shared], r9\nSTS.U32 [shared+r1*4], r9", "written here, written by several lanes", 6, 0),
    ("LDS.U32 r4, [shared]\nATOM.U32.Add r3, [shared], r9", "written here, read by several lanes", 6, 0),
    ("STS.U32 [shared+r1*4], r1\nATOM.U32.Add r3, [shared], r9", "written here, written by lane 0", 6, 1),
    ("STS.U32 [shared+r1*4], r1\nATOM.U32.Add r3, [shared+r1*4], r9\nATOM.U32.Add r3, [shared+r2*4], r9",
     "written here, written by lane 1", 7, 0),
    # array instructions that each lane carries out
    ("STS.U32 [shared+r1*4], r1\nReduceAdd.U32 r3, [shared], count=2", "read here, written by lane", 6, 0),
    ("ReduceAdd.U32 r3, [shared], count=2\nSTS.U32 [shared+r1*4], r1", "written here, read by several lanes", 6, 0),
    ("STS.U32 [shared+8], r9\nBarSync", "written here, written by lane 1", 5, 0),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message", "index", "lane"), RACES)
def test_races_on_shared_memory(source: str, message: str, index: int, lane: int) -> None:
    error = fails(OWN + source, f"race on shared memory: {message}", index, lane, TWO)
    assert "BarSync" in (error.hint or "")


# Two instructions that each lane may execute; two lanes that write one word race by themselves.
MENDABLE = [
    source
    for source, *_ in RACES
    if source.count("\n") == 1 and not source.endswith(("BarSync", "STS.U32 [shared], r1"))
]


@pytest.mark.parametrize("barrier", ["BarSync", "GridSync", "ParallelMap.F32.Abs [shared+32], [class 0], count=1"])
@pytest.mark.parametrize("source", MENDABLE)
def test_a_barrier_between_mends_a_race(source: str, barrier: str) -> None:
    first, second = source.split("\n")
    assert run(OWN + f"{first}\n{barrier}\n{second}", TWO) == {}


NO_RACES = [
    "STS.U32 [shared+r1*4], r1\nLDS.U32 r3, [shared+r1*4]\nSTS.U32 [shared+r1*4], r3",  # one's own
    "LDS.U32 r3, [shared]\nLDS.U32 r4, [shared]\nLDS.U32 r5, [shared+r2*4]",  # many readers
    "ATOM.U32.Add r3, [shared], r9\nATOM.U32.Max r3, [shared], r1\nATOM.U32.Exchange r3, [shared], r1",
    "ReduceAdd.U32 r3, [shared], count=2\nReduceAdd.U32 r4, [shared], count=1",
    "LOOP r7, 4\nLDS.U32 r3, [shared+r2*4]\nBarSync\nSTS.U32 [shared+r1*4], r3\nBarSync\nENDLOOP",
]


@pytest.mark.parametrize("source", NO_RACES)
@pytest.mark.parametrize("launch", [TWO, BLOCKS], ids=["one block", "two blocks"])
def test_what_is_no_race(source: str, launch: LaunchConfig) -> None:
    assert run(OWN + source, launch) == {}


def test_blocks_have_shared_memory_of_their_own() -> None:
    source = """
        .buffer y U32
        STS.U32 [shared+r252*4], r253
        BarSync
        ReduceAdd.U32 r0, [shared], count=2
        STG.U32 [y+r255*4], r0
    """
    assert run(source, BLOCKS, y=Unwritten(4))["y"] == [0, 0, 2, 2]


# --- reading what nobody wrote --------------------------------------------------------------------

UNINITIALISED = [
    ("LDS.U32 r0, [shared]", "byte 0 of shared memory is read before anything is written there", 0, 0, {}),
    ("LDS.U32 r0, [shared+r252*4]", "byte 0 of shared memory is read before", 0, 0, {}),
    ("MOV_IMM.U32 r1, 1\nATOM.U32.Add r0, [shared+r252*4], r1", "byte 0 of shared memory is read before", 1, 0, {}),
    ("MOV_IMM.U8 r1, 1\nSTS.U8 [shared+r252*4], r1\nLDS.U32 r0, [shared+r252*4]", "byte 0 of shared", 2, 0, {}),
    ("ReduceAdd.U32 r0, [shared], count=2", "byte 0 of shared memory is read before", 0, 0, {}),
    (".buffer x U32\nLDG.U32 r0, [x+r255*4]", "byte 0 of buffer 'x' is read before", 0, 0, {"x": Unwritten(4)}),
    (".buffer x U32\nMOV_IMM.U32 r1, 1\nATOM.U32.Add r0, [x+4], r1", "byte 4 of buffer 'x'", 1, 0, {"x": Unwritten(4)}),
    # one lane writes its element and reads the next one
    (".buffer x U64\nSTG.U64 [x+r255*8], r255\nLDG.U64 r0, [x+8+r255*8]", "byte 16 of buffer 'x' is read before", 1, 1,
     {"x": Unwritten(4)}),
    # the missing element is not the first of the array
    (".buffer x U64\nSTG.U64 [x+r255*8], r255\nReduceAdd.U64 r0, [x], count=4", "byte 16 of buffer 'x'", 1, 0,
     {"x": Unwritten(4)}),
    (".buffer x U64\nSTG.U64 [x+r255*8], r255\nReduceAdd.U64 r0, [x+r255*8], count=2", "byte 16 of buffer 'x'", 1, 1,
     {"x": Unwritten(4)}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message", "index", "lane", "buffers"), UNINITIALISED)
def test_memory_read_before_it_is_written(source: str, message: str, index: int, lane: int, buffers: dict) -> None:
    fails(source, message, index, lane, TWO, **buffers)


def test_class_memory_and_pools_are_zero_from_the_start() -> None:
    source = """
        .buffer y U64
        PoolAlloc q, size=8
        PoolLoad.U64 r0, q, offset=0
        LDG.U64 r1, [class 95+12280]
        ADD r0, r0, r1
        STG.U64 [y], r0
    """
    assert run(source, y=Unwritten(1))["y"] == [0]


def test_a_host_copy_counts_as_written_only_where_it_went() -> None:
    backend = ReferenceBackend()
    handle = backend.allocate(16)
    backend.copy_to(handle, b"\1\0\0\0", 4)
    backend.execute(assemble(".buffer x U32\nLDG.U32 r1, [x+4]"), ONE, {"x": handle})
    for index in (0, 2, 3):
        program = assemble(f".buffer x U32\nLDG.U32 r1, [x+{4 * index}]")
        with pytest.raises(ExecutionFailed, match=f"byte {4 * index} of buffer 'x' is read before"):
            backend.execute(program, ONE, {"x": handle})


def test_unwritten_registers_are_named_with_their_lane() -> None:
    skip = "MOV_IMM.U64 r0, 1\nSETcc.EQ p0, r255, r0\nBRA a, p0\nMOV_IMM.U32 r5, 1\nSETcc.EQ p1, r5, r5\n"
    fails(skip + "a: MOV r6, r5", "r5 is read before it is written", 5, 1, TWO)
    fails(skip + "a: BRA b, p1\nb:", "p1 is read before it is written", 5, 1, TWO)
    fails(skip + "a: SEL r6, p1, r255, r255", "p1 is read before it is written", 5, 1, TWO)


# --- addresses ------------------------------------------------------------------------------------

# {} is the index register's type and value; lane 1 goes wrong, lane 0 does not.
BAD_INDEX = """
    MOV_IMM.{ty} r1, {value}
    MOV_IMM.{ty} r2, 0
    MOV_IMM.U64 r0, 1
    SETcc.EQ p0, r255, r0
    SEL r1, p0, r1, r2
    MOV_IMM.U32 r3, 7
    {code}
"""
MODES = {
    "[x+r1*4]": ".buffer x U32\n",
    "[x+4+r1*4]": ".buffer x U32\n",
    "[shared+r1*4]": "",
    "[class 3+r1*4]": "",
    "[class 95+r1*4]": "",
    "[pool q+r1*4]": ".pool q\n",
    "[r1]": "",
}
INDICES = [
    ("U32", 1 << 20), ("U32", (1 << 32) - 1), ("I32", -2), ("I32", -(1 << 31)), ("I64", -(1 << 63)),
    ("I64", (1 << 63) - 1), ("U64", (1 << 64) - 1), ("U64", 1 << 62), ("U64", 1 << 40),
]  # fmt: skip
ACCESSES = {
    "load": "LD{m}.U32 r4, {a}",
    "store": "ST{m}.U32 {a}, r3",
    "atomic": "ATOM.U32.Add r4, {a}, r3",
    "array": "ReduceAdd.U32 r4, {a}, count=1",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("access", ACCESSES)
@of_each("ty, value", INDICES)
def test_addresses_out_of_range(mode: str, access: str, ty: str, value: int) -> None:
    code = ACCESSES[access].format(m="S" if "shared" in mode else "G", a=mode)
    if "shared" in mode:  # so that lane 0 may read
        code = "STS.U32 [shared+r2*4], r3\nBarSync\n" + code
        code = code.replace("STS.U32 [shared+r2*4]", "STS.U32 [shared+r252*4]")
    if mode == "[r1]" and value in (1 << 20, 1 << 40):
        value = classes.CLASS_MEMORY_BYTES
    index = 6 + code.count("\n")
    backend = ReferenceBackend()
    buffers = {"x": [1] * 8, "q": backend.allocate_pool(64)}
    source = MODES[mode] + BAD_INDEX.format(ty=ty, value=value, code=code)
    if "pool" in mode:
        with pytest.raises(ExecutionFailed, match=r"address out of range: .*pool 'q'.*\(lane 1\)"):
            run(source, TWO, backend, **buffers)
    else:
        fails(source, "address out of range", index, 1, TWO, x=[1] * 8)


EDGES = [
    # type, offset of the last element that fits a buffer of 16 bytes
    (Type.U8, 15), (Type.U16, 14), (Type.U32, 12), (Type.U64, 8), (Type.U128, 0),
]  # fmt: skip


@pytest.mark.parametrize(("ty", "last"), EDGES, ids=str)
@pytest.mark.parametrize("place", ["buffer", "shared", "pool"])
def test_the_last_element_is_inside_and_the_next_outside(ty: Type, last: int, place: str) -> None:
    base = {"buffer": "x", "shared": "shared", "pool": "pool q"}[place]
    store = "STS" if place == "shared" else "STG"
    head = {"buffer": f".buffer x {ty}\n", "shared": "", "pool": ".pool q\n"}[place]
    launch = LaunchConfig(shared_memory=16)
    for offset, inside in ((last, True), (last + ty.alignment, False), (16, False)):
        backend = ReferenceBackend()
        source = f"{head}MOV_IMM.{ty} r0, 1\nMOV_IMM.U32 r1, {offset}\n{store}.{ty} [{base}+r1*1], r0"
        buffers = {"x": Unwritten(16 // ty.size_bytes), "q": backend.allocate_pool(16)}
        if inside:
            run(source, launch, backend, **buffers)
        else:
            with pytest.raises(ExecutionFailed, match=f"bytes {offset} to {offset + ty.size_bytes} of .*which has 16"):
                run(source, launch, backend, **buffers)


@pytest.mark.parametrize("ty", [t for t in Type if t.size_bytes > 1], ids=str)
def test_alignment_in_buffers_and_shared_memory(ty: Type) -> None:
    """Wide integers need 8 bytes. Pools and class memory take any place."""
    aligned = min(ty.size_bytes, 8)
    launch = LaunchConfig(shared_memory=2048)
    for offset in {1, aligned // 2, aligned + 1, aligned}:
        good = offset % aligned == 0
        for head, store, base in ((f".buffer x {ty}\n", "STG", "x"), ("", "STS", "shared")):
            source = f"{head}MOV_IMM.{ty} r0, 1\nMOV_IMM.U32 r1, {offset}\n{store}.{ty} [{base}+r1*1], r0"
            if good:
                run(source, launch, x=Unwritten(8))
            else:
                fails(source, f"is not aligned to {aligned} bytes", 2, 0, launch, x=Unwritten(8))


@pytest.mark.parametrize("ty", Type, ids=str)
@pytest.mark.parametrize("place", ["class 7", "pool q"])
def test_pools_and_classes_hold_every_type_at_odd_places(ty: Type, place: str) -> None:
    """Also across the boundary between two pages of 256 bytes."""
    value = 1.5 if ty.is_float else ty.max_value
    for offset in (1, 255, 256 * 3 - 1):
        source = f"""
            .pool q
            .buffer y {ty}
            MOV_IMM.{ty} r0, {value}
            MOV_IMM.U32 r1, {offset}
            STG.{ty} [{place}+r1*1], r0
            LDG.{ty} r2, [{place}+{offset}]
            STG.{ty} [y], r2
        """
        backend = ReferenceBackend()
        assert run(source, backend=backend, q=backend.allocate_pool(2048), y=Unwritten(1))["y"] == [value]


def test_class_crossings_are_errors_and_page_crossings_are_not() -> None:
    end = classes.CLASS_BYTES
    fails(f"MOV_IMM.U32 r0, {end - 3}\nLDG.U32 r1, [class 0+r0*1]", "address out of range", 1, 0)
    fails(f"MOV_IMM.U32 r0, {end - 3}\nLDG.U32 r1, [r0]", "address out of range", 1, 0)
    fails(f"MOV_IMM.U32 r0, {96 * end - 3}\nLDG.U32 r1, [r0]", "address out of range", 1, 0)
    fails(f"MOV_IMM.U32 r0, {96 * end}\nLDG.U8 r1, [r0]", "address out of range", 1, 0)
    fails("MOV_IMM.I32 r0, -1\nLDG.U8 r1, [r0]", "address out of range", 1, 0)
    fails(f"MOV_IMM.U32 r0, {end - 4}\nReduceAdd.U32 r1, [class 0+r0*1], count=2", "address out of range", 1, 0)
    run(f"MOV_IMM.U32 r0, {end - 4}\nLDG.U32 r1, [r0]")
    run(f"MOV_IMM.U32 r0, {96 * end - 1}\nLDG.U8 r1, [r0]")
    run("MOV_IMM.U32 r0, 254\nLDG.U32 r1, [class 0+r0*1]\nLDG.U32 r1, [r0]")


def test_register_addresses_are_what_boundmap_computes() -> None:
    backend = ReferenceBackend()
    run("MOV_IMM.U32 r0, 66051\nBoundMap r1, r0\nMOV_IMM.U8 r2, 77\nSTG.U8 [r1], r2", backend=backend)  # 1, 2, 3
    assert backend.class_memory[12803] == 77
    assert backend.class_memory.sum() == 77
    source = ".buffer y U8\nLDG.U8 r0, [class 1+515]\nSTG.U8 [y], r0"
    assert run(source, backend=backend, y=Unwritten(1))["y"] == [77], "class memory outlives the launch"


BIG = 1 << 48
HUGE_ARRAYS = [
    f"ReduceAdd.F32 r0, [x], count={BIG}",
    f"ReduceAdd.F32 r0, [x+r255*4], count={BIG}",
    f"ParallelMap.F32.Abs [y], [x], count={BIG}",
    f"Attention.F32 [y], [x], [x], [x], batch={BIG}, heads={BIG}, seq_len={BIG}, head_dim={BIG}",
    f"KVCacheUpdate.F32 [y], [x], position={BIG}, batch={BIG}, heads={BIG}, head_dim={BIG}",
    f"BatchedGEMM.F32 [y], [x], [x], batch={BIG}, m={BIG}, n={BIG}, k=0",
]


@pytest.mark.parametrize("source", HUGE_ARRAYS)
def test_arrays_beyond_all_memory_are_out_of_range(source: str) -> None:
    fails(f".buffer x F32\n.buffer y F32\n{source}", "address out of range", 0, 0, x=[1.0] * 4, y=[1.0] * 4)


EMPTY_ARRAYS = [
    f"GEMM.F32 [y], [x], [x], m={BIG}, n=0, k=0",
    f"BatchedGEMM.F32 [y], [x], [x], batch={BIG}, m=0, n=0, k=0",
    "GroupNorm.F32 [y], [x], [x], [x], batch=0, channels=4, groups=2, spatial=3",
    "ParallelMap.F32.Abs [y], [x], count=0",
    "SparseGEMM.F32 [y], [x], [u], [u], [x], m=0, n=2, k=2, nnz=0",
    "AllReduce.F32.Sum [y], n=0",
    "AllGather.F32 [y], [x], n=0",
    f"TensorContract.F32 [y], [x], [x], shape_a=(0, {BIG}), shape_b=(0, {BIG}), contract_dims=((1, 1))",
]


@pytest.mark.parametrize("source", EMPTY_ARRAYS)
def test_arrays_of_no_elements_change_nothing(source: str) -> None:
    params = ".buffer x F32\n.buffer y F32\n.buffer u U32\n"
    assert run(params + source, x=[1.0] * 4, y=[2.0] * 4, u=[0] * 4)["y"] == [2.0] * 4


def test_overlap_is_seen_at_run_time_where_it_cannot_be_before() -> None:
    """The same buffer under two names, or places that registers decide."""
    backend = ReferenceBackend()
    both = backend.array([1.0] * 8, Type.F32)
    program = assemble(".buffer a F32\n.buffer c F32\nGEMM.F32 [c], [a], [a], m=1, n=1, k=1")
    with pytest.raises(ExecutionFailed, match="c overlaps a in memory"):
        backend.execute(program, ONE, {"a": both, "c": both})
    program = assemble(".buffer a F32\n.buffer c F32\nAllGather.F32 [c+4], [a], n=2")
    with pytest.raises(ExecutionFailed, match="output overlaps input in memory"):
        backend.execute(program, ONE, {"a": both, "c": both})
    head = ".buffer x F32\nMOV_IMM.U32 r0, 0\n"
    fails(f"{head}ParallelMap.F32.Neg [x+4], [x+r0*4], count=2", "overlaps", 1, 0, x=[1.0] * 4)
    moved = run(f"{head}ParallelMap.F32.Neg [x], [x+r0*4], count=2", x=[1.0] * 4)
    assert moved["x"] == [-1.0, -1.0, 1.0, 1.0], "the very same place is fine"


# --- buffers and pools on the host ----------------------------------------------------------------


def test_handles_that_are_freed_foreign_or_of_the_wrong_kind() -> None:
    one, other = ReferenceBackend(), ReferenceBackend()
    buffer, pool = one.allocate(8), one.allocate_pool(8)
    for use in (other.free, other.size, other.copy_from, lambda h: other.copy_to(h, b"x")):
        with pytest.raises(InvalidBuffer, match="another backend"):
            use(buffer)
    for use in (other.free_pool, other.pool_size, lambda h: other.copy_from_pool(h, 0, 1)):
        with pytest.raises(InvalidBuffer, match="another backend"):
            use(pool)
    for use in (one.free, one.size, one.free_pool):
        with pytest.raises(InvalidBuffer, match="is not a"):
            use(pool if use != one.free_pool else buffer)
        with pytest.raises(InvalidBuffer, match="is not a"):
            use(3)
    one.free(buffer)
    one.free_pool(pool)
    for use in (one.free, one.size, one.copy_from, lambda h: one.copy_to(h, b"x")):
        with pytest.raises(InvalidBuffer, match="has been freed"):
            use(buffer)
    with pytest.raises(InvalidBuffer, match="has been freed"):
        one.free_pool(pool)
    assert one.allocate(8) != buffer, "a number is never used again"


@pytest.mark.parametrize("size", [-1, -(1 << 70), 1 << 35, 1 << 70, 1.5, "8", None, True])
def test_sizes_that_are_not_sensible(size: Any) -> None:
    backend = ReferenceBackend()
    for allocate in (backend.allocate, backend.allocate_pool):
        with pytest.raises(AllocationFailed):
            allocate(size)
    with pytest.raises(AllocationFailed):
        backend.allocate_typed(Type.F32, size if not isinstance(size, bool) else -1)


def test_a_pool_needs_a_byte_and_a_buffer_may_have_none() -> None:
    backend = ReferenceBackend()
    with pytest.raises(AllocationFailed):
        backend.allocate_pool(0)
    assert backend.copy_from(backend.allocate(0)) == b""
    assert backend.array([], Type.I4096).read().size == 0


OUTSIDE = [(-1, 1), (0, 9), (8, 1), (9, 0), (4, 5), (0, -1), (1 << 70, 1), (0, 1 << 70)]


@pytest.mark.parametrize(("offset", "size"), OUTSIDE)
def test_copies_outside_a_buffer(offset: int, size: int) -> None:
    backend = ReferenceBackend()
    handle = backend.allocate(8)
    with pytest.raises(InvalidBuffer, match="outside a buffer of 8 bytes"):
        backend.copy_from(handle, offset, size)
    if 0 <= size < 100:
        with pytest.raises(InvalidBuffer, match="outside a buffer of 8 bytes"):
            backend.copy_to(handle, bytes(size), offset)
    assert backend.copy_from(handle) == bytes(8), "nothing was changed"


def test_copies_inside_a_buffer() -> None:
    backend = ReferenceBackend()
    handle = backend.allocate(8)
    backend.copy_to(handle, b"abcdefgh")
    backend.copy_to(handle, np.array([0x3231], "<u2"), 2)
    backend.copy_to(handle, b"", 8)
    assert backend.copy_from(handle) == b"ab12efgh"
    assert backend.copy_from(handle, 6) == b"gh"
    assert backend.copy_from(handle, 2, 2) == b"12"
    assert backend.copy_from(handle, 8) == b""
    for data in (5, None, [1], np.array([1, 2], object)):
        with pytest.raises(InvalidBuffer):
            backend.copy_to(handle, data)


def test_typed_buffers_check_count_and_range() -> None:
    backend = ReferenceBackend()
    buffer = backend.allocate_typed(Type.I8, 2)
    for values, error in (([1], InvalidBuffer), ([1, 2, 3], InvalidBuffer), ([1, 128], IsaError), ([1, 0.5], IsaError)):
        with pytest.raises(error):
            buffer.write(values)
    buffer.write([-128, 127])
    assert buffer.read().tolist() == [-128, 127]
    buffer.free()
    with pytest.raises(InvalidBuffer):
        buffer.read()


BAD_PARAMS = [
    ({}, IsaError, "no value for the buffer 'x'"),
    ({"x": "buffer"}, IsaError, "no value for the scalar 'a'"),
    ({"x": "buffer", "a": 1, "q": "pool", "z": 1}, IsaError, "no parameter 'z'"),
    ({"x": [1.0], "a": 1, "q": "pool"}, IsaError, "'x' must be a buffer, not list"),
    ({"x": "f64", "a": 1, "q": "pool"}, IsaError, "'x' holds F32, but was given F64"),
    ({"x": "short", "a": 1, "q": "pool"}, IsaError, "'x' needs 4 × F32, but was given 8 bytes"),
    ({"x": "foreign", "a": 1, "q": "pool"}, InvalidBuffer, "another backend"),
    ({"x": "freed", "a": 1, "q": "pool"}, InvalidBuffer, "freed"),
    ({"x": "pool", "a": 1, "q": "pool"}, IsaError, "'x' must be a buffer, not PoolHandle"),
    ({"x": "buffer", "a": "1", "q": "pool"}, IsaError, "'a' must be a number of type I8"),
    ({"x": "buffer", "a": 1.0, "q": "pool"}, IsaError, "'a' must be a number of type I8"),
    ({"x": "buffer", "a": 128, "q": "pool"}, IsaError, "128 does not fit I8"),
    ({"x": "buffer", "a": None, "q": "pool"}, IsaError, "'a' must be a number of type I8"),
    ({"x": "buffer", "a": 1, "q": "buffer"}, IsaError, "'q' must be a pool handle"),
    ({"x": "buffer", "a": 1, "q": "foreign pool"}, InvalidBuffer, "another backend"),
]


@pytest.mark.parametrize(("offered", "error", "message"), BAD_PARAMS, ids=[m for *_, m in BAD_PARAMS])
def test_parameters_that_do_not_fit(offered: dict[str, Any], error: type[Exception], message: str) -> None:
    backend, other = ReferenceBackend(), ReferenceBackend()
    freed = backend.allocate(16)
    backend.free(freed)
    things = {
        "buffer": backend.array([1.0] * 4, Type.F32), "f64": backend.array([1.0] * 4, Type.F64), "freed": freed,
        "short": backend.allocate(8), "foreign": other.allocate(16), "pool": backend.allocate_pool(4),
        "foreign pool": other.allocate_pool(4),
    }  # fmt: skip
    program = assemble(".buffer x F32 4\n.scalar a I8\n.pool q\nEXIT")
    params = {k: things.get(v, v) if isinstance(v, str) else v for k, v in offered.items()}
    with pytest.raises(error, match=re.escape(message)):
        backend.execute(program, ONE, params)


@pytest.mark.parametrize("value", [5, True, np.int64(5), np.uint8(5), np.array(5)])
def test_scalars_of_any_number_type(value: Any) -> None:
    source = ".scalar a I8\n.buffer y I8\nLDG.I8 r0, [a]\nSTG.I8 [y], r0"
    assert run(source, a=value, y=Unwritten(1))["y"] == [int(value)]


def test_scalars_are_rounded_to_their_type() -> None:
    source = ".scalar a F16\n.buffer y F16\nLDG.F16 r0, [a]\nSTG.F16 [y], r0"
    for number, held in ((0.1, 0.0999755859375), (1e9, float("inf")), (7, 7.0), (10**400, float("inf"))):
        assert run(source, a=number, y=Unwritten(1))["y"] == [held]


def test_launches_beyond_the_limits() -> None:
    backend = ReferenceBackend()
    for launch in (LaunchConfig((1 << 20, 1, 1), (1024, 1, 1)), LaunchConfig((1 << 10, 1, 1), (1, 1, 1), 1 << 20)):
        with pytest.raises(AllocationFailed):
            backend.execute(Program(), launch)
    for bad in (
        {"grid": (0, 1, 1)},
        {"grid": (1, 1)},
        {"block": (1025, 1, 1)},
        {"block": (32, 33, 1)},
        {"shared_memory": -1},
    ):
        with pytest.raises(IsaError):
            LaunchConfig(**bad)


def test_code_for_reading() -> None:
    backend, program = ReferenceBackend(), assemble("MOV_IMM.F32 r0, 2\nRCP r1, r0")
    assert assemble(backend.compile_to("atlas", program)) == program
    expanded = assemble(backend.compile_to("expanded", program))
    assert not any(i.op.is_extension for i in expanded.instructions)
    with pytest.raises(BackendUnavailable, match="does not emit 'ptx'"):
        backend.compile_to("ptx", program)


# --- control --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["a: BRA a", "LOOP r0, 4294967295\nENDLOOP", "CALL f\na: BRA a\nf: RET"])
def test_the_step_limit(source: str) -> None:
    backend = ReferenceBackend(step_limit=100)
    with pytest.raises(ExecutionFailed, match="ran 100 steps without ending") as caught:
        backend.execute(assemble(source), ONE)
    assert "step_limit" in (caught.value.hint or "")
    backend.execute(assemble("LOOP r0, 40\nENDLOOP"), ONE)  # the count starts anew with each launch


DEEP = """
    .buffer y U32
    MOV_IMM.U32 r0, {depth}
    MOV_IMM.U32 r1, 1
    MOV_IMM.U32 r2, 0
    MOV r3, r2
    CALL f
    STG.U32 [y], r3
    EXIT
f:  ADD r3, r3, r1
    SUB r0, r0, r1
    SETcc.EQ p0, r0, r2
    BRA done, p0
    CALL f
done: RET
"""


def test_calls_may_be_256_deep_and_no_deeper() -> None:
    for depth in (1, 255, 256):
        assert run(DEEP.format(depth=depth), y=Unwritten(1))["y"] == [depth]
    fails(DEEP.format(depth=257), "calls are nested more than 256 deep", 11, 0, error=IsaError, y=Unwritten(1))


def test_a_return_without_a_call() -> None:
    fails("BRA a\nCALL f\na: f: RET", "there is no CALL to return from", 2, 0, error=IsaError)


def test_falling_off_the_end_inside_a_function_ends_the_lane() -> None:
    source = ".buffer y U32\nMOV_IMM.U32 r0, 1\nSTG.U32 [y], r0\nCALL f\nSTG.U32 [y], r252\nEXIT\nf:"
    assert run(source, y=[9])["y"] == [1]


COUNT_LOOP = """
    .buffer y U64
    MOV_IMM.U64 r0, 0
    MOV_IMM.U64 r1, 1
    {before}
    {loop}
    ADD r0, r0, r1
    {body}
    ENDLOOP
    out: STG.U64 [y+r255*8], r0
"""
LOOPS = [
    # before, LOOP, body, rounds of lanes 0 to 3
    ("", "LOOP r5, 0", "", [0] * 4),
    ("", "LOOP r5, 3", "", [3] * 4),
    ("MOV_IMM.I32 r4, 0", "LOOP r5, r4", "", [0] * 4),
    ("MOV_IMM.I64 r4, 5", "LOOP r5, r4", "", [5] * 4),
    ("", "LOOP r5, r252", "", [0, 1, 2, 3]),
    ("", "LOOP r5, r255", "", [0, 1, 2, 3]),
    ("MOV r4, r252", "LOOP r4, r4", "", [0, 1, 2, 3]),  # the counter is where the count was
    ("MOV_IMM.U32 r4, 3", "LOOP r4, r4", "", [3] * 4),
    ("MOV_IMM.U32 r4, 3", "LOOP r5, r4", "MOV_IMM.U32 r4, 100", [3] * 4),  # the count is read once
    ("MOV_IMM.U32 r4, 3", "LOOP r5, r4", "MOV_IMM.F32 r4, 0.5", [3] * 4),
    ("", "LOOP r5, 3", "MOV_IMM.U32 r5, 100", [3] * 4),  # the body may use its counter
    ("", "LOOP r5, 3", "MOV_IMM.F64 r5, 100", [3] * 4),
    ("", "LOOP r5, 5", "SETcc.EQ p0, r5, r252\nBRA out, p0", [1, 2, 3, 4]),  # left early
    ("MOV_IMM.U64 r4, 18446744073709551615", "LOOP r5, r4", "SETcc.EQ p0, r5, r255\nBRA out, p0", [1, 2, 3, 4]),
    ("", "LOOP r6, 3\nLOOP r5, 2", "ENDLOOP", [6] * 4),
    ("", "LOOP r6, 3\nLOOP r5, r6", "ENDLOOP", [3] * 4),
    ("", "LOOP r6, r252\nLOOP r5, r6", "ENDLOOP", [0, 0, 1, 3]),
    ("", "LOOP r6, 3\nLOOP r6, 2", "ENDLOOP", [6] * 4),  # both count in one register
]


APART = """
    .buffer y U64
    MOV_IMM.U64 r8, 1
    SHR r9, r255, r8
    XOR r7, r255, r9
    AND r7, r7, r8
    SETcc.EQ p9, r7, r8
    BRA inner, p9
    CALL it
    BRA over
inner: CALL it
over: STG.U64 [y+r255*8], r0
    EXIT
it:
"""


@pytest.mark.parametrize(("before", "loop", "body", "rounds"), LOOPS)
def test_loops(before: str, loop: str, body: str, rounds: list[int]) -> None:
    source = COUNT_LOOP.format(before=before, loop=loop, body=body)
    assert run(source, FOUR, y=Unwritten(4))["y"] == rounds
    # The same when lanes 1 and 2 come to it from another call than lanes 0 and 3: masks instead of whole arrays.
    apart = source.replace(".buffer y U64", "").replace("out: STG.U64 [y+r255*8], r0", "out: RET")
    assert run(APART + apart, FOUR, y=Unwritten(4))["y"] == rounds


@pytest.mark.parametrize("ty", ["I32", "I64"])
def test_a_negative_count(ty: str) -> None:
    source = f"CVT.U32.{ty} r0, r252\nNEG r0, r0\nLOOP r1, r0\nENDLOOP"
    fails(source, "a loop cannot run a negative number of times", 2, 1, TWO)


def test_the_counter_counts_from_zero_in_the_type_of_the_count() -> None:
    for ty in ("I32", "I64", "U32", "U64"):
        size = Type[ty].size_bytes
        source = f".buffer y {ty}\nMOV_IMM.{ty} r0, 4\nLOOP r1, r0\nSTG.{ty} [y+r1*{size}], r1\nENDLOOP"
        assert run(source, y=Unwritten(4))["y"] == [0, 1, 2, 3]


def test_the_counter_after_the_loop() -> None:
    """What the last round left; zero after no round; what it was where the loop was left."""
    tail = "STG.U32 [y+r255*4], r1"
    assert run(f".buffer y U32\nLOOP r1, r252\nENDLOOP\n{tail}", FOUR, y=Unwritten(4))["y"] == [0, 0, 1, 2]
    leave = "SETcc.EQ p0, r1, r252\nBRA out, p0"
    assert run(f".buffer y U32\nLOOP r1, 9\n{leave}\nENDLOOP\nout: {tail}", FOUR, y=Unwritten(4))["y"] == [0, 1, 2, 3]


TREE = """
    .buffer y U32
    MOV_IMM.U32 r9, 0
    MOV_IMM.U32 r8, 1
    MOV r0, r252
    CALL f
    STG.U32 [y+r255*4], r9
    EXIT
f:  MOV_IMM.U32 r7, 0
    SETcc.EQ p0, r0, r7
    BRA leaf, p0
    SUB r0, r0, r8
    LOOP r1, 3
    CALL f
    ENDLOOP
    ADD r0, r0, r8
    RET
leaf: ADD r9, r9, r8
    RET
"""


def test_recursion_through_a_loop() -> None:
    """Every call has its own rounds of the loop: 3^n leaves at depth n, which differs from lane to lane."""
    assert run(TREE, FOUR, y=Unwritten(4))["y"] == [1, 3, 9, 27]


def test_leaving_a_function_from_inside_its_loop() -> None:
    source = """
        .buffer y U32
        MOV_IMM.U32 r0, 0
        MOV_IMM.U32 r1, 1
        LOOP r2, 4
            CALL f
        ENDLOOP
        STG.U32 [y], r0
        EXIT
    f:  LOOP r3, 9
            ADD r0, r0, r1
            RET
        ENDLOOP
    """
    assert run(source, y=Unwritten(1))["y"] == [4]


# --- lanes and blocks -----------------------------------------------------------------------------

SHAPES = [
    ((1, 1, 1), (1, 1, 1)), ((3, 1, 1), (4, 1, 1)), ((1, 3, 1), (2, 2, 1)), ((2, 3, 1), (3, 2, 1)),
    ((2, 2, 2), (2, 3, 2)), ((1, 1, 5), (1, 1, 3)), ((4, 1, 2), (1, 5, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("grid", "block"), SHAPES)
def test_indices_of_lanes_and_blocks(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    """x runs fastest, in a block and in the grid; r255 counts block after block."""
    launch = LaunchConfig(grid, block)
    b = ProgramBuilder()
    registers = {"lane_x": Register(252), "block_x": Register(253), "size_x": Register(254)}
    for which in SpecialRegister:
        registers[which.name] = b.reg()
        b.sreg(which, registers[which.name])
    for name, register in registers.items():
        b.stg(Type.U32, b.buffer(name, Type.U32).at(Register(255)), register)
    backend = ReferenceBackend()
    buffers = {p.name: backend.allocate_typed(Type.U32, launch.total_threads) for p in b.params}
    backend.execute(b.build(), launch, buffers)
    sizes = {f"BlockSize{a}": n for a, n in zip("XYZ", block, strict=True)} | {"size_x": block[0]}
    sizes |= {f"GridSize{a}": n for a, n in zip("XYZ", grid, strict=True)}
    places = itertools.product(*(range(n) for n in (*reversed(grid), *reversed(block))))
    for lane, (bz, by, bx, z, y, x) in enumerate(places):
        expected = {"LaneX": x, "LaneY": y, "LaneZ": z, "BlockX": bx, "BlockY": by, "BlockZ": bz}
        expected |= {"lane_x": x, "block_x": bx} | sizes
        assert {name: buffer.read()[lane] for name, buffer in buffers.items()} == expected


def test_the_grid_barrier_makes_writes_of_all_blocks_visible() -> None:
    """Each lane reads what the last lane of the launch wrote."""
    source = """
        .buffer x U64
        .buffer y U64
        MOV_IMM.U64 r1, 3
        SETcc.EQ p1, r255, r1
        BRA late, p1
    go: {}
        LDG.U64 r0, [x+24]
        STG.U64 [y+r255*8], r0
        EXIT
    late: STG.U64 [x+r255*8], r255
        BRA go
    """
    assert run(source.format("GridSync"), BLOCKS, x=Unwritten(4), y=Unwritten(4))["y"] == [3] * 4
    # A barrier of blocks is not enough: block 0 does not wait for block 1, and the reference shows it.
    fails(
        source.format("BarSync"), "byte 24 of buffer 'x' is read before", 4, 0, BLOCKS, x=Unwritten(4), y=Unwritten(4)
    )


# p0 holds in lanes 0 and 1, which go to `a`; r1 gets another type there.
TWO_WAYS = """
    MOV_IMM.U64 r0, 2
    SETcc.LT p0, r255, r0
    BRA a, p0
    {0}
    BRA b
a:  {1}
b:
"""


@pytest.mark.parametrize("other_way", ["MOV_IMM.F32 r1, 1.5", "MemFence.Block"])
def test_an_instruction_on_lanes_of_two_types(other_way: str) -> None:
    """It works on each group of types by itself; those it does not fit are reported.

    The other lanes hold what they write there, or what all lanes held before.
    """
    split = "MOV_IMM.F32 r1, 1.5" + TWO_WAYS.format(other_way, "MOV_IMM.I32 r1, -3")
    store = "ADD r2, r1, r1\nBRA c, p0\nSTG.F32 [z+r255*4], r2\nEXIT\nc: STG.I32 [y+r255*4], r2"
    out = run(f".buffer y I32\n.buffer z F32\n{split}{store}", FOUR, y=[0] * 4, z=[0.0] * 4)
    assert (out["y"], out["z"]) == ([-6, -6, 0, 0], [0.0, 0.0, 3.0, 3.0])
    fails(f"{split}EXP r2, r1", "EXP: src r1 is I32, but must be", 7, 0, FOUR, error=IsaError)
    fails(f"{split}AND r2, r1, r1", "AND: lhs r1 is F32, but must be an integer", 7, 2, FOUR, error=IsaError)


def test_an_index_and_a_loop_count_of_two_types() -> None:
    split = TWO_WAYS.format("MOV r1, r255", "MOV r1, r252")
    access = ".buffer x I32\n.buffer y I32\n{}LDG.I32 r2, [x+r1*4]\nSTG.I32 [y+r1*4], r2"
    assert run(access.format(split), FOUR, x=[5, 6, 7, 8], y=[0] * 4)["y"] == [5, 6, 7, 8]
    # Each lane counts in its own type, as what it stores in the end shows.
    split = TWO_WAYS.format("ADD r1, r255, r0", "MOV_IMM.U32 r1, 3")
    loop = "LOOP r3, r1\nENDLOOP\nBRA c, p0\nSTG.U64 [y+r255*8], r3\nEXIT\nc: STG.U32 [z+r255*4], r3"
    out = run(f".buffer y U64\n.buffer z U32\n{split}{loop}", FOUR, y=[9] * 4, z=[9] * 4)
    assert (out["y"], out["z"]) == ([9, 9, 3, 4], [2, 2, 9, 9])


# r1 is 0 in every lane, and of another type in some: which types come first must not matter.
MIXED = [("U32", "I64"), ("I64", "U32"), ("I32", "U64"), ("U64", "I32")]


@pytest.mark.parametrize(("high", "low"), MIXED)
def test_the_highest_lane_stores_last_whatever_the_types_of_its_index(high: str, low: str) -> None:
    split = TWO_WAYS.format(f"MOV_IMM.{high} r1, 0", f"MOV_IMM.{low} r1, 0")
    alternate = split.replace("SETcc.LT p0, r255, r0", "REM r3, r255, r0\nMOV_IMM.U64 r4, 1\nSETcc.EQ p0, r3, r4")
    for head in (split, alternate):
        source = f".buffer y U64\n{head}STG.U64 [y+r1*8], r255"
        assert run(source, FOUR, y=[9])["y"] == [3]
        copies = f".buffer x U64\n.buffer y U64\n{head}ParallelMap.U64.Abs [y+r1*8], [x+r255*8], count=1"
        assert run(copies, FOUR, x=[5, 6, 7, 8], y=[0])["y"] == [8]
        shift = f".buffer y U64\n{head}ATOM.U64.Exchange r2, [y+r1*8], r255\nSTG.U64 [y+8+r255*8], r2"
        assert run(shift, FOUR, y=[9] * 5)["y"] == [3, 9, 0, 1, 2]


@pytest.mark.parametrize(("high", "low"), MIXED)
def test_units_that_lanes_share_take_them_in_order_whatever_the_types(high: str, low: str) -> None:
    split = TWO_WAYS.format(f"CVT.U64.{high} r1, r255", f"CVT.U64.{low} r1, r255").replace("r0, 2", "r0, 3")
    backend = ReferenceBackend()
    sums = run(f".buffer y F64\n{split}ResAccum r2, r1, class_id=0\nSTG.F64 [y+r255*8], r2", FOUR, backend, y=[0.0] * 4)
    assert sums["y"] == [0.0, 1.0, 3.0, 6.0]
    run(f"{split}PhaseWrite r1, class_id=0", FOUR, backend)
    assert backend.phase == 3
    run(f"{split}SUB r3, r1, r1\nCVT.U64.U8 r4, r255\nNBRStore.U8 r3, r4, k=0", FOUR, backend)
    first = classes.neighbours(0)[0]
    assert backend.class_memory[first * classes.CLASS_BYTES] == 3


@pytest.mark.parametrize(("high", "low"), MIXED)
def test_the_lowest_lane_that_fails_is_reported_whatever_the_types(high: str, low: str) -> None:
    far = TWO_WAYS.format(f"MOV_IMM.{high} r1, 7", f"MOV_IMM.{low} r1, 7")
    values: dict[str, Any] = {"y": [1, 1, 1, 1]}
    for access in ("LDG.U64 r2, [y+r1*8]", "STG.U64 [y+r1*8], r255", "ReduceAdd.U64 r2, [y+r1*8], count=1"):
        fails(f".buffer y U64\n{far}{access}", "out of range", 6, 0, FOUR, **values)
    zero = TWO_WAYS.format(f"MOV_IMM.{high} r1, 0", f"MOV_IMM.{low} r1, 0")
    fails(f"{zero}DIV r2, r1, r1", "division by zero", 6, 0, FOUR)


# --- pools ----------------------------------------------------------------------------------------

POOLS = [
    # source, message (or what y holds at the end), instruction
    ("PoolAlloc q, size=8\nPoolStore.U32 q, r9, offset=4\nPoolLoad.U32 r0, q, offset=4\nSTG.U32 [y], r0", 7, None),
    ("PoolAlloc q, size=8\nSTG.U32 [pool q+1], r9\nLDG.U32 r0, [pool q+1]\nSTG.U32 [y], r0", 7, None),
    ("PoolAlloc q, size=8\nPoolFree q\nPoolAlloc q, size=4\nPoolLoad.U32 r0, q, offset=0\nSTG.U32 [y], r0", 0, None),
    ("PoolAlloc q, size=8\nPoolFree q\nPoolLoad.U32 r0, q, offset=0", "the pool 'q' is not allocated here", 3),
    ("PoolAlloc q, size=8\nPoolFree q\nPoolStore.U32 q, r9, offset=0", "the pool 'q' is not allocated here", 3),
    ("PoolAlloc q, size=8\nPoolFree q\nReduceAdd.U32 r0, [pool q], count=1", "the pool 'q' is not allocated here", 3),
    ("PoolAlloc q, size=8\nPoolAlloc q, size=8", "the pool 'q' is already allocated", 2),
    ("PoolAlloc q, size=8\nPoolFree q\nPoolFree q", "the pool 'q' is not allocated", 3),
    ("PoolLoad.U32 r0, q, offset=0\nPoolAlloc q, size=8", "the pool 'q' is not allocated here", 1),
    ("PoolAlloc q, size=8\nPoolLoad.U32 r0, q, offset=5", "bytes 5 to 9 of pool 'q', which has 8", 2),
    ("PoolAlloc q, size=8\nPoolLoad.U128 r0, q, offset=0", "bytes 0 to 16 of pool 'q', which has 8", 2),
    ("PoolAlloc q, size=17179869185", "is over the limit", 1),
]


@pytest.mark.parametrize(("source", "outcome", "index"), POOLS)
def test_pools_made_by_the_program(source: str, outcome: str | int, index: int | None) -> None:
    source = f".buffer y U32\nMOV_IMM.U32 r9, 7\n{source}"
    if isinstance(outcome, int):
        assert run(source, y=Unwritten(1))["y"] == [outcome]
    else:
        fails(source, outcome, index, 0, y=Unwritten(1))


def test_a_pool_of_the_program_is_gone_with_the_launch() -> None:
    backend = ReferenceBackend()
    source = """
        .buffer y U32
        PoolAlloc q, size=4
        PoolLoad.U32 r1, q, offset=0
        MOV_IMM.U32 r0, 5
        PoolStore.U32 q, r0, offset=0
        STG.U32 [y], r1
    """
    for _ in range(2):
        assert run(source, backend=backend, y=Unwritten(1))["y"] == [0]


def test_a_pool_of_the_host_is_shared_with_it() -> None:
    backend = ReferenceBackend()
    q = backend.allocate_pool(8)
    backend.copy_to_pool(q, 4, np.array([41], "<u4"))
    source = """
        .pool q
        PoolLoad.U32 r0, q, offset=4
        MOV_IMM.U32 r1, 1
        ADD r0, r0, r1
        PoolStore.U32 q, r0, offset=0
    """
    run(source, backend=backend, q=q)
    assert backend.copy_from_pool(q, 0, 8) == np.array([42, 41], "<u4").tobytes()
    with pytest.raises(InvalidBuffer):
        backend.copy_to_pool(q, 5, b"1234")
    with pytest.raises(InvalidBuffer):
        backend.copy_from_pool(q, 0, 9)


# --- atomics --------------------------------------------------------------------------------------

ATOMIC_TYPES = sorted(ROWS["ATOM"].types, key=lambda t: t.name)


BITWISE = (AtomicOperation.And, AtomicOperation.Or, AtomicOperation.Xor)
ATOMICS = [(op, ty) for op in AtomicOperation for ty in ATOMIC_TYPES if not (op in BITWISE and ty.is_float)]


@pytest.mark.parametrize("place", ["[x]", "[shared]", "[class 3]"])
@of_each("operation, ty", ATOMICS)
def test_atomics_in_the_order_of_lanes(operation: AtomicOperation, ty: Type, place: str) -> None:
    sources = [1.5, float("nan"), -2.0, 0.25] if ty.is_float else [5, ty.max_value, ty.min_value, 3]
    start = 1.0 if ty.is_float else 100
    fn = {
        "Add": np.add, "Min": np.fmin, "Max": np.fmax, "And": np.bitwise_and, "Or": np.bitwise_or,
        "Xor": np.bitwise_xor, "Exchange": lambda a, b: b,
    }[operation.name]  # fmt: skip
    cell, expected = to_array([start], ty), []
    with np.errstate(all="ignore"):
        for value in to_array(sources, ty):
            expected.append(cell[0])
            wide = np.float32 if ty.is_half else ty.dtype
            cell = np.asarray(fn(cell.astype(wide), np.asarray([value]).astype(wide))).astype(ty.dtype)
    store, load = ("STS", "LDS") if "shared" in place else ("STG", "LDG")
    source = f"""
        .buffer x {ty}
        .buffer src {ty}
        .buffer old {ty}
        .buffer end {ty}
        {LANE_0}
        BRA first, p0
        BRA ready
    first: MOV_IMM.{ty} r5, {start}
        {store}.{ty} {place}, r5
    ready: GridSync
        LDG.{ty} r1, [src+r255*{ty.size_bytes}]
        ATOM.{ty}.{operation} r2, {place}, r1
        GridSync
        STG.{ty} [old+r255*{ty.size_bytes}], r2
        {load}.{ty} r3, {place}
        STG.{ty} [end+r255*{ty.size_bytes}], r3
    """
    out = run(source, FOUR, x=[0], src=sources, old=Unwritten(4), end=Unwritten(4))
    assert np.array_equal(to_array(out["old"], ty), np.array(expected), equal_nan=ty.is_float)
    assert np.array_equal(to_array(out["end"], ty), np.repeat(cell, 4), equal_nan=ty.is_float)


def test_atomics_name_the_lane_that_goes_wrong() -> None:
    head = "MOV_IMM.U32 r1, 1\n"
    fails(f".buffer x U32\n{head}ATOM.U32.Add r0, [x+r255*4], r1", "address out of range", 1, 2, FOUR, x=[0, 0])
    fails(f"{head}ATOM.U32.Add r0, [shared+r255*32], r1", "address out of range", 1, 2, FOUR)
    fails(f"{head}STS.U32 [shared+r255*4], r1\nATOM.U32.Add r0, [shared+4+r255*4], r1", "is read before", 2, 3, FOUR)
    fails(f".buffer x U32\n{head}ATOM.U32.Add r0, [x+r255*2], r1", "is not aligned", 1, 1, FOUR, x=[0] * 4)
    small = LaunchConfig((2, 1, 1), (2, 1, 1), shared_memory=8)
    own = f"{head}STS.U32 [shared+r252*4], r1\n"
    fails(f"{own}ATOM.U32.Add r0, [shared+r255*4], r1", "address out of range", 2, 2, small)


# --- resonance ------------------------------------------------------------------------------------


def accumulate(values: list[Any], ty: Type, launch: LaunchConfig, cls: int = 0) -> list[float]:
    source = f"""
        .buffer x {ty}
        .buffer y F64
        LDG.{ty} r0, [x+r255*{ty.size_bytes}]
        ResAccum r1, r0, class_id={cls}
        STG.F64 [y+r255*8], r1
    """
    return run(source, launch, x=values, y=Unwritten(launch.total_threads))["y"]


SUMS = [[1e16, 1.0, -1e16, 1.0], [0.1, 0.2, 0.3, 0.4], [1e308, 1e308, -1e308, -1e308], [5e-324] * 4]


@pytest.mark.parametrize("values", SUMS)
@pytest.mark.parametrize("launch", [FOUR, BLOCKS, LaunchConfig((4, 1, 1))])
def test_accumulation_is_exact(values: list[float], launch: LaunchConfig) -> None:
    """Rounded only when it is read, whatever comes in between; one sum for the whole launch."""
    total, expected = Fraction(0), []
    for value in values:
        total += Fraction(value)
        expected.append(float("inf") if total > Fraction(1.7976931348623157e308) else float(total))
    assert accumulate(values, Type.F64, launch) == expected


def test_accumulation_of_every_type() -> None:
    for ty in Type:
        if ty.is_float:
            assert accumulate([0.5, 0.25, -1.0, 2.0], ty, FOUR) == [0.5, 0.75, -0.25, 1.75]
        else:
            top = ty.max_value
            total = [to_float(top * k) for k in (1, 2, 3, 4)]
            assert accumulate([top] * 4, ty, FOUR) == total


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_cannot_be_accumulated(value: float) -> None:
    source = ".buffer x F64\nLDG.F64 r0, [x+r255*8]\nResAccum r1, r0, class_id=0"
    fails(source, f"cannot accumulate {value} exactly", 1, 2, FOUR, x=[1.0, 2.0, value, 3.0])


def test_accumulators_are_apart_by_class_and_start_at_zero_with_each_launch() -> None:
    backend = ReferenceBackend()
    source = """
        .buffer y F64
        MOV_IMM.F64 r0, 1
        ResAccum r1, r0, class_id=1
        ResAccum r1, r0, class_id=1
        ResAccum r2, r0, class_id=2
        STG.F64 [y], r1
        STG.F64 [y+8], r2
    """
    for _ in range(2):
        assert run(source, backend=backend, y=Unwritten(2))["y"] == [2.0, 1.0]


@pytest.mark.parametrize("ty", ["U8", "I8", "I32", "U64", "I64"])
def test_phase(ty: str) -> None:
    """(phase - 8·class) mod 768; the phase outlives launches; the highest lane decides."""
    backend = ReferenceBackend()
    values = [7, Type[ty].max_value, Type[ty].min_value, 100]
    for cls in (0, 1, 95):
        for value in values:
            run(f"MOV_IMM.{ty} r0, {value}\nPhaseWrite r0, class_id={cls}", FOUR, backend)
            assert backend.phase == (value + 8 * cls) % 768
            for seen in (0, 50, 95):
                source = f".buffer y U32\nPhaseRead r0, class_id={seen}\nSTG.U32 [y], r0"
                assert run(source, backend=backend, y=Unwritten(1))["y"] == [(value + 8 * cls - 8 * seen) % 768]
    run("PhaseWrite r252, class_id=0", FOUR, backend)
    assert backend.phase == 3


def test_neighbours_of_every_class() -> None:
    """Lane c works on class c: it reads element 0 of each neighbour, and writes to the first."""
    launch, backend = LaunchConfig((1, 1, 1), (96, 1, 1)), ReferenceBackend()
    run("STG.U32 [r0], r252".join(["MOV_IMM.U32 r1, 12288\nMUL r0, r252, r1\n", ""]), launch, backend)
    for k in range(5):
        source = f".buffer y U32\nNBRLoad.U32 r0, r252, k={k}\nSTG.U32 [y+r255*4], r0"
        expected = [classes.neighbours(c)[k] for c in range(96)]
        assert run(source, launch, backend, y=Unwritten(96))["y"] == expected
    five = next(c for c in range(96) if len(classes.neighbours(c)) == 5)
    fails("NBRLoad.U32 r0, r252, k=5", f"class {five} has 5 neighbours: k must be below that, not 5", 0, five, launch)
    fails("NBRLoad.U32 r0, r255, k=0", "class 96 does not exist", 0, 96, LaunchConfig((1, 1, 1), (97, 1, 1)))
    fails("MOV_IMM.I8 r0, -1\nNBRStore.U64 r0, r255, k=0", "class -1 does not exist", 1, 0)
    run("MOV_IMM.U8 r0, 42\nMOV_IMM.I128 r1, -1\nNBRStore.I128 r0, r1, k=4", backend=backend)
    assert (backend.class_memory[90 * 12288 : 90 * 12288 + 16] == 255).all()


# --- after an error -------------------------------------------------------------------------------


def test_buffers_after_an_error_hold_whole_elements_old_or_new() -> None:
    backend = ReferenceBackend()
    x = backend.array([7] * 4, Type.U64)
    divide = """
        .buffer x U64
        STG.U64 [x+r255*8], r255
        MOV_IMM.U64 r0, 0
        DIV r1, r0, r255
        STG.U64 [x+r255*8], r1
    """
    with pytest.raises(ExecutionFailed, match="integer division by zero"):
        backend.execute(assemble(divide), FOUR, {"x": x})
    assert x.read().tolist() == [0, 1, 2, 3], "what was stored before the fault is there, nothing after it is"
    store = assemble(".buffer x U64\nMOV_IMM.U64 r0, 9\nSTG.U64 [x+8+r255*8], r0")
    with pytest.raises(ExecutionFailed, match="out of range"):
        backend.execute(store, FOUR, {"x": x})
    assert x.read().tolist() == [0, 1, 2, 3], "a store that one lane gets wrong stores nothing"
    backend.execute(assemble(".buffer x U64\nADD r0, r255, r255\nSTG.U64 [x+r255*8], r0"), FOUR, {"x": x})
    assert x.read().tolist() == [0, 2, 4, 6]


def test_state_after_an_error_is_that_of_the_last_good_instruction() -> None:
    backend = ReferenceBackend()
    source = """
        MOV_IMM.U32 r0, 30
        PhaseWrite r0, class_id=0
        MOV_IMM.U8 r1, 5
        STG.U8 [class 2], r1
        DIV r2, r0, r252
        PhaseWrite r2, class_id=0
    """
    with pytest.raises(ExecutionFailed, match="integer division by zero"):
        run(source, TWO, backend)
    assert backend.phase == 30
    assert backend.class_memory[2 * 12288] == 5
    with pytest.raises(ExecutionFailed, match="is not allocated here"):
        run("PoolAlloc q, size=4\nPoolFree q\nPoolLoad.U8 r0, q, offset=0", TWO, backend)
    run("PoolAlloc q, size=4", TWO, backend)  # the pool of the failed launch is not in the way


def test_an_array_instruction_that_fails_writes_nothing() -> None:
    source = ".buffer x I32\n.buffer y I32\n.buffer z I32\nParallelMapBinary.I32.Div [z], [x], [y], count=3"
    backend, buffers = ReferenceBackend(), {}
    for name, values in (("x", [6, 7, 8]), ("y", [2, 0, 4]), ("z", [9, 9, 9])):
        buffers[name] = backend.array(values, Type.I32)
    with pytest.raises(ExecutionFailed, match="integer division by zero"):
        backend.execute(assemble(source), ONE, buffers)
    assert buffers["z"].read().tolist() == [9, 9, 9]
    per_lane = source.replace("[z], [x], [y], count=3", "[z+r255*4], [x+r255*4], [y+r255*4], count=1")
    with pytest.raises(ExecutionFailed, match=r"integer division by zero \(lane 1\)"):
        backend.execute(assemble(per_lane), LaunchConfig((1, 1, 1), (3, 1, 1)), buffers)


# --- several devices ------------------------------------------------------------------------------

REDUCTIONS = {"Sum": np.add, "Product": np.multiply, "Min": np.minimum, "Max": np.maximum}
PAST_NAN = {"Min": np.fmin, "Max": np.fmax}


@pytest.mark.parametrize("operation", REDUCTIONS)
@of_each("count", [1, 2, 3, 4])
@of_each("ty", [Type.F16, Type.BF16, Type.F32, Type.F64, Type.I8, Type.U16, Type.I64, Type.U128])
def test_all_reduce(count: int, operation: str, ty: Type) -> None:
    rng, backend = np.random.default_rng(count), ReferenceBackend()
    if ty.is_float:
        data = [rng.standard_normal(5).astype(ty.dtype) for _ in range(count)]
        data[0][2] = np.nan
    else:
        data = [to_array([int(v) for v in rng.integers(-100 if ty.is_signed else 0, 100, 5)], ty) for _ in range(count)]
    buffers = [backend.array(values, ty) for values in data]
    devices = ", ".join(map(str, range(count)))
    program = assemble(f".buffer x {ty} 5\nAllReduce.{ty}.{operation} [x], n=5, devices=({devices})")
    backend.execute_on_devices(program, TWO, [{"x": buffer} for buffer in buffers])
    stacked = np.stack([v.astype(np.float64) if ty.is_float else v.astype(object) for v in data])
    exact = (PAST_NAN if ty.is_float else {}).get(operation, REDUCTIONS[operation]).reduce(stacked, axis=0)
    for buffer in buffers:
        got = buffer.read()
        if ty.is_float:
            assert np.array_equal(got, exact.astype(ty.dtype), equal_nan=True)
        else:
            wrapped = [(int(v) - ty.min_value) % (1 << ty.bits) + ty.min_value for v in exact]
            assert got.tolist() == wrapped


@of_each("count", [1, 2, 3, 4])
@of_each("ty", [Type.F16, Type.F64, Type.I8, Type.I256])
@of_each("turned", [False, True])
def test_all_gather(count: int, ty: Type, turned: bool) -> None:
    """In the order in which the instruction names the devices."""
    backend = ReferenceBackend()
    order = list(range(count))[:: -1 if turned else 1]
    data = [[10 * d + k for k in range(3)] for d in range(count)]
    named = ", ".join(map(str, order))
    program = assemble(f".buffer x {ty}\n.buffer y {ty}\nAllGather.{ty} [y], [x], n=3, devices=({named})")
    devices = [{"x": backend.array(to_array(v, ty), ty), "y": backend.allocate_typed(ty, 3 * count)} for v in data]
    backend.execute_on_devices(program, BLOCKS, devices)
    for params in devices:
        assert [int(v) for v in params["y"].read()] == [v for d in order for v in data[d]]


def test_devices_exchange_again_and_again() -> None:
    """A ring of sums: each round adds up what the devices have, then each adds its number."""
    source = """
        .buffer x I32 1
        .scalar me I32
        LDG.I32 r1, [me]
        LOOP r0, 3
            AllReduce.I32.Sum [x], n=1, devices=(0, 1)
            LDG.I32 r2, [x]
            ADD r2, r2, r1
            STG.I32 [x], r2
        ENDLOOP
    """
    backend = ReferenceBackend()
    xs = [backend.array([1], Type.I32), backend.array([2], Type.I32)]
    backend.execute_on_devices(assemble(source), ONE, [{"x": x, "me": k} for k, x in enumerate(xs)])
    a, b = 1, 2
    for _ in range(3):
        a, b = a + b, a + b + 1
    assert [x.read()[0] for x in xs] == [a, b]


def test_exchanges_that_cannot_be() -> None:
    backend = ReferenceBackend()
    xs = [{"x": backend.array([k], Type.I32)} for k in range(3)]
    two = assemble(".buffer x I32\nAllReduce.I32.Sum [x], n=1, devices=(0, 1)")
    with pytest.raises(ExecutionFailed, match="on a backend of one device"):
        backend.execute(two, ONE, xs[0])
    with pytest.raises(ExecutionFailed, match="names devices"):
        backend.execute_on_devices(two, ONE, xs)
    with pytest.raises(ExecutionFailed, match="names devices"):
        backend.execute_on_devices(two, ONE, xs[:1])
    # only the device with a positive number reaches it
    some = """
        .buffer x I32
        LDG.I32 r0, [x]
        MOV_IMM.I32 r1, 0
        SETcc.EQ p0, r0, r1
        BRA a, p0
        AllReduce.I32.Sum [x], n=1, devices=(0, 1)
    a:
    """
    with pytest.raises(ExecutionFailed, match="not every device reached AllReduce"):
        backend.execute_on_devices(assemble(some), ONE, xs[:2])
    assert [x["x"].read()[0] for x in xs] == [0, 1, 2], "nothing was exchanged"


def test_devices_have_class_memory_of_their_own() -> None:
    backend = ReferenceBackend()
    source = ".buffer y U8\n.scalar me U8\nLDG.U8 r0, [class 0]\nSTG.U8 [y], r0\nLDG.U8 r1, [me]\nSTG.U8 [class 0], r1"
    devices = [{"y": backend.allocate_typed(Type.U8, 1), "me": k + 1} for k in range(2)]
    for _ in range(2):
        backend.execute_on_devices(assemble(source), ONE, devices)
    assert [d["y"].read()[0] for d in devices] == [0, 0]
    assert backend.class_memory[0] == 0
