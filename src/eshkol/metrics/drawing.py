"""Confusion matrices drawn: in the terminal with shaded cells, as plain text, or as a PNG.

Comes in: a matrix of counts [C, C] (rows: what is, columns: what was predicted), or [L, 2, 2] for labels, and names of
the classes. Few classes are drawn with their counts; where those are too wide, as shades alone; where there are too
many even for that, what goes wrong most is told in words. Where there is no terminal, the same text has no colours.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from eshkol.errors import BackendUnavailable, DTypeError, ShapeError
from eshkol.metrics.inputs import Array, array_of

if TYPE_CHECKING:
    from rich.text import Text

PLAIN_WIDTH = 120  # columns, where there is no terminal to ask
MOST_DRAWN = 30  # classes; of more, a summary is easier to read
MOST_TOLD = 10  # lines of a summary
LABEL_SHOWN = 16  # characters of a class's name
SHADES, PLAIN_SHADES = " ·░▒▓█", " .:+*#"  # for output that has no other letters than ASCII
LIGHT, DARK = (247, 251, 255), (8, 48, 107)  # the colours of nothing and of everything


def draw_confusion(
    matrix: Any, labels: Sequence[str] | None = None, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Draw a confusion matrix to the terminal (standard output, or `file`), in `width` columns at most.

    >>> ek.metrics.draw_confusion([[5, 1], [0, 4]], ["cat", "dog"])
    """
    from rich.console import Console

    counts, names = _checked(matrix, labels)
    stream = sys.stdout if file is None else file
    console = Console(file=stream, highlight=False, width=width)
    columns = console.width if width is not None or console.is_terminal else PLAIN_WIDTH
    text = _labels_text(counts, names) if counts.ndim == 3 else _matrix_text(counts, names, columns)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.plain.encode(encoding)
    except UnicodeEncodeError:
        plain = text.plain.translate(dict(zip(map(ord, SHADES), PLAIN_SHADES, strict=True)))
        text.plain = plain.encode(encoding, "replace").decode(encoding)
    if console.is_terminal:
        console.print(text, no_wrap=True, overflow="ignore", crop=False, end="")
    else:
        stream.write("".join(line.rstrip() + "\n" for line in text.plain.splitlines()))


def png_confusion(matrix: Any, path: str | PathLike[str], labels: Sequence[str] | None = None) -> None:
    """Draw a confusion matrix of classes to a PNG file; needs matplotlib."""
    counts, names = _checked(matrix, labels)
    if counts.ndim == 3:
        raise ShapeError(f"the confusion matrices of {len(counts)} labels are no single picture", hint="use show()")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise BackendUnavailable(
            "a PNG of a confusion matrix needs matplotlib",
            hint="pip install 'eshkol[bench]', or pip install matplotlib",
        ) from None
    classes = len(counts)
    side = max(3.5, min((0.45 if classes <= MOST_DRAWN else 0.2) * classes + 2, 16))  # inches
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = _shares(counts)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="share of the class", shrink=0.8)
    every = max(1, -(-classes // 50))
    ticks = np.arange(0, classes, every)
    shown = [names[i] for i in ticks]
    axes.set_xticks(ticks, shown, rotation=90 if max(map(len, shown)) > 3 else 0)
    axes.set_yticks(ticks, shown)
    axes.set_xlabel("predicted")
    axes.set_ylabel("is")
    if classes <= MOST_DRAWN:
        size = max(5, min(10, 160 / classes))
        for row, column in np.ndindex(counts.shape):
            shade = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, _number(counts[row, column]), ha="center", va="center", color=shade, fontsize=size)
    figure.savefig(fspath(path), format="png", dpi=120)


# --- what is drawn ----------------------------------------------------------------------------------


def _checked(matrix: Any, labels: Sequence[str] | None) -> tuple[Array, list[str]]:
    counts = array_of("draw_confusion", "counts", matrix)
    if not (counts.ndim == 2 and counts.shape[0] == counts.shape[1]) and counts.shape[1:] != (2, 2):
        raise ShapeError(f"a confusion matrix is [C, C], or [L, 2, 2] for labels, not {list(counts.shape)}")
    if not len(counts):
        raise ShapeError("a confusion matrix has at least one class")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise DTypeError("counts of a confusion matrix are finite and not negative")
    if labels is not None and len(labels) != len(counts):
        raise ShapeError(f"{len(labels)} labels are given for a confusion matrix of {len(counts)} classes")
    names = [str(i) for i in range(len(counts))] if labels is None else [_short(str(label)) for label in labels]
    return counts, names


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LABEL_SHOWN else line[: LABEL_SHOWN - 1] + "…"


def _number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.2f}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _shares(counts: Array) -> Array:
    """Each count as a share of its row."""
    sums = counts.sum(axis=1, keepdims=True)
    result: Array = counts / np.where(sums == 0, 1, sums)
    return result


