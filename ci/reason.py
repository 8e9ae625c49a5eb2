"""Why a verdict is what it is: conditions of a rule as people write them, with their numbers."""

import ast
import re
from collections.abc import Callable
from itertools import product

from ci.scoreboard import Row
from lib import claims
from lib.claims import OUTCOMES, digits
from lib.errors import BookError
from lib.measure import Measured

SIGNS = {
    ast.Add: "+", ast.Sub: "−", ast.Mult: "·", ast.Div: "/", ast.Pow: "^", ast.Lt: "<",
    ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠",
}  # fmt: skip
OPPOSITE = {"<": "≥", "≤": ">", ">": "≤", "≥": "<", "=": "≠", "≠": "="}


def words(text: str) -> str:
    """Return a condition of a rule as people write it: `|measured − printed| ≤ 0.05`."""
    return _written(claims.parse(text).body, lambda name: name)


def because(text: str, values: dict[str, float]) -> str:
    """Return why a condition holds or fails at a point: each comparison as it really is."""
    return _because(claims.parse(text).body, values)


def _value(node: ast.expr, values: dict[str, float]):
    """Return what a part of a rule comes to."""
    tree = ast.fix_missing_locations(ast.Expression(node))
    names = {"__builtins__": {}, **claims.FUNCTIONS}
    return eval(compile(tree, "<rule>", "eval"), names, dict(values))


def _binds(node: ast.expr) -> int:
    """Return how closely a part holds together; looser ones need brackets inside of closer ones."""
    match node:
        case ast.BoolOp(op=ast.Or()):
            return 1
        case ast.BoolOp():
            return 2
        case ast.Compare():
            return 3
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return 4
        case ast.BinOp(op=ast.Mult() | ast.Div()):
            return 5
    return 6


def _written(node: ast.expr, name: Callable[[str], str]) -> str:
    """Return a part of a rule as text; `name` says what stands for a name."""

    def inner(part: ast.expr, least: int) -> str:
        text = _written(part, name)
        return text if _binds(part) >= least else f"({text})"

    close = _binds(node)
    match node:
        case ast.Constant():
            return str(node.value) if isinstance(node.value, bool) else signed(node.value)
        case ast.Name():
            return name(node.id)
        case ast.Call():
            parts = ", ".join(_written(each, name) for each in node.args)
            return f"|{parts}|" if node.func.id == "abs" else f"{node.func.id}({parts})"
        case ast.UnaryOp():
            sign = "not " if isinstance(node.op, ast.Not) else "−"
            return f"{sign}{inner(node.operand, 6)}"
        case ast.BinOp():
            left, right = inner(node.left, close), inner(node.right, close + 1)
            return f"{left} {SIGNS[type(node.op)]} {right}"
        case ast.Compare():
            text = inner(node.left, 4)
            for sign, part in zip(node.ops, node.comparators, strict=True):
                text += f" {SIGNS[type(sign)]} {inner(part, 4)}"
            return text
        case ast.BoolOp():
            link = " and " if isinstance(node.op, ast.And) else " or "
            return link.join(inner(part, close) for part in node.values)
    raise AssertionError(ast.dump(node))


def _because(node: ast.expr, values: dict[str, float]) -> str:
    match node:
        case ast.UnaryOp(op=ast.Not()):
            return _because(node.operand, values)
        case ast.BoolOp():
            held = [bool(_value(part, values)) for part in node.values]
            whole = all(held) if isinstance(node.op, ast.And) else any(held)
            # One part that holds makes an `or` true, one that fails an `and` false.
            chosen = [p for p, each in zip(node.values, held, strict=True) if each == whole]
            return " and ".join(_because(part, values) for part in chosen)
        case ast.Compare() if len(node.ops) == 1:
            sign = SIGNS[type(node.ops[0])]
            sign = sign if _value(node, values) else OPPOSITE[sign]
            return f"{_side(node.left, values)} {sign} {_side(node.comparators[0], values)}"
        case ast.Compare():
            steps = [node.left, *node.comparators]
            pairs = zip(steps, node.ops, steps[1:], strict=False)
            each = [ast.Compare(left, [sign], [right]) for left, sign, right in pairs]
            return _because(ast.BoolOp(ast.And(), each), values)
        case ast.Name():
            return node.id if values[node.id] else f"not {node.id}"
    raise AssertionError(ast.dump(node))


