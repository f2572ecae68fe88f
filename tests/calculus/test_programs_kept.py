"""What a machine keeps of compiled derivatives, under which keys, when it lets go, and what it says of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from code_sizes import Asking, listed
from typed_programs import parse

from eshkol.calculus import fast, native
from eshkol.calculus.abstract import NotFast
from eshkol.calculus.fast import CHECKPOINT, GRADIENT, JACOBIAN, KERNEL
from eshkol.llvm.linking import CodeMemory
from eshkol.session.session import Session

PROGRAM = "function main -> f64\nstart(%0: f64 varies, %1: f64 varies):\n  %2: f64 = math * %0, %1\n  return %2"


class Keys:
    """A cache that keeps nothing but what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []

    def get_or_build(self, parts: dict[str, str], build: Callable[[], bytes], kind: str) -> bytes:
        assert kind == "fast"
        self.asked.append(parts)
        return build()


def test_objects_are_kept_by_all_that_they_depend_on() -> None:
    program, keys, code = parse(PROGRAM), Keys(), CodeMemory()
    cache: Any = keys
    made = [
        native.compile_gradient(program, code, cache), native.compile_gradient(program, code, cache, True),
        native.compile_forward(program, 1, code, cache), native.compile_forward(program, 2, code, cache, True),
        native.compile_forward(program, 2, code, cache, seeds={0: 0, 1: 1}),
        native.compile_forward(program, 2, code, cache, seeds={1: 0, 0: 1}),
        native.compile_gradient(parse(PROGRAM.replace("math *", "math +")), code, cache),
    ]  # fmt: skip
    assert [(one.kind, one.lanes, one.out_words) for one in made] == [
        (native.GRADIENT, 1, 3), (native.GRADIENT, 1, 3), (native.TANGENTS, 1, 2), (native.DIRECTIONS, 2, 3),
        (native.TANGENTS, 2, 3), (native.TANGENTS, 2, 3), (native.GRADIENT, 1, 3),
    ]  # fmt: skip
    assert all(one.entry and one.code is code for one in made)
    assert all(parts.keys() == {"what", "program", "source", "target"} for parts in keys.asked)
    assert len({tuple(parts.values()) for parts in keys.asked}) == len(made)
    assert len({(parts["source"], parts["target"]) for parts in keys.asked}) == 1
    native.compile_forward(parse(PROGRAM), 2, code, cache, seeds={1: 1, 0: 0})
    assert keys.asked[-1] == keys.asked[4]  # the order in which seeds are said means nothing
    code.close()


@pytest.mark.parametrize("lanes", [0, 17])
def test_lanes_are_one_to_sixteen(lanes: int) -> None:
    with pytest.raises(ValueError, match=f"lanes are 1 to 16, not {lanes}"):
        native.compile_forward(parse(PROGRAM), lanes, CodeMemory())


def test_a_description_is_what_c_reads() -> None:
    made = native.Native(0, native.TANGENTS, 2, 3, CodeMemory())
    where = native.Where([(native.CAPTURED, 2), (native.CAR, 0)], "v(f)", True, 5, 7, 4096)
    found = made.describe([where, native.Where([], "f")], "l(f)", 100, 3)
    names = ("input_count", "lanes", "forward", "limit", "used", "out_words", "arguments")
    assert [getattr(found, name) for name in names] == [2, 2, native.TANGENTS, 100, 0, 3, 3]
    first, second = found.inputs[0], found.inputs[1]
    assert [(first.steps[k].kind, first.steps[k].index) for k in range(first.step_count)] == where.steps
    assert (getattr(first, "global"), first.descriptor, first.expected, first.tag, first.active) == (
        4096,
        b"v(f)",
        5,
        7,
        1,
    )
    assert (getattr(second, "global"), second.step_count, second.descriptor, second.active) == (None, 0, b"f", 0)
    assert found.result == b"l(f)"


# ---- a machine's programs --------------------------------------------------------------------------------------------


@pytest.fixture
def asking() -> Iterator[Asking]:
    made = Asking()
    made.define("(define (f x) (* x (sin x))) (define (g x) (* rate (exp x))) (define (h v) (vector-ref v 0))")
    with made.watched():
        yield made
    made.close()


def work(asking: Asking, do: Callable[[Session, Callable[[str], bool]], Any]) -> Any:
    """Something done with a session, and with what asks for a kind, a procedure and points."""

    def run(session: Session) -> Any:
        def make(words: str) -> bool:
            session.evaluate(f"(define question (list {words}))")
            return session.fast.make(listed(session, session.evaluate("question")))

        return do(session, make)

    return asking.thread.call(run)


