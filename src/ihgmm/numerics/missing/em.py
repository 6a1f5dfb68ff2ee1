"""The low-rank model of rows, fitted by expectation and maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import HOST
from ihgmm.numerics.missing.low_rank import MULTIPLES, LowRankModel, RowPosterior
from ihgmm.policy import Filling, Small


@dataclass(frozen=True, eq=False)
class TrainingCells:
    """Rows to learn from, in units of columns, each divided by its size."""

    values: np.ndarray  # (n_rows, n_features); any number where a cell is not observed
    is_observed: np.ndarray  # (n_rows, n_features)
    log_sizes: np.ndarray  # (n_rows,)

    def posterior(self, model: LowRankModel) -> RowPosterior:
        """Return what the observed cells say under a model."""
        weights = self.is_observed.astype(np.float64)
        return model.posterior(HOST, self.values * weights, weights, self.log_sizes)

    def take(self, rows: np.ndarray) -> TrainingCells:
        """Return some of the rows."""
        return TrainingCells(
            values=self.values[rows],
            is_observed=self.is_observed[rows],
            log_sizes=self.log_sizes[rows],
        )


def means_of_observed(values: np.ndarray, is_observed: np.ndarray) -> np.ndarray:
    """Return the mean of the observed cells of each column, 0 where there are none."""
    sums = (values * is_observed).sum(axis=0)
    return np.asarray(sums / np.maximum(is_observed.sum(axis=0), 1))


def model_of_complete_rows(
    rows: np.ndarray, is_observed: np.ndarray, directions: np.ndarray
) -> LowRankModel:
    """Return a model of equal scales from the leading directions of complete rows.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Rows whose missing cells hold guesses.
    is_observed : ndarray of shape (n_rows, n_features)
        Which cells are no guesses: these are all but without noise.
    directions : ndarray of shape (n_features, rank)
        Directions to start from; one product with the rows improves them.
    """
    n_rows = len(rows)
    basis = np.linalg.qr(rows.T @ (rows @ directions))[0]  # (n_features, rank)
    coordinates = rows @ basis
    residuals = np.square(rows - coordinates @ basis.T)
    residual_variances = means_of_observed(residuals, is_observed)
    least_variance = max(Filling.LEAST_NOISE, Filling.EVEN * residual_variances.mean())

    eigenvalues, rotation = np.linalg.eigh(coordinates.T @ coordinates / n_rows)
    largest = max(eigenvalues.max(), Small.TINY)
    eigenvalues = np.maximum(eigenvalues, Small.EXACT * largest)

    return LowRankModel(
        loadings=basis @ rotation * np.sqrt(eigenvalues),
        variances=np.maximum(residual_variances, least_variance),
        mean=np.zeros(basis.shape[1]),
        log_scale=0.0,
        spread=Filling.LEAST_SPREAD,
    )


def improved_model(cells: TrainingCells, model: LowRankModel) -> LowRankModel:
    """Return the model after one round of expectation and maximisation."""
    posterior = cells.posterior(model)
    moments = ExpectedMoments.of(posterior, cells.is_observed)
    loadings = _fit_loadings(moments, model.variances)
    variances = _fit_variances(moments, loadings)
    log_scale, spread = _fit_scales(posterior, cells.log_sizes)
    if model.spread <= Filling.LEAST_SPREAD:  # equal scales stay so
        spread = model.spread

    # Positions get covariance one again, which also speeds the rounds up.
    root = _root_of_covariance(moments)
    return LowRankModel(
        loadings=loadings @ root,
        variances=variances,
        mean=np.linalg.solve(root, moments.position_mean),
        log_scale=log_scale,
        spread=spread,
    )


@dataclass(frozen=True, eq=False)
class ExpectedMoments:
    """The expectation step: moments of cells over their scale t, and of positions a.

    Sums for a column are over the rows in which it is observed.
    """

    counts: np.ndarray  # (n_features,): of observed cells
    position_products: np.ndarray  # (n_features, rank, rank): sums of a @ a.T
    cell_products: np.ndarray  # (n_features, rank): sums of cell / t * a
    cell_squares: np.ndarray  # (n_features,): sums of (cell / t)**2
    position_mean: np.ndarray  # (rank,), over all rows
    position_square: np.ndarray  # (rank, rank): mean of a @ a.T over all rows

    @classmethod
    def of(cls, posterior: RowPosterior, is_observed: np.ndarray) -> ExpectedMoments:
        """Return the moments that are expected under the posterior of rows.

        Notes
        -----
        Given t, positions have the mean ``d / t + b``, the parts of data and prior, and
        the covariance C: so the mean of ``a / t`` is ``E[t^-2] * d + E[t^-1] * b``, and
        that of ``a @ a.T`` is ``E[a / t] @ d.T + E[a] @ b.T + C``.
        """
        weights = is_observed.astype(np.float64)
        n_rows, n_features = weights.shape
        rank = posterior.model.rank
        data_part = posterior.data_part
        prior_part = posterior.prior_part
        inverse_scales = posterior.scale_moment(-1.0)  # (n_rows, 1)
        inverse_squares = posterior.scale_moment(-2.0)

        positions = inverse_scales * data_part + prior_part
        positions_over_scale = inverse_squares * data_part + inverse_scales * prior_part
        products = positions_over_scale[:, :, None] * data_part[:, None, :]
        products += (
            positions[:, :, None] * prior_part[:, None, :] + posterior.covariances
        )
        sums_of_products = weights.T @ products.reshape(n_rows, -1)

        return cls(
            counts=weights.sum(axis=0),
            position_products=sums_of_products.reshape(n_features, rank, rank),
            cell_products=posterior.values.T @ positions_over_scale,
            cell_squares=np.square(posterior.values).T @ inverse_squares[:, 0],
            position_mean=positions.mean(axis=0),
            position_square=products.mean(axis=0),
        )

    @property
    def mean_squares(self) -> np.ndarray:
        """Mean square of each column, (n_features,), above 0."""
        means = self.cell_squares / np.maximum(self.counts, 1)
        return np.asarray(np.maximum(means, Small.EXACT))


def _fit_loadings(moments: ExpectedMoments, variances: np.ndarray) -> np.ndarray:
    """Return loadings, (n_features, rank): a ridge regression on positions a column.

    Loadings of which few cells tell are pulled to zero.
    """
    penalties = variances / moments.mean_squares
    identity = np.eye(len(moments.position_mean))
    systems = moments.position_products + penalties[:, None, None] * identity
    solved = np.linalg.solve(systems, moments.cell_products[:, :, None])
    return np.asarray(solved[:, :, 0])


def _fit_variances(moments: ExpectedMoments, loadings: np.ndarray) -> np.ndarray:
    """Return variances of the noise of columns, (n_features,).

    They are mean squares of what loadings leave, with three safeguards.
    """
    fitted = (moments.position_products @ loadings[:, :, None])[:, :, 0]
    fitted_squares = (fitted * loadings).sum(axis=1)
    products = (loadings * moments.cell_products).sum(axis=1)
    residuals = moments.cell_squares - 2 * products + fitted_squares
    residuals = np.maximum(residuals, 0.0)

    # A few cells of the usual share of noise keep columns from seeming free of it.
    mean_squares = moments.mean_squares
    usual_share = (residuals / mean_squares).sum() / max(moments.counts.sum(), 1)
    prior = Filling.PRIOR_CELLS
    variances = residuals + prior * usual_share * mean_squares
    variances = variances / (moments.counts + prior)
    variances = np.maximum(variances, Filling.LEAST_NOISE * mean_squares)

    # Of a column that is nearly always zero, one cell must not outweigh all others.
    return np.asarray(np.maximum(variances, Filling.EVEN * variances.mean()))


def _root_of_covariance(moments: ExpectedMoments) -> np.ndarray:
    """Return the Cholesky factor of the covariance of positions, (rank, rank)."""
    mean = moments.position_mean
    rank = len(mean)
    covariance = moments.position_square - np.outer(mean, mean)
    ridge = Small.ROUNDING * np.trace(covariance) / rank
    return np.linalg.cholesky(covariance + ridge * np.eye(rank))


def _fit_scales(posterior: RowPosterior, log_sizes: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of the logarithms of scales."""
    n_rows = len(log_sizes)
    log_scales = log_sizes[:, None] + np.log(MULTIPLES)  # (n_rows, n_multiples)
    probabilities = posterior.scale_probabilities
    mean = (probabilities * log_scales).sum() / n_rows
    square = (probabilities * log_scales**2).sum() / n_rows
    variance = max(square - mean**2, Filling.LEAST_SPREAD**2)

    return float(mean), float(np.sqrt(variance))
