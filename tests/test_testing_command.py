"""`eshkol test`: what is run and told, in one process and in several; files for services; Ctrl-C. And `eshkol fmt`."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from eshkol.cli.main import main

Call = Callable[..., tuple[int, str, str]]

GOOD = """\
(import (scheme base) (eshkol testing))
(test-case "one is one" (check-equal 1 1) (check (= 1 1)))
(test-case "nearly" (check-near '(1.0 #(2.0)) '(1.0 #(2.0000000001)) 1e-9) (check-near +inf.0 +inf.0))
(test-case "refused" (check-error (vector-ref (vector) 3) "VECTOR-REF") (check-error (raise 'x)))
"""
BAD = """\
(import (scheme base) (scheme write) (eshkol testing))
(define (third list)
  (list-ref list 2))

(test-case "several checks fail"
  (check-equal (+ 1 2)
               4)
  (check-near 1.0 1.1)
  (check-equal 1 1)
  (check-error (+ 1 2) "sum"))
(test-case "an error"
  (check-equal (third '(1 2)) 3)
  (check #f))
(display "here & <there>")
(check (memv 4 '(1 2)))
(test-case "well" (check #t))
"""
TRANSCRIPT = "(+ 1 2) ;=> 3\n(define energy 5)\nenergy ;=> 6\n"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command line in a folder with some files; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("good", GOOD), ("bad", BAD), ("talk", TRANSCRIPT)):
        (tmp_path / f"{name}.esk").write_text(text)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capfd.readouterr()

    return run


def test_failures_are_told_with_their_places(call: Call) -> None:
    code, out, err = call("test", "good.esk", "bad.esk", "talk.esk", "-j1")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[:11] == [
        "FAILED bad.esk: several checks fail",
        "bad.esk:6: (+ 1 2)", "  expected: 4", "  actual:   3",
        "bad.esk:8: 1.0", "  expected: 1.1, up to 1e-9", "  actual:   1.0",
        "bad.esk:10: (+ 1 2)", '  expected: an error with "sum"', "  actual:   no error",
        "ERROR bad.esk: an error",
    ]  # fmt: skip
    assert lines[11] == "bad.esk:3"
    assert "list-ref" in lines[13]
    assert "bad.esk:15: (memv 4 '(1 2))" in lines
    assert "here & <there>" in lines
    assert lines[-6:-1] == ["---", "@@ talk.esk:3 @@", " energy", "-;=> 6", "+;=> 5"]
    assert lines[-1].startswith("3 files, 10 tests: 6 passed, 3 failed, 1 ended with errors, in ")


def test_good_files_are_one_line(call: Call) -> None:
    code, out, _ = call("test", "good.esk")
    assert code == 0
    assert out.startswith("1 file, 3 tests: 3 passed, in ")
    assert out.count("\n") == 1


def test_words_choose_tests(call: Call) -> None:
    code, out, _ = call("test", "-j1", "good.esk", "bad.esk", "talk.esk", "-k", "ENERGY", "-k", "well", "-v")
    named = [line.split(": ", 1)[1] for line in out.splitlines() if line.startswith(("passed", "failed"))]
    assert named == ["(memv 4 '(1 2))", "well", "line 2: (define energy 5)", "line 3: energy"]
    assert code == 1
    code, out, _ = call("test", "-j1", "good.esk", "bad.esk", "-k", "GOOD")  # of a file
    assert "3 passed" in out


def test_what_else_can_happen_to_a_file(call: Call, tmp_path: Path) -> None:
    texts = {
        "broken": "(display 1", "leaves": "(exit 3)", "fine": "(exit 0)", "none": "(define x 1)",
        "dies": '(import (eshkol)) ((py-ref (py-import "os") (quote abort)))',
        "reads": "(import (scheme base) (scheme read) (eshkol testing)) (check (eof-object? (read)))",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / f"{name}.esk").write_text(text)
    names = [f"{name}.esk" for name in (*texts, "nowhere")]
    code, out, _ = call("test", "-j", "2", *names, "--junit", "out/tests.xml")
    assert code == 1
    assert "this ( is never closed" in out
    assert "actual:   exit 3" in out
    assert "it ended with signal SIGABRT" in out
    assert "cannot read nowhere.esk" in out
    assert "7 files, 7 tests: 3 passed, 4 ended with errors" in out
    order = [line.split()[1] for line in out.splitlines() if line.startswith("ERROR")]
    assert order == ["broken.esk:", "leaves.esk:", "dies.esk:", "nowhere.esk:"]
    suites = ElementTree.parse(tmp_path / "out" / "tests.xml").getroot()
    assert [suite.get("errors") for suite in suites] == ["1", "1", "0", "0", "1", "0", "1"]


def test_the_file_for_services(call: Call, tmp_path: Path) -> None:
    call("test", "-j1", "good.esk", "bad.esk", "talk.esk", "--junit", "tests.xml")
    root = ElementTree.parse(tmp_path / "tests.xml").getroot()
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == ("testsuites", "10", "3", "1")
    suites = {suite.get("name"): suite for suite in root}
    cases = {case.get("name"): case for case in suites["bad.esk"].iter("testcase")}
    assert len(cases["several checks fail"].findall("failure")) == 3
    assert (cases["several checks fail"].get("line"), cases["an error"].get("line")) == ("6", "3")
    error = cases["an error"].find("error")
    assert error is not None
    assert "list-ref" in (error.get("message") or "")
    assert suites["bad.esk"].findtext("system-out") == "here & <there>"
    assert all(float(case.get("time") or -1) >= 0 for case in root.iter("testcase"))
    assert [case.get("classname") for case in suites["talk.esk"].iter("testcase")] == ["talk"] * 3


def test_durations_and_misuse(call: Call) -> None:
    _, out, _ = call("test", "good.esk", "--durations", "2")
    assert len([line for line in out.splitlines() if line.startswith("   ") and "good.esk: " in line]) == 2
    code, _, err = call("test")
    assert (code, "belongs to no project" in err) == (2, True)
    code, _, err = call("test", "-j", "-1", "good.esk")
    assert (code, "take numbers" in err) == (2, True)


def test_transcripts_are_brought_up_to_date(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("test", "--update", "talk.esk")
    assert (code, "updated: talk.esk" in out) == (0, True)
    assert (tmp_path / "talk.esk").read_text() == TRANSCRIPT.replace("6", "5")
    assert call("test", "talk.esk")[0] == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_interrupts_leave_a_summary(call: Call, tmp_path: Path, processes: str) -> None:
    (tmp_path / "long.esk").write_text('(call-with-output-file "begun" (lambda (p) p))\n(let loop () (loop))\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "eshkol", "test", "-j", processes, "good.esk", "long.esk", "talk.esk"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    began = time.monotonic()
    while not (tmp_path / "begun").exists() and time.monotonic() - began < 60:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "of 3 files have run" in out
    assert "good.esk" not in err


# ---- fmt -----------------------------------------------------------------------------------------------------------


def test_files_are_laid_out_and_keep_their_permissions(call: Call, tmp_path: Path) -> None:
    (tmp_path / "sub" / ".hidden").mkdir(parents=True)
    ugly, broken = "(define (f x)\n      x)\n", "(f\n"
    for name in ("a.esk", "sub/b.scm", "sub/.hidden/c.esk"):
        (tmp_path / name).write_text(ugly)
    (tmp_path / "sub/z.esk").write_text(broken)
    (tmp_path / "a.esk").chmod(0o754)
    code, out, _ = call("fmt", "--check", "a.esk", "sub")
    assert code == 1
    assert out.splitlines()[:2] == ["would change: a.esk", "would change: sub/b.scm"]
    code, out, _ = call("fmt", "--diff", "a.esk")
    assert (code, "-      x)" in out.splitlines(), "+  x)" in out.splitlines()) == (0, True, True)
    assert (tmp_path / "a.esk").read_text() == ugly
    code, out, err = call("fmt", "a.esk", "sub")
    assert (code, out.splitlines()[-1]) == (1, "3 files: 2 laid out, 0 as they should be, 1 with errors")
    assert "sub/z.esk:1:1" in err
    assert (tmp_path / "a.esk").read_text() == "(define (f x)\n  x)\n"
    assert stat.S_IMODE((tmp_path / "a.esk").stat().st_mode) == 0o754
    assert (tmp_path / "sub/z.esk").read_text() == broken
    assert (tmp_path / "sub/.hidden/c.esk").read_text() == ugly
    assert call("fmt", "--check", "a.esk", "sub/b.scm")[0] == 0
    assert call("fmt")[0] == 2
    assert call("fmt", "-", "a.esk")[0] == 2
    (tmp_path / "latin.esk").write_bytes(b'"\xe9"')
    assert "is not UTF-8" in call("fmt", "latin.esk")[2]


def test_a_full_disk_leaves_the_file(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.esk"
    path.write_text("(f\na)\n")
    monkeypatch.setattr("eshkol.io.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    code, _, err = call("fmt", "a.esk")
    assert (code, "the earlier file is as it was" in err) == (1, True)
    assert path.read_text() == "(f\na)\n"
    assert not [name for name in os.listdir(tmp_path) if "unfinished" in name]


def test_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "eshkol", "fmt", "-"]
    done = subprocess.run(command, input="(f\na) ; é\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "(f\n a) ; é\n")
    done = subprocess.run(command, input="(f\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, "never closed" in done.stderr) == (1, "", True)


SLOW = """\
(import (scheme base) (scheme write) (eshkol processes) (eshkol testing))
(define (wait) (sleep 0.01) (wait))
(test-case "quick" (check #t))
(test-case "for ever" (check #t) (check-equal 1 2) (wait))
(test-case "inside" (check-error (wait)))
(test-case "quick again" (check #t))
(display "the end")
"""


LATE = "  expected: it ends within 2 s\n  actual:   it took longer\n"


def test_a_test_that_takes_too_long_is_ended_and_the_rest_goes_on(call: Call) -> None:
    Path("slow.esk").write_text(SLOW)
    code, out, err = call("test", "slow.esk", "good.esk", "--timeout", "2", "-j1")
    assert (code, err) == (1, "")
    assert "FAILED slow.esk: for ever\nslow.esk:4: 1\n  expected: 2\n  actual:   1\n" in out
    assert out.count(LATE) == 2
    assert "FAILED slow.esk: inside\n" in out
    assert "quick" not in out.partition("--- what")[0]
    assert "the end" in out
    assert out.splitlines()[-1].startswith("2 files, 7 tests: 5 passed, 2 failed, in ")


def test_programs_and_forms_that_take_too_long_are_ended(call: Call) -> None:
    Path("whole.esk").write_text("(import (scheme base) (eshkol processes))\n(sleep 600)\n")
    Path("said.esk").write_text("(define (f) (f)) ;\n(f) ;=> 4\n")
    code, out, err = call("test", "whole.esk", "said.esk", "--timeout", "2", "-j2")
    assert (code, err) == (1, "")
    assert "ERROR whole.esk: the program ends well\nwhole.esk\n" + LATE in out
    assert "@@ said.esk:2 @@" in out
    assert "it ends within 2 s: it took longer" in out
    assert ", 1 ended with errors, in " in out.splitlines()[-1]


def test_a_limit_is_a_number_of_seconds(call: Call) -> None:
    assert call("test", "good.esk", "--timeout", "0")[0] == 2
    assert call("test", "good.esk", "--timeout", "60")[0] == 0
