"""Scheme's procedures for GPUs: which machine is the GPU, and that values go there; tests/scheme has the rest."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.errors import BackendUnavailable
from eshkol.tensors import devices


@pytest.fixture
def chosen(monkeypatch):
    """Sets ESHKOL_DEVICE; the device of tensors that are made, which is asked for once, stays as it is."""
    if devices.current_name() != "cpu":
        pytest.skip("tensors are made on another device here")
    monkeypatch.delenv("ESHKOL_DEVICE", raising=False)
    return lambda name: monkeypatch.setenv("ESHKOL_DEVICE", name)


def test_without_a_gpu_the_cpu_does_it_when_that_is_said_and_only_then(chosen):
    if devices.missing("cuda") is None:
        pytest.skip("there is a GPU here")
    calls = ("(gpu-tensor '(1.0))", "(to-gpu (tensor 1.0))", "(to-cuda (tensor 1.0))", "(gpu-context 1)", "(gpu-sync)",
             "(gpu-add (tensor 1.0) (tensor 1.0))", "(gpu-map sin #(1.0))", "(gpu-forward (linear 1 1) (tensor 1.0))",
             "(gpu-gradient (lambda (x) (tensor-sum x)) (tensor 1.0))")  # fmt: skip
    for call in calls:
        with pytest.raises(BackendUnavailable, match=r"(?s)there is no GPU: .*ESHKOL_DEVICE=cpu"):
            ek.eval(call)
    assert ek.eval("(gpu-available?)") is False
    chosen("cpu")
    for call in calls:
        ek.eval(call)
    assert ek.eval("(gpu-available?)") is False
    assert ek.eval("(tensor-device (to-cuda (gpu-add '(1.0 2.0) 3.0) 1))") == "cpu"
    assert ek.eval("(gpu-tensor-device (gpu-tensor '(2 3)))") == 0
    chosen("nothing")
    with pytest.raises(BackendUnavailable, match="no backend 'nothing'"):
        ek.eval("(to-gpu (tensor 1.0))")


def test_values_go_to_the_machine_that_is_named(chosen):
    chosen("discrete")
    assert ek.eval("(gpu-available?)") is True
    x, y = ek.tensor(np.eye(4, dtype=np.float32)), ek.tensor(np.ones((4, 4), np.float32))
    with ek.transfers() as seen:
        found = ek.eval("gpu-matmul")(x, y)
        assert (found.device, found.realize().device) == ("discrete", "discrete")
    assert (seen.uploaded, seen.reads) == (2 * x.nbytes, 0)
    assert ek.eval("(lambda (x) (tensor-device (gpu-to-cpu (gpu-mul x 2.0))))")(x) == "cpu"
    model = ek.nn.Linear(4, 2)
    assert ek.eval("gpu-forward")(model, x).device == "discrete"
    assert {p.device for p in model.parameters()} == {"discrete"}, "as model.to moves it"
    with ek.transfers() as seen:
        found = ek.eval("(gpu-context (vector-map (lambda (x) (+ 1.0 (* x x))) (make-vector 100 1.5)))")
    assert list(found) == [3.25] * 100
    assert (seen.uploaded, seen.read) == (800, 800), "it was one kernel, in double precision"


def test_gpus_by_number(chosen, monkeypatch):
    with installed(monkeypatch):
        assert ek.eval("(gpu-available?)") is True
        assert ek.eval("(map gpu-tensor-device (list (to-gpu (tensor 1.0)) (to-cuda (tensor 1.0) 1)))") == [0, 1]
        assert ek.eval("(tensor-device (to-device (tensor 1.0) 'cuda 1))") == "cuda:1"
        added = ek.eval("(gpu-add (to-cuda (tensor 1.0) 1) (tensor 2.0))")  # what is on a GPU already decides
        assert (added.device, added.tolist()) == ("cuda:1", [3.0])
        with pytest.raises(BackendUnavailable, match="no GPU cuda:5"):
            ek.eval("(to-cuda (tensor 1.0) 5)")
        np.testing.assert_allclose(ek.eval("(gpu-map sqrt #(4.0 9.0))"), [2.0, 3.0])
        chosen("cuda:1")
        assert ek.eval("(gpu-tensor-device (gpu-tensor '(2)))") == 1
        chosen("cpu")
        assert ek.eval("(tensor-device (gpu-tensor '(2)))") == "cpu", "what is said comes first"
        assert ek.eval("(tensor-device (to-cuda (tensor 1.0)))") == "cuda", "and a GPU that is asked for by its name"
