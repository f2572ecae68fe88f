"""Conditions that no one handled, as errors for people: the message, the line with a caret, who called whom.

Comes in: a condition and the session it was raised in. Goes out: a `SchemeError`, whose text is what the user reads.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import sys
from collections.abc import Sequence
from itertools import dropwhile, groupby
from pathlib import Path
from typing import NamedTuple, Protocol

from eshkol.codegen.lines import Site
from eshkol.codegen.units import Engine
from eshkol.errors import Interrupted, SchemeError, Span
from eshkol.lang.files import STANDARD, shown
from eshkol.lang.guesses import undefined
from eshkol.lang.reader import OPENERS, PREFIXES
from eshkol.lang.source import Place, Source
from eshkol.runtime.conditions import is_error, kind_of, message
from eshkol.runtime.scheme import Machine, Root, SchemeRaised, Value
from eshkol.runtime.tokens import tokenize
from eshkol.session.remedies import remedy

FRAMES_SHOWN = 12
RAISING = "(eshkol control)"  # where `raise` is
LONGEST_FORM = 10_000  # characters that are looked at for the end of a form


class Scene(Protocol):
    """What is known of the place where a condition was raised; a session knows it."""

    @property
    def machine(self) -> Machine: ...

    @property
    def engine(self) -> Engine: ...

    def source(self, name: str) -> Source | None:
        """A text that was read, by the name that compiled code has for it."""

    def visible_names(self) -> set[str]:
        """What may be meant where a name is not known."""

    def who_brings(self, name: str) -> str | None:
        """A hint: which import brings a name that is not known."""


def scheme_error(scene: Scene, raised: SchemeRaised) -> SchemeError:
    """What a person should know of an uncaught condition."""
    machine, condition = scene.machine, raised.value.get()
    kind = kind_of(machine, condition) if is_error(machine, condition) else ""
    _check_pipe(machine, kind, condition)
    sites = _sites(scene, kind, condition)
    span = _span(scene, next((site for site in sites if not is_standard(site)), None))
    notes = [(line, None) for line in _trace(sites)]
    if kind == "interrupt":
        return Interrupted("interrupted", span=span, notes=tuple(notes))
    said = message(machine, condition)
    name = _undefined(machine, condition) if kind == "unbound" else None
    hint = scene.who_brings(name) or undefined(name, scene.visible_names()) if name else None
    hint = hint or _hint(machine, kind, condition) or remedy(kind, said)
    return SchemeError(said, span=span, notes=tuple(notes), hint=hint)


class Step(NamedTuple):
    """A call that was under way: whose, how often one after the other, and where it is written."""

    procedure: str
    times: int
    span: Span | None


def steps(scene: Scene, raised: SchemeRaised) -> list[Step]:
    """All calls that were under way when a condition was raised, the innermost first."""
    machine, condition = scene.machine, raised.value.get()
    kind = kind_of(machine, condition) if is_error(machine, condition) else ""
    found = []
    for shown_, same in groupby(_told(_sites(scene, kind, condition)), shown_site):
        site, *others = same
        found.append(Step(shown_, 1 + len(others), None if is_standard(site) else _span(scene, site)))
    return found


def _sites(scene: Scene, kind: str, condition: Value) -> list[Site]:
    """The calls that were under way, from the one that raised."""
    sites = [site for site in scene.engine.sites(_addresses(scene.machine, kind, condition)) if site.line]
    return [site for site in dropwhile(lambda site: site.unit == RAISING, sites) if not _is_hidden(site)]


def _hint(machine: Machine, kind: str, condition: Value) -> str | None:
    """What an error of Eshkol's own in Python says to do."""
    cause = machine.call("%error-cause", condition) if kind else None
    if cause is None or cause.tag == machine.tags["BOOLEAN"]:
        return None
    return machine.python.hint(Root(machine, cause))


def _check_pipe(machine: Machine, kind: str, condition: Value) -> None:
    """Where no one reads the standard output any more, that is what happened, and no error of the program.

    Scheme's port says so; what Python wrote there says that a pipe is broken, and not which one it is.
    """
    if kind not in ("file-error", "python"):
        return
    said, broken = message(machine, condition), os.strerror(errno.EPIPE)
    ours = said.endswith(f"{BrokenPipeError.__name__}: [Errno {errno.EPIPE}] {broken}") and _reader_has_gone()
    if ours or said.endswith(f'{broken} "standard output"'):
        raise BrokenPipeError(errno.EPIPE, broken, "standard output")


