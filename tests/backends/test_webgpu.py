"""Devices of WebGPU: instructions, tensors, networks and faults, where there is wgpu and a driver.

Mesa's driver for CPUs (lavapipe) is enough. Elsewhere all of it is skipped, with the reason; the text of kernels is
tested everywhere (`test_wgsl.py`). Results are those of the CPU within a few units of the last place.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from on_machines import NETWORKS, carries_values, has_the_cpus_gradients, learns_as_the_cpu

from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends import backend_class
from eshkol.backends.text import writer
from eshkol.backends.webgpu import devices
from eshkol.backends.webgpu.backend import WebGpuBackend
from eshkol.backends.webgpu.dialect import Wgsl
from eshkol.conformance.checks import cases_of, forward
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.conformance.samples import rows
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, DeviceLost, ExecutionFailed

REASON = devices.unavailable()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
INSTRUCTIONS = ["DIV I64", "FMA F32", "MIN BF16", "SHR I8", "MUL I128", "CVT F32 to I8", "CVT U64 to F32",
                "SETcc LT U64", "SETcc NE F32", "LDS STS U16", "ATOM Add F16"]  # fmt: skip
OF_DOUBLES = ["FMA F64", "CVT F64 to BF16"]
SAXPY = ".scalar a F32\n.buffer x F32\n.buffer y F32\nLDG.F32 r0, [a]\nLDG.F32 r1, [x+r255*4]\nLDG.F32 r2, [y+r255*4]\n"
SAXPY += "FMA r2, r0, r1, r2\nSTG.F32 [y+r255*4], r2\n"


@pytest.fixture(scope="module")
def machine():
    return WebGpuBackend()


@pytest.fixture(scope="module")
def browser():
    """A machine whose kernels are those of browsers, and which is told that nothing is exact."""
    return WebGpuBackend(dialect=Wgsl(fused=False, exact_division=False))


def test_without_wgpu_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wgpu", None)
    devices._found.cache_clear()
    try:
        assert "pip install eshkol[webgpu]" in str(WebGpuBackend.unavailable())
        assert WebGpuBackend.machines() == []
        with pytest.raises(BackendUnavailable, match="wgpu"):
            devices.device(0)
    finally:
        devices._found.cache_clear()


@needs_device
def test_without_a_driver_the_reason_says_what_to_install(monkeypatch):
    import wgpu

    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", list)
    devices._found.cache_clear()
    try:
        assert "mesa-vulkan-drivers" in str(WebGpuBackend.unavailable())
    finally:
        devices._found.cache_clear()


def test_devices_have_numbers():
    assert backend_class("webgpu:0") is WebGpuBackend
    assert backend_class("webgpu:3").name == "webgpu:3"


@needs_device
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BackendUnavailable, match="webgpu:77"):
        backend_class("webgpu:77")()


@needs_device
def test_instructions(machine):
    cases = {c.name: c for c in instruction_cases()}
    names = cases if FULL else [*INSTRUCTIONS, *(OF_DOUBLES if machine.device.doubles else [])]
    outcomes = [instruction(cases[name], machine) for name in names]
    assert [str(o) for o in outcomes if o.result == FAIL or (not FULL and o.result != PASS)] == []
    for name in ("SubGroupXor F32 by 1", "ADD I512", "ATOM Add I64"):
        assert instruction(cases[name], machine).result == REFUSED


@needs_device
def test_instructions_as_browsers_have_them(browser):
    cases = {c.name: c for c in instruction_cases()}
    names = cases if FULL else [*INSTRUCTIONS, "DIV F32", "SQRT F32", "CVT F32 to U64"]
    outcomes = [instruction(cases[name], browser) for name in names]
    assert [str(o) for o in outcomes if o.result == FAIL or (not FULL and o.result != PASS)] == []
    assert "F64" in instruction(cases["ADD F64"], browser).message


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has every row")
def test_rows():
    outcomes = [forward(cases_of(op)[0], "webgpu") for op in rows()]
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
@pytest.mark.parametrize(
    ("index", "offset", "bad"),
    [([0, 7], 0, False), ([0, 8], 0, True), ([-1, 0], 0, True), ([-2, 5], 8, False), ([-3, 0], 8, True),
     ([1 << 30, 0], 0, True), ([-(1 << 31), 0], 8, True)],
)  # fmt: skip
@pytest.mark.parametrize("ty", ["I32", "I64"])
def test_indices_with_a_sign(machine, ty, index, offset, bad):
    x = machine.array(np.arange(8, dtype=np.int32))
    at = machine.array(np.array(index, np.int32 if ty == "I32" else np.int64))
    source = (
        f".buffer x I32\n.buffer i {ty}\nLDG.{ty} r0, [i+r255*{4 if ty == 'I32' else 8}]\n"
        f"LDG.I32 r1, [x+{offset}+r0*4]\nSTG.I32 [x+{offset}+r0*4], r1\n"
    )
    if bad:
        with pytest.raises(ExecutionFailed, match="out of range in buffer 'x'"):
            machine.execute(assemble(source), LaunchConfig.linear(2), {"x": x, "i": at})
    else:
        machine.execute(assemble(source), LaunchConfig.linear(2), {"x": x, "i": at})
    assert x.read().tolist() == list(range(8))


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
    small = WebGpuBackend(memory_limit=1 << 16)
    held = small.allocate(1 << 15)
    with pytest.raises(AllocationFailed, match="are used"):
        small.allocate(1 << 16)
    small.free(held)
    small.free(small.allocate(1 << 15))
    with pytest.raises(AllocationFailed, match="over the limit"):
        small.allocate(small.device.largest + 1)


@needs_device
def test_more_buffers_than_a_device_binds(machine, monkeypatch):
    monkeypatch.setitem(machine.device.limits, "max-storage-buffers-per-shader-stage", 1)
    given = {"a": 3.0, "x": machine.array(np.ones(4, np.float32)), "y": machine.array(np.ones(4, np.float32))}
    program = assemble(SAXPY.replace("FMA r2, r0, r1, r2", "FMA r2, r0, r2, r1"))
    with pytest.raises(BackendUnavailable, match="1 buffers at most"):
        machine.execute(program, LaunchConfig.linear(4), given)
    monkeypatch.undo()
    machine.execute(program, LaunchConfig.linear(4), given)
    assert given["y"].read().tolist() == [4.0] * 4


@needs_device
def test_a_kernel_that_the_driver_refuses(machine, monkeypatch, capfd):
    monkeypatch.setattr(machine.dialect, "barrier", "this is no WGSL;")
    monkeypatch.setenv("ESHKOL_DUMP", "kernel")
    x = machine.array(np.zeros(4, np.float32))
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 41.5\nBarSync\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(BackendError, match="refuses the kernel of 'main'") as failure:
        machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert "ESHKOL_DUMP=kernel" in failure.value.hint
    assert "this is no WGSL" in capfd.readouterr().err
    monkeypatch.undo()
    machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert (x.read() == 41.5).all()


@needs_device
@pytest.mark.parametrize(
    ("said", "kind"), [("Parent device is lost", DeviceLost), ("Not enough memory left.", AllocationFailed),
                       ("Buffer does not suit", BackendError)],
)  # fmt: skip
def test_what_a_driver_says_is_one_of_our_errors(machine, monkeypatch, said, kind):
    x = machine.array(np.zeros(4, np.float32))

    def fails(*args, **named):
        raise machine.wgpu.GPUValidationError(said)

    monkeypatch.setattr(machine.queue, "read_buffer", fails)
    with pytest.raises(kind, match=said):
        x.read()
    monkeypatch.undo()
    assert (x.read() == 0).all()


@needs_device
def test_a_device_that_is_lost():
    lost = WebGpuBackend()
    x = lost.array(np.zeros(4, np.float32))
    lost.gpu.destroy()
    with pytest.raises(DeviceLost, match="does not answer"):
        x.read()
    with pytest.raises(DeviceLost):
        lost.allocate(64)


@needs_device
def test_pools_and_copies(machine):
    pool = machine.allocate_pool(16)
    machine.copy_to_pool(pool, 3, b"abc")
    assert machine.copy_from_pool(pool, 2, 5) == b"\0abc\0"
    program = assemble(".pool q\n.buffer x U16\nLDG.U16 r0, [pool q+3]\nSTG.U16 [x], r0\nSTG.U16 [pool q+7], r0\n")
    x = machine.allocate_typed(Type.U16, 1)
    machine.execute(program, LaunchConfig.linear(1), {"q": pool, "x": x})
    assert x.read()[0] == int.from_bytes(b"ab", "little")
    assert machine.copy_from_pool(pool, 2, 8) == b"\0abc\0ab\0"
    one, other = machine.array(np.arange(6, dtype=np.uint8)), machine.array(np.zeros(6, np.uint8))
    machine.copy_within(other.handle, 1, one.handle, 2, 3)
    assert other.read().tolist() == [0, 2, 3, 4, 0, 0]
    machine.copy_within(one.handle, 1, one.handle, 0, 4)
    assert one.read().tolist() == [0, 0, 1, 2, 3, 5]
    large, copy = (machine.array(np.arange(9, dtype=np.int32)) for _ in range(2))
    machine.copy_within(copy.handle, 4, large.handle, 16, 12)
    assert copy.read().tolist() == [0, 4, 5, 6, 4, 5, 6, 7, 8]


@needs_device
def test_lanes_write_bytes_of_one_word(machine):
    x, y = machine.array(np.arange(250, dtype=np.uint8)), machine.array(np.zeros(250, np.uint8))
    program = assemble(".buffer x U8\n.buffer y U8\nLDG.U8 r0, [x+r255*1]\nNOT r0, r0\nSTG.U8 [y+r255*1], r0\n")
    machine.execute(program, LaunchConfig.linear(250, 50), {"x": x, "y": y})
    assert (y.read() == 255 - np.arange(250)).all()


@needs_device
def test_more_blocks_than_an_axis_has(machine):
    count = 70_000
    x = machine.array(np.zeros(count, np.uint32))
    program = assemble(".buffer x U32\nCVT.U64.U32 r0, r255\nSTG.U32 [x+r255*4], r0\n")
    machine.execute(program, LaunchConfig.linear(count, 1), {"x": x})
    assert (x.read() == np.arange(count)).all()


@needs_device
def test_events_tell_time(machine):
    first, last = machine.event(), machine.event()
    first.record()
    last.record()
    last.wait()
    assert last.done()
    assert first.seconds_until(last) >= 0


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has it: lavapipe takes most of a minute to compile a stack")
def test_calls_and_jumps_back(machine):
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
    assert not writer.write_kernel(assemble(source), machine.dialect, writer=machine.writer).structured
    x = machine.array(np.arange(1, 9, dtype=np.int32))
    machine.execute(assemble(source), LaunchConfig.linear(8), {"x": x})
    assert x.read().tolist() == [256, 128, 192, 256, 320, 384, 112, 128]


# --- tensors ------------------------------------------------------------------------------------------


@needs_device
def test_values_are_carried_between_machines():
    carries_values("webgpu")


@needs_device
def test_tensors_and_gradients():
    has_the_cpus_gradients("webgpu")


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has networks: their kernels take a driver long to compile")
@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_networks_learn_as_on_the_cpu(model, shape):
    learns_as_the_cpu("webgpu", model, shape)


@needs_device
def test_doctor_shows_the_device(capsys):
    from eshkol.cli.main import main

    main(["doctor", "--json"])
    (first, *_) = json.loads(capsys.readouterr().out)["backends"]["webgpu"]["machines"]
    assert first["name"] == devices.device(0).name
    main(["doctor"])
    assert first["platform"].split()[0] in capsys.readouterr().out
