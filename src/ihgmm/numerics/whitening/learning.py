"""A whitening of the one kind or the other is learnt from data."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from ihgmm._parameters import option
from ihgmm.matrix import Matrix
from ihgmm.numerics.whitening.counts import count_whitener, estimate_dispersion
from ihgmm.numerics.whitening.learned import learned_whitener
from ihgmm.numerics.whitening.whitener import NoiseKind, Whitener
from ihgmm.policy import Small, Whitening


def learn_whitener(X: Matrix, noise: NoiseKind, rng: np.random.Generator) -> Whitener:
    """Learn how to make the noise of data alike in rows and columns.

    ``"counts"``: the variance of an entry of mean m is ``m + c * m**2``. ``"learned"``:
    it is a factor of the row times one of the column.
    """
    match noise:
        case "counts":
            _refuse_tiny(X)
            sample = _draw_rows(X, Whitening.COUNTS, rng)
            return count_whitener(X, estimate_dispersion(sample))
        case "learned":
            return learned_whitener(_draw_rows(X, Whitening.ENTRIES, rng))
        case _:
            assert_never(noise)


def _refuse_tiny(X: Matrix) -> None:
    if X.unit * Small.HUGE < 1:
        raise ValueError(
            f"The entries of X are {X.unit:.0e} or less: they are no counts. "
            f"{option('columns', 'noise')} takes numbers of any size."
        )


def _draw_rows(X: Matrix, n_entries: int, rng: np.random.Generator) -> Matrix:
    """Draw rows of about so many entries, which are read once and count alike."""
    n_samples = X.shape[0]
    rows_of_entries = n_entries * (n_samples / max(X.n_entries, 1))
    size = int(max(rows_of_entries, Whitening.LEAST_ROWS))
    if n_samples > size:
        rows = rng.choice(n_samples, size, replace=False, shuffle=False)
        return X.take(np.sort(rows))

    return X.to_memory() if X.streamed else X.weighted(None)
