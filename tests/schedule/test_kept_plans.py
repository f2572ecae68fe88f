"""Plans on disk: what is found is what would be made, and whatever else is there is a miss."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_sizes import FUNCTIONS, graphs, sizes

import eshkol as ek
from effort import amount
from eshkol.atlas.jsonform import KeptProgram
from eshkol.atlas.machines import CORES
from eshkol.backends.cpu import CpuBackend
from eshkol.errors import IndexOutOfRange, IsaError, MiscompiledError
from eshkol.graph.node import Node, buffer, substitute
from eshkol.ops import dtypes
from eshkol.schedule import pipeline
from eshkol.schedule.kernels.kernel import described
from eshkol.schedule.pipeline import Compiled, compiled
from eshkol.schedule.plan import kept
from eshkol.schedule.plan.kept import Kept, read, written
from eshkol.schedule.plan.outline import Outline
from eshkol.schedule.plan.steps import Launch, OnHost, Plan, walk
from eshkol.schedule.plan.values import NotKept, as_json, from_json
from eshkol.schedule.plan.verify import verify_plan
from eshkol.schedule.run.execute import run_compiled
from eshkol.support.store import ProgramCache

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FEWEST", 0)


def traced(function: Callable[..., Any], *inputs: Any) -> Any:
    return ek.jit(function, dynamic=False).traced(*inputs).function


def place(store: ProgramCache, graph: Any, target: Any = CORES) -> Kept:
    found = Kept.of(store, graph.results, graph.params, target)
    assert found is not None
    return found


def small() -> Any:
    return traced(lambda x, y: ek.softmax(x @ y, -1).sum(0) * 2 + 1, ek.ones((5, 4)), ek.ones((4, 6)))


def told(plan: Plan) -> list[Any]:
    """What errors say of each step."""
    steps = [s for s in walk(plan.steps) if isinstance(s, Launch | OnHost)]
    return [(described(s.node), s.node.op, s.node.attrs, s.node.outs) for s in steps]


def programs(plan: Plan) -> list[Any]:
    return [s.kernel.program for s in walk(plan.steps) if isinstance(s, Launch)]


# --- what is found ----------------------------------------------------------------------------------


def test_what_is_found_is_what_was_made(tmp_path: Path) -> None:
    """Programs that come in several plans are read and compared once."""
    writing, reading, seen = ProgramCache(tmp_path), ProgramCache(tmp_path), set()
    drawn = ("nearly ", "random ")  # of which some are as good as all
    names = [n for n, case in FUNCTIONS.items() if "cpu" in case.machines and not case.told and not n.startswith(drawn)]
    for name in [*names, *[n for n in FUNCTIONS if n.startswith("nearly ")][::8]][:: amount(1, 8)]:
        for _, graph in graphs(name):
            made = compiled(graph.results, graph.params, CORES)
            place(writing, graph).keep(made)
            found = place(reading, graph).find()
            assert found is not None, name
            verify_plan(found, "kept")
            assert told(found) == told(made), name
            assert (found.places, found.params, found.results) == (made.places, made.params, made.results), name
            for one, other in zip(programs(found), programs(made), strict=True):
                assert one.digest == other.digest
                if one.digest in seen:
                    continue
                seen.add(one.digest)
                assert (one.instructions, one.labels) == (other.instructions, other.labels)
                assert (one.entry, one.metadata, one.params) == (other.entry, other.metadata, other.params)
                assert [i.span for i in one.instructions] == [i.span for i in other.instructions]
            for (p, one), (q, other) in zip(found.constants, made.constants, strict=True):
                assert (p, one.dtype, one.tobytes()) == (q, other.dtype, other.tobytes()), name
            outline = Outline(graph.results, graph.params)
            assert written(found, outline) == written(made, outline), name


def test_a_plan_is_found_with_the_answers_it_was_made_with_alone(tmp_path: Path) -> None:
    """Those that were measured of a machine's own kernels (`eshkol tune`)."""
    graph, store = small(), ProgramCache(tmp_path)
    tuned, other = (replace(CORES, tuned=(("products", "1x2x3", choice),)) for choice in ("rows=64", "rows=128"))
    place(store, graph, tuned).keep(compiled(graph.results, graph.params, tuned))
    assert place(store, graph, replace(tuned)).find() is not None
    assert place(store, graph, other).find() is None
    assert place(store, graph).find() is None


