"""The text of lanes: what is known is not loaded again, and is forgotten where control comes together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.cpu.kernels.lane import CpuLane
from eshkol.backends.lanes.emitter import Emitter
from eshkol.backends.lanes.layout import Layout
from eshkol.support.store import ProgramCache

ENDING = ".buffer x U32\n.buffer out U32\n{}\nSTG.U32 [out+r255*4], r2"


def lane(text: str) -> str:
    """The function of a lane whose program ends with a store of r2."""
    program = assemble(ENDING.format(text))
    return CpuLane(validate(program), Layout.of(program), shifts_bf16=False).write("lane")


def test_straight_code_is_one_block_without_slots():
    text = lane("MOV_IMM.U32 r0, 3\nADD r1, r0, r0\nMUL r2, r1, r0")
    assert "alloca" not in text
    assert re.findall(r"^i\d+:", text, re.M) == ["i0:"]
    assert re.search(r"(%\w+) = add +i32 3, 3\n.*mul +i32 \1, 3", text)


def test_words_of_the_launch_are_loaded_once():
    text = lane("LDG.U32 r0, [x+r255*4]\nLDG.U32 r1, [x+r255*4]\nADD r2, r0, r1")
    assert len(re.findall(r"load ptr, .*invariant", text)) == 2  # of x and of out


def test_what_is_known_ends_where_control_comes_together():
    emitter = Emitter()
    cell = emitter.cell("i32")
    emitter.store("i32", 1, cell)
    assert emitter.load("i32", cell) == "1"
    emitter.br("next")
    emitter.place_behind("next")  # where nothing else leads to
    assert emitter.load("i32", cell) == "1"
    assert not any("next" in line for line in emitter.lines)
    emitter.br("joined")
    emitter.place("joined")
    found = emitter.load("i32", cell)
    assert emitter.lines[-1] == f"  {found} = load i32, ptr {cell}"
    assert emitter.load("i32", cell) == found


PROGRAMS = {
    "a branch": ("MOV_IMM.U32 r2, 7\nMOV_IMM.U32 r0, 2\nSETcc.LT p0, r252, r0\nBRA over, p0\n"
                 "MOV_IMM.U32 r2, 9\nover:\nADD r2, r2, r2", [14, 14, 18, 18]),
    "what a branch passes over": ("MOV_IMM.U32 r0, 2\nSETcc.LT p0, r252, r0\nMOV r2, r252\nBRA over, p0\n"
                                  "ADD r2, r2, r0\nADD r2, r2, r0\nover:", [0, 1, 6, 7]),
    "a loop": ("MOV_IMM.U32 r2, 1\nLOOP r3, 4\nADD r2, r2, r2\nADD r2, r2, r3\nENDLOOP", [27] * 4),
    "a call": ("MOV_IMM.U32 r2, 1\nCALL twice\nCALL twice\nBRA end\ntwice:\nADD r2, r2, r2\nRET\nend:", [4] * 4),
    "a barrier": ("MOV r2, r252\nADD r2, r2, r2\nBarSync\nADD r2, r2, r252", [0, 3, 6, 9]),
    "either type": ("MOV_IMM.U32 r2, 5\nMOV_IMM.U32 r0, 2\nMOV_IMM.U32 r1, 3\nSETcc.LT p0, r252, r0\nBRA over, p0\n"
                    "MOV_IMM.F32 r1, 4.0\nover:\nMOV r3, r1\nBRA end, p0\nCVT.F32.U32 r2, r3\nend:", [5, 5, 4, 4]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PROGRAMS.values(), ids=PROGRAMS)
def test_control_comes_together(tmp_path: Path, text: str, expected: list[int]) -> None:
    backend = CpuBackend(cache=ProgramCache(tmp_path))
    x, out = backend.allocate_typed(Type.U32, 4), backend.allocate_typed(Type.U32, 4)
    backend.execute(assemble(ENDING.format(text)), LaunchConfig((1, 1, 1), (4, 1, 1)), {"x": x, "out": out})
    assert out.read().tolist() == expected
