"""What leaves the build: citations, the last run, and the scoreboard on the terminal."""

import json

import pytest

from ci import build, cite, cli, runs


@pytest.fixture
def borrowed(sandbox):
    """A table that the run did not compute but read from results/."""
    return sandbox.table._replace(name="movielens", file="tables/movielens.csv", source="recorded")


def test_bibtex_names_version_commit_and_results(sandbox):
    run = sandbox.run(entries=[sandbox.table])
    entry = cite.bibtex(sandbox.project, sandbox.pages["linear-bandits"], run)
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


def test_a_chapter_is_cited_page_by_page(sandbox, capsys):
    sandbox.run("clustering-of-bandits/theory")
    assert cli.main(["cite", "clustering-of-bandits"]) == 0
    out = capsys.readouterr().out
    assert "@incollection{regretbook-clustering-of-bandits-index," in out
    assert "@incollection{regretbook-clustering-of-bandits-theory," in out
    assert out.count("not executed") == 1
    assert cli.main(["cite", "clustering-of-bandits/theory"]) == 0
    assert capsys.readouterr().out.count("@incollection") == 1


def test_the_digest_of_results_depends_on_tables_alone(sandbox, borrowed):
    first = cite.results_digest(sandbox.run(entries=[sandbox.table, borrowed]))
    again = sandbox.run(entries=[borrowed, sandbox.data, sandbox.table])
    assert cite.results_digest(again) == first
    other = sandbox.table._replace(sha256="cd" * 32)
    assert cite.results_digest(sandbox.run(entries=[other, borrowed])) != first


def test_the_last_run_is_the_newest_finished_one(sandbox):
    page = sandbox.pages["linear-bandits"]
    book = sandbox.rewrite(sandbox.run(), started="2026-03-05T00:00:00+00:00")
    smoke = sandbox.rewrite(sandbox.run(profile="smoke"), started="2026-03-07T00:00:00+00:00")
    assert runs.last(sandbox.project, page).folder == smoke.folder
    sandbox.rewrite(smoke, status="failed")
    assert runs.last(sandbox.project, page).folder == book.folder


def claims(capsys, *words):
    assert cli.main(["claims", *words]) == 0
    return capsys.readouterr().out


def test_claims_of_the_published_runs_as_text_and_as_json(sandbox, capsys):
    sandbox.run(entries=[sandbox.claim._replace(verdict="refuted"), sandbox.claim])
    text = claims(capsys)
    assert "linear-bandits: 1 reproduced, 1 not run" in text
    assert "0.031 [0.025, 0.04] share" in text
    rows = json.loads(claims(capsys, "--chapter", "linear-bandits", "--format", "json"))
    assert [(row["id"], row["question"], row["verdict"]) for row in rows] == [
        ("lin-one", "", "reproduced"),
        ("lin-two", "advantage", "not run"),
    ]
    assert list(rows[0]) == [
        "id",
        "chapter",
        "page",
        "nature",
        "question",
        "verdict",
        "scale",
        "trials",
        "printed",
        "measured",
        "low",
        "high",
        "unit",
        "rule",
        "source",
        "evidence",
        "control",
        "needed",
        "note",
    ]
    assert (rows[0]["evidence"], rows[0]["page"]) == ("live", "linear-bandits")


def test_a_run_of_ones_own_changes_nothing_that_is_published(sandbox, capsys):
    sandbox.run(entries=[sandbox.claim])
    before = claims(capsys)
    page = sandbox.pages["linear-bandits"]
    mine = sandbox.project.root / "mine"
    sandbox.run(entries=[sandbox.claim._replace(verdict="refuted")], profile="smoke").folder.rename(
        mine
    )
    assert runs.published(sandbox.project, page, "smoke") is None
    assert claims(capsys) == before
    assert "1 refuted" in claims(capsys, "--run", str(mine))


def test_runs_of_ones_own_are_listed_only_where_asked(sandbox, capsys):
    sandbox.run()
    sandbox.fake_papermill()
    assert cli.main(["run", "linear-bandits", "--profile", "smoke"]) == 0
    capsys.readouterr()
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert "published: 2026-02-03 04:05 UTC, profile book" in out and "smoke" not in out
    mine = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    assert cli.main(["list", "--run", str(mine)]) == 0
    out = capsys.readouterr().out
    assert out.count("your run: none yet") == 2 and "profile smoke" in out


def test_a_run_of_ones_own_is_not_what_a_build_takes(sandbox, monkeypatch):
    """The very run that a build would make is there, and the build makes its own all the same."""
    monkeypatch.setattr(build, "_render", lambda project, site, tree: True)
    executed = sandbox.fake_papermill()
    assert cli.main(["run", "linear-bandits"]) == 0
    assert cli.main(["build", "linear-bandits"]) == 0
    assert executed == ["linear-bandits"] * 2
    published = runs.published(sandbox.project, sandbox.pages["linear-bandits"])
    assert cli.main(["run", "linear-bandits", "-p", "T=3"]) == 0
    assert runs.published(sandbox.project, sandbox.pages["linear-bandits"]) == published


def test_a_claim_is_cited_with_its_verdict_and_evidence(sandbox, capsys):
    sandbox.run(entries=[sandbox.claim])
    assert cli.main(["cite", "lin-one"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("@incollection{regretbook-lin-one,")
    assert "theorem, reproduced: 0.031 [0.025, 0.04] share" in out
    assert "live" in out
    assert "commit 0123456789ab" in out
    assert cli.main(["cite", "lin-too"]) == 2
    assert cli.main(["cite", "clu-one"]) == 0
    assert "experiment, advantage, not run" in capsys.readouterr().out


def test_a_recorded_verdict_names_its_commit_once(sandbox, capsys):
    recorded = "commit abcdef0, 2026-01-01, profile thesis"
    sandbox.run(entries=[sandbox.claim._replace(recorded=recorded)])
    assert cli.main(["cite", "lin-one"]) == 0
    out = capsys.readouterr().out
    assert recorded in out and out.count("abcdef0") == 1


def test_a_run_of_ones_own_is_cited_with_what_was_changed(sandbox, capsys):
    sandbox.fake_papermill([sandbox.table, sandbox.claim])
    target = str(sandbox.project.root / "mine")
    assert cli.main(["run", "linear-bandits", "-p", "T=7", "--out", target]) == 0
    capsys.readouterr()
    assert cli.main(["cite", "linear-bandits", "--run", target]) == 0
    assert "with T = 7" in capsys.readouterr().out
    assert cli.main(["cite", "lin-one", "--run", target]) == 0
    assert "reproduced" in capsys.readouterr().out
    assert cli.main(["cite", "linear-bandits"]) == 0
    assert "not executed" in capsys.readouterr().out, "a private run is not what is published"
    assert cli.main(["cite", "clustering-of-bandits", "--run", target]) == 2
