"""Array instructions as native code against their meaning: rows, reductions, maps, Fourier transforms, sparse products.

Instructions are run as all lanes carry them out together, for many shapes (these share their code), and as each lane
does on memory of its own, for a few (each is compiled anew).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import bit_patterns
from test_array_instructions import EPSILON, FLOAT_TYPES, make, make_inputs

from batches import checkered
from effort import FULL, examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Instruction, Kind, element_type
from eshkol.atlas.operands import BinaryMapOperation, MapOperation, ReduceOperation, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.table.arrays import identity
from eshkol.atlas.types import Type, encode
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.base import Backend
from eshkol.backends.cpu import CpuBackend, macros
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed, IsaError

pytest.importorskip("llvmlite")
CPU, REFERENCE = CpuBackend(), ReferenceBackend()
GLOBAL = Register(255)
LANES = 3  # of a launch in which each has memory of its own
NARROW = [t for t in Type if not t.is_wide]
Data = dict[str, np.ndarray]

floats = pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)


def run(backend: Backend, i: Instruction, inputs: Data, *, alone: bool = False, in_place: str | None = None) -> Data:
    """What the buffers hold afterwards, and the register result as 'dst'.

    Alone, each lane has a copy of every operand; in place, the output is the operand of that name.
    """
    b, params, copies = ProgramBuilder(), {}, LANES if alone else 1
    places: dict[str, Any] = {}
    for f, address in memory_operands(i):
        ty, (start, size) = element_type(i, f), extent(i, f)
        name = in_place if in_place is not None and f.kind is Kind.WRITE else f.name
        place = type(address)(name)
        places[f.name] = place.at(GLOBAL, start + size) if alone and start + size else place
        if name != f.name:
            continue
        b.buffer(name, ty)
        params[name] = backend.allocate_typed(ty, copies * (start + size) // ty.size_bytes)
        for copy in range(copies):
            if f.kind is not Kind.WRITE and size:
                backend.copy_to(params[name].handle, encode(inputs[name], ty), copy * (start + size) + start)
    instruction = b.emit(i.with_operands(lambda f, v: places.get(f.name, v)))
    assert backend is REFERENCE or macros.lower(b.instructions[-1], CPU.target) is not None, instruction
    if i.writes():
        b.stg(i.ty, b.buffer("dst", i.ty).at(GLOBAL), i.dst)
        params["dst"] = backend.allocate_typed(i.ty, copies)
    backend.execute(b.build(), LaunchConfig.linear(copies), params)
    return {name: buffer.read() for name, buffer in params.items()}


def check(i: Instruction, inputs: Data, output: str, terms: float, **how: Any) -> None:
    """The reference's meaning within the bound of the compute type and one rounding; NaN and infinities in place."""
    ty = element_type(i, next(f for f in i.op.fields if f.name == output))
    name = how.get("in_place") or output
    found, wanted = (run(b, i, inputs, **how)[name].astype(np.float64) for b in (CPU, REFERENCE))
    sure = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~sure], wanted[~sure])
    found, wanted = found[sure], wanted[sure]
    scale = np.abs(wanted) + np.max(np.abs(wanted), initial=1.0)
    compute = EPSILON[Type.F32 if ty.is_half else ty]
    bound = compute * 4 * (terms + 4) * scale + EPSILON[ty] * np.abs(wanted)
    assert (np.abs(found - wanted) <= bound).all(), (i.op.name, how, found, wanted)


