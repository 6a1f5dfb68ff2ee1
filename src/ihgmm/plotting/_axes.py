"""What pictures share: axes, colours, and text that keeps its place."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:  # matplotlib is loaded when something is drawn
    Axes = Any

# Fifty colours for light ground, and the same hues for dark ground, one for one. Any
# two of the first ten are 15 units of CIELAB apart or more, also without red, green or
# blue cones. Of the others, each is as far from those before it as could be found; they
# are not all told apart, so that clusters carry their number everywhere.
_COLORS = """
#0072b2 #d55e00 #009e73 #541081 #cc79a7 #91904d #800902 #f307d3 #4633e5 #ad1a6b
#305f31 #8f2e8a #b61537 #9e57f9 #5492ec #6f3040 #905211 #806289 #986754 #4a5364
#63982a #c629ac #8100b1 #a862cf #a582ba #997482 #2154d8 #4f4916 #cd7671 #7d5858
#f84e3a #6c2768 #3f4f84 #613897 #7f2652 #728431 #5c03ba #237b4d #4f929d #9b0e1e
#82509e #8d804f #749c8c #3f6c70 #956ef2 #c50a00 #9033bd #ad8c62 #671d9c #ce6877

#62b5fb #f2a15a #49fa9f #a936fb #fba8d2 #e5f25d #eb412f #d63cbb #8885fb #d63f6f
#96c39e #99578a #ed7470 #7b52d3 #457cb8 #b28a95 #d48101 #e2bdf9 #9f503b #dce7fb
#bbfe81 #f47ecc #c170da #894f9a #9788a8 #fcd1dc #2e69fe #716e0a #855f5c #c8aeb1
#fe5053 #ef87f9 #9cacdb #996bdd #a06f88 #a9c52d #8a3ee0 #a8fdc8 #8fd3df #e00141
#976fa3 #dcd179 #29836d #7aa8ad #866ef1 #c83500 #a239be #daad74 #c18de1 #da8184
"""
LIGHT = _COLORS.split()[:50]
DARK = _COLORS.split()[50:]
NEUTRAL = "#8c8c8c"  # of outliers: grey on light and on dark ground
# Of a new figure, in inches: a page of a journal.
WIDEST = 7.08
HIGHEST = 9.5


def color(cluster: int, ax: Axes) -> str:
    """Return the colour of a cluster on what is behind the axes, as in the report."""
    from matplotlib.colors import to_rgba

    # What lies behind the axes is their own face, or if that is clear the figure's.
    ground = (1.0, 1.0, 1.0)
    for part in (ax.figure, ax):
        red, green, blue, opacity = to_rgba(part.get_facecolor())
        if opacity > 0:
            ground = (red, green, blue)

    luminance = np.dot([0.2126, 0.7152, 0.0722], np.square(ground))
    # At this luminance black and white stand out from the ground equally well.
    colors = DARK if luminance < 0.21 else LIGHT
    return colors[cluster % len(colors)]


def ink(ax: Axes) -> str:
    """Return the colour of text, which is light in a dark style."""
    return str(ax.xaxis.label.get_color())


def given_or_new(ax: Axes | None, size: tuple[float, float], *place: int) -> Axes:
    """Return the axes given, or new ones in a figure of a size in inches at most."""
    if ax is not None:
        return ax

    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install matplotlib") from error

    width, height = size
    within_page = (min(width, WIDEST), min(height, HIGHEST))
    figure = plt.figure(figsize=within_page, layout="constrained")
    return figure.add_subplot(*place)


def column_axes(ax: Axes | None, names: Sequence[str]) -> Axes:
    """Return axes with a column for each name; new ones are wide enough for all."""
    width = max(1.5 + 0.22 * len(names), 6.0)
    ax = given_or_new(ax, (width, 4.0))
    ax.set_xlim(-0.6, len(names) - 0.4)
    name_ticks(ax, names)
    return ax


def heatmap(
    ax: Axes | None,
    cells: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    size: tuple[float, float],
    largest: float | None = None,
) -> tuple[Axes, Any]:
    """Draw shares, or numbers up to the largest; return axes and the colour bar."""
    # Names at the left take 0.075 inches a character.
    width, height = size
    longest_name = max(len(shortened(name)) for name in rows)
    ax = given_or_new(ax, (width + 0.075 * longest_name, height))

    # Of shares dark is low and bright is high, in colour and in grey print. Numbers
    # with a sign are red above and blue below, and pale near 0.
    mesh = ax.imshow(
        cells,
        aspect="auto",
        rasterized=True,
        cmap="cividis" if largest is None else "RdBu_r",
        vmin=0.0 if largest is None else -largest,
        vmax=1.0 if largest is None else largest,
    )
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.06, pad=0.03)

    name_ticks(ax, columns)
    name_ticks(ax, rows, "y")
    ax.set_xlabel("cluster")
    return ax, bar


def wrap_title(ax: Axes, title: str) -> None:
    """Write a title in lines that are no wider than the axes."""
    # Characters are half as wide as they are high, on average.
    letter_height = to_pixels(float(ax.title.get_fontsize()), ax)
    box = ax.get_window_extent()
    n_letters = int(box.width / (0.5 * letter_height))
    ax.set_title(fill(title, max(n_letters, 20)))


def plain_log_axis(ax: Axes) -> None:
    """Make y a log axis with figures as people write them, and enough of them."""
    ax.set_yscale("log")
    bottom, top = ax.get_ylim()
    if top < 300 * bottom:  # so few powers of ten are too few figures
        is_short = top < 4 * bottom
        subs = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 7, 8, 9) if is_short else (1, 2, 5)
        ax.locator_params("y", subs=subs)
        ax.yaxis.set_minor_formatter("")
    ax.yaxis.set_major_formatter("{x:g}")


def quiet(ax: Axes) -> Axes:
    """Take away the frame's sides that carry no figures; return the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def font_size(ax: Axes) -> float:
    """Return the height of text along the axes in pixels."""
    return to_pixels(float(ax.xaxis.label.get_fontsize()), ax)


