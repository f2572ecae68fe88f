"""The devices that wgpu finds, what each has beyond what browsers ask for, and the description schedules are made by.

Comes in: wgpu, if it is installed, and the adapters that it finds; of those that stand for one device the best
driver's. Goes out: `Device`s with what `eshkol doctor` shows of them, or why there are none, with what would change
that. WGSL promises little of floats: how a device rounds is found out by a small kernel (`probed`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from eshkol.atlas.machines import BLOCKS, MachineDescription, ProductTile
from eshkol.atlas.types import Array
from eshkol.backends.driven import Known
from eshkol.backends.webgpu.writer import LARGEST
from eshkol.support import installed

INSTALL = "pip install eshkol[webgpu]"
DRIVERS = "install the device's driver, or one for CPUs: apt install mesa-vulkan-drivers"
DOUBLES = ("shader-f64", "shader-int64")  # beyond what browsers have
APIS = ("Vulkan", "Metal", "D3D12")  # those with all that kernels need
UNKNOWN = 1 << 40  # bytes of memory, where none are told
# Limits that are asked for as far as an adapter has them; a browser gives 8 buffers, 256 lanes and 16 KiB by itself.
LIMITS = (
    "max-storage-buffers-per-shader-stage", "max-storage-buffer-binding-size", "max-buffer-size",
    "max-compute-invocations-per-workgroup", "max-compute-workgroup-size-x", "max-compute-workgroup-storage-size",
)  # fmt: skip
# On a CPU the kernels of large tiles take its driver longer to compile than they save.
CPU_TILES = (ProductTile(32, 32, 16, 2, 2), ProductTile(16, 16, 16, 1, 1))
CPU_BUSY = 64
PROBE = """\
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) {
  let a = x[at.x];
  let b = x[at.x + 256u];
  x[at.x + 768u] = fma(a, b, x[at.x + 512u]);
  x[at.x + 1024u] = a / b;
  x[at.x + 1280u] = sqrt(a);
}"""


@dataclass(frozen=True, slots=True)
class Device:
    """A device behind an adapter."""

    number: int
    adapter: Any
    name: str
    driver: str
    api: str
    is_cpu: bool
    limits: dict[str, int]
    doubles: bool

    @property
    def memory(self) -> int:
        """Bytes that there are at most: WebGPU does not tell, and what is too much fails when it is asked for."""
        return installed.memory() if self.is_cpu else UNKNOWN

    @property
    def largest(self) -> int:
        """Bytes of a buffer, at most."""
        return min(self.limits["max-buffer-size"], self.limits["max-storage-buffer-binding-size"], LARGEST) & ~7

    @property
    def shared_bytes(self) -> int:
        return self.limits["max-compute-workgroup-storage-size"]

    @property
    def lanes(self) -> int:
        limits = self.limits
        return min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])

    @property
    def buffers(self) -> int:
        """Those that a kernel is given, at most."""
        return self.limits["max-storage-buffers-per-shader-stage"]

    def facts(self) -> dict[str, Any]:
        """What it is like as JSON values."""
        return {
            "number": self.number, "name": self.name, "platform": f"{self.api} ({self.driver})",
            **({"memory": self.memory} if self.is_cpu else {}),
            "largest": self.largest, "shared_bytes": self.shared_bytes, "buffers": self.buffers,
            "float64": self.doubles, "int64_atomics": False,
        }  # fmt: skip

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        found = replace(
            BLOCKS, name=f"webgpu {self.name}", largest=self.largest,
            shared_memory=min(self.shared_bytes, BLOCKS.shared_memory), block=min(self.lanes, BLOCKS.block), subgroup=1,
            product_tiles=tuple(t for t in BLOCKS.product_tiles if t.lanes <= self.lanes),
        )  # fmt: skip
        return replace(found, busy=CPU_BUSY, several=1, product_tiles=CPU_TILES) if self.is_cpu else found

    def opened(self) -> Any:
        """The device itself, with all that it has of what kernels use."""
        features = [name for name in DOUBLES if self.doubles]
        return self.adapter.request_device_sync(required_features=features, required_limits=dict(self.limits))


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a device rounds F32: as IEEE says, or nearly."""

    fused: bool  # products that are added, once
    division: bool  # quotients and square roots


def probed(wgpu: Any, device: Any) -> Rounding:
    """How a device rounds, as far as some numbers tell."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 2, 256).astype(np.float32) for _ in range(2))
    product = a.astype(np.float64) * b
    c = -product.astype(np.float32)
    given: Array = np.concatenate([a, b, c, np.zeros(768, np.float32)]).astype(np.float32)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffer = device.create_buffer_with_data(data=given, usage=usage)
    module = device.create_shader_module(code=PROBE)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    entry = {"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=[entry])
    encoder = device.create_command_encoder()
    one = encoder.begin_compute_pass()
    one.set_pipeline(pipeline)
    one.set_bind_group(0, group)
    one.dispatch_workgroups(4)
    one.end()
    device.queue.submit([encoder.finish()])
    fused, quotient, root = np.frombuffer(device.queue.read_buffer(buffer), np.float32)[768:].reshape(3, 256)
    exact = (product + c).astype(np.float32)
    return Rounding(bool((fused == exact).all()), bool((quotient == a / b).all() and (root == np.sqrt(a)).all()))


@cache
def _found() -> tuple[Device, ...] | str:
    """All devices, or why there are none."""
    try:
        import wgpu
    except ImportError as error:
        missing = error.name == "wgpu"
        return f"wgpu is not installed: {INSTALL}" if missing else f"wgpu does not load ({error}): {INSTALL}"
    try:
        adapters = wgpu.gpu.enumerate_adapters_sync()
    except (RuntimeError, OSError) as error:  # its library does not load, or its drivers do not
        return f"wgpu does not start ({error}): {INSTALL}"
    usable = [adapter for adapter in adapters if adapter.info["backend_type"] in APIS]
    if not usable:
        return f"wgpu finds no device: {DRIVERS}"
    best = min(APIS.index(adapter.info["backend_type"]) for adapter in usable)
    return tuple(
        _device(number, adapter)
        for number, adapter in enumerate(a for a in usable if a.info["backend_type"] == APIS[best])
    )


def _device(number: int, adapter: Any) -> Device:
    info = adapter.info
    return Device(
        number, adapter, info["device"] or info["vendor"] or "a device", info["description"], info["backend_type"],
        info["adapter_type"] == "CPU", {name: adapter.limits[name] for name in LIMITS},
        all(name in adapter.features for name in DOUBLES),
    )  # fmt: skip


KNOWN = Known("webgpu", _found)
unavailable, devices, device = KNOWN.unavailable, KNOWN.devices, KNOWN.device
