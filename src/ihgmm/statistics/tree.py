"""Clusters within clusters: a tree, and the levels at which it is stable."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ihgmm._display import Result, draw
from ihgmm._parameters import check_count
from ihgmm.numerics.known_labels import KnownLabels
from ihgmm.policy import Levels


@dataclass(frozen=True)
class Split:
    """The evidence for one number of clusters in a tree."""

    n_clusters: int  #: after this split
    rise: float  #: how much more the next merger costs than the last, in logarithms
    agreement: float  #: of trees of separate halves of the rows: adjusted Rand index
    stability: float  #: how well these find the worst cluster again, from 0 to 1
    drop: float  #: how much worse they find that of one more

    @property
    def support(self) -> float:
        """The evidence for this number: its rise, and its drop of stability."""
        return self.rise + Levels.DROP_WEIGHT * self.drop


class Bracket(NamedTuple):
    """A merger as it is drawn: two stems, and what joins them."""

    n_clusters: int  # before it
    leaf: int  # one of those that it joins
    left: tuple[float, float]  # the stem's place, and the height from which it rises
    right: tuple[float, float]
    height: float


@dataclass(frozen=True, eq=False, repr=False)
class ClusterTree(Result):
    """Clusters that merge step by step, each step with its evidence."""

    leaves: np.ndarray  #: the leaf of each row; -1 for outliers of a model
    members: np.ndarray  #: line ``k - 1`` has the cluster of each leaf, of k
    splits: tuple[Split, ...]  #: the evidence for 2, 3, ... clusters
    #: Numbers of clusters at which the tree is stable: halves of the rows agree, and
    #: merging two would cost far more than merging two of one more.
    levels: tuple[int, ...]
    #: Of merging two of 2, 3, ... clusters, a row: lost log-likelihood, BIC's price.
    costs: np.ndarray
    n_rows: int  #: that the tree learnt from
    of_model: bool = False  #: whether leaves are the clusters of a model

    @property
    def n_leaves(self) -> int:
        """The number of clusters at the end of all branches."""
        return len(self.members)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return labels of so many clusters, numbered by decreasing size.

        In the tree of a model they have its numbers, as far as they share rows.
        """
        k = check_count("n_clusters", n_clusters)
        if k > self.n_leaves:
            raise ValueError(f"n_clusters={k} is more than the {self.n_leaves} leaves.")

        return np.where(self.leaves < 0, -1, self.numbers(k)[self.leaves])

    def numbers(self, n_clusters: int) -> np.ndarray:
        """Return the label of each leaf where there are so many clusters."""
        members = self.members[n_clusters - 1]
        leaf_sizes = np.bincount(self.leaves[self.leaves >= 0], minlength=len(members))
        cluster_sizes = np.bincount(members, leaf_sizes)

        order = np.argsort(-cluster_sizes, kind="stable")
        if self.of_model:
            numbers_of_model = np.arange(len(members))
            labels_of_model = KnownLabels(
                start=numbers_of_model, start_weights=leaf_sizes
            )
            order = labels_of_model.cluster_order(order, members)
        return np.argsort(order)[members]

    def drawn(self) -> tuple[np.ndarray, list[Bracket]]:
        """Return the leaves from left to right, and mergers from these to the root."""
        order, halves = self._branches()

        # Where the stem of a cluster is, by its first leaf, and from where it rises.
        stems = {int(leaf): (float(place), 0.0) for place, leaf in enumerate(order)}
        brackets = []
        height = 0.0
        for k in range(self.n_leaves, 1, -1):
            first_half, second_half = halves[k]
            leaf = int(first_half[0])
            bracket = Bracket(
                n_clusters=k,
                leaf=leaf,
                left=stems[leaf],
                right=stems[int(second_half[0])],
                # A merger that costs less than the last one is drawn at its height.
                height=max(height, float(self.costs[k - 2])),
            )
            brackets.append(bracket)
            height = bracket.height

            middle = (bracket.left[0] + bracket.right[0]) / 2
            stems[leaf] = (middle, height)

        return order, brackets

    def _branches(
        self,
    ) -> tuple[np.ndarray, dict[int, tuple[np.ndarray, np.ndarray]]]:
        """Return the leaves from left to right, and the halves of what each split cuts.

        The halves are leaves, by the number of clusters after the split.
        """
        groups = [np.arange(self.members.shape[1])]  # of leaves, from left to right
        halves = {}

        for k in range(2, self.n_leaves + 1):
            members = self.members[k - 1]
            place = next(i for i, group in enumerate(groups) if np.ptp(members[group]))
            group = groups[place]

            is_in_first_half = members[group] == members[group[0]]
            halves[k] = (group[is_in_first_half], group[~is_in_first_half])
            groups[place : place + 1] = halves[k]

        return np.array([group[0] for group in groups]), halves

    def split(self, n_clusters: int) -> Split | None:
        """Return the evidence for a number of clusters; None where there is none."""
        position = n_clusters - 2
        return self.splits[position] if 0 <= position < len(self.splits) else None

    def plot(self, ax: Any = None) -> Any:
        """Draw the tree and its levels: :func:`ihgmm.plotting.plot_tree`."""
        return draw(self, ax)