PROGRAM = """
    import sys
    import numpy as np
    import eshkol as ek
    from eshkol.schedule import pipeline
    from eshkol.schedule.check.switch import CHECKS

    made, before = [], pipeline.compiled
    pipeline.compiled = lambda *given: made.append(1) or before(*given)

    def loss(w, v, x):
        return ((ek.tanh(x @ w) @ v) ** 2).mean() + ek.softmax(x, -1).max() + ek.sort(x, 1)[0][:, 0].sum()

    step = ek.jit(lambda w, v, x: [p - 0.1 * g for p, g in zip((w, v), ek.grad(loss, argnums=(0, 1))(w, v, x))])
    values = [ek.tensor(np.random.default_rng(k).standard_normal(s).astype("float32")) for k, s in
              enumerate([(6, 8), (8, 2), (5, 6)])]
    for _ in range(3):
        values[:2] = step(*values)
    print(len(made), CHECKS.counts.plans if CHECKS.on else 0, *[x.numpy().tobytes().hex() for x in values])
"""


def started(folder: Path, **said: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "ESHKOL_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCE), **said}
    environment.pop("ESHKOL_CHECK", None) if "ESHKOL_CHECK" not in said else None
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, int, list[str]]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    plans, validated, *values = out.split()
    return int(plans), int(validated), values


def test_other_processes_do_not_plan_again(tmp_path: Path) -> None:
    both = [started(tmp_path), started(tmp_path)]  # at the same time
    (plans, _, first), (others, _, second) = map(ended, both)
    assert plans + others in (1, 2)  # the slower one may find what the other has kept
    assert first == second
    assert ended(started(tmp_path)) == (0, 0, first)
    plans, validated, values = ended(started(tmp_path, ESHKOL_CHECK="1"))
    assert plans == 0
    assert validated >= 1
    assert values == first


@pytest.mark.unchecked
def test_what_passes_give_is_shown_though_a_plan_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = small()
    Compiled(graph.results, graph.params).plan(CORES, ProgramCache(tmp_path))
    monkeypatch.setenv("ESHKOL_DUMP", "plan")
    Compiled(graph.results, graph.params).plan(CORES, ProgramCache(tmp_path))
    assert "--- plan" in capsys.readouterr().err


@pytest.mark.unchecked
def test_plans_are_kept_and_found_by_what_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, other = small(), small()
    made = Compiled(graph.results, graph.params).plan(CORES, ProgramCache(tmp_path))
    monkeypatch.setattr(pipeline, "compiled", None)
    found = Compiled(other.results, other.params).plan(CORES, ProgramCache(tmp_path))
    assert sizes(found) == sizes(made)


def test_nothing_is_kept_of_what_is_compared(tmp_path: Path) -> None:
    graph = small()
    Compiled(graph.results, graph.params).plan(CORES, ProgramCache(tmp_path))
    assert not ProgramCache(tmp_path).stats().disk_entries


def test_small_graphs_are_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FEWEST", 100)
    graph = small()
    assert Kept.of(ProgramCache(tmp_path), graph.results, graph.params, CORES) is None


def test_what_is_found_is_validated(tmp_path: Path) -> None:
    ones, machine = ek.ones((3, 4)), CpuBackend(cache=ProgramCache(tmp_path))
    right, wrong = traced(lambda x: ek.sin(x) * 2, ones), traced(lambda x: ek.cos(x) * 2, ones)
    made = compiled(wrong.results, wrong.params, machine.description)
    place(machine.cache, right, machine.description).keep(made)
    with pytest.raises(MiscompiledError):
        run_compiled(Compiled(right.results, right.params), [np.ones((3, 4), np.float32)], machine)


def test_a_plan_that_was_found_tells_the_line_at_hand(tmp_path: Path) -> None:
    def first(x: Any, i: Any) -> Any:
        return ek.take(ek.sin(x) * 2, i, 0)  # here

    def second(x: Any, i: Any) -> Any:
        return ek.take(ek.sin(x) * 2, i, 0)  # or there

    given, machine = (ek.ones((3, 4)), ek.tensor([0, 1])), CpuBackend(cache=ProgramCache(tmp_path))
    one, other = traced(first, *given), traced(second, *given)
    place(machine.cache, one, machine.description).keep(compiled(one.results, one.params, machine.description))
    found = place(machine.cache, other, machine.description).find()
    assert found is not None
    with pytest.raises(IndexOutOfRange) as error:
        pipeline.ready_plan(found, machine, ()).run([np.ones((3, 4), np.float32), np.array([0, 7])])
    assert error.value.span is not None
    assert "or there" in error.value.span.text


