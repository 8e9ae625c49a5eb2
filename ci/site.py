"""Where the pages of a profile are assembled and rendered: each profile has folders of its own."""

from pathlib import Path
from typing import NamedTuple

from lib.paths import Project


class Site(NamedTuple):
    """The folders of one rendered book; Jupyter Book renders below `out/_build`."""

    out: Path
    source: Path
    claims: Path  # the page of every claim, which Sphinx need not render
    rendered: Path  # where Sphinx writes, page by page
    html: Path  # what people read: the last book that was rendered whole
    stamp: Path
    lock: Path


def site_of(project: Project, profile: str) -> Site:
    """Return the folders of a profile; the book's own is `_build/html`, as readers expect."""
    out = project.build / "render" / profile
    html = project.build / "html" if profile == "book" else project.build / "sites" / profile
    rendered, stamp = out / "_build" / "html", out / "html.json"
    return Site(out, out / "source", out / "claims", rendered, html, stamp, out / ".build.lock")
