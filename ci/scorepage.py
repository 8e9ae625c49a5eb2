"""The scoreboard as HTML: counts, the table of all claims with its filter, and what changed."""

import html
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from ci.contents import Page, Pages, of_chapter
from ci.history import History, changed
from ci.scoreboard import DOWNLOADS, Board, Row, counts, every, findings
from lib import claims
from lib.claims import badge_html, digits, text_html
from lib.journal import Judgement

TITLES = ("Claim", "Printed", "Measured", "Verdict")
FILTERS = {
    "chapter": "Chapter",
    "nature": "Nature",
    "question": "Question",
    "verdict": "Verdict",
    "scale": "Scale",
    "data": "Data",
}
SEPARATOR = "|"  # between the data sets of one claim


def _first(pages: Pages, chapter: str) -> Page | None:
    return next(iter(of_chapter(pages, chapter)), None)


def _title(pages: Pages, chapter: str) -> str:
    page = _first(pages, chapter)
    return page.title if page else chapter.replace("-", " ").capitalize()


def _link(pages: Pages, chapter: str) -> str:
    """Return the title of a chapter, as a link when it has a page."""
    page, title = _first(pages, chapter), html.escape(_title(pages, chapter))
    return f'<a href="{page.file}.html">{title}</a>' if page else title


def _sign(verdict: str) -> str:
    """Return a verdict as the sign that its style draws, so that all columns fit on a phone."""
    hidden = f'<span class="visually-hidden">{verdict}</span>'
    return f'<span class="rb-verdict {claims.CLASSES[verdict]}" title="{verdict}">{hidden}</span>'


def _filtered(text: str, **chosen: str) -> str:
    """Return a link to the scoreboard that shows only these rows."""
    query = urlencode({key: value for key, value in chosen.items() if value} | {"show": "all"})
    return f'<a href="scoreboard.html?{html.escape(query)}#every-claim">{text}</a>'


def _counts_table(title: str, groups: list["Group"]) -> str:
    """Return a table with a row of counts for each group; every count shows what it counts."""
    head = [f'<th scope="col">{text}</th>' for text in (title, "All", *map(_sign, claims.VERDICTS))]
    lines = []
    for group in groups:
        numbers = {"": len(findings(group.rows)), **counts(group.rows)}
        cells = [
            _filtered(str(number), **group.chosen, verdict=verdict) if number else "0"
            for verdict, number in numbers.items()
        ]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{group.title}</th>{row}</tr>')
    return (
        f'<div class="rb-counts"><table>\n<thead><tr>{"".join(head)}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody></table></div>\n"
    )


class Group(NamedTuple):
    """Rows that are counted together, and the filter that shows them."""

    title: str
    rows: list[Row]
    chosen: dict[str, str] = {}  # noqa: RUF012


def _by_nature(rows: list[Row]) -> list[Group]:
    """Return rows by nature, experiments by question."""
    questions = {nature: [""] for nature in claims.NATURES} | {"experiment": claims.QUESTIONS}
    return [
        Group(
            ", ".join(filter(None, (nature, question))).capitalize(),
            [row for row in rows if (row.claim.nature, row.question) == (nature, question)],
            {"nature": nature, "question": question},
        )
        for nature in claims.NATURES
        for question in questions[nature]
    ]


def _badges(rows: list[Row], up: str = "", **chosen: str) -> str:
    """Return how many findings have each verdict, each number linked to them."""
    badges = " ".join(
        f'<a class="rb-count" href="{up}scoreboard.html?'
        f'{html.escape(urlencode({**chosen, "verdict": verdict, "show": "all"}))}#every-claim">'
        f"<b>{number}</b> {badge_html(verdict)}</a>"
        for verdict, number in counts(rows).items()
        if number
    )
    return f'<p class="rb-glance">{badges}</p>\n'


def _total(rows: list[Row]) -> str:
    """Return in words how many claims and verdicts there are."""
    number, found = len({row.claim.id for row in rows}), len(findings(rows))
    text = f"{number} claim{'s' * (number != 1)}, {found} verdict{'s' * (found != 1)}"
    return text if found == len(rows) else f"{text} (a printed table counts once)"


def glance(rows: Board, profile: str = "book") -> str:
    """Return the whole scoreboard in one line of badges, for the front page."""
    return f"{_warning(profile)}{_total(every(rows))}:\n\n{_badges(every(rows))}"


def _warning(profile: str) -> str:
    """Say of a profile that it is not the book's: its verdicts are not what the book found."""
    if profile == "book":
        return ""
    return f"```{{warning}}\nLive verdicts of this build are of the profile {profile}.\n```\n\n"


