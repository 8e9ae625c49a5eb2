"""The ledger of claims and their verdicts, which rules written before a run give, never a hand."""

import ast
import html
import math
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from scipy import stats

from lib import journal, paths
from lib.errors import BookError, nearest

CLASSES = {
    "reproduced": "rb-reproduced",
    "direction only": "rb-direction-only",
    "not reproduced": "rb-not-reproduced",
    "refuted": "rb-refuted",
    "vacuous at this scale": "rb-vacuous",
    "not run": "rb-not-run",
}
VERDICTS = tuple(CLASSES)
KINDS = ("bound", "ordering", "number", "cost", "impossibility")
CHAPTERS = (
    "linear-bandits",
    "clustering-of-bandits",
    "misspecified-users",
    "corrupted-users",
    "conversational",
    "nonstationary",
    "dueling",
    "model-based",
    "zero-shot",
)
# The first expression that holds decides, in this order; when none does, it is "not reproduced".
OUTCOMES = {
    "vacuous": "vacuous at this scale",
    "reproduced": "reproduced",
    "direction": "direction only",
    "refuted": "refuted",
}
# MathJax typesets an output only inside these classes.
MATHS = "tex2jax_process mathjax_process"
FUNCTIONS = {"abs": abs, "min": min, "max": max}
ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow,
    ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
    ast.Call, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


class Printed(NamedTuple):
    """The number that the thesis prints."""

    value: float
    unit: str


class Rule(NamedTuple):
    """How a measurement becomes a verdict: what is measured, and an expression for each outcome."""

    measure: str
    unit: str = ""
    vacuous: str | None = None
    reproduced: str | None = None
    direction: str | None = None
    refuted: str | None = None

    def expressions(self) -> dict[str, str]:
        """Return the expressions that were written, in the order in which they are tried."""
        return {key: text for key in OUTCOMES if (text := getattr(self, key)) is not None}


class Claim(NamedTuple):
    """One entry of the ledger; `check` says how the claim is to be checked."""

    id: str
    chapter: str
    kind: str
    statement: str
    source: str
    check: str = ""
    headline: bool = False
    print: Printed | None = None
    needs: tuple[str, ...] = ()
    rule: Rule | None = None


class Verdict(NamedTuple):
    """A claim with what this run says of it; `measured` is None when the claim was not run."""

    claim: Claim
    verdict: str
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    figure: str | None = None
    note: str = ""

    @property
    def unit(self) -> str:
        """Return the unit of the printed number, which is also that of the measured one."""
        if self.claim.print:
            return self.claim.print.unit
        return self.claim.rule.unit if self.claim.rule else ""

    def __repr__(self) -> str:
        number = "" if self.measured is None else f" ({self.number()})"
        return f"{self.claim.id}: {self.verdict}{number}"

    def number(self) -> str:
        """Return the measurement as text, with its interval when it has one."""
        if self.measured is None:
            return "–"
        if self.low == self.high:
            return digits(self.measured)
        return f"{digits(self.measured)} [{digits(self.low)}, {digits(self.high)}]"

    def _repr_html_(self) -> str:
        return (
            f'<div class="rb-check {MATHS}"><code>{html.escape(self.claim.id)}</code> '
            f"{badge_html(self.verdict)} {self.number()} {text_html(self.unit)}<br>"
            f"{text_html(self.claim.statement)}</div>"
        )

    def _repr_markdown_(self) -> str:
        return f"`{self.claim.id}` **{self.verdict}** {self.number()}: {self.claim.statement}"


class Table(NamedTuple):
    """The rows of one chapter, shown as a table."""

    rows: list[Verdict]

    def _repr_html_(self) -> str:
        titles = ("Claim", "Printed", "Measured", "Verdict")
        head = "".join(f'<th scope="col">{title}</th>' for title in titles)
        body = "\n".join(map(row_html, self.rows))
        return (
            f'<div class="rb-claims-scroll {MATHS}">\n<table class="rb-claims">'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n</div>"
        )

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.rows))


class Interval(NamedTuple):
    """A mean over trials and its confidence interval, in the order that `check` takes them."""

    mean: float
    low: float
    high: float


