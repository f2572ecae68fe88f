"""Lanes as WGSL, on any machine: golden kernels, every register instruction on every type, what browsers lack.

`golden/*.wgsl` is what drivers are given for a few small kernels. `python tests/backends/test_wgsl.py` writes the files
anew; read what has changed. Whether drivers take them, and what comes out, is in `test_webgpu.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_text import KERNELS, SAXPY, TURNED, _programs

from eshkol.atlas.text import assemble
from eshkol.backends.lanes.promises import promises
from eshkol.backends.text.backend import in_base_instructions
from eshkol.backends.text.writer import TextKernel, write_kernel
from eshkol.backends.webgpu.dialect import Wgsl
from eshkol.backends.webgpu.writer import WgslWriter
from eshkol.errors import BackendUnavailable

GOLDEN = Path(__file__).parent / "golden"
SMALL = """\
.buffer x I8 256
.pool q
LDG.I8 r0, [x+r255*1]
SREG.LaneX r1
STS.I8 [shared+r1*1], r0
BarSync
LDS.I8 r2, [shared+r1*1]
ABS r2, r2
STG.I8 [x+r255*1], r2
LDG.U16 r3, [pool q+3]
MOV_IMM.I64 r4, -1
STG.U16 [pool q+5], r3
"""
ALL = {**KERNELS, "small": SMALL}
TYPES_OF_BROWSERS = {"f32", "i32", "u32", "bool", "vec2", "vec3", "vec4", "array", "atomic"}
NOT_OF_BROWSERS = re.compile(r"\b(?:f64|f16|[iu]64|[iu]8|[iu]16|\d+l[iuf]|enable|ptr)\b")


def kernel(source: str, *, fast: bool = True, dialect: Wgsl | None = None) -> TextKernel:
    program = in_base_instructions(assemble(source))
    relied_on = promises(program) if fast else None
    return write_kernel(program, dialect or Wgsl(), None if relied_on is None else relied_on.known, None, WgslWriter)


def dialect_of(name: str) -> Wgsl:
    return Wgsl(doubles=name == "turned", fused=False)


def code(found: TextKernel) -> str:
    """The kernel's own lines."""
    return found.text[found.text.index("fn kernel_main") :]


@pytest.mark.parametrize("name", ALL)
def test_golden(name):
    found = kernel(ALL[name], dialect=dialect_of(name)).text
    assert found == (GOLDEN / f"{name}.wgsl").read_text(encoding="utf-8")


def test_every_row_is_written_with_what_it_calls():
    for name, source in _programs():
        text = write_kernel(
            assemble(source), Wgsl(doubles=True, fused=False, exact_division=False), writer=WgslWriter
        ).text
        called = set(re.findall(r"(?<!@)\b([a-z]\w*_\w+)\(", text))
        missing = [c for c in called if not re.search(rf"^fn {c}\(", text, re.MULTILINE)]
        assert not missing, (name, missing)
        defined = re.findall(r"^(?:fn|struct) (\w+)", text, re.MULTILINE)
        assert len(defined) == len(set(defined)), name


def test_browsers_are_given_only_what_they_know():
    seen = 0
    for name, source in _programs():
        if "F64" in source:
            with pytest.raises(BackendUnavailable, match="F64"):
                write_kernel(assemble(source), Wgsl(), writer=WgslWriter)
            continue
        text = write_kernel(assemble(source), Wgsl(fused=False, exact_division=False), writer=WgslWriter).text
        assert not NOT_OF_BROWSERS.search(text), name
        seen += 1
    assert seen > 200


