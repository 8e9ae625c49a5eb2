"""Progress: what the file of a build says, and that nothing is shown anywhere else."""

import json
import threading

import pytest

from ci import display
from lib import progress
from lib.progress import Progress


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """Return a function that reads the reports of a clock that is ours."""
    monkeypatch.setenv("REGRETBOOK_PROGRESS", str(tmp_path / "progress.jsonl"))
    return lambda: [
        json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()
    ]


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_reports_say_what_was_there_what_is_done_and_since_when(lines, clock):
    with Progress("runs", total=100.0, had=40.0) as running:
        clock[0] += 10
        running.add(20)
        clock[0] += 0.1
        running.add(1)  # too soon after the last report
        clock[0] += 20
    first, second, last = lines()
    assert first == {"task": "runs", "done": 40.0, "total": 100.0, "had": 40.0, "seconds": 0.0}
    assert (second["done"], second["seconds"]) == (60.0, 10.0)
    assert (last["done"], last["seconds"]) == (61.0, 30.1)


def test_time_left_is_at_the_pace_of_what_was_computed(lines, clock, tmp_path):
    with Progress("runs", total=100.0, had=40.0) as running:
        clock[0] += 60
        running.add(20)
        # 20 units took a minute; what the store had took none.
        assert display._task(tmp_path / "progress.jsonl") == ", runs 60%, 2 min left"
        clock[0] += 1
        running.add(40)
        assert display._task(tmp_path / "progress.jsonl") == ", runs 100%"


def test_no_time_is_guessed_from_nothing(lines, clock, tmp_path):
    with Progress("runs", total=100.0, had=40.0):
        clock[0] += 60
        assert display._task(tmp_path / "progress.jsonl") == ", runs 40%"


def test_work_reported_by_many_threads_is_counted_once_each(lines):
    with Progress("runs", total=4000.0) as running:
        threads = [
            threading.Thread(target=lambda: [running.add(1.0) for _ in range(1000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert lines()[-1]["done"] == 4000.0


def test_without_a_terminal_and_a_file_nothing_is_shown(capfd):
    with Progress("runs", total=2.0) as running:
        running.add(1.0)
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar_and_no_file(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress("runs", total=2.0, had=1.0):
        assert "runs" in capsys.readouterr().err
