"""Every row of the op table as a step, by the domain of its own samples.

Elementwise rows are applied to values of any shapes that broadcast. Other rows are given what one of their samples has:
values that are there already, laid out in the sample's shape, and new leaves where it insists on something else (keys,
permutations, definite matrices). Numbers are brought between the sample's bounds.

A row whose answer jumps is given exact values alone: leaves, and what moves or chooses among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from op_harness import draw as drawn_array
from op_harness import flat

import eshkol as ek
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Draw, NoDerivative, Op, Sample
from random_programs.choosing import Chooser, chance, generator
from random_programs.program import Known, Leaf, Step, kind
from random_programs.steps import meets, place

JUMPING = frozenset({
    "remainder", "fmod", "floor_divide", "sort", "topk", "kthvalue", "median", "quantile", "unique", "heaviside",
    "searchsorted", "histogram", "max_pool1d", "max_pool2d", "global_max_pool2d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "max_unpool2d", "cummax", "cummin", "grid_sample", "interpolate", "matrix_rank", "lstsq",
    "matrix_lstsq", "pinv", "nan_to_num", "hard_shrink", "threshold", "triplet_margin_loss", "sign", "copysign",
    "eig", "eigvals", "eig_with_pivots", "eigh", "eigvalsh", "eigh_with_pivots", "svd", "svdvals", "svd_with_pivots",
    "qr", "tall_qr", "condition_number",
})  # fmt: skip
KEEPS_BITS = frozenset(
    {"neg", "absolute", "maximum", "minimum", "relu", "square", "floor", "ceil", "trunc", "round", "sign"}
)


def _usable(op: Op) -> bool:
    return op.public and not op.random and not op.concrete and not op.like and bool(op.samples) and bool(op.inputs)


ROWS = [op for op in TABLE.values() if _usable(op)]
ELEMENTWISE = [
    op for op in ROWS
    if op.elementwise and op.function is None and len(op.samples[0].args) == len(op.names)
    and all(isinstance(d, Draw) for d in op.samples[0].args)
]  # fmt: skip
SMOOTH = [op for op in ELEMENTWISE if "float" in op.dtypes and not isinstance(op.derivative, NoDerivative)
          and op.name not in JUMPING and all(d.kind == "any" for d in op.samples[0].args)]  # fmt: skip
DECIDING = [op for op in ELEMENTWISE if op not in SMOOTH]


def bounded(x: Any, low: float, high: float) -> Any:
    """Numbers between bounds, a little away from them, whatever they are; complex ones around there."""
    if x.dtype.is_complex:
        return x / (1.0 + ek.real(x) ** 2 + ek.imag(x) ** 2) * (0.45 * (high - low)) + (low + high) / 2
    return ek.sin(x) * (0.45 * (high - low)) + (low + high) / 2


def _elementwise(a: tuple[str, Any], *xs: Any) -> Any:
    name, bounds = a
    given = xs if bounds is None else [bounded(x, *b) for x, b in zip(xs, bounds, strict=True)]
    return getattr(ek, name)(*given)


@kind("elementwise", _elementwise, weight=14)
def _smooth(c: Chooser, values: Sequence[Known]) -> Step | None:
    op = c.pick(SMOOTH)
    k = place(c, values, lambda v: v.is_float)
    if k is None:
        return None
    args = [k]
    for _ in op.names[1:]:
        shape = np.broadcast_shapes(*(values[j].shape for j in args))
        fits = [j for j, v in enumerate(values) if v.array.dtype == values[k].array.dtype and meets(v.shape, shape)]
        args.append(c.pick(fits))
    bounds = tuple((d.low, d.high) for d in op.samples[0].args)
    plain = op.name in ("add", "sub", "mul", "maximum", "minimum", "neg", "absolute", "relu", "sin", "cos", "tanh")
    exact = op.name in KEEPS_BITS and plain and all(values[j].exact for j in args)
    return Step("elementwise", tuple(args), (op.name, None if plain else bounds), exact)


@kind("deciding", lambda a, *xs: getattr(ek, a)(*xs), weight=4)
def _deciding(c: Chooser, values: Sequence[Known]) -> Step | None:
    op = c.pick(DECIDING)
    args: list[int] = []
    for d in op.samples[0].args:
        shape = np.broadcast_shapes(*(values[j].shape for j in args))
        fits = [
            j for j, v in enumerate(values)
            if v.exact and _takes(op, d, v) and meets(v.shape, shape)
            and (not args or d.kind != "any" or v.array.dtype == values[args[-1]].array.dtype)
        ]  # fmt: skip
        if not fits:
            return None
        args.append(c.pick(fits))
    return Step("deciding", tuple(args), op.name, exact=True)


def kind_of(dtype: dtypes.DType) -> str:
    """What rows call such a dtype."""
    return "bool" if dtype.is_bool else "int" if dtype.is_integer else "complex" if dtype.is_complex else "float"


def _takes(op: Op, d: Draw, v: Known) -> bool:
    named = kind_of(dtypes.of(v.array.dtype))
    if named not in op.dtypes if d.kind == "any" else named != d.kind:
        return False
    usual = (d.low, d.high) == (-2.0, 2.0) or named == "bool"
    return usual or (v.is_real and bool((v.array >= d.low).all() and (v.array <= d.high).all()))


def _laid_out(x: Any, shape: tuple[int, ...]) -> Any:
    """Elements in another shape: repeated or left out."""
    if tuple(x.shape) == shape:
        return x
    size = int(np.prod(shape, dtype=int))
    return ek.reshape(ek.take(ek.reshape(x, (-1,)), np.arange(size) % x.size, 0), shape)


def _row(a: tuple[str, int, Any, int], *xs: Any) -> Any:
    name, number, ways, wanted = a
    op = TABLE[name]
    example = op.samples[number]
    feed = iter(zip(xs, ways, strict=True))

    def one(arg: Any) -> Any:
        if isinstance(arg, Draw):
            x, bounds = next(feed)
            return x if bounds is None else bounded(_laid_out(x, arg.shape), *bounds)
        return [one(y) for y in arg] if isinstance(arg, list) else arg

    found = flat(getattr(ek, name)(*[one(arg) for arg in example.args], **example.attrs))
    return found[wanted % len(found)]


@kind("row", _row, weight=12)
def _any_row(c: Chooser, values: list[Known]) -> Any:
    op = c.pick(ROWS)
    number = c.integer(0, len(op.samples) - 1)
    example = op.samples[number]
    smooth = [d for d in (dtypes.float64, dtypes.complex128) if kind_of(d) in op.dtypes]
    jumps = op.name in JUMPING or isinstance(op.derivative, NoDerivative) or not smooth
    others = [d for d in (dtypes.int64, dtypes.bool_) if kind_of(d) in op.dtypes]
    if not smooth and not others:
        return None
    dtype = c.pick([*smooth[:1] * 3, *smooth]) if smooth else c.pick(others)
    args: list[int | Leaf] = []
    ways: list[Any] = []
    rng = generator(c)
    for d in _draws(example):
        free = d.kind in ("any", "float") and d.make is None and bool(smooth) and not jumps
        wanted = dtype.numpy if d.kind == "any" else np.float64
        k = place(c, values, lambda v, t=wanted: v.array.dtype == t and v.size > 0) if free and chance(c, 70) else None
        if k is not None:
            args.append(k)
            ways.append((d.low, d.high))
        else:
            args.append(Leaf(drawn_array(d, dtype, rng), fixed=d.make is not None))
            ways.append(None)
    return args, lambda places: Step("row", places, (op.name, number, tuple(ways), c.integer(0, 3)))


def _draws(example: Sample) -> list[Draw]:
    found: list[Draw] = []

    def walk(arg: Any) -> None:
        if isinstance(arg, Draw):
            found.append(arg)
        elif isinstance(arg, list):
            for y in arg:
                walk(y)

    for arg in example.args:
        walk(arg)
    return found
