"""Tables of a run: live where they can be, recorded where they cannot, and honest about which."""

import hashlib
import math

import numpy as np
import pandas as pd
import pytest

from lib import datasets, engine, journal, program, records, results, store
from lib.errors import BookError
from lib.journal import Compared, Table
from lib.paths import project_at
from lib.records import Origin, Record, Recorded

ORIGIN = Origin("2026-11-17T08:00:00", "book", {"T": 9}, 1, "abc1234def", False, {}, "Linux", {})


def regret(trials=3):
    """A table whose rows of a trial depend on no other trial."""
    rows = [
        {"policy": policy, "trial": k, "regret": math.sqrt(k + 2) * factor, "clusters": k + 1}
        for factor, policy in enumerate(("LinUCB", "CLUB"), 1)
        for k in range(trials)
    ]
    return pd.DataFrame(rows)


def never(*_):
    raise AssertionError("this experiment must not run")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_ROOT", str(tmp_path))
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("REGRETBOOK_PAGE", "dueling/experiments")
    for name in ("PROFILE", "ONLY", "VERIFY", "STORE"):
        monkeypatch.delenv(f"REGRETBOOK_{name}", raising=False)
    return tmp_path / "run"


@pytest.fixture
def keep(tmp_path):
    """Return a function that records a table."""

    def record(table=None, profile="book", name="regret", seconds=None, **changes):
        where = project_at(tmp_path)
        text = results.as_text(regret() if table is None else table)
        folder = records.folder(where, "dueling", profile)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.csv").write_text(text)
        origin = ORIGIN._replace(profile=profile, **changes)
        noted = Recorded(hashlib.sha256(text.encode()).hexdigest(), "Kept.", origin, seconds)
        records.write(where, profile, Record("dueling", "index", {name: noted}, [], origin))
        return folder / f"{name}.csv"

    return record


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setattr(datasets, "find", lambda name: None)
    monkeypatch.setattr(datasets, "altered", lambda name: "")


def noted(run, kind):
    return [entry for entry in journal.read(run) if isinstance(entry, kind)]


def test_a_saved_table_is_beside_the_notebook_with_its_digest(run):
    table = regret()
    assert results.save("regret", table, "Final regret.") is table
    (entry,) = noted(run, Table)
    content = (run / entry.file).read_bytes()
    assert entry.sha256 == hashlib.sha256(content).hexdigest()
    assert (entry.source, entry.seconds) == ("live", None)
    pd.testing.assert_frame_equal(pd.read_csv(run / entry.file), table, rtol=1e-9)


def test_without_a_run_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results.save("regret", regret(), "Final regret.")
    assert results.experiment("regret", "Regret.", regret).source == "live"
    assert list(tmp_path.iterdir()) == []


def test_a_live_experiment_is_computed_with_its_trials_and_timed(run):
    shown = results.experiment("regret", "Regret.", regret, trials=2)
    assert (shown.source, shown.note, shown.origin, shown.sizes) == ("live", "", None, {})
    assert list(shown.table["trial"]) == [0, 1, 0, 1]
    (entry,) = noted(run, Table)
    assert entry.seconds >= 0


def test_a_live_table_is_judged_as_its_file_has_it(run):
    table = pd.DataFrame({"x": [1 / 3, math.inf, math.nan], "name": ["None", "NA", "a"]})
    shown = results.experiment("odd", "Odd.", lambda: table)
    (entry,) = noted(run, Table)
    text = (run / entry.file).read_text()
    assert results.as_text(shown.table) == text
    pd.testing.assert_frame_equal(shown.table, results.as_table(text))
    assert shown.table["x"][0] == 0.3333333333
    assert list(shown.table["name"]) == ["None", "NA", "a"]


def test_trials_without_their_column_are_refused(run):
    with pytest.raises(BookError, match=r"experiment regret is given trials.*column `trial`"):
        results.experiment("regret", "R.", lambda n: pd.DataFrame({"x": [n]}), trials=2)


