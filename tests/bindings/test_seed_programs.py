"""The programs of the first designs that change tensors in place, loaded as written and run beside NumPy.

The transcripts under tests/scheme/seeds have the same texts; there they are checked against the built-in operations and
by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import eshkol as ek

SEEDS = Path(__file__).parents[1] / "scheme" / "seeds"
STEPS = 20
SHAPES = ((3, 4), (4,))
LR, MOMENTUM, BETA1, BETA2, EPSILON, DECAY = 0.05, 0.9, 0.9, 0.99, 1e-6, 0.1


@pytest.fixture(scope="module")
def optimizers(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The optimizers as a module: what stands before the checks of the transcript."""
    text, mark, _ = (SEEDS / "optimizers.esk").read_text(encoding="utf-8").partition(";; ---- by hand")
    assert mark
    file = tmp_path_factory.mktemp("seeds") / "optimizers.esk"
    file.write_text(text, encoding="utf-8")
    return ek.load(file)


Arrays = list[np.ndarray]


def sgd(p: Arrays, g: Arrays, m: Arrays, v: Arrays, t: int) -> None:
    for k in range(len(p)):
        v[k] = MOMENTUM * v[k] + LR * g[k]
        p[k] = p[k] - v[k]


def moments(k: int, g: Arrays, m: Arrays, v: Arrays, t: int) -> np.ndarray:
    m[k] = BETA1 * m[k] + (1 - BETA1) * g[k]
    v[k] = BETA2 * v[k] + (1 - BETA2) * g[k] ** 2
    return m[k] / (1 - BETA1**t) / (np.sqrt(v[k] / (1 - BETA2**t)) + EPSILON)


def adam(p: Arrays, g: Arrays, m: Arrays, v: Arrays, t: int) -> None:
    for k in range(len(p)):
        p[k] = p[k] - LR * moments(k, g, m, v, t)


def adamw(p: Arrays, g: Arrays, m: Arrays, v: Arrays, t: int) -> None:
    p[:] = [x * (1 - LR * DECAY) for x in p]
    adam(p, g, m, v, t)


def lamb(p: Arrays, g: Arrays, m: Arrays, v: Arrays, t: int) -> None:
    for k in range(len(p)):
        update = moments(k, g, m, v, t)
        weight, length = np.sqrt(np.sum(p[k] ** 2)), np.sqrt(np.sum(update**2))
        trust = weight / length if weight > 0 and length > 0 else 1.0
        p[k] = (p[k] - LR * trust * update) * (1 - LR * DECAY)


Step = Callable[[Arrays, Arrays, Arrays, Arrays, int], None]
CASES: dict[str, tuple[Step, Callable[[Any, list[Any], list[Any], list[Any], list[Any], int], Any]]] = {
    "sgd": (sgd, lambda module, p, g, m, v, t: module.sgd_step(p, g, LR, MOMENTUM, v)),
    "adam": (adam, lambda module, p, g, m, v, t: module.adam_step(p, g, LR, BETA1, BETA2, EPSILON, m, v, t)),
    "adamw": (adamw, lambda module, p, g, m, v, t: module.adamw_step(p, g, LR, BETA1, BETA2, EPSILON, DECAY, m, v, t)),
    "lamb": (lamb, lambda module, p, g, m, v, t: module.lamb_step(p, g, LR, BETA1, BETA2, EPSILON, DECAY, m, v, t)),
}


@pytest.mark.parametrize("backend", ["reference", pytest.param("cpu", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("name", CASES)
def test_an_optimizer_takes_the_steps_of_numpy(
    name: str, dtype: Any, tolerance: float, backend: str, optimizers: Any
) -> None:
    """On the reference machine, which has nothing to compile, and with kernels of the CPU."""
    with ek.use_backend(backend):
        check_steps(name, dtype, tolerance, optimizers)


def check_steps(name: str, dtype: Any, tolerance: float, optimizers: Any) -> None:
    expected_step, step = CASES[name]
    rng = np.random.default_rng(3)
    start = [np.asarray(rng.normal(size=shape), dtype) for shape in SHAPES]
    start[1][:] = 0  # LAMB has a case for it
    p, m, v = (
        [ek.tensor(x) for x in start],
        [ek.zeros(s, dtype=np.dtype(dtype).name) for s in SHAPES],
        [ek.zeros(s, dtype=np.dtype(dtype).name) for s in SHAPES],
    )
    ep = [x.astype(np.float64) for x in start]
    em, ev = ([np.zeros(s) for s in SHAPES] for _ in range(2))
    for t in range(1, STEPS + 1):
        gradients = [np.asarray(rng.normal(size=shape), dtype) for shape in SHAPES]
        step(optimizers, p, [ek.tensor(g) for g in gradients], m, v, t)
        expected_step(ep, [g.astype(np.float64) for g in gradients], em, ev, t)
    for found, expected in zip([*p, *m, *v], [*ep, *em, *ev], strict=True):
        assert found.dtype.name == np.dtype(dtype).name
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_the_vectorized_operations_run_as_a_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The transcript is run form by form; here the whole file is compiled at once."""
    text, mark, _ = (SEEDS / "vectorized_ops.esk").read_text(encoding="utf-8").partition("(define (shown thunk)")
    assert mark
    file = tmp_path / "vectorized_ops_test.esk"
    file.write_text(f"{text}\n(benchmark-matmul 100)\n", encoding="utf-8")
    ek.load(file)
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == [
        "=== SIMD Vectorization Tests ===",
        "Dot product: 120.0 (expected: 120.0)",
        "Matrix mul: ((19.0 22.0) (43.0 50.0)) (expected: ((19 22) (43 50)))",
    ]
    assert lines[3].startswith("Matrix 100x100 took ")
