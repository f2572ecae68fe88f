"""Rows of the op table that Scheme calls in a way of its own: where the language's names have other arguments.

Each function takes the arguments as Scheme gives them (see `rows.py`), by place in the order of the language and by
keyword under the names of the row's parameters, and gives what the row gives.
"""

from __future__ import annotations

import inspect
import math
import sys
from typing import Any

import numpy as np

from eshkol.bindings.numbers import truth
from eshkol.bindings.rows import (
    Function,
    called,
    computed,
    data,
    drawn,
    operand,
    replaced,
    schemed,
    shown,
)
from eshkol.bindings.values import Values
from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError
from eshkol.graph.node import buffer
from eshkol.ops import TABLE, dtypes
from eshkol.ops.distributions import weights_wanted
from eshkol.ops.structural import BUFFER
from eshkol.schedule.run.memory import exclusive
from eshkol.support.references import ALONE
from eshkol.tensors.changes import Changes
from eshkol.tensors.tape import TAPE
from eshkol.tensors.value import Tensor, indices

# ---- access ----------------------------------------------------------------------------------------------------------


def wanted(given: Any, position: int = 1) -> Tensor:
    """The tensor that an argument must be; lists and vectors are made one."""
    if isinstance(given, Tensor):
        return given
    if isinstance(given, list):
        return data(given)
    raise DTypeError(f"a tensor is wanted as argument {position}, not {shown(given)}")


def is_known(t: Tensor) -> bool:
    """Whether the numbers of a tensor may be given out: nothing traces or differentiates it."""
    return not t._node.scopes or not any(
        (s.open and (s.kind == "trace" or t.dtype.differentiable)) or (s is TAPE and t.dtype.differentiable)
        for s in t._node.scopes
    )


def number(t: Tensor) -> Any:
    """What has no axes as a number, where it is known; else the tensor itself."""
    return t.item() if not t.shape and is_known(t) else t


def element(array: Any, place: tuple[int, ...]) -> Any:
    found = array[place]
    return found.item() if array.dtype.kind != "V" else float(found)


def ref(t: Any, *index: Any) -> Any:
    """An element as a number or, with fewer indices than axes, what lies there as a tensor.

    An index is an integer, from the end where it is negative; a list or a tensor of integers; a mask; `_` for all of
    an axis and `...` for all of as many as there must be. An element that is being differentiated or traced is a
    tensor without axes.
    """
    t = wanted(t)
    if len(index) == len(t.shape) and all(type(k) is int for k in index) and is_known(t):
        try:
            return element(t._array(), index)
        except IndexError:
            pass  # the row says it better
    found = computed(TABLE["getitem"], (t, _index(index)), {})
    return number(found) if len(index) >= len(t.shape) else found


def _index(index: tuple[Any, ...]) -> Any:
    places = []
    for k in index:
        if isinstance(k, str):
            if k not in ("_", "..."):
                raise TensorError(f"an index is an integer, a list, a tensor, _ or ..., not {shown(k)}")
            places.append(slice(None) if k == "_" else ...)
        elif isinstance(k, float):
            raise DTypeError(f"an index is an exact integer, not {k}")
        else:
            places.append(k)
    return indices(tuple(places))


def put(t: Any, *rest: Any) -> Tensor:
    """The tensor with a value at an index, which stands before it; the tensor itself is not changed."""
    if not rest:
        raise TensorError("the new value is missing; it is called with (tensor index ... value)")
    *index, value = rest
    where = _index(tuple(index) or ("...",))
    found = computed(TABLE["setitem"], (wanted(t),), {"index": where, "value": operand(value)})
    assert isinstance(found, Tensor)
    return found


def put_in_place(t: Any, *rest: Any) -> None:
    """Change an element, or with fewer indices than axes what lies there; without an index, all of the tensor."""
    if type(t) is not Tensor:
        raise DTypeError(f"a tensor is wanted as argument 1, to be changed in place, not {shown(t)}")
    if len(rest) == len(t.shape) + 1 and _written(t, rest):
        return
    if len(rest) == 1 and type(rest[0]) is Tensor and (rest[0].shape, rest[0].dtype) == (t.shape, t.dtype):
        replaced(t, rest[0], "an assignment")
        return
    replaced(t, put(t, *rest), "an assignment to elements")


