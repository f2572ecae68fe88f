"""What a scan does round by round although it can be done for all rounds at once.

- A product of what the loop walks along with a matrix that stays is one product before the loop: the first half of a
  recurrent cell.
- A product with such a matrix that the loop only writes down is one product after the loop.
- What is only summed up over the rounds, of products or of what the loop writes anyway, is summed after the loop, in
  one product whose sums go over the rounds too: the derivatives of a recurrent cell's weights and biases.

Few long products cost less than many short ones, and no matrix is read and written in every round. Where rows are many
the short products are long enough, and their operands are not worth keeping. Sums are rounded in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from eshkol.graph.node import Node, placeholder, topological
from eshkol.ops import TABLE
from eshkol.ops.elementwise import add
from eshkol.ops.movement import Permutation, permute, reshape
from eshkol.ops.reductions import Along, sum_
from eshkol.ops.row import Aval, HasAval
from eshkol.ops.shapes import count
from eshkol.schedule.rewrite.rules import build, made, reshaped

Pairs: TypeAlias = list[tuple[Node, Node]]  # parameters of a body with the values outside that they stand for
Stacks: TypeAlias = Callable[[Node], Node]  # what a node of the body is in all rounds, stacked
Behind: TypeAlias = Callable[[Stacks], Node]  # a result that is computed after the loop

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
        right = _fixed_right(node, still)
        if right is None:
            continue
        x = node.inputs[0]
        source = x.inputs[0] if made(x, reshape) else x
        if source in along:
            found[node] = fresh(node, source)
            walked.append((found[node], _for_all(along[source], right, x, node, length)))
    return found


def _fixed_right(node: Node, still: Mapping[Node, Node]) -> Node | None:
    """Of a product with few rows: the matrix on its right, as it is outside, if it is the same in every round."""
    if not made(node, PRODUCT) or len(node.shape) != 2 or node.shape[0] > MOST_ROWS:
        return None
    y = node.inputs[1]
    if made(y, permute) and y.inputs[0] in still:
        return build(permute, y.attrs, still[y.inputs[0]])
    return still.get(y)


def _for_all(stack: Node, right: Node, x: Node, product: Node, length: int) -> Node:
    """A product of one round for all rounds, stacked."""
    rows = reshaped(stack, (length * x.shape[0], x.shape[1]))
    return reshaped(build(PRODUCT, None, rows, right), (length, *product.shape))


def computed_behind(
    carried: dict[int, tuple[Node, Node]], stacks: Sequence[int], results: Sequence[Node], walked: Pairs, fixed: Pairs,
    length: int,
) -> tuple[dict[int, Behind], list[Node]]:  # fmt: skip
    """Results that are better computed after the loop, each with how, and what must be stacked for them.

    These are carries that only sum something up, and stacks of products that nothing else reads.
    """
    order = topological(results)
    users = Counter(x for node in order for x in node.inputs)
    users.update(results)
    along, still = {p for p, _ in walked}, dict(fixed)
    terms: dict[int, Node] = {}
    for k, (p, _) in carried.items():
        total = results[k]
        if made(total, add) and p in total.inputs and users[p] == users[total] == 1:
            terms[k] = total.inputs[1] if total.inputs[0] is p else total.inputs[0]
    found: dict[int, Behind] = {}
    kept: dict[Node, None] = {}

    def keep(operands: Sequence[Node], like: Node) -> bool:
        """Stack what is not there yet, unless that is more to write than it saves."""
        new = [z for z in operands if z not in along and z not in kept]
        if sum(count(z.shape) for z in new) > 2 * count(like.shape):
            return False
        kept.update((z, None) for z in new)
        return True

    for k, term in terms.items():
        if _outer_product(term):
            x, y = term.inputs[0].inputs[0], term.inputs[1]
            if keep((x, y), term):
                found[k] = _product_of_all(carried[k][1], x, y, length)
    for k in stacks:
        product = results[k]
        right = _fixed_right(product, still) if users[product] == 1 else None
        if right is not None and keep(product.inputs[:1], product):
            found[k] = _written_behind(product, right, length)
    for k, term in terms.items():
        if made(term, sum_) and (term.inputs[0] in along or term.inputs[0] in kept):
            found[k] = _sum_of_all(carried[k][1], term)
    return found, list(kept)


def _written_behind(product: Node, right: Node, length: int) -> Behind:
    x = product.inputs[0]
    return lambda stacks: _for_all(stacks(x), right, x, product, length)


def _outer_product(term: Node) -> bool:
    """Whether a node sums the products of two matrices' rows: x transposed times y."""
    return made(term, PRODUCT) and len(term.shape) == 2 and made(term.inputs[0], permute)


def _product_of_all(first: Node, x: Node, y: Node, length: int) -> Behind:
    def product(stacks: Stacks) -> Node:
        one, other = (reshaped(stacks(z), (length * z.shape[0], z.shape[1])) for z in (x, y))
        return build(add, None, build(PRODUCT, None, build(permute, Permutation((1, 0)), one), other), first)

    return product


def _sum_of_all(first: Node, term: Node) -> Behind:
    def total(stacks: Stacks) -> Node:
        axes = (0, *(k + 1 for k in term.attrs.axes))
        return build(add, None, reshaped(build(sum_, Along(axes, False), stacks(term.inputs[0])), term.shape), first)

    return total
