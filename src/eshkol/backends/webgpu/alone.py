"""Launches without a device here: what a page must know of one to ask its browser for it.

Comes in: a program, its launch, the bytes of its buffers and its scalars, all of which are known beforehand. Goes out:
an `AloneLaunch`: the WGSL, what the pipeline is made with, the words of the uniforms, and what is bound. `backend.py`
does the same with a device at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eshkol.atlas.expand import expand
from eshkol.atlas.machines import BLOCKS
from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.validate import validate
from eshkol.backends.base import bind_scalar
from eshkol.backends.lanes.guards import find_guard
from eshkol.backends.lanes.promises import promises
from eshkol.backends.lanes.ranges import SHARED_MEMORY
from eshkol.backends.text.backend import NO_FAULT, size_of_launch
from eshkol.backends.text.memory import CLASS_MEMORY
from eshkol.backends.text.scalars import LOWERED
from eshkol.backends.text.writer import TextKernel, write_kernel
from eshkol.backends.webgpu.dialect import Wgsl
from eshkol.backends.webgpu.writer import STATUS, WgslWriter
from eshkol.errors import BackendUnavailable, EshkolError

GROUPS = 65535  # blocks along an axis
# What every browser has: lanes of a block and its memory, bytes of a buffer. Of buffers of a kernel it has eight at
# least; a page asks for more where a kernel needs them.
LANES, SHARED, LARGEST = 256, 16 << 10, 128 << 20
BROWSER = replace(
    BLOCKS, name="webgpu, in a page", largest=LARGEST, shared_memory=SHARED, block=LANES, subgroup=1,
    product_tiles=tuple(tile for tile in BLOCKS.product_tiles if tile.lanes <= LANES),
)  # fmt: skip


@dataclass(frozen=True)
class AloneLaunch:
    """A launch: `buffers` are names of parameters, or `STATUS`, in the order of their bindings."""

    wgsl: str
    lanes: int  # of a block
    shared: int | None  # words of a block's memory, if it has any
    words: tuple[int, ...]
    buffers: tuple[str, ...]
    groups: tuple[int, int]
    errors: tuple[EshkolError, ...]  # by the place in the program that a lane notes when it fails

    @property
    def checks(self) -> bool:
        return bool(self.errors)


def alone(
    program: Program, launch: LaunchConfig, sizes: Mapping[str, int], numbers: Mapping[str, int | float]
) -> AloneLaunch:
    """A launch over buffers of so many bytes, with these scalars."""
    inner = expand(program, lambda i: i.op.name not in LOWERED)
    found = validate(inner, launch)
    guard, promised = find_guard(inner, found), promises(inner)
    scalars = {p.name: bind_scalar(p, numbers[p.name]) for p in inner.params if p.kind is ParamKind.SCALAR}
    values = {name: value.value for name, value in scalars.items()}
    lanes = launch.total_threads
    if guard is not None:
        lanes = min(lanes, guard.bound if isinstance(guard.bound, int) else int(values[guard.bound]))
    holds = promised is not None and promised.hold(
        launch.total_threads, {SHARED_MEMORY: launch.shared_memory, **sizes}, values
    )
    # Browsers take no barrier behind a branch that they cannot see to be the same for all lanes: where whole blocks
    # pass the guard, it is left out.
    never = guard.branch if guard is not None and lanes % launch.block_size == 0 else None
    written = write_kernel(inner, Wgsl(), promised.known if promised and holds else None, never, WgslWriter)
    if CLASS_MEMORY in written.asked:
        raise BackendUnavailable(f"'{program.name}' needs memory that lives between launches, which pages do not have")
    sites = len(written.layout.sites)
    if sites and launch.total_threads * sites >= NO_FAULT:
        raise BackendUnavailable(f"'{program.name}' has more lanes than a page can check")
    blocks = -(-lanes // launch.block_size)
    across = max(1, min(blocks, GROUPS))
    names = _buffers(inner, written)
    shared = max(1, -(-launch.shared_memory // 4)) if "shared" in written.asked else None
    return AloneLaunch(
        written.text, launch.block_size, shared, _words(inner, written, launch, blocks, scalars, sizes), names,
        (across, -(-blocks // across)), tuple(written.layout.error(inner, site) for site in range(sites)),
    )  # fmt: skip


def _buffers(program: Program, written: TextKernel) -> tuple[str, ...]:
    status = [STATUS] if STATUS in written.asked else []
    return (*status, *(p.name for p in program.params if p.kind is not ParamKind.SCALAR))


def _words(
    program: Program, written: TextKernel, launch: LaunchConfig, blocks: int, scalars: Mapping[str, Immediate],
    sizes: Mapping[str, int],
) -> tuple[int, ...]:  # fmt: skip
    """The uniforms, in the order in which `writer.py` declares them."""
    words = [0, blocks, *asked_words(written.asked, launch, 0)]
    for param in program.params:
        words += words_of(scalars[param.name]) if param.name in scalars else [sizes[param.name]]
    return tuple(words)


def asked_words(asked: Sequence[str], launch: LaunchConfig, first: int) -> list[int]:
    """What a kernel asks of a launch that begins at block `first`, without the memory that it is given."""
    return [_told(name, launch, first) for name in asked if name not in (STATUS, CLASS_MEMORY, "shared")]


def _told(name: str, launch: LaunchConfig, first: int) -> int:
    if name == "first":
        return first * launch.block_size
    return launch.shared_memory if name == "shared_bytes" else size_of_launch(name, launch)


def words_of(value: Immediate) -> list[int]:
    """A scalar as words."""
    raw = value.array().tobytes()
    if value.ty.is_integer and value.ty.bits < 32:
        raw = int(value.value).to_bytes(4, "little", signed=value.ty.is_signed)
    return [int(word) for word in np.frombuffer(raw + bytes(-len(raw) % 4), np.uint32)]
