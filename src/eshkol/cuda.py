"""`ek.cuda`: PyTorch's names for graphics cards of NVIDIA's: whether there are any, waiting for them, times of theirs.

There is one stream for each device, on which everything happens in order.
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import TensorError
from eshkol.tensors import devices
from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.torch_random import manual_seed as manual_seed

DEVICE = "cuda"


def is_available() -> bool:
    """Whether there is such a device."""
    return any(name.partition(":")[0] == DEVICE for name in devices.names())


def device_count() -> int:
    """How many such devices there are."""
    return sum(name.partition(":")[0] == DEVICE for name in devices.names())


def manual_seed_all(seed: int) -> None:
    """Let everybody's generator begin again from a seed: it is the same for all devices."""
    manual_seed(seed)


def _machine(device: Any = None) -> Any:
    """A device by its name or number; without one, the GPU."""
    if device is None:
        return devices.open_backend(devices.gpu_name())
    return devices.open_backend(devices.cuda_name(device) if isinstance(device, int) else str(device))


def synchronize(device: Any = None) -> None:
    """Wait until a device has done all that it was asked for."""
    _machine(device).synchronize()


def empty_cache() -> None:
    """Give memory that no tensor needs back to the driver; it is kept for other tensors otherwise."""
    _machine().release()


class Event:
    """A point in what a device is asked for; the time between two of them is the device's own.

    >>> start, end = ek.cuda.Event(enable_timing=True), ek.cuda.Event(enable_timing=True)
    >>> start.record(); y = f(x); end.record()
    >>> end.synchronize(); print(start.elapsed_time(end), "ms")
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise TensorError("events are not shared between processes", hint="leave interprocess out")
        self._event = _machine().event()
        self._timed, self._recorded = enable_timing, False

    def record(self, stream: None = None) -> None:
        """Let it be here: after all that the device was asked for so far."""
        if stream is not None:
            raise TensorError("each device has one stream", hint="call record() without a stream")
        self._event.record()
        self._recorded = True

    def query(self) -> bool:
        """Whether the device has come there."""
        return bool(self._event.done())

    def synchronize(self) -> None:
        """Wait until the device has come there."""
        self._event.wait()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of the device from this event to another."""
        if not (self._timed and end_event._timed and self._recorded and end_event._recorded):
            raise TensorError(
                "the time between two events needs both recorded, and made to measure it",
                hint="ek.cuda.Event(enable_timing=True), and record() before and after the work",
            )  # fmt: skip
        return 1000.0 * float(self._event.seconds_until(end_event._event))


def __getattr__(name: str) -> Any:
    raise no_attribute(name, globals(), "eshkol.cuda")
