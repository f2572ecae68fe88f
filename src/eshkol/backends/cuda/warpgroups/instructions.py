"""Array instructions that groups of warps do as a whole.

Comes in: a program. Goes out: a `Whole`, the kernel that stands for it, if it is one instruction of those here, on
matrices that the machine's copies can fetch; else None, and the program is expanded into code of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Address, BufferOffset
from eshkol.atlas.program import ROUNDED, Program
from eshkol.atlas.table.attentions import length_strides, mask_strides
from eshkol.atlas.table.batched import batch_axes, pieces, strides
from eshkol.atlas.table.convolutions import conv_edges, conv_output
from eshkol.atlas.table.linear import stored
from eshkol.atlas.types import Type
from eshkol.backends.cuda.launching import with_maps
from eshkol.backends.cuda.warpgroups import (
    attention,
    attention_gradients,
    choices,
    convolutions,
    decoding,
    epilogues,
    float8_products,
    following,
    input_gradients,
    lane_products,
    lane_tiling,
    maps,
    other_products,
    pages,
    products,
    tiling,
    weight_gradients,
)
from eshkol.backends.cuda.warpgroups.attention import Attention
from eshkol.backends.cuda.warpgroups.attention_gradients import Gradients
from eshkol.backends.cuda.warpgroups.choices import Pick, by_model
from eshkol.backends.cuda.warpgroups.convolutions import Convolution
from eshkol.backends.cuda.warpgroups.decoding import Decoding
from eshkol.backends.cuda.warpgroups.dropout import Dropout
from eshkol.backends.cuda.warpgroups.heads import Rows
from eshkol.backends.cuda.warpgroups.input_gradients import SpreadGradient
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.cuda.warpgroups.products import Matrices, Product
from eshkol.backends.cuda.warpgroups.ring import NAMES
from eshkol.backends.cuda.warpgroups.sight import Lengths, Mask, Sight
from eshkol.backends.cuda.warpgroups.weight_gradients import Summed, WeightGradient
from eshkol.backends.lanes.layout import Layout
from eshkol.support import threefry

CAPABILITY = (9, 0)  # the one that has these instructions


@dataclass(frozen=True)
class Whole:
    """A kernel that does all of a program, however that is launched: so many blocks of so many threads."""

    text: str
    blocks: int
    threads: int
    memory: int  # bytes of shared memory
    maps: tuple[TensorMap, ...]


def whole(program: Program, processors: int, pick: Pick = by_model) -> Whole | None:
    """The kernel of a program, on a machine of so many processors, with the tile that is picked."""
    if len(program.instructions) > 2 and program.instructions[0].op.name == "BatchedGEMM":
        return _followed(program, processors, pick)
    if len(program.instructions) not in (1, 2) or any(i.op.name != "EXIT" for i in program.instructions[1:]):
        return None
    i = program.instructions[0]
    if i.op.name == "BatchedAttention":
        layout = Layout.of(program)
        return _decoding(i, layout, processors) or _attention(i, layout, processors, pick)
    if i.op.name == "PagedAttention":
        return _paged(i, Layout.of(program), processors)
    if i.op.name in ("BatchedAttentionGradQuery", "BatchedAttentionGradKeyValue"):
        return _gradients(i, Layout.of(program), processors, pick)
    if i.op.name == "ChannelsLastConv2D":
        return _convolution(i, Layout.of(program), processors, pick)
    if i.op.name == "ChannelsLastConv2DGradInput":
        return _spread_gradient(i, Layout.of(program), processors)
    if i.op.name == "SummedGEMM":
        return _summed(i, Layout.of(program), processors)
    if i.op.name == "ChannelsLastConv2DGradWeight":
        return _weight_gradient(i, Layout.of(program), processors)
    if i.op.name == "IntegerGEMM":
        integers = _integer_product(i)
        return None if integers is None else _other_product(integers, Layout.of(program), processors)
    if i.op.name == "Float8GEMM":
        return _float8_product(i, Layout.of(program), processors)
    if i.op.name not in ("GEMM", "BatchedGEMM"):
        return None
    p = _product(i)
    if p is None:
        return None
    if p.ty is Type.F32:
        rounded = other_products.placed(p) if ROUNDED in program.metadata else None
        layout = Layout.of(program)
        return _lane_product(p, layout, processors) if rounded is None else _other_product(rounded, layout, processors)
    tile = pick(choices.of_product(p, processors))
    found = maps.fitting(products.maps(p, tile))
    if found is None:
        return None
    layout = Layout.of(program)
    text = products.product_kernel(p, tile, with_maps(layout, len(found))[1], 8 * layout.word(p.c.buffer))
    return Whole(text, tiling.blocks(p, tile, processors), tile.threads, tile.memory, found)


def _followed(program: Program, processors: int, pick: Pick) -> Whole | None:
    """A product with what follows it, whose rows are whole chunks."""
    p = _product(program.instructions[0])
    epilogue = None if p is None or program.instructions[0].c_strides else following.followed(program)
    if p is None or epilogue is None or p.n % (16 // p.ty.size_bytes):
        return None
    tile = pick(choices.of_product(p, processors))
    fitting = maps.fitting(epilogues.maps(p, tile, epilogue))
    offsets = *(out.offset for out in epilogue.outs), *(value.offset for value in epilogue.values)
    if fitting is None or any(offset % 8 for offset in offsets):
        return None
    layout = Layout.of(program)
    words = {param.name: 8 * layout.word(param.name) for param in program.params}
    text = epilogues.followed_kernel(p, tile, epilogue, with_maps(layout, len(fitting))[1], words)
    return Whole(text, tiling.blocks(p, tile, processors), tile.threads, tile.memory, fitting)


def _lane_product(p: Product, layout: Layout, processors: int) -> Whole | None:
    tile = lane_tiling.best(p, processors)
    found = maps.fitting(lane_products.maps(p, tile))
    if found is None:
        return None
    a, b, c = (8 * layout.word(x.buffer) for x in (p.a, p.b, p.c))
    text = lane_products.product_kernel(p, tile, with_maps(layout, len(found))[1], (a, b, c))
    return Whole(text, lane_tiling.count(p, tile), tile.threads, tile.memory, found)


def _other_product(p: Product, layout: Layout, processors: int) -> Whole | None:
    terms = -(-p.k * p.ty.size_bytes // 2)  # of 16 bits, that take as long
    tile = tiling.best(replace(p, k=terms), processors, shares=p.ty.is_float)
    found = maps.fitting(other_products.maps(p, tile))
    if found is None:
        return None
    text = other_products.product_kernel(p, tile, with_maps(layout, len(found))[1], 8 * layout.word(p.c.buffer))
    return Whole(text, tiling.blocks(p, tile, processors), tile.threads, tile.memory, found)


def _float8_product(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    operands = i.a, i.b, i.c
    if min(i.m, i.n, i.k) == 0 or not all(isinstance(x, BufferOffset) for x in (*operands, i.scale)):
        return None
    lengths, turned = (i.k, i.k, i.n), (False, True, False)
    a, b, c = (Matrices(x.handle, x.offset, n, t, ()) for x, n, t in zip(operands, lengths, turned, strict=True))
    p = Product(Type.U8, i.m, i.n, i.k, (), a, b, c)
    tile = tiling.best(replace(p, k=-(-i.k // 2)), processors, shares=False)
    found = maps.fitting(other_products.maps(p, tile))
    if found is None or i.c.offset % 4 or i.scale.offset % 4:
        return None
    f = float8_products.Float8Product(p, (i.wide_a, i.wide_b), i.ty, _address(i.scale, layout))
    text = float8_products.product_kernel(f, tile, with_maps(layout, len(found))[1], 8 * layout.word(c.buffer))
    return Whole(text, tiling.blocks(p, tile, processors), tile.threads, tile.memory, found)


def _integer_product(i: Instruction) -> Product | None:
    operands = i.a, i.b, i.c
    if min(i.m, i.n, i.k) == 0 or not all(isinstance(x, BufferOffset) for x in operands):
        return None
    turned = i.transpose_a, i.transpose_b, False
    lengths = stored(i, "a")[1], stored(i, "b")[1], i.n
    a, b, c = (Matrices(x.handle, x.offset, n, t, ()) for x, n, t in zip(operands, lengths, turned, strict=True))
    return other_products.placed(Product(Type.I8, i.m, i.n, i.k, (), a, b, c))


def _product(i: Instruction) -> Product | None:
    """A product of matrices as the instruction says it, if groups of warps have one for its type."""
    operands = i.a, i.b, i.c
    if i.ty not in (*NAMES, Type.F32) or min(i.m, i.n, i.k) == 0:
        return None
    if not all(isinstance(x, BufferOffset) for x in operands):
        return None
    batch: tuple[int, ...] = ()
    if i.op.name == "GEMM":
        if i.beta != 0:
            return None
        steps: dict[str, tuple[int, ...]] = {"a": (stored(i, "a")[1], 1), "b": (stored(i, "b")[1], 1), "c": (i.n, 1)}
    else:
        batch, steps = batch_axes(i), {name: strides(i, name) for name in "abc"}
    kept = [axis for axis, extent in enumerate(batch) if extent > 1]
    if 0 in batch:
        return None
    turned = {"a": i.transpose_a, "b": i.transpose_b, "c": False}
    a, b, c = (
        Matrices(x.handle, x.offset, steps[name][-2], turned[name], tuple(steps[name][axis] for axis in kept))
        for name, x in zip("abc", operands, strict=True)
    )
    return Product(i.ty, i.m, i.n, i.k, tuple(batch[axis] for axis in kept), a, b, c, i.alpha)


def _summed(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    operands = i.a, i.b, i.c
    places = [(x.handle, x.offset) for x in operands if isinstance(x, BufferOffset)]
    sizes = i.batch, i.m, i.n, i.k
    if i.ty not in NAMES or 0 in sizes or len(places) < len(operands) or i.depth != products.DEPTH:
        return None
    if i.n % 2 or places[2][1] % weight_gradients.PAIR_BYTES:
        return None
    s = Summed(i.ty, *sizes, i.each, -(-i.batch * pieces(i) // i.each), *places)
    tile = tiling.best_alone(s.product, processors)
    found = maps.fitting(weight_gradients.summed_maps(s, tile))
    if found is None:
        return None
    text = weight_gradients.summed_kernel(s, tile, with_maps(layout, len(found))[1], 8 * layout.word(s.result[0]))
    return Whole(text, tiling.blocks(s.product, tile, processors), tile.threads, tile.memory, found)


def _attention(i: Instruction, layout: Layout, processors: int, pick: Pick) -> Whole | None:
    sight = _sight(i, layout)
    first = attention.tile_for(i.head_dim, i.queries, sight)
    operands = (i.query, i.query_strides), (i.key, i.key_strides), (i.value, i.value_strides)
    if first is None or not _attends(i, [i.query, i.key, i.value, i.output], [i.sums]):
        return None
    q, k, v = (_rows(i, *x) for x in operands)
    out = _rows(i, i.output, _dense(i, i.queries))
    a = Attention(i.ty, i.queries, i.keys, i.head_dim, _batch(i), q, k, v, out, i.scale, sight)
    tile = pick(choices.of_attention(a, first, processors))
    found = maps.fitting(attention.maps(a, tile))
    if found is None:
        return None
    text = attention.attention_kernel(a, tile, with_maps(layout, len(found))[1], _address(i.sums, layout))
    return Whole(text, attention.blocks(a, tile), tile.threads, tile.memory, found)


def _decoding(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    """The same for few queries, of all heads that share keys."""
    if not _attends(i, [i.query, i.key, i.value, i.output], [i.sums]) or i.output.offset % 4:
        return None
    kept, sight = _kept(i), _sight(i, layout)
    shared = bool(kept) and kept[-1] == len(i.batches) - 1 and i.key_strides[-2] == i.value_strides[-2] == 0
    if shared:
        kept = kept[:-1]
    operands = (i.query, i.query_strides), (i.key, i.key_strides), (i.value, i.value_strides)
    q, k, v, out = (
        Rows(x.handle, x.offset, steps[-1], tuple(steps[axis] for axis in kept))
        for x, steps in (*operands, (i.output, _dense(i, i.queries)))
    )
    masked = 0
    if sight.mask is not None:
        masked = mask_strides(i)[-2] if shared else 0
        sight = replace(sight, mask=replace(sight.mask, batch=sight.mask.batch[: len(kept)]))
    d = Decoding(
        i.ty, i.queries, i.keys, i.head_dim, tuple(i.batches[axis] for axis in kept), q, k, v, out, i.scale, sight,
        i.batches[-1] if shared else 1, i.query_strides[-2] if shared else 0, masked, _address(i.output, layout),
    )  # fmt: skip
    tile = decoding.tile_for(d, processors)
    found = None if tile is None else maps.fitting(decoding.maps(d, tile))
    if tile is None or found is None:
        return None
    text = decoding.decoding_kernel(d, tile, with_maps(layout, len(found))[1], _address(i.sums, layout))
    return Whole(text, decoding.blocks(d, tile), tile.threads, tile.memory, found)


def _paged(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    operands = (i.output, i.sums, i.query, i.key, i.value, i.table, i.lengths)
    there = i.ty in NAMES and 0 not in (i.batch, i.heads, i.queries)
    if not there or not all(isinstance(x, BufferOffset) for x in operands):
        return None
    if i.page % pages.SMALLEST or i.page & (i.page - 1) or any(x.offset % 4 for x in operands):
        return None
    head = i.members * i.queries * i.head_dim
    q, k, v, out = (
        Rows(x.handle, x.offset, i.head_dim, (i.heads * head, head)) for x in (i.query, i.key, i.value, i.output)
    )
    sight = Sight(False, lengths=Lengths(_address(i.lengths, layout), (1, 0)))
    d = Decoding(
        i.ty, i.queries, i.most * i.page, i.head_dim, (i.batch, i.heads), q, k, v, out, i.scale, sight, i.members,
        i.queries * i.head_dim, 0, _address(i.output, layout),
    )  # fmt: skip
    tile = decoding.tile_for(d, processors, pages.SHAPES)
    if tile is None:
        return None
    held = pages.Pages(i.pages, i.page, i.heads, _address(i.table, layout), i.most)
    found = maps.fitting(pages.maps(d, tile, held))
    if found is None:
        return None
    text = pages.paged_kernel(d, tile, held, with_maps(layout, len(found))[1], _address(i.sums, layout))
    return Whole(text, decoding.blocks(d, tile), tile.threads, tile.memory, found)


def _gradients(i: Instruction, layout: Layout, processors: int, pick: Pick) -> Whole | None:
    of_keys = i.op.name == "BatchedAttentionGradKeyValue"
    sight = _sight(i, layout)
    first = attention_gradients.tile_for(i.head_dim, sight, of_keys=of_keys)
    operands = (
        (i.query, i.query_strides), (i.key, i.key_strides), (i.value, i.value_strides),
        (i.cotangent, i.cotangent_strides),
    )  # fmt: skip
    outputs = [i.key_output, i.value_output] if of_keys else [i.output]
    if first is None or not _attends(i, [*(x for x, _ in operands), *outputs], [i.sums, i.inner]):
        return None
    grouped = of_keys and i.grouped and i.batches[-1] > 1
    dense = _dense(i, i.keys if of_keys else i.queries, of_groups=grouped)
    outs = tuple(_rows(i, x, dense) for x in outputs)
    q, k, v, ct = (_rows(i, *x) for x in operands)
    g = Gradients(i.ty, i.queries, i.keys, i.head_dim, _batch(i), q, k, v, ct, outs, i.scale, sight, grouped)
    tile = pick(choices.of_gradients(g, attention_gradients.shared(g, first, processors), processors))
    found = maps.fitting(attention_gradients.maps(g, tile))
    if found is None:
        return None
    sums, inner = (_address(x, layout) for x in (i.sums, i.inner))
    results = [_address(x, layout) for x in outputs]
    text = attention_gradients.gradients_kernel(g, tile, with_maps(layout, len(found))[1], sums, inner, results)
    return Whole(text, attention_gradients.blocks(g, tile), tile.threads, tile.memory, found)


def _attends(i: Instruction, matrices: Sequence[Address], numbers: Sequence[Address]) -> bool:
    """Whether groups of warps have attention of such a type, and there is some, of buffers."""
    if i.ty not in NAMES or 0 in (i.batch, i.queries):
        return False
    masks = [x for x in (i.mask, i.bias) if x is not None]
    if len(masks) > 1 or i.dropout == threefry.BYTES:
        return False
    numbers = [*numbers, *(x for x in (i.bias, i.lengths, i.spans, i.dropout_key) if x is not None)]
    return all(isinstance(x, BufferOffset) for x in (*matrices, *numbers, *masks)) and not any(
        isinstance(x, BufferOffset) and x.offset % 4 for x in numbers
    )


def _sight(i: Instruction, layout: Layout) -> Sight:
    """Which keys are seen. A window is none where all keys are within it."""
    window = i.window if 0 < i.window < max(i.queries, i.keys) else 0
    found = Sight(i.causal, window)
    x = i.bias if i.mask is None else i.mask
    if isinstance(x, BufferOffset):
        steps = mask_strides(i)
        apart = tuple(steps[axis] for axis in _kept(i))
        found = replace(found, mask=Mask(_address(x, layout), i.mask is None, apart, steps[-1]))
    if isinstance(i.dropout_key, BufferOffset):
        found = replace(found, dropout=Dropout(i.dropout, _address(i.dropout_key, layout)))
    if isinstance(i.lengths, BufferOffset):
        apart = tuple(length_strides(i)[axis] for axis in _kept(i))
        found = replace(found, lengths=Lengths(_address(i.lengths, layout), apart))
    if isinstance(i.spans, BufferOffset):
        found = replace(found, spans=_address(i.spans, layout))
    return found


def _kept(i: Instruction) -> list[int]:
    """Axes of the batch along which there are several heads."""
    return [axis for axis, extent in enumerate(i.batches) if extent > 1]


def _batch(i: Instruction) -> tuple[int, ...]:
    return tuple(i.batches[axis] for axis in _kept(i))


def _dense(i: Instruction, lines: int, *, of_groups: bool = False) -> tuple[int, ...]:
    """The strides of a result, which may be one for all heads along the last axis."""
    extents = (*i.batches[:-1], 1) if of_groups else i.batches
    steps = [lines * i.head_dim * prod(extents[axis + 1 :]) for axis in range(len(extents))]
    if of_groups:
        steps[-1] = 0
    return (*steps, i.head_dim)


def _rows(i: Instruction, x: BufferOffset, strides: Sequence[int]) -> Rows:
    return Rows(x.handle, x.offset, strides[-1], tuple(strides[axis] for axis in _kept(i)))


def _address(x: BufferOffset, layout: Layout) -> tuple[int, int]:
    """Where a kernel finds a buffer's address in its record, and how many bytes further what it needs begins."""
    return 8 * layout.word(x.handle), x.offset


