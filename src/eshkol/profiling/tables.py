"""A profile as tables of text, for terminals.

Comes in: what was found. Goes out: what rich prints, with the parts that have something to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eshkol.profiling.findings import Findings, Share, Stage
from eshkol.profiling.frames import shown
from eshkol.support.observing import COMPILE, LOADER, REGION, TRANSFER

SHOWN = 12


def duration(seconds: float) -> str:
    """A time, with a unit."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def amount(number: float, unit: str = "B") -> str:
    """A number of things, in short: 1.5 GB."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g} {prefix}{unit}"
    return f"{number:.0f} {unit}"


def text(profile: Findings, width: int = 120) -> str:
    """All tables, without colours."""
    stream = StringIO()
    Console(file=stream, width=width, no_color=True).print(*parts(profile))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def parts(profile: Findings) -> list[Any]:
    """What is to be printed, one after the other."""
    return [Text(summary(profile)), *_tables(profile), *(Text(f"note: {note}") for note in profile.notes)]


def summary(profile: Findings) -> str:
    """The profile in a line."""
    said = [f"{duration(profile.seconds)}, {duration(profile.processor * 1e-9)} of processor time"]
    if profile.samples:
        said.append(f"{len(profile.samples)} samples")
    if profile.kernels:
        took = sum(kernel.total for kernel in profile.kernels) * 1e-9
        said.append(f"{duration(took)} in {sum(k.count for k in profile.kernels)} calls of kernels")
    for what, seconds in (("compiling", profile.compiled), ("waiting for loaders", profile.waited)):
        if seconds >= 1e-3:
            said.append(f"{duration(seconds)} {what}")
    if profile.pauses:
        longest, count = max(profile.pauses), len(profile.pauses)
        said.append(
            f"{count} collection{'s' * (count > 1)} of {duration(sum(profile.pauses))}, the longest {duration(longest)}"
        )
    return "; ".join(said)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.strip("<"), justify="left" if column.startswith("<") else "right", overflow="fold")
    return table


def _tables(profile: Findings) -> Iterator[Table]:
    if profile.samples:
        yield _shares("procedures", "<procedure", profile.procedures())
        yield _shares("lines", "<line", profile.lines())
    if profile.kernels:
        yield _kernels(profile)
    for kind, title in (
        (REGION, "regions"), (COMPILE, "compiling, by stage"), (LOADER, "waiting for loaders"),
        (TRANSFER, "copies between machines"),
    ):  # fmt: skip
        stages = profile.stages(kind)
        if stages:
            yield _stages(title, stages)
    if profile.callbacks:
        table = _table("calls of Python from Scheme", "time", "calls", "<function")
        for one in sorted(profile.callbacks, key=lambda c: -c.total)[:SHOWN]:
            table.add_row(duration(one.total * 1e-9), str(one.calls), Text(one.name))
        yield table
    if profile.allocations:
        yield _heap(profile)
    if profile.tensors:
        table = _table(f"tensors: {amount(profile.tensor_peak)} at most, held by", "bytes", "share", "<line")
        for frame, size in profile.tensors[:SHOWN]:
            where = "(unknown)" if frame is None else f"{frame.name} {frame.where}"
            table.add_row(amount(size), f"{size / profile.tensor_peak:.1%}", Text(where))
        yield table


def _shares(title: str, column: str, shares: list[Share]) -> Table:
    table = _table(title, "self", "total", column)
    for share in shares[:SHOWN]:
        table.add_row(f"{share.itself:.1%}", f"{share.total:.1%}", Text(share.name))
    return table


def _stages(title: str, stages: list[Stage]) -> Table:
    sized = any(stage.size for stage in stages)
    table = _table(title, "time", "times", *(["bytes"] if sized else []), "<name")
    for stage in stages[:SHOWN]:
        size = [amount(stage.size)] if sized else []
        table.add_row(duration(stage.seconds), str(stage.times), *size, Text(stage.name))
    return table


def _kernels(profile: Findings) -> Table:
    peaks, whole = profile.peaks, sum(kernel.total for kernel in profile.kernels) or 1
    title = (
        f"kernels; the machine: {amount(peaks.bytes_a_second, 'B/s')}, {amount(peaks.operations_a_second, 'FLOP/s')}"
    )
    table = _table(title, "share", "calls", "each", "B/s", "FLOP/s", "of peak", "<bound", "<kernel", "<line")
    for kernel in profile.kernels[:SHOWN]:
        work, seconds = kernel.work, kernel.total * 1e-9 / max(kernel.count, 1)
        known = bool(work.moved)
        table.add_row(
            f"{kernel.total / whole:.1%}", str(kernel.count), duration(seconds),
            amount(kernel.rate, "") if known else "", amount(kernel.speed, "") if work.operations else "",
            f"{peaks.share(work.moved, work.operations, seconds):.0%}" if known else "",
            peaks.bound(work.moved, work.operations) if known else "", Text(f"{work.name}  {work.shapes}"),
            Text(f"{shown(work.file)}:{work.line}" if work.file else ""),
        )  # fmt: skip
    return table


def _heap(profile: Findings) -> Table:
    table = _table(
        f"Scheme's heap: {amount(profile.heap_peak)} alive at most, of objects made meanwhile; held by",
        "at most", "share", "alive at the end", "<line",
    )  # fmt: skip
    live, whole = dict(profile.allocated(at="live")), profile.heap_peak or 1
    for name, size in profile.allocated()[:SHOWN]:
        table.add_row(amount(size), f"{size / whole:.1%}", amount(live.get(name, 0)), Text(name))
    return table
