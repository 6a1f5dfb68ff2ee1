"""A colour for each cluster, on light and on dark ground, as style rules."""

from __future__ import annotations

from colorsys import hls_to_rgb

__all__ = ["GROUND", "cluster_style", "contrast"]

GROUND = {"light": "#ffffff", "dark": "#16191f"}
"""The ground that charts are drawn on."""

LIGHT = ("0072b2", "d55e00", "0d4d48", "be71a0", "988152", "47258e", "741c1a",
         "2ea225", "e831d3", "1f1bdb")  # fmt: skip
DARK = ("56b0f0", "ff9057", "5fe786", "e599b9", "dbcf1f", "4a5de8", "0e7a6e",
        "d6e7c8", "cb1ead", "716c19")  # fmt: skip
"""Ten colours that stay apart also without red, green or blue cones: any two are 15
units of CIELAB apart or more."""


def cluster_style(n_clusters: int) -> str:
    """Return rules that define ``--c0``, ``--c1`` ... in both themes.

    More clusters than ten get hues around the circle in turns of the golden angle;
    such colours are not all told apart, and clusters carry their number everywhere.
    """
    few = n_clusters <= len(LIGHT)
    rules = {
        theme: "".join(
            f"--c{i}:{'#' + named[i] if few else _spread(i, GROUND[theme])};"
            for i in range(n_clusters)
        )
        for theme, named in (("light", LIGHT), ("dark", DARK))
    }
    marks = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(n_clusters))
    return (
        f":root{{{rules['light']}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{rules['dark']}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{rules['dark']}}}}}\n{marks}\n"
    )


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours as the accessibility guidelines define it."""
    a, b = _luminance(first), _luminance(second)
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _spread(i: int, ground: str) -> str:
    """Return the i-th of many hues, as far from the ground as charts need to be."""
    dark = _luminance(ground) < 0.5
    lightness = (0.78, 0.62, 0.7)[i % 3] if dark else (0.3, 0.46, 0.38)[i % 3]
    while True:
        rgb = hls_to_rgb(i * 0.381966 % 1, lightness, 0.62)
        color = "#" + "".join(f"{round(255 * c):02x}" for c in rgb)
        if contrast(color, ground) >= 3.2:
            return color
        lightness += 0.02 if dark else -0.02
