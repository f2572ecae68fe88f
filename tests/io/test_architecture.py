"""Models that are made from a file alone: every layer comes back bit for bit; what is no recipe is refused."""

from __future__ import annotations

import sys
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim
from eshkol.errors import CheckpointError
from eshkol.nn import recipes
from eshkol.nn.recipes import recipe_of
from eshkol.nn.remaking import Strange, model_of

sys.path.insert(0, str(Path(__file__).parents[1] / "nn"))  # the cases that layers are compared with PyTorch in

from cases import ACTIVATIONS, LAYERS, drawn


@pytest.fixture(autouse=True)
def _small() -> Any:
    with ek.use_backend("reference"):
        yield


def saved_and_made(model: Any, path: Path, **others: Any) -> Any:
    ek.io.save_checkpoint(path, model, **others)
    with ek.io.load_checkpoint(path) as file:
        return file.model


def outputs(model: Any, inputs: Any) -> list[Any]:
    """What a model gives, drawing the same numbers each time, and its state afterwards."""
    ek.seed(7)
    with ek.no_grad():
        found = ek.tree_leaves(model(*inputs))
    return [np.array(x.numpy()) for x in [*found, *model.state_dict().values()]]


def assert_same(made: Any, model: Any, inputs: Any) -> None:
    assert repr(made) == repr(model)
    assert [part.training for part in made.modules()] == [part.training for part in model.modules()]
    for a, b in zip(outputs(made, inputs), outputs(model, inputs), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


# --- every layer ------------------------------------------------------------------------------------------------------


def sequence(*shape: int) -> Any:
    return ek.tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def ids(*shape: int) -> Any:
    return ek.tensor(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) % 5)


