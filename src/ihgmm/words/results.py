"""What ``print`` and notebooks show of a result, by its type."""

from __future__ import annotations

from typing import Any

from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_html, count_text, tree_html, tree_text
from ihgmm.words.diagnoses import caution_text, diagnosis_html, diagnosis_text
from ihgmm.words.scales import scale_html, scale_text

# The sentences of a result, and its table for notebooks; None for its ``repr``.
_FORMS: dict[type, tuple[Any, Any]] = {
    Caution: (caution_text, None),
    ClusterCount: (count_text, count_html),
    ClusterTree: (tree_text, tree_html),
    Diagnosis: (diagnosis_text, diagnosis_html),
    ScaleTest: (scale_text, scale_html),
}


def text(result: Any) -> str:
    """Return what ``print`` shows of a result."""
    return str(_FORMS.get(type(result), (repr, None))[0](result))


def html(result: Any) -> str | None:
    """Return what a notebook shows of a result; None for its ``repr``."""
    table = _FORMS.get(type(result), (repr, None))[1]
    return None if table is None else str(table(result))
