"""The optimizer: each rule on a small program, and every pass on random programs, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from hypothesis import given
from strategies import Case, assert_same, run, runnable_programs

from batches import of_each
from effort import examples
from eshkol.atlas.expand import expand
from eshkol.atlas.optimize import PASSES, optimize
from eshkol.atlas.optimize.fuse import fuse_exactly
from eshkol.atlas.program import LaunchConfig, Program, disassemble
from eshkol.atlas.text import assemble
from eshkol.atlas.types import INTEGERS, Type
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import EshkolError, ExecutionFailed, IsaError

# --- random programs ------------------------------------------------------------------------------


def outcome(case: Case, program: Program) -> dict[str, np.ndarray] | str:
    """The outputs, or the kind of failure."""
    try:
        return run(case, ReferenceBackend(), program)
    except EshkolError as error:
        return type(error).__name__


def agree(case: Case, program: Program) -> None:
    validate(program)
    before, after = outcome(case, case.program), outcome(case, program)
    if isinstance(before, str) or isinstance(after, str):
        assert before == after
    else:
        assert_same(before, after)


EXACT_PASSES = {**PASSES, "fuse": fuse_exactly}


@pytest.mark.parametrize("name", EXACT_PASSES)
@examples(60, 12)
@given(case=runnable_programs())
def test_each_pass_keeps_every_bit(name: str, case: Case) -> None:
    agree(case, EXACT_PASSES[name](case.program))


@examples(150, 20)
@given(case=runnable_programs())
def test_the_whole_optimizer_keeps_every_bit_without_contraction(case: Case) -> None:
    agree(case, optimize(case.program, contract=False))


@examples(60, 12)
@given(case=runnable_programs(types=INTEGERS))
def test_contraction_keeps_every_bit_of_integers(case: Case) -> None:
    agree(case, optimize(case.program))


@examples(80, 20)
@given(case=runnable_programs(traps=True))
def test_failures_stay_failures(case: Case) -> None:
    agree(case, optimize(case.program, contract=False))


@examples(40, 8)
@given(case=runnable_programs())
def test_expanded_programs_optimize_too(case: Case) -> None:
    """Compared with the expanded program: the elementary functions are not the same bits as their expansions."""
    expanded = replace(case, program=expand(case.program))
    agree(expanded, optimize(expanded.program, contract=False))


@examples(40, 8)
@given(case=runnable_programs())
def test_optimizing_again_changes_nothing(case: Case) -> None:
    once = optimize(case.program)
    assert optimize(once) == once


@pytest.mark.parametrize("ty", [t for t in Type if t.is_float], ids=str)
@pytest.mark.parametrize("consumer", ["ADD", "SUB"])
def test_a_formed_fma_is_within_one_place(ty: Type, consumer: str) -> None:
    """Rounding once instead of twice moves the value by at most one place of the larger of product and result."""
    program = assemble(f"""
        .buffer a {ty}
        .buffer b {ty}
        .buffer c {ty}
        .buffer out {ty}
            LDG.{ty} r0, [a+r255*{ty.size_bytes}]
            LDG.{ty} r1, [b+r255*{ty.size_bytes}]
            LDG.{ty} r2, [c+r255*{ty.size_bytes}]
            MUL r3, r0, r1
            {consumer} r4, r3, r2
            STG.{ty} [out+r255*{ty.size_bytes}], r4
    """)
    fused = optimize(program)
    assert len(fused) == len(program) - 1
    assert any(i.op.name in ("FMA", "FMS") for i in fused.instructions)
    backend, rng = ReferenceBackend(), np.random.default_rng(3)
    columns = {name: rng.standard_normal(1000) for name in "abc"}
    columns["c"][:300] = -(columns["a"] * columns["b"])[:300]  # cancellation
    params = {name: backend.array(column, ty) for name, column in columns.items()}
    results = []
    for version in (program, fused):
        out = backend.allocate_typed(ty, 1000)
        backend.execute(version, LaunchConfig((1, 1, 1), (1000, 1, 1)), {**params, "out": out})
        results.append(out.read().astype(np.float64))
    product = params["a"].read().astype(np.float64) * params["b"].read().astype(np.float64)
    magnitude = np.maximum(np.abs(product), np.abs(results[1]))
    place = 2.0 ** (np.floor(np.log2(magnitude)) - oracle.FRACTION_BITS[ty])
    assert (np.abs(results[0] - results[1]) <= place).all()
    assert (results[0] != results[1]).any()  # the two really round differently


# --- each rule ------------------------------------------------------------------------------------

PRELUDE = """
    .buffer x F32
    .buffer n I32
    .buffer out F32
    .buffer iout I32
        LDG.F32 r1, [x]
        LDG.F32 r2, [x+4]
        LDG.F32 r3, [x+8]
        LDG.I32 r5, [n]
        LDG.I32 r6, [n+4]
