"""The program of a task: the functions it runs and everything they call, as one small package.

One text serves three purposes. It is hashed into the key of a stored result, so that a changed line
reruns exactly what depends on it. It is executed under its own digest, beside numba's cache, which
so survives the kernel and can never be stale: another text is another folder. And a task made of
text and numbers runs in any process, on any machine, without pickling code.

The package has a file for each module that definitions come from (this page, pages it loads, the
reader's modules), each with nothing but what the task uses, without comments and docstrings.
Installed packages and `lib` are imported; a heading names their versions and digests.

A compiled loop and what it calls are a package of their own, before the one that uses it: programs
that differ in how a trial begins, or in what is watched, share its machine code.
"""

import functools
import graphlib
import hashlib
import inspect
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from types import FunctionType, ModuleType
from typing import NamedTuple

from lib import provenance, toc
from lib.definitions import definition, is_own, literal
from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import project

_MAIN = "__init__"  # the file that has the functions under their given names
_THEN = "\n# then\n"  # between the package of a compiled loop and the one that uses it
_lock = threading.RLock()  # a page may load another one


class _Package(NamedTuple):
    """The files of a package under way."""

    files: dict[str, dict[str, str]]  # file -> name -> statement, in the order of execution
    homes: dict[str, str]  # module -> file
    uses: dict[str, dict[str, None]]  # file -> files that it imports
    classes: dict[type, None]  # that it defines
    before: "tuple[str, _Package] | None" = None  # the package whose definitions it takes over


def text(
    functions: dict[str, Callable],
    ending: str = "",
    loop: Callable | None = None,
    compiling: str = "",
) -> str:
    """Return a program that has every function under its given name, then runs `ending`.

    A loop calls the functions by these names, whatever they are called at home; `compiling` is what
    makes it the compiled `rounds`. What it is compiled for are the classes of its arguments, so
    they belong to its package.
    """
    whole = _package(functions, loop)
    if not compiling:
        return _written(whole, ending)
    reads = definition(inspect.unwrap(loop)).reads
    called = {name: function for name, function in functions.items() if name in reads}
    classes = sorted(whole.classes, key=lambda each: (whole.homes[each.__module__], each.__name__))
    core = _package(called, loop, classes)
    first = _written(core, compiling)
    rest = _package(functions, before=(_name(first), core))
    return first + _THEN + _written(rest, f"from {_name(first)} import rounds\n{ending}")


def _package(
    functions: dict[str, Callable],
    loop: Callable | None = None,
    classes: Collection[type] = (),
    before: tuple[str, _Package] | None = None,
) -> _Package:
    package = _Package({}, {}, {}, {}, before)
    _file(_MAIN, package)
    for name, function in functions.items():
        _bind(name, function, _MAIN, package)
    if loop is not None:
        _define(inspect.unwrap(loop), _MAIN, package, given=functions)
    for each in classes:
        _define(each, _file(each.__module__, package), package)
    return package


def _written(package: _Package, ending: str) -> str:
    package.files[_MAIN][""] = ending.strip()
    try:
        order = [*graphlib.TopologicalSorter(package.uses).static_order()]
    except graphlib.CycleError as error:
        names = " and ".join(sorted(set(error.args[1])))
        raise BookError(f"The modules {names} need each other: join them.") from None
    statements = [statement for parts in package.files.values() for statement in parts.values()]
    sections = [f"# file {file}\n" + "\n\n".join(package.files[file].values()) for file in order]
    return "\n\n".join([provenance.ground(statements), *sections]).strip() + "\n"


@functools.lru_cache(maxsize=512)  # every task asks for those of its program
def packages(program: str) -> dict[str, str]:
    """Return the packages of a program, text by name, in the order in which they are loaded."""
    return {_name(each): each for each in program.split(_THEN)}


def load(program: str) -> ModuleType:
    """Return a program as a module; the same text gives the same module, compiled at most once."""
    with _lock:
        modules = [_load(name, each) for name, each in packages(program).items()]
    return modules[-1]


def _name(package: str) -> str:
    return f"regretbook_program_{digest(package)[:20]}"


def _load(name: str, text: str) -> ModuleType:
    """Return a package of a program as a module."""
    if name not in sys.modules:
        heading, *sections = re.split(r"^# file (\w+)\n", text, flags=re.MULTILINE)
        provenance.check_ground(heading)
        package = sys.modules[name] = ModuleType(name)  # there before its files import others
        package.__path__ = []  # files are executed here and never looked for
        try:
            for file, source in zip(sections[::2], sections[1::2], strict=True):
                module = package if file == _MAIN else ModuleType(f"{name}.{file}")
                path = project().cache / "programs" / name / f"{file}.py"
                _execute(module, name, path, source)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def load_page(page: str, source: str) -> ModuleType:
    """Return the definitions of a page as a module; another text is another module."""
    name = f"regretbook_page_{re.sub('[^a-z0-9]', '_', page)}_{digest(source)[:20]}"
    with _lock:
        if name not in sys.modules:
            try:
                _execute(ModuleType(name), "", project().cache / "pages" / f"{name}.py", source)
            except BaseException:
                sys.modules.pop(name, None)
                raise
        return sys.modules[name]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _execute(module: ModuleType, package: str, path: Path, source: str) -> None:
    """Run a text as a module whose file holds this very text, whatever the file held before.

    numba keeps machine code beside the file; who asks for the source gets what was executed.
    """
    if not path.is_file() or path.read_bytes() != source.encode():
        write_atomically(path, source.encode())
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    module.__file__, module.__package__ = str(path), package
    sys.modules[module.__name__] = module  # numba looks for it when it compiles
    exec(compile(source, path, "exec"), vars(module))


