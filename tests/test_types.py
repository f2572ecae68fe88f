"""What editors and type checkers know: stubs are up to date, mypy reads them as users mean them, help says it all."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from op_harness import arguments

import eshkol as ek
from eshkol.cli.stubs import stubs
from eshkol.ops import TABLE, calls, dtypes
from eshkol.ops.parameters import DESCRIBED, described
from eshkol.ops.row import Op
from eshkol.tensors.functions import FUNCTIONS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "eshkol"
PUBLIC = [op for op in TABLE.values() if op.public]
INTERNAL = re.compile(r"\b(Value|Node|Aval|Op|Numbers|Axes|AxisPairs|operate|_\w+)\b")

# What mypy is given of the package: the stubs, and what `Tensor` is made of. The rest would take a minute to read.
READ = """
__init__.py _names.pyi version.py tensors/value.py tensors/methods.pyi tensors/random.pyi tensors/interop.py
tensors/autograd.py tensors/handle.py runtime/front.py ops/operators.py ops/dtypes.py jax/__init__.pyi jax/lax.pyi
jax/numpy/__init__.pyi
"""

PROGRAM = """
import eshkol as ek

x = ek.zeros((3,))
reveal_type(x)                                          # Tensor
reveal_type(x + 1)                                      # Tensor
reveal_type(2.0 * x - [1.0, 2.0, 3.0])                  # Tensor
reveal_type(x.softmax(axis=-1).sum())                   # Tensor
reveal_type(x.reshape(3, 1).reshape((3,)))              # Tensor
reveal_type(x[0])                                       # Tensor
reveal_type(ek.sort(x))                                 # tuple[Tensor, Tensor]
reveal_type(x.topk(2))                                  # tuple[Tensor, Tensor]
reveal_type(ek.max_pool2d(x, 2))                        # Tensor
reveal_type(ek.max_pool2d(x, 2, return_indices=True))   # tuple[Tensor, Tensor]
reveal_type(ek.qr(x, "r"))                              # Tensor
reveal_type(ek.split(x, 1))                             # tuple[Tensor, ...]
reveal_type(ek.float32)                                 # DType
reveal_type(ek.random.normal((3,)))                     # Tensor
reveal_type(ek.random.normal(x, (3,), ek.float32))      # Tensor
reveal_type(ek.random.randint(x, (3,), 0, 10))          # Tensor
reveal_type(ek.lax.rsqrt(x))                            # Tensor
reveal_type(ek.jnp.sqrt(x))                             # Tensor
ek.nosuch                                               # error: has no attribute "nosuch"
x.nosuch                                                # error: has no attribute "nosuch"
ek.cross_entropy(x, x, label_smoothing="much")          # error: incompatible type "str"; expected "float"
ek.cross_entropy(x, x, smoothing=0.1)                   # error: Unexpected keyword argument "smoothing"
x.tanh(2)                                               # error: Too many arguments for "tanh"
ek.lax.nosuch                                           # error: has no attribute "nosuch"
"""


@pytest.mark.parametrize("path", list(stubs()))
def test_a_stub_is_up_to_date(path):
    assert (PACKAGE / path).read_text(encoding="utf-8") == stubs()[path], "run 'make generate'"


def _checked(tmp_path: Path, *how: str) -> dict[int, list[str]]:
    """What mypy says of each line of the program."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", str(tmp_path / "cache"), *how, str(program)],
        capture_output=True, text=True, cwd=PACKAGE.parent, check=False,
    ).stdout  # fmt: skip
    found: dict[int, list[str]] = {}
    for line in re.findall(r"^.*program\.py:(\d+): (?:note|error): (.*)$", said, re.MULTILINE):
        found.setdefault(int(line[0]), []).append(re.sub(r"\b(?:eshkol|builtins)\.(?:\w+\.)*", "", line[1]))
    assert found, said
    return found


