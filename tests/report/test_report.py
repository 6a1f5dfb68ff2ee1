"""The report: what is in the file, without looking at it in a browser."""

import base64
import hashlib
import json
import re
import shlex
import sys
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import array_api_strict as xp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from nested_rows import nested
from typer.testing import CliRunner

from ihgmm import (
    PSC,
    IhGMM,
    IhSC,
    SphericalKMeans,
    TwoComponentLloyd,
    cluster_tree,
    diagnose,
    estimate_parameters,
    make_ihgmm,
)
from ihgmm.cli.commands import app
from ihgmm.matrix import as_matrix
from ihgmm.metrics import misclassification_loss
from ihgmm.plotting._clusters import Clusters
from ihgmm.report import write_report
from ihgmm.report.charts import ScaleAxis, signed
from ihgmm.report.page import _templates, inline_json, kept_rows

MINUS = "\N{MINUS SIGN}"
KINDS = {"u2": "<u2", "u4": "<u4", "f4": "<f4"}


def payload(page):
    text = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    data = json.loads(text)
    for name, value in data.items():
        if isinstance(value, dict):
            raw = base64.b64decode(value["data"])
            data[name] = np.frombuffer(raw, KINDS[value["type"]])
    return data


class Tables(HTMLParser):
    """Cells of the tables of a page, by the class of the table."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.cell = {}, None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.rows = self.tables[dict(attributes)["class"]] = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = tag

    def handle_endtag(self, tag):
        if tag == self.cell:
            self.cell = None

    def handle_data(self, text):
        if self.cell:
            self.rows[-1][-1] += text


@pytest.fixture(scope="module", autouse=True)
def fixed_date():
    """The date of pages, as builds that are to be repeated set it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1785600000")
        yield


@pytest.fixture(scope="module")
def sample():
    X, labels = make_ihgmm(150, 30, 3, balance=0.5, random_state=0)
    return X, labels, IhSC(3, random_state=0).fit(X)


@pytest.fixture(scope="module")
def page(sample, tmp_path_factory):
    X, labels, model = sample
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(X, model, str(path), labels_true=labels) == path
    return path.read_text(encoding="utf-8")


def written(model, X, folder, **options):
    file = write_report(X, model, folder / "r.html", **options)
    return file.read_text(encoding="utf-8")


def test_figures_are_those_of_the_model(page, sample):
    X, _, model = sample
    tables = Tables(page).tables
    clusters = tables["clusters"][1:]
    assert [row[0] for row in clusters] == ["0", "1", "2"]
    sizes = np.bincount(model.labels_)
    assert [row[2] for row in clusters] == [str(n) for n in sizes]
    medians = [np.median(model.sizes_[model.labels_ == k]) for k in range(3)]
    assert [row[5] for row in clusters] == [f"{m:.3g}" for m in medians]
    medians = [np.median(model.scales_[model.labels_ == k]) for k in range(3)]
    assert [row[6] for row in clusters] == [f"{m:.2f}" for m in medians]
    counts = [[str(n) if n else "·" for n in row] for row in confusion(sample)]
    order = confusion(sample).argmax(axis=1)  # the class that each cluster is
    assert tables["known"][0][1:] == [str(c) for c in order]
    assert [row[1:] for row in tables["known"][1:]] == [
        [row[j] for j in order] for row in counts
    ]
    diagnosis = diagnose(X, model.labels_)
    assert f"{diagnosis.verdict.capitalize()}." in page
    assert "IhSC sorted 150 rows of 30 features into 3 clusters." in page
    assert "0 of 150 rows differ (0%)" in page


def features(page, k=0):
    """The lines of the card of a cluster."""
    card = page.split('<article class="card">')[k + 1].partition("</article>")[0]
    return Tables(card).tables["features"]