def test_absent_data_shows_the_recorded_run_and_says_so(run, keep, absent):
    keep()
    shown = results.experiment("regret", "Regret", never, needs=["ml-1m"])
    assert shown.source == "recorded"
    assert shown.note == (
        "Recorded run (3 trials, commit abc1234, 2026-11-17): ml-1m is not on this machine."
    )
    assert shown.sizes == {"T": 9, "recorded": "commit abc1234, 2026-11-17, profile book"}
    pd.testing.assert_frame_equal(shown.table, regret(), rtol=1e-9)
    (entry,) = noted(run, Table)
    assert (entry.source, entry.caption) == ("recorded", f"Regret. {shown.note}")


def test_a_recorded_run_with_other_parameters_or_local_changes_says_so(
    run, keep, absent, monkeypatch
):
    keep(dirty=True)
    monkeypatch.setattr("__main__.T", 10, raising=False)
    shown = results.experiment("regret", "Regret", never, needs=["ml-1m", "yelp"])
    assert "commit abc1234 with local changes that no commit has" in shown.note
    assert "yelp is not on this machine; it had another value of T." in shown.note


def test_a_profile_shows_its_own_record_and_the_tests_that_of_the_book(
    run, keep, absent, monkeypatch
):
    keep()
    for profile, source in (("thesis", "missing"), ("book", "recorded"), ("smoke", "recorded")):
        monkeypatch.setenv("REGRETBOOK_PROFILE", profile)
        shown = results.experiment("regret", "Regret.", never, needs=["ml-1m"])
        assert shown.source == source


def test_without_a_recorded_run_the_place_says_what_is_missing(run, absent):
    shown = results.experiment("regret", "Regret.", never, needs=["ml-1m"])
    assert (shown.table, shown.source) == (None, "missing")
    assert shown.note.endswith(
        "not on this machine and no run is recorded; get the data with: regretbook data fetch ml-1m"
    )


def test_by_hand_no_record_is_found(run, keep, absent, monkeypatch):
    keep()
    monkeypatch.delenv("REGRETBOOK_PAGE")
    assert results.experiment("regret", "Regret.", never, needs=["ml-1m"]).source == "missing"


def test_who_runs_a_page_sees_that_run_in_its_figures(run, keep, monkeypatch):
    live = results.experiment("regret", "Regret.", regret, trials=2)
    keep(regret(5), profile="thesis")
    monkeypatch.setenv("REGRETBOOK_OWN", "1")
    assert results.at_best("regret", live) is live
    missing = live._replace(table=None, source="missing")
    assert results.at_best("regret", missing).table["trial"].nunique() == 5


def test_the_best_there_is_is_the_printed_scale_or_else_the_live_run(run, keep):
    live = results.experiment("regret", "Regret.", regret, trials=2)
    keep()  # of the book, which is no larger scale
    assert results.at_best("regret", live) is live
    keep(regret(5), profile="thesis")
    best = results.at_best("regret", live)
    assert best.table["trial"].nunique() == 5 and "at the printed scale" in best.note


def test_a_recorded_table_that_was_changed_is_refused(run, keep, absent):
    path = keep()
    path.write_text(path.read_text().replace("2", "3", 1))
    with pytest.raises(BookError, match=r"regret\.csv is not the table that was recorded"):
        results.experiment("regret", "Regret.", never, needs=["ml-1m"])


def test_only_what_is_asked_for_is_computed(run, keep, monkeypatch):
    keep()
    monkeypatch.setenv("REGRETBOOK_ONLY", "gap,share")
    assert results.experiment("share", "Share.", regret).source == "live"
    kept = results.experiment("regret", "Regret.", never)
    assert kept.source == "recorded"
    assert "this run computes gap, share alone" in kept.note
    other = results.experiment("other", "Other.", never)
    assert other.table is None
    assert other.note == "this run computes gap, share alone and no run is recorded"


