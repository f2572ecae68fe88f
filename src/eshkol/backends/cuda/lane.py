"""One lane as a thread of a GPU: the code of any machine's lane, with what NVIDIA's threads need.

What it shares with threads of other GPUs stands in `lanes/threads.py`.
"""

from __future__ import annotations

from typing import ClassVar

from eshkol.atlas.fragments import LINE_BYTES
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Address
from eshkol.atlas.types import Type
from eshkol.backends.lanes.emitter import Emitter
from eshkol.backends.lanes.threads import GLOBAL_SPACE, SHARED_SPACE, ThreadLane
from eshkol.llvm.text import double, pointer

BUFFER_ALIGNMENT = 16  # to which all buffers are aligned, but those that are elements of another one
# What LLVM is told of that, unless a program asks for vectors: small elements go into words together. Vectors of words
# took so many registers (151 of 128, in products of float32) that half as many blocks ran at a time.
TOLD_ALIGNMENT = 4
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


class CudaLane(ThreadLane):
    """Writes the function of one lane."""

    emitter: ClassVar[type[Emitter]] = CudaEmitter
    exchanging: ClassVar[int] = WARP

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

    def exchanged(self, value: str, mask: int) -> str:
        return self.e.call("i32", SHUFFLE, ("i32", "-1"), ("i32", value), ("i32", str(mask)), ("i32", "31"))

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

    def meet(self) -> None:
        self.e.call("void", BARRIER, ("i32", "0"))
