"""Random bits by blocks: a pass over graphs, for machines of cores.

Comes in: the results of a function. Goes out: the same, where draws of many bits are made by a kernel whose lanes are
blocks of the generator, each of which gives two words. Element by element, the words of a block would be computed once
for each of its two elements of uint32, and beside numbers of 64 bits half of a vector's lanes would be left empty. The
words lie in memory as the numbers of uint32 that they are; those of uint64 are put together where they are read. Few
numbers stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops.dtypes import uint32, uint64
from eshkol.ops.elementwise import bitwise_or, cast, shift_left
from eshkol.ops.joining import along
from eshkol.ops.movement import reshape
from eshkol.ops.random import Bits, random_bits, words_of_block
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Push, Shape, row
from eshkol.ops.shapes import count
from eshkol.schedule.rewrite.walk import New, in_order, walked

MANY = 1024  # numbers for which it matters


class Words(NamedTuple):
    """How many blocks each key gives, and from which range of counters."""

    blocks: int
    range: int


def _infer(a: Words, key: HasAval) -> Aval:
    return Aval((*key.shape[:-1], a.blocks, 2), uint32)


def _reference(a: Words, key: Any) -> Any:
    return random_bits.reference(Bits((a.blocks, 2), uint32, a.range), key)


def _rows(a: Words, key: HasAval) -> Shape:
    return (*key.shape[:-1], a.blocks)


def _code(e: Any, a: Words, lane: Any, write: Any, key: Any) -> None:
    keys = len(key.shape) - 1
    of_key = (key([*(lane[k] for k in range(keys)), 0]), key([*(lane[k] for k in range(keys)), 1]))
    found = words_of_block(e, of_key, lane[keys], a.range, a.blocks)
    for place, word in enumerate(found):
        write([*(lane[k] for k in range(keys + 1)), place], word)


WORDS: Op = row(KernelOp(
    name="random_words", doc="Words of the generator's blocks.", names=("key",), infer=_infer, reference=_reference,
    lower=Push(_rows, _code),
))  # fmt: skip


def draw_by_blocks(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with blocks of random words for draws of many bits."""
    order = in_order(results)
    long = {node for node in order if node.data is None and _is_long(node)}
    if target.blocks or not long:
        return list(results)

    def by_blocks(node: Node, new: New) -> Any:
        return _drawn(new[node.inputs[0]], node.attrs) if node in long else None

    return walked(results, order, by_blocks)


def _is_long(node: Node) -> bool:
    return node.op is random_bits and count(node.attrs.shape) >= MANY


def _drawn(key: Node, a: Bits) -> Any:
    wide, total, batch = a.dtype is uint64, count(a.shape), key.shape[:-1]
    words = make(WORDS, (key,), Words(total if wide else -(-total // 2), a.range))
    if wide:
        high, low = (cast(along(words, words.ndim - 1, place, place + 1), uint64) for place in (0, 1))
        return reshape(bitwise_or(shift_left(high, 32), low), (*batch, *a.shape))
    flat = reshape(words, (*batch, words.shape[-2] * 2))
    whole = flat if total % 2 == 0 else along(flat, flat.ndim - 1, 0, total)
    return reshape(whole, (*batch, *a.shape))