def test_programs_go_with_the_units_they_were_made_from(asking: Asking) -> None:
    def do(session: Session, make: Callable[[str], bool]) -> None:
        programs = session.fast
        assert make(f"{GRADIENT} f 1.5")
        assert make(f"{GRADIENT} f 1.5")
        assert make(f"{JACOBIAN} h (vector 1.0 2.0)")
        assert [what.split()[0] for what, *_ in asking.seen] == ["forward", "gradient", "forward"]
        assert len(programs._kept) == 3
        assert len(programs._forward) == len(programs._sized) == len(programs._units) == 2
        code = programs._code
        programs.forget([1, 2, 3])
        assert len(programs._kept) == 3
        assert programs._code is code
        programs.forget([max(programs._units)])
        assert [len(one) for one in (programs._kept, programs._units, programs._forward, programs._sized)] == [0] * 4
        assert programs._code is not code
        assert make(f"{GRADIENT} f 1.5")
        assert asking.seen[-1][0].startswith("forward 1 ")  # as the first time

    work(asking, do)


def test_many_programs_are_let_go(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "MOST_KEPT", 2)

    def do(session: Session, make: Callable[[str], bool]) -> list[int]:
        return [
            len(session.fast._kept)
            for name in ("f", "g", "h")
            if make(f"{GRADIENT} {name} {'(vector 1.0)' if name == 'h' else 1.5}")
        ]

    assert work(asking, do) == [1, 2, 1]


def test_kinds_and_checkpoints_have_programs_of_their_own(asking: Asking) -> None:
    def do(session: Session, make: Callable[[str], bool]) -> None:
        assert make(f"{GRADIENT} h (vector 1.0 2.0)")
        assert make(f"{GRADIENT | CHECKPOINT} h (vector 1.0 2.0)")
        assert make(f"{JACOBIAN} h (vector 1.0 2.0)")
        assert make(f"{GRADIENT} h (make-vector {fast.MOST_FORWARD} 1.0)")
        assert make(f"{GRADIENT} g 1.0")
        assert make(f"{GRADIENT | CHECKPOINT} g 1.0")
        session.fast._forget_all()
        assert make(f"{GRADIENT} h (make-vector {fast.MOST_FORWARD} 1.0)")
        session.fast._forget_all()
        assert make(f"{GRADIENT} h (make-vector {fast.MOST_FORWARD + 1} 1.0)")

    work(asking, do)
    assert [what for what, *_ in asking.seen] == [
        "forward 2 [(0, 0)]", "gradient True", "forward 2 [(0, 0)]", "gradient False", "forward 1 [(0, 0)]",
        "gradient True", "forward 6 [(0, 0)]", "gradient False",
    ]  # fmt: skip


def test_a_kernel_is_told_by_what_it_gives(asking: Asking) -> None:
    asking.define("(define (t x) (< x 1)) (define (k x) 2) (define (l x) (list x)) (define (s x) 'a) (define (b x) #t)")

    def do(session: Session, make: Callable[[str], bool]) -> list[Any]:
        found = []
        for name in ("f", "t", "k", "b", "l", "s", "car"):
            session.evaluate(f"(define question (list {KERNEL} {name} 1.5))")
            found.append(session.fast.answer(listed(session, session.evaluate("question"))))
        return found

    assert work(asking, do) == [False] * 4 + ["its value is no number"] * 2 + ["a primitive"]


# ---- mistakes --------------------------------------------------------------------------------------------------------


def outcome(asking: Asking, monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> Callable[[], bool]:
    """What asks for a derivative whose making ends with an error."""
    if error is not None:

        def specialized(*_: Any) -> Any:
            raise error

        monkeypatch.setattr(fast, "specialized", specialized)
    return lambda: bool(work(asking, lambda session, make: make(f"{GRADIENT} f 1.5")))


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """As `asking`, but with all that it says."""
    made = Asking()
    made.define("(define (f x) (* x (sin x)))")
    monkeypatch.setattr(native, "_load", lambda *_: 0)
    monkeypatch.delenv("ESHKOL_CHECK", raising=False)
    yield made
    made.close()


def test_nothing_is_said_unless_it_is_asked_for(
    spoken: Asking, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert outcome(spoken, monkeypatch, None)()
    assert capfd.readouterr().err == ""
    assert not outcome(spoken, monkeypatch, NotFast("because"))()
    assert capfd.readouterr().err == ""


def test_programs_and_reasons_are_shown(
    spoken: Asking, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ESHKOL_DUMP", "calculus")
    assert outcome(spoken, monkeypatch, None)()
    said = capfd.readouterr().err
    assert said.startswith("function main -> f64\nstart(%0: f64 varies):\n")
    assert ">: compiled in " in said
    assert not outcome(spoken, monkeypatch, NotFast("because"))()
    assert capfd.readouterr().err.endswith("f>: no compiled derivative: because\n")


def test_the_first_mistake_is_told_once(
    spoken: Asking, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = outcome(spoken, monkeypatch, ZeroDivisionError("by zero"))
    assert not ask()
    said = capfd.readouterr().err
    assert said.startswith("warning: the derivative of ")
    assert "ZeroDivisionError: by zero" in said
    assert "Traceback" not in said
    assert not ask()
    assert capfd.readouterr().err == ""


def test_checks_raise_mistakes(spoken: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CHECK", "1")
    with pytest.raises(ZeroDivisionError):
        outcome(spoken, monkeypatch, ZeroDivisionError("by zero"))()
    assert not outcome(spoken, monkeypatch, NotFast("because"))()
