"""Workers: threads or processes that fetch batches ahead, and give them in order.

A pool has a thread for each worker. A thread worker fetches by itself; a process worker is spoken to over a pipe by its
thread: a task goes there, a batch comes back, its arrays as plain bytes behind a short pickle. A process that dies
closes its pipe, so its thread knows at once and says so in place of the batch. Each walk over a loader has a `Turn`,
where its batches arrive; when the walk is dropped, so is what was to be fetched for it. Processes are started afresh
("spawn"): a fork of a process with threads, as this is one, may hang. Large arrays of the data set go to them through
one temporary file that all map, mapped files by their names.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from eshkol.data.fetching import BatchSource, Failure, Fetched, Task
from eshkol.errors import DataError

Answer = Fetched | Failure
KINDS = ("thread", "process")
_PATIENCE = 2.0  # seconds a process has to end by itself
_A_MOMENT = 0.2  # seconds a thread has: one within a sample ends after it, and Python does not wait for it
_A_WAIT = 0.5  # seconds that a batch is waited for before Ctrl-C is looked for
_LARGE = 1 << 16  # bytes; smaller arrays go with the pickle


class Turn:
    """One walk over a loader: where its batches arrive. When nothing has it any more, nothing is fetched for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.arrived: SimpleQueue[tuple[int, Answer]] = SimpleQueue()
        self.over: Failure | None = None  # why nothing more will come
        self._early: dict[int, Answer] = {}  # batches that came before one that was to come first

    def end(self, why: Failure) -> None:
        """Let no one wait for this walk any more."""
        self.over = why
        self.arrived.put((-1, why))

    def answer(self, number: int, timeout: float | None) -> Answer:
        """The batch of a number, when it is there."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while number not in self._early:
            if self.over is not None:
                return self.over
            # In turns: a Ctrl-C that comes just before a wait begins does not end that wait; it is seen after it.
            left = until - time.monotonic()
            try:
                came, answer = self.arrived.get(timeout=max(min(left, _A_WAIT), 0))
            except Empty:
                if left > _A_WAIT:
                    continue
                return Failure(f"batch {number} did not come within {timeout} seconds", "see timeout=")
            self._early[came] = answer
        return self._early.pop(number)


class _Tasks:
    """What threads of a pool share: batches to be fetched, each for a walk; None lets a thread end."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[tuple[weakref.ref[Turn], Task] | None] = SimpleQueue()
        self.closed = False


