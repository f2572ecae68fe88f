"""Fifty steps of every optimizer and schedule, against numbers that PyTorch gave and against formulas in NumPy."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import trajectories as course

import eshkol as ek
from eshkol import optim

REFERENCES = json.loads(course.REFERENCES.read_text())


def our_course(name, options, dtype=np.float64, steps=8):
    """The parameters after every step of our optimizer."""
    params = [ek.tensor(p).requires_grad_() for p in course.starts(dtype)]
    optimizer = getattr(optim, name)(params, **options)
    found = []
    for step in range(steps):
        for p in params:
            p.grad = ek.tensor(course.gradient(p.detach().numpy(), step))
        optimizer.step()
        found.append([p.detach().numpy().copy() for p in params])
    return found


@pytest.mark.parametrize("steps", [8, pytest.param(course.STEPS, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "options"), course.OPTIMIZERS, ids=lambda x: x if isinstance(x, str) else "")
def test_optimizers_go_as_pytorch_s(name, options, steps):
    found = our_course(name, options, steps=steps)
    for k, stored in zip(course.KEPT, REFERENCES[course.title(name, options)], strict=True):
        if k > steps:
            break
        for ours, theirs in zip(found[k - 1], stored, strict=True):
            np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-10, atol=1e-12)


def test_float32_parameters_stay_near():
    found = our_course("Adam", {"lr": 0.02}, np.float32)[-1]
    for ours, theirs in zip(found, REFERENCES["Adam lr=0.02"][1], strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-5, atol=1e-5)


def lamb(p, g, m, v, t, lr=0.01, b1=0.9, b2=0.999, eps=1e-6, decay=0.1):
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    u = (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps) + decay * p
    return p - lr * np.linalg.norm(p) / np.linalg.norm(u) * u, m, v


def lion(p, g, m, v, t, lr=0.01, b1=0.9, b2=0.99, decay=0.1):
    return p * (1 - lr * decay) - lr * np.sign(b1 * m + (1 - b1) * g), b2 * m + (1 - b2) * g, v


@pytest.mark.parametrize(("name", "formula"), [("LAMB", lamb), ("Lion", lion)])
def test_lamb_and_lion_go_as_their_papers_say(name, formula):
    found = our_course(name, {"lr": 0.01, "weight_decay": 0.1})
    for k, p in enumerate(course.starts()):
        m = v = np.zeros_like(p)
        for step in range(len(found)):
            p, m, v = formula(p, course.gradient(p, step), m, v, step + 1)
            np.testing.assert_allclose(found[step][k], p, rtol=1e-10, atol=1e-12)


def test_lamb_leaves_a_zero_parameter_its_plain_step():
    p = ek.tensor(np.zeros(3)).requires_grad_()
    p.grad = ek.tensor(np.ones(3))
    optim.LAMB([p], lr=0.1).step()
    np.testing.assert_allclose(p.detach().numpy(), -0.1 * np.ones(3), rtol=1e-5)


# --- schedules ----------------------------------------------------------------------------------------------------


def groups():
    return course.two_groups(optim.SGD, *(ek.tensor(p).requires_grad_() for p in course.starts()))


@pytest.mark.parametrize("key", course.SCHEDULES)
def test_schedules_go_as_pytorch_s(key):
    optimizer = groups()
    found = course.scheduled(optimizer, course.SCHEDULES[key](optim, optimizer))
    np.testing.assert_allclose(found, REFERENCES[key], rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("k", range(len(course.PLATEAUS)))
def test_plateaus_go_as_pytorch_s(k):
    optimizer = groups()
    found = course.scheduled(optimizer, optim.ReduceLROnPlateau(optimizer, **course.PLATEAUS[k]), measured=True)
    np.testing.assert_allclose(found, REFERENCES[f"plateau {k}"], rtol=1e-12)


def test_warm_up_is_linear_and_then_another_schedule():
    optimizer = groups()
    schedule = optim.WarmupLR(optimizer, 4, optim.CosineAnnealingLR(optimizer, 10))
    rates = []
    for _ in range(8):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    expected = [0.2 * (t + 1) / 4 for t in range(4)] + [0.1 * (1 + math.cos(math.pi * t / 10)) for t in range(4)]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
