"""The fused schedule of a function as a drawing: kernels, and the values that go from one to the next through memory.

Comes in: a function with arguments, or its plan. Goes out: DOT for Graphviz, or SVG: steps in layers, each below all
that it reads, with its shapes, bytes, operations and line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from eshkol.errors import EshkolError
from eshkol.profiling.frames import shown
from eshkol.profiling.tables import amount
from eshkol.profiling.writing import write
from eshkol.schedule.plan.steps import Launch, OnHost, Plan, walk
from eshkol.schedule.plan.work import PlanWork
from eshkol.tensors.jit import jit

MOST = 400  # steps of a drawing
LETTER, HIGH, WIDE_GAP, HIGH_GAP, MARGIN = 6.3, 54, 24, 46, 16  # pixels


class Box(NamedTuple):
    """A step: what stands in it, and the steps whose values it reads, with their bytes."""

    lines: tuple[str, ...]
    reads: tuple[tuple[int, int], ...]  # box and bytes
    layer: int


def export_schedule(path: str | Path, function: Callable[..., Any], *args: Any, **given: Any) -> None:
    """Draw what a function becomes for its arguments, to a file that ends in .dot or .svg; nothing is computed."""
    plan = (function if isinstance(function, jit) else jit(function)).plan(*args, **given)
    ways = {".dot": dot, ".gv": dot, ".svg": svg}
    way = ways.get(Path(path).suffix.lower())
    if way is None:
        raise EshkolError(
            f"a schedule is not drawn as {Path(path).name!r}", hint="the name ends in .svg, or in .dot for Graphviz"
        )
    write(path, way(plan))


def boxes(plan: Plan) -> list[Box]:
    """The steps of a plan, inputs first; steps of loops stand once."""
    works = PlanWork(plan)
    steps = [step for step in walk(plan.steps) if isinstance(step, Launch | OnHost)]
    if len(steps) > MOST:
        raise EshkolError(f"a schedule of {len(steps)} steps is too large to look at: at most {MOST} are drawn")
    found: list[Box] = []
    written: dict[int, int] = {}  # the box that has written a place last
    for number, place in enumerate(plan.params):
        size = plan.places[place]
        found.append(Box((f"input {number}", f"{size.dtype.name} {'×'.join(map(str, size.shape)) or '1'}"), (), 0))
        written[place] = number
    for step in steps:
        work = works.of(step)
        reads = {written[p]: plan.places[p].size for p in step.reads if p in written}
        told = [amount(work.moved)] + ([amount(work.operations, "FLOP")] if work.operations else [])
        if work.file:
            told.append(f"{shown(work.file).rsplit('/', 1)[-1]}:{work.line}")
        layer = 1 + max((found[k].layer for k in reads), default=0)
        found.append(Box((work.name, work.shapes, "  ".join(told)), tuple(reads.items()), layer))
        written.update(dict.fromkeys(step.writes, len(found) - 1))
    return found


def dot(plan: Plan) -> str:
    """For Graphviz."""
    lines = ["digraph schedule {", '  node [shape=box, fontname="monospace", fontsize=10];']
    for number, box in enumerate(boxes(plan)):
        label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines if line)
        lines.append(f'  n{number} [label="{label}"];')
        lines += [f'  n{k} -> n{number} [label="{amount(size)}", fontsize=9];' for k, size in box.reads]
    return "\n".join([*lines, "}\n"])


def svg(plan: Plan) -> str:
    """As a picture of its own."""
    found = boxes(plan)
    layers: dict[int, list[int]] = {}
    for number, box in enumerate(found):
        layers.setdefault(box.layer, []).append(number)
    wide = [max(len(line) for line in box.lines) * LETTER + 16 for box in found]
    whole = max((sum(wide[k] + WIDE_GAP for k in row) for row in layers.values()), default=0) + 2 * MARGIN
    height = (max(layers, default=0) + 1) * (HIGH + HIGH_GAP) + 2 * MARGIN
    at = dict(_places(layers, wide, whole))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{height}" '
        f'viewBox="0 0 {whole:.0f} {height}" font-family="ui-monospace,monospace" font-size="10.5">',
        '<rect width="100%" height="100%" fill="#fffdf8"/>',
    ]
    for number, box in enumerate(found):
        x, y = at[number]
        for k, size in box.reads:
            fx, fy = at[k][0] + wide[k] / 2, at[k][1] + HIGH
            thick = 0.8 + 0.25 * math.log10(1 + size)
            bend = (y - fy) / 2
            parts.append(
                f'<path d="M{fx:.1f} {fy} C{fx:.1f} {fy + bend:.1f} {x + wide[number] / 2:.1f} {y - bend:.1f} '
                f'{x + wide[number] / 2:.1f} {y}" fill="none" stroke="#8b8f96" stroke-width="{thick:.2f}">'
                f"<title>{amount(size)}</title></path>"
            )
    for number, box in enumerate(found):
        x, y = at[number]
        fill = "#e8eef5" if not box.reads and box.layer == 0 else "#f6d9c6"
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{wide[number]:.1f}" height="{HIGH}" rx="4" fill="{fill}" '
            'stroke="#b9b3a8"/>'
        )
        for row, line in enumerate(box.lines):
            weight = ' font-weight="600"' if row == 0 else ""
            parts.append(f'<text x="{x + 8:.1f}" y="{y + 15 + 15 * row}"{weight}>{escape(line)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _places(layers: dict[int, list[int]], wide: list[float], whole: float) -> Iterator[tuple[int, tuple[float, int]]]:
    for layer, row in layers.items():
        x = (whole - sum(wide[k] + WIDE_GAP for k in row) + WIDE_GAP) / 2
        for k in row:
            yield k, (x, MARGIN + layer * (HIGH + HIGH_GAP))
            x += wide[k] + WIDE_GAP
