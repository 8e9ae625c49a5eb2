"""What earlier records said of a claim, from what git keeps of `results/`."""

import subprocess

import pytest

from ci import history, scoreboard, scorepage
from lib import claims, records
from lib.journal import Judgement
from lib.records import Origin, Record


@pytest.fixture
def record(sandbox):
    """Return a function that records a verdict and commits it."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(sandbox.project.root), *identity, *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init")

    def write(day, verdict, measured, profile="thesis"):
        origin = Origin(f"2026-01-0{day}", profile, {}, 1, f"{day}" * 40, False, {}, "m", {})
        found = Judgement("lin-one", "", verdict, measured=measured, low=measured, high=measured)
        records.write(
            sandbox.project, profile, Record("linear-bandits", "index", {}, [found], origin)
        )
        git("add", ".")
        git("commit", "-m", verdict)

    return write


def test_records_are_known_oldest_first_and_without_repetitions(sandbox, record):
    assert history.read(sandbox.project) == {}
    record(1, "undecided", 0.1)
    record(2, "undecided", 0.1)
    record(3, "refuted", 0.2)
    found = history.read(sandbox.project)["lin-one", ""]
    assert [(each.date, each.verdict, each.commit) for each in found] == [
        ("2026-01-01", "undecided", "1" * 12),
        ("2026-01-03", "refuted", "3" * 12),
    ]
    assert list(history.changed({("lin-one", ""): found})) == [("lin-one", "")]


def test_two_profiles_are_no_change(sandbox, record):
    record(1, "undecided", 0.1, "book")
    record(2, "refuted", 0.2, "thesis")
    assert history.changed(history.read(sandbox.project)) == {}


def test_the_scoreboard_lists_what_changed(sandbox, record):
    record(1, "undecided", 0.1)
    board = scoreboard.board(claims.ledger(), [])

    def page():
        return scorepage.page(board, sandbox.pages, "book", history.read(sandbox.project))

    assert "its verdict is what it was" in page()
    record(2, "refuted", 0.2)
    changed = page()[page().index("## Verdicts that changed") :]
    assert changed.index("undecided") < changed.index("refuted")
    assert 'href="claims/lin-one.html"' in changed


def test_what_is_not_committed_counts_and_damage_says_nothing(sandbox):
    origin = Origin("2026-01-01", "thesis", {}, 1, "1" * 40, False, {}, "m", {})
    found = Judgement("lin-one", "", "refuted", measured=1.0, low=1.0, high=1.0)
    path = records.write(
        sandbox.project, "thesis", Record("linear-bandits", "index", {}, [found], origin)
    )
    assert len(history.read(sandbox.project)["lin-one", ""]) == 1
    path.write_text('{"origin": 3}')
    assert history.read(sandbox.project) == {}