def _bind(name: str, value, file: str, package: _Package, attributes: Collection = ((),)) -> None:
    """Make `name` mean `value` in a file, and add to the package all that this takes."""
    constant = literal(value)
    if constant is not None:
        _add(name, f"{name} = {constant}", file, package)
    elif isinstance(value, ModuleType):
        _bind_module(name, value, file, package, attributes)
    elif callable(value):
        _bind_callable(name, value, file, package)
    else:
        _refuse(name, value)


def _bind_module(
    name: str, module: ModuleType, file: str, package: _Package, attributes: Collection
) -> None:
    if not is_own(module.__name__):
        _add(name, f"import {module.__name__} as {name}", file, package)
        return
    if () in attributes:
        raise BookError(
            f"A function of this task uses the module {name!r} as a value: take its functions by "
            f"name, as in {name}.f(x), so that results can be stored by what they use."
        )
    home = _file(module.__name__, package)
    for first, *rest in sorted(attributes):
        if hasattr(module, first):  # else an inner scope has a variable of the module's name
            _bind(first, getattr(module, first), home, package, [tuple(rest)])
    _add(name, f"from . import {home} as {name}", file, package, uses=home)


def _bind_callable(name: str, value: Callable, file: str, package: _Package) -> None:
    plain = inspect.unwrap(value)  # what numba or another decorator was given
    module, origin = plain.__module__ or "builtins", getattr(plain, "__name__", name)
    alias = name if name == origin else f"{origin} as {name}"
    if not is_own(module):
        if inspect.unwrap(getattr(sys.modules.get(module), origin, None)) is not plain:
            _refuse(name, value)
        _add(name, f"from {module} import {alias}", file, package)
        return
    if not isinstance(plain, FunctionType | type):
        _refuse(name, value)
    if plain is not value and not definition(plain).source.startswith("@"):
        raise BookError(
            f"The function {origin!r} was decorated after its definition: write the decorator "
            "above its `def`, so that results can be stored by it."
        )
    home = _file(module, package)
    _define(plain, home, package)
    if (home, origin) != (file, name):
        _add(name, f"from .{home} import {alias}", file, package, uses=home)


def _define(value, file: str, package: _Package, given: Collection[str] = ()) -> None:
    """Add the text of a function or class to a file, after everything it depends on."""
    name, parts, (source, reads) = value.__name__, package.files[file], definition(value)
    if parts.get(name) == source:
        return
    if package.before is not None:
        other, before = package.before
        if before.files.get(file, {}).get(name) == source:
            _add(name, f"from {other}.{file} import {name}", file, package)
            return
    _add(name, source, file, package)
    if isinstance(value, type):
        package.classes[value] = None
    has_globals = isinstance(value, FunctionType)
    scope = value.__globals__ if has_globals else vars(sys.modules[value.__module__])
    for each, attributes in sorted(reads.items()):
        if each in scope and each not in {name, *given}:
            _bind(each, scope[each], file, package, attributes)
    parts[name] = parts.pop(name)


def _add(name: str, statement: str, file: str, package: _Package, uses: str | None = None) -> None:
    if package.files[file].setdefault(name, statement) != statement:
        raise BookError(
            f"Two different things are called {name!r} in what this task runs: rename one of them."
        )
    if uses is not None:
        package.uses[file][uses] = None


def _file(module: str, package: _Package) -> str:
    """Return the file for the definitions of a module, named after it but not its version.

    A page that runs has the name that it has where it is loaded: what two pages of a chapter run is
    one program, compiled and computed once.
    """
    if module not in package.homes:
        plain = re.sub(r"^regretbook_page_|_[0-9a-f]{20}$|\W", "", module.replace(".", "_"))
        file = _running() if module == "__main__" else plain
        while file in package.files:  # two versions of one page
            file += "_"
        package.homes[module] = file
        package.files[file], package.uses[file] = {}, {}
    return package.homes[module]


def _running() -> str:
    """Return the name of the page that this kernel runs, as `load_page` would have it."""
    page = os.environ.get("REGRETBOOK_PAGE", "")
    name = toc.find(page.removesuffix(f"/{toc.INDEX}")).name if page else "main"
    return re.sub("[^a-z0-9]", "_", name)


def _refuse(name: str, value) -> None:
    raise BookError(
        f"A function of this task reads the global {name!r}, which is a {type(value).__name__}: "
        "pass it as an argument, so that results can be stored by it."
    )
