"""What every command does with a project: ask git, write safely, hold a lock."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import CODE, Project

# Pages and tests run side by side: threads of linear algebra would wait for one another.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "MKL", "OMP")}


def shown(path: Path) -> str:
    """Return a path as a reader of the terminal wants it: relative where it lies below."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def commit(project: Project) -> tuple[str, bool]:
    """Return the commit, "unknown" where there is none, and whether files differ from it.

    Recorded results do not count: each has its own record, so that one may follow another.
    """

    def git(*words: str) -> str:
        # Without optional locks a killed command leaves no index.lock behind.
        command = ["git", "--no-optional-locks", "-C", str(project.root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD"), bool(git("status", "--porcelain", ".", ":!results"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown", False


def environment(project: Project) -> dict[str, str]:
    """Return what a process of ours is told: where our code is, and which project it works on."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(CODE), os.environ.get("PYTHONPATH")])),
        "REGRETBOOK_ROOT": str(project.root),
    }


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step, and only when it changes, so that Sphinx stays incremental."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        write_atomically(path, data)


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
