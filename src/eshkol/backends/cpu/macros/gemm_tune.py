"""What may be chosen about a matrix product by measuring: the micro-tile and its unrolling, and how the rest is cut.

Comes in: a `Product` as its instruction is lowered. Goes out: the same with another style, if the tuner knows a faster
one (see `cpu/tune.py`). The micro-tile is part of the functions' text, and of their names; the other sizes are words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from eshkol.backends.cpu.macros.gemm_plan import OPERAND, Laid, Product
from eshkol.backends.cpu.macros.gemm_units import FEW_ROWS, Style
from eshkol.backends.cpu.tune import LEAST_WORK, choice
from eshkol.support.extents import Extent


class Shape(NamedTuple):
    """A micro-tile, and how often its inner loop is unrolled."""

    rows: int
    vectors: int
    unroll: int


class Cut(NamedTuple):
    """How a product is cut around its micro-tiles; see `Style` for what each means."""

    panel_bytes: int
    tile_rows: int
    tile_columns: int
    tasks: int
    direct_bytes: int


# Registers of a machine, and whether vectors of A are among them → micro-tiles that leave room for a row of B.
SHAPES = {
    (32, True): ((4, 4, 1), (8, 2, 1), (6, 3, 1), (5, 4, 1), (4, 4, 2)),
    (32, False): ((6, 4, 2), (8, 3, 2), (12, 2, 2), (6, 4, 4)),
    (16, False): ((6, 2, 2), (4, 3, 2), (4, 2, 2), (6, 2, 4)),
}
WHOLE = 1 << 62  # bytes: any B is read where it is


def shapes(p: Product) -> tuple[Shape, ...]:
    """Micro-tiles for a product; only its own where there is one row or one vector of them."""
    style = p.style
    own = Shape(style.rows, style.vectors, style.unroll)
    if style.inner is not None or min(own.rows, own.vectors) == 1:
        return (own,)
    registers = 32 if p.target.is_arm or style.lanes * style.sums.bits == 512 else 16
    found = [Shape(*s) for s in SHAPES.get((registers, style.by_lane > 1), ())]
    return own, *(s for s in found if s != own)


def cuts(style: Style) -> tuple[Cut, ...]:
    """Ways to cut a product: its own, and those that differ in one thing."""
    own = Cut(style.panel_bytes, style.tile_rows, style.tile_columns, style.tasks, style.direct_bytes)
    return (
        own,
        *(own._replace(panel_bytes=size) for size in (own.panel_bytes // 2, own.panel_bytes * 2)),
        *(own._replace(tile_rows=rows) for rows in (own.tile_rows // 2, own.tile_rows * 2)),
        *(own._replace(tile_columns=columns) for columns in (own.tile_columns // 4, own.tile_columns * 2)),
        *(own._replace(tasks=tasks) for tasks in (own.tasks // 8, own.tasks // 2)),
        *(own._replace(direct_bytes=size) for size in (0, WHOLE)),
    )


def tuned(p: Product) -> Product:
    """The product with the style that was measured to be fastest, if any was."""
    if p.batch * p.m * p.n * p.k < LEAST_WORK or p.m <= FEW_ROWS:
        return p
    if any(type(x) is Extent for x in (p.batch, p.inner, p.m, p.n, p.k)):  # measured is one size, and this is for many
        return p
    key = f"{p.name} {p.style.name} batch {p.batch}/{p.inner} {p.m}x{p.n}x{p.k} a {_laid(p.a, p.a_from)}"
    key += f" b {_laid(p.b, p.b_from)} c {_laid(p.c)}"
    own, *_ = others = shapes(p)
    shape = choice("gemm micro-tile", key, others, own)
    if shape != own:
        name = f"{p.style.name}_{shape.rows}x{shape.vectors}x{shape.unroll}"
        p = replace(p, style=replace(p.style, name=name, **shape._asdict()))
    first, *_ = ways = cuts(p.style)
    cut = choice("gemm cut", f"{key} {tuple(shape)}", ways, first)
    return p if cut == first else replace(p, style=replace(p.style, **cut._asdict()))


def _laid(laid: Laid, place: int = OPERAND) -> str:
    """How an operand lies, in a word."""
    turned, copied = "T" * laid.turned, "*" * (place != OPERAND)
    return f"{laid.line}/{laid.outer}/{laid.inner}{turned}{copied}"
