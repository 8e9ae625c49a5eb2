"""A page for every claim: what was claimed, what was measured, by which rule, and why the verdict.

These pages are plain HTML beside those that Sphinx renders: a sceptic opens many of them, so each
has a few kilobytes and needs nothing but a style and a font for its formulas.
"""

import html
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ci import reason
from ci.cite import claim_bibtex, scholar
from ci.contents import Pages, of_chapter
from ci.history import History
from ci.scoreboard import Board, Evidence, Row
from lib import claims
from lib.claims import OUTCOMES, Claim, badge_html, digits, text_html
from lib.paths import CODE, Project

STYLES = (CODE / "book" / "_static" / "verdicts.css", Path(__file__).with_name("claim.css"))
ASSETS = (*STYLES, Path(__file__).with_name("claim.js"))
FAR = 4  # widths of what is drawn beyond which a control is only named
NAMES = "names.js"  # what the search of the book knows of the claims
# not in the style sheet, which reports of runs carry with them while the font stays in the book
FONT = (
    '<style>@font-face { font-family: "STIX Two Math"; '
    'src: url("../_static/fonts/stix-two-math.woff2") format("woff2"); }</style>'
)
NO_COMMIT = "0" * 40  # what git says of a line that is not committed
TITLES = {"": "Verdict", "reconstruction": "Reconstruction", "advantage": "Advantage"}
ASKS = {
    "reconstruction": "Does the printed result come out when it is rebuilt in good faith?",
    "advantage": "Does the gain survive when all methods are tuned alike?",
}


class Shown(NamedTuple):
    """What the runs of a page show: figures, and the addresses of tables below the book's top."""

    figures: dict[str, str] = {}  # noqa: RUF012  # name: markup
    tables: dict[str, str] = {}  # noqa: RUF012  # name: address


class Book(NamedTuple):
    """Everything that the pages of claims are made from."""

    project: Project
    rows: Board
    pages: Pages
    profile: str
    history: History
    shown: dict[str, Shown]  # by the name of a page

    def file(self, name: str) -> str:
        """Return the file of a page, which evidence names with or without its index."""
        known = {n: p.file for p in self.pages.values() for n in (p.name, p.place)}
        return known.get(name, "")

    def of(self, evidence: Evidence | None) -> Shown:
        """Return what the page of some evidence shows."""
        file = self.file(evidence.page) if evidence else ""
        name = next((page.name for page in self.pages.values() if page.file == file), "")
        return self.shown.get(name, Shown())


def files(book: Book) -> dict[str, bytes]:
    """Return everything below `claims/`: pages, figures, style, script, and a list for searches."""
    pages = {name: text.encode() for name, text in written(book).items()}
    figures = {
        f"figures/{name}.svg": standalone(markup).encode()
        for each in book.shown.values()
        for name, markup in each.figures.items()
        if "<svg" in markup
    }
    assets = {path.name: path.read_bytes() for path in ASSETS}
    return pages | figures | assets | {NAMES: names(book.rows).encode()}


def names(rows: Board) -> str:
    """Return a script that lists all claims; a page opened as a file cannot read JSON."""
    listed = {}
    for row in (row for each in rows.values() for row in each):
        entry = listed.setdefault(row.claim.id, [text_html(row.claim.statement), []])
        entry[1].append(row.verdict)
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return f"window.regretbookClaims = {text.replace('<', chr(92) + 'u003c')};\n"


def standalone(markup: str) -> str:
    """Return the picture of a figure as a file that follows the reader's mode by itself."""
    svg = markup[markup.index("<svg") : markup.rindex("</svg>") + len("</svg>")]
    style = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
    return re.sub(r"^(<svg[^>]*>)", lambda found: found[1] + style, svg, count=1)


def written(book: Book) -> dict[str, str]:
    """Return the page of every claim by the name of its file."""
    known: dict[str, tuple[Claim, list[Row], Callable[[str], str]]] = {}
    for chapter, each in book.rows.items():
        by = written_by(book.project, chapter)
        for row in each:
            known.setdefault(row.claim.id, (row.claim, [], by))[1].append(row)
    return {
        f"{id}.html": page(book, claim, mine, by(id)) for id, (claim, mine, by) in known.items()
    }


