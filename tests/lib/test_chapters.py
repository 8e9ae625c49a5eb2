"""Loading a page: its definitions as a module, its experiments left alone."""

import os
import subprocess
import sys

import pytest

from lib import chapters, journal, program
from lib.errors import BookError
from lib.paths import CODE

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


TOC = """\
format: jb-book
root: index
parts:
- chapters:
  - file: part/shapes
  - file: part/solids/index
    sections:
    - file: part/solids/theory
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of its own with a chapter of one page and a chapter of two."""
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "book" / "part" / "solids").mkdir(parents=True)
    for page in ("shapes", "solids/index", "solids/theory"):
        (tmp_path / "book" / "part" / f"{page}.md").write_text(PAGE)
    monkeypatch.setenv("REGRETBOOK_ROOT", str(tmp_path))
    return tmp_path / "book"


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
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    chapters.load("shapes")
    (entry,) = journal.read(tmp_path / "run")
    assert isinstance(entry, journal.Loaded)
    assert entry.name == "shapes"


def test_functions_of_a_page_can_be_stored_tasks(book):
    page = chapters.load("shapes")
    text = program.text({"run": page.circle})
    assert "not part of" not in text
    assert "experiments" not in text
    assert program.load(text).run(1.0) == page.circle(1.0)


def test_an_unknown_page_is_refused_with_the_nearest_names(book):
    with pytest.raises(BookError, match="no page 'shape'; did you mean shapes"):
        chapters.load("shape")


def test_a_chapter_is_loaded_by_its_name_or_that_of_its_page(book):
    assert chapters.load("solids") is chapters.load("solids/index")
    assert chapters.load("solids") is not chapters.load("solids/theory")


USER = """\
import sys

from lib import chapters, program

shapes = chapters.load("shapes")


def run(r):
    return shapes.area(r), shapes.math.floor(r)


if __name__ == "__main__":
    text = program.text({"run": run, "circle": shapes.circle})
    sys.stdout.write(text)
"""


@pytest.fixture
def text(book):
    """Return the text of a task that uses a page as a module, made by a process of its own."""
    (book.parent / "user.py").write_text(USER)

    def made():
        return _python(book.parent / "user.py", root=book.parent)

    return made


def _python(*arguments, root, given=""):
    environment = {**os.environ, "PYTHONPATH": str(CODE), "REGRETBOOK_ROOT": str(root)}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_task_keeps_the_page_it_was_made_with(book, text, tmp_path_factory):
    """An edit in the middle of a run stored the new code's number under the old key."""
    before = text()
    path = book / "part" / "shapes.md"
    path.write_text(PAGE.replace("WIDTH * r * r", "WIDTH * r * r * 100"))
    assert program.load(before).run(2.5) == (12.5, 2)
    script = "import sys\nfrom lib import program\nprint(program.load(sys.stdin.read()).run(2.5))"
    elsewhere = tmp_path_factory.mktemp("elsewhere")  # a worker that has no book at all
    assert _python("-c", script, root=elsewhere, given=before) == "(12.5, 2)\n"
    after = text()
    assert after != before
    assert program.load(after).run(2.5) == (1250.0, 2)


def test_an_edit_of_what_a_task_does_not_use_leaves_it_alone(book, text):
    before = text()
    path = book / "part" / "shapes.md"
    path.write_text(
        PAGE.replace("T = 100", "T = 200")
        .replace("def circle", "def cube(r):\n    return r**3\n\n\ndef circle")
        .replace("# A page", "# Another title")
    )
    assert text() == before
