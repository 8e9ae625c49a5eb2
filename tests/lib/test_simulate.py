"""The loop: regret kept by the environment, paired noise, trials that survive kill -9."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from lib import engine, program
from lib.engine import SOON
from lib.errors import BookError
from lib.kernels import jit
from lib.paths import CODE
from lib.provenance import cores
from lib.simulate import (
    Environment,
    Policy,
    _table,
    checkpoint_times,
    functions_of,
    program_of,
    repeat,
    simulate,
)
from lib.trial import generators


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


class Coins(NamedTuple):
    """Three arms with fixed means; the features are the unit vectors."""

    mean: np.ndarray
    noise: float


class Fixed(NamedTuple):
    """A policy that plays one arm and remembers what it saw."""

    arm: int
    seen: np.ndarray  # sum of rewards, sum of t, last reward


def make_coins(rng, best=1.0, noise=0.0):
    return Coins(np.array([0.0, best, 0.25]), noise)


@jit
def draw_coins(problem, t, rng):
    return 0, np.arange(3), np.eye(3)


@jit
def expected_coins(problem, t, user, items, arms):
    return problem.mean.copy()


@jit
def feedback_coins(problem, t, user, item, mean, rng):
    return mean + problem.noise * rng.standard_normal()


def init_fixed(problem, T, rng, arm=0):
    return Fixed(arm, np.zeros(3))


@jit
def choose_fixed(state, t, user, arms, items):
    return state.arm


@jit
def learn_fixed(state, t, user, x, reward, item):
    state.seen[0] += reward
    state.seen[1] += t
    state.seen[2] = reward - (0.25 * x[2] + x[1])


def watch_fixed(state, problem):
    return {"times": state.seen[1], "noise_seen": state.seen[2]}


COINS = Environment(make_coins, draw_coins, expected_coins, feedback_coins)
FIXED = Policy(init_fixed, choose_fixed, learn_fixed, watch_fixed)
ARMS = {f"arm {k}": FIXED._replace(parameters={"arm": k}) for k in range(3)}


def test_regret_and_reward_are_counted_by_the_environment():
    table = simulate(COINS, ARMS, T=40, trials=1, seed=0, checkpoints=4)
    assert list(table[table.policy == "arm 0"].t) == [10, 20, 30, 40]
    final = table[table.t == 40].set_index("policy")
    assert list(final.regret) == [40.0, 0.0, 30.0]
    assert list(final.reward) == [0.0, 40.0, 10.0]
    assert (final.times == 40 * 41 / 2).all()  # rounds are 1, …, T, each learned once


def test_policies_of_a_trial_meet_the_same_noise_and_trials_differ():
    table = simulate(COINS, ARMS, T=30, trials=2, seed=3, settings=[{"noise": 1.0}])
    seen = table.pivot_table(index=["trial", "t"], columns="policy", values="noise_seen")
    np.testing.assert_allclose(seen["arm 0"], seen["arm 1"], atol=1e-12)
    np.testing.assert_allclose(seen["arm 0"], seen["arm 2"], atol=1e-12)
    assert not np.allclose(seen.loc[0], seen.loc[1])


def test_a_trial_is_the_same_whatever_else_runs():
    few = simulate(COINS, ARMS, T=30, trials=1, seed=3, settings=[{"noise": 1.0}])
    many = simulate(COINS, ARMS, T=30, trials=3, seed=3, settings=[{"noise": 1.0}])
    pd.testing.assert_frame_equal(few, many[many.trial == 0].reset_index(drop=True))
    other = simulate(COINS, ARMS, T=30, trials=1, seed=4, settings=[{"noise": 1.0}])
    assert not np.allclose(few.reward, other.reward)


def test_tuning_never_sees_the_random_numbers_that_are_reported():
    draws = [generators(0, stream, 0)[1].random() for stream in (0, 1)]
    assert draws[0] != draws[1]


class Listener(NamedTuple):
    """A policy of a page with a function more than usual, in front of `learn`."""

    init: Callable
    choose: Callable
    hear: Callable
    watch: Callable
    learn: Callable
    parameters: dict = {}  # noqa: RUF012


@jit
def hear_fixed(state, t):
    state.seen[1] += 1.0


@jit
def learn_twice(state, t, user, x, reward, item):
    state.seen[0] += 2.0 * reward
    hear_fixed(state, t)


def watch_seen(state, problem):
    return {"learned": state.seen[0], "heard": state.seen[1]}


def attentive_rounds(problem, state, start, stop, rng, total):
    """Play as usual; the policy hears every round."""
    for t in range(start, stop):
        user, items, arms = draw(problem, t, rng)  # noqa: F821
        k = choose(state, t, user, arms, items)  # noqa: F821
        hear(state, t)  # noqa: F821
        learn(state, t, user, arms[k], paid(), items[k])  # noqa: F821


@jit
def paid():
    return 3.0


def test_policies_that_differ_in_any_function_have_their_own_program():
    """The fifth field decides here; a key of the first four shares one result between the two."""
    one = Listener(init_fixed, choose_fixed, hear_fixed, watch_seen, learn_fixed)
    two = one._replace(learn=learn_twice)
    environment = COINS._replace(rounds=attentive_rounds)
    table = simulate(environment, {"one": one, "two": two}, T=4, trials=1, seed=0, checkpoints=1)
    assert list(table.learned) == [12.0, 24.0]
    assert list(table.heard) == [14.0, 8.0]  # `learn_fixed` adds t = 1, …, 4 to what is heard


def test_functions_of_policies_and_environments_are_all_their_fields_that_are_code():
    assert FIXED.functions == {
        "init": init_fixed,
        "choose": choose_fixed,
        "learn": learn_fixed,
        "watch": watch_fixed,
    }
    assert "watch" not in FIXED._replace(watch=None).functions
    assert set(COINS.functions) == {"make", "draw", "expected", "feedback", "rounds"}
    one = Listener(init_fixed, choose_fixed, hear_fixed, watch_seen, learn_fixed)
    assert set(functions_of(one)) == {"init", "choose", "hear", "watch", "learn"}


def test_machine_code_of_a_program_is_found_again_by_another_process():
    """A program is a file under its digest, so numba's cache is valid exactly for this text."""
    text = program_of(COINS, FIXED)
    simulate(COINS, {"p": FIXED}, T=4, trials=1, seed=0)
    script = """
import sys
import numpy as np
from lib import program
from lib.trial import play_trial
page = program.load(sys.stdin.read())
arguments = {"setting": {}, "parameters": {}, "times": [4], "seed": 0, "stream": 0, "trial": 0}
page._play(advance=print, **arguments)
print(sum(page.rounds.stats.cache_hits.values()), sum(page.rounds.stats.cache_misses.values()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], input=text, cwd=CODE, capture_output=True, text=True
    )
    assert done.stdout.split() == ["4", "1", "0"], done.stderr
    core, _ = program.packages(text)
    assert program.load(text).rounds.__module__ == core


def init_second(problem, T, rng):
    return init_fixed(problem, T, rng, arm=1)


@jit
def learn_nothing(state, t, user, x, reward, item):
    pass


def test_programs_that_begin_or_watch_otherwise_share_machine_code():
    policies = {
        "as ever": FIXED,
        "begins otherwise": FIXED._replace(init=init_second),
        "watches nothing": FIXED._replace(watch=None),
        "learns nothing": FIXED._replace(learn=learn_nothing),
    }
    texts = {name: program_of(COINS, policy) for name, policy in policies.items()}
    assert len(set(texts.values())) == 4
    *alike, other = (program.load(text).rounds for text in texts.values())
    assert len(set(alike)) == 1 and other not in alike
    table = simulate(COINS, policies, T=4, trials=1, seed=0, checkpoints=1)
    assert list(table.regret) == [4.0, 0.0, 4.0, 4.0]
    assert list(table.times[[0, 1, 3]]) == [10.0, 10.0, 0.0]
    assert len(alike[0].signatures) == 1, "compiled once for all three"


@pytest.mark.parametrize(("T", "trials"), [(0, 1), (1, 0), (-5, 3)])
def test_nothing_to_simulate_is_refused(T, trials):
    with pytest.raises(BookError, match="at least 1"):
        simulate(COINS, ARMS, T=T, trials=trials, seed=0)
    with pytest.raises(BookError, match="at least 1"):
        simulate(COINS, ARMS, T=5, trials=3, seed=0, settings=[{"T": 0}])
    with pytest.raises(BookError, match="at least 1"):
        repeat(sample_mean, trials=0, seed=0)
    with pytest.raises(BookError, match="no result of 'nothing'"):
        repeat(sample_mean, trials=1, seed=0, settings=[], label="nothing")


def test_checkpoints_end_with_the_horizon_and_never_repeat():
    for T in (1, 2, 59, 60, 61, 1000, 1_000_000):
        times = checkpoint_times(T, 60)
        assert times[-1] == T
        assert times[0] >= 1
        assert len(set(times)) == len(times) == min(T, 60)


def test_a_policy_in_plain_python_gives_the_same_numbers():
    plain = Policy(init_fixed, choose_fixed.py_func, learn_fixed.py_func, watch_fixed)
    arguments = {"T": SOON, "trials": 2, "seed": 1, "settings": [{"noise": 0.5}]}
    fast = simulate(COINS, {"p": FIXED}, **arguments)
    slow = simulate(COINS, {"p": plain}, **arguments)
    pd.testing.assert_frame_equal(fast, slow)


def watch_process(state, problem):
    return {"process": os.getpid()}


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_plain_python_runs_in_processes_and_compiled_code_in_threads():
    plain = Policy(init_fixed, choose_fixed.py_func, learn_fixed.py_func, watch_process)
    compiled = FIXED._replace(watch=watch_process)
    table = simulate(COINS, {"plain": plain, "compiled": compiled}, T=SOON, trials=2, seed=1)
    assert set(table[table.policy == "compiled"].process) == {os.getpid()}
    assert os.getpid() not in set(table[table.policy == "plain"].process)


def sample_mean(rng, size):
    return {"mean": rng.standard_normal(size).mean(), "size_seen": size}


def test_repeat_gives_a_row_for_every_setting_and_trial():
    table = repeat(sample_mean, trials=3, seed=1, settings=[{"size": 10}, {"size": 20}])
    assert list(table["size"]) == [10] * 3 + [20] * 3
    assert (table.size_seen == table["size"]).all()
    assert table["mean"].nunique() == 6


def test_cases_that_a_limited_run_leaves_out_have_no_rows():
    settings = [{"size": 30}, {"size": 10}, {"size": 20}]
    arguments = {"trials": 2, "seed": 1, "settings": settings, "work": lambda s: s["size"]}
    with engine.limited(1):
        table = repeat(sample_mean, **arguments)
        assert table[["size", "trial"]].values.tolist() == [[10, 0]]  # the least work
        once = simulate(COINS, ARMS, T=4, trials=2, seed=0, checkpoints=1)
        assert len(once) == 1
    whole = repeat(sample_mean, **arguments)
    assert len(whole) == 6
    pd.testing.assert_frame_equal(whole[whole["size"] == 10][:1].reset_index(drop=True), table)
    with engine.limited(0), pytest.raises(BookError, match="no result of 'experiment'"):
        repeat(sample_mean, trials=1, seed=2, settings=settings)


def test_work_is_a_number_or_a_function_of_the_setting(monkeypatch):
    seen = []

    def run(tasks, label):
        seen.append([task.work for task in tasks])
        return [{"value": np.zeros(1)} for _ in tasks]

    monkeypatch.setattr(engine, "run", run)
    settings = [{"size": 3}, {"size": 5}]
    repeat(sample_mean, trials=1, seed=0, settings=settings)
    repeat(sample_mean, trials=1, seed=0, settings=settings, work=7)
    repeat(sample_mean, trials=1, seed=0, settings=settings, work=lambda s: s["size"] ** 2)
    assert seen == [[1, 1], [7, 7], [9, 25]]


SLOW = """\
import sys
import time

