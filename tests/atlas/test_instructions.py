"""Every instruction on every type it accepts, on the reference, against an independent oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import oracle
import pytest

from batches import in_batches, of_each
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Instruction, Kind, Opcode, Values
from eshkol.atlas.operands import Condition, Immediate, ReduceOperation, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import ALL_TYPES, Type, decode, encode
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed, IsaError

ARITHMETIC = [op for op in ROWS.values() if isinstance(op.meaning, Values) and oracle.knows(op.name)]
CASES = [(op, ty) for op in ARITHMETIC for ty in Type if ty in op.types]
OTHER_VALUES = {
    "ACC", "MOV", "MOV_IMM", "CVT", "BITCAST", "PACK", "SETcc", "SEL", "ClsGet", "MIRROR", "UnityTest", "BoundMap",
}  # tested below  # fmt: skip


def test_oracle_covers_every_register_instruction() -> None:
    rows = {op.name for op in ROWS.values() if isinstance(op.meaning, Values)}
    assert rows == {op.name for op in ARITHMETIC} | OTHER_VALUES


def run_register_op(
    op: Opcode | Callable[..., Instruction],
    ty: Type,
    columns: list[list],
    *,
    expanded: bool = False,
    out: Type | None = None,
) -> list:
    """Each operand column loaded, the instruction executed in one lane per row, the results read back."""
    backend, b, count = ReferenceBackend(expanded=expanded), ProgramBuilder(), len(columns[0])
    out = out or ty
    registers, params = [], {}
    for k, column in enumerate(columns):
        param = b.buffer(f"x{k}", ty)
        register = b.reg()
        b.ldg(ty, register, param.at(Register(255)))
        registers.append(register)
        params[f"x{k}"] = backend.array(to_array(column, ty), ty)
    result = b.reg()
    b.emit(op(result, *registers))
    b.stg(out, b.buffer("out", out).at(Register(255)), result)
    params["out"] = backend.allocate_typed(out, count)
    backend.execute(b.build(), LaunchConfig((1, 1, 1), (count, 1, 1)), params)
    return list(params["out"].read())


def operand_columns(op: Opcode, ty: Type) -> list[list]:
    arity = sum(f.kind is Kind.USE for f in op.fields)
    values = oracle.samples(ty)
    if arity == 1:
        rows = [(v,) for v in values]
    else:
        every = list(itertools.product(values, repeat=2)) if arity == 2 else []
        rng = np.random.default_rng(arity)
        picked = [tuple(values[k] for k in rng.integers(len(values), size=arity)) for _ in range(400)]
        rows = [*(every[k] for k in rng.permutation(len(every))[:600]), *picked][:1000]
    if op.name in ("DIV", "REM") and ty.is_integer:
        rows = [row for row in rows if row[1] != 0]
    if op.name in ("SHL", "SHR"):
        rows = [(a, n) for a, n in rows] + [(a, ty.bits - 1) for a in values]
    if op.name == "POW":  # exact powers of extreme pairs take the oracle too long
        rows = [row for row in rows if not (abs(row[0]) > 1e30 and 1 < abs(row[1]) < 1e30 and row[1] != int(row[1]))]
    return [list(column) for column in zip(*rows[:1000], strict=True)]


@in_batches("op, ty", CASES, ids=lambda case: f"{case[0].name}-{case[1].name}")
def test_register_instruction(op: Opcode, ty: Type) -> None:
    columns = operand_columns(op, ty)
    found = run_register_op(op, ty, columns)
    wanted = [oracle.expected(op.name, ty, row) for row in zip(*columns, strict=True)]
    if op.name in ("MIN", "MAX", "CLAMP"):  # the order of -0.0 and 0.0 is not defined
        found, wanted = [[v + 0 if v == 0 else v for v in values] for values in (found, wanted)]
    if op.name not in oracle.TOLERANCE:
        wrong = [
            k for k, (f, w) in enumerate(zip(oracle.bits(found, ty), oracle.bits(wanted, ty), strict=True)) if f != w
        ]
    else:
        apart = [oracle.places_apart(float(f), w, ty) for f, w in zip(found, wanted, strict=True)]
        wrong = [k for k, n in enumerate(apart) if n > oracle.TOLERANCE[op.name]]
    assert not wrong, [(tuple(c[k] for c in columns), found[k], wanted[k]) for k in wrong[:5]]


EXTENSIONS = [(op, ty) for op, ty in CASES if op.is_extension]


@in_batches("op, ty", EXTENSIONS, ids=lambda case: f"{case[0].name}-{case[1].name}")
def test_expansion_gives_the_same_bits(op: Opcode, ty: Type) -> None:
    """Bits for everything but the elementary functions and what is made of them: those, within EXPANDED_PLACES."""
    columns = operand_columns(op, ty)
    expanded = run_register_op(op, ty, columns, expanded=True)
    if op.name not in oracle.TOLERANCE:
        native = run_register_op(op, ty, columns)
        assert oracle.bits(native, ty) == oracle.bits(expanded, ty)
        return
    rows = list(zip(*columns, strict=True))
    wanted = [oracle.expected(op.name, ty, row) for row in rows]
    wrong = [k for k, w in enumerate(wanted) if not _near(op.name, ty, rows[k], float(expanded[k]), w)]
    assert not wrong, [(rows[k], expanded[k], wanted[k]) for k in wrong[:5]]


EXPANDED_PLACES = 2  # what the expansion of an elementary function promises
COMPOSED_PLACES = 4  # and what a product with it adds: the factor's 2 places may count double in the product's binade


def _near(name: str, ty: Type, operands: tuple, found: float, wanted: float) -> bool:
    places = oracle.places_apart(found, wanted, ty)
    if name in oracle.FLOAT_RULES:
        return places <= EXPANDED_PLACES
    if places <= COMPOSED_PLACES:
        return True
    # 1 + erf cancels below 0: there GELU has the error of erf near -1, in places of 1, times |x| / 2.
    last_place_of_one = 2.0 ** -oracle.FRACTION_BITS[ty]
    return name == "GELU" and abs(found - wanted) <= EXPANDED_PLACES * last_place_of_one * abs(operands[0]) / 2


EQUAL_WIDTHS = [(a, b) for a, b in itertools.product(Type, repeat=2) if a.bits == b.bits and not a.is_wide]


@of_each("source, target", EQUAL_WIDTHS)
def test_bitcast_keeps_every_bit(source: Type, target: Type) -> None:
    patterns = np.random.default_rng(source.bits).integers(0, 256, (250, source.size_bytes), dtype=np.uint8)
    patterns = np.concatenate([patterns, encode(to_array(oracle.samples(source), source), source)])
    backend, b = ReferenceBackend(), ProgramBuilder()
    x, result = b.reg(), b.reg()
    b.ldg(source, x, b.buffer("x", source).at(Register(255)))
    b.bitcast(source, target, result, x)
    b.stg(target, b.buffer("out", target).at(Register(255)), result)
    out = backend.allocate_typed(target, len(patterns))
    params = {"x": backend.array(decode(patterns, source), source), "out": out}
    backend.execute(b.build(), LaunchConfig((1, 1, 1), (len(patterns), 1, 1)), params)
    assert encode(out.read(), target).tobytes() == patterns.tobytes()


@pytest.mark.parametrize(("source", "target"), [(Type.F32, Type.I64), (Type.U8, Type.I16), (Type.U128, Type.I128)])
def test_bitcast_refuses_other_widths(source: Type, target: Type) -> None:
    b = ProgramBuilder()
    b.bitcast(source, target, b.reg(), b.constant(source, 1))
    with pytest.raises(IsaError, match="the same width, of at most 64 bits"):
        validate(b.build())


@pytest.mark.parametrize("ty", Type, ids=str)
def test_mov_and_immediates(ty: Type) -> None:
    for value in oracle.samples(ty):
        b = ProgramBuilder()
        first, second = b.constant(ty, value), b.reg()
        b.mov(second, first)
        b.stg(ty, b.buffer("out", ty).address, second)
        backend = ReferenceBackend()
        out = backend.allocate_typed(ty, 1)
        backend.execute(b.build(), LaunchConfig(), {"out": out})
        assert oracle.bits(list(out.read()), ty) == oracle.bits([value], ty)


@pytest.mark.parametrize("condition", Condition, ids=str)
@of_each("ty", Type)
def test_comparison_and_select(condition: Condition, ty: Type) -> None:
    pairs = list(itertools.product(oracle.samples(ty, 6), repeat=2))[:1000]
    backend, b = ReferenceBackend(), ProgramBuilder()
    x, y, yes, no, pred, result = b.reg(), b.reg(), b.constant(ty, 1), b.constant(ty, 0), b.pred(), b.reg()
    b.ldg(ty, x, b.buffer("x", ty).at(Register(255)))
    b.ldg(ty, y, b.buffer("y", ty).at(Register(255)))
    b.setcc(condition, pred, x, y)
    b.sel(result, pred, yes, no)
    b.stg(ty, b.buffer("out", ty).at(Register(255)), result)
    out = backend.allocate_typed(ty, len(pairs))
    params = {"x": backend.array([p[0] for p in pairs], ty), "y": backend.array([p[1] for p in pairs], ty), "out": out}
    backend.execute(b.build(), LaunchConfig((1, 1, 1), (len(pairs), 1, 1)), params)
    python = {"EQ": "__eq__", "NE": "__ne__", "LT": "__lt__", "LE": "__le__", "GT": "__gt__", "GE": "__ge__"}
    wanted = [getattr(a, python[condition.name])(c) for a, c in pairs]
    assert [bool(v) for v in out.read()] == wanted


def _converted(value: float | int, source: Type, target: Type) -> float | int:
    """CVT from the ISA's prose."""
    if target.is_integer:
        if source.is_integer:
            return oracle.wrapped(int(value), target)
        if value != value:
            return 0
        if abs(value) == float("inf"):
            return target.max_value if value > 0 else target.min_value
        return min(max(int(value), target.min_value), target.max_value)
    if source.is_float:
        if value != value or abs(value) == float("inf") or value == 0:
            return value
        return oracle.round_exact(Fraction(value), target)  # one rounding, also to 16 bits
    return oracle.rounded(Fraction(value), target)


