"""Chapters: which pages of the book are executable, their code cells and their parameters."""

import re
from pathlib import Path
from typing import NamedTuple

from ci.parameters import Parameter, parse_cell
from ci.project import Project, load_yaml
from lib.errors import BookError, nearest
from lib.pages import Cell, code_cells, code_digest


class Chapter(NamedTuple):
    """A page with a parameters cell; `page` is its path below book/ without suffix."""

    name: str
    page: str
    title: str
    text: str
    cells: list[Cell]
    parameters: dict[str, Parameter]
    digest: str

    @property
    def defaults(self) -> dict:
        return {name: parameter.default for name, parameter in self.parameters.items()}


def title_of(text: str, default: str) -> str:
    """Return the first heading outside of fences."""
    bare = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", text, flags=re.M | re.S)
    heading = re.search(r"^# +(.+?)\s*$", bare, flags=re.M)
    return heading[1] if heading else default


def toc_pages(project: Project) -> list[str]:
    """Return the pages of the table of contents in reading order, without suffix."""
    found: list[str] = []

    def walk(node):
        if isinstance(node, dict):
            for key in ("root", "file"):
                if key in node:
                    found.append(re.sub(r"\.(md|ipynb)$", "", str(node[key])))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(load_yaml(project.toc, {}))
    return found


def read_chapter(project: Project, page: str) -> Chapter | None:
    """Return a page as a chapter, or None when it has no parameters cell."""
    path = project.book / f"{page}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BookError(f"book/{page}.md is not UTF-8 text") from None
    cells = code_cells(text)
    tagged = [cell for cell in cells if "parameters" in cell.tags]
    if not tagged:
        return None
    name = Path(page).name
    parameters = parse_cell(tagged[0].source, name)
    return Chapter(name, page, title_of(text, name), text, cells, parameters, code_digest(cells))


def discover(project: Project) -> dict[str, Chapter]:
    """Return all chapters by short name: those of the table of contents, then the others."""
    listed = [page for page in toc_pages(project) if (project.book / f"{page}.md").exists()]
    every = sorted(
        str(path.relative_to(project.book).with_suffix("")) for path in project.book.rglob("*.md")
    )
    chapters: dict[str, Chapter] = {}
    for page in dict.fromkeys(listed + every):
        chapter = read_chapter(project, page)
        if chapter is None:
            continue
        if chapter.name in chapters:
            raise BookError(
                f"two chapters are named {chapter.name!r}: "
                f"book/{chapters[chapter.name].page}.md and book/{page}.md"
            )
        chapters[chapter.name] = chapter
    return chapters


def find(chapters: dict[str, Chapter], name: str) -> Chapter:
    """Return the chapter of a short name or of its path, or say which names are near."""
    short = Path(name).name.removesuffix(".md")
    if short not in chapters:
        known = f"; the chapters are {', '.join(chapters)}" if chapters else ""
        raise BookError(f"there is no chapter {name!r}{nearest(short, chapters) or known}")
    return chapters[short]
