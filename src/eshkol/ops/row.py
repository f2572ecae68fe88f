"""What a row of the op table is made of.

An op is one object: its name, one line of documentation, its rules and its samples. Everything else is derived from
it: the Python function, the Scheme builtin, docs/ops.md, the tests against NumPy, the gradient checks, vmap, and what
the backends run. Rules are written over `Value`s with Python's operators and with other ops, so that the same rule
serves graphs of tensors and, later, scalars and symbols; this package knows no graph.

There are two kinds of rows. A *primitive* becomes a node: its function (decorated with `primitive`) turns the user's
arguments into typed attributes. A *composite* (decorated with `composite`) is a function of other ops, carried out
when it is called; its derivative, its vmap and its lowering follow. Parameters annotated `Value`, `Value | None` or
`Sequence[Value]` are tensors, the rest are attributes.

Every rule of a primitive takes its attributes first: `infer(a, *avals)`, `reference(a, *arrays)`, `jvp(a, ...)`.
"""

from __future__ import annotations

import inspect
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

from eshkol.errors import TensorError
from eshkol.ops.dtypes import DType
from eshkol.ops.operators import TABLE as TABLE  # where modules of rows find it
from eshkol.ops.operators import Operators

Shape = tuple[int, ...]
STRUCTURE = "structure"  # the group of rows that no user calls


class Aval(NamedTuple):
    """What is known of a value before it is computed."""

    shape: Shape
    dtype: DType


@runtime_checkable
class HasAval(Protocol):
    """Anything with a shape and a dtype: an Aval, a node, an array's description."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...


class Looks(threading.local):
    """What is noted of a call that is being learnt: nodes that may fail on values, (value, function) of those that are
    examined, and None where a value was asked for in any other way. Without such a call, None itself."""

    noted: list[Any] | None = None


LOOKS = Looks()


class Value(Operators):
    """What rules compute with. `apply` carries out an op; the operators and the ops end there.

    Its methods are abstract for the type checker alone: with the metaclass ABCMeta every `isinstance` of a node, of
    which each op asks several, would take several times as long.
    """

    __slots__ = ()

    shape: Shape
    dtype: DType

    @abstractmethod
    def apply(self, op: Op, inputs: Sequence[Any], attrs: Any) -> Any:
        """The value (or values) of an op; inputs may be Python numbers too."""

    @abstractmethod
    def literal(self, array: Any) -> Any:
        """An array as a value of the same world (a constant of the graph)."""

    @abstractmethod
    def concrete(self) -> Any:
        """The array itself, for ops whose result has a shape that depends on it; an error where it is not known."""

    def known(self) -> Any:
        """The array, if it is computed already; else None."""
        return None

    def examined(self, refuse: Callable[[Any], None]) -> None:
        """Let a function look at the array, if it is computed already: it raises an error, or does nothing."""
        known = self.known()
        if known is not None:
            refuse(known)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


# --- derivatives ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partials:
    """Of an elementwise op: for each input the factor of its tangent, `factor(result, *inputs)`.

    None instead of a factor says that the op does not depend smoothly on that input (the condition of `where`).
    These expressions are the derivative everywhere: tensors, dual numbers, tapes and symbols read them.
    """

    factors: tuple[Callable[..., Any] | None, ...]


@dataclass(frozen=True)
class Linear:
    """The op is linear in some inputs: in all of them together (`joint`), or in each while the others are fixed.

    `transpose(a, ct, k, *inputs)` gives the cotangent of input k, of the shape of that input or of one that
    broadcasts from it (it is summed); of the inputs it is linear in, only shapes and dtypes may be used.
    """

    transpose: Callable[..., Any]
    args: tuple[int, ...] | None = None  # None: all inputs
    joint: bool = False


@dataclass(frozen=True)
class Jvp:
    """`rule(a, result, inputs, tangents)` gives the tangent of the result, of linear ops of the tangents.

    A tangent is None where the input does not vary. For an op with several results, `result` and what is given back
    are tuples; None stands for a tangent that is zero. An op that its own rule applies to tangents (a loop) has
    `transpose(a, cotangents, linear, inputs)` too: all cotangents at once, for the inputs that `linear` marks.
    """

    rule: Callable[..., Any]
    transpose: Callable[..., Any] | None = None


@dataclass(frozen=True)
class NoDerivative:
    """The statement that there is none. Where `zero` holds the derivative is zero wherever it exists."""

    why: str
    zero: bool = True


Derivative = Partials | Linear | Jvp | NoDerivative


# --- lowering -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pull:
    """What one element of the result is: `code(e, a, i, *reads)` gives a scalar.

    `e` emits scalar instructions, `i` is the element's index (`i[k]` along axis k), and `read(index)` an element of
    an input, at an index of as many places as the input has axes; `read(i)` broadcasts.
    """

    code: Callable[..., Any]


@dataclass(frozen=True)
class Push:
    """Rows of the result that are computed one element after another: `code(e, a, r, write, *reads)`.

    `rows(a, *avals)` is the shape over which rows are spread; `r` indexes it, and `write(index, scalar)` stores.
    `side_by_side` is the same for machines of blocks, where it differs.
    """

    rows: Callable[..., Shape]
    code: Callable[..., None]
    side_by_side: Push | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Update(Push):
    """Scalar code that changes the first input in place: the result is a copy of it before the code runs.

    `work(a, *avals)` says how many elements a lane changes.
    """

    work: Callable[..., int]


@dataclass(frozen=True)
class Macro:
    """Array instructions of Atlas over whole buffers: `code(b, a, out, *inputs)` writes them.

    `b` is a program builder, `out` and the inputs are its buffers, each with `address`, `shape`, `dtype` and `ty` (the
    Atlas type). The program runs with one lane.
    """

    code: Callable[..., None]


@dataclass(frozen=True)
class Parts:
    """Other ops: `code(a, *values)` is the op as a composition, which is what is computed, fused with its neighbours.

    The op stays one node until a graph is compiled: its derivative and its batches are said of the whole.
    """

    code: Callable[..., Any]


@dataclass(frozen=True)
class Nested:
    """Control flow: `code(run, a, *arrays)` on the host; `run(function, arrays)` computes a function's results."""

    code: Callable[..., Any]


