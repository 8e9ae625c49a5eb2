"""Writing files so that a reader sees the old one or the new one, never half of either."""

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
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise BookError(_sentence(path, error)) from error


def _sentence(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk is full: {path.name} could not be written to {path.parent}; free some space "
            "and run the same command again, finished work is kept."
        )
    return f"{path} cannot be written ({error.strerror}): choose a folder that you may write to."
