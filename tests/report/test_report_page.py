"""The report in a real browser: seen, pointed at, searched, sorted, saved, printed."""

import codecs
import csv
import io
import json
import re
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from matplotlib import pyplot as plt
from playwright.sync_api import expect, sync_playwright

from ihgmm import IhSC, diagnose, make_ihgmm
from ihgmm.report import write_report
from ihgmm.words.phrases import percent

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium or Chrome on the path"
)

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned=1'>",
    "quote \" and ' quote",
    "comma, semicolon; tab\tend",
    "two\r\nlines\nthree",
    "emoji 👩🏽‍🔬 🧬",
    "\u202eright to left \u05d0\u05d1\u05d2 عربى",
    "x" * 10_000,
    '=HYPERLINK("http://a.example")',
    "+1+1",
    "-2",
    "-2+3",
    "@SUM(A1)",
    "'=already",
    "\t=tab",
    "",
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def sample():
    X, labels = make_ihgmm(160, 30, 3, separation_constant=0.8, random_state=0)
    return X, labels, IhSC(3, random_state=0).fit(X)


@pytest.fixture(scope="module")
def report(sample, tmp_path_factory):
    X, labels, model = sample
    ids = [*HOSTILE, *(f"row {i}" for i in range(len(HOSTILE), 160))]
    file = tmp_path_factory.mktemp("report") / "report.html"
    names = [*HOSTILE, *(f"gene {j}" for j in range(14))]
    known = np.array(["kind 0", "=kind 1", "<b>kind 2"])[labels]
    options = {"ids": ids, "feature_names": names, "labels_true": known}
    write_report(X, model, file, title=HOSTILE[0], **options)
    return file, ids


@contextmanager
def pages(browser):
    """Open pages that must neither complain nor ask for anything else."""
    contexts = []

    def start(file, ready="#cells tr", **options):
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        page = context.new_page()
        trouble = []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("file:", "blob:"))
                or trouble.append(request.url)
            ),
        )
        page.goto(file.as_uri())
        page.wait_for_selector(ready)
        contexts.append((context, page, trouble))
        return page

    yield start
    for context, page, trouble in contexts:
        assert trouble == []
        assert page.evaluate("window.pwned") is None
        context.close()


@pytest.fixture
def open_page(browser):
    with pages(browser) as start:
        yield start


@pytest.fixture(scope="module")
def opened(browser, report):
    with pages(browser) as start:
        yield start(report[0])


@pytest.fixture
def page(opened, report):
    """The report anew, in a window that is open already."""
    opened.goto(report[0].as_uri())
    opened.wait_for_selector("#cells tr")
    return opened


def embedded(page):
    """Return the data in the page, arrays unpacked."""
    data = json.loads(page.locator("#data").text_content())
    unpack = """([type, text]) => {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const kinds = {u2: Uint16Array, u4: Uint32Array, f4: Float32Array};
        return Array.from(new kinds[type](bytes.buffer));
    }"""
    return {
        name: np.array(page.evaluate(unpack, [value["type"], value["data"]]))
        if isinstance(value, dict)
        else value
        for name, value in data.items()
    }


def place_of(page, data, row):
    """Return where a row is drawn, in the page, going by its coordinates."""
    box = page.locator("#points").bounding_box()
    pad = 34
    unit = min(box["height"] - 2 * pad, (box["width"] - 2 * pad) / data["aspect"])
    across = (data["x"][row] / 65535 - 0.5) * unit * data["aspect"]
    up = (data["y"][row] / 65535 - 0.5) * unit
    return box["x"] + box["width"] / 2 + across, box["y"] + box["height"] / 2 - up


def cells(page, column):
    return page.locator(f"#cells td:nth-child({column + 1})").all_text_contents()


def search(page, text, count):
    page.locator("#search").fill(text)
    expect(page.locator("#count")).to_have_text(count)


