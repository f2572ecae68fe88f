"""Objects that mean ill: what lies about itself, changes while it is looked at, or calls Scheme when nobody expects it.

Each either has a value in Scheme or gives a clear error; the oracle of values is what Python's own types say of them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from fractions import Fraction
from typing import Any

import pytest

import eshkol as ek
from eshkol.bindings.values import Pair, Vector
from eshkol.errors import ConversionError, SchemeError
from eshkol.session import SessionThread

SAME = ek.eval("(lambda (x) x)")


def own_tensor(said: Any) -> ek.Tensor:
    """A tensor of a subclass that says of its bytes what it is told to."""

    class Own(ek.Tensor):
        @property
        def nbytes(self) -> Any:
            return said()

    return Own(ek.tensor([1.0, 2.0])._node)


@pytest.mark.parametrize("kind", [list, Vector])
def test_a_list_that_is_emptied_meanwhile_is_what_it_was(kind: type[list[Any]]) -> None:
    items = kind()

    def empty() -> int:
        items.clear()
        return 8

    items.extend([[2**80, "a"], "text" * 3, 2**90, own_tensor(empty), {"k": [1]}, Fraction(1, 3), 2**100])
    before = kind(items)
    found = SAME(items)
    assert type(found) is kind
    assert [x for x in found if not isinstance(x, ek.Tensor)] == [x for x in before if not isinstance(x, ek.Tensor)]
    assert found[3] is before[3]
    assert not items


def test_containers_that_go_away_meanwhile_are_no_cycle() -> None:
    """Their addresses would be used again for what is nested in them."""
    kept: list[Any] = []

    def forget() -> int:
        kept[0].clear()
        for _ in range(50):
            kept.append(Pair({}, {}))
        return 8

    kept.append([{"a": Pair(own_tensor(forget), {"b": Pair({"c": {"d": Pair(1, 2)}}, 3)})}])
    assert SAME(kept[0])[0]["a"].cdr == {"b": Pair({"c": {"d": Pair(1, 2)}}, 3)}


class Odd(int):
    def __abs__(self) -> Any:
        return Odd(5)

    def to_bytes(self, *_: Any, **__: Any) -> bytes:
        return b"abc" * 11

    def bit_length(self) -> int:
        return 3


class OddFraction(Fraction):
    numerator: Any = property(lambda _: Odd(2**100))
    denominator: Any = property(lambda _: 0)


class OddKind(type):
    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(list)


def test_subclasses_have_the_value_of_their_kind() -> None:
    for number in (2**63, 2**64 - 1, -(2**99), 2**200 + 1):
        assert SAME(Odd(number)) == number
    assert SAME(OddFraction(2**70, 3)) == Fraction(2**70, 3)
    thing = OddKind("Thing", (), {})()
    assert SAME(thing) is thing


@pytest.mark.parametrize("said", [-1, 2**62])
def test_a_tensor_with_impossible_bytes(said: int) -> None:
    with pytest.raises(ConversionError, match="nbytes"):
        SAME(own_tensor(lambda: said))


def test_a_tensor_of_a_subclass_is_a_tensor() -> None:
    assert ek.eval("(lambda (x) (+ x 1))")(own_tensor(lambda: 8)).tolist() == [2.0, 3.0]
    assert (own_tensor(lambda: 8) * 2 + ek.ones(2)).tolist() == [3.0, 5.0]


def test_a_condition_of_another_session_is_an_exception_of_python() -> None:
    other = SessionThread(guest=True)
    with pytest.raises(SchemeError, match="theirs") as caught:
        other.call(lambda session: session.evaluate('(error "theirs")'))
    error = caught.value

    def fail() -> None:
        raise error

    tell = ek.eval("(lambda (f) (guard (e (#t (error-object-message e))) (f)))")
    assert "theirs" in tell(fail)
    other.close()
    assert "theirs" in tell(fail)
    with pytest.raises(SchemeError) as again:
        ek.eval("(lambda (f) (f))")(fail)
    assert again.value is error


def test_the_hyphens_of_a_long_keyword() -> None:
    name = "-".join(["part"] * 60)
    found = ek.eval(f"(lambda (f) (f :{name} 1))")(lambda **named: list(named))
    assert found == [name.replace("-", "_")]


def test_numbers_are_unpacked_from_as_many_bytes_alone() -> None:
    unpack = ek.eval("(import (only (eshkol primitives) %unpack-numbers)) %unpack-numbers")
    assert unpack(0, [2], bytes(16), False) == [0, 0]
    for kind, shape in [
        (3, [2]),
        ("x", [2]),
        (0, [-1, -2]),
        (0, [2**62, 4]),
        (0, [2**61, 2**61, 2]),
        (0, ["x"]),
        (0, [3]),
    ]:
        with pytest.raises(SchemeError, match="%unpack-numbers"):
            unpack(kind, shape, bytes(16), True)


class Calls:
    """Calls Scheme when it goes away."""

    def __init__(self) -> None:
        self.circle = self  # so that the collector finds it, wherever that runs

    def __del__(self) -> None:
        SAME(1)


def test_finalizers_call_scheme_while_their_thread_waits_for_it() -> None:
    done: list[int] = []

    def work() -> None:
        for _ in range(3000):
            Calls()
            SAME([1])
        done.append(1)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert done


def test_a_finalizer_at_the_end_of_python_does_not_wait_for_ever() -> None:
    program = """
import eshkol as ek
same = ek.eval("(lambda (x) x)")
class Calls:
    def __del__(self, same=same):
        try: same(1)
        except Exception as error: print(error)
import sys
sys.kept = Calls()
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("end")
