"""What does the network see in a 3? The gradient of a score with respect to the picture, followed uphill from noise."""

import sys

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 8

ek.seed(8)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
ek.train.fit(
    model, ek.data.DataLoader(ek.data.digits("train", flat=True), 32, shuffle=True, seed=0, drop_last=True),
    loss=ek.cross_entropy, optimizer=optim.Adam(model.parameters(), lr=0.005), epochs=epochs, quiet=True,
)  # fmt: skip
model.eval().freeze()  # from now on it is the picture that changes
wanted = ek.arange(10)


def doubt(pictures: ek.Tensor) -> ek.Tensor:
    """How little the network takes each picture for its digit, and how dark they are."""
    return ek.cross_entropy(model(pictures), wanted) + 0.02 * (pictures * pictures).mean()


@ek.jit
def climb(pictures: ek.Tensor) -> ek.Tensor:
    return ek.clamp(pictures - 3.0 * ek.grad(doubt)(pictures), 0.0, 1.0)


pictures = ek.random.uniform((10, 64), 0.0, 0.3)
for _ in range(100):
    pictures = climb(pictures)

seen = model(pictures).argmax(1)
for start in (0, 5):
    for line in range(8):
        rows = pictures.reshape(10, 8, 8).numpy()[start : start + 5, line]
        print("   ".join("".join(" .:-=+*#%@"[round(9 * float(v))] * 2 for v in row) for row in rows))
    print("                  ".join(str(digit) for digit in range(start, start + 5)))
print(f"{(seen == wanted).sum().item()} of 10 are what they were meant to be")
