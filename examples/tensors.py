"""Tensors in one page: derivatives through a loop, gradients per example, and a network that learns spirals."""

from __future__ import annotations

import sys

import numpy as np

import eshkol as ek

STEPS, HIDDEN, POINTS = 160, 32, 96


def swing(length: ek.Tensor) -> ek.Tensor:
    """Where a pendulum of this length is after one second, by 100 steps of integration."""

    def step(state: tuple[ek.Tensor, ek.Tensor], _: ek.Tensor) -> tuple[tuple[ek.Tensor, ek.Tensor], None]:
        angle, speed = state
        speed = speed - 0.01 * 9.81 / length * ek.sin(angle)
        return (angle + 0.01 * speed, speed), None

    (angle, _), _ = ek.scan(step, (ek.full((), 0.5), ek.full((), 0.0)), ek.arange(100))
    return angle


def spirals(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on two arms, and which arm each is on."""
    turn = np.linspace(0.3, 2.0, POINTS)
    arms = [np.stack([s * turn * np.cos(5 * turn), s * turn * np.sin(5 * turn)], 1) for s in (1, -1)]
    points = np.concatenate(arms) + rng.normal(scale=0.03, size=(2 * POINTS, 2))
    return points.astype(np.float32), np.repeat([0, 1], POINTS)


def logits(weights: dict[str, ek.Tensor], x: ek.Tensor) -> ek.Tensor:
    hidden = ek.tanh(x @ weights["w1"] + weights["b1"])
    hidden = ek.tanh(hidden @ weights["w2"] + weights["b2"])
    return hidden @ weights["w3"] + weights["b3"]


def loss(weights: dict[str, ek.Tensor], x: ek.Tensor, y: ek.Tensor) -> ek.Tensor:
    return ek.cross_entropy(logits(weights, x), y)


def fit(x: ek.Tensor, y: ek.Tensor, rng: np.random.Generator) -> dict[str, ek.Tensor]:
    """Adam, written out."""
    sizes = {"w1": (2, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, HIDDEN), "b2": (HIDDEN,), "w3": (HIDDEN, 2), "b3": (2,)}
    weights = {k: ek.tensor(rng.normal(scale=0.7 / s[0] ** 0.5, size=s).astype(np.float32)) for k, s in sizes.items()}
    mean = ek.tree_map(ek.zeros_like, weights)
    square = ek.tree_map(ek.zeros_like, weights)
    step = ek.value_and_grad(loss)
    for t in range(1, STEPS + 1):
        value, gradient = step(weights, x, y)
        mean = ek.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = ek.tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
        rate = 0.02 * (1 - 0.99**t) ** 0.5 / (1 - 0.9**t)
        weights = ek.tree_map(lambda w, m, s, r=rate: w - r * m / (ek.sqrt(s) + 1e-8), weights, mean, square)
        if t % 10 == 0 or t == STEPS:
            sys.stdout.write(f"\r  step {t:3d}/{STEPS}  loss {value.item():.4f} ")
            sys.stdout.flush()
    print()
    return weights


def picture(weights: dict[str, ek.Tensor], points: np.ndarray, labels: np.ndarray) -> str:
    """What the network thinks of the plane, with the points on it."""
    across, down = np.meshgrid(np.linspace(-2.2, 2.2, 61), np.linspace(2.2, -2.2, 25))
    plane = ek.tensor(np.stack([across.ravel(), down.ravel()], 1).astype(np.float32))
    sides = logits(weights, plane).argmax(1).numpy().reshape(across.shape)
    cells = np.where(sides == 0, "·", " ")
    for (x, y), label in zip(points, labels, strict=True):
        cells[round((2.2 - y) / 4.4 * 24), round((x + 2.2) / 4.4 * 60)] = "ox"[label]
    return "\n".join("  " + "".join(row) for row in cells)


def main() -> int:
    rng = np.random.default_rng(0)
    length = ek.tensor(1.0)
    print(f"pendulum: angle after 1 s {swing(length).item():.4f}, by its length {ek.grad(swing)(length).item():.4f},")
    print(f"          and twice {ek.grad(ek.grad(swing))(length).item():.4f}")
    points, labels = spirals(rng)
    x, y = ek.tensor(points), ek.tensor(labels)
    weights = fit(x, y, rng)
    right = (logits(weights, x).argmax(1) == y).sum().item()
    print(picture(weights, points, labels))
    print(f"  {right} of {len(labels)} points on the right side")
    one = ek.vmap(ek.grad(lambda w, a, b: loss(w, a.unsqueeze(0), b.unsqueeze(0))), in_axes=(None, 0, 0))(weights, x, y)
    sizes = ek.sqrt((one["w1"] ** 2).sum((1, 2)))
    print(f"  the point that pulls hardest on the first layer is number {sizes.argmax().item()}")
    return 0 if right == len(labels) else 1


if __name__ == "__main__":
    sys.exit(main())
