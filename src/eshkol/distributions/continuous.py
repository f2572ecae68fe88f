"""Distributions of real numbers: normal, uniform, exponential, gamma, beta and their kin, over rows of the op table."""

from __future__ import annotations

import math
from typing import Any

from eshkol.distributions.base import Distribution, demand, positive, register_kl, together
from eshkol.tensors import api as ek

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015329


class _Placed(Distribution):
    """loc + scale · a standard draw."""

    has_rsample = True
    draw = ""  # the row

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = together(loc, scale)
        self.batch_shape = self.loc.shape
        positive(type(self).__name__, scale=self.scale)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return self.loc + self.scale * getattr(ek, self.draw)(key, shape, dtype=self.loc.dtype)

    def _standard(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        return self.loc


class Normal(_Placed):
    """The normal distribution of a mean `loc` and a standard deviation `scale`."""

    draw = "normal"

    def log_prob(self, value: Any) -> Any:
        return -0.5 * self._standard(value) ** 2 - ek.log(self.scale) - HALF_LOG_2PI

    def entropy(self) -> Any:
        return 0.5 + HALF_LOG_2PI + ek.log(self.scale)

    def cdf(self, value: Any) -> Any:
        return ek.ndtr(self._standard(value))

    def icdf(self, value: Any) -> Any:
        """The number below which so much of the distribution lies."""
        return self.loc + self.scale * ek.ndtri(value)

    @property
    def variance(self) -> Any:
        return self.scale**2


class LogNormal(Normal):
    """The distribution of e^x for normal x."""

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.exp(super()._drawn(shape, key))

    def log_prob(self, value: Any) -> Any:
        logarithm = ek.log(value)
        return super().log_prob(logarithm) - logarithm

    def entropy(self) -> Any:
        return super().entropy() + self.loc

    def cdf(self, value: Any) -> Any:
        return super().cdf(ek.log(value))

    @property
    def mean(self) -> Any:
        return ek.exp(self.loc + self.scale**2 / 2)

    @property
    def variance(self) -> Any:
        return ek.expm1(self.scale**2) * ek.exp(2 * self.loc + self.scale**2)


class Laplace(_Placed):
    """The Laplace distribution: e^(-|x - loc| / scale) / (2 · scale)."""

    draw = "laplace"

    def log_prob(self, value: Any) -> Any:
        return -ek.abs(self._standard(value)) - ek.log(2 * self.scale)

    def entropy(self) -> Any:
        return 1 + ek.log(2 * self.scale)

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2


class Gumbel(_Placed):
    """The Gumbel distribution, of maxima."""

    draw = "gumbel"

    def log_prob(self, value: Any) -> Any:
        z = self._standard(value)
        return -z - ek.exp(-z) - ek.log(self.scale)

    def entropy(self) -> Any:
        return ek.log(self.scale) + 1 + EULER

    @property
    def mean(self) -> Any:
        return self.loc + EULER * self.scale

    @property
    def variance(self) -> Any:
        return (math.pi * self.scale) ** 2 / 6


class Cauchy(_Placed):
    """The Cauchy distribution, which has no mean."""

    draw = "uniform"

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return self.loc + self.scale * ek.tan(math.pi * (ek.uniform(key, shape, dtype=self.loc.dtype) - 0.5))

    def log_prob(self, value: Any) -> Any:
        return -math.log(math.pi) - ek.log(self.scale) - ek.log1p(self._standard(value) ** 2)

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + ek.log(self.scale)

    @property
    def mean(self) -> Any:
        return self.loc * math.nan

    variance = mean


class Uniform(Distribution):
    """Every number from `low` to before `high`, equally likely."""

    has_rsample = True

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = together(low, high)
        self.batch_shape = self.low.shape
        demand(self.low < self.high, "Uniform", "low must be below high")

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return self.low + (self.high - self.low) * ek.uniform(key, shape, dtype=self.low.dtype)

    def log_prob(self, value: Any) -> Any:
        inside = ek.logical_and(self.low <= value, value < self.high)
        return ek.where(inside, -ek.log(self.high - self.low), -math.inf)

    def entropy(self) -> Any:
        return ek.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        return ek.clamp((value - self.low) / (self.high - self.low), 0, 1)

    @property
    def mean(self) -> Any:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12


class Exponential(Distribution):
    """The time until an event that happens at a rate."""

    has_rsample = True

    def __init__(self, rate: Any) -> None:
        (self.rate,) = together(rate)
        self.batch_shape = self.rate.shape
        positive("Exponential", rate=self.rate)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.exponential(key, shape, dtype=self.rate.dtype) / self.rate

    def log_prob(self, value: Any) -> Any:
        return ek.log(self.rate) - self.rate * value

    def entropy(self) -> Any:
        return 1 - ek.log(self.rate)

    def cdf(self, value: Any) -> Any:
        return -ek.expm1(-self.rate * value)

    @property
    def mean(self) -> Any:
        return 1 / self.rate

    @property
    def variance(self) -> Any:
        return 1 / self.rate**2


class Gamma(Distribution):
    """The gamma distribution of a shape `concentration` and a `rate`."""

    def __init__(self, concentration: Any, rate: Any) -> None:
        self.concentration, self.rate = together(concentration, rate)
        self.batch_shape = self.rate.shape
        positive(type(self).__name__, concentration=self.concentration, rate=self.rate)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.gamma(key, self.concentration, shape) / self.rate

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        return ek.xlogy(a, self.rate) + ek.xlogy(a - 1, value) - self.rate * value - ek.lgamma(a)

    def entropy(self) -> Any:
        a = self.concentration
        return a - ek.log(self.rate) + ek.lgamma(a) + (1 - a) * ek.digamma(a)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2


class Chi2(Gamma):
    """The sum of the squares of df standard normal numbers."""

    def __init__(self, df: Any) -> None:
        (self.df,) = together(df)
        super().__init__(self.df / 2, 0.5)


class Beta(Distribution):
    """The beta distribution on 0 to 1."""

    def __init__(self, concentration1: Any, concentration0: Any) -> None:
        self.concentration1, self.concentration0 = together(concentration1, concentration0)
        self.batch_shape = self.concentration1.shape
        positive("Beta", concentration1=self.concentration1, concentration0=self.concentration0)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.beta(key, self.concentration1, self.concentration0, shape)

    def _log_norm(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return ek.lgamma(a) + ek.lgamma(b) - ek.lgamma(a + b)

    def log_prob(self, value: Any) -> Any:
        a, b = self.concentration1, self.concentration0
        return ek.xlogy(a - 1, value) + ek.xlogy(b - 1, 1 - value) - self._log_norm()

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        rest = (a - 1) * ek.digamma(a) + (b - 1) * ek.digamma(b) - (a + b - 2) * ek.digamma(a + b)
        return self._log_norm() - rest

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))


