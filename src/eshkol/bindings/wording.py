"""Errors of Python's functions in Scheme's words: names, calls, keywords and truth as Scheme writes them.

Comes in: a message or a hint that was written for Python. Goes out: the same for Scheme. `x.astype(ek.float32)` becomes
`(tensor-cast x 'float32)`, `reduction="sum"` becomes `:reduction 'sum`, and a name that Scheme has another for becomes
that. What no rule knows stays as it is: it may be a user's own.
"""

from __future__ import annotations

import re
from functools import cache

from eshkol.bindings.names import scheme_name
from eshkol.ops import TABLE, dtypes

PHRASES = {
    "load_state_dict(state, strict=False)": ":strict #f",
    "model.train()": "(model-train! model)",
    "model.eval()": "(model-eval! model)",
    "model.unfreeze()": "(model-unfreeze! model)",
    "model.parameters()": "(model-parameters model)",
    "optimizer.zero_grad()": "(optimizer-zero-grad optimizer)",
    "optimizer.step()": "optimizer-step",
    "scheduler.step()": "scheduler-step",
    "x.clone()": "(tensor-copy x)",
    "make one with ek.tensor(...)": "make one with (tensor ...)",
}
"""What is said of methods and other things that are no rows, and Scheme's words for it."""

NAMES = {"tensor": "tensor"}  # that are no rows
METHODS = {"astype": "tensor-cast", "clone": "tensor-copy", "item": "tensor->number", "tolist": "tensor->list"}
WORDS = {"True": "#t", "False": "#f", "None": "#f"}

_DTYPE = re.compile(r"\bek\.(" + "|".join(d.name.rstrip("_") for d in dtypes.ALL) + r")\b(?!\()")
_METHOD = re.compile(r"\b([a-z]\w*)\.([a-z]\w*)\(([^()]*)\)")
_FUNCTION = re.compile(r"\b(?:ek\.)?([a-z]\w*)\(([^()]*)\)")
_NAME = re.compile(r"\bek\.(\w+)")
_KEYWORD = re.compile(r"(?<![\w.])([a-z]\w*)=(\"[^\"]*\"|'[^']*'|[\w.'#-]+)")
_ROW = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")
_INNER = re.compile(r"^(\w+)\(([^()]*)\): ")
_TRUTH = re.compile(r"(?<![\w'\"])(True|False|None)(?![\w'\"])")


def translated(text: str) -> str:
    """A text that speaks of functions of Python, with the names that Scheme has for them."""
    for phrase, words in PHRASES.items():
        text = text.replace(phrase, words)
    text = _DTYPE.sub(r"'\1", text)
    text = _METHOD.sub(_method, text)
    text = _FUNCTION.sub(_call, text)
    text = _NAME.sub(lambda found: scheme_name(found[1]) or found[1], text)
    text = _KEYWORD.sub(_keyword, text)
    text = _ROW.sub(_row, text)
    return _TRUTH.sub(lambda found: WORDS[found[1]], text)


def without_rows(message: str) -> str:
    """A message without the names of the rows that it comes from, which Scheme's procedure stands for."""
    while (found := _INNER.match(message)) is not None and found[1] in TABLE:
        message = message[found.end() :]
    return message


def _method(found: re.Match[str]) -> str:
    name = METHODS.get(found[2]) or scheme_name(found[2])
    return found[0] if name is None else _written(name, f"{found[1]}, {found[3]}")


def _call(found: re.Match[str]) -> str:
    name = NAMES.get(found[1]) or scheme_name(found[1])
    if name is None:
        return found[0]
    return _written(name, found[2]) if found[2] else name


def _written(name: str, arguments: str) -> str:
    return f"({' '.join([name, *(part.strip() for part in arguments.split(',') if part.strip())])})"


def _keyword(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if name not in _parameters():
        return found[0]
    if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'":
        value = f"'{value[1:-1].replace('_', '-')}"
    return f":{name.replace('_', '-')} {value}"


def _row(found: re.Match[str]) -> str:
    return scheme_name(found[0]) or (found[0].replace("_", "-") if found[0] in _parameters() else found[0])


@cache
def _parameters() -> frozenset[str]:
    """The names of all options of rows, which are keywords in Scheme."""
    return frozenset(name for op in TABLE.values() for name in op.signature.parameters)
