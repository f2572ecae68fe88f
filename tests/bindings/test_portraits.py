"""Small pictures of tensors at the prompt: bars, greys, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from eshkol.bindings.guest import in_session
from eshkol.bindings.portraits import drawn, lines_of
from eshkol.runtime.scheme import Root


def test_bars_and_greys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert lines_of(np.arange(8.0), 80) == ["▁▂▃▄▅▆▇█  ; from 0 to 7"]
    (line,) = lines_of(np.arange(1000.0), 50)
    assert len(line) <= 50
    assert lines_of(np.ones(20), 80) == []
    *rows, told = lines_of(np.eye(8), 80)
    assert told == "; from 0 to 1"
    assert rows == [" " * (2 * k) + "@@" + " " * (2 * (7 - k)) for k in range(8)]
    *rows, _ = lines_of(np.add.outer(np.arange(301.0), np.arange(500.0)), 60)
    assert len(rows) == 32
    assert {len(row) for row in rows} == {60}
    assert rows[0][0] == " "
    assert rows[-1][-1] == "@"
    assert lines_of(np.arange(20.0).reshape(2, 10), 80) == []


def test_what_is_drawn() -> None:
    def pictures(session):  # type: ignore[no-untyped-def]
        return [
            drawn(session, Root(session.machine, session.evaluate(text)), 80)
            for text in (
                "(tensor (range 10))",
                "(tensor (range 3))",
                "(reshape (tensor (range 81)) 9 9)",
                "(tensor 1.5)",
                "(reshape (tensor (range 64)) 4 4 4)",
                "(tensor (list +inf.0 1 2 3 4 5 6 7 8 9))",
            )
        ]

    one, *others = in_session(pictures)
    assert [bool(lines) for lines in others] == [False, True, False, False, False]
    assert one[0].endswith("; from 0 to 9")
    assert others[1][-1] == "; from 0 to 80"
