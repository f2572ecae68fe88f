"""What the lines of habits are run in, with Eshkol or with PyTorch itself in the place of `ek`.

Comes in: a library that is used as PyTorch is, and a line. Goes out: nothing, or an AssertionError that says what is
wrong. `test_torch_habits.py` asks with Eshkol; `tests/peers/test_torch_habits.py` with PyTorch, if it is installed, so
that what the lines expect is what PyTorch does.
"""

from __future__ import annotations

import copy
import io
from collections import OrderedDict
from typing import Any

import numpy as np
from tests.habits.torch_lines import Habit

ARRAYS: dict[str, Any] = {
    "X": np.float32([[1, 2, 3], [4, 5, 6]]),
    "V": np.float32([1, 2, 3]),
    "M": np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2]]),
    "I": np.int64([2, 0, 1]),
    "K": np.int64([[0, 2, 1], [2, 1, 0]]),
    "MASK": np.array([[True, False, True], [True, True, True]]),
    "IMG": np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4),
    "LOGITS": np.float32([[1, 2, 0.5], [0.1, 0.2, 0.3]]),
    "LABELS": np.int64([2, 0]),
}


def world(library: Any, folder: str, line: Habit) -> dict[str, Any]:
    """The names that a line may use; values are made anew, as lines change them."""
    nn = library.nn
    library.manual_seed(0)
    names = {name.lower(): library.tensor(array) for name, array in ARRAYS.items()}
    if "model" in f"{line.code} {line.expected}":
        names["model"] = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    names |= {name: array.copy() for name, array in ARRAYS.items()}
    names |= {"F": nn.functional, "D": library.distributions, "tmp": folder}
    return names | {"ek": library, "np": np, "copy": copy, "io": io, "OrderedDict": OrderedDict}


def run(code: str, names: dict[str, Any]) -> Any:
    """What the last of a line's statements gives."""
    *first, last = code.split("; ")
    for statement in first:
        exec(statement, names)
    try:
        compile(last, "habit", "eval")
    except SyntaxError:
        exec(last, names)
        return None
    return eval(last, names)


def plain(value: Any) -> Any:
    """Tensors as arrays, in tuples and lists too; everything else as it is."""
    if hasattr(value, "detach"):
        return np.asarray(value.detach().tolist(), dtype=str(value.dtype).rpartition(".")[2].rstrip("_"))
    if isinstance(value, tuple | list):
        return [plain(x) for x in value]
    return value


def agree(found: Any, expected: Any) -> bool:
    """Whether a line gives what it should: numbers within a float's precision, shapes and kinds of dtype exactly."""
    if isinstance(expected, tuple | list):
        return isinstance(found, tuple | list) and len(found) == len(expected) and all(map(agree, found, expected))
    if isinstance(expected, np.ndarray | np.generic):
        found, expected = np.asarray(found), np.asarray(expected)
        kinds = {"i": "i", "u": "i", "f": "f", "c": "c", "b": "b"}
        return bool(
            found.shape == expected.shape
            and kinds.get(found.dtype.kind) == kinds.get(expected.dtype.kind)
            and np.allclose(found, expected, rtol=2e-4, atol=1e-5)
        )
    if isinstance(expected, float) and not isinstance(found, np.ndarray):
        return bool(np.allclose(found, expected, rtol=2e-4, atol=1e-6))
    return bool(np.all(found == expected))


def check(habit: Habit, names: dict[str, Any], told: bool = True) -> None:
    """Run a line, and see whether it gives or refuses what it should; `told`: with the words that it should."""
    if habit.refused:
        try:
            found = run(habit.code, names)
        except Exception as error:
            said = str(error)
        else:
            raise AssertionError(f"{habit.code} is not refused: it gives {found!r}")
        assert not told or habit.expected in said, f"{habit.code}: the refusal does not say '{habit.expected}': {said}"
        return
    found = plain(run(habit.code, names))
    expected = plain(run(habit.expected, names))
    assert agree(found, expected), f"{habit.code} gives {found!r}, and should give {expected!r}"
