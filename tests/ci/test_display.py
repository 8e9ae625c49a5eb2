"""Progress of pages: a bar with the time left on a terminal, and silence everywhere else."""

import io
import json
import re
import time

import pytest

from ci import cli, display, execute, runs


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_page_that_ran_before_has_a_bar_by_time_and_says_what_is_left(clock, tmp_path):
    position = display.Position("linear-bandits", 14, tmp_path / "none", expected=200.0)
    position.cell = 3
    clock[0] += 50
    assert position.line() == (
        "[#####---------------] linear-bandits: cell 3 of 14, 50 s, about 2 min left"
    )
    clock[0] += 900  # it takes longer than last time: nobody knows how long
    assert position.line() == "[####################] linear-bandits: cell 3 of 14, 16 min"


def test_a_new_page_has_a_bar_by_cells_and_the_time_left_of_its_task(clock, tmp_path):
    file = tmp_path / "progress.jsonl"
    entry = {"task": "first run", "done": 25, "total": 100, "had": 0, "seconds": 40.0}
    file.write_text(json.dumps(entry) + "\n")
    position = display.Position("x", 10, file)
    position.cell = 6
    clock[0] += 60
    assert position.line() == (
        "[##########----------] x: cell 6 of 10, first run 25%, 2 min left, 60 s"
    )


def test_a_build_says_how_many_pages_and_how_long(clock, tmp_path):
    with display.queued({"a": 100.0, "b": 300.0, "c": 200.0, "d": 200.0}, jobs=2):
        first = display.Position("a", 5, tmp_path / "none", expected=100.0)
        with display.shown(first):
            clock[0] += 60
            # 40 of the page that runs, 700 of those that wait, on two cores.
            assert display._queue.line() == "[--------------------] 0 of 4 pages, about 6 min left"
        assert display._queue.line() == "[#####---------------] 1 of 4 pages, about 6 min left"
    with display.queued({"a": 100.0, "b": 0.0}, jobs=2):
        assert display._queue.line() == "[--------------------] 0 of 2 pages", "b is new"
    assert display._queue is None


def test_on_a_terminal_the_lines_replace_each_other_and_vanish(monkeypatch, tmp_path):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with display.shown(display.Position("page", 3, tmp_path / "none")):
        end = time.monotonic() + 30
        while not display._drawn and time.monotonic() < end:
            time.sleep(0.05)
    said = terminal.getvalue()
    assert "] page: cell 0 of 3" in said
    assert said.endswith("\x1b[1F\x1b[J"), "the last drawing was taken away"


def test_without_a_terminal_a_run_is_quiet(sandbox, capsys):
    sandbox.fake_papermill()
    assert cli.main(["run", "linear-bandits"]) == 0
    assert capsys.readouterr().err == ""
    assert display.QUIET >= 600


def test_the_time_of_a_run_counts_for_the_same_parameters_alone(sandbox, monkeypatch):
    seen = []
    sandbox.fake_papermill()
    made = execute.display.Position
    monkeypatch.setattr(
        execute.display, "Position", lambda *words: seen.append(words[3]) or made(*words)
    )
    page = sandbox.pages["linear-bandits"]
    assert cli.main(["run", "linear-bandits"]) == 0
    sandbox.rewrite(runs.read(runs.place(sandbox.project, page)), seconds=77.0)
    assert cli.main(["run", "linear-bandits"]) == 0
    sandbox.rewrite(runs.read(runs.place(sandbox.project, page)), seconds=77.0)
    assert cli.main(["run", "linear-bandits", "-p", "T=3"]) == 0
    assert seen == [0.0, 77.0, 0.0]


def test_bars_are_full_at_most():
    assert [display.bar(share).count("#") for share in (0, 0.5, 1, 7)] == [0, 10, 20, 20]
    assert re.fullmatch(r"\[[#-]{20}\]", display.bar(0.3))