IMAGE = (2, 3, 8, 8)
MORE: dict[str, tuple[Callable[[], Any], Callable[[], list[Any]]]] = {
    "Dropout1d": (lambda: nn.Dropout1d(0.25), lambda: [sequence(2, 3, 4)]),
    "Dropout3d": (lambda: nn.Dropout3d(0.25), lambda: [sequence(1, 3, 2, 2, 2)]),
    "DepthwiseConv2d": (lambda: nn.DepthwiseConv2d(3, 3, multiplier=2), lambda: [sequence(*IMAGE)]),
    "BatchNorm": (lambda: nn.BatchNorm(3), lambda: [sequence(2, 3, 4)]),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(3), lambda: [sequence(1, 3, 2, 2, 2)]),
    "GlobalAvgPool2d": (nn.GlobalAvgPool2d, lambda: [sequence(*IMAGE)]),
    "GlobalMaxPool2d": (nn.GlobalMaxPool2d, lambda: [sequence(*IMAGE)]),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(4, max_len=9), lambda: [sequence(2, 3, 4)]),
    "RotaryEmbedding": (lambda: nn.RotaryEmbedding(4, max_len=9), lambda: [sequence(2, 3, 4)]),
    "RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), lambda: [sequence(2, 1, 3)]),
    "LSTM": (lambda: nn.LSTM(3, 2, bidirectional=True, batch_first=True), lambda: [sequence(2, 2, 3)]),
    "GRU": (lambda: nn.GRU(3, 2, bias=False), lambda: [sequence(2, 1, 3)]),
    "RNNCell": (lambda: nn.RNNCell(3, 2), lambda: [sequence(2, 3)]),
    "LSTMCell": (lambda: nn.LSTMCell(3, 2), lambda: [sequence(2, 3)]),
    "GRUCell": (lambda: nn.GRUCell(3, 2), lambda: [sequence(2, 3)]),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=2, bias=False),
        lambda: [sequence(2, 1, 4), sequence(3, 1, 3), sequence(3, 1, 2)],
    ),
    "SelfAttention": (lambda: nn.SelfAttention(4, 2, causal=True), lambda: [sequence(1, 3, 4)]),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"),
        lambda: [sequence(2, 1, 4)],
    ),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(4, 2, 8, norm_first=True),
        lambda: [sequence(2, 1, 4), sequence(3, 1, 4)],
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, nn.LayerNorm(4)),
        lambda: [sequence(2, 1, 4)],
    ),
    "TransformerDecoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1),
        lambda: [sequence(2, 1, 4), sequence(3, 1, 4)],
    ),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8), lambda: [sequence(2, 1, 4), sequence(3, 1, 4)]),
    "GPT": (
        lambda: nn.GPT(nn.GPTConfig(vocabulary=5, context=4, layers=2, heads=1, width=4), dropout=0.1),
        lambda: [ids(2, 4)],
    ),
    "GPTBlock": (
        lambda: nn.GPTBlock(nn.GPTConfig(5, 4, 1, 2, 4), dtype=ek.float64),
        lambda: [sequence(1, 3, 4).astype(ek.float64)],
    ),
    "BasicBlock": (lambda: nn.BasicBlock(3, 4, stride=2), lambda: [sequence(*IMAGE)]),
    "Bottleneck": (lambda: nn.Bottleneck(3, 2), lambda: [sequence(*IMAGE)]),
    "ResNet": (
        lambda: nn.ResNet(nn.Bottleneck, [1, 1], 3, width=2, small=True),
        lambda: [sequence(*IMAGE)],
    ),
    "InceptionModule": (lambda: nn.InceptionModule(3, 1, 1, 1, 1, 1, 1), lambda: [sequence(*IMAGE)]),
    "Sequential": (
        lambda: nn.Sequential(OrderedDict(a=nn.Linear(3, 2), b=nn.Sequential(nn.Tanh(), nn.Linear(2, 2)))),
        lambda: [sequence(2, 3)],
    ),
}
MORE |= {
    f"{kind}Pad{n}d": (
        lambda kind=kind, n=n: getattr(nn, f"{kind}Pad{n}d")(1),
        lambda n=n: [sequence(*IMAGE) if n == 2 else sequence(2, 3, 4)],
    )
    for kind in ("Zero", "Constant", "Reflection", "Replication")
    for n in (1, 2)
}
MORE |= {
    "Unfold": (lambda: nn.Unfold(2, stride=2), lambda: [sequence(*IMAGE)]),
    "Fold": (lambda: nn.Fold((2, 2), 1), lambda: [sequence(1, 3, 4)]),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), lambda: [sequence(*IMAGE)]),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(p=1.0), lambda: [sequence(2, 3), sequence(2, 3)]),
}
HOLDERS = {"ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}  # which compute nothing
LARGE = {"AlexNet"}  # which takes 200 MB, and is made of the same layers


def test_every_class_of_the_table_is_among_the_cases() -> None:
    known = {getattr(nn, case.kind).__name__ for case in [*LAYERS, *ACTIVATIONS]}
    assert set(recipes.LAYERS) == known | set(MORE) | HOLDERS | LARGE


def come_back(cases: Any, tmp_path: Path) -> None:
    for number, case in enumerate(cases):
        ek.seed(number)
        model = getattr(nn, case.kind)(*case.args, **case.given).train(case.training)
        inputs = [ek.tensor(x.astype(np.float32) if x.dtype.kind == "f" else x) for x in drawn(case)]
        assert_same(saved_and_made(model, tmp_path / "a"), model, inputs)


QUICK = ("Linear", "Embedding", "Unflatten", "Conv1d", "BatchNorm1d", "LayerNorm", "MaxPool1d", "GELU", "Softmax2d")
QUICK_MODELS = ("PositionalEncoding", "GRUCell", "TransformerEncoder", "Sequential")


def test_some_layers_come_back_bit_for_bit(tmp_path: Path) -> None:
    come_back([next(case for case in [*LAYERS, *ACTIVATIONS] if case.kind == kind) for kind in QUICK], tmp_path)


@pytest.mark.slow
def test_every_layer_comes_back_bit_for_bit(tmp_path: Path) -> None:
    come_back([*LAYERS, *ACTIVATIONS], tmp_path)


@pytest.mark.parametrize(
    "name", [name if name in QUICK_MODELS else pytest.param(name, marks=pytest.mark.slow) for name in MORE]
)
def test_every_model_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    ek.seed(1)
    make, inputs = MORE[name]
    model = make()
    assert_same(saved_and_made(model, tmp_path / "a"), model, inputs())


def test_holders_come_back(tmp_path: Path) -> None:
    ek.seed(1)
    shared = nn.Linear(2, 2)
    model = nn.ModuleDict(
        {
            "list": nn.ModuleList([shared, nn.ReLU(), shared]),
            "numbers": nn.ParameterList([sequence(2), sequence(2, 3).astype(ek.float64)]),
            "named": nn.ParameterDict({"x": sequence(1)}),
        }
    )
    model["list"].add_module("3", None)
    made: Any = saved_and_made(model, tmp_path / "a")
    assert repr(made) == repr(model)
    assert made["list"][0] is made["list"][2]
    assert list(made.state_dict()) == list(model.state_dict())
    for name, value in model.state_dict().items():
        assert made.state_dict()[name].dtype is value.dtype
        assert np.array_equal(made.state_dict()[name].numpy(), value.numpy())
    assert all(p.requires_grad for p in made.parameters())


def test_what_training_did_comes_back(tmp_path: Path) -> None:
    """Frozen parameters, modes, another dtype: as they were."""
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.PositionalEncoding(2, 5), nn.Dropout(0.5))
    model[0].freeze()
    model[1].eval()
    model.to("float16")
    made: Any = saved_and_made(model, tmp_path / "a")
    assert [p.requires_grad for p in made.parameters()] == [False, False, True, True]
    assert made[2].weight.dtype is ek.float16
    assert_same(made, model, [sequence(4, 3).astype(ek.float16)])


