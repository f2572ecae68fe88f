"""The ten rungs: a product of float32 matrices for machines of blocks, each with one idea more than the one before.

Comes in: the extents of a product and the description of a machine (`Extents`). Goes out: an Atlas program and its
launch. Read them in order. What is called a *warp* is 32 lanes that run together, as NVIDIA's GPUs have them; what they
read from memory at the same time is read in lines of 128 bytes. The memory that the lanes of a block share has 32
*banks*, which give a number of four bytes each at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product

from eshkol.atlas.machines import ProductTile
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.kernels.parts import F32, VECTOR, WARP, Extents, Share, Slab, Sums, Writer
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.block_products import corner
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.scalars import Scalar

Made = tuple[Program, LaunchConfig]
STRIP = ProductTile(64, 64, 8, 8, 1)  # rows, columns and terms of a block, rows and columns of a lane
SQUARE = ProductTile(128, 128, 8, 8, 8)
WARPED = ProductTile(128, 128, 16, 8, 8)
WIDEST = (  # of the last rung: the first that has a block for nearly every processor
    ProductTile(128, 128, 16, 8, 8), ProductTile(128, 128, 8, 8, 8), ProductTile(64, 64, 16, 8, 4),
)  # fmt: skip
SLOTS = 3  # of the last rung: slabs that are in shared memory at a time


# --- one element for each lane ---------------------------------------------------------------------


def naive(p: Extents) -> Made:
    """A lane for each element of C goes along a row of A and a column of B.

    Neighbouring lanes have neighbouring *rows*: what they read of A at the same time, and write of C, lies a whole row
    apart, so that each of them has a line of memory brought of which it uses four bytes.
    """
    return _single("naive", p, rows_first=True)


def coalesced(p: Extents) -> Made:
    """Neighbouring lanes have neighbouring columns, so that they read neighbouring elements.

    Nothing else is different. A warp now reads 32 elements of a row of B side by side, in one line of memory, and one
    element of A, which all of its lanes get at once. What was 32 lines for each term is two.
    """
    return _single("coalesced", p, rows_first=False)


def _single(name: str, p: Extents, *, rows_first: bool) -> Made:
    side = p.machine.subgroup  # of a tile: as many as run together
    w = Writer(p, side, side, side * side)
    quick, slow = w.place % side, w.place // side
    row, column = (quick, slow) if rows_first else (slow, quick)
    top, left = w.block // w.across * side, w.block % w.across * side
    start, end = at_most(w.e, top + row, p.m - 1) * p.k, at_most(w.e, left + column, p.n - 1)
    sums = w.zeros(1, 1)
    with w.e.counted(p.k) as term:
        w.add(sums, [w.a.load(start + term)], [w.b.load(term * p.n + end)])
    w.store(top, left, Share.together(row, 1), Share.together(column, 1), sums)
    return w.finish(name)


# --- slabs in shared memory ------------------------------------------------------------------------


def shared_tiled(p: Extents) -> Made:
    """A block brings square tiles of A and B into the memory that its lanes share, and multiplies them there.

    Every element of A is needed for all columns of the tile, and every one of B for all rows: it is now read once for
    all of them, a 32nd of what was read before. The lanes meet twice for each pair of tiles: when all of it is
    there, and when all have used it.
    """
    side = p.machine.subgroup
    return _plain("shared_tiled", p, ProductTile(side, side, side, 1, 1))


def block_tiled_1d(p: Extents) -> Made:
    """A lane computes eight elements of a column of C.

    So far each multiplication needs two numbers from shared memory, which gives a warp 32 of them at a time: the
    multipliers wait. An element of B now stays in a register for eight multiplications, and nine loads serve
    eight of them instead of sixteen. Slabs are larger and thinner: 64 × 8 and 8 × 64.
    """
    return _plain("block_tiled_1d", p, p.fitted(STRIP))


def block_tiled_2d(p: Extents) -> Made:
    """A lane computes a square of 8 × 8 elements of C: sixteen loads serve 64 multiplications.

    Each term is an outer product in registers: eight elements of a column of A with eight of a row of B. The square
    grows by its area and what is loaded for it by its sides, so larger squares are better as long as the sums fit into
    registers. A block has 128 × 128 elements, and reads 128 times less of A and B than if each lane did so alone.
    """
    return _plain("block_tiled_2d", p, p.fitted(SQUARE))


def vectorized(p: Extents) -> Made:
    """Four numbers at a time: from the device's memory, to and from shared memory, and to C.

    An instruction that moves sixteen bytes takes the place of four. A's slab is turned on its way into shared memory,
    since only what lies side by side can be loaded together: the eight elements of a column now do. Rows whose
    length is no multiple of four begin anywhere, and are read one by one.
    """
    tile = p.fitted(SQUARE)
    w, top, left = _started(p, tile, vectors=True)
    slabs = Slab(w, tile, top, of_a=True, by_terms=True), Slab(w, tile, left, of_a=False, by_terms=True)
    rows, columns = _squares(w, tile, together=True)
    sums = _slab_by_slab(w, tile, slabs, rows, columns)
    w.store(top * tile.rows, left * tile.columns, rows, columns, sums)
    return w.finish("vectorized")


def conflict_free(p: Extents) -> Made:
    """What lanes load or store at the same time lies in different banks of shared memory.

    Two things were in each other's way. Lanes that have eight neighbouring columns load vectors that are 32 bytes
    apart, so that two of eight lanes ask the same banks: now a lane's columns, and its rows, are vectors that are
    far apart, and those of neighbouring lanes lie side by side. And lanes that turn A's slab store terms of a row
    128 elements apart, all of them in one bank: four elements are left free behind each term.
    """
    return spread("conflict_free", p, p.fitted(SQUARE))


def spread(name: str, p: Extents, tile: ProductTile) -> Made:
    """The kernel of the rung before this line, in any tile."""
    w, top, left = _started(p, tile, vectors=True)
    slabs = _turned_slabs(w, tile, top, left)
    rows, columns = _squares(w, tile, together=False)
    sums = _slab_by_slab(w, tile, slabs, rows, columns)
    w.store(top * tile.rows, left * tile.columns, rows, columns, sums)
    return w.finish(name)


# --- sizes that were measured ----------------------------------------------------------------------

MOST = 512  # lanes of a block, so that each can have 128 registers
CHOICES = (32, 64, 128), (32, 64, 128), (8, 16), (4, 8), (4, 8)  # rows, columns, terms; rows and columns of a lane


def tiles(p: Extents) -> Iterator[ProductTile]:
    """All tiles that a kernel can be written for: the lanes fill warps, and each brings as much as the others."""
    for sizes in product(*CHOICES):
        tile = p.fitted(ProductTile(*sizes))
        fewest = min(tile.rows, tile.columns) * tile.depth
        if p.machine.subgroup <= tile.lanes <= min(MOST, fewest):
            yield tile


def expected(p: Extents, tile: ProductTile) -> float:
    """How long a tile takes, in a unit of its own, to say which are worth being measured first.

    Loads for each multiplication, times the turns in which the processors take up the blocks.
    """
    blocks = -(-p.m // tile.rows) * -(-p.n // tile.columns)
    loads = 1 / tile.lane_rows + 1 / tile.lane_columns + 4 / tile.rows + 4 / tile.columns
    return (1 + loads) * tile.rows * tile.columns * max(1.0, blocks / p.machine.processors)


def autotuned(p: Extents, tile: ProductTile | None = None) -> Made:
    """The sizes of tiles are measured and not guessed: BM and BN of 32, 64 or 128, BK of 8 or 16, TM and TN of 4 or 8.

    Large tiles read less; small ones are enough of them to keep all processors at work, and leave registers for more
    blocks at a time, which hide each other's waiting. Which is best depends on the machine and on the extents. `tune`
    measures the tiles that promise most on the machine itself, and keeps the best for these extents.
    """
    return spread("autotuned", p, tile or min(tiles(p), key=lambda tile: expected(p, tile)))


# --- warps -----------------------------------------------------------------------------------------


def warp_tiled(p: Extents) -> Made:
    """The lanes of a warp stand in a rectangle, four down and eight across, and have a tile of their own.

    A warp that reaches from one side of the block to the other needs few rows, but all columns. As a rectangle it needs
    about as many of both, and fewest of all: four vectors of rows and eight of columns instead of two and sixteen. Odd
    and even lanes stand below each other, so that any two neighbours want the same columns, and any two that are two
    apart the same rows. Slabs are twice as deep: the lanes meet half as often.
    """
    tile = p.fitted(WARPED)
    w, top, left = _started(p, tile, vectors=True)
    slabs = _turned_slabs(w, tile, top, left)
    rows, columns = _rectangles(w, tile)
    sums = _slab_by_slab(w, tile, slabs, rows, columns)
    w.store(top * tile.rows, left * tile.columns, rows, columns, sums)
    return w.finish("warp_tiled")


def pipelined(p: Extents, tile: ProductTile | None = None) -> Made:
    """Nobody waits: the next slab is on its way while this one is multiplied, and so are the next term's numbers.

    There is room for three slabs of each factor. While one is multiplied the next is there already, and a lane has its
    part of the one after that on the way into registers, which it stores in the end where the last slab was: one
    meeting for each slab is enough. Within a slab, what the next term needs is loaded from shared memory before this
    term is multiplied, and so is the first term of the next slab. Blocks that follow
    each other share what they read; products that would not fill the machine have smaller tiles.
    """
    for fits in (tile,) if tile else _widest(p):
        with suppress(OutOfRegisters):  # where rows are no multiple of vectors it takes more to say where elements are
            return _pipelined(p, fits)
    raise OutOfRegisters("no tile of the last rung fits registers", hint="take another rung")


def _widest(p: Extents) -> list[ProductTile]:
    """Tiles whose slabs fit shared memory, from the one on that has blocks for nearly all processors."""
    found = [p.fitted(tile) for tile in WIDEST]
    found = [t for t in found if SLOTS * t.depth * (t.rows + VECTOR + t.columns) * F32.size <= p.machine.shared_memory]
    few = p.machine.processors * 7 // 8
    return [t for t in found if -(-p.m // t.rows) * -(-p.n // t.columns) >= few] or found[-1:]


def _pipelined(p: Extents, tile: ProductTile) -> Made:
    w = Writer(p, tile.rows, tile.columns, tile.lanes, vectors=True)
    top, left = corner(w.block, w.down, w.across)
    slabs = _turned_slabs(w, tile, top, left, slots=SLOTS)
    shares = _rectangles(w, tile)
    rounds, last = -(-p.k // tile.depth), tile.depth - 1
    sums = w.zeros(tile.lane_rows, tile.lane_columns)
    # The numbers of a term, and those of the next one: they take turns.
    terms = [[w.zeros(1, len(share.beyond))[0] for share in shares] for _ in range(2)]

    def starts(slot: Scalar | int) -> list[Scalar]:
        return [slab.at(share, slot) for slab, share in zip(slabs, shares, strict=True)]

    def load(term: int, places: list[Scalar]) -> None:
        for slab, share, at, numbers in zip(slabs, shares, places, terms[term % 2], strict=True):
            slab.load_into(numbers, at, share, term)

    for slot in range(SLOTS - 1):
        for slab in slabs:
            slab.put(slab.fetch(w.e.number(min(slot, rounds - 1))), slot)
    w.e.barrier()
    load(0, starts(0))
    with w.e.counted(rounds) as q:
        following = at_most(w.e, q + (SLOTS - 1), rounds - 1)
        ahead = [slab.fetch(following) for slab in slabs]
        here = starts(q % SLOTS)
        for term in range(last):
            load(term + 1, here)
            w.add(sums, *terms[term % 2])
        w.e.barrier()
        load(0, starts((q + 1) % SLOTS))
        for slab, values in zip(slabs, ahead, strict=True):
            slab.put(values, (q + (SLOTS - 1)) % SLOTS)
        w.add(sums, *terms[last % 2])
    w.store(top * tile.rows, left * tile.columns, *shares, sums)
    return w.finish("pipelined")


# --- what the kernels with slabs are made of -------------------------------------------------------


def _started(p: Extents, tile: ProductTile, *, vectors: bool = False) -> tuple[Writer, Scalar, Scalar]:
    """A program under construction, and which tile its block has: row by row."""
    w = Writer(p, tile.rows, tile.columns, tile.lanes, vectors=vectors)
    return w, w.block // w.across, w.block % w.across


def _plain(name: str, p: Extents, tile: ProductTile) -> Made:
    """Slabs that lie as in the device's memory, and lanes with neighbouring rows and columns."""
    w, top, left = _started(p, tile)
    slabs = Slab(w, tile, top, of_a=True, by_terms=False), Slab(w, tile, left, of_a=False, by_terms=True)
    rows, columns = _squares(w, tile, together=True)
    sums = _slab_by_slab(w, tile, slabs, rows, columns)
    w.store(top * tile.rows, left * tile.columns, rows, columns, sums)
    return w.finish(name)


