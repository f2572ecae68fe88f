"""The lines of `tests/habits/jax_table.py` with JAX itself, where it is installed: it gives what is expected of us.

Draws differ, as the generators do; the lines about them ask for shapes, dtypes and bounds only.
"""

from __future__ import annotations

from importlib import import_module

import pytest

jax = pytest.importorskip("jax")

for _part in ("numpy", "scipy.linalg", "scipy.special", "scipy.stats"):
    import_module(f"jax.{_part}")

from jax_table import HABITS, SECTIONS, names, plain, same


@pytest.mark.parametrize("section", SECTIONS)
def test_jax_gives_what_the_table_says(section):
    known = names(jax)
    wrong = {}
    for of, expression, expected in HABITS:
        if of == section:
            try:
                same(plain(eval(expression, known)), plain(eval(expected, known)))
            except Exception as error:
                wrong[expression] = f"{type(error).__name__}: {error}"[:300]
    assert not wrong, "\n".join(f"{line}\n    {why}" for line, why in wrong.items())
