"""The tuner: every candidate computes the same, the clearly fastest is chosen, and what was chosen is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_array_instructions import EPSILON, make

import eshkol as ek
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Arrays, Instruction, Kind, element_type
from eshkol.atlas.operands import Activation
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.atlas.validate import memory_operands
from eshkol.backends.cpu import CpuBackend, macros, simd, tune
from eshkol.backends.cpu.kernels.macro import Macro, phase_modules
from eshkol.backends.cpu.macros import gemm_tune
from eshkol.backends.cpu.tune import Candidate, Question
from eshkol.llvm.targets import llvm
from eshkol.runtime import scheduler
from eshkol.support.flags import FlagError
from eshkol.support.store import ProgramCache

HERE = CpuBackend()
AT_ONCE = LaunchConfig()


class Answered(CpuBackend):
    """The backend under answers by the questions' names."""

    def __init__(self, answers: dict[str, Candidate]) -> None:
        super().__init__(cache=HERE.cache)
        self.answers = answers

    def _lowered(self, program: Program, index: int) -> Macro | None:
        lower = partial(macros.lower, program.instructions[index], self.target)
        return tune.under(lower, lambda question: self.answers.get(question.name))[0]


def asked(i: Instruction, answers: dict[str, Candidate] | None = None) -> list[Question]:
    """What the lowering of an instruction asks."""
    found: list[Question] = []

    def answer(question: Question) -> Candidate | None:
        found.append(question)
        return (answers or {}).get(question.name)

    tune.under(partial(macros.lower, i, HERE.target), answer)
    return found


# --- candidates -----------------------------------------------------------------------------------

CONV = {"batch": 2, "in_channels": 24, "out_channels": 20, "height": 17, "width": 19, "kernel_h": 3, "kernel_w": 3}
INSTRUCTIONS = {  # with the number of terms of a sum
    "straight": (make(ROWS["GEMM"], Type.F32, m=70, n=150, k=1100, alpha=0.5, beta=0.25), 1100),
    "transposed a": (make(ROWS["GEMM"], Type.F32, m=97, n=67, k=611, transpose_a=True), 611),
    "transposed b": (make(ROWS["GEMM"], Type.F64, m=37, n=99, k=301, transpose_b=True), 301),
    "fused": (
        make(ROWS["FusedGEMM"], Type.F32, out_ty=Type.F32, activation=Activation.Silu, m=41, n=83, k=130),
        138,
    ),
    "batched": (make(ROWS["BatchedGEMM"], Type.F16, batch=3, m=45, n=53, k=140), 140),
    "quantized": (make(ROWS["QuantizedGEMM"], a_scale=0.02, b_scale=0.01, c_scale=0.5, m=45, n=83, k=150), 150),
    "conv": (make(ROWS["Conv2D"], Type.F32, stride=(1, 1), padding=(1, 1), **CONV), 216),
    "conv gradient": (make(ROWS["Conv2DGradInput"], Type.F32, stride=(2, 1), padding=(1, 1), **CONV), 180),
}


Data = dict[str, np.ndarray]


def inputs_of(i: Instruction) -> Data:
    rng, found = np.random.default_rng(0), {}
    for f, _ in memory_operands(i):
        ty, shape = element_type(i, f), f.shape(i)
        values = rng.integers(-128, 128, shape) if ty.is_integer else rng.standard_normal(shape)
        found[f.name] = to_array(values.reshape(-1), ty).reshape(shape)
    return found


def run(i: Instruction, inputs: Data, backend: CpuBackend) -> np.ndarray:
    b = ProgramBuilder()
    for f, _ in memory_operands(i):
        b.buffer(f.name, element_type(i, f))
    b.emit(i)
    params = {f.name: backend.array(inputs[f.name].reshape(-1), element_type(i, f)) for f, _ in memory_operands(i)}
    backend.execute(b.build(), AT_ONCE, params)
    output = next(f for f, _ in memory_operands(i) if f.kind is not Kind.READ)
    return params[output.name].read().astype(np.float64).reshape(output.shape(i))


def meaning(i: Instruction, inputs: Data) -> np.ndarray:
    """The output by the row's own definition, in wide numbers."""
    assert isinstance(i.op.meaning, Arrays)
    wide = [
        inputs[f.name].astype(np.int64 if element_type(i, f).is_integer else np.float64)
        for f, _ in memory_operands(i) if f.kind is Kind.READ or (f.read_if is not None and f.read_if(i))
    ]  # fmt: skip
    return np.asarray(i.op.meaning.fn(i, *wide)[0]).astype(np.float64)


