"""Profiles are true: programs of which it is known where time and memory go, and what profiles say of them.

Shares of samples are compared with the processor time that the parts really took, measured in the program itself, for
on a machine that does other work too two loops of one kind need not take the same.
"""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import EshkolError
from eshkol.profiling import Profile, Recording, current, export_schedule
from eshkol.profiling.findings import Sample, without_inner
from eshkol.profiling.frames import Frame
from eshkol.profiling.peaks import Peaks
from eshkol.support import observing
from eshkol.support.observing import COMPILE, Span

POINTS = 0.05
LOOP = "(let loop ((i 0) (s 0.0)) (if (= i n) s (loop (+ i 1) (+ s (sin (exact->inexact i))))))"


@pytest.fixture(scope="module")
def parts() -> Any:
    """A program nine tenths of whose time is in one procedure."""
    ek.eval(f"(define (profiled-hot n) {LOOP})\n(define (profiled-cold n) {LOOP})")
    ek.eval("(define (profiled-work n)\n  (profiled-hot (* 9 n))\n  (profiled-cold n))")
    return ek.eval("profiled-work")


def test_procedures_of_scheme_have_their_shares_and_python_stands_around_them(parts: Any) -> None:
    with ek.profile(hertz=1000) as seen:
        for _ in range(12):
            parts(300_000)
    assert len(seen.samples) > 100
    hot, cold = seen.share("profiled-hot"), seen.share("profiled-cold")
    assert hot + cold > 0.9
    assert hot / (hot + cold) == pytest.approx(0.9, abs=POINTS)
    own = {share.name: share.itself for share in seen.procedures()}
    assert own["profiled-hot/loop"] > 0.8
    assert own.get("profiled-work", 0.0) < POINTS
    # Callers stand around: the Python function that called, and the line of the procedure between.
    called = [s.stack for s in seen.samples if s.stack and s.stack[-1].name.startswith("profiled-hot")]
    names = [tuple(frame.name for frame in stack) for stack in called]
    this = test_procedures_of_scheme_have_their_shares_and_python_stands_around_them.__name__
    assert sum(this in stack and "profiled-work" in stack for stack in names) > 0.95 * len(names)
    assert {f.line for stack in called for f in stack if f.name == "profiled-work"} == {2}


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def heavy() -> None:
    spin(0.45)


def light() -> None:
    spin(0.05)


def test_lines_of_python_have_their_shares() -> None:
    with ek.profile(hertz=1000) as seen:
        heavy()
        light()
    shares = {share.name: share.total for share in seen.procedures()}
    assert shares["heavy"] == pytest.approx(0.9, abs=POINTS)
    assert shares["light"] == pytest.approx(0.1, abs=POINTS)
    busy = {share.name.rsplit("/", 1)[-1] for share in seen.lines() if share.total > 0.8}
    assert f"test_profiles.py:{heavy.__code__.co_firstlineno + 1}" in busy
    assert seen.sampled == pytest.approx(0.5e9, rel=0.2)


def test_kernels_are_named_with_what_they_move_and_compute() -> None:
    x = ek.asarray(np.ones((1 << 20,), np.float32))
    a = ek.asarray(np.ones((160, 160), np.float32))

    @ek.jit
    def moving(x: Any) -> Any:
        return x + 1.0

    @ek.jit
    def computing(a: Any) -> Any:
        return a @ a

    moving(x), computing(a)
    with ek.profile() as seen:
        began = time.perf_counter()
        for _ in range(20):
            moving(x)
        between = time.perf_counter()
        for _ in range(20):
            computing(a)
        ended = time.perf_counter()
    found = {kernel.work.name: kernel for kernel in seen.kernels}
    add = next(k for k in seen.kernels if k.work.operations == 1 << 20)
    product = next(k for k in seen.kernels if k.work.operations == 2 * 160**3)
    assert len(found) == 2
    assert add.count == product.count == 20
    assert add.work.moved == 2 * 4 << 20
    assert product.work.moved == 2 * 4 * 160 * 160
    assert add.work.file.endswith("test_profiles.py")
    assert add.work.shapes == "1048576 ← 1048576"
    # What kernels took is within what their calls took; the calls are in order, one after the other.
    assert 0 < add.total * 1e-9 <= between - began
    assert 0 < product.total * 1e-9 <= ended - between
    for kernel in (add, product):
        calls = [c for c in seen.calls if seen.kernels[c.kernel] is kernel]
        assert sum(c.end - c.begin for c in calls) == kernel.total
    assert len(seen.calls) == 40
    assert all(c.begin <= c.end for c in seen.calls)
    peaks = Peaks(1e10, 1e11)
    assert peaks.bound(add.work.moved, add.work.operations) == "memory"
    assert peaks.bound(product.work.moved, product.work.operations) == "compute"


