"""Attention of 16-bit floats and its gradients in fragments, against the CPU and NumPy, on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.graph.node import Node, buffer, make, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import cast
from eshkol.ops.structural import PICK, Pick
from eshkol.schedule.kernels.attention import (
    ATTENTION_GRADIENTS,
    SEEN_ATTENTION,
    SUMMED_ATTENTION,
    AttentionGradients,
    SeenAttention,
)
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.products import View
from eshkol.schedule.rewrite import attention as rewriting

from .test_matrix_products import LARGE
from .trust import trusted

CLOSE = {"bfloat16": 0.02, "float16": 0.004}  # of the largest result


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def computed(device: str, function: Any, given: list[Any], dtype: str) -> list[Any]:
    with ek.device(device):
        found = ek.jit(function)(*(ek.tensor(x, dtype=dtype) for x in given))
        return [x.numpy().astype(np.float64) for x in (found if isinstance(found, tuple) else (found,))]


def agrees(function: Any, given: list[Any], dtype: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Compare a function with the CPU; the ops of attention that its graphs then have."""
    seen: set[str] = set()
    original = rewriting._Rebuilding.of

    def of(self: Any, results: Any) -> Any:
        found = original(self, results)
        seen.update(node.op.name for node in topological(found) if "attention" in node.op.name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(rewriting._Rebuilding, "of", of)
        found = computed("blocks", function, given, dtype)
    for one, wanted in zip(found, computed("cpu", function, given, dtype), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=0, atol=CLOSE[dtype] * np.abs(wanted).max())
    return seen


@examples(40, 5)
@given(
    lengths=st.tuples(st.integers(1, 70), st.integers(2, 70)), width=st.sampled_from([8, 16, 24, 72]),
    causal=st.booleans(), turned=st.booleans(), dtype=st.sampled_from(sorted(CLOSE)),
)  # fmt: skip
def test_any_size(lengths: tuple[int, int], width: int, causal: bool, turned: bool, dtype: str) -> None:
    """Heads where they lie, beside each other too, of any lengths; the result and, where it is needed, gradients."""
    queries, keys = lengths

    def attend(q: Any, k: Any, v: Any) -> Any:
        given = (x.permute(0, 2, 1, 3) if turned else x for x in (q, k, v))
        return ek.scaled_dot_product_attention(*given, causal=causal)

    given = arrays(*((1, n, 2, width) if turned else (1, 2, n, width) for n in (queries, keys, keys)))
    with pytest.MonkeyPatch.context() as patch:
        assert agrees(attend, given, dtype, patch) == {"seen_attention"}


@pytest.mark.parametrize(
    ("shape", "keys", "causal", "turned", "dtype"),
    [
        ((2, 2, 33, 16), 33, True, True, "bfloat16"), ((1, 1, 20, 32), 40, False, False, "float16"),
        ((1, 1, 24, 72), 20, True, False, "bfloat16"),
    ],
)  # fmt: skip
def test_gradients(
    shape: tuple[int, int, int, int], keys: int, causal: bool, turned: bool, dtype: str, monkeypatch: Any
) -> None:
    """Of all three in one graph with the result, as training has them; some of them; without the result."""
    batch, heads, queries, width = shape

    def attend(*given: Any) -> Any:
        seen = (x.permute(0, 2, 1, 3) if turned else x for x in given)
        return ek.scaled_dot_product_attention(*seen, causal=causal)

    def weighed(q: Any, k: Any, v: Any, c: Any) -> Any:
        return (attend(q, k, v) * c).sum()

    def trained(q: Any, k: Any, v: Any, c: Any) -> Any:
        return attend(q, k, v), *ek.grad(weighed, (0, 1, 2))(q, k, v, c)

    sizes = [(batch, n, heads, width) if turned else (batch, heads, n, width) for n in (queries, keys, keys)]
    given = arrays(*sizes, (batch, heads, queries, width))
    both = {"summed_attention", "attention_gradients"}
    assert agrees(trained, given, dtype, monkeypatch) == both
    assert agrees(lambda *x: ek.grad(weighed, (0, 2))(*x), given, dtype, monkeypatch) == both


@pytest.mark.parametrize(("heads", "causal"), [((4, 2), True), ((3, 1), False)])
def test_heads_that_share_keys(heads: tuple[int, int], causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are read where they lie for each head."""
    given = arrays((1, heads[0], 20, 16), *[(1, heads[1], 24, 16)] * 2)

    def attend(q: Any, k: Any, v: Any) -> Any:
        return ek.scaled_dot_product_attention(q, k, v, causal=causal)

    assert agrees(attend, given, "bfloat16", monkeypatch) == {"seen_attention"}


def test_gradients_of_keys_that_heads_share_are_left_to_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so are windows."""
    given = arrays((2, 9, 16), *[(1, 9, 16)] * 2)

    def trained(q: Any, k: Any, v: Any) -> Any:
        return ek.grad(lambda k: (ek.scaled_dot_product_attention(q, k, v) ** 2).sum())(k)

    assert agrees(trained, given, "bfloat16", monkeypatch) == set()
    assert agrees(lambda q: ek.attention(q, q, q, window=3), given[:1], "bfloat16", monkeypatch) == set()


def test_scores_that_are_no_numbers_and_huge_ones() -> None:
    """NaN in a query or a key is NaN in every result that sees it, and in no other; large scores do not overflow."""
    q, k, v = (x.astype(dtypes.bfloat16.numpy) for x in arrays((1, 1, 20, 16), (1, 1, 20, 16), (1, 1, 20, 16)))
    q[0, 0, 3, 0], k[0, 0, 10, 2] = np.nan, np.nan
    with ek.device("blocks"):
        causal = ek.scaled_dot_product_attention(*map(ek.tensor, (q, k, v)), causal=True).numpy()
        large = ek.scaled_dot_product_attention(*(ek.tensor(x * 100) for x in arrays(*[(1, 1, 20, 16)] * 3)))
        assert np.isfinite(large.numpy().astype(np.float32)).all()
    broken = np.isnan(causal.astype(np.float32)).all(-1)[0, 0]
    np.testing.assert_array_equal(broken, (np.arange(20) == 3) | (np.arange(20) >= 10))
    assert np.isfinite(causal[0, 0, ~broken].astype(np.float32)).all()


def test_what_is_left_to_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are asked for, other masks, rows that are no whole chunks, heads that are too wide, float32."""
    q = arrays((1, 2, 17, 16))[0]
    masked = np.tri(17, dtype=bool)[None]

    def both(q: Any) -> Any:
        return ek.scaled_dot_product_attention(q, q, q), ek.attention_weights(q, q)

    def with_mask(q: Any) -> Any:
        return ek.scaled_dot_product_attention(q, q, q, ek.tensor(masked))

    def alone(q: Any) -> Any:
        return ek.scaled_dot_product_attention(q, q, q)

    assert agrees(both, [q], "bfloat16", monkeypatch) == set()
    assert agrees(with_mask, [q], "bfloat16", monkeypatch) == set()
    assert agrees(alone, [q[..., :12]], "bfloat16", monkeypatch) == set()
    assert agrees(alone, arrays((1, 1, 9, 136)), "float16", monkeypatch) == set()
    assert agrees(alone, [q], "bfloat16", monkeypatch) == {"seen_attention"}


def zeros(*shape: int) -> Node:
    return buffer(np.zeros(shape, dtypes.bfloat16.numpy), dtypes.bfloat16)


@pytest.mark.parametrize("width", [64, 128])
def test_kernels_of_a_gpu(width: int) -> None:
    """Registers and memory suffice, and nothing is checked."""
    for queries, keys, causal in ((512, 512, False), (500, 333, True)):
        q, k, v = zeros(2, 3, queries, width), zeros(2, 3, keys, width), zeros(2, 3, keys, width)
        attrs = SeenAttention(*(View.of(x.shape) for x in (q, k, v)), 0.125, causal)
        summed = make(SUMMED_ATTENTION, (q, k, v), attrs)
        result, sums = (make(PICK, (summed,), Pick(n)) for n in range(2))
        inner = TABLE["sum"](cast(result, dtypes.float32), -1)
        gradients = AttentionGradients(attrs, View.of(q.shape))
        nodes = (
            make(SEEN_ATTENTION, (q, k, v), attrs), summed,
            make(ATTENTION_GRADIENTS, (q, k, v, result, sums, inner), gradients),
        )  # fmt: skip
        for node in nodes:
            found: Any = lowered(node, LARGE)
            for kernel in found if isinstance(found, tuple) else (found,):
                assert trusted(kernel)
                assert kernel.launch is not None
                assert kernel.launch.shared_memory <= 96 << 10
