"""What a function loads and stores: variables, the device's memory behind addresses, and what a block shares.

Numbers of the device's memory are read and written where they lie; those aligned to nothing byte by byte. What a block
shares is an array of words as wide as the kernel's numbers there are; where these have several widths, of words of 32
bits, of which others are parts or several.
"""

from __future__ import annotations

from eshkol.backends.spirv.code import Code
from eshkol.backends.spirv.module import Capability, Module, Op, Space
from eshkol.backends.spirv.types import UINT, ULONG, CType, Kind, Place, Value
from eshkol.errors import BackendUnavailable

ALIGNED, NON_PRIVATE = 0x2, 0x20
WORKGROUP_SCOPE, QUEUE_FAMILY_SCOPE = 2, 5
ACQUIRE_RELEASE, UNIFORM_MEMORY, WORKGROUP_MEMORY = 0x8, 0x40, 0x100
MADE_AVAILABLE, MADE_VISIBLE = 0x2000, 0x4000
MEETING = ACQUIRE_RELEASE | UNIFORM_MEMORY | WORKGROUP_MEMORY | MADE_AVAILABLE | MADE_VISIBLE
SHARED_WORDS = 1  # the number of the constant that says how many there are
_STORAGE = {8: Capability.StorageBuffer8BitAccess, 16: Capability.StorageBuffer16BitAccess}
_ARITHMETIC = {8: Capability.Int8, 16: Capability.Int16}


