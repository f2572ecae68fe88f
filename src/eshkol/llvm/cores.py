"""LLVM on all cores: several texts at once in threads, and one after the other in a process of its own.

Comes in: LLVM text and the `Pipeline` for it. Goes out: objects. Whoever waits for code uses `compile_all`. What no one
waits for is compiled by an `Apart`, which can be left at any moment: LLVM cannot be interrupted, and a process that
ends while one of its threads is in it may crash.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from queue import SimpleQueue
from typing import IO

from eshkol.llvm import passes
from eshkol.llvm.objects import compile_object
from eshkol.llvm.passes import Pipeline
from eshkol.llvm.targets import host, llvm

STACK_BYTES = 1 << 28  # of address space, for a thread: LLVM recurs as deeply as code is nested
NICENESS = 5  # how much a process of its own stands behind others
# Each works on a context of its own, but llvmlite lets one thread at a time call anything.
UNLOCKED = ("ParseAssembly", "VerifyModule", "RunNewModulePassManager", "TargetMachineEmitToMemory", "DisposeModule")
_HEAD = struct.Struct("<QQ")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- threads ---------------------------------------------------------------------------------------------------------


class Job:
    """Something that is compiled on another thread."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        self._work = work
        self._done = threading.Event()
        self._code = b""
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._code = self._work()
        except BaseException as failure:
            self._failure = failure
        self._done.set()

    def code(self) -> bytes:
        """The object, when it is there."""
        self._done.wait()
        if self._failure is not None:
            raise self._failure
        return self._code


class _Pool:
    """Threads that compile."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        _unlock()
        before = threading.stack_size(STACK_BYTES)
        try:
            for number in range(cores()):
                threading.Thread(target=self._serve, name=f"llvm {number}", daemon=True).start()
        finally:
            threading.stack_size(before)

    def _serve(self) -> None:
        while True:
            self._jobs.get().run()

    def begin(self, job: Job) -> Job:
        self._jobs.put(job)
        return job


def _unlock() -> None:
    """Let threads be in LLVM at the same time; where llvmlite is another than the one we know, they take turns."""
    library = llvm().ffi.lib
    known = getattr(library, "_fntab", None)
    for name in UNLOCKED:
        function = getattr(getattr(library, f"LLVMPY_{name}", None), "_cfn", None)
        if known is not None and function is not None:
            known[f"LLVMPY_{name}"] = function


@cache
def _pool(process: int) -> _Pool:
    return _Pool()


def begin_work(work: Callable[[], bytes]) -> Job:
    """Have something done that compiles, while other things are done."""
    return _pool(os.getpid()).begin(Job(work))


def begin(text: str, pipeline: Pipeline) -> Job:
    """Have a text compiled, while other things are done."""
    return begin_work(lambda: compile_object(text, host(), pipeline))


def compile_all(texts: Iterable[str], pipeline: Pipeline) -> list[bytes]:
    """The objects of some texts."""
    return [job.code() for job in [begin(text, pipeline) for text in texts]]


# ---- a process -------------------------------------------------------------------------------------------------------


class Apart:
    """A process that compiles one text after the other."""

    def __init__(self) -> None:
        serve = f"import sys; sys.path[:] = {sys.path!r}; from eshkol.llvm.cores import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", serve],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not for it
        )  # fmt: skip
        # ends it, whatever it does; so does the end of Python
        self.close = weakref.finalize(self, _end, self._process, os.getpid())

    def compile(self, text: str, pipeline: Pipeline) -> bytes:
        """The object of a text. An error is an EOFError: the process says nothing of what went wrong."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        name, body = pipeline.name.encode(), text.encode("utf-8", "surrogatepass")
        to.write(_HEAD.pack(len(name), len(body)) + name + body)
        to.flush()
        size, _ = _HEAD.unpack(_taken(back, _HEAD.size))
        return _taken(back, size)


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:  # a forked process has the object, too
        process.kill()
        process.wait()


def _taken(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError("the process that compiles has ended")
    return found


def _asked(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    while head := stream.read(_HEAD.size):
        name, body = _HEAD.unpack(head)
        yield _taken(stream, name).decode(), _taken(stream, body).decode("utf-8", "surrogatepass")


def serve() -> None:
    """What the process does: it answers until no one asks any more."""
    os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    pipelines = {pipeline.name: pipeline for pipeline in vars(passes).values() if isinstance(pipeline, Pipeline)}
    for name, text in _asked(sys.stdin.buffer):
        code = compile_object(text, host(), pipelines[name])
        answers.write(_HEAD.pack(len(code), 0) + code)
        answers.flush()
