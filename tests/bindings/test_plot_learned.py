"""Pictures of what was learned: images and confusion matrices, in the terminal and as pictures."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import eshkol as ek
from eshkol.bindings import pictures
from eshkol.bindings.lettering import GLYPHS, HEIGHT, WIDTH, dots_of
from eshkol.errors import EshkolError

IMAGES = np.array([[[0.0, 1.0], [0.5, 0.0]], [[1.0, 1.0], [0.0, 0.0]]], np.float32)


def test_images_are_drawn_with_captions(capsys):
    pictures.draw_images(ek.tensor(IMAGES), ["a", "b"])
    assert capsys.readouterr().out == "  @@  @@@@\n==\na     b\n"


def test_captions_are_written_in_any_encoding(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    pictures.draw_images(ek.tensor(IMAGES), ["3→9", "b"])
    assert out.buffer.getvalue().endswith(b"3?9   b\n")


def test_images_fill_rows(capsys, monkeypatch):
    monkeypatch.setattr(pictures, "columns", lambda: 10)
    monkeypatch.setattr(pictures, "has_colours", lambda: False)
    pictures.draw_images(ek.tensor(np.ones((3, 1, 1, 3), np.float32)))
    assert capsys.readouterr().out == "@@@@@@\n@@@@@@\n@@@@@@\n"


def test_colours_draw_two_rows_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr(pictures, "columns", lambda: 80)
    monkeypatch.setattr(pictures, "has_colours", lambda: True)
    pictures.draw_images(ek.tensor(IMAGES), ["a", "b"], [True, False])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "\x1b[38;2;255;255;255m\x1b[48;2;0;0;0m▀" in lines[0]
    assert "\x1b[31ma" in lines[1]


def test_images_as_one_picture():
    sheet = pictures.images_picture(ek.tensor(IMAGES), 2, 3, [False, True])
    assert sheet.shape == (10, 20, 3)
    assert sheet[2:8, 2:8, 0].tolist() == np.kron(IMAGES[0], np.ones((3, 3))).tolist()
    assert sheet[0, 0].tolist() == [1.0, 1.0, 1.0]
    assert sheet[0, 10, 0] > sheet[0, 10, 1]  # red


def test_a_confusion_matrix_as_a_picture():
    picture = pictures.confusion_picture(ek.tensor([[4, 0], [1, 3]]), 4)
    assert picture.shape == (8, 8, 3)
    dark, light, between = picture[2, 2, 0], picture[2, 6, 0], picture[6, 2, 0]
    assert dark < between < light


def written(sheet, colour):
    """The dots of the letters that are written in a colour, without the ground around them."""
    there = np.isclose(sheet, np.float32(colour)).all(axis=2)
    rows, columns = there.any(axis=1).nonzero()[0], there.any(axis=0).nonzero()[0]
    return there[rows[0] : rows[-1] + 1 : pictures.DOT, columns[0] : columns[-1] + 1 : pictures.DOT]


def drawn(text):
    dots = dots_of(text)
    return dots[: dots.any(axis=1).nonzero()[0][-1] + 1].tolist()


def test_letters_have_nine_rows_and_differ():
    assert {dots.shape for dots in GLYPHS.values()} == {(HEIGHT, WIDTH)}
    assert len({dots.tobytes() for dots in GLYPHS.values()}) == len(GLYPHS)
    assert drawn("F7") == [
        [mark == "#" for mark in row]
        for row in (
            "#####.#####",
            "#.........#",
            "#........#.",
            "####....#..",
            "#.......#..",
            "#.......#..",
            "#.......#..",
        )
    ]
    assert dots_of("\N{SNOWMAN}")[:7, 0].all()  # a frame
    assert dots_of("").shape == (HEIGHT, 0)


def test_captions_stand_below_images():
    sheet = pictures.images_picture(ek.tensor(IMAGES), 2, 20, [False, True], ["ABC", "Ax"])
    assert sheet.shape == (44 + pictures.LINE, 88, 3)
    assert written(sheet[44:, :44], pictures.INK).tolist() == drawn("ABC")
    assert written(sheet[44:, 44:], pictures.RED).tolist() == drawn("Ax")
    narrow = pictures.images_picture(ek.tensor(IMAGES), 2, 5, None, ["ABC", "x"])
    assert written(narrow[14:, :14], pictures.INK).tolist() == drawn("A")  # what there is room for


def test_counts_and_names_stand_on_a_confusion_matrix():
    sheet = pictures.confusion_picture(ek.tensor([[7, 0], [1, 30]]), 40, ["A", "B"])
    left = pictures.DOT * WIDTH + 6
    assert sheet.shape == (80 + pictures.LINE, 80 + left, 3)
    assert written(sheet[:20, left : left + 40], pictures.INK).tolist() == drawn("A")
    assert written(sheet[60:, :left], pictures.INK).tolist() == drawn("B")
    assert written(sheet[22:58, left + 2 : left + 38], (1, 1, 1)).tolist() == drawn("7")
    assert written(sheet[62:98, left + 42 :], (1, 1, 1)).tolist() == drawn("30")
    one = written(sheet[62:98, left + 2 : left + 38], pictures.INK).tolist()
    assert one == [row[1:4] for row in drawn("1")]


def test_a_title_stands_above_a_picture():
    sheet = pictures.titled_picture("LOSS", ek.zeros((10, 60, 3)))
    assert sheet.shape == (10 + pictures.LINE + 4, 60, 3)
    assert written(sheet[: pictures.LINE], pictures.INK).tolist() == drawn("LOSS")
    assert (sheet[-10:] == 0).all()


def test_text_that_does_not_fit_is_cut_off():
    sheet = pictures.text_on_picture(ek.ones((20, 20, 3)), "AAAA", 0, 0, [1.0, 0.0, 0.0])
    assert written(sheet, (1, 0, 0)).tolist() == [row[:10] for row in drawn("AAAA")]
    assert (pictures.text_on_picture(ek.ones((4, 4)), "A", 9, -20) == 1).all()


def test_several_curves_are_drawn_on_one_scale():
    ek.eval("(import (eshkol plot))")
    picture = ek.eval('(curve-picture \'(("A" 4 4) ("B" 1 1) ("C" 0 0)) 100 101)').numpy()
    blue, orange, green = ((0.25, 0.45, 0.80), (0.90, 0.45, 0.10), (0.20, 0.60, 0.30))
    for colour, row in ((blue, 0), (orange, 75), (green, 100)):
        assert np.isclose(picture[row, 20:60], np.float32(colour), atol=1 / 255).all()


def test_they_are_called_from_scheme(capsys):
    ek.eval("(import (eshkol plot))")
    ek.eval("(plot-confusion (tensor (4 0) (1 3)) '(cat dog))")
    out = capsys.readouterr().out
    assert "cat" in out
    assert "7 of 8 right" in out
    assert ek.eval("(tensor-shape (images-picture (zeros '(3 8 8)) 2 4))") == [72, 72, 3]
    assert ek.eval("(tensor-shape (confusion-picture (tensor (1 0) (0 1))))") == [64, 64, 3]
    assert ek.eval("(tensor-shape (titled-picture 'two (zeros '(3 8))))") == [3 + pictures.LINE + 4, 8, 3]
    assert ek.eval("(tensor-shape (text-on-picture (zeros '(3 8)) \"a\" 0 0 '(1 0 0)))") == [3, 8, 3]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: pictures.draw_images(ek.zeros((2, 2))), "count × height × width"),
        (lambda: pictures.draw_images(5), "a tensor"),
        (lambda: pictures.draw_images(ek.tensor(IMAGES), ["a"]), "2 images, 1 captions"),
        (lambda: pictures.confusion_picture(ek.zeros((2, 3))), "as many rows as columns"),
        (lambda: pictures.confusion_picture(ek.zeros((2, 2)), 8, ["a"]), "2 classes, and 1 labels"),
        (lambda: pictures.images_picture(ek.tensor(IMAGES), 2, 2, [True]), "2 images, 2 captions and 1 marks"),
    ],
)
def test_misuse_is_told(call, why):
    with pytest.raises(EshkolError, match=why):
        call()
