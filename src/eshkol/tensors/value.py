"""`Tensor`: what a Python user holds. A handle on a node of the graph, computed when its value is asked for.

Operators, indexing and every row of the op table end in `operate`, which turns arguments into nodes, notes the user's
line and wraps the result. A tensor's node changes only by in-place operations (`x[0] = 1`, `x += y`), which give the
handle another node: values that were computed from the old one keep it, so nothing is ever overwritten behind a
derivative's back.

What a tensor can do besides stands in modules below, which know it as a `Handle`: autograd.py, interop.py, show.py.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from eshkol.errors import DerivativeError, DTypeError, EshkolError, ShapeError, TensorError, TraceError
from eshkol.graph import node as graph
from eshkol.graph.custom import barrier
from eshkol.graph.node import PACKAGE, THREADS, Current, Node, Scope, Site, buffer, explained, here, lift, noted, settle
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.operators import Operators
from eshkol.ops.row import Op, Shape
from eshkol.runtime import front
from eshkol.support.watched import Watching, unwatched, watched_shape
from eshkol.tensors import autograd, devices, windows
from eshkol.tensors.arguments import bound_to, plain
from eshkol.tensors.arrays import of_numbers, own_array
from eshkol.tensors.branches import Branches
from eshkol.tensors.changes import Changes
from eshkol.tensors.computing import array_of, compute_now, leave, realize
from eshkol.tensors.handle import NotForUs, ScalarMet
from eshkol.tensors.interop import Neighbours
from eshkol.tensors.pieces import LONGEST, shorten
from eshkol.tensors.show import shown
from eshkol.tensors.sizes import Size, length
from eshkol.tensors.tape import TAPE, GradMode, detached


class Tensor(front.TensorBase, Neighbours, Operators, autograd.Differentiable):
    """An array that knows how it was computed. Make one with `ek.tensor(...)`."""

    __slots__ = ("__weakref__",)
    __array_priority__ = 1000

    _is_number = False  # of a Scalar; a subclass of anybody's is a tensor as any other
    _node: Node
    _grad: Tensor | None
    _pair: Op | None  # these two only where windows.py sets them
    _window: tuple[weakref.ref[Tensor], ...] | None

    def __init__(self, node: Any, *sizes: int) -> None:
        if type(node) is not Node:  # data, which becomes float32, or integers that are a shape
            is_shape = all(type(extent) is int for extent in (node, *sizes))
            data = of_data(np.zeros((node, *sizes), np.float32) if is_shape else node)
            node = data._applied("cast", dtypes.float32)._node
        self._node, self._grad = node, None

    def _become(self, node: Node) -> None:
        self._node = node

    # --- what is known of it ----------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return watched_shape(self._node.shape) if Watching.on else self._node.shape

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
        return int(self.size) * self._node.dtype.size

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return self._applied("permute", tuple(range(len(self._node.shape)))[::-1])

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
        op, args = TABLE[name], (self, *attrs)
        result: Tensor = operate_anew(op, args, {}) if (known := front.again(op, args, {})) is NotImplemented else known
        return result

    def _operate(self, name: str, *inputs: Any) -> Any:
        return front.elementwise(TABLE[name], *inputs)

    # --- its value --------------------------------------------------------------------------------

    def _array(self) -> Any:
        """The computed array. It is ours: give it out only as a read-only view or a copy."""
        return array_of(self)

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
        leave(self, how)

    def numpy(self, *, force: bool = False) -> Any:
        """The values as a NumPy array that shares memory and cannot be written to; `force` detaches first."""
        if force:
            return self.detach().numpy()
        if (at_hand := front.view(self)) is not None:
            return at_hand
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
        if (at_hand := front.item(self)) is not NotImplemented:
            return at_hand
        if self._node.size != 1:
            raise ShapeError(
                f"item() needs one element, and shape {list(self.shape)} has {self.size}", span=here(),
                hint="use tolist(), or index one element first",
            )  # fmt: skip
        self._leave("item()")
        found = self._array().reshape(())
        return float(found) if self._node.dtype is dtypes.bfloat16 else found.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        if (array := front.array(self)) is None:
            self._leave("tolist()")
            array = self._array()
        return (array.astype(np.float32) if self.dtype is dtypes.bfloat16 else array).tolist()

    def realize(self) -> Tensor:
        """Compute it now; gives itself."""
        if front.array(self) is None:  # not plainly on the host
            if self._node.data is None:
                realize(self)
            self._settled()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy() if (at_hand := front.view(self)) is None else at_hand
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"{self.dtype} as {dtype} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __float__(self) -> float:
        at_hand = front.item(self)
        return float(self.item() if at_hand is NotImplemented else at_hand)

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if (at_hand := front.item(self)) is not NotImplemented:
            return bool(at_hand)
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
        return length(self._node)

    def __iter__(self) -> Iterator[Tensor]:
        windows.refuse_unpacking(self)
        return map(front.row_of_tensor, repeat(self), range(self.__len__()))

    def __contains__(self, value: Any) -> bool:
        return isinstance(found := self == value, Tensor) and bool(found._applied("any"))

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
        if isinstance(part := front.part(self, index), Tensor):
            return part
        return self._applied("getitem", indices(index))

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
        if isinstance(bare := front.detached(self), Tensor):
            return bare
        made = Tensor(detached(self._node))
        windows.note(TABLE["reshape"], made, (self,), {})  # of PyTorch's, the memory is shared
        return made

    def clone(self) -> Tensor:
        """The same value under another handle."""
        if type(self._node.data) is np.ndarray and not self._node.scopes and not Scope.at_work:
            return Tensor(buffer(self._node.data, self._node.dtype, self._node.device is None))
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
    if (array := of_numbers(data, dtype)) is not None:
        return Tensor(devices.made(array, dtypes.OF_NUMPY[array.dtype], device))
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
        raise ScalarMet(given)
    if isinstance(given, np.generic):
        return given.item() if type(given) in (np.bool_, np.float64, np.int64) else as_node(given)
    return as_node(given)


def _operand(given: Any) -> Any:
    if isinstance(given, Tensor | bool | int | float | complex | np.ndarray | np.generic):
        return as_input(given)
    raise NotForUs


def _operators(op: Op, inputs: tuple[Any, ...], site: Site | None) -> Any:
    """An operator of tensors and whatever else, where the ways in C do not take it."""
    outer = Current.site
    try:
        nodes = [x._settled() if type(x) is Tensor and GradMode.enabled else _operand(x) for x in inputs]
        Current.site, Current.urgent = site, False
        result = wrapped(op(*nodes))
        if Current.urgent:
            compute_now(result)
        return result
    except NotForUs:
        return NotImplemented
    except ScalarMet as met:
        return met.scalar._operate_beside(op, inputs, {})
    except EshkolError as error:
        raise explained(op, [x._node if isinstance(x, Tensor) else x for x in inputs], error) from None
    finally:
        Current.site = outer


def indices(index: Any) -> Any:
    """An index with tensors and arrays as nodes."""
    if isinstance(index, tuple):
        return tuple(indices(x) for x in index)
    if isinstance(index, Tensor | np.ndarray):
        return as_node(index)
    if isinstance(index, list):
        if {*map(type, index)} == {int} and (places := of_numbers(index, None)) is not None:
            return buffer(places, dtypes.OF_NUMPY[places.dtype], loose=True)
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
    known = front.again(op, args, given)  # a call like earlier ones: see learning.py
    return operate_anew(op, args, given) if known is NotImplemented else known


def operate_anew(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """The same, where it is no such call."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == THREADS:
        return operate_at(op, args, given, Current.site)
    return operate_at(op, args, given, (frame.f_code, frame.f_lasti))


