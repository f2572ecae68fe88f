"""Files of PyTorch, written: what `torch.load(path, weights_only=True)` reads, and `io/pytorch.py` too.

Comes in: dicts, lists and tuples of tensors, arrays, numbers and strings. Goes out: a zip archive whose `data.pkl` says
what there is, and a member for each tensor. The pickle is written instruction by instruction; nothing is imported.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io.eskpt import as_array
from eshkol.io.pytorch import STORAGES
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

_STORAGE_OF = {dtype.rstrip("_"): storage for storage, dtype in STORAGES.items()}
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of each member: the same tensors are the same bytes
MARK, TUPLE, REDUCE = b"(", b"t", b"R"


class _Pickle:
    """The instructions of a pickle, of protocol 2, and the storages that it speaks of."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.code = bytearray(b"\x80\x02")
        self.storages: list[Any] = []
        self._inside: list[int] = []  # the containers that are being written: one within itself has no end

    def done(self) -> bytes:
        return bytes(self.code) + b"."

    def _name(self, module: str, name: str) -> None:
        self.code += f"c{module}\n{name}\n".encode()

    def _text(self, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self.code += b"X" + struct.pack("<I", len(data)) + data

    def _whole(self, number: int) -> None:
        if -(1 << 31) <= number < 1 << 31:
            self.code += b"J" + struct.pack("<i", number)
        else:
            data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
            if len(data) > 255:
                raise CheckpointError(f"{self.who}: an integer of {number.bit_length()} bits", span=ek.here())
            self.code += b"\x8a" + bytes([len(data)]) + data

    def _items(self, kind: bytes, items: Any, end: bytes) -> None:
        self.code += kind + MARK
        for item in items:
            self.add(item)
        self.code += end

    def add(self, value: Any) -> None:
        """Write a value."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool):
            self.code += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self._whole(int(value))
        elif isinstance(value, float):
            self.code += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self._text(str(value))
        elif isinstance(value, Tensor | np.ndarray):
            self._tensor(as_array(value, "tensor", self.who))
        elif isinstance(value, Mapping | list | tuple):
            self._within(value)
        else:
            raise CheckpointError(
                f"{self.who}: a file of PyTorch holds tensors, numbers, strings, lists and dicts here, and this is a "
                f"{type(value).__name__}", span=ek.here(),
                hint="save what it knows: model.state_dict(), optimizer.state_dict()",
            )  # fmt: skip

    def _within(self, value: Any) -> None:
        if id(value) in self._inside:
            raise CheckpointError(f"{self.who}: a {type(value).__name__} holds itself", span=ek.here())
        self._inside.append(id(value))
        if isinstance(value, Mapping):
            self._items(b"}", (part for pair in value.items() for part in pair), b"u")
        elif isinstance(value, list):
            self._items(b"]", value, b"e")
        else:
            self._items(b"", value, TUPLE)
        self._inside.pop()

    def _tensor(self, array: Any) -> None:
        storage = _STORAGE_OF.get(array.dtype.name)
        if storage is None:
            raise CheckpointError(
                f"{self.who}: PyTorch's files have no {array.dtype}", span=ek.here(), hint="cast it to int64"
            )
        steps = [1]
        for extent in reversed(array.shape[1:]):
            steps.append(steps[-1] * extent)
        self._name("torch._utils", "_rebuild_tensor_v2")
        self.code += MARK + MARK
        self._text("storage")
        self._name("torch", storage)
        self._text(str(len(self.storages)))
        self._text("cpu")
        self._whole(array.size)
        self.code += TUPLE + b"Q"
        self._whole(0)
        self.add(tuple(array.shape))
        self.add(tuple(reversed(steps)) if array.shape else ())
        self.add(False)
        self._name("collections", "OrderedDict")
        self.code += b")" + REDUCE + TUPLE + REDUCE
        self.storages.append(array)


def write_pytorch(value: Any, file: BinaryIO, who: str) -> None:
    """Write a value to an open file."""
    pickle = _Pickle(who)
    pickle.add(value)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def member(name: str, data: Any) -> None:
            archive.writestr(zipfile.ZipInfo(f"archive/{name}", EPOCH), data)

        member("data.pkl", pickle.done())
        member("byteorder", b"little")
        for number, array in enumerate(pickle.storages):
            member(f"data/{number}", np.ascontiguousarray(array).tobytes())
        member("version", b"3\n")
