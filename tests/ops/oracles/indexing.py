"""Oracles of indexing and sparse matrices: one element after another, in Python's lists and dicts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.ops.row import Draw, Sample, sample
from oracles.registry import every, first, meeting, normal_axis, oracle, place

_COMBINED = {
    "set": lambda old, new: new, "add": lambda old, new: old + new, "mul": lambda old, new: old * new,
    "max": lambda old, new: old if old != old or old > new else new,
    "min": lambda old, new: old if old != old or old < new else new,
}  # fmt: skip


def _at(*shape: int, low: int, high: int) -> Draw:
    return Draw(shape, low, high, kind="int")


def _changed(x: Any, updates: Sequence[tuple[tuple[int, ...], Any]], mode: str) -> Any:
    """x after updates of single elements, one after another."""
    found = every(x.shape, lambda i: x[i].item())
    for index, value in updates:
        found[index] = _COMBINED[mode](found[index], np.asarray(value).item())
    return found


# --- positions along an axis ------------------------------------------------------------------------


@oracle("position", dtype=place, fixed=("wrap",))
def _position(indices: Any, extent: int, wrap: bool = True) -> Any:
    return every(indices.shape, lambda i: indices[i] + extent if indices[i] < 0 else indices[i])


@oracle(
    "take",
    dtype=first,
    fixed=("axis",),
    more=[sample((2, 3, 4), _at(2, 2, low=-2, high=1), axis=a) for a in (0, 1, 2, -1, -3)]
    + [sample((2, 3, 4), _at(2, 3, 2, low=0, high=3), axis=2, batch=2), sample((2, 1), _at(2, low=0, high=0), axis=-1)],
)
def _take(x: Any, indices: Any, axis: int = 0, batch: int = 0) -> Any:
    axis = normal_axis(axis, x.ndim)
    own = indices.ndim - batch
    shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])

    def element(i: tuple[int, ...]) -> Any:
        return x[(*i[:axis], indices[(*i[:batch], *i[axis : axis + own])], *i[axis + own :])]

    return every(shape, element)


def _scatter(x: Any, indices: Any, updates: Any, axis: int, batch: int, mode: str) -> Any:
    axis = normal_axis(axis, x.ndim)
    own = indices.ndim - batch
    shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :])
    steps = []
    for i in np.ndindex(*shape):
        behind = i[len(shape) - updates.ndim :]
        value = updates[tuple(0 if n == 1 else j for j, n in zip(behind, updates.shape, strict=True))]
        at = normal_axis(int(indices[(*i[:batch], *i[axis : axis + own])]), x.shape[axis])
        steps.append(((*i[:axis], at, *i[axis + own :]), value))
    return _changed(x, steps, mode)


def _first_and_last(call: Any) -> str:
    return meeting((call.arrays[0], call.arrays[-1]))


def _scattered(**how: Any) -> list[Sample]:
    return [
        sample((3, 2), _at(4, low=-3, high=2), (4, 2), **how),
        sample((2, 3), _at(4, low=0, high=2), (2, 4), axis=1, **how),
        sample((2, 3, 2), _at(2, 2, low=0, high=2), (), axis=-2, **how),
        sample((4,), _at(6, low=0, high=1), (6,), **how),
        sample((2, 3), _at(2, 4, low=-3, high=2), (2, 4), axis=1, batch=1, **how),
    ]


@oracle("scatter_into", dtype=_first_and_last, fixed=("axis", "add"), more=[*_scattered(add=False)])
def _scatter_into(x: Any, indices: Any, updates: Any, axis: int = 0, add: bool = False, batch: int = 0) -> Any:
    if add and x.dtype.kind == "b":
        return _scatter(x, indices, updates, axis, batch, "max")
    return _scatter(x, indices, updates, axis, batch, "add" if add else "set")


@oracle(
    "scatter_combine",
    dtype=_first_and_last,
    fixed=("axis",),
    more=[
        *_scattered(mode="max"),
        *_scattered(mode="min"),
        *_scattered(mode="mul"),
    ],
)
def _scatter_combine(x: Any, indices: Any, updates: Any, axis: int = 0, mode: str = "max", batch: int = 0) -> Any:
    return _scatter(x, indices, updates, axis, batch, mode)


@oracle("scatter", dtype=_first_and_last, fixed=("axis",), more=[s for m in _COMBINED for s in _scattered(mode=m)])
def _scatter_any(x: Any, indices: Any, updates: Any, axis: int = 0, mode: str = "set", batch: int = 0) -> Any:
    return _scatter(x, indices, updates, axis, batch, mode)


@oracle("take_along", dtype=first, fixed=("axis",), more=[
    sample((2, 3), _at(2, 4, low=-3, high=2)), sample((2, 3), _at(4, 3, low=0, high=1), axis=0),
    sample((2, 3), _at(5, low=0, high=5), axis=None), sample((2, 1, 3), _at(1, 4, 2, low=0, high=2), axis=-1),
])  # fmt: skip
def _take_along(x: Any, indices: Any, axis: int | None = -1) -> Any:
    if axis is None:
        row = [x[i] for i in np.ndindex(*x.shape)]
        return every((indices.size,), lambda i: row[indices.ravel()[i[0]]])
    axis = normal_axis(axis, x.ndim)
    shape = [indices.shape[k] if k == axis else max(n, m) if 0 not in (n, m) else 0
             for k, (n, m) in enumerate(zip(x.shape, indices.shape, strict=True))]  # fmt: skip

    def element(i: tuple[int, ...]) -> Any:
        where = indices[
            tuple(0 if n == 1 and k != axis else j for k, (j, n) in enumerate(zip(i, indices.shape, strict=False)))
        ]
        return x[
            tuple(where if k == axis else 0 if n == 1 else j for k, (j, n) in enumerate(zip(i, x.shape, strict=False)))
        ]

    return every(shape, element)


@oracle(
    "sliding_window",
    fixed=("axis",),
    more=[sample((6, 5), size=s, axis=a, step=t) for s in (1, 2, 4) for a in (0, -1) for t in (1, 2, 3)],
)
def _sliding_window(x: Any, size: int, axis: int = -1, step: int = 1) -> Any:
    axis = normal_axis(axis, x.ndim)
    starts = [k for k in range(0, x.shape[axis], step) if k + size <= x.shape[axis]]
    shape = (*(len(starts) if k == axis else n for k, n in enumerate(x.shape)), size)
    return every(shape, lambda i: x[(*i[:axis], starts[i[axis]] + i[-1], *i[axis + 1 : -1])])


@oracle(
    "windows_along", fixed=("axis",),
    more=[sample((6, 5), axis=a, size=s, step=t) for s in (1, 2, 4) for a in (0, -1) for t in (1, 2, 3)],
)  # fmt: skip
def _windows_along(x: Any, axis: int, size: int, step: int = 1) -> Any:
    axis = normal_axis(axis, x.ndim)
    starts = [k for k in range(0, x.shape[axis], step) if k + size <= x.shape[axis]]
    shape = (*x.shape[:axis], len(starts), size, *x.shape[axis + 1 :])
    return every(shape, lambda i: x[(*i[:axis], starts[i[axis]] + i[axis + 1], *i[axis + 2 :])])


@oracle("gather", dtype=first, fixed=("axis",))
def _gather(x: Any, axis: int, index: Any) -> Any:
    axis = normal_axis(axis, x.ndim)
    return every(index.shape, lambda i: x[(*i[:axis], index[i], *i[axis + 1 :])])


def _put_along(x: Any, axis: int, index: Any, src: Any, mode: str) -> Any:
    axis = normal_axis(axis, x.ndim)
    steps = [
        ((*i[:axis], normal_axis(int(index[i]), x.shape[axis]), *i[axis + 1 :]), src[i] if src.ndim else src)
        for i in np.ndindex(*index.shape)
    ]
    return _changed(x, steps, mode)


_ALONG = [((2, 3), 1, _at(2, 5, low=-3, high=2), (2, 5)), ((4, 3), 0, _at(2, 2, low=0, high=3), (3, 4))]


@oracle("scatter_along", dtype=first, fixed=("axis",), more=[
    Sample((Draw(x), a, i, Draw(s)), {"mode": m}) for x, a, i, s in _ALONG for m in _COMBINED
])  # fmt: skip
def _scatter_along(x: Any, axis: int, index: Any, src: Any, mode: str = "set") -> Any:
    return _put_along(x, axis, index, src, mode)


oracle("scatter_add", dtype=first, fixed=("axis",))(lambda x, axis, index, src: _put_along(x, axis, index, src, "add"))
oracle("scatter_max", dtype=first, fixed=("axis",))(lambda x, axis, index, src: _put_along(x, axis, index, src, "max"))


@oracle("index_select", dtype=first, fixed=("axis",), more=[
    Sample((Draw((2, 3, 2)), a, _at(4, low=-2, high=1))) for a in (0, 1, -1)
] + [Sample((Draw((2, 3)), 1, _at(low=0, high=2)))])  # fmt: skip
def _index_select(x: Any, axis: int, index: Any) -> Any:
    axis = normal_axis(axis, x.ndim)
    rows = index.ravel()
    shape = [len(rows) if k == axis else n for k, n in enumerate(x.shape)]
    return every(shape, lambda i: x[(*i[:axis], rows[i[axis]], *i[axis + 1 :])])


@oracle("index_add", dtype=_first_and_last, fixed=("axis",))
def _index_add(x: Any, axis: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    axis = normal_axis(axis, x.ndim)
    steps = [
        ((*i[:axis], normal_axis(int(index[i[axis]]), x.shape[axis]), *i[axis + 1 :]), alpha * source[i])
        for i in np.ndindex(*source.shape)
    ]
    return _changed(x, steps, "add")


@oracle("put", dtype=first)
def _put(x: Any, indices: Any, values: Any) -> Any:
    places = list(np.ndindex(*x.shape))
    given = values.ravel()
    return _changed(x, [(places[at], given[k % len(given)]) for k, at in enumerate(indices.ravel().tolist())], "set")


@oracle("embedding", dtype=first, more=[sample((4, 2), _at(3, low=0, high=3), padding_idx=p) for p in (0, 2)])
def _embedding(weight: Any, indices: Any, padding_idx: int | None = None) -> Any:
    return every(
        (*indices.shape, *weight.shape[1:]), lambda i: weight[(indices[i[: indices.ndim]], *i[indices.ndim :])]
    )


# --- masks ------------------------------------------------------------------------------------------


def _spread(x: Any, shape: Sequence[int]) -> Any:
    new = len(shape) - x.ndim
    return every(shape, lambda i: x[tuple(0 if n == 1 else j for j, n in zip(i[new:], x.shape, strict=True))])


@oracle("masked_fill", dtype=first)
def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    wide = _spread(mask, x.shape)
    return every(x.shape, lambda i: np.asarray(value).item() if wide[i] else x[i])


@oracle("masked_select", dtype=first)
def _masked_select(x: Any, mask: Any) -> Any:
    rank = max(x.ndim, mask.ndim)
    both = [[1] * (rank - y.ndim) + list(y.shape) for y in (x, mask)]
    shape = [m if n == 1 else n for n, m in zip(*both, strict=True)]
    elements, chosen = _spread(x, shape), _spread(mask, shape)
    return np.array([elements[i].item() for i in np.ndindex(*shape) if chosen[i]], x.dtype)


def _places(x: Any) -> list[tuple[int, ...]]:
    return [i for i in np.ndindex(*x.shape) if x[i] != 0]


_HOLES = sample(Draw((3, 4), make=lambda rng: rng.integers(0, 2, (3, 4))))


@oracle("nonzero", dtype=place, more=[_HOLES])
def _nonzero(x: Any) -> Any:
    found = _places(x)
    return tuple(np.array([i[k] for i in found], np.int64) for k in range(x.ndim))


@oracle("argwhere", dtype=place, more=[_HOLES])
def _argwhere(x: Any) -> Any:
    found = _places(x)
    return np.array(found, np.int64).reshape((len(found), x.ndim))


# --- indices as NumPy has them ----------------------------------------------------------------------


def _chosen(shape: Sequence[int], index: Any) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The shape of x[index], and for each of its places, in order, the place in x."""
    parts = list(index) if isinstance(index, tuple) else [index]
    entries: list[Any] = []  # (kind, positions of some axes of x)
    taken = sum(np.asarray(p).ndim if _is_mask(p) else 0 if p is None or p is Ellipsis else 1 for p in parts)
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    axis = 0
    for part in parts:
        if part is None:
            entries.append(("new", None))
        elif part is Ellipsis:
            entries.append(
                ("apart", None)
            )  # arrays on both sides of it are not side by side, even if it is for no axis
            for _ in range(len(shape) - taken):
                entries.append(("run", list(range(shape[axis]))))
                axis += 1
        elif isinstance(part, slice):
            entries.append(("run", list(range(shape[axis]))[part]))
            axis += 1
        elif _is_mask(part):
            mask = np.asarray(part)
            hits = [i for i in np.ndindex(*mask.shape) if mask[i]]
            if mask.ndim == 0:
                entries.append(("flag", hits))
            for k in range(mask.ndim):
                entries.append(("array", np.array([i[k] for i in hits], int)))
            axis += mask.ndim
        else:
            entries.append(
                ("array", np.where(np.asarray(part, int) < 0, np.asarray(part, int) + shape[axis], part).astype(int))
            )
            axis += 1
    return _placed(entries)


