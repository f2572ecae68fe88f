"""A network learns what no line can tell apart: `python examples/xor.py [steps]`."""

import sys

import eshkol as ek
from eshkol import nn, optim

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300

ek.seed(3)
x = ek.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
y = ek.tensor([[0.0], [1.0], [1.0], [0.0]])

model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = optim.Adam(model.parameters(), lr=0.05)

for _ in range(steps):  # operation by operation, as one would write it in PyTorch; ek.train.Step compiles all of it
    optimizer.zero_grad()
    loss = ek.binary_cross_entropy_with_logits(model(x), y)
    loss.backward()
    optimizer.step()

for inputs, logit in zip(x.tolist(), model(x).tolist(), strict=True):
    print(f"{inputs[0]:.0f} xor {inputs[1]:.0f} is {int(logit[0] > 0)}")