def test_the_roof_is_the_lower_of_two() -> None:
    peaks = Peaks(bytes_a_second=1e10, operations_a_second=1e11)
    assert peaks.ridge == 10
    assert peaks.attainable(1) == 1e10
    assert peaks.attainable(100) == 1e11
    assert peaks.share(10**10, 0, 2.0) == 0.5
    assert peaks.share(1, 10**11, 1.0) == 1.0


def test_convolutions_and_attention_count_what_their_shapes_say() -> None:
    image, kernel = ek.rand(2, 3, 12, 10), ek.rand(8, 3, 3, 3)

    @ek.jit
    def convolved(x: Any, k: Any) -> Any:
        return ek.conv2d(x, k, stride=2, padding=1)

    out = convolved(image, kernel)
    with ek.profile() as seen:
        convolved(image, kernel)
    assert sum(k.work.operations for k in seen.kernels) == 2 * out.size * 3 * 3 * 3


def test_a_slow_loader_is_told() -> None:
    class Slow:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, number: int) -> Any:
            time.sleep(0.02)
            return np.float32(number)

    with ek.profile() as seen:
        for _ in ek.data.DataLoader(Slow(), batch_size=2, workers=0):
            pass
    assert 0.08 <= seen.waited <= 0.95 * seen.seconds + 0.01
    assert [stage.times for stage in seen.stages(observing.LOADER)] == [2]


def test_what_holds_memory_is_named_by_its_line() -> None:
    ek.eval("(define profiled-kept '())")
    ek.eval("""(define (profiled-leak n)
  (do ((i 0 (+ i 1))) ((= i n)) (set! profiled-kept (cons (make-vector 9 i) profiled-kept))))
(define (profiled-churn n) (do ((i 0 (+ i 1))) ((= i n)) (make-vector 9 i)))
(define (profiled-both) (do ((i 0 (+ i 1))) ((= i 40)) (profiled-leak 1000) (profiled-churn 9000)))""")  # fmt: skip
    both = ek.eval("profiled-both")
    with ek.profile(memory=True) as seen:
        both()
    live, handed_out = (dict(seen.allocated(at=at)) for at in ("live", "handed_out"))
    whole = sum(live.values())
    leaked = sum(size for name, size in live.items() if name.startswith("profiled-leak"))
    assert leaked / whole > 1 - POINTS
    assert leaked == pytest.approx(40_000 * (16 * 9 + 16 + 48), rel=0.15)  # vectors, and the pairs that hold them
    made = {n: sum(s for name, s in handed_out.items() if name.startswith(f"profiled-{n}")) for n in ("leak", "churn")}
    # One in ten vectors is kept, with a pair that the others have not.
    exact = 40 * 1000 * 208 / (40 * 1000 * 208 + 40 * 9000 * 160)
    assert made["leak"] / sum(made.values()) == pytest.approx(exact, abs=POINTS)
    assert seen.pauses
    assert all(0 < pause < seen.seconds for pause in seen.pauses)
    ek.eval("(set! profiled-kept '())")


