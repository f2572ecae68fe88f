"""Checkpoints as Scheme has them: models, optimizers and tensors saved to .eskpt files, and loaded.

Comes in: what `lib/eshkol/checkpoints.esk` gives, converted. Goes out: files (`eshkol.io`), open checkpoints, models
and tensors. The path may stand first or second, as programs have it in either order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eshkol import io, nn, train
from eshkol.bindings.layers import called, in_words
from eshkol.bindings.learning import named
from eshkol.bindings.rows import dashed, shown
from eshkol.bindings.values import Pair, Symbol
from eshkol.errors import CheckpointError, DTypeError, EshkolError
from eshkol.tensors.value import Tensor

PARTS = ("model", "optimizer", "schedule", "loader", "rng")  # of a checkpoint; a file without them has tensors alone
METADATA = ("name", "epoch", "step", "loss")  # the order of make-metadata


def _is_path(given: Any) -> bool:
    return isinstance(given, str) and not isinstance(given, Symbol)


def save(*args: Any, **how: Any) -> None:
    """Save a model, or tensors by name, with what is given beside it; the path stands first or second."""
    if len(args) < 2 or not any(_is_path(x) for x in args[:2]):
        raise DTypeError("the path of the file is missing", hint='(save-checkpoint model "model.eskpt")')
    first = _is_path(args[0])
    path, model, rest = str(args[0 if first else 1]), args[1 if first else 0], args[2:]
    if len(rest) > 1:
        raise DTypeError("behind model and path there is one more argument at most, an epoch or metadata")
    if rest and type(rest[0]) is int:
        how.setdefault("epoch", rest[0])
    elif rest:
        how.setdefault("metadata", rest[0])
    options = {name: value for name, value in how.items() if value is not False or name == "rng"}
    if "metadata" in options:
        options["metadata"] = _plain(options["metadata"])
    if isinstance(model, nn.Module):
        called(io.save_checkpoint, (path, model), options)
    elif set(options) <= {"metadata", "compress"}:
        called(io.save_tensors, (path, tensors_of(model)), options)
    else:
        called(io.save_checkpoint, (path, tensors_of(model)), options)


def tensors_of(given: Any) -> dict[str, Any]:
    """Tensors by name: of a hash table, or of a list of pairs."""
    try:
        found = named(given)
    except DTypeError:
        raise DTypeError(
            f"a model is wanted, or tensors by name, not {shown(given)}", hint="(list (cons 'weights w))"
        ) from None
    for name, value in found.items():
        if not isinstance(value, Tensor):
            quoted = f"a quoted list has the symbol {value}: (list (cons '{name} {value}))"
            raise DTypeError(
                f"under the name {name} a tensor is wanted, not {shown(value)}",
                hint=quoted if isinstance(value, Symbol) else None,
            )
    return found


def _plain(given: Any) -> Any:
    """Metadata as a file holds it: lists of pairs and tables as dicts, symbols as strings."""
    if isinstance(given, Mapping):
        return {str(key): _plain(value) for key, value in given.items()}
    if isinstance(given, list):
        if given and all(isinstance(x, Pair) and isinstance(x.car, str) for x in given):
            return {str(x.car): _plain(x.cdr) for x in given}
        return [_plain(x) for x in given]
    return str(given) if isinstance(given, str) else given


def save_tensors(*args: Any, **how: Any) -> None:
    """Save tensors by name."""
    if len(args) != 2 or not any(map(_is_path, args)):
        raise DTypeError("tensors and a path are wanted", hint='(save-tensors (list (cons \'w w)) "params.eskpt")')
    path, tensors = args if _is_path(args[0]) else (args[1], args[0])
    if "metadata" in how:
        how["metadata"] = _plain(how["metadata"])
    called(io.save_tensors, (str(path), tensors_of(tensors)), how)


def load(path: Any, *, names: Any = None, whole: Any = False, **how: Any) -> Any:
    """An open checkpoint; of a file of tensors alone, a list of pairs of names and tensors."""
    if not _is_path(path):
        raise DTypeError(f"the path of a file is wanted, not {shown(path)}")
    checkpoint = called(io.load_checkpoint, (str(path),), how)
    patterns = [str(x) for x in (names if isinstance(names, list) else [names] if names else [])]
    if not patterns and (whole is not False or any(part in checkpoint.parts for part in PARTS)):
        return checkpoint
    try:
        return [Pair(name, tensor) for name, tensor in checkpoint.load(*patterns).items()]
    except EshkolError as error:
        raise in_words(error) from None


def wanted(given: Any) -> io.Checkpoint:
    """The checkpoint that an argument must be."""
    if isinstance(given, io.Checkpoint):
        return given
    raise DTypeError(f"a checkpoint is wanted as argument 1, not {shown(given)}", hint='(load-checkpoint "x.eskpt")')


def model(checkpoint: Any, into: Any = None, *, strict: Any = True) -> Any:
    """The model, made from the file alone; with a model, that model with what was saved of it."""
    found = wanted(checkpoint)
    if into is None or into is False:
        return _read(lambda: found.model)
    if not isinstance(into, nn.Module):
        raise DTypeError(f"a model is wanted as argument 2, not {shown(into)}")
    _read(lambda: found.restore(into, strict=strict is not False))
    return into


def optimizer(checkpoint: Any, into: Any = None) -> Any:
    """The optimizer of the model, made from the file alone; with an optimizer, that one with what was saved of it.

    Random numbers go on where they were, too.
    """
    found = wanted(checkpoint)
    if into is None or into is False:
        made = _read(lambda: found.optimizer)
        _read(lambda: found.restore(rng="rng" in found.parts))
        return made
    _read(lambda: found.restore(optimizer=into))
    return into


def restore(checkpoint: Any, into: Any = None, *, strict: Any = True, **things: Any) -> Any:
    """Give a model, an optimizer, a schedule and a loader what was saved of them, all or, on an error, none."""
    given = {name: thing for name, thing in things.items() if thing is not None and thing is not False}
    if into is not None:
        given["model"] = into
    called(wanted(checkpoint).restore, (), {**given, "strict": strict is not False})
    return checkpoint


def get(checkpoint: Any, key: Any, *default: Any) -> Any:
    """A part of a checkpoint, or of its metadata; of a list of pairs, what stands under the name."""
    name = str(key)
    if isinstance(checkpoint, list):
        found = {str(x.car): x.cdr for x in checkpoint if isinstance(x, Pair)}
        missing = name not in found
        value = None if missing else found[name]
    else:
        known, nothing = wanted(checkpoint), object()
        value = _read(lambda: known.get(name, nothing))
        if value is nothing and name in known.tensors:
            value = _read(lambda: known[name])
        if value is nothing and "-" in name:
            value = _read(lambda: known.get(name.replace("-", "_"), nothing))
        missing = value is nothing
    if not missing:
        return value
    if default:
        return default[0]
    raise CheckpointError(f"the checkpoint has no {name}", hint=f"(checkpoint-get checkpoint '{dashed(name)} default)")


def callback(path: Any = "checkpoint-{kind}.eskpt", *, beside: Any = False, **how: Any) -> train.Checkpoint:
    """What saves the state of a run that fit makes (:callbacks), also on a thread of its own."""
    if not _is_path(path):
        raise DTypeError(f"the path of files is wanted, not {shown(path)}", hint='"runs/{kind}.eskpt"')
    if isinstance(how.get("monitor"), str):
        how["monitor"] = how["monitor"].replace("-", "_")
    if beside is not False:
        how["save"] = io.AsyncSaver()
    made: train.Checkpoint = called(train.Checkpoint, (str(path),), how)
    return made


def names(checkpoint: Any) -> list[str]:
    """The names of the tensors in a checkpoint."""
    return list(wanted(checkpoint).tensors)


def _read(work: Any) -> Any:
    try:
        return work()
    except EshkolError as error:
        raise in_words(error) from None


def make_metadata(*values: Any, **more: Any) -> list[Pair]:
    """What is said of a model beside its tensors: its name, epoch, step and loss, and whatever else, by keywords."""
    if len(values) > len(METADATA):
        raise DTypeError(f"{len(values)} values; by place there are name, epoch, step and loss", hint=":key value")
    pairs = zip(METADATA, values, strict=False)
    return [Pair(Symbol(name), value) for name, value in [*pairs, *((dashed(k), v) for k, v in more.items())]]
