"""Check the built pages: ``python docs/check_site.py docs/_build/html``.

Every page, file and anchor that a page refers to must be there, and nothing that a page
needs to be shown may come from another site. In a browser, pages of each sort are
readable with axe's rules of accessibility and fit a desk's screen and a phone's.
"""

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

NEEDED = {("script", "src"), ("img", "src"), ("link", "href")}
ELSEWHERE = {"canonical", "search", "index", "next", "prev", "author"}
SEEN = ("index", "guide-pages", "start", "guide", "noise", "trust", "scaling")
SEEN += ("statistics", "api", "api-inside", "api/ihgmm.IhSC")
WIDTHS = (1280, 390)


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.needed = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note the anchors and links of a tag."""
        given = dict(attrs)
        self.anchors.update(given[key] for key in ("id", "name") if given.get(key))
        for key in ("href", "src"):
            if given.get(key):
                self.links.append(given[key])
                if (tag, key) in NEEDED and given.get("rel") not in ELSEWHERE:
                    self.needed.append(given[key])


def broken(folder):
    """Return the pages, and a sentence for each link that leads nowhere."""
    files = [p for p in folder.rglob("*.html") if "_static" not in p.parts]
    pages = {path: Page(path) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link in page.needed:
            if urlsplit(link).netloc:
                found.append(f"{name} needs {link} from another site")
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
                if target.is_dir():
                    target = target / "index.html"
            if not target.exists():
                found.append(f"{name} refers to {link}, which is not there")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                found.append(f"{name} refers to {link}: no such anchor")
    return pages, sorted(set(found))


def inaccessible(folder):
    """Return a sentence for each rule that a page breaks in a browser."""
    found = []
    with sync_playwright() as driver:
        names = ("chromium", "chromium-browser", "google-chrome")
        browser = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, names))),
            args=["--no-sandbox", "--disable-gpu"],
        )
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            for name in SEEN:
                page.goto((folder / f"{name}.html").as_uri())
                where = f"{name} at {width} px"
                for rule in Axe().run(page).response["violations"]:
                    first = rule["nodes"][0]["html"]
                    found.append(f"{where}: {rule['id']}: {rule['help']}: {first}")
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    found.append(f"{where} is wider than the screen")
        browser.close()
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    pages, wrong = broken(site)
    print(*wrong, f"{len(pages)} pages, {len(wrong)} broken links", sep="\n")
    unfit = inaccessible(site) if pages else []
    print(*unfit, f"{len(SEEN)} pages in a browser, {len(unfit)} faults", sep="\n")
    sys.exit(bool(wrong or unfit or not pages))
