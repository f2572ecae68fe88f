"""Parquet files, by pyarrow where it is installed: whole as a table, or row by row.

A damaged group of rows is an error that names it, or is left out (`on_error="skip"`). Damage is noticed where the file
has checksums of its pages, or where what is damaged makes no sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.draws import Pass
from eshkol.data.streams import IterableDataset
from eshkol.data.tables import Examples, Table
from eshkol.errors import DataError


def _opened(path: Any) -> Any:
    where = files.existing(path, "load_parquet")
    reader = files.optional("pyarrow.parquet", "reading Parquet", "parquet")
    try:
        with files.told(where):
            return reader.ParquetFile(where, page_checksum_verification=True)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{where}: no Parquet file: {error}") from None


def _column(array: Any) -> Any:
    """A column of Arrow as an array; numbers that are missing are NaN, text that is missing is ''."""
    found = array.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "O" and all(v is None or isinstance(v, bool) for v in found):
        return np.array([np.nan if v is None else float(v) for v in found])
    if found.dtype.kind == "O" and all(v is None or isinstance(v, str) for v in found):
        made = np.empty(len(found), object)
        made[:] = ["" if v is None else v for v in found]
        return made
    return found


def _checked(file: Any, path: Any, columns: Sequence[str] | None) -> list[str]:
    there = list(file.schema_arrow.names)
    for name in columns or ():
        if name not in there:
            raise DataError(f"{path}: there is no column {name!r}; there are {', '.join(there)}")
    return list(columns) if columns is not None else there


def _groups(file: Any, path: Any, names: Sequence[str], skips: files.Skips) -> Iterator[Any]:
    """The groups of rows of a file, as tables of Arrow."""
    first = 0
    for number in range(file.num_row_groups):
        try:
            group = file.read_row_group(number, columns=list(names))
            group.validate(full=True)
            yield group
        except Exception as error:
            skips.met(f"{path}, group {number} (from row {first} on)", f"the file is damaged: {error}")
        first += file.metadata.row_group(number).num_rows


def load_parquet(
    path: Any, *, target: str | None = None, columns: Sequence[str] | None = None, on_error: str = "raise"
) -> Table | Examples:
    """A Parquet file as a table; with `target`, as samples (features, target).

    `on_error="skip"` leaves out groups of rows that are damaged; `table.skipped` lists them.
    """
    skips, file = files.Skips("load_parquet", on_error), _opened(path)
    names = _checked(file, path, columns)
    groups = list(_groups(file, path, names, skips))
    if not groups and skips.found:
        raise DataError(f"{path}: no group of rows is whole; the first: {': '.join(skips.found[0])}")
    read = files.optional("pyarrow", "reading Parquet", "parquet").concat_tables(groups) if groups else file.read(names)
    skips.tell(f"groups of rows of {path} are damaged and were")
    table = Table({name: _column(read.column(name).combine_chunks()) for name in names})
    found = table if target is None else table.xy(target)
    found.skipped = skips.found
    return found


class ParquetStream(IterableDataset):
    """The rows of a Parquet file as dicts, a group of rows in memory at a time."""

    def __init__(
        self, path: Any, *, columns: Sequence[str] | None = None, rows: int = 4096, on_error: str = "raise"
    ) -> None:
        self._path, self._rows, self._on_error = path, rows, on_error
        files.Skips("load_parquet", on_error)
        self._names = _checked(_opened(path), path, columns)
        self.skipped: list[tuple[str, str]] = []  # of the last walk

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        skips = files.Skips("load_parquet", self._on_error)
        self.skipped = skips.found
        for group in _groups(_opened(self._path), self._path, self._names, skips):
            for batch in group.to_batches(self._rows):
                columns = {name: _column(batch.column(k)) for k, name in enumerate(self._names)}
                for k in range(batch.num_rows):
                    yield {name: column[k] for name, column in columns.items()}
        skips.tell(f"groups of rows of {self._path} are damaged and were")
