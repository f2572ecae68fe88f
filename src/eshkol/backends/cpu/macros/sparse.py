"""A sparse matrix in CSR times a dense one: SparseGEMM, a row of the result for each task.

A row is computed in vectors of columns, each the sum over the row's elements kept in registers. A malformed matrix is a
fault and never a wild read: elements are looked for only below nnz, and rows with a column out of range are left out.
"""

from __future__ import annotations

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.kit import Kernel, compute_type, macro_of
from eshkol.llvm.targets import Target

WORK = 1 << 13  # products that are not worth splitting
BAD_POINTERS, BAD_COLUMN = 0, 1


def sparse_gemm(i: Instruction, target: Target) -> Macro:
    k = Kernel(f"sparse_gemm_{i.ty}".lower(), target, operands=5)
    c, values, b = k.operand(0, i.ty), k.operand(1, i.ty), k.operand(4, i.ty)
    columns, pointers = k.operand(2, Type.U32), k.operand(3, Type.U32)
    n, width, stored = (k.word(number) for number in range(3))
    with k.tasks() as row:
        start, stop = (pointers[row + end].to(Type.I64) for end in (0, 1))
        expected = k.select(row.compare("eq", 0), k.const(Type.I64, 0), start)
        for wrong in (start.compare("ne", expected), start > stop, stop > stored):
            with k.when(wrong):
                k.fault(BAD_POINTERS)
        stop = k.minimum(stop, stored)
        greatest = k.variable(k.const(Type.I64, -1))
        with k.loop(start, stop) as q:
            greatest.value = k.maximum(greatest.value, columns[q].to(Type.I64))
        with k.when(greatest.value >= width):
            k.fault(BAD_COLUMN)
        with k.when(greatest.value < width):
            for p, lanes in k.strips(i.ty, n):
                total = k.variable(k.const(compute_type(i.ty), 0, lanes))
                with k.loop(start, stop, plain=True) as q:
                    place = columns[q].to(Type.I64) * n + p
                    total.value = k.muladd(b.vector(place, lanes), values[q], total.value)
                c.put(row * n + p, total.value)
    rows = i.m if i.n else 0
    phase = Phase(k.function_name, rows, max(1, WORK * i.m // max(1, i.nnz * i.n)))
    faults = (
        f"a_ptr must rise from 0 to at most nnz = {i.nnz}",
        f"a column of a_indices is not below k = {i.k}",
    )
    return macro_of([k], [phase], (i.n, i.k, i.nnz), faults=faults)


LOWERINGS: dict[str, Lowering] = {"SparseGEMM": sparse_gemm}
