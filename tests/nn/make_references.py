"""Store what PyTorch gives for every case, in float64: `python tests/nn/make_references.py`, where it is installed.

The file holds one vector of all numbers, and for each case where in it its arrays begin, with their shapes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import theirs
from cases import CASES

FILE = Path(__file__).parent / "references" / "layers.npz"


def main() -> None:
    index: dict[str, dict[str, Any]] = {}
    numbers: list[Any] = []
    start = 0
    for case in CASES:
        state, _, cotangent, found = theirs.computed(case)
        parts = {"cotangent": cotangent} | {f"state.{k}": v for k, v in state.items()} | found
        index[case.name] = {}
        for name, value in parts.items():
            index[case.name][name] = [start, list(value.shape)]
            numbers.append(value.astype(np.float64).ravel())
            start += value.size
    np.savez_compressed(FILE, index=np.array(json.dumps(index)), numbers=np.concatenate(numbers))


def stored() -> dict[str, dict[str, Any]]:
    """Case → what is stored of it, by name."""
    with np.load(FILE) as file:
        numbers, index = file["numbers"], json.loads(str(file["index"]))
    return {
        case: {name: numbers[at : at + int(np.prod(shape))].reshape(shape) for name, (at, shape) in parts.items()}
        for case, parts in index.items()
    }


if __name__ == "__main__":
    main()
