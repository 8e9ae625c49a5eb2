"""What the theme leaves to do after rendering: pages lose what they never use and gain names.

The theme brings its icons twice, as a font and as a script of 1.5 MB that draws them again, two
thousand names for them of which a dozen are used, the index of the search on every page although
only the search page asks it, and what cells, code and tabs need on pages without any. The arrows
that open a chapter in the sidebar have no name. Its script that marks in the contents where the
reader is looks for them by an id; without it `reading.js` alone marks them.
"""

import re
from collections.abc import Callable
from pathlib import Path

ICONS = r"scripts/fontawesome\.js"
SEARCH = r"(_static/searchtools|_static/language_data|searchindex)\.js"
# What else a page does not use unless this stands in it.
NEEDED = {
    r"_static/mystnb\.\w+\.css": 'class="cell ',
    r"_static/(copybutton\.css|copybutton\.js|clipboard\.min\.js)": 'class="highlight',
    r"_static/design-tabs\.js": "sd-tab",
}
ICON = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"[^"]*"\}')
FONTS = ("text-regular", "text-semibold", "math")  # what the first screen needs
ARROW = '<summary><span class="toctree-toggle"'
CONTENTS = ' id="pst-page-toc-nav"'


def finish(book: Path) -> None:
    """Finish every page of a book, and remove files that no page asks for."""
    names: set[str] = set()
    for path in book.rglob("*.html"):
        done = _rewrite(path, lambda text, path=path: page(text, path.name == "search.html"))
        names.update(re.findall(r"\bfa-[\w-]+", done))
    for path in book.glob("_static/**/*.js"):
        names.update(re.findall(r"\bfa-[\w-]+", path.read_text(encoding="utf-8")))
    for path in book.glob("_static/styles/pydata-sphinx-theme.css"):
        _rewrite(path, lambda text: icons(text, names))
    for path in (*book.glob("_static/**/*.map"), *book.glob("_static/scripts/fontawesome.js*")):
        path.unlink(missing_ok=True)


def _rewrite(path: Path, change: Callable[[str], str]) -> str:
    """Change a file unless it stays what it is, and return what it holds then."""
    text = path.read_text(encoding="utf-8")
    done = change(text)
    if done != text:
        path.write_text(done, encoding="utf-8")
    return done


def icons(style: str, names: set[str]) -> str:
    """Return the style of the theme without icons that nobody names."""

    def kept(rule: re.Match) -> str:
        known = names.intersection(re.findall(r"\.(fa-[\w-]+):before", rule[1]))
        return rule[0] if known else ""

    return ICON.sub(kept, style)


def page(text: str, searches: bool = False) -> str:
    """Return a page without scripts and styles that it does not use; only one page searches."""
    never = [ICONS] if searches else [ICONS, SEARCH]
    for unused in [*never, *(asset for asset, mark in NEEDED.items() if mark not in text)]:
        text = re.sub(rf'\s*<script [^>]*src="[^"]*{unused}[^"]*"[^>]*></script>', "", text)
        text = re.sub(
            rf'\s*<link [^>]*rel="stylesheet"[^>]*href="[^"]*{unused}[^"]*"[^>]*>', "", text
        )
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
