"""Structures of values: tuples, lists, dicts, dataclasses and registered classes, with anything else as leaves.

`flatten` gives the leaves in order and a `Tree` that builds the same structure around other leaves. Transformations
take and give such structures wherever a single tensor may stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from eshkol.errors import TensorError

Flatten = Callable[[Any], tuple[Sequence[Any], Any]]
Unflatten = Callable[[Any, Sequence[Any]], Any]
_registered: dict[type, tuple[Flatten, Unflatten]] = {}
_leaf_types: set[type] = set()  # types that were seen to be no structures
LEAF_CLASSES: set[type] = set()  # dataclasses that are leaves all the same


def register(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Make a class a structure: `flatten(x)` gives (children, data that is no child), `unflatten(data, children)` x."""
    _registered[cls] = (flatten, unflatten)
    _leaf_types.discard(cls)


@dataclass(frozen=True)
class Tree:
    """A structure without its leaves. Trees of equal structure are equal."""

    kind: Any  # a class; None for a leaf
    data: Any = None  # keys of a dict, fields of a dataclass, what `flatten` gave
    children: tuple[Tree, ...] = ()

    @property
    def leaves(self) -> int:
        return 1 if self.kind is None else sum(c.leaves for c in self.children)

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return self.leaves

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The structure around these leaves."""
        return self.build(leaves)

    def build(self, leaves: Iterable[Any]) -> Any:
        """The structure around these leaves."""
        feed = iter(leaves)
        built = self._build(feed)
        if next(feed, feed) is not feed:
            raise TensorError(f"more leaves than the {self.leaves} of {self}")
        return built

    def _build(self, feed: Any) -> Any:
        if self.kind is None:
            return next(feed)
        children = [next(feed) if c is LEAF else c._build(feed) for c in self.children]
        if self.kind in _registered:
            return _registered[self.kind][1](self.data, children)
        if self.kind is tuple or self.kind is list:  # nearly always
            return self.kind(children)
        if self.kind is type(None):
            return None
        if issubclass(self.kind, dict):
            made = self.kind()  # defaultdict and its like take other arguments than dict
            made.update(zip(self.data, children, strict=True))
            return made
        if issubclass(self.kind, tuple) and hasattr(self.kind, "_fields"):
            return self.kind(*children)
        if is_dataclass(self.kind):
            return _dataclass(self.kind, self.data, children)
        return self.kind(children)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        inside = ", ".join(map(str, self.children))
        if self.kind is dict:
            return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(self.data, self.children, strict=True)) + "}"
        return (
            f"({inside},)"
            if self.kind is tuple
            else f"[{inside}]"
            if self.kind is list
            else f"{self.kind.__name__}({inside})"
        )


def _dataclass(kind: Any, names: tuple[str, ...], values: Sequence[Any]) -> Any:
    """A dataclass with these fields; its __init__ may compute, so it is not run."""
    made = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


LEAF = Tree(None)


IsLeaf = Callable[[Any], bool]


def flatten(value: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Tree]:
    """The leaves of a structure, and the structure without them; what `is_leaf` says yes to is not looked into."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves, is_leaf)


def _flatten(value: Any, leaves: list[Any], is_leaf: IsLeaf | None = None) -> Tree:
    kind = type(value)
    if is_leaf is not None and is_leaf(value):
        leaves.append(value)
        return LEAF
    if kind in _registered:
        children, data = _registered[kind][0](value)
    elif value is None:
        children, data = (), None
    elif isinstance(value, dict):
        try:
            data = tuple(sorted(value)) if kind is dict else tuple(value)
        except TypeError:
            data = tuple(value)  # keys without an order keep the dict's own
        children = [value[k] for k in data]
    elif isinstance(value, tuple | list):
        children, data = value, None
    elif is_dataclass(value) and not isinstance(value, type) and kind not in LEAF_CLASSES:
        data = tuple(f.name for f in fields(value))
        children = [getattr(value, name) for name in data]
    else:
        leaves.append(value)
        return LEAF
    return Tree(kind, data, tuple(_flatten(c, leaves, is_leaf) for c in children))


def outline(value: Any, leaves: list[Any]) -> Any:
    """A structure without its leaves, which are appended: a `Tree`'s twin, quick to make and to compare."""
    kind = type(value)
    if kind in _leaf_types:
        leaves.append(value)
        return None
    if kind is tuple or kind is list:
        if _leaf_types.issuperset(map(type, value)):  # long lists are most often of leaves alone
            leaves += value
            return (kind, *[None] * len(value))
        return (kind, *[outline(x, leaves) for x in value])
    if kind is dict and all(type(k) is str for k in value):
        keys = sorted(value)
        return (kind, tuple(keys), *[outline(value[k], leaves) for k in keys])
    tree = _flatten(value, leaves)
    if tree is not LEAF:
        return tree
    _leaf_types.add(kind)
    return None


def tree_of(outline: Any) -> Tree:
    """The tree that an outline says."""
    if outline is None:
        return LEAF
    if isinstance(outline, Tree):
        return outline
    kind, *rest = outline
    data = rest.pop(0) if kind is dict else None
    return Tree(kind, data, tuple(map(tree_of, rest)))


def is_plain(outline: Any, deepest: int = 32) -> bool:
    """Whether an outline is of tuples, lists and dicts alone, none very deep: C goes through such."""
    if outline is None:
        return True
    if isinstance(outline, Tree) or not deepest:
        return False
    inside = outline[2:] if outline[0] is dict else outline[1:]
    return all(is_plain(x, deepest - 1) for x in inside)


def plain_outline(tree: Tree) -> Any:
    """The outline of a tree of tuples, lists and dicts; None of another, and of a leaf."""
    found = outline(tree.build(range(tree.leaves)), []) if tree.kind in (tuple, list, dict) else None
    return found if is_plain(found) and tree_of(found) == tree else None


def leaves(value: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a structure, in order."""
    return flatten(value, is_leaf)[0]


def tree_map(function: Callable[..., Any], value: Any, *others: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The structure with a function applied leaf by leaf; others must have the same structure."""
    first, tree = flatten(value, is_leaf)
    rest = [flatten(other, is_leaf) for other in others]
    for _, other_tree in rest:
        if other_tree != tree:
            raise TensorError(f"structures differ: {tree} and {other_tree}")
    return tree.build(function(*x) for x in zip(first, *(found for found, _ in rest), strict=True))
