"""Scheme's procedures as compiled programs: jit-compile, trace, with-device, over the tensors' own `jit`.

In: a Scheme procedure as a Python callable. It is traced once for each structure, shapes and dtypes of its arguments;
inexact numbers are inputs like tensors, exact numbers, booleans, symbols and strings belong to the signature. Out: the
same structures; what is no tensor and no inexact number in a result is what it was when the program was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.bindings.layers import in_words
from eshkol.bindings.results import outward
from eshkol.bindings.values import Values
from eshkol.errors import EshkolError, TensorError
from eshkol.graph.node import Node, topological
from eshkol.ops.structural import CONST, PICK
from eshkol.tensors import devices, pytree
from eshkol.tensors.computing import realize
from eshkol.tensors.jit import Traced, jit
from eshkol.tensors.scalars import Scalar, is_known
from eshkol.tensors.value import Tensor

Procedure = Callable[..., Any]


def jit_compile(procedure: Procedure) -> Any:
    """The procedure, compiled when it meets arguments of a new kind; a model as `ek.jit` has it, by its parameters."""
    if hasattr(type(procedure), "__jit__"):
        return jit(procedure)

    def program(*args: Any, **given: Any) -> Any:
        return outward(procedure(*args, **given))

    program.__name__ = getattr(procedure, "__name__", "procedure")
    program.__doc__ = getattr(procedure, "__doc__", None)
    return jit(program, floats=True)


# --- programs to look at --------------------------------------------------------------------------


class TracedProcedure:
    """A procedure traced with some arguments: printed, it shows what is computed; called, it computes that."""

    def __init__(self, procedure: Procedure, examples: Sequence[Any]) -> None:
        self._jit = jit_compile(procedure)
        self.__name__ = self._jit.function.__name__ if isinstance(self._jit, jit) else type(procedure).__name__
        self.traced: Traced = self._jit.traced(*examples)
        self._kinds = _kinds(examples)

    def __call__(self, *args: Any) -> Any:
        found = _kinds(args)
        if found != self._kinds:
            raise TensorError(
                f"{self.__name__} was traced for {_listed(self._kinds)}, and is called with {_listed(found)}",
                hint="trace it again with such arguments, or use jit-compile, which does so by itself",
            )
        return self._jit(*args)

    def scheme_text(self) -> str:
        """What Scheme's display shows."""
        return shown(self.__name__, self.traced)

    __repr__ = scheme_text


def _kinds(args: Sequence[Any]) -> tuple[str, ...]:
    leaves, tree = pytree.flatten(list(args))
    return (str(tree), *(_kind(leaf) for leaf in leaves))


def _kind(leaf: Any) -> str:
    if isinstance(leaf, float | Scalar):
        return "a number"
    return f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, Tensor) else repr(leaf)


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kinds[1:]) or "nothing"


def trace(procedure: Procedure, *examples: Any) -> TracedProcedure:
    """The program that a procedure is for arguments like these."""
    return TracedProcedure(procedure, examples)


def program_text(procedure: Any, *examples: Any) -> str:
    """What `trace` shows."""
    return repr(procedure if isinstance(procedure, TracedProcedure) else TracedProcedure(procedure, examples))


def shown(name: str, traced: Traced) -> str:
    """The steps of a traced function, one line each, as Scheme would write them."""
    function = traced.function
    names: dict[Node, str] = {p: f"x{k}" for k, p in enumerate(function.params)}
    given = len(function.params) - len(traced.captured)
    head = [f"({names[p]} {_aval(p)})" for p in function.params[:given]]
    lines = [f"(program ({' '.join([name, *head])})"]
    lines += [f"  ; {names[p]} is taken from outside: {_aval(p)}" for p in function.params[given:]]
    count = 0
    for node in topological(function.results):
        if node in names:
            continue
        if node.op is CONST:
            names[node] = _number(node.attrs.array.item())
            continue
        count += 1
        names[node] = f"t{count}"
        step = " ".join([node.op.name, *(names[x] for x in node.inputs), *_attributes(node)])
        kind = "several" if node.outs is not None else _aval(node)
        lines.append(f"  (define t{count} ({step}))".ljust(56) + f" ; {kind}")
    results = [names[r] for r in function.results]
    several = "values" if traced.tree.kind is Values else "list"
    lines.append(f"  {results[0]})" if len(results) == 1 else f"  ({several} {' '.join(results)}))")
    return "\n".join(lines)


def _aval(node: Node) -> str:
    return f"{node.dtype} ({' '.join(map(str, node.shape))})"


def _number(value: Any) -> str:
    return {True: "#t", False: "#f"}[value] if isinstance(value, bool) else repr(value)


def _attributes(node: Node) -> list[str]:
    """The attributes of an op, as keywords."""
    attrs = node.attrs
    if attrs is None:
        return []
    if node.op is PICK:
        return [str(attrs.place)]
    names = getattr(attrs, "_fields", None) or getattr(attrs, "__dataclass_fields__", None)
    if not names:
        return [_written(attrs)]
    return [f":{name.replace('_', '-')} {_written(getattr(attrs, name))}" for name in names]


def _written(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "#t" if value else "#f"
    if isinstance(value, tuple | list):
        return f"({' '.join(map(_written, value))})"
    return str(value) if isinstance(value, int | float | str) else f"<{type(value).__name__}>"


# --- devices --------------------------------------------------------------------------------------


def set_device(name: Any) -> str:
    """Compute on another device from here on; gives the one before."""
    before = devices.current_name()
    devices.set_device(str(name))
    return before


def computed(leaves: Sequence[Any]) -> None:
    """Compute tensors here and now, as far as they are known."""
    missing = [x for x in leaves if isinstance(x, Tensor) and x._node.data is None]
    found = [x for x in missing if is_known(x._node)]
    if found:
        realize(*found)


# --- records ----------------------------------------------------------------------------------------


_records: dict[int, tuple[Any, Any]] = {}  # by session; those that are closed are dropped


def say_records(taken_apart: Any, made: Any) -> None:
    """Make records structures: the one procedure gives type and fields of a record, the other makes one."""
    from eshkol.bindings.values import Record

    for context in [context for context, (known, _) in _records.items() if not known.context]:
        del _records[context]
    _records[taken_apart.context] = taken_apart, made
    pytree.register(Record, _record_parts, lambda kind, fields: _records[kind.context][1](kind, list(fields)))


def _record_parts(record: Any) -> tuple[Sequence[Any], Any]:
    """The fields and the type of a record, by the procedures of its own session."""
    kind, *fields = _records[record.context][0](record)
    return fields, kind


# --- the imperative style ---------------------------------------------------------------------------


def backward(loss: Tensor, cotangent: Any = None) -> None:
    try:
        loss.backward(cotangent)
    except EshkolError as error:
        raise in_words(error) from None


def require_grad(tensor: Tensor, wanted: Any) -> Tensor:
    return tensor.requires_grad_(wanted is not False)


def grad_of(tensor: Tensor) -> Any:
    found = tensor.grad
    return False if found is None else found


def forget_grad(tensor: Tensor) -> None:
    tensor.grad = None
