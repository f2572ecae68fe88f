"""A tiny GPT learns Shakespeare, letter by letter, and goes on with a word: `python examples/gpt.py [steps [file]]`.

Without a file it reads the text that comes with the package; 1500 steps on all of tiny Shakespeare make it readable.
"""

import sys
from pathlib import Path

import numpy as np

import eshkol as ek
from eshkol import nn, optim

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
text = Path(sys.argv[2]).read_text("utf-8") if len(sys.argv) > 2 else ek.data.text()

letters = ek.data.CharTokenizer.train(text)
train, held = ek.data.split_tokens(np.asarray(letters.encode(text)), 0.9)

ek.seed(0)
model = nn.GPT(vocabulary=letters.size, context=64, layers=4, heads=4, width=128)
optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
schedule = optim.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps, pct_start=0.1)


def loss(logits: ek.Tensor, following: ek.Tensor) -> ek.Tensor:
    return ek.cross_entropy(logits.reshape(-1, letters.size), following.reshape(-1))


step = ek.train.Step(model, loss, optimizer, clip_norm=1.0)
draw = np.random.default_rng(0)
for k in range(1, steps + 1):
    at = draw.integers(0, len(train) - 65, 16)[:, None] + np.arange(64)
    found = step(ek.tensor(train[at]), ek.tensor(train[at + 1])).loss
    schedule.step()
    if k % 50 == 0 or k == steps:
        print(f"step {k}/{steps}: loss {found.item():.3f}")

model.eval()
blocks = ek.data.DataLoader(ek.data.BlockDataset(held, 64), 32)
print(f"loss on text that it has not read: {ek.train.validate(model, loss, blocks)['loss']:.3f}")
prompt = ek.tensor(np.asarray(letters.encode("CORIOLANUS:\n")))
print(letters.decode(model.generate(prompt, 5 if steps < 100 else 200, temperature=0.8, rng=ek.random.key(1)).numpy()))
