"""The scoreboard: each question of each claim with its verdict, as tables and on the terminal."""

import html
import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ci.contents import Page, Pages, of_chapter
from lib import claims
from lib.claims import Claim, badge_html, digits, text_html
from lib.journal import Judgement

TITLES = ("Claim", "Printed", "Measured", "Verdict")


class Evidence(NamedTuple):
    """A judgement, the page that made it, and whether a live or a recorded run did."""

    judgement: Judgement
    page: str
    source: str  # "live" or "recorded"
    commit: str


class Row(NamedTuple):
    """A question of a claim with the evidence that counts; none of it when nothing judged it."""

    claim: Claim
    question: str
    evidence: Evidence | None = None

    @property
    def judgement(self) -> Judgement:
        """Return what was found, or that nothing was run."""
        if self.evidence:
            return self.evidence.judgement
        unit = self.claim.unit(self.question)
        return Judgement(self.claim.id, self.question, "not run", unit=unit)

    @property
    def verdict(self) -> str:
        return self.judgement.verdict

    @property
    def kind(self) -> str:
        """Return the nature of the claim, and the question of an experiment."""
        return ", ".join(filter(None, (self.claim.nature, self.question)))

    @property
    def where(self) -> str:
        """Return `live`, or `recorded` with its commit; nothing when there is no evidence."""
        if not self.evidence:
            return ""
        recorded = self.evidence.source == "recorded"
        return f"recorded {self.evidence.commit[:12]}" if recorded else self.evidence.source


Board = dict[str, list[Row]]


def board(ledger: dict[str, Claim], evidence: Iterable[Evidence]) -> Board:
    """Return the rows of each chapter: a row for each question, with the evidence that counts."""
    found: dict[tuple[str, str], Evidence] = {}
    for each in evidence:
        key = each.judgement.id, each.judgement.question
        found[key] = max(found.get(key, each), each, key=_weight)
    rows: Board = {}
    for claim in ledger.values():
        rows.setdefault(claim.chapter, []).extend(
            Row(claim, question, found.get((claim.id, question))) for question in claim.questions
        )
    return rows


def _weight(evidence: Evidence) -> tuple:
    """Order evidence: what was judged, at the larger scale, and live where scales are equal."""
    judgement = evidence.judgement
    return judgement.measured is not None, judgement.share or 0.0, evidence.source == "live"


def findings(rows: Iterable[Row]) -> list[list[Row]]:
    """Return each row for itself, but the cells of one printed table, a group, together."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        own = row.claim.group or row.claim.id
        found.setdefault((row.claim.chapter, own, row.question), []).append(row)
    return list(found.values())


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many findings have each verdict; a group counts once."""
    found = [claims.joined(row.verdict for row in each) for each in findings(rows)]
    return {verdict: found.count(verdict) for verdict in claims.VERDICTS}


def _all(rows: Board) -> list[Row]:
    return [row for each in rows.values() for row in each]


def _first(pages: Pages, chapter: str) -> Page | None:
    return next(iter(of_chapter(pages, chapter)), None)


def _title(pages: Pages, chapter: str) -> str:
    page = _first(pages, chapter)
    return page.title if page else chapter.replace("-", " ").capitalize()


def _link(pages: Pages, chapter: str) -> str:
    """Return the title of a chapter, as a link when it has a page."""
    page, title = _first(pages, chapter), _title(pages, chapter)
    return f"{{doc}}`{title} </{page.file}>`" if page else title


def _sign(verdict: str) -> str:
    """Return a verdict as the sign that its style draws, so that all columns fit on a phone."""
    hidden = f'<span class="visually-hidden">{verdict}</span>'
    return f'<span class="rb-verdict {claims.CLASSES[verdict]}" title="{verdict}">{hidden}</span>'


