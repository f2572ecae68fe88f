"""How much memory tensors take: now, at most, and in the steps of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.schedule.plan.report import MemoryReport, reported
from eshkol.schedule.run import memory
from eshkol.tensors.jit import jit


def memory_usage() -> dict[str, int]:
    """Bytes of tensors now (`used`), at most since the last reset (`peak`), and kept for use again (`kept`).

    Counted is memory of 64 KiB and more that tensors and computations hold; a tensor over an array of another library
    (`ek.from_numpy`) is not.
    """
    return {"used": memory.usage.current, "peak": memory.usage.peak, "kept": memory.kept_bytes()}


def peak_memory_allocated() -> int:
    """The most bytes that tensors have taken at one time since the last `reset_peak_memory`."""
    return memory.usage.peak


def reset_peak_memory() -> None:
    """Count the peak from here on."""
    memory.usage.peak = memory.usage.current


def memory_report(function: Callable[..., Any], *args: Any, **given: Any) -> MemoryReport:
    """What a call of a function takes of memory when it is compiled as a whole, step by step; nothing is computed."""
    traced = function if isinstance(function, jit) else jit(function)
    return reported(traced.plan(*args, **given))