def test_arrays_of_the_graph_are_not_kept_with_its_plan(tmp_path: Path) -> None:
    def graph(seed: int) -> tuple[list[Node], Any]:
        array = np.random.default_rng(seed).standard_normal((300, 300)).astype(np.float32)
        held = buffer(array, dtypes.float32)
        plain = traced(lambda x, y: ek.sin(x) @ y, ek.ones((300, 300)), ek.ones((300, 300)))
        return substitute(plain.results, {plain.params[1]: held}), plain.params[:1]

    def at(seed: int) -> tuple[Kept, list[Node], Any]:
        results, params = graph(seed)
        found = Kept.of(ProgramCache(tmp_path), results, params, CORES)
        assert found is not None
        return found, results, params

    first, results, params = at(0)
    first.keep(compiled(results, params, CORES))
    assert ProgramCache(tmp_path).stats().disk_bytes < 5000
    again, results, _ = at(0)
    found = again.find()
    assert found is not None
    ((_, array),) = found.constants
    assert any(x.data is array for r in results for x in r.inputs)
    assert at(1)[0].find() is None  # passes may have looked at what it holds


def test_what_cannot_be_written_down_is_planned_again(tmp_path: Path) -> None:
    graph = small()
    made = compiled(graph.results, graph.params, CORES)
    large = replace(made, constants=((0, np.zeros(1 << 20)),))
    place(ProgramCache(tmp_path), graph).keep(large)
    assert place(ProgramCache(tmp_path), graph).find() is None


# --- what is not found ------------------------------------------------------------------------------


def kept_small(folder: Path) -> Any:
    graph = small()
    place(ProgramCache(folder), graph).keep(compiled(graph.results, graph.params, CORES))
    return graph


def test_other_sources_machines_and_graphs_are_other_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = kept_small(tmp_path)
    store = ProgramCache(tmp_path)
    assert place(store, graph).find() is not None
    assert place(store, graph, replace(CORES, block=128)).find() is None
    ones, others = ek.ones((5, 4)), ek.ones((4, 6))
    unlike = [
        (lambda x, y: ek.softmax(x @ y, -1).sum(0) * 2 + 1.5, ones, others),  # a number
        (lambda x, y: ek.softmax(x @ y, -1).sum(1) * 2 + 1, ones, others),  # an attribute
        (lambda x, y: ek.softmax(x @ y, -1).sum(0) * 2 + 1, ek.ones((3, 4)), others),  # a shape
        (lambda x, y: ek.softmax(x @ y, -1).sum(0) * 2 + 1, ones.astype(ek.float64), others.astype(ek.float64)),
        (lambda x, y: (ek.softmax(x @ y, -1).sum(0) * 2 + 1,) * 2, ones, others),  # results
    ]  # fmt: skip
    for function, *inputs in unlike:
        assert place(store, traced(function, *inputs)).find() is None
    both = [traced(f, ek.ones((4, 4)), ek.ones((4, 4))) for f in (lambda x, y: x @ y + x, lambda x, y: x @ y + y)]
    place(store, both[0]).keep(compiled(both[0].results, both[0].params, CORES))
    assert place(store, both[0]).find() is not None
    assert place(store, both[1]).find() is None
    monkeypatch.setattr(kept, "_source_key", lambda: "others")
    assert place(store, graph).find() is None


def test_bodies_of_loops_count(tmp_path: Path) -> None:
    store, x = ProgramCache(tmp_path), ek.ones((4,))
    loops = [
        traced(lambda x, f=f: ek.fori_loop(0, 3, lambda k, y: f(y), x), x)
        for f in (ek.sin, ek.cos, lambda y: ek.sin(y) * 2)
    ]
    place(store, loops[0]).keep(compiled(loops[0].results, loops[0].params, CORES))
    assert [place(store, loop).find() is not None for loop in loops] == [True, False, False]


