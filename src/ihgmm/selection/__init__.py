"""How many clusters there are."""

from ihgmm.selection.count import ClusterCount, choose, resolve, select_n_clusters

__all__ = ["ClusterCount", "choose", "resolve", "select_n_clusters"]
