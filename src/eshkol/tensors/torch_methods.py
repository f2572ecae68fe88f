"""What PyTorch's tensors can do besides the rows: casts, `view`, `new_zeros`, `copy_`, `data`, `retain_grad`.

Comes in: a tensor. Goes out: another one, or itself after a change in place. `torch_names.py` puts these on `Tensor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.errors import DeviceError, DTypeError, ShapeError
from eshkol.graph.node import Node, here
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.support.whole import is_whole
from eshkol.tensors import autograd, windows
from eshkol.tensors.custom import custom_vjp
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.make import tensor
from eshkol.tensors.tape import detached
from eshkol.tensors.value import Tensor, operate


def _numbers(given: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers that were given one by one, or as one tuple."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], tuple | list) else tuple(given)


# --- what it is -------------------------------------------------------------------------------------


def dim(x: Tensor) -> int:
    """The number of axes."""
    return x.ndim


def numel(x: Tensor) -> int:
    """The number of elements."""
    return int(x.size)


def element_size(x: Tensor) -> int:
    """The bytes of one element."""
    return x.dtype.size


def stride(x: Tensor, dim: int | None = None) -> Any:
    """How many elements lie between neighbours along each axis: every tensor here is contiguous."""
    found = [1]
    for extent in reversed(x.shape[1:]):
        found.append(found[-1] * max(extent, 1))
    steps = tuple(reversed(found)) if x.shape else ()
    return steps if dim is None else steps[dim]


def is_contiguous(x: Tensor, memory_format: Any = None) -> bool:
    """True: every tensor here is a value of its own, row after row."""
    return True


def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself, which is contiguous."""
    return x


def typed(x: Tensor, dtype: Any = None) -> Any:
    """The tensor in another dtype; without one, the name of its own."""
    return str(x.dtype) if dtype is None else x.to(dtypes.of(dtype))


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another."""
    return x.to(other.dtype)


def cuda(x: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """The tensor on a graphics card of NVIDIA's, if there is one."""
    from eshkol.tensors import devices

    if "cuda" not in devices.names():
        raise DeviceError(
            "there is no device 'cuda'", span=here(), hint=f"the devices are {', '.join(devices.names())}: x.to('cpu')"
        )
    return x.to("cuda")


def _cast(dtype: DType) -> Callable[[Tensor], Tensor]:
    def cast(x: Tensor, memory_format: Any = None) -> Tensor:
        return x.to(dtype)

    cast.__doc__ = f"The tensor as {dtype}; itself if it is so already."
    return cast


CASTS: dict[str, DType] = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}  # fmt: skip


# --- shapes -----------------------------------------------------------------------------------------


def view(x: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """The elements in the same order under another shape; a value of its own (see `reshape`)."""
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], DType)):
        raise DTypeError(
            "view does not read the bytes of a tensor as another dtype", span=here(),
            hint="cast the numbers with x.to(dtype), or do it in NumPy: x.numpy().view(...)",
        )  # fmt: skip
    made: Tensor = FUNCTIONS["reshape"](x, _numbers(shape))
    return made


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements under the shape of another tensor."""
    return view(x, other.shape)


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Broadcast to the shape of another tensor."""
    made: Tensor = FUNCTIONS["expand"](x, other.shape)
    return made


def repeat(x: Tensor, *repeats: Any, axis: int | None = None) -> Tensor:
    """The whole tensor several times along each axis, as in PyTorch; with `axis=`, each element as in NumPy."""
    row = FUNCTIONS["repeat"]
    if axis is not None:
        made: Tensor = row(x, *repeats, axis=axis)
        return made
    numbers = _numbers(repeats)
    if len(numbers) < x.ndim:
        raise ShapeError(
            f"repeat takes a number for each axis, and the shape is {list(x.shape)}", span=here(),
            hint="x.repeat_interleave(n) repeats each element, x.repeat(n, axis=k) along an axis",
        )  # fmt: skip
    made = FUNCTIONS["tile"](x, numbers)
    return made


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a vector itself."""
    if x.ndim > 2:
        raise ShapeError(f"t takes a matrix, not shape {list(x.shape)}", span=here(), hint="use x.mT or x.transpose")
    return x.T


def adjoint(x: Tensor) -> Tensor:
    """The last two axes exchanged, of complex numbers the conjugates."""
    return FUNCTIONS["conj"](x.mT) if x.dtype.is_complex else x.mT


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of so many elements along an axis, in steps; they run along a new last axis."""
    made: Tensor = FUNCTIONS["sliding_window"](x, size, dimension, step)
    return FUNCTIONS["moveaxis"](made, dimension + 1, -1) if made.ndim > x.ndim and dimension >= 0 else made