def written_by(project: Project, chapter: str) -> Callable[[str], str]:
    """Return which commit last changed the entry of a claim, as far as git knows."""
    path = project.claims / f"{chapter}.yml"
    command = ["git", "--no-optional-locks", "-C", str(project.root), "blame", "--line-porcelain"]
    try:
        done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return lambda id: ""
    newest: dict[str, tuple[bool, int, str]] = {}
    current = commit = ""
    when = 0
    for line in done.stdout.splitlines():
        if line.startswith("\t"):  # the line of the file, after what is known of it
            entry = re.match(r"\t- id: *(\S+)", line)
            current = entry[1] if entry else current
            mine = (commit == NO_COMMIT, when, commit)
            newest[current] = max(newest.get(current, mine), mine)
        elif found := re.match(r"([0-9a-f]{40}) \d+ \d+", line):
            commit = found[1]
        elif line.startswith("committer-time "):
            when = int(line.split()[1])
    return lambda id: newest[id][2].replace(NO_COMMIT, "")[:12] if id in newest else ""


def page(book: Book, claim: Claim, rows: list[Row], commit: str) -> str:
    """Return the page of one claim."""
    chapter = next(iter(of_chapter(book.pages, claim.chapter)), None)
    home = f'<a href="../{chapter.file}.html">{html.escape(chapter.title)}</a>' if chapter else ""
    name = html.escape(claim.id)
    changed = f", last changed by commit <code>{commit}</code>" if commit else ""
    figures = [row.judgement.figure for row in rows]
    sections = [
        _question(book, row, shown=figures.index(row.judgement.figure) == place)
        for place, row in enumerate(rows)
    ]
    body = "\n".join(
        [
            f'<p class="where"><a href="../index.html">The Regret Book</a> › {home} › '
            f'<a href="../scoreboard.html#claim-{name}">scoreboard</a></p>',
            f"<h1>{text_html(claim.statement)}</h1>",
            f'<p class="meta"><code>{name}</code> · {claim.nature} · {text_html(claim.source)}'
            f"{_printed(claim)}</p>",
            _warning(book.profile),
            *sections,
            _history(book, rows),
            _rerun(rows, book.profile),
            _cited(book.project, rows),
            f"<p><small>Rules stand in <code>book/claims/{html.escape(claim.chapter)}.yml</code>"
            f"{changed}.</small></p>",
        ]
    )
    tags = scholar(book.project, f"{claim.statement} ({claim.id})", f"claims/{claim.id}.html")
    metas = "".join(
        f'<meta name="{key}" content="{html.escape(text)}">' for key, text in tags.items()
    )
    styles = "".join(f'<link rel="stylesheet" href="{path.name}">' for path in STYLES)
    title = html.escape(f"{claim.id}: a claim in the Regret Book")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title>{metas}{FONT}{styles}"
        f'<link rel="icon" href="../_static/favicon.svg"><script defer src="claim.js"></script>'
        f"</head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _warning(profile: str) -> str:
    if profile == "book":
        return ""
    return f"<p><strong>Live verdicts here are of the profile {html.escape(profile)}.</strong></p>"


def _printed(claim: Claim) -> str:
    number = f"{digits(claim.number.value)} {text_html(claim.number.unit)}" if claim.number else ""
    sizes = ", ".join(f"{name} {_size(size)}" for name, size in claim.printed.items())
    missing = f"not printed: {', '.join(claim.missing)}" if claim.missing else ""
    text = "; ".join(filter(None, (number and f"printed {number}", sizes, missing)))
    return f"<br>{text}" if text else ""


def _size(size) -> str:
    return ", ".join(map(digits, size)) if isinstance(size, list) else digits(size)


