"""Graphs as StableHLO, on any machine: golden texts, what is donated, what is checked, what is refused.

`golden/*.mlir` is what a machine for whole graphs is given for a few of them.
`python tests/backends/test_whole_graphs.py` writes the files anew; read what has changed. Whether XLA takes them, and
what comes out, is in `test_xla.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol.backends import open_backend
from eshkol.backends.xla import client
from eshkol.backends.xla.backend import DESCRIPTION, Memory, XlaBackend
from eshkol.errors import BackendUnavailable, InvalidBuffer, TensorError
from eshkol.graph.node import Scope, placeholder
from eshkol.ops import dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.run.whole import WholePlan
from eshkol.schedule.whole.arrays import Arrays
from eshkol.schedule.whole.program import INFINITY, NAN
from eshkol.schedule.whole.text import literal, renaming
from eshkol.tensors.value import Tensor

GOLDEN = Path(__file__).parent / "golden"
F32, I64, BOOL, C64 = dtypes.float32, dtypes.int64, dtypes.bool_, dtypes.complex64


class Recorder:
    """A machine that keeps the text it is given."""

    name, whole_graphs, shares_host_memory, has_addresses = "recorder", True, False, False
    description = DESCRIPTION

    def graph_program(self, text, outs):
        self.text, self.outs = text, outs
        return self


def text_of(function, *avals, donated=(), looked_at=False):
    """What a machine is given for a function of tensors."""
    scope = Scope("trace", "golden")
    params = [placeholder(Aval(*aval), scope) for aval in avals]
    Scope.at_work.append(scope)
    try:
        results = function(*map(Tensor, params))
    finally:
        Scope.at_work.remove(scope)
        scope.open = False
    machine = Recorder()
    given = results if isinstance(results, tuple) else (results,)
    plan = WholePlan([r._node for r in given], params, machine, donated, looked_at=looked_at)
    return machine.text, plan


def _scanned(start, x):
    return ek.scan(lambda c, v: (c + v, c * v), start, x)


GRAPHS = {
    "chain": (lambda x, y: ek.tanh(x * 2 + y) - ek.exp(-x), ((2, 3), F32), ((3,), F32)),
    "softmax": (lambda x: ek.softmax(x, axis=1), ((2, 5), F32)),
    "product": (lambda x, y: (x @ y).sum(), ((2, 3), F32), ((3, 4), F32)),
    "taken": (lambda x, i: ek.take(x, i, axis=0), ((4, 2), F32), ((3,), I64)),
    "scanned": (_scanned, ((), F32), ((6,), F32)),
    "branched": (lambda p, x: ek.cond(p, lambda v: v + 1, lambda v: v * v, x), ((), BOOL), ((4,), F32)),
    "complex": (lambda x: x * x, ((3,), C64)),
    "bordered": (lambda x: ek.pad(x, ((1, 0), (2, 1)), mode="reflect"), ((2, 3), F32)),
    "pooled": (lambda x: ek.max_pool2d(x, 2), ((1, 1, 4, 4), F32)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_golden_texts(name):
    function, *avals = GRAPHS[name]
    assert text_of(function, *avals)[0] == (GOLDEN / f"{name}.mlir").read_text()


@pytest.mark.parametrize("name", GRAPHS)
def test_every_name_is_said_before_it_is_used(name):
    """Names of a region are known in it and in those inside."""
    function, *avals = GRAPHS[name]
    known: list[set[str]] = [set()]
    for line in text_of(function, *avals)[0].splitlines():
        if line.startswith("  func.func"):
            known[0].update(re.findall(r"%arg\d+(?=:)", line))
            continue
        if line == "  }":
            break
        if line.lstrip().startswith("}"):
            known.pop()
        if line.rstrip().endswith("({") or line.strip() == "}, {":
            known.append(set())
        if line.lstrip().startswith("^bb0"):
            known[-1].update(re.findall(r"(%\d+):", line))
            continue
        target, _, rest = line.partition(" = ") if " = " in line else ("", "", line)
        every = set().union(*known)
        assert set(re.findall(r"%(?:arg)?\d+", rest)) <= every, line
        if target:  # of an operation with regions, it is known after them
            known[-2 if line.rstrip().endswith("({") else -1].add(target.strip().partition(":")[0])


def test_donated_parameters_are_marked_unless_a_check_may_fail():
    text, _ = text_of(lambda p, g: p - g, ((3,), F32), ((3,), F32), donated=(0,))
    assert re.findall(r"%(arg\d): tensor<3xf32> {jax.buffer_donor = true}", text) == ["arg0"]
    text, _ = text_of(lambda p, i: p[i], ((3,), F32), ((2,), I64), donated=(0,))
    assert "donor" not in text


def test_a_parameter_that_is_given_back_is_no_result_of_the_program():
    text, _ = text_of(lambda p, x: (p, x + 1), ((3,), F32), ((2,), F32), donated=(0,))
    assert "-> (tensor<2xf32>)" in text
    assert "donor" not in text


def test_checks_are_one_more_result():
    text, plan = text_of(lambda x, y: x // y, ((3,), I64), ((3,), I64))
    assert "-> (tensor<3xi64>, tensor<1xi32>)" in text
    plan._refuse(0)
    with pytest.raises(TensorError, match="divided by zero"):
        plan._refuse(1)


def test_numbers_are_looked_at_where_that_is_asked():
    text, _ = text_of(lambda x: ek.log(x), ((3,), F32), looked_at=True)
    assert "stablehlo.is_finite" in text
    assert "stablehlo.is_finite" not in text_of(lambda x: ek.log(x), ((3,), F32))[0]


def test_what_is_composed_is_looked_at_as_one_node():
    """Its parts may be infinite; and a checkpoint, which the passes take away, gives what was computed before it."""
    text, plan = text_of(lambda x: ek.softmax(x, -1), ((2, 3), F32), looked_at=True)
    assert [(node.op.name, said) for node, said in plan._checks] == [("softmax", NAN), ("softmax", INFINITY)]
    assert text.count("stablehlo.exponential") == 1
    checked, _ = text_of(lambda x: ek.checkpoint(lambda a: (ek.sin(a), ek.cos(a)))(x)[1], ((3,), F32), looked_at=True)
    cosine = re.search(r"(%\d+) = .*stablehlo.cosine", checked)
    assert cosine
    assert f"return {cosine[1]}, " in checked


def test_what_passes_make_is_shown(monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_DUMP", "simplify")
    text_of(lambda x: (x + 0) * 2, ((3,), F32))
    shown = capsys.readouterr().err
    assert "--- simplify" in shown
    assert "mul" in shown
    assert "add" not in shown
    assert "--- patterns" not in shown


def test_what_has_no_text_is_refused_by_name():
    with pytest.raises(BackendUnavailable, match=r"eigvals\(float32\[3, 3\]\) cannot be said in StableHLO"):
        text_of(ek.linalg.eigvals, ((3, 3), F32))


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [(1.5, F32, "0x3FC00000"), (-0.0, dtypes.float64, "0x8000000000000000"), (1.0, dtypes.bfloat16, "0x3F80"),
     (float("nan"), F32, "0x7FC00000"), (True, BOOL, "true"), (-3, dtypes.int8, "-3"),
     (2**64 - 1, dtypes.uint64, "18446744073709551615"), (1 - 2j, C64, "(0x3F800000, 0xC0000000)")],
)  # fmt: skip
def test_numbers_are_exact(number, dtype, text):
    assert literal(number, dtype) == text


def test_names_are_replaced_whole():
    assert renaming(["%1 = a(%12, %1#0, %2)"], {"%1": "%9", "%2": "%7"}) == ["%9 = a(%12, %1#0, %7)"]


def test_a_loop_carries_what_it_changes_and_sees_the_rest():
    t = Arrays()
    kept, changed = (t.cell(t.constant(k, (), I64)) for k in (1, 2))
    before = kept.value
    with t.while_(lambda: t.compare("LT", changed.value, kept.value)):
        changed.value = t.same("add", changed.value, kept.value)
    assert kept.value == before
    assert sum('"stablehlo.while"' in line for line in t.buffers[0]) == 1
    head = next(line for line in t.buffers[0] if "^bb0" in line)
    assert head.count("tensor<i64>") == 1


def test_without_jaxlib_the_reason_says_what_to_install(monkeypatch):
    client.unavailable.cache_clear()
    monkeypatch.setattr(client, "find_spec", lambda name: None)
    try:
        assert "pip install eshkol[xla]" in str(XlaBackend.unavailable())
        assert XlaBackend.machines() == []
        with pytest.raises(BackendUnavailable, match="jaxlib is not installed"):
            open_backend("xla")
    finally:
        client.unavailable.cache_clear()


def test_a_jaxlib_with_other_names_says_which(monkeypatch):
    client.unavailable.cache_clear()
    monkeypatch.setattr(client, "find_spec", lambda name: name)
    monkeypatch.setattr(client, "version", lambda name: "9.9")
    monkeypatch.setattr(client, "_module", lambda: np)
    try:
        assert "jaxlib 9.9 has no make_cpu_client" in str(XlaBackend.unavailable())
    finally:
        client.unavailable.cache_clear()


def test_memory_that_a_program_has_taken_is_refused():
    class Gone:
        def is_deleted(self):
            return True

    with pytest.raises(InvalidBuffer, match="given to a program"):
        Memory(None, Gone(), None, 1).read()


if __name__ == "__main__":
    for name, (function, *avals) in GRAPHS.items():
        (GOLDEN / f"{name}.mlir").write_text(text_of(function, *avals)[0])
