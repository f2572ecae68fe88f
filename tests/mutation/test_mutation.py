"""The mutation tester itself: what it changes, what it leaves alone, and that a changed module is judged rightly."""

from __future__ import annotations

import ast
import importlib
import mmap
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mutation import excluded, plans, reach, suites, swapped, table, workers
from mutation.mutants import Mutant, mutants, mutated
from mutation.records import Plan, Records
from mutation.trial import Hook

SOURCE = textwrap.dedent('''\
    """What it is."""
    from typing import TYPE_CHECKING

    if TYPE_CHECKING:
        LIMIT = 3
    MOST = 4

    def f(a: int, b: int = 2) -> int:
        """Doc 1."""
        if a < b and not a == 0:
            raise ValueError(f"{a + 1} is less than 3")
        assert a > 1
        key = (a, b)
        whole = (a, b, MOST)
        return g(a, b)[1:b] if a in ("x", "y") else min(a - b, MOST)

    class C:
        def __repr__(self) -> str:
            return str(1 + 1)
''')  # fmt: skip


def changes(source: str) -> set[tuple[str, str, str]]:
    return {(m.operator, m.before, m.after) for m in mutants("m", source)}


def test_what_is_changed():
    found = changes(SOURCE)
    for change in (
        ("comparison", "a < b", "a <= b"),
        ("comparison", "a == 0", "a != 0"),
        ("and or", "a < b and (not a == 0)", "a < b or not a == 0"),
        ("dropped condition", "a < b and (not a == 0)", "a < b"),
        ("dropped sign", "not a == 0", "a == 0"),
        ("forced true", "a < b and (not a == 0)", "True"),
        ("deleted", "raise ValueError(f'{a + 1} is less than 3')", "pass"),
        ("dropped key part", "(a, b)", "(b,)"),
        ("swapped parts", "(a, b, MOST)", "(b, a, MOST)"),
        ("swapped arguments", "g(a, b)", "g(b, a)"),
        ("constant", "2", "3"),
        ("constant", "4", "5"),
        ("constant", "'x'", "'x_'"),
        ("off by one", "1:b", "1:b - 1"),
        ("opposite call", "min(a - b, MOST)", "max(a - b, MOST)"),
        ("arithmetic", "a - b", "a + b"),
        ("swapped operands", "a - b", "b - a"),
    ):
        assert change in found


def test_what_only_people_or_checkers_read_is_left_alone():
    lines = {m.line for m in mutants("m", SOURCE)}
    for text in ('"""What it is."""', "LIMIT = 3", '"""Doc 1."""', "assert a > 1", "return str(1 + 1)"):
        line = next(k for k, found in enumerate(SOURCE.splitlines(), 1) if text in found)
        assert line not in lines, text
    assert ("arithmetic", "a + 1", "a - 1") not in changes(SOURCE)  # in the text of an error


def test_the_order_of_names_and_types_mean_nothing():
    assert not changes("Pair: TypeAlias = dict[tuple[int, str], int]")
    assert ("swapped parts", "(a, b)", "(b, a)") not in changes(SOURCE)  # of a key
    entered = changes("@rule('floor', 'ceil')\ndef f(x):\n    rule(x, y)")
    assert {change for change in entered if change[0] == "swapped arguments"} == {
        ("swapped arguments", "rule(x, y)", "rule(y, x)")
    }


def test_every_mutant_is_the_module_with_that_change():
    whole = ast.unparse(ast.parse(SOURCE))
    made = mutants("m", SOURCE)
    assert len({m.id for m in made}) == len(made)
    for mutant in made:
        tree = mutated(SOURCE, mutant)
        compile(tree, "m.py", "exec")
        assert ast.unparse(tree) != whole, mutant


def test_a_mutant_of_another_source_is_refused():
    mutant = next(m for m in mutants("m", SOURCE) if m.operator == "arithmetic")
    with pytest.raises(ValueError, match="make the mutants again"):
        mutated(SOURCE.replace("a - b", "a * b"), mutant)


