"""Lanes as C-like text, on any machine: golden kernels in OpenCL C, every register instruction on every type, jumps.

`golden/*.cl` is what drivers are given for a few small kernels. `python tests/backends/test_text.py` writes the files
anew; read what has changed. Whether drivers take them, and what comes out, is in `test_opencl.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Kind
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.lanes.promises import promises
from eshkol.backends.opencl.dialect import OpenClC
from eshkol.backends.text import wide
from eshkol.backends.text.backend import in_base_instructions
from eshkol.backends.text.scalars import LOWERED
from eshkol.backends.text.writer import TextKernel, write_kernel
from eshkol.errors import BackendUnavailable

GOLDEN = Path(__file__).parent / "golden"
SAXPY = """\
.scalar n U64
.scalar a F32
.buffer x F32
.buffer y F32
LDG.U64 r0, [n]
SETcc.GE p0, r255, r0
BRA done, p0
LDG.F32 r1, [a]
LDG.F32 r2, [x+r255*4]
LDG.F32 r3, [y+r255*4]
FMA r3, r1, r2, r3
STG.F32 [y+r255*4], r3
done:
"""
TURNED = """\
.buffer x F64 1024
SREG.LaneX r0
SREG.BlockSizeX r1
LDG.F64 r2, [x+r255*8]
STS.F64 [shared+r0*8], r2
BarSync
SUB r3, r1, r0
MOV_IMM.U32 r4, 1
SUB r3, r3, r4
LDS.F64 r2, [shared+r3*8]
STG.F64 [x+r255*8], r2
"""
SUMMED = """\
.buffer x BF16 4096
.buffer out F32 64
MOV_IMM.F32 r0, 0
MOV_IMM.U64 r4, 64
MUL r5, r255, r4
LOOP r1, 64
CVT.U32.U64 r2, r1
ADD r2, r2, r5
LDG.BF16 r3, [x+r2*2]
CVT.BF16.F32 r3, r3
ACC.Sum r0, r0, r3
ENDLOOP
STG.F32 [out+r255*4], r0
"""
COUNTED = """\
.buffer x U32
.buffer bins F16
LDG.U32 r0, [x+r255*4]
MOV_IMM.F16 r1, 1
ATOM.F16.Add r2, [bins+r0*2], r1
"""
CALLED = """\
.buffer x I32
LDG.I32 r0, [x+r255*4]
CALL twice
CALL twice
STG.I32 [x+r255*4], r0
EXIT
twice:
ADD r0, r0, r0
RET
"""
TYPES = [ty for ty in Type if not ty.is_wide or ty in (Type.I128, Type.U256)]  # other wide ones are written as these
KERNELS = {"saxpy": SAXPY, "turned": TURNED, "summed": SUMMED, "counted": COUNTED, "called": CALLED}


def kernel(source: str | Program, *, fast: bool = True, dialect: OpenClC | None = None) -> TextKernel:
    program = in_base_instructions(assemble(source) if isinstance(source, str) else source)
    relied_on = promises(program) if fast else None
    return write_kernel(program, dialect or OpenClC(), None if relied_on is None else relied_on.known)


def code(found: TextKernel) -> str:
    """The kernel's own lines."""
    return found.text[found.text.index("__kernel") :]


@pytest.mark.parametrize("name", KERNELS)
def test_golden(name):
    assert kernel(KERNELS[name]).text == (GOLDEN / f"{name}.cl").read_text(encoding="utf-8")


