"""Typing at a terminal: several lines with indentation, history, completion, colours, and how a procedure is called.

Comes in: keys. Goes out: texts of whole forms, and commands. It stands on prompt_toolkit and is imported when
someone sits at a terminal that can do this; plain.py serves the others. Everything runs on the main thread; what is
asked of the session goes to its thread, where nothing else is at work while someone types.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from eshkol.errors import EshkolError
from eshkol.lang.indent import column
from eshkol.lang.meanings import FormBinding, MacroBinding
from eshkol.session import Session
from eshkol.session.completing import completions_at, operator_at
from eshkol.session.describing import signature
from eshkol.session.prompt import highlighting
from eshkol.session.prompt.commands import COMMANDS
from eshkol.session.prompt.history import DiskHistory
from eshkol.session.prompt.plain import is_command, is_whole
from eshkol.support.interrupts import check, take

T = TypeVar("T")

COLOURS = {
    highlighting.COMMAND: "ansimagenta",
    highlighting.COMMENT: "ansibrightblack italic",
    highlighting.STRING: "ansigreen",
    highlighting.NUMBER: "ansicyan",
    highlighting.CONSTANT: "ansicyan",
    highlighting.KEYWORD: "ansiyellow",
    highlighting.FORM: "ansiblue bold",
    highlighting.WRONG: "ansired underline",
    "partner": "bold reverse",
    "prompt": "bold",
    "bottom-toolbar": "noreverse ansibrightblack",
    "hint-call": "bold",
}


class Editor:
    """A terminal."""

    def __init__(self, ask: Callable[[Callable[[Session], Any]], Any], history: History | None = None, **io: Any):
        """`ask` has something done on the session's thread; `io` is another input or output, for tests."""
        self._ask = ask
        self._hints: dict[str, str | None] = {}
        self._is_form: dict[str, bool] = {}
        self._is_warm = False
        self._warm = threading.Thread(target=self._warm_up, name="warming", daemon=True)
        self._typed: PromptSession[str] = PromptSession(
            history=DiskHistory() if history is None else history,
            multiline=True,
            lexer=_Colours(self.is_form, lambda: self._is_warm),
            completer=_Names(self.known),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=True,
            input_processors=[_Partners()],
            key_bindings=_keys(),
            bottom_toolbar=self._toolbar,
            prompt_continuation=lambda width, line, wrapped: " " * width,
            style=Style.from_dict(COLOURS),
            include_default_pygments_style=False,
            tempfile_suffix=".esk",
            reserve_space_for_menu=4,
            **io,
        )
        self._warm.start()

    def read(self, prompt: str) -> str | None:
        """The text of whole forms, or a command; None at the end."""
        self._hints.clear()  # everything may have been defined anew
        self._is_form.clear()
        while True:
            try:
                check()
                text = self._typed.prompt([("class:prompt", prompt)], pre_run=_forget_interrupt)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None
            if text.strip():
                return text

    def close(self) -> None:
        """Nothing more will be read."""
        self._warm.join()

    def _warm_up(self) -> None:
        """What the first hint and the first form need is made while the first form is typed."""
        try:
            self._ask(lambda session: session.world.prompt and None)
        except EshkolError:
            return  # whoever asks for it next will hear of it
        self._is_warm = True
        self._typed.app.invalidate()  # what could not be said before is shown now

    # ---- what is known of names --------------------------------------------------------------------------------------

    def known(self, work: Callable[[Session], T], otherwise: T) -> T:
        """What the session says while someone types. Nothing is raised: prompt_toolkit would fall over it."""
        try:
            found: T = self._ask(work)
            return found
        except (EshkolError, KeyboardInterrupt):
            return otherwise
        finally:
            _forget_interrupt()

    def is_form(self, name: str) -> bool:
        """Whether a name is that of a form or macro."""
        known = self._is_form.get(name)
        if known is None:
            if not self._is_warm:
                return False  # colours come a moment later
            found = self.known(lambda session: session.world.prompt.namespace.lookup(name), None)
            known = self._is_form[name] = isinstance(found, (FormBinding, MacroBinding))
        return known

    def hint(self, document: Document) -> str | None:
        """How the procedure is called whose arguments are being typed."""
        name = operator_at(document.text, document.cursor_position)
        if not name or is_command(document.text) or not self._is_warm:
            return None
        if name not in self._hints:
            self._hints[name] = self.known(partial(signature, name=name), None)
        return self._hints[name]

    def _toolbar(self) -> StyleAndTextTuples:
        hint = self.hint(self._typed.default_buffer.document)
        if hint is None:
            return [("", "")]
        call, _, does = hint.partition("  ")
        return [("class:hint-call", f" {call}"), ("", f"  {does}")]


