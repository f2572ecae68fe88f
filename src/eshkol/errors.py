"""The closed set of errors that Eshkol raises, and how they look to a person.

This module stands under everything else and imports nothing of the project. An error carries a
message, optionally the `Span` of source it is about, and a hint that says what to do; `str(error)`
prints the message, the line with a caret under it, and the hint.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

BROKEN_PIPE = 141  # exit code of a program whose output no one reads any more: 128 + the number of SIGPIPE
LINE_SHOWN = 200  # characters of a source line; of a longer one, only those around the caret


class Span(NamedTuple):
    """A stretch of one source line: where it is, and the text of the line for the caret display."""

    file: str
    line: int  # 1-based
    column: int  # 1-based
    length: int
    text: str

    def render(self) -> str:
        gutter, place, text = f"{self.line:>5} | ", self.column - 1, self.text.expandtabs(1)
        first = max(0, min(place - LINE_SHOWN // 2, len(text) - LINE_SHOWN))
        last = first + LINE_SHOWN
        before, after = "…" * (first > 0), "…" * (last < len(text))
        marked = max(1, min(self.length, last - place))
        caret = " " * (len(gutter + before) + place - first) + "^" + "~" * (marked - 1)
        return f"  --> {self.file}:{self.line}:{self.column}\n{gutter}{before}{text[first:last]}{after}\n{caret}"


class EshkolError(Exception):
    """Base of every error a user of Eshkol can meet."""

    donated_kept = False  # whether a call that failed has left the memory that was donated to it as it was

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts.append(self.span.render())
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class IsaError(EshkolError):
    """A program is not legal Atlas: found by a parser, the validator, or at run time."""


class BackendError(EshkolError):
    """Something went wrong in a backend, with a program that is legal in itself."""


class AllocationFailed(BackendError):
    """Memory for a buffer or pool could not be had, or the size asked for is not sensible."""


class InvalidBuffer(BackendError):
    """A handle that is freed, unknown, of another backend, or an access outside the buffer."""


class ExecutionFailed(BackendError):
    """A launch stopped: division by zero, address out of range, divergent barrier, race, ..."""


class DeviceLost(ExecutionFailed):
    """A machine has stopped for good: what lies in its memory is gone, all else goes on."""


class BackendUnavailable(BackendError):
    """The backend, or a capability of it that the program needs, is not there on this machine."""


class UnsupportedType(BackendUnavailable):
    """The backend does not have this data type."""


class CacheError(EshkolError):
    """The program cache cannot be used (for instance, its folder is not writable)."""


class TensorError(EshkolError):
    """A tensor operation cannot be carried out as asked."""


class ShapeError(TensorError, ValueError):
    """Shapes do not fit together, or not the operation."""


class DTypeError(TensorError, TypeError):
    """Dtypes do not fit together, or not the operation; or a number does not fit its dtype."""


class ArgumentError(TensorError, TypeError):
    """A call that does not fit the signature: too many arguments, too few, or a name that there is not."""


class IndexOutOfRange(TensorError, IndexError):
    """An index, an axis or a class label outside what it counts."""


class DeviceError(TensorError):
    """Values that were to be computed with are on different machines."""


class DerivativeError(TensorError):
    """Something was to be differentiated that has no derivative, or not in this way."""


class TraceError(TensorError):
    """A value was asked for inside a transformation in which it is not known, or would lose its derivative."""


class NotANumberError(TensorError, ArithmeticError):
    """With `check_nan`, an operation gave NaN or infinity from numbers that are neither."""


class MiscompiledError(EshkolError):
    """With `check`, what was compiled gave another result than the interpreter of the graph: a defect of Eshkol.

    `stage` names the pass at fault, `graph` is the text of the smallest graph that shows it.
    """

    def __init__(
        self, message: str, *, span: Span | None = None, hint: str | None = None, stage: str = "", graph: str = ""
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.stage, self.graph = stage, graph

    def __str__(self) -> str:
        parts = [self.message, "the smallest graph that shows it:", self.graph]
        if self.span is not None:
            parts.append(self.span.render())
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class CheckpointError(EshkolError):
    """A file of tensors cannot be written, or is damaged, hostile, of a newer version, or no such file at all."""


class ConversionError(EshkolError, TypeError):
    """A value of Scheme that Python has no like of, or an object of Python that Scheme has none of."""


class DataError(EshkolError):
    """A data set, a file of one, or a loader cannot be used as asked."""


class UnknownLength(DataError, TypeError):
    """How many batches or samples there are is not known before the end. Python's `list` wants a TypeError here."""


class MissingData(DataError, FileNotFoundError):
    """A file of a data set is not where it is looked for."""


class ProjectError(EshkolError):
    """A project cannot be used: its eshkol.toml, its files, or what it depends on."""


class LanguageError(EshkolError):
    """A program in Eshkol the language cannot be read, expanded or compiled.

    `notes` are further places that matter, each with what it is: the uses of macros that led here, the opening
    parenthesis that is not closed.
    """

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        hint: str | None = None,
        notes: tuple[tuple[str, Span | None], ...] = (),
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.notes = notes

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts.append(self.span.render())
        for text, span in self.notes:
            parts.append(text if span is None else f"{text}\n{span.render()}")
        if self.hint is not None:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class ReadError(LanguageError):
    """The text is not that of Scheme data: a parenthesis, a string or a number is wrong."""


class UnfinishedInput(ReadError):
    """The text ends within a datum; more of it may make it whole (a prompt asks for another line)."""


class BadSyntax(LanguageError):
    """A form is not used as it must be, or no rule of a macro takes it."""


class BadType(LanguageError):
    """A value is not of the type that is expected where it stands, or what should be a type is none."""


class BadOwnership(LanguageError):
    """A value is used after its owner gave it away or ended, is lent to two at once, or leaves its scope or region."""


class UnboundName(BadSyntax):
    """A name that no one defines."""


class AmbiguousName(BadSyntax):
    """A name that a macro put together so that two bindings fit equally well."""


class Raised(Protocol):
    """A condition in the runtime."""

    def condition(self) -> Any:
        """Its value in Python."""

    def told(self, what: str) -> Any:
        """What `error-object-WHAT` gives for it; None where it is no error object."""


class SchemeError(LanguageError):
    """A condition that a program raised and did not handle.

    `raised` is what the runtime has of it, by which it is the same condition when it goes back to Scheme; where Scheme
    is called by Python. The properties are None, or empty, where there is nothing to be told.
    """

    raised: Raised | None = None

    @property
    def condition(self) -> Any:
        """What was raised, as Python has it: `(raise 'x)` can raise anything."""
        return None if self.raised is None else self.raised.condition()

    @property
    def irritants(self) -> list[Any]:
        """What stands after the message in `(error message irritant ...)`."""
        return (None if self.raised is None else self.raised.told("irritants")) or []

    @property
    def kind(self) -> str | None:
        """What kind of error it is, as `error-object-kind` tells it."""
        return None if self.raised is None else self.raised.told("kind")

    @property
    def who(self) -> str | None:
        """The procedure that found the error, as `error-object-who` tells it."""
        return (None if self.raised is None else self.raised.told("who")) or None


class Interrupted(SchemeError):
    """A program was stopped by Ctrl-C."""
