"""Jupyter Book on a small tree: warnings are errors, and removed pages vanish."""

import pytest

from ci import build


@pytest.fixture
def builds(sandbox, capsys):
    """Return a build without kernels that gives its status and what it printed."""
    sandbox.fake_papermill()

    def go():
        status = build.build(sandbox.project, "book", [])
        return status, capsys.readouterr()

    return go


def test_pages_are_rendered_once_and_warnings_are_errors(sandbox, builds):
    html = sandbox.project.build / "html"
    assert builds()[0] == 0
    page = (html / "foundations/linear-bandits.html").read_text()
    assert "output of cell 3" in page
    assert (html / "_static/downloads/linear-bandits/index/linear-bandits.ipynb").exists()
    assert "rb-provenance" in page
    assert 'class="rb-claims"' in (html / "scoreboard.html").read_text()
    chapter = (html / "foundations/clustering-of-bandits/index.html").read_text()
    assert 'id="claim-clu-one"' in chapter, "verdicts are assembled into the page that asks"
    assert "theory.html" in chapter, "the pages of a chapter are nested"

    status, said = builds()
    assert status == 0
    assert "nothing changed" in said.out

    sandbox.edit("book/index.md", "# Front", "# Front\n\nSee {doc}`nowhere`.")
    for _ in range(2):  # Sphinx alone would forget the warning the second time
        status, said = builds()
        assert status == 1
        assert "unknown document" in said.err
        assert "index.md" in said.err

    sandbox.edit("book/index.md", "See {doc}`nowhere`.", "")
    sandbox.edit("_toc.yml", "  - file: foundations/linear-bandits\n", "")
    sandbox.add("book/profiles.yml", "")
    (sandbox.project.claims / "linear-bandits.yml").unlink()
    assert builds()[0] == 0
    assert not (html / "foundations/linear-bandits.html").exists()
    assert "linear-bandits.html" not in (html / "index.html").read_text()
