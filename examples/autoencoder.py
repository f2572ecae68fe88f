"""Sixty-four numbers pressed into eight: an autoencoder of handwritten digits. `autoencoder.py [epochs]`."""

import sys

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 30

ek.seed(6)
press = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 8))
unfold = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())
model = nn.Sequential(press, unfold)
step = ek.train.Step(model, ek.mse_loss, optim.Adam(model.parameters(), lr=0.005))

batches = ek.data.DataLoader(ek.data.digits("train", flat=True), 64, shuffle=True, seed=0, drop_last=True)
for _ in range(epochs):
    for x, _digit in batches:
        step(x, x)  # the pictures are what is to come out, too

model.eval()
images, _ = next(iter(ek.data.DataLoader(ek.data.digits("test", flat=True), 4)))
for title, rows in (("What goes in:", images), ("What comes out of eight numbers:", model(images))):
    print(title)
    for line in range(8):
        shades = rows.reshape(-1, 8, 8).detach().numpy()[:, line]
        print("   ".join("".join(" .:-=+*#%@"[round(9 * float(v))] * 2 for v in row) for row in shades))
print(f"mean square error {ek.mse_loss(model(images), images).item():.4f}")
