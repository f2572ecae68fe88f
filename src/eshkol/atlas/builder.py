"""`ProgramBuilder`: programs from Python, one method per row of the table.

`builder.fma(dst, a, b, c)` exists because the table has a row FMA. Beside these derived methods there are
fresh registers, predicates and labels, structured loops and conditions, and typed constants.
Extensions write their expansions with the same builder (see `expand.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES
from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import (
    LANE,
    PREDICATES,
    Address,
    Immediate,
    Indexed,
    Label,
    Predicate,
    Register,
    RegisterIndirect,
    far_index,
)
from eshkol.atlas.program import Param, ParamKind, Program, is_name
from eshkol.atlas.table import ROWS
from eshkol.atlas.table.rows import METHODS
from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span


class ProgramBuilder:
    """Collects instructions, labels and parameters; `build()` gives the program."""

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.params: list[Param] = []
        self.entry: str | None = None
        self.metadata: dict[str, str] = {}
        self.span: Span | None = None  # given to instructions that bring none
        self._taken_registers = 0  # those in use, as bits
        self._taken_predicates = 0
        self._taken_names: set[str] = set()
        self._types: dict[Register, Type] = {}

    def __getattr__(self, method: str) -> Callable[..., ProgramBuilder]:
        opcode = METHODS.get(method)
        if opcode is None:
            raise AttributeError(f"no instruction has the builder method '{method}'")
        return lambda *args, **named: self.emit(opcode(*args, **named))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *METHODS]

    # --- what a program is made of ---------------------------------------------------------------

    def add(self, *operands: Any, **named: Any) -> ProgramBuilder:
        """Append an instruction; or, given three registers, append the instruction ADD."""
        if len(operands) == 1 and isinstance(operands[0], Instruction):
            return self.emit(operands[0])
        return self.emit(ROWS["ADD"](*operands, **named))

    def emit(self, instruction: Instruction) -> ProgramBuilder:
        """Append an instruction."""
        if instruction.span is None and self.span is not None:
            instruction = replace(instruction, span=self.span)
        self._take(instruction)
        self.instructions.append(instruction)
        return self

    def _take(self, instruction: Instruction) -> None:
        touched = instruction.touched
        self.take(*touched.slots_read, *touched.slots_written)

    def take(self, *operands: Register | Predicate) -> None:
        """Keep registers and predicates from being handed out."""
        for operand in operands:
            if isinstance(operand, Register):
                self._taken_registers |= 1 << operand.index
            else:
                self._taken_predicates |= 1 << operand.index

    def buffer(self, name: str, ty: Type, count: int | None = None) -> Param:
        """Declare a buffer parameter."""
        return self.declare(Param(name, ParamKind.BUFFER, ty, count))

    def scalar(self, name: str, ty: Type) -> Param:
        """Declare a scalar parameter; LDG from its address reads it."""
        return self.declare(Param(name, ParamKind.SCALAR, ty))

    def pool(self, name: str) -> Param:
        """Declare a pool parameter."""
        return self.declare(Param(name, ParamKind.POOL))

    def declare(self, param: Param) -> Param:
        if any(p.name == param.name for p in self.params):
            raise IsaError(f"two parameters are named '{param.name}'", span=self.span)
        self.params.append(param)
        return param

    def reserve(self, program: Program) -> None:
        """Keep fresh registers, predicates and labels clear of everything a program uses."""
        self._taken_names.update(program.labels)
        for instruction in program.instructions:
            self._take(instruction)

    def reg(self, ty: Type | None = None) -> Register:
        """A register that nothing uses yet, noted as holding `ty` where that is said."""
        taken = self._taken_registers
        free = ~taken & (taken + 1)  # the lowest bit that is not set
        if free >= 1 << LANE:
            raise IsaError("the program needs more than the 252 general registers", span=self.span)
        self._taken_registers = taken | free
        register = Register(free.bit_length() - 1)
        if ty is not None:
            self._types[register] = ty
        return register

    def pred(self) -> Predicate:
        """A predicate that nothing uses yet."""
        taken = self._taken_predicates
        free = ~taken & (taken + 1)
        if free >= 1 << PREDICATES:
            raise IsaError("the program needs more than the 16 predicates", span=self.span)
        self._taken_predicates = taken | free
        return Predicate(free.bit_length() - 1)

    def release(self, *operands: Register | Predicate) -> None:
        """Let fresh registers and predicates be handed out again."""
        for operand in operands:
            if isinstance(operand, Register):
                self._taken_registers &= ~(1 << operand.index)
                self._types.pop(operand, None)
            else:
                self._taken_predicates &= ~(1 << operand.index)

    @contextmanager
    def scratch(self, types: Mapping[Register, Type]) -> Iterator[None]:
        """Within it these registers have these types; what is handed out inside is free again afterwards."""
        with self.passing():
            self._types.update(types)
            yield

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Registers and predicates handed out within it are free again afterwards."""
        saved = self._taken_registers, self._taken_predicates, dict(self._types)
        yield
        self._taken_registers, self._taken_predicates, self._types = saved

    def type_of(self, register: Register) -> Type:
        """The type noted for a register (by `reg(ty)`, `constant`, or an expansion's analysis)."""
        ty = self._types.get(register)
        if ty is None:
            raise IsaError(
                f"the type of {register} is not known here", span=self.span,
                hint="it must hold one type on every path to this instruction",
            )  # fmt: skip
        return ty

    def constant(self, ty: Type, value: int | float) -> Register:
        """A fresh register that holds a constant, loaded here."""
        register = self.reg(ty)
        self.mov_imm(register, Immediate(ty, value))
        return register

    # --- control flow ----------------------------------------------------------------------------

    def label(self, hint: str = "L") -> Label:
        """A label name that nothing uses yet; `place` puts it."""
        number = 0
        while (name := f"{hint}{number}") in self._taken_names or name in self.labels:
            number += 1
        self._taken_names.add(name)
        return Label(name)

    def place(self, label: Label | str) -> Label:
        """Put a label before the next instruction."""
        name = label if isinstance(label, str) else label.name
        if not is_name(name):
            raise IsaError(
                f"'{name}' cannot name a label",
                span=self.span,
                hint="use letters, digits and _; not r1 or p1",
            )
        if name in self.labels:
            raise IsaError(f"the label '{name}' stands in two places", span=self.span)
        self.labels[name] = len(self.instructions)
        return Label(name)

    @contextmanager
    def loop(self, iterations: int | Register, ty: Type = Type.U32) -> Iterator[Register]:
        """`with b.loop(n) as i:` runs the block with i = 0 … n-1; `ty` is the type of a register count."""
        counter = self.reg(ty)
        self.emit(ROWS["LOOP"](counter, iterations))
        yield counter
        self.emit(ROWS["ENDLOOP"]())

    @contextmanager
    def when(self, pred: Predicate) -> Iterator[None]:
        """`with b.when(p):` runs the block in the lanes where p holds."""
        inside, after = self.label("then"), self.label("after")
        self.bra(inside, pred)
        self.bra(after)
        self.place(inside)
        yield
        self.place(after)

    # --- array elements, for expansions ----------------------------------------------------------

    def element(self, address: Address, index: Register, ty: Type) -> Address:
        """The address of element `index` (U32) of the array of `ty` that starts at `address`.

        Where the array starts by a register the address is computed in 64 bits, and a start that is too far for
        them is first brought to where every element is surely out of range: nothing wraps into memory.
        """
        if not isinstance(address, Indexed | RegisterIndirect):
            return address.at(index, ty.size_bytes)
        at = self.reg()
        with self.passing():
            if isinstance(address, RegisterIndirect):
                self._linear_element(at, address.register, index, ty.size_bytes)
            else:
                self._indexed_element(at, address, index, ty.size_bytes)
        return RegisterIndirect(at) if isinstance(address, RegisterIndirect) else Indexed(address.base, at, 1)

    def _indexed_element(self, at: Register, address: Indexed, index: Register, size: int) -> None:
        """at = start × scale + index × size, in I64: an index may be negative where the base has an offset."""
        source, far = self.type_of(address.index), far_index(address.scale)
        start = address.index
        if source.bits == 64:
            start = self.reg(source)
            self.min(start, address.index, self.constant(source, far))
            if source.is_signed:
                self.max(start, start, self.constant(source, -far))
        start = self._converted(start, source, Type.I64)
        self.mul(at, start, self.constant(Type.I64, address.scale))
        self.fma(at, self._converted(index, Type.U32, Type.I64), self.constant(Type.I64, size), at)

    def _linear_element(self, at: Register, start: Register, index: Register, size: int) -> None:
        """at = start + index × size, in U64, where a negative start is far out of range.

        An array may not cross classes, though its elements could each be read in the next one: they are moved out of
        class memory, by as many times its size as there are classes in between.
        """
        first, next_class = self.reg(Type.U64), self.reg(Type.U64)
        memory, class_bytes = self.constant(Type.U64, CLASS_MEMORY_BYTES), self.constant(Type.U64, CLASS_BYTES)
        self.min(first, self._converted(start, self.type_of(start), Type.U64), memory)
        self.fma(at, self._converted(index, Type.U32, Type.U64), self.constant(Type.U64, size), first)
        self.div(next_class, at, class_bytes)
        self.div(first, first, class_bytes)
        self.sub(next_class, next_class, first)
        self.fma(at, next_class, memory, at)

    def _converted(self, register: Register, source: Type, target: Type) -> Register:
        if source is target:
            return register
        converted = self.reg(target)
        self.cvt(source, target, converted, register)
        return converted

    def build(self) -> Program:
        """The program. It is not validated yet; `validate` and every backend do that."""
        return Program(tuple(self.instructions), self.labels, tuple(self.params), self.entry, self.name, self.metadata)
