"""Plots: PNG files read back, curves and fields in the terminal, and the example of spirals."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol.bindings import pictures
from eshkol.bindings.lettering import dots_of
from eshkol.errors import DTypeError, EshkolError, ShapeError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "spirals.esk"


def decoded(data: bytes) -> np.ndarray:
    """The samples of a PNG as this library writes them."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + body),)
        parts[kind], at = body, at + 12 + length
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert (rows[:, 0] == 2).all()  # each is the difference to the one above
    return np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 3)


def test_a_png_has_the_samples_of_its_picture() -> None:
    samples = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (decoded(pictures.png(ek.tensor(samples))) == samples).all()
    floats = ek.tensor(np.array([[-1.0, 0.0, 0.5, 1.0, 2.0]], np.float32))
    assert decoded(pictures.png(floats)).tolist() == [[[k] * 3 for k in (0, 0, 128, 255, 255)]]


def test_pictures_stand_side_by_side_on_white() -> None:
    black, grey = np.zeros((4, 2, 3), np.uint8), np.full((2, 3, 3), 9, np.uint8)
    sheet, m = decoded(pictures.png(ek.tensor(black), ek.tensor(grey))), pictures.MARGIN
    assert sheet.shape == (4 + 2 * m, 2 + 3 + 3 * m, 3)
    assert (sheet[m : m + 4, m : m + 2] == 0).all()
    assert (sheet[m + 1 : m + 3, 2 * m + 2 : 2 * m + 5] == 9).all()
    assert (sheet == 255).sum() == sheet.size - black.size - grey.size


def test_a_png_is_what_others_read(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    samples = np.random.default_rng(1).integers(0, 256, (6, 4, 3), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(pictures.png(ek.tensor(samples)))
    assert (np.rint(image.imread(tmp_path / "a.png")[:, :, :3] * 255) == samples).all()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((), ShapeError, "at least one picture"),
        (("text",), DTypeError, "a picture, which is a tensor"),
        ((ek.zeros((2, 2, 4)),), ShapeError, "height × width × 3"),
        ((ek.zeros((0, 2)),), ShapeError, "height × width × 3"),
        ((ek.tensor([[1, 2]]),), DTypeError, "floats from 0 to 1 or of uint8, not of int64"),
        ((ek.tensor([[float("nan")]]),), DTypeError, "finite"),
    ],
)
def test_what_is_no_picture_is_refused(given: tuple[object, ...], error: type[EshkolError], message: str) -> None:
    with pytest.raises(error, match=message):
        pictures.png(*given)


PLOTS = """
(import (eshkol) (eshkol plot))
(define (ring p) (- (tensor-sum (square p) :axis 1) 0.5))
(define points (tensor (0.1 0.2) (0.9 0.9)))
(define sides (tensor -1.0 1.0))
(plot-field ring points sides 12)
(plot-curve '(1 3 2) 8 2)
(plot-curve '(1.0 1e-6) 8 2)
(plot-curve '(5 5 5) 4 1)
(save-png (cadr (command-line)) (field-picture ring points sides 40) (curve-picture '(1.0 1.0 1.0 0.001) 60 100))
"""

# Of the square from -0.972 to 0.972, each cell 0.162 wide and 0.324 high.
FIELD = """\
           x
   ······
  ····o···
  ········
   ······

"""

CURVES = """\
      3.0 ┤⠀⠀⡠⠊⠑⠢⢄⡀
      1.0 ┤⡠⠊⠀⠀⠀⠀⠀⠈
      1.0 ┤⠉⠒⠤⣀⠀⠀⠀⠀
   1.0e-6 ┤⠀⠀⠀⠀⠉⠒⠤⣀
      5.0 ┤⠤⠤⠤⠤
"""


def command(program: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "eshkol", "run", str(program), *arguments]


