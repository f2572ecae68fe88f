"""The one node of the graph: an op, its inputs, its attributes; shape and dtype derived once.

Nodes are immutable and interned: the same op of the same inputs and attributes is the same object, so `is` compares
them. An op with several results has one node, and one `pick` node per result. `Node.apply` is where every op ends:
numbers become constants, dtypes are brought together as the row says, and the node is made or found.

`scopes` says which transformations at work a node depends on (see `Scope`). `data`, once set, holds the computed value:
an array of the host, or memory of another machine (`schedule/run/resident.py`). `device` names the machine that it is
on, or is going to be computed on; None stands for any, as of numbers. `site` says which line of the user's program made
the node. `depth` is the length of the longest way through nodes that were not computed when the node was made.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce, wraps
from types import CodeType
from typing import Any, ClassVar, TypeAlias

import numpy as np

from eshkol.errors import DeviceError, DTypeError, EshkolError, Span, TensorError, TraceError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType, Number
from eshkol.ops.elementwise import cast
from eshkol.ops.row import LOOKS, TABLE, Aval, Op, Shape, Value
from eshkol.ops.structural import BUFFER, CONST, MARK, PICK, PLACEHOLDER, TO, Constant, DevicePlace, Leaf, Mark, Pick
from eshkol.runtime import front
from eshkol.support.extents import Extent
from eshkol.support.watched import Watched, unwatched

Site: TypeAlias = tuple[CodeType, int]  # a code object, and the offset of an instruction in it

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
THREADS = threading.__file__  # where a thread begins: below all that a user has written
HOST = "cpu"  # the device whose memory is the host's
CONSTANTS_KEPT = 4096
_bits = struct.Struct("d").pack  # tells 0.0 from -0.0, and NaN from nothing


class AtWork(threading.local):
    """What is at work in a thread, the outermost first: one thread's transformations are not another's.

    Where a call is carried out by another thread, that thread has the caller's `stack` meanwhile (`bindings`).
    """

    stacks: ClassVar[list[AtWork]] = []  # all there are, for those who carry calls to other threads

    def __init__(self) -> None:  # once in each thread
        self.stack: list[Any] = []

    @classmethod
    def new(cls) -> AtWork:
        made = cls()
        cls.stacks.append(made)
        return made

    def append(self, one: Any) -> None:
        self.stack.append(one)

    def remove(self, one: Any) -> None:
        self.stack.remove(one)

    def pop(self) -> Any:
        return self.stack.pop()

    def __len__(self) -> int:
        return len(self.stack)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.stack)

    def __getitem__(self, place: int) -> Any:
        return self.stack[place]


class Scope:
    """A transformation at work: what depends on its inputs.

    `kind` is "grad" (values are known, derivatives are wanted), "trace" (values are not known: vmap, loop bodies) or
    "tape" (tensors with requires_grad). Once closed, values that depend on it may be looked at like any others; `kept`
    says that derivatives may still be asked for, so that the history of what depends on it is needed.
    """

    __slots__ = ("__weakref__", "kept", "kind", "name", "open")
    at_work: ClassVar[AtWork] = AtWork.new()  # those whose function is running now

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name, self.open, self.kept = kind, name, True, False

    def __repr__(self) -> str:
        return f"<scope {self.name}>"


NO_SCOPES: frozenset[Scope] = frozenset()
LEAVES = (BUFFER, CONST, PLACEHOLDER)  # ops that compute nothing

Current = front.at_work
"""What is at work in a thread: the line of the user's program (`site`), for the nodes it makes; and whether it made one
that may fail on its values, and is computed before the statement ends (`urgent`)."""


class Node(front.NodeBase, Value):
    """A value of the graph. Made by `apply`, `constant`, `buffer`, `placeholder` and `mark` only.

    Its attributes, its arithmetic and the table in which nodes are found again are in C (runtime/native/front).
    """

    __slots__ = ()

    op: Op
    inputs: tuple[Node, ...]
    attrs: Any
    shape: Shape
    dtype: DType
    outs: tuple[Aval, ...] | None  # of an op with several results
    scopes: frozenset[Scope]
    data: Any
    depth: int
    device: str | None
    site: Site | None

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Any) -> Any:
        if op.promote is not None:
            try:
                inputs = promoted(op, inputs)
            except EshkolError as error:
                raise explained(op, inputs, error) from None
        else:
            for x in inputs:
                if type(x) is not Node:
                    inputs = [lift(x) for x in inputs]
                    break
        node = make(op, tuple(inputs), attrs)
        if op.at_once or op.refuses is not None:
            if LOOKS.noted is None:
                refused(op, attrs, inputs)
            else:
                LOOKS.noted.append(node)
        return node if node.outs is None else picks(node)

    def literal(self, array: Any) -> Node:
        return buffer(array, dtypes.of(array.dtype), loose=True)

    def concrete(self) -> Any:
        unknown = next((s for s in self.scopes if s.open and s.kind == "trace"), None)
        if unknown is not None:
            raise TraceError(
                f"the shape of a result depends on values that are not known inside {unknown.name}",
                span=here(), hint="use an op whose shape does not, such as where or masked_fill",
            )  # fmt: skip
        if self.data is None:
            Node.evaluator(self)
        return host_array(self)

    def known(self) -> Any:
        if self.op is CONST:
            return self.attrs.array
        if LOOKS.noted is not None:
            LOOKS.noted.append(None)
        return at_hand(self)

    def examined(self, refuse: Callable[[Any], None]) -> None:
        if LOOKS.noted is None:
            super().examined(refuse)
        else:
            LOOKS.noted.append((self, refuse))

    crosses: ClassVar[bool] = False  # whether a value was ever sent from one machine to another
    evaluator: ClassVar[Callable[[Node], None]]  # computes a node now; set by what can run graphs

    def __repr__(self) -> str:
        what = "several" if self.outs is not None else f"{self.dtype}{list(self.shape)}"
        return f"<node {self.op.name} {what}>"


def refused(op: Op, attrs: Any, inputs: Sequence[Any]) -> None:
    """Raise what an op has against values that are known; note where it must be computed to find out."""
    if op.at_once:
        Current.urgent = True
    if op.refuses is not None:
        try:
            unsure = op.refuses(attrs, *inputs)
        except EshkolError as error:
            raise explained(op, inputs, error) from None
        if unsure is not None and not Current.urgent:
            Current.urgent = of_earlier(unsure)


_FEW = 64  # nodes that are looked at to see what a value is made of


def of_data(node: Node) -> bool:
    """Whether a value is computed from data, and not from numbers and positions alone; of many steps, that it is."""
    waiting, seen = [node], 0
    while waiting and seen < _FEW:
        found = waiting.pop()
        seen += 1
        if not found.inputs and found.op in (BUFFER, PLACEHOLDER):
            return True
        if found.data is None:
            waiting += found.inputs
        elif found.device is not None:  # else it is of numbers alone, and was looked at elsewhere
            return True
    return bool(waiting)


def of_earlier(node: Node) -> bool:
    """Whether a value depends on data that an earlier statement left to be computed.

    What a statement makes of known values on its way is its own to check: class labels, say, before they are used.
    """
    waiting, seen = [node], 0
    while waiting and seen < _FEW:
        found = waiting.pop()
        seen += 1
        if found.data is None and found.inputs:
            if (found.site is None or found.site != Current.site) and of_data(found):  # Scheme's calls have no site
                return True
            waiting += found.inputs
        elif found.op is PLACEHOLDER:
            return True
    return bool(waiting)


make: Callable[[Op, tuple[Node, ...], Any], Node] = front.make
"""The node of an op; inputs are nodes of the dtypes it wants."""


def _inferred(op: Op, inputs: tuple[Node, ...], attrs: Any) -> Any:
    """Shape and dtype of a result, or of each of several."""
    try:
        assert op.infer is not None
        return op.infer(attrs, *inputs)
    except EshkolError as error:
        raise explained(op, inputs, error) from None


def _specially(node: Node) -> None:
    """Make a node what it is where it does not simply take after its inputs."""
    op = node.op
    if node.outs is not None:
        node.dtype = dtypes.bool_
    if op is TO:
        node.device, Node.crosses = node.attrs.device, True
    elif op is MARK:
        node.scopes = node.scopes | {node.attrs.scope}
    elif op.severs:
        node.scopes = frozenset(s for s in node.scopes if s.kind == "trace")


def _do_not_meet(op: Op, inputs: tuple[Node, ...]) -> None:
    raise explained(op, inputs, on_different_machines(inputs))


def settle(node: Node) -> None:
    """Make a leaf of a node that has data, unless a transformation at work needs to know how it was computed.

    This is the one change that a node may undergo. Without it every value would keep alive all that it was computed
    from, back to the first step of a training loop. And positions along an axis would be found as data by whoever makes
    the same again: what is compiled would depend on what was computed.
    """
    if node.op not in LEAVES and (not node.scopes or not any(s.open or s.kept for s in node.scopes)):
        front.forget(node)
        node.op, node.attrs = BUFFER, Leaf(front.leaf_number(), node.shape, node.dtype)
        node.inputs, node.scopes, node.depth = (), NO_SCOPES, 0


def picks(node: Node) -> tuple[Node, ...]:
    """The results of an op that has several."""
    assert node.outs is not None
    return tuple(make(PICK, (node,), Pick(k)) for k in range(len(node.outs)))


# --- leaves ---------------------------------------------------------------------------------------


_constants: dict[tuple[Any, ...], Node] = {}  # those met lately: NumPy takes long to make one


def constant(number: Number, dtype: DType) -> Node:
    """A number as a node."""
    kind: Any = type(number)
    if kind is Extent or kind is Watched:  # a size that is not known yet: a number that is computed with
        size: Any = unwatched(number)
        given: Node = size.conditions.numbers(size, dtype)
        return given
    key = (_bits(number) if kind is float else number if kind is int else repr(number), kind, dtype)
    found = _constants.get(key)
    if found is None:
        if len(_constants) >= CONSTANTS_KEPT:
            _constants.clear()
        found = _constants[key] = make(CONST, (), _held_exactly(number, dtype))
    return found


def _held_exactly(number: Number, dtype: DType) -> Constant:
    """The number in a dtype; one that is beyond it is an error, not infinity."""
    try:
        made = Constant.of(number, dtype)
        beyond = abs(number) < math.inf and dtype.differentiable and not math.isfinite(abs(complex(made.array)))
    except OverflowError:
        beyond = True
    if beyond:
        shown = f"{number:.6g}" if isinstance(number, float) else "an integer of so many digits"
        raise DTypeError(f"{shown} does not fit {dtype}", span=here(), hint="cast the tensor to a wider dtype first")
    return made


def lift(given: Any, dtype: DType | None = None) -> Node:
    """A node, or a Python number as one."""
    if isinstance(given, Node):
        return given
    if isinstance(given, bool | int | float | complex):
        dtype = dtype or dtypes.of_number(given)
        if not dtype.holds(given):
            raise DTypeError(
                f"{given} does not fit {dtype}", hint="make a tensor of it: ek.tensor(x, dtype=ek.float64)"
            )
        return constant(given, dtype)
    raise TensorError(f"a {type(given).__name__} is not a tensor", hint="make one with ek.tensor(...)")


def beside(given: Any, others: Iterable[Any]) -> Node | None:
    """A number in the dtype that it has beside nodes; None of anything else, or without nodes."""
    found = [x.dtype for x in others if type(x) is Node]
    if not found or isinstance(given, bool) or not isinstance(given, int | float | complex):
        return None
    return constant(given, dtypes.promote_number(reduce(dtypes.promote, found), given))


buffer: Callable[..., Node] = front.buffer
"""buffer(data, dtype, loose=False): a leaf that holds an array, which nothing may write to any more, or memory of
another machine. One that is `loose` goes with whatever it is used with, and is copied to the machine where that is."""

buffers: Callable[[list[Any], list[DType]], list[Node]] = front.buffers
"""Leaves that hold values, all of them on one machine."""


def placeholder(aval: Aval, scope: Scope) -> Node:
    """A leaf whose value is not known."""
    node = make(PLACEHOLDER, (), Leaf(front.leaf_number(), aval.shape, aval.dtype))
    node.scopes = frozenset({scope})
    return node


def mark(node: Node, scope: Scope) -> Node:
    """The node itself, told apart from all others, as an input of a scope."""
    return make(MARK, (node,), Mark(scope, front.leaf_number()))


# --- dtypes ---------------------------------------------------------------------------------------


def promoted(op: Op, inputs: Sequence[Any]) -> Sequence[Node]:
    """The inputs, brought to one dtype as the row says.

    "common": the dtype in which they meet; "number": the same, where bools count as integers; "float": the same, where
    bools and integers become floats.
    """
    first = inputs[0]
    if type(first) is Node and op.promoted is None:  # nearly always all is well already
        same = first.dtype
        if same.differentiable or op.promote == "common":
            for x in inputs:
                if type(x) is not Node or x.dtype is not same:
                    break
            else:
                return inputs
    chosen = inputs if op.promoted is None else [inputs[k] for k in op.promoted]
    dtype = None
    for x in chosen:
        if type(x) is Node:
            dtype = x.dtype if dtype is None or dtype is x.dtype else dtypes.promote(dtype, x.dtype)
    for x in chosen:
        if type(x) is not Node:
            if not isinstance(x, bool | int | float | complex) or dtype is None:
                dtype = lift(x).dtype  # refuses what is neither a node nor a number
            else:
                dtype = dtypes.promote_number(dtype, x)
    assert dtype is not None
    if op.promote == "float":
        dtype = dtypes.floating(dtype)
    elif op.promote == "number" and dtype is dtypes.bool_:
        dtype = dtypes.int64
    taken = range(len(inputs)) if op.promoted is None else op.promoted
    return [_of_dtype(x, dtype) if k in taken else lift(x) for k, x in enumerate(inputs)]


def _of_dtype(given: Any, dtype: DType) -> Node:
    if type(given) is not Node:
        return constant(given, dtype)
    if given.dtype is dtype:
        return given
    result = cast(given, dtype)
    assert isinstance(result, Node)
    return result


# --- walking --------------------------------------------------------------------------------------


def all_inputs(node: Node) -> tuple[Node, ...]:
    return node.inputs


def topological(
    outputs: Iterable[Node], scope: Scope | None = None, through: Callable[[Node], tuple[Node, ...]] = all_inputs
) -> list[Node]:
    """All nodes that the outputs depend on, inputs first; with a scope, only those that depend on it."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [*outputs]
    stack.reverse()
    opened: list[Node] = []  # nodes whose inputs are on the stack, above a None
    while stack:
        node = stack.pop()
        if node is None:
            order.append(opened.pop())
        elif node not in seen and (scope is None or scope in node.scopes):
            seen.add(node)
            opened.append(node)
            stack.append(None)
            for x in reversed(through(node)):
                if x not in seen:
                    stack.append(x)
    return order


