"""One number is one try: a program, a backend and the ways in which it is computed, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from eshkol.errors import BackendUnavailable, EshkolError
from random_programs.choosing import Chooser, Seeded
from random_programs.comparing import Different
from random_programs.drawing import SMALL, WIDE, draw_program
from random_programs.program import Known, Program
from random_programs.ways import WEIGHTED, Run, computed_in

BACKENDS = ("cpu", "reference")
CARDS = ("card", "card:1", "cuda")  # every other of their programs is of longer axes, which go other ways there
REFUSING = ("card", "card:1", "cuda", "webgpu", "vulkan", "xla")


@dataclass
class Failure:
    """A program that is computed wrongly in one way."""

    seed: int
    backend: str
    way: str
    way_seed: int
    program: Program
    error: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.way} on {self.backend}: {self.error}\n{self.program}"


@dataclass
class Tally:
    """What was tried."""

    programs: int = 0
    steps: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def complaint(program: Program, values: list[Known], way: str, way_seed: int, backend: str) -> tuple[str, bool]:
    """What is wrong with a program computed in a way ("" if nothing is), and whether the way suited it."""
    try:
        return "", computed_in(way, Run(program, values, Seeded(way_seed)), backend)
    except BackendUnavailable as error:  # some may refuse, by name, what they have no code for; the others have all
        return ("", False) if backend in REFUSING else (f"{type(error).__name__}: {error}", True)
    except (Different, EshkolError) as error:
        return f"{type(error).__name__}: {error}", True
    except Exception as error:  # whatever else comes out of a program that the oracle can compute is wrong, too
        return f"{type(error).__name__}: {error}", True


def attempt(seed: int, backend: str, ways: int, tally: Tally, most: int = 10) -> Failure | None:
    """Draw a program of at most so many steps and compute it in some ways."""
    c: Chooser = Seeded(seed)
    try:
        program, values = draw_program(c, most, sizes=WIDE if backend in CARDS and seed % 2 else SMALL)
    except Exception as error:  # a row's reference is not what NumPy says, or refuses what it should take
        return Failure(seed, backend, "the oracle", 0, Program(), f"{type(error).__name__}: {error}")
    if not program.steps:
        return None
    tally.programs += 1
    tally.steps += len(program.steps)
    for _ in range(ways):
        way, way_seed = c.pick(WEIGHTED), c.integer(0, 2**31)
        said, suited = complaint(program, values, way, way_seed, backend)
        if said:
            return Failure(seed, backend, way, way_seed, program, said)
        (tally.ways if suited else tally.skipped)[way] += 1
    return None