def test_random_numbers_stay_where_they_are(tmp_path: Path) -> None:
    ek.io.save_checkpoint(tmp_path / "a", nn.Linear(3, 2), rng=False)
    ek.seed(5)
    wanted = ek.rand(3).tolist()
    ek.seed(5)
    assert ek.io.load_checkpoint(tmp_path / "a").model is not None
    assert ek.rand(3).tolist() == wanted


# --- optimizers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", pytest.param("AdamW", marks=pytest.mark.slow)])
def test_an_optimizer_goes_on_with_the_model(name: str, tmp_path: Path) -> None:
    ek.seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    how = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(optim, name)(
        [
            {"params": list(model[2].named_parameters()), "lr": 0.5},
            {"params": list(model[0].parameters()), "weight_decay": 0.1},
        ],
        lr=0.25,
        **how,
    )

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        (model(sequence(5, 3)) ** 2).sum().backward()
        optimizer.step()

    step(model, optimizer)
    ek.io.save_checkpoint(tmp_path / "a", model, optimizer)
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        made, its = file.model, file.optimizer
        assert file.optimizer is its
    assert repr(its) == repr(optimizer)
    assert its.names == optimizer.names
    assert its.defaults == optimizer.defaults
    for _ in range(2):
        step(model, optimizer)
        step(made, its)
    for name_, value in model.state_dict().items():
        assert np.array_equal(made.state_dict()[name_].numpy(), value.numpy())


def test_an_optimizer_that_only_its_owner_can_make(tmp_path: Path) -> None:
    class Own(optim.SGD):
        pass

    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    for optimizer, why in (
        (Own(model.parameters()), "class Own"),
        (optim.SGD([*model.parameters(), *other.parameters()]), "not of the model"),
    ):
        ek.io.save_checkpoint(tmp_path / "a", model, optimizer)
        with ek.io.load_checkpoint(tmp_path / "a") as file:
            assert file.model is not None
            with pytest.raises(CheckpointError, match=f"{why}(?s:.*)make the optimizer yourself"):
                file.optimizer  # noqa: B018


# --- models without a recipe ------------------------------------------------------------------------------------------


class Net(nn.Linear):
    """A class of one's own, though it changes nothing."""


def _changed(change: Callable[[Any], object]) -> Any:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    change(model)
    return model


def _tied() -> Any:
    parameters = nn.ParameterList([ek.ones((2,))])
    other = nn.ParameterDict()
    other["again"] = parameters[0]
    return nn.ModuleList([parameters, other])


