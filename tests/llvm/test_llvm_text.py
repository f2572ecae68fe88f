"""LLVM text: constants, names and address spaces as LLVM itself reads them."""

from __future__ import annotations

import ctypes
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eshkol.errors import BackendError
from eshkol.llvm import passes
from eshkol.llvm.loading import LoadedObject
from eshkol.llvm.objects import compile_object, optimized_ir
from eshkol.llvm.passes import DERIVATIVE, KERNEL, PROMPT_UNIT, QUICK_KERNEL, SINGLE_UNIT, UNIT, for_kernels
from eshkol.llvm.targets import host
from eshkol.llvm.text import FunctionText, Phi, double, double_value, pointer, quoted, splat, vector

pytest.importorskip("llvmlite")

PIPELINES = (KERNEL, QUICK_KERNEL, UNIT, PROMPT_UNIT, SINGLE_UNIT, DERIVATIVE)


def sum_below() -> str:
    """i64 total(i64 n): 0 + 1 + … + (n - 1), written with what every writer has."""
    f = FunctionText()
    total = f.slot("i64", "total")
    head, body, end = f.new_block("head"), f.new_block("body"), f.new_block("end")
    f.store("i64", 0, total)
    f.br(head)
    f.place(head)
    index, following = f.name("i"), f.name("n")
    f.phi(index, "i64", ("0", "entry"), (following, body))
    f.br_if(f.op(f"icmp ult i64 {index}, %n"), body, end)
    f.place(body)
    f.store("i64", f.op(f"add i64 {f.load('i64', total)}, {index}"), total)
    f.do(f"{following} = add i64 {index}, 1")
    f.br(head)
    f.place(end)
    f.do(f"ret i64 {f.load('i64', total)}")
    return f.defined("i64 @total(i64 %n) nounwind")


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda p: p.name)
def test_every_pipeline_makes_code_that_runs(pipeline):
    loaded = LoadedObject(compile_object(sum_below(), host(), pipeline), host())
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("total"))
    assert [function(n) for n in (0, 1, 10, 1000)] == [0, 0, 45, 499500]


def test_names_are_fresh_and_blocks_know_where_they_are():
    f = FunctionText()
    assert f.here == "entry"
    names = [f.name(), f.name("x"), f.op("add i64 1, 2"), f.new_block(), f.number()]
    assert names == ["%t0", "%x1", "%t2", "b3", "4"]
    f.place("there")
    assert f.here == "there"
    assert f.lines == ["  %t2 = add i64 1, 2", "there:"]


def test_pointers_name_their_address_space():
    assert [pointer(), pointer(3)] == ["ptr", "ptr addrspace(3)"]
    f = FunctionText()
    place = f.offset("%p", 4, space=1)
    f.store("i32", f.load("i32", place, ", align 4", space=1), "%q", space=3)
    f.do("ret void")
    text = f.defined(f"void @copy({pointer(1)} %p, {pointer(3)} %q)")
    assert "getelementptr i8, ptr addrspace(1) %p, i64 4" in text
    found = optimized_ir(text, host(), UNIT)
    assert "ptr addrspace(1)" in found
    assert "ptr addrspace(3)" in found


def test_phis_of_one_kind_of_text():
    assert Phi("%x", "i64", [("1", "a"), ("%y", "b")]).text() == "  %x = phi i64 [ 1, %a ], [ %y, %b ]"


@given(st.floats(allow_nan=False))
def test_constants_keep_every_bit(value):
    text = double(value)
    assert double_value(text) == value
    assert math.copysign(1, double_value(text)) == math.copysign(1, value)


def test_vectors_of_one_are_no_vectors():
    assert [vector("i8", 1), vector("i8", 4)] == ["i8", "<4 x i8>"]
    assert [splat("i8", 7, 1), splat("i8", 7, 4)] == ["7", "splat (i8 7)"]


@given(st.text(max_size=20))
def test_any_text_can_be_a_name(name):
    optimized_ir(f'define void @"x{quoted(name.replace(chr(0), ""))}"() {{\n  ret void\n}}', host(), SINGLE_UNIT)


def test_text_that_llvm_refuses_is_told_in_one_line():
    for text in ("define void @f( {", "define i64 @f() {\n  ret i32 0\n}", "define void @f() {\n  br label %f\nf:\n}"):
        with pytest.raises(BackendError, match="native code could not be generated") as failed:
            compile_object(text, host(), UNIT)
        assert "\n" not in failed.value.message


def test_kernels_are_compiled_as_written_on_request(monkeypatch):
    monkeypatch.delenv("ESHKOL_OPTIMIZE", raising=False)
    assert for_kernels() is KERNEL
    monkeypatch.setenv("ESHKOL_OPTIMIZE", "0")
    assert for_kernels() is QUICK_KERNEL


def test_passes_run_where_there_is_something_for_them(monkeypatch):
    """As written, a module goes through LLVM's passes only for functions that it must put into their callers."""
    callee = "define internal i64 @g(i64 %x){} {{\n  ret i64 %x\n}}\n"
    caller = "define i64 @f(i64 %x) {\n  %y = call i64 @g(i64 %x)\n  ret i64 %y\n}\n"
    for pipeline in (SINGLE_UNIT, QUICK_KERNEL):
        assert "call" in optimized_ir(callee.format("") + caller, host(), pipeline)
        assert "call" not in optimized_ir(callee.format(" alwaysinline") + caller, host(), pipeline)
    monkeypatch.setattr(passes, "_kept", None)  # what makes the passes
    compile_object(callee.format("") + caller, host(), SINGLE_UNIT)
    with pytest.raises(TypeError):
        compile_object(callee.format(" alwaysinline") + caller, host(), SINGLE_UNIT)
