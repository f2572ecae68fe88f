"""safetensors files, read and written: a length, a header in JSON, and the bytes of tensors.

What is read is not trusted: the header has at most 100 MB, and the tensors lie one after the other in all of the file.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Mapping
from typing import Any

from eshkol.errors import CheckpointError
from eshkol.io.eskpt import as_array, as_bytes, chosen, dtype_of
from eshkol.io.files import Path, replacing, write_all
from eshkol.io.layout import FileBytes, is_shape, item_size
from eshkol.tensors import api as ek
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor

LONGEST_HEADER = 100_000_000
NAMES = {
    "bool_": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "complex64": "C64",
}  # fmt: skip
DTYPES = {theirs: ours for ours, theirs in NAMES.items()}
METADATA = "__metadata__"


def save_safetensors(path: Path, tensors: Mapping[str, Any], *, metadata: Mapping[str, str] | None = None) -> None:
    """Save tensors by name to a safetensors file; metadata are strings by name."""
    who = "save_safetensors"
    if not isinstance(tensors, Mapping):
        raise CheckpointError(f"{who} takes a dict of tensors, not a {type(tensors).__name__}", span=ek.here())
    arrays = {}
    for name, value in tensors.items():
        if not isinstance(name, str) or name == METADATA:
            raise CheckpointError(f"{who}: {name!r} cannot be the name of a tensor", span=ek.here())
        arrays[name] = as_array(value, name, who)
    said = dict(metadata or {})
    if not all(isinstance(x, str) for pair in said.items() for x in pair):
        raise CheckpointError(f"{who}: metadata of safetensors are strings by name", span=ek.here())
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # widest first, so that all are aligned
    header: dict[str, Any] = {METADATA: said} if said else {}
    place = 0
    for name in order:
        dtype = dtype_of(arrays[name])
        if dtype not in NAMES:
            raise CheckpointError(f"{who}: safetensors have no {dtype}, which {name!r} is", span=ek.here())
        end = place + arrays[name].nbytes
        header[name] = {"dtype": NAMES[dtype], "shape": list(arrays[name].shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise CheckpointError(f"{who}: the names of the tensors take {len(text)} bytes, more than {LONGEST_HEADER}")
    with replacing(path, who) as file:
        write_all(file, struct.pack("<Q", len(text)) + text)
        for name in order:
            write_all(file, as_bytes(arrays[name]))


def load_safetensors(path: Path, *patterns: str, mmap: bool = False) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name: all, or those that names or patterns choose; only they are read."""
    source = FileBytes(path, mmap)
    try:
        rows, start = _read_header(source)
        found = {}
        for name in chosen(rows, patterns, source.path):
            dtype, shape, begin, end = rows[name]
            data = source.view(start + begin, end - begin)
            if dtype == "bool_" and data.size and data.max() > 1:
                raise source.refused(f"tensor {name!r} has booleans that are neither 0 nor 1")
            kind = getattr(ek, dtype).numpy
            found[name] = adopted(data.view(kind).reshape(shape))
        return found
    finally:
        source.close()


def safetensors_metadata(path: Path) -> dict[str, str]:
    """The metadata of a safetensors file."""
    source = FileBytes(path, False)
    try:
        header, _ = _read_json(source)
        return _said(source, header)
    finally:
        source.close()


Row = tuple[str, tuple[int, ...], int, int]  # dtype, shape, begin, end


def _read_json(source: FileBytes) -> tuple[dict[str, Any], int]:
    if source.size < 8:
        raise source.refused(f"it has {source.size} bytes, too few for a safetensors file")
    (length,) = struct.unpack("<Q", source.view(0, 8).tobytes())
    if length > LONGEST_HEADER:
        raise source.refused(f"its header would have {length} bytes, more than {LONGEST_HEADER}")
    if 8 + length > source.size:
        raise source.refused(f"its header has {length} bytes, and the file {source.size}: it is cut short")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
            raise source.refused(f"its header has {name!r} twice")
        return found

    try:
        header = json.loads(source.view(8, length).tobytes().decode("utf-8"), object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise source.refused("its header is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise source.refused(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise source.refused("its header is no JSON object")
    return header, 8 + int(length)


def _said(source: FileBytes, header: dict[str, Any]) -> dict[str, str]:
    said = header.get(METADATA, {})
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise source.refused("its metadata are not strings by name")
    return said


def _read_header(source: FileBytes) -> tuple[dict[str, Row], int]:
    header, start = _read_json(source)
    _said(source, header)
    rows = {name: _row(source, name, row) for name, row in header.items() if name != METADATA}
    expected = 0
    for name, (_, _, begin, end) in sorted(rows.items(), key=lambda item: item[1][2:]):
        if begin != expected:
            what = "overlaps another" if begin < expected else f"leaves a gap of {begin - expected} bytes before it"
            raise source.refused(f"tensor {name!r} {what}")
        expected = end
    if start + expected != source.size:
        short = "it is cut short" if source.size < start + expected else "something was added to it"
        raise source.refused(f"its tensors end at byte {start + expected}, and it has {source.size}: {short}")
    return rows, start


def _row(source: FileBytes, name: str, row: Any) -> Row:
    def counts(values: Any) -> bool:
        return isinstance(values, list) and all(
            isinstance(x, int) and not isinstance(x, bool) and 0 <= x < 1 << 63 for x in values
        )

    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        raise source.refused(f"what its header says of tensor {name!r} is not dtype, shape and data_offsets")
    dtype, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise source.refused(f"tensor {name!r} is {dtype!r}, which is no dtype of tensors")
    if not counts(shape) or not is_shape(shape, item_size(DTYPES[dtype])):
        raise source.refused(f"tensor {name!r} has a shape that is none")
    if not counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise source.refused(f"tensor {name!r} has data_offsets that are none")
    size = math.prod(shape) * item_size(DTYPES[dtype])
    if size != offsets[1] - offsets[0]:
        raise source.refused(f"tensor {name!r} takes {size} bytes, and has {offsets[1] - offsets[0]}")
    return DTYPES[dtype], tuple(shape), offsets[0], offsets[1]