def _deep(depth: int, inside: Any = None) -> Any:
    model = nn.ReLU() if inside is None else inside
    for _ in range(depth):
        model = nn.Sequential(model)
    return model


WITHOUT: dict[str, tuple[Callable[[], Any], str]] = {
    "one's own": (lambda: Net(2, 2), "it is of class Net"),
    "a part of one's own": (lambda: nn.Sequential(nn.ReLU(), Net(2, 2)), "'1' is of class Net"),
    "a function": (lambda: nn.Sequential(nn.Lambda(ek.relu)), "'0' is of class Lambda"),
    "made with a function": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, activation=ek.tanh), "TransformerEncoderLayer, was made with a func"
    ),
    "another parameter": (lambda: _changed(lambda m: setattr(m[0], "bias", None)), "'0', a Linear, was changed after"),
    "another number": (lambda: _changed(lambda m: setattr(m[1], "p", 0.25)), "'1', a Dropout, was changed"),
    "a hook": (lambda: _changed(lambda m: m[0].register_forward_hook(lambda *_: None)), "'0', a Linear, has hooks"),
    "a hook outside": (lambda: _changed(lambda m: m.register_forward_hook(lambda *_: None)), "Sequential, has hooks"),
    "a parameter outside": (lambda: _changed(lambda m: setattr(m, "w", nn.Parameter(ek.ones(2)))), "was given tensors"),
    "tied": (_tied, "share a tensor"),
    "deep": (lambda: _deep(17), "nested more than 16 deep"),
    "deeper than files are": (
        lambda: _deep(15, nn.TransformerEncoder(_deep(16, nn.Linear(2, 2)), 1)), "nested more than 64 deep"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT)
def test_a_model_without_a_recipe_is_saved_and_says_why(name: str, tmp_path: Path) -> None:
    make, why = WITHOUT[name]
    model = make()
    ek.io.save_checkpoint(tmp_path / "a", model, step=3)
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        with pytest.raises(CheckpointError, match=f"{why}(?s:.*)hint: make the model yourself, and restore"):
            file.model  # noqa: B018
        file.restore(model)
        assert file.step == 3
        assert list(file.state("model")) == list(model.state_dict())


def test_states_alone_have_no_recipe(tmp_path: Path) -> None:
    ek.io.save_checkpoint(tmp_path / "a", nn.Linear(2, 2).state_dict())
    with pytest.raises(CheckpointError, match="not how it is made: nothing was written of that"):
        ek.io.load_checkpoint(tmp_path / "a").model  # noqa: B018
    ek.io.save_tensors(tmp_path / "b", {"w": ek.ones(2)})
    with pytest.raises(CheckpointError, match="has no state of the model"):
        ek.io.load_checkpoint(tmp_path / "b").model  # noqa: B018


def test_copies_and_parts_have_recipes_too() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    assert recipe_of(deepcopy(model)) == recipe_of(model)
    assert recipe_of(model.layers[1])["made"]["args"] == [4, 2, 8]
    assert recipe_of(nn.Sequential(nn.Linear(2, 2), nn.ReLU())[:1])["made"]["parts"]["0"]["args"] == [2, 2]


# --- hostile recipes --------------------------------------------------------------------------------------------------


def node(kind: Any, *args: Any, **given: Any) -> dict[str, Any]:
    return {"class": kind, "args": list(args), "given": given}


def recipe(made: Any, **others: Any) -> dict[str, Any]:
    return {"made": made, "frozen": [], "evaluating": [], "dtypes": {}} | others


def nested(depth: int) -> Any:
    found: Any = node("ReLU")
    for _ in range(depth):
        found = {"class": "Sequential", "parts": {"0": found}}
    return found