QUICK = ("straight", "fused", "conv gradient")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in INSTRUCTIONS]
)
def test_every_candidate_computes_the_same(name: str) -> None:
    i, terms = INSTRUCTIONS[name]
    inputs = inputs_of(i)
    wanted = meaning(i, inputs)
    out = element_type(i, next(f for f, _ in memory_operands(i) if f.kind is not Kind.READ))
    answers: list[dict[str, Candidate]] = [{q.name: c} for q in asked(i) for c in q.candidates]
    questions = asked(i)
    assert questions, "nothing to choose"
    # And some that differ in all they can.
    rng = np.random.default_rng(1)
    if len(questions) > 1:
        answers += [{q.name: q.candidates[rng.integers(len(q.candidates))] for q in questions} for _ in range(4)]
    for answer in answers:
        found = run(i, inputs, Answered(answer))
        if out.is_integer:
            np.testing.assert_array_equal(found, wanted)
            continue
        scale = np.abs(wanted) + np.max(np.abs(wanted))
        compute = EPSILON[Type.F32 if out.is_half else out]
        bound = compute * 4 * (terms + 4) * scale + EPSILON[out] * np.abs(wanted)
        assert (np.abs(found - wanted) <= bound).all(), answer


@pytest.mark.parametrize("level", [simd.Level.SSE42, simd.Level.AVX2, simd.Level.AVX512, simd.Level.NEON])
def test_candidates_of_other_machines_are_legal_code(level: simd.Level) -> None:
    target = simd.plain_target(level)
    i = make(ROWS["GEMM"], Type.F32, m=100, n=200, k=300)
    seen = set()
    for shape in asked_for(i, level):
        macro, _ = tune.under(partial(macros.lower, i, target), lambda q, s=shape: s if "tile" in q.name else None)
        assert macro is not None
        seen.add(macro.functions[-1])
        for text in phase_modules(macro):
            module = llvm().parse_assembly(text)
            module.verify()
    assert len(seen) >= 4  # texts differ, and so do their objects


def asked_for(i: Instruction, level: simd.Level) -> tuple[Candidate, ...]:
    _, questions = tune.under(partial(macros.lower, i, simd.plain_target(level)), lambda question: None)
    return questions[0].candidates


def test_small_and_odd_products_ask_nothing() -> None:
    assert not asked(make(ROWS["GEMM"], Type.F32, m=8, n=8, k=8))
    assert not asked(make(ROWS["GEMM"], Type.F32, m=2, n=2000, k=2000))  # too few rows to cut anything
    assert not asked(make(ROWS["GEMM"], Type.F32, m=3000, n=1, k=3000))  # a vector


def test_without_a_lowering_the_default_is_chosen() -> None:
    assert tune.choice("size", "some kernel", ((1,), (2,)), (3,)) == (3,)


# --- measuring ------------------------------------------------------------------------------------


class Course:
    """A clock that runs only while candidates do."""

    def __init__(self, *seconds: Callable[[int], float]) -> None:
        self.now, self.count = 0.0, [0] * len(seconds)
        self.runs = [partial(self._run, number, takes) for number, takes in enumerate(seconds)]

    def _run(self, number: int, takes: Callable[[int], float]) -> None:
        self.now += takes(self.count[number])
        self.count[number] += 1

    def fastest(self, budget: float = 0.3) -> int | None:
        found = tune.fastest(self.runs, budget, lambda: self.now)
        return None if found is None else found[0]


def always(seconds: float) -> Callable[[int], float]:
    return lambda _: seconds


@pytest.mark.parametrize("unit", [1e-7, 1e-5, 1e-3, 5e-3])
def test_the_clearly_fastest_is_chosen(unit: float) -> None:
    course = Course(always(unit), always(0.99 * unit), always(0.8 * unit), always(0.9 * unit))
    assert course.fastest() == 2
    assert course.now < 0.4


def test_little_gain_is_none() -> None:
    assert Course(always(1e-3), always(0.975e-3), always(1.1e-3)).fastest() == 0


def test_a_fluke_of_the_first_heat_does_not_win() -> None:
    lucky = Course(always(1e-3), lambda n: 0.7e-3 if n < tune.MOST_SAMPLES else 1.2e-3)
    assert lucky.fastest() == 0