@dataclass(frozen=True)
class Host:
    """The reference itself, run on the host. So is what touches complex numbers, unless the row says how.

    What is `native` has code of its own in the runtime, which plans call: `NATIVE` on the CPU alone, by name.
    """

    native: bool = False


HOST = Host()
NATIVE = Host(native=True)
Simple = Pull | Push | Macro | Parts | Nested | Host


@dataclass(frozen=True)
class Choice:
    """One lowering where `fits(a, *avals)`, another elsewhere."""

    fits: Callable[..., bool]
    then: Simple
    otherwise: Simple | Choice


Lowering = Simple | Choice


# --- samples --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """A tensor that a test draws: its shape, between which numbers, and of which kind its dtype is.

    `kind`: "any" takes the dtype under test; "int", "bool", "float" and "complex" insist; "key" is uint32, of which
    keys of random numbers are made. `make(rng)` gives the array itself where numbers between bounds will not do (a
    positive definite matrix, a permutation).
    """

    shape: Shape
    low: float = -2.0
    high: float = 2.0
    kind: str = "any"
    make: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Sample:
    """Arguments with which an op is tested: draws (or sequences of them), then attributes by name."""

    args: tuple[Any, ...]
    attrs: dict[str, Any] = field(default_factory=dict)


def sample(*args: Any, **attrs: Any) -> Sample:
    """A sample; a tuple of integers stands for a draw of that shape."""
    return Sample(
        tuple(Draw(a) if isinstance(a, tuple) and all(isinstance(n, int) for n in a) else a for a in args), attrs
    )


@dataclass(frozen=True, slots=True)
class Reducing:
    """How a reduction goes: with which operation of `ACC`, from which number of a dtype on."""

    operation: str
    first: Callable[[DType], Any]


def each_read(node: Any, of_function: Any) -> int:
    """The work of an op that takes an operation for each element it reads."""
    size: int = node.inputs[0].size
    return size


# --- the row --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Op:
    """One tensor operation."""

    name: str
    doc: str  # one line
    function: Callable[..., Any] | None  # of a primitive: arguments → attributes; of a composite: what it is
    composite: bool = False
    names: tuple[str, ...] = ()  # of the inputs, where there is no function (elementwise ops)
    infer: Callable[..., Any] | None = None  # (a, *avals) → Aval, or a tuple of them
    reference: Callable[..., Any]  # (a, *arrays) → array(s); of a composite: the user's arguments with arrays
    promote: str | None = None  # how the dtypes of the inputs meet; see `graph.node`
    promoted: tuple[int, ...] | None = None  # which inputs take part; None: all
    derivative: Derivative | None = None  # None for composites: it follows
    batch: Callable[..., Any] | None = None  # (a, inputs, batched) → value(s), batched along axis 0
    lower: Lowering | None = None
    of_complex: Pull | bool = False  # how complex numbers are computed: by this, as others (True), or by the host
    group: str = ""  # heading in the documentation
    scheme: tuple[str, ...] = ()
    procedures: tuple[str, ...] = ()  # of Scheme's, on numbers, that are this op: its rule differentiates them
    aliases: tuple[str, ...] = ()  # further Python names
    method: bool = True  # whether tensors have it as a method too
    gives: str = "Tensor"  # the type of what a call gives, as users are told it
    gives_if: Mapping[str, tuple[Any, str]] = field(default_factory=dict)  # a parameter → (a value of it, another type)
    samples: tuple[Sample, ...] = ()
    dtypes: tuple[str, ...] = ("float",)  # kinds of dtype that its inputs may have
    tolerance: float = 1.0  # of a comparison with the reference, in multiples of the usual one
    concrete: tuple[int, ...] = ()  # inputs whose values decide the result's shape, so must be known at once
    elementwise: bool = False
    moves: bool = False  # whether it only says where elements come from, so that it may be computed where it is read
    traps: bool = False  # whether it can stop a launch, so that it must be told apart from its neighbours
    at_once: bool = False  # whether it may fail on values and costs enough to be computed by the statement that says it
    # (a, *inputs): an error for values that are known and cannot be right; gives what must be computed to find out
    refuses: Callable[..., Any] | None = None
    stops: Callable[[Any], TensorError] | None = None  # a → the error where its own check stops a launch
    windows: bool = False  # whether NumPy and PyTorch give a window into x, where this gives a value
    pairs: str = ""  # the op of the places, where PyTorch's namesake gives (values, places) along an axis
    shared: bool = True  # whether two nodes can be the same: not if attributes are like no others
    exact: str = ""  # whether machines and references round alike, so that it may be computed beforehand: "real", "all"
    commutes: bool = False  # whether its two operands may change places
    reduces: Reducing | None = None  # how elements are combined, where it combines those along axes
    work: Callable[[Any, Callable[[Any], int]], int] | None = None  # (node, of a function) → floating-point operations
    severs: bool = False  # whether derivatives end here
    blocked: Callable[[Any], int] | None = None  # how many of the first inputs derivatives do not flow through
    random: bool = False  # tested by distribution, not against the reference
    like: bool = False  # a composite without inputs: the value in whose world it is made comes first, hidden

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def public(self) -> bool:
        """Whether users call it; the others hold graphs together."""
        return self.group != STRUCTURE

    def __call__(self, *args: Any, **given: Any) -> Any:
        if self.function is None and not given:  # elementwise
            return _home(self, args).apply(self, args, None)
        if self.composite:
            assert self.function is not None
            return self.function(*args, **given)
        leading = self.leading
        inputs = self.tensors(args, given) if leading is None or len(args) < leading else args[:leading]
        assert self.function is not None
        attrs = self.function(*args, **given)
        return _home(self, inputs).apply(self, inputs, attrs)

    def on(self, like: Value, *args: Any, **given: Any) -> Any:
        """The op without inputs, in the world of some value."""
        assert self.function is not None
        if self.composite:
            return self.function(like, *args, **given)
        return like.apply(self, (), self.function(*args, **given))

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters as a user gives them."""
        if self.function is not None:
            found = inspect.signature(self.function)
            return found.replace(parameters=[*found.parameters.values()][1:]) if self.like else found
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind, annotation="Value") for n in self.names])

    @cached_property
    def inputs(self) -> tuple[TensorInput, ...]:
        """The parameters that are tensors."""
        parameters = enumerate(self.signature.parameters.values())
        found = [TensorInput(k, p.name, str(p.annotation), p.kind is p.VAR_POSITIONAL) for k, p in parameters]
        return tuple(i for i in found if "Value" in i.annotation)

    @cached_property
    def leading(self) -> int | None:
        """How many first parameters are the tensors, each one and required; None where it is not so simple."""
        simple = all(i.position == k and not (i.many or i.optional) for k, i in enumerate(self.inputs))
        return len(self.inputs) if simple else None

    @cached_property
    def in_front(self) -> tuple[int, int, frozenset[str]] | None:
        """Of a composite whose first parameters are its tensors, each one: how many, how many required, their names."""
        found = self.inputs
        if not self.composite or not found or any(i.position != k or i.many for k, i in enumerate(found)):
            return None
        return len(found), sum(not i.optional for i in found), frozenset(i.name for i in found)

    def tensors(self, args: tuple[Any, ...], given: dict[str, Any]) -> list[Any]:
        """The tensors among the arguments, in order and flat."""
        bound = self.signature.bind(*args, **given)
        found: list[Any] = []
        for parameter in self.inputs:
            value = bound.arguments.get(parameter.name)
            if parameter.many:
                found.extend(value or ())
            elif value is not None or not parameter.optional:
                found.append(value)
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelOp(Op):
    """An operation that passes put into graphs: users do not call it, and derivatives have been taken before."""

    function: Callable[..., Any] | None = None
    group: str = STRUCTURE
    method: bool = False
    derivative: Derivative | None = NoDerivative("derivatives are taken before graphs are compiled", zero=False)