def _written(t: Tensor, rest: tuple[Any, ...]) -> bool:
    """Write one number into the memory of a tensor that is known, which becomes its own first; whether that was so."""
    *index, value = rest
    place = tuple(index)
    kind = t.dtype
    if t._node.scopes or Changes.at_work or type(value) not in (bool, int, float) or not kind.holds(value):
        return False
    if kind is dtypes.bfloat16 or not all(type(k) is int for k in place):
        return False
    array = t._array()
    try:
        element(array, place)
    except IndexError:
        return False  # the row says it better
    stored = array.dtype.type(value)
    if kind.is_float and math.isinf(stored) and math.isfinite(value):
        return False
    del array
    if t._node.op is not BUFFER or _holders(t) or not exclusive(t._node):
        t._become(buffer(np.array(t._array()), kind))
    t._node.data[place] = stored
    return True


def _holders(t: Any) -> int:
    """How many hold a tensor's node besides the tensor."""
    node = t._node
    return sys.getrefcount(node) - ALONE


# ---- arguments in another order --------------------------------------------------------------------------------------


def transpose(x: Any, *axes: Any, **given: Any) -> Any:
    """The last two axes exchanged; with two axes those, with a list of all axes in that order."""
    x = wanted(x)
    if not axes and not given:
        return x if x.ndim < 2 else called(TABLE["swapaxes"], (x, -1, -2), {})
    if len(axes) > 2 and all(type(k) is int for k in axes):
        axes = ([*axes],)
    return called(TABLE["transpose"], (x, *axes), given)


def flatten(x: Any, *axes: Any, **given: Any) -> Any:
    """The elements of a tensor in a row, or some axes as one; of a list, what lies in it and in lists within it."""
    if type(x) is list and not axes and not given:
        return _leaves(x)
    return called(TABLE["flatten"], (x, *axes), given)


def _leaves(given: list[Any]) -> list[Any]:
    return [leaf for x in given for leaf in (_leaves(x) if type(x) is list else [x])]


def gather(x: Any, *rest: Any, **given: Any) -> Any:
    """(gather x axis index): of an index with as many axes as x, an element for each of its elements.

    (gather x indices [axis]): what lies at indices along the axis, 0 unless given, as `tensor-take`; `scatter` is the
    inverse. Of a list or a vector, (gather x indices) gives those of its elements, in a list or a vector.
    """
    if isinstance(x, list) and len(rest) == 1 and isinstance(rest[0], Tensor | list) and not given:
        places = rest[0].tolist() if isinstance(rest[0], Tensor) else rest[0]
        return type(x)(_picked(x, place) for place in places)
    if rest and isinstance(rest[0], Tensor | list):
        return called(TABLE["take"], (x, *rest), given)
    if "indices" in given:
        return called(TABLE["take"], (x, *rest), given)
    return called(TABLE["gather"], (x, *rest), given)


def _picked(given: list[Any], place: Any) -> Any:
    """The element of a list at a place; at a list of places, the list of the elements."""
    if isinstance(place, list):
        return type(place)(_picked(given, k) for k in place)
    if type(place) is not int:
        raise DTypeError(f"an index is an exact integer, not {shown(place)}")
    if not -len(given) <= place < len(given):
        raise TensorError(f"index {place} is out of range for {len(given)} elements", hint="indices count from 0")
    return given[place]


def einsum(subscripts: Any, *operands: Any, **given: Any) -> Any:
    """A sum of products by subscripts, as in "ij,jk->ik", of tensors or of a list of them."""
    if len(operands) == 1 and isinstance(operands[0], list) and any(isinstance(x, Tensor) for x in operands[0]):
        operands = tuple(operands[0])
    if not isinstance(subscripts, str):
        raise TensorError(f'subscripts are a string such as "ij,jk->ik", not {shown(subscripts)}')
    return called(TABLE["einsum"], (str(subscripts), *operands), given)


