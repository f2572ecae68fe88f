"""Environment variables: what Eshkol may be asked for from outside, in one table and one grammar.

Comes in: `os.environ`, looked at each time, so that a program may set a variable itself. Goes out: truth values, names,
numbers, sizes, text. A variable that is not set, or empty, says nothing. A value that means nothing is an error that
says which values do. Stands below everything: it imports the errors alone. The C runtime reads ESHKOL_HEAP,
ESHKOL_THREADS (for Scheme's threads), ESHKOL_GC_STRESS and ESHKOL_GC_CHECK itself, by the same grammar.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from eshkol.errors import EshkolError


class Flag(NamedTuple):
    """A variable: how it is written, and what it does."""

    name: str
    value: str
    effect: str


FLAGS = (
    Flag("ESHKOL_DEBUG", "1", "errors show the traceback of the compiler itself, in Python, too"),
    Flag(
        "ESHKOL_CHECK", "1",
        "the Atlas optimizer validates after every pass; nodes are verified before they are lowered; every pass, "
        "kernel and plan is compared with the interpreter of the graph ([testing](testing.md#translation-validation)); "
        "a mistake in the compiler of derivatives is an error, not a warning",
    ),
    Flag("ESHKOL_DUMP", "PASS,…", "what these passes give is printed on stderr; `all` for every pass listed below"),
    Flag("ESHKOL_EXPLAIN", "1", "the cache says which part of a key changed on a miss, `jit` why it traces again, and "
         "the tuner what it measured"),
    Flag("ESHKOL_CACHE_DIR", "FOLDER", "where compiled programs are kept"),
    Flag("ESHKOL_CACHE_BYTES", "SIZE", "how large that folder may grow; `0` keeps nothing on disk"),
    Flag("ESHKOL_PREPARED", "FILE", "where the code is that `eshkol prepare` compiles when Eshkol is set up; without "
         "it, in the environment that Eshkol is installed in; `0` does without"),
    Flag("ESHKOL_DEVICE", "NAME", "the device that tensors are made on: `cpu` (without it), `cuda`, `cuda:1` … ([GPUs]"
         "(gpu.md)), `opencl`, `opencl:1` … ([OpenCL](opencl.md)), `webgpu` ([WebGPU](webgpu.md)), `vulkan` ([Vulkan]"
         "(vulkan.md)), `metal` ([Metal](metal.md)), `wasm` ([WebAssembly](wasm.md)), `rocm` ([AMD](rocm.md)), `xla` "
         "([XLA](xla.md)), `discrete` (the CPU with memory of its own), `blocks` (kernels for blocks of lanes, "
         "interpreted), `card` (the same with the sizes of a real card), `reference`; what is asked of a GPU by name "
         "is done there, too"),
    Flag("ESHKOL_CUDA_GRAPHS", "0", "on NVIDIA GPUs, launches are asked for one by one however often they are; without "
         "it, what runs again and again is one CUDA graph"),
    Flag("ESHKOL_SIMD", "LEVEL", "the CPU backend compiles for this vector level: none, sse4.2, avx2, avx512 on x86, "
         "neon on ARM"),
    Flag("ESHKOL_OPTIMIZE", "0", "the CPU backend compiles programs as they are written: in a tenth of the time, for "
         "tests and for code that runs once; lines of a Scheme prompt are compiled likewise"),
    Flag("ESHKOL_TIER", "full", "Scheme programs are optimized before they run, however long that takes; `quick`: they "
         "are compiled as they are written, procedures when they are first called, and nothing is optimized. Without "
         "it, small programs are optimized at once, large ones while they run"),
    Flag("ESHKOL_TUNE", "1", "sizes of kernels are measured when they are first compiled "
         "([performance](performance.md)); `0` leaves aside what was measured, here or by `eshkol tune` "
         "([GPUs](kernels.md#eshkol-tune))"),
    Flag("ESHKOL_THREADS", "N", "threads of the shared pool, and of [parallel forms](parallel.md) of Scheme, the "
         "calling one included; without it, one for each usable CPU"),
    Flag("ESHKOL_HEAP", "SIZE", "how much memory the values of a Scheme program may take; without it, 3/4 of the "
         "machine's; `--heap` of the command line comes first"),
    Flag("ESHKOL_GC_STRESS", "N", "the collector runs at every N-th run of memory that is handed out, marks the whole "
         "heap in slices that begin with one object, and checks the heap each time; for tests"),
    Flag("ESHKOL_GC_CHECK", "1", "after each collection the whole heap is checked: an old object that refers to a "
         "young one, stored without a word to the collector, ends the process; for tests of the runtime"),
    Flag("ESHKOL_PATH", "FOLDERS", "where libraries of the language are looked for, beside the importing file"),
    Flag("ESHKOL_DATA", "FOLDER", "where files of data sets are looked for, unless `root=` says it ([data](data.md))"),
)  # fmt: skip
DUMPS = {
    "core": "core forms of a program, as the expander gives them",
    "calculus": "typed programs of procedures that are differentiated, or why there is none",
    "exponentials": "graphs with products for exponentials of matrices",
    "matrices": "graphs with loops for linear algebra, on GPUs",
    "simplify": "graphs of fewer and cheaper nodes",
    "centred": "graphs with gradients of normalizations in fewer sums, on GPUs",
    "arrange": "graphs with products in better order, and in pieces",
    "orders": "graphs with sorts as far as they are read",
    "draws": "graphs with random bits by blocks",
    "factors": "graphs with factors that are computed once",
    "windows": "graphs with the greatest elements of windows, where their places are not asked for",
    "attention": "graphs with attention of 16-bit floats and its gradients, where kernels compute them at once",
    "patterns": "graphs with nodes that array instructions do at once",
    "channels": "graphs with convolutions of 16-bit floats that array instructions do, and copies with channels last",
    "pairs": "graphs with Fourier transforms and complex products as pairs of floats",
    "turned": "graphs with reductions along short rows done side by side",
    "joins": "graphs with tensors joined along rows, few at a time",
    "parts": "graphs with softmax and its kin as their parts",
    "fuse": "which nodes are one kernel; of the Atlas optimizer, programs with fused instructions",
    "lower": "the program of every kernel",
    "together": "which kernels are one loop",
    "plan": "steps over places of memory, and where these lie",
    "kernel": "the source that a driver is given, on devices of OpenCL",
    "constants": "programs after the Atlas optimizer's pass over constants",
    "peephole": "programs after its pass over neighbouring instructions",
    "dead_code": "programs without what nothing uses",
}  # in the order in which passes run
_NAMES = frozenset(flag.name for flag in FLAGS)
_ON, OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class FlagError(EshkolError):
    """An environment variable has a value that means nothing."""


def text(name: str) -> str:
    """The value as it is, without blanks around it; "" where the variable is not set."""
    assert name in _NAMES, f"{name} is not in the table"
    return os.environ.get(name, "").strip()


def without_ours() -> dict[str, str]:
    """The environment without these variables, for processes that nothing is to be said to."""
    return {name: value for name, value in os.environ.items() if name not in _NAMES}


def choice(name: str) -> bool | None:
    """What a switch says; None where it says nothing."""
    said = text(name).lower()
    if not said:
        return None
    if said not in (*_ON, *OFF):
        raise FlagError(f"{name} is '{text(name)}'", hint=f"{', '.join(_ON)} turn it on; {', '.join(OFF)} turn it off")
    return said in _ON


def is_on(name: str) -> bool:
    """Whether a switch is turned on."""
    return bool(choice(name))


def dumps(what: str) -> bool:
    """Whether ESHKOL_DUMP asks for what a pass gives."""
    assert what in DUMPS, f"{what} is not in the table"
    said = text("ESHKOL_DUMP")
    if not said:
        return False
    words = {word.strip() for word in said.split(",")}
    unknown = sorted(words - {*DUMPS, "all", ""})
    if unknown:
        raise FlagError(f"ESHKOL_DUMP has '{unknown[0]}', which is no pass", hint=f"all, {', '.join(DUMPS)}")
    return what in words or "all" in words


def word(name: str, words: tuple[str, ...]) -> str:
    """One of some words; "" where the variable says nothing."""
    said = text(name).lower()
    if said and said not in words:
        raise FlagError(f"{name} is '{text(name)}'", hint=f"it may be {' or '.join(words)}")
    return said


def number(name: str, least: int, most: int) -> int | None:
    """A whole number; None where the variable says nothing."""
    said = text(name)
    if not said:
        return None
    if not (re.fullmatch("[0-9]{1,18}", said) and least <= int(said) <= most):
        raise FlagError(
            f"{name} is '{said}', but must be a whole number from {least} to {most}", hint=f"unset {name} to go without"
        )
    return int(said)


def size(name: str) -> int | None:
    """A number of bytes; None where the variable says nothing."""
    said = text(name)
    if not said:
        return None
    found = bytes_in(said)
    if found is None:
        raise FlagError(f"{name} is '{said}', which is no size", hint="write 512M, 2G or a number of bytes")
    return found


def bytes_in(written: str) -> int | None:
    """The number of bytes that a text stands for: 1000000, 512M, 2G; None where it is no size."""
    found = _SIZE.fullmatch(written.strip())
    bytes_ = -1 if found is None else int(float(found[1]) * _UNITS[found[2].lower()])
    return bytes_ if 0 <= bytes_ < 1 << 62 else None


def page() -> str:
    """The page of documentation."""
    rows = [f"| `{flag.name}={flag.value}` | {flag.effect} |" for flag in FLAGS]
    passes = [f"| `{name}` | {what} |" for name, what in DUMPS.items()]
    return "\n".join([
        _HEAD, "| variable | effect |", "|---|---|", *rows, "", "## Passes", "",
        "In the order in which they run; each is verified where `ESHKOL_CHECK=1`.", "",
        "| `ESHKOL_DUMP=` | prints |", "|---|---|", *passes,
    ]) + "\n"  # fmt: skip


_HEAD = f"""# Environment variables

Written by `make generate` from `src/eshkol/support/flags.py`. A variable that is not set, or empty, says nothing.
Switches are turned on by {", ".join(f"`{word}`" for word in _ON)} and off by {", ".join(f"`{word}`" for word in OFF)};
sizes are bytes, or written as `512M`, `2G`; lists are separated by commas, folders as in `PATH`. A value that means
nothing is an error.
"""

if __name__ == "__main__":
    (Path(sys.argv[1]) / "environment.md").write_text(page(), encoding="utf-8")
