"""The table of contents: the one list of chapters and of their pages.

A chapter is a page (`bandits/dueling`) or a folder of pages that begins with its index
(`bandits/dueling/index`, `bandits/dueling/theory`). Pages directly below `book/` belong to none.
"""

import functools
import re
from pathlib import Path
from typing import NamedTuple

from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.paths import Project, project

INDEX = "index"


class Entry(NamedTuple):
    """A page of a chapter; `file` is its path below book/ without suffix."""

    chapter: str
    page: str
    file: str

    @property
    def name(self) -> str:
        """Return what a reader types: `dueling`, or `dueling/theory` in a folder of pages."""
        return self.chapter if self.file.count("/") == 1 else f"{self.chapter}/{self.page}"


def entry_of(file: str) -> Entry | None:
    """Return the chapter and page of a file, or None for a page of the frame."""
    match file.split("/"):
        case [_, chapter]:
            return Entry(chapter, INDEX, file)
        case [_, chapter, page]:
            return Entry(chapter, page, file)
    return None


def listed(where: Project | None = None) -> list[str]:
    """Return every page of the table of contents in reading order, without suffix."""
    path = (where or project()).toc
    return _listed(path, path.stat().st_mtime_ns) if path.exists() else []


@functools.cache
def _listed(path: Path, modified: int) -> list[str]:
    tree = read_yaml(path, dict)
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

    walk(tree)
    twice = [file for file in found if found.count(file) > 1]
    if twice:
        raise BookError(f"{path.name} lists {twice[0]} twice; keep one of the two lines")
    return found


def entries(where: Project | None = None) -> list[Entry]:
    """Return the pages of all chapters in reading order, and refuse two chapters of one name."""
    found = [entry for file in listed(where) if (entry := entry_of(file))]
    homes: dict[str, set[str]] = {}
    for entry in found:
        home = entry.file.rsplit("/", 1)[0] if entry.file.count("/") == 2 else entry.file
        homes.setdefault(entry.chapter, set()).add(home)
    for chapter, places in homes.items():
        if len(places) > 1:
            raise BookError(
                f"two chapters are named {chapter!r}: {' and '.join(sorted(places))}; rename one"
            )
    return found


def chapters(where: Project | None = None) -> list[str]:
    """Return the names of the chapters in reading order."""
    return list(dict.fromkeys(entry.chapter for entry in entries(where)))


def find(name: str, where: Project | None = None) -> Entry:
    """Return the page of a name such as `dueling/theory`; a chapter's name means its index."""
    found = entries(where)
    known = {e.chapter: e for e in found if e.page == INDEX} | {e.name: e for e in found}
    if name not in known:
        hint = nearest(name, known) or f"; the pages are {', '.join(known)}"
        raise BookError(f"there is no page {name!r}{hint}")
    return known[name]