def at_same_size(X, model, means, k):
    """What the others have at the size of a cluster, from means by a second way."""
    own, scales = model.labels_, model.scales_[:, None]
    patterns = [
        np.linalg.lstsq(scales[own == j], X[own == j], rcond=None)[0] for j in range(3)
    ]
    noise = (X - scales * np.vstack(patterns)[own]).std(axis=0)
    lengths = np.linalg.norm(means / noise, axis=1)
    others = [j for j in range(len(means)) if j != k]
    return np.mean([means[j] * lengths[k] / lengths[j] for j in others], axis=0)


@pytest.mark.parametrize("offset", [0, 7])
def test_means_are_in_the_units_of_the_data(sample, tmp_path, offset):
    X, _, model = sample
    names = [f"g{j}" for j in range(30)]
    original = 1000 * X + offset
    page = written(model, X, tmp_path, feature_names=names, original=original)
    means = np.array([X[model.labels_ == k].mean(axis=0) for k in range(3)])
    for k in range(3):
        head, *lines = features(page, k)
        others = "Others" if offset else "Others, same size"
        assert head == ["Feature", "Mean", others, "Contrast"]
        assert len(lines) == 8
        same_size = 1000 * at_same_size(X, model, means, k)
        expected = original[model.labels_ != k].mean(axis=0) if offset else same_size
        for name, mean, others, contrast in lines:
            j = int(name[1:])
            gap, here = means[k, j] * 1000 - same_size[j], 1000 * means[k, j] + offset
            assert thousands(mean) == pytest.approx(here, rel=0.006)
            assert thousands(others) == pytest.approx(expected[j], rel=0.006)
            assert contrast.startswith("+" if gap > 0 else MINUS)
    # The words follow the figures.
    assert ("clusters, if their rows were as large" in page) == (offset == 0)
    assert ("Contrasts compare the prepared rows at equal size" in page) == (offset > 0)


@pytest.mark.filterwarnings("ignore::ihgmm.UnstableLabelsWarning")
@pytest.mark.parametrize(("noise", "any_sure"), [(0.3, True), (0.6, False)])
def test_sure_rows_are_relied_on_where_there_are_some(noise, any_sure):
    rng = np.random.default_rng(0)
    X = np.zeros((200, 6))
    # One kind stands apart, and two clusters share rows that change gradually.
    X[:60, 0], X[60:, 1], X[60:, 2] = 3, 3, rng.uniform(0, 1, 140)
    X += noise * rng.normal(size=X.shape)
    page = write_report(X, IhSC(3, random_state=0).fit(X)).html
    shares = [row[4] for row in Tables(page).tables["clusters"][1:]]
    assert any(share != "0%" for share in shares) == any_sure
    assert "The clusters run into each other." in page
    assert ("Rely on the sure rows only" in page) == any_sure
    assert ("No row is sure: try other columns" in page) != any_sure


@pytest.mark.parametrize("n_classes", [3, 5])
def test_the_class_that_a_cluster_stands_for_is_highlighted(sample, n_classes):
    X, _, model = sample
    known = np.random.default_rng(0).integers(0, n_classes, 150)
    page = write_report(X, model, labels_true=known).html
    table = page.partition('<table class="known">')[2].partition("</table>")[0]
    _, *lines = Tables(f'<table class="known">{table}</table>').tables["known"]
    counts = np.array([[int(cell) for cell in line[1:]] for line in lines])
    assert (2 * counts.max(axis=1) < counts.sum(axis=1)).any()  # less than half
    cells = re.findall('<td class="number( most)?">', table)
    shown = np.array([bool(cell) for cell in cells]).reshape(3, n_classes)
    assert shown.sum(axis=1).tolist() == [1, 1, 1]
    if n_classes == 3:
        assert 150 - counts[shown].sum() == misclassification_loss(known, model.labels_)
        assert "Matched cells are highlighted." in page
    else:
        np.testing.assert_array_equal(counts[shown], counts.max(axis=1))
        assert "In each line the largest class is highlighted." in page


