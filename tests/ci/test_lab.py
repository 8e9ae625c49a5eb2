"""A page in JupyterLab, as far as it can be tested without it: what starts, what saving writes."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import jupytext
import pytest
from jupytext.config import load_jupytext_config

from ci import cli, contents, lab
from lib.cells import code_cells
from lib.paths import CODE, project_at

PROJECT = project_at(CODE)
PAGES = contents.discover(PROJECT)


def test_the_command_opens_the_file_of_the_page_as_a_notebook_on_this_machine_alone():
    page = PAGES["dueling/theory"]
    words = lab.command(PROJECT, page)
    assert words[:3] == [sys.executable, "-m", "jupyterlab"]
    options = dict(word.removeprefix("--").split("=", 1) for word in words[3:])
    assert options["ServerApp.ip"] == "127.0.0.1"
    file = options["LabApp.default_url"].removeprefix("/lab/tree/")
    assert (CODE / file).read_text("utf-8") == page.text
    assert options["ServerApp.root_dir"] == str(CODE)
    (settings,) = Path(lab.told(PROJECT, page)["JUPYTER_CONFIG_PATH"]).rglob("*.json")
    viewers = json.loads(settings.read_text())["@jupyterlab/docmanager-extension:plugin"]
    assert viewers["defaultViewers"]["markdown"] == "Jupytext Notebook"


def test_kernels_have_lib_and_know_their_page_and_keep_no_record():
    told = lab.told(PROJECT, PAGES["dueling/theory"])
    assert told["PYTHONPATH"].split(":")[0] == str(CODE)
    assert told["REGRETBOOK_PAGE"] == "dueling/theory"
    assert "REGRETBOOK_RUN" not in told


@pytest.mark.parametrize("name", ["linear-bandits/index", "dueling/theory", "zero-shot/levels"])
def test_saving_a_page_keeps_its_text_and_code_and_writes_nothing_of_the_machine(name, tmp_path):
    """What the contents manager does: read with the project's settings, add outputs, write."""
    page = PAGES[name]
    file = tmp_path / "page.md"
    file.write_text(page.text, encoding="utf-8")
    shutil.copy(CODE / "jupytext.toml", tmp_path)
    config = load_jupytext_config(str(file))
    notebook = jupytext.read(file, config=config)
    notebook.metadata["language_info"] = {"name": "python", "version": sys.version}
    for cell in notebook.cells:
        cell.metadata["execution"] = {"iopub.status.busy": "now"}
        cell.metadata["collapsed"] = False
    jupytext.write(notebook, file, fmt="md:myst", config=config)
    saved = file.read_text(encoding="utf-8")
    assert code_cells(saved) == code_cells(page.text)

    def prose(text):
        cells = jupytext.reads(text, fmt="md:myst").cells
        return [cell.source for cell in cells if cell.cell_type == "markdown"]

    assert prose(saved) == prose(page.text)
    for word in ("execution", "collapsed", "language_info"):
        assert f"{word}:" not in saved


def test_without_jupyterlab_one_sentence_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["lab", "dueling"]) == 2
    assert "pip install 'regretbook[lab]'" in capsys.readouterr().err
    assert cli.main(["lab", "duelling"]) == 2
    assert "did you mean" in capsys.readouterr().err
