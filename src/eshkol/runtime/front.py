"""The front door of tensors, in C (`native/front`): what nearly every operation passes through.

Comes in: types, constants and general ways of what stands above, each given under the name that C has for it
(`give`). Goes out: the types that `graph.node.Node` and `tensors.value.Tensor` stand on, and functions that make nodes,
describe graphs and run plans. It is in the native library, which is built without Python's headers: the functions of
CPython that it calls, all of the stable ABI, are looked up here by their names.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eshkol.errors import EshkolError
from eshkol.runtime.library import PATH, native
from eshkol.support.defaults import Changes


def _opened() -> dict[str, Any]:
    native()  # which says what is wrong where there is no library
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise EshkolError("Eshkol needs a Python with the global lock", hint="use the standard build of Python")
    library = ctypes.PyDLL(str(PATH))
    names = (ctypes.c_char_p * 1024).in_dll(library, "eshkol_front_functions")
    addresses: list[int | None] = []
    for name in names:
        if name is None:
            break
        addresses.append(ctypes.cast(getattr(ctypes.pythonapi, name.decode()), ctypes.c_void_p).value)
    open_door = library.eshkol_front_open
    open_door.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object, ctypes.py_object)
    made: dict[str, Any] = {}
    table = (ctypes.c_void_p * len(addresses))(*addresses)
    if open_door(ctypes.cast(table, ctypes.c_void_p), made, None, TypeError):
        raise EshkolError("the native runtime does not fit this Python", hint="build it anew: pip install -e .")
    return made


_DOOR = _opened()

if TYPE_CHECKING:

    class NodeBase:
        """What C has of a node."""

    class TensorBase:
        """What C has of a tensor."""

        _node: Any
        _grad: Any
        _window: Any
        _pair: Any

    class CallBase:
        """What C has of a compiled function: its call, and what the last one was."""

        _again: Any

        def __call__(self, *args: Any, **given: Any) -> Any: ...

    class StoredBase:
        """What C has of the memory of a value."""

        machine: Any
        ty: Any
        size: int
        array: Any
        buffer: Any
        address: int | None
        own: bool
        lent: bool

    class ResidentBase:
        """What C has of a value in the memory of a machine."""

        stored: Any
        shape: tuple[int, ...]
        dtype: Any

    class AtWork:
        """What is at work in a thread."""

        site: Any
        urgent: bool
        enabled: bool

    at_work = AtWork()
else:
    NodeBase, TensorBase, at_work = _DOOR["NodeBase"], _DOOR["TensorBase"], _DOOR["at_work"]
    StoredBase, ResidentBase, CallBase = _DOOR["StoredBase"], _DOOR["ResidentBase"], _DOOR["CallBase"]

LONGEST: int = _DOOR["LONGEST"]  # operations one after another that wait to be computed
COUNTED: int = _DOOR["COUNTED"]  # bytes from which on memory is counted: to count takes longer than to have less
give: Callable[[str, Any], None] = _DOOR["give"]
missing: Callable[[], list[str]] = _DOOR["missing"]
row: Callable[..., Any] = _DOOR["row"]
make: Callable[..., Any] = _DOOR["make"]
forget: Callable[[Any], None] = _DOOR["forget"]
known: Callable[[], tuple[int, int]] = _DOOR["known"]
buffer: Callable[..., Any] = _DOOR["buffer"]
buffers: Callable[..., list[Any]] = _DOOR["buffers"]
leaf_number: Callable[[], int] = _DOOR["leaf_number"]
operators: Callable[..., Any] = _DOOR["operators"]
elementwise: Callable[..., Any] = _DOOR["elementwise"]
quick: Callable[..., Any] = _DOOR["quick"]
structure: Callable[[list[Any], bool], Any] = _DOOR["structure"]
gradient_structure: Callable[[list[Any], Any, list[Any]], Any] = _DOOR["gradient_structure"]
computed: Callable[[list[Any], Any, Any], bool] = _DOOR["computed"]
plan: Callable[..., Any] = _DOOR["plan"]
arrays_by: Callable[[int], None] = _DOOR["arrays_by"]
device_plan: Callable[..., Any] = _DOOR["device_plan"]
call_again: Callable[..., Any] = _DOOR["call_again"]
read_place: Callable[[tuple[Any, ...]], Any] = _DOOR["read_place"]
unchanged: Callable[[list[Any], list[Any], list[Any], list[Any]], bool] = _DOOR["unchanged"]
blocks: Callable[..., Any] = _DOOR["blocks"]
marks_of: Callable[[Any, Any], list[Any]] = _DOOR["marks_of"]
array: Callable[[Any], Any] = _DOOR["array"]
view: Callable[[Any], Any] = _DOOR["view"]
item: Callable[[Any], Any] = _DOOR["item"]
part: Callable[[Any, Any], Any] = _DOOR["part"]
row_of_tensor: Callable[[Any, int], Any] = _DOOR["row_of_tensor"]
detached: Callable[[Any], Any] = _DOOR["detached"]
held: Callable[..., tuple[list[Any], list[bool], list[int], list[Any], list[Any], list[Any] | None]] = _DOOR["held"]
spend: Callable[[list[Any], list[Any], type], None] = _DOOR["spend"]
trained: Callable[[list[Any], Any], list[bool]] = _DOOR["trained"]
again: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _DOOR["again"]

for _name, _given in {
    "float_": float, "int_": int, "bool_": bool, "true_": True, "false_": False, "ellipsis": ..., "text": str,
    "list": list, "dict": dict, "slice": slice, "plain_tuple": tuple, "new_tuple": tuple.__new__, "no_names": {},
    "not_implemented": NotImplemented, "attribute_error": AttributeError,
    "is_finalizing": sys.is_finalizing, "simple_tuples": sys.version_info < (3, 14),  # later ones keep their hash
}.items():  # fmt: skip
    give(_name, _given)
Changes.tell = staticmethod(_DOOR["floats_changed"])
