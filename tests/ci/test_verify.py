"""Verifying what is recorded: any digit, rule or verdict that changed is named."""

import hashlib
import json
import subprocess

import pytest

from ci import cli, contents, parameters, runs
from ci.execute import Request, execute
from ci.project import commit
from ci.record import record
from ci.verify import _quickest, _read, verify
from lib import datasets, records
from lib.journal import Compared

NAME = "linear-bandits"
PAGE = "book/foundations/linear-bandits.md"
CLAIMS = "book/claims/linear-bandits.yml"
CODE = """import numpy as np
import pandas as pd
from lib import claims, results


def one(trial):
    rng = np.random.default_rng([seed, trial])
    drawn = {"share": rng.random() * scale, "draws": rng.integers(100)}
    return {"scale": scale, "trial": trial, **drawn}


shares = results.experiment(
    "shares", "Shares", lambda trials: pd.DataFrame(map(one, range(trials))), trials=dims[0]
)
squares = results.experiment(
    "squares", "Squares", lambda: pd.DataFrame({"x": np.arange(4), "y": np.arange(4) ** 2 / 3})
)
movies = results.experiment(
    "movies", "Movies", lambda n: pd.DataFrame({"trial": range(n), "z": scale}), trials=2,
    needs=["ml-1m"],
)
if shares.table is None:
    claims.skip("lin-one", shares.note)
else:
    claims.judge("lin-one", shares.table["share"].mean())
    results.save("means", shares.table.groupby("scale", as_index=False).mean(), "Means")
"""


@pytest.fixture
def here(monkeypatch):
    """The datasets that are on this machine."""
    found = {"ml-1m"}
    monkeypatch.setattr(datasets, "find", lambda name: name if name in found else None)
    monkeypatch.setattr(datasets, "altered", lambda name: "")
    return found


@pytest.fixture
def book(sandbox, here, monkeypatch, tmp_path):
    """A page with experiments, executed in this process, and recorded."""
    sandbox.edit(PAGE, "print(doubled)", CODE)
    sandbox.edit(PAGE, "scale = 0.5", "scale = 0.01")
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    sandbox.real_cells()
    compute(sandbox)
    recorded(sandbox)
    return sandbox


def compute(sandbox, only=(), profile="book"):
    """Execute the page as `run` would."""
    page = sandbox.pages[NAME]
    values = parameters.resolve(sandbox.project, page, profile)
    target = runs.place(sandbox.project, page)
    run, failure = execute(
        sandbox.project, Request(page, values, target, profile, only=tuple(only))
    )
    assert failure is None
    return run


def recorded(sandbox, *names, profile="book"):
    return record(sandbox.project, [sandbox.pages[NAME]], list(names), profile)


def path(sandbox, file):
    return sandbox.project.results / NAME / "book" / file


def verified(sandbox, capsys, status, trials=1, names=(), profile=None):
    capsys.readouterr()
    assert verify(sandbox.project, list(names), profile, trials) == status
    return capsys.readouterr()


def forge(sandbox, file, change):
    """Change a recorded table and its digest, as somebody would who wants it to pass."""
    text = change(path(sandbox, file).read_text())
    path(sandbox, file).write_text(text)
    kept = records.read(path(sandbox, "index.json"))
    name = file.removesuffix(".csv")
    digest = hashlib.sha256(text.encode()).hexdigest()
    table = kept.tables[name]._replace(sha256=digest)
    records.write(sandbox.project, "book", kept._replace(tables=kept.tables | {name: table}))


def rewrite(sandbox, change):
    """Change the record of the page."""
    file = path(sandbox, "index.json")
    plain = json.loads(file.read_text())
    change(plain)
    file.write_text(json.dumps(plain))


@pytest.mark.parametrize("trials", [None, 0, 1, 3, 100, "cheap"])
def test_what_is_recorded_is_verified(book, capsys, trials):
    out = verified(book, capsys, 0, trials).out
    assert out.splitlines()[-1].startswith("in all: 4 tables, 1 verdict, ")
    assert out.splitlines()[-1].endswith(", no differences")


@pytest.mark.parametrize(("trials", "rows"), [(0, 1), (1, 1 + 4 + 1 + 1), (2, 2 + 4 + 2 + 1)])
def test_rows_of_the_first_trials_are_computed_again(book, capsys, trials, rows):
    text = "1 row" if rows == 1 else f"{rows} rows"
    assert f", {text} computed again" in verified(book, capsys, 0, trials).out


