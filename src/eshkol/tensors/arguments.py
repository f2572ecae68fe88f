"""What calls are given besides tensors: arguments by their names, and what those who know NumPy write.

Comes in: the arguments of a call. Goes out: the same by the names of a row's parameters, or an error that shows them;
with Python's own numbers, so that no row has to know that `np.int64(2)` is an integer; and functions under PyTorch's
names that take NumPy's words `axis`, `keepdims` and `ddof`, too.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import BoundArguments, signature
from typing import Any

import numpy as np

from eshkol.errors import ArgumentError
from eshkol.graph.node import here
from eshkol.ops.row import Op

INTEGERS = (int, np.integer)
_WORDS = {"axis": "dim", "axes": "dim", "keepdims": "keepdim", "ddof": "correction"}  # NumPy's → PyTorch's


def plain(value: Any) -> Any:
    """A value with Python's numbers in place of NumPy's; tuples and lists are looked through."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is tuple or kind is list:
        found = [plain(x) for x in value]
        return value if all(x is y for x, y in zip(found, value, strict=True)) else kind(found)
    return value.item() if isinstance(value, np.number | np.bool_) else value


def understanding(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes NumPy's words for its parameters, and NumPy's integers, as well."""
    known = signature(function).parameters
    words = {theirs: ours for theirs, ours in _WORDS.items() if ours in known and theirs not in known}

    @wraps(function)
    def understood(*args: Any, **given: Any) -> Any:
        for word in words.keys() & given.keys():
            if words[word] in given:
                raise TypeError(f"{function.__name__} was given '{words[word]}' twice: '{word}' means the same")
            given[words[word]] = given.pop(word)
        whole = [int(x) if isinstance(x, np.integer) else x for x in args]
        return function(*whole, **{name: plain(value) for name, value in given.items()})

    return understood


def bound_to(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> BoundArguments:
    """The arguments by name; what does not fit the signature is told with it."""
    try:
        return op.signature.bind(*args, **given)
    except TypeError as error:
        names = (str(p.replace(annotation=p.empty)) for p in op.signature.parameters.values())
        unknown = [name for name in given if name not in op.signature.parameters]
        near = get_close_matches(unknown[0], op.signature.parameters, 1, 0.5) if unknown else []
        hint = f"did you mean {near[0]}=?" if near else None
        raise ArgumentError(f"{op.name}({', '.join(names)}): {error}", span=here(), hint=hint) from None
