"""Models that learn from more rows, call by call, and remember them in bounded memory.

``first_fit`` and ``update_fit`` are what a call of ``partial_fit`` does;
``state_of_fit`` lets a model go on that was fitted at once.
"""

from ihgmm.numerics.incremental.drift import DriftRecord
from ihgmm.numerics.incremental.memory import ClusterSums, DirectionMemory, RowSample
from ihgmm.numerics.incremental.state import EarlierFit, IncrementalState, state_of_fit
from ihgmm.numerics.incremental.update import IncrementalFit, first_fit, update_fit

__all__ = [
    "ClusterSums",
    "DirectionMemory",
    "DriftRecord",
    "EarlierFit",
    "IncrementalFit",
    "IncrementalState",
    "RowSample",
    "first_fit",
    "state_of_fit",
    "update_fit",
]
