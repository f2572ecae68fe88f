"""Pictures: tensors as PNG files, without any library of pictures, and what there is to know of the terminal.

Comes in: tensors of height × width × 3 (red, green, blue) or of height × width (grey), floats from 0 to 1 or uint8.
Goes out: the bytes of a PNG. What was learned becomes such pictures, too: images with captions, confusion matrices,
titles (`lettering.py` has the letters). `lib/eshkol/plot.esk` calls these.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import numpy as np

from eshkol.bindings.lettering import ABOVE, HEIGHT, WIDTH, dots_of
from eshkol.bindings.rows import shown
from eshkol.errors import DTypeError, ShapeError
from eshkol.tensors.png import encode
from eshkol.tensors.value import Tensor

MARGIN = 16  # pixels around pictures and between them


def png(*pictures: Any) -> bytes:
    """The bytes of a PNG; several pictures stand side by side on white."""
    if not pictures:
        raise ShapeError("at least one picture is wanted")
    found = [samples(picture, position) for position, picture in enumerate(pictures, start=1)]
    return encode(found[0] if len(found) == 1 else side_by_side(found))


def samples(picture: Any, position: int) -> np.ndarray:
    """The samples of a picture: height × width × 3 bytes."""
    if not isinstance(picture, Tensor):
        raise DTypeError(f"a picture, which is a tensor, is wanted as argument {position}, not {shown(picture)}")
    array = picture.detach().numpy()
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or 0 in array.shape:
        raise ShapeError(f"a picture is height × width × 3, or height × width, not {list(array.shape)}")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise DTypeError("a picture must be of finite numbers from 0 to 1")
        array = np.rint(np.clip(array, 0, 1) * 255.0).astype(np.uint8)
    if array.dtype != np.uint8:
        raise DTypeError(f"a picture is of floats from 0 to 1 or of uint8, not of {picture.dtype}")
    return array if array.ndim == 3 else np.repeat(array[:, :, None], 3, axis=2)


def side_by_side(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures from left to right on white, each in the middle of the height."""
    height = max(len(picture) for picture in pictures)
    width = sum(picture.shape[1] + MARGIN for picture in pictures) + MARGIN
    sheet = np.full((height + 2 * MARGIN, width, 3), 255, np.uint8)
    left = MARGIN
    for picture in pictures:
        top = MARGIN + (height - len(picture)) // 2
        sheet[top : top + len(picture), left : left + picture.shape[1]] = picture
        left += picture.shape[1] + MARGIN
    return sheet


def columns() -> int | bool:
    """How wide the terminal is that standard output goes to; False where it goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    return shutil.get_terminal_size().columns


def has_colours() -> bool:
    """Whether standard output is a terminal that shows colours, and no one has asked for none (no-color.org)."""
    return columns() is not False and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ---- pictures of what was learned ------------------------------------------------------------------------------------


def draw_confusion(matrix: Any, labels: Any = None) -> None:
    """Draw a confusion matrix to the terminal."""
    from eshkol import metrics

    names = [str(x) for x in labels] if isinstance(labels, list) else None
    metrics.draw_confusion(matrix, names)
    sys.stdout.flush()


def _greys(images: Any) -> Any:
    """Images as count × height × width numbers from 0 to 1."""
    if not isinstance(images, Tensor):
        raise DTypeError(f"images, which are a tensor, are wanted as argument 1, not {shown(images)}")
    array = images.detach().numpy().astype(np.float64)
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3 or 0 in array.shape:
        raise ShapeError(f"images are count × height × width (or count × 1 × height × width), not {list(array.shape)}")
    return np.clip(array, 0, 1)


def _words_and_marks(array: Any, captions: Any, marks: Any) -> tuple[list[str], list[bool]]:
    """A caption for each image, and whether it is marked."""
    words = [str(x) for x in captions] if isinstance(captions, list) else [""] * len(array)
    wrong = [x is not False for x in marks] if isinstance(marks, list) else [False] * len(array)
    if not len(words) == len(wrong) == len(array):
        raise ShapeError(f"{len(array)} images, {len(words)} captions and {len(wrong)} marks")
    return words, wrong


SHADES = " .:-=+*#%@"


def draw_images(images: Any, captions: Any = None, marks: Any = None) -> None:
    """Draw images side by side, as many in a row as fit, with a caption below each; marked ones in red."""
    array = _greys(images)
    words, wrong = _words_and_marks(array, captions, marks)
    colours, wide = has_colours(), columns()
    height, width = array.shape[1:]
    cell = max(width if colours else 2 * width, max(map(len, words))) + 2
    per_row = max(1, min(len(array), ((wide or 80) + 2) // cell))
    for start in range(0, len(array), per_row):
        part = range(start, min(start + per_row, len(array)))
        if colours:
            lines = ["  ".join(coloured(array[k], line) + " " * (cell - 2 - width) for k in part)
                     for line in range(0, height, 2)]  # fmt: skip
        else:
            lines = ["  ".join(plain_row(array[k, line]).ljust(cell - 2) for k in part) for line in range(height)]
        below = []
        for k in part:
            text = words[k].ljust(cell - 2)
            below.append(f"\x1b[31m{text}\x1b[0m" if colours and wrong[k] else text)
        _write("\n".join(line.rstrip() if not colours else line for line in lines) + "\n")
        if any(words):
            _write("  ".join(below).rstrip() + "\n")
    sys.stdout.flush()


def _write(text: str) -> None:
    """Write to standard output; a letter that its encoding does not have becomes a question mark."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def plain_row(row: Any) -> str:
    """A row of pixels as letters, two for each."""
    return "".join(SHADES[round(value * (len(SHADES) - 1))] * 2 for value in row)


