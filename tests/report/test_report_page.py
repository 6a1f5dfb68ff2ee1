"""The report in a real browser: seen, pointed at, searched, sorted, saved, printed."""

import codecs
import csv
import io
import re
import shutil

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from embedded_rows import unpacked
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
        chromium = driver.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


X, LABELS = make_ihgmm(160, 30, 3, separation_constant=0.8, random_state=0)


@pytest.fixture(scope="module")
def model():
    return IhSC(3, random_state=0).fit(X)


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    ids = [*HOSTILE, *(f"row {i}" for i in range(len(HOSTILE), 160))]
    file = tmp_path_factory.mktemp("report") / "report.html"
    names = [*HOSTILE, *(f"gene {j}" for j in range(14))]
    known_labels = np.array(["kind 0", "=kind 1", "<b>kind 2"])[LABELS]
    options = {"ids": ids, "feature_names": names, "labels_true": known_labels}
    write_report(X, model, file, title=HOSTILE[0], **options)
    return file, ids


@pytest.fixture
def open_page(browser):
    """Open pages that must neither complain nor ask for anything else."""
    contexts = []

    def start(file, **options):
        options = {"viewport": {"width": 1280, "height": 900}, **options}
        page = browser.new_context(**options).new_page()
        trouble = []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on("request", lambda request: trouble.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("#cells tr")
        contexts.append((page, trouble))
        return page

    yield start
    for page, trouble in contexts:
        assert [t for t in trouble if not t.startswith(("file:", "blob:"))] == []
        assert page.evaluate("window.pwned") is None
        page.context.close()


@pytest.fixture
def page(open_page, report):
    return open_page(report[0])


def embedded(page):
    return unpacked(page.locator("#data").text_content())


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
    box = page.locator("#stage").bounding_box()
    shape = np.clip(data["aspect"], 1, 1.45)  # which the map fills

    assert box["width"] / box["height"] == pytest.approx(shape, rel=0.01)

    # A row far from all others, so that no other one is nearer to the pointer.
    x = data["x"] * data["aspect"]
    y = data["y"]
    distances = np.hypot(x[:, None] - x, y[:, None] - y) + 1e9 * np.eye(len(x))
    row = int(distances.min(axis=1).argmax())

    assert page.locator("#tip").is_hidden()

    page.mouse.move(*place_of(page, data, row))
    lines = page.locator("#tip").inner_text().split("\n")
    name = report[1][row]

    assert page.locator("#tip b").text_content() == name
    assert f"Cluster {int(data['cluster'][row])}" in lines
    assert any(re.fullmatch(r"Scale \d+\.\d+", line) for line in lines)
    assert any(re.fullmatch(r"Size [\d.]+k?", line) for line in lines)
    assert any(re.fullmatch(r"Certainty [<> ]*\d+\.\d%", line) for line in lines)

    page.mouse.move(2, 2)

    assert page.locator("#tip").is_hidden()


def test_single_out_a_cluster(page, model):
    sizes = np.bincount(model.labels_)

    assert all(ink(page, k) > 50 for k in range(3))

    keys = page.locator("#legend button")

    assert keys.count() == 3

    keys.nth(1).click()

    assert keys.nth(1).get_attribute("aria-pressed") == "true"
    assert [ink(page, k) > 0 for k in range(3)] == [False, True, False]
    assert page.locator("#count").inner_text() == f"{sizes[1]} of 160 rows"
    assert set(cells(page, 1)) == {"1"}
    assert page.locator("#filter").input_value() == "1"

    page.locator("#filter").select_option("2")

    assert keys.nth(2).get_attribute("aria-pressed") == "true"

    page.locator("#all").click()

    assert page.locator("#count").inner_text() == "160 rows"
    assert all(ink(page, k) > 50 for k in range(3))


def test_keyboard(page):
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    first_reading = page.locator("#reading").inner_text()
    figures = r", Cluster \d, Scale [\d.]+, Size [\d.]+k?, Certainty "

    assert re.search(figures, first_reading)

    page.keyboard.press("ArrowRight")
    second_reading = page.locator("#reading").inner_text()

    assert second_reading != first_reading

    page.keyboard.press("Enter")
    cluster = int(re.search(r"Cluster (\d)", second_reading)[1])
    n_rows = (embedded(page)["cluster"] == cluster).sum()

    assert page.locator("#count").inner_text() == f"{n_rows} of 160 rows"

    page.keyboard.press("Escape")

    assert page.locator("#count").inner_text() == "160 rows"

    page.keyboard.press("+")

    assert page.locator("#whole").is_enabled()

    page.keyboard.press("0")

    assert page.locator("#whole").is_disabled()

    # Every control is reached with the tab key, and shows it.
    page.locator("body").click(position={"x": 1, "y": 1})
    focused_ids = set()
    description = "((e) => [e.tagName, e.id, getComputedStyle(e).outlineStyle])"
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, name, outline = page.evaluate(f"{description}(document.activeElement)")
        if tag == "BODY":  # once around
            break
        focused_ids.add(name)
        assert outline == "solid", (tag, name)

    controls = {"theme", "stage", "closer", "search", "filter", "save", "next"}

    assert controls <= focused_ids


def test_search_sort_and_turn_pages(page, model):
    search(page, "ROW 15", "10 of 160 rows")

    assert cells(page, 0) == [f"row {i}" for i in range(150, 160)]

    search(page, "nothing like this", "0 of 160 rows")

    assert cells(page, 0) == ["No row matches."]

    search(page, "", "160 rows")
    heads = page.locator("#heads th")
    for column, figures, sort in (
        (2, model.scales_, "ascending"),
        (2, -model.scales_, "descending"),
        (3, model.sizes_, "ascending"),
    ):
        heads.nth(column).locator("button").click()
        assert heads.nth(column).get_attribute("aria-sort") == sort
        order = np.argsort(figures, kind="stable")[:25]
        assert cells(page, 1) == [str(k) for k in model.labels_[order]]

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


def saved_column(page, name, *which):
    rows = csv.DictReader(io.StringIO(saved(page, *which), newline=""))
    return [row[name] for row in rows]


def test_download(page, report, model):
    expected = {"cluster": model.labels_, "scale": model.scales_, "size": model.sizes_}
    for name, values in expected.items():
        column = np.float64(saved_column(page, name))
        np.testing.assert_allclose(column, values, rtol=1e-5)

    for cell, row_id in zip(saved_column(page, "id"), report[1], strict=True):
        marks = tuple("=+-@\t\r\n")
        is_formula = row_id.lstrip("'").startswith(marks) and row_id != "-2"
        assert cell == ("'" + row_id if is_formula else row_id)

    assert {*saved_column(page, "known")} == {"kind 0", "'=kind 1", "<b>kind 2"}

    page.locator("#exact").check()

    assert saved_column(page, "id") == report[1]


SHOWN = ("#save-shown", "labels-shown.csv")


def test_download_of_the_rows_that_are_shown(page, report, model):
    button = page.locator("#save")
    button_shown = page.locator("#save-shown")

    assert button.inner_text() == "Download all 160 rows (CSV)"
    assert button_shown.is_hidden()

    page.locator("#filter").select_option("1")
    members = np.flatnonzero(model.labels_ == 1)

    assert button_shown.inner_text() == f"Download the {len(members)} rows shown (CSV)"

    page.locator("#exact").check()

    assert saved_column(page, "id", *SHOWN) == [report[1][i] for i in members]
    assert len(saved_column(page, "id")) == 160

    # Search narrows it further, and the file is sorted as the table is.
    matches = [i for i in members if report[1][i].startswith("row 1")]
    search(page, "row 1", f"{len(matches)} of 160 rows")
    page.locator("#heads button").nth(2).click()
    order = sorted(matches, key=lambda i: model.scales_[i])

    assert saved_column(page, "id", *SHOWN) == [report[1][i] for i in order]

    search(page, "nothing like this", "0 of 160 rows")

    assert button_shown.is_hidden()


def test_names_are_kept_and_saved(open_page, report):
    page = open_page(report[0])
    fields = page.locator(".naming input")
    note = page.locator("#names-kept")

    def name_clusters(first, last):
        for k, name in ((0, first), (2, last)):
            fields.nth(k).fill(name)
            fields.nth(k).press("Tab")

    assert page.locator("#save-page").is_hidden()

    name_clusters("  <b>B cells ", "=T cells")

    assert fields.nth(0).input_value() == "<b>B cells"
    assert "This browser keeps the names" in note.inner_text()
    assert "<b>B cells" in page.locator("#legend button").nth(0).inner_text()

    heads = page.locator(".card h3 .called").all_text_contents()

    assert heads == ["<b>B cells", "", "=T cells"]

    options = page.locator("#filter option").all_text_contents()

    assert options == ["all", "0 <b>B cells", "1", "2 =T cells"]

    names = {"0": "<b>B cells", "1": "", "2": "'=T cells"}
    clusters = saved_column(page, "cluster")

    assert saved_column(page, "name") == [names[k] for k in clusters]

    # The same browser knows them again; a saved page has them anywhere.
    page.reload()

    assert fields.nth(0).input_value() == "<b>B cells"

    with page.expect_download() as download:
        page.locator("#save-page").press("Enter")
    file = report[0].with_name("named.html")
    download.value.save_as(file)
    policies = [
        re.search("Security-Policy.*", item.read_text(encoding="utf-8"))[0]
        for item in (report[0], file)
    ]

    assert policies[0] == policies[1]

    named_page = open_page(file)

    assert named_page.locator(".naming input").nth(2).input_value() == "=T cells"
    assert named_page.locator("#save-page").is_hidden()
    assert cells(named_page, 0)[:20] == cells(page, 0)[:20]

    # Taken back, nothing is left of them.
    name_clusters("", "")
    page.reload()

    assert note.is_hidden()
    assert "name" not in saved(page).splitlines()[0]


@pytest.mark.parametrize("allowed", [True, False])
def test_copy_the_table_of_clusters(page, model, allowed):
    # Where the page may not write to the clipboard, the browser's command does.
    write = "window.copied = text" if allowed else "throw new Error('no')"
    page.evaluate(f"""() => {{
        navigator.clipboard.writeText = async (text) => {{ {write}; }};
        const field = () => document.activeElement.value;
        document.execCommand = () => {{ window.copied = field(); }};
    }}""")
    page.locator(".naming input").nth(1).fill("=1+1")
    page.locator(".naming input").nth(1).press("Tab")
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    text = page.evaluate("window.copied")
    head, *lines = (line.split("\t") for line in text.splitlines())

    assert head[:4] == ["Cluster", "Name", "Rows", "Share"]
    assert [line[1] for line in lines] == ["", "'=1+1", ""]
    assert [int(line[2]) for line in lines] == list(np.bincount(model.labels_))
    assert {len(line) for line in lines} == {len(head)}

    # Numbers have all their digits, not those that are shown.
    median_sizes = [np.median(model.sizes_[model.labels_ == k]) for k in range(3)]
    copied_sizes = [float(line[head.index("Median size")]) for line in lines]

    np.testing.assert_allclose(copied_sizes, median_sizes, rtol=1e-5)
    assert page.locator("textarea").count() == 0


def test_paper_is_filled_and_cuts_no_line_and_no_name(open_page, tmp_path):
    long_name = "Customers who order large amounts of everything before holidays"
    rows = np.where(np.arange(X.size).reshape(X.shape) % 97 == 5, np.nan, X)
    model = IhSC(3, missing="fit", random_state=0).fit(rows)
    options = {"names": ["short", long_name, long_name], "labels_true": LABELS}
    file = write_report(rows, model, tmp_path / "r.html", **options)
    paper = {"width": 688, "height": 1000}  # of A4 between its margins
    page = open_page(file, viewport=paper)
    # Rows with cells that were filled in are marked, and the page says why.
    marks = page.locator("#cells .gaps").all_text_contents()

    assert marks == [f"{n} filled" for n in np.isnan(rows).sum(axis=1)[:25] if n]
    assert page.locator("#gaps").is_visible()
    assert ",certainty,filled,known\r\n" in saved(page)

    page.emulate_media(media="print")
    for selector, name, value in (
        ("#stage", "outlineStyle", "none"),
        ("#map, #clusters, .card, tr", "breakInside", "avoid"),
        ("h2, h3, section > p", "breakAfter", "avoid"),
    ):
        styles = f"(all) => all.map((e) => getComputedStyle(e).{name})"
        assert {*page.locator(selector).evaluate_all(styles)} == {value}

    widths = "(all) => all.map((e) => e.getBoundingClientRect().width)"
    section_widths = page.locator("section > p, .scree, .known").evaluate_all(widths)

    assert min(width for width in section_widths if width) > 680
    # Two cards are side by side.
    assert min(page.locator(".card").evaluate_all(widths)) > 330
    assert page.evaluate("document.documentElement.scrollWidth") <= 688

    names = page.locator("#legend button").all()

    assert [long_name in name.inner_text() for name in names] == [False, True, True]

    for name in [*names, *page.locator(".features thead th").all()]:
        assert name.evaluate("e => e.scrollWidth <= e.clientWidth + 1")


def test_hostile_names_are_text_and_certainty_is_a_share(page, report, model):
    certainty = diagnose(X, model.labels_).certainty
    # No probability is none or all, however near to it.
    shares = np.clip(certainty[:25], 1e-9, 1 - 1e-9)

    assert cells(page, 4) == [percent(share) for share in shares]

    names = report[1][:25]
    shortened = [name if len(name) <= 300 else name[:299] + "…" for name in names]

    assert cells(page, 0) == shortened
    # A narrow screen may begin a new line after an underscore.
    assert page.locator("#cells wbr").count() >= 25
    assert page.locator("h1").text_content() == HOSTILE[0]
    assert page.title() == HOSTILE[0]
    assert page.locator("script").count() == 2
    assert page.locator("img, b:not(#tip b)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def violations(page, rules=None):
    """Return what keeps people from using the page, by all rules or some."""
    result = Axe().run(page, options={"runOnly": rules} if rules else None)
    return [
        (v["id"], [n["html"][:120] for n in v["nodes"][:3]])
        for v in result.response["violations"]
        if v["impact"] in ("serious", "critical")
    ]


def test_themes_can_be_read_by_all(open_page, report):
    # Colours are judged at once, not on their way to others.
    settings = {"reduced_motion": "reduce", "color_scheme": "light"}
    page = open_page(report[0], bypass_csp=True, **settings)
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

    scrolling = "getComputedStyle(document.documentElement).scrollBehavior"

    assert page.evaluate(scrolling) == "auto"

    cut_texts = """(selector) => [...document.querySelectorAll(selector)].filter((e) =>
        e.getBoundingClientRect().right > 390 || e.scrollWidth > e.clientWidth + 1
    ).map((e) => e.textContent)"""

    assert page.evaluate(cut_texts, "#heads th, #cells td.number") == []
    assert page.evaluate(cut_texts, ".card, .card tr, .card .number") == []
    assert page.evaluate(cut_texts, "header nav ul, .clusters, .clusters th") == []

    page.emulate_media(color_scheme="dark", media="print")

    assert page.locator("header nav").is_hidden()
    assert page.locator("#rows").is_hidden()
    assert page.locator("#points").is_visible()

    ground = "getComputedStyle(document.body).backgroundColor"

    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_without_script(browser, report):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(report[0].as_uri())

    assert page.get_by_text("need JavaScript").is_visible()
    assert page.locator("#plot").is_hidden()
    assert page.locator("table.clusters").is_visible()

    page.context.close()
