"""The built smoke book for the browser tests: built once for all workers, and one tab for each.

Whoever asks first builds it, the others wait for that. A page stays open for the tests of it that
follow, so tests that share pages take them in the same order.
"""

import functools
import http.server
import subprocess
import sys
import threading
from urllib.parse import urljoin, urlsplit

import filelock
import pytest

from ci.site import site_of
from lib.paths import CODE, project_at
from tests.browser import DESK

PROJECT = project_at(CODE)
HTML = site_of(PROJECT, "smoke").html
CHAPTER, OTHER = "foundations/linear-bandits/index", "bandits/corrupted-users/experiments"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that says nothing, and whose styles and scripts a browser need not ask for twice."""

    def log_message(self, *_):
        pass

    def end_headers(self):
        if "/_static/" in self.path:
            self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """Build the smoke book (what is fresh is not run again) and serve it; return its address."""
    own = tmp_path_factory.getbasetemp()
    built = (own if worker_id == "master" else own.parent) / "smoke-book-is-built"
    with filelock.FileLock(f"{built}.lock"):
        if not built.exists():
            _build()
            built.touch()
    handler = functools.partial(Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _build():
    command = [sys.executable, "-m", "ci", "build", "--profile", "smoke"]
    done = subprocess.run(command, cwd=CODE, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


class Tab:
    """One tab that visits page after page and notes the troubles of each."""

    def __init__(self, page, site):
        self.page, self.site, self.address = page, site, ""
        self.troubles: list[str] = []
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("pageerror", lambda error: self.troubles.append(f"script error: {error}"))
        page.on("requestfailed", lambda asked: self.troubles.append(f"failed: {asked.url}"))

    def visit(self, address):
        """Open an address unless it is open, at a desk and in daylight; give page and troubles."""
        if address != self.address:
            self.page.goto("about:blank")  # what the last page still asks for is its own trouble
            self.troubles, self.address = [], address
            self.page.set_viewport_size({"width": DESK, "height": 900})
            self.page.emulate_media(media="screen", color_scheme="light")
            self.page.goto(urljoin(self.site, address), wait_until="load")
            self.page.evaluate("document.fonts.ready.then(() => null)")
        return self.page, self.troubles

    def _request(self, asked):
        other = not asked.url.startswith(self.site)
        if other and urlsplit(asked.url).scheme in ("http", "https"):
            self.troubles.append(f"asks another host: {asked.url}")

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(f"console {message.type}: {message.text}")

    def _response(self, answer):
        if answer.status >= 400:
            self.troubles.append(f"status {answer.status}: {answer.url}")


@pytest.fixture(scope="session")
def visit(browser, site):
    """Return a function that opens an address and gives its page and the troubles it had."""
    context = browser.new_context()
    yield Tab(context.new_page(), site).visit
    context.close()


def look(page, width=DESK, scheme="light", height=900):
    """Turn a page to a width and a colour scheme, as its reader's device would."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media="screen", color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'", timeout=5000)
    page.evaluate("document.fonts.ready.then(() => true)")  # other letters make other lines
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
