"""Charts and figures of the report: where lines and bars are; templates draw them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ihgmm.plotting.tree import level_heights
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import Bracket, ClusterTree


class ScaleAxis:
    """The logarithmic axis of the scales of all clusters; 0 has no place on it."""

    # The size of a cluster's picture.
    width = 260.0
    height = 30.0

    def __init__(self, scales: np.ndarray) -> None:
        smallest = 1.0
        largest = 1.0
        positive = scales[scales > 0]
        if len(positive):
            # A few rows may be out of all proportion; the axis is for the others.
            smallest, largest = np.quantile(positive, [0.0005, 0.9995])

        self.first = np.log10(min(smallest, 0.8))
        self.last = np.log10(max(largest, 1.25))
        self.ticks = []
        for scale in self._round_scales():
            self.ticks.append((float(self.place(scale)), f"{scale:g}"))

    def _round_scales(self, most: int = 5) -> list[float]:
        """Return round scales that are on the axis, not too many of them."""
        first_power = int(np.floor(self.first))
        last_power = int(np.ceil(self.last))
        powers = [10.0**power for power in range(first_power, last_power + 1)]

        for steps in ((1, 2, 5), (1, 3), (1,)):
            scales = [step * power for power in powers for step in steps]
            on_axis = [scale for scale in scales if self._reaches(scale)]
            if len(on_axis) <= most:
                return on_axis

        stride = -(-len(on_axis) // most)
        return on_axis[::stride]

    def _reaches(self, scale: float) -> bool:
        """Return whether a scale is on the axis."""
        return bool(self.first <= np.log10(scale) <= self.last)

    def place(self, scale: np.ndarray | float) -> np.ndarray:
        """Return where a scale is drawn, from left to right."""
        share = (np.log10(scale) - self.first) / (self.last - self.first)
        return np.asarray(6 + np.clip(share, 0, 1) * (self.width - 12))

    def density(self, scales: np.ndarray) -> dict[str, Any]:
        """Return where quartiles are, and the outline of a density of five or more."""
        positive = scales[scales > 0]
        quartiles = positive
        if len(positive):
            quartiles = np.quantile(positive, [0.25, 0.5, 0.75])

        return {
            "quartiles": self.place(quartiles).tolist(),
            "shape": self._outline(positive) if len(positive) >= 5 else "",
        }

    def _outline(self, scales: np.ndarray) -> str:
        """Return the path around a smoothed histogram and its mirror image."""
        edges = np.linspace(0, self.width, 53)
        counts, _ = np.histogram(self.place(scales), edges)

        # Gaussian weights, of a standard deviation of 1.6 bins.
        deviations = np.arange(-4, 5) / 1.6
        kernel = np.exp(-0.5 * deviations**2)
        density = np.convolve(counts, kernel, mode="same")

        # There along one side of the axis, and back along the other.
        middle = self.height / 2
        reach = density / density.max() * (middle - 2)
        centers = (edges[1:] + edges[:-1]) / 2
        x_of_points = np.concatenate([centers, centers[::-1]])
        y_of_points = np.concatenate([-reach, reach[::-1]]) + middle

        points = []
        for x, y in zip(x_of_points, y_of_points, strict=True):
            points.append(f"{x:.1f},{y:.1f}")
        return f"M{'L'.join(points)}Z"


def count_chart(count: ClusterCount) -> dict[str, Any] | None:
    """Return the chart of what speaks for each number of clusters, a bar for each."""
    if not count.evidence:
        return None
    scores = np.array([evidence.score for evidence in count.evidence])

    axis = ValueAxis.of(scores)
    ticks = axis.ticks()
    margin = _room_beside(ticks)

    width = 720.0
    step = (width - margin - 16) / len(scores)
    middles = (margin + (np.arange(len(scores)) + 0.5) * step).tolist()
    numbers = [evidence.n_clusters for evidence in count.evidence]
    numbered = list(zip(numbers, middles, strict=True))
    stride = -(-len(numbers) // 20)  # at most 20 numbers are written

    tops, heights = axis.bars(scores)
    said = [f"{k}: {score:.2f}" for k, score in zip(numbers, scores, strict=True)]

    return {
        "width": width,
        "height": 260.0,
        "left": margin,
        "bottom": axis.bottom,
        "ticks": ticks,
        "bar": min(step * 0.72, 36.0),
        "bars": list(zip(numbers, middles, tops, heights, strict=True)),
        "numbers": numbered[::stride],
        "said": ", ".join(said),
    }


def _room_beside(ticks: list[tuple[float, str]]) -> float:
    """Return how much room a chart needs at its left for the texts of ticks."""
    longest = max(len(text) for _, text in ticks)
    # On narrow screens text is large beside the chart: 13 units a character.
    return 24.0 + 13 * longest


@dataclass(frozen=True)
class ValueAxis:
    """The upright axis of scores, on which 0 has a place too."""

    smallest: float
    largest: float
    bottom: float = 226.0  # where the smallest value is drawn

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        """Return an axis that holds values and 0."""
        return cls(
            smallest=min(values.min(), 0),
            largest=max(values.max(), 0) or 1.0,
        )

    def place(self, value: Any) -> Any:
        """Return where a value, or each of an array, is drawn: from top to bottom."""
        share = (self.largest - value) / (self.largest - self.smallest)
        return 12 + share * (self.bottom - 12)

    def bars(self, values: np.ndarray) -> tuple[list[float], list[float]]:
        """Return the tops and the heights of bars between values and 0."""
        tops = self.place(np.maximum(values, 0))
        ends = self.place(np.minimum(values, 0))
        heights = np.maximum(ends - tops, 1.0)
        return tops.tolist(), heights.tolist()

    def ticks(self) -> list[tuple[float, str]]:
        """Return where round numbers are on the axis, and how they are written."""
        values = _round_values(self.smallest, self.largest)
        return [(self.place(value), compact(value)) for value in values]


def _round_values(smallest: float, largest: float) -> list[float]:
    """Return round numbers between two ends, in four steps or so."""
    least_step = (largest - smallest) / 4
    power = 10.0 ** np.floor(np.log10(least_step))
    candidates = [factor * power for factor in (1, 2, 2.5, 5, 10)]
    step = next(float(size) for size in candidates if size >= least_step)

    first_multiple = int(np.ceil(smallest / step))
    last_multiple = int(largest / step + 1e-9)
    return [multiple * step for multiple in range(first_multiple, last_multiple + 1)]


def tree_chart(tree: ClusterTree) -> dict[str, Any]:
    """Return the chart of clusters that merge, by what that costs, and its levels."""
    width = 720.0
    bottom = 210.0
    end = width - 140 if tree.levels else width  # beside it, levels have their names

    order, brackets = tree.drawn()
    highest_cost = brackets[-1].height
    base = 0.6 * brackets[0].height
    log_range = np.log(highest_cost / base)

    def x(place: float) -> float:
        return 12 + (place + 0.5) / len(order) * (end - 24)

    def y(height: float) -> float:
        share = np.log(highest_cost / max(height, base)) / log_range
        return float(12 + share * (bottom - 12))

    def path(bracket: Bracket) -> str:
        first_place, first_height = bracket.left
        last_place, last_height = bracket.right
        up = f"M{x(first_place):.1f} {y(first_height):.1f}V{y(bracket.height):.1f}"
        return f"{up}H{x(last_place):.1f}V{y(last_height):.1f}"

    return {
        "width": width,
        "height": 240.0,
        "bottom": bottom,
        "end": end,
        "paths": [path(bracket) for bracket in brackets],
        "leaves": [(x(i), int(leaf)) for i, leaf in enumerate(order)],
        "levels": [(y(height), k) for k, height in level_heights(tree, base)],
    }


def compact(value: float) -> str:
    """Return a number of three digits, with k, M or G for thousands and so on."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