def ink(page, k):
    """Return how many pixels of the map have the colour of a cluster."""
    return page.evaluate(
        """(k) => {
        const style = getComputedStyle(document.documentElement);
        const hex = style.getPropertyValue(`--c${k}`).trim();
        const want = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
        const canvas = document.getElementById("points");
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const pen = copy.getContext("2d", {willReadFrequently: true});
        pen.drawImage(canvas, 0, 0);
        const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
        const near = (i) => want.every((w, c) => Math.abs(data[i + c] - w) < 4);
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 150 && near(i)) found++;
        return found;
    }""",
        k,
    )


def test_point_at_a_row(page, report):
    page.locator("#stage").scroll_into_view_if_needed()
    data = embedded(page)
    # A row far from all others, so that no other one is nearer to the pointer.
    x, y = data["x"] * data["aspect"], data["y"]
    far = np.hypot(x[:, None] - x, y[:, None] - y) + 1e9 * np.eye(len(x))
    row = int(far.min(axis=1).argmax())
    assert page.locator("#tip").is_hidden()
    page.mouse.move(*place_of(page, data, row))
    words = page.locator("#tip").inner_text().split("\n")
    name = report[1][row]
    assert page.locator("#tip b").text_content() == name
    assert f"Cluster {int(data['cluster'][row])}" in words
    assert any(re.fullmatch(r"Scale \d+\.\d+", word) for word in words)
    assert any(re.fullmatch(r"Size [\d.]+k?", word) for word in words)
    assert any(re.fullmatch(r"Certainty [<> ]*\d+\.\d%", word) for word in words)
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_the_map_fills_its_box(page):
    box, aspect = page.locator("#stage").bounding_box(), embedded(page)["aspect"]
    shape = box["width"] / box["height"]
    assert shape == pytest.approx(np.clip(aspect, 1, 1.45), rel=0.01)


def test_single_out_a_cluster(page, report, sample):
    sizes = np.bincount(sample[2].labels_)
    assert all(ink(page, k) > 50 for k in range(3))
    keys = page.locator("#legend button")
    assert keys.count() == 3
    keys.nth(1).click()
    assert keys.nth(1).get_attribute("aria-pressed") == "true"
    assert ink(page, 1) > 50
    assert ink(page, 0) == ink(page, 2) == 0
    assert page.locator("#count").inner_text() == f"{sizes[1]} of 160 rows"
    assert set(cells(page, 1)) == {"1"}
    assert page.locator("#filter").input_value() == "1"
    page.locator("#filter").select_option("2")
    assert ink(page, 1) == 0
    assert keys.nth(2).get_attribute("aria-pressed") == "true"
    page.locator("#all").click()
    assert page.locator("#count").inner_text() == "160 rows"
    assert ink(page, 0) > 50


def test_keyboard(page, report):
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#reading").inner_text()
    data = embedded(page)
    assert re.search(r", Cluster \d, Scale [\d.]+, Size [\d.]+k?, Certainty ", first)
    page.keyboard.press("ArrowRight")
    second = page.locator("#reading").inner_text()
    assert second != first
    page.keyboard.press("Enter")
    k = int(re.search(r"Cluster (\d)", second)[1])
    rows = int((data["cluster"] == k).sum())
    assert page.locator("#count").inner_text() == f"{rows} of 160 rows"
    page.keyboard.press("Escape")
    assert page.locator("#count").inner_text() == "160 rows"
    page.keyboard.press("+")
    assert page.locator("#whole").is_enabled()
    page.keyboard.press("0")
    assert page.locator("#whole").is_disabled()
    # Every control is reached with the tab key, and shows it.
    page.locator("body").click(position={"x": 1, "y": 1})
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, name, outline = page.evaluate(
            "(at => [at.tagName, at.id, getComputedStyle(at).outlineStyle])"
            "(document.activeElement)"
        )
        if tag == "BODY":  # once around
            break
        seen.add(name)
        assert outline == "solid", (tag, name)
    assert {"theme", "stage", "closer", "search", "filter", "save", "next"} <= seen


