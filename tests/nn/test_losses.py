"""Losses: those PyTorch does not have, those made of others, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import DTypeError, EshkolError, IndexOutOfRange

LOGITS = np.random.default_rng(0).normal(size=(4, 3))
LABELS = np.array([0, 2, 1, 1])


def each_cross_entropy() -> Any:
    return np.log(np.exp(LOGITS).sum(1)) - LOGITS[np.arange(4), LABELS]


def test_weighted_loss_counts_samples_by_their_weights() -> None:
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    given = ek.tensor(LOGITS), ek.tensor(LABELS), ek.tensor(weights)
    each = each_cross_entropy() * weights
    for how, expected in (("mean", each.sum() / weights.sum()), ("sum", each.sum()), ("none", each)):
        found = nn.WeightedLoss(nn.CrossEntropyLoss(), how)(*given)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    whole = nn.WeightedLoss(nn.MSELoss())(ek.tensor(LOGITS), ek.zeros((4, 3), dtype="float64"), ek.ones((4,)))
    np.testing.assert_allclose(whole.numpy(), (LOGITS**2).mean(), rtol=1e-12)


def test_combined_loss_is_a_weighted_sum() -> None:
    x, y = ek.tensor(LOGITS), ek.zeros((4, 3), dtype="float64")
    loss = nn.CombinedLoss({"near": (2.0, nn.MSELoss()), "small": (0.5, lambda a, b: ek.mean(ek.absolute(a)))})
    np.testing.assert_allclose(loss(x, y).numpy(), 2 * (LOGITS**2).mean() + 0.5 * np.abs(LOGITS).mean(), rtol=1e-12)
    assert list(loss.parts(x, y)) == ["near", "small"]
    listed = nn.CombinedLoss([nn.MSELoss(), nn.L1Loss()], weights=[1.0, 3.0])
    np.testing.assert_allclose(listed(x, y).numpy(), (LOGITS**2).mean() + 3 * np.abs(LOGITS).mean(), rtol=1e-12)


def test_focal_and_hinge_losses() -> None:
    target = np.array([1.0, 0.0, 1.0])
    x = np.array([0.3, -1.0, 2.0])
    chance = np.where(target == 1, 1 / (1 + np.exp(-x)), 1 - 1 / (1 + np.exp(-x)))
    found = nn.FocalLoss(gamma=1.5, alpha=None, reduction="sum")(ek.tensor(x), ek.tensor(target))
    np.testing.assert_allclose(found.numpy(), (-np.log(chance) * (1 - chance) ** 1.5).sum(), rtol=1e-12)
    hinge = nn.HingeLoss(reduction="none")(ek.tensor(x), ek.tensor(target * 2 - 1))
    np.testing.assert_allclose(hinge.numpy(), [0.7, 0.0, 0.0])


def test_weights_of_classes_are_part_of_the_state() -> None:
    loss = nn.CrossEntropyLoss(weight=np.array([1.0, 2.0, 3.0]))
    assert list(loss.state_dict()) == ["weight"]
    assert nn.CrossEntropyLoss().state_dict() == {}


def test_stable_at_extreme_logits() -> None:
    far = ek.tensor(np.array([[1e4, -1e4], [-1e4, 1e4]]), requires_grad=True)
    loss = nn.CrossEntropyLoss()(far, ek.tensor([1, 1]))
    loss.backward()
    assert loss.item() == 1e4
    np.testing.assert_array_equal(far.grad.numpy(), [[0.5, -0.5], [0.0, 0.0]])
    binary = nn.BCEWithLogitsLoss(reduction="none")(ek.tensor([1e4, -1e4]), ek.tensor([0.0, 0.0]))
    np.testing.assert_array_equal(binary.numpy(), [1e4, 0.0])


FLOATS = ek.ones((3,)) * 0.5
MISUSES: list[tuple[Any, Any, Any, str]] = [
    (nn.CrossEntropyLoss(), (LOGITS, np.array([0, 1, 2, 3])), IndexOutOfRange, "is class 3, and there are 3 classes"),
    (nn.CrossEntropyLoss(), (LOGITS, np.array([0, 1, 2, -1])), IndexOutOfRange, "is class -1"),
    (nn.CrossEntropyLoss(), (LOGITS, LABELS * 1.0), DTypeError, "class ids, which are integers, not float64"),
    (nn.CrossEntropyLoss(), (LOGITS, np.eye(3)[LABELS].astype(int)), EshkolError, "not one-hot"),
    (nn.CrossEntropyLoss(), (LABELS, LABELS), DTypeError, "predictions are floats"),
    (nn.CrossEntropyLoss(), (LOGITS, LABELS[:3]), EshkolError, r"class ids have shape \[4\], not \[3\]"),
    (nn.NLLLoss(), (LOGITS, LABELS * 1.0), DTypeError, "which are integers"),
    (nn.BCELoss(), (FLOATS, np.array([0, 1, 1])), DTypeError, "targets are floats"),
    (nn.BCEWithLogitsLoss(), (FLOATS, np.array([0.0, 2.0, 1.0])), EshkolError, "from 0 to 1"),
    (nn.MSELoss(), (FLOATS, np.array([0, 1, 1])), DTypeError, "go to nn.CrossEntropyLoss"),
    (nn.MSELoss(), (FLOATS, np.ones((3, 1), np.float32)), EshkolError, "does not broadcast"),
    (nn.MSELoss(), (FLOATS,), EshkolError, "takes 2 tensors"),
    (nn.HingeLoss(), (FLOATS, np.array([0.0, 1.0, 1.0])), EshkolError, "-1 and 1"),
    (nn.WeightedLoss(nn.MSELoss()), (FLOATS, FLOATS, np.ones((2,))), EshkolError, "one weight per sample"),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "given", "kind", "said"), MISUSES)
def test_misuse_is_named(loss: Any, given: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        loss(*given)


@pytest.mark.parametrize("made", [lambda: nn.MSELoss(reduction="avg"), lambda: nn.MSELoss(weight=1)])
def test_arguments_that_are_not_there(made: Any) -> None:
    with pytest.raises(EshkolError, match=r"MSELoss: "):
        made()


def test_a_class_out_of_range_is_found_inside_jit() -> None:
    compiled = ek.jit(lambda x, y: nn.CrossEntropyLoss()(x, y))
    assert compiled(ek.tensor(LOGITS), ek.tensor(LABELS)).item() == pytest.approx(each_cross_entropy().mean())
    with pytest.raises(IndexOutOfRange, match="out of range for an axis of extent 3") as raised:
        compiled(ek.tensor(LOGITS), ek.tensor(LABELS + 1)).realize()
    assert raised.value.hint == "class labels and indices are 0 to 2"


def test_logits_that_are_given_as_probabilities_are_not_silent() -> None:
    scores, targets = ek.tensor([0.5, 1.5, -0.5, 1.0]), ek.tensor([1.0, 1.0, 0.0, 1.0])
    for loss in (nn.BCELoss(), ek.binary_cross_entropy):
        with pytest.raises(
            EshkolError, match=r"predictions are probabilities, and these go from -0\.5 to 1\.5"
        ) as raised:
            loss(scores, targets)
        assert "with_logits" in str(raised.value.hint)
    assert nn.BCELoss()(ek.tensor([1.0 + 1e-6, -1e-6]), ek.tensor([1.0, 0.0])).item() == pytest.approx(0, abs=1e-5)
    found = ek.jit(nn.BCELoss(reduction="none"))(scores, targets)
    np.testing.assert_allclose(found.numpy(), [np.log(2), np.nan, np.nan, 0.0], rtol=1e-6)


def test_divergences_of_probabilities_and_of_normal_distributions() -> None:
    mu, logvar = LOGITS, LOGITS[::-1].copy()
    each = (mu**2 + np.exp(logvar) - 1 - logvar) / 2
    for how, expected in (("mean", each.mean()), ("sum", each.sum()), ("none", each), ("batchmean", each.sum() / 4)):
        np.testing.assert_allclose(
            ek.kl_div_normal(ek.tensor(mu), ek.tensor(logvar), how).numpy(), expected, rtol=1e-12
        )
    draws = np.random.default_rng(1).normal(0.7, 1.3, 200_000)  # E[log p - log q] of draws from p
    sampled = np.mean(-np.log(1.3) - ((draws - 0.7) / 1.3) ** 2 / 2 + draws**2 / 2)
    assert ek.kl_div_normal(ek.tensor(0.7), ek.tensor(2 * np.log(1.3))).item() == pytest.approx(sampled, rel=0.02)
    with pytest.raises(EshkolError, match="targets are probabilities") as raised:
        ek.kl_div(ek.tensor(mu), ek.tensor(logvar))
    assert "kl_div_normal" in str(raised.value.hint)
