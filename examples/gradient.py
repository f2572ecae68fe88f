"""A derivative in three lines: `python examples/gradient.py`."""

import eshkol as ek

slope = ek.grad(lambda x, y: x * x * y + ek.sin(y), argnums=(0, 1))
print([part.item() for part in slope(ek.tensor(3.0), ek.tensor(0.0))])  # [0.0, 10.0]

# The same of a vector, twice, and for each of many points at once.

print(ek.grad(lambda w: (w * w).sum())(ek.tensor([1.0, 2.0, 3.0])).tolist())  # [2.0, 4.0, 6.0]
print(ek.hessian(lambda v: v[0] * v[1] ** 2)(ek.tensor([1.0, 2.0])).tolist())  # [[0.0, 4.0], [4.0, 2.0]]
print(ek.vmap(ek.grad(ek.sin))(ek.tensor([0.0, 1.0])).tolist())  # [1.0, 0.5403...]