def _side(node: ast.expr, values: dict[str, float]) -> str:
    """Return one side of a comparison with its numbers, and what it comes to."""
    text = _written(node, lambda name: signed(values[name]))
    if isinstance(node, ast.Name):
        return text if node.id in ("measured", "printed") else f"{node.id} {text}"
    simple = isinstance(node, ast.Constant | ast.UnaryOp)
    return text if simple else f"{text} = {signed(_value(node, values))}"


def signed(value: float) -> str:
    """Return a number with a minus sign that is as wide as a plus."""
    return re.sub(r"^-", "−", digits(value))


def sentence(row: Row) -> str:
    """Return in one sentence why a question has its verdict; nothing where none was measured."""
    claim, found = row.claim, row.judgement
    if found.measured is None:
        return ""
    try:
        claims.require_facts(claim, row.question, found.facts)
    except BookError:
        return f"{found.verdict} by the rule as it was when this was run; today's asks for more"
    measured = Measured(found.measured, found.low, found.high, found.trials)
    plain = claims.over_interval(claim, row.question, measured, found.facts)
    reached, reason = _at(row, found.measured)
    control = Measured(*found.control) if found.control else None
    today = claims.decide(claim, row.question, measured, found.facts, found.share, control)
    if today != found.verdict:
        return f"{found.verdict} by the rule as it was when this was run; today's says {today}"
    if plain == "undecided":
        return _open(row)
    if plain != found.verdict and plain == "refuted":
        return f"not reproduced because {reason}; nothing is refuted below the printed scale"
    if plain != found.verdict:
        passed = _at(row, found.control[0])[1]
        behind = ", though it is clearly behind" if found.verdict == "direction only" else ""
        return f"{found.verdict} because the control passes the rule, too{behind}: {passed}"
    text = f"{found.verdict} because {reason}"
    if reached != plain:  # both ends share no more than this
        ends = (_at(row, found.low), _at(row, found.high))
        other = next((f"elsewhere in the interval {r}" for v, r in ends if v != reached), None)
        return f"{text}, but {other or _uncertain(found.facts)}"
    if found.low < found.high:
        text += f", and so all over [{signed(found.low)}, {signed(found.high)}]"
    strict = claim.questions[row.question].reproduced
    if reached == "direction only" and strict:
        text += f"; not reproduced because {because(strict, _values(row, found.measured))}"
    return text


def _uncertain(facts: dict[str, float]) -> str:
    """Return the intervals of the facts that have one: these are what leaves a verdict open."""
    names = [name for name in facts if {f"{name}_low", f"{name}_high"} <= facts.keys()]
    ends = ((name, signed(facts[f"{name}_low"]), signed(facts[f"{name}_high"])) for name in names)
    return " and ".join(f"{name} is only known to lie in [{a}, {b}]" for name, a, b in ends)


def _open(row: Row) -> str:
    """Return which answers the interval leaves open."""
    found, said = row.judgement, {}
    points = dict.fromkeys((found.low, found.measured, found.high))
    for point, facts in product(points, claims.corners(found.facts)):
        verdict, reason = _at(row, point, facts)
        said.setdefault(verdict, f"at {signed(point)} it would be {verdict} ({reason})")
    if len(said) < 2:
        return "undecided because the rule gives more than one answer within the interval"
    return f"undecided because {', but '.join(said.values())}"


def _values(row: Row, measured: float, facts: dict | None = None) -> dict[str, float]:
    number = row.claim.number
    printed = {"printed": number.value} if number else {}
    return {**(row.judgement.facts if facts is None else facts), **printed, "measured": measured}


def _at(row: Row, measured: float, facts: dict | None = None) -> tuple[str, str]:
    """Return the verdict at a point, and why: the condition that held, or the last that failed."""
    given = row.judgement.facts if facts is None else facts
    verdict = claims.at_point(row.claim, row.question, measured, given)
    conditions = row.claim.questions[row.question].conditions()
    held = [text for key, text in conditions.items() if OUTCOMES[key] == verdict]
    mild = [text for key, text in conditions.items() if key in ("reproduced", "direction")]
    text = (held or mild or list(conditions.values()))[-1]
    return verdict, because(text, _values(row, measured, facts))
