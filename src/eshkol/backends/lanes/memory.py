"""A lane's memory: addresses checked and resolved, loads, stores, atomics, neighbours and the phase."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import gcd
from typing import ClassVar

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES, CLASSES, MAX_NEIGHBOURS
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import (
    GLOBAL,
    Address,
    BufferOffset,
    ClassOffset,
    Indexed,
    PoolOffset,
    Register,
    RegisterIndirect,
    Shared,
    StaticAddress,
    address_base,
    address_register,
    far_index,
)
from eshkol.atlas.program import VECTORS, ParamKind
from eshkol.atlas.types import Type
from eshkol.atlas.validate import memory_operands
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.layout import BEYOND
from eshkol.backends.lanes.module import INVARIANT
from eshkol.backends.lanes.ranges import Access
from eshkol.backends.lanes.scalars import lower
from eshkol.backends.lanes.state import LaneState

NEIGHBOURS = frozenset({"NBRLoad", "NBRStore"})


class LaneMemory(LaneState, ABC):
    """The function of a lane under construction, as far as memory goes. Accesses in `trusted` are not checked."""

    trusted: frozenset[int]
    access: Mapping[int, Access]  # those that are in range
    groups: Mapping[int, str]  # by instruction: what its access carries for LLVM
    given: frozenset[int]  # loads whose values are arguments of the function
    steps: Mapping[int, int]  # accesses → what divides their byte offsets
    shared_alignment: ClassVar[int] = 1  # to which the machine aligns a block's shared memory
    buffer_alignment: int = 1  # and a buffer, or one whose elements are buffers of a declared size

    @abstractmethod
    def rounds_done(self, atom: int) -> str | None:
        """A loop's counter or the lane's number."""

    # --- memory ------------------------------------------------------------------------------------

    def _do_LDG(self, i: Instruction) -> None:
        if self.index in self.given:
            self.write_register(i.dst, i.ty, f"%given{self.index}")
            return
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR:
            pointer = self.word(self.layout.word(param.name), "ptr")
            value = self.e.load(llvm_type(i.ty), pointer, INVARIANT)
            self.write_register(i.dst, i.ty, value)
            return
        self._load(i.dst, i.src, i.ty)

    def _load(self, dst: Register, address: Address, ty: Type) -> None:
        pointer, alignment = self.pointer(address, ty)
        more = f", align {alignment}{self.groups.get(self.index, '')}"
        self.write_register(dst, ty, self.e.load(llvm_type(ty), pointer, more))

    def _store(self, address: Address, src: Register, ty: Type) -> None:
        pointer, alignment = self.pointer(address, ty)
        group = self.groups.get(self.index, "")
        self.e.store(llvm_type(ty), self.read(src), pointer, f", align {alignment}{group}")

    def _do_STG(self, i: Instruction) -> None:
        self._store(i.dst, i.src, i.ty)

    def _do_LDS(self, i: Instruction) -> None:
        self._load(i.dst, i.src, i.ty)

    _do_STS = _do_STG

    def _do_PoolLoad(self, i: Instruction) -> None:
        self._load(i.dst, PoolOffset(i.pool, i.offset), i.ty)

    def _do_PoolStore(self, i: Instruction) -> None:
        self._store(PoolOffset(i.pool, i.offset), i.src, i.ty)

    def pointer(
        self, address: Address, ty: Type, start: int = 0, size: int | None = None, aligned: int | None = None
    ) -> tuple[str, int]:
        """The checked pointer an address means, and the alignment that can be relied on.

        Checked are `size` bytes from `start` on; without a size, one element. It must be aligned to so many bytes, or
        as the type is.
        """
        size = ty.size_bytes if size is None else size
        if not size:  # no elements lie anywhere, whatever the address says; its register must be written all the same
            if (register := address_register(address)) is not None:
                self.read(register)
            return "null", 1
        if isinstance(address, RegisterIndirect):
            return self._linear(address, start, size), 1
        base = address.base if isinstance(address, Indexed) else address
        assert isinstance(base, StaticAddress)
        region, limit, name = self._region(base)
        if aligned is None:
            aligned = ty.alignment if isinstance(base, BufferOffset | Shared) else 1
        steady = base.offset % aligned == 0
        if isinstance(address, Indexed):
            steady = steady and address.scale % aligned == 0
            offset = self._indexed(address)
        else:
            offset = str(base.offset)
        if self.index not in self.trusted:
            self._check_range(offset, start, size, limit, name)
            if not steady:
                rest = self.e.op(f"and i64 {offset}, {aligned - 1}")
                self.fail_if(self.e.op(f"icmp ne i64 {rest}, 0"), f"the address in {name} is not aligned to {aligned}")
        if self.index in self.steps:  # 0 stands for an offset of 0
            aligned = max(aligned, gcd(self.steps[self.index], self._alignment(base)))
        return self.e.offset(region, offset), aligned

    def _alignment(self, base: StaticAddress) -> int:
        """To how many bytes the memory is aligned that a static address lies in."""
        if isinstance(base, Shared):
            return self.shared_alignment
        param = self.program.param.get(base.handle) if isinstance(base, BufferOffset) else None
        if param is None or param.ty is None:
            return 1
        if param.count is None:
            return self.buffer_alignment if param.name in self.program.metadata.get(VECTORS, "").split() else 1
        return gcd(param.count * param.ty.size_bytes, self.buffer_alignment)

    def _placed(self, access: Access) -> str | None:
        """The byte offset of an access from counters and the lane's number in 64 bits, which LLVM understands best."""
        found = ""
        for atom, factor in access.place.terms:
            value = self.rounds_done(atom)
            if value is None:
                return None
            value = self.e.op(f"mul nsw i64 {value}, {factor}")
            found = self.e.op(f"add nsw i64 {found}, {value}") if found else value
        constant = access.place.constant
        return self.e.op(f"add nsw i64 {found}, {constant}") if found else str(constant)

    def _indexed(self, address: Indexed) -> str:
        if self.index in self.access and isinstance(address.base, BufferOffset):
            offset = self._placed(self.access[self.index])
            if offset is not None:
                return offset
        index = self.read(address.index)
        ty = Type.U64 if address.index.index == GLOBAL else self.type_of(address.index)
        if ty.bits < 64:
            index = self.e.op(f"{'sext' if ty.is_signed else 'zext'} i{ty.bits} {index} to i64")
        elif (
            address.index.index != GLOBAL and self.index not in self.trusted
        ):  # lane numbers are never that far; other indices could overflow below
            far = far_index(address.scale)
            shifted, width = (self.e.op(f"add i64 {index}, {far}"), 2 * far) if ty.is_signed else (index, far)
            self.fail_if(self.e.op(f"icmp ugt i64 {shifted}, {width}"), f"address out of range: {address}")
        steps = self.e.op(f"mul nsw i64 {index}, {address.scale}")
        return self.e.op(f"add nsw i64 {steps}, {address.base.offset}")

    def _region(self, base: StaticAddress) -> tuple[str, str, str]:
        """Start, byte count and name of the memory a static address lies in."""
        if isinstance(base, Shared):
            return "%shared", self.word(words.SHARED_BYTES), "shared memory"
        if isinstance(base, ClassOffset):
            memory = self.word(words.CLASS_MEMORY, "ptr")
            start = self.e.offset(memory, base.class_id * CLASS_BYTES)
            return start, str(CLASS_BYTES), f"class {base.class_id}"
        assert isinstance(base, BufferOffset | PoolOffset)
        number = self.layout.word(base.handle)
        kind = "pool" if isinstance(base, PoolOffset) else "buffer"
        return self.word(number, "ptr"), self.word(number + 1), f"{kind} '{base.handle}'"

    def _check_range(self, offset: str, start: int, size: int, limit: str, name: str) -> None:
        if not size:
            return
        room = self.e.op(f"sub i64 {limit}, {min(start + size, BEYOND)}")
        before = self.e.op(f"icmp slt i64 {offset}, 0")
        beyond = self.e.op(f"icmp sgt i64 {offset}, {room}")
        self.fail_if(
            self.e.op(f"or i1 {before}, {beyond}"), f"address out of range in {name}",
            "guard the access, for instance by comparing r255 with the element count",
        )  # fmt: skip

    def _linear(self, address: RegisterIndirect, start: int, size: int) -> str:
        linear, source = self.read(address.register), self.type_of(address.register)
        if source.bits < 64:
            linear = self.e.op(f"{'sext' if source.is_signed else 'zext'} i{source.bits} {linear} to i64")
        outside = self.e.op(f"icmp uge i64 {linear}, {CLASS_MEMORY_BYTES}")
        self.fail_if(outside, "address out of range of the class memory")
        offset = self.e.op(f"urem i64 {linear}, {CLASS_BYTES}")
        self._check_range(offset, start, size, str(CLASS_BYTES), "class memory")
        return self.e.offset(self.word(words.CLASS_MEMORY, "ptr"), linear)

    def _do_ATOM(self, i: Instruction) -> None:
        pointer, alignment = self.pointer(i.address, i.ty)
        value, t = self.read(i.src), llvm_type(i.ty)
        old = self.e.op(f"load atomic {_bits(i.ty)}, ptr {pointer} monotonic, align {max(alignment, i.ty.size_bytes)}")
        # One loop of compare and exchange serves every operation and type, 16-bit floats included.
        before, again, done = (self.e.new_block(hint) for hint in ("from", "again", "done"))
        self.e.br(before)
        self.e.place(before)
        self.e.br(again)
        self.e.place(again)
        seen, found = self.e.name("seen"), self.e.name("found")
        self.e.do(f"{seen} = phi {_bits(i.ty)} [ {old}, %{before} ], [ {found}, %{again}_end ]")
        current = self._from_bits(seen, i.ty)
        if i.operation.value == "MOV":
            after = value
        else:
            from eshkol.atlas.table import ROWS

            row = ROWS[i.operation.value]
            after = lower(self.e, row(*(Register(k) for k in range(3))), i.ty, [current, value], self.fail_if)
        new = after if t == _bits(i.ty) else self.e.op(f"bitcast {t} {after} to {_bits(i.ty)}")
        pair = self.e.op(f"cmpxchg ptr {pointer}, {_bits(i.ty)} {seen}, {_bits(i.ty)} {new} acq_rel monotonic")
        self.e.do(f"{found} = extractvalue {{ {_bits(i.ty)}, i1 }} {pair}, 0")
        success = self.e.op(f"extractvalue {{ {_bits(i.ty)}, i1 }} {pair}, 1")
        self.e.br(f"{again}_end")
        self.e.place(f"{again}_end")
        self.e.br_if(success, done, again)
        self.e.place(done)
        self.write_register(i.dst, i.ty, self._from_bits(seen, i.ty))

    def _from_bits(self, value: str, ty: Type) -> str:
        t = llvm_type(ty)
        return value if t == _bits(ty) else self.e.op(f"bitcast {_bits(ty)} {value} to {t}")

    # --- Atlas-specific ----------------------------------------------------------------------------

    def _neighbour(self, cls: Register, k: int) -> str:
        ty, value = self.type_of(cls), self.read(cls)
        outside = self.e.op(f"icmp uge {llvm_type(ty)} {value}, {CLASSES}")
        self.fail_if(outside, f"the class does not exist: classes are 0 to {CLASSES - 1}")
        if ty.bits < 64:
            value = self.e.op(f"zext {llvm_type(ty)} {value} to i64")
        place = self.e.op(f"mul i64 {value}, {MAX_NEIGHBOURS}")
        place = self.e.op(f"add i64 {place}, {k}")
        entry = self.e.offset("@neighbours", place, "i64")
        other = self.e.load("i64", entry)
        self.fail_if(self.e.op(f"icmp slt i64 {other}, 0"), f"the class has no neighbour {k}")
        offset = self.e.op(f"mul i64 {other}, {CLASS_BYTES}")
        return self.e.offset(self.word(words.CLASS_MEMORY, "ptr"), offset)

    def _do_NBRLoad(self, i: Instruction) -> None:
        pointer = self._neighbour(i.src, i.k)
        self.write_register(i.dst, i.ty, self.e.load(llvm_type(i.ty), pointer, ", align 1"))

    def _do_NBRStore(self, i: Instruction) -> None:
        pointer = self._neighbour(i.dst, i.k)
        self.e.store(llvm_type(i.ty), self.read(i.src), pointer, ", align 1")

    def _phase_word(self) -> str:
        return self.e.offset("%args", words.PHASE, "i64")

    def _do_PhaseRead(self, i: Instruction) -> None:
        phase = self.e.load("i64", self._phase_word())
        seen = self.e.op(f"urem i64 {self.e.op(f'add i64 {phase}, {768 - 8 * i.class_id % 768}')}, 768")
        self.write_register(i.dst, Type.U32, self.e.op(f"trunc i64 {seen} to i32"))

    def _do_PhaseWrite(self, i: Instruction) -> None:
        ty, value = self.type_of(i.src), self.read(i.src)
        if ty.bits < 64:
            value = self.e.op(f"{'sext' if ty.is_signed else 'zext'} {llvm_type(ty)} {value} to i64")
        rest = self.e.op(f"{'srem' if ty.is_signed else 'urem'} i64 {value}, 768")
        total = self.e.op(f"add i64 {rest}, {768 + 8 * i.class_id}")
        self.e.store("i64", self.e.op(f"urem i64 {total}, 768"), self._phase_word())


def touches_classes(i: Instruction) -> bool:
    """Whether an instruction reads or writes the classes' memory."""
    if i.op.name in NEIGHBOURS:
        return True
    addresses = [address for _, address in memory_operands(i)]
    return any(isinstance(a, RegisterIndirect) or isinstance(address_base(a), ClassOffset) for a in addresses)


def _bits(ty: Type) -> str:
    return f"i{ty.bits}"
