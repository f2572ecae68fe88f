"""A model in Eshkol, its data and its report in Python: `python examples/bindings/use_model.py`.

model.esk is loaded as a module: its procedures are called with lists of Python, call a function of Python back, and
give vectors of Scheme, which are lists in Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

import eshkol as ek


def main() -> int:
    model = ek.load(Path(__file__).with_name("model.esk"))
    points = [[x / 10, 2.0 + 0.5 * x / 10] for x in range(-20, 21)]
    print(f"{model.__doc__}\nrate {model.rate}, {len(points)} points")

    weights = model.fit(points, 50, lambda step, error: print(f"step {step:3}: error {error:.6f}"))
    print(f"height {weights[0]:.3f}, slope {weights[1]:.3f}; at 4 it is {model.predict(weights, 4.0):.3f}")

    try:
        model.predict([1.0], 2.0)  # a list is a list in Scheme, and no vector
    except ek.errors.SchemeError as error:
        print(error)
    return 0 if abs(model.predict(weights, 4.0) - 4.0) < 0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