def _question(book: Book, row: Row, shown: bool) -> str:
    """Return what is known of one question: verdict, reason, numbers, rule, tables, and figure.

    Two questions often have one figure, which is shown once.
    """
    claim, found = row.claim, row.judgement
    rule = claim.questions[row.question]
    asked = f"<p>{ASKS[row.question]}</p>" if row.question in ASKS else ""
    sentence = reason.sentence(row)
    sentence = f"{sentence[:1].upper()}{sentence[1:]}." if sentence else "Nothing was measured."
    facts = {
        "Measured" if found.measured is not None else "To be measured": text_html(rule.measure)
        + (
            f": <b>{claims.number(found)}</b> {text_html(found.unit)}"
            if found.measured is not None
            else ""
        ),
        "Run": ", ".join(filter(None, (_where(book, row), text_html(claims.details(found))))),
        "Control": text_html(rule.control) if rule.control else "",
        "Note": text_html(found.note),
        "Rule": _rule(row),
        "Changed": text_html(rule.changed),
        "Tables": _tables(book, row),
    }
    lines = "".join(f"<dt>{key}</dt><dd>{text}</dd>" for key, text in facts.items() if text)
    return (
        f'<section><h2 id="{row.question or "verdict"}">{TITLES[row.question]} '
        f"{badge_html(found.verdict)}</h2>\n{asked}"
        f'<p class="why">{html.escape(sentence)}</p>\n'
        f"{plot(row)}<dl>{lines}</dl>{_figure(book, row) if shown else ''}</section>"
    )


def _where(book: Book, row: Row) -> str:
    """Return which run it was, linked to its page, at the figure where there is one."""
    file = book.file(row.evidence.page) if row.evidence else ""
    anchor = f"#{html.escape(row.judgement.figure)}" if row.judgement.figure else ""
    return f'<a href="../{file}.html{anchor}">{row.where}</a>' if file else row.where


def _figure(book: Book, row: Row) -> str:
    name = row.judgement.figure or ""
    markup = book.of(row.evidence).figures.get(name, "")
    if "<svg" not in markup:
        return ""
    alt, shown = re.search(r'aria-label="([^"]*)"', markup), html.escape(name)
    address = f"../{book.file(row.evidence.page)}.html#{shown}"
    return (
        f'<figure class="shown"><a href="{address}"><img loading="lazy" src="figures/{shown}.svg" '
        f'alt="{alt[1] if alt else shown}"></a>'
        f'<figcaption><a href="{address}">{shown}</a> on its page</figcaption></figure>'
    )


def _tables(book: Book, row: Row) -> str:
    links = (
        f'<a href="../{address}" download>{html.escape(name)}.csv</a>'
        for name, address in book.of(row.evidence).tables.items()
    )
    return ", ".join(links)


def _rule(row: Row) -> str:
    """Return each condition in words and as code, with what it says over the interval."""
    found = row.judgement
    given = {**found.facts, **({"printed": row.claim.number.value} if row.claim.number else {})}
    conditions = row.claim.questions[row.question].conditions()
    lines = []
    for key, text in conditions.items():
        code = f" <code>{html.escape(text)}</code>" if reason.words(text) != text else ""
        held = "" if found.measured is None else f": {_held(text, row, given)}"
        lines.append(f"<li>{OUTCOMES[key]} if {html.escape(reason.words(text))}{code}{held}</li>")
    used = set().union(*map(claims.names, conditions.values()))
    values = ", ".join(f"{name} = {digits(given[name])}" for name in sorted(used & set(given)))
    also = f" Here {html.escape(values)}." if values and found.measured is not None else ""
    return (
        f"The first that holds all over the interval decides.{also}<ul>{''.join(lines)}"
        "<li>otherwise not reproduced, or undecided where the interval allows two answers</li></ul>"
    )


def _held(text: str, row: Row, given: dict) -> str:
    found = row.judgement
    rule = claims.Rule("", reproduced=text)
    claim = Claim("", "", "theorem", "", "", {"": rule})
    points = (found.low, found.measured, found.high)
    held = [claims.at_point(claim, "", point, given) == "reproduced" for point in points]
    return "holds" if all(held) else "holds in a part of the interval" if any(held) else "fails"


