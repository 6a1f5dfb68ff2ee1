"""What results show in a notebook: their figures in tables, their words below.

Functions here take a result and return HTML. All text in it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ihgmm._text import count_headline, counted, figure_table, scale_rows
from ihgmm.matrix import to_host

if TYPE_CHECKING:
    from ihgmm.statistics.contrasts import TellingFeatures
    from ihgmm.statistics.diagnosis import Diagnosis
    from ihgmm.statistics.estimation import Estimates
    from ihgmm.statistics.scale_heterogeneity import ScaleTest
    from ihgmm.statistics.selection import ClusterCount


def _page(heading: str, *parts: str) -> str:
    return f"<div><p><strong>{escape(heading)}</strong></p>{''.join(parts)}</div>"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, words: Iterable[int] = ()
) -> str:
    """Return a table whose first column, and those of words, are aligned left."""
    left = {0, *words}

    def line(tag: str, cells: Sequence[object]) -> str:
        sides = ("left" if j in left else "right" for j in range(len(cells)))
        made = (
            f'<{tag} style="text-align:{side}">{escape(str(cell))}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    top = f"<thead>{line('th', head)}</thead>" if any(head) else ""
    body = "".join(line("td", row) for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """Return the verdict, each figure with its meaning, and the warnings."""
    verdict = f"{diagnosis.verdict[0].upper()}{diagnosis.verdict[1:]}."
    figures = _table(("", "", ""), figure_table(diagnosis), words=(2,))
    return _page(verdict, figures, _list(diagnosis.warnings))


def count_html(count: ClusterCount) -> str:
    """Return the finding, and what speaks for each plausible number."""
    heading = count_headline(count)
    parts = [_paragraph(count.summary)]
    if count.plausible:
        head = ("clusters", "support", "best by", "gap to noise", "halves")
        rows = [
            (
                number.n_clusters,
                _figure(number.support),
                ", ".join(side.value for side in number.sides) or "-",
                _figure(max(number.gaps)),
                _figure(number.strength),
            )
            for number in count.plausible
        ]
        parts.append(_table(head, rows, words=(2,)))
    return _page(f"{heading[0].upper()}{heading[1:]}", *parts)


def scale_test_html(test: ScaleTest) -> str:
    """Return the recommendation, and the figures of each cluster."""
    table = _table(("cluster", "rows", "spread", "p-value"), scale_rows(test))
    assumed = _paragraph(test.assumption.sentence) if test.n_tested else ""
    return _page(test.recommendation, table, assumed)


def estimates_html(estimates: Estimates) -> str:
    """Return what is known about each centre, and the middle of what rows have."""
    (k, p), n = estimates.centers.shape, estimates.scales.shape[0]
    centers, errors = to_host(estimates.centers), to_host(estimates.center_errors)
    lengths = np.linalg.norm(centers.astype(np.float64), axis=1)
    rows = [
        (name, _figure(length), _figure(float(np.sqrt(np.mean(error**2)))))
        for name, length, error in zip(estimates.classes, lengths, errors, strict=True)
    ]
    table = _table(("cluster", "length of centre", "error of an entry"), rows)
    scales = to_host(estimates.scales).astype(np.float64)
    low, high = np.nanquantile(scales, [0.05, 0.95])
    error, noise = (
        float(np.nanmedian(to_host(values)))
        for values in (estimates.scale_errors, estimates.noise_levels)
    )
    words = (
        f"Scales go from {_figure(low)} (5%) to {_figure(high)} (95%), their mean in "
        f"a cluster being 1. In the median row, the standard error of the scale is "
        f"{_figure(error)} and the noise level {_figure(noise)}."
    )
    size = f"{counted(n, 'row')}, {counted(p, 'feature')}, {counted(k, 'cluster')}"
    return _page(f"Estimates from {size}", table, _paragraph(words))


def features_html(ranked: TellingFeatures) -> str:
    """Return the columns that set each cluster apart, with their contrasts."""
    shown = min(ranked.features.shape[1], 8)
    rows = [
        (k, *(f"{j} ({score:+.2g})" for j, score in zip(which, scores, strict=True)))
        for k, (which, scores) in enumerate(
            zip(ranked.features[:, :shown], ranked.scores[:, :shown], strict=True)
        )
    ]
    head = ("cluster", *(f"feature {i}" for i in range(1, shown + 1)))
    return _page("Features that set clusters apart (contrast)", _table(head, rows))


def _figure(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"