LENGTHS = st.one_of(st.sampled_from([1, 3, 4, 5, 15, 16, 17, 64, 127, 128, 129, 257]), st.integers(1, 600))
SMALL, SPATIAL = st.integers(0, 4), st.sampled_from([1, 2, 16, 19, 70])
SHAPES = {
    "Softmax": st.fixed_dictionaries({"n": LENGTHS}),
    "LayerNorm": st.fixed_dictionaries({"n": LENGTHS, "eps": st.sampled_from([1e-5, 0.5])}),
    "BatchNorm": st.fixed_dictionaries({"batch": SMALL, "channels": SMALL, "spatial": st.one_of(st.just(0), SPATIAL)}),
    "GroupNorm": st.fixed_dictionaries({"batch": SMALL, "groups": st.integers(1, 3), "spatial": SPATIAL}).flatmap(
        lambda shape: st.integers(1, 4).map(lambda per: {**shape, "channels": per * shape["groups"]})
    ),
    "LayerScale": st.fixed_dictionaries({"n": st.one_of(st.just(0), LENGTHS)}),
    "RoPE": st.fixed_dictionaries(
        {"batch": SMALL, "seq_len": SMALL, "heads": SMALL, "head_dim": st.integers(1, 20).map(lambda d: 2 * d)}
    ),
    "KVCacheUpdate": st.fixed_dictionaries(dict.fromkeys(("position", "batch", "heads", "head_dim"), SMALL)),
    "FFT": st.fixed_dictionaries(
        {
            "n": LENGTHS,
            "inverse": st.booleans(),
            "batch": st.integers(0, 3),
            "inner": st.integers(0, 40),
            "scale": st.sampled_from([1.0, 0.25, -3.0]),
        }
    ),
}
OUTPUT = {"KVCacheUpdate": "cache"}
FIRST_INPUT = {"KVCacheUpdate": "new_kv"}
SPECIAL = st.sampled_from([None, None, math.nan, math.inf, -math.inf, 200.0])


def sizes(i: Instruction) -> int:
    return sum(math.prod(f.shape(i)) for f in i.op.memory if f.shape is not None)


@checkered(name=SHAPES, ty=FLOAT_TYPES)
@examples(10, 3)
@given(data=st.data())
def test_together(name: str, ty: Type, data: st.DataObject) -> None:
    """Any shape, in place too where the row allows it; odd values come out as they should."""
    i = make(ROWS[name], ty, **data.draw(SHAPES[name]))
    inputs, first = make_inputs(i, sizes(i)), FIRST_INPUT.get(name, "input")
    special = data.draw(SPECIAL) if name != "FFT" else None
    if special is not None and inputs[first].size:
        values = inputs[first].astype(np.float64)
        values[data.draw(st.integers(0, values.size - 1))] = special
        inputs[first] = to_array(values, ty)
    in_place = first if i.op.in_place and data.draw(st.booleans()) else None
    check(i, inputs, OUTPUT.get(name, "output"), 4 * sizes(i), in_place=in_place)


ALONE = {
    "Softmax": [{"n": 16}, {"n": 21}, {"n": 133}],
    "LayerNorm": [{"n": 16}, {"n": 133}],
    "BatchNorm": [{"batch": 2, "channels": 3, "spatial": 5}],
    "GroupNorm": [{"batch": 2, "channels": 4, "groups": 2, "spatial": 5}],
    "LayerScale": [{"n": 37}],
    "RoPE": [{"batch": 2, "seq_len": 2, "heads": 3, "head_dim": 6}],
    "KVCacheUpdate": [{"position": 2, "batch": 2, "heads": 3, "head_dim": 5}],
    "FFT": [{"n": 60}, {"n": 67}],
}


@pytest.mark.parametrize("name", ALONE)
def test_alone(name: str) -> None:
    """Each lane on its own rows."""
    ty = Type.BF16
    for shape in ALONE[name]:
        i = make(ROWS[name], ty, **shape)
        in_place = FIRST_INPUT.get(name, "input") if i.op.in_place else None
        check(i, make_inputs(i), OUTPUT.get(name, "output"), 4 * sizes(i), alone=True, in_place=in_place)


@floats
@pytest.mark.parametrize("name", ["Softmax", "LayerNorm"])
def test_long_rows_are_split(name: str, ty: Type) -> None:
    i = make(ROWS[name], ty, n=(1 << 16) + 1001)
    lowered = macros.lower(i, CPU.target)
    assert lowered is not None
    assert len(lowered.phases) == 3
    check(i, make_inputs(i), "output", 100)
    check(i, make_inputs(i), "output", 100, in_place="input")


def test_softmax_does_not_forget_what_is_far_below() -> None:
    i = make(ROWS["Softmax"], Type.F32, n=6)
    values = np.array([-math.inf, 0.0, -40.0, -80.0, -3e38, 1.0], np.float32)
    found = run(CPU, i, {"input": values})["output"]
    np.testing.assert_allclose(found, run(REFERENCE, i, {"input": values})["output"], rtol=1e-6)
    assert found[0] == found[4] == 0


