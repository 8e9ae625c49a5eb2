"""The built smoke book in a headless browser: what a reader sees offline, on desk and phone."""

import functools
import http.server
import itertools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup

from ci.site import site_of
from lib import claims, toc
from lib.paths import CODE, project_at

PROJECT = project_at(CODE)
HTML = site_of(PROJECT, "smoke").html
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESK, PHONE = 1280, 390
PAGES = toc.listed(PROJECT)


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


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
def browser():
    path = find_browser()
    if path is None:
        message = f"no browser found; looked for {', '.join(BROWSERS)}"
        if os.environ.get("REGRETBOOK_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


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
        page.evaluate("async () => { await window.MathJax?.startup?.promise }")
        return page, troubles

    yield open_page
    context.close()


def look(page, width=DESK, scheme="light"):
    """Turn a page to a width and a colour scheme, as its reader's device would."""
    page.bring_to_front()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'", timeout=5000)


UNTYPESET = r"""() => {
  const inert = 'pre, code, script, style, mjx-container, svg';
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
    .filter(e => !e.closest('mjx-assistive-mml, .visually-hidden'))
    .slice(0, 5).map(e => e.outerHTML.slice(0, 120));
  return page.scrollWidth > page.clientWidth ? ['the document', ...wide] : wide;
}"""


@pytest.mark.parametrize("name", PAGES, scope="module")  # all tests of a page one after the other
def test_page_loads_clean_and_is_complete(visit, name):
    page, troubles = visit(f"{name}.html")
    assert troubles == []
    assert page.locator("mjx-merror").count() == 0
    maths = page.locator("article .math")
    assert maths.count() == page.locator("article .math:has(mjx-container)").count()
    assert page.evaluate(UNTYPESET) == []
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(TWICE) == []
    assert "generated:" not in page.content(), "a generated part was not filled in"


@pytest.mark.parametrize("name", PAGES, scope="module")
def test_page_fits_on_desk_and_phone_in_both_modes(visit, name):
    page, _ = visit(f"{name}.html")
    for width, scheme in itertools.product((DESK, PHONE), ("light", "dark")):
        look(page, width, scheme)
        assert page.evaluate(WIDE) == []
        sheets = page.evaluate(
            "[...document.querySelectorAll('.output:has(.rb-figure)')]"
            ".map(e => getComputedStyle(e).backgroundColor)"
        )
        assert set(sheets) <= {"rgba(0, 0, 0, 0)"}, "figures take the background of the page"


def sample_of_claims():
    """Return the first claim of every chapter; all of them have one template."""
    found = {claim.chapter: id for id, claim in reversed(claims.ledger(PROJECT).items())}
    return sorted(found.values())


@pytest.mark.parametrize("id", sample_of_claims())
def test_the_page_of_a_claim_is_light_complete_and_fits(visit, id):
    page, troubles = visit(f"claims/{id}.html")
    assert troubles == []
    assert page.locator("mjx-merror").count() == 0
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
    assert page.locator("article figure.rb-figure svg").count() >= 1
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
