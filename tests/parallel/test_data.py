"""A batch that is split over devices: what one device gives, in whatever order the parts are done."""

from __future__ import annotations

import copy
import inspect
import signal
import threading
import time

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import BackendUnavailable, NotANumberError, ShapeError, TensorError
from eshkol.parallel import DataParallel, DataParallelStep
from eshkol.parallel.splitting import Weighing, sizes_of
from eshkol.parallel.workers import Workers
from eshkol.tensors import devices

ROWS = 37  # which divide by nothing
X = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
Y = np.arange(ROWS) % 4
HERE = ["cpu", "discrete"]
APART = [name for name in ("opencl", "wasm") if devices.missing(name) is None]  # machines with drivers of their own
TOLERANCE = 2e-6  # of losses: sums of float32 in another order


def network():
    ek.seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def trained(places, steps=4, x=X, y=Y, loss=None, how=None, make=network, **split):
    """The model and the losses of some steps; over no devices, of the model by itself."""
    model = make() if places is None else DataParallel(make(), places, **split)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    step = train.Step(model, loss or nn.CrossEntropyLoss(), optimizer, **(how or {}))
    return model, [step(x, y).loss.item() for _ in range(steps)]


def same(one, other, tolerance=TOLERANCE):
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("places", [HERE, ["discrete", "cpu"], ["cpu", "discrete", "blocks"], ["reference", "cpu"]])
def test_losses_are_those_of_one_device(places):
    alone, wanted = trained(None)
    spread, losses = trained(places)
    same(losses, wanted)
    assert {p.device for p in spread.parameters()} == {places[0]}
    for a, b in zip(alone.parameters(), spread.parameters(), strict=True):
        same(b.detach().numpy(), a.detach().numpy(), 1e-5)


@pytest.mark.skipif(not APART, reason="neither OpenCL nor wasmtime")
def test_machines_with_drivers_do_their_part():
    same(trained(["cpu", *APART])[1], trained(None)[1])


def test_one_device_gives_the_same_bits_and_so_does_every_run():
    assert trained(["cpu"])[1] == trained(None)[1]
    assert trained(HERE)[1] == trained(HERE)[1]


@pytest.mark.parametrize(
    "how",
    [{"jit": False}, {"clip_norm": 0.1}, {"clip_value": 0.01}, {"accumulate": 2}, {"loss_scale": 256.0},
     {"loss_scale": "dynamic"}],
)  # fmt: skip
def test_options_of_a_step(how):
    x, y = ek.tensor(X), ek.tensor(Y)
    same(trained(HERE, x=x, y=y, how=how)[1], trained(None, x=x, y=y, how=how)[1])


@pytest.mark.parametrize("shares", [(3, 1), (1, 100), (0.5, 0.5)])
def test_shares(shares):
    same(trained(HERE, shares=shares)[1], trained(None)[1])


def test_rows_that_do_not_divide():
    assert sizes_of(7, (1, 1, 1)) == [3, 2, 2]
    assert sizes_of(2, (1, 1, 1)) == [1, 1, 0]
    assert sizes_of(10, (3, 1)) == [8, 2]
    for rows in range(1, 40):
        assert sum(sizes_of(rows, (5, 1.5, 1, 1e-9))) == rows
    for rows in (1, 2, 3):
        same(trained(HERE, x=X[:rows], y=Y[:rows])[1], trained(None, x=X[:rows], y=Y[:rows])[1])


def test_gradients_are_weighed_by_what_counts():
    """Of cross entropy, the targets that are not left out; of a sum, nothing; of anything else, what is said."""
    some = Y.copy()
    some[:15] = -100
    for loss in (nn.CrossEntropyLoss(), ek.cross_entropy, nn.CrossEntropyLoss(reduction="sum")):
        same(trained(HERE, y=some, loss=loss)[1], trained(None, y=some, loss=loss)[1], 1e-5)

    def mine(outputs, targets):
        return ek.cross_entropy(outputs, targets)

    with pytest.raises(TensorError, match="weighs is not known"):
        trained(HERE, y=some, loss=mine)
    same(
        trained(HERE, y=some, loss=mine, weigh=lambda x, y: (y >= 0).sum())[1],
        trained(None, y=some, loss=mine)[1],
        1e-5,
    )
    some[:20] = -100  # all of the first device's part
    with pytest.raises(TensorError, match=r"weigh \[0.0, 17.0\] make no mean"):
        trained(HERE, y=some)
    with pytest.raises(TensorError, match="weighs classes"):
        trained(HERE, loss=nn.CrossEntropyLoss(weight=ek.tensor([1.0, 2.0, 3.0, 4.0])))

    def total(outputs, targets):
        return (outputs.sum(1) - targets).abs().sum()

    same(trained(HERE, loss=total, reduction="sum")[1], trained(None, loss=total)[1], 1e-5)
    assert Weighing().fractions(ek.mse_loss, [(None, X[:1]), (None, X[:3])], [1, 3]) == [0.25, 0.75]


