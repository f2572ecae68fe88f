"""How a procedure of Scheme is called, as Python says it: `(substring string start [end])` takes `(string, start,
end=None, /)`.

Comes in: the text that `procedure-signature` gives. Goes out: what `inspect.signature` gives for the procedure, so that
editors and notebooks show it. In the text `[x]` may be left out, `[:x]` is a keyword, `x ...` and `. x` stand for any
number of arguments, and there may be several ways to call it, with `or` between them.
"""

from __future__ import annotations

import re
from inspect import Parameter, Signature
from keyword import iskeyword

ANY = Signature([Parameter("args", Parameter.VAR_POSITIONAL), Parameter("keywords", Parameter.VAR_KEYWORD)])


def signature(text: str) -> Signature:
    """The signature; one that takes anything where there are several, or where Python cannot say it."""
    if ") or (" in text or not text.startswith("("):
        return ANY
    words = text.strip("()").split()[1:]
    parameters = [_parameter(words, place) for place, word in enumerate(words) if word not in (".", "...")]
    try:
        return Signature(parameters)
    except ValueError:  # two names became one, or the order is not one of Python's
        return ANY


def _parameter(words: list[str], place: int) -> Parameter:
    word = words[place]
    name = _name(word)
    if word.startswith("[:"):
        return Parameter(name, Parameter.KEYWORD_ONLY, default=None)
    if word.startswith("["):
        return Parameter(name, Parameter.POSITIONAL_ONLY, default=None)
    if "..." in words[place + 1 : place + 2] or "." in words[max(0, place - 1) : place]:
        return Parameter(name, Parameter.VAR_POSITIONAL)
    return Parameter(name, Parameter.POSITIONAL_ONLY)


def _name(word: str) -> str:
    name = re.sub(r"\W", "_", word.strip("[]:")) or "_"
    if name[0].isdigit():
        name = f"_{name}"
    return f"{name}_" if iskeyword(name) else name
