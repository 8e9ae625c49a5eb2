"""The scoreboard: every claim of the ledger with its verdict, as a page and on the terminal."""

import json
from collections.abc import Iterable

from ci import runs
from ci.chapters import Chapter, discover
from ci.project import Project
from lib import claims
from lib.claims import Verdict
from lib.errors import BookError, nearest

Board = dict[str, list[Verdict]]


def ledger(project: Project) -> dict[str, claims.Claim]:
    """Return the claims of a project by id."""
    return claims.load(project.ledger) if project.ledger.exists() else {}


def board(project: Project, found: Iterable[runs.Run | None]) -> Board:
    """Return the rows of each chapter of the ledger; a claim that no run checked is `not run`."""
    noted = {e["id"]: e for run in found if run and run.ok for e in run.entries("claim")}
    keys = ("verdict", "measured", "low", "high", "figure", "note")
    rows: Board = {name: [] for name in claims.CHAPTERS}
    for claim in ledger(project).values():
        entry = noted.get(claim.id)
        verdict = Verdict(claim, *(entry[k] for k in keys)) if entry else Verdict(claim, "not run")
        rows[claim.chapter].append(verdict)
    return {name: each for name, each in rows.items() if each}


def counts(rows: Iterable[Verdict]) -> dict[str, int]:
    """Return how many rows have each of the six verdicts."""
    found = [row.verdict for row in rows]
    return {verdict: found.count(verdict) for verdict in claims.VERDICTS}


def _title(chapters: dict[str, Chapter], name: str) -> str:
    return chapters[name].title if name in chapters else name.replace("-", " ").capitalize()


def _link(chapters: dict[str, Chapter], listed: set[str], name: str) -> str:
    """Return the title of a chapter, as a link when it has a page."""
    title = _title(chapters, name)
    linked = name in chapters and chapters[name].page in listed
    return f"{{doc}}`{title} </{chapters[name].page}>`" if linked else title


def _sign(verdict: str) -> str:
    """Return a verdict as the sign that its style draws, so that six columns fit on a phone."""
    hidden = f'<span class="visually-hidden">{verdict}</span>'
    return f'<span class="rb-verdict {claims.CLASSES[verdict]}" title="{verdict}">{hidden}</span>'


def counts_table(rows: Board, chapters: dict[str, Chapter], listed: set[str]) -> str:
    """Return the table of verdicts per chapter in Markdown."""
    head = ["Chapter", "Claims", *map(_sign, claims.VERDICTS)]
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    total = [row for each in rows.values() for row in each]
    for name, each in [*rows.items(), ("", total)]:
        cells = [_link(chapters, listed, name) if name else "**Whole book**", len(each)]
        lines.append("| " + " | ".join(map(str, cells + list(counts(each).values()))) + " |")
    return "```{div} rb-counts\n" + "\n".join(lines) + "\n```\n"


def glance(rows: Board) -> str:
    """Return the whole scoreboard in one line of badges, for the front page."""
    total = [row for each in rows.values() for row in each]
    badges = " ".join(
        f'<span class="rb-count"><b>{number}</b> {claims.badge_html(verdict)}</span>'
        for verdict, number in counts(total).items()
    )
    return f'Of {len(total)} claims in the ledger:\n\n<p class="rb-glance">{badges}</p>\n'


def _rows_html(rows: list[Verdict], page: str | None, prefix: str) -> str:
    """Return rows as the chapters show them, with links that lead to the chapter's page."""
    table = claims.Table(rows)._repr_html_().replace('id="claim-', f'id="{prefix}-')
    return table.replace('href="#', f'href="{page}.html#') if page else table


def page(rows: Board, chapters: dict[str, Chapter], listed: set[str]) -> str:
    """Return the generated part of scoreboard.md: counts, headline claims, then every claim."""

    def part(name: str, chosen: list[Verdict], prefix: str) -> str:
        where = chapters[name].page if name in chapters else None
        return _rows_html(chosen, where, prefix)

    text = [counts_table(rows, chapters, listed)]
    # A formula of its own makes Sphinx load MathJax, which then typesets the tables too.
    text.append("Intervals are written $[\\text{low}, \\text{high}]$.\n")
    headline = {name: [row for row in each if row.claim.headline] for name, each in rows.items()}
    if any(headline.values()):
        text.append("## Headline claims\n")
    for name, each in headline.items():
        if each:
            text += [f"### {_title(chapters, name)}\n", part(name, each, "headline"), ""]
    text.append("## Every claim\n")
    for name, each in rows.items():
        summary = ", ".join(f"{n} {verdict}" for verdict, n in counts(each).items() if n)
        text += [
            f"````{{dropdown}} {_title(chapters, name)}: {summary}",
            ":class-container: rb-claims-of-chapter\n",
            part(name, sorted(each, key=lambda row: not row.claim.headline), "claim"),
            "````\n",
        ]
    return "\n".join(text)


def as_text(project: Project, chapter: str | None, form: str) -> str:
    """Return the scoreboard of the last runs for the terminal or for a program."""
    found = discover(project)
    rows = board(project, (runs.last(project, name) for name in found))
    if chapter is not None:
        known = dict.fromkeys([*rows, *found])
        if chapter not in known:
            raise BookError(f"there is no chapter {chapter!r}{nearest(chapter, known)}")
        rows = {chapter: rows.get(chapter, [])}
    if form == "json":
        return json.dumps([_plain(row) for each in rows.values() for row in each], indent=1)
    lines = []
    for name, each in rows.items():
        summary = ", ".join(f"{n} {verdict}" for verdict, n in counts(each).items() if n)
        lines.append(f"{name}: {summary or 'no claims'}")
        width = max((len(row.claim.id) for row in each), default=0)
        for row in each:
            printed = f", printed {claims.digits(row.claim.print.value)}" if row.claim.print else ""
            number = f"  {row.number()} {row.unit}{printed}" if row.measured is not None else ""
            lines.append(f"    {row.claim.id:<{width}}  {row.verdict:<21}{number}".rstrip())
    return "\n".join(lines)


def _plain(row: Verdict) -> dict:
    claim = row.claim
    return {
        "id": claim.id,
        "chapter": claim.chapter,
        "headline": claim.headline,
        "statement": claim.statement,
        "print": claim.print._asdict() if claim.print else None,
        **{key: getattr(row, key) for key in ("verdict", "measured", "low", "high", "unit")},
        "figure": row.figure,
        "note": row.note,
    }
