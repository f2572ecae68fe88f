"""What the keys of caches hold: each test fails where that part of a key is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.calculus import native
from eshkol.llvm.builtins import DIVISION_FUNCTION
from eshkol.llvm.objects import cached_object
from eshkol.llvm.passes import KERNEL, UNIT
from eshkol.llvm.targets import OPTIONS, host
from eshkol.support.keys import files_key


def test_jit_tells_zeros_of_different_signs_apart() -> None:
    x = ek.tensor([1.0])
    divided = ek.jit(lambda x, s: x / s)
    signs = [float(divided(x, s).numpy()[0]) for s in (0.0, -0.0, 0.0)]
    assert signs == [math.inf, -math.inf, math.inf]
    signed = ek.jit(lambda x, s: x * float(np.copysign(1.0, s.real)))
    assert [float(signed(x, s).numpy()[0]) for s in (0j, complex(-0.0, 0.0))] == [1.0, -1.0]


def test_jit_tells_kinds_of_numbers_apart() -> None:
    x = ek.tensor([1])
    kinds = ek.jit(lambda x, s: x + s)
    assert [kinds(x, s).dtype for s in (1, 1.0, True)] == [ek.int64, ek.float32, ek.int64]
    assert [kinds(x, s).dtype for s in (True, 1.0, 1)] == [ek.int64, ek.float32, ek.int64]


CALLS = [
    ("exact and inexact", "(lambda (t n) (if (tensor? n) (* t n) (if (exact? n) (+ t 10) t)))",
     ["(tensor 1.0) 2", "(tensor 1.0) 3", "(tensor 1.0) 1/2"]),
    ("symbols, strings, characters, truth",
     """(lambda (t s) (cond ((symbol? s) (* t 2)) ((string? s) (* t 3)) ((char? s) (* t 4)) ((eq? s #t) (* t 5))
                           (else t)))""",
     ["(tensor 1.0) 'a", '(tensor 1.0) "a"', "(tensor 1.0) #\\a", "(tensor 1.0) #t", "(tensor 1.0) 1"]),
    ("structures",
     "(lambda (s) (cond ((vector? s) (* 2 (vector-ref s 0))) ((null? (cdr s)) (* 4 (car s))) (else (* 3 (car s)))))",
     ["(vector (tensor 1.0))", "(list (tensor 1.0))", "(list (tensor 1.0) (tensor 2.0))", "(list (tensor 1.0) '())"]),
    ("procedures of the same code", "(lambda (f t) (f t))",
     ["(times 2.0) (tensor 1.0)", "(times 3.0) (tensor 1.0)", "sin (tensor 1.0)"]),
    ("one tensor twice", "(lambda (a b) (+ (* 2 a) b))",
     ["one one", "one (tensor 5.0)", "(tensor 5.0) one", "(tensor 5.0) (tensor 5.0)"]),
    ("shapes and dtypes", "(lambda (a) (/ (tensor-sum a) (tensor-size a)))",
     ["(tensor 1 2)", "(tensor 1.0 2.0)", "(tensor '(1 2) '(3 4))", "(tensor #t #f)"]),
]  # fmt: skip


@pytest.mark.parametrize(("procedure", "calls"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_jit_compile_gives_what_the_procedure_gives(procedure: str, calls: list[str]) -> None:
    ek.eval("(import (eshkol)) (define one (tensor 1.0)) (define (times k) (lambda (t) (* k t)))")
    ek.eval(f"(define plain {procedure}) (define compiled (jit-compile plain))")
    for arguments in (*calls, *calls[::-1]):
        plain, found = ek.eval(f"(list (plain {arguments}) (compiled {arguments}))")
        assert found.dtype is plain.dtype, arguments
        np.testing.assert_array_equal(found.numpy(), plain.numpy(), arguments)


def test_compiled_derivatives_are_named_by_the_rules_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(native, "files_key", lambda folders, suffixes: asked.extend(f.name for f in folders) or "")
    native._source_key.__wrapped__()
    assert set(asked) == {"calculus", "ops"}


def test_files_are_named_by_their_paths_sizes_and_times(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one")
    keys = {files_key([tmp_path], (".py",))}
    file.write_text("three")
    keys.add(files_key([tmp_path], (".py",)))
    file.rename(tmp_path / "b.py")
    keys.add(files_key([tmp_path], (".py",)))
    assert len(keys) == 3


def test_objects_are_named_by_how_llvm_is_asked() -> None:
    asked: list[Any] = []

    class Noted:
        def get_or_build(self, parts: Mapping[str, str], build: Callable[[], bytes], label: str) -> bytes:
            asked.append(parts)
            return b""

    target = host()
    for pipeline in (KERNEL, UNIT):
        cached_object(Noted(), {"what": "test"}, "; text", target, "test", pipeline)  # type: ignore[arg-type]
    kernel, unit = asked
    assert kernel.keys() == unit.keys() >= {"what", "module", "triple", "cpu", "features", "vector_bits", "llvm"}
    assert all(option in unit["options"] for option in OPTIONS)
    assert kernel["pipeline"] != unit["pipeline"] == repr(UNIT)
    assert DIVISION_FUNCTION in kernel["builtins"]
