"""PyTorch's files (.pt, .pth): the tensors of a state dict, read without PyTorch and without executing the pickle.

A file is a zip archive: `data.pkl` says what there is, and each storage is a member of its own, not compressed, so that
a tensor can lie in the mapped file. Files of PyTorch before 1.6, and whole models, are refused.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io.files import Path
from eshkol.io.layout import FileBytes, is_shape
from eshkol.io.pickles import PickledFunction, Plain, Walker
from eshkol.tensors import api as ek
from eshkol.tensors.make import adopted

STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool_", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip
DTYPES = {  # of storages without a type of their own
    **{f"torch.{d}": d for d in ("uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "uint8", "float16",
                                 "bfloat16", "float32", "float64", "complex64", "complex128")},
    "torch.bool": "bool_",
}  # fmt: skip
LONGEST_PICKLE = 1 << 28
COPIES = 16  # times the size of the file that transposed tensors, which are copied, may take
SAVE = "save the tensors alone: torch.save(model.state_dict(), path)"
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # what files before 1.6 begin with


def load_pytorch(path: Path, *, mmap: bool = False) -> Any:
    """What `torch.save` wrote: a state dict, or dicts and lists with tensors in them; no code of the file is run.

    >>> model.load_state_dict(ek.io.load_pytorch("weights.pt"))
    """
    source = FileBytes(path, mmap)
    try:
        return _Archive(source).value()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error, ValueError) as error:
        raise source.refused(f"it is damaged: {error}") from None
    finally:
        source.close()


class _Archive:
    """A file of PyTorch, open."""

    def __init__(self, source: FileBytes) -> None:
        self.source = source
        begin = source.view(0, min(source.size, 64)).tobytes()
        if begin.startswith(LEGACY) or begin[257:262] == b"ustar":
            raise source.refused(
                "it is of PyTorch before 1.6", "load it with PyTorch, and save it again: torch.save(state, path)"
            )
        if not begin.startswith(b"PK"):
            raise source.refused("it is no file of PyTorch, which is a zip archive")
        with source.file() as file, zipfile.ZipFile(file) as archive:
            self.members: dict[str, zipfile.ZipInfo] = {}
            for about in archive.infolist():
                if "/code/" in about.filename:
                    raise source.refused("it is a TorchScript program", SAVE)
                if about.filename in self.members:
                    raise source.refused(f"it has the member {about.filename!r} twice")
                if about.compress_type != zipfile.ZIP_STORED or about.compress_size != about.file_size:
                    raise source.refused(f"its member {about.filename!r} is compressed, as PyTorch writes none")
                self.members[about.filename] = about
        if sum(about.file_size for about in self.members.values()) > source.size:
            raise source.refused("its members overlap: together they are longer than it")
        pickles = [name for name in self.members if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(pickles) != 1:
            raise source.refused("it is no file of torch.save: it has no data.pkl", SAVE)
        self.prefix = pickles[0].removesuffix("data.pkl")
        order = self.members.get(f"{self.prefix}byteorder")
        if order is not None and self._bytes(order).tobytes() != b"little":
            raise source.refused("it was written on a big-endian machine")
        self.storages: dict[str, Any] = {}
        self.copied = 0  # bytes of tensors that do not lie in their storage as they are

    def _bytes(self, about: zipfile.ZipInfo) -> Any:
        """The bytes of a member, where they lie in the file."""
        size = self.source.size
        if not 0 <= about.header_offset <= size - 30:
            raise self.source.refused(f"its member {about.filename!r} is beyond its end")
        head = self.source.view(about.header_offset, 30).tobytes()
        name, extra = struct.unpack("<HH", head[26:30])
        start = about.header_offset + 30 + name + extra
        if head[:4] != b"PK\3\4" or start + about.file_size > size:
            raise self.source.refused(f"its member {about.filename!r} goes beyond its end")
        found = self.source.view(start, about.file_size)
        if zlib.crc32(found) != about.CRC:
            raise self.source.refused(f"it is damaged: member {about.filename!r} does not have its checksum")
        return found

    def value(self) -> Any:
        about = self.members[f"{self.prefix}data.pkl"]
        if about.file_size > LONGEST_PICKLE:
            raise self.source.refused(f"its pickle has {about.file_size} bytes, more than {LONGEST_PICKLE}")
        if f"{self.prefix}constants.pkl" in self.members:
            raise self.source.refused("it is a TorchScript program", SAVE)

        def refused(why: str) -> CheckpointError:
            return self.source.refused(why, SAVE)

        known: dict[str, Any] = {
            "collections.OrderedDict": PickledFunction("OrderedDict", lambda *items: dict(*items)),
            "_codecs.encode": PickledFunction(
                "bytes", lambda text, _: text.encode("latin-1")
            ),  # bytes, of old protocols
            "torch._utils._rebuild_tensor_v2": PickledFunction("tensor", self._tensor),
            "torch._utils._rebuild_tensor_v3": PickledFunction("tensor", self._typed_tensor),
            "torch._utils._rebuild_parameter": PickledFunction("parameter", lambda tensor, *_: tensor),
            "torch.Size": PickledFunction("Size", lambda *sizes: tuple(*sizes)),
            "torch.device": PickledFunction("device", lambda *where: Plain("device", *where)),
            "torch.storage.UntypedStorage": Plain("storage", None),
            "torch.UntypedStorage": Plain("storage", None),
            **{f"torch.{name}": Plain("storage", dtype) for name, dtype in STORAGES.items()},
            **{name: Plain("dtype", dtype) for name, dtype in DTYPES.items()},
        }
        return Walker(self._bytes(about).tobytes(), known, self._storage, refused).value()

    def _storage(self, what: Any) -> Any:
        """A storage, of `("storage", its type, key, where it was, how many elements)`."""
        if not isinstance(what, tuple) or len(what) != 5 or what[0] != "storage" or not isinstance(what[1], Plain):
            raise self.source.refused("its pickle speaks of a storage that is none")
        dtype, key, count = what[1].arguments[0], what[2], what[4]
        if what[1].name != "storage":
            raise self.source.refused("its pickle speaks of a storage that is none")
        dtype = dtype or "uint8"  # of bytes, whose meaning the tensor says
        if not isinstance(key, str) or (about := self.members.get(f"{self.prefix}data/{key}")) is None:
            raise self.source.refused(f"it has no storage {key!r}")
        kind = getattr(ek, dtype).numpy
        if not isinstance(count, int) or about.file_size != count * kind.itemsize:
            raise self.source.refused(f"its storage {key!r} has {about.file_size} bytes instead of {count} {dtype}s")
        if key not in self.storages:
            self.storages[key] = self._bytes(about)
        return self.storages[key].view(kind)

    def _typed_tensor(
        self, storage: Any, offset: Any, shape: Any, strides: Any, gradient: Any, hooks: Any, dtype: Any, *_: Any
    ) -> Any:
        """A tensor of a storage of bytes; everything but the dtype as of others."""
        if not isinstance(storage, np.ndarray) or not isinstance(dtype, Plain) or dtype.name != "dtype":
            raise self.source.refused("its pickle has a tensor that is none")
        kind = getattr(ek, dtype.arguments[0]).numpy
        return self._tensor(storage.view(np.uint8).view(kind), offset, shape, strides)

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Any:
        def counts(values: Any) -> bool:
            return isinstance(values, tuple) and all(isinstance(x, int) and 0 <= x < 1 << 62 for x in values)

        refused = self.source.refused
        if not isinstance(storage, np.ndarray) or not counts((offset,)) or not counts(shape) or not counts(strides):
            raise refused("its pickle has a tensor that is none")
        if len(shape) != len(strides) or not is_shape(shape, storage.itemsize):
            raise refused(f"its pickle has a tensor of shape {shape} with strides {strides}")
        count = math.prod(shape)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if count and last >= storage.size:
            raise refused(f"a tensor of shape {shape} goes beyond its storage of {storage.size} elements")
        if count > storage.size:
            raise refused(
                f"a tensor of shape {shape} repeats the elements of its storage of {storage.size}",
                "save its copy: x.contiguous()",
            )
        if storage.dtype == np.bool_ and storage.size and storage.view(np.uint8).max() > 1:
            raise refused("it has booleans that are neither 0 nor 1")
        steps = [step * storage.itemsize for step in strides]
        begin = storage[offset:] if count else storage[:0]
        view = np.lib.stride_tricks.as_strided(begin, shape, steps if count else None, writeable=False)
        if not view.flags.c_contiguous:
            self.copied += view.nbytes
            if self.copied > COPIES * self.source.size:
                raise refused(f"its tensors would take more than {COPIES} times as much memory as it has bytes")
        return adopted(np.ascontiguousarray(view).reshape(shape))