"""
STORE, ISTORE = "\n STG.F32 [out], r0\n", "\n STG.I32 [iout], r0\n"


def body(program: Program) -> list[str]:
    """The instructions between the loads and the final store."""
    lines = [line.strip() for line in disassemble(program).splitlines() if not line.startswith(".")]
    return [line for line in lines if not line.startswith(("LDG", "STG")) and not line.endswith(":")]


RULES = {
    "constant folding": ("MOV_IMM.F32 r7, 2.0\n MOV_IMM.F32 r8, 0.5\n MUL r0, r7, r8" + STORE, ["MOV_IMM.F32 r0, 1.0"]),
    "folding through a loop": (
        "MOV_IMM.I32 r7, 3\n LOOP r9, 4\n ADD r8, r7, r7\n ENDLOOP\n ADD r0, r8, r7" + ISTORE,
        None,  # r8 is unknown before the loop body: only the value matters, checked below
    ),
    "known branch": ("MOV_IMM.I32 r7, 3\n SETcc.LT p0, r7, r7\n MOV r0, r1\n BRA skip, p0\n ABS r0, r1\nskip:" + STORE,
                     ["ABS r0, r1"]),
    "known selection": ("MOV_IMM.I32 r7, 3\n SETcc.LE p0, r7, r7\n SEL r0, p0, r1, r2" + STORE, []),
    "multiplication by one": ("MOV_IMM.F32 r7, 1\n MUL r8, r1, r7\n NEG r0, r8" + STORE, ["NEG r0, r1"]),
    "addition of integer zero": ("MOV_IMM.I32 r7, 0\n ADD r8, r7, r5\n NEG r0, r8" + ISTORE, ["NEG r0, r5"]),
    "integer times zero": ("MOV_IMM.I32 r7, 0\n MUL r0, r5, r7" + ISTORE, ["MOV_IMM.I32 r0, 0"]),
    "no addition of float zero": ("MOV_IMM.F32 r7, 0\n ADD r0, r1, r7" + STORE,
                                  ["MOV_IMM.F32 r7, 0.0", "ADD r0, r1, r7"]),
    "no subtraction of negative zero": ("MOV_IMM.F32 r7, -0.0\n SUB r0, r1, r7" + STORE,
                                        ["MOV_IMM.F32 r7, -0.0", "SUB r0, r1, r7"]),
    "conversion to itself": ("CVT.F32.F32 r8, r1\n NEG r0, r8" + STORE, ["NEG r0, r1"]),
    "copies": ("MOV r8, r1\n MOV r9, r8\n ADD r0, r9, r8" + STORE, ["ADD r0, r1, r1"]),
    "copy ends when its source changes": ("MOV r8, r1\n NEG r1, r1\n ADD r0, r8, r1" + STORE,
                                          ["MOV r8, r1", "NEG r1, r1", "ADD r0, r8, r1"]),
    "jump to the next": ("BRA next\nnext:\n NEG r0, r1" + STORE, ["NEG r0, r1"]),
    "jump to a jump": ("SETcc.LT p0, r5, r6\n BRA a, p0\n EXIT\na:\n BRA b\n NEG r0, r2\nb:\n NEG r0, r1" + STORE,
                       ["SETcc.LT p0, r5, r6", "BRA b, p0", "EXIT", "NEG r0, r1"]),
    "loop of one round": ("MOV r0, r1\n LOOP r9, 1\n NEG r0, r0\n ENDLOOP" + STORE, ["NEG r0, r1"]),
    "loop of no rounds": ("MOV r0, r1\n LOOP r9, 0\n NEG r0, r0\n ENDLOOP" + STORE, []),
    "unreachable code": ("NEG r0, r1\n BRA end\n ABS r0, r1\nend:" + STORE, ["NEG r0, r1"]),
    "unused value": ("NEG r8, r1\n ABS r0, r1" + STORE, ["ABS r0, r1"]),
    "unused division by zero stays": ("MOV_IMM.I32 r7, 0\n DIV r8, r5, r7\n NEG r0, r5" + ISTORE,
                                      ["MOV_IMM.I32 r7, 0", "DIV r8, r5, r7", "NEG r0, r5"]),
    "unused float division": ("DIV r8, r1, r2\n ABS r0, r1" + STORE, ["ABS r0, r1"]),
    "unused remainder by a constant": ("MOV_IMM.I32 r7, 3\n REM r8, r5, r7\n NEG r0, r5" + ISTORE, ["NEG r0, r5"]),
    "fma": ("MUL r8, r1, r2\n ADD r0, r3, r8" + STORE, ["FMA r0, r1, r2, r3"]),
    "fms": ("MUL r8, r1, r2\n SUB r0, r8, r3" + STORE, ["FMS r0, r1, r2, r3"]),
    "no fms the other way": ("MUL r8, r1, r2\n SUB r0, r3, r8" + STORE, ["MUL r8, r1, r2", "SUB r0, r3, r8"]),
    "no fma of a doubled product": ("MUL r8, r1, r2\n ADD r0, r8, r8" + STORE, ["MUL r8, r1, r2", "ADD r0, r8, r8"]),
    "no fma when the product is used again": (
        "MUL r8, r1, r2\n ADD r9, r8, r3\n ADD r0, r9, r8" + STORE,
        ["MUL r8, r1, r2", "ADD r9, r8, r3", "ADD r0, r9, r8"],
    ),
    "no fma when an operand changes in between": (
        "MUL r8, r1, r2\n NEG r1, r1\n ADD r9, r8, r3\n MUL r0, r9, r1" + STORE,
        ["MUL r8, r1, r2", "NEG r1, r1", "ADD r9, r8, r3", "MUL r0, r9, r1"],
    ),
    "fms from a negation": ("NEG r8, r3\n FMA r0, r1, r2, r8" + STORE, ["FMS r0, r1, r2, r3"]),
    "reciprocal": ("MOV_IMM.F32 r7, 1\n DIV r0, r7, r1" + STORE, ["RCP r0, r1"]),
    "reciprocal root": ("MOV_IMM.F32 r7, 1\n SQRT r8, r1\n DIV r0, r7, r8" + STORE, ["RSQRT r0, r1"]),
    "clamp": ("MAX r8, r1, r2\n MIN r0, r8, r3" + STORE, ["CLAMP r0, r1, r2, r3"]),
    "swish": ("SIGMOID r8, r1\n MUL r0, r1, r8" + STORE, ["SWISH r0, r1"]),
    "lerp": ("SUB r8, r2, r1\n FMA r0, r8, r3, r1" + STORE, ["LERP r0, r1, r2, r3"]),
}  # fmt: skip


@of_each("name", RULES)
def test_rule(name: str) -> None:
    source, wanted = RULES[name]
    program = assemble(PRELUDE + source)
    optimized = optimize(program)
    if wanted is not None:
        assert body(optimized) == wanted
    else:
        assert len(optimized) <= len(program)


def test_value_computed_in_a_loop_is_right() -> None:
    program = optimize(assemble(PRELUDE + RULES["folding through a loop"][0]))
    backend = ReferenceBackend()
    params = {"x": backend.array(np.ones(3, np.float32)), "n": backend.array(np.ones(2, np.int32)),
              "out": backend.allocate_typed(Type.F32, 1), "iout": backend.allocate_typed(Type.I32, 1)}  # fmt: skip
    backend.execute(program, LaunchConfig(), params)
    assert params["iout"].read()[0] == 9


def test_an_unwritten_read_on_one_path_stays() -> None:
    """A dead value whose operand is written on one path only: removing it would hide the error of the other."""
    source = """
        MOV_IMM.U32 r0, 1
        SETcc.LT p0, r252, r0
        BRA use, p0
        MOV_IMM.I32 r1, 1
    use:
        NEG r3, r1
    """
    program = optimize(assemble(source))
    assert [i.op.name for i in program.instructions][-1] == "NEG"
    with pytest.raises(ExecutionFailed, match=r"r1 is read before it is written \(lane 0\)"):
        ReferenceBackend().execute(program, LaunchConfig.linear(2))


def test_division_by_a_constant_zero_fails_at_run_time() -> None:
    program = optimize(assemble("MOV_IMM.I32 r0, 1\n MOV_IMM.I32 r1, 0\n DIV r2, r0, r1"))
    with pytest.raises(ExecutionFailed, match="division by zero"):
        ReferenceBackend().execute(program, LaunchConfig())


def test_constants_of_two_types_that_never_meet() -> None:
    """A function that returns to two places: taken together, its callers seem to bring both types to both."""
    program = assemble("""
        MOV_IMM.U16 r1, 1
        MOV_IMM.U16 r2, 2
        CALL f
        ADD r3, r1, r2
        MOV_IMM.U8 r1, 3
        MOV_IMM.U8 r2, 4
        CALL f
        ADD r3, r1, r2
        EXIT
    f:
        RET
    """)
    ReferenceBackend().execute(optimize(program), LaunchConfig())


def test_unknown_pass_is_an_error() -> None:
    with pytest.raises(IsaError, match="no pass 'polish'"):
        optimize(assemble("EXIT"), ["polish"])


def test_dump_and_check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ESHKOL_DUMP", "constants")
    monkeypatch.setenv("ESHKOL_CHECK", "1")
    optimize(assemble("MOV_IMM.I32 r0, 1\n NEG r1, r0\n BRA a\na:\n"))
    shown = capsys.readouterr().err
    assert "; after constants" in shown
    assert "MOV_IMM.I32 r1, -1" in shown
    assert "; after fuse" not in shown


def test_spans_survive_optimization() -> None:
    program = optimize(assemble("MOV_IMM.I32 r0, 1\n MOV_IMM.I32 r1, 0\n DIV r2, r0, r1", file="k.atlas"))
    with pytest.raises(ExecutionFailed, match=r"k\.atlas:3"):
        ReferenceBackend().execute(program, LaunchConfig())
