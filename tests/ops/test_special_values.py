"""At the edges of numbers: every elementwise row on zeros of both signs, infinities, NaN, subnormals, the largest and
the least numbers, on both backends and by the interpreter of the graph, against NumPy; what goes along an axis too.

What differs is listed here with its reason, and in docs/tensors.md: a difference that is not listed fails, and so does
one that is listed and is none.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import eshkol as ek
from batches import in_batches
from effort import amount
from eshkol.errors import ShapeError
from eshkol.graph import interpret
from eshkol.ops import TABLE
from eshkol.tensors.value import operate

# NumPy is asked here, and what differs from it is listed; an optimizer may differ, too.
pytestmark = [pytest.mark.unchecked, pytest.mark.optimized]

INF, NAN = np.inf, np.nan


def numbers(dtype):
    """Numbers at the edges of a dtype."""
    if dtype.kind == "f":
        info = np.finfo(dtype)
        least, tiny, most = (float(x) for x in (info.smallest_subnormal, info.tiny, info.max))
        sizes = (0.0, least, tiny, 1e-5, 0.1, 0.5, 1 - info.eps / 2, 1.0, 1 + info.eps, 1.5, 2.0, 2.5, 3.0, np.pi, 20.0)
        sizes = (*sizes, 100.0, 1e3, 1e10, np.sqrt(most), most / 2, most, INF)
        return np.array([*sizes, *(-x for x in sizes), NAN], dtype)
    info = np.iinfo(dtype)
    found = {int(info.min), int(info.max), int(info.max) - 1, 0, 1, 2, 3, 7, info.bits - 1, info.bits, info.bits + 1}
    if info.min:
        found |= {int(info.min) + 1, -1, -2, -7, -info.bits}
    return np.array(sorted(found), dtype)


# --- elementwise ----------------------------------------------------------------------------------

# Rows that differ from their reference, and why. The rest of the numbers is compared all the same.
ZERO, ROUNDED, OURS = "the sign of a zero", "rounded otherwise", "ours is nearer to the truth"
DIFFERENT = {
    "relu": (ZERO, lambda x, *_: x == 0),
    "celu": (ZERO, lambda x, *_: x == 0),
    "relu6": (ZERO, lambda x, *_: x == 0),
    "soft_shrink": (ZERO, lambda x, *_: np.abs(x) <= 0.5),
    "erfinv": (ROUNDED, lambda x, *_: np.abs(x) <= np.finfo(x.dtype).tiny),
    "lgamma": (ROUNDED, lambda x, *_: (np.abs(x) <= np.finfo(x.dtype).tiny) | (np.abs(x - 1) < 1e-6)),
    "digamma": (ROUNDED, lambda x, *_: np.abs(x + 1) < 1e-6),
    "xlogy": (ROUNDED, lambda x, y: np.abs(x) <= np.finfo(x.dtype).tiny),
    "tanh_shrink": (ROUNDED, lambda x, *_: np.abs(x) < 1e-3),
    "hard_swish": (OURS, lambda x, *_: np.abs(x) >= np.finfo(x.dtype).max / 2),
    "hard_shrink": (OURS, lambda x, *_: np.isnan(x)),
}  # fmt: skip
GROUPS = ("functions", "activations", "special functions", "arithmetic", "bits", "comparison", "logic")
FAILS = ("floor_divide", "remainder", "fmod", "mod")  # by zero, of integers
WHOLE = ("allclose", "glu", "softmax", "log_softmax", "softmin", "prelu")  # along an axis, or not of integers


def rows():
    for op in TABLE.values():
        required = [p for p in op.signature.parameters.values() if p.default is p.empty] if op.public else []
        wanted = op.public and op.group in GROUPS and not op.random and op.name not in WHOLE
        if wanted and len(op.inputs) in (1, 2) and len(required) == len(op.inputs):
            yield op


def operands(op, dtype):
    """Every number, or every pair of them, that a row takes."""
    found = numbers(dtype)
    if len(op.inputs) == 1:
        return [found]
    pairs = np.array(list(itertools.product(found, found)), dtype)
    one, other = pairs[:, 0].copy(), pairs[:, 1].copy()
    if dtype.kind != "f" and op.name in FAILS:
        return [one[other != 0], other[other != 0]]
    if dtype.kind == "i" and op.name in ("power", "pow"):
        return [one[other >= 0], other[other >= 0]]
    return [one, other]


def alike(got, wanted):
    """Whether numbers are the same: NaN and zeros with their signs exactly, others nearly."""
    if got.dtype.kind != "f" or wanted.dtype.kind != "f":
        return got == wanted
    exact = (got == wanted) & (np.signbit(got) == np.signbit(wanted))
    wide, other = got.astype(np.float64), wanted.astype(np.float64)
    tolerance = 1e-4 if got.dtype.itemsize <= 4 else 1e-9
    finite = np.isfinite(wide) & np.isfinite(other) & (wide != 0) & (other != 0)
    small = float(np.finfo(got.dtype).tiny)
    with np.errstate(invalid="ignore"):
        near = finite & (np.abs(wide - other) <= tolerance * np.maximum(np.abs(wide), np.abs(other)) + small)
    return (np.isnan(got) & np.isnan(wanted)) | exact | near


def computed(call):
    """What a call gives, by the interpreter and on both backends."""
    for backend in ("cpu", "reference"):
        with ek.use_backend(backend):
            result = call()
            if not isinstance(result, ek.Tensor):
                return
            if backend == "cpu" and result._node.data is None:
                yield "interpreter", interpret.evaluate([result._node])[0]
            yield backend, result.numpy()


@pytest.mark.parametrize("dtype", amount(["float32", "float64", "int32", "uint8"], ["float32", "int32"]))
@in_batches("op", list(rows()), ids=lambda op: op.name)
def test_elementwise_rows_are_numpys_at_the_edges(op, dtype):
    dtype = np.dtype(dtype)
    if ("float" if dtype.kind == "f" else "int") not in op.dtypes:
        pytest.skip(f"{op.name} takes no {dtype}")
    if dtype.name == "float64" and len(op.inputs) == 2:
        pytest.skip("pairs are tested in float32")
    args = operands(op, dtype)
    with np.errstate(all="ignore"):
        for who, got in computed(lambda: operate(op, tuple(ek.tensor(a) for a in args), {})):
            known = args
            if got.dtype.kind == "f" and dtype.kind != "f":  # integers become float32 here, and not always in NumPy
                known = [a.astype(got.dtype) for a in args]
            wanted = np.asarray(op.reference(*known) if op.composite else op.reference(None, *known))
            assert wanted.shape == got.shape
            wrong = ~alike(got, wanted.astype(got.dtype))
            if op.name in DIFFERENT:
                wrong &= ~DIFFERENT[op.name][1](*known)
            places = np.argwhere(wrong)[:, 0]
            shown = [(*(a[k] for a in args), got[k], wanted[k]) for k in places[:5]]
            assert not len(places), (
                f"{op.name} of {dtype}, {who}: {len(places)} differ (operands, got, wanted): {shown}"
            )


def test_what_is_listed_as_different_is_a_row():
    assert set(DIFFERENT) <= {op.name for op in rows()}


# --- along an axis --------------------------------------------------------------------------------

VECTORS = [
    [0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [-0.0], [NAN, 1.0], [1.0, NAN], [INF, -INF], [INF, INF], [-INF, 1.0],
    [3e38, 3e38], [1e-45, -1e-45], [1.0, -0.0, 0.0, -1.0, NAN, INF, -INF], [1.0, 2.0, NAN, 3.0, 4.0],
]  # fmt: skip
ALONG = {
    "cumsum": (lambda x: ek.cumsum(x, 0), np.cumsum),
    "cumprod": (lambda x: ek.cumprod(x, 0), np.cumprod),
    "cummax": (lambda x: ek.cummax(x, 0)[0], np.maximum.accumulate),
    "cummin": (lambda x: ek.cummin(x, 0)[0], np.minimum.accumulate),
    "sort": (lambda x: ek.sort(x)[0], lambda x: np.sort(x, kind="stable")),
    "argsort": (ek.argsort, lambda x: np.argsort(x, kind="stable")),
    "prod": (lambda x: x.prod(), np.prod),
    "var": (lambda x: x.var(), np.var),
    "argmax": (lambda x: x.argmax(), np.argmax),
    "argmin": (lambda x: x.argmin(), np.argmin),
    "any": (lambda x: x.any(), np.any),
    "clip between 0 and 1": (lambda x: ek.clip(x, 0.0, 1.0), lambda x: np.clip(x, np.float32(0), np.float32(1))),
    "clip from NaN": (lambda x: ek.clip(x, NAN, 1.0), lambda x: np.full_like(x, NAN)),
    "clip to NaN": (lambda x: ek.clip(x, 0.0, NAN), lambda x: np.full_like(x, NAN)),
    "clip to a tensor of NaN": (lambda x: ek.clip(x, max=ek.tensor(NAN)), lambda x: np.full_like(x, NAN)),
    # The signs of zeros are not promised: a sum may begin with either, an extreme be either.
    "sum": (lambda x: x.sum(), np.sum),
    "mean": (lambda x: x.mean(), np.mean),
    "max": (lambda x: x.max(), np.max),
    "min": (lambda x: x.min(), np.min),
    "x + 0": (lambda x: x + 0.0, lambda x: x + 0.0),  # which is x for the compiler
}
ANY_ZERO = ("sum", "mean", "max", "min", "cummax", "cummin", "x + 0")  # NumPy's own depends on the processor


@pytest.mark.parametrize("name", ALONG)
def test_ops_along_an_axis_are_numpys_at_the_edges(name):
    ours, theirs = ALONG[name]
    for vector in VECTORS:
        array = np.array(vector, np.float32)
        with np.errstate(all="ignore"):
            wanted = np.asarray(theirs(array))
        for who, got in computed(lambda array=array: ours(ek.tensor(array))):
            if name in ANY_ZERO:
                got, wanted = np.where(got == 0, 0, got), np.where(wanted == 0, 0, wanted)
            assert alike(got, wanted.astype(got.dtype)).all(), f"{name} of {vector}, {who}: {got}, not {wanted}"


def test_quantiles_with_nan_are_nan_and_of_equal_infinities_infinite():
    for vector in ([NAN, 1.0], [1.0, 2.0, NAN, 3.0], [NAN, INF, -INF]):
        for q in (0.0, 0.3, 0.5, 1.0):
            assert np.isnan(ek.quantile(ek.tensor(vector), q).item())
    assert ek.quantile(ek.tensor([INF, INF]), 0.3).item() == INF  # NumPy's is NaN
    with pytest.raises(ShapeError, match="between 0 and 1"):
        ek.quantile(ek.tensor([1.0]), NAN)


def test_a_clip_by_nan_has_no_derivative_in_what_is_clipped():
    assert ek.grad(lambda x: ek.clip(x, NAN, 1.0).sum())(ek.tensor([0.5])).tolist() == [0.0]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_shifts_move_all_bits_out(backend):
    with ek.use_backend(backend):
        x = ek.tensor([1, -8, 2**62])
        for places in (64, 65, 1000, -1):
            assert (x << places).tolist() == [0, 0, 0]
            assert (x >> places).tolist() == [0, -1, 0]
        assert (x << 63).tolist() == [-(2**63), 0, 0]
        small = ek.tensor([1, 255], dtype=ek.uint8)
        assert (small << ek.tensor([8, 7], dtype=ek.uint8)).tolist() == [0, 128]


def test_floats_become_integers_by_truncation_within_bounds():
    found = ek.tensor([NAN, INF, -INF, 1e20, -1e20, 1.9, -1.9]).astype(ek.int32)
    assert found.tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 1, -1]
