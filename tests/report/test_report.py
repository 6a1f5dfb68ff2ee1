"""The report: what is in the file, without looking at it in a browser."""

import base64
import hashlib
import json
import re
import sys
from html import escape, unescape
from types import SimpleNamespace

import array_api_strict as xp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from embedded_rows import unpacked
from nested_rows import nested
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import ihgmm
from ihgmm import (
    ColumnScaler,
    IhSC,
    PreparationWarning,
    cluster_tree,
    diagnose,
    make_ihgmm,
    open_data,
    top_features,
    typical_rows,
)
from ihgmm.matrix import as_matrix
from ihgmm.plotting._clusters import Clusters
from ihgmm.report import write_report
from ihgmm.report.page import _templates, inline_json, kept_rows
from ihgmm.statistics.diagnosis import Verdict

MINUS = "\N{MINUS SIGN}"


def payload(page):
    return unpacked(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def tables(page):
    """Cells of the tables of a page, by the class of the table."""

    def parts(tag, text):
        return re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)

    matches = re.findall('<table class="(.*?)">(.*?)</table>', page, re.DOTALL)
    return {
        name: [
            [unescape(re.sub("<[^>]*>", "", cell)) for cell in parts("t[hd]", row)]
            for row in parts("tr", body)
        ]
        for name, body in matches
    }


