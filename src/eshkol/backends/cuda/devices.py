"""The GPUs that the driver knows, and the description of each that schedules are made by.

Comes in: the driver. Goes out: `Device`s with what `eshkol doctor` shows of them, and `MachineDescription`s.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from eshkol.atlas.machines import BLOCKS, MATRICES, MachineDescription
from eshkol.backends.cuda import driver as drivers
from eshkol.backends.cuda.driver import Driver
from eshkol.backends.cuda.warpgroups.instructions import CAPABILITY
from eshkol.errors import BackendUnavailable

BLOCK = 256  # lanes of a block: enough of them hide what memory takes, and registers suffice for several blocks
MATRIX_CAPABILITY = (8, 0)  # from here on there are products of both types, and copies that go on by themselves
BLOCKS_EACH = 8  # blocks that keep a multiprocessor at work


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU."""

    number: int
    name: str
    capability: tuple[int, int]
    memory: int  # bytes
    multiprocessors: int
    shared_bytes: int  # that a block can ask for
    l2_bytes: int
    cooperative: bool  # whether blocks of a launch can wait for each other
    warpgroups: bool  # whether four of its warps multiply matrices together

    def facts(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {"capability": "{}.{}".format(*self.capability), "driver": drivers.driver_version()}

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        return replace(
            BLOCKS, name=f"cuda {self.name}", largest=self.memory, shared_memory=self.shared_bytes, block=BLOCK,
            busy=self.multiprocessors * BLOCKS_EACH, processors=self.multiprocessors, host_helps=False,
            small=self.memory,
            matrices=replace(MATRICES, whole=self.warpgroups) if self.capability >= MATRIX_CAPABILITY else None,
        )  # fmt: skip


def device(number: int) -> Device:
    """A GPU by its number."""
    driver = drivers.driver()
    count = driver.number("cuDeviceGetCount")
    if not 0 <= number < count:
        known = "cuda" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise BackendUnavailable(f"there is no GPU cuda:{number}", hint=f"there is {known}")
    return _found(driver, number)


def devices() -> list[Device]:
    """All GPUs; none where there is no driver."""
    if drivers.unavailable() is not None:
        return []
    driver = drivers.driver()
    return [_found(driver, number) for number in range(driver.number("cuDeviceGetCount"))]


def _found(driver: Driver, number: int) -> Device:
    at = driver.number("cuDeviceGet", number)

    def ask(what: str) -> int:
        return driver.attribute(at, what)

    capability = ask("major"), ask("minor")
    return Device(
        number, driver.device_name(at), capability, driver.total_memory(at), ask("multiprocessors"),
        ask("shared_bytes"), ask("l2_bytes"), bool(ask("cooperative")), capability == CAPABILITY and driver.has_maps,
    )  # fmt: skip
