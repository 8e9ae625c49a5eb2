"""Where the pages of a profile are assembled and rendered: each profile has folders of its own."""

from pathlib import Path
from typing import NamedTuple

from lib.paths import Project


class Site(NamedTuple):
    """The folders of one rendered book; Jupyter Book puts `html` below `out/_build`."""

    out: Path
    source: Path
    html: Path
    stamp: Path
    lock: Path


def site_of(project: Project, profile: str) -> Site:
    """Return the folders of a profile; the book's own is `_build/html`, as readers expect."""
    out = project.root if profile == "book" else project.build / "sites" / profile
    build = out / "_build"
    return Site(out, build / "source", build / "html", build / "html.json", build / ".build.lock")