def parse(text: str) -> ast.Expression:
    """Return the tree of a rule, made of comparisons, logic, arithmetic, abs, min and max alone."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, TypeError, ValueError):
        raise BookError(f"{text!r} is not an expression") from None
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call)
        if (
            not isinstance(node, ALLOWED)
            or (called and (getattr(node.func, "id", None) not in FUNCTIONS or node.keywords))
            or (isinstance(node, ast.Constant) and type(node.value) not in (int, float, bool))
            or (isinstance(node, ast.Name) and node.id.startswith("_"))
        ):
            raise BookError(
                f"{text!r} uses {ast.unparse(node)!r}, but only comparisons, and/or/not, "
                "arithmetic, numbers, names, abs, min and max are allowed"
            )
    root = tree.body
    negated = isinstance(root, ast.UnaryOp) and isinstance(root.op, ast.Not)
    fact = isinstance(root, ast.Name) and root.id not in ("measured", "low", "high", "printed")
    if not (isinstance(root, ast.Compare | ast.BoolOp) or negated or fact):
        raise BookError(f"{text!r} is a number, not a condition that is true or false")
    return tree


def names(text: str) -> set[str]:
    """Return the names that an expression needs a value for."""
    found = {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return found - set(FUNCTIONS)


def decide(claim: Claim, measured: float, low: float, high: float, facts: dict) -> str:
    """Return the verdict of the claim's rule: a pure function of the measurement and the facts."""
    if claim.rule is None:
        raise BookError(f"claim {claim.id} has no rule: write it in book/claims.yml before a run")
    values = {**facts, "measured": measured, "low": low, "high": high}
    if claim.print:
        values["printed"] = claim.print.value
    for key, text in claim.rule.expressions().items():
        if missing := sorted(names(text) - set(values)):
            raise BookError(
                f"claim {claim.id}: its rule {key} needs {', '.join(missing)}, "
                "which the check was not given"
            )
    for key, text in claim.rule.expressions().items():
        code = compile(parse(text), f"<{claim.id}: {key}>", "eval")
        try:
            holds = eval(code, {"__builtins__": {}, **FUNCTIONS}, values)
        except ArithmeticError as error:
            raise BookError(f"claim {claim.id}: its rule {key} fails with {error}") from None
        if holds:
            return OUTCOMES[key]
    return "not reproduced"


def read_entry(entry: dict) -> Claim:
    """Return one entry of the ledger as a claim, or say which of its keys is wrong."""
    name = entry.get("id", "without id") if isinstance(entry, dict) else repr(entry)

    def refuse(key, what):
        raise BookError(f"claim {name}: {key} {what}")

    if not isinstance(entry, dict):
        refuse("entry", "is not a mapping")
    for key in entry:
        if key not in Claim._fields:
            refuse(key, f"is not a known key{nearest(str(key), Claim._fields)}")
    for key in ("id", "chapter", "kind", "statement", "source"):
        if not (isinstance(entry.get(key), str) and entry[key].strip()):
            refuse(key, "must be a text")
    if entry["chapter"] not in CHAPTERS:
        refuse("chapter", f"{entry['chapter']!r} is none of {', '.join(CHAPTERS)}")
    if entry["kind"] not in KINDS:
        refuse("kind", f"{entry['kind']!r} is none of {', '.join(KINDS)}")
    if not isinstance(entry.get("check", ""), str) or not (entry.get("check") or entry.get("rule")):
        refuse("check", "must be a text unless there is a rule")
    if not isinstance(entry.get("headline", False), bool):
        refuse("headline", "must be true or false")
    needs = entry.get("needs", [])
    if not (isinstance(needs, list) and all(isinstance(item, str) for item in needs)):
        refuse("needs", "must be a list of dataset names")
    values = {**entry, "needs": tuple(needs)}
    if "print" in entry:
        values["print"] = read_print(entry["print"], refuse)
    if "rule" in entry:
        values["rule"] = read_rule(entry["rule"], "print" in entry, refuse)
    return Claim(**values)


def read_print(printed: dict, refuse) -> Printed:
    """Return what the thesis prints; `refuse(key, what)` names the claim in the message."""
    if not (isinstance(printed, dict) and set(printed) == set(Printed._fields)):
        refuse("print", "must have exactly value and unit")
    if type(printed["value"]) not in (int, float) or not math.isfinite(printed["value"]):
        refuse("print", "must have a finite number as value")
    return Printed(printed["value"], str(printed["unit"]))


def read_rule(rule: dict, has_print: bool, refuse) -> Rule:
    """Return the rule, every expression parsed once: a bad one is found before anything runs."""
    if not (isinstance(rule, dict) and isinstance(rule.get("measure"), str)):
        refuse("rule", "must say under measure what is measured")
    for key, text in rule.items():
        if key not in Rule._fields:
            refuse(f"rule {key}", f"is not a known key{nearest(str(key), Rule._fields)}")
        if not isinstance(text, str):
            refuse(f"rule {key}", "must be a text")
    result = Rule(**rule)
    if not result.expressions():
        refuse("rule", f"needs one of {', '.join(OUTCOMES)}")
    for key, text in result.expressions().items():
        try:
            used = names(text)
        except BookError as error:
            refuse(f"rule {key}", str(error))
        if "printed" in used and not has_print:
            refuse(f"rule {key}", "uses printed, but the entry has no print")
    return result


def load(path: Path) -> dict[str, Claim]:
    """Read and validate a ledger file: claims by id, in the order of the file."""
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        entries = yaml.load(path.read_text(encoding="utf-8"), loader)
    except yaml.YAMLError as error:
        raise BookError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(entries, list):
        raise BookError(f"{path.name} must be a list of claims")
    claims = {}
    for claim in map(read_entry, entries):
        if claim.id in claims:
            raise BookError(f"claim {claim.id}: id occurs twice in {path.name}")
        claims[claim.id] = claim
    return claims


