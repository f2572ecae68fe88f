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
    "atlas/test_array_instructions": 4,
    "atlas/test_elementary": 5,
    "atlas/test_instructions": 5,
    "atlas/test_jsonform": 3,
    "atlas/test_operands": 2,
    "backends/test_cpu": 2,
    "backends/test_cpu_attention": 3,
    "backends/test_cpu_conformance": 5,
    "backends/test_cpu_conv": 2,
    "backends/test_cpu_conv_ways": 2,
    "backends/test_cpu_gemm": 5,
    "backends/test_cpu_linear": 2,
    "backends/test_cpu_macros": 5,
    "backends/test_cpu_order": 2,
    "backends/test_cuda_attention": 2,
    "backends/test_cuda_ptx": 2,
    "backends/test_cuda_together": 2,
    "backends/test_cuda_warpgroups": 3,
    "backends/test_gemm_ladder": 2,
    "bindings/test_seed_programs": 2,
    "calculus/test_code_sizes": 2,
    "calculus/test_every_primitive": 5,
    "lang/test_scheme_files": 2,
    "lang/test_special": 2,
    "lang/test_start": 2,
    "lang/test_tiers": 2,
    "ops/test_devices": 4,
    "ops/test_empty_axes": 3,
    "ops/test_functions": 2,
    "ops/test_misfits": 2,
    "ops/test_random": 2,
    "ops/test_special_values": 3,
    "ops/test_table": 2,
    "ops/test_vmap": 3,
    "parallel/test_data": 2,
    "parallel/test_pipeline": 2,
    "schedule/test_attention_fragments": 2,
    "schedule/test_block_fourier": 3,
    "schedule/test_block_products": 3,
    "schedule/test_block_scans": 3,
    "schedule/test_block_sort": 2,
    "schedule/test_blocks": 3,
    "schedule/test_cache_keys": 2,
    "schedule/test_draws": 2,
    "schedule/test_eliminations": 2,
    "schedule/test_matrix_products": 2,
    "schedule/test_matrix_windows": 2,
    "schedule/test_pairs": 2,
    "schedule/test_plan_sizes": 6,
    "schedule/test_rotations": 2,
    "schedule/test_rows": 5,
    "tensors/test_dynamic": 3,
    "tensors/test_long_programs": 2,
    "test_learning_examples": 3,
    "web/test_wasm_export": 2,
}


def _table(item: pytest.Item) -> str:
    """The file of a test, as `SAMPLED` calls it."""
    return f"{item.path.parent.name}/{item.path.stem}".removeprefix("tests/")


def beyond_the_sample(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests of sampled tables that `make test` leaves out: by their names, so that they are the same each time."""
    tables = defaultdict(list)
    for item in items:
        if _table(item) in SAMPLED and hasattr(item, "callspec"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for table in tables.values():
        table.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        yield from table[-(-len(table) // SAMPLED[_table(table[0])]) :]
