"""Kinds of steps that are written out: movement, indexing, joining, reductions, scans, products, changes in place.

A step moves whatever values there are; what computes with numbers takes real floats, brought between bounds so that
nothing overflows. Most are said in NumPy, too, which is compared with the rows' own references on float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import eshkol as ek
from random_programs.choosing import Chooser, chance, generator, order, some
from random_programs.program import Known, Leaf, Step, kind


def place(c: Chooser, values: Sequence[Known], test: Callable[[Known], bool] = lambda v: True) -> int | None:
    """The place of a value of some sort; late ones are as likely as all others together."""
    fitting = [k for k, v in enumerate(values) if test(v)]
    if not fitting:
        return None
    return c.pick(fitting[-3:]) if chance(c, 50) else c.pick(fitting)


def meets(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def moved(c: Chooser, values: Sequence[Known], name: str, k: int, data: Any) -> Step:
    return Step(name, (k,), data, exact=values[k].exact)


# --- movement -------------------------------------------------------------------------------------


@kind("reshape", lambda shape, x: ek.reshape(x, shape), numpys=lambda shape, x: x.reshape(shape), weight=4)
def _reshape(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values)
    assert k is not None
    shape, size = values[k].shape, values[k].size
    options: list[tuple[int, ...]] = [(size,), (1, size), (size, 1), tuple(reversed(shape)), (1, *shape), (*shape, 1)]
    options += [(n, size // n) for n in (2, 3, 4) if size and size % n == 0]
    options += [tuple(n for n in shape if n != 1), (1, *shape, 1)]
    return moved(c, values, "reshape", k, c.pick([s for s in options if len(s) <= 5]))


@kind("permute", lambda axes, x: ek.permute(x, axes), numpys=lambda axes, x: np.transpose(x, axes), weight=3)
def _permute(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 1)
    return None if k is None else moved(c, values, "permute", k, order(c, values[k].ndim))


@kind("flip", lambda axes, x: ek.flip(x, axes), numpys=lambda axes, x: np.flip(x, axes))
def _flip(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 0)
    if k is None:
        return None
    axes = tuple(sorted(set(some(c, range(values[k].ndim), 1, 2))))
    return moved(c, values, "flip", k, axes)


@kind("roll", lambda a, x: ek.roll(x, a[0], a[1]), numpys=lambda a, x: np.roll(x, a[0], a[1]))
def _roll(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 0)
    return None if k is None else moved(c, values, "roll", k, (c.integer(-3, 3), c.integer(0, values[k].ndim - 1)))


@kind("expand", lambda shape, x: ek.expand(x, shape), numpys=lambda shape, x: np.broadcast_to(x, shape), weight=2)
def _expand(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim < 4)
    if k is None:
        return None
    wide = tuple(c.integer(1, 3) if n == 1 else n for n in values[k].shape)
    return moved(c, values, "expand", k, (*((c.integer(1, 3),) if chance(c, 50) else ()), *wide))


@kind("tile", lambda times, x: ek.tile(x, times), numpys=lambda times, x: np.tile(x, times), weight=2)
def _tile(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim < 4)
    if k is None:
        return None
    times = tuple(c.integer(1, 2) for _ in range(max(1, values[k].ndim - c.integer(0, 1) + c.integer(0, 1))))
    return moved(c, values, "tile", k, times)


@kind("repeat", lambda a, x: ek.repeat(x, a[0], a[1]), numpys=lambda a, x: np.repeat(x, a[0], a[1]))
def _repeat(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 0)
    return None if k is None else moved(c, values, "repeat", k, (c.integer(1, 3), c.integer(0, values[k].ndim - 1)))


@kind("squeeze", lambda axis, x: ek.squeeze(x, axis), numpys=lambda axis, x: np.squeeze(x, axis), weight=2)
def _squeeze(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 1 in v.shape)
    if k is None:
        return None
    return moved(c, values, "squeeze", k, c.pick([a for a, n in enumerate(values[k].shape) if n == 1]))


@kind("unsqueeze", lambda axis, x: ek.unsqueeze(x, axis), numpys=lambda axis, x: np.expand_dims(x, axis))
def _unsqueeze(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim < 4)
    return None if k is None else moved(c, values, "unsqueeze", k, c.integer(-1, values[k].ndim))


@kind("pad", lambda widths, x: ek.pad(x, widths), numpys=lambda widths, x: np.pad(x, widths))
def _pad(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 0)
    if k is None:
        return None
    return moved(c, values, "pad", k, tuple((c.integer(0, 1), c.integer(0, 2)) for _ in values[k].shape))


@kind("triangle", lambda a, x: getattr(ek, a[0])(x, a[1]), numpys=lambda a, x: getattr(np, a[0])(x, a[1]))
def _triangle(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 1)
    return None if k is None else moved(c, values, "triangle", k, (c.pick(["tril", "triu"]), c.integer(-1, 1)))


@kind("diagonal", lambda offset, x: ek.diagonal(x, offset), numpys=lambda offset, x: np.diagonal(x, offset))
def _diagonal(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim == 2 and v.size > 0)
    return None if k is None else moved(c, values, "diagonal", k, 0)


# --- indexing -------------------------------------------------------------------------------------


def _index(c: Chooser, shape: Sequence[int]) -> tuple[Any, ...]:
    items: list[Any] = []
    lists = 0
    for extent in shape[: c.integer(1, len(shape))]:
        what = c.pick(["number", "slice", "slice", "step", "back", "list", "new"])
        if what == "new":
            items.append(None)
            what = "slice"
        if what == "number" and extent:
            items.append(c.integer(-extent, extent - 1))
        elif what == "list" and extent and not lists:
            lists += 1
            items.append([c.integer(-extent, extent - 1) for _ in range(c.integer(1, 3))])
        elif what == "back":
            items.append(slice(None, None, -1))
        elif what == "step":
            items.append(slice(c.integer(0, extent), None, 2))
        else:
            start = c.integer(0, extent)
            items.append(slice(start, c.integer(start, extent)) if chance(c, 50) else slice(start, None))
    return tuple(items)


@kind("index", lambda index, x: x[index], numpys=lambda index, x: x[index], weight=5)
def _indexed(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4)
    return None if k is None else moved(c, values, "index", k, _index(c, values[k].shape))


def _put(a: tuple[Any, float], x: Any) -> Any:
    changed = x.clone()
    changed[a[0]] = changed[a[0]] * 0.5 + a[1]
    return changed


def _put_numpy(a: tuple[Any, float], x: Any) -> Any:
    changed = np.array(x)
    changed[a[0]] = changed[a[0]] * 0.5 + a[1]
    return changed


@kind("put", _put, numpys=_put_numpy, changes=True, weight=2)
def _assigned(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and v.is_float)
    if k is None:
        return None
    index = tuple(
        i if not isinstance(i, list) else sorted({n % values[k].shape[a] for n in i}) for a, i in
        enumerate([i for i in _index(c, values[k].shape) if i is not None])
    )  # fmt: skip
    return Step("put", (k,), (index, c.pick([0.0, 1.0, -0.25])))


def _change(a: tuple[str, ...], x: Any, y: Any) -> Any:
    changed = x.clone()
    for name in a:
        getattr(changed, name)(y)
    return changed


def _change_numpy(a: tuple[str, ...], x: Any, y: Any) -> Any:
    changed = np.array(x)
    for name in a:
        changed = {"add_": np.add, "mul_": np.multiply, "sub_": np.subtract}[name](changed, y)
    return changed


@kind("change", _change, numpys=_change_numpy, changes=True)
def _changed(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.is_float and v.array.dtype == np.float64)
    if k is None:
        return None
    shape = values[k].shape
    others = [
        j for j, v in enumerate(values)
        if v.array.dtype == np.float64 and meets(v.shape, shape) and np.broadcast_shapes(v.shape, shape) == shape
    ]  # fmt: skip
    return Step("change", (k, c.pick(others)), tuple(some(c, ["add_", "mul_", "sub_"], 1, 2)))


@kind("take", lambda a, x, i: ek.take(x, i, a), weight=2)
def _take(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and 0 not in v.shape)
    if k is None:
        return None
    axis = c.integer(0, values[k].ndim - 1)
    fits = lambda v: v.exact and v.array.dtype.kind == "i" and v.ndim < 3 and _within(v, values[k].shape[axis])
    i = place(c, values, fits)
    return None if i is None else Step("take", (k, i), axis, exact=values[k].exact)


def _within(v: Known, extent: int) -> bool:
    return bool((v.array >= 0).all() and (v.array < extent).all())


@kind(
    "scatter add", lambda axis, x, i, s: ek.index_add(x, axis, i, s),
    numpys=None,
)  # fmt: skip
def _scatter(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4 and v.is_float and 0 not in v.shape)
    if k is None:
        return None
    x = values[k]
    axis = c.integer(0, x.ndim - 1)
    i = place(c, values, lambda v: v.exact and v.array.dtype.kind == "i" and v.ndim == 1 and _within(v, x.shape[axis]))
    if i is None:
        return None
    wanted = (*x.shape[:axis], values[i].size, *x.shape[axis + 1 :])
    s = place(c, values, lambda v: v.shape == wanted and v.array.dtype == x.array.dtype)
    return None if s is None else Step("scatter add", (k, i, s), axis)


# --- joining --------------------------------------------------------------------------------------


@kind(
    "concatenate",
    lambda axis, *xs: ek.concatenate(xs, axis),
    numpys=lambda axis, *xs: np.concatenate(xs, axis),
    weight=5,
)
def _concatenate(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: 0 < v.ndim < 4)
    if k is None:
        return None
    x, axis = values[k], c.integer(0, values[k].ndim - 1)
    rest = x.shape[:axis] + x.shape[axis + 1 :]
    fits = [
        j for j, v in enumerate(values)
        if v.ndim == x.ndim and v.array.dtype == x.array.dtype and v.shape[:axis] + v.shape[axis + 1 :] == rest
    ]  # fmt: skip
    args = (k, *some(c, fits, 1, 3))
    return Step("concatenate", args, axis, exact=all(values[j].exact for j in args))


@kind("stack", lambda axis, *xs: ek.stack(xs, axis), numpys=lambda axis, *xs: np.stack(xs, axis), weight=3)
def _stack(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim < 4)
    if k is None:
        return None
    x = values[k]
    fits = [j for j, v in enumerate(values) if v.shape == x.shape and v.array.dtype == x.array.dtype]
    args = (k, *some(c, fits, 1, 3))
    return Step("stack", args, c.integer(0, x.ndim), exact=all(values[j].exact for j in args))


@kind("chunk", lambda a, x: ek.chunk(x, 2, a[0])[a[1]],
      numpys=lambda a, x: np.split(x, [(x.shape[a[0]] + 1) // 2], a[0])[a[1]], weight=2)  # fmt: skip
def _chunk(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.ndim > 0 and any(n % 2 == 0 and n for n in v.shape))
    if k is None:
        return None
    axis = c.pick([a for a, n in enumerate(values[k].shape) if n % 2 == 0 and n])
    return moved(c, values, "chunk", k, (axis, c.integer(0, 1)))


# --- reductions, scans, normalisations ------------------------------------------------------------


def _real(v: Known) -> bool:
    return v.is_float


def _axes(c: Chooser, ndim: int) -> Any:
    if not ndim or chance(c, 25):
        return None
    found = tuple(sorted(set(some(c, range(ndim), 1, 2))))
    return found if len(found) > 1 or chance(c, 30) else found[0] - (ndim if chance(c, 30) else 0)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": lambda x, **a: np.prod(np.sin(x), **a),
    "var": np.var, "logsumexp": lambda x, **a: np.log(np.sum(np.exp(np.sin(x)), **a)),
}  # fmt: skip
BOUNDED = ("prod", "logsumexp")


def _reduce(a: tuple[str, Any, bool], x: Any) -> Any:
    name, axes, keep = a
    return getattr(ek, name)(ek.sin(x) if name in BOUNDED else x, axis=axes, keepdims=keep)


def _reduce_numpy(a: tuple[str, Any, bool], x: Any) -> Any:
    name, axes, keep = a
    return REDUCTIONS[name](x, axis=axes, keepdims=keep)


@kind("reduce", _reduce, numpys=_reduce_numpy, weight=8)
def _reduced(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and v.size > 0)
    if k is None:
        return None
    name = c.pick(list(REDUCTIONS))
    exact = values[k].exact and name in ("max", "min")
    axes = _axes(c, values[k].ndim)
    return Step("reduce", (k,), (name, axes, chance(c, 40)), exact=exact)


def _beside_rows(a: tuple[str, tuple[int, ...]], x: Any, w: Any) -> Any:
    op, axes = a
    return (x + w if op == "add" else x * w).sum(axis=axes)


@kind("sum beside a row", _beside_rows, numpys=_beside_rows, weight=0)
def _sum_beside_a_row(c: Chooser, values: Sequence[Known]) -> Any:
    """A sum of what is computed from a value and a row that is repeated along it, which is nowhere as a whole."""
    k = place(c, values, lambda v: v.array.dtype.kind == "f" and v.ndim > 0 and v.size > 1)
    if k is None:
        return None
    shape, dtype = values[k].shape, values[k].array.dtype
    row = tuple(1 if chance(c, 10) else n for n in shape[-c.integer(1, len(shape)) :])
    axes = tuple(range(len(shape))) if chance(c, 70) else tuple(sorted(set(some(c, range(len(shape)), 1, 2))))
    data = c.pick(("add", "mul")), axes
    given = Leaf(np.asarray(generator(c).normal(size=row)).astype(dtype))
    return [k, given], lambda args: Step("sum beside a row", args, data)


def _softmax(a: tuple[str, int], x: Any) -> Any:
    return getattr(ek, a[0])(x, a[1])


def _softmax_numpy(a: tuple[str, int], x: Any) -> Any:
    name, axis = a
    shifted = x - x.max(axis, keepdims=True) if x.size else x
    e = np.exp(-shifted if name == "softmin" else shifted)
    if name == "softmin":
        e = np.exp(x.min(axis, keepdims=True) - x) if x.size else x
    share = e / e.sum(axis, keepdims=True)
    return np.log(share) if name == "log_softmax" else share


@kind("softmax", _softmax, numpys=_softmax_numpy, weight=4)
def _softmaxed(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and v.ndim > 0 and v.size > 0 and float(np.abs(v.array).max()) < 50)
    if k is None:
        return None
    return Step("softmax", (k,), (c.pick(["softmax", "log_softmax", "softmin"]), c.integer(-1, values[k].ndim - 1)))


SCANS = {"cumsum": np.cumsum, "cumprod": np.cumprod}


def _scan(a: tuple[str, int], x: Any) -> Any:
    return getattr(ek, a[0])(ek.sin(x) if a[0] == "cumprod" else x, a[1])


def _scan_numpy(a: tuple[str, int], x: Any) -> Any:
    return SCANS[a[0]](np.sin(x) if a[0] == "cumprod" else x, a[1])


@kind("cumulate", _scan, numpys=_scan_numpy, weight=3)
def _scanned(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and v.ndim > 0)
    return None if k is None else Step("cumulate", (k,), (c.pick(list(SCANS)), c.integer(0, values[k].ndim - 1)))


@kind("normalize", lambda a, x: (x - ek.mean(x, a, keepdims=True)) / (ek.std(x, a, keepdims=True, correction=0) + 0.5),
      numpys=lambda a, x: (x - x.mean(a, keepdims=True)) / (x.std(a, keepdims=True) + 0.5), weight=2)  # fmt: skip
def _normalized(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and v.ndim > 0 and v.size > 0 and v.array.dtype.itemsize > 2)
    if k is None:
        return None
    x, axis = values[k].array, c.integer(0, values[k].ndim - 1)
    spread = np.ptp(x, axis) > 1e-6 * np.abs(x).max(initial=1.0)  # of equal numbers the deviation is rounding alone
    return Step("normalize", (k,), axis) if x.shape[axis] == 1 or spread.all() else None


@kind("ordered", lambda a, x: getattr(ek, a[0])(x, a[1]))
def _ordered(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.exact and v.is_real and v.ndim > 0 and v.size > 0 and v.array.dtype != bool)
    if k is None:
        return None
    return Step(
        "ordered", (k,), (c.pick(["argmax", "argmin", "sort", "argsort"]), c.integer(0, values[k].ndim - 1)), True
    )


# --- products -------------------------------------------------------------------------------------


@kind("matmul", lambda a, x, y: ek.matmul(ek.sin(x), y), numpys=lambda a, x, y: np.matmul(np.sin(x), y), weight=4)
def _matmul(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and 0 < v.ndim < 4 and v.array.dtype.itemsize > 2)
    if k is None:
        return None
    x = values[k]

    def fits(v: Known) -> bool:
        if v.array.dtype != x.array.dtype or not 0 < v.ndim < 4:
            return False
        inner = v.shape[-2] if v.ndim > 1 else v.shape[0]
        return inner == x.shape[-1] and meets(v.shape[:-2], x.shape[:-2] if x.ndim > 1 else ())

    j = place(c, values, fits)
    return None if j is None else Step("matmul", (k, j))


@kind("gram", lambda a, x: ek.matmul(ek.sin(x), ek.swapaxes(x, -1, -2)),
      numpys=lambda a, x: np.matmul(np.sin(x), np.swapaxes(x, -1, -2)), weight=2)  # fmt: skip
def _gram(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and 1 < v.ndim < 4 and v.array.dtype.itemsize > 2)
    return None if k is None else Step("gram", (k,))


@kind("outer", lambda a, x, y: ek.einsum("i,j->ij", x, ek.sin(y)), numpys=lambda a, x, y: np.outer(x, np.sin(y)))
def _outer(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: _real(v) and v.ndim == 1)
    if k is None:
        return None
    j = place(c, values, lambda v: v.ndim == 1 and v.array.dtype == values[k].array.dtype)
    return None if j is None else Step("outer", (k, j))


# --- dtypes and numbers ---------------------------------------------------------------------------


NUMBERS = (0.0, 1.0, -1.0, 0.5, 3.0, 2, -1)


def _number(a: tuple[str, Any, bool], x: Any) -> Any:
    name, number, first = a
    pair = (number, x) if first else (x, number)
    return getattr(ek, name)(*pair)


@kind("number", _number, weight=4)
def _with_number(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.is_float)
    if k is None:
        return None
    name = c.pick(["add", "sub", "mul", "maximum", "minimum"])
    exact = values[k].exact and name in ("maximum", "minimum")
    return Step("number", (k,), (name, c.pick(NUMBERS), chance(c, 40)), exact)


@kind("cast", lambda name, x: x.astype(getattr(ek, name)), weight=2)
def _cast(c: Chooser, values: Sequence[Known]) -> Step | None:
    k = place(c, values, lambda v: v.is_real)
    if k is None:
        return None
    v = values[k]
    names = ["float64", "float32", "float64"]
    if v.exact and not v.is_float:
        names += ["int64", "int32", "int16", "bool", "uint8"]
    name = c.pick(names)
    exact = v.exact and (not v.is_float or name == "float64")
    return Step("cast", (k,), name, exact)
