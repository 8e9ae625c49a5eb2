"""The guide: a verdict chooses the method, a search gives its constants, weak evidence says so."""

import io

import pandas as pd
import pytest

from ci import guide, scoreboard
from ci.guide import Search
from ci.scoreboard import Evidence
from lib import claims, toc
from lib.errors import BookError
from lib.journal import Judgement
from lib.paths import CODE, project_at

TEXT = """- setting: One user
  claim: lin-two
  use: LinUCB
  otherwise: OFUL
  search:
    page: linear-bandits
    table: regret
    columns: {width: width, alpha: threshold}
"""
EVALUATIONS = """policy,stage,point,width,trial,regret
LinUCB,short,0,0.1,0,1
LinUCB,long,0,0.1,0,9
LinUCB,long,0,0.1,1,9
LinUCB,long,1,0.2,0,8
LinUCB,long,1,0.2,1,7
OFUL,long,0,0.3,0,1
"""
WINNERS = """policy,pool,width,alpha,constants
LinUCB,fresh,0.5,,width 0.5
LinUCB,fixed,0.7,2,"width 0.7, threshold 2"
"""


@pytest.mark.parametrize(
    ("text", "columns", "where", "best"),
    [
        (EVALUATIONS, {"width": "w"}, {}, {"w": 0.2}),
        (WINNERS, {"width": "w", "alpha": "a"}, {"pool": "fresh"}, {"w": 0.5}),
        (WINNERS, {"width": "w", "alpha": "a"}, {"pool": "fixed"}, {"w": 0.7, "a": 2.0}),
        (WINNERS, {"constants": "with"}, {"pool": "fixed"}, {"with": "width 0.7, threshold 2"}),
        (WINNERS, {"width": "w"}, {"pool": "none"}, {}),
    ],
)
def test_the_winner_of_a_search_is_found_in_every_form_of_its_table(text, columns, where, best):
    search = Search("page", "table", columns, where)
    assert guide.winner(pd.read_csv(io.StringIO(text)), "LinUCB", search) == best


@pytest.fixture
def made(sandbox):
    """Return the guide after a verdict."""
    sandbox.add("book/guide.yml", TEXT)

    def make(verdict, share=1.0, costs=None):
        found = Judgement("lin-two", "advantage", verdict, "s", share, 0.5, 0.5, 0.5)
        run = sandbox.run(entries=[sandbox.table])
        (run.folder / sandbox.table.file).write_text(EVALUATIONS)
        board = scoreboard.board(claims.ledger(), [Evidence(found, "linear-bandits", "live", "")])
        choices = guide.read(sandbox.project, claims.ledger())
        pages = {name: (page, None) for name, page in sandbox.pages.items()}
        pages["linear-bandits"] = (sandbox.pages["linear-bandits"], run)
        return guide.part(sandbox.project, choices, board, pages, costs or {})

    return make


def test_a_verdict_chooses_the_method_and_its_constants(made):
    held = made("reproduced", costs={"LinUCB": 9.4})
    assert "<b>LinUCB</b>" in held and "width 0.2" in held and "9.4 µs" in held
    assert "weak evidence" not in held
    lost = made("refuted")
    assert "<b>OFUL</b>" in lost and "width 0.3" in lost and ">–<" in lost


def test_weak_evidence_says_so(made):
    assert "by default: the claim is undecided" in made("undecided")
    assert "<b>OFUL</b>" in made("undecided")
    assert "weak evidence: direction only, reduced scale" in made("direction only", share=0.2)


def test_a_row_that_no_claim_decides_is_refused(sandbox, made):
    sandbox.edit("book/guide.yml", "lin-two", "lin-gone")
    with pytest.raises(BookError, match="there is no claim 'lin-gone'"):
        made("reproduced")


def test_every_row_of_the_book_has_a_claim_and_a_search_of_this_tree():
    where = project_at(CODE)
    for choice in guide.read(where, claims.ledger(where)):
        page = where.book / f"{toc.find(choice.search.page, where).file}.md"
        assert f'"{choice.search.table}"' in page.read_text("utf-8")
