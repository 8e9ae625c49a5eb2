"""Assembling: the pages of the book and the outputs of its runs become what Sphinx reads."""

import copy
import functools
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from ci import pages, scoreboard
from ci.chapters import Chapter, title_of
from ci.execute import INJECTED, as_json, has_tag, own_code, read_page
from ci.project import Project, write
from ci.runs import Run
from lib.errors import BookError

DOWNLOADS = "_static/downloads"
GENERATED = re.compile(r"<!--\s*generated:\s*([\w-]+)((?:\s+[\w-]+)*)\s*-->")

Found = dict[str, tuple[Chapter, Run | None]]


class Tree(NamedTuple):
    """Digests of what was staged: of every file, and of what each page repeats of the others."""

    content: str
    structure: str


def stage(project: Project, listed: list[str], found: Found) -> Tree:
    """Write the tree for Sphinx: changed files only, and nothing that is no longer in the book."""
    files = _assets(project.book)
    shared = [path.read_bytes() for path in (project.toc, project.config) if path.exists()]
    structure = [*shared, *files.values()]
    chapters = {chapter.page: (chapter, run) for chapter, run in found.values()}
    generated = parts(project, listed, found)
    for page in listed:
        text = (project.book / f"{page}.md").read_text(encoding="utf-8")
        structure.append(f"{page} {title_of(text, page)}".encode())
        if page in chapters:
            files |= chapter_files(project, *chapters[page])
        else:
            files[f"{page}.md"] = fill(text, page, generated).encode()
    for name, data in files.items():
        write(project.source / name, data)
    for path in sorted(project.source.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and path.relative_to(project.source).as_posix() not in files:
            path.unlink()
    content = [part for name, data in sorted(files.items()) for part in (name.encode(), data)]
    return Tree(_digest(content), _digest(structure))


def _assets(book: Path) -> dict[str, bytes]:
    """Return the files of the book that are neither pages nor settings: styles, images, works."""
    files = {}
    for path in sorted(book.rglob("*")):
        name = path.relative_to(book)
        hidden = any(part.startswith((".", "__")) for part in name.parts)
        if path.is_file() and not hidden and path.suffix not in (".md", ".yml", ".ipynb"):
            files[name.as_posix()] = path.read_bytes()
    return files


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part + b"\0")
    return digest.hexdigest()


def chapter_files(project: Project, chapter: Chapter, run: Run | None) -> dict[str, bytes]:
    """Return the files of a chapter: its page with outputs and footers, and its downloads."""
    import nbformat

    if run is None or not run.ok:
        page = read_page(chapter.text)
        notice = pages.failed(run.info["error"]) if run else pages.not_executed(chapter)
        first = next(cell for cell in page.cells if cell.cell_type == "markdown")
        first.source = pages.after_title(first.source, notice)
        return {f"{chapter.page}.ipynb": as_json(page).encode()}
    executed = nbformat.read(run.folder / "notebook.ipynb", as_version=4)
    notebook = merge(chapter.text, executed, run.info["profile"])
    folder = f"{DOWNLOADS}/{chapter.name}"
    page = copy.deepcopy(notebook)
    footer = pages.footer(project, chapter, run, folder)
    page.cells.append(nbformat.v4.new_markdown_cell(footer, id="footer"))
    files = {
        f"{chapter.page}.ipynb": as_json(page).encode(),
        f"{folder}/{chapter.name}.ipynb": as_json(notebook).encode(),
        f"{folder}/{chapter.name}.md": chapter.text.encode(),
    }
    for name, table in run.tables.items():
        files[f"{folder}/{name}.csv"] = (run.folder / table["file"]).read_bytes()
    return files


def merge(text: str, executed, profile: str):
    """Return the page as it reads now with the outputs of its run, cell by cell."""
    notebook = read_page(text)
    ours, theirs = own_code(notebook), own_code(executed)
    if [cell.source for cell in ours] != [cell.source for cell in theirs]:
        raise BookError("the executed notebook does not belong to this page; run the build again")
    for cell, done in zip(ours, theirs, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    cells = notebook.cells
    for cell in executed.cells:
        if has_tag(cell, INJECTED):
            values = cell.source.removeprefix("# Parameters\n").strip()
            cell.source = f"# The values of this run (profile {profile})\n{values}"
            cell["id"] = INJECTED
            declared = next(i for i, each in enumerate(cells) if has_tag(each, "parameters"))
            cells.insert(declared + 1, cell)
    return notebook


def fill(text: str, page: str, parts: dict) -> str:
    """Replace the comments `<!-- generated: name … -->` of a page by what `parts` makes of them."""

    def part(found: re.Match) -> str:
        name, words = found[1], found[2].split()
        if name not in parts or len(words) != (2 if name == "figure" else 0):
            known = ", ".join(parts).replace("figure", "figure CHAPTER NAME")
            raise BookError(f"book/{page}.md asks for {found[0]}, but generated are {known}")
        return parts[name](*words)

    return GENERATED.sub(part, text)


def parts(project: Project, listed: list[str], found: Found) -> dict:
    """Return the generated parts by name, each made only when a page asks for it."""
    chapters = {name: chapter for name, (chapter, _) in found.items()}

    @functools.cache
    def board():
        return scoreboard.board(project, (run for _, run in found.values()))

    def cards():
        from lib import datasets

        return datasets.cards()

    def figure(chapter, name):
        return pages.figure_part(found[chapter][1] if chapter in found else None, name)

    return {
        "scoreboard": lambda: scoreboard.page(board(), chapters, set(listed)),
        "scoreboard-glance": lambda: scoreboard.glance(board()),
        "dataset-cards": cards,
        "parameters": lambda: pages.parameters_part(list(chapters.values())),
        "cite-table": lambda: pages.cite_part(project, list(found.values())),
        "figure": figure,
    }
