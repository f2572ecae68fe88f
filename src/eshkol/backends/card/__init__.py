"""The reference machine under the description of a graphics card as it is: the sizes and vectors of everyday cards.

What CUDA's backend says of a device (`cuda/devices.py`) is said of the interpreter, so that kernels are those that the
device would be given for the same shapes. `blocks` beside it has small sizes, so that small programs go all the ways
that large ones do; here they go the ways that they go on a card. `card:1` has groups of warps, too, which multiply
matrices together: whole array instructions, which the interpreter computes as they are defined.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import ClassVar

from eshkol.atlas.machines import MachineDescription, as_wanted
from eshkol.backends.base import Backend
from eshkol.backends.cuda.devices import MATRIX_CAPABILITY, Device
from eshkol.backends.cuda.warpgroups.instructions import CAPABILITY
from eshkol.backends.reference.backend import ALLOCATION_LIMIT, ReferenceBackend
from eshkol.errors import BackendUnavailable

SHARED, SHARED_OF_GROUPS = 99 << 10, 227 << 10  # bytes that a block can ask for


@cache
def description(ordinal: int) -> MachineDescription:
    """What CUDA would say of a card, within what the interpreter has memory for."""
    card = Device(
        ordinal, "card", CAPABILITY if ordinal else MATRIX_CAPABILITY, ALLOCATION_LIMIT, 132,
        SHARED_OF_GROUPS if ordinal else SHARED, 50 << 20, cooperative=True, warpgroups=bool(ordinal),
    )  # fmt: skip
    return replace(card.description(), name=f"card:{ordinal}" if ordinal else "card")


class CardBackend(ReferenceBackend):
    """The lockstep interpreter, for the programs of a card."""

    name: ClassVar[str] = "card"
    stands_in: ClassVar[bool] = True
    ordinal: ClassVar[int] = 0

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        if number > 1:
            raise BackendUnavailable(f"there is no card:{number}", hint="there are card and card:1")
        return CardOfGroups if number else CardBackend

    @property
    def description(self) -> MachineDescription:
        return as_wanted(description(self.ordinal))


class CardOfGroups(CardBackend):
    """The same with groups of warps."""

    name: ClassVar[str] = "card:1"
    ordinal: ClassVar[int] = 1
