"""Several clusters or one: how far rows part better than a single Gaussian cloud."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh

from ihgmm.matrix import as_matrix, to_host
from ihgmm.numerics.recipe import Recipe
from ihgmm.numerics.spectral import spectral_clustering
from ihgmm.policy import Counting
from ihgmm.statistics.number_evidence import RowGraph


@dataclass(frozen=True, eq=False)
class CloudComparison:
    """How modular rows are beside clouds without clusters, for some numbers of parts.

    Clusters are those that rows come to by themselves, without neighbours: these would
    find parts in a cloud, too.
    """

    numbers: tuple[int, ...]
    modularity: np.ndarray  # (numbers,): of the rows
    of_clouds: np.ndarray  # (clouds, numbers)

    @classmethod
    def of_nothing(cls) -> CloudComparison:
        """Return the comparison where rows are too few for one."""
        return cls(numbers=(), modularity=np.zeros(0), of_clouds=np.zeros((0, 0)))

    @property
    def leads(self) -> dict[int, float]:
        """By how much rows are more modular than any cloud, for each number."""
        most = self.of_clouds.max(axis=0) if self.numbers else self.modularity
        leads = (self.modularity - most).tolist()
        return dict(zip(self.numbers, leads, strict=True))

    @property
    def lead(self) -> float:
        """The largest of the leads; 0 where nothing was compared."""
        return max(self.leads.values(), default=0.0)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Unit rows in coordinates of as few dimensions as they have."""

    coordinates: np.ndarray  # (n, m)
    weights: np.ndarray  # (n,); 1 on average
    signed: bool  # whether opposite rows are alike

    @classmethod
    def of_cosines(
        cls, cosines: np.ndarray, n_features: int, weights: np.ndarray, *, signed: bool
    ) -> UnitRows:
        """Find coordinates of unit rows from their cosines, (n, n)."""
        n = len(cosines)
        most = min(n, n_features)
        values, vectors = eigh(cosines, subset_by_index=(n - most, n - 1))

        is_there = values > n * np.finfo(float).eps * values[-1]
        coordinates = vectors[:, is_there] * np.sqrt(values[is_there])
        return cls(coordinates=coordinates, weights=weights, signed=signed)

    def cloud(self, rng: Generator) -> np.ndarray:
        """Draw one Gaussian cloud of the mean and the covariance of the rows, (n, m).

        It is drawn along the axes of the covariance, which all point to the mean: so
        it does not depend on the order of rows.
        """
        rows = self.coordinates
        mean = np.average(rows, axis=0, weights=self.weights)
        if self.signed:
            mean = np.zeros_like(mean)

        residuals = (rows - mean) * np.sqrt(self.weights / self.weights.sum())[:, None]
        variances, axes = np.linalg.eigh(residuals.T @ residuals)
        deviations = np.sqrt(np.maximum(variances, 0.0))
        axes = axes * np.where(mean @ axes < 0, -1.0, 1.0)

        draws = rng.standard_normal(rows.shape) * deviations
        return np.asarray(mean + draws @ axes.T)


def compare_with_clouds(
    rows: UnitRows, graph: RowGraph, best: int, rng: Generator
) -> CloudComparison:
    """Compare rows and their graph with clouds of the same mean and covariance.

    Some small numbers of clusters are compared, and the ``best`` one.
    """
    n = len(rows.weights)
    numbers = tuple(
        k
        for k in sorted({*Counting.CLOUD_NUMBERS, best})
        if k <= n // Counting.ROWS_A_CLUSTER
    )

    of_clouds = []
    for _ in range(Counting.CLOUDS if numbers else 0):
        cloud = rows.cloud(rng)
        units = cloud / np.linalg.norm(cloud, axis=1)[:, None]
        cloud_graph = RowGraph.of_cosines(
            units @ units.T, rows.weights, signed=rows.signed
        )
        of_clouds.append(_modularity_of_numbers(units, rows, cloud_graph, numbers))

    return CloudComparison(
        numbers=numbers,
        modularity=_modularity_of_numbers(rows.coordinates, rows, graph, numbers),
        of_clouds=np.reshape(of_clouds, (len(of_clouds), len(numbers))),
    )


def _modularity_of_numbers(
    units: np.ndarray, rows: UnitRows, graph: RowGraph, numbers: tuple[int, ...]
) -> np.ndarray:
    """Return how modular plain clusters of unit rows are, for each number."""
    data = as_matrix(units).with_signed(rows.signed)
    if (rows.weights != 1).any():
        data = data.weighted(rows.weights)

    modularity = []
    for k in numbers:
        fit = spectral_clustering(data, k, Recipe(neighbors=False))
        inside, by_chance = graph.shares(to_host(fit.labels).astype(np.intp))
        modularity.append(inside - by_chance)
    return np.array(modularity)
