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
    @property
    def H(self) -> Any: ...
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
    def abs_(self, *args: Any, **given: Any) -> Tensor:
        """abs in place; gives itself.
        """
        ...
    def absolute(self) -> Tensor:
        """|x|; of a complex number its modulus. The derivative at 0 is 0.

        Arguments:
            x: a tensor
        """
        ...
    def absolute_(self, *args: Any, **given: Any) -> Tensor:
        """absolute in place; gives itself.
        """
        ...
    def acos(self) -> Tensor:
        """The angle in radians whose cosine is x.

        Arguments:
            x: a tensor
        """
        ...
    def acos_(self, *args: Any, **given: Any) -> Tensor:
        """acos in place; gives itself.
        """
        ...
    def acosh(self) -> Tensor:
        """The number, not negative, whose cosh is x.

        Arguments:
            x: a tensor
        """
        ...
    def acosh_(self, *args: Any, **given: Any) -> Tensor:
        """acosh in place; gives itself.
        """
        ...
    def add(self, y: TensorLike) -> Tensor:
        """x + y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def add_(self, *args: Any, **given: Any) -> Tensor:
        """add in place; gives itself.
        """
        ...
    def addbmm(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
        """beta · x + alpha · the sum of batch1 · batch2 over the stack.
        """
        ...
    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Any:
        """x + value · tensor1 / tensor2.
        """
        ...
    def addcdiv_(self, *args: Any, **given: Any) -> Tensor:
        """addcdiv in place; gives itself.
        """
        ...
    def addcmul(self, tensor1: Any, tensor2: Any, *, value: builtins.float = 1) -> Any:
        """x + value · tensor1 · tensor2.
        """
        ...
    def addcmul_(self, *args: Any, **given: Any) -> Tensor:
        """addcmul in place; gives itself.
        """
        ...
    def addmm(
        self,
        x: TensorLike,
        y: TensorLike,
        beta: builtins.float = 1,
        alpha: builtins.float = 1,
    ) -> Tensor:
        """beta · input + alpha · (x · y), for matrices x and y.

        Arguments:
            input: what is added to the product
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
            beta: a number to multiply with
            alpha: a number to multiply with
        """
        ...
    def addmm_(self, *args: Any, **given: Any) -> Tensor:
        """addmm in place; gives itself.
        """
        ...
    def addmv(self, mat: Any, vec: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
        """beta · x + alpha · mat · vec.
        """
        ...
    def addmv_(self, *args: Any, **given: Any) -> Tensor:
        """addmv in place; gives itself.
        """
        ...
    def addr(self, vec1: Any, vec2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
        """beta · x + alpha · vec1 · vec2ᵀ.
        """
        ...
    def adjoint(self) -> Tensor:
        """The last two axes exchanged, of complex numbers the conjugates.
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
    def allclose_(self, *args: Any, **given: Any) -> Tensor:
        """allclose in place; gives itself.
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
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Any:
        """The least and the greatest element.
        """
        ...
    def angle(self) -> Any:
        """The angles of complex numbers; of real ones 0, or π where they are negative.
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
    def arccos_(self, *args: Any, **given: Any) -> Tensor:
        """arccos in place; gives itself.
        """
        ...
    def arccosh(self) -> Tensor:
        """The number, not negative, whose cosh is x.

        Arguments:
            x: a tensor
        """
        ...
    def arccosh_(self, *args: Any, **given: Any) -> Tensor:
        """arccosh in place; gives itself.
        """
        ...
    def arcsin(self) -> Tensor:
        """The angle in radians whose sine is x.

        Arguments:
            x: a tensor
        """
        ...
    def arcsin_(self, *args: Any, **given: Any) -> Tensor:
        """arcsin in place; gives itself.
        """
        ...
    def arcsinh(self) -> Tensor:
        """The number whose sinh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def arcsinh_(self, *args: Any, **given: Any) -> Tensor:
        """arcsinh in place; gives itself.
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
    def arctan2_(self, *args: Any, **given: Any) -> Tensor:
        """arctan2 in place; gives itself.
        """
        ...
    def arctan_(self, *args: Any, **given: Any) -> Tensor:
        """arctan in place; gives itself.
        """
        ...
    def arctanh(self) -> Tensor:
        """The number whose tanh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def arctanh_(self, *args: Any, **given: Any) -> Tensor:
        """arctanh in place; gives itself.
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
    def asin_(self, *args: Any, **given: Any) -> Tensor:
        """asin in place; gives itself.
        """
        ...
    def asinh(self) -> Tensor:
        """The number whose sinh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def asinh_(self, *args: Any, **given: Any) -> Tensor:
        """asinh in place; gives itself.
        """
        ...
    def astype(self, dtype: DType | builtins.str | None) -> Tensor:
        """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

        Arguments:
            x: a tensor
            dtype: the dtype of the result, as ek.float32 or by name
        """
        ...
    def astype_(self, *args: Any, **given: Any) -> Tensor:
        """astype in place; gives itself.
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
    def atan2_(self, *args: Any, **given: Any) -> Tensor:
        """atan2 in place; gives itself.
        """
        ...
    def atan_(self, *args: Any, **given: Any) -> Tensor:
        """atan in place; gives itself.
        """
        ...
    def atanh(self) -> Tensor:
        """The number whose tanh is x, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def atanh_(self, *args: Any, **given: Any) -> Tensor:
        """atanh in place; gives itself.
        """
        ...
    def baddbmm(self, batch1: Any, batch2: Any, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Any:
        """beta · x + alpha · batch1 · batch2, for stacks of matrices.
        """
        ...
    def baddbmm_(self, *args: Any, **given: Any) -> Tensor:
        """baddbmm in place; gives itself.
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
    def bernoulli(
        self,
        p: TensorLike | builtins.float = 0.5,
        shape: builtins.int | Sequence[builtins.int] | None = None,
        dtype: DType | builtins.str | None = 'bool',
    ) -> Tensor:
        """Whether an event of probability p happens: never for 0, always for 1; in another dtype, 1 or 0.

        Arguments:
            key: a key of random numbers: ek.random.key(seed), or one that was split
            p: the probability
            shape: the extents of the result
            dtype: the dtype of the result, as ek.float32 or by name

        Without a key, as in PyTorch: bernoulli(x): 1 with the probability that each element of x says, else 0.
        """
        ...
    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Fill with ones, with a probability, and zeros; gives itself.
        """
        ...
    def bfloat16(self, memory_format: Any = None) -> Tensor:
        """The tensor as bfloat16; itself if it is so already.
        """
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
    def bitwise_and_(self, *args: Any, **given: Any) -> Tensor:
        """bitwise_and in place; gives itself.
        """
        ...
    def bitwise_left_shift(self, y: TensorLike) -> Tensor:
        """Bits moved up by y places, zeros following.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_not(self) -> Tensor:
        """Every bit turned over; of bools, whether x does not hold.

        Arguments:
            x: a tensor
        """
        ...
    def bitwise_not_(self, *args: Any, **given: Any) -> Tensor:
        """bitwise_not in place; gives itself.
        """
        ...
    def bitwise_or(self, y: TensorLike) -> Tensor:
        """Bits set in either; of bools, whether either holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_or_(self, *args: Any, **given: Any) -> Tensor:
        """bitwise_or in place; gives itself.
        """
        ...
    def bitwise_right_shift(self, y: TensorLike) -> Tensor:
        """Bits moved down by y places; signs are kept.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_xor(self, y: TensorLike) -> Tensor:
        """Bits set in one of the two.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def bitwise_xor_(self, *args: Any, **given: Any) -> Tensor:
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
    def bool(self, memory_format: Any = None) -> Tensor:
        """The tensor as bool_; itself if it is so already.
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
    def byte(self, memory_format: Any = None) -> Tensor:
        """The tensor as uint8; itself if it is so already.
        """
        ...
    def cast(self, dtype: DType | builtins.str | None) -> Tensor:
        """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0).

        Arguments:
            x: a tensor
            dtype: the dtype of the result, as ek.float32 or by name
        """
        ...
    def cast_(self, *args: Any, **given: Any) -> Tensor:
        """cast in place; gives itself.
        """
        ...
    def cdouble(self, memory_format: Any = None) -> Tensor:
        """The tensor as complex128; itself if it is so already.
        """
        ...
    def ceil(self) -> Tensor:
        """The least integer not below x.

        Arguments:
            x: a tensor
        """
        ...
    def ceil_(self, *args: Any, **given: Any) -> Tensor:
        """ceil in place; gives itself.
        """
        ...
    def celu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha·(e^(x/alpha) - 1).

        Arguments:
            x: a tensor
            alpha: the value that is approached far below 0, with its sign turned
        """
        ...
    def celu_(self, *args: Any, **given: Any) -> Tensor:
        """celu in place; gives itself.
        """
        ...
    def cfloat(self, memory_format: Any = None) -> Tensor:
        """The tensor as complex64; itself if it is so already.
        """
        ...
    def char(self, memory_format: Any = None) -> Tensor:
        """The tensor as int8; itself if it is so already.
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
    def clamp_(self, *args: Any, **given: Any) -> Tensor:
        """clamp in place; gives itself.
        """
        ...
    def clamp_max(self, max: Any) -> Any:
        """x, and max where x is above it.
        """
        ...
    def clamp_max_(self, *args: Any, **given: Any) -> Tensor:
        """clamp_max in place; gives itself.
        """
        ...
    def clamp_min(self, min: Any) -> Any:
        """x, and min where x is below it.
        """
        ...
    def clamp_min_(self, *args: Any, **given: Any) -> Tensor:
        """clamp_min in place; gives itself.
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
    def clip_(self, *args: Any, **given: Any) -> Tensor:
        """clip in place; gives itself.
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
    def conj_physical(self) -> Tensor:
        """The complex conjugate.

        Arguments:
            x: a tensor
        """
        ...
    def contiguous(self, memory_format: Any = None) -> Tensor:
        """The tensor itself, which is contiguous.
        """
        ...
    def copy(self) -> Tensor:
        """The same value under another handle.
        """
        ...
    def copy_(self, source: Any, non_blocking: builtins.bool = False) -> Tensor:
        """Become the values of another tensor, broadcast and cast; gives itself.
        """
        ...
    def copysign(self, y: TensorLike) -> Tensor:
        """|x| with the sign of y, also of -0.0 (NaN counts as positive); the derivative where x is 0 is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def copysign_(self, *args: Any, **given: Any) -> Tensor:
        """copysign in place; gives itself.
        """
        ...
    def corrcoef(self) -> Any:
        """The correlations of the rows of a matrix.
        """
        ...
    def cos(self) -> Tensor:
        """Cosine of radians.

        Arguments:
            x: a tensor
        """
        ...
    def cos_(self, *args: Any, **given: Any) -> Tensor:
        """cos in place; gives itself.
        """
        ...
    def cosh(self) -> Tensor:
        """Hyperbolic cosine.

        Arguments:
            x: a tensor
        """
        ...
    def cosh_(self, *args: Any, **given: Any) -> Tensor:
        """cosh in place; gives itself.
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
    def cov(self, *, correction: builtins.int = 1) -> Any:
        """The covariances of the rows of a matrix.
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
    def cuda(self, device: Any = None, non_blocking: builtins.bool = False) -> Tensor:
        """The tensor on a graphics card of NVIDIA's, if there is one.
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
    def cummax_(self, *args: Any, **given: Any) -> Tensor:
        """cummax in place; gives itself.
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
    def cummin_(self, *args: Any, **given: Any) -> Tensor:
        """cummin in place; gives itself.
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
    def cumprod_(self, *args: Any, **given: Any) -> Tensor:
        """cumprod in place; gives itself.
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
    def cumsum_(self, *args: Any, **given: Any) -> Tensor:
        """cumsum in place; gives itself.
        """
        ...
    @property
    def data(self) -> Any: ...
    def deg2rad(self) -> Tensor:
        """Degrees as radians.

        Arguments:
            x: a tensor
        """
        ...
    def deg2rad_(self, *args: Any, **given: Any) -> Tensor:
        """deg2rad in place; gives itself.
        """
        ...
    def degrees(self) -> Tensor:
        """Radians as degrees.

        Arguments:
            x: a tensor
        """
        ...
    def degrees_(self, *args: Any, **given: Any) -> Tensor:
        """degrees in place; gives itself.
        """
        ...
    def det(self) -> Tensor:
        """The determinant of square matrices; its derivative is there for singular ones too.

        Arguments:
            x: a tensor
        """
        ...
    def detach_(self) -> Tensor:
        """Forget what it was computed from; gives itself.
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
    def diagflat(self, offset: builtins.int = 0) -> Any:
        """A matrix of zeros with all elements of x on a diagonal.
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
    def diff(self, n: builtins.int = 1, dim: builtins.int = -1) -> Any:
        """The differences between neighbours along an axis, n times over.
        """
        ...
    def digamma(self) -> Tensor:
        """The derivative of log Γ(x); NaN at the negative integers.

        Arguments:
            x: a tensor
        """
        ...
    def digamma_(self, *args: Any, **given: Any) -> Tensor:
        """digamma in place; gives itself.
        """
        ...
    def dim(self) -> builtins.int:
        """The number of axes.
        """
        ...
    def dist(self, y: Any, p: builtins.float = 2) -> Any:
        """The p-norm of x - y.
        """
        ...
    def div(self, y: TensorLike) -> Tensor:
        """x / y; integers become floats first.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def div_(self, *args: Any, **given: Any) -> Tensor:
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
    def divide_(self, *args: Any, **given: Any) -> Tensor:
        """divide in place; gives itself.
        """
        ...
    def dot(self, y: TensorLike) -> Tensor:
        """The sum over the last axis of x and the last but one of y (the only one of a vector); scalars multiply.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def double(self, memory_format: Any = None) -> Tensor:
        """The tensor as float64; itself if it is so already.
        """
        ...
    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
        """x in parts along the third axis.
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
    def element_size(self) -> builtins.int:
        """The bytes of one element.
        """
        ...
    def elu(self, alpha: builtins.float = 1.0) -> Tensor:
        """x where it is positive, else alpha·(e^x - 1).

        Arguments:
            x: a tensor
            alpha: the value that is approached far below 0, with its sign turned
        """
        ...
    def elu_(self, *args: Any, **given: Any) -> Tensor:
        """elu in place; gives itself.
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
    def eq_(self, *args: Any, **given: Any) -> Tensor:
        """eq in place; gives itself.
        """
        ...
    def equal(self, y: TensorLike) -> Tensor:
        """Whether x = y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def equal_(self, *args: Any, **given: Any) -> Tensor:
        """equal in place; gives itself.
        """
        ...
    def erf(self) -> Tensor:
        """The error function.

        Arguments:
            x: a tensor
        """
        ...
    def erf_(self, *args: Any, **given: Any) -> Tensor:
        """erf in place; gives itself.
        """
        ...
    def erfc(self) -> Tensor:
        """1 - erf(x), accurate for large x.

        Arguments:
            x: a tensor
        """
        ...
    def erfc_(self, *args: Any, **given: Any) -> Tensor:
        """erfc in place; gives itself.
        """
        ...
    def erfinv(self) -> Tensor:
        """The number whose erf is x; ±inf at ±1, NaN beyond.

        Arguments:
            x: a tensor
        """
        ...
    def erfinv_(self, *args: Any, **given: Any) -> Tensor:
        """erfinv in place; gives itself.
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
    def exp2_(self, *args: Any, **given: Any) -> Tensor:
        """exp2 in place; gives itself.
        """
        ...
    def exp_(self, *args: Any, **given: Any) -> Tensor:
        """exp in place; gives itself.
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
    def expand_as(self, other: Tensor) -> Tensor:
        """Broadcast to the shape of another tensor.
        """
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
    def expm1_(self, *args: Any, **given: Any) -> Tensor:
        """expm1 in place; gives itself.
        """
        ...
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with draws of the exponential distribution of a rate; gives itself.
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
    def fill_(self, value: Any) -> Tensor:
        """Become one number everywhere; gives itself.
        """
        ...
    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Become one number on the diagonal of a matrix; gives itself.
        """
        ...
    def fix(self) -> Tensor:
        """x without its fraction.

        Arguments:
            x: a tensor
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
    @overload
    def flip(self, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """The elements in reverse order along axes (all of them by default).

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    @overload
    def flip(self, *axis: builtins.int) -> Tensor:
        ...
    def fliplr(self) -> Any:
        """Rows from right to left.
        """
        ...
    def flipud(self) -> Any:
        """Rows from the last to the first.
        """
        ...
    def float(self, memory_format: Any = None) -> Tensor:
        """The tensor as float32; itself if it is so already.
        """
        ...
    def float_power(self, exponent: Any) -> Any:
        """x to a power, in float64.
        """
        ...
    def float_power_(self, *args: Any, **given: Any) -> Tensor:
        """float_power in place; gives itself.
        """
        ...
    def floor(self) -> Tensor:
        """The greatest integer not above x.

        Arguments:
            x: a tensor
        """
        ...
    def floor_(self, *args: Any, **given: Any) -> Tensor:
        """floor in place; gives itself.
        """
        ...
    def floor_divide(self, y: TensorLike) -> Tensor:
        """The greatest integer not above x / y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def floor_divide_(self, *args: Any, **given: Any) -> Tensor:
        """floor_divide in place; gives itself.
        """
        ...
    def fmax(self, y: Any) -> Any:
        """The greater of x and y; where one is NaN, the other.
        """
        ...
    def fmin(self, y: Any) -> Any:
        """The lesser of x and y; where one is NaN, the other.
        """
        ...
    def fmod(self, y: TensorLike) -> Tensor:
        """What truncating division leaves, with the sign of x.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def fmod_(self, *args: Any, **given: Any) -> Tensor:
        """fmod in place; gives itself.
        """
        ...
    def frac(self) -> Any:
        """What is left of x without its whole part, with the sign of x.
        """
        ...
    def frac_(self, *args: Any, **given: Any) -> Tensor:
        """frac in place; gives itself.
        """
        ...
    def frobenius_norm(
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
    def ge_(self, *args: Any, **given: Any) -> Tensor:
        """ge in place; gives itself.
        """
        ...
    def gelu(self, approximate: builtins.str = 'none') -> Tensor:
        """x·Φ(x), Φ the normal distribution, rounded once; approximate="tanh" takes a common approximation.

        Arguments:
            x: a tensor
            approximate: "none" or "tanh"
        """
        ...
    def gelu_(self, *args: Any, **given: Any) -> Tensor:
        """gelu in place; gives itself.
        """
        ...
    def ger(self, y: TensorLike) -> Tensor:
        """Every element of x times every element of y: a matrix.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def glu(self, axis: builtins.int = -1) -> Tensor:
        """The first half of an axis times the sigmoid of the second.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def glu_(self, *args: Any, **given: Any) -> Tensor:
        """glu in place; gives itself.
        """
        ...
    @property
    def grad_fn(self) -> Any: ...
    def greater(self, y: TensorLike) -> Tensor:
        """Whether x > y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def greater_(self, *args: Any, **given: Any) -> Tensor:
        """greater in place; gives itself.
        """
        ...
    def greater_equal(self, y: TensorLike) -> Tensor:
        """Whether x ≥ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def greater_equal_(self, *args: Any, **given: Any) -> Tensor:
        """greater_equal in place; gives itself.
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
    def gt_(self, *args: Any, **given: Any) -> Tensor:
        """gt in place; gives itself.
        """
        ...
    def half(self, memory_format: Any = None) -> Tensor:
        """The tensor as float16; itself if it is so already.
        """
        ...
    def hard_shrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """x, and 0 within lambd of 0.

        Arguments:
            x: a tensor
            lambd: how wide the part around 0 is
        """
        ...
    def hard_shrink_(self, *args: Any, **given: Any) -> Tensor:
        """hard_shrink in place; gives itself.
        """
        ...
    def hard_sigmoid(self) -> Tensor:
        """x/6 + 1/2 brought between 0 and 1, where the derivative is 0.

        Arguments:
            x: a tensor
        """
        ...
    def hard_sigmoid_(self, *args: Any, **given: Any) -> Tensor:
        """hard_sigmoid in place; gives itself.
        """
        ...
    def hard_swish(self) -> Tensor:
        """x·hard_sigmoid(x): 0 up to -3, x from 3 on.

        Arguments:
            x: a tensor
        """
        ...
    def hard_swish_(self, *args: Any, **given: Any) -> Tensor:
        """hard_swish in place; gives itself.
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
    def hard_tanh_(self, *args: Any, **given: Any) -> Tensor:
        """hard_tanh in place; gives itself.
        """
        ...
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 where x is negative, 1 where it is positive, and `values` where it is 0; NaN stays.

        Arguments:
            x: a tensor
            values: what stands where x is 0
        """
        ...
    def heaviside_(self, *args: Any, **given: Any) -> Tensor:
        """heaviside in place; gives itself.
        """
        ...
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Any:
        """How many elements are in each of equal bins, from the least to the greatest element unless bounds are given.
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
    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
        """x in parts along the second axis, of a vector along its only one.
        """
        ...
    def hypot(self, y: TensorLike) -> Tensor:
        """√(x² + y²) without overflow; the derivative at 0 is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def hypot_(self, *args: Any, **given: Any) -> Tensor:
        """hypot in place; gives itself.
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
    def index_add_(self, *args: Any, **given: Any) -> Tensor:
        """index_add in place; gives itself.
        """
        ...
    def index_copy(self, dim: builtins.int, index: Any, source: Any) -> Any:
        """x with the slices of a source at positions of an axis.
        """
        ...
    def index_copy_(self, *args: Any, **given: Any) -> Tensor:
        """index_copy in place; gives itself.
        """
        ...
    def index_fill(self, dim: builtins.int, index: Any, value: Any) -> Any:
        """x with one value at positions of an axis.
        """
        ...
    def index_fill_(self, *args: Any, **given: Any) -> Tensor:
        """index_fill in place; gives itself.
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
    def index_put_(self, *args: Any, **given: Any) -> Tensor:
        """index_put in place; gives itself.
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
    def int(self, memory_format: Any = None) -> Tensor:
        """The tensor as int32; itself if it is so already.
        """
        ...
    def inv(self) -> Tensor:
        """The inverse of square matrices; a singular one is an error.

        Arguments:
            x: a tensor
        """
        ...
    def inverse(self) -> Tensor:
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
    def is_complex(self) -> builtins.bool:
        """Whether its elements are complex numbers.
        """
        ...
    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """True: every tensor here is a value of its own, row after row.
        """
        ...
    @property
    def is_cuda(self) -> Any: ...
    def is_floating_point(self) -> builtins.bool:
        """Whether its elements are floats.
        """
        ...
    def is_nonzero(self) -> builtins.bool:
        """Whether the one element is not 0.
        """
        ...
    def is_signed(self) -> builtins.bool:
        """Whether its dtype has negative numbers.
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
    def isclose_(self, *args: Any, **given: Any) -> Tensor:
        """isclose in place; gives itself.
        """
        ...
    def isfinite(self) -> Tensor:
        """Whether x is neither infinite nor NaN.

        Arguments:
            x: a tensor
        """
        ...
    def isfinite_(self, *args: Any, **given: Any) -> Tensor:
        """isfinite in place; gives itself.
        """
        ...
    def isin(self, test_elements: Any) -> Any:
        """Which elements are among others; NaN is among none.
        """
        ...
    def isinf(self) -> Tensor:
        """Whether x is infinite.

        Arguments:
            x: a tensor
        """
        ...
    def isinf_(self, *args: Any, **given: Any) -> Tensor:
        """isinf in place; gives itself.
        """
        ...
    def isnan(self) -> Tensor:
        """Whether x is NaN.

        Arguments:
            x: a tensor
        """
        ...
    def isnan_(self, *args: Any, **given: Any) -> Tensor:
        """isnan in place; gives itself.
        """
        ...
    def isneginf(self) -> Any:
        """Whether x is -inf.
        """
        ...
    def isposinf(self) -> Any:
        """Whether x is +inf.
        """
        ...
    def isreal(self) -> Any:
        """Whether the imaginary part is 0.
        """
        ...
    def istft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Any = None,
        center: builtins.bool = True,
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        length: builtins.int | None = None,
        return_complex: builtins.bool = False,
    ) -> Any:
        """The signal whose `stft` is given, as near as can be: windows are added up, and divided by what there is of them.

        An element that no window reaches is NaN.
        """
        ...
    @property
    def itemsize(self) -> Any: ...
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
    def ldexp(self, y: Any) -> Any:
        """x · 2^y.
        """
        ...
    def le(self, y: TensorLike) -> Tensor:
        """Whether x ≤ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def le_(self, *args: Any, **given: Any) -> Tensor:
        """le in place; gives itself.
        """
        ...
    def leaky_relu(self, negative_slope: builtins.float = 0.01) -> Tensor:
        """x where it is positive, else x times a small slope (as at 0).

        Arguments:
            x: a tensor
            negative_slope: the slope where x is negative
        """
        ...
    def leaky_relu_(self, *args: Any, **given: Any) -> Tensor:
        """leaky_relu in place; gives itself.
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
    def lerp_(self, *args: Any, **given: Any) -> Tensor:
        """lerp in place; gives itself.
        """
        ...
    def less(self, y: TensorLike) -> Tensor:
        """Whether x < y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def less_(self, *args: Any, **given: Any) -> Tensor:
        """less in place; gives itself.
        """
        ...
    def less_equal(self, y: TensorLike) -> Tensor:
        """Whether x ≤ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def less_equal_(self, *args: Any, **given: Any) -> Tensor:
        """less_equal in place; gives itself.
        """
        ...
    def lgamma(self) -> Tensor:
        """log |Γ(x)|; infinite at 0 and the negative integers.

        Arguments:
            x: a tensor
        """
        ...
    def lgamma_(self, *args: Any, **given: Any) -> Tensor:
        """lgamma in place; gives itself.
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
    def log10_(self, *args: Any, **given: Any) -> Tensor:
        """log10 in place; gives itself.
        """
        ...
    def log1p(self) -> Tensor:
        """log(1 + x), accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def log1p_(self, *args: Any, **given: Any) -> Tensor:
        """log1p in place; gives itself.
        """
        ...
    def log2(self) -> Tensor:
        """Logarithm to the base 2.

        Arguments:
            x: a tensor
        """
        ...
    def log2_(self, *args: Any, **given: Any) -> Tensor:
        """log2 in place; gives itself.
        """
        ...
    def log_(self, *args: Any, **given: Any) -> Tensor:
        """log in place; gives itself.
        """
        ...
    def log_sigmoid(self) -> Tensor:
        """log(sigmoid(x)), without overflow.

        Arguments:
            x: a tensor
        """
        ...
    def log_sigmoid_(self, *args: Any, **given: Any) -> Tensor:
        """log_sigmoid in place; gives itself.
        """
        ...
    def log_softmax(self, axis: builtins.int = -1) -> Tensor:
        """The logarithm of softmax, without overflow and without losing small ones.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def log_softmax_(self, *args: Any, **given: Any) -> Tensor:
        """log_softmax in place; gives itself.
        """
        ...
    def logaddexp(self, y: TensorLike) -> Tensor:
        """log(e^x + e^y) without overflow; where both are -inf the derivative is 0.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logaddexp2(self, y: Any) -> Any:
        """log2(2^x + 2^y), without overflow.
        """
        ...
    def logaddexp_(self, *args: Any, **given: Any) -> Tensor:
        """logaddexp in place; gives itself.
        """
        ...
    def logcumsumexp(self, dim: builtins.int) -> Any:
        """The logarithm of the sum of e^x up to each element along an axis, without overflow.
        """
        ...
    def logdet(self) -> Any:
        """The logarithm of the determinant; NaN where it is negative.
        """
        ...
    def logical_and(self, y: TensorLike) -> Tensor:
        """Whether x and y both hold (are not 0).

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_and_(self, *args: Any, **given: Any) -> Tensor:
        """logical_and in place; gives itself.
        """
        ...
    def logical_not(self) -> Tensor:
        """Whether x does not hold (is 0).

        Arguments:
            x: a tensor
        """
        ...
    def logical_not_(self, *args: Any, **given: Any) -> Tensor:
        """logical_not in place; gives itself.
        """
        ...
    def logical_or(self, y: TensorLike) -> Tensor:
        """Whether x or y holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_or_(self, *args: Any, **given: Any) -> Tensor:
        """logical_or in place; gives itself.
        """
        ...
    def logical_xor(self, y: TensorLike) -> Tensor:
        """Whether exactly one of x and y holds.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def logical_xor_(self, *args: Any, **given: Any) -> Tensor:
        """logical_xor in place; gives itself.
        """
        ...
    def logit(self, eps: builtins.float | None = None) -> Any:
        """log(x / (1 - x)), of x brought between eps and 1 - eps if that is given.
        """
        ...
    def logit_(self, *args: Any, **given: Any) -> Tensor:
        """logit in place; gives itself.
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
    def long(self, memory_format: Any = None) -> Tensor:
        """The tensor as int64; itself if it is so already.
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
    def lt_(self, *args: Any, **given: Any) -> Tensor:
        """lt in place; gives itself.
        """
        ...
    @property
    def mH(self) -> Any: ...
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """x with one value wherever the mask holds, which broadcasts to x.

        Arguments:
            x: a tensor
            mask: truth values: where it holds; it broadcasts
            value: the value to put in
        """
        ...
    def masked_fill_(self, *args: Any, **given: Any) -> Tensor:
        """masked_fill in place; gives itself.
        """
        ...
    def masked_scatter(self, mask: Any, source: Any) -> Any:
        """x with the elements of a source, in order, where a mask holds.
        """
        ...
    def masked_scatter_(self, *args: Any, **given: Any) -> Tensor:
        """masked_scatter in place; gives itself.
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

        Called as in PyTorch, max(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
        """
        ...
    def maximum(self, y: TensorLike) -> Tensor:
        """The greater of x and y; NaN if either is; equal operands share the tangent.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def maximum_(self, *args: Any, **given: Any) -> Tensor:
        """maximum in place; gives itself.
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

        Called as in PyTorch, median(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
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

        Called as in PyTorch, min(x, dim, keepdim=False), it gives (values, indices); in NumPy's words, with axis= or keepdims=, the values alone.
        """
        ...
    def minimum(self, y: TensorLike) -> Tensor:
        """The lesser of x and y; NaN if either is; equal operands share the tangent.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def minimum_(self, *args: Any, **given: Any) -> Tensor:
        """minimum in place; gives itself.
        """
        ...
    def mish(self) -> Tensor:
        """x·tanh(softplus(x)).

        Arguments:
            x: a tensor
        """
        ...
    def mish_(self, *args: Any, **given: Any) -> Tensor:
        """mish in place; gives itself.
        """
        ...
    def mm(self, y: Any) -> Any:
        """The product of two matrices.
        """
        ...
    def mod(self, y: TensorLike) -> Tensor:
        """What floor division leaves, with the sign of y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mod_(self, *args: Any, **given: Any) -> Tensor:
        """mod in place; gives itself.
        """
        ...
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Any:
        """The value that comes most often along an axis (the least of several), and the last place where it is.
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
    def msort(self) -> Any:
        """The elements in order along the first axis.
        """
        ...
    def mul(self, y: TensorLike) -> Tensor:
        """x · y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def mul_(self, *args: Any, **given: Any) -> Tensor:
        """mul in place; gives itself.
        """
        ...
    def multinomial(
        self,
        probabilities: TensorLike,
        count: builtins.int,
        replacement: builtins.bool = False,
    ) -> Tensor:
        """count places of the last axis, drawn in proportion to probabilities (which need not sum to 1).

        Without replacement no place is drawn twice, and those of probability 0 come last. With it, a number is drawn for
        every place and draw. Negative probabilities are an error where they are known already; computed within a graph
        they count as 0.

        Arguments:
            key: a key of random numbers: ek.random.key(seed), or one that was split
            probabilities: what is drawn in proportion to
            count: how many draws
            replacement: whether one place may be drawn more than once

        Without a key, as in PyTorch: multinomial(probabilities, num_samples, replacement=False).
        """
        ...
    def multiply(self, y: TensorLike) -> Tensor:
        """x · y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def multiply_(self, *args: Any, **given: Any) -> Tensor:
        """multiply in place; gives itself.
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
    def nan_to_num_(self, *args: Any, **given: Any) -> Tensor:
        """nan_to_num in place; gives itself.
        """
        ...
    def nanmean(self, dim: Any = None, keepdim: builtins.bool = False) -> Any:
        """The mean of the elements that are not NaN.
        """
        ...
    def nansum(self, dim: Any = None, keepdim: builtins.bool = False) -> Any:
        """The sum of the elements that are not NaN.
        """
        ...
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Any:
        """`length` elements along an axis, from `start` on.
        """
        ...
    def ndimension(self) -> builtins.int:
        """The number of axes.
        """
        ...
    def ndtr(self) -> Tensor:
        """Φ(x): how much of the normal distribution lies below x, accurate also where it is small.

        Arguments:
            x: a tensor
        """
        ...
    def ndtr_(self, *args: Any, **given: Any) -> Tensor:
        """ndtr in place; gives itself.
        """
        ...
    def ndtri(self) -> Tensor:
        """The number below which x of the normal distribution lies, accurate for small x; ±inf at 0 and 1, NaN beyond.

        Arguments:
            x: a tensor
        """
        ...
    def ndtri_(self, *args: Any, **given: Any) -> Tensor:
        """ndtri in place; gives itself.
        """
        ...
    def ne(self, y: TensorLike) -> Tensor:
        """Whether x ≠ y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def ne_(self, *args: Any, **given: Any) -> Tensor:
        """ne in place; gives itself.
        """
        ...
    def neg(self) -> Tensor:
        """-x.

        Arguments:
            x: a tensor
        """
        ...
    def neg_(self, *args: Any, **given: Any) -> Tensor:
        """neg in place; gives itself.
        """
        ...
    def negative(self) -> Tensor:
        """-x.

        Arguments:
            x: a tensor
        """
        ...
    def negative_(self, *args: Any, **given: Any) -> Tensor:
        """negative in place; gives itself.
        """
        ...
    def nelement(self) -> builtins.int:
        """The number of elements.
        """
        ...
    def new_empty(
        self,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """empty of a shape, of the dtype and on the device of this tensor.
        """
        ...
    def new_full(self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """One number everywhere, in the dtype and on the device of this tensor.
        """
        ...
    def new_ones(
        self,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """ones of a shape, of the dtype and on the device of this tensor.
        """
        ...
    def new_tensor(
        self,
        data: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of data, of the dtype and on the device of this one.
        """
        ...
    def new_zeros(
        self,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """zeros of a shape, of the dtype and on the device of this tensor.
        """
        ...
    def nonzero(self, *, as_tuple: builtins.bool = True) -> Any:
        """The positions of the elements that are not 0: one vector per axis, or with as_tuple=False a row per element.
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
    def normal_(self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with normal numbers; gives itself.
        """
        ...
    def normal_density(self) -> Tensor:
        """The density of the normal distribution, e^(-x²/2)/√(2π).

        Arguments:
            x: a tensor
        """
        ...
    def normal_density_(self, *args: Any, **given: Any) -> Tensor:
        """normal_density in place; gives itself.
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
    def not_equal_(self, *args: Any, **given: Any) -> Tensor:
        """not_equal in place; gives itself.
        """
        ...
    def numel(self) -> builtins.int:
        """The number of elements.
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
    def pinverse(self, rtol: builtins.float | None = None) -> Tensor:
        """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

        By default rtol is the greater extent of the matrix times the epsilon of its dtype.

        Arguments:
            x: a tensor
            rtol: how large a difference is allowed, relative to the size of the numbers
        """
        ...
    def positive(self) -> Any:
        """x itself.
        """
        ...
    def pow(self, y: TensorLike | builtins.float) -> Tensor:
        """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def pow_(self, *args: Any, **given: Any) -> Tensor:
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
    def power_(self, *args: Any, **given: Any) -> Tensor:
        """power in place; gives itself.
        """
        ...
    def prelu(self, weight: TensorLike) -> Tensor:
        """x where it is positive, else x times a learned weight: one, or one per channel (axis 1).

        Arguments:
            x: a tensor
            weight: the slope where x is negative: one, or one per channel
        """
        ...
    def prelu_(self, *args: Any, **given: Any) -> Tensor:
        """prelu in place; gives itself.
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
    def rad2deg_(self, *args: Any, **given: Any) -> Tensor:
        """rad2deg in place; gives itself.
        """
        ...
    def radians(self) -> Tensor:
        """Degrees as radians.

        Arguments:
            x: a tensor
        """
        ...
    def radians_(self, *args: Any, **given: Any) -> Tensor:
        """radians in place; gives itself.
        """
        ...
    def random_(self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Any = None) -> Tensor:
        """Fill with integers, from `from_` to before `to`; gives itself.
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
    def reciprocal_(self, *args: Any, **given: Any) -> Tensor:
        """reciprocal in place; gives itself.
        """
        ...
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call a function with the gradient of this tensor in `backward`; what it gives, unless None, is taken instead.

        Where it is no leaf, that holds for what is computed from it from now on.
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
    def relu6_(self, *args: Any, **given: Any) -> Tensor:
        """relu6 in place; gives itself.
        """
        ...
    def relu_(self, *args: Any, **given: Any) -> Tensor:
        """relu in place; gives itself.
        """
        ...
    def remainder(self, y: TensorLike) -> Tensor:
        """What floor division leaves, with the sign of y; integers by zero are an error.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def remainder_(self, *args: Any, **given: Any) -> Tensor:
        """remainder in place; gives itself.
        """
        ...
    def repeat(self, *repeats: Any, axis: builtins.int | None = None) -> Tensor:
        """The whole tensor several times along each axis, as in PyTorch; with `axis=`, each element as in NumPy.
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
    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements under the shape of another tensor.
        """
        ...
    def resolve_conj(self) -> Any:
        """x itself.
        """
        ...
    def resolve_neg(self) -> Any:
        """x itself.
        """
        ...
    def retain_grad(self) -> None:
        """Ask that `backward` leaves the gradient in `grad` although this is no leaf.
        """
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
    def round_(self, *args: Any, **given: Any) -> Tensor:
        """round in place; gives itself.
        """
        ...
    def rsqrt(self) -> Tensor:
        """1 / √x.

        Arguments:
            x: a tensor
        """
        ...
    def rsqrt_(self, *args: Any, **given: Any) -> Tensor:
        """rsqrt in place; gives itself.
        """
        ...
    def scatter(self, *args: Any, **given: Any) -> Any:
        """The row, or PyTorch's `scatter(x, dim, index, src)`: elements put along an axis where an index says.
        """
        ...
    def scatter_(self, *args: Any, **given: Any) -> Tensor:
        """scatter in place; gives itself.
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
    def scatter_add_(self, *args: Any, **given: Any) -> Tensor:
        """scatter_add in place; gives itself.
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
    def scatter_reduce(
        self,
        dim: builtins.int,
        index: Any,
        src: Any,
        reduce: builtins.str,
        *,
        include_self: builtins.bool = True,
    ) -> Any:
        """x with the elements of src combined into the places that an index says.
        """
        ...
    def scatter_reduce_(self, *args: Any, **given: Any) -> Tensor:
        """scatter_reduce in place; gives itself.
        """
        ...
    def select(self, dim: builtins.int, index: builtins.int) -> Any:
        """The elements at one position of an axis, without that axis.
        """
        ...
    def select_scatter(self, src: Any, dim: builtins.int, index: builtins.int) -> Any:
        """x with a slice at one position of an axis.
        """
        ...
    def selu(self) -> Tensor:
        """elu scaled so that a normal distribution keeps mean 0 and variance 1.

        Arguments:
            x: a tensor
        """
        ...
    def selu_(self, *args: Any, **given: Any) -> Tensor:
        """selu in place; gives itself.
        """
        ...
    def sgn(self) -> Tensor:
        """-1, 0 or 1.

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
    def shift_left_(self, *args: Any, **given: Any) -> Tensor:
        """shift_left in place; gives itself.
        """
        ...
    def shift_right(self, y: TensorLike) -> Tensor:
        """Bits moved down by y places; signs are kept.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def shift_right_(self, *args: Any, **given: Any) -> Tensor:
        """shift_right in place; gives itself.
        """
        ...
    def short(self, memory_format: Any = None) -> Tensor:
        """The tensor as int16; itself if it is so already.
        """
        ...
    def sigmoid(self) -> Tensor:
        """1 / (1 + e^-x), stable for large |x|.

        Arguments:
            x: a tensor
        """
        ...
    def sigmoid_(self, *args: Any, **given: Any) -> Tensor:
        """sigmoid in place; gives itself.
        """
        ...
    def sign(self) -> Tensor:
        """-1, 0 or 1.

        Arguments:
            x: a tensor
        """
        ...
    def sign_(self, *args: Any, **given: Any) -> Tensor:
        """sign in place; gives itself.
        """
        ...
    def signbit(self) -> Any:
        """Whether x has a minus sign, also of -0.0.
        """
        ...
    def silu(self) -> Tensor:
        """x·sigmoid(x).

        Arguments:
            x: a tensor
        """
        ...
    def silu_(self, *args: Any, **given: Any) -> Tensor:
        """silu in place; gives itself.
        """
        ...
    def sin(self) -> Tensor:
        """Sine of radians.

        Arguments:
            x: a tensor
        """
        ...
    def sin_(self, *args: Any, **given: Any) -> Tensor:
        """sin in place; gives itself.
        """
        ...
    def sinc(self) -> Tensor:
        """sin(πx) / (πx), and 1 at 0, with its derivatives.

        Arguments:
            x: a tensor
        """
        ...
    def sinc_(self, *args: Any, **given: Any) -> Tensor:
        """sinc in place; gives itself.
        """
        ...
    def sinh(self) -> Tensor:
        """Hyperbolic sine, accurate near 0.

        Arguments:
            x: a tensor
        """
        ...
    def sinh_(self, *args: Any, **given: Any) -> Tensor:
        """sinh in place; gives itself.
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
    def slice_scatter(
        self,
        src: Any,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Any:
        """x with the elements of src at a slice of an axis.
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
    def soft_shrink_(self, *args: Any, **given: Any) -> Tensor:
        """soft_shrink in place; gives itself.
        """
        ...
    def softmax(self, axis: builtins.int = -1) -> Tensor:
        """e^x divided by its sum along an axis, without overflow; where all is -inf, NaN.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def softmax_(self, *args: Any, **given: Any) -> Tensor:
        """softmax in place; gives itself.
        """
        ...
    def softmin(self, axis: builtins.int = -1) -> Tensor:
        """softmax of -x.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def softmin_(self, *args: Any, **given: Any) -> Tensor:
        """softmin in place; gives itself.
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
    def softplus_(self, *args: Any, **given: Any) -> Tensor:
        """softplus in place; gives itself.
        """
        ...
    def softsign(self) -> Tensor:
        """x / (1 + |x|).

        Arguments:
            x: a tensor
        """
        ...
    def softsign_(self, *args: Any, **given: Any) -> Tensor:
        """softsign in place; gives itself.
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
    def split_with_sizes(
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
    def sqrt_(self, *args: Any, **given: Any) -> Tensor:
        """sqrt in place; gives itself.
        """
        ...
    def square(self) -> Tensor:
        """x².

        Arguments:
            x: a tensor
        """
        ...
    def square_(self, *args: Any, **given: Any) -> Tensor:
        """square in place; gives itself.
        """
        ...
    def squeeze(self, axis: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """x without axes of extent 1: those given (which must have it), or all.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def squeeze_(self, *args: Any, **given: Any) -> Tensor:
        """squeeze in place: it has another shape from now on; gives itself.
        """
        ...
    def std(
        self,
        axis: builtins.int | Sequence[builtins.int] | None = None,
        correction: builtins.float = 0,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """The square root of var, divided by n - correction (0 as in NumPy); where it is 0, so is the derivative.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
            correction: what is subtracted from the number of elements: 0 or 1
            keepdims: whether axes that are reduced stay, with extent 1
        """
        ...
    def stft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Any = None,
        center: builtins.bool = True,
        pad_mode: builtins.str = 'reflect',
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        return_complex: builtins.bool = True,
    ) -> Any:
        """The Fourier transforms of windows along the last axis: (…, frequencies, windows).

        With `center` the signal is continued by half a window at both ends, so that window t is about element t · hop.
        Of real signals there are the frequencies up to the half, unless `onesided` is False.
        """
        ...
    def stride(self, dim: builtins.int | None = None) -> Any:
        """How many elements lie between neighbours along each axis: every tensor here is contiguous.
        """
        ...
    def sub(self, y: TensorLike) -> Tensor:
        """x - y.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def sub_(self, *args: Any, **given: Any) -> Tensor:
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
    def subtract_(self, *args: Any, **given: Any) -> Tensor:
        """subtract in place; gives itself.
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
    def sum_to_size(self, shape: Sequence[builtins.int]) -> Tensor:
        """The sum over what broadcasting from a shape would repeat.

        Arguments:
            x: a tensor
            shape: the shape to sum to
        """
        ...
    @overload
    def sum_to_size(self, *shape: builtins.int) -> Tensor:
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
    def swish_(self, *args: Any, **given: Any) -> Tensor:
        """swish in place; gives itself.
        """
        ...
    def t(self) -> Tensor:
        """The transpose of a matrix; a vector itself.
        """
        ...
    def t_(self, *args: Any, **given: Any) -> Tensor:
        """t in place: it has another shape from now on; gives itself.
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
    def tan_(self, *args: Any, **given: Any) -> Tensor:
        """tan in place; gives itself.
        """
        ...
    def tanh(self) -> Tensor:
        """Hyperbolic tangent.

        Arguments:
            x: a tensor
        """
        ...
    def tanh_(self, *args: Any, **given: Any) -> Tensor:
        """tanh in place; gives itself.
        """
        ...
    def tanh_shrink(self) -> Tensor:
        """x - tanh(x).

        Arguments:
            x: a tensor
        """
        ...
    def tanh_shrink_(self, *args: Any, **given: Any) -> Tensor:
        """tanh_shrink in place; gives itself.
        """
        ...
    def tensor_split(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int],
        dim: builtins.int = 0,
    ) -> builtins.tuple[Any, ...]:
        """x in parts along an axis: so many, as equal as can be, or divided before these positions.
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
    def threshold_(self, *args: Any, **given: Any) -> Tensor:
        """threshold in place; gives itself.
        """
        ...
    @overload
    def tile(self, reps: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x several times along each axis, the last of which `reps` ends with.

        Arguments:
            x: a tensor
            reps: how often along each axis
        """
        ...
    @overload
    def tile(self, *reps: builtins.int) -> Tensor:
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
    def transpose_(self, *args: Any, **given: Any) -> Tensor:
        """transpose in place: it has another shape from now on; gives itself.
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
    def tril_(self, *args: Any, **given: Any) -> Tensor:
        """tril in place; gives itself.
        """
        ...
    def triu(self, k: builtins.int = 0) -> Tensor:
        """The elements of matrices on and above the k-th diagonal, zeros below it.

        Arguments:
            x: a tensor
            k: which diagonal: 0 is the main one, positive numbers are above it
        """
        ...
    def triu_(self, *args: Any, **given: Any) -> Tensor:
        """triu in place; gives itself.
        """
        ...
    def true_divide(self, y: TensorLike) -> Tensor:
        """x / y; integers become floats first.

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def true_divide_(self, *args: Any, **given: Any) -> Tensor:
        """true_divide in place; gives itself.
        """
        ...
    def trunc(self) -> Tensor:
        """x without its fraction.

        Arguments:
            x: a tensor
        """
        ...
    def trunc_(self, *args: Any, **given: Any) -> Tensor:
        """trunc in place; gives itself.
        """
        ...
    def type(self, dtype: Any = None) -> Any:
        """The tensor in another dtype; without one, the name of its own.
        """
        ...
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in the dtype of another.
        """
        ...
    def unbind(self, axis: builtins.int = 0) -> builtins.tuple[Tensor, ...]:
        """The slices of x along an axis, without it.

        Arguments:
            x: a tensor
            axis: the axis; negative numbers count from the last one
        """
        ...
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Any:
        """One axis as several.
        """
        ...
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Windows of so many elements along an axis, in steps; they run along a new last axis.
        """
        ...
    def uniform_(self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Any = None) -> Tensor:
        """Fill with uniform numbers; gives itself.
        """
        ...
    @overload
    def unique(
        self,
        return_inverse: Literal[True],
        return_counts: builtins.bool = False,
        axis: builtins.int | None = None,
    ) -> builtins.tuple[Tensor, ...]:
        ...
    @overload
    def unique(
        self,
        return_inverse: builtins.bool = False,
        *,
        return_counts: Literal[True],
        axis: builtins.int | None = None,
    ) -> builtins.tuple[Tensor, ...]:
        ...
    @overload
    def unique(
        self,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """The distinct elements in order; also where each element of x is among them, and how often each occurs.

        With an axis they are the distinct slices along it, by their first elements, then their second and so on. x must be
        known. All NaNs count as one element, but no slice with one is another's like. The tangent is that of the first of
        equal elements.

        Arguments:
            x: a tensor
            return_inverse: whether the place of each element of x is given too
            return_counts: whether it is given how often each occurs
            axis: the axis; negative numbers count from the last one
        """
        ...
    @overload
    def unique(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        axis: builtins.int | None = None,
    ) -> Tensor | builtins.tuple[Tensor, ...]:
        ...
    def unsqueeze(self, axis: builtins.int | Sequence[builtins.int]) -> Tensor:
        """x with new axes of extent 1, at these places of the result.

        Arguments:
            x: a tensor
            axis: the axis or axes; negative numbers count from the last one
        """
        ...
    def unsqueeze_(self, *args: Any, **given: Any) -> Tensor:
        """unsqueeze in place: it has another shape from now on; gives itself.
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
    def view(self, *shape: Any, dtype: Any = None) -> Tensor:
        """The elements in the same order under another shape; a value of its own (see `reshape`).
        """
        ...
    def view_as(self, other: Tensor) -> Tensor:
        """The elements under the shape of another tensor.
        """
        ...
    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> builtins.tuple[Any, ...]:
        """x in parts along the first axis.
        """
        ...
    def where(self, condition: Any, other: Any) -> Tensor:
        """The tensor where a condition holds, else another.
        """
        ...
    def where_(self, *args: Any, **given: Any) -> Tensor:
        """where in place; gives itself.
        """
        ...
    def xlogy(self, y: TensorLike) -> Tensor:
        """x·log(y), which is 0 where x is 0, whatever y is (unless NaN).

        Arguments:
            x: a tensor
            y: a tensor of the same shape, or one that broadcasts with it
        """
        ...
    def xlogy_(self, *args: Any, **given: Any) -> Tensor:
        """xlogy in place; gives itself.
        """
        ...
    def zero_(self) -> Tensor:
        """Become zeros; gives itself.
        """
        ...
