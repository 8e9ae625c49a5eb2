"""Recording: tables and verdicts go into results/ with their origin, and nothing goes unnoticed."""

import hashlib

import pytest

from ci import cli, record, runs
from lib import records
from lib.errors import BookError
from lib.journal import Judgement

NAME = "linear-bandits"
GOOD = Judgement("lin-one", "", "reproduced", measured=0.031, low=0.025, high=0.04, unit="share")
SKIPPED = Judgement("lin-one", "", "not run", note="no data")


@pytest.fixture
def borrowed(sandbox):
    """A table that the run did not compute but read from results/."""
    return sandbox.table._replace(name="movielens", file="tables/movielens.csv", source="recorded")


def another(sandbox, **changes):
    """A second table of the same content."""
    return sandbox.table._replace(name="widths", file="tables/widths.csv", **changes)


def recorded(sandbox, *names, profile="book", allow_dirty=False, page=NAME):
    pages = [sandbox.pages[page]]
    return record.record(sandbox.project, pages, list(names), profile, allow_dirty)


def kept(sandbox, chapter=NAME, page="index", profile="book"):
    return records.read(sandbox.project.results / chapter / profile / f"{page}.json")


def test_record_copies_live_tables_and_verdicts_with_their_origin(sandbox, borrowed):
    table = sandbox.table._replace(seconds=3.5)
    sandbox.run(entries=[sandbox.data, table, borrowed, GOOD])
    written = recorded(sandbox)
    assert [path.name for path in written] == ["regret.csv", "index.json"]
    assert written[0].read_text() == sandbox.content
    assert written[0] == sandbox.project.results / "linear-bandits/book/regret.csv"
    found = kept(sandbox)
    assert set(found.tables) == {"regret"}
    noted = found.tables["regret"]
    assert (noted.sha256, noted.caption, noted.seconds) == (table.sha256, table.caption, 3.5)
    assert noted.origin == found.origin
    assert found.origin.parameters["T"] == 20_000
    assert found.origin.data == {"ml-1m": "d1"}
    assert found.origin.date == "2026-02-03T04:05:06+00:00"
    assert (found.origin.commit, found.origin.dirty) == ("0123456789abcdef", False)
    assert found.judgements == [GOOD]
    assert found.rules == {"lin-one": "reproduced: measured <= printed; printed = 0.05"}


def test_tables_of_earlier_runs_keep_their_origin(sandbox):
    first = sandbox.run(entries=[sandbox.table, another(sandbox)])
    recorded(sandbox)
    sandbox.run(entries=[sandbox.table, another(sandbox, source="recorded")])
    sandbox.rewrite(runs.read(first.folder), commit="fedcba", started="2026-03-03T00:00:00+00:00")
    recorded(sandbox, "regret")
    tables = kept(sandbox).tables
    assert tables["regret"].origin.commit == "fedcba"
    assert tables["widths"].origin.commit == "0123456789abcdef"


def test_what_a_table_took_is_what_its_last_run_says(sandbox):
    """A run counts what the store already had (lib.results), so a longer time was a slower one."""
    for seconds in (500.0, 300.0):
        sandbox.run(entries=[sandbox.table._replace(seconds=seconds)])
        recorded(sandbox)
    assert kept(sandbox).tables["regret"].seconds == 300


def test_verdicts_are_those_of_the_last_run_unless_it_gave_none(sandbox):
    bad = GOOD._replace(verdict="not reproduced", measured=0.2, low=0.1, high=0.3)
    for entries, verdicts in (
        ([sandbox.table, SKIPPED], ["not run"]),
        ([sandbox.table, GOOD], ["reproduced"]),
        ([sandbox.table, SKIPPED], ["reproduced"]),
        ([sandbox.table, bad], ["not reproduced"]),
        ([sandbox.table], []),
    ):
        sandbox.run(entries=entries)
        recorded(sandbox)
        assert [judgement.verdict for judgement in kept(sandbox).judgements] == verdicts


def test_verdicts_of_a_page_without_tables_are_recorded(sandbox):
    sandbox.run(entries=[GOOD])
    assert [path.name for path in recorded(sandbox)] == ["index.json"]
    assert kept(sandbox).judgements == [GOOD]


