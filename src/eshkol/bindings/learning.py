"""Training as Scheme calls it: steps, epochs, validation and whole runs, and what is said and written on the way.

Comes in: models, optimizers and losses of either language, and batches: tensors, lists of numbers, pairs of inputs and
targets, and anything that gives such batches one after the other. Goes out: losses, numbers and histories. The work is
that of `eshkol.train`; steps are compiled there, and kept with the optimizer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from eshkol import optim
from eshkol.bindings.layers import called, found, in_words, signature_of
from eshkol.bindings.models import wanted as model_wanted
from eshkol.bindings.optimizers import wanted as optimizer_wanted
from eshkol.bindings.rows import dashed, data, keyword, shown
from eshkol.bindings.values import Pair, Symbol
from eshkol.errors import DTypeError, EshkolError, TensorError
from eshkol.tensors.value import Tensor
from eshkol.train import fitting, loop
from eshkol.train.batches import Batches
from eshkol.train.step import Step

_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_WHO = re.compile(r"^(train_step|train_on_batch|train_epoch|validate|fit): ")


# ---- batches ---------------------------------------------------------------------------------------------------------


def values(given: Any) -> Any:
    """Inputs or targets: lists of numbers are tensors, vectors of several inputs are tuples."""
    if isinstance(given, Tensor) or given is None or given is False:
        return None if given is False else given
    if isinstance(given, tuple):
        return tuple(values(x) for x in given)
    if isinstance(given, dict):
        return {str(name): values(x) for name, x in given.items()}
    if isinstance(given, list):
        return tuple(given) if given and all(isinstance(x, Tensor) for x in given) else data(given)
    if type(given) in (int, float):
        return data([given])
    return given


def batch(given: Any) -> tuple[Any, Any]:
    """Inputs and targets of a batch: a pair, or a list or vector of both."""
    if isinstance(given, Pair):
        return values(given.car), values(given.cdr)
    if isinstance(given, list | tuple) and len(given) == 2:
        return values(given[0]), values(given[1])
    if isinstance(given, Tensor):
        return given, None
    raise DTypeError(f"a batch is a list of inputs and targets, not {shown(given)}", hint="(list x y)")


class Walked(Batches):
    """The batches of a list, a vector, or anything of Python's that gives them one after the other."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, Iterable) or isinstance(given, str | Tensor | dict):
            raise DTypeError(
                f"batches are a list, a vector, or an iterable of Python, not {shown(given)}",
                hint="(list (list x1 y1) (list x2 y2))",
            )
        self.given, self.who = given, "training"

    @property
    def count(self) -> int | None:
        return len(self.given) if isinstance(self.given, Sized) else None

    def _walk(self) -> Iterator[Any]:
        return map(batch, self.given)

    def _nothing(self) -> TensorError:
        return TensorError("there are no batches", hint="a list of batches: (list (list x y))")


def walked(given: Any) -> Any:
    """Data as a run takes it: batches, or whole inputs and targets, a pair or a list of two tensors, to be cut."""
    if isinstance(given, Pair) or (isinstance(given, list) and len(given) == 2 and isinstance(given[0], Tensor)):
        return batch(given)
    return Walked(given)


# ---- what a model is trained by --------------------------------------------------------------------------------------


def compile_model(model: Any, optimizer: Any, criterion: Any, **how: Any) -> Any:
    """Say which optimizer and which loss a model is trained by, for calls that name neither; gives the model."""
    module = model_wanted(model)
    object.__setattr__(module, "_trained_by", (optimizer_wanted(optimizer), _criterion(criterion), _options(how)))
    return module


def _trained_by(model: Any, who: str) -> tuple[optim.Optimizer, Any, dict[str, Any]]:
    said = model_wanted(model).__dict__.get("_trained_by")
    if said is None:
        raise TensorError(
            "nobody has said by which optimizer and loss the model is trained",
            hint=f"(compile-model! model optimizer criterion) first, or ({who} model optimizer criterion ...)",
        )
    optimizer, criterion, how = said
    return optimizer, criterion, how


def _criterion(given: Any) -> Any:
    if not callable(given):
        raise DTypeError(
            f"a loss is a procedure of predictions and targets, not {shown(given)}", hint="mse, or cross-entropy"
        )
    return given


def _options(how: dict[str, Any]) -> dict[str, Any]:
    """Options of a step: #f is nothing, but for switches."""
    return {name: None if value is False and name not in SWITCHES else value for name, value in how.items()}


SWITCHES = ("jit", "shuffle", "progress", "quiet")


