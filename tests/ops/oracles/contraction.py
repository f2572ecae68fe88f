"""Oracles of contractions, convolutions, pooling and images: sums over explicit indices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from eshkol.ops.row import sample
from oracles.registry import every, first, floating, number, oracle, place

# --- sums of products -------------------------------------------------------------------------------


def _summed(subscripts: str, *operands: Any) -> Any:
    """The sum of products over all values of all letters: what einsum is defined as."""
    terms, wanted = subscripts.split("->")
    letters = terms.split(",")
    extents: dict[str, int] = {}
    for labels, x in zip(letters, operands, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            extents[label] = n if extents.get(label, 1) == 1 else extents[label]
    inner = sorted(set("".join(letters)) - set(wanted))

    def element(index: tuple[int, ...]) -> Any:
        total: Any = 0
        for rest in itertools.product(*(range(extents[k]) for k in inner)):
            at = dict(zip([*wanted, *inner], [*index, *rest], strict=True))
            product: Any = 1
            for labels, x in zip(letters, operands, strict=True):
                own = tuple(0 if n == 1 else at[k] for k, n in zip(labels, x.shape, strict=True))
                product = product * x[own].item()
            total += product
        return total

    return every([extents[k] for k in wanted], element)


_LETTERS = "ABCDEFGHIJKLMNOP"


def _spelled(subscripts: str, operands: Sequence[Any]) -> str:
    """Subscripts with letters for an ellipsis, and with a result."""
    subscripts = subscripts.replace(" ", "")
    terms, *given = subscripts.split("->")
    parts, longest = [], 0
    for term, x in zip(terms.split(","), operands, strict=True):
        if "..." in term:
            extra = x.ndim - (len(term) - 3)
            longest = max(longest, extra)
            term = term.replace("...", _LETTERS[len(_LETTERS) - extra :] if extra else "")
        parts.append(term)
    every_one = _LETTERS[len(_LETTERS) - longest :] if longest else ""
    flat = "".join(parts)
    if given:
        wanted = given[0].replace("...", every_one)
    else:
        wanted = every_one + "".join(sorted(k for k in set(flat) - set(every_one) if flat.count(k) == 1))
    return f"{','.join(parts)}->{wanted}"


@oracle("einsum", dtype=number, more=[
    sample("ab,cb->ac", (2, 3), (4, 3)), sample("...a,a", (2, 3), (3,)), sample("a...,b...->ab...", (2, 3), (2, 3)),
    sample("iij->ij", (2, 2, 3)), sample("z,a->az", (2,), (3,)), sample("ab,ab,ab->ba", (2, 3), (2, 3), (2, 3)),
])  # fmt: skip
def _einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Any:
    return _summed(_spelled(subscripts, operands), *operands)


def _matmul(x: Any, y: Any) -> Any:
    left = "c" if x.ndim == 1 else "...rc"
    right = "c" if y.ndim == 1 else "...ck"
    wanted = "..." + ("" if x.ndim == 1 else "r") + ("" if y.ndim == 1 else "k")
    return _einsum(f"{left},{right}->{wanted}", x, y)


_STACKS = [sample((1, 2), (2, 1)), sample((3, 1, 2, 2), (2, 2, 1)), sample((1, 1, 1), (2, 1, 3))]
oracle("matrix_product", dtype=number, more=_STACKS)(_matmul)
oracle("matmul", dtype=number, more=[*_STACKS, sample((2,), (3, 2, 2)), sample((3, 2, 2), (2,))])(_matmul)
oracle("bmm", dtype=number)(lambda x, y: _summed("bij,bjk->bik", x, y))
oracle("matvec", dtype=number, more=[sample((2, 1, 2, 3), (4, 3))])(lambda x, y: _einsum("...ij,...j->...i", x, y))
oracle("vecdot", dtype=number)(lambda x, y: _einsum("...i,...i->...", np.conj(x), y))
oracle("vdot", dtype=number)(lambda x, y: _summed("i,i->", np.conj(x).ravel(), y.ravel()))
oracle("outer", dtype=number)(lambda x, y: _summed("i,j->ij", x.ravel(), y.ravel()))


@oracle("linear", dtype=number)
def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    found = _einsum("...i,oi->...o", x, weight)
    return found if bias is None else found + bias


@oracle("bilinear", dtype=number)
def _bilinear(x: Any, y: Any, weight: Any, bias: Any = None) -> Any:
    found = _einsum("...i,oij,...j->...o", x, weight, y)
    return found if bias is None else found + bias


@oracle("addmm", dtype=number)
def _addmm(input: Any, x: Any, y: Any, beta: float = 1, alpha: float = 1) -> Any:
    return alpha * _matmul(x, y) + beta * input


@oracle("tensordot", dtype=number, more=[
    sample((2, 3), (4, 3), axes=([1], [1])),
    sample((2, 3, 4), (3, 2), axes=([-2, 0], [0, -1])), sample((2, 3), (4,), axes=0),
])  # fmt: skip
def _tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        pairs = [(x.ndim - axes + k, k) for k in range(axes)]
    else:
        pairs = list(zip(*([a] if isinstance(a, int) else a for a in axes), strict=True))
    mine = list("abcdefgh"[: x.ndim])
    others = list("stuvwxyz"[: y.ndim])
    for a, b in pairs:
        others[b] = mine[a]
    kept = [k for k in mine if k not in others] + [k for k in others if k not in mine]
    return _summed(f"{''.join(mine)},{''.join(others)}->{''.join(kept)}", x, y)


@oracle("dot", dtype=number)
def _dot(x: Any, y: Any) -> Any:
    if not x.ndim or not y.ndim:
        return every(
            x.shape or y.shape, lambda i: (x[i] if x.ndim else x[()]).item() * (y[i] if y.ndim else y[()]).item()
        )
    return _tensordot(x, y, (x.ndim - 1, max(y.ndim - 2, 0)))


@oracle("inner", dtype=number)
def _inner(x: Any, y: Any) -> Any:
    return _dot(x, y) if not x.ndim or not y.ndim else _tensordot(x, y, (x.ndim - 1, y.ndim - 1))


@oracle("kron", dtype=number, more=[sample((2, 1, 2), (3,)), sample((2,), ())])
def _kron(x: Any, y: Any) -> Any:
    rank = max(x.ndim, y.ndim)
    left, right = ((1,) * (rank - z.ndim) + z.shape for z in (x, y))
    one, other = x.reshape(left), y.reshape(right)

    def element(i: tuple[int, ...]) -> Any:
        outer, inner = zip(*(divmod(j, n) for j, n in zip(i, right, strict=True)), strict=True) if i else ((), ())
        return one[tuple(outer)].item() * other[tuple(inner)].item()

    return every([n * m for n, m in zip(left, right, strict=True)], element)


@oracle(
    "cross",
    dtype=number,
    floor=1.0,
    fixed=("axis",),
    more=[sample((2, 3, 4), (2, 3, 4), axis=1), sample((3, 1), (3, 2), axis=0)],
)
def _cross(x: Any, y: Any, axis: int = -1) -> Any:
    """With the sign of each permutation of three."""
    one, other = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    signs = np.zeros((3, 3, 3), int)
    for a, b, c in itertools.permutations(range(3)):
        signs[a, b, c] = round(np.linalg.det(np.eye(3)[[a, b, c]]))
    return np.moveaxis(_einsum("abc,...b,...c->...a", signs, one, other), -1, axis)


# --- convolution ------------------------------------------------------------------------------------

Numbers = int | Sequence[int]


def _each(given: Any, count: int) -> list[Any]:
    return [given] * count if isinstance(given, int) else list(given)


def _pairs(padding: Any, count: int) -> list[tuple[int, int]]:
    return [(p, p) if isinstance(p, int) else tuple(p) for p in _each(padding, count)]


def _windows(space: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, spacing: Any) -> list[int]:
    """How many windows there are along each axis of elements that stand `spacing` apart."""
    return [
        max((low + max((n - 1) * g + 1, 0) + high - (k - 1) * d - 1) // s + 1, 0)
        for n, k, s, (low, high), d, g in zip(space, kernel, stride, padding, dilation, spacing, strict=True)
    ]


def _links(space: Any, kernel: Any, out: Any, stride: Any, padding: Any, dilation: Any, spacing: Any) -> Iterator[Any]:
    """(place in x, place in the kernel, window) wherever a window's place of the kernel is on an element of x."""
    for window in np.ndindex(*out):
        for tap in np.ndindex(*kernel):
            at = [
                divmod(o * s + k * d - low, g)
                for o, s, k, d, (low, _), g in zip(window, stride, tap, dilation, padding, spacing, strict=True)
            ]
            if all(rest == 0 and 0 <= i < n for (i, rest), n in zip(at, space, strict=True)):
                yield tuple(i for i, _ in at), tap, window


