"""How many clusters there are."""

from ihgmm.selection.count import ClusterCount, CountGram, choose, select_n_clusters

__all__ = ["ClusterCount", "CountGram", "choose", "select_n_clusters"]
