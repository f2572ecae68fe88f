"""PyTorch itself agrees with the lines of habits and gives the same for the eight programs."""

from __future__ import annotations

import warnings

import pytest
from tests.habits.torch_learning_lines import SECTIONS as LEARNING
from tests.habits.torch_lines import SECTIONS, habits
from tests.habits.torch_programs import PROGRAMS
from tests.habits.world import check, world

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("section", {**SECTIONS, **LEARNING})
def test_pytorch_agrees_with_the_lines_of(section, tmp_path):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in habits(SECTIONS | LEARNING):
            if line.section == section and line.same:
                try:
                    check(line, world(torch, str(tmp_path), line), told=False)
                except Exception as error:
                    wrong.append(f"{line.code}\n    {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", PROGRAMS)
def test_pytorch_runs_the_program(name, tmp_path):
    program, expected = PROGRAMS[name]
    assert program(torch, str(tmp_path)) == expected


def test_pytorch_reads_what_is_saved_for_it(tmp_path):
    import eshkol as ek

    path = str(tmp_path / "a.pt")
    ek.save({"w": ek.ones(2, 3), "h": ek.ones(2).half(), "n": [1, 2.5, None, True, "x", 1 << 40], "t": ()}, path)
    found = torch.load(path, weights_only=True)
    assert found["w"].tolist() == [[1, 1, 1]] * 2
    assert found["h"].dtype == torch.float16
    assert found["n"] == [1, 2.5, None, True, "x", 1 << 40]
    assert found["t"] == ()
