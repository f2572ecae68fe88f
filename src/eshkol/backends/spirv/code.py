"""The instructions of a function: conversions, arithmetic and choices of values, as C means them.

Comes in: values. Goes out: words of instructions in `out`, and the values that they make. Nothing is fused: products
and sums carry the decoration that forbids it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from eshkol.backends.spirv.module import NO_CONTRACTION, Module, Op, Space, members
from eshkol.backends.spirv.types import BOOL, INT, UINT, ULONG, CType, Kind, Value, common, promoted

_ARITHMETIC = {
    "+": (Op.IAdd, Op.FAdd), "-": (Op.ISub, Op.FSub), "*": (Op.IMul, Op.FMul), "&": (Op.BitwiseAnd, None),
    "|": (Op.BitwiseOr, None), "^": (Op.BitwiseXor, None),
}  # fmt: skip
_SIGNED = {"/": (Op.UDiv, Op.SDiv, Op.FDiv), "%": (Op.UMod, Op.SRem, None)}
_COMPARED = {
    "==": (Op.IEqual, Op.IEqual, Op.FOrdEqual), "!=": (Op.INotEqual, Op.INotEqual, Op.FUnordNotEqual),
    "<": (Op.ULessThan, Op.SLessThan, Op.FOrdLessThan), ">": (Op.UGreaterThan, Op.SGreaterThan, Op.FOrdGreaterThan),
    "<=": (Op.ULessThanEqual, Op.SLessThanEqual, Op.FOrdLessThanEqual),
    ">=": (Op.UGreaterThanEqual, Op.SGreaterThanEqual, Op.FOrdGreaterThanEqual),
}  # fmt: skip
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<<": lambda a, b: a << (b & 63),
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def wrapped(value: int, ty: CType) -> int:
    """A number as a type of integers has it."""
    value &= (1 << ty.bits) - 1
    return value - (1 << ty.bits) if ty.signed and value >> (ty.bits - 1) else value


class Code:
    """A function under construction, as far as values go."""

    def __init__(self, module: Module) -> None:
        self.m = module
        self.out: list[int] = []
        self.block = 0  # the label of the block that is written; 0 behind its end
        self.risky = 0  # how often something was written that must not run where C would not

    # --- words --------------------------------------------------------------------------------------

    def type_id(self, ty: CType) -> int:
        """The type of values of a C type."""
        m, kind = self.m, ty.kind
        if kind is Kind.BOOL:
            return m.truth()
        if kind is Kind.VOID:
            return m.void()
        if kind is Kind.FLOAT:
            return m.real(ty.bits)
        if kind is Kind.ARRAY:
            return m.array(self.type_id(ty.pointee), ty.count)
        if kind is Kind.STRUCT:
            return members(m, [m.array(m.integer(64), ty.count)], f"w{ty.bits}")
        return m.integer(ty.held)

    def do(self, op: Op, *operands: int) -> None:
        self.m.put(self.out, op, *operands)

    def make(self, op: Op, ty: CType, *operands: int) -> Value:
        """A value of a type by an instruction."""
        return Value(ty, self.made(op, self.type_id(ty), *operands))

    def made(self, op: Op, type_id: int, *operands: int) -> int:
        found = self.m.fresh()
        self.m.put(self.out, op, type_id, found, *operands)
        return found

    def extended(self, which: int, ty: CType, *operands: Value) -> Value:
        """A function of GLSL.std.450."""
        return self.make(Op.ExtInst, ty, self.m.extended, which, *(self.id(v) for v in operands))

    def id(self, value: Value) -> int:
        """The number of a value; a constant gets one now."""
        if not value.id:
            assert value.constant is not None
            value.id = self._constant(value.ty, value.constant)
        return value.id

    def _constant(self, ty: CType, value: int | float) -> int:
        if ty.kind is Kind.BOOL:
            return self.m.typed(Op.ConstantTrue if value else Op.ConstantFalse, self.m.truth())
        if ty.kind is Kind.FLOAT:
            kinds = ("<f", "<I") if ty.bits == 32 else ("<d", "<Q")
            (value,) = struct.unpack(kinds[1], struct.pack(kinds[0], value))
        return self.m.bits(self.type_id(ty), ty.held, int(value))

    # --- blocks -------------------------------------------------------------------------------------

    def label(self, name: int) -> None:
        """Begin a block."""
        self.do(Op.Label, name)
        self.block = name

    def leave(self, op: Op, *operands: int) -> None:
        """End a block, unless that has been done."""
        if self.block:
            self.do(op, *operands)
            self.block = 0

    def revive(self) -> None:
        """Behind the end of a block comes another, that nothing leads to."""
        if not self.block:
            self.label(self.m.fresh())

    # --- conversions --------------------------------------------------------------------------------

    def convert(self, value: Value, ty: CType) -> Value:
        """A value as another type."""
        source = value.ty
        if source == ty or Kind.STRUCT in (source.kind, ty.kind):
            return value
        if ty.kind is Kind.BOOL:
            if value.constant is not None:
                return Value(ty, constant=int(value.constant != 0))
            return self.compare("!=", value, Value(source, constant=0))
        if source.kind is Kind.BOOL:
            one, zero = (Value(ty, constant=k) for k in (1, 0))
            return self.make(Op.Select, ty, self.id(value), self.id(one), self.id(zero))
        if value.constant is not None and Kind.POINTER not in (source.kind, ty.kind):
            return self._folded_conversion(value, ty)
        if ty.kind is Kind.FLOAT:
            if source.kind is Kind.FLOAT:
                return self.make(Op.FConvert, ty, value.id)
            return self.make(Op.ConvertSToF if source.signed else Op.ConvertUToF, ty, value.id)
        if source.kind is Kind.FLOAT:
            wide = CType(Kind.INT, max(ty.bits, 32), ty.signed)
            found = self.make(Op.ConvertFToS if ty.signed else Op.ConvertFToU, wide, value.id)
            return self.narrowed(found, ty)
        found_id = self.id(value)
        if source.held != ty.held:
            op = Op.SConvert if source.signed and ty.held > source.held else Op.UConvert
            found_id = self.made(op, self.m.integer(ty.held), found_id)
        fits = source.bits < ty.bits and (ty.signed or not source.signed)
        found = Value(ty, found_id)
        return found if fits or ty.kind is Kind.POINTER else self.narrowed(found, ty)

    def _folded_conversion(self, value: Value, ty: CType) -> Value:
        constant = value.constant
        assert constant is not None
        if ty.kind is Kind.FLOAT:
            return Value(ty, constant=float(constant))
        return Value(ty, constant=wrapped(int(constant), ty))

    def narrowed(self, value: Value, ty: CType) -> Value:
        """An integer in a word, extended as a narrower type says."""
        if ty.bits >= 32:
            return Value(ty, value.id)
        if not ty.signed:
            mask = self.m.word((1 << ty.bits) - 1)
            return self.make(Op.BitwiseAnd, ty, value.id, mask)
        by = self.m.word(32 - ty.bits)
        high = self.made(Op.ShiftLeftLogical, self.m.integer(32), value.id, by)
        return self.make(Op.ShiftRightArithmetic, ty, high, by)

    def bits_as(self, value: Value, ty: CType) -> Value:
        """The same bits as another type of that width."""
        if ty.bits < 32:
            return self.narrowed(Value(ty, self.id(value)), ty)
        if value.ty.kind is not Kind.FLOAT and ty.kind is not Kind.FLOAT:
            return Value(ty, self.id(value))
        return self.make(Op.Bitcast, ty, self.id(value))

    # --- operators ----------------------------------------------------------------------------------

    def binary(self, sign: str, left: Value, right: Value) -> Value:
        """An operator of two values."""
        if left.ty.kind is Kind.POINTER:
            return self.moved(left, right, negative=sign == "-")
        if sign in _COMPARED:
            return self.compare(sign, left, right)
        if sign in ("<<", ">>"):
            return self._shifted(sign, left, right)
        ty = common(left.ty, right.ty)
        left, right = self.convert(left, ty), self.convert(right, ty)
        if ty.kind is Kind.INT and left.constant is not None and right.constant is not None and sign in _FOLDED:
            return Value(ty, constant=wrapped(_FOLDED[sign](int(left.constant), int(right.constant)), ty))
        if sign in _SIGNED:
            self.risky += ty.kind is Kind.INT
            op = _SIGNED[sign][2 if ty.kind is Kind.FLOAT else int(ty.signed)]
        else:
            op = _ARITHMETIC[sign][ty.kind is Kind.FLOAT]
        assert op is not None
        found = self.make(op, ty, self.id(left), self.id(right))
        if ty.kind is Kind.FLOAT:
            self.m.decorate(found.id, NO_CONTRACTION)
        return found

    def _shifted(self, sign: str, left: Value, right: Value) -> Value:
        ty = promoted(left.ty)
        left = self.convert(left, ty)
        if sign == "<<" and left.constant is not None and right.constant is not None:
            return Value(ty, constant=wrapped(_FOLDED[sign](int(left.constant), int(right.constant)), ty))
        right = self.convert(right, promoted(right.ty))
        right_shift = Op.ShiftRightArithmetic if ty.signed else Op.ShiftRightLogical
        return self.make(
            Op.ShiftLeftLogical if sign == "<<" else right_shift, ty, self.id(left), self.id(right)
        )  # fmt: skip

    def compare(self, sign: str, left: Value, right: Value) -> Value:
        ty = common(left.ty, right.ty)
        left, right = self.convert(left, ty), self.convert(right, ty)
        op = _COMPARED[sign][2 if ty.kind is Kind.FLOAT else int(ty.signed)]
        return self.make(op, BOOL, self.id(left), self.id(right))

    def moved(self, pointer: Value, by: Value, *, negative: bool = False) -> Value:
        """A pointer so many elements on."""
        held = UINT if pointer.ty.shared else ULONG
        steps = self.convert(self.convert(by, INT) if by.ty.kind is Kind.BOOL else by, held)
        size = pointer.ty.pointee.size
        if size > 1:
            steps = self.binary("*", steps, Value(held, constant=size))
        return self.make(Op.ISub if negative else Op.IAdd, pointer.ty, pointer.id, self.id(steps))

    def negated(self, value: Value) -> Value:
        ty = promoted(value.ty)
        value = self.convert(value, ty)
        if value.constant is not None:
            constant = -value.constant
            return Value(ty, constant=constant if ty.kind is Kind.FLOAT else wrapped(int(constant), ty))
        return self.make(Op.FNegate if ty.kind is Kind.FLOAT else Op.SNegate, ty, value.id)

    def inverted(self, value: Value) -> Value:
        ty = promoted(value.ty)
        value = self.convert(value, ty)
        if value.constant is not None:
            return Value(ty, constant=wrapped(~int(value.constant), ty))
        return self.make(Op.Not, ty, value.id)

    def refuted(self, value: Value) -> Value:
        """Not true."""
        return self.make(Op.LogicalNot, BOOL, self.id(self.convert(value, BOOL)))

    # --- choices ------------------------------------------------------------------------------------

    def chosen(self, condition: Value, arms: Sequence[Callable[[], Value]], ty: CType | None = None) -> Value:
        """One of two values; what an arm must not do unasked is done in a block of its own."""
        start, truth = self.block, self.id(self.convert(condition, BOOL))
        before, outer = self.risky, self.out
        taken: list[tuple[list[int], int, Value, int]] = []
        for arm in arms:
            label, self.out = self.m.fresh(), []
            self.block = label
            value = arm()
            taken.append((self.out, label, value, self.block))
        self.out, self.block = outer, start
        if ty is None:
            kinds = [value.ty for _, _, value, _ in taken]
            ty = kinds[0] if kinds[0] == kinds[1] else common(kinds[0], kinds[1])
        finished = []
        for code, label, value, end in taken:  # both become one type, each where it was made
            self.out, self.block = code, end
            finished.append((code, label, self.id(self.convert(value, ty)), end))
        self.out, self.block = outer, start
        if self.risky == before:
            for code, _, _, _ in finished:
                outer.extend(code)
            return self.make(Op.Select, ty, truth, *(value for _, _, value, _ in finished))
        merge = self.m.fresh()
        self.do(Op.SelectionMerge, merge, 0)
        self.leave(Op.BranchConditional, truth, finished[0][1], finished[1][1])
        for code, label, _, _ in finished:
            self.do(Op.Label, label)
            outer.extend(code)
            self.do(Op.Branch, merge)
        self.label(merge)
        return self.make(Op.Phi, ty, *(word for _, _, value, end in finished for word in (value, end)))

    def variable(self, ty: CType, into: list[int], start: int | None = None) -> int:
        """A variable of the function, declared among others."""
        found = self.m.fresh()
        pointer = self.m.pointer(Space.Function, self.type_id(ty))
        self.m.put(into, Op.Variable, pointer, found, Space.Function, *([] if start is None else [start]))
        return found
