"""The page as a whole, and its way to disk."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import atomic_write
from ihgmm._text import counted, figure_table, percent
from ihgmm.plotting._clusters import Clusters
from ihgmm.plotting._colors import DARK, LIGHT
from ihgmm.report.charts import ScaleAxis, scree_chart, signed
from ihgmm.report.facts import Facts, agreement, classes_of, gather
from ihgmm.statistics.diagnosis import Verdict

TONES = {
    Verdict.ONE_CLUSTER: "plain",
    Verdict.WELL_SEPARATED: "good",
    Verdict.SEPARATED: "good",
    Verdict.THRESHOLD: "fair",
    Verdict.NO_SEPARATION: "bad",
}
"""What a verdict looks like."""


def write_report(
    model: Any,
    X: Any,
    path: Any,
    *,
    ids: Any = None,
    id_name: str | None = None,
    feature_names: Any = None,
    title: str | None = None,
    labels_true: Any = None,
    notes: Iterable[str] = (),
) -> Path:
    """Write a fitted clustering as one page of HTML.

    The page holds what was done and what to think of it in words, a map of the rows
    to move about in, sizes and scales of the clusters, the features that tell them
    apart, the eigenvalues, and a table of the rows to search and sort. It needs a
    browser and no network.

    Parameters
    ----------
    model : estimator
        A fitted clusterer of this package, such as :class:`ihgmm.IhSC`.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data of the fit, wherever they are.
    path : str or path
        The file to write, ending in .html or .htm. It is written whole or not at all.
    ids : sequence of length n_samples, optional
        Names of rows. By default the index of a pandas frame, unless that only counts
        the rows; then, and of other data, their numbers from 1.
    id_name : str, optional
        What the names are called in the file that the page lets you save. By default
        the name of the index, or "id"; of numbers, "row".
    feature_names : sequence of length n_features, optional
        Names of features; by default those of the fit or of the columns of X.
    title : str, optional
        Heading of the page.
    labels_true : sequence of length n_samples, optional
        Known labels to compare with. They are shown for each row.
    notes : iterable of str, optional
        What was done to the data before: rows and columns left out, columns scaled.
        The page says so.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    Beyond 100,000 rows, or 4.5 MB of names, the map and the table of rows hold a random
    part of them and say so; all other figures are of all rows.

    The page lets you save the labels as CSV (RFC 4180, in UTF-8 with a byte order mark,
    by which spreadsheets know it): those of all its rows, or of the rows that a search
    or a single cluster leaves, sorted as the table is. A
    spreadsheet would run a name that begins with ``=``, ``+``, ``-`` or ``@``, a tab or
    a line break as a formula unless it is a number; so such a name gets an apostrophe
    in front, and so that this can be undone, one that has an apostrophe there already
    gets another. The page tells if there are such names, and has a box to tick for
    names as they are.

    Clusters have the colours that :mod:`ihgmm.plotting` draws them in.

    Names are data: nothing in them is run by the browser, and the page's security
    policy lets it run its own script only and load nothing.

    Examples
    --------
    >>> import tempfile
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.report import write_report
    >>> X, _ = make_ihgmm(200, 50, 3, random_state=0)
    >>> model = IhSC(3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_report(model, X, f"{folder}/report.html", title="A sample")
    ...     "Well separated." in written.read_text(encoding="utf-8")
    True
    """
    target = _check_path(path)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title={title!r} is a {type(title).__name__}; give a text.")
    if id_name is not None and not isinstance(id_name, str):
        raise TypeError(f"id_name={id_name!r} is no text; give what ids are called.")
    template = _template()  # before any work is done
    facts = gather(
        model, X, ids=ids, id_name=id_name, feature_names=feature_names,
        labels_true=labels_true, notes=notes,
    )  # fmt: skip
    heading = title or f"Clusters found by {facts.method}"
    with atomic_write(target, "w") as file:
        file.write(template.render(_context(facts), title=heading))
    return target


def _check_path(path: Any) -> Path:
    """Refuse a file that could not be written, before any work is done."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"path={str(path)!r}: give a name that ends in .html.")
    if target.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder; give a file name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r}: there is no folder {target.parent}."
        )
    return target