def test_what_a_device_lacks_is_refused_by_name():
    with pytest.raises(BackendUnavailable, match="F64"):
        kernel(TURNED)
    with pytest.raises(BackendUnavailable, match="ATOM of 64 bits"):
        kernel(".buffer x I64\nMOV_IMM.I64 r0, 1\nATOM.I64.Add r1, [x], r0\n")
    with pytest.raises(BackendUnavailable, match="up to 256 bits"):
        kernel(".buffer x I512\nLDG.I512 r0, [x]\nSTG.I512 [x], r0\n")
    with pytest.raises(BackendUnavailable, match="MemFence"):
        kernel(".buffer x U32\nMemFence.Block\nMOV_IMM.U32 r0, 1\nSTG.U32 [x], r0\n")
    with pytest.raises(BackendUnavailable, match="SubGroupXor"):
        kernel(".buffer x U32\nMOV_IMM.U32 r0, 1\nSubGroupXor.U32 r1, r0, mask=1\n")


def test_sums_and_products_are_kept_from_drivers():
    """WGSL lets them take those apart; in loops only the sum of products is left to them."""
    separate = ".buffer x F32\nLDG.F32 r0, [x]\nMUL r1, r0, r0\nADD r1, r1, r0\nSTG.F32 [x], r1\n"
    found = code(kernel(separate))
    assert "exact_f32(r0_f32 * r0_f32)" in found
    assert "exact_f32(r1_f32 + r0_f32)" in found
    assert "exact_f32" not in kernel(separate, dialect=Wgsl(exact=False)).text
    summed = (
        ".buffer x F32\nLDG.F32 r0, [x]\nLOOP r3, 9\nFMA r1, r0, r0, r1\nENDLOOP\nFMA r2, r0, r0, r1\nSTG.F32 [x], r2\n"
    )
    summed = summed.replace("LOOP", "MOV_IMM.F32 r1, 0\nLOOP", 1)
    found = code(kernel(summed, dialect=Wgsl(fused=False)))
    assert "r1_f32 = fma(r0_f32, r0_f32, r1_f32);" in found
    assert "r2_f32 = fma_f32(r0_f32, r0_f32, r1_f32);" in found
    assert "fma_f32" not in kernel(summed).text


def test_a_number_is_not_nan_by_its_bits():
    source = ".buffer x F32\nLDG.F32 r0, [x]\nSETcc.NE p0, r0, r0\nSEL r1, p0, r0, r0\nSTG.F32 [x], r1\n"
    assert "is_nan_f32(r0_f32)" in code(kernel(source))


def test_accesses_in_range_are_not_checked():
    checked, fast = kernel(SAXPY, fast=False), kernel(SAXPY)
    assert "fault(gid" in checked.text
    assert "> (n_x - 4u) / 4u" in checked.text
    assert "status" not in fast.text
    assert "b_x[gid]" in fast.text


def test_offsets_beyond_all_buffers():
    far = ".buffer x U32\nLDG.U32 r0, [x+8589934592]\nSTG.U32 [x], r0\n"
    assert "if (true)" in kernel(far, fast=False).text
    indexed = far.replace("[x+8589934592]", "[x+8589934592+r255*4]")
    with pytest.raises(BackendUnavailable, match="offsets up to"):
        kernel(indexed, fast=False)


def test_words_are_shared_by_exchanges_only_where_they_must_be():
    small, large = kernel(SMALL).text, kernel(SAXPY).text
    assert "b_x: array<atomic<u32>>" in small
    assert "atomicCompareExchangeWeak(&b_x" in small
    assert "atomic" not in large


def test_divisions_of_devices_that_only_nearly_divide():
    divided = ".buffer x F32\nLDG.F32 r0, [x]\nDIV r0, r0, r0\nSQRT r0, r0\nSTG.F32 [x], r0\n"
    text = kernel(divided, dialect=Wgsl(exact_division=False)).text
    assert "div_f32(r0_f32, r0_f32)" in text
    assert "sqrt_f32(r0_f32)" in text


if __name__ == "__main__":
    for name, source in ALL.items():
        (GOLDEN / f"{name}.wgsl").write_text(kernel(source, dialect=dialect_of(name)).text, encoding="utf-8")
