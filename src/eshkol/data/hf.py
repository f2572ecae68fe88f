"""Data sets of Hugging Face's `datasets`, where it is installed: from a folder on disk, or as an object at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eshkol.data import files
from eshkol.data.dataset import Dataset, checked_index
from eshkol.errors import DataError, MissingData


class HFDataset(Dataset):
    """A `datasets.Dataset`: samples are dicts, or tuples of the named columns."""

    def __init__(self, data: Any, columns: Sequence[str] | None = None) -> None:
        there = list(data.column_names)
        for name in columns or ():
            if name not in there:
                raise DataError(f"HFDataset: there is no column {name!r}; there are {', '.join(there)}")
        self.columns = None if columns is None else list(columns)
        self.data = data.with_format("numpy")

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        k = checked_index(index, len(self))
        try:
            row = self.data[k]
        except Exception as error:
            there = ", ".join(str(part["filename"]) for part in getattr(self.data, "cache_files", ()) or ())
            raise DataError(f"{there or 'a data set in memory'}, row {k}: it cannot be read: {error}") from error
        return row if self.columns is None else tuple(row[name] for name in self.columns)

    def told(self) -> str:
        return ", ".join(self.data.column_names if self.columns is None else self.columns)


def _culprit(where: Path) -> Path:
    """The file that is broken in the folder of a data set, or the folder, if no one knows."""
    ipc = files.optional("pyarrow", "load_hf_dataset", "huggingface").ipc
    for path in sorted(where.rglob("*.arrow")):
        try:
            with path.open("rb") as file, ipc.open_stream(file) as stream:
                for _ in stream:
                    pass
        except Exception:  # of whatever kind: it is told by the error that led here
            return path
    return where


def load_hf_dataset(path: Any, split: str | None = None, columns: Sequence[str] | None = None) -> HFDataset:
    """A data set that was saved with `save_to_disk`, or a `datasets.Dataset` at hand. Nothing is downloaded."""
    if hasattr(path, "column_names") and hasattr(path, "with_format"):
        found = path
    else:
        library = files.optional("datasets", "load_hf_dataset", "huggingface")
        where = Path(path)
        with files.told(where):
            there = where.is_dir()
        if not there:
            raise MissingData(
                f"load_hf_dataset: there is no folder {where}; nothing is downloaded",
                hint=f"where there is a network: datasets.load_dataset({str(path)!r}).save_to_disk(FOLDER); "
                "then give the folder",
            )
        try:
            found = library.load_from_disk(str(where))
        except Exception as error:
            raise DataError(f"{_culprit(where)}: no data set of Hugging Face, or a damaged one: {error}") from None
    if isinstance(found, dict):
        if split is None:
            raise DataError(f"load_hf_dataset: split= one of {', '.join(map(repr, found))}")
        found = found[files.chosen("load_hf_dataset", "split", split, found)]
    return HFDataset(found, columns)
