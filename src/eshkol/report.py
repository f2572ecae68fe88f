"""Conditions that nobody handled, as errors for people: the message, the line with a caret, who called whom.

Comes in: a condition and the session it was raised in. Goes out: a `SchemeError`, whose text is what the user reads.
"""

from __future__ import annotations

import difflib
import errno
import os
import struct
from itertools import groupby
from typing import Protocol

from eshkol.codegen.lines import Site
from eshkol.codegen.units import Engine
from eshkol.errors import Interrupted, LanguageError, SchemeError, Span
from eshkol.lang.reader import read
from eshkol.lang.source import Place, Source
from eshkol.runtime.conditions import is_error, message
from eshkol.runtime.scheme import Machine, SchemeRaised, Value

FRAMES_SHOWN = 12


class Scene(Protocol):
    """What is known of the place where a condition was raised; a session knows it."""

    @property
    def machine(self) -> Machine: ...

    @property
    def engine(self) -> Engine: ...

    def source(self, name: str) -> Source | None:
        """A text that was read, by its name."""

    def visible_names(self) -> set[str]:
        """What may be meant where a name is not known."""


def scheme_error(scene: Scene, raised: SchemeRaised) -> SchemeError:
    """What a person should know of an uncaught condition."""
    machine, condition = scene.machine, raised.value.get()
    if not is_error(machine, condition):
        return SchemeError(message(machine, condition))
    sites = _sites(scene, condition)
    shown = [site for site in sites if site.line]
    span = _span(scene, shown[0]) if shown else None
    notes = [(line, None) for line in _trace(shown)]
    return SchemeError(message(machine, condition), span=span, notes=tuple(notes), hint=_hint(scene, condition))


def _sites(scene: Scene, condition: Value) -> list[Site]:
    machine = scene.machine
    trace = machine.call("%error-trace", condition)
    if trace.tag != machine.tags["BYTEVECTOR"]:
        return []
    data = machine.bytes(trace)
    return scene.engine.sites(struct.unpack(f"<{len(data) // 8}Q", data))


def _trace(sites: list[Site]) -> list[str]:
    """A line for each call that was under way, the innermost first; the same one again and again is one line."""
    lines = []
    for site, same in groupby(sites):
        count = len(list(same))
        times = f" ({count} times)" if count > 1 else ""
        lines.append(f"  in {site.function} at {site.file}:{site.line}:{site.column}{times}")
    if len(lines) > FRAMES_SHOWN:
        lines[FRAMES_SHOWN:] = [f"  and {len(lines) - FRAMES_SHOWN} more"]
    return lines if len(lines) > 1 else []


def _span(scene: Scene, site: Site) -> Span | None:
    source = scene.source(site.file)
    if source is None:
        return None
    start = source.offset(site.line, site.column)
    try:
        forms = read(Source(source.name, source.text[start : start + 10_000]))
        end = start + (forms[0].place.end if forms and forms[0].place else 1)
    except LanguageError:
        end = start + 1
    return Place(source, start, end).span


def _hint(scene: Scene, condition: Value) -> str | None:
    """A name that may be meant, where one has no definition."""
    machine = scene.machine
    if machine.written(machine.call("error-object-kind", condition)) != "unbound":
        return None
    irritants = machine.call("error-object-irritants", condition)
    if irritants.tag != machine.tags["PAIR"]:
        return None
    name = machine.written(machine.call("car", irritants), style=0)
    near = difflib.get_close_matches(name, scene.visible_names() - {name}, 1)
    return f"did you mean `{near[0]}`?" if near else None
