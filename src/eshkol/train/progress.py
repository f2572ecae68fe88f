"""Progress bars: how far a loop is, how fast it goes, how long it will take, and its loss and metrics.

Comes in: how many rounds there are, and the number of each with its metrics. Goes out: a bar that is drawn again in
its place on a terminal (rich); elsewhere plain lines, one every few seconds and one at the end; nothing where it is
quiet. An update that redraws nothing costs about a microsecond, and drawing takes at most a twentieth of the time.
Output that is gone (a closed pipe, a full disk) silences a bar; it never stops a training.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
from collections.abc import Mapping
from operator import index
from time import monotonic
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self, cast

from eshkol.errors import EshkolError

if TYPE_CHECKING:
    from rich.progress import TaskID
    from rich.table import Table

REDRAW_SECONDS = 0.1  # between two pictures of a bar on a terminal
LINE_SECONDS = 5.0  # between two plain lines
SHARE = 20  # drawing takes at most 1/SHARE of the time
SMOOTHING = 0.3  # of the rate: what the last stretch counts against all before it
BAR_WIDTH, WIDE = 24, 100  # a bar has 24 columns where the terminal has 100, and a third of them where it is narrower

_lock = threading.RLock()


class ProgressBar:
    """A loop's progress: `bar.update(7, {"loss": 0.3})` after its 7th round of `total` (None: no one knows).

    A bar that is full has finished, and starts again when an update is below `total`, as in the next epoch. In a
    `with` statement it finishes at the end of the block instead, so that metrics of a validation can come last.
    """

    def __init__(
        self,
        total: int | None,
        description: str = "",
        *,
        quiet: bool = False,
        file: IO[str] | None = None,
        seconds: float | None = None,
    ) -> None:
        """`file` is standard output if it is not given; `seconds` stand between two pictures, or plain lines."""
        if total is not None:
            total = _whole(total, "ProgressBar", "total")
        self.total = total
        self.description = str(description)
        self._held = False
        self._closed = False  # by `finish`, for good
        self._surface = None if quiet else _surface(file)
        waits = self._surface.seconds if self._surface is not None else math.inf
        self._seconds = waits if seconds is None else float(seconds)
        self._begin()

    def _begin(self) -> None:
        self.current = 0
        self._metrics: Mapping[str, Any] = {}
        self._rate: float | None = None
        self._running = True
        self._began = self._seen_at = monotonic()
        self._seen = 0
        # Where nothing is to be drawn, an update looks at these two numbers and is done.
        self._next = self._began + self._seconds if self._surface is not None else math.inf
        self._full = math.inf if self.total is None or self._held or self._surface is None else self.total
        if self._surface is not None:
            self._kept(self._surface.start(self))

    def update(self, current: int, metrics: Mapping[str, Any] | None = None) -> None:
        """Say which round was done last, and its metrics: numbers, tensors of one element (read only when drawn)."""
        try:
            self.current = index(current)
        except TypeError:
            _whole(current, "ProgressBar.update", "current")
        if metrics is not None:
            if not isinstance(metrics, Mapping):
                raise EshkolError(
                    f"ProgressBar.update: the metrics are a {type(metrics).__name__}", hint='give {"loss": 0.3}'
                )
            self._metrics = metrics
        now = monotonic()
        if now >= self._next or self.current >= self._full:
            self._look(now)

    def finish(self, metrics: Mapping[str, Any] | None = None) -> None:
        """End the bar: its last state stays on the screen. A bar that has finished stays as it is."""
        if metrics is not None:
            self._metrics = metrics
        self._closed = True
        self._end()

    def __enter__(self) -> Self:
        self._held = True
        self._full = math.inf
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def __repr__(self) -> str:
        return f"<ProgressBar {self.description!r}: {self.count}>"

    # --- what is told -------------------------------------------------------------------------------

    @property
    def count(self) -> str:
        """How far it is: "7/100"."""
        return f"{self.current}" if self.total is None else f"{self.current}/{self.total}"

    def told(self) -> str:
        """The rate, the time gone and the time left, and the metrics."""
        gone = self._seen_at - self._began if not self._running else monotonic() - self._began
        rate = self._rate if self._running else self.current / gone if gone > 0 else None
        parts = [] if not rate else [f"{rate:.{int(rate < 100)}f} it/s" if rate >= 1 else f"{1 / rate:.1f} s/it"]
        left = self.total - self.current if self.total is not None and self.current > 1 else 0
        parts.append(clock(gone) + (f", {clock(left / rate)} left" if self._running and rate and left > 0 else ""))
        return "  ".join([*parts, *self._measured()])

    def _measured(self) -> list[str]:
        return [f"{name} {number(value)}" for name, value in self._metrics.items()]

    def shortest(self) -> str:
        """What it was and its metrics alone, as one plain line."""
        return "  ".join([*filter(None, [self.description or self.count]), *self._measured()])

    def line(self) -> str:
        """All of it as one plain line."""
        return f"{self.description}{': ' if self.description else ''}{self.count}  {self.told()}"

    # --- when it is told ----------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Draw, and say when to draw next; a full bar finishes, and one that had starts again."""
        if not self._running:
            if self._closed or self.current >= self._full:
                return
            current, metrics = self.current, self._metrics
            self._begin()
            self.current, self._metrics = current, metrics
            return
        if self.current >= self._full:
            self._end()
            return
        done, took = self.current - self._seen, now - self._seen_at
        if done > 0 and took > 0:
            recent = done / took
            known = self._rate if self._seen > 1 else None  # the first round compiles: it says nothing of the others
            self._rate = recent if known is None else (1 - SMOOTHING) * known + SMOOTHING * recent
            self._seen, self._seen_at = self.current, now
        if self._surface is not None:
            self._kept(self._surface.draw(self))
        after = monotonic()
        if self._surface is not None:
            self._next = after + max(self._seconds, SHARE * (after - now))

    def _end(self) -> None:
        if not self._running:
            return
        self._seen_at = monotonic()
        self._running = False
        self._next = -math.inf  # the next update looks whether it starts again
        if self._surface is not None:
            self._kept(self._surface.end(self))

    def _kept(self, works: bool) -> None:
        """Be silent from now on if the output is gone."""
        if not works:
            self._surface = None
            self._next = self._full = math.inf


