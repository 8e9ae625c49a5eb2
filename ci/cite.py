"""Citations: BibTeX of a page or a claim with version, commit and the results it stands for."""

import hashlib
import re
from datetime import date
from importlib import metadata

from ci import parameters
from ci.contents import Page
from ci.project import commit
from ci.runs import Run
from ci.scoreboard import Row
from lib import claims
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
    """Return the BibTeX entry of a page as its run produced it, with every changed parameter."""
    identity, dirty = (run.info.commit, run.info.dirty) if run else commit(project)
    note = [_commit(identity, dirty)]
    if run:
        note += _changes(project, page, run)
    if run and run.tables:
        note.append(f"results sha256:{results_digest(run)[:16]}, profile {run.info.profile}")
    elif not run:
        note.append("not executed")
    name = f"regretbook-{page.name.replace('/', '-')}"
    return _entry(project, name, page.title, note, run.info.started if run else "")


def claim_bibtex(project: Project, row: Row) -> str:
    """Return the BibTeX entry of one question of a claim: verdict, measurement and evidence."""
    claim, found = row.claim, row.judgement
    number = f": {claims.number(found)} {found.unit}".rstrip() if found.measured is not None else ""
    note = [f"{row.kind}, {found.verdict}{number}"]
    note += [text for text in (claims.details(found), row.where) if text]
    if row.evidence:
        note.append(_commit(row.evidence.commit, False))
    name = "-".join(filter(None, ("regretbook", claim.id, row.question)))
    return _entry(project, name, f"{claim.statement.rstrip('.')} ({claim.source})", note, "")


def _commit(identity: str, dirty: bool) -> str:
    return f"commit {identity[:12]}{' with local changes' if dirty else ''}"


def _changes(project: Project, page: Page, run: Run) -> list[str]:
    """Name the parameters that are not those of the run's profile."""
    usual = parameters.resolve(project, page, run.info.profile)
    changed = {n: v for n, v in run.info.parameters.items() if usual.get(n) != v}
    return [f"with {', '.join(f'{n} = {v}' for n, v in changed.items())}"] if changed else []


def _entry(project: Project, name: str, title: str, note: list[str], started: str) -> str:
    citation = read_yaml(project.root / "CITATION.cff", dict)
    version = f"Version {citation.get('version') or metadata.version('regretbook')}"
    fields = {
        "author": _authors(citation),
        "title": title,
        "booktitle": citation.get("title", "The Regret Book"),
        "year": str(citation.get("date-released") or started or date.today())[:4],
        "url": citation.get("url") or citation.get("repository-code"),
        "note": ", ".join([version, *note]),
    }
    body = ",\n".join(f"  {key:<9} = {{{_tex(value)}}}" for key, value in fields.items() if value)
    return f"@incollection{{{name},\n{body}\n}}"


def _tex(text: str) -> str:
    """Escape what TeX would take for a command outside of maths."""
    return re.sub(r"(?<!\\)([&%#])", r"\\\1", text)
