"""CSV files: headers, quotes, types that are given or found, missing values; whole, or row by row.

A cell is missing when it is one of `MISSING` (or what `missing=` says). Types are found from all cells of a column:
bool (true, false), int64, float64, else text; in a stream from its first rows. What does not fit is an error with file
and line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.draws import Pass
from eshkol.data.streams import IterableDataset
from eshkol.data.tables import Examples, Table
from eshkol.errors import DataError

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
ON_MISSING = ("nan", "error", "skip")
BOOLS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}
LOOKED_AT = 1000  # rows by which a stream finds its types
LONGEST = 1 << 20  # characters of a cell
_OTHER = "give encoding='latin-1', or whatever it is; on_error='skip' leaves such rows out"


@dataclass(frozen=True)
class ColumnKind:
    """A type of columns: how a cell is read, and what stands for a missing one."""

    name: str
    dtype: Any
    read: Any
    absent: Any = None  # None: a column with missing cells is of another type


def _bool(text: str) -> bool:
    return BOOLS[text]


def _int(text: str) -> int:
    number = int(text)
    if "_" in text or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


KINDS = {
    kind.name: kind
    for kind in (
        ColumnKind("bool", np.bool_, _bool),
        ColumnKind("int64", np.int64, _int),
        ColumnKind("float64", np.float64, _float, float("nan")),
        ColumnKind("text", object, str, ""),
    )
}
_NAMES = {"int": "int64", "float": "float64", "str": "text", "object": "text", "float32": "float64", "int32": "int64"}


def kind_of(given: Any, who: str) -> ColumnKind:
    """The type that a user's word or type stands for."""
    name = given if isinstance(given, str) else getattr(given, "__name__", str(given))
    return KINDS[files.chosen(who, "dtype", _NAMES.get(name, name), KINDS)]


def _undecoded(text: str) -> int | None:
    """The first byte of a text that was no character in the encoding of the file."""
    if text.isascii():
        return None
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return ord(text[error.start]) & 0xFF
    return None


def _fits(kind: ColumnKind, text: str) -> bool:
    try:
        kind.read(text)
    except (ValueError, KeyError):
        return False
    return True


