"""The clock of compiling: it runs while something is compiled, and counts nothing twice."""

import numba

from lib import compiling, engine, journal


def test_seconds_grow_only_when_something_is_compiled():
    def double(x):
        return 2 * x

    compiled = numba.njit(double)
    before = compiling.seconds()
    compiled(1)
    after = compiling.seconds()
    assert after > before
    compiled(2)
    assert compiling.seconds() == after


def test_overlapping_and_nested_spans_count_once():
    clock = compiling._Clock()
    for step in (clock.on_start, clock.on_start, clock.on_end):
        step(None)
    assert clock.seconds == 0.0  # the outer span is still open
    clock.on_end(None)
    assert clock.seconds > 0.0 and clock.depth == 0


def test_a_run_notes_how_long_it_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path))
    engine.run([], "nothing")
    assert journal.read(tmp_path) == [journal.Compiled(round(compiling.seconds(), 2))]
