"""Every row of the op table against an independent definition (`oracles`): values, shapes and dtypes.

Values are those of the rows' references (`graph.interpret`), reached as a user reaches them: through the function of
the row, which turns arguments into attributes, the promotion of dtypes, and for composites the ops that they are made
of. What the backends make of the same graphs is tested in tests/schedule.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from op_harness import (
    TESTED,
    arguments,
    arrays_in,
    as_buffer,
    computed,
    draw,
    flat,
    has_negative,
    refilled,
    rng_of,
    rows,
)
from oracles import ORACLES, Call, Oracle, met
from oracles.registry import agree, name_of, wide
from variants import is_empty, of_shapes, of_signature, varies

from batches import in_batches
from effort import FULL
from eshkol.errors import EshkolError
from eshkol.graph import interpret
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Draw, Op, Sample

OPS = {op.name: op for op in rows()}
MAIN = {"bool": ["bool_"], "int": ["int32"], "float": ["float64", "float32"], "complex": ["complex64"]}


def test_every_row_has_an_oracle():
    assert set(OPS) - set(ORACLES) == set(), "rows without an oracle"
    assert set(ORACLES) - set(OPS) == set(), "oracles without a row"


def dtypes_of(op: Op, number: int) -> Iterator[DType]:
    """Those of the row's kinds: all, or in `make test` the main ones and one more in turn."""
    for kind in op.dtypes:
        every_one = TESTED[kind]
        chosen = [getattr(dtypes, name) for name in MAIN[kind]]
        extra = every_one[(zlib.crc32(op.name.encode()) + number) % len(every_one)]
        yield from every_one if FULL else dict.fromkeys([*chosen, extra])


def taken(op: Op, samples: list[Sample], more: bool) -> Iterator[tuple[int, Sample, DType]]:
    """Each sample in each of its dtypes; of the many further ones in `make test` each in one dtype, in turn."""
    for number, sample in enumerate(samples):
        chosen = [d for d in dtypes_of(op, number) if d.signed or not has_negative(sample)]
        if not varies(sample):
            chosen = chosen[:1]
        elif more and not FULL:
            chosen = [chosen[number % len(chosen)]]
        for dtype in chosen:
            yield number, sample, dtype


def bound(op: Op, args: list[Any], attrs: dict[str, Any]) -> dict[str, Any]:
    found = dict(op.signature.bind(*args, **attrs).arguments)
    return {name: value for name, value in found.items() if not isinstance(value, np.ndarray)}


def check(op: Op, oracle: Oracle, args: list[Any], attrs: dict[str, Any]) -> None:
    judge(op, oracle, args, attrs, computed(op, args, attrs))


def judge(
    op: Op, oracle: Oracle, args: list[Any], attrs: dict[str, Any], got: list[np.ndarray], epsilon: float = 0.0
) -> None:
    """Results against the oracle: how many, their dtypes, shapes and values."""
    call = Call(tuple(arrays_in(args)), bound(op, args, attrs))
    rules = oracle.dtypes if isinstance(oracle.dtypes, tuple) else (oracle.dtypes,) * len(got)
    for result, rule in zip(got, rules, strict=False):
        assert name_of(result.dtype) == rule(call), f"dtype {name_of(result.dtype)}, not {rule(call)}"
    given = [wide(x) for x in args]
    with np.errstate(all="ignore"):
        if oracle.judges:
            oracle.function(got, *given, **attrs)
            return
        wanted = flat(oracle.function(*given, **attrs))
    assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
    for result, answer in zip(got, wanted, strict=True):
        agree(result, answer, max(op.tolerance, oracle.tolerance), oracle.floor, epsilon)


@in_batches("name", OPS)
def test_samples(name):
    op, oracle = OPS[name], ORACLES[name]
    for number, sample, dtype in taken(op, list(op.samples), more=False):
        args = arguments(sample, dtype, rng_of(name, number, dtype))
        try:
            check(op, oracle, args, sample.attrs)
        except Exception as error:
            error.add_note(f"{name}: sample {number} {sample.attrs}, {dtype}")
            raise


@in_batches("name", OPS)
def test_further_cases(name):
    op, oracle = OPS[name], ORACLES[name]
    derived = [s for s in (*of_signature(op, oracle.fixed), *of_shapes(op)) if not is_empty(s)]
    if "shapes" in oracle.fixed:
        derived = [s for s in of_signature(op, oracle.fixed) if not is_empty(s)]
    for number, sample, dtype in taken(op, [*oracle.more, *derived], more=True):
        args = arguments(sample, dtype, rng_of(name, "more", number, dtype))
        try:
            check(op, oracle, args, sample.attrs)
        except Exception as error:
            error.add_note(f"{name}: case {number} of {[x.shape for x in arrays_in(args)]} {sample.attrs}, {dtype}")
            raise


# --- operands that are the same, or of other dtypes -------------------------------------------------


def several(op: Op) -> bool:
    return sum(isinstance(a, Draw) and a.kind == "any" and a.make is None for a in op.samples[0].args) > 1


