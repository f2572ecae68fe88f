"""Functions that are planned for `plan_sizes.txt`: linear algebra as loops, transforms, exponentials, random bits.

`planned_functions.py` says for which inputs and machines.
"""

from __future__ import annotations

from typing import Any

import eshkol as ek


def symmetric(x: Any, y: Any, z: Any) -> Any:
    """Eigenvalues by rotations: of one, two, an odd number and an even number of rows, of many matrices, of none."""
    ones, twos, few = x[:, :1, :1], x[:, :2, :2], x[:, :3, :3]
    return *ek.eigh(ones), *ek.eigh(twos), *ek.eigh(few), *ek.eigh(x), ek.eigvalsh(y), ek.eigvalsh(ones), *ek.eigh(z)


def singular(x: Any, y: Any, z: Any) -> Any:
    """Singular values by rotations: of high and wide matrices, with all vectors and without any."""
    high, wide, column = x[:, :, :3], x[:, :2], x[:, :, :1]
    return (
        *ek.svd(high), *ek.svd(wide), *ek.svd(high, full_matrices=True), *ek.svd(wide, full_matrices=True),
        *ek.svd(column), ek.svdvals(y), ek.svdvals(y.T[:2]), ek.svdvals(z), *ek.svd(z),
    )  # fmt: skip


def inverses(x: Any) -> Any:
    return ek.pinv(x), ek.pinv(x.swapaxes(-1, -2))


def factored(x: Any, z: Any) -> Any:
    """Factors of matrices that are not square, and of none."""
    return *ek.lu(x[:, :2]), *ek.lu(x[:, :, :2]), *ek.qr(x[:, :2]), *ek.qr(x[:, :, :2]), *ek.lu(z), ek.det(z)


def exponentials(x: Any, z: Any, y: Any) -> Any:
    """Of one matrix, of many, of complex ones, of none, and in a loop."""
    looped = ek.scan(lambda s, r: (ek.expm(s) * 0.1 + r, None), x[0], x)[0]
    return ek.expm(x), ek.expm(x[0]), ek.expm(z), ek.expm(y), looped, ek.expm(x.astype(ek.float64))


def draws(key: Any, x: Any) -> Any:
    """Random bits, many and few, of both sizes, an odd number of them, in a loop, for many keys."""
    bits = ek.random.bits
    looped = ek.scan(lambda s, r: (s + ek.random.normal(key, (40, 50)) * r, None), x, x[:3, 0])[0]
    keys = ek.split_key(key, 3)
    return (
        bits(key, (2000,)), bits(key, (33, 41)), bits(key, (1100,), "uint64"), bits(key, (31, 37), "uint64"),
        bits(key, (1023,)), bits(key, (32, 32)), ek.random.uniform(key, (30, 70)), ek.random.normal(key, (3, 4)),
        ek.vmap(lambda k: bits(k, (1025,)))(keys), ek.vmap(lambda k: bits(k, (1024,), "uint64"))(keys), looped,
        ek.random.bernoulli(key, 0.5, (40, 50)),
    )  # fmt: skip


def spectra(x: Any, z: Any, i: Any) -> Any:
    """Transforms on blocks, of every kind of length: radices that are prime, powers of two, chirps; real ones."""
    lengths = (1, 2, 3, 4, 6, 7, 8, 11, 12, 13, 15, 16, 17, 32, 34, 64)
    return (
        *(ek.fft(z[:, :n]) for n in lengths), ek.ifft(z[:, :15]) * 3, ek.ifft(z[:, :19]), ek.fft(x[:, :24]),
        ek.rfft(x[:, :20]) * 2, ek.irfft(z[:, :9], 16), ek.rfft(x[:, :9]), ek.irfft(z[:, :5], 9), ek.fft(i),
        ek.real(ek.fft(x[:, :10])), ek.fft2(z[:, :6]), ek.fft(z[:, :0], 4), ek.fft(z[:0]),
    )  # fmt: skip


def spectra_across(z: Any, y: Any) -> Any:
    """Signals that lie side by side, and ones that are longer than a block has room for."""
    return (
        ek.fft(z, axis=1),
        ek.ifft(z, axis=0),
        ek.fft(z[:, :, :1], axis=1),
        ek.fft(y),
        ek.ifft(y.reshape(-1, 3), axis=0),
    )


def spectra_in_rounds(x: Any, z: Any) -> Any:
    return ek.scan(lambda s, r: (ek.ifft(ek.fft(s) * r), None), z[0], z)[0], ek.fft(x.astype(ek.float64))[:, :3]
