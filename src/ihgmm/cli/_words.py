"""Findings that several commands tell, in figures and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ihgmm.metrics import misclassification_loss

__all__ = ["compared", "comparison"]


def comparison(known: Any, found: np.ndarray) -> dict[str, Any] | None:
    """Return how labels differ from those known; None where none are."""
    if known is None:
        return None
    names = np.asarray(known).astype(str)
    wrong = misclassification_loss(names, found)
    return {
        "classes": len(set(names)),
        "misplaced": wrong,
        "rate": wrong / max(len(names), 1),
    }


def compared(figures: dict[str, Any], n: int) -> str:
    """Return a comparison in words."""
    classes = figures["classes"]
    return (
        f"against the known labels ({classes} class{'es' * (classes != 1)}): "
        f"{figures['misplaced']:,} of {n:,} rows differ ({figures['rate']:.1%})"
    )