def _counts_table(title: str, groups: dict[str, list[Row]]) -> str:
    """Return a table in Markdown with a row of counts for each group."""
    head = [title, "All", *map(_sign, claims.VERDICTS)]
    lines = [f"| {' | '.join(head)} |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for name, rows in groups.items():
        numbers = len(findings(rows)), *counts(rows).values()
        lines.append("| " + " | ".join(map(str, [name, *numbers])) + " |")
    return "```{div} rb-counts\n" + "\n".join(lines) + "\n```\n"


def _by_nature(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows by nature, experiments by question."""
    questions = {nature: [""] for nature in claims.NATURES} | {"experiment": claims.QUESTIONS}
    names = [", ".join(filter(None, (n, q))) for n in claims.NATURES for q in questions[n]]
    return {name.capitalize(): [row for row in rows if row.kind == name] for name in names}


def _badges(rows: list[Row], every: bool) -> str:
    badges = " ".join(
        f'<span class="rb-count"><b>{number}</b> {badge_html(verdict)}</span>'
        for verdict, number in counts(rows).items()
        if number or every
    )
    return f'<p class="rb-glance">{badges}</p>\n'


def _total(rows: list[Row]) -> str:
    """Return in words how many claims and questions there are."""
    number = len({row.claim.id for row in rows})
    text = f"{number} claim{'s' * (number != 1)}"
    text = text if number == len(rows) else f"{text} with {len(rows)} questions"
    found = len(findings(rows))
    return text if found == len(rows) else f"{text}, {found} when a printed table counts as one,"


def glance(rows: Board, profile: str = "book") -> str:
    """Return the whole scoreboard in one line of badges, for the front page."""
    total = f"Of {_total(_all(rows))} in the ledger:\n\n{_badges(_all(rows), True)}"
    return _warning(profile) + total


def _warning(profile: str) -> str:
    """Say of a profile that it is not the book's: its verdicts are not what the book found."""
    if profile == "book":
        return ""
    return f"```{{warning}}\nLive verdicts of this build are of the profile {profile}.\n```\n\n"


def tally(rows: Board, chapter: str, profile: str = "book") -> str:
    """Return the counts of one chapter in one line of badges."""
    mine = rows.get(chapter, [])
    where = "" if profile == "book" else f" (profile {profile})"
    return f"Of {_total(mine)} of this chapter{where}:\n\n{_badges(mine, False)}"


def _own_page(claim: Claim, address: Callable[[str], str]) -> str:
    """Return the name of a claim, linked to its own page."""
    name = html.escape(claim.id)
    return f'<a href="{address("")}claims/{name}.html"><code>{name}</code></a>'


def _row_html(row: Row, anchor: str, address: Callable[[str], str]) -> str:
    """Return one row: statement, print, measurement with all that its rule used, verdict."""
    claim, found = row.claim, row.judgement
    unit = f" {text_html(found.unit)}" if found.unit else ""
    printed = (
        f"{digits(claim.number.value)} {text_html(claim.number.unit)}" if claim.number else "–"
    )
    measured, where = claims.number(found) + (unit if found.measured is not None else ""), row.where
    if page := row.evidence and address(row.evidence.page):
        where = f'<a href="{page}">{where}</a>'
        if found.figure:
            measured = f'<a href="{page}#{html.escape(found.figure)}">{measured}</a>'
    small = [text_html(text) for text in (claims.details(found), found.note) if text]
    headline = ' class="rb-headline"' if claim.headline else ""
    return (
        f'<tr id="{html.escape(anchor)}"{headline}>'
        f"<td>{text_html(claim.statement)}<br>{_own_page(claim, address)} "
        f"<small>{row.kind}</small></td>"
        f'<td data-label="Printed">{printed}</td>'
        f'<td data-label="Measured">{measured}'
        f"{''.join(f'<br><small>{text}</small>' for text in small)}</td>"
        f'<td data-label="Verdict">{badge_html(found.verdict)}'
        f"{f'<br><small>{where}</small>' if where else ''}</td></tr>"
    )


def _group_html(rows: list[Row], anchors: list[str], address: Callable[[str], str]) -> str:
    """Return the cells of one printed table as one row that opens into them."""
    inner = "\n".join(map(_row_html, rows, anchors, [address] * len(rows)))
    headline = ' class="rb-headline"' if any(row.claim.headline for row in rows) else ""
    summary = f"{text_html(rows[0].claim.group)}: {_cells(rows)}"
    return (
        f'<tr{headline}><td colspan="3"><details><summary>{summary}</summary>'
        f'<table class="rb-claims"><tbody>\n{inner}\n</tbody></table></details></td>'
        f'<td data-label="Verdict">{badge_html(claims.joined(row.verdict for row in rows))}'
        f"<br><small>{rows[0].kind}, {len(rows)} cells</small></td></tr>"
    )


def _cells(rows: list[Row]) -> str:
    """Return in words how many cells of a group have each verdict."""
    found = [row.verdict for row in rows]
    return ", ".join(f"{found.count(v)} {v}" for v in claims.VERDICTS if v in found)


def table_html(rows: list[Row], prefix: str, address: Callable[[str], str]) -> str:
    """Return rows as a table, a group as one row; `address` gives the link to a page."""
    seen: set[str] = set()
    lines = []
    for together in findings(rows):
        anchors = []
        for row in together:
            second = f"-{row.question}" if row.claim.id in seen else ""
            seen.add(row.claim.id)
            anchors.append(f"{prefix}-{row.claim.id}{second}")
        if len(together) > 1:
            lines.append(_group_html(together, anchors, address))
        else:
            lines.append(_row_html(together[0], anchors[0], address))
    head = "".join(f'<th scope="col">{title}</th>' for title in TITLES)
    body = "\n".join(lines)
    return (
        f'<div class="rb-claims-scroll {claims.MATHS}">\n<table class="rb-claims">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n</div>"
    )


def _addresses(pages: Pages, depth: int) -> Callable[[str], str]:
    """Return how to link to a page, from the top of the book or from a page of its chapter.

    `depth` is how far the linking page is from the top, which the empty name stands for.
    """
    files = {name: page.file for page in pages.values() for name in (page.name, page.place)}

    def address(name: str) -> str:
        if not name:
            return "../" * depth
        file = files.get(name, "")
        file = file.rpartition("/")[2] if depth else file
        return f"{file}.html" if file else ""

    return address


def verdicts(rows: Board, pages: Pages, chapter: str) -> str:
    """Return the table of a chapter for one of its own pages, headline claims first."""
    mine = sorted(rows.get(chapter, []), key=lambda row: not row.claim.headline)
    if not mine:
        return "*The ledger has no claim of this chapter.*\n"
    first = _first(pages, chapter)
    depth = first.file.count("/") if first else 2
    return table_html(mine, "claim", _addresses(pages, depth)) + "\n"


def page(rows: Board, pages: Pages, profile: str = "book") -> str:
    """Return the generated part of scoreboard.md: counts, headline claims, then every claim."""
    address = _addresses(pages, 0)
    total = _all(rows)
    whole = {"**Whole book**": total}
    text = [
        _warning(profile),
        _counts_table("Nature", _by_nature(total) | whole),
        _counts_table("Chapter", {_link(pages, name): each for name, each in rows.items()} | whole),
        # A formula of its own makes Sphinx load MathJax, which then typesets the tables too.
        "Intervals are written $[\\text{low}, \\text{high}]$.\n",
    ]
    headline = {name: [row for row in each if row.claim.headline] for name, each in rows.items()}
    if any(headline.values()):
        text.append("## Headline claims\n")
    for name, each in headline.items():
        if each:
            text += [f"### {_title(pages, name)}\n", table_html(each, "headline", address), ""]
    text.append("## Every claim\n")
    for name, each in rows.items():
        ordered = sorted(each, key=lambda row: not row.claim.headline)
        text += [
            f"````{{dropdown}} {_title(pages, name)}: {_summary(each)}",
            ":class-container: rb-claims-of-chapter\n",
            table_html(ordered, "claim", address),
            "````\n",
        ]
    return "\n".join(text)


def _summary(rows: list[Row]) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in counts(rows).items() if n) or "no claims"


def as_text(rows: Board, chapter: str | None, form: str) -> str:
    """Return the scoreboard for the terminal or, in the form `json`, for a program."""
    if chapter is not None:
        rows = {chapter: rows.get(chapter, [])}
    if form == "json":
        return json.dumps([_plain(row) for row in _all(rows)], indent=1)
    lines = []
    for name, each in rows.items():
        lines.append(f"{name}: {_summary(each)}")
        width = max((len(row.claim.id) for row in each), default=0)
        for row in each:
            number = row.claim.number
            printed = f", printed {digits(number.value)}" if number else ""
            found = row.judgement
            parts = [f"{claims.number(found)} {found.unit}{printed}", claims.details(found)]
            said = "  " + "; ".join(filter(None, parts)) if found.measured is not None else ""
            lines.append(
                f"    {row.claim.id:<{width}}  {row.question:<14}  {row.verdict:<21}{said}".rstrip()
            )
    return "\n".join(lines)


def _plain(row: Row) -> dict:
    claim, found = row.claim, row.judgement
    group = {"group": claim.group} if claim.group else {}
    return {
        "id": claim.id,
        "chapter": claim.chapter,
        **group,
        "page": row.evidence.page if row.evidence else "",
        "nature": claim.nature,
        "question": row.question,
        "verdict": found.verdict,
        "scale": found.scale,
        "trials": found.trials,
        "printed": claim.number.value if claim.number else None,
        "measured": found.measured,
        "low": found.low,
        "high": found.high,
        "unit": found.unit,
        "rule": str(claim.questions[row.question]),
        "source": claim.source,
        "evidence": row.where,
        "control": found.control[0] if found.control else None,
        "needed": found.needed,
        "note": found.note,
    }