def test_what_is_frozen_is_copied_once():
    def frozen():
        model = network()
        model[0].requires_grad_(False)
        return model

    model = DataParallel(frozen(), HERE)
    step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))
    losses = [step(X, Y).loss.item() for _ in range(2)]
    with ek.transfers() as seen:
        losses.append(step(X, Y).loss.item())
    trained_bytes = sum(p.numel() * 4 for p in model.module[2].parameters())
    assert seen.uploaded < trained_bytes + X.nbytes + Y.nbytes + 64, "the layer that is frozen is there"
    alone = frozen()
    one = train.Step(alone, nn.CrossEntropyLoss(), optim.SGD(alone.parameters(), lr=0.1))
    same(losses, [one(X, Y).loss.item() for _ in range(3)])


def test_new_values_of_parameters_reach_all_devices():
    """Also those that a step with gradients that wait has left in place."""
    for how in ({}, {"accumulate": 2}):
        losses = {}
        for places in (None, HERE):
            model = network() if places is None else DataParallel(network(), places)
            plain = model if places is None else model.module
            step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1), **how)
            found = [step(X, Y).loss.item()]
            plain.load_state_dict({name: p * 0.5 for name, p in plain.state_dict().items()})
            found += [step(X, Y).loss.item() for _ in range(3)]
            losses[str(places)] = found
        same(losses[str(HERE)], losses["None"])


def test_norms_and_their_buffers():
    def normed():
        ek.seed(3)
        return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.Linear(6, 4))

    model, losses = trained(HERE, make=normed, steps=3)
    assert all(np.isfinite(losses))
    alone, _ = trained(None, make=normed, steps=3)
    mean, wanted = (m[1].running_mean.numpy() for m in (model.module, alone))
    np.testing.assert_allclose(mean, wanted, rtol=0.05, atol=0.01)  # parts are normed by themselves
    assert model.module[1].num_batches_tracked.item() == 3


def test_dropout_draws_other_numbers_in_each_part_and_the_same_in_each_run():
    def dropping():
        ek.seed(3)
        return nn.Sequential(nn.Linear(8, 400), nn.Dropout(0.5))

    outputs = []
    for _ in range(2):
        model = DataParallel(dropping(), HERE)
        step = train.Step(model, lambda out, y: out.sum() * 0, optim.SGD(model.parameters(), lr=0.1))
        ek.seed(11)
        outputs.append(step(np.ones((2, 8), np.float32), None).outputs.numpy())
    np.testing.assert_array_equal(*outputs)
    assert not np.array_equal(outputs[0][0] == 0, outputs[0][1] == 0)


def test_results_without_a_step():
    model = DataParallel(network(), HERE)
    wanted = model.module(ek.tensor(X)).detach().numpy()
    found = model(ek.tensor(X))
    same(found.detach().numpy(), wanted)
    ek.cross_entropy(found, ek.tensor(Y)).backward()
    gradients = [p.grad.numpy() for p in model.parameters()]
    assert {p.grad.device for p in model.parameters()} == {"cpu"}
    plain = network()
    ek.cross_entropy(plain(ek.tensor(X)), ek.tensor(Y)).backward()
    for a, b in zip(gradients, plain.parameters(), strict=True):
        same(a, b.grad.numpy(), 1e-5)
    model.eval()
    with ek.no_grad():
        out = model(ek.tensor(X))
        assert out.device == "cpu"
        same(out.numpy(), wanted)
        same(copy.deepcopy(model)(ek.tensor(X)).numpy(), wanted)
        same(ek.jit(lambda x: model(x))(ek.tensor(X)).numpy(), wanted)


def test_fit_and_validate():
    alone, spread = network(), DataParallel(network(), HERE)
    found = []
    for model in (alone, spread):
        history = train.fit(
            model, (X, Y), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(model.parameters(), lr=0.1), epochs=2,
            batch_size=16, validation=(X, Y), metrics=["accuracy"], seed=5, quiet=True,
        )  # fmt: skip
        found.append([*history["loss"], *history["val_loss"], *history["accuracy"]])
    same(*found, 1e-5)
    assert isinstance(
        train.Step(spread, nn.CrossEntropyLoss(), optim.SGD(spread.parameters(), lr=0.1)), DataParallelStep
    )


