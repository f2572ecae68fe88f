"""Pictures of what was learned: images and confusion matrices, in the terminal and as pictures."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.bindings import pictures
from eshkol.errors import EshkolError

IMAGES = np.array([[[0.0, 1.0], [0.5, 0.0]], [[1.0, 1.0], [0.0, 0.0]]], np.float32)


def test_images_are_drawn_with_captions(capsys):
    pictures.draw_images(ek.tensor(IMAGES), ["a", "b"])
    assert capsys.readouterr().out == "  @@  @@@@\n==\na     b\n"


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


def test_they_are_called_from_scheme(capsys):
    ek.eval("(import (eshkol plot))")
    ek.eval("(plot-confusion (tensor (4 0) (1 3)) '(cat dog))")
    out = capsys.readouterr().out
    assert "cat" in out
    assert "7 of 8 right" in out
    assert ek.eval("(tensor-shape (images-picture (zeros '(3 8 8)) 2 4))") == [72, 72, 3]
    assert ek.eval("(tensor-shape (confusion-picture (tensor (1 0) (0 1))))") == [64, 64, 3]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: pictures.draw_images(ek.zeros((2, 2))), "count × height × width"),
        (lambda: pictures.draw_images(5), "a tensor"),
        (lambda: pictures.draw_images(ek.tensor(IMAGES), ["a"]), "2 images, 1 captions"),
        (lambda: pictures.confusion_picture(ek.zeros((2, 3))), "as many rows as columns"),
    ],
)
def test_misuse_is_told(call, why):
    with pytest.raises(EshkolError, match=why):
        call()