def substitute(outputs: Sequence[Node], new: Mapping[Node, Node], scope: Scope | None = None) -> list[Node]:
    """The outputs, with some nodes replaced; a scope says that only what depends on it can change."""
    changed: dict[Node, Node] = dict(new)
    for node in topological(outputs, scope):
        if node not in changed:
            inputs = tuple(changed.get(x, x) for x in node.inputs)
            changed[node] = node if inputs == node.inputs else remade(node, inputs)
    return [changed.get(node, node) for node in outputs]


def remade(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node with other inputs, of the same line of the user's program."""
    previous, Current.site = Current.site, node.site
    try:
        return make(node.op, inputs, node.attrs)
    finally:
        Current.site = previous


def copied(node: Node, inputs: tuple[Node, ...], site: Any) -> Node:
    """A node like another, over inputs of the same shapes and dtypes, that is nothing else's."""
    made = Node.__new__(Node)
    made.op, made.inputs, made.attrs, made.data, made.site = node.op, inputs, node.attrs, None, site
    made.shape, made.dtype, made.outs, made.scopes = node.shape, node.dtype, node.outs, NO_SCOPES
    made.depth, made.device = node.depth, None
    return made


# --- machines -------------------------------------------------------------------------------------


def on_host(data: Any) -> Any:
    """A computed value as an array of the host; it is copied from the machine where it is, if need be."""
    return data.host() if hasattr(data, "host") else data


def host_array(node: Node) -> Any:
    """The computed value of a node as an array of the host."""
    return on_host(node.data)


def at_hand(node: Node) -> Any:
    """The computed value as an array, if the host has it; None where it is not computed, or would have to be copied."""
    return getattr(node.data, "on_host", node.data)


def to_device(node: Node, device: str) -> Node:
    """The value on another machine; itself if it is there."""
    return node if node.device == device else make(TO, (node,), DevicePlace(device, node.device))


def on_different_machines(nodes: Iterable[Node]) -> DeviceError:
    """The error of values that do not meet."""
    found = list(dict.fromkeys(x.device for x in nodes if x.device is not None))
    return DeviceError(
        f"values on different machines do not meet: {' and '.join(found)}",
        hint=f'move one of them: x.to("{found[0]}")',
    )


# --- errors ---------------------------------------------------------------------------------------


def user_site() -> Site | None:
    """The innermost line at work that is not of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == THREADS:  # Scheme calls from a thread of its own
        return None
    return (frame.f_code, frame.f_lasti)


def noted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The nodes that a function makes come from the line that calls it."""

    @wraps(function)
    def at_line(*args: Any, **given: Any) -> Any:
        outer, Current.site = Current.site, user_site()
        try:
            return function(*args, **given)
        finally:
            Current.site = outer

    return at_line


def span_of(site: Site | None) -> Span | None:
    """The source line of a site, with a caret where the operation stands."""
    if site is None:
        return None
    import linecache

    code, offset = site
    positions = next(itertools.islice(code.co_positions(), offset // 2, None), (None,) * 4)
    line, end_line, start, end = positions
    if line is None:
        return None
    text = linecache.getline(code.co_filename, line).rstrip("\n")
    column = len(text.encode()[:start].decode(errors="replace")) + 1 if start is not None else 1
    length = max(1, (end or 0) - (start or 0)) if end_line == line else max(1, len(text) - column + 1)
    return Span(code.co_filename, line, column, length, text)


def here() -> Span | None:
    """The user's line that is at work now."""
    return span_of(user_site())


def explained(op: Op, inputs: Sequence[Any], error: EshkolError) -> EshkolError:
    """The error with the op, its operands and the user's line, unless it has them already."""
    if error.message.startswith(f"{op.name}("):
        return error
    if error.span is not None:
        if op.composite and not error.message.startswith(op.name):  # what it is made of has failed
            return type(error)(f"{op.name}: {error.message}", span=error.span, hint=error.hint)
        return error
    return type(error)(f"{op.name}({', '.join(map(_shown, inputs))}): {error.message}", span=here(), hint=error.hint)


def _shown(given: Any) -> str:
    if isinstance(given, Node):
        where = "" if given.device in (None, HOST) else f" on {given.device}"
        return "several" if given.outs is not None else f"{given.dtype}{list(given.shape)}{where}"
    return repr(given) if isinstance(given, int | float | complex) else type(given).__name__


# --- the front door -------------------------------------------------------------------------------


def kind_of_file(name: str) -> int:
    """Whose a file is: 0 a user's, 1 this package's, 2 where threads begin, below all that a user has written."""
    return 1 if name.startswith(PACKAGE) else 2 if name == THREADS else 0


def _front_row(op: Op) -> Any:
    """What C knows of an op."""
    broadcasts = getattr(op.infer, "broadcasts", None)
    plain = not (op.at_once or op.refuses or op.windows or op.pairs)
    made = front.row(
        broadcasts[0] if broadcasts else None, broadcasts is not None, op.shared, op in (TO, MARK) or op.severs,
        op.function is None and plain, op.promote is not None and op.promoted is None,
        op.promote in ("common", "number"), len(op.names),
    )  # fmt: skip
    vars(op)["front"] = made
    return made


def _operate_nodes(op: Op, inputs: tuple[Any, ...], site: None) -> Any:
    return op(*inputs)


for _name, _given in {
    "node": Node, "aval": Aval, "no_scopes": NO_SCOPES, "buffer_op": BUFFER, "placeholder_op": PLACEHOLDER,
    "const_op": CONST, "mark_op": MARK, "leaf": Leaf, "host": HOST, "array": np.ndarray,
    "inferred": _inferred, "specially": _specially,
    "on_different_machines": _do_not_meet, "settle": settle, "constant": constant, "kind_of_file": kind_of_file,
    "operate_nodes": _operate_nodes, "front_row": _front_row, "refused": refused, "examined": Node.examined,
    "dtype": DType, "bfloat16": dtypes.bfloat16, "bool_dtype": dtypes.bool_, "long_dtype": dtypes.int64,
    "library_error": EshkolError, "as_array": np.array, "scopes_at_work": Scope.at_work, "empty": np.empty,
    "float_dtype": dtypes.float32, "double_dtype": dtypes.float64,
}.items():  # fmt: skip
    front.give(_name, _given)
front.operators(*(TABLE[name] for name in front.operators()))
