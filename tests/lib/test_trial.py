"""One trial: what it reports, and that nothing but numbers can change it."""

import ast
from typing import NamedTuple

import numpy as np
import pytest

from lib import trial
from lib.paths import LIB


def test_a_trial_depends_on_no_other_part_of_lib():
    """Every program holds this file; what it imported would be in the key of every result."""
    tree = ast.parse((LIB / "trial.py").read_text("utf-8"))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= {"collections.abc", "numpy", "lib.kernels"}


def test_progress_hears_every_round_once():
    played, heard = [], []

    def rounds(problem, state, start, stop, rng, total):
        played.extend(range(start, stop))
        total += 1.0

    page = {"make": lambda rng: None, "init": lambda problem, T, rng: None, "rounds": rounds}
    found = trial.play_trial(page, heard.append, {}, {}, [2, 5, 9], seed=0, stream=0, trial=0)
    assert played == list(range(1, 10))
    assert heard == [2, 3, 4]
    np.testing.assert_array_equal(found["t"], [2, 5, 9])
    np.testing.assert_array_equal(found["regret"], [1.0, 2.0, 3.0])


class Planner(NamedTuple):
    replans: np.ndarray
    plan: np.ndarray  # the round of the last plan


def play_planner(times, replans, replan=True):
    """Return what was played under which plan, and what was recorded, of a policy that replans."""
    played, heard = [], []

    def rounds(problem, state, start, stop, rng, total):
        played.extend((t, int(state.plan[0])) for t in range(start, stop))
        total += stop - start

    def replan_now(state, t):
        state.plan[0] = t

    page = {
        "make": lambda rng: None,
        "init": lambda problem, T, rng: Planner(np.array(replans), np.zeros(1)),
        "rounds": rounds,
        "watch": lambda state, problem: {"plan": state.plan[0]},
        **({"replan": replan_now} if replan else {}),
    }
    found = trial.play_trial(page, heard.append, {}, {}, times, seed=0, stream=0, trial=0)
    return played, sum(heard), found


@pytest.mark.parametrize("times", [[9], [3, 6, 9], [1, 2, 3, 4, 5, 6, 7, 8, 9]])
def test_plans_change_after_the_named_rounds_wherever_checkpoints_are(times):
    played, heard, found = play_planner(times, [3, 7, 20])
    assert played == [(t, 0 if t <= 3 else 3 if t <= 7 else 7) for t in range(1, 10)]
    assert heard == 9
    np.testing.assert_array_equal(found["t"], times)
    np.testing.assert_array_equal(found["regret"], times)
    assert found["plan"].tolist() == [0 if t < 3 else 3 if t < 7 else 7 for t in times]


def test_a_policy_that_does_not_replan_may_have_rounds_called_replans():
    played, _, found = play_planner([5, 9], [3, 7], replan=False)
    assert {plan for _, plan in played} == {0} and len(found["t"]) == 2


def test_streams_of_a_trial_differ_and_are_always_the_same():
    first, again = (
        [rng.random() for rng in trial.generators(5, stream=0, trial=2)] for _ in range(2)
    )
    assert first == again
    others = [
        rng.random()
        for seed, stream, number in [(6, 0, 2), (5, 1, 2), (5, 0, 3)]
        for rng in trial.generators(seed, stream, number)
    ]
    assert len({*first, *others}) == 12
