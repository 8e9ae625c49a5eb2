"""The ledger of claims, and verdicts, which rules written before a run give, never a hand.

`book/claims/<chapter>.yml` lists what the thesis claims. A rule is a few conditions on the
measurement; `decide` asks them over the whole interval of the measurement, so that a verdict is
given only where the interval leaves no choice.
"""

import ast
import html
import math
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from numbers import Real
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lib import journal, maths, measure, toc
from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.journal import VERDICTS, Judgement
from lib.measure import Measured
from lib.paths import Project, project

CLASSES = {
    verdict: f"rb-{verdict.removesuffix(' at this scale').replace(' ', '-')}"
    for verdict in VERDICTS
}
NATURES = ("algebra", "theorem", "experiment")
QUESTIONS = ("reconstruction", "advantage")
PRINTED_SCALE = "printed scale"
# At a point the first condition that holds decides, in this order; else it is "not reproduced".
OUTCOMES = {
    "vacuous": "vacuous at this scale",
    "reproduced": "reproduced",
    "direction": "direction only",
    "refuted": "refuted",
}
# What two verdicts within one interval or group come to; any other mixture is undecided.
JOINED = {
    frozenset({"reproduced", "direction only"}): "direction only",
    frozenset({"refuted", "not reproduced"}): "not reproduced",
}
POINTS = 65  # of an interval at which the rule is asked
RESERVED = ("id", "values", "question", "figure", "note", "control", "sizes")
FUNCTIONS = {"abs": abs, "min": min, "max": max}
ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow,
    ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
    ast.Call, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


class Number(NamedTuple):
    """The number that the thesis prints; rules call its value `printed`."""

    value: float
    unit: str


class Rule(NamedTuple):
    """How a measurement becomes a verdict: what is measured, and a condition for each outcome."""

    measure: str
    unit: str = ""
    control: str = ""  # a method that must fail the rule, in words
    vacuous: str | None = None
    reproduced: str | None = None
    direction: str | None = None
    refuted: str | None = None
    changed: str = ""  # how the rule was changed after a run had been seen

    def conditions(self) -> dict[str, str]:
        """Return the conditions that were written, in the order in which they are tried."""
        return {key: text for key in OUTCOMES if (text := getattr(self, key)) is not None}

    def __str__(self) -> str:
        return "; ".join(f"{OUTCOMES[key]}: {text}" for key, text in self.conditions().items())


class Claim(NamedTuple):
    """One entry of the ledger; a theorem and a piece of algebra have the one question ""."""

    id: str
    chapter: str
    nature: str
    statement: str
    source: str
    questions: dict[str, Rule]
    headline: bool = False
    number: Number | None = None
    needs: tuple[str, ...] = ()
    printed: dict[str, float] = {}  # noqa: RUF012  # sizes by the names of the page's parameters
    missing: tuple[str, ...] = ()  # sizes and settings that the thesis does not print
    group: str = ""  # cells of one printed table, which count as one finding

    def unit(self, question: str) -> str:
        """Return the unit of the measurement."""
        return self.questions[question].unit or (self.number.unit if self.number else "")


class Scale(NamedTuple):
    """The sizes of a run against the printed ones, in words and as the share of the work."""

    text: str = ""
    share: float | None = None


class Verdict(NamedTuple):
    """A claim with what this run says of it, shown with everything that the rule used."""

    claim: Claim
    judgement: Judgement

    @property
    def verdict(self) -> str:
        return self.judgement.verdict

    def __repr__(self) -> str:
        name = " ".join(filter(None, (self.claim.id, self.judgement.question)))
        text = number(self.judgement)
        return f"{name}: {self.verdict}" + (f" ({text})" if text != "–" else "")

    def _repr_html_(self) -> str:
        claim, found = self.claim, self.judgement
        rule = claim.questions[found.question]
        question = f" {found.question}" if found.question else ""
        parts = [
            f"<code>{html.escape(claim.id)}</code>{question} {badge_html(found.verdict)} "
            f"{number(found)} {text_html(found.unit)}".rstrip(),
            text_html(claim.statement),
        ]
        small = "; ".join(filter(None, (details(found), found.note)))
        if small:
            parts.append(f"<small>{text_html(small)}</small>")
        parts.append(f"<small>Rule for {text_html(rule.measure)}: {html.escape(str(rule))}</small>")
        return f'<div class="rb-check">{"<br>".join(parts)}</div>'


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
    fact = isinstance(root, ast.Name) and root.id not in ("measured", "printed")
    if not (isinstance(root, ast.Compare | ast.BoolOp) or negated or fact):
        raise BookError(f"{text!r} is a number, not a condition that is true or false")
    return tree


