"""Which page a model gets, and what of the model the page calls.

Comes in: a checkpoint whose model can be made from the file alone. Goes out: a `Page`: one of the kinds below, the
function that becomes `model.wasm` with example arguments, and the settings that the page's script reads. A GPT gets
the page that writes text. A model of one square picture that gives ten scores gets the sheet for digits. Any other
gets a plain page with its inputs and outputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

from eshkol.data.tokenizers import ByteTokenizer, CharTokenizer, load_tokenizer
from eshkol.errors import CheckpointError, DataError, EshkolError
from eshkol.io import Checkpoint
from eshkol.nn import GPT, Embedding, Linear
from eshkol.nn.module import Module
from eshkol.tensors import api as ek

DIGITS = 10
LEAST_SIDE, MOST_SIDE = 8, 64  # of pictures that are drawn
SMALL = 16  # pictures below are filled by their digit; larger ones have an edge, and the ink's middle in theirs
BOX = 20 / 28  # how much of a larger picture the digit takes, as in MNIST
SMALL_INK = 1.25  # strokes in small pictures are about as wide as an element
INPUT, TOKENIZER, LABELS = "input", "tokenizer", "labels"  # of the metadata of a checkpoint


@dataclass(frozen=True)
class Page:
    """A page: its kind, the function and example arguments of its model, and what its script is told."""

    kind: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    settings: Mapping[str, Any]


def page_of(
    path: str, *, kind: str | None = None, shape: Sequence[int] | None = None, dtype: str | None = None,
    tokenizer: str | None = None,
) -> Page:  # fmt: skip
    """The page for the model in a checkpoint; what is not given is found out from the file, or refused."""
    with Checkpoint(path) as file:
        model, metadata = file.model, file.metadata
    model.eval()
    if isinstance(model, GPT):
        if kind not in (None, "text"):
            raise CheckpointError(f"'{path}' holds a GPT, which gets the page 'text', not '{kind}'")
        return _text(model, metadata, tokenizer)
    if kind == "text":
        raise CheckpointError(f"the page 'text' is for a GPT; '{path}' holds {type(model).__name__}")
    example = _example(model, metadata, shape, dtype, path)
    if kind == "digits" or (kind is None and _answers_digits(model, example)):
        if not _answers_digits(model, example):
            raise CheckpointError(
                f"the page 'digits' is for models that take one square picture of {LEAST_SIDE} to {MOST_SIDE} elements "
                f"a side and give {DIGITS} scores; this one takes {list(example.shape)}"
            )
        return _digits(model, metadata, example)

    def computed(x: Any) -> Any:
        return model(x)

    return Page("plain", computed, (example,), {})


# --- digits -----------------------------------------------------------------------------------------


def _side(shape: Sequence[int]) -> int | None:
    """The side of one square picture; None where a shape is of something else."""
    count = isqrt(shape[-1]) if len(shape) == 2 else shape[-1] if shape else 0
    fits = tuple(shape) in ((1, count * count), (1, 1, count, count))
    return count if fits and LEAST_SIDE <= count <= MOST_SIDE else None


def _answers_digits(model: Module, example: Any) -> bool:
    if _side(example.shape) is None or example.dtype != ek.float32:
        return False
    return bool(tuple(_abstract(model, example).shape) == (1, DIGITS))


def _abstract(model: Module, example: Any) -> Any:
    """What the model gives, without its values."""
    with ek.no_grad():
        return ek.eval_shape(model, example)


def _digits(model: Module, metadata: Mapping[str, Any], example: Any) -> Page:
    side = _side(example.shape)
    assert side is not None
    small = side < SMALL
    labels = metadata.get(LABELS, [str(k) for k in range(DIGITS)])
    if not isinstance(labels, list | tuple) or len(labels) != DIGITS or not all(isinstance(x, str) for x in labels):
        raise CheckpointError(f"the labels of the checkpoint should be {DIGITS} strings, not {labels!r}")

    def shares(image: Any) -> Any:
        return ek.softmax(model(image), axis=-1)

    settings = {
        "side": side, "box": side if small else side * BOX, "centre": "box" if small else "mass",
        "ink": SMALL_INK if small else 1.0, "labels": [*labels],
    }  # fmt: skip
    return Page("digits", shares, (example,), settings)


# --- text -------------------------------------------------------------------------------------------


def _text(model: GPT, metadata: Mapping[str, Any], given: str | None) -> Page:
    config = model.config
    characters = _characters(metadata, given, config.vocabulary)

    def step(token: Any, position: Any, memory: Any) -> Any:
        """The logits after one token more, and what is remembered of it."""
        logits, caches = model.extend(token, memory, position)
        return {"logits": logits[0, -1], "memory": caches}

    args = (ek.zeros((1, 1), dtype="int32"), ek.zeros((), dtype="int32"), model.empty_caches(1))
    prompt = "\n" if characters is None or "\n" in characters else characters[0]
    return Page("text", step, args, {"context": config.context, "characters": characters, "prompt": prompt})


def _characters(metadata: Mapping[str, Any], given: str | None, vocabulary: int) -> list[str] | None:
    """The characters that tokens stand for; None where they are bytes."""
    if given is not None:
        found = load_tokenizer(Path(given))
        if not isinstance(found, CharTokenizer | ByteTokenizer):
            raise DataError(f"the page writes characters or bytes; '{given}' is a tokenizer of kind {found.kind}")
        size, characters = found.size, found.characters if isinstance(found, CharTokenizer) else None
    else:
        characters = metadata.get(TOKENIZER)
        if characters is None and vocabulary != ByteTokenizer().size:
            raise CheckpointError(
                "the checkpoint does not say which characters its tokens are",
                hint='name the file of its tokenizer (--tokenizer), or save it with metadata={"tokenizer": '
                     "tokenizer.characters}",
            )  # fmt: skip
        if characters is not None and not all(isinstance(c, str) and len(c) == 1 for c in characters):
            raise CheckpointError(f"the checkpoint's tokenizer should be characters, not {characters!r:.60}")
        characters = None if characters is None else [*characters]
        size = vocabulary if characters is None else len(characters)
    if size != vocabulary:
        raise DataError(f"the model knows {vocabulary} tokens, and the tokenizer {size}")
    return characters


# --- what a model takes -----------------------------------------------------------------------------


def _example(model: Module, metadata: Mapping[str, Any], shape: Any, dtype: str | None, path: str) -> Any:
    """An argument like those that the model takes."""
    first = next((m for m in model.modules() if not any(True for _ in m.children())), model)
    found = metadata.get(INPUT) if shape is None else shape
    if found is None:
        if not isinstance(first, Linear):
            hint = 'say it (--input 1x1x28x28), or save it with metadata={"input": [1, 1, 28, 28]}'
            raise CheckpointError(f"'{path}' does not say what shape the model's input has", hint=hint)
        found = (1, first.in_features)
    if not isinstance(found, list | tuple) or not all(isinstance(n, int) and n > 0 for n in found):
        raise CheckpointError(f"the input's shape should be positive integers, not {found!r:.60}")
    kind = dtype or ("int64" if isinstance(first, Embedding) else "float32")
    example = ek.zeros(tuple(found), dtype=kind)
    try:
        _abstract(model, example)
    except EshkolError as error:
        raise CheckpointError(
            f"the model does not take {kind}[{', '.join(map(str, found))}]: {error.message}", hint=error.hint
        ) from None
    return example


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings as JSON that may stand in a page."""
    return json.dumps(settings, ensure_ascii=True).replace("<", "\\u003c")