def run(program: Path, *arguments: str) -> str:
    """What a program writes into a pipe."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command(program, *arguments), env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def run_in_terminal(program: Path, *arguments: str) -> str:
    """What a program writes to a terminal, but for what it is told there while a library is compiled."""
    terminal = {"TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": ""}
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **terminal}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command(program, *arguments), env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = bytearray()
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how Linux says that nobody has the other end any more
                break
            if not part:
                break
            written += part
        os.close(ours)
    assert process.returncode == 0, written.decode()
    return re.sub(r"\rcompiling the library .*?\r\x1b\[K", "", written.decode()).replace("\r\n", "\n")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "plots.esk").write_text(PLOTS, encoding="utf-8")
    return tmp_path / "plots.esk"


def test_plots_as_plain_text_and_as_a_picture(program: Path, tmp_path: Path) -> None:
    lines = run(program, str(tmp_path / "p.png")).splitlines()
    assert [line.rstrip() for line in lines] == f"{FIELD}{CURVES}".splitlines()
    sheet = decoded((tmp_path / "p.png").read_bytes())
    m = pictures.MARGIN
    assert sheet.shape == (100 + 2 * m, 40 + 60 + 3 * m, 3)
    field, curve = sheet[m + 30 : m + 70, m : m + 40], sheet[m : m + 100, 2 * m + 40 : 2 * m + 100]
    assert field[20, 20, 2] > field[20, 20, 0]  # blue below 0
    assert field[1, 1, 0] > field[1, 1, 2]  # orange above
    assert [y for y in range(100) if (curve[y, 39] == 204).all()] == [33, 66, 99]  # 0.1, 0.01 and 0.001
    assert curve[0, 39].tolist() == curve[99, 59].tolist() == [64, 115, 204]  # the curve, which begins at 1
    label = (curve[16:30, 4:38] == 115).all(2)[::2, ::2]  # two pixels each way are a dot
    assert (label == dots_of("0.1")[:7]).all()


def test_plots_in_a_terminal_have_colours(program: Path, tmp_path: Path) -> None:
    lines = run_in_terminal(program, str(tmp_path / "p.png")).splitlines()
    cells = [re.findall(r"\x1b\[38;2;(\d+);(\d+);(\d+)m\x1b\[48;2;(\d+);(\d+);(\d+)m▀", line) for line in lines[:6]]
    assert [len(row) for row in cells] == [12] * 6
    assert all(line.endswith("\x1b[0m") for line in lines[:6])
    colours = np.array(cells, int).reshape(6, 12, 2, 3).transpose(0, 2, 1, 3).reshape(12, 12, 3)
    assert colours[0, 11].tolist() == [128, 46, 5]  # the mark of a point above 0
    assert colours[4, 6].tolist() == [13, 31, 102]  # and of one below
    assert colours[6, 6][2] > colours[6, 6][0]
    assert colours[0, 0][2] < colours[0, 0][0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_there_are_no_colours_where_nobody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "93")
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "xterm")
    assert (pictures.columns(), pictures.has_colours()) == (93, True)
    monkeypatch.setenv("TERM", "dumb")
    assert (pictures.columns(), pictures.has_colours()) == (93, False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert (pictures.columns(), pictures.has_colours()) == (93, False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert (pictures.columns(), pictures.has_colours()) == (False, False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("(plot-curve '())", "a list of finite numbers"),
        ("(plot-curve (list 1.0 (/ 0.0 0.0)))", "a list of finite numbers"),
        ("(curve-picture #(1 2) 4 4)", "curve-picture: a list of finite numbers"),
        ("(save-png 'file (zeros 2 2))", "save-png: the name of the file must be a string"),
        ("(png (zeros 2))", "height × width"),
    ],
)
def test_what_cannot_be_plotted_is_refused(call: str, message: str) -> None:
    ek.eval("(import (eshkol plot))")
    with pytest.raises(EshkolError, match=message):
        ek.eval(call)


# ---- examples/spirals.esk --------------------------------------------------------------------------------------------


@pytest.mark.slow  # in `make test` it runs for a moment, as every example does
def test_spirals_are_learned_in_a_terminal(tmp_path: Path) -> None:
    written = run_in_terminal(EXAMPLE, "160", str(tmp_path / "s.png"))
    progress, _, rest = written.partition("\n")
    steps = re.findall(r"\rstep (\d+)/160  loss ([\d.]+)", progress)
    assert [int(step) for step, _ in steps] == list(range(10, 161, 10))
    assert float(steps[-1][1]) < 0.1
    assert len(re.findall("▀", rest)) == 72 * 36
    right = re.search(r"(\d+) of 400 points are on their side", rest)
    assert right is not None
    assert int(right[1]) >= 396
    assert decoded((tmp_path / "s.png").read_bytes()).shape == (512, 480 + 640 + 48, 3)


@pytest.mark.slow
def test_spirals_are_the_same_every_time(tmp_path: Path) -> None:
    first, second = (run(EXAMPLE, "600", str(tmp_path / "s.png")) for _ in range(2))
    assert first == second
    assert re.findall(r"step (\d+)/600", first) == ["100", "200", "300", "400", "500", "600"]
    assert "400 of 400 points" in first
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 95
