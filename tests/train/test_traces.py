"""What is compiled follows the model: parts, attributes and hooks that change are seen; Ctrl-C loses no parameters."""

from __future__ import annotations

import copy
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import IndexOutOfRange, NotANumberError, TensorError, TraceError
from eshkol.runtime.worker import may_raise
from eshkol.support.interrupts import Noted, uninterrupted

X = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
Y = np.arange(6) % 3


@pytest.fixture(autouse=True)
def _plain() -> Iterator[None]:
    with ek.use_backend("reference"):
        yield


class Scaled(nn.Module):
    """A layer with a plain number."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = 1.0

    def forward(self, x: Any) -> Any:
        return x * self.factor


class Counted(nn.Module):
    """A layer that counts how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x


def made() -> Any:
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3), Scaled())


def hooked(model: Any) -> Any:
    return model[0].register_forward_hook(lambda module, args, result: result * 3)


def replaced(model: Any) -> None:
    model[1] = nn.Tanh()


def set_otherwise(model: Any) -> None:
    model[3].factor = 4.0


@pytest.mark.parametrize("change", [hooked, replaced, set_otherwise])
def test_what_is_compiled_sees_that_a_model_changed(change: Callable[[Any], Any]) -> None:
    model = made()
    x, y = ek.tensor(X), ek.tensor(Y)
    step = train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.0))
    evaluation, run = train.Evaluation(model, ek.cross_entropy), ek.jit(model)

    def losses() -> list[float]:
        loss, _ = evaluation(x, y)
        assert loss is not None
        with ek.no_grad():
            return [step(x, y).loss.item(), loss.item(), ek.cross_entropy(run(x), y).item()]

    def wanted() -> list[float]:
        return [ek.cross_entropy(model(x), y).item()] * 3

    first = wanted()
    assert losses() == pytest.approx(first)
    undo = change(model)
    assert wanted() != pytest.approx(first)
    assert losses() == pytest.approx(wanted())
    if undo is not None:
        undo.remove()
        traced = len(step._run._traces)
        assert losses() == pytest.approx(first)
        assert len(step._run._traces) == traced  # the trace without the hook was kept


