"""When is an executed chapter out of date? When anything that its numbers depend on has changed."""

import hashlib
import json

from ci.chapters import Chapter
from ci.project import Project, load_yaml
from ci.runs import Run
from lib import provenance
from lib.errors import BookError


def own(project: Project, chapter: Chapter, parameters: dict) -> dict:
    """Return what a chapter depends on before it has said what it reads."""
    ledger = load_yaml(project.ledger, [])
    return {
        "code": chapter.digest,
        "parameters": parameters,
        "lib": provenance.lib_digest(),
        "constraints": _sha256(project.constraints),
        "claims": [claim for claim in ledger if claim["chapter"] == chapter.name],
    }


def inputs(project: Project, chapter: str, journal: list[dict]) -> dict:
    """Return the digests of the data and of the pages that a run noted, and of recorded results.

    Recorded results matter only to a run that showed them, or that lacked the data for its own.
    """
    noted = {
        kind: {entry["name"]: entry["digest"] for entry in journal if entry["kind"] == kind}
        for kind in ("data", "chapter")
    }
    borrowed = any(entry["kind"] == "table" and entry["source"] == "recorded" for entry in journal)
    if borrowed or None in noted["data"].values():
        files = sorted((project.results / chapter).glob("*.csv"))
        noted["recorded"] = {path.name: _sha256(path) for path in files}
    return noted


def is_fresh(
    project: Project,
    chapter: Chapter,
    parameters: dict,
    run: Run | None,
    chapters: dict[str, Chapter],
) -> bool:
    """Say whether a run is what executing the chapter now would give."""
    if run is None or not run.ok or not (run.folder / "notebook.ipynb").exists():
        return False
    current = inputs(project, chapter.name, run.journal)
    current["data"] = {name: data_digest(name) for name in current["data"]}
    current["chapter"] = {
        name: chapters[name].digest if name in chapters else None for name in current["chapter"]
    }
    return digest(own(project, chapter, parameters) | current) == run.info["digest"]


def digest(parts: dict) -> str:
    """Return one digest of everything in `parts`."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def data_digest(name: str) -> str | None:
    """Return the digest of a dataset; None when it is absent or no longer in the registry."""
    from lib import datasets

    try:
        return datasets.digest(name)
    except BookError:
        return None


def _sha256(path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
