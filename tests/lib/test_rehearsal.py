"""Plans: what is missing is counted once, costs come from measurements, nothing is stored."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from lib import engine, program, rehearsal, store
from lib.engine import Task
from lib.errors import BookError
from lib.rehearsal import CAP, read
from lib.simulate import Environment, Policy, repeat, simulate


@pytest.fixture(autouse=True)
def planning(tmp_path, monkeypatch):
    """A plan of one process that has two cores and has rehearsed nothing yet."""
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("REGRETBOOK_PLAN", str(tmp_path / "plan.jsonl"))
    monkeypatch.setenv("REGRETBOOK_ENGINE", engine.PLAN)
    monkeypatch.setenv("REGRETBOOK_THREADS", "2")
    for name in ("_rehearsed", "_tried"):
        monkeypatch.setattr(rehearsal, name, {})
    monkeypatch.setattr(rehearsal, "_approximate", set())
    return tmp_path / "plan.jsonl"


class Coin(NamedTuple):
    """One arm that pays its mean and noise."""

    mean: float


class Counter(NamedTuple):
    """A policy that counts."""

    rounds: np.ndarray
    room: np.ndarray  # of the horizon, as some policies keep it


def make(rng, mean=0.5):
    return Coin(mean)


def draw(problem, t, rng):
    return 0, np.arange(2), np.eye(2)


def expected(problem, t, user, items, arms):
    return np.array([problem.mean, 0.0])


def feedback(problem, t, user, item, mean, rng):
    return mean + rng.standard_normal()


def init(problem, T, rng, arm=0):
    return Counter(np.zeros(1), np.ones(T // 100))


def choose(state, t, user, arms, items):
    return t % 2


def learn(state, t, user, x, reward, item):
    state.rounds[0] += 1


def watch(state, problem):
    return {"counted": state.rounds[0], "level": "high"}


COINS = Environment(make, draw, expected, feedback)
POLICIES = {f"arm {k}": Policy(init, choose, learn, watch, parameters={"arm": k}) for k in range(2)}
LONG = {"T": 1_000_000_000, "seed": 1, "checkpoints": 5, "label": "long"}


def number(rng, size):
    return {"value": rng.standard_normal(size).mean()}


def sized(rng, size, extra=0.0):
    return {"value": 1.0 * size}


def sleep(rng, seconds):
    time.sleep(seconds)
    return {"slept": seconds, "value": rng.random()}


def addresses(function, settings, trials):
    """Return the address of every task of a `repeat`, in order."""
    from lib.simulate import _REPEAT

    text = program.text({"_repeated": function}, _REPEAT)
    common = {"entry": "_once", "seed": 1, "stream": 0}
    return [
        store.key(text, {"setting": setting, "trial": trial, **common})
        for setting in settings
        for trial in range(trials)
    ]


def test_a_long_simulation_is_planned_and_stood_in_for(planning, tmp_path):
    table = simulate(COINS, POLICIES, trials=3, **LONG)
    assert len(table) == 2 * 3 * 5
    assert list(table.t.unique()) == [200_000_000 * k for k in range(1, 6)]
    assert (table.level == "high").all()
    (planned,) = read(planning)
    assert (planned.label, planned.tasks, planned.missing) == ("long", 6, 6)
    assert planned.seconds > 600
    assert not planned.more
    assert not (tmp_path / "store").exists()


def work(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        pass


def slow_watch(state, problem):
    work(0.05)
    return {"looked": 1.0}


@pytest.mark.parametrize("times", [{}, {"times": [100, 200]}])
def test_what_the_first_task_of_a_program_takes_is_counted_once(planning, times):
    begun = []

    def function(times=(), advance=None):
        if not begun:
            work(0.2)
        begun.append(True)
        for _ in times:
            advance(1)
        return {"value": 1.0}

    task = Task("", "", dict(times))
    play = (
        rehearsal._rounds
        if times
        else lambda function, task, look: rehearsal._whole(function, task)
    )
    found = play(function, task, rehearsal._Look(None))
    assert found.seconds < 0.1 < found.compiling
    address = {"address": task}
    rehearsal._note("first", address, {"address": found.seconds}, found.compiling, False, 0.0)
    rehearsal._note("again", address, {"address": found.seconds}, found.compiling, False, 0.0)
    assert [planned.seconds > 0.1 for planned in read(planning)] == [True, False]


def test_what_is_watched_counts_at_checkpoints_and_not_in_every_round(planning, monkeypatch):
    monkeypatch.setattr(rehearsal, "COMPUTED", 0.0)
    watched = {"a": POLICIES["arm 0"]._replace(watch=slow_watch)}
    many = {"T": 20_000, "trials": 1, "seed": 1}
    simulate(COINS, watched, checkpoints=50, **many)
    simulate(COINS, watched, checkpoints=100, **many)
    first, second = (planned.seconds for planned in read(planning))
    assert 50 * 0.05 < first < 100 * 0.05 < second < 200 * 0.05


@pytest.mark.parametrize(("doubling", "each"), [(0.0, 2e-5), (0.4, 0.0), (0.3, 1e-4)])
def test_what_happens_ever_more_rarely_is_not_counted_in_every_round(doubling, each):
    """Asking for key-terms made a task of 9 s look like one of 500."""
    spans = np.diff([1, 2, 4, 8, 16, 32, 64, 128, 256, 400])
    costs = doubling + each * spans
    further = rehearsal._further(spans[:6], costs[:6], spans[6:])
    assert further == pytest.approx(costs[6:].sum())
    assert rehearsal._further(spans, costs, spans[9:]) == 0.0


@pytest.mark.parametrize("T", [1, 2, 3])
def test_a_few_rounds_can_be_planned(planning, monkeypatch, T):
    monkeypatch.setattr(rehearsal, "COMPUTED", 0.0)
    simulate(COINS, POLICIES, T=T, trials=1, seed=1, checkpoints=1)
    (planned,) = read(planning)
    assert 0 < planned.seconds < 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
def test_memory_is_that_of_the_real_horizon_on_all_cores(planning):
    simulate(COINS, POLICIES, trials=1, **LONG)
    (rehearsed,) = rehearsal._rehearsed.values()
    room = 8 * LONG["T"] / 100
    assert 0.9 * room < rehearsed.memory < 2 * room
    assert read(planning)[0].memory > 2 * rehearsed.memory


def test_stand_ins_rise_with_time_and_are_alike_for_all_methods():
    table = simulate(COINS, POLICIES, trials=3, **LONG)
    wide = table.pivot_table(index=["trial", "t"], columns="policy", values="regret")
    np.testing.assert_array_equal(wide["arm 0"], wide["arm 1"])
    assert (wide["arm 0"].groupby("trial").diff().dropna() > 0).all()
    assert wide["arm 0"].xs(LONG["T"], level="t").nunique() == 3


def test_stand_ins_of_a_search_are_alike_for_all_its_points(monkeypatch):
    monkeypatch.setattr(rehearsal, "COMPUTED", 0.0)
    points = [{"size": 10}, {"size": 10, "extra": 1.0}]
    searched = repeat(sized, trials=2, seed=1, settings=points, stream="tune")
    assert searched.groupby("trial")["value"].nunique().tolist() == [1, 1]
    reported = repeat(sized, trials=2, seed=1, settings=points, label="reported")
    assert reported["value"].nunique() == 4


def test_what_another_page_would_leave_in_the_store_is_not_counted_again(planning):
    simulate(COINS, POLICIES, trials=2, **LONG)
    simulate(COINS, POLICIES, trials=3, **LONG)
    assert [planned.missing for planned in read(planning)] == [4, 2]


def test_a_short_run_is_computed_but_not_stored(planning, tmp_path, monkeypatch):
    arguments = {"trials": 4, "seed": 1, "settings": [{"size": 10}, {"size": 20}]}
    table = repeat(number, **arguments)
    assert not (tmp_path / "store").exists()
    assert read(planning)[0].missing == 8
    monkeypatch.setenv("REGRETBOOK_ENGINE", "threads")
    pd.testing.assert_frame_equal(table, repeat(number, **arguments))
    monkeypatch.setenv("REGRETBOOK_ENGINE", engine.PLAN)
    pd.testing.assert_frame_equal(table, repeat(number, **arguments))
    assert read(planning)[1].missing == 0
    assert read(planning)[1].seconds == 0


def test_costs_come_from_finished_tasks_of_the_same_setting(planning):
    settings = [{"size": 10}, {"size": 20}]
    stored = addresses(number, settings, trials=5)
    for index, seconds in ((0, 1000.0), (1, 3000.0), (5, 100.0)):
        store.save(stored[index], {"value": np.array(0.25)}, store.Cost(seconds, 1.0))
    table = repeat(number, trials=5, seed=1, settings=settings, label="measured")
    (planned,) = read(planning)
    assert (planned.tasks, planned.missing) == (10, 7)
    assert planned.seconds == pytest.approx((3 * 2000.0 + 4 * 100.0) / 2)  # on two cores
    assert planned.addresses == [*stored[2:5], *stored[6:]]
    assert table["value"].between(0.9 * 0.249, 0.25).all()


def test_one_long_task_takes_as_long_on_two_cores(planning):
    stored = addresses(number, [{"size": 10}], trials=2)
    store.save(stored[0], {"value": np.array(0.25)}, store.Cost(1000.0, 1.0))
    repeat(number, trials=2, seed=1, settings=[{"size": 10}])
    assert read(planning)[0].seconds == pytest.approx(1000.0)


def test_a_task_beyond_the_cap_is_ended_and_takes_more(planning, monkeypatch):
    monkeypatch.setattr(rehearsal, "CAP", 1.0)
    (known,) = addresses(sleep, [{"seconds": 0.0}], trials=1)
    store.describe(program.text({"_repeated": sleep}, ""))
    store.save(known, {"slept": np.array(0.0), "value": np.array(0.5)})
    table = repeat(sleep, trials=2, seed=1, settings=[{"seconds": 600}, {"seconds": 500}])
    (planned,) = read(planning)
    assert planned.more
    assert planned.missing == 4
    assert planned.seconds == pytest.approx(4 * 1.0 / 2)
    assert table["value"].between(0.9 * 0.499, 0.5).all()  # of the setting that is in the store
    assert table["value"].nunique() == 4  # so that a page can fit a line through its settings


def test_nothing_can_stand_in_for_a_task_that_never_ended(planning, monkeypatch):
    monkeypatch.setattr(rehearsal, "CAP", 1.0)
    with pytest.raises(BookError, match="'nap' takes more than 1 s, and no finished one is in"):
        repeat(sleep, trials=2, seed=1, settings=[{"seconds": 600}], label="nap")
    assert read(planning)[0].more  # the plan has it


def test_work_scales_what_other_settings_of_a_program_take():
    rehearsed = rehearsal.Rehearsed(CAP, 5.0, {"value": np.array(1.0)})
    rehearsal._tried["runs", "text"] = [(rehearsed, 10.0)]
    task = Task("text", "_once", {"setting": {"size": 3}}, work=40.0)
    assert rehearsal._rehearse("runs", "group", task) == rehearsed._replace(seconds=4 * CAP)


def test_the_error_of_a_task_is_the_error_of_the_plan():
    with pytest.raises(TypeError, match="size"):
        repeat(number, trials=1, seed=1)
