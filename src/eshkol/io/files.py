"""Files that are whole or not there: written beside their place, made durable, then put into it.

Comes in: a path. Goes out: an open file to write to, which takes the place of the earlier file when all is written and
lies on the disk; on any error the earlier file stays as it was and the unfinished one goes. A process that is killed
leaves an unfinished file behind: the next one that writes to the same place finds that nothing holds it and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from eshkol.errors import CheckpointError

Path = str | os.PathLike[str]
SUFFIX = ".unfinished"
TRIES = 100


def reason(error: OSError) -> str:
    """What the system says of a failure, as part of a sentence."""
    return (error.strerror or str(error)).lower()


@contextmanager
def replacing(path: Path, who: str) -> Iterator[BinaryIO]:
    """An open file whose bytes are at `path` when the block ends, all of them, also after a loss of power.

    `who` is the caller, for errors.
    """
    place = os.path.realpath(path)  # of a link, where it leads to
    folder, name = os.path.split(place)
    temporary = ""
    try:
        if os.path.isdir(place):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if os.path.exists(place) and not os.path.isfile(place):  # root could put a file in the place of /dev/null
            raise OSError(errno.EINVAL, "it is no file, and would be replaced by one")
        sweep(folder, name)
        temporary, descriptor = _unfinished(folder, name)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            yield file
            os.fsync(descriptor)
            os.replace(temporary, place)
        temporary = ""
        _sync_folder(folder)
    except OSError as error:
        stays = "; the earlier file is as it was" if os.path.exists(place) else ""
        raise CheckpointError(
            f"{who}: cannot write {os.fspath(path)!r}: {reason(error)}{stays}",
            hint="free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            else "give a path in a folder that is there and writable",
        ) from None  # fmt: skip
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


def write_all(file: BinaryIO, data: Any) -> None:
    """Write all bytes to an unbuffered file, which may take them in parts."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[file.write(rest) :]


def sweep(folder: str, name: str = "") -> None:
    """Remove the unfinished files that writers of a place, or of any place in the folder, left when they were killed.

    Who writes holds a lock on the file, which goes when the process does.
    """
    begin = f".{name}." if name else "."
    with os.scandir(folder) as entries:
        left = [e.path for e in entries if e.name.startswith(begin) and e.name.endswith(SUFFIX)]
    for path in left:
        with suppress(OSError):  # another who sweeps was quicker, or it is not ours to remove
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(descriptor)


def _unfinished(folder: str, name: str) -> tuple[str, int]:
    """A new file beside a place, open and locked."""
    for _ in range(TRIES):
        path = os.path.join(folder, f".{name[:200]}.{os.urandom(6).hex()}{SUFFIX}")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # nothing swept it before it was locked
                return path, descriptor
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOLCK):  # a file system without locks: nothing can sweep
                raise
            return path, descriptor
        os.close(descriptor)
    raise OSError(errno.EBUSY, "unfinished files vanish as they are made")


def _sync_folder(folder: str) -> None:
    """Make a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system whose folders cannot be synced
            raise
    finally:
        os.close(descriptor)
