"""Connectionist temporal classification against the sum over all paths, and its derivative against differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import EshkolError

F = nn.functional
RNG = np.random.default_rng(3)
STEPS, BATCH, CLASSES = 5, 3, 3
SCORES = RNG.standard_normal((STEPS, BATCH, CLASSES))
LABELS = np.array([[1, 2], [1, 1], [2, 0]])
LENGTHS, SIZES = [5, 4, 3], [2, 2, 1]


def said(path: tuple[int, ...], blank: int) -> list[int]:
    """What a path of classes says: neighbours that are the same are one, and blanks none."""
    return [c for c, _ in itertools.groupby(path) if c != blank]


def by_all_paths(scores: np.ndarray, labels: list[int], blank: int = 0) -> float:
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    ways = itertools.product(range(scores.shape[-1]), repeat=len(scores))
    total = sum(math.exp(sum(logs[range(len(p)), p])) for p in ways if said(p, blank) == labels)
    return -math.log(total) if total else math.inf


def losses(scores: ek.Tensor, **how: object) -> ek.Tensor:
    return F.ctc_loss(F.log_softmax(scores, -1), ek.tensor(LABELS), LENGTHS, SIZES, **how)


WANTED = np.array(
    [by_all_paths(SCORES[:t, n], [*LABELS[n, :s]]) for n, (t, s) in enumerate(zip(LENGTHS, SIZES, strict=True))]
)


def test_losses_are_those_of_all_paths() -> None:
    given = ek.tensor(SCORES)
    np.testing.assert_allclose(losses(given, reduction="none").numpy(), WANTED, rtol=1e-10)
    np.testing.assert_allclose(losses(given, reduction="sum").item(), WANTED.sum(), rtol=1e-10)
    np.testing.assert_allclose(losses(given).item(), (WANTED / SIZES).mean(), rtol=1e-10)
    np.testing.assert_allclose(ek.jit(losses)(given).item(), (WANTED / SIZES).mean(), rtol=1e-10)


@pytest.mark.parametrize("dtype", [ek.float16, ek.bfloat16], ids=str)
def test_scores_of_16_bits(dtype: ek.DType) -> None:
    found = losses(ek.tensor(SCORES).to(dtype), reduction="none")
    assert found.dtype is dtype
    np.testing.assert_allclose(found.to(ek.float64).numpy(), WANTED, rtol=3e-2)


def test_labels_one_after_another_and_another_blank() -> None:
    logs, flat = F.log_softmax(ek.tensor(SCORES), -1), ek.tensor([1, 2, 1, 1, 2])
    np.testing.assert_allclose(F.ctc_loss(logs, flat, LENGTHS, SIZES, reduction="none").numpy(), WANTED, rtol=1e-10)
    one = nn.CTCLoss(blank=2)(logs[:, 0], ek.tensor([0, 1]), [5], [2])
    np.testing.assert_allclose(one.item(), by_all_paths(SCORES[:, 0], [0, 1], 2) / 2, rtol=1e-10)
    none = F.ctc_loss(logs, ek.tensor(LABELS), LENGTHS, [2, 0, 1], reduction="none")
    np.testing.assert_allclose(none.numpy()[1], by_all_paths(SCORES[:4, 1], []), rtol=1e-10)


def test_the_derivative() -> None:
    found = ek.grad(losses)(ek.tensor(SCORES)).numpy()
    for place in itertools.product(range(STEPS), range(BATCH), range(CLASSES)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = SCORES.copy()
            moved[place] += step
            ends.append(losses(ek.tensor(moved)).item())
        assert found[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_too_few_steps_are_infinite_or_nothing() -> None:
    logs = F.log_softmax(ek.tensor(SCORES[:1]), -1)
    assert F.ctc_loss(logs, ek.tensor(LABELS), [1] * 3, SIZES, reduction="none").tolist()[:2] == [math.inf] * 2
    assert F.ctc_loss(logs, ek.tensor(LABELS), [1] * 3, SIZES, reduction="none", zero_infinity=True).tolist()[:2] == [
        0,
        0,
    ]
    gradient = ek.grad(lambda x: F.ctc_loss(x, ek.tensor(LABELS), [1] * 3, SIZES, zero_infinity=True))(logs)
    assert np.isfinite(gradient.numpy()).all()


@pytest.mark.parametrize(
    ("labels", "sizes", "more"),
    [
        (LABELS, [1, 2], {}),
        (LABELS[None], SIZES, {}),
        (LABELS, SIZES, {"blank": 3}),
        (LABELS, SIZES, {"reduction": "all"}),
    ],
)
def test_what_does_not_fit_is_refused(labels: np.ndarray, sizes: list[int], more: dict[str, object]) -> None:
    with pytest.raises(EshkolError):
        F.ctc_loss(ek.tensor(SCORES), ek.tensor(labels), LENGTHS, sizes, **more)


@pytest.mark.parametrize("p", [1, 2])
def test_margins_of_several_classes(p: int) -> None:
    x, labels = RNG.standard_normal((6, 4)), RNG.integers(0, 4, 6)
    wanted = [
        sum(max(0, 0.5 - row[t] + v) ** p for k, v in enumerate(row) if k != t) / 4
        for row, t in zip(x, labels, strict=True)
    ]
    found = nn.MultiMarginLoss(p, 0.5, reduction="none")(ek.tensor(x), ek.tensor(labels))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