class Pool:
    """Workers that fetch the batches they are asked for."""

    def __init__(self, kind: str, count: int, source: BatchSource) -> None:
        self._tasks, self._turns, self._begun = _Tasks(), weakref.WeakSet[Turn](), 0
        self._process = os.getpid()
        self._links: list[Link] = _started(count, source) if kind == "process" else []
        fetchers: list[Callable[[Task], Answer]] = [link.fetch for link in self._links] or [source.fetch] * count
        self._threads = [
            threading.Thread(target=_work, args=(self._tasks, fetch), name=f"eshkol-data-{k}", daemon=True)
            for k, fetch in enumerate(fetchers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def processes(self) -> list[int]:
        """The ids of worker processes."""
        return [link.process.pid or 0 for link in self._links]

    @property
    def here(self) -> bool:
        """Whether the workers are those of this process: a fork has no threads."""
        return self._process == os.getpid()

    def begin(self, alone: bool) -> Turn:
        """A new walk over the loader; where it has to be alone, as one over a stream, walks before it end."""
        if alone:
            self._end_turns(
                Failure(
                    "another walk over this stream has begun: its worker reads for one at a time",
                    "make a second DataLoader, or use workers=0",
                )
            )
        self._begun += 1
        turn = Turn(self._begun)
        self._turns.add(turn)
        return turn

    def ask(self, turn: Turn, task: Task) -> None:
        """Let a worker fetch a batch."""
        self._tasks.waiting.put((weakref.ref(turn), task))

    def _end_turns(self, why: Failure) -> None:
        for turn in list(self._turns):
            turn.end(why)
        self._turns.clear()

    def close(self) -> None:
        """End the workers."""
        if not self.here:
            return  # of a process that was forked: the workers belong to the other one
        self._tasks.closed = True
        for _ in self._threads:
            self._tasks.waiting.put(None)
        self._end_turns(Failure("the loader was closed while it was walked"))
        for link in self._links:
            link.end()
        for thread in self._threads:
            if thread is not threading.current_thread():  # as when the loader is dropped there
                thread.join(_PATIENCE if self._links else _A_MOMENT)
        for link in self._links:
            link.close()


def _work(tasks: _Tasks, fetch: Callable[[Task], Answer]) -> None:
    """What a thread of a pool does, until the pool is closed. It holds no reference to the pool or to a loader."""
    while (asked := tasks.waiting.get()) is not None and not tasks.closed:
        whose, task = asked
        turn = whose()
        if turn is not None and turn.over is None:
            try:
                turn.arrived.put((task.number, fetch(task)))
            except BaseException as error:  # SystemExit, say: nothing else would tell whoever waits for the batch
                why = f"{threading.current_thread().name} was ended by {type(error).__name__}: {error}"
                failure = Failure(f"{why}, while it loaded batch {task.number}", cause=error, dead=True)
                turn.arrived.put((task.number, failure))
                return
        del turn, asked  # a walk that is dropped is not kept while the next task is waited for


# --- processes ------------------------------------------------------------------------------------


def _pickled(value: Any) -> tuple[bytes, list[Any]]:
    """A pickle, and beside it the memory of large arrays."""
    buffers: list[Any] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= _LARGE:
            buffers.append(raw)
        return raw.nbytes < _LARGE

    return pickle.dumps(value, protocol=5, buffer_callback=keep), buffers


def _send(link: Connection, value: Any) -> None:
    """A value over a pipe: how large its arrays are, a pickle, the arrays."""
    body, buffers = _pickled(value)
    link.send_bytes(pickle.dumps([b.nbytes for b in buffers]))
    link.send_bytes(body)
    for raw in buffers:
        link.send_bytes(raw)


def _receive(link: Connection) -> Any:
    sizes = pickle.loads(link.recv_bytes())
    body = link.recv_bytes()
    arrays = [np.empty(size, np.uint8) for size in sizes]
    for array in arrays:
        link.recv_bytes_into(array.data)
    return pickle.loads(body, buffers=arrays)


def _started(count: int, source: BatchSource) -> list[Link]:
    """Worker processes that have the data set."""
    try:
        body, buffers = _pickled(source)
    except Exception as error:
        raise DataError(
            f"process workers need a data set that can be pickled: {type(error).__name__}: {error}",
            hint="use functions with a name in a module instead of lambdas, or worker='thread'",
        ) from error
    path = None
    try:
        if buffers:
            handle, path = tempfile.mkstemp(prefix="eshkol-data-")
            with os.fdopen(handle, "wb") as file:
                for raw in buffers:
                    file.write(raw)
        message = (body, path, [raw.nbytes for raw in buffers])
        links = [Link(k, message) for k in range(count)]
        try:
            for link in links:
                link.wait_until_ready()
        except BaseException:
            for link in links:
                link.end()
                link.close()
            raise
        return links
    finally:
        if path is not None:
            os.unlink(path)  # those who have mapped it keep it


def _serve(link: Connection) -> None:
    """What a worker process does, until its pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the process that trains
    try:
        body, path, sizes = _receive(link)
        parts, start = [], 0
        whole = np.memmap(path, np.uint8, "c") if path is not None else np.empty(0, np.uint8)
        for size in sizes:
            parts.append(whole[start : start + size])
            start += size
        try:
            source: BatchSource = pickle.loads(body, buffers=parts)
        except Exception as error:
            _send(link, Failure(f"the data set cannot be had in a worker process: {type(error).__name__}: {error}"))
            return
        _send(link, None)
        while True:
            answer = source.fetch(_receive(link))
            if isinstance(answer, Failure):
                answer.cause = None  # an exception need not be one that can be sent
            try:
                _send(link, answer)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                _send(link, Failure(f"a batch cannot be sent by its worker process: {type(error).__name__}: {error}"))
    except (EOFError, OSError):
        return  # nothing is there any more


class Link:
    """A worker process, as the thread sees it that speaks to it."""

    def __init__(self, number: int, message: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._number, self._message = number, message
        self._ended = False
        self.process = context.Process(target=_serve, args=(other,), name=f"eshkol-data-{number}", daemon=True)
        self.process.start()
        other.close()  # so that the pipe ends with the process

    def wait_until_ready(self) -> None:
        """Give it the data set."""
        try:
            _send(self._pipe, self._message)
            failure = _receive(self._pipe)
        except (EOFError, OSError):
            failure = Failure(
                f"{self._death()} while it was started",
                "a program that uses process workers begins its work under `if __name__ == '__main__':`, and what the "
                "data set is made of must be importable",
            )
        self._message = None
        if failure is not None:
            raise failure.error()

    def fetch(self, task: Task) -> Answer:
        """A batch from the process."""
        try:
            _send(self._pipe, task)
            answer: Answer = _receive(self._pipe)
            return answer
        except (EOFError, OSError):
            if self._ended:
                return Failure("the loader was closed while it was walked")
            shown = "of a stream" if task.indices is None else f"with samples {_shown(task.indices)}"
            return Failure(
                f"{self._death()} while it loaded batch {task.number} {shown}",
                "a worker that is killed by the system has often run out of memory: take fewer workers, or smaller "
                "batches",
                dead=True,
            )

    def _death(self) -> str:
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        if code is None:
            how = "closed its pipe"
        elif code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended with status {code}"
        return f"worker {self._number} (process {self.process.pid}) {how}"

    def end(self) -> None:
        """Let it end, or end it."""
        self._ended = True
        self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()

    def close(self) -> None:
        """Close its pipe, from which no one reads any more."""
        self._pipe.close()


def _shown(indices: Any) -> str:
    listed = indices.tolist()
    return str(listed) if len(listed) <= 6 else f"[{', '.join(map(str, listed[:5]))}, … {listed[-1]}]"
