"""A profile as one page of HTML, which needs no network and no other file.

Comes in: what was found. Goes out: the page: `page.html` with the data in it, from which its script draws flame graph,
timeline, roofline and memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eshkol.profiling.findings import Findings
from eshkol.profiling.flames import flames
from eshkol.profiling.frames import shown
from eshkol.profiling.tables import summary
from eshkol.support.observing import COMPILE, LOADER, REGION, TRANSFER

TEMPLATE = Path(__file__).with_name("page.html")
ROWS, EVENTS, POINTS = 20, 20_000, 2000  # of a table; of a lane; of a curve
NARROWEST = 1e-4  # part of all samples from which on a flame is in the page


def page(profile: Findings) -> str:
    """The whole page."""
    text = json.dumps(_data(profile)).replace("<", "\\u003c")  # no name ends the script
    return TEMPLATE.read_text(encoding="utf-8").replace("DATA", text, 1)


def _data(profile: Findings) -> dict[str, Any]:
    peaks = profile.peaks if profile.kernels else (1.0, 1.0)
    live = dict(profile.allocated(at="live"))
    stages = ((REGION, "Regions"), (COMPILE, "Compiling, by stage"), (LOADER, "Loaders"), (TRANSFER, "Copies"))
    callbacks = sorted(profile.callbacks, key=lambda one: -one.total)[:ROWS]
    return {
        "summary": summary(profile), "notes": profile.notes, "seconds": profile.seconds,
        "flames": flames(profile).data(NARROWEST * profile.sampled),
        "procedures": [[*share] for share in profile.procedures()[:ROWS]],
        "lines": [[*share] for share in profile.lines()[:ROWS]],
        "timeline": _lanes(profile), "cut": len(profile.calls) if len(profile.calls) > EVENTS else 0,
        "peaks": list(peaks), "kernels": _kernels(profile),
        "heap": _curve([(one.end, one.after) for one in profile.collections], profile.begin),
        "tensors": _curve(profile.tensor_timeline, profile.begin),
        "allocations": [[name, size, live.get(name, 0)] for name, size in profile.allocated()[:ROWS]],
        "held": [["(unknown)" if f is None else f"{f.name} {f.where}", size] for f, size in profile.tensors[:ROWS]],
        "stages": [
            *([title, [[*stage] for stage in profile.stages(kind)[:ROWS]]] for kind, title in stages),
            ["Calls of Python from Scheme", [[c.name, c.calls, c.total * 1e-9, 0] for c in callbacks]],
        ],
    }  # fmt: skip


def _lanes(profile: Findings) -> list[dict[str, Any]]:
    """What is drawn over time, a lane for each kind."""

    def at(time: int) -> float:
        return round((time - profile.begin) * 1e-9, 7)

    kinds = ((REGION, "regions"), (COMPILE, "compiling"), (LOADER, "loaders"), (TRANSFER, "copies"))
    lanes = [
        {"name": name, "events": [[s.name, at(s.begin), at(s.end)] for s in profile.spans if s.kind == kind][:EVENTS]}
        for kind, name in kinds
    ]
    calls = profile.calls[:EVENTS]
    lanes.append({
        "name": "kernels", "events": [[profile.kernels[c.kernel].work.name, at(c.begin), at(c.end)] for c in calls],
    })  # fmt: skip
    pauses = [["collection", at(c.begin), at(c.end)] for c in profile.collections if c.end > c.begin]
    lanes.append({"name": "collector", "events": pauses[:EVENTS]})
    samples = [
        [s.stack[-1].name, at(max(s.time - s.weight, profile.begin)), at(s.time)] for s in profile.samples if s.stack
    ]
    lanes.append({"name": "samples", "events": samples[:EVENTS]})
    return [lane for lane in lanes if lane["events"]]


def _kernels(profile: Findings) -> list[dict[str, Any]]:
    whole = sum(kernel.total for kernel in profile.kernels) or 1
    found = []
    for kernel in profile.kernels[:ROWS]:
        work, each = kernel.work, kernel.total * 1e-9 / max(kernel.count, 1)
        known = bool(work.moved)
        found.append({
            "name": work.name, "shapes": work.shapes, "line": f"{shown(work.file)}:{work.line}" if work.file else "",
            "share": kernel.total / whole, "count": kernel.count, "each": each, "rate": kernel.rate,
            "speed": kernel.speed, "moved": work.moved, "operations": work.operations,
            "of": f"{profile.peaks.share(work.moved, work.operations, each):.0%}" if known else "",
            "bound": profile.peaks.bound(work.moved, work.operations) if known else "",
        })  # fmt: skip
    return found


def _curve(points: Sequence[tuple[int, int]], begin: int) -> list[list[float]]:
    """Points over time, the greatest of each stretch where there are too many."""
    step = -(-len(points) // POINTS) or 1
    kept = [max(points[k : k + step], key=lambda p: p[1]) for k in range(0, len(points), step)]
    return [[round((time - begin) * 1e-9, 7), size] for time, size in kept]