def test_tensors_are_held_by_lines() -> None:
    with ek.profile(memory=True) as seen:
        large = [np.asarray(ek.rand(256, 256) + k) for k in range(4)]
        small = np.asarray(ek.rand(128, 256) + 1)
    del large, small
    sizes = {frame.line: size for frame, size in seen.tensors if frame is not None}
    assert seen.tensor_peak >= 4 * 4 * 256 * 256
    assert max(sizes.values()) / seen.tensor_peak > 0.7
    assert all(
        time <= other[0] for (time, _), other in zip(seen.tensor_timeline, seen.tensor_timeline[1:], strict=False)
    )


def test_calls_of_python_are_counted() -> None:
    def called(x: int) -> int:
        return x + 1

    each = ek.eval("(lambda (f n) (let loop ((i 0) (s 0)) (if (= i n) s (loop (+ i 1) (f s)))))")
    with ek.profile() as seen:
        assert each(called, 500) == 500
    found = {one.name.rsplit(".", 1)[-1]: one for one in seen.callbacks}
    assert found["called"].calls == 500
    assert 0 < found["called"].total * 1e-9 < seen.seconds


def test_stages_of_the_compiler_are_timed() -> None:
    with ek.profile() as seen:
        ek.jit(lambda x: ek.exp(x) * 3.25 + x)(ek.ones(37)).numpy()
    names = {stage.name for stage in seen.stages()}
    assert {"simplify", "patterns", "plan", "kernels"} <= names
    assert 0 < seen.compiled <= seen.seconds


def test_spans_within_spans_are_counted_once() -> None:
    spans = [
        Span(COMPILE, n, b, e, t) for n, b, e, t in (("a", 0, 10, 1), ("b", 2, 5, 1), ("c", 3, 4, 1), ("d", 2, 9, 2))
    ]
    assert {span.name: own for span, own in without_inner(spans)} == {"a": 7, "b": 2, "c": 1, "d": 7}


def test_nothing_watches_before_and_after() -> None:
    handler = signal.getsignal(signal.SIGPROF)
    with ek.profile(memory=True):
        assert observing.watcher is not None
    assert observing.watcher is None
    assert current() is None
    assert signal.getsignal(signal.SIGPROF) == handler


def test_one_profile_at_a_time_and_each_once() -> None:
    with ek.profile() as seen:
        with pytest.raises(EshkolError, match="being taken already"), ek.profile():
            pass
        with pytest.raises(EshkolError, match="has not ended yet"):
            _ = seen.samples
    with pytest.raises(EshkolError, match="taken already"), seen:
        pass
    with pytest.raises(EshkolError, match="from 1 to 10000"):
        ek.profile(hertz=0)
    with pytest.raises(EshkolError, match="is not being taken"):
        Recording().stop()


def test_an_error_ends_the_profile_and_what_was_found_stays() -> None:
    seen = ek.profile()
    with pytest.raises(ZeroDivisionError), seen:
        _ = 1 / 0
    assert current() is None
    assert seen.seconds > 0


def test_profiles_from_several_threads_are_refused_not_mixed() -> None:
    told: list[BaseException] = []

    def other() -> None:
        try:
            with ek.profile():
                pass
        except EshkolError as error:
            told.append(error)

    with ek.profile():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(told) == 1


# ---- what is written -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profile() -> Profile:
    """A small profile with something of everything."""
    with ek.profile(memory=True, hertz=1000) as seen, seen.region('a <b> & "c"'):
        spin(0.05)
        np.asarray(ek.rand(128, 256) @ ek.rand(256, 64))
    return seen.result


def test_traces_are_what_other_programs_read(profile: Profile, tmp_path: Path) -> None:
    profile.chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert {"kernel", "region"} <= {e["cat"] for e in complete}
    assert all(e["dur"] >= 0 and {"name", "ts", "pid", "tid"} <= e.keys() for e in complete)
    assert any(e["ph"] == "C" for e in events)
    assert any(e["ph"] == "i" for e in events)
    profile.speedscope(tmp_path / "s.json")
    scope = json.loads((tmp_path / "s.json").read_text())
    for one in scope["profiles"]:
        assert len(one["samples"]) == len(one["weights"])
        assert one["endValue"] == pytest.approx(sum(one["weights"]))
        assert all(0 <= frame < len(scope["shared"]["frames"]) for stack in one["samples"] for frame in stack)
    assert "spin" in {frame["name"] for frame in scope["shared"]["frames"]}


