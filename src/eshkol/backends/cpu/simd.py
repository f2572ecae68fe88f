"""The vector unit of this CPU: its level, width and abilities, from LLVM's list of host features.

`ESHKOL_SIMD` forces a lower level (none, sse4.2, avx2, avx512, neon), for tests and for comparing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum

from eshkol.errors import BackendUnavailable
from eshkol.llvm.targets import Target, host, host_features, host_triple
from eshkol.support import flags


class Level(Enum):
    """Vector instruction sets, from none to widest."""

    NONE = "none"
    SSE42 = "sse4.2"
    AVX2 = "avx2"
    AVX512 = "avx512"
    NEON = "neon"


@dataclass(frozen=True)
class SimdConfig:
    """What the vector unit can do."""

    level: Level
    vector_bits: int
    fma: bool
    gather_scatter: bool
    masks: bool

    def facts(self) -> dict[str, str | int | bool]:
        """The configuration as JSON values."""
        return {**asdict(self), "level": self.level.value}


_X86 = "x86_64-unknown-linux-gnu"
_ARM = "aarch64-unknown-linux-gnu"
# x86 level → what the host must have
_X86_NEEDS = {
    Level.AVX512: ("avx512f", "avx512vl", "avx512bw", "avx512dq"),
    Level.AVX2: ("avx2",),
    Level.SSE42: ("sse4.2",),
}
_CONFIGS = {
    Level.NONE: SimdConfig(Level.NONE, 64, False, False, False),
    Level.SSE42: SimdConfig(Level.SSE42, 128, False, False, False),
    Level.AVX2: SimdConfig(Level.AVX2, 256, True, True, False),
    Level.AVX512: SimdConfig(Level.AVX512, 512, True, True, True),
    Level.NEON: SimdConfig(Level.NEON, 128, True, False, False),
}


_PLAIN_CPUS = {
    Level.NONE: "x86-64",
    Level.SSE42: "x86-64-v2",
    Level.AVX2: "x86-64-v3",
    Level.AVX512: "x86-64-v4",
    Level.NEON: "generic",
}


def levels() -> list[Level]:
    """The levels this machine has, widest first."""
    if host().is_arm:
        return [Level.NEON]
    has = host_features()
    found = [level for level, needs in _X86_NEEDS.items() if all(has.get(n) for n in needs)]
    return [*found, Level.NONE] if found else [Level.NONE]


def chosen_level() -> Level:
    """The widest level, or the one that ESHKOL_SIMD asks for."""
    wanted = flags.text("ESHKOL_SIMD")
    if not wanted:
        return levels()[0]
    names = {level.value: level for level in levels()}
    if wanted.lower() not in names:
        raise BackendUnavailable(
            f"ESHKOL_SIMD={wanted}: this machine has {', '.join(names)}", hint="unset it to use the widest"
        )
    return names[wanted.lower()]


def config(level: Level | None = None) -> SimdConfig:
    return _CONFIGS[level or chosen_level()]


def target(level: Level | None = None) -> Target:
    """The compilation target at a level: of this machine, or of a plain one where this machine has no such level."""
    level = level or chosen_level()
    if level is levels()[0] and level is not Level.NONE:
        return replace(host(), vector_bits=_CONFIGS[level].vector_bits)
    return plain_target(level)


def plain_target(level: Level) -> Target:
    """The compilation target of a plain machine of a level: code for it runs on every machine that has the level."""
    triple = host_triple()
    if level not in levels():
        triple = _ARM if level is Level.NEON else _X86
    return Target(triple, _PLAIN_CPUS[level], "", _CONFIGS[level].vector_bits)