from lib.simulate import repeat

def slow(rng, marker):
    with open(marker, "a") as file:
        file.write("x")
    time.sleep(0.25)
    return {"value": rng.standard_normal()}

if __name__ == "__main__":
    table = repeat(slow, trials=12, seed=7, settings=[{"marker": sys.argv[1]}])
    print([float(value).hex() for value in table["value"]])
"""


def run_slow(script, marker, store, kill_after=None):
    environment = {**os.environ, "REGRETBOOK_STORE": str(store), "PYTHONPATH": str(CODE)}
    process = subprocess.Popen(
        [sys.executable, script, marker], env=environment, stdout=subprocess.PIPE, text=True
    )
    if kill_after is not None:
        while not (store.exists() and len(list(store.glob("*/*.task"))) >= kill_after):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    output, _ = process.communicate(timeout=60)
    return output


def test_a_run_killed_in_the_middle_resumes_with_identical_results(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    marker = tmp_path / "marker"
    store = tmp_path / "killed"
    run_slow(script, marker, store, kill_after=3)
    kept = len(list(store.glob("*/*.task")))
    assert 3 <= kept < 12
    started = len(marker.read_text())
    resumed = run_slow(script, marker, store)
    assert len(marker.read_text()) - started == 12 - kept  # only what was missing ran again
    marker.write_text("")
    assert resumed == run_slow(script, marker, tmp_path / "fresh")
    assert len(marker.read_text()) == 12


def test_two_runs_at_once_share_a_store(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    store = tmp_path / "shared"
    environment = {**os.environ, "REGRETBOOK_STORE": str(store), "PYTHONPATH": str(CODE)}
    command = [sys.executable, str(script), str(tmp_path / "marker")]
    pair = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = {process.communicate(timeout=60)[0] for process in pair}
    assert len(outputs) == 1
    assert [process.returncode for process in pair] == [0, 0]
    assert len(list(store.glob("*/*.task"))) == 12


MIXED = ([{}, {}], [{"d": 2}, {"d": 2.5}], [{"n": "x"}, {"n": "y"}], [{"d": 1.0}, {"d": None}])


@pytest.mark.parametrize("more", [*MIXED, [{}, {"d": 3}]])
def test_rows_of_many_tasks_are_those_of_a_frame_for_each(more):
    known = [{"policy": "p", "trial": trial, **each} for trial, each in enumerate(more)]
    results = [{"t": np.arange(3), "regret": np.arange(3) / (1 + i)} for i in range(len(known))]
    frames = [pd.DataFrame(k | r) for k, r in zip(known, results, strict=True)]
    expected = pd.concat(frames, ignore_index=True)
    pd.testing.assert_frame_equal(_table(known, results, "x"), expected)
