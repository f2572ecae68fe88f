"""Values live where they were computed: devices, moves between them, and what is copied."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import BackendUnavailable, DeviceError, NotANumberError, TensorError
from eshkol.schedule.run import execute
from eshkol.tensors import devices


@pytest.fixture(autouse=True)
def _cpu():
    with ek.device("cpu"):
        yield


AWAY = pytest.mark.parametrize("away", ["discrete", "blocks", "reference"])


@AWAY
def test_a_tensor_says_where_it_is(away):
    x = ek.tensor([1.0, 2.0])
    y = x.to(away)
    assert (x.device, y.device, (y * 2).device, ek.softmax(y).realize().device) == ("cpu", away, away, away)
    assert y.cpu().device == "cpu"
    assert y.to(away) is y
    assert ek.tensor([1.0], device=away).device == away
    with ek.device(away):
        made = [ek.tensor([1.0]), ek.zeros((2, 3)), ek.arange(4), ek.random.normal(ek.key(0), (3,)), ek.ones(3) * 2]
    assert {t.device for t in made} == {away}
    assert [t.shape for t in made] == [(1,), (2, 3), (4,), (3,), (3,)]
    assert {t.realize().device for t in made} == {away}
    assert made[4].tolist() == [2.0, 2.0, 2.0]
    assert ek.zeros(2).device == "cpu"


@AWAY
def test_tensors_of_no_elements_come_back(away):
    x = ek.tensor([1.0], device=away)
    assert (x[1:] * 2).numpy().shape == (0,)
    assert ek.trunc(ek.zeros((0, 2), device=away)).cpu().tolist() == []


def test_to_takes_what_pytorch_takes():
    x = ek.tensor([1.5, 2.5])
    assert x.to(ek.float64).dtype is ek.float64
    assert x.to("float64").dtype is ek.float64
    assert x.to(dtype=ek.int32).tolist() == [1, 2]
    y = x.to("discrete", ek.float64)
    assert (y.device, y.dtype) == ("discrete", ek.float64)
    z = x.to(y)
    assert (z.device, z.dtype) == ("discrete", ek.float64)
    with pytest.raises(BackendUnavailable, match="there is no backend 'moon'"):
        x.to("moon")


def test_operands_on_different_machines_are_refused_where_they_meet():
    x, y = ek.tensor([1.0, 2.0]), ek.tensor([1.0, 2.0], device="discrete")
    with pytest.raises(DeviceError, match=r"add\(float32\[2\], float32\[2\] on discrete\).*cpu and discrete") as told:
        x + y
    assert told.value.hint == 'move one of them: x.to("cpu")'
    assert told.value.span is not None
    with pytest.raises(DeviceError):
        ek.jit(lambda a, b: a)(x, y)
    with pytest.raises(DeviceError):
        ek.concatenate([x, y])


def test_numbers_and_arrays_go_where_they_are_used():
    y = ek.tensor([1.0, 2.0], device="discrete")
    assert (y + 1).tolist() == [2.0, 3.0]
    assert (y + np.ones(2, np.float32)).device == "discrete"
    assert (y + ek.zeros(2)).tolist() == [1.0, 2.0]
    shared = ek.arange(2)
    assert (y + shared).tolist() == [1.0, 3.0]
    assert (ek.tensor([1, 2]) + shared).tolist() == [1, 3], "what belongs to no machine was not bound to one"
    assert y[ek.tensor([1], device="discrete")].tolist() == [2.0]


def test_what_is_made_of_numbers_is_bound_to_no_machine():
    node = ek.arange(3)._node
    (found,) = execute.realize([node], devices.open_backend("reference"))
    assert found.tolist() == [0, 1, 2]
    assert node.device is None
    assert (ek.tensor([1, 2, 3]) + ek.arange(3)).tolist() == [1, 3, 5]


@pytest.mark.unchecked("validation reads what it compares")
@AWAY
def test_steps_and_loops_stay_on_the_machine(away):
    with ek.device(away):
        x = ek.tensor(np.arange(6.0, dtype=np.float32)).realize()
        (x + 1).realize()
    with ek.transfers() as seen:
        y = x
        for _ in range(5):
            y = (y * 0.5 + 1).realize()
    assert (seen.uploads, seen.reads) == (0, 0), "x is there already"
    xs = ek.tensor(np.ones((20, 6), np.float32), device=away)
    run = ek.jit(lambda c, xs: ek.scan(lambda c, x: (c * 0.5 + x, c.sum()), c, xs))
    run(y, xs)
    with ek.transfers() as seen:
        carried, sums = run(y, xs)
    assert (seen.uploads, seen.reads) == (0, 0)
    with ek.transfers() as seen:
        carried.numpy(), carried.tolist(), sums.numpy()
    assert (seen.reads, seen.read) == (2, 6 * 4 + 20 * 4), "each is copied once, when somebody looks"


@AWAY
def test_programs_give_what_they_give_on_the_cpu(away):
    def loop(x):
        return ek.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1] + 0.1), (ek.tensor(0), x))[1]

    programs = [
        lambda x: ek.softmax(x @ x.T, -1), lambda x: ek.grad(lambda a: ek.sin(a).sum())(x),
        lambda x: ek.vmap(lambda r: r / r.sum())(x), lambda x: ek.jit(lambda a: a[1:] * a[:-1])(x), loop,
        lambda x: ek.cond((x.sum() > 0), lambda a: a * 2, lambda a: a - 1, x), lambda x: ek.fft(x).real,
        lambda x: ek.sort(x, -1), lambda x: ek.solve(x + 3 * ek.eye(3, dtype=ek.float64), x),
        lambda x: ek.hessian(lambda a: (a * a * a).sum())(x[0]), lambda x: ek.max(x, axis=1),
    ]  # fmt: skip
    values = np.linspace(-1, 1.5, 9, dtype=np.float64).reshape(3, 3)
    for number, program in enumerate(programs):
        expected = ek.tree_leaves(program(ek.tensor(values)))
        with ek.device(away):
            found = ek.tree_leaves(program(ek.tensor(values)))
        for got, wanted in zip(found, expected, strict=True):
            assert got.device == away, number
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, err_msg=str(number))


def test_changes_in_place_are_of_the_machine():
    x = ek.tensor([1.0, 2.0, 3.0], device="discrete")
    x[1] = 7.0
    x += 1
    x.add_(2)
    assert (x.device, x.tolist()) == ("discrete", [4.0, 10.0, 6.0])


def test_gradients_flow_back_to_where_a_value_came_from():
    w = ek.tensor([1.0, 2.0], requires_grad=True)
    there = w.to("discrete")
    (there * there).sum().backward()
    assert (w.grad.device, w.grad.tolist()) == ("cpu", [2.0, 4.0])
    back = ek.grad(lambda a: (a.to("discrete").exp().cpu() * a).sum())(ek.tensor([0.5]))
    np.testing.assert_allclose(back.numpy(), np.exp(0.5) * 1.5, rtol=1e-6)


def test_jit_traces_for_a_machine_and_refuses_to_leave_it():
    seen = []

    @ek.jit
    def f(x):
        seen.append(ek.zeros(2).device)
        return x.to("discrete") + ek.ones(2)

    assert f(ek.tensor([1.0, 2.0], device="discrete")).tolist() == [2.0, 3.0]
    assert seen == ["discrete"]
    with pytest.raises(DeviceError, match="cannot go to discrete: all of it is computed on cpu"):
        f(ek.tensor([1.0, 2.0]))


def test_structures_are_put_on_a_device():
    found = ek.device_put({"a": ek.tensor([1.0]), "b": [np.ones(2), 3]}, "discrete")
    assert (found["a"].device, found["b"][0].device, found["b"][1]) == ("discrete", "discrete", 3)


def _model():
    ek.seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))


BATCH = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32), np.arange(64) % 4


def _trained(device, steps):
    model = _model().to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    step = train.Step(model, nn.CrossEntropyLoss(), optimizer)
    return model, [step(*BATCH).loss.item() for _ in range(steps)]


def test_training_gives_the_same_numbers_on_either_memory():
    here, losses = _trained("cpu", 4)
    there, others = _trained("discrete", 4)
    assert others == losses
    assert {p.device for p in there.parameters()} == {"discrete"}
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


@pytest.mark.unchecked("validation reads what it compares")
def test_a_step_copies_the_batch_in_and_the_loss_out():
    model = _model().to("discrete")
    step = train.Step(model, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2))
    step(*BATCH).loss.item()
    with ek.transfers() as seen:
        step(*BATCH).loss.item()
    assert (seen.uploads, seen.uploaded) == (2, BATCH[0].nbytes + BATCH[1].nbytes), "inputs and targets"
    assert (seen.reads, seen.read) == (1, 4), "the loss"
    step.optimizer.param_groups[0]["lr"] = 1e-3
    with ek.transfers() as seen:
        step(*BATCH)
        step(*BATCH)
    assert seen.uploaded == 2 * (BATCH[0].nbytes + BATCH[1].nbytes) + 8, "a rate that is another, once"


@pytest.mark.unchecked("validation reads what it compares")
def test_layers_that_draw_do_so_with_keys_made_where_they_are():
    """The keys are those of the host, with draws of others between the steps; a step that fails is counted alike."""
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "discrete"):
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
        model.load_state_dict({name: np.full(p.shape, 0.25, np.float32) for name, p in model.named_parameters()})
        model = model.to(device)
        step = train.Step(model, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2))
        ek.random.seed(7)
        x, targets = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), np.array([0, 1, 2, 1, 0])
        found = [step(x, targets).loss.item()]
        with ek.transfers() as seen:
            found.append(step(x, targets).loss.item())
        if device == "discrete":
            assert (seen.uploads, seen.uploaded, seen.reads, seen.read) == (2, x.nbytes + targets.nbytes, 1, 4)
        ek.random.next_key()
        with pytest.raises(NotANumberError):
            step(np.full_like(x, np.nan), targets)
        losses[device] = [*found, *(step(x, targets).loss.item() for _ in range(2))]
    assert losses["cpu"] == losses["discrete"]
    assert len(set(losses["cpu"])) == 4


@pytest.mark.unchecked("validation holds the values that it compares")
def test_a_step_changes_its_parameters_where_they_lie():
    """But for the second weight, which the way back still needs when it is written; on the CPU it is the same."""
    model = _model().to("discrete")
    step = train.Step(model, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2))
    step(*BATCH)
    before = [p._node.data.address() for p in model.parameters()]
    step(*BATCH)
    after = [p._node.data.address() for p in model.parameters()]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False, True]


@AWAY
def test_a_step_that_fails_leaves_the_parameters(away):
    model = nn.Sequential(nn.Linear(2, 3)).to(away)
    before = [p.detach().numpy() for p in model.parameters()]
    step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(TensorError, match="class 7, and the model has 3 classes"):
        step(np.ones((1, 2), np.float32), np.array([7]))
    for p, wanted in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), wanted)


def test_a_donated_value_that_others_see_stays_as_it_is():
    with ek.device("discrete"):
        x = ek.tensor(np.arange(70000.0))
        kept = x.reshape(700, 100).realize()
        donated = ek.jit(lambda a: a + 1.0, donate=0)
        np.testing.assert_array_equal(donated(x).numpy(), np.arange(70000.0) + 1)
        np.testing.assert_array_equal(kept.numpy().ravel(), np.arange(70000.0))


@pytest.mark.unchecked("validation reads what it compares")
def test_a_host_step_inside_a_loop_copies_what_it_needs_and_no_more():
    matrices = np.random.default_rng(1).normal(size=(5, 3, 3))

    def body(total, matrix):
        return total + ek.real(ek.acos(ek.cast(matrix, "complex128"))).sum(), total * 2.0

    def run():
        return ek.scan(body, ek.tensor(0.0, dtype=ek.float64), ek.tensor(matrices))

    wanted, walked = run()
    with ek.device("discrete"), ek.transfers() as seen:
        found, there = run()
        found.realize()
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-14)
    np.testing.assert_allclose(there.numpy(), walked.numpy(), rtol=1e-14)
    assert seen.reads == 5, "a matrix in each round"


def test_a_checkpoint_of_one_machine_goes_on_on_another(tmp_path):
    model, _ = _trained("discrete", 2)
    ek.io.save_tensors(tmp_path / "model.eskpt", model.state_dict())
    other = _model()
    other.load_state_dict(ek.io.load_tensors(tmp_path / "model.eskpt"))
    assert {p.device for p in other.parameters()} == {"cpu"}
    again = _model().to("discrete")
    again.load_state_dict(other.state_dict())
    assert {p.device for p in again.parameters()} == {"discrete"}
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
