"""Generated Markdown: the footers of a page, and the parts of pages that runs fill in."""

import functools
import html
import json
import re
from pathlib import Path
from urllib.parse import quote

from ci import forms, objects
from ci import parameters as params
from ci.cite import addresses, bibtex, results_digest
from ci.contents import Page
from ci.display import duration
from ci.notebooks import launchers
from ci.runs import Failure, Run
from lib import journal
from lib.errors import BookError
from lib.maths import sentence
from lib.paths import Project

FIGURE = re.compile(r'<figure id="([^"]+)"')


def _dropdown(title: str, body: str) -> str:
    return f"``````{{dropdown}} {title}\n:class-container: rb-footer\n\n{body}\n``````\n"


def _cell(text) -> str:
    """Return text that may stand in a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", r"\|")


def _table(rows: dict[str, str]) -> str:
    lines = [f"* - {key}\n  - {value}" for key, value in rows.items()]
    options = ":stub-columns: 1\n:class: rb-provenance\n"
    return "\n".join(["```{list-table}", options, *lines, "```"])


def _code(values: dict) -> str:
    return _cell(", ".join(f"`{name} = {value!r}`" for name, value in values.items()))


def provenance(run: Run) -> str:
    """Return what the numbers of a page depend on, as a table."""
    info = run.info
    data = {entry.name: entry for entry in run.entries(journal.Data)}
    read = [
        f"`{name}` {'sha256 `' + entry.digest[:16] + '`' if entry.digest else 'absent'}"
        for name, entry in data.items()
    ]
    rows = {
        "Commit": f"`{info.commit[:12]}`{' with local changes' if info.dirty else ''}",
        "Profile": info.profile,
        "Parameters": _code(info.parameters),
        "Seed": f"`{info.seed}`",
        "Versions": ", ".join(f"{name} {version}" for name, version in info.versions.items()),
        "Machine": info.machine,
        "Executed": f"{info.started[:16].replace('T', ' ')} UTC, in {duration(info.seconds)}",
        "Data": ", ".join(read) or "none read",
        "Results": f"sha256 `{results_digest(run)[:16]}`" if run.tables else "no tables",
    }
    return _table(rows)


def downloads(page: Page, run: Run, folder: str) -> str:
    """Return links to the files of a page; plain links keep their names and work offline."""
    up, file = "../" * page.file.count("/"), page.name.replace("/", "-")

    def link(name: str, text: str) -> str:
        return f'<li><a href="{up}{folder}/{name}" download>{html.escape(text)}</a>'

    items = [
        link(f"{file}.ipynb", "Executed notebook") + "</li>",
        link(f"{file}.md", "Source of this page (Jupytext)") + "</li>",
    ]
    for name, table in run.tables.items():
        recorded = " (recorded run)" if table.source == "recorded" else ""
        items.append(
            f"{link(f'{name}.csv', f'{name}.csv')}: {sentence(table.caption)}{recorded}</li>"
        )
    return '<ul class="rb-downloads">\n' + "\n".join(items) + "\n</ul>"


def rerun(project: Project, page: Page, run: Run) -> str:
    """Return the command that reruns a page; where scripts run, a form that builds it."""
    command = params.command(project, page, run.info.profile, run.info.parameters)
    data = forms.form(project, page, run.info.profile, {run.info.profile: run.info.seconds})
    return (
        f'<div class="rb-rerun"><p><code>{html.escape(command)}</code></p>'
        f"{forms.script(data)}</div>\n\n"
        "Run the command in a clone of the book; `regretbook live` runs pages from the browser."
    )


def footer(project: Project, page: Page, run: Run, folder: str) -> str:
    """Return the four footers of an executed page."""
    return "\n".join(
        [
            _dropdown("Rerun this page", rerun(project, page, run)),
            _dropdown("Provenance", provenance(run)),
            _dropdown("Cite this page", f"```bibtex\n{bibtex(project, page, run)}\n```"),
            _dropdown("Downloads", downloads(page, run, folder)),
            doors(project, page.title, page.file, page),
        ]
    )


def doors(project: Project, title: str, file: str, page: Page | None = None) -> str:
    """Return buttons to the source of a page and to machines that run it, once it is public."""
    repository = addresses(project).repository
    if not repository:
        return ""
    subject = quote(f"{title} ({file})")
    links = {
        "Edit this page": f"{repository}/edit/HEAD/book/{file}.md",
        "Report an issue": f"{repository}/issues/new?title={subject}",
    }
    if page:
        found = launchers(page.name.replace("/", "-"), repository)
        links |= {f"Open in {where}": address for where, address in found.items()}
    buttons = " ".join(
        f'<a class="rb-door" href="{html.escape(address)}">{text}</a>'
        for text, address in links.items()
    )
    return f'\n<p class="rb-doors-out">{buttons}</p>\n'


def failed(error: Failure) -> str:
    """Return what stands on a page that failed."""
    where = f"Cell {error.cell}" if error.cell else "The kernel"
    return (
        "``````{admonition} This page failed in this build\n:class: error rb-failed\n\n"
        f"{where} ended with an error, so the page shows no results.\n\n"
        f"`````text\n{error.line}\n{error.error}: {error.message}\n`````\n``````\n"
    )


def not_executed(page: Page) -> str:
    """Return what stands on a page that this build left out."""
    return (
        "``````{admonition} Not executed in this build\n:class: warning rb-not-executed\n\n"
        f"The page shows its text and code without results; `regretbook build {page.name}` "
        "executes it.\n``````\n"
    )


def after_title(text: str, addition: str) -> str:
    """Insert Markdown below the first heading of a text."""
    return re.sub(r"^(# .*)$", lambda m: f"{m[1]}\n\n{addition}", text, count=1, flags=re.M)


def parameters_part(pages: list[Page]) -> str:
    """Return the parameters of every page as tables."""
    text = []
    for page in pages:
        text += [f"### {page.title}\n", f"`regretbook run {page.name}`\n"]
        text += ["| Parameter | Default | Range | Meaning |", "|---|---|---|---|"]
        for name, parameter in page.parameters.items():
            allowed = f"`{_cell(parameter.range.text)}`" if parameter.range else ""
            default, meaning = _cell(repr(parameter.default)), _cell(parameter.meaning)
            text.append(f"| `{name}` | `{default}` | {allowed} | {meaning} |")
        text.append("")
    return "\n".join(text)


def cite_part(project: Project, found: list[tuple[Page, Run | None]]) -> str:
    """Return the BibTeX entry of every page, folded."""
    entries = (
        _dropdown(page.title, f"```bibtex\n{bibtex(project, page, run)}\n```")
        for page, run in found
    )
    return "\n".join(entries)


def figures(run: Run) -> dict[str, str]:
    """Return the figures that an executed page shows, by name, as they stand in it."""
    path = run.folder / "notebook.ipynb"
    return _figures(path, path.stat().st_mtime_ns)


@functools.cache
def _figures(path: Path, modified: int) -> dict[str, str]:
    """Read a notebook once in a process, and as plain JSON: nbformat checks all of it again."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = (
        "".join(output.get("data", {}).get("text/html", ""))
        for cell in cells
        for output in cell.get("outputs", [])
    )
    return {found[1]: markup for markup in shown if (found := FIGURE.search(markup))}


def figure_part(runs: dict[str, Run | None], name: str, numbered: objects.Numbers) -> str:
    """Return one figure of the executed pages of a chapter, for use on another page."""
    if not all(run and run.ok for run in runs.values()):
        return "*The figure appears here when its chapter has been executed.*\n"
    for page, run in runs.items():
        if name in (shown := figures(run)):
            markup = objects.with_number(shown[name], page, numbered)
            return f"``````{{raw}} html\n{markup}\n``````\n"
    where = next(iter(runs.values())).info.chapter if runs else "no executed chapter"
    raise BookError(f"a page asks for figure {name!r}, which {where} does not show")


def picture_part(found: list[tuple[Page, Run | None]], name: str) -> str:
    """Return a figure of a chapter without its caption, small, which leads to where it stands."""
    for page, run in found:
        markup = figures(run).get(name, "") if run and run.ok else ""
        if "<svg" in markup:
            svg = markup[markup.index("<svg") : markup.rindex("</svg>") + len("</svg>")]
            link = f'<a class="rb-thumb" href="{page.file}.html#{name}">{svg}</a>'
            return f"``````{{raw}} html\n{link}\n``````\n"
    return ""
