"""Tables of a run: live where the data is, recorded where it is not, and honest about which."""

import hashlib

import pandas as pd
import pytest

from lib import datasets, journal, results
from lib.errors import BookError

TABLE = pd.DataFrame({"policy": ["LinUCB", "CLUB"], "regret": [1 / 3, 2.0]})


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return tmp_path / "run"


def present(monkeypatch, answer):
    monkeypatch.setattr(datasets, "find", lambda name: answer)


def tables(run):
    return [entry for entry in journal.read(run) if entry["kind"] == "table"]


def test_a_saved_table_is_beside_the_notebook_with_its_digest(run):
    assert results.save("regret", TABLE, "Final regret.") is TABLE
    (entry,) = tables(run)
    content = (run / entry["file"]).read_bytes()
    assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    pd.testing.assert_frame_equal(pd.read_csv(run / entry["file"]), TABLE, rtol=1e-9)


def test_without_a_run_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("REGRETBOOK_RUN", raising=False)
    monkeypatch.chdir(tmp_path)
    results.save("regret", TABLE, "Final regret.")
    assert list(tmp_path.iterdir()) == []


def test_data_that_is_here_is_used(run, monkeypatch):
    present(monkeypatch, "somewhere")
    shown = results.experiment("page", "real", "Regret.", ["ml-1m"], lambda: TABLE)
    assert (shown.source, shown.note) == ("live", "")
    assert tables(run)[0]["source"] == "live"


def test_absent_data_shows_the_recorded_run_and_says_so(run, tmp_path, monkeypatch):
    present(monkeypatch, None)
    folder = tmp_path / "results" / "page"
    folder.mkdir(parents=True)
    TABLE.to_csv(folder / "real.csv", index=False)
    shown = results.experiment("page", "real", "Regret.", ["ml-1m"], never)
    assert shown.source == "recorded"
    assert "ml-1m is not on this machine" in shown.note
    assert tables(run)[0]["source"] == "recorded"
    assert any(e["kind"] == "data" and e["digest"] is None for e in journal.read(run))


def test_without_a_recorded_run_the_place_says_what_is_missing(run, monkeypatch):
    present(monkeypatch, None)
    shown = results.experiment("page", "real", "Regret.", ["ml-1m"], never)
    assert shown.table is None
    assert shown.source == "missing"
    assert "regretbook data fetch ml-1m" in shown.note


def test_a_damaged_recorded_table_is_refused(run, tmp_path, monkeypatch):
    present(monkeypatch, None)
    folder = tmp_path / "results" / "page"
    folder.mkdir(parents=True)
    (folder / "real.csv").write_bytes(b"")
    with pytest.raises(BookError, match="recorded table real"):
        results.experiment("page", "real", "Regret.", ["ml-1m"], never)


def never():
    raise AssertionError("an experiment without its data must not run")
