"""The heap, entries, errors and continuations of the Scheme runtime, driven from C (heap_driver.c)."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from effort import amount

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from build_support import compiler  # noqa: E402

PARTS = (
    "heap",
    "collect",
    "region",
    "mark",
    "units",
    "code",
    "objects",
    "layout",
    "ephemerons",
    "errors",
    "control",
    "continuation",
    "symbols",
    "records",
    "basics",
    "stops",
    "waits",
    "requests",
)
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
# Frames must stand on the stack, where the collector looks for pointers: newer compilers would put them elsewhere.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}


def build(folder: Path, flags: tuple[str, ...]) -> Path:
    scheme = ROOT / compiler.SCHEME
    sources = [*(scheme / f"{part}.c" for part in PARTS), Path(__file__).with_name("heap_driver.c")]
    program = folder / "driver"
    rounds = f"-DROUNDS={amount(10, 4)}"  # of random graphs
    command = [*compiler.compiler(), *compiler.FLAGS, *flags, rounds, f"-I{scheme}", "-o", program, *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return program


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sanitized"), SANITIZED)


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("fast"), ("-O2",))


def _with_large_stack() -> None:
    """Frames that sanitizers watch over are several times as large."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[1]
    wish = 512 << 20
    resource.setrlimit(resource.RLIMIT_STACK, (wish if limit == resource.RLIM_INFINITY else min(wish, limit), limit))


def run(program: Path, *arguments: str, **settings: str) -> str:
    environment = os.environ | {"ESHKOL_HEAP": "512M", **SANITIZERS} | settings
    command = [program, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, preexec_fn=_with_large_stack
    )
    assert done.returncode == 0, done.stderr
    assert f"{arguments[0]}: right" in done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", ["graphs", "deep", "slices", "limits", "symbols", "continuations", "control", "threads"]
)
def test_under_sanitizers(sanitized: Path, check: str) -> None:
    run(sanitized, check)


@pytest.mark.parametrize(
    ("check", "every"),
    [
        ("graphs", 17),
        pytest.param("continuations", 1, marks=pytest.mark.slow),
        ("control", 1),
        ("symbols", 1000),
        ("threads", 11),
    ],
)
def test_collecting_all_the_time(fast: Path, check: str, every: int) -> None:
    run(fast, check, "3", ESHKOL_GC_STRESS=str(every))


@pytest.mark.parametrize(
    "check", ["graphs", "deep", "slices", "limits", "symbols", "continuations", "control", "captures", "threads"]
)
def test_optimized(fast: Path, check: str) -> None:
    run(fast, check, "1")


@pytest.mark.slow
def test_threads_do_not_race(tmp_path: Path) -> None:
    """What threads do to a heap at once, watched by ThreadSanitizer."""
    watched = build(tmp_path, ("-O1", "-g", "-fsanitize=thread"))
    run(watched, "threads", "1", TSAN_OPTIONS="halt_on_error=1")


@pytest.mark.parametrize("check", ["graphs", "slices", "threads"])
def test_every_collection_is_checked(fast: Path, check: str) -> None:
    run(fast, check, "2", ESHKOL_GC_CHECK="1")


def test_a_store_without_a_word_to_the_collector_is_found(fast: Path) -> None:
    environment = os.environ | {"ESHKOL_HEAP": "512M", "ESHKOL_GC_CHECK": "1"}
    done = subprocess.run([fast, "forgotten"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode < 0
    assert "collector: vector at" in done.stderr
    assert "refers to pair at" in done.stderr
    assert "a store was not followed by esk_written" in done.stderr


@pytest.mark.slow
def test_figures(fast: Path) -> None:
    """Ten gigabytes in all stay under 200 MB; the driver asserts it."""
    print(run(fast, "figures"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_many_graphs(fast: Path, seed: int) -> None:
    run(fast, "graphs", str(seed), ESHKOL_GC_STRESS=str(seed + 1))
