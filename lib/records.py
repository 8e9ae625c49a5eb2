"""Recorded runs: what the repository keeps of a page's run, with where every number came from.

`results/<chapter>/<profile>/` holds the tables of a chapter and, for each of its pages, one file
`<page>.json`: a `Record`, which `write` alone writes and `read` alone reads.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from lib import journal
from lib.errors import BookError
from lib.files import write_atomically
from lib.journal import Judgement
from lib.paths import Project


class Origin(NamedTuple):
    """The run that numbers came from: everything needed to repeat it."""

    date: str
    profile: str
    parameters: dict
    seed: int | None
    commit: str
    dirty: bool
    versions: dict
    machine: str
    data: dict  # dataset: digest

    def __str__(self) -> str:
        changes = " with local changes that no commit has" if self.dirty else ""
        return f"commit {self.commit[:7]}{changes}, {self.date[:10]}"


class Recorded(NamedTuple):
    """A recorded table and its origin; `seconds` is what computing it took."""

    sha256: str
    caption: str
    origin: Origin
    seconds: float | None = None


class Record(NamedTuple):
    """What is recorded of a page in one profile."""

    chapter: str
    page: str
    tables: dict[str, Recorded]
    judgements: list[Judgement]
    origin: Origin  # of the judgements
    rules: dict[str, str] = {}  # noqa: RUF012  # by `title`: the rule of each judgement, as it was


def title(judgement: Judgement) -> str:
    """Return what a judgement answers: the claim and its question."""
    return f"{judgement.id} {judgement.question}".strip()


def folder(project: Project, chapter: str, profile: str) -> Path:
    return project.results / chapter / profile


def write(project: Project, profile: str, record: Record) -> Path:
    """Write a record beside its tables."""
    plain = {
        "chapter": record.chapter,
        "page": record.page,
        "origin": record.origin._asdict(),
        "tables": {
            name: table._asdict() | {"origin": table.origin._asdict()}
            for name, table in sorted(record.tables.items())
        },
        "judgements": [judgement._asdict() for judgement in record.judgements],
        "rules": record.rules,
    }
    path = folder(project, record.chapter, profile) / f"{record.page}.json"
    write_atomically(path, (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode())
    return path


def read(path: Path) -> Record:
    """Return a record, or say that it is damaged."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        tables = {
            name: Recorded(**(table | {"origin": Origin(**table["origin"])}))
            for name, table in plain["tables"].items()
        }
        judgements = [journal.checked(Judgement, each) for each in plain["judgements"]]
        origin = Origin(**plain["origin"])
        rules = plain.get("rules", {})
        return Record(plain["chapter"], plain["page"], tables, judgements, origin, rules)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BookError(f"{where(path)} is damaged ({error}); restore it with git") from None


def where(path: Path) -> str:
    """Return the path of a recorded file as people say it."""
    return "/".join(path.parts[-4:])


def every(project: Project, chapter: str | None = None) -> dict[Path, Record]:
    """Return all records of a project, or those of one chapter, by the path of their file."""
    paths = sorted(project.results.glob(f"{chapter or '*'}/*/*.json"))
    return {path: read(path) for path in paths}


def table(project: Project, chapter: str, profile: str, name: str) -> tuple[Recorded, str] | None:
    """Return a recorded table and its text, or None; refuse one that no record vouches for."""
    path = folder(project, chapter, profile) / f"{name}.csv"
    noted = [read(each).tables for each in sorted(path.parent.glob("*.json"))]
    found = next((tables[name] for tables in noted if name in tables), None)
    if problem := trouble(path, found):
        raise BookError(problem)
    return (found, path.read_text(encoding="utf-8")) if found else None


def trouble(path: Path, found: Recorded | None) -> str:
    """Say what is wrong between a recorded table and its record; nothing when they agree."""
    if not path.is_file():
        return f"{where(path)} is recorded but not there; restore it with git" if found else ""
    if found is None:
        return f"{where(path)} has no record of where it came from; write it with `record`"
    if hashlib.sha256(path.read_bytes()).hexdigest() != found.sha256:
        return f"{where(path)} is not the table that was recorded; restore it with git"
    return ""
