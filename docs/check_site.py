"""Check the links of the built pages: ``python docs/check_site.py docs/_build/html``.

Every page, file and anchor that a page refers to must be there, and nothing that a page
needs to be shown may come from another site.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

NEEDED = {("script", "src"), ("img", "src"), ("link", "href")}
ELSEWHERE = {"canonical", "search", "index", "next", "prev", "author"}


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


if __name__ == "__main__":
    pages, found = broken(Path(sys.argv[1]).resolve())
    print(*found, f"{len(pages)} pages, {len(found)} broken links", sep="\n")
    sys.exit(bool(found or not pages))
