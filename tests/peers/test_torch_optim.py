"""Fifty steps of every optimizer and schedule beside PyTorch's, where it is installed: float64 and float32."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent.parent / "optim"))

import trajectories as course

import eshkol as ek
from eshkol import optim


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)], ids=["f64", "f32"])
@pytest.mark.parametrize(("name", "options"), course.OPTIMIZERS, ids=lambda x: x if isinstance(x, str) else "")
def test_optimizers(name, options, dtype, tolerance):
    theirs = course.torch_course(torch, name, options, dtype)
    params = [ek.tensor(p).requires_grad_() for p in course.starts(dtype)]
    optimizer = getattr(optim, name)(params, **options)
    for step in range(course.STEPS):
        for p in params:
            p.grad = ek.tensor(course.gradient(p.detach().numpy(), step))
        optimizer.step()
        for p, q in zip(params, theirs[step], strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("key", course.SCHEDULES)
def test_schedules(key):
    made = course.SCHEDULES[key]
    ours = course.two_groups(optim.SGD, *(ek.tensor(p).requires_grad_() for p in course.starts()))
    theirs = course.two_groups(torch.optim.SGD, *(torch.tensor(p, requires_grad=True) for p in course.starts()))
    found = course.scheduled(ours, made(optim, ours))
    np.testing.assert_allclose(found, course.scheduled(theirs, made(torch.optim.lr_scheduler, theirs)), rtol=1e-10)


def test_a_state_of_pytorch_carries_over():
    p, q = torch.ones(3, dtype=torch.float64, requires_grad=True), ek.tensor(np.ones(3)).requires_grad_()
    theirs = torch.optim.Adam([p], lr=0.1)
    p.grad = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    theirs.step()
    ours = optim.Adam([q], lr=0.5)
    state = theirs.state_dict()
    state["state"] = {k: {n: x.numpy() for n, x in held.items()} for k, held in state["state"].items()}
    ours.load_state_dict(state)
    with ek.no_grad():
        q -= ek.tensor(np.full(3, 0.1))
    np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-6)
    with ek.no_grad():
        q += ek.tensor(p.detach().numpy() - q.detach().numpy())
    q.grad = ek.tensor([3.0, -1.0, 2.0], dtype=ek.float64)
    p.grad = torch.tensor([3.0, -1.0, 2.0], dtype=torch.float64)
    theirs.step()
    ours.step()
    np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("kind", [1.0, 2.0, 3.0, float("inf")])
def test_clipping_by_norm(kind):
    rng = np.random.default_rng(0)
    grads = [rng.standard_normal((3, 4)), rng.standard_normal(5)]
    ours = [ek.tensor(np.zeros_like(g)).requires_grad_() for g in grads]
    theirs = [torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for g in grads]
    for p, q, g in zip(ours, theirs, grads, strict=True):
        p.grad, q.grad = ek.tensor(g), torch.tensor(g)
    mine = optim.clip_grad_norm_(ours, 0.7, kind)
    its = torch.nn.utils.clip_grad_norm_(theirs, 0.7, kind)
    np.testing.assert_allclose(mine.item(), its.item(), rtol=1e-12)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-12)
