"""The JSON form of a program, for machines: `from_json` is the inverse of `to_json`, which writes it (`program.py`).

Counts, numbers, flags and lists are JSON values; registers, labels, addresses, types and choices are the
strings of the text form. How an operand looks follows from its `Kind`; no instruction is named here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Field, Instruction, Kind
from eshkol.atlas.operands import Immediate, shortened, to_float
from eshkol.atlas.program import JSON_VERSION, Param, ParamKind, Program, is_name, to_json
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import LineParser
from eshkol.atlas.types import Type
from eshkol.atlas.writing import NATIVE_KINDS
from eshkol.errors import IsaError, Span

T = TypeVar("T")


def dumps(program: Program) -> str:
    """A program as JSON text."""
    return json.dumps(to_json(program), indent=1)


def parse_json(source: str | bytes, file: str) -> Any:
    """JSON text as values; a syntax error has its line and a caret."""
    try:
        return json.loads(source)
    except json.JSONDecodeError as error:
        lines = error.doc.split("\n")
        span = Span(file, error.lineno, error.colno, 1, lines[error.lineno - 1])
        raise IsaError(f"this is not JSON: {error.msg}", span=span) from None
    except (RecursionError, ValueError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise IsaError(f"{file} is not readable JSON: {what}") from None


def loads(source: str | bytes, file: str = "<json>") -> Program:
    """A program from JSON text."""
    return from_json(parse_json(source, file))


def from_json(data: Any) -> Program:
    """A program from JSON values; whatever is malformed is an IsaError that names its path."""
    _expect(isinstance(data, Mapping), "the program", "an object", data)
    if type(data.get("atlas")) is not int or data["atlas"] != JSON_VERSION:
        raise IsaError(
            f"'atlas' must be {JSON_VERSION}, not {_shown(data.get('atlas'))}", hint="is this an Atlas program?"
        )
    unknown = set(data) - {"atlas", "name", "entry", "metadata", "params", "labels", "code"}
    if unknown:
        raise IsaError(f"a program has no key {min(map(str, unknown))!r}")
    builder = ProgramBuilder(_typed(data, "name", str, "main"))
    entry = data.get("entry")
    _expect(entry is None or (isinstance(entry, str) and is_name(entry)), "entry", "a label or null", entry)
    builder.entry = entry
    metadata = _typed(data, "metadata", dict, {})
    for key, value in metadata.items():
        _expect(isinstance(value, str), f"metadata.{key}", "a string", value)
    builder.metadata = dict(metadata)
    for k, param in enumerate(_typed(data, "params", list, [])):
        _declare(builder, param, f"params[{k}]")
    for k, item in enumerate(_typed(data, "code", list, [])):
        builder.emit(_instruction(item, f"code[{k}]"))
    for name, index in _typed(data, "labels", dict, {}).items():
        place = f"labels.{name}"
        _expect(is_name(name), place, "a name", name)
        inside = isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= len(builder.instructions)
        _expect(inside, place, "the index of an instruction", index)
        builder.labels[name] = index
    return builder.build()


def _expect(holds: bool, path: str, wanted: str, found: Any) -> None:
    if not holds:
        raise _unexpected(path, wanted, found)


def _unexpected(path: str, wanted: str, found: Any) -> IsaError:
    return IsaError(f"{path}: expected {wanted}, found {_shown(found)}")


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # what Python does not print
        text = shortened(value)
    return text if len(text) < 60 else text[:57] + "..."


def _typed(data: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    value = data.get(key, default)
    _expect(isinstance(value, kind), key, f"a {kind.__name__}", value)
    return value


def _at(path: str, make: Callable[[], T]) -> T:
    """make(), with the JSON path put before the message of an error."""
    try:
        return make()
    except IsaError as error:
        message = error.message if error.message.startswith(path) else f"{path}: {error.message}"
        raise IsaError(message, hint=error.hint) from None


def _declare(builder: ProgramBuilder, param: Any, path: str) -> None:
    _expect(isinstance(param, Mapping), path, "an object", param)
    unknown = set(param) - {"name", "kind", "type", "count"}
    if unknown:
        raise IsaError(f"{path}: a parameter has no key {min(map(str, unknown))!r}")
    kinds = {kind.value: kind for kind in ParamKind}
    name, kind, ty, count = (param.get(key) for key in ("name", "kind", "type", "count"))
    _expect(isinstance(name, str), f"{path}.name", "a name", name)
    _expect(isinstance(kind, str) and kind in kinds, f"{path}.kind", "buffer, scalar or pool", kind)
    _expect(ty is None or isinstance(ty, str), f"{path}.type", "a type", ty)
    is_count = isinstance(count, int) and not isinstance(count, bool)
    _expect(count is None or is_count, f"{path}.count", "a count", count)
    _at(path, lambda: builder.declare(Param(name, kinds[kind], None if ty is None else Type.parse(ty), count)))


def _instruction(item: Any, path: str) -> Instruction:
    _expect(isinstance(item, Mapping), path, "an object", item)
    op = ROWS.get(item["op"]) if isinstance(item.get("op"), str) else None
    if op is None:
        raise IsaError(f"{path}.op: expected an instruction, found {_shown(item.get('op'))}")
    values: dict[str, Any] = {}
    for key, value in item.items():
        if key == "op":
            continue
        position = op.positions.get(key) if isinstance(key, str) else None
        if position is None:
            raise IsaError(f"{path}: {op.name} has no operand {key!r}")
        values[key] = _operand(op.fields[position], value, f"{path}.{key}")
    return _at(path, lambda: op(**values))


def _operand(f: Field, value: Any, path: str) -> Any:
    if f.kind is Kind.IMMEDIATE:
        _expect(isinstance(value, Mapping) and isinstance(value.get("type"), str), path, "a typed value", value)
        number = _real(value.get("value"), path)
        return _at(path, lambda: Immediate(Type.parse(value["type"]), number))
    if f.kind is Kind.REAL:
        return to_float(_real(value, path))
    if f.kind in NATIVE_KINDS or (f.kind is Kind.TRIPS and isinstance(value, int)):
        return value
    _expect(isinstance(value, str) and "\n" not in value, path, "a string", value)
    return _at(path, lambda: _from_text(f, value, path))


def _from_text(f: Field, value: str, path: str) -> Any:
    is_suffix = f.kind in (Kind.TYPE, Kind.CHOICE)
    line = LineParser(f".{value}" if is_suffix else value, path, 1)
    result = line.suffix(f) if is_suffix else line.operand(f)
    line.end()
    return result


def _real(value: Any, path: str) -> int | float:
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unexpected(path, "a number", value)
    return value


class KeptProgram(Program):
    """A program by its digest, whose instructions are read when someone asks for them: machines seldom do."""

    @classmethod
    def of(cls, text: str, digest: str, name: str, params: tuple[Param, ...], spans: Mapping[int, Span]) -> KeptProgram:
        """What is known of it at once, the JSON text of all of it, and the spans of instructions, by their places."""
        made = cls.__new__(cls)
        made.__dict__.update(digest=digest, name=name, params=params, text=text, spans=spans)
        return made

    @cached_property
    def _whole(self) -> Program:
        found = loads(self.__dict__["text"], "<kept>")
        if found.digest != self.digest or found.name != self.name or found.params != self.params:
            raise IsaError(f"the program that was kept as '{self.name}' is another one")
        spans: Mapping[int, Span] = self.__dict__["spans"]
        told = [i.with_span(spans[k]) if k in spans else i for k, i in enumerate(found.instructions)]
        return replace(found, instructions=tuple(told))

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        return self._whole.instructions

    @cached_property
    def labels(self) -> Mapping[str, int]:
        return self._whole.labels

    @cached_property
    def entry(self) -> str | None:
        return self._whole.entry

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        return self._whole.metadata
