"""Where the lines and bars of the report's charts are; templates draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ihgmm.plotting.eigenvalues import Scree
from ihgmm.report.words import compact


class ScaleAxis:
    """The common logarithmic axis that scales of all clusters are drawn on.

    Parameters
    ----------
    scales : ndarray
        The scales of all rows. Those that are 0 have no place on the axis.
    wide, high : float
        Size of the picture of a cluster.
    """

    def __init__(
        self, scales: np.ndarray, wide: float = 260.0, high: float = 30.0
    ) -> None:
        live = scales[scales > 0]
        # A few rows may be out of all proportion; the axis is for the others.
        low, high_end = np.quantile(live, [0.0005, 0.9995]) if len(live) else (1.0, 1.0)
        self.low = np.log10(min(low, 0.8))
        self.high_end = np.log10(max(high_end, 1.25))
        self.wide, self.high = wide, high
        self.ticks = [(float(self.place(tick)), f"{tick:g}") for tick in self._round()]

    def place(self, scale: np.ndarray | float) -> np.ndarray:
        """Return where a scale is drawn, from left to right."""
        share = (np.log10(scale) - self.low) / (self.high_end - self.low)
        return np.asarray(6 + np.clip(share, 0, 1) * (self.wide - 12))

    def _round(self) -> list[float]:
        """Return round scales, at most five."""
        powers = range(int(np.floor(self.low)), int(np.ceil(self.high_end)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [s * 10.0**e for e in powers for s in steps]
            ticks = [t for t in ticks if self.low <= np.log10(t) <= self.high_end]
            if len(ticks) <= 5:
                break
        return ticks[:: -(-len(ticks) // 5)] if ticks else [1.0]

    def quartiles(self, scales: np.ndarray) -> list[float]:
        """Return where quartiles and median are; nothing of zeros."""
        live = scales[scales > 0]
        places = self.place(np.quantile(live, [0.25, 0.5, 0.75])) if len(live) else []
        return [float(place) for place in places]

    def shape(self, scales: np.ndarray) -> str:
        """Return the outline of the density of scales; none of fewer than five."""
        live = scales[scales > 0]
        if len(live) < 5:
            return ""
        edges = np.linspace(0, self.wide, 53)
        count = np.histogram(self.place(live), edges)[0].astype(float)
        kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.6) ** 2)
        smooth = np.convolve(count, kernel, mode="same")
        reach = smooth / smooth.max() * (self.high / 2 - 2)
        x = (edges[1:] + edges[:-1]) / 2
        across = [*zip(x, -reach, strict=True), *zip(x[::-1], reach[::-1], strict=True)]
        points = (f"{a:.1f},{self.high / 2 + b:.1f}" for a, b in across)
        return "M" + "L".join(points) + "Z"


@dataclass(frozen=True)
class ScreeChart:
    """Lines and bars of the eigenvalues, in the units of the picture."""

    wide: float
    high: float
    left: float
    bottom: float
    ticks: list[tuple[float, str]]
    bars: list[tuple[float, float, float, float]]
    numbers: list[tuple[float, int]]
    gap: float | None
    edge: float | None


def scree_chart(scree: Scree, n_clusters: int) -> ScreeChart | None:
    """Return the chart of the eigenvalues, the gap after those of the clusters.

    There is none where they are beyond floating-point numbers.
    """
    values = scree.values
    if not np.isfinite(values).all():
        return None
    wide, high, bottom = 720.0, 260.0, 34.0
    top = max(values.max(), scree.edge or 0, 0) or 1.0
    floor = min(values.min(), 0)
    y = _linear(floor, top, high - bottom, 12.0)
    ticks = [(y(tick), compact(tick)) for tick in _round_ticks(floor, top)]
    # On narrow screens text is large beside the chart: 13 units a character.
    left = 24.0 + 13 * max(len(text) for _, text in ticks)
    step = (wide - left - 16) / len(values)
    middles = [left + (i + 0.5) * step for i in range(len(values))]
    width = min(step * 0.72, 36)
    bars = []
    for x, value in zip(middles, values, strict=True):
        first, last = y(max(value, 0.0)), y(min(value, 0.0))
        bars.append((x - width / 2, first, width, max(last - first, 1.0)))
    numbers = [(x, i) for i, x in enumerate(middles, 1)][:: -(-len(values) // 20)]
    return ScreeChart(
        wide, high, left, high - bottom, ticks, bars, numbers,
        gap=left + n_clusters * step if n_clusters < len(values) else None,
        edge=None if scree.edge is None else y(scree.edge),
    )  # fmt: skip


def _linear(low: float, high: float, start: float, end: float) -> Callable:
    return lambda value: float(end + (high - value) / (high - low) * (start - end))


def _round_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 4
    size = 10.0 ** np.floor(np.log10(raw))
    step = float(size * next(s for s in (1, 2, 2.5, 5, 10) if s * size >= raw))
    first = int(np.ceil(low / step))
    return [i * step for i in range(first, int(high / step + 1e-9) + 1)]
