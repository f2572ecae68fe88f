"""Recurrent layers, attention and transformers against PyTorch's, where it is installed: forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from model_cases import CASES, Case, assert_same, in_eshkol, in_torch

import eshkol as ek
from eshkol import nn


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-5)])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_and_backward(case: Case, dtype: str, tolerance: float) -> None:
    assert_same(in_eshkol(case, dtype), in_torch(case, dtype), tolerance)


# --- networks for images, which torch.nn has not: written here in its functions --------------------------------------


class Theirs:
    """Convolutions and norms with a state, in PyTorch's functions, by the batch's own statistics."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = {n: torch.tensor(x.numpy(), requires_grad=x.dtype.is_float) for n, x in state.items()}

    def conv(self, x: Any, name: str, **how: Any) -> Any:
        return F.conv2d(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"), **how)

    def norm(self, x: Any, name: str, eps: float = 1e-5) -> Any:
        scales = self.state[f"{name}.weight"], self.state[f"{name}.bias"]
        return F.batch_norm(x, None, None, *scales, training=True, eps=eps)

    def both(self, x: Any, name: str, **how: Any) -> Any:
        return F.relu(self.norm(self.conv(x, f"{name}.conv", **how), f"{name}.bn", eps=0.001))

    def basic(self, x: Any, at: str = "", stride: int = 1) -> Any:
        around = x
        if f"{at}downsample.0.weight" in self.state:
            around = self.norm(self.conv(x, f"{at}downsample.0", stride=stride), f"{at}downsample.1")
        inner = F.relu(self.norm(self.conv(x, f"{at}conv1", stride=stride, padding=1), f"{at}bn1"))
        return F.relu(self.norm(self.conv(inner, f"{at}conv2", padding=1), f"{at}bn2") + around)

    def bottleneck(self, x: Any) -> Any:
        around = self.norm(self.conv(x, "downsample.0", stride=2), "downsample.1")
        inner = F.relu(self.norm(self.conv(x, "conv1"), "bn1"))
        inner = F.relu(self.norm(self.conv(inner, "conv2", stride=2, padding=1), "bn2"))
        return F.relu(self.norm(self.conv(inner, "conv3"), "bn3") + around)

    def resnet(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x, "conv1", stride=2, padding=3), "bn1")), 3, 2, 1)
        x = self.basic(self.basic(x, "layer1.0."), "layer2.0.", stride=2)
        return F.linear(x.mean((2, 3)), self.state["fc.weight"], self.state["fc.bias"])

    def inception(self, x: Any) -> Any:
        ways = [self.both(x, "branch1"), self.both(self.both(x, "branch2.0"), "branch2.1", padding=1)]
        ways.append(self.both(self.both(x, "branch3.0"), "branch3.1", padding=2))
        ways.append(self.both(F.max_pool2d(x, 3, 1, 1), "branch4.1"))
        return torch.cat(ways, 1)

    def alexnet(self, x: Any) -> Any:
        for place, padding, pooled in ((0, 1, True), (3, 2, True), (6, 1, False), (8, 1, False), (10, 1, True)):
            x = F.relu(self.conv(x, f"features.{place}", padding=padding))
            x = F.max_pool2d(x, 2) if pooled else x
        x = F.adaptive_avg_pool2d(x, 2).flatten(1)
        for place in (1, 4, 6):
            x = F.linear(x, self.state[f"classifier.{place}.weight"], self.state[f"classifier.{place}.bias"])
            x = F.relu(x) if place < 6 else x
        return x


IMAGES = {
    "basic": (lambda: nn.BasicBlock(3, 4, stride=2, dtype="float64"), (2, 3, 5, 5), lambda t, x: t.basic(x, stride=2)),
    "bottleneck": (lambda: nn.Bottleneck(3, 2, stride=2, dtype="float64"), (2, 3, 5, 5), Theirs.bottleneck),
    "resnet": (lambda: nn.ResNet(nn.BasicBlock, [1, 1], 3, width=2, dtype="float64"), (2, 3, 20, 20), Theirs.resnet),
    "inception": (lambda: nn.InceptionModule(3, 2, 2, 3, 1, 2, 2, dtype="float64"), (2, 3, 4, 4), Theirs.inception),
    "alexnet": (lambda: nn.AlexNet(3, 0.0, width=2, hidden=5, small=True, pooled=2, dtype="float64"), (2, 3, 16, 16),
                Theirs.alexnet),
}  # fmt: skip


@pytest.mark.parametrize("name", IMAGES)
def test_networks_for_images(name: str) -> None:
    make, shape, run = IMAGES[name]
    ek.seed(1)
    model = make()
    theirs = Theirs(model.state_dict())
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape)
    given = torch.tensor(x, requires_grad=True)
    wanted = run(theirs, given)
    cotangent = rng.normal(size=tuple(wanted.shape))
    (wanted * torch.tensor(cotangent)).sum().backward()
    ours = ek.tensor(x, requires_grad=True)
    found = model(ours)
    (found * ek.tensor(cotangent)).sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), atol=1e-10)
    np.testing.assert_allclose(ours.grad.numpy(), given.grad.numpy(), atol=1e-10)
    for parameter, tensor in model.named_parameters():
        gradient = theirs.state[parameter].grad.numpy()
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, atol=1e-10, rtol=1e-10, err_msg=parameter)