def _template() -> Any:
    """Return the page with its slots; every text that fills one is escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("Reports need Jinja2: pip install 'ihgmm[plot]'.") from error
    # No page may hold these: control characters, and halves of a character.
    unfit = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

    def written(value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.2f}".rstrip("0").rstrip(".")
        if isinstance(value, str) and not isinstance(value, Markup):
            return unfit.sub("\ufffd", value)
        return value

    pages = Environment(
        loader=PackageLoader("ihgmm.report"), autoescape=True, finalize=written,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return pages.get_template("page.html")


def _context(facts: Facts) -> dict[str, Any]:
    """Return what fills the slots of the page."""
    kept = kept_rows(facts.clusters, facts.ids)
    style = _asset("report.css") + cluster_style(facts.n_clusters)
    scripts = map(_asset, ("rows.js", "map.js", "table.js", "start.js"))
    script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
    axis = ScaleAxis(facts.scales)
    folded = ("eigenvalue gap", "separation", "over theory")  # for statisticians
    return {
        "policy": (
            "default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"script-src {_hash(script)}; style-src {_hash(style)}"
        ),
        "style": style,
        "script": script,
        "data": inline_json(_payload(facts, kept)),
        "facts": facts,
        "n_kept": len(kept),
        "n_used": np.count_nonzero(facts.clusters.sizes),
        "tone": TONES[facts.diagnosis.verdict],
        "figures": [
            (name in folded, name, figure.replace("inf", "∞"), meaning)
            for name, figure, meaning in figure_table(facts.diagnosis)
        ],
        "axis": axis,
        "clusters": [_cluster(facts, axis, k) for k in range(facts.n_clusters)],
        "cards": [_card(facts, int(k)) for k in np.flatnonzero(facts.clusters.sizes)],
        "chart": scree_chart(facts.scree, facts.n_clusters),
        "eigenvalues": ", ".join(f"{value:.3g}" for value in facts.scree.values[:60]),
        "known": agreement(facts),
        "call": _call(facts.method, facts.parameters),
        "version": version("ihgmm"),
        "around_names": _around_names,
        "counted": counted,
        "percent": percent,
        "shown": _shown,
    }


def _cluster(facts: Facts, axis: ScaleAxis, k: int) -> dict[str, Any]:
    """Return the line of a cluster in the table of clusters."""
    mine = facts.clusters.codes == k
    scales, sizes = facts.scales[mine], facts.clusters.sizes
    line = {
        "n": sizes[k],
        "share": percent(sizes[k] / len(mine)),
        "bar": max(100 * float(sizes[k] / sizes.max()), 0.6),
    }
    if sizes[k] == 0:
        return line
    low, middle, high = np.quantile(scales, [0.05, 0.5, 0.95])
    return line | {
        "sure": percent(
            float((facts.certainty[mine] >= facts.diagnosis.certain_from).mean())
        ),
        "median": f"{middle:.2f}",
        "range": f"{low:.2f} to {high:.2f}",
        "shape": axis.shape(scales),
        "quartiles": axis.quartiles(scales),
    }


def _card(facts: Facts, k: int) -> tuple[int, list[tuple[str, float, str]]]:
    """Return the features that set a cluster apart: name, length of bar, figure."""
    scores = facts.contrasts.scores
    longest = np.abs(scores[np.isfinite(scores)]).max(initial=0.0) or 1.0
    pairs = zip(facts.contrasts.features[k], scores[k], strict=True)
    lines = [
        (_shown(facts.features[j]), float(np.clip(s / longest, -1, 1)), signed(s))
        for j, s in pairs
    ]
    # Of many clusters fewer features are shown, so that their cards fit a page.
    return k, lines if facts.n_clusters <= 12 else lines[:4]


def _shown(name: str, longest: int = 120) -> str:
    """Return a name, shortened if it is very long."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _around_names(text: str) -> list[str]:
    """Return a sentence in pieces, every second one a name as Python quotes it.

    A name that is read from right to left would turn the words around it, unless it
    has a direction of its own. An apostrophe within a word quotes nothing.
    """
    return re.split(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""", text)


def _call(method: str, parameters: dict[str, Any]) -> str:
    """Return the call that makes a model."""

    def text(value: Any) -> str:
        plain = value is None or isinstance(value, bool | int | float | str)
        return repr(value) if plain else f"<{type(value).__name__}>"

    items = (f"{name}={text(value)}" for name, value in parameters.items())
    return f"{method}({', '.join(items)})"


def cluster_style(n_clusters: int) -> str:
    """Return rules that define ``--c0``, ``--c1`` ... in both themes.

    Clusters have the colours of :mod:`ihgmm.plotting`, which come back after fifty.
    """
    light, dark = (
        "".join(f"--c{i}:{colors[i % len(colors)]};" for i in range(n_clusters))
        for colors in (LIGHT, DARK)
    )
    marks = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(n_clusters))
    return (
        f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n{marks}\n"
    )


def kept_rows(
    clusters: Clusters,
    ids: list[str] | None,
    most_rows: int = 100_000,
    most_text: int = 4_500_000,
) -> np.ndarray:
    """Return the rows that the page holds, in order.

    All of them, up to as many as a browser searches, sorts and draws without delay,
    and up to so many bytes of names. Beyond, a random part: the same share of every
    cluster, but no fewer than twenty rows of each.
    """
    n = len(clusters.codes)
    most = min(n, most_rows)
    if ids is not None:
        text = len(inline_json(ids).encode("utf-8"))
        if text * most > most_text * n:
            most = max(1, most_text * n // text)
    return np.sort(np.concatenate(clusters.thinned(most, 20)))


def _payload(facts: Facts, kept: np.ndarray) -> dict[str, Any]:
    """Return the rows that the page holds, as its script reads them."""
    places, name = facts.places, facts.id_name
    low, high = places.min(axis=0), places.max(axis=0)
    span = np.maximum(high - low, 1e-12)
    square = facts.basis != "scale and fit"  # whether both axes have one unit
    # What stands beside the ids in the file that the page saves.
    columns = ("cluster", "scale", "confidence", "known")
    data: dict[str, Any] = {
        "nClusters": facts.n_clusters,
        "idName": f"id_{name}" if name in columns else name,
        "sizes": facts.clusters.sizes.tolist(),
        "aspect": float(span[0] / span[1]) if square else None,
        "x": _packed(_quantised(places[kept, 0], low[0], high[0])),
        "y": _packed(_quantised(places[kept, 1], low[1], high[1])),
        "cluster": _packed(facts.clusters.codes[kept].astype(np.uint16)),
        "scale": _packed(facts.scales[kept].astype(np.float32)),
        "confidence": _packed(_quantised(facts.certainty[kept], 0, 1)),
    }
    if facts.ids is not None:
        data["ids"] = [facts.ids[i] for i in kept]
    elif len(kept) < facts.n_samples:
        data["numbers"] = _packed((kept + 1).astype(np.uint32))
    if facts.known is not None:
        known = classes_of(facts.known[kept])
        data["classes"] = known.names
        data["known"] = _packed(known.codes.astype(np.uint32))
    return data


def _packed(values: np.ndarray) -> dict[str, str]:
    """Return an array as its type and its little-endian bytes in base64."""
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"type": f"{plain.dtype.kind}{plain.dtype.itemsize}", "data": text}


def _quantised(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return values between two ends as 16-bit whole numbers."""
    span = high - low if high > low else 1.0
    return np.round((values - low) / span * 65535).clip(0, 65535).astype(np.uint16)


def inline_json(value: Any) -> str:
    """Return JSON that may stand inside a script element.

    No text in it can end the element, begin a comment or be taken for markup; half
    characters that UTF-8 cannot hold are written as escapes.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    unsafe = "[<>&\u2028\u2029\ud800-\udfff]"
    return re.sub(unsafe, lambda found: f"\\u{ord(found[0]):04x}", text)


def _asset(name: str) -> str:
    return (files("ihgmm.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
