"""The command `eshkol tune`: kernels that leave something open are measured, and the fastest choice is kept.

Comes in: shapes, or a program whose launches are taken down. Goes out: for each what is taken without measuring, what
is best and how much was gained, a heat map, and answers on disk, from where every later process has them. Answers are
written shape by shape, so that Ctrl-C or the time limit lose nothing but the shape at hand.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eshkol.cli.heat import HeatMap, short
from eshkol.cli.usage import UsageError
from eshkol.errors import DeviceLost, EshkolError
from eshkol.support.answers import Answer, Question

if TYPE_CHECKING:
    from eshkol.atlas.sequence import Call
    from eshkol.backends.cuda.backend import CudaBackend
    from eshkol.support.halving import Found
    from eshkol.train.progress import ProgressBar

PROG = "eshkol tune"
EPILOG = """\
A shape is MxNxK, of a product, or BxMxNxK of a batch; with nt, tn or tt behind it where factors lie transposed, as the
weight of a linear layer does (nt). Of attention it is BATCHxHEADSxLENGTHxWIDTH, with `causal` or `gradients` behind it.
A file has a shape on each line, with the family before it: `attention 4x16x2048x128 causal`.

examples:
  eshkol tune                                         shapes of common models, for five minutes at most
  eshkol tune --model gpt2 --limit 60
  eshkol tune --shapes 4096x4096x4096:nt,16x4096x4096:nt --map maps
  eshkol tune --family attention --shapes 4x16x2048x128:causal:gradients
  eshkol tune run train.py 100                        all that a program asks of the GPU
  eshkol tune run train.py -- --steps 100             the same, of one with options"""
DTYPES = {"bf16": "bfloat16", "f16": "float16"}
FAMILIES = ("products", "attention")
GPT2 = (
    "products 8192x2304x768 nt", "products 8192x768x768 nt", "products 8192x3072x768 nt", "products 8192x768x3072 nt",
    "products 8192x3072x768 nn", "products 3072x768x8192 tn", "attention 8x12x1024x64 causal gradients",
)  # fmt: skip
LLAMA = (
    "products 4096x6144x4096 nt", "products 4096x4096x4096 nt", "products 4096x14336x4096 nt",
    "products 4096x4096x14336 nt", "products 16x4096x4096 nt", "products 128x14336x4096 nt",
    "attention 1x32x4096x128 causal",
)  # fmt: skip
MODELS = {"gpt2": GPT2, "llama-8b": LLAMA}
LIMIT, MOST = 300.0, 40
INTERRUPTED = 130


class Shape(NamedTuple):
    """What is to be measured, as someone wrote it."""

    family: str
    extents: tuple[int, ...]
    words: frozenset[str]


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", nargs="*", metavar="run FILE", help="a Python program, and its arguments")
    parser.add_argument("--device", default="cuda", help="the GPU (default: cuda)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--shapes", metavar="SHAPES", help="shapes with commas between them, or a file of them")
    which.add_argument("--model", choices=sorted(MODELS), help="the shapes of a model")
    parser.add_argument("--family", choices=FAMILIES, help="only these kernels; what --shapes are of")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bf16", help="of the operands (default: bf16)")
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="for everything (default: 300)")
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help="choices of a shape (default: 40)")
    parser.add_argument("--map", metavar="FOLDER", help="where heat maps are put, as SVG")
    parser.add_argument("--again", action="store_true", help="measure also what has an answer already")
    parser.set_defaults(run=run_tune)


def run_tune(options: argparse.Namespace) -> int:
    """Measure; the exit code."""
    if not (options.limit > 0 and options.most > 0):
        raise UsageError("--limit and --most are more than 0", PROG)
    began = time.monotonic()
    shapes = asked_for(options)
    backend = _backend(options.device)
    calls = _taken_down(backend, options.program[1:]) if shapes is None else _launched(backend, shapes, options)
    return Tuner(backend, began + options.limit, options.most, options.map, again=options.again).run(calls)


# --- what is measured -----------------------------------------------------------------------------


def asked_for(options: argparse.Namespace) -> list[Shape] | None:
    """The shapes; None where a program says them."""
    if options.program:
        if options.program[0] != "run" or len(options.program) < 2:
            raise UsageError(f"'{' '.join(options.program)}' is not `run FILE`", PROG)
        if options.shapes or options.model:
            raise UsageError("a program says its shapes itself, without --shapes and --model", PROG)
        return None
    family = options.family
    if options.shapes is None:
        lines = [line for name in ([options.model] if options.model else MODELS) for line in MODELS[name]]
        return [shape for shape in map(parsed, lines) if family in (None, shape.family)]
    path = Path(options.shapes)
    if path.is_file():
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    else:
        lines = options.shapes.split(",")
    found = [parsed(line, family or FAMILIES[0]) for line in lines if line.strip()]
    if not found:
        raise UsageError(f"there are no shapes in '{options.shapes}'", PROG)
    return found


def parsed(text: str, family: str = FAMILIES[0]) -> Shape:
    """A shape as it is written."""
    words = re.split(r"[\s:]+", text.strip())
    if words[0] in FAMILIES:
        family, *words = words
    known = {"products": {"nn", "nt", "tn", "tt"}, "attention": {"causal", "gradients"}}[family]
    lengths = {"products": (3, 4), "attention": (4,)}[family]
    extents = words[0].split("x") if words else []
    sound = len(extents) in lengths and all(re.fullmatch("[1-9][0-9]{0,8}", n) for n in extents)
    if not sound or not set(words[1:]) <= known or (family == "products" and len(words) > 2):
        raise UsageError(f"'{text.strip()}' is no shape of {family}", PROG)
    return Shape(family, tuple(map(int, extents)), frozenset(words[1:]))


def _backend(name: str) -> CudaBackend:
    from eshkol.backends.cuda.backend import CudaBackend
    from eshkol.tensors.devices import open_backend

    found = open_backend(name)
    if not isinstance(found, CudaBackend):
        raise EshkolError(
            f"'{name}' is no GPU", hint="kernels of the CPU are measured when they are first compiled: ESHKOL_TUNE=1"
        )
    if not found.device.warpgroups:
        raise EshkolError(f"kernels for {found.device.name} leave nothing open that is measured")
    return found


@contextmanager
def _seen(backend: CudaBackend) -> Iterator[list[Call]]:
    """Launches that are asked for within it."""
    seen: list[Call] = []
    backend.tuning.seen = seen
    try:
        yield seen
    finally:
        backend.tuning.seen = None


def _launched(backend: CudaBackend, shapes: Sequence[Shape], options: argparse.Namespace) -> list[Call]:
    """The launches of shapes, as programs of tensors ask for them."""
    import eshkol as ek

    calls: list[Call] = []
    for shape in shapes:
        function, given = _program(shape)
        with _seen(backend) as seen, ek.device(options.device):
            ek.jit(function)(*(ek.zeros(extents, dtype=DTYPES[options.dtype]) for extents in given))
        if not seen:
            raise EshkolError(
                f"groups of warps have no kernel for {_written(shape)}",
                hint="products have 16 columns and terms or more",
            )
        calls += seen
    return calls


def _program(shape: Shape) -> tuple[Callable[..., Any], list[tuple[int, ...]]]:
    """A function of tensors, and the shapes of its arguments."""
    import eshkol as ek

    if shape.family == "attention":
        causal = "causal" in shape.words

        def attend(q: Any, k: Any, v: Any) -> Any:
            return ek.scaled_dot_product_attention(q, k, v, causal=causal)

        def gradients(q: Any, k: Any, v: Any, ct: Any) -> Any:
            return ek.grad(lambda *x: (attend(*x) * ct).astype("float32").sum(), argnums=(0, 1, 2))(q, k, v)

        return (gradients, [shape.extents] * 4) if "gradients" in shape.words else (attend, [shape.extents] * 3)
    *batch, m, n, k = shape.extents
    turned = next(iter(shape.words), "nn")
    a, b = (k, m) if turned[0] == "t" else (m, k), (n, k) if turned[1] == "t" else (k, n)

    def multiply(x: Any, y: Any) -> Any:
        return (x.swapaxes(-1, -2) if turned[0] == "t" else x) @ (y.swapaxes(-1, -2) if turned[1] == "t" else y)

    return multiply, [(*batch, *a), (*batch, *b)]


def _written(shape: Shape) -> str:
    return " ".join([shape.family, "x".join(map(str, shape.extents)), *sorted(shape.words)])


def _taken_down(backend: CudaBackend, words: Sequence[str]) -> list[Call]:
    """The launches of a Python program, which is run."""
    import runpy

    before, sys.argv = sys.argv, [*words]
    sys.path.insert(0, str(Path(words[0]).absolute().parent))
    try:
        with _seen(backend) as seen:
            try:
                runpy.run_path(words[0], run_name="__main__")
            except SystemExit as leaving:
                if leaving.code:
                    raise EshkolError(f"'{words[0]}' ended with {leaving.code}") from None
    finally:
        sys.argv = before
        sys.path.pop(0)
    if not seen:
        raise EshkolError(
            f"'{words[0]}' has asked {backend.name} for no kernel that leaves something open",
            hint="these are products, convolutions and attention of bfloat16 and float16 on a GPU (ESHKOL_DEVICE=cuda)",
        )
    return seen


# --- measuring ------------------------------------------------------------------------------------


class Tuner:
    """Questions measured one by one until a time."""

    def __init__(
        self, backend: CudaBackend, deadline: float, most: int, folder: str | None = None, *, again: bool = False
    ) -> None:
        self._backend, self._deadline, self._most, self._again = backend, deadline, most, again
        self._folder = None if folder is None else Path(folder)
        self._gains: list[float] = []
        self._wrong: list[str] = []
        self._failed: list[str] = []
        self._path: Path | None = None

    def run(self, calls: Sequence[Call]) -> int:
        """Measure what launches leave open; the exit code."""
        from eshkol.backends.cuda.trials import questions
        from eshkol.train.progress import ProgressBar

        tasks = questions(self._backend, calls)
        known = [] if self._again else [question for question in tasks if question in self._backend.tuning.answers]
        for question in known:
            print(f"{question}: measured before, {self._backend.tuning.answers[question].gain:.2f} times as fast")
            del tasks[question]
        interrupted, left = False, len(tasks)
        stopped: EshkolError | None = None
        with ProgressBar(len(tasks), "tune", file=sys.stderr) as bar:
            try:
                for number, (question, call) in enumerate(tasks.items()):
                    now = time.monotonic()
                    if now >= self._deadline:
                        break
                    share = (self._deadline - now) / (len(tasks) - number)
                    stopped = self._measured(question, call, share, partial(self._show, bar, number))
                    left -= 1
                    bar.update(number + 1, {"gain": self._mean()})
                    if stopped is not None:
                        break
            except DeviceLost as error:
                stopped = error
            except KeyboardInterrupt:
                interrupted = True
        self._summary(left, interrupted=interrupted)
        if stopped is not None:
            print(f"the device is gone: {stopped.message}", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)  # to end in order would wait for the device
        return INTERRUPTED if interrupted else 1 if self._wrong else 0

    @staticmethod
    def _show(bar: ProgressBar, number: int, tried: str) -> None:
        bar.update(number, {"choice": tried})

    def _measured(
        self, question: Question, call: Call, limit: float, tell: Callable[[str], None]
    ) -> EshkolError | None:
        from eshkol.backends.cuda.trials import measured
        from eshkol.backends.cuda.warpgroups.choices import label

        try:
            found = measured(self._backend, call, limit=limit, most=self._most, tell=lambda t: tell(short(label(t))))
        except DeviceLost:
            raise
        except EshkolError as error:
            self._failed.append(f"{question}: {error.message}")
            print(f"{question}: {error.message}")
            return None
        seconds = {label(tile): taken for tile, taken in found.seconds.items()}
        failed = {label(tile): why for tile, why in (found.failed | found.wrong).items()}
        self._wrong += found.wrong.values()
        self._failed += [f"{question} with {short(label(tile))}: {why}" for tile, why in found.failed.items()]
        best, first = label(found.best), label(found.first)
        answer = Answer(best, 1e6 * seconds[best], first, 1e6 * seconds[first])
        self._gains.append(answer.gain)
        heat = HeatMap(seconds, failed)
        self._tell(question, answer, heat, found)
        if found.stopped is None:
            self._path = self._backend.tune({question: answer})
        return found.stopped

    def _tell(self, question: Question, answer: Answer, heat: HeatMap, found: Found[Any]) -> None:
        tried = f"{len(found.seconds)} choices measured, {len(found.failed)} failed, {found.untried} not tried"
        print(f"\n{question} ({tried})")
        print(f"  model {answer.first_microseconds:9.1f} µs  {short(answer.first)}")
        print(f"  best  {answer.microseconds:9.1f} µs  {short(answer.choice)}  gain {answer.gain:.3f}")
        print(heat.text(), flush=True)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = re.sub("[^A-Za-z0-9]+", "-", str(question)).strip("-")
            title = f"{question}: {answer.microseconds:.1f} µs at best, {answer.first_microseconds:.1f} by the model"
            (self._folder / f"{name}.svg").write_text(heat.svg(title), encoding="utf-8")

    def _mean(self) -> float:
        """The geometric mean of what was gained."""
        return math.exp(sum(map(math.log, self._gains)) / len(self._gains)) if self._gains else 1.0

    def _summary(self, left: int, *, interrupted: bool) -> None:
        how = "interrupted: " if interrupted else ""
        behind = f", {left} left for another time" if left else ""
        print(f"\n{how}{len(self._gains)} shapes measured{behind}; on average {self._mean():.3f} times as fast")
        if self._path is not None:
            print(f"answers are in {self._path}")
        for line in self._failed:
            print(f"failed: {line}")
        for line in self._wrong:
            print(f"WRONG ANSWER, not used: {line}", file=sys.stderr)
