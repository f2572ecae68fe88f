"""What other libraries ask of a tensor: NumPy's functions, and memory by DLPack.

`np.sin(t)` is the op whose reference NumPy's function is. `Neighbours` stands under `Tensor`, which carries them out.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from eshkol.errors import DTypeError, TensorError
from eshkol.graph.node import here
from eshkol.ops import TABLE, dtypes
from eshkol.tensors import dlpack, lending
from eshkol.tensors.handle import Handle
from eshkol.tensors.methods import Methods

# NumPy's name → ours, where they differ.
RENAMED = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow", "negative": "neg",
    "arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "invert": "bitwise_not", "left_shift": "shift_left", "right_shift": "shift_right",
    "rint": "round", "conjugate": "conj", "fabs": "absolute",
}  # fmt: skip

# Functions of NumPy that are ops of ours with the same meaning of their arguments.
SHARED = ("sum", "mean", "prod", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin", "where")


class Neighbours(Methods):
    """The protocols of other libraries."""

    __slots__ = ()

    def __array_ufunc__(self: Handle, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        """A NumPy ufunc on tensors; `add.reduce` and the like, `where=` and foreign outputs are refused."""
        name = RENAMED.get(ufunc.__name__, ufunc.__name__)
        out = given.pop("out", None)
        if method != "__call__" or name not in TABLE or any(v is not None for k, v in given.items() if k != "casting"):
            call = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
            raise TensorError(f"{call} does not work on tensors", span=here(), hint="use x.numpy() or an ek function")
        result = self._operated(TABLE[name], inputs, {})
        if out is None:
            return result
        (target,) = out
        if not _is_tensor(target):
            raise TensorError(f"np.{ufunc.__name__} cannot write a tensor into a {type(target).__name__}", span=here())
        return target._replace(result, f"np.{ufunc.__name__}")

    def __array_function__(self: Handle, function: Any, types: Any, args: Any, given: Any) -> Any:
        """A NumPy function on tensors: the op where it is one of ours, else NumPy's own on arrays."""
        name = function.__name__
        if function.__module__ == "numpy" and name in SHARED and set(given) <= {"axis", "keepdims"}:
            op = TABLE[name.removeprefix("a") if name in ("amax", "amin") else name]
            return self._operated(op, args, given)
        return function(*_arrays(args), **_arrays(given))

    def __dlpack__(self: Handle, **given: Any) -> Any:
        """Its memory as DLPack gives it away: a copy, as whoever takes it may write to it, and many do not ask.

        With `copy=False` it is the memory itself, read-only, which DLPack can say from its version 1 on. A tensor on a
        GPU of NVIDIA's gives its memory there, without a copy unless one is asked for (`lending.py`).
        """
        which = lending.number(self)
        if which is not None and given.get("dl_device") in (None, (dlpack.CUDA, which)):
            return lending.capsule(self, given.get("stream"), given.get("max_version"), given.get("copy"))
        if which is not None:
            if given.get("copy") is False or tuple(given["dl_device"]) != (dlpack.CPU, 0):
                raise BufferError(f"a tensor on {self._node.device} can be copied to the host, and be given as it is")
            given = {"max_version": given.get("max_version"), "copy": True}
        array = self.numpy()
        if self.dtype is dtypes.bfloat16:
            raise DTypeError("NumPy cannot give bfloat16 away by DLPack", span=here(), hint="cast it to a float32")
        if given.get("copy") is not False:
            return array.copy().__dlpack__(**given | ({"copy": None} if "copy" in given else {}))
        if (given.get("max_version") or (0, 0)) < (1, 0):
            raise BufferError("a tensor's memory is read-only, which DLPack cannot say before version 1: take a copy")
        return array.__dlpack__(**given)

    def __dlpack_device__(self: Handle) -> Any:
        """Where DLPack finds it: on its GPU, or on the host, which a value of another machine is copied to."""
        which = lending.number(self)
        if which is not None:
            return dlpack.CUDA, which
        return self._array().__dlpack_device__()

    @property
    def __cuda_array_interface__(self: Handle) -> dict[str, Any]:
        """Its memory on a GPU of NVIDIA's, read-only; a tensor elsewhere has no such attribute."""
        if lending.number(self) is None:
            raise AttributeError(f"{lending.INTERFACE}: the tensor is on {self._node.device or 'no device'}, on no GPU")
        return lending.interface(self)


def _is_tensor(value: Any) -> TypeGuard[Handle]:
    return isinstance(value, Neighbours)


def _arrays(value: Any) -> Any:
    """Tensors within lists, tuples and dicts as arrays."""
    if _is_tensor(value):
        return value.numpy()
    if isinstance(value, dict):
        return {k: _arrays(v) for k, v in value.items()}
    return type(value)(map(_arrays, value)) if type(value) in (list, tuple) else value
