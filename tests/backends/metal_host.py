"""Kernels in Metal's language run on the host: compiled as C++ with `metal_shim`, for machines that are no Mac.

A stand-in for the driver of `TextBackend`: memory is the host's, a launch goes over its blocks, and the lanes of a
block one after another, or as threads where they meet at barriers. What a text means is seen so; what Metal's compiler
says of it is not.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.machines import BLOCKS, MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.backends.base import Binding
from eshkol.backends.metal.backend import arguments
from eshkol.backends.metal.dialect import MetalC
from eshkol.backends.text.backend import Loaded, Refused, TextBackend
from eshkol.backends.text.writer import TextKernel

COMPILER = shutil.which("g++") or shutil.which("clang++")
SHIM = Path(__file__).parent / "metal_shim"
FLAGS = ("-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-ffp-contract=off", "-I", str(SHIM), "-x", "c++")
_ALONE = "for (uint lane = 0; lane < lanes; ++lane) kernel_main({given}, lane, group, lanes);"
_TOGETHER = """\
    std::barrier<> all(lanes);
    waiting = &all;
    std::vector<std::thread> threads;
    for (uint lane = 0; lane < lanes; ++lane)
      threads.emplace_back([=] {{ kernel_main({given}, lane, group, lanes); waiting->arrive_and_drop(); }});
    for (auto &one : threads) one.join();"""
_HEAD = """\
#include <barrier>
#include <thread>
#include <vector>
static std::barrier<> *waiting;
static void arrive() { waiting->arrive_and_wait(); }
"""


@dataclass(frozen=True)
class HostDevice:
    """The host as a device."""

    name: str = "the host in Metal's place"
    memory: int = 1 << 30
    largest: int = 1 << 28
    shared_bytes: int = 32 << 10
    lanes: int = 256

    def description(self) -> MachineDescription:
        return replace(BLOCKS, name="metal on the host", shared_memory=self.shared_bytes)


class HostMetal(TextBackend[HostDevice]):
    """Runs kernels in Metal's language."""

    name: ClassVar[str] = "metal-host"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiled = 0
        super().__init__(HostDevice(), MetalC())

    @classmethod
    def unavailable(cls) -> str | None:
        return None if COMPILER else "there is no C++ compiler: apt install g++"

    def _take(self, size: int) -> Any:
        return np.zeros(size, np.uint8)

    def _drop(self, buffer: Any) -> None:
        pass

    def _put(self, buffer: Any, offset: int, raw: Any) -> None:
        buffer[offset : offset + raw.size] = raw

    def _get(self, buffer: Any, offset: int, into: Any) -> None:
        into[:] = buffer[offset : offset + into.size]

    def _move(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        target[target_offset : target_offset + size] = source[source_offset : source_offset + size]

    def _compile(self, written: TextKernel, name: str) -> Any:
        assert COMPILER is not None
        self.compiled += 1
        source, library = (self.folder / f"kernel{self.compiled}.{end}" for end in ("cc", "so"))
        buffers = written.text[written.text.index("kernel void") :].count("[[buffer(") - 1
        shared = "threadgroup uchar *shared" in written.text or "threadgroup uchar * shared" in written.text
        given = ", ".join([f"({'uint' if k == 0 else 'uchar'} *)b[{k}]" for k in range(buffers)] + ["words"]
                          + ["shared"] * shared)  # fmt: skip
        meets = "threadgroup_barrier" in written.text
        lanes = (_TOGETHER if meets else _ALONE).format(given=given)
        launch = "\n#undef thread\n" + (
            'extern "C" void run(uchar **b, const ulong *words, uint blocks, uint lanes, uchar *shared) {\n'
            f"  {'metal::meet = arrive;' * meets}\n"
            f"  for (uint group = 0; group < blocks; ++group) {{\n    {lanes}\n  }}\n}}\n"
        )
        source.write_text(_HEAD * meets + re.sub(r" \[\[.*?\]\]", "", written.text) + launch, encoding="utf-8")
        done = subprocess.run(
            [COMPILER, *FLAGS, str(source), "-o", str(library)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Refused(done.stderr)
        return ctypes.CDLL(str(library)).run

    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        buffers, words = arguments(self, loaded, launch, given, first)
        places = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
        numbers = np.array(words, np.uint64)
        shared = np.zeros(max(launch.shared_memory, 16), np.uint8)
        loaded.kernel(
            places, ctypes.c_void_p(numbers.ctypes.data), blocks, launch.block_size, ctypes.c_void_p(shared.ctypes.data)
        )
