"""Array instructions as native code against their meaning: rows, reductions, maps, Fourier transforms, sparse products.

Every instruction is run as all lanes carry it out together and as each lane does on memory of its own.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bit_patterns
from test_array_instructions import EPSILON, FLOAT_TYPES, make, make_inputs

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Instruction, Kind, element_type
from eshkol.atlas.operands import BinaryMapOperation, MapOperation, ReduceOperation, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type, encode, to_array
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.base import Backend
from eshkol.backends.cpu import CpuBackend, macros
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import EshkolError, ExecutionFailed

pytest.importorskip("llvmlite")
CPU, REFERENCE = CpuBackend(), ReferenceBackend()
GLOBAL = Register(255)
LANES = 3  # of a launch in which each has memory of its own
NARROW = [t for t in Type if not t.is_wide]
floats = pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
Arrays = dict[str, np.ndarray]


def run(backend: Backend, i: Instruction, inputs: Arrays, *, own: bool, in_place: str | None = None) -> Arrays:
    """What the buffers hold afterwards; `own`: each lane has a copy of every operand, `in_place`: the output is it."""
    b, params = ProgramBuilder(), {}
    copies, renamed = LANES if own else 1, {}
    for f, _ in memory_operands(i):
        ty, (start, size) = element_type(i, f), extent(i, f)
        if in_place is not None and f.kind is Kind.WRITE:
            renamed[f.name] = in_place
            continue
        params[f.name] = backend.allocate_typed(ty, copies * (start + size) // ty.size_bytes)
        b.buffer(f.name, ty)
        if f.kind is not Kind.WRITE and size:
            for copy in range(copies):
                backend.copy_to(params[f.name].handle, encode(inputs[f.name], ty), copy * (start + size) + start)
    places = {}
    for f, address in memory_operands(i):
        start, size = extent(i, f)
        place = type(address)(renamed.get(f.name, f.name))
        places[f.name] = place.at(GLOBAL, start + size) if own and start + size else place
    b.emit(i.with_operands(lambda f, v: places.get(f.name, v)))
    launch = LaunchConfig.linear(copies)
    if i.writes():
        b.stg(i.ty, b.buffer("dst", i.ty).at(GLOBAL), i.dst)
        params["dst"] = backend.allocate_typed(i.ty, copies)
    program = b.build()
    if backend is CPU:
        assert macros.lower(program.instructions[0], CPU.target) is not None
    backend.execute(program, launch, params)
    return {name: buffer.read() for name, buffer in params.items()}


def check(i: Instruction, inputs: Arrays, output: str, terms: int, *, in_place: str | None = None) -> None:
    """Together, alone and in place: the reference's meaning within the bound of the compute type."""
    ty = element_type(i, next(f for f in i.op.fields if f.name == output))
    compute = EPSILON[Type.F32 if ty.is_half else ty] if ty.is_float else 0.0
    for own, place in itertools.product((False, True), (None, in_place) if in_place else (None,)):
        found, wanted = (
            run(backend, i, inputs, own=own, in_place=place)[place or output] for backend in (CPU, REFERENCE)
        )
        if ty.is_integer:
            assert list(found) == list(wanted)
            continue
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        sure = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~sure], wanted[~sure])
        found, wanted = found[sure], wanted[sure]
        scale = np.abs(wanted) + np.max(np.abs(wanted), initial=1.0)
        bound = compute * 4 * (terms + 4) * scale + EPSILON[ty] * np.abs(wanted)
        assert (np.abs(found - wanted) <= bound).all(), (i.op.name, own, place, found, wanted)


SIZES = st.one_of(st.sampled_from([1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 64, 127, 128, 129, 257]), st.integers(1, 600))
SPECIAL = st.sampled_from([None, None, math.nan, math.inf, -math.inf, 60000.0])


def salted(inputs: Arrays, name: str, value: float | None, place: int, ty: Type) -> Arrays:
    """The inputs with one element of an array replaced."""
    if value is not None:
        changed = inputs[name].astype(np.float64)
        changed[place % changed.size] = value
        inputs[name] = to_array(changed, ty)
    return inputs


# --- rows -----------------------------------------------------------------------------------------


@floats
@settings(max_examples=12)
@given(n=SIZES, special=SPECIAL, place=st.integers(0, 999))
def test_softmax(ty: Type, n: int, special: float | None, place: int) -> None:
    i = make(ROWS["Softmax"], ty, n=n)
    check(i, salted(make_inputs(i, n), "input", special, place, ty), "output", 10, in_place="input")