def test_what_is_damaged_is_not_found(tmp_path: Path) -> None:
    graph = kept_small(tmp_path)
    (file,) = tmp_path.glob("*/*.eskc")
    whole, rng = file.read_bytes(), random.Random(1)
    for _ in range(60):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        file.write_bytes(changed if rng.random() < 0.7 else whole[: rng.randrange(len(whole))])
        assert place(ProgramCache(tmp_path), graph).find() is None
    file.write_bytes(whole)
    assert place(ProgramCache(tmp_path), graph).find() is not None


GRAPH = small()
OUTLINE = Outline(GRAPH.results, GRAPH.params)
PAYLOAD = written(compiled(GRAPH.results, GRAPH.params, CORES), OUTLINE)


@settings(max_examples=300)
@given(st.data())
def test_foreign_bytes_are_no_plan_or_a_whole_one(data: st.DataObject) -> None:
    """Whatever passes the store's hash: what is read is refused, or names only what there is."""
    text = bytearray(zlib.decompress(PAYLOAD))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(b'0123456789,[]{}"-.etn')).to_bytes()
    try:
        plan = read(zlib.compress(bytes(text)), OUTLINE, CORES)
    except NotKept:
        return
    count = len(plan.places)
    for step in walk(plan.steps):
        assert isinstance(step, Launch)
        assert all(0 <= p < count for p in (*step.reads, *step.writes, *step.same, *(p for _, p in step.buffers)))
        assert {name for name, _ in (*step.buffers, *step.numbers)} <= set(step.kernel.program.param)


@given(st.binary(max_size=200))
def test_bytes_of_something_else_are_no_plan(raw: bytes) -> None:
    for payload in (raw, zlib.compress(raw)):
        with pytest.raises(NotKept):
            read(payload, OUTLINE, CORES)


@pytest.mark.unchecked
def test_a_disk_that_is_full_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eshkol.support.store._Disk._write_atomically", full)
    graph, store = small(), ProgramCache(tmp_path)
    with pytest.warns(RuntimeWarning, match="cannot write to the program cache"):
        made = Compiled(graph.results, graph.params).plan(CORES, store)
    assert sizes(made) == sizes(compiled(graph.results, graph.params, CORES))


# --- parts ------------------------------------------------------------------------------------------

PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.floats(), st.complex_numbers(), st.binary(),
    st.sampled_from(dtypes.ALL), st.sampled_from([np.dtype("float32"), np.dtype("int8")]),
)  # fmt: skip


@given(st.recursive(PLAIN, lambda inside: st.lists(inside) | st.lists(inside).map(tuple)))
def test_attributes_come_back(value: Any) -> None:
    found = from_json(json.loads(json.dumps(as_json(value))))
    assert repr(found) == repr(value)


@pytest.mark.parametrize("value", [len, object(), np.ones(3), {1: 2}, Path()])
def test_what_holds_more_than_values_is_refused(value: Any) -> None:
    with pytest.raises(NotKept):
        as_json(value)


@pytest.mark.parametrize(
    "value",
    [["os:system", "true"], ["eshkol.support.flags:text", "ESHKOL_DEBUG"], ["eshkol.errors:Span"], ["tuple", {}], [],
     ["dtype", "nothing"], ["numpy", 1], ["enum", "eshkol.atlas.types:Type", "none"], ["float", "x"], {}, ["complex"],
     ["eshkol.schedule.pipeline:Compiled", [], []], ["enum", "eshkol.schedule.kernels.tiling:TilingOf", "x"],
     ["inspect:Attribute", "a", "b", None, None], ["float", 1.5], ["bytes", 3], ["dtype", 4]],
)  # fmt: skip
def test_what_names_no_values_is_refused(value: Any) -> None:
    with pytest.raises(NotKept):
        from_json(value)


def test_programs_are_read_when_they_are_looked_at() -> None:
    plan = read(PAYLOAD, OUTLINE, CORES)
    (program, *_) = programs(plan)
    assert isinstance(program, KeptProgram)
    assert "instructions" not in vars(program)
    changed = replace(program, name="other")
    assert changed.instructions == program.instructions
    assert changed.digest != program.digest
    assert program.with_changes({0: (program.instructions[0],)}).digest == program.digest
    false = KeptProgram.of(vars(program)["text"], "0" * 64, program.name, program.params, {})
    with pytest.raises(IsaError, match="is another one"):
        len(false.instructions)
