"""What data seem to be by some of their entries, and whether they ask for whitening."""

from __future__ import annotations

from typing import Literal, assert_never

import numpy as np

from ihgmm._parameters import option
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.matrix import Matrix, to_host
from ihgmm.numerics.whitening.whitener import NoiseKind
from ihgmm.policy import Whitening


def suited_noise(X: Matrix, *, surely: bool = False) -> NoiseKind | None:
    """Return which noise to make alike, None where the data ask for no whitening.

    Data none of which are negative and many 0 have noise that grows with the mean if
    they look like counts of rare events, or have a long tail. Shades of a picture have
    zeros, but no long tail; tf-idf is nearly all zeros, and weighted already. Whole
    numbers with a long tail often lose nothing: with ``surely`` they need no whitening.
    """
    for n_entries in (Whitening.GLANCE, Whitening.LOOK):
        rows = _first_rows(X, n_entries)
        if rows.min() != 0:
            return None

    zero_share = (rows == 0).sum() / rows.count()
    if zero_share < Whitening.ZEROS or not rows.any():
        return None

    # Larger floats are whole numbers, whatever they measure.
    is_exact = rows.max() < 1 / np.finfo(rows.dtype).eps
    is_whole = (rows == np.round(rows)).all() and is_exact
    if is_whole and _are_rare_events(rows):
        return "counts"

    # Tf-idf is weighted already; of few columns, what a fit leaves shows little.
    is_weighted = not is_whole and zero_share > Whitening.MOST_ZEROS
    has_few_columns = rows.shape[1] < Whitening.COLUMNS
    if is_weighted or (is_whole and surely) or has_few_columns:
        return None

    if not _has_long_tail(rows / X.unit):
        return None

    return "counts" if is_whole else "learned"


def _are_rare_events(rows: np.ma.MaskedArray) -> bool:
    """Tell whether whole numbers look like counts of events, most of which are rare."""
    values, times = np.unique(rows[rows > 0].compressed(), return_counts=True)
    if len(times) == 1:  # 0 and 1 alone are answers, not counts
        return False

    is_rare = 2 * times.sum() <= rows.count() and values[times.argmax()] == 1

    means = rows.mean(axis=0)
    # Chance alone adds to the squares of means what it adds to their variance.
    mean_square = (np.square(means) - means / len(rows)).mean()
    return bool(is_rare and mean_square > Whitening.UNEQUAL * means.mean() ** 2)


def _has_long_tail(rows: np.ma.MaskedArray) -> bool:
    """Tell whether some entries have a far larger share of their row than most."""
    shares = rows / rows.sum(axis=1, keepdims=True)
    median, upper = np.quantile(shares[rows > 0].compressed(), (0.5, 0.99))
    return bool(upper > Whitening.TAIL * median)


Columns = Literal["auto", "given", "roots", "counts", "noise"]
"""What is done to columns before rows are compared: of these, the last two whiten."""

COLUMNS: tuple[Columns, ...] = ("auto", "given", "roots", "counts", "noise")
_NOISE_OF_COLUMNS: dict[str, NoiseKind] = {"counts": "counts", "noise": "learned"}


def noise_of_columns(X: Matrix, columns: Columns) -> NoiseKind | None:
    """Return the noise that users ask to make alike, if they do."""
    if columns == "counts":
        warn_of_fractions(X)
    return _NOISE_OF_COLUMNS.get(columns)


def columns_for_noise(noise: NoiseKind) -> Columns:
    """Return what users ask for to make a noise alike."""
    return "counts" if noise == "counts" else "noise"


def warn_of_uneven_noise(X: Matrix, remedy: str) -> None:
    """Warn where noise seems to grow with the mean; the remedy takes a parameter."""
    suited = suited_noise(X, surely=True)
    if suited is None:
        return

    reason = _reason_to_whiten(suited)
    parameter = option("columns", columns_for_noise(suited))
    text = "makes the noise alike in all; compare the labels."
    warn(f"{reason} {remedy.format(parameter)} {text}", PreparationWarning)


