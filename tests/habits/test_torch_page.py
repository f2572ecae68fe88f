"""The page for those who come from PyTorch is true: its code runs, and each comment says what its line gives."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import eshkol as ek

PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def said(lines: list[str], node: ast.stmt) -> str | None:
    """What the comment after a statement says that it gives."""
    _, mark, comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")
    return comment.strip() if mark and isinstance(node, ast.Expr) else None


def test_every_line_of_the_page_gives_what_it_says(tmp_path, monkeypatch, interpreting):
    monkeypatch.chdir(tmp_path)
    ek.manual_seed(0)
    names: dict[str, object] = {}
    checked = 0
    for block in BLOCKS:
        lines = block.splitlines()
        for node in ast.parse(block).body:
            text = ast.get_source_segment(block, node)
            expected = said(lines, node)
            if expected is None:
                exec(text, names)
                continue
            assert eval(text, names) == eval(expected, names), text
            checked += 1
    assert checked >= 30


@pytest.mark.parametrize(
    ("code", "holds"),
    [
        ("x.std() ** 2", "((x - x.mean()) ** 2).mean()"),
        ("ek.tensor([1.0, 2.0]).median()", "ek.tensor(1.5)"),
        ("ek.tensor([1.0, 2.0]).median(0).values", "ek.tensor(1.0)"),
        ("ek.meshgrid(x[0], x[1])[0][0]", "x[0]"),
        ("ek.take(x, ek.tensor([1]))[0]", "x[1]"),
        ("ek.repeat(x[0], 2)[:2]", "x[0, :1].expand(2)"),
        ("x[0].repeat(2)[:3]", "x[0]"),
    ],
)
def test_the_table_of_differences_is_true(code, holds, interpreting):
    names = {"ek": ek, "x": ek.tensor([[1.0, 2.0, 4.0], [4.0, 5.0, 9.0]])}
    assert ek.allclose(eval(code, names), eval(holds, names))


def test_std_says_in_help_what_it_divides_by():
    assert "as in NumPy" in ek.var.__doc__
    assert "as in NumPy" in ek.std.__doc__
