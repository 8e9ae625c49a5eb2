"""Where things are: every folder of the project, named once.

`REGRETBOOK_ROOT` moves the project; commands and the kernels they start see the same one.
"""

import os
from pathlib import Path
from typing import NamedTuple

CODE = Path(__file__).resolve().parent.parent  # where `lib` and `ci` themselves lie
LIB = CODE / "lib"


class Project(NamedTuple):
    """The folders and files of one project."""

    root: Path
    book: Path
    claims: Path  # the ledger, a file for each chapter
    profiles: Path
    toc: Path
    config: Path
    constraints: Path
    data: Path
    results: Path
    build: Path
    logs: Path
    cache: Path


def project_at(root: Path) -> Project:
    """Return the project of a root folder."""
    root = Path(root).resolve()
    book, build = root / "book", root / "_build"
    return Project(
        root=root,
        book=book,
        claims=book / "claims",
        profiles=book / "profiles.yml",
        toc=root / "_toc.yml",
        config=root / "_config.yml",
        constraints=root / "constraints.txt",
        data=root / "data",
        results=root / "results",
        build=build,
        logs=build / "logs",
        cache=root / ".cache",
    )


def project() -> Project:
    """Return the project that this process works on: that of REGRETBOOK_ROOT, or this checkout."""
    return project_at(Path(os.environ.get("REGRETBOOK_ROOT") or CODE))
