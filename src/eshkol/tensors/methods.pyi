"""The methods of `Tensor` that follow from the op table. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

import numpy

TensorLike: TypeAlias = Tensor | numpy.ndarray[Any, Any] | numpy.generic | builtins.complex | Sequence[Any]

class Methods:
    def __add__(self, other: TensorLike) -> Tensor: ...
    def __radd__(self, other: TensorLike) -> Tensor: ...
    def __sub__(self, other: TensorLike) -> Tensor: ...
    def __rsub__(self, other: TensorLike) -> Tensor: ...
    def __mul__(self, other: TensorLike) -> Tensor: ...
    def __rmul__(self, other: TensorLike) -> Tensor: ...
    def __truediv__(self, other: TensorLike) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike) -> Tensor: ...
    def __floordiv__(self, other: TensorLike) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
    def __mod__(self, other: TensorLike) -> Tensor: ...
    def __rmod__(self, other: TensorLike) -> Tensor: ...
    def __pow__(self, other: TensorLike) -> Tensor: ...
    def __rpow__(self, other: TensorLike) -> Tensor: ...
    def __matmul__(self, other: TensorLike) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike) -> Tensor: ...
    def __and__(self, other: TensorLike) -> Tensor: ...
    def __rand__(self, other: TensorLike) -> Tensor: ...
    def __or__(self, other: TensorLike) -> Tensor: ...
    def __ror__(self, other: TensorLike) -> Tensor: ...
    def __xor__(self, other: TensorLike) -> Tensor: ...
    def __rxor__(self, other: TensorLike) -> Tensor: ...
    def __lshift__(self, other: TensorLike) -> Tensor: ...
    def __rlshift__(self, other: TensorLike) -> Tensor: ...
    def __rshift__(self, other: TensorLike) -> Tensor: ...
    def __rrshift__(self, other: TensorLike) -> Tensor: ...
    def __lt__(self, other: TensorLike) -> Tensor: ...
    def __le__(self, other: TensorLike) -> Tensor: ...
    def __gt__(self, other: TensorLike) -> Tensor: ...
    def __ge__(self, other: TensorLike) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __iadd__(self, other: TensorLike) -> Tensor: ...
    def __iand__(self, other: TensorLike) -> Tensor: ...
    def __ifloordiv__(self, other: TensorLike) -> Tensor: ...
    def __imod__(self, other: TensorLike) -> Tensor: ...
    def __imul__(self, other: TensorLike) -> Tensor: ...
    def __ior__(self, other: TensorLike) -> Tensor: ...
    def __ipow__(self, other: TensorLike) -> Tensor: ...
    def __isub__(self, other: TensorLike) -> Tensor: ...
    def __itruediv__(self, other: TensorLike) -> Tensor: ...
    def __ixor__(self, other: TensorLike) -> Tensor: ...
    def abs(self) -> Tensor:
        """|x|; of a complex number its modulus. The derivative at 0 is 0.

        Arguments:
            x: a tensor
        """
        ...
    def absolute(self) -> Tensor:
        """|x|; of a complex number its modulus. The derivative at 0 is 0.

        Arguments:
            x: a tensor
        """
        ...
    def acos(self) -> Tensor:
        """The angle in radians whose cosine is x.

        Arguments:
            x: a tensor
        """
        ...
    def acosh(self) -> Tensor:
        """The number, not negative, whose cosh is x.

        Arguments:
            x: a tensor
        """
        ...
    def add(self, y: TensorLike) -> Tensor:
        """x + y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def add_(self, other: Any) -> Tensor:
        """add in place; gives itself.
        """
        ...
    def all(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Whether every element along axes holds (is not 0); of none, it is true.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def allclose(
        self,
        y: TensorLike,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether all elements are close, in the sense of isclose.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            rtol: how large a difference is allowed, relative to the size of the numbers
            atol: how large a difference is allowed at least
            equal_nan: whether NaN counts as equal to NaN
        """
        ...
    def amax(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The greatest element along axes; NaN if one is; equal greatest ones share the tangent.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def amin(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The least element along axes; NaN if one is; equal least ones share the tangent.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def any(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Whether an element along axes holds (is not 0); of none, it is false.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def arccos(self) -> Tensor:
        """The angle in radians whose cosine is x.

        Arguments:
            x: a tensor
        """
        ...
    def arccosh(self) -> Tensor:
        """The number, not negative, whose cosh is x.

        Arguments:
            x: a tensor
        """
        ...
    def arcsin(self) -> Tensor:
        """The angle in radians whose sine is x.

        Arguments:
            x: a tensor
        """
        ...
    def arcsinh(self) -> Tensor:
        """The number whose sinh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def arctan(self) -> Tensor:
        """The angle in radians whose tangent is x.

        Arguments:
            x: a tensor
        """
        ...
    def arctan2(self, y: TensorLike) -> Tensor:
        """The angle of the point (y, x) in radians: atan2(y, x) of other systems, first operand upward.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def arctanh(self) -> Tensor:
        """The number whose tanh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def argmax(self, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Where the greatest element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def argmin(self, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
        """Where the least element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def argsort(
        self,
        axis: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = True,
    ) -> Tensor:
        """The positions along an axis that would put its elements in order; equal ones keep theirs.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            descending: whether the greatest comes first
            stable: whether equal elements keep their order; they always do
        """
        ...
    def argwhere(self) -> Tensor:
        """The positions of the elements that are not 0, one row of int64 each. x must be known.

        Arguments:
            x: a tensor
        """
        ...
    def asin(self) -> Tensor:
        """The angle in radians whose sine is x.

        Arguments:
            x: a tensor
        """
        ...
    def asinh(self) -> Tensor:
        """The number whose sinh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def astype(self, dtype: DType | builtins.str | None) -> Tensor:
        """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

        Arguments:
            x: a tensor
            dtype: the dtype of the result, as ek.float32 or by name
        """
        ...
    @property
    def at(self) -> Any: ...
    def atan(self) -> Tensor:
        """The angle in radians whose tangent is x.

        Arguments:
            x: a tensor
        """
        ...
    def atan2(self, y: TensorLike) -> Tensor:
        """The angle of the point (y, x) in radians: atan2(y, x) of other systems, first operand upward.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def atanh(self) -> Tensor:
        """The number whose tanh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    @overload
    def batch_norm(
        self,
        running_mean: TensorLike | None = None,
        running_var: TensorLike | None = None,
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        *,
        training: Literal[True],
        momentum: builtins.float = 0.1,
        eps: builtins.float = 1e-05,
        unbiased: builtins.bool = True,
    ) -> Tensor | builtins.tuple[Tensor, Tensor, Tensor]:
        ...
    @overload
    def batch_norm(
        self,
        running_mean: TensorLike | None = None,
        running_var: TensorLike | None = None,
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        training: Literal[False] = False,
        momentum: builtins.float = 0.1,
        eps: builtins.float = 1e-05,
        unbiased: builtins.bool = True,
    ) -> Tensor:
        """x normalized per channel (axis 1) by running statistics or, in training, by those of the batch.

        In training, if running statistics are given, the result comes with new ones: (y, mean, var), where momentum is
        the part of the new. The new variance is unbiased or, with unbiased=False, the one that x is divided by.

        Arguments:
            x: a tensor
            running_mean: the means of the channels so far
            running_var: the variances of the channels so far
            weight: what normalized channels are multiplied with
            bias: what is added, one number for each output; None adds nothing
            training: whether it is done as in training
            momentum: which part of the running statistics each batch replaces
            eps: a small number that keeps divisors away from 0
            unbiased: whether the new running variance is divided by n - 1 instead of n
        """
        ...
    @overload
    def batch_norm(
        self,
        running_mean: TensorLike | None = None,
        running_var: TensorLike | None = None,
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        training: builtins.bool = False,
        momentum: builtins.float = 0.1,
        eps: builtins.float = 1e-05,
        unbiased: builtins.bool = True,
    ) -> Tensor | builtins.tuple[Tensor, Tensor, Tensor]:
        ...
    def bilinear(self, y: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
        """xᵀ · weight[o] · y + bias for every o, along the last axes; the weight has the shape (out, in of x, in of y).

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            weight: the weights
            bias: what is added, one number for each output; None adds nothing
        """
        ...
    def bincount(
        self,
        weights: TensorLike | None = None,
        minlength: builtins.int = 0,
        length: builtins.int | None = None,
    ) -> Tensor:
        """How often each integer from 0 on occurs in a vector, or the sum of the weights where it does.

        The result has `length` elements; without it x must be known, and there are at least `minlength`.

        Arguments:
            x: a tensor
            weights: what each element counts; 1 unless given
            minlength: how many elements the result has at least
            length: how many positions
        """
        ...
    def bitwise_and(self, y: TensorLike) -> Tensor:
        """Bits set in both; of bools, whether both hold.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_and_(self, other: Any) -> Tensor:
        """bitwise_and in place; gives itself.
        """
        ...
    def bitwise_not(self) -> Tensor:
        """Every bit turned over; of bools, whether x does not hold.

        Arguments:
            x: a tensor
        """
        ...
    def bitwise_or(self, y: TensorLike) -> Tensor:
        """Bits set in either; of bools, whether either holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_or_(self, other: Any) -> Tensor:
        """bitwise_or in place; gives itself.
        """
        ...
    def bitwise_xor(self, y: TensorLike) -> Tensor:
        """Bits set in one of the two.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_xor_(self, other: Any) -> Tensor:
        """bitwise_xor in place; gives itself.
        """
        ...
    def block_until_ready(self) -> Tensor:
        """Compute it now; gives itself.
        """
        ...
    def bmm(self, y: TensorLike) -> Tensor:
        """The product of two stacks of as many matrices.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    @overload
    def broadcast_to(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent.

        Arguments:
            x: a tensor
            shape: the shape wanted; -1 keeps an extent
        """
        ...
    @overload
    def broadcast_to(self, *shape: builtins.int) -> Tensor:
        ...
    def bucketize(self, boundaries: TensorLike, right: builtins.bool = False) -> Tensor:
        """Between which sorted boundaries each element lies: how many are below it (with right: or equal to it).

        Arguments:
            x: a tensor
            boundaries: numbers in rising order
            right: whether equal elements count as below
        """
        ...
    def cast(self, dtype: DType | builtins.str | None) -> Tensor:
        """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

        Arguments:
            x: a tensor
            dtype: the dtype of the result, as ek.float32 or by name
        """
        ...
    def ceil(self) -> Tensor:
        """The least integer not below x.

        Arguments:
            x: a tensor
        """
        ...
    def celu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha·(e^(x/alpha) - 1).

        Arguments:
            x: a tensor
            alpha: the value that is approached far below 0, with its sign turned
        """
        ...
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The lower triangular matrix (or the upper one) whose product with its adjoint is x, read as (x + xᴴ)/2.

        Arguments:
            x: a tensor
            upper: whether the upper triangle is meant
        """
        ...
    def chunk(self, count: builtins.int, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """x in at most `count` parts along an axis, all of one extent but for the last, as PyTorch's chunk.

        Arguments:
            x: a tensor
            count: into how many parts at most
            axis: the axis; negative numbers count from the last one
        """
        ...
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """x brought between min and max, numbers or tensors, of which one may be left out; NaN stays, and of a bound too.

        The derivative passes to x inside and at the bounds, to a bound outside of it; where min > max, max counts.

        Arguments:
            x: a tensor
            min: the least value, a number or a tensor, or None
            max: the greatest value, a number or a tensor, or None
        """
        ...
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """x brought between min and max, numbers or tensors, of which one may be left out; NaN stays, and of a bound too.

        The derivative passes to x inside and at the bounds, to a bound outside of it; where min > max, max counts.

        Arguments:
            x: a tensor
            min: the least value, a number or a tensor, or None
            max: the greatest value, a number or a tensor, or None
        """
        ...
    def cofactor(self) -> Tensor:
        """The matrix of cofactors, det(x) · x⁻ᵀ: the derivative of det. It has a derivative where x is not singular.

        Arguments:
            x: a tensor
        """
        ...
    def condition_number(self) -> Tensor:
        """The condition number: the greatest singular value over the least.

        Arguments:
            x: a tensor
        """
        ...
    def conj(self) -> Tensor:
        """The complex conjugate.

        Arguments:
            x: a tensor
        """
        ...
    def copy(self) -> Tensor:
        """The same value under another handle.
        """
        ...
    def copysign(self, y: TensorLike) -> Tensor:
        """|x| with the sign of y, also of -0.0 (NaN counts as positive); the derivative where x is 0 is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def cos(self) -> Tensor:
        """Cosine of radians.

        Arguments:
            x: a tensor
        """
        ...
    def cosh(self) -> Tensor:
        """Hyperbolic cosine.

        Arguments:
            x: a tensor
        """
        ...
    def count_nonzero(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """How many elements along axes are not 0; NaN counts.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def cross(self, y: TensorLike, axis: builtins.int = -1) -> Tensor:
        """The cross product of vectors of three along an axis, the others broadcasting.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            axis: the axis; negative numbers count from the last one
        """
        ...
    def cummax(self, axis: builtins.int | None = None) -> builtins.tuple[Tensor, Tensor]:
        """The greatest of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

        The tangent is that of the element at that place.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def cummin(self, axis: builtins.int | None = None) -> builtins.tuple[Tensor, Tensor]:
        """The least of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

        The tangent is that of the element at that place.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def cumprod(self, axis: builtins.int | None = None, reverse: builtins.bool = False) -> Tensor:
        """The product of all elements up to each along an axis; the derivative is right at zeros too.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            reverse: whether it begins at the end
        """
        ...
    def cumsum(self, axis: builtins.int | None = None, reverse: builtins.bool = False) -> Tensor:
        """The sum of all elements up to each along an axis (from the end on, if reverse).

        Bools and integers are summed in 64 bits. The axis may be left out if there is only one.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            reverse: whether it begins at the end
        """
        ...
    def deg2rad(self) -> Tensor:
        """Degrees as radians.

        Arguments:
            x: a tensor
        """
        ...
    def degrees(self) -> Tensor:
        """Radians as degrees.

        Arguments:
            x: a tensor
        """
        ...
    def det(self) -> Tensor:
        """The determinant of square matrices; its derivative is there for singular ones too.

        Arguments:
            x: a tensor
        """
        ...
    def diag(self, k: builtins.int = 0) -> Tensor:
        """The k-th diagonal of a matrix, or a matrix of zeros with a vector on it.

        Arguments:
            x: a tensor
            k: which diagonal: 0 is the main one, positive numbers are above it
        """
        ...
    def diag_embed(self, offset: builtins.int = 0, axis1: builtins.int = -2, axis2: builtins.int = -1) -> Tensor:
        """Matrices of zeros with the last axis of x on a diagonal, in two axes of the result.

        Arguments:
            x: a tensor
            offset: which diagonal: 0 is the main one, positive numbers are above it
            axis1: the first axis
            axis2: the second axis
        """
        ...
    def diagonal(self, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
        """The diagonal of the matrices in two axes, as the last axis of the result; offset > 0 is above the main one.

        Arguments:
            x: a tensor
            offset: which diagonal: 0 is the main one, positive numbers are above it
            axis1: the first axis
            axis2: the second axis
        """
        ...
    def digamma(self) -> Tensor:
        """The derivative of log Γ(x); NaN at the negative integers.

        Arguments:
            x: a tensor
        """
        ...
    def div(self, y: TensorLike) -> Tensor:
        """x / y; integers become floats first.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def div_(self, other: Any) -> Tensor:
        """div in place; gives itself.
        """
        ...
    def divide(self, y: TensorLike) -> Tensor:
        """x / y; integers become floats first.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def dot(self, y: TensorLike) -> Tensor:
        """The sum over the last axis of x and the last but one of y (the only one of a vector); scalars multiply.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def eig(self) -> builtins.tuple[Tensor, Tensor]:
        """The eigenvalues of square matrices, in LAPACK's order, and eigenvectors of length 1 in columns; always complex.

        The first component of at least half the greatest modulus in each vector is real and positive.

        Arguments:
            x: a tensor
        """
        ...
    def eigh(self) -> builtins.tuple[Tensor, Tensor]:
        """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors in columns; x is read as (x + xᴴ)/2.

        The first component of at least half the greatest modulus in each vector is real and positive.

        Arguments:
            x: a tensor
        """
        ...
    def eigvals(self) -> Tensor:
        """The eigenvalues of square matrices, in LAPACK's order; always complex.

        Arguments:
            x: a tensor
        """
        ...
    def eigvalsh(self) -> Tensor:
        """The eigenvalues of a Hermitian matrix, rising; x is read as (x + xᴴ)/2.

        Arguments:
            x: a tensor
        """
        ...
    def elu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha·(e^x - 1).

        Arguments:
            x: a tensor
            alpha: the value that is approached far below 0, with its sign turned
        """
        ...
    def embedding(self, indices: TensorLike, padding_idx: builtins.int | None = None) -> Tensor:
        """The rows of a weight at indices; the row padding_idx is treated as a constant: it has no derivative.

        Arguments:
            weight: the rows that are looked up
            indices: integers: the positions
            padding_idx: a row that is a constant
        """
        ...
    def eq(self, y: TensorLike) -> Tensor:
        """Whether x = y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def equal(self, y: TensorLike) -> Tensor:
        """Whether x = y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def erf(self) -> Tensor:
        """The error function.

        Arguments:
            x: a tensor
        """
        ...
    def erfc(self) -> Tensor:
        """1 - erf(x), accurate for large x.

        Arguments:
            x: a tensor
        """
        ...
    def erfinv(self) -> Tensor:
        """The number whose erf is x; ±inf at ±1, NaN beyond.

        Arguments:
            x: a tensor
        """
        ...
    def exp(self) -> Tensor:
        """e to the power x.

        Arguments:
            x: a tensor
        """
        ...
    def exp2(self) -> Tensor:
        """2 to the power x.

        Arguments:
            x: a tensor
        """
        ...
    @overload
    def expand(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent.

        Arguments:
            x: a tensor
            shape: the shape wanted; -1 keeps an extent
        """
        ...
    @overload
    def expand(self, *shape: builtins.int) -> Tensor:
        ...
    def expand_dims(self, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x with new axes of extent 1, at these places of the result.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def expm(self) -> Tensor:
        """The exponential of square matrices: the sum of their powers over factorials.

        Arguments:
            x: a tensor
        """
        ...
    def expm1(self) -> Tensor:
        """e^x - 1, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def fft(
        self,
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
        self,
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
    def fftn(
        self,
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
    def fftshift(self, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """The frequency 0 moved to the middle along axes (all of them by default).

        Arguments:
            x: a tensor
            axes: the axis or axes; negative numbers count from the last one
        """
        ...
    def flatten(self, start_axis: builtins.int = 0, end_axis: builtins.int = -1) -> Tensor:
        """x with a run of axes made one, by default all; a scalar gets an axis.

        Arguments:
            x: a tensor
            start_axis: the first axis of those that become one
            end_axis: the last axis of those that become one
        """
        ...
    def flip(self, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """The elements in reverse order along axes (all of them by default).

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def floor(self) -> Tensor:
        """The greatest integer not above x.

        Arguments:
            x: a tensor
        """
        ...
    def floor_divide(self, y: TensorLike) -> Tensor:
        """The greatest integer not above x / y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def floor_divide_(self, other: Any) -> Tensor:
        """floor_divide in place; gives itself.
        """
        ...
    def fmod(self, y: TensorLike) -> Tensor:
        """What truncating division leaves, with the sign of x.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def gather(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """The elements of x at positions along an axis, one for each element of the index, which may be the smaller one.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
        """
        ...
    def ge(self, y: TensorLike) -> Tensor:
        """Whether x ≥ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def gelu(self, approximate: builtins.str = 'none') -> Tensor:
        """x·Φ(x), Φ the normal distribution; approximate="tanh" takes a common approximation of it.

        Arguments:
            x: a tensor
            approximate: "none" or "tanh"
        """
        ...
    def glu(self, axis: builtins.int = -1) -> Tensor:
        """The first half of an axis times the sigmoid of the second.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def greater(self, y: TensorLike) -> Tensor:
        """Whether x > y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def greater_equal(self, y: TensorLike) -> Tensor:
        """Whether x ≥ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def group_norm(
        self,
        num_groups: builtins.int,
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 over each of num_groups groups of its channels (axis 1) and all that follows.

        Arguments:
            x: a tensor
            num_groups: into how many groups the channels are divided
            weight: what normalized channels are multiplied with
            bias: what is added, one number for each output; None adds nothing
            eps: a small number that keeps divisors away from 0
        """
        ...
    def gt(self, y: TensorLike) -> Tensor:
        """Whether x > y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def hard_shrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x, and 0 within lambd of 0.

        Arguments:
            x: a tensor
            lambd: how wide the part around 0 is
        """
        ...
    def hard_sigmoid(self) -> Tensor:
        """x/6 + 1/2 brought between 0 and 1, where the derivative is 0.

        Arguments:
            x: a tensor
        """
        ...
    def hard_swish(self) -> Tensor:
        """x·hard_sigmoid(x): 0 up to -3, x from 3 on.

        Arguments:
            x: a tensor
        """
        ...
    def hard_tanh(self, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> Tensor:
        """x brought between min_val and max_val, where the derivative is 0.

        Arguments:
            x: a tensor
            min_val: the least value
            max_val: the greatest value
        """
        ...
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 where x is negative, 1 where it is positive, and `values` where it is 0; NaN stays.

        Arguments:
            x: a tensor
            values: what stands where x is 0
        """
        ...
    def histogram(self, bins: builtins.int = 10, range: Any = None) -> builtins.tuple[Tensor, Tensor]:
        """How many elements lie in each of several bins of one width, and the edges of the bins.

        Edges belong to the bin above them, the last one to the last bin; what is outside the range does not count. Without
        a range it is from the least to the greatest element, which must be known.

        Arguments:
            x: a tensor
            bins: how many bins
            range: (least, greatest): what the bins cover
        """
        ...
    def hypot(self, y: TensorLike) -> Tensor:
        """√(x² + y²) without overflow; the derivative at 0 is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def ifft(
        self,
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
        self,
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
        self,
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
    def ifftshift(self, axes: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """The inverse of `fftshift`.

        Arguments:
            x: a tensor
            axes: the axis or axes; negative numbers count from the last one
        """
        ...
    def index_add(self, axis: builtins.int, index: TensorLike, source: TensorLike, alpha: Any = 1) -> Tensor:
        """x with slices of a source, times alpha, added at the positions of a vector along an axis.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
            source: the slices that are added
            alpha: a number to multiply with
        """
        ...
    def index_put(self, indices: Any, values: TensorLike, accumulate: builtins.bool = False) -> Tensor:
        """x with values at x[indices], or with accumulate added there once for each time that a place is named.

        Arguments:
            x: a tensor
            indices: a tuple of indices, one for each of the first axes
            values: a tensor of values
            accumulate: whether values are added to what is there
        """
        ...
    def index_select(self, axis: builtins.int, index: TensorLike) -> Tensor:
        """The slices of x at the positions of a vector along an axis.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
        """
        ...
    def inner(self, y: TensorLike) -> Tensor:
        """The sum over the last axes of x and y; scalars multiply.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def instance_norm(
        self,
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 over all that follows each of its channels (axis 1).

        Arguments:
            x: a tensor
            weight: what normalized channels are multiplied with
            bias: what is added, one number for each output; None adds nothing
            eps: a small number that keeps divisors away from 0
        """
        ...
    def inv(self) -> Tensor:
        """The inverse of square matrices; a singular one is an error.

        Arguments:
            x: a tensor
        """
        ...
    def irfft(
        self,
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
    def isclose(
        self,
        y: TensorLike,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether |x - y| ≤ atol + rtol·|y|; equal infinities are close, NaNs only with equal_nan.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            rtol: how large a difference is allowed, relative to the size of the numbers
            atol: how large a difference is allowed at least
            equal_nan: whether NaN counts as equal to NaN
        """
        ...
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN.

        Arguments:
            x: a tensor
        """
        ...
    def isinf(self) -> Tensor:
        """Whether x is infinite.

        Arguments:
            x: a tensor
        """
        ...
    def isnan(self) -> Tensor:
        """Whether x is NaN.

        Arguments:
            x: a tensor
        """
        ...
    def kron(self, y: TensorLike) -> Tensor:
        """The Kronecker product: every element of x times all of y, as blocks.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def kthvalue(
        self,
        k: builtins.int,
        axis: builtins.int = -1,
        keepdims: builtins.bool = False,
    ) -> builtins.tuple[Tensor, Tensor]:
        """The k-th least element along an axis (k counts from 1), and its position.

        Arguments:
            x: a tensor
            k: which one, from 1 on
            axis: the axis; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def layer_norm(
        self,
        normalized_shape: builtins.int | Sequence[builtins.int],
        weight: TensorLike | None = None,
        bias: TensorLike | None = None,
        eps: builtins.float = 1e-05,
    ) -> Tensor:
        """x with mean 0 and variance 1 over its last axes, of a given shape, then times a weight and plus a bias.

        Arguments:
            x: a tensor
            normalized_shape: the extents of the last axes, over which it is normalized
            weight: what normalized elements are multiplied with
            bias: what is added, one number for each output; None adds nothing
            eps: a small number that keeps divisors away from 0
        """
        ...
    def le(self, y: TensorLike) -> Tensor:
        """Whether x ≤ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """x where it is positive, else x times a small slope (as at 0).

        Arguments:
            x: a tensor
            negative_slope: the slope where x is negative
        """
        ...
    def lerp(self, y: TensorLike, weight: TensorLike) -> Tensor:
        """From x (weight 0) to y (weight 1) in a straight line; exact at both ends.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            weight: how far from x to y: 0 is x, 1 is y
        """
        ...
    def less(self, y: TensorLike) -> Tensor:
        """Whether x < y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def less_equal(self, y: TensorLike) -> Tensor:
        """Whether x ≤ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def lgamma(self) -> Tensor:
        """log |Γ(x)|; infinite at 0 and the negative integers.

        Arguments:
            x: a tensor
        """
        ...
    def linear(self, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
        """x · weightᵀ + bias along the last axis; the weight has the shape (out, in).

        Arguments:
            x: a tensor
            weight: the weights
            bias: what is added, one number for each output; None adds nothing
        """
        ...
    def local_response_norm(
        self,
        size: builtins.int,
        alpha: builtins.float = 0.0001,
        beta: builtins.float = 0.75,
        k: builtins.float = 1.0,
    ) -> Tensor:
        """x divided by (k + alpha·(mean square of the `size` channels around it, axis 1))^beta.

        Arguments:
            x: a tensor
            size: how many elements
            alpha: what the mean square is multiplied with
            beta: the power that is divided by
            k: what is added to the mean square
        """
        ...
    def log(self) -> Tensor:
        """Natural logarithm.

        Arguments:
            x: a tensor
        """
        ...
    def log10(self) -> Tensor:
        """Logarithm to the base 10.

        Arguments:
            x: a tensor
        """
        ...
    def log1p(self) -> Tensor:
        """log(1 + x), accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def log2(self) -> Tensor:
        """Logarithm to the base 2.

        Arguments:
            x: a tensor
        """
        ...
    def log_sigmoid(self) -> Tensor:
        """log(sigmoid(x)), without overflow.

        Arguments:
            x: a tensor
        """
        ...
    def log_softmax(self, axis: builtins.int = -1) -> Tensor:
        """The logarithm of softmax, without overflow and without losing small ones.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def logaddexp(self, y: TensorLike) -> Tensor:
        """log(e^x + e^y) without overflow; where both are -inf the derivative is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_and(self, y: TensorLike) -> Tensor:
        """Whether x and y both hold (are not 0).

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_not(self) -> Tensor:
        """Whether x does not hold (is 0).

        Arguments:
            x: a tensor
        """
        ...
    def logical_or(self, y: TensorLike) -> Tensor:
        """Whether x or y holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_xor(self, y: TensorLike) -> Tensor:
        """Whether exactly one of x and y holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logsumexp(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """log of the sum of e^x along axes, without overflow; of none and of -inf alone it is -inf, with derivative 0.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def lstsq(self, b: TensorLike, rtol: builtins.float | None = None) -> Tensor:
        """The shortest solution that brings x · solution nearest to b in the sense of least squares; rtol as in `pinv`.

        Arguments:
            x: a tensor
            b: the right side
            rtol: how large a difference is allowed, relative to the size of the numbers
        """
        ...
    def lt(self, y: TensorLike) -> Tensor:
        """Whether x < y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """x with one value wherever the mask holds, which broadcasts to x.

        Arguments:
            x: a tensor
            mask: truth values: where it holds; it broadcasts
            value: the value to put in
        """
        ...
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements of x where the mask holds, in a row; the two broadcast. The mask must be known.

        Arguments:
            x: a tensor
            mask: truth values: where it holds; it broadcasts
        """
        ...
    def matmul(self, y: TensorLike) -> Tensor:
        """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: the sum of their powers over factorials.

        Arguments:
            x: a tensor
        """
        ...
    def matrix_norm(
        self,
        ord: builtins.int | builtins.float | builtins.str = 'fro',
        axis: builtins.tuple[builtins.int, builtins.int] = ...,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """A norm of matrices: "fro", "nuc" (sum of singular values), ±1 (columns), ±2 (singular values), ±inf (rows).

        Arguments:
            x: a tensor
            ord: which norm; see above
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def matrix_power(self, n: builtins.int) -> Tensor:
        """The product of n equal square matrices; negative powers are those of the inverse.

        Arguments:
            x: a tensor
            n: how many factors
        """
        ...
    def matrix_rank(self, rtol: builtins.float | None = None) -> Tensor:
        """How many singular values are above rtol times the greatest; rtol as in `pinv`.

        Arguments:
            x: a tensor
            rtol: how large a difference is allowed, relative to the size of the numbers
        """
        ...
    def matvec(self, y: TensorLike) -> Tensor:
        """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def max(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The greatest element along axes; NaN if one is; equal greatest ones share the tangent.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def maximum(self, y: TensorLike) -> Tensor:
        """The greater of x and y; NaN if either is; equal operands share the tangent.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mean(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The mean along axes; integers become floats first, and the mean of nothing is NaN.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def median(self, axis: builtins.int | None = None, keepdims: builtins.bool = False) -> Tensor:
        """The middle element along an axis, or the mean of the middle two as NumPy has it; NaN if one of them is.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def min(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The least element along axes; NaN if one is; equal least ones share the tangent.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def minimum(self, y: TensorLike) -> Tensor:
        """The lesser of x and y; NaN if either is; equal operands share the tangent.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mish(self) -> Tensor:
        """x·tanh(softplus(x)).

        Arguments:
            x: a tensor
        """
        ...
    def mod(self, y: TensorLike) -> Tensor:
        """What floor division leaves, with the sign of y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def moveaxis(
        self,
        source: builtins.int | Sequence[builtins.int],
        destination: builtins.int | Sequence[builtins.int],
    ) -> Tensor:
        """Axes moved to other places; the rest keeps its order.

        Arguments:
            x: a tensor
            source: where axes are now
            destination: where the axes go
        """
        ...
    def movedim(
        self,
        source: builtins.int | Sequence[builtins.int],
        destination: builtins.int | Sequence[builtins.int],
    ) -> Tensor:
        """Axes moved to other places; the rest keeps its order.

        Arguments:
            x: a tensor
            source: where axes are now
            destination: where the axes go
        """
        ...
    def mul(self, y: TensorLike) -> Tensor:
        """x · y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mul_(self, other: Any) -> Tensor:
        """mul in place; gives itself.
        """
        ...
    def multiply(self, y: TensorLike) -> Tensor:
        """x · y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mv(self, y: TensorLike) -> Tensor:
        """Matrices times vectors: the last two axes of x with the last of y, batches in front broadcasting.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def nan_to_num(
        self,
        nan: builtins.float = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """x with numbers for NaN and the infinities (by default 0 and the greatest and least finite ones).

        Arguments:
            x: a tensor
            nan: what stands for NaN
            posinf: what stands for infinity; the greatest number of the dtype unless given
            neginf: what stands for minus infinity; the least number of the dtype unless given
        """
        ...
    def ndtri(self) -> Tensor:
        """The number below which x of the normal distribution lies, accurate for small x; ±inf at 0 and 1, NaN beyond.

        Arguments:
            x: a tensor
        """
        ...
    def ne(self, y: TensorLike) -> Tensor:
        """Whether x ≠ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def neg(self) -> Tensor:
        """-x.

        Arguments:
            x: a tensor
        """
        ...
    def negative(self) -> Tensor:
        """-x.

        Arguments:
            x: a tensor
        """
        ...
    def nonzero(self) -> builtins.tuple[Tensor, ...]:
        """The positions of the elements that are not 0: one vector of int64 per axis. x must be known.

        Arguments:
            x: a tensor
        """
        ...
    def norm(
        self,
        p: builtins.float | builtins.str = 2,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The p-norm of the elements along axes (all of them by default; of a matrix, "fro" is 2).

        p is any number: 0 counts what is not 0, inf and -inf take the greatest and least modulus. Where the norm is 0, so
        is its derivative.

        Arguments:
            x: a tensor
            p: the order of the norm
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def normalize(self, p: builtins.float = 2, axis: builtins.int = 1, eps: builtins.float = 1e-12) -> Tensor:
        """x divided by its p-norm along an axis, or by eps if that is greater: vectors of length 1.

        Arguments:
            x: a tensor
            p: the order of the norm
            axis: the axis; negative numbers count from the last one
            eps: a small number that keeps divisors away from 0
        """
        ...
    def not_equal(self, y: TensorLike) -> Tensor:
        """Whether x ≠ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def one_hot(
        self,
        num_classes: builtins.int | None = None,
        dtype: DType | builtins.str | None = 'int64',
    ) -> Tensor:
        """For each class label a vector with 1 at its place and 0 elsewhere, as the last axis.

        Without a number of classes the labels must be known; one that is negative or too great is an error.

        Arguments:
            indices: class labels: integers from 0
            num_classes: how many classes there are
            dtype: the dtype of the result, as ek.float32 or by name
        """
        ...
    def outer(self, y: TensorLike) -> Tensor:
        """Every element of x times every element of y: a matrix.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def pad(self, widths: Any, value: Any = 0, mode: builtins.str = 'constant', interior: Any = 0) -> Tensor:
        """x with elements before and after along each axis: `widths` is ((before, after), …), one pair, or one integer.

        Mode "constant" fills with a value, also between elements (interior), and negative widths cut off; "reflect",
        "replicate" ("edge") and "circular" ("wrap") fill with what stands at the ends.

        Arguments:
            x: a tensor
            widths: ((before, after), ...) for each axis, one pair for all, or one integer
            value: the value to put in
            mode: which way it is done; see above
            interior: how many elements are put between neighbours
        """
        ...
    @overload
    def permute(self, axes: Sequence[builtins.int]) -> Tensor:
        """The axes in another order.

        Arguments:
            x: a tensor
            axes: the axis or axes; negative numbers count from the last one
        """
        ...
    @overload
    def permute(self, *axes: builtins.int) -> Tensor:
        ...
    def pinv(self, rtol: builtins.float | None = None) -> Tensor:
        """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

        By default rtol is the greater extent of the matrix times the epsilon of its dtype.

        Arguments:
            x: a tensor
            rtol: how large a difference is allowed, relative to the size of the numbers
        """
        ...
    def pow(self, y: TensorLike | builtins.float) -> Tensor:
        """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def pow_(self, other: Any) -> Tensor:
        """pow in place; gives itself.
        """
        ...
    def power(self, y: TensorLike) -> Tensor:
        """x to the power y, element by element; of integers, a negative power is an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def prelu(self, weight: TensorLike) -> Tensor:
        """x where it is positive, else x times a learned weight: one, or one per channel (axis 1).

        Arguments:
            x: a tensor
            weight: the slope where x is negative: one, or one per channel
        """
        ...
    def prod(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The product along axes; bools and integers are multiplied in 64 bits. Derivatives are right at zeros too.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def put(self, indices: TensorLike, values: TensorLike) -> Tensor:
        """x with values at positions among all its elements in a row; values are repeated if there are too few.

        Arguments:
            x: a tensor
            indices: integers: the positions
            values: a tensor of values
        """
        ...
    def put_along(
        self,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike,
        mode: builtins.str = 'set',
    ) -> Tensor:
        """x with an element of src at the position along an axis that the index has for it; the inverse of `gather`.

        Mode is "set", "add", "max", "min" or "mul", as in `scatter`; src may be larger than the index, or a number.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
            src: the values that go to these positions
            mode: which way it is done; see above
        """
        ...
    @overload
    def qr(self, mode: Literal['r']) -> Tensor:  # type: ignore[overload-overlap]
        ...
    @overload
    def qr(self, mode: builtins.str = 'reduced') -> builtins.tuple[Tensor, Tensor]:
        """(Q, R) with orthonormal columns in Q and an upper triangular R, with LAPACK's signs; only R in the mode "r".

        Arguments:
            x: a tensor
            mode: which way it is done; see above
        """
        ...
    def quantile(
        self,
        q: builtins.float,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The number below which a part q of the elements lies, between two of them if need be; NaN if one of them is.

        Arguments:
            x: a tensor
            q: which part, from 0 to 1
            axis: the axis; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def rad2deg(self) -> Tensor:
        """Radians as degrees.

        Arguments:
            x: a tensor
        """
        ...
    def radians(self) -> Tensor:
        """Degrees as radians.

        Arguments:
            x: a tensor
        """
        ...
    def ravel(self, start_axis: builtins.int = 0, end_axis: builtins.int = -1) -> Tensor:
        """x with a run of axes made one, by default all; a scalar gets an axis.

        Arguments:
            x: a tensor
            start_axis: the first axis of those that become one
            end_axis: the last axis of those that become one
        """
        ...
    def reciprocal(self) -> Tensor:
        """1 / x; integers become floats first.

        Arguments:
            x: a tensor
        """
        ...
    def relu(self) -> Tensor:
        """x where it is positive, else 0; the derivative at 0 is 0. NaN stays.

        Arguments:
            x: a tensor
        """
        ...
    def relu6(self) -> Tensor:
        """relu that stops at 6; the derivative at 0 and 6 is 0.

        Arguments:
            x: a tensor
        """
        ...
    def remainder(self, y: TensorLike) -> Tensor:
        """What floor division leaves, with the sign of y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def remainder_(self, other: Any) -> Tensor:
        """remainder in place; gives itself.
        """
        ...
    def repeat(self, repeats: builtins.int, axis: builtins.int | None = None) -> Tensor:
        """Every element several times in succession along an axis (None: of all elements in a row); see also `tile`.

        Arguments:
            x: a tensor
            repeats: how often
            axis: the axis; negative numbers count from the last one
        """
        ...
    def repeat_interleave(self, repeats: builtins.int, axis: builtins.int | None = None) -> Tensor:
        """Every element several times in succession along an axis (None: of all elements in a row); see also `tile`.

        Arguments:
            x: a tensor
            repeats: how often
            axis: the axis; negative numbers count from the last one
        """
        ...
    @overload
    def reshape(self, shape: builtins.int | Sequence[builtins.int]) -> Tensor:
        """The elements in the same order, under another shape; one extent may be -1.

        Arguments:
            x: a tensor
            shape: the shape wanted; one extent may be -1
        """
        ...
    @overload
    def reshape(self, *shape: builtins.int) -> Tensor:
        ...
    def rfft(
        self,
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
    def rms_norm(
        self,
        normalized_shape: builtins.int | Sequence[builtins.int],
        weight: TensorLike | None = None,
        eps: builtins.float | None = None,
    ) -> Tensor:
        """x divided by the root of its mean square over its last axes (eps: that of the dtype), then times a weight.

        Arguments:
            x: a tensor
            normalized_shape: the extents of the last axes, over which it is normalized
            weight: what normalized elements are multiplied with
            eps: a small number that keeps divisors away from 0
        """
        ...
    def roll(
        self,
        shift: builtins.int | Sequence[builtins.int],
        axis: builtins.int | Sequence[builtins.int] | None = None,
    ) -> Tensor:
        """x shifted along axes, where what leaves at one end comes in at the other (None: all elements in a row).

        Arguments:
            x: a tensor
            shift: by how many places
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def rot90(self, k: builtins.int = 1, axes: Sequence[builtins.int] = ...) -> Tensor:
        """x turned by k quarters in the plane of two axes, from the first towards the second.

        Arguments:
            x: a tensor
            k: how many quarters
            axes: the axis or axes; negative numbers count from the last one
        """
        ...
    def round(self) -> Tensor:
        """The nearest integer, ties to even.

        Arguments:
            x: a tensor
        """
        ...
    def rsqrt(self) -> Tensor:
        """1 / √x.

        Arguments:
            x: a tensor
        """
        ...
    def scatter(
        self,
        indices: TensorLike,
        updates: TensorLike,
        axis: builtins.int = 0,
        mode: builtins.str = 'set',
        batch: builtins.int = 0,
    ) -> Tensor:
        """x with updates at positions along an axis: mode "set", "add", "max", "min" or "mul"; the inverse of `take`.

        Updates apply in order: of several that are set in one place the last stays, and only it has a derivative.

        Arguments:
            x: a tensor
            indices: integers: the positions
            updates: the values that go to these positions
            axis: the axis; negative numbers count from the last one
            mode: which way it is done; see above
            batch: how many axes in front count examples, each of which has its own indices
        """
        ...
    def scatter_add(self, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
        """x with elements of src added at positions along an axis, as PyTorch's scatter_add; see `scatter_along`.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
            src: the values that go to these positions
        """
        ...
    def scatter_along(
        self,
        axis: builtins.int,
        index: TensorLike,
        src: TensorLike,
        mode: builtins.str = 'set',
    ) -> Tensor:
        """x with an element of src at the position along an axis that the index has for it; the inverse of `gather`.

        Mode is "set", "add", "max", "min" or "mul", as in `scatter`; src may be larger than the index, or a number.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
            src: the values that go to these positions
            mode: which way it is done; see above
        """
        ...
    def scatter_max(self, axis: builtins.int, index: TensorLike, src: TensorLike) -> Tensor:
        """The greatest of x and the elements of src at positions along an axis; equal ones share the tangent.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            index: integers: the positions, one for each element of the result
            src: the values that go to these positions
        """
        ...
    def selu(self) -> Tensor:
        """elu scaled so that a normal distribution keeps mean 0 and variance 1.

        Arguments:
            x: a tensor
        """
        ...
    def shift_left(self, y: TensorLike) -> Tensor:
        """Bits moved up by y places, zeros following.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def shift_right(self, y: TensorLike) -> Tensor:
        """Bits moved down by y places; signs are kept.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x), stable for large |x|.

        Arguments:
            x: a tensor
        """
        ...
    def sign(self) -> Tensor:
        """-1, 0 or 1.

        Arguments:
            x: a tensor
        """
        ...
    def silu(self) -> Tensor:
        """x·sigmoid(x).

        Arguments:
            x: a tensor
        """
        ...
    def sin(self) -> Tensor:
        """Sine of radians.

        Arguments:
            x: a tensor
        """
        ...
    def sinc(self) -> Tensor:
        """sin(πx) / (πx), and 1 at 0, with its derivatives.

        Arguments:
            x: a tensor
        """
        ...
    def sinh(self) -> Tensor:
        """Hyperbolic sine, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def slice(self, start: Any = None, stop: Any = None, step: Any = None) -> Tensor:
        """The elements from start on and before stop, every step-th, along each axis; clipped as Python's slices are.

        Arguments:
            x: a tensor
            start: where it begins
            stop: where it ends; the end itself is left out
            step: how far elements are apart
        """
        ...
    def sliding_window(self, size: builtins.int, axis: builtins.int = -1, step: builtins.int = 1) -> Tensor:
        """Every run of `size` elements along an axis, `step` apart, as a new last axis (PyTorch's Tensor.unfold).

        Arguments:
            x: a tensor
            size: how many elements
            axis: the axis; negative numbers count from the last one
            step: how far elements are apart
        """
        ...
    def slogdet(self) -> builtins.tuple[Tensor, Tensor]:
        """The sign (of complex numbers, the phase) of the determinant and the logarithm of its modulus: 0 and -∞ for 0.

        Arguments:
            x: a tensor
        """
        ...
    def soft_shrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x moved towards 0 by lambd, and 0 within lambd of it.

        Arguments:
            x: a tensor
            lambd: how wide the part around 0 is
        """
        ...
    def softmax(self, axis: builtins.int = -1) -> Tensor:
        """e^x divided by its sum along an axis, without overflow; where all is -inf, NaN.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def softmin(self, axis: builtins.int = -1) -> Tensor:
        """softmax of -x.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def softplus(self, beta: builtins.float = 1.0, threshold: builtins.float | None = None) -> Tensor:
        """log(1 + e^(beta·x))/beta, without overflow; above a threshold of beta·x, if one is given, x itself.

        Arguments:
            x: a tensor
            beta: how sharp the bend is
            threshold: where the one rule ends and the other begins
        """
        ...
    def softsign(self) -> Tensor:
        """x / (1 + |x|).

        Arguments:
            x: a tensor
        """
        ...
    def solve(self, b: TensorLike) -> Tensor:
        """What x must be multiplied with to give b: a vector if b has one axis, else matrices; batches broadcast.

        Arguments:
            x: a tensor
            b: the right side
        """
        ...
    def solve_triangular(
        self,
        b: TensorLike,
        lower: builtins.bool = True,
        transpose: builtins.bool = False,
        unit_diagonal: builtins.bool = False,
    ) -> Tensor:
        """`solve` with one triangle of x, transposed (not conjugated) if asked; its diagonal may be taken for ones.

        Arguments:
            x: a tensor
            b: the right side
            lower: whether the lower triangle is meant
            transpose: whether the matrix is transposed
            unit_diagonal: whether the diagonal is taken for ones
        """
        ...
    def sort(
        self,
        axis: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = True,
    ) -> builtins.tuple[Tensor, Tensor]:
        """The elements in order along an axis, and the positions they come from; NaN counts as the greatest.

        The order of equal elements is kept always, so `stable` says nothing new.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
            descending: whether the greatest comes first
            stable: whether equal elements keep their order; they always do
        """
        ...
    def split(
        self,
        sizes: builtins.int | Sequence[builtins.int],
        axis: builtins.int = 0,
    ) -> builtins.tuple[Tensor, ...]:
        """x in parts along an axis: of given extents, or all of one (the last may be less); `chunk` takes a count.

        Arguments:
            x: a tensor
            sizes: the extents of the parts, or one extent for all
            axis: the axis; negative numbers count from the last one
        """
        ...
    def sqrt(self) -> Tensor:
        """Square root.

        Arguments:
            x: a tensor
        """
        ...
    def square(self) -> Tensor:
        """x².

        Arguments:
            x: a tensor
        """
        ...
    def squeeze(self, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """x without axes of extent 1: those given (which must have it), or all.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def std(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        correction: builtins.float = 0,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The square root of the variance (see var); where that is 0, so is the derivative.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            correction: what is subtracted from the number of elements: 0 or 1
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def sub(self, y: TensorLike) -> Tensor:
        """x - y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def sub_(self, other: Any) -> Tensor:
        """sub in place; gives itself.
        """
        ...
    def subtract(self, y: TensorLike) -> Tensor:
        """x - y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def sum(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The sum along axes (all of them by default); bools and integers are summed in 64 bits.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    @overload
    def svd(self, full_matrices: builtins.bool = False, *, compute_uv: Literal[False]) -> Tensor:
        ...
    @overload
    def svd(
        self,
        full_matrices: builtins.bool = False,
        compute_uv: Literal[True] = True,
    ) -> builtins.tuple[Tensor, Tensor, Tensor]:
        """(U, s, Vᴴ) with x = U · diag(s) · Vᴴ, s falling; only s if compute_uv is False. Full matrices have no derivative.

        The first component of at least half the greatest modulus in each vector of U is real and positive.

        Arguments:
            x: a tensor
            full_matrices: whether U and V are square
            compute_uv: whether U and V are computed too
        """
        ...
    @overload
    def svd(
        self,
        full_matrices: builtins.bool = False,
        compute_uv: builtins.bool = True,
    ) -> builtins.tuple[Tensor, Tensor, Tensor] | Tensor:
        ...
    def svdvals(self) -> Tensor:
        """The singular values, falling.

        Arguments:
            x: a tensor
        """
        ...
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Two axes exchanged.

        Arguments:
            x: a tensor
            axis0: the first axis
            axis1: the first axis
        """
        ...
    def swapdims(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Two axes exchanged.

        Arguments:
            x: a tensor
            axis0: the first axis
            axis1: the first axis
        """
        ...
    def swish(self) -> Tensor:
        """x·sigmoid(x).

        Arguments:
            x: a tensor
        """
        ...
    def take(self, indices: TensorLike, axis: builtins.int = 0, batch: builtins.int = 0) -> Tensor:
        """The elements of x at integer positions along an axis, which the axes of the indices replace.

        The first `batch` axes of x and of the indices are the same: each example has its own indices.

        Arguments:
            x: a tensor
            indices: integers: the positions
            axis: the axis; negative numbers count from the last one
            batch: how many axes in front count examples, each of which has its own indices
        """
        ...
    def take_along(self, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
        """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

        Arguments:
            x: a tensor
            indices: integers: the positions
            axis: the axis; negative numbers count from the last one
        """
        ...
    def take_along_axis(self, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
        """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

        Arguments:
            x: a tensor
            indices: integers: the positions
            axis: the axis; negative numbers count from the last one
        """
        ...
    def take_along_dim(self, indices: TensorLike, axis: builtins.int | None = -1) -> Tensor:
        """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast.

        Arguments:
            x: a tensor
            indices: integers: the positions
            axis: the axis; negative numbers count from the last one
        """
        ...
    def tan(self) -> Tensor:
        """Tangent of radians.

        Arguments:
            x: a tensor
        """
        ...
    def tanh(self) -> Tensor:
        """Hyperbolic tangent.

        Arguments:
            x: a tensor
        """
        ...
    def tanh_shrink(self) -> Tensor:
        """x - tanh(x).

        Arguments:
            x: a tensor
        """
        ...
    def tensordot(
        self,
        y: TensorLike,
        axes: builtins.int | builtins.tuple[builtins.int | Sequence[builtins.int], builtins.int | Sequence[builtins.int]] = 2,
    ) -> Tensor:
        """The sum of products over axes: the last `axes` of x with the first of y, or the axes paired by two lists.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            axes: the axis or axes; negative numbers count from the last one
        """
        ...
    def threshold(self, threshold: builtins.float, value: builtins.float) -> Tensor:
        """x where it is above a threshold, else a value (as at the threshold).

        Arguments:
            x: a tensor
            threshold: where the one rule ends and the other begins
            value: what stands where x is not above the threshold
        """
        ...
    def tile(self, reps: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x several times along each axis, the last of which `reps` ends with.

        Arguments:
            x: a tensor
            reps: how often along each axis
        """
        ...
    def to_sparse(self) -> builtins.tuple[Tensor, Tensor, Tensor]:
        """(values, indices, pointers) of the elements of a matrix that are not 0; it is differentiable in these.

        Arguments:
            x: a tensor
        """
        ...
    def topk(
        self,
        k: builtins.int,
        axis: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
    ) -> builtins.tuple[Tensor, Tensor]:
        """The k greatest (or least) elements along an axis, in order, and their positions; the first of equal ones.

        They are sorted always, so `sorted` says nothing new.

        Arguments:
            x: a tensor
            k: how many
            axis: the axis; negative numbers count from the last one
            largest: whether the greatest are meant, not the least
            sorted: whether they come in order; they always do
        """
        ...
    def trace(self, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
        """The sum of a diagonal of the matrices in two axes.

        Arguments:
            x: a tensor
            offset: which diagonal: 0 is the main one, positive numbers are above it
            axis1: the first axis
            axis2: the second axis
        """
        ...
    def transpose(self, axis0: Any = None, axis1: builtins.int | None = None) -> Tensor:
        """Two axes exchanged; with no axes given all in reverse order, with a sequence of axes in that order.

        Arguments:
            x: a tensor
            axis0: the first axis
            axis1: the first axis
        """
        ...
    def triangular_solve(
        self,
        b: TensorLike,
        lower: builtins.bool = True,
        transpose: builtins.bool = False,
        unit_diagonal: builtins.bool = False,
    ) -> Tensor:
        """`solve` with one triangle of x, transposed (not conjugated) if asked; its diagonal may be taken for ones.

        Arguments:
            x: a tensor
            b: the right side
            lower: whether the lower triangle is meant
            transpose: whether the matrix is transposed
            unit_diagonal: whether the diagonal is taken for ones
        """
        ...
    def tril(self, k: builtins.int = 0) -> Tensor:
        """The elements of matrices on and below the k-th diagonal, zeros above it.

        Arguments:
            x: a tensor
            k: which diagonal: 0 is the main one, positive numbers are above it
        """
        ...
    def triu(self, k: builtins.int = 0) -> Tensor:
        """The elements of matrices on and above the k-th diagonal, zeros below it.

        Arguments:
            x: a tensor
            k: which diagonal: 0 is the main one, positive numbers are above it
        """
        ...
    def true_divide(self, y: TensorLike) -> Tensor:
        """x / y; integers become floats first.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def trunc(self) -> Tensor:
        """x without its fraction.

        Arguments:
            x: a tensor
        """
        ...
    def unbind(self, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """The slices of x along an axis, without it.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    @overload
    def unique(
        self,
        return_inverse: Literal[True],
        return_counts: builtins.bool = False,
    ) -> builtins.tuple[Tensor, ...]:
        ...
    @overload
    def unique(
        self,
        return_inverse: builtins.bool = False,
        *,
        return_counts: Literal[True],
    ) -> builtins.tuple[Tensor, ...]:
        ...
    @overload
    def unique(self, return_inverse: Literal[False] = False, return_counts: Literal[False] = False) -> Tensor:
        """The distinct elements in order; also where each element of x is among them, and how often each occurs.

        x must be known. All NaNs count as one element. The tangent is that of the first of equal elements.

        Arguments:
            x: a tensor
            return_inverse: whether the place of each element of x is given too
            return_counts: whether it is given how often each occurs
        """
        ...
    @overload
    def unique(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
    ) -> Tensor | builtins.tuple[Tensor, ...]:
        ...
    def unsqueeze(self, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x with new axes of extent 1, at these places of the result.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def unstack(self, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """The slices of x along an axis, without it.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def var(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        correction: builtins.float = 0,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The mean squared distance from the mean, divided by n - correction: 0 as in NumPy, 1 for an unbiased estimate.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            correction: what is subtracted from the number of elements: 0 or 1
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def vdot(self, y: TensorLike) -> Tensor:
        """The sum of conj(x) · y over all elements, as two long vectors.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def vecdot(self, y: TensorLike) -> Tensor:
        """The sum of conj(x) · y along the last axis, batches in front broadcasting.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def where(self, x: TensorLike, y: TensorLike) -> Tensor:
        """x where the condition holds, else y.

        Arguments:
            condition: truth values: where x is taken
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def xlogy(self, y: TensorLike) -> Tensor:
        """x·log(y), which is 0 where x is 0, whatever y is (unless NaN).

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
