"""Pictures of the built book for the README: the front page and the page of a claim."""

import functools
import http.server
import shutil
import sys
import threading

from lib.errors import BookError
from lib.paths import project

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHOTS = {
    "screenshot.png": ("index.html", 1280, 800),
    "screenshot-claim.png": ("claims/conv-syn-mcr.html", 900, 760),
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that says nothing."""

    def log_message(self, *_):
        pass


def main() -> int:
    """Write the pictures into book/_static; `make book` must have built the HTML."""
    from playwright.sync_api import sync_playwright

    where = project()
    html = where.build / "html"
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None or not (html / "index.html").exists():
        raise BookError("pictures need a built book (`make book`) and Chromium")
    serve = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server, sync_playwright() as p:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = p.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, (page, width, height) in SHOTS.items():
            shot = browser.new_page(viewport={"width": width, "height": height})
            shot.goto(f"http://127.0.0.1:{server.server_port}/{page}", wait_until="load")
            shot.screenshot(path=where.book / "_static" / name)
        browser.close()
        server.shutdown()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"screenshots: {error}")
