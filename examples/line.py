"""A line through noisy points, by a layer, an optimizer and a loss: `python examples/line.py [steps]`."""

import sys

import eshkol as ek
from eshkol import nn, optim

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200

ek.seed(1)
x = ek.random.uniform((128, 1), -1.0, 1.0)
y = 3.0 * x + 0.5 + 0.05 * ek.random.normal((128, 1))

model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=0.3)
step = ek.train.Step(model, ek.mse_loss, optimizer)  # model, loss, derivatives and update: one compiled call

for k in range(1, steps + 1):
    loss = step(x, y).loss
    if k in (1, steps):
        print(f"step {k}: loss {loss.item():.4f}")

print(f"y = {model.weight.item():.2f} x + {model.bias.item():.2f}")
