"""A lane's memory in WGSL, and the kernel around it: buffers of words, since there are neither bytes nor pointers.

Comes in: what `text/writer.py` walks over. Goes out: a module. A buffer is an array of 32-bit words; it is one of
atomics where something is written that may share its word with another lane's (elements of 8 and 16 bits, atomic
operations, memory in which nothing is aligned), since only exchanges leave the word's rest alone. Addresses have 32
bits: no buffer is larger than `LARGEST`. Sizes and scalars are words of one structure of uniforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES, CLASSES, MAX_NEIGHBOURS
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import GLOBAL as GLOBAL_LANE
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
)
from eshkol.atlas.program import ParamKind
from eshkol.atlas.types import Type
from eshkol.backends.lanes.ranges import LANE_ATOM, Access
from eshkol.backends.text.lane import LANE_NUMBER
from eshkol.backends.text.memory import CLASS_MEMORY, GUARD, PHASES, neighbour_table
from eshkol.backends.text.writer import Writer
from eshkol.backends.webgpu.dialect import LANES, SHARED_WORDS, Wgsl, is_long
from eshkol.backends.webgpu.scalars import WgslScalars
from eshkol.errors import BackendUnavailable

SHARED, STATUS = "shared_memory", "status"
LARGEST = (1 << 31) - 8  # bytes of a buffer, so that addresses of 32 bits tell what is outside
_NATIVE = {"ADD": "atomicAdd", "AND": "atomicAnd", "OR": "atomicOr", "XOR": "atomicXor", "MOV": "atomicExchange"}
_STORES = {"STG": "dst", "STS": "dst", "ATOM": "address"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an access goes: the sum of some words times factors, and a number, in bytes from the memory's start."""

    memory: str
    terms: tuple[tuple[str, int], ...]
    constant: int
    aligned: bool

    def in_units(self, unit: int) -> str:
        """The place in units of so many bytes, which it is a multiple of."""
        exact = all(factor % unit == 0 for _, factor in self.terms) and self.constant % unit == 0
        if not exact:
            return f"(({self.in_units(1)}) >> {unit.bit_length() - 1}u)"
        parts = []
        for value, factor in self.terms:
            times = factor // unit % (1 << 32)
            parts.append(value if times == 1 else f"{value} * {times}u")
        constant = self.constant // unit % (1 << 32)
        if constant or not parts:
            parts.append(f"{constant}u")
        return " + ".join(parts)