@pytest.mark.parametrize("file", ["shares.csv", "squares.csv", "movies.csv", "means.csv"])
def test_a_changed_digit_in_any_table_is_named_without_computing(book, capsys, file):
    text = path(book, file).read_text()
    digit = next(i for i in reversed(range(len(text))) if text[i].isdigit())
    changed = str((int(text[digit]) + 1) % 10)
    path(book, file).write_text(text[:digit] + changed + text[digit + 1 :])
    executed = book.fake_papermill()
    for trials in (None, 1):
        err = verified(book, capsys, 1, trials).err
        assert f"results/{NAME}/book/{file} is not the table that was recorded" in err
    assert executed == []


@pytest.mark.parametrize(
    ("file", "trials"), [("shares.csv", 1), ("shares.csv", "cheap"), ("squares.csv", 1)]
)
def test_a_changed_number_is_noticed_although_its_digest_was_changed_too(
    book, capsys, monkeypatch, file, trials
):
    monkeypatch.setattr("ci.verify._quickest", lambda kept: {kept[0].path: "shares"})
    value = path(book, file).read_text().splitlines()[-1 if file == "squares.csv" else 1]
    value = value.split(",")[-1]
    forge(book, file, lambda text: text.replace(f",{value}\n", f",{value}1\n", 1))
    assert verified(book, capsys, 0, None)
    err = verified(book, capsys, 1, trials).err
    column = "draws" if file == "shares.csv" else "y"
    assert f"results/{NAME}/book/{file}: line" in err
    assert f"column {column}: recorded {value}1, computed {value}" in err


def test_a_later_trial_is_verified_only_when_it_is_asked_for(book, capsys):
    row = path(book, "shares.csv").read_text().splitlines()[3]
    draws = row.split(",")[-1]
    forge(book, "shares.csv", lambda text: text.replace(row, row[: -len(draws)] + "-1"))
    verified(book, capsys, 1, 0)  # the means that the page saves are not those of this table
    rewrite(book, lambda plain: plain["tables"].pop("means"))
    path(book, "means.csv").unlink()
    verified(book, capsys, 0, 2)
    err = verified(book, capsys, 1, 3).err
    assert f"shares.csv: line 4, column draws: recorded -1, computed {draws}" in err


def test_a_verdict_that_the_tables_do_not_give_is_named(book, capsys):
    def lie(plain):
        plain["judgements"][0] |= {"measured": 0.001, "low": 0.001, "high": 0.001}

    rewrite(book, lie)
    verified(book, capsys, 0, None)
    err = verified(book, capsys, 1, 0).err
    assert "index.json: lin-one is recorded as reproduced (0.001), computed reproduced (0.00" in err


def test_a_verdict_that_the_rule_does_not_give_is_named(book, capsys):
    rewrite(book, lambda plain: plain["judgements"][0].update(verdict="refuted"))
    err = verified(book, capsys, 1, None).err
    assert "lin-one is recorded as refuted, but the ledger says reproduced" in err


def test_a_changed_rule_is_named(book, capsys):
    book.edit(CLAIMS, "measured <= printed", "measured <= printed / 2")
    out = verified(book, capsys, 0, None).out
    assert (
        "lin-one is reproduced still, but its rule was 'reproduced: measured <= printed; "
        "printed = 0.05' and is 'reproduced: measured <= printed / 2; printed = 0.05'" in out
    )
    book.edit(CLAIMS, "measured <= printed / 2", "measured > printed")
    err = verified(book, capsys, 1, None).err
    assert "lin-one is recorded as reproduced, but the ledger says not reproduced (its rule" in err


def test_a_claim_that_left_the_ledger_is_named(book, capsys):
    book.edit(CLAIMS, "id: lin-one", "id: lin-uno")
    assert "there is no claim 'lin-one'" in verified(book, capsys, 1, None).err


def test_a_table_without_record_and_a_record_without_table_are_named(book, capsys):
    book.add("results/linear-bandits/book/stray.csv", "x\n1\n")
    book.add("results/old.csv", "x\n1\n")
    path(book, "squares.csv").unlink()
    err = verified(book, capsys, 1, None).err
    assert "book/stray.csv has no record of where it came from" in err
    assert "results/old.csv has no record" in err
    assert "squares.csv is recorded but not there" in err
    assert "3 differences" in verified(book, capsys, 1, None).out


