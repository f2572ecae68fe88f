"""TensorBoard event files: scalars, histograms, pictures and texts of a run, written and read without TensorBoard.

Comes in: tags, values and steps. Goes out: `FOLDER/events.out.tfevents.…`, which `tensorboard --logdir FOLDER` shows;
`read_events` reads such files again. A file is a row of records (`records`), each an Event message (`wire`); the field
numbers below are those of TensorFlow's event.proto, summary.proto, histogram.proto and tensor.proto.
"""

from __future__ import annotations

import itertools
import operator
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from eshkol.errors import EshkolError
from eshkol.io.files import reason
from eshkol.tensors.png import encode
from eshkol.train import wire
from eshkol.train.records import framed, read_records

FILE_VERSION = "brain.Event:2"
FLUSH_SECONDS = 5.0

# Event
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = 1, 2, 3, 5, 7
# SessionLog: a run that starts (again) at a step; readers forget what earlier files have of that step and later ones
_STATUS, _START = 1, 1
# Summary, Summary.Value
_VALUE = 1
_TAG, _SIMPLE_VALUE, _IMAGE, _HISTOGRAM, _TENSOR, _METADATA = 1, 2, 4, 5, 8, 9
# Summary.Image
_HEIGHT, _WIDTH, _COLOURSPACE, _ENCODED = 1, 2, 3, 4
# HistogramProto
_MIN, _MAX, _COUNT, _SUM, _SUM_OF_SQUARES, _LIMITS, _COUNTS = 1, 2, 3, 4, 5, 6, 7
# TensorProto of strings, TensorShapeProto, its Dim
_DTYPE, _SHAPE, _STRINGS, _DT_STRING = 1, 2, 8, 7
_DIM, _SIZE = 2, 1
# SummaryMetadata, its PluginData
_PLUGIN_DATA, _PLUGIN_NAME = 1, 1


@dataclass(frozen=True)
class Histogram:
    """How values are spread: `counts[i]` of them lie below `limits[i]` and not below the limit before it."""

    minimum: float
    maximum: float
    count: float
    sum: float
    sum_of_squares: float
    limits: list[float]
    counts: list[float]


@dataclass(frozen=True)
class Image:
    """A picture: its size, how many channels it has, and the bytes of its PNG (or what else the writer chose)."""

    height: int
    width: int
    channels: int
    encoded: bytes


@dataclass(frozen=True)
class Unknown:
    """A value of a kind that is not written here: the bytes of its Summary.Value."""

    message: bytes


@dataclass(frozen=True)
class Event:
    """One record of an event file: when it was written, the step it is of, and its values by tag."""

    wall_time: float
    step: int
    values: dict[str, float | Histogram | Image | str | Unknown] = field(default_factory=dict)
    file_version: str = ""
    restarts: bool = False  # the run begins (again) at this step


_numbers = itertools.count()  # two writers of one process in one second have files of their own


