"""SPIR-V of kernels, on any machine: what the compiler makes of C, and what spirv-val says of it where it is installed.

That a module means what its text says is in `test_vulkan.py`, where there is a device.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_text import KERNELS, _programs

from effort import FULL
from eshkol.atlas.text import assemble
from eshkol.backends.lanes.promises import promises
from eshkol.backends.spirv import Options, compile_kernel
from eshkol.backends.spirv.module import Capability, Op, capabilities_of
from eshkol.backends.text.backend import in_base_instructions
from eshkol.backends.text.writer import write_kernel
from eshkol.backends.vulkan.dialect import PROBE, SpirvC
from eshkol.conformance.instructions import instruction_cases
from eshkol.errors import BackendError, BackendUnavailable

VALIDATOR = shutil.which("spirv-val")
needs_validator = pytest.mark.skipif(VALIDATOR is None, reason="there is no spirv-val: apt install spirv-tools")
ALL = Options(*[frozenset({32, 64})] * 3)
FEW = [("ADD", "I8"), ("DIV", "I256"), ("REM", "F64"), ("FMA", "F64"), ("CVT", "I128"), ("ATOM", "F16"), ("LDS", "U16")]


def module(source: str, dialect: SpirvC | None = None, options: Options = ALL) -> bytes:
    program = in_base_instructions(assemble(source))
    relied_on = promises(program)
    known = None if relied_on is None else relied_on.known
    return compile_kernel(write_kernel(program, dialect or SpirvC(), known).text, options)


def valid(code: bytes, folder: Path) -> str:
    """What spirv-val says of a module."""
    assert VALIDATOR is not None
    file = folder / "kernel.spv"
    file.write_bytes(code)
    done = subprocess.run(
        [VALIDATOR, "--target-env", "vulkan1.2", str(file)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def instructions_of(code: bytes) -> list[tuple[int, tuple[int, ...]]]:
    """The instructions of a module with their operands."""
    words, at, found = struct.unpack(f"<{len(code) // 4}I", code), 5, []
    while at < len(words):
        length = words[at] >> 16
        found.append((words[at] & 0xFFFF, words[at + 1 : at + length]))
        at += length
    return found


@needs_validator
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dialect", [SpirvC(), SpirvC(exact_division=False, fuses=False, watches=True)])
def test_kernels_are_valid(name, dialect, tmp_path):
    assert valid(module(KERNELS[name], dialect), tmp_path) == ""


@needs_validator
def test_every_instruction_is_valid(tmp_path):
    """All of `make test-all` are; a module takes spirv-val some milliseconds."""
    seen = set()
    sources = dict(_programs())
    for case in instruction_cases():
        declared = "".join(f".buffer {n} {ty} {len(values)}\n" for n, (ty, values) in case.buffers.items())
        sources.setdefault(case.name, declared + case.source)
    for name, source in sources.items():
        words = name.split()
        if name.startswith("SubGroupXor") or (not FULL and (words[0], words[-1]) not in FEW):
            continue
        assert valid(module(source, SpirvC(fuses=False)), tmp_path) == "", name
        seen.add(words[0])
    assert len(seen) >= (40 if FULL else 6)


@needs_validator
def test_the_trial_is_valid(tmp_path):
    assert valid(compile_kernel(PROBE, Options()), tmp_path) == ""


def test_a_device_is_asked_for_what_a_kernel_uses():
    plain = capabilities_of(module(KERNELS["saxpy"]))
    assert Capability.Float64 not in plain
    assert Capability.Int8 not in plain
    assert Capability.Float64 in capabilities_of(module(KERNELS["turned"]))
    assert Capability.StorageBuffer16BitAccess in capabilities_of(module(KERNELS["summed"]))
    assert Capability.SignedZeroInfNanPreserve in plain
    assert Capability.SignedZeroInfNanPreserve not in capabilities_of(module(KERNELS["saxpy"], options=Options()))


def test_nothing_is_fused():
    """Every sum and product of floats says so."""
    found = instructions_of(module(".buffer x F32\nLDG.F32 r0, [x]\nMUL r1, r0, r0\nADD r1, r1, r0\nSTG.F32 [x], r1\n"))
    computed = {operands[1] for op, operands in found if op in (Op.FMul, Op.FAdd)}
    decorated = {operands[0] for op, operands in found if op == Op.Decorate and operands[1] == 42}
    assert len(computed) == 2
    assert computed <= decorated


def test_what_must_not_run_unasked_is_not():
    """A division in one arm of a choice is in a block of its own; a choice of numbers is one instruction."""
    divided = module(".buffer x I32\nLDG.I32 r0, [x]\nLDG.I32 r1, [x+4]\nDIV r2, r0, r1\nSTG.I32 [x], r2\n")
    least = module(".buffer x I32\nLDG.I32 r0, [x]\nLDG.I32 r1, [x+4]\nMIN r2, r0, r1\nSTG.I32 [x], r2\n")
    assert Op.Phi in {op for op, _ in instructions_of(divided)}
    operations = {op for op, _ in instructions_of(least)}
    assert Op.Select in operations
    assert Op.Phi not in operations


def test_a_text_that_is_not_of_this_c():
    for text in (
        "this is no C",
        "__kernel void kernel_main(uint a) { a = b; }",
        "__kernel void kernel_main(uint a) { f(a); }",
    ):
        with pytest.raises(BackendError, match="SPIR-V cannot be made"):
            compile_kernel(text, Options())


def test_what_a_device_lacks_is_refused_by_name():
    with pytest.raises(BackendUnavailable, match="F64"):
        module(KERNELS["turned"], SpirvC(doubles=False))
    with pytest.raises(BackendUnavailable, match="ATOM"):
        module(".buffer x I64\nMOV_IMM.I64 r0, 1\nATOM.I64.Add r1, [x], r0\n", SpirvC(long_atomics=False))
