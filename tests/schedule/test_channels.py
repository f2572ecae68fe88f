"""Convolutions as array instructions, of copies that several share, against NumPy, on the interpreter of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eshkol.backends import open_backend
from eshkol.backends.blocks import DESCRIPTION
from eshkol.graph import interpret
from eshkol.graph.node import make, topological
from eshkol.ops import dtypes
from eshkol.ops.correlation import conv
from eshkol.schedule.kernels.channels_last import CHANNELS_LAST
from eshkol.schedule.kernels.patches import PATCHES, Patches
from eshkol.schedule.kernels.whole_convolutions import WHOLE_CONVOLUTION
from eshkol.schedule.plan.steps import planned
from eshkol.schedule.rewrite.channels import channels_last
from eshkol.schedule.run import stepwise

from .test_matrix_products import LARGE, MATRICES, numbers
from .test_matrix_windows import products

WHOLE = replace(DESCRIPTION, processors=2, matrices=replace(MATRICES, whole=True))


@pytest.mark.parametrize(("x", "weight", "how", "count"), [
    ((2, 1, 16, 7, 6), (1, 24, 16, 3, 3), {"padding": 1}, 3),
    ((2, 1, 16, 7, 6), (1, 24, 16, 3, 3), {"padding": 1, "stride": 2}, 3),
    ((2, 1, 16, 4, 4), (1, 24, 16, 1, 1), {}, 3),
    ((2, 1, 16, 9, 8), (1, 24, 16, 1, 1), {"stride": (3, 2)}, 3),
    ((2, 1, 3, 9, 8), (1, 16, 3, 5, 3), {"stride": (2, 1), "padding": ((2, 1), (1, 1))}, 2),
    ((2, 1, 16, 20), (1, 16, 16, 5), {"padding": 2, "stride": 2}, 3),
])  # fmt: skip
def test_values_are_the_same(x: tuple[int, ...], weight: tuple[int, ...], how: dict[str, Any], count: int) -> None:
    """Of all three products; towards an input of few channels it is no instruction."""
    nodes = products(numbers(*x), numbers(*weight), **how)
    found = channels_last(nodes, WHOLE)
    assert sum(node.op is WHOLE_CONVOLUTION for node in topological(found)) == count
    leaves = [node for node in topological(nodes) if node.op.name == "buffer"]
    values = stepwise.run(planned(found, leaves, WHOLE), [node.data for node in leaves], open_backend("blocks"))
    for one, other, wanted in zip(values, interpret.evaluate(found), interpret.evaluate(nodes), strict=True):
        np.testing.assert_array_equal(np.asarray(one), wanted)
        np.testing.assert_array_equal(other, wanted)


def test_what_was_copied_once_is_read_by_all() -> None:
    """x and the cotangent by two each; the weight as it is, and turned around."""
    forward, to_x, to_weight = channels_last(
        products(numbers(2, 1, 16, 7, 6), numbers(1, 24, 16, 3, 3), padding=1), WHOLE
    )
    assert forward.inputs[0] is to_weight.inputs[0]
    assert to_x.inputs[0] is to_weight.inputs[1]
    assert sum(node.op is CHANNELS_LAST for node in topological([forward, to_x, to_weight])) == 4


@pytest.mark.parametrize(("x", "weight", "how"), [
    ((2, 2, 16, 7, 6), (2, 24, 16, 3, 3), {}), ((2, 1, 5, 7, 6), (1, 24, 5, 1, 1), {}),
    ((1, 1, 16, 3, 4, 5), (1, 16, 16, 2, 2, 2), {}), ((2, 1, 3, 7, 6), (1, 20, 3, 3, 3), {}),
    ((2, 1, 16, 7, 9), (1, 24, 16, 3, 3), {"input_dilation": 2}),
])  # fmt: skip
def test_others_stay_as_they_are(x: tuple[int, ...], weight: tuple[int, ...], how: dict[str, Any]) -> None:
    """Groups, three axes, channels and outs that fill no chunks, inputs that are spread; and other machines' ones."""
    node = conv(numbers(*x), numbers(*weight), **how)
    assert channels_last([node], WHOLE) == [node]
    plain = conv(numbers(2, 1, 16, 7, 6), numbers(1, 24, 16, 3, 3))
    assert channels_last([plain], LARGE) == [plain]


def test_patches() -> None:
    """What rows of windows see, with zeros around, and behind it up to whole chunks."""
    image = numbers(2, 1, 3, 6, 7, dtype=dtypes.bfloat16)
    how = Patches(image.shape, (3, 5), (4, 3), (2, 2), (1, 2))
    wanted = np.zeros((2, 5, 3, 32), np.float32)
    for n, y, x, v, u, c in np.ndindex(2, 5, 3, 2, 5, 3):
        row, column = 2 * y + v - 1, 2 * x + u - 2
        if 0 <= row < 6 and 0 <= column < 7:
            wanted[n, y, x, (v * 5 + u) * 3 + c] = image.data[n, 0, c, row, column]
    node = make(PATCHES, (image,), how)
    values = stepwise.run(planned([node], [image], WHOLE), [image.data], open_backend("blocks"))
    for found in (*values, *interpret.evaluate([node])):
        np.testing.assert_array_equal(np.asarray(found).astype(np.float32), wanted.reshape(30, 32))
