"""What IhSC and IhGMM share: filled cells, a count of clusters, outliers left out."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np

from ihgmm import _checks as checks
from ihgmm._parameters import option
from ihgmm._progress import Steps
from ihgmm._warnings import PreparationWarning, warn
from ihgmm.estimators.base import PARAMETER_CHECKS, check_count_or_auto
from ihgmm.estimators.clusterer import Clusterer, FitRows
from ihgmm.matrix import Matrix, Scaled, Tall, ops_of, row_lengths, to_host
from ihgmm.numerics.missing import Filler, learn_filler
from ihgmm.numerics.whitening import Columns, Whitener
from ihgmm.numerics.wild_cells import learn_cell_filler
from ihgmm.statistics.cautions import ruling_column
from ihgmm.statistics.missing_cells import missing_cells
from ihgmm.statistics.outliers import find_outliers
from ihgmm.statistics.selection import count_with_warnings


class PatternClusterer(Clusterer):
    """A clusterer of patterns, each row at its own scale.

    It fills in missing and wild cells, counts clusters, and leaves outliers out of the
    fit, each if its parameters ask for it.
    """

    _parameter_checks: ClassVar = {
        **PARAMETER_CHECKS,
        "n_clusters": check_count_or_auto,
    }

    outliers: Any
    columns: Columns = "auto"  # of estimators that have no such parameter
    scales_: np.ndarray

    @property
    def sizes_(self) -> np.ndarray:
        """Scale times the length of the centre, of models that have ``scales_``."""
        scales = self.scales_
        ops = ops_of(scales)

        # The scales of outliers, whose label is -1, are NaN.
        labels = ops.clip(ops.to_device(self.labels_, scales), 0, None)
        with np.errstate(over="ignore", under="ignore"):
            lengths = ops.take_lines(row_lengths(self.cluster_centers_), labels)
            return ops.cast_like(ops.widen(scales) * lengths, scales)

    def _read_rows(
        self, X: Any, sample_weight: Any, say: Callable[[str], None]
    ) -> FitRows:
        """Check the data, find the rows that count, and fill in cells."""
        everything = checks.check_matrix(X, self, missing=self.missing)
        say("{:,} rows, {:,} features".format(*everything.shape))

        counted, subset = checks.counted_rows(everything, sample_weight)
        n_unobserved = checks.warn_missing(counted, everything.names)

        rows = FitRows(
            everything=everything, counted=counted, subset=subset, n_nonzero=0
        )

        if self.outliers == "cells":
            rows = self._prepare(rows, learn_cell_filler(counted))
            already_missing = everything if self.missing == "fit" else None
            self.outlier_cells_ = missing_cells(
                rows.everything.incomplete, already_missing
            )
        elif self.missing == "fit":
            rows = self._prepare(rows, learn_filler(counted))

        n_nonzero = checks.warn_zero_rows(rows.counted, n_unobserved)
        return replace(rows, n_nonzero=n_nonzero)

    def _prepare(self, rows: FitRows, change: Filler | Whitener) -> FitRows:
        """Return rows after a change, which new rows will go through too."""
        self.preparation_ = (*self.preparation_, change)
        counted = change(rows.counted)
        everything = counted
        if not rows.subset.is_everything:
            everything = change(rows.everything)

        return replace(rows, everything=everything, counted=counted)

    def _warn_of_units(self, data: Matrix) -> None:
        """Warn of a column that would decide clusters alone, if data are at hand."""
        ruling = ruling_column(data) if data.on_host else None
        if ruling is None:
            return

        warn(
            f"Column {ruling.column!r} holds about {ruling.share:.0%} of the variance "
            "of ordinary rows, and clusters depend on its unit. If columns are in "
            f"different units, {option('ColumnScaler')} makes them comparable.",
            PreparationWarning,
        )

    def _count_and_leave_out(
        self, rows: FitRows, rng: np.random.Generator, steps: Steps
    ) -> tuple[FitRows, int]:
        """Count the clusters, and leave out rows that fit none, if asked to."""
        k = self._count_clusters(rows.counted, rows.n_nonzero, rng, steps)

        checks.warn_few_weighty_rows(rows.counted, k)
        if self.outliers is None or self.outliers == "cells":
            return rows, k

        n_before = rows.counted.shape[0]
        rows = self._leave_out_outliers(rows, k, rng, steps)
        if rows.counted.shape[0] < n_before:
            k = self._count_clusters(rows.counted, rows.n_nonzero, rng, steps)
        return rows, k

    def _count_clusters(
        self, data: Matrix, n_nonzero: int, rng: np.random.Generator, steps: Steps
    ) -> int:
        """Return the number of clusters, given or counted; there are rows for them."""
        k = self.n_clusters
        if k == "auto":
            with steps.step("count") as say:
                # The fit draws as if the number had been given.
                self.selection_ = count_with_warnings(
                    data, deepcopy(rng), self.columns, say
                )
                k = max(self.selection_.n_clusters, 1)
                say(f"{k} cluster{'s' * (k != 1)}")

        checks.check_row_count(data.shape[0], k, n_nonzero)
        return int(k)

    def _leave_out_outliers(
        self, rows: FitRows, k: int, rng: np.random.Generator, steps: Steps
    ) -> FitRows:
        """Return the rows of a fit, of which those that fit no cluster do not count."""
        with steps.step("outliers") as say:
            data = self._before_whitening(rows.counted)
            rule = find_outliers(data, k, self.outliers, rng=rng)
            scores = rule.scores(self._before_whitening(rows.everything))
            self.outlier_rule_ = rule
            self.outlier_threshold_ = rule.threshold
            self.outlier_scores_ = rows.everything.cast(scores)

            is_outlier = scores > rule.threshold
            is_kept = ~to_host(is_outlier)[rows.subset.positions()]  # (n_counted,)
            say(f"{np.count_nonzero(~is_kept):,} rows")

        rows = replace(rows, is_outlier=is_outlier)
        if is_kept.all():
            return rows

        counted = rows.counted.keep_rows(np.flatnonzero(is_kept))
        return replace(
            rows,
            counted=counted,
            subset=rows.subset.without(is_outlier),
            n_nonzero=checks.count_rows(counted, counted.sqnorms),
        )

    def _is_outlier(self, X: Matrix) -> Tall | None:
        """Tell which rows are outliers; None where the fit did not look for any."""
        rule = getattr(self, "outlier_rule_", None)
        return None if rule is None else rule(self._before_whitening(X))

    def _before_whitening(self, prepared: Matrix) -> Matrix:
        """Return rows before their noise was made alike, which outliers show by."""
        return cast(Scaled, prepared).matrix if self._is_whitened else prepared

    @property
    def _is_whitened(self) -> bool:
        """Whether the noise of rows was made alike before they were clustered."""
        return any(isinstance(change, Whitener) for change in self.preparation_)