def test_record_refuses_what_it_cannot_copy(sandbox, borrowed):
    with pytest.raises(BookError, match="no finished run of profile book yet; `regretbook run"):
        recorded(sandbox)
    with pytest.raises(BookError, match="no finished run of profile book yet"):
        recorded(sandbox, "regret")
    sandbox.run(entries=[sandbox.table, borrowed])
    with pytest.raises(BookError, match="no table 'regrets'; did you mean regret"):
        recorded(sandbox, "regrets")
    with pytest.raises(BookError, match=r"movielens is no table that the last run .* itself"):
        recorded(sandbox, "movielens")
    sandbox.run(entries=[borrowed])
    with pytest.raises(BookError, match="no table that it computed itself"):
        recorded(sandbox)
    assert not sandbox.project.results.exists()


def test_record_takes_no_run_of_another_profile_or_with_other_values(sandbox):
    run = sandbox.run(entries=[sandbox.table], profile="smoke")
    with pytest.raises(BookError, match="no finished run of profile book"):
        recorded(sandbox)
    assert recorded(sandbox, profile="smoke")
    sandbox.rewrite(run, parameters=run.info.parameters | {"T": 11})
    with pytest.raises(BookError, match="other values of T than profile smoke has; run it again"):
        recorded(sandbox, profile="smoke")


def test_a_run_of_uncommitted_files_is_refused_unless_allowed(sandbox):
    sandbox.rewrite(sandbox.run(entries=[sandbox.table]), dirty=True)
    with pytest.raises(BookError, match="local changes that no commit has; commit them"):
        recorded(sandbox)
    recorded(sandbox, allow_dirty=True)
    assert kept(sandbox).tables["regret"].origin.dirty


def test_a_table_that_is_large_or_was_changed_is_refused(sandbox):
    run = sandbox.run(entries=[sandbox.table])
    (run.folder / "tables/regret.csv").write_text(sandbox.content.replace("5", "6"))
    with pytest.raises(BookError, match="one was changed or damaged since; `regretbook run"):
        recorded(sandbox)
    large = "t,regret\n" + "1,0.5\n" * 200_000
    sha256 = hashlib.sha256(large.encode()).hexdigest()
    run = sandbox.run(entries=[sandbox.table._replace(sha256=sha256)])
    (run.folder / "tables/regret.csv").write_text(large)
    sandbox.rewrite(run)
    with pytest.raises(BookError, match=r"regret has 1\.2 MB.*keep fewer checkpoints"):
        recorded(sandbox)
    assert not sandbox.project.results.exists()


def test_verdicts_rest_on_recorded_experiments(sandbox):
    both = [sandbox.table._replace(seconds=1.0), another(sandbox, seconds=1.0)]
    sandbox.run(entries=both)
    with pytest.raises(BookError, match="computed widths too, and its verdicts rest on it"):
        recorded(sandbox, "regret")
    recorded(sandbox)
    assert recorded(sandbox, "regret")


def test_a_rule_that_changed_after_the_run_is_refused(sandbox):
    sandbox.run(entries=[sandbox.table, GOOD])
    sandbox.edit("book/claims/linear-bandits.yml", "measured <= printed", "measured > printed")
    with pytest.raises(BookError, match="the rule of lin-one changed after the last run"):
        recorded(sandbox)


PAGES = ("clustering-of-bandits/index", "clustering-of-bandits/theory")


def test_a_chapter_is_recorded_page_by_page(sandbox):
    for page, entries in zip(PAGES, ([sandbox.table], [another(sandbox)]), strict=True):
        sandbox.run(page, entries)
    pages = [sandbox.pages[page] for page in PAGES]
    record.record(sandbox.project, pages, [])
    assert set(kept(sandbox, "clustering-of-bandits", "index").tables) == {"regret"}
    assert set(kept(sandbox, "clustering-of-bandits", "theory").tables) == {"widths"}
    assert [p.name for p in record.record(sandbox.project, pages, ["widths"])] == [
        "widths.csv",
        "theory.json",
    ]
    sandbox.run(PAGES[1], [sandbox.table])
    with pytest.raises(BookError, match="two pages have a table 'regret'; rename one"):
        record.record(sandbox.project, pages, [])


