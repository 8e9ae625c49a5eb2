"""Run folders: what a run leaves, how it gets to its place in one step, which run is the last."""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ci.contents import Page
from ci.display import say
from ci.project import lock, write
from lib import journal
from lib.errors import BookError
from lib.files import require_writable
from lib.journal import Table
from lib.paths import Project

INFO = "run.json"
WORK = ".regretbook-work-"  # begins the name of a folder in which a run is under way
LOCK = ".lock"  # in such a folder, held for as long as its run lives


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
    policy: str = ""  # a reader's own in the comparison, as in mine.py:MINE
    error: Failure | None = None
    data: dict = {}  # noqa: RUF012  # dataset: digest, of those that the run read
    files: dict = {}  # noqa: RUF012  # every other file of the folder: digest


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
        return judgements_of(self.journal)


def judgements_of(entries: list[journal.Entry]) -> list[journal.Judgement]:
    """Return the last judgement of every claim and question in a journal."""
    judged = (entry for entry in entries if isinstance(entry, journal.Judgement))
    return list({(entry.id, entry.question): entry for entry in judged}.values())


def write_info(folder: Path, info: Info) -> None:
    """Write run.json, which `read` alone reads and which vouches for every file beside it."""
    info = info._replace(files=_digests(folder))
    plain = info._asdict() | {"error": info.error and info.error._asdict()}
    write(folder / INFO, json.dumps(plain, indent=1) + "\n")


def read(folder: Path) -> Run | None:
    """Return the run of a folder, or None when there is none or a file of it was damaged."""
    try:
        plain = json.loads((folder / INFO).read_text(encoding="utf-8"))
        plain["error"] = Failure(**plain["error"]) if plain["error"] else None
        plain["only"] = tuple(plain.get("only", ()))
        info = Info(**plain)
        whole = info.status in ("ok", "failed") and info.files == _digests(folder)
        return Run(folder, info, journal.read(folder)) if whole else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, BookError):
        return None


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a run folder but the one that lists them."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in files.items()
        if not path.is_dir() and name not in (INFO, LOCK)
    }


def place(project: Project, page: Page, profile: str | None = None) -> Path:
    """Return where a build publishes a page, or, without profile, where `run` does."""
    kind = project.build / "runs" if profile is None else project.build / "executed" / profile
    return kind / page.chapter / page.page


def published(project: Project, page: Page, profile: str = "book") -> Run | None:
    """Return the finished run that a build of this profile published, if there is one."""
    run = read(place(project, page, profile))
    return run if run and run.ok else None


def newest(project: Project, page: Page) -> Run | None:
    """Return the newest run that a build published, of whichever profile."""
    found = map(read, (project.build / "executed").glob(f"*/{page.place}"))
    return max((r for r in found if r and r.ok), key=lambda r: r.info.started, default=None)


def beside(project: Project, page: Page, profile: str) -> Run | None:
    """Return the published run that a run is compared with: the book's, else its profile's."""
    return published(project, page) or published(project, page, profile)


def _folders(project: Project, page: Page) -> list[Path]:
    """Return where a run of a page may be: that of `run`, and those of builds."""
    return [place(project, page), *(project.build / "executed").glob(f"*/{page.place}")]


def last(project: Project, page: Page, profile: str | None = None) -> Run | None:
    """Return the newest finished run, by `run` or by `build`, of one profile or of any."""
    found = [run for folder in _folders(project, page) if (run := read(folder)) and run.ok]
    found = [run for run in found if profile in (None, run.info.profile)]
    return max(found, key=lambda run: run.info.started, default=None)


def expected(project: Project, page: Page, profile: str, parameters: dict) -> float:
    """Return the seconds that a page took last time with these parameters, 0 when nobody knows."""
    run = last(project, page, profile)
    return run.info.seconds if run and run.info.parameters == parameters else 0.0


def require_last(project: Project, page: Page, profile: str) -> Run:
    """Return the last run of a profile, or say how to make one."""
    run = last(project, page, profile)
    if run is None:
        damaged = any((f / INFO).exists() and not read(f) for f in _folders(project, page))
        why = ": one was changed or damaged since" if damaged else " yet"
        raise BookError(
            f"{page.name} has no finished run of profile {profile}{why}; "
            f"`regretbook run {page.name} --profile {profile}` makes one"
        )
    return run


