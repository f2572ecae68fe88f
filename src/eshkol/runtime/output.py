"""Where Scheme is a guest in Python: what it writes goes to `sys.stdout` and `sys.stderr`, whatever these are just now.

So it comes between what Python prints, before and after it; a notebook shows it below the cell, `redirect_stdout` and
pytest's `capsys` catch it. The `eshkol` command writes to the descriptors themselves.
"""

from __future__ import annotations

import codecs
import ctypes
import errno
import sys
from functools import cache

from eshkol.runtime.library import native

WRITER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
_decoders = {number: codecs.getincrementaldecoder("utf-8")("surrogatepass") for number in (1, 2)}


def _write(descriptor: int, data: int, count: int) -> int:
    """Called by the runtime (ports.h, esk_write_standard); a character may come in two pieces."""
    text = _decoders[descriptor].decode(ctypes.string_at(data, count))
    stream = sys.stdout if descriptor == 1 else sys.stderr
    if stream is None:  # a process without a terminal: Python drops what is printed there, too
        return 0
    try:
        stream.write(text)
    except OSError as error:
        return error.errno or errno.EIO
    except UnicodeEncodeError as error:
        stream.write(text.encode(error.encoding, "replace").decode(error.encoding))
    except ValueError:  # it is closed
        return errno.EBADF
    return 0


@cache
def through_python() -> object:
    """From now on it is so, for every context; what is returned must live as long."""
    writer = WRITER(_write)
    address = ctypes.cast(writer, ctypes.c_void_p).value
    ctypes.c_void_p.in_dll(native(), "esk_write_standard").value = address
    return writer