def _trainers(
    who: str, model: Any, rest: tuple[Any, ...], how: dict[str, Any]
) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """Optimizer, loss, what stands after them, and options: of the call, or as compile-model! has said."""
    if rest and isinstance(rest[0], optim.Optimizer):
        if len(rest) < 3:
            raise TensorError(_use(who))
        return rest[0], _criterion(rest[1]), rest[2:], _options(how)
    optimizer, criterion, usual = _trained_by(model, who)
    return optimizer, criterion, rest, {**usual, **_options(how)}


def _use(who: str) -> str:
    last = "batch" if who == "train-on-batch" else "batches"
    return f"it is called with ({who} model optimizer criterion {last}), or with ({who} model {last})"


def _done(function: Callable[..., Any], *args: Any, **how: Any) -> Any:
    """What a function of `eshkol.train` gives; its errors are in Scheme's words."""
    try:
        return function(*args, **how)
    except EshkolError as error:
        told = in_words(error)
        told.message = _WHO.sub("", told.message)
        told.args = (told.message,)
        raise told from None
    except TypeError as error:
        unknown = _KEYWORD.search(str(error))
        if unknown is None:
            raise
        raise TensorError(f"there is no keyword {keyword(unknown[1])}", hint=_near(unknown[1])) from None


def _near(name: str) -> str | None:
    known = [p for f in (fitting.fit, loop.train_epoch, Step) for p in signature_of(f).parameters]
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {keyword(near[0])}?" if near else None


# ---- training --------------------------------------------------------------------------------------------------------


def train_step(model: Any, optimizer: Any, criterion: Any, x: Any, y: Any = None, **how: Any) -> Any:
    """One step of training on a batch; gives its loss, a tensor."""
    args = model_wanted(model), optimizer_wanted(optimizer), _criterion(criterion), values(x), values(y)
    return _done(loop.train_step, *args, **_options(how))


def train_on_batch(model: Any, *rest: Any, **how: Any) -> Any:
    """One step of training on a batch, by what compile-model! has said, or by an optimizer and a loss."""
    optimizer, criterion, given, options = _trainers("train-on-batch", model, rest, how)
    if not 1 <= len(given) <= 2:
        raise TensorError(_use("train-on-batch"))
    inputs, targets = batch(given[0]) if len(given) == 1 else (values(given[0]), values(given[1]))
    return _done(loop.train_step, model, optimizer, criterion, inputs, targets, **options)


def train_epoch(model: Any, *rest: Any, metrics: Any = None, **how: Any) -> Any:
    """A step for each batch; gives the mean loss, or with metrics a list of pairs of names and numbers."""
    optimizer, criterion, given, options = _trainers("train-epoch", model, rest, how)
    if len(given) != 1:
        raise TensorError(_use("train-epoch"))
    model_wanted(model).train()
    args = model, optimizer, criterion, walked(given[0])
    return _measured(_done(loop.train_epoch, *args, metrics=metrics or (), **options), metrics)


def validate(model: Any, *rest: Any, metrics: Any = None, jit: Any = True) -> Any:
    """The mean loss over batches, in evaluation mode; with metrics, a list of pairs of names and numbers."""
    module = model_wanted(model)
    criterion = _trained_by(module, "validate")[1] if len(rest) == 1 else rest[0] if rest else None
    if len(rest) not in (1, 2):
        raise TensorError("it is called with (validate model criterion batches), or with (validate model batches)")
    args = module, _criterion(criterion), walked(rest[-1])
    return _measured(_done(loop.validate, *args, metrics=metrics or (), jit=jit is not False), metrics)


def _measured(numbers: dict[str, float], metrics: Any) -> Any:
    return numbers["loss"] if metrics is None else [Pair(Symbol(dashed(name)), x) for name, x in numbers.items()]


def fit(model: Any, *rest: Any, criterion: Any = None, optimizer: Any = None, **how: Any) -> Any:
    """Train a model on batches, epoch by epoch; gives the history."""
    loss = how.pop("loss", criterion)
    if optimizer is not None and loss is not None:
        trained = (optimizer_wanted(optimizer), _criterion(loss), rest, _options(how))
    else:
        trained = _trainers("fit", model, rest, how)
    by, loss, given, options = trained
    if len(given) != 1:
        raise TensorError(
            "the data is missing, or too much is given",
            hint="(fit model batches :optimizer o :criterion mse :epochs 10)",
        )
    for name in ("callbacks", "metrics"):
        options[name] = tuple(options.get(name) or ())
    if options.get("validation") is not None:
        options["validation"] = walked(options["validation"])
    return _done(fitting.fit, model_wanted(model), walked(given[0]), loss=loss, optimizer=by, **options)


