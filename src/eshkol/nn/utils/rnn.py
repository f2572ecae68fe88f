"""`ek.nn.utils.rnn`: sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.tensors import api as ek
from eshkol.tensors.sizes import lacking


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences side by side, filled up to the longest; time comes first unless batch_first."""
    longest = max(x.shape[0] for x in sequences)
    padded = []
    for x in sequences:
        missing = longest - x.shape[0]
        widths = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(ek.pad(x, (widths, *((0, 0),) * (x.ndim - 1)), padding_value))
    return ek.stack(padded, axis=0 if batch_first else 1)


def unpad_sequence(padded: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded tensor, each with its own length."""
    rows = padded if batch_first else ek.swapaxes(padded, 0, 1)
    return [rows[k, : int(length)] for k, length in enumerate(lengths)]


def __getattr__(name: str) -> Any:
    packed = ": sequences are padded, not packed; use pad_sequence and a mask" if "pack" in name else ""
    raise AttributeError(
        f"eshkol.nn.utils.rnn has no '{name}'{packed}" if packed else lacking(name, globals(), __name__)
    )
