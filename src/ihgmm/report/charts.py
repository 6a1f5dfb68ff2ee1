"""Charts and figures of the report: where lines and bars are; templates draw them."""

from typing import Any

import numpy as np

from ihgmm.plotting.tree import level_heights
from ihgmm.statistics.selection import ClusterCount
from ihgmm.statistics.tree import ClusterTree


class ScaleAxis:
    """The logarithmic axis of the scales of all clusters; 0 has no place on it."""

    wide, high = 260.0, 30.0  # the size of a cluster's picture

    def __init__(self, scales: np.ndarray) -> None:
        live = scales[scales > 0]
        # A few rows may be out of all proportion; the axis is for the others.
        ends = np.quantile(live, [0.0005, 0.9995]) if len(live) else (1.0, 1.0)
        self.first = np.log10(min(ends[0], 0.8))
        self.last = np.log10(max(ends[1], 1.25))
        powers = range(int(np.floor(self.first)), int(np.ceil(self.last)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):  # round scales, at most five
            ticks = [s * 10.0**e for e in powers for s in steps]
            ticks = [t for t in ticks if self.first <= np.log10(t) <= self.last]
            if len(ticks) <= 5:
                break
        ticks = ticks[:: -(-len(ticks) // 5)]
        self.ticks = [(float(self.place(tick)), f"{tick:g}") for tick in ticks]

    def place(self, scale: np.ndarray | float) -> np.ndarray:
        """Return where a scale is drawn, from left to right."""
        share = (np.log10(scale) - self.first) / (self.last - self.first)
        return np.asarray(6 + np.clip(share, 0, 1) * (self.wide - 12))

    def density(self, scales: np.ndarray) -> dict[str, Any]:
        """Return where quartiles are, and the outline of a density of five or more."""
        live = scales[scales > 0]
        quartiles = np.quantile(live, [0.25, 0.5, 0.75]) if len(live) else live
        drawn = {"quartiles": self.place(quartiles).tolist(), "shape": ""}
        if len(live) < 5:
            return drawn
        edges = np.linspace(0, self.wide, 53)
        counts = np.histogram(self.place(live), edges)[0]
        kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.6) ** 2)
        smooth = np.convolve(counts, kernel, mode="same")
        reach = smooth / smooth.max() * (self.high / 2 - 2)
        middles = (edges[1:] + edges[:-1]) / 2
        x, y = np.r_[middles, middles[::-1]], np.r_[-reach, reach[::-1]] + self.high / 2
        points = "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return drawn | {"shape": f"M{points}Z"}


def scree_chart(count: ClusterCount, n_clusters: int) -> dict[str, Any] | None:
    """Return the chart of the eigenvalues, the gap after those of the clusters."""
    values, edge = count.eigenvalues, count.edge
    if not np.isfinite(values).all():  # of data whose squares no float can hold
        return None
    wide, bottom = 720.0, 226.0
    top = max(values.max(), edge, 0) or 1.0
    floor = min(values.min(), 0)

    def y(value: Any) -> Any:
        return 12 + (top - value) / (top - floor) * (bottom - 12)

    # At round numbers, in four steps or so.
    raw = (top - floor) / 4
    size = 10.0 ** np.floor(np.log10(raw))
    unit = float(size * next(s for s in (1, 2, 2.5, 5, 10) if s * size >= raw))
    places = range(int(np.ceil(floor / unit)), int(top / unit + 1e-9) + 1)
    ticks = [(y(i * unit), compact(i * unit)) for i in places]
    # On narrow screens text is large beside the chart: 13 units a character.
    left = 24.0 + 13 * max(len(text) for _, text in ticks)
    step = (wide - left - 16) / len(values)
    middles = (left + (np.arange(len(values)) + 0.5) * step).tolist()
    upper, lower = y(np.maximum(values, 0)), y(np.minimum(values, 0))
    heights = np.maximum(lower - upper, 1.0)
    return {"wide": wide, "high": 260.0, "left": left, "bottom": bottom} | {
        "ticks": ticks,
        "bar": min(step * 0.72, 36.0),
        "bars": list(zip(middles, upper.tolist(), heights.tolist(), strict=True)),
        "numbers": [*enumerate(middles, 1)][:: -(-len(values) // 20)],
        "gap": left + n_clusters * step if n_clusters < len(values) else None,
        "edge": y(edge),
        "said": ", ".join(f"{value:.3g}" for value in values[:60]),
    }


def tree_chart(tree: ClusterTree) -> dict[str, Any]:
    """Return the chart of clusters that merge, by what that costs, and its levels."""
    wide, bottom = 720.0, 210.0
    end = wide - 140 if tree.levels else wide  # beside it, levels have their names
    order, brackets = tree.drawn()
    top, base = brackets[-1].height, 0.6 * brackets[0].height

    def x(place: float) -> float:
        return 12 + (place + 0.5) / len(order) * (end - 24)

    def y(height: float) -> float:
        share = np.log(top / max(height, base)) / np.log(top / base)
        return float(12 + share * (bottom - 12))

    paths = []
    for bracket in brackets:
        (left, low), (right, other_low) = bracket.left, bracket.right
        path = f"M{x(left):.1f} {y(low):.1f}V{y(bracket.height):.1f}"
        paths.append(f"{path}H{x(right):.1f}V{y(other_low):.1f}")
    return {"wide": wide, "high": 240.0, "bottom": bottom, "end": end} | {
        "paths": paths,
        "leaves": [(x(i), int(leaf)) for i, leaf in enumerate(order)],
        "levels": [(y(height), k) for k, height in level_heights(tree, base)],
    }


def compact(value: float) -> str:
    """Return a number of three digits, with k, M or G for thousands and so on."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
