"""Attention of 16-bit floats, and its gradients, as machines with fragments of matrices compute them at once.

Comes in: nodes that are simple (`simplify.py`) and whose derivatives have been taken. Goes out: equivalent nodes.

    q·kᵀ·scale → mask → softmax → · v → 16 bits                          one `seen_attention`
    the same, where the gradients of q, k and v are computed as well      `summed_attention`, `attention_gradients`

Everything between is of float32 as `ops/attention.py` says it. The kernels round weights to 16 bits before they are
multiplied, and sums are taken in their order; where attention is causal, what comes later is not looked at. Gradients
are found from the softmax on:

    p = softmax        of p = c · vᵀ        t = of p · p        of scores = t - p · Σ t
    of q = of scores · k · scale            of k = of scoresᵀ · q · scale             of v = pᵀ · c

Whichever of the three is there is replaced. What else needs a node in between still gets it, computed as before.

With dropout, weights and c · vᵀ are 0 where random bits say so (`ops/attention_dropout.py`), and v is made as much
greater; the kernels draw the same bits from the key.

Where query heads share keys, `ops/attention.py` multiplies the queries of a group as those of one head: between a
product and the softmax there is a reshape. Here they are heads again, along one more axis of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Current, Node, make, remade, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.attention_dropout import ATTENTION_DROPS
from eshkol.ops.contraction import matrix_product
from eshkol.ops.elementwise import cast
from eshkol.ops.indexing import take
from eshkol.ops.movement import ToShape, permute, reshape
from eshkol.ops.random import DRAWS, random_bits
from eshkol.ops.row import Op, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import PICK, Pick
from eshkol.schedule.kernels.attention import (
    ATTENTION_GRADIENTS,
    PAGED_ATTENTION,
    SEEN_ATTENTION,
    SUMMED_ATTENTION,
    AttentionGradients,
    SeenAttention,
)
from eshkol.schedule.kernels.block_attention import attends, in_rows
from eshkol.schedule.kernels.block_attention_gradients import has_gradients
from eshkol.schedule.kernels.products import View
from eshkol.schedule.rewrite.masks import sight
from eshkol.schedule.rewrite.pages import Paged, paged
from eshkol.schedule.rewrite.patterns import Operand, is_half, is_number, number_of, operand, widens
from eshkol.support import threefry

_MUL, _ADD, _NEG, _SUM = (TABLE[name] for name in ("mul", "add", "neg", "sum"))
_WHERE, _SOFTMAX, _NOT = TABLE["where"], TABLE["softmax"], TABLE["logical_not"]
LEAST = float(np.finfo(np.float32).min)
Users = dict[Node, list[Node]]


class _Choice(NamedTuple):
    """Truth values by which something is chosen: where they hold, or where they do not."""

    mask: Node
    place: int  # of what is chosen, among the inputs of whoever chooses

    @staticmethod
    def of(node: Node, other: Callable[[float], bool]) -> _Choice | None:
        """How a node chooses between something and a number of which something holds."""
        place = next((n for n in (1, 2) if is_number(node.inputs[3 - n], other)), None)
        return None if place is None else _Choice(node.inputs[0], place)

    def chosen(self, node: Node) -> Node:
        return node.inputs[self.place]

    def allowed(self) -> Node:
        found: Node = self.mask if self.place == 1 else _NOT(self.mask)
        return found


class _Dropout(NamedTuple):
    """Which weights are 0 by chance, and the key and the number that say so."""

    choice: _Choice
    key: Node
    below: int

    @staticmethod
    def of(node: Node) -> _Dropout | None:
        """What drops weights in a node, if something does."""
        choice = _Choice.of(node, lambda n: n == 0) if _is(node, _WHERE) else None
        if choice is None or choice.place != 2 or not _is(choice.mask, ATTENTION_DROPS):
            return None
        bits = choice.mask.inputs[0]
        drawn = _is(bits, random_bits) and bits.attrs.range == DRAWS and bits.inputs[0].shape == (2,)
        drawn = drawn and choice.mask.attrs.below < threefry.BYTES
        return _Dropout(choice, bits.inputs[0], choice.mask.attrs.below) if drawn else None


class _Heads(NamedTuple):
    """So many heads share keys; the shape of scores as they are multiplied, and for each head by itself."""

    shared: int
    merged: Shape
    apart: Shape

    @staticmethod
    def of(scores: Node, shape: Shape) -> tuple[_Heads, Node] | None:
        """How heads share keys, and the product that their scores are, which may lack axes of one place in front."""
        product, shared = scores, 1
        if _is(scores, reshape):
            product = scores.inputs[0]
            if product.ndim < 3 or len(shape) != product.ndim or 0 in shape:
                return None
            *lead, heads, rows, columns = product.shape
            shared = rows // shape[-2]
            if shared < 2 or shape != (*lead, heads * shared, rows // shared, columns):
                return None
        return (_Heads(shared, product.shape, shape), product) if _is(product, matrix_product) else None

    def together(self, node: Node, users: Users) -> Iterator[Node]:
        """A node of all heads, as it is multiplied."""
        if self.shared == 1:
            yield node
            return
        wanted = (*self.merged[:-1], node.shape[-1])
        yield from (x for x in _of(reshape, users.get(node, [])) if x.shape == wanted)

    def each(self, product: Node, users: Users) -> Iterator[Node]:
        """What a product is, for each head."""
        if self.shared == 1:
            yield product
            return
        wanted = (*self.apart[:-1], product.shape[-1])
        yield from (x for x in _of(reshape, users.get(product, [])) if x.shape == wanted)

    def product(self, node: Node | None) -> Node | None:
        """The product that a node is of all heads."""
        if node is not None and self.shared > 1:
            node = node.inputs[0] if _is(node, reshape) and node.inputs[0].shape == self.merged else None
        return node if node is not None and _is(node, matrix_product) else None

    def lines(self, node: Node, seen: Callable[[Node], Operand]) -> Operand:
        """What rows of all heads are read from, as they are multiplied: with an axis for heads that share keys."""
        if self.shared == 1:
            return seen(node)
        wanted, axis = (*self.apart[:-1], node.shape[-1]), -3
        if _is(node, reshape) and node.inputs[0].shape == wanted:
            found = seen(node.inputs[0])
        else:
            found, axis = seen(node), -2
        offset, shape, strides = found.view
        inner = self.apart[-2] if axis == -2 else self.shared
        extents, steps = (shape[axis] // inner, inner), (strides[axis] * inner, strides[axis])
        shape, strides = ((*x[:axis], *two, *x[axis + 1 :]) for x, two in ((shape, extents), (strides, steps)))
        return found._replace(view=View(offset, shape, strides))

    def others(self, found: Operand) -> Operand:
        """Keys or values, of one head for all that share it."""
        if self.shared == 1:
            return found
        offset, shape, strides = found.view
        return found._replace(view=View(offset, (*shape[:-2], 1, *shape[-2:]), (*strides[:-2], 0, *strides[-2:])))

    def lengths(self, lengths: Node) -> tuple[int, ...]:
        """How far apart those of samples lie, along the axes of the batch."""
        steps = [1]
        for extent in lengths.shape[:0:-1]:
            steps.insert(0, steps[0] * extent)
        apart = [step if extent > 1 else 0 for step, extent in zip(steps, lengths.shape, strict=False)]
        lead = len(self.apart) - 3 - len(lengths.shape)
        return *(0,) * lead, *apart, 0, *((0,) if self.shared > 1 else ())

    def mask(self, mask: Node) -> Operand:
        """What a mask is read from, as one of the batch × queries × keys."""
        found = operand(mask)
        if found.scale != 1.0 or found.view.strides[-1:] != (1,):
            found = Operand.of(mask)
        offset, shape, strides = found.view
        shape = (*(1,) * (len(self.apart) - len(shape)), *shape)
        strides = (*(0,) * (len(self.apart) - len(strides)), *strides)
        steps = [
            0 if n == 1 and wanted > 1 else step for n, wanted, step in zip(shape, self.apart, strides, strict=True)
        ]
        extents = list(self.apart)
        if self.shared > 1:
            extents[-3:-2] = [extents[-3] // self.shared, self.shared]
            steps[-3:-2] = [steps[-3] * self.shared, steps[-3]]
        return found._replace(view=View(offset, tuple(extents), tuple(steps)))


class _Attention(NamedTuple):
    """Attention that was found: the softmax, the mask and the weights made of it, the product that its
    scores are, what is read, and the result.

    There is no result where only the gradients are asked for.
    """

    softmax: Node
    mask: _Choice | None
    dropout: _Dropout | None
    weights: Node
    product: Node
    heads: _Heads
    operands: tuple[Operand, Operand, Operand]
    masked: Operand | None
    further: tuple[Node, ...]  # lengths, and spans
    attrs: SeenAttention
    result: Node | None

    @property
    def dtype(self) -> dtypes.DType:
        return self.operands[0].base.dtype

    @property
    def masks(self) -> tuple[Operand, ...]:
        return () if self.masked is None else (self.masked,)

    @property
    def keys(self) -> tuple[Node, ...]:
        """What is read last, but for a mask."""
        return *self.further, *(() if self.dropout is None else (self.dropout.key,))

    @property
    def choices(self) -> list[_Choice]:
        """What makes weights 0: the mask, then dropout."""
        return _choices(self.mask, self.dropout)

    def paged(self) -> Paged | None:
        """The same attention to pages, if its keys and values are such that were gathered."""
        gathered = all(_is(x.base, take) for x in self.operands[1:])
        return paged(self.operands, self.attrs, self.heads.shared, self.further) if gathered else None

    def inner(self) -> Iterator[Node]:
        """What lies between q, k, v and the result: from there back to the scores."""
        assert self.result is not None
        at = self.result
        while at is not self.product:
            if at.op is _ADD:  # a mask that is added
                at = next(x for x in at.inputs if self.product in (x, *x.inputs[:1]))
            else:
                chosen = next((x for x in self.choices if at.op is _WHERE and at.inputs[0] is x.mask), None)
                at = at.inputs[0] if chosen is None else chosen.chosen(at)
            yield at


@dataclass
class _Trained:
    """Attention with its gradients: the cotangent as float32, where it lies, and which node is which gradient."""

    cotangent: Node
    seen: Operand
    places: dict[Node, int] = field(default_factory=dict)


def attention_in_fragments(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of nodes that a machine's kernels for attention compute."""
    if target.matrices is None or not target.matrices.attention:
        return list(results)
    order = topological(results, through=_behind)
    if not any(node.op is _SOFTMAX for node in order):
        return list(results)
    users: Users = {}
    for node in order:
        for x in _behind(node):
            users.setdefault(x, []).append(node)
    plain: dict[Node, _Attention] = {}
    trained: dict[Node, tuple[_Attention, _Trained]] = {}
    for node in order:
        if not _is(node, _SOFTMAX):
            continue
        for found in _attention(node, users, target):
            if found.result is not None and all(len(users[x]) == 1 and x not in results for x in found.inner()):
                plain[found.result] = found
            elif (gradients := _gradients(found, users, target)) is not None:
                replaced = gradients.places if found.result is None else (found.result, *gradients.places)
                trained.update(dict.fromkeys(replaced, (found, gradients)))
            else:
                continue
            break
    return _Rebuilding(plain, trained).of(results) if plain or trained else list(results)


