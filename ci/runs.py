"""Run folders: how a finished run gets to its place in one step, and which run is the last."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from ci.project import Project, lock, require_writable
from lib import journal
from lib.errors import BookError

ENTRIES = {"run.json", "notebook.ipynb", "journal.jsonl", "tables"}


class Run(NamedTuple):
    """A run folder with what run.json and the journal say."""

    folder: Path
    info: dict
    journal: list[dict]

    @property
    def ok(self) -> bool:
        return self.info.get("status") == "ok"

    def entries(self, kind: str) -> list[dict]:
        return [entry for entry in self.journal if entry["kind"] == kind]

    @property
    def tables(self) -> dict[str, dict]:
        return {entry["name"]: entry for entry in self.entries("table")}


def read(folder: Path) -> Run | None:
    """Return the run of a folder, or None when there is none or it is damaged."""
    try:
        info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return Run(folder, info, journal.read(folder))
    except (OSError, ValueError):
        return None


def place(project: Project, chapter: str, profile: str | None = None) -> Path:
    """Return where a build publishes a chapter, or, without profile, where `run` does."""
    if profile is None:
        return project.build / "runs" / chapter
    return project.build / "executed" / profile / chapter


def last(project: Project, chapter: str, profile: str | None = None) -> Run | None:
    """Return the newest finished run, by `run` or by `build`, of one profile or of any."""
    folders = [place(project, chapter), *(project.build / "executed").glob(f"*/{chapter}")]
    found = [run for folder in folders if (run := read(folder)) and run.ok]
    found = [run for run in found if profile in (None, run.info["profile"])]
    return max(found, key=lambda run: run.info["started"], default=None)


def require_last(project: Project, chapter: str, profile: str) -> Run:
    """Return the last run of a profile, or say how to make one."""
    run = last(project, chapter, profile)
    if run is None:
        raise BookError(
            f"{chapter} has no finished run of profile {profile} yet; "
            f"`regretbook run {chapter} --profile {profile}` makes one"
        )
    return run


def prepare(target: Path) -> Path:
    """Return a fresh folder to run in beside the target, which must be one that may be replaced."""
    if target.exists() and not target.is_dir():
        raise BookError(f"cannot write to {target}: it is a file, not a folder")
    if target.is_dir() and (foreign := {path.name for path in target.iterdir()} - ENTRIES):
        raise BookError(
            f"{target} holds files that no run wrote ({min(foreign)}, …); choose an empty folder"
        )
    require_writable(target.parent)
    for leftover in target.parent.glob(f".{target.name}.*"):
        process = re.fullmatch(r"\.(\d+)\..*", leftover.name.removeprefix(f".{target.name}"))
        if process and not _alive(int(process[1])):
            shutil.rmtree(leftover, ignore_errors=True)
    return Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.{os.getpid()}."))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def publish(project: Project, work: Path, target: Path) -> None:
    """Move a finished run to its place; a reader sees the old run, none, or the new one, whole."""
    os.chmod(work, 0o755)
    old = work.with_name(work.name + ".old")
    with lock(project.build / ".publish.lock"):
        if target.exists():
            os.rename(target, old)
        os.rename(work, target)
    shutil.rmtree(old, ignore_errors=True)
