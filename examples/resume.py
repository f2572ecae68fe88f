"""A run that stops and goes on: the weights in the end are the same, to the last bit. `resume.py [epochs [folder]]`."""

import sys
from pathlib import Path

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
folder = Path(sys.argv[2] if len(sys.argv) > 2 else ".")


def begin() -> tuple[nn.Module, optim.Optimizer, ek.data.DataLoader]:
    """A model with dropout, what trains it, and its data, from the same seed."""
    ek.seed(9)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))
    digits = ek.data.digits("train", flat=True)
    loader = ek.data.DataLoader(digits, 128, shuffle=True, seed=9, drop_last=True)
    return model, optim.Adam(model.parameters(), lr=0.003), loader


def train(run: tuple[nn.Module, optim.Optimizer, ek.data.DataLoader], count: int) -> None:
    model, optimizer, loader = run
    for _ in range(count):
        ek.train.train_epoch(model, optimizer, ek.cross_entropy, loader)


whole = begin()
train(whole, epochs)

half = begin()
train(half, epochs // 2)
model, optimizer, loader = half
ek.io.save_checkpoint(folder / "resume.eskpt", model, optimizer, loader=loader, epoch=epochs // 2)

second = begin()  # a new model, which knows nothing
checkpoint = ek.io.load_checkpoint(folder / "resume.eskpt")
checkpoint.restore(second[0], second[1], loader=second[2])
train(second, epochs - (checkpoint.epoch or 0))

pairs = zip(whole[0].parameters(), second[0].parameters(), strict=True)
same = all(a.tolist() == b.tolist() for a, b in pairs)
print(f"{epochs} epochs in one go, and with a stop after {epochs // 2} and {folder / 'resume.eskpt'} in between:")
print("the weights are", "the same to the last bit" if same else "NOT the same")
sys.exit(not same)