class StudentT(Distribution):
    """Student's distribution of df degrees of freedom, moved and scaled."""

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> None:
        self.df, self.loc, self.scale = together(df, loc, scale)
        self.batch_shape = self.df.shape
        positive("StudentT", df=self.df, scale=self.scale)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return self.loc + self.scale * ek.student_t(key, self.df, shape)

    def log_prob(self, value: Any) -> Any:
        z, half = (value - self.loc) / self.scale, self.df / 2
        norm = ek.lgamma(half + 0.5) - ek.lgamma(half) - 0.5 * ek.log(math.pi * self.df) - ek.log(self.scale)
        return norm - (half + 0.5) * ek.log1p(z**2 / self.df)

    @property
    def mean(self) -> Any:
        return ek.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Any:
        known = ek.where(self.df > 2, self.scale**2 * self.df / (self.df - 2), math.inf)
        return ek.where(self.df > 1, known, math.nan)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ek.log(ratio))


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ek.log(ratio)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Any:
    inside = ek.logical_and(q.low <= p.low, p.high <= q.high)
    return ek.where(inside, ek.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    first = (a - b) * ek.digamma(a) - ek.lgamma(a) + ek.lgamma(b)
    return first + b * ek.log(p.rate / q.rate) + a * (q.rate - p.rate) / p.rate
