"""The bench over every family: its table says what it should, rows agree with NumPy, and two runs are compared."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bench(monkeypatch):
    """Modules of the bench by name."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: import_module(f"bench.{name}")


def test_every_family_has_rows_and_every_row_a_place(bench):
    rows, row = bench("every").ROWS, bench("every.row")
    names = [r.name for r in rows]
    assert len(names) == len(set(names)) >= 80
    assert {r.family for r in rows} == set(row.FAMILIES)
    assert {"f32", "f64", "bf16"} <= {r.dtype for r in rows} <= set(row.DTYPES)
    assert any(r.gradient for r in rows)
    assert min(r.size for r in rows) <= 100
    assert max(r.size for r in rows) == 10**7
    for r in rows:
        assert row.OURS in r.ways
        assert set(r.ways) <= set(row.LIBRARIES)
        assert len(r.ways) > 1, f"{r.name} has no peer"
        assert not (r.gradient and row.NUMPY in r.ways)


@pytest.mark.unchecked
def test_rows_are_checked_and_timed(bench):
    report, rows = bench("every.report"), {r.name: r for r in bench("every").ROWS}
    found = report.measure(rows["x + y, 100"], 0.001)
    assert not found.failed
    assert {"eshkol", "NumPy"} <= set(found.seconds)
    assert found.ratio is not None
    assert report.by_ratio([found, report.Measured("none", "order", "f32", 1)])[0] is found
    assert report.mean([found]) == pytest.approx(found.ratio)


def test_nothing_of_the_bench_runs_in_a_peers_call(bench):
    contest, rows = bench("every.contest"), {r.name: r for r in bench("every").ROWS}
    call, ran = contest.contestants(rows["x + y, 100"])["NumPy"], []
    sys.setprofile(lambda frame, event, what: ran.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert ran == ["<lambda>", "<lambda>"], "what is timed, and what the row says"


@pytest.mark.unchecked
def test_a_way_that_differs_is_not_timed(bench):
    report, row = bench("every.report"), bench("every.row")
    ways = {row.OURS: lambda x: x + 1, row.NUMPY: lambda x: x + 2}
    found = report.measure(row.Row("wrong", "elementwise", "f32", 3, (row.normal(3),), ways), 0.001)
    assert found.best is None
    assert "away from ours" in found.failed[row.NUMPY]
    ways[row.NUMPY] = lambda x: x[:2] + 1
    found = report.measure(row.Row("short", "elementwise", "f32", 3, (row.normal(3),), ways), 0.001)
    assert found.failed[row.NUMPY] == "its results have shapes [[2]], ours [[3]]"


def _file(bench: Any, path: Path, **seconds: tuple[float, float]) -> str:
    report = bench("every.report")
    rows = [report.Measured(name, "order", "f32", 1, {"eshkol": a, "NumPy": b}) for name, (a, b) in seconds.items()]
    report.write(path, "a title", rows)
    return str(path)


def test_runs_are_compared(bench, tmp_path, capsys):
    compare = bench("every.compare")
    before = _file(bench, tmp_path / "a.json", one=(1.0, 2.0), two=(1.0, 1.0), gone=(1.0, 1.0))
    after = _file(bench, tmp_path / "b.json", one=(2.0, 2.0), two=(1.0, 1.1), new=(1.0, 1.0))
    assert json.loads((tmp_path / "a.json").read_text())["rows"][0]["ratio"] == 1.0
    assert compare.main([before, after]) == 1
    said = capsys.readouterr().out
    assert said.index("one") < said.index("two")
    assert "2 rows in both; 1 slower by more than 25%" in said
    assert "only before: gone" in said
    assert "only after: new" in said
    assert compare.main([before, after, "--share", "1.5"]) == 0
    assert compare.main([after, before]) == 0


def test_a_machine_that_was_slow_is_no_loss(bench, tmp_path):
    compare = bench("every.compare")
    before = _file(bench, tmp_path / "a.json", one=(1.0, 2.0))
    after = _file(bench, tmp_path / "b.json", one=(3.0, 6.0))
    assert compare.main([before, after]) == 0
    assert compare.main([before, after, "--by", "time"]) == 1


def test_a_row_that_fails_since_is_a_loss(bench, tmp_path, capsys):
    compare, report = bench("every.compare"), bench("every.report")
    before = _file(bench, tmp_path / "a.json", one=(1.0, 2.0))
    broken = report.Measured("one", "order", "f32", 1, {"NumPy": 1.0}, {"eshkol": "TensorError: no"})
    report.write(tmp_path / "b.json", "a title", [broken])
    assert compare.main([before, str(tmp_path / "b.json")]) == 1
    assert "failed since: one" in capsys.readouterr().out


@pytest.mark.unchecked
def test_the_kernel_ladder_is_measured(bench, tmp_path, monkeypatch, capsys):
    module, drawn = bench("kernels"), []
    monkeypatch.setattr(module, "draw", lambda rates, machine, path: drawn.append((rates, machine, path)))
    monkeypatch.setattr(module, "BURST", 0.0)
    monkeypatch.setattr("eshkol.kernels.launching.BURST", 0.0)
    chosen = ["gemm", "--sizes", "4,8", "--rungs", "naive,shared_tiled", "--check", "--out", str(tmp_path)]
    assert module.main([*chosen, "--device", "blocks"]) == 0
    assert "shared_tiled" in capsys.readouterr().out
    figures = tmp_path / "kernels-gemm.json"
    rates = json.loads(figures.read_text())["gflops"]
    assert set(rates) == {"naive", "shared_tiled", "a @ b"}
    assert all(set(row) == {"4", "8"} and min(row.values()) > 0 for row in rates.values())
    assert module.main(["gemm", "--draw", str(figures), "--out", str(tmp_path)]) == 0
    assert drawn[0] == drawn[1]
    assert module.main([*chosen, "--device", "cpu"]) == 1
    assert "machines of blocks" in capsys.readouterr().err
