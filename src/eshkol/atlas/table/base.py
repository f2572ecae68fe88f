"""Base instructions: data movement, arithmetic, logic, control, synchronization, square root, pools.

Every backend must have these; they have no expansion. The other transcendentals stand in `elementary.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eshkol.atlas import fragments
from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import Control, Effect, Field, Group, Instruction, Kind, Values
from eshkol.atlas.numerics import plain
from eshkol.atlas.operands import (
    AtomicOperation,
    BufferOffset,
    Condition,
    MemoryScope,
    PoolOffset,
    ReduceOperation,
    Shared,
    SpecialRegister,
    address_base,
)
from eshkol.atlas.table.rows import (
    BINARY,
    DST,
    LHS,
    PRED,
    RHS,
    SRC,
    TY,
    UNARY,
    choice,
    count,
    out,
    read,
    row,
    use,
    write,
)  # fmt: skip
from eshkol.atlas.types import ALL_TYPES, FLOATS, INDEX_TYPES, INTEGERS, Type
from eshkol.errors import IsaError


def _memory_is(shared: bool) -> Callable[[Instruction], None]:
    """LDS and STS reach shared memory only; LDG and STG everything else."""

    def check(i: Instruction) -> None:
        address = i.of_kind(Kind.READ, Kind.WRITE)[0]
        if isinstance(address_base(address), Shared) is not shared:
            word = "only shared memory" if shared else "everything but shared memory"
            other = {"LDG": "LDS", "STG": "STS", "LDS": "LDG", "STS": "STG"}.get(i.op.name)
            raise IsaError(
                f"{i.op.name} reaches {word}, not {address}",
                span=i.span,
                hint=f"use {other} for this address" if other else "bring it there first: LDG and STS, or CopyAsync",
            )

    return check


def _from_buffer_to_shared(i: Instruction) -> None:
    """What a copy that goes on by itself is between."""
    source, target = address_base(i.src), address_base(i.dst)
    if not isinstance(source, BufferOffset) or not isinstance(target, Shared):
        raise IsaError(
            f"{i.op.name} copies from a buffer to shared memory, not from {i.src} to {i.dst}",
            span=i.span,
            hint="load and store other places with LDG, LDS, STG and STS",
        )


def _same_width(i: Instruction) -> None:
    """BITCAST is between types of at most 64 bits: the wide ones have no other type of their width but their twin."""
    if i.src_ty.bits != i.dst_ty.bits or i.src_ty.is_wide:
        raise IsaError(
            f"BITCAST.{i.src_ty}.{i.dst_ty}: the types must have the same width, of at most 64 bits",
            span=i.span,
            hint=f"CVT.{i.src_ty}.{i.dst_ty} converts the number",
        )


D = Group.DATA
row("LDG", D, "dst = the element at a global, pool or class address, or a scalar parameter",
    (TY, out("dst", "ty"), read("src")), Effect(lambda m, i: m.load(i.dst, i.src, i.ty)), ALL_TYPES,
    check=_memory_is(shared=False), traps=True)  # fmt: skip
row("STG", D, "store src at a global, pool or class address",
    (TY, write("dst"), use("src", "ty")), Effect(lambda m, i: m.store(i.dst, i.src, i.ty)), ALL_TYPES,
    check=_memory_is(shared=False), traps=True)  # fmt: skip
row("LDS", D, "dst = the element at a shared-memory address",
    (TY, out("dst", "ty"), read("src")), Effect(lambda m, i: m.load(i.dst, i.src, i.ty)), ALL_TYPES,
    check=_memory_is(shared=True), traps=True)  # fmt: skip
row("STS", D, "store src at a shared-memory address",
    (TY, write("dst"), use("src", "ty")), Effect(lambda m, i: m.store(i.dst, i.src, i.ty)), ALL_TYPES,
    check=_memory_is(shared=True), traps=True)  # fmt: skip
row("MOV", D, "dst = src", UNARY, Values(lambda i, t, a: a, raw=True), ALL_TYPES)
row("MOV_IMM", D, "dst = a constant", (out("dst", "value"), Field("value", Kind.IMMEDIATE)),
    Values(lambda i, t: i.value.array(), raw=True), ALL_TYPES)  # fmt: skip
row("CVT", D, "convert: floats round to nearest even; float to integer truncates, saturates, NaN gives 0",
    (Field("src_ty", Kind.TYPE), Field("dst_ty", Kind.TYPE), out("dst", "dst_ty"), use("src", "src_ty")),
    Values(lambda i, t, a: nx.convert(a, i.src_ty, i.dst_ty), raw=True), ALL_TYPES)  # fmt: skip
row("BITCAST", D, "the same bits as another type of the same width; which bits a computed NaN has is open",
    (Field("src_ty", Kind.TYPE), Field("dst_ty", Kind.TYPE), out("dst", "dst_ty"), use("src", "src_ty")),
    Values(lambda i, t, a: nx.same_bits(a, i.dst_ty), raw=True), ALL_TYPES, check=_same_width)  # fmt: skip
row("PACK", D, "dst = two F32 rounded to a type of 16 bits, as CVT does, low in the lower half",
    (TY, out("dst", Type.U32), use("low", Type.F32), use("high", Type.F32)),
    Values(lambda i, t, a, b: nx.packed(i.ty, a, b), raw=True), fragments.TYPES)  # fmt: skip
row("SREG", D, "dst = an index of the lane or block, or a size of the launch, in x, y or z",
    (choice("which", SpecialRegister), out("dst", Type.U32)), Effect(lambda m, i: m.special(i)))  # fmt: skip
row("ATOM", D, "dst = the element at the address, which becomes (element op src) in one step",
    (TY, choice("operation", AtomicOperation), out("dst", "ty"), Field("address", Kind.UPDATE, "ty"),
     use("src", "ty")),
    Effect(lambda m, i: m.atomic(i)), frozenset(t for t in ALL_TYPES if not t.is_wide), traps=True,
    check=lambda i: _atomic_type(i))  # fmt: skip


def _atomic_type(i: Instruction) -> None:
    bitwise = (AtomicOperation.And, AtomicOperation.Or, AtomicOperation.Xor)
    if i.operation in bitwise and i.ty.is_float:
        raise IsaError(f"ATOM.{i.ty}.{i.operation}: bits of a float cannot be combined", span=i.span)


A = Group.ARITHMETIC
row("ADD", A, "dst = lhs + rhs; integers wrap", BINARY, plain(np.add), ALL_TYPES)
row("SUB", A, "dst = lhs - rhs; integers wrap", BINARY, plain(np.subtract), ALL_TYPES)
row("MUL", A, "dst = lhs × rhs; integers wrap", BINARY, plain(np.multiply), ALL_TYPES)
row("DIV", A, "dst = lhs / rhs; integers truncate, MIN / -1 wraps, integer / 0 is an error",
    BINARY, Values(nx.divide), ALL_TYPES, traps=True, zero_trap="rhs")  # fmt: skip
row("REM", A, "what DIV leaves, with the sign of lhs", BINARY, Values(nx.remainder), ALL_TYPES, traps=True,
    zero_trap="rhs")  # fmt: skip
row("FMA", A, "dst = a × b + c, rounded once", (DST, use("a"), use("b"), use("c")),
    Values(lambda i, t, a, b, c: nx.fma(t, a, b, c)), ALL_TYPES)  # fmt: skip
row("MIN", A, "the lesser operand; of a number and NaN, the number", BINARY, Values(nx.minimum), ALL_TYPES)
row("MAX", A, "the greater operand; of a number and NaN, the number", BINARY, Values(nx.maximum), ALL_TYPES)
row("ACC", A, "dst = lhs + rhs, lhs × rhs, or the lesser or greater; NaN if one is. What a loop accumulates, where dst "
    "is lhs, may be combined in any order", (choice("operation", ReduceOperation), DST, LHS, RHS),
    Values(lambda i, t, a, b: nx.accumulate(i.operation, t, a, b)), ALL_TYPES)  # fmt: skip
row("ABS", A, "dst = |src|; the least integer wraps to itself", UNARY, plain(np.abs), ALL_TYPES)
row("NEG", A, "dst = -src; integers wrap", UNARY, plain(np.negative), ALL_TYPES)

L = Group.LOGIC
COMPARISONS = {
    Condition.EQ: np.equal, Condition.NE: np.not_equal, Condition.LT: np.less,
    Condition.LE: np.less_equal, Condition.GT: np.greater, Condition.GE: np.greater_equal,
}  # fmt: skip
row("AND", L, "bitwise and", BINARY, plain(np.bitwise_and), INTEGERS)
row("OR", L, "bitwise or", BINARY, plain(np.bitwise_or), INTEGERS)
row("XOR", L, "bitwise exclusive or", BINARY, plain(np.bitwise_xor), INTEGERS)
row("NOT", L, "bitwise complement", UNARY, plain(np.invert), INTEGERS)
row("SHL", L, "shift left by amount modulo the width", (DST, SRC, use("amount")),
    Values(lambda i, t, a, n: nx.shift(t, a, n, left=True)), INTEGERS)  # fmt: skip
row("SHR", L, "shift right by amount modulo the width; keeps the sign of signed types",
    (DST, SRC, use("amount")), Values(lambda i, t, a, n: nx.shift(t, a, n, left=False)), INTEGERS)  # fmt: skip
row("SETcc", L, "pred = (lhs cond rhs); NaN satisfies only NE", (choice("cond", Condition), PRED, LHS, RHS),
    Values(lambda i, t, a, b: np.asarray(COMPARISONS[i.cond](a, b), bool)), ALL_TYPES, method="setcc")  # fmt: skip
row("SEL", L, "dst = true_val where pred holds, else false_val",
    (DST, Field("pred", Kind.PUSE), use("true_val"), use("false_val")),
    Values(lambda i, t, p, a, b: np.asarray(np.where(p, a, b)), raw=True), ALL_TYPES)  # fmt: skip

C = Group.CONTROL
LABEL = Field("target", Kind.LABEL)
row("BRA", C, "go to the target, or only where pred holds", (LABEL, Field("pred", Kind.PUSE, default=None)),
    Effect(lambda m, i: m.branch(i.target, i.pred)), control=Control.BRANCH)  # fmt: skip
row("CALL", C, "go to the target; RET comes back; at most 256 deep", (LABEL,),
    Effect(lambda m, i: m.call(i.target)), control=Control.CALL, traps=True)  # fmt: skip
row("RET", C, "return to the instruction after the last CALL; an error where there was none", (),
    Effect(lambda m, i: m.ret()), control=Control.RETURN, traps=True)  # fmt: skip
row("LOOP", C, "run the body with counter = 0 … iterations-1; the count is read once, zero skips the body",
    (out("counter"), Field("iterations", Kind.TRIPS, "T")),
    Effect(lambda m, i: m.loop(i.counter, i.iterations)), INDEX_TYPES, method="begin_loop",
    control=Control.LOOP, default_type=Type.U32, traps=True)  # fmt: skip
row("ENDLOOP", C, "end of the body of the innermost LOOP", (), Effect(lambda m, i: m.end_loop()), method="end_loop",
    control=Control.ENDLOOP)  # fmt: skip
row("EXIT", C, "end this lane", (), Effect(lambda m, i: m.exit()), control=Control.EXIT)

S = Group.SYNC
row("BarSync", S, "wait until every lane of the block is here; shared and global writes become visible to it",
    (count("id", 0, 15, default=0),), Effect(lambda m, i: m.barrier()), control=Control.WAIT, traps=True)  # fmt: skip
row("GridSync", S, "wait until every lane of the launch is here; their writes become visible to all",
    (), Effect(lambda m, i: m.grid_barrier()), control=Control.WAIT, traps=True)  # fmt: skip
row("SubGroupXor", S,
    "dst = src of the lane whose number in the block is this one's with the bits of mask turned; both are of one "
    "sub-group, as wide as the machine says, and execute it together",
    (TY, out("dst", "ty"), use("src", "ty"), count("mask", 1, 1023)), Effect(lambda m, i: m.exchange_lanes(i)),
    frozenset(t for t in ALL_TYPES if not t.is_wide), traps=True)  # fmt: skip
row("MatrixMultiply", S,
    "d = a × b + c of fragments that the 32 lanes of a sub-group hold together and multiply together: 16 × 16 numbers "
    "of 16 bits, two in each U32, times 16 × 8, onto sums in F32. Lane l has of a0 row l / 4, columns 2(l mod 4) and "
    "the next (the lower half first), of a1 the row 8 further, of a2 and a3 the columns 8 further; of b0 column l / 4 "
    "and rows 2(l mod 4) and the next, of b1 the rows 8 further; of c0 and c1 row l / 4 and columns 2(l mod 4) and the "
    "next, of c2 and c3 the row 8 further. Products are exact; their sums are rounded or cut to F32, in any order",
    (TY, *(out(f"d{k}", Type.F32) for k in range(4)), *(use(f"a{k}", Type.U32) for k in range(4)),
     *(use(f"b{k}", Type.U32) for k in range(2)), *(use(f"c{k}", Type.F32) for k in range(4))),
    Effect(lambda m, i: m.multiply_fragments(i)), fragments.TYPES, traps=True)  # fmt: skip
row("MatrixLoad", S,
    "load four matrices of 8 × 8 numbers of 16 bits from shared memory, by the 32 lanes of a sub-group together. Lanes "
    "8j to 8j + 7 say where the rows of matrix j lie, 16 bytes each, aligned to 16; of it lane l is given row l / 4, "
    "columns 2(l mod 4) and the next, in dj, the lower half first; with transpose the same of the transposed matrix",
    (*(out(f"d{k}", Type.U32) for k in range(4)), read("src", ty=Type.U16),
     Field("transpose", Kind.FLAG, default=False)),
    Effect(lambda m, i: m.load_fragments(i)), check=_memory_is(shared=True), traps=True)  # fmt: skip
row("CopyAsync", S,
    "begin to copy 16 bytes from a buffer to shared memory: as many as bytes says (U32, at most 16), and zeros behind "
    "them. Both places are aligned to 16. They arrive when this lane waits for them (CopyWait); until then nobody uses "
    "the place in shared memory, and nobody changes the other",
    (TY, write("dst"), read("src"), use("bytes", Type.U32)), Effect(lambda m, i: m.begin_copy(i)),
    frozenset(t for t in ALL_TYPES if not t.is_wide), check=_from_buffer_to_shared, traps=True)  # fmt: skip
row("CopyCommit", S, "what this lane has begun to copy since its last CopyCommit is a group", (),
    Effect(lambda m, i: m.commit_copies()), traps=True)  # fmt: skip
row("CopyWait", S, "wait until of this lane's groups of copies no more than the last ones, so many as pending says, "
    "are under way; other lanes see what has arrived after a BarSync", (count("pending", 0, 15),),
    Effect(lambda m, i: m.wait_for_copies(i.pending)), traps=True)  # fmt: skip
row("MemFence", S, "order this lane's memory accesses as seen in the scope",
    (choice("scope", MemoryScope),), Effect(lambda m, i: m.fence()))  # fmt: skip

row("SQRT", Group.TRANSCENDENTAL, "square root, correctly rounded", UNARY, plain(np.sqrt), FLOATS)

P = Group.POOL
POOL = Field("pool", Kind.POOL)
row("PoolAlloc", P, "create a pool for this launch; all lanes together", (POOL, count("size", 1)),
    Effect(lambda m, i: m.pool_alloc(i.pool, i.size)), control=Control.WAIT, traps=True)  # fmt: skip
row("PoolFree", P, "free a pool that PoolAlloc made; all lanes together", (POOL,),
    Effect(lambda m, i: m.pool_free(i.pool)), control=Control.WAIT, traps=True)  # fmt: skip
row("PoolLoad", P, "dst = the element at a byte offset of the pool", (TY, out("dst", "ty"), POOL, count("offset")),
    Effect(lambda m, i: m.load(i.dst, PoolOffset(i.pool, i.offset), i.ty)), ALL_TYPES, traps=True)  # fmt: skip
row("PoolStore", P, "store src at a byte offset of the pool", (TY, POOL, count("offset"), use("src", "ty")),
    Effect(lambda m, i: m.store(PoolOffset(i.pool, i.offset), i.src, i.ty)), ALL_TYPES, traps=True)  # fmt: skip
