"""The scoreboard: each question of each claim with its verdict, as tables and on the terminal."""

import csv
import io
import json
from collections.abc import Iterable
from typing import NamedTuple

from lib import claims
from lib.claims import Claim, digits
from lib.journal import Judgement

DOWNLOADS = "_static/downloads"
PROFILES = ("smoke", "book", "thesis")  # from the smallest to the largest


class Evidence(NamedTuple):
    """A judgement, the page that made it, and whether a live or a recorded run did."""

    judgement: Judgement
    page: str
    source: str  # "live" or "recorded"
    commit: str
    profile: str = "book"
    digest: str = ""  # of the tables of that run: whoever computes them again gets the same


class Row(NamedTuple):
    """A question of a claim with the evidence that counts; none of it when nothing judged it."""

    claim: Claim
    question: str
    evidence: Evidence | None = None
    others: tuple[Evidence, ...] = ()  # what else was found, at a smaller scale

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
    found: dict[tuple[str, str], list[Evidence]] = {}
    for each in evidence:
        found.setdefault((each.judgement.id, each.judgement.question), []).append(each)
    rows: Board = {}
    for claim in ledger.values():
        for question in claim.questions:
            known = sorted(found.get((claim.id, question), []), key=_weight, reverse=True)
            row = Row(claim, question, *known[:1], others=tuple(known[1:]))
            rows.setdefault(claim.chapter, []).append(row)
    return rows


def _weight(evidence: Evidence) -> tuple:
    """Order evidence: what was judged, at the larger scale, and live where scales are equal.

    Theorems print no sizes; there the profile says which run was larger.
    """
    judgement = evidence.judgement
    return (
        judgement.measured is not None,
        judgement.share or 0.0,
        PROFILES.index(evidence.profile) if evidence.profile in PROFILES else 0,
        evidence.source == "live",
    )


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


def every(rows: Board) -> list[Row]:
    """Return the rows of all chapters."""
    return [row for each in rows.values() for row in each]


def _summary(rows: list[Row]) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in counts(rows).items() if n) or "no claims"


def as_text(rows: Board, chapter: str | None, form: str) -> str:
    """Return the scoreboard for the terminal or, in the form `json`, for a program."""
    if chapter is not None:
        rows = {chapter: rows.get(chapter, [])}
    if form == "json":
        return json.dumps([_plain(row) for row in every(rows)], indent=1)
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


def downloads(rows: Board) -> dict[str, bytes]:
    """Return all rows as files that people take away."""
    plain = [{"group": "", **_plain(row)} for row in every(rows)]
    text = io.StringIO()
    if plain:
        table = csv.DictWriter(text, list(plain[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(plain)
    return {
        f"{DOWNLOADS}/claims.csv": text.getvalue().encode(),
        f"{DOWNLOADS}/claims.json": (as_text(rows, None, "json") + "\n").encode(),
    }


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
