"""Attention natively on the CPU against the reference's meaning: shapes at every edge, infinities, threads, lanes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_array_instructions import EPSILON, FLOAT_TYPES, make

from effort import examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.base import Backend
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.cpu.macros import lower
from eshkol.backends.reference import ReferenceBackend

pytest.importorskip("llvmlite")
CPU = CpuBackend()
SIZES = {"batch": 1, "heads": 1}


def attend(backend: Backend, ty: Type, arrays: dict[str, np.ndarray], causal: bool, name: str) -> np.ndarray:
    """The output for query, key and value of batch × heads × seq_len × head_dim, through a collective instruction."""
    b, shape = ProgramBuilder(), arrays["query"].shape
    places = {p: b.buffer(p, ty).address for p in ("output", *arrays)}
    batch, heads, seq_len, head_dim = shape
    b.emit(ROWS[name](ty=ty, **places, batch=batch, heads=heads, seq_len=seq_len, head_dim=head_dim, causal=causal))
    params = {p: backend.array(to_array(a.reshape(-1), ty), ty) for p, a in arrays.items()}
    params["output"] = backend.allocate_typed(ty, math.prod(shape))
    backend.execute(b.build(), LaunchConfig(), params)
    return params["output"].read().astype(np.float64).reshape(shape)


def inputs(ty: Type, shape: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = {name: rng.standard_normal(shape) * scale for name in ("query", "key", "value")}
    return {name: np.asarray(to_array(a.reshape(-1), ty), np.float64).reshape(shape) for name, a in values.items()}


def assert_close(found: np.ndarray, wanted: np.ndarray, ty: Type, terms: int) -> None:
    """Within the bound of the compute type and one rounding to the result; the same places NaN and infinite."""
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, wanted))
    compute = EPSILON[Type.F32 if ty.is_half else ty]
    scale = np.abs(wanted[finite]) + np.max(np.abs(wanted[finite]), initial=1.0)
    weights = 2.0**-16 * (ty is Type.BF16)  # of two numbers of 16 bits each where tiles are multiplied
    bound = (compute * 4 * (terms + 4) + weights) * scale + EPSILON[ty] * np.abs(wanted[finite])
    assert (np.abs(found[finite] - wanted[finite]) <= bound).all()


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@examples(25, 8)
@given(
    batch=st.integers(0, 2), heads=st.integers(1, 2), seq_len=st.integers(1, 140), head_dim=st.integers(1, 40),
    causal=st.booleans(), name=st.sampled_from(["Attention", "FlashAttention"]),
)  # fmt: skip
def test_any_shape(ty: Type, batch: int, heads: int, seq_len: int, head_dim: int, causal: bool, name: str) -> None:
    arrays = inputs(ty, (batch, heads, seq_len, head_dim))
    wanted, found = (attend(backend, ty, arrays, causal, name) for backend in (ReferenceBackend(), CPU))
    assert_close(found, wanted, ty, seq_len)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_lie_beside_each_other(ty: Type, causal: bool) -> None:
    """batch × seq_len × heads × head_dim: the same numbers, natively, by reference and expanded."""
    expanded = ReferenceBackend(expanded=True)
    for name, backend, batch, seq_len, heads, head_dim in (
        ("Attention", CPU, 2, 70, 3, 5), ("FlashAttention", CPU, 1, 9, 2, 20),
        ("Attention", ReferenceBackend(), 2, 9, 3, 5),
        ("Attention", expanded, 1, 2, 2, 1), ("FlashAttention", expanded, 1, 2, 2, 1),
    ):  # fmt: skip
        arrays = inputs(ty, (batch, heads, seq_len, head_dim))
        wanted = attend(CPU, ty, arrays, causal, "Attention")
        b = ProgramBuilder()
        places = {p: b.buffer(p, ty).address for p in ("output", *arrays)}
        b.emit(ROWS[name](ty=ty, **places, batch=batch, heads=heads, seq_len=seq_len, head_dim=head_dim,
                          causal=causal, interleaved=True))  # fmt: skip
        params = {p: backend.array(to_array(a.swapaxes(1, 2).reshape(-1), ty), ty) for p, a in arrays.items()}
        params["output"] = backend.allocate_typed(ty, wanted.size)
        backend.execute(b.build(), LaunchConfig(), params)
        found = params["output"].read().astype(np.float64).reshape(batch, seq_len, heads, head_dim)
        assert_close(found.swapaxes(1, 2), wanted, ty, seq_len)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("seq_len", "head_dim"), [(300, 64), (129, 256), (64, 3), (97, 41), (1, 1)])
def test_blocks_and_wide_heads(ty: Type, causal: bool, seq_len: int, head_dim: int) -> None:
    arrays = inputs(ty, (1, 2, seq_len, head_dim), scale=2.0)
    wanted, found = (attend(backend, ty, arrays, causal, "Attention") for backend in (ReferenceBackend(), CPU))
    assert_close(found, wanted, ty, seq_len)


def test_what_is_native() -> None:
    def is_native(head_dim: int) -> bool:
        return lower(make(ROWS["Attention"], Type.F32, **SIZES, seq_len=4, head_dim=head_dim), CPU.target) is not None

    assert is_native(1)
    assert is_native(256)
    assert not is_native(257)  # expanded


@pytest.mark.parametrize("ty", [Type.F32, Type.F64, Type.BF16], ids=str)
@examples(30, 12)
@given(data=st.data(), causal=st.booleans())
def test_infinities_and_nan(ty: Type, data: Any, causal: bool) -> None:
    """Anywhere among keys and values: no weight for a score of -inf, NaN where the reference has it."""
    shape = (1, 1, data.draw(st.sampled_from([3, 70, 135])), 1)
    arrays = inputs(ty, shape)
    arrays["query"] = np.abs(arrays["query"]) + 0.1
    special = st.sampled_from([math.inf, -math.inf, math.nan])
    for name in data.draw(st.sampled_from([("key",), ("value",), ("key", "value")])):
        for place in data.draw(st.lists(st.integers(0, shape[2] - 1), min_size=1, max_size=3)):
            arrays[name][0, 0, place, 0] = data.draw(special)
    if data.draw(st.booleans()):  # the first block of keys altogether
        arrays["key"][0, 0, :64] = -math.inf
    with np.errstate(all="ignore"):
        wanted, found = (attend(backend, ty, arrays, causal, "Attention") for backend in (ReferenceBackend(), CPU))
    assert_close(found, wanted, ty, shape[2])


@pytest.mark.parametrize("causal", [False, True])
def test_large_scores(causal: bool) -> None:
    """Scores in the thousands: all but the greatest weigh nothing."""
    arrays = inputs(Type.F64, (1, 1, 150, 8), scale=60.0)
    wanted, found = (attend(backend, Type.F64, arrays, causal, "Attention") for backend in (ReferenceBackend(), CPU))
    assert_close(found, wanted, Type.F64, 10_000)


def test_lanes_give_the_same_bits_as_all_cores() -> None:
    """Each head by a lane of its own, or all by the host."""
    shape, ty = (1, 3, 200, 24), Type.F32
    arrays = inputs(ty, shape)
    together = attend(CPU, ty, arrays, True, "Attention")
    b, stride = ProgramBuilder(), 4 * shape[2] * shape[3]
    places = {p: b.buffer(p, ty).address.at(Register(255), stride) for p in ("output", *arrays)}
    b.emit(ROWS["Attention"](ty=ty, **places, **SIZES, seq_len=shape[2], head_dim=shape[3], causal=True))
    params = {p: CPU.array(to_array(a.reshape(-1), ty), ty) for p, a in arrays.items()}
    params["output"] = CPU.allocate_typed(ty, math.prod(shape))
    CPU.execute(b.build(), LaunchConfig.linear(shape[1]), params)
    np.testing.assert_array_equal(params["output"].read().reshape(shape), together)
