"""A sequence: launches one after another over numbered places of memory, with loops and branches.

Comes in: what a plan of many programs consists of. Goes out: something a machine can run in one go, without asking the
host in between. A *place* is an address that is filled in when the sequence is run; instructions may point it elsewhere
(to the next element of what a loop walks through, or to another place's memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.errors import EshkolError


@dataclass(frozen=True, slots=True)
class Call:
    """A launch. `buffers` says for each buffer parameter in which place it lies, from which byte on, and its bytes."""

    program: Program
    launch: LaunchConfig
    buffers: Mapping[str, tuple[int, int, int]]
    numbers: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class NativeCode:
    """A function of the machine's own, for what programs do not say: over a record, whose words it knows.

    It is called for the tasks 0 … `tasks` - 1, of which `grain` are not worth splitting. `outs` and `ins` are the words
    of the record that hold the addresses of what it writes and reads, and what it leaves in the first word is a fault.
    """

    function: str
    tasks: int
    grain: int
    record: bytes
    outs: tuple[int, ...]
    ins: tuple[int, ...]
    fault: Callable[[int], EshkolError]


@dataclass(frozen=True, slots=True)
class Native:
    """A call of native code: `places` are where what it writes and then what it reads lies, each from a byte on."""

    code: NativeCode
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Together:
    """The next `count` steps are calls that need nothing of each other: in any order, or at the same time."""

    count: int


@dataclass(frozen=True, slots=True)
class Copy:
    """size bytes of a place go to another, each from an offset on; the two are apart, or the same."""

    target: tuple[int, int]
    source: tuple[int, int]
    size: int


@dataclass(frozen=True, slots=True)
class Swap:
    """Two places exchange their memory."""

    one: int
    other: int


@dataclass(frozen=True, slots=True)
class Point:
    """`target` is `source` from an offset on."""

    target: int
    source: int
    offset: int


@dataclass(frozen=True, slots=True)
class BufferView:
    """`target` is `source` from offset + counter × stride bytes on."""

    target: int
    source: int
    offset: int
    counter: int
    stride: int


@dataclass(frozen=True, slots=True)
class Set:
    """A counter gets a value."""

    counter: int
    value: int


@dataclass(frozen=True, slots=True)
class Next:
    """A counter goes on by a step; unless it has come to its end, so does the sequence at `target`."""

    counter: int
    step: int
    end: int
    target: int


@dataclass(frozen=True, slots=True)
class Unless:
    """Where the byte at an offset of a place is 0, go on at `target`."""

    place: int
    offset: int
    target: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at `target`."""

    target: int


SequenceStep = Call | Native | Together | Copy | Swap | Point | BufferView | Set | Next | Unless | Jump


class Runner(Protocol):
    """A sequence that is ready to be run."""

    def run(self, addresses: list[int]) -> None:
        """Run it, its places being at these addresses; they are changed as the steps say.

        A launch that fails raises SequenceFailed.
        """
        ...


class SequenceFailed(Exception):
    """The step of a sequence that failed, and why."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(f"step {step}: {error}")
        self.step, self.error = step, error