def test_the_report_and_the_description_of_a_fit_agree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kinds, scales = np.arange(90) % 3, rng.lognormal(0, 1, (90, 1))
    patterns = np.array([[9.0, 1, 1, 3], [1, 9, 1, 3], [60, 60, 540, 180]])
    X = scales * patterns[kinds] * rng.lognormal(0, 0.1, (90, 4))
    X[::11, 1] = np.nan
    np.savetxt("a.csv", X, delimiter=",", header="a,b,c,d", comments="", fmt="%.6g")
    options = ["a.csv", "-k", "3", "--prepare", "standardize"]
    done = CliRunner().invoke(app, ["fit", *options, "--json"])
    told = json.loads(done.stdout)["clusters"]
    CliRunner().invoke(app, ["report", *options, "-o", "r.html"])
    page = Path("r.html").read_text(encoding="utf-8")
    gaps = payload(page)["filled"]
    np.testing.assert_array_equal(gaps, np.isnan(X).sum(axis=1))
    for k, cluster in enumerate(told):
        shown = {name: figures for name, *figures, _ in features(page, k)[1:]}
        card = page.split('<article class="card">')[k + 1]
        # Small clusters have none.
        typical = "".join(re.findall(r'class="typical">(.*?)</p>', card))
        names = re.findall("<bdi>(.*?)</bdi>", typical)
        assert names == [*map(str, cluster["typical"])]
        for feature in cluster["features"]:
            mean, others = map(thousands, shown[feature["feature"]])
            assert mean == pytest.approx(feature["mean"], rel=0.006)
            assert others == pytest.approx(feature["others"], rel=0.006)


def thousands(text):
    return float(text[:-1]) * 1000 if text.endswith("k") else float(text)


def test_names_of_clusters(sample, tmp_path):
    X, labels, model = sample
    evil = "<script>alert(1)</script>"
    page = written(model, X, tmp_path, names={0: evil, 2: " b "}, labels_true=labels)
    assert payload(page)["names"] == [evil, "", "b"]
    assert "<script>alert" not in page
    tables = Tables(page).tables
    assert [row[1] for row in tables["clusters"][1:]] == [evil, "", "b"]
    assert [row[0] for row in tables["known"][1:]] == [f"0 {evil}", "1 ", "2 b"]
    listed = payload(written(model, X, tmp_path, names=[evil, "", "b"]))
    assert listed["names"] == [evil, "", "b"]
    # A browser knows the page again, and no other one.
    one, same, other = (
        payload(written(model, X, tmp_path, **options))
        for options in ({}, {"title": "Other"}, {"ids": range(150)})
    )
    assert one["names"] == ["", "", ""]
    assert one["key"] == same["key"] != other["key"]


def test_the_page_says_what_made_it(sample, tmp_path):
    X, _, model = sample
    source = "cells & <b>.csv"
    page = written(model, X, tmp_path, source=source, command="ihgmm report -k '3'")
    foot = page[page.index("<footer>") :]
    assert "<dd>1 August 2026, 16:00 UTC</dd>" in foot
    assert f"<bdi>{escape(source)}</bdi>" in foot
    assert f"<code>{escape('ihgmm report -k ')}&#39;3&#39;</code>" in foot
    assert "IhSC(missing=" in foot
    assert "3 clusters · 1 August 2026</p>" in page
    plain = written(model, X, tmp_path)
    assert "<dt>Command</dt>" not in plain
    assert "<h3>The data</h3>" not in plain


def test_without_a_path_the_page_is_for_notebooks(sample, tmp_path):
    X, _, model = sample
    page = model.report(X, title='"quoted" & <i>')
    assert page.html == written(model, X, tmp_path, title='"quoted" & <i>')
    shown = page._repr_html_()
    frame = re.fullmatch('<iframe srcdoc="([^"]*)" ([^<>]*)></iframe>', shown)
    assert unescape(frame[1]) == page.html
    # The page has no rights of the notebook around it.
    assert 'sandbox="allow-scripts allow-downloads allow-modals"' in frame[2]
    assert "same-origin" not in frame[2]
    assert len(repr(page)) < 90