def to_pixels(points: float, ax: Axes) -> float:
    """Return a length in points, of which an inch has 72, in pixels."""
    return float(points * ax.figure.dpi / 72)


def to_points(pixels: float, ax: Axes) -> float:
    """Return a length in pixels in points."""
    return float(pixels * 72 / ax.figure.dpi)


def shortened(name: str, longest: int = 24) -> str:
    """Return a name on one line, with an ellipsis in its middle if it is too long."""
    name = " ".join(name.split())
    if len(name) > longest:
        # Names that start alike often differ at their end, so both are kept.
        n_last = 2 * longest // 5
        n_first = longest - 1 - n_last
        name = f"{name[:n_first]}…{name[-n_last:]}"

    # A dollar sign would start a formula.
    return name.replace("$", r"\$")


def name_ticks(ax: Axes, names: Sequence[str], axis: str = "x") -> None:
    """Write names along an axis, at 0, 1, ..., as many as fit; upright if long."""
    texts = [shortened(name) for name in names]
    n_names = len(texts)
    letter = font_size(ax)
    box = ax.get_window_extent()
    line_height = 1.25 * letter

    is_upright = False
    if axis == "y":
        most_names = box.height / line_height
    else:
        # Characters are 0.6 times as wide as they are high, on average.
        longest = max(len(text) for text in texts)
        widest = longest * 0.6 * letter
        column_width = widest + 0.4 * letter
        do_not_fit = n_names * column_width > box.width
        is_upright = do_not_fit and widest > 2 * letter
        most_names = box.width / (line_height if is_upright else column_width)

    step = _round_step(n_names, most_names)
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(
        range(0, n_names, step),
        labels=texts[::step],
        rotation=90 if is_upright else 0,
    )


def _round_step(count: int, most: float) -> int:
    """Return a step that people count in, by which at most so many of all are left."""
    for step in (1, 2, 5, 10, 20, 50, 100, 200, 500):
        if count / step <= most:
            return step
    return 1000
