"""Generated Markdown: the footers of a page, and the parts of pages that runs fill in."""

import html
import re

from ci import parameters as params
from ci.cite import bibtex, results_digest
from ci.contents import Page
from ci.display import duration
from ci.runs import Failure, Run
from lib import journal
from lib.errors import BookError
from lib.paths import Project


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
        caption = re.sub(r"\$([^$]+)\$", r"\\(\1\\)", html.escape(table.caption))
        items.append(
            f"{link(f'{name}.csv', f'{name}.csv')}: "
            f'<span class="tex2jax_process mathjax_process">{caption}</span>{recorded}</li>'
        )
    return '<ul class="rb-downloads">\n' + "\n".join(items) + "\n</ul>"


def footer(project: Project, page: Page, run: Run, folder: str) -> str:
    """Return the four footers of an executed page."""
    command = params.command(project, page, run.info.profile, run.info.parameters)
    rerun = (
        f"```bash\n{command}\n```\n\nAdd `-p name=value` to change a parameter; "
        f"`regretbook list` shows their names, meanings and ranges."
    )
    return "\n".join(
        [
            _dropdown("Rerun this page", rerun),
            _dropdown("Provenance", provenance(run)),
            _dropdown("Cite this page", f"```bibtex\n{bibtex(project, page, run)}\n```"),
            _dropdown("Downloads", downloads(page, run, folder)),
        ]
    )


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


def figure_part(runs: list[Run | None], name: str) -> str:
    """Return one figure of the executed pages of a chapter, for use on another page."""
    import nbformat

    if not all(run and run.ok for run in runs):
        return "*The figure appears here when its chapter has been executed.*\n"
    for run in runs:
        notebook = nbformat.read(run.folder / "notebook.ipynb", as_version=4)
        for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
            markup = output.get("data", {}).get("text/html", "")
            if f'id="{name}"' in markup:
                return f"``````{{raw}} html\n{markup}\n``````\n"
    where = runs[0].info.chapter if runs else "no executed chapter"
    raise BookError(f"a page asks for figure {name!r}, which {where} does not show")
