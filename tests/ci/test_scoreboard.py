"""The scoreboard shows of each question the evidence of the largest scale, and hides nothing."""

import itertools
import json
import re

import pytest

from ci import evidence, scoreboard, scorepage
from ci.scoreboard import Evidence
from lib import claims, paths, records
from lib.journal import Judgement
from lib.records import Origin, Record

LEDGER = """- id: lin-both
  nature: experiment
  statement: It is smaller.
  source: Figure 1
  number: {value: 20, unit: percent}
  printed: {T: 1000}
  questions:
    reconstruction: {measure: x, reproduced: "measured > 0"}
    advantage: {measure: x, unit: points, control: random, reproduced: "measured > 1"}
- id: lin-bound
  nature: theorem
  headline: true
  statement: "It is at most $a<b$ & more."
  source: Theorem 1
  rule: {measure: x, reproduced: "measured <= 1"}
- id: lin-same
  nature: algebra
  statement: Both are one.
  source: Lemma 2
  rule: {measure: x, reproduced: "measured == 0"}
"""


def judgement(id, question="", verdict="reproduced", share=None, **more):
    scale = "" if share is None else "printed scale" if share == 1 else "reduced (T 10 of 1000)"
    return Judgement(id, question, verdict, scale, share, **{"measured": 2.0, "low": 1.0,
                     "high": 3.0, "unit": "percent", "trials": 4, **more})  # fmt: skip


def live(*words, **more):
    return Evidence(judgement(*words, **more), "linear-bandits", "live", "a" * 40)


def recorded(*words, **more):
    return Evidence(judgement(*words, **more), "linear-bandits/index", "recorded", "b" * 40)


@pytest.fixture
def ledger(sandbox):
    sandbox.add("book/claims/linear-bandits.yml", LEDGER)
    return claims.ledger(sandbox.project)


def rows(board, chapter="linear-bandits"):
    return {(row.claim.id, row.question): row for row in board[chapter]}


def test_a_row_for_each_question_and_not_run_without_evidence(ledger):
    board = scoreboard.board(ledger, [live("lin-both", "advantage")])
    assert list(board) == ["linear-bandits", "clustering-of-bandits"]
    found = {key: row.verdict for key, row in rows(board).items()}
    assert found == {
        ("lin-both", "reconstruction"): "not run",
        ("lin-both", "advantage"): "reproduced",
        ("lin-bound", ""): "not run",
        ("lin-same", ""): "not run",
    }


SMALL = live("lin-both", "advantage", "undecided", 0.01)
LARGE = recorded("lin-both", "advantage", "reproduced", 1.0)
SKIPPED = live("lin-both", "advantage", "not run", measured=None, low=None, high=None)


@pytest.mark.parametrize(
    ("given", "winner"),
    [
        ([SMALL, LARGE], LARGE),
        ([SMALL, recorded("lin-both", "advantage", "refuted", 0.001)], SMALL),
        ([SMALL, recorded("lin-both", "advantage", "refuted", 0.01)], SMALL),  # a tie: live
        ([SKIPPED, recorded("lin-both", "advantage", "refuted", 0.001)], 1),
        ([SKIPPED], SKIPPED),
        ([live("lin-both", "advantage", share=1.0), LARGE], 0),
    ],
)
def test_the_evidence_of_the_largest_scale_counts(ledger, given, winner):
    expected = given[winner] if isinstance(winner, int) else winner
    for order in itertools.permutations(given):
        found = rows(scoreboard.board(ledger, order))["lin-both", "advantage"]
        assert found.evidence == expected


def test_live_counts_for_claims_without_scale(ledger):
    given = [live("lin-bound"), recorded("lin-bound", verdict="refuted")]
    for order in itertools.permutations(given):
        assert rows(scoreboard.board(ledger, order))["lin-bound", ""].verdict == "reproduced"


def test_of_claims_without_scale_the_larger_profile_counts(ledger):
    large = recorded("lin-bound", verdict="refuted")._replace(profile="thesis")
    for order in itertools.permutations([live("lin-bound"), large]):
        row = rows(scoreboard.board(ledger, order))["lin-bound", ""]
        assert (row.evidence, row.others) == (large, (live("lin-bound"),))


def test_evidence_of_a_claim_that_left_the_ledger_is_ignored(ledger):
    board = scoreboard.board(ledger, [live("lin-gone"), live("lin-both", "gone")])
    assert {row.verdict for row in board["linear-bandits"]} == {"not run"}


