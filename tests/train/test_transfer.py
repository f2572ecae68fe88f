"""Models that were trained before: weights loaded, layers frozen, heads trained; and drawings of models."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import CheckpointError, ShapeError, TensorError
from eshkol.train import visualize


def small(classes: int = 3) -> nn.Module:
    return nn.Sequential({"body": nn.Sequential(nn.Linear(4, 8), nn.ReLU()), "head": nn.Linear(8, classes)})


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".npz", ".eskpt"])
def test_weights_of_every_kind_of_file(tmp_path, suffix):
    model, path = small(), tmp_path / f"small{suffix}"
    if suffix == ".eskpt":
        ek.save_checkpoint(path, model)
    else:
        ek.save(model.state_dict(), path)
    found = ek.train.load_pretrained(small(), path)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(found.state_dict()[name], value)


def test_what_does_not_fit_is_told(tmp_path):
    path = tmp_path / "w.safetensors"
    ek.save({**small().state_dict(), "extra": ek.ones((1,))}, path)
    with pytest.raises(TensorError, match="unknown: extra"):
        ek.train.load_pretrained(small(), path)
    with pytest.raises(ShapeError, match=r"head.weight is float32\[5, 8\], the state has float32\[3, 8\]"):
        ek.train.load_pretrained(small(5), small().state_dict())
    other = small(5)
    before = other.state_dict()["head.weight"].numpy().copy()
    with pytest.warns(UserWarning, match="not in the model: extra; of another shape: head.bias, head.weight"):
        ek.train.load_pretrained(other, path, strict=False)
    np.testing.assert_array_equal(other.state_dict()["head.weight"], before)


def test_architectures_by_name(tmp_path, monkeypatch):
    made = nn.resnet20()
    ek.save(made.state_dict(), tmp_path / "resnet20.safetensors")
    monkeypatch.setenv("ESHKOL_DATA", str(tmp_path))
    found = ek.train.load_pretrained("resnet20")
    np.testing.assert_array_equal(found.state_dict()["conv1.weight"], made.state_dict()["conv1.weight"])
    with pytest.raises(CheckpointError, match="no file of weights for resnet50"):
        ek.train.load_pretrained("resnet50")
    with pytest.raises(TensorError, match="no architecture 'gpt9' here"):
        ek.train.load_pretrained("gpt9")


def test_layers_are_frozen_by_name_and_pattern():
    model = ek.train.freeze_layers(small(), ["body.*"])
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True]
    ek.train.freeze_layers(model, "body", frozen=False)
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(TensorError, match="no layer 'tail'") as caught:
        ek.train.freeze_layers(model, ["tail"])
    assert "head" in str(caught.value.hint)


@pytest.mark.parametrize("rate", [0.0, 0.01])
def test_a_new_head_learns_and_the_rest_as_it_is_told(rate):
    ek.manual_seed(0)
    model, head = small(), nn.Linear(8, 2)
    body = model.state_dict()["body.0.weight"].numpy().copy()
    x = ek.random.normal((64, 4))
    y = (x[:, 0] > 0).astype(ek.int64)
    history = ek.train.fine_tune(model, head, (x, y), batch_size=16, epochs=15, lr=0.05, backbone_lr=rate, quiet=True)
    assert model.get_submodule("head") is head
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert np.array_equal(model.state_dict()["body.0.weight"], body) == (rate == 0)


def test_numbers_as_targets_and_a_head_elsewhere():
    model = nn.Sequential({"head": nn.Linear(2, 3), "after": nn.ReLU()})
    ek.train.fine_tune(model, nn.Linear(2, 1), (ek.ones((8, 2)), ek.ones((8, 1))), head="head", quiet=True)
    assert model(ek.ones((1, 2))).shape == (1, 1)


def test_drawings(tmp_path):
    model = small().freeze()
    tree = str(visualize.architecture(model, (2, 4)))
    assert "├─ body: Sequential  2 × 8  40 (frozen)" in tree
    assert "└─ head: Linear      2 × 3  27 (frozen)" in tree
    with pytest.raises(TensorError, match="no parameter of Sequential has a gradient"):
        visualize.gradients(model)
    ek.train.freeze_layers(model, "head", frozen=False)
    model(ek.ones((2, 4))).sum().backward()
    bars = visualize.gradients(model).lines
    assert bars[1].split()[:2] == ["body.0.weight", "frozen"]
    norm = np.linalg.norm(np.array(model.get_submodule("head").bias.grad))
    assert bars[4].split()[0] == "head.bias"
    assert f"{norm:.3g}" in bars[4]
    model.train()
    given = visualize.activations(model, ek.tensor([[1.0, 0.0, 0.0, 0.0]] * 2))
    assert model.training
    assert [line.split()[0] for line in given.lines[1:]] == ["body.0", "body.1", "head"]
    found = model.get_submodule("body")(ek.tensor([[1.0, 0.0, 0.0, 0.0]] * 2))
    assert given.lines[2].endswith(f"{np.mean(found.numpy(force=True) == 0):.0%}")
    given.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == given._repr_svg_()
    with pytest.raises(TensorError, match=r"\.svg or \.txt"):
        given.save(tmp_path / "a.jpg")
