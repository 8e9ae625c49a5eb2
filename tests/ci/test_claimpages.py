"""The page of a claim says what the verdict rests on, and links to it."""

import os
import subprocess

import pytest
from bs4 import BeautifulSoup

from ci import claimpages, evidence, scoreboard
from lib import claims
from lib.journal import Judgement

FAILED = Judgement(
    "lin-one", "", "refuted", measured=0.2, low=0.04, high=0.3, unit="share", trials=20,
    figure="fig-x", note="of $d$", control=[0.9, 0.8, 1.0],
)  # fmt: skip


@pytest.fixture
def made(sandbox):
    """Return the pages of the claims after a run with some judgements."""

    def make(*entries, profile="book"):
        run = sandbox.run(entries=entries)
        found = evidence.of_runs([(sandbox.pages["linear-bandits"], run)])
        board = scoreboard.board(claims.ledger(), found)
        return claimpages.pages(sandbox.project, board, sandbox.pages, profile)

    return make


def test_there_is_a_small_page_for_every_claim(made):
    pages = made(FAILED)
    assert set(pages) == {"lin-one.html", "lin-two.html", "clu-one.html"}
    assert all(len(page) < 10_000 for page in pages.values())


def test_a_page_shows_number_rule_reason_run_and_citation(made):
    text = BeautifulSoup(made(FAILED)["lin-one.html"], "html.parser")
    said = " ".join(text.get_text(" ").split())
    for part in (
        "theorem", "Theorem 1", "printed 0.05 share", "refuted", "0.2 [0.04, 0.3]", "20 trials",
        "Asked over [0.04, 0.3] with printed = 0.05", "measured <= printed holds in a part",
        "regretbook run linear-bandits", "@incollection{regretbook-lin-one", "control 0.9",
    ):  # fmt: skip
        assert part in said, part
    assert text.find("a", href="../foundations/linear-bandits.html#fig-x")
    assert text.find("a", href="../scoreboard.html#claim-lin-one")
    assert "control 0.9" in text.find("svg")["aria-label"]


def test_what_was_not_measured_says_so_and_draws_nothing(made):
    page = made()["clu-one.html"]
    assert "Nothing was measured" in page
    assert "<svg" not in page


def test_only_formulas_load_the_script_that_typesets_them(made):
    pages = made(FAILED)
    assert claimpages.MATHJAX in pages["lin-one.html"]
    assert claimpages.MATHJAX not in pages["clu-one.html"]


def test_another_profile_warns(made):
    assert "profile smoke" in made(FAILED, profile="smoke")["lin-one.html"]


def test_text_of_the_ledger_is_escaped(made, sandbox):
    sandbox.edit("book/claims/linear-bandits.yml", "It is smaller", "<script>1</script> smaller")
    assert "<script>1" not in made()["lin-two.html"]


def test_the_commit_that_wrote_a_rule_is_named(sandbox, made):
    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(sandbox.project.root), *identity, *words]
        later = {**os.environ, "GIT_COMMITTER_DATE": f"{len(words)} Jan 2030 00:00:00 +0000"}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=later)
        return done.stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    first = git("rev-parse", "HEAD")[:12]
    assert f"<code>{first}</code>" in made()["lin-two.html"]
    sandbox.edit("book/claims/linear-bandits.yml", "measured < 0", "measured < -1")
    assert "last changed by commit" not in made()["lin-two.html"], "no commit has it yet"
    git("commit", "-a", "-m", "another rule")
    assert f"<code>{git('rev-parse', 'HEAD')[:12]}</code>" in made()["lin-two.html"]
    assert f"<code>{first}</code>" in made()["lin-one.html"]
