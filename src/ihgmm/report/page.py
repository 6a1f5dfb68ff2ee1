"""The page as a whole, and its way to disk or into a notebook."""

import base64
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ihgmm._checks import names_of, refuse_model
from ihgmm._files import atomic_write, regular_target
from ihgmm._parameters import usual_errors
from ihgmm.plotting._axes import DARK, LIGHT
from ihgmm.plotting._clusters import Clusters
from ihgmm.policy import Contrasts
from ihgmm.report.charts import ScaleAxis, count_chart, tree_chart
from ihgmm.report.facts import Facts, cross_table, gather_facts
from ihgmm.words import diagnoses as words
from ihgmm.words.clusters import class_words
from ihgmm.words.counts import count_headline, tree_headline
from ihgmm.words.features import contrast_text
from ihgmm.words.phrases import counted, figure, percent, sentence, shorten


@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A page that a notebook shows, in a frame of its own.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> X, kinds = make_ihgmm(100, 20, 3, random_state=0)
    >>> page = IhSC(3, random_state=0).fit(X).report(X)
    >>> page.html[:15]
    '<!doctype html>'
    """

    html: str  #: the page

    def __repr__(self) -> str:
        return f"<Page of {len(self.html):,} characters; give a path to write it>"

    def _repr_html_(self) -> str:
        # Scripts of the page run without the rights of the notebook around it.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts '
            'allow-downloads allow-modals" allow="clipboard-write" title="Report" '
            'width="100%" height="800" style="border:1px solid #8888"></iframe>'
        )


@usual_errors()
def write_report(
    X: Any,
    model: Any,
    path: Any = None,
    *,
    ids: Any = None,
    id_name: str | None = None,
    feature_names: Any = None,
    title: str | None = None,
    labels_true: Any = None,
    notes: Iterable[str] = (),
    names: Any = None,
    original: Any = None,
    texts: Any = None,
    described_by: Any = None,
    source: str | None = None,
    command: str | None = None,
) -> Path | Page:
    """Write a fitted clustering as one page of HTML.

    It has a verdict, a map, the features that set clusters apart, and a table of the
    rows, of very many only a part. It needs a browser and no network: :doc:`/pictures`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data of the fit, wherever they are; texts, if a pipeline takes texts.
    model : estimator
        A fitted clusterer of this package, such as :class:`ihgmm.IhSC`, or a pipeline
        that ends with one.
    path : str or path, optional
        The file to write, ending in .html or .htm. It is written whole or not at all.
    ids : sequence of length n_samples, optional
        Names of rows. By default the index of a pandas frame, unless that only counts
        the rows; then, and of other data, their positions from 0.
    id_name : str, optional
        What the names are called in the file that the page lets you save. By default
        the name of the index, or "id"; of positions, "position".
    feature_names : sequence of length n_features, optional
        Names of features; by default those of the fit or of the columns of X.
    title : str, optional
        Heading of the page.
    labels_true : sequence of length n_samples, optional
        Known labels to compare with and to show; None, NaN or "" where there is none.
    notes : iterable of str, optional
        What was done to the data before: rows and columns left out, columns scaled.
    names : sequence of length n_clusters, or mapping of cluster to name, optional
        Names of clusters. They can be given and changed in the page as well.
    original : array-like or sparse matrix of shape (n_samples, n_features), optional
        The data before columns were scaled or otherwise prepared, for means in units
        that readers know; by default X, also of a pipeline whose steps only change
        cells.
    texts : sequence of length n_samples, optional
        Texts that rows stand for, such as those of embeddings: typical rows show how
        theirs begin. By default X, if a pipeline takes texts.
    described_by : TopFeatures, optional
        What :func:`ihgmm.top_features` says of these clusters by other columns, such as
        the words of texts that were clustered by vectors. By default columns of X.
    source, command : str, optional
        Where the data came from, and what made the page, which names them.

    Returns
    -------
    Path or Page
        The file; without a path the page, which a notebook shows.

    Examples
    --------
    >>> from ihgmm import IhSC, make_ihgmm
    >>> from ihgmm.report import write_report
    >>> X, _ = make_ihgmm(200, 50, 3, random_state=0)
    >>> page = write_report(X, IhSC(3, random_state=0).fit(X), title="A sample")
    >>> "Well separated." in page.html
    True
    """
    refuse_model(X)
    target = None if path is None else regular_target(path, (".html", ".htm"))
    template = _templates().get_template("templates/report.html")
    notes = names_of("notes", notes)

    facts = gather_facts(
        X,
        model,
        ids=ids,
        id_name=id_name,
        feature_names=feature_names,
        labels_true=labels_true,
        names=names,
        original=original,
        texts=texts,
        described_by=described_by,
    )
    if facts.n_outliers:
        notes.append(_note_of_outliers(facts))

    # A notebook keeps the page in its own file: that should stay small.
    most_rows = 100_000 if target else 10_000
    page_rows = kept_rows(facts.clusters, facts.ids, most_rows)
    sizes = facts.clusters.sizes
    used = np.flatnonzero(sizes).tolist()
    axis = ScaleAxis(facts.scales)
    count = facts.count
    now = _time_of_page()

    page = template.render(
        facts=facts,
        data=inline_json(_payload(facts, page_rows)),
        n_kept=len(page_rows),
        n_used=len(used),
        n_sure=_count_sure_rows(facts),
        by_size=(np.diff(sizes) <= 0).all(),
        figures=words.figure_table(facts.diagnosis),
        axis=axis,
        clusters=[_cluster(facts, axis, rows) for rows in facts.clusters.rows()],
        cards=[(cluster, _card(facts, cluster)) for cluster in used],
        chart=count and count_chart(count),
        doubt=count_headline(count) if count and count.is_doubtful else None,
        tree=facts.tree and tree_chart(facts.tree),
        tree_words=facts.tree and sentence(tree_headline(facts.tree)),
        known=facts.known and cross_table(facts),
        title=str(title or f"Clusters found by {facts.method}"),
        notes=notes,
        source=source,
        command=command,
        date=f"{now.day} {now:%B %Y}",
        made=f"{now.day} {now:%B %Y, %H:%M} UTC",
    )
    if target is None:
        return Page(page)

    with atomic_write(target, "w") as file:
        file.write(page)
    return target


def _count_sure_rows(facts: Facts) -> int:
    """Return how many labels are certain, without those that were given."""
    n_certain = np.count_nonzero(facts.certainty >= facts.diagnosis.certain_from)
    # Labels that were given are sure.
    return max(int(n_certain) - facts.diagnosis.n_given, 0)


def _note_of_outliers(facts: Facts) -> str:
    rows = counted(facts.n_outliers, "row")
    share = percent(facts.n_outliers / (facts.n_outliers + facts.n_samples))
    verb = "fit" if facts.n_outliers > 1 else "fits"
    return f"Left out {rows} ({share}) that {verb} no cluster (label -1)."


def _time_of_page() -> datetime:
    """Return now, or the time that SOURCE_DATE_EPOCH has, to build the same again."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch:
        return datetime.fromtimestamp(int(epoch), UTC)
    return datetime.now(UTC)