def test_json_has_a_row_for_each_question_with_everything_that_decided(ledger):
    control = live("lin-both", "reconstruction", "undecided", 0.01, needed=40, control=[1, 0, 2],
                   note="why")  # fmt: skip
    board = scoreboard.board(ledger, [control, LARGE])
    plain = json.loads(scoreboard.as_text(board, "linear-bandits", "json"))
    assert plain[0] == {
        "id": "lin-both", "chapter": "linear-bandits", "page": "linear-bandits",
        "nature": "experiment", "question": "reconstruction", "verdict": "undecided",
        "scale": "reduced (T 10 of 1000)", "trials": 4, "printed": 20, "measured": 2.0, "low": 1.0,
        "high": 3.0, "unit": "percent", "rule": "reproduced: measured > 0", "source": "Figure 1",
        "evidence": "live", "control": 1, "needed": 40, "note": "why",
    }  # fmt: skip
    assert (plain[1]["evidence"], plain[1]["scale"]) == ("recorded bbbbbbbbbbbb", "printed scale")
    unknown = {key: plain[2][key] for key in ("page", "verdict", "measured", "evidence")}
    assert unknown == {"page": "", "verdict": "not run", "measured": None, "evidence": ""}
    assert len(json.loads(scoreboard.as_text(board, None, "json"))) == 5


def test_the_terminal_shows_scale_trials_and_what_would_decide(ledger):
    board = scoreboard.board(ledger, [live("lin-both", "advantage", "undecided", 0.01, needed=40)])
    text = scoreboard.as_text(board, None, "table")
    assert "linear-bandits: 1 undecided, 3 not run" in text
    line = next(line for line in text.splitlines() if "2 [1, 3]" in line)
    assert "advantage" in line
    assert "4 trials; reduced (T 10 of 1000); about 40 trials would decide" in line


def test_natures_are_counted_apart(sandbox, ledger):
    given = [live("lin-bound"), live("lin-same", verdict="refuted"), LARGE]
    page = scorepage.page(scoreboard.board(ledger, given), sandbox.pages)
    counted = sandbox.numbers(page)
    assert counted["Algebra"] == [1, 0, 0, 0, 1, 0, 0, 0]
    assert counted["Theorem"] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert counted["Experiment, reconstruction"] == [1, 0, 0, 0, 0, 0, 0, 1]
    assert counted["Experiment, advantage"] == [2, 1, 0, 0, 0, 0, 0, 1]
    assert counted["Whole book"] == [5, 2, 0, 0, 1, 0, 0, 2]


def test_tables_link_to_the_page_of_the_evidence(sandbox, ledger):
    figure = recorded("lin-both", "advantage", share=1.0, figure="fig-x")
    board = scoreboard.board(ledger, [figure])
    top = scorepage.page(board, sandbox.pages)
    assert '<a href="foundations/linear-bandits.html#fig-x">2 [1, 3] percent</a>' in top
    assert "<small>4 trials; printed scale; recorded bbbbbbbbbbbb</small>" in top
    own = scorepage.verdicts(board, sandbox.pages, "linear-bandits")
    assert '<a href="linear-bandits.html#fig-x">' in own
    plain = scoreboard.board(ledger, [live("lin-bound")])
    assert '<a href="linear-bandits.html">2 [1, 3] percent</a>' in scorepage.verdicts(
        plain, sandbox.pages, "linear-bandits"
    )


def test_a_table_has_each_row_once_headlines_first_and_escaped(sandbox, ledger):
    board = scoreboard.board(ledger, [live("lin-both", "advantage"), live("lin-bound")])
    table = scorepage.verdicts(board, sandbox.pages, "linear-bandits")
    ids = re.findall(r'<tr id="([^"]+)"', table)
    assert ids == [
        "claim-lin-bound",
        "claim-lin-both",
        "claim-lin-both-advantage",
        "claim-lin-same",
    ]
    assert "<mo>&lt;</mo>" in table and "</span> &amp; more." in table
    assert "\n\n" not in table  # an empty line would end the HTML block in Markdown
    for row in re.findall(r"<tr id=.*?</tr>", table):
        assert row.count("<td>") == len(scorepage.TITLES)


