"""Pictures: tensors as PNG files, without any library of pictures, and what there is to know of the terminal.

Comes in: tensors of height × width × 3 (red, green, blue) or of height × width (grey), floats from 0 to 1 or uint8.
Goes out: the bytes of a PNG (RFC 2083): 8 bits per sample, each row as the difference to the one above it, which
deflates well. `lib/eshkol/plot.esk` calls these.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import zlib
from typing import Any

import numpy as np

from eshkol.bindings.rows import shown
from eshkol.errors import DTypeError, ShapeError
from eshkol.tensors.value import Tensor

MARGIN = 16  # pixels around pictures and between them
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURED, _ABOVE = 2, 2  # the colour type of PNG that is red, green, blue; its filter that subtracts the row above


def png(*pictures: Any) -> bytes:
    """The bytes of a PNG; several pictures stand side by side on white."""
    if not pictures:
        raise ShapeError("at least one picture is wanted")
    found = [samples(picture, position) for position, picture in enumerate(pictures, start=1)]
    return encode(found[0] if len(found) == 1 else side_by_side(found))


def samples(picture: Any, position: int) -> np.ndarray:
    """The samples of a picture: height × width × 3 bytes."""
    if not isinstance(picture, Tensor):
        raise DTypeError(f"a picture, which is a tensor, is wanted as argument {position}, not {shown(picture)}")
    array = picture.numpy()
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or 0 in array.shape:
        raise ShapeError(f"a picture is height × width × 3, or height × width, not {list(array.shape)}")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise DTypeError("a picture must be of finite numbers from 0 to 1")
        array = np.rint(np.clip(array, 0, 1) * 255.0).astype(np.uint8)
    if array.dtype != np.uint8:
        raise DTypeError(f"a picture is of floats from 0 to 1 or of uint8, not of {picture.dtype}")
    return array if array.ndim == 3 else np.repeat(array[:, :, None], 3, axis=2)


def side_by_side(pictures: list[np.ndarray]) -> np.ndarray:
    """Pictures from left to right on white, each in the middle of the height."""
    height = max(len(picture) for picture in pictures)
    width = sum(picture.shape[1] + MARGIN for picture in pictures) + MARGIN
    sheet = np.full((height + 2 * MARGIN, width, 3), 255, np.uint8)
    left = MARGIN
    for picture in pictures:
        top = MARGIN + (height - len(picture)) // 2
        sheet[top : top + len(picture), left : left + picture.shape[1]] = picture
        left += picture.shape[1] + MARGIN
    return sheet


def encode(array: np.ndarray) -> bytes:
    """The bytes of a PNG of height × width × 3 bytes."""
    height, width, _ = array.shape
    rows = array.reshape(height, -1)
    above = np.vstack([np.zeros((1, rows.shape[1]), np.uint8), rows[:-1]])
    filtered = np.hstack([np.full((height, 1), _ABOVE, np.uint8), rows - above])
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURED, 0, 0, 0)
    body = zlib.compress(filtered.tobytes(), 9)
    return SIGNATURE + b"".join(_chunk(*part) for part in ((b"IHDR", header), (b"IDAT", body), (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def columns() -> int | bool:
    """How wide the terminal is that standard output goes to; False where it goes elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        return False
    return shutil.get_terminal_size().columns


def has_colours() -> bool:
    """Whether standard output is a terminal that shows colours, and nobody has asked for none (no-color.org)."""
    return columns() is not False and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
