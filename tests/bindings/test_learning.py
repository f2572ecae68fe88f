"""Models, optimizers and training of either language, used in the other: both have the same objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from batches import of_each
from eshkol import nn, optim
from eshkol.errors import EshkolError, SchemeError
from eshkol.lang.docs import library
from eshkol.lang.files import STANDARD
from eshkol.train.step import Step

WANTED = """
relu leaky-relu elu gelu silu sigmoid tanh softmax log-softmax tensor-log-softmax nn-relu nn-gelu nn-softmax
nn-layer-norm nn-attention nn-multi-head-attention nn-conv2d nn-max-pool2d nn-dropout nn-cross-entropy nn-mse-loss
cross-entropy cross-entropy-loss binary-cross-entropy categorical-cross-entropy focal-loss mse mse-loss mae huber-loss
smooth-l1 weighted-loss combined-loss kl-divergence
linear linear-layer linear-forward conv1d conv2d conv-forward conv2d-forward conv2d-backward native-conv2d
depthwise-conv2d max-pool2d avg-pool2d pool-forward maxpool2d-forward maxpool2d-backward native-max-pool2d
global-avg-pool2d adaptive-avg-pool2d batch-norm layer-norm rms-norm group-norm dropout dropout-forward embedding
positional-encoding rnn-cell lstm-cell gru-cell rnn-forward lstm-forward attention scaled-dot-product-attention
flash-attention multi-head-attention multi-head-self-attention transformer-encoder-layer transformer-decoder-layer
transformer resnet-block inception-module
sequential define-model model-parameters model-summary forward
xavier-uniform xavier-normal he-uniform he-normal uniform-init normal-init constant-init orthogonal-init
sgd-step sgd-momentum-update adam-step adam-update adamw-step lamb-step rmsprop-update adagrad adadelta optimizer-sgd
optimizer-adam optimizer-step optimizer-zero-grad
step-lr-scheduler exponential-lr-scheduler cosine-annealing-lr warmup-lr-scheduler
clip-gradients clip-by-value gradient-norm l1-regularization l2-regularization
freeze-layers load-pretrained fine-tune visualize-architecture visualize-gradients visualize-activations
train-step train-epoch train-on-batch validate fit early-stopping check-should-stop progress-bar update-progress
accuracy precision recall f1-score confusion-matrix roc-auc r2-score mean-absolute-error mean-squared-error
define-metric tensorboard-logger log-scalar log-histogram log-image
"""
NAMES = WANTED.split()
FORMS = {"define-model", "define-metric"}  # which are no procedures

NET = """
;;; A net and its loss.

(define-model Net (size)
  "A small net."
  (define hidden-layer (linear size 4))
  (define drop (dropout 0.5))
  (define fc (linear 4 1))
  (lambda (x) (-> x hidden-layer relu drop fc)))

(define (loss predictions targets) (tensor-mean (square (- predictions targets))))

