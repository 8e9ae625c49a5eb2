"""The built smoke book in a headless browser: what a reader sees offline, on desk and phone."""

import functools
import http.server
import itertools
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup

from ci.site import site_of
from lib import claims, toc
from lib.paths import CODE, project_at

PROJECT = project_at(CODE)
HTML = site_of(PROJECT, "smoke").html
DESK, PHONE = 1280, 390
WIDTHS = (1440, DESK, 1024, 768, PHONE)
PAGES = toc.listed(PROJECT)
# bytes and nodes of a page; the scoreboard has all claims in one table, also without scripts
LIGHT, SCOREBOARD = (1_500_000, 15_000), (2_000_000, 20_000)
CHAPTER, OTHER = "foundations/linear-bandits/index", "bandits/corrupted-users/experiments"
# A front page, a derivation, an experiment, a page of proofs: axe takes seconds for each.
SAMPLE = ("index", CHAPTER, OTHER, "rl/zero-shot/perm")
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site():
    """Build the smoke book (what is fresh is not run again) and serve it; return its address."""
    build = subprocess.run(
        [sys.executable, "-m", "ci", "build", "--profile", "smoke"],
        cwd=CODE,
        capture_output=True,
        text=True,
    )
    assert build.returncode == 0, f"{build.stdout[-4000:]}\n{build.stderr[-4000:]}"
    handler = functools.partial(Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def visit(browser, site):
    """Return a function that opens an address and gives its page and the troubles it had.

    The last page stays open for the next test of it; dozens of open ones would keep all cores busy.
    """
    context = browser.new_context(color_scheme="light")
    shown = {}

    def open_page(address):
        if address not in shown:
            for page, _ in shown.values():
                page.close()
            shown.clear()
            shown[address] = load(address)
        return shown[address]

    def load(address):
        page, troubles = context.new_page(), []

        def request(asked):
            if urlsplit(asked.url).scheme in ("http", "https") and not asked.url.startswith(site):
                troubles.append(f"asks another host: {asked.url}")

        def console(message):
            if message.type in ("error", "warning"):
                troubles.append(f"console {message.type}: {message.text}")

        def response(answer):
            if answer.status >= 400:
                troubles.append(f"status {answer.status}: {answer.url}")

        page.on("request", request)
        page.on("console", console)
        page.on("response", response)
        page.on("pageerror", lambda error: troubles.append(f"script error: {error}"))
        page.on("requestfailed", lambda asked: troubles.append(f"failed: {asked.url}"))
        page.goto(urljoin(site, address), wait_until="load")
        page.evaluate("document.fonts.ready.then(() => null)")
        return page, troubles

    yield open_page
    context.close()


def look(page, width=DESK, scheme="light", height=900):
    """Turn a page to a width and a colour scheme, as its reader's device would."""
    page.bring_to_front()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'", timeout=5000)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


UNTYPESET = r"""() => {
  const inert = 'pre, code, script, style, math, svg';
  const walker = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  const left = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const raw = /\\[(\[]|\$\$|\$[^$\s][^$\n]*\$/.test(node.data);
    if (raw && !node.parentElement.closest(inert)) left.push(node.data.trim().slice(0, 120));
  }
  return left;
}"""

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


# A badge, a number or a name must lie inside every box that hides what leaves it, also inside one
# that scrolls; so must a formula where there is room for it. On a phone a long one scrolls.
CUT = """formulas => {
  const labels = '.rb-verdict, .rb-count, .eqno, .rb-number, summary, .rb-strip *, .rb-depth *';
  const inside = (inner, outer, slack = 1) =>
    inner.left >= outer.left - slack && inner.right <= outer.right + slack;
  const cut = e => {
    const box = e.getBoundingClientRect();
    for (let p = e.parentElement; box.width && p && p.tagName !== 'BODY'; p = p.parentElement) {
      if (getComputedStyle(p).overflowX !== 'visible' && !inside(box, p.getBoundingClientRect()))
        return true;
    }
    return false;
  };
  const seen = e => e.checkVisibility();
  const found = [...document.querySelectorAll('.bd-content ' + `:is(${labels})`)].filter(seen)
    .filter(cut);
  const long = [...document.querySelectorAll('.rb-formula')].filter(seen)
    .filter(e => e.scrollWidth > e.clientWidth + 1);
  const letters = [...document.querySelectorAll('figure svg')].filter(seen).flatMap(svg =>
    [...svg.querySelectorAll('text')].filter(text =>
      !inside(text.getBoundingClientRect(), svg.getBoundingClientRect(), 6)));  // another font
  return [...found, ...letters, ...(formulas ? long : [])].slice(0, 5)
    .map(e => e.textContent.trim().slice(0, 80));
}"""

BARRIERS = """async () => {
  const level = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
  const found = await axe.run(document, { runOnly: level, resultTypes: ['violations'] });
  return found.violations.map(v => `${v.id}: ${v.nodes.length}, ${v.nodes[0].html.slice(0, 120)}`);
}"""

SHIFT = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(e => (sum += e.value)))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 500);
})"""

FOLLOWED = """() => {
  const list = document.querySelector('.bd-sidebar-secondary');
  const active = [...list.querySelectorAll('.nav-link.active')].pop();
  const [inner, outer] = [active, list].map(e => e.getBoundingClientRect());
  return inner.top >= outer.top && inner.bottom <= outer.bottom;
}"""


@pytest.mark.parametrize("name", PAGES, scope="module")  # all tests of a page one after the other
def test_page_loads_clean_and_is_complete(visit, name):
    page, troubles = visit(f"{name}.html")
    assert troubles == []
    assert page.locator("article .math").count() == page.locator("article math").count()
    assert page.evaluate(UNTYPESET) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(TWICE) == []
    assert page.locator("article table.dataframe").count() == 0, "tables go through show_table"
    names = page.locator("details.rb-code > summary").all_inner_texts()
    assert not [name for name in names if name.startswith("Code")], "a folded cell has no name"
    assert "generated:" not in page.content(), "a generated part was not filled in"


@pytest.mark.parametrize("name", PAGES, scope="module")
def test_page_fits_at_every_width_and_cuts_nothing(visit, name):
    page, _ = visit(f"{name}.html")
    for width, scheme in ((PHONE, "dark"), *((width, "light") for width in WIDTHS)):
        look(page, width, scheme)
        assert page.evaluate(WIDE) == [], width
        assert page.evaluate(CUT, width >= 1024) == [], width
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
    heaviest, most = SCOREBOARD if name == "scoreboard" else LIGHT
    assert size <= heaviest and nodes <= most


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize(("width", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_a_page_has_no_barrier(visit, name, width, scheme):
    page, _ = visit(f"{name}.html")
    look(page, width, scheme)
    page.evaluate("document.getAnimations().forEach(each => each.cancel())")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(BARRIERS) == []


@pytest.mark.parametrize("name", SAMPLE)
def test_formulas_are_no_tab_stops_and_read_without_a_script(browser, site, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(urljoin(site, f"{name}.html"))
    formulas = page.locator("article math")
    sizes = [formula.bounding_box() for formula in formulas.all()[:20]]
    assert all(box and box["width"] > 0 for box in sizes)
    assert page.locator("article :is(math, .math, .rb-formula)[tabindex]").count() == 0
    context.close()


@pytest.mark.parametrize("name", SAMPLE)
def test_nothing_moves_while_a_page_loads(browser, site, name):
    context = browser.new_context(viewport={"width": DESK, "height": 900})
    page = context.new_page()
    page.goto(urljoin(site, f"{name}.html"), wait_until="load")
    page.evaluate("document.fonts.ready.then(() => null)")
    assert page.evaluate(SHIFT) < 0.1
    context.close()


def test_a_reader_chooses_whether_code_is_open_and_the_book_remembers(browser, site):
    context = browser.new_context()
    page = context.new_page()
    page.goto(urljoin(site, f"{CHAPTER}.html"))
    folds = page.locator("details.rb-code")
    names = folds.locator("summary").all_inner_texts()
    assert folds.count() and all(re.search(r"\S.*\d+ lines?$", name, re.S) for name in names)
    assert page.locator("details.rb-code[open]").count() == 0
    assert page.locator(".cell_input:not(details *)").count(), "literal lines stay open"
    page.get_by_role("button", name="Read with code").click()
    assert page.locator("details.rb-code[open]").count() == folds.count()
    page.goto(urljoin(site, f"{OTHER}.html"))
    page.locator("details.rb-code[open]").first.wait_for()
    assert page.locator("details.rb-code:not([open])").count() == 0
    page.get_by_role("button", name="Read", exact=True).click()
    assert page.locator("details.rb-code[open]").count() == 0
    context.close()


def test_the_contents_follow_the_reader(visit):
    page, _ = visit(f"{CHAPTER}.html")
    look(page, 1440)
    page.set_viewport_size({"width": 1440, "height": 400})
    last = page.locator("article section[id]").last
    last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 10_000)
    active = page.locator(".bd-sidebar-secondary .nav-link.active").last
    active.wait_for()
    page.wait_for_function(FOLLOWED)


def test_a_figure_is_an_object_with_number_picture_and_data(visit):
    page, _ = visit(f"{CHAPTER}.html")
    look(page)
    figure = page.locator(".cell figure.rb-figure").first
    assert re.match(r"Figure \d+\.\d+\.", figure.locator("figcaption").inner_text())
    offers = figure.locator(".rb-strip :is(a, button)").all_inner_texts()
    assert set(offers) >= {"Link", "SVG", "Data", "PNG"}
    with page.expect_download() as download:
        figure.get_by_role("button", name="PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as download:
        figure.get_by_role("link", name="Data").click()
    assert "series" in Path(download.value.path()).read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize("name", SAMPLE)
def test_paper_shows_the_text_alone_and_cuts_no_line(browser, site, name):
    context = browser.new_context(viewport={"width": 680, "height": 900})  # A4 less its margins
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto(urljoin(site, f"{name}.html"), wait_until="load")
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".rb-strip", ".rb-depth"):
        assert not any(each.is_visible() for each in page.locator(part).all()), part
    assert page.evaluate(CUT, True) == []
    long = (
        "[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    assert page.evaluate(f"{long}.map(e => e.textContent.slice(0, 80))") == []
    context.close()


def sample_of_claims():
    """Return the first claim of every chapter; all of them have one template."""
    found = {claim.chapter: id for id, claim in reversed(claims.ledger(PROJECT).items())}
    return sorted(found.values())


@pytest.mark.parametrize("id", sample_of_claims())
def test_the_page_of_a_claim_is_light_complete_and_fits(visit, id):
    page, troubles = visit(f"claims/{id}.html")
    assert troubles == []
    assert page.locator(".rb-verdict").count() >= 1
    assert len(page.content()) < 150_000
    for width, scheme in itertools.product((DESK, PHONE), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ink, paper = page.evaluate(
            "['color', 'backgroundColor'].map(each => getComputedStyle(document.body)[each])"
        )
        assert ink != paper


@pytest.mark.parametrize("id", sample_of_claims()[:3])
def test_the_page_of_a_claim_says_why_and_can_be_copied(visit, id):
    page, _ = visit(f"claims/{id}.html")
    for question in page.locator("section:has(.rb-verdict)").all():
        if question.locator("h2 .rb-verdict").count():
            verdict = question.locator("h2 .rb-verdict").inner_text().lower()
            why = question.locator(".why").inner_text().lower()
            assert verdict in why or verdict == "not run"
    assert page.get_by_role("button", name="Copy link").count() == 1
    assert "@incollection" in page.locator("pre.bibtex").inner_text()
    broken = "[...document.images].filter(e => e.complete && !e.naturalWidth).map(e => e.src)"
    assert page.evaluate(broken) == []


def test_search_finds_a_claim_by_its_id(visit):
    id = sample_of_claims()[0]
    page, troubles = visit(f"search.html?q={id}")
    first = page.locator("#rb-found-claims li a").first
    first.wait_for(timeout=10_000)
    assert first.get_attribute("href") == f"claims/{id}.html"
    assert troubles == []


@pytest.mark.parametrize("entry", [e for e in toc.entries(PROJECT) if e.page == toc.INDEX])
def test_what_a_chapter_found_is_above_the_fold(visit, entry):
    page, _ = visit(f"{entry.file}.html")
    look(page, height=800)
    found = page.locator(".rb-found ul")
    assert found.locator("li strong").count() >= 2
    assert found.locator("li .rb-verdict").count() == found.locator("li").count()
    box = found.bounding_box()
    assert box["y"] + box["height"] <= 800


def test_the_front_page_begins_with_counts_and_three_findings(visit):
    page, _ = visit("index.html")
    look(page, height=800)
    for part in (".rb-glance a.rb-count", ".rb-front strong"):
        places = [each.bounding_box()["y"] for each in page.locator(part).all()]
        assert places and max(places) < 800
    assert page.locator(".rb-front svg").count() == 3
    assert page.locator(".rb-map .sd-card").count() == len(toc.chapters(PROJECT))


def shown_rows(page):
    return page.locator("#rb-board tr[data-chapter]:visible")


def test_the_scoreboard_is_filtered_ordered_and_remembered(visit):
    page, troubles = visit("scoreboard.html?chapter=linear-bandits&show=all")
    look(page)
    every = page.locator("#rb-board tr[data-chapter]").count()
    mine = page.locator('#rb-board tr[data-chapter="linear-bandits"]').count()
    assert 0 < shown_rows(page).count() == mine < every
    page.select_option("#rb-filter [name=nature]", "theorem")
    theorems = shown_rows(page).count()
    assert 0 < theorems < mine
    assert "nature=theorem" in page.url
    assert f"{theorems} of {every} rows" in page.locator("#rb-filter output").inner_text()
    name = page.locator("#rb-board thead button", has_text="Claim")
    name.click()
    up = shown_rows(page).evaluate_all("rows => rows.map(row => row.dataset.name)")
    name.click()
    down = shown_rows(page).evaluate_all("rows => rows.map(row => row.dataset.name)")
    assert up == down[::-1] and up != down
    page.click("#rb-filter [type=reset]")
    page.wait_for_function("!location.search")
    headlines = page.locator('#rb-board tr[data-headline="yes"]').count()
    assert shown_rows(page).count() == headlines
    assert page.evaluate(UNTYPESET) == []
    assert troubles == []


def test_a_link_into_the_scoreboard_opens_what_it_names(visit):
    claim = next(each for each in claims.ledger(PROJECT).values() if each.group)
    page, _ = visit(f"scoreboard.html#claim-{claim.id}")
    row = page.locator(f'[id="claim-{claim.id}"]')
    row.wait_for(state="visible", timeout=5000)


def test_without_scripts_the_scoreboard_is_a_table(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}scoreboard.html")
    assert not page.locator("#rb-filter").is_visible()
    rows = page.locator("#rb-board tr[data-chapter]")
    assert rows.count() == shown_rows(page).count() > 0
    context.close()


def test_pages_carry_what_scholarly_search_reads(site):
    for name in ("index", toc.entries(PROJECT)[0].file, f"claims/{sample_of_claims()[0]}"):
        soup = BeautifulSoup((HTML / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        tags = {tag["name"]: tag["content"] for tag in soup.find_all("meta", attrs={"name": True})}
        assert tags["citation_title"] and tags["citation_author"]
        assert tags["citation_publication_date"].isdecimal()


def test_every_claim_has_its_page(site):
    assert {path.stem for path in (HTML / "claims").glob("*.html")} == set(claims.ledger(PROJECT))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_take_the_colour_of_the_text(visit, scheme):
    page, _ = visit("foundations/linear-bandits/index.html")
    look(page, scheme=scheme)
    ink = page.evaluate("getComputedStyle(document.body).color")
    labels = page.evaluate(
        "[...document.querySelectorAll('figure.rb-figure svg text')]"
        ".map(e => getComputedStyle(e).fill)"
    )
    assert labels and set(labels) == {ink}


def test_front_page_shows_a_figure_and_the_scoreboard(visit):
    page, _ = visit("index.html")
    assert page.locator("article .rb-thumb svg").count() >= 1
    assert page.locator("article .rb-verdict").count() >= 1


def test_search_finds_linucb(visit):
    page, troubles = visit("search.html?q=LinUCB")
    results = page.locator("#search-results li a")
    results.first.wait_for(timeout=10_000)
    assert "Linear bandits" in " ".join(results.all_inner_texts())
    assert troubles == []


def test_links_and_downloads_resolve(site):
    known: dict[Path, set[str]] = {}

    def anchors(path):
        if path not in known:
            soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
            known[path] = {tag["id"] for tag in soup.find_all(id=True)}
        return known[path]

    broken, downloads = [], 0
    for name in PAGES:
        soup = BeautifulSoup((HTML / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        for tag in soup.find_all("a", href=True):
            address, anchor = urldefrag(urljoin(f"{site}{name}.html", tag["href"]))
            if not address.startswith(site):
                continue
            path = HTML / (urlsplit(address).path.lstrip("/") or "index.html")
            downloads += path.suffix in (".ipynb", ".csv", ".md")
            if not path.is_file() or (
                anchor and path.suffix == ".html" and anchor not in anchors(path)
            ):
                broken.append(f"{name}: {tag['href']}")
    assert broken == []
    assert downloads, "chapters offer their notebook, source and tables"


def test_every_row_of_the_guide_has_a_method_and_its_constants(visit):
    page, _ = visit("guide.html")
    rows = page.locator(".rb-guide tbody tr")
    assert rows.count() >= 10
    for text in page.locator('.rb-guide td[data-label="Start from"]').all_inner_texts():
        assert "search" in text and "not searched" not in text and "no search" not in text
    evidence = page.locator('.rb-guide td[data-label="Evidence"]:has(a[href^="claims/"])')
    assert evidence.count() == rows.count()