@pytest.mark.parametrize("source", Type, ids=str)
@of_each("target", Type)
def test_conversion(source: Type, target: Type) -> None:
    values = oracle.samples(source, 12)
    if source.is_float and target.is_integer:
        limits = [float(target.max_value), float(target.min_value)] if target.bits <= 512 else []
        values += [oracle.round_exact(Fraction(v), source) for v in limits if v]
    backend, b = ReferenceBackend(), ProgramBuilder()
    x, result = b.reg(), b.reg()
    b.ldg(source, x, b.buffer("x", source).at(Register(255)))
    b.cvt(source, target, result, x)
    b.stg(target, b.buffer("out", target).at(Register(255)), result)
    out = backend.allocate_typed(target, len(values))
    launch = LaunchConfig((1, 1, 1), (len(values), 1, 1))
    backend.execute(b.build(), launch, {"x": backend.array(values, source), "out": out})
    wanted = [_converted(v, source, target) for v in values]
    found = list(out.read())
    pairs = zip(values, oracle.bits(found, target), oracle.bits(wanted, target), found, wanted, strict=True)
    assert not [(v, f, w) for v, fb, wb, f, w in pairs if fb != wb]


@of_each("ty", [t for t in Type if t.is_integer])
@of_each("name", ["DIV", "REM"])
def test_integer_division_by_zero_names_instruction_and_lane(name: str, ty: Type) -> None:
    with pytest.raises(ExecutionFailed, match=rf"{name} .*integer division by zero \(lane 2\)"):
        run_register_op(ROWS[name], ty, [[1, 2, 3], [1, 1, 0]])


