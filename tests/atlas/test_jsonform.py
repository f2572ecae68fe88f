"""The JSON form: it is inverse, agrees with the text form, has one digest, and says which value is wrong."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import instructions, instructions_of, operands, programs

from batches import of_each
from effort import examples
from eshkol.atlas.isa import REQUIRED, Opcode
from eshkol.atlas.jsonform import dumps, from_json, loads
from eshkol.atlas.operands import Immediate, Register
from eshkol.atlas.program import Param, ParamKind, Program, disassemble, to_json
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span

SAMPLE = """
.program "sample"
.entry start
.meta "by" "hand"
.buffer x F32 16
.scalar a F32
.pool q
start:
    LDG.F32 r0, [x+r255*4]
    MOV_IMM.I64 r1, -5
    SETcc.LT p0, r0, r0
    LOOP r2, 3
    ENDLOOP
    GEMM.F32 [x], [x], [x], m=1, n=1, k=1, alpha=0.5
    TensorContract.F32 [x], [x], [x], shape_a=(2, 3), shape_b=(3, 2), contract_dims=((1, 0))
    FFT.F32 [x], [x], n=4, inverse=true
    PoolLoad.U8 r3, q, offset=1
    BRA start, p0
end:
"""


# --- there and back -------------------------------------------------------------------------------


@examples(150, 30)
@given(programs())
def test_text_program_and_json_agree(program: Program) -> None:
    text, data = disassemble(program), dumps(program)
    from_data = loads(data)
    assert from_data == program
    assert assemble(disassemble(from_data)) == program, "program → JSON → program → text → program"
    assert loads(dumps(assemble(text))) == program, "program → text → program → JSON → program"
    assert dumps(from_data) == data, "the JSON is a fixed point"
    assert disassemble(from_data) == text


@settings(max_examples=50)
@given(programs())
def test_json_is_strict_standard_json(program: Program) -> None:
    """No NaN or Infinity literals, which other JSON readers refuse."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(dumps(program), parse_constant=refuse)
    assert loads(dumps(program).encode()) == program, "bytes are read like text"
    assert from_json(to_json(program)) == program


@pytest.mark.parametrize("op", ROWS.values(), ids=str)
@settings(max_examples=6)
@given(data=st.data())
def test_every_row_round_trips(op: Opcode, data: st.DataObject) -> None:
    program = Program((data.draw(instructions_of(op)),))
    assert loads(dumps(program)) == program


def test_the_form_of_each_kind_of_operand() -> None:
    code = to_json(assemble(SAMPLE))["code"]
    assert code[0] == {"op": "LDG", "ty": "F32", "dst": "r0", "src": "[x+r255*4]"}
    assert code[1] == {"op": "MOV_IMM", "dst": "r1", "value": {"type": "I64", "value": -5}}
    assert code[2] == {"op": "SETcc", "cond": "LT", "pred": "p0", "lhs": "r0", "rhs": "r0"}
    assert code[3] == {"op": "LOOP", "counter": "r2", "iterations": 3}
    assert code[5]["alpha"] == 0.5
    assert code[6]["shape_a"] == [2, 3]
    assert code[6]["contract_dims"] == [[1, 0]]
    assert code[7]["inverse"] is True
    assert code[8] == {"op": "PoolLoad", "ty": "U8", "dst": "r3", "pool": "q", "offset": 1}
    assert code[9] == {"op": "BRA", "target": "start", "pred": "p0"}


def test_a_program_may_leave_out_what_has_a_default() -> None:
    assert loads('{"atlas": 1}') == Program()
    assert loads('{"atlas": 1, "code": [{"op": "BarSync"}]}') == assemble("BarSync")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 5e-324])
def test_floats_that_json_has_no_word_for(value: float) -> None:
    program = Program((ROWS["MOV_IMM"](Register(0), Immediate(Type.F64, value)),))
    again = loads(dumps(program)).instructions[0].value.value
    assert again.hex() == value.hex()


def test_the_largest_integer_survives() -> None:
    program = Program((ROWS["MOV_IMM"](Register(0), Immediate(Type.U4096, Type.U4096.max_value)),))
    assert loads(dumps(program)).instructions[0].value.value == (1 << 4096) - 1


