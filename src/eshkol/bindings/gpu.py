"""What Scheme's procedures for GPUs do: tensors made, filled, copied and computed there, and maps over vectors.

Comes in: values as Scheme gives them. Which machine is the GPU is said in one place, `tensors/devices.py`: NVIDIA's, or
whatever machine ESHKOL_DEVICE names. `moved` makes the GPU's procedure of any other: `gpu:op:add` (registry.py) is the
row `add` with its operands on the GPU, so no row is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from typing import Any

import numpy as np

from eshkol.bindings import pending
from eshkol.bindings.forms import wanted
from eshkol.bindings.registry import find
from eshkol.bindings.rows import Function, called, replaced, schemed, shown
from eshkol.bindings.tensors import of_data
from eshkol.bindings.values import Symbol
from eshkol.errors import BackendError, BackendUnavailable, DTypeError, EshkolError, ShapeError, TensorError
from eshkol.nn import Module
from eshkol.ops import TABLE
from eshkol.tensors import devices
from eshkol.tensors.make import tensor
from eshkol.tensors.scalars import Scalar
from eshkol.tensors.value import Tensor

# ---- operations on the GPU -------------------------------------------------------------------------------------------


def moved(name: str) -> Function:
    """The function that is registered under a name, with what it is given moved to the GPU first.

    Tensors that are on a machine other than the host stay there, and the others go to them. A model goes there with
    its parameters, in place, as `model.to` does.
    """
    function = find(name)

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        where = _gathered((*args, *given.values()))
        args = tuple(_put(x, where) for x in args)
        given = {key: _put(x, where) for key, x in given.items()}
        with devices.device(where):  # lists of numbers become tensors there
            return function(*args, **given)

    return call


def _gathered(args: Iterable[Any]) -> str:
    """Where operands meet: on the machine that the first of them is on already, else on the GPU."""
    for x in _tensors(args):
        if x.device != devices.HOST:
            return str(x.device)
    return devices.gpu_name()


def _tensors(args: Iterable[Any]) -> Iterable[Tensor]:
    for x in args:
        if isinstance(x, Tensor):
            if not isinstance(x, Scalar):
                yield x
        elif isinstance(x, list | tuple):
            yield from _tensors(x)


def _put(x: Any, where: str) -> Any:
    if isinstance(x, Scalar):
        return x  # a number, which goes where it is used
    if isinstance(x, Tensor):
        return x.to(where) if x.device == devices.HOST else x
    if isinstance(x, Module):
        return x.to(where)
    if isinstance(x, list) and any(True for _ in _tensors(x)):
        return type(x)(_put(one, where) for one in x)
    return x


# ---- tensors on the GPU ----------------------------------------------------------------------------------------------


def name() -> Symbol:
    """The machine that is the GPU."""
    return Symbol(devices.gpu_name())


def made(given: Any, *, dtype: Any = None) -> Tensor:
    """A tensor on the GPU: of a list of exact integers, which is a shape, zeros; else of the data."""
    where = devices.gpu_name()
    if type(given) is list and given and all(type(n) is int for n in given):
        found = called(TABLE["zeros"], (given,), {} if dtype is None else {"dtype": dtype})
    else:
        found = of_data(given, dtype=dtype)
    assert isinstance(found, Tensor)
    return _there(found, where)


def _there(t: Tensor, where: str) -> Tensor:
    try:
        return t.to(where)
    except EshkolError as error:
        raise schemed(error) from None


def to_gpu(t: Any) -> Tensor:
    """The tensor on the GPU; one that is on a machine other than the host stays there."""
    found = wanted(t)
    return found if found.device != devices.HOST else _there(found, devices.gpu_name())


def to_cuda(t: Any, number: Any = 0) -> Tensor:
    """The tensor on an NVIDIA GPU by its number; without any, on the machine that stands for it."""
    if type(number) is not int or number < 0:
        raise DTypeError(f"the number of a GPU is an exact integer from 0, not {shown(number)}")
    return _there(wanted(t), devices.cuda_name(number))


def number(t: Any) -> int:
    """The number of the GPU that a tensor is on."""
    found = wanted(t)
    if found.device == devices.HOST and devices.gpu_name() != devices.HOST:
        raise TensorError("the tensor is in the memory of the host, not on a GPU", hint="(to-gpu t) moves it")
    return found.device.index or 0


def copied(source: Any, target: Any) -> Tensor:
    """Give a tensor the numbers of another, wherever that is; of a list or a vector too."""
    found, goal = wanted(source), _changed(target, 2)
    if found.shape != goal.shape:
        raise ShapeError(f"data of shape {list(found.shape)} does not fit a tensor of shape {list(goal.shape)}")
    if found.dtype is not goal.dtype and found.dtype.rank <= goal.dtype.rank:
        found = called(TABLE["cast"], (found, goal.dtype), {})
    return replaced(goal, _there(found, goal.device), "the copy")


def filled(target: Any, number: Any) -> Tensor:
    """Give all elements of a tensor the same number."""
    goal = _changed(target, 1)
    try:
        one = tensor(number, goal.dtype, device=goal.device)
    except EshkolError as error:
        raise schemed(error) from None
    if one.shape:
        raise ShapeError(f"a tensor is filled with a number, not with {shown(number)}")
    return replaced(goal, called(TABLE["expand"], (one, list(goal.shape)), {}), "the number")


def _changed(given: Any, position: int) -> Tensor:
    if not isinstance(given, Tensor):
        raise DTypeError(f"a tensor is wanted as argument {position}, to be changed in place, not {shown(given)}")
    return given


def forward(model: Any, *args: Any, **given: Any) -> Any:
    """What a model, a layer or a procedure gives on the GPU; of a matrix of weights, the input times it."""
    if isinstance(model, Tensor):
        return moved("op:matmul")(*args, model, **given)
    return moved("model:forward")(model, *args, **given)


def synchronized() -> None:
    """Compute what waits, and wait until the GPU has done it."""
    pending.settle()
    devices.machine(devices.gpu_name()).synchronize()


# ---- maps over vectors -----------------------------------------------------------------------------------------------


def mapped_if_kernel(function: Any, *columns: Any) -> Any:
    """What a procedure that is known only to compute gives for all elements; False where it is to be called one by one.

    That is so where it cannot be run for all elements at once, or not on this machine, and where a number has come out
    as none: Scheme's numbers go on to complex ones there, (sqrt -1.0), or raise an error. What goes wrong with the
    machine itself is raised.
    """
    devices.machine(devices.gpu_name())
    try:
        found = moved("tensor:mapped")(function, *columns)
        lost = _lost(found._array(), [x._array() for x in columns])
    except BackendUnavailable:  # the machine has no code for something in it
        return False
    except BackendError:
        raise
    except Exception:  # of whatever kind: it is computed as usual now, and says what is wrong with it
        return False
    return False if lost else found


def _lost(results: Any, given: list[Any]) -> bool:
    """Whether there is a result that is no number where everything that was given is one."""
    if results.dtype.kind not in "fc":
        return False
    nowhere = np.isnan(results)
    return bool(nowhere.any()) and bool((nowhere & ~np.isnan(given).any(axis=0)).any())
