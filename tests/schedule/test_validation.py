"""Translation validation finds what is broken on purpose, names the pass, and is silent about what is right."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fusing import leaf
from hypothesis import HealthCheck, given, settings

import eshkol as ek
from effort import FULL, amount
from eshkol.atlas.machines import CORES
from eshkol.errors import MiscompiledError, TensorError
from eshkol.graph import derive
from eshkol.graph.node import make, substitute, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.movement import permute
from eshkol.ops.row import Pull
from eshkol.ops.structural import STOP
from eshkol.runtime import front
from eshkol.schedule import pipeline
from eshkol.schedule.cache import Cache, nothing_kept
from eshkol.schedule.check import validation
from eshkol.schedule.check.agreement import Interpretation, drawn
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.kernels import lower
from eshkol.schedule.kernels.products import SEEN_PRODUCT
from eshkol.schedule.plan import arena, in_place
from eshkol.schedule.plan import together as together_module
from eshkol.schedule.plan.steps import Launch, Together, walk
from eshkol.schedule.rewrite import algebra
from eshkol.schedule.rewrite.patterns import recognize
from eshkol.schedule.run import execute, gradients, native
from eshkol.tensors.devices import current_backend
from graph.programs import programs

BACKENDS = ["reference", "cpu"]


@pytest.fixture(autouse=True)
def checks():
    """Checks are on, and nothing that a broken compiler made is there afterwards, or was there before."""
    plans, ways = dict(execute._kept), dict(gradients._ways)
    execute._kept.clear()
    gradients._ways.clear()
    with nothing_kept(), ek.check(draws=2) as counts:
        yield counts
    for kept, before in ((execute._kept, plans), (gradients._ways, ways)):
        kept.clear()
        kept.update(before)


@pytest.fixture(params=BACKENDS)
def backend(request):
    with ek.use_backend(request.param):
        yield request.param


def floats(*shape: int, seed: int = 0) -> Any:
    return ek.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def broken(function: Any, *args: Any) -> MiscompiledError:
    """The error of a call whose result is wrong."""
    with pytest.raises(MiscompiledError) as caught:
        ek.tree_map(lambda x: x.numpy(), function(*args))
    return caught.value


def operations(error: MiscompiledError) -> list[str]:
    """The operations of the graph that an error shows."""
    lines = [line.split(" = ")[1] for line in error.graph.splitlines() if " = " in line]
    return [line.split("(")[0] for line in lines if not line.startswith("input ")]


def replacing(name: str, change: Any) -> Any:
    """A pass that takes every op of a name for something else."""

    def graph_pass(results):
        new = {node: change(node) for node in topological(results) if node.op.name == name}
        return substitute(results, new)

    return graph_pass


def with_pass(patch: pytest.MonkeyPatch, name: str, wrong: Any) -> None:
    """Let a pass do something wrong in the end."""
    passes = [
        (n, p if n != name else lambda results, target, p=p: wrong(p(results, target))) for n, p in pipeline.PASSES
    ]
    patch.setattr(pipeline, "PASSES", passes)


# --- passes over graphs -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, _ in pipeline.PASSES])
def test_a_pass_that_changes_a_result_is_named(name, backend, monkeypatch):
    swapped = replacing("sub", lambda node: make(node.op, node.inputs[::-1], node.attrs))
    with_pass(monkeypatch, name, swapped)

    def long(x, y):
        return ek.sin(ek.exp(x) * 2 - ek.cos(y)).sum() + (x * y).mean()

    error = broken(ek.jit(long), floats(3, 4), floats(3, 4, seed=1))
    assert error.stage == name
    assert f"the pass '{name}'" in error.message
    assert operations(error) == ["sub"]  # of all the graph
    assert "float32[3, 4]" in error.graph
    assert "interpreter says" in str(error)
    assert "hint: this is a defect of Eshkol" in str(error)
    assert error.span is not None
    assert "ek.cos(y)" in error.span.text


@pytest.mark.parametrize("name", [pipeline.PASSES[0][0], "parts"])
def test_nodes_are_verified_once_and_what_a_pass_makes_is_too(name, monkeypatch):
    made, seen, verify = [], [], pipeline.verify
    monkeypatch.setattr(pipeline, "verify", lambda node: seen.append(node) or verify(node))

    def swapped(node):
        made.append(make(node.op, node.inputs[::-1], node.attrs))
        return made[-1]

    with_pass(monkeypatch, name, replacing("mul", swapped))
    x, y = floats(3, 4), floats(3, 4, seed=1)
    ek.jit(lambda x, y: ek.sin(x * y) - ek.exp(x))(x, y).numpy()
    assert len(seen) == len(set(seen)) > 3
    assert made
    assert set(made) <= set(seen)

    def misshapen(node):
        wrong = make(node.op, node.inputs, node.attrs)
        wrong.shape = (12,)
        return wrong

    with_pass(monkeypatch, name, replacing("exp", misshapen))
    with pytest.raises(TensorError, match=r"exp.* its rule says float32\[3, 4\]"):
        ek.jit(lambda x, y: ek.exp(x * y))(x, y).numpy()


def test_a_rewrite_whose_condition_is_dropped_is_found(monkeypatch):
    monkeypatch.setattr(algebra, "finite", lambda x, depth=0: True)
    function = ek.jit(lambda x: ek.exp(x) * 0 + 1)
    error = broken(function, ek.tensor([1.0, np.inf]))
    assert error.stage == "simplify"
    assert operations(error) == ["mul"]


def test_a_pass_that_is_wrong_on_random_values_alone_is_found(monkeypatch):
    forgets = replacing("maximum", lambda node: node.inputs[0])  # right for positive numbers
    with_pass(monkeypatch, "simplify", forgets)
    function = ek.jit(lambda x, y: ek.maximum(x, y) * 3)
    x = ek.tensor(np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32))
    error = broken(function, x, ek.tensor(np.array([0.9, 1.9, 2.9, 3.9, 4.9], np.float32)))
    assert error.stage == "simplify"
    assert operations(error) == ["maximum"]


def test_a_broken_body_of_a_loop_is_found(backend, monkeypatch):
    def wrong(results):
        return [r if r.op.name != "add" else make(TABLE["sub"], r.inputs, None) for r in results]

    def swapped(node):
        body = node.attrs.body
        changed = replace(body, results=tuple(wrong(body.results)))
        return make(node.op, node.inputs, node.attrs._replace(body=changed))

    with_pass(monkeypatch, "parts", replacing("scan", swapped))
    function = ek.jit(lambda x: ek.scan(lambda c, e: (c + e, c), x[0], x)[0])
    error = broken(function, floats(5, 2))
    assert error.stage == "parts"
    assert "scan" in operations(error)
    assert "body:" in error.graph


# --- kernels ----------------------------------------------------------------------------------------


def test_a_wrong_kernel_is_named(backend, monkeypatch):
    sub = TABLE["sub"]
    own = sub.lower
    assert isinstance(own, Pull)
    monkeypatch.setitem(sub.__dict__, "lower", Pull(lambda e, a, i, x, y: y(i) - x(i)))
    error = broken(ek.jit(lambda x, y: ek.exp(x) * (x - y) + y), floats(4, 5), floats(4, 5, seed=1))
    assert error.stage == "lower"
    assert "the kernel" in error.message
    assert operations(error) == ["sub"]


class Confused(Cache):
    """Kernels kept by less than what they depend on: whatever is asked for, the last one is found."""

    def get(self, key: Any, default: Any = None) -> Any:
        return next(reversed(self.values()), default)


def test_a_kernel_that_was_kept_for_something_else_is_told_from_a_wrong_one(backend, monkeypatch):
    monkeypatch.setattr(lower, "_kernels", Confused())
    a, b = floats(2, 2), floats(2, 2, seed=1)
    ek.jit(lambda a, b: ek.concatenate((a, b), 0).reshape((8,)))(a, b).numpy()
    error = broken(ek.jit(lambda a, b: ek.concatenate((a, b), 1).reshape((8,))), a, b)
    assert error.stage == "kernel cache"
    assert operations(error) == ["concatenate"]


def test_a_backend_that_is_wrong_by_itself_is_named(monkeypatch):
    from eshkol.backends.cpu.backend import CpuBackend

    own = CpuBackend.execute

    def wrong(self, program, launch, params=None):
        own(self, program, launch, params)
        out = params.get("out", params.get("out0"))
        values = out.read().copy()
        values[:1] += 1
        out.write(values)

    monkeypatch.setattr(CpuBackend, "execute", wrong)
    with ek.use_backend("cpu"):
        error = broken(ek.jit(lambda x: ek.exp(x) + x), floats(6))
    assert error.stage == "code of the backend cpu"


def test_values_in_order_stay_so():
    for shape in ((5,), (3, 4), (2, 3, 4)):
        x = np.sort(np.random.default_rng(1).normal(size=shape), -1)
        for seed in range(4):
            assert (np.diff(drawn(x, np.random.default_rng(seed)), axis=-1) >= 0).all()


def test_passes_that_change_a_program_are_counted(checks):
    x, before = floats(6), checks.passes
    ek.jit(lambda x: (x + 0) * 2)(x).numpy()
    assert checks.passes == before + 1


def test_a_kernel_is_validated_once_for_a_structure(checks):
    x = floats(3, 2)
    ek.jit(lambda x: ek.tanh(x) + x)(x).numpy()
    before = checks.kernels
    ek.jit(lambda x: ek.tanh(x) + x)(x + 1).numpy()
    assert before <= checks.kernels <= before + 1  # x + 1
    ek.jit(lambda x: ek.tanh(x) + x)(floats(7, 2)).numpy()
    assert checks.kernels > before  # the same program, for another shape


def test_two_kernels_of_which_one_is_another_are_validated_again(checks):
    """A long row is added up by one kernel, and its parts by the next."""

    def total(x):
        with ek.use_backend("reference"):
            return ek.jit(lambda x: (x * 2).sum(1))(x).numpy()

    x = floats(1, CORES.long)
    total(x)
    before = checks.kernels
    total(x)
    assert checks.kernels == before
    ((key, kernels),) = validation._validated.items()
    assert len(kernels) == 2
    for others in ([kernels[0], None], [None, kernels[1]], kernels[:1]):
        validation._validated.keep(key, others)
        total(x)
        before += 1
        assert checks.kernels == before


def test_kernels_behind_one_that_was_seen_are_compared(checks, backend):
    x = floats(3, 4)
    ek.jit(lambda x: ek.cumsum(x, 1))(x).numpy()
    before = checks.kernels
    ek.jit(lambda x: ek.cumprod(ek.cumsum(x, 1), 0))(x).numpy()
    assert checks.kernels == before + 1
    ek.jit(lambda x: ek.cumprod(ek.cumsum(x, 1), 0) + 0)(x).numpy()
    assert checks.kernels == before + 1


# --- passes over plans ------------------------------------------------------------------------------


def test_what_is_changed_though_it_is_read_again_is_found(backend, monkeypatch):
    def careless(self, steps, carries):
        """As if nothing were read after a copy of it was made."""
        for step in steps:
            if isinstance(step, Launch) and step.kernel.copies:
                self.same[step.reads[0]] = step.writes[0]
                self.gone.add(id(step))

    monkeypatch.setattr(in_place._Pass, "_body", careless)

    def function(x, i):
        y = ek.exp(x)
        z = y.clone()
        z[i] = 0.0
        return z.sum() * y

    error = broken(ek.jit(function), floats(6), ek.tensor([1, 2]))
    assert error.stage == "in place"
    assert len(operations(error)) <= 5


def test_a_plan_that_writes_into_a_parameter_is_found(monkeypatch):
    own = in_place.in_place

    def onto_params(plan):
        """Without a copy of a parameter before it is changed."""
        found = own(plan)
        steps, same = [], {}
        for step in found.steps:
            if isinstance(step, Launch) and step.kernel.copies and step.reads[0] in plan.params:
                same[step.writes[0]] = step.reads[0]
                continue
            if isinstance(step, Launch):
                turned = lambda places: tuple(same.get(p, p) for p in places)
                step = replace(
                    step, buffers=tuple((n, same.get(p, p)) for n, p in step.buffers),
                    reads=turned(step.reads), writes=turned(step.writes),
                )  # fmt: skip
            steps.append(step)
        results = tuple((same.get(p, p), aval) for p, aval in found.results)
        return replace(found, steps=tuple(steps), results=results)

    monkeypatch.setattr(pipeline, "in_place", onto_params)
    monkeypatch.setattr(pipeline, "verify_plan", lambda plan, stage: None)  # which would see it before

    def function(x, i):
        z = x.clone()
        z[i] = 0.0
        return z

    with ek.use_backend("cpu"):
        error = broken(ek.jit(function), floats(6), ek.tensor([1, 2]))
    assert error.stage == "in place"
    assert "its parameter 0" in error.message


def test_launches_together_that_need_each_other_are_found(backend, monkeypatch):
    monkeypatch.setattr(together_module._Item, "hinders", lambda self, launch, taken: False)
    monkeypatch.setattr(pipeline, "verify_plan", lambda plan, stage: None)  # which would see it before
    error = broken(ek.jit(lambda x: ek.sin(x.sum(0)).sum() * x), floats(6, 4))
    assert error.stage == "together"
    assert "at the same time" in error.message


def test_launches_together_are_looked_at_wherever_they_stand():
    """Behind steps that are by themselves, too."""
    compiled = ek.jit(lambda x: ek.cumsum(ek.cumsum(x, 1), 0), dynamic=False).traced(floats(6, 4)).compiled
    plan = pipeline.planned(compiled.results, compiled.params, CORES, fused=False)
    case = validation.Case([*compiled.results], [*compiled.params], [np.ones((6, 4))], validation.NOWHERE)
    launches = tuple(step for step in plan.steps if isinstance(step, Launch))
    assert len(launches) == 2
    validation._independent(replace(plan, steps=launches), case)
    with pytest.raises(MiscompiledError, match="at the same time"):
        validation._independent(replace(plan, steps=(*launches, Together(launches))), case)


def test_launches_in_a_wrong_order_are_found(monkeypatch):
    own = pipeline.together

    def backwards(plan):
        return replace(own(plan), steps=own(plan).steps[::-1])

    monkeypatch.setattr(pipeline, "together", backwards)
    with ek.use_backend("cpu"):
        error = broken(ek.jit(lambda x: ek.sin(x @ x) @ x), floats(4, 4))
    assert error.stage == "together"


def test_values_that_lie_where_others_are_needed_are_found(monkeypatch):
    own = arena.arranged

    def all_at_once(plan):
        found = own(plan)
        return replace(found, offsets=dict.fromkeys(found.offsets, 0))

    monkeypatch.setattr(native, "arranged", all_at_once)
    with ek.use_backend("cpu"):
        error = broken(ek.jit(lambda x: (x @ x) @ (x @ (x + 1))), floats(4, 4))
    assert error.stage == "memory"


# --- what is kept by structure ----------------------------------------------------------------------


def without_attributes(monkeypatch, name):
    """Let attributes, such as the axis of a sum, be no part of keys."""
    own = getattr(front, name)
    monkeypatch.setattr(front, name, lambda *given: (*(found := own(*given))[:-1], found[-1][0]))


def test_a_plan_that_is_found_for_another_graph_is_refused(backend, monkeypatch):
    without_attributes(monkeypatch, "structure")
    x = floats(3, 3)
    ek.cumsum(x, axis=0).numpy()
    error = broken(lambda: ek.cumsum(x, axis=1))
    assert error.stage == "plans kept by structure"
    assert operations(error)[-1] == "cumsum"


def test_gradients_that_are_found_for_another_graph_are_refused(backend, monkeypatch):
    def slope(axis):
        w = floats(3, 3).requires_grad_()
        (ek.cumsum(w, axis=axis) ** 2).sum().backward()
        return w.grad

    without_attributes(monkeypatch, "gradient_structure")
    slope(0)
    with pytest.raises(MiscompiledError) as caught:
        slope(1)
    assert caught.value.stage == "gradients kept by structure"


def test_gradients_that_come_again_are_derived_afresh_now_and_then(checks, monkeypatch):
    seen = []
    own = derive.vjp
    monkeypatch.setattr(derive, "vjp", lambda *given: seen.append(1) or own(*given))
    for k in range(9):
        w = floats(5, seed=k).requires_grad_()
        (ek.sin(w) * w).sum().backward()
    assert len(seen) == 5  # the first, and those that are the 1st, 2nd, 4th and 8th to find it


# --- no false alarms ----------------------------------------------------------------------------------


@settings(max_examples=amount(1000, 60), suppress_health_check=list(HealthCheck))
@given(programs((dtypes.float32, dtypes.float64, dtypes.float16)))
def test_programs_that_are_right_are_left_alone(case):
    program, arrays = case
    with ek.use_backend("reference"), ek.check(draws=1):
        for value in program.tensors([ek.tensor(a) for a in arrays])[len(arrays) :]:
            value.numpy()


@settings(max_examples=amount(300, 3), suppress_health_check=list(HealthCheck))
@given(programs((dtypes.float32, dtypes.float64), only_floats=True))
def test_their_gradients_too(case):
    program, arrays = case
    with ek.use_backend("cpu" if FULL else "reference"), ek.check(draws=1):
        total = lambda *xs: program.scalar(program.tensors(xs), ek.sin)
        ek.jit(ek.grad(total))(*map(ek.tensor, arrays)).numpy()


def test_what_hangs_on_rounding_is_no_difference(backend, checks):
    x = np.random.default_rng(3).normal(size=(9, 14)).astype(np.float32)
    t = ek.tensor(x)
    ek.jit(lambda t: t.sum() - t.sum(0).sum())(t).numpy()  # nothing but rounding is left
    ek.jit(lambda t: ek.sign(t.sum() - t.sum(0).sum()))(t).numpy()
    ek.jit(lambda t: ek.floor(ek.exp(ek.log(ek.abs(t) * 0 + 3)) + 1e-7))(t).numpy()
    ek.jit(lambda t: ek.argmax(ek.softmax(t * 1e-9), 1))(t).numpy()
    ek.jit(lambda t: t @ t.T - (t * 2) @ (t.T / 2))(t).numpy()
    ek.jit(lambda t: ek.sqrt(t.sum(1) - t.sum(1, keepdims=True)[:, 0]))(t).numpy()


def test_not_a_number_and_infinity_are_results_like_others(backend):
    t = ek.tensor([np.nan, np.inf, -np.inf, 0.0, 1.0])
    ek.jit(lambda t: [ek.exp(t) - t, ek.log(t), t / t, ek.maximum(t, 0.0), ek.softmax(t), t.sum()])(t)[0].numpy()


def test_indices_and_labels_stay_in_range(backend, checks):
    table, places = floats(6, 3), ek.tensor([5, 0, 3])
    ek.jit(lambda w, i: w[i].sum() + ek.cross_entropy(w, ek.concatenate((i, i)) % 3))(table, places).numpy()
    assert checks.draws


def test_random_values_that_a_program_refuses_are_left_out(monkeypatch):
    own, refused = validation.drawn, iter([True])

    def out_of_range_once(array, rng):
        found = own(array, rng)
        return np.full_like(found, 99) if array.dtype.kind == "i" and next(refused, False) else found

    monkeypatch.setattr(validation, "drawn", out_of_range_once)
    compiled = ek.jit(lambda x, i: ek.take(x, i, 0), dynamic=False).traced(floats(6), ek.tensor([5, 0, 3])).compiled
    arrays = [np.ones(6, np.float32), np.array([5, 0, 3])]
    assert len(validation._trials(compiled.results, compiled.params, arrays)) == 2  # the values at hand, and one of two


def test_loops_that_random_values_would_keep_going_end(backend, checks):
    double = lambda x, a: ek.while_loop(lambda x: x < 100.0, lambda x: x * a, x)
    before = checks.plans
    assert ek.jit(double)(ek.tensor(1.0), ek.tensor(1.6)).item() >= 100
    assert checks.plans == before + 1


# --- how it is asked for ------------------------------------------------------------------------------


def test_the_switch():
    assert CHECKS.on
    with ek.check(False):
        assert not CHECKS.on
        with ek.check(draws=7) as counts:
            assert CHECKS.on
            assert CHECKS.draws == 7
            assert counts is CHECKS.counts
        assert not CHECKS.on
        ek.check()
        assert CHECKS.on
    assert CHECKS.on
    assert CHECKS.draws == 2


@pytest.mark.parametrize(("given", "told"), [("1", "True"), ("0", "False"), (None, "False")])
def test_the_environment_turns_it_on(given, told):
    environment = {k: v for k, v in os.environ.items() if k != "ESHKOL_CHECK"} | (
        {"ESHKOL_CHECK": given} if given else {}
    )
    code = "from eshkol.schedule.check.switch import CHECKS; print(CHECKS.on)"
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == told


def test_it_finds_a_defect_in_what_was_compiled_before(monkeypatch):
    swapped = replacing("sub", lambda node: make(node.op, node.inputs[::-1], node.attrs))
    with_pass(monkeypatch, "simplify", swapped)
    function, x, y = ek.jit(lambda x, y: x - y), floats(3), floats(3, seed=1)
    with ek.check(False):
        function(x, y).numpy()
    assert broken(function, x, y).stage == "simplify"
    assert broken(function, x, y).stage == "simplify"  # not once only
    with ek.check(False):
        function(x, y).numpy()


def test_what_is_checked_is_the_plan_that_a_store_may_have(monkeypatch):
    asked, before = [], pipeline.Compiled._planned

    def planned(self, target, store):
        asked.append(store)
        return before(self, target, store)

    monkeypatch.setattr(pipeline.Compiled, "_planned", planned)
    with ek.device("cpu"):
        ek.jit(lambda x: ek.sin(x) * 3.25 - x)(floats(3)).numpy()
        assert asked == [current_backend().store]


def test_check_nan_is_validated_too(backend, checks):
    before = checks.plans
    with ek.check_nan():
        ek.jit(lambda x: ek.exp(x) * x + 2)(floats(3, 5)).numpy()
    assert checks.plans == before + 1


def test_donated_memory_is_as_it_should_be(backend, checks):
    step = ek.jit(lambda w, g: w - 0.1 * g, donate=0)
    w, want = floats(300, 300), floats(300, 300).numpy()
    for k in range(3):
        g = floats(300, 300, seed=k)
        w, want = step(w, g), want - np.float32(0.1) * g.numpy()
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-5, atol=1e-6)


def test_donated_memory_is_kept_where_a_mistake_is_found_before_the_run(monkeypatch):
    swapped = replacing("sub", lambda node: make(node.op, node.inputs[::-1], node.attrs))
    with_pass(monkeypatch, "simplify", swapped)
    w = floats(300, 300)
    broken(ek.jit(lambda w, g: w - g, donate=0), w, floats(300, 300, seed=1))
    np.testing.assert_array_equal(w.numpy(), floats(300, 300).numpy())


def test_what_is_too_large_is_left_out_and_counted(checks, monkeypatch):
    monkeypatch.setattr(validation, "MOST_WORK", 10)
    before = checks.left_out
    with ek.use_backend("reference"):
        ek.jit(lambda x: x * 2 + 1)(floats(20)).numpy()
    assert checks.left_out == before + 1


def test_an_error_of_the_user_stays_what_it_is(backend):
    with pytest.raises(ek.EshkolError, match="out of range"):
        ek.jit(lambda x, i: x[i])(floats(3), ek.tensor([7])).numpy()


def test_plans_put_together_are_still_made(checks):
    x = floats(8, 3)
    found = ek.jit(lambda x: [ek.sin(x).sum(), ek.exp(x), ek.cos(x).sum(0), ek.tanh(x) @ x.T])
    found(x)
    assert any(isinstance(step, Together) for step in walk(found.plan(x).steps))


def test_a_product_that_cancels_is_rounded_not_wrong():
    x = np.array([[-0.1999588906764984, 0.049739010632038116, 0.7289641499519348, -0.5787442326545715]] * 3, np.float32)
    with ek.check():
        for _ in range(3):
            (2.0 * (ek.tensor(np.stack([x, x, x])) @ ek.full((4, 4), 1.0))).numpy()


def test_values_that_are_passed_on_are_not_rounded_and_products_are():
    x, y = leaf(3, 4), leaf(2, 4)
    (product,) = recognize([matrix_product(x, permute(y, (1, 0)))], CORES)
    assert product.op is SEEN_PRODUCT
    (exact,), (rounded,) = (Interpretation(noise)([product], {}) for noise in (None, np.random.default_rng(0)))
    assert (exact != rounded).any()
    np.testing.assert_allclose(exact, rounded, rtol=1e-5)
    (passed,) = Interpretation(np.random.default_rng(0))([make(STOP, (x,), None)], {})
    np.testing.assert_array_equal(passed, x.data)
