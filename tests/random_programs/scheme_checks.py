"""What is asked of a random program of tensors in Scheme, and a driver.

    python -m random_programs.scheme_checks --count 1000 [--seed 1]

Comes in: a `scheme_tensors.Program`. Goes out: a list of what is wrong with it. All programs run in one session and one
process, with every cache shared. Each value is compared with NumPy and with the interpreter of the graph; the procedure
compiled by `jit-compile`, called twice, with the same; derivatives with differences in NumPy, and with each other.

What Scheme makes of a program is a graph. `by_interpreter` computes graphs without kernels, so that many programs can
be asked for what the language does; without it, the kernels are asked too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis.errors import NoSuchExample

import eshkol as ek
from eshkol.graph import interpret
from eshkol.schedule.pipeline import Compiled
from random_programs.scheme_tensors import PRELUDE, Program, _parts, programs, written

CLOSE = 1e-8
_ready = False


@contextmanager
def by_interpreter() -> Iterator[None]:
    """Graphs are computed by every row's own reference."""

    def run(self: Compiled, arrays: Sequence[Any], machine: Any, **_: Any) -> list[Any]:
        found = interpret.evaluate(self.results, dict(zip(self.params, map(np.copy, arrays), strict=True)))
        return [np.array(x, order="C") for x in found]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "run", run)
        patch.setattr(Compiled, "quick", lambda *_: None)  # which would compile them for the next time,
        patch.setattr(ek.jit, "_like", lambda *_: None)  # and so would this
        yield


def evaluate(text: str) -> Any:
    global _ready
    if not _ready:
        ek.eval(f"(import (eshkol)) {PRELUDE}")
        _ready = True
    return ek.eval(text)


def close(a: Any, b: Any, tolerance: float = CLOSE) -> bool:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def numbers(value: Any) -> Any:
    return value.numpy() if isinstance(value, ek.Tensor) else np.asarray(value, np.float64)


def text_of(program: Program, call: str) -> str:
    """A text that binds the inputs and calls something on them."""
    inputs = " ".join(f"(v{k} {written(x)})" for k, x in enumerate(program.inputs))
    return f"(let* ({inputs}) {call})"


def taken_apart(program: Program, what: str) -> str:
    """A structure like the arguments as a list of its parts."""
    if program.structure == "apart":
        return what if len(program.inputs) > 1 else f"(list {what})"
    return f"(let ((s {what})) (list {' '.join(_parts(program.structure, 's'))}))"


def check(program: Program) -> list[str]:
    """What is wrong."""
    wanted = program.arrays(program.inputs)
    procedure = program.procedure(program.all_values)
    wrong: list[str] = []
    eager, compiled, again = evaluate(
        text_of(
            program,
            f"(let* ((f {procedure}) (g {'(jit-compile f)' if program.traces else 'f'})) "
            f"(list (f {program.given}) (g {program.given}) (g {program.given})))",
        )
    )
    for k, value in enumerate(eager):
        if isinstance(value, ek.Tensor) and not close(interpret.evaluate([value._node])[0], wanted[k]):
            wrong.append(f"v{k} is another value in the graph's interpreter: {_shown(value)} for {wanted[k].tolist()}")
    for found, way in ((eager, "eager"), (compiled, "compiled"), (again, "compiled, called again")):
        for k, value in enumerate(found):
            if not close(numbers(value), wanted[k]):
                wrong.append(f"v{k} {way}: {numbers(value).tolist()} for {wanted[k].tolist()}")
                break
    if not wrong and any(x.size for x in program.inputs):
        derivatives(program, wrong)
    return wrong


def _shown(value: ek.Tensor) -> Any:
    return interpret.evaluate([value._node])[0].tolist()


def differences(program: Program, directions: Sequence[Any]) -> float | None:
    """The derivative of the objective along a direction; none where it has a corner or a step nearby."""

    def at(h: float) -> float:
        return program.objective([x + h * t for x, t in zip(program.inputs, directions, strict=True)])

    def slope(h: float) -> float:
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    def bend(h: float) -> float:  # how far the slopes of both sides are apart: goes with h, but for a corner right here
        return abs(at(h) - 2 * at(0.0) + at(-h)) / h

    first, second = slope(1e-3), slope(3e-4)
    if bend(3e-4) > 0.6 * bend(1e-3) + 1e-7:
        return None
    return second if abs(first - second) <= 1e-5 * (1 + abs(second)) else None


