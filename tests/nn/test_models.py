"""Recurrent layers, attention, transformers, GPT, networks for images: against what PyTorch gave, and by themselves."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from model_cases import CASES, REFERENCES, Case, interpreted, joined

import eshkol as ek
from eshkol import nn
from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError, TraceError
from eshkol.graph import interpret


@pytest.fixture(autouse=True)
def on_the_reference_backend() -> None:
    """Not here: models draw many numbers when they are made, and what they give is computed by `value`."""


def value(tensor: Any) -> np.ndarray:
    """What a tensor holds, by the references of rows: nothing is compiled."""
    found: np.ndarray = interpret.evaluate([ek.asarray(tensor).detach()._node])[0]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outputs_and_gradients_are_those_of_pytorch(case: Case) -> None:
    with np.load(REFERENCES) as kept:
        np.testing.assert_allclose(joined(interpreted(case)), kept[case.name], rtol=1e-10, atol=1e-10)


# --- recurrent --------------------------------------------------------------------------------------------------------


@pytest.fixture
def rng() -> np.random.Generator:
    ek.seed(5)
    return np.random.default_rng(5)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_states_stop_at_the_lengths(kind: Any, rng: np.random.Generator) -> None:
    """Each example is as it is alone, without what stands behind it."""
    model = kind(2, 3, 2, bidirectional=True, batch_first=True, dtype="float64")
    x = rng.normal(size=(3, 4, 2))
    lengths = [4, 2, 0]
    outputs, ends = model(ek.tensor(x), lengths=lengths)
    ends = ends if isinstance(ends, tuple) else (ends,)
    outputs, ends = value(outputs), [value(end) for end in ends]
    for n, length in enumerate(lengths):
        np.testing.assert_array_equal(outputs[n, length:], 0)
        alone, last = model(ek.tensor(x[n, :length]))
        np.testing.assert_allclose(outputs[n, :length], value(alone), atol=1e-12)
        for end, wanted in zip(ends, last if isinstance(last, tuple) else (last,), strict=True):
            np.testing.assert_allclose(end[:, n], value(wanted), atol=1e-12)


def test_a_layer_is_its_cell_step_by_step(rng: np.random.Generator) -> None:
    layer, cell = nn.GRU(2, 3, dtype="float64"), nn.GRUCell(2, 3, dtype="float64")
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in layer.state_dict().items()})
    x = ek.tensor(rng.normal(size=(3, 2, 2)))
    outputs, last = layer(x)
    h = None
    for t in range(3):
        h = cell(x[t], h)
        np.testing.assert_allclose(value(outputs[t]), value(h), atol=1e-12)
    np.testing.assert_array_equal(value(last[0]), value(outputs[2]))


def test_dropout_is_between_layers_and_in_training_alone(rng: np.random.Generator) -> None:
    model = nn.LSTM(2, 3, 2, dropout=1.0)
    x = ek.tensor(rng.normal(size=(3, 2, 2)).astype(np.float32))
    zeros = nn.LSTM(3, 3)
    zeros.load_state_dict({name.replace("l1", "l0"): p for name, p in model.state_dict().items() if "l1" in name})
    np.testing.assert_array_equal(value(model(x)[0]), value(zeros(ek.zeros((3, 2, 3)))[0]))
    assert not np.array_equal(value(model.eval()(x)[0]), value(zeros(ek.zeros((3, 2, 3)))[0]))
    with pytest.raises(TraceError, match="LSTM"):
        ek.jit(lambda x: model.train()(x)[0])(x)


def test_products_are_lowered_within_autocast(rng: np.random.Generator) -> None:
    x = ek.tensor(rng.normal(size=(3, 2, 4)).astype(np.float32))
    for model in (nn.LSTM(4, 4), nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2, 4, 0.0)):
        plain = model(x)
        with nn.autocast("bfloat16"):
            lower = model(x)
        plain, lower = (value(y[0] if isinstance(y, tuple) else y).astype(np.float32) for y in (plain, lower))
        assert not np.array_equal(plain, lower)
        np.testing.assert_allclose(lower, plain, atol=0.1)


# --- attention and transformers ---------------------------------------------------------------------------------------


def test_causal_is_the_mask_that_forbids_what_comes_later(rng: np.random.Generator) -> None:
    x = ek.tensor(rng.normal(size=(2, 4, 6)))
    attention = nn.MultiheadAttention(6, 3, batch_first=True, dtype="float64")
    later = ek.tensor(np.triu(np.ones((4, 4), bool), 1))
    for found, wanted in zip(attention(x, is_causal=True), attention(x, attn_mask=later), strict=True):
        np.testing.assert_allclose(value(found), value(wanted), atol=1e-12)
    layer = nn.TransformerDecoderLayer(6, 2, 4, 0.0, batch_first=True, dtype="float64")
    added = nn.Transformer.generate_square_subsequent_mask(4, "float64")
    np.testing.assert_allclose(
        value(layer(x, x, tgt_is_causal=True)), value(layer(x, x, tgt_mask=added)), atol=1e-12
    )  # fmt: skip


def test_a_query_that_may_attend_to_nothing_gives_the_bias(rng: np.random.Generator) -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    x = ek.tensor(rng.normal(size=(1, 2, 4)).astype(np.float32))
    output, weights = attention(x, x, x, key_padding_mask=ek.tensor([[True, True]]))
    np.testing.assert_array_equal(value(output), 0)
    np.testing.assert_array_equal(value(weights), 0)


def test_attention_extended_place_by_place_is_causal_attention(rng: np.random.Generator) -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True, dtype="float64")
    x = ek.tensor(rng.normal(size=(2, 5, 4)))
    whole = value(attention(x, is_causal=True)[0])
    cache = attention.empty_cache(2, 6)
    first, cache = attention.extend(x[:, :3], cache, 0)
    parts = [first]
    for place in (3, 4):
        part, cache = attention.extend(x[:, place : place + 1], cache, ek.tensor(place))
        parts.append(part)
    np.testing.assert_allclose(np.concatenate([value(p) for p in parts], 1), whole, atol=1e-12)


def test_dropout_in_attention_keeps_the_mean(rng: np.random.Generator) -> None:
    attention = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)
    x = ek.tensor(np.broadcast_to(rng.normal(size=(1, 1, 4)), (400, 8, 4)).astype(np.float32))
    dropped = value(attention(x, need_weights=False)[0])
    np.testing.assert_allclose(dropped.mean((0, 1)), value(attention.eval()(x)[0])[0, 0], atol=0.05)
    assert dropped.std((0, 1)).max() > 0.01


def test_copies_of_a_layer_are_their_own(rng: np.random.Generator) -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 4), 2)
    first, second = (layer.linear1.weight for layer in encoder.layers)
    assert first is not second
    assert len(list(encoder.parameters())) == 24
    np.testing.assert_array_equal(first.detach().numpy(), second.detach().numpy())


# --- GPT --------------------------------------------------------------------------------------------------------------


def tiny(**sizes: Any) -> nn.GPT:
    model = nn.GPT(**{"vocabulary": 7, "context": 5, "layers": 2, "heads": 2, "width": 4} | sizes)
    for tensor in model.parameters():
        if tensor.ndim > 1:
            nn.init.normal_(tensor, 0.0, 1.0)
    return model


def test_generated_tokens_are_the_likeliest_of_whole_windows(rng: np.random.Generator) -> None:
    model, ids = tiny(context=4), np.array([[1, 2], [3, 4]])
    with ek.use_backend("reference"):
        found = model.generate(ids, 4, temperature=0.0)
        read, read_one = model._compiled()
        assert (len(read._traces), len(read_one._traces)) == (1, 1)
        assert model.generate(ids[:, :1], 0).tolist() == ids[:, :1].tolist()
        model.generate(ids[:, :1], 2, temperature=0.0)
        assert (len(read._traces), len(read_one._traces)) == (1, 1)  # another prompt and count
    seen = ids
    for _ in range(4):
        logits = value(model(ek.tensor(seen[:, -4:])))
        seen = np.concatenate([seen, logits[:, -1].argmax(-1)[:, None]], 1)
    np.testing.assert_array_equal(found.numpy(), seen)
    assert model.training


def test_keys_make_the_same_text_and_top_k_keeps_to_the_likeliest(rng: np.random.Generator) -> None:
    model = tiny(layers=1, context=6, dropout=0.5)
    with ek.use_backend("reference"):
        draws = [model.generate([1, 2], 3, top_k=2, rng=ek.random.key(n)).tolist() for n in (0, 0, 1)]
        assert draws[0] == draws[1]
        assert len({tuple(draw) for draw in draws}) > 1
        copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        assert copied.generate([1, 2], 1, top_k=2, rng=ek.random.key(0)).tolist() == draws[0][:3]
    model.eval()
    for draw in draws:
        for at in range(2, 5):
            assert draw[at] in value(model(ek.tensor([draw[:at]])))[0, -1].argsort()[-2:]


def test_a_gpt_begins_as_gpt2_does(rng: np.random.Generator) -> None:
    model = nn.GPT(vocabulary=300, context=20, layers=2, heads=2, width=32, tied=False)
    state = {name: x.numpy() for name, x in model.state_dict().items()}
    assert abs(state["tokens.weight"].std() - 0.02) < 0.001
    assert abs(state["blocks.1.up.weight"].std() - 0.02) < 0.001
    assert abs(state["blocks.0.down.weight"].std() - 0.01) < 0.001
    assert abs(state["blocks.0.attention.out_proj.weight"].std() - 0.01) < 0.001
    assert not state["blocks.0.attention.in_proj_bias"].any()
    assert not state["blocks.0.up.bias"].any()
    assert (state["norm.weight"] == 1).all()
    assert "head.weight" in state
    assert "head.weight" not in tiny().state_dict()


# --- images -----------------------------------------------------------------------------------------------------------


def test_a_residual_block_adds_what_it_was_given() -> None:
    block = nn.BasicBlock(2, 2).eval()
    x = ek.tensor(np.random.default_rng(0).normal(size=(1, 2, 3, 3)).astype(np.float32))
    nn.init.zeros_(block.conv2.weight)
    np.testing.assert_allclose(value(block(x)), np.maximum(value(x), 0), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "image", "result", "parameters"),
    [
        pytest.param(nn.resnet18, (1, 3, 64, 64), (1, 1000), 11_689_512, marks=pytest.mark.slow),
        pytest.param(nn.resnet34, (1, 3, 64, 64), (1, 1000), 21_797_672, marks=pytest.mark.slow),
        pytest.param(nn.resnet50, (1, 3, 64, 64), (1, 1000), 25_557_032, marks=pytest.mark.slow),
        (nn.resnet20, (2, 3, 32, 32), (2, 10), 272_474),
        pytest.param(nn.AlexNet, (1, 3, 224, 224), (1, 1000), 61_100_840, marks=pytest.mark.slow),
        (lambda: nn.AlexNet(10, width=8, hidden=16, small=True), (1, 3, 32, 32), (1, 10), None),
        (lambda: nn.InceptionModule(192, 64, 96, 128, 16, 32, 32), (1, 192, 7, 7), (1, 256, 7, 7), None),
    ],
    ids=["resnet18", "resnet34", "resnet50", "resnet20", "AlexNet", "small AlexNet", "Inception"],
)  # fmt: skip
def test_networks_for_images_have_the_known_sizes(model: Any, image: Any, result: Any, parameters: int | None) -> None:
    """Shapes without computing; numbers of parameters are those of torchvision (and of the paper, for 20 layers)."""
    made = model().eval()
    if image is not None:
        assert made(ek.zeros(image)).shape == result
    if parameters is not None:
        assert sum(p.size for p in made.parameters()) == parameters


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda: nn.LSTM(3, 4)(ek.zeros((5, 2, 2))), ShapeError, "input_size=3"),
        (lambda: nn.LSTM(3, 4)(ek.zeros((3,))), ShapeError, "time × batch"),
        (lambda: nn.LSTM(3, 4)(ek.zeros((5, 2, 3)), ek.zeros((1, 2, 4))), TensorError, r"a pair \(h, c\)"),
        (lambda: nn.GRU(3, 4)(ek.zeros((5, 2, 3)), ek.zeros((2, 4))), ShapeError, r"instead of \[1, 2, 4\]"),
        (lambda: nn.GRU(3, 4)(ek.zeros((5, 2, 3)), lengths=[1, 2, 3]), ShapeError, "lengths"),
        (lambda: nn.GRU(3, 4)(ek.zeros((5, 2, 3)), lengths=[6, 2]), ShapeError, "from 0 to 5"),
        (lambda: nn.GRU(3, 4)(ek.zeros((5, 2, 3)), lengths=[1.0, 2.0]), DTypeError, "lengths are integers"),
        (lambda: nn.GRU(3, 4)(ek.zeros((5, 2, 3), dtype="int32")), DTypeError, "floats"),
        (lambda: nn.GRUCell(3, 4)(ek.zeros((5, 2, 3))), ShapeError, "GRU"),
        (lambda: nn.RNN(3, 4, nonlinearity="gelu"), TensorError, "'tanh' or 'relu'"),
        (lambda: nn.LSTM(3, 4, dropout=2), TensorError, "probability"),
        (lambda: nn.LSTM(3, 0), EshkolError, "hidden_size"),
        (lambda: nn.MultiheadAttention(6, 4), ShapeError, "4 heads"),
        (lambda: nn.MultiheadAttention(4, 2)(ek.zeros((3, 2, 5))), ShapeError, "5 features instead of 4"),
        (lambda: nn.MultiheadAttention(4, 2)(ek.zeros((3, 2, 4)), ek.zeros((3, 1, 4))), ShapeError, "length × batch"),
        (lambda: nn.MultiheadAttention(4, 2)(ek.zeros((3, 4)), attn_mask=ek.zeros((2, 3))), ShapeError, "attn_mask"),
        (lambda: nn.MultiheadAttention(4, 2)(ek.zeros((3, 4)), attn_mask=ek.zeros((3, 3), dtype="int32")),
         DTypeError, "bools"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="step"), TensorError, "activation"),
        (lambda: nn.Transformer(4, 2, 1, 1, 4)(ek.zeros((2, 1, 4)), ek.zeros((2, 1, 3))), ShapeError, "4 features"),
        (lambda: tiny()(ek.zeros((1, 6), dtype="int32")), ShapeError, "sees 5 tokens"),
        (lambda: tiny()(ek.zeros((1, 2))), DTypeError, "ids"),
        (lambda: tiny().generate([[9]], 1), TensorError, "from 0 to 6"),
        (lambda: tiny().generate([], 1), ShapeError, "at least one"),
        (lambda: tiny().generate([1], 1, top_k=8), TensorError, "top_k"),
        (lambda: tiny().generate([1], 1, temperature=-1), TensorError, "temperature"),
        (lambda: nn.GPT(width=10, heads=3), ShapeError, "heads"),
        (lambda: nn.resnet20()(ek.zeros((1, 1, 32, 32))), ShapeError, "3 channels"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(wrong: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        wrong()
