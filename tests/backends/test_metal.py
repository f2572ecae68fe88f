"""Metal's shading language: golden kernels, what is refused, and kernels run as C++ on the host against the reference.

No Mac was at hand: what its compiler and its driver say is not tested. `golden/*.metal` is what they would be given for
the kernels of `test_text.py`; `python tests/backends/test_metal.py` writes the files anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from metal_host import COMPILER, HostMetal
from test_text import GOLDEN, KERNELS, TURNED, _programs

from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.backends import backend_class
from eshkol.backends.lanes.promises import promises
from eshkol.backends.metal import devices
from eshkol.backends.metal.backend import MetalBackend
from eshkol.backends.metal.dialect import MetalC
from eshkol.backends.text.backend import in_base_instructions
from eshkol.backends.text.writer import write_kernel
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.errors import BackendError, BackendUnavailable, ExecutionFailed

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler: apt install g++")
WRITTEN = {name: source for name, source in KERNELS.items() if name != "turned"}  # which is of F64
WRITTEN["turned"] = TURNED.replace("F64", "U32").replace("*8", "*4")
INSTRUCTIONS = ["ADD F16", "DIV F32", "REM F32", "FMA F32", "MIN BF16", "SHR I8", "DIV I256", "CVT I128 to F32",
                "CVT F32 to U64", "SETcc LT U64", "LDS STS U16", "ATOM Add F16", "ATOM Min I32"]  # fmt: skip


def text(source: str) -> str:
    program = in_base_instructions(assemble(source))
    relied_on = promises(program)
    return write_kernel(program, MetalC(), None if relied_on is None else relied_on.known).text


def _written(source: str) -> tuple[str, str]:
    """The text of a kernel, or why there is none."""
    try:
        return write_kernel(assemble(source), MetalC()).text, ""
    except BackendUnavailable as error:
        return "", str(error)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return HostMetal(tmp_path_factory.mktemp("metal"))


@pytest.mark.parametrize("name", WRITTEN)
def test_golden(name):
    assert text(WRITTEN[name]) == (GOLDEN / f"{name}.metal").read_text(encoding="utf-8")


def test_every_row_is_written_with_what_it_calls_or_refused():
    refused, written = set(), 0
    for name, source in _programs():
        found, reason = _written(source)
        if reason:
            assert "F64" in reason, name
            refused.add(name)
            continue
        written += 1
        assert "double" not in found, name
        called = set(re.findall(r"\b(\w+_(?:[iuf]\d+|bf16|odd|class))\(", found))
        missing = [c for c in called if not re.search(rf"(?:^\w+ |#define ){c}\b", found, re.MULTILINE)]
        assert not missing, (name, missing)
    assert written > 200
    assert "ADD F64" in refused


def test_what_metal_lacks_is_refused_by_name():
    with pytest.raises(BackendUnavailable, match="F64"):
        text(TURNED)
    with pytest.raises(BackendUnavailable, match="ATOM of 64 bits"):
        text(".buffer x I64\nMOV_IMM.I64 r0, 1\nATOM.I64.Add r1, [x], r0\n")
    many = "".join(f".buffer x{k} U32 1\n" for k in range(40)) + "MOV_IMM.U32 r0, 1\n"
    with pytest.raises(BackendUnavailable, match="buffers at most"):
        text(many + "".join(f"STG.U32 [x{k}], r0\n" for k in range(40)))


@pytest.mark.skipif(devices.unavailable() is None, reason="this is a Mac")
def test_elsewhere_the_reason_is_given():
    assert "never run" in str(MetalBackend.unavailable())
    assert MetalBackend.machines() == []
    assert backend_class("metal:2").name == "metal:2"
    with pytest.raises(BackendUnavailable, match="metal backend is not available"):
        MetalBackend()


@needs_compiler
def test_instructions_as_on_the_reference_machine(machine):
    cases = {c.name: c for c in instruction_cases()}
    outcomes = {name: instruction(cases[name], machine) for name in (cases if FULL else INSTRUCTIONS)}
    assert [str(o) for o in outcomes.values() if o.result == FAIL] == []
    if not FULL:
        assert [str(o) for o in outcomes.values() if o.result != PASS] == []
    assert instruction(cases["ADD F64"], machine).result == REFUSED


@needs_compiler
def test_lanes_that_fail_are_named(machine):
    x = machine.array(np.arange(8, dtype=np.float32))
    program = assemble(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(ExecutionFailed, match=r"out of range in buffer 'x' \(lane 8\)"):
        machine.execute(program, LaunchConfig.linear(32, 16), {"x": x})
    machine.execute(program, LaunchConfig.linear(8, 8), {"x": x})  # it goes on
    assert (x.read() == np.arange(8)).all()


@needs_compiler
def test_pools_lie_anyhow(machine):
    pool = machine.allocate_pool(16)
    machine.copy_to_pool(pool, 3, b"abc")
    source = ".pool q\n.buffer x U16\nLDG.U16 r0, [pool q+3]\nSTG.U16 [x], r0\nSTG.U16 [pool q+7], r0\n"
    x = machine.array(np.zeros(1, np.uint16))
    machine.execute(assemble(source), LaunchConfig.linear(1), {"q": pool, "x": x})
    assert x.read()[0] == int.from_bytes(b"ab", "little")
    assert machine.copy_from_pool(pool, 6, 4) == b"\0ab\0"


@needs_compiler
def test_a_text_that_the_compiler_refuses(machine, monkeypatch):
    monkeypatch.setattr(machine.dialect, "prelude", "this is no Metal")
    x = machine.array(np.zeros(4, np.float32))
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 41.5\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(BackendError, match="refuses the kernel of 'main'"):
        machine.execute(program, LaunchConfig.linear(4), {"x": x})


if __name__ == "__main__":
    for name, source in WRITTEN.items():
        (GOLDEN / f"{name}.metal").write_text(text(source), encoding="utf-8")
