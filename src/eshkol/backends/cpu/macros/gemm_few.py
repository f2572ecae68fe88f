"""Products of a matrix and a few vectors, as dot products: the matrix is read once, in long stretches.

Comes in: a `Product` of floats in which A has few rows and B lies transposed (a layer, and a few samples), or B has few
columns and A lies as it is. Goes out: a `Macro`. Some rows of what lies in memory are multiplied with all the vectors
at once, so that each of their elements is loaded once. Vectors whose elements are not neighbours are copied first,
[pair][vector][k]. As everywhere, work is cut by the shape: in which order sums are taken does not depend on threads.
"""

from __future__ import annotations

from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.gemm_plan import OPERAND, Laid, Product
from eshkol.backends.cpu.macros.gemv import TASK_ELEMENTS
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, macro_of
from eshkol.backends.lanes.layout import BEYOND
from eshkol.support.extents import Extent, about

MOST = 8  # vectors, where there are 32 registers; elsewhere half as many
LEAST_TERMS = 16  # in registers: for shorter sums, to add up the lanes of vectors takes too long
LEAST_ROWS = 16  # of the matrix
WORDS = 14  # of a call


def few_product(p: Product) -> Macro | None:
    """The product if it is a matrix times a few vectors; None if not."""
    if not (p.style.sums.is_float and p.a_from == p.b_from == OPERAND):
        return None
    if any(type(size) is Extent for size in (p.m, p.n)):  # their number is a constant of the code
        return None
    wide = p.target.is_arm or p.target.vector_bits > 256
    most, lanes = MOST if wide else MOST // 2, max(p.target.vector_bits, 128) // p.style.sums.bits
    if p.k < LEAST_TERMS * lanes or max(p.m, p.n) < LEAST_ROWS or p.target.is_wasm:
        return None
    registers = 16 if wide else 8  # for sums
    if 1 < p.m <= most and p.b.turned:
        return _Few(p, p.m, p.n, p.b, p.a, registers, lanes, column=False).macro()
    if 1 < p.n <= most and not p.a.turned:
        return _Few(p, p.n, p.m, p.a, p.b, registers, lanes, column=True).macro()
    return None


