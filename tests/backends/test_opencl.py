"""Devices of OpenCL: instructions, tensors, networks and faults, where there is pyopencl and a driver.

PoCL, a driver for CPUs, is enough. Elsewhere all of it is skipped, with the reason; the text of kernels is tested
everywhere (`test_text.py`). Results are those of the CPU within a few units of the last place.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from on_machines import NETWORKS, carries_values, has_the_cpus_gradients, learns_as_the_cpu

import eshkol as ek
from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends import backend_class
from eshkol.backends.opencl import devices
from eshkol.backends.opencl.backend import OpenClBackend
from eshkol.backends.text import writer
from eshkol.conformance.checks import cases_of, forward
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.conformance.samples import rows
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, DeviceLost, ExecutionFailed

REASON = devices.unavailable()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
INSTRUCTIONS = ["ADD F16", "DIV I64", "REM F32", "FMA F32", "MIN BF16", "SHR I8", "MUL I256", "CVT F64 to BF16",
                "CVT F32 to I8", "SETcc LT U64", "LDS STS U16", "ATOM Add F16", "ATOM Max I64", "EXP F32"]  # fmt: skip


@pytest.fixture(scope="module")
def machine():
    return OpenClBackend()


def test_without_pyopencl_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    devices._found.cache_clear()
    try:
        assert "pip install eshkol[opencl]" in str(OpenClBackend.unavailable())
        assert OpenClBackend.machines() == []
        with pytest.raises(BackendUnavailable, match="pyopencl"):
            devices.device(0)
    finally:
        devices._found.cache_clear()


def test_devices_have_numbers():
    assert backend_class("opencl:0") is OpenClBackend
    assert backend_class("opencl:3").name == "opencl:3"


@needs_device
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BackendUnavailable, match="opencl:77"):
        backend_class("opencl:77")()


@needs_device
def test_instructions(machine):
    cases = {c.name: c for c in instruction_cases()}
    names = cases if FULL else INSTRUCTIONS
    outcomes = [instruction(cases[name], machine) for name in names]
    assert [str(o) for o in outcomes if o.result != PASS and o.row != "SubGroupXor"] == []
    assert instruction(cases["SubGroupXor F32 by 1"], machine).result == REFUSED


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has every row")
def test_rows():
    outcomes = [forward(cases_of(op)[0], "opencl") for op in rows()]
    assert [str(o) for o in outcomes if o.result == FAIL] == []


# --- faults and limits ----------------------------------------------------------------------------


@needs_device
def test_a_lane_that_leaves_a_buffer_is_named(machine):
    x = machine.array(np.arange(8, dtype=np.float32))
    program = assemble(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(ExecutionFailed, match=r"out of range in buffer 'x' \(lane 8\)"):
        machine.execute(program, LaunchConfig.linear(32, 16), {"x": x})
    machine.execute(program, LaunchConfig.linear(8, 8), {"x": x})  # it goes on
    assert (x.read() == np.arange(8)).all()


@needs_device
def test_a_lane_that_fails_lets_others_through_the_barrier(machine):
    x = machine.array(np.arange(8, dtype=np.int32))
    program = assemble(
        ".buffer x I32\nLDG.I32 r0, [x+r255*4]\nMOV_IMM.I32 r1, 12\nDIV r2, r1, r0\nBarSync\nSTG.I32 [x+r255*4], r2\n"
    )
    with pytest.raises(ExecutionFailed, match=r"division by zero \(lane 0\)"):
        machine.execute(program, LaunchConfig.linear(8, 8), {"x": x})
    assert x.read()[1:].tolist() == [12, 6, 4, 3, 2, 2, 1]


@needs_device
def test_memory_that_there_is_not():
    small = OpenClBackend(memory_limit=1 << 16)
    held = small.allocate(1 << 15)
    with pytest.raises(AllocationFailed, match="are used"):
        small.allocate(1 << 16)
    small.free(held)
    small.free(small.allocate(1 << 15))
    with pytest.raises(AllocationFailed, match="over the limit"):
        small.allocate(small.device.largest + 1)


@needs_device
def test_a_kernel_that_the_driver_refuses(machine, monkeypatch, capfd):
    monkeypatch.setattr(machine.dialect, "prelude", "this is no C")
    monkeypatch.setenv("ESHKOL_DUMP", "kernel")
    x = machine.array(np.zeros(4, np.float32))
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 41.5\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(BackendError, match="refuses the kernel of 'main'") as failure:
        machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert "ESHKOL_DUMP=kernel" in failure.value.hint
    assert "this is no C" in capfd.readouterr().err
    monkeypatch.undo()
    machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert (x.read() == 41.5).all()


class _Said:
    """What a driver says, as pyopencl keeps it in its errors."""

    def __init__(self, code: int) -> None:
        self.number = code

    def code(self) -> int:
        return self.number

    def routine(self) -> str:
        return "clEnqueueReadBuffer"

    def what(self) -> str:
        return "said so"

    def is_out_of_memory(self) -> bool:
        return False


@needs_device
@pytest.mark.parametrize(
    ("code", "kind"), [("DEVICE_NOT_AVAILABLE", DeviceLost), ("OUT_OF_RESOURCES", AllocationFailed),
                       ("INVALID_VALUE", BackendError)],
)  # fmt: skip
def test_what_a_driver_says_is_one_of_our_errors(machine, monkeypatch, code, kind):
    x = machine.array(np.zeros(4, np.float32))

    def fails(*args, **named):
        raise machine.cl.RuntimeError(_Said(getattr(machine.cl.status_code, code)))

    monkeypatch.setattr(machine.cl, "enqueue_copy", fails)
    with pytest.raises(kind, match=code):
        x.read()
    monkeypatch.undo()
    assert (x.read() == 0).all()


@needs_device
def test_pools_and_copies(machine):
    pool = machine.allocate_pool(16)
    machine.copy_to_pool(pool, 3, b"abc")
    assert machine.copy_from_pool(pool, 2, 5) == b"\0abc\0"
    program = assemble(".pool q\n.buffer x U16\nLDG.U16 r0, [pool q+3]\nSTG.U16 [x], r0\n")
    x = machine.allocate_typed(Type.U16, 1)
    machine.execute(program, LaunchConfig.linear(1), {"q": pool, "x": x})
    assert x.read()[0] == int.from_bytes(b"ab", "little")
    one, other = machine.array(np.arange(6, dtype=np.uint8)), machine.array(np.zeros(6, np.uint8))
    machine.copy_within(other.handle, 1, one.handle, 2, 3)
    assert other.read().tolist() == [0, 2, 3, 4, 0, 0]
    machine.copy_within(one.handle, 1, one.handle, 0, 4)
    assert one.read().tolist() == [0, 0, 1, 2, 3, 5]


@needs_device
def test_events_tell_time(machine):
    first, last = machine.event(), machine.event()
    first.record()
    last.record()
    last.wait()
    assert last.done()
    assert first.seconds_until(last) >= 0


@needs_device
def test_calls_and_jumps_back(machine, monkeypatch):
    source = """\
