"""`ek.tree`: structures of tensors, under the names that JAX has for what is done to them.

Comes in: tuples, lists, dicts, dataclasses and registered classes. Goes out: their leaves, or others of the same
structure. `eshkol.tensors.pytree` does the work; this module adds paths, prefixes and reductions. `tree_util.py` has
the same under longer names.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from eshkol.errors import TensorError
from eshkol.jax.missing import refusing
from eshkol.tensors import pytree
from eshkol.tensors.pytree import Tree
from eshkol.tensors.pytree import flatten as flatten
from eshkol.tensors.pytree import leaves as leaves

IsLeaf = Callable[[Any], bool] | None


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure with a function applied leaf by leaf; where the first has a leaf, others may have more below."""
    first, found = pytree.flatten(tree, is_leaf)
    others = [_up_to(found, other) for other in rest]
    return found.build(f(*x) for x in zip(first, *others, strict=True))


def _up_to(tree: Tree, value: Any) -> list[Any]:
    """What a value has where a tree has leaves."""
    if tree.kind is None:
        return [value]
    _, here = pytree.flatten(value, lambda x: x is not value)
    if (here.kind, here.data, len(here.children)) != (tree.kind, tree.data, len(tree.children)):
        raise TensorError(f"structures differ: {tree} and {pytree.flatten(value)[1]}")
    children = pytree.leaves(value, lambda x: x is not value)
    return [x for part, child in zip(tree.children, children, strict=True) for x in _up_to(part, child)]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Tree:
    """The structure without its leaves."""
    return pytree.flatten(tree, is_leaf)[1]


def unflatten(treedef: Tree, leaves: Iterable[Any]) -> Any:
    """The structure around these leaves."""
    return treedef.build(leaves)


_NOTHING = object()


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None) -> Any:
    """The leaves combined one after another."""
    found = pytree.leaves(tree, is_leaf)
    return (
        functools.reduce(function, found) if initializer is _NOTHING else functools.reduce(function, found, initializer)
    )


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf holds."""
    return builtins.all(pytree.leaves(tree, is_leaf))


def transpose(outer_treedef: Tree, inner_treedef: Tree | None, pytree_to_transpose: Any) -> Any:
    """A structure of structures turned inside out: what was within comes outside."""
    flat = pytree.leaves(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = pytree.flatten(_up_to(outer_treedef, pytree_to_transpose)[0])[1]
    outer, inner = outer_treedef.leaves, inner_treedef.leaves
    if len(flat) != outer * inner:
        raise TensorError(f"a structure of {len(flat)} leaves is not {outer_treedef} of {inner_treedef}")
    return inner_treedef.build(outer_treedef.build(flat[k::inner]) for k in range(inner))


# --- paths ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceKey:
    """A place in a tuple or a list."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx}]"


@dataclass(frozen=True)
class DictKey:
    """A place in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A field."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


def _paths(tree: Tree, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to each leaf."""
    if tree.kind is None:
        return [before]
    if isinstance(tree.kind, type) and issubclass(tree.kind, dict):
        keys: list[Any] = [DictKey(k) for k in tree.data]
    elif isinstance(tree.kind, type) and hasattr(tree.kind, "_fields"):
        keys = [GetAttrKey(name) for name in tree.kind._fields]
    elif hasattr(tree.kind, "__dataclass_fields__"):
        keys = [GetAttrKey(name) for name in tree.data]
    else:
        keys = [SequenceKey(k) for k in range(len(tree.children))]
    return [path for key, child in zip(keys, tree.children, strict=True) for path in _paths(child, (*before, key))]


def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[Any, Any]], Tree]:
    """Pairs of a path and a leaf, and the structure without them."""
    found, bare = pytree.flatten(tree, is_leaf)
    return list(zip(_paths(bare), found, strict=True)), bare


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[Any, Any]]:
    """Pairs of a path and a leaf."""
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure with a function of path and leaf applied leaf by leaf."""
    pairs, bare = flatten_with_path(tree, is_leaf)
    others = [_up_to(bare, other) for other in rest]
    return bare.build(
        f(path, *x) for (path, *x) in ((p, leaf, *o) for (p, leaf), *o in zip(pairs, *others, strict=True))
    )


def keystr(path: Iterable[Any]) -> str:
    """A path as text: ['weights'][0]."""
    return "".join(str(key) for key in path)


__all__ = [
    "all", "flatten", "flatten_with_path", "keystr", "leaves", "leaves_with_path", "map", "map_with_path", "reduce",
    "structure", "transpose", "unflatten",
]  # fmt: skip
__getattr__ = refusing("tree", __all__)
