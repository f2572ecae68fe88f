"""The CUDA backend around its PTX, on a driver whose device is the interpreter: memory, launches, errors, rows."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from effort import FULL
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import GLOBAL, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.backends import backend_class
from eshkol.backends.cuda import backend as backends
from eshkol.backends.cuda import driver as drivers
from eshkol.backends.cuda import together
from eshkol.backends.cuda import translate as translation
from eshkol.backends.cuda.memory import GRAIN, LARGE, SMALL, STAGED, Allocator, rounded
from eshkol.conformance import checks
from eshkol.conformance.outcomes import FAIL
from eshkol.conformance.samples import rows
from eshkol.errors import (
    AllocationFailed,
    BackendUnavailable,
    DeviceLost,
    EshkolError,
    ExecutionFailed,
    IndexOutOfRange,
    TensorError,
)
from eshkol.schedule import pipeline

# Rows whose kernels go all ways: element by element, rows in blocks, parts, columns, products, pushes, updates, macros.
ROWS = ("add", "softmax", "sum", "matmul", "layer_norm", "take", "cumsum", "conv2d", "fmod", "where", "max", "scatter")


@pytest.fixture
def driver(monkeypatch):
    """The cuda backend on the interpreted driver, opened anew."""
    with installed(monkeypatch) as made:
        yield made


def copied() -> ProgramBuilder:
    b = ProgramBuilder("copied")
    x, y = b.buffer("x", Type.F32), b.buffer("y", Type.F32)
    value = b.reg(Type.F32)
    b.ldg(Type.F32, value, x.at(Register(GLOBAL)))
    b.stg(Type.F32, y.at(Register(GLOBAL)), value)
    return b


# --- memory -------------------------------------------------------------------------------------------


def test_the_allocator_keeps_blocks_and_gives_all_back_when_memory_runs_out():
    held, next_address = {}, iter(range(1 << 20, 1 << 40, 1 << 32))
    room = 10 * LARGE

    def take(size):
        if sum(held.values()) + size > room:
            return None
        address = next(next_address)
        held[address] = size
        return address

    allocator = Allocator(take, held.pop)
    assert allocator.allocate(0) == 0
    one = allocator.allocate(100)
    assert held[one] == GRAIN
    allocator.free(one)
    assert allocator.allocate(300) == one, "a kept block is used again"
    large = [allocator.allocate(3 * LARGE) for _ in range(3)]
    for address in large:
        allocator.free(address)
    assert allocator.statistics.kept == 9 * LARGE
    whole = allocator.allocate(9 * LARGE)  # for which the kept ones must go
    assert allocator.statistics.kept == 0
    assert allocator.statistics.used == 9 * LARGE + GRAIN
    with pytest.raises(AllocationFailed, match=r"no \d+ bytes left"):
        allocator.allocate(4 * LARGE)
    allocator.free(whole)
    allocator.free(one)
    assert allocator.statistics.used == 0
    assert allocator.statistics.most == 9 * LARGE + GRAIN


def test_a_limit_of_memory():
    addresses = iter(range(1, 100))
    allocator = Allocator(lambda size: next(addresses), lambda address: None, limit=4 * GRAIN)
    first = allocator.allocate(3 * GRAIN)
    with pytest.raises(AllocationFailed, match="over the limit"):
        allocator.allocate(2 * GRAIN)
    allocator.free(first)
    assert allocator.allocate(4 * GRAIN), "what is kept does not count against who needs it"


def test_the_lowest_block_is_taken_in_whatever_order_they_came_back():
    """So that who asks for the same again finds it where it was."""
    rng, addresses, kept = np.random.default_rng(6), iter(range(1000, 1 << 30, 512)), set()
    allocator = Allocator(lambda size: next(addresses), lambda address: None)
    held = [allocator.allocate(GRAIN) for _ in range(100)]
    for _ in range(2000):
        if held and (not kept or rng.random() < 0.5):
            kept.add(address := held.pop(int(rng.integers(len(held)))))
            allocator.free(address)
        else:
            held.append(allocator.allocate(GRAIN))
            assert held[-1] == min(kept)
            kept.remove(held[-1])


def test_random_allocations_leak_nothing():
    rng, addresses, held = np.random.default_rng(5), iter(range(1, 1 << 30)), []
    allocator = Allocator(lambda size: next(addresses), lambda address: None)
    for _ in range(10_000):
        held.append(allocator.allocate(int(rng.integers(1, 2 * SMALL))))
        if len(held) > 20:
            allocator.free(held.pop(int(rng.integers(len(held)))))
    assert len(set(held)) == len(held)
    for address in held:
        allocator.free(address)
    assert allocator.statistics.used == 0
    assert allocator.statistics.from_driver < 1000, "blocks are used again"


def test_a_kept_block_serves_no_much_smaller_request():
    addresses = iter(range(1, 100))
    allocator = Allocator(lambda size: next(addresses), lambda address: None)
    allocator.free(allocator.allocate(8 * LARGE))
    allocator.allocate(2 * LARGE)
    assert allocator.statistics.from_driver == 2
    assert rounded(SMALL + 1) == LARGE


# --- the backend --------------------------------------------------------------------------------------


def test_copies_of_any_size(driver):
    with ek.device("cuda") as machine:
        for size in (0, 1, 1000, STAGED, 2 * STAGED + 7, 3 * STAGED):
            data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
            buffer = machine.allocate(size)
            machine.copy_to(buffer, data)
            assert machine.copy_from(buffer) == data.tobytes()
            machine.free(buffer)
        one, other = machine.array(np.arange(8.0)), machine.array(np.zeros(8))
        machine.copy_within(other.handle, 16, one.handle, 8, 24)
        np.testing.assert_array_equal(other.read(), [0, 0, 1, 2, 3, 0, 0, 0])


def test_checks_are_left_out_only_where_accesses_are_in_range(driver):
    with ek.device("cuda") as machine:
        x, y = machine.array(np.arange(8, dtype=np.float32)), machine.array(np.zeros(8, np.float32))
        program = copied().build()
        machine.execute(program, LaunchConfig.linear(8), {"x": x, "y": y})
        np.testing.assert_array_equal(y.read(), np.arange(8))
        prepared = machine.prepared(program)
        assert prepared.fast is not None
        assert prepared.plain is None
        with pytest.raises(ExecutionFailed):
            machine.execute(program, LaunchConfig.linear(9), {"x": x, "y": y})
        assert prepared.plain is not None
        machine.execute(program, LaunchConfig.linear(8), {"x": x, "y": y})  # the fault is not there any more


def test_what_the_device_has_not_is_refused_by_name(driver):
    b = ProgramBuilder("waits")
    b.grid_sync()
    with ek.device("cuda") as machine:
        machine.execute(b.build(), LaunchConfig.linear(8, 8))
        with pytest.raises(BackendUnavailable, match="GridSync"):
            machine.execute(b.build(), LaunchConfig.linear(16, 8))
        with pytest.raises(BackendUnavailable, match="bytes of shared memory"):
            machine.execute(copied().build(), LaunchConfig.linear(8, 8, 1 << 20), {})
        x = ek.tensor(np.eye(2) * 4.0)
        with pytest.raises(BackendUnavailable, match=r"eig.* has no kernel for cuda") as caught:
            ek.linalg.eig(x)[0].numpy()
        assert "cpu" in caught.value.hint
        assert ek.linalg.eig(x.to("cpu"))[0].to("cuda").device == "cuda"


def test_more_than_the_device_has(driver):
    with ek.device("cuda") as machine:
        used = machine.statistics.used
        with pytest.raises(AllocationFailed, match="over the limit"):
            machine.allocate(1 << 40)
        with pytest.raises(AllocationFailed, match=r"no \d+ bytes left"):
            machine.allocate(driver.memory)
        assert (ek.ones((4,)) + 1).numpy().tolist() == [2.0] * 4, "everything else goes on"
        assert machine.statistics.used <= used + 2 * GRAIN


def test_values_give_their_memory_back(driver):
    with ek.device("cuda") as machine:
        (ek.ones((100,)) * 3).sum().numpy()  # what is compiled for it stays
        used = machine.statistics.used
        for _ in range(5):
            (ek.ones((100,)) * 3).sum().numpy()
        assert machine.statistics.used == used


def test_devices_by_number(driver):
    assert backend_class("cuda:0") is backend_class("cuda")
    assert backend_class("cuda:1").name == "cuda:1"
    with ek.device("cuda:0") as first:
        assert ek.ones((2,)).device == "cuda"
    with ek.device("cuda:1") as second:
        x = ek.ones((2,)) + 1
        assert x.device == "cuda:1"
        assert x.to("cuda").device == "cuda"
    assert first is not second
    with pytest.raises(BackendUnavailable, match="no GPU cuda:2"), ek.device("cuda:2"):
        pass
    with pytest.raises(BackendUnavailable, match="only one cpu"):
        backend_class("cpu:1")
    with pytest.raises(BackendUnavailable, match="no backend 'cuda:x'"):
        backend_class("cuda:x")


def test_without_a_driver(monkeypatch):
    monkeypatch.setattr(drivers, "_library", lambda: None)
    drivers._opened.cache_clear()
    with pytest.raises(BackendUnavailable, match="no NVIDIA driver"), ek.device("cuda"):
        pass
    drivers._opened.cache_clear()


@pytest.mark.parametrize("name", [op.name for op in rows()] if FULL else ROWS)
def test_rows(name, driver):
    """The launches of a row, values and gradient, read from the record that the PTX is given."""
    (op,) = [op for op in rows() if op.name == name]
    outcomes = [checks.forward(checks.cases_of(op)[0], "cuda")]
    if (case := checks.gradient_case(op)) is not None:
        outcomes.append(checks.gradient(case, "cuda"))
    assert not [str(o) for o in outcomes if o.result == FAIL]


# --- sequences ----------------------------------------------------------------------------------------


def looping(x):
    total, steps = ek.scan(lambda c, row: (c + row * 2.0, c.sum()), ek.zeros((3,)), x)
    _, halved = ek.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] / 2.0), (ek.tensor(0), total))
    return ek.cond(halved.sum() > 0, lambda y: y + 1.0, lambda y: y - 1.0, halved), steps


def test_loops_and_branches_are_one_sequence(driver):
    given = np.arange(12, dtype=np.float32).reshape(4, 3)
    wanted = [x.numpy() for x in looping(ek.tensor(given))]
    with ek.device("cuda"):
        compiled, x = ek.jit(looping), ek.tensor(given)
        for _ in range(2):
            found = compiled(x)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
        with ek.transfers() as seen:
            compiled(x)
    assert (seen.uploads, seen.reads) == (0, 0)


def test_the_first_launch_that_fails_is_told_and_the_next_run_is_well(driver):
    def picked(x, i):
        return ek.take(x, i, axis=0) * 2.0

    with ek.device("cuda"):
        compiled, x = ek.jit(picked), ek.tensor(np.arange(5.0))
        good, bad = ek.tensor(np.array([1, 4])), ek.tensor(np.array([1, 7]))
        assert compiled(x, good).numpy().tolist() == [2.0, 8.0]
        with pytest.raises(EshkolError, match="index"):
            compiled(x, bad).numpy()
        assert compiled(x, good).numpy().tolist() == [2.0, 8.0]


def rolled(x, y):
    """More than a few launches, some of them in a loop whose places move, and no look at a value."""
    carry, rows = ek.scan(lambda c, row: (c * 0.5 + row, (c + row).sum()), y, x)
    return carry, rows, ek.softmax(carry * rows.sum(), 0)


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_what_runs_again_and_again_is_a_graph(driver, monkeypatch):
    rng = np.random.default_rng(3)
    with ek.device("cuda"):
        compiled, kept = ek.jit(rolled), []
        for k in range(6):  # with other memory each time, for parameters and results
            x, y = rng.standard_normal((5, 4)), rng.standard_normal(4)
            found = compiled(ek.tensor(x), ek.tensor(y))
            close(found, rolled(ek.tensor(x).to("cpu"), ek.tensor(y).to("cpu")))
            assert ("cuGraphLaunch" in driver.calls) == (k >= 2)
            kept.append((x, found) if k % 2 else y)
        assert driver.calls.count("cuGraphInstantiateWithFlags") == 1
        changes = driver.calls.count("cuGraphExecKernelNodeSetParams")
        assert changes > 0
        for _ in range(4):  # the same memory again, and memory that was used before
            again = compiled(ek.tensor(x), ek.tensor(y))
            close(again, found)
        destroyed = driver.calls.count("cuGraphExecDestroy")
        del compiled
        assert driver.calls.count("cuGraphExecDestroy") == destroyed + 1
    monkeypatch.setenv("ESHKOL_CUDA_GRAPHS", "0")
    with installed(monkeypatch) as plain, ek.device("cuda"):
        compiled = ek.jit(rolled)
        for _ in range(4):
            close(compiled(ek.tensor(x), ek.tensor(y)), rolled(ek.tensor(x).to("cpu"), ek.tensor(y).to("cpu")))
        assert "cuGraphCreate" not in plain.calls


def test_two_graphs_take_turns_where_results_lie_in_other_memory(driver, monkeypatch):
    """A step that can fail does not overwrite its parameters: every second time they lie where they lay."""
    monkeypatch.setattr(together, "LEAST", 100)  # so that each is a launch
    with ek.device("cuda"):
        xs = [ek.tensor(np.full(4 + k, 1.0)) for k in range(24)]  # of different lengths
        places = ek.tensor(np.array([1, 2]))
        step = ek.jit(lambda xs, i: ([x * 2 - 1 for x in xs], ek.take(xs[0], i, axis=0)))
        for k in range(12):
            xs, taken = step(xs, places)
            assert [x.numpy().tolist() for x in xs[:2]] == [[1.0] * 4, [1.0] * 5]
            assert taken.numpy().tolist() == [1.0, 1.0]
            if k == 7:
                before = driver.calls.count("cuGraphExecKernelNodeSetParams")
        assert before > 16
        assert driver.calls.count("cuGraphExecKernelNodeSetParams") - before <= 4 * 4  # where what is taken lies
        assert driver.calls.count("cuGraphInstantiateWithFlags") == 2
        destroyed = driver.calls.count("cuGraphExecDestroy")
        del step
        assert driver.calls.count("cuGraphExecDestroy") == destroyed + 2


@pytest.mark.parametrize("name", ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags",
                                  "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"])  # fmt: skip
def test_a_graph_that_the_driver_does_not_take_is_launched_one_by_one(driver, name):
    rng = np.random.default_rng(4)
    driver.fails[name] = 801
    with ek.device("cuda"):
        compiled = ek.jit(rolled)
        for _ in range(5):
            x, y = rng.standard_normal((5, 4)), rng.standard_normal(4)
            found = compiled(ek.tensor(x), ek.tensor(y))
            close(found, rolled(ek.tensor(x).to("cpu"), ek.tensor(y).to("cpu")))
    assert driver.calls.count(name) == 1, "and it is not asked again"


def test_lanes_that_fail_in_a_graph_are_told(driver):
    def picked(x, i):
        return ek.take(rolled(x, x[0])[0], i, axis=0)

    with ek.device("cuda"):
        compiled, x = ek.jit(picked), ek.tensor(np.arange(20.0).reshape(4, 5))
        good, bad = ek.tensor(np.array([1, 4])), ek.tensor(np.array([1, 7]))
        wanted = picked(x.to("cpu"), good.to("cpu")).numpy()
        for _ in range(4):
            np.testing.assert_allclose(compiled(x, good).numpy(), wanted)
        assert "cuGraphLaunch" in driver.calls
        with pytest.raises(EshkolError, match="index"):
            compiled(x, bad).numpy()
        np.testing.assert_allclose(compiled(x, good).numpy(), wanted)


def test_machine_code_is_kept_and_made_again_where_it_is_not_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path))

    def computed(how):
        with installed(monkeypatch) as made, ek.device("cuda"):
            how(made)
            assert ek.jit(lambda x: x * 3.0 + 2.0)(ek.tensor(np.arange(4.0))).tolist() == [2.0, 5.0, 8.0, 11.0]
            return [made.calls.count(name) for name in ("cuLinkComplete", "cuModuleLoadDataEx")]

    compiled, loaded = computed(lambda made: None)
    assert compiled > 0
    assert loaded == compiled
    assert computed(lambda made: None) == [0, loaded]
    assert computed(lambda made: setattr(made, "refuses_code", True)) == [0, 2 * loaded]
    for path in tmp_path.rglob("*.eskc"):
        path.write_bytes(path.read_bytes()[:-1])
    assert computed(lambda made: None) == [loaded, loaded], "what is broken is made anew"
    for path in tmp_path.rglob("*.eskc"):
        path.unlink()
    assert computed(lambda made: made.fails.update(cuLinkComplete=801)) == [loaded, loaded], "or the PTX is loaded"


def test_modules_stay_while_a_sequence_has_them(driver, monkeypatch):
    monkeypatch.setattr(backends, "REMEMBERED", 1)
    with ek.device("cuda"):
        compiled, x = ek.jit(lambda x: x * 3.0), ek.tensor(np.arange(4.0))
        compiled(x).numpy()
        others = [ek.jit(lambda x, k=k: ek.exp(x) + k) for k in range(3)]
        for other in others:
            other(x).numpy()
        assert "cuModuleUnload" not in driver.calls
        assert compiled(x).numpy().tolist() == [0.0, 3.0, 6.0, 9.0]


def test_doctor_shows_the_devices(driver, capsys):
    from rich.console import Console

    from eshkol.cli.main import _doctor_table, examine

    report = examine()
    (first, second) = report["backends"]["cuda"]["machines"]
    assert (first["name"], first["capability"], second["number"]) == ("interpreter", "9.0", 1)
    Console(width=200).print(_doctor_table(report))
    assert "1: interpreter, compute capability 9.0" in capsys.readouterr().out


def test_events_and_kept_memory_as_pytorch_names_them(driver):
    with ek.device("cuda") as machine:
        start, end = (ek.cuda.Event(enable_timing=True) for _ in range(2))
        with pytest.raises(TensorError, match="needs both recorded"):
            start.elapsed_time(end)
        start.record()
        x = ek.ones((100,)).realize()
        end.record()
        ek.cuda.synchronize()
        assert (end.query(), start.elapsed_time(end)) == (True, 2.5)
        driver.fails["cuEventQuery"] = 600
        assert not end.query()
        driver.fails["cuEventQuery"] = 700
        with pytest.raises(DeviceLost):
            end.query()
        driver.fails.clear()
        del x, start, end
        assert driver.calls.count("cuEventDestroy_v2") == 2
        assert machine.statistics.kept > 0
        ek.cuda.empty_cache()
        assert machine.statistics.kept == 0


# --- what a launch need not look at -------------------------------------------------------------------


KERNELS = {
    "softmax": lambda x: ek.softmax(x, 1),
    "layer norm": lambda x: ek.layer_norm(x, x.shape[1]),
    "whole sum": lambda x: x.sum(),
    "columns": lambda x: x.sum(0),
    "rows and their elements": lambda x: x - x.max(axis=1, keepdims=True),
    "elements": lambda x: ek.exp(x) * 2.0 + x.T.sum(0, keepdims=True).T,
}


@pytest.mark.parametrize("shape", [(300, 1000), (512, 1024), (3, 70001)], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_plans_need_no_checks(name, shape, driver, monkeypatch):
    """What their ranges say holds for their launches: no lane can fail, and the host waits for none."""
    launched = []

    def noted(backend, prepared, launch, record):
        relied_on = prepared.promises
        assert relied_on is not None
        assert relied_on.hold(launch.total_threads, record.sizes, record.scalars), str(prepared.program)
        layout = translation.translate(prepared.program, backend.target, relied_on).layout
        assert {site.message for site in layout.sites} <= {"integer division by zero"}, "of known numbers"
        launched.append(prepared.program.name)
        return backend._loaded(prepared, fast=True)

    monkeypatch.setattr(backends.CudaBackend, "_suitable", noted)
    monkeypatch.setattr(driver, "cuLaunchKernel", lambda *given: 0)  # nothing is computed
    with ek.device("cuda"):
        KERNELS[name](ek.tensor(np.ones(shape, np.float32))).realize()
    assert launched


def test_calls_like_the_one_before_see_what_has_changed(driver):
    """Other shapes, dtypes, machines, precisions and kinds of arguments; results go when nothing holds them."""
    halves = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 1024

    def product(x, y):
        return x @ y + 1

    compiled = ek.jit(product)
    for precision in ("highest", "medium", "highest"):
        ek.set_float32_matmul_precision(precision)
        with ek.device("cuda") as machine:
            x, y = ek.tensor(halves).realize(), ek.tensor(halves.T.copy()).realize()
            for _ in range(3):
                np.testing.assert_allclose(compiled(x, y).numpy(), halves @ halves.T + 1, rtol=2e-2)
                np.testing.assert_allclose(product(x, y).numpy(), halves @ halves.T + 1, rtol=2e-2)
            used = machine.statistics.used
            held = [compiled(x, y) for _ in range(4)]
            assert machine.statistics.used > used
            del held
            assert machine.statistics.used == used
    add = ek.jit(lambda x, y: {"sum": x + y, "both": (x, y - 1)})
    for device in ("cuda", "cpu", "cuda"):
        for dtype in (np.float32, np.int64):
            for shape in ((3,), (2, 3)):
                a, b = np.ones(shape, dtype), np.full(shape, 2, dtype)
                with ek.device(device):
                    for given in (
                        (ek.tensor(a), ek.tensor(b)),
                        (ek.tensor(a).realize(), ek.tensor(b).realize()),
                        (a, b),
                    ):
                        for _ in range(2):
                            found = add(*given)
                            np.testing.assert_array_equal(found["sum"].numpy(), a + b)
                            np.testing.assert_array_equal(found["both"][1].numpy(), b - 1)
                            assert found["sum"].device == device


def test_blocks_are_used_again_and_known_by_their_address():
    asked: list[int] = []

    def take(size: int) -> int | None:
        asked.append(size)
        return 0x10000 * len(asked)

    given: list[int] = []
    memory = Allocator(take, given.append)
    addresses = [memory.allocate(GRAIN * (k + 1)) for k in range(200)]
    assert len(set(addresses)) == len(asked) == 200
    for address in addresses[::2]:
        memory.free(address)
    again = [memory.allocate(GRAIN * (k + 1)) for k in range(0, 200, 2)]
    assert sorted(again) == sorted(addresses[::2])
    assert len(asked) == 200
    with pytest.raises(TypeError, match="no block that is lent"):
        memory.free(12345)
    memory.free(again[0])
    with pytest.raises(TypeError, match="no block that is lent"):
        memory.free(again[0])
    memory.release()
    assert given == [again[0]]
    assert memory.allocate(0) == 0
    with pytest.raises(TypeError, match="not negative"):
        memory.allocate(-1)


def test_complex_numbers_are_computed_there(driver):
    x, y = (np.random.default_rng(k).normal(size=(6, 70, 2)).view(np.complex128)[..., 0] for k in (0, 1))
    with ek.device("cuda"):
        a, b = ek.tensor(x), ek.tensor(y)
        found = [
            a * b - (a / b + 2.5j) * 0.5, (ek.exp(a) * ek.abs(b)).sum(1), a @ b.T, a.prod(0),
            ek.grad(lambda u: ek.real((ek.exp(u) * b).sum()))(a), ek.fft.fft(a), ek.fft.ifft(b, dim=0),
        ]  # fmt: skip
        found = [v.numpy() for v in found]
    wanted = [
        x * y - (x / y + 2.5j) * 0.5, (np.exp(x) * np.abs(y)).sum(1), x @ y.T, x.prod(0), np.conj(np.exp(x) * y),
        np.fft.fft(x), np.fft.ifft(y, axis=0),
    ]  # fmt: skip
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.unchecked("validation keeps what it compares")
def test_what_was_donated_is_not_overwritten_before_it_is_known_that_nothing_failed(driver, monkeypatch):
    """Launches run whatever those before them find; only where none can fail do results take donated memory."""
    made = []
    plan = pipeline.DevicePlan
    monkeypatch.setattr(pipeline, "DevicePlan", lambda *given: made.append(plan(*given)) or made[-1])
    unsure = ek.jit(lambda w, i: w + ek.take(ek.tensor([1.0, 2.0, 3.0]), i, 0)[0], donate=0)
    with ek.device("cuda"):
        good, bad = ek.tensor([0, 2]).realize(), ek.tensor([0, 3]).realize()
        w = unsure(ek.tensor(np.ones((40, 30), np.float32)).realize(), good)
        w = unsure(w, good)
        assert made[-2].heirs
        assert not made[-1].heirs
        with pytest.raises(IndexOutOfRange):
            unsure(w, bad).numpy()
        assert (w.numpy() == 3).all()
        made[-2].whole.runner.fallible = False
        assert not made[-2].overwrites_too_soon