def full(shape: Any, fill_value: Any = 0.0, dtype: Any = None) -> Any:
    """A tensor of a shape, filled with one number, which is 0.0 unless given."""
    return called(TABLE["full"], (shape, operand(fill_value)), {} if dtype is None else {"dtype": dtype})


def _normalized(name: str) -> Function:
    op = TABLE[name]

    def normalize(x: Any, *rest: Any, **given: Any) -> Any:
        x = wanted(x)
        if rest and (isinstance(rest[0], Tensor) or (isinstance(rest[0], list) and not _is_shape(rest[0]))):
            scale = wanted(rest[0])  # (layer-norm x gamma beta [epsilon])
            rest = (scale.shape or x.shape[-1:], *((scale if scale.shape else _spread(x, scale)), *rest[1:]))
        elif not rest and "normalized_shape" not in given:
            weight = given.get("weight")
            given = {**given, "normalized_shape": weight.shape if isinstance(weight, Tensor) else x.shape[-1:]}
        return called(op, (x, *rest), given)

    normalize.__doc__ = (
        f"{op.doc.rstrip()}\n\nThe weight, a tensor, may stand in the place of the normalized shape, which is then its"
        " own: (layer-norm x gamma beta [epsilon])."
    )
    return normalize


def _is_shape(given: list[Any]) -> bool:
    return all(type(n) is int for n in given)


def _spread(x: Tensor, scale: Tensor) -> Any:
    return computed(TABLE["expand"], (scale, x.shape[-1:]), {})


def batch_norm(
    x: Any, weight: Any = None, bias: Any = None, running_mean: Any = None, running_var: Any = None,
    momentum: Any = 0.1, eps: Any = 1e-5, *, training: Any = True,
) -> Any:  # fmt: skip
    """x normalized per channel (axis 1) by the batch or, with :training #f, by running statistics.

    In training, running statistics that are given are changed in place: momentum is the part of the new. The variance
    is the one that x is divided by, over n; the layer keeps the unbiased one, over n - 1, as PyTorch's does.
    """
    given = {
        "weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var,
        "momentum": momentum, "eps": eps, "training": training,
    }  # fmt: skip
    how = {k: v for k, v in given.items() if v is not None and v is not False}
    result = called(TABLE["batch_norm"], (x,), {**how, "unbiased": False})
    if not isinstance(result, Values):
        return result
    from eshkol.tensors.transforms import stop_gradient

    found, *renewed = result
    for old, new in zip((running_mean, running_var), renewed, strict=True):
        if isinstance(old, Tensor):
            replaced(old, stop_gradient(new), "a running statistic")
    return found


def svd(x: Any, **given: Any) -> Any:
    """Three values u, s, v, and x is u · diag(s) · vᵀ (of complex numbers, vᴴ); s alone with :compute-uv #f."""
    found = called(TABLE["svd"], (x,), given)
    if not isinstance(found, Values):
        return found
    u, s, vh = found
    return Values((u, s, called(TABLE["conj"], (called(TABLE["swapaxes"], (vh, -1, -2), {}),), {})))


# ---- sparse matrices: (values indices pointers shape) ----------------------------------------------------------------


def to_sparse(x: Any) -> Any:
    """The elements of a matrix that are not 0, as a list (values indices pointers shape) for to-dense and sparse-mm."""
    x = wanted(x)
    return [*called(TABLE["to_sparse"], (x,), {}), list(x.shape)]


def _sparse(name: str, matrices: int, doc: str) -> Function:
    op = TABLE[name]

    def function(*args: Any, **given: Any) -> Any:
        parts = args[:matrices]
        if args and all(isinstance(m, list) and len(m) == 4 and isinstance(m[3], list) for m in parts):
            if len({tuple(m[3]) for m in parts}) > 1:
                raise ShapeError(f"matrices of shapes {' and '.join(str(m[3]) for m in parts)} do not fit together")
            args = (*(x for m in parts for x in m[:3]), parts[0][3], *args[matrices:])
        result = called(op, args, given)
        if not isinstance(result, Values):
            return result
        shape = given.get("shape", args[-1])
        return [*result, list(reversed(shape)) if name == "sparse_transpose" else list(shape)]

    function.__doc__ = doc
    return function