def test_a_step_has_the_signature_that_it_had():
    assert [*inspect.signature(train.Step).parameters][:4] == ["model", "loss", "optimizer", "jit"]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(TensorError, match="cpu twice"):
        DataParallel(network(), ["cpu", "cpu"])
    with pytest.raises(TensorError, match="list of devices"):
        DataParallel(network(), "cpu")
    with pytest.raises(BackendUnavailable, match="no backend 'moon'"):
        DataParallel(network(), ["cpu", "moon"])
    with pytest.raises(TensorError, match="takes a module"):
        DataParallel(lambda x: x, HERE)
    for shares in ((1,), (1, 0), (1, -1), (1, float("nan")), (1, "2")):
        with pytest.raises(TensorError, match="2 numbers above 0"):
            DataParallel(network(), HERE, shares=shares)
    with pytest.raises(TensorError, match="a mean or a sum"):
        DataParallel(network(), HERE, reduction="max")
    with pytest.raises(ShapeError, match=r"shapes \[37, 8\], \[36\]"):
        trained(HERE, y=Y[:-1])
    with pytest.raises(ShapeError, match="no examples"):
        trained(HERE, x=X[:0], y=Y[:0])
    with pytest.raises(ShapeError, match="parts of"):
        trained(HERE, make=Odd, loss=lambda out, y: out.sum())
    with pytest.raises(TensorError, match="without ahead"):
        trained(HERE, how={"ahead": True})


class Odd(nn.Module):
    """A model that gives no rows."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(ek.ones(8))

    def forward(self, x):
        return (x * self.weight).sum(0)


# --- faults -------------------------------------------------------------------------------------------------------


class Failing(nn.Module):
    """A model that cannot be computed with the second part of the batch."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 4)

    def forward(self, x):
        return self.inner(x) if x.shape[0] > 18 else self.inner(x[:, :3])


def test_an_error_says_on_which_device_and_changes_nothing():
    model = DataParallel(Failing(), HERE)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(ShapeError, match="on discrete: "):
        step(X, Y)
    for p, wanted in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), wanted)
    assert step(np.tile(X, (2, 1)), np.tile(Y, 2)).applied, "it goes on with what it can do"


def test_numbers_that_are_none_are_told_and_change_nothing():
    x = X.copy()
    x[-1] = np.nan  # in the part of the second device
    model = DataParallel(network(), HERE)
    step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))
    wanted = step(X, Y).loss.item()
    before = [p.detach().numpy().copy() for p in model.parameters()]
    with pytest.raises(NotANumberError, match="the inputs of the batch hold nan"):
        step(x, Y)
    for p, value in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), value)
    assert step(X, Y).loss.item() < wanted


def test_the_first_error_in_order_is_told_whoever_is_first_in_time():
    def slow():
        time.sleep(0.1)
        raise ShapeError("slow")

    def quick():
        raise TensorError("quick")

    workers = Workers()
    for _ in range(3):
        with pytest.raises(ShapeError, match="on a: slow"):
            workers.at_once([("a", slow), ("b", quick)])
    assert workers.at_once([("a", lambda: 1), ("b", lambda: 2)]) == [1, 2]


def test_devices_work_at_the_same_time():
    meeting = threading.Barrier(2)
    assert sorted(Workers().at_once([("a", lambda: meeting.wait(30)), ("b", lambda: meeting.wait(30))])) == [0, 1]


def test_ctrl_c_ends_the_waiting_and_the_workers_go_on():
    workers, release = Workers(), threading.Event()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.at_once([("a", lambda: release.wait(60)), ("b", lambda: 1)])
    finally:
        signal.signal(signal.SIGINT, handler)
    release.set()
    assert workers.at_once([("a", lambda: 1), ("b", lambda: 2)]) == [1, 2]


def test_threads_end_with_who_made_them():
    def ours():
        return sorted(thread.name for thread in threading.enumerate() if "of this test" in thread.name)

    workers = Workers()
    workers.at_once([("a of this test", lambda: None), ("b of this test", lambda: None)])
    assert ours() == ["eshkol on a of this test", "eshkol on b of this test"]
    del workers
    end = time.monotonic() + 30
    while ours() and time.monotonic() < end:
        time.sleep(0.01)
    assert not ours()
