"""Linters over the code and over the code cells of the chapters."""

import ast
import re
import subprocess
import symtable
import sys
import tomllib
from importlib.metadata import packages_distributions

import jupytext
import pytest

from ci import contents, findings
from lib import cells, claims, toc
from lib.paths import CODE as ROOT
from lib.paths import project_at

LONGEST_CELL = 40  # lines that fit on a screen
PROJECT = project_at(ROOT)
BOOK = PROJECT.book
PAGES = contents.discover(PROJECT)
FINDINGS = findings.read(PROJECT, claims.ledger(PROJECT))
CHAPTERS = [BOOK / f"{page.file}.md" for page in PAGES.values()]


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


def test_words_are_spelled():
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "."], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [e for e in toc.entries(PROJECT) if e.page == toc.INDEX])
def test_the_front_page_and_the_first_screen_introduce_every_chapter(page):
    assert page.chapter in FINDINGS
    text = (BOOK / f"{page.file}.md").read_text("utf-8")
    first = text[: text.index("{code-cell}")]
    order = ["**Claimed.**", "**Found.**", f"<!-- generated: found {page.chapter} -->"]
    order += ["**Use this.**", f"<!-- generated: figure {page.chapter} "]
    places = [first.find(part) for part in order]
    assert -1 not in places and places == sorted(places)


def test_no_number_is_typed_into_a_finding():
    """Numbers come from runs; what stands in maths or in a name is no result."""
    words = [
        text
        for chapter in FINDINGS.values()
        for finding in [*chapter.found, *chapter.use]
        for text in (finding.holds, finding.fails, finding.open, finding.says)
    ]
    bare = [re.sub(r"\{[^}]*\}|\$[^$]*\$", "", text) for text in words]
    assert not [text for text in bare if re.search(r"\d", text)]


def test_no_two_modules_of_the_library_and_the_command_share_a_name():
    names = [{path.stem for path in files(part)} - {"__init__"} for part in ("lib", "ci")]
    assert not names[0] & names[1]


def globals_of(source):
    """Return the global names that each function of a source reads, by the function's name."""
    found = {}

    def read(table):
        names = {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        return names.union(*map(read, table.get_children()))

    for table in symtable.symtable(source, "page", "exec").get_children():
        found[table.get_name()] = read(table)
    return found


def reached(start, calls):
    """Return everything that some names lead to."""
    seen, waiting = set(), set(start)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= calls.get(name, set()) - seen
    return seen


def taken(name):
    """Return what other pages take from a page: all of an index of a folder, else what they use."""
    page = PAGES[name]
    if page.page == toc.INDEX and page.file.count("/") == 2:
        return set(globals_of("\n".join(cell.source for cell in page.cells)))
    used = set()
    for other in PAGES.values():
        source = "\n".join(cell.source for cell in other.cells)
        for variable in re.findall(rf'(\w+) = chapters\.load\("{re.escape(name)}"\)', source):
            used |= set(re.findall(rf"\b{variable}\.(\w+)", source))
    return used


@pytest.mark.parametrize("name", PAGES)
def test_a_function_that_another_page_takes_reads_no_parameter_of_its_own(name):
    """It would see the default of its page, whatever the reader or a profile chose."""
    calls = globals_of("\n".join(cell.source for cell in PAGES[name].cells))
    wrong = {
        each: read
        for each in reached(taken(name), calls)
        if (read := calls.get(each, set()) & set(PAGES[name].parameters))
    }
    assert not wrong


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.relative_to(BOOK).as_posix())
def test_cells_are_clean(path, tmp_path):
    """ruff reads notebooks and names the cell; imports may stand where the text needs them."""
    notebook = tmp_path / f"{path.stem}.ipynb"
    jupytext.write(jupytext.read(path), notebook)
    config = ROOT / "pyproject.toml"
    complaints = ruff("check", "--config", config, "--extend-ignore", "E402,F811,B018", notebook)
    assert not complaints, complaints


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.relative_to(BOOK).as_posix())
def test_no_cell_is_swallowed_by_an_open_fence(path):
    """jupytext, which executes, and lib.cells, which judges staleness, must see the same cells."""
    ours = [cell.source for cell in cells.code_cells(path.read_text(encoding="utf-8"))]
    assert [cell.source for cell in code_cells(path)] == ours


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.relative_to(BOOK).as_posix())
def test_cells_fit_on_a_screen(path):
    long = {
        number: len(lines)
        for number, cell in enumerate(code_cells(path), 1)
        if len(lines := cell.source.splitlines()) > LONGEST_CELL
    }
    assert not long, f"code cells with more than {LONGEST_CELL} lines: {long}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.relative_to(BOOK).as_posix())
def test_parameters_are_literals_with_their_meaning(path):
    tagged = [c for c in code_cells(path) if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    lines = tagged[0].source.splitlines()
    names = []
    for statement in ast.parse(tagged[0].source).body:
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
    ours = [path for part in ("lib", "ci", "tests") for path in files(part)]
    ours.remove(ROOT / "ci" / "libraries.py")  # has an environment of its own, see libraries.txt
    sources = [path.read_text("utf-8") for path in ours]
    sources += ["\n".join(cell.source for cell in code_cells(path)) for path in CHAPTERS]
    owners = packages_distributions()
    used = {name for source in sources for name in imported(source)} - sys.stdlib_module_names
    undeclared = {
        name
        for name in used - {"lib", "ci", "tests"}
        if not declared & {owner.lower().replace("_", "-") for owner in owners.get(name, [])}
    }
    assert not undeclared
