"""What shells and notebooks show of a result, by its type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ihgmm.statistics.contrasts import TopFeatures
from ihgmm.statistics.diagnosis import Caution, Diagnosis
from ihgmm.statistics.scale_heterogeneity import ScaleTest
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree
from ihgmm.words.counts import count_text, tree_text
from ihgmm.words.diagnoses import caution_text, diagnosis_text
from ihgmm.words.features import features_text
from ihgmm.words.scales import scale_text

_SENTENCES: dict[type, Callable[[Any], str]] = {
    Caution: caution_text,
    ClusterCount: count_text,
    ClusterTree: tree_text,
    Diagnosis: diagnosis_text,
    ScaleTest: scale_text,
    TopFeatures: features_text,
}


def text(result: Any) -> str:
    """Return the sentences of a result."""
    return _SENTENCES[type(result)](result)
