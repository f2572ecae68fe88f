"""What machine code is made for: a triple, a processor, its features; and LLVM itself, set up once.

Comes in: nothing but the machine that this runs on. Goes out: `Target`s. Importing this module does not import
llvmlite; `llvm()` does.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from eshkol.llvm.identity import CPU_LIST

# Options of LLVM as a whole. What selects instructions quickly loses track of the stack around calls whose callee takes
# the arguments off it, as Scheme code makes them; kernels make none (see `objects.py`).
OPTIONS = ("-global-isel=0", "-fast-isel=0")
SELECTING_QUICKLY = "-fast-isel=1"
WASM_TRIPLE = "wasm32-unknown-unknown"
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18  # a system call of Linux on x86-64 and its arguments
# Processors whose microcode holds gathers back, so that no lane sees what another program left ("Downfall"): there a
# gather of 16 floats takes three to five times as long as 16 loads. On those after them it takes half as long.
SLOW_GATHERS = frozenset({"skylake", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake-client",
                          "icelake-server", "tigerlake", "rocketlake"})  # fmt: skip
_LINUX_NAMES = {"asimddp": "dotprod", "i8mm": "i8mm", "bf16": "bf16"}


@cache
def llvm() -> Any:
    """The llvmlite binding, set up once; imported only when native code is wanted."""
    import llvmlite.binding as binding

    binding.initialize_all_targets()  # a level that this machine lacks can still be emitted, to be read
    binding.initialize_all_asmprinters()
    for option in OPTIONS:
        binding.set_option("eshkol", option)
    return binding


def unavailable() -> str | None:
    """Why there is no LLVM; None where there is."""
    try:
        llvm()
    except ImportError:
        return "llvmlite is not installed (pip install llvmlite)"
    except OSError as error:
        return f"llvmlite does not load: {error}"
    return None


def versions() -> dict[str, str] | None:
    """The versions of llvmlite and of the LLVM in it; None where it is not installed or does not load."""
    try:
        import llvmlite
        from llvmlite import binding
    except (ImportError, OSError):  # OSError: installed, but its library does not load
        return None
    return {"llvmlite": llvmlite.__version__, "llvm": ".".join(map(str, binding.llvm_version_info))}


@dataclass(frozen=True)
class Target:
    """The machine to compile for: LLVM's names of triple, CPU and features, and how wide vectors should be."""

    triple: str
    cpu: str
    features: str
    vector_bits: int = 0  # 0: as LLVM likes

    def machine(self, level: int) -> Any:
        """LLVM's target machine, whose generator of instructions works at a level from 0 to 3."""
        target = llvm().Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=level, reloc="pic", codemodel="small"
        )

    @property
    def key(self) -> dict[str, str]:
        """The parts of a cache's key by which code for this target, and of this LLVM, is found again."""
        version = ".".join(map(str, llvm().llvm_version_info))
        return {"triple": self.triple, "cpu": self.cpu, "features": self.features, "llvm": version,
                "vector_bits": str(self.vector_bits), "options": " ".join(OPTIONS)}  # fmt: skip

    def has(self, feature: str) -> bool:
        """Whether the machine has a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def is_arm(self) -> bool:
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith("x86")

    @property
    def is_wasm(self) -> bool:
        return self.triple == WASM_TRIPLE

    @property
    def interleave(self) -> int:
        """Rounds of a vector loop to have under way at once, where 32 vector registers hold them; 0: as LLVM likes.

        LLVM likes one where a round is long, and then waits for each result of an elementary function.
        """
        return 4 if self.is_arm or self.vector_bits > 256 else 0

    @property
    def shifts_bf16(self) -> bool:
        """Whether BF16 is widened by a shift of its bits, rather than as LLVM's type.

        On x86 LLVM would compute floors and bounds of widened BF16 in BF16, and call a function for each that a process
        need not have. On ARM its vectorizer fails an assertion in loops that take a maximum of shifted bits.
        """
        return not self.is_arm

    @property
    def attributes(self) -> str:
        return f'"prefer-vector-width"="{self.vector_bits}"' if self.vector_bits > 256 else ""


# ---- this machine ----------------------------------------------------------------------------------------------------


@cache
def host() -> Target:
    """This machine, with everything that it has."""
    features = ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(host_features().items()))
    if host_cpu() in SLOW_GATHERS:
        features += ",+prefer-no-gather"
    return Target(host_triple(), host_cpu(), features)


def host_triple() -> str:
    return str(llvm().get_default_triple())


def host_cpu() -> str:
    """LLVM's name of this processor."""
    return str(llvm().get_host_cpu_name())


@cache
def tiles_permitted() -> bool:
    """Whether the system lets this process use AMX's tile registers; asked once, for all threads.

    It is asked wherever the features of this machine are, and so before any code that was made for them runs: code may
    come from a cache, in a process that compiles nothing.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return bool(ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)


@cache
def host_features() -> dict[str, bool]:
    """LLVM's features of this processor that the system lets this process use.

    On ARM LLVM does not ask for all of them; Linux says the rest, by its names.
    """
    found = dict(llvm().get_host_cpu_features())
    if found.get("amx-tile") and not tiles_permitted():
        found |= {name: False for name in found if name.startswith("amx-")}
    if host_triple().startswith("aarch64") and CPU_LIST.exists():
        lines = [line for line in CPU_LIST.read_text(encoding="utf-8").splitlines() if line.startswith("Features")]
        words = set.intersection(*(set(line.split()) for line in lines)) if lines else set()
        found |= {name: True for word, name in _LINUX_NAMES.items() if word in words}
    return found
