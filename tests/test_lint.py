"""Linters over the code and over the code cells of the chapters."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import jupytext
import pytest

from ci.chapters import toc_pages
from ci.project import project_at
from lib import pages
from lib.paths import BOOK, ROOT

LONGEST_CELL = 40  # lines that fit on a screen
PAGES = [BOOK / f"{page}.md" for page in toc_pages(project_at())]
CHAPTERS = [path for path in PAGES if path.read_text("utf-8").startswith("---\njupytext")]


def ruff(*arguments):
    """Return what ruff complains about, or nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def files(part):
    return sorted((ROOT / part).rglob("*.py"))


def code_cells(path):
    notebook = jupytext.read(path)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_code_is_clean():
    assert not (complaints := ruff("check", ".")), complaints


def test_code_is_formatted():
    assert not (complaints := ruff("format", "--check", ".")), complaints


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_front_page_introduces_every_chapter(path):
    page = path.relative_to(BOOK).with_suffix("").as_posix()
    assert f"| {{doc}}`{page}` |" in (BOOK / "index.md").read_text("utf-8")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_cells_are_clean(path, tmp_path):
    """ruff reads notebooks and names the cell; imports may stand where the text needs them."""
    notebook = tmp_path / f"{path.stem}.ipynb"
    jupytext.write(jupytext.read(path), notebook)
    config = ROOT / "pyproject.toml"
    complaints = ruff("check", "--config", config, "--extend-ignore", "E402,F811,B018", notebook)
    assert not complaints, complaints


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_cell_is_swallowed_by_an_open_fence(path):
    """jupytext, which executes, and lib.pages, which judges staleness, must see the same cells."""
    ours = [cell.source for cell in pages.code_cells(path.read_text(encoding="utf-8"))]
    assert [cell.source for cell in code_cells(path)] == ours


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_cells_fit_on_a_screen(path):
    long = {
        number: len(lines)
        for number, cell in enumerate(code_cells(path), 1)
        if len(lines := cell.source.splitlines()) > LONGEST_CELL
    }
    assert not long, f"code cells with more than {LONGEST_CELL} lines: {long}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_parameters_are_literals_with_their_meaning(path):
    cells = [c for c in code_cells(path) if "parameters" in c.metadata.get("tags", [])]
    assert len(cells) == 1
    lines = cells[0].source.splitlines()
    names = []
    for statement in ast.parse(cells[0].source).body:
        assert isinstance(statement, ast.Assign) and len(statement.targets) == 1
        ast.literal_eval(statement.value)
        names.append(statement.targets[0].id)
        assert "  # " in lines[statement.end_lineno - 1], f"{names[-1]} has no meaning"
    assert "seed" in names


def imported(source):
    """Return the top-level names of the packages that a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def test_every_import_is_declared():
    """A package that is there only because another needs it may be gone on a fresh machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = [name for names in project["optional-dependencies"].values() for name in names]
    declared = {
        re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")
        for requirement in [*project["dependencies"], *extra]
    }
    sources = [path.read_text("utf-8") for part in ("lib", "ci", "tests") for path in files(part)]
    sources += ["\n".join(cell.source for cell in code_cells(path)) for path in CHAPTERS]
    owners = packages_distributions()
    used = {name for source in sources for name in imported(source)} - sys.stdlib_module_names
    undeclared = {
        name
        for name in used - {"lib", "ci"}
        if not declared & {owner.lower().replace("_", "-") for owner in owners.get(name, [])}
    }
    assert not undeclared