class EventWriter:
    """Writes a TensorBoard event file into a folder; a context manager.

    What is added is on disk after `flush_seconds` at most, as long as something is added, and after `flush` and
    `close`. With `purge_step`, a run that goes on from a checkpoint hides what earlier files of the folder have of
    that step and later ones.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        purge_step: int | None = None,
        flush_seconds: float = FLUSH_SECONDS,
        wall_time: float | None = None,
    ) -> None:
        began = time.time() if wall_time is None else float(wall_time)
        self.folder = Path(folder)
        name = f"events.out.tfevents.{int(began):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self.path = self.folder / name
        self._lock = threading.Lock()
        self._flush_seconds = flush_seconds
        self._flushed = time.monotonic()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "xb")  # noqa: SIM115 - it is open as long as the writer is
        except OSError as error:
            raise EshkolError(
                f"EventWriter: cannot write into {self.folder}: {reason(error)}", hint="give a folder that is writable"
            ) from None
        self._write(_event(began, 0) + wire.text(_FILE_VERSION, FILE_VERSION))
        if purge_step is not None:
            log = wire.data(_SESSION_LOG, wire.integer(_STATUS, _START))
            self._write(_event(began, _checked_step(purge_step, "EventWriter")) + log)
        self.flush()

    def add_scalar(self, tag: str, value: Any, step: int, wall_time: float | None = None) -> None:
        """Add a number: a Python or NumPy number, or a tensor of one element. It is stored as float32.

        NaN and infinity are stored as they are, and TensorBoard marks them; so are numbers beyond float32, as infinity.
        """
        who = "add_scalar"
        self._add(tag, wire.float32(_SIMPLE_VALUE, _number(value, who)), step, wall_time, who)

    def add_histogram(self, tag: str, values: Any, step: int, wall_time: float | None = None) -> None:
        """Add how the elements of a tensor are spread, in TensorBoard's own buckets."""
        who = "add_histogram"
        array = _array(values, who).reshape(-1).astype(np.float64)
        if not array.size:
            raise EshkolError(f"{who}: '{tag}' has no values", hint="a histogram needs at least one")
        wrong = int(array.size - np.isfinite(array).sum())
        if wrong:
            raise EshkolError(
                f"{who}: {wrong} of the {array.size} values of '{tag}' are NaN or infinite",
                hint="find out where they come from (ek.check_nan), or leave them out",
            )
        self._add(tag, wire.data(_HISTOGRAM, _encoded_histogram(histogram(array))), step, wall_time, who)

    def add_image(
        self, tag: str, image: Any, step: int, wall_time: float | None = None, *, layout: str | None = None
    ) -> None:
        """Add a picture: uint8, bools, or floats from 0 to 1; grey, grey and alpha, RGB or RGBA.

        `layout` is "HW", "HWC" or "CHW"; without it, the axis of 1, 3 or 4 elements at an end is that of the channels.
        """
        who = "add_image"
        samples = _samples(_array(image, who), layout, tag, who)
        height, width, channels = samples.shape
        message = b"".join(
            (
                wire.integer(_HEIGHT, height),
                wire.integer(_WIDTH, width),
                wire.integer(_COLOURSPACE, channels),
                wire.data(_ENCODED, encode(samples)),
            )
        )
        self._add(tag, wire.data(_IMAGE, message), step, wall_time, who)

    def add_text(self, tag: str, text: str, step: int, wall_time: float | None = None) -> None:
        """Add a text; TensorBoard shows it as Markdown."""
        who = "add_text"
        if not isinstance(text, str):
            raise EshkolError(f"{who}: a string is wanted as the text, not a {type(text).__name__}")
        shape = wire.data(_SHAPE, wire.data(_DIM, wire.integer(_SIZE, 1)))
        tensor = wire.integer(_DTYPE, _DT_STRING) + shape + wire.data(_STRINGS, _utf8(text, who))
        metadata = wire.data(_PLUGIN_DATA, wire.text(_PLUGIN_NAME, "text"))
        self._add(tag, wire.data(_TENSOR, tensor) + wire.data(_METADATA, metadata), step, wall_time, who)

    def flush(self) -> None:
        """Write everything that was added to the file."""
        with self._lock:
            if not self._file.closed:
                self._flush()

    def close(self) -> None:
        """Write everything and close the file; nothing can be added after it."""
        with self._lock:
            try:
                self._file.close()
            except OSError as error:
                raise self._failure(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EventWriter({str(self.folder)!r}{', closed' if self._file.closed else ''})"

    def _add(self, tag: str, content: bytes, step: int, wall_time: float | None, who: str) -> None:
        if not isinstance(tag, str) or not tag:
            raise EshkolError(f"{who}: a name, which is a string, is wanted as the tag, not {tag!r}")
        value = wire.data(_VALUE, wire.data(_TAG, _utf8(tag, who)) + content)
        when = time.time() if wall_time is None else float(wall_time)
        self._write(_event(when, _checked_step(step, who)) + wire.data(_SUMMARY, value), who)

    def _write(self, message: bytes, who: str = "EventWriter") -> None:
        record = framed(message)
        with self._lock:
            if self._file.closed:
                raise EshkolError(f"{who}: the writer of {self.path} is closed", hint="make another EventWriter")
            try:
                self._file.write(record)
            except OSError as error:
                raise self._failure(error) from None
            if time.monotonic() - self._flushed >= self._flush_seconds:
                self._flush()

    def _flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from None
        self._flushed = time.monotonic()

    def _failure(self, error: OSError) -> EshkolError:
        return EshkolError(f"EventWriter: cannot write {self.path}: {reason(error)}")


def _event(wall_time: float, step: int) -> bytes:
    return wire.float64(_WALL_TIME, wall_time) + wire.integer(_STEP, step)


def _checked_step(step: Any, who: str) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise EshkolError(f"{who}: an integer is wanted as the step, not {step!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise EshkolError(f"{who}: the step {number} does not fit 64 bits")
    return number


def _utf8(text: str, who: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EshkolError(f"{who}: {text!r} cannot be written as UTF-8: it has half a surrogate pair") from None


def _array(values: Any, who: str) -> np.ndarray:
    """Real numbers as a NumPy array; floats that NumPy itself does not have become float32."""
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise EshkolError(f"{who}: real numbers are wanted, not {array.dtype}: {type(values).__name__}")
    return array


def _number(value: Any, who: str) -> float:
    if type(value) is float:
        return value
    array = _array(value, who)
    if array.size != 1:
        raise EshkolError(
            f"{who}: one number is wanted, not a tensor of shape {list(array.shape)}",
            hint="take its mean, or add_histogram",
        )
    return float(array.reshape(())[()])


# --- histograms -------------------------------------------------------------------------------------


def _bucket_limits() -> np.ndarray:
    """The limits of TensorFlow's histograms: 0, and ±1e-12 times powers of 1.1 below 1e20, and the largest doubles."""
    positive, limit = [], 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(sys.float_info.max)
    return np.array([*(-limit for limit in reversed(positive)), 0.0, *positive])


_LIMITS_OF_BUCKETS = _bucket_limits()


def histogram(values: np.ndarray) -> Histogram:
    """The histogram of finite numbers; buckets outside of them are left out, but for an empty one below.

    The empty one carries the lower limit of the first that is not: a bucket says its upper limit only.
    """
    limits = _LIMITS_OF_BUCKETS
    places = np.minimum(np.searchsorted(limits, values, side="right"), len(limits) - 1)
    first, last = int(places.min()), int(places.max())
    counts = np.bincount(places - first, minlength=last - first + 1)
    if first > 0:
        first, counts = first - 1, np.concatenate([[0], counts])
    with np.errstate(over="ignore"):
        return Histogram(
            float(values.min()),
            float(values.max()),
            float(values.size),
            float(values.sum()),
            float((values * values).sum()),
            limits[first : last + 1].tolist(),
            counts.astype(np.float64).tolist(),
        )


def _encoded_histogram(found: Histogram) -> bytes:
    numbers = (found.minimum, found.maximum, found.count, found.sum, found.sum_of_squares)
    fields = (_MIN, _MAX, _COUNT, _SUM, _SUM_OF_SQUARES)
    head = b"".join(wire.float64(place, number) for place, number in zip(fields, numbers, strict=True))
    return head + wire.float64s(_LIMITS, found.limits) + wire.float64s(_COUNTS, found.counts)


# --- pictures ---------------------------------------------------------------------------------------

_LAYOUTS = {"HW": 2, "HWC": 3, "CHW": 3}


def _samples(array: np.ndarray, layout: str | None, tag: str, who: str) -> np.ndarray:
    """A picture as height × width × channels bytes."""
    chosen = _guessed_layout(array.shape, tag, who) if layout is None else layout
    if chosen not in _LAYOUTS:
        raise EshkolError(f"{who}: there is no layout {layout!r}", hint="HW, HWC and CHW are known")
    if array.ndim != _LAYOUTS[chosen]:
        raise EshkolError(f"{who}: '{tag}' has shape {list(array.shape)}, which is not {chosen}")
    if chosen == "HW":
        array = array[:, :, None]
    elif chosen == "CHW":
        array = array.transpose(1, 2, 0)
    if not 1 <= array.shape[2] <= 4 or 0 in array.shape:
        raise EshkolError(
            f"{who}: '{tag}' is a picture of {array.shape[0]} × {array.shape[1]} with {array.shape[2]} channels",
            hint="a picture has at least one pixel, and 1 to 4 channels",
        )
    if array.dtype.kind == "f":
        low, high = float(array.min()), float(array.max())
        if not (low >= 0.0 and high <= 1.0):
            raise EshkolError(
                f"{who}: the floats of a picture are from 0 to 1; those of '{tag}' are from {low:g} to {high:g}",
                hint="divide by 255, or bring them there with (x - x.min()) / (x.max() - x.min())",
            )
        return np.rint(array.astype(np.float64) * 255.0).astype(np.uint8)
    if array.dtype.kind == "b":
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype != np.uint8:
        raise EshkolError(f"{who}: a picture is of uint8, bools or floats from 0 to 1; '{tag}' is of {array.dtype}")
    return np.ascontiguousarray(array)


def _guessed_layout(shape: tuple[int, ...], tag: str, who: str) -> str:
    if len(shape) == 2:
        return "HW"
    if len(shape) == 3:
        fits = [layout for layout in ("HWC", "CHW") if shape[layout.index("C")] in (1, 3, 4)]
        if len(fits) == 1:
            return fits[0]
    raise EshkolError(
        f"{who}: it cannot be told which axis of '{tag}' with shape {list(shape)} is that of its channels",
        hint="give a picture of height × width, height × width × channels or channels × height × width, "
        'and say which with layout="HWC"',
    )


# --- reading ----------------------------------------------------------------------------------------


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a file, or of every event file of a folder, in the order in which they were written.

    Checksums are looked at; a last record that is cut off is left out with a warning, a damaged one is an error.
    """
    return [event for file in _event_files(Path(path)) for event in _read_file(file)]


def read_scalars(path: str | os.PathLike[str]) -> dict[str, list[tuple[int, float]]]:
    """The scalars of a file or a folder by tag: (step, value) pairs, without those that a later run began anew."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in read_events(path):
        if event.restarts:
            found = {tag: [pair for pair in pairs if pair[0] < event.step] for tag, pairs in found.items()}
        for tag, value in event.values.items():
            if isinstance(value, float):
                found.setdefault(tag, []).append((event.step, value))
    return {tag: pairs for tag, pairs in found.items() if pairs}


def _event_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted((entry for entry in path.iterdir() if "tfevents" in entry.name), key=_written)
    if not files:
        raise EshkolError(f"read_events: {path} has no event files", hint="their names begin with events.out.tfevents")
    return files


def _written(path: Path) -> tuple[str, str, int, str]:
    """What event files are sorted by: the second, then host, process and number of the writer."""
    _, _, name = path.name.partition("tfevents.")
    second, _, rest = name.partition(".")
    writer, _, number = rest.rpartition(".")
    return second, writer, int(number) if number.isdecimal() else 0, path.name


def _read_file(path: Path) -> Iterator[Event]:
    for number, record in enumerate(read_records(path, "read_events")):
        try:
            yield _read_event(record)
        except EshkolError as error:
            raise EshkolError(f"read_events: record {number} of {path} is no event: {error.message}") from None


def _read_event(record: bytes) -> Event:
    fields = wire.parse(record)
    values: dict[str, float | Histogram | Image | str | Unknown] = {}
    for summary in fields.get(_SUMMARY, []):
        for value in wire.parse(summary if isinstance(summary, bytes) else b"").get(_VALUE, []):
            if isinstance(value, bytes):
                parts = wire.parse(value)
                values[wire.read_text(parts, _TAG)] = _read_value(parts, value)
    status = wire.read_integer(wire.parse(wire.read_data(fields, _SESSION_LOG)), _STATUS)
    return Event(
        wire.read_float(fields, _WALL_TIME),
        wire.read_integer(fields, _STEP),
        values,
        wire.read_text(fields, _FILE_VERSION),
        status == _START,
    )


def _read_value(parts: wire.Fields, message: bytes) -> float | Histogram | Image | str | Unknown:
    if _SIMPLE_VALUE in parts:
        return wire.read_float(parts, _SIMPLE_VALUE)
    if _HISTOGRAM in parts:
        inside = wire.parse(wire.read_data(parts, _HISTOGRAM))
        low, high, count, total, squares = (
            wire.read_float(inside, place) for place in (_MIN, _MAX, _COUNT, _SUM, _SUM_OF_SQUARES)
        )
        limits, counts = (wire.read_float64s(inside, place) for place in (_LIMITS, _COUNTS))
        return Histogram(low, high, count, total, squares, limits, counts)
    if _IMAGE in parts:
        inside = wire.parse(wire.read_data(parts, _IMAGE))
        height, width, channels = (wire.read_integer(inside, place) for place in (_HEIGHT, _WIDTH, _COLOURSPACE))
        return Image(height, width, channels, wire.read_data(inside, _ENCODED))
    if _TENSOR in parts:
        inside = wire.parse(wire.read_data(parts, _TENSOR))
        if wire.read_integer(inside, _DTYPE) == _DT_STRING and len(inside.get(_STRINGS, [])) == 1:
            return wire.read_text(inside, _STRINGS)
    return Unknown(message)
