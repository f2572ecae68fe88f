"""Fuzzing: whatever comes in, out comes a program or an EshkolError, soon and in bounded memory.

Inputs are made from a corpus of valid programs of every row by flipping, splicing, cutting and doubling, and
(for JSON) by putting any value in any place. What parses is validated; what validates is run. Seeds are fixed,
so a failure names the input that causes it.
"""

from __future__ import annotations

import copy
import json
import random
import re
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from effort import amount
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import COUNT_LIMIT, MEMORY_KINDS, Kind, Opcode
from eshkol.atlas.jsonform import from_json, loads
from eshkol.atlas.operands import (
    BufferOffset,
    ClassOffset,
    Immediate,
    Indexed,
    Label,
    PoolOffset,
    Predicate,
    Register,
    RegisterIndirect,
    Shared,
    StaticAddress,
)
from eshkol.atlas.program import LaunchConfig, ParamKind, Program, disassemble, to_json
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import EshkolError

INPUTS = amount(10_000, 1_500)
SECONDS_EACH = 1.0
LAUNCH = LaunchConfig((2, 1, 1), (2, 1, 1), shared_memory=64)


# --- the corpus -----------------------------------------------------------------------------------


def sample(op: Opcode, ty: Type) -> Program:
    """A program around one instruction of a row: its registers and memory are there, so most of them run."""
    b = ProgramBuilder("fuzz")
    given: dict[str, Any] = {f.name: ty for f in op.fields if f.kind is Kind.TYPE}
    register = {t: b.constant(t, 1) for t in dict.fromkeys((ty, Type.U32, Type.F32, Type.F64))}
    flag = Predicate(0)
    b.setcc(next(iter(ROWS["SETcc"].fields[0].choices)), flag, register[ty], register[ty])
    for f in op.fields:
        element = f.ty if isinstance(f.ty, Type) else ty
        if f.kind in (Kind.READ, Kind.WRITE, Kind.UPDATE):
            shared = op.name in ("LDS", "STS", "MatrixLoad") or (op.name == "CopyAsync" and f.name == "dst")
            given[f.name] = Shared(8) if shared else BufferOffset(b.buffer(f.name, element, 64).name)
        elif f.kind is Kind.USE:
            given[f.name] = register[Type.U32 if f.ty in ("index", "integer") else element]
        elif f.kind is Kind.CHOICE:
            given[f.name] = next(iter(f.choices))
    fixed = {
        Kind.DEF: Register(9), Kind.PDEF: Predicate(1), Kind.PUSE: flag, Kind.LABEL: Label("end"), Kind.POOL: "made",
        Kind.TRIPS: 2, Kind.IMMEDIATE: Immediate(ty, 3), Kind.COUNT: 2, Kind.REAL: 0.5, Kind.FLAG: True,
        Kind.COUNTS: (1, 1), Kind.PAIRS: ((0, 0),),
    }  # fmt: skip
    for f in op.fields:
        if f.name not in given and f.kind in fixed:
            given[f.name] = fixed[f.kind]
    if any(f.kind is Kind.POOL for f in op.fields) and op.name != "PoolAlloc":
        b.pool_alloc("made", 64)
    if op.name in ("RET", "CALL"):
        b.call(Label("end"))
    if op.name == "ENDLOOP":
        b.begin_loop(Register(8), 2)
    b.emit(op(**given))
    if op.name == "LOOP":
        b.end_loop()
    b.place("end")
    b.mov(Register(10), register[ty])
    return b.build()


def corpus() -> list[Program]:
    found = []
    for op in ROWS.values():
        types = sorted(op.types, key=lambda t: t.name) or [Type.F32]
        found.append(sample(op, types[0]))
        found.append(sample(op, types[-1]))
    return found


CORPUS = corpus()
TEXTS = [disassemble(program) for program in CORPUS]
TREES = [to_json(program) for program in CORPUS]
_SPLIT = re.compile(r"\w+|\s+|.", re.S)
TOKENS = sorted({token for text in TEXTS for token in _SPLIT.findall(text)})
ODD_CHARACTERS = [
    "\x00",
    "\n",
    "\r",
    "\t",
    '"',
    "\\",
    ";",
    "é",
    "\u2028",
    "\ud800",
    "\udfff",
    "\U0001f600",
    "٣",
    "\ufeff",
]
ODD_NUMBERS = ["0", "-1", "1", "255", "256", "4294967295", "4294967296", str(COUNT_LIMIT), str(COUNT_LIMIT + 1),
               str(1 << 64), "-" + str(1 << 63), "1e999", "nan", "-inf", "0x" + "f" * 300, "9" * 1250]  # fmt: skip