def _of_windows(i: Instruction, *operands: Address) -> Convolution | None:
    """A convolution as the instruction says it, or a gradient of one, if groups of warps have one for its type.

    The operands are a weight, what windows see, and a result, or gradients of them.
    """
    places = [(x.handle, x.offset) for x in operands if isinstance(x, BufferOffset)]
    if i.ty not in NAMES or i.batch == 0 or i.groups > 1 or len(places) < len(operands):
        return None
    return Convolution(
        i.ty, i.batch, i.in_channels, i.out_channels, (i.height, i.width), (i.kernel_h, i.kernel_w), conv_output(i),
        i.stride, i.dilation, conv_edges(i)[:2], *places,
    )  # fmt: skip


def _convolution(i: Instruction, layout: Layout, processors: int, pick: Pick) -> Whole | None:
    c = _of_windows(i, i.kernel, i.input, i.output)
    if c is None:
        return None
    tile = pick(choices.of_convolution(c, processors))
    found = maps.fitting(convolutions.maps(c, tile))
    if found is None:
        return None
    text = convolutions.convolution_kernel(c, tile, with_maps(layout, len(found))[1], 8 * layout.word(c.result[0]))
    return Whole(text, tiling.blocks(c.product, tile, processors), tile.threads, tile.memory, found)


