"""Estimators that write a report of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["Reporting"]


class Reporting:
    """A fitted model that can be told of on a page."""

    def report(
        self,
        X: Any,
        path: Any,
        *,
        ids: Any = None,
        feature_names: Any = None,
        title: str | None = None,
        labels_true: Any = None,
    ) -> Path:
        """Write what was found as one page of HTML that opens in any browser.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        path : str or path
            The file to write, ending in .html.
        ids : sequence of length n_samples, optional
            Names of rows; their numbers from 1 by default.
        feature_names : sequence of length n_features, optional
            Names of features; by default those of the fit or of the columns of X.
        title : str, optional
            Heading of the page.
        labels_true : sequence of length n_samples, optional
            Known labels to compare with.

        Returns
        -------
        Path
            The file.
        """
        from ihgmm.report import write_report  # a look upwards, when it is asked for

        return write_report(
            self,
            X,
            path,
            ids=ids,
            feature_names=feature_names,
            title=title,
            labels_true=labels_true,
        )
