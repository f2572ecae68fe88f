"""What tests ask of every machine: values carried there and back, gradients, networks that learn as on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import eshkol as ek


def carries_values(name: str) -> None:
    data = np.arange(6, dtype=np.int16)
    there = ek.tensor(data).to(name)
    assert there.device == name
    assert there.to("discrete").to(f"{name}:0").to("cpu").numpy().tolist() == data.tolist()


def has_the_cpus_gradients(name: str) -> None:
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(shape).astype(np.float32) for shape in ((20, 9), (9, 5), (5,))]
    found = {}
    for where in ("cpu", name):
        with ek.device(where):
            x, w, b = (ek.tensor(a, requires_grad=True) for a in data)
            (x @ w + b).tanh().sum().backward()
            assert w.grad.device == where
            found[where] = [t.grad.numpy() for t in (x, w, b)]
    for one, other in zip(found["cpu"], found[name], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def perceptron() -> ek.nn.Sequential:
    return ek.nn.Sequential(ek.nn.Linear(64, 32), ek.nn.ReLU(), ek.nn.Linear(32, 10))


def convolutional() -> ek.nn.Sequential:
    return ek.nn.Sequential(
        ek.nn.Conv2d(1, 4, 3, padding=1), ek.nn.ReLU(), ek.nn.MaxPool2d(2), ek.nn.Flatten(), ek.nn.Linear(64, 10)
    )


NETWORKS = [(perceptron, (64,)), (convolutional, (1, 8, 8))]
"""Networks, and the shape of what they take."""


def learns_as_the_cpu(name: str, model: Callable[[], ek.nn.Sequential], shape: tuple[int, ...], steps: int = 3) -> None:
    """Some steps of Adam there and on the CPU: the same losses, and at the end nearly the same outputs."""
    rng = np.random.default_rng(1)
    x, y = rng.random((32, *shape)).astype(np.float32), rng.integers(0, 10, 32)
    (wanted, outputs), (losses, found) = (_trained(device, model, x, y, steps) for device in ("cpu", name))
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    np.testing.assert_allclose(found, outputs, rtol=1e-3, atol=1e-4)


def _trained(
    device: str, model: Callable[[], ek.nn.Sequential], x: np.ndarray, y: np.ndarray, steps: int
) -> tuple[list[float], np.ndarray]:
    with ek.device(device):
        ek.random.seed(0)
        net = model()
        optimizer = ek.optim.Adam(net.parameters(), lr=1e-2)
        inputs, labels, losses = ek.tensor(x), ek.tensor(y), []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = ek.nn.functional.cross_entropy(net(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, net(inputs).detach().numpy()
