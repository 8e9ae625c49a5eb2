"""The report of a run: its page, what was changed, and what came out differently, in one file.

Published is what a build of the profile `book` left on this machine; without one, a build of the
run's own profile; without that, what the repository recorded.
"""

import html
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ci import claimpages, contents, evidence, markup, runs
from ci import parameters as params
from ci.cite import bibtex
from ci.contents import Page
from ci.display import duration
from ci.execute import INJECTED, has_tag, values_text
from ci.project import shown
from ci.runs import Run
from lib import claims, journal
from lib.claims import badge_html, text_html
from lib.journal import Judgement
from lib.paths import Project

FILE = "report.html"
STYLES = (*claimpages.STYLES, Path(__file__).with_name("report.css"))
FIGURE = re.compile(
    r'(<figure id="(fig-[\w-]+)".*?<div class="rb-canvas[^>]*>)(<svg.*?</svg>)', re.S
)
FOLDED = {"hide-input", "hide-cell", "hide-output"}


class Pair(NamedTuple):
    """A question that the run judged, with what is published of it, if anything is."""

    mine: Judgement
    theirs: Judgement | None

    @property
    def changed(self) -> bool:
        return self.theirs is not None and self.mine.verdict != self.theirs.verdict


class Comparison(NamedTuple):
    """A run beside what is published of its page."""

    page: Page
    run: Run
    published: Run | None
    parameters: dict[str, tuple]  # of those that differ: mine and theirs
    pairs: list[Pair]


def compare(project: Project, page: Page, run: Run) -> Comparison:
    """Hold a run against what is published of its page."""
    published = runs.beside(project, page, run.info.profile)
    usual = params.resolve(project, page) | (published.info.parameters if published else {})
    differ = {n: (v, usual[n]) for n, v in run.info.parameters.items() if v != usual[n]}
    known = judged(project, published)
    pairs = [Pair(mine, known.get((mine.id, mine.question))) for mine in run.judgements]
    return Comparison(page, run, published, differ, pairs)


def judged(project: Project, published: Run | None) -> dict[tuple[str, str], Judgement]:
    """Return what is published of each question: by the run of a build, else as recorded."""
    known = {(j.id, j.question): j for j in (e.judgement for e in evidence.recorded(project))}
    if published:
        known |= {(j.id, j.question): j for j in published.judgements if j.measured is not None}
    return known


def text(project: Project, found: Comparison) -> str:
    """Return the report as one HTML file that asks for nothing else."""
    page = found.page
    others = {each.title: each.text for each in contents.discover(project).values() if each != page}
    sections = [_head(found), _changes(found), _verdicts(found), _repeat(project, found)]
    known = markup.labels(page.text, others)
    body = "\n".join([*sections, _page(found, known), _files(found)])
    styles = "\n".join(path.read_text(encoding="utf-8") for path in STYLES)
    dark = f"@media (prefers-color-scheme: dark) {{\n{markup.code_style(dark=True)}\n}}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Your run of {html.escape(page.title)}</title>"
        f"<style>\n{styles}\n{markup.code_style(dark=False)}\n{dark}\n</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def summary(project: Project, found: Comparison, target: Path) -> list[str]:
    """Return the report in about ten lines, for the terminal."""
    run, beside = found.run, found.published
    drawn = [figure for figure in run.entries(journal.Figure) if figure.beside]
    differ = [pair for pair in found.pairs if pair.changed]
    lines = [
        f"notebook: {shown(target / 'notebook.ipynb')}",
        f"tables:   {len(run.tables)} in {shown(target / 'tables')}" if run.tables else "",
        f"changed:  {_in_words(found)}" if beside or found.parameters else "",
        f"verdicts: {_counts([pair.mine for pair in found.pairs])}",
        *(_difference(pair) for pair in differ[:MOST]),
        f"          … and {len(differ) - MOST} more that differ" if len(differ) > MOST else "",
        f"figures:  {len(drawn)} with the published curves in grey" if drawn else "",
        "published: nothing on this machine to compare with; `regretbook build "
        f"{found.page.name}` makes it"
        if not beside
        else "",
        f"repeat:   {_command(project, found)}",
        f"report:   {shown(target / FILE)}",
    ]
    return [line for line in lines if line]


MOST = 4  # differing verdicts on the terminal; the report has them all


def _counts(judgements: list[Judgement]) -> str:
    verdicts = [judgement.verdict for judgement in judgements]
    counts = [f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts)]
    return ", ".join(counts) or "no claim was checked"


def _in_words(found: Comparison) -> str:
    changes = [f"{n} = {mine} (was {theirs})" for n, (mine, theirs) in found.parameters.items()]
    return ", ".join(changes) or "no parameter"


def _difference(pair: Pair) -> str:
    name = " ".join(filter(None, (pair.mine.id, pair.mine.question)))
    return f"  {name}: {_said(pair.mine)}; published {_said(pair.theirs)}"


def _said(judgement: Judgement) -> str:
    number = claims.number(judgement)
    scale = judgement.scale.partition(" (")[0]  # its sizes are in the report
    parts = [number if number != "–" else "", scale]
    inner = ", ".join(filter(None, parts))
    return f"{judgement.verdict} ({inner})" if inner else judgement.verdict


def _command(project: Project, found: Comparison) -> str:
    info = found.run.info
    more = f" --policy {shlex.quote(info.policy)}" if info.policy else ""
    return params.command(project, found.page, info.profile, info.parameters) + more


