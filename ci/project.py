"""What every command does with a project: read YAML, ask git, write safely, hold a lock."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import Project


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
    """Return the commit, "unknown" where there is none, and whether files differ from it.

    Recorded results do not count: each has its own record, so that one may follow another.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(project.root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", ".", ":!results"))
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
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(path, timeout=0 if busy else -1)
    try:
        held.acquire()
    except Timeout:
        raise BookError(busy) from None
    try:
        yield
    finally:
        held.release()


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before an hour of computing is spent on it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"regretbook")
    except OSError as error:
        raise BookError(f"cannot write to {folder}: {error.strerror}") from None
