"""Every page of the built smoke book: whole, light, and fitting every width from desk to phone."""

import functools
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest

from lib import toc
from tests.browser import DESK, PHONE
from tests.site import CUT, HTML, PROJECT, UNTYPESET, look

# A page opens at a desk in daylight, so this order turns it as seldom as may be.
LOOKS = (
    (DESK, "light"),
    (1440, "light"),
    (1024, "light"),
    (768, "light"),
    (PHONE, "light"),
    (PHONE, "dark"),
)
PAGES = toc.listed(PROJECT)
HEAVIEST, MOST = 1_500_000, 15_000  # bytes and nodes of a page

UNNAMED = """() => [...document.querySelectorAll('article :is(img, figure svg, svg[role=img])')]
  .filter(e => !(e.getAttribute('alt') || e.getAttribute('aria-label') || '').trim())
  .map(e => e.outerHTML.slice(0, 120))"""

# sphinx-proof and sphinx-exercise give all their boxes one id, which nothing links to.
TWICE = """() => {
  const ids = [...document.querySelectorAll('article [id]')].map(e => e.id)
    .filter(id => !/^(proof|exercise|solution)(-content)?$/.test(id));
  return ids.filter((id, i) => ids.indexOf(id) !== i);
}"""

# The theme clips what is too wide, so the width of the document alone would hide an overflow:
# whatever reaches beyond the window must lie in a box of its own that scrolls.
WIDE = """() => {
  const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const boxed = e => {
    for (let p = e; p && p.tagName !== 'ARTICLE'; p = p.parentElement) if (scrolls(p)) return true;
    return false;
  };
  const page = document.documentElement;
  const wide = [...document.querySelectorAll('article *')]
    .filter(e => e.getBoundingClientRect().right > page.clientWidth + 1 && !boxed(e))
    .filter(e => !e.closest('.visually-hidden'))
    .slice(0, 5).map(e => e.outerHTML.slice(0, 120));
  return page.scrollWidth > page.clientWidth ? ['the document', ...wide] : wide;
}"""


# Text that gets a word a line makes a row that nobody reads.
TALL = """[...document.querySelectorAll('.rb-table tbody tr')]
  .filter(row => row.checkVisibility() && row.getBoundingClientRect().height > 220)
  .slice(0, 3).map(row => row.closest('figure').id)"""


@pytest.mark.parametrize("name", PAGES, scope="module")  # all tests of a page one after the other
def test_page_loads_clean_and_is_complete(visit, name):
    page, troubles = visit(f"{name}.html")
    assert troubles == []
    assert page.locator("article .math").count() == page.locator("article math").count()
    assert page.evaluate(UNTYPESET) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(TWICE) == []
    assert page.locator("article table.dataframe").count() == 0, "tables go through show_table"
    assert page.locator("article .cell_output img").count() == 0, "figures go through figures.show"
    names = page.locator("details.rb-code > summary").all_inner_texts()
    assert not [name for name in names if name.startswith("Code")], "a folded cell has no name"
    assert "generated:" not in page.content(), "a generated part was not filled in"


@pytest.mark.parametrize("name", PAGES, scope="module")
def test_page_fits_at_every_width_and_cuts_nothing(visit, name):
    page, _ = visit(f"{name}.html")
    for width, scheme in LOOKS:
        look(page, width, scheme)
        assert page.evaluate(WIDE) == [], width
        assert page.evaluate(CUT, width >= 1024) == [], width
        assert page.evaluate(TALL) == [], width
        sheets = page.evaluate(
            "[...document.querySelectorAll('.output:has(.rb-figure)')]"
            ".map(e => getComputedStyle(e).backgroundColor)"
        )
        assert set(sheets) <= {"rgba(0, 0, 0, 0)"}, "figures take the background of the page"


@pytest.mark.parametrize("name", PAGES, scope="module")
def test_a_page_is_light(visit, name, record_property):
    """Weigh a page as a first visit loads it, uncompressed; conftest prints the table."""
    page, _ = visit(f"{name}.html")
    nodes = page.evaluate("document.querySelectorAll('*').length")
    files = page.evaluate(
        "performance.getEntriesByType('resource').map(e => new URL(e.name).pathname)"
    )
    loaded = {f"{name}.html", *(file.lstrip("/") for file in files)}
    size = sum((HTML / file).stat().st_size for file in loaded)
    record_property("page", f"{name:<45}{size / 1e6:8.2f} MB{nodes:8,} nodes")
    assert size <= HEAVIEST and nodes <= MOST


class Links(HTMLParser):
    """What a page links to, and the names that others can link to; quicker than a whole tree."""

    def __init__(self, path):
        super().__init__()
        self.addresses, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.anchors.update(filter(None, [known.get("id")]))
        if tag == "a" and "href" in known:
            self.addresses.append(known["href"])


def test_links_and_downloads_resolve(site):
    read = functools.cache(Links)
    broken, downloads = [], 0
    for name in PAGES:
        for link in read(HTML / f"{name}.html").addresses:
            address, anchor = urldefrag(urljoin(f"{site}{name}.html", link))
            if not address.startswith(site):
                continue
            path = HTML / (urlsplit(address).path.lstrip("/") or "index.html")
            downloads += path.suffix in (".ipynb", ".csv", ".md")
            wanted = anchor if path.suffix == ".html" else ""
            if not path.is_file() or (wanted and wanted not in read(path).anchors):
                broken.append(f"{name}: {link}")
    assert broken == []
    assert downloads, "chapters offer their notebook, source and tables"
