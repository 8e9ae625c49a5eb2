"""The program of a task: the functions it runs and everything they call, as one module.

One text serves three purposes. It is hashed into the key of a stored result, so that a changed line
reruns exactly what depends on it. It is written to disk under its own digest and compiled from
there, so that numba's cache survives the kernel and can never be stale: another text is another
file. And a task made of text and numbers runs in any process without pickling code.
"""

import ast
import dis
import functools
import hashlib
import importlib.util
import inspect
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType

from numba.core.dispatcher import Dispatcher

from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import LIB, project
from lib.provenance import versions

_LITERALS = (bool, int, float, str, bytes, type(None))
_lock = threading.Lock()
_sources = weakref.WeakKeyDictionary()  # a changed function is another object: never stale


def text(functions: dict[str, Callable], ending: str = "") -> str:
    """Return a module that defines every function under its given name, then runs `ending`."""
    parts: dict[str, str] = {}
    for function in functions.values():
        _collect(_plain(function).__name__, function, parts)
    for name, function in functions.items():
        if _plain(function).__name__ != name:
            _add(name, f"{name} = {_plain(function).__name__}", parts)
    body = "\n\n".join([*parts.values(), ending]).strip() + "\n"
    return f"{_heading(body)}\n\n{body}"


def load(program: str) -> ModuleType:
    """Import a program; the same text gives the same module, compiled at most once."""
    name = f"regretbook_program_{digest(program)[:20]}"
    with _lock:
        if name not in sys.modules:
            path = project().cache / "programs" / f"{name}.py"
            if not path.exists():
                write_atomically(path, program.encode())
            sys.modules[name] = import_file(name, path)
        return sys.modules[name]


def import_file(name: str, path) -> ModuleType:
    """Import one file under a name; numba needs the module registered before it compiles."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _heading(body: str) -> str:
    """Name what the body depends on besides itself: the parts of `lib` it imports, and packages."""
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    used = sorted(_lib_files(body))
    return "\n".join([f"# {packages}", *(f"# lib/{name}.py {_file_digest(name)}" for name in used)])


def _lib_files(source: str) -> set[str]:
    """Return the modules of `lib` that a text imports, directly or through each other."""
    found: set[str] = set()
    waiting = set(_imported(source))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= _imported((LIB / f"{name}.py").read_text(encoding="utf-8"))
    return found


@functools.cache
def _imported(source: str) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "lib":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lib."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lib.")}
    return frozenset(names)


def _file_digest(name: str) -> str:
    return hashlib.sha256((LIB / f"{name}.py").read_bytes()).hexdigest()[:20]


def _plain(function: Callable) -> Callable:
    return function.py_func if isinstance(function, Dispatcher) else function


def _collect(name: str, value, parts: dict[str, str]) -> None:
    """Add the definition of `name`, after those it depends on, to `parts`."""
    if isinstance(value, ModuleType):
        _add(name, _import_module(name, value), parts)
        return
    if isinstance(value, _LITERALS) or _is_literal_tuple(value):
        _add(name, f"{name} = {value!r}", parts)
        return
    value = _plain(value)
    if not isinstance(value, FunctionType | type) and not callable(value):
        raise BookError(
            f"A function of this page reads the global {name!r}, which is a "
            f"{type(value).__name__}: pass it as an argument, so that results can be stored by it."
        )
    if not _is_of_a_page(value):
        _add(name, _import_name(name, value), parts)
        return
    source = _source(value)
    if parts.get(name) == source:
        return
    _add(name, source, parts)
    for dependency, found in _globals_of(value, source).items():
        if dependency != name:
            _collect(dependency, found, parts)
    parts[name] = parts.pop(name)  # after its dependencies


def _add(name: str, definition: str, parts: dict[str, str]) -> None:
    if parts.setdefault(name, definition) != definition:
        raise BookError(
            f"Two different things are called {name!r} in what this task runs: rename one of them."
        )


def _import_module(name: str, module: ModuleType) -> str:
    chapter = getattr(module, "__chapter__", None)
    if chapter:  # the digest in the text makes a changed page another program
        return f"from lib import chapters\n{name} = chapters.load({chapter!r})  # {module.__name__}"
    return f"import {module.__name__} as {name}"


def _import_name(name: str, value) -> str:
    origin = getattr(value, "__name__", name)
    alias = name if origin == name else f"{origin} as {name}"
    return f"from {value.__module__} import {alias}"


def _is_of_a_page(value) -> bool:
    """Return whether a function or class comes from a page or a test, not from a package."""
    module = sys.modules.get(getattr(value, "__module__", None) or "builtins")
    if module is None or module.__name__.split(".")[0] == "lib":
        return False
    if module.__name__ == "__main__" or hasattr(module, "__chapter__"):
        return True
    file = getattr(module, "__file__", None) or ""
    return module.__name__.startswith(("test_", "tests.", "regretbook_")) and bool(file)


def _is_literal_tuple(value) -> bool:
    return type(value) is tuple and all(isinstance(item, _LITERALS) for item in value)


def _source(value) -> str:
    """Return the definition without comments and layout, so that only code changes count."""
    if value not in _sources:
        _sources[value] = _read_source(value)
    return _sources[value]


def _read_source(value) -> str:
    try:
        return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(value))))
    except (OSError, TypeError) as error:
        source = _source_in_cells(value.__name__)
        if source is None:
            raise BookError(f"the source of {value.__name__!r} cannot be read: {error}") from error
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


def _globals_of(value, source: str) -> dict:
    """Return the globals that a function or class reads, by name, wherever it is defined."""
    if isinstance(value, FunctionType):
        scope = value.__globals__
        names = set(_loaded(value.__code__)) | _outside_body(source)
    else:
        scope = vars(sys.modules[value.__module__])
        names = _read_names(ast.parse(source))
    return {name: scope[name] for name in sorted(names) if name in scope}


def _loaded(code: CodeType) -> list[str]:
    names = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names += _loaded(constant)
    return names


def _outside_body(source: str) -> set[str]:
    """Return the names in decorators, defaults and annotations: the bytecode has none of them."""
    (node,) = ast.parse(source).body
    outside = [*node.decorator_list, node.args, *([node.returns] if node.returns else [])]
    return set().union(*map(_read_names, outside))


def _read_names(tree: ast.AST) -> set[str]:
    """Return the names that are read; a field of a class is written and is no global."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