def test_a_number_too_large_for_any_float_is_infinite() -> None:
    huge = 10**400
    data = {"atlas": 1, "code": [{"op": "MOV_IMM", "dst": "r0", "value": {"type": "F32", "value": -huge}}]}
    assert from_json(data).instructions[0].value.value == -math.inf
    gemm = to_json(assemble("GEMM.F32 [c], [a], [b], m=1, n=1, k=1"))
    gemm["code"][0]["alpha"] = huge
    assert from_json(gemm).instructions[0].alpha == math.inf


# --- digests --------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(programs())
def test_spans_do_not_count(program: Program) -> None:
    moved = [replace(i, span=Span("elsewhere", k + 7, 1, 1, "")) for k, i in enumerate(program.instructions)]
    again = replace(program, instructions=tuple(moved))
    assert again.digest == program.digest
    assert again == program
    assert hash(again) == hash(program)


@settings(max_examples=150)
@given(instructions(), st.data())
def test_any_change_of_an_operand_counts(instruction: Any, data: st.DataObject) -> None:
    fields = instruction.op.fields
    assume(fields)
    k = data.draw(st.integers(0, len(fields) - 1))
    changed = list(instruction.operands)
    changed[k] = data.draw(operands(instruction.op, fields[k]))
    other = instruction.op(*changed)
    same = str(other.operands[k]) == str(instruction.operands[k]) and other.operands[k] == instruction.operands[k]
    is_nan = isinstance(changed[k], float) and math.isnan(changed[k])
    assume(not same and not is_nan)
    assert Program((other,)).digest != Program((instruction,)).digest