def test_the_corpus_is_valid_and_covers_the_table() -> None:
    assert {i.op.name for program in CORPUS for i in program.instructions} == set(ROWS)
    judged = Counter(judge_validate(program) is not None for program in CORPUS)
    assert judged[True] > 0.8 * len(CORPUS), "mutations should start from programs that are mostly legal"


# --- judging --------------------------------------------------------------------------------------


@contextmanager
def limited(seconds: float = SECONDS_EACH) -> Iterator[None]:
    """Stop what computes for longer (in time of its own, whatever else the machine does): a hang is a failure."""

    def stop(*_: object) -> None:
        raise AssertionError(f"still running after {seconds} s of computing")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def judge(make: Callable[[], Program]) -> Program | None:
    """The program that make() gives, or None for a clean refusal; anything else is a failure of this test."""
    with limited():
        try:
            return make()
        except EshkolError as error:
            refusal = str(error)
    assert refusal, "a refusal says something"
    return None


def judge_validate(program: Program) -> Program | None:
    return judge(lambda: validate(program, LAUNCH) and program)


def judge_run(program: Program, backend: ReferenceBackend) -> bool:
    """Whether a valid program ran; params are tiny, and it must stop by itself or at the step limit."""

    def execute() -> Program:
        given: dict[str, Any] = {}
        for p in program.params:
            if p.kind is ParamKind.SCALAR:
                given[p.name] = 1
            elif p.kind is ParamKind.POOL:
                given[p.name] = backend.allocate_pool(64)
            else:
                given[p.name] = backend.array([1] * min(p.count or 8, 64), p.ty)
        backend.execute(program, LAUNCH, given)
        return program

    return judge(execute) is not None


class Tally(Counter[str]):
    """How far the inputs came, so that a fuzzer that only makes noise is seen."""

    def follow(self, program: Program | None, backend: ReferenceBackend) -> None:
        self["inputs"] += 1
        if program is None:
            return
        self["parsed"] += 1
        assert judge(lambda: assemble(disassemble(program))) == program, "what was read can be written and read again"
        if judge_validate(program) is None:
            return
        self["valid"] += 1
        self["ran"] += judge_run(program, backend)


def backends() -> Iterator[ReferenceBackend]:
    """A fresh backend now and then, so that nothing piles up and one that breaks would be seen."""
    while True:
        backend = ReferenceBackend(step_limit=2000)
        yield from [backend] * 250


# --- text -----------------------------------------------------------------------------------------


def mutate_text(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(TEXT_MUTATIONS)(rng, text)
    return text


def flip(rng: random.Random, text: str) -> str:
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if raw:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return raw.decode("utf-8", "surrogateescape")


def odd_character(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(ODD_CHARACTERS) + text[place:]


def truncate(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def double(rng: random.Random, text: str) -> str:
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:b] + text[a:b] * rng.choice((1, 1, 2, 30)) + text[b:]


def splice(rng: random.Random, text: str) -> str:
    other = rng.choice(TEXTS)
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other)) :]


def swap_token(rng: random.Random, text: str) -> str:
    tokens = _SPLIT.findall(text)
    if tokens:
        tokens[rng.randrange(len(tokens))] = rng.choice(TOKENS)
    return "".join(tokens)


def change_number(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    spot = rng.choice(found)
    return text[: spot.start()] + rng.choice(ODD_NUMBERS) + text[spot.end() :]


def move_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def foreign_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(rng.choice(TEXTS).split("\n")))
    return "\n".join(lines)


TEXT_MUTATIONS = [
    flip, odd_character, truncate, double, splice, swap_token, swap_token, change_number, change_number, move_line,
    foreign_line,
]  # fmt: skip


def test_text() -> None:
    rng, tally, pool = random.Random(1), Tally(), backends()
    for _ in range(INPUTS):
        source = mutate_text(rng, rng.choice(TEXTS))
        try:
            tally.follow(judge(lambda source=source: assemble(source)), next(pool))
        except Exception:
            print("the input was:", repr(source))  # pytest shows it with the failure
            raise
    assert tally["parsed"] > INPUTS / 10
    assert tally["valid"] > INPUTS / 20
    assert tally["ran"] > INPUTS / 40