@pytest.mark.parametrize("n", [1, 3, 7, 16, 31, 64, 127, 128, 300])
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7F800001, 0xFFC00155, 0x7F800000, 0xFF800000], ids=hex)
def test_softmax_of_what_is_no_number(n: int, bits: int) -> None:
    """NaN of any bits and +infinity make a whole row NaN, -infinity only a row that has nothing else."""
    i = make(ROWS["Softmax"], Type.F32, n=n)
    for place in {0, n // 2, n - 1}:
        values = np.linspace(-3, 3, n, dtype=np.float32)
        values.view(np.uint32)[place] = bits
        found = run(CPU, i, {"input": values})["output"]
        if bits == 0xFF800000 and n > 1:
            assert found[place] == 0
            np.testing.assert_allclose(found.sum(), 1, rtol=1e-5)
        else:
            assert np.isnan(found).all()


@pytest.mark.parametrize("ty", Type, ids=str)
def test_collectives_over_one_device(ty: Type) -> None:
    """Copies, and nothing; more devices are refused as ever."""
    values = to_array(oracle.samples(ty, 8)[:9], ty)
    i = make(ROWS["AllGather"], ty, n=9)
    found = run(CPU, i, {"input": values})["output"]
    np.testing.assert_array_equal(bit_patterns(found, ty), bit_patterns(values, ty))
    i = make(ROWS["AllReduce"], ty, operation=ReduceOperation.Sum, n=9)
    found = run(CPU, i, {"buffer": values})["buffer"]
    np.testing.assert_array_equal(bit_patterns(found, ty), bit_patterns(values, ty))
    b = ProgramBuilder()
    b.buffer("buffer", ty)
    b.emit(make(ROWS["AllReduce"], ty, operation=ReduceOperation.Sum, n=9, devices=(0, 1)))
    with pytest.raises(IsaError, match="needs an executor across devices"):
        CPU.execute(b.build(), LaunchConfig(), {"buffer": CPU.array(values, ty)})


# --- reductions -----------------------------------------------------------------------------------

REDUCTIONS = {"ReduceAdd": "Sum", "ReduceMin": "Min", "ReduceMax": "Max", "ReduceMul": "Product"}


def reduced(i: Instruction, values: np.ndarray, **how: Any) -> None:
    """The result of every lane is the reference's; the order of float sums is free."""
    found, wanted = (run(b, i, {"src_array": values}, **how)["dst"] for b in (CPU, REFERENCE))
    if i.ty.is_integer:
        assert list(found) == list(wanted)
        return
    bound = 2 * i.count * EPSILON[Type.F32 if i.ty.is_half else i.ty] + EPSILON[i.ty]
    bound *= np.abs(values.astype(np.float64)).sum(initial=0.0, where=np.isfinite(values.astype(np.float64)))
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=EPSILON[i.ty], atol=bound)


