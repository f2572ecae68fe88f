"""The dtype of floats that are given none: float32 in Python, float64 in Scheme, and what each language chooses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol import io, nn
from eshkol.errors import DTypeError

KINDS = "(lambda (make) (symbol->string (tensor-dtype (make))))"


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Both languages have what they had before."""
    yield
    ek.set_default_dtype("float32")
    ek.eval("(set-default-dtype! 'float64)")


def test_each_language_has_its_own() -> None:
    made = [ek.zeros(2), ek.tensor(0.5), ek.eval("(tensor 0.5)"), ek.randn(2), nn.Linear(2, 2).weight]
    assert [x.dtype.name for x in made] == ["float32", "float32", "float64", "float32", "float32"]
    assert (ek.get_default_dtype(), ek.eval("(default-dtype)")) == (ek.float32, "float64")


def test_what_one_language_chooses_is_not_the_other_s() -> None:
    ek.set_default_dtype(ek.bfloat16)
    ek.eval("(set-default-dtype! 'float16)")
    assert ek.tensor(0.5).dtype is ek.bfloat16
    assert ek.eval("(tensor 0.5)").dtype is ek.float16
    ek.eval("(set-default-dtype! 'float64)")
    assert ek.tensor(0.5).dtype is ek.bfloat16


def test_python_that_scheme_calls_computes_as_scheme_does() -> None:
    assert ek.eval(KINDS)(lambda: ek.zeros(2)) == "float64"
    assert ek.zeros(2).dtype is ek.float32


def test_within_a_context_it_is_another_on_this_thread() -> None:
    seen: list[ek.Tensor] = []
    with ek.default_dtype("float64"):
        assert [ek.ones(2).dtype, ek.tensor(1j).dtype, nn.Linear(1, 1).bias.dtype] == [
            ek.float64,
            ek.complex128,
            ek.float64,
        ]
        other = threading.Thread(target=lambda: seen.append(ek.ones(2)))
        other.start()
        other.join()
        assert (ek.tensor([1, 2]) / 2).dtype is ek.float64
        assert ek.tensor(np.float32(1)).dtype is ek.float32  # an array keeps its own
    assert [ek.ones(2).dtype, seen[0].dtype] == [ek.float32, ek.float32]


def test_a_compiled_function_is_traced_again_for_another() -> None:
    made = ek.jit(lambda i: i * ek.tensor(0.5))
    assert made(ek.tensor([1, 2])).dtype is ek.float32
    with ek.default_dtype("float64"):
        assert made(ek.tensor([1, 2])).dtype is ek.float64
    assert made(ek.tensor([1, 2])).dtype is ek.float32


@pytest.mark.parametrize("given", ["int64", ek.bool_, "complex64"])
def test_it_is_one_of_floats(given: object) -> None:
    with pytest.raises(DTypeError, match="the default dtype is one of floats"):
        ek.set_default_dtype(given)


def test_batches_of_plain_numbers_have_it_in_threads_too() -> None:
    rows = [([1.0, 2.0], 0.5), ([3.0, 4.0], 1.5)]
    loader = ek.data.DataLoader(rows, batch_size=2, workers=0)
    assert {x.dtype for x in ek.tree_leaves(next(iter(loader)))} == {ek.float32}
    with ek.default_dtype("float64"):
        for workers in (0, 2):
            loader = ek.data.DataLoader(rows, batch_size=2, workers=workers, worker="thread")
            assert {x.dtype for x in ek.tree_leaves(next(iter(loader)))} == {ek.float64}


def test_a_model_of_scheme_is_the_same_in_python(tmp_path: Path) -> None:
    file = tmp_path / "model.eskpt"
    model = ek.eval("(lambda (file) (let ((m (sequential (linear 2 3) (relu)))) (save-checkpoint m file) m))")(
        str(file)
    )
    loaded = io.load_checkpoint(file).model
    assert [p.dtype for p in loaded.parameters()] == [ek.float64, ek.float64]
    for ours, theirs in zip(model.parameters(), loaded.parameters(), strict=True):
        assert np.array_equal(ours.detach().numpy(), theirs.detach().numpy())
