"""The instruction table: one row per instruction, written down once, by chapter.

`ROWS` maps every mnemonic to its `Opcode`. Importing this package fills it.
"""

from eshkol.atlas.isa import Group
from eshkol.atlas.table import (
    arrays,
    attention_gradients,
    attention_pages,
    attentions,
    base,
    batched,
    convolutions,
    elementary,
    float8,
    fused,
    linear,
    networks,
    resonance,
    simple,
)
from eshkol.atlas.table.rows import ROWS

_ORDER = {group: k for k, group in enumerate(Group)}
_sorted = sorted(ROWS.values(), key=lambda opcode: _ORDER[opcode.group])
ROWS.clear()
ROWS.update({opcode.name: opcode for opcode in _sorted})

BY_FOLDED_NAME = {name.upper(): opcode for name, opcode in ROWS.items()}

__all__ = [
    "BY_FOLDED_NAME", "ROWS", "arrays", "attention_gradients", "attention_pages", "attentions", "base", "batched",
    "convolutions", "elementary", "float8", "fused", "linear", "networks", "resonance", "simple",
]  # fmt: skip
