"""The conversions of F16 that compiled programs carry for machines without instructions for them."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from eshkol.backends.cpu import simd
from eshkol.llvm import builtins
from eshkol.llvm.loading import LoadedObject
from eshkol.llvm.objects import compile_object

LOOP = """
define void @over_{name}(ptr %in, ptr %out, i64 %n) {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr {source}, ptr %in, i64 %k
  %q = getelementptr {result}, ptr %out, i64 %k
  %x = load {source}, ptr %p
  %y = call {result} @{name}({source} %x)
  store {result} %y, ptr %q
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, %n
  br i1 %end, label %done, label %loop
done:
  ret void
}}"""
SIGNATURES = {"extendhfsf2": ("half", "float"), "truncsfhf2": ("float", "half"), "truncdfhf2": ("double", "half")}


@cache
def loaded() -> LoadedObject:
    """The functions under names that LLVM does not know, so that it calls ours and not instructions."""
    text = builtins.HALVES.split("@llvm.compiler.used")[0].replace("@__", "@")
    for name, (source, result) in SIGNATURES.items():
        text += LOOP.format(name=name, source=source, result=result)
    return LoadedObject(compile_object(text, simd.target()), simd.target())


def convert(name: str, values: np.ndarray, result: type) -> np.ndarray:
    out = np.zeros(values.size, result)
    loop = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded().address(f"over_{name}"))
    loop(values.ctypes.data, out.ctypes.data, values.size)
    return out


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    both_nan = np.isnan(found) & np.isnan(wanted)
    bits = f"u{found.dtype.itemsize}"
    assert (both_nan | (found.view(bits) == wanted.view(bits))).all()


HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_half_becomes_the_same_float() -> None:
    with np.errstate(invalid="ignore"):
        assert_same(convert("extendhfsf2", HALVES, np.float32), HALVES.astype(np.float32))


@pytest.mark.parametrize(("name", "source"), [("truncsfhf2", np.float32), ("truncdfhf2", np.float64)])
def test_rounding_at_and_beside_every_tie(name: str, source: type) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        wide = HALVES.astype(np.float64)
        ties = ((wide[:-1] + wide[1:]) / 2).astype(source)
        beside = [np.nextafter(ties, source(side)) for side in (-np.inf, np.inf)]
        limits = np.array([65504, 65519.99, 65520, 2.0**-24, 2.0**-25, 1e-9, 1e30, -0.0], source)
        for values in (HALVES.astype(source), ties, *beside, limits):
            assert_same(convert(name, values, np.float16), values.astype(np.float16))


@given(pattern=st.integers(0, (1 << 64) - 1))
def test_rounding_of_any_number(pattern: int) -> None:
    with np.errstate(all="ignore"):
        double = np.array([pattern], np.uint64).view(np.float64)
        single = np.array([pattern & 0xFFFFFFFF], np.uint32).view(np.float32)
        assert_same(convert("truncdfhf2", double, np.float16), double.astype(np.float16))
        assert_same(convert("truncsfhf2", single, np.float16), single.astype(np.float16))