def test_a_machine_that_changes_its_pace_misleads_nobody() -> None:
    """All are three times as slow for a while that ends in the middle of a turn."""
    paces = [1.0, 1.0, 1.0, 0.9, 1.0]

    def course(change: int) -> Course:
        made = Course()
        made.count = [0] * len(paces)

        def takes(pace: float, _: int) -> float:
            return 1e-3 * pace * (3 if sum(made.count) < change else 1)

        made.runs = [partial(made._run, number, partial(takes, pace)) for number, pace in enumerate(paces)]
        return made

    assert {course(change).fastest() for change in range(20, 60)} == {3}


def test_the_hopeless_are_not_run_again() -> None:
    course = Course(always(1e-3), always(0.02), always(0.9e-3))
    assert course.fastest() == 2
    assert course.count[1] <= tune.FEWEST_SAMPLES


def test_what_takes_too_long_is_not_measured() -> None:
    course = Course(always(0.2), always(0.1))
    assert course.fastest() is None
    assert course.now <= 0.4
    many = Course(*[always(0.01)] * 30)  # only as many as there is time for
    assert many.fastest() == 0
    assert many.now < 0.4


# --- answers are kept -----------------------------------------------------------------------------


def product(m: int = 64, n: int = 64, k: int = 96) -> Program:
    b = ProgramBuilder("product")
    at = {name: b.buffer(name, Type.F32).address for name in "cab"}
    b.gemm(Type.F32, at["c"], at["a"], at["b"], m=m, n=n, k=k)
    return b.build()


def launched(backend: CpuBackend, program: Program, m: int = 64, n: int = 64, k: int = 96) -> None:
    """Run a product, and see that it is right."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    params = {name: backend.array(array, Type.F32) for name, array in (("a", a), ("b", b))}
    params["c"] = backend.allocate_typed(Type.F32, m * n)
    backend.execute(program, AT_ONCE, params)
    found = params["c"].read().reshape(m, n)
    np.testing.assert_allclose(found, a.astype(np.float64) @ b, atol=1e-5 * math.sqrt(k) * 4)


def words(backend: CpuBackend, program: Program) -> tuple[str, ...]:
    """What tells how the only instruction of a program was compiled: names of its functions."""
    (part,) = backend.compiled(program).together.values()
    return tuple(phase.function for phase in part.macro.phases)


@pytest.fixture
def rigged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The last candidate wins every race; how many candidates each race had."""
    races: list[int] = []

    def fixed(runs: Any, budget: float) -> tuple[int, list[float]]:
        for candidate in runs:
            candidate()
        races.append(len(runs))
        return len(runs) - 1, [1.0] * len(runs)

    monkeypatch.setattr(tune, "fastest", fixed)
    monkeypatch.setattr(gemm_tune, "SHAPES", dict.fromkeys(gemm_tune.SHAPES, ((4, 2, 1),)))  # few to compile
    monkeypatch.delenv("ESHKOL_TUNE", raising=False)
    return races


def backend_at(folder: Path) -> CpuBackend:
    return CpuBackend(cache=ProgramCache(folder))


def test_answers_are_kept_and_used(tmp_path: Path, rigged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler._Wanted, "workers", None)  # what `ek.set_num_threads` was told comes first
    program = product()
    plain = backend_at(tmp_path)
    launched(plain, program)
    assert not rigged, "nobody asked for tuning"
    tuning = backend_at(tmp_path)
    with tune.measuring():
        launched(tuning, program)
        assert len(rigged) == 2  # micro-tile, and the cut
        launched(tuning, product())
        launched(backend_at(tmp_path), program)
    assert len(rigged) == 2, "what is known is not measured again"
    assert words(tuning, program) != words(plain, program)
    later = backend_at(tmp_path)
    launched(later, program)
    assert words(later, program) == words(tuning, program)
    assert words(plain, program) != words(later, program)  # compiled before, and stays
    monkeypatch.setenv("ESHKOL_TUNE", "0")
    assert words(backend_at(tmp_path), program) == words(plain, program)
    monkeypatch.setenv("ESHKOL_TUNE", "")
    monkeypatch.setenv("ESHKOL_THREADS", "7")  # another machine, as it were
    assert words(backend_at(tmp_path), program) == words(plain, program)
    assert len(rigged) == 2


