"""Losses where samples do not reach: large logits, ignored and impossible targets, errors; PyTorch's where it is."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value
from op_harness import as_buffer

from eshkol.backends import open_backend
from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError
from eshkol.ops import TABLE
from eshkol.schedule.run.execute import realize

inf = np.inf


def test_cross_entropy_of_large_logits():
    x = np.array([[1e4, -1e4, 0.0], [1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]])
    target = np.array([0, 1, 2])
    np.testing.assert_allclose(value("cross_entropy", x, target, reduction="none"), [0, 2e4, np.log(3)])
    slope = gradient("cross_entropy", x, target, reduction="sum")
    np.testing.assert_allclose(slope, [[0, 0, 0], [1, -1, 0], [1 / 3, 1 / 3, -2 / 3]], atol=1e-15)
    logits = np.array([1e4, -1e4, 1e4, -1e4])
    answers = np.array([1.0, 1.0, 0.0, 0.0])
    wanted = [0, 1e4, 1e4, 0]
    np.testing.assert_allclose(value("binary_cross_entropy_with_logits", logits, answers, reduction="none"), wanted)
    assert np.all(np.isfinite(gradient("binary_cross_entropy_with_logits", logits, answers)))


def test_a_masked_class_is_never_chosen_and_costs_nothing():
    x = np.array([[-inf, 0.0, 1.0]])
    target = np.array([2])
    np.testing.assert_allclose(value("cross_entropy", x, target), np.log1p(np.exp(-1)))
    assert np.all(np.isfinite(gradient("cross_entropy", x, target)))


def test_ignored_targets():
    x, target = np.random.default_rng(0).normal(size=(3, 4)), np.array([1, -100, 3])
    np.testing.assert_allclose(
        value("cross_entropy", x, target), value("cross_entropy", x[[0, 2]], target[[0, 2]])
    )  # fmt: skip
    np.testing.assert_array_equal(gradient("cross_entropy", x, target)[1], np.zeros(4))
    assert np.isnan(value("cross_entropy", x, np.full(3, -100)))
    assert value("cross_entropy", x, np.full(3, -100), reduction="sum") == 0
    small = np.array([1, 2, 3], np.uint8)  # which does not hold -100
    np.testing.assert_allclose(value("cross_entropy", x, small), value("cross_entropy", x, small.astype(int)))


@pytest.mark.parametrize("label", [3, -1])
def test_a_class_out_of_range_is_an_error(label):
    with pytest.raises(IndexOutOfRange):
        value("cross_entropy", np.zeros((1, 3)), np.array([label]))
    with pytest.raises(IndexOutOfRange):
        realize([TABLE["nll_loss"](as_buffer(np.zeros((1, 3))), as_buffer(np.array([label])))], open_backend("cpu"))


def test_the_logarithm_of_no_chance_is_bounded():
    x, target = np.array([0.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(value("binary_cross_entropy", x, target, reduction="none"), [100, 100, 0, 0])
    assert np.all(np.isfinite(gradient("binary_cross_entropy", x, target)))
    assert value("categorical_cross_entropy", np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])) == 100


def test_half_floats_are_summed_in_more_bits():
    x = np.zeros((4, 3), np.float16) + np.array([60000, 0, 0], np.float16)
    found = value("cross_entropy", x, np.ones(4, np.int64))
    assert found.dtype == np.float16
    assert found == np.float16(60000)


def test_losses_refuse_what_does_not_fit():
    x = np.zeros((4, 1))
    for name in ("mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"):
        with pytest.raises(ShapeError, match=r"shape \[4, 1\], targets \[4\]"):
            value(name, x, np.zeros(4))
    with pytest.raises(ShapeError, match=r"class indices have shape \[4\], not \[4, 1\]"):
        value("cross_entropy", np.zeros((4, 3)), np.zeros((4, 1), np.int64))
    with pytest.raises(ShapeError, match="3 classes"):
        value("cross_entropy", np.zeros((4, 3)), np.zeros(4, np.int64), np.ones(2))
    with pytest.raises(DTypeError, match="integers"):
        value("nll_loss", np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(TensorError, match="reduction 'average'"):
        value("mse_loss", x, x, reduction="average")
    with pytest.raises(TensorError, match="label_smoothing"):
        value("cross_entropy", np.zeros((4, 3)), np.zeros(4, np.int64), label_smoothing=2.0)
    with pytest.raises(TensorError, match="delta"):
        value("huber_loss", x, x, delta=0.0)


RNG = np.random.default_rng(3)
X, Y, Z = (RNG.normal(size=(4, 3)) for _ in range(3))
CHANCE, OTHER = (RNG.uniform(0.05, 0.95, (4, 3)) for _ in range(2))
LABELS, WEIGHT, SIGNS = np.array([0, 2, 1, -100]), RNG.uniform(0.5, 2, 3), np.array([1.0, -1.0, 1.0, -1.0])
IMAGE, IMAGE_LABELS = RNG.normal(size=(2, 3, 2, 2)), RNG.integers(0, 3, (2, 2, 2))
CASES = [
    ("mse_loss", (X, Y), {}),
    ("l1_loss", (X, Y), {}),
    ("smooth_l1_loss", (X, Y), {"beta": 0.7}),
    ("huber_loss", (X, Y), {"delta": 0.7}),
    ("cross_entropy", (X, LABELS, WEIGHT), {}),
    ("cross_entropy", (X, LABELS, WEIGHT), {"label_smoothing": 0.1}),
    ("cross_entropy", (IMAGE, IMAGE_LABELS, WEIGHT), {"label_smoothing": 0.1}),
    ("cross_entropy", (X, CHANCE, WEIGHT), {"label_smoothing": 0.1}),
    ("cross_entropy", (X[0], LABELS[:1].reshape(())), {}),
    ("nll_loss", (X, np.array([0, 2, 1, 2]), WEIGHT), {"ignore_index": 2}),
    ("binary_cross_entropy", (CHANCE, OTHER), {}),
    ("binary_cross_entropy_with_logits", (X, CHANCE), {"pos_weight": WEIGHT}),
    ("kl_div", (X, CHANCE), {}),
    ("kl_div", (X, Y), {"log_target": True}),
    ("poisson_nll_loss", (X, CHANCE * 4), {"full": True}),
    ("poisson_nll_loss", (CHANCE, OTHER), {"log_input": False}),
    ("gaussian_nll_loss", (X, Y, CHANCE), {"full": True}),
    ("cosine_similarity", (X, Y), {}),
    ("cosine_embedding_loss", (X, Y, SIGNS), {"margin": -0.5}),
    ("triplet_margin_loss", (X, Y, Z), {"swap": True, "margin": 2.0}),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "args", "attrs"), CASES)
def test_losses_are_pytorchs(name, args, attrs, reduction):
    torch = pytest.importorskip("torch")
    ours = dict(attrs) if name == "cosine_similarity" else {**attrs, "reduction": reduction}
    theirs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in ours.items()}
    tensors = [torch.tensor(a) for a in args]
    tensors[0].requires_grad_()
    y = getattr(torch.nn.functional, name)(*tensors, **theirs)
    ours = {k: as_buffer(v) if isinstance(v, np.ndarray) else v for k, v in ours.items()}
    np.testing.assert_allclose(value(name, *args, **ours), y.detach().numpy(), rtol=1e-9, atol=1e-12)
    y.sum().backward()
    found = gradient(name, *args, **ours)
    found = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(found, tensors[0].grad.numpy(), rtol=1e-7, atol=1e-10)