def _geometry(count: int, stride: Any, padding: Any, dilation: Any, input_dilation: Any) -> tuple[Any, ...]:
    return _each(stride, count), _pairs(padding, count), _each(dilation, count), _each(input_dilation, count)


_GEOMETRIES: list[dict[str, Any]] = [
    {"stride": 2}, {"padding": 1}, {"dilation": 2, "padding": 2}, {"input_dilation": 2},
    {"stride": 3, "padding": [(2, 1)], "input_dilation": 2, "dilation": 2},
]  # fmt: skip


@oracle("conv", dtype=number, more=[sample((2, 2, 1, 5), (2, 3, 1, 2), **how) for how in _GEOMETRIES])
def _conv(x: Any, weight: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, input_dilation: Any = 1) -> Any:
    space, kernel = x.shape[3:], weight.shape[3:]
    how = _geometry(len(kernel), stride, padding, dilation, input_dilation)
    out = _windows(space, kernel, *how)
    found = np.zeros((x.shape[0], weight.shape[0], weight.shape[1], *out), np.result_type(x, weight))
    for at, tap, window in _links(space, kernel, out, *how):
        found[(..., *window)] += np.einsum("bgc,goc->bgo", x[(..., *at)], weight[(..., *tap)])
    return found


def _fits(space: int, how: dict[str, Any]) -> int:
    how = {"stride": 1, "padding": 0, "dilation": 1, "input_dilation": 1} | how
    return _windows([space], [2], *_geometry(1, **how))[0]


