"""The page of a claim says what the verdict rests on, and links to it."""

import json
import os
import re
import subprocess

import pytest
from bs4 import BeautifulSoup

from ci import claimpages, cli, evidence, report, scoreboard
from ci.history import Past
from lib import claims
from lib.journal import Judgement
from lib.paths import CODE

FAILED = Judgement(
    "lin-one", "", "refuted", measured=0.2, low=0.04, high=0.3, unit="share", trials=20,
    figure="fig-x", note="of $d$", control=[0.9, 0.8, 1.0],
)  # fmt: skip


FIGURE = '<figure id="fig-x"><svg viewBox="0 0 1 1" aria-label="Regret"></svg></figure>'
LIVE = FAILED._replace(verdict="undecided")


@pytest.fixture
def made(sandbox):
    """Return the pages of the claims after a run with some judgements."""

    def make(*entries, profile="book", past=None):
        past = past or {}
        run = sandbox.run(entries=entries)
        found = evidence.of_runs([(sandbox.pages["linear-bandits"], run)])
        board = scoreboard.board(claims.ledger(), found)
        shown = {"linear-bandits": claimpages.Shown({"fig-x": FIGURE}, {"regret": "t/regret.csv"})}
        book = claimpages.Book(sandbox.project, board, sandbox.pages, profile, past, shown)
        return {name: data.decode() for name, data in claimpages.files(book).items()}

    return make


def test_there_is_a_small_page_for_every_claim(made):
    pages = {name: page for name, page in made(FAILED).items() if name.endswith(".html")}
    assert set(pages) == {"lin-one.html", "lin-two.html", "clu-one.html"}
    assert all(len(page) < 10_000 for page in pages.values())


def test_a_page_shows_number_rule_reason_run_and_citation(made):
    text = BeautifulSoup(made(FAILED)["lin-one.html"], "html.parser")
    said = " ".join(text.get_text(" ").split())
    for part in (
        "theorem", "Theorem 1", "printed 0.05 share", "refuted", "0.2 [0.04, 0.3]", "20 trials",
        "Here printed = 0.05.", "reproduced if measured ≤ printed measured <= printed : holds in a",
        "regretbook run linear-bandits", "@incollection{regretbook-lin-one", "control 0.9",
    ):  # fmt: skip
        assert part in said, part
    assert text.find("a", href="../foundations/linear-bandits.html#fig-x")
    assert text.find("a", href="../scoreboard.html#claim-lin-one")
    assert "control 0.9" in text.find("svg")["aria-label"]


def test_cite_prints_what_the_page_shows(made, capsys):
    text = BeautifulSoup(made(FAILED)["lin-one.html"], "html.parser")
    assert cli.main(["cite", "lin-one"]) == 0
    assert capsys.readouterr().out.strip() == text.find("pre", class_="bibtex").get_text().strip()


def test_a_page_shows_figure_tables_and_other_runs(made, sandbox):
    past = {("lin-one", ""): [
        Past("2025-01-01", "thesis", "c", "reproduced", 0.01), Past("", "", "", "", 1.0)
    ]}  # fmt: skip
    files = made(FAILED, past=past)
    text = BeautifulSoup(files["lin-one.html"], "html.parser")
    assert text.find("img", src="figures/fig-x.svg")["alt"] == "Regret"
    assert "prefers-color-scheme" in files["figures/fig-x.svg"]
    assert text.find("a", href="../t/regret.csv").get_text() == "regret.csv"
    assert "recorded 2025-01-01, profile thesis" in text.find("table").get_text(" ")
    assert "img" not in files["clu-one.html"]


def test_searches_know_every_claim_and_end_no_script(made, sandbox):
    sandbox.edit("book/claims/linear-bandits.yml", "It is smaller", "</script> smaller")
    text = made(FAILED)["names.js"]
    assert "</script>" not in text
    listed = json.loads(text.partition("=")[2].strip().rstrip(";"))
    statement, verdicts = listed["lin-one"]
    assert statement.startswith("The share is at most <span") and "<math>" in statement
    assert verdicts == ["refuted"]
    assert set(listed) == {"lin-one", "lin-two", "clu-one"}


def test_what_is_recorded_is_rerun_at_its_scale(made, sandbox):
    recorded = FAILED._replace(recorded="commit abc, 2026-01-01, profile thesis")
    assert "regretbook run linear-bandits --profile thesis" in made(recorded)["lin-one.html"]
    assert "--profile" not in made(FAILED)["lin-one.html"]


def test_one_style_of_verdicts_serves_the_book_its_claims_and_reports(made):
    shared = CODE / "book" / "_static" / "verdicts.css"
    assert shared in claimpages.STYLES and shared in report.STYLES
    assert '<link rel="stylesheet" href="verdicts.css">' in made()["clu-one.html"]
    styles = {*CODE.glob("ci/*.css"), *CODE.glob("book/_static/*.css")}
    again = [path.name for path in styles if re.search(r"--rb-\w+(-\w+)*: .*#", path.read_text())]
    assert again == [shared.name]


def test_what_was_not_measured_says_so_and_draws_nothing(made):
    page = made()["clu-one.html"]
    assert "Nothing was measured" in page
    assert "<svg" not in page


def test_formulas_are_typeset_without_a_script(made):
    page = made(FAILED)["lin-one.html"]
    assert "<math>" in page and re.findall(r'<script[^>]*src="([^"]*)"', page) == ["claim.js"]


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
