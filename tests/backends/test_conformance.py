"""Instruction by instruction: that every row is looked at, that machines agree, and that a difference is seen."""

import itertools
from functools import cache

import numpy as np
import pytest

from eshkol.atlas.isa import Values
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend
from eshkol.conformance.__main__ import main
from eshkol.conformance.instructions import InstructionCase, instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED

WITHOUT_NUMBERS = {
    "MOV_IMM",
    "SEL",
    "ACC",
    "ClsGet",
    "MIRROR",
    "UnityTest",
    "BoundMap",
}  # of constants, classes, bounds; SEL is with SETcc


@cache
def cases() -> dict[str, InstructionCase]:
    """All of them, by name; made when they are first asked for, since every worker imports this."""
    return {case.name: case for case in instruction_cases()}


def test_every_instruction_with_values_is_there():
    words = set(itertools.chain.from_iterable(name.split() for name in cases()))
    assert {op.name for op in ROWS.values() if isinstance(op.meaning, Values)} - words <= WITHOUT_NUMBERS
    assert {str(ty) for ty in Type} <= words


@pytest.mark.parametrize(
    "name", ["ADD F32", "DIV I16", "FMA F16", "EXP F32", "SHR U64", "CVT F32 to I8", "BITCAST F64 to U64",
             "SETcc LT BF16", "LDS STS I32", "ATOM Add F32", "SREG BlockX", "MIN F64"],
)  # fmt: skip
def test_the_cpu_agrees(name):
    outcome = instruction(cases()[name], CpuBackend())
    assert outcome.result == PASS, str(outcome)


def test_what_a_machine_lacks_is_refused_by_name():
    outcome = instruction(cases()["SubGroupXor F32 by 1"], CpuBackend())
    assert (outcome.result, outcome.row) == (REFUSED, "SubGroupXor")
    assert "SubGroupXor" in outcome.message


class Wrong(ReferenceBackend):
    """A machine that gets the last bit of the last element wrong."""

    def execute(self, program, launch, params=None):
        super().execute(program, launch, params)
        out = params["out"]
        raw = bytearray(self.copy_from(out.handle))
        raw[-out.ty.size_bytes] ^= 1
        self.copy_to(out.handle, np.frombuffer(bytes(raw), np.uint8))


@pytest.mark.parametrize("name", ["ADD F32", "XOR U8", "MUL I256", "CVT F64 to F32", "SETcc GE I64"])
def test_a_difference_of_one_bit_is_a_failure(name):
    outcome = instruction(cases()[name], Wrong())
    assert outcome.result == FAIL
    assert "1 of " in outcome.message
    assert "on the reference machine" in outcome.message


def test_expanded_rows_may_differ_in_the_last_places_only():
    case = cases()["EXP F32"]
    wanted = case.run(ReferenceBackend())
    near = {**wanted, "out": np.nextafter(wanted["out"], np.float32(2), dtype=np.float32)}
    case.compare(near, wanted)
    with pytest.raises(AssertionError, match="differ"):
        case.compare({**wanted, "out": wanted["out"] * np.float32(1.00001)}, wanted)


def test_the_command(capsys, tmp_path):
    assert main(["reference", "--only", "ADD", "add", "--samples", "1", "--json", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert "reference instruction: 24 pass, 0 refused, 0 FAIL, of 1 rows" in said
    assert "reference forward: 1 pass" in said
    assert '"kind": "gradient"' in (tmp_path / "found.json").read_text()
    with pytest.raises(SystemExit):
        main(["reference", "--only", "no_such_row"])
    assert "there is no instruction or row no_such_row" in capsys.readouterr().err
