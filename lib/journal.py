"""The journal of a run: a JSON line for each dataset read, table, figure and claim checked.

A chapter knows nothing of the build; the build reads only this file and the folder it lies in.
"""

import json
import os
from pathlib import Path


def folder() -> Path | None:
    """Return the folder of the current run, or None when the page is executed by hand."""
    run = os.environ.get("REGRETBOOK_RUN")
    return Path(run) if run else None


def note(kind: str, **values) -> None:
    """Append one entry; without a run folder nothing is written."""
    run = folder()
    if run is None:
        return
    run.mkdir(parents=True, exist_ok=True)
    with open(run / "journal.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, **values}) + "\n")


def read(run: Path) -> list[dict]:
    """Return the entries of a finished run, oldest first."""
    path = Path(run) / "journal.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