def _behind(node: Node) -> tuple[Node, ...]:
    return () if node.data is not None else node.inputs


# --- attention ------------------------------------------------------------------------------------


def _attention(softmax: Node, users: Users, target: MachineDescription) -> Iterator[_Attention]:
    """The ways to see a softmax as that of attention, those with a result first."""
    scores, weights = softmax.inputs[0], softmax
    mask: _Choice | None = None
    if softmax.attrs.axis != softmax.ndim - 1 or softmax.dtype is not dtypes.float32:
        return
    if _is(scores, _WHERE):  # the least number there, before the softmax
        mask = _Choice.of(scores, lambda n: n <= LEAST)
        if mask is None or _whole(mask.chosen(scores), softmax) != softmax.shape:
            return
        scores = mask.chosen(scores)
        masked = next((x for x in users.get(softmax, []) if _unmasked(x, mask) is softmax), None)
        if masked is None:
            return
        weights = masked
    seen, added = _Heads.of(scores, _whole(scores, softmax)), None
    if seen is None and mask is not None and _is(scores, _ADD):
        for n, one in enumerate(scores.inputs):
            if one.shape == scores.shape and (seen := _Heads.of(one, one.shape)) is not None:
                added = scores.inputs[1 - n]
                break
    if seen is None:
        return
    causal, window, seen_by, lengths, spans = sight(None if mask is None else mask.allowed(), added)
    if spans is not None and spans.ndim > 2:
        return
    (heads, product), further = seen, tuple(x for x in (lengths, spans) if x is not None)
    q = heads.lines(product.inputs[0], _widened)
    k = _widened(product.inputs[1])
    k = heads.others(k._replace(view=k.view.turned()))
    parts = [(dropout, users_) for users_ in users.get(weights, []) if (dropout := _Dropout.of(users_)) is not None]
    found = (
        (dropout, used, values, result)
        for dropout, used in [(None, weights), *parts]
        for values, result in _values(softmax, _choices(mask, dropout), used, heads, users)
    )
    for dropout, used, values, result in found:
        v = _widened(values)
        v = heads.others(v if result is not None else v._replace(view=v.view.turned()))
        attrs = SeenAttention(q.view, k.view, v.view, q.scale * k.scale, causal, window)
        chosen = None if seen_by is None else heads.mask(seen_by)
        if chosen is not None:
            if chosen.view.shape[:-2] != attrs.batch:
                continue
            attrs = attrs._replace(mask=chosen.view)
        if lengths is not None:
            steps = heads.lengths(lengths)
            if len(steps) != len(attrs.batch):
                continue
            attrs = attrs._replace(lengths=steps)
        attrs, kept = attrs._replace(packed=spans is not None), 1.0
        if dropout is not None:
            if used.shape != softmax.shape or count(used.shape[:-2]) != count(attrs.batch):
                continue
            attrs, kept = attrs._replace(dropout=dropout.below), threefry.kept(dropout.below)
        alike = is_half(q.base) and q.base.dtype is k.base.dtype is v.base.dtype
        if not alike or not math.isclose(v.scale, kept, rel_tol=1e-6) or not attends(attrs, q.base.dtype, target):
            continue
        shape = (*heads.apart[:-1], attrs.shape[-1])
        if result is None or (
            result.dtype is q.base.dtype and result.shape == shape and result.size == count(attrs.shape)
        ):
            yield _Attention(softmax, mask, dropout, used, product, heads, (q, k, v), chosen, further, attrs, result)


