"""What ``print`` and notebooks show of a result, by its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_html, count_text, tree_html, tree_text
from ihgmm.words.diagnoses import caution_text, diagnosis_html, diagnosis_text
from ihgmm.words.scales import scale_html, scale_text

# Those of other results are their ``repr``.
_TEXTS: dict[type, Callable[[Any], str]] = {
    Caution: caution_text,
    ClusterCount: count_text,
    ClusterTree: tree_text,
    Diagnosis: diagnosis_text,
    ScaleTest: scale_text,
}
_TABLES: dict[type, Callable[[Any], str]] = {
    ClusterCount: count_html,
    ClusterTree: tree_html,
    Diagnosis: diagnosis_html,
    ScaleTest: scale_html,
}


def text(result: Any) -> str:
    """Return what ``print`` shows of a result."""
    return _TEXTS.get(type(result), repr)(result)


def html(result: Any) -> str | None:
    """Return what a notebook shows of a result; None for its ``repr``."""
    return _TABLES.get(type(result), lambda _: None)(result)
