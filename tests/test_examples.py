"""The examples do what they say: each is legal, survives every notation, and agrees with NumPy everywhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType

import numpy as np
import pytest

from eshkol.atlas.expand import expand
from eshkol.atlas.jsonform import dumps, loads
from eshkol.atlas.optimize import optimize
from eshkol.atlas.program import disassemble
from eshkol.atlas.text import assemble
from eshkol.atlas.validate import validate
from eshkol.backends import open_backend, own_machines
from eshkol.cli.atlas import load
from eshkol.cli.main import main

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "atlas"
FILES = sorted(path.name for path in FOLDER.iterdir())


def import_tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tour", ROOT / "examples" / "tour.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


tour = import_tour()
EXAMPLES = {make().file: make() for make in tour.EXAMPLES}
each = pytest.mark.parametrize("file", FILES)
on_each_backend = pytest.mark.parametrize("backend", own_machines())


def test_the_tour_goes_everywhere():
    assert sorted(EXAMPLES) == FILES
    assert {Path(file).suffix for file in FILES} == {".atlas", ".json", ".circuit"}


@each
def test_it_is_legal_and_survives_every_notation(file):
    program = load(str(FOLDER / file))
    validate(program, EXAMPLES[file].launch)
    assert assemble(disassemble(program)) == program
    assert loads(dumps(program)) == program


@on_each_backend
@pytest.mark.parametrize("form", ["written", "optimized", pytest.param("expanded", marks=pytest.mark.slow)])
@each
def test_it_agrees_with_numpy(file, form, backend):
    example, program = EXAMPLES[file], load(str(FOLDER / file))
    if form == "optimized":
        program = optimize(program, contract=False)
    if form == "expanded":
        program = expand(program)
    results, _ = tour.run(open_backend(backend), example, program)
    assert tour.agrees(example, results)


@each
def test_its_oracle_would_notice(file):
    example = EXAMPLES[file]
    right = {name: np.ravel(value).copy() for name, value in example.expected.items()}
    assert tour.agrees(example, right)
    for name, value in right.items():
        wrong = value.copy()
        wrong[-1] = wrong[-1] + 1
        assert not tour.agrees(example, {**right, name: wrong})


@pytest.mark.parametrize("file", [name for name in FILES if name.endswith(".atlas")])
def test_the_command_in_its_first_comment_works(file, tmp_path, monkeypatch, capsys):
    comments = re.findall(r"^; try: eshkol (.*)$", (FOLDER / file).read_text(), re.MULTILINE)
    assert comments, "say how to run it"
    monkeypatch.chdir(tmp_path)  # what it saves goes there
    for command in comments:
        assert main([word.replace("examples/atlas", str(FOLDER)) for word in shlex.split(command)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{Path(file).stem} on reference")


# --- the tour ---------------------------------------------------------------------------------------


def run_tour(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / "tour.py")],
        env={
            "XDG_RUNTIME_DIR": gettempdir(),
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            **env,
        },  # drivers ask for it
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("width", [80, pytest.param(120, marks=pytest.mark.slow)])
def test_the_tour_ends_well_and_fits_the_terminal(width):
    done = run_tour(COLUMNS=str(width))
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= width
    for file in FILES:
        assert file in done.stdout
    assert done.stdout.count(" ok ") == len(FILES) * len(own_machines())
    assert "@@@@" in done.stdout  # the picture
    assert ".venv/bin/eshkol doctor" in done.stdout


def test_the_tour_reports_a_wrong_result(monkeypatch, capsys):
    def spoiled() -> object:
        example = EXAMPLES["add_relu.atlas"]
        return replace(example, expected={"c": example.expected["c"] + 1})

    monkeypatch.setattr(tour, "EXAMPLES", [spoiled])
    assert tour.main() == 1
    out = capsys.readouterr().out
    assert "WRONG: add_relu.atlas on reference" in out
    assert "Try next" not in out


def test_the_tour_shows_what_a_backend_refuses(monkeypatch, capsys):
    from eshkol.backends.reference import ReferenceBackend
    from eshkol.errors import UnsupportedType

    def refuse(*arguments: object) -> None:
        raise UnsupportedType("no F32 here")

    monkeypatch.setattr(tour, "EXAMPLES", [lambda: EXAMPLES["add_relu.atlas"]])
    monkeypatch.setattr(tour, "own_machines", lambda: ["reference"])
    monkeypatch.setattr(ReferenceBackend, "execute", refuse)
    assert tour.main() == 0
    assert "refused" in capsys.readouterr().out


# --- pages of docs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [f"docs/{page}.md" for page in ("tour", "tensors", "logging", "metrics", "training", "data", "devices")]
)
def test_the_python_of_a_page_runs(name, monkeypatch):
    """Blocks of one page share their names, as a reader would type them one after another."""
    monkeypatch.chdir(ROOT)
    page = ROOT / name
    assert page.exists(), f"{name} is missing: its examples are tested here"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks, f"{name} shows no Python"
    names = {"__name__": "page"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{name}, python block {number}", "exec"), names)


def test_the_tensors_example_learns(capsys):
    spec = importlib.util.spec_from_file_location("tensors_example", ROOT / "examples" / "tensors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    assert "192 of 192 points" in capsys.readouterr().out
