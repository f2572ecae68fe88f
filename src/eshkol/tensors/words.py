"""PyTorch's words for a row's parameters: `dim` for `axis`, `keepdim` for `keepdims`, `device=`, `requires_grad=`.

Comes in: a row and a call with a keyword that the row does not have. Goes out: what the call gives, with the row's own
words. The table below is all there is to say about most of them; what is said besides the row's parameters (a device, a
dtype for the sum, a factor `alpha`) is done before or after it. A word that no one knows is refused with the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.errors import TensorError
from eshkol.graph.node import here
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Op
from eshkol.tensors.value import Tensor, as_node, operate

SYNONYMS: dict[str, tuple[str, ...]] = {  # PyTorch's word → ours, the first that a row has
    "dim": ("axis", "axes"), "dims": ("axes", "axis"), "keepdim": ("keepdims",), "size": ("shape",),
    "start_dim": ("start_axis",), "end_dim": ("end_axis",), "dim0": ("axis0",), "dim1": ("axis1",), "dim2": ("axis2",),
    "diagonal": ("k", "offset"), "steps": ("num",), "end": ("stop",), "shifts": ("shift",), "chunks": ("count",),
    "split_size": ("sizes",), "split_size_or_sections": ("sizes",), "num_samples": ("count",), "is_causal": ("causal",),
    "attn_mask": ("mask",), "mat1": ("x",), "mat2": ("y",), "vec": ("y",), "vec2": ("y",), "exponent": ("y",),
    "unbiased": ("correction",), "ddof": ("correction",), "window_length": ("n",),
    "sorted_sequence": ("boundaries",), "A": ("x",), "B": ("b",),
    "x1": ("x",), "x2": ("y",), "x3": ("weight",), "input1": ("x",), "input2": ("y",), "destination": ("destination",),
}  # fmt: skip
IGNORED = frozenset(("layout", "pin_memory", "memory_format", "non_blocking", "copy", "antialias"))
BESIDE = frozenset(("device", "requires_grad", "dtype", "alpha", "rounding_mode", "decimals", "inplace"))


def parameter(op: Op, word: str) -> str | None:
    """The parameter of a row that PyTorch calls by another word."""
    if word == "input" and op.inputs:
        return op.inputs[0].name
    if word == "other" and len(op.inputs) > 1:
        return op.inputs[1].name
    known = op.signature.parameters
    return next((name for name in SYNONYMS.get(word, ()) if name in known), None)


def worded(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """What a row gives for a call with words of PyTorch's."""
    known = op.signature.parameters
    called: dict[str, Any] = {word: value for word, value in given.items() if word in known}
    beside: dict[str, Any] = {}
    for word, value in given.items():
        if word in known or word in IGNORED:
            continue
        name = parameter(op, word)
        if name is not None:
            if name in called:
                raise TypeError(f"{op.name} was given '{name}' twice: '{word}' means the same")
            called[name] = int(value) if word == "unbiased" else value
        elif word == "out":
            raise TensorError(
                f"{op.name} writes into no other tensor: out= is not there", span=here(),
                hint=f"write y = ek.{op.name}(...), or y.copy_(ek.{op.name}(...))",
            )  # fmt: skip
        elif word in BESIDE:
            beside[word] = value
        else:
            called[word] = value  # the row's own refusal names it, and shows the signature
    return _with(op, args, called, beside) if beside else operate(op, args, called)


def _with(op: Op, args: tuple[Any, ...], called: dict[str, Any], beside: dict[str, Any]) -> Any:
    """A row with what was said besides its parameters."""
    names = [i.name for i in op.inputs]
    if "dtype" in beside and names:
        args, called = _changed(args, called, names, 0, lambda x: _cast(x, beside["dtype"]))
    elif "dtype" in beside:
        raise TypeError(f"{op.name} has no dtype")
    if "alpha" in beside:
        if op.name not in ("add", "sub"):
            raise TypeError(f"{op.name} has no alpha")
        args, called = _changed(args, called, names, 1, lambda y: y * beside["alpha"])
    chosen = _divided if beside.get("rounding_mode") is not None and op.name == "div" else operate
    if chosen is _divided:
        result = _divided(args, called, beside["rounding_mode"])
    elif beside.get("decimals") and op.name == "round":
        factor = 10.0 ** beside["decimals"]
        args, called = _changed(args, called, names, 0, lambda x: x * factor)
        result = operate(op, args, called) / factor
    else:
        result = operate(op, args, called)
    return finished(result, args, called, names, beside)


def finished(result: Any, args: Sequence[Any], called: dict[str, Any], names: list[str], beside: dict[str, Any]) -> Any:
    """A result where it was wanted, as a leaf that requires grad, or in the place of the first operand."""
    if beside.get("device") is not None:
        result = result.to(beside["device"])
    if beside.get("inplace"):
        target = args[0] if args else called[names[0]]
        return target._replace(result, "the operation")
    return result.requires_grad_() if beside.get("requires_grad") else result


def _changed(args: Any, called: dict[str, Any], names: list[str], place: int, change: Any) -> Any:
    """The arguments with one operand changed, wherever it is given."""
    if len(args) > place:
        return (*args[:place], change(args[place]), *args[place + 1 :]), called
    return args, called | {names[place]: change(called[names[place]])}


def _cast(x: Any, dtype: Any) -> Any:
    return (x if isinstance(x, Tensor) else Tensor(as_node(x))).to(dtypes.of(dtype)) if dtype is not None else x


def _divided(args: Any, called: dict[str, Any], mode: str) -> Any:
    """x / y, rounded down or towards zero; integers stay integers."""
    operands = (*args, *called.values())
    if mode == "floor":
        return operate(TABLE["floor_divide"], operands, {})
    if mode != "trunc":
        raise TensorError(f"rounding_mode is 'floor', 'trunc' or None, not {mode!r}", span=here())
    x, y = operands
    whole = all(isinstance(z, int) or (isinstance(z, Tensor) and z.dtype.is_integer) for z in operands)
    if whole:
        return operate(TABLE["floor_divide"], (x - operate(TABLE["fmod"], (x, y), {}), y), {})
    return operate(TABLE["trunc"], (x / y,), {})