def _reason_to_whiten(noise: NoiseKind) -> str:
    match noise:
        case "counts":
            return (
                "X looks like counts, whole numbers many of which are 0. The "
                "variance of a count grows with its mean, so that common columns and "
                "long rows dominate."
            )
        case "learned":
            return (
                "X has many zeros, and some entries far above the others. If its "
                "noise grows with the mean of a column, large columns dominate."
            )
        case _:
            assert_never(noise)


def warn_of_fractions(X: Matrix) -> None:
    """Warn if most entries are no whole numbers, and so no counts.

    Estimated counts, mostly whole numbers, are counts.
    """
    rows = _first_rows(X, Whitening.LOOK).data
    fractions = rows[(rows > 0) & (rows != np.round(rows))]
    if 2 * fractions.size > np.count_nonzero(rows):
        warn(
            f"X has the entry {fractions[0]:.6g}, and 'counts' expects whole "
            "numbers, whose noise grows with their mean. Logarithms, shares and "
            "tf-idf have other noise: give the counts themselves (of an AnnData "
            "object a layer), or do not whiten X.",
            PreparationWarning,
        )


def _first_rows(X: Matrix, n_entries: int) -> np.ma.MaskedArray:
    """Return rows of about so many entries as given, missing cells masked, 0 below."""
    n_samples, n_features = X.shape
    data = X if X.incomplete is None else X.incomplete
    size = max(n_entries // max(n_features, 1), 10)
    rows = to_host(data.rows(slice(0, min(n_samples, size))))

    # Missing cells first: a product with the NA of R, a signalling NaN, warns.
    return np.ma.fix_invalid(rows, fill_value=0.0) * X.unit


def preparation_of_counts(X: Matrix, logged: bool) -> str | None:
    """Return if cells were "logged" or "centred", so that types are no patterns now.

    ``logged`` is whether a file says so; cells may show it too. In designs 0.3% of
    labels were wrong from whitened counts, 14% from logarithms, 12% from z-scores.
    """
    rows = _first_rows(X, Whitening.LOOK).data
    if (rows >= 0).all():
        are_counts = (rows == np.round(rows)).all()
        if are_counts or not (logged or _are_logarithms(rows)):
            return None
        return "logged"

    if _are_centred(X):
        return "centred"

    return "logged" if logged else None


def _are_centred(X: Matrix) -> bool:
    """Tell whether columns have the mean 0 as nothing but centring gives it.

    Noise around 0 is further off, unless columns have variance 1 as well.
    """
    n_samples = X.shape[0]
    ones = X.to_device(np.ones((n_samples, 1)))
    means = to_host(X.adjoint(ones))[:, 0] / n_samples
    squares = X.column_sqnorms() / n_samples
    standard_errors = np.sqrt(squares / n_samples)

    if np.median(np.abs(means) - Whitening.CENTRED * standard_errors) <= 0:
        return True

    deviations = np.sqrt(np.maximum(squares - means**2, 0.0))
    has_mean_zero = np.abs(means) < Whitening.MEAN
    has_variance_one = np.abs(deviations - 1) < Whitening.DEVIATION
    return bool((has_mean_zero & has_variance_one).mean() > Whitening.STANDARD)


def _are_logarithms(rows: np.ndarray) -> bool:
    """Tell whether most rows, none negative, are log(1 + x) of counts times a factor.

    Then ``exp - 1`` gives multiples of the smallest number of the row, and rows are no
    such multiples themselves, as shares of a total are.
    """
    if not 0 < rows.max() < Whitening.LARGEST_LOG:
        return False

    n_logged = 0
    for row in rows.astype(np.float64):
        positive = row[row > 0]
        if len(positive) > 2 and _are_multiples(np.expm1(positive)):
            n_logged += not _are_multiples(positive)

    return 2 * n_logged > len(rows)


def _are_multiples(values: np.ndarray) -> bool:
    """Tell whether positive numbers are whole multiples of the smallest of them."""
    ratios = values / values.min()
    ratios = ratios[(ratios > 1.5) & (ratios < Whitening.LARGEST_LOG)]
    if len(ratios) < 2:
        return False

    distances = np.abs(ratios - np.round(ratios))
    return bool((distances < Whitening.OFF_WHOLE).mean() > 0.9)
