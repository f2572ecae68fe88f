"""Random programs of tensors in Scheme, each form said twice: as Scheme's text and as a NumPy function.

A program is drawn together with its inputs: a chain of forms (`let*`), each of which uses values that stand before it,
often the same one twice. Numbers among the tensors are exact integers, ratios and inexact numbers; forms are rows under
their Scheme names, the numeric procedures of the language on tensors, `tensor-map` with branches, loops, closures,
`set!`, indexing, reshaping, joining with repeats and reductions, over extents of 0, 1 and others. All numbers are
doubles, so that NumPy's results are to be met to the last digits. The arguments reach the program as a structure:
apart, in a list, a vector, a record, or in each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

Array = Any
EXTENTS = (0, 1, 1, 2, 2, 3, 4)
NUMBERS: tuple[tuple[str, float], ...] = (
    ("2", 2.0), ("-1", -1.0), ("0", 0.0), ("1/3", 1 / 3), ("-5/4", -1.25), ("1/2", 0.5), ("0.75", 0.75),
    ("-0.3", -0.3), ("1.5", 1.5), ("(/ 2 3)", 2 / 3), ("(exact 0.25)", 0.25), ("(+ 1/3 2/3)", 1.0),
)  # fmt: skip


class Form(NamedTuple):
    """One binding of a program: its text names the values before it."""

    text: str
    numpys: Callable[[Sequence[Array]], Array]
    smooth: bool = True
    traces: bool = True  # whether it decides nothing by a value, so that it can be compiled


class Program(NamedTuple):
    """Inputs, the forms on them, and how the inputs are handed over."""

    inputs: list[Array]
    forms: list[Form]
    structure: str

    @property
    def smooth(self) -> bool:
        return all(form.smooth for form in self.forms)

    @property
    def traces(self) -> bool:
        return all(form.traces for form in self.forms)

    def arrays(self, inputs: Sequence[Array]) -> list[Array]:
        """All values in NumPy, inputs first."""
        values = [np.asarray(x, np.float64) for x in inputs]
        with np.errstate(all="ignore"):
            for form in self.forms:
                values.append(np.asarray(form.numpys(values), np.float64))
        return values

    def objective(self, inputs: Sequence[Array]) -> float:
        """One number that every value takes part in."""
        return float(sum(np.sin(v * 0.5 + k).sum() for k, v in enumerate(self.arrays(inputs)) if v.size))

    # ---- Scheme -------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return [f"v{k}" for k in range(len(self.inputs) + len(self.forms))]

    @property
    def given(self) -> str:
        """The structure of the arguments, as an expression of the inputs' names."""
        return _made(self.structure, self.names[: len(self.inputs)])

    def body(self, result: str) -> str:
        count = len(self.inputs)
        bindings = " ".join(f"(v{count + k} {form.text})" for k, form in enumerate(self.forms))
        return f"(let* ({bindings}) {result})"

    def procedure(self, result: str) -> str:
        """A procedure of the structure (or of the inputs, where they come apart) that gives the result."""
        inputs = self.names[: len(self.inputs)]
        if self.structure == "apart":
            return f"(lambda ({' '.join(inputs)}) {self.body(result)})"
        parts = " ".join(f"({name} {part})" for name, part in zip(inputs, _parts(self.structure, "s"), strict=False))
        return f"(lambda (s) (let* ({parts}) {self.body(result)}))"

    @property
    def all_values(self) -> str:
        return f"(list {' '.join(self.names)})"

    @property
    def one_number(self) -> str:
        terms = " ".join(f"(tensor-sum (tensor-sin (+ (* {name} 1/2) {k})))" for k, name in enumerate(self.names))
        return f"(+ {terms})"


STRUCTURES = ("apart", "list", "vector", "record", "nested")
PRELUDE = "(define-record-type <both> (both one two) both? (one both-one) (two both-two))"