@cache
def _templates() -> Any:
    """Return Jinja's environment with the templates; it escapes every text."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("Reports need Jinja2: pip install jinja2") from error

    def breakable(text: Any) -> Any:
        """Mark where a narrow screen may begin a new line within a name."""
        return Markup("<wbr>").join(_JOINTS.split(_written(text)))

    pages = Environment(
        loader=PackageLoader(str(__package__), ""),
        autoescape=True,
        finalize=_written,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["breakable"] = breakable
    pages.filters["around_names"] = _QUOTED_NAMES.split
    pages.filters["sha256"] = lambda text: _base64(sha256(text.encode()).digest())
    pages.globals.update(
        counted=counted,
        percent=percent,
        version=version("ihgmm"),
        light=LIGHT,
        dark=DARK,
        shown=partial(shorten, longest=120),
        class_words=class_words,
        trust_reason=words.trust_reason,
        refuse_verdict=_refuse_verdict,
    )
    return pages


def _refuse_verdict(name: str) -> NoReturn:
    raise ValueError(f"The page has no words for the verdict {name!r}.")


# No page may hold these: control characters, and halves of a character.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Where a name may be broken: after signs that join its words, and before the capitals
# of ThatKind.
_JOINTS = re.compile(r"(?<=[_./:=-])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")
# A name that is read from right to left would turn the words around it, unless it has
# a direction of its own: every second piece is a name as Python quotes it. An
# apostrophe within a word quotes nothing.
_QUOTED_NAMES = re.compile(r"""(?<!\w)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")