(define (apply-to model x) (model x))
"""


@pytest.fixture(autouse=True)
def reference() -> Iterator[None]:
    """Nothing here is worth compiling."""
    with ek.use_backend("reference"):
        yield


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("nets") / "net.esk"
    file.write_text(NET, encoding="utf-8")
    return ek.load(file)


def same(a: Any, b: Any) -> bool:
    return np.allclose(np.asarray(a.detach().numpy()), np.asarray(b.detach().numpy()), rtol=1e-5, atol=1e-6)


def test_divergences() -> None:
    normal = ek.eval("(kl-divergence (tensor (1.0 0.0) (0.0 2.0)) (tensor (0.0 0.0) (1.0 0.0)) :reduction 'batchmean)")
    assert normal.item() == pytest.approx((0.5 + (np.e - 2) / 2 + 2.0) / 2, rel=1e-6)  # the standard normal's is 0
    same = ek.eval("(kl-div-loss (tensor-log (tensor 0.25 0.75)) (tensor 0.5 0.5) :reduction 'sum)")
    assert same.item() == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3), rel=1e-5)


# --- names ------------------------------------------------------------------------------------------------------------


@of_each("name", NAMES)
def test_every_name_is_bound(name: str) -> None:
    if name in FORMS:
        assert name in library(STANDARD / "eshkol" / "learning.esk").exports
    else:
        assert callable(ek.lang[name])


def test_every_export_is_said_something_of() -> None:
    parts = ("layers", "models", "optimizers", "training", "metrics")
    known = {
        name: definition
        for part in parts
        for name, definition in library(STANDARD / "eshkol" / "learning" / f"{part}.esk").definitions.items()
    }
    exported = library(STANDARD / "eshkol" / "learning.esk").exports
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if name not in known or not known[name].doc] == []


# --- a model of Scheme in Python --------------------------------------------------------------------------------------


def test_a_model_of_scheme_is_a_module(net: Any) -> None:
    model = net.Net(3)
    assert isinstance(model, nn.Module)
    assert type(model).__name__ == "Net"
    assert model.__doc__ == net.Net.__doc__ == "A small net."
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    assert shapes == {
        "hidden_layer.weight": (4, 3), "hidden_layer.bias": (4,), "fc.weight": (1, 4), "fc.bias": (1,)
    }  # fmt: skip
    assert isinstance(model.hidden_layer, nn.Linear)
    other = net.Net(3)
    other.load_state_dict(model.state_dict())
    x = ek.random.normal((2, 3))
    assert same(model.eval()(x), other.eval()(x))
    assert "fc: Linear" in str(model.summary((2, 3)))
    assert same(ek.jit(model)(x), model(x))


def test_a_model_of_scheme_is_pure(net: Any) -> None:
    model = net.Net(3).train()
    x, key = ek.random.normal((8, 3)), ek.random.key(5)
    first, second = (ek.functional_call(model, nn.parameters_of(model), x, rng=key) for _ in range(2))
    assert same(first, second)
    assert not same(first, ek.functional_call(model, nn.parameters_of(model), x, rng=ek.random.key(6)))
    slopes = ek.grad(lambda p: net.loss(ek.functional_call(model, p, x, rng=key), x))(nn.parameters_of(model))
    assert {name: g.shape for name, g in slopes.items()} == {n: p.shape for n, p in model.named_parameters()}


def test_python_trains_a_model_of_scheme(net: Any) -> None:
    ek.seed(1)  # of some networks all hidden units are 0, and learn nothing
    model = net.Net(3)
    x = ek.ones((2, 3))
    start = model.state_dict()
    step = Step(model, net.loss, optim.SGD(model.parameters(), lr=0.01))
    losses = [step(x, ek.ones((2, 1))).loss.item() for _ in range(3)]
    assert len(set(losses)) == 3  # dropout draws anew each time
    assert not any(np.array_equal(start[name].numpy(), now.numpy()) for name, now in model.state_dict().items())


def test_parts_of_a_model_of_scheme_are_fixed(net: Any) -> None:
    with pytest.raises(EshkolError, match="defined in the body of Net"):
        net.Net(3).fc = nn.Linear(4, 2)


def test_autocast_reaches_layers_of_scheme(net: Any) -> None:
    model = net.Net(3).eval()
    with nn.autocast("bfloat16"):
        assert str(model(ek.ones((1, 3))).dtype) == "bfloat16"
    assert str(model(ek.ones((1, 3))).dtype) == "float64"


# --- a model of Python in Scheme --------------------------------------------------------------------------------------


class Doubling(nn.Module):
    """A layer of Scheme within a model of Python."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return 2 * self.inner(x)


def test_a_model_of_python_is_a_procedure(net: Any) -> None:
    model = Doubling(net.Net(3)).eval()
    x = ek.random.normal((2, 3))
    assert net.apply_to(model, x) is not None
    assert same(net.apply_to(model, x), 2 * model.inner(x))
    assert same(ek.lang.forward(model, x.tolist()), model(x))
    assert [pair.car for pair in ek.lang.named_parameters(model)] == [name for name, _ in model.named_parameters()]
    assert all(a is b for a, b in zip(ek.lang.model_parameters(model), model.parameters(), strict=True))
    assert ek.eval("(lambda (m) m)")(model) is model


def test_scheme_trains_a_model_of_python() -> None:
    ek.seed(2)
    model = nn.Sequential(nn.Linear(2, 1))
    x = ek.random.normal((8, 2))
    y = ek.sum(x, 1, True)
    train = ek.eval(
        "(lambda (model x y) (let ((o (optimizer-sgd model 0.1)))"
        " (map (lambda (k) (tensor->number (train-step model o mse x y))) (iota 12))))"
    )
    losses = train(model, x, y)
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(linear 3 2)", lambda: nn.Linear(3, 2)),
        ("(conv2d 3 4 3 1 1)", lambda: nn.Conv2d(3, 4, 3, 1, 1)),
        ("(conv2d 3 4 '(3 5) :stride '(1 2))", lambda: nn.Conv2d(3, 4, (3, 5), stride=(1, 2))),
        ("(max-pool2d 2 2)", lambda: nn.MaxPool2d(2, 2)),
        ("(batch-norm 4)", lambda: nn.BatchNorm(4)),
        ("(layer-norm '(2 3))", lambda: nn.LayerNorm((2, 3))),
        ("(dropout 1/4)", lambda: nn.Dropout(0.25)),
        ("(embedding 5 2 :padding-idx 0)", lambda: nn.Embedding(5, 2, padding_idx=0)),
        ("(rnn-cell 2 3 :nonlinearity 'relu)", lambda: nn.RNNCell(2, 3, nonlinearity="relu")),
        ("(sequential (linear 2 3) (relu))", lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU())),
    ],
)
def test_the_objects_are_those_of_python(text: str, made: Any) -> None:
    with_seed = []
    for make in (lambda: ek.eval(text), made):
        ek.seed(7)
        with ek.default_dtype("float64"):  # as Scheme has it
            with_seed.append(make())
    ours, theirs = with_seed
    assert type(ours) is type(theirs)
    assert repr(ours) == repr(theirs)
    for (name, a), (other, b) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
        assert name == other
        assert np.array_equal(a.numpy(), b.numpy())


