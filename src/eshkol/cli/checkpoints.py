"""The commands `eshkol ckpt ls`, `eshkol ckpt diff` and `eshkol ckpt verify`: what is in checkpoints.

Everything heavy is imported by the command that runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eshkol.io import Checkpoint, Entry

EPILOG = """\
examples:
  eshkol ckpt ls run.eskpt                    tensors, sizes, and what else is in the file
  eshkol ckpt ls run.eskpt 'encoder.*'        tensors whose names fit a pattern
  eshkol ckpt ls run.eskpt --json             the same for programs
  eshkol ckpt diff before.eskpt after.eskpt   what differs, and by how much; exit code 1 if something does
  eshkol ckpt verify *.eskpt                  read everything; exit code 1 if a file is damaged"""

DIFFERENT, DAMAGED = 1, 1


def add_commands(commands: Any) -> None:
    ls = commands.add_parser(
        "ls",
        help="list the tensors of a checkpoint, and what else is in it",
        description="List the tensors of a checkpoint, and what else is in it. No tensor is read.",
        epilog=EPILOG,
    )
    ls.add_argument("file", metavar="FILE", help="an .eskpt file")
    ls.add_argument("patterns", nargs="*", metavar="PATTERN", help="names of tensors, or patterns such as 'encoder.*'")
    ls.add_argument("--json", action="store_true", help="print JSON, for programs")
    ls.set_defaults(run=told(_ls))
    diff = commands.add_parser(
        "diff",
        help="compare two checkpoints",
        description="Compare the tensors and states of two checkpoints; the exit code is 1 if they differ.",
        epilog=EPILOG,
    )
    diff.add_argument("before", metavar="FILE", help="an .eskpt file")
    diff.add_argument("after", metavar="FILE2", help="another")
    diff.add_argument(
        "--tolerance", type=float, default=0.0, metavar="X", help="numbers that differ by X or less are equal"
    )
    diff.set_defaults(run=told(_diff))
    verify = commands.add_parser(
        "verify",
        help="read all of a checkpoint, and compare its checksums",
        description="Read all of each checkpoint and compare its checksums; the exit code is 1 if one is damaged.",
        epilog=EPILOG,
    )
    verify.add_argument("files", nargs="+", metavar="FILE", help="an .eskpt file")
    verify.set_defaults(run=told(_verify))


def told(command: Callable[[argparse.Namespace], int | None]) -> Callable[[argparse.Namespace], int | None]:
    """A command whose errors show no line of a program: there is none."""

    def run(options: argparse.Namespace) -> int | None:
        from eshkol.errors import CheckpointError

        try:
            return command(options)
        except CheckpointError as error:
            raise CheckpointError(error.message, hint=error.hint) from None

    return run


def _printable(text: str) -> str:
    """A name from a file, without what a terminal would obey."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _shape(entry: Entry) -> str:
    return f"{entry.dtype.rstrip('_')}[{', '.join(map(str, entry.shape))}]"


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _brief(value: Any, width: int = 70) -> str:
    text = _printable(repr(value))
    return text if len(text) <= width else text[: width - 3] + "..."


# --- ls -----------------------------------------------------------------------------------------------------------


def _ls(options: argparse.Namespace) -> int | None:
    from eshkol.io import Checkpoint

    with Checkpoint(options.file, mmap=True) as file:
        entries = [file.tensors[name] for name in file.names(*options.patterns)]
        if options.json:
            print(json.dumps(_as_json(file, entries), indent=2))
            return None
        rows = [(_printable(e.name), _shape(e), _bytes(e.size), _packed(e)) for e in entries]
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
        for name, shape, size, packed in rows:
            print(f"{name:{widths[0]}}  {shape:{widths[1]}}  {size:>{widths[2]}}{packed}")
        count = sum(_count(e.shape) for e in entries)
        tensors = f"{len(entries)} tensor{'' if len(entries) == 1 else 's'}"
        print(f"{tensors}, {count} numbers, {_bytes(sum(e.size for e in entries))}; the file: {_bytes(file.size)}, "
              f"format {file.version}, by {_printable(file.writer) or 'unknown'}")  # fmt: skip
        for key, value in file.raw_metadata.items():
            said = _architecture(value) if key == "architecture" else _summary(value)
            print(f"  {_printable(str(key))}: {said}")
    return None