def tally(rows: Board, pages: Pages, chapter: str, profile: str = "book") -> str:
    """Return the counts of one chapter in one line of badges."""
    mine, first = rows.get(chapter, []), _first(pages, chapter)
    where = "" if profile == "book" else f" (profile {profile})"
    up = "../" * (first.file.count("/") if first else 0)
    return f"{_total(mine)}{where}:\n\n{_badges(mine, up, chapter=chapter)}"


def _own_page(row: Row, address: Callable[[str], str]) -> str:
    """Return the name of a claim, linked to its own page, and what kind of claim it is."""
    name = html.escape(row.claim.id)
    return f'<small><a href="{address("")}claims/{name}.html">{name}</a> {row.kind}</small>'


def _data(rows: list[Row]) -> str:
    """Return what the filter and the order of the scoreboard cannot read off a row."""
    first = rows[0]
    number, found = first.claim.number, first.judgement
    known = {
        "scale": _scale(found) if found.scale else "",
        "data": SEPARATOR.join(first.claim.needs),
        "printed": "" if number is None else f"{number.value:.6g}",
        "measured": "" if found.measured is None else f"{found.measured:.6g}",
    }
    return "".join(f' data-{key}="{html.escape(text)}"' for key, text in known.items() if text)


def _scale(found: Judgement) -> str:
    """Return the scale of a run in a word or two."""
    if not found.scale:
        return "none"
    return claims.PRINTED_SCALE if found.share == 1 else found.scale.split(" (")[0].split(";")[0]


def _row_html(
    row: Row, anchor: str, address: Callable[[str], str], brief: bool, alone: bool = True
) -> str:
    """Return one row: statement, print, measurement, verdict, and what they rest on.

    A brief one leaves notes and sizes to the page of the claim, inside a group the statement, too.
    """
    claim, found = row.claim, row.judgement
    printed = (
        f"{digits(claim.number.value)} {text_html(claim.number.unit)}" if claim.number else "–"
    )
    measured = claims.number(found)
    if found.unit and found.measured is not None:
        measured += f" {text_html(found.unit)}"
    if page := row.evidence and address(row.evidence.page):
        anchored = f"{page}#{html.escape(found.figure)}" if found.figure else page
        measured = f'<a href="{anchored}">{measured}</a>'
    scale = _scale(found) if found.scale else ""
    shown = found._replace(scale=scale, control=[], recorded="") if brief else found
    small = ["; ".join(filter(None, (claims.details(shown), row.where)))]
    small += [found.note] if found.note and not brief else []
    headline = ' class="rb-headline"' if claim.headline else ""
    statement = text_html(claim.statement) if alone or not brief else ""
    return (
        f'<tr id="{html.escape(anchor)}"{headline}{_data([row]) if alone else ""}>'
        f"<td>{statement}{_own_page(row, address)}</td>"
        f"<td>{printed}</td><td>{measured}{''.join(map(_small, small))}</td>"
        f"<td>{badge_html(found.verdict)}</td></tr>"
    )


def _small(text: str) -> str:
    return f"<small>{text_html(text)}</small>" if text else ""


def _group_html(
    rows: list[Row], anchors: list[str], address: Callable[[str], str], brief: bool
) -> str:
    """Return the cells of one printed table as one row that opens into them."""
    inner = "\n".join(
        _row_html(row, anchor, address, brief, alone=False)
        for row, anchor in zip(rows, anchors, strict=True)
    )
    headline = ' class="rb-headline"' if any(row.claim.headline for row in rows) else ""
    summary = f"{text_html(rows[0].claim.group)}: {_cells(rows)}"
    return (
        f'<tr{headline}{_data(rows)}><td colspan="3"><details><summary>{summary}</summary>'
        f'<table class="rb-claims"><tbody>\n{inner}\n</tbody></table></details></td>'
        f"<td>{badge_html(claims.joined(row.verdict for row in rows))}"
        f"<small>{rows[0].kind}, {len(rows)} cells</small></td></tr>"
    )


def _cells(rows: list[Row]) -> str:
    """Return in words how many cells of a group have each verdict."""
    found = [row.verdict for row in rows]
    return ", ".join(f"{found.count(v)} {v}" for v in claims.VERDICTS if v in found)


def table_html(rows: list[Row], address: Callable[[str], str], part: str = "") -> str:
    """Return rows as the body of a table, a group as one row; `address` links to a page.

    The scoreboard has a part for each chapter, which says its name and is brief.
    """
    seen: set[str] = set()
    chapter = f' data-chapter="{html.escape(rows[0].claim.chapter)}"' if part else ""
    lines = [f"<tbody{chapter}>"]
    if part:
        lines.append(f'<tr class="rb-part"><th scope="rowgroup" colspan="4">{part}</th></tr>')
    for together in findings(rows):
        anchors = []
        for row in together:
            second = f"-{row.question}" if row.claim.id in seen else ""
            seen.add(row.claim.id)
            anchors.append(f"claim-{row.claim.id}{second}")
        if len(together) > 1:
            lines.append(_group_html(together, anchors, address, bool(part)))
        else:
            lines.append(_row_html(together[0], anchors[0], address, bool(part)))
    return "\n".join([*lines, "</tbody>"])