@cache
def names(text: str) -> frozenset[str]:
    """Return the names that a condition needs a value for."""
    found = {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return frozenset(found - set(FUNCTIONS))


@cache
def _compiled(text: str):
    return compile(parse(text), f"<{text}>", "eval")


def at_point(claim: Claim, question: str, measured: float, facts: dict) -> str:
    """Return the verdict of a rule for a number without interval."""
    values = {**facts, "measured": measured}
    if claim.number:
        values["printed"] = claim.number.value
    for key, text in claim.questions[question].conditions().items():
        try:
            holds = eval(_compiled(text), {"__builtins__": {}, **FUNCTIONS}, values)
        except ArithmeticError as error:
            raise BookError(f"claim {claim.id}: its rule {key} fails with {error}") from None
        if holds:
            return OUTCOMES[key]
    return "not reproduced"


def joined(verdicts: Iterable[str]) -> str:
    """Return what several verdicts come to: the one that all share, or what both have in common."""
    found = frozenset(verdicts)
    return next(iter(found)) if len(found) == 1 else JOINED.get(found, "undecided")


def over_interval(claim: Claim, question: str, measured: Measured, facts: dict) -> str:
    """Return the verdict that holds all over the interval, or `undecided`."""
    value, low, high = measured[:3]
    points = {value, low, high, *np.linspace(low, high, POINTS).tolist()}
    if claim.number and low < claim.number.value < high:
        points.add(claim.number.value)  # a narrow tolerance may lie between two points
    cases = corners(facts)
    return joined(at_point(claim, question, point, case) for point in points for case in cases)


def flat(facts: dict) -> dict:
    """Return facts as numbers; the ends of an interval stand beside it as `_low` and `_high`."""
    found = {}
    for name, value in facts.items():
        if isinstance(value, Measured):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            found[name] = np.asarray(value).item()
    return found


def corners(facts: dict) -> list[dict]:
    """Return the facts as measured, and with each one that has an interval at both of its ends."""
    uncertain = [name for name in facts if {f"{name}_low", f"{name}_high"} <= facts.keys()]
    ends = ([facts[name], facts[f"{name}_low"], facts[f"{name}_high"]] for name in uncertain)
    return [{**facts, **dict(zip(uncertain, chosen, strict=True))} for chosen in product(*ends)]


def decide(
    claim: Claim,
    question: str,
    measured: Measured,
    facts: dict,
    share: float | None = None,
    control: Measured | None = None,
) -> str:
    """Return the verdict: a function of the rule, the measurement, the facts and the scale alone.

    `share` is that of the printed sizes; below 1, or where none is printed, an experiment cannot
    be refuted. A control that does as well as what is judged makes the rule say nothing. Where it
    only passes the rule, and the fact `over_control` (paired, positive is better) is above 0 with
    its whole interval, the direction holds and no more.
    """
    verdict = over_interval(claim, question, measured, facts)
    if control and verdict in ("reproduced", "direction only"):
        # Conditions on facts alone are about the method that is judged, not about its control.
        rule = claim.questions[question]
        others = [key for key, text in rule.conditions().items() if "measured" not in names(text)]
        asked = claim._replace(questions={question: rule._replace(**dict.fromkeys(others))})
        if over_interval(asked, question, control, facts) in ("reproduced", verdict):
            beyond = facts.get("over_control_low", 0.0) > 0
            return "direction only" if beyond else "vacuous at this scale"
    if verdict == "refuted" and claim.nature == "experiment" and share != 1:
        return "not reproduced"
    return verdict


def verdict_of(judgement: Judgement) -> str:
    """Return what the ledger's present rule says of a judgement that was written earlier."""
    claim = find(judgement.id)
    question = question_of(claim, judgement.question)
    if judgement.measured is None:
        return "not run"
    require_facts(claim, question, judgement.facts)
    measured = Measured(judgement.measured, judgement.low, judgement.high, judgement.trials)
    control = Measured(*judgement.control) if judgement.control else None
    return decide(claim, question, measured, judgement.facts, judgement.share, control)


def require_facts(claim: Claim, question: str, facts: dict) -> None:
    """Refuse a check that leaves out a name that its rule uses."""
    for key, text in claim.questions[question].conditions().items():
        if missing := sorted(names(text) - {"measured", "printed", *facts}):
            raise BookError(
                f"claim {claim.id}: its rule {key} needs {', '.join(missing)}, "
                "which the check was not given"
            )


def scale_of(claim: Claim, sizes: dict) -> Scale:
    """Return the scale of a run: each size against the printed one; larger counts as printed.

    A size that is a list counts by its largest. The share is the product of the ratios: roughly the
    part of the printed work that the run did, which orders runs that were reduced differently.
    """
    if claim.nature != "experiment":
        return Scale()
    reduced, share = [], 1.0
    for name, printed in claim.printed.items():
        if name not in sizes:
            raise BookError(
                f"claim {claim.id}: the ledger prints {name}, which is no parameter of this page; "
                f"say what the run had with sizes={{{name!r}: …}}"
            )
        size, whole = _size(claim, name, sizes[name]), _size(claim, name, printed)
        if size < whole:
            reduced.append(f"{name} {digits(size)} of {digits(whole)}")
            share *= size / whole
    unknown = f"{', '.join(claim.missing)} not printed" if claim.missing else ""
    if not claim.printed:
        return Scale(f"no printed scale ({unknown})")
    if reduced:
        return Scale(f"reduced ({', '.join(reduced)})" + (f"; {unknown}" if unknown else ""), share)
    return Scale(PRINTED_SCALE + (f"; {unknown}" if unknown else ""), 1.0)


def _size(claim: Claim, name: str, value) -> float:
    values = np.asarray(value)
    if values.dtype.kind not in "iuf" or not values.size or not values.max() >= 0:
        raise BookError(f"claim {claim.id}: {name} is {value!r}, but a size is a number from 0 on")
    return float(values.max())


def find(id: str) -> Claim:
    """Return a claim of the ledger."""
    if id not in ledger():
        raise BookError(f"there is no claim {id!r} in book/claims{nearest(id, ledger())}")
    return ledger()[id]


def _own(id: str) -> Claim:
    """Return a claim of the chapter whose page is executed; by hand, of any chapter."""
    claim = find(id)
    chapter = os.environ.get("REGRETBOOK_PAGE", "").partition("/")[0]
    if chapter and claim.chapter != chapter:
        raise BookError(f"claim {id} is of {claim.chapter}: no page of {chapter} may judge it")
    return claim


def question_of(claim: Claim, question: str) -> str:
    """Return the question that is meant; it may be left out where a claim has only one."""
    if question in claim.questions:
        return question
    if not question and len(claim.questions) == 1:
        return next(iter(claim.questions))
    known = " and ".join(filter(None, claim.questions)) or "none that has a name"
    what = f"has no question {question!r}; it has" if question else "needs one of its questions:"
    raise BookError(f"claim {claim.id} {what} {known}")


def judge(
    id: str,
    values,
    *,
    question: str = "",
    figure: str | None = None,
    note: str = "",
    control=None,
    sizes: dict | None = None,
    **facts: float | Measured,
) -> Verdict:
    """Judge a claim by its rule, show the verdict with what the rule used, and write it down.

    `values` is a number, a `Measured`, or one number for each of at least two trials; `control`
    is the same of a method that must fail the rule. `facts` are the further names of the rule; one
    that is `Measured` counts with its interval, as the measurement itself does.
    `sizes` says what the parameters of the page do not. Where one of them has no value in this run,
    nothing is judged, and the reason stands in its place.
    """
    claim = _own(id)
    question = question_of(claim, question)
    for each in (values, control, *facts.values()):
        if isinstance(each, Measured) and each.why:
            return skip(id, f"It cannot be measured in this run: {each.why}.", question)
    measured = _checked(claim, "measured", values)
    beside = None if control is None else _checked(claim, "control", control)
    facts = flat(facts)
    for name, value in facts.items():
        if not (isinstance(value, Real) and math.isfinite(value)):
            raise BookError(f"claim {id}: {name} is {value}, but a verdict needs finite numbers")
    require_facts(claim, question, facts)
    known = {"trials": measured.trials} if measured.trials else {}
    scale = scale_of(claim, {**known, **_parameters(claim), **(sizes or {})})
    verdict = decide(claim, question, measured, facts, scale.share, beside)
    needed = None
    if verdict == "undecided":
        needed = measure.trials_to_decide(measured, lambda tried: decide(
            claim, question, tried, facts, scale.share, beside) != "undecided")  # fmt: skip
    judgement = Judgement(
        id, question, verdict, scale.text, scale.share, measured.value, measured.low, measured.high,
        claim.unit(question), measured.trials, needed, figure, note, facts, list(measured.values),
        list(beside[:3]) if beside else [], (sizes or {}).get(journal.RECORDED, ""),
    )  # fmt: skip
    journal.note(judgement)
    return Verdict(claim, judgement)


def skip(id: str, reason: str, question: str = "") -> Verdict:
    """Leave a claim unjudged in this run and say why, on the page and on the scoreboard."""
    claim = _own(id)
    if not reason.strip():
        raise BookError(f"claim {id}: say why it is not run")
    question = question_of(claim, question)
    judgement = Judgement(id, question, "not run", unit=claim.unit(question), note=reason)
    journal.note(judgement)
    return Verdict(claim, judgement)


def _parameters(claim: Claim) -> dict:
    """Return the sizes that the page has as parameters: names of the module that is executed."""
    page = vars(sys.modules["__main__"])
    return {name: page[name] for name in claim.printed if name in page}


def _checked(claim: Claim, name: str, values) -> Measured:
    """Return what was measured as a number with its interval, all finite."""
    if not isinstance(values, Measured):
        array = np.asarray(values)
        if array.ndim == 0:
            values = measure.exact(array)
        else:
            values = measure.share(array) if array.dtype == bool else measure.mean(array)
    for part, value in zip((name, "low", "high"), values[:3], strict=True):
        if not math.isfinite(value):
            raise BookError(
                f"claim {claim.id}: {part} is {value}, but a verdict needs finite numbers"
            )
    value, low, high = map(float, values[:3])
    slack = 1e-9 * max(1.0, abs(value))
    if not low - slack <= value <= high + slack:
        raise BookError(f"claim {claim.id}: the interval [{low}, {high}] does not contain {value}")
    return values._replace(value=value, low=min(low, value), high=max(high, value))


def read_entry(entry: dict, chapter: str) -> Claim:
    """Return one entry of the ledger as a claim, or say which of its keys is wrong."""
    name = entry.get("id", "without id") if isinstance(entry, dict) else repr(entry)

    def refuse(key, what):
        raise BookError(f"claim {name}: {key} {what}")

    if not isinstance(entry, dict):
        refuse("entry", "is not a mapping")
    known = [key for key in Claim._fields if key not in ("chapter", "missing")] + ["rule"]
    for key in entry:
        if key not in known:
            refuse(key, f"is not a known key{nearest(str(key), known)}")
    for key in ("id", "statement", "source"):
        if not (isinstance(entry.get(key), str) and entry[key].strip()):
            refuse(key, "must be a text")
    if entry.get("nature") not in NATURES:
        given = f"is {entry['nature']!r}" if "nature" in entry else "is missing"
        refuse("nature", f"{given}; write one of {', '.join(NATURES)}")
    if not isinstance(entry.get("headline", False), bool):
        refuse("headline", "must be true or false")
    if "group" in entry and not (isinstance(entry["group"], str) and entry["group"].strip()):
        refuse("group", "must be a text")
    needs = entry.get("needs", [])
    if not (isinstance(needs, list) and all(isinstance(item, str) for item in needs)):
        refuse("needs", "must be a list of dataset names")
    printed, missing = read_sizes(entry, refuse)
    return Claim(
        id=entry["id"],
        chapter=chapter,
        nature=entry["nature"],
        statement=entry["statement"],
        source=entry["source"],
        questions=read_questions(entry, refuse),
        headline=entry.get("headline", False),
        number=read_number(entry["number"], refuse) if "number" in entry else None,
        needs=tuple(needs),
        printed=printed,
        missing=missing,
        group=entry.get("group", ""),
    )


def read_sizes(entry: dict, refuse: Callable) -> tuple[dict, tuple[str, ...]]:
    """Return the printed sizes of an experiment and the names of those that are not printed."""
    if entry["nature"] != "experiment":
        if "printed" in entry:
            refuse("printed", f"belongs to experiments, but this is {entry['nature']}")
        return {}, ()
    printed = entry.get("printed")
    if not (isinstance(printed, dict) and printed):
        refuse("printed", "must give the printed sizes of the experiment, or {missing: [names]}")
    missing = printed.get("missing", [])
    if not (isinstance(missing, list) and all(isinstance(item, str) for item in missing)):
        refuse("printed", "must have a list of names as missing")
    sizes = {name: size for name, size in printed.items() if name != "missing"}
    for name, size in sizes.items():
        each = size if isinstance(size, list) else [size]
        if not each or any(type(one) not in (int, float) or not one > 0 for one in each):
            refuse("printed", f"must have a positive number as {name}")
    if both := [name for name in missing if name in sizes]:
        refuse("printed", f"has {both[0]} as a size and as missing")
    return sizes, tuple(missing)


def read_questions(entry: dict, refuse: Callable) -> dict[str, Rule]:
    """Return the rules by question: an experiment names its questions, the others have one."""
    has_number = "number" in entry
    if entry["nature"] != "experiment":
        if "questions" in entry:
            refuse("questions", f"belong to experiments, but this is {entry['nature']}: write rule")
        if "rule" not in entry:
            refuse("rule", "is missing")
        return {"": read_rule("rule", entry["rule"], has_number, refuse)}
    if "rule" in entry:
        refuse("rule", "belongs to theorems and algebra, but this is experiment: write questions")
    questions = entry.get("questions")
    if not (isinstance(questions, dict) and questions):
        refuse("questions", f"is missing; write {' or '.join(QUESTIONS)} with its rule")
    for name in questions:
        if name not in QUESTIONS:
            refuse(f"question {name}", f"is none of {', '.join(QUESTIONS)}")
    return {name: read_rule(name, rule, has_number, refuse) for name, rule in questions.items()}


def read_number(number: dict, refuse: Callable) -> Number:
    """Return what the thesis prints; `refuse(key, what)` names the claim in the message."""
    if not (isinstance(number, dict) and set(number) == set(Number._fields)):
        refuse("number", "must have exactly value and unit")
    if type(number["value"]) not in (int, float) or not math.isfinite(number["value"]):
        refuse("number", "must have a finite number as value")
    return Number(number["value"], str(number["unit"]))


def read_rule(name: str, rule: dict, has_number: bool, refuse: Callable) -> Rule:
    """Return the rule, every condition parsed once: a bad one is found before anything runs."""
    if not (isinstance(rule, dict) and isinstance(rule.get("measure"), str)):
        refuse(name, "must say under measure what is measured")
    for key, text in rule.items():
        if key not in Rule._fields:
            refuse(f"{name} {key}", f"is not a known key{nearest(str(key), Rule._fields)}")
        if not isinstance(text, str):
            refuse(f"{name} {key}", "must be a text")
    result = Rule(**rule)
    if not result.conditions():
        refuse(name, f"needs one of {', '.join(OUTCOMES)}")
    for key, text in result.conditions().items():
        try:
            used = names(text)
        except BookError as error:
            refuse(f"{name} {key}", str(error))
        if ends := sorted(used & {"low", "high"}):
            refuse(f"{name} {key}", f"uses {ends[0]}, but a rule is asked all over the interval: "
                   "write measured")  # fmt: skip
        if taken := sorted(used & set(RESERVED)):
            refuse(f"{name} {key}", f"uses {taken[0]}, which `judge` needs for something else")
        if "printed" in used and not has_number:
            refuse(f"{name} {key}", "uses printed, but the entry has no number")
    return result


def load(path: Path) -> dict[str, Claim]:
    """Read and validate the ledger of one chapter: claims by id, in the order of the file."""
    return _load(path, path.stat().st_mtime_ns, path.stat().st_size)


@cache
def _load(path: Path, modified: int, size: int) -> dict[str, Claim]:
    where = f"claims/{path.name}"
    entries = read_yaml(path, list)
    claims: dict[str, Claim] = {}
    for claim in (read_entry(entry, path.stem) for entry in entries):
        if claim.id in claims:
            raise BookError(f"claim {claim.id}: id occurs twice in {where}")
        claims[claim.id] = claim
    return claims


def ledger(where: Project | None = None) -> dict[str, Claim]:
    """Return the ledger of the book: claims by id, in the order of the table of contents.

    A file is read once in a process, and again only when it changes.
    """
    where = where or project()
    files = {path.stem: path for path in sorted(where.claims.glob("*.yml"))}
    chapters = toc.chapters(where)
    for name in files:
        if name not in chapters:
            raise BookError(
                f"book/claims/{name}.yml belongs to no chapter{nearest(name, chapters)}"
            )
    claims: dict[str, Claim] = {}
    for chapter in chapters:
        for id, claim in (load(files[chapter]) if chapter in files else {}).items():
            if id in claims:
                both = f"{claims[id].chapter}.yml and {chapter}.yml"
                raise BookError(f"claim {id}: id occurs twice in book/claims: {both}")
            claims[id] = claim
    return claims


def number(judgement: Judgement) -> str:
    """Return the measurement as text, with its interval when it has one."""
    if judgement.measured is None:
        return "–"
    return _interval(judgement.measured, judgement.low, judgement.high)


def _interval(value: float, low: float, high: float) -> str:
    if low == high:
        return digits(value)
    return f"{digits(value)} [{digits(low)}, {digits(high)}]"


def details(judgement: Judgement) -> str:
    """Return in words what stands beside the number: trials, scale, what is needed, control."""
    parts = []
    if judgement.trials:
        parts.append(f"{judgement.trials:,} trial{'s' * (judgement.trials != 1)}")
    if judgement.scale:
        parts.append(judgement.scale)
    if judgement.needed:
        parts.append(f"about {judgement.needed:,} trials would decide")
    if judgement.control:
        parts.append(f"control {_interval(*judgement.control)}")
    if judgement.recorded:
        parts.append(f"recorded, {judgement.recorded}")
    return "; ".join(parts)


def digits(value: float) -> str:
    """Return a number as a reader wants it: four digits, thousands separated instead of powers."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def text_html(text: str) -> str:
    """Escape a statement and typeset its `$maths$`."""
    return maths.sentence(text)


def badge_html(verdict: str) -> str:
    """Return a verdict in words, with the class that colours it."""
    return f'<span class="rb-verdict {CLASSES[verdict]}">{verdict}</span>'
