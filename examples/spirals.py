"""A network learns to tell two spirals apart: `python examples/spirals.py [epochs]`; in Scheme: spirals.esk."""

import sys

import numpy as np

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 150

rng = np.random.default_rng(0)
radius = np.linspace(0.08, 1.0, 200)
arm = np.stack([radius * np.cos(11 * radius), radius * np.sin(11 * radius)], axis=1)
points = np.concatenate([arm, -arm]) + rng.normal(scale=0.015, size=(400, 2))
x, y = points.astype(np.float32), np.repeat([0, 1], 200)

ek.seed(0)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = optim.Adam(model.parameters(), lr=0.02)
schedule = optim.CosineAnnealingLR(optimizer, T_max=epochs)
history = ek.train.fit(
    model, (x, y), loss=ek.cross_entropy, optimizer=optimizer, epochs=epochs, batch_size=40, seed=0,
    metrics=["accuracy"], schedule=schedule, quiet=True,
)  # fmt: skip

model.eval()
right = (model(ek.tensor(x)).argmax(1).numpy() == y).sum()
across, down = np.meshgrid(np.linspace(-1.1, 1.1, 61), np.linspace(1.1, -1.1, 25))
plane = ek.tensor(np.stack([across.ravel(), down.ravel()], 1).astype(np.float32))
cells = np.where(model(plane).argmax(1).numpy().reshape(across.shape) == 0, "·", " ")
for (a, b), label in zip(points, y, strict=True):
    cells[round((1.1 - b) / 2.2 * 24), round((a + 1.1) / 2.2 * 60)] = "ox"[label]
print("\n".join("".join(row) for row in cells))
print(f"{right} of {len(y)} points are on their side")