def _turned_slabs(w: Writer, tile: ProductTile, top: Scalar, left: Scalar, slots: int = 1) -> tuple[Slab, Slab]:
    """Slabs of both factors whose terms lie one behind the other, those of A with some room between them."""
    a = Slab(w, tile, top, of_a=True, by_terms=True, apart=VECTOR, slots=slots)
    return a, Slab(w, tile, left, of_a=False, by_terms=True, slots=slots)


def _squares(w: Writer, tile: ProductTile, *, together: bool) -> tuple[Share, Share]:
    """Lanes row by row over the tile of their block."""
    down, across = tile.rows // tile.lane_rows, tile.columns // tile.lane_columns
    row, column = w.place // across, w.place % across
    if together:
        return Share.together(row, tile.lane_rows), Share.together(column, tile.lane_columns)
    return Share.apart(row, tile.lane_rows, down), Share.apart(column, tile.lane_columns, across)


def _rectangles(w: Writer, tile: ProductTile) -> tuple[Share, Share]:
    """Lanes in rectangles of a warp each, which are the tiles of warps; these stand row by row in that of the block."""
    down, across = tile.rows // tile.lane_rows, tile.columns // tile.lane_columns
    high, wide = (4, 8) if tile.lane_rows >= tile.lane_columns else (8, 4)
    if w.p.machine.subgroup < WARP:
        high = wide = 2
    warp, lane = w.place // (high * wide), w.place % (high * wide)
    row, column = lane // (2 * wide) * 2 + lane % 2, lane // 2 % wide
    rows, columns = Share.apart(row, tile.lane_rows, high), Share.apart(column, tile.lane_columns, wide)
    top = warp // (across // wide) * (high * tile.lane_rows)
    left = warp % (across // wide) * (wide * tile.lane_columns)
    assert down % high == across % wide == 0
    return Share(top + rows.first, rows.beyond), Share(left + columns.first, columns.beyond)


def _slab_by_slab(w: Writer, tile: ProductTile, slabs: tuple[Slab, Slab], rows: Share, columns: Share) -> Sums:
    """The sums of a lane: bring a slab of both factors, meet, multiply, meet."""
    a, b = slabs
    sums = w.zeros(tile.lane_rows, tile.lane_columns)
    with w.e.counted(-(-w.p.k // tile.depth)) as q:
        for slab in slabs:
            slab.put(slab.fetch(q))
        w.e.barrier()
        at, other = a.at(rows), b.at(columns)
        for term in range(tile.depth):
            w.add(sums, a.load(at, rows, term), b.load(other, columns, term))
        w.e.barrier()
    return sums


# --- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder: its name, its idea in a line, and what writes it."""

    name: str
    idea: str
    write: Callable[[Extents], Made]

    @staticmethod
    def of(write: Callable[[Extents], Made]) -> Rung:
        return Rung(write.__name__, (write.__doc__ or "").partition("\n")[0], write)


GEMM = {
    rung.name: rung
    for rung in map(
        Rung.of,
        (
            naive, coalesced, shared_tiled, block_tiled_1d, block_tiled_2d, vectorized, conflict_free, autotuned,
            warp_tiled, pipelined,
        ),
    )
}  # fmt: skip
