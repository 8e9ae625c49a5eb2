"""Run folders: what a run leaves, how it gets to its place in one step, which run is the last."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from ci.contents import Page
from ci.project import lock, require_writable, write
from lib import journal
from lib.errors import BookError
from lib.journal import Table
from lib.paths import Project

ENTRIES = {"run.json", "notebook.ipynb", "journal.jsonl", "tables"}


class Failure(NamedTuple):
    """Which cell of a page failed (0: before the first), its first line, and the error."""

    cell: int
    line: str
    error: str
    message: str

    def where(self) -> str:
        return f"cell {self.cell} ({self.line})" if self.cell else "the start of its kernel"


class Info(NamedTuple):
    """What run.json says: everything needed to repeat the run, and how it went."""

    chapter: str
    page: str
    profile: str
    parameters: dict
    seed: int | None
    engine: str
    started: str
    commit: str
    dirty: bool
    versions: dict
    machine: str
    seconds: float = 0.0
    status: str = "running"  # then "ok" or "failed"
    digest: str = ""  # of everything that the run depended on
    only: tuple[str, ...] = ()  # the experiments that were to be computed; none: all
    error: Failure | None = None


class Run(NamedTuple):
    """A run folder with what run.json and the journal say."""

    folder: Path
    info: Info
    journal: list[journal.Entry]

    @property
    def ok(self) -> bool:
        return self.info.status == "ok"

    def entries(self, kind: type) -> list:
        return [entry for entry in self.journal if isinstance(entry, kind)]

    @property
    def tables(self) -> dict[str, Table]:
        return {entry.name: entry for entry in self.entries(Table)}

    @property
    def judgements(self) -> list[journal.Judgement]:
        """Return the last judgement of every claim and question."""
        found = {(entry.id, entry.question): entry for entry in self.entries(journal.Judgement)}
        return list(found.values())


def write_info(folder: Path, info: Info) -> None:
    """Write run.json, which `read` alone reads."""
    plain = info._asdict() | {"error": info.error and info.error._asdict()}
    write(folder / "run.json", json.dumps(plain, indent=1) + "\n")


def read(folder: Path) -> Run | None:
    """Return the run of a folder, or None when there is none or it is damaged."""
    try:
        plain = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        plain["error"] = Failure(**plain["error"]) if plain["error"] else None
        plain["only"] = tuple(plain.get("only", ()))
        info = Info(**plain)
        return Run(folder, info, journal.read(folder))
    except (OSError, ValueError, TypeError, KeyError, BookError):
        return None


def place(project: Project, page: Page, profile: str | None = None) -> Path:
    """Return where a build publishes a page, or, without profile, where `run` does."""
    kind = project.build / "runs" if profile is None else project.build / "executed" / profile
    return kind / page.chapter / page.page


def published(project: Project, page: Page, profile: str = "book") -> Run | None:
    """Return the finished run that a build of this profile published, if there is one."""
    run = read(place(project, page, profile))
    return run if run and run.ok else None


def last(project: Project, page: Page, profile: str | None = None) -> Run | None:
    """Return the newest finished run, by `run` or by `build`, of one profile or of any."""
    executed = (project.build / "executed").glob(f"*/{page.place}")
    found = [run for folder in [place(project, page), *executed] if (run := read(folder))]
    found = [run for run in found if run.ok and profile in (None, run.info.profile)]
    return max(found, key=lambda run: run.info.started, default=None)


def require_last(project: Project, page: Page, profile: str) -> Run:
    """Return the last run of a profile, or say how to make one."""
    run = last(project, page, profile)
    if run is None:
        raise BookError(
            f"{page.name} has no finished run of profile {profile} yet; "
            f"`regretbook run {page.name} --profile {profile}` makes one"
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


def below(folder: Path, pages: dict[str, Page]) -> list[tuple[Page, Run]]:
    """Return the finished runs of a folder: itself one, or with one below it for each page."""
    found = [run for path in (folder, *sorted(folder.glob("*"))) if (run := read(path)) and run.ok]
    by_place = {(page.chapter, page.page): page for page in pages.values()}
    places = [(by_place.get((run.info.chapter, run.info.page)), run) for run in found]
    if not places or any(page is None for page, _ in places):
        raise BookError(f"{folder} is not the folder of a finished run of a page of this book")
    return places
