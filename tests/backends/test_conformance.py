"""Instruction by instruction: that every row is looked at, that machines agree, and that a difference is seen."""

import itertools
import json
import os
from functools import cache

import numpy as np
import pytest

from eshkol.atlas.isa import Values
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend
from eshkol.conformance.command import main
from eshkol.conformance.instructions import InstructionCase, instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED, Outcome
from eshkol.conformance.page import page, tables
from eshkol.conformance.results import MachineRun, ResultsError, RowResult, read, together, written
from eshkol.conformance.runs import Comparison, Plan, Task, tasks

WITHOUT_NUMBERS = {
    "MOV_IMM",
    "SEL",
    "ACC",
    "ClsGet",
    "MIRROR",
    "UnityTest",
    "BoundMap",
}  # of constants, classes, bounds; SEL is with SETcc


@cache
def cases() -> dict[str, InstructionCase]:
    """All of them, by name; made when they are first asked for, since every worker imports this."""
    return {case.name: case for case in instruction_cases()}


def test_every_instruction_with_values_is_there():
    words = set(itertools.chain.from_iterable(name.split() for name in cases()))
    assert {op.name for op in ROWS.values() if isinstance(op.meaning, Values)} - words <= WITHOUT_NUMBERS
    assert {str(ty) for ty in Type} <= words


@pytest.mark.parametrize(
    "name", ["ADD F32", "DIV I16", "FMA F16", "EXP F32", "SHR U64", "CVT F32 to I8", "BITCAST F64 to U64",
             "SETcc LT BF16", "LDS STS I32", "ATOM Add F32", "SREG BlockX", "MIN F64"],
)  # fmt: skip
def test_the_cpu_agrees(name):
    outcome = instruction(cases()[name], CpuBackend())
    assert outcome.result == PASS, str(outcome)


def test_what_a_machine_lacks_is_refused_by_name():
    outcome = instruction(cases()["SubGroupXor F32 by 1"], CpuBackend())
    assert (outcome.result, outcome.row) == (REFUSED, "SubGroupXor")
    assert "SubGroupXor" in outcome.message


def test_cases_are_found_by_their_names():
    names = [*cases()]
    assert {name.split()[0] for name in names} - {op.name for op in ROWS.values()} == set()
    for first in ("PACK", "BITCAST", "SREG", "ATOM", "LDS", "FMA"):
        found = [case.name for case in instruction_cases(frozenset({first}))]
        assert found == [name for name in names if name.split()[0] == first] != []


class Wrong(ReferenceBackend):
    """A machine that gets the last bit of the last element wrong."""

    def execute(self, program, launch, params=None):
        super().execute(program, launch, params)
        out = params["out"]
        raw = bytearray(self.copy_from(out.handle))
        raw[-out.ty.size_bytes] ^= 1
        self.copy_to(out.handle, np.frombuffer(bytes(raw), np.uint8))


@pytest.mark.parametrize("name", ["ADD F32", "XOR U8", "MUL I256", "CVT F64 to F32", "SETcc GE I64"])
def test_a_difference_of_one_bit_is_a_failure(name):
    outcome = instruction(cases()[name], Wrong())
    assert outcome.result == FAIL
    assert "1 of " in outcome.message
    assert "on the reference machine" in outcome.message


def test_expanded_rows_may_differ_in_the_last_places_only():
    case = cases()["EXP F32"]
    wanted = case.run(ReferenceBackend())
    near = {**wanted, "out": np.nextafter(wanted["out"], np.float32(2), dtype=np.float32)}
    case.compare(near, wanted)
    with pytest.raises(AssertionError, match="differ"):
        case.compare({**wanted, "out": wanted["out"] * np.float32(1.00001)}, wanted)


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    file, page = tmp_path / "found.json", tmp_path / "page.md"
    asked = ["reference", "cpu", "--only", "ADD", "SubGroupXor", "add", "--samples", "1"]
    assert main([*asked, "--json", str(file), "--docs", str(page)]) == 0
    said = capsys.readouterr()
    assert "cpu: 74/74" in said.err
    assert "native code has no SubGroupXor yet" in said.out
    runs = read(file)
    assert [(run.machine, run.complete, run.seconds > 0) for run in runs] == [
        ("reference", False, True), ("cpu", False, True)
    ]  # fmt: skip
    assert runs[0].counts() == {PASS: 74, REFUSED: 0, FAIL: 0}
    assert runs[1].counts("instruction") == {PASS: 24, REFUSED: 48, FAIL: 0}
    assert "| `SubGroupXor` | ✓ | – |" in page.read_text("utf-8")
    assert "| `add` | ✓ ✓ | ✓ ✓ |" in page.read_text("utf-8")


