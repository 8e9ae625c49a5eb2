"""A project is a folder: its paths, its commit, and safe ways to write into it."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import ROOT


class Project(NamedTuple):
    """The folders and files that the pipeline reads and writes."""

    root: Path
    book: Path
    ledger: Path
    toc: Path
    config: Path
    constraints: Path
    results: Path
    build: Path
    source: Path  # what Sphinx reads
    html: Path
    logs: Path


def project_at(root: Path = ROOT) -> Project:
    """Return the project of a root folder, by default of this repository."""
    book, build = root / "book", root / "_build"
    return Project(
        root=root,
        book=book,
        ledger=book / "claims.yml",
        toc=root / "_toc.yml",
        config=root / "_config.yml",
        constraints=root / "constraints.txt",
        results=root / "results",
        build=build,
        source=build / "source",
        html=build / "html",
        logs=build / "logs",
    )


def shown(path: Path) -> str:
    """Return a path as a reader of the terminal wants it: relative where it lies below."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def load_yaml(path: Path, default=None):
    """Return the content of a YAML file, or `default` when it is absent or empty."""
    import yaml

    if not path.exists():
        return default
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.load(path.read_text(encoding="utf-8"), loader) or default
    except yaml.YAMLError as error:
        raise BookError(f"{path.name} is not valid YAML: {error}") from None


def commit(project: Project) -> tuple[str, bool]:
    """Return the commit, "unknown" where there is none, and whether files differ from it."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(project.root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", False


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step, and only when it changes, so that Sphinx stays incremental."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        write_atomically(path, data)
        os.chmod(path, 0o644)


@contextlib.contextmanager
def lock(path: Path, busy: str | None = None) -> Iterator[None]:
    """Hold a file lock, which the system releases even after kill -9.

    With `busy` a second holder is refused with that sentence; without it, it waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise BookError(busy) from None
        yield


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before an hour of computing is spent on it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"regretbook")
    except OSError as error:
        raise BookError(f"cannot write to {folder}: {error.strerror}") from None
