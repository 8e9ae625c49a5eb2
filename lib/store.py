"""The store of finished tasks: content-addressed, crash-safe, arrays only.

The key is made of the program a task runs (its functions, `lib`, package versions) and its
arguments (parameters, seed, the content of every array). So a killed run continues where it was and
two runs may share a store: both would write the same bytes.
"""

import hashlib
import io
import json
import os
import warnings
from pathlib import Path

import numpy as np

from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import project

_CHECKSUM = "checksum"


def key(program: str, arguments: dict) -> str:
    """Return the address of a result: equal for equal programs and arguments, and only then."""
    content = json.dumps(arguments, sort_keys=True, default=_plain)
    return hashlib.sha256(f"{program}\0{content}".encode()).hexdigest()


def load(address: str) -> dict[str, np.ndarray] | None:
    """Return a stored result, or None; a damaged entry is reported and counts as absent."""
    path = _path(address)
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as entry:
            arrays = {name: entry[name] for name in entry.files}
        if str(arrays.pop(_CHECKSUM)) == _checksum(arrays):
            return arrays
    except Exception:  # damage can surface as almost any error of zip, zlib or numpy
        pass
    warnings.warn(f"Store entry {path.name} is damaged and is computed again.", stacklevel=2)
    return None


def save(address: str, arrays: dict[str, np.ndarray]) -> None:
    """Write a result at once; a reader sees all of it or nothing."""
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    objects = [name for name, value in arrays.items() if value.dtype == object]
    if objects or _CHECKSUM in arrays:
        raise BookError(f"A task may return numbers, strings and arrays of them, not {objects}.")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, **{_CHECKSUM: np.array(_checksum(arrays))})
    write_atomically(_path(address), buffer.getvalue())


def _path(address: str) -> Path:
    root = Path(os.environ.get("REGRETBOOK_STORE") or project().cache / "store")
    return root / address[:2] / f"{address}.npz"


def _checksum(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name}:{_describe(arrays[name])};".encode())
    return digest.hexdigest()


def _describe(array: np.ndarray) -> str:
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype.str}{array.shape}{content}"


def _plain(value):
    """Turn what JSON does not know into something that identifies it by content."""
    if isinstance(value, np.ndarray):
        return _describe(value)
    if isinstance(value, np.generic):
        return value.item()
    raise BookError(f"A {type(value).__name__} cannot be an argument of a stored task.")
