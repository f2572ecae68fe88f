"""The assembler text form, read: `assemble` is the inverse of `disassemble`, which writes it (`program.py`).

    .buffer x F32 1024        ; parameters first: buffers, scalars, pools
    .scalar a F32
    loop:                     ; a label
        LDG.F32 r0, [x+r255*4]        ; types and choices are suffixes, addresses stand in brackets
        GEMM.F32 [c], [a], [b], m=8, n=8, k=8   ; counts and numbers are named

How each operand is written follows from its `Kind` in the table; this module names no instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn, TypeVar

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import MEMORY_KINDS, SUFFIX_KINDS, Field, Instruction, Kind, Opcode, usage
from eshkol.atlas.operands import (
    Address,
    BufferOffset,
    ClassOffset,
    Immediate,
    Indexed,
    Label,
    PoolOffset,
    Predicate,
    Register,
    RegisterIndirect,
    Shared,
    StaticAddress,
    to_float,
)
from eshkol.atlas.program import Param, ParamKind, Program
from eshkol.atlas.table import BY_FOLDED_NAME
from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span

T = TypeVar("T")
SOURCE_LIMIT = 64 << 20  # characters
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|;.*)
      | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|[+-](?:inf|nan)\b)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<mark>[][(),.:=+*-])""",
    re.VERBOSE,
)
_DIGITS_LIMIT = 1300  # more digits than the widest integer has


@dataclass(frozen=True, slots=True)
class TextToken:
    kind: str
    text: str
    column: int  # 0-based


