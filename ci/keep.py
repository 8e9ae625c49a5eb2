"""What is kept between runs: finished tasks, their programs, compiled code, and what can go."""

import ast
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from lib import provenance, store, toc
from lib.cells import code_cells
from lib.definitions import normalised
from lib.errors import BookError
from lib.paths import LIB, Project
from lib.program import packages

ENTRIES_OF_LIB = {"_play", "_once"}  # what a program is called by, in a text of lib/simulate.py
HOUR = 3600.0


class Kept(NamedTuple):
    """The results of one program, and whether a page of this tree can ask for them."""

    folder: Path
    entries: int
    size: int
    wanted: bool
    packages: frozenset[str] = frozenset()  # folders of its code


def show(project: Project, prune: bool) -> int:
    """Print how much is kept and how much of it no page can ask for; remove that if told to."""
    known = _definitions(project)
    kept = [_kept(folder, known) for folder in sorted(_folders(store.folder()))]
    useless = [each for each in kept if not each.wanted]
    wanted = frozenset().union(*(each.packages for each in kept if each.wanted))
    code = _useless_code(project, known, wanted)
    print(f"the store has {_amount(kept)}")
    amount = _amount(useless)
    size = sum(map(_size, code))
    if not useless and not code:
        print("a page of this tree can ask for all of it")
    elif prune:
        for path in [*(each.folder for each in useless), *code]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        print(f"removed {amount}, and {_megabytes(size)} of compiled code")
    else:
        print(
            f"no page of this tree can ask for {amount}, and {_megabytes(size)} of compiled code; "
            "`regretbook store --prune` removes them"
        )
    return 0


def _amount(kept: list[Kept]) -> str:
    entries, size = sum(each.entries for each in kept), sum(each.size for each in kept)
    return f"{entries:,} finished tasks of {len(kept):,} programs, {_megabytes(size)}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _folders(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if path.is_dir()] if root.is_dir() else []


def _kept(folder: Path, known: set[str]) -> Kept:
    text = store.program(folder.name)
    wanted = text is not None and _is_wanted(text, known)
    code = frozenset(packages(text) if wanted else ())
    return Kept(folder, len(list(folder.glob(f"*{store.SUFFIX}"))), _size(folder), wanted, code)


def _is_wanted(program: str, known: set[str]) -> bool:
    """Say whether what a program stands on and consists of is still there."""
    try:
        for each in packages(program).values():
            provenance.check_ground(each.partition("\n\n# file ")[0])
    except BookError:
        return False
    return _defined(program) <= known


def _defined(source: str) -> set[str]:
    """Return the functions and classes of a text, as programs write them."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic command, or a damaged file
        return {source}
    return {
        normalised(ast.unparse(node))
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.name not in ENTRIES_OF_LIB
    }


def _definitions(project: Project) -> set[str]:
    """Return all that pages of the table of contents define; the loop over rounds is lib's."""
    sources = [path.read_text(encoding="utf-8") for path in LIB.glob("*.py")]
    for entry in toc.entries(project):
        path = project.book / f"{entry.file}.md"
        if path.exists():
            sources += [cell.source for cell in code_cells(path.read_text(encoding="utf-8"))]
    return set().union(*map(_defined, sources))


def _useless_code(project: Project, known: set[str], wanted: frozenset[str]) -> list[Path]:
    """Return the files of programs and pages that nothing can load again, with compiled code.

    Whatever was written within the hour may belong to a run that has not finished a task yet.
    """
    programs, pages = project.cache / "programs", project.cache / "pages"
    found = [path for path in programs.glob("*") if path.name not in wanted]
    for path in pages.glob("*.py"):
        if not _defined(path.read_text(encoding="utf-8")) <= known:
            found += [path, *pages.glob(f"__pycache__/{path.stem}.*")]
    return [path for path in found if path.stat().st_mtime < time.time() - HOUR]
