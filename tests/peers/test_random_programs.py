"""Random programs in PyTorch, too: values and gradients of steps that both have."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import eshkol as ek
from effort import amount
from random_programs.choosing import Seeded
from random_programs.comparing import compare
from random_programs.drawing import draw_program
from random_programs.program import KINDS, Step
from random_programs.steps import BOUNDED
from random_programs.ways import Run

SAME = ("add", "sub", "mul", "maximum", "minimum", "neg", "absolute", "relu", "sin", "cos", "tanh")
TOTALS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}


def _axes(x, axes):
    found = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    return tuple(k % x.ndim for k in found) if x.ndim else ()


def _reduce(data, x):
    name, axes, keep = data
    dims = _axes(x, axes)
    if not dims:
        return x.clone() if name not in ("var", *BOUNDED) else x * 0 if name == "var" else torch.sin(x)
    if name == "var":
        return torch.var(x, dims, correction=0, keepdim=keep)
    if name == "logsumexp":
        return torch.logsumexp(torch.sin(x), dims, keepdim=keep)
    if name == "prod":
        found = torch.sin(x)
        for k in sorted(dims, reverse=True):
            found = torch.prod(found, k, keepdim=keep)
        return found
    return TOTALS[name](x, dims, keepdim=keep)


def _number(data, x):
    name, number, first = data
    number = torch.tensor(number, dtype=x.dtype)
    return getattr(torch, name)(number, x) if first else getattr(torch, name)(x, number)


def _repeat(data, x):
    return torch.repeat_interleave(x, data[0], data[1])


def _index(data, x):
    items = [i for i in data if i is not None]
    for k, item in enumerate(items):  # PyTorch has no steps back
        if isinstance(item, slice) and item.step == -1:
            x = torch.flip(x, (k,))
    return x[tuple(slice(None) if isinstance(i, slice) and i.step == -1 else i for i in data)]


THEIRS = {
    "reshape": lambda a, x: x.reshape(a), "permute": lambda a, x: x.permute(a), "flip": lambda a, x: torch.flip(x, a),
    "roll": lambda a, x: torch.roll(x, a[0], a[1]), "expand": lambda a, x: x.expand(a), "tile": lambda a, x: x.tile(a),
    "repeat": _repeat, "squeeze": lambda a, x: x.squeeze(a), "unsqueeze": lambda a, x: x.unsqueeze(a), "index": _index,
    "concatenate": lambda a, *xs: torch.cat(xs, a), "stack": lambda a, *xs: torch.stack(xs, a),
    "chunk": lambda a, x: torch.chunk(x, 2, a[0])[a[1]], "reduce": _reduce, "number": _number,
    "softmax": lambda a, x: getattr(torch.nn.functional, a[0])(x, dim=a[1]),
    "cumulate": lambda a, x: getattr(torch, a[0])(torch.sin(x) if a[0] == "cumprod" else x, a[1]),
    "matmul": lambda a, x, y: torch.matmul(torch.sin(x), y),
    "gram": lambda a, x: torch.matmul(torch.sin(x), x.transpose(-1, -2)),
    "outer": lambda a, x, y: torch.outer(x, torch.sin(y)),
    "triangle": lambda a, x: getattr(torch, a[0])(x, a[1]), "diagonal": lambda a, x: torch.diagonal(x, a),
    "elementwise": lambda a, *xs: getattr(torch, a[0])(*xs),
}  # fmt: skip
WEIGHTED = [KINDS[name] for name in THEIRS for _ in range(KINDS[name].weight)]


def has_both(step):
    return not isinstance(step, Step) or step.kind != "elementwise" or step.data[0] in SAME


@pytest.fixture(autouse=True)
def _backend():
    """`make test` compiles nothing here: each program is computed twice."""
    with ek.use_backend(amount("cpu", "reference")):
        yield


@pytest.mark.parametrize("part", range(4))
def test_values_and_gradients_are_those_of_pytorch(part):
    tried = 0
    for seed in range(part * 10**6, part * 10**6 + amount(5_000, 60)):
        c = Seeded(seed)
        program, values = draw_program(c, kinds=WEIGHTED, dtypes=("float64",))
        if not program.steps or not all(map(has_both, program.entries)):
            continue
        run = Run(program, values, c)
        theirs = []
        for entry in program.entries:
            if isinstance(entry, Step):
                theirs.append(THEIRS[entry.kind](entry.data, *(theirs[k] for k in entry.args)))
            else:
                theirs.append(torch.tensor(np.array(entry.array), requires_grad=True))
        ours = program.tensors([ek.tensor(np.array(a)) for a in program.inputs()])
        for k in reversed(range(len(ours))):
            compare(
                ours[k].numpy(), theirs[k].detach().numpy(), run.sizes[k], run.losses[k], f"{seed}\n{program}\nv{k}"
            )
        weights = [np.random.default_rng(k).normal(size=v.shape) for k, v in enumerate(values)]

        def loss(*xs, program=program, weights=weights):
            return sum((v * ek.tensor(w)).sum() for v, w in zip(program.tensors(xs), weights, strict=True))

        sum((v * torch.tensor(w)).sum() for v, w in zip(theirs, weights, strict=True)).backward()
        inputs = [ek.tensor(np.array(a)) for a in program.inputs()]
        slopes = ek.grad(loss, argnums=tuple(range(len(inputs))))(*inputs)
        wanted = [theirs[k].grad.numpy() for k in program.leaves]
        tied = {"max", "min", "maximum", "minimum", "relu", "absolute"}  # at ties each has a rule of its own
        if any(
            isinstance(e, Step) and isinstance(e.data, tuple) and tied & set(map(str, e.data)) for e in program.entries
        ):
            continue
        tried += 1
        size = max(1.0, *(float(np.abs(w).max(initial=0.0)) for w in wanted)) * max(run.sizes)
        for got, want in zip(slopes, wanted, strict=True):
            compare(got.numpy(), want, size, 10 * max(run.losses), f"{seed}\n{program}\nslopes")
    assert tried > 10
