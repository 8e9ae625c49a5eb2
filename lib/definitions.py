"""What a function or class says, without what cannot change a number, and what it reads."""

import ast
import importlib.util
import inspect
import math
import symtable
import sys
import textwrap
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lib.errors import BookError

_INSTALLED = {"site-packages", "dist-packages"}
_LITERALS = (bool, int, float, complex, str, bytes, type(None))
_SCALARS = ("float64", "int64", "bool", "bool_")  # of numpy, equal to numbers of Python
_DOCUMENTED = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_known = weakref.WeakKeyDictionary()  # a changed function is another object: never stale


class Definition(NamedTuple):
    """A function or class as normalised text, and what it takes from its module."""

    source: str
    reads: dict[str, set[tuple[str, ...]]]  # global name -> attributes taken of it, () for itself


def definition(value) -> Definition:
    """Return what a function or class says."""
    if value not in _known:
        _known[value] = _read(value)
    return _known[value]


def normalised(source: str) -> str:
    """Return code without comments, docstrings and layout, so that only code changes count."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def imports(tree: ast.AST) -> Iterator[str]:
    """Return the modules that a text imports; of `lib` its modules, however they are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "lib":
            yield from (f"lib.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def is_own(module: str) -> bool:
    """Return whether a module is of a page or a reader: not Python's, not installed, not lib's."""
    top = module.partition(".")[0]
    if module == "__main__":
        return True
    if top in sys.stdlib_module_names or top == "lib":
        return False
    found = sys.modules.get(module) or sys.modules.get(top)
    spec = None if found else importlib.util.find_spec(top)
    file = getattr(found, "__file__", None) or (spec and spec.origin)
    return file is not None and not _INSTALLED & set(Path(file).parts)


def literal(value) -> str | None:
    """Return what to write for a constant, or None for anything else."""
    if type(value).__module__ == "numpy" and type(value).__name__ in _SCALARS:
        value = value.item()
    if type(value) is tuple:
        items = [literal(item) for item in value]
        return None if None in items else f"({''.join(f'{item}, ' for item in items)})"
    if type(value) is float and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value) if type(value) in _LITERALS else None


def _read(value) -> Definition:
    name = value.__name__
    if name == "<lambda>" or (inspect.isfunction(value) and value.__code__.co_freevars):
        raise BookError(
            f"The function {value.__qualname__!r} depends on where it was made: write it with "
            "`def`, outside of other functions, and pass what it needs as arguments."
        )
    source = normalised(_source(value))
    tree = ast.parse(source)
    if getattr(tree.body[0], "name", None) != name:
        raise BookError(
            f"The file with {name!r} has changed since it was imported: restart the kernel."
        )
    late = [module for module in imports(tree) if is_own(module) or module == "lib.chapters"]
    if late:
        raise BookError(
            f"{name!r} imports {late[0]} only when it runs, so that its results cannot be stored "
            "by the code they come from: import it at the top."
        )
    taken = _globals(symtable.symtable(source, name, "exec"))
    reads: dict[str, set[tuple[str, ...]]] = {}
    for first, *attributes in _names(tree):
        if first in taken:
            reads.setdefault(first, set()).add(tuple(attributes))
    return Definition(source, reads)


def _source(value) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError) as error:
        source = _source_in_cells(value.__name__)
        if source is None:
            raise BookError(
                f"The source of {value.__name__!r} cannot be read ({error}): write it with `def` "
                "or `class` in a page or a file."
            ) from error
        return source


def _source_in_cells(name: str) -> str | None:
    """Find a class of a notebook: unlike functions, classes there do not know their own source."""
    for cell in reversed(vars(sys.modules["__main__"]).get("In", [])):
        try:
            nodes = ast.parse(cell).body
        except SyntaxError:  # a magic command
            continue
        for node in reversed(nodes):
            if isinstance(node, ast.ClassDef) and node.name == name:
                return ast.unparse(node)
    return None


def _globals(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a text takes from its module, in whichever scope it reads them."""
    names = {s.get_name() for s in table.get_symbols() if s.is_referenced() and s.is_global()}
    return names.union(*map(_globals, table.get_children()))


def _names(tree: ast.AST) -> Iterator[list[str]]:
    """Return every name of a text with the attributes taken of it, as ["np", "linalg", "norm"]."""
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        attributes: list[str] = []
        if node not in inner:
            while isinstance(node, ast.Attribute):
                attributes.insert(0, node.attr)
                node = node.value
            if isinstance(node, ast.Name):
                yield [node.id, *attributes]
