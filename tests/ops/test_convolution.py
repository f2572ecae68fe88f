"""Convolutions beyond their samples: any geometry against the definition, both gradients, errors, narrow floats."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from calls import gradient, value
from hypothesis import given, settings
from hypothesis import strategies as st
from op_harness import as_buffer, rng_of

from eshkol.errors import ShapeError
from eshkol.graph import derive, interpret
from eshkol.graph.node import Scope, mark
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Macro
from eshkol.schedule.kernels.kernel import chosen
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend


def defined(x, weight, stride, padding, dilation, input_dilation):
    """One product after another, as the definition has it."""
    spread = [(n - 1) * s + 1 if n else 0 for n, s in zip(x.shape[3:], input_dilation, strict=True)]
    out = [
        max(0, (n + sum(p) - d * (k - 1) - 1) // s + 1)
        for n, p, d, k, s in zip(spread, padding, dilation, weight.shape[3:], stride, strict=True)
    ]
    result = np.zeros((*x.shape[:2], weight.shape[1], *out))
    for window in itertools.product(*map(range, out)):
        for offset in itertools.product(*map(range, weight.shape[3:])):
            places = [
                w * s + o * d - p[0] for w, s, o, d, p in zip(window, stride, offset, dilation, padding, strict=True)
            ]
            inside = all(0 <= q < n and q % s == 0 for q, n, s in zip(places, spread, input_dilation, strict=True))
            if inside:
                seen = x[(..., *(q // s for q, s in zip(places, input_dilation, strict=True)))]
                result[(..., *window)] += np.einsum("ngc,goc->ngo", seen, weight[(..., *offset)])
    return result


@st.composite
def geometries(draw):
    count = draw(st.integers(1, 2))

    def several(least, most):
        return tuple(draw(st.integers(least, most)) for _ in range(count))

    space, kernel = several(1, 6), several(1, 3)
    padding = tuple((draw(st.integers(-2, 4)), draw(st.integers(-2, 4))) for _ in range(count))
    attrs = {"stride": several(1, 3), "padding": padding, "dilation": several(1, 3), "input_dilation": several(1, 3)}
    groups, channels = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = rng.standard_normal((draw(st.integers(1, 2)), groups, channels, *space))
    return x, rng.standard_normal((groups, 2, channels, *kernel)), attrs


def pulled(x, weight, cotangent, attrs):
    """The cotangents of both inputs, as nodes."""
    scope = Scope("grad", "test")
    inputs = [mark(as_buffer(array), scope) for array in (x, weight)]
    return derive.vjp([TABLE["conv"](*inputs, **attrs)], inputs, scope)([as_buffer(cotangent)])


@settings(max_examples=60)
@given(geometries())
def test_any_geometry(case):
    """The value; and of a product ⟨c, conv(x, w)⟩ that is linear in each of x and w, both gradients give it back."""
    x, weight, attrs = case
    found = value("conv", x, weight, **attrs)
    wanted = defined(x, weight, **attrs)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    cotangent = np.random.default_rng(1).standard_normal(wanted.shape)
    product = np.sum(cotangent * wanted)
    for_x, for_weight = interpret.evaluate(pulled(x, weight, cotangent, attrs))
    assert np.sum(for_x * x) == pytest.approx(product, abs=1e-10)
    assert np.sum(for_weight * weight) == pytest.approx(product, abs=1e-10)


@pytest.mark.parametrize("number", range(6))
def test_gradients_on_the_cpu(number):
    """The convolutions that gradients are made of, with their odd paddings and spread inputs, compiled."""
    rng = rng_of("conv", number)
    count = 1 + number % 2
    attrs = {
        "stride": tuple(rng.integers(1, 3, count).tolist()),
        "padding": tuple(map(tuple, rng.integers(-1, 3, (count, 2)).tolist())),
        "dilation": tuple(rng.integers(1, 3, count).tolist()),
    }
    x, weight = (
        rng.standard_normal(s).astype(np.float32) for s in ((2, 2, 2, *(7,) * count), (2, 1, 2, *(2,) * count))
    )
    cotangent = rng.standard_normal(value("conv", x, weight, **attrs).shape).astype(np.float32)
    nodes = pulled(x, weight, cotangent, attrs)
    for got, wanted in zip(realize(nodes, open_backend("cpu")), interpret.evaluate(nodes), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["conv", "conv_input", "conv_weight"])
@pytest.mark.parametrize("count", [1, 2])
def test_floats_go_to_array_instructions(name, count):
    """Whatever the groups, strides and dilations; with uneven padding too, and more of it than windows reach."""
    how = {"stride": 2, "padding": ((1, 2),) * count, "dilation": (2,) * count}
    x, weight = (np.zeros(s, np.float32) for s in ((2, 3, 2, *(8,) * count), (3, 1, 2, *(3,) * count)))
    ct = np.zeros(value("conv", x, weight, **how).shape, np.float32)
    args, extents = {
        "conv": ((x, weight), {}),
        "conv_input": ((ct, weight), {"space": x.shape[3:]}),
        "conv_weight": ((x, ct), {"kernel": weight.shape[3:]}),
    }[name]
    node = TABLE[name](*map(as_buffer, args), **extents, **how)
    assert isinstance(chosen(node.op.lower, node.attrs, node.inputs), Macro)


@pytest.mark.parametrize("groups", [1, 2])
def test_three_axes_on_the_cpu(groups):
    rng = rng_of("deep", groups)
    x, weight = (rng.standard_normal(s).astype(np.float32) for s in ((2, 4, 5, 6, 7), (6, 4 // groups, 3, 2, 3)))
    how = {"stride": (2, 1, 2), "padding": (1, 0, 2), "dilation": (1, 2, 1), "groups": groups}
    scope = Scope("grad", "test")
    inputs = [mark(as_buffer(array), scope) for array in (x, weight)]
    result = TABLE["conv3d"](*inputs, **how)
    cotangent = rng.standard_normal(result.shape).astype(np.float32)
    nodes = [result, *derive.vjp([result], inputs, scope)([as_buffer(cotangent)])]
    got = realize(nodes, open_backend("cpu"))
    np.testing.assert_allclose(got[0], TABLE["conv3d"].reference(x, weight, **how), rtol=1e-4, atol=1e-4)
    product = float(np.sum(cotangent * got[0], dtype=np.float64))  # linear in each: both gradients give it back
    assert np.sum(got[1] * x, dtype=np.float64) == pytest.approx(product, rel=1e-4, abs=1e-3)
    assert np.sum(got[2] * weight, dtype=np.float64) == pytest.approx(product, rel=1e-4, abs=1e-3)


def test_a_cotangent_must_be_of_the_convolution():
    with pytest.raises(ShapeError, match="has the shape"):
        value("conv_input", np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 1, 2)), space=(4,))
    with pytest.raises(ShapeError, match="have not 4 axes"):
        value("conv_weight", np.zeros((1, 1, 1, 4)), np.zeros((1, 1, 4)), kernel=(2,))


def test_the_kernel_is_not_turned_around():
    x, weight = np.array([[1.0, 2.0, 4.0, 8.0]]), np.array([[[1.0, 0.0, -1.0]]])
    np.testing.assert_array_equal(value("conv1d", x, weight), [[-3.0, -6.0]])


@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_same_keeps_the_extent_and_pads_more_behind(kernel, dilation):
    x = np.zeros((1, 1, 13))
    x[0, 0, 6] = 1.0
    found = value("conv1d", x, np.arange(1.0, kernel + 1)[None, None], padding="same", dilation=dilation)
    assert found.shape == x.shape
    total = dilation * (kernel - 1)
    first = 6 - (total - total // 2)
    np.testing.assert_array_equal(found[0, 0, first : first + total + 1 : dilation], np.arange(kernel, 0, -1.0))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("how", [{"stride": 2}, {"stride": 3, "padding": 1, "dilation": 2}, {"padding": 1}])
def test_a_transposed_convolution_is_the_transpose(groups, how):
    rng = rng_of("transpose", groups, how)
    x, weight = rng.standard_normal((2, 4, 9, 7)), rng.standard_normal((6, 4 // groups, 3, 2))
    forward = value("conv2d", x, weight, groups=groups, **how)
    cotangent = rng.standard_normal(forward.shape)
    back = value("conv_transpose2d", cotangent, weight, groups=groups, **how)
    reached = x[..., : back.shape[2], : back.shape[3]]
    assert np.sum(back * reached) == pytest.approx(np.sum(forward * cotangent))


def test_depthwise_is_one_group_per_channel():
    rng = rng_of("depthwise")
    x, weight = rng.standard_normal((2, 3, 5, 5)), rng.standard_normal((6, 1, 3, 3))
    found = value("depthwise_conv2d", x, weight, stride=2)
    for channel in range(3):
        alone = value("conv2d", x[:, channel : channel + 1], weight[2 * channel : 2 * channel + 2], stride=2)
        np.testing.assert_allclose(found[:, 2 * channel : 2 * channel + 2], alone)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype):
    x = np.ones((1, 1, 3000)).astype(dtype.numpy)
    assert value("conv1d", x, x).item() == pytest.approx(3000, rel=dtype.epsilon)


def test_integers_are_convolved_exactly():
    x = np.array([[[2**60, 1, 2]]])
    np.testing.assert_array_equal(value("conv1d", x, np.array([[[1, 3]]])), [[[2**60 + 3, 7]]])


def test_a_bias_gets_the_sum_of_the_cotangents():
    x, weight, bias = np.ones((2, 1, 3, 3)), np.ones((2, 1, 2, 2)), np.zeros(2)
    np.testing.assert_array_equal(gradient("conv2d", x, weight, bias)[2], [8.0, 8.0])


def _zeros(*shapes):
    return [np.zeros(s, np.float32) for s in shapes]


@pytest.mark.parametrize(
    ("name", "args", "attrs", "message"),
    [
        ("conv2d", _zeros((1, 3, 4, 4), (2, 2, 3, 3)), {}, r"3 channels.*\[2, 2, 3, 3\]"),
        ("conv2d", _zeros((1, 4, 4, 4), (3, 2, 3, 3)), {"groups": 2}, "do not fit in 2 groups"),
        ("conv2d", _zeros((4, 4), (1, 1, 3, 3)), {}, "over 2 axes"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3)), {}, "over 2 axes"),
        ("conv2d", _zeros((1, 1, 2, 2), (1, 1, 3, 3)), {}, "kernel of 3 places.*does not fit 2"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"dilation": 2}, "reaching over 5"),
        ("conv2d", _zeros((1, 1, 0, 4), (1, 1, 1, 1)), {}, "does not fit 0"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"stride": 0}, "stride 0 has a number below 1"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"stride": (1, 1, 1)}, "one per spatial axis"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"stride": 1.5}, "stride 1.5"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"padding": -1}, "negative"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"padding": ((0, 1, 2), 1)}, "padding"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"padding": 0.5}, "padding 0.5"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"padding": "full"}, '"full" is not known'),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"padding": "same", "stride": 2}, "needs stride 1"),
        ("conv2d", _zeros((1, 1, 4, 4), (1, 1, 3, 3)), {"groups": 0}, "groups must be"),
        ("conv1d", _zeros((1, 1, 4), (2, 1, 3), (3,)), {}, r"bias of shape \[3\]"),
        ("conv_transpose2d", _zeros((1, 3, 4, 4), (2, 2, 3, 3)), {}, "3 channels"),
        ("conv_transpose1d", _zeros((1, 2, 4), (2, 2, 3)), {"output_padding": 1}, "output padding"),
        ("conv_transpose1d", _zeros((1, 2, 1), (2, 2, 2)), {"padding": 1}, "does not fit"),
        ("conv", _zeros((1, 1, 4), (1, 1, 3)), {}, "no spatial axis"),
        ("conv", _zeros((1, 2, 1, 4), (1, 1, 1, 3)), {}, "groups and channels"),
    ],
)
def test_what_does_not_fit_is_refused(name, args, attrs, message):
    with pytest.raises(ShapeError, match=message):
        value(name, *args, **attrs)
