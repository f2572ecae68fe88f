"""The names of eshkol.jax.numpy.fft. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.tensors.methods import TensorLike

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "ifft", "ifft2", "ifftn", "ifftshift", "irfft", "rfft", "rfftfreq"]

def fft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The discrete Fourier transform along an axis, of n elements (cut off, or zeros added); the norm is as NumPy's.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def fft2(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] = ...,
    norm: builtins.str | None = None,
) -> Tensor:
    """The discrete Fourier transform along two axes, with lengths s.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def fftfreq(n: builtins.int, d: builtins.float = 1.0, dtype: DType | builtins.str | None = 'float32') -> Tensor:
    """The frequencies of the n elements of `fft`, in cycles per unit, for samples at distance d.

    Arguments:
        n: how many elements
        d: the distance of samples
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
def fftn(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] | None = None,
    norm: builtins.str | None = None,
) -> Tensor:
    """The discrete Fourier transform along axes: all, or as many of the last as s has lengths.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def fftshift(x: TensorLike, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle along axes (all of them by default).

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def ifft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fft`.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifft2(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] = ...,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fft2`.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifftn(
    x: TensorLike,
    s: Sequence[builtins.int] | None = None,
    axes: Sequence[builtins.int] | None = None,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `fftn`.

    Arguments:
        x: a tensor
        s: the lengths along the axes; shorter tensors are filled with zeros
        axes: the axis or axes; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def ifftshift(x: TensorLike, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Arguments:
        x: a tensor
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def irfft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The inverse of `rfft`: n real numbers, 2·(m - 1) unless given for m elements.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def rfft(
    x: TensorLike,
    n: builtins.int | None = None,
    axis: builtins.int = -1,
    norm: builtins.str | None = None,
) -> Tensor:
    """The first n//2 + 1 elements of the `fft` of real numbers; the others are their conjugates.

    Arguments:
        x: a tensor
        n: how many elements
        axis: the axis; negative numbers count from the last one
        norm: "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
    """
    ...
def rfftfreq(n: builtins.int, d: builtins.float = 1.0, dtype: DType | builtins.str | None = 'float32') -> Tensor:
    """The frequencies of the elements of `rfft`, in cycles per unit, for n samples at distance d.

    Arguments:
        n: how many elements
        d: the distance of samples
        dtype: the dtype of the result, as ek.float32 or by name
    """
    ...