class WgslWriter(Writer):
    """Writes a kernel in WGSL."""

    register_instructions = WgslScalars
    d: Wgsl
    scalars: WgslScalars

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.functions: dict[str, str] = {}  # those of this kernel's memory
        self.atomic = self._shared_words()

    def _shared_words(self) -> frozenset[str]:
        """The memory in which lanes write parts of words."""
        found = {STATUS}
        for i in self.program.instructions:
            if i.op.name in _STORES:
                address = getattr(i, _STORES[i.op.name])
                if i.ty.bits < 32 or i.op.name == "ATOM" or not _is_aligned(address):
                    found.add(_memory(address))
            elif i.op.name == "PoolStore":
                found.add(f"b_{i.pool}")
            elif i.op.name == "NBRStore":
                found.add(CLASS_MEMORY)
        return frozenset(found)

    # --- registers and instructions -----------------------------------------------------------------

    def name(self, register: Register, ty: Type) -> str:
        name = f"{register}_{ty.name.lower()}"
        return name if name in self.variables else self.variable(self.d.type(ty), name)

    def read(self, register: Register) -> str:
        return f"vec2<u32>({LANE_NUMBER}, 0u)" if register.index == GLOBAL_LANE else super().read(register)

    def _compute(self, i: Instruction) -> None:
        self.scalars.in_loop = bool(self.loops)
        super()._compute(i)

    def fail_if(self, condition: str, message: str, hint: str | None = None, *given: object, **named: object) -> None:
        self.ask(STATUS)
        super().fail_if(condition, message, hint, *given, **named)  # type: ignore[arg-type]

    def _do_MemFence(self, i: Instruction) -> None:
        raise BackendUnavailable("WGSL has no MemFence: no order of accesses but at barriers", span=i.span)

    # --- loads and stores ---------------------------------------------------------------------------

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR:
            self.put(i.dst, i.ty, f"s_{param.name}")
        else:
            self._load(i.dst, i.src, i.ty)

    def _load(self, dst: Register, address: Address, ty: Type) -> None:
        self._get(dst, ty, self.at_place(address, ty))

    def _get(self, dst: Register, ty: Type, place: Place) -> None:
        self.d.type(ty)
        if place.aligned and ty.bits == 32:
            bits = self._word(place.memory, place.in_units(4))
        elif place.aligned and ty.bits > 32:
            bits = f"{self._loading(place.memory, ty)}({place.in_units(4)})"
        else:
            bits = f"{self._loading(place.memory, ty, place.aligned)}({place.in_units(1)})"
        self.put(dst, ty, self.d.of_bits(ty, bits))

    def _store(self, address: Address, src: Register, ty: Type) -> None:
        self._set(ty, self.read(src), self.at_place(address, ty))

    def _set(self, ty: Type, value: str, place: Place) -> None:
        bits = self.d.bits_of(ty, value)
        if place.aligned and ty.bits >= 32:
            if ty.bits == 32:
                self.do(self._put_word(place.memory, place.in_units(4), bits))
            else:
                self.do(f"{self._storing(place.memory, ty)}({place.in_units(4)}, {bits});")
        else:
            self.do(f"{self._storing(place.memory, ty, place.aligned)}({place.in_units(1)}, {bits});")

    def _word(self, memory: str, index: str) -> str:
        return f"atomicLoad(&{memory}[{index}])" if memory in self.atomic else f"{memory}[{index}]"

    def _put_word(self, memory: str, index: str, value: str) -> str:
        if memory in self.atomic:
            return f"atomicStore(&{memory}[{index}], {value});"
        return f"{memory}[{index}] = {value};"

    def _bits_type(self, ty: Type) -> str:
        return "u32" if ty.bits <= 32 else "vec2<u32>" if ty.bits == 64 else self.d.type(ty)

    def _words(self, ty: Type, value: str) -> list[str]:
        """The words of the bits of a value."""
        if ty.bits == 64:
            return [f"{value}.x", f"{value}.y"]
        return [f"{value}.w[{k}]" for k in range(ty.bits // 32)] if ty.is_wide else [value]

    def _loading(self, memory: str, ty: Type, aligned: bool = True) -> str:
        """The function that loads a value's bits: at a byte those of small types and unaligned ones, else at a word."""
        name = f"load{'' if aligned else '_bytes'}_{ty.bits}_{memory}"
        if name in self.functions:
            return name
        kind = self._bits_type(ty)
        self.functions[name] = ""
        if ty.bits < 32:
            if aligned or ty.bits == 8:
                word, mask = self._word(memory, "at >> 2u"), (1 << ty.bits) - 1
                body = f"  return ({word} >> ((at & 3u) * 8u)) & {mask}u;"
            else:
                byte = self._loading(memory, Type.U8)
                body = f"  return {byte}(at) | ({byte}(at + 1u) << 8u);"
        elif ty.bits == 32:
            half = self._loading(memory, Type.U16, aligned=False)
            body = f"  return {half}(at) | ({half}(at + 2u) << 16u);"
        else:
            inner = self._loading(memory, Type.U32, aligned=False) if not aligned else ""
            step = [f"at + {k if aligned else 4 * k}u" for k in range(ty.bits // 32)]
            loads = [self._word(memory, at) if aligned else f"{inner}({at})" for at in step]
            if ty.bits == 64:
                body = f"  return vec2<u32>({', '.join(loads)});"
            else:
                one = self._word(memory, "at + k") if aligned else f"{inner}(at + 4u * k)"
                body = (f"  var z = {kind}();\n  for (var k = 0u; k < {len(step)}u; k += 1u) {{ z.w[k] = {one}; }}\n"
                        "  return z;")  # fmt: skip
        self.functions[name] = f"fn {name}(at: u32) -> {kind} {{\n{body}\n}}"
        return name

    def _storing(self, memory: str, ty: Type, aligned: bool = True) -> str:
        """The function that stores a value's bits, as `_loading` has them."""
        name = f"store{'' if aligned else '_bytes'}_{ty.bits}_{memory}"
        if name in self.functions:
            return name
        self.functions[name] = ""
        if ty.bits < 32 and (aligned or ty.bits == 8):
            body = f"""\
  let shift = (at & 3u) * 8u;
  let rest = ~({(1 << ty.bits) - 1}u << shift);
  loop {{
    let seen = atomicLoad(&{memory}[at >> 2u]);
    if (atomicCompareExchangeWeak(&{memory}[at >> 2u], seen, (seen & rest) | (value << shift)).exchanged) {{ break; }}
  }}"""
        elif not aligned:
            inner = self._storing(memory, Type.U8)
            parts = []
            for k, word in enumerate(self._words(ty, "value")):
                parts += [
                    f"  {inner}(at + {4 * k + j}u, ({word} >> {8 * j}u) & 255u);" for j in range(min(4, ty.size_bytes))
                ]
            body = "\n".join(parts)
        else:
            words = self._words(ty, "value")
            body = "\n".join(f"  {self._put_word(memory, f'at + {k}u', word)}" for k, word in enumerate(words))
            if ty.is_wide:
                step = self._put_word(memory, "at + k", "z.w[k]")
                body = f"  var z = value;\n  for (var k = 0u; k < {len(words)}u; k += 1u) {{ {step} }}"
        self.functions[name] = f"fn {name}(at: u32, value: {self._bits_type(ty)}) {{\n{body}\n}}"
        return name

    # --- addresses ----------------------------------------------------------------------------------

    def at_place(self, address: Address, ty: Type) -> Place:
        """The checked place of an element."""
        size = ty.size_bytes
        if isinstance(address, RegisterIndirect):
            return self._anywhere(address, size)
        base = address.base if isinstance(address, Indexed) else address
        assert isinstance(base, StaticAddress)
        memory, start, limit, name = self._limits(base)
        aligned = isinstance(base, BufferOffset | Shared)
        terms, offset = self._terms(address, base)
        if self.index in self.trusted:
            return Place(memory, terms, offset, aligned)
        self._check(address, base, size, limit, name)
        place = Place(memory, terms, offset + start, aligned)
        self._opened(f"let at = {place.in_units(1)};")
        steady = base.offset % ty.alignment == 0 and (
            not isinstance(address, Indexed) or address.scale % ty.alignment == 0
        )
        if aligned and not steady:
            self.fail_if(f"(at & {ty.alignment - 1}u) != 0u", f"the address in {name} is not aligned to {ty.alignment}")
            return Place(memory, (("at", 1),), 0, aligned)
        return place if ty.bits >= 32 and aligned else Place(memory, (("at", 1),), 0, aligned)

    def _limits(self, base: StaticAddress) -> tuple[str, int, str, str]:
        """The memory that a static address lies in, where in it that begins, its bytes, and its name."""
        if isinstance(base, Shared):
            self.ask("shared")
            return SHARED, 0, self.ask("shared_bytes"), "shared memory"
        if isinstance(base, ClassOffset):
            return self.ask(CLASS_MEMORY), base.class_id * CLASS_BYTES, f"{CLASS_BYTES}u", f"class {base.class_id}"
        assert isinstance(base, BufferOffset | PoolOffset)
        kind = "pool" if isinstance(base, PoolOffset) else "buffer"
        return f"b_{base.handle}", 0, f"n_{base.handle}", f"{kind} '{base.handle}'"

    def _terms(self, address: Address, base: StaticAddress) -> tuple[tuple[tuple[str, int], ...], int]:
        """The place of an access: in counters and the lane's number where that is known, or by its index."""
        if not isinstance(address, Indexed):
            return (), base.offset
        if self.index in self.access and isinstance(base, BufferOffset):
            found = self._known(self.access[self.index])
            if found is not None:
                return found
        return ((self._index(address.index), address.scale),), base.offset

    def _index(self, index: Register) -> str:
        """The low word of an index."""
        if index.index == GLOBAL_LANE:
            return LANE_NUMBER
        value = self.read(index)
        return self.d.word_of(Type.U32 if index.is_special else self.type_of(index), value)

    def _known(self, access: Access) -> tuple[tuple[tuple[str, int], ...], int] | None:
        terms = []
        for atom, factor in access.place.terms:
            if atom == LANE_ATOM:
                value = LANE_NUMBER
            elif self.atoms.get(atom) in self.loops:
                loop = self.atoms[atom]
                iterations = self.program.instructions[loop].iterations
                ty = self.types_of(loop, iterations)[0] if isinstance(iterations, Register) else Type.U32
                value = self.d.word_of(ty, f"k{loop}")
            else:
                return None
            terms.append((value, factor))
        return tuple(terms), access.place.constant

    def _check(self, address: Address, base: StaticAddress, size: int, limit: str, name: str) -> None:
        """Fail where an access is not in its memory, whose bytes are fewer than 2³¹."""
        message = f"address out of range in {name}"
        if not isinstance(address, Indexed):
            self.fail_if(
                f"{limit} < {base.offset + size}u" if base.offset + size <= LARGEST else "true", message, GUARD
            )
            return
        ty = Type.U64 if address.index.index == GLOBAL_LANE else (
            Type.U32 if address.index.is_special else self.type_of(address.index)
        )  # fmt: skip
        low, conditions = self._index(address.index), []
        if base.offset > LARGEST:
            raise BackendUnavailable(f"the {self.d.name} backend has offsets up to {LARGEST}, not {base.offset}")
        if is_long(ty) and address.index.index != GLOBAL_LANE:
            high = f"{self.read(address.index)}.y"
            conditions.append(f"{high} != {f'bitcast<u32>(bitcast<i32>({low}) >> 31u)' if ty.is_signed else '0u'}")
        ahead, rest = divmod(base.offset, address.scale) if ty.is_signed else (0, base.offset)
        shifted = f"{low} + {ahead}u" if ahead else low
        room = rest + size
        most = f"({limit} - {room}u) / {address.scale}u" if address.scale > 1 else f"{limit} - {room}u"
        conditions += [f"{limit} < {room}u", f"{shifted} > {most}"]
        self.fail_if(" || ".join(conditions), message, GUARD)

    def _anywhere(self, address: RegisterIndirect, size: int) -> Place:
        ty = self.type_of(address.register)
        value = self.read(address.register)
        beyond = f"{value}.y != 0u || " if ty.bits == 64 else ""
        self._opened(f"let at = {self.d.word_of(ty, value)};")
        self.fail_if(f"{beyond}at >= {CLASS_MEMORY_BYTES}u", "address out of range of the class memory")
        self.fail_if(f"at % {CLASS_BYTES}u > {CLASS_BYTES - size}u", "address out of range in class memory", GUARD)
        return Place(self.ask(CLASS_MEMORY), (("at", 1),), 0, aligned=False)

    # --- atomics ------------------------------------------------------------------------------------

    def _do_ATOM(self, i: Instruction) -> None:
        """An atomic of WGSL where there is one; else a loop of compare and exchange, of small types within a word."""
        ty, value = i.ty, self.read(i.src)
        if ty.bits > 32:
            raise BackendUnavailable("the device has no ATOM of 64 bits", span=i.span)
        place = self.at_place(i.address, ty)
        operation = i.operation.value
        native = _NATIVE.get(operation) if ty.is_integer or operation == "MOV" else None
        if ty is Type.U32:
            native = {"MIN": "atomicMin", "MAX": "atomicMax"}.get(operation, native)
        bits = self.d.bits_of(ty, value)
        if native is not None and ty.bits == 32:
            found = f"{native}(&{place.memory}[{place.in_units(4)}], {bits})"
        else:
            found = f"{self._exchanging(place.memory, ty, operation)}({place.in_units(1)}, {bits})"
        self.put(i.dst, ty, self.d.of_bits(ty, found))

    def _exchanging(self, memory: str, ty: Type, operation: str) -> str:
        from eshkol.atlas.table import ROWS

        name = f"{operation.lower()}_{ty.name.lower()}_in_{memory}"
        if name in self.functions:
            return name
        after = "given_value"
        if operation != "MOV":
            row = ROWS[operation]
            after = self.scalars.write(row(*(Register(k) for k in range(3))), ty, ["now", after], self.fail_if)
        mask = (1 << ty.bits) - 1
        self.functions[name] = f"""\
fn {name}(at: u32, value: u32) -> u32 {{
  let shift = (at & 3u) * 8u;
  let given_value = {self.d.of_bits(ty, "value")};
  loop {{
    let seen = atomicLoad(&{memory}[at >> 2u]);
    let was = (seen >> shift) & {mask}u;
    let now = {self.d.of_bits(ty, "was")};
    let after = {after};
    let next = (seen & ~({mask}u << shift)) | ({self.d.bits_of(ty, "after")} << shift);
    if (atomicCompareExchangeWeak(&{memory}[at >> 2u], seen, next).exchanged) {{ return was; }}
  }}
  return 0u;
}}"""
        return name

    # --- Atlas-specific -----------------------------------------------------------------------------

    def _next_to(self, cls: Register, k: int) -> Place:
        ty, value = self.type_of(cls), self.read(cls)
        low = self.d.word_of(ty, value)
        beyond = f" || {value}.y != 0u" if ty.bits == 64 else ""
        self.fail_if(f"{low} >= {CLASSES}u{beyond}", f"the class does not exist: classes are 0 to {CLASSES - 1}")
        table = neighbour_table()
        self.functions["neighbours"] = (
            f"const neighbours = array<i32, {len(table)}>({', '.join(map(str, table))});\n\n"
            "fn neighbour_of(cls: u32, k: u32) -> i32 {\n  var table = neighbours;\n"
            f"  return table[cls * {MAX_NEIGHBOURS}u + k];\n}}"
        )
        self._opened(f"let other = neighbour_of({low}, {k}u);")
        self.fail_if("other < 0", f"the class has no neighbour {k}")
        return Place(self.ask(CLASS_MEMORY), (("u32(other)", CLASS_BYTES),), 0, aligned=False)

    def _do_NBRLoad(self, i: Instruction) -> None:
        self._get(i.dst, i.ty, self._next_to(i.src, i.k))

    def _do_NBRStore(self, i: Instruction) -> None:
        value = self.read(i.src)
        self._set(i.ty, value, self._next_to(i.dst, i.k))

    def _do_PhaseRead(self, i: Instruction) -> None:
        self.ask(STATUS)
        found = f"(atomicLoad(&status[1]) + {PHASES - 8 * i.class_id % PHASES}u) % {PHASES}u"
        self.put(i.dst, Type.U32, found)

    def _do_PhaseWrite(self, i: Instruction) -> None:
        self.ask(STATUS)
        ty, value = self.type_of(i.src), self.read(i.src)
        if ty.bits > 32:
            rest = f"rem_{ty.name.lower()}({value}, {self.d.constant(ty, PHASES)})"
        else:
            rest = f"{value} % {self.d.constant(Type.I32 if ty.is_signed else Type.U32, PHASES)}"
        low = self.d.word_of(Type.I32 if ty.is_signed and ty.bits <= 32 else ty, f"({rest})")
        self.do(f"atomicStore(&status[1], ({low} + {PHASES + 8 * i.class_id % PHASES}u) % {PHASES}u);")

    # --- the whole ----------------------------------------------------------------------------------

    def _parts(self, asked: Sequence[str], body: list[str]) -> list[str]:
        """Uniforms, buffers, functions, and the kernel."""
        d = self.d
        fields, told = ["zero", "blocks"], []
        for name in asked:
            if name not in (STATUS, CLASS_MEMORY, "shared"):
                fields.append(name)
                if name != "first":
                    told.append((f"given.{name}", name))
        for param in self.program.params:
            if param.kind is ParamKind.SCALAR:
                assert param.ty is not None
                self._refuse_wide(param)
                d.type(param.ty)
                names = [f"s_{param.name}"] if param.ty.bits <= 32 else [f"s_{param.name}_{k}" for k in range(2)]
                fields += names
                words = [f"given.{name}" for name in names]
                bits = words[0] if len(words) == 1 else f"vec2<u32>({', '.join(words)})"
                told.append((d.of_bits(param.ty, bits), f"s_{param.name}"))
            else:
                fields.append(f"n_{param.name}")
                told.append((f"given.n_{param.name}", f"n_{param.name}"))
        text = "\n".join([*body, *self.functions.values()])
        told = [(value, name) for value, name in told if any(name in line for line in body)]
        fault = [d.fault(max(1, len(self.layout.sites)))] if self.layout.sites else []
        kernel = d.kernel(told, body)
        head = [f"override {LANES}: u32 = 1u;"]
        if "shared" in asked:
            head.append(f"override {SHARED_WORDS}: u32 = 1u;")
            head.append(f"var<workgroup> {SHARED}: array<{self._element(SHARED)}, {SHARED_WORDS}>;")
        head.append("struct Given { " + ", ".join(f"{name}: u32" for name in fields) + " }")
        head.append("@group(0) @binding(0) var<uniform> given: Given;")
        for number, name in enumerate(self.bound(asked), 1):
            head.append(f"@group(0) @binding({number}) var<storage, read_write> {name}: array<{self._element(name)}>;")
        functions = [f for f in self.functions.values() if f]
        return ["\n".join(head), *d.functions(f"{text}\n{kernel}"), *functions, *fault, kernel]

    def _element(self, memory: str) -> str:
        return "atomic<u32>" if memory in self.atomic else "u32"

    def bound(self, asked: Sequence[str]) -> list[str]:
        """The memory that a kernel is given, in the order of its bindings."""
        given = [f"b_{p.name}" for p in self.program.params if p.kind is not ParamKind.SCALAR]
        return [*(name for name in (STATUS, CLASS_MEMORY) if name in asked), *given]


def _is_aligned(address: Address) -> bool:
    base = address.base if isinstance(address, Indexed) else address
    return isinstance(base, BufferOffset | Shared)


def _memory(address: Address) -> str:
    """The memory that an address lies in."""
    base = address.base if isinstance(address, Indexed) else address
    if isinstance(base, Shared):
        return SHARED
    return f"b_{base.handle}" if isinstance(base, BufferOffset | PoolOffset) else CLASS_MEMORY