class LineParser:
    """A cursor over the tokens of one line; everything it cannot read is an IsaError with a caret."""

    def __init__(self, text: str, file: str, line: int) -> None:
        self.text, self.file, self.line = text, file, line
        self.tokens: list[TextToken] = []
        self.position = 0
        column = 0
        while column < len(text):
            match = _TOKEN.match(text, column)
            if match is None:
                self.position = len(self.tokens)
                raise IsaError(f"cannot read {text[column]!r} here", span=self._span(column, 1))
            kind = match.lastgroup
            assert kind is not None
            if kind != "space":
                self.tokens.append(TextToken(kind, match.group(), column))
            column = match.end()

    def _span(self, column: int, length: int) -> Span:
        return Span(self.file, self.line, column + 1, max(length, 1), self.text)

    def span(self) -> Span:
        """Where the next token stands (or the end of the line)."""
        if self.position < len(self.tokens):
            token = self.tokens[self.position]
            return self._span(token.column, len(token.text))
        return self._span(len(self.text.rstrip()), 1)

    def whole_span(self) -> Span:
        first, last = self.tokens[0], self.tokens[-1]
        return self._span(first.column, last.column + len(last.text) - first.column)

    def fail(self, wanted: str, hint: str | None = None) -> NoReturn:
        word = self.peek()
        found = f"'{word if len(word) <= 60 else word[:57] + '...'}'" if word else "the end of the line"
        raise IsaError(f"expected {wanted}, found {found}", span=self.span(), hint=hint)

    def peek(self, ahead: int = 0) -> str:
        place = self.position + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def peek_kind(self, ahead: int = 0) -> str:
        place = self.position + ahead
        return self.tokens[place].kind if place < len(self.tokens) else ""

    def accept(self, mark: str) -> bool:
        if self.peek() == mark and self.peek_kind() != "string":
            self.position += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail(f"'{mark}'")

    def take(self, kind: str, wanted: str) -> str:
        if self.peek_kind() != kind:
            self.fail(wanted)
        self.position += 1
        return self.tokens[self.position - 1].text

    def name(self, wanted: str) -> str:
        return self.take("name", wanted)

    def number(self, wanted: str = "a number") -> int | float:
        text = self.peek()
        if self.peek_kind() != "number" and text not in ("inf", "nan"):  # these two may also be names
            self.fail(wanted)
        if len(text) > _DIGITS_LIMIT:
            raise IsaError("this number has too many digits", span=self.span())
        self.position += 1
        if "0x" in text.lower():
            return int(text, 16)
        try:
            return int(text)
        except ValueError:
            return float(text)

    def integer(self, wanted: str = "an integer") -> int:
        if self.peek_kind() == "number":
            before = self.position
            value = self.number()
            if isinstance(value, int):
                return value
            self.position = before
        self.fail(wanted)

    def string(self, wanted: str) -> str:
        if self.peek_kind() != "string":
            self.fail(wanted)
        try:
            value = json.loads(self.peek())
        except ValueError:
            self.fail("a string in JSON's escapes")
        self.position += 1
        assert isinstance(value, str)
        return value

    def end(self) -> None:
        if self.position < len(self.tokens):
            self.fail("the end of the line")

    # --- operands ---------------------------------------------------------------------------------

    def register(self) -> Register:
        if re.fullmatch(r"r[0-9]{1,9}", self.peek()):
            return self.guarded(lambda: Register(int(self.name("a register")[1:])))
        self.fail("a register, r0 to r255")

    def predicate(self) -> Predicate:
        if re.fullmatch(r"p[0-9]{1,9}", self.peek()):
            return self.guarded(lambda: Predicate(int(self.name("a predicate")[1:])))
        self.fail("a predicate, p0 to p15")

    def guarded(self, make: Callable[[], T], span: Span | None = None) -> T:
        """The value of make(), with errors placed at the token it starts from (or at the span)."""
        span = span or self.span()
        try:
            return make()
        except IsaError as error:
            if error.span is None:
                error.span = span
            raise

    def address(self) -> Address:
        """[x+16+r3*4], [pool q+8], [shared+r1*4], [class 5+16] or [r7]."""
        self.expect("[")
        if re.fullmatch(r"r[0-9]+", self.peek()):
            indirect = RegisterIndirect(self.register())
            self.expect("]")
            return indirect
        word = self.name("a buffer, 'shared', 'pool', 'class' or a register")
        class_id = self.integer("a class number") if word == "class" else 0
        pool = self.name("the name of a pool") if word == "pool" else ""
        offset = 0
        indexed: tuple[Register, int] | None = None
        while not self.accept("]"):
            if self.peek_kind() == "number" and self.peek()[0] in "+-":
                offset += self.integer("an offset in bytes")
                continue
            self.expect("+")
            if self.peek_kind() == "number":
                offset += self.integer("an offset in bytes")
            elif indexed is None:
                register = self.register()
                indexed = register, self.integer("a scale in bytes") if self.accept("*") else 1
            else:
                self.fail("']'")
        base: StaticAddress
        if word == "class":
            base = ClassOffset(class_id, offset)
        elif word == "pool":
            base = PoolOffset(pool, offset)
        else:
            base = Shared(offset) if word == "shared" else BufferOffset(word, offset)
        return Indexed(base, *indexed) if indexed else base

    def counts(self) -> tuple[int, ...]:
        return tuple(self._sequence(self.integer))

    def pairs(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._sequence(self.counts))

    def _sequence(self, item: Any) -> list[Any]:
        self.expect("(")
        items: list[Any] = []
        while not self.accept(")"):
            if items:
                self.expect(",")
                if self.accept(")"):
                    break
            items.append(item())
        return items

    def flag(self) -> bool:
        word = self.name("true or false")
        if word not in ("true", "false"):
            self.position -= 1
            self.fail("true or false")
        return word == "true"

    def operand(self, f: Field) -> Any:
        """An operand of the kind of this field, suffix kinds and immediates excepted."""
        if f.kind in MEMORY_KINDS:
            return self.address()
        if f.kind is Kind.TRIPS:
            return self.integer() if self.peek_kind() == "number" else self.register()
        reader = {
            Kind.DEF: self.register, Kind.USE: self.register, Kind.PDEF: self.predicate, Kind.PUSE: self.predicate,
            Kind.LABEL: lambda: Label(self.name("a label")), Kind.POOL: lambda: self.name("the name of a pool"),
            Kind.COUNT: self.integer, Kind.REAL: lambda: to_float(self.number()), Kind.FLAG: self.flag,
            Kind.COUNTS: self.counts, Kind.PAIRS: self.pairs,
        }[f.kind]  # fmt: skip
        return reader()

    def suffix(self, f: Field) -> Any:
        """A type or choice written after the mnemonic."""
        if not self.accept("."):
            self.fail(f"'.' and the {'type' if f.kind is not Kind.CHOICE else f.name}")
        span, word = self.span(), self.name(f"the {f.name}")
        if f.kind is not Kind.CHOICE:
            try:
                return Type.parse(word)
            except IsaError as error:
                error.span = span
                raise
        assert f.choices is not None
        for member in f.choices:
            if member.name.upper() == word.upper():
                return member
        raise IsaError(f"'{word}' is no {f.name}", span=span, hint="one of " + " ".join(c.name for c in f.choices))

    def instruction(self) -> Instruction:
        start = self.position
        mnemonic = self.name("an instruction")
        op = BY_FOLDED_NAME.get(mnemonic.upper())
        if op is None:
            self.position = start
            self.fail("an instruction", hint=_nearest(mnemonic))
        values: dict[str, Any] = {}
        immediate_ty: Type | None = None
        for f in op.fields:
            if f.kind in SUFFIX_KINDS:
                values[f.name] = self.suffix(f)
            elif f.kind is Kind.IMMEDIATE:
                immediate_ty = self.suffix(f)
        self._operands(op, values, immediate_ty)
        self.end()
        span = self.whole_span()
        return self.guarded(lambda: op(**values, span=span))

    def _immediate(self, ty: Type) -> Immediate:
        return Immediate(ty, self.number())

    def _operands(self, op: Opcode, values: dict[str, Any], immediate_ty: Type | None) -> None:
        positional = [f for f in op.fields if f.kind not in SUFFIX_KINDS and not f.is_named]
        named = {f.name: f for f in op.fields if f.is_named}
        first = True
        while self.peek():
            if not first:
                self.expect(",")
            first = False
            if self.peek_kind() == "name" and self.peek(1) == "=":
                f = named.get(self.peek())
                if f is None:
                    raise IsaError(
                        f"{op.name} has no operand '{self.peek()}' to name", span=self.span(), hint=usage(op)
                    )
                if f.name in values:
                    raise IsaError(f"{op.name} was given '{f.name}' twice", span=self.span(), hint=usage(op))
                self.position += 2
                values[f.name] = self.operand(f)
            elif positional:
                f = positional.pop(0)
                if f.kind is Kind.IMMEDIATE:
                    assert immediate_ty is not None
                    values[f.name] = self.guarded(partial(self._immediate, immediate_ty))
                else:
                    values[f.name] = self.operand(f)
            else:
                self.fail("the end of the line" if self.peek() else "another operand", hint=usage(op))


