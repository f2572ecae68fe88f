"""Models in a page: `python examples/web.py [folder [epochs [steps]]]` trains two and writes their pages.

A network learns handwritten digits, and a GPT a text, letter by letter; both are saved and exported as the command line
does it. To look at them: `python -m http.server -d FOLDER`, and then http://localhost:8000/digits/ or .../text/.
"""

import sys
from pathlib import Path

import numpy as np

import eshkol as ek
from eshkol import nn, optim
from eshkol.cli.main import main

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 20
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 300


def digits(file: Path) -> None:
    """A network for pictures of 8 × 8, which also sees them moved by an element: nobody draws quite in the middle."""
    images, labels = (np.asarray(a) for a in ek.data.digits("train").arrays)
    ways = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
    moved = np.concatenate([np.roll(images, way, (2, 3)) for way in ways])
    data = ek.data.ArrayDataset(moved, np.tile(labels, len(ways)))
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    batches = ek.data.DataLoader(data, 64, shuffle=True, seed=0)
    questions = ek.data.DataLoader(ek.data.digits("test"), 360)
    history = ek.train.fit(
        model, batches, loss=ek.cross_entropy, optimizer=optim.AdamW(model.parameters(), lr=0.003), epochs=epochs,
        validation=questions, metrics=["accuracy"],
    )  # fmt: skip
    print(f"digits: {100 * history['val_accuracy'][-1]:.1f} % of those that it has not seen are right")
    ek.io.save_checkpoint(file, model, metadata={"input": [1, 1, 8, 8]})


def text(file: Path) -> None:
    """A GPT that writes as the text that comes with the package."""
    given = ek.data.text()
    letters = ek.data.CharTokenizer.train(given)
    tokens = np.asarray(letters.encode(given))
    model = nn.GPT(vocabulary=letters.size, context=64, layers=2, heads=4, width=64)
    step = ek.train.Step(
        model,
        lambda logits, following: ek.cross_entropy(logits.reshape(-1, letters.size), following.reshape(-1)),
        optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1),
        clip_norm=1.0,
    )
    draw = np.random.default_rng(0)
    for _ in range(steps):
        at = draw.integers(0, len(tokens) - 65, 16)[:, None] + np.arange(64)
        found = step(ek.tensor(tokens[at]), ek.tensor(tokens[at + 1])).loss
    print(f"text: loss {found.item():.3f}")
    ek.io.save_checkpoint(file, model, metadata={"tokenizer": letters.characters})


ek.seed(0)
for name, make in (("digits", digits), ("text", text)):
    file = folder / f"{name}.eskpt"
    make(file)
    if main(["export", "web", str(file), "-o", str(folder / name), "--force"]):
        sys.exit(1)
