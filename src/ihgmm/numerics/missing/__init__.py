"""Missing cells, filled in by a low-rank model of the data.

A row is taken for ``scale * (loadings @ a + noise)``: positions ``a`` are Gaussian with
covariance one, so are logarithms of scales, and each column has its level of noise. A
missing cell gets its mean given the observed cells of its row: new rows as old ones.

These means then move towards the cells of rows like them, as far as pays off.

``filler.py`` has the map, ``low_rank.py`` the model and what it says of rows, ``em.py``
a round of its fit, ``donors.py`` rows like a row, and ``learning.py`` how rank and
spread of scales are chosen.
"""

from typing import Literal

from ihgmm.numerics.missing.donors import Donors
from ihgmm.numerics.missing.filler import Filler
from ihgmm.numerics.missing.learning import learn_filler, sampled_cells

Missing = Literal["error", "fit"]
MISSING_WAYS: tuple[Missing, ...] = ("error", "fit")

__all__ = [
    "MISSING_WAYS",
    "Donors",
    "Filler",
    "Missing",
    "learn_filler",
    "sampled_cells",
]
