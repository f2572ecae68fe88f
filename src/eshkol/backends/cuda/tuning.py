"""Which tiles a GPU's kernels take: those that were measured there, where they were (`eshkol tune`), else the model's.

Comes in: the device, and the folder of compiled programs. Goes out: the `Pick` that kernels are written with, and marks
of the answers for the description of the machine, which every plan is found by: one that was made with other answers
is not found. `ESHKOL_TUNE=0` leaves answers aside. What is asked of the device can be taken down, to be
measured (`trials.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eshkol.atlas.machines import Tuned
from eshkol.atlas.sequence import Call
from eshkol.backends.cuda.devices import Device
from eshkol.backends.cuda.warpgroups.choices import Pick, by_answers, by_model, sources
from eshkol.errors import CacheError
from eshkol.support import flags
from eshkol.support.answers import Answer, AnswerFile, Question


class Tuning:
    """The answers of a device, from a folder; without one there are none."""

    def __init__(self, folder: Path | None, device: Device) -> None:
        self._file = None
        if folder is not None and device.warpgroups:
            self._file = AnswerFile(folder, f"{device.name}, {device.multiprocessors} processors", sources())
        self.seen: list[Call] | None = None  # launches of kernels with choices, while someone wants to know
        used = self._file is not None and flags.choice("ESHKOL_TUNE") is not False
        self._set(self._file.read() if used and self._file is not None else {})

    def _set(self, answers: Mapping[Question, Answer]) -> None:
        self.answers = dict(answers)
        choices = {question: answer.choice for question, answer in answers.items()}
        self.pick: Pick = by_answers(choices) if choices else by_model
        self.marks: Tuned = tuple(sorted((*question, choice) for question, choice in choices.items()))

    def keep(self, more: Mapping[Question, Answer]) -> Path:
        """Keep answers, here and on disk; where they are now."""
        if self._file is None:
            raise CacheError("what is measured has no place to be kept", hint="ESHKOL_CACHE_BYTES=0 keeps nothing")
        self._set(self._file.keep(more))
        return self._file.path
