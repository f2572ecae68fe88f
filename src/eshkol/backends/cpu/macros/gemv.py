"""Products in which one factor is a vector: every element of the matrix is used once, so memory sets the pace.

Comes in: a `Product` of floats with n = 1 or m = 1. Goes out: a `Macro` that reads the matrix once, in long stretches.
Matrix times vector is a dot product per row, four rows at a time. Vector times matrix adds up rows of the matrix,
four at a time, in parts of k that are summed at the end; so it is cut the same way for any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, macro_of
from eshkol.backends.llvm.layout import BEYOND
from eshkol.backends.llvm.macro import Macro, Phase

if TYPE_CHECKING:
    from eshkol.backends.cpu.macros.gemm_tiles import Epilogue, Product

TASK_ELEMENTS = 1 << 16  # of the matrix that a task reads, about
STRETCH = 4096  # columns whose sums a task keeps in the first cache
ROWS_AT_ONCE = 4  # of the matrix
DOTS = 8  # vectors of sums: enough to hide how long an addition takes


def _finish(epilogue: Epilogue, value: Value, place: Value, column: Value) -> None:
    value = epilogue.before(value, place, column)
    epilogue.store(value if epilogue.activation is None else epilogue.activation(value), place)


# --- matrix times vector --------------------------------------------------------------------------


def matrix_times_vector(p: Product) -> Macro:
    """C (m) = A (m × k) times B (k)."""
    k = Kernel(f"{p.name}_times_vector", p.target, p.operands)
    m, depth, rows, groups = (k.word(n) for n in range(4))
    epilogue, a, x = p.epilogue(k, 4), k.operand(1, p.ty), k.operand(2, p.ty)
    with k.tasks() as task:
        batch, first = task // groups, task % groups * rows
        last = k.minimum(first + rows, m)
        matrix, vector = a.at(batch * m * depth), x.at(batch * depth)
        whole = last - (last - first) % ROWS_AT_ONCE
        for start, stop, step in ((first, whole, ROWS_AT_ONCE), (whole, last, 1)):
            with k.loop(start, stop, step, plain=True) as row:
                for number, total in enumerate(_dots(p, k, matrix.at(row * depth), vector, depth, step)):
                    _finish(epilogue, total, batch * m + row + number, k.like(m, 0))
    per_task = max(1, TASK_ELEMENTS // max(p.k, 1))
    words = (p.m, p.k, per_task, -(-p.m // per_task))
    return macro_of([k], [Phase(k.function_name, min(p.batch * words[3], BEYOND))], (*words, *p.epilogue_words))


def _dots(p: Product, k: Kernel, matrix: Array, vector: Array, depth: Value, rows: int) -> list[Value]:
    """The dot products of some rows of a matrix with a vector."""
    compute, vectors = p.style.sums, DOTS // rows
    lanes = max(p.target.vector_bits, 128) // compute.bits
    lines = [matrix.at(depth * r) for r in range(rows)]
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


# --- vector times matrix --------------------------------------------------------------------------


def vector_times_matrix(p: Product) -> Macro:
    """C (n) = A (k) times B (k × n)."""
    width = max(1, min(STRETCH, p.n))
    stretches = -(-p.n // width)
    part = max(ROWS_AT_ONCE, TASK_ELEMENTS // width // ROWS_AT_ONCE * ROWS_AT_ONCE)
    parts = max(1, -(-p.k // part))
    words = (p.n, p.k, width, stretches, part, parts)
    add, finish = _parts(p), _sums(p)
    phases = (
        Phase(add.function_name, min(p.batch * parts * stretches, BEYOND)),
        Phase(finish.function_name, min(p.batch * stretches, BEYOND), grain=4),
    )
    scratch = p.batch * parts * p.n * p.style.sums.size_bytes
    return macro_of([add, finish], phases, (*words, *p.epilogue_words), scratch)


def _parts(p: Product) -> Kernel:
    """A task: the sums of one part of k, for one stretch of columns, in scratch memory."""
    k, compute = Kernel(f"{p.name}_vector_times", p.target, p.operands), p.style.sums
    n, depth, width, stretches, part, parts = (k.word(number) for number in range(6))
    a, b = k.operand(1, p.ty), k.operand(2, p.ty)
    with k.tasks() as task:
        rest, left = task // stretches, task % stretches * width
        batch, first = rest // parts, rest % parts * part
        last, count = k.minimum(first + part, depth), k.minimum(width, n - left)
        sums = k.scratch(compute).at(rest * n + left)
        vector, matrix = a.at(batch * depth), b.at(batch * depth * n + left)
        for at, lanes in k.strips(compute, count):
            sums.put(at, k.const(compute, 0, lanes))
        whole = last - (last - first) % ROWS_AT_ONCE
        for start, stop, step in ((first, whole, ROWS_AT_ONCE), (whole, last, 1)):
            with k.loop(start, stop, step, plain=True) as row:
                factors = [vector[row + r].to(compute) for r in range(step)]
                lines = [matrix.at((row + r) * n) for r in range(step)]
                for at, lanes in k.strips(compute, count):
                    total = sums.vector(at, lanes)
                    for factor, line in zip(factors, lines, strict=True):
                        total = k.muladd(line.vector(at, lanes).to(compute), factor, total)
                    sums.put(at, total)
    return k


def _sums(p: Product) -> Kernel:
    """A task: the parts of one stretch of columns added up, and through the epilogue."""
    k, compute = Kernel(f"{p.name}_vector_sums", p.target, p.operands), p.style.sums
    n, _, width, stretches, _, parts = (k.word(number) for number in range(6))
    epilogue = p.epilogue(k, 6)
    with k.tasks() as task:
        batch, left = task // stretches, task % stretches * width
        count = k.minimum(width, n - left)
        sums = k.scratch(compute).at(batch * parts * n + left)
        with k.loop(1, parts, plain=True) as number:
            part = sums.at(number * n)
            for at, lanes in k.strips(compute, count):
                sums.put(at, sums.vector(at, lanes) + part.vector(at, lanes))
        with k.loop(0, count) as at:
            _finish(epilogue, sums[at], batch * n + left + at, left + at)
    return k
