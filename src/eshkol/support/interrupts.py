"""Ctrl-C, made synchronous: a signal leaves a note, and whoever works looks for it where everything is whole.

Python raises KeyboardInterrupt between any two instructions, so also where a table is half changed. Therefore the
expander, the compilers and all that waits for them run with `deferred` around: there a signal is noted (`ask`), and
`check`, called at points where nothing is half done, raises KeyboardInterrupt. Notes are for threads: Scheme has one of
its own (runtime/worker.py), and the code that runs there has a flag that it polls (`Scheme`, runtime/scheme.py).

Two more stand here, for code that is called from anywhere: `uninterrupted` keeps Ctrl-C away from a moment in which
values are out of their tensors (a compiled step overwrites the memory of parameters, and until the new values are put
in, neither old nor new ones stand in the model); `Noted` is for loops that end by themselves when they are asked to.

This module stands beside everything, and knows no other.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from types import FrameType, TracebackType
from typing import Any, ClassVar, Protocol, Self

MOMENT = 0.002  # seconds after which it is seen whether an import is over

_signals: Any = sys.modules.get("_signal", signal)  # the same functions without enums, which would cost 20 times more
_SIGINT = int(signal.SIGINT)


# ---- notes -----------------------------------------------------------------------------------------------------------


class Scheme(Protocol):
    """What runs Scheme code on a thread. Its flag is the note: Scheme code may have heeded it already."""

    def interrupt(self) -> None: ...

    def is_interrupted(self) -> bool: ...

    def heed_interrupt(self) -> bool:
        """Whether there was one; from now on there is none."""


_asked: set[int] = set()  # threads; where there is Scheme code, its flag says whether that still holds
_schemes: dict[int, Scheme] = {}  # by their threads


def runs_on(thread: int, scheme: Scheme) -> None:
    """From now on this is the Scheme code that runs on a thread."""
    if take(thread):
        scheme.interrupt()
        _asked.add(thread)
    _schemes[thread] = scheme


def ends(scheme: Scheme) -> None:
    """Nothing runs there any more."""
    for thread in [thread for thread, known in _schemes.items() if known is scheme]:
        del _schemes[thread]


def scheme_on(thread: int) -> Scheme | None:
    """What runs Scheme code on a thread."""
    return _schemes.get(thread)


def ask(thread: int) -> None:
    """Let a thread end what it does, at the next point where it looks.

    The flag comes first: where Scheme code heeds it at once, nothing is left that would look like another one.
    """
    scheme = _schemes.get(thread)
    if scheme is not None:
        scheme.interrupt()
    _asked.add(thread)


def is_asked(thread: int) -> bool:
    """Whether a thread was asked to end what it does, and has not heeded that yet."""
    if thread not in _asked:
        return False
    scheme = _schemes.get(thread)
    return scheme is None or scheme.is_interrupted()


def take(thread: int) -> bool:
    """The same, and from now on it is heeded."""
    if thread not in _asked:
        return False
    _asked.discard(thread)
    scheme = _schemes.get(thread)
    return scheme is None or scheme.heed_interrupt()


def check() -> None:
    """To be called where everything is whole: raises KeyboardInterrupt, if someone asked this thread to end."""
    if _asked and take(get_ident()):
        raise KeyboardInterrupt


# ---- the signal ------------------------------------------------------------------------------------------------------


class Held:
    """Within it Ctrl-C is the business of `pressed`, if this is the main thread.

    Whoever ignores Ctrl-C, or takes it outside of Python, goes on doing so.
    """

    takes_default = False  # whether also where Ctrl-C would end the process at once
    earlier: Any = None  # the handler before, where this one takes its place

    def __enter__(self) -> Self:
        if get_ident() == threading.main_thread().ident:
            found = _signals.getsignal(_SIGINT)
            if callable(found) or (self.takes_default and found == signal.SIG_DFL):
                self.earlier = found
                _signals.signal(_SIGINT, self.pressed)
        return self

    def pressed(self, number: int, frame: FrameType | None) -> None:
        """The handler; each kind of block has its own."""
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.earlier is not None:
            _signals.signal(_SIGINT, self.earlier)


class deferred(Held):
    """Within it Ctrl-C waits for `check`, or for the end.

    A handler of the user's own is called at once; if it raises KeyboardInterrupt, that is what waits, and anything else
    is raised at the end (or earlier, by whoever looks at `failure`).
    """

    hearing = False  # whether Python just waits for a person: then nothing has to wait
    failure: BaseException | None = None

    @property
    def _around(self) -> deferred | None:
        outer = getattr(self.earlier, "__self__", None)
        return outer if isinstance(outer, deferred) else None

    @property
    def _users(self) -> Any:
        """The handler outside of all of these."""
        return self.earlier if self._around is None else self._around._users

    def pressed(self, number: int, frame: FrameType | None) -> None:
        handler = self._users
        try:
            if handler is not on_interrupt:  # which would come again; here nothing is raised anyway
                handler(number, frame)
                return
        except KeyboardInterrupt:
            pass
        except BaseException as error:
            self.failure = error
            return
        if self.hearing:
            raise KeyboardInterrupt
        self.heard()

    def heard(self) -> None:
        """There is a KeyboardInterrupt to be raised later."""
        ask(get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if _asked and self.earlier is not None and self._around is None:
            check()


@contextmanager
def hearing() -> Iterator[None]:
    """Within it Python waits for a person: Ctrl-C is a KeyboardInterrupt at once, also inside of `deferred`."""
    innermost = getattr(_signals.getsignal(_SIGINT), "__self__", None)
    block = innermost if isinstance(innermost, deferred) else None
    if block is not None:
        block.hearing = True
    try:
        check()
        yield
    finally:
        if block is not None:
            block.hearing = False


class uninterrupted(Held):
    """Within it Ctrl-C waits for the end; a second one does not wait in the main thread."""

    _threads: ClassVar[dict[int, int]] = {}  # that are within, and how often
    _came = False

    @classmethod
    def holds(cls, thread: int) -> bool:
        """Whether a thread is in such a moment."""
        return thread in cls._threads

    def __enter__(self) -> Self:
        thread = get_ident()
        self._threads[thread] = self._threads.get(thread, 0) + 1
        return super().__enter__()

    def pressed(self, number: int, frame: FrameType | None) -> None:
        if self._came and not _on_the_way_out(frame):
            self._came = False
            raise KeyboardInterrupt
        self._came = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = get_ident()
        left = self._threads[thread] - 1
        if left:
            self._threads[thread] = left
        else:
            del self._threads[thread]
        super().__exit__(kind, error, trace)
        if self._came:
            self.earlier(_SIGINT, None)
        elif not left:
            check()


class Noted(Held):
    """Within it Ctrl-C is noted (`asked`) instead of raised; a second one is raised at once."""

    takes_default = True
    asked = False

    def pressed(self, number: int, frame: FrameType | None) -> None:
        if self.asked and not _on_the_way_out(frame):
            raise KeyboardInterrupt
        self.asked = True


def _on_the_way_out(frame: FrameType | None) -> bool:
    """Whether an `__exit__` is being run: what would be raised in it keeps it from giving the handler back."""
    return frame is not None and frame.f_code.co_name == "__exit__"


# ---- elsewhere -------------------------------------------------------------------------------------------------------


def in_import(frame: FrameType | None) -> bool:
    """Whether this is importlib's: what it locks would stay locked, and whoever imports next would wait for ever."""
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """What the main thread of the command does about Ctrl-C: KeyboardInterrupt, as Python has it; after an import."""
    if in_import(frame):
        signal.signal(signal.SIGALRM, _again)
        signal.setitimer(signal.ITIMER_REAL, MOMENT)
    else:
        signal.default_int_handler(signal.SIGINT, frame)


def _again(number: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
