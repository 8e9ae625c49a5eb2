"""One headless browser for all tests that need one."""

import itertools
import os
import re
import shutil

import pytest

DESK, PHONE = 1280, 390
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


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


def assert_readable(page):
    """Check that a page without the theme fits and has contrast: desk and phone, day and night."""
    for width, scheme in itertools.product((DESK, PHONE), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ink, paper = (
            sum(map(int, re.findall(r"\d+", colour)[:3]))
            for colour in page.evaluate(
                "['color', 'backgroundColor'].map(each => getComputedStyle(document.body)[each])"
            )
        )
        assert ink < 300 < paper if scheme == "light" else paper < 300 < ink
