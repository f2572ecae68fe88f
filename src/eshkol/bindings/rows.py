"""Rows of the op table as Scheme calls them.

Comes in: a row. Goes out: a Python function that takes what Scheme gives, and gives what Scheme takes:

- a list or a vector may stand for a tensor, where the row wants one, and for a shape or a list of axes elsewhere; the
  numbers of a shape may also stand one by one, as in `(reshape t 2 3)`, and tensors of a list in `(stack a b)`;
- a ratio is a float, a symbol a string, and #f stands for an argument that is left out;
- a row of which all tensors are numbers gives a number: `(relu -1.0)`; flonums are then computed in double precision;
- several results are several values, and a row of which the arguments say how many it gives (`LISTED`) gives a list.

Rows that Scheme calls in another way than Python does have that in `forms.py`; `procedures.py` finds either. Nodes that
are made here belong to no line of Python, and errors speak of keywords as Scheme writes them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from eshkol.bindings import pending
from eshkol.bindings.values import Values
from eshkol.bindings.wording import translated, without_rows
from eshkol.errors import DTypeError, EshkolError, TensorError, TraceError
from eshkol.graph.node import Current, Scope, explained
from eshkol.ops import dtypes
from eshkol.ops.row import Op
from eshkol.tensors import keys
from eshkol.tensors.computing import compute_now
from eshkol.tensors.make import adopted, tensor
from eshkol.tensors.tape import GradMode
from eshkol.tensors.value import Tensor, as_input, operate_at, wrapped

Function = Callable[..., Any]
LISTED = "tuple[Tensor, ...]"  # what such rows give, as the op table says it
NUMBERS = (bool, int, float, complex, Fraction)
SPREAD = frozenset({"reshape", "expand", "permute", "tile", "zeros", "ones"})  # whose numbers may stand one by one
LEFT_OUT = frozenset({"bias"})  # optional tensors in whose place a number is the argument after them


# ---- the usual row ---------------------------------------------------------------------------------------------------


def applied(op: Op) -> Function:
    """A row, called with the arguments that it has in Python."""
    quick = op.leading is not None and op.leading > 0 and op.name not in SPREAD
    apart = quick and op.function is None  # elementwise: all its arguments are tensors

    def function(*args: Any, **given: Any) -> Any:
        if quick:  # tensors and plain numbers need no looking at
            found = False
            for x in (*args, *given.values()) if given else args:
                kind = type(x)
                if kind is Tensor:
                    found = True
                elif kind is not float and kind is not int and x is not True:
                    break
            else:
                if found:
                    return joined(op, args) if apart and not given else computed(op, args, given)
        return called(op, args, given)

    function.__name__ = ""
    return function


def joined(op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise row of tensors and numbers: as Tensor's operators do it."""
    outer, Current.site, Current.urgent = Current.site, None, False
    try:
        nodes = [x._settled() if type(x) is Tensor and GradMode.enabled else as_input(x) for x in args]
        if len(nodes) != len(op.names):
            raise TensorError(misfit(op.signature, args, {}))
        result = wrapped(op(*nodes))
        if Current.urgent:
            compute_now(result)
        return pending.noted(result)
    except EshkolError as error:
        shown = [x._node if type(x) is Tensor else x for x in args]
        raise in_scheme(op, explained(op, shown, error)) from None
    finally:
        Current.site = outer