@pytest.mark.parametrize("operation", list(ReduceOperation), ids=lambda o: o.name)
@in_batches("ty", Type)
def test_accumulating_is_the_operation_but_nan_stays(operation: ReduceOperation, ty: Type) -> None:
    columns = operand_columns(ROWS["ADD"], ty)
    found = run_register_op(lambda dst, *args: ROWS["ACC"](operation, dst, *args), ty, columns)
    wanted = [oracle.expected(operation.value, ty, row) for row in zip(*columns, strict=True)]
    if operation in (ReduceOperation.Min, ReduceOperation.Max) and ty.is_float:
        rows = zip(*columns, wanted, strict=True)
        wanted = [np.nan if math.isnan(float(a)) or math.isnan(float(b)) else w for a, b, w in rows]
        found, wanted = [[v + 0 if v == 0 else v for v in values] for values in (found, wanted)]
    assert oracle.bits(found, ty) == oracle.bits(wanted, ty)


def test_vectors_of_the_specification() -> None:
    """The worked examples of the ISA's description."""
    assert run_register_op(ROWS["ADD"], Type.U8, [[250], [10]]) == [4]
    assert run_register_op(ROWS["ClsGet"], Type.U8, [[0, 1, 2, 4, 8, 16, 32, 42, 64, 96, 127, 255]]) == [
        0, 48, 24, 12, 6, 3, 1, 31, 2, 0, 93, 93,
    ]  # fmt: skip
    assert run_register_op(ROWS["MIRROR"], Type.U8, [[5, 42, 95]]) == [2, 45, 92]
    packed = [(1 << 16) | (2 << 8) | 3, (5 << 16) | (10 << 8) | 20]
    assert run_register_op(ROWS["BoundMap"], Type.U32, [packed], out=Type.U64) == [12803, 64020]
    assert _converted(99.7, Type.F32, Type.I32) == 99


