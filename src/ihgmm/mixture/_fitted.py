"""What a fitted mixture tells of rows, and how it draws new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr, logsumexp
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted

from ihgmm._checks.data import CheckedData, check_data
from ihgmm._checks.parameters import check_count, generator
from ihgmm._devices import like, moved, to_host
from ihgmm.em import evaluate_mixture, joint_log_likelihood
from ihgmm.memberships import Directions, Noise, project

__all__ = ["FittedMixture", "log_unit"]


class FittedMixture(ClusterMixin, DensityMixin, BaseEstimator):
    """A mixture that judges rows by ``_directions``, those of its centres."""

    noise: Noise
    random_state: Any
    labels_: np.ndarray
    weights_: np.ndarray
    cluster_centers_: np.ndarray
    scales_: np.ndarray
    noise_levels_: np.ndarray
    n_clusters_: int
    _directions: Directions

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely cluster of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint, data = self._joint(X)
        return moved(joint.argmax(axis=1), data.X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each cluster for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Rows sum to 1.
        """
        joint, data = self._joint(X)
        likely = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        return moved(likely, data.X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-likelihood of each row.

        The length of the row's signal is integrated out, and with individual noise the
        noise level is fitted to the row. Values compare models on the same rows; they
        are not densities, and rows of different size are not comparable. Zero rows
        have 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        joint, data = self._joint(X)
        return moved(self._log_likelihoods(joint, data), data.X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, new or old.
        y : None
            Ignored.

        Returns
        -------
        float
        """
        return float(self._log_likelihoods(*self._joint(X)).mean())

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; smaller is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the fit, or others.

        Returns
        -------
        float

        Notes
        -----
        ``-2 L`` plus a penalty, L being the log-likelihood of the rows, each given
        centres that the other rows of X give. The centres therefore need no penalty.
        Parameters count with the logarithm of how many numbers tell about them: the
        n_features of a row for its own noise level, all entries for a noise level of
        all or of a class, the rows for the shares of the clusters.
        """
        return self._criteria(X)[0]

    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood criterion; smaller is better.

        It is :meth:`bic` plus twice the entropy of the memberships, and prefers
        clusters that do not overlap.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the fit, or others.

        Returns
        -------
        float
        """
        bic, memberships = self._criteria(X)
        return bic + 2 * float(entr(memberships).sum())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows from the fitted mixture.

        Scales, and noise levels where every row has its own, are those of rows of the
        fit drawn at random from the cluster.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        labels : ndarray of shape (n_samples,)
            Their clusters.
        """
        check_is_fitted(self)
        n = check_count("n_samples", n_samples)
        rng = generator(self.random_state)
        own = to_host(self.labels_)
        used = np.bincount(own, minlength=self.n_clusters_) > 0
        shares = np.where(used, to_host(self.weights_), 0.0)
        labels = rng.choice(self.n_clusters_, size=n, p=shares / shares.sum())
        donors = np.empty(n, dtype=np.intp)
        for k in np.unique(labels):
            rows = labels == k
            donors[rows] = rng.choice(np.flatnonzero(own == k), size=int(rows.sum()))
        levels = to_host(self.noise_levels_)
        if self.noise == "individual":
            sigma = levels[donors]
        elif self.noise == "class":
            sigma = levels[labels]
        else:
            sigma = np.full(n, levels[0])
        centers, scales = to_host(self.cluster_centers_), to_host(self.scales_)
        X = rng.standard_normal((n, self.n_features_in_)) * sigma[:, None]
        X += scales[donors, None] * centers[labels]
        return like(X, self.cluster_centers_), moved(labels, self.cluster_centers_)

    def _criteria(self, X: Any) -> tuple[float, np.ndarray]:
        joint, data = self._joint(X)
        likely = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        sqnorms = to_host(data.sqnorms)
        found = evaluate_mixture(data.X, likely, sqnorms, self.noise)
        live = int((sqnorms > 0).sum())
        p = self.n_features_in_
        penalty = (self.n_clusters_ - 1) * np.log(live)
        if self.noise == "individual":
            penalty += live * np.log(p)
        else:
            levels = 1 if self.noise == "common" else self.n_clusters_
            penalty += levels * np.log(live * p)
        value = found.log_likelihood - log_unit(data, live)
        return float(penalty - 2 * value), found.memberships

    def _log_likelihoods(self, joint: np.ndarray, data: CheckedData) -> np.ndarray:
        return np.asarray(logsumexp(joint, axis=1) - log_unit(data))

    def _joint(self, X: Any) -> tuple[np.ndarray, CheckedData]:
        """Return log-likelihoods of rows and clusters, in the units of checked data."""
        check_is_fitted(self)
        data = check_data(X, self, reset=False, blocks=True, devices=True)
        sqnorms = to_host(data.sqnorms)
        found = project(data.X, sqnorms, self._directions)
        variances = None
        if self.noise != "individual":
            levels = np.broadcast_to(to_host(self.noise_levels_), self.n_clusters_)
            variances = (levels / data.unit) ** 2
        joint = joint_log_likelihood(
            found, sqnorms, data.X.shape[1], to_host(self.weights_), variances
        )
        return joint, data


def log_unit(data: CheckedData, n_rows: int = 1) -> float:
    """Return what the log-likelihood of rows loses in the units that X came in."""
    return float(n_rows * max(data.X.shape[1] - 1, 1) * np.log(data.unit))
