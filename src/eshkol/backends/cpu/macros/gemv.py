"""Products in which one factor is a vector: every element of the matrix is used once, so memory sets the pace.

Comes in: a `Product` of floats with n = 1 or m = 1. Goes out: a `Macro` that reads the matrix once, in long stretches.
Where the rows of what lies in memory are multiplied with the vector, it is a dot product per row, four rows at a time;
few rows that are long are cut into parts. Where rows are added up, this is done eight at a time, in parts of k, too.
Parts are summed at the end, and cut the same way for any number of threads. Large matrices on ARM are read in fewer
streams.
"""

from __future__ import annotations

from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.gemm_plan import OPERAND, Epilogue, Laid, Product
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, macro_of
from eshkol.backends.lanes.layout import BEYOND
from eshkol.support.extents import about

TASK_ELEMENTS = 1 << 16  # of the matrix that a task reads, about
STRETCH = 4096  # columns whose sums a task keeps in the first cache
ROWS_AT_ONCE = 4  # of the matrix, in dot products
ROWS_ADDED = 8  # of the matrix, where they are added up: sums are loaded and stored once for all
STREAMED = 1 << 20  # bytes of a matrix that comes from memory: ARM reads it faster in few streams
FEW_DOTS = 32  # rows, fewer than which are cut into parts where they are long
DOTS = 8  # vectors of sums: enough to hide how long an addition takes


def vector_product(p: Product) -> Macro | None:
    """The product if one factor is a vector whose elements are neighbours, as those of the result; None if not."""
    if not (p.style.sums.is_float and p.a_from == p.b_from == OPERAND) or min(p.m, p.n) != 1:
        return None
    column = p.n == 1  # A is the matrix; otherwise it is B, as if it were turned
    vector, matrix = (p.b, p.a) if column else (p.a, p.b)
    neighbours = p.k <= 1 or vector.line == 1 or vector.turned == column
    if not neighbours or (column and p.m > 1 and p.c.line != 1):
        return None
    call = _Call(p, column, matrix, vector)
    if matrix.turned == column:
        return call.sums()
    return call.long_dots() if p.batch * call.size < FEW_DOTS and p.k >= 2 * TASK_ELEMENTS else call.dots()


