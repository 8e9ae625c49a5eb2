"""What the theme leaves to do after rendering: pages lose what they never use and gain names.

The theme brings its icons twice, as a font and as a script of 1.5 MB that draws them again, and the
index of the search on every page although only the search page asks it. The arrows that open a
chapter in the sidebar have no name. Its script that marks in the contents where the reader is looks
for them by an id; without it `reading.js` alone marks them.
"""

import re
from pathlib import Path

ICONS = r"scripts/fontawesome\.js"
SEARCH = r"(_static/searchtools|_static/language_data|searchindex)\.js"
FONTS = ("text-regular", "text-semibold", "math")  # what the first screen needs
ARROW = '<summary><span class="toctree-toggle"'
CONTENTS = ' id="pst-page-toc-nav"'


def finish(book: Path) -> None:
    """Finish every page of a book, and remove files that no page asks for."""
    for path in book.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        done = page(text, searches=path.name == "search.html")
        if done != text:
            path.write_text(done, encoding="utf-8")
    for path in (*book.glob("_static/**/*.map"), *book.glob("_static/scripts/fontawesome.js*")):
        path.unlink(missing_ok=True)


def page(text: str, searches: bool = False) -> str:
    """Return a page without scripts that it does not use; only the search page searches."""
    unused = ICONS if searches else f"({ICONS}|{SEARCH})"
    text = re.sub(rf'\s*<script [^>]*src="[^"]*{unused}[^"]*"[^>]*></script>', "", text)
    text = text.replace(ARROW, ARROW.replace(">", ' aria-label="Pages of this chapter">', 1))
    text = text.replace(CONTENTS, "")
    return re.sub(r'(<html [^>]*data-content_root="([^"]*)".*?<head>)', preload, text, flags=re.S)


def preload(found: re.Match) -> str:
    """Return the head of a page with the fonts that it will need, before anything is drawn."""
    kind = 'rel="preload" as="font" type="font/woff2" crossorigin'
    links = (
        f'\n    <link {kind} href="{found[2]}_static/fonts/stix-two-{name}.woff2" />'
        for name in FONTS
    )
    return found[1] + "".join(links)