.buffer x I32
LDG.I32 r0, [x+r255*4]
MOV_IMM.I32 r1, 100
again:
CALL twice
SETcc.LT p0, r0, r1
BRA again, p0
STG.I32 [x+r255*4], r0
EXIT
twice:
LOOP r2, 2
ADD r0, r0, r0
ENDLOOP
RET
"""
    assert not writer.write_kernel(assemble(source), machine.dialect).structured
    x = machine.array(np.arange(1, 9, dtype=np.int32))
    machine.execute(assemble(source), LaunchConfig.linear(8), {"x": x})
    assert x.read().tolist() == [256, 128, 192, 256, 320, 384, 112, 128]


@needs_device
def test_full_blocks_run_without_the_guard(machine):
    """A way out before a barrier is one that PoCL 3.1 compiles wrongly, also if no lane takes it."""
    source = """\
.scalar n U64
.buffer x U32
.buffer y U32
LDG.U64 r0, [n]
SETcc.GE p0, r255, r0
BRA done, p0
SREG.LaneX r1
SREG.BlockX r2
LDG.U32 r3, [x+r255*4]
STS.U32 [shared+r1*4], r3
BarSync
MOV_IMM.U32 r4, 7
XOR r5, r1, r4
LDS.U32 r6, [shared+r5*4]
ADD r6, r6, r2
STG.U32 [y+r255*4], r6
done:
"""
    x, y = machine.array(np.arange(32, dtype=np.uint32)), machine.array(np.zeros(32, np.uint32))
    program, launch = assemble(source), LaunchConfig.linear(32, 8, 32)
    for lanes in (32, 24):
        y.write(np.zeros(32, np.uint32))
        machine.execute(program, launch, {"n": lanes, "x": x, "y": y})
        wanted = (np.arange(32) ^ 7) + np.arange(32) // 8
        assert y.read().tolist() == np.where(np.arange(32) < lanes, wanted, 0).tolist()


# --- tensors ------------------------------------------------------------------------------------------


@needs_device
def test_values_are_carried_between_machines():
    carries_values("opencl")


@needs_device
def test_tensors_and_gradients():
    has_the_cpus_gradients("opencl")


@needs_device
@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 4), (70, 33, 20)])
def test_products(m, k, n):
    rng = np.random.default_rng(m)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    with ek.device("opencl"):
        np.testing.assert_allclose((ek.tensor(x) @ ek.tensor(y)).numpy(), x @ y, rtol=1e-4, atol=1e-5)


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has networks: their kernels take a driver long to compile")
@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_networks_learn_as_on_the_cpu(model, shape):
    learns_as_the_cpu("opencl", model, shape)


@needs_device
def test_doctor_shows_the_device(capsys):
    from eshkol.cli.main import main

    main(["doctor", "--json"])
    (first, *_) = json.loads(capsys.readouterr().out)["backends"]["opencl"]["machines"]
    assert first["name"] == devices.device(0).name
    main(["doctor"])
    assert first["platform"].split()[0] in capsys.readouterr().out
