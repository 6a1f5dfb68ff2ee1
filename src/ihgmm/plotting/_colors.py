"""The colour and marker of each cluster, the same in pictures and on pages."""

from __future__ import annotations

from typing import Any

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
LIGHT, DARK = _COLORS.split()[:50], _COLORS.split()[50:]


def color(cluster: int, ax: Any) -> str:
    """Return the colour of a cluster on what is behind the axes, as in the report."""
    faces = (ax.get_facecolor(), ax.figure.get_facecolor())
    ground = next((face[:3] for face in faces if face[3] > 0), (1.0, 1.0, 1.0))
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in ground
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # At this luminance black and white stand out from the ground equally well.
    colors = DARK if luminance < 0.18 else LIGHT
    return colors[cluster % len(colors)]


# Of outliers, which are in no cluster: grey on light and on dark ground.
NEUTRAL = "#8c8c8c"


def marker(cluster: int) -> str:
    """Return the marker of a cluster, of seven; in grey print it is left."""
    # With fifty colours, the pair is a cluster's own up to 350 clusters.
    return "os^Dv<>"[cluster % 7]
