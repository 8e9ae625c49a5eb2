"""What each chapter found, in words that verdicts choose and numbers that runs measured.

`book/findings.yml` says for a few claims of each chapter what it means when they hold, fail or stay
open. None of these words states a result: a verdict chooses which of them are shown.
"""

import html
from collections.abc import Callable
from typing import NamedTuple

from ci.contents import Page, Pages, of_chapter
from ci.scoreboard import Board, Row
from lib import claims
from lib.claims import Claim, badge_html
from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.paths import Project

FILE = "findings.yml"
# One that holds, one that holds in half, one that does not.
FRONT = ("model-based", "conversational", "zero-shot")
HELD = {
    "reproduced": "holds",
    "direction only": "holds",
    "not reproduced": "fails",
    "refuted": "fails",
}


class Finding(NamedTuple):
    """A claim with what to say of it; `says` has the number, in the form of `str.format`."""

    claim: str
    holds: str
    fails: str
    open: str
    says: str
    question: str = ""


class Chapter(NamedTuple):
    """What a chapter asks, what it found, and the one figure that shows it."""

    asks: str
    figure: str
    found: list[Finding]
    use: list[Finding] = []  # noqa: RUF012  # what to do about it, where a run decides that


class Interval(NamedTuple):
    """A measurement that is written with its interval, where it has one: `{interval:.2f}`."""

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        value, low, high = (format(each, form).replace("-", "−") for each in self)
        return value if self.low == self.high else f"{value} [{low}, {high}]"


def read(project: Project, ledger: dict[str, Claim]) -> dict[str, Chapter]:
    """Return the findings of each chapter; refuse one that names no claim of its chapter."""
    path = project.book / FILE
    if not path.exists():
        return {}
    return {
        chapter: _chapter(chapter, entry, ledger)
        for chapter, entry in read_yaml(path, dict).items()
    }


def _chapter(name: str, entry: dict, ledger: dict[str, Claim]) -> Chapter:
    try:
        chapter = Chapter(**entry)
        found, use = ([Finding(**each) for each in part] for part in (chapter.found, chapter.use))
    except TypeError as error:
        raise BookError(f"book/{FILE}, {name}: {error}") from None
    for each in [*found, *use]:
        claim = ledger.get(each.claim)
        if claim is None or claim.chapter != name:
            known = [id for id, claim in ledger.items() if claim.chapter == name]
            raise BookError(
                f"book/{FILE}: {name} has no claim {each.claim!r}{nearest(each.claim, known)}"
            )
        claims.question_of(claim, each.question)
    return chapter._replace(found=found, use=use)


def row_of(rows: Board, finding: Finding) -> Row:
    """Return the row of the scoreboard that a finding speaks of."""
    return next(
        row
        for each in rows.values()
        for row in each
        if row.claim.id == finding.claim and finding.question in ("", row.question)
    )


def words(finding: Finding, row: Row) -> tuple[str, str]:
    """Return what the verdict means, and the sentence with its number."""
    found = row.judgement
    meaning = getattr(finding, HELD.get(found.verdict, "open"))
    if found.measured is None:
        return meaning, "Not run here."
    number = row.claim.number
    values = {
        **found.facts,
        **({"printed": Interval(*[number.value] * 3)} if number else {}),
        "measured": found.measured,
        "interval": Interval(found.measured, found.low, found.high),
        "trials": found.trials or 1,
    }
    try:
        return meaning, finding.says.format_map(values)
    except (KeyError, ValueError) as error:
        raise BookError(f"book/{FILE}: what {finding.claim} says fails with {error}") from None


def badge(row: Row, up: str) -> str:
    """Return the verdict, linked to the page of its claim."""
    link = f"{up}claims/{html.escape(row.claim.id)}.html"
    return f'<a class="rb-count" href="{link}">{badge_html(row.verdict)}</a>'


def evidence(row: Row, up: str) -> str:
    """Return the verdict with its link, and at which scale it was reached."""
    found = row.judgement
    scale = "printed scale" if found.share == 1 else "reduced scale" if found.share else ""
    where = ", ".join(filter(None, (scale, row.evidence.source if row.evidence else "")))
    small = f" <small>{html.escape(where)}</small>" if where else ""
    return f"{badge(row, up)}{small}"


def sentence(rows: Board, finding: Finding, up: str) -> str:
    """Return one finding as a line of Markdown."""
    row = row_of(rows, finding)
    meaning, said = words(finding, row)
    return f"**{meaning}** {said} {evidence(row, up)}"


def part(
    rows: Board, pages: Pages, chapters: dict[str, Chapter], chapter: str, what: str = "found"
) -> str:
    """Return what a chapter found, or what to use, as a list for its first screen."""
    listed = getattr(chapters[chapter], what) if chapter in chapters else []
    if not listed:
        raise BookError(f"book/{FILE} says nothing of {chapter} under {what}")
    up = "../" * next(page.file.count("/") for page in of_chapter(pages, chapter))
    return "\n".join(f"- {sentence(rows, each, up)}" for each in listed) + "\n"


def front(rows: Board, pages: Pages, chapters: dict[str, Chapter], picture: Callable) -> str:
    """Return what three chapters found, the first with its number and the figure that shows it."""
    cards = []
    for name in FRONT:
        if name in chapters:
            chapter, (first, *others) = chapters[name], chapters[name].found
            own = row_of(rows, first).judgement.figure
            shown = (own and picture(name, own)) or picture(name, chapter.figure)
            parts = [sentence(rows, first, "")]
            for each in others[:1]:
                row = row_of(rows, each)
                parts.append(f"**{words(each, row)[0]}** {badge(row, '')}")
            page = next(iter(of_chapter(pages, name)))
            cards.append(_card(page, "\n\n".join([*parts, shown])))
    return _grid("1 1 3 3", "rb-front", cards)


def chart(rows: Board, pages: Pages, chapters: dict[str, Chapter]) -> str:
    """Return the map of the chapters: what each asks, and its findings in a few words."""
    cards = []
    for name, chapter in chapters.items():
        lines = []
        for each in chapter.found:
            row = row_of(rows, each)
            lines.append(f"- {badge(row, '')} {words(each, row)[0]}")
        page = next(iter(of_chapter(pages, name)))
        cards.append(_card(page, f"*{chapter.asks}*\n\n" + "\n".join(lines)))
    return _grid("1 1 2 2", "rb-map", cards)


def _card(page: Page, body: str) -> str:
    return f"::::{{grid-item-card}} {{doc}}`{page.title} </{page.file}>`\n\n{body}\n::::\n"


def _grid(columns: str, name: str, cards: list[str]) -> str:
    head = f":::::{{grid}} {columns}\n:gutter: 2\n:class-container: {name}\n\n"
    return head + "\n".join(cards) + ":::::\n"