def test_an_experiment_that_moved_to_another_page_takes_its_record_along(sandbox):
    clue = Judgement("clu-one", "advantage", "reproduced", measured=0.5, low=0.4, high=0.6)
    sandbox.run(PAGES[0], [sandbox.table, clue])
    recorded(sandbox, page=PAGES[0])
    sandbox.run(PAGES[1], [sandbox.table, clue])
    recorded(sandbox, page=PAGES[1])
    assert set(kept(sandbox, "clustering-of-bandits", "theory").tables) == {"regret"}
    folder = sandbox.project.results / "clustering-of-bandits/book"
    assert {path.name for path in folder.iterdir()} == {"theory.json", "regret.csv"}
    sandbox.edit(
        "book/foundations/clustering-of-bandits/theory.md",
        'print("theory", pairs)',
        'results.experiment(f"re{pairs}t", "Regret", None)',
    )
    sandbox.run(PAGES[0], [sandbox.table])
    with pytest.raises(BookError, match="clustering-of-bandits/theory has a table 'regret', too"):
        recorded(sandbox, page=PAGES[0])


def test_the_record_of_a_moved_experiment_moves_although_nothing_is_computed_again(sandbox):
    clue = Judgement("clu-one", "advantage", "reproduced", measured=0.5, low=0.4, high=0.6)
    sandbox.run(PAGES[0], [sandbox.table, another(sandbox), clue])
    recorded(sandbox, page=PAGES[0])
    sandbox.edit(
        "book/foundations/clustering-of-bandits/theory.md",
        'print("theory", pairs)',
        'results.experiment("regret", "Regret", None)',
    )
    entries = [sandbox.table._replace(source="recorded"), another(sandbox, source="recorded"), clue]
    sandbox.rewrite(sandbox.run(PAGES[1], entries), commit="fedcba")
    recorded(sandbox, page=PAGES[1])
    index, theory = (kept(sandbox, "clustering-of-bandits", page) for page in ("index", "theory"))
    assert (set(index.tables), index.judgements) == ({"widths"}, [])
    assert (set(theory.tables), theory.judgements) == ({"regret"}, [clue])
    assert theory.origin.commit == "fedcba"
    assert theory.tables["regret"].origin.commit == "0123456789abcdef"


def test_the_command_names_what_it_wrote(sandbox, capsys):
    sandbox.rewrite(sandbox.run(entries=[sandbox.table]), dirty=True)
    assert cli.main(["record", NAME]) == 2
    assert capsys.readouterr().err.startswith("regretbook: the last run of linear-bandits had")
    assert cli.main(["record", NAME, "regret", "--allow-dirty"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.rpartition("/")[2] for line in out] == ["regret.csv", "index.json"]
    assert cli.main(["list"]) == 0
    assert "recorded: regret, 2026-02-03, profile book" in capsys.readouterr().out


EXPERIMENTS = """print(doubled)
from lib import results
results.experiment("regret", "Regret", None)
results.experiment(f"real-{rule}", "Regret on data", run=None)
results.save("other", None, "Not an experiment")"""


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        ("regrets", "linear-bandits has no experiment 'regrets'; did you mean regret?"),
        ("zzz", "linear-bandits has no experiment 'zzz'; it has regret, real-*"),
        ("regret,", "argument --only: takes different names, not 'regret,'"),
        ("regret,regret", "argument --only: takes different names"),
    ],
)
def test_an_unknown_experiment_is_refused_before_anything_runs(sandbox, capsys, only, sentence):
    sandbox.edit("book/foundations/linear-bandits.md", "print(doubled)", EXPERIMENTS)
    executed = sandbox.fake_papermill()
    assert cli.main(["run", NAME, "--only", only]) == 2
    assert sentence in capsys.readouterr().err
    assert executed == []


def test_only_pages_that_may_have_the_experiment_run(sandbox, capsys):
    sandbox.edit(
        "book/foundations/clustering-of-bandits/theory.md",
        'print("theory", pairs)',
        EXPERIMENTS.replace("print(doubled)\n", ""),
    )
    table = sandbox.table._replace(name="real-ml", file="tables/real-ml.csv")
    executed = sandbox.fake_papermill([table], PAGES[1])
    assert cli.main(["run", "clustering-of-bandits", "--only", "real-ml"]) == 0
    assert executed == [PAGES[1]]
    run = runs.read(runs.place(sandbox.project, sandbox.pages[PAGES[1]]))
    assert run.info.only == ("real-ml",)
    assert cli.main(["run", "clustering-of-bandits", "--only", "real-other"]) == 1
    assert "not computed: real-other" in capsys.readouterr().err
