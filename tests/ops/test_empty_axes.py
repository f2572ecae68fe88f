"""Axes of no elements, over the whole op table: as NumPy has them, or refused with an error of ours.

Every sample of every row is tried with extents replaced by 0: each extent that occurs, in all operands at once, and
each axis of each operand by itself. What NumPy computes must be computed, by the rows' references and by both
backends; what it refuses must be refused. Gradients have the shapes of the inputs, and a batch of no examples goes
through vmap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from op_harness import arguments, arrays_in, as_buffer, computed, expected, flat, on_nodes, refilled, rng_of, rows

import eshkol as ek
from batches import in_batches
from effort import FULL
from eshkol.errors import EshkolError
from eshkol.graph import derive, interpret
from eshkol.graph.batch import batch
from eshkol.graph.node import Scope, mark, placeholder
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, Op
from eshkol.schedule.run import execute
from eshkol.tensors.devices import open_backend

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, of means of nothing
    pytest.mark.unchecked,  # each compares with the interpreter, which is what validation would do a second time
]
FIRST = {"float": dtypes.float32, "int": dtypes.int32, "bool": dtypes.bool_, "complex": dtypes.complex64}

# Rows that refuse operands, or attributes, that do not fit each other any more where their NumPy reference is content.
STRICTER = {
    "pad", "pad_constant", "split", "scaled_dot_product_attention", "attention_weights", "conv", "conv_input",
    "conv_weight", "conv1d", "conv2d", "conv3d", "depthwise_conv2d", "separable_conv2d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "triangular_matrix_solve", "cofactor", "expm", "tall_qr",
    "searchsorted", "einsum", "max_unpool1d", "max_unpool2d", "global_avg_pool1d", "global_avg_pool2d",
    "grid_sample", "index_put", "gather", "scatter_along", "scatter_add", "scatter_max", "index_add", "put", "bincount",
    "nll_loss", "cross_entropy", "layer_norm", "rms_norm", "rotary_embedding", "to_dense", "sparse_mm",
    "paged_attention",
}  # fmt: skip
# Rows whose reference is written for some elements: it fails (or, for irfft, NumPy gives what lay in memory).
WITHOUT_REFERENCE = {
    "multi_head_attention", "multi_head_self_attention", "conv_transpose1d", "lstsq", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "unfold", "fold", "group_norm", "instance_norm", "to_dense",
    "sparse_mm", "irfft",
}  # fmt: skip


def dtype_of(op: Op) -> DType:
    return next(FIRST[kind] for kind in FIRST if kind in op.dtypes)


def emptied(arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """The arrays with an extent replaced by 0 wherever it occurs, and with each single axis cut to nothing."""
    seen = set()
    cuts = [lambda i, k, n, extent=extent: n == extent for extent in sorted({n for a in arrays for n in a.shape} - {0})]
    cuts += [
        lambda i, k, n, operand=operand, axis=axis: (i, k) == (operand, axis)
        for operand, array in enumerate(arrays)
        for axis in range(array.ndim)
    ]
    for cut in cuts:
        found = [
            a[tuple(slice(0) if cut(i, k, n) else slice(None) for k, n in enumerate(a.shape))] if a.ndim else a
            for i, a in enumerate(arrays)
        ]
        shapes = tuple(a.shape for a in found)
        if shapes not in seen:
            seen.add(shapes)
            yield found


def variants(op: Op) -> Iterator[tuple[list[Any], dict[str, Any], list[np.ndarray]]]:
    """Arguments with empty axes, the attributes, and the arrays among the arguments."""
    for number, sample in enumerate(op.samples):
        args = arguments(sample, dtype_of(op), rng_of(op.name, number))
        for arrays in emptied(arrays_in(args)):
            yield refilled(args, arrays), sample.attrs, arrays


def alike(found: Any, wanted: Any) -> bool:
    one, other = np.asarray(found), np.asarray(wanted)
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    return np.allclose(one.astype(np.complex128), other.astype(np.complex128), 1e-4, 1e-5, equal_nan=True)


def numpys(op: Op, args: list[Any], attrs: dict[str, Any]) -> list[np.ndarray] | None:
    """What NumPy gives; None where it refuses."""
    try:
        if op.composite:
            return expected(op, args, attrs)
        made = (
            None
            if op.function is None
            else op.function(*refilled(args, list(map(as_buffer, arrays_in(args)))), **attrs)
        )
        with np.errstate(all="ignore"):
            return [np.asarray(x) for x in flat(op.reference(made, *arrays_in(args)))]
    except (EshkolError, ArithmeticError, ValueError, LookupError, AssertionError, TypeError, np.linalg.LinAlgError):
        return None


BACKENDS = ("reference", "cpu") if FULL else ("reference",)  # native code takes long to compile


@in_batches("op", rows(), ids=lambda op: op.name)
def test_values_are_numpys(op):
    draws = op.group == "random" or "distributions" in op.group
    for args, attrs, arrays in variants(op):
        shapes = [a.shape for a in arrays]
        wanted = numpys(op, args, attrs)
        try:
            found = computed(op, args, attrs)  # anything but an error of ours is a failure here
        except EshkolError:
            if wanted is not None and op.name not in STRICTER:
                raise
            continue
        if wanted is None:
            assert draws or _drawn(op) or op.name in WITHOUT_REFERENCE, f"{shapes} {attrs}: NumPy refuses this"
        elif not draws and op.name not in WITHOUT_REFERENCE:
            assert len(found) == len(wanted), shapes
            assert all(map(alike, found, wanted)), f"{shapes} {attrs}: {found}, not {wanted}"
        for backend in BACKENDS:
            given = execute.realize(on_nodes(op, args, attrs), open_backend(backend))
            assert all(map(alike, given, found)), f"{shapes} {attrs} on {backend}: {given}, not {found}"


def _drawn(op: Op) -> bool:
    """Whether a row draws random numbers: its first input is a key, or one of them is."""
    return any(getattr(arg, "kind", None) == "key" for s in op.samples for arg in s.args)


@in_batches("op", [op for op in rows() if "float" in op.dtypes and op.inputs], ids=lambda op: op.name)
def test_gradients_have_the_shapes_of_the_inputs(op):
    machine = open_backend(BACKENDS[-1])
    for args, attrs, arrays in variants(op):

        def gradients(args=args, attrs=attrs, arrays=arrays):
            scope = Scope("grad", "test")
            nodes = [as_buffer(a) for a in arrays]
            marks = [mark(n, scope) if n.dtype.differentiable else n for n in nodes]
            outs = [o for o in flat(op(*refilled(args, marks), **attrs)) if o.dtype.differentiable]
            inputs = [m for m in marks if scope in m.scopes]
            ones = [as_buffer(np.ones(o.shape, o.dtype.numpy)) for o in outs]
            found = derive.vjp(outs, inputs, scope)(ones)
            scope.open = False
            return inputs, [derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)]

        try:
            inputs, nodes = gradients()
            slopes = interpret.evaluate(nodes)
        except EshkolError:
            continue  # the values are refused too, as another test says, or there is no derivative
        assert [s.shape for s in slopes] == [x.shape for x in inputs]
        for x, slope in zip(inputs, slopes, strict=True):
            assert slope.dtype == x.dtype.numpy
        assert all(map(alike, execute.realize(gradients()[1], machine), slopes)), [a.shape for a in arrays]


NOT_KNOWN = {"unique", "masked_select", "nonzero", "argwhere", "to_sparse", "coo_to_csr", "sparse_add", "getitem"}


@in_batches("op", [op for op in rows() if op.inputs], ids=lambda op: op.name)
def test_a_batch_of_no_examples_goes_through_vmap(op):
    machine = open_backend(BACKENDS[-1])
    for number, sample in enumerate(op.samples):
        args = arguments(sample, dtype_of(op), rng_of(op.name, number))
        arrays = arrays_in(args)
        scope = Scope("trace", "vmap")
        ones = [placeholder(Aval(a.shape, dtypes.of(a.dtype)), scope) for a in arrays]
        wide = {one: as_buffer(np.zeros((0, *a.shape), a.dtype)) for one, a in zip(ones, arrays, strict=True)}
        try:
            outs = flat(op(*refilled(args, ones), **sample.attrs))
        except EshkolError:
            if op.name not in NOT_KNOWN:  # those whose shapes depend on values
                raise
            continue
        found = [(node, out) for node, out in zip(batch(outs, wide, scope), outs, strict=True) if node is not None]
        nodes = [node for node, _ in found]
        shapes = [(0, *out.shape) for _, out in found]
        assert [a.shape for a in interpret.evaluate(nodes)] == shapes, f"{op.name} {number}"
        assert [a.shape for a in execute.realize(nodes, machine)] == shapes, f"{op.name} {number}"


# --- as a user meets them -------------------------------------------------------------------------


@pytest.fixture(params=["reference", "cpu"])
def backend(request):
    with ek.use_backend(request.param):
        yield


@pytest.mark.parametrize("compiled", [False, True])
def test_a_product_over_no_terms_is_zero(backend, compiled):
    product = (lambda x, y: x @ y) if not compiled else ek.jit(lambda x, y: x @ y)
    assert product(ek.ones((2, 0)), ek.ones((0, 3))).tolist() == [[0.0] * 3] * 2
    assert product(ek.ones((0, 2)), ek.ones((2, 3))).shape == (0, 3)


def test_convolutions_of_no_examples_keep_their_shape_and_have_gradients(backend):
    weight = ek.ones((4, 3, 3, 3))
    found = ek.conv2d(ek.ones((0, 3, 8, 8)), weight, padding=1)
    assert found.shape == (0, 4, 8, 8)
    assert found.numpy().size == 0
    slope = ek.grad(lambda w: ek.conv2d(ek.ones((0, 3, 8, 8)), w, padding=1).sum())(weight)
    assert not slope.numpy().any()
    assert slope.shape == weight.shape


def test_the_mean_of_nothing_is_nan_and_its_sum_zero(backend):
    assert np.isnan(ek.ones((0,)).mean().item())
    assert np.isnan(ek.ones((2, 0)).mean(1).numpy()).all()
    assert ek.ones((2, 0)).sum(1).tolist() == [0.0, 0.0]
    assert ek.ones((2, 0)).prod(1).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_there_is_no_extreme_of_nothing(backend, name):
    with pytest.raises(EshkolError, match=r"no elements|no extreme|empty"):
        getattr(ek.ones((2, 0)), name)(axis=1)
    assert getattr(ek.ones((0, 2)), name)(axis=1).shape == (0,)


def test_positions_along_an_axis_of_nothing_are_refused_even_if_nothing_would_be_computed(backend):
    with pytest.raises(EshkolError, match=r"empty|no elements"):
        TABLE["scatter_along"](
            as_buffer(np.ones((3, 0), np.float32)), 1, as_buffer(np.zeros((2, 3), np.int64)),
            as_buffer(np.ones((2, 3), np.float32)),
        )  # fmt: skip
    assert (
        ek.scatter_along(ek.ones((2, 3)), 1, ek.zeros((2, 0), dtype=ek.int64), ek.ones((2, 0))).tolist()
        == [[1.0] * 3] * 2
    )


def test_gradients_through_empty_axes_are_zeros_of_the_right_shape(backend):
    w, none = ek.ones((3, 2)), ek.ones((0, 3))
    assert ek.grad(lambda w: (none @ w).sum())(w).tolist() == [[0.0, 0.0]] * 3
    assert ek.grad(lambda x: (x @ w).sum())(none).shape == (0, 3)
    leaf = ek.ones((3, 2)).requires_grad_()
    (none @ leaf).sum().backward()
    assert leaf.grad.tolist() == [[0.0, 0.0]] * 3


def test_jit_vmap_and_loops_over_no_examples(backend):
    step = ek.jit(lambda w, x: ek.grad(lambda w: ek.relu(x @ w).sum())(w))
    assert step(ek.ones((3, 2)), ek.ones((0, 3))).tolist() == [[0.0, 0.0]] * 3
    assert ek.vmap(lambda x: ek.softmax(x @ ek.ones((3, 2))).sum())(ek.ones((0, 3))).shape == (0,)
    carry, outs = ek.scan(lambda c, x: (c + x.sum(), c * 2), ek.tensor(1.0), ek.ones((0, 3)))
    assert carry.item() == 1.0
    assert outs.shape == (0,)
