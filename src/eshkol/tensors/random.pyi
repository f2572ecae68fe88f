"""The names of eshkol.tensors.random. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.tensors.keys import Generator as Generator
from eshkol.tensors.draws import key as PRNGKey
from eshkol.tensors.draws import fold_in as fold_in
from eshkol.tensors.drawing_rows import is_key as is_key
from eshkol.tensors.draws import key as key
from eshkol.tensors.draws import key_data as key_data
from eshkol.tensors.keys import next_key as next_key
from eshkol.tensors.draws import rand as rand
from eshkol.tensors.draws import randn as randn
from eshkol.tensors.keys import seed as seed
from eshkol.tensors.draws import split as split
from eshkol.tensors.draws import wrap_key_data as wrap_key_data
from eshkol.tensors.methods import TensorLike

__all__ = [
    "Generator",
    "PRNGKey",
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "dirichlet",
    "dropout",
    "exponential",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "is_key",
    "key",
    "key_data",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "next_key",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "rand",
    "randint",
    "randn",
    "randperm",
    "rayleigh",
    "seed",
    "split",
    "student_t",
    "t",
    "truncated_normal",
    "uniform",
    "weibull_min",
    "wrap_key_data",
]

@overload
def bernoulli(
    p: TensorLike | builtins.float = 0.5,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'bool',
    *,
    generator: Any = None,
) -> Tensor:
    """Whether an event of probability p happens: never for 0, always for 1; in another dtype, 1 or 0.

    Arguments:
        p: the probability
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def bernoulli(
    key: TensorLike,
    p: TensorLike | builtins.float = 0.5,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'bool',
) -> Tensor:
    ...