class _Few:
    """`count` vectors with each of `size` rows of a matrix; C has a column for each vector, or a row."""

    def __init__(
        self, p: Product, count: int, size: int, matrix: Laid, vectors: Laid, registers: int, lanes: int, *,
        column: bool,
    ) -> None:  # fmt: skip
        self.p, self.count, self.size, self.column, self.lanes = p, count, size, column, lanes
        self.matrix, self.vectors, self.compute = matrix, vectors, p.style.sums
        self.copied = vectors.turned is not column
        self.rows = max(1, min(4, registers // count))  # at once
        self.sums = max(1, registers // (count * self.rows))  # vectors of each dot product
        kind = f"{'column' if column else 'row'}s{'_copied' * self.copied}"
        self.name = f"{p.name}_few_{count}_{kind}"

    def macro(self) -> Macro:
        p, count = self.p, self.count
        per_task = max(self.rows, TASK_ELEMENTS // about(p.k) // self.rows * self.rows)
        groups = -(-self.size // per_task)
        strides = [step for laid in (self.matrix, self.vectors, p.c) for step in (laid.outer, laid.inner)]
        words = (self.size, p.k, max(p.inner, 1), per_task, groups, self.matrix.line, self.vectors.line, *strides,
                 p.c.line)  # fmt: skip
        assert len(words) == WORDS
        words = (*words, *p.epilogue_words)
        products = self._products()
        phase = Phase(products.function_name, min(p.batch * groups, BEYOND))
        if not self.copied:
            return macro_of([products], [phase], words)
        copies = self._copies()
        scratch = p.batch * count * p.k * self.compute.size_bytes
        return macro_of([copies, products], [Phase(copies.function_name, p.batch), phase], words, scratch)

    def _kernel(self, name: str) -> Kernel:
        p = self.p
        self.k = k = Kernel(name, p.target, p.operands)
        self.n, self.depth, self.inner, self.per_task, self.groups, self.line, self.vector_line, *rest = (
            k.word(number) for number in range(WORDS)
        )
        *self.strides, self.c_line = rest
        return k

    def _begins(self, which: int, pair: Value) -> Value:
        """Where the matrix (0), the vectors (1) or the result (2) of a pair of the batch begin."""
        return pair // self.inner * self.strides[2 * which] + pair % self.inner * self.strides[2 * which + 1]

    def _operand(self, *, matrix: bool) -> Array:
        return self.k.operand(1 if matrix is self.column else 2, self.p.ty)

    def _copies(self) -> Kernel:
        """A task: the vectors of a pair, each with its elements side by side."""
        k = self._kernel(f"{self.name}_copies")
        with k.tasks() as pair:
            source = self._operand(matrix=False).at(self._begins(1, pair))
            into = k.scratch(self.compute).at(pair * self.depth * self.count)
            with k.loop(0, self.depth, plain=True) as at:
                for number in range(self.count):
                    into[self.depth * number + at] = source[at * self.vector_line + number].to(self.compute)
        return k

    def _products(self) -> Kernel:
        """A task: some rows of the matrix with all vectors."""
        k = self._kernel(self.name)
        epilogue = self.p.epilogue(k, WORDS)
        with k.tasks() as task:
            pair, first = task // self.groups, task % self.groups * self.per_task
            last = k.minimum(first + self.per_task, self.n)
            matrix, corner = self._operand(matrix=True).at(self._begins(0, pair)), self._begins(2, pair)
            if self.copied:
                vectors = k.scratch(self.compute).at(pair * self.depth * self.count)
                lines = [vectors.at(self.depth * number) for number in range(self.count)]
            else:
                vectors = self._operand(matrix=False).at(self._begins(1, pair))
                lines = [vectors.at(self.vector_line * number) for number in range(self.count)]
            whole = last - (last - first) % self.rows
            for start, stop, step in ((first, whole, self.rows), (whole, last, 1)):
                with k.loop(start, stop, step, plain=True) as row:
                    found = self._dots([matrix.at((row + r) * self.line) for r in range(step)], lines)
                    for r, totals in enumerate(found):
                        for number, total in enumerate(totals):
                            at = k.like(row, number)
                            down, across = (row + r, at) if self.column else (at, row + r)
                            place = corner + down * self.c_line + across
                            value = epilogue.before(total, place, across)
                            epilogue.store(epilogue.activation(value) if epilogue.activation else value, place)
        return k

    def _dots(self, rows: list[Array], lines: list[Array]) -> list[list[Value]]:
        """The dot products of some rows with all vectors."""
        k, lanes, compute = self.k, self.lanes, self.compute
        zero, width = k.const(compute, 0, lanes), self.sums * lanes
        sums = [[[k.variable(zero) for _ in range(self.sums)] for _ in lines] for _ in rows]
        whole = self.depth - self.depth % width
        with k.loop(0, whole, width, plain=True) as at:
            for v in range(self.sums):
                factors = [line.vector(at + v * lanes, lanes).to(compute) for line in lines]
                for row, own in zip(rows, sums, strict=True):
                    element = row.vector(at + v * lanes, lanes).to(compute)
                    for factor, totals in zip(factors, own, strict=True):
                        totals[v].value = k.muladd(element, factor, totals[v].value)
        found = []
        for own in sums:
            singles = []
            for totals in own:
                together = totals[0].value
                for other in totals[1:]:
                    together = together + other.value
                singles.append(k.variable(k.reduce_add(together)))
            found.append(singles)
        with k.loop(whole, self.depth, plain=True) as at:
            factors = [line[at].to(compute) for line in lines]
            for row, singles in zip(rows, found, strict=True):
                element = row[at].to(compute)
                for factor, single in zip(factors, singles, strict=True):
                    single.value = k.muladd(element, factor, single.value)
        return [[single.value for single in singles] for singles in found]