def test_pages_and_pictures_stand_alone(profile: Profile, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    profile.save(tmp_path / "f.svg")
    drawn = ElementTree.fromstring((tmp_path / "f.svg").read_text())
    titles = [e.text or "" for e in drawn.iter() if e.tag.endswith("title")]
    assert any(re.match(r"spin .*: \d", title) for title in titles)
    profile.save(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    data = json.loads(page.split('id="data">', 1)[1].split("</script>", 1)[0])
    assert data["flames"]["weight"] == profile.sampled
    assert data["kernels"]
    assert not re.search(r"""(src|href)=|@import|url\(|fetch\(""", page)  # nothing is loaded from anywhere
    text = profile.table()
    assert "kernels" in text
    assert 'a <b> & "c"' in text
    assert "spin" in text


def test_where_nothing_can_be_written_nothing_is_lost(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(EshkolError, match="no space left") as full:
        profile.chrome_trace("/dev/full")
    assert "still there" in str(full.value)
    with pytest.raises(EshkolError, match="cannot write"):
        profile.html(tmp_path / "missing" / "p.html")
    with pytest.raises(EshkolError, match="name says how"):
        profile.save(tmp_path / "profile.exe")
    earlier = tmp_path / "p.txt"
    earlier.write_text("as it was")
    profile.save(earlier)
    assert earlier.read_text().startswith(profile.table()[:20])


def samples(*stacks: tuple[str, ...]) -> Iterator[Sample]:
    for k, stack in enumerate(stacks):
        yield Sample(k, 1, tuple(Frame(name, "f.py", 1, (name,)) for name in stack), 0)


def test_recursion_counts_once(profile: Profile) -> None:
    from dataclasses import replace

    made = replace(profile, samples=list(samples(("f", "g", "f"), ("f",), ("f", "g"), ("h",))))
    assert {s.name: (s.itself, s.total) for s in made.procedures()} == {
        "f": (0.5, 0.75), "g": (0.25, 0.5), "h": (0.25, 0.25),
    }  # fmt: skip


def test_the_schedule_is_drawn(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    def layer(x: Any, w: Any) -> Any:
        return ek.softmax(ek.relu(x @ w), axis=-1)

    given = ek.ones((8, 16)), ek.ones((16, 4))
    export_schedule(tmp_path / "s.dot", layer, *given)
    text = (tmp_path / "s.dot").read_text()
    assert text.startswith("digraph")
    assert {"n0 -> n2", "n1 -> n2", "n2 -> n3"} == set(re.findall(r"n\d -> n\d", text))
    assert "1.02 kFLOP" in text  # 2 · 8 · 16 · 4
    export_schedule(tmp_path / "s.svg", layer, *given)
    drawn = ElementTree.fromstring((tmp_path / "s.svg").read_text())
    assert sum(e.tag.endswith("path") for e in drawn) == 3
    with pytest.raises(EshkolError, match=r"ends in \.svg"):
        export_schedule(tmp_path / "s.png", layer, *given)


def test_the_command_takes_profiles(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from eshkol.cli.main import main

    program = tmp_path / "p.esk"
    program.write_text("(define (busy n) (if (= n 0) 0 (busy (- n 1))))\n(display (list (busy 9) (command-line)))\n")
    page = tmp_path / "p.html"
    assert main(["run", f"--profile={page}", "--memory", str(program), "--profile"]) == 0
    said = capfd.readouterr()
    assert said.out == f"(0 ({program} --profile))"
    assert "data-ready" not in said.err
    assert page.read_text().startswith("<!doctype html>")
    assert main(["run", "--profile", str(program)]) == 0
    assert "of processor time" in capfd.readouterr().err
    assert main(["run", "--profile=x.exe", str(program)]) == 1
    said = capfd.readouterr()
    assert "name says how" in said.err
    assert not said.out  # it has not run
