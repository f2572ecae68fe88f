"""The interpreted driver with streams that do nothing until they must: what is not waited for is not there.

Everything that is asked for on a stream is put off until something waits for it: the host, or another stream that was
told to wait for an event and must go on itself. So a value that is used without waiting for the stream that makes it,
and memory that is used again too early, are seen.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from typing import Any

from interpreted_driver import InterpretedDriver

from eshkol.backends.cuda.driver import NOT_READY
from eshkol.backends.lanes import layout as words

AT = {  # the place of the stream among the arguments
    "cuMemcpyHtoDAsync_v2": 3, "cuMemcpyDtoHAsync_v2": 3, "cuMemcpyDtoDAsync_v2": 3, "cuMemsetD8Async": 3,
    "cuLaunchKernel": 8, "cuGraphLaunch": 1,
}  # fmt: skip


class LazyDriver(InterpretedDriver):
    def __init__(self) -> None:
        super().__init__()
        self.queues: dict[int, deque[Callable[[], Any]]] = {}
        self.reached: dict[int, bool] = {}  # events
        self.recorded: dict[int, tuple[int, list[bool]]] = {}  # event → stream, whether that has come there
        self.failed: BaseException | None = None

    def try_call(self, name: str, *given: Any) -> int:
        if name not in AT:
            return super().try_call(name, *given)
        self.calls.append(name)
        function = getattr(self, name)
        if name == "cuLaunchKernel":
            given = (*given[:9], self._copied(given[0], given[9]), given[10])
        if name == "cuGraphLaunch":
            tasks = [*self.handles[given[0]].values()]  # as they are now: others may be told to it later
            self._queue(given[1]).append(lambda: [getattr(self, what)(*rest) for what, *rest in tasks])
        else:
            self._queue(given[AT[name]]).append(lambda: function(*given))
        return 0

    def _copied(self, kernel: int, pointers: int) -> int:
        """Arguments of a launch as they are now."""
        found = (ctypes.c_uint64 * 2).from_address(pointers)
        count = words.FIRST_PARAM + 2 * len(self.handles[kernel].params)
        status = ctypes.c_uint64(ctypes.c_uint64.from_address(found[0]).value)
        record = (ctypes.c_uint64 * count).from_buffer_copy((ctypes.c_uint64 * count).from_address(found[1]))
        kept = (ctypes.c_uint64 * 2)(ctypes.addressof(status), ctypes.addressof(record))
        self.held.append((status, record, kept))
        return ctypes.addressof(kept)

    def _queue(self, stream: int) -> deque[Callable[[], Any]]:
        return self.queues.setdefault(int(stream or 0), deque())

    def _until(self, stream: int, there: list[bool]) -> None:
        while not there[0]:
            self._queue(stream).popleft()()

    def cuEventRecord(self, event: int, stream: int) -> None:
        there = [False]
        self.recorded[event] = stream, there
        self._queue(stream).append(lambda: there.__setitem__(0, True))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        if event in self.recorded:
            other, there = self.recorded[event]
            self._queue(stream).append(lambda: self._until(other, there))

    def cuEventSynchronize(self, event: int) -> None:
        if event in self.recorded:
            self._until(*self.recorded[event])

    def cuEventQuery(self, event: int) -> int:
        return 0 if event not in self.recorded or self.recorded[event][1][0] else NOT_READY

    def cuStreamQuery(self, stream: int) -> int:
        return NOT_READY if self._queue(stream) else 0

    def cuStreamSynchronize(self, stream: int) -> None:
        while self._queue(stream):
            self._queue(stream).popleft()()

    def cuCtxSynchronize(self) -> None:
        for stream in [*self.queues]:
            self.cuStreamSynchronize(stream)

    def cuMemFree_v2(self, address: int) -> None:
        self.cuCtxSynchronize()  # as the driver does
        super().cuMemFree_v2(address)