def test_a_count_in_forward_does_not_trace_anew() -> None:
    model = nn.Sequential(made(), Counted())
    step = train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.1))
    for _ in range(3):
        step(ek.tensor(X), ek.tensor(Y))
    assert len(step._run._traces) == 1


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def interrupted(run: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled call with Ctrl-C at the worst moment: the old values are used up, the new ones not yet put in."""

    def call(*args: Any) -> Any:
        found = run(*args)
        signal.raise_signal(signal.SIGINT)
        return found

    return call


@pytest.mark.parametrize("eager", [False, True])
def test_ctrl_c_after_a_compiled_run_loses_nothing(eager: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ek.seed(0)
    models = [made(), made()]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [optim.Adam(m.parameters(), lr=0.1) for m in models]
    x, y = ek.tensor(X), ek.tensor(Y)

    def stepped(k: int, stop: bool) -> None:
        model, optimizer = models[k], optimizers[k]
        if eager:
            optimizer.zero_grad()
            ek.cross_entropy(model(x), y).backward()
            if stop:
                optimizer._runs = {layout: interrupted(run) for layout, run in optimizer._runs.items()}
            optimizer.step()
            return
        step = train.Step(model, ek.cross_entropy, optimizer)
        if stop:
            monkeypatch.setattr(step, "_run", interrupted(step._run))
        step(x, y)

    for k in range(2):
        stepped(k, stop=False)
    stepped(0, stop=False)
    with pytest.raises(KeyboardInterrupt):
        stepped(1, stop=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert np.array_equal(one.detach().numpy(), other.detach().numpy())
        assert other.requires_grad
    assert list(optimizers[1].steps.values()) == [2, 2, 2, 2]


@pytest.mark.parametrize("guard", [uninterrupted, Noted])
def test_ctrl_c_on_the_way_out_gives_the_handler_back(guard: Callable[[], Any]) -> None:
    def press(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_name == "__exit__":
            sys.settrace(None)
            handler: Any = signal.getsignal(signal.SIGINT)
            handler(signal.SIGINT, frame)  # as Python does between two instructions there
            handler(signal.SIGINT, frame)

    pressed = False
    sys.settrace(press)
    try:
        with guard():
            pass
    except KeyboardInterrupt:
        pressed = True
    finally:
        sys.settrace(None)
    assert pressed == (guard is uninterrupted)  # the other one only notes it
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_ctrl_c_does_not_wait() -> None:
    seen = []

    def pressed_twice() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            seen.append("waits")
            signal.raise_signal(signal.SIGINT)
            seen.append("too late")

    with pytest.raises(KeyboardInterrupt):
        pressed_twice()
    assert seen == ["waits"]


def test_ctrl_c_waits_in_the_thread_of_scheme_too() -> None:
    here = threading.get_ident()
    assert may_raise(here)
    with uninterrupted(), uninterrupted():
        assert not may_raise(here)
    assert may_raise(here)


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_step_names_the_target_at_the_line_of_the_call() -> None:
    model = made()
    step = train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.1))
    step(ek.tensor(X), ek.tensor(Y))
    with pytest.raises(IndexOutOfRange, match="target 2 is class 3, and the model has 3 classes") as caught:
        step(ek.tensor(X), ek.tensor(Y + 1))  # here
    assert "# here" in str(caught.value)


def test_a_number_that_is_none_between_layers_is_not_blamed_on_the_next() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(2, 3), nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.two(ek.log(-(self.one(x) ** 2) - 1))

    net = Net()
    with pytest.raises(NotANumberError, match=r"layer 'two' \(Linear\) is given nan"):
        train.train_step(net, optim.SGD(net.parameters(), lr=0.1), ek.cross_entropy, X, Y)


def test_a_value_that_is_not_known_while_a_step_is_traced() -> None:
    model = made()
    model[0].register_forward_hook(lambda module, args, result: print(float(ek.sum(result))))
    with pytest.raises(TraceError, match=r"item\(\)") as caught:
        train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.1))(ek.tensor(X), ek.tensor(Y))
    assert "jit=False" in str(caught.value)


def test_an_id_that_no_embedding_has_is_told_with_the_line_of_the_call() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 3))
    step = train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.1))
    step(ek.tensor([[1, 2]]), ek.tensor([1]))
    with pytest.raises(IndexOutOfRange, match=r"axis of extent 5") as caught:
        step(ek.tensor([[1, 7]]), ek.tensor([1]))
    assert "in the call at" in str(caught.value)


def test_a_model_of_scheme_refuses_to_be_copied() -> None:
    model = ek.eval("(begin (define-model Net (n) (define hidden (linear n 2)) (lambda (x) (hidden x))) (Net 4))")
    with pytest.raises(TensorError, match="Net cannot be copied"):
        copy.deepcopy(model)


def test_signatures_tell_arguments() -> None:
    assert list(inspect.signature(nn.LeakyReLU).parameters) == ["negative_slope"]
    with pytest.raises(AttributeError, match=r"eshkol\.nn\.functional has no 'rellu'"):
        _ = nn.functional.rellu


def test_functional_call_takes_values_by_name() -> None:
    with pytest.raises(TensorError, match="takes values by name, a dict, and was given tuple"):
        ek.functional_call(made(), ({},), ek.tensor(X))


# --- fit --------------------------------------------------------------------------------------------------------------


def test_fit_refuses_the_schedule_of_another_optimizer() -> None:
    model = made()
    one, other = (optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    with pytest.raises(TensorError, match="StepLR is of another optimizer"):
        train.fit(model, (X, Y), loss=ek.cross_entropy, optimizer=one, schedule=optim.StepLR(other, 1), quiet=True)


def test_fit_refuses_a_plateau_that_looks_the_other_way() -> None:
    model = made()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    schedule = optim.ReduceLROnPlateau(optimizer)
    assert repr(schedule).startswith("ReduceLROnPlateau(mode='min'")
    assert repr(schedule).endswith("; lr=[0.1])")
    with pytest.raises(TensorError, match="has mode='min', and accuracy is to become high"):
        train.fit(
            model, (X, Y), loss=ek.cross_entropy, optimizer=optimizer, metrics=["accuracy"], monitor="accuracy",
            schedule=schedule, quiet=True,
        )  # fmt: skip


def test_fit_validates_averages() -> None:
    found = {}
    for averages in (False, True):
        ek.seed(0)
        model = made()
        optimizer, ema = optim.SGD(model.parameters(), lr=0.5), optim.EMA(model, 0.9)
        history = train.fit(
            model, [(X, Y)], loss=ek.cross_entropy, optimizer=optimizer, epochs=3, validation=[(X, Y)], ema=ema,
            validate_ema=averages, quiet=True,
        )  # fmt: skip
        weights = train.validate(model, ek.cross_entropy, [(X, Y)])["loss"]
        with ema.applied():
            averaged = train.validate(model, ek.cross_entropy, [(X, Y)])["loss"]
        assert weights != averaged
        assert history["val_loss"][-1] == pytest.approx(averaged if averages else weights)
        found[averages] = history["loss"]
    assert found[False] == found[True]  # the training is the same
    with pytest.raises(TensorError, match="validate_ema goes with ema="):
        train.fit(model, [(X, Y)], loss=ek.cross_entropy, optimizer=optimizer, validate_ema=True, quiet=True)
