"""JSON lines: a value in each line. The file stays on disk; a line is parsed when it is asked for."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import Dataset, checked_index
from eshkol.data.draws import Pass
from eshkol.data.streams import IterableDataset
from eshkol.errors import DataError

_CHUNK = 1 << 22


def _parsed(line: bytes, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {number}: no UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise DataError(f"{path}, line {number}: values within values, too deep") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DataError(f"{path}, line {number}: {error}") from None


class JsonLines(Dataset):
    """The lines of a file as a data set; empty lines do not count.

    With `on_error="skip"` all lines are looked at first, and those left out that are no JSON. A compressed file is
    decompressed into memory.
    """

    def __init__(self, path: Any, on_error: str = "raise") -> None:
        self.path = files.existing(path, "load_jsonl")
        self._on_error, skips = on_error, files.Skips("load_jsonl", on_error)
        self._open(skips)
        places, numbers = self._lines()
        if on_error == "skip":
            kept = []
            for k, ((start, end), number) in enumerate(zip(places.tolist(), numbers.tolist(), strict=True)):
                try:
                    _parsed(self._bytes[start:end], self.path, number)
                    kept.append(k)
                except DataError as error:
                    skips.leave_out(error)
            places, numbers = places[kept], numbers[kept]
        if not len(places):
            raise DataError(f"{self.path}: there are no lines of JSON")
        skips.tell(f"lines of {self.path} are no JSON and were")
        self._places, self._numbers, self.skipped = places, numbers, skips.found

    def _open(self, skips: files.Skips) -> None:
        self._bytes: Any = b""
        if files.is_gzip(self.path):
            self._bytes = bytes(files.read_all(self.path, skips))
        elif self.path.stat().st_size:
            with files.told(self.path), self.path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _lines(self) -> tuple[Any, Any]:
        """Where lines begin and end that are not empty, and their numbers."""
        size = len(self._bytes)
        found = [np.zeros(0, np.int64)]
        for start in range(0, size, _CHUNK):
            chunk = np.frombuffer(self._bytes[start : start + _CHUNK], np.uint8)
            found.append(np.flatnonzero(chunk == 10) + start)
        ends = np.concatenate(found)
        if size and (not len(ends) or ends[-1] != size - 1):
            ends = np.append(ends, size)
        places = np.stack([np.concatenate([[0], ends[:-1] + 1])[: len(ends)], ends], axis=1)
        blank = np.zeros(len(places), np.bool_)
        for k in np.flatnonzero(np.frombuffer(self._bytes, np.uint8)[places[:, 0].clip(0, size - 1)] <= 32):
            blank[k] = not self._bytes[places[k, 0] : places[k, 1]].strip()
        return places[~blank], np.flatnonzero(~blank) + 1

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Any:
        k = checked_index(index, len(self))
        start, end = self._places[k].tolist()
        return _parsed(self._bytes[start:end], self.path, int(self._numbers[k]))

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_bytes": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open(files.Skips("load_jsonl", self._on_error))


class JsonLinesStream(IterableDataset):
    """The lines of a file as they come, also of a compressed one that is larger than memory."""

    def __init__(self, path: Any, on_error: str = "raise") -> None:
        self.path, self._on_error = files.existing(path, "load_jsonl"), on_error
        files.Skips("load_jsonl", on_error)
        self.skipped: list[tuple[str, str]] = []  # of the last walk

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        skips, some = files.Skips("load_jsonl", self._on_error), False
        self.skipped = skips.found
        try:
            for found in self._parsed(skips):
                some = True
                yield found
        except files.Damaged as error:
            skips.leave_out(error)  # the lines before the damage are whole
        if not some:
            raise DataError(f"{self.path}: there are no lines of JSON")
        skips.tell(f"lines of {self.path} are no JSON and were")

    def _parsed(self, skips: files.Skips) -> Iterator[Any]:
        with files.opened(self.path) as file:
            for number, line in enumerate(files.lines(file, self.path), start=1):
                if not line.strip():
                    continue
                try:
                    found = _parsed(line.rstrip(b"\r\n"), self.path, number)
                except DataError as error:
                    skips.leave_out(error)
                    continue
                yield found


def load_jsonl(path: Any, *, stream: bool = False, on_error: str = "raise") -> JsonLines | JsonLinesStream:
    """A file of JSON lines, as a data set with indices or as a stream; samples are what the lines hold."""
    return JsonLinesStream(path, on_error) if stream else JsonLines(path, on_error)
