"""Estimators that write a report of themselves."""

from __future__ import annotations

from collections.abc import Iterable
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
        id_name: str | None = None,
        feature_names: Any = None,
        title: str | None = None,
        labels_true: Any = None,
        notes: Iterable[str] = (),
    ) -> Path:
        """Write what was found as one page of HTML that opens in any browser.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        path : str or path
            The file to write, ending in .html.
        ids : sequence of length n_samples, optional
            Names of rows. By default the index of a pandas frame, unless that only
            counts the rows; then, and of other data, their numbers from 1.
        id_name : str, optional
            What the names are called in the file that the page lets you save. By
            default the name of the index, or "id"; of numbers, "row".
        feature_names : sequence of length n_features, optional
            Names of features; by default those of the fit or of the columns of X.
        title : str, optional
            Heading of the page.
        labels_true : sequence of length n_samples, optional
            Known labels to compare with.
        notes : iterable of str, optional
            What was done to the data before: rows and columns left out, columns
            scaled. The page tells it.

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
            id_name=id_name,
            feature_names=feature_names,
            title=title,
            labels_true=labels_true,
            notes=notes,
        )
