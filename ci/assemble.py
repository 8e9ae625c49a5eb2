"""Assembling: the pages of the book and the outputs of its runs become what Sphinx reads."""

import copy
import functools
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import yaml

from ci import (
    claimpages,
    evidence,
    findings,
    folds,
    guide,
    history,
    objects,
    parts,
    scoreboard,
    scorepage,
)
from ci.cite import scholar
from ci.contents import Page, title_of
from ci.execute import INJECTED, as_json, as_notebook, has_tag, own_code, values_text
from ci.project import write
from ci.runs import Run
from ci.site import Site
from lib import claims, toc
from lib.errors import BookError
from lib.paths import Project

# The first screen of a chapter: from its title to its figure, with what was found on the way.
FIRST_SCREEN = re.compile(
    r"(?P<title>^# .*?\n)(?P<text>(?:(?!^#).)*?<!--\s*generated:\s*found\b(?:(?!^#).)*?)"
    r"(?P<figure><!--\s*generated:\s*figure\b.*?-->)",
    re.S | re.M,
)
GENERATED = re.compile(r"<!--\s*generated:\s*([\w-]+)((?:\s+[\w-]+)*)\s*-->")

Found = dict[str, tuple[Page, Run | None]]


class Tree(NamedTuple):
    """Digests of what was staged: of every file, and of what each page repeats of the others."""

    content: str
    structure: str


def stage(project: Project, site: Site, found: Found, profile: str = "book") -> Tree:
    """Write the tree for Sphinx: changed files only, and nothing that is no longer in the book."""
    files = _assets(project.book)
    shared = [path.read_bytes() for path in (project.toc, project.config) if path.exists()]
    structure = [*shared, *files.values()]
    executable = {page.file: (page, run) for page, run in found.values()}
    numbered = objects.numbers(project, list(found.values()))
    generated = makers(project, found, profile, numbered)
    for file in toc.listed(project):
        text = (project.book / f"{file}.md").read_text(encoding="utf-8")
        structure.append(f"{file} {title_of(text, file)}".encode())
        if file in executable:
            files |= page_files(project, *executable[file], generated, numbered)
        else:
            title = title_of(text, file)
            head = yaml.safe_dump({"myst": {"html_meta": scholar(project, title, f"{file}.html")}})
            body = fill(text, file, generated) + parts.doors(project, title, file)
            files[f"{file}.md"] = f"---\n{head}---\n\n{body}".encode()
    known = _claims(project, found, profile)
    files |= scoreboard.downloads(known.rows)
    alone = claimpages.files(known)
    _write_all(site.source, files)
    _write_all(site.claims, alone)
    content = [part for each in (files, alone) for item in sorted(each.items()) for part in item]
    content = [part if isinstance(part, bytes) else part.encode() for part in content]
    return Tree(_digest(content), _digest(structure))


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder hold these files: write what changed, remove what is no longer there."""
    for name, data in files.items():
        write(folder / name, data)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()


def _board(project: Project, found: Found) -> scoreboard.Board:
    return scoreboard.board(claims.ledger(), evidence.gather(project, found.values()))


def _claims(project: Project, found: Found, profile: str) -> claimpages.Book:
    """Return everything that the pages of claims are made from."""
    pages = {name: page for name, (page, _) in found.items()}
    shown = {
        name: claimpages.Shown(
            parts.figures(run),
            {table: f"{scoreboard.DOWNLOADS}/{page.place}/{table}.csv" for table in run.tables},
        )
        for name, (page, run) in found.items()
        if run and run.ok
    }
    rows = _board(project, found)
    return claimpages.Book(project, rows, pages, profile, history.read(project), shown)


def _assets(book: Path) -> dict[str, bytes]:
    """Return the files of the book that are neither pages nor settings: styles, images, works."""
    files = {}
    for path in sorted(book.rglob("*")):
        name = path.relative_to(book)
        hidden = any(part.startswith((".", "__")) for part in name.parts)
        if path.is_file() and not hidden and path.suffix not in (".md", ".yml", ".ipynb", ".py"):
            files[name.as_posix()] = path.read_bytes()
    return files


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part + b"\0")
    return digest.hexdigest()


def page_files(
    project: Project, page: Page, run: Run | None, generated: dict, numbered: objects.Numbers
) -> dict[str, bytes]:
    """Return the files of a page: itself with outputs and footers, and its downloads."""
    import nbformat

    if run is None or not run.ok:
        notebook = as_notebook(page.text)
        notice = parts.failed(run.info.error) if run else parts.not_executed(page)
        first = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
        first.source = parts.after_title(first.source, notice)
        return {f"{page.file}.ipynb": _filled(notebook, page, generated)}
    executed = nbformat.read(run.folder / "notebook.ipynb", as_version=4)
    notebook = merge(page.text, executed, run.info.profile)
    folder, name = f"{scoreboard.DOWNLOADS}/{page.place}", page.name.replace("/", "-")
    files = {
        f"{folder}/{name}.ipynb": as_json(notebook).encode(),
        f"{folder}/{name}.md": page.text.encode(),
    }
    for table in run.tables.values():
        files[f"{folder}/{table.name}.csv"] = (run.folder / table.file).read_bytes()
    shown = copy.deepcopy(notebook)
    for cell in shown.cells:
        if has_tag(cell, "hide-input"):
            own = cell.metadata.setdefault("mystnb", {})
            own["code_prompt_show"] = folds.title(
                cell.source, cell.outputs, own.get("code_prompt_show", "")
            )
    files |= objects.dress(shown, page, folder, numbered)
    footer = parts.footer(project, page, run, folder)
    tags = scholar(project, page.title, f"{page.file}.html", run.info.started)
    shown.metadata["myst"] = {"html_meta": tags}
    shown.cells.append(nbformat.v4.new_markdown_cell(footer, id="footer"))
    return files | {f"{page.file}.ipynb": _filled(shown, page, generated)}


def _filled(notebook, page: Page, generated: dict) -> bytes:
    """Return the notebook as a file, with the generated parts in its text."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = fill(side_by_side(cell.source), page.file, generated)
        else:  # what the formatter is told is nothing to read
            cell.source = cell.source.replace("  # fmt: skip", "")
    return as_json(notebook).encode()