def test_a_damaged_record_or_one_in_the_wrong_place_is_named(book, capsys):
    text = path(book, "index.json").read_text()
    book.add("results/linear-bandits/book/theory.json", text)
    book.add("results/clustering-of-bandits/book/index.json", text[:100])
    err = verified(book, capsys, 1, None).err
    assert "book/theory.json says it is of linear-bandits/index" in err
    assert "clustering-of-bandits/book/index.json is damaged" in err
    assert "is recorded by" in err


def test_missing_data_is_said_and_the_rest_is_verified(book, capsys, here):
    here.clear()
    out = verified(book, capsys, 0).out
    assert "movies is not computed again: ml-1m is not on this machine" in out
    assert ", 6 rows computed again, no differences" in out


def test_parameters_are_those_of_the_record(book, capsys):
    book.edit(PAGE, "scale = 0.01", "scale = 0.02")
    book.edit(PAGE, "dims = [5, 10]", "dims = [1]")
    verified(book, capsys, 0, 5)
    book.edit(PAGE, "rule = ", "other = ")
    out = verified(book, capsys, 0).out
    assert "linear-bandits has no parameter rule any more" in out


def test_changed_code_is_noticed(book, capsys):
    book.edit(PAGE, "rng.integers(100)", "rng.integers(99)")
    verified(book, capsys, 0, 0)
    assert "shares.csv: line 2, column draws" in verified(book, capsys, 1, 1).err


def test_an_experiment_that_the_page_lost_is_named(book, capsys):
    book.edit(PAGE, '"squares", "Squares"', '"cubes", "Cubes"')
    err = verified(book, capsys, 1).err
    assert "squares.csv: linear-bandits/index has it no more" in err


def test_a_page_that_fails_or_is_gone_is_named(book, capsys):
    book.edit(PAGE, "def one", "1 / 0\ndef one")
    err = verified(book, capsys, 1).err
    assert "linear-bandits failed in cell 3" in err
    assert "book/index.json: linear-bandits failed" in err
    book.edit("_toc.yml", "  - file: foundations/linear-bandits\n", "")
    book.edit(CLAIMS, "- id: lin-one", "- id: lin-three")
    book.project.claims.joinpath("linear-bandits.yml").unlink()
    rewrite(book, lambda plain: plain.update(judgements=[]))
    assert "is of a page that the book does not have" in verified(book, capsys, 1).err


def test_one_experiment_is_recorded_again_and_the_others_keep_their_origin(book, capsys):
    book.edit(PAGE, "rng.integers(100)", "rng.integers(99)")
    run = compute(book, only=["shares"])
    sources = {table.name: table.source for table in run.tables.values()}
    assert sources == {
        "shares": "live",
        "squares": "recorded",
        "movies": "recorded",
        "means": "live",
    }
    before = records.read(path(book, "index.json"))
    book.rewrite(run, commit="feedbeef")
    recorded(book, "shares", "means")
    after = records.read(path(book, "index.json"))
    commits = {name: table.origin.commit for name, table in after.tables.items()}
    assert commits["shares"] == commits["means"] == after.origin.commit == "feedbeef"
    for name in ("squares", "movies"):
        assert after.tables[name] == before.tables[name]
    verified(book, capsys, 0, 2)


def test_tables_of_two_sets_of_parameters_are_each_computed_with_their_own(book, capsys):
    book.edit(PAGE, "scale = 0.01", "scale = 0.02")
    compute(book, only=["shares"])
    recorded(book, "shares", "means")
    tables = records.read(path(book, "index.json")).tables
    assert tables["movies"].origin.parameters["scale"] == 0.01
    assert tables["shares"].origin.parameters["scale"] == 0.02
    out = verified(book, capsys, 0, 2).out
    assert out.count("computing again") == 2
    assert ", 9 rows computed again, no differences" in out


def test_an_experiment_that_is_not_recorded_leaves_its_verdict_open(book, capsys):
    """Recording one of two experiments records no verdict on the other."""
    for file in book.project.results.rglob("*.*"):
        file.unlink()
    run = compute(book, only=["squares"])
    assert [judgement.verdict for judgement in run.judgements] == ["not run"]
    recorded(book)
    verified(book, capsys, 0, 1)
    compute(book, only=["shares"])
    recorded(book)
    assert set(records.read(path(book, "index.json")).tables) == {"squares", "shares", "means"}
    verified(book, capsys, 0, 1)


