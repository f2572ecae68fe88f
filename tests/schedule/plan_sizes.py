"""What plans are made of: counted for many functions on three kinds of machines, and kept in `plan_sizes.txt`.

    PYTHONPATH=src:tests .venv/bin/python tests/schedule/plan_sizes.py     # writes it anew, if a change is meant

What is fused with what, which way a kernel goes and where values lie change no answer, but how fast it comes. Comes in:
functions of tensors, each with its derivative. Goes out: a line for each with, for each machine, its launches, those
that are done together, steps of the host, copies, bytes of the arena, instructions of all kernels, and how many of them
load and store. Nothing is run, and the machine at hand makes no difference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES, MATRICES, MachineDescription
from eshkol.backends.blocks import DESCRIPTION
from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.arena import arranged
from eshkol.schedule.plan.steps import Copy, Launch, OnHost, Plan, Together, walk

KEPT = Path(__file__).parent / "plan_sizes.txt"
MACHINES = (CORES, DESCRIPTION, replace(BLOCKS, shared_memory=227 << 10, processors=132, matrices=MATRICES))
SINGLE, HALF, COMPLEX, WHOLE = "float32", "bfloat16", "complex64", "int64"


def sizes(plan: Plan) -> str:
    """What a plan is made of."""
    steps = [*walk(plan.steps)]
    launches = [s for s in steps if isinstance(s, Launch)]
    codes = [i.op.name for s in launches for i in s.kernel.program.instructions]
    counts = [
        len(launches), *(sum(isinstance(s, t) for s in steps) for t in (Together, OnHost, Copy)), arranged(plan).size,
        len(codes), *(sum(code.startswith(name) for code in codes) for name in ("LD", "ST")),
    ]  # fmt: skip
    return " ".join(map(str, counts))


def array(spec: Any) -> Any:
    """An input: a shape of float32, or a dtype and a shape."""
    dtype, shape = spec if isinstance(spec[0] if spec else None, str) else (SINGLE, spec)
    numbers = np.arange(int(np.prod(shape))).reshape(shape) % 3
    return ek.tensor(numbers).astype(getattr(ek, dtype))


def normalized(x: Any, axis: int = -1) -> Any:
    centred = x - x.mean(axis, keepdims=True)
    return centred / ek.sqrt((centred**2).mean(axis, keepdims=True) + 1e-5)


def perceptron(x: Any, w: Any, b: Any, v: Any) -> Any:
    return ek.log_softmax(ek.relu(x @ w + b) @ v, -1)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = ek.einsum("bqd,bkd->bqk", q, k) * 0.25
    return ek.softmax(scores, -1) @ v


def recurrent(x: Any, w: Any) -> Any:
    return ek.scan(lambda h, row: (ek.tanh(h @ w + row), h.sum()), ek.zeros((4,)), x)[0]


def block(x: Any, w: Any, g: Any) -> Any:
    y = ek.conv2d(x, w, padding=1)
    return ek.relu(normalized(y, 1) * g) + x


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.01 * m / (ek.sqrt(v) + 1e-8), m, v


Function = Callable[..., Any]
WITHOUT = (
    "one hot",
    "places",
    "integers",
    "complex",
    "spectra",
    "until",
    "complex of floats",
    "magnitudes",
)  # a derivative
FUNCTIONS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "chain": (lambda x: ek.tanh(ek.sin(x) * 2 + x) - x, ((3, 5),)),
    "long chain": (lambda x: ek.exp(-(x**2)) * ek.cos(x) / (1 + x * x), ((70, 40),)),
    "broadcast": (lambda x, y: x * y + ek.sin(y), ((6, 1, 5), (4, 1))),
    "turned": (lambda x: x.T @ x + x.T.sum(1), ((6, 5),)),
    "sum of rows": (lambda x: (x * 2).sum(1) * 3, ((64, 100),)),
    "sum of columns": (lambda x: (x * x).sum(0), ((200, 30),)),
    "sum of all": (lambda x: ek.sin(x).sum(), ((90, 70),)),
    "two sums": (lambda x: (x.sum(1), (x * x).sum(0)), ((20, 30),)),
    "middle": (lambda x: x.sum(1) + x.max(axis=1), ((5, 6, 7),)),
    "mean of few": (lambda x: x.mean((0, 2)), ((2, 9, 3),)),
    "softmax": (lambda x: ek.softmax(x * 0.5, -1), ((8, 33),)),
    "softmax of columns": (lambda x: ek.softmax(x, 0), ((33, 8),)),
    "long softmax": (lambda x: ek.softmax(x, -1), ((2, 3000),)),
    "norm": (lambda x, g: normalized(x) * g, ((10, 24), (24,))),
    "norm of columns": (lambda x: normalized(x, 0), ((24, 10),)),
    "running": (lambda x: ek.cumsum(ek.sin(x), 1), ((4, 30),)),
    "running down": (lambda x: ek.cumsum(x, 0) * x, ((30, 4),)),
    "running product": (lambda x: ek.cumprod(x * 0.5, -1), ((3, 9),)),
    "greatest": (lambda x: (x.max(axis=1), ek.argmax(x, 1)), ((7, 20),)),
    "greatest of all": (lambda x: x - x.max(), ((7, 20),)),
    "sorted": (lambda x: ek.sort(x, 1)[0][:, :2], ((3, 40),)),
    "order": (lambda x: ek.topk(x, 3)[0].sum(), ((5, 30),)),
    "places": (lambda x: ek.argsort(x, -1), ((4, 9),)),
    "slices": (lambda x: x[1:] * x[:-1] + x[::-1][1:], ((9, 5),)),
    "steps": (lambda x: x[:, ::2] - x[:, 1::2], ((5, 8),)),
    "joined": (lambda x, y: ek.concatenate((x, ek.sin(y), x), 0) * 2, ((4, 5), (3, 5))),
    "stacked": (lambda x, y: ek.stack((x, y, x + y), 1).sum(1), ((4, 5), (4, 5))),
    "padded": (lambda x: ek.pad(x * 2, ((1, 2), (0, 1))) + 1, ((4, 5),)),
    "rolled": (lambda x: ek.roll(x, 2, 0) + ek.flip(x, (1,)), ((6, 4),)),
    "tiled": (lambda x: ek.tile(x, (2, 3)).sum(0), ((3, 4),)),
    "repeated": (lambda x: ek.repeat(x, 3, 0) * 2, ((4, 3),)),
    "reshaped": (lambda x: ek.sin(x).reshape(6, 4).T.reshape(-1) * 2, ((4, 6),)),
    "triangle": (lambda x: ek.tril(x) @ x, ((6, 6),)),
    "diagonal": (lambda x: ek.diagonal(x @ x) * 2, ((6, 6),)),
    "taken": (lambda x, i: ek.take(x, i, 0) * 2, ((10, 4), (WHOLE, (7,)))),
    "gathered": (lambda x, i: ek.take_along(x, i, 1), ((5, 6), (WHOLE, (5, 2)))),
    "added at": (lambda x, i, y: ek.index_add(x, 0, i, y), ((10, 4), (WHOLE, (7,)), (7, 4))),
    "embedded": (lambda e, i: ek.embedding(e, i).sum(1), ((10, 4), (WHOLE, (3, 5)))),
    "one hot": (lambda i: ek.one_hot(i, 5).sum(0), ((WHOLE, (7,)),)),
    "chosen": (lambda x: ek.where(x > 1, x, -x) * ek.sign(x), ((6, 7),)),
    "clipped": (lambda x: ek.clip(x, -1.0, 1.0) + ek.relu(x), ((6, 7),)),
    "product": (lambda x, w: x @ w, ((33, 65), (65, 40))),
    "large product": (lambda x, w: ek.relu(x @ w + 1), ((130, 70), (70, 150))),
    "half product": (lambda x, w: x @ w, ((HALF, (64, 64)), (HALF, (64, 48)))),
    "product of turned": (lambda x, w: x.T @ w.T, ((40, 20), (30, 40))),
    "batched product": (lambda x, w: x @ w, ((3, 8, 10), (3, 10, 6))),
    "vector product": (lambda x, w: x @ w, ((50, 60), (60,))),
    "three products": (lambda a, b, c: a @ b @ c, ((4, 50), (50, 60), (60, 2))),
    "scaled product": (lambda x, d, w: (x * d) @ w, ((9, 8), (8,), (8, 7))),
    "outer": (lambda x, y: x[:, None] * y, ((9,), (8,))),
    "einsum": (lambda x, y: ek.einsum("abc,cbd->ad", x, y), ((3, 4, 5), (5, 4, 2))),
    "perceptron": (perceptron, ((16, 12), (12, 20), (20,), (20, 5))),
    "attention": (attention, ((2, 9, 8), (2, 9, 8), (2, 9, 8))),
    "recurrent": (recurrent, ((6, 4), (4, 4))),
    "loss": (lambda x, i: ek.cross_entropy(x, i), ((8, 3), (WHOLE, (8,)))),
    "convolved": (lambda x, w: ek.relu(ek.conv2d(x, w)), ((2, 3, 8, 8), (4, 3, 3, 3))),
    "strided": (lambda x, w: ek.conv2d(x, w, stride=2, padding=1), ((1, 2, 9, 9), (4, 2, 3, 3))),
    "grouped": (lambda x, w: ek.conv2d(x, w, groups=2), ((1, 4, 6, 6), (4, 2, 3, 3))),
    "line": (lambda x, w: ek.conv1d(x, w, padding=1), ((2, 3, 20), (5, 3, 3))),
    "solid": (lambda x, w: ek.conv3d(x, w), ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2))),
    "residual": (block, ((1, 4, 6, 6), (4, 4, 3, 3), (4, 1, 1))),
    "pooled": (lambda x: ek.max_pool2d(x, 2), ((1, 2, 8, 8),)),
    "averaged": (lambda x: ek.avg_pool2d(x, 3, 2, 1), ((1, 2, 9, 9),)),
    "gate": (lambda x, y: ek.sigmoid(x) * ek.tanh(y) + ek.silu(x), ((9, 9), (9, 9))),
    "gelu": (lambda x: ek.gelu(x) * 2, ((40, 30),)),
    "variance": (lambda x: (ek.var(x, 1), ek.std(x, 0)), ((9, 12),)),
    "log of sums": (lambda x: ek.logsumexp(x, 1), ((9, 40),)),
    "casts": (lambda x: (x.astype(ek.float16) * 2).astype(ek.float32) + x, ((6, 7),)),
    "integers": (lambda i: (i * 3 + 1) // 2 % 5, ((WHOLE, (40,)),)),
    "complex": (lambda z: (z * z.conj()).sum(0) * (1 + 2j), ((COMPLEX, (8, 6)),)),
    "spectrum": (lambda x: ek.real(ek.ifft(ek.fft(x) * 2)), ((4, 8),)),
    "spectra": (lambda z: ek.fft2(z) * z, ((COMPLEX, (4, 8)),)),
    "filter": (lambda x, w: ek.irfft(ek.rfft(x) * ek.rfft(w)), ((4, 8), (8,))),
    "affine": (lambda x, w, b: ek.sigmoid(x @ w + b), ((6, 5), (5, 4), (4,))),
    "affine twice": (lambda x, w, b: (lambda y: (ek.sigmoid(y), ek.tanh(y) / y))(x @ w + b), ((6, 5), (5, 4), (4,))),
    "attention by columns": (lambda q, k, v: ek.softmax(q @ k.swapaxes(1, 2), 1) @ v, ((2, 5, 4),) * 3),
    "scaled image": (
        lambda x, w, m, s: ek.relu((ek.conv2d(x, w) - m) / s), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1), (3, 1, 1)),
    ),
    "units": (lambda x, y: x.reshape(1, 4, 1, 5).sum(0) + y[None, :, None], ((4, 5), (4,))),
    "unit rows": (lambda x: (x - x.mean(1, keepdims=True)) * x[:, :1], ((6, 1),)),
    "joined parts": (lambda x, y: ek.concatenate((x[:, :2], y[:, 1:], x), 1).sum(0), ((5, 4), (5, 3))),
    "short rows": (lambda x: ek.softmax(x, -1) * x.sum(-1, keepdims=True), ((300, 3),)),
    "sorted both": (lambda x: (lambda v, i: (v, i, v[:, :1]))(*ek.sort(x, 1)), ((3, 60),)),
    "joined times": (lambda x, y, z: ek.concatenate((x, y), 0) * z @ z.T, ((4, 5), (3, 5), (7, 5))),
    "growing": (lambda x, u, v: (s := x @ x.T, (s @ u).sum() + (s @ v).sum(), s.sum()), ((6, 5), (6, 4), (6, 90))),
    "gate twice": (lambda x, w: (lambda y: (y * ek.sigmoid(y), ek.sigmoid(y)))(x @ w), ((6, 5), (5, 4))),
    "bias first": (lambda x, w, b: ek.relu(b + ek.conv2d(x, w)), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1))),
    "two images": (lambda x, w, v: ek.relu(ek.conv2d(x, w) + ek.conv2d(x, v)), ((1, 2, 6, 6),) + ((3, 2, 3, 3),) * 2),
    "divided": (lambda x, w, b: b / (ek.conv2d(x, w) + 3), ((1, 2, 6, 6), (3, 2, 3, 3), (3, 1, 1))),
    "changed late": (lambda x, i, y: (x.index_add(0, i, y), x.sum(0)), ((10, 4), (WHOLE, (7,)), (7, 4))),
    "periods": (lambda x, y: ek.softmax((x.reshape(4, 6, 8) + y).reshape(4, 48), -1), ((4, 48), (6, 1))),
    "columns and rows": (lambda x, r, c: ((x - r) * c).sum(1) / r[:, 0], ((20, 30), (20, 1), (30,))),
    "unit axes": (lambda x: (x.sum((1, 2)) * 2, x.mean((0, 1))), ((6, 1, 5),)),
    "moved twice": (lambda x: (lambda y: y[1:] + y[:-1] + y[::-1][1:])(ek.exp(ek.sin(x))), ((9, 5),)),
    "complex of floats": (lambda x: (x.astype(ek.complex64) @ ek.complex(x, x).T).sum(0), ((4, 4),)),
    "magnitudes": (lambda z: abs(z @ z), ((COMPLEX, (4, 4)),)),
    "zeros": (lambda x: x * 0 + x.sum() * 1 + (x + 0) ** 1, ((4, 5),)),
    "same twice": (lambda x: (ek.sin(x) + ek.sin(x)) @ ek.sin(x).T, ((4, 5),)),
    "solved": (lambda a, b: ek.solve(a @ a.T + 4 * ek.eye(4), b), ((4, 4), (4, 2))),
    "branch": (lambda x: ek.cond(x.sum() > 0, lambda y: y * 2, lambda y: ek.sin(y), x), ((5, 6),)),
    "rounds": (lambda x: ek.fori_loop(0, 4, lambda k, y: ek.tanh(y) + k, x), ((5, 6),)),
    "until": (lambda x: ek.while_loop(lambda s: s.sum() < 99, lambda s: s * 2 + 1, x), ((5, 6),)),
    "each": (lambda x, w: ek.vmap(lambda row: ek.softmax(row @ w, -1))(x), ((7, 5), (5, 4))),
    "shared": (lambda x: (lambda y: (y.sum(1), y @ y.T, y * 2))(ek.sin(x)), ((12, 10),)),
    "many results": (lambda x: [x * k + k for k in range(6)], ((5, 4),)),
    "many inputs": (lambda *xs: sum(ek.sin(x) for x in xs), ((6,),) * 9),
    "many sums": (lambda *xs: sum((x * k).sum() for k, x in enumerate(xs)), ((6, 5),) * 5),
    "step of a rule": (lambda w, g, m: ((v := m * 0.9 + g), w - 0.1 * v), ((30, 20), (30, 20), (30, 20))),
    "adam": (adam, ((30, 20),) * 4),
    "of one": (lambda x, y: x.sum() * y + x[0, 0], ((1, 1), (1, 5))),
    "of none": (lambda x: x.sum(1) + 1, ((3, 0),)),
}  # fmt: skip


def total(function: Function) -> Function:
    """What its derivative is taken of: not so simple that nothing is left to compute."""

    def of(*xs: Any) -> Any:
        found = function(*xs)
        parts = found if isinstance(found, tuple | list) else (found,)
        return sum(ek.sin(y.astype(ek.float32)).sum() for y in parts if y.dtype.is_float)

    return of


def graphs(name: str) -> Iterator[Any]:
    """A function and its derivative, traced."""
    function, specs = FUNCTIONS[name]
    inputs = [array(spec) for spec in specs]
    smooth = tuple(k for k, x in enumerate(inputs) if x.dtype.is_float)
    made = [function]
    if smooth and name not in WITHOUT:
        made.append(ek.grad(total(function), argnums=smooth))
    for one in made:
        yield ek.jit(one, dynamic=False).traced(*inputs).function


def line(name: str) -> str:
    """What is kept of a function."""
    found = [_planned(traced, machine) for traced in graphs(name) for machine in MACHINES]
    return f"{name}: {' | '.join(found)}"


def _planned(function: Any, machine: MachineDescription) -> str:
    with nothing_kept():
        return sizes(compiled(function.results, function.params, machine))


def lines() -> Iterator[str]:
    """What is kept."""
    yield from map(line, FUNCTIONS)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    KEPT.write_text("".join(f"{each}\n" for each in lines()))