def _whole(x: Node, wanted: Node) -> Shape:
    """A shape with axes of one place in front, as many as another has."""
    return (*(1,) * (wanted.ndim - x.ndim), *x.shape)


def _widened(x: Node) -> Operand:
    return operand(x, widened=True)


def _choices(mask: _Choice | None, dropout: _Dropout | None) -> list[_Choice]:
    return [x for x in (mask, dropout and dropout.choice) if x is not None]


def _values(
    softmax: Node, choices: Sequence[_Choice], weights: Node, heads: _Heads, users: Users
) -> Iterator[tuple[Node, Node | None]]:
    """What the weights are multiplied by, with the result; then what a cotangent is, transposed."""
    for together in heads.together(weights, users):
        for product in _of(matrix_product, users.get(together, [])):
            if product.inputs[0] is together:
                for each in heads.each(product, users):
                    for result in _of(cast, users.get(each, [])):
                        yield product.inputs[1], result
    for _, product in _of_weights(softmax, choices, heads, users):
        yield product.inputs[1], None


def _of_weights(softmax: Node, choices: Sequence[_Choice], heads: _Heads, users: Users) -> Iterator[tuple[Node, Node]]:
    """Nodes that are the weights times their gradients, and the products that those are."""
    for times in _of(_MUL, users.get(softmax, [])):
        for factor in times.inputs:
            part: Node | None = factor
            for choice in choices:
                part = None if part is None else _unmasked(part, choice)
            product = heads.product(part)
            if product is not None:
                yield times, product


