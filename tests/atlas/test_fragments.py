"""Fragments of matrices and copies that go on by themselves, on the interpreter: what they give, and what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eshkol.atlas.fragments import LANES
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed, IsaError

TWO_GROUPS = LaunchConfig((1, 1, 1), (2 * LANES, 1, 1), 4096)
LOWER_HALF = "MOV_IMM.U32 r20, 32\nSETcc.LT p0, r252, r20\nBRA out, p0\n"


def run(source: str, launch: LaunchConfig = TWO_GROUPS, **arrays: Any) -> dict[str, np.ndarray]:
    """Run a program whose buffers are these arrays, and give what they hold then."""
    backend, program = ReferenceBackend(), assemble(source)
    handles = {}
    for name, array in arrays.items():
        handles[name] = backend.allocate(array.nbytes)
        backend.copy_to(handles[name], array)
    backend.execute(program, launch, handles)
    return {k: np.frombuffer(backend.copy_from(handles[k]), a.dtype).reshape(a.shape) for k, a in arrays.items()}


@pytest.mark.parametrize("ty", [Type.F16, Type.BF16], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_fragments(ty: Type, turned: bool) -> None:
    """Both orders in which a factor can lie: where its terms lie apart, its matrices are transposed on the way."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(ty.dtype) for s in ((16, 16), (16, 8)))
    c = rng.integers(-9, 9, (2, 16, 8)).astype(np.float32)
    left = np.ascontiguousarray(a.T) if turned else a
    right = b if turned else np.ascontiguousarray(b.T)
    # Lane l says where row l mod 8 of matrix l / 8 lies: of the left one in the order of a0 to a3.
    lane = np.arange(64) % 32
    row, first, second = lane % 8, lane // 8 % 2, lane // 16
    down, along = (second, first) if turned else (first, second)  # of the matrix in memory, which has two chunks a row
    left_at = ((row + 8 * down) * 2 + along).astype(np.uint32)
    right_at = ((row + 8 * first) if turned else row * 2 + first).astype(np.uint32)
    source = f"""
.buffer a {ty}
.buffer b {ty}
.buffer c F32
.buffer at U32
.buffer bt U32
LDG.U32 r0, [at+r252*4]
LDG.U32 r1, [bt+r252*4]
MOV_IMM.U32 r2, 16
MOV_IMM.U32 r3, 0
MOV_IMM.U32 r4, 32
SETcc.LT p0, r252, r4
SEL r2, p0, r2, r3
MOV_IMM.U32 r5, 31
AND r5, r252, r5
MOV_IMM.U32 r6, 15
AND r6, r252, r6
CopyAsync.{ty} [shared+r252*16], [a+r5*16], r2
CopyAsync.{ty} [shared+1024+r252*16], [b+r6*16], r2
CopyCommit
CopyWait pending=0
BarSync
MatrixLoad r10, r11, r12, r13, [shared+r0*16], transpose={str(turned).lower()}
MatrixLoad r14, r15, r16, r17, [shared+1024+r1*16], transpose={str(turned).lower()}
MOV_IMM.U32 r30, 4
DIV r31, r5, r30
REM r32, r5, r30
MOV_IMM.U32 r33, 64
MOV_IMM.U32 r34, 32
DIV r35, r252, r34
MUL r35, r35, r33
ADD r35, r35, r35
MOV_IMM.U32 r36, 8
FMA r35, r31, r36, r35
ADD r32, r32, r32
ADD r35, r35, r32
LDG.F32 r20, [c+r35*4]
LDG.F32 r21, [c+4+r35*4]
LDG.F32 r22, [c+256+r35*4]
LDG.F32 r23, [c+260+r35*4]
MatrixMultiply.{ty} r20, r21, r22, r23, r10, r11, r12, r13, r14, r15, r20, r21, r22, r23
STG.F32 [c+r35*4], r20
STG.F32 [c+4+r35*4], r21
STG.F32 [c+256+r35*4], r22
STG.F32 [c+260+r35*4], r23
"""
    found = run(source, a=left, b=right, c=c, at=left_at, bt=right_at)["c"]
    np.testing.assert_array_equal(found, a.astype(np.float64) @ b.astype(np.float64) + c)


