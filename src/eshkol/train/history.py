"""The history of a run: the numbers of every epoch or step, kept, shown, drawn, and stored as CSV.

Comes in: rows of an epoch, a step and numbers by name, while training goes on. Goes out: lists, a table with
sparklines for the terminal, a CSV file that gives the same numbers again, a picture of the curves. What begins with
`val_` is of the validation data: `val_loss` is drawn beside `loss`.
"""

from __future__ import annotations

import csv
import io
import math
import operator
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eshkol.errors import EshkolError
from eshkol.io.files import reason, replacing, write_all

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VALIDATION = "val_"
KEYS = ("epoch", "step")  # the first columns of the CSV; no quantity has such a name
SPARKS = "▁▂▃▄▅▆▇█"
PLAIN_SPARKS = "_.-=+*%#"  # where the terminal's encoding has no blocks
NOT_FINITE = "x"
SPARK_WIDTH = 32


@dataclass(frozen=True)
class HistoryRow:
    """The numbers of one moment of a run."""

    epoch: int
    step: int
    values: Mapping[str, float]


class History:
    """Numbers of a run in the order in which they came: `history.append(epoch, step, {"loss": 0.5})`.

    `stopped` says why a run ended before its last epoch, if it did; where it was interrupted, `state` is to go on from.
    """

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.state: dict[str, Any] | None = None
        self._rows: list[HistoryRow] = []
        self._names: dict[str, None] = {}  # in the order in which they first came

    # --- what is in it ------------------------------------------------------------------------------

    def append(self, epoch: int, step: int, values: Mapping[str, Any]) -> None:
        """Add a row; its values are numbers, or tensors of one element."""
        who = "History.append"
        found: dict[str, float] = {}
        for name, value in values.items():
            if not isinstance(name, str) or not name or not name.isprintable() or name in KEYS:
                raise EshkolError(
                    f"{who}: {name!r} cannot be the name of a quantity",
                    hint="a name is a string of printable characters, not empty, and not 'epoch' or 'step'",
                )
            found[name] = _number(value, name, who)
        row = HistoryRow(_count(epoch, "epoch", who), _count(step, "step", who), found)
        self._rows.append(row)
        self._names.update(dict.fromkeys(found))

    @property
    def rows(self) -> Sequence[HistoryRow]:
        """The rows, first to last."""
        return tuple(self._rows)

    @property
    def names(self) -> list[str]:
        """The quantities that have values, in the order in which they first came."""
        return list(self._names)

    @property
    def epochs(self) -> list[int]:
        """The epochs that have rows, each once."""
        return list(dict.fromkeys(row.epoch for row in self._rows))

    def __getitem__(self, name: str) -> list[float]:
        """The values of a quantity, of the rows that have one."""
        return [row.values[name] for row in self.of(name)]

    def of(self, name: str) -> list[HistoryRow]:
        """The rows that have a value of a quantity."""
        self._check(name)
        return [row for row in self._rows if name in row.values]

    def _check(self, name: str) -> None:
        if name not in self._names:
            raise EshkolError(
                f"History: there is no quantity {name!r}",
                hint=f"there are {', '.join(self._names)}" if self._names else "nothing has been appended yet",
            )

    def best(self, name: str, *, highest: bool = False) -> HistoryRow:
        """The row with the lowest (or highest) value of a quantity, NaN left out; the first of several."""
        rows = [row for row in self.of(name) if not math.isnan(row.values[name])]
        if not rows:
            raise EshkolError(f"History.best: every value of {name!r} is NaN")
        return (max if highest else min)(rows, key=lambda row: row.values[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def __iter__(self) -> Iterator[HistoryRow]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same, bit for bit; NaN is the same as NaN."""
        return _comparable(self) == _comparable(other) if isinstance(other, History) else NotImplemented

    def __repr__(self) -> str:
        return f"<History: {len(self)} rows of {', '.join(self._names) or 'nothing'}>"

    def __str__(self) -> str:
        """The table, and why the run ended early."""
        return self.table() + (f"\n{self.stopped}" if self.stopped else "")

    # --- kept ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The rows as plain lists and dicts, for a checkpoint."""
        return {"rows": [[row.epoch, row.step, dict(row.values)] for row in self._rows]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the rows of a checkpoint in place of one's own."""
        loaded = History()
        for epoch, step, values in state["rows"]:
            loaded.append(epoch, step, values)
        self._rows, self._names = loaded._rows, loaded._names

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV: epoch, step, a column for each quantity; cells without a value are empty.

        The file is put into its place when it is whole. Numbers are written so that `from_csv` gives the same ones.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*KEYS, *self._names])
        for row in self._rows:
            cells = (repr(row.values[name]) if name in row.values else "" for name in self._names)
            writer.writerow([row.epoch, row.step, *cells])
        _write(path, text.getvalue().encode("utf-8"), "History.to_csv")

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> History:
        """The history that `to_csv` wrote."""
        who = "History.from_csv"
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise EshkolError(f"{who}: cannot read {os.fspath(path)}: {reason(error)}") from None
        except UnicodeDecodeError:
            raise EshkolError(f"{who}: {os.fspath(path)} is no text in UTF-8") from None
        try:
            lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        except csv.Error as error:
            raise EshkolError(f"{who}: {os.fspath(path)} is no CSV: {error}") from None
        head = lines[0] if lines else []
        if tuple(head[:2]) != KEYS or len(set(head)) != len(head):
            raise EshkolError(
                f"{who}: {os.fspath(path)} is not the CSV of a history: its first line is {','.join(head)!r}",
                hint="it begins with epoch,step and then has names that are all different",
            )
        history = cls()
        for number, cells in enumerate(lines[1:], start=2):
            where = f"{who}: {os.fspath(path)}, line {number}"
            if not cells:  # an empty line
                continue
            if len(cells) != len(head):
                raise EshkolError(f"{where}: {len(head)} cells are wanted, and there are {len(cells)}")
            try:
                epoch, step = int(cells[0]), int(cells[1])
                values = {name: float(cell) for name, cell in zip(head[2:], cells[2:], strict=True) if cell}
            except ValueError as error:
                raise EshkolError(f"{where}: {error}") from None
            history.append(epoch, step, values)
        history._names = {name: None for name in head[2:] if name in history._names}
        return history

    # --- seen ---------------------------------------------------------------------------------------

    def table(self, *, plain: bool = False) -> str:
        """A line for each quantity: how it went as a sparkline; its first, last, lowest and highest value."""
        lines: list[tuple[str, ...]] = [("", "", "first", "last", "lowest", "highest")]
        for name in self._names:
            values = self[name]
            known = [value for value in values if not math.isnan(value)] or [math.nan]
            line = sparkline(values, plain=plain)
            lines.append((name, line, *(f"{v:.4g}" for v in (values[0], values[-1], min(known), max(known)))))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = []
        for line_of in lines:
            left = (cell.ljust(width) for cell, width in zip(line_of[:2], widths[:2], strict=True))
            right = (cell.rjust(width) for cell, width in zip(line_of[2:], widths[2:], strict=True))
            texts.append("  ".join((*left, *right)).rstrip())
        return "\n".join(texts) if self._names else "nothing has been written down yet"

    def show(self, file: IO[str] | None = None) -> None:
        """Print the table."""
        out = sys.stdout if file is None else file
        encoding = getattr(out, "encoding", None) or "utf-8"
        plain = SPARKS.encode(encoding, "replace").decode(encoding) != SPARKS
        print(self.table(plain=plain).encode(encoding, "replace").decode(encoding), file=out)

    def plot(self, names: Sequence[str] | None = None) -> Figure:
        """The curves as a figure of matplotlib: a panel for each quantity, its validation in the same one.

        In a notebook it is shown where it is the value of a cell. Over epochs, or over steps where a quantity has
        several values in an epoch.
        """
        who = "History.plot"
        panels = self._panels(names, who)
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator

            class Curves(Figure):
                """A figure that shows itself in notebooks, also where no backend of pyplot's is at work."""

                def _repr_png_(self) -> bytes:
                    return drawn(self)

        except ImportError:
            raise EshkolError(
                f"{who}: curves are drawn by matplotlib, which is not installed",
                hint="pip install 'eshkol[bench]', or pip install matplotlib",
            ) from None
        columns = min(len(panels), 3)
        lines = -(-len(panels) // columns)
        figure = Curves(figsize=(4.8 * columns, 3.4 * lines), layout="constrained")
        for place, (title, curves) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(lines, columns, place)
            stepwise = any(len({row.epoch for row in self.of(name)}) < len(self.of(name)) for name in curves)
            for name in curves:
                rows = self.of(name)
                axes.plot(
                    [row.step if stepwise else row.epoch for row in rows],
                    [row.values[name] for row in rows],
                    label="validation" if name.startswith(VALIDATION) else "training",
                    marker="." if len(rows) < 50 else "",
                )
            axes.set_title(title)
            axes.set_xlabel("step" if stepwise else "epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.grid(alpha=0.3)
            if len(curves) > 1 or curves[0].startswith(VALIDATION):
                axes.legend()
        return figure

    def png(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        """Write the picture of the curves as a PNG file."""
        _write(path, drawn(self.plot(names)), "History.png")

    def _panels(self, names: Sequence[str] | None, who: str) -> dict[str, list[str]]:
        """What is drawn together, by title: a quantity and its validation."""
        wanted = self.names if names is None else list(names)
        panels: dict[str, list[str]] = {}
        for name in wanted:
            self._check(name)
            title = name.removeprefix(VALIDATION)
            panels[title] = [curve for curve in (title, VALIDATION + title) if curve in self]
        if not panels:
            raise EshkolError(f"{who}: there is nothing to draw", hint="append rows first")
        return panels


def drawn(figure: Figure) -> bytes:
    """A figure as a PNG file."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH, *, plain: bool = False) -> str:
    """Numbers as a line of little bars, at most `width` of them, each the mean of its share; x is NaN or infinity."""
    sparks = PLAIN_SPARKS if plain else SPARKS
    peak = max((abs(value) for value in values if math.isfinite(value)), default=0.0) or 1.0
    scaled = [value / peak if math.isfinite(value) else math.nan for value in values]  # no sum overflows
    count = min(width, len(values))
    shares = [scaled[len(values) * i // count : len(values) * (i + 1) // count] for i in range(count)]
    means = [sum(share) / len(share) for share in shares]
    finite = [mean for mean in means if not math.isnan(mean)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(sparks) - 1) / (high - low) if high > low else 0.0
    return "".join(NOT_FINITE if math.isnan(mean) else sparks[round((mean - low) * scale)] for mean in means)


def _write(path: str | os.PathLike[str], data: bytes, who: str) -> None:
    """Write a file so that a reader sees the old one or the new one."""
    with replacing(path, who) as file:
        write_all(file, data)


def _comparable(history: History) -> str:
    """All that a history holds, whatever order the quantities of a row were given in."""
    return repr([(row.epoch, row.step, sorted(row.values.items())) for row in history._rows])


def _count(value: Any, what: str, who: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise EshkolError(f"{who}: an integer is wanted as the {what}, not {value!r}") from None


def _number(value: Any, name: str, who: str) -> float:
    """A real number, or a tensor of one element, as a float."""
    if isinstance(value, (str, bytes, complex)):
        raise EshkolError(f"{who}: a number is wanted for {name!r}, not {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise EshkolError(f"{who}: a number is wanted for {name!r}: {error}") from None
