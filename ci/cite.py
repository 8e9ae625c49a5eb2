"""Citations: BibTeX of a page or a claim with version, commit and the results it stands for."""

import functools
import hashlib
import re
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

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
    return tables_digest({name: table.sha256 for name, table in run.tables.items()})


def tables_digest(tables: dict[str, str]) -> str:
    """Return one digest of tables by the digest of each; nothing where there are none."""
    listing = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(tables.items()))
    return hashlib.sha256(listing.encode()).hexdigest() if listing else ""


def _authors(citation: dict) -> str:
    names, authors = [], citation.get("authors")
    if not (authors and isinstance(authors, list) and all(isinstance(a, dict) for a in authors)):
        raise BookError("CITATION.cff must have a list of names as authors")
    for author in authors:
        family = author.get("family-names")
        given = author.get("given-names")
        names.append(
            f"{family}, {given}" if family and given else f"{{{author.get('name', family)}}}"
        )
    return " and ".join(names)


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
    started = run.info.started if run else ""
    return _entry(project, name, page.title, note, f"{page.file}.html", started)


def claim_bibtex(project: Project, row: Row) -> str:
    """Return the BibTeX entry of one question of a claim: verdict, measurement and evidence."""
    claim, found = row.claim, row.judgement
    number = f": {claims.number(found)} {found.unit}".rstrip() if found.measured is not None else ""
    note = [f"{row.kind}, {found.verdict}{number}"]
    note += filter(None, [claims.details(found)])
    if row.evidence and not found.recorded:  # what is recorded has named its commit already
        note += [row.where, _commit(row.evidence.commit, False)]
    if row.evidence and row.evidence.digest:
        note.append(f"results sha256:{row.evidence.digest[:16]}")
    name = "-".join(filter(None, ("regretbook", claim.id, row.question)))
    title = f"{claim.statement.rstrip('.')} ({claim.source})"
    return _entry(project, name, title, note, f"claims/{claim.id}.html")


def _commit(identity: str, dirty: bool) -> str:
    return f"commit {identity[:12]}{' with local changes' if dirty else ''}"


def _changes(project: Project, page: Page, run: Run) -> list[str]:
    """Name the parameters that are not those of the run's profile."""
    usual = parameters.resolve(project, page, run.info.profile)
    changed = {n: v for n, v in run.info.parameters.items() if usual.get(n) != v}
    said = [f"with {', '.join(f'{n} = {v}' for n, v in changed.items())}"] if changed else []
    if run.info.policy:
        text = (run.folder / run.info.policy.rpartition(":")[0]).read_bytes()
        digest = hashlib.sha256(text).hexdigest()[:16]
        said.append(f"with the policy {run.info.policy}, sha256:{digest}")
    return said


class Addresses(NamedTuple):
    """Where the book and its sources are public: two settings of CITATION.cff, empty when unset."""

    site: str
    repository: str


def citation(project: Project) -> dict:
    """Return CITATION.cff, which names authors, version, year and addresses."""
    path = project.root / "CITATION.cff"
    return _citation(path, path.stat().st_mtime_ns if path.exists() else 0)


@functools.cache
def _citation(path: Path, modified: int) -> dict:
    """Read the file once for the hundreds of entries that ask for it."""
    return read_yaml(path, dict)


def addresses(project: Project) -> Addresses:
    """Return the public addresses; whatever needs one that is unset is left out of the book."""
    found = [citation(project).get(key) or "" for key in ("url", "repository-code")]
    for address in found:
        if not isinstance(address, str) or (address and not re.match(r"https?://[^/\s]+", address)):
            raise BookError(f"CITATION.cff has {address!r}, which is not an address of the web")
    site, repository = (address.rstrip("/").removesuffix(".git") for address in found)
    return Addresses(site, repository)


def _entry(
    project: Project, name: str, title: str, note: list[str], file: str, started: str = ""
) -> str:
    known, where = citation(project), addresses(project)
    version = f"Version {known.get('version') or metadata.version('regretbook')}"
    fields = {
        "author": _authors(known),
        "title": title,
        "booktitle": known.get("title", "The Regret Book"),
        "year": year(project, started),
        "url": f"{where.site}/{file}" if where.site else where.repository,
        "note": ", ".join([version, *note]),
    }
    body = ",\n".join(f"  {key:<9} = {{{_tex(value)}}}" for key, value in fields.items() if value)
    return f"@incollection{{{name},\n{body}\n}}"


def year(project: Project, started: str = "") -> str:
    """Return the year of the release, else of a run, else of today."""
    return str(citation(project).get("date-released") or started or date.today())[:4]


def scholar(project: Project, title: str, file: str, started: str = "") -> dict[str, str]:
    """Return the tags by which scholarly search engines know a page."""
    known, where = citation(project), addresses(project)
    authors = _authors(known).replace("{", "").replace("}", "")
    tags = {
        "citation_title": title,
        "citation_author": authors.replace(" and ", "; "),
        "citation_publication_date": year(project, started),
        "citation_inbook_title": known.get("title", "The Regret Book"),
        "citation_language": "en",
        "citation_fulltext_html_url": f"{where.site}/{file}" if where.site else "",
    }
    return {name: text for name, text in tags.items() if text}


def _tex(text: str) -> str:
    """Escape what TeX would take for a command outside of maths."""
    return re.sub(r"(?<!\\)([&%#])", r"\\\1", text)
