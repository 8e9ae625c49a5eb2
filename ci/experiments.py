"""The experiments that a page names, found in its code before anything runs."""

import ast
from fnmatch import fnmatchcase

from ci.contents import Page
from lib.errors import BookError, nearest


def patterns(page: Page) -> list[str]:
    """Return the names that a page gives its experiments; what is computed in a name is a `*`."""
    found = []
    for cell in page.cells:
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:  # a cell with a magic command
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node.func) == "experiment":
                names = [*node.args, *(k.value for k in node.keywords if k.arg == "name")]
                found += [_pattern(names[0])] if names else []
    return list(dict.fromkeys(found))


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _pattern(name: ast.expr) -> str:
    match name:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_pattern(part) for part in parts)
    return "*"


def named(page: Page, name: str) -> bool:
    """Say whether a page has an experiment of this name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns(page) if pattern != "*")


def mentions(page: Page, name: str) -> bool:
    """Say whether a page itself names a table, as an experiment or otherwise."""
    return named(page, name) or any(f'"{name}"' in cell.source for cell in page.cells)


def having(pages: list[Page], names: list[str]) -> list[Page]:
    """Return the pages that may have some of these experiments; refuse one that none can have."""
    known = {page.name: patterns(page) for page in pages}
    every = dict.fromkeys(pattern for each in known.values() for pattern in each)
    for name in names:
        if not any(fnmatchcase(name, pattern) for pattern in every):
            where = pages[0].chapter if len(pages) > 1 else pages[0].name
            has = f"; it has {', '.join(every)}" if every else "; it has none"
            raise BookError(f"{where} has no experiment {name!r}{nearest(name, every) or has}")
    return [
        page
        for page in pages
        if any(fnmatchcase(name, pattern) for name in names for pattern in known[page.name])
    ]