def derivatives(program: Program, wrong: list[str]) -> None:
    chance = np.random.default_rng(len(program.forms))
    directions = [np.round(chance.uniform(-1, 1, x.shape), 3) for x in program.inputs]
    expected = differences(program, directions)
    objective = program.procedure(program.one_number)
    formals = " ".join(f"p{k}" for k in range(len(program.inputs))) if program.structure == "apart" else "p0"
    value, gradients, by_jit, along = evaluate(
        text_of(
            program,
            f"(let* ((f {objective}) (slope (lambda ({formals}) (gradient f {formals})))"
            f" (compiled {'(jit-compile slope)' if program.traces else 'slope'}))"
            f" (receive (value slope) (value-and-gradient f {program.given})"
            f" (list value {taken_apart(program, 'slope')} {taken_apart(program, f'(compiled {program.given})')}"
            f" {_along(program, directions)})))",
        )
    )
    if not close(numbers(value), program.objective(program.inputs)):
        wrong.append(f"the value of the objective: {value}")
    slopes = [numbers(g) for g in gradients]
    if [s.shape for s in slopes] != [x.shape for x in program.inputs]:
        wrong.append(f"gradients of shapes {[s.shape for s in slopes]}")
        return
    found = float(sum((s * t).sum() for s, t in zip(slopes, directions, strict=True)))
    if expected is not None and abs(found - expected) > 2e-5 * (1 + abs(expected)):
        wrong.append(f"the gradient {[s.tolist() for s in slopes]} goes {found} along a direction, not {expected}")
    for one, other in zip(slopes, by_jit, strict=True):
        if not close(one, numbers(other), 1e-7):
            wrong.append(f"the gradient {one.tolist()}, compiled {numbers(other).tolist()}")
            break
    if along is not False and abs(float(numbers(along)) - found) > 1e-7 * (1 + abs(found)):
        wrong.append(f"jvp gives {along}, the gradient {found}")


def _along(program: Program, directions: Sequence[Any]) -> str:
    """The derivative along a direction by jvp, where the arguments are one."""
    if program.structure == "apart":
        if len(program.inputs) > 1:
            return "#f"
        return f"(receive (value slope) (jvp f v0 {written(directions[0])}) slope)"
    named = " ".join(f"(v{k} {written(t)})" for k, t in enumerate(directions))
    return f"(receive (value slope) (jvp f {program.given} (let* ({named}) {program.given})) slope)"


# ---- a driver --------------------------------------------------------------------------------------------------------


def described(program: Program) -> str:
    lines = [f"  v{k} = {x.tolist()} {list(x.shape)}" for k, x in enumerate(program.inputs)]
    lines += [f"  v{len(program.inputs) + k} = {form.text}" for k, form in enumerate(program.forms)]
    return "\n".join([f"  arguments: {program.structure}", *lines])


class _Enough(BaseException):
    """The time is over."""


def run(count: int, start: int, most: float = 1e9) -> tuple[int, list[tuple[Program, list[str]]]]:
    """So many programs of a seed, for so many seconds at most; those that are wrong, with what is."""
    done = 0
    wrong: list[tuple[Program, list[str]]] = []
    begun = time.monotonic()

    @seed(start)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(programs())
    def each(program: Program) -> None:
        nonlocal done
        if time.monotonic() - begun > most:
            raise _Enough
        done += 1
        try:
            found = check(program)
        except Exception as error:
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        if found:
            wrong.append((program, found))
            print(f"{described(program)}\n    -> {found[0][:400]}", flush=True)

    with suppress(_Enough):
        each()
    return done, wrong


def smallest(match: str, start: int) -> Program | None:
    """The smallest program of which something is said that holds this text."""

    def is_so(program: Program) -> bool:
        try:
            found = check(program)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        return any(match in what for what in found)

    try:
        return find(programs(), is_so, settings=settings(max_examples=500, database=None, deadline=None,
                    suppress_health_check=list(HealthCheck)))  # fmt: skip
    except NoSuchExample:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--kernels", action="store_true", help="compute by kernels, not by the graph's interpreter")
    options = parser.parse_args()
    begun = time.monotonic()
    with nullcontext() if options.kernels else by_interpreter():
        done, wrong = run(options.count, options.seed, options.seconds)
    print(f"{done} programs of seed {options.seed} in {time.monotonic() - begun:.0f} s, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