def _table(bodies: list[str], id: str = "") -> str:
    """Return a table of claims; a script filters one with a name."""
    head = "".join(f'<th scope="col">{title}</th>' for title in TITLES)
    name = f' id="{id}"' if id else ""
    return (
        f'<div class="rb-claims-scroll">\n<table class="rb-claims"{name}>'
        f"<thead><tr>{head}</tr></thead>\n" + "\n".join(bodies) + "\n</table>\n</div>\n"
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
    return _table([table_html(mine, _addresses(pages, depth))])


def page(rows: Board, pages: Pages, profile: str = "book", past: History | None = None) -> str:
    """Return the generated part of scoreboard.md: counts, then every claim, then what changed."""
    address, total = _addresses(pages, 0), every(rows)
    whole = Group("<b>Whole book</b>", total)
    chapters = [
        Group(_link(pages, name), each, {"chapter": name}) for name, each in rows.items() if each
    ]
    bodies = [table_html(_headlines_first(group.rows), address, group.title) for group in chapters]
    text = [
        _warning(profile),
        _counts_table("Nature", [*_by_nature(total), whole]),
        _counts_table("Chapter", [*chapters, whole]),
        "Intervals are written $[\\text{low}, \\text{high}]$. Take all rows with you as "
        f'<a href="{DOWNLOADS}/claims.csv" download>CSV</a> or '
        f'<a href="{DOWNLOADS}/claims.json" download>JSON</a>.\n',
        "## Every claim\n",
        _filters(pages, total),
        _table(bodies, "rb-board"),
        "## Verdicts that changed\n",
        _changes(rows, past or {}),
    ]
    return "\n".join(text)


def _headlines_first(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: not row.claim.headline)


def _filters(pages: Pages, rows: list[Row]) -> str:
    """Return the form that chooses rows; without scripts it stays hidden and all rows are shown."""
    chosen = "".join(
        f'<label>{label}<select name="{key}"><option value="">all</option>'
        + "".join(
            f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
            for value, text in _options(pages, rows, key).items()
        )
        + "</select></label>"
        for key, label in FILTERS.items()
    )
    return (
        '<form id="rb-filter" class="rb-filter" hidden>\n'
        '<label>Show<select name="show"><option value="">headline claims</option>'
        f'<option value="all">all claims</option></select></label>{chosen}'
        '<label>Find<input type="search" name="find" placeholder="words or an id"></label>'
        '<span><output></output> <button type="reset">Reset</button></span>\n</form>\n'
    )


def _options(pages: Pages, rows: list[Row], key: str) -> dict[str, str]:
    """Return what a reader can choose from, with the words that are shown."""
    found = dict.fromkeys(word for row in rows for word in _choices(row)[key].split(SEPARATOR))
    values = [each for each in claims.VERDICTS if each in found] if key == "verdict" else found
    none = {"data": "no data set", "scale": "prints no sizes"}.get(key, "")
    return {
        value: _title(pages, value) if key == "chapter" else none if value == "none" else value
        for value in values
        if value
    }


def _choices(row: Row) -> dict[str, str]:
    """Return by what a row can be chosen."""
    return {
        "chapter": row.claim.chapter,
        "nature": row.claim.nature,
        "question": row.question,
        "verdict": row.verdict,
        "scale": _scale(row.judgement),
        "data": SEPARATOR.join(row.claim.needs) or "none",
    }


def _changes(rows: Board, past: History) -> str:
    """Return in words which recorded verdicts are not what an earlier record said."""
    known = {(row.claim.id, row.question) for row in every(rows)}
    lines = [
        f'<li><a href="claims/{html.escape(id)}.html"><code>{html.escape(id)}</code></a> '
        f"{question}: "
        + " → ".join(f"{badge_html(each.verdict)} {each.date[:10]}" for each in every)
        + "</li>"
        for (id, question), every in changed(past).items()
        if (id, question) in known
    ]
    if not lines:
        return (
            f"{len(past)} questions have recorded verdicts. Where one was recorded again, its "
            "verdict is what it was.\n"
        )
    return (
        f"Of {len(past)} questions with recorded verdicts, {len(lines)} were decided otherwise by "
        "an earlier record:\n\n<ul>\n" + "\n".join(lines) + "\n</ul>\n"
    )
