"""Histories: what is appended is there, comes back from CSV bit for bit, and is drawn."""

from __future__ import annotations

import builtins
import io
import math
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from eshkol.errors import EshkolError
from eshkol.train.history import PLAIN_SPARKS, SPARKS, History, sparkline


def short() -> History:
    history = History()
    for epoch, loss in enumerate([4.0, 2.0, 1.0, 1.5], start=1):
        history.append(epoch, 10 * epoch, {"loss": loss, "val_loss": loss + 0.5})
    history.append(5, 50, {"loss": 1.25, "accuracy": 0.9})
    return history


def test_what_was_appended_is_there():
    history = short()
    assert history["loss"] == [4.0, 2.0, 1.0, 1.5, 1.25]
    assert history["accuracy"] == [0.9]
    assert history.names == ["loss", "val_loss", "accuracy"]
    assert history.epochs == [1, 2, 3, 4, 5]
    assert [row.step for row in history.of("val_loss")] == [10, 20, 30, 40]
    assert "loss" in history
    assert "nothing" not in history
    assert len(history) == len(list(history)) == 5
    assert repr(history) == "<History: 5 rows of loss, val_loss, accuracy>"


def test_several_rows_of_an_epoch():
    history = History()
    for step in range(6):
        history.append(step // 3, step, {"loss": step})
    assert history.epochs == [0, 1]
    assert len(history["loss"]) == 6


def test_the_best_row():
    history = short()
    history.append(6, 60, {"loss": float("nan")})
    assert (history.best("loss").epoch, history.best("loss", highest=True).epoch) == (3, 1)
    only = History()
    only.append(1, 1, {"loss": float("nan")})
    with pytest.raises(EshkolError, match="every value of 'loss' is NaN"):
        only.best("loss")


def test_numbers_of_every_kind():
    history = History()
    with ek.use_backend("reference"):
        history.append(
            np.int64(1), 2, {"a": 1, "b": np.float32(0.5), "c": ek.tensor([1.0, 2.0]).sum(), "d": np.array(3)}
        )
    assert history.rows[0].values == {"a": 1.0, "b": 0.5, "c": 3.0, "d": 3.0}
    assert all(type(value) is float for value in history.rows[0].values.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: h.append(1.5, 1, {}), "an integer is wanted as the epoch, not 1.5"),
        (lambda h: h.append(1, "1", {}), "an integer is wanted as the step, not '1'"),
        (lambda h: h.append(1, 1, {"epoch": 1.0}), "'epoch' cannot be the name of a quantity"),
        (lambda h: h.append(1, 1, {"": 1.0}), "'' cannot be the name"),
        (lambda h: h.append(1, 1, {"a\nb": 1.0}), r"'a\\nb' cannot be the name"),
        (lambda h: h.append(1, 1, {3: 1.0}), "3 cannot be the name"),
        (lambda h: h.append(1, 1, {"a": "1"}), "History.append: a number is wanted for 'a', not '1'"),
        (lambda h: h.append(1, 1, {"a": np.zeros(2)}), "a number is wanted for 'a'"),
        (lambda h: h.append(1, 1, {"a": None}), "a number is wanted for 'a'"),
        (lambda h: h["nothing"], r"(?s)there is no quantity 'nothing'.*there are loss, val_loss, accuracy"),
        (lambda h: h.plot(["nothing"]), "there is no quantity 'nothing'"),
    ],
)
def test_misuse_is_told(call, message):
    history = short()
    with pytest.raises(EshkolError, match=message):
        call(history)
    assert history == short()  # a row that is refused leaves nothing


def test_an_empty_history_says_so():
    with pytest.raises(EshkolError, match="nothing has been appended yet"):
        History()["loss"]
    with pytest.raises(EshkolError, match="there is nothing to draw"):
        History().plot()
    assert History().table() == "nothing has been written down yet"


# --- kept -------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=5).filter(
    lambda name: name not in ("epoch", "step")
)
values = st.dictionaries(names, st.floats(), max_size=3)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 5), st.integers(0, 2**70), values), max_size=4))
def test_csv_gives_the_same_numbers(tmp_path_factory, rows):
    history = History()
    for epoch, step, found in rows:
        history.append(epoch, step, found)
    path = tmp_path_factory.mktemp("csv") / "history.csv"
    history.to_csv(path)
    again = History.from_csv(path)
    assert again == history
    assert again.names == history.names
    for one, other in zip(history, again, strict=True):
        for name, value in one.values.items():  # NaN's sign and payload are not kept, all else is
            assert math.isnan(value) or struct.pack("d", value) == struct.pack("d", other.values[name])