def _programs() -> Iterator[tuple[str, str]]:
    """Short programs with every register instruction on every type, and conversions between types."""
    for name in sorted(LOWERED - {"CVT", "BITCAST", "PACK", "SETcc", "ACC", "SEL", "MOV_IMM"}):
        row = ROWS[name]
        for ty in (t for t in TYPES if t in row.types):
            given = ", ".join(f"r{k}" for k in range(sum(f.kind is Kind.USE for f in row.fields)))
            target = "p0" if row.fields[0].kind is Kind.PDEF else "r9"
            yield f"{name} {ty}", _loaded(ty) + f"{name} {target}, {given}\n"
    for ty in TYPES:
        yield f"SETcc {ty}", _loaded(ty) + "SETcc.LE p0, r0, r1\nSEL r2, p0, r0, r1\n"
        yield f"ACC {ty}", _loaded(ty) + "ACC.Min r2, r0, r1\nACC.Product r2, r2, r1\n"
        yield f"MOV_IMM {ty}", f"MOV_IMM.{ty} r0, 3\n"
        for other in (Type.F16, Type.F32, Type.F64, Type.I8, Type.U64, Type.I128, Type.U256):
            yield f"CVT {ty}", _loaded(ty) + f"CVT.{ty}.{other} r2, r0\nCVT.{other}.{ty} r3, r2\n"
    yield "PACK F16", _loaded(Type.F32) + "PACK.F16 r2, r0, r1\n"
    yield "BITCAST F32", _loaded(Type.F32) + "BITCAST.F32.I32 r2, r0\n"


def _loaded(ty: Type) -> str:
    size = ty.size_bytes
    return f".buffer x {ty} 8\n" + "".join(f"LDG.{ty} r{k}, [x+{k * size}]\n" for k in range(3))


def test_every_row_is_written_with_what_it_calls():
    seen = set()
    for name, source in _programs():
        text = write_kernel(assemble(source), OpenClC()).text
        called = set(re.findall(r"\b(\w+_(?:[iuf]\d+|bf16|odd|class))\(", text))
        missing = [c for c in called if not re.search(rf"(?:^\w+ |#define ){c}\b", text, re.MULTILINE)]
        assert not missing, (name, missing)
        seen.add(name.split()[0])
    assert seen | {"SEL"} == LOWERED


def test_wide_integers_are_written_after_what_they_call():
    texts = wide.texts(["div_i256"])
    names = [re.search(r"\b(\w+)\(", text).group(1) for text in texts if "(" in text]
    assert names.index("divided_u256") < names.index("div_i256")
    assert names.index("compare_u256") < names.index("divided_u256")


def test_divisors_that_are_known_are_not_checked():
    constant = ".buffer x U32\nLDG.U32 r0, [x+r255*4]\nMOV_IMM.U32 r1, 3\nDIV r0, r0, r1\nSTG.U32 [x+r255*4], r0\n"
    changed = constant.replace("DIV", "LOOP r3, 2\nREM r0, r0, r1\nADD r1, r1, r1\nENDLOOP\nDIV")
    assert kernel(constant).layout.sites == []
    assert len(kernel(changed).layout.sites) == 2


def test_accesses_in_range_are_not_checked():
    checked, fast = kernel(SAXPY, fast=False), kernel(SAXPY)
    assert "fault(status" in checked.text
    assert len(checked.layout.sites) == 3
    assert "fault(status" not in fast.text


@pytest.mark.parametrize(("built", "wanted"), [("when", "if (p0) {"), ("else", "}\n  else {"), ("break", "break;")])
def test_jumps_forward_are_ifs(built, wanted):
    sources = {
        "when": "SETcc.LT p0, r0, r1\nBRA in, p0\nBRA out\nin:\nADD r0, r0, r1\nout:\n",
        "else": "SETcc.LT p0, r0, r1\nBRA other, p0\nADD r0, r0, r1\nBRA out\nother:\nSUB r0, r0, r1\nout:\nNOT r0, r0",
        "break": "LOOP r3, 9\nSETcc.LT p0, r0, r1\nBRA out, p0\nADD r0, r0, r1\nENDLOOP\nout:\nNOT r0, r0\n",
    }
    found = kernel(f".buffer x U32\nMOV_IMM.U32 r0, 1\nMOV_IMM.U32 r1, 2\n{sources[built]}\nSTG.U32 [x], r0\n")
    assert found.structured
    assert wanted in code(found)
    assert "switch" not in found.text


