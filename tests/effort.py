"""How hard tests look: `make test` takes a part of the examples and of large tables, `make test-all` all of them.

A part is enough to find what a change breaks; what is rare is found by the whole. Tests that cost little take all of
their examples always, and do not ask here.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest
from hypothesis import settings

FULL = os.environ.get("ESHKOL_TEST_EFFORT") == "full"


T = TypeVar("T")


def amount(full: T, quick: T) -> T:
    """How many inputs to try, or which."""
    return full if FULL else quick


def examples(full: int, quick: int) -> settings:
    """The setting for a property test: so many examples in all, so many in `make test`."""
    return settings(max_examples=amount(full, quick))


# Files whose tests are tables with many rows that cost much together, most of them instructions times types or sizes:
# of each test with parameters, `make test` takes one in so many.
SAMPLED = {
    "test_array_instructions": 3,
    "test_block_fourier": 3,
    "test_block_products": 3,
    "test_block_scans": 3,
    "test_blocks": 3,
    "test_cpu": 2,
    "test_cpu_attention": 3,
    "test_cpu_conformance": 3,
    "test_cpu_conv": 2,
    "test_cpu_conv_ways": 2,
    "test_cpu_gemm": 3,
    "test_cpu_linear": 2,
    "test_cpu_macros": 3,
    "test_cuda_warpgroups": 3,
    "test_devices": 2,
    "test_dynamic": 2,
    "test_elementary": 3,
    "test_empty_axes": 2,
    "test_every_primitive": 3,
    "test_instructions": 3,
    "test_matrix_products": 2,
    "test_pairs": 2,
    "test_plan_sizes": 2,
    "test_rotations": 2,
    "test_rows": 3,
    "test_special_values": 2,
    "test_vmap": 2,
}


def beyond_the_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests of sampled tables that `make test` leaves out: by their names, so that they are the same each time."""
    tables = defaultdict(list)
    for item in items:
        if item.path.stem in SAMPLED and hasattr(item, "callspec"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for table in tables.values():
        table.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        yield from table[-(-len(table) // SAMPLED[table[0].path.stem]) :]
