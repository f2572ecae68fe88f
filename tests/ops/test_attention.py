"""Attention beyond its samples: masks, shared heads, extreme scores, errors; and what rotary embeddings keep."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from op_harness import rng_of

import eshkol as ek
from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.jax import nn

ATTENTION = "scaled_dot_product_attention"


def drawn(*shapes):
    rng = rng_of("attention", shapes)
    return [rng.standard_normal(s) for s in shapes]


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_query_that_may_attend_to_nothing_gets_zeros(kind):
    q, k, v = drawn((2, 3), (4, 3), (4, 2))
    mask = np.array([[True, False, True, True], [False] * 4])
    if kind == "float":
        mask = np.where(mask, 0.0, -np.inf)
    found = value(ATTENTION, q, k, v, mask)
    np.testing.assert_array_equal(found[1], [0.0, 0.0])
    np.testing.assert_allclose(found[:1], value(ATTENTION, q[:1], k[[0, 2, 3]], v[[0, 2, 3]]))
    for_q, for_k, for_v, *_ = gradient(ATTENTION, q, k, v, mask)
    np.testing.assert_array_equal(for_q[1], np.zeros(3))
    np.testing.assert_array_equal(for_k[1], np.zeros(3))
    np.testing.assert_array_equal(for_v[1], np.zeros(2))
    assert all(np.all(np.isfinite(g)) for g in (for_q, for_k, for_v))


def test_what_is_masked_has_no_influence():
    q, k, v = drawn((2, 3), (4, 3), (4, 2))
    mask = np.array([True, True, False, True])
    found = value(ATTENTION, q, k, v, mask)
    k[2], v[2] = 1e30, -7.0
    np.testing.assert_array_equal(value(ATTENTION, q, k, v, mask), found)


@pytest.mark.parametrize(("queries", "keys"), [(3, 3), (2, 4), (4, 2)])
def test_causal_is_aligned_at_the_first_query_and_key(queries, keys):
    q, k, v = drawn((queries, 3), (keys, 3), (keys, 2))
    found = value(ATTENTION, q, k, v, causal=True)
    for t in range(queries):
        seen = min(t + 1, keys)
        np.testing.assert_allclose(found[t : t + 1], value(ATTENTION, q[t : t + 1], k[:seen], v[:seen]))
    np.testing.assert_allclose(found, value(ATTENTION, q, k, v, np.tril(np.ones((queries, keys), bool))))


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_is_a_mask_of_what_is_near(causal):
    q, k, v = drawn((5, 3), (4, 3), (4, 2))
    apart = np.arange(5)[:, None] - np.arange(4)
    near = (abs(apart) < 2) & (apart >= 0) if causal else abs(apart) < 2
    found = value(ATTENTION, q, k, v, causal=causal, window=2)
    np.testing.assert_allclose(found, value(ATTENTION, q, k, v, near))
    np.testing.assert_allclose(value("attention_weights", q, k, window=2) > 0, abs(apart) < 2)
    for wrong in (0, -1, 2.0, True):
        with pytest.raises(ShapeError, match="a window is of at least one place"):
            value(ATTENTION, q, k, v, window=wrong)


def test_heads_are_shared_as_if_keys_and_values_were_repeated():
    q, k, v, mask = drawn((2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (6, 3, 5))
    repeated = [np.repeat(x, 3, axis=1) for x in (k, v)]
    np.testing.assert_allclose(value(ATTENTION, q, k, v, mask), value(ATTENTION, q, *repeated, mask))
    one = value(ATTENTION, q, k[:, :1], v[:, :1], mask)
    np.testing.assert_allclose(one, value(ATTENTION, q, *(np.repeat(x[:, :1], 6, axis=1) for x in (k, v)), mask))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1e2, -1e2])
def test_great_scores_are_no_trouble(dtype, size):
    """Products of ±1e4 and more: the greatest takes all."""
    q = np.array([[size, size]], dtype)
    k = np.array([[1.0, 1.0], [-1.0, -1.0], [50.0, 50.0]], dtype) * dtype(2)
    v = np.array([[1.0], [2.0], [3.0]], dtype)
    assert value(ATTENTION, q, k, v).item() == (3.0 if size > 0 else 2.0)
    assert all(np.all(np.isfinite(g)) for g in gradient(ATTENTION, q, k, v))


def test_without_keys_there_are_zeros():
    q, k, v = drawn((2, 3), (0, 3), (0, 4))
    np.testing.assert_array_equal(value(ATTENTION, q, k, v), np.zeros((2, 4)))


def test_nan_is_not_hidden_by_a_mask_of_nan():
    q, k, v = drawn((1, 2), (2, 2), (2, 2))
    assert np.all(np.isnan(value(ATTENTION, q, k, v, np.array([[0.0, np.nan]]))))


def test_a_layer_with_unit_projections_is_attention_of_its_heads():
    (x,) = drawn((2, 3, 4))
    unit = np.eye(4)
    found = value("multi_head_self_attention", x, 2, unit, unit, unit, unit, causal=True)
    heads = np.moveaxis(x.reshape(2, 3, 2, 2), 2, 1)
    wanted = value(ATTENTION, heads, heads, heads, causal=True)
    np.testing.assert_allclose(found, np.moveaxis(wanted, 1, 2).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3), (4, 2), (4, 2)), "queries of 3 and keys of 2"),
        (((2, 3), (4, 3), (5, 2)), "4 keys and 5 values"),
        (((3,), (4, 3), (4, 2)), "two axes"),
        (((3, 2, 4), (2, 2, 4), (2, 2, 4)), "3 query heads do not share 2"),
        (((4, 2, 4), (2, 2, 4), (4, 2, 4)), "4 value heads"),
        (((2, 3), (4, 3), (4, 2), (3, 4)), r"mask of shape \[3, 4\]|do not broadcast"),
        (((2, 3), (4, 3), (4, 2), (5, 2, 4)), r"mask of shape \[5, 2, 4\]"),
    ],
)
def test_what_does_not_fit_is_refused(shapes, message):
    with pytest.raises(ShapeError, match=message):
        value(ATTENTION, *(np.zeros(s) for s in shapes))


KEY = np.array([3, 4], np.uint32)


def attended(*given, **how):
    """Arrays by name too: in the order in which the op takes them."""
    defaults = {"mask": None, "causal": False, "scale": None, "window": None, "dropout": 0.0, "dropout_key": None,
                "key_lengths": None, "offsets": None}  # fmt: skip
    return value(ATTENTION, *given, *(defaults | how).values())


def test_dropout_leaves_out_weights_and_keeps_their_mean():
    """Those that its key says, whatever the values are; all of them, or none, where that is the probability."""
    q, k = drawn((2, 40, 4), (2, 100, 4))
    ones, one = np.ones((2, 100, 1)), np.zeros((2, 100, 100)) + np.eye(100)
    weights = value("attention_weights", q, k)
    dropped = attended(q, k, one, dropout=0.25, dropout_key=KEY)
    np.testing.assert_allclose(dropped, np.where(dropped == 0, 0, weights / 0.75), rtol=1e-5)
    assert abs((dropped == 0).mean() - 0.25) < 0.02
    assert abs(attended(q, k, ones, dropout=0.25, dropout_key=KEY).mean() - 1) < 0.02
    np.testing.assert_array_equal(attended(q, k, one, dropout=1.0, dropout_key=KEY), 0 * dropped)
    np.testing.assert_allclose(attended(q, k, one, dropout=0.0), weights, rtol=1e-6)
    assert (attended(q, k, one, dropout=1e-6, dropout_key=KEY) == 0).any()  # no less than one of 256


def test_lengths_and_offsets_are_masks():
    q, k, v = drawn((3, 2, 7, 4), (3, 2, 7, 4), (3, 2, 7, 4))
    lengths, offsets = np.array([7, 0, 3]), np.array([0, 2, 6])
    there = np.arange(7) < lengths[:, None, None, None]
    np.testing.assert_allclose(attended(q, k, v, key_lengths=lengths), attended(q, k, v, mask=there))
    found = attended(q, k, v, causal=True, offsets=offsets)
    for begin, end in ((0, 2), (2, 6)):
        parts = (x[:, :, begin:end] for x in (q, k, v))
        np.testing.assert_allclose(found[:, :, begin:end], attended(*parts, causal=True), rtol=1e-6)
    np.testing.assert_array_equal(found[:, :, 6], 0)  # beyond the last sequence


def test_jax_says_lengths_too():
    x = np.arange(12.0, dtype=np.float32).reshape(2, 3, 1, 2)
    found = nn.dot_product_attention(x, x, x, key_value_seq_lengths=np.array([1, 3])).numpy()
    np.testing.assert_array_equal(found[0], np.broadcast_to(x[0, :1], x[0].shape))
    np.testing.assert_allclose(found[1:], nn.dot_product_attention(x[1:], x[1:], x[1:]).numpy())


def test_pages_are_keys_side_by_side():
    query, keys, values = drawn((2, 4, 1, 8), (6, 4, 2, 8), (6, 4, 2, 8))
    table, lengths = np.array([[5, 0, 2], [3, -1, -1]]), np.array([10, 4])
    found = value("paged_attention", query, keys, values, table, lengths)
    for n, length in enumerate(lengths):
        given = (np.concatenate(x[table[n]])[:length].swapaxes(0, 1) for x in (keys, values))
        np.testing.assert_allclose(found[n], value(ATTENTION, query[n], *given), rtol=1e-5)
    for wrong in (-1, 6):  # of a page that is looked at
        with pytest.raises(TensorError, match="out of range"):
            ek.paged_attention(*map(ek.tensor, (query, keys, values, np.full((2, 3), wrong), lengths))).numpy()
    with pytest.raises(ShapeError, match="each sample a row and a length"):
        value("paged_attention", query, keys, values, table[:1], lengths)
    with pytest.raises(DTypeError, match="the table of paged attention"):
        value("paged_attention", query, keys, values, table * 1.0, lengths)


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"dropout": 0.5}, TensorError, "takes a key"), ({"dropout": 1.5, "dropout_key": KEY}, TensorError, "from 0 to 1"),
    ({"dropout": True}, TensorError, "from 0 to 1"), ({"key_lengths": np.zeros(2)}, DTypeError, "are integers"),
    ({"key_lengths": np.zeros(3, int)}, ShapeError, "one for each sample"),
    ({"offsets": np.zeros((2, 2), int)}, DTypeError, "along one axis"),
    ({"offsets": np.array([0, 2])}, ShapeError, "3 queries and 5 keys"),
])  # fmt: skip
def test_dropout_and_lengths_that_do_not_fit_are_refused(given, error, message):
    q, k = np.zeros((2, 1, 3, 4)), np.zeros((2, 1, 5, 4))
    with pytest.raises(error, match=message):
        attended(q, k, k, **given)


def test_other_refusals():
    q = np.zeros((2, 4))
    with pytest.raises(DTypeError, match="mask is of bools"):
        value(ATTENTION, q, q, q, np.zeros((2, 2), np.int64))
    with pytest.raises(DTypeError, match="complex"):
        value(ATTENTION, q, q, q.astype(np.complex64))
    unit = np.eye(4)
    with pytest.raises(ShapeError, match="are not 3 heads"):
        value("multi_head_attention", q, q, q, 3, unit, unit, unit, unit)
    with pytest.raises(ShapeError, match="positive integer"):
        value("multi_head_attention", q, q, q, 0, unit, unit, unit, unit)
    with pytest.raises(ShapeError, match="query weight of shape"):
        value("multi_head_attention", q, q, q, 2, np.eye(3), unit, unit, unit)


# --- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [True, False])
def test_rotary_products_depend_on_distances_alone(interleaved):
    q, k = drawn((1, 6), (1, 6))

    def at(x, position):
        angles = (position / 100 ** (np.arange(3) / 3))[None]
        return value("rotary_embedding", x, angles, interleaved=interleaved)

    products = [np.sum(at(q, n + 4) * at(k, n)) for n in (0, 3, 50)]
    np.testing.assert_allclose(products, products[0])
    np.testing.assert_allclose(np.linalg.norm(at(q, 7)), np.linalg.norm(q))


def test_a_pair_is_two_neighbours_or_two_halves():
    x, quarter = np.array([1.0, 2.0, 3.0, 4.0]), np.array([np.pi / 2, 0.0])
    np.testing.assert_allclose(value("rotary_embedding", x, quarter), [-2.0, 1.0, 3.0, 4.0])
    np.testing.assert_allclose(value("rotary_embedding", x, quarter, interleaved=False), [-3.0, 2.0, 1.0, 4.0])


def test_rotary_refusals():
    with pytest.raises(ShapeError, match="two elements for each angle"):
        value("rotary_embedding", np.zeros((3, 5)), np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="do not broadcast"):
        value("rotary_embedding", np.zeros((3, 4)), np.zeros((2, 3, 2)))