def _written(value: Any) -> Any:
    """Return a value as the page shows it, unless it is markup."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")

    is_markup = hasattr(value, "__html__")
    if isinstance(value, str) and not is_markup:
        return _UNFIT.sub("\ufffd", value)
    return value


def _cluster(facts: Facts, axis: ScaleAxis, rows: np.ndarray) -> dict[str, Any]:
    """Return the line of a cluster in the table of clusters."""
    largest = float(facts.clusters.sizes.max())
    line = {
        "n": len(rows),
        "share": percent(len(rows) / facts.n_samples),
        "bar": max(100 * len(rows) / largest, 0.6),
    }
    if len(rows) == 0:
        return line

    scales = facts.scales[rows]
    lowest, median, highest = np.quantile(scales, [0.05, 0.5, 0.95])
    is_certain = facts.certainty[rows] >= facts.diagnosis.certain_from
    size = float(np.median(facts.row_sizes[rows]))

    return line | {
        "sure": percent(float(is_certain.mean()))
        if facts.highest_certainty > 0
        else "-",
        "median": f"{median:.2f}",
        "range": f"{lowest:.2f} to {highest:.2f}",
        "size": figure(size),
        "size_digits": f"{size:.6g}",
        **axis.density(scales),
    }


def _card(facts: Facts, cluster: int) -> list[dict[str, Any]]:
    """Return the features that set a cluster apart, with their means."""
    top = facts.top_features
    line = top.clusters.tolist().index(cluster)
    features = top.features[line]
    if facts.snippets is not None:
        # A text is known by the words that it has more of.
        features = top.more[line]
        features = features[top.scores[line, features] > 0]
        features = features[np.argsort(-top.contrasts[line, features])]

    # Bars of a card share a scale: an outlier elsewhere would make them hairlines.
    contrasts = top.contrasts[line, features]
    lengths = np.clip(contrasts, -Contrasts.MOST, Contrasts.MOST)
    longest = np.abs(lengths).max(initial=0.0) or 1.0

    card = []
    for feature, contrast, length in zip(features, contrasts, lengths, strict=True):
        entry = {
            "name": shorten(top.names[feature], 120),
            "length": float(length / longest),
            "contrast": contrast_text(contrast).replace("-", "\N{MINUS SIGN}"),
            "mean": figure(top.means[line, feature]),
            "others": figure(top.others[line, feature]),
        }
        card.append(entry)
    return card


def kept_rows(
    clusters: Clusters, ids: list[str] | None, most_rows: int = 100_000
) -> np.ndarray:
    """Return the positions of the rows that the page holds, among those in clusters.

    They are as many as a browser searches without delay, and some of each cluster.
    """
    if ids is not None:
        n_bytes = len(inline_json(ids).encode("utf-8"))
        n_rows_with_room = max(1, 4_500_000 * len(ids) // n_bytes)
        most_rows = min(most_rows, n_rows_with_room)

    rows_of_clusters = clusters.thinned(most_rows, 20)
    return np.sort(np.concatenate(rows_of_clusters))


def _payload(facts: Facts, page_rows: np.ndarray) -> dict[str, Any]:
    """Return the rows that the page holds, as its script reads them."""
    # NaN where nothing is known of a row: it counts as least certain.
    certainty = np.nan_to_num(facts.certainty[page_rows])
    data: dict[str, Any] = {
        "nClusters": facts.n_clusters,
        "idName": _id_column(facts.id_name),
        "sizes": facts.clusters.sizes.tolist(),
        "lengths": facts.center_lengths.tolist(),
        "names": facts.names,
        **_places_on_map(facts, page_rows),
        "cluster": _packed(facts.clusters.codes[page_rows], "u2"),
        "scale": _packed(facts.scales[page_rows], "f4"),
        "certainty": _packed(_quantised(certainty, 0, 1), "u2"),
    }

    if facts.ids is not None:
        data["ids"] = [facts.ids[i] for i in page_rows]
    elif len(page_rows) < facts.n_samples + facts.n_outliers:
        data["numbers"] = _packed(facts.positions[page_rows], "u4")
    if facts.n_filled_cells.any():
        data["filled"] = _packed(facts.n_filled_cells[page_rows], "u4")
    if facts.known is not None:
        data |= _known_labels(facts.known, page_rows)

    # By which a browser knows the page again, and the names that were given in it.
    data["key"] = sha256(inline_json(data).encode()).hexdigest()[:16]
    return data


def _known_labels(known: Clusters, page_rows: np.ndarray) -> dict[str, Any]:
    """Return the known classes that the rows of the page have, and that of each row."""
    used, codes = np.unique(known.codes[page_rows], return_inverse=True)
    class_names = ["", *known.names]  # -1 is no class
    return {
        "classes": [class_names[code + 1] for code in used],
        "known": _packed(codes, "u4"),
    }


def _id_column(name: str) -> str:
    """Return a name for the ids in the file that the page saves."""
    other_columns = ("cluster", "name", "scale", "size", "certainty", "filled", "known")
    return f"id_{name}" if name in other_columns else name


def _places_on_map(facts: Facts, page_rows: np.ndarray) -> dict[str, Any]:
    """Return where the rows are, in 16 bits, and how wide the map is to its height."""
    lowest = facts.map.points.min(axis=0)
    highest = facts.map.points.max(axis=0)
    width, height = np.maximum(highest - lowest, 1e-12)
    axes_have_one_unit = facts.map.basis != "scale and fit"

    x, y = _quantised(facts.map.points[page_rows], lowest, highest).T
    return {
        "aspect": float(width / height) if axes_have_one_unit else None,
        "x": _packed(x, "u2"),
        "y": _packed(y, "u2"),
    }


def _packed(values: np.ndarray, kind: str) -> dict[str, str]:
    """Return an array as its type, such as u2, and its little-endian bytes."""
    return {"type": kind, "data": _base64(values.astype(f"<{kind}").tobytes())}


def _quantised(values: np.ndarray, lowest: Any, highest: Any) -> np.ndarray:
    """Return values between two ends as whole numbers of 16 bits."""
    span = np.where(highest > lowest, highest - lowest, 1.0)
    shares = (values - lowest) / span
    return np.round(shares * 65535).clip(0, 65535)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def inline_json(value: Any) -> str:
    """Return JSON that may stand inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # What could end the element, begin a comment or be taken for markup, and halves of
    # characters, which UTF-8 cannot hold.
    unsafe = "[<>&\u2028\u2029\ud800-\udfff]"
    return re.sub(unsafe, lambda found: f"\\u{ord(found[0]):04x}", text)
