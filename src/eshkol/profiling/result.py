"""`Profile`: what was found, and the ways to look at it.

Comes in: findings. Goes out: text, pages and files, made by the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from eshkol.errors import EshkolError
from eshkol.profiling import flames, page, tables, traces
from eshkol.profiling.findings import Findings
from eshkol.profiling.writing import write

AnyPath = str | Path


class Profile(Findings):
    """A profile. `print(profile)` shows tables; `save` writes pages, pictures and traces for other programs."""

    def __str__(self) -> str:
        return self.table()

    def table(self, width: int = 120) -> str:
        """Tables, as text."""
        return tables.text(self, width)

    def print(self) -> None:
        """Tables on the terminal, in colours where it has them."""
        Console(stderr=True).print(*tables.parts(self))

    def html(self, path: AnyPath) -> None:
        """One page with all of it, which needs nothing else."""
        write(path, page.page(self))

    def chrome_trace(self, path: AnyPath) -> None:
        """A trace for chrome://tracing and Perfetto."""
        write(path, traces.chrome(self))

    def speedscope(self, path: AnyPath) -> None:
        """The samples, for speedscope.app."""
        write(path, traces.speedscope(self))

    def flamegraph(self, path: AnyPath) -> None:
        """A flame graph, as SVG."""
        write(path, flames.svg(self))

    def text(self, path: AnyPath) -> None:
        """The tables."""
        write(path, self.table() + "\n")

    def save(self, path: AnyPath) -> None:
        """Write it as the name says: .html, .svg, .speedscope.json, .json (a Chrome trace), .txt."""
        way(path)(self, path)


WAYS: tuple[tuple[str, Callable[[Profile, AnyPath], None]], ...] = (
    (".html", Profile.html), (".svg", Profile.flamegraph), (".speedscope.json", Profile.speedscope),
    (".json", Profile.chrome_trace), (".txt", Profile.text),
)  # fmt: skip


def way(path: AnyPath) -> Callable[[Profile, AnyPath], None]:
    """How a file of that name is written."""
    for ending, how in WAYS:
        if str(path).lower().endswith(ending):
            return how
    raise EshkolError(
        f"a profile is not written as {Path(path).name!r}",
        hint="the name says how: .html, .svg, .speedscope.json, .json (a Chrome trace) or .txt",
    )
