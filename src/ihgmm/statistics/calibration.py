"""From doubts of fits to errors: curves that were fitted to real sets and to designs.

The policy has the constants of the curves, under ``Trust``.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from ihgmm.matrix import HOST
from ihgmm.numerics.rules import LinearRule
from ihgmm.policy import Refitting, Trust


def expected_error(doubt: float, n: int, k: int) -> float:
    """Return the share of labels, of n rows in k clusters, expected to be wrong.

    Wrong are labels other than the classes that real data are known to have: some are,
    also where clusters are beyond doubt.

    Notes
    -----
    With the error of a guess ``c = 1 - 1 / k``, log-odds of errors are linear in
    log-odds of doubts: ``error = c * (LEAST + (MOST - LEAST) * expit(z))`` with ``z =
    SLOPE * (logit(doubt / c) + log(n / k) / 2) + SHIFT``. Fits to halves of few rows
    differ more, by about the root of the rows in a cluster.
    """
    error_of_guess = 1 - 1 / k
    # Without any doubt among n rows, there may still be a quarter of a row.
    doubt = (doubt * n + 0.25) / (n + 0.5)
    rows_a_cluster = min(min(n, Refitting.ROWS) / k, Trust.ROWS_A_CLUSTER)

    log_odds = logit(min(doubt / error_of_guess, 0.99)) + np.log(rows_a_cluster) / 2
    share = expit(Trust.SLOPE * log_odds + Trust.SHIFT)
    return float(error_of_guess * (Trust.LEAST + (Trust.MOST - Trust.LEAST) * share))


def error_range(error: float, k: int) -> tuple[float, float]:
    """Return the ends of the range that goes with an expected error of k clusters.

    Notes
    -----
    With z as for the expected error, ends are ``c * expit(z')``, and z' is linear in z;
    that of the upper end falls with ``log(k)``. Less doubt than real data show makes
    the range no smaller.
    """
    if k == 1 or error == 0:
        return 0.0, 0.0

    error_of_guess = 1 - 1 / k
    share = (error / error_of_guess - Trust.LEAST) / (Trust.MOST - Trust.LEAST)
    z = logit(np.clip(share, Trust.LEAST_SHARE, 1 - Trust.LEAST_SHARE))

    lower_slope, lower_shift = Trust.LOWER
    upper_slope, upper_shift, upper_fall = Trust.UPPER
    smallest = error_of_guess * expit(lower_slope * z + lower_shift)
    largest = error_of_guess * expit(
        upper_slope * z + upper_shift + upper_fall * np.log(k)
    )
    # A range has its expected error inside, also with many missing cells.
    return float(np.minimum(smallest, error)), float(np.maximum(largest, error))


def certainty_shift(log_odds: np.ndarray, error: float) -> float:
    """Return what to add to log-odds of labels such that they are sure enough.

    Probabilities of other labels, ``expit(-log_odds - shift)``, then have a mean of
    the expected error.
    """

    def surplus(shift: float) -> float:
        return float(expit(-log_odds - shift).mean() - error)

    return float(brentq(surplus, -99.0, 99.0))


def membership_temperature(rows: np.ndarray, rule: LinearRule, error: float) -> float:
    """Return by what to divide log-odds such that memberships are not too sure.

    Other clusters then have a mean membership of the expected error in these rows.
    """

    def surplus(log_temperature: float) -> float:
        shares = rule.memberships(HOST, rows, np.exp(log_temperature))
        return float((1 - shares.max(axis=1)).mean() - error)

    if surplus(0.0) >= 0:
        return 1.0

    return float(np.exp(brentq(surplus, 0.0, 99.0, xtol=0.05)))