@oracle("conv_input", dtype=number, more=[
    sample((2, 2, 3, _fits(5, how)), (2, 3, 1, 2), [5], **how) for how in _GEOMETRIES
])  # fmt: skip
def _conv_input(
    ct: Any, weight: Any, space: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, input_dilation: Any = 1
) -> Any:
    kernel = weight.shape[3:]
    how = _geometry(len(kernel), stride, padding, dilation, input_dilation)
    found = np.zeros((ct.shape[0], ct.shape[1], weight.shape[2], *space), np.result_type(ct, weight))
    for at, tap, window in _links(space, kernel, ct.shape[3:], *how):
        found[(..., *at)] += np.einsum("bgo,goc->bgc", ct[(..., *window)], weight[(..., *tap)])
    return found


@oracle("conv_weight", dtype=number, more=[
    sample((2, 2, 1, 5), (2, 2, 3, _fits(5, how)), [2], **how) for how in _GEOMETRIES
])  # fmt: skip
def _conv_weight(
    x: Any, ct: Any, kernel: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, input_dilation: Any = 1
) -> Any:
    how = _geometry(len(kernel), stride, padding, dilation, input_dilation)
    found = np.zeros((ct.shape[1], ct.shape[2], x.shape[2], *kernel), np.result_type(x, ct))
    for at, tap, window in _links(x.shape[3:], kernel, ct.shape[3:], *how):
        found[(..., *tap)] += np.einsum("bgo,bgc->goc", ct[(..., *window)], x[(..., *at)])
    return found


def _biased(found: Any, bias: Any, count: int) -> Any:
    if bias is None:
        return found
    return every(found.shape, lambda i: found[i] + bias[i[found.ndim - count - 1]])


