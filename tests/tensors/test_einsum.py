"""einsum with labels behind each operand: what NumPy gives for the same words, its derivative, and what is refused."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase

import numpy as np
import pytest

import eshkol as ek

LETTERS = ascii_uppercase + ascii_lowercase
RNG = np.random.default_rng(3)
X, Y, Z = (RNG.standard_normal(shape) for shape in ((2, 3, 4), (4, 5), (5, 2)))


@pytest.mark.parametrize(
    "given",
    [
        (X, [0, 1, 2], Y, [2, 3]),
        (X, [1, 0, 2], Y, [2, 3], [3, 0, 1]),
        (X, [..., 26], Y, (26, 3), [..., 3]),
        (Y, [40, 3]),  # a result without labels has them in order
        (X[0, :3, :3], [7, 7]),
        (X, [0, 1, 2], Y, [2, 3], Z, [3, 0], [1]),
        (X, [0, 1, 2], []),
    ],
    ids=lambda given: str([x for x in given if not isinstance(x, np.ndarray)]),
)
def test_labels_behind_operands(given):
    ours = [ek.tensor(x) if isinstance(x, np.ndarray) else x for x in given]
    np.testing.assert_allclose(ek.einsum(*ours).numpy(), np.einsum(*given), rtol=1e-12)
    slope = ek.grad(lambda x: ek.sum(ek.einsum(x, *ours[1:])))(ours[0])
    np.testing.assert_allclose(slope.numpy(), ek.grad(lambda x: _told(x, given))(ours[0]).numpy(), rtol=1e-12)


def _told(x, given):
    """The same, in a string."""
    parts = ["".join("..." if k is ... else LETTERS[k] for k in part) for part in (*given[1::2], given[-1])]
    text = ",".join(parts[:-1]) + (f"->{parts[-1]}" if len(given) % 2 else "")
    return ek.sum(ek.einsum(text, x, *(ek.tensor(y) for y in given[2 : len(given) // 2 * 2 : 2])))


def test_what_labels_cannot_be():
    x = ek.ones((2, 2))
    for wrong, said in (
        ((x, 3), "list of labels"),
        ((x, [0, 52]), "52 is no label"),
        ((x, ["i", "j"]), "'i' is no label"),
        ((x, [0]), "does not name the 2 axes"),
        ((x, [0, 1], x), "list of labels"),
    ):
        with pytest.raises(ek.EshkolError, match=said) as caught:
            ek.einsum(*wrong)
        assert caught.value.span is not None
