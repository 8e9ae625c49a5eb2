"""The built smoke book in a headless browser: what a reader sees offline, on desk and phone."""

import re
from pathlib import Path
from urllib.parse import urljoin

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup

from lib import claims, toc
from tests.browser import DESK, PHONE, assert_readable
from tests.site import CHAPTER, CUT, HTML, OTHER, PROJECT, UNTYPESET, look

# A front page, a derivation, an experiment, a page of proofs: axe takes seconds for each.
SAMPLE = ("index", CHAPTER, OTHER, "rl/zero-shot/perm")
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")


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

# The one link that is marked, by its place among all, if it lies within the list.
FOLLOWED = """() => {
  const list = document.querySelector('.bd-sidebar-secondary');
  const links = [...list.querySelectorAll('.page-toc a')];
  const marked = links.filter(link => link.matches('.active'));
  const current = links.filter(link => link.matches('[aria-current]'));
  if (marked.length !== 1 || current[0] !== marked[0]) return null;
  const [inner, outer] = [marked[0], list].map(e => e.getBoundingClientRect());
  const seen = inner.height && inner.top >= outer.top && inner.bottom <= outer.bottom;
  return seen ? links.indexOf(marked[0]) - links.length : null;
}"""


@pytest.mark.parametrize("name", SAMPLE, scope="module")  # both tests of a page together
@pytest.mark.parametrize(("width", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_a_page_has_no_barrier(visit, name, width, scheme):
    page, _ = visit(f"{name}.html")
    look(page, width, scheme)
    page.evaluate("document.getAnimations().forEach(each => each.cancel())")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    assert page.evaluate(BARRIERS) == []


@pytest.mark.parametrize("name", SAMPLE, scope="module")
def test_paper_shows_the_text_alone_and_cuts_no_line(visit, name):
    page, _ = visit(f"{name}.html")
    page.set_viewport_size({"width": 680, "height": 900})  # A4 less its margins
    page.emulate_media(media="print")
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".rb-strip", ".rb-depth"):
        assert not any(each.is_visible() for each in page.locator(part).all()), part
    assert page.evaluate(CUT, True) == []
    long = (
        "[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    assert page.evaluate(f"{long}.map(e => e.textContent.slice(0, 80))") == []


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
    look(page, 1440, height=400)  # too low for the whole list
    page.evaluate("scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' })")
    page.wait_for_function(f"({FOLLOWED})() === -1")
    page.evaluate("scrollBy({ top: -2 * innerHeight, behavior: 'instant' })")
    page.wait_for_function(f"({FOLLOWED})() < -1")
    look(page, 1440)  # a window that changes is no move of the reader: the mark stays one, in sight
    page.wait_for_function(f"({FOLLOWED})() !== null")


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
    assert_readable(page)


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
def test_the_first_screen_of_a_chapter_has_problem_claims_findings_and_figure(visit, entry):
    page, _ = visit(f"{entry.file}.html")
    look(page, height=800)
    found = page.locator(".rb-first .rb-found ul")
    assert found.locator("li strong").count() >= 2
    assert found.locator("li .rb-verdict").count() == found.locator("li").count()
    words = page.locator(".rb-first-text > p > strong:first-child").all_inner_texts()
    assert words == ["Claimed.", "Found.", "Use this."]
    for part in (".rb-first-text", ".rb-first .rb-glance a.rb-count", ".rb-first figure svg"):
        boxes = [each.bounding_box() for each in page.locator(part).all()]
        assert boxes and max(box["y"] + box["height"] for box in boxes) <= 800, part
    look(page, PHONE)
    text, figure = (page.locator(f".rb-first {e}") for e in ("> .rb-first-text", "> figure"))
    assert text.bounding_box()["y"] < figure.bounding_box()["y"], "on a phone words come first"


def test_the_front_page_begins_with_counts_and_three_findings(visit):
    page, _ = visit("index.html")
    look(page, height=800)
    for part in (".rb-glance a.rb-count", ".rb-front strong"):
        places = [each.bounding_box()["y"] for each in page.locator(part).all()]
        assert places and max(places) < 800
    assert page.locator(".rb-front svg").count() == 3
    assert page.locator(".rb-map .sd-card").count() == len(toc.chapters(PROJECT))


ROWS = "#rb-board > tbody > tr:not(.rb-part)"


def shown_rows(page):
    return page.locator(f"{ROWS}:visible")


def test_the_scoreboard_is_filtered_ordered_and_remembered(visit):
    page, troubles = visit("scoreboard.html?chapter=linear-bandits&show=all")
    look(page)
    every = page.locator(ROWS).count()
    mine = page.locator(ROWS.replace("tbody", 'tbody[data-chapter="linear-bandits"]')).count()
    assert 0 < shown_rows(page).count() == mine < every
    page.select_option("#rb-filter [name=nature]", "theorem")
    theorems = shown_rows(page).count()
    assert 0 < theorems < mine
    assert "nature=theorem" in page.url
    assert f"{theorems} of {every} rows" in page.locator("#rb-filter output").inner_text()
    name = page.locator("#rb-board thead button", has_text="Claim")
    name.click()
    up = shown_rows(page).evaluate_all("rows => rows.map(row => row.id)")
    name.click()
    down = shown_rows(page).evaluate_all("rows => rows.map(row => row.id)")
    assert up == down[::-1] and up != down
    page.click("#rb-filter [type=reset]")
    page.wait_for_function("!location.search")
    headlines = page.locator(f"{ROWS}.rb-headline").count()
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
    rows = page.locator(ROWS)
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


def test_every_row_of_the_guide_has_a_method_and_its_constants(visit):
    page, _ = visit("guide.html")
    rows = page.locator(".rb-guide tbody tr")
    assert rows.count() >= 10
    for text in page.locator('.rb-guide td[data-label="Start from"]').all_inner_texts():
        assert "search" in text and "not searched" not in text and "no search" not in text
    evidence = page.locator('.rb-guide td[data-label="Evidence"]:has(a[href^="claims/"])')
    assert evidence.count() == rows.count()
