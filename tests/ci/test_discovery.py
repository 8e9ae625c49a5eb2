"""Pages are read the same way here, by jupytext, and whatever their prose says."""

import jupytext
import pytest

from ci import chapters
from ci.project import project_at
from lib.errors import BookError

TRICKY = """# Title

````{note}
```{code-cell} ipython3
not_a_cell = 1
```
````

```python
shown = "but not executed"
```

```{code-cell} ipython3
---
tags: [hide-input, parameters]
---
a = 1  # one
```

```{code-cell} ipython3
:tags: [remove-output]

text = '''
# not a heading
'''

b = 2
```

````{code-cell} ipython3
fence = "```"
````
"""


def as_jupytext(text):
    notebook = jupytext.reads(text, fmt="md:myst")
    return [
        (cell.source, tuple(cell.metadata.get("tags", ())))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_cells_are_those_of_jupytext():
    cells = chapters.code_cells(TRICKY)
    assert [tuple(cell) for cell in cells] == as_jupytext(TRICKY)
    assert [cell.tags for cell in cells] == [("hide-input", "parameters"), ("remove-output",), ()]


def test_cells_of_the_book_are_those_of_jupytext():
    for path in project_at().book.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert [tuple(cell) for cell in chapters.code_cells(text)] == as_jupytext(text), path


def test_title_is_the_first_heading_outside_of_code():
    assert chapters.title_of("```\n# no\n```\n\n# The  title \n", "x") == "The  title"
    assert chapters.title_of("text", "x") == "x"


def test_digest_ignores_prose_and_sees_code(sandbox):
    before = sandbox.chapters["linear-bandits"].digest
    sandbox.edit("book/foundations/linear-bandits.md", "More prose", "Other prose")
    assert sandbox.chapters["linear-bandits"].digest == before
    sandbox.edit("book/foundations/linear-bandits.md", "2 * T", "3 * T")
    assert sandbox.chapters["linear-bandits"].digest != before


def test_discovery_follows_the_table_of_contents_then_the_alphabet(sandbox):
    text = (sandbox.project.book / "foundations/clustering-of-bandits.md").read_text()
    sandbox.add("book/bandits/a-draft.md", text)
    sandbox.edit("_toc.yml", "foundations/clustering-of-bandits", "foundations/x")
    sandbox.edit("_toc.yml", "foundations/linear-bandits", "foundations/clustering-of-bandits")
    assert list(sandbox.chapters) == ["clustering-of-bandits", "a-draft", "linear-bandits"]


@pytest.mark.parametrize(
    "name", ["linear-bandits", "foundations/linear-bandits", "book/foundations/linear-bandits.md"]
)
def test_a_chapter_has_a_short_name_and_a_path(sandbox, name):
    assert chapters.find(sandbox.chapters, name).page == "foundations/linear-bandits"


def test_unknown_chapter_names_the_nearest(sandbox):
    with pytest.raises(BookError, match=r"no chapter 'linear-bandit'; did you mean linear-bandits"):
        chapters.find(sandbox.chapters, "linear-bandit")
    with pytest.raises(BookError, match="the chapters are linear-bandits, clustering-of-bandits"):
        chapters.find(sandbox.chapters, "zzz")


def test_two_chapters_of_one_name_are_refused(sandbox):
    text = (sandbox.project.book / "foundations/linear-bandits.md").read_text()
    sandbox.add("book/bandits/linear-bandits.md", text)
    with pytest.raises(BookError, match="two chapters are named 'linear-bandits'"):
        chapters.discover(sandbox.project)