def operate_at(op: Op, args: tuple[Any, ...], given: dict[str, Any], site: Site | None) -> Any:
    """The same, for a line of the user's program that is known, or is none of Python's."""
    outer, Current.site, Current.urgent = Current.site, site, False
    args, given = unwatched((args, given)) if Watching.on else (args, given)
    try:
        result = operated(op, args, given)
        if Current.urgent:
            compute_now(result)
        if op.windows or op.pairs:
            windows.note(op, result, args, given)
        return result
    except ScalarMet as met:
        return met.scalar._operate_beside(op, args, given)
    except EshkolError as error:
        shown = [x._node for x in (*args, *given.values()) if isinstance(x, Tensor)]
        raise explained(op, shown, error) from None  # keeps what an inner op has said
    finally:
        Current.site = outer


def operated(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """The same, where the line is at work already."""
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
            return wrapped(op(*nodes, *map(plain, args[count:]), **{name: plain(x) for name, x in given.items()}))
        except TypeError:
            bound_to(op, args, given)  # says so if it is the arguments that are wrong
            raise
    named = bound_to(op, args, given)
    if not op.inputs:
        return wrapped(op.on(ROOT, *args, **given))
    arguments = named.arguments
    for parameter in op.inputs:
        value = arguments.get(parameter.name)
        if parameter.many:
            if isinstance(value, Tensor):
                raise TensorError(f"{op.name} takes a sequence of tensors, not one", hint="write [x, y]")
            arguments[parameter.name] = [as_node(x) for x in value or ()]
        elif value is not None:
            arguments[parameter.name] = as_input(value)
    tensors = {parameter.name for parameter in op.inputs}
    arguments.update((name, plain(x)) for name, x in arguments.items() if name not in tensors)
    first = op.inputs[0]
    if not first.many and not isinstance(arguments.get(first.name), Node):
        arguments[first.name] = as_node(arguments[first.name])
    return wrapped(op(*named.args, **named.kwargs))


for _name, _given in {
    "tensor": Tensor, "wrapped": wrapped, "operate_at": _operators, "compute_now": compute_now, "note": windows.note,
    "look_through": windows.look_through,
    **{f"{name}_op": TABLE[name] for name in ("reshape", "permute", "max", "min", "argmax", "argmin")},
}.items():  # fmt: skip
    front.give(_name, _given)

ROOT = lift(0)  # stands for the world of nodes where an op has no input