def test_the_scoreboard_leaves_notes_and_sizes_to_the_page_of_the_claim(sandbox, ledger):
    noted = live("lin-both", "advantage", "undecided", 0.01, needed=40, note="for a reason")
    board = scoreboard.board(ledger, [noted])
    own = scorepage.verdicts(board, sandbox.pages, "linear-bandits")
    assert "reduced (T 10 of 1000)" in own and "for a reason" in own
    top = scorepage.page(board, sandbox.pages)
    assert "<small>4 trials; reduced; about 40 trials would decide; live</small>" in top
    assert "for a reason" not in top and "T 10" not in top
    assert "It is at most" in top and 'data-scale="reduced"' in top


def test_the_cells_of_a_printed_table_are_one_finding_that_opens(sandbox, ledger):
    cells = {id: ledger[id]._replace(group="Table <1>") for id in ("lin-bound", "lin-same")}
    ledger = {**ledger, **cells}
    given = [live("lin-bound"), live("lin-same", verdict="direction only")]
    board = scoreboard.board(ledger, given)
    assert [len(each) for each in scoreboard.findings(board["linear-bandits"])] == [1, 1, 2]
    assert scoreboard.counts(board["linear-bandits"])["direction only"] == 1
    assert scoreboard.counts(board["linear-bandits"])["reproduced"] == 0
    table = scorepage.verdicts(board, sandbox.pages, "linear-bandits")
    summary = "<summary>Table &lt;1&gt;: 1 reproduced, 1 direction only</summary>"
    assert table.count("<details>") == 1 and summary in table
    assert set(re.findall(r'<tr id="([^"]+)"', table)) == {
        "claim-lin-bound", "claim-lin-both", "claim-lin-both-advantage", "claim-lin-same"
    }  # fmt: skip
    assert "4 claims, 4 verdicts (a printed table counts once):" in scorepage.glance(board)
    page = scorepage.page(board, sandbox.pages)
    assert sandbox.numbers(page)["Whole book"][0] == 4
    mixed = scoreboard.board(ledger, [live("lin-bound"), live("lin-same", verdict="refuted")])
    assert scoreboard.counts(mixed["linear-bandits"])["undecided"] == 1


def test_the_front_page_and_a_chapter_count_badges(sandbox, ledger):
    board = scoreboard.board(ledger, [live("lin-bound"), LARGE])
    assert "4 claims, 5 verdicts:" in scorepage.glance(board)
    assert '<b>2</b> <span class="rb-verdict rb-reproduced">' in scorepage.glance(board)
    assert "rb-refuted" not in scorepage.glance(board)
    tally = scorepage.tally(board, sandbox.pages, "clustering-of-bandits")
    assert 'href="../../scoreboard.html?chapter=clustering-of-bandits&amp;verdict=not+run' in tally
    assert "1 claim, 1 verdict:" in tally
    assert "rb-refuted" not in tally


def test_a_chapter_without_claims_says_so(sandbox, ledger):
    board = scoreboard.board(ledger, [])
    assert "no claim of this chapter" in scorepage.verdicts(board, sandbox.pages, "dueling")


def test_live_and_recorded_judgements_are_gathered(sandbox, ledger):
    found = judgement("lin-both", "advantage", share=0.01)
    run = sandbox.run(entries=[found])
    origin = Origin("2026-01-01", "thesis", {}, 1, "c" * 40, False, {}, "m", {})
    better = found._replace(verdict="direction only", share=1.0, scale="printed scale")
    record = Record("linear-bandits", "index", {}, [better], origin)
    records.write(sandbox.project, "thesis", record)
    gathered = evidence.gather(sandbox.project, [(sandbox.pages["linear-bandits"], run)])
    assert [each.source for each in gathered] == ["live", "recorded"]
    row = rows(scoreboard.board(ledger, gathered))["lin-both", "advantage"]
    assert (row.verdict, row.where) == ("direction only", "recorded cccccccccccc")


def test_every_verdict_has_a_style_in_light_and_dark_and_a_sign(sandbox):
    style = (paths.CODE / "book" / "_static" / "verdicts.css").read_text(encoding="utf-8")
    signs = []
    for name in claims.CLASSES.values():
        light, dark = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\);", style).groups()
        assert light != dark
        signs += re.findall(rf'\.{name}::before {{\s*content: "(.+?)" / ""', style)
    assert len(signs) == len(set(signs)) == len(claims.VERDICTS)
