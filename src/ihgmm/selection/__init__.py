"""How many clusters there are."""

from ihgmm.selection.automatic import resolve
from ihgmm.selection.count import choose, select_n_clusters
from ihgmm.selection.found import ClusterCount

__all__ = ["ClusterCount", "choose", "resolve", "select_n_clusters"]
