"""Write references.json: data of every kind, and what scikit-learn says of it.

Run it where scikit-learn is installed: python tests/metrics/store_answers.py
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from comparisons import COMPARISONS, DATA

SEEDS, SIZE = range(3), 8


def main() -> None:
    sklearn, metrics = (importlib.import_module(name) for name in ("sklearn", "sklearn.metrics"))
    inputs: dict[str, list[Any]] = {
        kind: [[part.tolist() for part in made(np.random.default_rng(seed), SIZE)] for seed in SEEDS]
        for kind, made in DATA.items()
    }
    answers: dict[str, list[Any]] = {}
    for one in COMPARISONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [one.theirs(metrics, *map(np.array, pair)) for pair in inputs[one.data]]
        answers[str(one)] = [np.asarray(value).tolist() for value in found]
    path = Path(__file__).with_name("references.json")
    lines = [json.dumps(name) + ": " + json.dumps(values) for name, values in answers.items()]
    data = [json.dumps(kind) + ": " + json.dumps(pairs) for kind, pairs in inputs.items()]
    path.write_text(
        f'{{"scikit-learn": "{sklearn.__version__}",\n"inputs": {{\n'
        + ",\n".join(data) + '\n},\n"answers": {\n' + ",\n".join(lines) + "\n}}\n",
        encoding="utf-8",
    )  # fmt: skip


if __name__ == "__main__":
    main()
