"""A recurrent network goes on with a wave: it sees twenty values, and says the next. `waves.py [steps]`."""

import sys

import numpy as np

import eshkol as ek
from eshkol import nn, optim

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
SEEN = 20


class Forecast(nn.Module):
    """The value that follows a sequence."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x: ek.Tensor) -> ek.Tensor:
        _, (hidden, _) = self.lstm(x)
        return self.out(hidden[-1])


def wave(phases: np.ndarray) -> np.ndarray:
    return np.sin(phases[:, None] + 0.35 * np.arange(SEEN + 1)).astype(np.float32)[:, :, None]


ek.seed(5)
rng = np.random.default_rng(5)
model = Forecast(16)
step = ek.train.Step(model, ek.mse_loss, optim.Adam(model.parameters(), lr=0.02))
for k in range(1, steps + 1):
    rows = wave(rng.uniform(0, 6.28, 64))
    loss = step(ek.tensor(rows[:, :SEEN]), ek.tensor(rows[:, SEEN])).loss
    if k in (1, steps):
        print(f"step {k}: loss {loss.item():.5f}")

model.eval()
seen = wave(np.zeros(1))[0, :SEEN, 0].tolist()
for _ in range(40):  # what it says is what it sees next
    seen.append(model(ek.tensor(seen[-SEEN:]).reshape(1, SEEN, 1)).item())
print("What it says, far beyond what it has seen:")
truth = np.sin(0.35 * np.arange(60))
for k in range(20, 60, 4):
    print(f"{k}: {seen[k]:+.3f}  (sin: {truth[k]:+.3f})")
