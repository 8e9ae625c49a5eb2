"""The tree for Sphinx: current prose, outputs of runs, generated parts, and nothing that left."""

import io
import json

import nbformat
import pandas
import pytest

from ci import assemble, cite
from ci.runs import Failure
from ci.site import site_of
from lib.errors import BookError

PAGE = "foundations/linear-bandits"
PUBLIC = "url: https://example.org/book/\nrepository-code: https://github.com/OWNER/NAME\n"


def stage(sandbox, found):
    every = {name: (page, found.get(name)) for name, page in sandbox.pages.items()}
    return assemble.stage(sandbox.project, site_of(sandbox.project, "book"), every)


def read(sandbox, file):
    return (site_of(sandbox.project, "book").source / file).read_text(encoding="utf-8")


def notebook(sandbox):
    return nbformat.reads(read(sandbox, f"{PAGE}.ipynb"), as_version=4)


def test_outputs_are_merged_into_the_current_prose_cell_by_cell(sandbox):
    run = sandbox.run()
    sandbox.edit(f"book/{PAGE}.md", "More prose.", "Rewritten.\n\n+++\n\nIn two cells.")
    stage(sandbox, {"linear-bandits": run})
    page = notebook(sandbox)
    code = [cell for cell in page.cells if cell.cell_type == "code"]
    assert [cell.outputs[0].text for cell in code] == [f"output of cell {n}\n" for n in (1, 2, 3)]
    assert any(cell.source == "In two cells." for cell in page.cells)


def test_outputs_of_other_code_are_refused(sandbox):
    run = sandbox.run()
    sandbox.edit(f"book/{PAGE}.md", "2 * T", "3 * T")
    with pytest.raises(BookError, match="does not belong to this page"):
        stage(sandbox, {"linear-bandits": run})


def test_what_the_formatter_is_told_is_not_published(sandbox):
    sandbox.edit(f"book/{PAGE}.md", "doubled = 2 * T", "doubled = 2 *  T  # fmt: skip")
    stage(sandbox, {"linear-bandits": sandbox.run()})
    assert "doubled = 2 *  T" in [cell.source for cell in notebook(sandbox).cells]


def test_values_of_the_run_stand_below_the_parameters_cell(sandbox):
    run = sandbox.run(profile="smoke")
    executed = nbformat.read(run.folder / "notebook.ipynb", as_version=4)
    injected = nbformat.v4.new_code_cell("# Parameters\nT = 10\n")
    injected.metadata["tags"] = ["injected-parameters"]
    executed.cells.insert(2, injected)
    nbformat.write(executed, run.folder / "notebook.ipynb")
    stage(sandbox, {"linear-bandits": run})
    code = [cell.source for cell in notebook(sandbox).cells if cell.cell_type == "code"]
    assert code[0].startswith("T = 20_000")
    assert code[1] == "# The values of this run (profile smoke)\nT = 10"
    assert len(code) == 4


def test_footers_say_how_to_rerun_cite_and_download(sandbox):
    run = sandbox.run(entries=[sandbox.data, sandbox.table], profile="smoke")
    stage(sandbox, {"linear-bandits": run})
    footer = notebook(sandbox).cells[-1].source
    for text in (
        "regretbook run linear-bandits --profile smoke",
        "`0123456789ab`",
        "`T = 10`",
        "numpy 2.0",
        "Linux x86_64, 2 cores",
        "2026-02-03 04:05 UTC, in 2 s",
        "`ml-1m` sha256 `d1`",
        "@incollection{regretbook-linear-bandits,",
        'Regret after <span class="math"><math><mi>T</mi>',
    ):
        assert text in footer
    folder = "_static/downloads/linear-bandits/index"
    for file in ("linear-bandits.ipynb", "linear-bandits.md", "regret.csv"):
        assert f'href="../{folder}/{file}"' in footer
        assert read(sandbox, f"{folder}/{file}")
    download = nbformat.reads(read(sandbox, f"{folder}/linear-bandits.ipynb"), as_version=4)
    nbformat.validate(download)
    assert download.metadata.kernelspec.name == "python3"
    assert "dropdown" not in download.cells[-1].source