def reducible(ty: Type, operation: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    if ty.is_integer:
        low, high = max(ty.min_value, -(1 << 62)), min(ty.max_value, 1 << 62)
        return to_array(list(map(int, rng.integers(low, high, count))), ty)
    if operation == "Product":  # near 1, so that no order of them leaves the type
        return to_array(np.exp(rng.standard_normal(count) / 20), ty)
    return to_array(rng.standard_normal(count), ty)


REDUCED = [(op, ty) for op in (ReduceOperation.Sum, ReduceOperation.Max) for ty in NARROW]
REDUCED += [(op, ty) for op in (ReduceOperation.Product, ReduceOperation.Min) for ty in (Type.I8, Type.U64, Type.BF16)]


@pytest.mark.parametrize(("operation", "ty"), REDUCED, ids=[f"{op.name}-{ty.name}" for op, ty in REDUCED])
def test_reductions(operation: ReduceOperation, ty: Type) -> None:
    i = make(ROWS["ParallelReduce"], ty, operation=operation, dst=Register(0), count=77)
    reduced(i, reducible(ty, operation.name, 77), alone=True)


@pytest.mark.parametrize("count", [0, 1, 3, 16, 700])
@pytest.mark.parametrize("ty", [Type.BF16, Type.I8], ids=str)
def test_reductions_of_any_length(ty: Type, count: int) -> None:
    """Here all lanes mean the same array."""
    for operation in (ReduceOperation.Sum, ReduceOperation.Max):
        i = make(ROWS["ParallelReduce"], ty, operation=operation, dst=Register(0), count=count)
        reduced(i, reducible(ty, operation.name, count))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_name(name: str) -> None:
    i = make(ROWS[name], Type.F32, dst=Register(0), count=45)
    reduced(i, reducible(Type.F32, REDUCTIONS[name], 45))


@floats
@pytest.mark.parametrize("operation", [ReduceOperation.Min, ReduceOperation.Max])
@pytest.mark.parametrize("count", [1, 37])
def test_extremes_pass_over_nan(operation: ReduceOperation, ty: Type, count: int) -> None:
    i = make(ROWS["ParallelReduce"], ty, operation=operation, dst=Register(0), count=count)
    values = np.full(count, math.nan)
    assert np.isnan(run(CPU, i, {"src_array": to_array(values, ty)})["dst"].astype(np.float64)).all()
    for number in (3.0, identity(operation, ty)):
        values[count // 2] = number
        assert float(run(CPU, i, {"src_array": to_array(values, ty)})["dst"][0]) == number


def test_long_sums_are_accurate() -> None:
    i = make(ROWS["ReduceAdd"], Type.F32, dst=Register(0), count=1 << 20)
    values = np.random.default_rng(0).random(1 << 20).astype(np.float32)
    found = float(run(CPU, i, {"src_array": values})["dst"][0])
    assert abs(found / values.astype(np.float64).sum() - 1) < 1e-5


# --- maps -----------------------------------------------------------------------------------------

MAP_ROWS = {"ParallelMap": MapOperation, "ParallelMapBinary": BinaryMapOperation}
MAPS = [  # with what `make test` takes: of every operation, and of every type, every other one
    ((name, operation, ty), (place + other) % 2 == 0)
    for name, operations in MAP_ROWS.items()
    for place, operation in enumerate(operations)
    for other, ty in enumerate(NARROW)
    if ty in ROWS[operation.value].types
]


def map_inputs(name: str, operation: Any, ty: Type) -> Data:
    """The odd values of a type, enough for more than one task."""
    values = [v for v in oracle.samples(ty, 8) if operation.name != "Pow" or abs(v) < 20]
    columns = {"src_array": values}
    if name == "ParallelMapBinary":
        columns = {"src_a": values, "src_b": [v or 1 for v in reversed(values)]}
    return {key: np.resize(to_array(column, ty), 4100) for key, column in columns.items()}


@pytest.mark.parametrize(
    ("name", "operation", "ty"),
    [
        pytest.param(*case, id=f"{case[1].name}-{case[2].name}", marks=[] if taken else [pytest.mark.slow])
        for case, taken in MAPS
    ],
)
def test_maps(name: str, operation: Any, ty: Type) -> None:
    """The scalar row's value for every element, in place too; elementary functions within 2 places."""
    inputs = map_inputs(name, operation, ty)
    count = next(iter(inputs.values())).size
    i = make(ROWS[name], ty, operation=operation, count=count)
    found, wanted = (run(b, i, inputs)["dst_array"] for b in (CPU, REFERENCE))
    in_place = run(CPU, i, inputs, in_place=next(iter(inputs)))[next(iter(inputs))]
    np.testing.assert_array_equal(bit_patterns(in_place, ty), bit_patterns(found, ty))
    if operation.value in oracle.TOLERANCE:
        pairs = {(float(a), float(b)) for a, b in zip(found, wanted, strict=True) if not (a != a and b != b)}
        assert max(oracle.places_apart(a, b, ty) for a, b in pairs) <= 2
    elif ty.is_float:
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))
    else:
        np.testing.assert_array_equal(found, wanted)


