"""Loading a page: its definitions as a module, its experiments left alone."""

import linecache
import sys
import textwrap
import types

import pytest

from lib import chapters, journal, program
from lib.errors import BookError

PAGE = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

```{code-cell} ipython3
:tags: [parameters]

T = 100  # rounds
```

```{code-cell} ipython3
import math

from lib.kernels import jit
```

```{code-cell} ipython3
WIDTH = 2.0


@jit
def area(r):
    return WIDTH * r * r


def circle(r):
    # not part of the program's text
    return math.pi * area(r) / WIDTH
```

```{code-cell} ipython3
result = circle(1.0)
raise RuntimeError("experiments are not executed when a page is loaded")
```
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "shapes.md").write_text(PAGE)
    monkeypatch.setattr(chapters, "BOOK", tmp_path)
    monkeypatch.setattr(chapters, "CACHE", tmp_path / "cache")
    return tmp_path


def test_definitions_are_loaded_and_experiments_are_not(book):
    page = chapters.load("shapes")
    assert page.T == 100
    assert page.circle(2.0) == pytest.approx(4 * 3.141592653589793)
    assert not hasattr(page, "result")
    assert chapters.load("shapes") is page


def test_an_edited_page_is_another_module_and_prose_is_not_an_edit(book):
    page = chapters.load("shapes")
    path = book / "part" / "shapes.md"
    path.write_text(PAGE.replace("# A page", "# Another title\n\nMore words."))
    assert chapters.load("shapes") is page
    path.write_text(PAGE.replace("WIDTH = 2.0", "WIDTH = 3.0"))
    assert chapters.load("shapes").WIDTH == 3.0


def test_loading_is_noted_in_the_journal(book, tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    chapters.load("shapes")
    (entry,) = journal.read(tmp_path / "run")
    assert entry["kind"] == "chapter"
    assert entry["name"] == "shapes"


def test_functions_of_a_page_can_be_stored_tasks(book):
    page = chapters.load("shapes")
    text = program.text({"run": page.circle})
    assert "not part of" not in text
    assert "experiments" not in text
    assert program.load(text).run(1.0) == page.circle(1.0)


def test_an_unknown_page_is_refused_with_the_nearest_names(book):
    with pytest.raises(BookError, match="no chapter 'shape'; did you mean shapes"):
        chapters.load("shape")


def test_a_page_used_as_a_module_carries_its_digest_into_the_program(book):
    page = chapters.load("shapes")
    source = textwrap.dedent("""
    def run(r):
        return shapes.area(r)
    """)
    scope = _defined("test_user", source, {"shapes": page})
    text = program.text({"run": scope["run"]})
    assert page.__name__ in text
    assert program.load(text).run(1.0) == 2.0


def _defined(module, source, values):
    file = f"<{module}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[module] = types.ModuleType(module)
    sys.modules[module].__file__ = file
    scope = {"__name__": module, **values}
    exec(compile(source, file, "exec"), scope)
    return scope