@dataclass(frozen=True)
class TensorInput:
    """A parameter of an op that is a tensor."""

    position: int
    name: str
    annotation: str
    starred: bool

    @property
    def many(self) -> bool:
        return self.starred or "Sequence" in self.annotation

    @property
    def optional(self) -> bool:
        return "None" in self.annotation


def _home(op: Op, inputs: Sequence[Any]) -> Value:
    for value in inputs:
        if isinstance(value, Value):
            return value
    raise TensorError(f"{op.name} was given no tensor", hint="make one with ek.tensor(...)")


def row(op: Op) -> Op:
    """Enter an op into the table, which is full when all modules of this package are imported (`eshkol.ops` does)."""
    if op.name in TABLE:
        raise TensorError(f"two rows are named '{op.name}'")
    TABLE[op.name] = op
    return op


def _text(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise TensorError(f"the op '{function.__name__}' needs a line of documentation")
    return text


def _name(function: Callable[..., Any]) -> str:
    """Ops whose names Python has taken are defined with an underscore: `sum_`."""
    return function.__name__.strip("_")


def primitive(**rules: Any) -> Callable[[Callable[..., Any]], Op]:
    """A row whose function turns the user's arguments into attributes (None if it has none)."""
    return lambda function: row(
        Op(name=rules.pop("name", _name(function)), doc=_text(function), function=function, **rules)
    )


def composite(**rules: Any) -> Callable[[Callable[..., Any]], Op]:
    """A row that is a function of other ops."""

    def made(function: Callable[..., Any]) -> Op:
        name = rules.pop("name", _name(function))
        return row(Op(name=name, doc=_text(function), function=function, composite=True, **rules))

    return made


def elementwise(name: str, names: str, doc: str, **rules: Any) -> Op:
    """A primitive without attributes that works element by element, broadcasting."""
    return row(Op(name=name, doc=doc, function=None, names=tuple(names.split()), elementwise=True, **rules))
