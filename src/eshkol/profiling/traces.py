"""Profiles for other programs: Chrome's trace format, which Perfetto reads, too, and speedscope's.

Comes in: what was found. Goes out: JSON, with times in microseconds from its beginning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from eshkol.profiling.findings import Findings
from eshkol.profiling.frames import Frame, shown

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PYTHON = 0  # the thread of samples of Python's main thread


def chrome(profile: Findings) -> str:
    """Spans, kernels, collections and samples as events; live memory as counters."""
    return json.dumps(
        {"traceEvents": list(_events(profile)), "displayTimeUnit": "ms", "otherData": {"made by": "eshkol"}}
    )


def _events(profile: Findings) -> Iterator[dict[str, Any]]:
    process = os.getpid()

    def at(time: int) -> float:
        return (time - profile.begin) / 1000

    def event(phase: str, name: str, kind: str, time: int, thread: int, **more: Any) -> dict[str, Any]:
        return {"ph": phase, "name": name, "cat": kind, "ts": at(time), "pid": process, "tid": thread, **more}

    yield event("M", "process_name", "", profile.begin, 0, args={"name": "eshkol"})
    for span in profile.spans:
        args: dict[str, Any] = {"bytes": span.size} if span.size else {}
        yield event("X", span.name, span.kind, span.begin, span.thread, dur=(span.end - span.begin) / 1000, args=args)
    for call in profile.calls:
        work = profile.kernels[call.kernel].work
        args = {
            "shapes": work.shapes, "line": f"{shown(work.file)}:{work.line}" if work.file else "",
            "bytes": work.moved, "operations": work.operations,
        }  # fmt: skip
        took = (call.end - call.begin) / 1000
        yield event("X", work.name, "kernel", call.begin, call.thread, dur=took, args=args)
    for one in profile.collections:
        if one.end > one.begin:
            took, args = (one.end - one.begin) / 1000, {"sampled bytes before": one.before, "after": one.after}
            yield event("X", "collection", "collector", one.begin, 0, dur=took, args=args)
        yield event("C", "Scheme's heap, sampled", "memory", one.end, 0, args={"bytes": one.after})
    for time, size in profile.tensor_timeline:
        yield event("C", "tensors", "memory", time, 0, args={"bytes": size})
    for sample in profile.samples:
        if sample.stack:
            lines = [_told(frame) for frame in sample.stack]
            yield event("i", lines[-1], "sample", sample.time, sample.thread, s="t", args={"stack": lines})


def _told(frame: Frame) -> str:
    return f"{frame.name} {frame.where}".strip()


def speedscope(profile: Findings) -> str:
    """The samples, thread by thread, each as long as the processor time that it stands for."""
    frames: dict[Frame, int] = {}
    threads = list(dict.fromkeys(sample.thread for sample in profile.samples))
    profiles = []
    for thread in threads:
        samples = [s for s in profile.samples if s.thread == thread]
        stacks = [[frames.setdefault(frame, len(frames)) for frame in s.stack] for s in samples]
        weights = [s.weight / 1000 for s in samples]
        profiles.append({
            "type": "sampled", "name": "Python" if thread == PYTHON else f"Scheme, thread {thread}",
            "unit": "microseconds", "startValue": 0, "endValue": sum(weights), "samples": stacks, "weights": weights,
        })  # fmt: skip
    told = [{"name": f.name, **({"file": f.file, "line": f.line} if f.file else {})} for f in frames]
    return json.dumps({
        "$schema": SCHEMA, "shared": {"frames": told}, "profiles": profiles, "name": "eshkol", "exporter": "eshkol",
    })  # fmt: skip