# --- operands -------------------------------------------------------------------------------------


def other_operand(rng: random.Random, program: Program, op: Opcode, f: Any, old: Any) -> Any:
    """Another operand that the field admits; most are such that the program stays valid, some are extreme."""
    count = rng.choice((0, 1, 1, 2, 3, 4, 8, 63, 1 << 32, COUNT_LIMIT))
    register = Register(rng.choice((0, 0, 1, 1, 2, 9, 10, 252, 255)))
    if f.kind in MEMORY_KINDS:
        handles = [p.name for p in program.params if p.kind is ParamKind.BUFFER] or ["x"]
        offset = rng.choice((0, 0, 1, 4, 8, 16, 60, 64, 12_280, COUNT_LIMIT))
        base = rng.choice((
            BufferOffset(rng.choice(handles), offset), Shared(offset), ClassOffset(rng.choice((0, 5, 95)), offset),
            PoolOffset("made", offset), old,
        ))  # fmt: skip
        if rng.random() < 0.1:
            return RegisterIndirect(register)
        if rng.random() < 0.4 and isinstance(base, StaticAddress):
            return Indexed(base, register, rng.choice((1, 2, 4, 8, 16, 1 << 20)))
        return base
    choices: dict[Kind, Callable[[], Any]] = {
        Kind.DEF: lambda: Register(rng.choice((0, 1, 9, 10, 251))), Kind.USE: lambda: register,
        Kind.COUNT: lambda: min(max(count, f.low), f.high), Kind.TRIPS: lambda: rng.choice((0, 1, 5, register)),
        Kind.COUNTS: lambda: tuple(rng.choice((0, 1, 2, 3, 1 << 20)) for _ in range(rng.choice((0, 1, 2, 2, 3)))),
        Kind.PAIRS: lambda: tuple((rng.randrange(3), rng.randrange(3)) for _ in range(rng.randrange(3))),
        Kind.REAL: lambda: rng.choice((0.0, 1.0, -0.5, 1e308, 5e-324, float("inf"), float("nan"))),
        Kind.FLAG: lambda: rng.random() < 0.5, Kind.CHOICE: lambda: rng.choice(list(f.choices)),
        Kind.TYPE: lambda: rng.choice([t for t in Type if f.name != "ty" or t in op.types]),
    }  # fmt: skip
    return choices[f.kind]() if f.kind in choices else old


def mutate_operands(rng: random.Random, program: Program) -> Program:
    code = list(program.instructions)
    # The row that the sample is about stands near the end; what comes before only makes its registers.
    for _ in range(rng.choice((1, 1, 2, 3))):
        last = [i for i, x in enumerate(code) if x.op.fields][-3:]
        k = rng.choice([*last, rng.randrange(len(code))])
        op, operands = code[k].op, list(code[k].operands)
        if operands:
            n = rng.randrange(len(operands))
            operands[n] = other_operand(rng, program, op, op.fields[n], operands[n])
            code[k] = op(*operands)
    return replace(program, instructions=tuple(code))


@pytest.mark.parametrize(("expanded", "inputs"), [(False, INPUTS // 2), (True, INPUTS // 10)])
def test_operands(expanded: bool, inputs: int) -> None:
    """Programs whose operands are changed within what the rows admit: these mostly reach the machine."""
    rng, tally = random.Random(4 + expanded), Tally()
    for k in range(inputs):
        if k % 250 == 0:
            backend = ReferenceBackend(expanded=expanded, step_limit=2000)
        program = mutate_operands(rng, rng.choice(CORPUS))
        try:
            tally.follow(program, backend)
        except Exception:
            print("the program was:", program)
            raise
    assert tally["valid"] > inputs / 4
    assert tally["ran"] > inputs / 10


# --- JSON -----------------------------------------------------------------------------------------

SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 255, 1 << 31, 1 << 32, 1 << 47, COUNT_LIMIT, COUNT_LIMIT + 1, 1 << 63, 1 << 64,
    -(1 << 63), 10**400, 0.5, -0.0, 1e308, float("inf"), float("nan"), "", "x", "r0", "r255", "r256", "p0", "[x]",
    "[shared]", "[class 95+12284]", "[pool q]", "[r0]", "[x+r0*4]", "F32", "I4096", "U8", "inf", "-inf", "nan", "end",
    "\x00", "\ud800", "a\nb", "5", "atlas", "buffer", "scalar", "pool", "x" * 200, [], {}, [1], [[0, 0]], [1, 1],
    {"type": "F32", "value": 1}, {"type": "U4096", "value": (1 << 4096) - 1}, {"op": "EXIT"}, [None], {"": {}},
]  # fmt: skip
NODES = [node for tree in TREES for node in tree["code"]]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node of a tree but the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def odd_value(rng: random.Random) -> Any:
    choice = rng.randrange(20)
    if choice == 0:  # deep, but not so deep that JSON itself refuses it
        value: Any = 1
        for _ in range(rng.choice((10, 200))):
            value = [value] if rng.random() < 0.5 else {"op": value}
        return value
    if choice < 4:
        return json.loads(json.dumps(rng.choice(NODES)))
    return copy.deepcopy(rng.choice(SCALARS))


def mutate_tree(rng: random.Random, tree: Any) -> Any:
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(list(places(tree)) or [("atlas",)])
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        key, action = path[-1], rng.randrange(8)
        if action < 5:
            parent[key] = odd_value(rng)
        elif action == 5:
            del parent[key]
        elif action == 6 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), odd_value(rng))
        elif isinstance(parent, dict):
            parent[rng.choice(["x", "", "op", "dst", "src", "count", "devices", "\ud800"])] = odd_value(rng)
    return tree


