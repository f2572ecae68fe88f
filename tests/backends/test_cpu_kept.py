"""Array instructions that the host runs, kept as what they were compiled to: found instead of lowered again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend, backend, translations, tune
from eshkol.backends.cpu.collective import kept_macro
from eshkol.support.store import ProgramCache


def product(m: int = 7, n: int = 9, k: int = 5) -> Program:
    buffers = "".join(f".buffer {name} F32\n" for name in "cab")
    return assemble(f'.program "product"\n{buffers}    GEMM.F32 [c], [a], [b], m={m}, n={n}, k={k}\n    EXIT\n')


def multiplied(machine: CpuBackend, program: Program, m: int = 7, n: int = 9, k: int = 5) -> Any:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    given = {name: machine.adopt(array, Type.F32) for name, array in (("a", a), ("b", b), ("c", c))}
    machine.execute(program, LaunchConfig(), given)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    return c


def refuse(*given: Any) -> None:
    raise AssertionError("it is lowered again")


def test_what_was_compiled_is_not_lowered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = multiplied(CpuBackend(cache=ProgramCache(tmp_path)), product())
    monkeypatch.setattr(backend.macros, "lower", refuse)
    monkeypatch.setattr(backend, "validate", refuse)
    after = multiplied(CpuBackend(cache=ProgramCache(tmp_path)), product())
    assert before.tobytes() == after.tobytes()
    with pytest.raises(AssertionError, match="again"):
        multiplied(CpuBackend(cache=ProgramCache(tmp_path)), product(8), 8)


def test_other_sources_threads_and_answers_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = CpuBackend(cache=ProgramCache(tmp_path))
    multiplied(machine, product())

    def kept() -> Any:
        fresh = CpuBackend(cache=ProgramCache(tmp_path))
        return fresh._kept_together(product())

    assert kept() is not None
    with monkeypatch.context() as patch:
        patch.setattr(translations, "_source_key", lambda: "others")
        assert kept() is None
    with monkeypatch.context() as patch:
        patch.setattr(translations, "expected_workers", lambda: 99)
        assert kept() is None
    with monkeypatch.context() as patch:
        patch.setenv("ESHKOL_OPTIMIZE", "0")
        assert kept() is None
    with monkeypatch.context() as patch:
        patch.setenv("ESHKOL_TUNE", "0")
        assert kept() is None
    with tune.measuring():
        assert kept() is None
    machine.cache.put(machine.tuner._generation_key, b"something was measured")
    assert kept() is None


def test_what_was_evicted_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = CpuBackend(cache=ProgramCache(tmp_path))
    multiplied(machine, product())
    assert kept_macro("0" * 64, machine.cache, machine.target) is None
    monkeypatch.setattr(CpuBackend, "load_kept", lambda self, key: None)
    fresh = CpuBackend(cache=ProgramCache(tmp_path))
    assert fresh._kept_together(product()) is None
    multiplied(fresh, product())


def test_measuring_makes_code_that_was_chosen_before_be_chosen_anew(tmp_path: Path) -> None:
    machine = CpuBackend(cache=ProgramCache(tmp_path))
    before = machine.tuner.generation()
    with tune.measuring():
        multiplied(machine, product(96, 96, 96), 96, 96, 96)
    assert machine.tuner.generation() != before
    assert CpuBackend(cache=ProgramCache(tmp_path)).tuner.generation() == machine.tuner.generation()
