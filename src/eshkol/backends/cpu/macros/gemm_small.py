"""Products of many small matrices: their sizes are constants of the code, and everything is in registers.

Comes in: a `Product` of floats with few columns and few terms, of a large batch or of many rows. Goes out: a `Macro`
of one phase, whose tasks take some pairs of the batch each, or some rows of a long pair. A factor B is loaded as
vectors, one for each term and as wide as a row of C; a row of C is then the sum of those, each times an element of A:

    C[r, :] = Σ over terms t: A[r, t] · B[t, :]

Where B has one column, C is computed as its transpose, whose rows are the columns of A. What lies the other way round
is turned in registers. Tiles of the general product would be empty for the most part.
"""

from __future__ import annotations

from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.gemm_pack import transposed
from eshkol.backends.cpu.macros.gemm_plan import OPERAND, Epilogue, Laid, Product
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, macro_of
from eshkol.backends.lanes.layout import BEYOND
from eshkol.support.extents import Extent

MOST = 8  # columns and terms of a small matrix, and rows that code is written out for
LEAST_ROWS = 256  # of all matrices together, that code of their size is worth being compiled for
TASK_WORK = 1 << 15  # multiplications of a task, about
WORDS = 16  # of a call


def small_product(p: Product) -> Macro | None:
    """The product if it is one of many small matrices, or of a long one by a small one; None if not."""
    if not (p.style.sums.is_float and p.a_from == p.b_from == OPERAND):
        return None
    if any(type(size) is Extent for size in (p.m, p.n, p.k)) or not 0 < p.k <= MOST or not 0 < p.n <= MOST:
        return None
    if p.batch * p.m < LEAST_ROWS:
        return None
    if p.n > 1:
        return _Call(p, p.m, p.n, p.a, p.b, turned=False).macro()
    if p.batch > 1 and p.m <= MOST and (p.c.line == 1 or p.m == 1):
        return _Call(p, 1, p.m, p.b, p.a, turned=True).macro()
    return None


class _Call:
    """A product of left and right, which are A and B, or turned B and A: so many rows and columns of C, or of Cᵀ."""

    def __init__(self, p: Product, rows: int, columns: int, left: Laid, right: Laid, *, turned: bool) -> None:
        self.p, self.rows, self.columns, self.turned = p, rows, columns, turned
        self.left, self.right, self.compute = left, right, p.style.sums
        # Strides of an element of the left, row by row and term by term; whether rows of the right are neighbours.
        down, across = (1, left.line) if left.turned else (left.line, 1)
        self.down, self.across = (across, down) if turned else (down, across)
        self.in_rows = right.turned is turned

    def macro(self) -> Macro | None:
        """The code; None where what follows is computed on single values, which wants many at once."""
        p, written_out = self.p, self.rows <= MOST
        work = self.columns * p.k
        rows = self.rows if written_out else max(1, min(self.rows, TASK_WORK // work))
        pairs = max(1, TASK_WORK // (work * rows))
        parts, groups = -(-self.rows // rows), -(-p.batch // pairs)
        strides = [step for laid in (self.left, self.right, p.c) for step in (laid.outer, laid.inner)]
        words = (p.batch, max(p.inner, 1), self.rows, rows, pairs, parts, self.down, self.across, self.right.line,
                 p.c.line, *strides)  # fmt: skip
        assert len(words) == WORDS
        k = self._kernel(written_out)
        if k is None:
            return None
        return macro_of([k], [Phase(k.function_name, min(parts * groups, BEYOND))], (*words, *p.epilogue_words))

    def _kernel(self, written_out: bool) -> Kernel | None:
        p = self.p
        shape = f"{self.rows if written_out else 'rows'}x{self.columns}x{p.k}"
        name = f"{p.name}_small_{shape}{'_turned' * self.turned}{'' if self.in_rows else '_columns'}"
        self.k = k = Kernel(name, p.target, p.operands)
        batch, inner, all_rows, rows, pairs, parts, *rest = (k.word(number) for number in range(WORDS))
        self.row_step, self.term_step, self.line, c_line, *strides = rest
        epilogue = p.epilogue(k, WORDS)
        if epilogue.activation is not None:
            return None
        left, right = (k.operand(2 if second else 1, p.ty) for second in (self.turned, not self.turned))
        with k.tasks() as task:
            first_pair, first_row = task // parts * pairs, task % parts * rows
            last_row = k.minimum(first_row + rows, all_rows)
            # The place along the batch's inner axis is counted: to divide would take as long as a small product.
            outer_at, inner_at = k.variable(first_pair // inner), k.variable(first_pair % inner)
            with k.loop(first_pair, k.minimum(first_pair + pairs, batch), plain=True):
                o, i = outer_at.value, inner_at.value
                starts = [o * strides[at] + i * strides[at + 1] for at in (0, 2, 4)]
                a, terms, c = left.at(starts[0]), self._terms(right.at(starts[1])), starts[2]
                if written_out:
                    for row in range(self.rows):
                        self._row(epilogue, a.at(self.row_step * row), terms, c + c_line * row)
                else:
                    with k.loop(first_row, last_row, plain=True) as at:
                        self._row(epilogue, a.at(self.row_step * at), terms, c + c_line * at)
                following = i + 1
                ends = following >= inner
                inner_at.value = k.select(ends, k.like(i, 0), following)
                outer_at.value = k.select(ends, o + 1, o)
        return k

    def _terms(self, right: Array) -> list[Value]:
        """For each term a vector as wide as a row of C."""
        k, terms, columns = self.k, self.p.k, self.columns
        if self.in_rows:
            return [right.at(self.line * term).vector(0, columns).to(self.compute) for term in range(terms)]
        lines = [right.at(self.line * column).vector(0, terms).to(self.compute) for column in range(columns)]
        if columns == 1:
            return [k.lane(lines[0], term) if terms > 1 else lines[0] for term in range(terms)]
        if terms == 1:
            return [k.joined(lines)]
        edge = 1 << (max(terms, columns) - 1).bit_length()  # of a square that is turned; what is more repeats
        square = [k.shuffle(line, line, [min(at, terms - 1) for at in range(edge)]) for line in lines]
        square += [square[-1]] * (edge - columns)
        return [k.shuffle(line, line, range(columns)) for line in transposed(k, square)[:terms]]

    def _row(self, epilogue: Epilogue, line: Array, terms: list[Value], place: Value) -> None:
        """A row of C."""
        k = self.k
        total: Value | None = None
        for number, term in enumerate(terms):
            factor = k.splat(line[self.term_step * number].to(self.compute), self.columns)
            total = factor * term if total is None else k.muladd(factor, term, total)
        assert total is not None
        column = k.like(place, 0)
        epilogue.store(epilogue.before(total, place, column), place)
