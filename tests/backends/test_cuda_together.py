"""Launches of a GPU put together: the same bits as one after another, few launches, and code that is shared."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted_driver import installed

import eshkol as ek
from effort import examples
from eshkol import optim
from eshkol.atlas.sequence import Call
from eshkol.backends.cuda import together
from eshkol.backends.cuda.backend import CudaBackend
from eshkol.backends.cuda.together import FEW_BYTES, MANY_BYTES, least_ptx, room_for
from eshkol.backends.cuda.translate import ptx, target, translate
from eshkol.backends.lanes.promises import promises
from eshkol.errors import IndexOutOfRange

SIZES = ((7,), (300,), (40, 33), (1024,), (), (512, 4), (100,), (999,), (1 << 18,))
PTXAS = shutil.which("ptxas")


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


def tables(driver):
    return [*driver.tables.values()]


def launched(driver, run):
    before = driver.calls.count("cuLaunchKernel")
    found = run()
    return found, driver.calls.count("cuLaunchKernel") - before


def steps(name, driver, count=4, sizes=SIZES, **options):
    """Parameters after some steps of an optimizer, and the launches of each."""
    rng = np.random.default_rng(5)
    counts = []
    with ek.device("cuda"):
        params = [ek.tensor(rng.standard_normal(s).astype(np.float32)).realize().requires_grad_() for s in sizes]
        optimizer = getattr(optim, name)(params, lr=1e-2, **options)
        for _ in range(count):
            for p in params:
                p.grad = ek.tensor(rng.standard_normal(p.shape).astype(np.float32)).realize()
            counts.append(launched(driver, optimizer.step)[1])
        return [p.detach().numpy().copy() for p in params], counts


@pytest.mark.parametrize(("name", "options", "most"), [
    ("AdamW", {}, 2), ("SGD", {}, 1), ("SGD", {"momentum": 0.9}, 1),
])  # fmt: skip
def test_an_optimizer_updates_all_parameters_at_once(name, options, most, driver, monkeypatch):
    found, counts = steps(name, driver, **options)
    assert max(counts[1:]) <= most, "the first step makes what is kept beside parameters, too"
    monkeypatch.setattr(together, "LEAST", 1000)
    apart, more = steps(name, driver, **options)
    assert more[1] >= len(SIZES)
    for one, other in zip(found, apart, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ["AdamW", "SGD"])
def test_lanes_of_updates_cannot_fail(name, driver):
    """So parameters stay in their memory, and the host waits for no step: single numbers are read without a look."""
    steps(name, driver, 1, [(600,), (3, 4)])
    programs = [*driver.programs.values()]
    programs += [part[0].prepared.program for table in tables(driver) for part in table.parts]
    assert programs
    for program in programs:
        relied_on = promises(program)
        assert relied_on is not None
        assert not translate(program, target(), relied_on).layout.sites, str(program)


@pytest.mark.parametrize("room", [FEW_BYTES, MANY_BYTES])
def test_many_tensors_are_as_many_launches_as_there_is_room_for(room, driver, monkeypatch):
    """The tensors of a small GPT-2, by shape: one launch for the updates, or a few on older drivers."""
    monkeypatch.setattr("eshkol.backends.cuda.backend.room_for", lambda version: room)
    monkeypatch.setattr(driver, "cuLaunchKernel", lambda *given: 0)  # nothing is computed
    layer = [(8,), (8,), (24, 8), (24,), (8, 8), (8,), (8,), (8,), (32, 8), (32,), (8, 32), (8,)]
    sizes = [(50, 8), (16, 8), *layer * 12, (8,), (8,)]
    assert len(sizes) == 148
    _, counts = steps("AdamW", driver, 2, sizes)
    assert counts[1] <= (2 if room == MANY_BYTES else 4)
    for table in tables(driver):
        assert table.size <= room
        text = ptx(table.module(), target((9, 0), least_ptx(table.size)))
        assert len(text) < 40_000, "tensors share code"
        assert ".local" not in text, "the table is read where it lies"
        assert f".param .align 8 .b8 kernel_param_1[{table.size - 8}]" in text
        taken(text)


def taken(text: str) -> None:
    """Ask a `ptxas`, where there is one, whether it takes the text."""
    if PTXAS is not None:
        made = subprocess.run(
            [PTXAS, "-arch=sm_90a", "-", "-o", "/dev/null"], input=text, text=True, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr


def test_rooms():
    assert (room_for(11080), room_for(12000), room_for(12010), room_for(13000)) == (4096, 4096, 32764, 32764)
    assert (least_ptx(4096), least_ptx(4097)) == (0, 81)


def test_what_can_fail_stays_apart_and_is_told(driver):
    f = ek.jit(lambda xs, i: [ek.take(x, i) for x in xs] + [x * 2 for x in xs])
    with ek.device("cuda"):
        xs = [ek.tensor(np.arange(10.0 + k)) for k in range(4)]
        found = f(xs, ek.tensor(np.array([1])))
        assert [x.numpy().tolist() for x in found[:4]] == [[1.0]] * 4
        with pytest.raises(IndexOutOfRange):
            f(xs, ek.tensor(np.array([12])))
        assert f(xs, ek.tensor(np.array([2])))[3].numpy().tolist() == [2.0]
    assert all("take" not in table.name for table in tables(driver))


def test_blocks_whose_lanes_meet_share_a_kernel_with_their_like_alone(driver):
    f = ek.jit(lambda xs: [x.sum(1) for x in xs] + [x * 3 + 1 for x in xs])
    with ek.device("cuda"):
        xs = [np.random.default_rng(k).standard_normal((6 + k, 700)).astype(np.float32) for k in range(4)]
        found = f([ek.tensor(x) for x in xs])
        for x, got in zip(xs, found, strict=False):
            np.testing.assert_allclose(got.numpy(), x.sum(1), rtol=1e-4, atol=1e-3)
        for x, got in zip(xs, found[4:], strict=True):
            np.testing.assert_allclose(got.numpy(), x * 3 + 1, rtol=1e-6)
    for table in tables(driver):
        meets = [any(i.op.name in together.MEETS for i in p[0].prepared.program.instructions) for p in table.parts]
        assert not any(meets) or len(meets) == 1


KINDS = {
    "scaled": lambda x, y: x * 0.5 + y, "turned": lambda x, y: x[::-1] - y, "sine": lambda x, y: ek.sin(x) * y,
    "root": lambda x, y: ek.sqrt(abs(x)) / (1 + abs(y)), "whole": lambda x, y: x + y.sum(),
}  # fmt: skip


@settings(examples(40, 6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from([*KINDS]), st.sampled_from([1, 5, 256, 700, 2048])), min_size=3, max_size=12),
       st.sampled_from([600, 1200, MANY_BYTES]))  # fmt: skip
def test_random_launches(made, room):
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(2 * size).astype(np.float32) for _, size in made]
    found = []
    for least in (3, 1000):
        with pytest.MonkeyPatch.context() as patch, installed(patch):
            patch.setattr(together, "LEAST", least)
            patch.setattr("eshkol.backends.cuda.backend.room_for", lambda version: room)
            with ek.device("cuda"):
                f = ek.jit(lambda xs: [KINDS[kind](x[:n], x[n:]) for (kind, n), x in zip(made, xs, strict=True)])
                tensors = [ek.tensor(a) for a in arrays]
                found.append([[y.numpy().tobytes() for y in f(tensors)] for _ in range(2)])
    assert found[0] == found[1]
    assert found[0][0] == found[0][1]


def test_calls_are_each_in_one_launch(driver, monkeypatch):
    asked: list[tuple[int, list[int]]] = []
    real = CudaBackend.together

    def noted(self, calls):
        assert all(isinstance(call, Call) for call in calls)
        joints = real(self, calls)
        asked.append((len(calls), [n for joint in joints for n in joint.numbers]))
        return joints

    monkeypatch.setattr(CudaBackend, "together", noted)
    steps("SGD", driver, 1)
    assert asked
    for count, numbers in asked:
        assert len(set(numbers)) == len(numbers)
        assert set(numbers) <= set(range(count))
