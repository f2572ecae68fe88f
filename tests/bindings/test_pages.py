"""The example and the page about Scheme and Python side by side do what they say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from eshkol.bindings import spelling

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "bindings"
PAGE = (ROOT / "docs" / "bindings.md").read_text("utf-8")


def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the example; the blocks share their names, as a reader would type them one after another."""
    monkeypatch.chdir(EXAMPLES)
    names = {"__name__": "page"}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"bindings.md, python block {number}", "exec"), names)


def test_the_page_has_the_table_of_spellings() -> None:
    table = re.search(r"^\| in Scheme.*?\n\n", spelling.__doc__ or "", re.MULTILINE | re.DOTALL)
    assert table is not None
    assert table[0] in PAGE


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("use_model", EXAMPLES / "use_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    out = capsys.readouterr().out
    assert "height 2.000, slope 0.500; at 4 it is 4.000" in out
    assert "model.esk:7:" in out
    assert out.count("step ") == 6
