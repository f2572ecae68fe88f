"""Random bits that are a function of a key and of an element's place alone, and keys made from keys.

The generator is Threefry2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
3", 2011): additions, rotations and exclusive ors of 32-bit words turn a key of two words and a counter of two words
into two words. Whoever computes element i counts to the block that it lies in, so neither threads nor launches nor
backends change a bit.

A key is a tensor of shape (2,) and dtype uint32: data like any other, that may be batched and traced. Counters below
2^62 are for draws; those above 2^63 for keys made of keys, in two ranges. So no draw of a key shares a block with the
keys split off it or folded from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.dtypes import DType, uint32, uint64
from eshkol.ops.movement import align, reshape
from eshkol.ops.row import Aval, Draw, HasAval, NoDerivative, Pull, Shape, Value, composite, primitive, sample
from eshkol.support.threefry import ARRAYS, NUMBERS, WordArithmetic, threefry

GROUP = "random"
DRAWS, SPLITS, FOLDS = 0, 0x80000000, 0xC0000000  # what is added to a counter's high word
MOST_BLOCKS = 1 << 62

KEY = Draw((2,), 0, 2**32 - 1, kind="key")
_BITS = NoDerivative("bits do not vary smoothly")


def _scalars(e: Any) -> WordArithmetic:
    def rotate(x: Any, by: int) -> Any:
        return e.op("OR", e.op("SHL", x, by), e.op("SHR", x, 32 - by))

    return WordArithmetic(lambda x, y: e.op("ADD", x, y), lambda x, y: e.op("XOR", x, y), rotate)


def _block(key: Any, counter: Any, range_: int) -> tuple[Any, Any]:
    """The words of blocks on the host, for counters that broadcast with the keys."""
    key, counter = np.asarray(key), np.asarray(counter, np.uint64)
    high = ((counter >> np.uint64(32)) | np.uint64(range_)).astype(np.uint32)
    low = (counter & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    with np.errstate(over="ignore"):
        return threefry(ARRAYS, (key[..., 0], key[..., 1]), (high, low))


def _checked(key: HasAval) -> None:
    if key.dtype is not uint32 or key.shape[-1:] != (2,):
        raise TensorError(
            f"a key of random numbers is uint32[2], not {key.dtype}{list(key.shape)}",
            hint="make one from a seed, or split one",
        )


# --- draws ----------------------------------------------------------------------------------------


class Bits(NamedTuple):
    shape: Shape
    dtype: DType
    range: int  # DRAWS or SPLITS


def _infer_bits(a: Bits, key: HasAval) -> Aval:
    _checked(key)
    if shapes.count(a.shape) > MOST_BLOCKS:
        raise ShapeError(f"a key gives no {shapes.count(a.shape)} numbers, for shape {list(a.shape)}")
    return Aval((*key.shape[:-1], *a.shape), a.dtype)


def _bits(a: Bits, key: Any) -> Any:
    count = shapes.count(a.shape)
    blocks = np.arange(count if a.dtype is uint64 else -(-count // 2), dtype=np.uint64)
    high, low = _block(key[..., None, :], blocks, a.range)
    if a.dtype is uint64:
        flat = high.astype(np.uint64) << np.uint64(32) | low
    else:
        flat = np.stack((high, low), axis=-1).reshape(*key.shape[:-1], 2 * len(blocks))[..., :count]
    return flat.reshape((*key.shape[:-1], *a.shape))


def words_of_block(e: Any, key: tuple[Any, Any], counter: Any, range_: int, blocks: int) -> tuple[Any, Any]:
    """The words of one of so many blocks, as scalar code."""
    high = e.constant(range_, uint32)
    if blocks > 1 << 32:
        high = e.op("OR", e.convert(counter // (1 << 32), uint32), high)
    return threefry(_scalars(e), key, (high, e.convert(counter, uint32)))


def _pull_bits(e: Any, a: Bits, i: Any, key: Any) -> Any:
    """An element of uint64 is a block; two of uint32 share one."""
    keys = len(key.shape) - 1
    place = e.ravel(i if keys == 0 else i[keys:], a.shape)
    counter = place if a.dtype is uint64 else place // 2
    of_key = (key([*(i[k] for k in range(keys)), 0]), key([*(i[k] for k in range(keys)), 1]))
    one, other = words_of_block(e, of_key, counter, a.range, shapes.count(a.shape))
    if a.dtype is uint64:
        return e.op("OR", e.op("SHL", e.convert(one, uint64), 32), e.convert(other, uint64))
    return e.select(e.compare("EQ", place % 2, 0), one, other)


def _batch_bits(a: Bits, inputs: Any, batched: Any) -> Any:
    return inputs[0].apply(random_bits, inputs, a)


@primitive(
    group=GROUP, method=False, infer=_infer_bits, reference=_bits, derivative=_BITS, batch=_batch_bits,
    lower=Pull(_pull_bits),
    samples=(
        sample(KEY, shape=(2, 3)), sample(KEY, shape=5, dtype="uint64"), sample(KEY, shape=()),
        sample(KEY, shape=(0, 2)), sample(Draw((3, 2, 2), 0, 2**32 - 1, kind="key"), shape=(2, 3)),
    ),
)  # fmt: skip
def random_bits(key: Value, shape: int | Shape, dtype: Any = "uint32") -> Bits:
    """Random uint32 or uint64, a function of the key and the place in the shape alone.

    Keys of shape (..., 2) give each what it gives alone.
    """
    found = dtypes.of(dtype)
    if found not in (uint32, uint64):
        raise DTypeError(f"random bits are uint32 or uint64, not {found}", hint="randint has every integer dtype")
    return Bits(shapes.extents(shape), found, DRAWS)


# --- keys of keys ---------------------------------------------------------------------------------


def host_split(key: Any, count: int = 2) -> Any:
    """What `split_key` gives, of NumPy's arrays."""
    return _bits(Bits((count, 2), uint32, SPLITS), np.asarray(key, np.uint32))