def _nearest(mnemonic: str) -> str | None:
    close = get_close_matches(mnemonic.upper(), BY_FOLDED_NAME, 1)
    return f"did you mean {BY_FOLDED_NAME[close[0]].name}?" if close else None


def assemble(source: str, file: str = "<text>") -> Program:
    """A program from its text form."""
    if len(source) > SOURCE_LIMIT:
        raise IsaError(f"the source has {len(source)} characters; the limit is {SOURCE_LIMIT}")
    builder = ProgramBuilder()
    for number, text in enumerate(source.split("\n"), start=1):
        line = LineParser(text, file, number)
        while line.peek_kind() == "name" and line.peek(1) == ":":
            builder.span = line.span()
            builder.place(line.name("a label"))
            line.expect(":")
        if line.accept("."):
            builder.span = line.span()
            _directive(line, builder)
            line.end()
        elif line.peek():
            builder.span = None
            builder.emit(line.instruction())
    return builder.build()


def _directive(line: LineParser, builder: ProgramBuilder) -> None:
    """.program, .entry, .meta, .buffer, .scalar or .pool"""
    start = line.position
    word = line.name("a directive")
    kinds = {kind.value: kind for kind in ParamKind}
    if word == "program":
        builder.name = line.string("a name") if line.peek_kind() == "string" else line.name("a name")
    elif word == "entry":
        builder.entry = line.name("a label")
    elif word == "meta":
        key = line.string("a key") if line.peek_kind() == "string" else line.name("a key")
        builder.metadata[key] = line.string("a string in quotes")
    elif word in kinds:
        builder.span = named = line.span()
        name, ty, count = line.name(f"the name of the {word}"), None, None
        if kinds[word] is not ParamKind.POOL:
            ty = line.guarded(lambda: Type.parse(line.name("a type")))
        if kinds[word] is ParamKind.BUFFER and line.peek():
            count = line.integer("a count of elements")
        line.guarded(lambda: builder.declare(Param(name, kinds[word], ty, count)), named)
    else:
        line.position = start
        line.fail("a directive", hint=".program .entry .meta .buffer .scalar .pool")
