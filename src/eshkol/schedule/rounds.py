"""What a scan does round by round although it can be done for all rounds at once.

- A product of what the loop walks along with a matrix that stays is one product before the loop: the first half of a
  recurrent cell.
- What is only summed up over the rounds, of products or of what the loop writes anyway, is summed behind the loop, in
  one product whose sums go over the rounds too: the derivatives of a recurrent cell's weights and biases.

Few long products cost less than many short ones, and no matrix is read and written in every round. Where rows are many
the short products are long enough, and their operands are not worth keeping. Sums are rounded in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from eshkol.graph.node import Node, placeholder, topological
from eshkol.ops import TABLE
from eshkol.ops.elementwise import add
from eshkol.ops.movement import Permutation, permute, reshape
from eshkol.ops.reductions import Along, sum_
from eshkol.ops.row import Aval, HasAval
from eshkol.ops.shapes import count
from eshkol.schedule.rewrite import build, made, reshaped

Pairs: TypeAlias = list[tuple[Node, Node]]  # parameters of a body with the values outside that they stand for
Stacks: TypeAlias = Callable[[Node], Node]  # what a node of the body is in all rounds, stacked
Sum: TypeAlias = Callable[[Stacks], Node]  # what a carry is in the end

PRODUCT = TABLE["matrix_product"]
MOST_ROWS = 256  # of a product in one round, if all rounds' are to be one


def fresh(like: HasAval, beside: Node) -> Node:
    """A placeholder of the scope of another."""
    (scope,) = beside.scopes
    return placeholder(Aval(like.shape, like.dtype), scope)


def products_before(results: Sequence[Node], walked: Pairs, fixed: Pairs, length: int) -> dict[Node, Node]:
    """What stands for products in the body that are computed for all rounds at once, for which pairs are added."""
    along, still = dict(walked), dict(fixed)
    found: dict[Node, Node] = {}
    for node in topological(results):
        if not made(node, PRODUCT) or len(node.shape) != 2 or node.shape[0] > MOST_ROWS:
            continue
        x, y = node.inputs
        source = x.inputs[0] if made(x, reshape) else x
        turned = made(y, permute)
        matrix = y.inputs[0] if turned else y
        if source not in along or matrix not in still:
            continue
        given = still[matrix]
        right = build(permute, y.attrs, given) if turned else given
        rows = reshaped(along[source], (length * x.shape[0], x.shape[1]))
        stacked = reshaped(build(PRODUCT, None, rows, right), (length, *node.shape))
        found[node] = fresh(node, source)
        walked.append((found[node], stacked))
    return found


def sums_behind(
    carried: dict[int, tuple[Node, Node]], results: Sequence[Node], walked: Pairs, length: int
) -> tuple[dict[int, Sum], list[Node]]:
    """The carries that only sum something up, each with what it is in the end, and what must be stacked for them."""
    order = topological(results)
    users = Counter(x for node in order for x in node.inputs)
    users.update(results)
    along = {p for p, _ in walked}
    terms: dict[int, Node] = {}
    for k, (p, _) in carried.items():
        total = results[k]
        if made(total, add) and p in total.inputs and users[p] == users[total] == 1:
            terms[k] = total.inputs[1] if total.inputs[0] is p else total.inputs[0]
    sums: dict[int, Sum] = {}
    kept: dict[Node, None] = {}
    for k, term in terms.items():
        if _outer_product(term):
            x, y = term.inputs[0].inputs[0], term.inputs[1]
            new = [z for z in (x, y) if z not in along and z not in kept]
            if sum(count(z.shape) for z in new) <= 2 * count(term.shape):
                kept.update((z, None) for z in new)
                sums[k] = _product_of_all(carried[k][1], x, y, length)
    for k, term in terms.items():
        if made(term, sum_) and (term.inputs[0] in along or term.inputs[0] in kept):
            sums[k] = _sum_of_all(carried[k][1], term)
    return sums, list(kept)


def _outer_product(term: Node) -> bool:
    """Whether a node sums the products of two matrices' rows: x transposed times y."""
    return made(term, PRODUCT) and len(term.shape) == 2 and all(len(x.shape) == 2 for x in term.inputs) and (
        made(term.inputs[0], permute)
    )  # fmt: skip


def _product_of_all(first: Node, x: Node, y: Node, length: int) -> Sum:
    def product(stacks: Stacks) -> Node:
        one, other = (reshaped(stacks(z), (length * z.shape[0], z.shape[1])) for z in (x, y))
        return build(add, None, build(PRODUCT, None, build(permute, Permutation((1, 0)), one), other), first)

    return product


def _sum_of_all(first: Node, term: Node) -> Sum:
    def total(stacks: Stacks) -> Node:
        axes = (0, *(k + 1 for k in term.attrs.axes))
        return build(add, None, reshaped(build(sum_, Along(axes, False), stacks(term.inputs[0])), term.shape), first)

    return total