def test_a_failed_chapter_shows_its_error_and_no_output(sandbox):
    run = sandbox.run(entries=[sandbox.claim])
    error = Failure(2, "doubled = 2 * T", "NameError", "no T")
    run = run._replace(info=run.info._replace(status="failed", error=error))
    stage(sandbox, {"linear-bandits": run})
    text = read(sandbox, f"{PAGE}.ipynb")
    first = notebook(sandbox).cells[0].source
    assert first.startswith("# Linear bandits\n\n``````{admonition} This page failed")
    assert "NameError: no T" in first
    assert "output of cell" not in text
    assert "@incollection" not in text
    assert '<b>3</b> <span class="rb-verdict rb-not-run">' in read(sandbox, "index.md")


def test_scoreboard_counts_links_figures_and_typesets(sandbox):
    stage(sandbox, {"linear-bandits": sandbox.run(entries=[sandbox.claim])})
    page = read(sandbox, "scoreboard.md")
    counted = sandbox.numbers(page)
    assert counted["Linear bandits"] == [2, 1, 0, 0, 0, 0, 0, 1]
    assert counted["Whole book"] == [3, 1, 0, 0, 0, 0, 0, 2]
    assert '<a href="foundations/linear-bandits.html">Linear bandits</a>' in page
    assert "scoreboard.html?chapter=linear-bandits&amp;verdict=reproduced&amp;show=all" in page
    assert 'href="foundations/linear-bandits.html#fig-lin-share"' in page
    assert "<mn>1</mn>" in page
    assert "0.031 [0.025, 0.04]" in page
    assert page.count('id="claim-lin-one"') == 1
    rows = json.loads(read(sandbox, "_static/downloads/claims.json"))
    table = pandas.read_csv(io.StringIO(read(sandbox, "_static/downloads/claims.csv")))
    assert [row["id"] for row in rows] == list(table["id"]) == ["lin-one", "lin-two", "clu-one"]
    assert list(table["measured"][:1]) == [rows[0]["measured"]] == [0.031]


def test_an_unknown_generated_part_is_refused(sandbox):
    sandbox.add("book/index.md", "# Front\n\n<!-- generated: scorebord -->\n")
    with pytest.raises(BookError, match=r"book/index.md asks for <!-- generated: scorebord -->"):
        stage(sandbox, {})
    sandbox.add("book/index.md", "# Front\n\n<!-- generated: figure linear-bandits -->\n")
    with pytest.raises(BookError, match=r"figure CHAPTER NAME"):
        stage(sandbox, {})
    sandbox.add("book/index.md", "# Front\n\n<!-- generated: figure linear-bandits fig-x -->\n")
    with pytest.raises(BookError, match="'fig-x', which linear-bandits does not show"):
        stage(sandbox, {"linear-bandits": sandbox.run()})


def test_parts_for_parameters_citations_and_figures(sandbox):
    run = sandbox.run()
    executed = nbformat.read(run.folder / "notebook.ipynb", as_version=4)
    markup = '<figure id="fig-a"><svg></svg></figure>'
    executed.cells[1].outputs = [nbformat.v4.new_output("display_data", {"text/html": markup})]
    nbformat.write(executed, run.folder / "notebook.ipynb")
    sandbox.add(
        "book/index.md",
        "# Front\n\n<!-- generated: parameters -->\n<!-- generated: cite-table -->\n"
        "<!-- generated: figure linear-bandits fig-a -->\n"
        "<!-- generated: figure clustering-of-bandits fig-b -->\n",
    )
    stage(sandbox, {"linear-bandits": run})
    page = read(sandbox, "index.md")
    assert '| `rule` | `\'ucb\'` | `{"ucb", "ts"}` | which rule |' in page
    assert page.count("@incollection") == 3
    assert markup in page
    assert "The figure appears here when its chapter has been executed." in page


