"""Handwritten digits: load, train, look at it, save, and load again. `digits.py [epochs [folder]]`; also digits.esk."""

import sys
from pathlib import Path

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
folder = Path(sys.argv[2] if len(sys.argv) > 2 else ".")


def network() -> nn.Module:
    """Scores of the ten digits for pictures of 1 × 8 × 8."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10),
    )  # fmt: skip


ek.seed(0)
batches = ek.data.DataLoader(ek.data.digits("train"), 32, shuffle=True, seed=0)
questions = ek.data.DataLoader(ek.data.digits("test"), 360)

model = network()
optimizer = optim.AdamW(model.parameters(), lr=0.005)
schedule = optim.OneCycleLR(optimizer, max_lr=0.005, epochs=epochs, steps_per_epoch=len(batches))
history = ek.train.fit(
    model, batches, loss=ek.cross_entropy, optimizer=optimizer, epochs=epochs, validation=questions,
    metrics=["accuracy"], schedule=schedule,
)  # fmt: skip

model.eval()
images, labels = next(iter(questions))
answers = model(images).argmax(1)
ek.metrics.draw_confusion(ek.metrics.confusion_matrix(answers, labels, num_classes=10))

file = folder / "digits.eskpt"
ek.io.save_checkpoint(file, model, optimizer, epoch=epochs, metadata={"data": "digits"})
again = network()
ek.io.load_checkpoint(file).restore(again)
again.eval()
assert (again(images).argmax(1) == answers).all()
right = (answers == labels).sum().item()
print(f"{right} of {labels.shape[0]} digits that it had not seen are right; the model is in {file}")
