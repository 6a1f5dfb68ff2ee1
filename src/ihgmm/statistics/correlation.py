"""How much more noise varies along a direction than independent entries would.

Entries of the noise may be correlated, and then a sum of them varies more, or less,
than the entries tell. Along its own centre a row cannot show it, since there its noise
cannot be told from its scale. Rows of *other* clusters can, once their part along their
own centre is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ihgmm.matrix import Tall, namespace, to_host
from ihgmm.matrix.tall import ratio, tall_dot


@dataclass(frozen=True)
class Along:
    """Sums over rows of t**2 along m directions; they add up over blocks of rows."""

    count: np.ndarray  # (m, m): rows that tell about two directions at once
    first: np.ndarray  # (m,): sums of t**2
    second: np.ndarray  # (m, m): sums of products of two of them

    @classmethod
    def of(cls, t_squared: Tall, counts: Tall) -> Along:
        """Return the sums; ``counts`` says which rows count for which direction."""
        counts = namespace(t_squared).astype(counts, t_squared.dtype)
        t_squared = t_squared * counts
        first = namespace(t_squared).sum(t_squared, axis=0)
        return cls(
            tall_dot(counts, counts), to_host(first), tall_dot(t_squared, t_squared)
        )

    @property
    def sizes(self) -> np.ndarray:
        """Rows that tell about each direction."""
        return np.diag(self.count)

    @property
    def ratios(self) -> np.ndarray:
        """Means of t**2; 1 where no row tells."""
        return np.asarray(ratio(self.first, self.sizes, 1.0))

    @property
    def relative_covariance(self) -> np.ndarray:
        """Covariances of the errors of the ratios, in units of the ratios."""
        products = ratio(self.second, np.outer(self.ratios, self.ratios)) - self.count
        return np.asarray(ratio(products, np.outer(self.sizes, self.sizes)))

    def __add__(self, other: Along) -> Along:
        return Along(
            self.count + other.count,
            self.first + other.first,
            self.second + other.second,
        )


def squared_t(squares: Tall, along: Tall, toward: Tall, own: Tall, cos: Tall) -> Tall:
    """Return t**2 of rows along directions, less what they share with the own centre.

    With ``v = direction - cos * own``, which is orthogonal to the unit vector ``own``,
    it is ``(v . x)**2`` over ``sum(v**2 * noise**2)``: 1 on average where entries of
    the noise are independent, whatever their variances. Arrays have a row for each
    row of the data.

    Parameters
    ----------
    squares : (n, p)
        Squared noise of the entries.
    along : (n, m)
        ``v . x``.
    toward : (m, p)
        The directions, of length 1.
    own : (n, p)
        Directions of the rows' own centres.
    cos : (n, m)
        Cosines of the two.
    """
    xp = namespace(squares)
    weighted = squares * own
    spread = squares @ (toward**2).T - 2 * cos * (weighted @ toward.T)
    spread += cos**2 * xp.sum(weighted * own, axis=1)[:, None]
    return ratio(along**2, spread)


def variance_ratios(sums: Along) -> np.ndarray:
    """Return by how much noise varies more along each direction.

    The ratios found are pulled towards 1, that of independent entries, by the share of
    error in their deviations from 1 (empirical Bayes): where entries are independent
    little is left to correct for, and little is lost by asking. A direction about
    which no row tells gets 1.
    """
    found, told = sums.ratios, sums.sizes > 1
    # Of a mean of squares of normal variables; what few rows say of it is too noisy.
    error = ratio(2.0, sums.sizes)
    excess = ((found - 1) ** 2 - error)[told]
    prior = max(float(excess.mean()), 0.0) if told.any() else 0.0
    kept = np.where(told, ratio(prior, prior + error), 0.0)
    return np.asarray(1 + kept * (found - 1))
