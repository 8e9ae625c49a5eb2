"""The definitions of a page as a module, so that tests, chapters and readers need no copies."""

import ast
import hashlib
from pathlib import Path
from types import ModuleType

from lib import journal
from lib.errors import BookError, nearest
from lib.files import write_atomically
from lib.pages import Cell, code_cells, code_digest
from lib.paths import BOOK, CACHE
from lib.program import import_file

_modules: dict[str, ModuleType] = {}


def names() -> dict[str, Path]:
    """Return every page in the folders of the book by its short name."""
    return {path.stem: path for path in sorted(BOOK.glob("*/*.md"))}


def load(name: str) -> ModuleType:
    """Return the imports, functions, classes and constants of a page as a module.

    A page defines its algorithms between experiments that take minutes; only definitions are kept:
    imports, functions, classes, the parameters cell, and assignments to names in capitals.
    """
    if name not in names():
        raise BookError(f"there is no chapter {name!r}{nearest(name, names())}")
    cells = code_cells(names()[name].read_text(encoding="utf-8"))
    journal.note("chapter", name=name, digest=code_digest(cells))
    source = "\n\n\n".join(filter(None, (_definitions(cell) for cell in cells))) + "\n"
    digest = hashlib.sha256(source.encode()).hexdigest()[:20]
    module_name = f"regretbook_page_{name.replace('-', '_')}_{digest}"
    if module_name not in _modules:
        path = CACHE / "pages" / f"{module_name}.py"
        if not path.exists():
            write_atomically(path, source.encode())
        module = import_file(module_name, path)
        module.__chapter__ = name
        _modules[module_name] = module
    return _modules[module_name]


def _definitions(cell: Cell) -> str:
    lines = cell.source.splitlines()
    keep_all = "parameters" in cell.tags
    parts = []
    for node in ast.parse(cell.source).body:
        if keep_all or _is_definition(node):
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            parts.append("\n".join(lines[start - 1 : node.end_lineno]))
    return "\n\n\n".join(parts)


def _is_definition(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return all(isinstance(t, ast.Name) and t.id.isupper() for t in node.targets)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