@composite(
    group=GROUP, method=False, reference=host_split,
    samples=(sample(KEY), sample(KEY, count=3), sample(KEY, count=0)),
)  # fmt: skip
def split_key(key: Value, count: int = 2) -> Any:
    """count new keys (count, 2), whose numbers are independent of each other's and of those of the key itself."""
    (wanted,) = shapes.extents(count)
    return key.apply(random_bits, (key,), Bits((wanted, 2), uint32, SPLITS))


def _infer_fold(a: None, key: HasAval, number: HasAval) -> Aval:
    _checked(key)
    if not number.dtype.is_integer:
        raise DTypeError(f"a key is folded with an integer, not with {number.dtype}", hint="cast it to int64 first")
    return Aval((*shapes.broadcast(key.shape[:-1], number.shape), 2), uint32)


def _fold(a: None, key: Any, number: Any) -> Any:
    counter = np.asarray(number).astype(np.uint64) & np.uint64(MOST_BLOCKS - 1)
    return np.stack(_block(key, counter, FOLDS), axis=-1)


def host_fold_in(key: Any, number: int) -> Any:
    """What `fold_in` gives for one key, without NumPy's arithmetic: a step of training waits for it."""
    high, low = divmod(number & (MOST_BLOCKS - 1), 1 << 32)
    return np.array(threefry(NUMBERS, (int(key[0]), int(key[1])), (high | FOLDS, low)), np.uint32)


def _pull_fold(e: Any, a: None, i: Any, key: Any, number: Any) -> Any:
    outer = len(i) - 1

    def own(shape: Shape) -> list[Any]:
        """The place in a shape that broadcasts over all but the last axis."""
        return [0 if n == 1 else i[outer - len(shape) + k] for k, n in enumerate(shape)]

    counter = e.convert(number(own(number.shape)), uint64)
    high = e.convert(e.op("SHR", counter, 32), uint32)
    high = e.op("OR", high, e.constant(FOLDS, uint32))  # whose bits are those that counters of draws lack
    # Where all lanes share one key and number, LLVM's vectorizer takes time exponential in the length of what they
    # share. No place is as great as 2^62, which it cannot know: so they seem to differ.
    shape = (*shapes.broadcast(key.shape[:-1], number.shape), 2)
    high = e.op("OR", high, e.convert(e.ravel(i, shape) // MOST_BLOCKS, uint32))
    of_key = tuple(key([*own(key.shape[:-1]), word]) for word in (0, 1))
    one, other = threefry(_scalars(e), of_key, (high, e.convert(counter, uint32)))
    return e.select(e.compare("EQ", i[outer], 0), one, other)


def _batch_fold(a: None, inputs: Any, batched: Any) -> Any:
    key, number = inputs
    key, number = align((key, reshape(number, (*number.shape, 1))), batched)
    return fold_in(key, reshape(number, number.shape[:-1]))


@primitive(
    group=GROUP, method=False, infer=_infer_fold, reference=_fold, derivative=_BITS, batch=_batch_fold,
    lower=Pull(_pull_fold), dtypes=("int",),
    samples=(
        sample(KEY, Draw((), 0, 100)), sample(KEY, Draw((3,), 0, 100)),
        sample(Draw((3, 2), 0, 2**32 - 1, kind="key"), Draw((2, 1), 0, 100)), sample(KEY, Draw((0,), 0, 1)),
    ),
)  # fmt: skip
def fold_in(key: Value, number: Value) -> None:
    """The key that belongs to a key and a number (modulo 2^62): a different one for each, independent of the rest."""
    if isinstance(number, int) and not 0 <= number < MOST_BLOCKS:
        raise TensorError(f"a key is folded with numbers from 0 to 2^62 - 1, not with {number}")
