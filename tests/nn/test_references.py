"""Every layer and loss, forward and backward, against what PyTorch gave in float64 (make_references.py)."""

from __future__ import annotations

from functools import cache

import ours
import pytest
from cases import CASES, Case, compared, drawn
from make_references import stored

STORED = cache(stored)


def test_every_case_is_stored_once() -> None:
    assert sorted(STORED()) == sorted(case.name for case in CASES)


# Some always, the others in `make test-all`; layers that are nothing but rows are compared with these in test_layers.
QUICK = ("Linear", "Embedding", "Conv2d", "ConvTranspose2d", "BatchNorm1d", "CrossEntropyLoss")
_FIRST = {case.kind: case for case in reversed(CASES)}
_CASES = [
    case if case.kind in QUICK and _FIRST[case.kind] is case else pytest.param(case, marks=pytest.mark.slow)
    for case in CASES
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_forward_and_backward_as_stored(case: Case) -> None:
    expected = dict(STORED()[case.name])
    state = {k.removeprefix("state."): expected.pop(k) for k in list(expected) if k.startswith("state.")}
    found = ours.computed(case, "float64", state, drawn(case), expected.pop("cotangent"))
    compared(found, expected, case.bound or 1e-10)
