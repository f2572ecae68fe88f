"""Distributions of vectors: Dirichlet and the multivariate normal distribution."""

from __future__ import annotations

from typing import Any

from eshkol.distributions.base import Distribution, parameter, positive, register_kl
from eshkol.distributions.continuous import HALF_LOG_2PI
from eshkol.errors import TensorError
from eshkol.tensors import api as ek


class Dirichlet(Distribution):
    """Positive numbers along the last axis whose sum is 1."""

    def __init__(self, concentration: Any) -> None:
        self.concentration = parameter(concentration)
        self.batch_shape, self.event_shape = self.concentration.shape[:-1], self.concentration.shape[-1:]
        positive("Dirichlet", concentration=self.concentration)

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        return ek.dirichlet(key, ek.broadcast_to(self.concentration, shape))

    def log_prob(self, value: Any) -> Any:
        a = self.concentration
        return ek.sum(ek.xlogy(a - 1, value), -1) + ek.lgamma(ek.sum(a, -1)) - ek.sum(ek.lgamma(a), -1)

    @property
    def mean(self) -> Any:
        return self.concentration / ek.sum(self.concentration, -1, True)

    @property
    def variance(self) -> Any:
        total = ek.sum(self.concentration, -1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))


class MultivariateNormal(Distribution):
    """The normal distribution of vectors: a mean, and the covariance, its inverse, or its Cholesky factor."""

    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise TensorError(
                "MultivariateNormal takes one of covariance_matrix, precision_matrix and scale_tril", span=ek.here()
            )
        matrix = parameter(given[0])
        if scale_tril is None:
            matrix = ek.cholesky(matrix if precision_matrix is None else ek.inv(matrix))
        self.loc = parameter(loc)
        shape = ek.broadcast_shapes(self.loc.shape[:-1], matrix.shape[:-2])
        self.batch_shape, self.event_shape = shape, self.loc.shape[-1:]
        self.loc = ek.broadcast_to(self.loc, (*shape, *self.event_shape))
        self.scale_tril = ek.broadcast_to(matrix, (*shape, *matrix.shape[-2:]))

    def _drawn(self, shape: tuple[int, ...], key: Any) -> Any:
        standard = ek.normal(key, shape, dtype=self.loc.dtype)
        return self.loc + ek.squeeze(ek.matmul(self.scale_tril, ek.unsqueeze(standard, -1)), -1)

    def _log_determinant(self) -> Any:
        return ek.sum(ek.log(ek.diagonal(self.scale_tril, 0, -2, -1)), -1)

    def log_prob(self, value: Any) -> Any:
        moved = value - self.loc
        factor = ek.broadcast_to(self.scale_tril, (*moved.shape[:-1], *self.scale_tril.shape[-2:]))
        standard = ek.squeeze(ek.triangular_solve(factor, ek.unsqueeze(moved, -1), lower=True), -1)
        norm = self.event_shape[0] * HALF_LOG_2PI + self._log_determinant()
        return -0.5 * ek.sum(standard**2, -1) - norm

    def entropy(self) -> Any:
        return self.event_shape[0] * (0.5 + HALF_LOG_2PI) + self._log_determinant()

    @property
    def covariance_matrix(self) -> Any:
        """The covariances."""
        return ek.matmul(self.scale_tril, self.scale_tril.mT)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return ek.diagonal(self.covariance_matrix, 0, -2, -1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    factor = ek.triangular_solve(q.scale_tril, p.scale_tril, lower=True)
    moved = ek.squeeze(ek.triangular_solve(q.scale_tril, ek.unsqueeze(q.loc - p.loc, -1), lower=True), -1)
    spread = ek.sum(factor**2, (-2, -1)) + ek.sum(moved**2, -1) - p.event_shape[0]
    return 0.5 * spread + q._log_determinant() - p._log_determinant()
