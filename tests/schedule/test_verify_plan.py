"""The verifier of plans and arenas: what passes give passes, and each way to be malformed is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import CORES
from eshkol.errors import MiscompiledError
from eshkol.ops import dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.arena import Arena, arranged
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, Place, Plan, Together, While
from eshkol.schedule.plan.verify import verify_arena, verify_plan

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def plan_of(function: Any, *args: Any) -> Plan:
    return ek.jit(function).plan(*[ek.tensor(a) for a in args])


def chain(x: Any) -> Any:
    return ek.cumsum(ek.softmax(x @ x.T) @ x, 0) @ x.T


def loops(x: Any) -> Any:
    total, rows = ek.scan(lambda c, row: (c + row @ row, c * row), ek.tensor(0.0), x)
    found = ek.while_loop(lambda c: c < 100.0, lambda c: c * 2.0 + 1.0, total)
    return ek.cond(found > 50.0, lambda: rows.sum(), lambda: rows.max())


PLANS = {"chain": lambda: plan_of(chain, X), "loops": lambda: plan_of(loops, X)}


def launch_of(plan: Plan) -> tuple[int, Launch]:
    return next((k, s) for k, s in enumerate(plan.steps) if isinstance(s, Launch))


def with_step(plan: Plan, place: int, *steps: Any) -> Plan:
    return replace(plan, steps=(*plan.steps[:place], *steps, *plan.steps[place + 1 :]))


@pytest.mark.parametrize("name", PLANS)
def test_what_passes_give_is_well_formed(name: str) -> None:
    plan = PLANS[name]()
    verify_plan(plan, "plan")
    verify_arena(plan, arranged(plan))


def refused(plan: Plan, words: str) -> None:
    with pytest.raises(MiscompiledError, match=words) as caught:
        verify_plan(plan, "some pass")
    assert caught.value.stage == "some pass"
    assert "--- plan" in caught.value.graph


def test_a_value_that_nothing_wrote() -> None:
    plan = plan_of(chain, X)
    number, _ = launch_of(plan)
    refused(with_step(plan, number), "which nothing has written")
    refused(replace(plan, steps=()), "a result reads places")


def test_a_parameter_that_is_written() -> None:
    plan = plan_of(chain, X)
    refused(replace(plan, steps=(*plan.steps, Copy(plan.params[0], plan.params[0]))), "are parameters or constants")


def test_what_a_launch_is_given_does_not_fit_its_program() -> None:
    plan = plan_of(chain, X)
    number, launch = launch_of(plan)
    refused(with_step(plan, number, replace(launch, buffers=launch.buffers[1:])), "has parameters")
    places = tuple(replace(p, dtype=dtypes.int32) for p in plan.places)
    refused(replace(plan, places=places, results=()), "takes F32 as")


def test_launches_at_the_same_time_that_meet() -> None:
    plan = plan_of(chain, X)
    number, launch = launch_of(plan)
    refused(with_step(plan, number, Together((launch, launch))), "write the same place")
    first, second = [s for s in plan.steps if isinstance(s, Launch)][:2]
    assert not {*first.writes}.isdisjoint(second.reads)
    refused(with_step(plan, number, Together((first, second))), "reads what is written at the same time")


def test_copies_and_results_of_another_size() -> None:
    plan = plan_of(chain, X)
    wide = replace(plan, places=(*plan.places, Place((7,), dtypes.float32)))
    refused(replace(wide, steps=(*plan.steps, Copy(len(plan.places), plan.params[0]))), "which is not as large")
    refused(replace(plan, results=((plan.results[0][0], Aval((99,), dtypes.float32)),)), "the result in place")


def test_loopswhose_parts_do_not_fit() -> None:
    plan = plan_of(loops, X)
    number, loop = next((k, s) for k, s in enumerate(plan.steps) if isinstance(s, Loop))
    refused(with_step(plan, number, replace(loop, length=loop.length + 1)), "is no element of")
    carried = tuple((one, loop.views[0][0]) for one, _ in loop.carries)
    refused(with_step(plan, number, replace(loop, carries=carried)), "another kind of value|which nothing has written")
    number, repeated = next((k, s) for k, s in enumerate(plan.steps) if isinstance(s, While))
    refused(with_step(plan, number, replace(repeated, test=())), "a loop's test reads")
    number, branch = next((k, s) for k, s in enumerate(plan.steps) if isinstance(s, Branch))
    refused(with_step(plan, number, replace(branch, then=())), "which nothing has written")


def test_places_that_are_needed_at_the_same_time_share_no_byte() -> None:
    x = ek.tensor(np.ones((8, 8), np.float32))
    plan = ek.jit(lambda x: ek.softmax((x @ x) @ (x @ x.T) + (x.T @ x))).plan(x)
    found = arranged(plan)
    assert len(found.offsets) > 1
    verify_arena(plan, found)
    with pytest.raises(MiscompiledError, match="needed at the same time, and share bytes"):
        verify_arena(plan, Arena(dict.fromkeys(found.offsets, 0), found.size))
    with pytest.raises(MiscompiledError, match="of an arena of 0"):
        verify_arena(plan, Arena(found.offsets, 0))


def test_two_places_alone_share_no_byte() -> None:
    x = ek.tensor(np.ones((8, 8), np.float32))
    plan = ek.jit(lambda x: (x @ x) @ (x @ x.T)).plan(x)
    found = arranged(plan)
    assert len(found.offsets) == 2
    near = {place: min(offset, 8) for place, offset in found.offsets.items()}
    with pytest.raises(MiscompiledError, match="needed at the same time, and share bytes"):
        verify_arena(plan, Arena(near, found.size))


def test_plans_of_functions_are_made_for_a_description() -> None:
    x = ek.tensor(X)._node
    assert compiled([x], [x], CORES).target is CORES