@cache
def ledger() -> dict[str, Claim]:
    """Return the ledger of the book, read once: claims by id, in the order of the file."""
    return load(paths.BOOK / "claims.yml")


_present: dict[str, Verdict] = {}


def reset() -> None:
    """Forget the verdicts of the present run."""
    _present.clear()


def check(
    id: str, measured: float, low: float | None = None, high: float | None = None,
    figure: str | None = None, note: str = "", **facts: float,
) -> Verdict:  # fmt: skip
    """Judge a claim by its rule, remember the verdict for `table` and write it to the journal.

    `low` and `high` default to `measured`; `facts` are the further names that the rule uses.
    """
    if id not in ledger():
        raise BookError(f"there is no claim {id!r} in book/claims.yml{nearest(id, ledger())}")
    claim = ledger()[id]
    measured, low, high = (
        float(measured if value is None else value) for value in (measured, low, high)
    )
    facts = {name: np.asarray(value).item() for name, value in facts.items()}
    for name, value in {"measured": measured, "low": low, "high": high, **facts}.items():
        if not math.isfinite(value):
            raise BookError(f"claim {id}: {name} is {value}, but a verdict needs finite numbers")
    slack = 1e-9 * max(1.0, abs(measured))
    if not low - slack <= measured <= high + slack:
        raise BookError(f"claim {id}: the interval [{low}, {high}] does not contain {measured}")
    verdict = decide(claim, measured, low, high, facts)
    result = Verdict(claim, verdict, measured, low, high, figure, note)
    _present[id] = result
    journal.note(
        "claim", id=id, verdict=result.verdict, measured=measured, low=low, high=high,
        unit=result.unit, figure=figure, note=note, facts=facts,
    )  # fmt: skip
    return result


def skip(id: str, reason: str) -> Verdict:
    """Leave a claim unjudged in this run and say why, in the table and on the scoreboard."""
    if id not in ledger():
        raise BookError(f"there is no claim {id!r} in book/claims.yml{nearest(id, ledger())}")
    if not reason.strip():
        raise BookError(f"claim {id}: say why it is not run")
    result = _present[id] = Verdict(ledger()[id], "not run", note=reason)
    journal.note(
        "claim", id=id, verdict=result.verdict, measured=None, low=None, high=None,
        unit=result.unit, figure=None, note=reason,
    )  # fmt: skip
    return result


def rows(chapter: str) -> list[Verdict]:
    """Return every claim of a chapter with its verdict in the present run."""
    if chapter not in CHAPTERS:
        raise BookError(f"there is no chapter {chapter!r}{nearest(chapter, CHAPTERS)}")
    return [
        _present.get(claim.id, Verdict(claim, "not run"))
        for claim in ledger().values()
        if claim.chapter == chapter
    ]


def table(chapter: str) -> Table:
    """Return the Verdicts table of a chapter: all of its claims, those not run included."""
    return Table(rows(chapter))


def interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """Return the mean over trials with its Student-t interval.

    One trial says nothing about its own spread, so fewer than two are refused: a chapter whose
    numbers are judged gives its `trials` parameter the range [2, …).
    """
    values = np.asarray(list(values), dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise BookError("an interval needs at least two trials, each a finite number")
    if not 0 < confidence < 1:
        raise BookError(f"confidence is {confidence}, but must lie strictly between 0 and 1")
    n, mean = len(values), float(values.mean())
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half)


def digits(value: float) -> str:
    """Return a number as a reader wants it: four digits, thousands separated instead of powers."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def text_html(text: str) -> str:
    r"""Escape a statement and turn its $…$ into \(…\), which MathJax typesets inside outputs."""
    return re.sub(r"\$([^$]+)\$", r"\\(\1\\)", html.escape(text))


def badge_html(verdict: str) -> str:
    """Return a verdict in words, with the class that colours it."""
    return f'<span class="rb-verdict {CLASSES[verdict]}">{verdict}</span>'


def row_html(row: Verdict) -> str:
    """Return one row: statement and id, print, measurement with interval and unit, verdict."""
    claim = row.claim
    unit = f" {text_html(row.unit)}" if row.unit else ""
    printed = digits(claim.print.value) + unit if claim.print else "–"
    measured = row.number() + (unit if row.measured is not None else "")
    if row.figure:
        measured = f'<a href="#{html.escape(row.figure)}">{measured}</a>'
    note = f"<br><small>{text_html(row.note)}</small>" if row.note else ""
    headline = ' class="rb-headline"' if claim.headline else ""
    return (
        f'<tr id="claim-{html.escape(claim.id)}"{headline}>'
        f"<td>{text_html(claim.statement)}<br><code>{html.escape(claim.id)}</code></td>"
        f'<td data-label="Printed">{printed}</td>'
        f'<td data-label="Measured">{measured}{note}</td>'
        f'<td data-label="Verdict">{badge_html(row.verdict)}</td></tr>'
    )
