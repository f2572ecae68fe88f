"""JSON kernels: every statement and expression against a Python oracle, and every error with its path."""

from __future__ import annotations

import copy
import doctest
import json
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batches import in_batches, of_each
from effort import amount, examples
from eshkol.atlas import numerics as nx
from eshkol.atlas.operands import BinaryMapOperation, MapOperation, ReduceOperation, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.translate import kernel as kernel_module
from eshkol.atlas.translate import translate_kernel
from eshkol.atlas.translate.kernel_expressions import FUNCTIONS, LAUNCH_INDICES, SCALAR_FUNCTIONS
from eshkol.atlas.translate.kernel_source import NESTING_LIMIT
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import IsaError

Json = dict[str, Any]

# --- writing kernels ------------------------------------------------------------------------------


def var(name: str) -> Json:
    return {"kind": "var", "name": name}


def lit(value: Any, ty: str | None = None) -> Json:
    return {"kind": "literal", "value": value} | ({} if ty is None else {"type": ty})


def op(name: str, left: Json, right: Json) -> Json:
    return {"kind": "binary_op", "op": name, "left": left, "right": right}


def un(name: str, operand: Json) -> Json:
    return {"kind": "unary_op", "op": name, "operand": operand}


def at(array: str, index: Json) -> Json:
    return {"kind": "index", "array": array, "index": index}


def call(function: str, *args: Json) -> Json:
    return {"kind": "call", "function": function, "args": list(args)}


def cast(ty: str, value: Json) -> Json:
    return {"kind": "cast", "type": ty, "value": value}


def choose(cond: Json, then: Json, otherwise: Json) -> Json:
    return {"kind": "if_expr", "cond": cond, "then": then, "else": otherwise}


def let(name: str, value: Json, ty: str | None = None) -> Json:
    return {"kind": "let", "name": name, "value": value} | ({} if ty is None else {"type": ty})


def assign(target: Json, value: Json) -> Json:
    return {"kind": "assign", "target": target, "value": value}


def when(cond: Json, then: list[Json], otherwise: list[Json] | None = None) -> Json:
    statement = {"kind": "if", "cond": cond, "then": then}
    return statement if otherwise is None else statement | {"else": otherwise}


def loop(name: str, start: Json, stop: Json, body: list[Json], **more: Any) -> Json:
    return {"kind": "for", "var": name, "start": start, "stop": stop, "body": body, **more}


def repeat(cond: Json, body: list[Json]) -> Json:
    return {"kind": "while", "cond": cond, "body": body}


def scalar(name: str, ty: str) -> Json:
    return {"name": name, "kind": "scalar", "type": ty}


def array(name: str, ty: str = "F32") -> Json:
    return {"name": name, "kind": "device_ptr", "element_type": ty}


def kernel(params: list[Json], body: list[Json], name: str = "test") -> Json:
    return {"version": "1.0", "kernel": {"name": name, "params": params, "body": body}}


ID = call("global_id")
TRUE, FALSE = lit(True), lit(False)


# --- running them ---------------------------------------------------------------------------------


def execute(source: Json, launch: LaunchConfig, values: dict[str, Any], *, expanded: bool = False) -> dict[str, Any]:
    """Run a kernel (through its JSON text); what the array parameters hold afterwards."""
    program = translate_kernel(json.dumps(source))
    validate(program)
    backend = ReferenceBackend(expanded=expanded)
    bound = {
        p.name: backend.array(values[p.name], p.ty) if isinstance(values[p.name], np.ndarray) else values[p.name]
        for p in program.params
    }
    backend.execute(program, launch, bound)
    return {name: b.read() for name, b in bound.items() if hasattr(b, "read")}


def compute(value: Json, inputs: dict[str, np.ndarray], ty: Type, *, expanded: bool = False) -> np.ndarray:
    """An expression of the lanes' elements: `x` in it is x[global_id]."""
    lanes = len(next(iter(inputs.values())))
    params = [array(name, str(Type.of_dtype(v.dtype))) for name, v in inputs.items()] + [array("out", str(ty))]
    body = [*(let(name, at(name, ID)) for name in inputs), assign(at("out", ID), value)]
    out = np.zeros(lanes, ty.dtype)
    launch = LaunchConfig((1, 1, 1), (lanes, 1, 1))
    return execute(kernel(params, body), launch, {**inputs, "out": out}, expanded=expanded)["out"]


def one(value: Json, ty: Type) -> Any:
    """An expression without inputs."""
    return compute(value, {"unused": np.zeros(1, np.float32)}, ty)[0]


def decide(cond: Json, inputs: dict[str, np.ndarray]) -> list[bool]:
    """A condition of the lanes' elements."""
    return [bool(v) for v in compute(choose(cond, lit(1), lit(0)), inputs, Type.I32)]


# --- whole kernels --------------------------------------------------------------------------------


SAXPY = kernel(
    [scalar("n", "U64"), scalar("alpha", "F32"), {"name": "x", "kind": "device_ptr"}, array("y")],
    [
        let("i", ID),
        when(op("lt", var("i"), var("n")), [
            assign(at("y", var("i")), op("add", op("mul", var("alpha"), at("x", var("i"))), at("y", var("i")))),
        ]),
    ],
    "saxpy",
)  # fmt: skip


@pytest.mark.parametrize("expanded", [False, True])
def test_saxpy_with_a_guard(expanded: bool) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.linspace(-1, 1, 1000, dtype=np.float32)
    launch = LaunchConfig.linear(1000)
    assert launch.total_threads > 1000  # so that the guard matters
    out = execute(SAXPY, launch, {"n": 1000, "alpha": 2.5, "x": x, "y": y}, expanded=expanded)
    np.testing.assert_array_equal(out["y"], np.float32(2.5) * x + y)
    np.testing.assert_array_equal(out["x"], x)


def test_the_name_decides_nothing() -> None:
    other = copy.deepcopy(SAXPY)
    other["kernel"]["name"] = "vector_add"
    assert translate_kernel(other).instructions == translate_kernel(SAXPY).instructions
    assert translate_kernel(other).name == "vector_add"


def test_text_bytes_and_mapping_are_the_same() -> None:
    text = json.dumps(SAXPY)
    programs = [translate_kernel(source) for source in (SAXPY, text, text.encode(), b"\xef\xbb\xbf" + text.encode())]
    assert len({p.digest for p in programs}) == 1


def test_matrix_product_by_nested_loops() -> None:
    m, k, n = 4, 5, 6
    element = op("mul", at("a", op("add", op("mul", var("row"), var("k")), var("p"))),
                 at("b", op("add", op("mul", var("p"), var("n")), var("column"))))  # fmt: skip
    source = kernel(
        [scalar("m", "I32"), scalar("k", "I32"), scalar("n", "I32"), array("a"), array("b"), array("c")],
        [loop("row", lit(0), var("m"), [
            loop("column", lit(0), var("n"), [
                let("sum", lit(0.0)),
                loop("p", lit(0), var("k"), [assign(var("sum"), op("add", var("sum"), element))]),
                assign(at("c", op("add", op("mul", var("row"), var("n")), var("column"))), var("sum")),
            ]),
        ])],
    )  # fmt: skip
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 8, s).astype(np.float32) for s in ((m, k), (k, n)))
    values = {"m": m, "k": k, "n": n, "a": a.ravel(), "b": b.ravel(), "c": np.zeros(m * n, np.float32)}
    out = execute(source, LaunchConfig(), values)
    np.testing.assert_array_equal(out["c"].reshape(m, n), a @ b)


