"""Which algorithm to use: a table whose choices are verdicts and whose numbers are measurements.

`book/guide.yml` names for each setting the claim that decides, the method to take if it holds, the
one to take if not, and the search whose winner is a constant to start from.
"""

import html
import io
from typing import TYPE_CHECKING, NamedTuple

from ci import findings
from ci.contents import Page, Pages, of_chapter
from ci.runs import Run
from ci.scoreboard import Board, Row
from lib import claims, records
from lib.claims import Claim, digits, text_html
from lib.errors import BookError
from lib.files import read_yaml
from lib.paths import Project

if TYPE_CHECKING:
    import pandas as pd

FILE = "guide.yml"
PRINTED = "thesis"  # the profile of the printed scale
BENCH = "bench"  # the folder of results/ that keeps measured costs
TITLES = ("Your setting", "Use", "Start from", "A round costs", "Evidence")


class Search(NamedTuple):
    """A recorded or live search for constants: its table, its rows, and the columns to show."""

    page: str
    table: str
    columns: dict[str, str]  # column: what to call it
    where: dict = {}  # noqa: RUF012  # rows of one problem, where a table has several


class Choice(NamedTuple):
    """A row of the guide: the claim decides between two methods."""

    setting: str
    claim: str
    use: str
    otherwise: str
    question: str = ""
    search: Search | None = None
    also: tuple[str, ...] = ()  # further claims that speak of the same


def read(project: Project, ledger: dict[str, Claim]) -> list[Choice]:
    """Return the rows of the guide; refuse one that no claim of the ledger decides."""
    chosen = []
    for entry in read_yaml(project.book / FILE, list):
        try:
            search = Search(**entry["search"]) if entry.get("search") else None
            choice = Choice(**{**entry, "search": search, "also": tuple(entry.get("also", ()))})
        except TypeError as error:
            raise BookError(f"book/{FILE}: {error}") from None
        for id in (choice.claim, *choice.also):
            if id not in ledger:
                raise BookError(f"book/{FILE}: there is no claim {id!r}")
        claims.question_of(ledger[choice.claim], choice.question)
        chosen.append(choice)
    return chosen


def _frame(text: str) -> "pd.DataFrame":
    import pandas as pd  # when it is needed: a build that changes nothing should take no time

    return pd.read_csv(io.StringIO(text))


def costs(project: Project) -> dict[str, float]:
    """Return the recorded microseconds of a round of each method, its environment included."""
    kept = records.table(project, BENCH, "", "rounds")
    if kept is None:
        return {}
    table = _frame(kept[1])
    return table[table["who"] == "ours"].groupby("algorithm")["microseconds"].median().to_dict()


def winner(table: "pd.DataFrame", policy: str, search: Search) -> dict:
    """Return the constants with which a method did best in a search, by the name to show."""
    rows = table[table["policy"] == policy]
    for column, value in search.where.items():
        rows = rows[rows[column] == value]
    if "stage" in rows:  # the last stage is the longest horizon, which is the one that counts
        rows = rows[rows["stage"] == rows["stage"].iloc[-1]] if len(rows) else rows
    if rows.empty:
        return {}
    if "trial" in rows:  # every evaluation is listed; the winner has the least mean
        known = [each for each in search.columns if each in rows and rows[each].notna().any()]
        rows = rows.groupby(known, dropna=False)["regret"].mean().reset_index()
        rows = rows.sort_values("regret")
    first = rows.iloc[0]
    shown = {**search.columns, "edge": "found"}  # a winner at an edge says what that means
    return {
        label: first[column]
        for column, label in shown.items()
        if column in first and first.notna()[column]
    }


def part(
    project: Project,
    choices: list[Choice],
    rows: Board,
    found: dict[str, tuple[Page, Run | None]],
    costs: dict[str, float],
) -> str:
    """Return the table of the guide."""
    pages = {name: page for name, (page, _) in found.items()}
    lines = []
    for choice in choices:
        row = findings.row_of(rows, findings.Finding(choice.claim, "", "", "", "", choice.question))
        holds = findings.HELD.get(row.verdict) == "holds"
        method = choice.use if holds else choice.otherwise
        cells = (
            text_html(choice.setting),
            f"{_chapter(pages, row, method)}{_strength(row)}",
            _constants(project, found, choice.search, method),
            f"{digits(costs[method])} µs" if method in costs else "–",
            _evidence(rows, row, choice),
        )
        body = "".join(
            f'<td data-label="{title}">{cell}</td>'
            for title, cell in zip(TITLES, cells, strict=True)
        )
        lines.append(f"<tr>{body}</tr>")
    head = "".join(f'<th scope="col">{title}</th>' for title in TITLES)
    return (
        f'<div class="rb-claims-scroll">\n<table class="rb-claims rb-guide">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>\n"
    )


def _chapter(pages: Pages, row: Row, method: str) -> str:
    page = next(iter(of_chapter(pages, row.claim.chapter)), None)
    name = f"<b>{html.escape(method)}</b>"
    return f'<a href="{page.file}.html">{name}</a>' if page else name


def _strength(row: Row) -> str:
    """Say what weakens the choice; nothing where it was reproduced at the printed scale."""
    found = row.judgement
    if findings.HELD.get(row.verdict) is None:
        return f"<br><small>by default: the claim is {row.verdict}</small>"
    weak = []
    if row.verdict in ("direction only", "not reproduced"):
        weak.append(row.verdict)
    if row.claim.nature == "experiment" and found.share != 1:
        weak.append("reduced scale" if found.share else "our own scale")
    return f"<br><small>weak evidence: {', '.join(weak)}</small>" if weak else ""


def _evidence(rows: Board, row: Row, choice: Choice) -> str:
    also = [findings.row_of(rows, findings.Finding(id, "", "", "", "")) for id in choice.also]
    return "<br>".join(
        f"{findings.badge(each, '')}<br>{text_html(_measure(each))}: "
        f"<b>{claims.number(each.judgement)}</b>"
        for each in (row, *also)
    )


def _measure(row: Row) -> str:
    """Return what was measured; what follows a semicolon explains the facts of the rule."""
    return row.claim.questions[row.question].measure.split(";")[0]


def _constants(project: Project, found: dict, search: Search | None, method: str) -> str:
    """Return the winner of the search, recorded at the printed scale or else live."""
    if search is None:
        return "none to tune"
    page, run = found.get(search.page, (None, None))
    if page is None:
        raise BookError(f"book/{FILE}: there is no page {search.page!r}")
    kept = records.table(project, page.chapter, PRINTED, search.table)
    table = run.tables.get(search.table) if run and run.ok else None
    if kept:
        text, source = kept[1], "recorded search"
    elif table:
        text, source = (run.folder / table.file).read_text("utf-8"), "live search"
    else:
        return "no search was run here"
    best = winner(_frame(text), method, search)
    if not best:
        return "not searched"
    shown = ", ".join(
        f"{html.escape(label)} {html.escape(value) if isinstance(value, str) else f'{value:.2g}'}"
        for label, value in best.items()
    ).strip()
    return f'{shown}<br><small><a href="{page.file}.html">{source}</a></small>'
