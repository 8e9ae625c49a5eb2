"""A page for every claim: what was claimed, what was measured, by which rule, and why the verdict.

These pages are plain HTML beside those that Sphinx renders: a sceptic opens many of them, so each
has a few kilobytes, and only one with formulas loads the script that typesets them.
"""

import html
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from ci.cite import claim_bibtex
from ci.contents import Pages, of_chapter
from ci.scoreboard import Board, Row
from lib import claims
from lib.claims import OUTCOMES, Claim, badge_html, digits, text_html
from lib.paths import Project

STYLE = Path(__file__).with_name("claim.css")  # in `_static` the theme would load it everywhere
NO_COMMIT = "0" * 40  # what git says of a line that is not committed
MATHJAX = "../_static/mathjax/tex-chtml.js"
TITLES = {"": "Verdict", "reconstruction": "Reconstruction", "advantage": "Advantage"}
ASKS = {
    "reconstruction": "Does the printed result come out when it is rebuilt in good faith?",
    "advantage": "Does the gain survive when all methods are tuned alike?",
}


def pages(project: Project, rows: Board, found: Pages, profile: str) -> dict[str, str]:
    """Return the page of every claim by the name of its file."""
    known = {}
    for chapter, each in rows.items():
        written = written_by(project, chapter)
        for row in each:
            known.setdefault(row.claim.id, (row.claim, [], written))[1].append(row)
    return {
        f"{id}.html": page(project, claim, mine, found, written(id), profile)
        for id, (claim, mine, written) in known.items()
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


def page(
    project: Project, claim: Claim, rows: list[Row], found: Pages, commit: str, profile: str
) -> str:
    """Return the page of one claim."""
    chapter = next(iter(of_chapter(found, claim.chapter)), None)
    files = {name: each.file for each in found.values() for name in (each.name, each.place)}
    home = f'<a href="../{chapter.file}.html">{html.escape(chapter.title)}</a>' if chapter else ""
    sections = [_question(row, files) for row in rows]
    maths = "$" in claim.statement or any("$" in s or r"\(" in s for s in sections)
    body = "\n".join(
        [
            f'<p class="where"><a href="../index.html">The Regret Book</a> › {home} › '
            f'<a href="../scoreboard.html#claim-{html.escape(claim.id)}">scoreboard</a></p>',
            f"<h1>{text_html(claim.statement)}</h1>",
            f"<p><code>{html.escape(claim.id)}</code> · {claim.nature} · {text_html(claim.source)}"
            f"{_printed(claim)}</p>",
            _warning(profile),
            *sections,
            _rerun(rows, files),
            _cited(project, rows),
            f"<p><small>Rules stand in <code>book/claims/{html.escape(claim.chapter)}.yml</code>"
            f"{f', last changed by commit <code>{commit}</code>' if commit else ''}.</small></p>",
        ]
    )
    script = f'<script async src="{MATHJAX}"></script>' if maths else ""
    title = html.escape(f"{claim.id}: a claim in the Regret Book")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title}</title><link rel="stylesheet" href="claim.css">{script}'
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


def _question(row: Row, files: dict[str, str]) -> str:
    """Return what is known of one question: verdict, numbers, rule, and why."""
    claim, found = row.claim, row.judgement
    rule = claim.questions[row.question]
    asked = f"<p>{ASKS[row.question]}</p>" if row.question in ASKS else ""
    where = row.where
    if row.evidence and (file := files.get(row.evidence.page)):
        anchor = f"#{html.escape(found.figure)}" if found.figure else ""
        where = f'<a href="../{file}.html{anchor}">{where}</a>'
    facts = {
        "Measured": f"{text_html(rule.measure)}: <b>{claims.number(found)}</b> "
        f"{text_html(found.unit)}",
        "Run": ", ".join(filter(None, (where, text_html(claims.details(found))))),
        "Control": text_html(rule.control) if rule.control else "",
        "Note": text_html(found.note),
        "Why": why(row),
        "Changed": text_html(rule.changed),
    }
    lines = "".join(f"<dt>{key}</dt><dd>{text}</dd>" for key, text in facts.items() if text)
    return (
        f'<section><h2 id="{row.question or "verdict"}">{TITLES[row.question]} '
        f"{badge_html(found.verdict)}</h2>\n{asked}{plot(row)}<dl>{lines}</dl></section>"
    )