def side_by_side(text: str) -> str:
    """Put the figure of a chapter beside what it asks, claims and found, where there is room.

    The theme knows the class `full-width`: such a box may cover the contents, which fold away.
    """
    return FIRST_SCREEN.sub(
        lambda found: (
            f"{found['title']}\n::::::{{div}} rb-first full-width\n{found['figure']}\n\n"
            f":::::{{div}} rb-first-text\n{found['text'].strip()}\n:::::\n::::::\n"
        ),
        text,
        count=1,
    )


def merge(text: str, executed, profile: str):
    """Return the page as it reads now with the outputs of its run, cell by cell."""
    notebook = as_notebook(text)
    ours, theirs = own_code(notebook), own_code(executed)
    if [cell.source for cell in ours] != [cell.source for cell in theirs]:
        raise BookError("the executed notebook does not belong to this page; run the build again")
    for cell, done in zip(ours, theirs, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    cells = notebook.cells
    for cell in executed.cells:
        if has_tag(cell, INJECTED):
            cell.source = values_text(cell, profile)
            cell["id"] = INJECTED
            declared = next(i for i, each in enumerate(cells) if has_tag(each, "parameters"))
            cells.insert(declared + 1, cell)
    return notebook


def fill(text: str, file: str, generated: dict) -> str:
    """Replace the comments `<!-- generated: name … -->` of a page by what is made for them."""

    def part(found: re.Match) -> str:
        name, words = found[1], found[2].split()
        maker, wanted = generated.get(name, (None, ()))
        if maker is None or len(words) != len(wanted):
            known = ", ".join(" ".join([name, *words]) for name, (_, words) in generated.items())
            raise BookError(f"book/{file}.md asks for {found[0]}, but generated are {known}")
        return maker(*words)

    return GENERATED.sub(part, text)


def makers(project: Project, found: Found, profile: str, numbered: objects.Numbers) -> dict:
    """Return the makers of generated parts by name, with the words that each takes.

    They are called only when a page asks for them.
    """
    pages = {name: page for name, (page, _) in found.items()}

    @functools.cache
    def board():
        return _board(project, found)

    @functools.cache
    def known():
        return findings.read(project, claims.ledger())

    def found_part(chapter):
        listed = findings.part(board(), pages, known(), chapter)
        count = scorepage.tally(board(), pages, chapter, profile)
        return f"````{{div}} rb-found\n{listed}\n{count}\n````\n"

    def use_part(chapter):
        listed = findings.part(board(), pages, known(), chapter, "use")
        return f"````{{div}} rb-found\n{listed}````\n"

    def picture(chapter, name):
        return parts.picture_part(
            [(page, run) for page, run in found.values() if page.chapter == chapter], name
        )

    def guide_part():
        choices = guide.read(project, claims.ledger())
        return guide.part(project, choices, board(), found, guide.costs(project))

    def cards():
        from lib import datasets

        return datasets.cards()

    def figure(chapter, name):
        own = {page.name: run for page, run in found.values() if page.chapter == chapter}
        return parts.figure_part(own, name, numbered)

    def measured(name):
        from ci import benchpage

        return benchpage.part(project, found, name)

    return {
        "scoreboard": (
            lambda: scorepage.page(board(), pages, profile, history.read(project)),
            (),
        ),
        "scoreboard-glance": (lambda: scorepage.glance(board(), profile), ()),
        "verdicts": (lambda chapter: scorepage.verdicts(board(), pages, chapter), ("CHAPTER",)),
        "tally": (lambda chapter: scorepage.tally(board(), pages, chapter, profile), ("CHAPTER",)),
        "found": (found_part, ("CHAPTER",)),
        "use": (use_part, ("CHAPTER",)),
        "front": (lambda: findings.front(board(), pages, known(), picture), ()),
        "map": (lambda: findings.chart(board(), pages, known()), ()),
        "guide": (guide_part, ()),
        "dataset-cards": (cards, ()),
        "parameters": (lambda: parts.parameters_part(list(pages.values())), ()),
        "cite-table": (lambda: parts.cite_part(project, list(found.values())), ()),
        "figure": (figure, ("CHAPTER", "NAME")),
        "bench": (measured, ("PART",)),
    }
