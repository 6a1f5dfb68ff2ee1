"""The parameters of the model for rows in clusters, and how sure their estimates are.

The model is ``x_i = scale_i * center + noise_i`` (equation (1) of the paper), where the
centre is that of the cluster of row i.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import stdtrit

from ihgmm._parameters import check_number
from ihgmm.matrix import HOST, Groups, Tall, ops_of, to_host


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Centres, scales and noise levels."""

    centers: np.ndarray  #: a line for each cluster, zero for one without rows
    scales: np.ndarray  #: of each row; in each cluster their mean is 1
    noise_levels: np.ndarray  #: standard deviation of the noise in each row's entries


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Parameters):
    """Estimates of what generated the data, ``x_i = scale_i * center + noise``."""

    #: Standard errors of scales; ``inf`` in clusters of two rows, or without a pattern.
    scale_errors: np.ndarray
    center_errors: np.ndarray  #: of entries; ``inf`` for fewer than two rows
    center_freedom: np.ndarray  #: degrees of freedom of these, by cluster
    classes: np.ndarray  #: the label of each cluster

    def __repr__(self) -> str:
        n_clusters, n_features = self.centers.shape
        n_samples = self.scales.shape[0]
        return (
            f"Estimates(n_samples={n_samples}, n_features={n_features}, "
            f"n_clusters={n_clusters})"
        )

    def scale_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return a confidence interval for the scale of each row, (n_samples, 2).

        ``level`` is the share of intervals that hold the true scale. No end is below 0.
        """
        # Student's t, since the noise level of a row comes from its own entries.
        freedom = max(self.centers.shape[1] - 1, 1)
        ends = _intervals(self.scales, self.scale_errors, freedom, level)
        return ops_of(ends).clip(ends, 0.0, None)

    def center_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return intervals for the entries of centres, (n_clusters, n_features, 2).

        Fewer than ``level`` hold the true entry in columns that are nearly all 0.
        """
        freedom = self.center_freedom[:, None]
        return _intervals(self.centers, self.center_errors, freedom, level)


def _intervals(
    values: Tall, errors: Tall, freedom: int | np.ndarray, level: float
) -> Tall:
    """Return ``value -+ t * error``, t being Student's quantile for a level."""
    if not 0 < check_number("level", level) < 1:
        raise ValueError(f"level={level:g} is not a share; give one between 0 and 1.")

    estimates = to_host(values)
    quantile = stdtrit(freedom, (1 + level) / 2)
    reach = to_host(errors) * quantile
    ends = np.stack([estimates - reach, estimates + reach], axis=-1)
    return ops_of(values).cast_like(ends, values)


def mean_lengths(rows: Groups, lengths: Tall) -> np.ndarray:
    """Return the mean of lengths in each cluster; 1 where that is 0."""
    ones = rows.ops.xp.ones_like(lengths)
    counts = rows.sums(rows.weighted(ones))
    totals = rows.sums(rows.weighted(lengths))
    means = HOST.ratio(totals, counts)
    return np.where(means == 0, 1.0, means)
