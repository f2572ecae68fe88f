"""Parquet files, by pyarrow where it is installed: whole as a table, or row by row."""

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
        return reader.ParquetFile(where)
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


def load_parquet(path: Any, *, target: str | None = None, columns: Sequence[str] | None = None) -> Table | Examples:
    """A Parquet file as a table; with `target`, as samples (features, target)."""
    file = _opened(path)
    names = _checked(file, path, columns)
    try:
        read = file.read(columns=names)
    except Exception as error:
        raise DataError(f"{path}: the file is damaged: {error}") from None
    table = Table({name: _column(read.column(name).combine_chunks()) for name in names})
    return table if target is None else table.xy(target)


class ParquetStream(IterableDataset):
    """The rows of a Parquet file as dicts, a group of rows in memory at a time."""

    def __init__(self, path: Any, *, columns: Sequence[str] | None = None, rows: int = 4096) -> None:
        self._path, self._rows = path, rows
        self._names = _checked(_opened(path), path, columns)

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        groups = iter(_opened(self._path).iter_batches(self._rows, columns=self._names))
        number = 0
        while True:
            try:
                group = next(groups)
            except StopIteration:
                return
            except Exception as error:
                raise DataError(f"{self._path}: the file is damaged behind row {number}: {error}") from None
            columns = {name: _column(group.column(k)) for k, name in enumerate(self._names)}
            for k in range(group.num_rows):
                yield {name: column[k] for name, column in columns.items()}
            number += group.num_rows
