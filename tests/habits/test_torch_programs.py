"""Eight small programs as people write them in PyTorch run as they stand, and learn."""

from __future__ import annotations

import pytest
from tests.habits.torch_programs import PROGRAMS

import eshkol as ek


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path, interpreting):
    program, expected = PROGRAMS[name]
    assert program(ek, str(tmp_path)) == expected
