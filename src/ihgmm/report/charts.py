"""Charts and figures of the report: where lines and bars are; templates draw them."""

from typing import Any

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
        positive = scales[scales > 0]
        # A few rows may be out of all proportion; the axis is for the others.
        smallest = np.quantile(positive, 0.0005) if len(positive) else 1.0
        largest = np.quantile(positive, 0.9995) if len(positive) else 1.0
        self.first = np.log10(min(smallest, 0.8))
        self.last = np.log10(max(largest, 1.25))
        self.ticks = [
            (float(self.place(tick)), f"{tick:g}") for tick in self._round_scales()
        ]

    def _round_scales(self, most: int = 5) -> list[float]:
        """Return round scales that are on the axis, not too many of them."""
        powers = range(int(np.floor(self.first)), int(np.ceil(self.last)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            scales = [step * 10.0**power for power in powers for step in steps]
            on_axis = [s for s in scales if self.first <= np.log10(s) <= self.last]
            if len(on_axis) <= most:
                return on_axis

        every = -(-len(on_axis) // most)
        return on_axis[::every]

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
        counts = np.histogram(self.place(scales), edges)[0]
        kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.6) ** 2)
        density = np.convolve(counts, kernel, mode="same")
        reach = density / density.max() * (self.height / 2 - 2)

        middles = (edges[1:] + edges[:-1]) / 2
        x = np.concatenate([middles, middles[::-1]])
        y = np.concatenate([-reach, reach[::-1]]) + self.height / 2
        points = [f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)]
        return f"M{'L'.join(points)}Z"


def scree_chart(count: ClusterCount, n_clusters: int) -> dict[str, Any] | None:
    """Return the chart of the eigenvalues, the gap after those of the clusters."""
    values = count.eigenvalues
    if not np.isfinite(values).all():  # of data whose squares no float can hold
        return None

    width = 720.0
    bottom = 226.0
    largest = max(values.max(), count.edge, 0) or 1.0
    smallest = min(values.min(), 0)

    def y(value: Any) -> Any:
        return 12 + (largest - value) / (largest - smallest) * (bottom - 12)

    ticks = [(y(tick), compact(tick)) for tick in _round_values(smallest, largest)]
    # On narrow screens text is large beside the chart: 13 units a character.
    margin = 24.0 + 13 * max(len(text) for _, text in ticks)
    step = (width - margin - 16) / len(values)
    middles = (margin + (np.arange(len(values)) + 0.5) * step).tolist()

    tops = y(np.maximum(values, 0))
    heights = np.maximum(y(np.minimum(values, 0)) - tops, 1.0)
    numbers = list(enumerate(middles, 1))
    every = -(-len(values) // 20)

    return {
        "width": width,
        "height": 260.0,
        "left": margin,
        "bottom": bottom,
        "ticks": ticks,
        "bar": min(step * 0.72, 36.0),
        "bars": list(zip(middles, tops.tolist(), heights.tolist(), strict=True)),
        "numbers": numbers[::every],
        "gap": margin + n_clusters * step if n_clusters < len(values) else None,
        "edge": y(count.edge),
        "said": ", ".join(f"{value:.3g}" for value in values[:60]),
    }


def _round_values(smallest: float, largest: float) -> list[float]:
    """Return round numbers between two ends, in four steps or so."""
    wanted = (largest - smallest) / 4
    power = 10.0 ** np.floor(np.log10(wanted))
    factor = next(f for f in (1, 2, 2.5, 5, 10) if f * power >= wanted)
    step = float(power * factor)
    multiples = range(
        int(np.ceil(smallest / step)),
        int(largest / step + 1e-9) + 1,
    )
    return [multiple * step for multiple in multiples]


def tree_chart(tree: ClusterTree) -> dict[str, Any]:
    """Return the chart of clusters that merge, by what that costs, and its levels."""
    width = 720.0
    bottom = 210.0
    end = width - 140 if tree.levels else width  # beside it, levels have their names
    order, brackets = tree.drawn()
    highest = brackets[-1].height
    base = 0.6 * brackets[0].height

    def x(place: float) -> float:
        return 12 + (place + 0.5) / len(order) * (end - 24)

    def y(height: float) -> float:
        share = np.log(highest / max(height, base)) / np.log(highest / base)
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