def test_names_and_profiles_choose_what_is_verified(book, capsys):
    compute(book, profile="smoke")
    recorded(book, profile="smoke")
    assert "in all: 8 tables, 2 verdicts" in verified(book, capsys, 0, None).out
    assert "in all: 4 tables" in verified(book, capsys, 0, None, profile="smoke").out
    assert "in all: 8 tables" in verified(book, capsys, 0, None, names=[NAME]).out
    assert cli.main(["verify", "clustering-of-bandits", "--quick"]) == 2
    assert "nothing is recorded of clustering-of-bandits" in capsys.readouterr().err
    book.add("results/clustering-of-bandits/book/stray.csv", "x\n1\n")
    assert verified(book, capsys, 0, None, names=[NAME])
    assert verified(book, capsys, 1, None)


def test_cheap_verifying_takes_the_quickest_experiment_of_each_chapter(book):
    (kept,), _ = _read(book.project, None, None)
    seconds = {"shares": 3.0, "squares": 2.0, "movies": 5.0, "means": None}
    tables = {n: t._replace(seconds=seconds[n]) for n, t in kept.record.tables.items()}
    slow = kept._replace(record=kept.record._replace(tables=tables))
    other = slow._replace(path=slow.path.with_name("theory.json"))
    assert _quickest([slow]) == {slow.path: "squares"}
    assert list(_quickest([slow, other]).values()) == ["squares"]


def test_nothing_recorded_is_no_difference(sandbox, capsys):
    assert "in all: no tables, no verdicts" in verified(sandbox, capsys, 0).out


def test_verifying_publishes_nothing(book, capsys):
    page = book.pages[NAME]
    before = runs.last(book.project, page)
    verified(book, capsys, 0)
    assert runs.last(book.project, page) == before
    assert not any(isinstance(entry, Compared) for entry in before.journal)


@pytest.mark.parametrize(
    ("words", "depth"),
    [([], 1), (["--trials", "0"], 0), (["--quick"], None), (["--cheap"], "cheap")],
)
def test_the_command_says_how_deep(sandbox, monkeypatch, words, depth):
    monkeypatch.setattr("ci.verify.verify", lambda *given: given[3] == depth)
    assert cli.main(["verify", *words]) is True


@pytest.mark.parametrize(
    "words", [["--trials", "-1"], ["--trials", "x"], ["--cheap", "--quick"], ["no-such-page"]]
)
def test_bad_calls_are_refused(sandbox, capsys, words):
    assert cli.main(["verify", *words]) == 2
    assert capsys.readouterr().err.startswith("regretbook: ")


KERNEL = """from lib import claims, results
from lib.simulate import repeat


def one(rng):
    return {"share": rng.random() / 100, "draws": rng.integers(100)}


shares = results.experiment(
    "shares", "Shares", lambda trials: repeat(one, trials=trials, seed=seed), trials=dims[0]
)
if shares.table is not None:
    claims.judge("lin-one", shares.table["share"])
    claims.judge("lin-two", shares.table["share"] - 1)
"""


def test_a_run_at_the_printed_scale_is_recorded_and_verified_in_real_kernels(sandbox, capsys):
    sandbox.edit(PAGE, "print(doubled)", KERNEL)
    sandbox.add("book/profiles.yml", "thesis: {linear-bandits: {dims: [7]}}\n")
    words = [NAME, "--profile", "thesis"]
    assert cli.main(["run", *words, "--only", "shares"]) == 0
    assert cli.main(["record", *words]) == 0
    kept = records.read(sandbox.project.results / NAME / "thesis/index.json")
    assert kept.judgements[1].scale == "printed scale"
    assert len(kept.judgements[0].values) == 7
    for depth, rows in ((["--trials", "2"], "2 rows"), (["--cheap"], "1 row")):
        capsys.readouterr()
        assert cli.main(["verify", *words, *depth]) == 0
        assert f"in all: 1 table, 2 verdicts, {rows} computed again" in capsys.readouterr().out
    sandbox.edit(PAGE, "rng.random() / 100", "rng.random() / 101")
    assert cli.main(["verify", *words, "--cheap"]) == 1
    assert "thesis/shares.csv: line 2, column share: recorded" in capsys.readouterr().err


def test_records_make_no_tree_dirty_and_anything_else_does(sandbox):
    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(sandbox.project.root), *identity, *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    assert not commit(sandbox.project)[1]
    sandbox.add("results/linear-bandits/book/regret.csv", "x\n1\n")
    assert not commit(sandbox.project)[1]
    sandbox.edit(PAGE, "More prose.", "Other prose.")
    assert commit(sandbox.project)[1]


def test_the_recorded_tables_of_the_book_pass():
    from lib.paths import CODE, project_at

    project = project_at(CODE)
    assert contents.discover(project)
    assert verify(project, [], None, None) == 0
