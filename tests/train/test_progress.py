"""Progress bars: on a terminal, in a file, on nothing, on output that is gone; time is the tests' own."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time

import pytest

import eshkol as ek
from eshkol.errors import EshkolError
from eshkol.train import progress
from eshkol.train.progress import ProgressBar, clock, number


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def seen(self) -> str:
        """What was written, without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())

    def screen(self) -> list[str]:
        """What stands on the screen at the end: a terminal that knows the movements bars are made of."""
        lines, row, column = [""], 0, 0
        for code, text in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b\r\n]+|\r|\n)", self.getvalue()):
            if code.endswith("A"):
                row -= int(code[:-1])
            elif code == "2K":
                lines[row] = ""
            elif text == "\r":
                column = 0
            elif text == "\n":
                row, column = row + 1, 0
                lines += [""] * (row == len(lines))
            elif text:
                lines[row] = lines[row].ljust(column)[:column] + text + lines[row][column + len(text) :]
                column += len(text)
            else:
                assert code[-1] in "mhl", f"a movement that is not known: {code}"
        return [line.rstrip() for line in lines]


class Broken(Terminal):
    """Output that fails after a while, as a closed pipe or a full disk does."""

    def __init__(self, error: Exception, after: int, terminal: bool) -> None:
        super().__init__()
        self.error, self.left, self.terminal = error, after, terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return super().write(text)


@pytest.fixture
def now(monkeypatch):
    """The time, which passes when a test says so."""
    times = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: times[0])
    return times


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


# --- plain lines --------------------------------------------------------------------------------------


def test_plain_lines_come_every_few_seconds_and_at_the_end(now):
    out = io.StringIO()
    bar = ProgressBar(100, "epoch 1", file=out)
    for current in range(1, 101):
        now[0] += 0.125
        bar.update(current, {"loss": 1 / current})
    assert out.getvalue().splitlines() == [
        "epoch 1: 40/100  8.0 it/s  0:05, 0:08 left  loss 0.025",
        "epoch 1: 80/100  8.0 it/s  0:10, 0:02 left  loss 0.0125",
        "epoch 1: 100/100  8.0 it/s  0:12  loss 0.01",
    ]


def test_a_short_loop_is_one_line(now):
    out = io.StringIO()
    bar = ProgressBar(3, file=out)
    for current in range(1, 4):
        now[0] += 0.5
        bar.update(current)
    assert out.getvalue() == "3/3  2.0 it/s  0:02\n"


def test_the_rate_follows_the_last_rounds(now):
    out = io.StringIO()
    bar = ProgressBar(1000, file=out)
    now[0] += 20  # the first round compiles
    bar.update(1)
    for current in range(2, 200):
        now[0] += 0.25
        bar.update(current)
    first, *_, last = out.getvalue().splitlines()
    assert first == "1/1000  20.0 s/it  0:20"  # no word of the time that is left: 5:33:00 would be wrong
    assert "4.0 it/s" in last


def test_a_loop_of_unknown_length(now):
    out = io.StringIO()
    bar = ProgressBar(None, "rows", file=out)
    for current in range(1, 13):
        now[0] += 1
        bar.update(current)
    bar.finish()
    assert out.getvalue().splitlines() == [
        "rows: 5  1.0 it/s  0:05",
        "rows: 10  1.0 it/s  0:10",
        "rows: 12  1.0 it/s  0:12",
    ]


def test_in_a_block_metrics_can_come_last(now):
    out = io.StringIO()
    with ProgressBar(2, "epoch", file=out) as bar:
        now[0] += 1
        bar.update(2, {"loss": 0.5})
        assert out.getvalue() == ""
        bar.update(2, {"loss": 0.5, "val_loss": 0.75})
    bar.finish()
    bar.update(1)
    assert out.getvalue() == "epoch: 2/2  2.0 it/s  0:01  loss 0.5  val_loss 0.75\n"


def test_the_last_line_comes_once(now):
    out = io.StringIO()
    with ProgressBar(2, "epoch", file=out) as bar:
        now[0] += 6
        bar.update(1)
        now[0] += 6
        bar.update(2)
        bar.finish({"val_loss": 0.5})
    assert out.getvalue().splitlines() == ["epoch: 1/2  6.0 s/it  0:06", "epoch: 2/2  6.0 s/it  0:12  val_loss 0.5"]