def test_greatest_common_divisor_by_while() -> None:
    source = kernel(
        [array("a", "I64"), array("b", "I64")],
        [
            let("x", at("a", ID)), let("y", at("b", ID)),
            repeat(op("ne", var("y"), lit(0)), [
                let("rest", op("mod", var("x"), var("y"))),
                assign(var("x"), var("y")),
                assign(var("y"), var("rest")),
            ]),
            assign(at("a", ID), var("x")),
        ],
    )  # fmt: skip
    rng = np.random.default_rng(2)
    a, b = rng.integers(1, 10_000, 64), rng.integers(1, 10_000, 64)
    out = execute(source, LaunchConfig.linear(64), {"a": a, "b": b})
    np.testing.assert_array_equal(out["a"], np.gcd(a, b))


def test_collatz_lengths() -> None:
    source = kernel(
        [array("n", "U64"), array("steps", "I32")],
        [
            let("x", at("n", ID)), let("count", lit(0)),
            repeat(op("gt", var("x"), lit(1)), [
                when(op("eq", op("mod", var("x"), lit(2)), lit(0)),
                     [assign(var("x"), op("floor_div", var("x"), lit(2)))],
                     [assign(var("x"), op("add", op("mul", var("x"), lit(3)), lit(1)))]),
                assign(var("count"), op("add", var("count"), lit(1))),
            ]),
            assign(at("steps", ID), var("count")),
        ],
    )  # fmt: skip

    def collatz(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    values = {"n": np.arange(1, 51, dtype=np.uint64), "steps": np.zeros(50, np.int32)}
    out = execute(source, LaunchConfig.linear(50), values)
    assert out["steps"].tolist() == [collatz(n) for n in range(1, 51)]


# --- statements -----------------------------------------------------------------------------------


def record(*values: Json) -> list[Json]:
    """Statements that append values to the array `log`, whose element 0 counts them."""
    statements: list[Json] = []
    for value in values:
        statements += [
            assign(at("log", lit(0)), op("add", at("log", lit(0)), lit(1))),
            assign(at("log", cast("I32", at("log", lit(0)))), value),
        ]
    return statements


def trace(body: list[Json], ty: str = "I64", params: list[Json] | None = None, **values: Any) -> list[int]:
    """What a body of one lane records."""
    log = np.zeros(2000, Type.parse(ty).dtype)
    out = execute(kernel([array("log", ty), *(params or [])], body), LaunchConfig(), {"log": log, **values})
    return [int(v) for v in out["log"][1 : int(out["log"][0]) + 1]]


def test_let_assign_and_shadowing() -> None:
    body = [
        let("x", lit(1), "I64"),
        when(TRUE, [
            let("x", op("mul", var("x"), lit(10))),  # the value sees the outer x
            assign(var("x"), op("add", var("x"), lit(5))),
            *record(var("x")),
        ]),
        *record(var("x")),
        let("x", op("add", var("x"), lit(1))),  # shadows in the same block
        {"kind": "assign", "target": "x", "value": op("mul", var("x"), lit(7))},
        *record(var("x")),
    ]  # fmt: skip
    assert trace(body) == [15, 1, 14]


def test_a_copy_is_not_an_alias() -> None:
    body = [let("x", lit(1), "I64"), let("y", var("x")), assign(var("x"), lit(2)), *record(var("x"), var("y"))]
    assert trace(body) == [2, 1]


def test_scalar_parameters_are_variables() -> None:
    body = [assign(var("n"), op("add", var("n"), lit(1))), *record(var("n"))]
    assert trace(body, params=[scalar("n", "I64")], n=41) == [42]


def test_return_ends_the_lane_only() -> None:
    body = [when(op("eq", op("mod", ID, lit(3)), lit(0)), [{"kind": "return"}]), assign(at("out", ID), lit(1))]
    out = execute(kernel([array("out", "I32")], body), LaunchConfig.linear(10), {"out": np.zeros(10, np.int32)})
    assert out["out"].tolist() == [int(k % 3 != 0) for k in range(10)]


def test_return_from_an_endless_loop() -> None:
    body = [
        let("k", lit(0), "I64"),
        repeat(TRUE, [
            when(op("ge", var("k"), lit(4)), [{"kind": "return"}]),
            *record(var("k")),
            assign(var("k"), op("add", var("k"), lit(1))),
        ]),
    ]  # fmt: skip
    assert trace(body) == [0, 1, 2, 3]


def test_if_without_and_with_else() -> None:
    body = [
        loop("k", lit(0, "I64"), lit(4), [
            when(op("lt", var("k"), lit(1)), record(lit(100)),
                 [when(op("eq", var("k"), lit(2)), record(lit(200)), record(lit(300)))]),
            when(op("eq", var("k"), lit(3)), record(lit(400))),
        ]),
    ]  # fmt: skip
    assert trace(body) == [100, 300, 200, 300, 400]


@pytest.mark.parametrize("value", [TRUE, FALSE])
def test_constant_conditions(value: Json) -> None:
    body = [
        when(value, record(lit(1)), record(lit(2))),
        when(un("not", value), record(lit(3))),
        repeat(op("and", value, FALSE), record(lit(4))),
    ]
    assert trace(body) == ([1] if value["value"] else [2, 3])


RANGES = [
    ("I32", 0, 5, 1), ("I32", 5, 0, 1), ("I32", 3, 3, 1), ("I32", 5, 0, -1), ("I32", -7, 8, 3), ("I32", 8, -7, -4),
    ("I32", 0, 5, -1), ("I32", 2**31 - 10, 2**31 - 1, 4), ("I32", -(2**31) + 9, -(2**31), -4),
    ("U8", 0, 255, 2), ("U8", 250, 255, 100), ("U8", 255, 0, -2), ("U8", 5, 0, -255), ("U8", 10, 0, -1),
    ("I8", -128, 127, 100), ("I8", 127, -128, -127), ("I8", -128, 127, 127), ("I8", 126, -128, -3),
    ("U64", 2**64 - 5, 2**64 - 1, 3), ("I64", -3, 3, 2), ("I16", 30000, 32767, 1000), ("U32", 0, 4, 1),
]  # fmt: skip


@of_each("ty, start, stop, step", RANGES)
@pytest.mark.parametrize("constant", [False, True])
def test_for_is_a_range(ty: str, start: int, stop: int, step: int, constant: bool) -> None:
    bounds = (lit(start, ty), lit(stop)) if constant else (var("start"), var("stop"))
    log = "U64" if ty.startswith("U") else "I64"
    body = [loop("k", *bounds, record(cast(log, var("k"))), step=lit(step))]
    got = trace(body, log, [scalar("start", ty), scalar("stop", ty)], start=start, stop=stop)
    assert got == list(range(start, stop, step))


@examples(150, 40)
@given(st.booleans(), st.data())
def test_for_in_eight_bits_visits_what_range_does(signed: bool, data: st.DataObject) -> None:
    ty = Type.I8 if signed else Type.U8
    values = st.integers(ty.min_value, ty.max_value)
    start, stop = data.draw(values), data.draw(values)
    step = data.draw(st.integers(-ty.max_value, ty.max_value).filter(bool))
    stop_node = data.draw(st.sampled_from([lit(stop), var("stop")]))
    body = [loop("k", var("start"), stop_node, record(cast("I64", var("k"))), step=lit(step))]
    got = trace(body, "I64", [scalar("start", str(ty)), scalar("stop", str(ty))], start=start, stop=stop)
    assert got == list(range(start, stop, step))


def test_for_computes_its_bounds_once_and_keeps_its_variable_to_itself() -> None:
    body = [
        let("k", lit(3), "I64"),
        let("n", lit(4), "I64"),
        loop("k", var("k"), op("add", var("n"), var("k")), [assign(var("n"), lit(100)), *record(var("k"))]),
        *record(var("k")),
    ]
    assert trace(body) == [3, 4, 5, 6, 3]


def test_the_type_of_a_for_variable_can_be_said() -> None:
    assert trace([loop("k", lit(0), lit(3), record(var("k")), type="I64")]) == [0, 1, 2]
    assert trace([loop("k", lit(3), lit(0), record(var("k")), type="I64", step=un("neg", lit(1)))]) == [3, 2, 1]


def test_variables_in_a_loop_body_start_anew_each_round() -> None:
    inner = [let("x", lit(0), "I64"), assign(var("x"), op("add", var("x"), var("k"))), *record(var("x"))]
    assert trace([loop("k", lit(0, "I64"), lit(3), inner)]) == [0, 1, 2]


def test_barrier_in_a_reversal_through_another_array() -> None:
    last = op("sub", lit(63), call("lane_x"))
    body = [
        assign(at("tmp", call("lane_x")), at("x", call("lane_x"))),
        call("barrier"),
        assign(at("x", call("lane_x")), at("tmp", last)),
        {"kind": "call", "function": "grid_barrier"},
    ]
    values = {"x": np.arange(64, dtype=np.float32), "tmp": np.zeros(64, np.float32)}
    program = translate_kernel(kernel([array("x"), array("tmp")], body))
    assert [i.op.name for i in program.instructions].count("BarSync") == 1
    out = execute(kernel([array("x"), array("tmp")], body), LaunchConfig.linear(64), values)
    np.testing.assert_array_equal(out["x"], np.arange(64)[::-1])


# --- conditions -----------------------------------------------------------------------------------

BITS = {name: np.array([k >> b & 1 for k in range(8)], np.int32) for b, name in enumerate("abc")}


def holds(name: str) -> Json:
    return op("ne", var(name), lit(0))


A, B, C = (holds(name) for name in "abc")
TRUTH_TABLES = [
    (op("and", A, B), lambda a, b, c: a and b),
    (op("or", A, B), lambda a, b, c: a or b),
    (un("not", op("and", A, op("or", B, C))), lambda a, b, c: not (a and (b or c))),
    (op("or", op("and", A, un("not", B)), op("and", un("not", A), C)), lambda a, b, c: c if not a else not b),
    (un("not", op("or", un("not", A), op("and", B, un("not", C)))), lambda a, b, c: a and not (b and not c)),
    (op("and", op("and", A, B), op("or", C, un("not", un("not", A)))), lambda a, b, c: a and b),
    (op("or", op("or", A, FALSE), op("and", B, TRUE)), lambda a, b, c: a or b),
]


@pytest.mark.parametrize("case", range(len(TRUTH_TABLES)))
def test_truth_tables(case: int) -> None:
    cond, oracle = TRUTH_TABLES[case]
    rows = zip(*(BITS[name].astype(bool) for name in "abc"), strict=True)
    assert decide(cond, BITS) == [bool(oracle(a, b, c)) for a, b, c in rows]


CONDITION_TREES = st.recursive(
    st.sampled_from([A, B, C, TRUE, FALSE]),
    lambda inner: st.one_of(
        st.builds(un, st.just("not"), inner),
        st.builds(op, st.sampled_from(["and", "or"]), inner, inner),
    ),
    max_leaves=12,
)


def truth(node: Json, row: dict[str, bool]) -> bool:
    if node["kind"] == "literal":
        return bool(node["value"])
    if node["kind"] == "unary_op":
        return not truth(node["operand"], row)
    if node["op"] == "ne":
        return row[node["left"]["name"]]
    left, right = truth(node["left"], row), truth(node["right"], row)
    return (left and right) if node["op"] == "and" else (left or right)


@settings(max_examples=60, deadline=None)
@given(CONDITION_TREES)
def test_random_conditions(cond: Json) -> None:
    rows = [{name: bool(BITS[name][k]) for name in "abc"} for k in range(8)]
    assert decide(cond, BITS) == [truth(cond, row) for row in rows]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_of_floats_and_their_negations(name: str, negated: bool) -> None:
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    x, y = (np.array(v, np.float32) for v in zip(*[(a, b) for a in special for b in special], strict=True))
    cond = op(name, var("x"), var("y"))
    oracle = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}[name]
    assert decide(un("not", cond) if negated else cond, {"x": x, "y": y}) == (oracle ^ negated).tolist()


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_of_integers(name: str) -> None:
    x, y = (np.array(v, np.int8) for v in zip(*[(a, b) for a in (-128, -1, 0, 127) for b in (-128, 0, 5)], strict=True))
    oracle = {"lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "eq": x == y, "ne": x != y}[name]
    assert decide(op(name, var("x"), var("y")), {"x": x, "y": y}) == oracle.tolist()


def test_the_right_side_is_not_reached_when_the_left_decides() -> None:
    """With 8 elements and 20 lanes, a[i] may only be read where i < 8."""
    inside, positive = op("lt", ID, lit(8)), op("gt", at("a", ID), lit(0))
    both = op("and", inside, positive)
    either = op("or", un("not", inside), positive)
    negated = un("not", op("or", un("not", inside), un("not", positive)))
    body = [
        assign(at("out", ID), op("add", op("add", choose(both, lit(1), lit(0)), choose(either, lit(2), lit(0))),
                                 choose(negated, lit(4), lit(0)))),
        when(both, [assign(at("out", ID), op("add", at("out", ID), lit(8)))]),
        repeat(op("and", inside, op("gt", at("a", ID), lit(0))), [assign(at("a", ID), lit(0))]),
    ]  # fmt: skip
    a = np.array([1, -1, 0, 5, 7, -2, 3, 0], np.int32)
    source = kernel([array("a", "I32"), array("out", "I32")], body)
    out = execute(source, LaunchConfig.linear(20), {"a": a, "out": np.zeros(20, np.int32)})
    assert out["out"].tolist() == [15 if v > 0 else 0 for v in a] + [2] * 12


# --- arithmetic -----------------------------------------------------------------------------------

INTEGERS = (Type.I8, Type.I16, Type.I32, Type.I64, Type.U8, Type.U16, Type.U32, Type.U64)


def wrapped(value: int, ty: Type) -> int:
    value %= 1 << ty.bits
    return value - (1 << ty.bits) if value > ty.max_value else value


def sampled(ty: Type) -> st.SearchStrategy[int]:
    edges = [v for v in (ty.min_value, ty.max_value, 0, 1, -1, 2, 3, 7, -7) if ty.min_value <= v <= ty.max_value]
    return st.one_of(st.sampled_from(edges), st.integers(ty.min_value, ty.max_value))


@examples(80, 25)
@given(st.sampled_from(INTEGERS), st.data())
def test_integer_floor_division_and_modulo(ty: Type, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(sampled(ty), sampled(ty).filter(bool)), min_size=1, max_size=20))
    x, y = (np.array(v, ty.dtype) for v in zip(*pairs, strict=True))
    inputs = {"x": x, "y": y}
    floors = compute(op("floor_div", var("x"), var("y")), inputs, ty)
    rests = compute(op("mod", var("x"), var("y")), inputs, ty)
    assert floors.tolist() == [wrapped(a // b, ty) for a, b in pairs]
    assert rests.tolist() == [wrapped(a % b, ty) for a, b in pairs]


def test_all_signs_of_a_small_division() -> None:
    pairs = [(a, b) for a in range(-9, 10) for b in range(-4, 5) if b]
    x, y = (np.array(v, np.int32) for v in zip(*pairs, strict=True))
    for name, oracle in (
        ("floor_div", lambda a, b: a // b),
        ("mod", lambda a, b: a % b),
        ("div", lambda a, b: math.trunc(a / b)),
    ):
        got = compute(op(name, var("x"), var("y")), {"x": x, "y": y}, Type.I32)
        assert got.tolist() == [oracle(a, b) for a, b in pairs], name


@examples(150, 30)
@given(st.sampled_from([Type.F32, Type.F64]), st.data())
def test_float_floor_division_and_modulo(ty: Type, data: st.DataObject) -> None:
    edges = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 0.5, -3.5, 7.0, math.inf, -math.inf, math.nan, 1e30, 1e-40])
    values = st.one_of(edges, st.floats(width=ty.bits), st.integers(-50, 50).map(float))
    pairs = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=20))
    x, y = (np.array(v).astype(ty.dtype) for v in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        floors, rests = np.floor_divide(x, y), np.remainder(x, y)
    for name, oracle in (("floor_div", floors), ("mod", rests)):
        got = compute(op(name, var("x"), var("y")), {"x": x, "y": y}, ty)
        np.testing.assert_array_equal(got, oracle, name)
        number = ~np.isnan(oracle)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(oracle[number]), name)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.1), (-1.0, 0.1), (7.5, -2.0), (-7.5, -2.0), (6.0, 3.0), (-1.0, math.inf)])
