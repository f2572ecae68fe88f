"""Summaries: shapes, parameters, operations and bytes, against what they are known to be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol import nn
from eshkol.errors import ShapeError
from eshkol.tensors.work import operations


def small() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.5), nn.Flatten(),
        nn.Sequential(nn.Linear(16, 5), nn.LayerNorm(5)),
    )  # fmt: skip


def test_rows_and_totals() -> None:
    model = small()
    model[6][0].bias.requires_grad_(False)
    found = model.summary((2, 3, 4, 4))
    assert [r.name for r in found.rows] == ["", "0", "1", "2", "3", "4", "5", "6", "6.0", "6.1"]
    assert [r.depth for r in found.rows][-3:] == [1, 2, 2]
    assert found.row("0").output_shapes == [(2, 4, 4, 4)]
    assert found.row("0").flops == 2 * 128 * 27 + 128
    assert found.row("2").flops == 128
    assert found.row("6.0").flops == 2 * 2 * 5 * 16 + 10
    assert found.row("6.0").input_shapes == [(2, 16)]
    assert found.flops == sum(r.flops for r in found.rows if r.is_leaf)
    assert (found.parameters, found.trainable) == (112 + 8 + 85 + 10, 210)
    assert found.parameter_bytes == 4 * found.parameters
    assert found.buffer_bytes == 4 * 8 + 8
    assert found.input_bytes == 4 * 96
    assert found.output_bytes == 4 * (128 * 3 + 32 * 3 + 20)
    assert model.training
    assert model[1].num_batches_tracked.item() == 0  # nothing was computed


def test_the_table() -> None:
    text = str(small().summary((2, 3, 4, 4)))
    for said in ("output shape", "0: Conv2d", "(2, 4, 4, 4)", "215", "parameters: 215 (215 trainable, 0 fixed)"):
        assert said in text
    assert "FLOPs" not in str(small().summary())


def test_inputs_of_other_kinds() -> None:
    found = nn.Embedding(10, 3).summary((2, 5), dtype="int64")
    assert found.rows[0].output_shapes == [(2, 5, 3)]
    assert nn.Embedding(10, 3).summary(ek.tensor([1, 2])).rows[0].output_shapes == [(2, 3)]
    assert nn.Bilinear(2, 3, 4).summary([(5, 2), (5, 3)]).rows[0].output_shapes == [(5, 4)]
    with pytest.raises(ShapeError, match="the batch"):
        nn.Linear(2, 3).summary(2)
    with pytest.raises(ShapeError, match="2 inputs and 1 dtypes"):
        nn.Bilinear(2, 3, 4).summary((5, 2), (5, 3), dtype=["float32"])


def test_a_layer_that_is_called_twice() -> None:
    layer = nn.Linear(3, 3)
    found = nn.Sequential(layer, nn.ReLU(), layer).summary((1, 3))
    assert found.row("0").calls == 2
    assert found.parameters == 12


def test_operations_of_loops_and_branches() -> None:
    x = ek.tensor([1.0, 2.0, 3.0])
    summed, _ = ek.scan(lambda c, v: (c + v * v, c), ek.zeros(()), x)
    assert operations([summed]) == 3 * 2
    assert operations([ek.cond(x[0] > 0, lambda v: v + 1, lambda v: v * v * v, x)]) == 6
    assert operations([ek.cast(x, "float64").reshape((3, 1))]) == 0
    assert operations([x * x + 1], [x]) == 6


SIZES = st.integers(1, 3)


@examples(60, 3)
@given(
    st.integers(5, 12), st.integers(5, 12), SIZES, SIZES, st.integers(0, 2), st.integers(1, 2), st.sampled_from([1, 2])
)
def test_shapes_of_convolutions_and_pooling(h: int, w: int, k: int, s: int, p: int, d: int, groups: int) -> None:
    def extent(n: int, dilation: int = 1, padding: int = p) -> int:
        return (n + 2 * padding - dilation * (k - 1) - 1) // s + 1

    layer: Any = nn.Conv2d(4, 6, k, s, p, d, groups)
    row = layer.summary((2, 4, h, w)).rows[0]
    out = (2, 6, extent(h, d), extent(w, d))
    assert row.output_shapes == [out]
    assert row.flops == 2 * out[2] * out[3] * 6 * (2 * (4 // groups) * k * k + 1)
    padding = min(p, k // 2)
    for pool in (nn.MaxPool2d(k, s, padding), nn.AvgPool2d(k, s, padding)):
        found = pool.summary((2, 4, h, w)).rows[0].output_shapes
        assert found == [(2, 4, extent(h, padding=padding), extent(w, padding=padding))]
    back = nn.ConvTranspose2d(6, 4, k, s, min(p, k - 1), dilation=d).summary(out).rows[0].output_shapes
    reach = d * (k - 1) + 1 - 2 * min(p, k - 1)
    assert back == [(2, 4, (out[2] - 1) * s + reach, (out[3] - 1) * s + reach)]