def test_the_printed_scale_is_shown_beside_the_live_run(run, keep):
    shown = results.recorded("regret")
    assert (shown.table, shown.source) == (None, "missing")
    assert shown.note == "Nothing is recorded at the printed scale yet."
    keep(regret(10), profile="thesis")
    shown = results.recorded("regret")
    assert shown.note == "Recorded at the printed scale: 10 trials, commit abc1234, 2026-11-17."
    assert shown.origin.profile == "thesis"
    results.experiment("regret", "Regret.", regret, trials=2)
    kinds = {entry.name: entry.source for entry in noted(run, Table)}
    assert kinds == {"regret-thesis": "recorded", "regret": "live"}
    keep(dirty=True)
    assert "in profile book" in results.recorded("regret", "book").note
    assert "with local changes" in results.recorded("regret", "book").note


def verify(monkeypatch, run, depth, compute=regret, trials=3, **options):
    """Return what verifying notes, and check that the page goes on with the recorded table."""
    monkeypatch.setenv("REGRETBOOK_VERIFY", str(depth))
    kept = records.table(project_at(run.parent), "dueling", "book", "regret")[1]
    shown = results.experiment("regret", "Regret.", compute, trials=trials, **options)
    assert results.as_text(shown.table) == kept
    assert [entry.source for entry in noted(run, Table)] == ["recorded"]
    (entry,) = noted(run, Compared)
    return entry


@pytest.mark.parametrize(("depth", "rows"), [(1, 2), (2, 4), (3, 6), (9, 6)])
def test_verifying_computes_the_first_trials_alone(run, keep, monkeypatch, depth, rows):
    keep()
    asked = []

    def counted(trials):
        asked.append(trials)
        return regret(trials)

    assert verify(monkeypatch, run, depth, counted) == Compared("regret", rows, "")
    assert asked == [min(depth, 3)]


def test_verifying_names_line_column_and_both_values(run, keep, monkeypatch):
    keep()

    def drifted(trials):
        table = regret(trials)
        table.loc[table["policy"] == "CLUB", "regret"] *= 1 + 1e-9
        return table

    was, now = 2 * math.sqrt(2), 2 * math.sqrt(2) * (1 + 1e-9)
    assert verify(monkeypatch, run, 1, drifted).difference == (
        f"line 5, column regret: recorded {was:.10g}, computed {now:.10g}"
    )


def test_an_eleventh_digit_is_no_difference(run, keep, monkeypatch):
    keep()
    assert not verify(
        monkeypatch, run, 1, lambda n: regret(n).assign(regret=lambda t: t["regret"] * (1 + 1e-13))
    ).difference


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda t: t.iloc[::-1], ""),
        (lambda t: t.iloc[1:], "line 2: recorded, but not computed"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "computed, but not recorded: LinUCB, 0, "),
        (lambda t: t.rename(columns={"regret": "loss"}), "columns: recorded policy, trial, regret"),
        (lambda t: t.assign(clusters=np.nan), "column clusters: recorded 1, computed nothing"),
    ],
)
def test_rows_are_compared_whatever_their_order(run, keep, monkeypatch, change, difference):
    keep()
    found = verify(monkeypatch, run, 1, lambda n: change(regret(n))).difference
    assert found.startswith(difference) or difference in found
    assert bool(found) == bool(difference)


@pytest.mark.parametrize(
    ("seconds", "skipped"),
    [(0.0, ""), (119.0, ""), (120.0, "took 120 s"), (None, "what it took is not recorded")],
)
def test_an_experiment_without_trials_is_verified_whole_when_it_is_short(
    run, keep, monkeypatch, seconds, skipped
):
    keep(seconds=seconds)
    found = verify(monkeypatch, run, 1, never if skipped else regret, trials=None)
    assert (found.rows, found.difference) == (0 if skipped else 6, "")
    assert skipped in found.skipped and bool(skipped) == bool(found.skipped)


def test_what_no_rerun_repeats_is_not_computed_again(run, keep, monkeypatch):
    keep(seconds=1.0)
    assert verify(monkeypatch, run, 1, never, exact=False).skipped == "no rerun repeats it"