def _history(book: Book, rows: list[Row]) -> str:
    """Return what else was found: at another scale, or by an earlier record."""
    lines = []
    for row in rows:
        title = TITLES[row.question]
        for other in row.others:
            found = other.judgement
            if found.measured is not None:
                what = f"{other.source}, profile {html.escape(other.profile)}"
                lines.append((title, what, claims.number(found), found.verdict))
        for past in book.history.get((row.claim.id, row.question), [])[:-1]:
            what = f"recorded {html.escape(past.date[:10])}, profile {html.escape(past.profile)}"
            lines.append((title, what, digits(past.measured), past.verdict))
    if not lines:
        return ""
    body = "".join(
        f"<tr><td>{title}</td><td>{what}</td><td>{number}</td><td>{badge_html(verdict)}</td></tr>"
        for title, what, number, verdict in lines
    )
    head = "".join(f'<th scope="col">{t}</th>' for t in ("Question", "Run", "Measured", "Verdict"))
    return (
        '<section><h2 id="history">Other runs of this claim</h2><div class="wide"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>"
    )


def plot(row: Row) -> str:
    """Return the interval beside the printed number and the control, as one small picture."""
    claim, found = row.claim, row.judgement
    if found.measured is None:
        return ""
    printed = claim.number.value if claim.number else None
    control = found.control[0] if found.control else None
    marks = [v for v in (found.low, found.high, printed) if v is not None]
    low, high = min(marks), max(marks)
    width = high - low or abs(high) or 1.0
    # A control that is far away would leave no room for the interval.
    near = control is not None and low - FAR * width <= control <= high + FAR * width
    if near:
        low, high = min(low, control), max(high, control)
        width = high - low or width
    low, width = low - 0.08 * width, 1.16 * width

    def x(value: float) -> str:
        return f"{10 + 300 * (value - low) / width:.1f}"

    parts = [
        f'<line class="interval" x1="{x(found.low)}" x2="{x(found.high)}" y1="20" y2="20"/>',
        f'<circle cx="{x(found.measured)}" cy="20" r="4"/>',
    ]
    for name, value in (("printed", printed), ("control", control if near else None)):
        if value is not None:
            parts.append(f'<line class="{name}" x1="{x(value)}" x2="{x(value)}" y1="8" y2="32"/>')
    said = f"measured {claims.number(found)}"
    said += f", printed {digits(printed)}" if printed is not None else ""
    said += f", control {digits(control)}" if control is not None else ""
    key = [f"● measured {digits(found.measured)}"]
    key += [f"┃ printed {digits(printed)}"] if printed is not None else []
    if control is not None:
        key.append(
            f"┆ control {digits(control)}" if near else f"control {digits(control)}, far off"
        )
    return (
        f'<figure><svg viewBox="0 0 320 40" role="img" aria-label="{html.escape(said)}">'
        f"{''.join(parts)}</svg><figcaption>{' &nbsp; '.join(key)}</figcaption></figure>"
    )


def _rerun(rows: list[Row], profile: str) -> str:
    lines = dict.fromkeys(_command(row, profile) for row in rows)
    return (
        f'<section><h2 id="rerun">Rerun</h2><pre>{html.escape(chr(10).join(lines))}</pre></section>'
    )


def _command(row: Row, profile: str) -> str:
    """Return the one line that computes what the verdict rests on."""
    if not row.evidence:
        return f"regretbook run {row.claim.chapter}"
    chosen = row.evidence.profile if row.evidence.source == "recorded" else profile
    option = f" --profile {chosen}" if chosen != "book" else ""
    return f"regretbook run {row.evidence.page.removesuffix('/index')}{option}"


def _cited(project: Project, rows: list[Row]) -> str:
    entries = "\n\n".join(claim_bibtex(project, row) for row in rows)
    return (
        f'<section><h2 id="cite">Cite</h2><p><code>regretbook cite {html.escape(rows[0].claim.id)}'
        f'</code> prints the same.</p><pre class="bibtex">{html.escape(entries)}</pre></section>'
    )
