"""Several results with names: `x.max(dim=1).indices`, `ek.linalg.svd(x).S`, as PyTorch has them.

Comes in: the results of a row as a tuple. Goes out: a tuple with names. It is not computed with: arithmetic and tensor
attributes are refused with what to write instead, so that `x.max(1) * 2` does not silently repeat a tuple.
`max`, `min` and `median` give such a pair where an axis is said in PyTorch's way (by place, or as `dim`), and values
alone where it is said in NumPy's (`axis=`, `keepdims=`).
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from eshkol.ops import TABLE
from eshkol.ops.row import Op
from eshkol.tensors.value import Tensor, operate

PLACES = ("values", "indices")
RESULTS: dict[str, tuple[str, ...]] = {  # row → the names of what it gives
    **dict.fromkeys(("max", "min", "median", "mode", "sort", "topk", "kthvalue", "cummax", "cummin"), PLACES),
    "eigh": ("eigenvalues", "eigenvectors"), "eig": ("eigenvalues", "eigenvectors"), "qr": ("Q", "R"),
    "svd": ("U", "S", "Vh"), "slogdet": ("sign", "logabsdet"), "aminmax": ("min", "max"),
    "lu": ("P", "L", "U"), "lu_factor": ("LU", "pivots"),
}  # fmt: skip
PAIRED = (
    "\n\nCalled as in PyTorch, {0}(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or "
    "keepdims=, the values alone."
)
_ARITHMETIC = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul", "pow", "rpow", "neg",
    "lt", "le", "gt", "ge",
)  # fmt: skip


def _kind(name: str, fields: tuple[str, ...]) -> type:
    """The class of a row's results."""
    base: Any = namedtuple(name, fields)  # type: ignore[misc]  # of a table
    instead = f"x.{name}(axis=...) gives the values alone" if name in ("max", "min", "median") else f"take .{fields[0]}"

    def refused(self: Any, *_: Any) -> Any:
        raise TypeError(f"{name} gives ({', '.join(fields)}), as in PyTorch, and that is no tensor: {instead}")

    def missing(self: Any, attribute: str) -> Any:
        if not attribute.startswith("_") and hasattr(Tensor, attribute):
            refused(self)
        raise AttributeError(f"the results of {name} have no '{attribute}': they are {', '.join(fields)}")

    methods = {f"__{operator}__": refused for operator in _ARITHMETIC} | {"__getattr__": missing, "__slots__": ()}
    return type(name, (base,), methods | {"__module__": "eshkol"})


KINDS = {name: _kind(name, fields) for name, fields in RESULTS.items()}


def named(name: str, results: tuple[Any, ...]) -> Any:
    """The results of a row under their names."""
    return KINDS[name](*results)


def is_paired(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether a call of max, min or median is PyTorch's, which has two results, or compares two tensors."""
    if not given.keys().isdisjoint(("axis", "keepdims")):
        return False
    return len(args) > 1 or not given.keys().isdisjoint(("dim", "keepdim", "other"))


def paired(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """`max(x, dim)` with the places of the values; `max(x, y)` element by element."""
    words = dict(zip(("input", "dim", "keepdim"), args, strict=False)) | given
    second = words.pop("other", words.get("dim"))
    if isinstance(second, Tensor) and op.name != "median" and second.ndim + second.size != 1:
        return operate(TABLE[f"{op.name}imum"], (words["input"], second), {})
    unknown = words.keys() - {"input", "dim", "keepdim"}
    if unknown or words.get("dim") is None:
        raise TypeError(f"{op.name}(x, dim, keepdim=False): " + (f"no '{min(unknown)}'" if unknown else "no dim"))
    x, axis, keepdims = words["input"], words["dim"], bool(words.get("keepdim", False))
    if op.name == "median":  # the lesser of the middle two, which has a place
        middle = (x.shape[axis] + 1) // 2 if x.ndim else 1
        return named("median", operate(TABLE["kthvalue"], (x, middle, axis, keepdims), {}))
    values = operate(op, (x,), {"axis": axis, "keepdims": keepdims})
    places = operate(TABLE[op.pairs], (x,), {"axis": axis, "keepdims": keepdims})
    return named(op.name, (values, places))