@overload
def beta(
    a: TensorLike | builtins.float,
    b: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the beta distribution of a and b, without derivatives in them.

    Arguments:
        a: the first parameter of the distribution
        b: the second parameter of the distribution
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def beta(
    key: TensorLike,
    a: TensorLike | builtins.float,
    b: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def bits(key: Any, shape: Any = ..., dtype: Any = 'uint32') -> Tensor:
    """Random bits: unsigned integers, every one equally likely.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def bits(shape: Any = ..., dtype: Any = 'uint32') -> Tensor:
    ...
@overload
def categorical(
    logits: TensorLike,
    axis: builtins.int = -1,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Which place along an axis is drawn, in proportion to e^logits; a shape stands for as many draws, in front.

    Arguments:
        logits: logarithms of what the probabilities are in proportion to
        axis: the axis; negative numbers count from the last one
        shape: the extents of the result
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def categorical(
    key: TensorLike,
    logits: TensorLike,
    axis: builtins.int = -1,
    shape: builtins.int | Sequence[builtins.int] | None = None,
) -> Tensor:
    ...
@overload
def cauchy(key: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Draws from the Cauchy distribution.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def cauchy(shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Draws from the chi-square distribution with df degrees of freedom.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def chisquare(df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    ...
@overload
def choice(
    key: Any,
    a: Any,
    shape: Any = ...,
    replace: builtins.bool = True,
    p: Any = None,
    axis: builtins.int = 0,
) -> Tensor:
    """Slices of `a` along an axis (of a number: integers below it), drawn with probabilities p, all alike by default.

    Without `replace` none is drawn twice.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def choice(a: Any, shape: Any = ..., replace: builtins.bool = True, p: Any = None, axis: builtins.int = 0) -> Tensor:
    ...
@overload
def dirichlet(
    alpha: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the Dirichlet distribution: along the last axis of alpha, positive numbers whose sum is 1.

    A shape is that of the other axes. There is no derivative in alpha.

    Arguments:
        alpha: the concentrations, along the last axis
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def dirichlet(
    key: TensorLike,
    alpha: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def dropout(x: TensorLike, p: builtins.float = 0.5, training: builtins.bool = True, *, generator: Any = None) -> Tensor:
    """x with each element set to 0 with probability p, the others divided by 1 - p; x itself when not training.

    Arguments:
        x: a tensor
        p: the probability with which an element becomes 0
        training: whether it is done as in training
        generator: whose next key is taken; everybody's unless given

    A key is given as key=.
    """
    ...
@overload
def dropout(x: TensorLike, key: TensorLike | None, p: builtins.float = 0.5, training: builtins.bool = True) -> Tensor:
    ...
@overload
def exponential(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the exponential distribution of mean scale, never 0 before rounding.

    Arguments:
        shape: the extents of the result
        scale: the mean of the draws
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def exponential(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def exponential(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def gamma(
    alpha: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the gamma distribution of shape alpha; smooth in scale, without derivative in alpha.

    Arguments:
        alpha: the shape of the distribution
        shape: the extents of the result
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def gamma(
    key: TensorLike,
    alpha: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def gamma(
    key: TensorLike,
    a: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def geometric(key: Any, p: Any, shape: Any = ..., dtype: Any = 'int64') -> Tensor:
    """How many trials of probability p it takes until the first succeeds: 1 or more.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def geometric(p: Any, shape: Any = ..., dtype: Any = 'int64') -> Tensor:
    ...
@overload
def gumbel(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the Gumbel distribution, loc + scale·g.

    Arguments:
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def gumbel(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def gumbel(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def laplace(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the Laplace distribution, loc + scale·l.

    Arguments:
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def laplace(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def laplace(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Logarithms of draws from the gamma distribution.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def loggamma(a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    ...
@overload
def logistic(key: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Draws from the logistic distribution.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def logistic(shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = ..., dtype: Any = None) -> Tensor:
    """e to the power of normal draws with standard deviation sigma.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def lognormal(sigma: Any = 1.0, shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def maxwell(key: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """The length of a vector of three normal draws.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def maxwell(shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def multinomial(
    probabilities: TensorLike,
    count: builtins.int,
    replacement: builtins.bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """count places of the last axis, drawn in proportion to probabilities (which need not sum to 1).

    Without replacement no place is drawn twice, and those of probability 0 come last. With it, a number is drawn for
    every place and draw. Negative probabilities are an error where they are known already; computed within a graph
    they count as 0.

    Arguments:
        probabilities: what is drawn in proportion to
        count: how many draws
        replacement: whether one place may be drawn more than once
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def multinomial(
    key: TensorLike,
    probabilities: TensorLike,
    count: builtins.int,
    replacement: builtins.bool = False,
) -> Tensor:
    ...
@overload
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: builtins.str = 'cholesky',
) -> Tensor:
    """Normal vectors with a mean and a covariance, of a shape in front.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def multivariate_normal(
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: builtins.str = 'cholesky',
) -> Tensor:
    ...
@overload
def normal(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Normal draws loc + scale·z; z is the quantile of a uniform number and reaches 6.3 (9.2 in float64).

    Arguments:
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def normal(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def normal(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def orthogonal(key: Any, n: builtins.int, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Orthogonal n × n matrices, every one equally likely.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def orthogonal(n: builtins.int, shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def pareto(key: Any, b: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Draws from the Pareto distribution: from 1 on, in proportion to x^(-b - 1).

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def pareto(b: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def permutation(key: Any, x: Any, axis: builtins.int = 0, independent: builtins.bool = False) -> Tensor:
    """The slices of x along an axis in random order; of a number, the integers below it.

    With `independent` each vector along the axis gets an order of its own.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def permutation(x: Any, axis: builtins.int = 0, independent: builtins.bool = False) -> Tensor:
    ...
@overload
def poisson(
    rate: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'int64',
    *,
    generator: Any = None,
) -> Tensor:
    """Draws from the Poisson distribution: how often an event happens that happens so often on average, up to 10^15.

    Arguments:
        rate: how often the event happens on average
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def poisson(
    key: TensorLike,
    rate: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    ...
@overload
def rademacher(key: Any, shape: Any = ..., dtype: Any = 'int64') -> Tensor:
    """-1 or 1, equally likely.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def rademacher(shape: Any = ..., dtype: Any = 'int64') -> Tensor:
    ...
@overload
def randint(
    low: builtins.int,
    high: builtins.int,
    shape: builtins.int | Sequence[builtins.int] | None = ...,
    dtype: DType | builtins.str | None = 'int64',
    *,
    generator: Any = None,
) -> Tensor:
    """Integers from low to before high; no number is more likely than another by more than one part in 2^32.

    Arguments:
        low: the least number
        high: the greatest number; integers stay below it
        shape: the extents of the result
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def randint(
    key: TensorLike,
    low: builtins.int,
    high: builtins.int,
    shape: builtins.int | Sequence[builtins.int] | None = ...,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    ...
@overload
def randint(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None,
    minval: builtins.int,
    maxval: builtins.int,
    dtype: DType | builtins.str | None = 'int64',
) -> Tensor:
    ...
@overload
def randperm(n: builtins.int, dtype: DType | builtins.str | None = 'int64', *, generator: Any = None) -> Tensor:
    """The integers from 0 to n - 1 in random order, every order equally likely (but for equal 64-bit numbers).

    Arguments:
        n: how many elements
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def randperm(key: TensorLike, n: builtins.int, dtype: DType | builtins.str | None = 'int64') -> Tensor:
    ...
@overload
def rayleigh(key: Any, scale: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Draws from the Rayleigh distribution.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def rayleigh(scale: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
@overload
def student_t(
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws loc + scale·t from Student's distribution of df degrees of freedom, without derivative in df.

    Arguments:
        df: the degrees of freedom
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def student_t(
    key: TensorLike,
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def student_t(
    key: TensorLike,
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def t(
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Draws loc + scale·t from Student's distribution of df degrees of freedom, without derivative in df.

    Arguments:
        df: the degrees of freedom
        shape: the extents of the result
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def t(
    key: TensorLike,
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def t(
    key: TensorLike,
    df: TensorLike | builtins.float,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def truncated_normal(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: builtins.float = -2.0,
    high: builtins.float = 2.0,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """loc + scale·z, for z normal given that it lies from low to high (in standard deviations, infinite ones too).

    Arguments:
        shape: the extents of the result
        low: the least number
        high: the greatest number; integers stay below it
        loc: what is added to draws: their middle
        scale: what draws are multiplied with
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def truncated_normal(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: builtins.float = -2.0,
    high: builtins.float = 2.0,
    loc: TensorLike | builtins.float = 0.0,
    scale: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def truncated_normal(
    key: TensorLike,
    lower: builtins.float = -2.0,
    upper: builtins.float = 2.0,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def uniform(
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: TensorLike | builtins.float = 0.0,
    high: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Uniform floats from low to before high, from 24 random bits (53 in float64): low + (high - low)·u.

    Where rounding would give high, the number below it is given.

    Arguments:
        shape: the extents of the result
        low: the least number
        high: the greatest number; integers stay below it
        dtype: the dtype of the result, as ek.float32 or by name
        generator: whose next key is taken; everybody's unless given

    A key in front is drawn with instead, as in JAX.
    """
    ...
@overload
def uniform(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    low: TensorLike | builtins.float = 0.0,
    high: TensorLike | builtins.float = 1.0,
    dtype: DType | builtins.str | None = None,
) -> Tensor:
    ...
@overload
def uniform(
    key: TensorLike,
    shape: builtins.int | Sequence[builtins.int] | None = None,
    dtype: DType | builtins.str | None = None,
    minval: TensorLike | builtins.float = 0.0,
    maxval: TensorLike | builtins.float = 1.0,
) -> Tensor:
    ...
@overload
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    """Draws from the Weibull distribution.

    Without a key, the next one of everybody's generator is taken.
    """
    ...
@overload
def weibull_min(scale: Any, concentration: Any, shape: Any = ..., dtype: Any = None) -> Tensor:
    ...
