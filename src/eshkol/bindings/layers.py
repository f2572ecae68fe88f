"""Layers as Scheme makes them, also under names that are rows of the op table.

Comes in: a name of Scheme, and what it is called with. Goes out: a module of `eshkol.nn` where the arguments describe
one (`(linear 784 256)`, `(relu)`, `(dropout 0.5)`), else what the row gives (`(relu x)`). `LAYERS` is the one place
that says which names make layers, of which class, and how their arguments tell a layer from a tensor. `nn` is imported
when the first layer is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

from eshkol.bindings.procedures import row
from eshkol.bindings.rows import Function, attribute, data, misfit, schemed, shown
from eshkol.bindings.values import Symbol, Values
from eshkol.errors import DTypeError, EshkolError, LanguageError, TensorError
from eshkol.tensors.value import Tensor

Test = Callable[[tuple[Any, ...]], bool]


def _is_number(given: Any) -> bool:
    return type(given) in (int, float, Fraction)


def nothing(args: tuple[Any, ...]) -> bool:
    """No argument by place: `(relu)`, `(elu :alpha 0.5)`."""
    return not args


def sizes(args: tuple[Any, ...]) -> bool:
    """Exact integers first, as `(conv2d 3 64 3 1 1)` has them."""
    return bool(args) and type(args[0]) is int


def extent(args: tuple[Any, ...]) -> bool:
    """An exact integer or a list of them, alone or with what is no tensor after it: `(layer-norm '(8 16))`."""
    if not args or any(isinstance(x, Tensor) for x in args):
        return False
    first = args[0]
    alone = isinstance(first, list) and len(args) == 1
    return type(first) is int or (alone and bool(first) and all(type(n) is int for n in first))


def rate(args: tuple[Any, ...]) -> bool:
    """A number, alone or with the mode after it: `(dropout 0.5)`, `(dropout 0.5 #t)`."""
    return bool(args) and _is_number(args[0]) and (len(args) == 1 or (len(args) == 2 and isinstance(args[1], bool)))


@dataclass(frozen=True)
class Layer:
    """A name of Scheme that makes a layer: of which class of `nn`, when, and of which row it is the name besides."""

    made: str
    when: Test
    row: str | None = None
    usual: Mapping[str, Any] | None = None  # what Scheme has for granted where Python has not


def always(args: tuple[Any, ...]) -> bool:
    """The name makes layers alone."""
    return True


BATCH_FIRST = {"batch_first": True}  # sequences are batch × time × features in Scheme, as the rows of attention have it


LAYERS: dict[str, Layer] = {
    # activations, which are layers without arguments
    "relu": Layer("ReLU", nothing, "relu"),
    "leaky-relu": Layer("LeakyReLU", nothing, "leaky_relu"),
    "elu": Layer("ELU", nothing, "elu"),
    "gelu": Layer("GELU", nothing, "gelu"),
    "silu": Layer("SiLU", nothing, "silu"),
    "sigmoid": Layer("Sigmoid", nothing, "sigmoid"),
    "softmax": Layer("Softmax", nothing, "softmax"),
    "log-softmax": Layer("LogSoftmax", nothing, "log_softmax"),
    "flatten": Layer("Flatten", nothing, "flatten"),
    # products and tables
    "linear": Layer("Linear", sizes, "linear"),
    "embedding": Layer("Embedding", sizes, "embedding"),
    # windows
    "conv1d": Layer("Conv1d", sizes, "conv1d"),
    "conv2d": Layer("Conv2d", sizes, "conv2d"),
    "depthwise-conv2d": Layer("DepthwiseConv2d", sizes, "depthwise_conv2d"),
    "max-pool2d": Layer("MaxPool2d", extent, "max_pool2d"),
    "avg-pool2d": Layer("AvgPool2d", extent, "avg_pool2d"),
    "global-avg-pool2d": Layer("GlobalAvgPool2d", nothing, "global_avg_pool2d"),
    "adaptive-avg-pool2d": Layer("AdaptiveAvgPool2d", extent, "adaptive_avg_pool2d"),
    # normalization
    "batch-norm": Layer("BatchNorm", sizes, "batch_norm"),
    "layer-norm": Layer("LayerNorm", extent, "layer_norm"),
    "rms-norm": Layer("RMSNorm", extent, "rms_norm"),
    "group-norm": Layer("GroupNorm", sizes, "group_norm"),
    "dropout": Layer("eshkol.bindings.layer_forms:dropout", rate, "dropout"),
    # attention
    "multi-head-attention": Layer("MultiheadAttention", sizes, "multi_head_attention", BATCH_FIRST),
    "multi-head-self-attention": Layer(
        "SelfAttention", sizes, "multi_head_self_attention", BATCH_FIRST
    ),
    # names that make layers alone
    "linear-layer": Layer("Linear", always),
    "positional-encoding-layer": Layer("eshkol.bindings.layer_forms:positions", always),
    "rnn-cell": Layer("RNNCell", always),
    "lstm-cell": Layer("LSTMCell", always),
    "gru-cell": Layer("GRUCell", always),
    "transformer-encoder-layer": Layer("TransformerEncoderLayer", always, usual=BATCH_FIRST),
    "transformer-decoder-layer": Layer("TransformerDecoderLayer", always, usual=BATCH_FIRST),
    "transformer": Layer("Transformer", always, usual=BATCH_FIRST),
    "resnet-block": Layer("eshkol.bindings.layer_forms:resnet_block", always),
    "inception-module": Layer("eshkol.bindings.layer_forms:inception_module", always),
}  # fmt: skip
"""By the names of Scheme."""

MAKERS: dict[str, str] = {
    # initial values
    "xavier-uniform": "eshkol.nn.init:xavier_uniform",
    "xavier-normal": "eshkol.nn.init:xavier_normal",
    "he-uniform": "eshkol.nn.init:he_uniform",
    "he-normal": "eshkol.nn.init:he_normal",
    "uniform-init": "eshkol.nn.init:uniform",
    "normal-init": "eshkol.nn.init:normal",
    "constant-init": "eshkol.nn.init:constant",
    "orthogonal-init": "eshkol.nn.init:orthogonal",
    # schedules
    "step-lr-scheduler": "eshkol.optim:StepLR",
    "multi-step-lr-scheduler": "eshkol.optim:MultiStepLR",
    "exponential-lr-scheduler": "eshkol.optim:ExponentialLR",
    "linear-lr-scheduler": "eshkol.optim:LinearLR",
    "cosine-annealing-lr": "eshkol.optim:CosineAnnealingLR",
    "cosine-annealing-warm-restarts": "eshkol.optim:CosineAnnealingWarmRestarts",
    "one-cycle-lr-scheduler": "eshkol.optim:OneCycleLR",
    "plateau-lr-scheduler": "eshkol.optim:ReduceLROnPlateau",
    "warmup-lr-scheduler": "eshkol.optim:WarmupLR",
    "lambda-lr-scheduler": "eshkol.optim:LambdaLR",
    "sequential-lr-scheduler": "eshkol.optim:SequentialLR",
    "chained-lr-scheduler": "eshkol.optim:ChainedScheduler",
}
"""Names of Scheme that make something else of sizes and numbers, with what makes it."""


WORDS: dict[Test, str] = {
    nothing: "Without arguments by place",
    sizes: "Given sizes in place of tensors",
    extent: "Given a size, or a list of sizes, in place of tensors",
    rate: "Given a number alone",
}


def said(name: str) -> str:
    """When a name of a row makes a layer, in words; nothing of other names."""
    layer = LAYERS.get(name)
    return f" {WORDS[layer.when]}, it makes such a layer." if layer is not None and layer.when in WORDS else ""


def overloaded(name: str) -> Function:
    """The function of a name of `LAYERS`: a layer where the arguments describe one, else the row."""
    layer = LAYERS[name]
    make = maker(name, layer)
    if layer.row is None:
        return make
    when, apply = layer.when, row(layer.row)

    def function(*args: Any, **given: Any) -> Any:
        return make(*args, **given) if when(args) else apply(*args, **given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = apply.__doc__
    return function


def made(name: str) -> Function:
    """The function of a name of `MAKERS`."""
    return maker(name, Layer(MAKERS[name], always))


def maker(name: str, layer: Layer) -> Function:
    """The function that makes modules of a class of `nn`, or whatever a function there makes."""

    def make(*args: Any, **given: Any) -> Any:
        return called(found(layer.made), args, {**layer.usual, **given} if layer.usual else given)

    make.__name__ = make.__qualname__ = name
    return make


@cache
def found(place: str) -> Any:
    """A class or function: of `nn`, or `module:name` of another module."""
    module, _, name = place.rpartition(":")
    return getattr(import_module(module or "eshkol.nn"), name)


def called(function: Any, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """A function or class of Python's, with what Scheme gives; its errors are in Scheme's words."""
    signature = signature_of(function)
    try:
        bound = signature.bind(*args, **given)
    except TypeError:
        raise TensorError(misfit(signature, args, given)) from None
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(argument(x, parameter) for x in value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: argument(x, parameter) for key, x in value.items()}
        else:
            bound.arguments[name] = argument(value, parameter)
    try:
        return function(*bound.args, **bound.kwargs)
    except EshkolError as error:
        raise in_words(error) from None


@cache
def signature_of(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def argument(value: Any, parameter: inspect.Parameter) -> Any:
    """What Scheme gives for one parameter: a list where a tensor is wanted is one."""
    if isinstance(value, list) and "Tensor" in str(parameter.annotation):
        return data(value)
    if isinstance(value, Symbol):  # 'fan-out is what Python calls fan_out
        return str(value).replace("-", "_")
    return attribute(value, parameter)


def is_module(given: Any) -> bool:
    """Whether something is a module."""
    from eshkol.nn import Module

    return isinstance(given, Module)


def applied(layer: Any, *args: Any, **given: Any) -> Any:
    """A module, or a procedure, on what Scheme gives: lists of numbers are tensors."""
    if not callable(layer):
        raise DTypeError(f"a layer or a model is wanted, not {shown(layer)}", hint="(linear 784 256) makes one")
    try:
        found = layer(*(_input(x) for x in args), **given)
    except EshkolError as error:
        raise in_words(error) from None
    return Values(found) if type(found) is tuple and is_module(layer) else found


def in_words(error: EshkolError) -> EshkolError:
    """The error in Scheme's words, unless it has a place of its own: in a program of Scheme, or of Python."""
    return error if isinstance(error, LanguageError) or error.span is not None else schemed(error)


def _input(given: Any) -> Any:
    return data(given) if isinstance(given, list) and _numeric(given) else given


def _numeric(given: Any) -> bool:
    return all(_numeric(x) for x in given) if isinstance(given, list) else _is_number(given) or type(given) is bool
