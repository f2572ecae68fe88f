"""What a model is and does, drawn: its layers as a tree, its gradients as bars, what its layers give as histograms.

Comes in: a model, after `backward` for its gradients, and inputs for what its layers give. Goes out: a `Drawing`, which
is text for a terminal, a picture (SVG) in a notebook, and a file where one is asked for.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.errors import TensorError
from eshkol.nn.module import Module
from eshkol.tensors import api as ek
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.value import Tensor

BARS = "▁▂▃▄▅▆▇█"
BINS = 16
WIDE = 30  # characters of a bar
LINE = 18  # pixels of a line, and 8 of a character, in a picture


class Drawing:
    """Lines of text, which are the same as a picture."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def svg(self) -> str:
        """The picture."""
        width, height = 8 * max(map(len, self.lines), default=1) + 20, LINE * len(self.lines) + 20
        rows = "".join(
            f'<text x="10" y="{LINE * k + 24}" xml:space="preserve">{escape(line)}</text>'
            for k, line in enumerate(self.lines)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
            f'<rect width="100%" height="100%" fill="white"/>'
            f'<g font-family="monospace" font-size="13" fill="black">{rows}</g></svg>'
        )

    _repr_svg_ = svg

    def save(self, path: Any) -> None:
        """Write it to a file: a picture where its name ends in .svg, text where in .txt."""
        kind = Path(path).suffix.lower()
        if kind not in (".svg", ".txt"):
            raise TensorError(f"a drawing is written to a file .svg or .txt, not '{path}'", span=ek.here())
        Path(path).write_text(self.svg() if kind == ".svg" else f"{self}\n", encoding="utf-8")


def architecture(model: Module, *inputs: Any) -> Drawing:
    """The layers of a model as a tree, with how many numbers each has; with inputs or their shapes, what they give."""
    found = model.summary(*inputs)
    entries = []
    for place, row in enumerate(found.rows):
        later = found.rows[place + 1 :]
        name = row.name.rpartition(".")[2]
        branch = "".join("│  " if _goes_on(later, depth) else "   " for depth in range(1, row.depth))
        if row.depth:
            branch += "├─ " if _goes_on(later, row.depth) else "└─ "
        shape = " × ".join(map(str, row.output_shapes[-1])) if row.output_shapes else ""
        frozen = " (frozen)" if row.parameters and not row.trainable else ""
        entries.append((f"{branch}{name + ': ' if name else ''}{row.kind}", shape, f"{row.parameters:,}{frozen}"))
    return Drawing(_columns([("layer", "gives" if found.traced else "", "parameters"), *entries]))


def _goes_on(later: list[Any], depth: int) -> bool:
    """Whether another layer of this depth comes before one that is less deep."""
    for row in later:
        if row.depth < depth:
            return False
        if row.depth == depth:
            return True
    return False


def gradients(model: Module) -> Drawing:
    """The gradient of each parameter, as `backward` has left it: its norm as a bar, and the greatest of its numbers."""
    named = list(model.named_parameters())
    known = {name: np.asarray(p.grad, np.float64) for name, p in named if p.grad is not None}
    if not known:
        raise TensorError(
            f"no parameter of {type(model).__name__} has a gradient", span=ek.here(), hint="call loss.backward() first"
        )
    norms = {name: float(np.linalg.norm(g)) for name, g in known.items()}
    sane = [n for n in norms.values() if math.isfinite(n) and n > 0]
    least, most = min(sane, default=1.0), max(sane, default=1.0)
    rows = [("parameter", f"norm, from {least:.3g} to {most:.3g}, by powers", "norm", "greatest")]
    for name, p in named:
        if name not in known:
            rows.append((name, "frozen" if not p.requires_grad else "no gradient", "", ""))
            continue
        norm, top = norms[name], float(np.max(np.abs(known[name]), initial=0.0))
        if not math.isfinite(norm):
            bar = "not finite"
        elif norm == 0:
            bar = "all zero"
        else:
            share = 1.0 if most == least else math.log(norm / least) / math.log(most / least)
            bar = "█" * (1 + round((WIDE - 1) * share))
        rows.append((name, bar, f"{norm:.3g}", f"{top:.3g}"))
    return Drawing(_columns(rows))


def activations(model: Module, *inputs: Any) -> Drawing:
    """What each layer without parts gives for inputs, in evaluation mode: a histogram, mean, deviation and zeros."""
    found: list[tuple[str, str, Any]] = []
    handles = []
    for name, module in model.named_modules():
        if not any(True for _ in module.children()):

            def note(layer: Module, _: Any, result: Any, name: str = name) -> None:
                first = result[0] if isinstance(result, tuple) and result else result
                if isinstance(first, Tensor):
                    found.append((name or type(layer).__name__, type(layer).__name__, first))

            handles.append(module.register_forward_hook(note))
    before = [(module, module.training) for module in model.modules()]
    try:
        with no_grad():
            model.eval()(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in before:
            object.__setattr__(module, "training", mode)
    rows = [("layer", "kind", "shape", "distribution", "least … greatest", "mean ± deviation", "zeros")]
    for name, kind, tensor in found:
        numbers = np.asarray(tensor, np.float64).ravel()
        shape = " × ".join(map(str, tensor.shape))
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            rows.append((name, kind, shape, "no finite number", "", "", ""))
            continue
        counts, _ = np.histogram(finite, BINS)
        blocks = "".join(" " if c == 0 else BARS[int((len(BARS) - 1) * c / counts.max())] for c in counts)
        bad = "" if finite.size == numbers.size else f", {numbers.size - finite.size} not finite"
        rows.append((
            name, kind, shape, blocks, f"{finite.min():.3g} … {finite.max():.3g}{bad}",
            f"{finite.mean():.3g} ± {finite.std():.3g}", f"{np.mean(numbers == 0):.0%}",
        ))  # fmt: skip
    return Drawing(_columns(rows))


def _columns(rows: list[Any]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width) for row in rows]
    return [line.rstrip() for line in lines]