def confusion(sample):
    _, labels, model = sample
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (model.labels_, labels), 1)
    return table


def known_table(model, X, folder, known):
    (head, *rows) = Tables(written(model, X, folder, labels_true=known)).tables[
        "known" if len(set(known)) <= 20 else "known many"
    ]
    cells = [[int(cell.replace("·", "0")) for cell in row[1:]] for row in rows]
    return head[1:], np.array(cells)


def test_known_labels_stand_under_their_clusters(sample, tmp_path):
    X, _, model = sample
    # Eleven classes, three of which are a cluster; numbers are read as numbers.
    known = np.where(np.arange(150) % 10 == 0, np.arange(150) % 80 + 3, model.labels_)
    head, cells = known_table(model, X, tmp_path, known)
    assert head == ["0", "1", "2", *(str(c) for c in range(3, 83, 10))]
    table = np.zeros((3, 11), dtype=int)
    np.add.at(table, (model.labels_, np.searchsorted(np.unique(known), known)), 1)
    np.testing.assert_array_equal(cells, table)
    # The sentence agrees with the table: a cluster stands for its largest class.
    n_wrong = 150 - table.max(axis=1).sum()
    page = written(model, X, tmp_path, labels_true=known)
    assert f"{n_wrong} of 150 rows ({n_wrong / 150:.1%}) are in another class" in page
    head, _ = known_table(model, X, tmp_path, np.array(list("cba"))[model.labels_])
    assert head == ["c", "b", "a"]


def test_every_row_is_counted_where_there_are_very_many_classes(sample, tmp_path):
    X, _, model = sample
    known = np.arange(150) // 2
    head, cells = known_table(model, X, tmp_path, known)
    assert len(head) == 60
    assert head[-1] == "16 others"
    np.testing.assert_array_equal(cells.sum(axis=1), np.bincount(model.labels_))
    assert cells[:, -1].sum() == 32
    # One more column than there may be is none to leave out.
    head, _ = known_table(model, X, tmp_path, np.minimum(known, 59))
    assert len(head) == 60
    assert "others" not in head[-1]


def test_classes_are_sorted_as_people_read_them(sample, tmp_path):
    X, _, model = sample
    names = ["-2", "1.5", "9", "10", "1e3", "9" * 5000, "a", "k 9", "k 010", "k 10b"]
    shuffled = np.array(names, dtype=object)[np.arange(150) * 7 % 10]
    data = payload(written(model, X, tmp_path, labels_true=shuffled))
    assert data["classes"] == names
    np.testing.assert_array_equal(data["known"], np.arange(150) * 7 % 10)


def test_scores_are_short():
    scores = (99.4, -99.99, 1234.4, 9999.7, -1234567.0, 0.012, -0.00123, np.inf)
    texts = "+99 -100 +1,234 +10k -1.23M +0.012 -0.001 +∞".replace("-", MINUS)
    assert [signed(score) for score in scores] == texts.split()


def test_embedded_rows_are_those_of_the_model(page, sample):
    X, labels, model = sample
    data = payload(page)
    np.testing.assert_array_equal(data["cluster"], model.labels_)
    np.testing.assert_array_equal(data["scale"], model.scales_.astype(np.float32))
    sizes = data["scale"] * np.array(data["lengths"])[data["cluster"]]
    np.testing.assert_allclose(sizes, model.sizes_, rtol=1e-6)
    certainty = diagnose(X, model.labels_).certainty
    np.testing.assert_allclose(data["certainty"] / 65535, certainty, atol=1e-5)
    known = np.array(data["classes"])[data["known"]]
    np.testing.assert_array_equal(known, labels.astype(str))
    # On the map every row is nearest to the middle of its own cluster.
    places = np.column_stack([data["x"] * data["aspect"], data["y"]]) / 65535
    middles = np.array([places[model.labels_ == k].mean(axis=0) for k in range(3)])
    far = np.linalg.norm(places[:, None] - middles, axis=2)
    assert (far.argmin(axis=1) == model.labels_).mean() > 0.98


