"""What kernels of groups of warps leave open, and who decides: for each of them a question, and tiles to choose from.

Comes in: a product, a convolution, attention or its gradients, and how many processors there are. Goes out: `Choices`,
from which a `Pick` takes a tile: the first, which the cost model or a table takes (`by_model`), or the one that was
measured to be the fastest on this device (`by_answers`). Operands' distances, offsets and buffers are not part of a
question: what is brought and computed is the same wherever it lies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from eshkol.backends.cuda.warpgroups import attention, attention_gradients, convolutions, products, tiling
from eshkol.backends.cuda.warpgroups.attention import Attention
from eshkol.backends.cuda.warpgroups.attention_gradients import Gradients
from eshkol.backends.cuda.warpgroups.convolutions import Convolution
from eshkol.backends.cuda.warpgroups.heads import HeadTile
from eshkol.backends.cuda.warpgroups.products import DEPTH, Product, Tile
from eshkol.backends.cuda.warpgroups.ring import REGISTERS, TERMS
from eshkol.backends.cuda.warpgroups.sight import Sight
from eshkol.errors import CacheError
from eshkol.support.answers import Question, contents_key

FAMILIES = {
    "products": ("products", "tiling"),
    "convolutions": ("convolutions", "tiling"),
    "attention": ("attention",),
    "attention-gradients": ("attention_gradients",),
}
"""Families of kernels, and the modules that write them."""
_IMPORT = re.compile(r"from eshkol\.backends\.cuda\.warpgroups(?:\.(\w+))? import (\([^)]*\)|.*)")
TOLD = frozenset({
    "ty", "m", "n", "k", "batch", "a", "b", "c", "alpha",
    "queries", "keys", "width", "q", "v", "ct", "out", "outs", "scale", "sight",
})  # fmt: skip
"""What is in a question already, or makes no kernel faster than another."""
FEWEST_STAGES = 2
FEWER = 0.02  # by which a slab of a product takes longer for each stage that there could be and is not
MOST_REGISTERS = {groups: 255 if budget is None else budget[1] for groups, budget in REGISTERS.items()}  # of a thread
SPARE = 24  # of them, beside scores, powers and sums of attention
WAIT, ALONE = 16, 1.5  # what it takes to wait for a tile of keys, in keys; groups that keep a processor at work


@dataclass(frozen=True)
class Choices:
    """A question, the tile that is taken without measuring, and all that can be: best estimates first."""

    question: Question
    first: Any
    others: Callable[[], Sequence[Any]]

    @property
    def candidates(self) -> list[Any]:
        """The first, then the others."""
        return [self.first, *(tile for tile in self.others() if tile != self.first)]

    def promising(self) -> list[Any]:
        """The first, then the others with as many stages as there is memory for, which is nearly always best."""
        deepest: dict[Any, Any] = {}
        for tile in self.candidates:
            alike = replace(tile, stages=0)
            deepest[alike] = max(deepest.get(alike, tile), tile, key=lambda t: int(t.stages))
        return list(dict.fromkeys([self.first, *deepest.values()]))

    def near(self, tile: Any) -> list[Any]:
        """The same with other stages."""
        return [other for other in self.candidates if replace(other, stages=tile.stages) == tile and other != tile]


Pick = Callable[[Choices], Any]  # a tile of the choices


def by_model(choices: Choices) -> Any:
    return choices.first


def by_answers(answers: Mapping[Question, str]) -> Pick:
    """Tiles that were measured, where they were."""

    def pick(choices: Choices) -> Any:
        kept = answers.get(choices.question)
        if kept is None:
            return choices.first
        for tile in choices.candidates:
            if label(tile) == kept:
                return tile
        raise CacheError(
            f"what was measured for {choices.question} is no choice of it: {kept}",
            hint="it was changed by hand: measure again with eshkol tune; ESHKOL_TUNE=0 does without",
        )

    return pick


def label(tile: Any) -> str:
    """A tile as people read it, and as it is kept."""
    return " ".join(f"{f.name}={int(getattr(tile, f.name))}" for f in fields(tile))


@cache
def sources() -> dict[str, str]:
    """What names the sources of each family: answers hold while these, and what they import here, stay the same."""
    return {family: contents_key([Path(__file__), *_imported(names)]) for family, names in FAMILIES.items()}


def _imported(names: Sequence[str]) -> list[Path]:
    """The files of modules, and of all that these import of this package."""
    found: dict[str, Path] = {}
    left = [*names]
    while left:
        name = left.pop()
        path = Path(__file__).with_name(f"{name}.py")
        if name not in found and path.is_file():
            found[name] = path
            for module, imported in _IMPORT.findall(path.read_text(encoding="utf-8")):
                left += [module] if module else re.findall(r"\w+", imported)
    return list(found.values())


# --- families -------------------------------------------------------------------------------------------


def of_product(p: Product, processors: int) -> Choices:
    first = tiling.best(p, processors)
    words = [f"{p.ty} {p.m}x{p.n}x{p.k}", "".join("nt"[x.turned] for x in (p.a, p.b)), *_rest(p)]
    if p.batch:
        words += [f"batch={prod(p.batch)}", *_shared(p, "ab")]
    if len(products.maps(p, replace(first, cluster=1, shares=False))) == 2:
        words.append("result=stored")  # by threads, not copied
    return Choices(Question("products", " ".join(words)), first, lambda: product_tiles(p, processors))


def of_convolution(c: Convolution, processors: int) -> Choices:
    p = c.product
    first = tiling.best(p, processors)
    words = [
        f"{c.ty} {c.examples}x{c.channels}x{c.space[0]}x{c.space[1]}", f"outs={c.outs}",
        *(f"{name}={x[0]}x{x[1]}" for name, x in (
            ("kernel", c.kernel), ("windows", c.windows), ("stride", c.stride), ("dilation", c.dilation),
        )),
    ]  # fmt: skip
    if len(convolutions.maps(c, replace(first, cluster=1, shares=False))) == 2:
        words.append("result=stored")
    return Choices(Question("convolutions", " ".join(words)), first, lambda: product_tiles(p, processors))


def of_attention(a: Attention, first: attention.Tile, processors: int) -> Choices:
    question = Question("attention", _heads(a))
    return Choices(question, first, lambda: attention_tiles(a, first, processors))


def of_gradients(g: Gradients, first: attention_gradients.Tile, processors: int) -> Choices:
    question = Question("attention-gradients", f"{_heads(g)} of={'keys' if g.of_keys else 'queries'}")
    return Choices(question, first, lambda: gradient_tiles(g, first, processors))


def _heads(a: Attention | Gradients) -> str:
    size = f"{a.ty} {prod(a.batch)}x{a.queries}x{a.keys}x{a.width}"
    return " ".join([size, *_seen(a.sight), *_rest(a), *_shared(a, "qkv")])


def _seen(sight: Sight) -> list[str]:
    """Which keys are looked at; where a mask lies changes nothing."""
    words = [*(["causal"] if sight.causal else []), *([f"window={sight.window}"] if sight.window else [])]
    words += [] if sight.mask is None else ["mask=added" if sight.mask.added else "mask=chosen"]
    return words + [name for name in ("dropout", "lengths", "spans") if getattr(sight, name) is not None]


def _shared(x: Any, names: str) -> list[str]:
    """Operands that are the same for several of a batch."""
    return [f"{name}=shared" for name in names if 0 in getattr(x, name).batch]


def _rest(x: Any) -> list[str]:
    """Whatever else is said about a kernel, so that none is left out that comes to be said: but where things lie."""
    found = {f.name: getattr(x, f.name) for f in fields(x) if f.name not in TOLD}
    return [name if value is True else f"{name}={value}" for name, value in found.items() if value is not False]


# --- tiles ----------------------------------------------------------------------------------------------


def product_tiles(p: Product, processors: int) -> list[Tile]:
    """All tiles that a product can be computed in, those first that are estimated to take the least time."""
    found = [*tiling.tiles(1), *tiling.tiles(2), *tiling.shared_tiles(-(-p.k // DEPTH))]
    costs = {
        replace(tile, stages=stages): tiling.estimate(p, tile, cost * (1 + FEWER * (tile.stages - stages)), processors)
        for tile, cost in found
        if tile.cluster <= processors
        for stages in range(tile.stages, FEWEST_STAGES - 1, -1)
    }
    return sorted(costs, key=costs.__getitem__)


def attention_tiles(a: Attention, first: attention.Tile, processors: int) -> list[attention.Tile]:
    """Tiles of heads as wide as those of the first."""
    found = [
        attention.Tile(first.widest, groups, keys, stages)
        for groups in REGISTERS
        for keys in range(3 * TERMS, 257, TERMS)
        for stages in (2, 3, 4)
    ]
    fits = [t for t in found if _fits(t, t.keys // 2 + t.keys // 4 + t.widest // 2 + SPARE)]
    return sorted(fits, key=lambda t: _turns(t, a.batch, a.queries, processors) * _along(a.keys, t.keys, t.stages))


def gradient_tiles(g: Gradients, first: attention_gradients.Tile, processors: int) -> list[attention_gradients.Tile]:
    """Tiles of heads as wide as those of the first; there are none of the widest, where groups have results apart."""
    if first.parted:
        return []
    found = [
        replace(first, groups=groups, others=others, stages=stages)
        for groups in REGISTERS
        for others in range(3 * TERMS, 145, TERMS)
        for stages in (2, 3, 4)
    ]
    sums = len(g.outs)
    fits = [t for t in found if _fits(t, t.others + sums * (t.others // 4 + t.widest // 2))]
    own, others = g.lines
    return sorted(fits, key=lambda t: _turns(t, g.batch, own, processors) * _along(others, t.others, t.stages))


def _fits(tile: attention.Tile | attention_gradients.Tile, registers: int) -> bool:
    return tile.memory <= tiling.MEMORY and registers <= MOST_REGISTERS[tile.groups]


def _turns(tile: HeadTile, batch: Sequence[int], lines: int, processors: int) -> float:
    """Turns of blocks, each as long as its groups are many."""
    return -(-prod(batch) * -(-lines // tile.rows) // processors) * max(tile.groups, ALONE)


def _along(lines: int, high: int, stages: int) -> float:
    """What a block takes to go along others, so many at a time."""
    return -(-lines // high) * (high + WAIT * (1 + 1 / stages))
