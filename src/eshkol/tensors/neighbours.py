"""What other libraries ask of a tensor: NumPy's functions, and memory by DLPack. The answers are in `interop.py`."""

from __future__ import annotations

from typing import Any


class Neighbours:
    """The protocols of other libraries."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        from eshkol.tensors.interop import ufunc_applied

        return ufunc_applied(ufunc, method, inputs, given)

    def __array_function__(self, function: Any, types: Any, args: Any, given: Any) -> Any:
        from eshkol.tensors.interop import function_applied

        return function_applied(function, args, given)

    def __dlpack__(self, **given: Any) -> Any:
        from eshkol.tensors.interop import dlpack_of

        return dlpack_of(self, given)

    def __dlpack_device__(self) -> Any:
        from eshkol.tensors.interop import dlpack_device_of

        return dlpack_device_of(self)