def _is(node: Node, op: Op) -> bool:
    return node.op is op and node.data is None


# --- gradients ------------------------------------------------------------------------------------


def _gradients(found: _Attention, users: Users, target: MachineDescription) -> _Trained | None:
    """The gradients of attention, if they are computed."""
    heads = found.heads
    for times, product in _of_weights(found.softmax, found.choices, heads, users):
        cotangent, values = product.inputs
        v = _widened(values)
        made = _Trained(cotangent, heads.lines(cotangent, _seen))
        attrs = AttentionGradients(found.attrs, made.seen.view)
        fits = heads.others(v._replace(view=v.view.turned())) == found.operands[2] and made.seen.scale == 1.0
        if not fits or made.seen.base.dtype is not found.dtype or not has_gradients(attrs, found.dtype, target):
            continue
        for of_scores in _of_scores(times, found, users):
            _place(made, found, of_scores, users)
        if made.places:
            return made
    return None


def _seen(cotangent: Node) -> Operand:
    """A cotangent as 16-bit floats where they lie, or where they are put."""
    seen = operand(cotangent, widened=True)
    if not in_rows(seen.view) and widens(cotangent):
        return Operand.of(cotangent.inputs[0])
    return seen


def _of(op: Op, nodes: Sequence[Node]) -> Iterator[Node]:
    return (node for node in nodes if _is(node, op))