def history_ref(history: Any, name: Any) -> Any:
    """The numbers of a name in a history, one for each epoch."""
    return _done(history.__getitem__, str(name).replace("-", "_"))


def early_stopping(*args: Any, **how: Any) -> Any:
    """A callback of fit, and what check-should-stop asks: whether a measure gets no better."""
    made = called(found("eshkol.train.callbacks:early_stopping"), tuple(map(_name, args)), how)
    return made


def _name(given: Any) -> Any:
    return given.replace("-", "_") if isinstance(given, str) else given


def check_should_stop(stopper: Any, metric: Any) -> bool:
    """Take in the measure of another epoch; whether it is time to stop."""
    number = metric.item() if isinstance(metric, Tensor) else metric
    return bool(called(found("eshkol.train.callbacks:check_should_stop"), (stopper, number), {}))


# ---- metrics ---------------------------------------------------------------------------------------------------------


def metric(name: str) -> Any:
    """The procedure of a function of `eshkol.metrics`."""
    from eshkol import metrics

    function = getattr(metrics, name)

    def measure(*args: Any, **given: Any) -> Any:
        return called(function, args, given)

    measure.__name__ = measure.__qualname__ = name.replace("_", "-")
    measure.__doc__ = function.__doc__
    return measure


def define_metric(name: Any, compute: Any) -> Any:
    """Make a metric known by its name; gives its procedure."""
    from eshkol import metrics

    called(metrics.define_metric, (str(name), compute), {})
    return compute


def make_metric(name: Any, **options: Any) -> Any:
    """A metric that is updated batch by batch."""
    from eshkol import metrics

    return called(metrics.get_metric, (str(name),), options)


def metric_update(measure: Any, predictions: Any, targets: Any) -> None:
    """Count a batch."""
    called(measure.update, (predictions, targets), {})


def metric_compute(measure: Any) -> Any:
    """What the metric is of all batches so far."""
    return called(measure.compute, (), {})


def metric_reset(measure: Any) -> None:
    """Forget all batches."""
    measure.reset()


# ---- what is said and written on the way -----------------------------------------------------------------------------


def progress_bar(total: Any, description: Any = "", **how: Any) -> Any:
    """A bar that shows how far a loop is."""
    bar = found("eshkol.train.progress:ProgressBar")
    return called(bar, (None if total is False else total, str(description)), how)


def update_progress(bar: Any, current: Any, metrics: Any = None) -> None:
    """Say which round was done last, and its metrics."""
    called(bar.update, (current, named(metrics)), {})


def named(given: Any) -> dict[str, Any]:
    """Values by name: of a hash table, or of a list of pairs."""
    if given is None or given is False:
        return {}
    if isinstance(given, dict):
        return {str(name): value for name, value in given.items()}
    if isinstance(given, list) and all(isinstance(x, Pair) or (isinstance(x, list) and len(x) == 2) for x in given):
        return {str(name): value for name, value in ((x.car, x.cdr) if isinstance(x, Pair) else x for x in given)}
    raise DTypeError(
        f"metrics are a list of pairs of names and numbers, or a hash table, not {shown(given)}",
        hint="(list (cons 'loss 0.5))",
    )


def logger(folder: Any) -> Any:
    """A writer of files that TensorBoard reads."""
    return called(found("eshkol.train.events:EventWriter"), (str(folder),), {})


def log_scalar(writer: Any, tag: Any, value: Any, step: Any) -> None:
    """Write a number down."""
    called(writer.add_scalar, (str(tag), _numbers(value), step), {})


def log_histogram(writer: Any, tag: Any, numbers: Any, step: Any) -> None:
    """Write down how numbers are distributed."""
    called(writer.add_histogram, (str(tag), _numbers(numbers), step), {})


def log_image(writer: Any, tag: Any, image: Any, step: Any, **how: Any) -> None:
    """Write a picture down."""
    called(writer.add_image, (str(tag), _numbers(image), step), how)


def _numbers(given: Any) -> Any:
    """What is written down: values, without what derivatives remember of them."""
    if isinstance(given, list):
        return data(given)
    return given.detach() if isinstance(given, Tensor) else given


def log_text(writer: Any, tag: Any, text: Any, step: Any) -> None:
    """Write a text down."""
    called(writer.add_text, (str(tag), str(text), step), {})


def close_logger(writer: Any) -> None:
    """Write down what is waiting, and end."""
    writer.close()