def test_other_jumps_are_a_switch():
    loop = "again:\nADD r0, r0, r0\nMOV_IMM.U32 r1, 99\nSETcc.LT p0, r0, r1\nBRA again, p0\n"
    found = kernel(f".buffer x U32\nMOV_IMM.U32 r0, 1\n{loop}STG.U32 [x], r0\n")
    assert not found.structured
    assert "switch (pc)" in found.text
    assert not kernel(CALLED).structured


def test_the_tensor_compilers_programs_are_structured():
    """What the builder writes for a condition within a loop within a condition."""
    b = ProgramBuilder("nested")
    x = b.buffer("x", Type.U32)
    value, other, pred, inner = b.reg(Type.U32), b.constant(Type.U32, 7), b.pred(), b.pred()
    b.ldg(Type.U32, value, x.at(0))
    b.setcc(ROWS["SETcc"].fields[0].choices["LT"], pred, value, other)
    with b.when(pred), b.loop(5) as counter:
        b.setcc(ROWS["SETcc"].fields[0].choices["GT"], inner, counter, other)
        with b.when(inner):
            b.add(value, value, counter)
    b.stg(Type.U32, x.at(0), value)
    found = kernel(b.build())
    assert found.structured
    assert code(found).count("if (") >= 2


def test_what_a_device_lacks_is_refused_by_name():
    with pytest.raises(BackendUnavailable, match="F64"):
        kernel(TURNED, dialect=OpenClC(doubles=False))
    wide_atomic = ".buffer x I64\nMOV_IMM.I64 r0, 1\nATOM.I64.Add r1, [x], r0\n"
    assert "atom_cmpxchg" in kernel(wide_atomic).text
    with pytest.raises(BackendUnavailable, match="ATOM"):
        kernel(wide_atomic, dialect=OpenClC(long_atomics=False))
    with pytest.raises(BackendUnavailable, match="SubGroupXor"):
        kernel(".buffer x U32\nMOV_IMM.U32 r0, 1\nSubGroupXor.U32 r1, r0, mask=1\n")


def test_sums_in_any_order_are_said_to_be_so_where_a_language_can():
    pragma = "#pragma clang fp reassociate(on)"
    assert f"{{\n{pragma}\n      r0_f32 = r0_f32 + r3_f32;" in kernel(SUMMED, dialect=OpenClC(any_order=True)).text
    assert pragma not in kernel(SUMMED).text


def test_loops_of_one_round_at_most_are_ifs():
    """What the tensor compiler writes for a condition: the truth as a number of rounds."""
    source = """\
.buffer x U32 64
MOV_IMM.U8 r0, 1
MOV_IMM.U8 r1, 0
MOV_IMM.U64 r2, 7
SETcc.LT p0, r255, r2
SEL r3, p0, r0, r1
CVT.U8.U32 r4, r3
LOOP r5, r4
STG.U32 [x+r255*4], r4
ENDLOOP
"""
    found = code(kernel(source))
    assert "if (n6 > 0) {" in found
    assert "for (" not in found


def test_division_is_exact_on_devices_that_only_have_it_nearly():
    divided = ".buffer x F32\nLDG.F32 r0, [x]\nDIV r0, r0, r0\nSQRT r0, r0\nSTG.F32 [x], r0\n"
    text = kernel(divided, dialect=OpenClC(exact_division=False)).text
    assert "(float)((double)r0_f32 / (double)r0_f32)" in text
    assert "(float)sqrt((double)r0_f32)" in text


def test_a_lane_that_fails_before_a_barrier_goes_on_without_its_access():
    """The others would wait for it for ever."""
    with_barrier = code(kernel(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nBarSync\nSTG.F32 [x+r255*4], r0\n", fast=False))
    assert "return;" not in with_barrier
    assert "return;" in code(kernel(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nSTG.F32 [x+r255*4], r0\n", fast=False))


if __name__ == "__main__":
    for name, source in KERNELS.items():
        (GOLDEN / f"{name}.cl").write_text(kernel(source).text, encoding="utf-8")