@dataclass(kw_only=True)
class Form:
    """How a CSV file is to be read, and what was met in one reading of it."""

    path: Any
    header: Any
    dtypes: Mapping[str, Any] | None
    columns: Sequence[str] | None
    delimiter: str
    missing: Iterable[str]
    on_missing: str
    fill: Mapping[str, Any] | None
    encoding: str
    on_error: str
    names: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.path, self.missing = files.existing(self.path, "load_csv"), frozenset(self.missing)
        files.chosen("load_csv", "on_missing", self.on_missing, ON_MISSING)
        self.skips = files.Skips("load_csv", self.on_error)

    def fresh(self) -> Form:
        """The same for another reading."""
        return replace(self)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The cells of each row with the line it begins on; the header gives `names`, before the first row."""
        try:
            yield from self._rows()
        except files.Damaged as error:
            self.skips.leave_out(error)  # the rows before the damage are whole

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        with (
            files.opened(self.path) as raw,
            io.TextIOWrapper(raw, self.encoding, "surrogateescape", newline="") as text,
        ):
            reader = csv.reader(files.lines(text, self.path), delimiter=self.delimiter, strict=True)
            line, first = 1, True
            while True:
                line = reader.line_num + 1
                try:
                    csv.field_size_limit(LONGEST)
                    cells = next(reader)
                except StopIteration:
                    break
                except UnicodeError as error:
                    raise DataError(f"{self.path}, line {line}: no {self.encoding}: {error}", hint=_OTHER) from None
                except csv.Error as error:
                    self.skips.met(f"{self.path}, line {line}", str(error))
                    continue
                if not cells:
                    continue  # an empty line
                strange = _undecoded("".join(cells))
                if strange is not None:
                    self.skips.met(f"{self.path}, line {line}", f"no {self.encoding}: byte {strange:#04x}", _OTHER)
                    continue
                if first:
                    first = False
                    if self._begin(cells):
                        continue
                if len(cells) != len(self.names):
                    self.skips.met(
                        f"{self.path}, line {line}", f"{len(cells)} cells, and there are {len(self.names)} columns"
                    )
                    continue
                yield line, cells
            if first:
                raise DataError(f"{self.path}: the file is empty")

    def _begin(self, cells: list[str]) -> bool:
        """Learn the names of columns; whether the first row was the header."""
        if self.header is True:
            cells[0] = cells[0].removeprefix("\ufeff")
            self.names = [c.strip() for c in cells]
        elif self.header is False:
            self.names = [f"c{k}" for k in range(len(cells))]
        else:
            self.names = list(self.header)
        double = sorted({n for n in self.names if self.names.count(n) > 1})
        if double:
            raise DataError(f"{self.path}, line 1: two columns are called {double[0]!r}", hint="give header=[names …]")
        for name in [*(self.columns or ()), *(self.dtypes or ()), *(self.fill or ())]:
            if name not in self.names:
                raise DataError(f"{self.path}: there is no column {name!r}; there are {', '.join(self.names)}")
        return self.header is True

    def nothing(self) -> DataError:
        """The error of a file without rows, or with none that is whole."""
        if self.skips.found:
            return DataError(f"{self.path}: no row is whole; the first: {': '.join(self.skips.found[0])}")
        return DataError(f"{self.path}: there are no rows" + (" behind the header" if self.header is True else ""))

    @property
    def wanted(self) -> list[str]:
        """The columns that are kept."""
        return list(self.columns) if self.columns is not None else self.names

    def is_missing(self, cell: str) -> bool:
        return cell.strip() in self.missing

    def found_kind(self, name: str, cells: Sequence[str]) -> ColumnKind:
        """The type of a column: as given, or the narrowest that all its cells fit."""
        given = (self.dtypes or {}).get(name)
        if given is not None:
            return kind_of(given, "load_csv")
        present = [c.strip() for c in cells if not self.is_missing(c)]
        holes = len(present) < len(cells) and name not in (self.fill or {}) and self.on_missing == "nan"
        if not present:
            return KINDS["float64"]
        for kind in KINDS.values():
            if all(_fits(kind, c) for c in present):
                if kind.name == "bool" and holes:
                    return KINDS["text"]
                return KINDS["float64"] if kind.absent is None and holes else kind
        return KINDS["text"]

    def value(self, name: str, kind: ColumnKind, cell: str, line: int) -> Any:
        """A cell as the type of its column; None where the row is to be left out."""
        if self.is_missing(cell):
            return self._absent(name, kind, line)
        try:
            return kind.read(cell if kind.name == "text" else cell.strip())
        except (ValueError, KeyError):
            self.skips.met(
                f"{self.path}, line {line}, column {name!r}", f"{cell[:40]!r} is no {kind.name}",
                "give dtypes={" + repr(name) + ": 'text'}, or on_error='skip'",
            )  # fmt: skip
            return None

    def _absent(self, name: str, kind: ColumnKind, line: int) -> Any:
        if self.fill is not None and name in self.fill:
            return self.fill[name]
        place = f"{self.path}, line {line}, column {name!r}"
        if self.on_missing == "error":
            raise DataError(f"{place}: the value is missing", hint="on_missing='nan' or 'skip', or fill={…}")
        if self.on_missing == "skip":
            self.skips.found.append((place, "the value is missing"))
            return None
        if kind.absent is None:
            raise DataError(
                f"{place}: the value is missing, and {kind.name} has no NaN", hint="dtype float64, or fill={…}"
            )
        return kind.absent


def load_csv(
    path: Any,
    *,
    target: str | None = None,
    header: Any = True,
    dtypes: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    missing: Sequence[str] = MISSING,
    on_missing: str = "nan",
    fill: Mapping[str, Any] | None = None,
    encoding: str = "utf-8",
    on_error: str = "raise",
) -> Table | Examples:
    """A CSV file as a table; with `target`, as samples (features, target).

    `header` is True (the first line), False (columns are c0, c1, …) or a list of names; `dtypes` gives types by column.
    A missing value is NaN (text: ""), an error, or the row is left out (`on_missing`); `fill` gives what stands for it,
    by column. Rows that are broken are errors, or left out (`on_error`); `table.skipped` lists what was left out.
    """
    form = Form(
        path=path, header=header, dtypes=dtypes, columns=columns, delimiter=delimiter, missing=missing,
        on_missing=on_missing, fill=fill, encoding=encoding, on_error=on_error,
    )  # fmt: skip
    lines: list[int] = []
    cells: list[list[str]] = []
    for line, row in form.rows():
        lines.append(line)
        cells.append(row)
    if not cells:
        raise form.nothing()
    places = {name: form.names.index(name) for name in form.wanted}
    texts = {name: [row[k] for row in cells] for name, k in places.items()}
    kinds = {name: form.found_kind(name, column) for name, column in texts.items()}
    kept = np.ones(len(cells), np.bool_)
    values: dict[str, list[Any]] = {}
    for name, column in texts.items():
        values[name] = [form.value(name, kinds[name], cell, line) for cell, line in zip(column, lines, strict=True)]
        kept &= np.fromiter((v is not None for v in values[name]), np.bool_, len(cells))
    if not kept.any():
        raise form.nothing()
    form.skips.tell(f"places of {form.path} are broken or missing, and their rows were")
    made = Table({n: _column([v for v, k in zip(vs, kept, strict=True) if k], kinds[n]) for n, vs in values.items()})
    found = made if target is None else made.xy(target)
    found.skipped = form.skips.found
    return found


def _column(values: list[Any], kind: ColumnKind) -> Any:
    if kind.dtype is not object:
        return np.array(values, kind.dtype)
    made = np.empty(len(values), object)
    made[:] = values
    return made


class CsvStream(IterableDataset):
    """The rows of a CSV file as dicts, read as they come: for files larger than memory. See `load_csv`."""

    def __init__(
        self,
        path: Any,
        *,
        header: Any = True,
        dtypes: Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        missing: Sequence[str] = MISSING,
        on_missing: str = "nan",
        fill: Mapping[str, Any] | None = None,
        encoding: str = "utf-8",
        on_error: str = "raise",
    ) -> None:
        self._form = form = Form(
            path=path, header=header, dtypes=dtypes, columns=columns, delimiter=delimiter, missing=missing,
            on_missing=on_missing, fill=fill, encoding=encoding, on_error=on_error,
        )  # fmt: skip
        first = [row for _, row in islice(form.rows(), LOOKED_AT)]
        self.kinds = {n: form.found_kind(n, [row[form.names.index(n)] for row in first]).name for n in form.wanted}
        self.skipped: list[tuple[str, str]] = []  # of the last walk

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        form = self._form.fresh()
        self.skipped = form.skips.found
        some = False
        for line, row in form.rows():
            sample = {}
            for name, kind in self.kinds.items():
                value = form.value(name, KINDS[kind], row[form.names.index(name)], line)
                if value is None:
                    break
                sample[name] = value if kind == "text" else KINDS[kind].dtype(value)
            else:
                some = True
                yield sample
        if not some:
            raise form.nothing()
        form.skips.tell(f"places of {form.path} are broken or missing, and their rows were")
