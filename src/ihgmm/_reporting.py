"""Estimators that write a report of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Reporting:
    """A fitted model that can be told of on a page."""

    def report(self, X: Any, path: Any, **options: Any) -> Path:
        """Write the clustering as one page of HTML that opens in any browser.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data of the fit.
        path : str or path
            The file to write, ending in .html.
        **options
            ``ids``, ``id_name``, ``feature_names``, ``title``, ``labels_true`` and
            ``notes``, as :func:`ihgmm.report.write_report` takes them.

        Returns
        -------
        Path
            The file.
        """
        from ihgmm.report import write_report  # a look upwards, when it is asked for

        return write_report(self, X, path, **options)
