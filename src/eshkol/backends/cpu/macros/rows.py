"""Row by row: softmax, normalization and the like, each a few passes over a row that stays in cache.

Comes in: an instruction over one row (Softmax, LayerNorm), usually one for each lane, or over many (BatchNorm, RoPE …),
which are tasks. Rows are taken in explicit vectors, so that they are as fast in place as elsewhere and short ones cost
little more than their arithmetic; a single long row is split among the cores. 16-bit floats are rounded once, at the
end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.elementary import EXP, LN2, LOG2_E
from eshkol.atlas.table.elementary_code import FORMATS
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.angles import sines_and_cosines
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type, macro_of, real_bits
from eshkol.backends.cpu.macros.reduce import SHORT, Fold
from eshkol.llvm.targets import Target

# Where e^x comes near the least normal number. What is below counts as 0: beside a greatest weight of 1 it is nothing.
LEAST_EXPONENT = {Type.F32: -86.0, Type.F64: -707.0}
LONG = 1 << 16  # elements of a row for which waking other cores is worth it
SHORT_VECTORS = 8  # of a row that is held in registers
PIECE = 1 << 14  # elements of a task that is part of a row


def grain(elements: int) -> int:
    """How many tasks of so many elements are not worth splitting."""
    return max(1, PIECE // max(1, elements))


def pieces(elements: int) -> int:
    return -(-elements // PIECE)


def _row_kernel(i: Instruction, target: Target, operands: int) -> Kernel:
    """The kernel of an instruction over one row. Short rows are written into the lane, for just their length."""
    short = i.n <= SHORT
    return Kernel(f"{i.op.name}_{i.ty}{'_short' if short else ''}".lower(), target, operands, inline=short)


# --- softmax --------------------------------------------------------------------------------------


def weight(k: Kernel, x: Value, *, keeps_nan: bool = False) -> Value:
    """e^x for x not above 0; 0 for NaN, unless that is kept. Shorter than EXP by what a softmax does not need."""
    f, (ln2_high, ln2_low) = FORMATS[x.ty], LN2[x.ty]
    rounded = k.muladd(x, LOG2_E, f.magic)
    count = rounded - f.magic
    r = k.muladd(count, -ln2_low, k.muladd(count, -ln2_high, x))
    *lower, total = (k.const(x.ty, c, x.lanes) for c in (1.0, 1.0, *EXP[x.ty]))
    for coefficient in reversed(lower):
        total = k.muladd(total, r, coefficient)
    # The rounded value ends in the bits of the power of two, which is added to the exponent.
    power = rounded.bits(f.signed) << f.mantissa
    if keeps_nan:  # added to the bits of NaN it could make a number of them
        total = total * (power + (f.bias << f.mantissa)).bits(x.ty)
        return k.where(x < LEAST_EXPONENT[x.ty], k.const(x.ty, 0.0, x.lanes), total)
    return k.where(x >= LEAST_EXPONENT[x.ty], (total.bits(f.signed) + power).bits(x.ty), 0.0)


def _greatest(k: Kernel, x: Array, n: Value) -> Value:
    fold = Fold(k, "maximum", x.ty, -math.inf)
    for p, lanes in k.strips(x.ty, n):
        fold.take(x.vector(p, lanes))
    return fold.result()


def _total(k: Kernel, x: Array, n: Value) -> Value:
    fold = Fold(k, "add", x.ty, 0)
    for p, lanes in k.strips(x.ty, n):
        fold.take(x.vector(p, lanes))
    return fold.result()


def _weights(k: Kernel, y: Array, x: Array, n: Value, top: Value) -> Value:
    """The sum of e^(x - top); the exponentials are kept in the output unless that would round them."""
    total = Fold(k, "add", x.ty, 0)
    for p, lanes in k.strips(x.ty, n):
        part = weight(k, x.vector(p, lanes) - top)
        total.take(part)
        if not x.ty.is_half:
            y.put(p, part)
    return total.result()


def _share(k: Kernel, y: Array, x: Array, n: Value, top: Value, total: Value) -> None:
    """The exponentials (kept, or computed again) divided by their sum."""
    # A greatest element that is NaN or infinite makes every result NaN; of others the difference is 0.
    scale = 1.0 / total + (top - top)
    for p, lanes in k.strips(x.ty, n):
        part = weight(k, x.vector(p, lanes) - top) if x.ty.is_half else y.vector(p, lanes)
        y.put(p, part * scale)


def softmax(i: Instruction, target: Target) -> Macro:
    if i.n >= LONG and is_collective(i):
        return _long_softmax(i, target)
    if 0 < i.n <= SHORT_VECTORS * max(1, target.vector_bits // compute_type(i.ty).bits):
        return _short_softmax(i, target)
    k = _row_kernel(i, target, operands=2)
    y, x, n = k.operand(0, i.ty), k.operand(1, i.ty), k.word(0)
    top = _greatest(k, x, n)
    total = _weights(k, y, x, n, top)
    _share(k, y, x, n, top, total)
    return macro_of([k], [Phase(k.function_name, 1)], (i.n,))


def _short_softmax(i: Instruction, target: Target) -> Macro:
    """A row that registers hold, without loops. NaN need not come through the greatest: it is in the sum."""
    k = Kernel(f"softmax_{i.ty}_{i.n}".lower(), target, operands=2, inline=True)
    y, x = k.operand(0, i.ty), k.operand(1, i.ty)
    places: list[tuple[int, int]] = []  # where a vector begins, and its lanes
    for lanes in k.widths(i.ty)[1:]:
        while sum(width for _, width in places) + lanes <= i.n:
            places.append((sum(width for _, width in places), lanes))
    # Compared and chosen, x86 has the greater in one instruction; ARM has that, and NaN through it, either way.
    greater = k.maximum if target.is_arm else lambda a, b: k.where(a > b, a, b)
    rows = [x.vector(p, lanes) for p, lanes in places]
    top = _folded(k, rows, greater)
    parts = [weight(k, row - top, keeps_nan=True) for row in rows]
    scale = 1.0 / _folded(k, parts, lambda a, b: a + b)
    for (p, _), part in zip(places, parts, strict=True):
        y.put(p, part * scale)
    return macro_of([k], [Phase(k.function_name, 1)], ())


def _folded(k: Kernel, values: list[Value], step: Callable[[Value, Value], Value]) -> Value:
    """All lanes of vectors, the widest first, in one value: equal ones lane by lane, then halves of what is left."""
    total = values[0]
    for value in values[1:]:
        while total.lanes > value.lanes:
            total = _halved(k, total, step)
        total = step(total, value)
    while total.lanes > 1:
        total = _halved(k, total, step)
    return total


def _halved(k: Kernel, value: Value, step: Callable[[Value, Value], Value]) -> Value:
    half = value.lanes // 2
    low, high = (k.shuffle(value, value, range(start, start + half)) for start in (0, half))
    return step(low, high) if half > 1 else step(k.lane(value, 0), k.lane(value, 1))


def _long_softmax(i: Instruction, target: Target) -> Macro:
    """In pieces: the greatest of each; the sum of each under the greatest of all; the result of each."""
    compute, count, kernels = compute_type(i.ty), pieces(i.n), []
    for step in ("greatest", "weights", "share"):
        k = Kernel(f"softmax_{i.ty}_{step}".lower(), target, operands=2)
        kernels.append(k)
        n, parts = k.word(0), k.word(1)
        tops, totals = k.scratch(compute), k.scratch(compute, parts * compute.size_bytes)
        top = None if step == "greatest" else _greatest(k, tops, parts)
        total = _total(k, totals, parts) if step == "share" else None
        with k.pieces(n, PIECE) as (start, length):
            y, x = (k.operand(number, i.ty).at(start) for number in (0, 1))
            if top is None:
                tops[start // PIECE] = _greatest(k, x, length)
            elif total is None:
                totals[start // PIECE] = _weights(k, y, x, length, top)
            else:
                _share(k, y, x, length, top, total)
    phases = [Phase(k.function_name, count) for k in kernels]
    return macro_of(kernels, phases, (i.n, count), 2 * count * compute.size_bytes)


# --- normalization --------------------------------------------------------------------------------


def _square_deviations(k: Kernel, x: Array, n: Value, mean: Value) -> Value:
    fold = Fold(k, "add", x.ty, 0)
    for p, lanes in k.strips(x.ty, n):
        deviation = x.vector(p, lanes) - mean
        fold.take(deviation * deviation)
    return fold.result()


def _scale(k: Kernel, variance: Value, eps: Value) -> Value:
    return 1.0 / k.sqrt(variance + eps)


def _statistics(k: Kernel, x: Array, n: Value, eps: Value) -> tuple[Value, Value]:
    """Mean and 1/sqrt(variance + eps), in two passes."""
    count = n.to(compute_type(x.ty))
    mean = _total(k, x, n) / count
    return mean, _scale(k, _square_deviations(k, x, n, mean) / count, eps)


def _normalize(
    k: Kernel, arrays: tuple[Array, Array, Array, Array], n: Value, mean: Value, scale: Value
) -> None:  # fmt: skip
    """y = (x - mean) × scale × gamma + beta, gamma and beta for each element."""
    y, x, gamma, beta = arrays
    for p, lanes in k.strips(x.ty, n):
        value = (x.vector(p, lanes) - mean) * scale
        y.put(p, k.muladd(value, gamma.vector(p, lanes), beta.vector(p, lanes)))


def _four(k: Kernel, ty: Type) -> tuple[Array, Array, Array, Array]:
    return k.operand(0, ty), k.operand(1, ty), k.operand(2, ty), k.operand(3, ty)


def layer_norm(i: Instruction, target: Target) -> Macro:
    if i.n >= LONG and is_collective(i):
        return _long_layer_norm(i, target)
    k = _row_kernel(i, target, operands=4)
    arrays, n, eps = _four(k, i.ty), k.word(0), k.real_word(1, compute_type(i.ty))
    mean, scale = _statistics(k, arrays[1], n, eps)
    _normalize(k, arrays, n, mean, scale)
    return macro_of([k], [Phase(k.function_name, 1)], (i.n, real_bits(i.eps)))


def _long_layer_norm(i: Instruction, target: Target) -> Macro:
    """In pieces: the sum of each; the squared deviations of each from the mean of all; the result of each."""
    compute, count, kernels = compute_type(i.ty), pieces(i.n), []
    for step in ("sum", "deviations", "normalize"):
        k = Kernel(f"layernorm_{i.ty}_{step}".lower(), target, operands=4)
        kernels.append(k)
        n, eps, parts = k.word(0), k.real_word(1, compute), k.word(2)
        sums, squares = k.scratch(compute), k.scratch(compute, parts * compute.size_bytes)
        mean = None if step == "sum" else _total(k, sums, parts) / n.to(compute)
        scale = _scale(k, _total(k, squares, parts) / n.to(compute), eps) if step == "normalize" else None
        with k.pieces(n, PIECE) as (start, length):
            y, x, gamma, beta = (array.at(start) for array in _four(k, i.ty))
            if mean is None:
                sums[start // PIECE] = _total(k, x, length)
            elif scale is None:
                squares[start // PIECE] = _square_deviations(k, x, length, mean)
            else:
                _normalize(k, (y, x, gamma, beta), length, mean, scale)
    phases = [Phase(k.function_name, count) for k in kernels]
    return macro_of(kernels, phases, (i.n, real_bits(i.eps), count), 2 * count * compute.size_bytes)


def _along(k: Kernel, y: Array, x: Array, n: Value, mean: Value, scale: Value, shift: Value) -> None:
    """y = (x - mean) × scale + shift."""
    for p, lanes in k.strips(x.ty, n):
        y.put(p, k.muladd(x.vector(p, lanes) - mean, scale, shift))


def batch_norm(i: Instruction, target: Target) -> Macro:
    """Two phases: gamma / sqrt(variance + eps) of every channel; then every row of `spatial` elements, in pieces.

    Where a channel is a single element, samples are the rows, and everything is given element by element.
    """
    compute, flat = compute_type(i.ty), i.spatial == 1
    first = Kernel(f"batchnorm_{i.ty}_scale".lower(), target, operands=6)
    scales, gamma, variance = first.scratch(compute), first.operand(2, i.ty), first.operand(5, i.ty)
    eps = first.real_word(2, compute)
    with first.pieces(first.word(0), PIECE) as (start, length):
        for p, lanes in first.strips(i.ty, length):
            root = first.sqrt(variance.vector(start + p, lanes) + eps)
            scales.put(start + p, gamma.vector(start + p, lanes) / root)
    second = k = Kernel(f"batchnorm_{i.ty}{'_flat' if flat else ''}".lower(), target, operands=6)
    y, x, beta, mean = (k.operand(number, i.ty) for number in (0, 1, 3, 4))
    channels, length, scales = k.word(0), k.word(1), k.scratch(compute)
    parts = (length + (PIECE - 1)) // PIECE
    with k.tasks() as task:
        row, start = task // parts, task % parts * PIECE
        size, place = k.minimum(length - start, k.const(Type.I64, PIECE)), row * length + start
        if flat:
            for p, lanes in k.strips(i.ty, size):
                centred = x.vector(place + p, lanes) - mean.vector(start + p, lanes)
                scaled = k.muladd(centred, scales.vector(start + p, lanes), beta.vector(start + p, lanes))
                y.put(place + p, scaled)
        else:
            c = row % channels
            _along(k, y.at(place), x.at(place), size, mean[c], scales[c], beta[c])
    rows, row_length = (i.batch, i.channels) if flat else (i.batch * i.channels, i.spatial)
    phases = [
        Phase(first.function_name, pieces(i.channels)),
        Phase(second.function_name, rows * pieces(row_length), grain(row_length)),
    ]
    words = (i.channels, row_length, real_bits(i.eps))
    return macro_of([first, second], phases, words, i.channels * compute.size_bytes)


def group_norm(i: Instruction, target: Target) -> Macro:
    """One task for each sample and group."""
    compute, flat, per_group = compute_type(i.ty), i.spatial == 1, i.channels // i.groups
    k = Kernel(f"groupnorm_{i.ty}{'_flat' if flat else ''}".lower(), target, operands=4)
    y, x, gamma, beta = _four(k, i.ty)
    groups, per, spatial, eps = k.word(0), k.word(1), k.word(2), k.real_word(3, compute)
    size = per * spatial
    with k.tasks() as task:
        start, channel = task * size, task % groups * per
        mean, scale = _statistics(k, x.at(start), size, eps)
        if flat:
            _normalize(k, (y.at(start), x.at(start), gamma.at(channel), beta.at(channel)), size, mean, scale)
        else:
            with k.loop(0, per, plain=True) as c:
                row = start + c * spatial
                _along(k, y.at(row), x.at(row), spatial, mean, scale * gamma[channel + c], beta[channel + c])
    phase = Phase(k.function_name, i.batch * i.groups, grain(per_group * i.spatial))
    return macro_of([k], [phase], (i.groups, per_group, i.spatial, real_bits(i.eps)))


# --- elementwise with structure -------------------------------------------------------------------


def layer_scale(i: Instruction, target: Target) -> Macro:
    k = Kernel(f"layerscale_{i.ty}".lower(), target, operands=3)
    y, x, scale = (k.operand(number, i.ty) for number in range(3))
    with k.pieces(k.word(0), PIECE) as (start, length):
        for p, lanes in k.strips(i.ty, length):
            y.put(start + p, x.vector(start + p, lanes) * scale.vector(start + p, lanes))
    return macro_of([k], [Phase(k.function_name, pieces(i.n))], (i.n,))


def rope(i: Instruction, target: Target) -> Macro:
    """First the cosines and sines of every position, once; then the heads of each sample and position."""
    angles, turn = _rope_kernels(i.ty, target)
    phases = [
        Phase(angles.function_name, i.seq_len, grain(8 * i.head_dim)),
        Phase(turn.function_name, i.batch * i.seq_len, grain(i.heads * i.head_dim)),
    ]
    scratch = i.seq_len * i.head_dim * compute_type(i.ty).size_bytes
    return macro_of([angles, turn], phases, (i.seq_len, i.heads, i.head_dim // 2), scratch)


@cache
def _rope_kernels(ty: Type, target: Target) -> tuple[Kernel, Kernel]:
    compute = compute_type(ty)
    first, second = (Kernel(f"rope_{ty}_{step}".lower(), target, operands=3) for step in ("angles", "turn"))

    def sizes(k: Kernel) -> tuple[Value, Value, Value, Array, Array]:
        positions, heads, pairs = (k.word(number) for number in range(3))
        sines = k.scratch(compute, positions * pairs * compute.size_bytes)
        return positions, heads, pairs, k.scratch(compute), sines

    k, (_, _, pairs, cosines, sines) = first, sizes(first)
    with k.tasks() as task:
        start = task * pairs
        places = sines.at(start), cosines.at(start)

        def keep(p: Value, *both: Value) -> None:
            for place, value in zip(places, both, strict=True):
                place.put(p, value)

        sines_and_cosines(k, k.operand(2, ty).at(start), pairs, keep)
    k, (positions, heads, pairs, cosines, sines) = second, sizes(second)
    with k.tasks() as task, k.loop(task * heads, (task + 1) * heads, plain=True) as head:
        at = task % positions * pairs
        y, x = (k.operand(number, ty).at(head * pairs * 2) for number in (0, 1))
        with k.parallel(0, pairs) as d:
            even, odd, cos, sin = x[d * 2], x[d * 2 + 1], cosines[at + d], sines[at + d]
            y[d * 2] = k.muladd(even, cos, -(odd * sin))
            y[d * 2 + 1] = k.muladd(even, sin, odd * cos)
    return first, second


# --- copies ---------------------------------------------------------------------------------------


def _copy(target: Target, size: int, start: int = 0) -> Macro:
    """`size` bytes of the second operand to the first, `start` bytes from its beginning."""
    k = Kernel("copy_bytes", target, operands=2)
    x = k.operand(1, Type.U8)
    y = k.operand(0, Type.U8).at(k.word(1))
    with k.pieces(k.word(0), PIECE) as (begin, length):
        for p, lanes in k.strips(Type.U8, length):
            y.put(begin + p, x.vector(begin + p, lanes))
    return macro_of([k], [Phase(k.function_name, pieces(size), 16)], (size, start))


def kv_cache_update(i: Instruction, target: Target) -> Macro:
    size = i.batch * i.heads * i.head_dim * i.ty.size_bytes
    return _copy(target, size, i.position * size)


def all_gather(i: Instruction, target: Target) -> Macro | None:
    return _copy(target, i.n * i.ty.size_bytes) if len(i.devices) == 1 else None


def all_reduce(i: Instruction, target: Target) -> Macro | None:
    """Over one device the sum is the buffer itself."""
    return Macro((), ()) if len(i.devices) == 1 else None


LOWERINGS: dict[str, Lowering] = {
    "Softmax": softmax,
    "LayerNorm": layer_norm,
    "BatchNorm": batch_norm,
    "GroupNorm": group_norm,
    "LayerScale": layer_scale,
    "RoPE": rope,
    "KVCacheUpdate": kv_cache_update,
    "AllGather": all_gather,
    "AllReduce": all_reduce,
}
