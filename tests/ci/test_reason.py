"""Why a verdict is what it is: one sentence with its numbers, which it never contradicts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci import reason
from ci.scoreboard import Evidence, Row
from lib import claims
from lib.claims import Claim, Number, Rule
from lib.journal import Judgement
from lib.measure import Measured
from lib.paths import CODE, project_at

CLOSE = Rule(
    "x",
    reproduced="abs(measured - printed) <= 0.05",
    direction="measured > 0",
    refuted="measured < 0 and best < 0",
)


def row(measured, low=None, high=None, rule=CLOSE, control=(), share=1.0, **facts):
    """Return a row whose verdict is what the rule says."""
    claim = Claim("a-b", "a", "experiment", "", "", {"advantage": rule}, number=Number(0.855, ""))
    ends = Measured(measured, measured if low is None else low, measured if high is None else high)
    beside = Measured(*control) if control else None
    verdict = claims.decide(claim, "advantage", ends, facts, share, beside)
    found = Judgement("a-b", "advantage", verdict, "", share, *ends[:3], facts=facts,
                      control=list(control))  # fmt: skip
    return Row(claim, "advantage", Evidence(found, "a", "live", ""))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abs(measured - printed) <= 0.05", "|measured − printed| ≤ 0.05"),
        (
            "measured <= printed + 0.1 and not lost == 1",
            "measured ≤ printed + 0.1 and not (lost = 1)",
        ),
        ("0.9 <= measured <= 2 * (a + b)", "0.9 ≤ measured ≤ 2 · (a + b)"),
        ("a or b and measured > max(1, c)", "a or b and measured > max(1, c)"),
        ("(a or b) and measured != -1", "(a or b) and measured ≠ −1"),
        ("measured >= 1 - 0.05 / 2", "measured ≥ 1 − 0.05 / 2"),
        ("measured >= 1 - (a - b)", "measured ≥ 1 − (a − b)"),
    ],
)
def test_a_rule_is_written_as_people_write_it(text, said):
    assert reason.words(text) == said


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            row(-0.3, -0.4, -0.2, best=1.0),
            "not reproduced because −0.3 ≤ 0, and so all over [−0.4, −0.2]",
        ),
        (row(-0.3, best=-0.1), "refuted because −0.3 < 0 and best −0.1 < 0"),
        (
            row(-0.3, -0.4, -0.2, best=-0.1, best_low=-0.2, best_high=0.1),
            "not reproduced because −0.3 < 0 and best −0.1 < 0, "
            "but best is only known to lie in [−0.2, 0.1]",
        ),
        (
            row(-0.3, best=-0.1, share=0.5),
            "not reproduced because −0.3 < 0 and best −0.1 < 0; nothing is refuted below the "
            "printed scale",
        ),
        (
            row(0.5, best=0.0),
            "direction only because 0.5 > 0; not reproduced because |0.5 − 0.855| = 0.355 > 0.05",
        ),
        (row(0.86, best=0.0), "reproduced because |0.86 − 0.855| = 0.005 ≤ 0.05"),
        (
            row(0.86, best=0.0, over_control_low=0.01, control=(0.84, 0.84, 0.84)),
            "direction only because the control passes the rule, too, though it is clearly behind: "
            "|0.84 − 0.855| = 0.015 ≤ 0.05",
        ),
        (
            row(0.86, best=0.0, control=(0.84, 0.84, 0.84)),
            "vacuous at this scale because the control passes the rule, too: "
            "|0.84 − 0.855| = 0.015 ≤ 0.05",
        ),
        (
            row(0.1, -0.1, 0.3, best=1.0),
            "undecided because at −0.1 it would be not reproduced (−0.1 ≤ 0), but at 0.1 it would "
            "be direction only (0.1 > 0)",
        ),
    ],
)
def test_the_sentence_says_why(found, said):
    assert reason.sentence(found) == said


def test_a_verdict_of_an_older_rule_says_so():
    found = row(0.86, best=0.0)
    old = found.evidence.judgement._replace(verdict="refuted")
    text = reason.sentence(found._replace(evidence=found.evidence._replace(judgement=old)))
    assert text == "refuted by the rule as it was when this was run; today's says reproduced"


def test_a_rule_that_asks_for_more_than_was_measured_says_so():
    text = reason.sentence(row(0.86))
    assert text == "reproduced by the rule as it was when this was run; today's asks for more"


@given(st.floats(-2, 2), st.floats(-2, 2), st.booleans())
def test_what_is_said_of_a_condition_is_true(measured, other, flag):
    for text in ("abs(measured - other) <= 0.5 or flag", "not (measured > other and flag)"):
        values = {"measured": measured, "other": other, "flag": flag}
        said = reason.because(text, values)
        for part in said.split(" and "):
            if ">" in part or "≤" in part:
                sign = ">" if ">" in part else "≤"
                left, right = (side.split("=")[-1].split()[-1] for side in part.split(sign))
                left, right = (float(side.replace("−", "-")) for side in (left, right))
                slack = 1e-3 * max(1, abs(left), abs(right))
                assert left > right - slack if sign == ">" else left <= right + slack


def test_every_rule_of_the_book_can_be_written():
    for claim in claims.ledger(project_at(CODE)).values():
        for rule in claim.questions.values():
            assert all(map(reason.words, rule.conditions().values()))