@in_batches("name", [n for n, op in OPS.items() if several(op) and not op.random])
def test_one_tensor_twice(name):
    """An op of a tensor and itself: nodes are shared, so that simplifications and caches see one."""
    op, oracle = OPS[name], ORACLES[name]
    for number, sample, dtype in taken(op, list(op.samples), more=True):
        args = arguments(sample, dtype, rng_of(name, "twice", number, dtype))
        arrays = arrays_in(args)
        seen: dict[Any, int] = {}
        chosen = [seen.setdefault((x.shape, x.dtype), k) for k, x in enumerate(arrays)]
        if chosen == list(range(len(arrays))):
            continue
        drawn = [d for a in sample.args for d in (a if isinstance(a, list) else [a]) if isinstance(d, Draw)]
        if len({(d.low, d.high, d.make is None, d.kind) for d in drawn}) > 1:
            continue  # what is drawn for one is not fit for the other
        nodes = [as_buffer(x) for x in arrays]
        got = interpret.evaluate(flat(op(*refilled(args, [nodes[k] for k in chosen]), **sample.attrs)))
        judge(op, oracle, refilled(args, [arrays[k] for k in chosen]), sample.attrs, got)


MIXED = [
    ("int32", "float16"),
    ("bool_", "int8"),
    ("float16", "bfloat16"),
    ("int64", "float32"),
    ("uint8", "int8"),
    ("uint32", "int16"),
    ("float64", "complex64"),
    ("float16", "complex64"),
    ("bool_", "float32"),
    ("float64", "float32"),
    ("uint64", "uint8"),
    ("int16", "bfloat16"),
    ("bool_", "bool_"),
    ("complex64", "complex128"),
    ("uint64", "float16"),
]


DIVIDING = ("div", "remainder", "fmod", "floor_divide")


def kinds(op: Op) -> set[str]:
    return set(op.dtypes) | ({"bool"} if op.elementwise and "int" in op.dtypes else set())


@in_batches("name", [n for n, op in OPS.items() if several(op) and not op.random])
def test_dtypes_meet(name):
    """Operands of two dtypes, in both orders: the result's dtype, and its values; or the row refuses them."""
    op, oracle = OPS[name], ORACLES[name]
    sample = op.samples[0]
    for one, other in [(getattr(dtypes, a), getattr(dtypes, b)) for a, b in MIXED]:
        if not {one.kind, other.kind} <= kinds(op) or op.name in ("shift_left", "shift_right"):
            continue  # places beyond the width of the lesser dtype
        for pair in {(one, other), (other, one)}:
            turns = itertools.cycle(pair)
            if any(not d.signed for d in pair) and has_negative(sample):
                continue
            rng = rng_of(name, "meet", pair)
            args = [
                draw(a, next(turns) if a.kind == "any" else one, rng) if isinstance(a, Draw) else a for a in sample.args
            ]
            if op.name in DIVIDING and args[1].dtype == np.bool_:
                args[1] = np.ones_like(args[1])
            try:
                got = computed(op, args, sample.attrs)
            except EshkolError:
                assert not op.elementwise, f"{name} of {pair} is refused"
                continue
            least = max((d.epsilon for d in pair if d.differentiable), default=0.0)
            try:  # a part may be computed in the narrower dtype
                judge(op, oracle, args, sample.attrs, got, least)
            except Exception as error:
                error.add_note(f"{name}: {pair}")
                raise


def test_promotion_is_what_the_documentation_says():
    """Every two dtypes, against the rules of docs/tensors.md; int with uint64 alone is refused."""
    for one, other in itertools.product(dtypes.ALL, repeat=2):
        a, b = name_of(one.numpy), name_of(other.numpy)
        refused = {a, b} & {"uint64"} and {a, b} & {"int8", "int16", "int32", "int64"}
        if refused:
            with pytest.raises(EshkolError):
                dtypes.promote(one, other)
        else:
            assert name_of(dtypes.promote(one, other).numpy) == met(a, b)


@pytest.mark.parametrize("name", ["add", "mul", "sub", "maximum", "div", "power"])
def test_a_python_number_takes_the_tensors_dtype(name):
    """If its kind allows; else the default of its kind."""
    op, oracle = OPS[name], ORACLES[name]
    for dtype, number in itertools.product(dtypes.ALL, (2, 1.5)):
        kind = "int" if isinstance(number, int) else "float"
        if dtype.kind not in kinds(op):
            continue
        rank = ["bool", "int", "float", "complex"]
        wanted = (
            name_of(dtype.numpy)
            if rank.index(dtype.kind) >= rank.index(kind)
            else {"int": "int64", "float": "float32"}[kind]
        )
        if name == "div" and rank.index(dtype.kind) < 2:
            wanted = "float32"
        array = draw(Draw((2, 3), 0.5, 2.0), dtype, rng_of(name, dtype))
        (got,) = interpret.evaluate([op(as_buffer(array), number)])
        assert name_of(got.dtype) == wanted, f"{dtype} and {number}"
        agree(got, oracle.function(wide(array), number))
