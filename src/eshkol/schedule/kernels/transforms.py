"""The rows that compiled graphs have for Fourier transforms: of complex numbers as pairs.

One is an array instruction (`fourier`): signals side by side, or long ones in parts. The other (`signals`) is native
code of machines that have it: signals one by one or side by side, by tables that are made here. Those of real numbers
are transforms of half the length, with something done after them or before them: by the same code (`split_signals`,
`joined_signals`), or around the instruction (`halves_split`, `halves_joined`). No user calls these rows:
`rewrite/pairs.py` makes them of `dft`, after derivatives have been taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.table.linear import LONGEST_FFT
from eshkol.graph.node import Node, buffer, make
from eshkol.ops.dtypes import DType
from eshkol.ops.row import NATIVE, Aval, HasAval, KernelOp, Macro, Op, Shape, row
from eshkol.ops.shapes import count


class Fourier(NamedTuple):
    """factor · the sum of x[j] · exp(∓2πi·jk/n) over j along an axis; the last axis holds the parts."""

    axis: int
    inverse: bool
    factor: float


def is_transformed(x: HasAval, axis: int) -> bool:
    """Whether the instruction takes transforms of such complex numbers along an axis."""
    return 1 <= x.shape[axis] <= LONGEST_FFT


def _fourier(a: Fourier, x: Any) -> Any:
    numbers = x[..., 0] + 1j * x[..., 1]
    found = np.fft.ifft(numbers, axis=a.axis, norm="forward") if a.inverse else np.fft.fft(numbers, axis=a.axis)
    return np.stack([found.real, found.imag], axis=-1) * np.asarray(a.factor, x.dtype)


def _macro_fourier(b: Any, a: Fourier, out: Any, x: Any) -> None:
    n = x.shape[a.axis]
    before, after = count(x.shape[: a.axis]), count(x.shape[a.axis + 1 : -1])
    scale = a.factor * n if a.inverse else a.factor  # the instruction's inverse divides by n
    b.fft(out.ty, out.address, x.address, n=n, inverse=a.inverse, batch=before, inner=after, scale=scale)


FOURIER: Op = row(KernelOp(
    name="fourier", doc="factor · the Fourier transforms of pairs along an axis.", names=("x",),
    infer=lambda a, x: Aval(x.shape, x.dtype), reference=_fourier, lower=Macro(_macro_fourier), tolerance=2.0,
))  # fmt: skip


# --- with tables ------------------------------------------------------------------------------------

TABLES_KEPT = 16
GREATEST_RADIX = 61  # as in fourier.h: above, the sums of a pass cost more than Bluestein's way
LONGEST_SIGNAL = 1 << 15  # what one core works on stays in its second-level cache
LONGEST_ALONE = 1 << 14  # of which one core takes no longer than several do to share them
LONGEST_TOGETHER = 1 << 12  # of which a register's worth, side by side, stays there
MANY = 8  # signals that are better transformed by the instruction where they are longer than that
ALONE = 256  # and a multiple of 8 without radices above: a row that is as good alone, and stays in the first cache
PLANE = 1 << 18  # bytes of a matrix of which rows and columns are transformed while it is in the second cache,
MANY_PLANES = 16  # where each of so many is worked on by one thread
ODD_PARTS = [5**fives * 3**threes for fives in range(4) for threes in range(5)]  # of lengths that are looked at
COSTS = {2: 1.5, 3: 2.2, 4: 2.0, 5: 3.2, 8: 2.8}  # of a pass, for each number


class Signals(NamedTuple):
    """A transform along an axis as `Fourier`'s, and how it is made: of which length, in passes of which radices.

    Signals are transformed together, as many of them as a register has lanes, or one by one.
    """

    axis: int
    inverse: bool
    factor: float
    length: int
    radices: tuple[int, ...]
    together: bool


def radices(n: int) -> tuple[int, ...] | None:
    """The radices of the passes of a transform; None if one would be too great."""
    twos = (n & -n).bit_length() - 1
    rest = n >> twos
    # Those of 8 come first: every pass after them then goes over so many numbers at a time, or more.
    found = [8] * (twos // 3) + [[], [2], [4]][twos % 3]
    for odd in range(3, GREATEST_RADIX + 1, 2):
        while rest % odd == 0:
            found.append(odd)
            rest //= odd
    return tuple(found) if rest == 1 else None


def length_for(n: int) -> int:
    """The length of the transforms that are made for one of n numbers: n, or what is quickest for Bluestein's way."""
    if radices(n) is not None:
        return n
    least = 2 * n - 1
    best, cost = 0, math.inf
    for odd in ODD_PARTS:
        length = odd << max(2, (-(-least // odd) - 1).bit_length())
        wanted = length * sum(COSTS[r] for r in radices(length) or ())
        if wanted < cost:
            best, cost = length, wanted
    return best


def suits_signals(x: HasAval, axis: int) -> bool:
    """Whether signals along an axis are best transformed by native code: such as one core has room for."""
    n, inner = x.shape[axis], count(x.shape[axis + 1 :])
    signals, length = count(x.shape) // n, length_for(n)
    if length > (LONGEST_ALONE if signals == 1 else LONGEST_SIGNAL):
        return False
    return length != n or n <= LONGEST_TOGETHER or (inner == 1 and (signals < MANY or _is_in_eights(n)))


def _are_together(n: int, inner: int) -> bool:
    """Whether signals of a length that has small factors are best transformed side by side.

    Columns are, and rows, which have to be turned over for it, where not all passes are vectors for each of them alone.
    """
    return n <= LONGEST_TOGETHER and (inner > 1 or not _is_in_eights(n))


def _is_in_eights(n: int) -> bool:
    return n >= ALONE and n % 8 == 0 and max(radices(n) or (n,)) <= 8


def unit(turns: Any, n: int) -> Any:
    """e^(-2πi·turns/n), by angles of an eighth of a turn at most."""
    turns = np.asarray(turns) % n
    eighth, place = np.divmod(turns * 8, n)  # place / 8n of a turn beyond so many eighths
    odd = eighth % 2
    angle = np.where(odd, n - place, place) * (np.pi / (4 * n))
    cosine, sine = np.cos(angle), np.sin(angle)
    steep = ((eighth + 1) // 2) % 2 == 1  # nearer to the imaginary axis
    re, im = np.where(steep, sine, cosine), np.where(steep, cosine, sine)
    re = np.where((eighth >= 2) & (eighth < 6), -re, re)
    return re - 1j * np.where(eighth >= 4, -im, im)


def chirp_of(n: int, length: int) -> tuple[Any, Any]:
    """What n numbers are multiplied by, so that their transform is a convolution of that length; and with what."""
    places = np.arange(n)
    chirp = unit(places * places, 2 * n)
    ends = np.zeros(length, complex)
    ends[:n] = np.conj(chirp)
    ends[length - n + 1 :] = np.conj(chirp[:0:-1])
    return chirp, ends


@lru_cache(TABLES_KEPT)
def signal_table(n: int, dtype: DType) -> Node:
    """What `eshkol_fourier` reads for transforms of n numbers."""
    length = length_for(n)
    parts: list[Any] = []
    s = 1
    for r in radices(length) or ():
        m = length // (s * r)
        if r not in (2, 3, 4, 5, 7, 8):
            few = np.arange(1, r // 2 + 1)
            roots = unit(np.outer(few, few), r)
            parts += [roots.real, -roots.imag]
        for k in range(1, r):
            turn = unit(np.arange(m) * k, m * r)
            parts += [turn.real, turn.imag]
        s *= r
    if length != n:
        chirp, ends = chirp_of(n, length)
        spectrum = np.fft.fft(ends) / length
        parts += [chirp.real, chirp.imag, spectrum.real, spectrum.imag]
    return buffer(np.concatenate([np.ravel(part) for part in parts] or [np.zeros(1)]).astype(dtype.numpy), dtype)


SIGNALS: Op = row(KernelOp(
    name="signals", doc="factor · the Fourier transforms of pairs along an axis, by tables.", names=("x", "table"),
    infer=lambda a, x, table: Aval(x.shape, x.dtype),
    reference=lambda a, x, table: _fourier(Fourier(a.axis, a.inverse, a.factor), x), lower=NATIVE, tolerance=2.0,
))  # fmt: skip


def _is_native(pairs: HasAval, axis: int, target: MachineDescription) -> bool:
    return target.native and suits_signals(Aval(pairs.shape[:-1], pairs.dtype), axis)


def _signals(shape: Shape, axis: int, inverse: bool) -> Signals:
    """How transforms of pairs of a shape are made."""
    n, inner = shape[axis], count(shape[axis + 1 : -1])
    length = length_for(n)
    return Signals(axis, inverse, 1.0, length, radices(length) or (), length == n and _are_together(n, inner))


def transformed(pairs: Node, axis: int, inverse: bool, target: MachineDescription) -> Node:
    """The transforms of pairs along an axis, as the machine is best at."""
    n = pairs.shape[axis]
    if _is_native(pairs, axis, target):
        return make(SIGNALS, (pairs, signal_table(n, pairs.dtype)), _signals(pairs.shape, axis, inverse))
    return make(FOURIER, (pairs,), Fourier(axis, inverse, 1.0))


# --- real numbers -----------------------------------------------------------------------------------


class Halves(NamedTuple):
    """Which way the transform goes, of what factor, and how many complex numbers stand for the real ones.

    Of what is joined, all elements but the first and that in the middle may count twice.
    """

    inverse: bool
    factor: float
    half: int
    twice: bool = False


class HalvesOfSignals(NamedTuple):
    """The same, and how the transforms are made."""

    halves: Halves
    signals: Signals

    @property
    def factor(self) -> float:
        return self.halves.factor

    def scaled(self, factor: float) -> HalvesOfSignals:
        return self._replace(halves=self.halves._replace(factor=factor))


@lru_cache(TABLES_KEPT)
def turns(n: int, dtype: DType) -> Node:
    """e^(-2πi·k/n) for k = 0 … n/2, as pairs."""
    angles = np.arange(n // 2 + 1) * (-2 * np.pi / n)
    return buffer(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(dtype.numpy), dtype)


def _numbers(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


def _pairs(x: Any) -> Any:
    return np.stack([x.real, x.imag], axis=-1)


def _turned(a: Halves, table: Any) -> Any:
    found = _numbers(table)
    return np.conj(found) if a.inverse else found


def _split(a: Halves, x: Any, table: Any) -> Any:
    z = _numbers(x)
    z = np.concatenate([z, z[..., :1]], axis=-1)
    other = np.conj(z[..., ::-1])
    return _pairs(((z + other) - 1j * _turned(a, table) * (z - other)) * (a.factor / 2)).astype(x.dtype)


def _joined(a: Halves, x: Any, table: Any) -> Any:
    g = np.zeros((*x.shape[:-2], a.half + 1), _numbers(x[..., :0, :]).dtype)
    g[..., : x.shape[-2]] = _numbers(x) / (1 if a.twice else 2)
    g[..., [0, -1]] = g[..., [0, -1]].real * (1 if a.twice else 2)
    other = np.conj(g[..., ::-1])
    found = (g + other) + 1j * _turned(a, table) * (g - other)
    return _pairs(found[..., : a.half] * a.factor).astype(x.dtype)


def _halves(name: str, doc: str, reference: Any, more: int) -> Op:
    return row(KernelOp(
        name=name, doc=doc, names=("x", "turns"),
        infer=lambda a, x, table: Aval((*x.shape[:-2], a.half + more, 2), x.dtype), reference=reference, lower=NATIVE,
        tolerance=2.0,
    ))  # fmt: skip


SPLIT = _halves(
    "halves_split", "factor · the first half of the transforms of real numbers, by those of pairs of them.", _split, 1
)
JOINED = _halves(
    "halves_joined", "What factor · the real parts of transforms are the transforms of, as pairs.", _joined, 0
)


def _whole(a: HalvesOfSignals, x: Any) -> Any:
    return _fourier(Fourier(x.ndim - 2, a.halves.inverse, 1.0), x).astype(x.dtype)


def _of_signals(name: str, doc: str, reference: Any, more: int) -> Op:
    return row(KernelOp(
        name=name, doc=doc, names=("x", "table", "turns"),
        infer=lambda a, x, *tables: Aval((*x.shape[:-2], a.halves.half + more, 2), x.dtype), reference=reference,
        lower=NATIVE, tolerance=2.0,
    ))  # fmt: skip


SPLIT_SIGNALS = _of_signals(
    "split_signals", "`halves_split` of `signals`.", lambda a, x, table, turns: _split(a.halves, _whole(a, x), turns), 1
)
JOINED_SIGNALS = _of_signals(
    "joined_signals", "`signals` of `halves_joined`.",
    lambda a, x, table, turns: _whole(a, _joined(a.halves, x, turns)), 0,
)  # fmt: skip


# --- both axes of matrices --------------------------------------------------------------------------


class Planes(NamedTuple):
    """How rows are transformed, and then columns."""

    rows: Signals | HalvesOfSignals
    columns: Signals

    @property
    def factor(self) -> float:
        return self.columns.factor

    def scaled(self, factor: float) -> Planes:
        return self._replace(columns=self.columns._replace(factor=factor))


def _rows_of_planes(a: Planes, x: Any, tables: Sequence[Any]) -> Any:
    if isinstance(a.rows, Signals):
        return _fourier(Fourier(a.rows.axis, a.rows.inverse, a.rows.factor), x)
    return _split(a.rows.halves, _whole(a.rows, x), tables[1])


def _infer_planes(a: Planes, x: HasAval, *tables: HasAval) -> Aval:
    more = 0 if isinstance(a.rows, Signals) else 1
    return Aval((*x.shape[:-2], x.shape[-2] + more, 2), x.dtype)


def _planes(a: Planes, x: Any, *tables: Any) -> Any:
    columns = Fourier(a.columns.axis, a.columns.inverse, a.columns.factor)
    return _fourier(columns, _rows_of_planes(a, x, tables)).astype(x.dtype)


PLANES: Op = row(KernelOp(
    name="signals_of_planes", doc="`signals` along the last axis but one of those, or `split_signals`, along the last.",
    names=("x", "table", "turns", "columns"), infer=_infer_planes, reference=_planes, lower=NATIVE,
    tolerance=4.0,
))  # fmt: skip


def as_planes(columns: Node) -> Node:
    """Transforms along the last axis but one of rows' transforms: both of a matrix at once, if it stays in a cache."""
    rows = columns.inputs[0]
    if columns.op is not SIGNALS or rows.data is not None or rows.op not in (SIGNALS, SPLIT_SIGNALS):
        return columns
    shape, axis = columns.shape, len(columns.shape) - 2
    bytes_of_one = count(shape[-3:]) * columns.dtype.size
    of_rows = rows.op is SPLIT_SIGNALS or rows.attrs.axis == axis
    if columns.attrs.axis != axis - 1 or not of_rows or bytes_of_one > PLANE or count(shape[:-3]) < MANY_PLANES:
        return columns
    return make(PLANES, (*rows.inputs, columns.inputs[1]), Planes(rows.attrs, columns.attrs))


def spectrum_of_pairs(pairs: Node, a: Halves, target: MachineDescription) -> Node:
    """The first half, and one element, of the transforms of real numbers along the last axis, which come as pairs."""
    dtype, axis = pairs.dtype, len(pairs.shape) - 2
    if _is_native(pairs, axis, target):
        attrs = HalvesOfSignals(a, _signals(pairs.shape, axis, a.inverse))
        return make(SPLIT_SIGNALS, (pairs, signal_table(a.half, dtype), turns(2 * a.half, dtype)), attrs)
    return make(SPLIT, (transformed(pairs, axis, a.inverse, target), turns(2 * a.half, dtype)), a)


def pairs_of_spectrum(spectrum: Node, a: Halves, target: MachineDescription) -> Node:
    """The real parts of transforms along the last axis, as pairs, of complex numbers of which half is 0."""
    dtype, axis = spectrum.dtype, len(spectrum.shape) - 2
    joined = Aval((*spectrum.shape[:-2], a.half, 2), dtype)
    if _is_native(joined, axis, target):
        attrs = HalvesOfSignals(a, _signals(joined.shape, axis, a.inverse))
        return make(JOINED_SIGNALS, (spectrum, signal_table(a.half, dtype), turns(2 * a.half, dtype)), attrs)
    return transformed(make(JOINED, (spectrum, turns(2 * a.half, dtype)), a), axis, a.inverse, target)