def _compare(found: dict[int, list[str]]) -> None:
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        expected = line.partition("# ")[2]
        said = "; ".join(found.get(number, []))
        if expected.startswith("error: "):
            assert expected.removeprefix("error: ") in said, (line, said)
        elif expected:
            assert said == f'Revealed type is "{expected}"', (line, said)
        else:
            assert not said, (line, said)


def test_mypy_reads_the_stubs(tmp_path):
    how = ["--follow-imports=skip", "--ignore-missing-imports"]
    _compare(_checked(tmp_path, *how, *(str(PACKAGE / path) for path in READ.split())))


@pytest.mark.slow
def test_mypy_reads_the_whole_package(tmp_path):
    _compare(_checked(tmp_path, "--strict", "--follow-imports=silent"))


def test_dir_shows_what_there_is():
    shown = dir(ek)
    assert {"nn", "normal", "not_equal", "zeros", "Tensor", "random", "float32", "eval", "lax", "jnp", "tree"} <= {
        *shown
    }
    assert not [name for name in shown if name.startswith("_") and name != "__version__"]
    assert not [name for name in shown if not hasattr(ek, name)]
    assert {"sum", "reshape", "add_", "at", "shape"} <= {*dir(ek.Tensor)}
    assert {"normal", "split", "PRNGKey"} <= {*dir(ek.random)}


def test_every_parameter_is_described_and_nothing_else():
    missing = [f"{op.name}.{name}" for op in PUBLIC for name in op.signature.parameters if not described(op, name)]
    assert not missing, "describe them in ops/parameters.py"
    places = {f"{op.name}.{name}" for op in PUBLIC for name in op.signature.parameters}
    names = {name for op in PUBLIC for name in op.signature.parameters}
    assert not {key for key in DESCRIBED if key not in (places if "." in key else names)}


@pytest.mark.parametrize("name", sorted({group for op in PUBLIC for group in [op.group]}))
def test_help_says_types_of_users_and_every_argument(name):
    for op in PUBLIC:
        if op.group == name:
            function = FUNCTIONS[op.name]
            text = f"{inspect.signature(function)}\n{function.__doc__}"
            assert not INTERNAL.findall(str(inspect.signature(function))), text
            for parameter in op.signature.parameters:
                assert f"\n    {parameter}: " in text, text
            assert "->" in text


def test_help_of_draws_says_what_a_key_does():
    text = f"normal{inspect.signature(ek.random.normal)}\n{ek.random.normal.__doc__}"
    assert text.startswith("normal(shape: int | Sequence[int] | None = None, loc: Tensor | float = 0.0")
    assert "A key in front is drawn with instead" in text


def test_rows_give_what_they_say():
    kinds = {"float": dtypes.float32, "int": dtypes.int64, "bool": dtypes.bool_, "complex": dtypes.complex64}
    wrong = []
    for op in PUBLIC:
        for sample in op.samples if op.gives_if or op.gives != "Tensor" else op.samples[:1]:
            args = arguments(sample, kinds[op.dtypes[0]], np.random.default_rng(0))
            with ek.device("reference"):
                found = FUNCTIONS[op.name](*map(_tensors, args), **sample.attrs)
            if not _is(found, _said(op, args, sample.attrs)):
                wrong.append((op.name, type(found), sample))
    assert not wrong


def _said(op: Op, args: list[Any], attrs: dict[str, Any]) -> str:
    """The type of what a call gives, by the row."""
    bound = calls.signature(op).bind(*args, **attrs)
    bound.apply_defaults()
    return next((kind for p, (value, kind) in op.gives_if.items() if bound.arguments[p] == value), op.gives)


def _is(found: Any, kind: str) -> bool:
    if isinstance(found, ek.Tensor):
        return "Tensor" in kind.split(" | ")
    many = f"tuple[{', '.join(['Tensor'] * len(found))}]"
    return isinstance(found, tuple) and ("tuple[Tensor, ...]" in kind or many in kind)


def _tensors(given: Any) -> Any:
    """Arrays as tensors."""
    if isinstance(given, np.ndarray):
        return ek.tensor(given)
    return [_tensors(x) for x in given] if isinstance(given, list) else given
