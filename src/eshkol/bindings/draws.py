"""Random numbers one by one, for Scheme: `(random)`, `(random-int 0 10)` and their like.

To compute a tensor of one element takes long, so words of 64 random bits are drawn a block at a time, on the host, with
keys of everybody's generator (`tensors/keys.py`). A seed gives the same numbers again, on every machine: `rng-seed`
begins that generator anew, which drops what is left of a block. Tensors of them are in `draw_tensors.py`.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from eshkol.bindings.rows import Function, check_untraced, drawn, next_key, shown
from eshkol.errors import TensorError
from eshkol.ops import TABLE, dtypes
from eshkol.ops.random import DRAWS, Bits, random_bits
from eshkol.tensors import keys
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor

BLOCK = 1024  # words


class RandomWords:
    """The words of everybody's generator."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: list[int] = []
        self._root: Any = None

    def next(self) -> int:
        """64 random bits."""
        check_untraced()
        with self._lock:
            root = keys.default.root
            if not self._left or root is not self._root:
                key = next_key()._array()
                self._root = root
                self._left = random_bits.reference(Bits((BLOCK,), dtypes.uint64, DRAWS), key).tolist()
                self._left.reverse()
            return self._left.pop()

    def unit(self) -> float:
        """A number from 0 to below 1, of 53 bits."""
        return (self.next() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """An integer from 0 to below a bound, all equally likely."""
        bits = (bound - 1).bit_length()
        while True:
            word, have = 0, 0
            while have < bits:
                word, have = word << 64 | self.next(), have + 64
            if (found := word >> (have - bits)) < bound:
                return found


WORDS = RandomWords()


def seed(number: Any) -> None:
    """Let all random numbers begin again from a seed, an integer from 0 to 2^64 - 1."""
    keys.seed(number)


def key(number: Any) -> Tensor:
    """The key that a seed stands for."""
    return adopted(keys.key_of(number))


def random(limit: Any = None) -> Any:
    """A number from 0 to below 1; with an exact integer, one of the integers below it; else a number below it."""
    if limit is None:
        return WORDS.unit()
    if type(limit) is int and limit > 0:
        return WORDS.below(limit)
    if type(limit) is float and 0 < limit < math.inf:
        return WORDS.unit() * limit
    raise TensorError(f"the limit is a positive number, not {shown(limit)}")


def _scalar(given: Any) -> bool:
    return type(given) in (int, float)


def _uniform(low: float, high: float) -> float:
    return low + (high - low) * WORDS.unit()


def _normal(loc: float, scale: float) -> float:
    far = math.sqrt(-2.0 * math.log1p(-WORDS.unit()))
    return loc + scale * far * math.cos(2.0 * math.pi * WORDS.unit())


def _one_by_one(name: str, defaults: tuple[float, float], draw: Function) -> Function:
    """The row of a distribution; one number of plain parameters is drawn on the host."""
    many = drawn(TABLE[name])

    def function(*args: Any, **given: Any) -> Any:
        if not given and len(args) <= 2 and all(map(_scalar, args)):
            return draw(*(*map(float, args), *defaults[len(args) :]))
        return many(*args, **given)

    function.__doc__ = TABLE[name].doc
    return function


_integers = drawn(TABLE["randint"])
_coins = drawn(TABLE["bernoulli"])


def integer(*args: Any, **given: Any) -> Any:
    """Integers from low to below high, all equally likely; `:shape` for a tensor of them."""
    if not given and len(args) == 2 and all(type(n) is int for n in args):
        low, high = args
        if low >= high:
            raise TensorError(f"there is no integer from {low} to below {high}")
        return low + WORDS.below(high - low)
    return _integers(*args, **given)


def coin(*args: Any, **given: Any) -> Any:
    """#t with probability p, 0.5 unless given; `:shape` for a tensor of them."""
    if not given and len(args) <= 1 and all(map(_scalar, args)):
        p = float(args[0]) if args else 0.5
        if not 0.0 <= p <= 1.0:
            raise TensorError(f"a probability is between 0 and 1, not {p}")
        return WORDS.unit() < p
    return _coins(*args, **given)


FORMS: dict[str, Function] = {
    "uniform": _one_by_one("uniform", (0.0, 1.0), _uniform),
    "normal": _one_by_one("normal", (0.0, 1.0), _normal),
    "randint": integer,
    "bernoulli": coin,
}
