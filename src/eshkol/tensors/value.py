"""`Tensor`: what a Python user holds. A handle on a node of the graph, computed when its value is asked for.

Operators, indexing and every row of the op table end in `operate`, which turns arguments into nodes, notes the user's
line and wraps the result. A tensor's node changes only by in-place operations (`x[0] = 1`, `x += y`), which give the
handle another node: values that were computed from the old one keep it, so nothing is ever overwritten behind a
derivative's back.

What a tensor can do besides stands in modules below, which know it as a `Handle`: autograd.py, interop.py, show.py.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from eshkol.errors import ArgumentError, DerivativeError, DTypeError, EshkolError, ShapeError, TensorError, TraceError
from eshkol.graph import node as graph
from eshkol.graph.custom import barrier
from eshkol.graph.node import PACKAGE, THREADS, Current, Node, Site, buffer, explained, here, lift, noted, settle
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.operators import Operators
from eshkol.ops.row import Op, Shape
from eshkol.tensors import autograd, devices, windows
from eshkol.tensors.arrays import own_array
from eshkol.tensors.branches import Branches
from eshkol.tensors.changes import Changes
from eshkol.tensors.computing import compute_now, realize
from eshkol.tensors.interop import Neighbours
from eshkol.tensors.pieces import LONGEST, shorten
from eshkol.tensors.show import shown
from eshkol.tensors.sizes import Size
from eshkol.tensors.tape import TAPE, GradMode, detached


class Tensor(Neighbours, Operators, autograd.Differentiable):
    """An array that knows how it was computed. Make one with `ek.tensor(...)`."""

    __slots__ = ("__weakref__", "_grad", "_node", "_pair", "_window")  # the last two only where windows.py sets them
    __array_priority__ = 1000

    _is_number = False  # of a Scalar; a subclass of anybody's is a tensor as any other
    _node: Node
    _grad: Tensor | None
    _pair: Op
    _window: tuple[weakref.ref[Tensor], ...]

    def __init__(self, node: Any, *sizes: int) -> None:
        self._node, self._grad = node if type(node) is Node else _node_of((node, *sizes)), None

    def _become(self, node: Node) -> None:
        self._node = node

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self._node.shape

    @property
    def dtype(self) -> DType:
        return self._node.dtype

    @property
    def ndim(self) -> int:
        return len(self._node.shape)

    @property
    def size(self) -> Size:
        """The number of elements; as `size()` and `size(dim)`, the shape and one of its extents."""
        return Size.of(self._node)

    @property
    def nbytes(self) -> int:
        return self._node.size * self._node.dtype.size

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return self._applied("permute", tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ShapeError(f"mT needs two axes, and the shape is {list(self.shape)}", span=here())
        return self._applied("permute", (*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    @property
    def real(self) -> Tensor:
        return self._applied("real")

    @property
    def imag(self) -> Tensor:
        return self._applied("imag")

    @property
    def device(self) -> devices.device:
        """The name of the machine that it is on, or is going to be computed on."""
        return devices.device(self._node.device or devices.current_name())

    def to(self, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
        """The tensor on another device, or of another dtype, or both; itself if it is so already.

        >>> x.to("discrete").device
        'discrete'
        """
        found: Tensor = _moved(self, device, dtype)
        return found.clone() if copy and found is self else found

    def cpu(self) -> Tensor:
        """The tensor in the host's memory."""
        return self.to(graph.HOST)

    def _as_tensor(self) -> Node:
        """The node that it is among tensors; a Scalar has another."""
        return self._settled()

    def _wrap(self, node: Node) -> Tensor:
        return Tensor(node)

    def _operated(self, op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        return operate(op, args, given)

    def _operate_beside(self, op: Op, args: Sequence[Any], given: dict[str, Any]) -> Any:
        """An op of which it is an operand; a Scalar has another way."""
        return operate(op, tuple(args), given)

    def _applied(self, name: str, *attrs: Any) -> Tensor:
        result = operate(TABLE[name], (self, *attrs), {})
        assert isinstance(result, Tensor)
        return result

    def _operate(self, name: str, *inputs: Any) -> Any:
        frame: Any = sys._getframe(2)  # over the operator's method: the line that has the operator
        if frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        op, outer = TABLE[name], Current.site
        try:
            nodes = [x._settled() if type(x) is Tensor and GradMode.enabled else _operand(x) for x in inputs]
            Current.site, Current.urgent = (frame.f_code, frame.f_lasti), False
            result = wrapped(op(*nodes))
            if Current.urgent:
                compute_now(result)
            return result
        except _NotForUs:
            return NotImplemented
        except _ScalarMet as met:
            return met.scalar._operate_beside(op, inputs, {})
        except EshkolError as error:
            raise explained(op, [x._node if isinstance(x, Tensor) else x for x in inputs], error) from None
        finally:
            Current.site = outer

    # --- its value --------------------------------------------------------------------------------

    def _array(self) -> Any:
        """The computed array. It is ours: give it out only as a read-only view or a copy."""
        if self._node.data is None:
            realize(self)
        return graph.host_array(self._settled())

    def _settled(self) -> Node:
        """The node; where it is computed and no transformation at work needs its history, without that.

        The history would be kept alive otherwise, from step to step of a training loop.
        """
        node = self._node
        if node.data is not None:
            settle(node)
        return node

    def _leave(self, how: str) -> None:
        """Refuse to give out a number that would silently lose its derivative."""
        for scope in self._node.scopes:
            if scope.open and scope.kind == "trace":
                raise TraceError(
                    f"{how} needs a value that is not known inside {scope.name}: {self.dtype}{list(self.shape)}",
                    span=here(), hint="compute with tensor operations; branch with ek.where or ek.cond",
                )  # fmt: skip
            if scope.open and scope.kind == "grad" and self.dtype.differentiable:
                raise TraceError(
                    f"{how} inside {scope.name} would lose the derivative of a {self.dtype}{list(self.shape)}",
                    span=here(),
                    hint="compute with tensor operations, or say ek.stop_gradient(x) first if it is to be constant",
                )  # fmt: skip

    def numpy(self) -> Any:
        """The values as a NumPy array that shares memory and cannot be written to."""
        self._leave("numpy()")
        if TAPE in self._node.scopes and self.dtype.differentiable:
            raise TraceError(
                "numpy() of a tensor that requires grad would lose its derivative", span=here(),
                hint="use x.detach().numpy()",
            )  # fmt: skip
        view = self._array().view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """The one element as a Python number."""
        if self.size != 1:
            raise ShapeError(
                f"item() needs one element, and shape {list(self.shape)} has {self.size}", span=here(),
                hint="use tolist(), or index one element first",
            )  # fmt: skip
        self._leave("item()")
        return (
            self._array().reshape(()).item() if self.dtype is not dtypes.bfloat16 else float(self._array().reshape(()))
        )

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        self._leave("tolist()")
        array = self._array()
        return (array.astype(np.float32) if self.dtype is dtypes.bfloat16 else array).tolist()

    def realize(self) -> Tensor:
        """Compute it now; gives itself."""
        if self._node.data is None:
            realize(self)
        self._settled()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"{self.dtype} as {dtype} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ShapeError(
                f"the truth of a tensor of shape {list(self.shape)} is ambiguous", span=here(),
                hint="use x.any() or x.all()",
            )  # fmt: skip
        if any(s.open and s.kind == "trace" for s in self._node.scopes) and (at_work := Branches.deciding(self._node)):
            return at_work.truth(self)
        self._leave("a branch")
        return bool(self._array().reshape(()))

    def __index__(self) -> int:
        if not (self.dtype.is_integer or self.dtype.is_bool):
            raise DTypeError(f"a {self.dtype} cannot be an index", span=here(), hint="use int(x)")
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a tensor without axes has no length", span=here())
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        windows.refuse_unpacking(self)
        return (self[k] for k in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        return isinstance(found, Tensor) and bool(operate(TABLE["any"], (found,), {}))

    def __repr__(self) -> str:
        return shown(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    __hash__ = object.__hash__  # by identity, as == gives a tensor

    def __eq__(self, other: object) -> Any:
        return windows.comparable(self._operate("equal", self, other), other)

    def __ne__(self, other: object) -> Any:
        return windows.comparable(self._operate("not_equal", self, other), other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pos__(self) -> Tensor:
        return Tensor(self._node)

    # --- indexing ---------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        result = operate(TABLE["getitem"], (self, indices(index)), {})
        assert isinstance(result, Tensor)
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_writable("an assignment to elements")
        changed = operate(TABLE["setitem"], (self,), {"index": indices(index), "value": value})
        self._replace(changed, "an assignment to elements")

    def _check_writable(self, what: str) -> None:
        windows.refuse(self, what)
        if self.requires_grad and self.is_leaf and GradMode.enabled:
            raise DerivativeError(
                f"{what} would overwrite a leaf that requires grad", span=here(),
                hint="do it under `with ek.no_grad():`, or on x.clone()",
            )  # fmt: skip
        if self.requires_grad and not self.is_leaf and not GradMode.enabled:
            raise DerivativeError(
                f"{what} under no_grad would cut a tensor off from what it was computed from", span=here(),
                hint="say x = x.detach() first, or do it outside no_grad",
            )  # fmt: skip

    def _replace(self, value: Any, what: str) -> Tensor:
        """Become another value of the same shape and dtype, in place."""
        self._check_writable(what)
        node = as_node(value)
        if node.shape != self.shape:
            raise ShapeError(
                f"{what} of shape {list(node.shape)} does not fit in place into {list(self.shape)}",
                span=here(),
            )
        if node.dtype is not self.dtype:
            raise DTypeError(
                f"{what} gives {node.dtype}, which does not fit in place into {self.dtype}", span=here(),
                hint=f"cast it: x.astype(ek.{self.dtype})",
            )  # fmt: skip
        wanted = self.requires_grad
        if Changes.at_work:
            Changes.at_work[-1].note(self)
        self._become(detached(node) if wanted and not GradMode.enabled else node)
        if wanted and TAPE not in self._node.scopes:
            self._mark()
        return self

    # --- derivatives ------------------------------------------------------------------------------

    def backward(self, gradient: Any = None, retain_graph: bool = True) -> None:
        """Add the gradient of this value to `grad` of every leaf it was computed from; the graph is always kept."""
        autograd.backward(self, None if gradient is None else as_node(gradient))

    def detach(self) -> Tensor:
        """The same value, without its history."""
        made = Tensor(detached(self._node))
        windows.note(TABLE["reshape"], made, (self,), {})  # of PyTorch's, the memory is shared
        return made

    def clone(self) -> Tensor:
        """The same value under another handle."""
        return Tensor(barrier(self._node))

    # --- copies -----------------------------------------------------------------------------------

    def __copy__(self) -> Tensor:
        """Another handle; of a leaf that requires grad, a leaf of its own."""
        return self.__deepcopy__(None) if self.requires_grad and self.is_leaf else Tensor(self._node)

    def __deepcopy__(self, memo: Any) -> Tensor:
        if not self.requires_grad:
            return Tensor(self._node)
        copied = Tensor(self._bare("deep-copied")).requires_grad_()
        copied._grad = None if self._grad is None else Tensor(self._grad._node)
        return copied

    def _bare(self, how: str) -> Node:
        """What a leaf that requires grad is without that."""
        if not self.is_leaf:
            raise DerivativeError(
                f"only leaves can be {how}: this tensor has a history", span=here(), hint="use x.detach()"
            )
        return self._node.inputs[0]

    def __reduce__(self) -> Any:
        self._leave("pickling")
        if self.requires_grad:
            self._bare("pickled")
        return _restored, (np.array(self._array()), self.requires_grad)


def _node_of(given: tuple[Any, ...]) -> Node:
    """What `ek.Tensor(...)` is made of: data in float32, or integers that are a shape."""
    is_shape = all(type(extent) is int for extent in given)
    return of_data(np.zeros(given, np.float32) if is_shape else given[0])._applied("cast", dtypes.float32)._node


def _restored(array: Any, requires_grad: bool) -> Tensor:
    made = Tensor(devices.made(array, dtypes.of(array.dtype)))
    return made.requires_grad_() if requires_grad else made


# --- from arguments to nodes and back -------------------------------------------------------------


def as_node(given: Any) -> Node:
    """A tensor's node; numbers, arrays and nested sequences become leaves."""
    if type(given) is Tensor:
        node = given._settled()
        if not GradMode.enabled and TAPE in node.scopes:
            return detached(node)
        return node
    if isinstance(given, Node):
        return given
    if isinstance(given, bool | int | float | complex):
        return lift(given)
    if isinstance(given, Tensor):
        return given._as_tensor()
    if has_tensor(given):
        return as_node(of_data(given))
    array = own_array(given, None)
    return buffer(array, dtypes.of(array.dtype), loose=True)


def has_tensor(data: Any) -> bool:
    """Whether it is a tensor, or a list with one somewhere in it."""
    return isinstance(data, Tensor) or (isinstance(data, list | tuple) and any(has_tensor(x) for x in data))


def of_data(data: Any, dtype: DType | None = None, device: str | None = None) -> Tensor:
    """A tensor of numbers, nested lists, a NumPy array or another tensor: what `ek.tensor` gives."""
    if isinstance(data, Tensor):
        if dtype is not None and dtype.rank < data.dtype.rank:
            raise DTypeError(
                f"{data.dtype} does not fit {dtype}", span=here(), hint="say x.astype(...) to cut it short"
            )
        made = data if dtype is None or dtype is data.dtype else data._applied("cast", dtype)
        return Tensor(made._node) if device is None else made.to(device)
    if isinstance(data, list | tuple) and has_tensor(data):
        stacked: Tensor = operate(TABLE["stack"], ([of_data(x, dtype) for x in data],), {})
        return stacked if device is None else stacked.to(device)
    array = own_array(data, dtype)
    return Tensor(devices.made(array, dtypes.of(array.dtype), device))


INPUTS = (Tensor, np.ndarray, np.generic)


def is_input(leaf: Any) -> bool:
    """Whether it is a tensor or an array: what a function is given to compute with."""
    return isinstance(leaf, INPUTS)


def as_input(given: Any) -> Any:
    """What an op takes: a node, or a Python number, which takes its dtype from the others."""
    if type(given) is Tensor:
        return as_node(given)
    if given is None or isinstance(given, bool | int | float | complex):
        return given
    if isinstance(given, Tensor) and given._is_number:
        raise _ScalarMet(given)
    if isinstance(given, np.generic):
        return given.item() if type(given) in (np.bool_, np.float64, np.int64) else as_node(given)
    return as_node(given)


class _NotForUs(Exception):
    """An operand of a type that tensors do not know."""


class _ScalarMet(Exception):
    """Among the operands is a number that is being differentiated or traced."""

    def __init__(self, scalar: Tensor) -> None:
        self.scalar = scalar


def _operand(given: Any) -> Any:
    if isinstance(given, Tensor | bool | int | float | complex | np.ndarray | np.generic):
        return as_input(given)
    raise _NotForUs


def indices(index: Any) -> Any:
    """An index with tensors and arrays as nodes."""
    if isinstance(index, tuple):
        return tuple(indices(x) for x in index)
    if isinstance(index, Tensor | np.ndarray):
        return as_node(index)
    if isinstance(index, list):
        return as_node(np.asarray(index, dtype=np.int64 if not index else None))
    return index


def wrapped(result: Any) -> Any:
    """Nodes as tensors, in tuples and lists too."""
    if type(result) is Node:
        if result.depth > LONGEST:
            shorten(result)
        return Tensor(devices.settled(result) if result.device is None else result)
    if isinstance(result, tuple | list):
        return type(result)(wrapped(x) for x in result)
    return result


@noted
def _moved(x: Tensor, device: Any, dtype: Any) -> Tensor:
    """The tensor on a device, of a dtype; the first may be a dtype too, or a tensor that it is to be like."""
    if isinstance(device, Tensor):
        device, dtype = device.device, device.dtype if dtype is None else dtype
    elif device is not None and dtype is None and (not isinstance(device, str) or device in devices.DTYPES):
        device, dtype = None, device
    if device is not None:
        node = as_node(x)
        there = devices.carried(node, str(device) if isinstance(device, str) else device)
        x = x if there is node else Tensor(there)
    return x if dtype is None or dtypes.of(dtype) is x.dtype else x._applied("cast", dtypes.of(dtype))


def operate(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """An op on what a user gave; the result in tensors."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == THREADS:
        return operate_at(op, args, given, Current.site)
    return operate_at(op, args, given, (frame.f_code, frame.f_lasti))


def operate_at(op: Op, args: tuple[Any, ...], given: dict[str, Any], site: Site | None) -> Any:
    """The same, for a line of the user's program that is known, or is none of Python's."""
    outer = Current.site
    Current.site, Current.urgent = site, False
    try:
        result = _operate(op, args, given)
        if Current.urgent:
            compute_now(result)
        if op.windows or op.pairs:
            windows.note(op, result, args, given)
        return result
    except _ScalarMet as met:
        return met.scalar._operate_beside(op, args, given)
    except EshkolError as error:
        shown = [x._node for x in (*args, *given.values()) if isinstance(x, Tensor)]
        raise explained(op, shown, error) from None  # keeps what an inner op has said
    finally:
        Current.site = outer


def _operate(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    if op.function is None and not given:
        inputs = [as_input(x) for x in args]
        if len(inputs) != len(op.names):
            raise TypeError(f"{op.name}({', '.join(op.names)}) was called with {len(inputs)} arguments")
        if not any(type(x) is Node for x in inputs):
            inputs[0] = lift(inputs[0])
        return wrapped(op(*inputs))
    count = least = op.leading
    if count is None and (front := op.in_front) is not None and (not given or front[2].isdisjoint(given)):
        count, least, _ = front
    if count and least and len(args) >= least:  # all tensors are given in their places, as they mostly are
        nodes = [as_input(x) for x in args[:count]]
        if type(nodes[0]) is not Node:
            nodes[0] = as_node(args[0]) if (it := graph.beside(args[0], nodes)) is None else it
        try:
            return wrapped(op(*nodes, *args[count:], **given))
        except TypeError:
            _bound(op, args, given)  # says so if it is the arguments that are wrong
            raise
    bound = _bound(op, args, given)
    if not op.inputs:
        return wrapped(op.on(ROOT, *args, **given))
    arguments = bound.arguments
    for parameter in op.inputs:
        value = arguments.get(parameter.name)
        if parameter.many:
            if isinstance(value, Tensor):
                raise TensorError(f"{op.name} takes a sequence of tensors, not one", hint="write [x, y]")
            arguments[parameter.name] = [as_node(x) for x in value or ()]
        elif value is not None:
            arguments[parameter.name] = as_input(value)
    first = op.inputs[0]
    if not first.many and not isinstance(arguments.get(first.name), Node):
        arguments[first.name] = as_node(arguments[first.name])
    return wrapped(op(*bound.args, **bound.kwargs))


def _bound(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> inspect.BoundArguments:
    """The arguments by name; what does not fit the signature is told with it."""
    try:
        return op.signature.bind(*args, **given)
    except TypeError as error:
        names = (str(p.replace(annotation=p.empty)) for p in op.signature.parameters.values())
        unknown = [name for name in given if name not in op.signature.parameters]
        near = get_close_matches(unknown[0], op.signature.parameters, 1, 0.5) if unknown else []
        hint = f"did you mean {near[0]}=?" if near else None
        raise ArgumentError(f"{op.name}({', '.join(names)}): {error}", span=here(), hint=hint) from None


ROOT = lift(0)  # stands for the world of nodes where an op has no input
