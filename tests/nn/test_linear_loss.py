"""The cross entropy of a linear layer in chunks of rows against the plain form, and what it needs of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.nn import functional as F
from eshkol.nn import linear_loss

N, D, V = 12, 4, 10


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few rows at a time, on the machine on which nothing has to be compiled."""
    monkeypatch.setattr(linear_loss, "LOGITS", 8 * V)  # rows at a time: 8, 4
    with ek.device("reference"):
        yield


def given(dtype: str = "float32") -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shapes = (N, D), (V, D), (V,), (V,)
    x, matrix, bias, weight = (ek.tensor(rng.normal(size=s).astype(np.float32), dtype=dtype) for s in shapes)
    y = rng.integers(0, V, N)
    y[[3, 9]] = -100
    return x, matrix, bias, abs(weight) + 0.1, ek.tensor(y)


@pytest.mark.parametrize(
    ("reduction", "how"),
    [("mean", "plain"), ("sum", "biased"), ("none", "biased"), ("mean", "weighted, smooth")],
)
def test_it_is_the_plain_form(reduction: str, how: str) -> None:
    x, matrix, bias, weight, y = given()
    others: dict[str, Any] = {"biased": {"linear_bias": bias}}.get(how, {})
    if how == "weighted, smooth":
        others = {"weight": weight, "linear_bias": bias}
    smooth = 0.1 if "smooth" in how else 0.0
    slope = ek.tensor(np.linspace(-1, 2, N).astype(np.float32)) if reduction == "none" else 2.0

    def chunked(x: Any, matrix: Any, others: Any) -> Any:
        loss = F.linear_cross_entropy(x, matrix, y, reduction=reduction, label_smoothing=smooth, **others)
        return (loss * slope).sum()

    def plain(x: Any, matrix: Any, others: Any) -> Any:
        logits = ek.linear(x, matrix, others.get("linear_bias"))
        loss = ek.cross_entropy(logits, y, others.get("weight"), reduction=reduction, label_smoothing=smooth)
        return (loss * slope).sum()

    found, wanted = (_leaves(ek.jit(ek.value_and_grad(f, (0, 1, 2)))(x, matrix, others)) for f in (chunked, plain))
    assert len(found) == len(wanted) == 3 + len(others)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-5, atol=2e-6)


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x)]
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, tuple | list) else [x]


def test_half_precision_is_summed_in_single_precision() -> None:
    x, matrix, bias, _, y = given("bfloat16")

    def loss(x: Any, matrix: Any, bias: Any) -> Any:
        return F.linear_cross_entropy(x, matrix, y, linear_bias=bias)

    found = _leaves(ek.jit(ek.value_and_grad(loss, (0, 1, 2)))(x, matrix, bias))
    assert {str(one.dtype) for one in found} == {"bfloat16"}
    wide = [ek.cast(t, "float32") for t in (x, matrix, bias)]
    wanted = _leaves(ek.value_and_grad(lambda x, m, b: ek.cross_entropy(ek.linear(x, m, b), y), (0, 1, 2))(*wide))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.astype("float32").numpy(), other.numpy(), rtol=0.02, atol=0.01)


def test_leading_axes_and_backward() -> None:
    x, matrix, _, _, y = given()
    matrix.requires_grad_()
    loss = F.linear_cross_entropy(x.reshape(2, 6, D), matrix, y.reshape(2, 6))
    loss.backward()
    plain = ek.grad(lambda m: ek.cross_entropy(x @ m.T, y))(matrix.detach())
    np.testing.assert_allclose(matrix.grad.numpy(), plain.numpy(), rtol=2e-5, atol=2e-6)


def test_logits_are_never_all_there() -> None:
    rng = np.random.default_rng(1)
    rows, classes = 64, 128
    x, matrix = (ek.tensor(rng.normal(size=s).astype(np.float32)) for s in ((rows, 4), (classes, 4)))
    y = ek.tensor(rng.integers(0, classes, rows))
    linear_loss.LOGITS = 4 * classes  # `monkeypatch` puts back what was there before all
    wholes = [
        ek.memory_report(ek.jit(f), x, matrix, y).arena
        for f in (ek.value_and_grad(F.linear_cross_entropy, (0, 1)), F.linear_cross_entropy)
    ]
    logits, chunk = 4 * rows * classes, 4 * 4 * classes
    assert wholes[0] < 6 * chunk < logits
    assert wholes[1] < 3 * chunk


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"input": (N, D + 1)}, "classes, features"), ({"target": (N - 1,)}, "a class for each row"),
        ({"linear_bias": (V + 1,)}, "have a bias each"), ({"reduction": "most"}, "no reduction 'most'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], said: str) -> None:
    x, matrix, _, _, y = given()
    made = {"input": x, "linear_weight": matrix, "target": y}
    for name, value in change.items():
        made[name] = value if isinstance(value, str) else ek.zeros(value, dtype="int64" if name == "target" else None)
    with pytest.raises(ek.EshkolError, match=said):
        F.linear_cross_entropy(**made)


def test_probabilities_are_refused() -> None:
    x, matrix, *_ = given()
    with pytest.raises(ek.EshkolError, match="are classes"):
        F.linear_cross_entropy(x, matrix, ek.zeros((N, V)))
