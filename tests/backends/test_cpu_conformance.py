"""The CPU backend against the reference: every instruction on every type, and random programs, bit for bit."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from strategies import Case, assert_same, bit_patterns, run, runnable_programs
from test_array_instructions import FLOAT_TYPES, make, make_inputs
from test_instructions import ARITHMETIC, operand_columns

from batches import checkered
from effort import FULL, examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Kind, Opcode, element_type
from eshkol.atlas.operands import Condition, Label, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type, encode
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.base import Backend
from eshkol.backends.cpu import CpuBackend, simd
from eshkol.backends.cpu.kernels.translate import MANY_BITS
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import EshkolError
from eshkol.support.store import ProgramCache

pytest.importorskip("llvmlite")
GLOBAL = Register(255)
LEVELS = simd.levels()
CACHE = ProgramCache(durable=False)
END = Label("end")


at_every_level = pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)


def backends(level: simd.Level) -> tuple[Backend, Backend]:
    """The reference and the CPU, both running the same expansions where rounding could differ."""
    return reference(), compiled(level)


def reference() -> Backend:
    return ReferenceBackend(expanded=True)


def compiled(level: simd.Level) -> Backend:
    return CpuBackend(level=level, cache=CACHE, expanded=True)


def lanes(count: int) -> tuple[ProgramBuilder, int | None]:
    """A program for so many lanes, and the size to declare buffers with, of one element for each lane.

    What is declared leaves nothing to check, so `make test` compiles only the version of a lane that it runs;
    `make test-all` declares nothing, and compiles the checked version beside it.
    """
    b = ProgramBuilder()
    if FULL:
        return b, None
    beyond = b.pred()
    b.setcc(Condition.GE, beyond, GLOBAL, b.constant(Type.U64, count))
    b.bra(END, beyond)
    return b, count


def finished(b: ProgramBuilder) -> Program:
    """The program, with the end that lanes beyond the count go to."""
    if not FULL:
        b.place(END)
    return b.build()


# One program for all types of one size: as many lanes at once as for each alone, and less to compile.
SAME_SIZE = [[ty for ty in Type if ty.bits == bits] for bits in sorted({ty.bits for ty in Type})]
Columns = list[list]


def run_op(backend: Backend, op: Opcode, operands: dict[Type, Columns]) -> list[np.ndarray]:
    count, params = max(len(columns[0]) for columns in operands.values()), {}
    b, size = lanes(count)
    for ty, columns in operands.items():
        registers = []
        for k, column in enumerate(columns):
            register = b.reg()
            b.ldg(ty, register, b.buffer(f"{ty}_{k}", ty, size).at(GLOBAL))
            registers.append(register)
            filled = (column * (count // len(column) + 1))[:count]
            params[f"{ty}_{k}"] = backend.array(to_array(filled, ty), ty)
        result = b.reg()
        b.emit(op(result, *registers))
        b.stg(ty, b.buffer(f"{ty}_out", ty, size).at(GLOBAL), result)
        params[f"{ty}_out"] = backend.allocate_typed(ty, count)
    backend.execute(finished(b), LaunchConfig((1, 1, 1), (count, 1, 1)), params)
    return [bit_patterns(params[f"{ty}_out"].read(), ty) for ty in operands]


@cache
def operands_of(op: Opcode, types: tuple[Type, ...]) -> dict[Type, Columns]:
    return {ty: operand_columns(op, ty) for ty in types}


@cache
def wanted_of(op: Opcode, types: tuple[Type, ...]) -> list[np.ndarray]:
    """What the reference says, once for all levels."""
    return run_op(reference(), op, operands_of(op, types))


CASES = [
    (op, found) for op in ARITHMETIC for types in SAME_SIZE if (found := tuple(ty for ty in types if ty in op.types))
]


BETWEEN = 2048  # bits of integers whose code differs from that of half and of twice as many in a number alone


def left_out(bits: int, level: simd.Level) -> bool:
    """Whether only `make test-all` has a width at a level: lanes of more than MANY_BITS know no levels."""
    return bits == BETWEEN or (bits > MANY_BITS and level is not LEVELS[0])


_turns = itertools.cycle(LEVELS[1:] or LEVELS)


def levelled(name: str, bits: int, *values: object, slow: bool = False) -> list[Any]:
    """A case of some width at every level; `make test` takes the best one, and of the others each in its turn."""
    taken = (LEVELS[0], next(_turns))
    return [
        pytest.param(*values, level, id=f"{name}-{level.value}",
                     marks=[pytest.mark.slow] if slow or level not in taken or left_out(bits, level) else [])
        for level in LEVELS
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "types", "level"),
    [p for op, types in CASES for p in levelled(f"{op.name}-{types[0].bits}", types[0].bits, op, types)],
)
def test_register_instruction(op: Opcode, types: tuple[Type, ...], level: simd.Level) -> None:
    operands = operands_of(op, types)
    answers = wanted_of(op, types), run_op(compiled(level), op, operands)
    for ty, wanted, found in zip(types, *answers, strict=True):
        if op.name in ("MIN", "MAX", "CLAMP") and ty.is_float:  # which zero is the lesser is not defined
            half = 1 << (ty.bits - 1)
            wanted, found = (np.where(patterns == half, 0, patterns) for patterns in (wanted, found))
        wrong = np.flatnonzero((wanted != found).reshape(len(wanted), -1).any(axis=1))[:5]
        columns = operands[ty]
        assert not wrong.size, [(ty, *(c[k % len(c)] for c in columns), found[k], wanted[k]) for k in wrong]


@checkered(first=[True, False], ty=FLOAT_TYPES, level=LEVELS)
def test_extremes_of_one_number_that_is_none(first: bool, ty: Type, level: simd.Level) -> None:
    """A value for all lanes is computed once, as a single number, and LLVM knows that the first result is no NaN."""
    results = []
    for backend in backends(level):
        b = ProgramBuilder()
        given, least, most, result = b.reg(), b.reg(), b.reg(), b.reg()
        b.ldg(ty, given, b.scalar("x", ty).address)
        zero = b.constant(ty, 0.0)
        b.emit(ROWS["DIV"](given, given, zero))
        b.emit(ROWS["MAX"](least, given, zero))
        b.emit(ROWS["MIN"](most, *((least, given) if first else (given, least))))
        b.emit(ROWS["CLAMP"](result, given, zero, given))
        for k, register in enumerate((least, most, result)):
            b.stg(ty, b.buffer(f"out{k}", ty, 4).at(GLOBAL), register)
        out = {f"out{k}": backend.allocate_typed(ty, 4) for k in range(3)}
        backend.execute(b.build(), LaunchConfig.linear(4), {"x": 0.0, **out})
        results.append([bit_patterns(buffer.read(), ty).tolist() for buffer in out.values()])
    assert results[0] == results[1]


def run_conversions(backend: Backend, source: Type, targets: list[Type], values: list) -> list[np.ndarray]:
    b, size = lanes(len(values))
    register = b.reg()
    b.ldg(source, register, b.buffer("x", source, size).at(GLOBAL))
    params = {"x": backend.array(to_array(values, source), source)}
    for target in targets:
        result = b.reg()
        b.emit(ROWS["CVT"](source, target, result, register))
        b.stg(target, b.buffer(f"to_{target}", target, size).at(GLOBAL), result)
        params[f"to_{target}"] = backend.allocate_typed(target, len(values))
    backend.execute(finished(b), LaunchConfig((1, 1, 1), (len(values), 1, 1)), params)
    return [bit_patterns(params[f"to_{target}"].read(), target) for target in targets]


@cache
def converted(source: Type) -> list[list[np.ndarray]]:
    """What the reference says of all targets, once for all levels."""
    return [run_conversions(reference(), source, targets, oracle.samples(source, 12)) for targets in SAME_SIZE]


@pytest.mark.parametrize(("source", "level"), [p for ty in Type for p in levelled(str(ty), ty.bits, ty)])
def test_conversions(source: Type, level: simd.Level) -> None:
    values = oracle.samples(source, 12)
    for targets, wanted in zip(SAME_SIZE, converted(source), strict=True):
        if left_out(targets[0].bits, level) and not FULL:
            continue
        found = run_conversions(compiled(level), source, targets, values)
        for target, a, b in zip(targets, found, wanted, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{source} to {target}")


def run_comparisons(backend: Backend, ty: Type) -> np.ndarray:
    pairs = list(itertools.product(oracle.samples(ty, 6), repeat=2))[:600]
    b, size = lanes(len(pairs))
    x, y, yes, no = b.reg(), b.reg(), b.constant(Type.U8, 1), b.constant(Type.U8, 0)
    b.ldg(ty, x, b.buffer("x", ty, size).at(GLOBAL))
    b.ldg(ty, y, b.buffer("y", ty, size).at(GLOBAL))
    out = backend.allocate_typed(Type.U8, 6 * len(pairs))
    slot = b.buffer("out", Type.U8, size and 6 * size)
    for k, condition in enumerate(Condition):
        pred, flag = b.pred(), b.reg()
        b.setcc(condition, pred, x, y)
        b.sel(flag, pred, yes, no)
        base = type(slot.address)(slot.name, k * len(pairs))
        b.stg(Type.U8, base.at(GLOBAL, 1), flag)
    params = {name: backend.array([p[k] for p in pairs], ty) for k, name in enumerate("xy")}
    backend.execute(finished(b), LaunchConfig((1, 1, 1), (len(pairs), 1, 1)), {**params, "out": out})
    return np.asarray(out.read())


@pytest.mark.parametrize("ty", Type, ids=str)
def test_comparisons(ty: Type) -> None:
    wanted = run_comparisons(reference(), ty)
    for level in LEVELS:
        np.testing.assert_array_equal(run_comparisons(compiled(level), ty), wanted, err_msg=level.value)


def outcome(case: Case, backend: Backend) -> dict[str, np.ndarray] | str:
    """The outputs, or the kind of failure."""
    try:
        return run(case, backend)
    except EshkolError as error:
        return type(error).__name__


def agree(case: Case, level: simd.Level) -> None:
    wanted, found = (outcome(case, backend) for backend in backends(level))
    if isinstance(wanted, str) or isinstance(found, str):
        assert wanted == found
    else:
        assert_same(found, wanted)


# Multiplying and dividing integers of thousands of bits takes LLVM seconds to compile; the matrix above has them.
QUICK_TYPES = frozenset(t for t in Type if t.bits <= 256)


def quick_rows(op: Opcode) -> bool:
    """Rows whose code is short; elementary functions are compared in the matrix, and with everything when slow."""
    return op.name not in oracle.TOLERANCE


@at_every_level
@examples(40, 40 // len(LEVELS))
@given(case=runnable_programs(types=QUICK_TYPES, wanted=quick_rows))
def test_random_programs(case: Case, level: simd.Level) -> None:
    agree(case, level)


@at_every_level
@examples(30, 30 // len(LEVELS))
@given(case=runnable_programs(types=QUICK_TYPES, wanted=quick_rows, traps=True))
def test_random_programs_that_may_fail(case: Case, level: simd.Level) -> None:
    agree(case, level)


@pytest.mark.slow
@at_every_level
@settings(max_examples=300)
@given(case=runnable_programs(traps=True))
def test_random_programs_of_all_rows_and_types(case: Case, level: simd.Level) -> None:
    agree(case, level)


ARRAY_CASES = {
    "GEMM": {"m": 2, "n": 3, "k": 4, "alpha": 0.5, "beta": 2.0},
    "Softmax": {"n": 7},
    "LayerNorm": {"n": 9},
    "Attention": {"batch": 1, "heads": 1, "seq_len": 3, "head_dim": 2},
    "Conv2D": {"batch": 1, "in_channels": 2, "out_channels": 1, "height": 3, "width": 3, "kernel_h": 3, "kernel_w": 2,
               "padding": (1, 0)},
    "FFT": {"n": 3},
    "RoPE": {"batch": 1, "seq_len": 2, "heads": 1, "head_dim": 4},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ty", "level"),
    [
        p
        for name in ARRAY_CASES
        for ty in FLOAT_TYPES  # F64 and F16 are expanded as F32 and BF16 are: `make test` looks at those
        for p in levelled(f"{name}-{ty}", ty.bits, name, ty, slow=ty in (Type.F16, Type.F64))
    ],
)
def test_array_extensions(name: str, ty: Type, level: simd.Level) -> None:
    """Through the same expansions, under a launch of several blocks, to the same bits."""
    i = make(ROWS[name], ty, **ARRAY_CASES[name])
    inputs, results = make_inputs(i), []
    for backend in backends(level):
        b, params = ProgramBuilder(), {}
        for f, _ in memory_operands(i):
            element = element_type(i, f)
            count = extent(i, f)[1] // element.size_bytes
            b.buffer(f.name, element, None if FULL else count)
            params[f.name] = backend.allocate_typed(element, count)
            if f.kind is not Kind.WRITE:
                backend.copy_to(params[f.name].handle, encode(inputs[f.name], element))
        b.emit(i)
        backend.execute(b.build(), LaunchConfig.linear(5, block=2), params)
        results.append({key: bit_patterns(buffer.read(), buffer.ty) for key, buffer in params.items()})
    assert_same(*results)
