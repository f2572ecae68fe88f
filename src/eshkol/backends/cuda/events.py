"""Events of a GPU: points of its streams, and the time between them as the device takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import byref, c_float

from eshkol.backends import base
from eshkol.backends.cuda.driver import NOT_READY, Driver

TIMED = 0  # of an event: it measures time


class CudaEvent(base.Event):
    """A point of a stream: of the current one, unless another is said. `enter` makes the device the thread's own."""

    def __init__(self, driver: Driver, enter: Callable[[], None], current: Callable[[], int]) -> None:
        super().__init__()
        self._driver, self._enter, self._current = driver, enter, current
        enter()
        self.handle = driver.handle("cuEventCreate", TIMED)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending() and hasattr(self, "handle"):
            self._driver.try_call("cuEventDestroy_v2", self.handle)

    def record(self, stream: base.Stream | None = None) -> None:
        self._enter()
        self._driver.call("cuEventRecord", self.handle, self._current() if stream is None else stream.handle)

    def done(self) -> bool:
        self._enter()
        code = self._driver.try_call("cuEventQuery", self.handle)
        if code not in (0, NOT_READY):
            raise self._driver.error(code, "cuEventQuery")
        return code == 0

    def wait(self) -> None:
        self._enter()
        self._driver.call("cuEventSynchronize", self.handle)

    def seconds_until(self, later: base.Event) -> float:
        assert isinstance(later, CudaEvent)
        later.wait()
        found = c_float()
        self._driver.call("cuEventElapsedTime", byref(found), self.handle, later.handle)
        return found.value / 1000