def test_search_sort_and_turn_pages(page, report, sample):
    labels, scales = sample[2].labels_, sample[2].scales_
    search(page, "ROW 15", "10 of 160 rows")
    assert cells(page, 0) == [f"row {i}" for i in range(150, 160)]
    search(page, "nothing like this", "0 of 160 rows")
    assert cells(page, 0) == ["No row matches."]
    search(page, "", "160 rows")
    heads = page.locator("#heads th")
    heads.nth(2).locator("button").click()
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"
    smallest = np.argsort(scales, kind="stable")[:25]
    assert cells(page, 1) == [str(k) for k in labels[smallest]]
    heads.nth(2).locator("button").click()
    assert heads.nth(2).get_attribute("aria-sort") == "descending"
    assert cells(page, 1) == [str(k) for k in labels[np.argsort(-scales)[:25]]]
    heads.nth(3).locator("button").click()
    smallest = np.argsort(sample[2].sizes_, kind="stable")[:25]
    assert cells(page, 1) == [str(k) for k in labels[smallest]]
    page.locator("#last").click()
    assert len(cells(page, 0)) == 160 - 6 * 25
    assert page.locator("#page").inner_text() == "Page 7 of 7"
    assert page.locator("#next").is_disabled()
    page.locator("#first").click()
    heads.nth(0).locator("button").click()
    names = [name for name in cells(page, 0) if name.startswith("row")]
    assert names == sorted(names, key=lambda name: int(name[4:]))


def saved(page, button="#save", name="labels.csv"):
    with page.expect_download() as download:
        page.locator(button).press("Enter")
    assert download.value.suggested_filename == name
    content = download.value.path().read_bytes()
    # Excel takes a file without the mark for one in the code of the country.
    assert content.startswith(codecs.BOM_UTF8)
    return content.decode("utf-8-sig")


def saved_ids(page, *which):
    rows = csv.DictReader(io.StringIO(saved(page, *which), newline=""))
    return [row["id"] for row in rows]


def test_download(page, report, sample):
    text = saved(page)
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    model = sample[2]
    assert [int(row["cluster"]) for row in rows] == list(model.labels_)
    scales = np.array([float(row["scale"]) for row in rows])
    np.testing.assert_allclose(scales, model.scales_, rtol=1e-5)
    sizes = np.array([float(row["size"]) for row in rows])
    np.testing.assert_allclose(sizes, model.sizes_, rtol=1e-5)
    names = [row["id"] for row in rows]
    for name, given in zip(names, report[1], strict=True):
        formula = given.lstrip("'").startswith(tuple("=+-@\t\r\n")) and given != "-2"
        assert name == ("'" + given if formula else given)
    assert {row["known"] for row in rows} == {"kind 0", "'=kind 1", "<b>kind 2"}
    page.locator("#exact").check()
    rows = list(csv.DictReader(io.StringIO(saved(page), newline="")))
    assert [row["id"] for row in rows] == report[1]


SHOWN = ("#save-shown", "labels-shown.csv")


def test_download_of_the_rows_that_are_shown(page, report, sample):
    every, shown = page.locator("#save"), page.locator("#save-shown")
    assert every.inner_text() == "Download all 160 rows (CSV)"
    assert shown.is_hidden()
    page.locator("#filter").select_option("1")
    mine = np.flatnonzero(sample[2].labels_ == 1)
    assert shown.inner_text() == f"Download the {len(mine)} rows shown (CSV)"
    page.locator("#exact").check()
    assert saved_ids(page, *SHOWN) == [report[1][i] for i in mine]
    assert len(saved_ids(page)) == 160
    # Search narrows it further, and the file is sorted as the table is.
    found = [i for i in mine if report[1][i].startswith("row 1")]
    search(page, "row 1", f"{len(found)} of 160 rows")
    page.locator("#heads button").nth(2).click()
    order = sorted(found, key=lambda i: sample[2].scales_[i])
    assert saved_ids(page, *SHOWN) == [report[1][i] for i in order]
    search(page, "nothing like this", "0 of 160 rows")
    assert shown.is_hidden()


