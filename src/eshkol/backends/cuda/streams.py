"""Streams of a GPU: what is asked for on one is done in order, and beside what is asked for on others.

Comes in: which stream is used, and the addresses that runs read and write. Goes out: events that streams wait for. As
long as there is one stream, nothing here is asked. With several, it is known of each value on which stream it was made,
and when: a stream that uses it waits for the other, once. Memory returns to the pool of the stream that it was taken
for (`native/front/blocks.c`), in whose order it is used again; what another stream reads meanwhile is held until that
has been done. What is not known was perhaps made on any of them: all are waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eshkol.backends import base
from eshkol.backends.cuda.driver import NOT_READY, Driver
from eshkol.backends.cuda.events import CudaEvent
from eshkol.backends.cuda.memory import BLOCKING_FREE, Allocator
from eshkol.runtime.launches import QueuedDevice

MOST = 32  # beside the first; further ones are the same again, as PyTorch has it
NON_BLOCKING = 1  # of a stream: it does not wait for the default one
REMEMBERED = 1 << 16  # values of which it is known where they were made

Made = tuple[int, int]  # on which stream, and as the how manyth thing that it was asked for


class Streams:
    """The streams of a device. `enter` makes the device the thread's own."""

    def __init__(self, driver: Driver, enter: Callable[[], None]) -> None:
        self._driver, self._enter = driver, enter
        self.handles = [driver.handle("cuStreamCreate", NON_BLOCKING)]
        self.current = 0
        self._events: list[int] = []  # one of each stream, for others to wait for
        self._asked = [0]  # how much each was asked for
        self._seen: list[list[int]] = [[0]]  # of each: how much of each of the others is done before what comes now
        self._made: dict[int, Made] = {}  # by address
        self._held: deque[tuple[int, list[Any]]] = deque()  # events, and what is read before them
        self._given = 0
        self._queue: QueuedDevice | None = None
        self._blocks: Allocator | None = None

    def attach(self, queue: QueuedDevice, blocks: Allocator) -> None:
        """What is told which stream is used."""
        self._queue, self._blocks = queue, blocks

    @property
    def several(self) -> bool:
        """Whether there is more than the first."""
        return len(self.handles) > 1

    @property
    def handle(self) -> int:
        """The driver's, of the stream that is used now."""
        return self.handles[self.current]

    def new(self) -> int:
        """The number of a stream beside the others."""
        self._enter()
        if len(self.handles) <= MOST:
            if not self._events:
                self._events.append(self._driver.handle("cuEventCreate", BLOCKING_FREE))
            self.handles.append(self._driver.handle("cuStreamCreate", NON_BLOCKING))
            self._events.append(self._driver.handle("cuEventCreate", BLOCKING_FREE))
            self._asked.append(0)
            for seen in self._seen:
                seen.append(0)
            self._seen.append([-1] * len(self.handles))  # what was made before anyone took notes
            self.use(self.current)
        self._given += 1
        return 1 + (self._given - 1) % MOST

    def use(self, number: int) -> None:
        """Let what is asked for from now on go to a stream."""
        assert self._queue is not None
        assert self._blocks is not None
        self._queue.use(self.handles[number])
        self._blocks.use(number)
        self.current = number

    # --- what waits for what ------------------------------------------------------------------------

    def _after(self, stream: int, number: int) -> None:
        """Let what comes be after so much of what another stream was asked for."""
        now = self.current
        if stream == now or self._seen[now][stream] >= number:
            return
        event = self._events[stream]
        self._driver.call("cuEventRecord", event, self.handles[stream])
        self._driver.call("cuStreamWaitEvent", self.handles[now], event, 0)
        self._seen[now][stream] = self._asked[stream]

    def after_all(self) -> None:
        """Let what comes be after all that streams were asked for."""
        for stream, number in enumerate(self._asked):
            self._after(stream, number)

    def ready(self, address: int) -> None:
        """Let what comes be after what lies at an address was made."""
        made = self._made.get(address)
        if made is None:
            self.after_all()
            self.note(address)
        else:
            self._after(*made)

    def overwritten(self, address: int) -> None:
        """Let what comes, which writes to an address, be after all that may read it: nothing, if it was just taken."""
        if self._made.get(address) != (self.current, 0):
            self.after_all()

    def fresh(self, address: int) -> None:
        """Memory was taken, and nothing is in it yet."""
        self._remember(address, 0)

    def note(self, *addresses: int) -> None:
        """The stream was asked for what lies there now."""
        self._asked[self.current] += 1
        for address in addresses:
            self._remember(address, self._asked[self.current])

    def _remember(self, address: int, number: int) -> None:
        if len(self._made) >= REMEMBERED:
            self._made.clear()
        self._made[address] = self.current, number

    # --- runs of sequences --------------------------------------------------------------------------

    def before(self, inputs: Sequence[Any], last: Made | None, status: int) -> None:
        """A sequence, which was run last as this, is going to be run with inputs; it has memory for its status."""
        self._enter()
        if last is not None:
            self._after(*last)
        elif status:
            self.ready(status)
        for value in inputs:
            self.ready(value.stored.address)

    def after(self, inputs: Sequence[Any], written: Sequence[Any]) -> Made:
        """It was asked for, with what it writes; where it stands."""
        assert self._blocks is not None
        self.note(*(value.stored.address for value in written))
        others = [v.stored for v in inputs if self._blocks.pool_of(v.stored.address) != self.current]
        if others:
            event = self._driver.handle("cuEventCreate", BLOCKING_FREE)
            self._driver.call("cuEventRecord", event, self.handle)
            self._held.append((event, others))
        self.let_go()
        return self.current, self._asked[self.current]

    def let_go(self) -> None:
        """What was held until a stream had done something, as far as it has."""
        while self._held and self._done("cuEventQuery", self._held[0][0]):
            event, _ = self._held.popleft()
            self._driver.call("cuEventDestroy_v2", event)

    def _done(self, name: str, what: int) -> bool:
        code = self._driver.try_call(name, what)
        if code not in (0, NOT_READY):
            raise self._driver.error(code, name)
        return code == 0

    # --- as users ask -------------------------------------------------------------------------------

    def is_done(self, number: int) -> bool:
        self._enter()
        return self._done("cuStreamQuery", self.handles[number])

    def synchronize(self, number: int) -> None:
        """Wait until all that a stream was asked for is done."""
        self._enter()
        self._driver.call("cuStreamSynchronize", self.handles[number])

    def wait(self, number: int, event: CudaEvent) -> None:
        """Let what a stream is asked for be done after an event."""
        self._enter()
        self._driver.call("cuStreamWaitEvent", self.handles[number], event.handle, 0)


class CudaStream(base.Stream):
    """One of a device's streams. `lock` is the device's."""

    def __init__(self, streams: Streams, lock: Any, number: int) -> None:
        super().__init__()
        self._streams, self._lock, self.number = streams, lock, number

    @property
    def handle(self) -> int:
        return self._streams.handles[self.number]

    def synchronize(self) -> None:
        self._streams.synchronize(self.number)

    def done(self) -> bool:
        return self._streams.is_done(self.number)

    def wait(self, event: base.Event) -> None:
        assert isinstance(event, CudaEvent)
        self._streams.wait(self.number, event)

    @contextmanager
    def used(self) -> Iterator[None]:
        with self._lock:
            before = self._streams.current
            self._streams.use(self.number)
        try:
            yield
        finally:
            with self._lock:
                self._streams.use(before)