def test_the_environment_turns_tuning_on(tmp_path: Path, rigged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TUNE", "1")
    launched(backend_at(tmp_path), product())
    assert len(rigged) == 2
    monkeypatch.setenv("ESHKOL_TUNE", "often")
    with pytest.raises(FlagError, match="often"):
        launched(backend_at(tmp_path), product())


def test_damaged_answers_are_ignored_and_written_anew(tmp_path: Path, rigged: list[int]) -> None:
    program = product()
    with tune.measuring():
        tuned = backend_at(tmp_path)
        launched(tuned, program)
    cache = ProgramCache(tmp_path)
    for question in tuned.tuner._known:
        cache.put(tuned.tuner._key(question), b"no answer")
    other = backend_at(tmp_path)
    launched(other, program)
    assert words(other, program) != words(tuned, program)
    with tune.measuring():
        launched(backend_at(tmp_path), program)
    assert len(rigged) == 4
    assert words(backend_at(tmp_path), program) == words(tuned, program)


def test_a_damaged_file_is_ignored(tmp_path: Path, rigged: list[int]) -> None:
    with tune.measuring():
        launched(backend_at(tmp_path), product())
    for path in tmp_path.rglob("*.eskc"):
        path.write_bytes(path.read_bytes()[:-1])
    launched(backend_at(tmp_path), product())
    with tune.measuring():
        launched(backend_at(tmp_path), product())
    assert len(rigged) == 4


def test_only_the_candidates_are_answers() -> None:
    question = Question("size", "a kernel", ((1, 2), (3, 4)), (1, 2))
    assert tune.decoded(tune.encoded(question, (3, 4)), question) == (3, 4)
    assert tune.decoded(tune.encoded(question, (5, 6)), question) is None
    for damage in (
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"question": "?", "choice": [1]}',
        b'{"choice": 3}',
        b'{"choice": 1e999}',
    ):
        assert tune.decoded(damage, question) is None
    other = Question("size", "another", ((1, 2), (3, 4)), (1, 2))
    assert tune.decoded(tune.encoded(question, (3, 4)), other) is None


def test_no_folder_is_no_obstacle(tmp_path: Path, rigged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    backend = backend_at(blocked)
    with tune.measuring(), pytest.warns(RuntimeWarning, match="cannot write"):
        launched(backend, product())
    assert len(rigged) == 2
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "0")
    with tune.measuring():
        launched(CpuBackend(), product())
    assert len(rigged) == 4


# --- when not to measure --------------------------------------------------------------------------


def test_large_operands_are_not_made(tmp_path: Path, rigged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "MOST_BYTES", 1000)
    backend = backend_at(tmp_path)
    with tune.measuring():
        launched(backend, product())
    assert not rigged
    monkeypatch.undo()
    assert words(backend_at(tmp_path), product()) == words(backend, product())


def test_code_for_other_machines_is_not_run(rigged: list[int]) -> None:
    foreign = simd.Level.AVX2 if HERE.target.is_arm else simd.Level.NEON
    with tune.measuring():
        assert "gemm_f32" in CpuBackend(level=foreign, cache=HERE.cache).compile_to_llvm(product())
    assert not rigged


def test_a_race_that_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is rigged: whatever wins is right, and said."""
    monkeypatch.setattr(tune, "BUDGET", 0.05)
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    backend = backend_at(tmp_path)
    with tune.measuring():
        launched(backend, product())
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("eshkol tune: ")]
    assert ["micro-tile" in line for line in told] == [True, False]
    assert all("64x64x96" in line and " µs" in line for line in told)


def test_functions_are_tuned_within_autotune(rigged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CACHE_BYTES", "0")
    machine = CpuBackend()
    monkeypatch.setitem(ek.tensors.devices._opened, "cpu", machine)
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((66, 70), np.float32), rng.standard_normal((70, 90), np.float32)
    with ek.autotune():
        found = ek.jit(lambda x, y: ek.relu(x @ y))(ek.tensor(a), ek.tensor(b)).numpy()
    assert len(rigged) == 2
    np.testing.assert_allclose(found, np.maximum(a.astype(np.float64) @ b, 0), atol=1e-4)
    ek.jit(lambda x, y: ek.relu(x @ y) + 1.0)(ek.tensor(a), ek.tensor(b)).numpy()
    assert len(rigged) == 2
