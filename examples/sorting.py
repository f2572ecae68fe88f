"""A transformer learns to sort: seven digits in, the same in order out. `python examples/sorting.py [steps]`."""

import sys

import numpy as np

import eshkol as ek
from eshkol import nn, optim

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
LENGTH, DIGITS, WIDTH = 7, 10, 48


class Sorter(nn.Module):
    """Scores of the digit that stands at each place of the sorted list."""

    def __init__(self) -> None:
        super().__init__()
        self.digits, self.places = nn.Embedding(DIGITS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0, batch_first=True) for _ in range(2))
        )
        self.out = nn.Linear(WIDTH, DIGITS)

    def forward(self, digits: ek.Tensor) -> ek.Tensor:
        return self.out(self.layers(self.digits(digits) + self.places.weight))


def loss(scores: ek.Tensor, targets: ek.Tensor) -> ek.Tensor:
    return ek.cross_entropy(scores.reshape(-1, DIGITS), targets.reshape(-1))


ek.seed(2)
rng = np.random.default_rng(2)
model = Sorter()
optimizer = optim.Adam(model.parameters(), lr=0.003)
schedule = optim.CosineAnnealingLR(optimizer, T_max=steps)
step = ek.train.Step(model, loss, optimizer)
for k in range(1, steps + 1):
    rows = rng.integers(0, DIGITS, (64, LENGTH))
    found = step(ek.tensor(rows), ek.tensor(np.sort(rows, axis=1))).loss
    schedule.step()
    if k % 100 == 0 or k == steps:
        print(f"step {k}: loss {found.item():.4f}")

model.eval()
rows = rng.integers(0, DIGITS, (256, LENGTH))
sorted_rows = model(ek.tensor(rows)).argmax(2).numpy()
for row, answer in zip(rows[:4], sorted_rows[:4], strict=True):
    print(*row, " → ", *answer)
print(f"{(sorted_rows == np.sort(rows, axis=1)).all(axis=1).sum()} of 256 new lists are sorted")
