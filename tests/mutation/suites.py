"""Which tests judge which package, and in which order: the one table to change when a suite is added.

Folders and files are relative to the repository. First come the quick tests that run the very line, in the order of the
package's suites; then those of `EVERYWHERE`, suites that look everywhere and take long; then all others, the quick ones
before the slow ones.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_TENSORS = ("tests/schedule", "tests/graph", "tests/tensors", "tests/ops")
SUITES = {
    "schedule": (
        *_TENSORS,
        "tests/backends/test_cpu_order.py",
        "tests/backends/test_cuda_ptx.py",
        "tests/backends/test_whole_graphs.py",
    ),
    "graph": ("tests/graph", "tests/tensors", "tests/schedule", "tests/ops"),
    "ops": ("tests/ops", "tests/tensors", "tests/schedule", "tests/graph"),
    "calculus": ("tests/calculus", "tests/bindings/test_caches.py"),
}
EVERYWHERE = {
    "schedule": ("tests/random_programs",),
    "graph": ("tests/random_programs",),
    "ops": (),
    "calculus": (),
}
QUICK = 0.5  # seconds: tests up to that run before slower ones


def files(packages: list[str]) -> list[str]:
    """The test files of these packages."""
    found: dict[str, None] = {}
    for package in packages:
        for entry in (*EVERYWHERE[package], *SUITES[package]):
            path = ROOT / entry
            for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path] if path.exists() else []:
                found[file.relative_to(ROOT).as_posix()] = None
    return list(found)


def rank(package: str, file: str, seconds: float, direct: bool) -> tuple[int, int]:
    """Where a test comes in the order of a package, the lowest first; `direct`: whether it runs the very line."""
    for k, entry in enumerate(EVERYWHERE[package]):
        if file == entry or file.startswith(f"{entry}/"):
            return (1, k)
    places = [k for k, entry in enumerate(SUITES[package]) if file == entry or file.startswith(f"{entry}/")]
    late = 0 if seconds <= QUICK and direct else 2 + 2 * (seconds > QUICK) + (not direct)
    return (late, places[0] if places else len(SUITES[package]))