def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """The tensor where a condition holds, else another."""
    made: Tensor = FUNCTIONS["where"](condition, x, other)
    return made


# --- others like it ---------------------------------------------------------------------------------


def _new(name: str) -> Callable[..., Tensor]:
    def new(x: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        made = FUNCTIONS[name](
            _numbers(size), dtype=dtype or x.dtype, device=device or x.device, requires_grad=requires_grad
        )
        assert isinstance(made, Tensor)
        return made

    new.__doc__ = f"{name} of a shape, of the dtype and on the device of this tensor."
    return new


def new_full(x: Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, in the dtype and on the device of this tensor."""
    made: Tensor = FUNCTIONS["full"](size, fill_value, dtype=dtype or x.dtype, device=device or x.device)
    return made


def new_tensor(x: Tensor, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of data, of the dtype and on the device of this one."""
    return tensor(data, dtype or x.dtype, requires_grad, device or x.device)


# --- in place ---------------------------------------------------------------------------------------


def zero_(x: Tensor) -> Tensor:
    """Become zeros; gives itself."""
    return fill_(x, 0)


def fill_(x: Tensor, value: Any) -> Tensor:
    """Become one number everywhere; gives itself."""
    number = value.item() if isinstance(value, Tensor) else value
    return x._replace(FUNCTIONS["full_like"](x.detach(), number, dtype=x.dtype), "fill_")


def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Become the values of another tensor, broadcast and cast; gives itself."""
    made = source if isinstance(source, Tensor) else tensor(source)
    return x._replace(FUNCTIONS["expand"](made.to(x.device).to(x.dtype), x.shape), "copy_")


def fill_diagonal_(x: Tensor, fill_value: float) -> Tensor:
    """Become one number on the diagonal of a matrix; gives itself."""
    rows, columns = x.shape
    return x._replace(
        FUNCTIONS["where"](FUNCTIONS["eye"](rows, columns, dtype="bool"), fill_value, x), "fill_diagonal_"
    )


def _reshaped(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def assign(x: Tensor, *args: Any, **given: Any) -> Tensor:
        made = function(x, *args, **given)
        x._check_writable(f"{name}_")
        x._become(made._node)
        return x

    assign.__doc__ = f"{name} in place: it has another shape from now on; gives itself."
    return assign


def detach_(x: Tensor) -> Tensor:
    """Forget what it was computed from; gives itself."""
    if x.is_leaf:
        return x.requires_grad_(False)
    x._become(detached(x._node))
    return x


# --- derivatives ------------------------------------------------------------------------------------


class Data(Tensor):
    """`w.data`: the values of a tensor without derivatives, and the tensor itself for changes in place.

    Whatever is assigned here is assigned there, without being remembered for `backward`; and what becomes of the
    tensor is seen here.
    """

    __slots__ = ("_bare_node", "_of", "_seen")

    def __init__(self, owner: Tensor) -> None:
        self._of, self._grad = owner, None
        self._seen, self._bare_node = owner._node, detached(owner._node)

    @property
    def _node(self) -> Node:  # type: ignore[override]
        if self._of._node is not self._seen:
            self._seen, self._bare_node = self._of._node, detached(self._of._node)
        return self._bare_node

    def _become(self, node: Node) -> None:
        owner = self._of
        wanted = owner.requires_grad
        owner._become(detached(node))
        if wanted:
            owner._mark()

    def _check_writable(self, what: str) -> None:
        windows.refuse(self._of, what)


def _data(x: Tensor) -> Tensor:
    """Its values without derivatives; changes in place are changes of the tensor itself."""
    return Data(x)


def _set_data(x: Tensor, value: Any) -> None:
    made = value if isinstance(value, Tensor) else tensor(value)
    wanted = x.requires_grad
    x._become(detached(made._node))
    if wanted:
        x._mark()


class GradientFunction:
    """What `y.grad_fn` gives: the op that made a tensor which depends on leaves with requires_grad."""

    def __init__(self, op: Any) -> None:
        self.op = op

    def name(self) -> str:
        """The name of the op."""
        return str(self.op.name)

    def __repr__(self) -> str:
        return f"<backward of {self.name()}>"


def _grad_fn(x: Tensor) -> GradientFunction | None:
    """The op that a tensor with a history comes from, or None."""
    return None if x.is_leaf else GradientFunction(x._node.op)


def retain_grad(x: Tensor) -> None:
    """Ask that `backward` leaves the gradient in `grad` although this is no leaf."""
    autograd.retain(x)


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Any:
    """Call a function with the gradient of this tensor in `backward`; what it gives, unless None, is taken instead.

    Where it is no leaf, that holds for what is computed from it from now on.
    """
    handle = autograd.register_hook(x, hook)
    if not x.is_leaf:
        passed = custom_vjp(lambda value: value)
        passed.defvjp(lambda value: (value, ()), lambda _, slope: (_through(autograd.hooks_of(x), slope),))
        x._become(passed(x)._node)
    return handle


def _through(hooks: list[Callable[[Tensor], Tensor | None]], slope: Tensor) -> Tensor:
    for hook in hooks:
        changed = hook(slope)
        slope = slope if changed is None else changed
    return slope


METHODS: dict[str, Callable[..., Any]] = {
    **{name: _cast(dtype) for name, dtype in CASTS.items()},
    **{f"new_{name}": _new(name) for name in ("zeros", "ones", "empty")},
    **{f"{name}_": _reshaped(name, FUNCTIONS[name]) for name in ("unsqueeze", "squeeze", "transpose")},
    "t_": _reshaped("t", t), "type": typed, "ndimension": dim, "nelement": numel, "reshape_as": view_as,
    **{
        f.__name__: f
        for f in (
            dim, numel, element_size, stride, is_contiguous, contiguous, type_as, cuda, view, view_as, expand_as, t,
            adjoint, unfold, new_full, new_tensor, zero_, fill_, copy_, fill_diagonal_, detach_, retain_grad,
            register_hook, repeat, where,
        )
    },
}  # fmt: skip
PROPERTIES: dict[str, property] = {
    "data": property(_data, _set_data),
    "grad_fn": property(_grad_fn),
    "H": property(lambda x: adjoint(x) if x.ndim == 2 else x.T),
    "mH": property(adjoint),
    "is_cuda": property(lambda x: str(x.device).startswith("cuda")),
    "itemsize": property(element_size),
}


def scatter(x: Any, *args: Any, **given: Any) -> Any:
    """The row, or PyTorch's `scatter(x, dim, index, src)`: elements put along an axis where an index says."""
    words = dict(zip(("dim", "index", "src"), args, strict=False)) | given
    if "value" in words:
        words["src"] = words.pop("value")
    places = words.get("dim")
    if not is_whole(places) or "updates" in words:
        return _scatter(x, *args, **given)
    reduce = words.pop("reduce", None)
    index, source = words["index"], words["src"]
    if not isinstance(source, Tensor):
        source = FUNCTIONS["full"](index.shape, source, dtype=x.dtype)
    elif source.shape != index.shape:  # of a larger source, the first elements along each axis are taken
        source = source[tuple(slice(0, extent) for extent in index.shape)]
    mode = {None: "set", "add": "add", "multiply": "mul"}[reduce]
    return operate(TABLE["scatter_along"], (x, places, index, source, mode), {})


_scatter = FUNCTIONS["scatter"]


def nonzero(x: Any, *, as_tuple: bool = True) -> Any:
    """The positions of the elements that are not 0: one vector per axis, or with as_tuple=False a row per element."""
    return FUNCTIONS["nonzero"](x) if as_tuple else FUNCTIONS["argwhere"](x)


def where_any(condition: Any, *branches: Any, **given: Any) -> Any:
    """x where the condition holds, else y; of a condition alone, the positions where it holds."""
    if not branches and not given:
        return FUNCTIONS["nonzero"](condition)
    return FUNCTIONS["where"](condition, *branches, **given)


def tensor_of(*given: Any, dtype: DType = dtypes.float32) -> Tensor:
    """A tensor of a dtype, of data or, for integers one by one, of zeros of that shape."""
    if given and all(is_whole(n) for n in given):
        made: Tensor = FUNCTIONS["zeros"](given, dtype=dtype)
        return made
    return tensor(np.asarray(given[0].detach().numpy() if isinstance(given[0], Tensor) else given[0], dtype.numpy))
