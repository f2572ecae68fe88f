"""Layers in models: drawing, running statistics in every style, mixed precision, positions, hooks, and misuse."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, drawn

import eshkol as ek
from eshkol import nn
from eshkol.errors import DTypeError, EshkolError, ShapeError
from eshkol.nn.precision import lowered
from eshkol.nn.rows import RowLayer
from eshkol.tensors import api

# --- dropout ----------------------------------------------------------------------------------------------------------


def test_dropout_draws_in_training_alone() -> None:
    layer = nn.Dropout(0.25)
    x = ek.ones((40, 50))
    ek.seed(1)
    found = layer(x).numpy()
    np.testing.assert_allclose(np.unique(found), [0.0, 1 / 0.75], rtol=1e-6)
    assert (found == 0).mean() == pytest.approx(0.25, abs=0.04)
    assert not (layer(x).numpy() == found).all()
    ek.seed(1)
    np.testing.assert_array_equal(layer(x).numpy(), found)
    assert layer.eval()(x) is x
    assert nn.Dropout(0.0)(x) is x
    np.testing.assert_array_equal(nn.Dropout(1.0)(ek.ones((3,))).numpy(), [0, 0, 0])


def test_dropout_of_channels_takes_whole_channels() -> None:
    found = nn.Dropout2d(0.5)(ek.ones((8, 6, 2, 2))).numpy().reshape(48, 4)
    assert set(found.min(1)) == set(found.max(1)) == {0.0, 2.0}
    with pytest.raises(ShapeError, match="channels × 2 axes"):
        nn.Dropout2d()(ek.ones((3, 4)))


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = ek.normal(ek.key(0), (60, 60))
    found = nn.AlphaDropout(0.3)(x).numpy()
    assert found.mean() == pytest.approx(0, abs=0.05)
    assert found.std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("p", [-0.1, 1.5, "half", True])
def test_dropout_takes_a_probability(p: Any) -> None:
    with pytest.raises(EshkolError, match=r"Dropout: p is a probability from 0 to 1"):
        nn.Dropout(p)


# --- running statistics -----------------------------------------------------------------------------------------------

BATCH = np.random.default_rng(3).normal(2.0, 3.0, (6, 2))


def statistics(layer: Any) -> list[Any]:
    return [b.numpy() for b in (layer.running_mean, layer.running_var, layer.num_batches_tracked)]


def expected_statistics(steps: int) -> list[Any]:
    mean, var = np.zeros(2), np.ones(2)
    for _ in range(steps):
        mean, var = 0.9 * mean + 0.1 * BATCH.mean(0), 0.9 * var + 0.1 * BATCH.var(0, ddof=1)
    return [mean, var, np.array(steps)]


def test_running_statistics_are_kept_in_every_style() -> None:
    x = ek.tensor(BATCH)
    eager, compiled, pure = (nn.BatchNorm1d(2, dtype="float64") for _ in range(3))
    run = ek.jit(compiled)
    held = eager.running_mean
    for _ in range(2):
        eager(x).sum().backward()
        with ek.no_grad():
            run(x)
    assert eager.running_mean is held  # whoever holds the buffer sees its values
    for found in (statistics(eager), statistics(compiled)):
        for a, b in zip(found, expected_statistics(2), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    state = dict(pure.state_dict())
    for _ in range(2):
        _, buffers = nn.functional_call(pure, state, x, with_buffers=True)
        state |= buffers
    np.testing.assert_allclose(state["running_var"].numpy(), expected_statistics(2)[1], rtol=1e-12)
    np.testing.assert_array_equal(statistics(pure)[2], 0)


def test_statistics_are_computed_with_the_gradients() -> None:
    layer = nn.BatchNorm1d(2)
    layer(ek.ones((3, 2))).sum().backward()
    assert layer.running_mean._node.data is not None


@pytest.mark.slow
def test_gradients_through_running_statistics() -> None:
    model = nn.Sequential(nn.Linear(2, 2, dtype="float64"), nn.BatchNorm1d(2, dtype="float64"))
    x = ek.tensor(BATCH)
    found = ek.grad(lambda p: (nn.functional_call(model, p, x) ** 3).sum())(nn.parameters_of(model))
    (model(x) ** 3).sum().backward()
    for name, p in model.named_parameters():
        np.testing.assert_allclose(found[name].numpy(), p.grad.numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model[1].num_batches_tracked.numpy(), 1)


def test_statistics_are_forgotten_when_asked() -> None:
    layer = nn.BatchNorm1d(2)
    layer(ek.tensor(BATCH.astype(np.float32)))
    layer.reset_running_stats()
    for a, b in zip(statistics(layer), expected_statistics(0), strict=True):
        np.testing.assert_array_equal(a, b)


# --- mixed precision --------------------------------------------------------------------------------------------------


def test_autocast_multiplies_in_another_dtype() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    kinds: list[str] = []
    for part in model:
        part.register_forward_hook(lambda module, args, result: kinds.append(str(result.dtype)))
    x = ek.ones((2, 3))
    with nn.autocast("bfloat16"):
        result = model(x)
        loss = nn.MSELoss()(result, ek.zeros((2, 2)))
    assert kinds == ["bfloat16", "float32", "bfloat16"]
    assert str(loss.dtype) == "float32"
    (gradient,) = ek.vjp(lambda w: ek.linear(*lowered(x, w)), model[0].weight.detach())[1](ek.ones((2, 4), "bfloat16"))
    assert str(gradient.dtype) == "float32"
    assert str(model(x).dtype) == "float32"


def test_a_compiled_model_sees_another_precision() -> None:
    run = ek.jit(nn.Linear(3, 4).eval())
    with ek.no_grad():
        assert str(run(ek.ones((2, 3))).dtype) == "float32"
        with nn.autocast():
            assert str(run(ek.ones((2, 3))).dtype) == "bfloat16"
        assert str(run(ek.ones((2, 3))).dtype) == "float32"


def test_autocast_takes_floats() -> None:
    with pytest.raises(DTypeError, match="computes with floats, not int32"):
        nn.autocast("int32")


# --- positions --------------------------------------------------------------------------------------------------------


def test_positional_encoding_is_added() -> None:
    layer = nn.PositionalEncoding(4, max_len=10, dtype="float64")
    found = layer(ek.zeros((2, 3, 4), dtype="float64"), offset=2).numpy()
    t = np.arange(2, 5)[:, None]
    expected = np.stack([np.sin(t), np.cos(t), np.sin(t / 100), np.cos(t / 100)], -1).reshape(3, 4)
    np.testing.assert_allclose(found, np.broadcast_to(expected, (2, 3, 4)), atol=1e-12)
    turned = nn.PositionalEncoding(4, 10, batch_first=False, dtype="float64")(ek.zeros((3, 2, 4), dtype="float64"))
    np.testing.assert_allclose(turned.numpy()[:, 1], layer(ek.zeros((3, 4), dtype="float64")).numpy(), atol=1e-12)
    assert layer.state_dict() == {}
    assert list(nn.PositionalEncoding(4, 10, learned=True).state_dict()) == ["weight"]
    with pytest.raises(ShapeError, match="knows 10 positions, and was asked for 8 to 11"):
        layer(ek.zeros((3, 4), dtype="float64"), offset=8)


def test_rotary_embedding_depends_on_distances_alone() -> None:
    layer = nn.RotaryEmbedding(4, 20, dtype="float64")
    rng = np.random.default_rng(0)
    q, k = (ek.tensor(np.broadcast_to(rng.normal(size=4), (5, 4))) for _ in range(2))
    near, far = ((layer(q, offset=n) @ layer(k, offset=n).T).numpy() for n in (0, 7))
    np.testing.assert_allclose(near, far, atol=1e-12)
    np.testing.assert_allclose(np.diag(near, 1), near[0, 1], atol=1e-12)


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_backward_hooks_see_and_change_gradients() -> None:
    model = nn.Sequential(nn.Linear(2, 3, dtype="float64"), nn.Tanh())
    x, seen = ek.tensor(BATCH), []
    watch = model[0].register_backward_hook(lambda module, g: seen.append((module, g.numpy())))
    model(x).sum().backward()
    plain = model[0].weight.grad.numpy()
    slope = 1 - np.tanh(BATCH @ model[0].weight.detach().numpy().T + model[0].bias.detach().numpy()) ** 2
    assert seen[0][0] is model[0]
    np.testing.assert_allclose(seen[0][1], slope, atol=1e-12)
    watch.remove()
    twice = model[1].register_backward_hook(lambda module, g: g * 2)
    pure = ek.jit(ek.grad(lambda p, x: nn.functional_call(model, p, x).sum()))(nn.parameters_of(model), x)
    model.zero_grad()
    model(x).sum().backward()
    twice.remove()
    for found in (model[0].weight.grad, pure["0.weight"]):
        np.testing.assert_allclose(found.numpy(), 2 * plain, rtol=1e-12)
    assert len(seen) == 1


def test_a_backward_hook_of_several_results() -> None:
    class Both(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"twice": x * 2, "kept": (x, 3)}

    model, seen = Both(), []
    model.register_backward_hook(lambda module, g: seen.append(g))
    x = ek.tensor([1.0, 2.0], requires_grad=True)
    found = model(x)
    (found["twice"] * found["kept"][0]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 8.0])
    np.testing.assert_array_equal(seen[0]["twice"].numpy(), [1.0, 2.0])
    assert seen[0]["kept"][1] == 3


def test_a_hook_that_gives_another_shape_is_refused() -> None:
    layer = nn.Linear(2, 3)
    layer.register_backward_hook(lambda module, g: g.sum())
    with pytest.raises(ShapeError, match=r"backward hook of Linear gave shape \[\]"):
        layer(ek.ones((1, 2))).sum().backward()


def test_narrower_floats_are_widened_and_a_model_may_be_made_wide() -> None:
    layer, x = nn.Linear(3, 2), np.ones((2, 3))
    assert layer(ek.tensor(x, dtype="float16")).dtype is ek.float32
    with nn.autocast("bfloat16"):
        assert layer(ek.tensor(x)).dtype is ek.bfloat16
    assert layer.to("float64")(ek.tensor(x)).dtype is ek.float64


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: nn.Linear(3, 2)(ek.ones((2, 4))), r"in_features=3, and was given shape \[2, 4\]"),
        (lambda: nn.Linear(3, 2)(ek.ones((2, 3), dtype="int64")), "computes with floats, and was given int64"),
        (
            lambda: nn.Linear(3, 2)(ek.ones((2, 3), dtype="float64")),
            "Linear has float32 weights, and was given float64",
        ),
        (lambda: nn.Conv1d(3, 2, 1)(ek.ones((2, 3, 4), dtype="float64")), "Conv1d has float32 weights"),
        (lambda: nn.GRU(3, 2)(ek.ones((5, 2, 3), dtype="float64")), "GRU has float32 weights"),
        (lambda: nn.LSTMCell(3, 2)(ek.ones((2, 3), dtype="float64")), "LSTMCell has float32 weights"),
        (
            lambda: nn.MultiheadAttention(4, 2)(*[ek.ones((3, 2, 4), dtype="float64")] * 3),
            "MultiheadAttention has float32",
        ),
        (lambda: nn.Linear(0, 2), "in_features must be a positive integer, not 0"),
        (lambda: nn.Linear(3, 2)([1, 2, 3]), "takes a tensor, not a list"),
        (lambda: nn.Embedding(3, 2)(ek.ones((2,))), "integer ids, not float32"),
        (lambda: nn.Embedding(3, 2)(ek.tensor([3])).numpy(), "out of range"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx 3 is not among 3"),
        (lambda: nn.Conv2d(3, 4, 3)(ek.ones((1, 4, 5, 5))), "in_channels=3, and was given"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not make 2 groups"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "kernel_size is one integer from 1 on, or 2 of them"),
        (lambda: nn.Conv2d(3, 4, 3, padding="some"), '"same" or "valid"'),
        (lambda: nn.Conv2d(3, 4, 3, stride=2, padding="same"), "needs stride 1"),
        (lambda: nn.Conv1d(3, 4, 3, padding_mode="mirror"), "no padding_mode 'mirror'"),
        (lambda: nn.BatchNorm1d(3)(ek.ones((1, 3))), "one value per channel has no variance"),
        (lambda: nn.BatchNorm2d(3)(ek.ones((2, 3))), "batch × channels × height × width"),
        (lambda: nn.BatchNorm1d(3)(ek.ones((2, 4))), "num_features=3"),
        (lambda: nn.InstanceNorm1d(3)(ek.ones((2, 3, 1))), "one value per channel"),
        (lambda: nn.GroupNorm(2, 3), "3 channels do not make 2 groups"),
        (lambda: nn.LayerNorm(3)(ek.ones((2, 4))), "does not end with"),
        (lambda: nn.ReLU(slope=0.1), r"unexpected keyword argument 'slope'"),
        (lambda: nn.ReLU()(3), "takes a tensor, not a int"),
        (lambda: nn.Flatten(2)(ek.ones((2, 3))), "does not suit shape"),
        (lambda: nn.Unflatten(1, (2, 2))(ek.ones((2, 3))), r"do not make \[2, 2\]"),
        (lambda: nn.Upsample(), "a size or a scale_factor"),
        (lambda: nn.RotaryEmbedding(3), "turns pairs"),
    ],
)
def test_misuse_is_named(asked: Any, said: str) -> None:
    with pytest.raises(EshkolError, match=said) as raised:
        asked()
    assert raised.value.span is not None


# --- layers of rows ---------------------------------------------------------------------------------------------------


OF_ROWS = [case for case in CASES if issubclass(getattr(nn, case.kind), RowLayer)]


@pytest.mark.parametrize("case", OF_ROWS, ids=lambda case: case.name)
def test_they_are_their_rows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """They call their row with what they were given; what that computes is tested with the rows."""
    layer = getattr(nn, case.kind)(*case.args, **case.given)
    inputs = [ek.tensor(x) for x in drawn(case)]
    called: list[Any] = []
    monkeypatch.setattr(api, layer.row, lambda *args, **given: called.append((args, given)))
    layer(*inputs)
    ((args, given),) = called
    assert all(a is b for a, b in zip(args, inputs, strict=True))
    signature = inspect.signature(getattr(ek, layer.row))
    bound = signature.bind(*inputs, *case.args, **{("axis" if k == "dim" else k): v for k, v in case.given.items()})
    for name, value in list(bound.arguments.items())[len(inputs) :]:
        assert np.array_equal(np.asarray(given[name]), np.asarray(value)), name


def test_depthwise_convolution_is_one_of_groups() -> None:
    layer = nn.DepthwiseConv2d(2, 3, padding=1, multiplier=2, dtype="float64")
    x = ek.tensor(np.random.default_rng(0).normal(size=(1, 2, 3, 3)))
    found = layer(x).detach().numpy()
    for channel in range(2):
        one = ek.conv2d(x[:, channel : channel + 1], layer.weight[2 * channel : 2 * channel + 2], padding=1)
        expected = one + layer.bias[2 * channel : 2 * channel + 2].reshape((2, 1, 1))
        np.testing.assert_allclose(found[:, 2 * channel : 2 * channel + 2], expected.detach().numpy(), atol=1e-12)


# --- text, copies -----------------------------------------------------------------------------------------------------


def test_layers_show_how_they_were_made() -> None:
    assert repr(nn.Conv2d(3, 4, 3, padding=1)) == "Conv2d(3, 4, kernel_size=(3, 3), padding=(1, 1))"
    assert repr(nn.Softmax(dim=1)) == "Softmax(dim=1)"
    assert repr(nn.DepthwiseConv2d(3, 3, bias=False)).endswith("groups=3, bias=False)")


def test_layers_of_rows_can_be_pickled() -> None:
    for layer in (nn.LeakyReLU(0.3), nn.MaxPool2d(2), nn.HuberLoss(delta=0.5)):
        again = pickle.loads(pickle.dumps(layer))
        assert type(again) is type(layer)
        assert repr(again) == repr(layer)


def test_pretrained_embeddings() -> None:
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(table)
    np.testing.assert_array_equal(layer(ek.tensor([2, 0])).numpy(), table[[2, 0]])
    assert not layer.weight.requires_grad


@pytest.mark.slow
def test_the_examples_of_the_documentation_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "layers.md").read_text(encoding="utf-8")
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "layers.md", "exec"), {})