def _is_mask(part: Any) -> bool:
    if isinstance(part, bool):
        return True
    return isinstance(part, list | np.ndarray) and np.asarray(part).dtype == np.bool_


def _placed(entries: list[Any]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    arrays = [e for kind, e in entries if kind == "array"]
    shape = np.broadcast_shapes(*(e.shape for e in arrays)) if arrays else ()
    at = [k for k, (kind, _) in enumerate(entries) if kind == "array"]
    together = bool(at) and at == list(range(at[0], at[-1] + 1))
    extents: list[Any] = [(None, n) for n in shape]  # who counts along each axis of the result, and how far
    result: list[Any] = []
    for k, (kind, entry) in enumerate(entries):
        if kind == "array":
            if together and k == at[0]:
                result.extend(extents)
        elif kind != "apart":
            result.append((k, 1 if kind == "new" else len(entry)))
    if at and not together:
        result = [*extents, *result]
    places = []
    for index in itertools.product(*(range(n) for _, n in result)):
        spot = [j for j, (who, _) in zip(index, result, strict=True) if who is None]
        found = []
        for k, (kind, entry) in enumerate(entries):
            if kind == "run":
                found.append(entry[next(j for j, (who, _) in zip(index, result, strict=True) if who == k)])
            elif kind == "array":
                own = spot[len(shape) - entry.ndim :]
                found.append(int(entry[tuple(0 if n == 1 else j for j, n in zip(own, entry.shape, strict=True))]))
        places.append(tuple(found))
    return tuple(n for _, n in result), places


_INDICES: list[Any] = [
    (slice(None), [0, 2, 1]),
    ([1, 0], slice(1, 3)),
    ([[0, 1], [1, 0]], None, 2),
    (0, ..., [1, 2]),
    (slice(None, None, -2), ...),
    ([0, 1], slice(None), [3, 0]),
    (None, 1, [2, 0], None),
    (..., -1),
    (slice(-3, None), [True, False, True]),
    (np.array([[True, False, True], [False, True, True]]), slice(0, 2)),
    ([1], [2], [3]),
    ([-1], 0),
]


@oracle("getitem", dtype=first, more=[sample((2, 3, 4), index=i) for i in _INDICES])
def _getitem(x: Any, index: Any) -> Any:
    shape, places = _chosen(x.shape, index)
    feed = iter(places)
    return every(shape, lambda i: x[next(feed)])


def _assign(x: Any, index: Any, value: Any, mode: str) -> Any:
    shape, places = _chosen(x.shape, index)
    wide = every(
        shape,
        lambda i: (
            value[
                tuple(
                    0 if n == 1 else j
                    for j, n in zip(
                        i[max(len(i) - value.ndim, 0) :], value.shape[max(value.ndim - len(i), 0) :], strict=True
                    )
                )
            ]
            if value.ndim <= len(i)
            else value.reshape(value.shape[value.ndim - len(i) :])[
                tuple(0 if n == 1 else j for j, n in zip(i, value.shape[value.ndim - len(i) :], strict=True))
            ]
        ),
    )
    return _changed(x, [(at, wide[i]) for at, i in zip(places, np.ndindex(*shape), strict=True)], mode)


@oracle("setitem", dtype=first, more=[Sample((Draw((2, 3, 4)), i, Draw(()))) for i in _INDICES])
def _setitem(x: Any, index: Any, value: Any) -> Any:
    return _assign(x, index, value, "set")


@oracle("index_put", dtype=first, more=[
    Sample((Draw((2, 3)), i, Draw(v)), {"accumulate": a})
    for i, v in ((([0, 1, 0], [2, 2, 2]), (3,)), (([1, 1],), (2, 3)), ((slice(None), [0, 0, 2]), ()))
    for a in (False, True)
])  # fmt: skip
def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    return _assign(x, tuple(indices), values, "add" if accumulate else "set")


# --- sparse matrices --------------------------------------------------------------------------------


def _entries(indices: Any, pointers: Any) -> list[tuple[int, int, int]]:
    """(row, column, which) of the stored elements, in order."""
    return [
        (row, int(indices[k]), k)
        for row in range(len(pointers) - 1)
        for k in range(int(pointers[row]), int(pointers[row + 1]))
    ]


def _compressed(found: Sequence[tuple[int, int, Any]], rows: int, dtype: Any) -> Any:
    """(values, indices, pointers) of elements in the order of rows."""
    pointers = [sum(row < k for row, _, _ in found) for k in range(rows + 1)]
    return (
        np.array([v for _, _, v in found], dtype), np.array([c for _, c, _ in found], np.int64), np.array(pointers),
    )  # fmt: skip


@oracle("csr_rows", dtype=place)
def _csr_rows(pointers: Any, count: int) -> Any:
    return np.array(
        [row for row in range(len(pointers) - 1) for _ in range(pointers[row], pointers[row + 1])], np.int64
    )


@oracle("csr_turned", dtype=place)
def _csr_turned(indices: Any, pointers: Any, columns: int) -> Any:
    turned = sorted((column, row, k) for row, column, k in _entries(indices, pointers))
    starts = [sum(column < c for column, _, _ in turned) for c in range(columns + 1)]
    return (
        np.array([k for _, _, k in turned], np.int64),
        np.array([r for _, r, _ in turned], np.int64),
        np.array(starts),
    )


@oracle("to_sparse", dtype=(first, place, place), more=[_HOLES])
def _to_sparse(x: Any) -> Any:
    return _compressed([(*i, x[i].item()) for i in _places(x)], x.shape[0], x.dtype)


@oracle("to_dense", dtype=first)
def _to_dense(values: Any, indices: Any, pointers: Any, shape: Any) -> Any:
    return _changed(
        np.zeros(shape, values.dtype), [((r, c), values[k]) for r, c, k in _entries(indices, pointers)], "add"
    )


def _united(found: Sequence[tuple[int, int, Any]], rows: int, dtype: Any) -> Any:
    totals: dict[tuple[int, int], Any] = {}
    for row, column, value in found:
        totals[row, column] = totals.get((row, column), 0) + value
    return _compressed([(r, c, totals[r, c]) for r, c in sorted(totals)], rows, dtype)


@oracle("coo_to_csr", dtype=(first, place, place))
def _coo_to_csr(values: Any, rows: Any, columns: Any, shape: Any) -> Any:
    found = list(zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True))
    return _united(found, shape[0], values.dtype)


