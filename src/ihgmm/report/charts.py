"""Charts of the report: bars, spreads of scales, eigenvalues."""

from __future__ import annotations

import numpy as np

from ihgmm.report.facts import Facts
from ihgmm.report.markup import Element, child, node

__all__ = ["ScaleAxis", "bar", "compact", "scree"]

WIDE, HIGH = 260.0, 30.0
"""Size of the picture of the scales of a cluster."""


class ScaleAxis:
    """The common logarithmic axis that scales of all clusters are drawn on.

    Parameters
    ----------
    scales : ndarray
        The scales of all rows. Those that are 0 have no place on the axis.
    """

    def __init__(self, scales: np.ndarray) -> None:
        live = scales[scales > 0]
        # A few rows may be out of all proportion; the axis is for the others.
        low, high = np.quantile(live, [0.0005, 0.9995]) if len(live) else (1.0, 1.0)
        self.low = np.log10(min(low, 0.8))
        self.high = np.log10(max(high, 1.25))

    def place(self, scale: np.ndarray | float) -> np.ndarray:
        """Return where a scale is drawn, from left to right."""
        share = (np.log10(scale) - self.low) / (self.high - self.low)
        return np.asarray(6 + np.clip(share, 0, 1) * (WIDE - 12))

    def ticks(self) -> list[float]:
        """Return round scales, at most five."""
        powers = range(int(np.floor(self.low)), int(np.ceil(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [s * 10.0**e for e in powers for s in steps]
            found = [t for t in found if self.low <= np.log10(t) <= self.high]
            if len(found) <= 5:
                break
        return found[:: -(-len(found) // 5)] if found else [1.0]

    def header(self) -> Element:
        """Return the ticks as a row of numbers."""
        svg = node("svg", class_="axis", viewBox=f"0 0 {WIDE:g} 16", aria_hidden="true")
        for tick in self.ticks():
            x = float(self.place(tick))
            end = "start" if x < 16 else "end" if x > WIDE - 16 else "middle"
            child(svg, "text", f"{tick:g}", x=x, y=12, text_anchor=end)
        return svg

    def spread(self, scales: np.ndarray, cluster: int) -> Element:
        """Return the shape of a cluster's scales with median and quartiles."""
        svg = node(
            "svg",
            class_=f"spread c{cluster}",
            viewBox=f"0 0 {WIDE:g} {HIGH:g}",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        for tick in self.ticks():
            x = float(self.place(tick))
            child(svg, "line", class_="grid", x1=x, x2=x, y1=0, y2=HIGH)
        live = scales[scales > 0]
        if len(live) >= 5:
            child(svg, "path", class_="shape", d=self._shape(live))
        if len(live):
            low, middle, high = self.place(np.quantile(live, [0.25, 0.5, 0.75]))
            y = HIGH / 2
            child(svg, "line", class_="quartiles", x1=low, x2=high, y1=y, y2=y)
            child(
                svg, "line", class_="median", x1=middle, x2=middle, y1=y - 8, y2=y + 8
            )
        return svg

    def _shape(self, live: np.ndarray) -> str:
        edges = np.linspace(0, WIDE, 53)
        count = np.histogram(self.place(live), edges)[0].astype(float)
        kernel = np.exp(-0.5 * (np.arange(-4, 5) / 1.6) ** 2)
        smooth = np.convolve(count, kernel, mode="same")
        reach = smooth / smooth.max() * (HIGH / 2 - 2)
        x = (edges[1:] + edges[:-1]) / 2
        there = [f"{a:.1f},{HIGH / 2 - b:.1f}" for a, b in zip(x, reach, strict=True)]
        back = [f"{a:.1f},{HIGH / 2 + b:.1f}" for a, b in zip(x, reach, strict=True)]
        return "M" + "L".join(there + back[::-1]) + "Z"


def bar(share: float, cluster: int) -> Element:
    """Return a bar of the given share of its full length."""
    svg = node(
        "svg",
        class_=f"bar c{cluster}",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    child(svg, "rect", class_="fill", width=max(100 * share, 0.6), height=10)
    return svg


def scree(facts: Facts) -> Element:
    """Return the chart of the eigenvalues, the gap marked."""
    values, k = facts.eigenvalues, facts.n_clusters
    wide, high, bottom = 720.0, 260.0, 34.0
    top = max(values.max(), facts.edge or 0, 0) or 1.0
    floor = min(values.min(), 0)
    ticks = {tick: compact(tick) for tick in _round_ticks(floor, top)}
    # On narrow screens text is large beside the chart: 13 units a character.
    left = 24.0 + 13 * max(map(len, ticks.values()))
    step = (wide - left - 16) / len(values)

    def x(i: float) -> float:
        return left + (i + 0.5) * step

    def y(value: float) -> float:
        return 12 + (top - value) / (top - floor) * (high - bottom - 12)

    svg = node(
        "svg",
        class_="scree",
        viewBox=f"0 0 {wide:g} {high:g}",
        role="img",
        aria_label=_scree_words(facts),
    )
    for tick, text in ticks.items():
        child(svg, "line", class_="grid", x1=left, x2=wide, y1=y(tick), y2=y(tick))
        child(svg, "text", text, x=left - 10, y=y(tick) + 4, text_anchor="end")
    if k < len(values):
        gap = left + k * step
        child(svg, "line", class_="gap", x1=gap, x2=gap, y1=8, y2=high - bottom)
    if facts.edge is not None:
        edge = y(facts.edge)
        child(svg, "line", class_="edge", x1=left, x2=wide, y1=edge, y2=edge)
        child(svg, "text", "edge of noise", x=wide - 4, y=edge - 6, text_anchor="end")
    for i, value in enumerate(values):
        first = y(max(value, 0.0))
        child(
            svg,
            "rect",
            class_="lead" if i < k else "rest",
            x=x(i) - min(step * 0.36, 18),
            width=min(step * 0.72, 36),
            y=first,
            height=max(y(min(value, 0.0)) - first, 1),
        )
    every = -(-len(values) // 20)
    for i in range(0, len(values), every):
        child(svg, "text", str(i + 1), x=x(i), y=high - 12, text_anchor="middle")
    return svg


def compact(value: float) -> str:
    """Return a number of three digits, with k, M or G for thousands and so on."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if unit <= abs(value) < 1e3 * unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def _scree_words(facts: Facts) -> str:
    values = ", ".join(f"{value:.3g}" for value in facts.eigenvalues[:60])
    return f"Leading eigenvalues, largest first: {values}."


def _round_ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 4
    size = 10.0 ** np.floor(np.log10(raw))
    step = float(size * next(s for s in (1, 2, 2.5, 5, 10) if s * size >= raw))
    first = int(np.ceil(low / step))
    return [i * step for i in range(first, int(high / step + 1e-9) + 1)]
