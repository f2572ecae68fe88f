"""Sixty mistakes: each answer has the user's line, a caret under it and a remedy, and no frame of Eshkol's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import eshkol
from eshkol.bindings import install
from eshkol.errors import EshkolError
from eshkol.session import SessionThread
from habits.mistakes import PYTHON, SCHEME, Mistake

PACKAGE = str(Path(eshkol.__file__).parent)

install()


@pytest.fixture(autouse=True)
def _in_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def thread() -> Iterator[SessionThread]:
    opened = SessionThread()
    yield opened
    opened.close()


def check(mistake: Mistake, told: str, file: str) -> None:
    """What was told has everything that it must have."""
    lines = told.splitlines()
    shown = mistake.program.splitlines()[mistake.line - 1].strip()
    below = [lines[k + 1].strip() for k, line in enumerate(lines[:-1]) if line.endswith(shown)]
    assert below, f"the line is not shown:\n{told}"
    assert any("^" in line and not line.strip("^~") for line in below), f"there is no caret:\n{told}"
    assert f"{file}:{mistake.line}" in told or f'{file}", line {mistake.line}' in told, told
    assert mistake.said in told
    assert mistake.remedy in told, f"there is no remedy:\n{told}"


@pytest.mark.parametrize("number", range(len(SCHEME)))
def test_a_mistake_in_scheme(number: int, thread: SessionThread) -> None:
    mistake = SCHEME[number]
    with pytest.raises(EshkolError) as found:
        thread.call(lambda session: session.run_text(mistake.program, f"mistake{number}.esk"))
    told = str(found.value)
    check(mistake, told, f"mistake{number}.esk")
    of_the_library = [line for line in told.splitlines() if line.startswith("  in (eshkol")]
    assert len(of_the_library) <= 1, f"calls within the library are shown:\n{told}"


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_mistake_in_python(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mistake = PYTHON[number]
    file = tmp_path / "mistake.py"
    file.write_text(mistake.program + "\n", encoding="utf-8")
    with pytest.raises(Exception) as found:  # noqa: PT011
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), {"ek": eshkol, "__name__": "__main__"})
    error = found.value
    eshkol._uncaught(type(error), error, error.__traceback__.tb_next)  # type: ignore[union-attr]
    told = capsys.readouterr().err
    check(mistake, told, str(file))
    if isinstance(error, EshkolError):
        assert PACKAGE not in told, f"frames of the package are shown:\n{told}"


def test_a_defect_is_shown_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Other errors keep their frames, and with ESHKOL_DEBUG=1 all do."""
    monkeypatch.setenv("ESHKOL_DEBUG", "1")
    with pytest.raises(EshkolError) as found:
        eshkol.ones((2, 2)) + eshkol.ones(3)
    eshkol._uncaught(found.type, found.value, found.value.__traceback__)
    assert PACKAGE in capsys.readouterr().err


def test_python_asks_us_for_errors_that_no_one_caught() -> None:
    """Where no one else has said how they are shown, as in a fresh interpreter."""
    import subprocess

    code = "import sys, eshkol; print(sys.excepthook is eshkol._uncaught)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    code = "import sys; sys.excepthook = print; import eshkol; sys.stdout.write(str(sys.excepthook is print))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True"
