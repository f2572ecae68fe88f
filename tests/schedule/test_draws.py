"""Random bits by blocks: bit for bit what a key gives, for any count of numbers, in batches and in loops."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.graph.node import placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.random import DRAWS, Bits, random_bits
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.steps import Launch, walk
from eshkol.schedule.rewrite.draws import MANY

KEY = np.array([0x12345678, 0x9ABCDEF0], np.uint32)


def reference(key: np.ndarray, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return random_bits.reference(Bits(shape, dtypes.of(dtype), DRAWS), key)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("shape", [(MANY - 1,), (MANY,), (MANY + 1,), (33, 77), (3, 700001)])
def test_bits_are_the_references(shape, dtype):
    found = ek.random_bits(ek.tensor(KEY), shape, dtype).numpy()
    np.testing.assert_array_equal(found, reference(KEY, shape, dtype))
    mixed = ek.jit(lambda key: (ek.random_bits(key, shape, dtype) >> 3) ^ 5)(ek.tensor(KEY)).numpy()
    np.testing.assert_array_equal(mixed, (reference(KEY, shape, dtype) >> 3) ^ 5)


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("count", [MANY, MANY + 1])
def test_bits_of_many_keys_and_in_loops(count, dtype):
    keys = reference(KEY, (3, 2), "uint32")
    batched = ek.jit(ek.vmap(lambda key: ek.random_bits(key, (count,), dtype)))(ek.tensor(keys)).numpy()
    walked = ek.jit(lambda keys: ek.scan(lambda c, key: (c, ek.random_bits(key, count, dtype)), 0, keys)[1])
    looped = walked(ek.tensor(keys)).numpy()
    for key, one, other in zip(keys, batched, looped, strict=True):
        np.testing.assert_array_equal(one, reference(key, (count,), dtype))
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize(("target", "count", "blocks"), [
    (CORES, MANY, 1), (CORES, MANY - 1, 0), (BLOCKS, MANY, 0),
])  # fmt: skip
def test_only_many_numbers_on_cores_are_drawn_by_blocks(target, count, blocks):
    key = placeholder(Aval((2,), dtypes.uint32), None)
    plan = compiled([TABLE["uniform"](key, (count,))], [key], target)
    named = [step.node.op.name for step in walk(plan.steps) if isinstance(step, Launch)]
    assert named == [("random_bits", "random_words")[blocks], "mul"]
