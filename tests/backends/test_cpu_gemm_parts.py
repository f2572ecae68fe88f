"""Products whose sums are cut into parts, and those whose tasks pack the blocks of B that they need.

Everything that is computed so is compared with its meaning, as in `test_cpu_gemm`, and no number of threads may change
a bit of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_array_instructions import make
from test_cpu_gemm import AVX512, CPU, FLAGS, FUSED, GEMM, SIZES, agree, inputs_of, run, some_floats

from effort import examples
from eshkol.atlas.operands import Activation
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend, macros
from eshkol.backends.cpu.macros import gemm, gemm_plan, gemm_units
from eshkol.runtime.scheduler import default_scheduler


@contextmanager
def cut_early() -> Iterator[None]:
    """Sums are cut into parts, and tiles are many, in products that are small enough to be tested often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm_plan, "PART_TERMS", 16)
        patch.setattr(gemm_units, "TASK_WORK", 1)
        yield


@some_floats
@FLAGS
@examples(20, 3)
@given(data=st.data(), m=SIZES, n=SIZES, k=st.sampled_from([70, 127, 200, 511, 600, 1030]))
def test_sums_in_parts(ty: Type, transpose_a: bool, transpose_b: bool, data: Any, m: int, n: int, k: int) -> None:
    """Whatever follows the sums, and however operands lie: parts add up to the whole, on every side of a tile."""
    size = {"m": m, "n": n, "k": k, "transpose_a": transpose_a, "transpose_b": transpose_b}
    extras = data.draw(st.sampled_from([{"bias": None}, {"residual": None}, {}]))
    i = data.draw(st.sampled_from([
        make(ROWS["GEMM"], ty, alpha=-0.5, beta=2.0, **size),
        make(ROWS["BatchedGEMM"], ty, batch=6, batches=(2, 3), alpha=0.5, **size),
        make(ROWS["FusedGEMM"], ty, out_ty=ty, activation=Activation.Tanh, **extras, **size),
        make(ROWS["FusedGEMM"], ty, out_ty=ty, activation=Activation.Relu, **extras, **size),
    ]))  # fmt: skip
    with cut_early():
        agree(i, inputs_of(i, 19), k, lanes=data.draw(st.sampled_from([0, 0, 2])))


def test_long_sums_of_few_results_are_cut() -> None:
    """The weights' gradient of a layer, a wide product with a tall one, a few rows by a large matrix."""
    for m, n, k, flags in (
        (64, 128, 4096, {"transpose_a": True}), (32, 32, 100_000, {}), (32, 1024, 4096, {}), (2, 1024, 4096, {}),
    ):  # fmt: skip
        macro = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=m, n=n, k=k, **flags), CPU.target)
        *_, tiles, added = macro.phases
        assert "parts" in tiles.function
        assert tiles.tasks >= 16
        assert (added.function, added.tasks) == ("gemm_f32_f32_parts_added", m)
    whole = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=2000, n=2000, k=4096), CPU.target)
    assert "parts" not in whole.phases[-1].function


@pytest.mark.parametrize(("m", "n", "k"), [(40, 200, 3000), (2, 300, 5000), (130, 130, 2100)])
def test_a_large_b_is_packed_by_who_needs_it(m: int, n: int, k: int) -> None:
    """Where tasks pack block after block in the same memory, there is far less of it than B has."""
    for flags in ({}, {"transpose_b": True}):
        i = make(ROWS["GEMM"], Type.F64, m=m, n=n, k=k, alpha=0.5, **flags)
        with cut_early():
            agree(i, inputs_of(i, 20), k)
    if m == 40 and CPU.target.is_x86:
        macro = macros.lower(i, CPU.target)
        assert not any(phase.function.startswith("pack_b") for phase in macro.phases)


@pytest.mark.parametrize(("m", "n", "k"), [(40, 200, 3000), (300, 70, 4000), (2, 300, 9000)])
def test_neither_workers_nor_cores_change_parts(m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    default_scheduler()
    i = make(ROWS["GEMM"], Type.F32, m=m, n=n, k=k)
    inputs, found = inputs_of(i, 21), []
    for threads in ("1", "5", "1000"):
        monkeypatch.setenv("ESHKOL_THREADS", threads)
        found.append(run(i, inputs, backend=CpuBackend()).tobytes())
    assert len(set(found)) == 1


LARGE = [
    (Type.F32, 97, 200, 129, {}, GEMM), (Type.F32, 84, 65, 200, {"transpose_a": True}, FUSED),
    (Type.F64, 200, 83, 97, {"transpose_b": True}, GEMM), (Type.BF16, 65, 129, 83, {"transpose_a": True}, GEMM),
    (Type.F32, 260, 300, 1100, {"transpose_a": True, "transpose_b": True}, FUSED),
]  # fmt: skip


@pytest.mark.parametrize(("ty", "m", "n", "k", "flags", "row"), LARGE, ids=str)
def test_large_products_with_both_sides_packed(
    ty: Type, m: int, n: int, k: int, flags: dict[str, bool], row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their micro-tiles have 14 rows where there are 32 registers of 512 bits: edges of these, and of tiles."""
    monkeypatch.setattr(gemm_units, "DEEP_WORK", 1)
    more: dict[str, Any] = {"alpha": -0.5, "beta": 2.0}
    if row is FUSED:
        more = {"out_ty": ty, "activation": Activation.Tanh}
    i = make(row, ty, m=m, n=n, k=k, **flags, **more)
    agree(i, inputs_of(i, 22), k)


def test_which_products_have_both_sides_packed() -> None:
    """Large ones, unless too many rows would be computed in vain; small ones read A where it lies."""
    for m, n, k, deep in ((1000, 1000, 1000, 1), (512, 512, 512, 1), (71, 900, 900, 0), (60, 60, 60, 0)):
        macro = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=m, n=n, k=k), AVX512)
        names = [phase.function for phase in macro.phases]
        assert any("deep" in name for name in names) == bool(deep), names
