"""What people who come from PyTorch type works, or is refused with what to type instead: one line after the other.

The lines are in `torch_lines.py` and `torch_learning_lines.py`; PyTorch itself agrees with them
(`tests/peers/test_torch_habits.py`). All lines of a section share a process and a test, which tells all that fail.
"""

from __future__ import annotations

import warnings

import pytest
from tests.habits.torch_learning_lines import SECTIONS as LEARNING
from tests.habits.torch_lines import SECTIONS, habits
from tests.habits.world import check, world

import eshkol as ek
from eshkol.data import transforms

LINES = habits(SECTIONS | LEARNING)
PATTERNS = {**SECTIONS, **LEARNING}


def failures(section: str, folder: str) -> list[str]:
    found = []
    for line in LINES:
        if line.section == section:
            try:
                check(line, world(ek, folder, line) | {"T": transforms})
            except Exception as error:
                found.append(f"{line.code}\n    {type(error).__name__}: {error}")
    return found


@pytest.mark.parametrize("section", PATTERNS)
def test_lines_of(section, tmp_path, interpreting):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = failures(section, str(tmp_path))
    assert not wrong, "\n".join(wrong)


def test_there_are_lines_enough_and_nearly_all_do_what_pytorch_does():
    known = [line for line in LINES if line.kind != "+=>"]  # to PyTorch
    assert len(known) >= 300
    assert sum(line.same for line in known) / len(known) >= 0.95


def test_no_line_is_there_twice():
    codes = [line.code for line in LINES]
    assert sorted(codes) == sorted(set(codes))
