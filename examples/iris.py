"""Three kinds of irises, told apart by four lengths: a table, standardized, split, learned. `iris.py [epochs]`."""

import sys

import eshkol as ek
from eshkol import nn, optim

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40

ek.seed(4)
table = ek.data.iris()
flowers = table.map(ek.data.Standardize.of(table), on=0)
some, others = ek.data.random_split(flowers, [120, 30], seed=2)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = optim.Adam(model.parameters(), lr=0.02)
batches = ek.data.DataLoader(some, batch_size=20, shuffle=True, seed=0)
history = ek.train.fit(model, batches, loss=ek.cross_entropy, optimizer=optimizer, epochs=epochs, quiet=True)

model.eval()
x, y = next(iter(ek.data.DataLoader(others, batch_size=30)))
answers = model(x).argmax(1)
print("Thirty flowers that were held out, and what they are taken for:")
ek.metrics.draw_confusion(ek.metrics.confusion_matrix(answers, y, num_classes=3), table.classes)
