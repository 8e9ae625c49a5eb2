"""The definitions of a page as a module, so that tests, chapters and readers need no copies."""

import ast
import hashlib
import re
from types import ModuleType

from lib import journal, program, toc
from lib.cells import Cell, code_cells, code_digest
from lib.paths import project


def load(name: str) -> ModuleType:
    """Return the imports, functions, classes and constants of a page as a module.

    A page defines its algorithms between experiments that take minutes; only definitions are kept:
    imports, functions, classes, the parameters cell, and assignments to names in capitals.
    """
    file = project().book / f"{toc.find(name).file}.md"
    cells = code_cells(file.read_text(encoding="utf-8"))
    journal.note(journal.Loaded(name, code_digest(cells)))
    source = "\n\n\n".join(filter(None, (_definitions(cell) for cell in cells))) + "\n"
    digest = hashlib.sha256(source.encode()).hexdigest()[:20]
    return program.load_page(f"regretbook_page_{re.sub('[^a-z0-9]', '_', name)}_{digest}", source)


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