@pytest.mark.parametrize("ty", [t for t in Type if t in ROWS["ClsGet"].types], ids=str)
def test_classes_of_every_integer_type(ty: Type) -> None:
    """The low byte decides, whatever the width; negative values by their two's complement."""
    values = oracle.samples(ty)
    low = [v & 0xFF for v in values]
    wanted = [48 * (b & 1) + 24 * (b >> 1 & 1) + 12 * (b >> 2 & 1) + 6 * (b >> 3 & 1) + 3 * (b >> 4 & 1)
              + (b >> 5 & 3) % 3 for b in low]  # fmt: skip
    assert run_register_op(ROWS["ClsGet"], ty, [values], out=Type.U8) == wanted
    inside = [v for v in range(96) if v <= ty.max_value]
    mirrored = run_register_op(ROWS["MIRROR"], ty, [inside], out=Type.U8)
    assert mirrored == [c + 3 if c % 6 < 3 else c - 3 for c in inside]
    if ty.max_value > 95:
        with pytest.raises(ExecutionFailed, match=r"class 96 does not exist.*lane 1"):
            run_register_op(ROWS["MIRROR"], ty, [[1, 96]], out=Type.U8)


@pytest.mark.parametrize("ty", [t for t in Type if t in ROWS["UnityTest"].types], ids=str)
def test_unity(ty: Type) -> None:
    backend, b = ReferenceBackend(), ProgramBuilder()
    x, pred, result, yes, no = b.reg(), b.pred(), b.reg(), b.constant(Type.U8, 1), b.constant(Type.U8, 0)
    b.ldg(ty, x, b.buffer("x", ty).at(Register(255)))
    b.unity_test(pred, x)
    b.sel(result, pred, yes, no)
    b.stg(Type.U8, b.buffer("out", Type.U8).at(Register(255)), result)
    out = backend.allocate_typed(Type.U8, 96)
    backend.execute(b.build(), LaunchConfig.linear(96), {"x": backend.array(list(range(96)), ty), "out": out})
    assert list(np.flatnonzero(out.read())) == [1, 4]


@pytest.mark.parametrize("bad", [96 << 16, 48 << 8, (95 << 16) | (255 << 8)])
def test_bad_boundary_map_is_an_error(bad: int) -> None:
    with pytest.raises(ExecutionFailed, match="96 classes of 48 pages"):
        run_register_op(ROWS["BoundMap"], Type.U64, [[bad]], out=Type.U64)


def test_every_type_is_accepted_somewhere() -> None:
    assert {ty for _, ty in CASES} == set(ALL_TYPES)
    assert Immediate(Type.F16, 0.1).value == 0.0999755859375


@pytest.mark.parametrize("ty", [Type.F32, Type.F64])
def test_a_fused_product_that_overflows_is_no_infinity(ty: Type) -> None:
    """Its exact value is finite, so an infinity that is added stays what it is."""
    largest = float(np.finfo(ty.dtype).max)
    rows = [(largest, 1.5, -math.inf), (largest, -1.5, math.inf), (largest, 2.0, math.nan), (largest, 1.5, -largest)]
    found = run_register_op(ROWS["FMA"], ty, [list(column) for column in zip(*rows, strict=True)])
    assert found[:2] == [-math.inf, math.inf]
    assert math.isnan(found[2])
    assert found[3] == largest / 2


@pytest.mark.parametrize("ty", [Type.F16, Type.BF16])
def test_pack(ty: Type) -> None:
    """Two numbers rounded as CVT rounds them, the first in the lower half."""
    low, high = [1.0, -2.5, 0.1, 1e4, 0.0, math.inf], [3.0, 65504.0, -0.3, -0.0, 2.0**-130, -math.inf]
    found = run_register_op(lambda dst, *given: ROWS["PACK"](ty, dst, *given), Type.F32, [low, high], out=Type.U32)
    halves = [to_array([float(np.float32(x)) for x in column], ty).view(np.uint16) for column in (low, high)]
    assert [int(word) for word in found] == [int(a) | int(b) << 16 for a, b in zip(*halves, strict=True)]
