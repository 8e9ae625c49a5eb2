"""One trial: what it reports, and that nothing but numbers can change it."""

import ast

import numpy as np

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