COPY = ".buffer x U32\nMOV_IMM.U32 r1, 16\nMOV_IMM.U32 r7, 1\nCopyAsync.U32 [shared+r252*16], [x+r252*16], r1\n"
NEXT = "ADD r3, r252, r7\nMOV_IMM.U32 r4, 63\nAND r3, r3, r4\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (COPY + "LDS.U32 r2, [shared+r252*16]", "a copy to this place of shared memory is under way"),
        (COPY + "CopyWait pending=0\nLDS.U32 r2, [shared+r252*16]", "is under way"),  # of no group
        (COPY + "CopyCommit\nCopyWait pending=1\nLDS.U32 r2, [shared+r252*16]", "is under way"),
        (COPY + "CopyCommit\nSTS.U32 [shared+r252*16], r1", "is under way"),
        (COPY + NEXT + "CopyCommit\nCopyWait pending=0\nLDS.U32 r2, [shared+r3*16]", "race on shared memory"),
        (COPY + "CopyAsync.U32 [shared+1032+r252*16], [x+r252*16], r1", "not aligned to 16"),
        (COPY + "ADD r1, r1, r7\nCopyAsync.U32 [shared+1024+r252*16], [x+r252*16], r1", "17 bytes are more than"),
        (COPY + "CopyAsync.U32 [shared+1024+r252*16], [x+16+r252*16], r1", "out of range"),
        (LOWER_HALF + "MatrixLoad r1, r2, r3, r4, [shared+r252*16]\nout:", ""),
        ("MOV_IMM.U32 r9, 5\nSETcc.LT p0, r252, r9\nBRA out, p0\nMatrixLoad r1, r2, r3, r4, [shared]\nout:",
         "27 of the 32 lanes of the sub-group are here"),
        ("MatrixLoad r1, r2, r3, r4, [shared+r252*8]", "not aligned to 16 bytes"),
    ],
)  # fmt: skip
def test_what_is_found(source: str, message: str) -> None:
    with pytest.raises(ExecutionFailed, match=message or "read before anything is written"):
        run(source, x=np.arange(256, dtype=np.uint32)) if ".buffer" in source else run(source)


def test_copies_arrive_in_groups_and_end_with_zeros() -> None:
    source = (
        COPY
        + """
MOV_IMM.U32 r1, 6
CopyCommit
CopyAsync.U32 [shared+1024+r252*16], [x+r252*16], r1
CopyCommit
CopyWait pending=1
LDS.U32 r2, [shared+4+r252*16]
CopyWait pending=0
LDS.U32 r3, [shared+1028+r252*16]
LDS.U32 r4, [shared+1032+r252*16]
ADD r2, r2, r4
SUB r2, r2, r3
STG.U32 [x+r252*16], r2
"""
    )
    given = np.arange(256, dtype=np.uint32) * 65537
    found = run(source, x=given)["x"].reshape(64, 4)
    second = given.reshape(64, 4)[:, 1]
    np.testing.assert_array_equal(found[:, 0], second - second % 65536)


def test_what_is_refused_before_it_runs() -> None:
    for source, message in [
        (".buffer x F16\nMOV_IMM.U32 r1, 16\nCopyAsync.F16 [x], [shared], r1", "from a buffer to shared memory"),
        (".buffer x F16\nMatrixLoad r1, r2, r3, r4, [x]", "MatrixLoad reaches only shared memory"),
        ("MOV_IMM.U32 r1, 1\nMatrixMultiply.F32 r1,r1,r1,r1,r1,r1,r1,r1,r1,r1,r1,r1,r1,r1", "must be a float"),
    ]:
        with pytest.raises(IsaError, match=message):
            run(source, x=np.zeros(64, np.float16)) if ".buffer" in source else run(source)
