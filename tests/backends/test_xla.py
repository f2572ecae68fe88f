"""XLA on whole graphs: tensors, transformations, networks and faults, where jaxlib is installed.

Elsewhere all of it is skipped, with the reason; the text of graphs is tested everywhere (`test_whole_graphs.py`).
Results are those of the interpreter of the graph, or of the CPU within a few units of the last place.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from on_machines import NETWORKS, learns_as_the_cpu

import eshkol as ek
from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.xla import client
from eshkol.backends.xla.backend import XlaBackend
from eshkol.conformance.__main__ import main as conformance
from eshkol.conformance.checks import cases_of, forward, gradient, gradient_case
from eshkol.conformance.outcomes import FAIL, PASS
from eshkol.conformance.samples import rows
from eshkol.errors import (
    AllocationFailed,
    BackendError,
    BackendUnavailable,
    IndexOutOfRange,
    MiscompiledError,
    NotANumberError,
    TensorError,
)
from eshkol.ops import TABLE
from eshkol.tensors.devices import machine

REASON = client.unavailable()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
# Rows that are written in different ways: slices, gathers, loops, updates, products, sorts, words, special functions.
SOME = ["add", "softmax", "max_pool2d", "conv2d", "take", "scatter_add", "cumsum", "sort", "fft", "cholesky", "erfinv",
        "random_bits", "roll", "argmax", "searchsorted", "power", "gather", "prod"]  # fmt: skip
REFUSED_ROWS = {"eig", "eig_with_pivots", "eigvals"}


@pytest.fixture(autouse=True)
def on_xla():
    with ek.device("xla"):
        yield


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# --- rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_rows(name):
    op = TABLE[name]
    outcome = forward(cases_of(op)[0], "xla")
    assert outcome.result == PASS, str(outcome)
    if (case := gradient_case(op)) is not None and name in ("softmax", "take", "max_pool2d"):
        assert gradient(case, "xla").result == PASS


@pytest.mark.skipif(not FULL, reason="make test-all has every row: XLA takes long to compile each")
def test_all_rows():
    outcomes = [forward(cases_of(op)[0], "xla") for op in rows()]
    assert [str(o) for o in outcomes if o.result == FAIL] == []
    assert {o.row for o in outcomes if o.result != PASS} == {*REFUSED_ROWS, "matrix_rank"}


def test_conformance_counts_rows_alone(tmp_path):
    assert conformance(["xla", "--only", "ADD", "add", "eigvals", "--samples", "1", "--json", str(tmp_path / "x")]) == 0
    (run,) = json.loads((tmp_path / "x").read_text())["runs"]
    assert {(row["name"], row["kind"]) for row in run["rows"]} == {
        ("add", "forward"), ("add", "gradient"), ("eigvals", "forward"),
    }  # fmt: skip
    assert "eigvals(float32[3, 3]) cannot be said in StableHLO" in json.dumps(run)


@pytest.mark.parametrize(("mode", "numpys"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_borders(mode, numpys):
    x, widths = drawn(2, 3, 4), ((0, 1), (2, 0), (3, 2))
    np.testing.assert_array_equal(ek.pad(ek.tensor(x), widths, mode=mode).numpy(), np.pad(x, widths, numpys))
    found = ek.grad(lambda y: (ek.pad(y, widths, mode=mode) ** 2).sum())(ek.tensor(x)).numpy()
    times = np.bincount(np.pad(np.arange(x.size).reshape(x.shape), widths, numpys).ravel()).reshape(x.shape)
    np.testing.assert_allclose(found, 2 * x * times, rtol=1e-6)


def test_integers_wrap_shift_and_divide_as_everywhere():
    x = np.array([-7, 7, -128, 127, 3], np.int8)
    y = np.array([2, -2, -1, 3, -3], np.int8)
    one, other = ek.tensor(x), ek.tensor(y)
    with np.errstate(all="ignore"):
        for got, wanted in ((one * other, x * y), (one + other, x + y), (one % other, np.remainder(x, y))):
            assert got.numpy().tolist() == wanted.tolist()
        assert (one // ek.tensor(np.array([2, -2, 3, 3, -3], np.int8))).numpy().tolist() == [-4, -4, -43, 42, -1]
    assert (ek.tensor(np.array([1, -8], np.int32)) >> 1).numpy().tolist() == [0, -4]
    assert (ek.tensor(np.array([250], np.uint8)) + 10).numpy().tolist() == [4]


def test_floats_become_integers_as_everywhere():
    x = ek.tensor(np.array([1e20, -1e20, np.nan, 2.7, -2.7, np.inf], np.float32))
    assert x.astype("int32").numpy().tolist() == [2**31 - 1, -(2**31), 0, 2, -2, 2**31 - 1]
    assert x.astype("uint8").numpy().tolist() == [255, 0, 0, 2, 0, 255]


def test_extremes_are_nan_if_one_is():
    x = ek.tensor(np.array([1.0, np.nan, -3.0], np.float32))
    assert np.isnan(x.max().item())
    assert np.isnan(ek.maximum(x, ek.tensor(0.0)).numpy()).tolist() == [False, True, False]
    assert ek.round(ek.tensor([0.5, 1.5, -2.5])).numpy().tolist() == [0.0, 2.0, -2.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int16", "uint64", "bool", "complex64"])
def test_values_go_there_and_back(dtype):
    x = ek.tensor(np.array([[0, 1, 2], [3, 1, 0]])).astype(dtype)
    assert x.device == "xla"
    assert ek.flip(ek.flip(x)).to("cpu").numpy().tolist() == x.to("discrete").numpy().tolist()


# --- transformations ----------------------------------------------------------------------------------


def test_jit_and_gradients():
    def loss(w, x):
        return (ek.tanh(x @ w) ** 2).mean()

    found = {}
    for name in ("cpu", "xla"):
        with ek.device(name):
            step = ek.jit(ek.value_and_grad(loss))
            found[name] = [t.numpy() for t in step(ek.tensor(drawn(9, 5)), ek.tensor(drawn(20, 9, seed=1)))]
    for one, other in zip(found["cpu"], found["xla"], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_values_stay_on_the_device():
    x = ek.tensor(drawn(64, 64))
    step = ek.jit(lambda x: x * 0.5 + 1)
    x = step(x)
    with ek.transfers() as seen:
        for _ in range(3):
            x = step(x)
        assert (seen.uploads, seen.reads) == (0, 0)
        x.numpy()
    assert seen.reads == 1


def test_loops_and_branches():
    total, partial = ek.scan(lambda c, x: (c + x, c * x), ek.tensor(0.0), ek.arange(5).astype("float32"))
    assert total.item() == 10.0
    assert partial.numpy().tolist() == [0.0, 0.0, 2.0, 9.0, 24.0]
    assert ek.while_loop(lambda x: x < 100, lambda x: x * 2, ek.tensor(3.0)).item() == 192.0
    assert ek.fori_loop(0, 5, lambda i, x: x + i, ek.tensor(0)).item() == 10
    branch = ek.jit(lambda p, x: ek.cond(p, lambda v: v + 1, lambda v: v * v, x))
    assert [branch(ek.tensor(t), ek.tensor(3.0)).item() for t in (True, False)] == [4.0, 9.0]
    derived = ek.grad(lambda x: ek.scan(lambda c, v: (c * v, c), ek.tensor(1.0), x)[0])(ek.tensor([2.0, 3.0, 4.0]))
    assert derived.numpy().tolist() == [12.0, 8.0, 6.0]


def test_an_index_out_of_range_in_a_loop_is_told():
    table = ek.tensor(drawn(4))
    with pytest.raises(IndexOutOfRange, match="an axis of extent 4"):
        ek.fori_loop(0, 3, lambda i, x: x + ek.take(table, i * 3), ek.tensor(0.0)).numpy()
    assert ek.fori_loop(0, 3, lambda i, x: x + i, ek.tensor(0)).item() == 3  # it goes on


def test_random_numbers_are_those_of_the_cpu():
    found = {}
    for name in ("cpu", "xla"):
        with ek.device(name):
            key = ek.random.key(7)
            found[name] = [
                ek.random.bits(key, (5,)).numpy(), ek.random.uniform(key, (2, 3)).numpy(),
                ek.random.normal(ek.random.split(key)[1], (4,)).numpy(),
            ]  # fmt: skip
    assert found["cpu"][0].tolist() == found["xla"][0].tolist()
    assert found["cpu"][1].tolist() == found["xla"][1].tolist()
    np.testing.assert_allclose(found["xla"][2], found["cpu"][2], rtol=1e-6)


def test_donated_memory_is_taken():
    step = ek.jit(lambda p, g: p - 0.5 * g, donate=0)
    p, g = ek.tensor(np.ones(1000, np.float32)) + 1, ek.tensor(np.ones(1000, np.float32)) * 3
    assert (p.numpy()[0], g.numpy()[0]) == (2.0, 3.0)  # they are there
    taken = p._node.data.buffer()
    q = step(p, g)
    assert q.numpy()[:2].tolist() == [0.5, 0.5]
    assert taken.gone
    with pytest.raises(TensorError, match="donated"):
        p.numpy()


def test_donated_memory_is_left_if_a_check_fails():
    p, i = ek.tensor(np.zeros(4, np.float32)) + 1, ek.tensor([1, 9]) + 0
    assert p.numpy()[0] == 1.0
    with pytest.raises(IndexOutOfRange):
        ek.jit(lambda p, i: p[i] + 1, donate=0)(p, i)
    assert p.numpy().tolist() == [1.0] * 4


def test_a_step_of_training_learns_as_on_the_cpu():
    def step(w, v, x, y):
        def loss(w, v):
            return ek.nn.functional.cross_entropy(ek.relu(x @ w) @ v, y)

        value, (dw, dv) = ek.value_and_grad(loss, argnums=(0, 1))(w, v)
        return value, w - 0.5 * dw, v - 0.5 * dv

    labels, losses = np.arange(16) % 4, {}
    for name in ("cpu", "xla"):
        with ek.device(name):
            w, v, x, y = ek.tensor(drawn(8, 6)), ek.tensor(drawn(6, 4)), ek.tensor(drawn(16, 8)), ek.tensor(labels)
            learn, losses[name] = ek.jit(step, donate=(0, 1)), []
            for _ in range(5):
                value, w, v = learn(w, v, x, y)
                losses[name].append(value.item())
    assert losses["cpu"][-1] < losses["cpu"][0]
    np.testing.assert_allclose(losses["xla"], losses["cpu"], rtol=1e-5)


# --- networks -----------------------------------------------------------------------------------------


@pytest.mark.skipif(not FULL, reason="make test-all has networks: XLA takes long to compile their steps")
@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_networks_learn_as_on_the_cpu(model, shape):
    learns_as_the_cpu("xla", model, shape, 10)


# --- faults -------------------------------------------------------------------------------------------


def test_errors_are_those_of_every_machine():
    x = ek.tensor(np.arange(12, dtype=np.int32).reshape(3, 4))
    with pytest.raises(IndexOutOfRange, match="an axis of extent 3") as failure:
        ek.take(x, ek.tensor([1, 2]) + ek.tensor([1, 5])).numpy()
    assert failure.value.span.text.strip().startswith("ek.take")
    for divided in (lambda: x // (x - x), lambda: x % (x * 0), lambda: ek.fmod(x, x * 0)):
        with pytest.raises(TensorError, match="divided by zero"):
            divided().numpy()
    with pytest.raises(TensorError, match="negative power"):
        (x ** (x - 5)).numpy()
    with ek.check_nan(), pytest.raises(NotANumberError, match=r"log.* gave infinity"):
        ek.log(ek.tensor([0.0, 1.0])).numpy()
    with ek.check_nan():  # where every node is looked at, none is composed of others before
        assert ek.logsumexp(ek.tensor([0.0, 0.0]), 0).item() == pytest.approx(np.log(2))
        assert ek.checkpoint(lambda a: a * 2)(x).numpy()[0, 1] == 2
    with pytest.raises(BackendUnavailable, match="cannot be said in StableHLO"):
        ek.linalg.eigvals(ek.tensor(drawn(3, 3))).numpy()
    assert (x + 1).numpy()[0, 0] == 1


def test_results_are_compared_where_checks_are_on(monkeypatch):
    from eshkol.schedule.whole import instructions

    with ek.check():
        assert ek.jit(lambda x: ek.tanh(x) + 1)(ek.tensor([0.0, 0.5])).numpy()[0] == 1.0
        monkeypatch.setitem(instructions.CODE, "EXP", instructions.CODE["COS"])
        with pytest.raises(MiscompiledError, match="whole") as failure:
            ek.jit(lambda x: ek.exp(x) + 2)(ek.tensor([0.1, 0.5])).numpy()
    assert "exp" in str(failure.value)


def test_programs_of_atlas_are_refused():
    program = assemble(".buffer x F32\nMOV_IMM.F32 r0, 41.5\nSTG.F32 [x], r0\n")
    with pytest.raises(BackendUnavailable, match="whole graphs"):
        machine("xla").execute(program, LaunchConfig.linear(1), {})


def test_a_program_that_xla_refuses(capfd, monkeypatch):
    monkeypatch.setenv("ESHKOL_DUMP", "kernel")
    text = "func.func public @main() -> tensor<f32> { %0 = stablehlo.nonsense : tensor<f32> return %0 : tensor<f32> }"
    with pytest.raises(BackendError, match=r"'stablehlo\.nonsense' is unknown") as failure:
        machine("xla").graph_program(text, [(Type.F32, 1)])
    assert "ESHKOL_DUMP=kernel" in failure.value.hint
    assert text in capfd.readouterr().err
    monkeypatch.undo()
    assert (ek.ones(2) + 1).numpy().tolist() == [2.0, 2.0]


def test_memory_that_there_is_not():
    size = 1 << 50
    kind = f"tensor<{size}xf32>"
    text = f"func.func public @main() -> {kind} {{ %0 = stablehlo.constant dense<0.0> : {kind} return %0 : {kind} }}"
    with pytest.raises(AllocationFailed, match="XLA has no memory"):
        machine("xla").graph_program(text, [(Type.F32, size)]).run([])[0].wait()
    with pytest.raises(AllocationFailed, match="over the limit"):
        (ek.zeros((1 << 20, 1 << 20)) + 1).numpy()
    assert (ek.ones(2) + 1).numpy().tolist() == [2.0, 2.0]


def test_buffers_and_pools():
    device = XlaBackend()
    x = device.array(np.arange(6, dtype=np.uint8))
    device.copy_to(x.handle, b"\7\7", 1)
    assert x.read().tolist() == [0, 7, 7, 3, 4, 5]
    y = device.array(np.array([1.5, 2.5]), Type.BF16)
    device.copy_within(y.handle, 0, y.handle, 2, 2)
    assert y.read().astype(np.float32).tolist() == [2.5, 2.5]
    pool = device.allocate_pool(16)
    device.copy_to_pool(pool, 3, b"abc")
    assert device.copy_from_pool(pool, 2, 5) == b"\0abc\0"
    device.free(x.handle)
    assert device.statistics() == {} or min(device.statistics().values()) >= 0


def test_doctor_shows_the_device(capsys):
    from eshkol.cli.main import main

    main(["doctor", "--json"])
    (first,) = json.loads(capsys.readouterr().out)["backends"]["xla"]["machines"]
    assert first["platform"] == "PJRT cpu"
    main(["doctor"])
    assert "PJRT cpu" in capsys.readouterr().out


def test_jaxlib_is_enough():
    code = "import sys; sys.modules['jax'] = None\nimport eshkol as ek\n"
    code += "with ek.device('xla'): print(ek.softmax(ek.ones((2, 4)), axis=1).numpy()[0, 0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.25"
    assert done.stderr == ""