@floats
@pytest.mark.parametrize("operation", [MapOperation.Sin, MapOperation.Cos])
def test_moderate_angles(operation: MapOperation, ty: Type) -> None:
    """Arrays without a huge angle have a way of their own; multiples of a quarter turn are the hard ones."""
    rng = np.random.default_rng(0)
    turns = np.concatenate([np.arange(-300, 300), rng.integers(0, 600_000, 900)]) * (math.pi / 2)
    values = np.concatenate([turns, rng.uniform(-1e6, 1e6, 900), rng.standard_normal(900), [0.0, -0.0, 1e-30]])
    if ty is Type.F16:
        values = values[np.abs(values) < 60000]
    inputs = {"src_array": to_array(values, ty)}
    i = make(ROWS["ParallelMap"], ty, operation=operation, count=values.size)
    found, wanted = (run(b, i, inputs)["dst_array"].astype(np.float64) for b in (CPU, REFERENCE))
    assert max(oracle.places_apart(a, b, ty) for a, b in zip(found, wanted, strict=True)) <= 2
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("ty", [Type.I8, Type.U64], ids=str)
def test_division_by_zero_is_a_fault(ty: Type, alone: bool) -> None:
    i = make(ROWS["ParallelMapBinary"], ty, operation=BinaryMapOperation.Div, count=21)
    columns = [np.arange(1, 22), np.arange(20, -1, -1)]
    inputs = {key: to_array(column, ty) for key, column in zip(("src_a", "src_b"), columns, strict=True)}
    with pytest.raises(ExecutionFailed, match="integer division by zero"):
        run(CPU, i, inputs, alone=alone)
    inputs["src_b"][20] = 1
    assert list(run(CPU, i, inputs, alone=alone)["dst_array"])[:21] == list(inputs["src_a"] // inputs["src_b"])


@pytest.mark.parametrize("operation", [MapOperation.Exp, MapOperation.Neg])
def test_maps_alone_and_empty(operation: MapOperation) -> None:
    for count in (0, 19):
        i = make(ROWS["ParallelMap"], Type.F32, operation=operation, count=count)
        check(i, make_inputs(i), "dst_array", 1, alone=True)


# --- Fourier transforms ---------------------------------------------------------------------------


@pytest.mark.parametrize("ty", [Type.F32, Type.F64], ids=str)
@pytest.mark.parametrize("inverse", [False, True])
def test_transforms_are_accurate(ty: Type, inverse: bool) -> None:
    """Lengths of every kind: powers of 2, small factors, great primes; far closer than the sum's bound."""
    lengths = [(n, 1, 1) for n in (1, 2, 480, 2048, 4099, 49152, 65521, 65536)]
    if FULL or inverse == (ty is Type.F64):  # takes as long as all others
        lengths.append((1 << 20, 1, 1))
    several = [(60, 33, 1), (64, 40, 1), (625, 1, 41), (64, 21, 3), (2048, 2, 1), (2048, 1, 3), (1009, 3, 2)]
    for n, batch, inner in lengths + several:
        i = make(ROWS["FFT"], ty, n=n, batch=batch, inner=inner, inverse=inverse)
        inputs = make_inputs(i, n)
        found, wanted = (run(b, i, inputs)["output"].astype(np.float64) for b in (CPU, REFERENCE))
        error = np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2))
        assert error < 8 * EPSILON[ty], n


# --- sparse products ------------------------------------------------------------------------------


@floats
@examples(10, 3)
@given(m=st.integers(0, 9), n=st.integers(0, 40), k=st.integers(0, 9), seed=st.integers(0, 9), spare=st.integers(0, 2))
def test_sparse_products(ty: Type, m: int, n: int, k: int, seed: int, spare: int) -> None:
    """CSR with empty rows, columns in any order and twice, and elements that no row has."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, m) if k else np.zeros(m, int)
    nnz = int(lengths.sum()) + spare
    i = make(ROWS["SparseGEMM"], ty, m=m, n=n, k=k, nnz=nnz)
    inputs = make_inputs(i, seed)
    inputs["a_ptr"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    inputs["a_indices"] = rng.integers(0, max(k, 1), nnz).astype(np.uint32)
    inputs["a_indices"][nnz - spare :] = 1000  # never looked at
    check(i, inputs, "c", 10)


BAD_MATRICES = {
    "columns": ("a_indices", [3, 0, 1, 4], "not below k = 4"),
    "falling": ("a_ptr", [0, 2, 1, 4], "a_ptr must rise"),
    "too long": ("a_ptr", [0, 2, 2, 5], "a_ptr must rise"),
    "late": ("a_ptr", [1, 2, 2, 4], "a_ptr must rise"),
    "wild": ("a_ptr", [0, 4294967295, 4294967295, 4294967295], "a_ptr must rise"),
}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("what", BAD_MATRICES)
def test_malformed_matrices_are_faults(what: str, alone: bool) -> None:
    key, bad, message = BAD_MATRICES[what]
    i = make(ROWS["SparseGEMM"], Type.F32, m=3, n=2, k=4, nnz=4)
    inputs = make_inputs(i)
    inputs["a_ptr"], inputs["a_indices"] = np.array([0, 2, 2, 4], np.uint32), np.array([3, 0, 1, 1], np.uint32)
    run(CPU, i, inputs, alone=alone)
    inputs[key] = np.array(bad, np.uint32)
    with pytest.raises(ExecutionFailed, match=message):
        run(CPU, i, inputs, alone=alone)
    with pytest.raises(ExecutionFailed):
        run(REFERENCE, i, inputs, alone=alone)
