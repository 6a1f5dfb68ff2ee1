"""Rows and columns are multiplied so that noise has variance one in each, on average.

Counts have the variance of their mean: common columns and long rows are loud, and
eigenvectors follow what is loud.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ihgmm._parameters import option
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.matrix import HOST, Matrix, Scaled, Tall, to_host
from ihgmm.numerics.eigen import leading_directions
from ihgmm.policy import Small, Whitening

NoiseKind = Literal["counts", "learned"]
NOISE_KINDS: tuple[NoiseKind, ...] = ("counts", "learned")


@dataclass(frozen=True, eq=False)
class Whitener:
    """A map to rows and columns of like noise; a row's factor depends on it alone."""

    noise: NoiseKind
    columns: np.ndarray  # factors of features; 0 where the fit had no entry
    directions: np.ndarray  # orthonormal, of the pattern in such rows
    # Squared norms of the rows of the fit along them, noise being of variance one.
    strengths: np.ndarray
    dispersion: float = 0.0  # of counts: c in the variance ``mean + c * mean**2``

    def __call__(self, X: Matrix) -> Scaled:
        """Return the data with its rows and columns multiplied; nothing is copied."""
        ops, ((variances, sqnorms), _) = X.ops, X.sweep(self._row_figures)
        rows = ops.persist(ops.ratio(1.0, ops.xp.sqrt(variances)))
        # Noise of variance one, whatever unit the data had.
        norms = ops.persist(sqnorms * rows**2)
        return Scaled(X, rows, self.columns, unit=1.0, sqnorms=norms)

    def _row_figures(self, X: Matrix) -> tuple[tuple[Tall, Tall], tuple[()]]:
        """Return mean noise variance and squared norm of rows, columns multiplied."""
        (p, m), ops = self.directions.shape, X.ops
        total = X.row_sqnorms(self.columns**2)
        if self.noise == "counts":
            _refuse_negative(X)
            sums = ops.widen(X @ self.columns**2) / X.unit
            return (_count_variances(sums, total, self.dispersion) / p, total), ()
        xp, along = ops.xp, X @ (self.columns[:, None] * self.directions)
        left = total - ops.widen(ops.row_dots(along, along))
        # A row that the directions fit to a thousandth is known no better than that.
        variances = xp.maximum(left, Whitening.LEAST_NOISE * total) / (p - m)
        if m:
            # A row that makes a direction alone leaves nothing beside it, and would get
            # the larger a factor for it: it may have so much of a direction at most.
            most = Whitening.LARGEST_PART * self.strengths
            wide = ops.widen(along)
            parts = wide**2 * ops.cast_like(HOST.ratio(1.0, most), wide)
            larger = xp.maximum(variances, xp.max(parts, axis=1))
            variances = xp.where(total > 0, larger, total)  # whose squares are numbers
        return (variances, total), ()


def learn_whitener(X: Matrix, noise: NoiseKind, rng: np.random.Generator) -> Whitener:
    """Learn how to make the noise of data alike in rows and columns.

    ``"counts"``: the variance of an entry of mean m is ``m + c * m**2``. ``"learned"``:
    it is a factor of the row times one of the column.
    """
    if noise == "learned":
        return _learned_whitener(_few_rows(X, Whitening.ENTRIES, rng))
    if X.unit * Small.HUGE < 1:
        raise ValueError(
            f"The entries of X are {X.unit:.0e} or less: they are no counts. "
            f"{option('whiten', 'learned')} takes numbers of any size."
        )
    few = _few_rows(X, Whitening.COUNTS, rng)
    dispersion = Whitening.DISPERSION
    for _ in range(2):
        dispersion = _dispersion(few, _count_whitener(few, dispersion))
    return _count_whitener(X, dispersion)


def _few_rows(X: Matrix, n_entries: int, rng: np.random.Generator) -> Matrix:
    """Draw rows of about so many entries, which are read once and count alike."""
    n = X.shape[0]
    rows = int(max(n_entries * (n / max(X.n_entries, 1)), Whitening.LEAST_ROWS))
    if n > rows:
        return X.take(np.sort(rng.choice(n, rows, replace=False, shuffle=False)))
    return X.to_memory() if X.streamed else X.weighted(None)


