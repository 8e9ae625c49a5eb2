"""Files: written so that a reader sees the old one or the new one, read so that damage is named."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from lib.errors import BookError


def write_atomically(path: Path, content: bytes, durable: bool = True) -> None:
    """Write beside the target, flush to disk, then rename over it.

    What can be computed again and is checked when it is read need not be durable: waiting for the
    disk took a third of the time of searches with many short runs.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise BookError(_sentence(path, error)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # others may read what anybody can compute
        os.replace(temporary, path)
    except BaseException as error:  # an interruption leaves nothing behind, either
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise BookError(_sentence(path, error)) from error
        raise


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before an hour of computing is spent on it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"regretbook")
    except OSError as error:
        raise BookError(f"cannot write to {folder}: {error.strerror}") from None


def read_yaml(path: Path, kind: type[dict] | type[list]):
    """Return the content of a YAML file, which must be a `kind`; an empty one when it is absent."""
    import yaml

    if not path.exists():
        return kind()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), loader)
    except UnicodeDecodeError:
        raise BookError(f"{path.name} is not UTF-8 text; save it as such") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BookError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from None
    if found is None:
        return kind()
    if not isinstance(found, kind):
        what = "a mapping of names to values" if kind is dict else "a list"
        raise BookError(f"{path.name} must be {what}, but is a {type(found).__name__}")
    return found


def _sentence(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk is full: {path.name} could not be written to {path.parent}; free some space "
            "and run the same command again, finished work is kept."
        )
    return f"{path} cannot be written ({error.strerror}): choose a folder that you may write to."
