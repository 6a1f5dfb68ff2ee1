"""The page as a whole, and its way to disk."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ihgmm._files import atomic_write
from ihgmm.diagnostics.verdict import counted
from ihgmm.report import sections
from ihgmm.report.colors import cluster_style
from ihgmm.report.facts import Facts, gather
from ihgmm.report.known import classes_of, known_part
from ihgmm.report.markup import UNFIT, node, to_html
from ihgmm.report.payload import inline_json, packed, quantised
from ihgmm.report.thinning import kept_rows
from ihgmm.report.words import thinning_note

__all__ = ["write_report"]

COLUMNS = ("cluster", "scale", "confidence", "known")
"""What stands beside the ids in the file that the page saves."""

SCRIPTS = ("rows.js", "map.js", "table.js", "start.js")


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
        The data of the fit. An array on a device is copied to the host.
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
        The page tells it.

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
    facts = gather(
        model,
        X,
        ids=ids,
        id_name=id_name,
        feature_names=feature_names,
        labels_true=labels_true,
        notes=notes,
    )
    heading = title or f"Clusters found by {facts.method}"
    page = render(facts, heading)
    with atomic_write(target, "w") as file:
        file.write(page)
    return target


def render(facts: Facts, title: str) -> str:
    """Return the page as text."""
    kept = kept_rows(facts.labels, facts.ids)
    n, p = len(facts.labels), len(facts.features)
    style = _asset("report.css") + cluster_style(facts.n_clusters)
    script = (
        '"use strict";\n(() => {\n' + "\n".join(_asset(s) for s in SCRIPTS) + "})();\n"
    )
    known = known_part(facts)
    note = thinning_note(len(kept), n)
    unit = (
        "how many noise levels a row of scale 1 stands out from rows of the other "
        "clusters that are as large"
        if facts.noise
        else "how far the pattern of a cluster is from those of the others, all at "
        "length 1"
    )
    slots = {
        "policy": (
            "default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"script-src {_hash(script)}; style-src {_hash(style)}"
        ),
        "title": escape(UNFIT.sub("\ufffd", title)),
        "facts": (
            f"{counted(n, 'row')} · {counted(p, 'feature')} · "
            f"{counted(facts.n_clusters, 'cluster')}"
        ),
        "style": style,
        "script": script,
        "data": inline_json(_payload(facts, kept)),
        "done": to_html(*sections.done_part(facts)),
        "diagnosis": to_html(*sections.diagnosis_part(facts)),
        "count": counted(facts.n_clusters, "cluster"),
        "view": escape(facts.view.words),
        "thinned": to_html(node("p", note, class_="note")) if note else "",
        "clusters": to_html(sections.cluster_table(facts)),
        "features": to_html(*sections.feature_cards(facts)),
        "unit": unit,
        "eigenvalues": to_html(*sections.eigenvalue_part(facts)),
        "known": to_html(*known),
        "hidden": "" if known else "hidden",
        "method": to_html(*sections.method_part(facts, version("ihgmm"))),
    }
    # In one pass, so that what is filled in is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda m: slots[m[1]], _asset("page.html"))


def _payload(facts: Facts, kept: np.ndarray) -> dict[str, Any]:
    places, name = facts.view.places, facts.id_name
    low, high = places.min(axis=0), places.max(axis=0)
    span = np.maximum(high - low, 1e-12)
    data: dict[str, Any] = {
        "nClusters": facts.n_clusters,
        "idName": f"id_{name}" if name in COLUMNS else name,
        "sizes": [int(size) for size in facts.sizes],
        "aspect": float(span[0] / span[1]) if facts.view.square else None,
        "x": packed(quantised(places[kept, 0], low[0], high[0])),
        "y": packed(quantised(places[kept, 1], low[1], high[1])),
        "cluster": packed(facts.labels[kept].astype(np.uint16)),
        "scale": packed(facts.scales[kept].astype(np.float32)),
        "confidence": packed(quantised(facts.certainty[kept], 0, 1)),
    }
    if facts.ids is not None:
        data["ids"] = [facts.ids[i] for i in kept]
    elif len(kept) < len(facts.labels):
        data["numbers"] = packed((kept + 1).astype(np.uint32))
    if facts.known is not None:
        data["classes"], codes = classes_of(facts.known[kept])
        data["known"] = packed(codes.astype(np.uint32))
    return data


def _asset(name: str) -> str:
    return (files("ihgmm.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


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