def test_losses_take_their_options() -> None:
    x, y = ek.random.normal((4, 3)), ek.tensor([0, 2, 1, 2])
    weight = ek.tensor([1.0, 2.0, 3.0])
    call = ek.eval(
        "(lambda (x y w) (cross-entropy x y :weight w :label-smoothing 0.1 :ignore-index 1 :reduction 'sum))"
    )
    assert same(
        call(x, y, weight),
        ek.cross_entropy(x, y, weight=weight, label_smoothing=0.1, ignore_index=1, reduction="sum"),
    )


# --- optimizers: the same as the objects of Python, over four steps ---------------------------------------------------

UPDATES = {
    "adam-update": (optim.Adam, "(adam-update w g s 0.05 0.8 0.95 1e-6)", {"betas": (0.8, 0.95), "eps": 1e-6}),
    "adamw-update": (
        optim.AdamW, "(adamw-update w g s 0.05 0.8 0.95 1e-6 0.1)",
        {"betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    ),
    "rmsprop-update": (optim.RMSprop, "(rmsprop-update w g s 0.05 0.9 1e-6)", {"alpha": 0.9, "eps": 1e-6}),
    "adagrad": (optim.Adagrad, "(adagrad w g s 0.05 1e-6)", {"eps": 1e-6}),
    "adadelta": (optim.Adadelta, "(adadelta w g s 0.05 0.8 1e-6)", {"rho": 0.8, "eps": 1e-6}),
    "sgd-momentum-update": (optim.SGD, "(sgd-momentum-update w g s 0.05 0.9)", {"momentum": 0.9}),
}  # fmt: skip


@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_those_of_the_objects(name: str) -> None:
    make, text, options = UPDATES[name]
    update = ek.eval(f"(lambda (w g s) (call-with-values (lambda () {text}) list))")
    rng = np.random.default_rng(0)
    start = rng.normal(size=(2, 3))
    parameter = nn.Parameter(ek.tensor(start, dtype="float64"))
    optimizer = make([parameter], lr=0.05, **options)
    value: Any = ek.tensor(start, dtype="float64")
    number: Any = float(start[0, 0])
    state: Any = False
    number_state: Any = False
    for _ in range(4):
        slope = rng.normal(size=(2, 3))
        parameter.grad = ek.tensor(slope, dtype="float64")
        optimizer.step()
        value, state = update(value, ek.tensor(slope, dtype="float64"), state)
        number, number_state = update(number, float(slope[0, 0]), number_state)
    assert np.allclose(value.numpy(), parameter.detach().numpy(), rtol=1e-12, atol=1e-14)
    assert isinstance(number, float)
    assert np.isclose(number, value.numpy()[0, 0], rtol=1e-12)


# --- errors show the line of Scheme -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(linear -3 2)", "in_features"),
        ("(conv2d 3)", "missing"),
        ("(linear 3 2 :biass #f)", ":biass"),
        ("(dropout 1.5)", "0 to 1"),
        ("(multi-head-attention 7 2)", "heads"),
        ("((linear 3 2) (ones '(1 4)))", "4"),
        ("(forward (linear 3 2) '((1.0 2.0)))", "3"),
        ("(rnn-forward (linear 2 2) (ones '(1 2 2)))", "rnn-cell"),
        ("(lstm-forward (lstm-cell 2 2) (ones '(1 2 2)) (ones '(1 2)))", "two states"),
        ("(xavier-uniform '(3))", "two axes"),
        ("(optimizer-sgd '())", "no parameters"),
        ("(optimizer-sgd (linear 2 2) :lr -1)", "lr"),
        ("(model-summary (linear 2 3))", "shape of the input"),
        ("(model-summary (linear 2 3) '(1 5))", "2"),
    ],
)
def test_misuse_shows_the_line(text: str, said: str) -> None:
    with pytest.raises(EshkolError, match=said.replace("(", r"\(")) as found:
        ek.eval(f"(define wanted\n  {text})")
    shown = str(found.value) + "".join(getattr(found.value, "__notes__", []))
    assert "^~" in shown
    assert text in shown
    assert isinstance(found.value, SchemeError) or "called by Scheme" in shown


def test_start_up_asks_for_no_library_of_python(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = "import sys; from eshkol.cli.main import main; main(['-e', '(display relu)']); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "'eshkol.session'" in out
    assert "'eshkol.nn'" not in out
    assert "'numpy'" not in out


@pytest.mark.slow
@pytest.mark.unchecked  # what it trains is compared elsewhere, and takes long here
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of both languages, in their order; they share their names within a language."""
    monkeypatch.chdir(tmp_path)  # what they save goes there
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    blocks = re.findall(r"^```(python|scheme)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    for language, block in blocks:
        if language == "scheme":
            ek.eval(block)
        else:
            exec(compile(block, "learning.md", "exec"), names)
