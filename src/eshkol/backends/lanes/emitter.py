"""LLVM text of Atlas values: types, constants, intrinsics, and the conversions of 16-bit floats.

What `llvm/text.py` has for every function, with Atlas' types: the code of lanes and the kernels of array instructions
are written with it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.types import Type
from eshkol.llvm.text import FunctionText, double, splat, vector

_FLOAT_NAMES = {Type.F16: "half", Type.BF16: "i16", Type.F32: "float", Type.F64: "double"}
_NAMES = {ty: _FLOAT_NAMES.get(ty) or f"i{ty.bits}" for ty in Type}


def llvm_type(ty: Type) -> str:
    """The LLVM type that holds a value. BF16 is kept as its 16 bits: few machines compute with it."""
    return _NAMES[ty]


def constant(ty: Type, value: int | float) -> str:
    """A constant of a type as LLVM text."""
    if ty.is_integer:
        return str(int(value))
    if ty.is_half:
        pattern = int(Immediate(ty, value).array().view(np.uint16)[0])
        return str(pattern) if ty is Type.BF16 else f"0xH{pattern:04X}"
    return double(float(value))


class Emitter(FunctionText):
    """The body of one function under construction."""

    def __init__(self, *, shifts_bf16: bool = False) -> None:
        super().__init__()
        self.shifts_bf16 = shifts_bf16  # see `Target.shifts_bf16`
        self.declared: dict[str, str] = {}  # intrinsics and runtime functions used: name → declaration
        self.known: dict[str, str] = {}  # what cells hold here, and what was loaded of the launch record
        self._cells: dict[str, list[int]] = {}  # cells → lines that store into them
        self._read: set[str] = set()  # cells that are loaded somewhere

    # --- cells ---------------------------------------------------------------------------------------

    def cell(self, kind: str, hint: str = "") -> str:
        """A slot that nothing but `load` and `store` touches: what it holds is known until control comes together."""
        name = self.slot(kind, hint)
        self._cells[name] = []
        return name

    def load(self, kind: str, place: str, more: str = "", space: int = 0) -> str:
        if place not in self._cells:
            return super().load(kind, place, more, space)
        found = self.known.get(place)
        if found is None:
            self._read.add(place)
            found = self.known[place] = self.op(f"load {kind}, ptr {place}")
        return found

    def store(self, kind: str, value: int | str, place: str, more: str = "", space: int = 0) -> None:
        if place in self._cells:
            self._cells[place].append(len(self.lines))
            self.known[place] = str(value)
        super().store(kind, value, place, more, space)

    def place(self, label: str) -> None:
        super().place(label)
        self.known.clear()

    def place_behind(self, label: str) -> None:
        """The block of this label, to which control comes only from where the last one ended: all is known there."""
        if self.lines and self.lines[-1] == f"  br label %{label}":
            self.lines.pop()
        else:
            super().place(label)

    def defined(self, head: str, end: Iterable[str] = (), begin: Iterable[str] = ()) -> str:
        """The function without cells that are never loaded."""
        unread = self._cells.keys() - self._read
        needless = {line for name in unread for line in self._cells[name]}
        self.slots = [line for line in self.slots if line.split(" ", 3)[2] not in unread]
        self.lines = [line for k, line in enumerate(self.lines) if k not in needless]
        return super().defined(head, end, begin)

    def call(self, result: str, function: str, *arguments: tuple[str, str], flags: str = "") -> str:
        """A call of an intrinsic or runtime function by name, with (type, value) arguments and fast-math flags."""
        types = ", ".join(ty for ty, _ in arguments)
        self.declared[function] = f"declare {result} @{function}({types})"
        given = ", ".join(f"{ty} {value}" for ty, value in arguments)
        text = f"call {flags}{' ' * bool(flags)}{result} @{function}({given})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def intrinsic(self, name: str, ty: str, *values: str, flags: str = "") -> str:
        """An overloaded intrinsic whose operands and result have one type, which may be a vector."""
        lanes, single = ty[1:-1].split(" x ") if ty.startswith("<") else ("", ty)
        short = {"float": "f32", "double": "f64", "half": "f16"}.get(single, single)
        short = f"v{lanes}{short}" if lanes else short
        return self.call(ty, f"llvm.{name}.{short}", *((ty, v) for v in values), flags=flags)

    # --- 16-bit floats -----------------------------------------------------------------------------

    def widen(self, value: str, ty: Type, lanes: int = 1) -> str:
        """A 16-bit float (or a vector of them) as float; anything else as it is."""
        if not ty.is_half:
            return value
        half, i16, i32, f32 = (vector(t, lanes) for t in ("half", "i16", "i32", "float"))
        if ty is Type.F16:
            return self.op(f"fpext {half} {value} to {f32}")
        if lanes == 1 and not self.shifts_bf16:
            return self.op(f"fpext bfloat {self.op(f'bitcast i16 {value} to bfloat')} to float")
        bits = self.op(f"shl {i32} {self.op(f'zext {i16} {value} to {i32}')}, {splat('i32', 16, lanes)}")
        return self.op(f"bitcast {i32} {bits} to {f32}")

    def packed(self, low: str, high: str, ty: Type) -> str:
        """Two floats rounded to 16-bit floats, in the halves of a word."""
        halves = [self.narrow(value, ty) for value in (low, high)]
        if ty is Type.F16:
            halves = [self.op(f"bitcast half {half} to i16") for half in halves]
        first, second = (self.op(f"zext i16 {half} to i32") for half in halves)
        return self.op(f"or i32 {first}, {self.op(f'shl i32 {second}, 16')}")

    def narrow(self, value: str, ty: Type, lanes: int = 1) -> str:
        """A float (or a vector of them) rounded to a 16-bit float; anything else as it is."""
        if not ty.is_half:
            return value
        i1, half, i16, i32, f32 = (vector(t, lanes) for t in ("i1", "half", "i16", "i32", "float"))
        if ty is Type.F16:
            return self.op(f"fptrunc {f32} {value} to {half}")
        bits, sixteen = self.op(f"bitcast {f32} {value} to {i32}"), splat("i32", 16, lanes)
        odd = self.op(f"and {i32} {self.op(f'lshr {i32} {bits}, {sixteen}')}, {splat('i32', 1, lanes)}")
        step = self.op(f"add {i32} {odd}, {splat('i32', 32767, lanes)}")
        rounded = self.op(f"add {i32} {bits}, {step}")
        is_nan = self.op(f"fcmp uno {f32} {value}, {value}")
        # keep a NaN a NaN: rounding could carry it to infinity
        quiet = self.op(f"or {i32} {bits}, {splat('i32', 4194304, lanes)}")
        chosen = self.op(f"select {i1} {is_nan}, {i32} {quiet}, {i32} {rounded}")
        return self.op(f"trunc {i32} {self.op(f'lshr {i32} {chosen}, {sixteen}')} to {i16}")