def _reader_has_gone() -> bool:
    """Whether the standard output is a pipe that no one reads."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)  # what is wrong with it is told in any case
        return bool(poll.poll(0))
    except (AttributeError, OSError, ValueError):  # a system without `poll`; an output that is no file, or closed
        return False


def _addresses(machine: Machine, kind: str, condition: Value) -> Sequence[int]:
    """The return addresses of the calls that were under way, the innermost first."""
    if not kind:
        return machine.uncaught_trace()
    trace = machine.call("%error-trace", condition)
    return _unpacked(machine.bytes(trace) if trace.tag == machine.tags["BYTEVECTOR"] else b"")


def _unpacked(trace: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(trace) // 8}Q", trace)


def place_of(engine: Engine, trace: bytes) -> str | None:
    """File and line of the innermost call that is not in the library, of the return addresses of a trace."""
    found = line_of(engine, _unpacked(trace))
    return None if found is None else f"{found[0]}:{found[1]}"


def line_of(engine: Engine, addresses: Sequence[int]) -> tuple[str, int] | None:
    """The same of addresses, file and line apart."""
    found = next((site for site in engine.sites(addresses) if site.line and not is_standard(site)), None)
    return None if found is None else (shown(Path(found.file)), found.line)


def _trace(sites: list[Site]) -> list[str]:
    """A line for each call that was under way, the innermost first; the same one again and again is one line."""
    lines = []
    for line, same in groupby(map(shown_site, _told(sites))):
        count = len(list(same))
        lines.append(f"  in {line}{f' ({count} times)' if count > 1 else ''}")
    if len(lines) > FRAMES_SHOWN:
        lines[FRAMES_SHOWN:] = [f"  and {len(lines) - FRAMES_SHOWN} more"]
    return lines if len(lines) > 1 else []


def _told(sites: list[Site]) -> list[Site]:
    """Of calls within the library one after the other, only the outermost is told: it is the one that the user made."""
    return [site for site, outer in zip(sites, [*sites[1:], None], strict=False) if not _is_within(site, outer)]


def shown_site(site: Site) -> str:
    """What a backtrace says of a call."""
    if is_standard(site):  # no one looks for the error there
        return " ".join((site.unit, *site.procedures[:1]))
    where = f"{shown(Path(site.file))}:{site.line}:{site.column}"
    if site.procedures:
        return f"{site.procedures[-1]} at {where}"
    if site.unit.startswith("<"):
        return f"the prompt at {where}"
    return f"{'the program' if site.unit == 'program' else site.unit}'s top level at {where}"


def is_standard(site: Site) -> bool:
    """Whether it is in the standard library."""
    return STANDARD in Path(site.file).parents


def _is_within(site: Site, outer: Site | None) -> bool:
    """Whether the library was called by the library there."""
    return outer is not None and is_standard(site) and is_standard(outer)


def _is_hidden(site: Site) -> bool:
    """Procedures of the library that are no one else's business."""
    return is_standard(site) and bool(site.procedures) and site.procedures[0].startswith("%")


def _span(scene: Scene, site: Site | None) -> Span | None:
    source = None if site is None else scene.source(site.file)
    return None if site is None or source is None else span_of(source, site)


def span_of(source: Source, site: Site) -> Span:
    """The form that a call is, in the text that it stands in."""
    start = source.offset(site.line, max(1, site.column))  # 0: LLVM put together what stands in several places of it
    return Place(source, start, start + _extent(source.text[start : start + LONGEST_FORM])).span


def _extent(text: str) -> int:
    """How many characters the first datum of a text has; more may follow it, also what is no datum."""
    depth = 0
    for token in tokenize(text)[0]:
        if token.kind in OPENERS:
            depth += 1
        elif token.kind == "CLOSE":
            depth -= 1
        elif token.kind in PREFIXES or token.kind in ("LABEL", "DATUM_COMMENT"):
            continue
        if depth <= 0:
            return token.end
    return len(text)


def _undefined(machine: Machine, condition: Value) -> str | None:
    """The name that has no definition."""
    irritants = machine.call("error-object-irritants", condition)
    if irritants.tag != machine.tags["PAIR"]:
        return None
    return machine.written(machine.call("car", irritants), style=0)
