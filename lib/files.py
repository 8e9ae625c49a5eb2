"""Files: written so that a reader sees the old one or the new one, read so that damage is named."""

import contextlib
import errno
import functools
import math
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from lib.errors import BookError

LARGEST = 1_000_000  # values in a YAML file
ABANDONED = 3600.0  # seconds after which nobody writes a temporary file any more


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


def sweep(folder: Path) -> None:
    """Remove what processes that were killed while they wrote have left in a folder."""
    for path in folder.glob(".*.????????"):
        with contextlib.suppress(OSError):  # another process sweeps as well
            if path.stat().st_mtime < time.time() - ABANDONED:
                path.unlink()


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
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _loader())
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


@functools.cache
def _loader() -> type:
    """Return a loader of plain YAML that refuses what its writer did not mean."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        def get_single_data(self):
            root = self.get_single_node()
            if root and _size(root, {}) > LARGEST:
                raise yaml.YAMLError("its parts refer to one another without end; write them out")
            return self.construct_document(root) if root else None

    return Loader


def _size(node, known: dict[int, float]) -> float:
    """Return how many values a node stands for once all references in it are followed.

    A few lines can stand for more than anybody can visit. Of a key that is written twice YAML
    would take the last without a word.
    """
    import yaml

    if id(node) not in known:
        known[id(node)] = math.inf  # until it is known: what contains itself has no end
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if twice := [key for key, count in Counter(keys).items() if count > 1]:
                raise yaml.YAMLError(f"{twice[0]!r} is written twice,{node.start_mark}")
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


def _sentence(path: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return (
            f"The disk is full: {path.name} could not be written to {path.parent}; free some space "
            "and run the same command again, finished work is kept."
        )
    return f"{path} cannot be written ({error.strerror}): choose a folder that you may write to."