class Memory(Code):
    """A function under construction, as far as memory goes."""

    def __init__(self, module: Module, shared_bits: int) -> None:
        super().__init__(module)
        self.shared_bits = shared_bits

    # --- places -------------------------------------------------------------------------------------

    def load(self, place: Place) -> Value:
        """What is in a place."""
        if place.behind is None:
            return self.make(Op.Load, place.ty, place.pointer)
        self.risky += 1
        if place.ty.kind is Kind.STRUCT:
            words = [self.id(self._load(ULONG, self._on(place, k), place.behind)) for k in range(place.ty.count)]
            array = CType(Kind.ARRAY, 64 * place.ty.count, of=ULONG, count=place.ty.count)
            return self.make(Op.CompositeConstruct, place.ty, self.made(
                Op.CompositeConstruct, self.type_id(array), *words))  # fmt: skip
        return self._load(place.ty, place.pointer, place.behind)

    def store(self, place: Place, value: Value) -> None:
        value = self.convert(value, place.ty)
        if place.behind is None:
            self.do(Op.Store, place.pointer, self.id(value))
        elif place.ty.kind is Kind.STRUCT:
            for k in range(place.ty.count):
                word = self.make(Op.CompositeExtract, ULONG, value.id, 0, k)
                self._store(ULONG, self._on(place, k), place.behind, word)
        else:
            self._store(place.ty, place.pointer, place.behind, value)

    def _on(self, place: Place, words: int) -> int:
        """A pointer so many words of 64 bits behind a place."""
        assert place.behind is not None
        if not words:
            return place.pointer
        ty = UINT if place.behind.shared else ULONG
        return self.id(self.binary("+", Value(ty, place.pointer), Value(ty, constant=8 * words)))

    def _load(self, ty: CType, pointer: int, behind: CType) -> Value:
        if behind.shared:
            return self._load_shared(ty, pointer)
        if behind.packed and ty.size > 1:
            return self._load_bytes(ty, pointer)
        if behind.volatile:
            bits = CType(Kind.INT, ty.bits)
            where = self._global(pointer, self.type_id(bits))
            scope, relaxed = self.m.word(QUEUE_FAMILY_SCOPE), self.m.word(0)
            self._needs_atomics(ty.bits)
            return self.bits_as(self.make(Op.AtomicLoad, bits, where, scope, relaxed), ty)
        stored = self._stored(ty)
        found = self.made(
            Op.Load, stored, self._global(pointer, stored), ALIGNED | NON_PRIVATE, ty.size
        )  # fmt: skip
        return self._extended(found, ty)

    def _store(self, ty: CType, pointer: int, behind: CType, value: Value) -> None:
        self.risky += 1
        if behind.shared:
            self._store_shared(ty, pointer, value)
        elif behind.packed and ty.size > 1:
            self._store_bytes(ty, pointer, value)
        else:
            stored, found = self._stored(ty), self.id(value)
            if ty.bits < 32:
                found = self.made(Op.UConvert, stored, found)
            self.do(Op.Store, self._global(pointer, stored), found, ALIGNED | NON_PRIVATE, ty.size)

    def _stored(self, ty: CType) -> int:
        """The type of a number as memory has it."""
        if ty.kind is Kind.FLOAT:
            return self.m.real(ty.bits)
        if ty.bits in _STORAGE:
            self.m.need(_STORAGE[ty.bits])
        return self.m.integer(ty.bits)

    def _extended(self, found: int, ty: CType) -> Value:
        """A number of memory as values of its type are held."""
        if ty.bits >= 32:
            return Value(ty, found)
        return self.make(Op.SConvert if ty.signed else Op.UConvert, ty, found)

    def _global(self, pointer: int, to: int) -> int:
        """An address as a pointer to a type."""
        return self.made(Op.ConvertUToPtr, self.m.pointer(Space.PhysicalStorageBuffer, to), pointer)

    # --- what is aligned to nothing -------------------------------------------------------------------

    def _load_bytes(self, ty: CType, pointer: int) -> Value:
        byte, whole = CType(Kind.INT, 8), CType(Kind.INT, max(ty.bits, 32))
        alone = CType(Kind.POINTER, 64, of=byte)
        found = Value(whole, constant=0)
        for k in range(ty.size):
            at = self.binary("+", Value(ULONG, pointer), Value(ULONG, constant=k))
            one = self.convert(self._load(byte, self.id(at), alone), whole)
            found = self.binary("|", found, self.binary("<<", one, Value(UINT, constant=8 * k)))
        return self.bits_as(found, ty)

    def _store_bytes(self, ty: CType, pointer: int, value: Value) -> None:
        byte, whole = CType(Kind.INT, 8), CType(Kind.INT, max(ty.bits, 32))
        alone = CType(Kind.POINTER, 64, of=byte)
        bits = self.bits_as(value, whole)
        for k in range(ty.size):
            at = self.binary("+", Value(ULONG, pointer), Value(ULONG, constant=k))
            one = self.convert(self.binary(">>", bits, Value(UINT, constant=8 * k)), byte)
            self._store(byte, self.id(at), alone, one)

    # --- what a block shares --------------------------------------------------------------------------

    def _array(self) -> int:
        """The array that the lanes of a block share."""
        m, bits = self.m, self.shared_bits
        key = ("shared",)
        if key not in m._known:
            if bits in _ARITHMETIC:
                m.need(_ARITHMETIC[bits])
            of = m.once(Op.TypeArray, m.integer(bits), m.specialized(SHARED_WORDS, 1))
            m._known[key] = m.variable(Space.Workgroup, of)
        return m._known[key]

    def shared_cell(self, pointer: int, more: int = 0) -> int:
        """A pointer to a word of shared memory, by an offset in bytes."""
        array, word = self._array(), self.m.integer(32)
        steps = (self.shared_bits // 8).bit_length() - 1
        index = self.made(Op.ShiftRightLogical, word, pointer, self.m.word(steps)) if steps else pointer
        if more:
            index = self.made(Op.IAdd, word, index, self.m.word(more))
        self.risky += 1
        return self.made(
            Op.AccessChain, self.m.pointer(Space.Workgroup, self.m.integer(self.shared_bits)), array, index
        )  # fmt: skip

    def _word(self, pointer: int, more: int = 0) -> int:
        cell = self.shared_cell(pointer, more)
        return self.made(Op.Load, self.m.integer(self.shared_bits), cell, NON_PRIVATE)

    def _load_shared(self, ty: CType, pointer: int) -> Value:
        bits = CType(Kind.INT, ty.bits)
        if ty.bits == self.shared_bits:
            found = self._word(pointer)
            if ty.bits < 32:
                return self._extended(found, ty)
            return self.bits_as(Value(bits, found), ty)
        if ty.bits == 64:
            low, high = (self.convert(Value(UINT, self._word(pointer, k)), ULONG) for k in (0, 1))
            whole = self.binary("|", low, self.binary("<<", high, Value(UINT, constant=32)))
            return self.bits_as(whole, ty)
        shifted = self.binary(">>", Value(UINT, self._word(pointer)), self._shift(pointer))
        return self.narrowed(Value(ty, shifted.id), ty)

    def _store_shared(self, ty: CType, pointer: int, value: Value) -> None:
        whole = self.bits_as(value, CType(Kind.INT, max(ty.bits, 32)))
        if ty.bits == self.shared_bits:
            found = self.id(whole)
            if ty.bits < 32:
                found = self.made(Op.UConvert, self.m.integer(ty.bits), found)
            self.do(Op.Store, self.shared_cell(pointer), found, NON_PRIVATE)
        elif ty.bits == 64:
            high = self.convert(self.binary(">>", whole, Value(UINT, constant=32)), UINT)
            for k, part in enumerate((self.convert(whole, UINT), high)):
                self.do(Op.Store, self.shared_cell(pointer, k), self.id(part), NON_PRIVATE)
        else:  # the rest of the word is other lanes'
            shift, mask = self._shift(pointer), Value(UINT, constant=(1 << ty.bits) - 1)
            cell, word = self.shared_cell(pointer), self.m.integer(32)
            scope, relaxed = self.m.word(WORKGROUP_SCOPE), self.m.word(0)
            others = self.inverted(self.binary("<<", mask, shift))
            part = self.binary("<<", self.binary("&", whole, mask), shift)
            self.made(Op.AtomicAnd, word, cell, scope, relaxed, self.id(others))
            self.made(Op.AtomicOr, word, cell, scope, relaxed, self.id(part))

    def _shift(self, pointer: int) -> Value:
        """By how many bits a number lies within its word."""
        return self.binary("*", self.binary("&", Value(UINT, pointer), Value(UINT, constant=3)),
                           Value(UINT, constant=8))  # fmt: skip

    # --- atomics --------------------------------------------------------------------------------------

    def _needs_atomics(self, bits: int) -> None:
        if bits == 64:
            self.m.need(Capability.Int64Atomics)

    def _cell(self, pointer: Value) -> tuple[int, int]:
        """What an atomic instruction takes: a pointer, and whom it is for."""
        ty = pointer.ty
        bits = ty.pointee.bits
        self._needs_atomics(bits)
        if not ty.shared:
            return self._global(pointer.id, self.m.integer(bits)), self.m.word(QUEUE_FAMILY_SCOPE)
        if bits != self.shared_bits:
            raise BackendUnavailable(f"the vulkan backend has no ATOM of {bits} bits beside other shared memory")
        return self.shared_cell(pointer.id), self.m.word(WORKGROUP_SCOPE)

    def exchanged(self, pointer: Value, seen: Value, new: Value) -> Value:
        """Compare and exchange; what was there."""
        ty = pointer.ty.pointee
        cell, scope = self._cell(pointer)
        relaxed = self.m.word(0)
        self.risky += 1
        return self.make(
            Op.AtomicCompareExchange, ty, cell, scope, relaxed, relaxed, self.id(self.convert(new, ty)),
            self.id(self.convert(seen, ty)),
        )  # fmt: skip

    def lowered(self, pointer: Value, value: Value) -> Value:
        """Keep the lesser of what is there and another; what was there."""
        cell, scope = self._cell(pointer)
        self.risky += 1
        return self.make(
            Op.AtomicUMin, UINT, cell, scope, self.m.word(0), self.id(self.convert(value, UINT))
        )  # fmt: skip

    def meet(self) -> None:
        """Wait for the lanes of the block."""
        scope = self.m.word(WORKGROUP_SCOPE)
        self.do(Op.ControlBarrier, scope, scope, self.m.word(MEETING))

    def fence(self) -> None:
        self.do(Op.MemoryBarrier, self.m.word(QUEUE_FAMILY_SCOPE), self.m.word(MEETING))
