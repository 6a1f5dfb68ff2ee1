"""What people read: results as sentences, and as tables for notebooks.

Functions here take a result and return text. No other code reads that text back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ihgmm.statistics.contrasts import TellingFeatures
from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.estimation import Estimates
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.words.counts import count_html, count_text
from ihgmm.words.diagnoses import caution_text, diagnosis_html, diagnosis_text
from ihgmm.words.estimates import estimates_html, features_html, scale_html, scale_text

_TEXTS: dict[type, Callable[[Any], str]] = {
    Caution: caution_text,
    ClusterCount: count_text,
    Diagnosis: diagnosis_text,
    ScaleTest: scale_text,
}
_TABLES: dict[type, Callable[[Any], str]] = {
    ClusterCount: count_html,
    Diagnosis: diagnosis_html,
    Estimates: estimates_html,
    ScaleTest: scale_html,
    TellingFeatures: features_html,
}


def text(result: Any) -> str:
    """Return what ``print`` shows of a result."""
    return _TEXTS.get(type(result), repr)(result)


def html(result: Any) -> str | None:
    """Return what a notebook shows of a result; None for its ``repr``."""
    table = _TABLES.get(type(result))
    return None if table is None else table(result)
