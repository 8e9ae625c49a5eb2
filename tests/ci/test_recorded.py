"""What leaves the build: recorded results, citations, and the scoreboard on the terminal."""

import json

import pytest

from ci import cite, record, runs, scoreboard
from lib.errors import BookError


@pytest.fixture
def borrowed(sandbox):
    """A table that the run did not compute but read from results/."""
    return {**sandbox.table, "name": "movielens", "source": "recorded"}


def test_record_copies_live_tables_with_their_provenance(sandbox, borrowed):
    sandbox.run(journal=[sandbox.data, sandbox.table, borrowed])
    chapter = sandbox.chapters["linear-bandits"]
    written = record.record(sandbox.project, chapter, [])
    assert [path.name for path in written] == ["regret.csv", "provenance.json"]
    assert written[0].read_text() == "t,regret\n1,0.5\n"
    noted = record.recorded(sandbox.project, "linear-bandits")
    assert set(noted) == {"regret"}
    assert noted["regret"]["sha256"] == sandbox.table["sha256"]
    assert noted["regret"]["parameters"]["T"] == 20_000
    assert noted["regret"]["data"] == {"ml-1m": "d1"}
    assert noted["regret"]["date"] == "2026-02-03T04:05:06+00:00"


def test_record_keeps_the_provenance_of_tables_it_does_not_touch(sandbox):
    sandbox.add("results/linear-bandits/provenance.json", '{"old": {"sha256": "00"}}')
    sandbox.run(journal=[sandbox.table])
    record.record(sandbox.project, sandbox.chapters["linear-bandits"], ["regret"])
    assert set(record.recorded(sandbox.project, "linear-bandits")) == {"old", "regret"}


def test_record_refuses_what_it_cannot_copy(sandbox, borrowed):
    chapter = sandbox.chapters["linear-bandits"]
    with pytest.raises(BookError, match="no finished run of profile book yet; `regretbook run"):
        record.record(sandbox.project, chapter, [])
    sandbox.run(journal=[sandbox.table, borrowed])
    with pytest.raises(BookError, match="no table 'regrets'; did you mean regret"):
        record.record(sandbox.project, chapter, ["regrets"])
    with pytest.raises(BookError, match="no table that it computed itself"):
        record.record(sandbox.project, chapter, ["movielens"])
    assert not sandbox.project.results.exists()


def test_record_takes_no_run_of_another_profile(sandbox):
    chapter = sandbox.chapters["linear-bandits"]
    sandbox.run(journal=[sandbox.table], profile="smoke")
    with pytest.raises(BookError, match="no finished run of profile book"):
        record.record(sandbox.project, chapter, [])
    assert record.record(sandbox.project, chapter, [], profile="smoke")


def test_bibtex_names_version_commit_and_results(sandbox):
    run = sandbox.run(journal=[sandbox.table])
    entry = cite.bibtex(sandbox.project, sandbox.chapters["linear-bandits"], run)
    assert entry.splitlines() == [
        "@incollection{regretbook-linear-bandits,",
        "  author    = {Doe, Jane and {A Team}},",
        "  title     = {Linear bandits},",
        "  booktitle = {The Regret Book},",
        "  year      = {2026},",
        "  note      = {Version 1.2.0, commit 0123456789ab, "
        f"results sha256:{cite.results_digest(run)[:16]}, profile book}}",
        "}",
    ]


def test_the_digest_of_results_depends_on_tables_alone(sandbox, borrowed):
    first = cite.results_digest(sandbox.run(journal=[sandbox.table, borrowed]))
    assert (
        cite.results_digest(sandbox.run(journal=[borrowed, sandbox.data, sandbox.table])) == first
    )
    other = {**sandbox.table, "sha256": "cd" * 32}
    assert cite.results_digest(sandbox.run(journal=[other, borrowed])) != first


def test_the_last_run_is_the_newest_finished_one(sandbox):
    book = sandbox.run()
    smoke = sandbox.run(profile="smoke")
    for run, day, status in ((book, 5, "ok"), (smoke, 7, "ok")):
        info = {**run.info, "started": f"2026-03-0{day}T00:00:00+00:00", "status": status}
        (run.folder / "run.json").write_text(json.dumps(info))
    assert runs.last(sandbox.project, "linear-bandits").folder == smoke.folder
    info = {**smoke.info, "status": "failed"}
    (smoke.folder / "run.json").write_text(json.dumps(info))
    assert runs.last(sandbox.project, "linear-bandits").folder == book.folder


def test_claims_of_the_last_run_as_text_and_as_json(sandbox):
    sandbox.run(journal=[{**sandbox.claim, "verdict": "refuted"}, sandbox.claim])
    text = scoreboard.as_text(sandbox.project, None, "table")
    assert "linear-bandits: 1 reproduced, 1 not run" in text
    assert "lin-one  reproduced             0.031 [0.025, 0.04] share, printed 0.05" in text
    rows = json.loads(scoreboard.as_text(sandbox.project, "linear-bandits", "json"))
    assert [(row["id"], row["verdict"]) for row in rows] == [
        ("lin-one", "reproduced"),
        ("lin-two", "not run"),
    ]
    assert rows[0]["print"] == {"value": 0.05, "unit": "share"}
    with pytest.raises(BookError, match="did you mean linear-bandits"):
        scoreboard.as_text(sandbox.project, "linear", "table")
