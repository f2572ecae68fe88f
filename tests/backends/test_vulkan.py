"""Devices of Vulkan: instructions, tensors, networks and faults, where there is a loader and a driver.

Mesa's driver for CPUs (lavapipe) is enough. Elsewhere all of it is skipped, with the reason; what SPIR-V is made is
tested everywhere (`test_spirv.py`). Results are those of the CPU within a few units of the last place.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from on_machines import NETWORKS, carries_values, has_the_cpus_gradients, learns_as_the_cpu

from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends import backend_class
from eshkol.backends.text import writer
from eshkol.backends.vulkan import api as vk
from eshkol.backends.vulkan import devices
from eshkol.backends.vulkan.backend import VulkanBackend
from eshkol.conformance.checks import cases_of, forward
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.conformance.samples import rows
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, DeviceLost, ExecutionFailed

REASON = devices.unavailable()
needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
INSTRUCTIONS = ["ADD F16", "DIV I64", "REM F32", "FMA F32", "FMA F64", "MIN BF16", "SHR I8", "MUL I256", "SQRT F32",
                "CVT F64 to BF16", "CVT F32 to I8", "CVT U128 to F32", "SETcc LT U64", "LDS STS U16", "LDS STS F64",
                "ATOM Add F16", "ATOM Max I64"]  # fmt: skip
HALVED = ".buffer x F32\nLDG.F32 r0, [x+r255*4]\nMOV_IMM.F32 r1, 0.5\nMUL r0, r0, r1\nSTG.F32 [x+r255*4], r0\n"


@pytest.fixture(scope="module")
def machine():
    return VulkanBackend()


@pytest.fixture
def forgotten():
    """What was found of devices is looked for again, now and afterwards."""
    devices._found.cache_clear()
    yield
    devices._found.cache_clear()


def test_without_a_library_the_reason_says_what_to_install(monkeypatch, forgotten):
    monkeypatch.setattr(vk, "api", lambda: None)
    assert "apt install libvulkan1" in str(VulkanBackend.unavailable())
    assert VulkanBackend.machines() == []
    with pytest.raises(BackendUnavailable, match="there is no"):
        devices.device(0)


def test_libraries_that_are_not_there_are_none(monkeypatch):
    vk.api.cache_clear()
    monkeypatch.setattr(vk, "LIBRARIES", ("libof-no-machine.so.7",))
    try:
        assert vk.api() is None
    finally:
        vk.api.cache_clear()


@needs_device
def test_without_a_driver_the_reason_says_what_to_install(monkeypatch, forgotten):
    def none(self, name, *given):
        if name == "vkEnumeratePhysicalDevices":
            raise vk.Failed(-3, name)
        return []

    monkeypatch.setattr(vk.Api, "listed", none)
    assert "mesa-vulkan-drivers" in str(VulkanBackend.unavailable())
    assert "ERROR_INITIALIZATION_FAILED" in str(VulkanBackend.unavailable())


@needs_device
def test_a_device_that_lacks_what_all_kernels_need(monkeypatch, forgotten):
    monkeypatch.setattr(devices, "features_of", lambda api, handle: frozenset({"shaderInt64"}))
    assert "lacks bufferDeviceAddress, vulkanMemoryModel" in str(VulkanBackend.unavailable())


def test_devices_have_numbers():
    assert backend_class("vulkan:0") is VulkanBackend
    assert backend_class("vulkan:3").name == "vulkan:3"


@needs_device
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(BackendUnavailable, match="vulkan:77"):
        backend_class("vulkan:77")()


@needs_device
def test_instructions(machine):
    cases = {c.name: c for c in instruction_cases()}
    slow = {f"{name} {sign}4096" for name in ("DIV", "REM") for sign in "IU"}  # rounds of bits: minutes on a CPU
    names = [name for name in cases if name not in slow] if FULL else INSTRUCTIONS
    outcomes = [instruction(cases[name], machine) for name in names]
    assert [str(o) for o in outcomes if o.result != PASS and o.row != "SubGroupXor"] == []
    assert instruction(cases["SubGroupXor F32 by 1"], machine).result == REFUSED


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has every row")
def test_rows():
    outcomes = [forward(cases_of(op)[0], "vulkan") for op in rows()]
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
    small = VulkanBackend(memory_limit=1 << 16)
    held = small.allocate(1 << 15)
    with pytest.raises(AllocationFailed, match="are used"):
        small.allocate(1 << 16)
    small.free(held)
    small.free(small.allocate(1 << 15))
    with pytest.raises(AllocationFailed, match="over the limit"):
        small.allocate(small.device.largest + 1)


@needs_device
def test_memory_that_is_kept_is_given_back_before_an_allocation_fails(machine, monkeypatch):
    machine.free(machine.allocate(3 << 20))
    made, asked = machine.api.made, []

    def fails_once(name, *given):
        if name == "vkAllocateMemory" and not asked:
            asked.append(len(machine.allocator._large.blocks))
            raise vk.Failed(-2, name)
        return made(name, *given)

    monkeypatch.setattr(machine.api, "made", fails_once)
    machine.free(machine.allocate(64 << 20))
    assert asked[0] > 0
    machine.release()
    assert not machine.allocator._large.blocks


@needs_device
def test_a_kernel_that_the_driver_refuses(machine, monkeypatch, capfd):
    def refuses(self, name, *given):
        raise vk.Failed(-13, name)

    monkeypatch.setattr(vk.Api, "made", refuses)
    monkeypatch.setenv("ESHKOL_DUMP", "kernel")
    x = machine.array(np.zeros(4, np.float32))
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 41.5\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(BackendError, match="refuses the kernel of 'main'") as failure:
        machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert "ESHKOL_DUMP=kernel" in failure.value.hint
    assert "kernel_main" in capfd.readouterr().err
    monkeypatch.undo()
    machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert (x.read() == 41.5).all()


@needs_device
def test_a_pipeline_that_the_driver_refuses(machine, monkeypatch):
    call = machine.api.call

    def refuses(name, *given):
        if name == "vkCreateComputePipelines":
            raise vk.Failed(-13, name)
        call(name, *given)

    monkeypatch.setattr(machine.api, "call", refuses)
    x = machine.array(np.zeros(4, np.float32))
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 42.5\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(BackendError, match="ERROR_UNKNOWN"):
        machine.execute(program, LaunchConfig.linear(4), {"x": x})
    monkeypatch.undo()
    machine.execute(program, LaunchConfig.linear(4), {"x": x})
    assert (x.read() == 42.5).all()


@needs_device
@pytest.mark.parametrize(("code", "kind"), [(-4, DeviceLost), (-2, AllocationFailed), (-1, AllocationFailed),
                                            (-13, BackendError)])  # fmt: skip
def test_what_a_driver_says_is_one_of_our_errors(machine, monkeypatch, code, kind):
    x = machine.array(np.zeros(4, np.float32))
    call = machine.api.call

    def fails(name, *given):
        if name == "vkBeginCommandBuffer":
            raise vk.Failed(code, name)
        call(name, *given)

    monkeypatch.setattr(machine.api, "call", fails)
    with pytest.raises(kind, match=vk.RESULTS[code]):
        machine.execute(assemble(HALVED), LaunchConfig.linear(4), {"x": x})
    monkeypatch.undo()
    machine.execute(assemble(HALVED), LaunchConfig.linear(4), {"x": x})
    assert (x.read() == 0).all()


@needs_device
def test_a_feature_that_the_device_lacks_is_named(machine, monkeypatch):
    monkeypatch.setattr(devices, "OFFERED", dict.fromkeys(devices.OFFERED, "a feature that none has"))
    x = machine.array(np.zeros(4, np.uint8))
    program = assemble(".buffer x U8\nMOV_IMM.U8 r0, 77\nSTG.U8 [x+r255*1], r0\n")
    with pytest.raises(BackendUnavailable, match="has no a feature that none has"):
        machine.execute(program, LaunchConfig.linear(4), {"x": x})


@needs_device
def test_a_driver_that_ends_loops_is_found_out(machine):
    """Mesa's driver for CPUs ends loops after 65,535 rounds: what comes out is told to be wrong, not shown."""
    if not machine.device.ends_loops:
        pytest.skip(f"{machine.device.driver} ends no loops")
    x = machine.array(np.zeros(8, np.uint32))
    counted = ".buffer x U32\n.scalar n U32\nLDG.U32 r3, [n]\nMOV_IMM.U32 r0, 0\nLOOP r1, r3\nXOR r0, r0, r1\nENDLOOP\n"
    program = assemble(counted + "STG.U32 [x+r255*4], r0\n")
    machine.execute(program, LaunchConfig.linear(8), {"x": x, "n": 60000})
    assert (x.read() == np.bitwise_xor.reduce(np.arange(60000))).all()
    machine.execute(program, LaunchConfig.linear(8), {"x": x, "n": 70000})
    with pytest.raises(BackendUnavailable, match="ends loops after 65535 rounds, and the kernel of 'main'"):
        x.read()
    machine.execute(program, LaunchConfig.linear(8), {"x": x, "n": 5})
    assert (x.read() == 4).all()