def test_the_csv_is_plain(tmp_path):
    short().to_csv(tmp_path / "h.csv")
    lines = (tmp_path / "h.csv").read_bytes().split(b"\n")
    assert lines[0] == b"epoch,step,loss,val_loss,accuracy"
    assert lines[1] == b"1,10,4.0,4.5,"
    assert lines[5:] == [b"5,50,1.25,,0.9", b""]


def test_a_checkpoint_gives_the_same_history():
    history = short()
    again = History()
    again.append(0, 0, {"other": 1.0})
    again.load_state_dict(history.state_dict())
    assert again == history
    assert again.names == history.names
    history.append(6, 60, {"loss": 0.0})
    assert again != history


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "h.csv"
    short().to_csv(path)
    before = path.read_bytes()

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(EshkolError, match=r"History.to_csv: cannot write '.*h.csv': no space left on device"):
        History().to_csv(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["h.csv"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(
        EshkolError, match=r"cannot write .*no such file or directory(?s:.*)hint: give a path in a folder"
    ):
        short().to_csv(tmp_path / "none" / "h.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is not the CSV of a history: its first line is ''"),
        (b"a,b\n1,2\n", "its first line is 'a,b'"),
        (b"epoch,step,a,a\n", "names that are all different"),
        (b"epoch,step,a\n1,2\n", "line 2: 3 cells are wanted, and there are 2"),
        (b"epoch,step,a\n1,2,3\n1,2,x\n", "line 3: could not convert string to float: 'x'"),
        (b"epoch,step,a\n1.5,2,3\n", "line 2: invalid literal for int"),
        (b"\xff", "is no text in UTF-8"),
        (b'epoch,step,"a\n', "is no CSV"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "h.csv").write_bytes(text)
    with pytest.raises(EshkolError, match=message):
        History.from_csv(tmp_path / "h.csv")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(EshkolError, match=r"History.from_csv: cannot read .*: no such file"):
        History.from_csv(tmp_path / "h.csv")


# --- seen -------------------------------------------------------------------------------------------


def test_sparklines():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == SPARKS
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert sparkline([0.0, math.nan, 7.0, math.inf]) == "▁x█x"
    assert sparkline([math.nan]) == "x"
    assert sparkline([]) == ""
    assert sparkline(list(range(8)), plain=True) == PLAIN_SPARKS
    assert sparkline([v for v in range(8) for _ in range(100)], width=8) == SPARKS
    assert sparkline([-1.7e308, 1.7e308, 1.7e308]) == "▁██"
    assert sparkline([0.0, 5e-324]) == "▁█"


def test_the_table_is_printed():
    out = io.StringIO()
    short().show(out)
    assert out.getvalue().splitlines() == [
        "                 first  last  lowest  highest",
        "loss      █▃▁▂▂      4  1.25       1        4",
        "val_loss  █▃▁▂     4.5     2     1.5      4.5",
        "accuracy  ▁        0.9   0.9     0.9      0.9",
    ]


def test_a_terminal_without_blocks_has_other_bars():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    history = short()
    history.append(6, 60, {"größe": 1.0})
    history.show(out)
    out.flush()
    assert b"#-_.." in raw.getvalue()
    assert b"gr??e" in raw.getvalue()


def test_curves_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    figure = short().plot()
    loss, accuracy = figure.axes
    assert (loss.get_title(), accuracy.get_title()) == ("loss", "accuracy")
    training, validation = loss.get_lines()
    assert training.get_ydata().tolist() == [4.0, 2.0, 1.0, 1.5, 1.25]
    assert validation.get_xdata().tolist() == [1, 2, 3, 4]
    assert [text.get_text() for text in loss.get_legend().get_texts()] == ["training", "validation"]
    assert (loss.get_xlabel(), accuracy.get_legend()) == ("epoch", None)
    assert short().plot()._repr_png_().startswith(b"\x89PNG\r\n\x1a\n")  # what a notebook shows
    short().png(tmp_path / "h.png", ["val_loss"])
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert os.listdir(tmp_path) == ["h.png"]


def test_curves_go_over_steps_where_epochs_have_several(tmp_path):
    pytest.importorskip("matplotlib")
    history = History()
    for step in range(6):
        history.append(step // 3, step, {"loss": 1.0})
    history.append(1, 6, {"val_loss": 2.0})
    (axes,) = history.plot().axes
    assert axes.get_xlabel() == "step"
    assert [line.get_xdata().tolist() for line in axes.get_lines()] == [list(range(6)), [6]]


def test_without_matplotlib_the_remedy_is_told(monkeypatch):
    really = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(EshkolError, match=r"(?s)History.plot: curves are drawn by matplotlib.*eshkol\[bench\]"):
        short().plot()