def _convolved(count: int) -> Any:
    def convolution(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        """Group by group: each output channel sees the input channels of its own group."""
        if x.ndim == count + 1:
            return convolution(x[None], weight, bias, stride, padding, dilation, groups)[0]
        kernel = weight.shape[2:]
        if padding == "valid":
            padding = 0
        elif padding == "same":
            totals = [(k - 1) * d for k, d in zip(kernel, _each(dilation, count), strict=True)]
            padding = [(n // 2, n - n // 2) for n in totals]
        ins, outs = x.shape[1] // groups, weight.shape[0] // groups
        parts = [
            _conv(
                x[:, None, g * ins : (g + 1) * ins], weight[None, g * outs : (g + 1) * outs], stride, padding, dilation
            )[:, 0]
            for g in range(groups)
        ]
        return _biased(np.concatenate(parts, axis=1), bias, count)

    return convolution


_GROUPED = [
    sample((2, 4, 6), (4, 2, 3), (4,), stride=s, padding=p, dilation=d, groups=2)
    for s in (1, 2, 3) for p in (0, 2, [(0, 1)], "valid") for d in (1, 2)
]  # fmt: skip
oracle(
    "conv1d",
    dtype=number,
    more=[*_GROUPED, *(sample((1, 2, 5), (2, 1, k), padding="same", groups=2) for k in (1, 2, 3))],
)(_convolved(1))
oracle("conv2d", dtype=number, more=[
    sample((1, 2, 4, 5), (2, 2 // g, 2, 3), stride=s, padding=p, dilation=d, groups=g)
    for s in (1, (2, 1)) for p in (0, (1, 2), [(1, 0), (0, 2)]) for d in (1, (2, 1)) for g in (1, 2)
])(_convolved(2))  # fmt: skip
oracle("conv3d", dtype=number, more=[
    sample((2, 2, 3, 2, 3), (2, 1, 2, 1, 2), (2,), stride=(2, 1, 1), padding=(1, 0, 1), groups=2),
    sample((1, 1, 3, 3, 2), (1, 1, 2, 2, 2), dilation=(2, 1, 1)), sample((1, 3, 2, 2), (1, 1, 2, 2, 2), padding="same"),
])(_convolved(3))  # fmt: skip


@oracle("depthwise_conv2d", dtype=number)
def _depthwise(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Any:
    return _convolved(2)(x, weight, bias, stride, padding, dilation, x.shape[-3])


def _transposed(count: int) -> Any:
    def convolution(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        """A correlation of x, its elements `stride` apart, with the kernel turned around."""
        if x.ndim == count + 1:
            return convolution(x[None], weight, bias, stride, padding, output_padding, groups, dilation)[0]
        kernel = weight.shape[2:]
        cut, gaps, more = _each(padding, count), _each(dilation, count), _each(output_padding, count)
        reach = [d * (k - 1) for d, k in zip(gaps, kernel, strict=True)]
        around = [(r - p, r - p + m) for r, p, m in zip(reach, cut, more, strict=True)]
        ins = x.shape[1] // groups
        turned = np.flip(weight, tuple(range(2, weight.ndim)))
        parts = [
            _conv(x[:, None, g * ins : (g + 1) * ins], np.swapaxes(turned[g * ins : (g + 1) * ins], 0, 1)[None],
                  1, around, dilation, stride)[:, 0]
            for g in range(groups)
        ]  # fmt: skip
        return _biased(np.concatenate(parts, axis=1), bias, count)

    return convolution


oracle("conv_transpose1d", dtype=number, more=[
    sample((2, 2, 4), (2, 1, 3), stride=s, padding=p, output_padding=s - 1, dilation=d, groups=g)
    for s in (1, 2, 3) for p in (0, 1) for d in (1, 2) for g in (1, 2)
] + [sample((2, 3), (2, 1, 2))])(_transposed(1))  # fmt: skip
oracle(
    "conv_transpose2d",
    dtype=number,
    more=[
        sample((1, 2, 2, 3), (2, 2, 2, 2), (2 * g,), stride=(2, 1), padding=p, groups=g)
        for p in (0, (1, 0))
        for g in (1, 2)
    ],
)(_transposed(2))
oracle("conv_transpose3d", dtype=number, more=[
    sample((1, 2, 2, 2, 2), (2, 1, 1, 2, 2), (g,), stride=(1, 2, 1), padding=p, groups=g) for p in (0, (0, 1, 0))
    for g in (1, 2)
])(_transposed(3))  # fmt: skip


# --- pooling ----------------------------------------------------------------------------------------


def _window_places(x: Any, count: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """For each window along each axis, the places it has (some in the padding or beyond)."""
    sizes = _each(kernel, count)
    steps = sizes if stride is None else _each(stride, count)
    found = []
    for n, k, s, p, d in zip(
        x.shape[x.ndim - count :], sizes, steps, _each(padding, count), _each(dilation, count), strict=True
    ):
        last = Fraction(n + 2 * p - (k - 1) * d - 1, s)
        starts = [j * s - p for j in range((math.ceil(last) if ceil_mode else math.floor(last)) + 1)]
        if ceil_mode:
            starts = [b for b in starts if b < n]  # a window must begin on an element, or in the padding before
        found.append([[b + j * d for j in range(k)] for b in starts])
    return found


def _pooled(x: Any, count: int, windows: Any, of_window: Any) -> Any:
    """of_window(plane, places of each axis) for each window over the last axes."""
    lead = x.shape[: x.ndim - count]
    shape = (*lead, *(len(w) for w in windows))

    def element(i: tuple[int, ...]) -> Any:
        plane = x[i[: len(lead)]]
        return of_window(plane, [w[j] for w, j in zip(windows, i[len(lead) :], strict=True)])

    return every(shape, element)


def _greatest(plane: Any, places: Any) -> tuple[Any, int]:
    inside = [[j for j in axis if 0 <= j < n] for axis, n in zip(places, plane.shape, strict=True)]
    best, where = None, -1
    for at in itertools.product(*inside):
        value = plane[at].item()
        flat = 0
        for j, n in zip(at, plane.shape, strict=True):
            flat = flat * n + j
        if best is None or value > best:
            best, where = value, flat
    return best, where


_POOLS: list[dict[str, Any]] = [
    {"kernel_size": k, "stride": s, "padding": p, "ceil_mode": c}
    for k, s, p in ((2, None, 0), (3, 2, 1), (3, 1, 1), (2, 3, 1)) for c in (False, True)
]  # fmt: skip


@oracle("window_argmax", dtype=place, more=[
    sample((2, 7), **{**how, "kernel_size": (how["kernel_size"],)}) for how in _POOLS
])  # fmt: skip
def _window_argmax(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    count = len(kernel_size)
    windows = _window_places(x, count, kernel_size, stride, padding, dilation, ceil_mode)
    return _pooled(x, count, windows, lambda plane, places: _greatest(plane, places)[1])


def _max_pool(count: int) -> Any:
    def pool(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        windows = _window_places(x, count, kernel_size, stride, padding, dilation, ceil_mode)
        both = [_pooled(x, count, windows, lambda plane, places, k=k: _greatest(plane, places)[k]) for k in (0, 1)]
        return tuple(both) if return_indices else both[0]

    return pool


_DILATED = [
    {"kernel_size": 2, "dilation": 3, "stride": 1},
    {"kernel_size": 2, "dilation": 2, "padding": 1, "stride": 2},
]
oracle("max_pool1d", dtype=(first, place), more=[sample((2, 7), **h) for h in (*_POOLS, *_DILATED)])(_max_pool(1))
oracle("max_pool2d", dtype=(first, place), more=[sample((1, 6, 7), **h) for h in (*_POOLS, *_DILATED)])(_max_pool(2))
_VOLUMES = [{"kernel_size": 2, "stride": 1, "padding": (1, 0, 1)}, {"kernel_size": (1, 3, 2), "ceil_mode": True}]
oracle("max_pool3d", dtype=(first, place), more=[sample((1, 4, 5, 3), **h) for h in _VOLUMES])(_max_pool(3))


@oracle("max_unpool2d", dtype=first)
def _max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    steps = _each(kernel_size if stride is None else stride, 2)
    sizes, cut = _each(kernel_size, 2), _each(padding, 2)
    space = output_size or [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-2:], steps, cut, sizes, strict=True)]
    space = list(space)[-2:]
    found = np.zeros((*x.shape[:-2], *space), x.dtype)
    for i in np.ndindex(*x.shape):
        found[(*i[:-2], *divmod(int(indices[i]), space[1]))] = x[i]
    return found


oracle("global_max_pool2d", dtype=first)(
    lambda x: _pooled(x, 2, [[list(range(n))] for n in x.shape[-2:]], lambda p, places: _greatest(p, places)[0])
)


def _mean_pool(count: int) -> Any:
    def pool(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        widths = _each(padding, count)

        def of_window(plane: Any, places: Any) -> Any:
            total: Any = 0
            size = 0
            for at in itertools.product(*places):
                inside = all(0 <= j < n for j, n in zip(at, plane.shape, strict=True))
                within = all(-p <= j < n + p for j, n, p in zip(at, plane.shape, widths, strict=True))
                total += plane[at].item() if inside else 0
                size += within if count_include_pad else inside
            return total / (divisor_override or size)

        return _pooled(x, count, _window_places(x, count, kernel_size, stride, padding, 1, ceil_mode), of_window)

    return pool


_MEANS = [{**how, **more} for how in _POOLS for more in ({}, {"count_include_pad": False}, {"divisor_override": 5})]
oracle("avg_pool1d", dtype=floating, more=[sample((2, 7), **how) for how in _MEANS])(_mean_pool(1))
oracle("avg_pool2d", dtype=floating, more=[sample((6, 7), **how) for how in _MEANS])(_mean_pool(2))
oracle("avg_pool3d", dtype=floating, more=[
    sample((4, 5, 3), **how, count_include_pad=count) for how in _VOLUMES for count in (True, False)
])(_mean_pool(3))  # fmt: skip


def _parts(x: Any, count: int, output_size: Any) -> Any:
    wanted = [output_size] * count if output_size is None or isinstance(output_size, int) else list(output_size)
    found = []
    for n, m in zip(x.shape[x.ndim - count :], wanted, strict=True):
        m = n if m is None else m
        found.append(
            [list(range(math.floor(Fraction(i * n, m)), math.ceil(Fraction((i + 1) * n, m)))) for i in range(m)]
        )
    return found


def _adaptive_mean(count: int) -> Any:
    def mean(plane: Any, places: Any) -> Any:
        elements = [plane[at].item() for at in itertools.product(*places)]
        return sum(elements) / len(elements)

    return lambda x, output_size: _pooled(x, count, _parts(x, count, output_size), mean)


def _adaptive_max(count: int) -> Any:
    def pool(x: Any, output_size: Any, return_indices: bool = False) -> Any:
        windows = _parts(x, count, output_size)
        both = [_pooled(x, count, windows, lambda plane, places, k=k: _greatest(plane, places)[k]) for k in (0, 1)]
        return tuple(both) if return_indices else both[0]

    return pool


_WANTED = [sample((2, 7), output_size=n) for n in (1, 2, 3, 5, 7, 9, None)]
_WANTED_PAIRS = [sample((5, 7), output_size=n) for n in (1, 3, (2, 5), (None, 3), (7, 2), None)]
oracle("adaptive_avg_pool1d", dtype=floating, more=_WANTED)(_adaptive_mean(1))
oracle("adaptive_avg_pool2d", dtype=floating, more=_WANTED_PAIRS)(_adaptive_mean(2))
oracle("adaptive_max_pool1d", dtype=(first, place), more=_WANTED)(_adaptive_max(1))
oracle("adaptive_max_pool2d", dtype=(first, place), more=_WANTED_PAIRS)(_adaptive_max(2))
_WANTED_TRIPLES = [sample((4, 3, 5), output_size=n) for n in (1, 3, (2, None, 4))]
oracle("adaptive_avg_pool3d", dtype=floating, more=_WANTED_TRIPLES)(_adaptive_mean(3))
oracle("adaptive_max_pool3d", dtype=(first, place), more=_WANTED_TRIPLES)(_adaptive_max(3))
oracle("global_avg_pool2d", dtype=floating)(lambda x: _adaptive_mean(2)(x, 1))
