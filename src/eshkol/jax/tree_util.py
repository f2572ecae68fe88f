"""`ek.tree_util`: the functions of `ek.tree` under their longer names, and classes made structures.

Comes in: as in `tree.py`. Goes out: the same; and `register_pytree_node` and its kin, after which a class is looked
into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.jax import tree as _tree
from eshkol.jax.missing import refusing
from eshkol.jax.tree import DictKey as DictKey
from eshkol.jax.tree import GetAttrKey as GetAttrKey
from eshkol.jax.tree import SequenceKey as SequenceKey
from eshkol.jax.tree import keystr as keystr
from eshkol.tensors.pytree import Tree, register

PyTreeDef = Tree
register_pytree_node = register


def register_pytree_node_class(cls: Any) -> Any:
    """Make a class a structure by its own `tree_flatten` and `tree_unflatten`; a decorator."""
    register(cls, lambda x: x.tree_flatten(), lambda data, children: cls.tree_unflatten(data, children))
    return cls


def register_dataclass(cls: Any, data_fields: Sequence[str] = (), meta_fields: Sequence[str] = ()) -> Any:
    """Make a class a structure of some of its fields; the others belong to the structure itself."""

    def apart(x: Any) -> tuple[list[Any], Any]:
        return [getattr(x, name) for name in data_fields], tuple(getattr(x, name) for name in meta_fields)

    def together(data: Any, children: Sequence[Any]) -> Any:
        return cls(**dict(zip(data_fields, children, strict=True)), **dict(zip(meta_fields, data, strict=True)))

    if data_fields or meta_fields:  # without them all fields are leaves, as of any dataclass
        register(cls, apart, together)
    return cls


class Partial(functools.partial):  # type: ignore[type-arg]
    """A function with some arguments given, which is a structure of them."""


register(
    Partial, lambda p: ((p.args, p.keywords), p.func), lambda func, parts: Partial(func, *parts[0], **parts[1])
)  # fmt: skip

tree_map: Callable[..., Any] = _tree.map
tree_leaves, tree_flatten, tree_unflatten = _tree.leaves, _tree.flatten, _tree.unflatten
tree_structure, tree_reduce, tree_all, tree_transpose = _tree.structure, _tree.reduce, _tree.all, _tree.transpose
tree_map_with_path, tree_flatten_with_path = _tree.map_with_path, _tree.flatten_with_path
tree_leaves_with_path = _tree.leaves_with_path

__all__ = [
    "DictKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "tree_all", "tree_flatten", "tree_flatten_with_path",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce", "tree_structure",
    "tree_transpose", "tree_unflatten",
]  # fmt: skip
__getattr__ = refusing("tree_util", __all__)