def test_staging_touches_only_what_changed_and_removes_what_left(sandbox):
    sandbox.add("book/_static/book.css", "a {}")
    found = {"linear-bandits": sandbox.run()}
    before = stage(sandbox, found)
    times = {
        p: p.stat().st_mtime_ns
        for p in site_of(sandbox.project, "book").source.rglob("*")
        if p.is_file()
    }
    assert stage(sandbox, found) == before
    assert times == {path: path.stat().st_mtime_ns for path in times}

    sandbox.edit(f"book/{PAGE}.md", "More prose.", "Edited.")
    prose = stage(sandbox, found)
    assert prose.content != before.content
    assert prose.structure == before.structure
    sandbox.edit(f"book/{PAGE}.md", "# Linear bandits", "# Bandits")
    assert stage(sandbox, found).structure != before.structure

    sandbox.edit("_toc.yml", "  - file: foundations/linear-bandits\n", "")
    (sandbox.project.claims / "linear-bandits.yml").unlink()
    stage(sandbox, {})
    names = {p.name for p in site_of(sandbox.project, "book").source.rglob("*") if p.is_file()}
    assert names == {
        "index.md", "scoreboard.md", "index.ipynb", "theory.ipynb", "book.css",
        "claims.csv", "claims.json",
    }  # fmt: skip


def test_staged_notebooks_do_not_depend_on_the_moment(sandbox):
    run = sandbox.run(entries=[sandbox.table])
    stage(sandbox, {"linear-bandits": run})
    ids = [cell["id"] for cell in json.loads(read(sandbox, f"{PAGE}.ipynb"))["cells"]]
    assert len(set(ids)) == len(ids)
    assert ids[:2] == ["cell-0", "cell-1"]


def test_without_addresses_no_page_links_to_them(sandbox):
    assert cite.addresses(sandbox.project) == ("", "")
    stage(sandbox, {"linear-bandits": sandbox.run()})
    assert "rb-door" not in read(sandbox, "index.md")
    assert "rb-door" not in notebook(sandbox).cells[-1].source


def test_one_setting_links_pages_to_source_issues_and_machines(sandbox):
    sandbox.edit("CITATION.cff", "version: 1.2.0\n", f"version: 1.2.0\n{PUBLIC}")
    run = sandbox.run()
    stage(sandbox, {"linear-bandits": run})
    footer = notebook(sandbox).cells[-1].source
    place = "https://github.com/OWNER/NAME"
    for address in (
        f"{place}/edit/HEAD/book/foundations/linear-bandits.md",
        f"{place}/issues/new?title=Linear%20bandits",
        "https://colab.research.google.com/github/OWNER/NAME/blob/notebooks/notebooks/"
        "linear-bandits.ipynb",
        "https://mybinder.org/v2/gh/OWNER/NAME/notebooks?labpath=notebooks/linear-bandits.ipynb",
    ):
        assert f'href="{address}' in footer
    front = read(sandbox, "index.md")
    assert f"{place}/edit/HEAD/book/index.md" in front and "Colab" not in front
    assert "citation_fulltext_html_url: https://example.org/book/index.html" in front
    entry = cite.bibtex(sandbox.project, sandbox.pages["linear-bandits"], run)
    assert "https://example.org/book/foundations/linear-bandits.html" in entry


def test_tags_of_pages_name_title_authors_and_year(sandbox):
    stage(sandbox, {"linear-bandits": sandbox.run()})
    tags = notebook(sandbox).metadata["myst"]["html_meta"]
    assert tags["citation_title"] == "Linear bandits"
    assert tags["citation_author"] == "Doe, Jane; A Team"
    assert tags["citation_publication_date"] == "2026"
    assert tags["citation_inbook_title"] == "The Regret Book"


FIRST = """(anchor)=
# Drift

What is the problem?

**Found.**

<!-- generated: found drift -->

<!-- generated: figure drift fig-drift -->

## Setting
"""


def test_the_figure_of_a_first_screen_is_put_beside_its_words():
    text = assemble.side_by_side(FIRST)
    title, words, rest = (text.index(each) for each in ("# Drift", "What is", "## Setting"))
    figure = text.index("<!-- generated: figure")
    assert title < figure < words < text.index("<!-- generated: found") < rest
    assert text.count(":::::{div}") == 2 and text[:rest].rstrip().endswith(":::::\n::::::")


@pytest.mark.parametrize("without", ["<!-- generated: found drift -->", "<!-- generated: figure"])
def test_a_page_without_findings_or_figure_stays_as_it_is(without):
    text = FIRST.replace(without, "")
    assert assemble.side_by_side(text) == text


def test_a_figure_below_the_first_screen_stays_there():
    text = FIRST.replace("<!-- generated: figure", "## Later\n\n<!-- generated: figure")
    assert assemble.side_by_side(text) == text