@oracle("sparse_mm", dtype=lambda call: meeting((call.arrays[0], call.arrays[-1])), tolerance=2.0)
def _sparse_mm(values: Any, indices: Any, pointers: Any, shape: Any, dense: Any) -> Any:
    found = np.zeros((shape[0], *dense.shape[1:]), np.result_type(values, dense))
    for row, column, k in _entries(indices, pointers):
        found[row] += values[k] * dense[column]
    return found


@oracle("sparse_add", dtype=(lambda call: meeting((call.arrays[0], call.arrays[3])), place, place))
def _sparse_add(
    values: Any, indices: Any, pointers: Any, other_values: Any, other_indices: Any, other_pointers: Any, shape: Any
) -> Any:
    both = ((values, indices, pointers), (other_values, other_indices, other_pointers))
    found = [(row, column, v[k].item()) for v, i, p in both for row, column, k in _entries(i, p)]
    return _united(found, shape[0], np.result_type(values, other_values))


@oracle("sparse_transpose", dtype=(first, place, place))
def _sparse_transpose(values: Any, indices: Any, pointers: Any, shape: Any) -> Any:
    turned = sorted(((c, r, k) for r, c, k in _entries(indices, pointers)), key=lambda t: (t[0], t[1], t[2]))
    return _compressed([(c, r, values[k]) for c, r, k in turned], shape[1], values.dtype)