def _made(structure: str, names: Sequence[str]) -> str:
    a, b, c = (*names, "0.5", "0.5")[:3]
    match structure:
        case "list":
            return f"(list {a} {b} {c})"
        case "vector":
            return f"(vector {a} {b} {c})"
        case "record":
            return f"(both {a} (list {b} {c}))"
        case "nested":
            return f"(list {a} (vector {b} (list {c})))"
    return " ".join(names)


def _parts(structure: str, s: str) -> list[str]:
    match structure:
        case "list":
            return [f"(car {s})", f"(cadr {s})", f"(caddr {s})"]
        case "vector":
            return [f"(vector-ref {s} {k})" for k in range(3)]
        case "record":
            return [f"(both-one {s})", f"(car (both-two {s}))", f"(cadr (both-two {s}))"]
    inner = f"(cadr {s})"
    return [f"(car {s})", f"(vector-ref {inner} 0)", f"(car (vector-ref {inner} 1))"]


def written(array: Array) -> str:
    """An array as Scheme makes it."""

    def data(x: Any) -> str:
        return f"({' '.join(map(data, x))})" if isinstance(x, list) else repr(float(x))

    if array.size == 0:
        return f"(tensor-zeros '({' '.join(map(str, array.shape))}) :dtype 'float64)"
    if not array.shape:
        return f"(reshape (tensor {float(array)!r} :dtype 'float64) '())"
    return f"(tensor '{data(array.tolist())} :dtype 'float64)"


# ---- forms -----------------------------------------------------------------------------------------------------------

Maker = Callable[["Draws", Sequence[Array]], "Form | None"]
MAKERS: list[Maker] = []


