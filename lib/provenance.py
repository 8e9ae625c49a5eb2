"""What a number depends on besides its own code: packages, the library's text, the machine."""

import ast
import functools
import hashlib
import os
import platform
import re
from collections.abc import Iterable
from importlib import metadata

from lib.definitions import imports, normalised
from lib.errors import BookError
from lib.paths import LIB

NUMERICAL = ("numpy", "scipy", "numba", "llvmlite", "pandas", "scikit-learn", "torch")
WORLDS = ("gymnasium", "minigrid")  # of these only what a program imports can change its result
_LIB = {path.stem: path.read_text("utf-8") for path in LIB.glob("*.py")}  # as this process has it


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result."""
    installed = {name: _version(name) for name in NUMERICAL}
    return {"python": platform.python_version()} | {n: v for n, v in installed.items() if v}


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name).split("+")[0]
    except metadata.PackageNotFoundError:
        return ""


def ground(statements: Iterable[str]) -> str:
    """Return what a program stands on: the packages and the parts of `lib` that it imports."""
    found: set[str] = set()
    statements = list(statements)
    waiting = set().union(*map(_lib_imports, statements))
    while waiting:
        found.add(name := waiting.pop())
        waiting |= _lib_imports(_LIB[name]) - found
    worlds = [world for world in WORLDS if any(world in text for text in statements)]
    return _heading(found, worlds)


def check_ground(heading: str) -> None:
    """Refuse a program that stands on other packages or another `lib` than this process has."""
    parts = re.findall(r"^# lib/(\w+)\.py", heading, re.MULTILINE)
    ours = _heading(parts, WORLDS).splitlines()
    other = [line for line in heading.strip().splitlines() if line not in ours]
    if other:
        raise BookError(
            f"A task was made with {other[0].removeprefix('# ')}, which this process does not "
            "have: install the same version of the book and of its packages on all machines."
        )


def _heading(parts: Iterable[str], worlds: Iterable[str]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    of_worlds = [f"# {world} {_version(world)}" for world in worlds]
    of_lib = [f"# lib/{part}.py {_lib_digest(part)}" for part in sorted(parts)]
    return "\n".join([f"# {packages}", *of_worlds, *of_lib])


@functools.cache
def _lib_imports(source: str) -> frozenset[str]:
    if "lib" not in source:  # most definitions, and parsing them takes time
        return frozenset()
    found = (module.split(".") for module in imports(ast.parse(source)))
    return frozenset(path[1] for path in found if path[0] == "lib" and len(path) > 1)


def _lib_digest(name: str) -> str:
    """Return the digest of a part of `lib`, which must still be what this process imported."""
    path, ours = LIB / f"{name}.py", _LIB.get(name, "")
    now = path.read_text("utf-8") if path.is_file() else ""
    if now != ours and _digest(now) != _digest(ours):
        raise BookError(
            f"lib/{name}.py has changed since this process began: start it again, finished work is "
            "kept."
        )
    return _digest(ours)


@functools.cache
def _digest(source: str) -> str:
    return hashlib.sha256(normalised(source).encode()).hexdigest()[:20]


def lib_digest() -> str:
    """Return a digest of every source file of `lib`: a changed line makes a page stale."""
    digest = hashlib.sha256()
    for path in sorted(LIB.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    """Describe the machine without naming it: system, processor family and cores."""
    return f"{platform.system()} {platform.machine()}, {cores()} cores"
