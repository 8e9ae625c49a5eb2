"""Recording: the tables of a run become the reference results that the repository keeps."""

import json

from ci.chapters import Chapter
from ci.project import Project, write
from ci.runs import require_last
from lib.errors import BookError, nearest


def recorded(project: Project, chapter: str) -> dict[str, dict]:
    """Return the recorded tables of a chapter with their provenance."""
    path = project.results / chapter / "provenance.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def record(
    project: Project, chapter: Chapter, experiments: list[str], profile: str = "book"
) -> list:
    """Copy tables of the last run of a profile into results/ and note where each came from.

    A table that was itself read from results/ is not copied: that would pass it off as a new run.
    """
    run = require_last(project, chapter.name, profile)
    for name in experiments:
        if name not in run.tables:
            known = f"; it has {', '.join(run.tables) or 'none'}"
            raise BookError(
                f"the last run of {chapter.name} has no table {name!r}"
                f"{nearest(name, run.tables) or known}"
            )
    live = [
        table
        for name, table in run.tables.items()
        if table["source"] == "live" and (not experiments or name in experiments)
    ]
    if not live:
        raise BookError(f"the last run of {chapter.name} has no table that it computed itself")
    folder = project.results / chapter.name
    provenance = recorded(project, chapter.name)
    info = run.info
    keys = ("parameters", "profile", "seed", "commit", "dirty", "versions", "machine")
    for table in live:
        target = folder / f"{table['name']}.csv"
        write(target, (run.folder / table["file"]).read_bytes())
        provenance[table["name"]] = {
            "sha256": table["sha256"],
            "caption": table["caption"],
            "date": info["started"],
            **{key: info[key] for key in keys},
            "data": {entry["name"]: entry["digest"] for entry in run.entries("data")},
        }
    path = folder / "provenance.json"
    write(path, json.dumps(provenance, indent=1, sort_keys=True) + "\n")
    return [folder / f"{table['name']}.csv" for table in live] + [path]
