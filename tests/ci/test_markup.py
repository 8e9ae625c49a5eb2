"""Pages as HTML that needs nothing else: every formula of the book, every kind of block."""

import re

import pytest

from ci import markup
from lib import toc
from lib.cells import code_cells
from lib.paths import CODE, project_at

PROJECT = project_at(CODE)
PAGE = """(here)=
# Title

See {eq}`first`, {eq}`elsewhere`, {prf:ref}`thm`, {ref}`here`, {doc}`that page <../there>`,
{cite}`wang2025thesis,he2022nearly` and [a link](../there.md), [another](https://example.org/x).

```{math}
:label: first
a &= \\lVert x\\rVert \\\\ b &= \\arg\\max_a \\bigl\\{1\\bigr\\}
```

````{prf:theorem} Of $x$
:label: thm

It holds.

```{math}
y
```
````

```{exercise} One
:label: ex

Do it.
```

```{solution} ex
:class: dropdown

Done with **care**.
```

<!-- a note -->
<!-- generated: verdicts linear-bandits -->
"""


OTHER = "```{prf:lemma} Of old\n:label: lem\n```\n```{math}\n:label: second\nx\n```\n"


def html(text=PAGE):
    return markup.as_html(text, markup.labels(text, {"Another page": OTHER}))


def test_what_stands_on_another_page_is_named_with_it():
    assert "by Of old (Another page) and equation (Another page)" in html(
        "by {prf:ref}`lem` and {eq}`second`"
    )


def test_references_are_words_and_links_that_lead_nowhere_are_none():
    made = html()
    assert '<a href="#first">(1)</a>, (elsewhere)' in made
    assert '<a href="#thm">Theorem 1 (Of $x$)</a>' in made
    assert '<a href="#here">Title</a>, that page' in made
    assert "[Wang 2025, He 2022] and a link" in made
    assert set(re.findall(r'href="([^#][^"]*)"', made)) == {"https://example.org/x"}
    for anchor in re.findall(r'href="#([^"]*)"', made):
        assert f'id="{anchor}"' in made


def test_directives_become_boxes_and_solutions_open():
    made = html()
    assert re.search(r'<div class="box" id="thm"><p class="head">Theorem 1 \(Of <math', made)
    assert "<summary>Solution of Exercise 1 (One)</summary><p>Done with <strong>care" in made
    assert "a note" not in made and "stands in the published book" in made


def test_aligned_formulas_have_their_columns_and_number():
    made = html()
    assert made.count("<mtr>") == 2 and 'class="number">(1)<' in made
    assert ">arg<" in made and ">{</mo>" in made and "‖" in made


def test_a_formula_that_cannot_be_translated_is_shown_as_it_is():
    assert markup.formula(r"a < \untranslatable") == (
        r'<code class="tex">a &lt; \untranslatable</code>'
    )


@pytest.mark.parametrize("file", toc.listed(PROJECT))
def test_every_formula_of_the_book_is_translated(file):
    text = (PROJECT.book / f"{file}.md").read_text(encoding="utf-8")
    for cell in code_cells(text):
        text = text.replace(cell.source, "pass")
    made = html(text)
    assert 'class="tex"' not in made
    for formula in re.findall(r"<math.*?</math>", made, flags=re.S):
        assert not re.search(r">\s*(\\|&\s*<)", formula), formula
