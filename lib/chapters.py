"""The definitions of a page as a module, so that tests, chapters and readers need no copies."""

import ast
import functools
import re
from types import ModuleType

from lib import journal, program, toc
from lib.cells import Cell, code_cells, code_digest
from lib.paths import project


def load(name: str) -> ModuleType:
    """Return the imports, functions, classes and constants of a page as a module.

    A page defines its algorithms between experiments that take minutes; only definitions are kept:
    imports, functions, classes, the parameters cell, and assignments to names in capitals. What
    other pages take reads no parameter: it would see the default, whatever the reader chose.
    """
    page = toc.find(name)
    text = _text(page)
    journal.note(journal.Loaded(page.name, code_digest(code_cells(text))))
    return program.load_page(page.name, _source(text))


def _text(page: toc.Entry) -> str:
    return (project().book / f"{page.file}.md").read_text(encoding="utf-8")


def _source(text: str) -> str:
    """Return the definitions of a page, and the digests of those of the pages that it loads.

    A page behind it that has changed makes it another module, although its own text is the same.
    """
    source = _defined(text)
    for name in re.findall(r"""chapters\.load\(["']([^"']+)["']\)""", source):
        source += f"# {name} {program.digest(_source(_text(toc.find(name))))}\n"
    return source


@functools.lru_cache(maxsize=100)
def _defined(text: str) -> str:
    return "\n\n\n".join(filter(None, map(_definitions, code_cells(text)))) + "\n"


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
