"""`ek.distributions`: distributions with draws, log-probabilities, entropies and divergences, as PyTorch has them.

policy = ek.distributions.Categorical(logits=model(state))
action = policy.sample()
loss = -policy.log_prob(action) * reward
"""

from __future__ import annotations

from typing import Any

from eshkol.distributions.base import Distribution, Independent, kl_divergence, register_kl
from eshkol.distributions.continuous import (
    Beta,
    Cauchy,
    Chi2,
    Exponential,
    Gamma,
    Gumbel,
    Laplace,
    LogNormal,
    Normal,
    StudentT,
    Uniform,
)
from eshkol.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from eshkol.distributions.multivariate import Dirichlet, MultivariateNormal
from eshkol.tensors.sizes import no_attribute

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential", "Gamma",
    "Geometric", "Gumbel", "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical",
    "Poisson", "StudentT", "Uniform", "kl_divergence", "register_kl",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise no_attribute(name, dict.fromkeys(__all__), "eshkol.distributions")
