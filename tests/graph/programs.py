"""Random programs of tensor operations, each step said twice: with tensors, and in NumPy.

Elementwise steps come from the op table, with the numbers brought into the bounds that the rows' own samples are drawn
from; reductions, movement, products and indexing are written out here. A program is drawn together with its inputs, so
that every step fits the shapes that it meets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import eshkol as ek
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Draw, NoDerivative, Op

EXTENTS = (1, 2, 3)
STEPPED = ("remainder", "fmod")  # which jump, though they have a derivative between


def _bounds(op: Op) -> list[tuple[float, float]]:
    return [(d.low, d.high) for d in op.samples[0].args if isinstance(d, Draw)]


def _plain(op: Op) -> bool:
    return op.elementwise and op.function is None and op.group != "structure" and op.samples != ()


_rows = [op for op in TABLE.values() if _plain(op) and len(_bounds(op)) == len(op.names)]
SMOOTH = [
    op for op in _rows
    if "float" in op.dtypes and not isinstance(op.derivative, NoDerivative) and op.name not in (*STEPPED, "where")
    and all(d.kind == "any" for d in op.samples[0].args)
]  # fmt: skip
WHOLE = [
    op for op in _rows
    if "int" in op.dtypes and (isinstance(op.derivative, NoDerivative) or op.name in STEPPED)
]  # fmt: skip


class Step(NamedTuple):
    """One operation on values that are there."""

    text: str
    args: tuple[int, ...]
    ours: Callable[..., Any]
    numpys: Callable[..., Any]


class Program(NamedTuple):
    steps: list[Step]
    float_: DType

    def tensors(self, inputs: Any) -> list[Any]:
        """All values of the program on tensors, inputs first."""
        values = list(inputs)
        for step in self.steps:
            values.append(step.ours(*(values[k] for k in step.args)))
        return values

    def arrays(self, inputs: Any) -> list[np.ndarray]:
        """The same in NumPy."""
        values = list(inputs)
        with np.errstate(all="ignore"):
            for step in self.steps:
                values.append(np.asarray(step.numpys(*(values[k] for k in step.args))))
        return values

    def scalar(self, values: Any, sine: Any) -> Any:
        """One number that all float values take part in."""
        total = 0.0
        for k, v in enumerate(values):
            if v.dtype in (self.float_, self.float_.numpy) and v.size:
                total = total + sine(v * 0.5 + k).sum() * (1.0 / v.size)
        return total


def within(x: Any, sine: Any, low: float, high: float) -> Any:
    """Numbers between bounds, a little away from them, whatever x is."""
    middle, half = (low + high) / 2, 0.45 * (high - low)
    return sine(x) * half + middle


# --- steps ----------------------------------------------------------------------------------------


def _elementwise(draw: Any, values: list[Any], float_: DType) -> Step:
    op = draw(st.sampled_from(SMOOTH))
    first = draw(st.integers(0, len(values) - 1))
    args = [first]
    for _ in op.names[1:]:
        args.append(draw(st.sampled_from([k for k, v in enumerate(values) if _meet(v.shape, values[first].shape)])))
    bounds = _bounds(op)

    def ours(*xs: Any) -> Any:
        bounded = [within(x.astype(float_), ek.sin, *b) for x, b in zip(xs, bounds, strict=True)]
        return getattr(ek, op.name)(*bounded)

    def numpys(*xs: Any) -> Any:
        bounded = [
            within(x.astype(float_.numpy), np.sin, *b).astype(float_.numpy) for x, b in zip(xs, bounds, strict=True)
        ]
        return np.asarray(op.reference(None, *bounded)).astype(float_.numpy)

    return Step(op.name, tuple(args), ours, numpys)


def _meet(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _integers(draw: Any, values: list[Any], float_: DType) -> Step | None:
    places = [k for k, v in enumerate(values) if v.dtype.is_integer]
    if not places:
        return None
    op = draw(st.sampled_from(WHOLE))
    first = draw(st.sampled_from(places))
    args = [first]
    for _ in op.names[1:]:
        args.append(draw(st.sampled_from([k for k in places if _meet(values[k].shape, values[first].shape)])))
    bounds = _bounds(op)

    def bounded(x: Any, low: float, high: float) -> Any:
        return x % 7 if (low, high) == (-2.0, 2.0) else x % (int(high) - int(low) + 1) + int(low)

    def ours(*xs: Any) -> Any:
        return getattr(ek, op.name)(*(bounded(x, *b) for x, b in zip(xs, bounds, strict=True)))

    def numpys(*xs: Any) -> Any:
        given = [bounded(x, *b) for x, b in zip(xs, bounds, strict=True)]
        common = given[0].dtype
        for x in given[1:]:
            common = dtypes.promote(dtypes.of(common), dtypes.of(x.dtype)).numpy
        found = np.asarray(op.reference(None, *(x.astype(common) for x in given)))
        return found.astype(np.float32) if op.promote == "float" else found

    return Step(op.name, tuple(args), ours, numpys)


def _arithmetic(draw: Any, values: list[Any], float_: DType) -> Step:
    """Operators between any dtypes, which promote."""
    name = draw(st.sampled_from(["add", "sub", "mul", "maximum", "minimum"]))
    one = draw(st.integers(0, len(values) - 1))
    two = draw(st.sampled_from([k for k, v in enumerate(values) if _meet(v.shape, values[one].shape)]))
    number = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}[name]

    def numpys(x: Any, y: Any) -> Any:
        common = dtypes.promote(dtypes.of(x.dtype), dtypes.of(y.dtype))
        if common.is_bool and name in ("add", "sub", "mul"):
            common = dtypes.int64
        return number(x.astype(common.numpy), y.astype(common.numpy))

    return Step(name, (one, two), getattr(ek, name), numpys)


def _reduction(draw: Any, values: list[Any], float_: DType) -> Step:
    place = draw(st.integers(0, len(values) - 1))
    ndim = values[place].ndim
    axis = draw(st.one_of(st.none(), st.integers(-ndim, ndim - 1))) if ndim else None
    keepdims = draw(st.booleans())
    name = draw(st.sampled_from(["sum", "mean", "max", "min", "prod", "any", "cumsum", "logsumexp", "var", "argmax"]))
    if (
        name in ("cumsum", "argmax", "logsumexp", "var", "prod", "mean", "max", "min")
        and not values[place].dtype.is_float
    ):
        name = "sum"  # whose rules for integers are simple: they are summed in 64 bits
    if name == "argmax" or (name == "cumsum" and axis is None):
        name = "mean"  # numbers that are equal but for rounding have no one greatest
    if name in ("logsumexp", "prod"):
        ours = lambda x: getattr(ek, name)(ek.sin(x), axis=axis, keepdims=keepdims)
        if name == "prod":
            numpys = lambda x: np.prod(np.sin(x), axis=axis, keepdims=keepdims)
        else:
            numpys = lambda x: np.log(np.sum(np.exp(np.sin(x)), axis=axis, keepdims=keepdims))
    elif name == "cumsum":
        ours, numpys = (lambda x: ek.cumsum(x, axis=axis)), (lambda x: np.cumsum(x, axis=axis))
    elif name == "var":
        ours = lambda x: ek.mean((x - ek.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis, keepdims=keepdims)
        numpys = lambda x: np.var(x, axis=axis, keepdims=keepdims)
    else:
        ours = lambda x: getattr(ek, name)(x, axis=axis, keepdims=keepdims)
        numpys = lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims)
    return Step(f"{name}(axis={axis}, keepdims={keepdims})", (place,), ours, numpys)


def _movement(draw: Any, values: list[Any], float_: DType) -> Step:
    place = draw(st.integers(0, len(values) - 1))
    shape = values[place].shape
    kind = draw(st.sampled_from(["reshape", "permute", "flip", "expand", "concatenate", "pad", "unsqueeze"]))
    axis = draw(st.integers(0, max(0, len(shape) - 1)))
    if kind == "reshape" or not shape:
        target = draw(st.sampled_from([(-1,), (1, -1), (-1, 1), tuple(reversed(shape))]))
        return Step(f"reshape{target}", (place,), lambda x: x.reshape(target), lambda x: x.reshape(target))
    if kind == "permute":
        order = tuple(draw(st.permutations(range(len(shape)))))
        return Step(f"permute{order}", (place,), lambda x: ek.permute(x, order), lambda x: np.transpose(x, order))
    if kind == "flip":
        return Step(f"flip({axis})", (place,), lambda x: ek.flip(x, (axis,)), lambda x: np.flip(x, axis))
    if kind == "expand":
        wide = (2, *shape)
        return Step(f"expand{wide}", (place,), lambda x: ek.expand(x, wide), lambda x: np.broadcast_to(x, wide))
    if kind == "concatenate":
        return Step(
            f"concatenate({axis})", (place, place), lambda x, y: ek.concatenate([x, y], axis),
            lambda x, y: np.concatenate([x, y], axis),
        )  # fmt: skip
    if kind == "pad":
        widths = tuple((1, 0) if k == axis else (0, 2) for k in range(len(shape)))
        return Step(f"pad{widths}", (place,), lambda x: ek.pad(x, widths), lambda x: np.pad(x, widths))
    return Step(f"[None, ..., None] of {shape}", (place,), lambda x: x[None, ..., None], lambda x: x[None, ..., None])


def _indexing(draw: Any, values: list[Any], float_: DType) -> Step | None:
    places = [k for k, v in enumerate(values) if v.ndim and 0 not in v.shape]
    if not places:
        return None
    place = draw(st.sampled_from(places))
    shape = values[place].shape
    items: list[Any] = []
    for extent in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["number", "slice", "back", "list"]))
        if kind == "number":
            items.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "list":
            items.append(draw(st.lists(st.integers(-extent, extent - 1), min_size=2, max_size=2)))
        else:
            start = draw(st.integers(0, extent - 1))
            items.append(slice(start, None) if kind == "slice" else slice(None, None, -1))
    index = tuple(items)
    if draw(st.booleans()):
        return Step(f"[{index}]", (place,), lambda x: x[index], lambda x: x[index])

    def ours(x: Any) -> Any:
        changed = x.clone()
        changed[index] = False
        return changed

    def numpys(x: Any) -> Any:
        changed = x.copy()
        changed[index] = False
        return changed

    return Step(f"[{index}] = 0", (place,), ours, numpys)


def _product(draw: Any, values: list[Any], float_: DType) -> Step | None:
    places = [k for k, v in enumerate(values) if v.ndim]
    if not places:
        return None
    one = draw(st.sampled_from(places))
    two = draw(st.sampled_from([k for k in places if values[k].shape[-1] == values[one].shape[-1]]))
    rows = values[one].shape[-1]

    def ours(x: Any, y: Any) -> Any:
        return ek.sin(x.astype(float_)).reshape((-1, rows)) @ y.astype(float_).reshape((-1, rows)).T

    def numpys(x: Any, y: Any) -> Any:
        x, y = np.sin(x.astype(float_.numpy)), y.astype(float_.numpy)
        return x.reshape((-1, rows)) @ y.reshape((-1, rows)).T

    return Step("matmul", (one, two), ours, numpys)


KINDS = [_elementwise, _elementwise, _arithmetic, _integers, _reduction, _movement, _indexing, _product]
LARGEST = 400


@st.composite
def programs(draw: Any, floats: tuple[DType, ...], only_floats: bool = False) -> tuple[Program, list[np.ndarray]]:
    """A program and arrays for it; `only_floats` leaves out inputs of other dtypes."""
    float_ = draw(st.sampled_from(floats))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays = []
    full = tuple(draw(st.lists(st.sampled_from(EXTENTS), max_size=3)))
    for k in range(draw(st.integers(1, 3))):
        shape = tuple(n if draw(st.booleans()) else 1 for n in full[draw(st.integers(0, len(full))) :])
        dtype = (
            float_
            if only_floats or k == 0
            else draw(st.sampled_from([float_, dtypes.int64, dtypes.int32, dtypes.bool_]))
        )
        if dtype.is_float:
            arrays.append(np.asarray(rng.normal(size=shape)).astype(dtype.numpy))
        else:
            arrays.append(np.asarray(rng.integers(0, 2 if dtype.is_bool else 6, shape)).astype(dtype.numpy))
    program = Program([], float_)
    values: list[Any] = [ek.tensor(a) for a in arrays]
    for _ in range(draw(st.integers(2, 6))):
        step = draw(st.sampled_from(KINDS))(draw, values, float_)
        if step is None:
            continue
        made = step.ours(*(values[k] for k in step.args))  # a graph only: nothing is computed here
        if made.size <= LARGEST and made.ndim <= 5:
            values.append(made)
            program.steps.append(step)
    return program, arrays