# --- memory, queue and control --------------------------------------------------------------------


@needs_device
@pytest.mark.parametrize("mapped", [None, False])
def test_pools_and_copies(mapped):
    """Where the host sees the device's memory, and where it does not."""
    machine = VulkanBackend(mapped=mapped)
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
    large = np.arange(5 << 18, dtype=np.uint32)
    assert (machine.array(large).read() == large).all()


@needs_device
def test_many_launches_are_done_in_order(machine):
    """More than a command buffer holds, with writes of the host's in between."""
    x = machine.array(np.full(4, 2.0**100, np.float32))
    for k in range(150):
        machine.execute(assemble(HALVED), LaunchConfig.linear(4), {"x": x})
        if k == 99:
            machine.copy_to(x.handle, np.float32(2.0**50).tobytes(), 4)
    assert x.read().tolist() == [2.0**-50, 1.0, 2.0**-50, 2.0**-50]


@needs_device
def test_more_blocks_than_a_dispatch_has(machine, monkeypatch):
    blocks = machine.device.blocks
    if blocks > 1 << 17:
        pytest.skip("this device has no such limit worth a launch")
    x = machine.array(np.zeros(blocks + 3, np.uint8))
    program = assemble(".buffer x U8\nMOV_IMM.U8 r0, 7\nSTG.U8 [x+r255*1], r0\n")
    machine.execute(program, LaunchConfig.linear(blocks + 3, 1), {"x": x})
    assert (x.read() == 7).all()


