"""The executable pages of the book: their text, code cells and parameters, chapter by chapter."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ci.parameters import Parameter, parse_cell
from lib import toc
from lib.cells import Cell, code_cells, code_digest
from lib.errors import BookError, nearest
from lib.paths import Project

Pages = dict[str, "Page"]


class Page(NamedTuple):
    """A page with a parameters cell; `file` is its path below book/ without suffix."""

    chapter: str
    page: str
    file: str
    title: str
    text: str
    cells: list[Cell]
    parameters: dict[str, Parameter]
    digest: str

    @property
    def name(self) -> str:
        """Return what a reader types: `dueling`, or `dueling/theory` in a folder of pages."""
        return toc.Entry(self.chapter, self.page, self.file).name

    @property
    def place(self) -> str:
        """Return the folder of this page below one that holds all chapters."""
        return f"{self.chapter}/{self.page}"

    @property
    def defaults(self) -> dict:
        return {name: parameter.default for name, parameter in self.parameters.items()}


def title_of(text: str, default: str) -> str:
    """Return the first heading outside of fences."""
    bare = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", text, flags=re.M | re.S)
    heading = re.search(r"^# +(.+?)\s*$", bare, flags=re.M)
    return heading[1] if heading else default


def read_page(project: Project, entry: toc.Entry) -> Page | None:
    """Return an executable page, or None when it has no parameters cell."""
    path = project.book / f"{entry.file}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BookError(f"book/{entry.file}.md is not UTF-8 text") from None
    cells = code_cells(text)
    tagged = [cell for cell in cells if "parameters" in cell.tags]
    if not tagged:
        return None
    parameters = parse_cell(tagged[0].source, entry.name)
    title = title_of(text, entry.name)
    return Page(*entry, title, text, cells, parameters, code_digest(cells))


def discover(project: Project) -> Pages:
    """Return the executable pages of the table of contents by name, in reading order."""
    there = (e for e in toc.entries(project) if (project.book / f"{e.file}.md").exists())
    pages = {page.name: page for entry in there if (page := read_page(project, entry))}
    for chapter in dict.fromkeys(page.chapter for page in pages.values()):
        _refuse_two_defaults(of_chapter(pages, chapter))
    return pages


def _refuse_two_defaults(pages: list[Page]) -> None:
    """Refuse a name that means two things in one chapter: `-p` and profiles reach all its pages."""
    seen: dict[str, Page] = {}
    for page in pages:
        for name, parameter in page.parameters.items():
            other = seen.setdefault(name, page)
            if other.parameters[name].default != parameter.default:
                raise BookError(
                    f"parameter {name} has two defaults, {other.parameters[name].default!r} in "
                    f"book/{other.file}.md and {parameter.default!r} in book/{page.file}.md; "
                    "make them equal or give one another name"
                )


def of_chapter(pages: Pages, chapter: str) -> list[Page]:
    """Return the pages of a chapter in reading order."""
    return [page for page in pages.values() if page.chapter == chapter]


def select(pages: Pages, names: Iterable[str]) -> list[Page]:
    """Return the pages that names stand for: a chapter's all, one page, or the path of a file."""
    chosen: list[Page] = []
    for name in names:
        found = _named(pages, name)
        if twice := [page.name for page in found if page in chosen]:
            raise BookError(f"{twice[0]} is named twice; name it once")
        chosen += found
    return chosen


def _named(pages: Pages, name: str) -> list[Page]:
    short = name.removesuffix(".md").removeprefix("book/").rstrip("/")
    for found in (
        of_chapter(pages, short),
        [page for page in pages.values() if short in (page.name, page.place, page.file)],
        [page for page in pages.values() if page.file.rpartition("/")[0] == short],
    ):
        if found:
            return found
    names = [*dict.fromkeys(page.chapter for page in pages.values())]
    known = dict.fromkeys([*names, *pages])
    hint = nearest(short, known) or f"; the chapters are {', '.join(names)}"
    raise BookError(f"there is no page {name!r}{hint}")
