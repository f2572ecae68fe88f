"""The launch record: what a kernel is given, as words of 64 bits that host and kernel agree on.

    word 0   the first fault: lane << 20 | site, all ones where there is none
    word 1   the phase counter
    word 2   address of class memory
    word 3   bytes of shared memory per block
    4 … 9    grid x y z, block x y z
    word 10  address of the blocks' states, where lanes wait for the whole launch (see `cpu/kernels/loops.py`)
    11 …     address and byte count of each buffer, scalar and pool, in the order of `names`

`Layout` also notes where a lane's registers are kept while it waits at a barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eshkol.atlas.flow import located
from eshkol.atlas.program import Program
from eshkol.errors import EshkolError, ExecutionFailed

FAULT, PHASE, CLASS_MEMORY, SHARED_BYTES, GRID, BLOCK, STATES, FIRST_PARAM = 0, 1, 2, 3, 4, 7, 10, 11
SITE_BITS = 20
NO_FAULT = (1 << 64) - 1
BEYOND = 1 << 62  # more bytes or elements than any memory has; keeps constants and words inside 64 bits


@dataclass(frozen=True)
class Site:
    """A place in the program that can fail, and what is wrong when it does."""

    instruction: int
    message: str
    hint: str | None = None
    kind: type[EshkolError] = ExecutionFailed


@dataclass
class Layout:
    """What the translation of a program says about its launch record and its lanes."""

    names: list[str]  # parameters, then pools that the program allocates
    sites: list[Site] = field(default_factory=list)
    barriers: list[int] = field(default_factory=list)  # instruction of each barrier; a lane there returns 1 + its place
    context_bytes: int = 0  # per lane, where there are barriers

    @classmethod
    def of(cls, program: Program) -> Layout:
        made = dict.fromkeys(i.pool for i in program.instructions if i.op.name == "PoolAlloc")
        return cls([*(p.name for p in program.params), *made])

    def word(self, name: str) -> int:
        """The word that holds a parameter's address; its size is in the next."""
        return FIRST_PARAM + 2 * self.names.index(name)

    @property
    def words(self) -> int:
        return FIRST_PARAM + 2 * len(self.names)

    def site(
        self, instruction: int, message: str, hint: str | None = None, kind: type[EshkolError] = ExecutionFailed
    ) -> int:
        """The number of a place that can fail."""
        self.sites.append(Site(instruction, message, hint, kind))
        if len(self.sites) >= 1 << SITE_BITS:
            raise ValueError("the program has too many places that can fail")
        return len(self.sites) - 1

    def error(self, program: Program, code: int) -> EshkolError:
        """What the code that lanes have left in a record means."""
        site = self.sites[code & ((1 << SITE_BITS) - 1)]
        error = located(program, site.instruction, site.message)
        return site.kind(f"{error.message} (lane {code >> SITE_BITS})", span=error.span, hint=site.hint)

    def keep(self, size: int) -> int:
        """Room for a value in the context of a lane; its offset."""
        offset = self.context_bytes
        self.context_bytes += -(-size // 16) * 16
        return offset