def test_names_are_kept_and_saved(open_page, report, sample):
    page = open_page(report[0])
    assert page.locator("#save-page").is_hidden()
    fields = page.locator(".naming input")
    fields.nth(0).fill("  <b>B cells ")
    fields.nth(0).press("Tab")
    fields.nth(2).fill("=T cells")
    fields.nth(2).press("Enter")
    assert fields.nth(0).input_value() == "<b>B cells"
    assert "This browser keeps the names" in page.locator("#names-kept").inner_text()
    assert (
        page.locator("#legend button").nth(0).inner_text().split("\n")[1]
        == "<b>B cells"
    )
    heads = page.locator(".card h3 .called").all_text_contents()
    assert heads == ["<b>B cells", "", "=T cells"]
    options = page.locator("#filter option").all_text_contents()
    assert options == ["all", "0 <b>B cells", "1", "2 =T cells"]
    names = {0: "<b>B cells", 1: "", 2: "'=T cells"}
    rows = list(csv.DictReader(io.StringIO(saved(page), newline="")))
    assert all(row["name"] == names[int(row["cluster"])] for row in rows)
    # The same browser knows them again; a saved page has them anywhere.
    page.reload()
    assert fields.nth(0).input_value() == "<b>B cells"
    with page.expect_download() as download:
        page.locator("#save-page").press("Enter")
    file = report[0].with_name("named.html")
    download.value.save_as(file)
    original = report[0].read_text(encoding="utf-8")
    policy = re.compile("Security-Policy.*")
    copy = file.read_text(encoding="utf-8")
    assert policy.search(copy)[0] == policy.search(original)[0]
    other = open_page(file)
    assert other.locator(".naming input").nth(2).input_value() == "=T cells"
    assert other.locator("#save-page").is_hidden()
    assert cells(other, 0)[:20] == cells(page, 0)[:20]
    assert other.locator("#legend button").count() == 3
    # Taken back, nothing is left of them.
    for k in (0, 2):
        fields.nth(k).fill("")
        fields.nth(k).press("Tab")
    page.reload()
    assert page.locator("#names-kept").is_hidden()
    rows = csv.DictReader(io.StringIO(saved(page), newline=""))
    assert "name" not in rows.fieldnames


