"""Mixtures whose noise belongs to rows, to clusters or to all, or is tied; and which.

Noise is "individual", "class" or "common" if every row, every cluster or the whole
sample has a level of its own. It is "tied" if features share it: one covariance for all
rows, see :mod:`ihgmm.statistics.covariance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from ihgmm.matrix import Matrix, Tall, sample_positions, to_host
from ihgmm.policy import TiedNoise
from ihgmm.statistics.covariance import Covariance, leading_covariance
from ihgmm.statistics.leave_one_out import indicators
from ihgmm.statistics.mixture_fit import MixtureFit, fit_mixture
from ihgmm.statistics.model import NOISE_STRUCTURES, NoiseStructure
from ihgmm.statistics.refinement import refine_labels

Structure = Literal["common", "class", "individual", "tied"]
STRUCTURES: tuple[Structure, ...] = (*NOISE_STRUCTURES, "tied")


@dataclass(frozen=True, eq=False)
class NoisyMixture:
    """A mixture of rows whose noise was made the same in all directions."""

    mixture: MixtureFit
    covariance: Covariance  #: that was taken off the rows


def fit_noise(
    X: Matrix,
    labels: Tall,
    n_clusters: int,
    noise: Structure,
    rng: Generator,
    *,
    max_covariances: int = TiedNoise.COVARIANCES,
    max_iter: int = 100,
    tol: float = 1e-4,
    say: Callable[[str], None] | None = None,
) -> NoisyMixture:
    """Fit a mixture with noise of some kind, to start from some labels.

    ``max_iter``, ``tol`` and ``say`` are those of
    :func:`~ihgmm.statistics.mixture_fit.fit_mixture`.
    """

    def fit_to_labels(X: Matrix, labels: Tall, structure: NoiseStructure) -> MixtureFit:
        memberships = indicators(X, labels, n_clusters)
        return fit_mixture(
            X, memberships, noise=structure, max_iter=max_iter, tol=tol, say=say
        )

    if noise != "tied":
        labels = refine_labels(X, labels, n_clusters).labels
        mixture = fit_to_labels(X, labels, noise)
        return NoisyMixture(mixture=mixture, covariance=Covariance.none(X.shape[1]))

    # A tied covariance is that of the labels. Once it is taken off, a mixture with
    # common noise fits, whose labels give the next covariance, until they stay the
    # same. Refined labels would go by cosines, which such noise makes wrong. (This loop
    # is not `iterate`: before the first covariance there is no mixture to compare.)
    for _ in range(max_covariances):
        covariance = leading_covariance(X, labels, n_clusters, rng)
        mixture = fit_to_labels(covariance.whiten(X), labels, "common")
        labels_before = labels
        labels = X.ops.xp.argmax(mixture.memberships, axis=1)
        labels = X.ops.persist(labels)
        if not X.ops.number(X.ops.xp.any(labels != labels_before)):
            break

    return NoisyMixture(mixture=mixture, covariance=covariance)


def compare_noises(
    X: Matrix, labels: Tall, n_clusters: int, rng: Generator
) -> dict[Structure, float]:
    """Return the information criterion of each kind of noise, a row, over the least.

    Many rows are compared by a sample, and mixtures by few rounds: kinds of noise
    differ by far more than further rows and the last rounds change.
    """
    drawn = sample_positions(X.shape[0], TiedNoise.TRIAL_ROWS)
    if len(drawn) < X.shape[0]:
        labels = to_host(X.ops.take_rows(labels, drawn))
        X = X.take(drawn)
        labels = X.to_device(labels)

    criteria: dict[Structure, float] = {}
    for noise in STRUCTURES:
        fit = fit_noise(
            X,
            labels,
            n_clusters,
            noise,
            rng,
            max_covariances=1,
            max_iter=TiedNoise.TRIAL_ROUNDS,
        )
        criteria[noise] = information(X, fit, noise)

    smallest = min(criteria.values())
    return {
        noise: (criterion - smallest) / len(drawn)
        for noise, criterion in criteria.items()
    }


def information(
    X: Matrix, fit: NoisyMixture, noise: Structure, akaike: bool = False
) -> float:
    """Return the information criterion of a mixture, Bayes's or Akaike's, in X's unit.

    Rows are judged by centres that the other rows give, which need no penalty.

    Notes
    -----
    It is ``-2 L`` plus a penalty for each parameter: 2 by Akaike, else the logarithm of
    the number of cells that a level is learnt from, or of rows for all others.
    """
    n_nonzero = int(X.ops.number(X.ops.xp.count_nonzero(X.sqnorms)))
    n = max(n_nonzero, 1)
    p = X.shape[1]
    k = len(fit.mixture.mixing_weights)

    n_levels = {"individual": n_nonzero, "class": k}.get(noise, 1)
    cells_a_level = p if noise == "individual" else n * p
    n_others = k - 1 + fit.covariance.n_parameters
    if akaike:
        penalty = 2.0 * (n_others + n_levels)
    else:
        penalty = n_others * np.log(n) + n_levels * np.log(cells_a_level)

    log_likelihood = fit.mixture.log_likelihood - n_nonzero * fit.covariance.log_volume
    return float(penalty - 2 * log_likelihood)
