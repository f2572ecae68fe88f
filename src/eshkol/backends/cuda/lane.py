"""One lane as a thread of a GPU: the code of any machine's lane, with what NVIDIA's threads need.

The lanes of a block are threads side by side, so a barrier is the machine's own, and shared memory is its own too. What
a launch is given comes as the kernel's parameter (`%record`, words as in `lanes/layout.py`; a scalar lies in its two
words itself), and what lanes leave behind (`%args`: the fault, the phase) is memory of the device. Buffers are known to
be global memory, which LLVM follows through the code.
"""

from __future__ import annotations

from typing import ClassVar

from eshkol.atlas.fragments import LINE_BYTES
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Address, BufferOffset
from eshkol.atlas.program import ParamKind
from eshkol.atlas.types import Type
from eshkol.backends.lanes.emitter import Emitter, llvm_type
from eshkol.backends.lanes.module import INVARIANT
from eshkol.backends.lanes.writer import LaneWriter
from eshkol.errors import IsaError
from eshkol.llvm.text import double, pointer

GLOBAL_SPACE, SHARED_SPACE = 1, 3
SHARED_ALIGNMENT = 16  # the widest that a thread reads or writes at once
BUFFER_ALIGNMENT = 16  # to which all buffers are aligned, but those that are elements of another one
# What LLVM is told of that, unless a program asks for vectors: small elements go into words together. Vectors of words
# took so many registers (151 of 128, in products of float32) that half as many blocks ran at a time.
TOLD_ALIGNMENT = 4
SCALAR_BYTES = 16  # of the two words that a parameter has in the record
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
MULTIPLY = {  # fragments of 16 × 16 and 16 × 8
    Type.BF16: "llvm.nvvm.mma.m16n8k16.row.col.bf16", Type.F16: "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
}  # fmt: skip
LOAD_MATRICES = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{}.b16.p3"
COPY, COMMIT = "llvm.nvvm.cp.async.cg.shared.global.16.s", "llvm.nvvm.cp.async.commit.group"
WAIT = "llvm.nvvm.cp.async.wait.group"
POWER = "llvm.nvvm.ex2.approx.ftz.f"  # 2^x, within 2 ulp; of what is below the least normal number, 0
RECIPROCAL = "llvm.nvvm.rcp.approx.ftz.f"
LOG2_E = 1.4426950216293335, 1.925963033500011e-08  # in two parts
LEAST, MOST = -126.0, 126.0  # exponents that a power of two is given as a factor of its own
BIASED = 1.5 * 2**23 + 127  # adding it rounds to an integer, which then stands in the low bits as a float's exponent
WARP = 32  # threads that exchange registers, of every GPU that there is


class CudaEmitter(Emitter):
    """The body of a function for a GPU, which rounds to BF16 by itself."""

    def narrow(self, value: str, ty: Type, lanes: int = 1) -> str:
        if ty is not Type.BF16 or lanes > 1:
            return super().narrow(value, ty, lanes)
        return self.op(f"bitcast bfloat {self.op(f'fptrunc float {value} to bfloat')} to i16")

    def packed(self, low: str, high: str, ty: Type) -> str:
        """As a vector, which is rounded at once."""
        half = "bfloat" if ty is Type.BF16 else "half"
        found = "poison"
        for place, value in enumerate((low, high)):
            rounded = self.op(f"fptrunc float {value} to {half}")
            found = self.op(f"insertelement <2 x {half}> {found}, {half} {rounded}, i32 {place}")
        return self.op(f"bitcast <2 x {half}> {found} to i32")


