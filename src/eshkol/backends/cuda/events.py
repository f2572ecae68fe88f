"""Events of a GPU: points of its stream, and the time between them as the device takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import byref, c_float

from eshkol.backends import base
from eshkol.backends.cuda.driver import NOT_READY, Driver

TIMED = 0  # of an event: it measures time


class CudaEvent(base.Event):
    """A point of a stream. `enter` makes the device the thread's own."""

    def __init__(self, driver: Driver, enter: Callable[[], None], stream: int) -> None:
        super().__init__()
        self._driver, self._enter, self._stream = driver, enter, stream
        enter()
        self._handle = driver.handle("cuEventCreate", TIMED)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending() and hasattr(self, "_handle"):
            self._driver.try_call("cuEventDestroy_v2", self._handle)

    def record(self) -> None:
        self._enter()
        self._driver.call("cuEventRecord", self._handle, self._stream)

    def done(self) -> bool:
        self._enter()
        code = self._driver.try_call("cuEventQuery", self._handle)
        if code not in (0, NOT_READY):
            raise self._driver.error(code, "cuEventQuery")
        return code == 0

    def wait(self) -> None:
        self._enter()
        self._driver.call("cuEventSynchronize", self._handle)

    def seconds_until(self, later: base.Event) -> float:
        assert isinstance(later, CudaEvent)
        later.wait()
        found = c_float()
        self._driver.call("cuEventElapsedTime", byref(found), self._handle, later._handle)
        return found.value / 1000
