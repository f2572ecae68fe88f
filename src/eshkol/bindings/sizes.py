"""Shapes with names for sizes: rows and functions are run on sizes that stand for them, and the results read back.

Comes in: functions, and shapes such as `("batch", 784)`. Goes out: the shape of the result in the same names, or the
error of the op that the shapes do not fit, with names for numbers. Nothing is computed: the op table's own rules for
shapes run on placeholders. Each name is a prime number, another one in a second run; what comes out is an expression in
the names if it is the same expression for both.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import combinations_with_replacement
from typing import Any

from eshkol.errors import EshkolError, ShapeError
from eshkol.ops import dtypes
from eshkol.tensors import api as ek
from eshkol.tensors import pytree
from eshkol.types.sizes import UNKNOWN, Polynomial, Size, constant, names_in, normal, plus, read_size, times, value_of

_RUNS = (
    (211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293),
    (409, 401, 421, 419, 433, 431, 443, 439, 457, 449, 463, 461, 479, 467, 491, 487),
)
MOST_NAMES = len(_RUNS[0])
PLAIN = 200  # no name stands for a number below
_NEAR, _TIMES, _FACTORS = 64, 16, 3  # constants that are added, factors, names that are multiplied

_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")


class Sizes:
    """Names of sizes, and numbers that stand for them in one of the two runs."""

    def __init__(self, names: Iterable[str], run: int) -> None:
        known = sorted(set(names))
        if len(known) > MOST_NAMES:
            raise ShapeError(f"{len(known)} names of sizes are more than {MOST_NAMES}")
        self.values = dict(zip(known, _RUNS[run], strict=False))
        self._products: list[tuple[Polynomial, int]] = []
        for count in range(1, min(_FACTORS, len(known)) + 1 if known else 1):
            for chosen in combinations_with_replacement(known, count):
                size = 1
                for name in chosen:
                    size *= self.values[name]
                self._products.append(({tuple(sorted(chosen)): 1}, size))

    def number(self, size: Size) -> int:
        return value_of(size, self.values)

    def candidates(self, number: int) -> Iterable[Size]:
        """Expressions that are this number, the simplest first."""
        if number < PLAIN:
            yield number
            return
        for polynomial, value in self._products:
            factor, rest = divmod(number, value)
            if 1 <= factor <= _TIMES and rest <= _NEAR:
                yield normal(plus(times(constant(factor), polynomial), constant(rest)))
            if factor < _TIMES and value - rest <= _NEAR:
                yield normal(plus(times(constant(factor + 1), polynomial), constant(rest - value)))
        for index, (one, first) in enumerate(self._products):
            for other, second in self._products[index + 1 :]:
                rest = number - first - second
                if abs(rest) <= _NEAR:
                    yield normal(plus(plus(one, other), constant(rest)))
        yield number


def read_back(pairs: Sequence[tuple[int, int]], first: Sizes, second: Sizes) -> tuple[Size, ...]:
    """The expressions whose numbers in the two runs these are."""
    found: list[Size] = []
    for one, other in pairs:
        fitting = (size for size in first.candidates(one) if second.number(size) == other)
        found.append(next(fitting, UNKNOWN))
    return tuple(found)


def named(text: str, again: str, first: Sizes, second: Sizes) -> str:
    """A message, which is there for both runs, with expressions for the numbers in it."""
    one, other = _NUMBER.split(text), _NUMBER.split(again)
    if one[::2] != other[::2]:
        return text
    pairs = [(int(a), int(b)) for a, b in zip(one[1::2], other[1::2], strict=True)]
    one[1::2] = [
        str(size) if size != UNKNOWN else str(a)
        for size, (a, _) in zip(read_back(pairs, first, second), pairs, strict=True)
    ]
    return "".join(one)


def in_both_runs(names: Iterable[str], run: Callable[[Sizes], Any]) -> Any:
    """What a function gives on placeholders of named sizes, with expressions for numbers in its shapes.

    `run` gives structures of what has shapes and dtypes. An error is raised with names for numbers.
    """
    known = set(names)
    first, second = Sizes(known, 0), Sizes(known, 1)
    try:
        one = run(first)
    except EshkolError as error:
        try:
            run(second)
        except EshkolError as again:
            error.message = named(error.message, again.message, first, second)
            error.hint = named(error.hint or "", again.hint or "", first, second) or None
            error.args = (error.message,)
        raise
    other = run(second)
    leaves, tree = pytree.flatten(one)
    others, _ = pytree.flatten(other)
    made = [
        Shaped(str(a.dtype), read_back(list(zip(a.shape, b.shape, strict=True)), first, second))
        if hasattr(a, "shape") and len(a.shape) == len(b.shape) else a
        for a, b in zip(leaves, others, strict=True)
    ]  # fmt: skip
    return tree.build(made)


# ---- shapes in Python ------------------------------------------------------------------------------------------------


class Shaped:
    """A dtype and a shape with names: `ek.Float32["batch 784"]`, and what `ek.check_shapes` gives."""

    def __init__(self, dtype: str | None, dims: tuple[Size, ...]) -> None:
        self.dtype, self.dims = dtype, dims

    def __repr__(self) -> str:
        return f"{(self.dtype or 'any').capitalize()}[{' '.join(map(str, self.dims))!r}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shaped) and (self.dtype, self.dims) == (other.dtype, other.dims)

    def __hash__(self) -> int:
        return hash((self.dtype, self.dims))


class ShapedDtype:
    """`ek.Float32` and its kin: with a text of sizes in brackets, an annotation."""

    def __init__(self, dtype: str | None) -> None:
        self.dtype = dtype

    def __getitem__(self, dims: str) -> Shaped:
        return Shaped(self.dtype, _dims(dims.split()))

    def __repr__(self) -> str:
        return f"ek.{(self.dtype or 'any').capitalize()}"


def _dims(given: Iterable[Any]) -> tuple[Size, ...]:
    found: list[Size] = []
    for size in given:
        if isinstance(size, str) and re.fullmatch(r"[A-Za-z_]\w*|\d+|[\w*+-]+", size) is None:
            raise ShapeError(f"{size!r} is no size", hint="a size is a number, a name, or a sum or product: 2*n+1")
        found.append(normal(read_size(size)) if isinstance(size, str) else int(size))
    return tuple(found)


def _spec(given: Any) -> Any:
    """What stands for an argument: a `Shaped` for a text or a tuple of sizes."""
    if isinstance(given, str):
        return Shaped(None, _dims(given.split()))
    if isinstance(given, tuple | list) and all(isinstance(size, str | int) for size in given):
        return Shaped(None, _dims(given))
    return given


def check_shapes(function: Callable[..., Any], *args: Any, **given: Any) -> Any:
    """The shape of what a function gives for shapes with names, or the error that it would raise. Nothing is computed.

    A shape is a tuple of numbers and names, a text of them, or an annotation (`ek.Float32["batch 784"]`); without any,
    those of the function's parameters are taken. Other arguments are passed on.

    >>> ek.check_shapes(lambda x, w: ek.relu(x @ w), x=("batch", 784), w=(784, 10))
    Float32['batch 10']
    """
    if not args and not given:
        given = {k: v for k, v in _annotations(function).items() if k != "return"}
    specs = [_spec(a) for a in args], {name: _spec(v) for name, v in given.items()}
    shaped = [s for s in (*specs[0], *specs[1].values()) if isinstance(s, Shaped)]
    names = {name for s in shaped for size in s.dims for name in names_in(size)}

    def run(sizes: Sizes) -> Any:
        def made(spec: Any) -> Any:
            if not isinstance(spec, Shaped):
                return spec
            return ek.ShapeDtypeStruct(tuple(map(sizes.number, spec.dims)), _dtype(spec.dtype))

        return ek.eval_shape(function, *map(made, specs[0]), **{name: made(s) for name, s in specs[1].items()})

    return in_both_runs(names, run)


def _dtype(name: str | None) -> Any:
    return dtypes.float32 if name is None else getattr(dtypes, name)


def _annotations(function: Callable[..., Any]) -> dict[str, Shaped]:
    try:
        found = inspect.get_annotations(function, eval_str=True)
    except (NameError, TypeError):
        found = {}
    return {name: kind for name, kind in found.items() if isinstance(kind, Shaped)}


def shaped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose tensors must have the shapes of its annotations; `ek.jit` looks at that while it traces.

    >>> @ek.shaped
    ... def layer(x: ek.Float32["batch n"], w: ek.Float32["n m"]) -> ek.Float32["batch m"]:
    ...     return x @ w
    """
    annotations = _annotations(function)
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        bound = signature.bind(*args, **given)
        known: dict[str, tuple[int, str]] = {}
        for name, value in bound.arguments.items():
            if name in annotations:
                _agree(annotations[name], value, f"{function.__name__}: {name}", known)
        result = function(*args, **given)
        if "return" in annotations:
            _agree(annotations["return"], result, f"{function.__name__}: its result", known)
        return result

    return call


