"""`ek.cuda`: PyTorch's names for graphics cards of NVIDIA's: whether there are any, streams, events, waiting for them.

On a stream everything happens in order. There is one for each device that is used unless another is asked for; what
values need is waited for where they come from other streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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
    return devices.open_backend(_device_name(device))


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

    def record(self, stream: Stream | None = None) -> None:
        """Let it be here: after all that a stream, by default the current one, was asked for so far."""
        self._event.record(None if stream is None else stream._stream)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Let what a stream, by default the current one, is asked for from now on be done after this."""
        (current_stream() if stream is None else stream).wait_event(self)

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


class Stream:
    """What a device does in order, beside what it does on other streams.

    >>> aside = ek.cuda.Stream()
    >>> with ek.cuda.stream(aside):
    ...     batch = pinned.to("cuda")  # copied while the current stream computes
    >>> y = f(batch)  # waits for the copy by itself

    A device has 32 of them; further ones are these again. Priorities are not told apart.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self._stream = _machine(device).new_stream()
        self.device = _device_name(device)

    @classmethod
    def _of(cls, found: Any, device: Any) -> Stream:
        made = cls.__new__(cls)
        made._stream, made.device = found, _device_name(device)
        return made

    @property
    def cuda_stream(self) -> int:
        """The driver's handle, for other libraries."""
        return int(self._stream.handle)

    def query(self) -> bool:
        """Whether all that it was asked for is done."""
        return bool(self._stream.done())

    def synchronize(self) -> None:
        """Wait until it is."""
        self._stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """An event, a new one unless given, after all that it was asked for so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what it is asked for from now on be done after an event."""
        self._stream.wait(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Let what it is asked for from now on be done after all that another stream was asked for so far."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self._number) == (other.device, other._number)

    def __hash__(self) -> int:
        return hash((self.device, self._number))

    @property
    def _number(self) -> int:
        return int(self._stream.number)

    def __repr__(self) -> str:
        return f"<Stream {self._number} of {self.device}>"


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """What its device is asked for within the block goes to a stream, whoever asks; None changes nothing."""
    with nullcontext() if stream is None else stream._stream.used():
        yield


def current_stream(device: Any = None) -> Stream:
    """The stream to which a device's work goes now."""
    return Stream._of(_machine(device).stream_numbered(), device)


def default_stream(device: Any = None) -> Stream:
    """The stream that a device has anyhow."""
    return Stream._of(_machine(device).stream_numbered(0), device)


def _device_name(device: Any) -> str:
    name = devices.gpu_name() if device is None else devices.cuda_name(device) if isinstance(device, int) else device
    return str(name)


def __getattr__(name: str) -> Any:
    raise no_attribute(name, globals(), "eshkol.cuda")