def test_metrics_given_to_finish(now):
    out = io.StringIO()
    bar = ProgressBar(5, file=out)
    now[0] += 1
    bar.update(3)
    bar.finish({"loss": 0.5})
    assert out.getvalue() == "3/5  3.0 it/s  0:01  loss 0.5\n"


def test_a_loop_that_is_stopped_tells_how_far_it_came(now):
    out = io.StringIO()

    def stopped() -> None:
        with ProgressBar(10, "epoch", file=out) as bar:
            now[0] += 2
            bar.update(4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert out.getvalue() == "epoch: 4/10  2.0 it/s  0:02\n"


def test_a_bar_that_was_full_starts_again(now):
    out = io.StringIO()
    bar = ProgressBar(2, "epoch", file=out)
    for _ in range(2):
        for current in (1, 2, 2):
            now[0] += 1
            bar.update(current, {"loss": 1})
    assert out.getvalue().splitlines() == [
        "epoch: 2/2  1.0 it/s  0:02  loss 1",
        "epoch: 2/2  2.0 it/s  0:01  loss 1",  # the time before the first update is not known to be its own
    ]


def test_characters_that_an_encoding_lacks_are_replaced(now):
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    ProgressBar(1, "größe", file=out).update(1)
    assert raw.getvalue().startswith(b"gr??e: 1/1")


def test_standard_output_is_where_it_goes(now, capsys):
    ProgressBar(1, "epoch").update(1)
    assert capsys.readouterr().out == "epoch: 1/1  0:00\n"


def test_quiet_is_quiet(capsys, monkeypatch):
    with ProgressBar(3, quiet=True) as bar:
        for current in range(1, 4):
            bar.update(current, {"loss": 1.0})
    monkeypatch.setattr(sys, "stdout", None)  # as without a console on Windows
    ProgressBar(1).update(1)
    assert capsys.readouterr() == ("", "")


def test_metrics_are_read_only_when_they_are_drawn(now):
    class Costly:
        read = 0

        def __float__(self) -> float:
            Costly.read += 1
            return 0.25

    out = io.StringIO()
    bar = ProgressBar(1000, file=out)
    for current in range(1, 1001):
        bar.update(current, {"loss": Costly()})
    assert Costly.read == 1
    assert "loss 0.25" in out.getvalue()


def test_numbers_for_people():
    assert [clock(s) for s in (0, 59.6, 61, 3723, 90000, float("inf"))] == [
        "0:00",
        "1:00",
        "1:01",
        "1:02:03",
        "25:00:00",
        "?",
    ]
    with ek.use_backend("reference"):
        assert number(ek.tensor(0.5) * 2) == "1"
    assert [number(v) for v in (3, 12345, 0.123456, 1e-7, "warm", None)] == [
        "3",
        "12345",
        "0.1235",
        "1e-07",
        "warm",
        "None",
    ]


# --- a terminal ---------------------------------------------------------------------------------------


def test_a_bar_is_drawn_in_its_place(now, terminal):
    bar = ProgressBar(40, "epoch [1]", file=terminal)
    for current in range(1, 41):
        now[0] += 0.125
        bar.update(current, {"loss": 1 / current})
    seen = terminal.seen()
    assert "epoch [1]" in seen
    assert "━" in seen
    assert "20/40" in seen
    assert "8.0 it/s  0:02, 0:02 left  loss 0.05" in seen
    assert terminal.screen() == [f"epoch [1] {'━' * 24} 40/40 8.0 it/s  0:05  loss 0.025", ""]
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") == 1  # the cursor is back


def test_a_terminal_is_not_drawn_too_often(now, terminal):
    bar = ProgressBar(10_000, file=terminal)
    before = len(terminal.getvalue())
    for current in range(1, 1000):
        now[0] += 0.0001
        bar.update(current)
    drawn = terminal.getvalue()[before:].count("it/s")
    bar.finish()
    assert drawn == 0  # 0.0999 seconds


def test_bars_within_bars_share_the_screen(now, terminal):
    with ProgressBar(2, "epochs", file=terminal) as outer:
        for epoch in (1, 2):
            inner = ProgressBar(3, f"batches {epoch}", file=terminal)
            for current in (1, 2, 3):
                now[0] += 1
                inner.update(current)
            outer.update(epoch)
    full = "━" * 24
    assert terminal.screen() == [
        f"batches 1 {full} 3/3 1.0 it/s  0:03",
        f"batches 2 {full} 3/3 1.0 it/s  0:03",
        f"epochs {full} 2/2 3.0 s/it  0:06",
        "",
    ]
    assert terminal.getvalue().count("\x1b[?25h") == 1


def test_what_others_print_goes_above_the_bar(now, monkeypatch, terminal):
    monkeypatch.setattr(sys, "stdout", terminal)
    with ProgressBar(3, "epoch") as bar:
        now[0] += 1
        bar.update(1)
        print("a word")
        inner = ProgressBar(1, "inner")  # standard output is rich's at this time
        inner.update(1)
    assert sys.stdout is terminal
    word, inner_line, line, _ = terminal.screen()
    assert (word, inner_line[:5], line[:5]) == ("a word", "inner", "epoch")


@pytest.mark.parametrize(
    ("columns", "last"),
    [
        (60, "epoch ━━━━━━━━ 4/4 4.0 it/s  0:01  loss 0.5  accuracy 0.75"),
        (56, "epoch: 4/4  4.0 it/s  0:01  loss 0.5  accuracy 0.75"),
        (40, "epoch  loss 0.5  accuracy 0.75"),
        (20, "epoch  loss 0.5  ac…"),
    ],
)
def test_what_matters_least_is_left_out_on_a_narrow_terminal(columns, last, now, monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", str(columns))
    with ProgressBar(4, "epoch", file=terminal) as bar:
        now[0] += 1
        bar.update(4, {"loss": 0.5, "accuracy": 0.75})
    assert terminal.screen() == [last, ""]


def test_a_dumb_terminal_has_plain_lines(now, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    ProgressBar(1, "epoch", file=out).update(1)
    assert out.getvalue() == "epoch: 1/1  0:00\n"


# --- output that is gone ------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("after", [0, 1, 3, 6])
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("closed")])
def test_broken_output_stops_no_training(now, monkeypatch, terminal, after, error):
    monkeypatch.setenv("TERM", "xterm")
    out = Broken(error, after, terminal)
    monkeypatch.setattr(sys, "stdout", out)
    with ProgressBar(8, "epochs") as outer:
        for epoch in range(1, 9):
            inner = ProgressBar(2, "batches")
            for current in (1, 2):
                now[0] += 10
                inner.update(current)
            outer.update(epoch)
    assert sys.stdout is out
    assert out.left < 0


def test_a_closed_file_stops_no_training(now):
    out = io.StringIO()
    bar = ProgressBar(2, file=out)
    out.close()
    bar.update(2)
    ProgressBar(2, file=out).update(2)


def test_a_reader_that_goes_away_stops_no_training():
    code = """
import sys
from eshkol.train.progress import ProgressBar
bar = ProgressBar(1000, seconds=0)
for current in range(1, 1001):
    bar.update(current)
print("done", file=sys.stderr)
import os; os._exit(0)
"""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "done\n")


# --- misuse and cost ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ProgressBar(-1), "ProgressBar: a count is wanted as total, not -1"),
        (lambda: ProgressBar(1.5), "ProgressBar: a count is wanted as total, not 1.5"),
        (lambda: ProgressBar(1, quiet=True).update("1"), "ProgressBar.update: a count is wanted as current, not '1'"),
        (lambda: ProgressBar(1, quiet=True).update(1, [0.5]), "ProgressBar.update: the metrics are a list"),
    ],
)
def test_misuse_is_told(call, message):
    with pytest.raises(EshkolError, match=message):
        call()


def test_an_update_that_draws_nothing_is_cheap():
    bar = ProgressBar(10**9, file=io.StringIO(), seconds=1000)
    metrics = {"loss": 0.5, "accuracy": 0.75}
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for current in range(2000):
            bar.update(current, metrics)
        best = min(best, time.perf_counter() - began)
    assert best / 2000 < 20e-6
