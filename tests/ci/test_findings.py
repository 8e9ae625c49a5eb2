"""Findings: verdicts choose the words, runs give the numbers, and nothing else does."""

import pytest

from ci import findings, scoreboard
from ci.scoreboard import Evidence
from lib import claims
from lib.errors import BookError
from lib.journal import Judgement

TEXT = """linear-bandits:
  asks: How far?
  figure: fig-x
  found:
    - claim: lin-one
      holds: It holds.
      fails: It fails.
      open: It is open.
      says: "The share is {interval:.2f}, printed {printed:.2f}, of {runs:.0f} runs."
"""


@pytest.fixture
def said(sandbox):
    """Return what the chapter says after a verdict."""
    sandbox.add("book/findings.yml", TEXT)

    def say(verdict, measured=-0.5, low=-0.6, high=-0.4, **facts):
        found = Judgement("lin-one", "", verdict, measured=measured, low=low, high=high,
                          facts={"runs": 7, **facts})  # fmt: skip
        board = scoreboard.board(claims.ledger(), [Evidence(found, "linear-bandits", "live", "")])
        chapters = findings.read(sandbox.project, claims.ledger())
        return findings.part(board, sandbox.pages, chapters, "linear-bandits")

    return say


@pytest.mark.parametrize(
    ("verdict", "meaning"),
    [
        ("reproduced", "**It holds.**"),
        ("direction only", "**It holds.**"),
        ("not reproduced", "**It fails.**"),
        ("refuted", "**It fails.**"),
        ("undecided", "**It is open.**"),
        ("vacuous at this scale", "**It is open.**"),
    ],
)
def test_the_verdict_chooses_the_words(said, verdict, meaning):
    text = said(verdict)
    assert text.startswith(
        f"- {meaning} The share is −0.50 [−0.60, −0.40], printed 0.05, of 7 runs."
    )
    assert 'href="../claims/lin-one.html"' in text
    assert verdict in text


def test_what_was_not_run_says_so(said):
    assert "- **It is open.** Not run here." in said("not run", None, None, None)


def test_a_number_without_interval_stands_alone(said):
    assert "The share is 0.50, printed" in said("reproduced", 0.5, 0.5, 0.5)


def test_findings_that_no_claim_decides_are_refused(sandbox, said):
    sandbox.edit("book/findings.yml", "lin-one", "clu-one")
    with pytest.raises(BookError, match="linear-bandits has no claim 'clu-one'"):
        said("reproduced")
    sandbox.edit("book/findings.yml", "clu-one", "lin-one")
    sandbox.edit("book/findings.yml", "runs:", "walks:")
    with pytest.raises(BookError, match="what lin-one says fails with 'walks'"):
        said("reproduced")
    sandbox.edit("book/findings.yml", "      fails: It fails.\n", "")
    with pytest.raises(BookError, match="missing 1 required"):
        said("reproduced")


def test_front_and_map_lead_to_chapters_and_claims(sandbox, said, monkeypatch):
    said("reproduced")
    monkeypatch.setattr(findings, "FRONT", ("linear-bandits",))
    found = Judgement("lin-one", "", "refuted", measured=1, low=1, high=1, facts={"runs": 1})
    board = scoreboard.board(claims.ledger(), [Evidence(found, "linear-bandits", "live", "")])
    chapters = findings.read(sandbox.project, claims.ledger())
    front = findings.front(board, sandbox.pages, chapters, lambda *names: f"FIGURE {names}")
    assert "{doc}`Linear bandits </foundations/linear-bandits>`" in front
    assert "**It fails.**" in front and "FIGURE ('linear-bandits', 'fig-x')" in front
    chart = findings.chart(board, sandbox.pages, chapters)
    assert (
        "*How far?*" in chart and "It fails.\n" in chart and 'href="claims/lin-one.html"' in chart
    )