@pytest.fixture(scope="module", autouse=True)
def fixed_date():
    """The date of pages, as builds that are to be repeated set it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1785600000")
        yield


ROWS, LABELS = make_ihgmm(150, 30, 3, balance=0.5, random_state=0)


@pytest.fixture
def X():
    return ROWS.copy()


@pytest.fixture(scope="module")
def model():
    return IhSC(3, random_state=0).fit(ROWS)


def written(model, X, **options):
    return write_report(X, model, **options).html


@pytest.fixture(scope="module")
def page(model):
    return written(model, ROWS, labels_true=LABELS)


def test_figures_are_those_of_the_model(page, X, model):
    page_tables = tables(page)
    masks = [model.labels_ == k for k in range(3)]
    clusters = page_tables["clusters"][1:]

    assert [row[0] for row in clusters] == ["0", "1", "2"]
    assert [row[2] for row in clusters] == [str(mask.sum()) for mask in masks]

    medians = [f"{np.median(model.sizes_[mask]):.3g}" for mask in masks]

    assert [row[5] for row in clusters] == medians

    medians = [f"{np.median(model.scales_[mask]):.2f}" for mask in masks]

    assert [row[6] for row in clusters] == medians

    # Columns are in the order of the clusters that they are matched to.
    order = [int(np.bincount(LABELS[mask]).argmax()) for mask in masks]

    assert page_tables["known"][0][1:] == [str(c) for c in order]

    counts = [[str((LABELS[mask] == c).sum() or "·") for c in order] for mask in masks]

    assert [row[1:] for row in page_tables["known"][1:]] == counts
    assert f"{diagnose(X, model.labels_).verdict.capitalize()}." in page
    assert "IhSC sorted 150 rows of 30 features into 3 clusters." in page
    assert "Clusters are numbered from 0, the largest first." in page
    assert "0 of 150 rows differ (0%)" in page

    # How the labels were found stands there by the recipe.
    assert "brings rows to unit length and takes their leading singular" in page

    paper = written(IhSC.paper(3, random_state=0).fit(X), X)

    assert "eigenvectors of the inner products of rows, leaving out each row" in paper


@pytest.mark.parametrize("offset", [0, 7])
def test_means_are_in_the_units_of_the_data(X, model, offset):
    original = 1000 * X + offset
    page = written(model, X, feature_names=map(str, range(30)), original=original)
    means = 1000 * np.array([X[model.labels_ == k].mean(axis=0) for k in range(3)])
    lengths = np.linalg.norm(means, axis=1)
    for k, card in enumerate(page.split('<article class="card">')[1:]):
        head, *lines = tables(card)["features"]
        heading = "Others" if offset else "Others, same size"
        assert head == ["Feature", "Mean", heading, "Contrast"]
        assert len(lines) == 8
        if offset:
            expected = original[model.labels_ != k].mean(axis=0)
        else:  # the others at the size of this cluster
            stretched = means * (lengths[k] / lengths)[:, None]
            expected = stretched[model.labels_[model.labels_ != k]].mean(axis=0)
        for name, *cells, contrast in lines:
            j = int(name)
            page_means = [float(cell.replace(",", "")) for cell in cells]
            mean = means[k, j] + offset
            assert page_means == pytest.approx([mean, expected[j]], rel=0.006)
            is_above = mean > expected[j]
            assert contrast.split()[-1][0] == ("+" if is_above else MINUS)

    # The words follow the figures.
    assert ("clusters, if their rows were as large" in page) == (offset == 0)


@pytest.mark.filterwarnings("ignore::ihgmm.UnstableLabelsWarning")
@pytest.mark.parametrize(("noise", "any_sure"), [(0.2, True), (0.5, False)])
def test_sure_rows_are_relied_on_where_there_are_some(noise, any_sure):
    rng = np.random.default_rng(0)
    X = np.zeros((200, 6))
    # One kind stands apart, and two clusters share rows that change gradually.
    X[:60, 0] = 3
    X[60:, 1] = 3
    X[60:, 2] = rng.uniform(0, 1, 140)
    X += noise * rng.normal(size=X.shape)
    page = write_report(X, IhSC(3, random_state=0).fit(X)).html
    shares = [row[4] for row in tables(page)["clusters"][1:]]

    assert any(share != "0%" for share in shares) == any_sure
    assert "The clusters run into each other." in page
    assert ("Rely on the sure rows only" in page) == any_sure
    assert ("No label is 90% certain" in page) != any_sure


@pytest.mark.filterwarnings("ignore::ihgmm.UnstableLabelsWarning")
def test_uncertain_rows_of_separated_clusters_are_explained():
    X, _ = make_ihgmm(120, 60, 2, separation_constant=0.2, random_state=0)
    model = IhSC(2, random_state=0).fit(X)
    diagnosis = diagnose(X, model)

    assert diagnosis.verdict.name == "SEPARATED"
    assert diagnosis.uncertain_share > 0.5
    assert "Most labels are less than 90% certain, however clear" in written(model, X)


def test_clusters_of_given_labels():
    X, _ = make_ihgmm(120, 20, 8, random_state=0)
    model = IhSC(random_state=0).fit(X, known_labels=np.minimum(np.arange(120) // 9, 7))
    page = written(model, X)
    stability = diagnose(X, model).stability

    assert "IhSC(n_clusters=8, random_state=0)" in page
    assert "Clusters are numbered from 0.</p>" in page
    assert "The labels are those given: the fit chose none." in page
    assert f"without these labels, finds {stability:.1%}." in page


def test_few_of_many_columns_are_named():
    X, _ = make_ihgmm(60, 101, 2, random_state=0)
    for n_columns, n_named in ((100, 100), (101, 8)):
        table = X[:, :n_columns]
        names = [f"g{j}" for j in range(n_columns)]
        page = written(IhSC(2).fit(table), table, feature_names=names)
        entry = page.partition("<dt>Columns</dt>")[2].partition("</dd>")[0]
        assert entry.count("<bdi>") == n_named
        assert ("and 93 more" in entry) == (n_columns > 100)


def test_names_of_clusters(X, model):
    hostile_name = "<script>alert(1)</script>"
    page = written(model, X, names={0: hostile_name, 2: " b "}, labels_true=LABELS)

    assert "<script>alert" not in page

    page_tables = tables(page)
    names = [hostile_name, "", "b"]
    headings = [f"0 {hostile_name}", "1 ", "2 b"]

    assert [row[1] for row in page_tables["clusters"][1:]] == names
    assert [row[0] for row in page_tables["known"][1:]] == headings

    for option in ({0: hostile_name, 2: " b "}, names):
        assert payload(written(model, X, names=option))["names"] == names

    # A browser knows the page again, and no other one.
    key = payload(written(model, X))["key"]
    key_with_title = payload(written(model, X, title="Other"))["key"]
    key_with_ids = payload(written(model, X, ids=range(150)))["key"]

    assert key == key_with_title != key_with_ids


def test_the_page_says_what_made_it(X, model):
    source = "cells & <b>.csv"
    command = "ihgmm report -k '3'"
    page = written(model, X, source=source, command=command, title="mlb_players")

    assert '<h1 dir="auto">mlb_<wbr>players</h1>' in page

    foot = page[page.index("How this page was made") :]

    assert "<dd>1 August 2026, 16:00 UTC</dd>" in foot
    assert f"<bdi>{escape(source)}</bdi>" in foot
    assert command in unescape(foot)
    assert "<code>IhSC(n_clusters=3, random_state=0)</code>" in foot
    assert "3 clusters · 1 August 2026</p>" in page

    default_page = written(model, X)

    assert "<dt>Command</dt>" not in default_page
    assert "<h3>The data</h3>" not in default_page


def test_a_page_in_a_file_and_for_notebooks(X, model, tmp_path):
    X_before = X.copy()
    page = model.report(X, title='"quoted" & <i>')
    file = model.report(X, str(tmp_path / "r.html"), title='"quoted" & <i>')

    assert file == tmp_path / "r.html"
    assert file.read_text(encoding="utf-8") == page.html
    np.testing.assert_array_equal(X, X_before)

    iframe = '<iframe srcdoc="([^"]*)" ([^<>]*)></iframe>'
    frame = re.fullmatch(iframe, page._repr_html_())

    assert unescape(frame[1]) == page.html
    # The page has no rights of the notebook around it.
    assert 'sandbox="allow-scripts allow-downloads allow-modals"' in frame[2]
    assert "same-origin" not in frame[2]
    assert len(repr(page)) < 90


def test_known_labels_stand_under_their_clusters(X, model):
    # Eleven classes, three of which are a cluster; numbers are read as numbers.
    positions = np.arange(150)
    known_labels = np.where(positions % 10 == 0, positions % 80 + 3, model.labels_)
    page = written(model, X, labels_true=known_labels)
    head, *lines = tables(page)["known"]

    assert head[1:] == ["0", "1", "2", *(str(c) for c in range(3, 83, 10))]

    _, classes = np.unique(known_labels, return_inverse=True)
    counts = np.zeros((3, 11), dtype=int)
    np.add.at(counts, (model.labels_, classes), 1)
    expected = [[str(n or "·") for n in row] for row in counts]

    assert [line[1:] for line in lines] == expected

    # The sentence agrees with the table: a cluster stands for its largest class.
    n_wrong = 150 - counts.max(axis=1).sum()

    assert f"{n_wrong} of 150 rows ({n_wrong / 150:.1%}) are not of the largest" in page

    # The last of very many columns counts all other classes, unless it is one.
    for n_classes, heading in ((75, "16 others"), (60, "59")):
        known_labels = np.minimum(np.arange(150) // 2, n_classes - 1)
        head, *lines = tables(written(model, X, labels_true=known_labels))["known many"]
        assert len(head) == 61
        assert heading in head
        sums = [sum(int(cell.replace("·", "0")) for cell in line[1:]) for line in lines]
        assert sums == np.bincount(model.labels_).tolist()


def test_rows_without_a_known_label_are_counted_and_not_compared(X, model):
    known_labels = LABELS.astype(object)
    known_labels[:4] = None, np.nan, "", pd.NA
    page = written(model, X, labels_true=known_labels)

    assert "4 rows without a known label are not compared." in page
    assert "of 146 rows differ" in page

    cells = [cell for line in tables(page)["known"][1:] for cell in line[1:]]

    assert sum(int(cell.replace("·", "0")) for cell in cells) == 146

    data = payload(page)

    assert data["classes"] == ["", "0", "1", "2"]
    np.testing.assert_array_equal(data["known"][4:], LABELS[4:] + 1)
    assert "known labels</h2>" not in written(model, X, labels_true=[None] * 150)


def test_classes_are_sorted_as_people_read_them(X, model):
    names = ["-2", "1.5", "9", "10", "1e3", "9" * 5000, "a", "k 9", "k 010", "k 10b"]
    known_labels = np.array(names, dtype=object)[np.arange(150) * 7 % 10]
    data = payload(written(model, X, labels_true=known_labels))

    assert data["classes"] == names
    np.testing.assert_array_equal(data["known"], np.arange(150) * 7 % 10)


def test_embedded_rows_are_those_of_the_model(page, X, model):
    data = payload(page)

    np.testing.assert_array_equal(data["cluster"], model.labels_)
    np.testing.assert_array_equal(data["scale"], model.scales_.astype(np.float32))

    sizes = data["scale"] * np.array(data["lengths"])[data["cluster"]]

    np.testing.assert_allclose(sizes, model.sizes_, rtol=1e-6)

    certainty = diagnose(X, model.labels_).certainty

    np.testing.assert_allclose(data["certainty"] / 65535, certainty, atol=1e-5)

    known_labels = np.array(data["classes"])[data["known"]]

    np.testing.assert_array_equal(known_labels, LABELS.astype(str))

    # On the map every row is nearest to the middle of its own cluster.
    places = np.column_stack([data["x"] * data["aspect"], data["y"]]) / 65535
    middles = np.array([places[model.labels_ == k].mean(axis=0) for k in range(3)])
    distances = np.linalg.norm(places[:, None] - middles, axis=2)

    assert (distances.argmin(axis=1) == model.labels_).mean() > 0.98


def test_the_index_of_a_frame_names_the_rows(X, model):
    names = [f"cell {i}" for i in range(150)]
    frame = pd.DataFrame(X, index=names)
    data = payload(written(model, frame))

    assert (data["ids"], data["idName"]) == (names, "id")

    # What is given goes first.
    data = payload(written(model, frame, ids=range(150), id_name="n"))

    assert (data["ids"][7], data["idName"]) == ("7", "n")

    # One that counts the rows says nothing; the rows that a selection left do.
    data = payload(written(model, pd.DataFrame(X)))

    assert ("ids" in data, data["idName"]) == (False, "position")

    # A name stands for one column of the file only.
    selected_rows = pd.DataFrame(X, index=pd.RangeIndex(9, 159, name="scale"))
    data = payload(written(model, selected_rows))

    assert (data["ids"][:2], data["idName"]) == (["9", "10"], "id_scale")

    index = pd.MultiIndex.from_tuples([("a", i) for i in range(150)])
    data = payload(written(model, pd.DataFrame(X, index=index)))

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


def test_names_stay_data(X, model):
    X[:, 4] *= 300  # of which a caution speaks
    hostile_name = "</script><script>alert(1)</script><!--&\u2028\u2029'\"{{script}}"
    ids = [hostile_name, "\ud800", "\x00", "", None, *range(145)]
    names = [hostile_name, *(f"<g{j}>" for j in range(1, 30))]

    with pytest.warns(PreparationWarning, match="Rows of X are .* times as large"):
        page = written(model, X, ids=ids, feature_names=names, title=hostile_name)

    assert "Column <bdi>&#39;&lt;g4&gt;&#39;</bdi> holds" in page
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    assert "&lt;/script&gt;" in page

    data = payload(page)

    assert data["ids"][:5] == [hostile_name, "\ud800", "\x00", "", ""]
    assert data["ids"][5:] == [str(i) for i in range(145)]

    text = inline_json([hostile_name])

    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == [hostile_name]


def test_a_pipeline_of_a_file_has_a_report(X, tmp_path):
    names = [f"f{j}" for j in range(30)]
    pd.DataFrame(X, columns=names).to_parquet(tmp_path / "x.parquet")
    stored = open_data(tmp_path / "x.parquet")
    model = make_pipeline(ColumnScaler("scale"), IhSC(3)).fit(stored)
    page = str(write_report(stored, model).html)

    assert "f29" in page
    assert page.count('<article class="card">') == 3


def test_a_report_reads_the_data_as_often_as_its_parts(X, model, tmp_path):
    np.save(tmp_path / "X.npy", X)
    stored = np.load(tmp_path / "X.npy", mmap_mode="r")
    report_matrix = as_matrix(stored)
    diagnosis_matrix = as_matrix(stored)
    model.report(report_matrix, tmp_path / "r.html")
    diagnose(diagnosis_matrix, model)

    # Once more for the means of features, and once for typical rows.
    assert report_matrix.passes == diagnosis_matrix.passes + 2 > 2


@pytest.mark.parametrize(
    ("model", "has_tree"),
    [
        (ihgmm.IhGMM(3, random_state=0), False),
        (IhSC(3, recipe="psc", random_state=0), True),
        (ihgmm.SphericalKMeans(3, random_state=0), False),
        (IhSC("auto", random_state=0), True),
        (IhSC(1, random_state=0), False),
        (IhSC(2, random_state=0), False),
        (ihgmm.TwoComponentLloyd(), False),
        (IhSC(14, random_state=0), True),
    ],
    ids=repr,
)
def test_models(model, has_tree, X):
    page = written(model.fit(X), X)

    assert f"{type(model).__name__} sorted 150 rows" in page
    is_counted = getattr(model, "n_clusters", 2) == "auto"

    assert bool(section_of(page, "numbers")) == is_counted
    assert ('href="#numbers"' in page) == is_counted
    assert bool(tree_section(page)) == has_tree
    np.testing.assert_array_equal(payload(page)["cluster"], model.labels_)
    assert page.count('<article class="card">') == len(set(model.labels_))
    assert len(tables(page)["clusters"]) == len(model.cluster_centers_) + 1
    assert not re.search(r"\bnan\b|\binf\b", page.split("<script")[0])


def test_kinds_of_data(X, model):
    rows = payload(written(model, X))
    sparse_rows = payload(written(model, sp.csr_array(X)))

    np.testing.assert_allclose(rows["certainty"], sparse_rows["certainty"], atol=1)

    device = xp.asarray(X)
    device_model = IhSC(3, random_state=0).fit(device)
    device_rows = payload(written(device_model, device))

    np.testing.assert_array_equal(device_rows["cluster"], rows["cluster"])

    frame = pd.DataFrame(X.astype(np.float32), columns=[f"g{j}" for j in range(30)])
    frame_model = IhSC(3, random_state=0).fit(frame)
    page = written(frame_model, frame)

    assert re.search(r'<th scope="row"><bdi title="g\d+">', page)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_page_has_words_for_every_verdict(verdict):
    diagnosis = SimpleNamespace(
        verdict=verdict,
        n_clusters=2,
        stability=0.5,
        largest_share=0.5,
        error_range=(0.1, 0.4),
        n_given=0,
        uncertain_share=0.0,
        certain_from=0.9,
    )
    facts = SimpleNamespace(
        method="IhSC", recipe="default", snippets=None, diagnosis=diagnosis
    )
    template = _templates().get_template("templates/words.html")
    words = template.make_module({"facts": facts, "n_sure": 1})

    assert str(words.verdict(verdict.name)).strip()

    with pytest.raises(ValueError, match="no words for the verdict 'UNHEARD_OF'"):
        words.verdict("UNHEARD_OF")


def test_needs_jinja_and_says_so_before_any_work(X, model, monkeypatch, tmp_path):
    _templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(ImportError, match="pip install jinja2"):
        model.report(X, tmp_path / "r.html")


def test_very_many_rows_are_thinned():
    rng = np.random.default_rng(0)
    labels = rng.choice(3, size=300_000, p=[0.7, 0.29995, 0.00005])
    sizes = np.bincount(labels)
    drawn_rows = kept_rows(Clusters(labels, list("abc")), None)

    assert len(drawn_rows) <= 100_020
    assert (np.diff(drawn_rows) > 0).all()

    drawn_sizes = np.bincount(labels[drawn_rows])

    assert drawn_sizes[2] == min(sizes[2], 20)
    np.testing.assert_allclose(drawn_sizes[:2] / sizes[:2], 1 / 3, atol=1e-3)

    clusters = Clusters(labels[:2000], list("abc"))

    assert len(kept_rows(clusters, None)) == 2000
    assert 1000 <= len(kept_rows(clusters, None, most_rows=1000)) <= 1020

    rows_with_long_ids = kept_rows(clusters, ["x" * 10_000] * 2000)

    assert 400 < len(rows_with_long_ids) < 500


def test_thinned_page_says_so(X, model):
    page = written(model, X, ids=["é" * 50_000] * 150)
    n_drawn = len(payload(page)["cluster"])

    assert n_drawn < 150
    assert page.count(f"hold {n_drawn} of 150 rows, drawn at random") == 2
    assert len(page.encode()) < 8e6
    assert sum(int(row[2]) for row in tables(page)["clusters"][1:]) == 150


def test_bad_input_is_named_and_leaves_the_old_file(X, model, tmp_path):
    file = tmp_path / "r.html"
    file.write_text("old")
    halves = top_features(X, np.arange(150) % 2)
    for error, words, options in (
        (ValueError, "ids has 3 entries and X has 150 rows", {"ids": range(3)}),
        (TypeError, "ids='abc' is one text", {"ids": "abc"}),
        (ValueError, "feature_names has 1 entries", {"feature_names": ["a"]}),
        (ValueError, "labels_true has 9 entries", {"labels_true": LABELS[:9]}),
        (TypeError, "names='abc' is one text", {"names": "abc"}),
        (ValueError, "names has 1 entries and X has 3 clusters", {"names": ["a"]}),
        (ValueError, "names has clusters [7], and the clusters", {"names": {7: "a"}}),
        (TypeError, "described_by is of type ndarray; give", {"described_by": X}),
        (ValueError, "other clusters, of [75, 75]", {"described_by": halves}),
        (ValueError, "original has 149 rows and 30 features", {"original": X[1:]}),
        (TypeError, "notes='abc' is one text", {"notes": "abc"}),
        (ValueError, "X has 140 rows and 30 features, and the", {"X": X[:140]}),
        (ValueError, "X has 150 rows and 29 features", {"X": X[:, 1:]}),
        (ValueError, "IhSC has no labels_", {"model": IhSC(3)}),
        (TypeError, "X is of type IhSC, which is no data", {"X": model, "model": X}),
        (ValueError, "ends in .html", {"path": tmp_path / "r.txt"}),
        (FileNotFoundError, "No such file", {"path": tmp_path / "no" / "r.html"}),
    ):
        with pytest.raises(error, match=re.escape(words)):
            write_report(**{"X": X, "model": model, "path": file} | options)

    assert [f.name for f in tmp_path.iterdir()] == ["r.html"]
    assert file.read_text() == "old"

    (tmp_path / "d.html").mkdir()

    with pytest.raises(ValueError, match=r"d\.html is a folder; give a file name"):
        write_report(X, model, tmp_path / "d.html")


@pytest.mark.filterwarnings("ignore:n_clusters='auto' chose")
def test_a_doubtful_number_is_in_the_verdict(page):
    assert "doubtful" not in page

    X, *_ = nested(0, types=2, kinds=4)
    model = IhSC("auto", random_state=0).fit(X)
    verdict = '<p class="verdict fair">The number of clusters is doubtful: '

    assert model.selection_.is_doubtful
    assert verdict in written(model, X)


def section_of(page, name):
    """Return a section of a page; nothing where there is none."""
    return page.partition(f'<section id="{name}"')[2].partition("</section>")[0]


def tree_section(page):
    """Return the section with the tree; nothing where there is none."""
    return section_of(page, "tree")


def test_the_evidence_for_each_number_is_shown(X):
    model = IhSC("auto", random_state=0).fit(X)
    count = model.selection_
    section = section_of(written(model, X), "numbers")

    assert "How many clusters" in section
    assert str(count) in unescape(section)

    bars = re.findall(r'<rect class="(\w+)" .* height="([\d.]+)"/>', section)
    numbers = [one.n_clusters for one in count.evidence]
    scores = np.array([one.score for one in count.evidence])
    heights = np.array([float(height) for _, height in bars])

    assert [
        k for k, (name, _) in zip(numbers, bars, strict=True) if name == "lead"
    ] == [3]
    assert np.argmax(heights) == numbers.index(3)

    # Heights are scores, in another unit and with a decimal.
    np.testing.assert_allclose(
        heights / heights.max(), abs(scores) / abs(scores).max(), atol=1e-3
    )

    said = ", ".join(f"{k}: {s:.2f}" for k, s in zip(numbers, scores, strict=True))

    assert f'aria-label="The score of each number of clusters, {said}."' in section

    written_numbers = re.findall(r'text-anchor="middle">(\d+)<', section)

    assert {*map(int, written_numbers)} <= {*numbers}
    assert written_numbers[0] == "2"


@pytest.mark.filterwarnings("ignore::ihgmm.ClusterCountWarning")
def test_no_bars_are_spoken_of_where_no_number_was_tried(X):
    model = IhSC("auto", random_state=0).fit(X[:12])
    section = section_of(written(model, X[:12]), "numbers")

    assert "there are too few rows to look for several" in section
    assert "<svg" not in section
    assert "Each bar" not in section


def test_the_tree_of_clusters_is_shown():
    X, *_ = nested(0)
    model = IhSC(9, random_state=0).fit(X)
    tree = cluster_tree(model, random_state=0)
    section = tree_section(written(model, X))

    assert "Clusters that belong together" in section
    assert "Within this fit, 3 clusters stand out: halves" in section

    tops = [float(top) for top in re.findall(r'd="M[^"]*V([\d.]+)H', section)]

    assert len(tops) == tree.n_leaves - 1 == 8
    assert tops == sorted(tops, reverse=True)  # from the leaves up

    (mark,) = re.findall(r'<line class="gap" .*?y1="([\d.]+)"', section)

    assert sum(top < float(mark) for top in tops) == 3 - 1
    assert ">3 clusters</text>" in section

    leaves = re.findall(r'text-anchor="middle">(\d+)<', section)

    assert sorted(map(int, leaves)) == [*range(9)]
    assert [int(leaf) for leaf in leaves] == tree.drawn()[0].tolist()


def test_vectors_are_described_by_the_words_of_their_texts(X, model):
    rng = np.random.default_rng(0)
    kinds = [["boat", "sail"], ["oven", "pan"], ["law"]]
    texts = [" ".join([*rng.choice(kinds[k], 9), "and"]) for k in model.labels_]
    counter = CountVectorizer()
    word_counts = counter.fit_transform(texts)
    names = counter.get_feature_names_out()
    top = top_features(word_counts, model.labels_, names=names)
    page = written(model, X, texts=texts, described_by=top)
    cards = [tables(card)["features"] for card in page.split('class="card"')[1:]]
    for card, kind in zip(cards, kinds, strict=True):
        features = {line[0] for line in card}
        assert {*kind} <= features <= {"Feature", "and", *kind}

    assert "150 rows of 30 features" in page


def test_outliers_are_left_out_and_counted(tmp_path):
    X, kinds = make_ihgmm(200, 50, 3, random_state=0)
    X[:4] = 1000 * np.random.default_rng(0).standard_normal((4, 50))
    model = IhSC(3, outliers="auto", random_state=0).fit(X)
    path = model.report(X, tmp_path / "page.html", labels_true=kinds)
    page = path.read_text(encoding="utf-8")

    assert "Left out 4 rows (2.0%) that fit no cluster (label -1)." in page
    # Others keep their positions.
    assert "Rows go by their position in the data, counted from 0." in page

    positions = np.flatnonzero(model.labels_ >= 0)

    np.testing.assert_array_equal(payload(page)["numbers"], positions)

    typical_positions = re.findall("Typical rows: <bdi>(.*?)</bdi>", page)

    assert typical_positions == [str(rows[0]) for rows in typical_rows(X, model)]
