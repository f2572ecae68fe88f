"""Confusion matrices drawn: as plain text, in a terminal, summarised, and as PNG files."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from eshkol import metrics as m
from eshkol.errors import BackendUnavailable, DTypeError, ShapeError, TensorError

TWO = """\
       predicted
    is  cat  dog   recall
   cat    5    1    83.3%
   dog    0    4   100.0%
9 of 10 right, 90.0%
"""

LABELS = """\
label  neither false + false -    both  recall
    0        0       1       0       1  100.0%
    1        1       0       0       1  100.0%
"""


@pytest.fixture(autouse=True)
def nobody_asks_for_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def drawn(matrix: object, labels: list[str] | None = None, width: int | None = None) -> str:
    file = io.StringIO()
    m.draw_confusion(matrix, labels, file=file, width=width)
    return file.getvalue()


def test_plain_text() -> None:
    assert drawn([[5, 1], [0, 4]], ["cat", "dog"]) == TWO
    assert drawn([[5, 1], [0, 4]]).splitlines()[2].split() == ["0", "5", "1", "83.3%"]
    assert "-" in drawn([[5, 1], [0, 0]]).splitlines()[3]  # nothing to find
    assert "0.25" in drawn([[0.25, 0.75], [0, 1]])


def test_labels_that_hold_together() -> None:
    metric = m.ConfusionMatrix()
    metric.update([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    file = io.StringIO()
    metric.show(file)
    assert file.getvalue() == LABELS


@pytest.mark.parametrize(("classes", "width"), [(2, 40), (10, 80), (10, 35), (30, 80), (30, 200), (2, 120), (60, 80)])
def test_every_width_is_kept_to(classes: int, width: int) -> None:
    matrix = np.random.default_rng(0).integers(0, 50, (classes, classes)) + 300 * np.eye(classes, dtype=int)
    text = drawn(matrix, [f"kind {i}" for i in range(classes)], width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert f"{np.trace(matrix)} of {matrix.sum()} right" in text


def test_narrow_ones_are_shades() -> None:
    rows = drawn(np.eye(12) * 100, width=40).splitlines()[2:-1]
    assert [row.index("██") for row in rows] == [7 + 2 * i for i in range(12)]
    assert all(row.count("█") == 2 for row in rows)


def test_many_classes_are_summarised() -> None:
    matrix = 10 * np.eye(50, dtype=int)
    matrix[7, 7], matrix[7, 3] = 2, 8
    lines = drawn(matrix).splitlines()
    assert lines[0] == "50 classes, 492 of 500 right, 98.4%"
    assert lines[3].split() == ["7", "10", "20.0%", "100.0%", "3", "(8)"]
    assert lines[-1].strip() == "… and 40 classes with no smaller recall"


def test_a_terminal_has_shades(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file = Terminal()
    metric = m.ConfusionMatrix(labels=["cat", "dog"])
    metric.update([0, 0, 1], [0, 0, 1])
    metric.show(file, width=60)
    assert "48;2;8;48;107" in file.getvalue()  # everything
    assert "48;2;247;251;255" in file.getvalue()  # nothing


def test_narrow_alphabets() -> None:
    written = io.BytesIO()
    file = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    m.draw_confusion(np.eye(12) * 100, file=file, width=40)
    m.draw_confusion(np.eye(2), ["Käfer", "Hund"], file=file)
    text = written.getvalue().decode("ascii")
    assert "##" in text
    assert "K?fer" in text


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    metric = m.ConfusionMatrix()
    metric.update([0, 1], [0, 1])
    metric.show()
    assert "2 of 2 right, 100.0%" in capsys.readouterr().out


@pytest.mark.parametrize("classes", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_png(classes: int, tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    metric = m.ConfusionMatrix(classes)
    metric.update(np.arange(classes), np.arange(classes))
    metric.png(tmp_path / "matrix.png")
    pixels = image.imread(tmp_path / "matrix.png")
    height, width, _ = pixels.shape
    assert height >= 300
    assert width > height
    dark = np.abs(pixels[..., :3] - np.array([8, 48, 107]) / 255).max(axis=-1) < 0.02
    assert dark.mean() > 0.3 / classes  # the diagonal


def test_png_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BackendUnavailable, match="needs matplotlib\nhint: pip install"):
        m.png_confusion([[1]], tmp_path / "x.png")


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(ShapeError, match=r"not \[2, 3\]"):
        drawn(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="3 labels are given for a confusion matrix of 2 classes"):
        drawn(np.zeros((2, 2)), ["a", "b", "c"])
    with pytest.raises(DTypeError, match="not negative"):
        drawn([[1, -1], [0, 0]])
    with pytest.raises(ShapeError, match="no single picture"):
        m.png_confusion(np.zeros((3, 2, 2)), tmp_path / "x.png")
    with pytest.raises(TensorError, match="confusion_matrix has seen no examples"):
        m.ConfusionMatrix().show()
    with pytest.raises(ShapeError, match="2 labels are given for 3 classes"):
        m.ConfusionMatrix(3, labels=["a", "b"])