# --- where it is told ---------------------------------------------------------------------------------


class _Output:
    """A text file that never raises: once it has failed, it says so and takes everything without a word."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.failed = False

    def write(self, text: str) -> int:
        if not self.failed:
            try:
                encoding = getattr(self.file, "encoding", None) or "utf-8"
                self.file.write(text.encode(encoding, "replace").decode(encoding))
            except (OSError, ValueError):  # ValueError: the file is closed
                self.failed = True
        return len(text)

    def flush(self) -> None:
        if not self.failed:
            try:
                self.file.flush()
            except (OSError, ValueError):
                self.failed = True

    def __getattr__(self, name: str) -> Any:  # what else rich asks: its encoding, its number
        return getattr(self.file, name)


class _Lines:
    """Plain lines, for files and pipes. Every method says whether the output still works."""

    seconds = LINE_SECONDS

    def __init__(self, file: IO[str]) -> None:
        self._output = _Output(file)

    def start(self, bar: ProgressBar) -> bool:
        return True

    def draw(self, bar: ProgressBar) -> bool:
        full = bar.total is not None and bar.current >= bar.total
        return not self._output.failed if full else self.end(bar)  # the line of a full bar is that of its end

    def end(self, bar: ProgressBar) -> bool:
        self._output.write(bar.line() + "\n")
        self._output.flush()
        return not self._output.failed


class _Screen:
    """A terminal: a line for each bar that has not finished, drawn again in its place; above them those that have."""

    seconds = REDRAW_SECONDS

    def __init__(self, file: IO[str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        shared = file in (sys.stdout, sys.stderr)  # what others print there meanwhile goes above the bars
        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # what a narrow terminal cuts off
        self.file = file
        self._output = _Output(file)
        self._console = Console(file=cast(IO[str], self._output), force_terminal=True)
        self._bar_width = BAR_WIDTH if self._console.width >= WIDE else BAR_WIDTH // 3
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(self._bar_width),
            TextColumn("{task.fields[count]}", markup=False),
            TextColumn("{task.fields[told]}", markup=False, table_column=rest),
            console=self._console,
            auto_refresh=False,
            transient=True,
            expand=True,
            redirect_stdout=shared and _is_terminal(sys.stdout),
            redirect_stderr=shared and _is_terminal(sys.stderr),
        )
        self._tasks: dict[int, TaskID] = {}

    def start(self, bar: ProgressBar) -> bool:
        count, told = bar.count, bar.told()
        with _lock:
            if not self._tasks:
                self._progress.start()
                atexit.register(self._stop)  # a cursor that was hidden is shown again
            task = self._progress.add_task(bar.description, total=bar.total, count=count, told=told)
            self._tasks[id(bar)] = task
            self._progress.refresh()
            return self._works()

    def draw(self, bar: ProgressBar) -> bool:
        count, told = bar.count, bar.told()
        with _lock:
            if id(bar) not in self._tasks:  # the output is gone, as another bar found
                return False
            self._progress.update(self._tasks[id(bar)], completed=bar.current, count=count, told=told)
            self._progress.refresh()
            return self._works()

    def end(self, bar: ProgressBar) -> bool:
        count, told = bar.count, bar.told()
        with _lock:
            if id(bar) not in self._tasks:
                return False
            number = self._tasks.pop(id(bar))
            self._progress.update(number, completed=bar.current, count=count, told=told)
            (last,) = (task for task in self._progress.tasks if task.id == number)
            self._progress.remove_task(number)
            if not self._tasks:
                self._stop()
            self._print_last(bar, self._progress.make_tasks_table([last]))
            return self._works()

    def _print_last(self, bar: ProgressBar, table: Table) -> None:
        """Print what stays of a bar; metrics matter most of it: rather than them, the bar itself and the rate go."""
        from rich.cells import cell_len
        from rich.text import Text

        width, line = self._console.width, bar.line()
        if cell_len(line) + self._bar_width + 1 <= width:
            self._console.print(table)
        else:
            text = line if cell_len(line) <= width else bar.shortest()
            self._console.print(Text(text), no_wrap=True, overflow="ellipsis")

    def _stop(self) -> None:
        atexit.unregister(self._stop)
        self._progress.stop()

    def _works(self) -> bool:
        """Whether the output still does; if not, standard output is given back, and a bar made later tries again."""
        global _screen
        if self._output.failed:
            self._tasks.clear()
            self._stop()
            if _screen is self:
                _screen = None
        return not self._output.failed


_screen: _Screen | None = None  # bars within bars share it


def _surface(file: IO[str] | None) -> _Lines | _Screen | None:
    """Where a bar is drawn; None where nothing can be."""
    global _screen
    given = sys.stdout if file is None else file
    out: IO[str] | None = getattr(given, "rich_proxied_file", given)  # another bar may stand before standard output
    if out is None:
        return None
    if not _is_terminal(out):
        return _Lines(out)
    with _lock:
        if _screen is None or _screen.file is not out:
            _screen = _Screen(out)
        return _screen


def _is_terminal(file: Any) -> bool:
    try:
        return bool(file.isatty()) and os.environ.get("TERM") != "dumb"
    except (AttributeError, OSError, ValueError):
        return False


# --- numbers for people -------------------------------------------------------------------------------


def clock(seconds: float) -> str:
    """A time as 0:05, 12:34 or 1:02:03."""
    if not seconds < 360_000_000:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def number(value: Any) -> str:
    """A metric: four digits of a float, all of an integer, a text as it is."""
    if isinstance(value, (str, int)):
        return str(value)
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)


def _whole(value: Any, who: str, what: str) -> int:
    try:
        found = index(value)
    except TypeError:
        found = -1
    if found < 0:
        raise EshkolError(f"{who}: a count is wanted as {what}, not {value!r}", hint="0 or a positive integer")
    return found
