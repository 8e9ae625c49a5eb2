"""The branch for Colab and Binder: every executed notebook, a cell for Colab, files for Binder."""

import os

import nbformat
import pytest

from ci import notebooks

URL = "https://example.org/owner/book"


@pytest.fixture
def branch(sandbox, tmp_path):
    """Publish two runs, one of which failed."""
    sandbox.run("clustering-of-bandits/theory")
    sandbox.rewrite(sandbox.run("linear-bandits"), status="failed")
    found = notebooks.published("book")
    assert list(found) == ["clustering-of-bandits-theory"]
    assert notebooks.collect(found, tmp_path / "out", URL) == list(found)
    return tmp_path / "out"


def test_notebook_gets_one_cell_that_acts_on_colab_alone(branch):
    name = "clustering-of-bandits-theory.ipynb"
    notebook = nbformat.read(branch / "notebooks" / name, as_version=4)
    nbformat.validate(notebook)
    first, second, *_ = notebook.cells
    assert second.source == "# Clusters in theory"
    assert f"{URL}.git" in first.source
    body = first.source.split("\n", 1)[1].strip().splitlines()
    assert body[0].startswith('if "google.colab" in sys.modules:')
    assert all(line.startswith("    ") for line in body[1:])


def test_binder_can_install_the_book(branch):
    assert (branch / ".binder" / "runtime.txt").read_text() == "python-3.11\n"
    script = branch / ".binder" / "postBuild"
    assert os.access(script, os.X_OK) and "-c constraints.txt -e ." in script.read_text()
    assert (
        "owner/book/notebooks?labpath=notebooks/clustering-of-bandits-theory.ipynb"
        in (branch / "notebooks" / "README.md").read_text()
    )
