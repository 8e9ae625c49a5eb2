"""Pages are read the same way here, by jupytext, and whatever their prose says."""

import jupytext
import pytest

from ci import contents
from lib import toc
from lib.cells import code_cells
from lib.errors import BookError
from lib.paths import CODE, project_at

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
    cells = code_cells(TRICKY)
    assert [tuple(cell) for cell in cells] == as_jupytext(TRICKY)
    assert [cell.tags for cell in cells] == [("hide-input", "parameters"), ("remove-output",), ()]


def test_cells_of_the_book_are_those_of_jupytext():
    for path in project_at(CODE).book.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert [tuple(cell) for cell in code_cells(text)] == as_jupytext(text), path


def test_title_is_the_first_heading_outside_of_code():
    assert contents.title_of("```\n# no\n```\n\n# The  title \n", "x") == "The  title"
    assert contents.title_of("text", "x") == "x"


def test_digest_ignores_prose_and_sees_code(sandbox):
    before = sandbox.pages["linear-bandits"].digest
    sandbox.edit("book/foundations/linear-bandits.md", "More prose", "Other prose")
    assert sandbox.pages["linear-bandits"].digest == before
    sandbox.edit("book/foundations/linear-bandits.md", "2 * T", "3 * T")
    assert sandbox.pages["linear-bandits"].digest != before


def test_pages_follow_the_table_of_contents_and_nothing_else(sandbox):
    assert list(sandbox.pages) == [
        "linear-bandits",
        "clustering-of-bandits/index",
        "clustering-of-bandits/theory",
    ]
    text = (sandbox.project.book / "foundations/linear-bandits.md").read_text()
    sandbox.add("book/bandits/a-draft.md", text)
    assert "a-draft" not in sandbox.pages
    assert toc.chapters(sandbox.project) == ["linear-bandits", "clustering-of-bandits"]


SELECTED = {
    "linear-bandits": ["linear-bandits"],
    "foundations/linear-bandits": ["linear-bandits"],
    "book/foundations/linear-bandits.md": ["linear-bandits"],
    "linear-bandits/index": ["linear-bandits"],
    "clustering-of-bandits": ["clustering-of-bandits/index", "clustering-of-bandits/theory"],
    "book/foundations/clustering-of-bandits/": [
        "clustering-of-bandits/index",
        "clustering-of-bandits/theory",
    ],
    "clustering-of-bandits/theory": ["clustering-of-bandits/theory"],
    "book/foundations/clustering-of-bandits/theory.md": ["clustering-of-bandits/theory"],
}


@pytest.mark.parametrize("name, names", SELECTED.items())
def test_a_name_stands_for_a_chapter_or_a_page(sandbox, name, names):
    assert [page.name for page in contents.select(sandbox.pages, [name])] == names


def test_unknown_pages_name_the_nearest(sandbox):
    with pytest.raises(BookError, match=r"no page 'linear-bandit'; did you mean linear-bandits"):
        contents.select(sandbox.pages, ["linear-bandit"])
    with pytest.raises(BookError, match="did you mean clustering-of-bandits/theory"):
        contents.select(sandbox.pages, ["clustering-of-bandits/teory"])
    with pytest.raises(BookError, match=r"the chapters are linear-bandits, clustering-of-bandits$"):
        contents.select(sandbox.pages, ["zzz"])
    with pytest.raises(BookError, match="clustering-of-bandits/theory is named twice"):
        contents.select(sandbox.pages, ["clustering-of-bandits", "clustering-of-bandits/theory"])


def test_a_chapter_is_found_by_its_name_which_means_its_index(sandbox):
    assert toc.find("clustering-of-bandits").page == "index"
    assert toc.find("clustering-of-bandits/theory").file.endswith("/theory")
    with pytest.raises(BookError, match="no page 'clustering'"):
        toc.find("clustering")


def test_a_page_listed_twice_and_two_chapters_of_one_name_are_refused(sandbox):
    sandbox.edit("_toc.yml", "  - file: scoreboard\n", "  - file: foundations/linear-bandits\n")
    with pytest.raises(BookError, match=r"_toc.yml lists foundations/linear-bandits twice"):
        contents.discover(sandbox.project)
    sandbox.edit("_toc.yml", "  - file: foundations/linear-bandits\n", "")
    sandbox.add("_toc.yml", "root: index\nchapters: [{file: a/same}, {file: b/same}]\n")
    with pytest.raises(BookError, match="two chapters are named 'same': a/same and b/same"):
        contents.discover(sandbox.project)
