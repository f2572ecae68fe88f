"""Array extensions against plain loops, natively and through their expansions, on every type they accept."""

from __future__ import annotations

import cmath
import functools
import itertools
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from batches import checkered, in_batches, of_each
from effort import examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Arrays, Instruction, Kind, Opcode, element_type
from eshkol.atlas.operands import (
    Activation,
    Address,
    BinaryMapOperation,
    BufferOffset,
    ClassOffset,
    Immediate,
    MapOperation,
    PoolOffset,
    ReduceOperation,
    Register,
    RegisterIndirect,
    Shared,
)
from eshkol.atlas.program import LaunchConfig, disassemble
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type, encode
from eshkol.atlas.validate import extent, memory_operands, validate
from eshkol.backends.base import Backend
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed, IsaError
from eshkol.ops import TABLE
from eshkol.ops.dtypes import uint64
from eshkol.ops.random import DRAWS, Bits

Loops = Callable[[Instruction, dict[str, np.ndarray]], np.ndarray]
FLOAT_TYPES = [t for t in Type if t.is_float]
EPSILON = {ty: 2.0 ** -oracle.FRACTION_BITS[ty] for ty in FLOAT_TYPES}


def make_inputs(i: Instruction, seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for the memory operands that are read, exactly representable in their types."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for f, _ in memory_operands(i):
        ty = element_type(i, f)
        count = math.prod(f.shape(i))
        values = rng.integers(-7, 8, count) if ty.is_integer else rng.standard_normal(count)
        if ty.is_unsigned:
            values = abs(values)
        if f.name == "variance":
            values = abs(values) + 0.5
        inputs[f.name] = to_array(values.astype(np.float64) if ty.is_float else values, ty)
    return inputs


def run(
    i: Instruction, inputs: dict[str, np.ndarray], *, expanded: bool, launch: LaunchConfig | None = None
) -> dict[str, np.ndarray]:
    """One buffer per memory operand; what they hold afterwards, and the register result as 'dst'."""
    backend, b = ReferenceBackend(expanded=expanded), ProgramBuilder()
    params: dict[str, Any] = {}
    for f, _ in memory_operands(i):
        ty = element_type(i, f)
        b.buffer(f.name, ty)
        start, size = extent(i, f)
        buffer = backend.allocate_typed(ty, (start + size) // ty.size_bytes)
        if f.kind is not Kind.WRITE and size:
            backend.copy_to(buffer.handle, encode(inputs[f.name], ty), start)
        params[f.name] = buffer
    b.emit(i)
    if i.writes():
        b.stg(i.ty, b.buffer("dst", i.ty).at(Register(255)), i.dst)
        params["dst"] = backend.allocate_typed(i.ty, (launch or LaunchConfig()).total_threads)
    program = b.build()
    if expanded:
        assert not [x for x in expand(program).instructions if x.op.is_extension]
    backend.execute(program, launch or LaunchConfig(), params)
    return {name: buffer.read() for name, buffer in params.items()}


def make(op: Opcode, ty: Type | None = None, **operands: Any) -> Instruction:
    values: dict[str, Any] = {f.name: BufferOffset(f.name) for f in op.memory}
    if ty is not None and "ty" in op.positions:
        values["ty"] = ty
    return op(**{**values, **operands})


def check(i: Instruction, output: str, loops: Loops, terms: int, inputs: dict[str, np.ndarray] | None = None) -> None:
    """Both forms agree with the loops within the bound of the compute type and one rounding to the result."""
    inputs = inputs or make_inputs(i)
    wide = {name: a.astype(np.float64) if a.dtype != object else a for name, a in inputs.items()}
    wanted = np.asarray(loops(i, wide), np.float64).reshape(-1)
    f = next(f for f in i.op.fields if f.name == output)
    ty = element_type(i, f)
    compute = EPSILON[Type.F32 if ty.is_half else ty] if ty.is_float else 0
    for expanded in (False, True):
        found = run(i, inputs, expanded=expanded)[output].astype(np.float64)
        tail = found[-wanted.size :] if wanted.size else found[:0]
        scale = np.abs(wanted) + np.max(np.abs(wanted), initial=1.0)
        bound = 0 if ty.is_integer else compute * 4 * (terms + 4) * scale + EPSILON[ty] * np.abs(wanted)
        error = np.abs(tail - wanted)
        assert (error <= bound).all(), (i.op.name, expanded, tail, wanted)


# --- reductions and maps --------------------------------------------------------------------------

REDUCTIONS = {"ReduceAdd": "Sum", "ReduceMin": "Min", "ReduceMax": "Max", "ReduceMul": "Product"}


def _reduced(operation: str, ty: Type, values: list[Any]) -> Any:
    scalar = {"Sum": "ADD", "Product": "MUL", "Min": "MIN", "Max": "MAX"}[operation]
    total = {"Sum": 0, "Product": 1}.get(operation)
    for value in values:
        total = value if total is None else oracle.expected(scalar, ty, (total, value))
    return total


@pytest.mark.parametrize("name", [*REDUCTIONS, "ParallelReduce"])
@of_each("count", [1, 7])
@of_each("ty", Type)
def test_reductions(name: str, ty: Type, count: int) -> None:
    values = oracle.samples(ty, 8)[2 : 2 + count] if ty.is_float else oracle.samples(ty, 8)[:count]
    operations = [ReduceOperation[REDUCTIONS[name]]] if name in REDUCTIONS else list(ReduceOperation)
    for operation in operations:
        chosen = {} if name in REDUCTIONS else {"operation": operation}
        i = make(ROWS[name], ty, dst=Register(0), count=count, **chosen)
        wanted = _reduced(operation.name, ty, values)
        for expanded in (False, True):
            found = run(i, {"src_array": to_array(values, ty)}, expanded=expanded, launch=LaunchConfig.linear(3))["dst"]
            assert found.size == 3
            assert len(set(map(str, found))) == 1
            if ty.is_integer:
                assert found[0] == wanted
            else:  # the order of additions is free
                assert oracle.places_apart(float(found[0]), oracle.rounded(float(wanted), ty), ty) <= 2 * count


@pytest.mark.parametrize("ty", Type, ids=str)
def test_empty_and_nan_reductions(ty: Type) -> None:
    for operation in ReduceOperation:
        i = make(ROWS["ParallelReduce"], ty, dst=Register(0), count=0, operation=operation)
        low, high = (-math.inf, math.inf) if ty.is_float else (ty.min_value, ty.max_value)
        wanted = {"Sum": 0, "Product": 1, "Min": high, "Max": low}[operation.name]
        for expanded in (False, True):
            assert run(i, {"src_array": to_array([], ty)}, expanded=expanded)["dst"][0] == wanted
        if ty.is_float and operation.name in ("Min", "Max"):
            pair = make(ROWS["ParallelReduce"], ty, dst=Register(0), count=2, operation=operation)
            for expanded in (False, True):
                mixed = run(pair, {"src_array": to_array([math.nan, 3.0], ty)}, expanded=expanded)["dst"]
                assert mixed[0] == 3.0
                both = run(pair, {"src_array": to_array([math.nan, math.nan], ty)}, expanded=expanded)["dst"]
                assert math.isnan(float(both[0]))


def test_reduce_mul_of_the_specification() -> None:
    i = make(ROWS["ReduceMul"], Type.I32, dst=Register(0), count=4)
    assert run(i, {"src_array": np.array([2, 3, 4, 5], np.int32)}, expanded=False)["dst"][0] == 120


MAPS = [("ParallelMap", op, ty) for op in MapOperation for ty in Type if ty in ROWS[op.value].types]
MAPS += [("ParallelMapBinary", op, ty) for op in BinaryMapOperation for ty in Type if ty in ROWS[op.value].types]


@in_batches("name, operation, ty", MAPS, ids=lambda case: f"{case[1].name}-{case[2].name}")
def test_maps(name: str, operation: Any, ty: Type) -> None:
    """The scalar row's value for every element, in place too; expanded elementary functions within 2 places."""
    values = [v for v in oracle.samples(ty, 8) if operation.name != "Pow" or abs(v) < 20]
    if name == "ParallelMap":
        columns = {"src_array": values}
    else:
        columns = {"src_a": values, "src_b": [v or 1 for v in reversed(values)]}
    count = len(values)
    i = make(ROWS[name], ty, operation=operation, count=count)
    inputs = {key: to_array(column, ty) for key, column in columns.items()}
    native, expanded = (list(run(i, inputs, expanded=e)["dst_array"]) for e in (False, True))
    wanted = [oracle.expected(operation.value, ty, row) for row in zip(*columns.values(), strict=True)]
    if operation.value in oracle.TOLERANCE:
        assert max(oracle.places_apart(float(a), w, ty) for a, w in zip(expanded, wanted, strict=True)) <= 2
    else:
        assert oracle.bits(native, ty) == oracle.bits(expanded, ty)
    if ty.is_integer:
        assert native == wanted
    else:
        allowed = oracle.TOLERANCE.get(operation.value, 0)
        assert max(oracle.places_apart(float(a), w, ty) for a, w in zip(native, wanted, strict=True)) <= allowed
    first = next(iter(columns))
    place = make(ROWS[name], ty, operation=operation, count=count, dst_array=BufferOffset(first))
    b = ProgramBuilder()
    backend = ReferenceBackend()
    params = {key: backend.array(value, ty) for key, value in inputs.items()}
    for key in inputs:
        b.buffer(key, ty)
    b.emit(place)
    backend.execute(b.build(), LaunchConfig.linear(300), params)
    assert oracle.bits(list(params[first].read()), ty) == oracle.bits(native, ty)


def test_map_refuses_types_its_operation_lacks() -> None:
    b = ProgramBuilder()
    b.buffer("dst_array", Type.I32)
    b.buffer("src_array", Type.I32)
    b.emit(make(ROWS["ParallelMap"], Type.I32, operation=MapOperation.Exp, count=1))
    with pytest.raises(IsaError, match="Exp is not defined on I32"):
        validate(b.build())


# --- linear algebra -------------------------------------------------------------------------------


def _matmul(a: np.ndarray, b: np.ndarray, m: int, n: int, k: int) -> np.ndarray:
    return np.array([[sum(a[r * k + p] * b[p * n + c] for p in range(k)) for c in range(n)] for r in range(m)])


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-0.5, 2.0)])
def test_gemm(ty: Type, alpha: float, beta: float) -> None:
    for m, n, k in ((3, 4, 5), (1, 1, 1), (2, 3, 0)):
        i = make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=alpha, beta=beta)
        check(i, "c", lambda i, x: i.alpha * _matmul(x["a"], x["b"], i.m, i.n, i.k).reshape(-1) + i.beta * x["c"], k)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_batched_gemm(ty: Type) -> None:
    i = make(ROWS["BatchedGEMM"], ty, batch=2, m=2, n=3, k=4)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        pairs = zip(x["a"].reshape(2, -1), x["b"].reshape(2, -1), strict=True)
        return np.stack([_matmul(a, b, 2, 3, 4) for a, b in pairs])

    check(i, "c", loops, 4)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_summed_gemm(ty: Type) -> None:
    """Three pieces of each of two products, of which the last have one term: in parts of four and of two."""
    i = make(ROWS["SummedGEMM"], ty, batch=2, m=2, n=3, k=5, depth=2, each=4)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        a, b, out = x["a"].reshape(2, 2, 5), x["b"].reshape(2, 3, 5), np.zeros((2, 2, 3))
        for s, r, c, t in np.ndindex(2, 2, 3, 5):
            out[(3 * s + t // 2) // 4, r, c] += a[s, r, t] * b[s, c, t]
        return out

    check(i, "c", loops, 10)


@pytest.mark.parametrize("ty", [Type.F16, Type.BF16], ids=str)
def test_mixed_precision_gemm(ty: Type) -> None:
    i = make(ROWS["MixedPrecisionGEMM"], ty, m=3, n=2, k=6)
    check(i, "c", lambda i, x: _matmul(x["a"], x["b"], 3, 2, 6), 6)


ACTIVATIONS: dict[Activation, Callable[[float], float]] = {
    Activation.Identity: lambda x: x,
    Activation.Relu: lambda x: max(x, 0.0),
    Activation.Gelu: lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    Activation.Silu: lambda x: x / (1 + math.exp(-x)),
    Activation.Sigmoid: lambda x: 1 / (1 + math.exp(-x)),
    Activation.Tanh: math.tanh,
}


@checkered(left_out=[(), ("bias",), ("residual",), ("bias", "residual")], activation=Activation)
def test_fused_gemm(activation: Activation, left_out: tuple[str, ...]) -> None:
    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        total = i.alpha * _matmul(x["a"], x["b"], 3, 2, 4) + (0 if i.bias is None else x["bias"])
        values = np.vectorize(ACTIVATIONS[activation])(total)
        return values + (0 if i.residual is None else x["residual"].reshape(3, 2))

    for ty, out_ty in ((Type.F32, Type.F32), (Type.BF16, Type.F32), (Type.F32, Type.F16), (Type.F16, Type.F64)):
        i = make(ROWS["FusedGEMM"], ty, out_ty=out_ty, activation=activation, m=3, n=2, k=4, alpha=0.5,
                 **dict.fromkeys(left_out))  # fmt: skip
        check(i, "c", loops, 12)


def test_fused_gemm_gives_floats_and_is_written_with_names() -> None:
    source = "FusedGEMM.BF16.F32.Gelu [c], [a], [b], residual=[r], m=1, n=1, k=1, alpha=1.0"
    params = ".buffer c F32\n.buffer a BF16\n.buffer b BF16\n.buffer r F32\n"
    assert source in disassemble(assemble(params + source))
    with pytest.raises(IsaError, match="must be a float, not I32"):
        validate(assemble(params + source.replace("BF16.F32", "BF16.I32")))


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_integer_gemm(turned: tuple[bool, bool]) -> None:
    i = make(ROWS["IntegerGEMM"], m=3, n=2, k=5, transpose_a=turned[0], transpose_b=turned[1])
    inputs = {name: (np.arange(size) * 17 - 128).astype(np.int8) for name, size in (("a", 15), ("b", 10))}

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        a = x["a"].reshape(5, 3).T if turned[0] else x["a"].reshape(3, 5)
        b = x["b"].reshape(2, 5).T if turned[1] else x["b"].reshape(5, 2)
        return _matmul(a.reshape(-1), b.reshape(-1), 3, 2, 5)

    check(i, "c", loops, 0, inputs)
    builder = ProgramBuilder()
    for name, ty in (("a", Type.I8), ("b", Type.I8), ("c", Type.I32)):
        builder.buffer(name, ty)
    builder.emit(make(ROWS["IntegerGEMM"], m=1, n=1, k=65537))
    with pytest.raises(IsaError, match="k = 65537 could overflow"):
        validate(builder.build())


def test_quantized_gemm_rounds_and_saturates() -> None:
    i = make(ROWS["QuantizedGEMM"], a_scale=0.5, b_scale=0.25, c_scale=0.25, m=2, n=2, k=3)
    a, b = [127, 127, 127, 1, 2, 3], [127, -127, 127, -127, 127, 1]
    inputs = {"a": np.array(a, np.int8), "b": np.array(b, np.int8)}

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        total = _matmul(x["a"], x["b"], 2, 2, 3) * 0.5
        return np.array([[min(max(round(v), -128), 127) for v in row] for row in total])

    check(i, "c", loops, 0, inputs)
    assert list(loops(i, {k: v.astype(float) for k, v in inputs.items()}).reshape(-1)) == [127, -128, 127, -128]
    builder = ProgramBuilder()
    for name in "abc":
        builder.buffer(name, Type.I8)
    builder.emit(make(ROWS["QuantizedGEMM"], a_scale=0.0, b_scale=1.0, c_scale=1.0, m=1, n=1, k=1))
    with pytest.raises(IsaError, match="scales must be positive"):
        validate(builder.build())


@pytest.mark.parametrize("scales", [(1e300, 1e300, 1.0), (1e300, 1e300, 1e300), (1.0, 1e200, 1e-200),
                                    (1e-200, 1e-200, 1.0), (1.0, 1e-300, 1e300)])  # fmt: skip
def test_quantized_gemm_refuses_scales_that_cannot_be_combined(scales: tuple[float, float, float]) -> None:
    """Infinity times a sum of 0 has no answer, and a scale of 0 has lost the product."""
    builder = ProgramBuilder()
    for name in "abc":
        builder.buffer(name, Type.I8)
    names = ("a_scale", "b_scale", "c_scale")
    builder.emit(make(ROWS["QuantizedGEMM"], **dict(zip(names, scales, strict=True)), m=1, n=1, k=1))
    with pytest.raises(IsaError, match=r"a_scale·b_scale/c_scale is (inf|0\.0)"):
        validate(builder.build())


SCALES = st.one_of(st.floats(5e-324, 1.7e308), st.integers(-8, 8).map(lambda e: 2.0**e))


@examples(100, 30)
@given(st.lists(st.integers(-128, 127), min_size=6, max_size=6), SCALES, SCALES, SCALES)
@example([0, 0, 0, 0, 0, 0], 1.7e308, 1.0, 1.0)
@example([1, 1, 1, 0, 0, 0], 0.5, 1.0, 1.0)  # ties go to even
@example([-128, -128, 127, 127, 127, 127], 1.7e308, 1.0, 1.0)
@example([-1, 0, 0, 1, 0, 0], 5e-324, 1.0, 1.0)
def test_quantized_gemm_is_the_same_in_both_forms(values: list[int], a: float, b: float, c: float) -> None:
    """Sums of 0, ties, the largest and the least scales: rounded to even and saturated alike."""
    assume(0 < a * b / c < math.inf)
    i = make(ROWS["QuantizedGEMM"], a_scale=a, b_scale=b, c_scale=c, m=1, n=1, k=3)
    inputs = {"a": np.array(values[:3], np.int8), "b": np.array(values[3:], np.int8)}
    total = sum(x * y for x, y in zip(values[:3], values[3:], strict=True))
    product = total * (a * b / c)
    wanted = min(max(round(product) if math.isfinite(product) else math.copysign(1000, product), -128), 127)
    for expanded in (False, True):
        assert run(i, inputs, expanded=expanded)["c"][0] == wanted


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_sparse_gemm(ty: Type) -> None:
    i = make(ROWS["SparseGEMM"], ty, m=3, n=2, k=4, nnz=4)
    inputs = make_inputs(i)
    inputs["a_ptr"] = np.array([0, 2, 2, 4], np.uint32)
    inputs["a_indices"] = np.array([3, 0, 1, 1], np.uint32)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        dense = np.zeros((3, 4))
        for r in range(3):
            for q in range(int(x["a_ptr"][r]), int(x["a_ptr"][r + 1])):
                dense[r, int(x["a_indices"][q])] += x["a_values"][q]
        return _matmul(dense.reshape(-1), x["b"], 3, 2, 4)

    check(i, "c", loops, 4, inputs)


MALFORMED = {
    "a column beyond k": ("a_indices", [3, 0, 1, 4]),
    "a column far beyond": ("a_indices", [3, 0, 1, (1 << 32) - 1]),
    "a_ptr falls": ("a_ptr", [0, 2, 1, 4]),
    "a_ptr falls back to where it was": ("a_ptr", [0, 3, 1, 3]),
    "a_ptr ends beyond nnz": ("a_ptr", [0, 2, 2, 5]),
    "a_ptr does not begin at 0": ("a_ptr", [1, 2, 2, 4]),
    "a_ptr goes beyond and comes back": ("a_ptr", [0, (1 << 32) - 1, 2, 4]),
}


def sparse_case(**changes: list[int]) -> tuple[Instruction, dict[str, np.ndarray]]:
    """A product in buffers that are larger than its operands, so that only its own checks can find mistakes."""
    i = make(ROWS["SparseGEMM"], Type.F32, m=3, n=2, k=4, nnz=4)
    inputs = {"a_ptr": [0, 2, 2, 4], "a_indices": [3, 0, 1, 1], **changes}
    arrays = {name: np.array([*values, 0, 0, 0, 0], np.uint32) for name, values in inputs.items()}
    return i, {**arrays, "a_values": np.ones(8, np.float32), "b": np.ones(1 << 10, np.float32)}


def run_sparse(backend: Backend, i: Instruction, inputs: dict[str, np.ndarray]) -> list[float]:
    b, params = ProgramBuilder(), {name: backend.array(values) for name, values in inputs.items()}
    params["c"] = backend.array(np.full(6, 9, np.float32))
    for name, buffer in params.items():
        b.buffer(name, buffer.ty)
    b.emit(i)
    try:
        backend.execute(b.build(), LaunchConfig(), params)
    except ExecutionFailed:
        if backend.name == "reference":
            assert list(params["c"].read()) == [9] * 6, "a refused product has written nothing"
        raise
    return list(params["c"].read())


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_sparse_matrices_are_refused(name: str, expanded: bool) -> None:
    key, bad = MALFORMED[name]
    with pytest.raises(ExecutionFailed):
        run_sparse(ReferenceBackend(expanded=expanded), *sparse_case(**{key: bad}))


@pytest.mark.parametrize("expanded", [False, True])
def test_sparse_matrices_at_the_edge_of_what_is_well_formed(expanded: bool) -> None:
    backend = ReferenceBackend(expanded=expanded)
    assert run_sparse(backend, *sparse_case()) == [2, 2, 0, 0, 2, 2]
    assert run_sparse(backend, *sparse_case(a_ptr=[0, 0, 0, 0], a_indices=[9, 9, 9, 9])) == [0] * 6
    assert run_sparse(backend, *sparse_case(a_ptr=[0, 0, 0, 3], a_indices=[3, 3, 3, 9])) == [0, 0, 0, 0, 3, 3]
    i, inputs = sparse_case(a_ptr=[0, 0, 0, 1])
    with pytest.raises(ExecutionFailed, match="out of range"):  # all nnz elements must be there, used or not
        run_sparse(backend, i, {**inputs, "a_values": np.ones(3, np.float32)})


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
@pytest.mark.parametrize(
    ("shape_a", "shape_b", "dims", "spec"),
    [
        ((2, 3, 4), (4, 5), ((2, 0),), "ijl,lk->ijk"),
        ((2, 3), (3, 2), ((0, 1), (1, 0)), "ij,ji->"),
        ((2,), (3,), (), "i,j->ij"),
    ],
)
def test_tensor_contract(ty: Type, shape_a: tuple, shape_b: tuple, dims: tuple, spec: str) -> None:
    i = make(ROWS["TensorContract"], ty, shape_a=shape_a, shape_b=shape_b, contract_dims=dims)
    check(i, "output", lambda i, x: np.einsum(spec, x["a"].reshape(shape_a), x["b"].reshape(shape_b)), 6)


CONVOLUTIONS = [
    {"stride": (2, 1), "padding": (1, 2)},
    {"stride": (3, 2), "padding": (1, 0, 2, 3), "dilation": (1, 2)},
    {"padding": (2, 1), "dilation": (2, 1), "groups": 2},
]


@pytest.mark.parametrize("ty", [Type.F32, Type.BF16], ids=str)
@pytest.mark.parametrize("name", [
    "Conv2D", "ChannelsLastConv2D", "Conv2DGradInput", "ChannelsLastConv2DGradInput", "Conv2DGradWeight",
    "ChannelsLastConv2DGradWeight", "FusedConv2D",
])  # fmt: skip
@pytest.mark.parametrize("how", CONVOLUTIONS, ids=str)
def test_convolutions(name: str, ty: Type, how: dict[str, Any]) -> None:
    """Both gradients are the transposes: one sum over all products, gathered by what is asked for."""
    (top, left, *rest), stride = how.get("padding", (0, 0)), how.get("stride", (1, 1))
    gaps, groups, fused = how.get("dilation", (1, 1)), how.get("groups", 1), name == "FusedConv2D"
    below, right = rest or (top, left)
    height = (3 + top + below - gaps[0] - 1) // stride[0] + 1
    width = (4 + left + right - gaps[1] - 1) // stride[1] + 1
    extra = {"activation": Activation.Relu, "scale": BufferOffset("scale"), "bias": BufferOffset("bias")}
    last, each = name.startswith("ChannelsLast"), max(1, height * width * 2 // 3)
    more = extra if fused else {"each": each} if name == "ChannelsLastConv2DGradWeight" else {}
    i = make(ROWS[name], ty, batch=1, in_channels=2, out_channels=2, height=3, width=4, kernel_h=2, kernel_w=2,
             **how, **more)  # fmt: skip
    shapes = {"input": (1, 2, 3, 4), "kernel": (2, 2 // groups, 2, 2), "gradient": (1, 2, height, width)}

    def shaped(key: str, given: np.ndarray) -> np.ndarray:
        shape = shapes[key]
        if last and key == "kernel" and name == "ChannelsLastConv2DGradInput":
            return np.moveaxis(given.reshape(*shape[1:], shape[0]), -1, 0)
        if last:
            return np.moveaxis(given.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
        return given.reshape(shape)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        arrays = {key: shaped(key, x[key]) for key in shapes if key in x}
        wanted = {"Conv2DGradInput": "input", "Conv2DGradWeight": "kernel"}.get(name.removeprefix("ChannelsLast"))
        wanted, parts = wanted or "gradient", -(-height * width // each) if "each" in more else 1
        factors, out = sorted(arrays), np.zeros((parts, *shapes[wanted]))
        for s, o, y, z, c, v, u in np.ndindex(1, 2, height, width, 2 // groups, 2, 2):
            channel = o // (2 // groups) * (2 // groups) + c
            h, w = y * stride[0] + v * gaps[0] - top, z * stride[1] + u * gaps[1] - left
            if 0 <= h < 3 and 0 <= w < 4:
                at = {"input": (s, channel, h, w), "kernel": (o, c, v, u), "gradient": (s, o, y, z)}
                part = (y * width + z) // each if parts > 1 else 0
                out[part][at[wanted]] += math.prod(arrays[key][at[key]] for key in factors)
        if fused:
            return np.maximum(out * x["scale"][:, None, None] + x["bias"][:, None, None], 0)
        return np.moveaxis(out, 2, -1) if last and wanted == "kernel" else out

    check(i, "output", loops, height * width if name.endswith("GradWeight") else 8)


@pytest.mark.parametrize("expanded", [False, True])
def test_padding_takes_no_memory(expanded: bool) -> None:
    """A padding of gigabytes around four elements, of which the output sees nine places."""
    size = 20_000
    i = make(ROWS["Conv2D"], Type.F32, batch=1, in_channels=1, out_channels=1, height=2, width=2, kernel_h=2,
             kernel_w=2, stride=(size, size), padding=(size, size))  # fmt: skip
    inputs = {"input": np.array([1, 2, 3, 4], np.float32), "kernel": np.array([1, 10, 100, 1000], np.float32)}
    tracemalloc.start()
    try:
        output = run(i, inputs, expanded=expanded)["output"]
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert list(output) == [0, 0, 0, 0, 4321, 0, 0, 0, 0]


@pytest.mark.parametrize("expanded", [False, True])
def test_padding_is_left_out_rather_than_multiplied(expanded: bool) -> None:
    i = make(ROWS["Conv2D"], Type.F32, batch=1, in_channels=1, out_channels=1, height=1, width=1, kernel_h=3,
             kernel_w=1, padding=(1, 0), stride=(1 << 40, 1 << 40))  # fmt: skip
    inputs = {"input": np.array([2], np.float32), "kernel": np.array([np.inf, 1, np.nan], np.float32)}
    assert list(run(i, inputs, expanded=expanded)["output"]) == [2]


@pytest.mark.parametrize("expanded", [False, True])
def test_all_of_an_input_must_be_there_though_strides_pass_over_it(expanded: bool) -> None:
    b, backend = ProgramBuilder(), ReferenceBackend(expanded=expanded)
    for name in ("input", "kernel", "output"):
        b.buffer(name, Type.F32)
    b.emit(make(ROWS["Conv2D"], Type.F32, batch=1, in_channels=1, out_channels=1, height=5, width=1, kernel_h=2,
                kernel_w=1, stride=(2, 1)))  # fmt: skip
    params = {name: backend.array(np.ones(n, np.float32)) for name, n in (("input", 4), ("kernel", 2), ("output", 2))}
    with pytest.raises(ExecutionFailed, match="out of range"):
        backend.execute(b.build(), LaunchConfig(), params)


@checkered(inverse=[False, True], n=[1, 4, 5], ty=FLOAT_TYPES)
def test_fft(ty: Type, n: int, inverse: bool) -> None:
    """One signal, and several that lie side by side."""

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        turn, factor = 2j * math.pi / n * (1 if inverse else -1), i.scale / (n if inverse else 1)
        found = np.empty((i.batch, n, i.inner, 2))
        for s, q in np.ndindex(i.batch, i.inner):
            signal = [complex(*pair) for pair in x["input"].reshape(found.shape)[s, :, q]]
            for k in range(n):
                total = sum(signal[t] * cmath.exp(turn * k * t) for t in range(n)) * factor
                found[s, k, q] = total.real, total.imag
        return found

    check(make(ROWS["FFT"], ty, n=n, inverse=inverse), "output", loops, 4 * n)
    check(make(ROWS["FFT"], ty, n=n, inverse=inverse, batch=2, inner=3, scale=0.5), "output", loops, 4 * n)


# --- networks -------------------------------------------------------------------------------------


def _normal(values: list[float], eps: float) -> list[float]:
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / math.sqrt(variance + eps) for v in values]


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_layer_norm(ty: Type) -> None:
    i = make(ROWS["LayerNorm"], ty, n=9)
    check(i, "output", lambda i, x: np.array(_normal(list(x["input"]), i.eps)) * x["gamma"] + x["beta"], 30)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_batch_norm(ty: Type) -> None:
    i = make(ROWS["BatchNorm"], ty, batch=2, channels=3, spatial=4)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        out = x["input"].reshape(2, 3, 4).copy()
        for c in range(3):
            out[:, c] = (out[:, c] - x["mean"][c]) / math.sqrt(x["variance"][c] + i.eps) * x["gamma"][c] + x["beta"][c]
        return out

    check(i, "output", loops, 8)


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_group_norm(ty: Type) -> None:
    i = make(ROWS["GroupNorm"], ty, batch=2, channels=4, groups=2, spatial=3)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        rows = [_normal(list(group), i.eps) for group in x["input"].reshape(4, 6)]
        normal = np.array(rows).reshape(2, 4, 3)
        return normal * x["gamma"][None, :, None] + x["beta"][None, :, None]

    check(i, "output", loops, 30)


def _softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_softmax_is_stable(ty: Type) -> None:
    i = make(ROWS["Softmax"], ty, n=7)
    check(i, "output", lambda i, x: np.array(_softmax(list(x["input"]))), 10)
    large = {"input": to_array([1000, 1001, 999, 1000, -1000, 1001, 0], ty)}
    check(i, "output", lambda i, x: np.array(_softmax(list(x["input"]))), 10, large)


@checkered(causal=[False, True], name=["Attention", "FlashAttention"], ty=FLOAT_TYPES)
def test_attention(name: str, ty: Type, causal: bool) -> None:
    i = make(ROWS[name], ty, batch=1, heads=2, seq_len=3, head_dim=2, causal=causal)

    def loops(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        q, k, v = (x[key].reshape(2, 3, 2) for key in ("query", "key", "value"))
        out = np.zeros((2, 3, 2))
        for h in range(2):
            for t in range(3):
                keys = t + 1 if causal else 3
                scores = [sum(q[h, t, d] * k[h, u, d] for d in range(2)) / math.sqrt(2) for u in range(keys)]
                for u, weight in enumerate(_softmax(scores)):
                    out[h, t] += weight * v[h, u]
        return out

    check(i, "output", loops, 20)


ALL_SEEN: dict[str, Any] = dict.fromkeys(("mask", "bias", "lengths", "spans", "dropout_key"))  # of attention


@checkered(causal=[False, True], ty=FLOAT_TYPES)
def test_batched_attention(ty: Type, causal: bool) -> None:
    """Two pictures of two heads: queries interleaved, keys of one head for both, more keys than queries."""
    strides = ALL_SEEN | {"query_strides": (12, 2, 4), "key_strides": (8, 0, 2), "value_strides": (16, 8, 2)}
    i = make(ROWS["BatchedAttention"], ty, batch=4, batches=(2, 2), queries=3, keys=4, head_dim=2, scale=0.5,
             causal=causal, **strides)  # fmt: skip

    def loops(i: Instruction, x: dict[str, np.ndarray], *, sums: bool) -> np.ndarray:
        q, k, v = (x[name].astype(np.float64) for name in ("query", "key", "value"))
        found, totals = np.zeros((4, 3, 2)), np.zeros((4, 3))
        for n, h, t in itertools.product(range(2), range(2), range(3)):
            keys = range(t + 1 if causal else 4)
            query = q[12 * n + 2 * h + 4 * t :][:2]
            weights = np.array([math.exp(0.5 * (query @ k[8 * n + 2 * u :][:2])) for u in keys])
            values = np.array([v[16 * n + 8 * h + 2 * u :][:2] for u in keys])
            found[2 * n + h, t], totals[2 * n + h, t] = weights @ values / weights.sum(), math.log2(weights.sum())
        return totals if sums else found

    check(i, "output", functools.partial(loops, sums=False), 8)
    check(i, "sums", functools.partial(loops, sums=True), 8)


@pytest.mark.parametrize(("ty", "causal", "queries", "keys"), [
    *((ty, True, 2, 3) for ty in FLOAT_TYPES), (Type.F32, False, 2, 3), (Type.F32, True, 3, 2),
])  # fmt: skip
def test_batched_attention_gradients(ty: Type, causal: bool, queries: int, keys: int) -> None:
    """Two heads: queries interleaved, keys of one head for both; keys that no query sees."""
    strides = {"query_strides": (0, 2, 4), "key_strides": (0, 0, 2), "value_strides": (0, 2 * keys, 2),
               "cotangent_strides": (0, 2, 4)}  # fmt: skip
    operands = {"batch": 2, "batches": (1, 2), "queries": queries, "keys": keys, "head_dim": 2, "scale": 0.5,
                "causal": causal, **strides, **ALL_SEEN}  # fmt: skip

    def loops(i: Instruction, x: dict[str, np.ndarray], *, which: int) -> np.ndarray:
        found = [np.zeros((2, lines, 2)) for lines in (queries, keys, keys)]
        for h, t, u in itertools.product(range(2), range(queries), range(keys)):
            if causal and u > t:
                continue
            lines = {"query": t, "key": u, "value": u, "cotangent": t}
            q, k, v, ct = (
                x[name].astype(np.float64)[np.dot((0, h, line), strides[f"{name}_strides"]) :][:2]
                for name, line in lines.items()
            )
            sums, inner = (float(x[name].reshape(2, queries)[h, t]) for name in ("sums", "inner"))
            weight = 2 ** (0.5 * (q @ k) * math.log2(math.e) - sums)
            slope = 0.5 * weight * (ct @ v - inner)
            found[0][h, t] += slope * k
            found[1][h, u] += slope * q
            found[2][h, u] += weight * ct
        return found[which]

    outputs = {"BatchedAttentionGradQuery": ["output"], "BatchedAttentionGradKeyValue": ["key_output", "value_output"]}
    names = [(name, output) for name, them in outputs.items() for output in them]
    for which, (name, output) in enumerate(names):
        check(make(ROWS[name], ty, **operands), output, functools.partial(loops, which=which), 12)


@pytest.mark.parametrize("seen", ["causal window", "window", "mask", "bias", "lengths", "spans"])
def test_attention_to_some_of_the_keys(seen: str) -> None:
    """With gradients; the last query sees nothing, and a window of one place leaves the second key to one query."""
    count = 3 if seen == "spans" else 2
    row = {"window": {"window": 1}, "causal window": {"window": 2, "causal": True}}
    lies = {"batch": 1, "batches": (1,), "queries": 3, "keys": count, "head_dim": 1, "scale": 0.5,
            "query_strides": (3, 1), "key_strides": (count, 1), "value_strides": (count, 1)}  # fmt: skip
    how = {**lies, **ALL_SEEN, **row.get(seen, {})}
    if seen in ("mask", "bias"):
        how |= {seen: BufferOffset(seen), "mask_strides": (0, 2)}
    if seen in ("lengths", "spans"):
        how |= {seen: BufferOffset(seen), **({"lengths_strides": (0,)} if seen == "lengths" else {})}
    apart = np.arange(3)[:, None] - np.arange(count)
    near = {"window": abs(apart) < 1, "causal window": (apart >= 0) & (apart < 2)}
    added = np.array([[0.5, -1], [-np.inf, 0.25], [-np.inf, -np.inf]])
    near |= {"lengths": np.arange(2) < [[1]] * 3, "spans": np.array([[0, 0, 0], [0, 1, 1], [0, 1, 1]], bool)}
    if seen in ("mask", "bias"):
        near[seen] = np.isfinite(added)

    def weights(x: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        q, k, v = (x[name].astype(np.float64).reshape(1, -1, 1) for name in ("query", "key", "value"))
        scores = np.where(near[seen], 0.5 * q @ k.swapaxes(1, 2), -np.inf) + (added if seen == "bias" else 0)
        powers = np.exp(scores)
        return powers, powers.sum(-1, keepdims=True), q, k, v

    def attended(i: Instruction, x: dict[str, np.ndarray], *, sums: bool) -> np.ndarray:
        powers, total, _, _, v = weights(x)
        told = np.where(total > 0, np.log2(np.where(total > 0, total, 1)), np.inf)
        return told if sums else powers / np.where(total > 0, total, 1) @ v

    def sloped(i: Instruction, x: dict[str, np.ndarray], *, which: str) -> np.ndarray:
        powers, _, q, k, v = weights(x)
        sums, inner = (x[name].astype(np.float64).reshape(1, 3, 1) for name in ("sums", "inner"))
        ct, weighed = x["cotangent"].astype(np.float64).reshape(1, 3, 1), powers * 2**-sums
        slopes = 0.5 * weighed * (ct @ v.swapaxes(1, 2) - inner)
        turned, of_value = slopes.swapaxes(1, 2), weighed.swapaxes(1, 2) @ ct
        return {"output": slopes @ k, "key_output": turned @ q, "value_output": of_value}[which]

    def given(i: Instruction) -> dict[str, np.ndarray]:
        masks = {"mask": np.isfinite(added).astype(np.uint8).ravel(), "bias": added.astype(np.float32).ravel(),
                 "lengths": np.array([1], np.int32), "spans": np.array([0, 1, 1, 0, 3, 3], np.int32)}  # fmt: skip
        return {**make_inputs(i), **{name: x for name, x in masks.items() if name == seen}}

    i = make(ROWS["BatchedAttention"], Type.F32, **how)
    for expanded in (False, True):
        found = run(i, given(i), expanded=expanded)
        for output in ("output", "sums"):
            wanted = attended(i, given(i), sums=output == "sums").ravel()
            np.testing.assert_allclose(found[output], wanted, rtol=1e-5, atol=1e-6)
    for name, outputs in (("Query", ["output"]), ("KeyValue", ["key_output", "value_output"])):
        i = make(ROWS[f"BatchedAttentionGrad{name}"], Type.F32, **how, cotangent_strides=(3, 1))
        for output in outputs:
            check(i, output, functools.partial(sloped, which=output), 12, given(i))


def test_attention_with_dropout() -> None:
    """Which weights it leaves out is drawn here by the random bits of tensors; sums are of all weights."""
    below = 100
    lies = {"batch": 2, "batches": (2,), "queries": 17, "keys": 11, "head_dim": 1, "scale": 0.5, **ALL_SEEN,
            "query_strides": (17, 1), "key_strides": (11, 1), "value_strides": (11, 1)}  # fmt: skip
    how: dict[str, Any] = lies | {"dropout_key": BufferOffset("dropout_key"), "dropout": below}
    key = np.array([7, 2**32 - 5], np.uint32)
    bits = np.asarray(TABLE["random_bits"].reference(Bits((2, 16, 4), uint64, DRAWS), key))
    share = np.zeros((2, 17, 11))
    for h, t, u in np.ndindex(share.shape):
        block = int(bits[h, t // 16 * 8 + t % 8, u // 16 * 4 + u % 8 // 2])
        word = block >> 32 if u % 2 == 0 else block & 0xFFFFFFFF
        byte = word >> (16 * (t // 8 % 2) + 8 * (u // 8 % 2)) & 255
        share[h, t, u] = 0 if byte < below else 256 / (256 - below)

    def weighed(x: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        q, k, v = (x[name].astype(np.float64).reshape(2, -1, 1) for name in ("query", "key", "value"))
        return np.exp(0.5 * q @ k.swapaxes(1, 2)), q, k, v

    def attended(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        powers, _, _, v = weighed(x)
        return share * powers / powers.sum(-1, keepdims=True) @ v

    def sloped(i: Instruction, x: dict[str, np.ndarray], *, which: str) -> np.ndarray:
        powers, q, k, v = weighed(x)
        sums, inner = (x[name].astype(np.float64).reshape(2, 17, 1) for name in ("sums", "inner"))
        ct, weights = x["cotangent"].astype(np.float64).reshape(2, 17, 1), powers * 2**-sums
        slopes = 0.5 * weights * (share * (ct @ v.swapaxes(1, 2)) - inner)
        turned, of_value = slopes.swapaxes(1, 2), (share * weights).swapaxes(1, 2) @ ct
        return {"output": slopes @ k, "key_output": turned @ q, "value_output": of_value}[which]

    i = make(ROWS["BatchedAttention"], Type.F32, **how)
    check(i, "output", attended, 12, {**make_inputs(i), "dropout_key": key})
    for name, outputs in (("Query", ["output"]), ("KeyValue", ["key_output", "value_output"])):
        i = make(ROWS[f"BatchedAttentionGrad{name}"], Type.F32, **how, cotangent_strides=(17, 1))
        for output in outputs:
            check(i, output, functools.partial(sloped, which=output), 40, {**make_inputs(i), "dropout_key": key})


@pytest.mark.parametrize("wide", [False, True])
def test_floats_of_8_bits(wide: bool) -> None:
    """Every byte, times 1: one by one what its bits say."""
    i = make(ROWS["Float8GEMM"], Type.F32, m=256, n=1, k=1, wide_a=wide, wide_b=not wide)
    one, (mantissa, bias) = 0x38 if wide else 0x3C, (2, 15) if wide else (3, 7)
    inputs = {"a": np.arange(256, dtype=np.uint8), "b": np.array([one], np.uint8), "scale": np.array([2], np.float32)}
    for expanded in (False, True):
        found = run(i, inputs, expanded=expanded)["c"].reshape(256)
        for byte in range(256):
            exponent, rest = byte % 128 >> mantissa, byte % 2**mantissa
            wanted = (rest / 2**mantissa + (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias) * 2
            if byte % 128 == 127 or (wide and exponent == 31 and rest):
                wanted = math.nan
            elif wide and exponent == 31:
                wanted = math.inf
            np.testing.assert_equal(float(found[byte]), 0.0 + (-wanted if byte >= 128 else wanted))


@pytest.mark.parametrize("ty", [Type.F32, Type.F16, Type.BF16])
def test_products_of_floats_of_8_bits(ty: Type) -> None:
    i = make(ROWS["Float8GEMM"], ty, m=2, n=3, k=4, wide_b=True)
    inputs = {"a": np.array([0x38, 0xB8, 0x40, 0, 1, 2, 3, 0x7E], np.uint8), "scale": np.array([0.5], np.float32),
              "b": np.array([0x3C, 0, 0xBC, 0x40, 1, 2, 3, 4, 0x44, 0x44, 0x44, 0x3C], np.uint8)}  # fmt: skip
    a = np.array([[1, -1, 2, 0], [2**-9, 2**-8, 3 * 2**-9, 448]])
    b = np.array([[1, 0, -1, 2], [2**-16, 2**-15, 3 * 2**-16, 2**-14], [4, 4, 4, 1]])
    for expanded in (False, True):
        found = run(i, inputs, expanded=expanded)["c"].astype(np.float64).reshape(2, 3)
        np.testing.assert_allclose(found, 0.5 * a @ b.T, rtol=EPSILON[ty])


@pytest.mark.parametrize("ty", FLOAT_TYPES)
def test_attention_to_pages(ty: Type) -> None:
    """Of four pages, of three places each: two pages of the first sample, of which five places count; no key; all."""
    i = make(ROWS["PagedAttention"], ty, batch=3, heads=1, members=2, queries=1, pages=4, page=3, most=2, head_dim=2,
             scale=0.5)  # fmt: skip
    table, lengths = [3, 1, 9, -2, 0, 2], [5, -1, 99]

    def loops(i: Instruction, x: dict[str, np.ndarray], *, sums: bool) -> np.ndarray:
        q, k, v = (x[name].reshape(-1, 2) for name in ("query", "key", "value"))
        found, totals = np.zeros((6, 2)), np.full(6, np.inf)
        for line, sample in enumerate((0, 0, 2, 2), 0):
            row = line if sample == 0 else line + 2
            places = [3 * table[2 * sample + n // 3] + n % 3 for n in range(5 if sample == 0 else 6)]
            weights = np.array([math.exp(0.5 * (q[row] @ k[u])) for u in places])
            found[row], totals[row] = weights @ v[places] / weights.sum(), math.log2(weights.sum())
        return totals if sums else found

    inputs = make_inputs(i) | {"table": np.array(table, np.int32), "lengths": np.array(lengths, np.int32)}
    for expanded in (False, True):
        found = run(i, inputs, expanded=expanded)
        wide = {name: a.astype(np.float64) for name, a in inputs.items() if a.dtype != object}
        for name in ("output", "sums"):
            wanted = loops(i, {**inputs, **wide}, sums=name == "sums").ravel()
            bound = 8 * EPSILON[ty if name == "output" else Type.F32 if ty.is_half else ty]
            got = found[name].astype(np.float64)
            np.testing.assert_allclose(got, wanted, rtol=max(bound, 1e-6), atol=max(bound, 1e-6))


@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_share_keys_have_their_gradients_in_common(causal: bool) -> None:
    """Sums of what the heads would have by themselves."""
    strides = {"query_strides": (6, 2, 1), "key_strides": (3, 0, 1), "value_strides": (3, 0, 1),
               "cotangent_strides": (6, 2, 1)}  # fmt: skip
    given = {"batch": 6, "batches": (2, 3), "queries": 2, "keys": 3, "head_dim": 1, "scale": 0.5, "causal": causal,
             **strides, **ALL_SEEN}  # fmt: skip
    row = ROWS["BatchedAttentionGradKeyValue"]
    for output in ("key_output", "value_output"):

        def summed(i: Instruction, x: dict[str, np.ndarray], output: str = output) -> np.ndarray:
            alone = run(make(row, Type.F32, **given), x, expanded=False)[output]
            return alone.reshape(2, 3, 3, 1).astype(np.float64).sum(1)

        check(make(row, Type.F32, **given, grouped=True), output, summed, 12)
    i, b = make(row, Type.F32, **{**given, "key_strides": (3, 1, 1)}, grouped=True), ProgramBuilder()
    for f in i.op.memory:
        b.buffer(f.name, element_type(i, f))
    b.emit(i)
    with pytest.raises(IsaError, match="share keys and values"):
        validate(b.build())


def test_strides_of_batched_attention_are_one_for_each_axis() -> None:
    for name in ("BatchedAttention", "BatchedAttentionGradQuery", "BatchedAttentionGradKeyValue"):
        mask = {"mask": BufferOffset("mask"), "mask_strides": (2,)}
        wrongs = (
            ("key_strides", {"key_strides": (2,)}),
            ("batches", {"batch": 3}),
            ("mask_strides", mask),
        )
        for what, wrong in wrongs:
            i, b = make(ROWS[name], Type.F32, **{**SMALL[name], **wrong}), ProgramBuilder()
            for f in i.op.memory:
                b.buffer(f.name, element_type(i, f))
            b.emit(i)
            with pytest.raises(IsaError, match=f"{name}: {what}"):
                validate(b.build())


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("name", ["Attention", "FlashAttention"])
def test_attention_at_infinity(name: str, expanded: bool) -> None:
    """A score of -inf has no weight, nothing but them gives NaN, and what comes later is not looked at."""
    causal = make(ROWS[name], Type.F32, batch=1, heads=1, seq_len=3, head_dim=1, causal=True)
    ones, inf, nan = np.ones(3, np.float32), math.inf, math.nan
    inputs = {"query": ones, "key": to_array([-inf, 1, nan], Type.F32), "value": to_array([5, 7, nan], Type.F32)}
    found = run(causal, inputs, expanded=expanded)["output"]
    np.testing.assert_array_equal(found, np.array([nan, 7, nan], np.float32))


@pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
def test_layer_scale_rope_and_cache(ty: Type) -> None:
    check(make(ROWS["LayerScale"], ty, n=5), "output", lambda i, x: x["input"] * x["scale"], 1)

    def rope(i: Instruction, x: dict[str, np.ndarray]) -> np.ndarray:
        values, angles = x["input"].reshape(2, 2, 1, 4), x["freqs"].reshape(2, 2)
        out = np.zeros_like(values)
        for s, t, d in np.ndindex(2, 2, 2):
            turned = complex(*values[s, t, 0, 2 * d : 2 * d + 2]) * cmath.exp(1j * angles[t, d])
            out[s, t, 0, 2 * d], out[s, t, 0, 2 * d + 1] = turned.real, turned.imag
        return out

    check(make(ROWS["RoPE"], ty, batch=2, seq_len=2, heads=1, head_dim=4), "output", rope, 4)
    update = make(ROWS["KVCacheUpdate"], ty, position=2, batch=1, heads=2, head_dim=3)
    check(update, "cache", lambda i, x: x["new_kv"], 0)


def test_every_array_extension_is_tested_here() -> None:
    """A new row must come with a test: this list is what the tests above run."""
    tested = {*REDUCTIONS, "ParallelReduce", "ParallelMap", "ParallelMapBinary", "GEMM", "BatchedGEMM", "SummedGEMM",
              "SparseGEMM",
              "MixedPrecisionGEMM", "FusedGEMM", "IntegerGEMM", "QuantizedGEMM", "TensorContract", "Conv2D",
              "ChannelsLastConv2D", "Conv2DGradInput", "ChannelsLastConv2DGradInput", "Conv2DGradWeight",
              "ChannelsLastConv2DGradWeight",
              "FusedConv2D", "FFT", "LayerNorm",
              "BatchNorm", "GroupNorm", "Softmax", "Attention", "FlashAttention", "BatchedAttention",
              "BatchedAttentionGradQuery", "BatchedAttentionGradKeyValue", "LayerScale", "RoPE",
              "KVCacheUpdate", "Float8GEMM", "PagedAttention"}  # fmt: skip
    assert {op.name for op in ROWS.values() if isinstance(op.meaning, Arrays)} == tested


# --- who executes an array instruction ------------------------------------------------------------


@pytest.mark.parametrize("expanded", [False, True])
def test_lanes_with_their_own_addresses_work_on_their_own_rows(expanded: bool) -> None:
    """A softmax per lane: row r255 of a matrix, through Indexed addresses of a U64 register."""
    backend, b = ReferenceBackend(expanded=expanded), ProgramBuilder()
    x, y = b.buffer("x", Type.F32), b.buffer("y", Type.F32)
    b.softmax(Type.F32, y.address.at(Register(255), 12), x.address.at(Register(255), 12), 3)
    values = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
    out = backend.allocate_typed(Type.F32, 12)
    backend.execute(b.build(), LaunchConfig.linear(4), {"x": backend.array(values), "y": out})
    wanted = [_softmax([float(v) for v in row]) for row in values]
    np.testing.assert_allclose(out.read().reshape(4, 3), wanted, rtol=1e-6)


@pytest.mark.parametrize("expanded", [False, True])
def test_every_memory_serves_array_instructions(expanded: bool) -> None:
    """From a pool, class memory (static and by register) and shared memory of each block."""
    backend, b = ReferenceBackend(expanded=expanded), ProgramBuilder()
    pool, out = b.pool("q"), b.buffer("out", Type.I32)
    linear, total, lane = b.reg(), b.reg(), Register(252)
    b.parallel_map(Type.I32, MapOperation.Neg, ClassOffset(3, 4), PoolOffset(pool.name, 8), 2)
    b.mov_imm(linear, _u64(3 * 12288 + 4))
    b.grid_sync()
    b.reduce_add(Type.I32, total, RegisterIndirect(linear), 2)
    b.sts(Type.I32, Shared(0).at(lane, 4), total)
    b.parallel_map(Type.I32, MapOperation.Abs, Shared(8), Shared(0), 2)
    b.reduce_add(Type.I32, total, Shared(0), 4)
    b.stg(Type.I32, out.at(Register(255)), total)
    handle = backend.allocate_pool(16)
    backend.copy_to_pool(handle, 8, np.array([5, 6], np.int32))
    result = backend.allocate_typed(Type.I32, 4)
    backend.execute(b.build(), LaunchConfig.linear(4, block=2, shared_memory=16), {"q": handle, "out": result})
    assert list(backend.class_memory[3 * 12288 + 4 : 3 * 12288 + 12].view(np.int32)) == [-5, -6]
    assert list(result.read()) == [0, 0, 0, 0]  # -11 twice and 11 twice


def _u64(value: int) -> Any:
    return Immediate(Type.U64, value)


@pytest.mark.parametrize("expanded", [False, True])
def test_uniform_instruction_happens_once_however_many_lanes(expanded: bool) -> None:
    backend, b = ReferenceBackend(expanded=expanded), ProgramBuilder()
    x = b.buffer("x", Type.I32)
    for _ in range(3):
        b.parallel_map(Type.I32, MapOperation.Neg, x.address, x.address, 5)
    buffer = backend.array(np.arange(5, dtype=np.int32))
    backend.execute(b.build(), LaunchConfig.linear(1000), {"x": buffer})
    assert list(buffer.read()) == [0, -1, -2, -3, -4]


def test_overlap_found_at_run_time() -> None:
    backend, b = ReferenceBackend(), ProgramBuilder()
    b.buffer("x", Type.F32)
    index = b.constant(Type.U32, 1)
    b.gemm(Type.F32, BufferOffset("x").at(index, 4), BufferOffset("x"), BufferOffset("x", 8), m=1, n=1, k=2)
    with pytest.raises(ExecutionFailed, match="c overlaps a"):
        backend.execute(b.build(), LaunchConfig(), {"x": backend.array(np.ones(8, np.float32))})


# --- arrays that start where a register says ------------------------------------------------------


FAR = [0, 1, 7, 1 << 28, (1 << 28) + 1, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 59, 1 << 60, (1 << 63) - 1,
       1 << 63, (1 << 64) - 16, (1 << 64) - 1]  # fmt: skip
INDEX_TYPES = [Type.U32, Type.I32, Type.U64, Type.I64]


@st.composite
def register_addresses(draw: st.DrawFn) -> tuple[Type, Address, Immediate]:
    """An element type, an address that depends on r0, and a value of r0: near, at the edges, and far away."""
    ty, index_ty = draw(st.sampled_from([Type.U8, Type.I32, Type.F64, Type.U128])), draw(st.sampled_from(INDEX_TYPES))
    edges = [v for far in FAR for v in (far, -far) if index_ty.min_value <= v <= index_ty.max_value]
    classes = [k * 12288 + d for k in (1, 2, 95, 96) for d in range(-24, 9, 8)]
    value = draw(st.one_of(st.sampled_from(edges + classes), st.integers(max(-40, index_ty.min_value), 60)))
    offset = draw(st.sampled_from([0, 0, 16, 64, 128, 12280, 1 << 34, 1 << 40, 1 << 48]))
    scale = draw(st.sampled_from([1, 4, 8, 12, 16, 1 << 20]))
    bases = [BufferOffset("x", offset), PoolOffset("q", offset), ClassOffset(95, offset)]
    indexed = st.sampled_from(bases).map(lambda base: base.at(Register(0), scale))
    address = draw(st.one_of(st.just(RegisterIndirect(Register(0))), indexed))
    return ty, address, Immediate(index_ty, value)


def sum_at(backend: Backend, ty: Type, address: Address, index: Immediate, count: int) -> str:
    """ReduceAdd from an address that depends on r0, or the kind of failure."""
    b = ProgramBuilder()
    params = {
        b.buffer("x", ty).name: backend.array(np.arange(64) % 11, ty),
        b.pool("q").name: backend.allocate_pool(128),
    }
    backend.copy_to_pool(params["q"], 0, np.arange(128, dtype=np.uint8) % 7)
    params[b.buffer("out", ty).name] = out = backend.allocate_typed(ty, 1)
    b.mov_imm(Register(0), index)
    b.reduce_add(ty, Register(1), address, count)
    b.stg(ty, BufferOffset("out"), Register(1))
    try:
        backend.execute(b.build(), LaunchConfig(), params)
    except (ExecutionFailed, IsaError) as error:
        return type(error).__name__
    return str(out.read()[0])


@examples(400, 120)
@given(where=register_addresses(), count=st.integers(0, 9))
@example((Type.U8, BufferOffset("x").at(Register(0), 16), Immediate(Type.U32, 1 << 28)), 1)  # 2^32, not 0
@example((Type.U8, RegisterIndirect(Register(0)), Immediate(Type.U32, (1 << 32) - 1)), 2)
@example((Type.U8, RegisterIndirect(Register(0)), Immediate(Type.U64, 12287)), 2)  # crosses a class
@example((Type.U8, BufferOffset("x", 1 << 40).at(Register(0), 1), Immediate(Type.I64, -(1 << 50))), 1)
@example((Type.U8, BufferOffset("x", 1 << 48).at(Register(0), 1), Immediate(Type.I64, -(1 << 48))), 9)  # all inside
@example((Type.F64, RegisterIndirect(Register(0)), Immediate(Type.U64, 1 << 40)), 0)  # no element is out of range
def test_no_address_wraps_into_memory(where: tuple[Type, Address, Immediate], count: int) -> None:
    """Both forms sum the same elements, or both refuse, however far away the register points."""
    native, expanded = (sum_at(ReferenceBackend(expanded=e), *where, count) for e in (False, True))
    assert native == expanded


@pytest.mark.parametrize(
    "operands",
    [
        ("ReduceAdd", {"dst": Register(0), "count": 1 << 32}),
        ("GEMM", {"m": 1 << 16, "n": 1, "k": 1 << 16}),
        ("SparseGEMM", {"m": 1, "n": 1 << 8, "k": 1 << 24, "nnz": 1}),
        ("KVCacheUpdate", {"position": (1 << 32) - 2, "batch": 1, "heads": 1, "head_dim": 2}),
        ("TensorContract", {"shape_a": (1 << 20, 1 << 11), "shape_b": (1 << 11, 1 << 12), "contract_dims": ((1, 0),)}),
    ],
    ids=lambda operands: operands[0],
)
def test_expansions_refuse_arrays_whose_elements_they_cannot_count(operands: tuple[str, dict[str, Any]]) -> None:
    """Their indices are U32: an index beyond would wrap around and give a wrong answer."""
    b, i = ProgramBuilder(), make(ROWS[operands[0]], Type.F32, **operands[1])
    for f, _ in memory_operands(i):
        b.buffer(f.name, element_type(i, f))
    b.emit(i)
    with pytest.raises(IsaError, match="expansions count to 4294967295"):
        expand(b.build())


SMALL: dict[str, dict[str, Any]] = {
    "GEMM": {"m": 2, "n": 2, "k": 2, "beta": 1.0},
    "FusedGEMM": {"out_ty": Type.F16, "activation": Activation.Gelu, "m": 2, "n": 2, "k": 2},
    "BatchedGEMM": {"batch": 1, "m": 2, "n": 2, "k": 2},
    "SummedGEMM": {"batch": 2, "m": 1, "n": 2, "k": 3, "depth": 2, "each": 3},
    "TensorContract": {"shape_a": (2, 2), "shape_b": (2, 2), "contract_dims": ((1, 0),)},
    "Conv2D": {"batch": 1, "in_channels": 1, "out_channels": 1, "height": 2, "width": 2, "kernel_h": 2, "kernel_w": 2,
               "padding": (1, 1)},
    "ChannelsLastConv2D": {"batch": 1, "in_channels": 2, "out_channels": 2, "height": 2, "width": 2, "kernel_h": 2,
                           "kernel_w": 2, "padding": (1, 1), "stride": (1, 2)},
    "Conv2DGradInput": {"batch": 1, "in_channels": 2, "out_channels": 2, "height": 2, "width": 2, "kernel_h": 2,
                        "kernel_w": 2, "padding": (1, 1), "stride": (2, 2), "groups": 2},
    "Conv2DGradWeight": {"batch": 1, "in_channels": 1, "out_channels": 1, "height": 2, "width": 2, "kernel_h": 2,
                         "kernel_w": 2, "padding": (1, 0, 1, 1), "dilation": (2, 1)},
    "ChannelsLastConv2DGradInput": {"batch": 1, "in_channels": 2, "out_channels": 1, "height": 2, "width": 2,
                                    "kernel_h": 2, "kernel_w": 1, "padding": (1, 0, 0, 1), "stride": (1, 2)},
    "ChannelsLastConv2DGradWeight": {"batch": 2, "in_channels": 2, "out_channels": 1, "height": 2, "width": 2,
                                     "kernel_h": 2, "kernel_w": 1, "padding": (1, 0, 0, 1), "each": 5},
    "FusedConv2D": {"activation": Activation.Gelu, "batch": 1, "in_channels": 1, "out_channels": 1, "height": 2,
                    "width": 2, "kernel_h": 2, "kernel_w": 2, "padding": (1, 1)},
    "FFT": {"n": 2},
    "LayerNorm": {"n": 2},
    "BatchNorm": {"batch": 1, "channels": 2, "spatial": 2},
    "GroupNorm": {"batch": 1, "channels": 2, "groups": 1, "spatial": 2},
    "Softmax": {"n": 2},
    "Attention": {"batch": 1, "heads": 1, "seq_len": 2, "head_dim": 2},
    "FlashAttention": {"batch": 1, "heads": 1, "seq_len": 2, "head_dim": 2},
    "BatchedAttention": {**ALL_SEEN, "batch": 2, "batches": (2,), "queries": 2, "keys": 2, "head_dim": 2, "scale": 1.0,
                         "query_strides": (4, 2), "key_strides": (0, 2), "value_strides": (4, 2)},
    "Float8GEMM": {"m": 2, "n": 1, "k": 2},
    "PagedAttention": {"batch": 1, "heads": 1, "members": 2, "queries": 1, "pages": 3, "page": 2, "most": 2,
                       "head_dim": 2, "scale": 1.0},
    "LayerScale": {"n": 2},
    "RoPE": {"batch": 1, "seq_len": 1, "heads": 1, "head_dim": 2},
    "KVCacheUpdate": {"position": 1, "batch": 1, "heads": 1, "head_dim": 2},
}  # fmt: skip
for name in ("BatchedAttentionGradQuery", "BatchedAttentionGradKeyValue"):
    SMALL[name] = {**SMALL["BatchedAttention"], "cotangent_strides": (4, 2)}


@pytest.mark.parametrize("indirect", [False, True])
@pytest.mark.parametrize("name", SMALL)
def test_addresses_by_register_mean_what_static_ones_do(name: str, indirect: bool) -> None:
    """Expanded, from registers to memory: the same bits as from static addresses, within the registers there are."""
    static = make(ROWS[name], Type.F16, **SMALL[name])
    inputs, found = make_inputs(static), []
    for by_register in (False, True):
        backend, b = ReferenceBackend(expanded=True), ProgramBuilder()
        addresses: dict[str, Address] = {}
        for number, (f, _) in enumerate(memory_operands(static)):
            start, size = extent(static, f)
            backend.class_memory[number * 12288 + start : number * 12288 + start + size] = encode(
                inputs[f.name], element_type(static, f)
            ).reshape(-1)
            if not by_register:
                addresses[f.name] = ClassOffset(number)
            elif indirect:
                addresses[f.name] = RegisterIndirect(b.constant(Type.I32, number * 12288))
            else:
                addresses[f.name] = ClassOffset(number, 40).at(b.constant(Type.I64, -5), 8)
        b.emit(make(ROWS[name], Type.F16, **SMALL[name], **addresses))
        backend.execute(b.build(), LaunchConfig(), {})
        found.append(backend.class_memory.tobytes())
    assert found[0] == found[1]