def _agree(kind: Shaped, value: Any, who: str, known: dict[str, tuple[int, str]]) -> None:
    """Refuse a tensor that is not of a shape; what names of sizes are is noted, with who said so."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None:
        raise ShapeError(f"{who} is to be a tensor of shape [{_shown(kind.dims)}], but is {type(value).__name__}")
    if kind.dtype is not None and str(dtype).removeprefix("eshkol.") != kind.dtype:
        raise ShapeError(f"{who} is to be of {kind.dtype}, but is of {dtype}")
    if len(shape) != len(kind.dims):
        raise ShapeError(
            f"{who} has the shape {list(shape)}, but is to have {len(kind.dims)} axes: [{_shown(kind.dims)}]"
        )
    for axis, (size, number) in enumerate(zip(kind.dims, shape, strict=True)):
        names = names_in(size)
        if isinstance(size, str) and names == {size} and size not in known:
            known[size] = number, f"axis {axis} of {who.partition(': ')[2]}"
            continue
        if any(name not in known for name in names):
            continue
        wanted = value_of(size, {name: known[name][0] for name in names})
        if number != wanted:
            origins = "; ".join(f"{name} is {known[name][0]}, from {known[name][1]}" for name in sorted(names))
            raise ShapeError(
                f"{who} has the shape {list(shape)}, but is to be [{_shown(kind.dims)}]: axis {axis} is {number}, "
                f"not {size if isinstance(size, int) else f'{size} = {wanted}'}",
                hint=origins or None,
            )


def _shown(dims: Sequence[Size]) -> str:
    return ", ".join(map(str, dims))


Float16, BFloat16, Float32, Float64 = map(ShapedDtype, ("float16", "bfloat16", "float32", "float64"))
Int8, Int16, Int32, Int64, UInt8 = map(ShapedDtype, ("int8", "int16", "int32", "int64", "uint8"))
Bool, Complex64, Complex128 = map(ShapedDtype, ("bool", "complex64", "complex128"))
