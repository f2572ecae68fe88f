"""`Distribution`: what all distributions share, and how their parameters and draws meet shapes and keys.

Comes in: parameters as numbers or tensors, which broadcast. Goes out: draws (`sample`, and `rsample`, which can be
differentiated in the parameters), `log_prob`, `entropy`, moments. Draws take the next key of everybody's generator, or
`key=`, which is needed inside `vmap` and loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key
from eshkol.tensors.value import Tensor


def parameter(value: Any) -> Tensor:
    """A parameter as a tensor of floats."""
    given = value if isinstance(value, Tensor) else ek.asarray(value)
    return given if given.dtype.differentiable else given.to(ek.float32)


def together(*values: Any) -> list[Tensor]:
    """Parameters, each in the shape in which they meet."""
    return list(ek.broadcast_tensors([parameter(value) for value in values]))


def demand(holds: Tensor, who: str, what: str) -> None:
    """Refuse parameters that are known and are none; what is being traced or differentiated is not looked at."""
    if not any(s.open for s in holds._node.scopes) and not bool(holds.detach().all()):
        raise TensorError(f"{who}: {what}", span=ek.here())


def positive(who: str, **values: Tensor) -> None:
    """Refuse parameters that are not above 0."""
    for name, value in values.items():
        demand(value > 0, who, f"{name} must be above 0")


class Distribution:
    """A distribution over tensors: parameters have `batch_shape`, one draw for each of them `event_shape` besides."""

    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()
    has_rsample = False

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        """Draws of a whole shape, differentiable in the parameters if `has_rsample`."""
        raise NotImplementedError

    def _key(self, key: Any) -> Any:
        return next_key(type(self).__name__) if key is None else key

    def _shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def sample(self, sample_shape: Sequence[int] = (), *, key: Any = None) -> Any:
        """Draws: as many as a shape says for each of the parameters, as constants."""
        return ek.stop_gradient(self._drawn(self._shape(sample_shape), self._key(key)))

    def rsample(self, sample_shape: Sequence[int] = (), *, key: Any = None) -> Any:
        """Draws that can be differentiated in the parameters."""
        if not self.has_rsample:
            raise TensorError(
                f"draws of {type(self).__name__} have no derivative in its parameters", span=ek.here(),
                hint="use sample, and log_prob in the loss",
            )  # fmt: skip
        return self._drawn(self._shape(sample_shape), self._key(key))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise TensorError(f"the entropy of {type(self).__name__} is not there", span=ek.here())

    def cdf(self, value: Any) -> Any:
        """The probability of a draw up to a value."""
        raise TensorError(f"the cdf of {type(self).__name__} is not there", span=ek.here())

    @property
    def mean(self) -> Any:
        """The mean."""
        raise TensorError(f"the mean of {type(self).__name__} is not there", span=ek.here())

    @property
    def variance(self) -> Any:
        """The variance."""
        raise TensorError(f"the variance of {type(self).__name__} is not there", span=ek.here())

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return ek.sqrt(self.variance)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if isinstance(value, Tensor))
        return f"{type(self).__name__}({shown})"


class Independent(Distribution):
    """A distribution whose last batch axes are part of each draw: their log-probabilities are summed."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int) -> None:
        self.base_dist, self.count = base_distribution, reinterpreted_batch_ndims
        split = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if split < 0:
            raise TensorError(f"there are no {reinterpreted_batch_ndims} batch axes in {base_distribution.batch_shape}")
        self.batch_shape = base_distribution.batch_shape[:split]
        self.event_shape = base_distribution.batch_shape[split:] + base_distribution.event_shape
        self.has_rsample = base_distribution.has_rsample

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return self.base_dist._drawn(shape, key)

    def _summed(self, values: Any) -> Any:
        return ek.sum(values, tuple(range(values.ndim - self.count, values.ndim))) if self.count else values

    def log_prob(self, value: Any) -> Any:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Any:
        return self._summed(self.base_dist.entropy())

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        return self.base_dist.variance


Divergence = Callable[[Any, Any], Any]
DIVERGENCES: dict[tuple[type, type], Divergence] = {}


def register_kl(first: type, second: type) -> Callable[[Divergence], Divergence]:
    """Say how far distributions of two classes are from each other; a decorator."""

    def enter(function: Divergence) -> Divergence:
        DIVERGENCES[first, second] = function
        return function

    return enter


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The Kullback-Leibler divergence of q from p: the mean of log p - log q over draws of p."""
    if isinstance(p, Independent) and isinstance(q, Independent) and p.count == q.count:
        return p._summed(kl_divergence(p.base_dist, q.base_dist))
    for (first, second), function in DIVERGENCES.items():
        if isinstance(p, first) and isinstance(q, second):
            return function(p, q)
    raise TensorError(
        f"the divergence of {type(q).__name__} from {type(p).__name__} is not known", span=ek.here(),
        hint="estimate it: x = p.sample((1000,)); (p.log_prob(x) - q.log_prob(x)).mean(0)",
    )  # fmt: skip
