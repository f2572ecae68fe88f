"""What is the same for all lanes: loaded once where that is right, and compiled in time that does not explode."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.cpu.kernels.uniform import early_loads
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed
from eshkol.support.store import ProgramCache

U32, LANE, LANES = Type.U32, Register(255), 100
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(source: str, groups: int) -> Program:
    """Every lane stores the same words: rounds of Threefry on a key that comes from where `source` says."""
    b = ProgramBuilder("chain")
    out = b.buffer("out", U32)
    k0, k1, k2, x, y, t = (b.reg(U32) for _ in range(6))
    if source == "scalars":
        b.ldg(U32, k0, b.scalar("k0", U32).address)
        b.ldg(U32, k1, b.scalar("k1", U32).address)
    else:
        key = b.buffer("key", U32)
        if source == "a buffer, behind a store":
            b.stg(U32, out.at(LANE), b.constant(U32, 7))
        b.ldg(U32, k0, key.at(0))
        if source == "a buffer, by an index":
            b.ldg(U32, k1, key.at(b.constant(Type.U64, 1)))
        else:
            b.ldg(U32, k1, key.at(1))
        if source == "a buffer, with a barrier":
            b.bar_sync()
    b.xor(k2, k0, k1)
    b.xor(k2, k2, b.constant(U32, 0x1BD11BDA))
    b.mov(x, k0)
    b.mov(y, k1)
    keys = (k0, k1, k2)
    for group in range(groups):
        for places in ROTATIONS[group % 2]:
            b.add(x, x, y)
            b.shl(t, y, b.constant(U32, places))
            b.shr(y, y, b.constant(U32, 32 - places))
            b.or_(y, t, y)
            b.xor(y, y, x)
        b.add(x, x, keys[(group + 1) % 3])
        b.add(y, y, keys[(group + 2) % 3])
    b.xor(y, y, x)
    b.stg(U32, out.at(LANE), y)
    return b.build()


SOURCES = (
    "scalars", "a buffer", "a buffer, behind a store", "a buffer, by an index", "a buffer, with a barrier",
)  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_long_chains_that_are_the_same_for_all_lanes_compile_in_time(source: str, tmp_path: Path) -> None:
    """LLVM's vectorizer took minutes over these; 5 s is 20 times what they take."""
    program, launch = threefry(source, 6), LaunchConfig.linear(LANES, block=50)
    found = []
    for backend in (CpuBackend(cache=ProgramCache(tmp_path)), ReferenceBackend()):
        start = time.perf_counter()
        if isinstance(backend, CpuBackend):
            backend.compiled(program)
        assert time.perf_counter() - start < 5
        params: dict[str, object] = {"k0": 123456789, "k1": 3000000000} if source == "scalars" else {
            "key": backend.array(np.array([123456789, 3000000000], np.uint32))}  # fmt: skip
        out = backend.array(np.zeros(LANES, np.uint32))
        backend.execute(program, launch, {**params, "out": out})
        found.append(out.read())
    np.testing.assert_array_equal(found[0], found[1])
    assert len(set(found[0].tolist())) == 1


EARLY = """\
.buffer key F32
.buffer out F32
LDG.F32 r0, [key+8]
LDG.F32 r1, [out+r255*4]
MUL r1, r1, r0
STG.F32 [out+r255*4], r1
LDG.F32 r2, [key+8]
"""


def test_only_loads_before_any_store_are_early() -> None:
    assert list(early_loads(assemble(EARLY), frozenset())) == [0]


@pytest.mark.parametrize("size", [0, 2])
def test_a_load_at_a_fixed_place_beyond_a_buffer_fails_as_before(size: int) -> None:
    program = assemble(EARLY)
    for backend in (CpuBackend(), ReferenceBackend()):
        params = {"key": backend.array(np.ones(size, np.float32)), "out": backend.array(np.ones(9, np.float32))}
        with pytest.raises(ExecutionFailed, match=r"(?s)out of range.*lane 0"):
            backend.execute(program, LaunchConfig.linear(9), params)


def test_a_load_at_a_fixed_place_of_memory_that_is_also_written() -> None:
    """The same buffer twice: whatever other lanes do meanwhile, each reads before it writes."""
    backend = CpuBackend()
    x = backend.array(np.full(3, 2.0, np.float32))
    backend.execute(assemble(EARLY), LaunchConfig.linear(1), {"key": x, "out": x})
    np.testing.assert_array_equal(x.read(), [4, 2, 2])


def test_no_lane_reads_where_none_runs() -> None:
    text = ".buffer key F32\n.scalar n U64\nLDG.U64 r0, [n]\nSETcc.GE p0, r255, r0\nBRA end, p0\n" + "\n".join(
        ["LDG.F32 r1, [key+4]", "STG.F32 [key+r255*4], r1", "end:", "EXIT"]
    )
    backend = CpuBackend()
    backend.execute(assemble(text), LaunchConfig.linear(4), {"key": backend.array(np.zeros(0, np.float32)), "n": 0})
    some = backend.array(np.array([1, 2, 3, 4], np.float32))
    backend.execute(assemble(text), LaunchConfig.linear(4), {"key": some, "n": 1})
    np.testing.assert_array_equal(some.read(), [2, 2, 3, 4])
