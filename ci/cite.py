"""Citations: BibTeX of a page with version, commit and the results that it stands for."""

import hashlib
import re
from datetime import date
from importlib import metadata

from ci.contents import Page
from ci.project import commit
from ci.runs import Run
from lib.errors import BookError
from lib.files import read_yaml
from lib.paths import Project


def results_digest(run: Run) -> str:
    """Return one digest of all tables of a run: whoever regenerates them gets the same."""
    listing = "".join(f"{table.sha256}  {name}\n" for name, table in sorted(run.tables.items()))
    return hashlib.sha256(listing.encode()).hexdigest()


def _authors(citation: dict) -> str:
    names, authors = [], citation.get("authors", [])
    if not (isinstance(authors, list) and all(isinstance(author, dict) for author in authors)):
        raise BookError("CITATION.cff must have a list of names as authors")
    for author in authors:
        family = author.get("family-names")
        given = author.get("given-names")
        names.append(
            f"{family}, {given}" if family and given else f"{{{author.get('name', family)}}}"
        )
    return " and ".join(names) or "{The Regret Book contributors}"


def bibtex(project: Project, page: Page, run: Run | None) -> str:
    """Return the BibTeX entry of a page as its run produced it."""
    citation = read_yaml(project.root / "CITATION.cff", dict)
    identity, dirty = (run.info.commit, run.info.dirty) if run else commit(project)
    year = str(citation.get("date-released") or (run.info.started if run else date.today()))[:4]
    note = [f"Version {citation.get('version') or metadata.version('regretbook')}"]
    note.append(f"commit {identity[:12]}{' with local changes' if dirty else ''}")
    if run and run.tables:
        note.append(f"results sha256:{results_digest(run)[:16]}, profile {run.info.profile}")
    elif not run:
        note.append("not executed")
    url = citation.get("url") or citation.get("repository-code")
    fields = {
        "author": _authors(citation),
        "title": page.title,
        "booktitle": citation.get("title", "The Regret Book"),
        "year": year,
        "url": url,
        "note": ", ".join(note),
    }
    body = ",\n".join(f"  {key:<9} = {{{_tex(value)}}}" for key, value in fields.items() if value)
    return f"@incollection{{regretbook-{page.name.replace('/', '-')},\n{body}\n}}"


def _tex(text: str) -> str:
    """Escape what TeX would take for a command outside of maths."""
    return re.sub(r"(?<!\\)([&%#])", r"\\\1", text)