class Draws:
    """What a form may ask for."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def choice(self, items: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(items)))

    def value(self, values: Sequence[Array], fits: Callable[[Array], bool] = lambda _: True) -> int | None:
        """A value that stands already, the last ones first."""
        found = [k for k, v in enumerate(values) if fits(v)]
        return self.choice(found[::-1]) if found else None

    def number(self) -> tuple[str, float]:
        text, number = self.choice(NUMBERS)
        return text, number


def maker(function: Maker) -> Maker:
    MAKERS.append(function)
    return function


def fits_with(a: Array) -> Callable[[Array], bool]:
    def fits(b: Array) -> bool:
        try:
            return np.broadcast_shapes(a.shape, b.shape) is not None
        except ValueError:
            return False

    return fits


UNARY: list[tuple[str, Callable[[Array], Array], bool]] = [
    ("(sin {})", np.sin, True),
    ("(cos {})", np.cos, True),
    ("(tensor-tanh {})", np.tanh, True),
    ("(sigmoid {})", lambda x: 1 / (1 + np.exp(-x)), True),
    ("(exp (tensor-tanh {}))", lambda x: np.exp(np.tanh(x)), True),
    ("(sqrt (+ (square {}) 1/2))", lambda x: np.sqrt(x * x + 0.5), True),
    ("(log (+ 1.25 (* {0} {0})))", lambda x: np.log(1.25 + x * x), True),
    ("(- {})", lambda x: -x, True),
    ("(abs {})", np.abs, False),
    ("(relu {})", lambda x: np.maximum(x, 0), False),
    ("(atan {})", np.arctan, True),
    ("(expt (sin {}) 3)", lambda x: np.sin(x) ** 3, True),
    ("(expt (+ 2 (cos {})) 1/2)", lambda x: np.sqrt(2 + np.cos(x)), True),
    ("(floor {})", np.floor, False),
    ("(round {})", np.round, False),
    ("(1+ {})", lambda x: x + 1, True),
    ("(tensor-map (lambda (u) (if (> u 1/4) (* u u) (- 1/2 u))) {})",
     lambda x: np.where(x > 0.25, x * x, 0.5 - x), False),
    ("(tensor-map (lambda (u) (cond ((< u -1) (sin u)) ((< u 1/2) (* 3 u)) (else (sqrt u)))) {})",
     lambda x: np.where(x < -1, np.sin(x), np.where(x < 0.5, 3 * x, np.sqrt(np.abs(x)))), False),
    ("(tensor-map (lambda (u) (let loop ((i 0) (a 1)) (if (= i 3) a (loop (+ i 1) (* a 1/2 (+ u i)))))) (sin {}))",
     lambda x: np.sin(x) * (np.sin(x) + 1) * (np.sin(x) + 2) / 8, True),
    ("(let loop ((i 0) (a {0})) (if (= i 3) a (loop (+ i 1) (sin (+ a (* i {0}))))))",
     lambda x: np.sin(np.sin(np.sin(x) + x) + 2 * x), True),
    ("(let ((acc {0})) (set! acc (+ acc (cos {0}))) (set! acc (* acc 1/2)) acc)",
     lambda x: (x + np.cos(x)) / 2, True),
    ("(((lambda (k) (lambda (t) (+ (* k t) (* t k)))) 1/3) {})", lambda x: 2 * x / 3, True),
    ("(fold + 0 (list {0} 1/2 {0} (sin {0})))", lambda x: 0.5 + 2 * x + np.sin(x), True),
    ("(apply * (map (lambda (f) (f {})) (list sin cos)))", lambda x: np.sin(x) * np.cos(x), True),
    ("(do ((i 0 (+ i 1)) (a {0} (tensor-tanh (- a i)))) ((= i 2) a))", lambda x: np.tanh(np.tanh(x) - 1), True),
]  # fmt: skip


@maker
def unary(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values)
    assert k is not None
    text, function, smooth = d.choice(UNARY)
    return Form(text.format(f"v{k}"), lambda v: function(v[k]), smooth)


BINARY: list[tuple[str, Callable[[Array, Array], Array], bool]] = [
    ("(+ {} {})", lambda a, b: a + b, True),
    ("(- {} {})", lambda a, b: a - b, True),
    ("(* (sin {}) {})", lambda a, b: np.sin(a) * b, True),
    ("(/ {} (+ 3/2 (square {})))", lambda a, b: a / (1.5 + b * b), True),
    ("(tensor-add {0} (tensor-mul 1/2 {1}))", lambda a, b: a + b / 2, True),
    ("(max {} {})", np.maximum, False),
    ("(min {} {})", np.minimum, False),
    ("(tensor-where (tensor-less {0} {1}) {0} (* 2 {1}))", lambda a, b: np.where(a < b, a, 2 * b), False),
    ("(+ {0} {1} {0})", lambda a, b: a + b + a, True),
    ("(expt (+ 3/2 (sin {})) (cos {}))", lambda a, b: (1.5 + np.sin(a)) ** np.cos(b), True),
    ("(atan {} (+ 2 (square {})))", lambda a, b: np.arctan2(a, 2 + b * b), True),
]


@maker
def binary(d: Draws, values: Sequence[Array]) -> Form | None:
    """Two tensors that broadcast, or a tensor and a number."""
    k = d.value(values)
    assert k is not None
    text, function, smooth = d.choice(BINARY)
    if d.choice((False, False, True)):
        said, number = d.number()
        if d.choice((False, True)):
            return Form(text.format(f"v{k}", said), lambda v: function(v[k], np.float64(number)), smooth)
        return Form(text.format(said, f"v{k}"), lambda v: function(np.float64(number), v[k]), smooth)
    j = d.value(values, fits_with(values[k]))
    assert j is not None
    return Form(text.format(f"v{k}", f"v{j}"), lambda v: function(v[k], v[j]), smooth)


@maker
def mapped_pair(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values)
    assert k is not None
    j = d.value(values, fits_with(values[k]))
    text = f"(tensor-map (lambda (a b) (if (< a b) (* a b) (+ (sin a) (* b 1/2)))) v{k} v{j})"
    return Form(text, lambda v: np.where(v[k] < v[j], v[k] * v[j], np.sin(v[k]) + v[j] / 2), smooth=False)


@maker
def reduction(d: Draws, values: Sequence[Array]) -> Form | None:
    name, function, smooth, empty = d.choice(
        (
            ("sum", np.sum, True, True),
            ("mean", np.mean, True, False),
            ("max", np.max, False, False),
            ("min", np.min, False, False),
            ("prod", lambda x, **how: np.prod(np.sin(x), **how), True, True),
            ("logsumexp", lambda x, **how: np.log(np.sum(np.exp(x), **how)), True, False),
        )
    )
    k = d.value(values, lambda v: empty or bool(v.size))
    if k is None:
        return None
    said = f"(sin v{k})" if name == "prod" else f"v{k}"
    axes = values[k].ndim
    if not axes or d.choice((False, False, True)):
        return Form(f"(tensor-{name} {said})", lambda v: function(v[k], axis=None), smooth)
    axis, keep = d.choice(range(-axes, axes)), d.choice((False, True))
    text = f"(tensor-{name} {said} :axis {axis}{' :keepdims #t' if keep else ''})"
    return Form(text, lambda v: function(v[k], axis=axis, keepdims=keep), smooth)


@maker
def row_by_row(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values, lambda v: v.ndim > 0)
    if k is None:
        return None
    axis = d.choice(range(values[k].ndim))

    def softmax(x: Array) -> Array:
        return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)

    text, function = d.choice(
        (
            (f"(softmax v{k} :axis {axis})", softmax),
            (f"(tensor-cumsum v{k} :axis {axis})", lambda x: np.cumsum(x, axis=axis)),
            (f"(- v{k} (tensor-sum v{k} :axis {axis} :keepdims #t))", lambda x: x - x.sum(axis=axis, keepdims=True)),
            (f"(tensor-flip v{k} :axis {axis})", lambda x: np.flip(x, axis)),
            (f"(tensor-roll v{k} 1 :axis {axis})", lambda x: np.roll(x, 1, axis)),
        )
    )
    return Form(text, lambda v: function(v[k]))


@maker
def shaped(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values)
    assert k is not None
    shape = values[k].shape
    ways: list[tuple[str, Callable[[Array], Array]]] = [
        (f"(unsqueeze v{k} 0)", lambda x: x[None]),
        (f"(reshape v{k} '({values[k].size}))", lambda x: x.reshape(-1)),
        (f"(broadcast-to v{k} '({' '.join(map(str, (2, *shape)))}))", lambda x: np.broadcast_to(x, (2, *shape))),
    ]
    if len(shape) >= 2:
        order = d.draw(st.permutations(range(len(shape))))
        ways += [
            (f"(transpose v{k})", lambda x: np.swapaxes(x, -1, -2)),
            (f"(tensor-permute v{k} '({' '.join(map(str, order))}))", lambda x: np.transpose(x, order)),
            (f"(reshape v{k} '({values[k].size // (shape[-1] or 1)} {shape[-1]}))",
             lambda x: x.reshape(-1 if shape[-1] else x.size, shape[-1])),
        ]  # fmt: skip
    if 1 in shape:
        place = shape.index(1)
        ways.append((f"(squeeze v{k} :axis {place})", lambda x: np.squeeze(x, place)))
    if values[k].size and len(shape) < 4:
        ways.append((f"(tensor-tile v{k} '({' '.join(['2'] * len(shape))}))", lambda x: np.tile(x, (2,) * len(shape))))
    text, function = d.choice(ways)
    return Form(text, lambda v: function(v[k]))


@maker
def joined(d: Draws, values: Sequence[Array]) -> Form | None:
    """Tensors next to each other, with repeats."""
    k = d.value(values, lambda v: v.ndim > 0)
    if k is None:
        return None
    j = d.value(values, lambda v: v.shape == values[k].shape)
    order = [k if first else j for first in d.draw(st.lists(st.booleans(), min_size=2, max_size=4))]
    axis = d.choice(range(values[k].ndim))
    named = " ".join(f"v{i}" for i in order)
    if d.choice((False, True)) and values[k].ndim < 4:
        return Form(f"(stack (list {named}) :axis {axis})", lambda v: np.stack([v[i] for i in order], axis))
    text = d.choice((f"(concat (list {named}) :axis {axis})", f"(concat (vector {named}) {axis})"))
    return Form(text, lambda v: np.concatenate([v[i] for i in order], axis))


@maker
def part(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values, lambda v: v.ndim > 0 and v.shape[0] > 0)
    if k is None:
        return None
    length = values[k].shape[0]
    index = d.choice(range(-length, length))
    low = d.choice(range(length))
    ways: list[tuple[str, Callable[[Array], Array]]] = [
        (f"(tensor-slice v{k} {low} {length})", lambda x: x[low:]),
        (f"(tensor-slice v{k} 0 {low})", lambda x: x[:low]),
    ]
    if values[k].ndim > 1:
        ways.append((f"(tensor-ref v{k} {index})", lambda x: x[index]))
        if all(values[k].shape):
            last = d.choice(range(values[k].shape[1]))
            if values[k].ndim > 2:
                ways.append((f"(tensor-ref v{k} {index} {last})", lambda x: x[index, last]))
    text, function = d.choice(ways)
    return Form(text, lambda v: function(v[k]))


@maker
def product(d: Draws, values: Sequence[Array]) -> Form | None:
    k = d.value(values, lambda v: v.ndim == 2)
    if k is None:
        return None
    j = d.value(values, lambda v: v.ndim == 2 and v.shape[0] == values[k].shape[1])
    if j is None:
        return Form(f"(matmul (sin v{k}) (transpose v{k}))", lambda v: np.sin(v[k]) @ v[k].T)
    return Form(f"(matmul (sin v{k}) v{j})", lambda v: np.sin(v[k]) @ v[j])


@maker
def chosen(d: Draws, values: Sequence[Array]) -> Form | None:
    """A test on tensors without axes, and a number taken out of a tensor."""
    k = d.value(values, lambda v: v.size > 0)
    if k is None:
        return None
    j = d.value(values)
    assert j is not None
    text = f"(if (< (tensor-sum v{k}) 1/2) (* 2 v{j}) (- v{j} 1))"
    return Form(text, lambda v: 2 * v[j] if v[k].sum() < 0.5 else v[j] - 1, smooth=False, traces=False)


def _ordinary(form: Form, values: Sequence[Array]) -> bool:
    """Whether the value is of ordinary size: nothing that overflows, and small enough to be differentiated."""
    with np.errstate(all="ignore"):
        try:
            value = np.asarray(form.numpys(values))
        except (ValueError, FloatingPointError):
            return False
    return value.size <= 48 and value.ndim <= 4 and bool(np.isfinite(value).all()) and bool((abs(value) < 40).all())


@st.composite
def programs(draw: Any, most_forms: int = 12) -> Program:
    """A program with its inputs."""
    d = Draws(draw)
    count = draw(st.integers(1, 3))
    shapes = [tuple(draw(st.lists(st.sampled_from(EXTENTS), max_size=3))) for _ in range(count)]
    if count > 1 and draw(st.booleans()):
        shapes[1] = shapes[0]
    numbers = st.integers(-12, 12).map(lambda n: n * 0.17 + 0.03)
    inputs = []
    for shape in shapes:
        size = int(np.prod(shape, dtype=int))
        values = draw(st.lists(numbers, min_size=size, max_size=size))
        inputs.append(np.array(values, np.float64).reshape(shape))
    structure = draw(st.sampled_from(STRUCTURES if count == 3 else ("apart",)))
    made = Program(inputs, [], structure)
    values = made.arrays(inputs)
    for _ in range(draw(st.integers(2, most_forms))):
        form = d.choice(MAKERS)(d, values)
        if form is None or not _ordinary(form, values):
            continue
        made.forms.append(form)
        with np.errstate(all="ignore"):
            values.append(np.asarray(form.numpys(values), np.float64))
    return made