def called(op: Op, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """A row on whatever Scheme has given."""
    bound = bind(op, op.signature, placed(op, args), given)
    inputs = {i.name: i for i in op.inputs}
    numbers = bool(inputs)
    for name, value in bound.arguments.items():
        parameter = op.signature.parameters[name]
        if name in inputs:
            starred = inputs[name].many
            value = [operand(x) for x in value] if starred and isinstance(value, list | tuple) else operand(value)
            if value is False and inputs[name].optional:
                value = None
            elif value is not None and (starred or type(value) not in (bool, int, float, complex)):
                numbers = False
            bound.arguments[name] = tuple(value) if parameter.kind is parameter.VAR_POSITIONAL else value
        else:
            bound.arguments[name] = attribute(value, parameter)
    if numbers:
        return on_numbers(op, bound)
    return computed(op, bound.args, bound.kwargs)


def computed(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """A row on arguments as Python gives them."""
    try:
        result = operate_at(op, args, given, None)
    except TypeError as error:
        bind(op, op.signature, args, given)  # says so if it is the arguments that are wrong
        raise in_scheme(op, error) if isinstance(error, EshkolError) else error from None
    except EshkolError as error:
        raise in_scheme(op, error) from None
    if type(result) is tuple:
        return (list if op.gives == LISTED else Values)(pending.noted(x) for x in result)
    return pending.noted(result)


def on_numbers(op: Op, bound: inspect.BoundArguments) -> Any:
    """A row of numbers: they are computed with in 64 bits, and what has no axes is a number again."""
    names = [i.name for i in op.inputs if bound.arguments.get(i.name) is not None]
    given = {name: bound.arguments[name] for name in names}
    exact = not any(isinstance(x, float | complex) for x in given.values())
    while True:
        for name, number in given.items():
            bound.arguments[name] = _wide(number, exact)
        result = computed(op, bound.args, bound.kwargs)
        several = result if isinstance(result, list | Values) else [result]
        if exact and any(isinstance(x, Tensor) and x.dtype.differentiable for x in several):
            exact = False  # integers that have become floats: once more, in double precision
            continue
        found = [x.item() if isinstance(x, Tensor) and not x.shape else x for x in several]
        return type(result)(found) if several is result else found[0]


def _wide(number: Any, exact: bool) -> Tensor:
    if isinstance(number, complex):
        return tensor(number, dtypes.complex128)
    return tensor(number) if isinstance(number, bool) or exact else tensor(number, dtypes.float64)


# ---- arguments -------------------------------------------------------------------------------------------------------


def operand(given: Any) -> Any:
    """What Scheme gives where a tensor is wanted."""
    kind = type(given)
    if kind is Tensor:
        return given
    if kind is Fraction:
        return float(given)
    if isinstance(given, list):
        return data(given)
    if isinstance(given, str):
        raise DTypeError(f"a tensor or a number is wanted, not {shown(given)}")
    return given


def data(given: Any, dtype: Any = None) -> Tensor:
    """A tensor of nested lists and vectors; ratios are rounded."""
    try:
        return tensor(given, dtype)
    except DTypeError:
        if not _has_ratio(given):
            raise
        return tensor(_rounded(given), dtype)


def _has_ratio(given: Any) -> bool:
    return isinstance(given, Fraction) or (isinstance(given, list) and any(map(_has_ratio, given)))


def _rounded(given: Any) -> Any:
    if isinstance(given, list):
        return [_rounded(x) for x in given]
    return float(given) if isinstance(given, Fraction) else given


def attribute(value: Any, parameter: inspect.Parameter) -> Any:
    """What Scheme gives for a parameter that is no tensor: lists as tuples, #f as nothing where nothing may stand."""
    kind = type(value)
    if kind is int or kind is float:
        return value
    annotation = str(parameter.annotation)
    if value is False and "bool" not in annotation and ("None" in annotation or parameter.default is None):
        return None
    if isinstance(value, list):
        return tuple(attribute(x, parameter) for x in value)
    if kind is Fraction:
        return float(value)
    if isinstance(value, Tensor) and not value.shape and "Any" not in annotation:
        return value.item()  # refuses where the number is not known
    return value


def placed(op: Op, args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments in their places: what stands one by one is gathered, and optional tensors are left out."""
    first = op.inputs[0] if op.inputs else None
    if first is not None and first.many and first.position == 0 and not first.starred:
        count = 0
        while count < len(args) and isinstance(args[count], Tensor):
            count += 1
        return ([*args[:count]], *args[count:]) if count else tuple(args)
    if op.name in SPREAD:
        lead = len(op.inputs)
        numbers = args[lead:]
        if len(numbers) > 1 and all(type(n) is int for n in numbers):
            return (*args[:lead], list(numbers))
        return tuple(args)
    for k, parameter in enumerate(op.signature.parameters.values()):
        if k >= len(args):
            break
        if parameter.name in LEFT_OUT and isinstance(args[k], int | list | str) and args[k] is not False:
            return (*args[:k], None, *args[k:])
    return tuple(args)


def bind(op: Op, signature: inspect.Signature, args: Sequence[Any], given: dict[str, Any]) -> inspect.BoundArguments:
    """The arguments by name; an error says it in Scheme's words."""
    try:
        return signature.bind(*args, **given)
    except TypeError:
        raise TensorError(misfit(signature, args, given)) from None


def misfit(signature: inspect.Signature, args: Sequence[Any], given: dict[str, Any]) -> str:
    """Why arguments do not fit a signature."""
    parameters = signature.parameters
    use = f"it is called with ({' '.join(formals(signature))})" if parameters else "it takes no arguments"
    unknown = [name for name in given if name not in parameters]
    if unknown:
        return f"there is no keyword {keyword(unknown[0])}; {use}"
    places = [p for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(args) > len(places):
        return f"too many arguments, {len(args)}; {use}"
    twice = [p.name for p in places[: len(args)] if p.name in given]
    if twice:
        return f"{keyword(twice[0])} is given twice, by its place and by its keyword; {use}"
    missing = [p.name for p in places[len(args) :] if p.name not in given and p.default is p.empty]
    return f"{' and '.join(map(dashed, missing))} {'is' if len(missing) == 1 else 'are'} missing; {use}"


def formals(signature: inspect.Signature) -> list[str]:
    """The parameters as Scheme writes them: in brackets those that may be left out, by place or by keyword."""
    written = []
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            written.append(f"{dashed(p.name)} ...")
        elif p.default is p.empty:
            written.append(dashed(p.name))
        else:
            written.append(f"[{keyword(p.name)}]")
    return written


def dashed(name: str) -> str:
    return name.strip("_").replace("_", "-")


def keyword(name: str) -> str:
    return f":{dashed(name)}"


def shown(value: Any) -> str:
    """A value of Scheme in a message."""
    text = f'"{value}"' if type(value) is str else str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- in place --------------------------------------------------------------------------------------------------------


def replaced(target: Tensor, value: Any, what: str) -> Tensor:
    """The tensor, which has become another value of the same shape and dtype."""
    try:
        return target._replace(value, what)
    except EshkolError as error:
        raise schemed(error) from None


# ---- draws -----------------------------------------------------------------------------------------------------------


def drawn(op: Op) -> Function:
    """A row that draws random numbers: `:key` may be left out, and the shape stands after the parameters."""
    signature = keyless(op)

    def draw(*args: Any, **given: Any) -> Any:
        if args and isinstance(args[0], Tensor) and is_key(args[0]) and "key" not in given:
            args, given = args[1:], {**given, "key": args[0]}
        bound = bind(op, signature, args, given)
        arguments = dict(bound.arguments)
        scalar = not any(isinstance(x, Tensor | list) for x in arguments.values()) and "shape" not in arguments
        if arguments.get("key") is None:
            arguments["key"] = next_key() if arguments.get("training", True) else None
        result = called(op, (), arguments)
        return result.item() if scalar and isinstance(result, Tensor) and not result.shape else result

    draw.__name__ = ""
    return draw


def keyless(op: Op) -> inspect.Signature:
    """The signature of a draw in Scheme."""
    parameters = dict(op.signature.parameters)
    key = parameters.pop("key").replace(kind=inspect.Parameter.KEYWORD_ONLY, default=None)
    last = [parameters.pop(name) for name in ("shape", "dtype") if name in parameters]
    free = [p for p in parameters.values() if p.default is p.empty]
    rest = [p for p in (*parameters.values(), *last) if p.default is not p.empty]
    return inspect.Signature([*free, *rest, key])


def is_key(given: Tensor) -> bool:
    return given.dtype is dtypes.uint32 and given.shape == (2,)


def next_key() -> Tensor:
    """The next key of everybody's generator."""
    check_untraced()
    return adopted(keys.next_key())


def check_untraced() -> None:
    """Inside a trace everybody's generator would give the same numbers every time, so it is refused."""
    inside = next((s for s in Scope.at_work if s.kind == "trace"), None)
    if inside is not None:
        raise TraceError(
            f"without a key, inside {inside.name}, it would draw the same numbers every time",
            hint="pass keys in (tensor-split-key) and give one with :key",
        )


# ---- errors ----------------------------------------------------------------------------------------------------------


def in_scheme(op: Op, error: EshkolError) -> EshkolError:
    """The error of a row without the row's name, which Scheme's procedure stands for."""
    message = error.message
    if message.startswith(f"{op.name}("):
        operands, _, rest = message[len(op.name) + 1 :].partition("): ")
        message = f"{rest}; given {operands}" if operands and rest else rest or message
    elif message.startswith(f"{op.name}: "):
        message = message[len(op.name) + 2 :]
    message = without_rows(message)
    return type(error)(translated(message), hint=None if error.hint is None else translated(error.hint))


def schemed(error: EshkolError) -> EshkolError:
    """The error, with Scheme's names and without a line of Python."""
    return type(error)(
        translated(without_rows(error.message)), hint=None if error.hint is None else translated(error.hint)
    )