@contextlib.contextmanager
def prepared(project: Project, target: Path) -> Iterator[Path]:
    """Give a fresh folder to run in beside the target, which must be one that may be replaced.

    Whatever `publish` has not moved to its place is removed at the end, and what a killed run left
    behind is removed by the next one beside it, which finds that nobody holds its lock.
    """
    if target.exists() and not target.is_dir():
        raise BookError(f"cannot write to {target}: it is a file, not a folder")
    require_writable(target.parent)
    with _publishing(project):
        _clear(project, target)
        if target.is_dir() and not _is_place(project, target):
            _refuse_foreign(target)
        _require_movable(target)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=WORK))
        held = contextlib.ExitStack()
        held.enter_context(lock(work / LOCK))
    with held:
        try:
            yield work
        finally:
            _remove(work)


def _remove(work: Path) -> None:
    """Remove the folder of a run, as far as that goes: its kernel may be writing its last words.

    The lock goes last, because only with it the next run knows what is left behind as a run's.
    """
    with contextlib.suppress(OSError):
        for path in work.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
        if [path.name for path in work.iterdir()] == [LOCK]:
            shutil.rmtree(work, ignore_errors=True)


def _is_place(project: Project, target: Path) -> bool:
    """Return whether a folder is where `place` puts runs, so that whatever is there is ours."""
    if not target.is_relative_to(project.build):
        return False
    match target.relative_to(project.build).parts:
        case ("runs", _, _) | ("executed", _, _, _):
            return True
    return False


def _publishing(project: Project):
    return lock(project.build / ".publish.lock")


def _refuse_foreign(target: Path) -> None:
    """Refuse to replace a folder unless its run.json vouches for every file in it."""
    found = [path for path in target.rglob("*") if not path.is_dir()]
    if not found or read(target):
        return
    try:
        known = json.loads((target / INFO).read_text(encoding="utf-8"))["files"]
        now = _digests(target)
        name = min(name for name in now if known.get(name) != now[name])
        why = "changed after the run" if name in known else "that no run wrote"
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        name, why = min(path.name for path in found), "that no run wrote"
    raise BookError(f"{target} holds files {why} ({name}, …); choose an empty folder")


def _aside(target: Path) -> Path:
    """Return where the old run is for the moment in which the new one takes its place."""
    return target.with_name(f"{WORK}aside-{target.name}")


def _require_movable(target: Path) -> None:
    """Refuse a folder that cannot be replaced, such as a mount point, before computing for it."""
    if target.exists():
        try:
            os.rename(target, _aside(target))
            os.rename(_aside(target), target)
        except OSError as error:
            raise BookError(f"cannot replace {target} ({error.strerror}); choose another") from None


def _drop(project: Project, target: Path) -> None:
    """Remove the old run, or keep it beside when somebody wrote into its folder meanwhile."""
    aside = _aside(target)
    if not aside.exists():
        return
    if _is_place(project, target) or read(aside):
        shutil.rmtree(aside, ignore_errors=True)
        return
    names = (f"{target.name}-kept{number or ''}" for number in itertools.count())
    kept = next(path for name in names if not (path := target.with_name(name)).exists())
    os.rename(aside, kept)
    say(f"regretbook: somebody wrote into {target} meanwhile; it is now {kept}", sys.stderr)


def _clear(project: Project, target: Path) -> None:
    """Mend what a killed process left: runs that nobody makes, and an old run that is aside."""
    for left in target.parent.glob(f"{WORK}*"):
        if (left / LOCK).is_file():
            with contextlib.suppress(BookError), lock(left / LOCK, busy="its run lives"):
                _remove(left)
        else:  # killed before it had a lock: then it is empty
            with contextlib.suppress(OSError):
                left.rmdir()
    if _aside(target).exists() and not target.exists():
        os.rename(_aside(target), target)
    _drop(project, target)


def publish(project: Project, work: Path, target: Path) -> None:
    """Move a finished run to its place; a reader sees the old run, none, or the new one, whole."""
    os.chmod(work, 0o755)
    with _publishing(project):
        if target.exists():
            os.rename(target, _aside(target))
        os.rename(work, target)
        (target / LOCK).unlink(missing_ok=True)
        _drop(project, target)


def below(folder: Path, pages: dict[str, Page]) -> list[tuple[Page, Run]]:
    """Return the finished runs of a folder: itself one, or with one below it for each page."""
    found = [run for path in (folder, *sorted(folder.glob("*"))) if (run := read(path)) and run.ok]
    by_place = {(page.chapter, page.page): page for page in pages.values()}
    places = [(by_place.get((run.info.chapter, run.info.page)), run) for run in found]
    if not places or any(page is None for page, _ in places):
        raise BookError(f"{folder} is not the folder of a finished run of a page of this book")
    return places