def test_names_in_notes_have_a_direction_of_their_own(sample, tmp_path):
    X, _, model = sample
    names = ["שלום", "it's", "both ' and \"", "back\\slash", "<b>", "a\nb"]
    note = f"It isn't used: {', '.join(map(repr, names))} and the customers' ids."
    page = written(model, X, tmp_path, notes=[note], id_name="barcode")
    done = page[page.index("What was done") : page.index("Map of the rows")]
    item = re.search(r'<li dir="auto">(.*?)</li>', done)[1]
    quoted = re.findall("<bdi>(.*?)</bdi>", item)
    assert list(map(unescape, quoted)) == [repr(name) for name in names]
    assert unescape(re.sub("</?bdi>", "", item)) == note
    assert payload(page)["idName"] == "barcode"


def test_the_index_of_a_frame_names_the_rows(sample, tmp_path):
    X, _, model = sample
    names = [f"cell {i}" for i in range(150)]
    frame = pd.DataFrame(X, index=names)
    data = payload(written(model, frame, tmp_path))
    assert (data["ids"], data["idName"]) == (names, "id")
    # What is given goes first.
    data = payload(written(model, frame, tmp_path, ids=range(150), id_name="n"))
    assert (data["ids"][7], data["idName"]) == ("7", "n")
    # One that counts the rows says nothing; the rows that a selection left do.
    data = payload(written(model, pd.DataFrame(X), tmp_path))
    assert ("ids" in data, data["idName"]) == (False, "row")
    # A name stands for one column of the file only.
    left = pd.DataFrame(X, index=pd.RangeIndex(9, 159, name="scale"))
    data = payload(written(model, left, tmp_path))
    assert (data["ids"][:2], data["idName"]) == (["9", "10"], "id_scale")
    levels = pd.MultiIndex.from_tuples([("a", i) for i in range(150)])
    data = payload(written(model, pd.DataFrame(X, index=levels), tmp_path))
    assert data["ids"][3] == "a, 3"


