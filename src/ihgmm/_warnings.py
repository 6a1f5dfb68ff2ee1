"""Warnings that point at the user's own line."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import sklearn

# What lies between a user's line and a warning: this package, scikit-learn's searches
# and pipelines, and joblib, which runs the searches.
_INNER = tuple(
    os.path.dirname(path) + os.sep
    for path in (__file__, sklearn.__file__, joblib.__file__)
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, and point at the first line outside of the package and scikit-learn.

    From Python 3.12 on ``warnings.warn(..., skip_file_prefixes=_INNER)`` does the same.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
