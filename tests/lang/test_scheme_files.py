"""The transcripts under tests/scheme, each run by `eshkol test`; how transcripts are taken apart, shown and updated."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eshkol.cli.main import main
from eshkol.lang.transcripts import Expectations, Outcome, Report, find, run, split

FOLDER = Path(__file__).parents[1] / "scheme"


@pytest.mark.parametrize("path", find([FOLDER]), ids=lambda path: str(path.relative_to(FOLDER)))
def test_transcript(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CHECK", "1")  # a mistake of the compiler of derivatives is an error
    code = main(["test", str(path)])
    shown = capsys.readouterr()
    assert code == 0, shown.out + shown.err


def test_the_suite_is_large() -> None:
    """The conformance suite holds at least 1,200 checks of R7RS."""
    files = find([FOLDER / "r7rs"])
    assert sum(check.expected.count for path in files for check in split(path.read_text(encoding="utf-8"))) >= 1200


class Scripted:
    """A session that answers what it is told to, and keeps what it was asked."""

    def __init__(self, **answers: Outcome) -> None:
        self.answers, self.asked = answers, []

    def evaluate(self, text: str) -> Outcome:
        self.asked.append(text)
        return self.answers.get(text, Outcome())


def test_split_finds_forms_and_expectations() -> None:
    text = (
        "; a comment\n(f 1) ;=> 2\n'(a\n b) ; no expectation\n;out> one\n;out> two\n  ;=> (a b)\nx\n;error> unbound\n"
    )
    checks = split(text)
    assert [(check.form, check.line) for check in checks] == [("(f 1)", 2), ("'(a\n b)", 3), ("x", 8)]
    assert [check.expected for check in checks] == [
        Expectations("2"),
        Expectations("(a b)", ("one", "two")),
        Expectations(errors=("unbound",)),
    ]


@pytest.mark.parametrize(
    "form",
    [
        "a", "|a b|", "|a;b|c", '"a ; \\" b"', "#\\;", "#\\(", "#\\x41", "'a", "''(a)", "`(a ,@b ,c)", "#'x",
        "#`(a #,b)", "#(1 2)", "#u8(1)", "[a (b) c]", "#0=(a . #0#)", "(a #| ) |# b)", "(a ; )\n b)", "(a #;(b c) d)",
        "#;(a) b", "'#;a b", "#;#;a b c", "(#\\) )", '("(" #\\")', "(|)|)", "#t", "-1.5e3", "(a . b)",
        "#| a #| b |# |# c",
    ],
)  # fmt: skip
def test_one_form_is_one_form(form: str) -> None:
    first, second, third = split(f"before\n{form} ;=> 1\nafter ;=> 2\n")
    assert (first.form, second.expected, third.form) == ("before", Expectations("1"), "after")
    assert form.endswith(second.form)


@given(st.text(alphabet="ab()[]\"|#;\\'`,@ \n>=1", max_size=60))
def test_any_text_splits_into_its_parts(text: str) -> None:
    checks = split(text)
    assert all(text[check.start : check.end] == check.form and check.form for check in checks)
    ends = [0, *(check.after for check in checks)]
    assert all(before <= check.start <= check.end <= check.after for before, check in zip(ends, checks, strict=False))


def test_what_counts_as_met() -> None:
    assert Expectations().accept(Outcome("5"))
    assert not Expectations().accept(Outcome(output="text"))
    assert not Expectations().accept(Outcome(error="no"))
    assert Expectations("5").accept(Outcome("5"))
    assert not Expectations("5").accept(Outcome("5.0"))
    assert not Expectations("5").accept(Outcome(error="5"))
    assert Expectations(output=("a", "", "b")).accept(Outcome(output="a \n\nb\n"))
    assert Expectations(errors=("car", "pair")).accept(Outcome(error="car: no pair"))
    assert not Expectations(errors=("car", "cdr")).accept(Outcome(error="car: no pair"))
    assert Expectations(errors=("",)).accept(Outcome(error="anything"))
    assert not Expectations(errors=("",)).accept(Outcome("5"))


def test_diff_shows_form_expected_and_found(tmp_path: Path) -> None:
    path = tmp_path / "a.esk"
    path.write_text("(good) ;=> 1\n\n(bad)\n;out> text\n;=> 2\n")
    report = run(path, Scripted(**{"(good)": Outcome("1"), "(bad)": Outcome("3", "text\n")}))
    assert (report.count, len(report.failures)) == (3, 1)
    assert report.diff() == f"@@ {path}:3 @@\n (bad)\n ;out> text\n-;=> 2\n+;=> 3\n"


def test_update_keeps_what_fits_and_the_layout(tmp_path: Path) -> None:
    path = tmp_path / "a.esk"
    path.write_text("(a)   ;=> 1 \n(b)\n;=> 2\n; kept\n(c) ;error> part\n(d)\n(e) ;=>\n")
    answers = {
        "(a)": Outcome("10"),
        "(b)": Outcome("3", "line\n"),
        "(c)": Outcome(error="a part of it"),
        "(d)": Outcome(error="new\nmore"),
        "(e)": Outcome("filled"),
    }
    path.write_text(run(path, Scripted(**answers)).updated())
    wanted = "(a)   ;=> 10\n(b)\n;out> line\n;=> 3\n; kept\n(c) ;error> part\n(d)\n;error> new\n(e) ;=> filled\n"
    assert path.read_text() == wanted
    report = run(path, Scripted(**answers))
    assert (report.count, report.failures, report.updated()) == (6, (), wanted)


def test_a_value_that_is_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "b.esk").write_text("(a) ;=> 1\n(b) ;=> 2\n(c)\n")
    report = run(tmp_path / "b.esk", Scripted(**{"(a)": Outcome("1")}))
    assert len(report.failures) == 1
    assert "+;=> (nothing)" in report.diff()
    assert Report("x", "", ()).diff() == ""