@pytest.mark.parametrize("expanded", [False, True])
def test_float_division_is_that_of_python(a: float, b: float, expanded: bool) -> None:
    inputs = {"x": np.array([a]), "y": np.array([b])}
    assert compute(op("floor_div", var("x"), var("y")), inputs, Type.F64, expanded=expanded)[0] == a // b
    assert compute(op("mod", var("x"), var("y")), inputs, Type.F64, expanded=expanded)[0] == a % b


def test_half_precision_and_wide_integers_divide_too() -> None:
    x, y = np.array([7.5, -7.5, 7.5, -7.5], np.float16), np.array([2, 2, -2, -2], np.float16)
    np.testing.assert_array_equal(compute(op("floor_div", var("x"), var("y")), {"x": x, "y": y}, Type.F16), x // y)
    np.testing.assert_array_equal(compute(op("mod", var("x"), var("y")), {"x": x, "y": y}, Type.F16), x % y)
    big = 10**30
    source = kernel([array("out", "I128")], [
        assign(at("out", lit(0)), op("floor_div", lit(-big, "I128"), lit(7))),
        assign(at("out", lit(1)), op("mod", lit(-big, "I128"), lit(7))),
    ])  # fmt: skip
    out = execute(source, LaunchConfig(), {"out": np.array([0, 0], object)})
    assert [int(v) for v in out["out"]] == [-big // 7, -big % 7]


INTEGER_OPERATORS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "floor_div": lambda a, b: a // b, "mod": lambda a, b: a % b,
}  # fmt: skip
INTEGER_COMPARISONS = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


def integer_trees(ty: Type) -> st.SearchStrategy[Json]:
    """Expressions of x, y and literals; divisors are kept from zero by `or 1` in the bits."""
    leaves = st.one_of(st.sampled_from([var("x"), var("y")]), sampled(ty).map(lit))

    def grow(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
        odd = inner.map(lambda node: call("or", node, lit(1, str(ty))))
        conditions = st.builds(op, st.sampled_from(sorted(INTEGER_COMPARISONS)), inner, inner)
        joined = st.one_of(conditions, st.builds(op, st.sampled_from(["and", "or"]), conditions, conditions))
        return st.one_of(
            st.builds(op, st.sampled_from(["add", "sub", "mul"]), inner, inner),
            st.builds(op, st.sampled_from(["div", "floor_div", "mod"]), inner, odd),
            st.builds(un, st.sampled_from(["neg", "abs"]), inner),
            st.builds(call, st.sampled_from(["min", "max", "xor", "and", "or"]), inner, inner),
            st.builds(choose, st.one_of(joined, joined.map(lambda c: un("not", c))), inner, inner),
        )

    return st.recursive(leaves, grow, max_leaves=16)


def evaluate(node: Json, env: dict[str, int], ty: Type) -> int:
    """The oracle: Python integers, wrapped after each operation."""
    kind = node["kind"]
    if kind == "var":
        return env[node["name"]]
    if kind == "literal":
        return int(node["value"])
    if kind == "if_expr":
        return evaluate(node["then" if evaluate_condition(node["cond"], env, ty) else "else"], env, ty)
    if kind == "unary_op":
        value = evaluate(node["operand"], env, ty)
        return wrapped(-value if node["op"] == "neg" else abs(value), ty)
    operands = node["args"] if kind == "call" else [node["left"], node["right"]]
    a, b = (evaluate(operand, env, ty) for operand in operands)
    functions = {"min": min, "max": max, "xor": int.__xor__, "and": int.__and__, "or": int.__or__}
    return wrapped((functions if kind == "call" else INTEGER_OPERATORS)[node.get("function", node.get("op"))](a, b), ty)


def evaluate_condition(node: Json, env: dict[str, int], ty: Type) -> bool:
    if node["kind"] == "unary_op":
        return not evaluate_condition(node["operand"], env, ty)
    if node["op"] in ("and", "or"):
        left, right = (evaluate_condition(node[side], env, ty) for side in ("left", "right"))
        return (left and right) if node["op"] == "and" else (left or right)
    return bool(INTEGER_COMPARISONS[node["op"]](evaluate(node["left"], env, ty), evaluate(node["right"], env, ty)))


def fix_types(node: Json, ty: Type) -> Json:
    """Conditions of literals alone have no neighbour to take a type from: give every literal its type there."""
    if node["kind"] == "literal":
        return node | {"type": str(ty)}
    return {k: fix_types(v, ty) if isinstance(v, dict) else [fix_types(a, ty) for a in v] if k == "args" else v
            for k, v in node.items()}  # fmt: skip


@examples(100, 25)
@given(st.sampled_from(INTEGERS), st.data())
def test_random_integer_expressions(ty: Type, data: st.DataObject) -> None:
    tree = data.draw(integer_trees(ty))
    pairs = data.draw(st.lists(st.tuples(sampled(ty), sampled(ty)), min_size=1, max_size=4))
    x, y = (np.array(v, ty.dtype) for v in zip(*pairs, strict=True))
    got = compute(fix_types(tree, ty), {"x": x, "y": y}, ty)
    assert got.tolist() == [evaluate(tree, {"x": a, "y": b}, ty) for a, b in pairs]


def test_operators_on_floats() -> None:
    x, y = np.array([1.5, -2.25, 3.0], np.float32), np.array([0.5, 4.0, -8.0], np.float32)
    for name, oracle in (("add", x + y), ("sub", x - y), ("mul", x * y), ("div", x / y)):
        np.testing.assert_array_equal(compute(op(name, var("x"), var("y")), {"x": x, "y": y}, Type.F32), oracle)
    np.testing.assert_array_equal(compute(un("neg", var("x")), {"x": x}, Type.F32), -x)
    np.testing.assert_array_equal(compute(un("abs", var("x")), {"x": x}, Type.F32), abs(x))


def test_if_expr_computes_only_the_chosen_side() -> None:
    x = np.array([0, 3, 0, -4], np.int32)
    value = choose(op("eq", var("x"), lit(0)), lit(-1), op("div", lit(12), var("x")))
    assert compute(value, {"x": x}, Type.I32).tolist() == [-1, 4, -1, -3]
    nested = choose(op("lt", var("x"), lit(0)), lit(1), choose(op("gt", var("x"), lit(0)), lit(2), lit(3)))
    assert compute(nested, {"x": x}, Type.I32).tolist() == [3, 2, 3, 1]


# --- literals and types ---------------------------------------------------------------------------


def test_literals_take_the_type_beside_them() -> None:
    x = np.array([1.0], np.float64)
    assert compute(op("add", lit(0.1), var("x")), {"x": x}, Type.F64)[0] == 1.1  # not F32's 0.1
    assert compute(op("add", var("x"), op("mul", lit(2), lit(0.5))), {"x": x}, Type.F64)[0] == 2.0
    assert one(op("mul", lit(200), lit(100)), Type.I64) == 20_000


def test_literals_have_default_types() -> None:
    def first_type(value: Json) -> Type:
        instruction = translate_kernel(kernel([], [let("x", value)])).instructions[0]
        ty = instruction.value.ty
        assert isinstance(ty, Type)
        return ty

    assert first_type(lit(1)) is Type.I32
    assert first_type(lit(1.0)) is Type.F32
    assert first_type(lit(1, "U8")) is Type.U8
    assert first_type(op("add", lit(1), lit(2.5))) is Type.F32
    assert first_type(lit("nan")) is Type.F32


def test_special_floats_are_spelt_as_strings() -> None:
    assert one(lit("inf"), Type.F32) == math.inf
    assert one(lit("-inf"), Type.F64) == -math.inf
    assert math.isnan(one(lit("nan"), Type.F16))


@pytest.mark.parametrize("ty", INTEGERS)
def test_the_ends_of_integer_types_can_be_written(ty: Type) -> None:
    assert one(lit(ty.max_value), ty) == ty.max_value
    assert one(lit(ty.min_value), ty) == ty.min_value
    assert one(un("neg", lit(-ty.min_value)) if ty.is_signed else un("neg", lit(0)), ty) == ty.min_value


def test_negation_of_an_unsigned_literal_wraps() -> None:
    assert one(un("neg", lit(5)), Type.U8) == 251
    assert math.copysign(1, one(un("neg", lit(0)), Type.F32)) == -1


def test_casts() -> None:
    x = np.array([1.9, -1.9, 300.0, -5.0, math.nan, 1e20], np.float32)
    assert compute(cast("I32", var("x")), {"x": x}, Type.I32).tolist() == [1, -1, 300, -5, 0, 2**31 - 1]
    assert compute(cast("U8", var("x")), {"x": x}, Type.U8).tolist() == [1, 0, 255, 0, 0, 255]
    assert compute(cast("F32", var("x")), {"x": x[:2]}, Type.F32).tolist() == x[:2].tolist()
    assert one(cast("F64", lit(0.1)), Type.F64) == 0.1
    assert one(cast("U64", lit(5_000_000_000)), Type.U64) == 5_000_000_000
    assert one(cast("U32", lit(-1)), Type.U32) == 2**32 - 1
    assert one(cast("I32", lit(2.7)), Type.I32) == 2
    assert one(op("add", cast("F64", lit(1)), lit(0.5)), Type.F64) == 1.5


# --- calls ----------------------------------------------------------------------------------------


def test_calls_reach_every_scalar_row_of_the_table() -> None:
    for name in ("sqrt", "exp", "fma", "min", "clamp", "lerp", "floor", "gelu", "atan2", "shl", "xor", "not", "sign"):
        assert name in SCALAR_FUNCTIONS
    for name in ("setcc", "sel", "ldg", "cvt", "mirror", "clsget", "gemm", "mov_imm"):
        assert name not in FUNCTIONS


@in_batches("name", sorted(SCALAR_FUNCTIONS))
def test_scalar_functions(name: str) -> None:
    row = SCALAR_FUNCTIONS[name]
    ty = Type.F32 if Type.F32 in row.types else Type.I32
    names = "xyz"[: len(row.fields) - 1]
    rng = np.random.default_rng(len(name))
    low, high = (0.25, 4.0) if ty.is_float else (1, 30)
    inputs = {n: rng.uniform(low, high, 16).astype(ty.dtype) for n in names}
    got = compute(call(name, *(var(n) for n in names)), inputs, ty)
    scalar_row = row(*(Register(k) for k in range(len(row.fields))))
    np.testing.assert_array_equal(got, nx.evaluate(scalar_row, list(inputs.values()), ty))


def test_literal_arguments_take_the_type_wanted() -> None:
    assert one(call("sqrt", lit(2)), Type.F64) == math.sqrt(2)
    x = np.array([-5.0, 0.5, 9.0], np.float64)
    assert compute(call("clamp", var("x"), lit(0), lit(1)), {"x": x}, Type.F64).tolist() == [0, 0.5, 1]


def test_launch_indices() -> None:
    names = sorted(LAUNCH_INDICES)
    launch = LaunchConfig((2, 3, 2), (4, 2, 2))
    source = kernel([array(name, "U32") for name in names], [assign(at(name, ID), call(name)) for name in names])
    lanes = launch.total_threads
    out = execute(source, launch, {name: np.zeros(lanes, np.uint32) for name in names})
    lane, block = np.arange(lanes) % launch.block_size, np.arange(lanes) // launch.block_size
    for what, linear, extent in (("lane", lane, launch.block), ("block", block, launch.grid)):
        x, y, _ = extent
        for axis, oracle in (("x", linear % x), ("y", linear // x % y), ("z", linear // (x * y))):
            np.testing.assert_array_equal(out[f"{what}_{axis}"], oracle, f"{what}_{axis}")
    for what, extent in (("block_size", launch.block), ("grid_size", launch.grid)):
        for axis, size in zip("xyz", extent, strict=True):
            assert set(out[f"{what}_{axis}"].tolist()) == {size}


# --- arrays as a whole ----------------------------------------------------------------------------


def sample_array(ty: Type, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.25, 4, 32).astype(ty.dtype)


@pytest.mark.parametrize("operation", MapOperation)
def test_parallel_map_unary(operation: MapOperation) -> None:
    source = kernel([array("x"), array("y")], [
        {"kind": "parallel_map_unary", "operation": operation.name.lower(), "dst": "y", "src": var("x"), "count": 32},
    ])  # fmt: skip
    x = sample_array(Type.F32, 3)
    out = execute(source, LaunchConfig.linear(7), {"x": x, "y": np.zeros(32, np.float32)})
    np.testing.assert_array_equal(out["y"], nx.evaluate(ROWS[operation.value](Register(0), Register(1)), [x], Type.F32))


@pytest.mark.parametrize("operation", BinaryMapOperation)
def test_parallel_map_binary_in_place(operation: BinaryMapOperation) -> None:
    source = kernel([array("x"), array("y")], [
        {"kind": "parallel_map_binary", "operation": operation.name.lower(), "dst": "x", "a": "x", "b": "y",
         "count": lit(32)},
    ])  # fmt: skip
    x, y = sample_array(Type.F32, 4), sample_array(Type.F32, 5)
    out = execute(source, LaunchConfig.linear(3), {"x": x, "y": y})
    scalar_row = ROWS[operation.value](*(Register(k) for k in range(3)))
    np.testing.assert_array_equal(out["x"], nx.evaluate(scalar_row, [x, y], Type.F32))


@pytest.mark.parametrize("operation", ReduceOperation)
@pytest.mark.parametrize("spelling", ["name", "value"])
def test_parallel_reduce_is_a_value(operation: ReduceOperation, spelling: str) -> None:
    name = getattr(operation, spelling).lower()
    total = {"kind": "parallel_reduce", "operation": name, "src": "x", "count": 10}
    source = kernel([array("x", "I32"), array("out", "I32")], [assign(at("out", lit(0)), op("add", total, lit(1)))])
    x = np.arange(2, 18, dtype=np.int32)
    out = execute(source, LaunchConfig(), {"x": x, "out": np.zeros(1, np.int32)})
    oracle = {"Sum": np.add, "Product": np.multiply, "Min": np.minimum, "Max": np.maximum}[operation.name]
    assert out["out"][0] == oracle.reduce(x[:10], dtype=np.int32) + 1


def test_array_operands_may_begin_at_an_element() -> None:
    row_sum = {"kind": "parallel_reduce", "operation": "sum", "count": 8,
               "src": at("x", op("mul", call("lane_x"), lit(8)))}  # fmt: skip
    shift = {
        "kind": "parallel_map_unary",
        "operation": "neg",
        "dst": at("y", lit(4)),
        "src": at("x", lit(8)),
        "count": 4,
    }
    source = kernel([array("x"), array("y")], [assign(at("y", call("lane_x")), row_sum), shift])
    x = np.arange(32, dtype=np.float32)
    out = execute(source, LaunchConfig.linear(4), {"x": x, "y": np.zeros(8, np.float32)})
    np.testing.assert_array_equal(out["y"], [*x.reshape(4, 8).sum(1), *-x[8:12]])


# --- registers and nesting ------------------------------------------------------------------------


def test_long_kernels_reuse_registers() -> None:
    body: list[Json] = []
    for k in range(600):
        body.append(when(TRUE, [let("t", op("mul", at("x", ID), lit(float(k)))), assign(at("x", ID), var("t"))]))
    program = translate_kernel(kernel([array("x")], body))
    used = {r.index for i in program.instructions for r in (*i.reads(), *i.writes()) if not r.is_special}
    assert len(used) <= 4
    validate(program)


def balanced(depth: int, leaf: Json) -> Json:
    return leaf if depth == 0 else op("add", balanced(depth - 1, leaf), balanced(depth - 1, leaf))


def chain(depth: int, leaf: Json, *, right: bool) -> Json:
    for _ in range(depth):
        leaf = op("add", lit(1), leaf) if right else op("add", leaf, lit(1))
    return leaf


def test_large_expressions_fit() -> None:
    x = np.array([1, 2], np.int64)
    assert compute(balanced(8, var("x")), {"x": x}, Type.I64).tolist() == [256, 512]
    for right in (False, True):
        assert compute(chain(90, var("x"), right=right), {"x": x}, Type.I64).tolist() == [91, 92]


def test_nesting_is_bounded() -> None:
    with pytest.raises(IsaError, match=f"nested more than {NESTING_LIMIT} deep"):
        translate_kernel(kernel([array("x")], [let("y", chain(5000, lit(1), right=True))]))
    body: list[Json] = []
    for _ in range(3000):
        body = [when(TRUE, body)]
    with pytest.raises(IsaError, match="nested"):
        translate_kernel(kernel([], body))
    condition = TRUE
    for _ in range(3000):
        condition = un("not", condition)
    with pytest.raises(IsaError, match="nested"):
        translate_kernel(kernel([], [when(condition, [])]))
    with pytest.raises(IsaError, match="nested"):
        translate_kernel("[" * 200_000)
    endless = un("neg", lit(1))
    endless["operand"] = endless
    with pytest.raises(IsaError, match="nested"):
        translate_kernel(kernel([], [let("x", endless)]))


def test_running_out_of_registers_is_an_error_with_a_path() -> None:
    with pytest.raises(IsaError, match=r"^body\[252\]\.value: .*252 general registers"):
        translate_kernel(kernel([], [let(f"x{k}", lit(1)) for k in range(300)]))


# --- spelling -------------------------------------------------------------------------------------


def test_the_kind_may_be_called_type() -> None:
    def respelt(node: Any) -> Any:
        if isinstance(node, list):
            return [respelt(v) for v in node]
        if not isinstance(node, dict):
            return node
        inner = {k: respelt(v) for k, v in node.items()}
        if "kind" in inner and "type" not in inner:
            inner["type"] = inner.pop("kind")
        return inner

    assert translate_kernel(respelt(SAXPY)) == translate_kernel(SAXPY)


def test_comments_are_welcome() -> None:
    source = copy.deepcopy(SAXPY)
    source["comment"] = source["kernel"]["comment"] = source["kernel"]["body"][1]["comment"] = "guarded"
    assert translate_kernel(source) == translate_kernel(SAXPY)


def test_device_arrays_may_state_their_length() -> None:
    params = [{"name": "x", "kind": "device_array", "element_type": "I16", "count": 12}]
    program = translate_kernel(kernel(params, [assign(at("x", lit(11)), lit(3))]))
    assert (program.params[0].ty, program.params[0].count) == (Type.I16, 12)
    validate(program)


def test_doctests() -> None:
    assert doctest.testmod(kernel_module).failed == 0


# --- errors ---------------------------------------------------------------------------------------

X = [array("x"), array("k", "I32"), scalar("n", "I32"), scalar("f", "F32")]
LENGTH_8 = [{"name": "x", "kind": "device_array", "element_type": "F32", "count": 8}, array("k", "I32")]
ELEMENT = at("x", lit(0))

BODY_ERRORS: list[tuple[list[Json], str, str]] = [
    # statements
    ([{"kind": "lett", "name": "a", "value": lit(1)}], "body[0].kind", "did you mean 'let'"),
    ([{"name": "a", "value": lit(1)}], "body[0]", "'kind' is missing"),
    ([{"type": "I32", "value": lit(1)}], "body[0]", "'kind' is missing"),
    ([3], "body[0]", "expected an object, got 3"),
    ([[]], "body[0]", "got a list"),
    ([{"kind": "let", "value": lit(1)}], "body[0]", "'name' is missing"),
    ([{"kind": "let", "name": "a", "valeu": lit(1)}], "body[0]", "did you mean 'value'"),
    ([{"kind": "let", "name": 5, "value": lit(1)}], "body[0].name", "expected a string, got 5"),
    ([{"kind": "let", "name": "a b", "value": lit(1)}], "body[0].name", "expected a name"),
    ([let("a", lit(1), "I33")], "body[0].type", "expected a type, got 'I33'"),
    ([let("a", var("n"), "F32")], "body[0].value", "this is I32, but F32 is needed"),
    ([let("a", op("lt", var("n"), lit(1)))], "body[0].value", "condition"),
    ([let("a", TRUE)], "body[0].value.value", "condition"),
    ([let("a", un("not", op("lt", var("n"), lit(1))))], "body[0].value", "if_expr"),
    ([let("abc", lit(1)), let("b", var("abd"))], "body[1].value.name", "did you mean 'abc'"),
    ([when(TRUE, [let("inner", lit(1))]), let("b", var("inner"))], "body[1].value.name", "not defined here"),
    ([let("b", var("x"))], "body[0].value", "'x' is an array"),
    ([assign(var("x"), lit(1))], "body[0].target.name", "is an array"),
    ([assign(var("missing"), lit(1))], "body[0].target.name", "not defined"),
    ([assign(lit(1), lit(1))], "body[0].target.kind", "not a target to assign to"),
    ([assign(at("n", lit(0)), lit(1))], "body[0].target.array", "is a scalar, not an array"),
    ([assign(at("x", lit(0)), var("n"))], "body[0].value", "this is I32, but F32 is needed"),
    ([assign(var("n"), lit(1.5))], "body[0].value.value", "1.5 is not an integer, as I32 needs"),
    ([when(var("n"), [])], "body[0].cond", "expected a condition"),
    ([when(op("add", var("n"), lit(1)), [])], "body[0].cond", "expected a condition"),
    ([when(op("less", var("n"), lit(1)), [])], "body[0].cond.op", "'less' is not an operator"),
    ([when(TRUE, {})], "body[0].then", "expected a list, got an object"),
    ([when(TRUE, [], lit(1))], "body[0].else", "expected a list"),
    ([when(TRUE, [when(TRUE, [], [{"kind": "x"}])])], "body[0].then[0].else[0].kind", "'x' is not a statement"),
    ([repeat(lit(1), [])], "body[0].cond", "expected a condition"),
    ([{"kind": "return", "value": lit(1)}], "body[0]", "'value' does not belong here"),
    ([call("sqrt", lit(1.0))], "body[0].function", "nothing is done with the value"),
    ([call("barier")], "body[0].function", "did you mean 'barrier'"),
    ([call("barrier", lit(1))], "body[0]", "takes no arguments"),
    # for
    ([loop("i", lit(0), lit(3), [], step=lit(0))], "body[0].step", "step of 0"),
    ([loop("i", lit(0), lit(3), [], step=var("n"))], "body[0].step", "must be an integer constant"),
    ([loop("i", lit(0), lit(3), [], step=lit(0.5))], "body[0].step", "must be an integer constant"),
    ([loop("i", lit(0, "U8"), lit(3), [], step=lit(256))], "body[0].step", "does not fit U8"),
    ([loop("i", lit(0), var("f"), [])], "body[0]", "counts with integers, not F32"),
    ([loop("i", lit(0, "I64"), var("n"), [])], "body[0]", "start is I64, stop is I32"),
    ([loop("i", lit(0), var("n"), [], type="I64")], "body[0]", "the bounds are I32, but the variable is to be I64"),
    ([loop("i", lit(0), lit(9), [assign(var("i"), lit(1))])], "body[0].body[0].target.name", "loop variable"),
    ([loop("i", var("i"), lit(9), [])], "body[0].start.name", "not defined"),
    ([loop("i", lit(0), lit(1 << 31), [])], "body[0].stop.value", "does not fit I32"),
    # expressions
    ([let("a", {"kind": "index", "array": "x"})], "body[0].value", "'index' is missing"),
    ([let("a", lit(None))], "body[0].value.value", "expected a number, got null"),
    ([let("a", lit([1]))], "body[0].value.value", "expected a number, got a list"),
    ([let("a", lit("three"))], "body[0].value.value", "'three' is not a number"),
    ([let("a", lit(300, "U8"))], "body[0].value.value", "300 does not fit U8"),
    ([let("a", lit(10**400, "F64"))], "body[0].value.value", "too large for F64"),
    ([let("a", lit(10**400, "I4096"), "I128")], "body[0].value", "this is I4096, but I128 is needed"),
    ([let("a", lit(10**2000, "I64"))], "body[0].value.value", "an integer of 6644 bits does not fit I64"),
    ([let("a", lit(1e39))], "body[0].value.value", "too large for F32"),
    ([let("a", lit(70000.0, "F16"))], "body[0].value.value", "too large for F16"),
    ([let("a", lit(math.nan))], "body[0].value.value", "expected a finite number, got nan"),
    ([let("a", lit(math.inf))], "body[0].value.value", "expected a finite number, got inf"),
    ([let("a", lit("inf", "I32"))], "body[0].value.value", "is not an integer"),
    ([let("a", op("plus", lit(1), lit(2)))], "body[0].value.op", "'plus' is not an operator of binary_op"),
    ([let("a", {"kind": "binary_op", "op": ["add"], "left": lit(1), "right": lit(2)})], "body[0].value.op", "a list"),
    ([let("a", un("sqrt", lit(1)))], "body[0].value.op", "'sqrt' is not an operator of unary_op"),
    ([let("a", op("add", var("n"), var("f")))], "body[0].value", "left is I32, right is F32"),
    ([let("a", op("add", lit(1), op("mul", var("n"), ELEMENT)))], "body[0].value.right", "left is I32, right is F32"),
    ([when(op("lt", var("n"), var("f")), [])], "body[0].cond", "left is I32, right is F32"),
    ([when(op("and", TRUE, var("n")), [])], "body[0].cond.right", "expected a condition"),
    ([let("a", choose(TRUE, var("n"), var("f")))], "body[0].value", "then is I32, else is F32"),
    ([let("a", choose(var("n"), lit(1), lit(2)))], "body[0].value.cond", "expected a condition"),
    ([let("a", call("sqrtt", lit(1.0)))], "body[0].value.function", "did you mean"),
    ([let("a", call("barrier"))], "body[0].value.function", "is not a function that gives a value"),
    ([let("a", call("fma", lit(1), lit(2)))], "body[0].value", "fma takes 3 arguments, not 2"),
    ([let("a", call("global_id", lit(1)))], "body[0].value", "global_id takes 0 arguments, not 1"),
    ([let("a", {"kind": "call", "function": "sqrt"})], "body[0].value", "sqrt takes 1 argument, not 0"),
    ([let("a", {"kind": "call", "function": "sqrt", "args": 3})], "body[0].value.args", "expected a list"),
    ([let("a", call("sqrt", var("n")))], "body[0].value", "sqrt is not defined on I32"),
    ([let("a", call("min", var("n"), var("f")))], "body[0].value", "args[0] is I32, args[1] is F32"),
    ([let("a", cast("int", lit(1)))], "body[0].value.type", "expected a type"),
    ([let("a", cast("I32", TRUE))], "body[0].value.value.value", "condition"),
    # indices
    ([let("a", at("x", var("f")))], "body[0].value.index", "an index must be one of I32 I64 U32 U64, not F32"),
    ([let("a", at("x", lit(1.0)))], "body[0].value.index", "not F32"),
    ([let("a", at("x", lit(1, "U8")))], "body[0].value.index", "not U8"),
    ([let("a", at("x", lit(-1)))], "body[0].value.index", "element -1"),
    ([let("a", at("x", un("neg", lit(3))))], "body[0].value.index", "element -3"),
    ([let("a", at("x", lit(1 << 60, "I64")))], "body[0].value.index", "not in the array"),
    ([let("a", at("y", lit(0)))], "body[0].value.array", "'y' is not defined here"),
    ([let("a", at("x", op("lt", lit(0), lit(1))))], "body[0].value.index", "condition"),
    ([let("a", {"kind": "index", "array": lit(1), "index": lit(1)})], "body[0].value.array.kind", "the name of"),
    # parallel forms
    ([{"kind": "parallel_map_unary", "operation": "cube", "dst": "x", "src": "x", "count": 4}],
     "body[0].operation", "'cube' is not an operation"),
    ([{"kind": "parallel_map_unary", "operation": "sqrt", "dst": "k", "src": "k", "count": 4}],
     "body[0]", "sqrt is not defined on I32"),
    ([{"kind": "parallel_map_binary", "operation": "add", "dst": "x", "a": "x", "b": "k", "count": 4}],
     "body[0]", "dst is F32, b is I32"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": at("x", lit(1)), "src": at("x", lit(4)), "count": 4}],
     "body[0].src", "overlaps dst without beginning where it begins"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": "x", "src": "n", "count": 4}],
     "body[0].src", "is a scalar, not an array"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": "x", "src": "x", "count": -4}],
     "body[0].count", "is not between 0 and"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": "x", "src": "x", "count": True}],
     "body[0].count", "expected an integer, got true"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": "x", "src": "x", "count": 4.0}],
     "body[0].count", "expected an integer, got 4.0"),
    ([{"kind": "parallel_map_unary", "operation": "neg", "dst": "x", "src": "x", "count": var("n")}],
     "body[0].count", "must be a constant"),
    ([let("a", {"kind": "parallel_reduce", "operation": "mean", "src": "x", "count": 4})],
     "body[0].value.operation", "'mean' is not a reduction"),
    ([let("a", {"kind": "parallel_reduce", "operation": "sum", "src": lit(1), "count": 4})],
     "body[0].value.src.kind", "the name of an array"),
]  # fmt: skip


@in_batches("case", range(len(BODY_ERRORS)))
def test_errors_in_bodies_name_the_path(case: int) -> None:
    body, path, message = BODY_ERRORS[case]
    with pytest.raises(IsaError) as caught:
        translate_kernel(kernel(X, body))
    text = str(caught.value)
    assert text.startswith(f"{path}: "), text
    assert message in text, text


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([let("a", at("x", lit(8)))], "body[0].value.index"),
        ([assign(at("x", lit(9)), lit(1))], "body[0].target.index"),
        ([let("a", {"kind": "parallel_reduce", "operation": "sum", "src": "x", "count": 9})], "body[0].value.src"),
        ([let("a", {"kind": "parallel_reduce", "operation": "sum", "src": at("x", lit(4)), "count": 5})],
         "body[0].value.src.index"),
    ],
)  # fmt: skip
def test_accesses_past_a_stated_length(body: list[Json], path: str) -> None:
    with pytest.raises(IsaError) as caught:
        translate_kernel(kernel(LENGTH_8, body))
    assert str(caught.value).startswith(f"{path}: ")
    assert "8" in str(caught.value)


TOP_ERRORS: list[tuple[Any, str, str]] = [
    ({}, "the kernel", "'version' is missing"),
    ({"version": "2.0", "kernel": {}}, "version", "expected '1.0', got '2.0'"),
    ({"version": 1.0, "kernel": {}}, "version", "expected '1.0', got 1.0"),
    ({"version": "1.0"}, "the kernel", "'kernel' is missing"),
    ({"version": "1.0", "kernel": []}, "kernel", "expected an object"),
    ({"version": "1.0", "kernel": {"name": "a", "params": []}}, "the kernel", "'body' is missing"),
    ({"version": "1.0", "kernel": {"name": "a", "params": [], "body": [], "x": 1}}, "the kernel", "does not belong"),
    (kernel([], [], "r1"), "name", "expected a name"),
    (kernel([], [], ""), "name", "expected a name"),
    (kernel({}, []), "params", "expected a list"),
    (kernel([scalar("n", "F31")], []), "params[0].type", "expected a type"),
    (kernel([{"name": "n", "kind": "scalar"}], []), "params[0]", "'type' is missing"),
    (kernel([{"name": "n", "kind": "device_array"}], []), "params[0]", "'element_type' is missing"),
    (kernel([{"name": "n", "kind": "texture"}], []), "params[0].kind", "not a kind of parameter"),
    (kernel([{"kind": "device_ptr"}], []), "params[0]", "'name' is missing"),
    (kernel([scalar("n", "F32"), array("n")], []), "params[1].name", "two parameters are named 'n'"),
    (kernel([scalar("p3", "F32")], []), "params[0].name", "other than r1 or p1"),
    (kernel([array("x") | {"count": 3}], []), "params[0]", "'count' does not belong here"),
    (kernel([LENGTH_8[0] | {"count": 1 << 60}], []), "params[0].count", "is not between"),
    (kernel([LENGTH_8[0] | {"count": "8"}], []), "params[0].count", "expected an integer, got '8'"),
    ({1: 2}, "the kernel", "the key 1 does not belong here"),
    ([], "the kernel", "expected an object, got a list"),
]  # fmt: skip


@of_each("case", range(len(TOP_ERRORS)))
def test_errors_around_the_body(case: int) -> None:
    source, path, message = TOP_ERRORS[case]
    with pytest.raises(IsaError) as caught:
        translate_kernel(json.dumps(source) if isinstance(source, list) else source)
    assert str(caught.value).startswith(f"{path}: "), caught.value
    assert message in str(caught.value)


def test_json_that_is_not_json_has_a_span() -> None:
    with pytest.raises(IsaError, match="not JSON") as caught:
        translate_kernel('{"version": "1.0",\n "kernel" {}}')
    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.column, span.text) == ("<kernel>", 2, 11, ' "kernel" {}}')


def test_other_unreadable_sources() -> None:
    with pytest.raises(IsaError, match="UTF-8"):
        translate_kernel(b"\xff\xfe\x00")
    with pytest.raises(IsaError, match="too many digits"):
        translate_kernel('{"version": ' + "1" * 5000 + "}")
    with pytest.raises(IsaError, match="not a list"):
        translate_kernel([])  # type: ignore[arg-type]
    text = json.dumps(kernel([], [let("a", lit(1))])).replace('"kind": "let"', '"kind": "let", "name": "b"')
    with pytest.raises(IsaError, match=r"^body\[0\]: the key 'name' stands here twice"):
        translate_kernel(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have(number: str) -> None:
    text = json.dumps(kernel([], [let("a", lit("HERE"))])).replace('"HERE"', number)
    with pytest.raises(IsaError, match=r"^body\[0\]\.value\.value: expected a finite number"):
        translate_kernel(text)


# --- fuzz -----------------------------------------------------------------------------------------

SEEDS = [
    SAXPY,
    kernel(X, [
        loop("i", lit(0), var("n"), [
            when(op("and", op("lt", var("i"), lit(10)), un("not", op("ge", at("x", var("i")), lit(0.5)))),
                 [assign(at("x", var("i")), call("fma", var("f"), at("x", var("i")), lit(1.0)))],
                 [assign(at("k", var("i")), op("floor_div", at("k", var("i")), lit(3)))]),
        ], step=lit(2)),
        repeat(op("gt", var("n"), lit(0)), [assign(var("n"), op("sub", var("n"), lit(1))), {"kind": "return"}]),
        let("s", {"kind": "parallel_reduce", "operation": "sum", "src": at("x", lit(2)), "count": 4}),
        {"kind": "parallel_map_binary", "operation": "add", "dst": "x", "a": "x", "b": "x", "count": 4},
        let("c", cast("U8", choose(op("lt", var("s"), lit(1)), lit(1), op("mod", var("n"), lit(5))))),
    ]),
]  # fmt: skip
JUNK: list[Any] = [
    None, True, False, 0, -1, 1 << 70, 10**3000, 0.5, math.nan, math.inf, "", "x", "n", "F32", "add", "let", [], {},
    [[]], {"kind": "var"}, "\ud800", "a" * 10_000, lit(1), var("x"), {"kind": {"kind": "var"}}, (1, 2), b"x", {3: 4},
]  # fmt: skip


def paths(node: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [prefix, *(p for key, child in children for p in paths(child, (*prefix, key)))]


def mutate(rng: random.Random, source: Json) -> Any:
    """One or two values replaced, removed, renamed, or exchanged with others of the same kernel."""
    source = pickle.loads(pickle.dumps(source))
    for _ in range(rng.randint(1, 2)):
        places = [p for p in paths(source) if p]
        *parents, key = rng.choice(places)
        holder: Any = source
        for step in parents:
            holder = holder[step]
        action = rng.randrange(4)
        if action == 0:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
        elif action == 1:
            del holder[key]
        elif action == 2 and isinstance(holder, dict):
            holder[rng.choice(["kind", "type", "value", "name", "zzz"])] = holder.pop(key)
        else:
            donor: Any = source
            for step in rng.choice(places):
                donor = donor[step]
            holder[key] = copy.deepcopy(donor)
        if not isinstance(source, dict) or not source:
            return source
    return source


def attempt(source: Any) -> bool:
    """Whether a source is translated; anything but a Program or an IsaError fails the test."""
    try:
        program = translate_kernel(source)
    except IsaError as error:
        str(error)
        return False
    assert isinstance(program, Program)
    return True


def test_mutated_kernels_never_crash() -> None:
    rng, count = random.Random(20), amount(5_000, 2_000)
    translated = sum(attempt(mutate(rng, rng.choice(SEEDS))) for _ in range(count))
    assert count / 50 < translated < count - count / 50  # the mutations reach past the front door, and through it


def test_mutated_text_never_crashes() -> None:
    rng = random.Random(21)
    texts = [json.dumps(source) for source in SEEDS]
    for _ in range(2_500):
        text = list(rng.choice(texts))
        for _ in range(rng.randint(1, 5)):
            k = rng.randrange(len(text))
            text[k : k + rng.randint(0, 3)] = rng.choice(
                ['"', "{", "}", "[", "]", ",", ":", "1e9", "\0", "é", "kind", "-"]
            )
        attempt("".join(text))
        attempt("".join(text).encode("utf-8", "surrogatepass")[: rng.randrange(len(text))])