def _colour(share: float) -> str:
    """A style: the share as the shade behind, and a colour in front that can be read on it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(LIGHT, DARK, strict=True))
    return f"{'white' if share > 0.5 else 'black'} on #{red:02x}{green:02x}{blue:02x}"


def _matrix_text(counts: Array, names: list[str], columns: int) -> Text:
    classes, side = len(counts), max(len(name) for name in [*names, "recall"])
    numbers = [[_number(value) for value in row] for row in counts]
    cell = 2 + max(len(text) for row in numbers for text in row)
    heads = 2 + max(len(name) for name in names)
    right = len("  recall")
    if classes <= MOST_DRAWN:
        for size, shown in ((max(cell, heads), numbers), (max(cell, 4), numbers), (2, None)):
            if side + 1 + size * classes + right <= columns:
                return _grid(counts, names, side, size, shown)
    return _summary(counts, names)


def _grid(counts: Array, names: list[str], side: int, size: int, numbers: list[list[str]] | None) -> Text:
    """Rows of shaded cells; without numbers, of shades alone."""
    from rich.text import Text

    text, shares = Text(), _shares(counts)
    text.append(f"{'':{side}} {'predicted':^{size * len(names)}}\n", "dim")
    text.append(f"{'is':>{side}} ", "dim")
    for position, name in enumerate(names):
        head = name if size > len(name) else _head(name, position, size)
        text.append(f"{head:>{size - 1}} ", "bold")
    text.append("  recall\n", "dim")
    for row, name in enumerate(names):
        text.append(f"{name:>{side}} ", "bold")
        for column in range(len(names)):
            share = float(shares[row, column])
            if numbers is not None:
                text.append(f"{numbers[row][column]:>{size - 1}} ", _colour(share))
            else:
                text.append(SHADES[int(np.ceil(share * (len(SHADES) - 1)))] * size, _colour(share))
        text.append(f"  {_percent(counts[row, row], counts[row].sum()):>6}\n")
    right = float(np.trace(counts))
    text.append(f"{_number(right)} of {_number(counts.sum())} right, {_percent(right, counts.sum())}\n", "dim")
    return text


def _head(name: str, position: int, size: int) -> str:
    """What fits over a narrow column: a part of the name, or of the number."""
    return name[: size - 2] + "…" if size > 3 else str(position)[-1]


def _summary(counts: Array, names: list[str]) -> Text:
    """Of many classes: which are found least, and what they are taken for."""
    from rich.text import Text

    own, actual, predicted = np.diagonal(counts), counts.sum(axis=1), counts.sum(axis=0)
    text = Text()
    right = float(own.sum())
    text.append(f"{len(names)} classes, {_number(right)} of {_number(counts.sum())} right, ")
    text.append(f"{_percent(right, counts.sum())}\n", "bold")
    there = np.flatnonzero(actual)
    recall = own[there] / actual[there]
    text.append(
        f"\n{'class':>{LABEL_SHOWN}} {'examples':>9} {'recall':>7} {'precision':>9}  most often taken for\n", "dim"
    )
    for row in there[np.argsort(recall, kind="stable")][:MOST_TOLD]:
        wrong = counts[row].copy()
        wrong[row] = 0
        other = int(wrong.argmax())
        taken = f"{names[other]} ({_number(wrong[other])})" if wrong[other] else ""
        text.append(f"{names[row]:>{LABEL_SHOWN}} ", "bold")
        text.append(f"{_number(actual[row]):>9} ")
        text.append(f"{_percent(own[row], actual[row]):>7}", _colour(float(own[row] / actual[row])))
        text.append(f" {_percent(own[row], predicted[row]):>9}  {taken}\n")
    if len(there) > MOST_TOLD:
        text.append(f"{'…':>{LABEL_SHOWN}} and {len(there) - MOST_TOLD} classes with no smaller recall\n", "dim")
    return text


def _labels_text(counts: Array, names: list[str]) -> Text:
    """A line for each label."""
    from rich.text import Text

    text, side = Text(), max(len(name) for name in [*names, "label"])
    numbers = [[_number(value) for value in pair.reshape(-1)] for pair in counts]
    size = max(8, 1 + max(len(value) for row in numbers for value in row))
    heads = ("neither", "false +", "false -", "both")
    text.append(f"{'label':>{side}} " + "".join(f"{head:>{size}}" for head in heads) + "  recall\n", "dim")
    for name, row, pair in zip(names, numbers, counts, strict=True):
        text.append(f"{name:>{side}} ", "bold")
        shares = (pair / max(float(pair.sum()), 1.0)).reshape(-1)
        for value, share in zip(row, shares, strict=True):
            text.append(f"{value:>{size}}", _colour(float(share)))
        text.append(f"  {_percent(pair[1, 1], pair[1].sum()):>6}\n")
    return text