HUGE = 1 << 40
LAYER = recipe(node("TransformerEncoderLayer", 4, 2, 8))
HOSTILE: dict[str, tuple[Any, str]] = {
    "nothing": (None, "no recipe"),
    "no node": (recipe(3), "nothing that can be made"),
    "an import": (recipe(node("os.system", "touch evil")), "no layer that a file may name"),
    "a name of the package": (recipe(node("init")), "no layer"),
    "a base": (recipe(node("Module")), "no layer"),
    "a loss": (recipe(node("CombinedLoss", [])), "no layer"),
    "a function": (recipe(node("Lambda", "print")), "no layer"),
    "no name": (recipe(node(["Linear"])), "no layer"),
    "no arguments": (recipe({"class": "Linear"}), "without its arguments"),
    "wrong arguments": (recipe(node("Linear", "a", None)), "positive integer"),
    "too many": (recipe(node("Linear", *range(1, 9))), "TypeError"),
    "names that are none": (recipe({"class": "Linear", "args": [], "given": {3: 4}}), "TypeError"),
    "an argument that is none": (recipe(node("Linear", {"what": 1}, 2)), "an argument that is none"),
    "no config": (recipe(node("GPT", {"config": {"evil": 1}})), "TypeError"),
    "no parts": (recipe({"class": "Sequential", "parts": [1]}), "without its parts"),
    "no parameters": (recipe({"class": "ParameterList", "parameters": {"a": 1}}), "without its parameters"),
    "a parameter of nobody": (recipe({"class": "ParameterList", "parameters": ["a"]}), "KeyError"),
    "the same as nobody": (recipe({"class": "Sequential", "parts": {"0": {"same": "9"}}}), "what is not there"),
    "a ring": (recipe({"class": "Sequential", "parts": {"0": {"same": ""}}}), "part of itself"),
    "deep": (recipe(nested(40)), "nothing that can be made"),
    "of another state": (recipe(node("Linear", 3, 2)), "does not fit"),
    "frozen of nobody": (recipe(node("Linear", 2, 2), frozen=["x"]), "KeyError"),
    "modes of nobody": (recipe(node("Linear", 2, 2), evaluating=["x"]), "KeyError"),
    "a large layer": (recipe(node("Linear", HUGE, HUGE)), "more memory|than any memory"),
    "a wide layer": (recipe(node("Linear", 1 << 20, 1 << 10)), "more memory"),
    "a large norm": (recipe(node("BatchNorm1d", 1 << 30, affine=False)), "more memory"),
    "a large table": (recipe(node("PositionalEncoding", 1 << 12, 1 << 16)), "more memory"),
    "large angles": (recipe(node("RotaryEmbedding", 1 << 12, 1 << 16)), "more memory"),
    "many copies": (recipe(node("TransformerEncoder", {"module": LAYER}, HUGE)), "more memory"),
    "many layers": (recipe(node("RNN", 1, 1, HUGE)), "more parts"),
    "many blocks": (recipe(node("GPT", layers=HUGE, vocabulary=1, context=1, heads=1, width=1)), "more parts"),
    "stages beyond counting": (recipe(node("ResNet", {"class": "BasicBlock"}, [1] * 500, width=1)), "more (parts|mem)"),
    "many parts": (
        recipe({"class": "Sequential", "parts": {str(k): node("ReLU") for k in range(20_000)}}), "names 20001 modules"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_recipes_are_refused(name: str) -> None:
    found, why = HOSTILE[name]
    state = nn.Linear(2, 2).state_dict()
    tracemalloc.start()
    try:
        with pytest.raises(Strange, match=why):
            model_of(found, state)
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()


def test_a_hostile_file_is_refused_by_its_name(tmp_path: Path) -> None:
    state = {"model": nn.Linear(2, 2).state_dict(), "architecture": {"model": recipe(node("Linear", HUGE, HUGE))}}
    ek.io.save_state(state, tmp_path / "a")
    with pytest.raises(CheckpointError, match=r"a' is refused: what it says of how its model is made"):
        ek.io.load_checkpoint(tmp_path / "a").model  # noqa: B018
    for said in (3, {"model": 3}, {"optimizer": 3}, {"unknown": [1]}):
        ek.io.save_state(state | {"architecture": said, "optimizer": {"state": {}}}, tmp_path / "a")
        with pytest.raises(CheckpointError):
            ek.io.load_checkpoint(tmp_path / "a").model  # noqa: B018