def _spread_gradient(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    c = _of_windows(i, i.kernel, i.output, i.gradient)
    if c is None or c.dilation != (1, 1):
        return None
    g = SpreadGradient(c)
    tile = tiling.best_alone(g.product, processors)
    found = maps.fitting(input_gradients.maps(g, tile))
    if found is None:
        return None
    text = input_gradients.spread_kernel(g, tile, with_maps(layout, len(found))[1], 8 * layout.word(c.input[0]))
    return Whole(text, tiling.blocks(g.product, tile, processors), tile.threads, tile.memory, found)


def _weight_gradient(i: Instruction, layout: Layout, processors: int) -> Whole | None:
    c = _of_windows(i, i.output, i.input, i.gradient)
    if c is None or i.each % products.DEPTH or c.weight[1] % weight_gradients.PAIR_BYTES or c.channels % 2:
        return None
    g = WeightGradient(c, i.each, -(-i.batch * c.plane // i.each))
    found = maps.fitting(weight_gradients.maps(g))
    if found is None:
        return None
    tile = tiling.best_alone(g.product, processors)
    text = weight_gradients.gradient_kernel(g, tile, with_maps(layout, len(found))[1], 8 * layout.word(c.weight[0]))
    return Whole(text, tiling.blocks(g.product, tile, processors), tile.threads, tile.memory, found)
