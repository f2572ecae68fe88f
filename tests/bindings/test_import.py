"""`import model` finds model.esk, after everything else that Python knows."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.errors import EshkolError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("scheme_model", "scheme_parts", "scheme_parts.small_net", "json_of_ours"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_file_is_a_module(folder: Path) -> None:
    (folder / "scheme_model.esk").write_text(";;; Mine.\n(define (add-up x y) (+ x y))\n(define *rate* 2)")
    import scheme_model

    assert scheme_model.add_up(1, 2) == 3
    assert sys.modules["scheme_model"] is scheme_model
    assert scheme_model.__doc__ == "Mine."
    assert scheme_model.__spec__.origin == str(folder / "scheme_model.esk")
    names: dict[str, object] = {}
    exec("from scheme_model import *", names)
    assert names["rate"] == 2
    assert importlib.import_module("scheme_model") is scheme_model


def test_reload_runs_the_file_again_in_the_same_module(folder: Path) -> None:
    path = folder / "scheme_model.esk"
    path.write_text("(define (f) 1)")
    module = importlib.import_module("scheme_model")
    assert module.f() == 1
    path.write_text("(define (f) 2) (define (g) 3)")
    assert importlib.reload(module) is module
    assert (module.f(), module.g()) == (2, 3)


def test_packages(folder: Path) -> None:
    (folder / "scheme_parts").mkdir()
    (folder / "scheme_parts" / "small-net.esk").write_text("(define size 5)")
    from scheme_parts import small_net

    assert small_net.size == 5
    assert small_net.__package__ == "scheme_parts"


def test_nothing_else_is_shadowed(folder: Path) -> None:
    (folder / "json_of_ours.esk").write_text("(define dumps 1)")
    (folder / "json_of_ours.py").write_text("dumps = 2")
    assert importlib.import_module("json_of_ours").dumps == 2
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")


def test_an_error_is_eshkols_and_shows_the_line(folder: Path) -> None:
    (folder / "scheme_model.esk").write_text("(define x 1)\n(car x)")
    with pytest.raises(EshkolError) as caught:
        importlib.import_module("scheme_model")
    assert "scheme_model.esk:2:" in str(caught.value)
    assert "scheme_model" not in sys.modules


def test_the_finder_imports_nothing_unless_there_is_a_file() -> None:
    script = """
import sys
import eshkol
before = set(sys.modules)
try:
    import no_such_module_anywhere
except ModuleNotFoundError:
    pass
assert len([finder for finder in sys.meta_path if finder.__module__ == "eshkol"]) == 1
print(sorted(set(sys.modules) - before))
"""
    env = {**os.environ, "PYTHONPATH": str(Path(ek.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
