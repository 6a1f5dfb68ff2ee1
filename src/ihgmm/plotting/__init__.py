"""Pictures of a clustering. They need matplotlib, the extra ``plot``."""

from ihgmm.plotting.centers import plot_centers
from ihgmm.plotting.confidence import plot_confidence
from ihgmm.plotting.confusion import plot_confusion
from ihgmm.plotting.embedding import plot_embedding, plot_embedding_3d
from ihgmm.plotting.scales import plot_scales
from ihgmm.plotting.scree import plot_scree
from ihgmm.plotting.silhouette import plot_silhouette
from ihgmm.plotting.sizes import plot_sizes

__all__ = [
    "plot_centers",
    "plot_confidence",
    "plot_confusion",
    "plot_embedding",
    "plot_embedding_3d",
    "plot_scales",
    "plot_scree",
    "plot_silhouette",
    "plot_sizes",
]