class _Call:
    """One product with a vector: the matrix has `size` rows (or columns) that each give an element of the result."""

    def __init__(self, p: Product, column: bool, matrix: Laid, vector: Laid) -> None:
        self.p, self.column, self.size = p, column, p.m if column else p.n
        self.compute, self.laid = p.style.sums, (matrix, vector, p.c)
        self.name = f"{p.name}_{'column' if column else 'row'}"
        strides = [stride for laid in self.laid for stride in (laid.outer, laid.inner)]
        self.words = (self.size, p.k, matrix.line, max(p.inner, 1), *strides)
        streamed = p.target.triple.startswith("aarch64") and about(self.size * p.k * p.ty.size_bytes) >= STREAMED
        self.rows_at_once, self.rows_added = (1, 2) if streamed else (ROWS_AT_ONCE, ROWS_ADDED)
        if streamed:
            self.name += "_streamed"

    def kernel(self, name: str) -> Kernel:
        k = Kernel(f"{self.name}_{name}", self.p.target, self.p.operands)
        self.n, self.depth, self.line, self.inner, *self.strides = (k.word(number) for number in range(len(self.words)))
        self.k, self.matrix, self.vector = (
            k,
            *(k.operand(1 if a is self.column else 2, self.p.ty) for a in (True, False)),
        )
        return k

    def begins(self, which: int, pair: Value) -> Value:
        """Where the matrix (0), the vector (1) or the result (2) of a pair of the batch begins."""
        return pair // self.inner * self.strides[2 * which] + pair % self.inner * self.strides[2 * which + 1]

    def finish(self, epilogue: Epilogue, value: Value, pair: Value, number: Value) -> None:
        """An element of the result through the epilogue."""
        place = self.begins(2, pair) + number
        value = epilogue.before(value, place, self.k.like(number, 0) if self.column else number)
        epilogue.store(value if epilogue.activation is None else epilogue.activation(value), place)

    # --- dot products -----------------------------------------------------------------------------

    def dots(self) -> Macro:
        """Each row of what lies in memory times the vector."""
        k, own = self.kernel("dots"), len(self.words)
        rows, groups, epilogue = k.word(own), k.word(own + 1), self.p.epilogue(k, own + 2)
        with k.tasks() as task:
            pair, first = task // groups, task % groups * rows
            last = k.minimum(first + rows, self.n)
            matrix, vector = self.matrix.at(self.begins(0, pair)), self.vector.at(self.begins(1, pair))
            whole = last - (last - first) % self.rows_at_once
            for start, stop, step in ((first, whole, self.rows_at_once), (whole, last, 1)):
                with k.loop(start, stop, step, plain=True) as row:
                    for number, total in enumerate(self._dots(matrix.at(row * self.line), vector, step, self.depth)):
                        self.finish(epilogue, total, pair, row + number)
        per_task = max(1, TASK_ELEMENTS // max(self.p.k, 1))
        groups_ = -(-self.size // per_task)
        words = (*self.words, per_task, groups_, *self.p.epilogue_words)
        return macro_of([k], [Phase(k.function_name, min(self.p.batch * groups_, BEYOND))], words)

    def long_dots(self) -> Macro:
        """The same of few rows: a task has a part of one, and the parts are summed at the end."""
        k, own = self.kernel("long_dots"), len(self.words)
        part, parts = k.word(own), k.word(own + 1)
        with k.tasks() as task:
            number, first = task // parts, task % parts * part
            pair, row = number // self.n, number % self.n
            matrix = self.matrix.at(self.begins(0, pair) + row * self.line + first)
            vector = self.vector.at(self.begins(1, pair) + first)
            (total,) = self._dots(matrix, vector, 1, k.minimum(part, self.depth - first))
            k.scratch(self.compute)[task] = total
        finish = self.kernel("long_dots_summed")
        parts = finish.word(own + 1)
        epilogue = self.p.epilogue(finish, own + 2)
        with finish.tasks() as number:
            sums = finish.scratch(self.compute).at(number * parts)
            total_ = finish.variable(sums[0])
            with finish.loop(1, parts, plain=True) as at:
                total_.value = total_.value + sums[at]
            self.finish(epilogue, total_.value, number // self.n, number % self.n)
        rows, parts_ = self.p.batch * self.size, -(-self.p.k // TASK_ELEMENTS)
        phases = (Phase(k.function_name, rows * parts_), Phase(finish.function_name, rows, grain=FEW_DOTS))
        words = (*self.words, TASK_ELEMENTS, parts_, *self.p.epilogue_words)
        return macro_of([k, finish], phases, words, rows * parts_ * self.compute.size_bytes)

    def _dots(self, matrix: Array, vector: Array, rows: int, depth: Value) -> list[Value]:
        """The dot products of some rows of a matrix with a vector, so many elements of each."""
        k, compute, vectors = self.k, self.compute, DOTS // rows
        lanes = max(self.p.target.vector_bits, 128) // compute.bits
        lines = [matrix.at(self.line * r) for r in range(rows)]
        sums = [[k.variable(k.const(compute, 0, lanes)) for _ in range(vectors)] for _ in range(rows)]
        whole = depth - depth % (vectors * lanes)
        with k.loop(0, whole, vectors * lanes, plain=True) as at:
            for v in range(vectors):
                factor = vector.vector(at + v * lanes, lanes).to(compute)
                for line, row in zip(lines, sums, strict=True):
                    row[v].value = k.muladd(line.vector(at + v * lanes, lanes).to(compute), factor, row[v].value)
        totals = []
        for row in sums:
            together = row[0].value
            for other in row[1:]:
                together = together + other.value
            totals.append(k.variable(k.reduce_add(together)))
        with k.loop(whole, depth, plain=True) as at:
            factor = vector[at].to(compute)
            for line, total in zip(lines, totals, strict=True):
                total.value = k.muladd(line[at].to(compute), factor, total.value)
        return [total.value for total in totals]

    # --- sums of rows -----------------------------------------------------------------------------

    def sums(self) -> Macro:
        """The rows of what lies in memory, each times an element of the vector, added up."""
        p, width = self.p, max(1, min(STRETCH, self.size))
        stretches = -(-self.size // width)
        part = max(ROWS_ADDED, TASK_ELEMENTS // width // ROWS_ADDED * ROWS_ADDED)
        parts = max(1, -(-p.k // part))
        add, finish = self._parts(), self._together()
        phases = (
            Phase(add.function_name, min(p.batch * parts * stretches, BEYOND)),
            Phase(finish.function_name, min(p.batch * stretches, BEYOND), grain=4),
        )
        scratch = p.batch * parts * self.size * self.compute.size_bytes
        words = (*self.words, width, stretches, part, parts, *p.epilogue_words)
        return macro_of([add, finish], phases, words, scratch)

    def _own(self) -> tuple[Value, Value, Value, Value]:
        """The words for sums of rows: width, stretches, part, parts."""
        first = len(self.words)
        return self.k.word(first), self.k.word(first + 1), self.k.word(first + 2), self.k.word(first + 3)

    def _parts(self) -> Kernel:
        """A task: the sums of one part of k, for one stretch of columns, in scratch memory."""
        k, compute = self.kernel("parts"), self.compute
        width, stretches, part, parts = self._own()
        with k.tasks() as task:
            rest, left = task // stretches, task % stretches * width
            pair, first = rest // parts, rest % parts * part
            last, count = k.minimum(first + part, self.depth), k.minimum(width, self.n - left)
            sums = k.scratch(compute).at(rest * self.n + left)
            vector, matrix = self.vector.at(self.begins(1, pair)), self.matrix.at(self.begins(0, pair) + left)
            for at, lanes in k.strips(compute, count):
                sums.put(at, k.const(compute, 0, lanes))
            whole = last - (last - first) % self.rows_added
            for start, stop, step in ((first, whole, self.rows_added), (whole, last, 1)):
                with k.loop(start, stop, step, plain=True) as row:
                    factors = [vector[row + r].to(compute) for r in range(step)]
                    lines = [matrix.at((row + r) * self.line) for r in range(step)]
                    for at, lanes in k.strips(compute, count):
                        total = sums.vector(at, lanes)
                        for factor, line in zip(factors, lines, strict=True):
                            total = k.muladd(line.vector(at, lanes).to(compute), factor, total)
                        sums.put(at, total)
        return k

    def _together(self) -> Kernel:
        """A task: the parts of one stretch of columns added up, and through the epilogue."""
        k, compute = self.kernel("together"), self.compute
        width, stretches, _, parts = self._own()
        epilogue = self.p.epilogue(k, len(self.words) + 4)
        with k.tasks() as task:
            pair, left = task // stretches, task % stretches * width
            count = k.minimum(width, self.n - left)
            sums = k.scratch(compute).at(pair * parts * self.n + left)
            with k.loop(1, parts, plain=True) as number:
                part = sums.at(number * self.n)
                for at, lanes in k.strips(compute, count):
                    sums.put(at, sums.vector(at, lanes) + part.vector(at, lanes))
            with k.loop(0, count) as at:
                self.finish(epilogue, sums[at], pair, left + at)
        return k
