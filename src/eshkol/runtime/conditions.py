"""What a condition of Scheme code says, as text."""

from __future__ import annotations

from eshkol.runtime.scheme import Machine, Value

MESSAGE_SHOWN = 2_000  # characters


def message(machine: Machine, condition: Value) -> str:
    """What an uncaught condition says."""
    if is_error(machine, condition):
        return _shortened(describe(machine, condition))
    return f"uncaught exception: {_shortened(machine.written(condition))}"


def is_error(machine: Machine, condition: Value) -> bool:
    """Whether it is an error object; anything can be raised."""
    answer = machine.call("error-object?", condition)
    return (answer.tag, answer.bits) != (machine.tags["BOOLEAN"], 0)


def kind_of(machine: Machine, error: Value) -> str:
    """What kind of error an error object is, by the names in value.h."""
    return machine.symbol_name(machine.call("error-object-kind", error))


def is_interrupt(machine: Machine, condition: Value) -> bool:
    """Whether it is that of Ctrl-C."""
    return is_error(machine, condition) and kind_of(machine, condition) == "interrupt"


def describe(machine: Machine, condition: Value) -> str:
    """The message of an error object with its irritants."""
    text = machine.written(machine.call("error-object-message", condition), style=0)  # anything may stand there
    who = machine.call("error-object-who", condition)
    irritants = machine.call("error-object-irritants", condition)
    words = [named(machine.written(who, style=0), text) if who.tag == machine.tags["SYMBOL"] else text]
    while irritants.tag == machine.tags["PAIR"]:
        words.append(machine.written(machine.call("car", irritants)))
        irritants = machine.call("cdr", irritants)
    return " ".join(words)


def named(who: str, text: str) -> str:
    """A message after the name of who says it, in place of the one that the same procedure has in Python.

    What Python says often begins so: `save_checkpoint: …` of `save-checkpoint`, `Adam: …` of `optimizer-adam`.
    """
    said, colon, rest = text.partition(": ")
    words = who.split("-")
    names = {_plain("".join(words[k:])) for k in range(len(words))}
    same = colon and said.isidentifier() and _plain(said) in names
    return f"{who}: {rest if same else text}"


def _plain(name: str) -> str:
    """A name without what the two languages write differently in it."""
    return "".join(filter(str.isalnum, name)).casefold()


def _shortened(text: str) -> str:
    return text if len(text) <= MESSAGE_SHOWN else f"{text[:MESSAGE_SHOWN]} …"
