"""What a comparison with a machine came to: it agrees, the machine refuses it by name, or it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eshkol.errors import BackendUnavailable

PASS, REFUSED, FAIL = "pass", "refused", "FAIL"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case went."""

    name: str  # of the case; its first word is the row's name
    what: str  # "instruction", "forward" or "gradient"
    result: str  # PASS, REFUSED or FAIL
    message: str = ""

    @property
    def row(self) -> str:
        return self.name.split()[0]

    def __str__(self) -> str:
        return f"{self.result} {self.name} {self.what}{f': {self.message}' * bool(self.message)}"


def outcome_of(name: str, what: str, run: Callable[[], None]) -> Outcome:
    """What a comparison came to that raises where it fails."""
    try:
        run()
    except BackendUnavailable as error:
        return Outcome(name, what, REFUSED, error.message)
    except Exception as error:  # whatever it is, it is a failure of the machine, and others are to be looked at
        return Outcome(name, what, FAIL, f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
    return Outcome(name, what, PASS)
