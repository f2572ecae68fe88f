"""Tables: columns with names, as a data set whose samples are rows, or features and a target.

Readers of CSV and Parquet give a `Table`. Columns are arrays of int64, float64 or bool, or of Python's str.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eshkol.data.dataset import ArrayDataset
from eshkol.data.structure import is_text
from eshkol.errors import DataError


class Table(ArrayDataset):
    """Columns of equal length; a sample is a dict, a batch a dict of columns: `table["age"]`, `table[3]`."""

    skipped: Sequence[tuple[str, str]] = ()  # what a reader left out: place and reason
    counted = ("row", "rows")

    def __init__(self, columns: Mapping[str, Any]) -> None:
        if not columns:
            raise DataError("a table has at least one column")
        super().__init__(**{f"{k}": v for k, v in columns.items()})
        self.columns: dict[str, Any] = dict(self.arrays) if isinstance(self.arrays, dict) else {}

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    def __getitem__(self, index: Any) -> Any:
        """The row of an index, or the column of a name."""
        return self.column(index) if isinstance(index, str) else super().__getitem__(index)

    take = ArrayDataset.take  # rows are as they were, though `__getitem__` is written anew

    def column(self, name: str) -> Any:
        """The column of a name."""
        if name in self.columns:
            return self.columns[name]
        near = difflib.get_close_matches(name, self.columns, 1)
        raise DataError(
            f"the table has no column {name!r}; it has {', '.join(self.columns)}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )

    def xy(self, target: str, features: Sequence[str] | None = None) -> Examples:
        """Samples (features as float32, target), for learning; a target of text becomes class numbers."""
        y = self.column(target)
        names = [n for n in self.columns if n != target] if features is None else list(features)
        for n in names:
            if is_text(self.column(n)):
                raise DataError(
                    f"column {n!r} holds text, and features are numbers", hint="name the columns: features=[…]"
                )
        if not names:
            raise DataError("a table needs columns beside the target")
        x = np.stack([self.columns[n].astype(np.float32) for n in names], axis=1)
        classes: list[str] = []
        if is_text(y):
            classes = sorted({str(v) for v in y})
            y = np.searchsorted(np.array(classes), np.array([str(v) for v in y])).astype(np.int64)
        elif y.dtype.kind == "f":
            y = y.astype(np.float32)
        return Examples(x, y, names, target, classes)


class Examples(ArrayDataset):
    """Samples (features, target), which know what they are called."""

    skipped: Sequence[tuple[str, str]] = ()  # what a reader left out: place and reason

    def __init__(self, x: Any, y: Any, features: list[str], target: str, classes: list[str]) -> None:
        super().__init__(x, y)
        self.x, self.y, self.features, self.target = x, y, features, target
        self.classes = classes  # of a target that was text
