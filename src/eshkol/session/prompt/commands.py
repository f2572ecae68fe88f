"""The commands of the prompt: what begins with a comma. One row each, from which `,help` and completion follow.

Comes in: the talk that goes on (talk.py), the session, and what stands behind the command's word. Goes out: lines, or
an error that the loop (../repl.py) shows as those of forms. All of it happens on the session's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eshkol.errors import LanguageError, ReadError
from eshkol.lang.bodies import take_back
from eshkol.lang.files import file_name, read_source, shown
from eshkol.lang.guesses import near_names
from eshkol.lang.pretty import pretty
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.unexpand import unit_data
from eshkol.runtime.scheme import SchemeExit
from eshkol.session import Session
from eshkol.session.describing import about_name, kind_of_value, signature
from eshkol.session.prompt.plain import argument
from eshkol.session.prompt.talk import GiveUp, Resume, Talk
from eshkol.session.prompt.watching import STOPPING, TRACED

MOST_NAMES = 60  # that ,apropos lists
NO_VALUES = "; values of variables are not kept: ,break NAME stops where a procedure begins, and shows its arguments"


class Command(NamedTuple):
    """A row: what is typed, what stands behind it, what it does in a few words, and what does it."""

    word: str
    argument: str
    does: str
    run: Callable[[Talk, Session, str], None]


def run_command(talk: Talk, session: Session, text: str) -> None:
    """Do what a text that begins with a comma asks for."""
    word = text.split()[0][1:]
    command = COMMANDS.get(word)
    if command is None:
        near = near_names(word, COMMANDS)
        hint = f"did you mean ,{near[0]}? " if near else ""
        raise ReadError(f"there is no command ,{word}", hint=f"{hint},help lists the commands")
    command.run(talk, session, argument(text).strip())


def _help(talk: Talk, session: Session, text: str) -> None:
    session.say(
        "Type a form to see its value; a form may go over several lines. Ctrl-C interrupts, Ctrl-D leaves.",
        *(f"  {f',{row.word} {row.argument}'.rstrip():20} {row.does}" for row in COMMANDS.values()),
    )


# ---- names and values ------------------------------------------------------------------------------------------------


def _doc(talk: Talk, session: Session, name: str) -> None:
    lines = about_name(session, name)
    if lines is None:
        raise ReadError(
            f"{name or 'nothing'} has no definition here",
            hint=session.who_brings(name) or ",doc NAME tells of a name, ,apropos PART of names that contain it",
        )
    session.say(*lines)


def _apropos(talk: Talk, session: Session, part: str) -> None:
    if not part:
        raise ReadError("what is to be looked for?", hint=",apropos vector lists the names that contain it")
    names = sorted(name for name in session.visible_names() if part in name and not name.startswith("%"))
    if not names:
        raise ReadError(f"no name here contains {part}")
    for name in names[:MOST_NAMES]:
        session.say(f"  {signature(session, name) or name}")
    if len(names) > MOST_NAMES:
        session.say(f"; and {len(names) - MOST_NAMES} more: {' '.join(names[MOST_NAMES : 2 * MOST_NAMES])}")


def _type(talk: Talk, session: Session, text: str) -> None:
    from eshkol.session.typing import type_of

    text = _wanted(text, ",type FORM")
    kind = type_of(session, text, talk.name())
    if kind not in (None, "Any"):
        session.say(str(kind))
    else:  # what is not known before it runs is seen afterwards
        session.say(kind_of_value(session, session.evaluate(text, talk.name())))


def _disassemble(talk: Talk, session: Session, text: str) -> None:
    from eshkol.session.prompt.machine_code import machine_code

    before = talk.watching.original(text)
    value = session.evaluate(_wanted(text, ",disassemble PROCEDURE"), talk.name()) if before is None else before.get()
    session.say(*machine_code(session, value))


# ---- forms and files -------------------------------------------------------------------------------------------------


def _expand(talk: Talk, session: Session, text: str) -> None:
    for form in read(Source(talk.name(), text)):
        unit = session.world.prompt.unit(form)
        if unit is not None:
            take_back(unit.changes)  # nothing is defined by being looked at
            for datum in unit_data(unit):
                session.say(pretty(datum))


def _time(talk: Talk, session: Session, text: str) -> None:
    start = time.perf_counter()
    running = 0.0
    for form in session.forms(text, talk.name()):
        before = time.perf_counter()
        value = form()
        running += time.perf_counter() - before
        talk.show(session, value)
    whole = time.perf_counter() - start
    session.say(f"; {_duration(running)}, and {_duration(whole - running)} to compile")


def _load(talk: Talk, session: Session, text: str) -> None:
    text = _wanted(text, ",load FILE")
    name = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    _load_file(talk, session, Path(name).expanduser())


def _reload(talk: Talk, session: Session, text: str) -> None:
    if talk.file is None:
        raise ReadError("no file has been loaded yet", hint=",load FILE loads one")
    _load_file(talk, session, talk.file)


def _load_file(talk: Talk, session: Session, path: Path) -> None:
    source = read_source(path)
    talk.file = source.path
    count = 0
    for form in session.forms(source, file_name(source)):
        form()
        count += 1
    session.say(f"; {shown(source.path)}: {count} form{'' if count == 1 else 's'}")


# ---- calls -----------------------------------------------------------------------------------------------------------


def _watch(kind: str, word: str) -> Callable[[Talk, Session, str], None]:
    """The command that watches procedures in some way, or lists those that are."""

    def run(talk: Talk, session: Session, text: str) -> None:
        for name in text.split():
            talk.watching.watch(session, name, kind)
        if not text:
            session.say(f"; {word}: {' '.join(talk.watching.names(kind)) or 'nothing'}")

    return run


def _untrace(talk: Talk, session: Session, text: str) -> None:
    for name in text.split() or [*talk.watching.names(TRACED), *talk.watching.names(STOPPING)]:
        if not talk.watching.leave(session, name):
            raise LanguageError(f"{name} is not watched", hint=",trace and ,break without a name list what is")


def _backtrace(talk: Talk, session: Session, text: str) -> None:
    if talk.failure is None:
        session.say("; there has been no error")
        return
    failure = talk.failure
    session.say(f"error: {failure.error.message}")
    for number, step in enumerate(failure.steps):
        times = f" ({step.times} times)" if step.times > 1 else ""
        session.say(f"  {number:2}  {step.procedure}{times}")
        if step.span is not None:
            span = step.span
            session.say(f"        {span.text[span.column - 1 : span.column - 1 + span.length].strip()}")
    session.say(NO_VALUES)


def _continue(talk: Talk, session: Session, text: str) -> None:
    raise Resume


def _abort(talk: Talk, session: Session, text: str) -> None:
    raise GiveUp


def _quit(talk: Talk, session: Session, text: str) -> None:
    raise SchemeExit(0)


def _wanted(text: str, usage: str) -> str:
    if not text:
        raise ReadError("something is missing behind the command", hint=usage)
    return text


def _duration(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


COMMANDS = {
    row.word: row
    for row in (
        Command("doc", "NAME", "what a procedure or form is for", _doc),
        Command("apropos", "PART", "the names that contain something", _apropos),
        Command("type", "FORM", "its type; where that is not known, what kind of value it has", _type),
        Command("expand", "FORM", "the form with its macros expanded", _expand),
        Command("time", "FORM", "the value of the form, and how long it took", _time),
        Command("disassemble", "PROC", "the machine code of a procedure", _disassemble),
        Command("load", "FILE", "evaluate the forms of a file", _load),
        Command("reload", "", "load that file again", _reload),
        Command("trace", "NAME ...", "show calls of procedures, and what they give", _watch(TRACED, "traced")),
        Command("break", "NAME ...", "stop before calls of procedures, with a prompt", _watch(STOPPING, "stopped at")),
        Command("untrace", "NAME ...", "neither of them any more; without a name, all", _untrace),
        Command("bt", "", "the calls that led to the last error", _backtrace),
        Command("continue", "", "after a stop: go on; so does Ctrl-D", _continue),
        Command("abort", "", "after a stop: back to the first prompt", _abort),
        Command("help", "", "this", _help),
        Command("quit", "", "leave", _quit),
    )
}
