"""The flat picture of the embedding: where each row is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihgmm._checks.data import CheckedData
from ihgmm._devices import to_host
from ihgmm._products import matmul
from ihgmm.rounding import normalize_rows

__all__ = ["View", "flat_view"]

ON_A_CIRCLE = 12
"""Up to so many clusters find room side by side on a circle."""


@dataclass(frozen=True, eq=False)
class View:
    """Places of the rows in the picture.

    Attributes
    ----------
    places : ndarray of shape (n_samples, 2)
        Coordinates.
    words : str
        How they came about and how to read them.
    square : bool
        Whether both coordinates have the same unit.
    """

    places: np.ndarray
    words: str
    square: bool


def flat_view(
    model: Any,
    data: CheckedData,
    labels: np.ndarray,
    scales: np.ndarray,
    centers: np.ndarray,
) -> View:
    """Return a place in the plane for each row.

    Notes
    -----
    Every cluster is given a place: on a circle, like clusters side by side, or spread
    over a disc if there are many. The plane is the least-squares fit of these places,
    each cluster counting the same, by a linear function of the embedding. So rows
    between two clusters lie between them, and clusters that overlap in the embedding
    overlap in the picture.
    """
    used = np.unique(labels)
    if len(used) == 1:
        return _fit_against_scale(data, scales, centers[used])
    embedding, what = _embedding(model, data, centers)
    codes = np.searchsorted(used, labels)
    share = 1 / np.bincount(codes)
    means = np.zeros((len(used), embedding.shape[1]))
    np.add.at(means, codes, embedding * share[codes, None])
    targets = _targets(means)
    weights = np.sqrt(share[codes] / len(used))[:, None]
    rows = np.column_stack([embedding, np.ones(len(labels))])
    # A Gram matrix is small, and the smallest directions in it are noise.
    slopes = np.linalg.lstsq(
        (rows * weights).T @ (rows * weights),
        (rows * weights).T @ (targets[codes] * weights),
        rcond=1e-9,
    )[0]
    places = rows @ slopes
    if len(used) == 2:
        places[:, 1] = _second_axis(embedding, slopes[:-1, 0])
        how = "The horizontal axis runs from one cluster to the other."
    else:
        how = "Each cluster has its place; like clusters are neighbours."
    words = f"{what} {how} A row between two clusters resembles both."
    return View(places, words, True)


def _fit_against_scale(
    data: CheckedData, scales: np.ndarray, center: np.ndarray
) -> View:
    """Return the picture of a single cluster: scale, and cosine with the centre."""
    least = scales[scales > 0].min(initial=1.0)
    sizes = np.log(np.maximum(scales, least))
    places = np.column_stack([sizes, _cosines(data, center)])
    words = (
        "With one cluster there is nothing to tell apart: a row lies further right the "
        "larger its scale is, and higher the better it fits the common pattern."
    )
    return View(places, words, False)


def _embedding(
    model: Any, data: CheckedData, centers: np.ndarray
) -> tuple[np.ndarray, str]:
    """Return what the model compared rows by, or the next best thing."""
    if hasattr(model, "embedding_"):
        found = to_host(model.embedding_).astype(np.float64)
        lengths = np.linalg.norm(found, axis=1)
        if np.allclose(lengths[lengths > 0], 1, atol=1e-3):
            return found, "Rows as the method sees them, whatever their scale."
        return found, "Rows as the method sees them, large ones further out."
    words = "Rows by their cosines with the centres, whatever their scale."
    return _cosines(data, centers), words


def _cosines(data: CheckedData, centers: np.ndarray) -> np.ndarray:
    norms = np.sqrt(data.sqnorms.astype(np.float64))
    products = matmul(data.X, normalize_rows(centers).T).astype(np.float64)
    return products / np.where(norms > 0, norms, 1.0)[:, None]


def _targets(means: np.ndarray) -> np.ndarray:
    """Return places for clusters, like ones close to each other."""
    k = len(means)
    turn, radius = 2 * np.pi / k, np.ones(k)
    if k > ON_A_CIRCLE:  # seeds of a sunflower fill the disc evenly
        turn, radius = np.pi * (3 - 5**0.5), np.sqrt((np.arange(k) + 0.5) / (k - 0.5))
    angle = turn * np.arange(k)
    free = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    left, values, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    flat = np.zeros((k, 2))
    flat[:, : len(values[:2])] = left[:, :2] * values[:2]
    _, place = linear_sum_assignment(flat @ free.T, maximize=True)
    return free[place]


def _second_axis(embedding: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return the coordinate of largest spread beside the one given, in its unit."""
    length = np.linalg.norm(slopes)
    if length == 0:
        return np.zeros(len(embedding))
    first = slopes / length
    rest = embedding - embedding.mean(axis=0)
    rest -= np.outer(rest @ first, first)
    _, directions = np.linalg.eigh(rest.T @ rest)
    along = directions[:, -1]
    along = along * (1.0 if along.sum() >= 0 else -1.0)
    return rest @ along * length
