"""What `regretbook bench` keeps: tables in `results/bench` with where they came from."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ci.project import commit, write
from lib import provenance, records, results
from lib.errors import BookError
from lib.paths import Project
from lib.records import Origin, Record, Recorded

CHAPTER = "bench"
CAPTIONS = {
    "rounds": "Microseconds a round of every algorithm, its bare kernel and its environment",
    "about": "Sizes, memory and compiling of every algorithm",
    "libraries": "Microseconds a round and regret of linear bandits of public libraries and ours",
    "growth": "Microseconds a round against time, users, arms and dimension",
    "crowds": "Rounds with up to a million users",
    "served": "Regret, groups and cost of a crowd that comes often",
    "staleness": "Regret of sharded users against the rounds between two exchanges",
    "plan": "Seconds that `regretbook plan` expects of pages, and what their recorded runs took",
    "workers": "Rounds of sharded users on worker processes",
}


def origin(project: Project, repeats: int) -> Origin:
    """Return where numbers of this moment come from; refuse what no commit has."""
    where, dirty = commit(project)
    if dirty:
        raise BookError("the tree has changes that no commit has; commit them before you record")
    return Origin(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        profile="thesis",
        parameters={"repeats": repeats},
        seed=None,
        commit=where,
        dirty=False,
        versions=provenance.versions(),
        machine=provenance.machine(),
        data={},
    )


def write_tables(
    project: Project, tables: dict[str, pd.DataFrame], origin: Origin, seconds: float
) -> list[Path]:
    """Write tables and note them beside those of other parts; return the files."""
    folder, paths = records.folder(project, CHAPTER, ""), []
    before = folder / f"{CHAPTER}.json"
    noted = records.read(before).tables if before.exists() else {}
    for name, table in tables.items():
        content = results.as_text(table).encode()
        paths.append(folder / f"{name}.csv")
        write(paths[-1], content)
        sha256 = hashlib.sha256(content).hexdigest()
        noted[name] = Recorded(sha256, CAPTIONS[name], origin, round(seconds, 1))
    return [*paths, records.write(project, "", Record(CHAPTER, CHAPTER, noted, [], origin))]


def read(project: Project, name: str) -> tuple[Recorded, pd.DataFrame] | None:
    """Return a recorded table and its record, or None."""
    kept = records.table(project, CHAPTER, "", name)
    return (kept[0], results.as_table(kept[1])) if kept else None