def _when(run: Run) -> str:
    info = run.info
    return (
        f"{info.started[:16].replace('T', ' ')} UTC, profile {info.profile}, "
        f"{duration(info.seconds)}, commit <code>{info.commit[:12]}</code>"
        f"{' with local changes' if info.dirty else ''}"
    )


def _head(found: Comparison) -> str:
    beside = (
        f"the published one of {_when(found.published)}"
        if found.published
        else "recorded verdicts alone: no build of this page is on this machine"
    )
    return (
        f"<h1>Your run of {html.escape(found.page.title)}</h1>\n"
        f'<p class="where">{_when(found.run)}.<br>Compared with {beside}.</p>'
    )


def _changes(found: Comparison) -> str:
    if not found.parameters:
        return "<h2>What you changed</h2>\n<p>Every parameter is as published.</p>"
    rows = "".join(
        f"<tr><td><code>{name}</code></td><td>{html.escape(repr(mine))}</td>"
        f"<td>{html.escape(repr(theirs))}</td>"
        f"<td>{text_html(found.page.parameters[name].meaning)}</td></tr>"
        for name, (mine, theirs) in found.parameters.items()
    )
    table = _table(("Parameter", "Yours", "Published", "Meaning"), rows)
    return f"<h2>What you changed</h2>\n{table}"


def _table(head: tuple[str, ...], rows: str) -> str:
    cells = "".join(f"<th>{each}</th>" for each in head)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead>{rows}</table></div>'


def _verdicts(found: Comparison) -> str:
    if not found.pairs:
        return "<h2>Verdicts</h2>\n<p>This page judges no claim.</p>"
    changed, rest = (
        [row(pair) for pair in found.pairs if pair.changed == wanted] for wanted in (True, False)
    )
    head = ("Claim", "Yours", "Published")
    first = (
        f"<h2>Verdicts that changed</h2>\n{_table(head, ''.join(changed))}"
        if changed
        else "<h2>Verdicts</h2>\n<p>No verdict differs from a published one.</p>"
    )
    if not rest:
        return first
    many = f"{len(rest)} other verdict{'s' * (len(rest) != 1)}"
    return f"{first}<details><summary>{many}</summary>{_table(head, ''.join(rest))}</details>"


def row(pair: Pair) -> str:
    """Return a question with both judgements as the row of a table."""
    claim = claims.find(pair.mine.id)
    kind = ", ".join(filter(None, (claim.nature, pair.mine.question)))
    said = text_html(claim.statement)
    return (
        f"<tr><td>{said}<br><code>{claim.id}</code> <small>{kind}</small></td>"
        f"<td>{_judged(pair.mine)}</td><td>{_judged(pair.theirs)}</td></tr>"
    )


def _judged(judgement: Judgement | None) -> str:
    if judgement is None:
        return "not published"
    number = claims.number(judgement)
    unit = f" {text_html(judgement.unit)}" if judgement.measured is not None else ""
    small = [text_html(each) for each in (claims.details(judgement), judgement.note) if each]
    lines = [badge_html(judgement.verdict), f"{number}{unit}"]
    lines += [f"<small>{each}</small>" for each in small]
    return "<br>".join(lines)


def _repeat(project: Project, found: Comparison) -> str:
    command, entry = _command(project, found), bibtex(project, found.page, found.run)
    return (
        f'<h2>Repeat and cite</h2>\n<pre class="wrapped">{html.escape(command)}</pre>\n'
        f'<pre class="wrapped">{html.escape(entry)}</pre>'
    )


def _page(found: Comparison, known: markup.Labels) -> str:
    """Return the executed page, its figures over the published curves."""
    import nbformat

    notebook = nbformat.read(found.run.folder / "notebook.ipynb", as_version=4)
    overlays = {
        figure.name: (found.run.folder / figure.beside).read_text(encoding="utf-8")
        for figure in found.run.entries(journal.Figure)
        if figure.beside
    }
    cells = [_cell(cell, known, overlays, found) for cell in notebook.cells]
    return '<article class="page">\n' + "\n".join(filter(None, cells)) + "\n</article>"


def _cell(cell, known: markup.Labels, overlays: dict, found: Comparison) -> str:
    if cell.cell_type != "code":
        return markup.as_html(cell.source, known)
    tags = set(cell.metadata.get("tags", []))
    injected = has_tag(cell, INJECTED)
    written = markup.code(values_text(cell, found.run.info.profile) if injected else cell.source)
    if tags & FOLDED:
        prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show", "Show the code")
        written = f"<details><summary>{html.escape(prompt)}</summary>{written}</details>"
    return written + "".join(_output(output, known, overlays) for output in cell.outputs)


def _output(output, known: markup.Labels, overlays: dict) -> str:
    """Return what a cell showed: the richest form that needs no script."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(output.text)}</pre>"
    data = output.get("data", {})
    if "text/html" in data:
        rich = FIGURE.sub(lambda m: m[1] + overlays.get(m[2], m[3]), data["text/html"])
        return f'<div class="output">{rich}</div>'
    if "text/markdown" in data:
        return f'<div class="output">{markup.as_html(data["text/markdown"], known)}</div>'
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"]}">'
    return f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"


def _files(found: Comparison) -> str:
    """Link the tables that lie beside the report."""
    items = "".join(
        f'<li><a href="{html.escape(table.file)}">{html.escape(table.name)}</a>: '
        f"{text_html(table.caption)}"
        f"{' (recorded)' if table.source == 'recorded' else ''}</li>"
        for table in found.run.tables.values()
    )
    return f"<h2>Tables beside this file</h2>\n<ul>{items}</ul>" if items else ""
