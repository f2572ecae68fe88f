"""A program: parameters, instructions, labels, entry and metadata; and the launch it runs under.

Programs are immutable; `ProgramBuilder` makes them, passes return new ones. `disassemble` and `to_json` write them
down. `digest` is the BLAKE3 hash of the canonical JSON form, the key of every cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from blake3 import blake3

from eshkol.atlas.isa import COUNT_LIMIT, Instruction
from eshkol.atlas.operands import BufferOffset, Indexed, Register, shortened
from eshkol.atlas.types import Type
from eshkol.atlas.writing import format_instruction, instruction_to_json
from eshkol.errors import IsaError
from eshkol.support.extents import index as as_index

RESERVED_NAMES = frozenset({"shared", "class", "pool"})
BLOCK_LIMIT = 1024  # lanes per block that every backend accepts
LANE_LIMIT = 1 << 40
JSON_VERSION = 1
# Metadata: neighbouring elements of buffers may be read and written together, though that takes registers. It names the
# buffers of no declared size that begin at multiples of 16 bytes all the same.
VECTORS = "vectors"
# Metadata: how many lanes blocks have at most, so that there are registers for all of them.
LANES = "lanes"
# Metadata: buffers, by their names, whose contents nobody reads after a launch.
MEANWHILE = "meanwhile"
# Metadata of a program that reads what other cores have written just before, and so has it from their caches.
GATHERS = "gathers"
# Metadata of a program whose factors of float32 may be rounded to 19 bits (tf32) where that is faster.
ROUNDED = "rounded"


class ParamKind(Enum):
    BUFFER = "buffer"
    SCALAR = "scalar"
    POOL = "pool"


@dataclass(frozen=True, slots=True)
class Param:
    """A slot that a launch fills: a typed buffer (of a stated element count, or any), a scalar, or a pool."""

    name: str
    kind: ParamKind
    ty: Type | None = None  # None for pools
    count: int | None = None

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise IsaError(f"'{self.name}' cannot name a parameter", hint="use letters, digits and _; not r1 or p1")
        if (self.ty is None) is not (self.kind is ParamKind.POOL):
            raise IsaError(f"the {self.kind.value} '{self.name}' must {'not ' * (self.ty is not None)}have a type")
        if self.count is not None and not 0 <= self.count <= COUNT_LIMIT:
            raise IsaError(f"'{self.name}' cannot have {shortened(self.count)} elements")
        if self.count is not None and self.kind is not ParamKind.BUFFER:
            raise IsaError(
                f"the {self.kind.value} '{self.name}' cannot have a count of elements: only buffers have one"
            )

    def at(self, index: Register | int) -> BufferOffset | Indexed:
        """The address of one element: of a constant index, or of the index in a register."""
        assert self.ty is not None
        if isinstance(index, Register):
            return BufferOffset(self.name).at(index, self.ty.size_bytes)
        return BufferOffset(self.name, index * self.ty.size_bytes)

    @property
    def address(self) -> BufferOffset:
        """The address of the first element."""
        return BufferOffset(self.name)


def is_name(text: str) -> bool:
    """Whether text may name a parameter, pool or label: an identifier that is no register or keyword."""
    if not (text.isascii() and text.isidentifier()) or text in RESERVED_NAMES or len(text) > 128:
        return False
    return not (text[0] in "rp" and text[1:].isdigit())


@dataclass(frozen=True, eq=False)
class Program:
    """An Atlas program. Equal programs have equal digests."""

    instructions: tuple[Instruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)  # name → index of the instruction it stands before
    params: tuple[Param, ...] = ()
    entry: str | None = None  # a label; None starts at the first instruction
    name: str = "main"
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def __len__(self) -> int:
        return len(self.instructions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        return disassemble(self)

    @cached_property
    def digest(self) -> str:
        """BLAKE3 of the program's canonical JSON form; source spans do not count."""
        return blake3(json.dumps(to_json(self), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @cached_property
    def start(self) -> int:
        """The index of the first instruction to run."""
        return 0 if self.entry is None else self.labels[self.entry]

    @cached_property
    def param(self) -> Mapping[str, Param]:
        return {p.name: p for p in self.params}

    @cached_property
    def labels_at(self) -> Mapping[int, list[str]]:
        """The labels before each instruction (and before the end), by index."""
        places: dict[int, list[str]] = {}
        for name, index in self.labels.items():
            places.setdefault(index, []).append(name)
        return places

    def with_changes(self, changes: Mapping[int, Sequence[Instruction]]) -> Program:
        """The program with instructions, by index, replaced by others (or by none).

        A label before a replaced instruction stands before what replaces it.
        """
        if not changes:
            return self
        places: list[int] = []
        instructions: list[Instruction] = []
        for index, instruction in enumerate(self.instructions):
            places.append(len(instructions))
            instructions.extend(changes.get(index, (instruction,)))
        places.append(len(instructions))
        labels = {name: places[index] for name, index in self.labels.items()}
        return replace(self, instructions=tuple(instructions), labels=labels)


def disassemble(program: Program) -> str:
    """A program as text that assembles to the same program."""
    lines = [f".program {json.dumps(program.name)}"]
    if program.entry is not None:
        lines.append(f".entry {program.entry}")
    lines += [f".meta {json.dumps(key)} {json.dumps(value)}" for key, value in program.metadata.items()]
    for p in program.params:
        parts = [p.name, p.ty and p.ty.name, p.count if p.count is None else str(p.count)]
        lines.append(f".{p.kind.value} " + " ".join(part for part in parts if part is not None))
    for index in range(len(program) + 1):
        lines += [f"{name}:" for name in program.labels_at.get(index, [])]
        if index < len(program):
            lines.append("    " + format_instruction(program.instructions[index]))
    return "\n".join(lines) + "\n"


def to_json(program: Program) -> dict[str, Any]:
    """A program as JSON values, from which `from_json` makes the same program."""
    return {
        "atlas": JSON_VERSION,
        "name": program.name,
        "entry": program.entry,
        "metadata": dict(program.metadata),
        "params": [
            {"name": p.name, "kind": p.kind.value, "type": p.ty and p.ty.name, "count": p.count} for p in program.params
        ],
        "labels": dict(program.labels),
        "code": [instruction_to_json(i) for i in program.instructions],
    }


def _integer(value: Any) -> int | None:
    """An integer of any kind, NumPy's too, as Python's; None for what is none."""
    try:
        return None if isinstance(value, bool) else as_index(value)
    except TypeError:
        return None


def _some(what: str, lanes: Any) -> int:
    """A number of lanes, which must be one of at least 1."""
    number = _integer(lanes)
    if number is None or number < 1:
        raise IsaError(f"{what} needs at least one lane, not {shortened(lanes)}")
    return number


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """How many lanes run a program: a grid of blocks of lanes, and bytes of shared memory per block."""

    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared_memory: int = 0

    def __post_init__(self) -> None:
        for name, extent in (("grid", self.grid), ("block", self.block)):
            counts = tuple(map(_integer, extent)) if isinstance(extent, tuple | list) else ()
            if len(counts) != 3 or not all(n is not None and 1 <= n < 1 << 32 for n in counts):
                raise IsaError(f"the {name} must be three counts from 1 to 2^32 - 1, not {shortened(extent)}")
            object.__setattr__(self, name, counts)  # lists would not hash, and NumPy's integers would wrap
        if self.block_size > BLOCK_LIMIT:
            raise IsaError(f"a block has at most {BLOCK_LIMIT} lanes, not {self.block_size}")
        if self.total_threads > LANE_LIMIT:
            raise IsaError(f"{self.total_threads} lanes are too many: the limit is {LANE_LIMIT}")
        shared = _integer(self.shared_memory)
        if shared is None or not 0 <= shared <= 1 << 30:
            raise IsaError(f"{shortened(self.shared_memory)} bytes of shared memory are not between 0 and 2^30")
        object.__setattr__(self, "shared_memory", shared)

    @classmethod
    def linear(cls, lanes: int, block: int = 256, shared_memory: int = 0) -> LaunchConfig:
        """At least `lanes` lanes in one dimension, in whole blocks: guard with r255 where the last is ragged."""
        lanes = _some("a launch", lanes)
        size = min(lanes, _some("a block", block))
        return cls((-(-lanes // size), 1, 1), (size, 1, 1), shared_memory)

    @classmethod
    def grid_2d(cls, width: int, height: int, block: tuple[int, int] = (16, 16)) -> LaunchConfig:
        """At least width × height lanes in two dimensions, in whole blocks."""
        width, height = _some("a launch", width), _some("a launch", height)
        x, y = min(width, _some("a block", block[0])), min(height, _some("a block", block[1]))
        return cls((-(-width // x), -(-height // y), 1), (x, y, 1))

    @property
    def block_size(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def total_threads(self) -> int:
        return self.blocks * self.block_size
