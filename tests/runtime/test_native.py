"""The C of the runtime: free of warnings, and stressed under the thread, address and undefined-behaviour sanitizers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from batches import of_each
from effort import FULL

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from build_support import compiler  # noqa: E402

from eshkol.llvm.targets import host_features  # noqa: E402

NATIVE = ROOT / compiler.NATIVE
DRIVERS = Path(__file__).with_name("native")
STRESS, SORTS, LAUNCHES, MATRICES = (DRIVERS / f"{name}.c" for name in ("stress", "sorts", "launches", "linear"))
STRICT = (*compiler.FLAGS, "-Werror")
TESTS = ("deque", "wanted", "loops", "nested", "callers", "pools", "failures")

CC = compiler.system_compiler()
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


def compile_c(*arguments: object) -> None:
    assert CC is not None
    done = subprocess.run([*CC, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def compiles(folder: Path, *flags: str) -> bool:
    """Whether a program with these flags can be built and run here."""
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    probe = [*(CC or []), *flags, str(folder / "probe.c"), "-o", str(folder / "probe")]
    built = subprocess.run(probe, capture_output=True, timeout=300, check=False)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # it has none, and looking takes seconds
    run = lambda: subprocess.run([folder / "probe"], env=environment, timeout=300, check=False)
    return built.returncode == 0 and run().returncode == 0


@pytest.mark.parametrize("source", compiler.SOURCES, ids=lambda path: path.name)
def test_no_warnings(source, tmp_path):
    """Those of the parser in `make test`, all in `make test-all`."""
    how = ("-c", "-o", tmp_path / "object.o") if FULL else ("-fsyntax-only",)
    compile_c(*STRICT, "-Wshadow", "-Wconversion", *how, ROOT / source)


# written by build_support/unicode_tables.py, as a part of unicode.h; by eshkol.calculus.header
GENERATED = {"unicode_data.h", "derivative_rules.h"}
# included several times, by files that define what they are made for
CHOSEN = {
    "kinds.h",
    "passes.h",
    "halves_code.h",
    "products.h",
    "factors.h",
    "lanes.h",
    "batches.h",
    "roots.h",
    "items.h",
    "network.h",
    "quick.h",
    "rows.h",
    "buckets.h",
    "jacobi.h",
    "spectra.h",
    "qr.h",
    "packed.h",
    "triangles.h",
    "extremes.h",
    "signals.h",
    "nearest.h",
    "turned.h",
}


@pytest.mark.parametrize(
    "header", [path for path in compiler.HEADERS if path.name not in GENERATED | CHOSEN], ids=lambda path: path.name
)
def test_headers_stand_alone(header, tmp_path):
    (tmp_path / "user.c").write_text(f'#define _GNU_SOURCE\n#include "{header.name}"\nint user;\n')
    folder = (ROOT / header).parent
    compile_c(*STRICT, "-Wno-unused-function", "-I", folder, "-fsyntax-only", tmp_path / "user.c")


C_FILES = [*NATIVE.rglob("*.[ch]"), *DRIVERS.glob("*.[ch]")]


@of_each("path", sorted(path for path in C_FILES if path.name not in GENERATED))
def test_c_files_stay_short(path):
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) < 600
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("sanitizers", "tests", "define"),
    [
        (None, (*TESTS, "many", "fork"), "-DFUTEX"),
        (None, (*TESTS, "many", "fork"), "-DESHKOL_NO_FUTEX"),
        pytest.param("thread", TESTS, "-DFUTEX", marks=pytest.mark.slow),
        pytest.param("thread", TESTS, "-DESHKOL_NO_FUTEX", marks=pytest.mark.slow),
        ("address,undefined", (*TESTS, "many", "fork") if FULL else ("deque", "nested", "failures", "fork"), "-DFUTEX"),
    ],
    ids=["plain", "plain-condition", "thread", "thread-condition", "address-undefined"],
)
def test_stress(sanitizers, tests, define, tmp_path):
    """A thread sanitizer cannot follow threads started after a fork, nor a thousand of them."""
    flags = [] if sanitizers is None else [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-g"]
    if not compiles(tmp_path, *flags):
        pytest.skip(f"no {sanitizers} sanitizer")
    if sanitizers == "thread" and compiles(tmp_path, "-Werror", "-Wno-tsan"):
        flags.append("-Wno-tsan")  # it does not know fences; the order it must see is in the operations (deque.h)
    failing = ("-Dpthread_create=test_pthread_create", "-Dposix_memalign=test_posix_memalign")
    compile_c(*STRICT, *flags, *failing, define, "-c", NATIVE / "scheduler.c", "-o", tmp_path / "scheduler.o")
    compile_c(*STRICT, *flags, "-I", NATIVE, STRESS, tmp_path / "scheduler.o", "-o", tmp_path / "stress")
    options = {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"}
    done = subprocess.run(
        [tmp_path / "stress", *tests],
        env={**os.environ, **options},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


KERNELS_OF = ("avx512", "avx2", "plain")  # kinds of processors


def _kernels_here() -> str:
    """Those that linear.c takes on this processor."""
    has = host_features()
    return "avx512" if has.get("avx512f") else "avx2" if has.get("avx2") and has.get("fma") else "plain"


@pytest.mark.parametrize(
    ("driver", "sources"),
    [
        pytest.param(
            SORTS,
            ["scheduler.c", "scratch.c", *(f"order/{path.name}" for path in (NATIVE / "order").glob("*.c"))],
            marks=pytest.mark.slow,
        ),
        (LAUNCHES, ["launches.c", "graphs.c"]),
        pytest.param(
            MATRICES,
            ["scheduler.c", "scratch.c", *(f"linear/{path.name}" for path in (NATIVE / "linear").glob("*.c"))],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["sorts", "launches", "linear"],
)
def test_at_random_under_sanitizers(driver, sources, tmp_path):
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    if not compiles(tmp_path, *flags):
        pytest.skip("no address sanitizer")
    files = [driver, *(NATIVE / name for name in sources)]
    how = (*STRICT, "-O0")  # to optimize the templates would take longer than all the rest
    if driver == MATRICES:  # kernels of other processors are linked and never called: nothing to be watched
        others = [path for path in files if path.stem in KERNELS_OF and path.stem != _kernels_here()]
        files = [path for path in files if path not in others]
        for path in others:
            compile_c(*how, "-I", NATIVE, "-c", path, "-o", tmp_path / f"{path.stem}.o")
        files += [tmp_path / f"{path.stem}.o" for path in others]
    compile_c(*how, *flags, "-I", NATIVE, *files, "-o", tmp_path / "tried", "-lm")
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # the driver counts what is held (held.h)
    tried = [tmp_path / "tried"]
    done = subprocess.run(tried, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, f"{driver.stem}: right\n"), done.stdout + done.stderr