def test_policy_allows_own_script_and_style_only(page):
    policy = re.search(r'Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    assert rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert not rules
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert not re.search(r"@import|url\(|\son\w+=\"|innerHTML|style=\"", page)


def test_names_stay_data(sample, tmp_path):
    X, _, model = sample
    X = X.copy()
    X[:, 4] *= 300  # of which a caution speaks
    evil = "</script><script>alert(1)</script><!--&\u2028\u2029'\"{{script}}"
    ids = [evil, "\ud800", "\x00", "", None, *range(145)]
    names = [evil, *(f"<g{j}>" for j in range(1, 30))]
    page = written(model, X, tmp_path, ids=ids, feature_names=names, title=evil)
    assert "Column <bdi>&#39;&lt;g4&gt;&#39;</bdi> holds" in page
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert "&lt;/script&gt;" in page
    data = payload(page)
    assert data["ids"][:5] == [evil, "\ud800", "\x00", "", ""]
    assert data["ids"][5:] == [str(i) for i in range(145)]
    text = inline_json([evil])
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == [evil]


def test_same_input_same_file_and_data_untouched(page, sample, tmp_path):
    X, labels, model = sample
    before = X.copy()
    again = written(model, X, tmp_path, labels_true=labels)
    assert again == page
    np.testing.assert_array_equal(X, before)


def test_a_report_reads_the_data_as_often_as_its_parts(sample, tmp_path):
    X, _, model = sample
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    one, two = as_matrix(stored), as_matrix(stored)
    model.report(one, tmp_path / "r.html")
    diagnose(two, model)
    estimate_parameters(two, model)
    # Once more for the means of features, and once for typical rows.
    assert one.passes == two.passes + 2 > 2


@pytest.mark.parametrize(
    "model",
    [
        IhGMM(3, random_state=0),
        PSC(3, random_state=0),
        SphericalKMeans(3, random_state=0),
        IhSC("auto", random_state=0),
        IhSC(1, random_state=0),
        TwoComponentLloyd(),
        IhSC(14, random_state=0),
    ],
    ids=repr,
)
def test_models(model, sample, tmp_path):
    X = sample[0]
    model.fit(X)
    page = written(model, X, tmp_path)
    assert f"{type(model).__name__} sorted 150 rows" in page
    assert ("edge of noise" in page) == (getattr(model, "n_clusters", 2) == "auto")
    data = payload(page)
    np.testing.assert_array_equal(data["cluster"], model.labels_)
    used = len(set(model.labels_))
    assert page.count('<article class="card">') == used
    assert len(Tables(page).tables["clusters"]) == len(model.cluster_centers_) + 1
    assert not re.search(r"\bnan\b|\binf\b", page.split("<script")[0])


def test_kinds_of_data(sample, tmp_path):
    X, _, model = sample
    plain = payload(written(model, X, tmp_path))
    sparse = payload(written(model, sp.csr_array(X), tmp_path))
    np.testing.assert_allclose(plain["certainty"], sparse["certainty"], atol=1)
    device = xp.asarray(X)
    there = IhSC(3, random_state=0).fit(device)
    moved = payload(written(there, device, tmp_path))
    np.testing.assert_array_equal(moved["cluster"], plain["cluster"])
    frame = pd.DataFrame(X.astype(np.float32), columns=[f"g{j}" for j in range(30)])
    named = IhSC(3, random_state=0).fit(frame)
    page = written(named, frame, tmp_path)
    assert re.search(r'<th scope="row"><bdi title="g\d+">', page)


def test_zero_rows_and_rows_alone(tmp_path):
    X = np.array([[1.0, 0, 0]] * 4 + [[0, 2.0, 0]] + [[0, 0, 0.0]])
    X[:4] *= np.array([[1.0], [2], [3], [4]])
    with pytest.warns(UserWarning, match="1 of 6 rows are zero"):
        model = IhSC(2, random_state=0).fit(X)
    page = written(model, X, tmp_path)
    assert "1 row is zero throughout" in page
    rows = Tables(page).tables["clusters"][1:]
    assert [row[2] for row in rows] == ["5", "1"]
    assert payload(page)["scale"][5] == 0


def test_data_whose_squares_no_float_can_hold(sample, page, tmp_path):
    X, labels, _ = sample
    model = IhSC(3, random_state=0).fit(X * 1e160)
    other = written(model, X * 1e160, tmp_path, labels_true=labels)
    one, two = (Tables(text).tables for text in (page, other))
    for mine, theirs in zip(one["features"], two["features"], strict=True):
        assert (mine[0], mine[3]) == (theirs[0], theirs[3])  # names and contrasts
    one, two = (payload(text)["certainty"] for text in (page, other))
    np.testing.assert_array_equal(one, two)


def test_needs_jinja_and_says_so_before_any_work(sample, tmp_path, monkeypatch):
    X, _, model = sample
    _templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match="pip install jinja2"):
        model.report(X, tmp_path / "r.html")


def test_very_many_rows_are_thinned():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=300_000, p=[0.7, 0.29995, 0.00005])
    sizes = np.bincount(labels)
    kept = kept_rows(Clusters(labels, list("abc")), None)
    assert len(kept) <= 100_020
    assert (np.diff(kept) > 0).all()
    shown = np.bincount(labels[kept])
    assert shown[2] == min(sizes[2], 20)
    np.testing.assert_allclose(shown[:2] / sizes[:2], 1 / 3, atol=1e-3)
    few = Clusters(labels[:2000], list("abc"))
    assert len(kept_rows(few, None)) == 2000
    assert 1000 <= len(kept_rows(few, None, most_rows=1000)) <= 1020
    long = kept_rows(few, ["x" * 10_000] * 2000)
    assert 400 < len(long) < 500


