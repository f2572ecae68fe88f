"""PNG files (RFC 2083) from arrays of bytes, without any library of pictures.

Comes in: samples of 8 bits, height × width × channels. Goes out: the bytes of a PNG, each row as the difference to
the one above it, which deflates well. Pictures in Scheme and the pictures of training logs are written by it.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels: grey, grey and alpha, red green blue, these and alpha
_ABOVE = 2  # the filter that subtracts the row above


def encode(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of a PNG of height × width × channels bytes; 1 to 4 channels."""
    height, width, channels = array.shape
    rows = array.reshape(height, -1)
    above = np.vstack([np.zeros((1, rows.shape[1]), np.uint8), rows[:-1]])
    filtered = np.hstack([np.full((height, 1), _ABOVE, np.uint8), rows - above])
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(filtered.tobytes(), 9)
    return SIGNATURE + b"".join(_chunk(*part) for part in ((b"IHDR", header), (b"IDAT", body), (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
