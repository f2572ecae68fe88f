"""A tour of Eshkol: every program of examples/atlas/, on every backend of this machine, checked by NumPy.

For each example: read it (assembler text, a JSON kernel or a circuit), validate it, optimize it, run it, and
compare what it wrote with the same thing computed in NumPy. Prints one table and a picture; exits with 1 if any
result is wrong. `make tour` starts it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import ROUNDED
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eshkol.atlas.classes import CLASS_BYTES, neighbours
from eshkol.atlas.optimize import optimize
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends import open_backend, own_machines
from eshkol.backends.base import Backend, TypedBuffer
from eshkol.cli.atlas import load, read_class_memory, write_class_memory
from eshkol.errors import BackendUnavailable

FOLDER = Path(__file__).parent / "atlas"
NEXT = (
    (".venv/bin/eshkol doctor", "what this machine has"),
    (".venv/bin/eshkol atlas run --help", "run them on your data"),
    (".venv/bin/eshkol atlas opt examples/atlas/collatz.json", "what optimizing does"),
)
Values = dict[str, Any]  # arrays and numbers by the name of the parameter; "class 7" is page 0 of class 7


@dataclass(frozen=True)
class Example:
    """A program with what goes in, how it is launched, and what NumPy says must come out."""

    file: str
    about: str
    launch: LaunchConfig
    inputs: Values
    expected: Values
    tolerance: float = 0.0  # relative; 0 asks for the very same numbers
    places: Mapping[str, int] = field(default_factory=dict)  # "class 7" → 7

    @property
    def name(self) -> str:
        return Path(self.file).stem

    @property
    def path(self) -> Path:
        return FOLDER / self.file


# --- the examples, and what NumPy makes of them -----------------------------------------------------

EXAMPLES: list[Callable[[], Example]] = []
RANDOM = np.random.default_rng(2024)


def example(make: Callable[[], Example]) -> Callable[[], Example]:
    EXAMPLES.append(make)
    return make


def uniform(*shape: int) -> Any:
    """Random F32 between -1 and 1."""
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


@example
def saxpy() -> Example:
    n, a, x, y = 1000, 2.5, uniform(1000), uniform(1000)
    inputs = {"n": n, "a": a, "x": x, "y": y}
    expected = {"y": (a * x.astype(np.float64) + y).astype(np.float32)}
    return Example("saxpy.atlas", "y = a·x + y, with a guard", LaunchConfig.linear(n), inputs, expected, 1e-6)


@example
def add_relu() -> Example:
    a, b = uniform(1024), uniform(1024)
    inputs = {"a": a, "b": b, "c": np.zeros(1024, np.float32)}
    expected = {"c": np.maximum(a + b, 0)}
    return Example("add_relu.atlas", "maps over whole arrays", LaunchConfig.linear(256), inputs, expected)


@example
def block_sum() -> Example:
    x = uniform(4, 256)
    launch = LaunchConfig((4, 1, 1), (256, 1, 1), shared_memory=1024)
    inputs = {"x": x, "sums": np.zeros(4, np.float32)}
    expected = {"sums": x.astype(np.float64).sum(axis=1)}
    return Example("block_sum.atlas", "shared memory and barriers", launch, inputs, expected, 1e-4)


@example
def transpose() -> Example:
    matrix = uniform(32, 48)
    launch = LaunchConfig((3, 2, 1), (16, 16, 1), shared_memory=16 * 17 * 4)
    inputs = {"in": matrix, "out": np.zeros(matrix.size, np.float32)}
    return Example("transpose.atlas", "tiles in two dimensions", launch, inputs, {"out": matrix.T})


@example
def classify() -> Example:
    images, weights = uniform(32, 64), uniform(64, 10)
    scores = images.astype(np.float64) @ weights.astype(np.float64)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    inputs = {"images": images, "weights": weights, "scores": np.zeros(320, np.float32)}
    expected = {"scores": powers / powers.sum(axis=1, keepdims=True)}
    return Example("classify.atlas", "GEMM and Softmax", LaunchConfig.linear(32), inputs, expected, 1e-4)


WIDTH, HEIGHT, ROUNDS = 78, 26, 64  # of the picture


@example
def mandelbrot() -> Example:
    # The same operations in the same order as the program's: a rounding more or less moves points at the border.
    c_re, c_im = np.meshgrid(3.2 * (np.arange(WIDTH) / WIDTH) - 2.2, 2.4 * (np.arange(HEIGHT) / HEIGHT) - 1.2)
    re, im = np.zeros_like(c_re), np.zeros_like(c_re)
    counts, inside = np.full(c_re.shape, ROUNDS, np.uint32), np.ones(c_re.shape, bool)
    for step in range(ROUNDS):
        leaves = inside & (re * re + im * im > 4)
        counts[leaves] = step
        inside &= ~leaves
        re, im = np.where(inside, re * re - im * im + c_re, re), np.where(inside, 2 * (re * im) + c_im, im)
    launch = LaunchConfig((WIDTH // 13, HEIGHT // 13, 1), (13, 13, 1))
    inputs = {"limit": ROUNDS, "counts": np.zeros(counts.size, np.uint32)}
    return Example("mandelbrot.atlas", "loops and branches", launch, inputs, {"counts": counts})


@example
def histogram() -> Example:
    data = RANDOM.binomial(255, 0.4, 2000).astype(np.uint8)
    inputs = {"n": data.size, "bytes": data, "counts": np.zeros(256, np.uint32)}
    expected = {"counts": np.bincount(data, minlength=256)}
    return Example("histogram.atlas", "atomics", LaunchConfig.linear(64), inputs, expected)


@example
def resonance() -> Example:
    data, numbers = RANDOM.integers(0, 256, 96).astype(np.uint8), np.arange(96)
    bits = (data[:, None] >> np.arange(5)) & 1
    classes = bits @ np.array([48, 24, 12, 6, 3]) + ((data >> 5) & 3) % 3
    inputs: Values = {name: np.zeros(96, np.uint8) for name in ("classes", "mirrors")}
    inputs |= {"bytes": data, "sums": np.zeros(96, np.uint32)}
    expected = {
        "classes": classes,
        "mirrors": np.where(numbers % 6 < 3, numbers + 3, numbers - 3),
        "sums": np.array([sum(n * n for n in neighbours(c)[:5]) for c in range(96)]),
    }
    return Example("resonance.atlas", "classes and neighbours", LaunchConfig.linear(96), inputs, expected)


@example
def fibonacci() -> Example:
    numbers = [0, 1]
    while len(numbers) < 371:
        numbers.append(numbers[-1] + numbers[-2])
    launch = LaunchConfig((1, 1, 1), (371, 1, 1))
    inputs = {"out": np.zeros(371, object)}
    return Example("fibonacci.atlas", "256-bit integers", launch, inputs, {"out": np.array(numbers, object)})


@example
def newton() -> Example:
    x = np.linspace(0.01, 2, 500)
    inputs = {"n": x.size, "x": x, "roots": np.zeros(x.size)}
    return Example("newton.atlas", "subroutines", LaunchConfig.linear(x.size), inputs, {"roots": np.sqrt(x)}, 1e-15)


@example
def collatz() -> Example:
    steps = []
    for start in range(1, 501):
        n, taken = start, 0
        while n != 1:
            n, taken = n // 2 if n % 2 == 0 else 3 * n + 1, taken + 1
        steps.append(taken)
    inputs = {"count": 500, "steps": np.zeros(500, np.uint32)}
    return Example("collatz.json", "a JSON kernel", LaunchConfig.linear(500), inputs, {"steps": np.array(steps)})


@example
def blend() -> Example:
    places = {f"class {c}": c for c in range(8)}
    inputs = {name: uniform(64) for name in places}
    c0, c1, c4, c5 = (inputs[f"class {c}"].astype(np.float64) for c in (0, 1, 4, 5))
    powers = np.exp(np.tanh(c0 + c1))
    squares = (c4 - c5) ** 2
    expected = {"class 2": powers / powers.sum(), "class 6": c4 - c5, "class 7": squares}
    expected["class 7"] = np.concatenate([[squares.sum()], squares[1:]])
    about = "a circuit over class memory"
    return Example("blend.circuit", about, LaunchConfig.linear(1), inputs, expected, 1e-4, places)


# --- running ----------------------------------------------------------------------------------------


def run(backend: Backend, example: Example, program: Program) -> tuple[Values, float]:
    """What the program leaves in the buffers and classes of the example, and the seconds it took."""
    given: Values = {}
    for name, value in example.inputs.items():
        if name in example.places:
            write_class_memory(backend, example.places[name] * CLASS_BYTES, value, Type.F32)
        elif isinstance(value, np.ndarray):
            given[name] = backend.array(value, program.param[name].ty)
        else:
            given[name] = value
    began = time.perf_counter()
    backend.execute(program, example.launch, given)
    elapsed = time.perf_counter() - began
    results: Values = {name: value.read() for name, value in given.items() if isinstance(value, TypedBuffer)}
    if example.places:
        memory = read_class_memory(backend)
        results |= {name: memory[c, 0].view(np.float32) for name, c in example.places.items()}
    for value in given.values():
        if isinstance(value, TypedBuffer):
            value.free()
    return results, elapsed


def agrees(example: Example, results: Values) -> bool:
    """Whether everything that NumPy expects is there."""
    for name, expected in example.expected.items():
        found = results[name]
        if example.tolerance:
            close = np.allclose(found, np.ravel(expected), rtol=example.tolerance, atol=example.tolerance / 10)
        else:
            close = np.array_equal(found, np.ravel(expected))
        if not close:
            return False
    return True


def prepare(example: Example) -> tuple[Program, Program]:
    """The program as written, and optimized without changing a bit of what it computes."""
    program = load(str(example.path))
    validate(program, example.launch)
    return program, optimize(program, contract=False)


def cell(backend: Backend, example: Example, program: Program) -> tuple[Text, Values | None]:
    """What the table says about one program on one backend, and the results (None if it was refused)."""
    try:
        results, elapsed = run(backend, example, program)
        if backend.name != "reference" or elapsed < 0.05:  # the first run compiles, or warms up
            results, elapsed = run(backend, example, program)
    except BackendUnavailable:  # it lacks a type or an instruction, and says so
        return Text("refused", "yellow"), None
    verdict = Text(" ok", "green") if agrees(example, results) else Text(" WRONG", "bold red")
    return Text(f"{elapsed * 1e3:.2f}").append(verdict), results


def picture(counts: Any, width: int, height: int, limit: int) -> Text:
    """Iteration counts as characters, darker the longer a point stayed; coloured where the terminal can."""
    marks, colours = " .:-=+*%#", ("blue", "cyan", "green", "yellow", "red")
    drawn = Text()
    for row in counts.reshape(height, width):
        for count in row.tolist():
            level = np.log2(max(count, 1)) / np.log2(limit)
            mark = "@" if count == limit else marks[min(int(level * 12), len(marks) - 1)]
            drawn.append(mark, "bold" if count == limit else colours[min(int(level * 7), len(colours) - 1)])
        drawn.append("\n")
    return drawn


def tables(programs: list[list[Text | str]], names: list[str], times: list[list[Text]], width: int) -> Iterator[Table]:
    """One table of as many machines as fit side by side, and further ones for the others."""
    each = 3 + max(map(len, [*names, *(text.plain for row in times for text in row)]))
    heads = ["program", "instructions", "lanes", "what it shows"]
    needed = [3 + max(len(str(row[k])) for row in [heads, *programs]) for k in range(len(heads))]
    first = next(k for k in (4, 3, 1) if k == 1 or sum(needed[:k]) + each * len(names) < width)
    many = max(1, (width - 1 - sum(needed[:first])) // each)
    for start in range(0, len(names), many):
        title = "Atlas programs, checked against NumPy" if start == 0 else None
        table = Table(box=ROUNDED, title=title, title_style="bold", title_justify="left")
        for k, head in enumerate(heads[:first]):
            style = "cyan" if k == 0 else ""
            table.add_column(head, justify="right" if k in (1, 2) else "left", style=style, no_wrap=True)
        for name in names[start : start + many]:
            table.add_column(name, justify="right", no_wrap=True)
        for program, row in zip(programs, times, strict=True):
            table.add_row(*program[:first], *row[start : start + many])
        yield table


def main() -> int:
    with suppress(AttributeError):  # a terminal without '→' shows '?'
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(highlight=False)
    backends = [open_backend(name) for name in own_machines()]
    programs: list[list[Text | str]] = []
    times: list[list[Text]] = []  # of each program, by machine
    wrong: list[str] = []
    counts = None
    for make in EXAMPLES:
        shown = make()
        program, optimized = prepare(shown)
        programs.append(
            [shown.file, f"{len(program)} → {len(optimized)}", str(shown.launch.total_threads), shown.about]
        )
        times.append([])
        for backend in backends:
            text, results = cell(backend, shown, optimized)
            times[-1].append(text)
            if "WRONG" in text.plain:
                wrong.append(f"{shown.file} on {backend.name}")
            if shown.name == "mandelbrot" and results is not None:
                counts = results["counts"]
    for table in tables(programs, [f"{backend.name}, ms" for backend in backends], times, console.width):
        console.print(table)
    if counts is not None:
        console.print(Text("\nWhat mandelbrot.atlas computed:", "bold"))
        console.print(picture(counts, WIDTH, HEIGHT, ROUNDS))
    if wrong:
        console.print(Text(f"WRONG: {', '.join(wrong)}", "bold red"))
        return 1
    console.print("Try next:", style="bold")
    for command, about in NEXT:
        console.print(Text(f"  {command:<55}").append(about, "dim"), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
