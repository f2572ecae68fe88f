"""Parallel programs as executables whose runtime and compiled code ThreadSanitizer watches: no race, right values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from parallel_programs import PARALLEL, SEQUENTIAL, programs
from watched_programs import FLAGS, SETTINGS, build_watched, told

from eshkol.support.c_compiler import c_compiler


def no_sanitizer(folder: Path) -> str | None:
    """Why programs cannot be watched here."""
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    command = [*c_compiler(), *FLAGS, "empty.c", "-o", "empty"]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        return "the compiler has no thread sanitizer"
    if subprocess.run([folder / "empty"], capture_output=True, check=False).returncode:
        return "the thread sanitizer does not start here"
    return None


def watched(path: Path, text: str, monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    """What a program writes when it is watched; races fail the test."""
    if why := no_sanitizer(path.parent):
        pytest.skip(why)
    made = build_watched(path, text, monkeypatch)
    environment = os.environ | SETTINGS | settings
    done = subprocess.run([made], env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert "ThreadSanitizer" not in done.stderr, done.stderr[:6000]
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def compare(folder: Path, seeds: range, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Random parallel programs do not race, and mean what they mean in order."""
    sequential = folder / "sequential.esk"
    sequential.write_text(programs(SEQUENTIAL, seeds), encoding="utf-8")
    command = [sys.executable, "-m", "eshkol", "run", sequential]
    environment = os.environ | {"ESHKOL_TIER": "quick"}
    meant = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert watched(folder / "parallel.esk", programs(PARALLEL, seeds), monkeypatch, **settings) == meant


def test_what_compiled_code_reads_and_writes_is_told() -> None:
    text = """define i64 @f(ptr %p) {
  %own = alloca i64
  store i64 1, ptr %own
  %x = load i64, ptr %p, align 8
  store %value { i64 1, i64 2 }, ptr %p
  %limit = load atomic volatile i64, ptr %p monotonic, align 8
  ret i64 %x
}"""
    found = [line.strip() for line in told(text).splitlines() if "call" in line]
    assert found == ["call void @__tsan_read8(ptr %p)", "call void @__tsan_write16(ptr %p)"]


@pytest.mark.slow
def test_a_race_of_a_program_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that silence means something: two threads change one variable."""
    text = """
    (define count 0)
    (define (bump) (let loop ((i 0)) (if (< i 1000) (begin (set! count (+ count 1)) (loop (+ i 1))))))
    (for-each thread-join! (map (lambda (i) (thread-start! (make-thread bump))) (iota 3)))"""
    with pytest.raises(AssertionError, match="data race"):
        watched(tmp_path / "race.esk", text, monkeypatch)


@pytest.mark.slow
def test_random_programs_do_not_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(tmp_path, range(30), monkeypatch, ESHKOL_THREADS="4")


@pytest.mark.slow
def test_random_programs_do_not_race_while_memory_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(tmp_path, range(30, 50), monkeypatch, ESHKOL_THREADS="3", ESHKOL_GC_STRESS="997")
