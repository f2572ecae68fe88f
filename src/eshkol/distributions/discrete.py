"""Distributions of choices and counts: Bernoulli, categorical, geometric, Poisson, over rows of the op table."""

from __future__ import annotations

from typing import Any

from eshkol.distributions.base import Distribution, demand, parameter, positive, register_kl
from eshkol.errors import TensorError
from eshkol.tensors import api as ek


def _one_of(who: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise TensorError(f"{who} takes probabilities or logits: one of both", span=ek.here())


class Bernoulli(Distribution):
    """1 with a probability, else 0."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        _one_of("Bernoulli", probs, logits)
        if logits is None:
            self.probs = parameter(probs)
            demand(ek.logical_and(self.probs >= 0, self.probs <= 1), "Bernoulli", "probabilities are from 0 to 1")
            self.logits = ek.log(self.probs) - ek.log1p(-self.probs)
        else:
            self.logits = parameter(logits)
            self.probs = ek.sigmoid(self.logits)
        self.batch_shape = self.probs.shape

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.bernoulli(key, self.probs, shape).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        return ek.xlogy(value, self.probs) + ek.xlogy(1 - value, 1 - self.probs)

    def entropy(self) -> Any:
        return -ek.xlogy(self.probs, self.probs) - ek.xlogy(1 - self.probs, 1 - self.probs)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)


class Categorical(Distribution):
    """One of the places of the last axis, in proportion to probabilities, or to e^logits."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        _one_of(type(self).__name__, probs, logits)
        if logits is None:
            given = parameter(probs)
            demand(given >= 0, type(self).__name__, "probabilities are not negative")
            self.probs = given / given.sum(-1, keepdims=True)
            self.logits = ek.log(self.probs)
        else:
            self.logits = ek.log_softmax(parameter(logits), -1)
            self.probs = ek.exp(self.logits)
        self.batch_shape = self.logits.shape[:-1]

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.categorical(key, ek.broadcast_to(self.logits, (*shape, self.logits.shape[-1])))

    def log_prob(self, value: Any) -> Any:
        places = ek.asarray(value).to(ek.int64)
        shape = ek.broadcast_shapes(places.shape, self.batch_shape)
        scores = ek.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        return ek.squeeze(ek.take_along(scores, ek.unsqueeze(ek.broadcast_to(places, shape), -1), -1), -1)

    def entropy(self) -> Any:
        return -ek.sum(ek.xlogy(self.probs, self.probs), -1)


class OneHotCategorical(Categorical):
    """A categorical draw as a row of zeros with a one in its place."""

    def __init__(self, probs: Any = None, logits: Any = None) -> None:
        super().__init__(probs, logits)
        self.event_shape = self.logits.shape[-1:]

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.one_hot(super()._drawn(shape[:-1], key), self.event_shape[0]).to(self.logits.dtype)

    def log_prob(self, value: Any) -> Any:
        return ek.sum(ek.where(value > 0, self.logits, 0.0), -1)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)


class Geometric(Distribution):
    """How often an event of a probability fails before it happens."""

    def __init__(self, probs: Any) -> None:
        self.probs = parameter(probs)
        self.batch_shape = self.probs.shape
        demand(ek.logical_and(self.probs > 0, self.probs <= 1), "Geometric", "probabilities are above 0 and up to 1")

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.floor(ek.exponential(key, shape, dtype=self.probs.dtype) / -ek.log1p(-self.probs))

    def log_prob(self, value: Any) -> Any:
        return ek.xlogy(value, 1 - self.probs) + ek.log(self.probs)

    @property
    def mean(self) -> Any:
        return 1 / self.probs - 1

    @property
    def variance(self) -> Any:
        return (1 / self.probs - 1) / self.probs


class Poisson(Distribution):
    """How often an event happens that happens at a rate."""

    def __init__(self, rate: Any) -> None:
        self.rate = parameter(rate)
        self.batch_shape = self.rate.shape
        positive("Poisson", rate=self.rate)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.poisson(key, self.rate.detach(), shape, self.rate.dtype)

    def log_prob(self, value: Any) -> Any:
        return ek.xlogy(value, self.rate) - self.rate - ek.lgamma(value + 1)

    @property
    def mean(self) -> Any:
        return self.rate

    variance = mean


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Any:
    heads = ek.xlogy(p.probs, p.probs) - ek.xlogy(p.probs, q.probs)
    return heads + ek.xlogy(1 - p.probs, 1 - p.probs) - ek.xlogy(1 - p.probs, 1 - q.probs)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Any:
    return ek.sum(ek.where(p.probs > 0, p.probs * (p.logits - q.logits), 0.0), -1)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Any:
    return p.rate * ek.log(p.rate / q.rate) - (p.rate - q.rate)