def test_the_hook_gives_the_changed_module_and_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "hooked_sample.py"
    file.write_text("def f(a, b):\n    return a - b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    mutant = next(m for m in mutants("hooked_sample", file.read_text()) if m.after == "a + b")
    monkeypatch.setattr(sys, "meta_path", [Hook(mutant, "salt"), *sys.meta_path])
    try:
        assert importlib.import_module("hooked_sample").f(5, 3) == 8
    finally:
        sys.modules.pop("hooked_sample", None)
    assert "a - b" in file.read_text()


IN_PLACE = textwrap.dedent("""\
    import functools

    FIRST = 3

    @functools.lru_cache
    def kept(a, b):
        return a - b

    class Maker:
        size = 4

        def make(self, n):
            def inner(x):
                return [x * k for k in range(n)][0] + x * n
            return inner

    made = Maker().make(2)
    by_name = {"kept": kept}
    calls = [lambda x: x + 1, lambda x: x + 1]
""")


@pytest.fixture
def in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "swapped_sample.py").write_text(IN_PLACE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("swapped_sample")
    sys.modules.pop("swapped_sample", None)


def mutant_of(line: str, after: str) -> Mutant:
    number = IN_PLACE.splitlines().index(line) + 1
    return next(m for m in mutants("swapped_sample", IN_PLACE) if m.line == number and m.after == after)


def test_functions_get_the_changed_code_wherever_they_are_kept(in_place: Any):
    assert swapped.swap(mutant_of("    return a - b", "a + b"))
    assert in_place.by_name["kept"](5, 3) == 8


def test_what_was_made_by_a_function_gets_the_changed_code_and_so_does_what_it_makes(in_place: Any):
    assert in_place.made(5) == 10
    assert swapped.swap(mutant_of("            return [x * k for k in range(n)][0] + x * n", "x / n"))
    assert (in_place.made(5), in_place.Maker().make(5)(5)) == (2.5, 1.0)


def test_of_functions_alike_on_a_line_only_one_is_changed(in_place: Any):
    assert swapped.swap(mutant_of("calls = [lambda x: x + 1, lambda x: x + 1]", "x - 1"))
    assert sorted(call(5) for call in in_place.calls) == [4, 6]


@pytest.mark.parametrize(("line", "after"), [("FIRST = 3", "4"), ("    size = 4", "5")])
def test_what_is_made_at_import_cannot_be_changed_in_place(in_place: Any, line: str, after: str):
    assert not swapped.swap(mutant_of(line, after))
    assert (in_place.FIRST, in_place.Maker.size) == (3, 4)


def test_numbers_that_are_equal_but_of_other_types_are_other_code():
    one, truth = (compile(f"def f():\n    return {x}\n", "f.py", "exec") for x in ("1", "True"))
    assert [(a.co_name, b.co_name) for a, b in swapped.differing(one, truth)] == [("f", "f")]
    assert not [*swapped.differing(one, one)]


def test_the_same_code_anew_changes_nothing(in_place: Any):
    assert swapped.renew(["swapped_sample"]) == 5  # kept, make, made and the two calls
    assert (in_place.kept(5, 3), in_place.made(5)) == (2, 10)


def test_a_plan_that_is_another_is_told():
    planned = plans.load()
    name = "sum of rows"
    kept = plans.expected()[name]
    assert plans.difference(planned, name, kept) is None
    assert plans.difference(planned, name, kept[:-1]) == f"{name}: another number of plans"
    told = plans.difference(planned, name, [kept[0], "1 2 3", *kept[2:]])
    assert told is not None
    assert told.startswith(f"{name} on small blocks: was 1 2 3, is ")


def test_what_several_processes_have_measured_is_put_together():
    parts = [
        {"tests": {name: {"seconds": 1.0}}, "left_out": [f"not {name}"], "seconds": 2.0, "imported": {"m": mask}}
        for name, mask in (("a", "3"), ("b", "6"))
    ]
    whole = plans.merged(parts)
    assert whole["imported"] == {"m": "7"}
    assert ([*whole["tests"]], whole["left_out"], whole["seconds"]) == (["a", "b"], ["not a", "not b"], 4.0)
    assert sorted(name for group in plans.groups() for name in group) == sorted(plans.expected())


def test_what_was_judged_out_of_turn_does_not_count(tmp_path: Path):
    """Else a run that is cut short would have all that is noticed at once, and few that are not."""
    made = mutants("m", SOURCE)[:4]
    plan = Plan()
    plan.tried = [("graph", mutant) for mutant in made]
    records = Records(plan, tmp_path / "out.jsonl")
    for number, outcome in ((1, "killed"), (3, "killed"), (0, "survived")):
        records.put(number, 1, {"outcome": outcome}, [])
    assert [record["outcome"] for record in records.counted()] == ["survived", "killed"]
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def sampled(name: str = "", function: str = "", compared: tuple[str, ...] = ()) -> Mutant:
    return Mutant("eshkol.schedule.x", 1, 1, (1, 1), function, name, "constant", "1", "2", (0, "", 0, 0), compared)


def test_exclusions_cover_a_name_its_comparisons_and_a_whole_function():
    entries = (excluded.Excluded("eshkol.schedule.*", "size", names=("FEW",), functions=("show",)),)
    for mutant in (
        sampled("FEW"),
        sampled(compared=("FEW",)),
        sampled(function="show"),
        sampled(function="show.inner"),
    ):
        assert excluded.reason(mutant, entries) == "size"
    for mutant in (sampled(), sampled("OTHER"), sampled(function="shown"), sampled(compared=("OTHER",))):
        assert excluded.reason(mutant, entries) is None


@pytest.mark.slow
def test_every_exclusion_is_of_something_that_is_there():
    """A name that no longer exists must not go on to excuse whatever bears it next."""
    every = {
        module: list(mutants(module, path.read_text(encoding="utf-8"))) for module, path in reach.sources().items()
    }
    for entry in excluded.EXCLUDED:
        matching = [m for module, found in every.items() if _matches(module, entry) for m in found]
        for name in entry.names:
            assert any(m.name == name or name in m.compared for m in matching), f"{entry.modules}: {name}"
        for function in entry.functions:
            assert any(m.function == function for m in matching), f"{entry.modules}: {function}"


def _matches(module: str, entry: excluded.Excluded) -> bool:
    return excluded.fnmatchcase(module, entry.modules)


def test_reach_goes_by_the_line_and_for_imports_by_the_module(tmp_path: Path):
    known = reach.Map(tmp_path / "none.json")
    known.files = {
        "t.py": {
            "imported": {"eshkol.schedule.x": f"{1 << 1:x}"},
            "tests": {
                "t.py::a": {"seconds": 1.0, "hits": {"eshkol.schedule.x": f"{1 << 7:x}"}},
                "t.py::b": {"seconds": 2.0, "hits": {"eshkol.schedule.x": f"{1 << 8:x}"}},
                "t.py::c": {"seconds": 3.0, "hits": {"eshkol.schedule.y": "2"}},
            },
        }
    }

    def reaching(line: int) -> dict[str, bool]:
        mutant = Mutant("eshkol.schedule.x", line, line, (line, line), "", "", "constant", "1", "2", (0, "", 0, 0))
        return {found.test: found.direct for found in known.reaching(mutant, ["t.py"])}

    assert reaching(7) == {"t.py::a": True}
    assert reaching(1) == {"t.py::a": False, "t.py::b": False}
    assert reaching(9) == {}


def test_packages_within_packages_are_taken():
    known = reach.sources(["schedule"])
    assert known["eshkol.schedule.kernels.rows"] == reach.SOURCES / "schedule" / "kernels" / "rows.py"
    assert "eshkol.schedule.kernels" in known
    assert set(known) < set(reach.sources())


def test_a_child_that_computes_is_not_taken_for_one_that_hangs(tmp_path: Path):
    """However long others keep the processor from it: it is ended when it waits, not when it is slow."""

    def slow(watch: Callable[[float], None]) -> dict[str, Any]:
        watch(1.5)
        began = time.process_time()  # of the child, which has its own
        while time.process_time() < began + 2.0:
            pass
        return {"outcome": "survived"}

    def waiting(watch: workers.Watch) -> dict[str, Any]:
        watch(0.3, "t.py::waits")
        time.sleep(60)
        return {"outcome": "survived"}

    jobs = [("slow", slow), ("waiting", waiting)]
    found = dict(workers.run(jobs, tmp_path, 2, links=False, memory=0, limit=60.0, until=float("inf")))
    assert {name: result["outcome"] for name, result in found.items()} == {"slow": "survived", "waiting": "timeout"}
    assert found["waiting"]["by"] == "t.py::waits"
    assert found["waiting"]["why"].startswith("it waits for something")


def test_a_child_that_ends_says_within_which_test(tmp_path: Path):
    def ending(number: int) -> workers.Job:
        def job(watch: workers.Watch) -> dict[str, Any]:
            watch(60.0, f"t.py::ends[{number}]")
            os.kill(os.getpid(), number)
            return {"outcome": "survived"}

        return job

    numbers = (signal.SIGKILL, signal.SIGPROF)
    jobs = [(number, ending(number)) for number in numbers]
    found = dict(workers.run(jobs, tmp_path, 2, links=False, memory=0, limit=60.0, until=float("inf")))
    assert [found[number]["outcome"] for number in numbers] == ["killed", "timeout"]
    assert [found[number]["by"] for number in numbers] == [f"t.py::ends[{number}]" for number in numbers]
    told = table.control("schedule", found[signal.SIGKILL])
    assert told.startswith(f"CONTROL schedule: killed by t.py::ends[{signal.SIGKILL}]: a crash, signal 9")


def test_a_child_may_reserve_more_addresses_than_it_may_write(tmp_path: Path):
    """As heaps of Scheme's do, by how much memory the machine has."""
    most = 1 << 30

    def reserving(watch: workers.Watch) -> dict[str, Any]:
        mmap.mmap(-1, 8 * most, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
        return {"outcome": "survived"}

    def writing(watch: workers.Watch) -> dict[str, Any]:
        try:
            bytearray(2 * most)
        except MemoryError:
            return {"outcome": "refused"}
        return {"outcome": "survived"}

    jobs = [("reserving", reserving), ("writing", writing)]
    found = dict(workers.run(jobs, tmp_path, 2, links=False, memory=most, limit=60.0, until=float("inf")))
    assert {name: result["outcome"] for name, result in found.items()} == {
        "reserving": "survived",
        "writing": "refused",
    }


def test_every_suite_is_there():
    for package, entries in suites.SUITES.items():
        assert package in reach.PACKAGES
        for entry in entries:
            assert (suites.ROOT / entry).exists(), entry


def test_wilsons_interval():
    low, high = table.wilson(90, 100)  # Wilson (1927) by hand: (0.9 + z²/200 ± z √(0.09/100 + z²/40000)) / (1 + z²/100)
    assert (round(low, 4), round(high, 4)) == (0.8256, 0.9448)
    assert table.wilson(0, 0) == (0.0, 1.0)


def test_the_table_counts_what_is_not_reached_as_survived():
    records = [
        {"package": "graph", "outcome": outcome}
        for outcome in ("killed", "killed", "timeout", "survived", "not reached", "error")
    ]
    row = table.table(records, {"graph": (50, 7)}).splitlines()[1].split()
    assert row == ["graph", "50", "7", "5", "2", "1", "1", "1", "60.0", "23.1–88.2"]
