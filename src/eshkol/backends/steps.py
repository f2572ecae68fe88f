"""Steps of sequences (`atlas/sequence.py`) as the native runtime reads them (`runtime/native/sequence.h`)."""

from __future__ import annotations

from eshkol.atlas import sequence as atlas
from eshkol.atlas.sequence import SequenceStep
from eshkol.runtime import sequence as native


def step_words(step: SequenceStep) -> native.StepWords:
    """A step as it is read there. Calls, and what is done together, are for each machine to say."""
    match step:
        case atlas.Copy((target, into), (source, start), size):
            return native.COPY, target, source, size, into, start
        case atlas.Swap(one, other):
            return native.SWAP, one, other, 0, 0, 0
        case atlas.Point(target, source, offset):
            return native.POINT, target, source, offset, 0, 0
        case atlas.BufferView(target, source, offset, counter, stride):
            return native.VIEW, target, source, offset, counter, stride
        case atlas.Set(counter, value):
            return native.SET, counter, value, 0, 0, 0
        case atlas.Next(counter, by, end, target):
            return native.NEXT, counter, by, end, target, 0
        case atlas.Unless(place, offset, target):
            return native.UNLESS, place, offset, target, 0, 0
        case atlas.Jump(target):
            return native.JUMP, target, 0, 0, 0, 0
    raise AssertionError(f"{step} is no step of a sequence")