def copied(page, button):
    """Press a button that copies a table; return what was copied, by lines."""
    page.evaluate(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    button.click()
    expect(button).to_have_text("Copied")
    text = page.evaluate("window.copied")
    return [line.split("\t") for line in text.splitlines()]


def test_copy_the_table_of_clusters(open_page, report, sample):
    page = open_page(report[0])
    page.locator(".naming input").nth(1).fill("=1+1")
    page.locator(".naming input").nth(1).press("Tab")
    head, *lines = copied(page, page.locator("#copy"))
    assert head[:4] == ["Cluster", "Name", "Rows", "Share"]
    assert [line[1] for line in lines] == ["", "'=1+1", ""]
    assert [int(line[2]) for line in lines] == list(np.bincount(sample[2].labels_))
    assert {len(line) for line in lines} == {len(head)}
    # Numbers have all their digits, not those that are shown.
    model = sample[2]
    sizes = [np.median(model.sizes_[model.labels_ == k]) for k in range(3)]
    found = [float(line[head.index("Median size")]) for line in lines]
    np.testing.assert_allclose(found, sizes, rtol=1e-5)
    # Where the page may not write to the clipboard, the browser's command does.
    page.evaluate("""() => {
        navigator.clipboard.writeText = async () => { throw new Error("no"); };
        document.execCommand = () => {
            window.copied = document.activeElement.value;
        };
    }""")
    expect(page.locator("#copy")).to_have_text("Copy the table")
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("window.copied").startswith("Cluster\tName\tRows")
    assert page.locator("textarea").count() == 0


def test_in_a_notebook(browser, sample, tmp_path):
    X, _, model = sample
    page = write_report(X, model, title=HOSTILE[0])
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><p>cell</p>{page._repr_html_()}", encoding="utf-8")
    context = browser.new_context()
    outer = context.new_page()
    outer.goto(file.as_uri())
    frame = outer.frame_locator("iframe")
    expect(frame.locator("#count")).to_have_text("160 rows")
    field = frame.locator(".naming input").first
    field.fill("mine")
    field.press("Tab")
    expect(frame.locator("#names-kept")).to_contain_text(
        "lost when this page is closed"
    )
    assert outer.evaluate("window.pwned") is None
    context.close()


def test_paper_is_filled_and_no_line_is_cut(open_page, report):
    paper = {"width": 688, "height": 1000}  # of A4 between its margins
    styles = """([selector, name]) => [...new Set(
        [...document.querySelectorAll(selector)].map((e) => getComputedStyle(e)[name])
    )]"""
    widths = """(selector) => [...document.querySelectorAll(selector)]
        .map((e) => e.getBoundingClientRect().width).filter((width) => width > 0)"""
    page = open_page(report[0], "#cells tr", viewport=paper)
    page.keyboard.press("Tab")
    page.locator("#stage").focus()
    assert page.evaluate(styles, ["#stage", "outlineStyle"]) == ["solid"]
    page.emulate_media(media="print")
    for selector, name, value in (
        ("#stage", "outlineStyle", "none"),
        ("#map, #eigenvalues", "breakInside", "avoid"),
        ("h2, h3, section > p", "breakAfter", "avoid"),
        ("tr", "breakInside", "avoid"),
    ):
        assert page.evaluate(styles, [selector, name]) in ([], [value])
    assert min(page.evaluate(widths, "section > p, .scree, .known")) > 680
    # Two cards are side by side.
    assert all(width > 330 for width in page.evaluate(widths, ".card"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 688


def test_paper_cuts_no_name_and_no_short_table(open_page, sample, tmp_path):
    X, _, model = sample
    long = "Customers who order large amounts of everything before holidays"
    X = np.where(np.arange(X.size).reshape(X.shape) % 97 == 5, np.nan, X)
    model = IhSC(3, missing="fit", random_state=0).fit(X)
    file = write_report(X, model, tmp_path / "r.html", names=["short", long, long])
    page = open_page(file, viewport={"width": 688, "height": 1000})
    # Rows with cells that were filled in are marked, and the page says why.
    marks = page.locator("#cells .gaps").all_text_contents()
    gaps = np.isnan(X).sum(axis=1)[:25]
    assert marks == [f"{n} filled" for n in gaps if n]
    assert page.locator("#gaps").is_visible()
    assert ",certainty,filled\r\n" in saved(page)
    page.emulate_media(media="print")
    whole = "e => e.scrollWidth <= e.clientWidth + 1"
    names = page.locator("#legend button").all()
    assert [long in name.inner_text() for name in names] == [False, True, True]
    for name in [*names, *page.locator(".features thead th").all()]:
        assert name.evaluate(whole)
    breaks = "e => getComputedStyle(e).breakInside"
    for part in ("#clusters", ".card", "#map", "footer"):
        assert page.locator(part).first.evaluate(breaks) == "avoid"


def test_hostile_names_are_text_and_certainty_is_a_share(page, report, sample):
    certainty = diagnose(sample[0], sample[2].labels_).certainty
    # No probability is none or all, however near to it.
    inside = np.clip(certainty[:25], 1e-9, 1 - 1e-9)
    assert cells(page, 4) == [percent(share) for share in inside]
    shown = [name if len(name) <= 300 else name[:299] + "…" for name in report[1][:25]]
    assert cells(page, 0) == shown
    assert page.locator("h1").text_content() == HOSTILE[0]
    assert page.title() == HOSTILE[0]
    assert page.locator("script").count() == 2
    assert page.locator("img, b:not(#tip b)").count() == 0
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1280


def violations(page, rules=None):
    """Return what keeps people from using the page, by all rules or some."""
    found = Axe().run(page, options={"runOnly": rules} if rules else None)
    return [
        (v["id"], [n["html"][:120] for n in v["nodes"][:3]])
        for v in found.response["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def test_themes_can_be_read_by_all(open_page, report):
    page = open_page(report[0], color_scheme="light", bypass_csp=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    page.locator("#legend button").first.click()
    page.locator("summary").first.click()
    assert page.locator("#save-shown").is_visible()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert ink(page, 0) > 50
    assert violations(page) == []
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(ground) == "rgb(22, 25, 31)"
    assert ink(page, 0) > 50
    assert violations(page, rules=["color-contrast"]) == []


def test_narrow_screen_and_calm_motion_and_print(open_page, report):
    page = open_page(
        report[0], viewport={"width": 390, "height": 800}, reduced_motion="reduce"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    smooth = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(smooth) == "auto"
    cut = """(selector) => [...document.querySelectorAll(selector)].filter((e) =>
        e.getBoundingClientRect().right > 390 || e.scrollWidth > e.clientWidth + 1
    ).map((e) => e.textContent)"""
    assert page.evaluate(cut, "#heads th, #cells td.number") == []
    assert page.evaluate(cut, ".card, .card tr, .card .number") == []
    assert page.evaluate(cut, "header nav ul, .clusters, .clusters th") == []
    page.emulate_media(color_scheme="dark", media="print")
    assert page.locator("header nav").is_hidden()
    assert page.locator("#rows table").is_hidden()
    assert page.locator("#rows .printed").is_visible()
    assert page.locator("#points").is_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_a_narrow_screen_breaks_names_between_words(open_page, sample, tmp_path):
    X, labels, model = sample
    ids = [f"{name}{i}" for i in range(80) for name in ("Jennings, D", "cell_first_")]
    options = {"ids": ids, "labels_true": labels, "title": "Clusters of mlb_players_18"}
    file = write_report(X, model, tmp_path / "r.html", **options)
    page = open_page(file, viewport={"width": 390, "height": 800})
    broken = """(selector) => [...document.querySelectorAll(selector)].flatMap((e) => {
        const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), words = [];
        while (walker.nextNode()) {
            for (const word of walker.currentNode.data.matchAll(/[^ _]+/g)) {
                const range = document.createRange();
                range.setStart(walker.currentNode, word.index);
                range.setEnd(walker.currentNode, word.index + word[0].length);
                if (range.getClientRects().length > 1) words.push(word[0]);
            }
        }
        return words;
    })"""
    assert page.evaluate(broken, "h1, #cells td:first-child bdi") == []
    assert page.locator("h1").text_content() == "Clusters of mlb_players_18"
    assert page.locator("#cells bdi").nth(2).text_content() == "cell_first_0"


def test_the_legend_tells_of_clusters_out_of_sight(open_page, report, tmp_path):
    X = np.repeat(np.eye(30), 4, axis=0)
    model = IhSC(30, random_state=0).fit(X)
    page = open_page(write_report(X, model, tmp_path / "many.html"))
    assert page.locator("#legend-title").inner_text() == "30 clusters"
    legend = page.locator("#legend")

    def foot():
        image = plt.imread(io.BytesIO(legend.screenshot()))[..., :3]
        return image[-2, image.shape[1] // 2].min()

    assert foot() < 0.9  # a shade
    legend.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    assert foot() > 0.97
    page = open_page(report[0])
    legend = page.locator("#legend")
    assert foot() > 0.97


def test_without_script(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report[0].as_uri())
    assert page.get_by_text("need JavaScript").is_visible()
    assert page.locator("#plot").is_hidden()
    assert page.locator("table.clusters").is_visible()
    context.close()