def test_what_makes_no_sense_is_refused(capsys, tmp_path):
    for arguments, message in (
        (["reference", "--only", "no_such_row"], "there is no instruction or row no_such_row"),
        (["--jobs", "0"], "--jobs is 1 or more"),
        (["--seconds", "nan"], "--seconds more than 0"),
        (["--samples", "0"], "--samples is 1 or more"),
        (["--kinds", "backward"], "invalid choice"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
    assert main(["moon"]) == 1
    assert "there is no backend 'moon'" in capsys.readouterr().err
    assert main(["--from", str(tmp_path / "none.json")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_the_two_ways_to_call_it_are_one():
    from eshkol.cli.main import build_parser
    from eshkol.conformance import command

    options = build_parser(["conformance"]).parse_args(["conformance", "cpu", "--jobs", "3"])
    assert options.machines == ["cpu"]
    assert options.run.__module__ == command.__name__


def test_several_processes_come_to_the_same(tmp_path):
    file = tmp_path / "found.json"
    asked = ["cpu", "--only", "ADD", "NEG", "--kinds", "instruction", "--json", str(file)]
    assert main(asked) == 0
    alone = read(file)[0]
    assert main([*asked, "--jobs", "2"]) == 0
    together_ = read(file)[0]
    assert together_.counts() == alone.counts()
    assert {key: row.passed for key, row in together_.rows.items()} == {k: r.passed for k, r in alone.rows.items()}


class Tasks:
    """A comparison whose processes do what a test says."""

    @staticmethod
    def comparison(*results, seconds=float("inf"), jobs=1):
        todo = [
            Task(f"ROW {k}", "instruction", lambda backend, k=k, what=what: what(k)) for k, what in enumerate(results)
        ]
        run = MachineRun("reference", "", "here", "1", "", "today")
        return Comparison(run, Plan(seconds=seconds), todo, jobs)


def passing(k):
    return Outcome(f"ROW {k}", "instruction", PASS)


def lost(k):
    return Outcome(f"ROW {k}", "instruction", FAIL, "DeviceLost: the process has to be restarted")


def interrupting(k):
    raise KeyboardInterrupt


def test_a_lost_device_and_the_end_of_the_time_end_it():
    found = Tasks.comparison(passing, passing)
    assert [o.result for o in found.outcomes()] == [PASS, PASS]
    assert found.run.complete
    found = Tasks.comparison(passing, lost, passing)
    assert [o.result for o in found.outcomes()] == [PASS, FAIL]
    assert not found.run.complete
    found = Tasks.comparison(passing, passing, seconds=1e-9)
    assert [*found.outcomes()] == []
    assert not found.run.complete


def test_ctrl_c_keeps_what_was_seen():
    found = Tasks.comparison(passing, interrupting, passing)
    with pytest.raises(KeyboardInterrupt):
        [*found.outcomes()]
    assert found.run.counts()[PASS] == 1
    assert not found.run.complete


def test_ctrl_c_shows_what_was_seen(capsys, tmp_path, monkeypatch):
    def outcomes(comparison):
        comparison.run.add(passing(0))
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(Comparison, "outcomes", outcomes)
    assert main(["reference", "--only", "ADD", "--json", str(tmp_path / "found.json")]) == 130
    assert "this is what was seen so far" in capsys.readouterr().err
    assert read(tmp_path / "found.json")[0].counts()[PASS] == 1


def test_a_process_that_dies_has_failed_its_case(monkeypatch):
    from eshkol.conformance import runs as module

    monkeypatch.setattr(module, "work", dying)
    plan = Plan(kinds=("instruction",), only=frozenset({"ADD"}))
    run = MachineRun("reference", "", "here", "1", "", "today")
    found = [*Comparison(run, plan, tasks(plan)[:4], jobs=2).outcomes()]
    assert sorted((o.result, "its process ended with 9" in o.message) for o in found) == [
        (FAIL, True), (PASS, False), (PASS, False), (PASS, False)
    ]  # fmt: skip


def dying(pipe, machine, plan, places):
    """As `work`, but that the first case takes its process with it."""
    for k in places:
        pipe.send(k)
        if k == 0:
            os._exit(9)
        pipe.send(passing(k))
    pipe.send("")


# --- files --------------------------------------------------------------------------------------------------------


def run_of(machine="cpu", device="", commit="abc", **rows):
    run = MachineRun(machine, device, "Linux", "1.0", commit, "2026-01-01", 2.0, False)
    for name, (passed, refused, failed) in rows.items():
        run.rows[name, "instruction"] = RowResult(passed, dict(refused), dict(failed))
    return run


def test_results_are_read_as_they_were_written(tmp_path):
    run = run_of(ADD=(3, {"no I64": ["ADD I64"]}, {}), MUL=(0, {}, {"wrong": ["MUL F32", "MUL F64"]}))
    (tmp_path / "a.json").write_text(written([run, run_of("cuda:1")]))
    assert read(tmp_path / "a.json") == [run, run_of("cuda:1")]


@pytest.mark.parametrize(
    ("spoiled", "message"),
    [
        ("{", "is no JSON"), ("[" * 100_000, "is no JSON"), ("[]", "holds no results"),
        ('{"format": 2, "runs": []}', "no results"),
        ({"machine": "CPU; rm"}, "no name of a machine"), ({"machine": 3}, "no short plain text"),
        ({"seconds": -1}, "no number of seconds"), ({"seconds": True}, "no number of seconds"),
        ({"seconds": float("nan")}, "no number of seconds"), ({"complete": "yes"}, "neither true nor false"),
        ({"rows": {}}, "no list"), ({"device": "x\ny"}, "no short plain"), ({"commit": "x" * 10_000}, "no short plain"),
        ({"rows": [3]}, "no object"), ({"rows": [{"name": "<b>", "kind": "forward", "pass": 1}]}, "no name of an "),
        ({"rows": [{"name": "ADD", "kind": "sideways", "pass": 1}]}, "none of instruction"),
        ({"rows": [{"name": "ADD", "kind": ["forward"], "pass": 1}]}, "none of instruction"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": -1}]}, "no number of cases"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1e999}]}, "no number of cases"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1}] * 2}, "a second time"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1, "fail": []}]}, "no object"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1, "fail": {"x": []}}]}, "without cases"),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1, "refused": {"\u001b[2J": ["ADD"]}}]}, "no short "),
        ({"rows": [{"name": "ADD", "kind": "forward", "pass": 1, "refused": {"x": ["MUL F32"]}}]}, "not of ADD"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused(tmp_path, spoiled, message):
    text = spoiled
    if isinstance(spoiled, dict):
        whole = json.loads(written([run_of(ADD=(1, {}, {}))]))
        whole["runs"][0].update(spoiled)
        text = json.dumps(whole)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ResultsError, match=message):
        read(tmp_path / "a.json")


def test_runs_of_one_machine_come_together():
    first = run_of(ADD=(3, {}, {}), MUL=(1, {}, {}))
    second = run_of(ADD=(5, {}, {}), SUB=(2, {}, {}))
    (both,) = together([first, second])
    assert {name: row.passed for (name, _), row in both.rows.items()} == {"ADD": 5, "MUL": 1, "SUB": 2}
    (later,) = together([first, run_of(commit="def", SUB=(2, {}, {}))])
    assert later.counts()[PASS] == 2, "what other sources came to is not counted"
    assert len(together([first, run_of(device="another"), run_of("cuda")])) == 3


def test_the_page_shows_texts_as_texts_and_counts_everything(tmp_path):
    bad = "a | b <script>alert(1)</script> `x` [y](z) **w**"
    run = run_of(
        ADD=(2, {bad: ["ADD F16", "ADD F8"]}, {}), MUL=(0, {}, {bad: ["MUL F32"]}), SUB=(0, {"no": ["SUB"]}, {})
    )
    text = page([run, run_of(device="another", ADD=(4, {}, {}))])
    assert "<script>" not in text
    assert "](z)" not in text.replace("\\](z)", "")
    assert "| `ADD` | ◐ | ✓ |" in text
    assert "| `MUL` | ✗ |  |" in text
    assert "| `SUB` | – |  |" in text
    assert "| cpu (1) | all | 3 | 2 | 3 | 1 | 50.0 % |" in text
    assert "Of cpu (1), cpu (2) a part was compared" in text
    assert all(line.count("|") == 4 for line in text.splitlines() if line.startswith("| `"))


def test_reasons_that_differ_in_numbers_are_one():
    run = run_of(
        ADD=(
            0,
            {"f(float32[2, 3]) has 4096 bytes": ["ADD a"], "f(float32[7]) has 8 bytes": ["ADD b"], "x": ["ADD"]},
            {},
        )
    )
    assert run.refusals() == [("f(float32[2, 3]) has 4096 bytes", ["ADD a", "ADD b"]), ("x", ["ADD"])]


def test_tables_fit_the_terminal(capsys):
    from rich.console import Console

    machines = [run_of(f"m{k}", ADD=(2, {"no": ["ADD F16"]}, {"[bold]bad": ["ADD F32"]})) for k in range(10)]
    console = Console(width=80, highlight=False)
    for table in tables(machines, every_row=True):
        console.print(table)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "[bold]bad" in said