class CudaLane(LaneWriter):
    """Writes the function of one lane."""

    emitter: ClassVar[type[Emitter]] = CudaEmitter
    shared_alignment: ClassVar[int] = SHARED_ALIGNMENT
    parameters: ClassVar[str] = "ptr %args, ptr %record, ptr %shared, i64 %gid, i64 %block, i64 %lane"

    def place_of_word(self, number: int) -> str:
        """Where a word of what the launch is given lies."""
        return self.e.offset("%record", number, "i64")

    def word(self, number: int, llvm: str = "i64") -> str:
        place = self.place_of_word(number)
        if llvm != "ptr":
            return self.e.load(llvm, place, INVARIANT)
        found = self.e.load(pointer(GLOBAL_SPACE), place, INVARIANT)
        return self.e.op(f"addrspacecast {pointer(GLOBAL_SPACE)} {found} to ptr")

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if not isinstance(i.src, BufferOffset) or param is None or param.kind is not ParamKind.SCALAR:
            super()._do_LDG(i)
            return
        place = self.place_of_word(self.layout.word(param.name))
        self.write_register(i.dst, i.ty, self.e.load(llvm_type(i.ty), place, ", align 8" + INVARIANT))

    def lowered(self, i: Instruction, ty: Type, values: list[str], exact: str) -> str:
        if i.op.name == "EXP2":
            return self.e.call("float", POWER, ("float", values[0]))
        if i.op.name == "SIGMOID":
            return self.e.narrow(self._sigmoid(self.e.widen(values[0], ty)), ty)
        return self._exponential(values[0]) if i.op.name == "EXP" else super().lowered(i, ty, values, exact)

    def _exponential(self, x: str) -> str:
        """e^x of F32 (others are expanded): 2^k 2^f, where the machine knows the second, and |f| ≤ ½ for ordinary x.

        What is too small or too large for a factor 2^k stays in f: subnormal results, 0 and infinity come of it.
        """
        e = self.e
        first, second, least, most, biased = map(double, (*LOG2_E, LEAST, MOST, BIASED))
        scaled = e.op(f"fmul float {x}, {first}")
        bounded = e.intrinsic("minnum", "float", e.intrinsic("maxnum", "float", scaled, least), most)
        rounded = e.op(f"fadd float {bounded}, {biased}")
        power = e.op(f"fsub float {rounded}, {biased}")
        rest = e.intrinsic("fma", "float", x, first, e.op(f"fneg float {power}"))
        rest = e.intrinsic("fma", "float", x, second, rest)
        bits = e.op(f"shl i32 {e.op(f'bitcast float {rounded} to i32')}, 23")
        factor = e.op(f"bitcast i32 {bits} to float")
        found = e.call("float", POWER, ("float", rest))
        return e.op(f"fmul float {found}, {factor}")

    def _sigmoid(self, x: str) -> str:
        """1 / (1 + 2^(-x log2 e)) of F32, as precise as 16-bit floats need it: as 2^-32 / (2^-32 + 2^(-x log2 e - 32)).

        So what is as small as their subnormal numbers is not lost: the machine's powers and reciprocals have none.
        """
        e = self.e
        exponent = e.intrinsic("fma", "float", x, double(-LOG2_E[0]), double(-32.0))
        total = e.op(f"fadd float {e.call('float', POWER, ('float', exponent))}, {double(2.0**-32)}")
        return e.op(f"fmul float {e.call('float', RECIPROCAL, ('float', total))}, {double(2.0**-32)}")

    def _do_SubGroupXor(self, i: Instruction) -> None:
        """In words of 32 bits, as threads of a warp exchange them."""
        if i.mask >= WARP:
            raise IsaError(f"SubGroupXor: mask {i.mask} leaves the sub-group, which has {WARP} lanes", span=i.span)
        kind, bits, e = llvm_type(i.ty), i.ty.bits, self.e
        value = e.op(f"bitcast {kind} {self.read(i.src)} to i{bits}")
        whole = e.op(f"zext i{bits} {value} to i32") if bits < 32 else value
        words = [whole] if bits <= 32 else [
            e.op(f"trunc i64 {part} to i32") for part in (whole, e.op(f"lshr i64 {whole}, 32"))
        ]  # fmt: skip
        got = [e.call("i32", SHUFFLE, ("i32", "-1"), ("i32", w), ("i32", str(i.mask)), ("i32", "31")) for w in words]
        if bits > 32:
            low, high = (e.op(f"zext i32 {word} to i64") for word in got)
            found = e.op(f"or i64 {low}, {e.op(f'shl i64 {high}, 32')}")
        else:
            found = e.op(f"trunc i32 {got[0]} to i{bits}") if bits < 32 else got[0]
        self.write_register(i.dst, i.ty, e.op(f"bitcast i{bits} {found} to {kind}"))

    # --- fragments, and copies that go on by themselves ---------------------------------------------

    def _near(self, address: Address, space: int, ty: Type, size: int = LINE_BYTES) -> str:
        """The checked pointer to a line of memory, as one into an address space."""
        place, _ = self.pointer(address, ty, size=size, aligned=LINE_BYTES)
        return self.e.op(f"addrspacecast ptr {place} to {pointer(space)}")

    def _do_MatrixMultiply(self, i: Instruction) -> None:
        words = [self.read(getattr(i, name)) for name in ("a0", "a1", "a2", "a3", "b0", "b1")]
        kind = "i32" if i.ty is Type.BF16 else "<2 x half>"
        if i.ty is Type.F16:
            words = [self.e.op(f"bitcast i32 {word} to {kind}") for word in words]
        sums = [("float", self.read(getattr(i, f"c{k}"))) for k in range(4)]
        given = [*((kind, word) for word in words), *sums]
        self._put_parts(i, "float", Type.F32, self.e.call("{ float, float, float, float }", MULTIPLY[i.ty], *given))

    def _do_MatrixLoad(self, i: Instruction) -> None:
        place = self._near(i.src, SHARED_SPACE, Type.U16)
        name = LOAD_MATRICES.format(".trans" if i.transpose else "")
        found = self.e.call("{ i32, i32, i32, i32 }", name, (pointer(SHARED_SPACE), place))
        self._put_parts(i, "i32", Type.U32, found)

    def _put_parts(self, i: Instruction, kind: str, ty: Type, found: str) -> None:
        whole = "{ " + ", ".join([kind] * 4) + " }"
        for k in range(4):
            self.write_register(getattr(i, f"d{k}"), ty, self.e.op(f"extractvalue {whole} {found}, {k}"))

    def _do_CopyAsync(self, i: Instruction) -> None:
        target = self._near(i.dst, SHARED_SPACE, i.ty)
        source = self._near(i.src, GLOBAL_SPACE, i.ty)
        given = (pointer(SHARED_SPACE), target), (pointer(GLOBAL_SPACE), source), ("i32", self.read(i.bytes))
        self.e.call("void", COPY, *given)

    def _do_CopyCommit(self, i: Instruction) -> None:
        self.e.call("void", COMMIT)

    def _do_CopyWait(self, i: Instruction) -> None:
        self.e.call("void", WAIT, ("i32", str(i.pending)))

    def _do_BarSync(self, i: Instruction) -> None:
        self.e.call("void", BARRIER, ("i32", "0"))
        self.go(self.index + 1)

    # A launch of one block waits for all its lanes at the block's barrier; others are refused before they run.
    _do_GridSync = _do_BarSync
