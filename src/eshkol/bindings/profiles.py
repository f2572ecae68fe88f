"""Profiles for programs in Scheme: begun, ended, named in parts, reported and written to files.

Comes in: values as Scheme gives them. Goes out: `Report`s, which print as tables. The report that was made last is
kept, so that `(profile-export path)` needs no other argument.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from eshkol.bindings.pending import settle
from eshkol.errors import EshkolError
from eshkol.profiling import Profile, Recording, current
from eshkol.profiling.tables import amount, summary
from eshkol.runtime.scheme import Machine
from eshkol.runtime.scheme_table import layout
from eshkol.support.observing import COMPILE, LOADER, REGION, TRANSFER
from eshkol.tensors.usage import memory_usage

KINDS = {"regions": REGION, "compiling": COMPILE, "loaders": LOADER, "transfers": TRANSFER}
_last: list[Report] = []  # one, or none
HINT = '(with-profile "name" body ...), or (profile-start) … (profile-stop)'


class Report:
    """A profile as Scheme has it: a procedure that gives its parts by name, and prints as tables."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def __call__(self, part: Any) -> Any:
        parts: dict[str, Callable[[], Any]] = {
            "summary": lambda: summary(self.profile),
            "seconds": lambda: self.profile.seconds,
            "procedures": lambda: [[s.name, s.itself, s.total] for s in self.profile.procedures()],
            "lines": lambda: [[s.name, s.itself, s.total] for s in self.profile.lines()],
            "kernels": lambda: [[k.work.name, k.count, k.total * 1e-9] for k in self.profile.kernels],
            "allocations": lambda: [[name, size] for name, size in self.profile.allocated()],
            "pauses": lambda: self.profile.pauses,
            **{name: partial(self._stages, kind) for name, kind in KINDS.items()},
        }  # fmt: skip
        if not isinstance(part, str) or part not in parts:
            raise EshkolError(f"a report has no part {part!r:.80}", hint=f"its parts: {', '.join(parts)}")
        return parts[str(part)]()

    def _stages(self, kind: str) -> list[list[Any]]:
        return [[stage.name, stage.times, stage.seconds] for stage in self.profile.stages(kind)]

    def scheme_text(self) -> str:
        return self.profile.table()

    __repr__ = scheme_text


def _kept(profile: Profile) -> Report:
    report = Report(profile)
    _last[:] = [report]
    return report


def _name(name: Any, who: str) -> str:
    if isinstance(name, str):  # symbols are strings, too
        return str(name)
    raise EshkolError(f"{who}: a part of a program is named by a string or a symbol, not {name!r}")


def _running(who: str) -> Recording:
    recording = current()
    if recording is None:
        raise EshkolError(f"{who}: no profile is being taken", hint=HINT)
    return recording


# ---- beginning and ending --------------------------------------------------------------------------------------------


def start(memory: bool = False) -> None:
    """Watch from here on."""
    Recording(memory=bool(memory)).start()


def stop() -> Report:
    """End the profile, with what waits to be computed."""
    settle()
    return _kept(_running("profile-stop").stop())


def reset() -> None:
    """Forget what was found; a profile that is being taken begins anew."""
    recording = current()
    _last.clear()
    if recording is not None:
        recording.stop()
        recording.again().start()


def begin_part(name: Any) -> None:
    """A part of the program begins, which the report names."""
    settle()
    _running("profile-begin").open(_name(name, "profile-begin"))


def end_part(name: Any) -> None:
    """It ends."""
    settle()
    _running("profile-end").close(_name(name, "profile-end"))


def enter_part(name: Any, memory: bool) -> bool:
    """The body of with-profile begins; whether a profile does, too."""
    settle()
    recording, begins = current(), current() is None
    if recording is None:
        recording = Recording(memory=bool(memory)).start()
    recording.open(_name(name, "with-profile"))
    return begins


def leave_part(name: Any, ends: bool) -> None:
    """It ends, by whatever way."""
    settle()
    recording = current()
    if recording is None:  # its body has ended the profile itself
        return
    if ends:
        _kept(recording.stop())
    else:
        recording.close(_name(name, "with-profile"))


# ---- reports ---------------------------------------------------------------------------------------------------------


def report() -> Report:
    """What was found: so far, or in the profile that ended last."""
    recording = current()
    if recording is not None:
        return _kept(recording.so_far())
    if not _last:
        raise EshkolError("profile-report: there is no profile yet", hint=HINT)
    return _last[0]


def report_summary(given: Any) -> str:
    """A report as text."""
    return _told(given, "report-summary").profile.table()


def _told(given: Any, who: str) -> Report:
    if isinstance(given, Report):
        return given
    raise EshkolError(f"{who}: this is no report of a profile: {given!r:.80}", hint="(profile-report) gives one")


def _exported(who: str, given: tuple[Any, ...], how: Callable[[Profile, str], None]) -> None:
    *reports, path = given
    if not isinstance(path, str):
        raise EshkolError(f"{who}: the name of a file is a string, not {path!r:.80}")
    how((_told(reports[0], who) if reports else report()).profile, path)


def export_chrome_trace(*given: Any) -> None:
    """Write a trace for Chrome and Perfetto."""
    _exported("export-chrome-trace", given, Profile.chrome_trace)


def export_flamegraph(*given: Any) -> None:
    """Write a flame graph, as SVG."""
    _exported("export-flamegraph", given, Profile.flamegraph)


def export(*given: Any) -> None:
    """Write a profile as the file's name says."""
    _exported("profile-export", given, Profile.save)


# ---- memory ----------------------------------------------------------------------------------------------------------


def _heaps() -> tuple[int, int]:
    """Bytes alive in Scheme's heaps after their last collections, and memory that they hold."""
    numbers = layout()
    living = [m for m in tuple(Machine.living) if m.context]

    def number(machine: Machine, name: str) -> int:
        return int(machine.library.esk_heap_statistic(machine.context, numbers[name]))

    alive = sum(number(m, "HEAP_LIVE" if number(m, "HEAP_COLLECTIONS") else "HEAP_ALLOCATED") for m in living)
    return alive, sum(number(m, "HEAP_RESIDENT") for m in living)


def memory_current() -> int:
    """The bytes that tensors and Scheme's objects take now."""
    return memory_usage()["used"] + _heaps()[0]


def memory_peak() -> int:
    """The most that tensors have taken at a time, and what the system has given to Scheme's heap."""
    return memory_usage()["peak"] + _heaps()[1]


def memory_report() -> Any:
    """What takes memory: by lines, while or after a profile of memory; else in all."""
    recording = current()
    if recording is not None and recording.memory:
        return report()
    usage, (live, held) = memory_usage(), _heaps()
    used, peak, kept = (amount(usage[name]) for name in ("used", "peak", "kept"))
    return (
        f"tensors: {used} now, {peak} at most, {kept} kept for use again\n"
        f"Scheme's heap: {amount(live)} alive after the last collection, {amount(held)} of memory held"
    )