def _unmasked(node: Node, mask: _Choice) -> Node | None:
    """What a node is where a mask lets something be, if it is 0 elsewhere."""
    if not _is(node, _WHERE) or _Choice.of(node, lambda n: n == 0) != mask:
        return None
    return mask.chosen(node)


def _of_scores(times: Node, found: _Attention, users: Users) -> Iterator[Node]:
    """t - p · Σ t of t, where what is not attended to is 0."""
    for negative in _of(_NEG, users.get(times, [])):
        for total in _of(_SUM, users.get(negative, [])):
            if tuple(total.attrs.axes) != (times.ndim - 1,):
                continue
            for spread in _of(_MUL, users[found.softmax]):
                other = next((x for x in spread.inputs if x is not found.softmax), None)
                if other is None or not _is_spread(other, total):
                    continue
                for added in _of(_ADD, users.get(spread, [])):
                    if times not in added.inputs:
                        continue
                    if found.mask is None:
                        yield added
                        continue
                    for masked in _of(_WHERE, users.get(added, [])):
                        if _unmasked(masked, found.mask) is added:
                            yield masked


def _is_spread(node: Node, total: Node) -> bool:
    """Whether a node is the sums of rows, with one more axis for their elements."""
    if total.attrs.keepdims:
        return node is total
    shape = (*total.shape, 1)
    while len(shape) > len(node.shape) and shape[0] == 1:
        shape = shape[1:]
    return _is(node, reshape) and node.inputs[0] is total and node.shape == shape


def _place(made: _Trained, found: _Attention, of_scores: Node, users: Users) -> None:
    """Find the nodes that are gradients of q, k and v."""
    heads, (q, k, _) = found.heads, found.operands
    for together in heads.together(of_scores, users):
        for product in _of(matrix_product, users.get(together, [])):
            if product.inputs[0] is together:
                for each in heads.each(product, users):
                    _note(made, found, each, heads.others(_widened(product.inputs[1])), k, 0, users)
        for product in _transposed(together, users):
            _note(made, found, product, heads.lines(product.inputs[1], _widened), q, 1, users)
    for together in heads.together(found.weights, users):
        for product in _transposed(together, users):
            if product.inputs[1] is made.cotangent:
                _rounded(made, found, product, 1.0, 2, users)


def _transposed(node: Node, users: Users) -> Iterator[Node]:
    """Products whose left factor is a node transposed."""
    last = node.ndim - 1
    for turned in _of(permute, users.get(node, [])):
        if tuple(turned.attrs.axes) == (*range(last - 1), last, last - 1):
            for product in _of(matrix_product, users.get(turned, [])):
                if product.inputs[0] is turned:
                    yield product


def _note(
    made: _Trained, found: _Attention, product: Node, factor: Operand, wanted: Operand, place: int, users: Users
) -> None:
    """Take down the gradient that a product becomes, times the scale, if its other factor is the wanted one."""
    if factor._replace(scale=1.0) != wanted._replace(scale=1.0):
        return
    _rounded(made, found, product, factor.scale, place, users)