@needs_device
def test_events_tell_time(machine):
    first, last = machine.event(), machine.event()
    x = machine.array(np.zeros(4, np.float32))
    first.record()
    machine.execute(assemble(HALVED), LaunchConfig.linear(4), {"x": x})
    last.record()
    last.wait()
    assert last.done()
    assert 0 <= first.seconds_until(last) < 60


@needs_device
def test_kernels_are_made_once(tmp_path, monkeypatch):
    """SPIR-V is kept in the program cache."""
    from eshkol.backends.vulkan import backend as module
    from eshkol.support.store import ProgramCache

    one = VulkanBackend(cache=ProgramCache(tmp_path))
    text = one.source(assemble(HALVED))
    code = one.spirv(text)
    monkeypatch.setattr(module, "compile_kernel", lambda *given: pytest.fail("it was made again"))
    assert VulkanBackend(cache=ProgramCache(tmp_path)).spirv(text) == code


@needs_device
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
    assert not writer.write_kernel(assemble(source), machine.dialect).structured
    x = machine.array(np.arange(1, 9, dtype=np.int32))
    machine.execute(assemble(source), LaunchConfig.linear(8), {"x": x})
    assert x.read().tolist() == [256, 128, 192, 256, 320, 384, 112, 128]


# --- tensors ------------------------------------------------------------------------------------------


@needs_device
def test_values_are_carried_between_machines():
    carries_values("vulkan")


@needs_device
def test_tensors_and_gradients():
    has_the_cpus_gradients("vulkan")


@needs_device
@pytest.mark.skipif(not FULL, reason="make test-all has networks: their kernels take a driver long to compile")
@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_networks_learn_as_on_the_cpu(model, shape):
    learns_as_the_cpu("vulkan", model, shape)


@needs_device
def test_doctor_shows_the_device(capsys):
    from eshkol.cli.main import main

    main(["doctor", "--json"])
    backends = json.loads(capsys.readouterr().out)["backends"]
    assert backends["vulkan"]["machines"][0]["name"] == devices.device(0).name
    assert "metal" in backends
    main(["doctor"])
    assert devices.device(0).name.split()[0] in capsys.readouterr().out
