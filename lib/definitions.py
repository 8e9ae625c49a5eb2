"""What a function or class says, without what cannot change a number, and what it reads."""

import ast
import functools
import importlib.util
import inspect
import linecache
import math
import symtable
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
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
    return _unparsed(ast.parse(source))


def _unparsed(tree: ast.AST) -> str:
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
    tree = _tree(value)
    if inspect.isfunction(value):
        _keep_defaults(tree.args, value)
    source = _unparsed(tree)
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


def _tree(value) -> ast.stmt:
    """Return the definition of a function or class as it stands in its file or in its cell."""
    if inspect.isfunction(value):
        found = _in_file(value.__code__.co_filename).get(value.__code__.co_firstlineno)
    else:
        file = getattr(sys.modules.get(value.__module__), "__file__", None)
        found = _in_file(file).get(value.__name__) if file else None
        if found is None and value.__module__ == "__main__":
            found = _in_cells(value.__name__)
    if found is None or found.name != value.__name__:
        raise BookError(
            f"The source of {value.__name__!r} is not where it was when it was imported: write it "
            "with `def` or `class` in a page or a file, and restart the kernel after a change."
        )
    return found


def _keep_defaults(arguments: ast.arguments, function: FunctionType) -> None:
    """Write the defaults that a function has: what they were computed from may have changed."""
    names = [each.arg for each in arguments.kwonlyargs]
    by_name = function.__kwdefaults__ or {}
    for nodes, values in (
        (arguments.defaults, function.__defaults__ or ()),
        (arguments.kw_defaults, [by_name.get(name) for name in names]),
    ):
        for i, value in enumerate(values):
            if nodes[i] is not None and literal(value) is not None:
                nodes[i] = ast.parse(literal(value), mode="eval").body


def _in_file(file: str) -> dict[int | str, ast.stmt]:
    linecache.checkcache(file)
    return _definitions_of("".join(linecache.getlines(file)))


def _in_cells(name: str) -> ast.stmt | None:
    """Find a class of a notebook: unlike functions, classes there do not know their own file."""
    cells = vars(sys.modules["__main__"]).get("In", [])
    return next(filter(None, (_definitions_of(cell).get(name) for cell in reversed(cells))), None)


@functools.lru_cache(maxsize=1000)
def _definitions_of(source: str) -> dict[int | str, ast.stmt]:
    """Return the functions of a text by their first line, and its classes by name."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic command, or a file half written
        return {}
    found: dict[int | str, ast.stmt] = {}
    for node in [*ast.walk(tree), *tree.body]:  # of classes with one name, the last outer one
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[min([node.lineno, *(d.lineno for d in node.decorator_list)])] = node
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node
    return found


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
