"""What a number depends on besides its own code: packages, the library's text, the machine."""

import functools
import hashlib
import os
import platform
from importlib import metadata

from lib.paths import LIB

NUMERICAL = ("numpy", "scipy", "numba", "llvmlite", "pandas", "scikit-learn", "torch")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in NUMERICAL:
        try:
            found[name] = metadata.version(name).split("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return found


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