def _forget_interrupt() -> None:
    """Ctrl-C is a key while someone types: what came as a signal before must not be raised by who looks next."""
    take(threading.get_ident())


# ---- keys ------------------------------------------------------------------------------------------------------------


def ends_here(document: Document) -> bool:
    """Whether Enter runs what is typed: it is whole, and the cursor is in its last line."""
    return "\n" not in document.text_after_cursor.rstrip() and (not document.text.strip() or is_whole(document.text))


def new_line(document: Document) -> str:
    """What Enter types otherwise: the end of the line, and the blanks that the next one begins with."""
    return "\n" + " " * column(document.text_before_cursor)


def _keys() -> KeyBindings:
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)  # and not what is searched for

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        recalled = buffer.text in buffer.history.get_strings()  # as it was, wherever a search has left the cursor
        if ends_here(buffer.document) or (recalled and is_whole(buffer.text)):
            buffer.validate_and_handle()
        else:
            _break_line(event)

    @keys.add("escape", "enter", filter=typing)
    def _break_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = new_line(buffer.document)
        buffer.delete(len(buffer.document.current_line_after_cursor) - len(_rest(buffer.document)))
        buffer.insert_text(text)

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        _complete(event.current_buffer)

    @Condition
    def at_margin() -> bool:
        document = get_app().current_buffer.document
        return "\n" in document.text_before_cursor and not document.current_line_before_cursor.strip()

    @keys.add("tab", filter=typing & at_margin)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        line = buffer.document.current_line_before_cursor
        before = buffer.document.text_before_cursor[: -len(line) - 1 if line else -1]
        buffer.delete(len(buffer.document.current_line_after_cursor) - len(_rest(buffer.document)))
        buffer.delete_before_cursor(len(line))
        buffer.insert_text(" " * column(before))

    return keys


def _complete(buffer: Buffer) -> None:
    """Type what all completions have in common; where that is nothing, show them, and go from one to the next."""
    if buffer.complete_state is not None:
        buffer.complete_next()
        return
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    common = get_common_complete_suffix(buffer.document, found)
    if common or len(found) == 1:
        buffer.insert_text(common)
    elif found:
        buffer.start_completion()


def _rest(document: Document) -> str:
    """What stands behind the cursor in its line, without the blanks before it."""
    return document.current_line_after_cursor.lstrip(" ")


# ---- looks -----------------------------------------------------------------------------------------------------------


class _Colours(Lexer):
    """Stretches of the text in their styles."""

    def __init__(self, is_form: Callable[[str], bool], is_warm: Callable[[], bool]) -> None:
        self._is_form, self._is_warm = is_form, is_warm

    def invalidation_hash(self) -> bool:
        """When this changes, the same text may have other colours."""
        return self._is_warm()

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The lines of a text."""
        lines: list[StyleAndTextTuples] = [[]]
        for start, end, style in highlighting.stretches(document.text, self._is_form):
            first, *others = document.text[start:end].split("\n")
            lines[-1].append((f"class:{style}" if style else "", first))
            lines += [[(f"class:{style}" if style else "", part)] for part in others]
        return lambda number: lines[number] if number < len(lines) else []


class _Partners(Processor):
    """The parenthesis at the cursor and the one that belongs to it, marked."""

    def apply_transformation(self, given: TransformationInput) -> Transformation:
        """One line."""
        document = given.document
        busy = get_app().is_done or given.buffer_control.buffer.complete_state is not None
        found = None if busy else highlighting.partner(document.text, document.cursor_position)
        places = [document.translate_index_to_position(place) for place in found or ()]
        columns = [given.source_to_display(place) for row, place in places if row == given.lineno]
        if not columns:
            return Transformation(given.fragments)
        fragments = explode_text_fragments(given.fragments)
        for place in columns:
            if place < len(fragments):
                style, text, *_ = fragments[place]
                fragments[place] = (f"{style} class:partner", text)
        return Transformation(fragments)


class _Names(Completer):
    """Commands, and whatever else may be typed (../completing.py)."""

    def __init__(self, known: Callable[[Callable[[Session], Any], Any], Any]) -> None:
        self._known = known

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor."""
        text, cursor = document.text, document.cursor_position
        if is_command(text):
            word = document.text_before_cursor.lstrip()[1:]
            if " " not in word:
                for row in COMMANDS.values():
                    if row.word.startswith(word):
                        yield Completion(row.word, -len(word), display=f",{row.word}", display_meta=row.does)
                return
            command, _, rest = word.partition(" ")
            text, cursor = (f'"{rest}' if command == "load" else rest), len(rest) + (command == "load")
        start, found = self._known(partial(completions_at, text=text, cursor=cursor), (cursor, []))
        for one in found:
            yield Completion(one.text, start - cursor, display_meta=one.kind)
