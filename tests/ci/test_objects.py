"""Figures and tables have numbers that count over a chapter, files of their own, and a strip."""

import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import pytest

from ci import objects
from ci.contents import Page
from ci.runs import Run
from lib import journal, toc

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="100%" role="img">'
    '<text fill="currentColor">α</text></svg>'
)
FIGURE = (
    f'<figure id="fig-a" class="rb-figure"><div class="rb-canvas">{SVG}</div>'
    "<figcaption>Regret.</figcaption></figure>"
)
TABLE = '<figure id="tab-b" class="rb-table"><figcaption>All.</figcaption><table></table></figure>'


def page(chapter, name="index"):
    return Page(chapter, name, f"part/{chapter}/{name}", "Title", "", [], {}, "")


def run(*entries, status="ok"):
    return Run(Path("."), SimpleNamespace(status=status), list(entries))


@pytest.fixture
def chapters(monkeypatch):
    monkeypatch.setattr(toc, "chapters", lambda project: ["one", "two"])


def test_numbers_count_over_the_pages_of_a_chapter_by_kind(chapters):
    first = run(journal.Figure("fig-a", "", ""), journal.Shown("tab-b", ""))
    second = run(journal.Figure("fig-c", "", ""))
    found = [
        (page("one"), first),
        (page("one", "theory"), second),
        (page("two"), run(journal.Figure("fig-a", "", ""))),
        (page("two", "failed"), run(journal.Figure("fig-x", "", ""), status="failed")),
        (page("two", "absent"), None),
    ]
    assert objects.numbers(None, found) == {
        ("one/index", "fig-a"): "Figure 1.1",
        ("one/index", "tab-b"): "Table 1.1",
        ("one/theory", "fig-c"): "Figure 1.2",
        ("two/index", "fig-a"): "Figure 2.1",
    }


def test_an_executed_page_gets_numbers_strips_and_files():
    def cell(markup, csv):
        data = {"text/html": markup, "text/csv": csv}
        output = nbformat.v4.new_output("display_data", data=data)
        return nbformat.v4.new_code_cell("x", outputs=[output])

    notebook = nbformat.v4.new_notebook(cells=[cell(FIGURE, "x,y\n"), cell(TABLE, "a,b\n")])
    known = {("one/index", "fig-a"): "Figure 1.1", ("one/index", "tab-b"): "Table 1.1"}
    files = objects.dress(notebook, page("one"), "down/one", known)
    assert set(files) == {"down/one/fig-a.svg", "down/one/fig-a.csv", "down/one/tab-b.csv"}
    assert files["down/one/tab-b.csv"] == b"a,b\n"
    figure, table = (each.outputs[0]["data"]["text/html"] for each in notebook.cells)
    assert '<figcaption><span class="rb-number">Figure 1.1.</span> Regret.' in figure
    assert re.findall(r'href="([^"]*)"', figure) == [
        "#fig-a", "../../down/one/fig-a.svg", "../../down/one/fig-a.csv"
    ]  # fmt: skip
    assert "Table 1.1." in table and figure.endswith("</div></figure>")
    assert "text/csv" not in notebook.cells[0].outputs[0]["data"]


def test_a_picture_of_its_own_is_whole_and_black_on_white():
    picture = ElementTree.fromstring(objects.alone(FIGURE).encode())
    assert (picture.get("width"), picture.get("height")) == ("400pt", "300pt")
    assert "color: black" in picture.get("style")


def test_other_markup_stays_as_it_is():
    assert objects.with_number("<p>plain</p>", "one", {}) == "<p>plain</p>"
    assert objects.with_number(FIGURE, "one", {}) == FIGURE
