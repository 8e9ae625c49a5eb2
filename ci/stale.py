"""When is an executed page out of date? When anything that its numbers depend on has changed."""

import functools
import hashlib
import json
import re
from importlib import metadata

from ci.contents import Page, Pages
from ci.runs import Run
from lib import journal, provenance
from lib.errors import BookError
from lib.paths import Project


def own(project: Project, page: Page, parameters: dict) -> dict:
    """Return what a page depends on before it has said what it reads."""
    return {
        "code": page.digest,
        "parameters": parameters,
        "lib": provenance.lib_digest(),
        "installed": installed(project),
        "claims": _sha256(project.claims / f"{page.chapter}.yml"),
    }


def installed(project: Project) -> dict[str, str | None]:
    """Return the versions of all pinned packages as they are installed, which pins cannot know."""
    text = project.constraints.read_text(encoding="utf-8") if project.constraints.exists() else ""
    pinned = {name: _version(name) for name in re.findall(r"^([\w.-]+)==", text, flags=re.M)}
    return provenance.versions() | pinned


@functools.cache
def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def inputs(project: Project, page: Page, entries: list[journal.Entry]) -> dict:
    """Return the digests of the data and pages that a run noted, and of recorded results.

    Recorded results matter only to a page that shows them or would if they were there, and to a run
    that lacked the data for its own.
    """
    noted = {
        kind.__name__.lower(): {e.name: e.digest for e in entries if isinstance(e, kind)}
        for kind in (journal.Data, journal.Loaded)
    }
    borrowed = any(isinstance(e, journal.Table) and e.source == "recorded" for e in entries)
    asks = any(re.search(r"\brecorded\(", cell.source) for cell in page.cells)
    if borrowed or asks or None in noted["data"].values():
        # The tables, and the records, whose commits and dates the page shows.
        files = sorted((project.results / page.chapter).glob("*/*.*"))
        noted["recorded"] = {
            str(path.relative_to(project.results)): _sha256(path) for path in files
        }
    return noted


def is_fresh(project: Project, page: Page, parameters: dict, run: Run | None, pages: Pages) -> bool:
    """Say whether a run is what executing the page now would give."""
    if run is None or not run.ok or not (run.folder / "notebook.ipynb").exists():
        return False
    digests = {page.chapter: page.digest for page in reversed(pages.values())}
    digests |= {name: page.digest for name, page in pages.items()}
    current = inputs(project, page, run.journal)
    current["data"] = {name: data_digest(name) for name in current["data"]}
    current["loaded"] = {name: digests.get(name) for name in current["loaded"]}
    return digest(own(project, page, parameters) | current) == run.info.digest


def digest(parts: dict) -> str:
    """Return one digest of everything in `parts`."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def data_digest(name: str) -> str | None:
    """Return the digest of a dataset; None when it is absent, altered or not in the registry."""
    from lib import datasets

    try:
        return None if datasets.altered(name) else datasets.digest(name)
    except BookError:
        return None


def _sha256(path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
