"""A lane's memory in C-like text: addresses checked and resolved, loads, stores, atomics, neighbours and the phase.

Buffers and pools are pointers to bytes with their sizes beside them. An access that is known to be in range
(`lanes/ranges.py`) is not checked, and its place is written in the lane's number and counters of loops, which drivers'
compilers understand best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES, CLASSES, MAX_NEIGHBOURS, neighbours
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import (
    GLOBAL as GLOBAL_LANE,
)
from eshkol.atlas.operands import (
    Address,
    BufferOffset,
    ClassOffset,
    Indexed,
    PoolOffset,
    Register,
    RegisterIndirect,
    Shared,
    StaticAddress,
    far_index,
)
from eshkol.atlas.program import ParamKind
from eshkol.atlas.types import Type
from eshkol.backends.lanes.ranges import LANE_ATOM, Access
from eshkol.backends.text.dialect import GLOBAL, SHARED
from eshkol.backends.text.lane import LANE_NUMBER, TextLane

PHASE = "status[1]"
PHASES = 768
CLASS_MEMORY = "classes"
GUARD = "guard the access, for instance by comparing r255 with the element count"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an access goes: bytes beyond the start of some memory."""

    space: str
    base: str
    offset: str
    aligned: bool


class TextMemory(TextLane):
    """The body of a lane under construction, as far as memory goes."""

    trusted: frozenset[int]
    access: Mapping[int, Access]  # those that are in range
    atoms: Mapping[int, int]  # atom → the LOOP whose counter it is
    loops: list[int]  # those around the instruction now written

    # --- accesses -----------------------------------------------------------------------------------

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR:
            self.put(i.dst, i.ty, f"s_{param.name}")
        else:
            self._load(i.dst, i.src, i.ty)

    def _do_LDS(self, i: Instruction) -> None:
        self._load(i.dst, i.src, i.ty)

    def _do_STG(self, i: Instruction) -> None:
        self._store(i.dst, i.src, i.ty)

    _do_STS = _do_STG

    def _do_PoolLoad(self, i: Instruction) -> None:
        self._load(i.dst, PoolOffset(i.pool, i.offset), i.ty)

    def _do_PoolStore(self, i: Instruction) -> None:
        self._store(PoolOffset(i.pool, i.offset), i.src, i.ty)

    def _load(self, dst: Register, address: Address, ty: Type) -> None:
        self.put(dst, ty, self.at(self.place(address, ty), ty))

    def _store(self, address: Address, src: Register, ty: Type) -> None:
        value = self.read(src)
        self.do(f"{self.at(self.place(address, ty), ty)} = {value};")

    def at(self, place: Place, ty: Type) -> str:
        """What lies at a place."""
        if ty.is_wide:
            self.scalars.wide_types[ty.bits] = None
        name = self.d.type(ty)
        where = f"({place.base} + {place.offset})"
        if not place.aligned:
            return self.d.packed(place.space, name, where)
        return f"*({self.d.pointer(place.space, name)}){where}"

    # --- addresses ----------------------------------------------------------------------------------

    def place(self, address: Address, ty: Type) -> Place:
        """The checked place of an element."""
        size = ty.size_bytes
        if isinstance(address, RegisterIndirect):
            return self._linear(address, size)
        base = address.base if isinstance(address, Indexed) else address
        assert isinstance(base, StaticAddress)
        space, start, limit, name = self._space(base)
        aligned = isinstance(base, BufferOffset | Shared)
        if self.index in self.trusted:
            return Place(space, start, self._offset(address, base), aligned)
        self._opened(f"const {self.d.types[Type.I64]} at = {self._offset(address, base)};")
        self.fail_if(f"at < 0 || at > {limit} - {size}", f"address out of range in {name}", GUARD)
        steady = base.offset % ty.alignment == 0 and (
            not isinstance(address, Indexed) or address.scale % ty.alignment == 0
        )
        if aligned and not steady:
            self.fail_if(f"(at & {ty.alignment - 1}) != 0", f"the address in {name} is not aligned to {ty.alignment}")
        return Place(space, start, "at", aligned)

    def _opened(self, line: str) -> None:
        """A brace up to the end of the instruction, and a variable in it."""
        self.do("{")
        self.depth += 1
        self.open += 1
        self.do(line)

    def _space(self, base: StaticAddress) -> tuple[str, str, str, str]:
        """The space, start, byte count and name of the memory that a static address lies in."""
        long = self.d.types[Type.I64]
        if isinstance(base, Shared):
            self.ask("shared")
            return SHARED, "shared", f"({long}){self.ask('shared_bytes')}", "shared memory"
        if isinstance(base, ClassOffset):
            start = f"{self.ask(CLASS_MEMORY)} + {base.class_id * CLASS_BYTES}"
            return GLOBAL, start, str(CLASS_BYTES), f"class {base.class_id}"
        assert isinstance(base, BufferOffset | PoolOffset)
        kind = "pool" if isinstance(base, PoolOffset) else "buffer"
        return GLOBAL, f"b_{base.handle}", f"({long})n_{base.handle}", f"{kind} '{base.handle}'"

    def _offset(self, address: Address, base: StaticAddress) -> str:
        """The byte offset of an access, in 64 bits."""
        if not isinstance(address, Indexed):
            return str(base.offset)
        if self.index in self.access and isinstance(base, BufferOffset):
            found = self._placed(self.access[self.index])
            if found is not None:
                return found
        long = self.d.types[Type.I64]
        index = self.read(address.index)
        ty = Type.U64 if address.index.index == GLOBAL_LANE else self.type_of(address.index)
        if ty.bits == 64 and address.index.index != GLOBAL_LANE and self.index not in self.trusted:
            far, word = far_index(address.scale), self.d.types[Type.U64]
            shifted, width = (f"({word}){index} + {far}", 2 * far) if ty.is_signed else (index, far)
            self.fail_if(f"{shifted} > {width}", f"address out of range: {address}")
        steps = f"({long}){index} * {address.scale}" if address.scale > 1 else f"({long}){index}"
        return f"{steps} + {base.offset}" if base.offset else steps

    def _placed(self, access: Access) -> str | None:
        """The offset from counters and the lane's number; None where it depends on something else."""
        long, terms = self.d.types[Type.I64], []
        for atom, factor in access.place.terms:
            if atom == LANE_ATOM:
                value = LANE_NUMBER
            elif self.atoms.get(atom) in self.loops:
                value = f"k{self.atoms[atom]}"
            else:
                return None
            terms.append(f"({long}){value} * {factor}" if factor != 1 else f"({long}){value}")
        if access.place.constant or not terms:
            terms.append(str(access.place.constant))
        return " + ".join(terms)

    def _linear(self, address: RegisterIndirect, size: int) -> Place:
        long, value = self.d.types[Type.I64], self.read(address.register)
        self._opened(f"const {long} at = ({long}){value};")
        self.fail_if(f"at < 0 || at >= {CLASS_MEMORY_BYTES}", "address out of range of the class memory")
        self.fail_if(f"at % {CLASS_BYTES} > {CLASS_BYTES - size}", "address out of range in class memory", GUARD)
        return Place(GLOBAL, self.ask(CLASS_MEMORY), "at", aligned=False)

    # --- atomics ------------------------------------------------------------------------------------

    def _do_ATOM(self, i: Instruction) -> None:
        """A loop of compare and exchange serves every operation and type; small ones lie in a word of 32 bits."""
        from eshkol.atlas.table import ROWS

        d, ty, value = self.d, i.ty, self.read(i.src)
        place = self.place(i.address, ty)
        bits = max(ty.bits, 32)
        word, small = d.unsigned(bits), ty.bits < 32
        offset = f"(({place.offset}) & ~3)" if small else place.offset
        pointer = d.pointer(place.space, word, volatile=True)
        self._opened(f"{pointer} cell = ({pointer})({place.base} + {offset});")
        self.do(f"{word} seen, old = *cell;")
        self.do(f"{d.type(ty)} now;")
        if small:
            self.do(f"const {word} shift = ({word})(({place.offset}) & 3) * 8;")
        self.begin("do")
        self.do("seen = old;")
        narrow = f"({d.unsigned(ty.bits)})(seen >> shift)" if small else "seen"
        self.do(f"now = {d.cast_bits(ty, narrow)};")
        after = value
        if i.operation.value != "MOV":
            row = ROWS[i.operation.value]
            after = self.scalars.write(row(*(Register(k) for k in range(3))), ty, ["now", value], self.fail_if)
        self.do(f"const {d.type(ty)} then = {after};")
        new = d.cast_bits(Type[f"U{ty.bits}"], "then")
        if small:
            mask = (1 << ty.bits) - 1
            new = f"(seen & ~(({word}){mask} << shift)) | ({word}){new} << shift"
        self.do(f"old = {d.exchange(bits, place.space, 'cell', 'seen', new)};")
        self.end(" while (old != seen);")
        self.put(i.dst, ty, "now")

    # --- Atlas-specific -----------------------------------------------------------------------------

    def _neighbour(self, cls: Register, k: int) -> Place:
        ty, value = self.type_of(cls), self.read(cls)
        outside = f"{value} < 0 || {value} >= {CLASSES}" if ty.is_signed else f"{value} >= {CLASSES}"
        self.fail_if(outside, f"the class does not exist: classes are 0 to {CLASSES - 1}")
        self.scalars.used["neighbours"] = None
        long = self.d.types[Type.I64]
        self._opened(f"const {long} other = neighbours[{value} * {MAX_NEIGHBOURS} + {k}];")
        self.fail_if("other < 0", f"the class has no neighbour {k}")
        return Place(GLOBAL, self.ask(CLASS_MEMORY), f"other * {CLASS_BYTES}", aligned=False)

    def _do_NBRLoad(self, i: Instruction) -> None:
        self.put(i.dst, i.ty, self.at(self._neighbour(i.src, i.k), i.ty))

    def _do_NBRStore(self, i: Instruction) -> None:
        value = self.read(i.src)
        self.do(f"{self.at(self._neighbour(i.dst, i.k), i.ty)} = {value};")

    def _do_PhaseRead(self, i: Instruction) -> None:
        self.put(i.dst, Type.U32, f"({PHASE} + {PHASES - 8 * i.class_id % PHASES}) % {PHASES}")

    def _do_PhaseWrite(self, i: Instruction) -> None:
        long, value = self.d.types[Type.I64], self.read(i.src)
        rest = f"({long})({value} % {PHASES})" if self.type_of(i.src).bits > 8 else f"({long}){value}"
        self.do(f"{PHASE} = ({self.d.types[Type.U32]})(({rest} + {PHASES + 8 * i.class_id}) % {PHASES});")


def neighbour_table() -> list[int]:
    """The neighbours of every class one after another, -1 where there is none."""
    return [n for cls in range(CLASSES) for n in [*neighbours(cls), *[-1] * MAX_NEIGHBOURS][:MAX_NEIGHBOURS]]