def coloured(image: Any, line: int) -> str:
    """Two rows of pixels as one line: the upper half of each character, and its background."""
    upper, lower = image[line], image[line + 1] if line + 1 < len(image) else np.zeros(image.shape[1])
    grey = [(round(255 * a), round(255 * b)) for a, b in zip(upper, lower, strict=True)]
    return "".join(f"\x1b[38;2;{a};{a};{a}m\x1b[48;2;{b};{b};{b}m▀" for a, b in grey) + "\x1b[0m"


def images_picture(
    images: Any, columns: Any = 8, scale: Any = 8, marks: Any = None, captions: Any = None
) -> np.ndarray:
    """Images in rows of so many, each pixel so many pixels wide, as one picture; marked ones have a red frame.

    Captions stand below, as much of each as there is room for; those of marked images are red.
    """
    array = _greys(images)
    words, wrong = _words_and_marks(array, captions, marks)
    large = np.kron(array, np.ones((1, scale, scale)))
    frame, width = large.shape[1] + 4, large.shape[2] + 4
    height = frame + (LINE if any(words) else 0)
    rows = -(-len(array) // columns)
    sheet = np.ones((rows * height, columns * width, 3), np.float32)
    for k, (image, word, mark) in enumerate(zip(large, words, wrong, strict=True)):
        top, left = k // columns * height, k % columns * width
        if mark:
            sheet[top : top + frame, left : left + width] = RED
        sheet[top + 2 : top + frame - 2, left + 2 : left + width - 2] = image[:, :, None]
        _letter(sheet, _fitting(word, width), left + width // 2, top + frame + 2, RED if mark else INK, middle=True)
    return sheet


def confusion_picture(matrix: Any, scale: Any = 32, labels: Any = None) -> np.ndarray:
    """A confusion matrix as a picture, with counts where cells have room; the darker, the greater the share of its row.

    With labels of the classes, these stand before the rows and above the columns.
    """
    counts = np.asarray(matrix.detach().numpy() if isinstance(matrix, Tensor) else matrix, np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ShapeError(f"a confusion matrix has as many rows as columns, not {list(counts.shape)}")
    names = [str(x) for x in labels] if isinstance(labels, list) else []
    if names and len(names) != len(counts):
        raise ShapeError(f"a confusion matrix of {len(counts)} classes, and {len(names)} labels")
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    light, dark = np.array([0.97, 0.985, 1.0]), np.array([0.03, 0.19, 0.42])
    cells = light + np.sqrt(share)[:, :, None] * (dark - light)
    large = np.kron(cells, np.ones((scale, scale, 1))).astype(np.float32)
    large[::scale], large[:, ::scale] = 0.8, 0.8
    numbers = [[f"{count:g}" if count else "" for count in row] for row in counts]
    middle, up = scale // 2, (scale - DOT * ABOVE) // 2
    if scale >= LINE and all(_fitting(word, scale) == word for row in numbers for word in row):
        for (row, column), part in np.ndenumerate(share):
            ink = (1.0, 1.0, 1.0) if part > 0.2 else INK
            _letter(large, numbers[row][column], column * scale + middle, row * scale + up, ink, middle=True)
    if not names:
        return large
    left = max(dots_of(name).shape[1] for name in names) * DOT + 6
    sheet = np.ones((len(large) + LINE, len(large) + left, 3), np.float32)
    sheet[LINE:, left:] = large
    for k, name in enumerate(names):
        _letter(sheet, name, 0, LINE + k * scale + up, INK)
        _letter(sheet, _fitting(name, scale), left + k * scale + middle, 0, INK, middle=True)
    return sheet


# ---- text on pictures ------------------------------------------------------------------------------------------------

DOT = 2  # pixels of a dot of a letter
LINE = DOT * HEIGHT + 2  # pixels that a line of text is high
INK, RED = (0.25, 0.25, 0.25), (0.85, 0.1, 0.1)


def text_on_picture(picture: Any, text: Any, left: Any, top: Any, colour: Any = None) -> np.ndarray:
    """A picture with a line of text on it, which begins at the pixel named; what does not fit is cut off."""
    sheet = samples(picture, 1).astype(np.float32) / 255
    _letter(sheet, str(text), left, top, INK if colour in (None, False) else colour)
    return sheet


def titled_picture(title: Any, picture: Any) -> np.ndarray:
    """A picture with a title above it, as much of it as there is room for."""
    below = samples(picture, 2).astype(np.float32) / 255
    sheet = np.ones((len(below) + LINE + 4, below.shape[1], 3), np.float32)
    sheet[LINE + 4 :] = below
    _letter(sheet, _fitting(str(title), sheet.shape[1]), 0, 0, INK)
    return sheet


def _fitting(text: str, width: int) -> str:
    """As many letters of a text as so many pixels have room for."""
    return text[: (width // DOT + 1) // (WIDTH + 1)]


def _letter(sheet: np.ndarray, text: str, left: int, top: int, colour: Any, *, middle: bool = False) -> None:
    """Write on a sheet, to the right of `left`, or around it; what is outside of it is left out."""
    dots = np.kron(dots_of(text), np.ones((DOT, DOT), np.bool_))
    rows, columns = np.nonzero(dots)
    rows, columns = rows + top, columns + (left - dots.shape[1] // 2 if middle else left)
    inside = (rows >= 0) & (rows < sheet.shape[0]) & (columns >= 0) & (columns < sheet.shape[1])
    sheet[rows[inside], columns[inside]] = colour
