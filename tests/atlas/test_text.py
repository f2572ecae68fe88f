"""The text form: assemble and disassemble are inverse, numbers are exact, and errors point at the place."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instructions_of, numbers, programs

from batches import in_batches, of_each
from effort import examples
from eshkol.atlas.isa import Kind, Opcode
from eshkol.atlas.operands import (
    BufferOffset,
    ClassOffset,
    Immediate,
    Indexed,
    PoolOffset,
    Register,
    RegisterIndirect,
    Shared,
    SpecialRegister,
)
from eshkol.atlas.program import ParamKind, Program, disassemble
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.writing import format_instruction
from eshkol.errors import IsaError, Span


def only(source: str):
    """The one instruction of a source."""
    (instruction,) = assemble(source).instructions
    return instruction


def immediate(ty: Type, text: str) -> Immediate:
    return only(f"MOV_IMM.{ty} r0, {text}").value


# --- there and back -------------------------------------------------------------------------------


@examples(150, 30)
@given(programs())
def test_text_round_trip(program: Program) -> None:
    text = disassemble(program)
    again = assemble(text)
    assert list(map(format_instruction, again.instructions)) == list(map(format_instruction, program.instructions))
    assert dict(again.labels) == dict(program.labels)
    assert (again.params, again.entry, again.name) == (program.params, program.entry, program.name)
    assert dict(again.metadata) == dict(program.metadata)
    assert again == program
    assert disassemble(again) == text, "the text is a fixed point"


@pytest.mark.parametrize("op", ROWS.values(), ids=str)
@settings(max_examples=6)
@given(data=st.data())
def test_every_row_round_trips(op: Opcode, data: st.DataObject) -> None:
    program = Program((data.draw(instructions_of(op)),))
    assert Program((only(format_instruction(program.instructions[0])),)) == program  # by digest: NaN equals NaN


@in_batches("op", ROWS.values())
def test_mnemonics_types_and_choices_are_read_in_any_case(op: Opcode) -> None:
    suffixes = [op.name]
    for f in op.fields:
        if f.kind is Kind.TYPE:
            suffixes.append(next(t.name for t in Type if f.name != "ty" or t in op.types))
        elif f.kind is Kind.IMMEDIATE:
            suffixes.append("F32")
        elif f.kind is Kind.CHOICE:
            suffixes.append(next(iter(f.choices)).name)
    operands = {
        Kind.DEF: "r1", Kind.USE: "r2", Kind.PDEF: "p1", Kind.PUSE: "p2", Kind.LABEL: "here", Kind.POOL: "q",
        Kind.READ: "[x]", Kind.WRITE: "[y]", Kind.UPDATE: "[z]", Kind.TRIPS: "3", Kind.IMMEDIATE: "1",
    }  # fmt: skip
    named = {Kind.COUNT: "2", Kind.REAL: "0.5", Kind.FLAG: "true", Kind.COUNTS: "(1, 1)", Kind.PAIRS: "((0, 0))"}
    parts = [operands[f.kind] for f in op.fields if f.kind in operands and not f.is_named]
    parts += [f"{f.name}={(operands | named)[f.kind]}" for f in op.fields if f.is_named]
    mnemonic, rest = ".".join(suffixes), ", ".join(parts)
    expected = only(f"{mnemonic} {rest}")
    assert expected.op is op
    for spelling in (mnemonic.lower(), mnemonic.upper(), mnemonic.swapcase()):
        assert only(f"{spelling} {rest}") == expected


def test_the_whole_of_the_syntax_in_one_program() -> None:
    program = assemble(
        """
        ; a comment before everything
        .program "two words"          ; comments may follow anything
        .entry start
        .meta "a key" "quotes \\" and ; no comment \\n"
        .meta plain ""
        .buffer x F32 16
        .buffer y U8
        .scalar a I64
        .pool q
        helper: RET
        start: also: LDG.F32 r0, [x+r255*4]
                CALL helper ;;; again
        end:
        """
    )
    assert (program.name, program.entry) == ("two words", "start")
    assert dict(program.metadata) == {"a key": 'quotes " and ; no comment \n', "plain": ""}
    assert [(p.name, p.kind, p.ty, p.count) for p in program.params] == [
        ("x", ParamKind.BUFFER, Type.F32, 16),
        ("y", ParamKind.BUFFER, Type.U8, None),
        ("a", ParamKind.SCALAR, Type.I64, None),
        ("q", ParamKind.POOL, None, None),
    ]
    assert dict(program.labels) == {"helper": 0, "start": 1, "also": 1, "end": 3}
    assert [i.op.name for i in program.instructions] == ["RET", "LDG", "CALL"]


@pytest.mark.parametrize("source", ["", "\n", " \t\r\n", "; only a comment", ";", "\n;\n\n"])
def test_nothing_is_a_program(source: str) -> None:
    assert assemble(source) == Program()


def test_line_ends_of_any_kind_are_read() -> None:
    assert assemble("EXIT\r\nEXIT\r\n") == assemble("EXIT\nEXIT") == assemble("  EXIT\t;x\n\n EXIT  \n")


def test_spans_say_where_instructions_stand() -> None:
    first, second = assemble("EXIT\n  ADD r0,  r1, r2 ; sum", "demo.atlas").instructions
    assert (first.span.line, first.span.column, first.span.length) == (1, 1, 4)
    assert (second.span.file, second.span.line, second.span.column) == ("demo.atlas", 2, 3)
    assert second.span.length == len("ADD r0,  r1, r2")


def test_program_shows_as_its_text() -> None:
    source = '.program "main"\n    EXIT\n'
    assert str(assemble(source)) == source


# --- addresses ------------------------------------------------------------------------------------

ADDRESSES = {
    "[x]": BufferOffset("x"),
    "[x+0]": BufferOffset("x"),
    "[x+16]": BufferOffset("x", 16),
    "[ x + 16 ]": BufferOffset("x", 16),
    "[x+0x10]": BufferOffset("x", 16),
    "[x+16-4]": BufferOffset("x", 12),
    "[x+r3*4]": Indexed(BufferOffset("x"), Register(3), 4),
    "[x+r3]": Indexed(BufferOffset("x"), Register(3), 1),
    "[x+16+r3*4]": Indexed(BufferOffset("x", 16), Register(3), 4),
    "[x+r3*4+16]": Indexed(BufferOffset("x", 16), Register(3), 4),
    "[x + 8 + r3 * 4 + 8]": Indexed(BufferOffset("x", 16), Register(3), 4),
    "[pool q]": PoolOffset("q"),
    "[pool q+8+r0*1]": Indexed(PoolOffset("q", 8), Register(0), 1),
    "[class 5+16]": ClassOffset(5, 16),
    "[class 5 + 16]": ClassOffset(5, 16),
    "[class 0x5f+r1*8]": Indexed(ClassOffset(95), Register(1), 8),
    "[r7]": RegisterIndirect(Register(7)),
    "[ r255 ]": RegisterIndirect(Register(255)),
    "[R7]": BufferOffset("R7"),  # a name: registers are written small
}


@pytest.mark.parametrize(("text", "address"), ADDRESSES.items())
def test_addresses(text: str, address: object) -> None:
    instruction = only(f"LDG.F32 r0, {text}")
    assert instruction.src == address
    assert only(format_instruction(instruction)) == instruction


def test_shared_addresses() -> None:
    assert only("LDS.F32 r0, [shared]").src == Shared()
    assert only("LDS.F32 r0, [shared+4+r2*8]").src == Indexed(Shared(4), Register(2), 8)


@pytest.mark.parametrize("name", ["inf", "nan", "R5", "P3", "e5", "x0", "true", "F32", "ADD", "r", "p1x", "_"])
def test_names_that_look_like_something_else(name: str) -> None:
    source = f".buffer {name} F32\n{name}: LDG.F32 r0, [{name}]\nLDG.F32 r1, [{name}+r0*4]\nBRA {name}\n"
    program = assemble(source)
    assert [p.name for p in program.params] == [name]
    assert program.instructions[0].src == BufferOffset(name)
    assert program.instructions[2].target.name == name
    assert assemble(disassemble(program)) == program


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ty", [t for t in Type if t.is_integer], ids=str)
def test_extreme_integers(ty: Type) -> None:
    for value in (ty.min_value, ty.max_value, 0, 1):
        assert immediate(ty, str(value)).value == value
        assert immediate(ty, hex(value)).value == value
        assert immediate(ty, hex(value).upper().replace("X", "x")).value == value
        assert only(format_instruction(only(f"MOV_IMM.{ty} r0, {value}"))).value.value == value
    for value in (ty.min_value - 1, ty.max_value + 1):
        with pytest.raises(IsaError, match="does not fit"):
            immediate(ty, str(value))


@pytest.mark.parametrize("ty", [t for t in Type if t.is_float], ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_floats_read_back_to_the_same_bits(ty: Type, data: st.DataObject) -> None:
    value = Immediate(ty, data.draw(numbers(ty)))
    again = immediate(ty, str(value))
    assert again == value
    assert again.array().tobytes() == value.array().tobytes()


SPECIAL_FLOATS = {
    "0.0": 0.0, "-0.0": -0.0, "+0": 0.0, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan,
    "-nan": math.nan, "1.": 1.0, ".5": 0.5, "-.5e1": -5.0, "1E3": 1000.0, "0x10": 16.0, "7": 7.0, "1e999": math.inf,
    "-1e999": -math.inf, "1" + "0" * 400: math.inf, "-1" + "0" * 400: -math.inf,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SPECIAL_FLOATS.items(), ids=lambda v: str(v)[:12])
@of_each("ty", [Type.F16, Type.BF16, Type.F32, Type.F64])
def test_special_floats(ty: Type, text: str, value: float) -> None:
    found = immediate(ty, text)
    assert found.array().tobytes() == np.array([value]).astype(ty.dtype).tobytes(), "also the sign of zero"
    assert immediate(ty, str(found)) == found


SUBNORMALS = {Type.F16: 2.0**-24, Type.BF16: 2.0**-133, Type.F32: 2.0**-149, Type.F64: 2.0**-1074}
LARGEST = {
    Type.F16: 65504.0,
    Type.BF16: 3.3895313892515355e38,
    Type.F32: 3.4028234663852886e38,
    Type.F64: 1.7976931348623157e308,
}


@pytest.mark.parametrize("ty", SUBNORMALS, ids=str)
def test_the_least_and_greatest_floats(ty: Type) -> None:
    for value in (SUBNORMALS[ty], -SUBNORMALS[ty], LARGEST[ty], -LARGEST[ty]):
        written = Immediate(ty, value)
        assert written.value == value, "nothing is lost on the way in"
        assert immediate(ty, str(written)).value == value


def test_negative_zero_is_not_zero_and_nan_is_itself() -> None:
    assert immediate(Type.F32, "-0.0") != immediate(Type.F32, "0.0")
    assert immediate(Type.F32, "nan") == immediate(Type.F32, "-nan")
    assert assemble("MOV_IMM.F32 r0, -0.0").digest != assemble("MOV_IMM.F32 r0, 0.0").digest


def test_real_operands_keep_every_bit() -> None:
    line = "GEMM.F64 [c], [a], [b], m=1, n=1, k=1, alpha={}, beta={}"
    for value in (0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf):
        assert only(line.format(repr(value), repr(-value))).alpha.hex() == value.hex()
    assert math.isnan(only(line.format("nan", 1)).alpha)
    assert only(line.format("1" + "0" * 400, 1)).alpha == math.inf


def test_named_operands_come_in_any_order_and_may_be_left_out() -> None:
    full = only("GEMM.F32 [c], [a], [b], m=1, n=2, k=3, alpha=1.0, beta=0.0")
    assert only("GEMM.F32 k=3, [c], n=2, [a], [b], m=1") == full
    assert only("BarSync") == only("BarSync id=0") != only("BarSync id=1")
    assert only("SREG.laney r0").which is SpecialRegister.LaneY


# --- errors ---------------------------------------------------------------------------------------

# What is wrong, what the message must say, and where the caret must stand (line, column), both from 1.
BAD_SOURCES = [
    # characters and tokens
    ("EXIT\n  ADD r0, @1", "cannot read '@'", 2, 11),
    ("ADD r0, r1, r2 #", "cannot read '#'", 1, 16),
    ('.program "open', "cannot read '\"'", 1, 10),
    ("MOV r0, \x00", "cannot read '\\x00'", 1, 9),
    ("MOV r0, é", "cannot read 'é'", 1, 9),
    ("MOV r0, \ud800", "cannot read '\\ud800'", 1, 9),
    ("MOV r0,\u2028r1", "cannot read '\\u2028'", 1, 8),
    ("MOV_IMM.I32 r0, ٣", "cannot read '٣'", 1, 17),
    # mnemonics
    ("EXIT\nEXIT\n  FROB r0", "expected an instruction, found 'FROB'", 3, 3),
    ("5", "expected an instruction, found '5'", 1, 1),
    ("[x]", "expected an instruction, found '['", 1, 1),
    ("a: b: 7", "expected an instruction, found '7'", 1, 7),
    # suffixes
    ("LDG r0, [x]", "expected '.' and the type, found 'r0'", 1, 5),
    ("LDG", "expected '.' and the type, found the end of the line", 1, 4),
    ("LDG. r0, [x]", "unknown type 'r0'", 1, 6),
    ("LDG.", "expected the ty, found the end of the line", 1, 5),
    ("LDG.F31 r0, [x]", "unknown type 'F31'", 1, 5),
    ("CVT.F32.Q8 r0, r1", "unknown type 'Q8'", 1, 9),
    ("MOV_IMM r0, 1", "expected '.' and the type", 1, 9),
    ("SETcc.QQ p0, r1, r2", "'QQ' is no cond", 1, 7),
    ("SETcc p0, r1, r2", "expected '.' and the cond", 1, 7),
    ("ADD.F32 r0, r1, r2", "expected a register, r0 to r255, found '.'", 1, 4),
    # registers and predicates
    ("ADD r0, r1, r256", "register r256 does not exist", 1, 13),
    ("ADD r0, r1, r99999999999", "expected a register", 1, 13),
    ("ADD r0, r1, R2", "expected a register, r0 to r255, found 'R2'", 1, 13),
    ("ADD r0, r1, 5", "expected a register, r0 to r255, found '5'", 1, 13),
    ("ADD r0, r1, p0", "expected a register, r0 to r255, found 'p0'", 1, 13),
    ("SETcc.LT p16, r1, r2", "predicate p16 does not exist", 1, 10),
    ("SETcc.LT r0, r1, r2", "expected a predicate, p0 to p15, found 'r0'", 1, 10),
    # separators and numbers of operands
    ("ADD r0 r1, r2", "expected ',', found 'r1'", 1, 8),
    ("ADD r0,, r1", "expected a register, r0 to r255, found ','", 1, 8),
    ("ADD r0, r1,", "expected a register, r0 to r255, found the end of the line", 1, 12),
    ("ADD r0, r1, r2,", "expected another operand, found the end of the line", 1, 16),
    ("  ADD r0, r1", "ADD needs the operand 'rhs'", 1, 3),
    ("ADD r0, r1, r2, r3", "expected the end of the line, found 'r3'", 1, 17),
    ("EXIT r0", "expected the end of the line, found 'r0'", 1, 6),
    ("EXIT EXIT", "expected the end of the line, found 'EXIT'", 1, 6),
    ("ADD r252, r0, r1", "cannot write the special register r252", 1, 1),
    # immediates
    ("MOV_IMM.I8 r0, 128", "128 does not fit I8", 1, 16),
    ("MOV_IMM.U8 r0, -1", "-1 does not fit U8", 1, 16),
    ("MOV_IMM.I32 r0, 1.5", "1.5 is not an integer", 1, 17),
    ("MOV_IMM.I32 r0, 1e3", "1000.0 is not an integer", 1, 17),
    ("MOV_IMM.I32 r0, inf", "inf is not an integer", 1, 17),
    ("MOV_IMM.F32 r0, one", "expected a number, found 'one'", 1, 17),
    ("MOV_IMM.F32 r0", "MOV_IMM needs the operand 'value'", 1, 1),
    ("MOV_IMM.F32 r0,", "expected a number, found the end of the line", 1, 16),
    ("MOV_IMM.F32 r0, 1.5.5", "expected ',', found '.5'", 1, 20),
    ("MOV_IMM.I4096 r0, " + "9" * 1301, "too many digits", 1, 19),
    # labels, pools, counts, flags, lists
    ("BRA 5", "expected a label, found '5'", 1, 5),
    ("BRA a, r0", "expected a predicate", 1, 8),
    ("PoolFree 7", "expected the name of a pool, found '7'", 1, 10),
    ("LOOP r0, 4294967296", "operand 'iterations' must be between 0 and 4294967295", 1, 1),
    ("LOOP r0, -1", "operand 'iterations' must be between", 1, 1),
    ("LOOP r0, 1.5", "expected an integer, found '1.5'", 1, 10),
    ("BarSync id=16", "operand 'id' must be between 0 and 15", 1, 1),
    ("BarSync id=", "expected an integer, found the end of the line", 1, 12),
    ("BarSync id=one", "expected an integer, found 'one'", 1, 12),
    ("BarSync id=1, id=2", "BarSync was given 'id' twice", 1, 15),
    ("BarSync number=1", "BarSync has no operand 'number' to name", 1, 9),
    ("FusedGEMM.F32.F32.Relu [c], bias=[x], bias=[x]", "FusedGEMM was given 'bias' twice", 1, 39),
    ("GEMM.F32 [c], [a], [b], bias=[x], m=1, n=1, k=1", "GEMM has no operand 'bias' to name", 1, 25),
    ("FusedGEMM.F32.F32.Relu [c], bias=x", "expected '[', found 'x'", 1, 34),
    ("BarSync 1", "expected the end of the line, found '1'", 1, 9),
    ("FFT.F32 [y], [x], n=4, inverse=maybe", "expected true or false, found 'maybe'", 1, 32),
    ("AllReduce.F32.Sum [x], n=4, devices=0", "expected '(', found '0'", 1, 37),
    ("AllReduce.F32.Sum [x], n=4, devices=(0", "expected ',', found the end of the line", 1, 39),
    ("AllReduce.F32.Sum [x], n=4, devices=(0 1)", "expected ',', found '1'", 1, 40),
    ("TensorContract.F32 [c], [a], [b], shape_a=(2), shape_b=(2), contract_dims=(0, 0)", "expected '('", 1, 76),
    ("TensorContract.F32 [c], [a], [b], shape_a=(2), shape_b=(2), contract_dims=((0))", "pairs of integers", 1, 1),
    ("PoolAlloc q, size=0", "operand 'size' must be between 1 and", 1, 1),
    # addresses
    ("LDG.F32 r0, x", "expected '[', found 'x'", 1, 13),
    ("LDG.F32 r0, []", "expected a buffer, 'shared', 'pool', 'class' or a register, found ']'", 1, 14),
    ("LDG.F32 r0, [x", "expected '+', found the end of the line", 1, 15),
    ("LDG.F32 r0, [x+", "expected a register", 1, 16),
    ("LDG.F32 r0, [x+y]", "expected a register, r0 to r255, found 'y'", 1, 16),
    ("LDG.F32 r0, [x+1.5]", "expected an offset in bytes, found '+1.5'", 1, 15),
    ("LDG.F32 r0, [x+r1*2.5]", "expected a scale in bytes, found '2.5'", 1, 19),
    ("LDG.F32 r0, [x+r1+r2]", "expected ']', found 'r2'", 1, 19),
    ("LDG.F32 r0, [x 4]", "expected '+', found '4'", 1, 16),
    ("LDG.F32 r0, [x-4]", "an address with an offset from 0 to", 1, 1),
    ("LDG.F32 r0, [x+r1*0]", "an address with a scale from 1 to", 1, 1),
    ("LDG.F32 r0, [class]", "expected a class number, found ']'", 1, 19),
    ("LDG.F32 r0, [pool]", "expected the name of a pool, found ']'", 1, 18),
    ("LDG.F32 r0, [r256]", "register r256 does not exist", 1, 14),
    ("LDG.F32 r0, [r1+4]", "expected ']', found '+4'", 1, 16),
    # labels and directives
    ("a:\nEXIT\na:", "the label 'a' stands in two places", 3, 1),
    ("r1: EXIT", "'r1' cannot name a label", 1, 1),
    ("EXIT\n  shared: EXIT", "'shared' cannot name a label", 2, 3),
    (".frob", "expected a directive, found 'frob'", 1, 2),
    (".", "expected a directive, found the end of the line", 1, 2),
    (".entry", "expected a label, found the end of the line", 1, 7),
    (".entry a b", "expected the end of the line, found 'b'", 1, 10),
    (".program", "expected a name, found the end of the line", 1, 9),
    ('.program "\\q"', "expected a string in JSON's escapes", 1, 10),
    (".meta key", "expected a string in quotes, found the end of the line", 1, 10),
    (".meta key value", "expected a string in quotes, found 'value'", 1, 11),
    (".buffer", "expected the name of the buffer", 1, 8),
    (".buffer x", "expected a type, found the end of the line", 1, 10),
    (".buffer x F31", "unknown type 'F31'", 1, 11),
    (".buffer x F32 many", "expected a count of elements, found 'many'", 1, 15),
    (".buffer x F32 1.5", "expected a count of elements, found '1.5'", 1, 15),
    (".buffer x F32 -1", "'x' cannot have -1 elements", 1, 9),
    (".buffer x F32 4 4", "expected the end of the line, found '4'", 1, 17),
    (".buffer r1 F32", "'r1' cannot name a parameter", 1, 9),
    (".scalar a F32 4", "expected the end of the line, found '4'", 1, 15),
    (".pool q F32", "expected the end of the line, found 'F32'", 1, 9),
    (".pool class", "'class' cannot name a parameter", 1, 7),
    (".buffer x F32\n.scalar x F32", "two parameters are named 'x'", 2, 9),
]


@of_each("source, message, line, column", BAD_SOURCES)
def test_syntax_errors_say_what_and_where(source: str, message: str, line: int, column: int) -> None:
    with pytest.raises(IsaError) as caught:
        assemble(source, "bad.atlas")
    error = caught.value
    assert message in error.message
    assert error.span is not None, "an error in a text has a place in it"
    assert (error.span.file, error.span.line, error.span.column) == ("bad.atlas", line, column)
    assert error.span.text == source.split("\n")[line - 1]
    assert error.span.length >= 1


def test_the_caret_stands_under_the_culprit() -> None:
    with pytest.raises(IsaError) as caught:
        assemble("\tADD r0, r1, r256", "bad.atlas")
    shown = str(caught.value).split("\n")
    assert shown[1] == "  --> bad.atlas:1:14"
    place = shown[3].index("^")
    assert shown[2][place : place + 4] == "r256"
    assert shown[3].strip() == "^~~~"


@pytest.mark.parametrize("place", [0, 1, 99, 100, 5000, 9999])
def test_of_a_very_long_line_only_the_part_around_the_culprit_is_shown(place: int) -> None:
    text = "." * place + "r256" + "." * (10_000 - place)
    shown = Span("long.atlas", 1, place + 1, 4, text).render().split("\n")
    assert max(map(len, shown)) < 220
    caret = shown[2].index("^")
    assert shown[1][caret : caret + 4] == "r256"
    assert shown[2].strip() == "^~~~"
    assert shown[1].endswith("…") == (place < 9900)
    assert Span("long.atlas", 1, 1, 10_000, text).render().count("~") < 200


@in_batches("op", ROWS.values())
def test_a_near_miss_is_told_the_right_mnemonic(op: Opcode) -> None:
    """A letter too many is corrected for every row, unless the misspelling happens to be nearer to another row."""
    with pytest.raises(IsaError) as caught:
        assemble(f"{op.name}x r0")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean ")
    if len(op.name) > 3:
        assert caught.value.hint == f"did you mean {op.name}?"


def test_nothing_is_suggested_for_nonsense() -> None:
    with pytest.raises(IsaError) as caught:
        assemble("qqqqqqqqqqqq r0")
    assert caught.value.hint is None


HINTS = [
    ("ADD r0, r1", "ADD dst, lhs, rhs"),
    ("LDG.F31 r0, [x]", "types are"),
    ("SETcc.QQ p0, r1, r2", "one of EQ NE LT LE GT GE"),
    (".frob", ".buffer"),
    ("ADD r252, r0, r1", "read-only"),
    ("BarSync id=1, id=2", "BarSync [id]"),
    ("ADD r0, r1, r256", "r0 to r255"),
]


@pytest.mark.parametrize(("source", "hint"), HINTS)
def test_hints_say_how_to_go_on(source: str, hint: str) -> None:
    with pytest.raises(IsaError) as caught:
        assemble(source)
    assert hint in (caught.value.hint or "")


def test_a_source_beyond_the_limit_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eshkol.atlas.text.SOURCE_LIMIT", 10)
    with pytest.raises(IsaError, match="the limit is 10"):
        assemble("EXIT ; long")
