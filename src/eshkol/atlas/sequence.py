"""A sequence: launches one after another over numbered places of memory, with loops and branches.

Comes in: what a plan of many programs consists of. Goes out: something a machine can run in one go, without asking the
host in between. A *place* is an address that is filled in when the sequence is run; instructions may point it elsewhere
(to the next element of what a loop walks through, or to another place's memory).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from eshkol.atlas.program import LaunchConfig, Program


@dataclass(frozen=True, slots=True)
class Call:
    """A launch. `buffers` says for each buffer parameter which place it is and how many bytes it has there."""

    program: Program
    launch: LaunchConfig
    buffers: Mapping[str, tuple[int, int]]
    numbers: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Copy:
    """size bytes of `source` go to `target`; the two are apart, or the same."""

    target: int
    source: int
    size: int


@dataclass(frozen=True, slots=True)
class Swap:
    """Two places exchange their memory."""

    one: int
    other: int


@dataclass(frozen=True, slots=True)
class View:
    """`target` is `source` from counter × stride bytes on."""

    target: int
    source: int
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
    """Where the first byte of a place is 0, go on at `target`."""

    place: int
    target: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at `target`."""

    target: int


SequenceStep = Call | Copy | Swap | View | Set | Next | Unless | Jump


class Runner(Protocol):
    """A sequence that is ready to be run."""

    def run(self, addresses: Sequence[int]) -> None:
        """Run it, its places being at these addresses. A launch that fails raises SequenceFailed."""
        ...


class SequenceFailed(Exception):
    """The step of a sequence that failed, and why."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(f"step {step}: {error}")
        self.step, self.error = step, error