# ---- draws -----------------------------------------------------------------------------------------------------------

_from_logits = drawn(TABLE["categorical"])


def categorical(*args: Any, **given: Any) -> Any:
    """Which place along an axis is drawn, in proportion to probabilities, which need not sum to 1, or to e^logits.

    (categorical probabilities), or (categorical :logits t); `:axis`, `:shape` for as many draws, and `:key`. Negative
    probabilities are an error where they are known already; computed within a graph they count as 0.
    """
    if "logits" in given:
        return _drawn_number(_from_logits(*args, **given))
    lead = args[:1] if args and isinstance(args[0], Tensor) and args[0].dtype is dtypes.uint32 else ()
    if len(args) == len(lead):
        raise TensorError("the probabilities are missing; it is called with (probabilities [:axis] [:shape] [:key])")
    probabilities, rest = wanted(args[len(lead)]), args[len(lead) + 1 :]
    weights_wanted(probabilities._node, "scores of any sign are logits: (categorical :logits scores)")
    if not probabilities.dtype.is_float:
        probabilities = called(TABLE["cast"], (probabilities, dtypes.default_float()), {})
    positive = probabilities > 0
    inside = called(TABLE["where"], (positive, probabilities, 1.0), {})
    logits = called(TABLE["where"], (positive, called(TABLE["log"], (inside,), {}), float("-inf")), {})
    return _drawn_number(_from_logits(*lead, logits, *rest, **given))


def _drawn_number(result: Any) -> Any:
    return number(result) if isinstance(result, Tensor) else result


def _decides(name: str, doc: str) -> Function:
    """A row whose result decides a test: true or false, where no axis was named and so none is left."""
    op = TABLE[name]

    def function(*args: Any, **given: Any) -> Any:
        found = called(op, args, given)
        named = name != "allclose" and any(x is not False for x in (*args[1:], given.get("axis", False)))
        if type(found) is not Tensor or found.shape or named:
            return found
        axes = " ".join(map(str, range(len(wanted(args[0]).shape))))
        return truth(found, f"(tensor-{name} t :axis '({axes}))" if name != "allclose" else "(tensor-isclose a b)")

    function.__doc__ = doc
    return function


FORMS: dict[str, Function] = {
    "getitem": ref,
    "setitem": put,
    "setitem!": put_in_place,
    "transpose": transpose,
    "flatten": flatten,
    "gather": gather,
    "einsum": einsum,
    "svd": svd,
    "full": full,
    "layer_norm": _normalized("layer_norm"),
    "rms_norm": _normalized("rms_norm"),
    "batch_norm": batch_norm,
    "to_sparse": to_sparse,
    "to_dense": _sparse("to_dense", 1, "A sparse matrix, (values indices pointers shape), as a tensor."),
    "sparse_mm": _sparse("sparse_mm", 1, "A sparse matrix, (values indices pointers shape), times a tensor."),
    "sparse_add": _sparse("sparse_add", 2, "The sum of two sparse matrices, (values indices pointers shape), as one."),
    "sparse_transpose": _sparse("sparse_transpose", 1, "A sparse matrix, (values indices pointers shape), transposed."),
    "categorical": categorical,
    "all": _decides("all", "Whether all elements hold: true or false; along axes that are named, a tensor."),
    "allclose": _decides("allclose", "Whether all elements of x and y are about equal: true or false."),
    "any": _decides("any", "Whether any element holds: true or false; along axes that are named, a tensor."),
}
"""By the names of rows; with `!`, of rows in place."""


def signature_of(form: Function | None) -> inspect.Signature | None:
    """How a form is called, where its parameters say it."""
    if form is None or any(p.kind is p.VAR_KEYWORD for p in inspect.signature(form).parameters.values()):
        return None
    return inspect.signature(form)


def guarded(function: Function) -> Function:
    """A function of Python's, whose errors have Scheme's names and no line of Python."""

    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except EshkolError as error:
            raise schemed(error) from None

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call
