"""Workers: threads or processes that fetch batches ahead, and give them in order.

A pool has a thread for each worker. A thread worker fetches by itself; a process worker is spoken to over a pipe by its
thread: a task goes there, a batch comes back, its arrays as plain bytes behind a short pickle. A process that dies
closes its pipe, so its thread knows at once and says so in place of the batch. Processes are started afresh ("spawn"):
a fork of a process with threads, as this is one, may hang. Large arrays of the data set go to them through one
temporary file that all map, mapped files by their names.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from eshkol.data.fetching import Failure, Fetched, Source, Task
from eshkol.errors import DataError

Answer = Fetched | Failure
KINDS = ("thread", "process")
_PATIENCE = 2.0  # seconds a process has to end by itself
_LARGE = 1 << 16  # bytes; smaller arrays go with the pickle


class _Board:
    """What threads of a pool share: tasks to be done, and answers that wait to be asked for."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.tasks: deque[Task] = deque()
        self.answers: dict[tuple[int, int], Answer] = {}
        self.turn = 0
        self.closed = False

    def next_task(self) -> Task | None:
        with self.changed:
            while not self.tasks and not self.closed:
                self.changed.wait()
            return None if self.closed else self.tasks.popleft()

    def put(self, task: Task, answer: Answer) -> None:
        with self.changed:
            if task.turn == self.turn:
                self.answers[task.turn, task.number] = answer
                self.changed.notify_all()


class Pool:
    """Workers that fetch the batches they are asked for."""

    def __init__(self, kind: str, count: int, source: Source) -> None:
        self._board = _Board()
        self._links: list[Link] = _started(count, source) if kind == "process" else []
        fetchers: list[Callable[[Task], Answer]] = [link.fetch for link in self._links] or [source.fetch] * count
        self._threads = [
            threading.Thread(target=_work, args=(self._board, fetch), name=f"eshkol-data-{k}", daemon=True)
            for k, fetch in enumerate(fetchers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def processes(self) -> list[int]:
        """The ids of worker processes."""
        return [link.process.pid or 0 for link in self._links]

    def begin(self) -> int:
        """A new walk over the loader: what was asked before is forgotten."""
        board = self._board
        with board.changed:
            board.turn += 1
            board.tasks.clear()
            board.answers.clear()
            board.changed.notify_all()
            return board.turn

    def ask(self, task: Task) -> None:
        """Let a worker fetch a batch."""
        with self._board.changed:
            self._board.tasks.append(task)
            self._board.changed.notify_all()

    def answer(self, turn: int, number: int, timeout: float | None) -> Answer:
        """The batch of a number, when it is there."""
        board, until = self._board, None if timeout is None else time.monotonic() + timeout
        with board.changed:
            while (turn, number) not in board.answers:
                left = None if until is None else until - time.monotonic()
                if turn != board.turn:
                    return Failure(
                        "another walk over this loader has begun: its workers load for one at a time",
                        "make a second DataLoader, or use workers=0",
                    )
                if board.closed:
                    return Failure("the loader was closed while it was walked")
                if left is not None and left <= 0:
                    return Failure(f"batch {number} did not come within {timeout} seconds", "see timeout=")
                board.changed.wait(left)
            return board.answers.pop((turn, number))

    def close(self) -> None:
        """End the workers."""
        with self._board.changed:
            self._board.closed = True
            self._board.tasks.clear()
            self._board.changed.notify_all()
        for link in self._links:
            link.end()
        for link, thread in zip(self._links, self._threads, strict=False):
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)
            link.close()


def _work(board: _Board, fetch: Callable[[Task], Answer]) -> None:
    """What a thread of a pool does, until the pool is closed. It holds no reference to the pool."""
    while (task := board.next_task()) is not None:
        board.put(task, fetch(task))


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


def _started(count: int, source: Source) -> list[Link]:
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
            source: Source = pickle.loads(body, buffers=parts)
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
        return  # nobody is there any more


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
        """Close its pipe, from which nobody reads any more."""
        self._pipe.close()


def _shown(indices: Any) -> str:
    listed = indices.tolist()
    return str(listed) if len(listed) <= 6 else f"[{', '.join(map(str, listed[:5]))}, … {listed[-1]}]"