def _refuse_negative(X: Matrix) -> None:
    if (low := X.most_negative()) < 0:
        raise ValueError(
            f"X has the entry {low * X.unit:g}; counts are not negative. Take "
            "'learned' for data with both signs."
        )


def _count_variances(sums: Tall, squares: Tall, dispersion: float) -> Tall:
    """Return variances of counts from sums of counts and of their squares."""
    # A count of mean m and variance ``m + c * m**2`` has the mean square ``m + (1 + c)
    # * m**2``, so that ``(x + c * x**2) / (1 + c)`` has the variance as its mean.
    return (sums + dispersion * squares) / (1 + dispersion)


def _dispersion(X: Matrix, whitener: Whitener) -> float:
    """Return c for which counts have the variance ``mean + c * mean**2``.

    What a fit leaves of columns, whose rows have factors f, is regressed on sums of
    ``f**2 * x`` and of ``f**2 * (x**2 - x)``, of mean ``(1 + c) * mean**2``.
    """
    white = whitener(X)
    squares, fit = _low_rank(white, min(*white.shape, Whitening.COUNT_RANK) // 4)
    # The fit takes some noise too, more of a column that has a large share in it.
    shares = (fit @ np.linalg.pinv(fit.T @ fit, hermitian=True) * fit).sum(axis=1)
    left = squares - np.square(fit).sum(axis=1)
    left /= 1 - np.minimum(shares, Whitening.LARGEST_LEVERAGE)
    left = np.maximum(left, Whitening.LEAST_NOISE * squares)
    left /= X.shape[0] - fit.shape[1]
    factors: Any = white.row_scale
    sums = to_host(X.adjoint(factors**2)).astype(np.float64) * whitener.columns**2
    first = sums / (X.shape[0] * X.unit)
    second = squares / X.shape[0] - first
    # The error of what is left grows with its size.
    weights = HOST.ratio(1.0, np.square(first + np.abs(second)))
    share = (weights * second * (left - first)).sum()
    share /= max((weights * second**2).sum(), Small.TINY)
    # Beyond that what is left is rather a pattern that the fit has not taken.
    share = float(np.clip(share, 0.0, Whitening.LARGEST_SHARE))
    return share / (1 - share)


def _count_whitener(X: Matrix, dispersion: float) -> Whitener:
    """Find factors of columns that, with those of rows, make mean variances one."""
    n, p = X.shape
    squares = np.ones(p)

    def column_sums(block: Any, counts: Tall | None) -> Any:
        """Return sums of columns: of variances over the mean of the row, of entries."""
        _refuse_negative(block)
        ops, entries = block.ops, [block]
        if dispersion:  # sums of squares are exact in any type, unlike variances
            entries.append(block.with_values(block.values**2, block.metadata))

        def variances(sums: Callable[[Any], Tall]) -> Tall:
            first, *second = [ops.widen(sums(X)) for X in entries]
            first = first / block.unit
            return _count_variances(first, second[0], dispersion) if second else first

        weights = ops.ratio(float(block.shape[1]), variances(lambda X: X @ squares))
        ones = ops.xp.ones_like(weights) if counts is None else ops.widen(counts)
        columns = variances(lambda X: X.adjoint(weights * ones))
        return (), (columns, ops.widen(block.adjoint(ones)))

    for _ in range(2):  # of Sinkhorn's algorithm: ten gave the same errors
        variances, counts = X.sweep(column_sums, X.weights)[1]
        squares = _over_squares(X, variances)
    # Two rows that share an event in a column of mean m have 1 / m added to their inner
    # product, in which noise is the root of the number of columns. Rarer columns, where
    # one coincidence would be more than all noise, are left quieter than others.
    columns = np.sqrt(squares * np.minimum(counts * (X.unit / n) * np.sqrt(p), 1.0))
    return Whitener("counts", columns, np.zeros((p, 0)), np.zeros(0), dispersion)


def _over_squares(X: Matrix, squares: np.ndarray) -> np.ndarray:
    """Return n over squares of columns, 0 for those that are nothing beside others."""
    least = squares.max(initial=0.0) * float(np.finfo(X.dtype).tiny) ** (2 / 3)
    return HOST.ratio(float(X.shape[0]), np.where(squares > least, squares, 0.0))


def _low_rank(white: Matrix, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return squared norms of columns, and leading directions times their lengths."""
    A, fit = white.take(slice(0, white.shape[0])), np.zeros((white.shape[1], 0))
    if rank:
        pairs = leading_directions(A, rank, tol=Whitening.ANGLE, quiet=True)
        fit = pairs.vectors * np.sqrt(pairs.values)
    return A.column_sqnorms(), fit


def _learned_whitener(X: Matrix) -> Whitener:
    """Learn factors of columns, and the directions of the pattern beside the noise."""
    n, p = X.shape
    rank = min(n, p, Whitening.RANK) // 2
    whitener = Whitener("learned", np.ones(p), np.zeros((p, 0)), np.zeros(0))
    columns = np.sqrt(_over_squares(X, whitener(X).column_sqnorms()))
    whitener = replace(whitener, columns=columns)
    for _ in range(Whitening.ROUNDS):
        white = whitener(X)
        total, fit = _low_rank(white, rank)
        squares = np.square(fit)
        left = np.maximum(total - squares.sum(axis=1), 0.0)
        level = max(left.sum(), Whitening.LEAST_NOISE * total.sum(), Small.TINY)
        noise = level / ((n - rank) * (p - rank)) * max(n, p)
        # A direction that one column makes alone takes all of its noise: the column
        # would pass for quiet, and rule the direction the more. So the fit of a column
        # counts by what directions have without it: by ``S' / (S' + e)`` with ``S' = S
        # - f @ f.T``, f being the column along them and e the noise of a direction.
        own = (squares / (squares.sum(axis=0) + noise)).sum(axis=1)
        left = np.maximum(left + noise * own / (1 - own), Whitening.LEAST_NOISE * total)
        factors = np.sqrt(HOST.ratio(float(n - rank), left))
        # Rows of the fit are longer than others in directions of noise: take fewer.
        directions = np.linalg.qr((fit * factors[:, None])[:, : rank // 2])[0]
        along = white @ (factors[:, None] * directions)
        strengths = np.square(to_host(along).astype(np.float64)).sum(axis=0)
        columns = columns * factors
        whitener = Whitener("learned", columns, directions, strengths)
    return whitener


def suited_noise(X: Matrix, *, surely: bool = False) -> NoiseKind | None:
    """Return which noise to make alike, None where the data ask for no whitening.

    Data none of which are negative and many 0 have noise that grows with the mean if
    they look like counts of rare events, or have a long tail. Shades of a picture have
    zeros, but no long tail; tf-idf is nearly all zeros, and weighted already. Whole
    numbers with a long tail often lose nothing: with ``surely`` they need no whitening.
    """
    for size in (Whitening.GLANCE, Whitening.LOOK):
        rows = _first_rows(X, size)
        if rows.min() != 0:
            return None
    zeros = (rows == 0).sum() / rows.count()
    if zeros < Whitening.ZEROS or not rows.any():
        return None
    # Larger floats are whole numbers, whatever they measure.
    whole = (rows == np.round(rows)).all() and rows.max() < 1 / np.finfo(rows.dtype).eps
    if whole:
        values, times = np.unique(rows[rows > 0].compressed(), return_counts=True)
        # Events, most of which are rare; 0 and 1 alone are answers, not counts.
        rare = 2 * times.sum() <= rows.count() and values[times.argmax()] == 1
        means = rows.mean(axis=0)
        # Chance alone adds to the squares of means what it adds to their variance.
        squares = (np.square(means) - means / len(rows)).mean()
        if rare and len(times) > 1 and squares > Whitening.UNEQUAL * means.mean() ** 2:
            return "counts"
    # Of few columns, what a fit of low rank leaves shows little.
    weighted = not whole and zeros > Whitening.MOST_ZEROS
    if weighted or (whole and surely) or rows.shape[1] < Whitening.COLUMNS:
        return None
    rows = rows / X.unit
    shares = (rows / rows.sum(axis=1, keepdims=True))[rows > 0].compressed()
    middle, high = np.quantile(shares, (0.5, 0.99))
    if high <= Whitening.TAIL * middle:
        return None
    return "counts" if whole else "learned"


def noise_to_whiten(
    X: Matrix, whiten: NoiseKind | Literal["auto"] | None, remedy: str = "{}"
) -> NoiseKind | None:
    """Return which noise is made alike: given, "auto", or None, which may warn."""
    if whiten in NOISE_KINDS:
        rows = _first_rows(X, Whitening.LOOK).data
        strange = rows[(rows > 0) & (rows != np.round(rows))]
        # Estimated counts, mostly whole numbers, are counts.
        if whiten == "counts" and 2 * strange.size > np.count_nonzero(rows):
            warn(
                f"X has the entry {strange[0]:.6g}, and 'counts' expects whole "
                "numbers, whose noise grows with their mean. Logarithms, shares and "
                "tf-idf have other noise: give the counts themselves (of an AnnData "
                "object a layer), or do not whiten X.",
                PreparationWarning,
            )
        return whiten
    suited = suited_noise(X, surely=whiten is None)
    if whiten == "auto" or suited is None:
        return suited
    reason = {
        "counts": "X looks like counts, whole numbers many of which are 0. The "
        "variance of a count grows with its mean, so that common columns and long rows "
        "dominate.",
        "learned": "X has many zeros, and some entries far above the others. If its "
        "noise grows with the mean of a column, large columns dominate.",
    }[suited]
    remedy = remedy.format(option("whiten", suited))
    text = "makes the noise alike in all; compare the labels."
    warn(f"{reason} {remedy} {text}", PreparationWarning)
    return None


def _first_rows(X: Matrix, n_entries: int) -> Any:
    """Return rows of about so many entries as given, missing cells masked, 0 below."""
    n, p = X.shape
    seen = X if X.incomplete is None else X.incomplete
    rows = to_host(seen.rows(slice(0, min(n, max(n_entries // max(p, 1), 10)))))
    # Missing cells first: a product with the NA of R, a signalling NaN, warns.
    return np.ma.fix_invalid(rows, fill_value=0.0) * X.unit


def preparation_of_counts(X: Matrix, logged: bool) -> str | None:
    """Return if cells were "logged" or "centred", so that types are no patterns now.

    ``logged`` is whether a file says so; cells may show it too. In designs 0.3% of
    labels were wrong from whitened counts, 14% from logarithms, 12% from z-scores.
    """
    few = _first_rows(X, Whitening.LOOK).data
    if (few >= 0).all():
        if (few == np.round(few)).all():  # counts
            return None
        return "logged" if logged or _are_logarithms(few) else None
    # Columns of mean 0 as nothing but centring gives it: noise around 0 is further off.
    n = X.shape[0]
    means = to_host(X.adjoint(X.to_device(np.ones((n, 1)))))[:, 0] / n
    squares = X.column_sqnorms() / n
    if np.median(np.abs(means) - Whitening.CENTRED * np.sqrt(squares / n)) <= 0:
        return "centred"
    off = np.abs(np.sqrt(np.maximum(squares - means**2, 0.0)) - 1)
    near = (np.abs(means) < Whitening.MEAN) & (off < Whitening.DEVIATION)
    if near.mean() > Whitening.STANDARD:
        return "centred"
    return "logged" if logged else None


def _are_logarithms(rows: np.ndarray) -> bool:
    """Tell whether most rows, none negative, are log(1 + x) of counts times a factor.

    Then ``exp - 1`` gives multiples of the smallest number of the row, and rows are no
    such multiples themselves, as shares of a total are.
    """

    def are_multiples(values: np.ndarray) -> bool:
        ratios = values / values.min()
        ratios = ratios[(ratios > 1.5) & (ratios < Whitening.LARGEST_LOG)]
        off = np.abs(ratios - np.round(ratios))
        return len(ratios) > 1 and (off < Whitening.OFF_WHOLE).mean() > 0.9

    if not 0 < rows.max() < Whitening.LARGEST_LOG:
        return False
    positive = (row[row > 0] for row in rows.astype(np.float64))
    logged = [
        len(row) > 2 and are_multiples(np.expm1(row)) and not are_multiples(row)
        for row in positive
    ]
    return 2 * sum(logged) > len(rows)
