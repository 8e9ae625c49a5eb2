"""`regretbook data`: where each dataset was found, and whether it is what the registry says."""

import sys
from pathlib import Path

from ci.add import add
from lib import datasets
from lib.errors import BookError, nearest
from lib.paths import project


def act(action: str, names: list[str], columns: str | None = None) -> int:
    """List, fetch, check or add datasets; return the exit status."""
    if action == "add":
        return _add(names, columns)
    for name in names:
        if name not in datasets.registry():
            raise BookError(f"there is no dataset {name!r}{nearest(name, datasets.registry())}")
    return {"list": _list, "fetch": _fetch, "check": _check}[action](names)


def _add(names: list[str], columns: str | None) -> int:
    if len(names) != 2:
        raise BookError("data add takes a name and a file: regretbook data add NAME FILE")
    print(add(project(), names[0], Path(names[1]), columns))
    return 0


def _list(names: list[str]) -> int:
    for status in datasets.status():
        if not names or status.name in names:
            digest = f", sha256 {status.digest[:16]}" if status.digest else ""
            wrong = ", not the registered files" if status.intact is False else ""
            print(f"{status.name}  {status.title}")
            print(f"    found: {status.where}{digest}{wrong}")
            print(f"    rows: {status.rows:,}, users: {status.users:,}, items: {status.items:,}")
            print(f"    terms: {status.terms}")
    return 0


def _fetch(names: list[str]) -> int:
    if not names:
        raise BookError(f"name what to fetch: {', '.join(datasets.registry())}")
    for name in names:
        found = datasets.fetch(name, progress=sys.stderr.isatty())
        print(f"{name}: {found.path} ({found.where})")
    return 0


def _check(names: list[str]) -> int:
    """Check the named datasets, or all: then an absent one is no mistake."""
    wrong = False
    for name in names or datasets.registry():
        if not names and datasets.digest(name) is None:
            print(f"{name}: absent")
            continue
        problems = datasets.check(name)
        wrong |= bool(problems)
        print(f"{name}: {'; '.join(problems) or 'as registered'}")
    return 1 if wrong else 0
