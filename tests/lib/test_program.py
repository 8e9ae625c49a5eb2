"""The text of a task: complete, free of comments, changed exactly when its code changes."""

import linecache
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest

from lib import program
from lib.errors import BookError
from lib.kernels import dot, jit

SCALE = 3.0
TABLE = np.arange(4)


def helper(x):
    return SCALE * x


@jit
def compiled(x):
    return dot(x, x) + 1.0


def entry(x, weight=SCALE):
    return helper(compiled(x)) + weight


def reads_array(x):
    return TABLE[x]


def test_a_program_holds_everything_it_needs():
    text = program.text({"run": entry})
    module = program.load(text)
    x = np.array([1.0, 2.0])
    assert module.run(x) == entry(x) == 3 * 6 + 3
    assert module.__name__.endswith(program.digest(text)[:20])
    assert program.load(text) is module


def test_text_changes_with_code_of_a_callee_and_not_with_its_comments():
    def variant(body):
        scope = {"__name__": "test_variant"}
        return _define("test_variant", body, scope)

    base = variant("def callee(x):\n    return x + 1\n\n\ndef run(x):\n    return callee(x)\n")
    comment = variant(
        "def callee(x):\n    # why\n    return x  +  1\n\n\ndef run(x):\n    return callee(x)\n"
    )
    change = variant("def callee(x):\n    return x + 2\n\n\ndef run(x):\n    return callee(x)\n")
    assert base == comment
    assert base != change


def test_heading_names_only_the_parts_of_lib_that_are_imported():
    text = program.text({"run": compiled})
    assert "# lib/kernels.py" in text
    assert "# lib/figures.py" not in text


def test_a_global_array_is_refused_with_its_name():
    with pytest.raises(BookError, match="global 'TABLE'"):
        program.text({"run": reads_array})


class Point(NamedTuple):
    """A field with the name of a global array, which is no use of that array."""

    TABLE: float


def test_a_field_of_a_class_is_not_a_global():
    assert program.load(program.text({"Point": Point})).Point(1.0).TABLE == 1.0


def test_two_functions_of_one_name_are_refused():
    first = _define_function("test_first", "def same():\n    return 1\n", "same")
    second = _define_function("test_second", "def same():\n    return 2\n", "same")
    with pytest.raises(BookError, match="Two different things are called 'same'"):
        program.text({"a": first, "b": second})


def test_a_class_of_a_notebook_is_found_in_its_cells(monkeypatch):
    main = sys.modules["__main__"]
    cells = ["class Pair:\n    a = 1", "%magic", "class Pair:\n    a = 2  # the last one counts"]
    monkeypatch.setattr(main, "In", cells, raising=False)
    pair = type("Pair", (), {"__module__": "__main__", "a": 2})
    assert "class Pair:\n    a = 2\n" in program.text({"Pair": pair})
    with pytest.raises(BookError, match="source of 'Lost' cannot be read"):
        program.text({"Lost": type("Lost", (), {"__module__": "__main__"})})


def _define_function(module, source, name):
    scope = {"__name__": module}
    _define(module, source, scope)
    return scope[name]


def _define(module, source, scope):
    """Define functions whose source Python can find again, as a notebook cell does."""
    file = f"<{module} {abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[module] = types.ModuleType(module)
    sys.modules[module].__file__ = file
    exec(compile(source, file, "exec"), scope)
    return program.text({"run": scope["run"]}) if "run" in scope else None