BASE = assemble(SAMPLE)
CHANGES = {
    "name": replace(BASE, name="other"),
    "entry": replace(BASE, entry="end"),
    "no entry": replace(BASE, entry=None),
    "metadata": replace(BASE, metadata={"by": "machine"}),
    "label place": replace(BASE, labels={**BASE.labels, "end": 3}),
    "label name": replace(BASE, labels={"begin" if n == "start" else n: k for n, k in BASE.labels.items()}),
    "param order": replace(BASE, params=BASE.params[::-1]),
    "param type": replace(BASE, params=(Param("x", ParamKind.BUFFER, Type.F64, 16), *BASE.params[1:])),
    "param count": replace(BASE, params=(Param("x", ParamKind.BUFFER, Type.F32, 17), *BASE.params[1:])),
    "param count left out": replace(BASE, params=(Param("x", ParamKind.BUFFER, Type.F32), *BASE.params[1:])),
    "instruction order": replace(BASE, instructions=BASE.instructions[::-1]),
    "one instruction less": replace(BASE, instructions=BASE.instructions[:-1]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_any_change_of_a_program_counts(what: str) -> None:
    assert CHANGES[what].digest != BASE.digest
    assert CHANGES[what] != BASE


def test_order_of_metadata_and_labels_does_not_count() -> None:
    one = replace(BASE, metadata={"a": "1", "b": "2"}, labels=dict(BASE.labels))
    two = replace(BASE, metadata={"b": "2", "a": "1"}, labels=dict(reversed(BASE.labels.items())))
    assert one.digest == two.digest


# --- malformed JSON -------------------------------------------------------------------------------


def mutated(path: list[Any], value: Any) -> Any:
    """The sample with the value at a path replaced."""
    data = copy.deepcopy(to_json(BASE))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


MALFORMED = [
    # path in the sample, new value, what the message must begin with or contain
    (["atlas"], 2, "'atlas' must be 1, not 2"),
    (["atlas"], True, "'atlas' must be 1, not True"),
    (["atlas"], 1.0, "'atlas' must be 1, not 1.0"),
    (["atlas"], None, "'atlas' must be 1, not None"),
    (["extra"], 1, "a program has no key 'extra'"),
    (["name"], 5, "name: expected a str"),
    (["entry"], 5, "entry: expected a label"),
    (["entry"], "two words", "entry: expected a label"),
    (["entry"], "a\nEXIT", "entry: expected a label"),
    (["metadata"], [], "metadata: expected a dict"),
    (["metadata", "by"], 1, "metadata.by: expected a string"),
    (["params"], {}, "params: expected a list"),
    (["params", 1], "a", "params[1]: expected an object"),
    (["params", 1, "name"], 5, "params[1].name: expected a name"),
    (["params", 1, "name"], "r1", "params[1]: 'r1' cannot name a parameter"),
    (["params", 1, "name"], "x", "params[1]: two parameters are named 'x'"),
    (["params", 1, "kind"], "array", "params[1].kind: expected buffer, scalar or pool"),
    (["params", 1, "kind"], ["scalar"], "params[1].kind: expected buffer, scalar or pool"),
    (["params", 1, "type"], "F31", "params[1]: unknown type 'F31'"),
    (["params", 1, "type"], "", "params[1]: unknown type ''"),
    (["params", 1, "type"], 5, "params[1].type: expected a type"),
    (["params", 1, "type"], None, "params[1]: the scalar 'a' must have a type"),
    (["params", 2, "type"], "F32", "params[2]: the pool 'q' must not have a type"),
    (["params", 0, "count"], -1, "params[0]: 'x' cannot have -1 elements"),
    (["params", 0, "count"], 1.5, "params[0].count: expected a count"),
    (["params", 0, "count"], True, "params[0].count: expected a count"),
    (["params", 1, "count"], 4, "params[1]: the scalar 'a' cannot have a count"),
    (["params", 2, "count"], 4, "params[2]: the pool 'q' cannot have a count"),
    (["params", 0, "size"], 4, "params[0]: a parameter has no key 'size'"),
    (["labels"], [], "labels: expected a dict"),
    (["labels", "start"], -1, "labels.start: expected the index of an instruction"),
    (["labels", "start"], 99, "labels.start: expected the index of an instruction"),
    (["labels", "start"], "0", "labels.start: expected the index of an instruction"),
    (["labels", "start"], True, "labels.start: expected the index of an instruction"),
    (["labels", "r1"], 0, "labels.r1: expected a name"),
    (["labels", "a b"], 0, "labels.a b: expected a name"),
    (["code"], {}, "code: expected a list"),
    (["code", 3], "EXIT", "code[3]: expected an object"),
    (["code", 3], {}, "code[3].op: expected an instruction"),
    (["code", 3, "op"], "FROB", "code[3].op: expected an instruction, found 'FROB'"),
    (["code", 3, "op"], 5, "code[3].op: expected an instruction, found 5"),
    (["code", 3, "extra"], 5, "code[3]: LOOP has no operand 'extra'"),
    (["code", 0, "dst"], 5, "code[0].dst: expected a string, found 5"),
    (["code", 0, "dst"], "r256", "code[0].dst: register r256 does not exist"),
    (["code", 0, "dst"], "p0", "code[0].dst: expected a register"),
    (["code", 0, "dst"], "@", "code[0].dst: cannot read '@'"),
    (["code", 0, "dst"], "r1, r2", "code[0].dst: expected the end of the line"),
    (["code", 0, "dst"], "r1\nEXIT", "code[0].dst: expected a string"),
    (["code", 0, "dst"], "", "code[0].dst: expected a register"),
    (["code", 0, "dst"], "r252", "code[0]: LDG cannot write the special register r252"),
    (["code", 0, "ty"], "F31", "code[0].ty: unknown type 'F31'"),
    (["code", 0, "ty"], None, "code[0].ty: expected a string"),
    (["code", 0, "src"], "x", "code[0].src: expected '['"),
    (["code", 0, "src"], "[x-4]", "code[0]: LDG: operand 'src' must be an address with an offset"),
    (["code", 1, "value"], 5, "code[1].value: expected a typed value"),
    (["code", 1, "value"], {"value": 5}, "code[1].value: expected a typed value"),
    (["code", 1, "value"], {"type": "I8", "value": 300}, "code[1].value: 300 does not fit I8"),
    (["code", 1, "value"], {"type": "I8", "value": 0.5}, "code[1].value: 0.5 is not an integer"),
    (["code", 1, "value"], {"type": "I8", "value": "nan"}, "code[1].value: nan is not an integer"),
    (["code", 1, "value"], {"type": "Q8", "value": 1}, "code[1].value: unknown type 'Q8'"),
    (["code", 1, "value"], {"type": "I8", "value": "5"}, "code[1].value: expected a number"),
    (["code", 1, "value"], {"type": "I8", "value": True}, "code[1].value: expected a number"),
    (["code", 1, "value"], {"type": "I8"}, "code[1].value: expected a number"),
    (["code", 2, "cond"], "QQ", "code[2].cond: 'QQ' is no cond"),
    (["code", 2, "pred"], "p16", "code[2].pred: predicate p16 does not exist"),
    (["code", 3, "iterations"], -1, "code[3]: LOOP: operand 'iterations' must be between"),
    (["code", 3, "iterations"], 1.5, "code[3].iterations: expected a string"),
    (["code", 3, "iterations"], True, "code[3]: LOOP: operand 'iterations' must be"),
    (["code", 5, "alpha"], "half", "code[5].alpha: expected a number"),
    (["code", 5, "m"], 1.5, "code[5]: GEMM: operand 'm' must be an integer"),
    (["code", 5, "m"], None, "code[5]: GEMM: operand 'm' must be an integer"),
    (["code", 6, "shape_a"], 5, "code[6]: TensorContract: operand 'shape_a' must be a list"),
    (["code", 6, "shape_a"], [1, "2"], "code[6]: TensorContract: operand 'shape_a' must be a list"),
    (["code", 6, "contract_dims"], [[1]], "code[6]: TensorContract: operand 'contract_dims' must be a list of pairs"),
    (["code", 6, "contract_dims"], [1], "code[6]: TensorContract: operand 'contract_dims' must be a list of pairs"),
    (["code", 7, "inverse"], 1, "code[7]: FFT: operand 'inverse' must be true or false"),
    (["code", 8, "pool"], "5", "code[8].pool: expected the name of a pool"),
    (["code", 9, "target"], "5", "code[9].target: expected a label"),
    (["code", 9, "target"], {}, "code[9].target: expected a string"),
]


@of_each("path, value, message", MALFORMED)
def test_malformed_json_names_the_place(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(IsaError) as caught:
        loads(json.dumps(mutated(path, value)))
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("k", range(len(BASE)))
def test_a_missing_operand_is_named(k: int) -> None:
    for name in to_json(BASE)["code"][k]:
        data = to_json(BASE)
        del data["code"][k][name]
        op = BASE.instructions[k].op
        f = None if name == "op" else op.fields[op.positions[name]]
        if f is not None and f.default is not REQUIRED:
            assert getattr(from_json(data).instructions[k], name) == f.default
            continue
        with pytest.raises(IsaError) as caught:
            from_json(data)
        assert caught.value.message.startswith(f"code[{k}]")
        assert name == "op" or f"'{name}'" in caught.value.message


NOT_JSON = [
    ("", 1, 1, "Expecting value"),
    ("{", 1, 2, "Expecting property name"),
    ('{"atlas": 1,\n "code": [}', 2, 11, "Expecting value"),
    ('{"atlas": 1}\n\n  x', 3, 3, "Extra data"),
    ('{"atlas": 1, "name": "a\x00"}', 1, 24, "Invalid control character"),
    ("\ufeff{}", 1, 1, "BOM"),
]


@pytest.mark.parametrize(("source", "line", "column", "message"), NOT_JSON)
def test_what_is_not_json_has_a_caret(source: str, line: int, column: int, message: str) -> None:
    with pytest.raises(IsaError, match="this is not JSON") as caught:
        loads(source, "k.json")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line, caught.value.span.column) == ("k.json", line, column)


UNREADABLE = [
    b"\xff\xfe\xfa",
    b'{"atlas": 1, "name": "\xff"}',
    '{"atlas": 1, "code": ' + "9" * 5000 + "}",  # Python refuses to read so many digits
    "[" * 100_000,
    '{"atlas": 1, "metadata": ' + '{"a":' * 5000 + "1" + "}" * 5001,
    "[1]",
    "null",
    '"atlas"',
]


@pytest.mark.parametrize("source", UNREADABLE, ids=lambda s: repr(s[:24]))
def test_unreadable_json_is_an_isa_error(source: str | bytes) -> None:
    with pytest.raises(IsaError):
        loads(source)


@pytest.mark.parametrize("key", ["code", "name", "params", "labels"])
def test_nesting_near_the_recursion_limit_is_an_isa_error(key: str) -> None:
    """Values that can just be parsed must also be shown in the message without a RecursionError."""
    for depth in range(700, 1010):
        with pytest.raises(IsaError):
            loads(f'{{"atlas": 1, "{key}": ' + "[" * depth + "]" * depth + "}")
        operand = f'{{"atlas": 1, "code": [{{"op": "BarSync", "id": {"[" * depth + "]" * depth}}}]}}'
        with pytest.raises(IsaError):
            loads(operand)


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(IsaError) as caught:
        loads(json.dumps({"atlas": 1, "name": ["x" * 10_000]}))
    assert len(caught.value.message) < 200
