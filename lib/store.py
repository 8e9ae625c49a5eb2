"""The store of finished tasks: content-addressed, crash-safe, arrays only.

The key is made of the program a task runs (its functions, `lib`, package versions) and its
arguments (parameters, seed, the content of every array). So a killed run continues where it was and
two runs may share a store: both would write the same result. A program's results lie in one
folder, each with what it cost, which is no part of the result.
"""

import hashlib
import json
import math
import os
import warnings
import zlib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib.errors import BookError
from lib.files import sweep, write_atomically
from lib.paths import project

SUFFIX = ".task"
_PROGRAM = "program.txt"
_SEAL = hashlib.sha256().digest_size


class Cost(NamedTuple):
    """What a task took, and how much work that was in the unit of its program."""

    seconds: float  # of one core
    work: float


def folder() -> Path:
    """Return where the store is: REGRETBOOK_STORE, or the cache of the project."""
    return Path(os.environ.get("REGRETBOOK_STORE") or project().cache / "store")


def group(program: str) -> str:
    """Return the name of the folder that holds all results of a program."""
    return hashlib.sha256(program.encode()).hexdigest()[:20]


def describe(text: str) -> None:
    """Keep the text of a program beside its results, so that one can tell who may ask for them."""
    path = folder() / group(text) / _PROGRAM
    sweep(path.parent)
    if not path.exists():
        write_atomically(path, text.encode())


def program(name: str) -> str | None:
    """Return the text of the program whose results lie in a folder, if it is known and whole."""
    path = folder() / name / _PROGRAM
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return text if group(text) == name else None


def key(program: str, arguments: dict, known: dict[int, str] | None = None) -> str:
    """Return the address of a result: equal for equal programs and arguments, and only then.

    Who asks for the keys of many tasks at once gives one `known` for all: an array that they share
    is then read once. It must not outlive the arrays, nor a change of one.
    """
    known = {} if known is None else known
    content = json.dumps(arguments, sort_keys=True, default=partial(_plain, known))
    digest = hashlib.sha256(f"{program}\0{content}".encode()).hexdigest()
    return f"{group(program)}/{digest}"


def load(address: str) -> dict[str, np.ndarray] | None:
    """Return a stored result, or None; a damaged entry is reported and counts as absent."""
    found = read(address)
    return None if found is None else found[0]


def read(address: str) -> tuple[dict[str, np.ndarray], Cost | None] | None:
    """Return a stored result and what it cost, if that is known, or None like `load`."""
    path = _path(address)
    if not path.exists():
        return None
    try:
        return _opened(path.read_bytes())
    except Exception:  # damage can surface as almost any error of zlib, JSON or numpy
        warnings.warn(f"Store entry {path.name} is damaged and is computed again.", stacklevel=3)
        return None


def save(address: str, arrays: dict[str, np.ndarray], cost: Cost | None = None) -> None:
    """Write a result at once; a reader sees all of it or nothing."""
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    refused = [name for name, value in arrays.items() if value.dtype.kind in "OV"]
    if refused:
        raise BookError(f"A task may return numbers, strings and arrays of them, not {refused}.")
    write_atomically(_path(address), _sealed(arrays, cost), durable=False)


def cost(address: str) -> Cost | None:
    """Return what a stored result cost, or None where that is not known."""
    try:
        return _opened(_path(address).read_bytes())[1]
    except Exception:  # absent or damaged
        return None


def _path(address: str) -> Path:
    return folder() / f"{address}{SUFFIX}"


def _sealed(arrays: dict[str, np.ndarray], cost: Cost | None) -> bytes:
    """Return an entry: a digest, then a line of JSON and the bytes of all arrays, compressed.

    numpy's own archive has a member for every array, which for arrays of ten numbers takes longer
    than many a task.
    """
    about = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    head = json.dumps({"cost": cost, "arrays": about}).encode()
    content = b"".join([head, b"\n", *(array.tobytes() for array in arrays.values())])
    packed = zlib.compress(content, level=1)
    return hashlib.sha256(packed).digest() + packed


def _opened(entry: bytes) -> tuple[dict[str, np.ndarray], Cost | None]:
    """Return what `_sealed` was given."""
    seal, packed = entry[:_SEAL], entry[_SEAL:]
    if hashlib.sha256(packed).digest() != seal:
        raise ValueError("its digest is another one")
    head, _, data = zlib.decompress(packed).partition(b"\n")
    about, start, arrays = json.loads(head), 0, {}
    for name, kind, shape in about["arrays"]:
        # A copy is aligned and can be written to, as any array.
        arrays[name] = np.frombuffer(data, kind, math.prod(shape), start).reshape(shape).copy()
        start += arrays[name].nbytes
    return arrays, Cost(*about["cost"]) if about["cost"] else None


def _describe(array: np.ndarray) -> str:
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"{array.dtype.str}{array.shape}{content}"


def _plain(known: dict[int, str], value):
    """Turn what JSON does not know into something that identifies it by content."""
    if isinstance(value, np.ndarray):
        if id(value) not in known:
            known[id(value)] = _describe(value)
        return known[id(value)]
    if isinstance(value, np.generic):
        return value.item()
    raise BookError(f"A {type(value).__name__} cannot be an argument of a stored task.")