def why(row: Row) -> str:
    """Return each condition of the rule with what it says at the ends of the interval."""
    claim, found = row.claim, row.judgement
    if found.measured is None:
        conditions = claim.questions[row.question].conditions().items()
        rule = (f"<li>{OUTCOMES[key]}: <code>{html.escape(t)}</code></li>" for key, t in conditions)
        return f"Nothing was measured. The rule is:<ul>{''.join(rule)}</ul>"
    given = {**found.facts, **({"printed": claim.number.value} if claim.number else {})}
    used = set().union(*map(claims.names, claim.questions[row.question].conditions().values()))
    values = ", ".join(f"{name} = {digits(given[name])}" for name in sorted(used & set(given)))
    points = dict.fromkeys((found.low, found.measured, found.high))
    lines = []
    for key, text in claim.questions[row.question].conditions().items():
        held = [_holds(text, point, given) for point in points]
        words = (
            "holds" if all(held) else "holds in a part of the interval" if any(held) else "fails"
        )
        lines.append(f"<li>{OUTCOMES[key]}: <code>{html.escape(text)}</code> {words}</li>")
    also = f" with {html.escape(values)}" if values else ""
    return f"Asked over [{digits(found.low)}, {digits(found.high)}]{also}:<ul>{''.join(lines)}</ul>"


def _holds(text: str, measured: float, given: dict) -> bool:
    rule = claims.Rule("", reproduced=text)
    claim = Claim("", "", "theorem", "", "", {"": rule})
    return claims.at_point(claim, "", measured, given) == "reproduced"


def plot(row: Row) -> str:
    """Return the interval beside the printed number and the control, as one small picture."""
    claim, found = row.claim, row.judgement
    if found.measured is None:
        return ""
    printed = claim.number.value if claim.number else None
    control = found.control[0] if found.control else None
    marks = [v for v in (found.low, found.high, printed, control) if v is not None]
    low, high = min(marks), max(marks)
    width = high - low or abs(high) or 1.0
    low, width = low - 0.08 * width, 1.16 * width

    def x(value: float) -> str:
        return f"{10 + 300 * (value - low) / width:.1f}"

    parts = [
        f'<line class="interval" x1="{x(found.low)}" x2="{x(found.high)}" y1="20" y2="20"/>',
        f'<circle cx="{x(found.measured)}" cy="20" r="4"/>',
    ]
    for name, value in (("printed", printed), ("control", control)):
        if value is not None:
            parts.append(f'<line class="{name}" x1="{x(value)}" x2="{x(value)}" y1="8" y2="32"/>')
    said = f"measured {claims.number(found)}"
    said += f", printed {digits(printed)}" if printed is not None else ""
    said += f", control {digits(control)}" if control is not None else ""
    key = [f"● measured {digits(found.measured)}"]
    key += [f"┃ printed {digits(printed)}"] if printed is not None else []
    key += [f"┆ control {digits(control)}"] if control is not None else []
    return (
        f'<figure><svg viewBox="0 0 320 40" role="img" aria-label="{html.escape(said)}">'
        f"{''.join(parts)}</svg><figcaption>{' &nbsp; '.join(key)}</figcaption></figure>"
    )


def _rerun(rows: list[Row], files: dict[str, str]) -> str:
    names = dict.fromkeys(
        row.evidence.page.removesuffix("/index") if row.evidence else row.claim.chapter
        for row in rows
    )
    lines = "\n".join(f"regretbook run {html.escape(name)}" for name in names)
    return f"<section><h2 id=rerun>Rerun</h2><pre>{lines}</pre></section>"


def _cited(project: Project, rows: list[Row]) -> str:
    entries = "\n\n".join(claim_bibtex(project, row) for row in rows)
    return f"<details><summary>Cite</summary><pre>{html.escape(entries)}</pre></details>"