def test_json_trees() -> None:
    """Any value in any place of a well-formed tree, as text and as values."""
    rng, tally, pool = random.Random(2), Tally(), backends()
    for _ in range(INPUTS):
        tree = mutate_tree(rng, rng.choice(TREES))
        source = json.dumps(tree)
        try:
            program = judge(lambda source=source: loads(source))
            assert judge(lambda tree=tree: from_json(tree)) == program
            tally.follow(program, next(pool))
        except Exception:
            print("the input was:", source)
            raise
    assert tally["parsed"] > INPUTS / 20
    assert tally["valid"] > INPUTS / 50


def test_json_text() -> None:
    """JSON with flipped bits, odd characters, missing ends and doubled stretches; sometimes as bytes."""
    rng, tally, pool = random.Random(3), Tally(), backends()
    sources = [json.dumps(tree) for tree in TREES]
    mutations = [flip, odd_character, truncate, double, change_number, change_number]
    for _ in range(INPUTS // 2):
        source: str | bytes = rng.choice(mutations)(rng, rng.choice(sources))
        if rng.random() < 0.3:
            source = source.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")
        try:
            tally.follow(judge(lambda source=source: loads(source)), next(pool))
        except Exception:
            print("the input was:", repr(source))
            raise
    assert tally["parsed"] > INPUTS / 40


@pytest.mark.parametrize("depth", [100, 1_000, 10_000, 1_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"atlas": 1, "code": [', '[{"op":'])
def test_deep_nesting(opening: str, depth: int) -> None:
    assert judge(lambda: loads(opening * depth)) is None
    assert judge(lambda: loads('{"atlas": 1, "name": ' + opening * depth)) is None


@pytest.mark.parametrize("size", [10**4, 10**5])
def test_large_pieces(size: int) -> None:
    """Long lines, names, numbers, comments and lists end in an answer about as fast as they are read."""
    for source in (
        "A" * size, "MOV_IMM.I32 r0, " + "9" * size, ";" * size, "EXIT\n" * (size // 50), "(" * size, " " * size,
        '.program "' + "x" * size + '"', '.program "' + "\\" * size, "[" * size, "a:" * (size // 50), "-" * size,
        "AllReduce.F32.Sum [x], n=1, devices=(" + "1," * size, "LDG.F32 r0, [x" + "+1" * (size // 10) + "]",
        "0x" + "f" * size,
    ):  # fmt: skip
        message = ""
        with limited(5 * SECONDS_EACH):
            try:
                assemble(source)
            except EshkolError as error:
                message = error.message
        assert len(message) < 300, "a message does not repeat a whole input"


# --- bounded memory -------------------------------------------------------------------------------

# Programs that ask for far more than they can have, in every way the ISA offers. Each must be refused by an
# error, in a process that may not have much memory.
GREEDY = [
    "PoolAlloc q, size=281474976710656",
    "PoolAlloc q, size=8589934592\nPoolAlloc p, size=8589934592\nMOV_IMM.U8 r0, 1\nPoolStore.U8 q, r0, offset=0",
    ".buffer x F32\nReduceAdd.F32 r0, [x], count=281474976710656",
    ".buffer x F32\n.buffer y F32\nParallelMap.F32.Abs [y], [x], count=1099511627776",
    ".buffer x F32\n.buffer y F32\n.buffer z F32\nGEMM.F32 [z], [x], [y], m=1099511627776, n=1099511627776, k=0",
    ".buffer x F32\n.buffer y F32\n.buffer z F32\nBatchedGEMM.F32 [z], [x], [y], batch=281474976710656, m=0, n=0, k=0",
    ".buffer x F32\n.buffer y F32\nAttention.F32 [y], [x], [x], [x], batch=281474976710656, heads=281474976710656,"
    " seq_len=281474976710656, head_dim=281474976710656",
    ".buffer x F32\n.buffer y F32\n.buffer z F32\nGroupNorm.F32 [y], [x], [z], [z], batch=0, channels=281474976710656,"
    " groups=1, spatial=281474976710656",
    ".buffer x F32\n.buffer y F32\nKVCacheUpdate.F32 [y], [x], position=281474976710656, batch=2, heads=2, head_dim=1",
    ".buffer x F32\n.buffer y F32\n.buffer z F32\nTensorContract.F32 [z], [x], [y],"
    " shape_a=(0, 281474976710656, 281474976710656), shape_b=(0, 281474976710656, 281474976710656),"
    " contract_dims=((0, 0), (1, 1), (2, 2))",
    ".buffer x F32\n.buffer y F32\n.buffer z F32\nConv2D.F32 [z], [x], [y], batch=1, in_channels=1, out_channels=1,"
    " height=1, width=1, kernel_h=1, kernel_w=1, stride=(4194304, 4194304), padding=(2097152, 2097152)",
    ".buffer x F32\n.buffer y F32\nAllGather.F32 [y], [x], n=281474976710656",
    ".buffer x F32 281474976710656\nLDG.F32 r0, [x+281474976710656]",
    "MOV_IMM.U64 r0, 18446744073709551615\nLOOP r1, r0\nENDLOOP",
    "f: CALL f",
    "MOV_IMM.I4096 r0, 3\nLOOP r1, 1000\nMUL r0, r0, r0\nENDLOOP",
    "MOV_IMM.F64 r0, 5e-324\nMOV_IMM.F64 r2, 1e308\nLOOP r1, 200\nResAccum r3, r0, class_id=0\n"
    "ResAccum r3, r2, class_id=0\nENDLOOP",
]
GREEDY_LAUNCHES = [
    LaunchConfig((1 << 30, 1, 1), (1024, 1, 1)),
    LaunchConfig((1 << 20, 1, 1), (1, 1, 1), 1 << 20),
    LaunchConfig((1, 1, 1), (1, 1, 1), 1 << 30),
]
GREEDY_SIZES = [-1, 1 << 33, 1 << 34, 1 << 60, 1 << 80]


def greedy() -> None:
    """Run in a process of its own, under a limit on its address space."""
    limit = 1 << 31
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    backend = ReferenceBackend(step_limit=2000)
    params = {name: backend.array([1.0] * 8, Type.F32) for name in "xyz"}
    for source in GREEDY:
        program = assemble(source)
        given = {p.name: params[p.name] for p in program.params}
        try:
            backend.execute(program, LaunchConfig(), given)
            print("ran", repr(source))
        except EshkolError as error:
            print("refused", type(error).__name__, error.message[:60])
    for launch in GREEDY_LAUNCHES:
        try:
            backend.execute(Program(), launch)
        except EshkolError as error:
            print("refused", type(error).__name__, error.message[:60])
    for size in GREEDY_SIZES:
        for allocate in (backend.allocate, backend.allocate_pool):
            try:
                allocate(size)
            except EshkolError as error:
                print("refused", type(error).__name__, error.message[:60])
    status = Path("/proc/self/status").read_text()  # what getrusage says would include the parent process
    print("the peak was", int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) >> 10, "MiB")


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space and reads /proc")
def test_greed_is_refused_in_bounded_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import test_fuzz; test_fuzz.greedy()"],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path]), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcomes = Counter(line.split(" ")[0] for line in done.stdout.splitlines())
    assert outcomes["ran"] == 3, "an empty product, padding that is never built, and sums that stay small"
    assert outcomes["refused"] == len(GREEDY) - 3 + len(GREEDY_LAUNCHES) + 2 * len(GREEDY_SIZES)
    peak = int(done.stdout.rsplit("the peak was", 1)[1].split()[0])
    assert peak < 600, done.stdout
