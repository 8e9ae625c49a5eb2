"""The branch for Colab and Binder: every executed notebook, a cell for Colab, files for Binder."""

import os
import runpy

import nbformat
import pytest

from lib.paths import ROOT

URL = "https://example.org/owner/book"


@pytest.fixture
def branch(tmp_path):
    """Publish two runs, one of which failed and left no notebook."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("T = 3")])
    (tmp_path / "runs" / "good").mkdir(parents=True)
    (tmp_path / "runs" / "failed").mkdir()
    nbformat.write(notebook, tmp_path / "runs" / "good" / "notebook.ipynb")
    script = runpy.run_path(str(ROOT / ".github" / "notebooks.py"))
    assert script["collect"](tmp_path / "runs", tmp_path / "out", URL) == ["good"]
    return tmp_path / "out"


def test_notebook_gets_one_cell_that_acts_on_colab_alone(branch):
    notebook = nbformat.read(branch / "notebooks" / "good.ipynb", as_version=4)
    nbformat.validate(notebook)
    first, second = notebook.cells
    assert second.source == "T = 3"
    assert f"{URL}.git" in first.source
    body = first.source.split("\n", 1)[1].strip().splitlines()
    assert body[0].startswith('if "google.colab" in sys.modules:')
    assert all(line.startswith("    ") for line in body[1:])


def test_binder_can_install_the_book(branch):
    assert (branch / ".binder" / "runtime.txt").read_text() == "python-3.11\n"
    script = branch / ".binder" / "postBuild"
    assert os.access(script, os.X_OK) and "-c constraints.txt -e ." in script.read_text()
    assert (
        "owner/book/notebooks?labpath=notebooks/good.ipynb"
        in (branch / "notebooks" / "README.md").read_text()
    )