def _count(shape: Iterable[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _packed(entry: Entry) -> str:
    return f"  zstd, {_bytes(entry.stored)}" if entry.compressed else ""


def _summary(value: Any) -> str:
    """A part of the metadata in a line: a state by its size, anything else itself."""
    references = list(_references(value))
    if references:
        return f"{len(references)} tensor{'' if len(references) == 1 else 's'}"
    return _brief(value)


def _architecture(value: Any) -> str:
    """What can be made from the file alone, a model and an optimizer, or why not."""

    def inside(found: Any, *path: str) -> Any:
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    said = {
        "": inside(value, "model", "made", "class"), "with ": inside(value, "optimizer", "class"),
        "no model: ": inside(value, "unknown", "model"), "no optimizer: ": inside(value, "unknown", "optimizer"),
    }  # fmt: skip
    return " ".join(f"{word}{_printable(text)[:100]}" for word, text in said.items() if isinstance(text, str))


def _references(value: Any) -> Iterable[str]:
    from eshkol.io.msgpack import Reference

    if isinstance(value, Reference):
        yield value.name
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _references(item)


def _as_json(file: Checkpoint, entries: list[Entry]) -> dict[str, Any]:
    return {
        "file": file.path,
        "format": file.version,
        "writer": file.writer,
        "bytes": file.size,
        "parts": {str(key): _summary(value) for key, value in file.raw_metadata.items()},
        "tensors": [
            {
                "name": e.name, "dtype": e.dtype.rstrip("_"), "shape": list(e.shape), "bytes": e.size,
                "offset": e.offset, "stored": e.stored, "crc64": f"{e.checksum:016x}",
            }
            for e in entries
        ],
    }  # fmt: skip


# --- diff ---------------------------------------------------------------------------------------------------------


def _diff(options: argparse.Namespace) -> int | None:
    from eshkol.io import Checkpoint

    with Checkpoint(options.before, mmap=True) as before, Checkpoint(options.after, mmap=True) as after:
        lines = [*_tensor_lines(before, after, options.tolerance), *_state_lines(before, after)]
    for line in lines:
        print(line)
    if not lines:
        print("no difference")
    return DIFFERENT if lines else None


def _tensor_lines(before: Checkpoint, after: Checkpoint, tolerance: float) -> Iterable[str]:
    for name, entry in before.tensors.items():
        shown = _printable(name)
        if name not in after:
            yield f"- {shown}  {_shape(entry)}"
            continue
        other = after.tensors[name]
        if (entry.dtype, entry.shape) != (other.dtype, other.shape):
            yield f"~ {shown}  {_shape(entry)} became {_shape(other)}"
        elif said := _difference(before, after, name, tolerance):
            yield f"~ {shown}  {said}"
    for name, entry in after.tensors.items():
        if name not in before:
            yield f"+ {_printable(name)}  {_shape(entry)}"


def _difference(before: Checkpoint, after: Checkpoint, name: str, tolerance: float) -> str:
    """How the values of two tensors differ; nothing where they do not."""
    import numpy as np

    from eshkol.io.eskpt import as_bytes

    a, b = before.array(name), after.array(name)
    if np.array_equal(as_bytes(a), as_bytes(b)):
        return ""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(wide) - b.astype(wide))
        same = (a == b) | (np.isnan(a.astype(wide)) & np.isnan(b.astype(wide)))
        changed = ~(same | (apart <= tolerance))
    if not changed.any():
        return "" if tolerance else "the same numbers, in other bits"
    return f"{int(changed.sum())} of {a.size} numbers differ, by up to {float(np.max(apart[changed])):.6g}"


def _state_lines(before: Checkpoint, after: Checkpoint) -> Iterable[str]:
    yield from _compared("", before.raw_metadata, after.raw_metadata)


def _compared(path: str, a: Any, b: Any) -> Iterable[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            where = f"{path}/{_printable(str(key))}"
            if key not in b:
                yield f"- {where[1:]}: {_summary(a[key])}"
            else:
                yield from _compared(where, a[key], b[key])
        yield from (f"+ {path[1:]}{'/' if path else ''}{_printable(str(key))}: {_summary(b[key])}"
                    for key in b if key not in a)  # fmt: skip
    elif isinstance(a, list | tuple) and type(a) is type(b) and len(a) == len(b):
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _compared(f"{path}/{k}", x, y)
    elif a != b and not (a != a and b != b):
        yield f"~ {path[1:]}: {_brief(a, 40)} became {_brief(b, 40)}"


# --- verify -------------------------------------------------------------------------------------------------------


def _verify(options: argparse.Namespace) -> int | None:
    from eshkol.errors import CheckpointError
    from eshkol.io import Checkpoint

    damaged = 0
    for path in options.files:
        try:
            with Checkpoint(path, mmap=False) as file:
                file.verify()
                print(f"{path}: whole, {len(file)} tensors, {_bytes(file.size)}")
        except CheckpointError as error:
            damaged += 1
            print(f"{path}: {error.message}")
    return DAMAGED if damaged else None