def test_thinned_page_says_so(sample, tmp_path):
    X, _, model = sample
    page = written(model, X, tmp_path, ids=["é" * 50_000] * 150)
    kept = len(payload(page)["cluster"])
    assert kept < 150
    assert page.count(f"hold {kept} of 150 rows, drawn at random") == 2
    assert len(page.encode()) < 8e6
    assert sum(int(r[2]) for r in Tables(page).tables["clusters"][1:]) == 150
    # Who reads it may not be at a terminal.
    words = page.split("<script")[0].split("</style>")[1]
    assert "has a label for each of them" in words
    assert not re.search(r"\s--?[a-z]|ihgmm (fit|report|scales|choose)", words)


@pytest.mark.parametrize("span", [0.0, 0.1, 1.0, 3.0, 8.0])
def test_scale_axis_has_few_round_ticks(span):
    axis = ScaleAxis(10 ** np.linspace(-span, span, 101))
    assert 1 <= len(axis.ticks) <= 5
    places = np.array([place for place, _ in axis.ticks])
    ticks = np.array([float(text) for _, text in axis.ticks])
    np.testing.assert_allclose(places, axis.place(ticks))
    assert (np.diff(places) > 0).all()
    assert (places >= 0).all()
    assert (places <= 260).all()


def test_bad_input_is_named_and_leaves_the_old_file(sample, tmp_path):
    X, labels, model = sample
    file = tmp_path / "r.html"
    file.write_text("old")
    for options, error, words in (
        ({"ids": range(3)}, ValueError, "ids has 3 entries and X has 150 rows"),
        ({"ids": "abc"}, TypeError, "ids='abc' is one name"),
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 entries"),
        ({"labels_true": labels[:9]}, ValueError, "labels_true has 9 entries"),
        ({"title": 3}, TypeError, "title=3 is a int"),
        ({"source": 3}, TypeError, "source=3 is a int; give a text"),
        ({"names": "abc"}, TypeError, "names='abc' is one name"),
        ({"names": ["a"]}, ValueError, "names has 1 entries and X has 3 clusters"),
        ({"names": {7: "a"}}, ValueError, "names has cluster 7, and the clusters are"),
        ({"original": X[1:]}, ValueError, "original has 149 rows and 30 features"),
        ({"notes": "abc"}, TypeError, "notes='abc' is one note"),
        ({"id_name": 3}, TypeError, "id_name=3 is a int; give a text"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            write_report(X, model, file, **options)
    with pytest.raises(ValueError, match="X has 140 rows and 30 features, and the"):
        write_report(X[:140], model, file)
    with pytest.raises(ValueError, match="X has 150 rows and 29 features"):
        write_report(X[:, 1:], model, file)
    for pair in ((X, IhSC(3)), (IhSC(3), X)):  # a swapped pair is put right
        with pytest.raises(ValueError, match="IhSC has no labels_"):
            write_report(*pair, file)
    with pytest.raises(ValueError, match=r"ends in \.html"):
        write_report(X, model, tmp_path / "r.txt")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(X, model, tmp_path / "no" / "r.html")
    assert [f.name for f in tmp_path.iterdir()] == ["r.html"]
    (tmp_path / "d.html").mkdir()
    with pytest.raises(ValueError, match=r"d\.html is a folder; give a file name"):
        write_report(X, model, tmp_path / "d.html")
    assert file.read_text() == "old"


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, labels = make_ihgmm(60, 5, 2, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame = frame.assign(cell=[f"=c{i}" for i in range(60)], kind=labels)
    frame = frame.assign(name=[f"n{i}" for i in range(60)])
    frame.to_csv("cells.csv", index=False)
    line = "report cells.csv -k 2 --id-column cell --label-column kind -o r.html"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, done.output
    assert "r.html" in done.output
    # There are ids already.
    assert "--id-column" not in done.output
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '<h1 dir="auto">Clusters of cells</h1>' in page
    assert payload(page)["ids"][7] == "=c7"
    assert payload(page)["idName"] == "cell"
    assert "of 60 rows" in page
    assert "<bdi>&#39;name&#39;</bdi>" in page  # left out, since it is no number
    # The command of the page makes the page again.
    (shown,) = re.findall("<code>(ihgmm report .*)</code>", page)
    words = shlex.split(unescape(shown))
    (tmp_path / "r.html").unlink()
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.output
    again = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert payload(again)["key"] == payload(page)["key"]


@pytest.mark.filterwarnings("ignore:n_clusters='auto' chose")
def test_a_doubtful_number_is_in_the_verdict(sample, tmp_path):
    rng = np.random.default_rng(2)
    patterns = rng.dirichlet(np.full(7, 0.5), 5)
    X = patterns[rng.integers(0, 5, 150)] * rng.lognormal(0, 0.8, (150, 1))
    X *= rng.lognormal(0, 0.5, X.shape)
    model = IhSC("auto", random_state=0).fit(X)
    assert model.selection_.is_doubtful
    page = written(model, X, tmp_path)
    assert '<p class="verdict fair">The number of clusters is doubtful: ' in page
    X, _, model = sample
    assert "doubtful" not in written(model, X, tmp_path)


def tree_section(page):
    """Return the section with the tree; nothing where there is none."""
    return page.partition('<section id="tree"')[2].partition("</section>")[0]


def test_the_tree_of_clusters_is_shown(tmp_path):
    X, *_ = nested(0)
    model = IhSC(9, random_state=0).fit(X)
    tree = cluster_tree(model, random_state=0)
    shown = tree_section(written(model, X, tmp_path))
    assert "Clusters that belong together" in shown
    assert "The tree is stable at 3 clusters." in shown
    paths = re.findall(r'<path class="branch" d="(.*?)"/>', shown)
    assert len(set(paths)) == tree.n_leaves - 1 == 8
    tops = [float(re.search(r"V([\d.]+)H", path)[1]) for path in paths]
    assert tops == sorted(tops, reverse=True)  # from the leaves up
    (mark,) = re.findall(r'<line class="gap" .*?y1="([\d.]+)"', shown)
    assert sum(top < float(mark) for top in tops) == 3 - 1
    assert ">3 clusters</text>" in shown
    leaves = re.findall(r'text-anchor="middle">(\d+)<', shown)
    assert sorted(map(int, leaves)) == [*range(9)]
    assert [int(leaf) for leaf in leaves] == tree.drawn()[0].tolist()


@pytest.mark.parametrize(
    ("model", "has_tree"),
    [
        (IhSC(3, random_state=0), True),
        (PSC(3, random_state=0), True),
        (IhSC(2, random_state=0), False),
        (IhGMM(3, random_state=0), False),
        (SphericalKMeans(3, random_state=0), False),
    ],
    ids=repr,
)
def test_which_models_show_a_tree(model, has_tree, sample, tmp_path):
    page = written(model.fit(sample[0]), sample[0], tmp_path)
    assert bool(tree_section(page)) == has_tree


def test_halves_with_fewer_rows_than_clusters(sample, tmp_path):
    X = sample[0][:12]
    page = written(IhSC(10, random_state=0).fit(X), X, tmp_path)
    assert "IhSC sorted 12 rows" in page


def test_outliers_are_left_out_and_counted(tmp_path):
    X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    X[:4] = 1000 * np.random.default_rng(0).standard_normal((4, 50))
    model = IhSC(3, outliers="auto", random_state=0).fit(X)
    path = model.report(X, tmp_path / "page.html", labels_true=kinds)
    page = path.read_text(encoding="utf-8")
    assert "Left out 4 rows (2.0%) that fit no cluster (label -1)." in page
