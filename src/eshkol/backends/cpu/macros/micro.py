"""The inner loop that convolution and attention share: a tile of sums that stays in registers.

Comes in: a packed left panel, whose element (p, r) lies at p · step + r, and a packed right panel likewise. Goes out:
the tile's sums, sums[r][c] += left[p, r] · right[p, vector c], as vectors. `Tile.of` says which tile suits a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Array, Kernel, Operand, Value, Variable
from eshkol.llvm.targets import Target

Sums = list[list[Variable]]


def up(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple


def by_lanes(target: Target) -> bool:
    """Whether a column is loaded as vectors, of which lanes are taken, rather than each element into all lanes.

    ARM multiplies by a lane; engines of WebAssembly bring a number into a vector by way of other registers.
    """
    return target.is_arm or target.is_wasm


@dataclass(frozen=True)
class Tile:
    """So many rows by so many vectors of so many lanes, of F32 or F64."""

    ty: Type
    rows: int
    vectors: int
    lanes: int

    @staticmethod
    def of(ty: Type, target: Target) -> Tile:
        """As many sums as the registers hold beside what is multiplied: enough to hide the latency of an FMA."""
        lanes = max(target.vector_bits, 128) // ty.bits
        many = target.is_arm or target.vector_bits > 256  # 32 registers rather than 16
        return Tile(ty, 8 if many else 4 if target.is_wasm else 6, 2, lanes)

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    def sums(self, k: Kernel) -> Sums:
        """Sums to be had in the variables of a kernel, at zero."""
        zero = k.const(self.ty, 0, self.lanes)
        return [[k.variable(zero) for _ in range(self.vectors)] for _ in range(self.rows)]

    def cells(self, sums: Sums) -> list[tuple[int, int, Variable]]:
        """Every vector of sums with its row and first column."""
        return [(r, c * self.lanes, total) for r, row in enumerate(sums) for c, total in enumerate(row)]

    def clear(self, k: Kernel, sums: Sums) -> None:
        for _, _, total in self.cells(sums):
            total.value = k.const(self.ty, 0, self.lanes)

    def accumulate(
        self, k: Kernel, sums: Sums, steps: Operand, left: Array, left_step: int, right: Array, right_step: int
    ) -> None:
        """Add the product of `steps` columns of the left panel and rows of the right one."""
        with k.loop(0, steps, plain=True) as p:
            self.step(k, sums, left.at(p * left_step), right.at(p * right_step))

    def step(self, k: Kernel, sums: Sums, left: Array, right: Array, first: int = 0) -> None:
        """Add the product of one column and one row, in the tile's rows from `first` on."""
        vectors = [right.vector(c * self.lanes, self.lanes) for c in range(self.vectors)]
        for r, factor in enumerate(self._spread(k, left)):
            if r >= first:
                for c, vector in enumerate(vectors):
                    sums[r][c].value = k.muladd(factor, vector, sums[r][c].value)

    def _spread(self, k: Kernel, left: Array) -> list[Value]:
        """Each element of a left column in every lane."""
        if not by_lanes(k.target):
            return [k.splat(left[r], self.lanes) for r in range(self.rows)]
        loaded = [left.vector(r, self.lanes) for r in range(0, self.rows, self.lanes)]
        return [k.splat_lane(loaded[r // self.lanes], r % self.lanes, self.lanes) for r in range(self.rows)]


class Waypoints:
    """Places in a loop's body at which its variables must have their values: for engines of WebAssembly, else nothing.

    Cranelift computes what has no effect as late as it can, which is behind all loads of a body; then there are not
    registers enough for a body of several rounds. A way out of the loop that is never taken asks for the values.
    """

    def __init__(self, k: Kernel, places: int) -> None:
        """Before the loop, in whose body there are so many."""
        self.k, self.out = k, k.new_block("out") if k.target.is_wasm else None
        opaque = [f'call i64 asm "", "=r,0"(i64 {-1 - place})' for place in range(places)]
        self.never = [Value(k, Type.I64, k.op(text)) for text in opaque] if self.out else []

    def here(self, at: Value) -> None:
        """The next place; `at` changes from round to round, and is not negative."""
        if self.out:
            following = self.k.new_block("on")
            self.k.br_if(at.compare("eq", self.never.pop()), self.out, following)
            self.k.place(following)

    def end(self) -> None:
        """Behind the loop."""
        if self.out:
            self.k.br(self.out)
            self.k.place(self.out)