def test_what_lacks_its_data_is_not_computed_again(run, keep, absent, monkeypatch):
    keep()
    found = verify(monkeypatch, run, 1, never, needs=["ml-1m"])
    assert found.skipped == "ml-1m is not on this machine"


def test_no_trial_means_no_computing(run, keep, monkeypatch):
    keep()
    assert verify(monkeypatch, run, 0, never).rows == 0


def test_an_error_while_verifying_is_an_error(run, keep, monkeypatch):
    keep()
    with pytest.raises(ZeroDivisionError):
        verify(monkeypatch, run, 1, lambda n: 1 / 0)


def test_an_experiment_that_is_not_recorded_cannot_be_verified(run, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_VERIFY", "1")
    shown = results.experiment("regret", "Regret.", never, trials=3)
    assert (shown.table, shown.note) == (None, "regret is not recorded")
    assert noted(run, Compared) == []


def test_verifying_some_leaves_the_others_as_recorded(run, keep, monkeypatch):
    keep()
    monkeypatch.setenv("REGRETBOOK_VERIFY", "1")
    monkeypatch.setenv("REGRETBOOK_ONLY", "other")
    assert results.experiment("regret", "Regret.", never, trials=3).source == "recorded"
    assert noted(run, Compared) == []


def square(n):
    return {"value": n * n}


def squares(trials, first=0):
    """A table of engine tasks, without those that a limit left out."""
    text = program.text({"square": square})
    tasks = [engine.Task(text, "square", {"n": n}) for n in range(first, first + trials)]
    found = [
        {"trial": n, "square": int(result["value"])}
        for n, result in enumerate(engine.run(tasks, "squares"))
        if result is not None
    ]
    return pd.DataFrame(found)


def test_what_the_store_has_is_computed_all_the_same(run, keep, tmp_path, monkeypatch):
    """A wrong number in the store must not vouch for the same wrong number in a table."""
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    keep(squares(3))
    (path, *_) = sorted((tmp_path / "store").rglob("*.task"))
    address = f"{path.parent.name}/{path.stem}"
    n = math.isqrt(int(store.load(address)["value"]))
    store.save(address, {"value": np.array(99)})
    keep(squares(3))
    found = verify(monkeypatch, run, 3, squares)
    assert found.difference == f"line {n + 2}, column square: recorded 99, computed {n * n}"
    assert int(store.load(address)["value"]) == 99


def test_cheap_verifying_computes_one_task_and_compares_what_there_is(run, keep, monkeypatch):
    keep(pd.concat([squares(2), squares(2, 5)]))
    computed = []
    compute = engine.compute
    monkeypatch.setattr(engine, "compute", lambda *a: computed.append(a) or compute(*a))
    two = lambda n: pd.concat([squares(2), squares(2, 5)])  # noqa: E731
    assert verify(monkeypatch, run, "cheap", two, trials=2) == Compared("regret", 2, "")
    assert len(computed) == 2


def test_cheap_verifying_notices_one_changed_number(run, keep, monkeypatch):
    keep(squares(2).replace(0, 7).assign(trial=[0, 1]))
    found = verify(monkeypatch, run, "cheap", squares)
    assert found.difference == "line 2, column square: recorded 7, computed 0"


def test_what_cannot_be_computed_in_part_is_said(run, keep, monkeypatch):
    keep(squares(2))

    def whole(n):
        table = squares(2)
        return table.set_index("trial").loc[[0, 1]].reset_index()

    found = verify(monkeypatch, run, "cheap", whole)
    assert found.skipped.startswith("it cannot be computed in part (KeyError")
    assert found.rows == 0


def test_a_kernel_that_outlives_its_run_does_not_make_its_folder_again(run):
    """The next run has removed it, and nobody would know whose the new one is."""
    run.rmdir()
    with pytest.raises(BookError, match="the folder of this run is gone"):
        results.save("regret", regret(), "Regret.")
    assert not run.exists()
