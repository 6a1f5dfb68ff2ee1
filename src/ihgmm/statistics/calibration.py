"""From doubts of fits to errors: curves that were fitted to real sets and to designs.

The policy has the constants of the curves, under ``Trust``.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from ihgmm.matrix import HOST
from ihgmm.numerics.rules import LinearRule
from ihgmm.policy import Trust


def expected_error(doubt: float, n: int, k: int) -> float:
    """Return the share of labels, of n rows in k clusters, expected to be wrong.

    Notes
    -----
    With the error of a guess ``c = 1 - 1 / k``, log-odds of errors are linear in
    log-odds of doubts: ``error = MOST * c * expit(SLOPE * logit(doubt / c) + SHIFT)``.
    """
    error_of_guess = 1 - 1 / k
    # Without any doubt among n rows, there may still be a quarter of a row.
    doubt = (doubt * n + 0.25) / (n + 0.5)

    log_odds = logit(min(doubt / error_of_guess, 0.99))
    largest_error = Trust.MOST * error_of_guess
    return float(largest_error * expit(Trust.SLOPE * log_odds + Trust.SHIFT))


def error_range(error: float, k: int) -> tuple[float, float]:
    """Return the ends of the range that goes with an expected error of k clusters."""
    if k == 1:
        return 0.0, 0.0

    error_of_guess = 1 - 1 / k
    log_odds_of_error = logit(min(error / error_of_guess / Trust.MOST, 0.99))
    log_odds_of_doubt = (log_odds_of_error - Trust.SHIFT) / Trust.SLOPE

    def end(slope: float, shift: float) -> float:
        return float(error_of_guess * expit(slope * log_odds_of_doubt + shift))

    smallest_error = end(*Trust.LEAST)
    largest_error = end(*Trust.LARGEST)
    return float(min(smallest_error, error)), float(max(largest_error, error))


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
