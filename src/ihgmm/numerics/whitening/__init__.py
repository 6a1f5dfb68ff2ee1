"""Rows and columns are multiplied so that noise has variance one in each, on average.

Counts have the variance of their mean: common columns and long rows are loud, and
eigenvectors follow what is loud.

``whitener.py`` has the map; ``counts.py`` and ``learned.py`` learn its factors for the
two kinds of noise, and ``learning.py`` calls the one or the other. ``guesses.py`` says
what data seem to be, and whether they ask for whitening.
"""

from ihgmm.numerics.whitening.guesses import (
    COLUMNS,
    Columns,
    columns_for_noise,
    noise_of_columns,
    preparation_of_counts,
    suited_noise,
    warn_of_fractions,
    warn_of_uneven_noise,
)
from ihgmm.numerics.whitening.learning import learn_whitener
from ihgmm.numerics.whitening.whitener import NOISE_KINDS, NoiseKind, Whitener

__all__ = [
    "COLUMNS",
    "NOISE_KINDS",
    "Columns",
    "NoiseKind",
    "Whitener",
    "columns_for_noise",
    "learn_whitener",
    "noise_of_columns",
    "preparation_of_counts",
    "suited_noise",
    "warn_of_fractions",
    "warn_of_uneven_noise",
]