def _rounded(made: _Trained, found: _Attention, product: Node, scale: float, place: int, users: Users) -> None:
    """Take down where a product, times what it has to be times, is rounded."""
    size = count((found.attrs.q, found.attrs.k, found.attrs.v)[place].shape)
    wanted = found.attrs.scale if place < 2 else threefry.kept(found.attrs.dropout)
    for node in users.get(product, []):
        times, rounded = scale, [node]
        if (number := number_of(node)) is not None and node.data is None:
            times, rounded = scale * number, users.get(node, [])
        if math.isclose(times, wanted, rel_tol=1e-6):
            for last in _of(cast, rounded):
                if last.dtype is found.dtype and last.size == size:
                    made.places[last] = place


# --- the graph without them -----------------------------------------------------------------------


class _Rebuilding:
    """The graph with attention in place of what it is composed of."""

    def __init__(self, plain: dict[Node, _Attention], trained: dict[Node, tuple[_Attention, _Trained]]) -> None:
        self.plain, self.trained = plain, trained
        self.new: dict[Node, Node] = {}
        self.summed: dict[Node, Node] = {}
        self.gradients: dict[Node, Node] = {}

    def of(self, results: Sequence[Node]) -> list[Node]:
        previous = Current.site
        try:
            for node in topological(results, through=self._needs):
                Current.site = node.site
                if node in self.plain:
                    found = self.plain[node]
                    pages = found.paged()
                    if pages is None:
                        made = make(SEEN_ATTENTION, self._given(found), found.attrs)
                    else:
                        made = make(PAGED_ATTENTION, tuple(self.new[x] for x in pages.read), pages.attrs)
                    self.new[node] = _shaped(made, node.shape)
                elif node in self.trained:
                    self.new[node] = self._trained(node, *self.trained[node])
                else:
                    inputs = tuple(self.new[x] for x in _behind(node))
                    self.new[node] = node if inputs == _behind(node) else remade(node, inputs)
        finally:
            Current.site = previous
        return [self.new[node] for node in results]

    def _needs(self, node: Node) -> tuple[Node, ...]:
        found, gradients = self.trained.get(node, (self.plain.get(node), None))
        if found is None:
            return _behind(node)
        if gradients is None and (pages := found.paged()) is not None:
            return pages.read
        given = *(o.base for o in (*found.operands, *found.masks)), *found.keys
        if gradients is None or node is found.result:
            return given
        return *given, gradients.seen.base, gradients.cotangent

    def _operands(self, operands: Sequence[Operand]) -> tuple[Node, ...]:
        return tuple(self.new[o.base] for o in operands)

    def _given(self, found: _Attention) -> tuple[Node, ...]:
        return *self._operands(found.operands), *self._last(found)

    def _last(self, found: _Attention) -> tuple[Node, ...]:
        """What is read last: a mask, and a key of dropout."""
        return *self._operands(found.masks), *(self.new[key] for key in found.keys)

    def _trained(self, node: Node, found: _Attention, gradients: _Trained) -> Node:
        if found.softmax not in self.summed:
            self.summed[found.softmax] = make(SUMMED_ATTENTION, self._given(found), found.attrs)
        result, sums = (make(PICK, (self.summed[found.softmax],), Pick(k)) for k in range(2))
        if node is found.result:
            return _shaped(result, node.shape)
        if found.softmax not in self.gradients:
            cotangent = _shaped(self.new[gradients.cotangent], result.shape)
            products = _MUL(cast(result, dtypes.float32), cotangent)
            given = (*self._operands(found.operands), self.new[gradients.seen.base], sums, _SUM(products, -1))
            given += self._last(found)
            attrs = AttentionGradients(found.attrs, gradients.seen.view)
            self.gradients[found.softmax] = make(ATTENTION_GRADIENTS, given, attrs)
        return _shaped(make(PICK, (self.gradients[found.softmax],), Pick(gradients.places[node])), node.shape)


def _shaped(x: Node, shape: Shape) -> Node:
    assert count(x.shape) == count(shape)
    return x if x.shape == shape else make(reshape, (x,), ToShape(shape))
